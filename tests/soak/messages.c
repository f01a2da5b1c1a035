/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random messages. Message n of a pair of ranks has a length and bytes that follow from the pair and n, so the receiver
 * knows what must come next and that nothing may be lost, doubled or out of turn.
 */
#include <string.h>

#include "tests/soak/soak.h"

static uint32_t length_of(unsigned from, unsigned to, uint64_t n)
{
    uint64_t mixed = emu_random_mix(n * 1000003u + from * 257u + to);

    return (uint32_t)(mixed % 4 ? mixed % 64 : mixed % (MESSAGE_BYTES - 8)) + 1;
}

static uint8_t byte_of(unsigned from, unsigned to, uint64_t n, uint32_t at)
{
    return (uint8_t)(n * 31 + from * 7 + to * 3 + at);
}

void soak_send(struct soak_rank *r)
{
    unsigned to = (unsigned)(emu_random_next(&r->random) % SOAK_RANKS);
    uint64_t n = r->sent_to[to];
    uint32_t len_bytes = length_of(r->rank, to, n);
    uint8_t data[MESSAGE_BYTES];
    gni_return_t rc;

    if (r->is_gone[to])
        return;
    for (uint32_t i = 0; i < len_bytes; i++)
        data[i] = byte_of(r->rank, to, n, i);
    rc = GNI_SmsgSendWTag(r->eps[to], &n, sizeof(n), data, len_bytes, (uint32_t)(to << 16 | (n & 0xffff)),
                          (uint8_t)(n % 200));
    if (rc == GNI_RC_NOT_DONE)
        return;
    if (rc != GNI_RC_SUCCESS && soak_may_fail(r, to)) {
        soak_note_loss(r, to);
        return;
    }
    soak_must(r, rc, "GNI_SmsgSendWTag");
    r->sent_to[to]++;
    r->sends_to[to]++;
    r->sends_under_way++;
    atomic_fetch_add(&r->told->messages_to[to], 1);
}

static void check(struct soak_rank *r, unsigned from, const uint8_t *message, uint8_t tag)
{
    uint64_t n = r->taken_from[from];
    uint32_t len_bytes = length_of(from, r->rank, n);
    uint64_t number;

    memcpy(&number, message, 8);
    if (number != n || tag != n % 200) {
        soak_mismatch(r, "message %llu (tag %u) of rank %u instead of %llu", (unsigned long long)number, tag, from,
                      (unsigned long long)n);
        return;
    }
    for (uint32_t i = 0; i < len_bytes; i++) {
        if (message[8 + i] != byte_of(from, r->rank, n, i)) {
            soak_mismatch(r, "message %llu of rank %u: byte %u is wrong", (unsigned long long)n, from, i);
            return;
        }
    }
}

void soak_receive(struct soak_rank *r)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned from = r->next_mailbox++ % SOAK_RANKS;
        uint8_t tag = GNI_SMSG_ANY_TAG;
        void *message = NULL;
        gni_return_t rc;

        if (r->is_gone[from])
            continue;
        while ((rc = GNI_SmsgGetNextWTag(r->eps[from], &message, &tag)) == GNI_RC_SUCCESS) {
            check(r, from, message, tag);
            soak_must(r, GNI_SmsgRelease(r->eps[from]), "GNI_SmsgRelease");
            r->taken_from[from]++;
            atomic_fetch_add_explicit(&r->told->n_messages, 1, memory_order_relaxed);
            tag = GNI_SMSG_ANY_TAG;
        }
        if (rc != GNI_RC_NOT_DONE && soak_may_fail(r, from))
            soak_note_loss(r, from);
        else if (rc != GNI_RC_NOT_DONE)
            soak_must(r, rc, "GNI_SmsgGetNextWTag");
    }
}
