/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker of shared message queues (worker.h): two instances on each of two nodes, one life each. Instances 0 and 2
 * connect the nodes. Messages go to the instances of the other node.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <gni_pub.h>

#include "tests/kills/worker.h"

#define PER_NODE     2u
#define CQ_ENTRIES   1024u
#define DO_NOT_BLOCK UINT32_MAX
#define ATTRS_BYTES  (16u + 32u * PER_NODE) /* of a node with so many instances */
#define IS_LINKED    11u                    /* in place[] of an instance that connects: it has */

static struct {
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_msgq_handle_t msgq;
    gni_ep_handle_t eps[RANKS_MAX];
} m;

static void must(struct worker *w, gni_return_t rc, const char *what)
{
    worker_must(w, rc == GNI_RC_SUCCESS, what);
}

static uint32_t number(const char *variable)
{
    const char *text = getenv(variable);

    return text ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

static int receive(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    struct worker *w = cb_data;

    if (snd_id >= w->n_ranks || msg_tag != w->rank)
        worker_finding(w, "a message of %u on %u for %u", snd_id, snd_pe, msg_tag);
    else
        worker_received(w, snd_id, msg);
    return 1;
}

static bool connects(unsigned rank)
{
    return rank % PER_NODE == 0;
}

/* Only when all instances of the node have come. */
static void tell_attributes(struct worker *w, uint32_t other_node)
{
    gni_msgq_ep_attr_t attrs;
    uint32_t bytes = 0;
    gni_return_t rc;

    while ((rc = GNI_MsgqGetConnAttrs(m.msgq, other_node, &attrs, &bytes)) == GNI_RC_PERMISSION_ERROR)
        sched_yield();
    must(w, rc, "GNI_MsgqGetConnAttrs");
    worker_must(w, bytes == ATTRS_BYTES, "the size of attributes");
    memcpy((void *)&w->line->place[1], &attrs, bytes);
}

/* Nodes have the numbers of EMUNIC_NID: 0 and 1. */
static void open_msgq(struct worker *w)
{
    gni_msgq_attr_t attrs = { .max_msg_sz = GNI_MSGQ_MSG_SZ_MAX,
                              .smsg_q_sz = 8,
                              .rcv_pool_sz = 4,
                              .num_msgq_eps = 2,
                              .nloc_insts = PER_NODE,
                              .rcv_cq_sz = 64 };
    uint32_t nic_addr = 0;
    gni_cdm_handle_t cdm;

    must(w,
         GNI_CdmCreate(w->rank, (uint8_t)number("PMI_GNI_PTAG"), number("PMI_GNI_COOKIE"), GNI_CDM_MODE_ERR_NO_KILL,
                       &cdm),
         "GNI_CdmCreate");
    must(w, GNI_CdmAttach(cdm, 0, &nic_addr, &m.nic), "GNI_CdmAttach");
    must(w, GNI_CqCreate(m.nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &m.cq), "GNI_CqCreate");
    must(w, GNI_MsgqInit(m.nic, receive, w, m.cq, &attrs, &m.msgq), "GNI_MsgqInit");
    w->line->place[0] = nic_addr;
    w->line->place[IS_LINKED] = 0;
    if (connects(w->rank))
        tell_attributes(w, !nic_addr);
}

static void connect_msgq(struct worker *w, unsigned peer)
{
    uint32_t nid = (uint32_t)w->places[peer][0];
    gni_msgq_ep_attr_t attrs;

    if (peer / PER_NODE == w->rank / PER_NODE)
        return;
    if (connects(w->rank) && connects(peer)) {
        memset(&attrs, 0, sizeof(attrs));
        memcpy(&attrs, &w->places[peer][1], ATTRS_BYTES);
        must(w, GNI_MsgqConnect(m.msgq, nid, &attrs), "GNI_MsgqConnect");
        atomic_store(&w->line->place[IS_LINKED], 1);
    }
    must(w, GNI_EpCreate(m.nic, m.cq, &m.eps[peer]), "GNI_EpCreate");
    must(w, GNI_EpBind(m.eps[peer], nid, peer), "GNI_EpBind");
}

static void disconnect_msgq(struct worker *w, unsigned peer)
{
    if (m.eps[peer])
        must(w, GNI_EpDestroy(m.eps[peer]), "GNI_EpDestroy");
    m.eps[peer] = NULL;
}

static bool send_msgq(struct worker *w, unsigned peer, void *message)
{
    gni_return_t rc;

    if (!m.eps[peer] || !atomic_load(&w->board->lines[w->rank / PER_NODE * PER_NODE].place[IS_LINKED]))
        return false;
    rc = GNI_MsgqSend(m.msgq, m.eps[peer], NULL, 0, message, MESSAGE_BYTES, peer, (uint8_t)peer);
    if (rc != GNI_RC_SUCCESS && rc != GNI_RC_NOT_DONE && !worker_may_fail(w, peer))
        worker_finding(w, "a message to %u gives %s", peer, gni_err_str[rc]);
    return rc == GNI_RC_SUCCESS;
}

/* False: the NIC has gone. Behind all that was under way its queue gives one error after the other, of no message. */
static bool take_completion(struct worker *w, gni_cq_entry_t entry, gni_return_t rc)
{
    bool is_of_message = GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_MSGQ && GNI_CQ_GET_MSG_ID(entry) < w->n_ranks;

    if (is_of_message)
        worker_sent(w, GNI_CQ_GET_MSG_ID(entry), rc == GNI_RC_SUCCESS);
    else if (rc != GNI_RC_TRANSACTION_ERROR || !worker_may_fail(w, w->rank))
        worker_finding(w, "an entry that is of no message");
    return is_of_message;
}

static void progress_msgq(struct worker *w)
{
    gni_return_t rc = GNI_MsgqProgress(m.msgq, DO_NOT_BLOCK);
    gni_cq_entry_t entry;

    if (rc != GNI_RC_SUCCESS && rc != GNI_RC_NOT_DONE && !worker_may_fail(w, w->rank))
        worker_must(w, false, "GNI_MsgqProgress");
    while ((rc = GNI_CqGetEvent(m.cq, &entry)) == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR) {
        if (!take_completion(w, entry, rc))
            return;
    }
    worker_must(w, rc == GNI_RC_NOT_DONE, "GNI_CqGetEvent");
}

int main(int argc, char **argv)
{
    static const struct backend backend = {
        .open = open_msgq,
        .connect = connect_msgq,
        .disconnect = disconnect_msgq,
        .send = send_msgq,
        .progress = progress_msgq,
    };

    return worker_main(argc, argv, &backend);
}
