/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions.
 *
 * Few bytes among few PEs: each sends its own to each and combines all of them in the order of ranks, so all get the
 * same bits. Few bytes among many: recursive doubling, with the PEs above the power of two folded into those below.
 *
 * Many bytes: each PE has a slice of the result. When all have come it gets the slice from each source, combines in the
 * order of ranks and puts it into each destination. Nobody else reads or writes that slice anywhere, so source and
 * destination may be the same. It moves 2 (n - 1) / n of the bytes per PE, however many there are.
 *
 * One or two elements go by collective engines where the group has them (sma_engines.c).
 */
#include <stdlib.h>

#include "mpi-shim/shmem/src/sma_calls.h"

#define CHUNK_BYTES 65536u

static void reduce_flat(const struct smai_group *g, const struct smai_blocks *b, smai_combine_fn combine)
{
    uint32_t len_bytes = (uint32_t)(b->nelems * b->elem_bytes);
    _Alignas(16) uint8_t result[SMAI_PAYLOAD_BYTES];
    _Alignas(16) uint8_t mine[SMAI_PAYLOAD_BYTES];
    _Alignas(16) uint8_t theirs[SMAI_PAYLOAD_BYTES];

    memcpy(mine, b->source, len_bytes);
    for (int j = 1; j < g->n; j++)
        smai_send(g, (g->me + j) % g->n, mine, len_bytes);
    smai_order("collective");
    smai_await_messages(g, &(struct smai_behind){ 1, g->n, 1 });
    for (int rank = 0; rank < g->n; rank++) {
        if (rank != g->me)
            smai_receive(g, rank, theirs, len_bytes);
        if (rank == 0)
            memcpy(result, rank == g->me ? mine : theirs, len_bytes);
        else
            combine(result, rank == g->me ? mine : theirs, b->nelems);
    }
    memcpy(b->dest, result, len_bytes);
}

/* Both get low op high. */
static void combine_with(const struct smai_group *g, int peer, void *mine, const struct smai_blocks *b,
                         smai_combine_fn combine)
{
    uint32_t len_bytes = (uint32_t)(b->nelems * b->elem_bytes);
    _Alignas(16) uint8_t theirs[SMAI_PAYLOAD_BYTES];

    smai_send(g, peer, mine, len_bytes);
    smai_order("collective");
    smai_receive(g, peer, theirs, len_bytes);
    if (peer > g->me) {
        combine(mine, theirs, b->nelems);
    } else {
        combine(theirs, mine, b->nelems);
        memcpy(mine, theirs, len_bytes);
    }
}

static void reduce_doubling(const struct smai_group *g, const struct smai_blocks *b, smai_combine_fn combine)
{
    uint32_t len_bytes = (uint32_t)(b->nelems * b->elem_bytes);
    _Alignas(16) uint8_t result[SMAI_PAYLOAD_BYTES];
    _Alignas(16) uint8_t theirs[SMAI_PAYLOAD_BYTES];
    int power = 1;
    int extra;

    while (power * 2 <= g->n)
        power *= 2;
    extra = g->me < power ? g->me + power : g->me - power;
    memcpy(result, b->source, len_bytes);
    if (g->me >= power) {
        smai_send(g, extra, result, len_bytes);
        smai_order("collective");
        smai_receive(g, extra, result, len_bytes);
        memcpy(b->dest, result, len_bytes);
        return;
    }
    if (extra < g->n) {
        smai_receive(g, extra, theirs, len_bytes);
        combine(result, theirs, b->nelems);
    }
    for (int bit = 1; bit < power; bit *= 2)
        combine_with(g, g->me ^ bit, result, b, combine);
    if (extra < g->n) {
        smai_send(g, extra, result, len_bytes);
        smai_order("collective");
    }
    memcpy(b->dest, result, len_bytes);
}

/* Elements [first, first + n) of all PEs, through two buffers. */
static void reduce_piece(const struct smai_group *g, const struct smai_blocks *b, smai_combine_fn combine, size_t first,
                         size_t n, uint8_t *buffers)
{
    uint64_t len_bytes = n * b->elem_bytes;
    const uint8_t *from = (const uint8_t *)b->source + first * b->elem_bytes;
    uint8_t *to = (uint8_t *)b->dest + first * b->elem_bytes;
    uint8_t *result = buffers;
    uint8_t *theirs = buffers + CHUNK_BYTES;

    for (int rank = 0; rank < g->n; rank++) {
        struct smai_remote r = { SHMEM_CTX_DEFAULT, from, g->pes[rank], b->call };

        smai_get(r, rank == 0 ? result : theirs, len_bytes, 1, false);
        if (rank > 0)
            combine(result, theirs, n);
    }
    for (int j = 0; j < g->n; j++) {
        struct smai_remote r = { SHMEM_CTX_DEFAULT, to, g->pes[(g->me + j) % g->n], b->call };

        smai_put(r, result, len_bytes, 1, true);
    }
    smai_order(b->call);
}

static void reduce_slices(const struct smai_group *g, const struct smai_blocks *b, smai_combine_fn combine)
{
    size_t n = (size_t)g->n;
    size_t each = b->nelems / n;
    size_t more = b->nelems % n; /* the first so many have one more */
    size_t me = (size_t)g->me;
    size_t first = me * each + (me < more ? me : more);
    size_t end = first + each + (me < more);
    size_t step = CHUNK_BYTES / b->elem_bytes;
    uint8_t *buffers = aligned_alloc(64, 2 * CHUNK_BYTES);

    if (!buffers)
        smai_fail(b->call, "out of memory");
    smai_sync(g);
    for (; first < end; first += step)
        reduce_piece(g, b, combine, first, end - first < step ? end - first : step, buffers);
    free(buffers);
    smai_sync(g);
}

static void reduce_few_bytes(const struct smai_group *g, const struct smai_blocks *b, smai_combine_fn combine)
{
    if (g->n <= smai.flat_max)
        reduce_flat(g, b, combine);
    else
        reduce_doubling(g, b, combine);
}

void smai_reduce(const struct smai_group *g, const struct smai_blocks *b, const struct smai_operation *op)
{
    smai_check_blocks(b, b->nelems, b->nelems);
    if (SMAI_UNLIKELY(g->engines) && smai_engines_reduce(g, b, op))
        return;
    if (b->nelems == 0)
        smai_sync(g);
    else if (b->nelems * b->elem_bytes > SMAI_PAYLOAD_BYTES)
        reduce_slices(g, b, op->combine);
    else
        reduce_few_bytes(g, b, op->combine);
}

static void combine_bits(void *into, const void *from, size_t n)
{
    const uint64_t *b = from;
    uint64_t *a = into;

    for (size_t i = 0; i < n; i++)
        a[i] |= b[i];
}

void smai_share_bits(const struct smai_group *g, uint64_t *words, size_t n)
{
    const size_t step = SMAI_PAYLOAD_BYTES / sizeof(*words);

    for (size_t first = 0; first < n; first += step) {
        uint64_t *at = &words[first];
        struct smai_blocks b = { .call = "collective", .dest = at, .source = at, .elem_bytes = sizeof(*words) };

        b.nelems = n - first < step ? n - first : step;
        reduce_few_bytes(g, &b, combine_bits);
    }
}
