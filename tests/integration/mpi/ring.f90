! SPDX-License-Identifier: BSD-3-Clause
! A ring in Fortran: numbers go round once, then a sum over all ranks and a datatype of every second column.
program ring
    use mpi
    implicit none
    integer :: rank, n, ierr, next, before, total, columns, i
    integer :: status(MPI_STATUS_SIZE)
    real(8) :: out(100, 8), in(100, 8)

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
    next = mod(rank + 1, n)
    before = mod(rank + n - 1, n)
    out = rank
    in = -1
    call MPI_Type_vector(4, 100, 200, MPI_DOUBLE_PRECISION, columns, ierr)
    call MPI_Type_commit(columns, ierr)
    call MPI_Sendrecv(out, 1, columns, next, 5, in, 1, columns, before, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
    if (status(MPI_SOURCE) /= before .or. status(MPI_TAG) /= 5) call MPI_Abort(MPI_COMM_WORLD, 4, ierr)
    do i = 1, 8
        if (mod(i, 2) == 1 .and. any(in(:, i) /= before)) call MPI_Abort(MPI_COMM_WORLD, 5, ierr)
        if (mod(i, 2) == 0 .and. any(in(:, i) /= -1)) call MPI_Abort(MPI_COMM_WORLD, 6, ierr)
    end do
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (total /= n * (n - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 7, ierr)
    if (rank == 0) print '(a,i0)', 'sum ', total
    call MPI_Finalize(ierr)
end program ring
