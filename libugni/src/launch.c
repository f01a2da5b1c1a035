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
    nic->launches = !nic->is_gemini;
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

/* Takes the lock and sees to a lane. False: there is none, and no lock is held. */
static inline bool begin(struct gnii_launch_target *t)
{
    emu_biased_lock(&t->nic->lock);
    if (__builtin_expect(t->lane.epoch != 0, 1) || find_lane(t))
        return true;
    emu_biased_unlock(&t->nic->lock);
    return false;
}

static inline enum gnii_launch_result end(struct gnii_launch_target *t, bool is_done)
{
    emu_biased_unlock(&t->nic->lock);
    return is_done ? GNII_LAUNCH_DONE : GNII_LAUNCH_POST;
}

/* Each operation is one function: the calls would be a fifth of an 8-byte put. */
#define FLAT __attribute__((flatten))

FLAT enum gnii_launch_result gnii_launch_put(struct gnii_launch_target *t, uint64_t remote_addr, const void *data,
                                             uint64_t len_bytes)
{
    if (len_bytes > GNII_LAUNCH_BYTES_MAX || !begin(t))
        return GNII_LAUNCH_POST;
    return end(t, emu_lane_put(&t->lane, remote_addr, data, len_bytes, EMU_LANE_NO_EVENT));
}

FLAT enum gnii_launch_result gnii_launch_get(struct gnii_launch_target *t, uint64_t remote_addr, void *data,
                                             uint64_t len_bytes)
{
    if (len_bytes > GNII_LAUNCH_BYTES_MAX || !begin(t))
        return GNII_LAUNCH_POST;
    return end(t, emu_lane_get(&t->lane, remote_addr, data, len_bytes, EMU_LANE_NO_EVENT));
}

/* After the data, for whoever looks at the word. */
FLAT enum gnii_launch_result gnii_launch_flag(struct gnii_launch_target *t, uint64_t remote_addr, uint64_t value)
{
    const struct emu_lane_message message = { .flag = value };

    if (!begin(t))
        return GNII_LAUNCH_POST;
    return end(t, emu_lane_put_message(&t->lane, remote_addr, &message, sizeof(value), EMU_LANE_NO_EVENT));
}

static inline struct emu_amo amo_of(unsigned op, uint64_t operand1, uint64_t operand2)
{
    return (struct emu_amo){ .op = (uint8_t)(op - GNII_LAUNCH_AMO),
                             .operand1 = operand1,
                             .operand2 = operand2,
                             .flags = (op & GNII_LAUNCH_32BIT) ? EMU_AMO_32BIT : 0 };
}

FLAT enum gnii_launch_result gnii_launch_amo(struct gnii_launch_target *t, unsigned op, uint64_t remote_addr,
                                             uint64_t operand1, uint64_t operand2)
{
    const struct emu_amo amo = amo_of(op, operand1, operand2);

    if (!begin(t))
        return GNII_LAUNCH_POST;
    return end(t, emu_lane_amo(&t->lane, remote_addr, &amo, NULL, EMU_LANE_NO_EVENT));
}

FLAT enum gnii_launch_result gnii_launch_fetching_amo(struct gnii_launch_target *t, unsigned op, uint64_t remote_addr,
                                                      uint64_t operand1, uint64_t operand2, uint64_t *old_out)
{
    const struct emu_amo amo = amo_of(op, operand1, operand2);

    if (!begin(t))
        return GNII_LAUNCH_POST;
    return end(t, emu_lane_amo(&t->lane, remote_addr, &amo, old_out, EMU_LANE_NO_EVENT));
}

void *gnii_launch_window(struct gnii_launch_target *t, uint64_t remote_addr, uint64_t len_bytes)
{
    struct gnii_nic *nic = t->nic;
    uint8_t *at = NULL;

    emu_biased_lock(&nic->lock);
    if (t->lane.epoch != 0 || find_lane(t))
        at = emu_lane_enter(&t->lane, remote_addr, len_bytes, true);
    if (at)
        emu_lane_leave(&t->lane);
    emu_biased_unlock(&nic->lock);
    return at;
}

uint32_t gnii_launch_yield_ns(const struct gnii_launch_target *t)
{
    return t->nic->port.table->yield_ns;
}
