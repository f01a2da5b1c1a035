/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: requests to emunic, which alone decides who meets whom (daemon/datagram_match.c).
 *
 * Polling is cheap: a line of the port's segment tells how many datagrams are finished and changes with every change,
 * so a test or probe that cannot have news asks nobody. A blocking call sleeps on that line without a lock. The peer's
 * data are copied into the program's buffer by the call that reports COMPLETED, never before.
 *
 * A thread in GNI_PostdataProbeWaitById that finds a datagram which its owner has just cancelled waits a moment more:
 * the owner collects it with its next call, and UCX hangs when the thread reports it nevertheless.
 *
 * Loss of the NIC ends every datagram: a probe finds those that are outstanding, their test says ERROR.
 * Source: spec/ugni.md 4.5.
 */
#include <errno.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/client/virtual_port.h"
#include "libugni/src/rc.h"
#include "libugni/src/ugni.h"

#define FOR_EVER   ((uint32_t)-1)
#define NO_ID      (~0ull)
#define COLLECT_NS 50000000ull /* time for an owner to collect what it has cancelled */

/* ---- post ---- */

/* In virtual time a command sends it, in the order of time. */
static void send_datagram(const struct gnii_ep *ep, const struct emu_msg_datagram *d)
{
    struct emu_port *port = &ep->nic->port;
    struct emu_cmd *cmd = port->times ? emu_port_command(port, 0, NULL) : NULL;

    if (!cmd)
        return;
    cmd->op = EMU_OP_DATAGRAM;
    cmd->remote_nid = ep->is_bound ? ep->remote_addr : port->nid;
    cmd->length_bytes = d->length_bytes;
    cmd->operand1 = ep->key;
    emu_port_publish(port);
}

static gni_return_t post_datagram(struct gnii_ep *ep, const struct emu_msg_datagram *d, void *out_buf)
{
    struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_POST, .datagram = *d };
    int r;

    msg.datagram.ep = ep->key;
    if (ep->is_bound) {
        msg.datagram.remote_nid = ep->remote_addr;
        msg.datagram.remote_instance = ep->remote_id;
    } else {
        msg.datagram.flags |= EMU_DATAGRAM_WILDCARD;
    }
    r = emu_port_request(&ep->nic->port, &msg);
    if (r != 0)
        return gnii_rc(GNII_CALL_CREATE, r);
    ep->has_datagram = true;
    ep->datagram_id = d->id;
    ep->datagram_has_id = (d->flags & EMU_DATAGRAM_HAS_ID) != 0;
    ep->datagram_out = out_buf;
    ep->datagram_room_bytes = d->room_bytes;
    ep->datagram_was_pending = false;
    send_datagram(ep, d);
    return GNI_RC_SUCCESS;
}

/* The datagram lacks its data. */
static gni_return_t check_and_post(gni_ep_handle_t ep_hndl, const void *in_data, void *out_buf,
                                   struct emu_msg_datagram *d)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc;

    if (!ep || (!in_data && d->length_bytes > 0) || (!out_buf && d->room_bytes > 0))
        return GNI_RC_INVALID_PARAM;
    if (d->length_bytes > GNI_DATAGRAM_MAXSIZE || d->room_bytes > GNI_DATAGRAM_MAXSIZE)
        return GNI_RC_SIZE_ERROR;
    if (d->length_bytes > 0)
        memcpy(d->data, in_data, d->length_bytes);
    emu_biased_lock(&ep->nic->lock);
    rc = post_datagram(ep, d, out_buf);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

gni_return_t GNI_EpPostData(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len, void *out_buf, uint16_t buf_size)
{
    struct emu_msg_datagram d = { .length_bytes = data_len, .room_bytes = buf_size };

    return check_and_post(ep_hndl, in_data, out_buf, &d);
}

gni_return_t GNI_EpPostDataWId(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len, void *out_buf,
                               uint16_t buf_size, uint64_t datagram_id)
{
    struct emu_msg_datagram d = {
        .id = datagram_id, .flags = EMU_DATAGRAM_HAS_ID, .length_bytes = data_len, .room_bytes = buf_size
    };

    if (datagram_id == NO_ID)
        return GNI_RC_INVALID_PARAM;
    return check_and_post(ep_hndl, in_data, out_buf, &d);
}

