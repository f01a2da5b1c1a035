/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue entry (gni_cq_entry_t), made and taken apart.
 *
 *   63    62       61..60  59..56   55..48   47 ........ 24 23 ........ 0
 *  | OVR | REM-OVR | type | engine | status | data                        |
 *
 *   data by kind of entry          47..32     31..24        23..0
 *     POST on a source CQ          tid (47..24)             local event
 *       the same on a Gemini       tid        local event (31..0)
 *     SMSG, MSGQ on a source CQ    number     msg_id (31..0)
 *     caused by a peer             tag        sender's event (31..0)
 *     CQ write                     value (47..0)
 *     CE channel                   ce_id      reduction id (31..0)
 *
 * The number tells which send it is, because those to different hosts end in any order; the tag which connection an
 * early message is of (early.c), else it is 0. Programs get 0 for both.
 *
 * The form of a Gemini is for a program's hands alone, with engine numbers of its own; programs get FMA and BTE. The
 * NIC's entries have the other form, and 65536 posts of a NIC handle can be on their way there.
 *
 * In a program's hands an entry is never 0 and its engine never 0. In a shared queue bit 63 is the lap bit
 * instead (emunic/abi/event.h); whoever takes an entry off puts the overrun bit there. Everything here but what the
 * latest attach says (gnii_cqe_set_wide()) is a pure function. Source: spec/ugni.md 2.10 (recommended layout) and 7.3
 * (status numbers); the CE channel entry and the form of a Gemini are our own.
 */
#ifndef LIBUGNI_CQE_H
#define LIBUGNI_CQE_H

#include <stdbool.h>
#include <stdint.h>

#include <gni_pub.h>

#define GNII_CQE_OVERRUN        (1ULL << 63) /* this CQ lost entries */
#define GNII_CQE_REM_OVERRUN    (1ULL << 62) /* the peer's destination CQ lost entries */
#define GNII_CQE_TYPE_SHIFT     60
#define GNII_CQE_TYPE_MASK      0x3ULL
#define GNII_CQE_ENGINE_SHIFT   56
#define GNII_CQE_ENGINE_MASK    0xfULL
#define GNII_CQE_STATUS_SHIFT   48
#define GNII_CQE_STATUS_MASK    0xffULL
#define GNII_CQE_DATA_MASK      ((1ULL << 48) - 1)
#define GNII_CQE_TID_SHIFT      24
#define GNII_CQE_TID_MASK       0xffffffULL
#define GNII_CQE_WIDE_TID_SHIFT 32
#define GNII_CQE_WIDE_TIDS      0x10000u
#define GNII_CQE_INST_MASK      0xffffffULL   /* event data as Aries shows it */
#define GNII_CQE_EVENT_MASK     0xffffffffULL /* event data of destination entries, msg_id, reduction id */
#define GNII_CQE_SEND_SHIFT     32
#define GNII_CQE_SENDS          0x10000ULL /* numbers of sends: no more have no entry yet */
#define GNII_CQE_CE_ID_SHIFT    32
#define GNII_CQE_CE_ID_MASK     0xffffULL

/* Who made an entry; never 0, which keeps every entry different from 0. */
enum gnii_cqe_engine {
    GNII_CQE_ENGINE_FMA = 1,
    GNII_CQE_ENGINE_BTE = 2,
    GNII_CQE_ENGINE_SMSG = 3,   /* SMSG or MSGQ send */
    GNII_CQE_ENGINE_REMOTE = 4, /* event caused by a peer */
    GNII_CQE_ENGINE_CQ_WRITE = 5,
    GNII_CQE_ENGINE_CE = 6,
    GNII_CQE_ENGINE_FMA_WIDE = 9, /* for a program of a Gemini */
    GNII_CQE_ENGINE_BTE_WIDE = 10,
    GNII_CQE_ENGINE_LIBRARY = 15,
};

