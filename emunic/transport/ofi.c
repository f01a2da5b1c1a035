/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier over libfabric: one reliable datagram endpoint, one completion queue for everything, an address table.
 *
 * Provider: the first in our order of preference (provider.c) or the one asked for; among its interfaces loopback comes
 * last and link-local addresses before it. First with remote memory access, else without. Memory registration modes:
 * local registration, virtual addresses, the provider's keys and registration with the endpoint are all served as the
 * provider says; FI_MR_ALLOCATED is the caller's promise (memory of a region exists).
 *
 * Writes ask for FI_DELIVERY_COMPLETE. Where the target's provider is driven by hand, it answers when its emunic looks.
 * Removing a peer takes its address out; ofi_rxm closes the connection then, and what was under way comes back with
 * errors.
 */
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/transport/carrier.h"
#include "emunic/transport/provider.h"
#include "emunic/transport/transport.h"

#define POLL_MAX 32

static_assert(sizeof(struct fi_context2) <= sizeof(((struct emu_carrier_op *)NULL)->space), "room for the provider's words");

struct ofi {
    struct emu_carrier carrier;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    int fd;
    bool has_rma;
};

/* ---- opening ---- */

static unsigned place_of(const struct fi_info *info)
{
    const char *name = info->domain_attr->name;

    if (name && strcmp(name, "lo") == 0)
        return 2;
    return info->addr_format == FI_SOCKADDR_IN6;
}

/* Is a before b? Equal ones stay in libfabric's order. */
static bool is_better(const struct fi_info *a, const struct fi_info *b)
{
    unsigned rank_a = emu_provider_rank(a->fabric_attr->prov_name);
    unsigned rank_b = emu_provider_rank(b->fabric_attr->prov_name);

    return rank_a != rank_b ? rank_a < rank_b : place_of(a) < place_of(b);
}

static int find_provider(const struct emu_transport_config *config, uint64_t caps, struct fi_info **info_out)
{
    struct fi_info *hints = emu_provider_hints();
    struct fi_info *list = NULL;
    struct fi_info *best = NULL;
    int r;

    if (!hints)
        return -ENOMEM;
    hints->caps = caps;
    if (config->provider) {
        hints->fabric_attr->prov_name = strdup(config->provider);
        if (!hints->fabric_attr->prov_name) {
            fi_freeinfo(hints);
            return -ENOMEM;
        }
    }
    r = fi_getinfo(EMU_PROVIDER_API, config->node, config->service, config->node || config->service ? FI_SOURCE : 0, hints,
                   &list);
    fi_freeinfo(hints);
    if (r < 0)
        return r == -FI_ENODATA ? -ENODATA : r;
    for (struct fi_info *info = list; info; info = info->next) {
        if (!info->fabric_attr->prov_name || !info->domain_attr || info->tx_attr->inject_size > info->ep_attr->max_msg_size ||
            info->ep_attr->max_msg_size < EMU_WIRE_PACKET_MAX)
            continue;
        if (!best || is_better(info, best))
            best = info;
    }
    *info_out = best ? fi_dupinfo(best) : NULL;
    fi_freeinfo(list);
    return *info_out ? 0 : -ENODATA;
}

static void ofi_close(struct emu_carrier *carrier)
{
    struct ofi *o = (struct ofi *)carrier;

    if (o->ep)
        fi_close(&o->ep->fid);
    if (o->cq)
        fi_close(&o->cq->fid);
    if (o->av)
        fi_close(&o->av->fid);
    if (o->domain)
        fi_close(&o->domain->fid);
    if (o->fabric)
        fi_close(&o->fabric->fid);
    if (o->info)
        fi_freeinfo(o->info);
    free(o);
}

static int open_queue(struct ofi *o)
{
    struct fi_cq_attr attr = { .size = 8192, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD };
    int r = fi_cq_open(o->domain, &attr, &o->cq, NULL);

    o->fd = -1;
    if (r == 0)
        return fi_control(&o->cq->fid, FI_GETWAIT, &o->fd);
    attr.wait_obj = FI_WAIT_NONE;
    return fi_cq_open(o->domain, &attr, &o->cq, NULL);
}

static int open_endpoint(struct ofi *o, const char **text_out)
{
    struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
    int r;

    *text_out = "fi_fabric";
    r = fi_fabric(o->info->fabric_attr, &o->fabric, NULL);
    if (r < 0)
        return r;
    *text_out = "fi_domain";
    r = fi_domain(o->fabric, o->info, &o->domain, NULL);
    if (r < 0)
        return r;
    *text_out = "fi_cq_open";
    r = open_queue(o);
    if (r < 0)
        return r;
    *text_out = "fi_av_open";
    r = fi_av_open(o->domain, &av_attr, &o->av, NULL);
    if (r < 0)
        return r;
    *text_out = "fi_endpoint";
    r = fi_endpoint(o->domain, o->info, &o->ep, NULL);
    if (r < 0)
        return r;
    r = fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV);
    if (r < 0)
        return r;
    r = fi_ep_bind(o->ep, &o->av->fid, 0);
    if (r < 0)
        return r;
    *text_out = "fi_enable";
    return fi_enable(o->ep);
}

/* ---- the carrier ---- */

static void ofi_limits(struct emu_carrier *carrier, struct emu_carrier_limits *limits_out)
{
    struct ofi *o = (struct ofi *)carrier;

    *limits_out = (struct emu_carrier_limits){
        .provider = o->info->fabric_attr->prov_name,
        .domain = o->info->domain_attr->name ? o->info->domain_attr->name : "",
        .has_rma = o->has_rma,
        .fd = o->fd,
        .piece_bytes = o->info->ep_attr->max_msg_size,
    };
}