/* ---- test ---- */

static uint32_t news_of(struct gnii_nic *nic)
{
    return atomic_load_explicit(&nic->port.segment->datagram_news, memory_order_acquire);
}

struct question {
    struct gnii_ep *ep;
    uint64_t id;
    bool asks_id;
};

struct answer {
    gni_post_state_t state;
    uint32_t remote_addr;
    uint32_t remote_id;
};

static bool is_about(const struct question *q)
{
    const struct gnii_ep *ep = q->ep;

    return ep->has_datagram && ep->datagram_has_id == q->asks_id && (!q->asks_id || ep->datagram_id == q->id);
}

/* NIC lock held. SUCCESS with an answer (perhaps PENDING), or the code of the call. */
static gni_return_t ask(const struct question *q, struct answer *answer)
{
    struct gnii_ep *ep = q->ep;
    struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_TEST,
                           .datagram = { .ep = ep->key, .id = q->id, .flags = q->asks_id ? EMU_DATAGRAM_HAS_ID : 0 } };
    uint32_t news;
    int r;

    if (!is_about(q))
        return GNI_RC_NO_MATCH;
    news = news_of(ep->nic);
    if (ep->datagram_was_pending && ep->datagram_news == news && !gnii_nic_is_lost(ep->nic)) {
        answer->state = GNI_POST_PENDING;
        return GNI_RC_SUCCESS;
    }
    r = emu_port_request(&ep->nic->port, &msg);
    if (r == -ENETDOWN) {
        gnii_nic_tell_loss(ep->nic);
        ep->has_datagram = false;
        answer->state = GNI_POST_ERROR;
        return GNI_RC_SUCCESS;
    }
    if (r != 0) {
        ep->has_datagram = false; /* collected before, or too large for the buffer */
        return gnii_rc(GNII_CALL_PLAIN, r);
    }
    answer->state = (gni_post_state_t)msg.datagram.state;
    answer->remote_addr = msg.datagram.remote_nid;
    answer->remote_id = msg.datagram.remote_instance;
    ep->datagram_was_pending = answer->state == GNI_POST_PENDING || answer->state == GNI_POST_REMOTE_DATA;
    ep->datagram_news = news;
    if (ep->datagram_was_pending)
        return GNI_RC_SUCCESS;
    ep->has_datagram = false;
    if (answer->state == GNI_POST_COMPLETED && msg.datagram.length_bytes > 0 &&
        msg.datagram.length_bytes <= ep->datagram_room_bytes)
        memcpy(ep->datagram_out, msg.datagram.data, msg.datagram.length_bytes);
    return GNI_RC_SUCCESS;
}

static gni_return_t hand_over(const struct answer *answer, gni_post_state_t *post_state, uint32_t *remote_addr,
                              uint32_t *remote_id)
{
    *post_state = answer->state;
    if (answer->state == GNI_POST_COMPLETED) {
        if (remote_addr)
            *remote_addr = answer->remote_addr;
        if (remote_id)
            *remote_id = answer->remote_id;
    }
    return GNI_RC_SUCCESS;
}

