/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accessors of completion queue entries.
 *
 * Programs see an entry as an opaque word and call these; the layout is drawn in cqe.h. A getter returns one
 * field, whatever the kind of entry: INST_ID, REM_INST_ID and MSG_ID are the low 24 (on a Gemini 32), 32 and 32 bits,
 * so the first two both work on every entry that a peer causes, and REM_INST_ID gives the low half of a CQ write. A
 * setter replaces one field of the caller's copy and cuts the value to it. Fields of the original without a meaning
 * here (info, transaction type, everything about the DLA and the BTE queue) read as 0.
 *
 * Entries do not tell on which device a peer caused them: there INST_ID goes by the process's latest attach. Else pure
 * functions: no lock, any thread. Source: spec/ugni.md 2.10, 7.2, 7.3.
 */
#include "libugni/src/cqe.h"

#include <assert.h>
#include <stdatomic.h>

#include "emunic/abi/event.h"

/* The device writes entries through emunic/abi/event.h, we read them through cqe.h: the layout is one. */
static_assert(GNII_CQE_OVERRUN == EMU_EVENT_LAP, "cqe: overrun takes the place of the lap bit");
static_assert(GNII_CQE_REM_OVERRUN == EMU_EVENT_REM_OVERRUN, "cqe: remote overrun");
static_assert(GNII_CQE_TYPE_SHIFT == EMU_EVENT_TYPE_SHIFT, "cqe: type");
static_assert(GNII_CQE_TYPE_MASK << GNII_CQE_TYPE_SHIFT == EMU_EVENT_TYPE_MASK, "cqe: type");
static_assert(GNII_CQE_ENGINE_SHIFT == EMU_EVENT_SOURCE_SHIFT, "cqe: engine");
static_assert(GNII_CQE_STATUS_SHIFT == EMU_EVENT_STATUS_SHIFT, "cqe: status");
static_assert(GNII_CQE_DATA_MASK == EMU_EVENT_DATA_MASK, "cqe: data");

static_assert((int)GNII_CQE_ENGINE_FMA == (int)EMU_SOURCE_FMA, "cqe: engine number");
static_assert((int)GNII_CQE_ENGINE_BTE == (int)EMU_SOURCE_BTE, "cqe: engine number");
static_assert((int)GNII_CQE_ENGINE_SMSG == (int)EMU_SOURCE_SMSG, "cqe: engine number");
static_assert((int)GNII_CQE_ENGINE_REMOTE == (int)EMU_SOURCE_REMOTE, "cqe: engine number");
static_assert((int)GNII_CQE_ENGINE_CQ_WRITE == (int)EMU_SOURCE_CQ_WRITE, "cqe: engine number");
static_assert((int)GNII_CQE_ENGINE_CE == (int)EMU_SOURCE_CE, "cqe: engine number");
static_assert((int)GNII_CQE_ENGINE_LIBRARY == (int)EMU_SOURCE_LIBRARY, "cqe: engine number");

static_assert((int)GNII_CQE_OK == (int)EMU_STATUS_OK, "cqe: status number");
static_assert((int)GNII_CQE_NETWORK == (int)EMU_STATUS_NETWORK, "cqe: status number");
static_assert((int)GNII_CQE_PEER_GONE == (int)EMU_STATUS_PEER_GONE, "cqe: status number");
static_assert((int)GNII_CQE_BAD_REMOTE_HANDLE == (int)EMU_STATUS_BAD_HANDLE, "cqe: status number");
static_assert((int)GNII_CQE_REMOTE_RANGE == (int)EMU_STATUS_REMOTE_RANGE, "cqe: status number");
static_assert((int)GNII_CQE_REMOTE_PERMISSION == (int)EMU_STATUS_REMOTE_PERMISSION, "cqe: status number");
static_assert((int)GNII_CQE_REMOTE_CQ_FULL == (int)EMU_STATUS_REMOTE_CQ_FULL, "cqe: status number");
static_assert((int)GNII_CQE_LOCAL_ACCESS == (int)EMU_STATUS_LOCAL_ACCESS, "cqe: status number");
static_assert((int)GNII_CQE_RETRANSMIT_LIMIT == (int)EMU_STATUS_RETRANSMIT_LIMIT, "cqe: status number");
static_assert((int)GNII_CQE_CANCELLED == (int)EMU_STATUS_CANCELLED, "cqe: status number");
static_assert((int)GNII_CQE_BAD_COMMAND == (int)EMU_STATUS_BAD_COMMAND, "cqe: status number");
static_assert((int)GNII_CQE_MISMATCH == (int)EMU_STATUS_MISMATCH, "cqe: status number");

static _Atomic bool is_wide_here;

