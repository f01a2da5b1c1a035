/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where emunic would run here, beside no ranks: what `emunic serve` and `emunic run` do, asked of the same function.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "emunic/doctor/doctor.h"
#include "emunic/place/place.h"

struct sets {
    hwloc_bitmap_t allowed;
    hwloc_bitmap_t near;
    hwloc_bitmap_t chosen;
};

static int look(const char *device, struct sets *s, struct emu_doctor_placement *placement_out)
{
    struct emu_place_view view = { .allowed = s->allowed, .near = s->near, .device = device };
    int r = emu_place_affinity(0, s->allowed);

    if (r < 0)
        return r;
    if (emu_place_near("/sys/class", device, s->near) < 0)
        hwloc_bitmap_zero(s->near);
    placement_out->is_near_elsewhere = !hwloc_bitmap_iszero(s->near) && !hwloc_bitmap_intersects(s->near, s->allowed);
    hwloc_bitmap_list_snprintf(placement_out->near_set, sizeof(placement_out->near_set), s->near);
    if (emu_place_needs_topology(&view))
        r = emu_place_topology(&view.topology);
    if (r == 0)
        r = emu_place_choose(&view, s->chosen, placement_out->why);
    if (r == 0)
        hwloc_bitmap_list_snprintf(placement_out->processors, sizeof(placement_out->processors),
                                   hwloc_bitmap_iszero(s->chosen) ? s->allowed : s->chosen);
    if (view.topology)
        hwloc_topology_destroy(view.topology);
    return r;
}

int emu_doctor_placement(const char *device, struct emu_doctor_placement *placement_out)
{
    struct sets s = { .allowed = hwloc_bitmap_alloc(), .near = hwloc_bitmap_alloc(), .chosen = hwloc_bitmap_alloc() };
    int r;

    *placement_out = (struct emu_doctor_placement){ .is_near_elsewhere = false };
    r = s.allowed && s.near && s.chosen ? look(device, &s, placement_out) : -ENOMEM;
    hwloc_bitmap_free(s.allowed);
    hwloc_bitmap_free(s.near);
    hwloc_bitmap_free(s.chosen);
    return r;
}
