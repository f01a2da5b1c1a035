/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one more costs when there are many: registrations, and datagrams that nobody answers.
 *
 *   gni_growth_rank REGISTRATIONS DATAGRAMS      of each rank
 *
 *   register_one_first, register_one_last   a registration of one page, among the first and the last hundredth
 *   deregister_one                          likewise, all of them
 *   datagram_one_first, datagram_one_last   a datagram posted, likewise
 *
 * Rank 0 prints its times; the other ranks do the same at the same time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common.h"
#include "tests/bench/common.h"

#define PAGE   4096u
#define PARTS  100
#define NOBODY 0x7ffffff0u /* an instance that no process has */

/* Times of the first and the last part of n steps, and of all. */
struct times {
    double start_us;
    double first_us;
    double last_us;
    double all_us;
};

static long part_of(long n)
{
    return n / PARTS > 0 ? n / PARTS : 1;
}

/* Before step i; i == n ends it. */
static void note(struct times *t, long i, long n)
{
    double now_us = bench_now_us();

    if (i == 0)
        t->start_us = now_us;
    if (i == part_of(n))
        t->first_us = (now_us - t->start_us) / (double)part_of(n);
    if (i == n - part_of(n))
        t->last_us = now_us;
    if (i == n) {
        t->last_us = (now_us - t->last_us) / (double)part_of(n);
        t->all_us = (now_us - t->start_us) / (double)n;
    }
}

static void print(const struct ex_job *job, const char *name, double time_us)
{
    if (job->rank == 0)
        bench_print(name, time_us, "us");
}

static void measure_registrations(struct ex_job *job, long n)
{
    gni_mem_handle_t *handles = ex_alloc((size_t)n * sizeof(*handles));
    char *pages = ex_alloc((size_t)n * PAGE);
    struct times there = { 0 };
    struct times back = { 0 };

    memset(pages, 1, (size_t)n * PAGE);
    ex_barrier();
    for (long i = 0; i < n; i++) {
        note(&there, i, n);
        EX_GNI(GNI_MemRegister(job->nic, (uint64_t)(uintptr_t)(pages + i * PAGE), PAGE, NULL, GNI_MEM_READWRITE,
                               (uint32_t)-1, &handles[i]));
    }
    note(&there, n, n);
    ex_barrier();
    for (long i = 0; i < n; i++) {
        note(&back, i, n);
        EX_GNI(GNI_MemDeregister(job->nic, &handles[i]));
    }
    note(&back, n, n);
    print(job, "register_one_first", there.first_us);
    print(job, "register_one_last", there.last_us);
    print(job, "deregister_one", back.all_us);
    free(pages);
    free(handles);
}

static void measure_datagrams(struct ex_job *job, long n)
{
    const struct ex_peer *peer = &job->peers[(job->rank + 1) % job->n_ranks];
    gni_ep_handle_t *eps = ex_alloc((size_t)n * sizeof(gni_ep_handle_t));
    struct times times = { 0 };

    for (long i = 0; i < n; i++) {
        EX_GNI(GNI_EpCreate(job->nic, NULL, &eps[i]));
        EX_GNI(GNI_EpBind(eps[i], peer->nic_addr, NOBODY - (uint32_t)i));
    }
    ex_barrier();
    for (long i = 0; i < n; i++) {
        note(&times, i, n);
        EX_GNI(GNI_EpPostDataWId(eps[i], NULL, 0, NULL, 0, (uint64_t)i));
    }
    note(&times, n, n);
    print(job, "datagram_one_first", times.first_us);
    print(job, "datagram_one_last", times.last_us);
    for (long i = 0; i < n; i++) {
        EX_GNI(GNI_EpPostDataCancelById(eps[i], (uint64_t)i));
        EX_GNI(GNI_EpDestroy(eps[i]));
    }
    free(eps);
}

int main(int argc, char **argv)
{
    struct ex_job job;
    long n_registrations = argc == 3 ? atol(argv[1]) : 0;
    long n_datagrams = argc == 3 ? atol(argv[2]) : 0;

    if (n_registrations < 1 || n_datagrams < 1) {
        fputs("usage: gni_growth_rank REGISTRATIONS DATAGRAMS\n", stderr);
        return 2;
    }
    ex_start(&job, 0);
    measure_registrations(&job, n_registrations);
    ex_barrier();
    measure_datagrams(&job, n_datagrams);
    ex_stop(&job);
    return 0;
}
