/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/gni: Open MPI's transport over uGNI. ../README.md has the protocol.
 *
 * Thread rule: every function under mg_lock(), but where its comment says otherwise.
 */
#ifndef MPI_SHIM_OPENMPI_GNI_BTL_H
#define MPI_SHIM_OPENMPI_GNI_BTL_H

#include <ompi_config.h>

#include <time.h>

#include <opal/class/opal_free_list.h>
#include <opal/mca/btl/base/base.h>
#include <opal/mca/btl/btl.h>
#include <opal/mca/rcache/rcache.h>
#include <opal/threads/mutex.h>
#include <opal/threads/thread_usage.h>
#include <opal/util/proc.h>

#include <gni_pub.h>

#include "mpi-shim/openmpi/osc_transport.h"

#define MG_WILDCARDS    4u    /* datagrams that wait for peers which connect to us */
#define MG_POSTS        512u  /* puts, gets and atomics at the NIC */
#define MG_SLOTS        256u  /* bounce buffers of the NIC */
#define MG_SLOT_BYTES   4160u /* one holds 4096 bytes and the words at both ends */
#define MG_POLLED_RANKS 64u   /* processes of a job whose mailboxes are looked into one by one, at most */
#define MG_INLINE       8192u /* bytes of the longest message that this component sends as one */
#define MG_WORD         4u    /* what a get reads: alignment of its remote address and of its length */

/* How to reach a process. */
struct mg_address {
    uint32_t nic;
    uint32_t instance;
};

/* What two processes tell each other to connect. */
struct mg_hello {
    uint32_t version;
    uint32_t rank;
    gni_smsg_attr_t mailbox;
};

/* What a process tells all others by Open MPI's modex. */
struct mg_card {
    struct mg_address address;
    struct mg_hello first; /* its mailbox for rank 0; the others' lie behind it. Version 0: connect by a datagram */
};

enum mg_state { MG_IDLE, MG_CONNECTING, MG_CONNECTED };

struct mg_frag;

/* Another process, or this one. */
struct mca_btl_base_endpoint_t {
    uint32_t rank;
    struct mg_address address;
    gni_ep_handle_t ep; /* bound; made when it is first needed */
    enum mg_state state;
    struct mg_hello own;   /* mailbox for messages from it */
    struct mg_hello other; /* its mailbox for ours */
    struct mg_frag *waiting;
    struct mg_frag *last_waiting;
    struct mca_btl_base_endpoint_t *next_waiting;
    struct mca_btl_base_endpoint_t *next_readable;
    bool is_waiting;
    bool is_readable;
};

/* A message to send. The first segment is `data`; the second, if any, is the user's memory. */
struct mg_frag {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segments[2];
    struct mca_btl_base_endpoint_t *peer; /* borrowed */
    struct mg_frag *next;
    opal_free_list_t *list;
    mca_btl_base_tag_t tag;
    _Alignas(8) uint8_t data[];
};

struct mca_btl_base_registration_handle_t {
    gni_mem_handle_t memory;
};

/* A registration of Open MPI's cache. */
struct mg_registration {
    mca_rcache_base_registration_t base;
    mca_btl_base_registration_handle_t handle;
};

enum mg_kind { MG_PUT, MG_GET, MG_ATOMIC };

/* What Open MPI has asked for: one or more posts. */
struct mg_work {
    opal_free_list_item_t super;
    struct mg_work *next;
    enum mg_kind kind;
    struct mca_btl_base_endpoint_t *peer; /* borrowed */
    uint8_t *local;                       /* of the next post */
    uint64_t remote;                      /* likewise */
    size_t left_bytes;                    /* not yet posted */
    uint32_t n_posted;                    /* not yet completed */
    bool is_registered;                   /* local memory */
    gni_mem_handle_t local_memory;
    gni_mem_handle_t remote_memory;
    gni_fma_cmd_type_t command;
    uint64_t operands[2];
    void *address;
    mca_btl_base_registration_handle_t *handle;
    mca_btl_base_rdma_completion_fn_t callback;
    void *context;
    void *data;
};
OBJ_CLASS_DECLARATION(mg_work_t);
typedef struct mg_work mg_work_t;

