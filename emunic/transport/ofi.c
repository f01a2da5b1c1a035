/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier over libfabric: reliable datagram endpoints with a completion queue each, an address table.
 *
 * One endpoint receives everything, and sends at first. ofi_rxm keeps one connection between two endpoints and offers
 * no way to give it up (in 1.17 removing an address either leaves it or, when told to close it, fails on one that is
 * just being made), so another connection to a peer means another endpoint, a path, which only sends. Making one takes
 * 30 ms, so peers that need another at the same time share it. A path that no peer sends over is closed RETIRED_MAX
 * paths later: what it has to send may still arrive. A path's queue goes once it is empty; one for all would keep the
 * descriptors of endpoints that were closed.
 *
 * Provider: the first in our order of preference (provider.c) or the one asked for; among its interfaces loopback comes
 * last and link-local addresses before it. First with remote memory access, else without. Memory registration modes:
 * local registration, virtual addresses, the provider's keys and registration with the endpoint are all served as the
 * provider says; FI_MR_ALLOCATED is the caller's promise (memory of a region exists).
 *
 * Writes ask for FI_DELIVERY_COMPLETE. Where the target's provider is driven by hand, it answers when its emunic looks.
 * Removing a peer takes its address out; ofi_rxm keeps the connection.
 *
 * ofi_rxm can receive over tcp straight into our packets. A connection that breaks in the middle of one costs it a
 * place for receives then, for ever (1.17), so a peer whose connections break often enough makes the endpoint deaf
 * to all. Through its own buffers it loses none; we have it do so, unless FI_OFI_RXM_ENABLE_DYN_RBUF is set. That
 * is a copy of at most EMU_WIRE_PACKET_MAX; block transfers by remote memory access have none.
 *
 * Over tcp a gate stands before libfabric's sockets (gate.h): each call of libfabric that may touch them is made
 * between enter() and leave(). A connection to a peer takes a handshake first, so sending says -EAGAIN; libfabric
 * makes an endpoint for each try, so it is asked again only when there is news, or LOOK_AGAIN_NS later.
 *
 * Closing is done by a thread of its own, for libfabric has been seen to loop there for ever (1.17). It has CLOSING_NS;
 * then what it uses is left to it until the process ends.
 *
 * That nobody listens at a peer's address any more is what ofi_rxm does not tell: it tries again. So with tcp we ask by
 * a connection of our own, which is closed at once.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/transport/carrier.h"
#include "emunic/transport/gate.h"
#include "emunic/transport/provider.h"
#include "emunic/transport/transport.h"

#define POLL_MAX    32
#define RETIRED_MAX 8u /* as many as are made within a timeout */

#define LOOK_AGAIN_NS 5000000ull
#define CLOSING_NS    1000000000ull
#define SECOND_NS     1000000000ull
#define TIMEOUT_NS    5000000000ull /* where the configuration has none */
#define N_STRANGERS   256u
#define N_PER_SECOND  256u
#define N_PER_ADDRESS 64u

static_assert(sizeof(struct sockaddr_storage) <= EMU_CARRIER_ADDRESS_MAX, "an address may be one of a socket");
static_assert(sizeof(struct fi_context2) <= sizeof(((struct emu_carrier_op *)NULL)->space),
              "room for the provider's words");

struct ofi_path {
    struct ofi_path *next;
    struct fid_ep *ep; /* NULL: closed, and the queue is to be emptied */
    struct fid_cq *cq;
    int fd;           /* -1: none */
    uint64_t number;  /* 0: the one that receives */
    uint32_t n_users; /* peers that are sent to over it */
};

/* What the carrier calls a peer. */
struct ofi_peer {
    LIST_ENTRY(ofi_peer) link;
    fi_addr_t addr;
    struct ofi_path *path;           /* counted; a later one has no connection to it yet */
    struct sockaddr_storage address; /* with tcp */
    int question_fd;                 /* of a connection that is being made only to see whether it can be; -1: none */
    int answer;
    bool is_connecting;  /* libfabric was told to come back */
    uint64_t seen_news;  /* of the gate, then */
    uint64_t look_at_ns; /* without news */
};

