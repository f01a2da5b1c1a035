/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels of the message measurements: opened together, because everybody needs the attributes of the other ends. */
#include "tests/bench/gni_mailbox.h"

#include <stdlib.h>

static void open_end(struct ex_job *job, struct mailbox *box)
{
    unsigned int len_bytes;

    box->attr = (gni_smsg_attr_t){ .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                                   .mbox_maxcredit = MAILBOX_CREDITS,
                                   .msg_maxsize = MAILBOX_BYTES };
    EX_GNI(GNI_SmsgBufferSizeNeeded(&box->attr, &len_bytes));
    box->buffer = ex_alloc(len_bytes);
    EX_GNI(GNI_MemRegister(job->nic, (uint64_t)(uintptr_t)box->buffer, len_bytes, box->dst_cq, GNI_MEM_READWRITE,
                           (uint32_t)-1, &box->mem_hndl));
    box->attr.msg_buffer = box->buffer;
    box->attr.buff_size = len_bytes;
    box->attr.mem_hndl = box->mem_hndl;
}

void mailbox_open(struct ex_job *job, struct mailbox *box, const int *peers, const int *back, int n_boxes)
{
    gni_smsg_attr_t mine[MAILBOXES_MAX] = { 0 };
    gni_smsg_attr_t *all = ex_alloc(sizeof(mine) * (size_t)job->n_ranks);

    for (int i = 0; i < n_boxes; i++) {
        open_end(job, &box[i]);
        mine[i] = box[i].attr;
    }
    ex_allgather(job, mine, all, sizeof(mine));
    for (int i = 0; i < n_boxes; i++) {
        box[i].ep = ex_connect(job, box[i].src_cq, peers[i]);
        EX_GNI(GNI_SmsgInit(box[i].ep, &box[i].attr, &all[peers[i] * MAILBOXES_MAX + back[i]]));
    }
    free(all);
    ex_barrier();
}

void mailbox_close(struct ex_job *job, struct mailbox *box)
{
    ex_disconnect(box->ep, box->src_cq);
    EX_GNI(GNI_MemDeregister(job->nic, &box->mem_hndl));
    free(box->buffer);
}

bool mailbox_try_send(struct mailbox *box, uint64_t value)
{
    gni_return_t rc = GNI_SmsgSendWTag(box->ep, NULL, 0, &value, sizeof(value), 0, 0);

    EX_EXPECT(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE, "GNI_SmsgSendWTag: %s", gni_err_str[rc]);
    return rc == GNI_RC_SUCCESS;
}

bool mailbox_try_receive(struct mailbox *box, uint64_t *value_out)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *mail;
    gni_return_t rc = GNI_SmsgGetNextWTag(box->ep, &mail, &tag);

    if (rc == GNI_RC_NOT_DONE)
        return false;
    EX_GNI(rc);
    *value_out = *(uint64_t *)mail;
    EX_GNI(GNI_SmsgRelease(box->ep));
    return true;
}
