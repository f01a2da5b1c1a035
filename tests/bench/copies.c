/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the machine needs to copy, for comparison.
 *
 *   memcpy/SIZE              one memcpy between two shared mappings, again and again the same bytes
 *   process_vm_writev/SIZE   one call that writes SIZE bytes to another process; size 8 as a time
 *
 * The other process sleeps. With -p the copying one is pinned.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/common.h"

static double gb_per_s(size_t len_bytes, double time_us)
{
    return (double)len_bytes / time_us * 1e-3;
}

static void measure_memcpy(const struct bench_options *options, char *to, const char *from)
{
    for (size_t len = BENCH_SIZE_MIN; len <= BENCH_SIZE_MAX; len *= BENCH_SIZE_STEP) {
        long rounds = bench_rounds(options, len);
        double start_us = 0;

        for (long i = -rounds / 10 - 1; i < rounds; i++) {
            if (i == 0)
                start_us = bench_now_us();
            memcpy(to, from, len);
            /* Otherwise the compiler may do one copy for all. */
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        bench_print_sized("memcpy", len, gb_per_s(len, (bench_now_us() - start_us) / (double)rounds), "GB/s");
    }
}

/* Time of one call; the calls before the clock starts touch the pages of both sides. */
static double writev_us(pid_t pid, void *to, void *from, size_t len_bytes, long rounds)
{
    struct iovec local = { from, len_bytes };
    struct iovec remote = { to, len_bytes };
    double start_us = 0;

    for (long i = -rounds / 10 - 1; i < rounds; i++) {
        if (i == 0)
            start_us = bench_now_us();
        if (process_vm_writev(pid, &local, 1, &remote, 1, 0) != (ssize_t)len_bytes) {
            perror("process_vm_writev");
            exit(1);
        }
    }
    return (bench_now_us() - start_us) / (double)rounds;
}

static char *private_memory(void)
{
    char *memory = mmap(NULL, BENCH_SIZE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        exit(1);
    return memset(memory, 1, BENCH_SIZE_MAX);
}

static void measure_writev(const struct bench_options *options)
{
    char *from = private_memory();
    char *to = private_memory();
    pid_t pid = fork();

    if (pid < 0)
        exit(1);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    bench_print_sized("process_vm_writev", 8, writev_us(pid, to, from, 8, options->n), "us");
    for (size_t len = BENCH_SIZE_MIN; len <= BENCH_SIZE_MAX; len *= BENCH_SIZE_STEP)
        bench_print_sized("process_vm_writev", len,
                          gb_per_s(len, writev_us(pid, to, from, len, bench_rounds(options, len))), "GB/s");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    char *from = memset(bench_shared(BENCH_SIZE_MAX), 1, BENCH_SIZE_MAX);

    if (options.is_pinned)
        bench_pin(0);
    measure_memcpy(&options, bench_shared(BENCH_SIZE_MAX), from);
    measure_writev(&options);
    return 0;
}
