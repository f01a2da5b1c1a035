/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals commands of a port to interfaces on this host.
 *
 * The command at the head of a ring is worked off in steps, each of which wants one lock at most:
 *
 *   put      begin (target: match, START) -> move -> sent (initiator: SEND_END) -> end (target: END) -> home (ACK)
 *   get      begin (initiator: SEND_END; target) -> reply (initiator: REPLY_START) -> move -> end -> home (REPLY_END)
 *   getput   begin (with the swap) -> sent -> end -> reply -> move -> home
 *   none     begin (nobody takes it) -> home (SEND_END)
 *
 * SEND_END stands in the initiator's queue before END does in the target's, whatever it may cause there. Data of one
 * slice are moved in the first step, and where the initiator's lock is free then, "sent" and "end" are part of it.
 * A get's is posted first of all, if the initiator has not done it (EMU_PTL_CMD_SENT).
 *
 * A lock that is not free, or data longer than a slice, end the step; the next round goes on. The command stays at the
 * ring's head meanwhile, so the port's later requests wait for it: each is delivered before the next is matched. A
 * command that an injected fault or a broken network ends goes to "home" alone; it has left the ring then
 * (is_detached).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/portals/portals_work.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/portals_engine.h"

enum phase { IDLE, BEGIN, REPLY, MOVE, SENT, END, HOME };

/* The command at the head of a ring. */
struct work {
    enum phase phase;
    bool is_detached; /* it has left the ring */
    struct emu_portals_work w;
};

/* NULL while the port is no interface. */
static struct work *work_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_PORTALS_WORK];
}

/* ---- steps ---- */

/* The data have been moved and the target is locked. True: SEND_END is posted, its END may be. */
static bool try_sent(struct emu_port_end *port, struct work *work, const struct emu_port_end *target)
{
    if (port != target && !emu_portals_end_lock(port, &work->w.waits_since_ns))
        return false;
    emu_portals_work_post_sent(emu_portals_end_ni(port), &work->w);
    if (port != target)
        emu_portals_end_unlock(port);
    return true;
}

static bool move(struct emu_port_end *port, struct work *work)
{
    return emu_portals_work_move(port, &work->w, port->server->settings.slice_bytes);
}

/* The target is locked. */
static enum phase begin_at(struct emu_port_end *port, struct work *work, struct emu_port_end *target)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(target);
    struct emu_ptl_flight *flight = &ni->flights[port->index];
    enum emu_ptl_request_kind kind = work->w.send.kind;
    struct emu_ptl_request request;

    if (!emu_portals_work_match(port, &work->w, target, &request))
        return HOME;
    if (kind != EMU_PTL_GET)
        emu_portals_work_open_source(port, &work->w);
    emu_portals_work_begin(port, &work->w, target, &request, flight);
    if (kind == EMU_PTL_GETPUT)
        work->w.fail = emu_portals_work_swap(port, &work->w);
    else if (kind == EMU_PTL_PUT && move(port, work))
        return MOVE;
    if (kind == EMU_PTL_GET)
        return REPLY;
    if (!try_sent(port, work, target))
        return SENT;
    emu_ptl_end(ni, flight, work->w.fail);
    return kind == EMU_PTL_GETPUT ? REPLY : HOME;
}

static bool step_begin(struct emu_port_end *port, struct work *work)
{
    struct emu_port_end *target = emu_portals_end_find(port, work->w.send.nid, work->w.send.pid);
    bool is_cut;

    if (!emu_portals_work_look_at_cut(port, &work->w, &is_cut))
        return false;
    if (is_cut)
        target = NULL;
    if (work->w.send.kind == EMU_PTL_GET && !work->w.is_sent && !emu_portals_work_tell_sent(port, &work->w))
        return false;
    if (!target) {
        work->phase = HOME;
        return true;
    }
    if (!emu_portals_end_lock(target, &work->w.waits_since_ns))
        return false;
    work->phase = begin_at(port, work, target);
    emu_portals_end_unlock(target);
    return true;
}

static bool step_reply(struct emu_port_end *port, struct work *work)
{
    const struct emu_portals_work *w = &work->w;

    if (!emu_portals_work_begin_reply(port, &work->w))
        return false;
    work->phase = w->has_reply && w->fail == 0 ? MOVE : w->send.kind == EMU_PTL_GET && w->is_taken ? END : HOME;
    return true;
}

