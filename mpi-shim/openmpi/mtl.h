/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mtl/portals3: Open MPI's messages over Portals 3.3. README.md has the protocol.
 *
 * Thread rule: every function under mp3_lock(), but where its comment says otherwise.
 */
#ifndef MPI_SHIM_OPENMPI_MTL_H
#define MPI_SHIM_OPENMPI_MTL_H

#include <ompi_config.h>

#include <ompi/communicator/communicator.h>
#include <ompi/mca/mtl/base/mtl_base_datatype.h>
#include <ompi/mca/mtl/mtl.h>
#include <ompi/proc/proc.h>
#include <opal/threads/mutex.h>
#include <opal/threads/thread_usage.h>

#include <portals/portals3.h>

#include "emunic/client/short_message.h"

/* Portal indices. */
#define MP3_PT_MESSAGE 4u
#define MP3_PT_CREDIT  5u
#define MP3_PT_FETCH   6u

/*
 * Match bits of a message
 *
 *   63    1: fetched by the receiver unless it was expected
 *   62-48 context
 *   47-32 rank of the sender in the communicator
 *   31-0  tag; below 0: Open MPI's own
 *
 * hdr_data of a message: number of the send in 63-48, address of its data in 47-0.
 * Match bits of a fetch: number of the send in 63-48, number of the receive in 31-0.
 * hdr_data of a credit: messages taken in 63-32, bytes of overflow entries taken in 31-0, both since the beginning.
 */
#define MP3_BIT_FETCH   ((ptl_match_bits_t)1 << 63)
#define MP3_CONTEXT_MAX 0x7fff
#define MP3_RANKS_MAX   65536u
#define MP3_IGNORE_RANK ((ptl_match_bits_t)0xffff << 32)
#define MP3_IGNORE_TAG  ((ptl_match_bits_t)0x7fffffff) /* not its sign: Open MPI's own are never "any" */
#define MP3_ADDRESS     (((uint64_t)1 << 48) - 1)

#define MP3_SENDS   32768u /* begun, those that wait to be fetched among them */
#define MP3_FLIGHTS 512u   /* of these, without SEND_END or acknowledgement yet */
#define MP3_FETCHES 512u
#define MP3_NOBODY  UINT32_MAX
#define MP3_NO_SLOT UINT32_MAX
#define MP3_BASE    4096u /* where the descriptor of all memory begins */
#define MP3_MEMORY  (MP3_ADDRESS - MP3_BASE)

struct mo_transport;
struct mp3_request;

/* Another process, or this one. Numbers of messages and bytes wrap around. */
struct mp3_peer {
    ptl_process_id_t id;
    struct mp3_peer *next_of_pid; /* owned */
    struct p3_way *way;           /* owned, or NULL: for short messages */
    /* to it */
    uint32_t sent_messages;
    uint32_t sent_bytes;
    uint32_t granted_messages; /* that it has taken, as far as it has said */
    uint32_t granted_bytes;
    struct mp3_request *waiting; /* borrowed: sends without credit, in order */
    struct mp3_request *last_waiting;
    struct mp3_peer *next_waiting;
    bool is_waiting; /* it is among those with waiting sends */
    /* from it */
    uint32_t taken_messages;
    uint32_t taken_bytes;
    uint32_t told_messages;
    uint32_t told_bytes;
    struct mp3_peer *next_owed;
    bool is_owed; /* it is among those that are to be told */
};

enum {
    MP3_SENT = 1,    /* SEND_END has come */
    MP3_KEPT = 2,    /* acknowledged, and a receive took it */
    MP3_REFUSED = 4, /* acknowledged, and nobody took it: it will be fetched */
    MP3_FETCHED = 8,
};

/* Open MPI keeps it behind its own request. */
struct mp3_request {
    mca_mtl_request_t super;
    struct mp3_request *next;
    struct opal_convertor_t *convertor;
    char *buffer;
    size_t length_bytes;
    bool is_packed; /* the buffer is ours */
    bool is_copy;   /* all of it is: its send is complete */
    bool is_done;
    /* sends */
    struct mp3_peer *peer;
    ptl_match_bits_t bits;
    bool is_fetched;
    bool is_synchronous;
    uint32_t number; /* of a send under way, or of a receive that fetches */
    unsigned state;
    /* receives */
    ptl_match_bits_t ignore;
    bool is_listed;
    ptl_handle_me_t entry;
    uint32_t slot; /* of the landing place, or MP3_NO_SLOT: in the buffer itself */
    bool is_posted;
};

/* A message that nobody expected. It is in the order in which the NIC has matched it, whole or not. */
struct mp3_unexpected {
    struct mp3_unexpected *next;
    struct mp3_unexpected *next_begun; /* until it is whole */
    struct mp3_request *met;           /* borrowed: the receive that waits until it is */
    uint64_t link;                     /* of its events */
    bool is_whole;
    ptl_match_bits_t bits;
    ptl_process_id_t source;
    ptl_hdr_data_t hdr_data;
    size_t length_bytes;
    char data[]; /* unless it is fetched */
};

/* An overflow entry. */
struct mp3_block {
    char *start;
    ptl_handle_me_t entry;
    ptl_handle_md_t descriptor;
};

