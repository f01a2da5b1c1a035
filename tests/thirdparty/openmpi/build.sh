#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Build Open MPI 4.1.4, unmodified from Debian's source package, with its uGNI transport (btl/ugni) over our libugni and
# its udreg registration cache (rcache/udreg) over our libudreg.
#
#   build.sh BUILD_DIR        BUILD_DIR is the meson build folder
#
# Everything stays below BUILD_DIR/thirdparty/openmpi:
#
#   apt/       private package lists and cache, removed at the end; the system's lists and sources are not touched
#   dl/        the source package, verified
#   src/       the unpacked source with Debian's patches, otherwise as it came
#   obj/       out-of-tree objects, removed at the end
#   install/   lib/ with libmpi and its components (pml ob1; btl self, vader, ugni; osc rdma ...), bin/mpicc;
#              bin/check_* are our own MPI programs
#   stamp      hash of everything the result depends on; equal hash = nothing to do
#
# The launcher is the system's mpirun: the same version, and `emunic run` knows it. Only the headers and the link-time
# symbols of our libraries are inputs. Exit status: 0 built or up to date, 1 failed, 2 wrong usage, 77 source not
# obtainable (no network).
#
# Environment: OPENMPI_JOBS (default 2), OPENMPI_MIRROR (instead of the system's own mirror), OPENMPI_SOURCE_DIR (a
# folder that already holds the three files of the source package: no network is used).

# shellcheck disable=SC2034  # debian_source.sh uses them
set -eu

version=4.1.4
package=openmpi=$version-3
dsc=openmpi_$version-3.dsc
dsc_sha256=f81a77144a8f0ed58014a5f4f4406643c544b73d9e26cb6bb4eb3a3e60c172d5
modules='cray-ugni cray-pmi cray-udreg cray-gni-headers'
prefix=openmpi

