/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launch entry.
 *
 * A target is a lane (emunic/client/lane.h) with its NIC. An operation takes the NIC's lock, which its first thread
 * has for two plain stores, and the gate; it checks the lane against the domain table, touches the peer's memory
 * and counts its packets. No descriptor, slot, handle look-up or completion entry: an 8-byte put is a third of what
 * GNI_PostFma() takes.
 *
 * Cache lines of an 8-byte put: NIC lock, own segment's `inside` and ring head, the table's changing line, the memory
 * domain's and the port's line (all shared, or ours), the flow's counters, the peer's `rests` word (shared while it
 * is awake), and the target. The only locked instruction is the one of an atomic.
 *
 * A lane that does not hold any more is looked for anew, and then only now and then: what has none is posted.
 */
#include "libugni/src/launch.h"

#include <stdlib.h>
#include <string.h>

#include "emunic/client/direct.h"
#include "emunic/engine/amo.h"
#include "emunic/engine/word.h"
#include "libugni/src/ugni.h"

#define RETRY_AFTER 64u /* operations, until a target without a lane is looked at again */

struct gnii_launch_target {
    struct emu_lane lane; /* epoch 0: none */
    struct gnii_nic *nic; /* counted */
    struct emu_lane_target name;
    uint32_t retry;
};

struct gnii_launch_target *gnii_launch_open(gni_nic_handle_t nic_hndl, uint32_t nic_addr,
                                            const gni_mem_handle_t *handle)
{
    struct gnii_handle_fields fields;
    struct gnii_launch_target *t;
    struct gnii_nic *nic;

    if (gnii_handle_decode(handle, &fields) < 0)
        return NULL;
    nic = gnii_object_get(GNII_KIND_NIC, nic_hndl);
    if (!nic)
        return NULL;
    t = aligned_alloc(64, (sizeof(*t) + 63) & ~(size_t)63);
    if (!t) {
        gnii_nic_put(nic);
        return NULL;
    }
    memset(t, 0, sizeof(*t));
    t->nic = nic;
    t->name = gnii_handle_target(nic_addr, &fields);
    return t;
}

void gnii_launch_close(struct gnii_launch_target *t)
{
    if (!t)
        return;
    gnii_nic_put(t->nic);
    free(t);
}

/* Runs when a lane is missing or did not serve. */
static __attribute__((noinline)) bool find_lane(struct gnii_launch_target *t)
{
    struct gnii_nic *nic = t->nic;

    /* Finding one may ask emunic and wait for it: not while the path is closed anyway. */
    if (!nic->port.direct || atomic_load_explicit(&nic->is_closing, memory_order_relaxed) || gnii_nic_is_lost(nic) ||
        !emu_direct_is_open(nic->port.direct))
        return false;
    if (t->retry > 0) {
        t->retry--;
        return false;
    }
    if (emu_lane_find(nic->port.direct, &t->name, &t->lane))
        return true;
    t->lane.epoch = 0;
    t->retry = RETRY_AFTER;
    return false;
}

/* What was moved counts. If not the mark is down again, and a post has to do it all. */
static inline bool has_moved(struct emu_lane *lane)
{
    if (__builtin_expect(!emu_lane_is_broken(lane), 1))
        return true;
    emu_lane_leave(lane);
    return false;
}

static __attribute__((noinline)) bool put_far(struct emu_lane *lane, uint64_t addr, const void *data,
                                              uint64_t len_bytes)
{
    if (!emu_lane_write(lane, addr, data, len_bytes))
        return false;
    emu_lane_count_put(lane, len_bytes);
    emu_lane_leave(lane);
    return true;
}

static __attribute__((noinline)) bool get_far(struct emu_lane *lane, uint64_t addr, void *data, uint64_t len_bytes)
{
    if (!emu_lane_read(lane, addr, data, len_bytes))
        return false;
    emu_lane_count_get(lane, len_bytes, 0);
    emu_lane_leave(lane);
    return true;
}

static inline bool put(struct emu_lane *lane, uint64_t addr, const void *data, uint64_t len_bytes)
{
    uint8_t *to = emu_lane_enter(lane, addr, len_bytes, true);

    if (!to)
        return !lane->window && put_far(lane, addr, data, len_bytes);
    emu_word_store(to, data, len_bytes);
    if (!has_moved(lane))
        return false;
    emu_lane_count_put(lane, len_bytes);
    emu_lane_leave(lane);
    return true;
}

