/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting until nobody is inside.
 *
 * On the direct path the members of a domain run the engine themselves. Each marks its segment (`inside` odd) before it
 * looks at the domain table and clears the mark after its last access. So emunic takes something away in three steps:
 * make it invisible in the table, run a barrier, then wait until every port that was inside at that moment has left or
 * died. Only then is it released and the owner answered: after GNI_MemDeregister nobody touches the memory any more.
 *
 * The mark is a plain store, made for every operation; the barrier that orders it against the look at the table behind
 * it runs here, once per release: membarrier() has every core that runs a member do it. A domain made where the kernel
 * refuses that has EMU_TABLE_FENCED, and its members run their own.
 *
 * A transfer inside is short (EMUNIC_DIRECT_LIMIT), but its process may be descheduled or stopped; emunic never waits
 * in place: what it would do is kept as a `struct emu_quiesce` and looked at in each round. Usually nobody is
 * inside and everything happens at once.
 *
 * What other hosts have asked for moves without anybody inside (visit.c): a memory domain whose memory is being read or
 * written that way is waited for alike, at most until that host is lost.
 *
 * Telling everybody to stay outside works the same way: a suspension is complete, and a limit of injection in force,
 * when all who were inside have left.
 *
 * A process that died inside may have reserved a place in a completion queue and not filled it. When everybody who
 * was inside with it has left, any such place is the dead one's: emunic fills it with an error event. Nor may it have
 * told of a queue that it disarmed: emunic does (channel.c).
 */
#include "emunic/daemon/core/quiesce.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/channel.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/commands/remote.h"
#include "emunic/daemon/commands/visit.h"
#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/jobs/job.h"
#include "emunic/daemon/memory/memory_domain.h"
#include "emunic/daemon/core/port.h"
#include "emunic/engine/rest.h"

enum kind { FOR_MEMORY, FOR_CQ, FOR_PORT, FOR_SUSPEND, FOR_PACE };

struct inside {
    uint32_t port;
    uint32_t generation;
    uint64_t mark;
};

/* A queue that a dead port may have left a gap in: places before `tail` were reserved when it died. */
struct gap {
    uint32_t port;
    uint32_t generation;
    uint32_t cq;
    uint64_t serial;
    uint64_t tail;
};

struct emu_quiesce {
    LIST_ENTRY(emu_quiesce) link;
    struct emu_domain *domain;         /* borrowed: outlives it */
    struct emu_connection *connection; /* to answer, or NULL */
    struct emu_port_end *port;         /* of a queue; NULL once it has gone */
    struct emu_msg reply;
    enum kind kind;
    uint32_t number; /* queue index, or slot of a dead port */
    uint32_t nid;
    uint16_t *mdhs; /* owned */
    uint32_t n_mdhs;
    struct gap *gaps; /* owned */
    uint32_t n_gaps;
    struct inside *waits; /* owned */
    uint32_t n_waits;
    uint64_t deadline_ns; /* of a suspension */
    uint64_t order;
    bool is_awaited; /* the suspension's end, by who has ordered it */
    bool gave_up;
};

bool emu_quiesce_has_barrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

static uint32_t generation_of(const struct emu_domain *domain, uint32_t port)
{
    return emu_table_ports(domain->table)[port].generation;
}

/* Who is inside now. */
static int collect_waits(struct emu_quiesce *q)
{
    struct emu_domain *domain = q->domain;
    struct emu_member *member;
    struct emu_port_end *port;

    /* Pairs with emu_gate_enter(): who does not see our change has its mark up. */
    atomic_thread_fence(memory_order_seq_cst);
    if ((atomic_load(&domain->table->flags) & EMU_TABLE_FENCED) == 0)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            uint64_t mark = atomic_load_explicit(&port->segment->inside, memory_order_acquire);
            struct inside *more;

            if ((mark & 1) == 0)
                continue;
            more = realloc(q->waits, (q->n_waits + 1) * sizeof(*more));
            if (!more)
                return -ENOMEM;
            more[q->n_waits++] = (struct inside){ port->index, generation_of(domain, port->index), mark };
            q->waits = more;
        }
    }
    return 0;
}

static bool has_left(const struct emu_quiesce *q, const struct inside *w)
{
    const struct emu_port_end *port = q->domain->ports[w->port];

    return !port || generation_of(q->domain, w->port) != w->generation ||
           atomic_load_explicit(&port->segment->inside, memory_order_acquire) != w->mark;
}