static gni_return_t test(struct question *q, gni_post_state_t *post_state, uint32_t *remote_addr, uint32_t *remote_id)
{
    struct answer answer;
    gni_return_t rc;

    if (!q->ep || !post_state)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&q->ep->nic->lock);
    rc = ask(q, &answer);
    emu_biased_unlock(&q->ep->nic->lock);
    if (rc == GNI_RC_SUCCESS && answer.state == GNI_POST_PENDING &&
        emu_port_relax(&q->ep->nic->port, (uintptr_t)q->ep)) {
        emu_biased_lock(&q->ep->nic->lock);
        rc = ask(q, &answer);
        emu_biased_unlock(&q->ep->nic->lock);
    }
    if (rc != GNI_RC_SUCCESS)
        return rc;
    return hand_over(&answer, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataTest(gni_ep_handle_t ep_hndl, gni_post_state_t *post_state, uint32_t *remote_addr,
                                uint32_t *remote_id)
{
    struct question q = { .ep = gnii_ep_find(ep_hndl) };

    return test(&q, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataTestById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, gni_post_state_t *post_state,
                                    uint32_t *remote_addr, uint32_t *remote_id)
{
    struct question q = { .ep = gnii_ep_find(ep_hndl), .id = datagram_id, .asks_id = true };

    if (datagram_id == NO_ID)
        return GNI_RC_INVALID_PARAM;
    return test(&q, post_state, remote_addr, remote_id);
}

/* ---- waiting ---- */

static uint64_t deadline_of(uint32_t timeout_ms)
{
    return timeout_ms == FOR_EVER ? UINT64_MAX : emu_clock_ns() + (uint64_t)timeout_ms * 1000000;
}

/* What a blocking call holds on to. */
struct waiter {
    struct gnii_wait wait;
    struct gnii_nic *nic; /* counted, or NULL */
    struct gnii_ep *ep;   /* counted, or NULL */
};

static void give_back(void *arg)
{
    struct waiter *w = arg;

    if (w->ep)
        gnii_ep_put(w->ep);
    if (w->nic)
        gnii_nic_put(w->nic);
}

/* Sleeps until the port's datagram news differ from `seen`. No lock held. */
static int wait_for_news(const struct waiter *w, struct gnii_nic *nic, uint32_t seen, uint64_t deadline_ns)
{
    _Atomic uint32_t *word = &nic->port.segment->datagram_news;

    /* Pairs with the exchange in emunic: it changes the news before it looks whether somebody sleeps. */
    atomic_store_explicit(&nic->port.segment->datagram_waits, 1, memory_order_seq_cst);
    if (atomic_load_explicit(word, memory_order_seq_cst) != seen || atomic_load(&nic->is_closing))
        return 0;
    return gnii_wait_sleep(&w->wait, nic, &word, &seen, 1, deadline_ns);
}

static gni_return_t wait_final(const struct waiter *w, const struct question *q, uint64_t deadline_ns,
                               struct answer *answer)
{
    struct gnii_nic *nic = q->ep->nic;

    for (;;) {
        uint32_t seen = news_of(nic);
        gni_return_t rc = GNI_RC_INVALID_STATE;
        int r;

        emu_biased_lock(&nic->lock);
        /* Another thread may have destroyed the end point meanwhile: then it has no datagram. */
        if (!atomic_load(&nic->is_closing))
            rc = ask(q, answer);
        emu_biased_unlock(&nic->lock);
        if (rc != GNI_RC_SUCCESS)
            return rc;
        if (answer->state != GNI_POST_PENDING && answer->state != GNI_POST_REMOTE_DATA)
            return GNI_RC_SUCCESS;
        r = wait_for_news(w, nic, seen, deadline_ns);
        if (r == -ETIMEDOUT)
            return GNI_RC_TIMEOUT;
    }
}

static gni_return_t wait_datagram(gni_ep_handle_t ep_hndl, struct question *q, uint32_t timeout,
                                  gni_post_state_t *post_state, uint32_t *remote_addr, uint32_t *remote_id)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    uint64_t deadline_ns = deadline_of(timeout);
    struct waiter w = { .nic = NULL };
    struct answer answer;

    if (!post_state || timeout == 0)
        return GNI_RC_INVALID_PARAM;
    gnii_wait_begin(&w.wait, give_back, &w);
    w.ep = gnii_object_get(GNII_KIND_EP, ep_hndl);
    q->ep = w.ep;
    if (w.ep)
        rc = wait_final(&w, q, deadline_ns, &answer);
    gnii_wait_end(&w.wait);
    return rc == GNI_RC_SUCCESS ? hand_over(&answer, post_state, remote_addr, remote_id) : rc;
}

gni_return_t GNI_EpPostDataWait(gni_ep_handle_t ep_hndl, uint32_t timeout, gni_post_state_t *post_state,
                                uint32_t *remote_addr, uint32_t *remote_id)
{
    struct question q = { .ep = NULL };

    return wait_datagram(ep_hndl, &q, timeout, post_state, remote_addr, remote_id);
}

gni_return_t GNI_EpPostDataWaitById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, uint32_t timeout,
                                    gni_post_state_t *post_state, uint32_t *remote_addr, uint32_t *remote_id)
{
    struct question q = { .id = datagram_id, .asks_id = true };

    if (datagram_id == NO_ID)
        return GNI_RC_INVALID_PARAM;
    return wait_datagram(ep_hndl, &q, timeout, post_state, remote_addr, remote_id);
}

