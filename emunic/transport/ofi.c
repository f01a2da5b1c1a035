/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier over libfabric: reliable datagram endpoints with a completion queue each, an address table. Opening and
 * closing: ofi_open.c; paths: ofi_path.c; the question whether anybody listens: ofi_question.c.
 *
 * Memory registration modes: local registration, virtual addresses, the provider's keys and registration with the
 * endpoint are all served as the provider says; FI_MR_ALLOCATED is the caller's promise (memory of a region exists).
 *
 * Writes ask for FI_DELIVERY_COMPLETE. Where the target's provider is driven by hand, it answers when its emunic looks.
 * Removing a peer takes its address out; ofi_rxm keeps the connection.
 *
 * A connection to a peer takes a handshake of the gate first, so sending says -EAGAIN; libfabric makes an endpoint for
 * each try, so it is asked again only when there is news, or LOOK_AGAIN_NS later.
 */
#include "emunic/transport/ofi.h"

#include <assert.h>
#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/transport/provider.h"

#define POLL_MAX      32
#define LOOK_AGAIN_NS 5000000ull

static_assert(sizeof(struct sockaddr_storage) <= EMU_CARRIER_ADDRESS_MAX, "an address may be one of a socket");
static_assert(sizeof(struct fi_context2) <= sizeof(((struct emu_carrier_op *)NULL)->space),
              "room for the provider's words");

static void ofi_limits(struct emu_carrier *carrier, struct emu_carrier_limits *limits_out)
{
    struct ofi *o = (struct ofi *)carrier;

    *limits_out = (struct emu_carrier_limits){
        .provider = o->info->fabric_attr->prov_name,
        .domain = o->info->domain_attr->name ? o->info->domain_attr->name : "",
        .has_rma = o->has_rma,
        .fd = o->main.fd >= 0 ? o->epoll_fd : -1,
        .piece_bytes = o->info->ep_attr->max_msg_size,
    };
}

static int ofi_address(struct emu_carrier *carrier, void *address_out, uint32_t *length_out)
{
    struct ofi *o = (struct ofi *)carrier;
    size_t length = EMU_CARRIER_ADDRESS_MAX;
    int r;

    emu_ofi_enter(o);
    r = fi_getname(&o->main.ep->fid, address_out, &length);
    emu_ofi_leave();

    if (r == 0)
        *length_out = (uint32_t)length;
    return r;
}

static int ofi_resolve(struct emu_carrier *carrier, const char *node, const char *service, void *address_out,
                       uint32_t *length_out)
{
    struct ofi *o = (struct ofi *)carrier;
    struct fi_info *hints = emu_provider_hints();
    struct fi_info *list = NULL;
    int r;

    if (!hints)
        return -ENOMEM;
    hints->addr_format = o->info->addr_format;
    hints->fabric_attr->prov_name = strdup(o->info->fabric_attr->prov_name);
    r = hints->fabric_attr->prov_name ? fi_getinfo(EMU_PROVIDER_API, node, service, 0, hints, &list) : -ENOMEM;
    fi_freeinfo(hints);
    if (r < 0)
        return r == -FI_ENODATA ? -ENODATA : r;
    if (!list->dest_addr || list->dest_addrlen > EMU_CARRIER_ADDRESS_MAX) {
        r = -ENODATA;
    } else {
        memcpy(address_out, list->dest_addr, list->dest_addrlen);
        *length_out = (uint32_t)list->dest_addrlen;
    }
    fi_freeinfo(list);
    return r;
}

static int ofi_add(struct emu_carrier *carrier, const void *address, uint32_t length_bytes, uint64_t *peer_out)
{
    struct ofi *o = (struct ofi *)carrier;
    uint8_t copy[EMU_CARRIER_ADDRESS_MAX] = { 0 }; /* a provider reads as much as its kind of address has */
    struct ofi_peer *peer;
    int r;

    if (length_bytes > sizeof(copy))
        return -EINVAL;
    peer = calloc(1, sizeof(*peer));
    if (!peer)
        return -ENOMEM;
    peer->question_fd = -1;
    memcpy(copy, address, length_bytes);
    memcpy(&peer->address, copy, sizeof(peer->address));
    r = fi_av_insert(o->av, copy, 1, &peer->addr, 0, NULL);
    if (r != 1) {
        free(peer);
        return r < 0 ? r : -EINVAL;
    }
    peer->path = &o->main;
    o->main.n_users++;
    LIST_INSERT_HEAD(&o->peers, peer, link);
    *peer_out = (uint64_t)(uintptr_t)peer;
    return 0;
}

static void ofi_remove(struct emu_carrier *carrier, uint64_t peer_number)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = emu_ofi_peer(peer_number);

    peer->path->n_users--;
    fi_av_remove(o->av, &peer->addr, 1, 0);
    LIST_REMOVE(peer, link);
    emu_ofi_forget_question(peer);
    free(peer);
}

