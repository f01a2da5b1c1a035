/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of a mailbox (smsg.c), and what connecting and messages both do with one. NIC lock held.
 */
#ifndef LIBUGNI_SMSG_MAILBOX_H
#define LIBUGNI_SMSG_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libugni/src/handle_target.h"
#include "libugni/src/ugni.h"

#define LINE          64u
#define CONTROL_BYTES 64u
#define HEADER_BYTES  16u /* of a slot, stamp included */

/* Words of the control block */
enum {
    WORD_RETURNED = 0, /* peer writes: (mark of our messages, how many of them it has released), complement */
    WORD_HELLO = 2,    /* peer writes: (hash of the attributes, its number), complement */
    WORD_ANSWERS = 4,  /* peer writes: (the number of ours that it regards as past, hash over that and hello) */
    WORD_BEFORE = 5,   /* peer writes: (the number of its hello before this one, hash over that and hello) */
    WORD_PAST = 6,     /* owner writes: the hello of the connection that ended last */
    WORD_OWN = 7,      /* owner writes: what it has said last */
};

#define SLOT_STARVES 1u /* the sender has no credit left after this one */
#define SLOT_EARLY   2u /* it does not know yet whether we are there; the entry has a tag */

struct slot_header {
    uint16_t length_bytes;
    uint8_t tag;
    uint8_t flags;  /* SLOT_* */
    uint32_t event; /* what the sender's end point puts into our queue */
};
_Static_assert(sizeof(struct slot_header) == HEADER_BYTES - sizeof(uint64_t), "slot layout");

/* smsg_connect.c */
void gnii_smsg_say_hello(struct gnii_ep *ep);
/*
 * No message was taken yet: goes by the newest hello, unless messages wait that were sent to us before it. The hello of
 * those may have come and been replaced between two looks of ours.
 */
void gnii_smsg_learn_peer(struct gnii_smsg *s);
/* Runs when an early message is released. */
void gnii_smsg_note_early_release(struct gnii_ep *ep);

static inline _Atomic uint64_t *control_words(const struct gnii_smsg *s)
{
    return (_Atomic uint64_t *)(uintptr_t)s->in_addr;
}

/* Where the next message comes. */
static inline uint8_t *in_slot(const struct gnii_smsg *s)
{
    return (uint8_t *)(uintptr_t)(s->in_addr + CONTROL_BYTES + s->in_slot * s->in_stride_bytes);
}

static inline uint64_t stamp_of(uint32_t mark, uint64_t number)
{
    return (uint64_t)mark << 32 | (uint32_t)(number + 1);
}

static inline uint64_t control_word(const struct gnii_smsg *s, unsigned word)
{
    return atomic_load_explicit(&control_words(s)[word], memory_order_relaxed);
}

/* A word that the peer writes with its complement; false while it is being written. */
static inline bool read_pair(const struct gnii_smsg *s, unsigned word, uint64_t *value_out)
{
    /* Pairs with the NIC's store of the flag, which is this word. */
    uint64_t value = atomic_load_explicit(&control_words(s)[word], memory_order_acquire);

    if (control_word(s, word + 1) != ~value)
        return false;
    *value_out = value;
    return true;
}

/* The next slot holds a message under this mark. */
static inline bool slot_shows(const struct gnii_smsg *s, uint32_t mark)
{
    const _Atomic uint64_t *stamp = (const _Atomic uint64_t *)in_slot(s);

    /* Pairs with the NIC's store of the flag: the message is there when its stamp is. */
    return atomic_load_explicit(stamp, memory_order_acquire) == stamp_of(mark, s->taken);
}

/* True once we know under which mark the peer sends. */
static inline bool knows_peer(struct gnii_smsg *s)
{
    if (s->taken == 0 && !s->has_current)
        gnii_smsg_learn_peer(s);
    return s->in_mark != 0;
}

static inline bool message_waits(struct gnii_smsg *s)
{
    return knows_peer(s) && slot_shows(s, s->in_mark);
}

/* ---- commands ---- */

/* As gnii_cmd_put_flag(), into the peer's mailbox. */
static inline uint8_t *begin_put(struct gnii_ep *ep, uint64_t addr, uint64_t length_bytes, uint64_t flag_addr,
                                 uint64_t flag_value, struct emu_cmd **cmd_out)
{
    uint8_t *data = gnii_cmd_put_flag(ep->nic, length_bytes, flag_addr, flag_value, cmd_out);

    if (data)
        gnii_cmd_set_handle(*cmd_out, ep->remote_addr, &ep->smsg->out_handle, addr);
    return data;
}

/* Words for the peer's control block: `word`, its complement, two more or none. The caller publishes. */
static inline struct emu_cmd *begin_words(struct gnii_ep *ep, unsigned word, uint64_t value, const uint64_t *more)
{
    uint64_t addr = ep->smsg->out_addr + word * sizeof(value);
    uint64_t behind[3] = { ~value, more ? more[0] : 0, more ? more[1] : 0 };
    uint64_t length_bytes = more ? sizeof(behind) : sizeof(behind[0]);
    struct emu_cmd *cmd;
    uint8_t *data;

    data = begin_put(ep, addr + sizeof(value), length_bytes, addr, value, &cmd);
    if (!data)
        return NULL;
    memcpy(data, behind, length_bytes);
    return cmd;
}

#endif