/* A descriptor at the NIC. */
struct mg_post {
    gni_post_descriptor_t descriptor;
    struct mg_post *next;
    struct mg_work *work;
    uint8_t *slot;       /* bounce buffer, or NULL */
    uint8_t *target;     /* where its bytes go */
    uint32_t skip_bytes; /* at its beginning */
    uint32_t slot_bytes;
};

struct mg_wildcard {
    gni_ep_handle_t ep;
    struct mg_hello own;
    struct mg_hello other;
};

/* The NIC's objects. */
struct mg_nic {
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_nic_device_t device;
    struct mg_address address;
    gni_cq_handle_t own_queue;   /* sends and posts */
    gni_cq_handle_t other_queue; /* messages of others */
    uint32_t n_own;              /* entries that must still come to own_queue */
    uint32_t n_posts;            /* of these, of puts, gets and atomics */
    uint8_t *slots;              /* owned, MG_SLOTS bounce buffers */
    gni_mem_handle_t slots_memory;
    uint8_t *free_slots[MG_SLOTS];
    uint32_t n_free_slots;
};

struct mg_slab;

struct mg {
    mca_btl_base_module_t super;
    const struct mo_transport *windows; /* second, where osc/emunic looks for it (struct mo_module) */
    opal_mutex_t mutex;
    struct mg_nic nic;
    /* tuning */
    int message_bytes; /* the longest short message; 0: by the number of processes */
    int credits;       /* short messages under way to one process; 0: likewise */
    int fma_limit;     /* bytes of the longest put or get by FMA */
    bool connects_all; /* without datagrams */
    int polled_ranks;  /* so many processes at most look into all mailboxes instead of a queue */
    /* connections */
    uint32_t rank;
    uint32_t n_ranks;
    struct mca_btl_base_endpoint_t **peers; /* owned, by rank */
    struct mg_wildcard wildcards[MG_WILDCARDS];
    struct mg_slab *slabs; /* owned */
    struct mg_hello first; /* likewise, as on the card */
    uint32_t mailbox_bytes;
    /* messages */
    bool costs_time;                                            /* messages do: the clock is virtual */
    bool polls_mailboxes;                                       /* instead of other_queue */
    struct mca_btl_base_endpoint_t *connected[MG_POLLED_RANKS]; /* borrowed, if so */
    uint32_t n_connected;
    struct mca_btl_base_endpoint_t *first_waiting;
    struct mca_btl_base_endpoint_t *first_readable;
    struct mca_btl_base_endpoint_t **readable_end;
    struct mg_frag *sent; /* callbacks are due */
    struct mg_frag **sent_end;
    opal_free_list_t small_frags;
    opal_free_list_t large_frags;
    /* puts, gets and atomics */
    mca_rcache_base_module_t *rcache;
    opal_free_list_t works;
    struct mg_post *posts; /* owned */
    struct mg_post *free_posts;
    struct mg_work *queued; /* not posted to the end, in order */
    struct mg_work **queued_end;
    struct mg_work *done; /* callbacks are due */
    struct mg_work **done_end;
    _Atomic uint32_t n_works; /* submitted, and not yet called back to the end */
    bool is_open;
    bool has_lost; /* a process, so many seconds ago: */
    uint32_t lost_rank;
    time_t lost_at_s;
};

extern struct mg mg;
extern mca_btl_base_component_t mca_btl_gni_component;

/* ---- btl_module.c ---- */

/* Any thread. Ends the job with a message. */
_Noreturn void mg_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A process cannot be reached. Whoever has started the job ends it, or this process does after some seconds. */
void mg_lost(uint32_t rank);

/* Any thread. Ends the job unless the call has succeeded. */
void mg_wrong(gni_return_t rc, const char *call) __attribute__((noreturn, cold));

/* Any thread. Another status than SUCCESS ends the process. */
static inline void mg_must(gni_return_t rc, const char *call)
{
    if (__builtin_expect(rc != GNI_RC_SUCCESS, 0))
        mg_wrong(rc, call);
}

/* Any thread. */
static inline void mg_lock(void)
{
    OPAL_THREAD_LOCK(&mg.mutex);
}

/* Any thread. */
static inline void mg_unlock(void)
{
    OPAL_THREAD_UNLOCK(&mg.mutex);
}

/* ---- btl_nic.c ---- */

