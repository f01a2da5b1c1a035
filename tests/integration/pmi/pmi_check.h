/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a rank of pmi_check, what it should see, and its checks: each prints the line and what was wrong, and
 * the program goes on.
 */
#ifndef TESTS_INTEGRATION_PMI_PMI_CHECK_H
#define TESTS_INTEGRATION_PMI_PMI_CHECK_H

#include <pmi.h>
#include <string.h>

enum { MAX_RANKS = 256 };

extern int rank, size;
extern int expected_nids[MAX_RANKS];
extern char job[64];

/* Counts a failure and prints it, unless is_true. */
void check(int is_true, const char *file, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));

#define CHECK(cond) check((cond), __FILE__, __LINE__, "%s", #cond)
#define CHECK_INT(actual, expected)                                                                                    \
    do {                                                                                                               \
        long a_ = (long)(actual), e_ = (long)(expected);                                                               \
        check(a_ == e_, __FILE__, __LINE__, "%s is %ld, not %ld", #actual, a_, e_);                                    \
    } while (0)
#define CHECK_TEXT(actual, expected)                                                                                   \
    check(strcmp((actual), (expected)) == 0, __FILE__, __LINE__, "%s is '%s', not '%s'", #actual, (actual), (expected))
#define CHECK_OK(call) CHECK_INT(call, PMI_SUCCESS)

/* Each rank calls these together with all others, after PMI_Init(). */
void check_collectives(void);
void check_allgatherv_refuses_a_false_length(void);
void check_barriers(void);
void check_kvs_pmi2(void);
void check_kvs_pmi1(void);
void check_many_pairs(void);
void check_node_attributes(void);
void check_names(void);

/* Ranks in gather order, as clients of the real library find it out. */
void learn_order(int *order);

#endif
