#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs what the project needs and the machine lacks, with apt. Without apt it prints the names.
#
#   install_deps.sh [multihost|fuzz]   multihost: also Slurm, whose daemons run in namespaces of the tests
#                                      fuzz: also clang with libFuzzer
set -eu

packages="
clang-format
gcc
libc6-dev
meson
ninja-build
pkg-config
python3
libcap-ng-dev
libcmocka-dev
libjansson-dev
libyaml-dev
libpmix-dev
libfabric-dev
libfuse3-dev
libhwloc-dev
libhugetlbfs-dev
libibverbs-dev
libopenmpi-dev
libseccomp-dev
libsodium-dev
libzydis-dev
openmpi-bin
procps
iproute2
util-linux
python3-matplotlib
"
# UCX and Open MPI from Debian's source packages (tests/thirdparty, tests/bench)
packages="$packages
autoconf
automake
ca-certificates
dpkg-dev
g++
gfortran
libevent-dev
libtool
perl
"
if [ "${1-}" = multihost ]; then
    packages="$packages
munge
slurm-client
slurmctld
slurmd
"
fi
if [ "${1-}" = fuzz ]; then
    packages="$packages
clang
libclang-rt-14-dev
llvm
"
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "This is not a Debian system. What the project needs, by Debian's names:" >&2
    echo "$packages" | tr '\n' ' ' >&2
    echo >&2
    exit 0
fi

missing=
for p in $packages; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
if [ -n "$sudo" ] && ! command -v sudo >/dev/null 2>&1; then
    echo "not root and no sudo; as root: apt-get install$missing" >&2
    exit 1
fi
echo "installing:$missing" >&2
$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