static bool step_move(struct emu_port_end *port, struct work *work)
{
    enum emu_ptl_request_kind kind = work->w.send.kind;

    if (kind != EMU_PTL_GETPUT && !emu_portals_work_target(port, &work->w)) {
        work->w.fail = EMU_STATUS_PEER_GONE;
        work->phase = HOME;
        return true;
    }
    if (move(port, work))
        return false; /* the others first */
    work->phase = kind == EMU_PTL_GETPUT ? HOME : kind == EMU_PTL_PUT ? SENT : END;
    return true;
}

static bool step_sent(struct emu_port_end *port, struct work *work)
{
    if (!emu_portals_work_tell_sent(port, &work->w))
        return false;
    work->phase = END;
    return true;
}

static bool step_end(struct emu_port_end *port, struct work *work)
{
    struct emu_port_end *target = emu_portals_work_target(port, &work->w);

    if (!target) {
        work->w.fail = EMU_STATUS_PEER_GONE;
    } else {
        if (!emu_portals_end_lock(target, &work->w.waits_since_ns))
            return false;
        emu_ptl_end(emu_portals_end_ni(target), &emu_portals_end_ni(target)->flights[port->index], work->w.fail);
        emu_portals_end_unlock(target);
    }
    work->phase = work->w.send.kind == EMU_PTL_GETPUT ? REPLY : HOME;
    return true;
}

static bool step_home(struct emu_port_end *port, struct work *work)
{
    if (!emu_portals_work_come_home(port, &work->w))
        return false;
    work->phase = IDLE;
    return true;
}

/* True: the command is over. */
static bool go_on(struct emu_port_end *port, struct work *work)
{
    static bool (*const steps[])(struct emu_port_end *, struct work *) = {
        [BEGIN] = step_begin, [REPLY] = step_reply, [MOVE] = step_move,
        [SENT] = step_sent,   [END] = step_end,     [HOME] = step_home,
    };

    while (work->phase != IDLE) {
        if (!steps[work->phase](port, work))
            return false;
    }
    return true;
}

static void start(struct work *work, struct emu_port_end *port, const struct emu_cmd *cmd)
{
    work->phase = BEGIN;
    work->is_detached = false;
    emu_portals_work_start(port, &work->w, cmd);
}

/* ---- commands ---- */

static bool finish_detached(struct emu_port_end *port, struct work *work)
{
    if (!go_on(port, work))
        return false;
    work->is_detached = false;
    emu_portals_of(port->server)->n_waits--;
    return true;
}

bool emu_portals_end_is_busy(struct emu_port_end *port)
{
    struct work *work = work_of(port);

    if (work->phase != IDLE && work->is_detached)
        finish_detached(port, work);
    return work->phase != IDLE;
}

bool emu_portals_end_serve(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct work *work;

    if (!emu_portals_end_is_open(port))
        return true; /* a client that has no interface */
    work = work_of(port);
    if (work->phase != IDLE && work->is_detached)
        return false;
    if (work->phase == IDLE)
        start(work, port, cmd);
    return go_on(port, work);
}

/* A reply for the initiator that says that there is none. */
void emu_portals_end_fail(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status)
{
    struct work *work;

    if (!emu_portals_end_is_open(port))
        return;
    work = work_of(port);
    if (work->phase != IDLE)
        return; /* cannot be: it is asked about before it begins */
    start(work, port, cmd);
    work->phase = work->w.send.kind == EMU_PTL_PUT ? HOME : REPLY;
    work->w.fail = status;
    work->is_detached = true;
    emu_portals_of(port->server)->n_waits++;
    finish_detached(port, work);
}

void emu_portals_command_round(struct emu_server *server)
{
    struct emu_port_end *port;

    LIST_FOREACH(port, &server->ports, link) {
        if (emu_portals_end_is_open(port))
            emu_portals_end_is_busy(port);
    }
}

/* ---- life ---- */

int emu_portals_command_open(struct emu_port_end *port)
{
    if (!work_of(port))
        port->slots[EMU_PORT_PORTALS_WORK] = calloc(1, sizeof(*work_of(port)));
    return work_of(port) ? 0 : -ENOMEM;
}

void emu_portals_command_close(struct emu_port_end *port)
{
    if (work_of(port) && work_of(port)->phase != IDLE && work_of(port)->is_detached)
        emu_portals_of(port->server)->n_waits--;
    free(work_of(port));
    port->slots[EMU_PORT_PORTALS_WORK] = NULL;
}