/* ---- probe ---- */

/* After the loss of the NIC whatever is outstanding has failed. */
static int probe_lost(struct gnii_nic *nic, bool asks_id, struct emu_msg_datagram *found)
{
    const struct gnii_ep *ep;

    gnii_nic_tell_loss(nic);
    LIST_FOREACH(ep, &nic->eps, link) {
        if (!ep->has_datagram || (asks_id && !ep->datagram_has_id))
            continue;
        *found = (struct emu_msg_datagram){ .id = ep->datagram_id,
                                            .ep = ep->key,
                                            .state = EMU_DATAGRAM_ERROR,
                                            .remote_nid = ep->is_bound ? ep->remote_addr : EMU_NID_NONE,
                                            .remote_instance = ep->remote_id };
        return 0;
    }
    return -ENETDOWN;
}

/* 0 found, EMU_OUTCOME_NO_MATCH, negative errno. NIC lock held. */
static int probe(struct gnii_nic *nic, bool asks_id, struct emu_msg_datagram *found)
{
    struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_PROBE, .datagram = { .flags = asks_id ? EMU_DATAGRAM_HAS_ID : 0 } };
    int r = -ENETDOWN;

    if (!gnii_nic_is_lost(nic)) {
        if (atomic_load_explicit(&nic->port.segment->datagram_ready, memory_order_acquire) == 0)
            return EMU_OUTCOME_NO_MATCH;
        r = emu_port_request(&nic->port, &msg);
    }
    if (r == -ENETDOWN)
        return probe_lost(nic, asks_id, found);
    *found = msg.datagram;
    return r;
}

static gni_return_t probe_once(gni_nic_handle_t nic_hndl, bool asks_id, struct emu_msg_datagram *found)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    int r;

    if (!nic)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&nic->lock);
    r = probe(nic, asks_id, found);
    emu_biased_unlock(&nic->lock);
    if (r == EMU_OUTCOME_NO_MATCH && emu_port_relax_aside(&nic->port, (uintptr_t)nic)) {
        emu_biased_lock(&nic->lock);
        r = probe(nic, asks_id, found);
        emu_biased_unlock(&nic->lock);
    }
    return gnii_rc(GNII_CALL_FIND_DATAGRAM, r);
}

gni_return_t GNI_PostDataProbe(gni_nic_handle_t nic_hndl, uint32_t *remote_addr, uint32_t *remote_id)
{
    struct emu_msg_datagram found;
    gni_return_t rc;

    if (!remote_addr || !remote_id)
        return GNI_RC_INVALID_PARAM;
    rc = probe_once(nic_hndl, false, &found);
    if (rc == GNI_RC_SUCCESS) {
        *remote_addr = found.remote_nid;
        *remote_id = found.remote_instance;
    }
    return rc;
}

gni_return_t GNI_PostDataProbeById(gni_nic_handle_t nic_hndl, uint64_t *datagram_id)
{
    struct emu_msg_datagram found;
    gni_return_t rc;

    if (!datagram_id)
        return GNI_RC_INVALID_PARAM;
    rc = probe_once(nic_hndl, true, &found);
    if (rc == GNI_RC_SUCCESS)
        *datagram_id = found.id;
    return rc;
}

/* Cancelled by somebody who still has the end point, and so the time to collect it. NIC lock held. */
static bool may_be_collected_soon(const struct gnii_nic *nic, const struct emu_msg_datagram *found)
{
    const struct gnii_ep *ep;

    if (found->state != EMU_DATAGRAM_TERMINATED)
        return false;
    LIST_FOREACH(ep, &nic->eps, link) {
        if (ep->key == found->ep)
            return ep->has_datagram;
    }
    return false;
}

