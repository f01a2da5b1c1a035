/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels: the messages of collectives.
 *
 * A slot has a line for each PE of the job in each PE's symmetric heap. Only that PE writes it: how often it has told
 * us something, and two places for a few bytes, used in turn, each with the number of its message. The numbers only
 * grow, so nothing is ever reset, and a slot goes from one team to the next as it is: each pair of PEs agrees on its
 * numbers whenever no collective runs.
 *
 *   line of a source   | told | seq, bytes | seq, bytes |
 *
 * Two places are enough, because PEs that send bytes to each other do it in both directions in one collective: who
 * sends the third message has got the second of its peer, which the peer sent after it had taken the first.
 *
 * Data go straight into the buffers of the program, before the word that tells of them.
 */
#include <stdlib.h>

#include "mpi-shim/shmem/src/sma_calls.h"

struct line {
    _Alignas(128) _Atomic uint64_t told;
    struct {
        _Atomic uint64_t seq;
        uint8_t bytes[SMAI_PAYLOAD_BYTES];
    } place[2];
};

/* What we have said to a PE and heard from it. */
struct counts {
    uint64_t told;
    uint64_t heard;
    uint64_t sent;
    uint64_t received;
};

struct smai_channel {
    struct line *lines;     /* borrowed, in the symmetric heap: of each PE of the job */
    struct counts counts[]; /* of each PE of the job */
};

static struct line *all_lines;
static struct smai_channel *channels[SMAI_SLOTS]; /* owned, made when first used */

uint64_t smai_channels_bytes(int npes)
{
    return (uint64_t)npes * SMAI_SLOTS * sizeof(struct line) + sizeof(struct line);
}

int smai_channels_start(void)
{
    uint64_t bytes = smai_channels_bytes(smai.npes);
    uint8_t *block = dmapp_sheap_malloc(bytes);

    if (!block)
        return -1;
    memset(block, 0, bytes);
    all_lines = (struct line *)(((uintptr_t)block + sizeof(struct line) - 1) & ~(uintptr_t)(sizeof(struct line) - 1));
    return 0;
}

void smai_channels_stop(void)
{
    for (int i = 0; i < SMAI_SLOTS; i++) {
        free(channels[i]);
        channels[i] = NULL;
    }
}

struct smai_channel *smai_channel_of(int slot)
{
    if (!channels[slot]) {
        struct smai_channel *made = calloc(1, sizeof(*made) + (size_t)smai.npes * sizeof(made->counts[0]));

        if (!made)
            return NULL;
        made->lines = &all_lines[(size_t)slot * (size_t)smai.npes];
        channels[slot] = made;
    }
    return channels[slot];
}

static void await(_Atomic uint64_t *word, uint64_t value)
{
    unsigned n = 0;

    while (atomic_load_explicit(word, memory_order_acquire) < value) {
        smai_wait_step(&n);
    }
}

void smai_tell(const struct smai_group *g, int rank)
{
    int pe = g->pes[rank];
    struct line *line = &g->channel->lines[smai.pe];
    uint64_t *value = &g->channel->counts[pe].told;
    const struct smai_remote r = { SHMEM_CTX_DEFAULT, &line->told, pe, "collective" };
    struct smai_place to;

    ++*value;
    if (SMAI_LIKELY(smai_reach(r.at, sizeof(*value), pe, &to)) && smai_launch(&to, GNII_LAUNCH_FLAG, *value, 0, NULL))
        return;
    smai_put_slowly(r, value, sizeof(*value), true);
}

void smai_put_and_tell(const struct smai_group *g, int rank, void *at, const void *from, uint64_t len_bytes)
{
    int pe = g->pes[rank];
    uint64_t *told = (uint64_t *)(uintptr_t)&g->channel->lines[smai.pe].told;

    smai_put_signal((struct smai_remote){ SHMEM_CTX_DEFAULT, at, pe, "collective" }, from, len_bytes,
                    (struct smai_signal){ told, ++g->channel->counts[pe].told, SHMEM_SIGNAL_SET }, true);
}

void smai_await(const struct smai_group *g, int rank)
{
    int pe = g->pes[rank];

    await(&g->channel->lines[pe].told, ++g->channel->counts[pe].heard);
}

void smai_send(const struct smai_group *g, int rank, const void *data, uint32_t len_bytes)
{
    int pe = g->pes[rank];
    struct line *line = &g->channel->lines[smai.pe];
    uint64_t seq = ++g->channel->counts[pe].sent;
    const struct smai_remote r = { SHMEM_CTX_DEFAULT, line->place[seq & 1].bytes, pe, "collective" };

    smai_put_signal(r, data, len_bytes,
                    (struct smai_signal){ (uint64_t *)(uintptr_t)&line->place[seq & 1].seq, seq, SHMEM_SIGNAL_SET },
                    true);
}

void smai_receive(const struct smai_group *g, int rank, void *data_out, uint32_t len_bytes)
{
    int pe = g->pes[rank];
    struct line *line = &g->channel->lines[pe];
    uint64_t seq = ++g->channel->counts[pe].received;

    await(&line->place[seq & 1].seq, seq);
    memcpy(data_out, line->place[seq & 1].bytes, len_bytes);
}

/* ---- several at once ---- */

typedef bool (*is_missing_fn)(const struct smai_group *g, int rank);

static bool has_not_told(const struct smai_group *g, int rank)
{
    int pe = g->pes[rank];

    return atomic_load_explicit(&g->channel->lines[pe].told, memory_order_acquire) <= g->channel->counts[pe].heard;
}

static bool has_not_sent(const struct smai_group *g, int rank)
{
    int pe = g->pes[rank];
    uint64_t seq = g->channel->counts[pe].received + 1;

    return atomic_load_explicit(&g->channel->lines[pe].place[seq & 1].seq, memory_order_acquire) < seq;
}

/* A division would take as long as all the rest of a look. */
static inline int rank_behind(const struct smai_group *g, int64_t distance)
{
    int rank = g->me - (int)distance;

    return rank < 0 ? rank + g->n : rank;
}

static inline __attribute__((always_inline)) void await_several(const struct smai_group *g,
                                                                const struct smai_behind *behind,
                                                                is_missing_fn is_missing)
{
    struct smai_patience patience = { 0 };
    int n_missing;

    for (;;) {
        n_missing = 0;
        for (int64_t j = behind->first; j < behind->end; j += behind->step)
            n_missing += is_missing(g, rank_behind(g, j));
        if (n_missing == 0)
            return;
        smai_wait_for_several(&patience, n_missing);
    }
}

void smai_await_behind(const struct smai_group *g, const struct smai_behind *behind)
{
    await_several(g, behind, has_not_told);
    for (int64_t j = behind->first; j < behind->end; j += behind->step)
        g->channel->counts[g->pes[rank_behind(g, j)]].heard++;
}

void smai_await_messages(const struct smai_group *g, const struct smai_behind *behind)
{
    await_several(g, behind, has_not_sent);
}
