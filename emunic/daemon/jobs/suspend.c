/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Suspending: the commands of a job wait until it is resumed.
 *
 *   runs -> suspends (flag in the table, commands wait) -> suspended (nobody inside the engine) -> runs
 *           suspends -> runs (deadline, or the caller has gone)
 *
 * Commands stay in their rings and transfers where they are; nothing is lost or reordered. Requests are answered. With
 * several hosts each does this for its own processes; what is under way to another host has been answered when a host
 * is quiet.
 */
#include "emunic/daemon/jobs/suspend.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/commands/remote.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

/* The order of a suspension, while somebody waits for its end. */
struct suspension {
    uint64_t order;
    bool is_awaited;
};

static void end_suspending(struct emu_domain *domain, bool is_quiet)
{
    domain->job.suspension = is_quiet ? EMU_SUSPENDED : EMU_RUNS;
    if (!is_quiet)
        atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_SUSPENDED);
    emu_log(EMU_LOG_INFO, "domain %u %s", domain->id, is_quiet ? "is suspended" : "could not be suspended");
}

/* Is anything of the domain under way to other hosts that has not been answered? */
static bool is_anything_under_way(const struct emu_server *server, const struct emu_quiesce *q)
{
    const struct emu_member *member;
    const struct emu_port_end *port;

    (void)server;
    LIST_FOREACH(member, &q->domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            if (emu_remote_awaits_answers(port) || emu_portals_remote_of(port)->n > 0)
                return true;
        }
    }
    return false;
}

/* Nobody is inside any more, or it was given up. */
static void members_have_left(struct emu_server *server, struct emu_quiesce *q)
{
    const struct suspension *s = q->ctx;

    end_suspending(q->domain, !q->gave_up);
    if (s->is_awaited)
        emu_order_ended(server, s->order, q->gave_up ? -ETIMEDOUT : 0);
}

static const struct emu_quiesce_ops suspend_ops = { .left = members_have_left, .is_busy = is_anything_under_way };

void emu_job_run_again(struct emu_server *server, struct emu_domain *domain)
{
    if (domain->job.suspension == EMU_SUSPENDS)
        emu_quiesce_give_up(server, domain, &suspend_ops); /* its end makes it run */
    if (domain->job.suspension != EMU_SUSPENDED)
        return;
    domain->job.suspension = EMU_RUNS;
    atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_SUSPENDED);
    emu_log(EMU_LOG_INFO, "domain %u runs again", domain->id);
}

void emu_job_follow_suspension(struct emu_server *server, struct emu_domain *domain, bool is_suspended)
{
    if (is_suspended == (domain->job.suspension != EMU_RUNS))
        return;
    if (is_suspended) {
        domain->job.suspension = EMU_SUSPENDED;
        atomic_fetch_or(&domain->table->flags, EMU_TABLE_SUSPENDED);
    } else {
        emu_job_run_again(server, domain);
    }
}

int emu_job_suspend(struct emu_server *server, struct emu_domain *domain, uint64_t order, uint32_t timeout_ms)
{
    struct suspension *s = calloc(1, sizeof(*s));
    struct emu_quiesce *q = s ? emu_quiesce_create(domain, &suspend_ops, s) : NULL;

    if (!q)
        return -ENOMEM;
    s->order = order;
    q->deadline_ns = emu_clock_ns() + timeout_ms * 1000000ull;
    domain->job.suspension = EMU_SUSPENDS;
    atomic_fetch_or(&domain->table->flags, EMU_TABLE_SUSPENDED);
    if (emu_quiesce_start(server, q))
        return 0;
    s->is_awaited = true;
    return EMU_DEFERRED;
}
