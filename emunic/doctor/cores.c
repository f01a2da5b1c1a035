/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cores, caches and memory, as hwloc finds them. A container shows what it may use as `allowed`.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/yield_cost.h"
#include "emunic/doctor/doctor.h"

static const hwloc_obj_type_t data_caches[] = { HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                                HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE };

static unsigned count(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(topology, type);

    return n > 0 ? (unsigned)n : 0;
}

static void look_at_caches(hwloc_topology_t topology, struct emu_doctor_cores *cores)
{
    for (size_t i = 0; i < sizeof(data_caches) / sizeof(data_caches[0]); i++) {
        unsigned n = count(topology, data_caches[i]);
        hwloc_obj_t cache = n > 0 ? hwloc_get_obj_by_type(topology, data_caches[i], 0) : NULL;

        if (!cache || cores->n_caches == EMU_DOCTOR_CACHES_MAX)
            continue;
        cores->caches[cores->n_caches++] = (struct emu_doctor_cache){
            .level = (unsigned)i + 1,
            .n = n,
            .bytes = cache->attr->cache.size,
            .processors = (unsigned)hwloc_bitmap_weight(cache->cpuset),
        };
    }
}

int emu_doctor_cores(struct emu_doctor_cores *cores_out)
{
    hwloc_topology_t topology;
    hwloc_const_bitmap_t all;
    hwloc_bitmap_t mine;

    *cores_out = (struct emu_doctor_cores){ 0 };
    if (hwloc_topology_init(&topology) < 0)
        return -ENOMEM;
    if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0 ||
        hwloc_topology_load(topology) < 0) {
        hwloc_topology_destroy(topology);
        return errno ? -errno : -EIO;
    }
    all = hwloc_topology_get_topology_cpuset(topology);
    cores_out->packages = count(topology, HWLOC_OBJ_PACKAGE);
    cores_out->numa_nodes = count(topology, HWLOC_OBJ_NUMANODE);
    cores_out->cores = count(topology, HWLOC_OBJ_CORE);
    cores_out->processors = (unsigned)hwloc_bitmap_weight(all);
    cores_out->yield_ns = emu_yield_measure_ns();
    cores_out->memory_bytes = hwloc_get_root_obj(topology)->total_memory;
    mine = hwloc_bitmap_alloc();
    if (mine) {
        if (hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS) < 0)
            hwloc_bitmap_copy(mine, hwloc_topology_get_allowed_cpuset(topology));
        cores_out->allowed = (unsigned)hwloc_bitmap_weight(mine);
        hwloc_bitmap_list_snprintf(cores_out->allowed_set, sizeof(cores_out->allowed_set), mine);
        hwloc_bitmap_free(mine);
    }
    look_at_caches(topology, cores_out);
    hwloc_topology_destroy(topology);
    return mine ? 0 : -ENOMEM;
}