static int ofi_address(struct emu_carrier *carrier, void *address_out, uint32_t *length_out)
{
    struct ofi *o = (struct ofi *)carrier;
    size_t length = EMU_CARRIER_ADDRESS_MAX;
    int r = fi_getname(&o->ep->fid, address_out, &length);

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
    fi_addr_t addr = FI_ADDR_UNSPEC;
    int r;

    if (length_bytes > sizeof(copy))
        return -EINVAL;
    memcpy(copy, address, length_bytes);
    r = fi_av_insert(o->av, copy, 1, &addr, 0, NULL);
    if (r != 1)
        return r < 0 ? r : -EINVAL;
    *peer_out = addr;
    return 0;
}

static void ofi_remove(struct emu_carrier *carrier, uint64_t peer)
{
    struct ofi *o = (struct ofi *)carrier;
    fi_addr_t addr = peer;

    fi_av_remove(o->av, &addr, 1, 0);
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
        r = fi_mr_bind(mr, &o->ep->fid, 0);
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

static int ofi_receive(struct emu_carrier *carrier, struct emu_carrier_op *op, void *packet, uint32_t room_bytes, void *desc)
{
    struct ofi *o = (struct ofi *)carrier;

    return (int)fi_recv(o->ep, packet, room_bytes, desc, FI_ADDR_UNSPEC, op);
}

static int ofi_send(struct emu_carrier *carrier, uint64_t peer, struct emu_carrier_op *op, const void *packet,
                    uint32_t length_bytes, void *desc)
{
    struct ofi *o = (struct ofi *)carrier;

    return (int)fi_send(o->ep, packet, length_bytes, desc, peer, op);
}

static int ofi_write(struct emu_carrier *carrier, uint64_t peer, struct emu_carrier_op *op, const void *data,
                     uint64_t length_bytes, void *desc, uint64_t to, uint64_t key)
{
    struct ofi *o = (struct ofi *)carrier;
    struct iovec local = { .iov_base = (void *)(uintptr_t)data, .iov_len = length_bytes };
    struct fi_rma_iov remote = { .addr = to, .len = length_bytes, .key = key };
    struct fi_msg_rma msg = { .msg_iov = &local, .desc = &desc, .iov_count = 1, .addr = peer, .rma_iov = &remote,
                              .rma_iov_count = 1, .context = op };

    return (int)fi_writemsg(o->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

static int ofi_read(struct emu_carrier *carrier, uint64_t peer, struct emu_carrier_op *op, void *data, uint64_t length_bytes,
                    void *desc, uint64_t from, uint64_t key)
{
    struct ofi *o = (struct ofi *)carrier;

    return (int)fi_read(o->ep, data, length_bytes, desc, peer, from, key, op);
}

/* FI_ETRUNC is no errno. */
static int result_of(int fi_error)
{
    if (fi_error == FI_ETRUNC)
        return -EMSGSIZE;
    return fi_error > 0 && fi_error < FI_ERRNO_OFFSET ? -fi_error : -EIO;
}

static int ofi_poll(struct emu_carrier *carrier, struct emu_carrier_event *events_out, int max)
{
    struct ofi *o = (struct ofi *)carrier;
    struct fi_cq_msg_entry entries[POLL_MAX];
    struct fi_cq_err_entry error = { 0 };
    ssize_t n = fi_cq_read(o->cq, entries, max < POLL_MAX ? (size_t)max : POLL_MAX);
    int n_events = 0;

    if (n > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (entries[i].op_context)
                events_out[n_events++] = (struct emu_carrier_event){ .op = entries[i].op_context,
                                                                     .length_bytes = entries[i].len };
        }
        return n_events;
    }
    if (n != -FI_EAVAIL)
        return n == -FI_EAGAIN || n == 0 ? 0 : (int)n;
    if (fi_cq_readerr(o->cq, &error, 0) != 1 || !error.op_context)
        return 0;
    events_out[0] = (struct emu_carrier_event){ .op = error.op_context, .result = result_of(error.err) };
    return 1;
}

static bool ofi_may_sleep(struct emu_carrier *carrier)
{
    struct ofi *o = (struct ofi *)carrier;
    struct fid *fid = &o->cq->fid;

    return o->fd >= 0 && fi_trywait(o->fabric, &fid, 1) == 0;
}

static const struct emu_carrier_ops ofi_ops = {
    .close = ofi_close,
    .limits = ofi_limits,
    .address = ofi_address,
    .resolve = ofi_resolve,
    .add = ofi_add,
    .remove = ofi_remove,
    .map = ofi_map,
    .unmap = ofi_unmap,
    .receive = ofi_receive,
    .send = ofi_send,
    .write = ofi_write,
    .read = ofi_read,
    .poll = ofi_poll,
    .may_sleep = ofi_may_sleep,
};

int emu_ofi_open(const struct emu_transport_config *config, struct emu_carrier **carrier_out, const char **text_out)
{
    struct ofi *o = calloc(1, sizeof(*o));
    int r;

    *text_out = "";
    if (!o)
        return -ENOMEM;
    o->carrier.ops = &ofi_ops;
    o->fd = -1;
    *text_out = "fi_getinfo";
    r = find_provider(config, FI_MSG | FI_RMA, &o->info);
    o->has_rma = r == 0;
    if (r == -ENODATA)
        r = find_provider(config, FI_MSG, &o->info);
    if (r == 0)
        r = open_endpoint(o, text_out);
    if (r < 0) {
        ofi_close(&o->carrier);
        return r;
    }
    *text_out = "";
    *carrier_out = &o->carrier;
    return 0;
}
