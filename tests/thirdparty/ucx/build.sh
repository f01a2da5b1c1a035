#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Build UCX 1.13.1, unmodified from Debian's source package, with its uGNI transports over our libugni and libpmi.
#
#   build.sh BUILD_DIR        BUILD_DIR is the meson build folder
#
# Everything stays below BUILD_DIR/thirdparty/ucx:
#
#   apt/       private package lists and cache, removed at the end; the system's lists and sources are not touched
#   dl/        the source package; dpkg-source verifies the checksums of the .dsc, sha256 of the .dsc is checked here
#   src/       the unpacked source with Debian's patches and the generated configure script, otherwise as it came
#   obj/       out-of-tree objects
#   install/   what the cases use: bin/ucx_info, bin/ucx_perftest, lib/ with posix, sysv, cma, tcp, self and ugni;
#              bin/uct_check is our own program on UCX
#   stamp      hash of everything the result depends on; equal hash = nothing to do
#
# Only the headers and the link-time symbols of libugni are inputs. A new libugni needs no new UCX.
# Exit status: 0 built or up to date, 1 failed, 2 wrong usage, 77 source not obtainable (no network).
#
# Environment: UCX_JOBS (default 2), UCX_MIRROR (instead of the system's own mirror), UCX_SOURCE_DIR (a folder that
# already holds the three files of the source package: no network is used).

# shellcheck disable=SC2016  # the inner shell expands its own arguments
set -eu

version=1.13.1
package=ucx=$version-1
dsc=ucx_$version-1.dsc
dsc_sha256=bbe0768a0916a18f15de554660cfe5b7667ad5ba13e7e5f04f0662330cfcc664
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf 'ucx-build: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
skip() { say "skipped: $*"; exit 77; }

[ $# -eq 1 ] || { say "usage: build.sh BUILD_DIR"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 2
work=$build/thirdparty/ucx
log=$work/build.log
jobs=${UCX_JOBS:-2}
PKG_CONFIG_PATH=$build/meson-uninstalled${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
# UCX's configure asks git for its own revision; it must not find ours.
GIT_CEILING_DIRECTORIES=$work
export GIT_CEILING_DIRECTORIES

mkdir -p "$work"
# Two runs at a time (test and custom target) would destroy each other's objects.
exec 9>"$work/lock"
flock 9

# Run a step with its output in the log; on failure show the end of it.
step() {
    name=$1
    shift
    say "$name"
    printf '\n== %s: %s\n' "$name" "$*" >>"$log"
    if ! nice "$@" >>"$log" 2>&1 9>&-; then
        tail -n 30 "$log" >&2
        fail "$name failed; log in $log"
    fi
}

# --- inputs ---------------------------------------------------------------------------------------------------------

pkg-config --exists cray-ugni cray-pmi ||
    fail "pkg-config modules cray-ugni and cray-pmi not found in $build/meson-uninstalled; build the project first"

# Flags name the header folders; hash the headers found there, whatever the folders are called.
header() {
    for flag in $(pkg-config --cflags cray-ugni cray-pmi); do
        case $flag in
        -I*) [ -f "${flag#-I}/$1" ] && { echo "${flag#-I}/$1"; return 0; } ;;
        esac
    done
    fail "$1 is in none of the include folders of cray-ugni and cray-pmi"
}
gni_header=$(header gni_pub.h)
pmi_header=$(header pmi.h)
want=$({
    cat "$here/build.sh" "$gni_header" "$pmi_header"
    pkg-config --cflags --libs cray-ugni cray-pmi
    gcc --version
} | sha256sum | cut -d' ' -f1)

# Our own program takes a second; UCX is not built again for it. The flags of our modules are meant to be split.
uct_check() {
    binary=$work/install/bin/uct_check
    if [ -x "$binary" ] && [ -z "$(find "$here/uct_check.c" -newer "$binary")" ]; then
        return 0
    fi
    # shellcheck disable=SC2046
    step "build uct_check" gcc -std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -isystem "$work/install/include" \
        -o "$binary" "$here/uct_check.c" $(pkg-config --cflags cray-pmi) \
        -L"$work/install/lib" -Wl,-rpath,"$work/install/lib" -luct -lucs $(pkg-config --libs cray-pmi)
}

if [ -f "$work/stamp" ] && [ "$(cat "$work/stamp")" = "$want" ] && [ -x "$work/install/bin/ucx_perftest" ]; then
    uct_check
    say "up to date"
    exit 0
fi
rm -f "$work/stamp"
: >"$log"

# --- source ---------------------------------------------------------------------------------------------------------

# apt-get with lists, state and cache of its own.
private_apt() {
    apt-get -qq \
        -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none \
        -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@" >>"$log" 2>&1
}

# Point the private lists at a mirror; $2 is the kind of line.
use_mirror() {
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    echo "$2 [signed-by=$keyring] $1 bookworm main" >"$work/apt/sources.list"
    private_apt update
}

# Where this system gets Debian 12 from.
system_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)' 2>>"$log" |
        awk '$2 == "bookworm" && $3 == "main" && $4 == "Packages" { print $1; exit }'
}

