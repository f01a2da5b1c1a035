/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What registration costs, per MiB: GNI_MemRegister() and GNI_MemDeregister() of private anonymous memory that the
 * program has written to.
 *
 *   register_first/SIZE   fresh memory, at an address where other memory was registered before
 *   register_again/SIZE   the same memory once more
 *   register_first64, register_again64, touch64   the same of 64 KiB, per call, and the first touch of as much fresh
 *                         shared memory: the page faults that adopting cannot do without
 *
 * One rank. Fresh memory comes from mmap(), because malloc() may return what was registered before.
 */
#include "examples/common.h"
#include "tests/bench/common.h"

#include <string.h>
#include <sys/mman.h>

#define REGION_MIN (64u << 10)
#define REGION_MAX (16u << 20)

static double registration_us(struct ex_job *job, void *memory, size_t len_bytes)
{
    double start_us = bench_now_us();
    gni_mem_handle_t hndl;

    EX_GNI(GNI_MemRegister(job->nic, (uint64_t)(uintptr_t)memory, len_bytes, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                           &hndl));
    EX_GNI(GNI_MemDeregister(job->nic, &hndl));
    return bench_now_us() - start_us;
}

static double touch_us(long rounds)
{
    double sum_us = 0;

    for (long i = 0; i < rounds; i++) {
        volatile char *memory = mmap(NULL, REGION_MIN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        double start_us = bench_now_us();

        EX_EXPECT(memory != MAP_FAILED, "no memory for %u bytes", REGION_MIN);
        for (size_t at = 0; at < REGION_MIN; at += 4096)
            memory[at] = 1;
        sum_us += bench_now_us() - start_us;
        munmap((void *)(uintptr_t)memory, REGION_MIN);
    }
    return sum_us / (double)rounds;
}

static void measure(struct ex_job *job, const struct bench_options *options, size_t len_bytes)
{
    long rounds = bench_rounds(options, 64 * len_bytes);
    double n_mib = (double)rounds * (double)len_bytes / (1 << 20);
    double first_us = 0;
    double again_us = 0;

    for (long i = 0; i < rounds; i++) {
        void *memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        EX_EXPECT(memory != MAP_FAILED, "no memory for %zu bytes", len_bytes);
        memset(memory, 1, len_bytes);
        first_us += registration_us(job, memory, len_bytes);
        again_us += registration_us(job, memory, len_bytes);
        munmap(memory, len_bytes);
    }
    bench_print_sized("register_first", len_bytes, first_us / n_mib, "us/MiB");
    bench_print_sized("register_again", len_bytes, again_us / n_mib, "us/MiB");
    if (len_bytes == REGION_MIN) {
        bench_print("register_first64", first_us / (double)rounds, "us");
        bench_print("register_again64", again_us / (double)rounds, "us");
        bench_print("touch64", touch_us(rounds), "us");
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
    ex_stop(&job);
    return 0;
}