struct ofi {
    struct emu_carrier carrier;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct ofi_path main; /* receives; first of all paths, the others from the latest to the earliest */
    uint64_t n_paths;     /* ever made */
    /* The one that a thread makes now, or has made and nobody has fetched yet; NULL: none. */
    struct ofi_path *making;
    pthread_t maker;
    bool has_maker;
    int made; /* what came of it; valid with is_made */
    atomic_bool is_made;
    LIST_HEAD(, ofi_peer) peers;
    struct emu_gate *gate; /* over tcp */
    int epoll_fd;          /* of all queues, or -1 */
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

/* ---- libfabric and the gate ---- */

/* From here on to leave() the sockets that libfabric makes are for the gate. */
static void enter(const struct ofi *o)
{
    emu_gate_current = o->gate;
}

static void leave(void)
{
    emu_gate_current = NULL;
}

static bool is_tcp(const struct ofi *o)
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

/* It gets no signals. */
static int start_thread(pthread_t *thread_out, void *(*run)(void *), struct ofi *o)
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

static void forget_question(struct ofi_peer *peer)
{
    if (peer->question_fd >= 0)
        close(peer->question_fd);
    peer->question_fd = -1;
    peer->answer = 0;
}

static void close_path(struct ofi_path *path)
{
    if (path->ep)
        fi_close(&path->ep->fid);
    if (path->cq)
        fi_close(&path->cq->fid);
}

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
    enter(o);
    for (struct ofi_path *path = &o->main; path; path = path->next)
        close_path(path);
    if (o->av)
        fi_close(&o->av->fid);
    if (o->domain)
        fi_close(&o->domain->fid);
    if (o->fabric)
        fi_close(&o->fabric->fid);
    leave();
    return NULL;
}

/* False: libfabric has not come back. */
static bool close_in_time(struct ofi *o)
{
    struct timespec end;
    pthread_t thread;

    if (start_thread(&thread, close_fabric, o) < 0) {
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

static bool ofi_close(struct emu_carrier *carrier)
{
    struct ofi *o = (struct ofi *)carrier;

    while (!LIST_EMPTY(&o->peers)) {
        struct ofi_peer *peer = LIST_FIRST(&o->peers);

        LIST_REMOVE(peer, link);
        forget_question(peer);
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

/* ---- opening the rest ---- */

static int open_queue(struct ofi *o, size_t n_entries, struct ofi_path *path)
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

static int enable_endpoint(struct ofi *o, struct ofi_path *path)
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
    r = open_queue(o, 8192, &o->main);
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
    enter(o);
    r = enable_endpoint(o, &o->main);
    leave();
    if (r == 0 && o->gate && !emu_gate_is_listening(o->gate)) {
        *text_out = "this libfabric listens in another way than we know: strangers could reach it";
        r = -EPROTONOSUPPORT;
    }
    return r;
}

/* ---- the carrier ---- */

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

    enter(o);
    r = fi_getname(&o->main.ep->fid, address_out, &length);
    leave();

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

static struct ofi_peer *peer_of(uint64_t peer)
{
    return (struct ofi_peer *)(uintptr_t)peer;
}

/* Of an endpoint at the same address and any port. */
static int open_path(struct ofi *o, struct ofi_path *path)
{
    struct fi_info *info = fi_dupinfo(o->info);
    int r;

    if (!info)
        return -ENOMEM;
    /* The port is at the same place in either kind of address. */
    if (info->src_addr)
        ((struct sockaddr_in *)info->src_addr)->sin_port = 0;
    r = open_queue(o, 1024, path);
    if (r == 0)
        r = fi_endpoint(o->domain, info, &path->ep, NULL);
    fi_freeinfo(info);
    enter(o);
    r = r < 0 ? r : enable_endpoint(o, path);
    leave();
    return r;
}

/* What nobody sends over and is old. What it has under way comes back with errors; then its queue goes (ofi_poll()). */
static void close_old_paths(struct ofi *o)
{
    for (struct ofi_path *path = o->main.next; path; path = path->next) {
        if (path->ep && path->n_users == 0 && path->number + RETIRED_MAX <= o->n_paths) {
            enter(o);
            fi_close(&path->ep->fid);
            leave();
            path->ep = NULL;
        }
    }
}

static void *run_maker(void *argument)
{
    struct ofi *o = argument;

    o->made = open_path(o, o->making);
    /* Pairs with the acquire in make_path(). */
    atomic_store_explicit(&o->is_made, true, memory_order_release);
    return NULL;
}

/*
 * rxm clears all its buffers for an endpoint: 70 MB, 230 ms of processor time on a virtual machine. All other hosts
 * would hear nothing of us meanwhile. So a thread does it, if libfabric may be called by several.
 */
static void begin_path(struct ofi *o)
{
    atomic_store_explicit(&o->is_made, false, memory_order_relaxed);
    o->has_maker = o->info->domain_attr->threading == FI_THREAD_SAFE && start_thread(&o->maker, run_maker, o) == 0;
    if (!o->has_maker)
        run_maker(o);
}

/* -EAGAIN: not yet. */
static int make_path(struct ofi *o, struct ofi_path **path_out)
{
    struct ofi_path *path;

    if (!o->making) {
        o->making = calloc(1, sizeof(*o->making));
        if (!o->making)
            return -ENOMEM;
        begin_path(o);
    }
    if (!atomic_load_explicit(&o->is_made, memory_order_acquire))
        return -EAGAIN;
    if (o->has_maker)
        pthread_join(o->maker, NULL);
    path = o->making;
    o->making = NULL;
    if (o->made < 0) {
        close_path(path);
        free(path);
        return o->made;
    }
    path->number = ++o->n_paths;
    path->next = o->main.next;
    o->main.next = path;
    close_old_paths(o);
    *path_out = path;
    return 0;
}

static int ofi_renew(struct emu_carrier *carrier, uint64_t peer_number)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = peer_of(peer_number);
    struct ofi_path *path = NULL;
    int r = 0;

    if (o->main.fd < 0 || (o->info->addr_format != FI_SOCKADDR_IN && o->info->addr_format != FI_SOCKADDR_IN6))
        return -ENOSYS;
    for (struct ofi_path *at = o->main.next; at && at->number > peer->path->number; at = at->next) {
        if (at->ep)
            path = at;
    }
    if (!path)
        r = make_path(o, &path);
    if (r < 0)
        return r;
    peer->path->n_users--;
    peer->path = path;
    path->n_users++;
    peer->is_connecting = false;
    return 0;
}

static void ofi_remove(struct emu_carrier *carrier, uint64_t peer_number)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = peer_of(peer_number);

    peer->path->n_users--;
    fi_av_remove(o->av, &peer->addr, 1, 0);
    LIST_REMOVE(peer, link);
    forget_question(peer);
    free(peer);
}

/* Of the kinds of address that tcp has; 0: another. */
static socklen_t length_of(const struct ofi *o)
{
    if (!is_tcp(o))
        return 0;
    if (o->info->addr_format == FI_SOCKADDR_IN)
        return sizeof(struct sockaddr_in);
    return o->info->addr_format == FI_SOCKADDR_IN6 ? sizeof(struct sockaddr_in6) : 0;
}

static void ofi_ask(struct emu_carrier *carrier, uint64_t peer_number, bool is_wanted)
{
    struct ofi_peer *peer = peer_of(peer_number);
    socklen_t length = length_of((struct ofi *)carrier);

    forget_question(peer);
    if (!is_wanted || length == 0)
        return;
    peer->question_fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (peer->question_fd < 0 || connect(peer->question_fd, (const struct sockaddr *)&peer->address, length) == 0 ||
        errno == EINPROGRESS)
        return;
    peer->answer = errno == ECONNREFUSED ? -ECONNREFUSED : 0;
    close(peer->question_fd);
    peer->question_fd = -1;
}

static int ofi_answer(struct emu_carrier *carrier, uint64_t peer_number)
{
    struct ofi_peer *peer = peer_of(peer_number);
    struct pollfd pollfd = { .fd = peer->question_fd, .events = POLLOUT };
    socklen_t length = sizeof(int);
    int answer = peer->answer;
    int error = 0;

    (void)carrier;
    if (peer->question_fd >= 0) {
        if (poll(&pollfd, 1, 0) == 0)
            return -EAGAIN;
        getsockopt(peer->question_fd, SOL_SOCKET, SO_ERROR, &error, &length);
        answer = error == ECONNREFUSED ? -ECONNREFUSED : 0;
    }
    forget_question(peer);
    return answer;
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

    enter(o);
    r = (int)fi_recv(o->main.ep, packet, room_bytes, desc, FI_ADDR_UNSPEC, op);
    leave();
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
    enter(o);
    return true;
}

/* Returns r. */
static int end(const struct ofi *o, struct ofi_peer *peer, const struct before *before, int r)
{
    leave();
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
    struct ofi_peer *peer = peer_of(peer_number);
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
    struct ofi_peer *peer = peer_of(peer_number);
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
    struct ofi_peer *peer = peer_of(peer_number);
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

    enter(o);
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
        close_path(path);
        free(path);
    }
    leave();
    return n_events;
}

