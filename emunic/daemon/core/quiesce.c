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
 * What other hosts have asked for moves without anybody inside: whoever takes something away may add a question of its
 * own (is_busy), and memory that is being read or written that way is waited for alike.
 *
 * Telling everybody to stay outside works the same way: a suspension is complete, and a limit of injection in force,
 * when all who were inside have left.
 */
#include "emunic/daemon/core/quiesce.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

struct emu_inside {
    uint32_t port;
    uint32_t generation;
    uint64_t mark;
};

bool emu_quiesce_has_barrier(void)
{
    /* Members run it on our core as well (client/park.c). */
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
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
            struct emu_inside *more;

            if ((mark & 1) == 0)
                continue;
            more = realloc(q->waits, (q->n_waits + 1) * sizeof(*more));
            if (!more)
                return -ENOMEM;
            more[q->n_waits++] = (struct emu_inside){ port->index, generation_of(domain, port->index), mark };
            q->waits = more;
        }
    }
    return 0;
}

static bool has_left(const struct emu_quiesce *q, const struct emu_inside *w)
{
    const struct emu_port_end *port = q->domain->ports[w->port];

    return !port || generation_of(q->domain, w->port) != w->generation ||
           atomic_load_explicit(&port->segment->inside, memory_order_acquire) != w->mark;
}

static bool is_over(const struct emu_server *server, struct emu_quiesce *q)
{
    while (q->n_waits > 0) {
        if (!has_left(q, &q->waits[q->n_waits - 1]))
            return false;
        q->n_waits--;
    }
    return !q->ops->is_busy || !q->ops->is_busy(server, q);
}

/* ---- life ---- */

struct emu_quiesce *emu_quiesce_create(struct emu_domain *domain, const struct emu_quiesce_ops *ops, void *ctx)
{
    struct emu_quiesce *q = calloc(1, sizeof(*q));

    if (!q) {
        free(ctx);
        return NULL;
    }
    q->domain = domain;
    q->ops = ops;
    q->ctx = ctx;
    return q;
}

void emu_quiesce_cancel(struct emu_quiesce *q)
{
    free(q->ctx);
    free(q->waits);
    free(q);
}

static void release(struct emu_server *server, struct emu_quiesce *q)
{
    q->ops->left(server, q);
    if (q->connection)
        emu_connection_answer_with(q->connection, &q->reply, 0, -1);
    emu_quiesce_cancel(q);
}

bool emu_quiesce_start(struct emu_server *server, struct emu_quiesce *q)
{
    if (collect_waits(q) == 0 && is_over(server, q)) {
        release(server, q);
        return true;
    }
    LIST_INSERT_HEAD(&server->quiesces, q, link);
    return false;
}

int emu_quiesce_answer(struct emu_connection *connection, struct emu_quiesce *q, const struct emu_msg *request)
{
    q->reply = *request;
    if (emu_quiesce_start(connection->server, q))
        return 0;
    q->connection = connection;
    return EMU_DEFERRED;
}

void emu_quiesce_give_up(struct emu_server *server, const struct emu_domain *domain, const struct emu_quiesce_ops *ops)
{
    struct emu_quiesce *q;

    LIST_FOREACH(q, &server->quiesces, link) {
        if (q->ops == ops && q->domain == domain)
            q->gave_up = true;
    }
}

void emu_quiesce_round(struct emu_server *server)
{
    struct emu_quiesce *q = LIST_FIRST(&server->quiesces);

    while (q) {
        struct emu_quiesce *next = LIST_NEXT(q, link);
        bool is_quiet = is_over(server, q);

        if (!is_quiet && q->deadline_ns != 0 && emu_clock_ns() >= q->deadline_ns)
            q->gave_up = true;
        if (is_quiet || q->gave_up) {
            LIST_REMOVE(q, link);
            release(server, q);
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
        }
        q = next;
    }
}
