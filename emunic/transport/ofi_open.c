/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening and closing the carrier over libfabric.
 *
 * Provider: the first in our order of preference (provider.c) or the one asked for; among its interfaces loopback comes
 * last and link-local addresses before it. First with remote memory access, else without.
 *
 * ofi_rxm can receive over tcp straight into our packets. A connection that breaks in the middle of one costs it a
 * place for receives then, for ever (1.17), so a peer whose connections break often enough makes the endpoint deaf
 * to all. Through its own buffers it loses none; we have it do so, unless FI_OFI_RXM_ENABLE_DYN_RBUF is set. That
 * is a copy of at most EMU_WIRE_PACKET_MAX; block transfers by remote memory access have none.
 *
 * Over tcp a gate stands before libfabric's sockets (gate.h): each call of libfabric that may touch them is made
 * between emu_ofi_enter() and emu_ofi_leave().
 *
 * Closing is done by a thread of its own, for libfabric has been seen to loop there for ever (1.17). It has CLOSING_NS;
 * then what it uses is left to it until the process ends.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "emunic/transport/ofi.h"
#include "emunic/transport/provider.h"

#define CLOSING_NS    1000000000ull
#define SECOND_NS     1000000000ull
#define TIMEOUT_NS    5000000000ull /* where the configuration has none */
#define N_STRANGERS   256u
#define N_PER_SECOND  256u
#define N_PER_ADDRESS 64u

/* ---- the provider and the gate ---- */

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
    r = fi_getinfo(EMU_PROVIDER_API, config->node, config->service, config->node || config->service ? FI_SOURCE : 0,
                   hints, &list);
    fi_freeinfo(hints);
    if (r < 0)
        return r == -FI_ENODATA ? -ENODATA : r;
    for (struct fi_info *info = list; info; info = info->next) {
        if (!info->fabric_attr->prov_name || !info->domain_attr ||
            info->tx_attr->inject_size > info->ep_attr->max_msg_size ||
            info->ep_attr->max_msg_size < EMU_WIRE_PACKET_MAX)
            continue;
        if (!best || is_better(info, best))
            best = info;
    }
    *info_out = best ? fi_dupinfo(best) : NULL;
    fi_freeinfo(list);
    return *info_out ? 0 : -ENODATA;
}

bool emu_ofi_is_tcp(const struct ofi *o)
{
    return strncmp(o->info->fabric_attr->prov_name, "tcp", 3) == 0;
}

/* Nobody but hosts with the key gets to libfabric. */
static int open_gate(struct ofi *o, const struct emu_transport_config *config)
{
    struct emu_gate_config gate = {
        .admit = { .host = config->host,
                   .n_hosts = config->n_hosts,
                   .flags = config->is_secure ? EMU_ADMIT_SECURE : 0 },
        .deadline_ns = config->admission_ns ? config->admission_ns : TIMEOUT_NS,
        .again_ns = (config->timeout_ns ? config->timeout_ns : TIMEOUT_NS) / 10,
        .n_strangers = config->n_strangers ? config->n_strangers : N_STRANGERS,
        .n_per_address = config->n_strangers_per_address ? config->n_strangers_per_address : N_PER_ADDRESS,
        .per_second = config->n_strangers_per_second ? config->n_strangers_per_second : N_PER_SECOND,
    };
    int r;

    emu_crypt_admission_key(config->key, config->key_bytes, gate.admit.key);
    r = emu_gate_open(&gate, &o->gate);
    emu_crypt_wipe(&gate, sizeof(gate));
    return r;
}

int emu_ofi_start_thread(pthread_t *thread_out, void *(*run)(void *), struct ofi *o)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    sigdelset(&all, SIGSYS); /* of a call that emunic's filter refuses: the kernel ends who blocks it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(thread_out, NULL, run, o);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

/* ---- closing ---- */

/* A thread. All that may wait for libfabric. */
static void *close_fabric(void *argument)
{
    struct ofi *o = argument;

    if (o->making) {
        if (o->has_maker)
            pthread_join(o->maker, NULL);
        o->making->next = o->main.next;
        o->main.next = o->making;
    }
    emu_ofi_enter(o);
    for (struct ofi_path *path = &o->main; path; path = path->next)
        emu_ofi_close_path(path);
    if (o->av)
        fi_close(&o->av->fid);
    if (o->domain)
        fi_close(&o->domain->fid);
    if (o->fabric)
        fi_close(&o->fabric->fid);
    emu_ofi_leave();
    return NULL;
}