/* Once, before anything else. 0, or -1 after a message. */
int mg_open(void);

/* Everything that mg_open() has made. */
void mg_close(void);

/* ---- btl_connection.c ---- */

/* The process of this rank, made when there is none yet. NULL: no memory. */
struct mca_btl_base_endpoint_t *mg_peer(uint32_t rank, struct mg_address address);

/* Its end point, for puts, gets and atomics: needs no connection. */
gni_ep_handle_t mg_end_point(struct mca_btl_base_endpoint_t *peer);

/* Begins to connect, unless that has been begun. */
void mg_connect(struct mca_btl_base_endpoint_t *peer);

/* Waits for peers: posts the wildcards, or makes mailboxes for all. 0 or -1. */
int mg_listen(void);

/* Connects as the peer's card says: at once, or not yet. */
void mg_connect_by_card(struct mca_btl_base_endpoint_t *peer, const struct mg_card *card);

/* Datagrams that have met another. Returns how many. */
int mg_poll_datagrams(void);

/* The end of all connections. */
void mg_disconnect_all(void);

/* ---- btl_fragment.c ---- */

/* Once. 0 or -1. */
int mg_make_fragments(void);

/* Any thread, not locked, as the rest of this file. */
mca_btl_base_descriptor_t *mg_alloc(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                                    uint8_t order, size_t size, uint32_t flags);
int mg_free(struct mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *mg_prepare(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                                      struct opal_convertor_t *convertor, uint8_t order, size_t reserve, size_t *size,
                                      uint32_t flags);

/* ---- btl_message.c ---- */

/* Any thread, not locked. */
int mg_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
            mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
/* Any thread, not locked. */
int mg_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
             struct opal_convertor_t *convertor, void *header, size_t header_bytes, size_t payload_bytes, uint8_t order,
             uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor);

/* Messages of this peer may have come. */
void mg_readable(struct mca_btl_base_endpoint_t *peer);

/* Sends what waits for a connection or for credits. */
void mg_send_waiting(void);

/* Any thread, not locked: messages that have come, and the callbacks of sends. Returns how many. */
int mg_read_messages(void);
int mg_call_back_sends(void);

/* ---- btl_registration.c ---- */

/* Once. 0 or -1. */
int mg_make_cache(void);
void mg_free_cache(void);

/* Any thread, not locked. */
mca_btl_base_registration_handle_t *mg_register(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                                                void *base, size_t size, uint32_t flags);
/* Any thread, not locked. */
int mg_deregister(struct mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);

/* ---- btl_rdma.c ---- */

/* Once. 0 or -1. */
int mg_make_posts(void);

/* Any thread, not locked. */
int mg_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local, uint64_t remote,
           mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
           size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
/* Any thread, not locked. */
int mg_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local, uint64_t remote,
           mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
           size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);

/* Any thread, not locked: an empty one. NULL: no memory. */
struct mg_work *mg_new_work(enum mg_kind kind, struct mca_btl_base_endpoint_t *peer);

/* Any thread, not locked: posts it, or queues it behind others. */
void mg_submit(struct mg_work *work);

/* Posts what is queued. */
void mg_post_queued(void);

/* The NIC has completed it. */
void mg_completed(gni_post_descriptor_t *descriptor);

/* Any thread, not locked: the callbacks that are due. Returns how many. */
int mg_call_back_works(void);

/* Any thread, not locked, not in a callback: waits until all works are called back, also those to other peers. */
int mg_flush(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer);

/* ---- btl_atomics.c: any thread, not locked ---- */

/* Which ones the device has: MCA_BTL_ATOMIC_SUPPORTS_*. */
uint32_t mg_atomics(gni_nic_device_t device);

int mg_atomic_op(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, uint64_t remote,
                 mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op, uint64_t operand,
                 int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
int mg_atomic_fop(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local, uint64_t remote,
                  mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
                  mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                  mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);
int mg_atomic_cswap(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local,
                    uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
                    mca_btl_base_registration_handle_t *remote_handle, uint64_t compare, uint64_t value, int flags,
                    int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data);

/* ---- btl_window.c ---- */

/* Once: tells osc/emunic how to reach windows. */
void mg_offer_windows(void);

/* ---- btl_progress.c ---- */

/* Any thread, not locked. */
int mg_progress(void);

#endif