static bool ofi_may_sleep(struct emu_carrier *carrier)
{
    struct ofi *o = (struct ofi *)carrier;
    bool may_sleep = true;

    enter(o);
    for (struct ofi_path *path = &o->main; path && may_sleep; path = path->next) {
        struct fid *fid = &path->cq->fid;

        may_sleep = path->fd >= 0 && path->ep && fi_trywait(o->fabric, &fid, 1) == 0;
    }
    leave();
    return may_sleep;
}

static int ofi_verdict(struct emu_carrier *carrier, uint64_t peer_number, const char **reason_out)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = peer_of(peer_number);
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

static const struct emu_carrier_ops ofi_ops = {
    .close = ofi_close,
    .limits = ofi_limits,
    .address = ofi_address,
    .resolve = ofi_resolve,
    .add = ofi_add,
    .renew = ofi_renew,
    .ask = ofi_ask,
    .answer = ofi_answer,
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

int emu_ofi_open(const struct emu_transport_config *config, struct emu_carrier **carrier_out, const char **text_out)
{
    struct ofi *o = calloc(1, sizeof(*o));
    int r;

    *text_out = "";
    if (!o)
        return -ENOMEM;
    o->carrier.ops = &ofi_ops;
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
    if (r == 0 && is_tcp(o)) {
        *text_out = "admission of connections";
        r = open_gate(o, config);
    }
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
