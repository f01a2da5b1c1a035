/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker of uGNI (worker.h): FMA and block puts and gets, atomics, messages in mailboxes. It survives errors and the
 * end of emunic (GNI_CDM_MODE_ERR_NO_KILL). Environment: as the libraries want it, and PMI_GNI_PTAG, PMI_GNI_COOKIE.
 */
#include <stdlib.h>
#include <string.h>

#include <gni_pub.h>

#include "tests/kills/worker.h"

#define CQ_ENTRIES 1024u
#define CREDITS    4u

static struct {
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t src_cq;
    gni_cq_handle_t dst_cq;
    gni_mem_handle_t region_hndl;
    gni_mem_handle_t buffers_hndl;
    gni_mem_handle_t mail_hndl;
    uint8_t *mail;
    unsigned mailbox_bytes;
    gni_ep_handle_t eps[RANKS_MAX];
    gni_post_descriptor_t posts[OPS_MAX];
} g;

static void must(struct worker *w, gni_return_t rc, const char *what)
{
    worker_must(w, rc == GNI_RC_SUCCESS, what);
}

static uint32_t number(const char *variable)
{
    const char *text = getenv(variable);

    return text ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

static gni_mem_handle_t registered(struct worker *w, uint8_t *mem, uint64_t bytes)
{
    gni_mem_handle_t hndl = { 0 };

    must(w, GNI_MemRegister(g.nic, (uint64_t)(uintptr_t)mem, bytes, g.dst_cq, GNI_MEM_READWRITE, UINT32_MAX, &hndl),
         "GNI_MemRegister");
    return hndl;
}

static void open_gni(struct worker *w)
{
    gni_smsg_attr_t attr = { .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                             .mbox_maxcredit = CREDITS,
                             .msg_maxsize = MESSAGE_BYTES };
    uint32_t nic_addr = 0;

    must(w,
         GNI_CdmCreate(w->rank, (uint8_t)number("PMI_GNI_PTAG"), number("PMI_GNI_COOKIE"), GNI_CDM_MODE_ERR_NO_KILL,
                       &g.cdm),
         "GNI_CdmCreate");
    must(w, GNI_CdmAttach(g.cdm, 0, &nic_addr, &g.nic), "GNI_CdmAttach");
    must(w, GNI_CqCreate(g.nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &g.src_cq), "GNI_CqCreate");
    must(w, GNI_CqCreate(g.nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &g.dst_cq), "GNI_CqCreate");
    must(w, GNI_SmsgBufferSizeNeeded(&attr, &g.mailbox_bytes), "GNI_SmsgBufferSizeNeeded");
    g.mailbox_bytes = (g.mailbox_bytes + 63) & ~63u;
    g.mail = aligned_alloc(PAGE, (RANKS_MAX * g.mailbox_bytes + PAGE - 1) & ~(PAGE - 1));
    worker_must(w, g.mail != NULL, "memory");
    memset(g.mail, 0, RANKS_MAX * g.mailbox_bytes);
    g.region_hndl = registered(w, w->region, REGION_BYTES);
    g.buffers_hndl = registered(w, w->buffers, BUFFERS_BYTES);
    g.mail_hndl = registered(w, g.mail, RANKS_MAX * g.mailbox_bytes);
    w->line->place[0] = nic_addr;
    w->line->place[1] = (uint64_t)(uintptr_t)w->region;
    w->line->place[2] = g.region_hndl.qword1;
    w->line->place[3] = g.region_hndl.qword2;
    w->line->place[4] = (uint64_t)(uintptr_t)g.mail;
    w->line->place[5] = g.mail_hndl.qword1;
    w->line->place[6] = g.mail_hndl.qword2;
}

/* Of whose place that is, for messages of `peer`. */
static gni_smsg_attr_t mailbox(const uint64_t *place, unsigned peer)
{
    return (gni_smsg_attr_t){
        .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
        .msg_buffer = (void *)(uintptr_t)place[4],
        .buff_size = g.mailbox_bytes,
        .mem_hndl = { place[5], place[6] },
        .mbox_offset = peer * g.mailbox_bytes,
        .mbox_maxcredit = CREDITS,
        .msg_maxsize = MESSAGE_BYTES,
    };
}

static void connect_gni(struct worker *w, unsigned peer)
{
    const uint64_t own_place[PLACE_WORDS] = {
        [4] = (uint64_t)(uintptr_t)g.mail, [5] = g.mail_hndl.qword1, [6] = g.mail_hndl.qword2
    };
    gni_smsg_attr_t own = mailbox(own_place, peer);
    gni_smsg_attr_t other = mailbox(w->places[peer], w->rank);

    must(w, GNI_EpCreate(g.nic, g.src_cq, &g.eps[peer]), "GNI_EpCreate");
    must(w, GNI_EpBind(g.eps[peer], (uint32_t)w->places[peer][0], peer), "GNI_EpBind");
    must(w, GNI_EpSetEventData(g.eps[peer], peer, w->rank), "GNI_EpSetEventData");
    must(w, GNI_SmsgInit(g.eps[peer], &own, &other), "GNI_SmsgInit");
}

static void disconnect_gni(struct worker *w, unsigned peer)
{
    must(w, GNI_EpDestroy(g.eps[peer]), "GNI_EpDestroy");
    g.eps[peer] = NULL;
}

static bool post_gni(struct worker *w, struct op *op)
{
    const uint64_t *place = w->places[op->target];
    gni_post_descriptor_t *d = &g.posts[op - w->ops];
    bool is_block = op->kind != ADD && (op->length > PAGE || emu_random_below(&w->random, 2) == 0);
    gni_return_t rc;

    *d = (gni_post_descriptor_t){
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT | (emu_random_below(&w->random, 4) ? 0 : GNI_CQMODE_REMOTE_EVENT),
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)op->buffer,
        .local_mem_hndl = g.buffers_hndl,
        .remote_addr = place[1] + op->offset,
        .remote_mem_hndl = { place[2], place[3] },
        .length = op->length,
        .amo_cmd = GNI_FMA_ATOMIC_FADD,
        .first_operand = 1,
    };
    d->type = op->kind == ADD ? GNI_POST_AMO :
              op->kind == PUT ? (is_block ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT) :
              is_block        ? GNI_POST_RDMA_GET :
                                GNI_POST_FMA_GET;
    rc = is_block ? GNI_PostRdma(g.eps[op->target], d) : GNI_PostFma(g.eps[op->target], d);
    if (rc != GNI_RC_SUCCESS && rc != GNI_RC_ERROR_RESOURCE && !worker_may_fail(w, op->target))
        worker_finding(w, "a post of type %d to %u gives %s", (int)d->type, op->target, gni_err_str[rc]);
    return rc == GNI_RC_SUCCESS;
}

