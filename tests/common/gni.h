/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short hands for tests of libugni: a NIC with queues on a node, a pair of bound end points, waiting for an entry.
 */
#ifndef TESTS_COMMON_GNI_H
#define TESTS_COMMON_GNI_H

#include <gni_pub.h>

#include "tests/common/fixture.h"

#define GX_BYTES 65536

/* One side: everything a transfer needs. */
struct gx_side {
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t src_cq;
    gni_cq_handle_t dst_cq;
    gni_ep_handle_t ep; /* bound to the other side */
    uint32_t nic_addr;
    uint32_t inst_id;
    uint8_t *mem; /* GX_BYTES, registered read-write with dst_cq */
    gni_mem_handle_t mem_hndl;
};

/* Attaches and makes queues and memory, but no end point. Ends the program on failure. */
void gx_open(struct gx_side *side, const struct fx *fx, uint32_t nid, uint32_t inst_id, uint32_t modes);
void gx_close(struct gx_side *side);
/* End points towards each other. */
void gx_connect(struct gx_side *a, struct gx_side *b);

/*
 * Polls until the queue answers something else than NOT_DONE; gives up after ten seconds with NOT_DONE.
 * answers: GNI_CqGetEvent
 */
gni_return_t gx_next(gni_cq_handle_t cq, gni_cq_entry_t *entry_out);

/* A put of `length` bytes from src to dst memory at the same offset; events as asked. */
gni_post_descriptor_t gx_put(const struct gx_side *from, const struct gx_side *to, uint64_t offset, uint64_t length,
                             uint16_t cq_mode);

/*
 * Takes the next entry of a source queue and its descriptor; returns what GNI_GetCompleted said.
 * answers: GNI_GetCompleted
 */
gni_return_t gx_complete(gni_cq_handle_t cq, gni_post_descriptor_t **descr_out);

#endif
