/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all measuring programs share: the clock, the place they run at, sizes and the form of a result. A program prints
 * one line `name value unit` per figure and nothing else on stdout; bench.py reads these lines.
 *
 * A measurement is timed as a whole and divided by its operations; nothing is timed per operation.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>

#define BENCH_SIZE_MIN  4096u
#define BENCH_SIZE_MAX  (16u << 20)
#define BENCH_SIZE_STEP 4u

struct bench_options {
    long n;         /* operations of a latency measurement; the others follow from it */
    bool is_pinned; /* each process on a CPU of its own */
};

/* PROGRAM [-p] [-n N]; ends the program with status 2 on anything else. */
struct bench_options bench_options(int argc, char **argv);

double bench_now_us(void);

/* Run on the slot-th of the CPUs that this process may use, counted from 0, round and round. */
void bench_pin(int slot);

/* Transfers of one size in a bandwidth measurement. */
long bench_rounds(const struct bench_options *options, size_t len_bytes);

void bench_print(const char *name, double value, const char *unit);
/* The figure `name/len_bytes`. */
void bench_print_sized(const char *name, size_t len_bytes, double value, const char *unit);

/* Zeroed memory that children made by fork() share; ends the program when there is none. */
void *bench_shared(size_t len_bytes);

#endif