/* Of the domain, to other hosts. */
static bool is_anything_under_way(const struct emu_domain *domain)
{
    const struct emu_member *member;
    const struct emu_port_end *port;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            if (emu_remote_awaits_answers(port) || port->portals_remote.n > 0)
                return true;
        }
    }
    return false;
}

static bool everybody_has_left(struct emu_quiesce *q)
{
    while (q->n_waits > 0) {
        if (!has_left(q, &q->waits[q->n_waits - 1]))
            return false;
        q->n_waits--;
    }
    return q->kind != FOR_SUSPEND || !is_anything_under_way(q->domain);
}

/* Other hosts' data are being moved from or to its memory. */
static bool is_visited(const struct emu_server *server, const struct emu_quiesce *q)
{
    for (uint32_t i = 0; i < q->n_mdhs; i++) {
        if (emu_visit_holds(server, q->domain, q->nid, q->mdhs[i]))
            return true;
    }
    return false;
}

/* ---- gaps ---- */

static int collect_gaps(struct emu_quiesce *q)
{
    struct emu_domain *domain = q->domain;
    struct emu_member *member;
    struct emu_port_end *port;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            for (uint32_t cq = 0; cq < EMU_CQS_MAX; cq++) {
                struct gap *more;

                if (!port->cqs[cq].in_use)
                    continue;
                more = realloc(q->gaps, (q->n_gaps + 1) * sizeof(*more));
                if (!more)
                    return -ENOMEM;
                more[q->n_gaps++] =
                    (struct gap){ port->index, generation_of(domain, port->index), cq, port->cqs[cq].serial,
                                  atomic_load(&port->cqs[cq].producer.shm->tail) };
                q->gaps = more;
            }
        }
    }
    return 0;
}

static void fill_gaps(struct emu_quiesce *q)
{
    uint64_t event = emu_event_with_status(emu_event_make(0, EMU_SOURCE_REMOTE, 0), EMU_STATUS_PEER_GONE);

    for (uint32_t i = 0; i < q->n_gaps; i++) {
        const struct gap *gap = &q->gaps[i];
        struct emu_port_end *port = q->domain->ports[gap->port];
        unsigned n_filled;

        if (!port || generation_of(q->domain, gap->port) != gap->generation || !port->cqs[gap->cq].in_use ||
            port->cqs[gap->cq].serial != gap->serial)
            continue;
        n_filled = emu_cq_fill_gaps(&port->cqs[gap->cq].producer, gap->tail, event);
        emu_channel_end_tell_again(port, gap->cq);
        if (n_filled == 0)
            continue;
        emu_rest_disturb(port->segment);
        emu_log(EMU_LOG_INFO, "nid %u inst 0x%x: filled a gap that a dead process left in queue %u", port->nid,
                port->instance_id, gap->cq);
    }
}

/* ---- life ---- */

static void release(struct emu_server *server, struct emu_quiesce *q)
{
    for (uint32_t i = 0; i < q->n_mdhs; i++)
        emu_md_release(server, q->domain, q->nid, q->mdhs[i]);
    if (q->kind == FOR_CQ && q->port)
        emu_port_end_cq_release(q->port, q->number);
    if (q->kind == FOR_PORT) {
        fill_gaps(q);
        q->domain->resting[q->number] = false;
    }
    if (q->kind == FOR_SUSPEND) {
        emu_job_suspended(q->domain, !q->gave_up);
        if (q->is_awaited)
            emu_admin_suspended(server, q->order, q->gave_up ? -ETIMEDOUT : 0);
    }
    if (q->kind == FOR_PACE)
        emu_injection_done(server, q->nid, (uint16_t)q->number);
    if (q->connection)
        emu_connection_answer_with(q->connection, &q->reply, 0, -1);
}

static void destroy(struct emu_quiesce *q)
{
    free(q->mdhs);
    free(q->gaps);
    free(q->waits);
    free(q);
}

static struct emu_quiesce *create(struct emu_domain *domain, enum kind kind, uint32_t number)
{
    struct emu_quiesce *q = calloc(1, sizeof(*q));

    if (q) {
        q->domain = domain;
        q->kind = kind;
        q->number = number;
    }
    return q;
}

/* Releases at once if it can; else keeps it. Returns whether it is done. */
static bool start(struct emu_server *server, struct emu_quiesce *q)
{
    if (collect_waits(q) == 0 && everybody_has_left(q) && !is_visited(server, q)) {
        release(server, q);
        destroy(q);
        return true;
    }
    LIST_INSERT_HEAD(&server->quiesces, q, link);
    return false;
}

