/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port as its owner sees it: attach, command ring, staging, queues, memory. What the API libraries build on.
 *
 * Thread rule: emu_port_command/_stage/_publish and queue consumers under the caller's lock (one per port); requests
 * (queues, memory, datagrams), waiting and the check for loss from any thread. Only emu_port_wait() is a cancellation
 * point.
 */
#ifndef EMUNIC_CLIENT_PORT_H
#define EMUNIC_CLIENT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/command.h"
#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/base/settings.h"
#include "emunic/client/idle.h"
#include "emunic/client/session.h"
#include "emunic/client/share.h"
#include "emunic/engine/completion_queue.h"

struct emu_channel;
struct emu_direct;
struct emu_gate;

struct emu_port {
    struct emu_session session;
    char server[EMU_SERVER_NAME_MAX + 1]; /* that it is attached at */
    struct emu_settings settings;
    const struct emu_table *table; /* mapped, read-only */
    struct emu_segment *segment;   /* mapped */
    uint64_t table_bytes;
    uint64_t segment_bytes;
    int doorbell; /* eventfd: wakes emunic */
    uint32_t index;
    uint32_t nid;
    uint32_t ptag;
    uint32_t cookie;
    uint32_t instance_id;
    uint32_t node_index;   /* of its node in the domain table */
    pid_t owner;           /* a forked child must leave the port alone */
    uint64_t blocks_sent;  /* block transfers given to emunic */
    struct emu_gate *gate; /* borrowed: of the direct path */
    struct emu_idle idle;  /* polling in vain */

    struct emu_handed handed; /* block transfers in emunic's hands */

    struct emu_cmd *slots;                            /* in the segment */
    uint8_t *staging;                                 /* in the segment */
    _Atomic uint64_t *times;                          /* likewise: of the commands, in virtual time; NULL: functional */
    uint64_t launched_base;                           /* virtual time: of the handle of the last FMA launch */
    bool has_launched;                                /* likewise: there was one */
    const void *poster;                               /* likewise: the thread of the last command; NULL: none */
    bool has_posters;                                 /* likewise: several threads have posted */
    uint64_t tail;                                    /* commands published */
    uint64_t seen_head;                               /* emunic's progress as last seen */
    uint64_t staging_tail;                            /* bytes ever handed out, gaps at the wrap included */
    uint64_t staging_head;                            /* bytes known to be free again */
    uint64_t staging_end[EMU_RING_SLOTS];             /* staging_tail after the command in each slot */
    _Atomic(struct emu_cq_shm *) queues[EMU_CQS_MAX]; /* in the segment, by index; NULL: none, or never any */
    _Atomic uint32_t n_queues;                        /* highest index ever used, plus one */
    struct emu_cq_alarm alarm;                        /* of our own queues */
    struct emu_channel *channels[EMU_CQS_MAX];        /* borrowed, by queue: who hears of it; NULL nobody */
    struct emu_direct *direct; /* owned: what the direct path has mapped; NULL if there is none */
    bool has_space;            /* counted by space.c */
};

/*
 * Attaches: 0; -ECONNREFUSED no emunic; -EACCES credentials refused; -ENODEV no such device; -ENOSPC no port left;
 * -EPERM emunic may not reach this process's memory; -ENOMEM; -EPROTO emunic sent nonsense.
 */
int emu_port_attach(struct emu_port *port, uint32_t ptag, uint32_t cookie, uint32_t instance_id, uint32_t modes);
/* Ends what emu_port_attach() began. In the owner it returns when emunic has let go of the process's memory. */
void emu_port_detach(struct emu_port *port);

/*
 * Stale: from now on no system call names the port's device (socket, doorbell), requests fail with -ENETDOWN, and the
 * port counts as lost for whoever waits; a detach leaves the descriptors open. Until it is called with false.
 */
void emu_port_set_stale(struct emu_port *port, bool is_stale);

/* The first half of a detach: emunic has dropped the port, everything is still mapped. Not in a forked child. */
void emu_port_hang_up(struct emu_port *port);

/*
 * The next command slot, zeroed, or NULL when emunic has gone. Waits, yielding, while the ring is full: emunic empties
 * it by itself, so this ends. staged_bytes > 0 also reserves staging space; its place is stored in staging_off_out.
 */
struct emu_cmd *emu_port_command(struct emu_port *port, uint64_t staged_bytes, uint64_t *staging_off_out);

/* Is less than half of the ring and of the staging area in use? Under the caller's lock. */
bool emu_port_has_much_room(struct emu_port *port);

/*
 * Runs the slot of the last emu_port_command() at once on the direct path. False: that is closed or cannot do it, and
 * nothing has happened; the slot is to be published. Without EMU_CMD_STAGED its data are at local_addr of the process.
 */
bool emu_port_run(struct emu_port *port);

/* Hands the slot of the last emu_port_command() over: runs it, else publishes it. */
void emu_port_submit(struct emu_port *port);

/* Hands the slot of the last emu_port_command() to emunic: one release store, and a system call if emunic sleeps. */
void emu_port_publish(struct emu_port *port);

/* Has emunic look what the port wants: a system call. Not a cancellation point. */
void emu_port_ring(struct emu_port *port);

/*
 * Sends a request that needs no descriptors. 0 or positive outcome, or a negative errno (-ENETDOWN: emunic has gone).
 */
int emu_port_request(struct emu_port *port, struct emu_msg *msg);

/* wakes: somebody may sleep on the queue, so producers look for sleepers. */
int emu_port_cq_create(struct emu_port *port, uint32_t capacity, bool wakes, uint32_t *index_out,
                       struct emu_cq_consumer *cq_out);
