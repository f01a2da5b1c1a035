/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of MPI that consist of cases: which of them run, and what is said of a fault. */
#include "tests/integration/mpi/cases.h"

int rank, size;
const char *name = "start", *program;

void fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s: %s: rank %d: %s:%d: not so: %s\n", program, name, rank, file, line, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int run_cases(int argc, char **argv, const struct mpi_case *cases, size_t n_cases, size_t n_extra)
{
    int has_threads = argc > 1 && strstr(argv[1], "threads");
    int wanted = has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int provided;

    program = argv[0];
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(provided >= wanted);
    for (size_t i = 0; i < n_cases; i++) {
        int is_wanted = argc == 1 && i + n_extra < n_cases;

        for (int a = 1; a < argc; a++)
            is_wanted |= strcmp(argv[a], cases[i].name) == 0;
        if (!is_wanted)
            continue;
        name = cases[i].name;
        cases[i].run();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            printf("ok %s\n", name);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