/* Outcome of a transaction; cqe.c asserts that the device's numbers (enum emu_status) are the same. */
enum gnii_cqe_status {
    GNII_CQE_OK = 0,
    GNII_CQE_NETWORK = 1,
    GNII_CQE_PEER_GONE = 2,
    GNII_CQE_BAD_REMOTE_HANDLE = 3,
    GNII_CQE_REMOTE_RANGE = 4,
    GNII_CQE_REMOTE_PERMISSION = 5,
    GNII_CQE_REMOTE_CQ_FULL = 6,
    GNII_CQE_LOCAL_ACCESS = 7,
    GNII_CQE_RETRANSMIT_LIMIT = 8,
    GNII_CQE_CANCELLED = 9,
    GNII_CQE_BAD_COMMAND = 10, /* not of spec/ugni.md 7.3: the device refused the command as malformed */
    GNII_CQE_MISMATCH = 11,    /* not of spec/ugni.md 7.3: the members of a reduction did not agree */
    GNII_CQE_STATUS_COUNT
};

/* Any field or value that is too wide is cut to its field. */
static inline gni_cq_entry_t gnii_cqe_make(uint64_t type, enum gnii_cqe_engine engine, unsigned status, uint64_t data)
{
    return (type & GNII_CQE_TYPE_MASK) << GNII_CQE_TYPE_SHIFT |
           ((uint64_t)engine & GNII_CQE_ENGINE_MASK) << GNII_CQE_ENGINE_SHIFT |
           (status & GNII_CQE_STATUS_MASK) << GNII_CQE_STATUS_SHIFT | (data & GNII_CQE_DATA_MASK);
}

/* Completion of a posted descriptor: engine is FMA or BTE; CE is that of an engine's own entries. */
static inline gni_cq_entry_t gnii_cqe_post(enum gnii_cqe_engine engine, uint32_t tid, uint32_t local_event,
                                           unsigned status)
{
    return gnii_cqe_make(GNI_CQ_EVENT_TYPE_POST, engine, status,
                         (uint64_t)tid << GNII_CQE_TID_SHIFT | (local_event & GNII_CQE_INST_MASK));
}

/* Type, engine and status in one word, which compares faster than each of them. */
static inline uint64_t gnii_cqe_head(gni_cq_entry_t entry)
{
    return entry >> GNII_CQE_STATUS_SHIFT;
}

/* The heads of entries without a failure that nearly all programs get nearly always. */
#define GNII_CQE_HEAD_FMA     ((uint64_t)GNII_CQE_ENGINE_FMA << (GNII_CQE_ENGINE_SHIFT - GNII_CQE_STATUS_SHIFT))
#define GNII_CQE_HEAD_BTE     ((uint64_t)GNII_CQE_ENGINE_BTE << (GNII_CQE_ENGINE_SHIFT - GNII_CQE_STATUS_SHIFT))
#define GNII_CQE_HEAD_OF_POST ((uint64_t)GNII_CQE_ENGINE_REMOTE << (GNII_CQE_ENGINE_SHIFT - GNII_CQE_STATUS_SHIFT))
#define GNII_CQE_HEAD_SENT                                                                                             \
    ((uint64_t)GNII_CQE_ENGINE_SMSG << (GNII_CQE_ENGINE_SHIFT - GNII_CQE_STATUS_SHIFT) |                               \
     GNI_CQ_EVENT_TYPE_SMSG << (GNII_CQE_TYPE_SHIFT - GNII_CQE_STATUS_SHIFT))
#define GNII_CQE_HEAD_OF_SMSG                                                                                          \
    (GNII_CQE_HEAD_OF_POST | GNI_CQ_EVENT_TYPE_SMSG << (GNII_CQE_TYPE_SHIFT - GNII_CQE_STATUS_SHIFT))

/* A post that went well, in the form that is not a Gemini's. */
static inline bool gnii_cqe_is_plain_post(gni_cq_entry_t entry)
{
    return gnii_cqe_head(entry) == GNII_CQE_HEAD_FMA || gnii_cqe_head(entry) == GNII_CQE_HEAD_BTE;
}

/* Completion of a message: type is GNI_CQ_EVENT_TYPE_SMSG or _MSGQ. */
static inline gni_cq_entry_t gnii_cqe_send(uint64_t type, uint32_t msg_id, unsigned status)
{
    return gnii_cqe_make(type, GNII_CQE_ENGINE_SMSG, status, msg_id);
}

/* The same entry with the lower bits of the send's number in its queue. */
static inline gni_cq_entry_t gnii_cqe_numbered(gni_cq_entry_t entry, uint64_t number)
{
    return entry | (number & (GNII_CQE_SENDS - 1)) << GNII_CQE_SEND_SHIFT;
}

