/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the reference dialect of Portals reads of a launcher: PTL_MY_RID, the rank; PTL_NIDMAP and PTL_PIDMAP, one
 * number per rank, separated by colons. The process id of a rank is its number, as emunic gives it for PTL_PID_ANY.
 *
 * Each rank carries its own copy on its stack, and the kernel takes no string of 128 KiB. So no map is longer than
 * MAP_ROOM, which is that of some 6000 ranks; larger jobs get none of the three. Source: spec/portals3.md 4.11.
 */
#include "mpi-shim/rank/portals_maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi-shim/pmi/src/nidmap.h"

enum { MAP_ROOM = 32768 };

/* "0:1:2" of `numbers`, or of 0, 1, 2 ... without; malloc-ed. NULL: too long, or no memory. */
static char *write_map(const int *numbers, int n)
{
    char *text = malloc(MAP_ROOM);
    size_t used = 0;

    for (int i = 0; text && i < n; i++) {
        used += (size_t)snprintf(text + used, MAP_ROOM - used, "%s%d", i ? ":" : "", numbers ? numbers[i] : i);
        if (used >= MAP_ROOM) {
            free(text);
            return NULL;
        }
    }
    return text;
}

static bool has_own(void)
{
    return getenv("PTL_MY_RID") || getenv("PTL_NIDMAP") || getenv("PTL_PIDMAP");
}

static int set_all(uint32_t rank, const char *nid_map, const char *pid_map)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", rank);
    if (setenv("PTL_MY_RID", number, 1) < 0 || setenv("PTL_NIDMAP", nid_map, 1) < 0 ||
        setenv("PTL_PIDMAP", pid_map, 1) < 0)
        return -errno;
    return 0;
}

int emu_rank_set_portals_maps(uint32_t rank)
{
    const char *text = getenv("EMUNIC_NIDS");
    char *nid_map, *pid_map;
    int *nids;
    int n, r;

    if (has_own() || !text || pmii_nids_parse(text, &nids, &n) < 0)
        return 0;
    nid_map = write_map(nids, n);
    pid_map = write_map(NULL, n);
    free(nids);
    r = nid_map && pid_map && rank < (uint32_t)n ? set_all(rank, nid_map, pid_map) : 0;
    free(nid_map);
    free(pid_map);
    return r;
}
