#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An MPI program without a compiler: says of each rank its processor's name, how many ranks share memory with it, and
the sum of all ranks' numbers, by messages and by a window in that memory. Status 77 where there is no MPI."""

import ctypes
import sys

MPI_INT, MPI_SUM, SHARED = "ompi_mpi_int", "ompi_mpi_op_sum", 0
LINE = 128

try:
    mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
except OSError:
    sys.exit(77)


def handle(name):
    """One of Open MPI's predefined objects."""
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


def number(function, comm):
    value = ctypes.c_int()
    function(comm, ctypes.byref(value))
    return value.value


def check(status):
    if status:
        sys.exit(f"mpi_rank: MPI says {status}")


def total(comm, value):
    mine, everybody = ctypes.c_int(value), ctypes.c_int(-1)
    check(mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(everybody), 1, handle(MPI_INT), handle(MPI_SUM), comm))
    return everybody.value


def total_shared(comm, rank, size):
    """Each stores its number in its part of the window; rank 0's part begins the window, parts follow each other."""
    window, base, bytes_there, unit = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_long(), ctypes.c_int()
    check(mpi.MPI_Win_allocate_shared(ctypes.c_long(4), 4, handle("ompi_mpi_info_null"), comm, ctypes.byref(base),
                                      ctypes.byref(window)))
    ctypes.cast(base, ctypes.POINTER(ctypes.c_int))[0] = rank
    check(mpi.MPI_Win_fence(0, window))
    check(mpi.MPI_Win_shared_query(window, 0, ctypes.byref(bytes_there), ctypes.byref(unit), ctypes.byref(base)))
    numbers = ctypes.cast(base, ctypes.POINTER(ctypes.c_int))
    result = sum(numbers[i] for i in range(size))
    check(mpi.MPI_Win_fence(0, window))
    check(mpi.MPI_Win_free(ctypes.byref(window)))
    return result


def tell(comm, rank, line):
    """Rank 0 prints the lines of all: mpirun may mix those of several ranks."""
    size = number(mpi.MPI_Comm_size, comm)
    mine, lines = ctypes.create_string_buffer(line.encode(), LINE), ctypes.create_string_buffer(size * LINE)
    char = handle("ompi_mpi_char")
    check(mpi.MPI_Gather(mine, LINE, char, lines, LINE, char, 0, comm))
    for i in range(size if rank == 0 else 0):
        print(lines[i * LINE:(i + 1) * LINE].rstrip(b"\0").decode())


check(mpi.MPI_Init(None, None))
world, shared = handle("ompi_mpi_comm_world"), ctypes.c_void_p()
rank = number(mpi.MPI_Comm_rank, world)
name, length = ctypes.create_string_buffer(256), ctypes.c_int()
check(mpi.MPI_Get_processor_name(name, ctypes.byref(length)))
check(mpi.MPI_Comm_split_type(world, SHARED, 0, handle("ompi_mpi_info_null"), ctypes.byref(shared)))
n_shared = number(mpi.MPI_Comm_size, shared)
tell(world, rank, f"rank {rank} on {name.value.decode()} shares {n_shared} sum {total(world, rank)} "
     f"shared {total_shared(shared, number(mpi.MPI_Comm_rank, shared), n_shared)}")
check(mpi.MPI_Finalize())