/* Those bits, of any entry. */
static inline uint64_t gnii_cqe_number(gni_cq_entry_t entry)
{
    return entry >> GNII_CQE_SEND_SHIFT & (GNII_CQE_SENDS - 1);
}

/* The entry without those bits, as the program sees it. */
static inline gni_cq_entry_t gnii_cqe_unnumbered(gni_cq_entry_t entry)
{
    return entry & ~((GNII_CQE_SENDS - 1) << GNII_CQE_SEND_SHIFT);
}

/* Entry on a destination CQ: type POST for a PUT, GET or AMO of a peer, SMSG for a message. */
static inline gni_cq_entry_t gnii_cqe_remote(uint64_t type, uint32_t remote_event)
{
    return gnii_cqe_make(type, GNII_CQE_ENGINE_REMOTE, GNII_CQE_OK, remote_event);
}

/* The word that goes with GNI_RC_ERROR_RESOURCE when a queue overran: no transaction stands behind it. */
static inline gni_cq_entry_t gnii_cqe_overrun_word(void)
{
    return GNII_CQE_OVERRUN | gnii_cqe_make(GNI_CQ_EVENT_TYPE_POST, GNII_CQE_ENGINE_LIBRARY, GNII_CQE_OK, 0);
}

static inline bool gnii_cqe_is_overrun(gni_cq_entry_t entry)
{
    return (entry & GNII_CQE_OVERRUN) != 0;
}

static inline unsigned gnii_cqe_type(gni_cq_entry_t entry)
{
    return (unsigned)(entry >> GNII_CQE_TYPE_SHIFT & GNII_CQE_TYPE_MASK);
}

static inline unsigned gnii_cqe_engine(gni_cq_entry_t entry)
{
    return (unsigned)(entry >> GNII_CQE_ENGINE_SHIFT & GNII_CQE_ENGINE_MASK);
}

static inline unsigned gnii_cqe_status(gni_cq_entry_t entry)
{
    return (unsigned)(entry >> GNII_CQE_STATUS_SHIFT & GNII_CQE_STATUS_MASK);
}

static inline uint64_t gnii_cqe_data(gni_cq_entry_t entry)
{
    return entry & GNII_CQE_DATA_MASK;
}

static inline uint32_t gnii_cqe_tid(gni_cq_entry_t entry)
{
    return (uint32_t)(entry >> GNII_CQE_TID_SHIFT & GNII_CQE_TID_MASK);
}

/* Does a program see all 32 bits of event data in INST_ID of what peers cause? As on a Gemini; any thread. */
void gnii_cqe_set_wide(bool is_wide);

static inline bool gnii_cqe_is_wide(gni_cq_entry_t entry)
{
    unsigned engine = gnii_cqe_engine(entry);

    return engine == GNII_CQE_ENGINE_FMA_WIDE || engine == GNII_CQE_ENGINE_BTE_WIDE;
}

/* Entry of a post, of FMA or BTE, with a tid below GNII_CQE_WIDE_TIDS, as a program on a Gemini gets it. */
static inline gni_cq_entry_t gnii_cqe_widened(gni_cq_entry_t entry, uint32_t local_event)
{
    uint64_t keep = entry & ~(GNII_CQE_DATA_MASK | GNII_CQE_ENGINE_MASK << GNII_CQE_ENGINE_SHIFT);
    uint64_t engine =
        gnii_cqe_engine(entry) == GNII_CQE_ENGINE_BTE ? GNII_CQE_ENGINE_BTE_WIDE : GNII_CQE_ENGINE_FMA_WIDE;

    return keep | engine << GNII_CQE_ENGINE_SHIFT | (uint64_t)gnii_cqe_tid(entry) << GNII_CQE_WIDE_TID_SHIFT |
           local_event;
}

/* Of an entry that a program hands in. */
static inline uint32_t gnii_cqe_tid_of_program(gni_cq_entry_t entry)
{
    if (gnii_cqe_is_wide(entry))
        return (uint32_t)(entry >> GNII_CQE_WIDE_TID_SHIFT) & (GNII_CQE_WIDE_TIDS - 1);
    return gnii_cqe_tid(entry);
}

/* The 32 bits that serve as a destination entry's event and as msg_id. */
static inline uint32_t gnii_cqe_event(gni_cq_entry_t entry)
{
    return (uint32_t)(entry & GNII_CQE_EVENT_MASK);
}

#endif
