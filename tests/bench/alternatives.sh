#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds what runs beside ours: UCX, and our clients of libfabric and MPI where these are installed, and of the Open MPI
# with btl/ugni where the third-party tests have built it. Nothing here may fail: bench.py says which alternative is
# missing.
#
#   alternatives.sh BUILD_DIR
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
out=$build/bench
flags="-std=c17 -D_GNU_SOURCE -O2 -Wall -Wextra -I$root"

"$here/../thirdparty/ucx/build.sh" "$build" || echo "bench: without UCX" >&2

mkdir -p "$out"
rm -f "$out/fabric_shm" "$out/mpi_pingpong" "$out/mpi_group" "$out/mpi_exchange" "$out/mpi_exchange_smpi" "$out/mpi_pingpong_source" "$out/shmem_rank"
# The flags are lists.
# shellcheck disable=SC2046,SC2086
if pkg-config --exists libfabric 2>/dev/null; then
    gcc $flags -o "$out/fabric_shm" "$here/fabric_shm.c" "$here/common.c" $(pkg-config --cflags --libs libfabric) ||
        echo "bench: without libfabric" >&2
fi
# shellcheck disable=SC2086
if command -v mpicc.openmpi >/dev/null 2>&1; then
    mpicc.openmpi $flags -o "$out/mpi_pingpong" "$here/mpi_pingpong.c" "$here/common.c" &&
        mpicc.openmpi $flags -o "$out/mpi_group" "$here/mpi_group.c" "$here/common.c" &&
        mpicc.openmpi $flags -o "$out/mpi_exchange" "$here/mpi_exchange.c" "$here/common.c" ||
        echo "bench: without Open MPI" >&2
fi
# shellcheck disable=SC2086
if command -v smpicc >/dev/null 2>&1; then
    smpicc $flags -o "$out/mpi_exchange_smpi" "$here/mpi_exchange.c" "$here/common.c" ||
        echo "bench: without SimGrid" >&2
fi
# shellcheck disable=SC2086
if command -v oshcc >/dev/null 2>&1; then
    oshcc $flags -o "$out/shmem_rank" "$here/shmem_rank.c" "$here/common.c" || echo "bench: without OpenSHMEM" >&2
fi
source_mpicc=$build/thirdparty/openmpi/install/bin/mpicc
# shellcheck disable=SC2086
if [ -f "$build/thirdparty/openmpi/stamp" ]; then
    "$source_mpicc" $flags -o "$out/mpi_pingpong_source" "$here/mpi_pingpong.c" "$here/common.c" ||
        echo "bench: without Open MPI's btl/ugni" >&2
fi