source_complete() {
    [ -f "$work/dl/$dsc" ] && echo "$dsc_sha256  $work/dl/$dsc" | sha256sum --quiet --check - >>"$log" 2>&1
}

mkdir -p "$work/dl"
if [ -n "${UCX_SOURCE_DIR:-}" ] && ! source_complete; then
    cp "$UCX_SOURCE_DIR"/ucx_$version* "$work/dl/"
fi
if ! source_complete; then
    command -v apt-get >/dev/null || skip "apt-get not found, cannot fetch the source of $package"
    mirror=${UCX_MIRROR:-$(system_mirror)}
    [ -n "$mirror" ] || skip "apt knows no source of Debian 12 packages; set UCX_MIRROR or UCX_SOURCE_DIR"
    say "fetching $package"
    use_mirror "$mirror" deb-src &&
        (cd "$work/dl" && private_apt source --download-only --only-source "$package") || true
    source_complete || skip "no network: the source of $package could not be fetched (details in $log)"
fi

if [ ! -f "$work/src/.unpacked" ]; then
    rm -rf "$work/src"
    step "unpack and verify" dpkg-source --no-copy -x "$work/dl/$dsc" "$work/src"
    touch "$work/src/.unpacked"
fi

# --- configure script -----------------------------------------------------------------------------------------------

# UCX's package has no generated configure; autoreconf needs what `make deps` installs.
if [ ! -x "$work/src/configure" ]; then
    command -v libtoolize >/dev/null || fail "libtool is not installed: make deps"
    step "generate configure" sh -c 'cd "$1" && ./autogen.sh' sh "$work/src"
fi

# --- build ----------------------------------------------------------------------------------------------------------

rm -rf "$work/obj" "$work/install"
mkdir -p "$work/obj"
# contrib/configure-release is UCX's own recipe for speed. The rest leaves out what this host does not need; uGNI is
# demanded, so configure fails loudly when it does not like our pkg-config modules. --enable-mt and --enable-cma as
# in Debian's package. UCX adds -g -O3 itself for C; C++ (the measuring loops of ucx_perftest) has no optimisation
# of its own.
step "configure" sh -c 'cd "$1" && shift && exec "$@"' sh "$work/obj" \
    "$work/src/contrib/configure-release" \
    --prefix="$work/install" --disable-static --disable-dependency-tracking \
    --with-ugni --enable-mt --enable-cma \
    --without-java --without-go --without-cuda --without-rocm --without-gdrcopy --without-verbs --without-rdmacm \
    --without-xpmem --without-knem --without-mpi --without-fuse3 --without-bfd --disable-numa --disable-doxygen-doc \
    --disable-gtest --disable-examples --disable-backtrace-detail \
    CFLAGS=-g0 CXXFLAGS='-g0 -O3'
grep -q '^#define HAVE_TL_UGNI 1' "$work/obj/config.h" || fail "configure finished without uGNI; log in $log"

for part in src/ucm src/ucs src/uct src/ucp src/tools/info src/tools/perf; do
    step "build $part" make -C "$work/obj/$part" -j"$jobs" V=0
    step "install $part" make -C "$work/obj/$part" install
done
for file in bin/ucx_info bin/ucx_perftest lib/ucx/libuct_ugni.so; do
    [ -f "$work/install/$file" ] || fail "$file was not built; log in $log"
done

uct_check

rm -rf "$work/apt"
echo "$want" >"$work/stamp"
say "built in $work/install"