/* One look. SUCCESS with *id_out, NOT_DONE with until when to sleep at most, or the code to answer. */
static gni_return_t probe_with_patience(struct gnii_nic *nic, uint64_t *patience_ns, uint64_t *id_out)
{
    struct emu_msg_datagram found;
    bool is_early = false;
    int r;

    emu_biased_lock(&nic->lock);
    r = atomic_load(&nic->is_closing) ? -ENETDOWN : probe(nic, true, &found);
    if (r == 0)
        is_early = may_be_collected_soon(nic, &found);
    emu_biased_unlock(&nic->lock);
    if (r < 0)
        return GNI_RC_INVALID_STATE;
    if (!is_early) {
        *patience_ns = UINT64_MAX;
        if (r != 0)
            return GNI_RC_NOT_DONE;
    } else if (*patience_ns == UINT64_MAX) {
        *patience_ns = emu_clock_ns() + COLLECT_NS;
        return GNI_RC_NOT_DONE;
    } else if (emu_clock_ns() < *patience_ns) {
        return GNI_RC_NOT_DONE;
    }
    *id_out = found.id;
    return GNI_RC_SUCCESS;
}

static gni_return_t probe_until(const struct waiter *w, uint64_t deadline_ns, uint64_t *datagram_id)
{
    uint64_t patience_ns = UINT64_MAX;

    for (;;) {
        uint32_t seen = news_of(w->nic);
        gni_return_t rc = probe_with_patience(w->nic, &patience_ns, datagram_id);

        if (rc != GNI_RC_NOT_DONE)
            return rc;
        if (wait_for_news(w, w->nic, seen, patience_ns < deadline_ns ? patience_ns : deadline_ns) == -ETIMEDOUT &&
            emu_clock_ns() >= deadline_ns)
            return GNI_RC_TIMEOUT;
    }
}

static gni_return_t probe_wait(const struct waiter *w, uint32_t timeout_ms, uint64_t *datagram_id)
{
    struct emu_msg_datagram found;
    int r;

    if (timeout_ms != 0)
        return probe_until(w, deadline_of(timeout_ms), datagram_id);
    emu_biased_lock(&w->nic->lock);
    r = atomic_load(&w->nic->is_closing) ? -ENETDOWN : probe(w->nic, true, &found);
    emu_biased_unlock(&w->nic->lock);
    if (r == 0)
        *datagram_id = found.id;
    return gnii_rc(GNII_CALL_LAST_LOOK, r);
}

gni_return_t GNI_PostdataProbeWaitById(gni_nic_handle_t nic_hndl, uint32_t timeout, uint64_t *datagram_id)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct waiter w = { .ep = NULL };

    if (!datagram_id)
        return GNI_RC_INVALID_PARAM;
    gnii_wait_begin(&w.wait, give_back, &w);
    w.nic = gnii_object_get(GNII_KIND_NIC, nic_hndl);
    if (w.nic)
        rc = probe_wait(&w, timeout, datagram_id);
    gnii_wait_end(&w.wait);
    return rc;
}

/* ---- cancel ---- */

static gni_return_t cancel(gni_ep_handle_t ep_hndl, uint64_t id, uint32_t flags)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_CANCEL, .datagram = { .id = id, .flags = flags } };
    int r = EMU_OUTCOME_NO_MATCH;

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    emu_virtual_port_catch_up(&ep->nic->port);
    emu_biased_lock(&ep->nic->lock);
    msg.datagram.ep = ep->key;
    if (ep->has_datagram)
        r = emu_port_request(&ep->nic->port, &msg);
    emu_biased_unlock(&ep->nic->lock);
    return gnii_rc(GNII_CALL_FIND_DATAGRAM, r);
}

gni_return_t GNI_EpPostDataCancel(gni_ep_handle_t ep_hndl)
{
    return cancel(ep_hndl, 0, EMU_DATAGRAM_ANY_ID);
}

gni_return_t GNI_EpPostDataCancelById(gni_ep_handle_t ep_hndl, uint64_t datagram_id)
{
    if (datagram_id == NO_ID)
        return GNI_RC_INVALID_PARAM;
    return cancel(ep_hndl, datagram_id, EMU_DATAGRAM_HAS_ID);
}
