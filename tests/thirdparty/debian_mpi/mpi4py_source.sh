#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The tests of mpi4py, from Debian's source package of the installed version.
#
#   mpi4py_source.sh WORK      puts them into WORK/src/test
#
# Exit status: 0 there, 1 failed, 2 wrong usage, 77 source not obtainable. Environment: MPI4PY_MIRROR (instead of the
# system's own mirror), MPI4PY_SOURCE_DIR (a folder that already holds the three files of the source package).

# shellcheck disable=SC2034  # debian_source.sh uses them
set -eu

version=3.1.4
package=mpi4py=$version-2
dsc=mpi4py_$version-2.dsc
dsc_sha256=5f9b62f0efea19111e906ba5f87fc11578e5cfd59bb6413a6f22f37e8da4bc36
prefix=mpi4py

[ $# -eq 1 ] || { echo "mpi4py: usage: mpi4py_source.sh WORK" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
log=$work/source.log
mirror=${MPI4PY_MIRROR:-}
source_dir=${MPI4PY_SOURCE_DIR:-}
# shellcheck source=tests/thirdparty/debian_source.sh
. "$here/../debian_source.sh"

exec 9>"$work/lock"
flock 9
[ -f "$work/src/.unpacked" ] && exit 0
get_source
# The .dsc alone is not enough: a mirror may lack the archives.
for file in "mpi4py_$version.orig.tar.gz" "mpi4py_$version-2.debian.tar.xz"; do
    [ -f "$work/dl/$file" ] || skip "the mirror has no $file (details in $log)"
done
unpack_source
rm -rf "$work/apt"