void gnii_cqe_set_wide(bool is_wide)
{
    atomic_store_explicit(&is_wide_here, is_wide, memory_order_relaxed);
}

/* Bits of INST_ID: of a post's own entry what it has room for. */
static uint64_t inst_mask(gni_cq_entry_t entry)
{
    unsigned engine = gnii_cqe_engine(entry);
    bool is_narrow = engine == GNII_CQE_ENGINE_FMA || engine == GNII_CQE_ENGINE_BTE ||
                     (!gnii_cqe_is_wide(entry) && !atomic_load_explicit(&is_wide_here, memory_order_relaxed));

    return is_narrow ? GNII_CQE_INST_MASK : GNII_CQE_EVENT_MASK;
}

static void replace_bits(gni_cq_entry_t *entry, uint64_t mask, unsigned shift, uint64_t val)
{
    *entry = (*entry & ~(mask << shift)) | (val & mask) << shift;
}

/* Getters */

uint64_t gni_cq_get_data(gni_cq_entry_t entry)
{
    return gnii_cqe_data(entry);
}

uint64_t gni_cq_get_source(gni_cq_entry_t entry)
{
    switch (gnii_cqe_engine(entry)) {
    case GNII_CQE_ENGINE_FMA_WIDE:
        return GNII_CQE_ENGINE_FMA;
    case GNII_CQE_ENGINE_BTE_WIDE:
        return GNII_CQE_ENGINE_BTE;
    default:
        return gnii_cqe_engine(entry);
    }
}

uint64_t gni_cq_get_status(gni_cq_entry_t entry)
{
    return gnii_cqe_status(entry);
}

uint64_t gni_cq_get_info(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

uint64_t gni_cq_overrun(gni_cq_entry_t entry)
{
    return entry >> 63;
}

uint64_t gni_cq_rem_overrun(gni_cq_entry_t entry)
{
    return entry >> 62 & 1;
}

uint64_t gni_cq_get_inst_id(gni_cq_entry_t entry)
{
    return entry & inst_mask(entry);
}

uint64_t gni_cq_get_rem_inst_id(gni_cq_entry_t entry)
{
    return gnii_cqe_event(entry);
}

uint64_t gni_cq_get_tid(gni_cq_entry_t entry)
{
    return gnii_cqe_tid_of_program(entry);
}

uint64_t gni_cq_get_msg_id(gni_cq_entry_t entry)
{
    return gnii_cqe_event(entry);
}

uint64_t gni_cq_get_type(gni_cq_entry_t entry)
{
    return gnii_cqe_type(entry);
}

uint64_t gni_cq_get_block_id(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

uint64_t gni_cq_get_unsuccessful_cnt(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

uint64_t gni_cq_get_marker_id(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

uint64_t gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

uint64_t gni_cq_get_ce_id(gni_cq_entry_t entry)
{
    return entry >> GNII_CQE_CE_ID_SHIFT & GNII_CQE_CE_ID_MASK;
}

uint64_t gni_cq_get_reductn_id(gni_cq_entry_t entry)
{
    return gnii_cqe_event(entry);
}

uint64_t gni_cq_get_trans_type(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

unsigned gni_cq_status_dla_overflow(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

unsigned gni_cq_bte_enq_status(gni_cq_entry_t entry)
{
    (void)entry;
    return 0;
}

/* Setters */

void gni_cq_set_inst_id(gni_cq_entry_t *entry, uint64_t val)
{
    replace_bits(entry, inst_mask(*entry), 0, val);
}

void gni_cq_set_rem_inst_id(gni_cq_entry_t *entry, uint64_t val)
{
    replace_bits(entry, GNII_CQE_EVENT_MASK, 0, val);
}

void gni_cq_set_tid(gni_cq_entry_t *entry, uint64_t val)
{
    if (gnii_cqe_is_wide(*entry))
        replace_bits(entry, GNII_CQE_WIDE_TIDS - 1, GNII_CQE_WIDE_TID_SHIFT, val);
    else
        replace_bits(entry, GNII_CQE_TID_MASK, GNII_CQE_TID_SHIFT, val);
}

void gni_cq_set_msg_id(gni_cq_entry_t *entry, uint64_t val)
{
    replace_bits(entry, GNII_CQE_EVENT_MASK, 0, val);
}

void gni_cq_set_type(gni_cq_entry_t *entry, uint64_t val)
{
    replace_bits(entry, GNII_CQE_TYPE_MASK, GNII_CQE_TYPE_SHIFT, val);
}

void gni_cq_clr_status(gni_cq_entry_t *entry)
{
    replace_bits(entry, GNII_CQE_STATUS_MASK, GNII_CQE_STATUS_SHIFT, 0);
}
