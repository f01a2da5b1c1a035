/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers of the measuring programs.
 *
 * Pinning counts within the CPUs that the process was started on, so that a run under taskset or in a container works.
 * The number of bandwidth rounds moves about the same number of bytes at each size, with bounds: enough rounds that the
 * clock does not matter, few enough that the largest size does not take all the time.
 */
#include "tests/bench/common.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BYTES_PER_OPERATION 8192u /* 20 000 operations: 160 MiB at each size */
#define ROUNDS_MIN          4

struct bench_options bench_options(int argc, char **argv)
{
    struct bench_options options = { .n = 20000 };
    int option;

    while ((option = getopt(argc, argv, "pn:")) != -1) {
        if (option == 'p') {
            options.is_pinned = true;
        } else if (option == 'n' && atol(optarg) > 0) {
            options.n = atol(optarg);
        } else {
            fprintf(stderr, "usage: %s [-p] [-n OPERATIONS]\n", argv[0]);
            exit(2);
        }
    }
    return options;
}

double bench_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

void bench_pin(int slot)
{
    cpu_set_t allowed, one;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    slot %= CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || slot-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

long bench_rounds(const struct bench_options *options, size_t len_bytes)
{
    long rounds = (long)((size_t)options->n * BYTES_PER_OPERATION / len_bytes);

    if (rounds > options->n)
        return options->n;
    return rounds < ROUNDS_MIN ? ROUNDS_MIN : rounds;
}

void bench_print(const char *name, double value, const char *unit)
{
    printf("%s %.5f %s\n", name, value, unit);
    fflush(stdout); /* a child made by fork() must not print it once more */
}

void bench_print_sized(const char *name, size_t len_bytes, double value, const char *unit)
{
    printf("%s/%zu %.5f %s\n", name, len_bytes, value, unit);
    fflush(stdout);
}

void *bench_shared(size_t len_bytes)
{
    void *memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}
