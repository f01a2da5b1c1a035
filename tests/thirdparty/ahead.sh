#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds UCX and Open MPI at low priority. `make check` runs this in the background, while tests of another build run:
# their configure scripts use one processor. The tests ucx-build and openmpi-build wait for them (a lock in each
# folder) and report; when the build fails they make it again and say why.
#
#   ahead.sh BUILD_DIR
set -u

[ $# -eq 1 ] || { echo "usage: ahead.sh BUILD_DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$build/thirdparty"
# A session of its own would get an equal share of the processors, however low its processes' priority is. This is
# about a quarter; at the lowest weight their tests waited 900 s for Open MPI.
{ echo 5 >/proc/self/autogroup; } 2>/dev/null || true
{
    "$here/ucx/build.sh" "$build"
    "$here/openmpi/build.sh" "$build"
} >"$build/thirdparty/ahead.log" 2>&1 </dev/null
