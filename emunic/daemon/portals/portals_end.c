/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals interfaces in emunic: making them, finding them, locking them.
 *
 * An interface is a port with a Portals part (abi/portals.h). Its process id is unique among the interfaces on a node
 * of the domain; wanted ids are given, or refused; others are the rank's number, or the next free one. Members find
 * interfaces in the domain table.
 *
 * emunic never waits for a lock. One that stays taken is looked into: a holder that has gone, or is not inside, holds
 * nothing.
 *
 * Everything in an interface is its domain's word against nobody: identities come from emunic's own records, memory is
 * reached only through the owner's registrations or its process.
 */
#include "emunic/daemon/portals/portals_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/portals_engine.h"
#include "emunic/engine/rest.h"
#include "emunic/fabric/detour.h"

#define LOCK_TRIES 64u
#define STUCK_NS   20000000u
#define FIRST_FREE 1024u /* of process ids that nobody has asked for */
#define KNOWN      16u

struct known {
    uint32_t nid;
    uint32_t pid;
    uint32_t port;
    uint32_t generation;
};

struct emu_portals_end {
    struct emu_ptl_ni *ni;         /* mapped */
    struct emu_shared_file shared; /* its descriptor is owned */
    uint32_t pid;
    struct emu_port_end *port; /* borrowed: whose it is */
    struct emu_index_entry by_address;
    struct known known[KNOWN];
};

/* NULL while the port is no interface. */
static struct emu_portals_end *end_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_PORTALS];
}

/* ---- interfaces ---- */

static struct emu_key address_of(const struct emu_domain *domain, uint32_t nid, uint32_t pid)
{
    return (struct emu_key){ { domain->id, nid, pid } };
}

/* The interface of the port's domain there; NULL: none. */
static struct emu_portals_end *end_at(const struct emu_port_end *port, uint32_t nid, uint32_t pid)
{
    return EMU_INDEXED(emu_index_oldest(&emu_portals_of(port->server)->ends, address_of(port->domain, nid, pid)),
                       struct emu_portals_end, by_address);
}

static bool is_taken(const struct emu_port_end *port, uint32_t pid)
{
    return end_at(port, port->nid, pid);
}

static int choose_pid(const struct emu_port_end *port, const struct emu_msg_portals *asked, uint32_t *pid_out)
{
    uint32_t pid = asked->pid;

    if (pid != EMU_PTL_PID_ANY) {
        if (pid > EMU_PTL_PID_LAST || is_taken(port, pid))
            return -EADDRINUSE;
        *pid_out = pid;
        return 0;
    }
    pid = port->member->rank; /* libpmi's map counts on that */
    if (pid > EMU_PTL_PID_LAST || is_taken(port, pid))
        pid = port->domain->n_ranks > FIRST_FREE ? port->domain->n_ranks : FIRST_FREE;
    while (pid <= EMU_PTL_PID_LAST && is_taken(port, pid)) /* at most EMU_PORTS_MAX times */
        pid++;
    *pid_out = pid;
    return pid <= EMU_PTL_PID_LAST ? 0 : -EADDRNOTAVAIL;
}

static int make_part(struct emu_portals_end *end, uint32_t port)
{
    int fd = memfd_create("emunic-portals", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct emu_ptl_ni *ni;
    int r;

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)sizeof(*ni)) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        goto err_fd;
    ni = mmap(NULL, sizeof(*ni), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (ni == MAP_FAILED)
        goto err_fd;
    ni->magic = EMU_PTL_MAGIC;
    ni->abi_version = EMU_ABI_VERSION;
    ni->port = port;
    ni->bytes = sizeof(*ni);
    end->ni = ni;
    end->shared.fd = fd;
    return 0;

err_fd:
    r = -errno;
    close(fd);
    return r;
}

