/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals interface: its life and its lock.
 *
 * Who holds an interface never waits for another: the own one is tried while a target is held, and that is all
 * (portals_send.c). While we hold or wait for one our mark is up (emu_segment.inside): emunic takes no memory away
 * under us, and a lock whose named holder is outside, or waits for one itself, is nobody's. A lock that does not
 * come free is reported to emunic, which breaks it if it is nobody's; a holder that is merely stopped stalls us.
 */
#include "emunic/client/portals_port.h"

#include <emmintrin.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/client/direct.h"
#include "emunic/client/portals_port_inner.h"
#include "emunic/engine/pages.h"

#define SPINS_PER_YIELD 100u
#define FREE_SPINS      50u /* without a pause: on some processors one takes as long as the lock is held */
#define YIELDS_PER_LOOK 64u
#define STUCK_NS        20000000u /* a lock that is held so long is looked into */

int emu_portals_map_part(const struct emu_fds *fds, uint64_t bytes, struct emu_ptl_ni **ni_out)
{
    struct stat st;
    void *addr;

    if (fds->n_fds != 1 || bytes != sizeof(struct emu_ptl_ni) || fstat(fds->fd[0], &st) < 0 ||
        (uint64_t)st.st_size < bytes)
        return -EPROTO;
    addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fds->fd[0], 0);
    if (addr == MAP_FAILED)
        return -errno;
    *ni_out = addr;
    return 0;
}

static int ask_for_part(struct emu_portals *p, const struct emu_portals_options *options)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_OPEN, .portals = { .pid = options->pid } };
    struct emu_fds fds;
    int r = emu_session_request(&p->port.session, &msg, NULL, 0, &fds);

    if (r == 0)
        r = msg.result;
    if (r == 0)
        r = emu_portals_map_part(&fds, msg.portals.length_bytes, &p->ni);
    emu_fds_close(&fds);
    if (r != 0)
        return r < 0 ? r : -EPROTO;
    if (p->ni->magic != EMU_PTL_MAGIC || p->ni->abi_version != EMU_ABI_VERSION)
        return -EPROTO;
    p->pid = msg.portals.pid;
    return 0;
}

/* Entries of the access control table admit everybody of our user. */
static void fill_access(struct emu_ptl_ni *ni)
{
    for (uint32_t i = 0; i < EMU_PTL_ACES; i++)
        ni->aces[i] =
            (struct emu_ptl_ace){ EMU_PTL_NID_ANY, EMU_PTL_PID_ANY, ni->uid, EMU_PTL_JID_ANY, EMU_PTL_PT_ANY, { 0 } };
}

int emu_portals_open(struct emu_portals *p, const struct emu_portals_options *options)
{
    int r;

    memset(p, 0, sizeof(*p));
    r = emu_port_attach(&p->port, options->ptag, options->cookie, options->pid, 0);
    if (r < 0)
        return r;
    p->generation = emu_table_ports(p->port.table)[p->port.index].generation;
    p->holder = emu_ptl_holder(p->port.index, p->generation);
    p->peers = emu_pages_take(p->port.table->n_ports * sizeof(*p->peers));
    r = p->peers ? ask_for_part(p, options) : -ENOMEM;
    if (r == 0)
        r = emu_ptl_owner_init(&p->owner, p->ni, options->number, options->salt, &options->limits);
    if (r < 0) {
        emu_portals_close(p);
        return r;
    }
    p->gate = p->port.gate;
    emu_regions_init(&p->regions, &p->port);
    p->ni->behaviour = options->behaviour;
    p->ni->max_pt = options->max_pt;
    p->ni->max_ac = options->max_ac;
    p->ni->max_getput = options->max_getput;
    p->ni->nid = p->port.nid;
    p->ni->pid = p->pid;
    p->ni->uid = emu_table_ports(p->port.table)[p->port.index].uid;
    p->ni->jid = options->jid;
    fill_access(p->ni);
    emu_portals_hold(p);
    p->ni->is_up = 1;
    emu_portals_release(p);
    emu_log(EMU_LOG_INFO, "portals nid %u pid %u", p->port.nid, p->pid);
    return 0;
}

