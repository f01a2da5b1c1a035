/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals operations that a dead process has left undone in other interfaces.
 *
 * When a port ends, its flights in other interfaces are ended for it (engine/portals_engine.h), at once or as soon as
 * the lock is free.
 */
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/portals_engine.h"

/* A flight of a dead process, in an interface that is locked. */
struct emu_portals_repair {
    LIST_ENTRY(emu_portals_repair) link;
    struct emu_domain *domain; /* borrowed: outlives it */
    uint32_t port;
    uint32_t generation;
    struct emu_ptl_flight flight;
};

static void repair_later(struct emu_port_end *owner, const struct emu_ptl_flight *flight)
{
    struct emu_portals_repair *repair = malloc(sizeof(*repair));

    if (!repair) {
        emu_log(EMU_LOG_ERROR, "out of memory: a dead process's message never ends");
        return;
    }
    repair->domain = owner->domain;
    repair->port = owner->index;
    repair->generation = emu_portals_generation(owner->domain, owner->index);
    memcpy(&repair->flight, flight, sizeof(*flight));
    LIST_INSERT_HEAD(&emu_portals_of(owner->server)->repairs, repair, link);
    emu_portals_of(owner->server)->n_waits++;
}

/* What the dead port was doing at this interface. */
static void repair(struct emu_port_end *owner, uint64_t dead, uint32_t dead_port)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(owner);
    struct emu_ptl_flight *flight = &ni->flights[dead_port];
    bool held = atomic_load_explicit(&ni->lock, memory_order_acquire) == dead;
    bool is_open = atomic_load_explicit(&flight->stage, memory_order_acquire) != EMU_PTL_IDLE &&
                   flight->generation == (uint32_t)(dead >> 32);

    if (!held && !is_open)
        return;
    if (held)
        atomic_store_explicit(&ni->lock, EMU_PTL_HOLDER_EMUNIC, memory_order_release);
    if (held || emu_portals_end_try_lock(ni)) {
        if (is_open)
            emu_ptl_repair(ni, flight, held);
        emu_portals_end_unlock(owner);
    } else {
        repair_later(owner, flight);
    }
    if (is_open)
        atomic_store_explicit(&flight->stage, EMU_PTL_IDLE, memory_order_relaxed);
    emu_log(EMU_LOG_INFO, "portals nid %u pid %u: ended what a dead process was doing there", owner->nid,
            emu_portals_end_pid(owner));
}

/* True: it is over. */
static bool try_repair(struct emu_portals_repair *repair)
{
    struct emu_port_end *owner = repair->domain->ports[repair->port];

    if (!owner || !emu_portals_end_is_open(owner) ||
        emu_portals_generation(repair->domain, repair->port) != repair->generation)
        return true;
    if (!emu_portals_end_try_lock(emu_portals_end_ni(owner)))
        return false;
    emu_ptl_repair(emu_portals_end_ni(owner), &repair->flight, false);
    emu_portals_end_unlock(owner);
    return true;
}

static void drop_repair(struct emu_server *server, struct emu_portals_repair *repair)
{
    LIST_REMOVE(repair, link);
    free(repair);
    emu_portals_of(server)->n_waits--;
}

void emu_portals_repair_port(struct emu_port_end *port)
{
    uint64_t dead = emu_ptl_holder(port->index, emu_portals_generation(port->domain, port->index));
    struct emu_port_end *other;

    LIST_FOREACH(other, &port->server->ports, link) {
        if (other != port && other->domain == port->domain && emu_portals_end_is_open(other))
            repair(other, dead, port->index);
    }
}

void emu_portals_repair_round(struct emu_server *server)
{
    struct emu_portals_repair *repair = LIST_FIRST(&emu_portals_of(server)->repairs);

    while (repair) {
        struct emu_portals_repair *next = LIST_NEXT(repair, link);

        if (try_repair(repair))
            drop_repair(server, repair);
        repair = next;
    }
}

void emu_portals_repair_drop_domain(struct emu_server *server, const struct emu_domain *domain)
{
    struct emu_portals_repair *repair = LIST_FIRST(&emu_portals_of(server)->repairs);

    while (repair) {
        struct emu_portals_repair *next = LIST_NEXT(repair, link);

        if (repair->domain == domain)
            drop_repair(server, repair);
        repair = next;
    }
}