int emu_portals_end_open(struct emu_port_end *port, struct emu_msg_portals *asked)
{
    struct emu_table_port *entry = &emu_table_ports(port->domain->table)[port->index];
    struct emu_portals_end *end;
    uint32_t pid;
    int r;

    if (end_of(port))
        return -EALREADY;
    r = choose_pid(port, asked, &pid);
    if (r < 0)
        return r;
    end = calloc(1, sizeof(*end));
    if (!end)
        return -ENOMEM;
    end->pid = pid;
    r = make_part(end, port->index);
    if (r < 0) {
        free(end);
        return r;
    }
    end->port = port;
    LIST_INSERT_HEAD(&port->member->shared, &end->shared, link);
    emu_index_add(&emu_portals_of(port->server)->ends, address_of(port->domain, port->nid, pid), &end->by_address);
    port->slots[EMU_PORT_PORTALS] = end;
    port->instance_id = pid;
    entry->instance_id = pid;
    /* Pairs with the acquire of whoever looks for the interface. */
    atomic_store_explicit(&entry->ptl_id, pid + 1, memory_order_release);
    asked->pid = pid;
    asked->port = port->index;
    asked->nid = port->domain->addresses[port->node_index];
    asked->generation = entry->generation;
    asked->length_bytes = sizeof(*end->ni);
    return end->shared.fd;
}

int emu_portals_end_peer(const struct emu_port_end *port, struct emu_msg_portals *asked)
{
    const struct emu_port_end *peer = asked->port < EMU_PORTS_MAX ? port->domain->ports[asked->port] : NULL;

    if (!peer || !end_of(peer))
        return -ENOENT;
    if (port->domain->paths.is_routed_for_good)
        return -EPERM;
    asked->generation = emu_portals_generation(port->domain, asked->port);
    asked->length_bytes = sizeof(*end_of(peer)->ni);
    return end_of(peer)->shared.fd;
}

int emu_portals_end_distance(const struct emu_port_end *port, struct emu_msg_portals *asked)
{
    uint32_t nid = emu_domain_nid_at(port->domain, asked->nid);
    struct emu_route route;

    if (nid == EMU_NID_NONE)
        return -EHOSTUNREACH;
    asked->distance = 0;
    if (nid == port->nid)
        return 0;
    /* Static: over the whole machine, whatever is broken now. */
    if (emu_route_minimal(port->server->machine, port->nid, nid, 0, &route) < 0)
        return -EHOSTUNREACH;
    asked->distance = route.n_hops + 1;
    return 0;
}

void emu_portals_end_hide(struct emu_port_end *port)
{
    atomic_store_explicit(&emu_table_ports(port->domain->table)[port->index].ptl_id, 0, memory_order_release);
}

void emu_portals_end_close(struct emu_port_end *port)
{
    munmap(end_of(port)->ni, sizeof(*end_of(port)->ni));
    LIST_REMOVE(&end_of(port)->shared, link);
    close(end_of(port)->shared.fd);
    emu_index_remove(&emu_portals_of(port->server)->ends, &end_of(port)->by_address);
    free(end_of(port));
    port->slots[EMU_PORT_PORTALS] = NULL;
}

/* ---- for the other files of Portals ---- */

struct emu_ptl_ni *emu_portals_end_ni(const struct emu_port_end *port)
{
    return end_of(port)->ni;
}

uint32_t emu_portals_end_pid(const struct emu_port_end *port)
{
    return end_of(port)->pid;
}

/* ---- locks ---- */

bool emu_portals_end_try_lock(struct emu_ptl_ni *ni)
{
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        if (emu_ptl_try_lock(ni, EMU_PTL_HOLDER_EMUNIC))
            return true;
    }
    return false;
}

void emu_portals_end_unlock(struct emu_port_end *owner)
{
    emu_ptl_unlock(end_of(owner)->ni);
    emu_port_end_disturb(owner);
}

/* `seen` is nobody's name. */
static void break_lock(struct emu_port_end *owner, uint64_t seen)
{
    if (!atomic_compare_exchange_strong(&end_of(owner)->ni->lock, &seen, EMU_PTL_HOLDER_EMUNIC))
        return;
    emu_log_limited(&owner->server->rate, EMU_LOG_WARN, "portals nid %u pid %u: broke a lock that nobody holds",
                    owner->nid, end_of(owner)->pid);
    emu_portals_end_unlock(owner);
}