void emu_portals_close(struct emu_portals *p)
{
    /* A forked child only gives its copies back. */
    if (p->ni && p->owner.ni && p->port.owner == getpid()) {
        emu_portals_hold(p);
        p->ni->is_up = 0;
        emu_portals_release(p);
    }
    /* emunic has let go of everything before it is unmapped. */
    if (p->port.table)
        emu_port_hang_up(&p->port);
    for (uint32_t i = 0; p->peers && i < p->port.table->n_ports; i++)
        emu_portals_forget_peer(&p->peers[i]);
    emu_pages_give(p->peers, p->port.table ? p->port.table->n_ports * sizeof(*p->peers) : 0);
    emu_regions_fini(&p->regions);
    if (p->owner.ni)
        emu_ptl_owner_fini(&p->owner);
    if (p->ni)
        munmap(p->ni, sizeof(*p->ni));
    emu_port_detach(&p->port);
    memset(p, 0, sizeof(*p));
}

/* ---- locks ---- */

/* Runs when the lock has been held for long. */
static void report_stuck(struct emu_portals *p, uint32_t port)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_STUCK, .portals = { .port = port } };

    emu_port_request(&p->port, &msg);
}

bool emu_portals_wait_for_lock(struct emu_portals *p, struct emu_ptl_ni *ni, uint32_t port, uint32_t generation)
{
    uint64_t reported_ns = 0;
    uint32_t tries = 0;

    while (!emu_ptl_try_lock(ni, p->holder)) {
        uint64_t now_ns;

        if (++tries % SPINS_PER_YIELD != 0) {
            if (tries > FREE_SPINS)
                _mm_pause();
            continue;
        }
        if (reported_ns == 0)
            reported_ns = emu_clock_ns();
        sched_yield();
        if (tries % (SPINS_PER_YIELD * YIELDS_PER_LOOK) != 0)
            continue;
        if (!emu_portals_is_live(p, port, generation) || emu_port_is_lost(&p->port))
            return false;
        now_ns = emu_clock_ns();
        if (now_ns - reported_ns > STUCK_NS) {
            report_stuck(p, port);
            reported_ns = now_ns;
        }
    }
    return true;
}

/* Without emunic nobody else counts any more: then we go on without the lock. */
void emu_portals_lock_own(struct emu_portals *p)
{
    if (!emu_portals_lock(p, p->ni, p->port.index, p->generation)) {
        p->is_broken = true;
        atomic_store(&p->ni->lock, p->holder);
    }
}

void emu_portals_hold(struct emu_portals *p)
{
    emu_portals_enter(p);
    emu_portals_lock_own(p);
    if (emu_ptl_has_dead(&p->owner))
        emu_ptl_reap(&p->owner);
}

void emu_portals_release(struct emu_portals *p)
{
    emu_ptl_unlock(p->ni);
    emu_portals_leave(p);
}

/* ---- sleep, distance ---- */

int emu_portals_wait(struct emu_portals *p, uint64_t deadline_ns)
{
    _Atomic uint32_t *const words[] = { &p->ni->waiting };
    const uint32_t seen[] = { EMU_PTL_SLEEPS };

    return emu_port_wait(&p->port, words, seen, 1, deadline_ns);
}

int emu_portals_distance(struct emu_portals *p, uint32_t nid, uint32_t *distance_out)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_DISTANCE, .portals = { .nid = nid } };
    int r;

    if (emu_table_node_index(p->port.table, nid) >= p->port.table->n_nodes)
        return -EHOSTUNREACH;
    r = emu_port_request(&p->port, &msg);
    if (r == 0)
        *distance_out = msg.portals.distance;
    return r;
}
