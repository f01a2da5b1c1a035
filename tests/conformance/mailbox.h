/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mailboxes for tests of short messages: memory full of old bytes, registered, described; and polling for a message.
 */
#ifndef TESTS_CONFORMANCE_MAILBOX_H
#define TESTS_CONFORMANCE_MAILBOX_H

#include <stdlib.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"

#define MB_PATIENCE_NS 30000000000ull

struct mailbox {
    uint8_t *mem; /* owned */
    size_t bytes;
    gni_nic_handle_t nic;
    gni_smsg_attr_t attr; /* what the peer gets */
};

static inline void mb_register(struct mailbox *mb, gni_cq_handle_t cq)
{
    gni_return_t rc = GNI_MemRegister(mb->nic, (uint64_t)(uintptr_t)mb->mem, mb->bytes, cq, GNI_MEM_READWRITE,
                                      (uint32_t)-1, &mb->attr.mem_hndl);

    if (rc != GNI_RC_SUCCESS) {
        fprintf(stderr, "mailbox: GNI_MemRegister: %s\n", gni_err_str[rc]);
        exit(1);
    }
}

/* The mailbox begins `skew` bytes behind a page boundary. cq may be NULL. Ends the program on failure. */
static inline void mb_open(struct mailbox *mb, gni_nic_handle_t nic, gni_cq_handle_t cq, gni_smsg_type_t type,
                           uint16_t credits, uint32_t maxsize, size_t skew)
{
    unsigned int needed = 0;

    memset(mb, 0, sizeof(*mb));
    mb->nic = nic;
    mb->attr.msg_type = type;
    mb->attr.mbox_maxcredit = credits;
    mb->attr.msg_maxsize = maxsize;
    if (GNI_SmsgBufferSizeNeeded(&mb->attr, &needed) != GNI_RC_SUCCESS)
        exit(1);
    mb->bytes = (needed + skew + 4095) & ~(size_t)4095;
    mb->mem = aligned_alloc(4096, mb->bytes);
    if (!mb->mem)
        exit(1);
    memset(mb->mem, 0xa5, mb->bytes);
    mb->attr.msg_buffer = mb->mem + skew;
    mb->attr.buff_size = needed;
    mb_register(mb, cq);
}

static inline void mb_close(struct mailbox *mb)
{
    GNI_MemDeregister(mb->nic, &mb->attr.mem_hndl);
    free(mb->mem);
    mb->mem = NULL;
}

/*
 * Polls until the end point answers something else than NOT_DONE; gives up after ten seconds with NOT_DONE.
 * answers: GNI_SmsgGetNextWTag
 */
static inline gni_return_t mb_next(gni_ep_handle_t ep, void **message, uint8_t *tag)
{
    uint64_t end_ns = emu_clock_ns() + MB_PATIENCE_NS;
    gni_return_t rc;

    do {
        rc = GNI_SmsgGetNextWTag(ep, message, tag);
    } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    return rc;
}

/* Takes good entries off until the queue says something else; returns how many. */
static inline unsigned mb_drain(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;
    unsigned taken = 0;

    while (GNI_CqGetEvent(cq, &entry) == GNI_RC_SUCCESS)
        taken++;
    return taken;
}

/*
 * Sends, polling the source queue and the mailbox's credits, until it is done or refused for another reason.
 * answers: GNI_SmsgSendWTag
 */
static inline gni_return_t mb_send(gni_ep_handle_t ep, gni_cq_handle_t src_cq, const void *header,
                                   uint32_t header_bytes, const void *data, uint32_t data_bytes, uint32_t msg_id,
                                   uint8_t tag)
{
    uint64_t end_ns = emu_clock_ns() + MB_PATIENCE_NS;
    gni_return_t rc;

    do {
        rc = GNI_SmsgSendWTag(ep, (void *)(uintptr_t)header, header_bytes, (void *)(uintptr_t)data, data_bytes, msg_id,
                              tag);
        if (rc == GNI_RC_NOT_DONE)
            mb_drain(src_cq);
    } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    return rc;
}

#endif