static int ofi_map(struct emu_carrier *carrier, void *addr, uint64_t length_bytes, uint32_t access, uint64_t wanted_key,
                   struct emu_carrier_memory *memory_out)
{
    struct ofi *o = (struct ofi *)carrier;
    uint64_t modes = (uint64_t)o->info->domain_attr->mr_mode;
    uint64_t flags = 0;
    struct fid_mr *mr;
    int r;

    *memory_out = (struct emu_carrier_memory){ .key = wanted_key, .base = (uint64_t)(uintptr_t)addr };
    if (!access && !(modes & FI_MR_LOCAL))
        return 0;
    if (modes & FI_MR_LOCAL)
        flags |= FI_SEND | FI_RECV | (o->has_rma ? FI_READ | FI_WRITE : 0);
    if (access & EMU_TRANSPORT_READ)
        flags |= FI_REMOTE_READ;
    if (access & EMU_TRANSPORT_WRITE)
        flags |= FI_REMOTE_WRITE;
    if (access && !o->has_rma)
        return 0;
    if (o->info->domain_attr->mr_key_size < 8)
        wanted_key &= (1ull << 8 * o->info->domain_attr->mr_key_size) - 1;
    r = fi_mr_reg(o->domain, addr, length_bytes, flags, 0, wanted_key, 0, &mr, NULL);
    if (r < 0)
        return r == -FI_ENOKEY ? -EEXIST : r;
    if (modes & FI_MR_ENDPOINT) {
        r = fi_mr_bind(mr, &o->main.ep->fid, 0);
        if (r == 0)
            r = fi_mr_enable(mr);
        if (r < 0) {
            fi_close(&mr->fid);
            return r;
        }
    }
    memory_out->handle = mr;
    memory_out->desc = fi_mr_desc(mr);
    memory_out->key = fi_mr_key(mr);
    if (!(modes & FI_MR_VIRT_ADDR))
        memory_out->base = 0;
    return 0;
}

static void ofi_unmap(struct emu_carrier *carrier, struct emu_carrier_memory *memory)
{
    struct fid_mr *mr = memory->handle;

    (void)carrier;
    if (mr)
        fi_close(&mr->fid);
    memory->handle = NULL;
}

static int ofi_receive(struct emu_carrier *carrier, struct emu_carrier_op *op, void *packet, uint32_t room_bytes,
                       void *desc)
{
    struct ofi *o = (struct ofi *)carrier;
    int r;

    emu_ofi_enter(o);
    r = (int)fi_recv(o->main.ep, packet, room_bytes, desc, FI_ADDR_UNSPEC, op);
    emu_ofi_leave();
    return r;
}

/* The gate, before libfabric may connect to a peer. */
struct before {
    uint64_t delays;
    uint64_t news;
};

/* False: there is no connection, and nothing has changed since libfabric was told so. */
static bool begin(const struct ofi *o, const struct ofi_peer *peer, struct before *before_out)
{
    if (o->gate) {
        before_out->delays = emu_gate_delays(o->gate);
        before_out->news = emu_gate_news(o->gate);
        if (peer->is_connecting && peer->seen_news == before_out->news && emu_clock_ns() < peer->look_at_ns)
            return false;
    }
    emu_ofi_enter(o);
    return true;
}

/* Returns r. */
static int end(const struct ofi *o, struct ofi_peer *peer, const struct before *before, int r)
{
    emu_ofi_leave();
    if (!o->gate)
        return r;
    peer->is_connecting = emu_gate_delays(o->gate) != before->delays;
    if (peer->is_connecting) {
        peer->seen_news = before->news;
        peer->look_at_ns = emu_clock_ns() + LOOK_AGAIN_NS;
    }
    return r;
}

static int ofi_send(struct emu_carrier *carrier, uint64_t peer_number, struct emu_carrier_op *op, const void *packet,
                    uint32_t length_bytes, void *desc)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = emu_ofi_peer(peer_number);
    struct before before;
    int r;

    if (!begin(o, peer, &before))
        return -EAGAIN;
    r = (int)fi_send(peer->path->ep, packet, length_bytes, desc, peer->addr, op);
    return end(o, peer, &before, r);
}

static int ofi_write(struct emu_carrier *carrier, uint64_t peer_number, struct emu_carrier_op *op,
                     const struct emu_carrier_move *move)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = emu_ofi_peer(peer_number);
    struct iovec local = { .iov_base = move->local, .iov_len = move->length_bytes };
    struct fi_rma_iov remote = { .addr = move->remote, .len = move->length_bytes, .key = move->key };
    void *desc = move->desc;
    struct fi_msg_rma msg = { .msg_iov = &local,
                              .desc = &desc,
                              .iov_count = 1,
                              .addr = peer->addr,
                              .rma_iov = &remote,
                              .rma_iov_count = 1,
                              .context = op };
    struct before before;
    int r;

    if (!begin(o, peer, &before))
        return -EAGAIN;
    r = (int)fi_writemsg(peer->path->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
    return end(o, peer, &before, r);
}

