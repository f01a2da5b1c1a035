/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and gets of memory that its owner has exposed, for message layers: by lanes (emunic/client/lane.h), past
 * entries, descriptors and queues.
 *
 * What a put into an entry with all of a window's memory would be, which an MPI library on the machine would have had:
 * the same bytes cross the same links. But no processor of the host has to match it, and the owner's interface is not
 * locked.
 */
#include <portals/portals3.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/client/lane.h"
#include "libportals/src/interface.h"
#include "libportals/src/message_layer.h"

#define TRIES 64u /* for a moment in which nobody sends something here */

struct p3_reach {
    struct emu_lane lane;
    struct emu_lane_target name;
    uint32_t ni;
};

/* ---- the owner ---- */

/* False: not now, or with *is_over never. */
static bool expose(struct p3_ni *ni, uint64_t start, uint64_t length_bytes, struct p3_exposed *out, bool *is_over)
{
    bool may_adopt;
    bool is_found;

    emu_portals_hold(&ni->p);
    may_adopt = ni->p.ni->n_open == 0;
    is_found = emu_regions_find(&ni->p.regions, start, length_bytes, may_adopt, &out->domain, &out->generation);
    emu_portals_release(&ni->p);
    *is_over = is_found || may_adopt;
    return is_found;
}

bool p3_expose(ptl_handle_ni_t handle, void *start, ptl_size_t length_bytes, struct p3_exposed *exposed_out)
{
    bool is_found = false;
    bool is_over = false;

    for (unsigned i = 0; !is_over && i < TRIES; i++) {
        struct p3_ni *ni = p3_lock_ni(handle);

        if (!ni)
            return false;
        exposed_out->nid = ni->p.port.nid;
        is_found = expose(ni, (uint64_t)(uintptr_t)start, length_bytes, exposed_out, &is_over);
        p3_unlock_ni(ni);
        if (!is_over)
            sched_yield();
    }
    return is_found;
}

/* ---- others ---- */

struct p3_reach *p3_reach_open(ptl_handle_ni_t handle, const struct p3_exposed *exposed)
{
    struct p3_reach *reach;

    if (p3_ni_check(handle) != P3_OK)
        return NULL;
    reach = aligned_alloc(64, (sizeof(*reach) + 63) & ~(size_t)63);
    if (!reach)
        return NULL;
    memset(reach, 0, sizeof(*reach));
    reach->ni = handle;
    reach->name = (struct emu_lane_target){ .nid = exposed->nid,
                                            .mdh = exposed->domain,
                                            .generation = exposed->generation,
                                            .handle_flags = EMU_HANDLE_OFFSET };
    return reach;
}

void p3_reach_close(struct p3_reach *reach)
{
    free(reach);
}

/* Runs when a lane is missing or did not serve. */
static __attribute__((noinline)) bool find_lane(struct p3_ni *ni, struct p3_reach *reach)
{
    if (ni->p.port.direct)
        emu_direct_trim(ni->p.port.direct);
    if (!emu_lane_look_for(&ni->p.port, &reach->name, &reach->lane))
        return false;
    reach->lane.shift = 0; /* addresses are the owner's */
    return true;
}

/* The interface, locked, if there is a lane; else NULL. */
static inline struct p3_ni *begin(struct p3_reach *reach, uint64_t length_bytes)
{
    struct p3_ni *ni = length_bytes <= P3_REACH_BYTES ? p3_lock_ni(reach->ni) : NULL;

    if (!ni || reach->lane.epoch != 0 || find_lane(ni, reach))
        return ni;
    p3_unlock_ni(ni);
    return NULL;
}

#define FLAT __attribute__((flatten))

FLAT bool p3_reach_put(struct p3_reach *reach, uint64_t address, const void *data, ptl_size_t length_bytes)
{
    struct p3_ni *ni = begin(reach, length_bytes);
    bool is_done;

    if (!ni)
        return false;
    is_done = emu_lane_put(&reach->lane, address, data, length_bytes, EMU_LANE_NO_EVENT);
    p3_unlock_ni(ni);
    return is_done;
}

FLAT bool p3_reach_get(struct p3_reach *reach, uint64_t address, void *data, ptl_size_t length_bytes)
{
    struct p3_ni *ni = begin(reach, length_bytes);
    bool is_done;

    if (!ni)
        return false;
    is_done = emu_lane_get(&reach->lane, address, data, length_bytes, EMU_LANE_NO_EVENT);
    p3_unlock_ni(ni);
    return is_done;
}
