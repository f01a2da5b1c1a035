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

#include "emunic/client/lane.h"
#include "libugni/src/handle_target.h"
#include "libugni/src/ugni.h"

struct gnii_launch_target {
    struct emu_lane lane;
    struct gnii_nic *nic; /* counted */
    struct emu_lane_target name;
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
    return !atomic_load_explicit(&t->nic->is_closing, memory_order_relaxed) &&
           emu_lane_look_for(&t->nic->port, &t->name, &t->lane);
}

static inline bool put(struct emu_lane *lane, uint64_t addr, const void *data, uint64_t len_bytes)
{
    return emu_lane_put(lane, addr, data, len_bytes, EMU_LANE_NO_EVENT);
}

static inline bool get(struct emu_lane *lane, uint64_t addr, void *data, uint64_t len_bytes)
{
    return emu_lane_get(lane, addr, data, len_bytes, EMU_LANE_NO_EVENT);
}

/* After the data, for whoever looks at the word. */
static inline bool flag(struct emu_lane *lane, uint64_t addr, uint64_t value)
{
    const struct emu_lane_message message = { .flag = value };

    return emu_lane_put_message(lane, addr, &message, sizeof(value), EMU_LANE_NO_EVENT);
}

static inline bool amo(struct emu_lane *lane, unsigned op, uint64_t addr, uint64_t operand1, uint64_t operand2,
                       uint64_t *old_out)
{
    struct emu_amo a = { .op = (uint8_t)(op - GNII_LAUNCH_AMO),
                         .operand1 = operand1,
                         .operand2 = operand2,
                         .flags = (op & GNII_LAUNCH_32BIT) ? EMU_AMO_32BIT : 0 };

    return emu_lane_amo(lane, addr, &a, old_out, EMU_LANE_NO_EVENT);
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
    emu_biased_unlock(&nic->lock);
    return is_done ? GNII_LAUNCH_DONE : GNII_LAUNCH_POST;
}
