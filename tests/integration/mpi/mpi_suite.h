/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of mpi_suite, which are in a file for each subject. */
#ifndef TESTS_INTEGRATION_MPI_MPI_SUITE_H
#define TESTS_INTEGRATION_MPI_MPI_SUITE_H

#include "tests/integration/mpi/cases.h"

/* suite_pairs.c */
void case_lengths(void);
void case_modes(void);
void case_restarts(void);
void case_synchronous(void);
void case_self(void);

/* suite_matching.c */
void case_any(void);
void case_order(void);
void case_mixed(void);
void case_probes(void);
void case_cancel(void);
void case_truncation(void);

/* suite_many.c */
void case_expected(void);
void case_flood(void);
void case_storm(void);
void case_many(void);
void case_receives(void);
void case_threads(void);

/* suite_communicators.c */
void case_communicators(void);
void case_intercommunicators(void);
void case_graph(void);

/* suite_datatypes.c */
void case_datatypes(void);

/* suite_collectives.c */
void case_collectives(void);
void case_small(void);

#endif
