/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an MPI library promises of messages and collective calls, over whatever it sends with. The cases are in
 * suite_*.c, a file for each subject.
 */
#include "tests/integration/mpi/mpi_suite.h"

/* One more of this program. */
static void spawn(void)
{
    MPI_Comm inter;

    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
}

static const struct mpi_case cases[] = {
    { "modes", case_modes },
    { "restarts", case_restarts },
    { "synchronous", case_synchronous },
    { "lengths", case_lengths },
    { "self", case_self },
    { "any", case_any },
    { "order", case_order },
    { "mixed", case_mixed },
    { "probes", case_probes },
    { "cancel", case_cancel },
    { "truncation", case_truncation },
    { "expected", case_expected },
    { "flood", case_flood },
    { "storm", case_storm },
    { "many", case_many },
    { "communicators", case_communicators },
    { "intercommunicators", case_intercommunicators },
    { "graph", case_graph },
    { "datatypes", case_datatypes },
    { "collectives", case_collectives },
    { "small", case_small },
    { "receives", case_receives },
    { "threads", case_threads },
    { "spawn", spawn },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), 3); /* receives, threads, spawn */
}