/* The same with more places than peers are given: at least `room`, for the owner's own events and hints. */
int emu_port_cq_create_roomy(struct emu_port *port, uint32_t capacity, uint32_t room, bool wakes, uint32_t *index_out,
                             struct emu_cq_consumer *cq_out);
int emu_port_cq_destroy(struct emu_port *port, uint32_t index);

/* Memory to be registered. */
struct emu_port_memory {
    uint64_t addr;
    uint64_t length_bytes;
    uint32_t flags; /* EMU_MD_* */
    uint32_t cq;    /* for events of peers, or EMU_CQ_NONE */
};

/* Registers memory under any number. 0, or a negative errno. */
int emu_port_mem_register(struct emu_port *port, const struct emu_port_memory *memory, uint16_t *mdh_out,
                          uint16_t *generation_out);
/* The same with all that a request can say. memory: in and out. */
int emu_port_mem_request(struct emu_port *port, uint16_t type, struct emu_msg_memory *memory);
/*
 * The same for memory that the program has mapped shared, in a way that lets peers map its file (mapping.h). A negative
 * errno: that cannot be, register it plainly; *memory is as before.
 */
int emu_port_mem_register_shared(struct emu_port *port, struct emu_msg_memory *memory);
/* Announces the segments of the next registration with EMU_MD_SEGMENTED. No other may come between. */
int emu_port_mem_segments(struct emu_port *port, const uint64_t (*segments)[2], uint32_t n);
int emu_port_mem_deregister(struct emu_port *port, uint16_t mdh, uint16_t generation);
/* The same of one that has had other generations since (park.h): the number's next owner gets a later one. */
int emu_port_mem_deregister_latest(struct emu_port *port, uint16_t mdh, uint16_t generation, uint16_t latest);

/*
 * Has the job as many block transfers outstanding on this node as it may? This port's own exactly, those of others as
 * far as emunic has seen them. One load when there is no limit.
 */
static inline bool emu_port_blocks_are_used_up(const struct emu_port *port)
{
    struct emu_table_node *node = &emu_table_nodes(port->table)[port->node_index];
    uint32_t limit = atomic_load_explicit(&node->bte_limit, memory_order_relaxed);

    return limit != 0 &&
           (port->blocks_sent - atomic_load_explicit(&port->segment->blocks_ended, memory_order_acquire) >= limit ||
            atomic_load_explicit(&node->bte_running, memory_order_relaxed) >= limit);
}

/*
 * After an empty poll: yields now and then; where processes outnumber cores, or a yield has shown that others want this
 * core, it yields each time, and waits until there may be news for the port (an event, a short message, a datagram,
 * data from a peer, the end of the domain): the longer the more polls there were in vain, but hardly where the program
 * does something else between polls. So it does after some polls in a row where the domain has other hosts, and for a
 * program that has slept by itself lately. Now and then it looks whether emunic lives. True: time has passed, so look
 * again before saying that there is nothing.
 *
 * polled: a number of what was polled (an address, a handle), so that virtual time sees a loop over several things come
 * round.
 */
bool emu_port_relax(struct emu_port *port, uintptr_t polled);

/* The same for a caller that polls so many things in turn: it does not rest before each may have had its turn. */
bool emu_port_relax_among(struct emu_port *port, uintptr_t polled, uint32_t n_things);

/*
 * The same for a call in vain that a program makes beside its polls: a probe for datagrams, a send without credit. It
 * may have something else to do, and may be in a loop of events that goes on as long as a timer is due: Open MPI probes
 * by one of ten microseconds. So in virtual time such a call waits for no turn, and costs nothing, unless it is the
 * eighth in a row without another empty poll.
 */
bool emu_port_relax_aside(struct emu_port *port, uintptr_t tried);

/*
 * For a caller that ends its rounds of polls itself: from now on the three above return at once, without a yield, in
 * functional time. Any thread.
 */
void emu_port_poll_in_rounds(struct emu_port *port);

/*
 * The end of a round that found nothing: what emu_port_relax() does for a single poll, but for yields and waits if the
 * caller yields. Nothing in virtual time.
 */
void emu_port_end_round(struct emu_port *port, bool may_yield);

/*
 * What has been polled in vain until now no longer counts, and waits of other threads in emu_port_end_round() end.
 * Either the program has done something that the port does not see, or this thread has found what others may wait for.
 */
void emu_port_stir(struct emu_port *port);

/* A poll has found something: the next empty ones are the first in a row. */
static inline void emu_port_found(struct emu_port *port)
{
    atomic_store_explicit(&port->idle.found_at, atomic_load_explicit(&port->idle.empty_polls, memory_order_relaxed),
                          memory_order_relaxed);
}

/*
 * The same for blocking calls, which sleep by themselves: yields only. Returns how many polls the caller shall
 * count this for: more than one when others want the core.
 */
uint32_t emu_port_spin(struct emu_port *port);

/* True once emunic has gone or has ended the domain. */
bool emu_port_is_lost(struct emu_port *port);

/*
 * Sleeps until *word differs from `seen`, emunic has gone, or deadline_ns (emu_clock_ns; UINT64_MAX = for ever) has
 * passed. 0 woken (perhaps without cause), -ETIMEDOUT, -EINTR by a signal, -ENETDOWN. A cancellation point, the only
 * one here: it acts at once, in the sleep, where the thread holds nothing of the port.
 */
int emu_port_wait(struct emu_port *port, _Atomic uint32_t *const *words, const uint32_t *seen, unsigned n_words,
                  uint64_t deadline_ns);

/* Wakes every thread of this process that sleeps on the word. The caller has changed it. */
void emu_port_wake(_Atomic uint32_t *word);

#endif
