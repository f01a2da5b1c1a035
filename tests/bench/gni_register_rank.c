/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What registration costs, per MiB: GNI_MemRegister() and GNI_MemDeregister() of private anonymous memory that the
 * program has written to.
 *
 *   register_first/SIZE   fresh memory, at an address where other memory was registered before
 *   register_again/SIZE   the same memory once more
 *   register_first64, register_again64, touch64   the same of 64 KiB, per call, and the first touch of as much fresh
 *                         shared memory: the page faults that adopting cannot do without
 *   register_first64_median, register_again64_median, touch64_median   likewise, medians of many: what is left once
 *                         the process has mapped, asked and touched all that it needs once. The means of --quick
 *                         have 8 calls
 *
 * One rank. Fresh memory comes from mmap(), because malloc() may return what was registered before.
 */
#include "examples/common.h"
#include "tests/bench/common.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_MIN (64u << 10)
#define REGION_MAX (16u << 20)
#define ROUNDS     200
#define AGAIN      20

static double registration_us(struct ex_job *job, void *memory, size_t len_bytes)
{
    double start_us = bench_now_us();
    gni_mem_handle_t hndl;

    EX_GNI(GNI_MemRegister(job->nic, (uint64_t)(uintptr_t)memory, len_bytes, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                           &hndl));
    EX_GNI(GNI_MemDeregister(job->nic, &hndl));
    return bench_now_us() - start_us;
}

static double touch_us(void)
{
    volatile char *memory = mmap(NULL, REGION_MIN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double start_us = bench_now_us();
    double time_us;

    EX_EXPECT(memory != MAP_FAILED, "no memory for %u bytes", REGION_MIN);
    for (size_t at = 0; at < REGION_MIN; at += 4096)
        memory[at] = 1;
    time_us = bench_now_us() - start_us;
    munmap((void *)(uintptr_t)memory, REGION_MIN);
    return time_us;
}

/* Mean. */
static double touches_us(long rounds)
{
    double sum_us = 0;

    for (long i = 0; i < rounds; i++)
        sum_us += touch_us();
    return sum_us / (double)rounds;
}

static void *fresh_memory(size_t len_bytes)
{
    void *memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EX_EXPECT(memory != MAP_FAILED, "no memory for %zu bytes", len_bytes);
    memset(memory, 1, len_bytes);
    return memory;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_median(const char *name, double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof(values[0]), compare);
    bench_print(name, values[ROUNDS / 2], "us");
}

static void measure_medians(struct ex_job *job)
{
    static double first_us[ROUNDS];
    static double again_us[ROUNDS];
    static double touched_us[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        void *memory = fresh_memory(REGION_MIN);

        first_us[i] = registration_us(job, memory, REGION_MIN);
        for (int k = 0; k < AGAIN; k++)
            again_us[i] += registration_us(job, memory, REGION_MIN) / AGAIN;
        munmap(memory, REGION_MIN);
        touched_us[i] = touch_us();
    }
    print_median("register_first64_median", first_us);
    print_median("register_again64_median", again_us);
    print_median("touch64_median", touched_us);
}

static void measure(struct ex_job *job, const struct bench_options *options, size_t len_bytes)
{
    long rounds = bench_rounds(options, 64 * len_bytes);
    double n_mib = (double)rounds * (double)len_bytes / (1 << 20);
    double first_us = 0;
    double again_us = 0;

    for (long i = 0; i < rounds; i++) {
        void *memory = fresh_memory(len_bytes);

        first_us += registration_us(job, memory, len_bytes);
        again_us += registration_us(job, memory, len_bytes);
        munmap(memory, len_bytes);
    }
    bench_print_sized("register_first", len_bytes, first_us / n_mib, "us/MiB");
    bench_print_sized("register_again", len_bytes, again_us / n_mib, "us/MiB");
    if (len_bytes == REGION_MIN) {
        bench_print("register_first64", first_us / (double)rounds, "us");
        bench_print("register_again64", again_us / (double)rounds, "us");
        bench_print("touch64", touches_us(rounds), "us");
    }
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    struct ex_job job;

    ex_start(&job, 0);
    if (options.is_pinned)
        bench_pin(job.rank);
    for (size_t len = REGION_MIN; len <= REGION_MAX; len *= 16)
        measure(&job, &options, len);
    measure_medians(&job);
    ex_stop(&job);
    return 0;
}
