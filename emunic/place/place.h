/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On which processors emunic should run: near its device and away from its ranks' cores.
 *
 * A pure function of what is there. It never makes things worse than the kernel's scheduler would: where ranks may run
 * everywhere, or fill what there is, it says that the scheduler shall choose. In this order, as far as there is any:
 *
 *   1. cores that no rank is bound to; of them those near the device
 *   2. hardware threads that no rank is bound to (their siblings are a rank's); the same
 *   3. what is near the device, without what ranks fill; that is what has at least as many ranks as cores
 *
 * Near: what is near the device; without a device the NUMA nodes that ranks are bound to, whose memory emunic moves.
 * A core of its own goes before nearness: who shares a core with a rank that polls waits for the scheduler, who is far
 * waits for memory.
 * What is near a device is taken only if it is more than one core and ranks do not outnumber cores, so emunic is never
 * tied to a core that somebody else may take.
 *
 * Sets are hwloc's. Thread rule: any, on different objects.
 */
#ifndef EMUNIC_PLACE_PLACE_H
#define EMUNIC_PLACE_PLACE_H

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define EMU_PLACE_WHY_MAX 160

/* Processes that may all use the same processors. */
struct emu_place_ranks {
    hwloc_const_bitmap_t set;
    unsigned n;
};

struct emu_place_view {
    hwloc_topology_t topology;           /* may be NULL while nobody is bound and nothing is near */
    hwloc_const_bitmap_t allowed;        /* what emunic was given when it started */
    const char *device;                  /* for the reason; NULL: none */
    hwloc_const_bitmap_t near;           /* processors near the device; NULL or empty: not known */
    const struct emu_place_ranks *ranks; /* their sets are not empty and differ from each other */
    unsigned n_ranks;                    /* entries */
};

/**
 * Choose.
 *
 * @param[out] set_out  A part of `allowed`; empty: the scheduler shall choose from all of it.
 * @param[out] why      One line for people, EMU_PLACE_WHY_MAX.
 * @return 0 or -ENOMEM.
 */
int emu_place_choose(const struct emu_place_view *view, hwloc_bitmap_t set_out, char why[EMU_PLACE_WHY_MAX]);

/* Would emu_place_choose() look at the topology? */
bool emu_place_needs_topology(const struct emu_place_view *view);

/*
 * Of this host, with cores and NUMA nodes but without devices, which would take five times as long. 0, negative errno.
 */
int emu_place_topology(hwloc_topology_t *topology_out);

/**
 * Processors near a network device, as the kernel tells.
 *
 * @param[in]  name     As libfabric's domains are called: an RDMA device or an interface, with or without "-dgram"
 * or the
 *                      like behind it.
 * @param[in]  folder   "/sys/class", or another one in tests.
 * @param[out] near_out Set when 0 is returned.
 * @return 0; -ENOENT: no such device, or it is nowhere in particular (as virtual ones are).
 */
int emu_place_near(const char *folder, const char *name, hwloc_bitmap_t near_out);

/* "0-3,8". 0; -EINVAL: not such a list. */
int emu_place_parse(const char *list, hwloc_bitmap_t set_out);

/* What a process may run on; 0: this thread. 0, negative errno (-ESRCH: it has ended). */
int emu_place_affinity(pid_t pid, hwloc_bitmap_t set_out);
/* Where this thread runs from now on. 0, negative errno. */
int emu_place_bind(hwloc_const_bitmap_t set);

#endif
