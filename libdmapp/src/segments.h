/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a remote triple to something that can be operated on.
 */
#ifndef LIBDMAPP_SEGMENTS_H
#define LIBDMAPP_SEGMENTS_H

#include "libdmapp/src/job.h"
#include "libdmapp/src/sheap.h"

/* A checked remote place. */
struct dmappi_place {
    uint64_t addr;  /* the owner's */
    uint64_t first; /* of the segment, the owner's addresses */
    uint64_t end;
    struct gnii_launch_target *target; /* borrowed, lives as long as the job; NULL: post only */
    const gni_mem_handle_t *handle;    /* borrowed likewise, or from the caller's descriptor */
    struct dmappi_peer *peer;          /* borrowed */
};

/* static_data.c: where the executable has its static data. 0, -ENOENT. */
int dmappi_find_data(uint64_t *addr_out, uint64_t *len_bytes_out);
/* Own segments. 0 or -errno. dmappi_heap_candidates() tells, in bits, which of the usual places are free here. */
uint32_t dmappi_heap_candidates(uint64_t bytes);
int dmappi_heap_make(uint64_t areas_bytes, uint64_t heap_bytes, uint32_t candidates);
int dmappi_segments_register(void);
void dmappi_segments_drop(void);
/* Opens the targets of all PEs. -ENOMEM. */
int dmappi_segments_connect(void);

/* What makes a descriptor ours. */
void dmappi_desc_seal(dmapp_seg_desc_t *desc);
/* A registration of this process that covers local memory. False: none. */
bool dmappi_local_handle(uint64_t addr, uint64_t len_bytes, gni_mem_handle_t *handle_out);

/* Rare cases of dmappi_resolve(): foreign descriptors, registered memory, freed blocks. */
dmapp_return_t dmappi_resolve_slowly(uint64_t addr, const dmapp_seg_desc_t *seg, dmapp_pe_t pe, uint64_t len_bytes,
                                     struct dmappi_place *place_out);

/* Is a byte of [offset, offset + len) of the heap in a block that was freed here? len > 0. */
static inline bool dmappi_is_freed(uint64_t offset, uint64_t len_bytes)
{
    uint64_t unit = offset >> DMAPPI_UNIT_SHIFT;
    uint64_t last = (offset + len_bytes - 1) >> DMAPPI_UNIT_SHIFT;

    for (; DMAPPI_UNLIKELY(unit / 64 != last / 64); unit = (unit | 63) + 1) {
        if (atomic_load_explicit(&dmappi_job.freed[unit / 64], memory_order_relaxed) >> (unit % 64) != 0)
            return true;
    }
    return (atomic_load_explicit(&dmappi_job.freed[unit / 64], memory_order_relaxed) >> (unit % 64) &
            (~0ull >> (63 - (last - unit)))) != 0;
}

/* Checks a remote triple. DMAPP_RC_SUCCESS, _INVALID_PARAM, _RESOURCE_ERROR. len_bytes > 0. */
static inline __attribute__((always_inline)) dmapp_return_t dmappi_resolve(const void *at, const dmapp_seg_desc_t *seg,
                                                                           dmapp_pe_t pe, uint64_t len_bytes,
                                                                           struct dmappi_place *place_out)
{
    const dmapp_seg_desc_t *heap = &dmappi_job.sheap_seg;
    uint64_t addr = (uint64_t)(uintptr_t)at;
    uint64_t offset = addr - (uint64_t)(uintptr_t)heap->addr;
    const struct dmappi_segment *s;
    struct dmappi_peer *peer;

    if (DMAPPI_UNLIKELY(!dmappi_is_up() || !seg || (unsigned)pe >= (unsigned)dmappi_job.npes))
        return DMAPP_RC_INVALID_PARAM;
    peer = &dmappi_job.peers[pe];
    s = &peer->seg[DMAPPI_SHEAP];
    if (DMAPPI_UNLIKELY(seg->flags != DMAPPI_MARK_SHEAP || seg->addr != heap->addr ||
                        seg->memhndl.qword2 != heap->memhndl.qword2 || offset >= s->len_bytes ||
                        len_bytes > s->len_bytes - offset || dmappi_is_freed(offset, len_bytes)))
        return dmappi_resolve_slowly(addr, seg, pe, len_bytes, place_out);
    *place_out = (struct dmappi_place){ .addr = s->addr + offset,
                                        .first = s->addr,
                                        .end = s->addr + s->len_bytes,
                                        .target = s->target,
                                        .handle = &s->handle,
                                        .peer = peer };
    return DMAPP_RC_SUCCESS;
}

#endif