/* Breaks the lock of that port's interface if it is nobody's. */
static void look(struct emu_domain *domain, uint32_t port)
{
    struct emu_port_end *owner = port < EMU_PORTS_MAX ? domain->ports[port] : NULL;
    const struct emu_port_end *holder;
    uint64_t inside = 0;
    uint64_t seen;
    uint32_t slot;

    if (!owner || !end_of(owner))
        return;
    seen = atomic_load_explicit(&end_of(owner)->ni->lock, memory_order_acquire);
    if (seen == 0)
        return;
    slot = (uint32_t)seen - 1;
    holder = slot < EMU_PORTS_MAX && seen >> 32 == emu_portals_generation(domain, slot) ? domain->ports[slot] : NULL;
    if (holder) {
        inside = atomic_load_explicit(&holder->segment->inside, memory_order_seq_cst);
        /* Who holds it has been inside since before it took it. */
        if ((inside & 1) != 0 || atomic_load_explicit(&end_of(owner)->ni->lock, memory_order_seq_cst) != seen ||
            atomic_load_explicit(&holder->segment->inside, memory_order_seq_cst) != inside)
            return;
    }
    break_lock(owner, seen);
}

void emu_portals_end_look_at(struct emu_port_end *port, uint32_t locked)
{
    uint64_t own = emu_ptl_holder(port->index, emu_portals_generation(port->domain, port->index));
    struct emu_port_end *owner;

    /* Who waits for a lock holds none, whatever name stands where, and is inside while he waits. */
    LIST_FOREACH(owner, &port->server->ports, link) {
        if (owner->domain == port->domain && end_of(owner) &&
            atomic_load_explicit(&end_of(owner)->ni->lock, memory_order_relaxed) == own)
            break_lock(owner, own);
    }
    look(port->domain, locked);
}

bool emu_portals_end_lock(struct emu_port_end *owner, uint64_t *waits_since_ns)
{
    if (emu_portals_end_try_lock(end_of(owner)->ni)) {
        *waits_since_ns = 0;
        return true;
    }
    if (*waits_since_ns == 0) {
        *waits_since_ns = emu_clock_ns();
    } else if (emu_clock_ns() - *waits_since_ns > STUCK_NS) {
        *waits_since_ns = emu_clock_ns();
        look(owner->domain, owner->index);
    }
    return false;
}

/* ---- looking up ---- */

bool emu_portals_end_is_that(const struct emu_port_end *port, uint32_t nid, uint32_t pid)
{
    return port && end_of(port) && port->nid == nid && end_of(port)->pid == pid;
}

struct emu_port_end *emu_portals_end_find(struct emu_port_end *port, uint32_t address, uint32_t pid)
{
    struct known *known = &end_of(port)->known[(address * 31 + pid) % KNOWN];
    uint32_t nid = emu_domain_nid_at(port->domain, address);
    const struct emu_portals_end *end;
    uint32_t i;

    if (nid == EMU_NID_NONE)
        return NULL;
    if (known->generation != 0 && known->nid == nid && known->pid == pid &&
        emu_portals_generation(port->domain, known->port) == known->generation &&
        emu_portals_end_is_that(port->domain->ports[known->port], nid, pid))
        return port->domain->ports[known->port];
    end = end_at(port, nid, pid);
    if (!end || port->domain->ports[end->port->index] != end->port) /* none, or one that ends */
        return NULL;
    i = end->port->index;
    *known = (struct known){ nid, pid, i, emu_portals_generation(port->domain, i) };
    return end->port;
}

struct emu_port_end *emu_portals_end_target(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_ptl_cmd ptl;

    memcpy(&ptl, cmd, sizeof(ptl));
    return end_of(port) ? emu_portals_end_find((struct emu_port_end *)(uintptr_t)port, ptl.nid, ptl.pid) : NULL;
}

struct emu_memory emu_portals_end_reach(struct emu_port_end *owner, const struct emu_ptl_md *md)
{
    struct emu_memory memory;

    if (md->mdh != 0 && md->mdh < EMU_MD_COUNT) {
        const struct emu_table_md *entry = &emu_table_mds(owner->domain->table, owner->node_index)[md->mdh];

        if (atomic_load_explicit(&entry->state, memory_order_acquire) != 0 && entry->port == owner->index &&
            entry->generation == md->mdh_generation && emu_md_reach(owner, entry, EMU_OP_PUT, &memory) == EMU_STATUS_OK)
            return memory;
    }
    return owner->view.local;
}