[ $# -eq 1 ] || { echo "openmpi-build: usage: build.sh BUILD_DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 2
work=$build/thirdparty/openmpi
log=$work/build.log
jobs=${OPENMPI_JOBS:-2}
mirror=${OPENMPI_MIRROR:-}
source_dir=${OPENMPI_SOURCE_DIR:-}
PKG_CONFIG_PATH=$build/meson-uninstalled${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
# Open MPI's configure asks git for its own revision; it must not find ours.
GIT_CEILING_DIRECTORIES=$work
export GIT_CEILING_DIRECTORIES
# shellcheck source=tests/thirdparty/debian_source.sh
. "$here/../debian_source.sh"

mkdir -p "$work"
# Two runs at a time (test and benchmark) would destroy each other's objects.
exec 9>"$work/lock"
flock 9

# --- inputs ---------------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086  # a list
pkg-config --exists $modules ||
    fail "pkg-config modules $modules not found in $build/meson-uninstalled; build the project first"
pmix=$(pkg-config --variable=prefix pmix)

# Flags name the header folders; hash the headers found there, whatever the folders are called.
header() {
    # shellcheck disable=SC2086
    for flag in $(pkg-config --cflags $modules); do
        case $flag in
        -I*) [ -f "${flag#-I}/$1" ] && { echo "${flag#-I}/$1"; return 0; } ;;
        esac
    done
    fail "$1 is in none of the include folders of $modules"
}
# What the compiler takes from them: a changed comment needs no new Open MPI.
declarations() { gcc -E -P -dD "$(header "$1")"; }
# shellcheck disable=SC2086
want=$({
    cat "$here/build.sh"
    declarations gni_pub.h
    declarations udreg_pub.h
    pkg-config --cflags --libs $modules
    echo "$pmix"
    gcc --version
} | sha256sum | cut -d' ' -f1)

# Our own programs take seconds; Open MPI is not built again for them.
checks() {
    for source in "$here"/check_*.c; do
        name=$(basename "$source" .c)
        binary=$work/install/bin/$name
        [ -z "$(find "$here" -name '*.[ch]' -newer "$binary" 2>&1)" ] && continue
        step "build $name" "$work/install/bin/mpicc" -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -o "$binary" "$source"
    done
}

if [ -f "$work/stamp" ] && [ "$(cat "$work/stamp")" = "$want" ] && [ -f "$work/install/lib/libmpi.so" ]; then
    checks
    say "up to date"
    exit 0
fi
rm -f "$work/stamp"
: >"$log"

# --- source ---------------------------------------------------------------------------------------------------------

get_source
unpack_source
# The package carries its configure script and Makefile.in. Debian's patches touch what they are made from, but nothing
# that we build: in the order of their making they count as new, and no autotools run.
# shellcheck disable=SC2016  # the inner shell's argument
step "mark generated files as new" sh -c '
    for name in aclocal.m4 configure "*config.h.in" Makefile.in; do
        find "$1" -name "$name" -exec touch {} +
    done' sh "$work/src"

# --- build ----------------------------------------------------------------------------------------------------------

rm -rf "$work/obj" "$work/install"
mkdir -p "$work/obj"

# Components that need what this host has not, or that nothing here uses: MPI-IO, other networks, other launchers, other
# message layers, checkpointing. What is left: opal and orte as libmpi needs them, pml ob1, osc rdma, pt2pt and sm, btl
# self, vader and ugni, the collectives, rcache grdma and udreg.
without="
    btl-ofi btl-openib btl-portals4 btl-scif btl-sm btl-smcuda btl-tcp btl-uct btl-usnic
    common-ofi common-ucx common-verbs common-verbs_usnic common-monitoring common-ompio
    compress crs crcp memchecker mpool-memkind event-libevent2022 hwloc-hwloc201
    pmix-flux pmix-s1 pmix-s2 pmix-isolated pmix-ext1x pmix-ext2x pmix-pmix3x
    rcache-gpusm rcache-rgpusm reachable-netlink
    ess-lsf ess-slurm ess-tm oob-ud plm-lsf plm-slurm plm-tm ras-gridengine ras-lsf ras-tm ras-slurm
    rmaps-mindist rmaps-resilient schizo-flux schizo-jsm schizo-moab schizo-singularity schizo-slurm
    snapc sstore filem coll-cuda coll-fca coll-hcoll coll-monitoring coll-portals4 coll-spacc coll-ucc coll-han
    coll-adapt
    fbtl fcoll fs io sharedfp mtl osc-monitoring osc-portals4 osc-ucx
    pml-cm pml-crcpw pml-monitoring pml-ucx pml-v pml-yalla topo-treematch vprotocol op-avx"
# shellcheck disable=SC2086
without=$(echo $without | tr ' ' ',')

# uGNI and udreg are demanded, so configure fails loudly when it does not like our pkg-config modules. Cray's PMI must
# not be built in: under PMIx it stops the job (spec/cray-runtime.md 7.4); it needs ALPS modules that we do not provide
# anyway.
step "configure" sh -c 'cd "$1" && shift && exec "$@"' sh "$work/obj" \
    "$work/src/configure" \
    --prefix="$work/install" --disable-static --disable-dependency-tracking \
    --with-ugni --with-udreg --with-cray-pmi=no --with-alps=no \
    --with-libevent=external --with-hwloc=external --with-pmix="$pmix" \
    --disable-mpi-fortran --disable-oshmem --disable-mpi-java \
    --without-verbs --without-ucx --without-ofi --without-psm --without-psm2 --without-cuda --without-memkind \
    --without-portals4 --without-slurm --without-tm --without-lsf --without-sge \
    --enable-contrib-no-build=libompitrace --enable-mca-no-build="$without"
grep -q "^MCA_BUILD_opal_btl_ugni_DSO_TRUE=''" "$work/obj/config.log" ||
    fail "configure finished without btl/ugni; log in $log"
grep -q "^MCA_BUILD_opal_rcache_udreg_DSO_TRUE=''" "$work/obj/config.log" ||
    fail "configure finished without rcache/udreg; log in $log"

# Manual pages are generated by hundreds of commands: none.
for part in opal orte ompi; do
    step "build $part" make -C "$work/obj/$part" -j"$jobs" V=0 man_MANS= nodist_man_MANS=
    step "install $part" make -C "$work/obj/$part" install V=0 man_MANS= nodist_man_MANS=
done
for file in lib/libmpi.so lib/openmpi/mca_btl_ugni.so lib/openmpi/mca_btl_vader.so lib/openmpi/mca_rcache_udreg.so \
    bin/mpicc; do
    [ -f "$work/install/$file" ] || fail "$file was not built; log in $log"
done
checks

rm -rf "$work/apt" "$work/obj"
echo "$want" >"$work/stamp"
say "built in $work/install"