/* False: libfabric has not come back. */
static bool close_in_time(struct ofi *o)
{
    struct timespec end;
    pthread_t thread;

    if (emu_ofi_start_thread(&thread, close_fabric, o) < 0) {
        close_fabric(o);
        return true;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(CLOSING_NS / SECOND_NS);
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &end) == 0)
        return true;
    pthread_detach(thread);
    return false;
}

bool emu_ofi_close(struct emu_carrier *carrier)
{
    struct ofi *o = (struct ofi *)carrier;

    while (!LIST_EMPTY(&o->peers)) {
        struct ofi_peer *peer = LIST_FIRST(&o->peers);

        LIST_REMOVE(peer, link);
        emu_ofi_forget_question(peer);
        free(peer);
    }
    if (!close_in_time(o))
        return false;
    emu_gate_close(o->gate);
    while (o->main.next) {
        struct ofi_path *path = o->main.next;

        o->main.next = path->next;
        free(path);
    }
    if (o->epoll_fd >= 0)
        close(o->epoll_fd);
    if (o->info)
        fi_freeinfo(o->info);
    free(o);
    return true;
}

/* ---- opening ---- */

int emu_ofi_open_queue(struct ofi *o, size_t n_entries, struct ofi_path *path)
{
    struct fi_cq_attr attr = { .size = n_entries, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD };
    struct epoll_event event = { .events = EPOLLIN };
    int r = fi_cq_open(o->domain, &attr, &path->cq, NULL);

    path->fd = -1;
    if (r == 0)
        r = fi_control(&path->cq->fid, FI_GETWAIT, &path->fd);
    else if (path == &o->main) {
        attr.wait_obj = FI_WAIT_NONE;
        return fi_cq_open(o->domain, &attr, &path->cq, NULL);
    }
    if (r == 0 && epoll_ctl(o->epoll_fd, EPOLL_CTL_ADD, path->fd, &event) < 0)
        r = -errno;
    return r;
}

int emu_ofi_enable_endpoint(struct ofi *o, struct ofi_path *path)
{
    int r = fi_ep_bind(path->ep, &path->cq->fid, FI_TRANSMIT | FI_RECV);

    if (r == 0)
        r = fi_ep_bind(path->ep, &o->av->fid, 0);
    return r < 0 ? r : fi_enable(path->ep);
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
    r = emu_ofi_open_queue(o, 8192, &o->main);
    if (r < 0)
        return r;
    *text_out = "fi_av_open";
    r = fi_av_open(o->domain, &av_attr, &o->av, NULL);
    if (r < 0)
        return r;
    *text_out = "fi_endpoint";
    r = fi_endpoint(o->domain, o->info, &o->main.ep, NULL);
    if (r < 0)
        return r;
    *text_out = "fi_enable";
    emu_ofi_enter(o);
    r = emu_ofi_enable_endpoint(o, &o->main);
    emu_ofi_leave();
    if (r == 0 && o->gate && !emu_gate_is_listening(o->gate)) {
        *text_out = "this libfabric listens in another way than we know: strangers could reach it";
        r = -EPROTONOSUPPORT;
    }
    return r;
}

int emu_ofi_open(const struct emu_transport_config *config, struct emu_carrier **carrier_out, const char **text_out)
{
    struct ofi *o = calloc(1, sizeof(*o));
    int r;

    *text_out = "";
    if (!o)
        return -ENOMEM;
    o->carrier.ops = &emu_ofi_ops;
    o->main.fd = -1;
    o->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (o->epoll_fd < 0) {
        r = -errno;
        free(o);
        return r;
    }
    r = emu_crypt_init();
    if (r < 0) {
        close(o->epoll_fd);
        free(o);
        return r;
    }
    /* libfabric reads it when it is asked for providers first, and has no call for it. */
    setenv("FI_OFI_RXM_ENABLE_DYN_RBUF", "0", 0);
    *text_out = "fi_getinfo";
    r = find_provider(config, FI_MSG | FI_RMA, &o->info);
    o->has_rma = r == 0;
    if (r == -ENODATA)
        r = find_provider(config, FI_MSG, &o->info);
    if (r == 0 && emu_ofi_is_tcp(o)) {
        *text_out = "admission of connections";
        r = open_gate(o, config);
    }
    if (r == 0)
        r = open_endpoint(o, text_out);
    if (r < 0) {
        emu_ofi_close(&o->carrier);
        return r;
    }
    *text_out = "";
    *carrier_out = &o->carrier;
    return 0;
}
