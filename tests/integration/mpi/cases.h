/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of MPI that consist of cases: PROGRAM [CASE]... Without a name all run but the last ones of the table. Every
 * byte that arrives is compared with what its sender, tag and place say it has to be. Rank 0 prints one line per case;
 * a fault ends the job with a line that names it. Only a case with "threads" in its name, named first, asks for
 * MPI_THREAD_MULTIPLE (Open MPI's osc/pt2pt refuses windows with it).
 */
#ifndef TESTS_INTEGRATION_MPI_CASES_H
#define TESTS_INTEGRATION_MPI_CASES_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int rank, size;
extern const char *name, *program; /* of the case that runs, of the command */

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail(__FILE__, __LINE__, #condition);                                                                      \
    } while (0)

/* Ends the job. */
void fail(const char *file, int line, const char *what);

static inline unsigned char byte_of(int sender, int tag, size_t at)
{
    return (unsigned char)(sender * 131 + tag * 31 + (int)(at * 7) + (int)(at >> 8) * 13);
}

static inline void fill(unsigned char *data, size_t n, int sender, int tag)
{
    for (size_t i = 0; i < n; i++)
        data[i] = byte_of(sender, tag, i);
}

static inline void check(const unsigned char *data, size_t n, int sender, int tag)
{
    for (size_t i = 0; i < n; i++)
        EXPECT(data[i] == byte_of(sender, tag, i));
}

static inline unsigned char *bytes(size_t n)
{
    unsigned char *data = malloc(n + 1);

    EXPECT(data);
    memset(data, 0xee, n + 1);
    return data;
}

struct mpi_case {
    const char *name;
    void (*run)(void);
};

/* The last n_extra of them only when they are named. Exit status. */
int run_cases(int argc, char **argv, const struct mpi_case *cases, size_t n_cases, size_t n_extra);

#endif
