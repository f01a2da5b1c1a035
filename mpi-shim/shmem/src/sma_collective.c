/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives but reductions.
 *
 * Synchronisation is dissemination: one round for up to as many PEs as the radix, in which each tells each. A large
 * radix is many stores, which are cheap here, and as few waits as can be: a PE that shares its processor is scheduled
 * once. In virtual time each message costs its PE time, so the radix is small there.
 *
 * Data go from the source's PE straight into each destination, which OpenSHMEM says is ready when the call begins. PEs
 * begin with their neighbour, so that not all of them write to one. A broadcast to many goes down a binomial tree.
 */
#include <stdlib.h>

#include "emunic/client/message_cost.h"
#include "mpi-shim/shmem/src/sma_calls.h"

#define RADIX             32
#define RADIX_OF_MESSAGES 4
#define FLAT_OF_MESSAGES  2

void smai_choose_algorithms(void)
{
    bool costs_time = gnii_message_costs();

    smai.radix = costs_time ? RADIX_OF_MESSAGES : RADIX;
    smai.flat_max = costs_time ? FLAT_OF_MESSAGES : SMAI_FLAT_MAX;
}

void smai_sync_by_messages(const struct smai_group *g)
{
    for (int64_t step = 1; step < g->n; step *= smai.radix) {
        for (int64_t j = step; j < g->n && j < step * smai.radix; j += step)
            smai_tell(g, (int)(g->me + j < g->n ? g->me + j : g->me + j - g->n));
        smai_order("collective");
        smai_await_behind(g, &(struct smai_behind){ step, g->n < step * smai.radix ? g->n : step * smai.radix, step });
    }
}

void smai_sync(const struct smai_group *g)
{
    if (SMAI_UNLIKELY(g->engines) && smai_engines_sync(g))
        return;
    smai_sync_by_messages(g);
}

void smai_share_words(const struct smai_group *g, uint64_t word, uint64_t *words_out)
{
    words_out[g->me] = word;
    for (int j = 1; j < g->n; j++)
        smai_send(g, (g->me + j) % g->n, &word, sizeof(word));
    smai_order("collective");
    smai_await_messages(g, &(struct smai_behind){ 1, g->n, 1 });
    for (int j = 1; j < g->n; j++) {
        int from = (g->me - j + g->n) % g->n;

        smai_receive(g, from, &words_out[from], sizeof(word));
    }
}

/* Bytes into the buffer of a member; complete after smai_order(). */
static void put_to(const struct smai_group *g, int rank, void *at, const void *from, uint64_t len_bytes)
{
    if (rank == g->me)
        memmove(at, from, len_bytes);
    else
        smai_put((struct smai_remote){ SHMEM_CTX_DEFAULT, at, g->pes[rank], "collective" }, from, len_bytes, 1, true);
}

/* What was put is there before anybody is told; all have told all. */
static void meet(const struct smai_group *g)
{
    smai_order("collective");
    for (int j = 1; j < g->n; j++)
        smai_tell(g, (g->me + j) % g->n);
    smai_order("collective");
    smai_await_behind(g, &(struct smai_behind){ 1, g->n, 1 });
}

/* ---- broadcast ---- */

static void serve(const struct smai_group *g, const struct smai_blocks *b, const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        smai_put_and_tell(g, ranks[i], b->dest, b->source, b->nelems * b->elem_bytes);
    smai_order("collective");
}

/* Children in the binomial tree around the root, the farthest first. */
static int children(const struct smai_group *g, int root, int *ranks_out)
{
    int place = (g->me - root + g->n) % g->n;
    int top = 1;
    int n = 0;

    while (top < g->n && (place & top) == 0)
        top <<= 1;
    for (top >>= 1; top > 0; top >>= 1) {
        if (place + top < g->n)
            ranks_out[n++] = (place + top + root) % g->n;
    }
    return n;
}

static int parent(const struct smai_group *g, int root)
{
    int place = (g->me - root + g->n) % g->n;

    return ((place & (place - 1)) + root) % g->n;
}

