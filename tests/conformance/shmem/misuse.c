/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One misuse, or one way to block; test_misuse.py starts this and reads what comes.
 *
 *   misuse CASE
 *
 * Cases of misuse: PE 0 does it, and nobody may come past it. In one of them the network fails instead. Cases of death:
 * PE 1 kills itself while the others block or operate on it, and says when (CLOCK_MONOTONIC).
 */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 4 /* calls of a group before it has collective engines, where there are any */

static long word;
static long never;
static long lock;
static uint64_t signal_word;
static long psync[SHMEM_SYNC_SIZE];
static long in[200];
static long out[2000];
static long *block; /* symmetric */
static shmem_team_t team;

/* ---- misuse ---- */

static void bad_pe(void)
{
    shmem_long_p(&word, 1, shmem_n_pes());
}

static void negative_pe(void)
{
    (void)shmem_long_g(&word, -1);
}

static void local_address(void)
{
    long local = 0;

    shmem_long_put(&local, &local, 1, 1);
}

static void past_the_end(void)
{
    shmem_putmem(&word, &word, (size_t)1 << 40, 1);
}

static void misaligned_atomic(void)
{
    shmem_long_atomic_inc((long *)(void *)((char *)out + 1), 1);
}

static void bad_signal(void)
{
    shmem_long_put_signal(&word, &word, 1, &signal_word, 1, 77, 1);
}

static void bad_stride(void)
{
    shmem_long_iput(out, in, 0, 1, 2, 1);
}

static void bad_comparison(void)
{
    shmem_long_wait_until(&word, 99, 1);
}

static void invalid_context(void)
{
    shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 1);
}

static void invalid_team(void)
{
    shmem_long_sum_reduce(SHMEM_TEAM_INVALID, out, in, 1);
}

static void bad_root(void)
{
    shmem_long_broadcast(SHMEM_TEAM_WORLD, out, in, 1, -3);
}

static void bad_set(void)
{
    shmem_barrier(0, 0, shmem_n_pes() + 1, psync);
}

static void predefined_team(void)
{
    shmem_team_destroy(SHMEM_TEAM_WORLD);
}

static void too_many_elements(void)
{
    shmem_long_put(&word, &word, (size_t)-1, 1);
}

/* These need SMA_DEBUG. */
static void free_lock(void)
{
    shmem_clear_lock(&lock);
}

static void local_ivar(void)
{
    long local = 1;

    shmem_long_wait_until(&local, SHMEM_CMP_EQ, 1);
}

static void local_buffer(void)
{
    long local = 1;

    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &local, in, 1);
}

/* ---- death ---- */

static void wait_word(void)
{
    shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
}

static void wait_some(void)
{
    size_t index;

    shmem_long_wait_until_some(&never, 1, &index, NULL, SHMEM_CMP_NE, 0);
}

static void wait_signal(void)
{
    shmem_signal_wait_until(&signal_word, SHMEM_CMP_NE, 0);
}

static void wait_lock(void)
{
    shmem_set_lock(&lock);
}

static void wait_all(void)
{
    shmem_long_wait_until_all(&never, 1, NULL, SHMEM_CMP_NE, 0);
}

static void wait_any(void)
{
    (void)shmem_long_wait_until_any(&never, 1, NULL, SHMEM_CMP_NE, 0);
}

static void wait_all_vector(void)
{
    long zero = 0;

    shmem_long_wait_until_all_vector(&never, 1, NULL, SHMEM_CMP_NE, &zero);
}

static void wait_any_vector(void)
{
    long zero = 0;

    (void)shmem_long_wait_until_any_vector(&never, 1, NULL, SHMEM_CMP_NE, &zero);
}

static void wait_some_vector(void)
{
    long zero = 0;
    size_t index;

    (void)shmem_long_wait_until_some_vector(&never, 1, &index, NULL, SHMEM_CMP_NE, &zero);
}

static void wait_barrier_set(void)
{
    shmem_barrier(0, 0, shmem_n_pes(), psync);
}

static void wait_sync_set(void)
{
    shmem_sync(0, 0, shmem_n_pes(), psync);
}

static void wait_team_sync(void)
{
    shmem_team_sync(team);
}

static void wait_broadcast(void)
{
    shmem_long_broadcast(SHMEM_TEAM_WORLD, out, in, 100, 1);
}

static void wait_broadcast_set(void)
{
    shmem_broadcast64(out, in, 100, 1, 0, 0, shmem_n_pes(), psync);
}

static void wait_reduce(void)
{
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, out, in, 100);
}

static void wait_sum(void)
{
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, out, in, 1);
}

static void wait_sum_set(void)
{
    shmem_long_sum_to_all(out, in, 1, 0, 0, shmem_n_pes(), NULL, psync);
}

static void wait_collect(void)
{
    shmem_long_collect(SHMEM_TEAM_WORLD, out, in, 10);
}

static void wait_fcollect(void)
{
    shmem_long_fcollect(SHMEM_TEAM_WORLD, out, in, 10);
}

static void wait_alltoall(void)
{
    shmem_long_alltoall(SHMEM_TEAM_WORLD, out, in, 10);
}

static void wait_alltoalls(void)
{
    shmem_long_alltoalls(SHMEM_TEAM_WORLD, out, in, 2, 2, 10);
}

static void wait_malloc(void)
{
    (void)!shmem_malloc(100);
}