struct mp3 {
    mca_mtl_base_module_t super;
    const struct mo_transport *windows; /* osc/emunic finds it here (osc_transport.h) */
    opal_mutex_t mutex;
    /* tuning */
    int eager_limit;
    int landing_limit;
    int overflow_bytes; /* that may wait in overflow entries, of all peers together */
    int window;         /* messages under way to one peer; 0: by the number of processes */
    /* interface */
    ptl_handle_ni_t ni;
    ptl_process_id_t id;
    ptl_handle_eq_t queues[3]; /* own operations and receives; unexpected messages; fetches by others */
    uint32_t n_flights;
    uint32_t n_copies;             /* of those, what nobody waits for */
    ptl_handle_md_t memory;        /* all of it */
    ptl_handle_md_t silent_memory; /* the same, without SEND events */
    ptl_handle_me_t anchor;        /* receives are posted before it */
    uint32_t n_ranks;
    uint32_t window_messages;
    uint32_t window_bytes;
    struct mp3_peer **peers; /* owned, by process id */
    char *arena;             /* owned: overflow entries, then landing places */
    size_t arena_bytes;
    struct mp3_block *blocks; /* owned */
    uint32_t n_blocks;
    uint32_t block_bytes;
    char *landings;
    uint32_t *free_landings; /* owned */
    uint32_t n_free_landings;
    struct mp3_request *sends[MP3_SENDS]; /* borrowed, by number */
    uint32_t free_sends[MP3_SENDS];
    uint32_t n_free_sends;
    struct mp3_request *fetches[MP3_FETCHES];
    uint32_t free_fetches[MP3_FETCHES];
    uint32_t n_free_fetches;
    struct mp3_peer *first_waiting;
    struct mp3_unexpected *unexpected;
    struct mp3_unexpected **unexpected_end;
    struct mp3_unexpected *begun; /* those that are not whole yet, in the list above or met */
    struct mp3_request *listed;   /* borrowed: receives that are no entries of the NIC, in order */
    struct mp3_request **listed_end;
    uint32_t n_posted;        /* receives that are */
    bool has_inboxes;         /* somebody has left a message in one */
    struct mp3_peer *owed;    /* credits are to be told */
    struct mp3_request *done; /* callbacks are due, in order */
    struct mp3_request **done_end;
    bool is_open;
    bool is_progressing; /* registered */
};

extern struct mp3 mp3;

/* ---- module.c ---- */

/* Any thread. Ends the job with a message. */
_Noreturn void mp3_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Any thread. The same, of a message with that process, unless mpirun ends the job within some seconds. */
_Noreturn void mp3_lost(ptl_process_id_t id);

/* Any thread. */
static inline void mp3_lock(void)
{
    OPAL_THREAD_LOCK(&mp3.mutex);
}

/* Any thread. */
static inline void mp3_unlock(void)
{
    OPAL_THREAD_UNLOCK(&mp3.mutex);
}

/* The peer with this address; NULL: there is none. */
struct mp3_peer *mp3_peer_of(ptl_process_id_t id);

/* ---- mtl_interface.c ---- */

/* Once, before anything else. 0, or -1 after a message. */
int mp3_open(void);

/* Everything that mp3_open() has made. */
void mp3_close(void);

/* An overflow entry goes to the end of the list, empty. */
void mp3_attach_block(struct mp3_block *block);

/* ---- send.c ---- */

int mp3_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
             struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode);
int mp3_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
              struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
              mca_mtl_request_t *request);

/* Sends whose credit has come. */
void mp3_send_waiting(void);

/* What an event tells of a send. kept: bytes, of an acknowledgement. */
void mp3_send_event(uint32_t number, unsigned state, bool has_failed);

/* ---- buffered.c ---- */

/* Before the first message, not locked: takes persistent buffered sends out of pml/cm's hands. */
void mp3_mend_buffered(void);

/* ---- receive.c ---- */

int mp3_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag,
              struct opal_convertor_t *convertor, mca_mtl_request_t *request);
int mp3_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor, struct ompi_message_t **message,
               mca_mtl_request_t *request);
int mp3_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag, int *flag,
               struct ompi_status_public_t *status);
int mp3_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag, int *matched,
                struct ompi_message_t **message, struct ompi_status_public_t *status);
int mp3_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *request, int flag);

/* A posted receive has its message. */
void mp3_receive_event(const ptl_event_t *event);

/* A message that was left in an inbox. False: no receive here waits for it. */
bool mp3_receive_short(const struct emu_short_message *message);

/* The same: it joins those that nobody expected. */
void mp3_keep_short(const struct emu_short_message *message);

/* The reply to a fetch is here. */
void mp3_fetch_event(const ptl_event_t *event);

/* A message that nobody expected was matched. */
void mp3_begin_unexpected(const ptl_event_t *event);

/* It is whole: taken out of the overflow entry. */
void mp3_keep(const ptl_event_t *event);

/* Receives that wait until fewer fetch. */
void mp3_fetch_waiting(void);

/* ---- mtl_progress.c ---- */

/*
 * Takes short messages and events, one at least if there is any, until there are none or a callback is due. Returns how
 * many. of_all: events also where none is expected; else each few calls.
 */
int mp3_poll(bool of_all);

/* p3_inboxes_take() hands over a message. */
bool mp3_take_short(const struct emu_short_message *message);

/*
 * Any thread, not locked, after mp3_poll(): makes the callbacks that are due and returns how many. Where there are none
 * and nothing was found, the core may be given away.
 */
int mp3_end_round(bool has_found);

/* Any thread, not locked: takes events and makes the callbacks. Returns how many. */
int mp3_progress(void);

/* Any thread, not locked: the callbacks that are due. */
int mp3_call_back(void);

/* A callback becomes due. */
void mp3_done(struct mp3_request *request);

/* ---- mtl_window.c ---- */

/* Not locked: from now on osc/emunic finds short puts and gets here. */
void mp3_offer_windows(void);

#endif