static bool send_gni(struct worker *w, unsigned peer, void *message)
{
    gni_return_t rc = GNI_SmsgSendWTag(g.eps[peer], NULL, 0, message, MESSAGE_BYTES, peer, (uint8_t)peer);

    if (rc != GNI_RC_SUCCESS && rc != GNI_RC_NOT_DONE && rc != GNI_RC_ERROR_RESOURCE && !worker_may_fail(w, peer))
        worker_finding(w, "a message to %u gives %s", peer, gni_err_str[rc]);
    return rc == GNI_RC_SUCCESS;
}

/* False: the NIC has gone. Behind all that was under way its queues give one error after the other, of no post. */
static bool take_completion(struct worker *w, gni_cq_entry_t entry, gni_return_t rc)
{
    gni_post_descriptor_t *done = NULL;
    ptrdiff_t which;

    if (GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG) {
        unsigned peer = GNI_CQ_GET_MSG_ID(entry);

        if (peer >= w->n_ranks)
            worker_finding(w, "a completion of message %u", peer);
        else
            worker_sent(w, peer, rc == GNI_RC_SUCCESS);
        return true;
    }
    rc = GNI_GetCompleted(g.src_cq, entry, &done);
    which = done - g.posts;
    if (!done && worker_may_fail(w, w->rank))
        return false;
    if (!done || which < 0 || which >= (ptrdiff_t)OPS_MAX || !w->ops[which].in_use)
        worker_finding(w, "a completion of what was not posted, %s", gni_err_str[rc]);
    else
        worker_completed(w, &w->ops[which], rc == GNI_RC_SUCCESS);
    return true;
}

static void take_messages(struct worker *w, unsigned peer)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;
    gni_return_t rc;

    while ((rc = GNI_SmsgGetNextWTag(g.eps[peer], &message, &tag)) == GNI_RC_SUCCESS) {
        worker_received(w, peer, message);
        must(w, GNI_SmsgRelease(g.eps[peer]), "GNI_SmsgRelease");
        tag = GNI_SMSG_ANY_TAG;
    }
    if (rc != GNI_RC_NOT_DONE && !worker_may_fail(w, peer))
        worker_finding(w, "GNI_SmsgGetNextWTag for %u gives %s", peer, gni_err_str[rc]);
}

static void progress_gni(struct worker *w)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(g.src_cq, &entry)) == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR) {
        if (!take_completion(w, entry, rc))
            return;
    }
    worker_must(w, rc == GNI_RC_NOT_DONE, "GNI_CqGetEvent");
    rc = GNI_RC_SUCCESS;
    for (unsigned i = 0; i < CQ_ENTRIES && rc != GNI_RC_NOT_DONE; i++) /* a dead producer leaves an error */
        rc = GNI_CqGetEvent(g.dst_cq, &entry);
    for (unsigned peer = 0; peer < w->n_ranks; peer++) {
        if (w->is_connected[peer])
            take_messages(w, peer);
    }
}

int main(int argc, char **argv)
{
    static const struct backend backend = {
        .open = open_gni,
        .connect = connect_gni,
        .disconnect = disconnect_gni,
        .post = post_gni,
        .send = send_gni,
        .progress = progress_gni,
    };

    return worker_main(argc, argv, &backend);
}