int emu_quiesce_memory(struct emu_connection *connection, struct emu_port_end *port, uint16_t mdh,
                       const struct emu_msg *request)
{
    struct emu_quiesce *q = create(port->domain, FOR_MEMORY, 0);

    if (!q)
        return -ENOMEM;
    q->mdhs = malloc(sizeof(*q->mdhs));
    if (!q->mdhs) {
        destroy(q);
        return -ENOMEM;
    }
    q->mdhs[0] = mdh;
    q->n_mdhs = 1;
    q->nid = port->nid;
    q->reply = *request;
    if (start(connection->server, q))
        return 0;
    q->connection = connection;
    return EMU_DEFERRED;
}

int emu_quiesce_queue(struct emu_connection *connection, struct emu_port_end *port, uint32_t cq,
                      const struct emu_msg *request)
{
    struct emu_quiesce *q = create(port->domain, FOR_CQ, cq);

    if (!q)
        return -ENOMEM;
    q->port = port;
    q->reply = *request;
    if (start(connection->server, q))
        return 0;
    q->connection = connection;
    return EMU_DEFERRED;
}

int emu_quiesce_suspend(struct emu_server *server, struct emu_domain *domain, uint64_t order, uint64_t deadline_ns)
{
    struct emu_quiesce *q = create(domain, FOR_SUSPEND, 0);

    if (!q)
        return -ENOMEM;
    q->deadline_ns = deadline_ns;
    if (start(server, q))
        return 0;
    q->order = order;
    q->is_awaited = true;
    return EMU_DEFERRED;
}

void emu_quiesce_give_up(struct emu_server *server, const struct emu_domain *domain)
{
    struct emu_quiesce *q;

    LIST_FOREACH(q, &server->quiesces, link) {
        if (q->kind == FOR_SUSPEND && q->domain == domain)
            q->gave_up = true;
    }
}

int emu_quiesce_pace(struct emu_server *server, struct emu_domain *domain, uint32_t nid, uint16_t seq)
{
    struct emu_quiesce *q = create(domain, FOR_PACE, seq);

    if (!q)
        return -ENOMEM;
    q->nid = nid;
    start(server, q);
    return 0;
}

void emu_quiesce_port(struct emu_port_end *port, uint16_t *mdhs, uint32_t n_mdhs, bool died_inside)
{
    struct emu_server *server = port->server;
    struct emu_quiesce *q = create(port->domain, FOR_PORT, port->index);

    if (!q) {
        emu_log(EMU_LOG_ERROR, "out of memory: handles of a dead port stay in use");
        free(mdhs);
        return;
    }
    q->mdhs = mdhs;
    q->n_mdhs = n_mdhs;
    q->nid = port->nid;
    port->domain->resting[port->index] = true;
    if (died_inside && collect_gaps(q) < 0)
        emu_log(EMU_LOG_ERROR, "out of memory: gaps of a dead process may stay in queues");
    start(server, q);
}

void emu_quiesce_round(struct emu_server *server)
{
    struct emu_quiesce *q = LIST_FIRST(&server->quiesces);

    while (q) {
        struct emu_quiesce *next = LIST_NEXT(q, link);

        bool is_quiet = everybody_has_left(q) && !is_visited(server, q);

        if (!is_quiet && q->deadline_ns != 0 && emu_clock_ns() >= q->deadline_ns)
            q->gave_up = true;
        if (is_quiet || q->gave_up) {
            LIST_REMOVE(q, link);
            release(server, q);
            destroy(q);
        }
        q = next;
    }
}

void emu_quiesce_forget(struct emu_server *server, const struct emu_connection *connection,
                        const struct emu_port_end *port)
{
    struct emu_quiesce *q;

    LIST_FOREACH(q, &server->quiesces, link) {
        if (connection && q->connection == connection)
            q->connection = NULL;
        if (port && q->port == port)
            q->port = NULL;
    }
}

void emu_quiesce_drop_domain(struct emu_server *server, const struct emu_domain *domain)
{
    struct emu_quiesce *q = LIST_FIRST(&server->quiesces);

    while (q) {
        struct emu_quiesce *next = LIST_NEXT(q, link);

        if (q->domain == domain) {
            LIST_REMOVE(q, link);
            release(server, q);
            destroy(q);
        }
        q = next;
    }
}
