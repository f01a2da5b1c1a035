/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier over libfabric, inside (ofi*.c). One thread owns it; a thread that makes a path, and one that closes all,
 * run beside the owner as ofi_path.c and ofi_open.c say.
 */
#ifndef EMUNIC_TRANSPORT_OFI_H
#define EMUNIC_TRANSPORT_OFI_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "emunic/transport/carrier.h"
#include "emunic/transport/gate.h"
#include "emunic/transport/transport.h"

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

extern const struct emu_carrier_ops emu_ofi_ops;

static inline struct ofi_peer *emu_ofi_peer(uint64_t peer)
{
    return (struct ofi_peer *)(uintptr_t)peer;
}

/* From here on to emu_ofi_leave() the sockets that libfabric makes are for the gate. */
static inline void emu_ofi_enter(const struct ofi *o)
{
    emu_gate_current = o->gate;
}

static inline void emu_ofi_leave(void)
{
    emu_gate_current = NULL;
}

/* ofi_open.c */
bool emu_ofi_close(struct emu_carrier *carrier);

/* Over tcp: the gate stands before libfabric's sockets. */
bool emu_ofi_is_tcp(const struct ofi *o);

/* It gets no signals. 0, or a negative errno. */
int emu_ofi_start_thread(pthread_t *thread_out, void *(*run)(void *), struct ofi *o);

/* The path's completion queue. What has come about when it fails is closed with the path. */
int emu_ofi_open_queue(struct ofi *o, size_t n_entries, struct ofi_path *path);
int emu_ofi_enable_endpoint(struct ofi *o, struct ofi_path *path);

/* ofi_path.c */
void emu_ofi_close_path(struct ofi_path *path);
int emu_ofi_renew(struct emu_carrier *carrier, uint64_t peer_number);

/* ofi_question.c */
void emu_ofi_ask(struct emu_carrier *carrier, uint64_t peer_number, bool is_wanted);
int emu_ofi_answer(struct emu_carrier *carrier, uint64_t peer_number);
void emu_ofi_forget_question(struct ofi_peer *peer);

#endif