void smai_broadcast(const struct smai_group *g, const struct smai_blocks *b, int root, bool to_root)
{
    struct smai_blocks mine = *b;
    int ranks[32 > SMAI_FLAT_MAX ? 32 : SMAI_FLAT_MAX]; /* children of a tree, or all others */
    bool is_flat = g->n <= smai.flat_max;
    int n = 0;

    if (root < 0 || root >= g->n)
        smai_fail(b->call, "PE_root %d: there is none", root);
    smai_check_blocks(b, b->nelems, b->nelems);
    if (g->me == root && to_root && b->dest != b->source)
        memmove(b->dest, b->source, b->nelems * b->elem_bytes);
    if (g->me != root) {
        smai_await(g, is_flat ? root : parent(g, root));
        mine.source = b->dest;
        if (is_flat)
            return;
    }
    for (int j = 1; is_flat && j < g->n; j++)
        ranks[n++] = (root + j) % g->n;
    serve(g, &mine, ranks, is_flat ? n : children(g, root, ranks));
}

/* ---- everybody to everybody ---- */

void smai_fcollect(const struct smai_group *g, const struct smai_blocks *b)
{
    uint64_t len_bytes = b->nelems * b->elem_bytes;
    uint8_t *at = (uint8_t *)b->dest + (uint64_t)g->me * len_bytes;

    smai_check_blocks(b, b->nelems * (size_t)g->n, b->nelems);
    for (int j = 0; j < g->n; j++)
        put_to(g, (g->me + j) % g->n, at, b->source, len_bytes);
    meet(g);
}

void smai_collect(const struct smai_group *g, const struct smai_blocks *b)
{
    uint64_t *counts = calloc((size_t)g->n, sizeof(*counts));
    uint64_t before = 0;
    uint64_t all = 0;

    if (!counts)
        smai_fail(b->call, "out of memory");
    smai_share_words(g, b->nelems, counts);
    for (int i = 0; i < g->n; i++) {
        before += i < g->me ? counts[i] : 0;
        all += counts[i];
    }
    free(counts);
    smai_check_blocks(b, all, b->nelems);
    for (int j = 0; j < g->n; j++)
        put_to(g, (g->me + j) % g->n, (uint8_t *)b->dest + before * b->elem_bytes, b->source,
               b->nelems * b->elem_bytes);
    meet(g);
}

void smai_alltoall(const struct smai_group *g, const struct smai_blocks *b)
{
    uint64_t len_bytes = b->nelems * b->elem_bytes;

    smai_check_blocks(b, b->nelems * (size_t)g->n, b->nelems * (size_t)g->n);
    for (int j = 0; j < g->n; j++) {
        int rank = (g->me + j) % g->n;

        put_to(g, rank, (uint8_t *)b->dest + (uint64_t)g->me * len_bytes,
               (const uint8_t *)b->source + (uint64_t)rank * len_bytes, len_bytes);
    }
    meet(g);
}

void smai_alltoalls(const struct smai_group *g, const struct smai_blocks *b)
{
    ptrdiff_t to_step = b->dest_stride * (ptrdiff_t)b->elem_bytes;
    ptrdiff_t from_step = b->source_stride * (ptrdiff_t)b->elem_bytes;

    if (b->dest_stride < 1 || b->source_stride < 1)
        smai_fail(b->call, "strides %td and %td: less than 1", b->dest_stride, b->source_stride);
    if (b->nelems > 0)
        smai_check_blocks(b, (b->nelems * (size_t)g->n - 1) * (size_t)b->dest_stride + 1,
                          (b->nelems * (size_t)g->n - 1) * (size_t)b->source_stride + 1);
    for (int j = 0; j < g->n; j++) {
        int rank = (g->me + j) % g->n;
        uint8_t *to = (uint8_t *)b->dest + (ptrdiff_t)((size_t)g->me * b->nelems) * to_step;
        const uint8_t *from = (const uint8_t *)b->source + (ptrdiff_t)((size_t)rank * b->nelems) * from_step;

        for (size_t i = 0; i < b->nelems; i++, to += to_step, from += from_step)
            put_to(g, rank, to, from, b->elem_bytes);
    }
    meet(g);
}

/* ---- barriers ---- */

void smai_barrier_all(void)
{
    smai_settle("shmem_barrier_all");
    smai_sync(smai_world());
}

void smai_sync_all(void)
{
    if (!smai.is_up)
        smai_fail("shmem_sync_all", "not initialised");
    smai_sync(smai_world());
}

void smai_barrier(int start, int log_stride, int size, long *psync)
{
    (void)psync;
    smai_settle("shmem_barrier");
    smai_sync(smai_active_set(start, log_stride, size, "shmem_barrier"));
}

void smai_sync_set(int start, int log_stride, int size, long *psync)
{
    (void)psync;
    smai_sync(smai_active_set(start, log_stride, size, "shmem_sync"));
}
