/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of transfers share: flavours, types, the three kinds of exported memory, patterns.
 */
#ifndef TESTS_CONFORMANCE_DMAPP_CASES_H
#define TESTS_CONFORMANCE_DMAPP_CASES_H

#include "tests/common/dmapp.h"

enum flavour { BLOCKING, NB, NBI, FLAVOURS };

static const dmapp_type_t types[] = { DMAPP_DQW, DMAPP_QW, DMAPP_DW, DMAPP_BYTE };
static const size_t bytes_of[] = { 16, 8, 4, 1 };

/* The neighbours in a ring of PEs. */
static inline dmapp_pe_t next_pe(void)
{
    return (dx_job.pe + 1) % dx_job.npes;
}

static inline dmapp_pe_t previous_pe(void)
{
    return (dx_job.pe + dx_job.npes - 1) % dx_job.npes;
}

/* Completes what a call of that flavour has started. */
static inline dmapp_return_t complete(enum flavour flavour, dmapp_syncid_handle_t *syncid)
{
    switch (flavour) {
    case NB:
        return dmapp_syncid_wait(syncid);
    case NBI:
        return dmapp_gsync_wait();
    default:
        return DMAPP_RC_SUCCESS;
    }
}

/* Bytes that depend on position and seed. */
static inline uint8_t pattern(uint64_t position, uint64_t seed)
{
    uint64_t x = (position + 1) * 0x9e3779b97f4a7c15ull ^ (seed + 1) * 0xbf58476d1ce4e5b9ull;

    return (uint8_t)(x >> 32 ^ x >> 11);
}

static inline void fill(void *memory, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)memory)[i] = pattern(i, seed);
}

static inline void expect(const void *memory, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const uint8_t *)memory)[i] != pattern(i, seed))
            fail_msg("byte %zu of %zu is 0x%02x, not 0x%02x", i, bytes, ((const uint8_t *)memory)[i], pattern(i, seed));
    }
}

static inline void expect_zero(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(((const uint8_t *)memory)[i], 0);
}

/* ---- exported memory of every kind, the same in each PE ---- */

enum kind { HEAP, DATA, REGISTERED, KINDS };

#define AREA_BYTES (256u << 10)

static _Alignas(64) uint8_t static_area[AREA_BYTES];
static void *heap_area;
static void *registered_area;
static dmapp_seg_desc_t registered_desc;

/* A neighbour's place as this PE addresses it. */
struct remote {
    uint8_t *addr;
    dmapp_seg_desc_t seg;
};

struct notice {
    dmapp_seg_desc_t desc;
};

/* All PEs tell their registered memory; by DMAPP itself, through a block of the heap. */
static struct notice *notices;

static inline void open_areas(void)
{
    heap_area = dx_alloc(AREA_BYTES);
    notices = dx_alloc(sizeof(*notices) * (size_t)dx_job.npes);
    memset(static_area, 0, sizeof(static_area));
    registered_area = calloc(1, AREA_BYTES + 24);
    assert_non_null(registered_area);
    /* Not aligned to anything but words. */
    assert_int_equal(dmapp_mem_register((uint8_t *)registered_area + 8, AREA_BYTES, &registered_desc),
                     DMAPP_RC_SUCCESS);
    for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++)
        assert_int_equal(dmapp_put(&notices[dx_job.pe].desc, &dx_job.sheap_seg, pe, &registered_desc,
                                   sizeof(registered_desc) / 8, DMAPP_QW),
                         DMAPP_RC_SUCCESS);
    dx_barrier();
}

static inline void close_areas(void)
{
    dx_barrier();
    assert_int_equal(dmapp_mem_unregister(&registered_desc), DMAPP_RC_SUCCESS);
    free(registered_area);
    dx_free(notices);
    dx_free(heap_area);
}

static inline struct remote remote_of(enum kind kind, dmapp_pe_t pe)
{
    switch (kind) {
    case HEAP:
        return (struct remote){ heap_area, dx_job.sheap_seg };
    case DATA:
        return (struct remote){ static_area, dx_job.data_seg };
    default:
        return (struct remote){ notices[pe].desc.addr, notices[pe].desc };
    }
}

/* The same memory as its owner sees it. */
static inline uint8_t *own_area(enum kind kind)
{
    return kind == HEAP ? heap_area : kind == DATA ? static_area : (uint8_t *)registered_area + 8;
}

#endif