static int ofi_read(struct emu_carrier *carrier, uint64_t peer_number, struct emu_carrier_op *op,
                    const struct emu_carrier_move *move)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = emu_ofi_peer(peer_number);
    struct before before;
    int r;

    if (!begin(o, peer, &before))
        return -EAGAIN;
    r = (int)fi_read(peer->path->ep, move->local, move->length_bytes, move->desc, peer->addr, move->remote, move->key,
                     op);
    return end(o, peer, &before, r);
}

/* FI_ETRUNC is no errno. */
static int result_of(int fi_error)
{
    if (fi_error == FI_ETRUNC)
        return -EMSGSIZE;
    return fi_error > 0 && fi_error < FI_ERRNO_OFFSET ? -fi_error : -EIO;
}

/* Number of events; -1: none, and the queue is empty. */
static int poll_path(struct ofi_path *path, struct emu_carrier_event *events_out, int max)
{
    struct fi_cq_msg_entry entries[POLL_MAX];
    struct fi_cq_err_entry error = { 0 };
    ssize_t n = fi_cq_read(path->cq, entries, max < POLL_MAX ? (size_t)max : POLL_MAX);
    int n_events = 0;

    if (n > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (entries[i].op_context)
                events_out[n_events++] =
                    (struct emu_carrier_event){ .op = entries[i].op_context, .length_bytes = entries[i].len };
        }
        return n_events;
    }
    if (n != -FI_EAVAIL)
        return -1;
    if (fi_cq_readerr(path->cq, &error, 0) != 1 || !error.op_context)
        return 0;
    events_out[0] = (struct emu_carrier_event){ .op = error.op_context, .result = result_of(error.err) };
    return 1;
}

static int ofi_poll(struct emu_carrier *carrier, struct emu_carrier_event *events_out, int max)
{
    struct ofi *o = (struct ofi *)carrier;
    int n, n_events;

    emu_ofi_enter(o);
    n = poll_path(&o->main, events_out, max);
    n_events = n > 0 ? n : 0;
    for (struct ofi_path *path, **at = &o->main.next; (path = *at) && n_events < max;) {
        n = poll_path(path, events_out + n_events, max - n_events);
        n_events += n > 0 ? n : 0;
        if (n >= 0 || path->ep) {
            at = &path->next;
            continue;
        }
        *at = path->next;
        emu_ofi_close_path(path);
        free(path);
    }
    emu_ofi_leave();
    return n_events;
}

static bool ofi_may_sleep(struct emu_carrier *carrier)
{
    struct ofi *o = (struct ofi *)carrier;
    bool may_sleep = true;

    emu_ofi_enter(o);
    for (struct ofi_path *path = &o->main; path && may_sleep; path = path->next) {
        struct fid *fid = &path->cq->fid;

        may_sleep = path->fd >= 0 && path->ep && fi_trywait(o->fabric, &fid, 1) == 0;
    }
    emu_ofi_leave();
    return may_sleep;
}

static int ofi_verdict(struct emu_carrier *carrier, uint64_t peer_number, const char **reason_out)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = emu_ofi_peer(peer_number);
    int verdict = 0;

    if (o->gate && peer->is_connecting)
        verdict = emu_gate_verdict(o->gate, (const struct sockaddr *)&peer->address);
    *reason_out = emu_admit_reason(verdict);
    return verdict;
}

static void ofi_strangers(struct emu_carrier *carrier, struct emu_carrier_strangers *strangers_out)
{
    struct ofi *o = (struct ofi *)carrier;
    struct emu_gate_counts counts = { 0 };

    if (o->gate)
        emu_gate_counts(o->gate, &counts);
    *strangers_out = (struct emu_carrier_strangers){ .refused = counts.refused,
                                                     .error = counts.last_error,
                                                     .reason = emu_admit_reason(counts.last_error) };
    memcpy(strangers_out->address, counts.last, sizeof(strangers_out->address));
}

const struct emu_carrier_ops emu_ofi_ops = {
    .close = emu_ofi_close,
    .limits = ofi_limits,
    .address = ofi_address,
    .resolve = ofi_resolve,
    .add = ofi_add,
    .renew = emu_ofi_renew,
    .ask = emu_ofi_ask,
    .answer = emu_ofi_answer,
    .remove = ofi_remove,
    .map = ofi_map,
    .unmap = ofi_unmap,
    .receive = ofi_receive,
    .send = ofi_send,
    .write = ofi_write,
    .read = ofi_read,
    .poll = ofi_poll,
    .may_sleep = ofi_may_sleep,
    .verdict = ofi_verdict,
    .strangers = ofi_strangers,
};