static inline bool get(struct emu_lane *lane, uint64_t addr, void *data, uint64_t len_bytes)
{
    uint8_t *from = emu_lane_enter(lane, addr, len_bytes, false);

    if (!from)
        return !lane->window && get_far(lane, addr, data, len_bytes);
    emu_word_load(data, from, len_bytes);
    if (!has_moved(lane))
        return false;
    emu_lane_count_get(lane, len_bytes, 0);
    emu_lane_leave(lane);
    return true;
}

/* After the data, for whoever looks at the word. */
static inline bool flag(struct emu_lane *lane, uint64_t addr, uint64_t value)
{
    uint8_t *to = emu_lane_enter(lane, addr, 8, true);

    if (!to)
        return false; /* a system call's store has no order that we know of */
    /* Pairs with the load of who waits for the flag: then it sees the data. */
    atomic_store_explicit((_Atomic uint64_t *)(void *)to, value, memory_order_release);
    if (!has_moved(lane))
        return false;
    emu_lane_count_put(lane, 8);
    emu_lane_leave(lane);
    return true;
}

/* The processor's instruction where there is one that needs no old value. */
static inline void change(const struct emu_amo *a, void *word)
{
    _Atomic uint64_t *w = word;

    if (a->flags & EMU_AMO_32BIT) {
        emu_amo_apply_shared(a, word);
        return;
    }
    switch (a->op) {
    case EMU_AMO_ADD:
        atomic_fetch_add(w, a->operand1);
        break;
    case EMU_AMO_AND:
        atomic_fetch_and(w, a->operand1);
        break;
    case EMU_AMO_OR:
        atomic_fetch_or(w, a->operand1);
        break;
    case EMU_AMO_XOR:
        atomic_fetch_xor(w, a->operand1);
        break;
    default:
        emu_amo_apply_shared(a, word);
    }
}

static inline bool amo(struct emu_lane *lane, unsigned op, uint64_t addr, uint64_t operand1, uint64_t operand2,
                       uint64_t *old_out)
{
    struct emu_amo a = { .op = (uint8_t)(op - GNII_LAUNCH_AMO),
                         .operand1 = operand1,
                         .operand2 = operand2,
                         .flags = (op & GNII_LAUNCH_32BIT) ? EMU_AMO_32BIT : 0 };
    uint64_t width_bytes = emu_amo_word_bytes(&a);
    uint64_t old = 0;
    uint8_t *word = emu_lane_enter(lane, addr, width_bytes, true);

    if (!word)
        return false;
    if (!old_out)
        change(&a, word);
    else
        old = emu_amo_apply_shared(&a, word);
    if (!has_moved(lane))
        return false;
    if (old_out) {
        *old_out = old;
        emu_lane_count_get(lane, width_bytes, emu_amo_operand_bytes(&a));
    } else {
        emu_lane_count_put(lane, width_bytes);
    }
    emu_lane_leave(lane);
    return true;
}

static inline bool operate(struct emu_lane *lane, unsigned op, uint64_t addr, uint64_t arg1, uint64_t arg2,
                           uint64_t *old_out)
{
    switch (op) {
    case GNII_LAUNCH_PUT:
        return arg2 <= GNII_LAUNCH_BYTES_MAX && put(lane, addr, (const void *)(uintptr_t)arg1, arg2);
    case GNII_LAUNCH_GET:
        return arg2 <= GNII_LAUNCH_BYTES_MAX && get(lane, addr, (void *)(uintptr_t)arg1, arg2);
    case GNII_LAUNCH_FLAG:
        return flag(lane, addr, arg1);
    default:
        return amo(lane, op, addr, arg1, arg2, old_out);
    }
}

/* All in one function: the calls would be a fifth of an 8-byte put. */
__attribute__((flatten)) enum gnii_launch_result gnii_launch(struct gnii_launch_target *t, unsigned op,
                                                             uint64_t remote_addr, uint64_t arg1, uint64_t arg2,
                                                             uint64_t *old_out)
{
    struct gnii_nic *nic = t->nic;
    bool is_done;

    emu_biased_lock(&nic->lock);
    if (__builtin_expect(t->lane.epoch == 0, 0) && !find_lane(t)) {
        emu_biased_unlock(&nic->lock);
        return GNII_LAUNCH_POST;
    }
    if (op != GNII_LAUNCH_GET)
        emu_lane_expect(&t->lane, remote_addr, false);
    is_done = operate(&t->lane, op, remote_addr, arg1, arg2, old_out);
    /* Whatever it was, look anew next time; unless it was only emunic's turn. */
    if (__builtin_expect(!is_done, 0) && t->lane.window && nic->port.direct && emu_direct_is_open(nic->port.direct))
        t->lane.epoch = 0;
    emu_biased_unlock(&nic->lock);
    return is_done ? GNII_LAUNCH_DONE : GNII_LAUNCH_POST;
}