static void wait_calloc(void)
{
    (void)!shmem_calloc(100, 1);
}

static void wait_align(void)
{
    (void)!shmem_align(4096, 100);
}

static void wait_realloc(void)
{
    (void)!shmem_realloc(block, 1000);
}

static void wait_free(void)
{
    shmem_free(block);
}

static void wait_split(void)
{
    shmem_team_t made;

    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &made);
}

static void wait_split_2d(void)
{
    shmem_team_t x;
    shmem_team_t y;

    shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &x, NULL, 0, &y);
}

/* Operations on the PE that dies. */
static void puts_to_it(void)
{
    for (;;)
        shmem_long_put(block, in, 1, 1);
}

static void gets_from_it(void)
{
    for (;;)
        shmem_long_get(out, block, 1, 1);
}

static void atomics_at_it(void)
{
    for (;;)
        (void)shmem_long_atomic_fetch_inc(block, 1);
}

static void signals_to_it(void)
{
    for (;;)
        shmem_long_put_signal(block, in, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, 1);
}

static void quiets_after_puts_to_it(void)
{
    for (;;) {
        shmem_long_put_nbi(block, in, 1, 1);
        shmem_quiet();
    }
}

static void global_exit(void)
{
    shmem_global_exit(7);
}

static void global_exit_0(void)
{
    shmem_global_exit(0);
}

struct misuse {
    const char *name;
    void (*call)(void);
    int has_death;
};

static const struct misuse cases[] = {
    { "bad_pe", bad_pe, 0 },
    { "negative_pe", negative_pe, 0 },
    { "local_address", local_address, 0 },
    { "past_the_end", past_the_end, 0 },
    { "misaligned_atomic", misaligned_atomic, 0 },
    { "bad_signal", bad_signal, 0 },
    { "bad_stride", bad_stride, 0 },
    { "bad_comparison", bad_comparison, 0 },
    { "invalid_context", invalid_context, 0 },
    { "invalid_team", invalid_team, 0 },
    { "bad_root", bad_root, 0 },
    { "bad_set", bad_set, 0 },
    { "predefined_team", predefined_team, 0 },
    { "too_many_elements", too_many_elements, 0 },
    { "free_lock", free_lock, 0 },
    { "local_ivar", local_ivar, 0 },
    { "local_buffer", local_buffer, 0 },
    { "global_exit", global_exit, 0 },
    { "global_exit_0", global_exit_0, 0 },
    { "operates_on_the_lost", quiets_after_puts_to_it, 0 },
    { "wait_word", wait_word, 1 },
    { "wait_some", wait_some, 1 },
    { "wait_all", wait_all, 1 },
    { "wait_any", wait_any, 1 },
    { "wait_all_vector", wait_all_vector, 1 },
    { "wait_any_vector", wait_any_vector, 1 },
    { "wait_some_vector", wait_some_vector, 1 },
    { "wait_signal", wait_signal, 1 },
    { "wait_lock", wait_lock, 1 },
    { "wait_barrier", shmem_barrier_all, 1 },
    { "wait_barrier_set", wait_barrier_set, 1 },
    { "wait_sync", shmem_sync_all, 1 },
    { "wait_sync_set", wait_sync_set, 1 },
    { "wait_team_sync", wait_team_sync, 1 },
    { "wait_broadcast", wait_broadcast, 1 },
    { "wait_broadcast_set", wait_broadcast_set, 1 },
    { "wait_sum", wait_sum, 1 },
    { "wait_sum_set", wait_sum_set, 1 },
    { "wait_reduce", wait_reduce, 1 },
    { "wait_collect", wait_collect, 1 },
    { "wait_fcollect", wait_fcollect, 1 },
    { "wait_alltoall", wait_alltoall, 1 },
    { "wait_alltoalls", wait_alltoalls, 1 },
    { "wait_malloc", wait_malloc, 1 },
    { "wait_calloc", wait_calloc, 1 },
    { "wait_align", wait_align, 1 },
    { "wait_realloc", wait_realloc, 1 },
    { "wait_free", wait_free, 1 },
    { "wait_split", wait_split, 1 },
    { "wait_split_2d", wait_split_2d, 1 },
    { "wait_finalize", shmem_finalize, 1 },
    { "puts_to_it", puts_to_it, 1 },
    { "gets_from_it", gets_from_it, 1 },
    { "atomics_at_it", atomics_at_it, 1 },
    { "signals_to_it", signals_to_it, 1 },
    { "quiets_after_puts_to_it", quiets_after_puts_to_it, 1 },
};

/* When the others block, or are about to. */
static void die(void)
{
    struct timespec now;

    shmem_set_lock(&lock);
    shmem_barrier_all();
    clock_gettime(CLOCK_MONOTONIC, &now);
    fprintf(stderr, "dies at %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    const struct misuse *c = NULL;

    for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, argv[1]) == 0)
            c = &cases[i];
    }
    if (!c)
        return 2;
    shmem_init();
    block = shmem_malloc(sizeof(*block));
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    for (int i = 0; i < WARM_UP; i++)
        shmem_barrier_all();
    if (c->has_death && shmem_my_pe() == 1)
        die();
    shmem_barrier_all();
    if (c->has_death || shmem_my_pe() == 0) {
        c->call();
        printf("came past it\n");
    } else {
        shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
    }
    return 0;
}
