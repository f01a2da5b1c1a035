/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Geometry and locks of a shared message queue's region.
 *
 * Size: page 0 for the head, the directory, a pool per instance, a connection per remote node, rounded up to 2 MiB. The
 * formula is our own; rcv_pool_sz is read as messages, like its neighbours (the original's unit is not known).
 *
 * A lock word holds the identity (port slot and generation) of its holder. Whoever finds it held looks in the domain
 * table, which only emunic writes, whether the holder still exists, and takes the lock over if not. emunic ends a
 * port only when its process has let go of everything (it is dead, or has left by itself under its NIC's lock), and
 * ends a port's commands before it says that the port is gone. So the one who takes over is alone. Nothing is
 * repaired then: every change under these locks is made of single stores in an order that leaves sense at each point
 * (msgq_traffic.c). Holders do little and never call the program; a holder that is stopped delays the others' calls,
 * which answer NOT_DONE.
 * Source: spec/ugni.md 3.11, 4.11, 7.14.
 */
#include "libugni/src/msgq_region.h"

#include <sched.h>

#include "emunic/base/clock.h"

#define HUGE_PAGE_BYTES (2ull << 20)
#define PAUSES          64u
#define YIELDS          64u

static uint64_t align_line(uint64_t bytes)
{
    return (bytes + GNII_MSGQ_LINE - 1) & ~(uint64_t)(GNII_MSGQ_LINE - 1);
}

static bool attrs_are_sound(const gni_msgq_attr_t *attrs)
{
    if (attrs->max_msg_sz == 0 || attrs->max_msg_sz > GNI_MSGQ_MSG_SZ_MAX)
        return false;
    if (attrs->smsg_q_sz == 0 || (attrs->smsg_q_sz != 1 && attrs->smsg_q_sz % 2 != 0))
        return false;
    if (attrs->num_msgq_eps == 0)
        return false;
    return attrs->nloc_insts > 0 && attrs->nloc_insts <= GNI_MSGQ_NODE_INSTS_MAX;
}

bool gnii_msgq_geometry_init(struct gnii_msgq_geometry *g, const gni_msgq_attr_t *attrs)
{
    uint64_t bytes;

    if (!attrs_are_sound(attrs))
        return false;
    *g = (struct gnii_msgq_geometry){ .max_bytes = attrs->max_msg_sz,
                                      .credits = attrs->smsg_q_sz,
                                      .pooled = attrs->rcv_pool_sz,
                                      .n_connections = attrs->num_msgq_eps,
                                      .n_insts = attrs->nloc_insts,
                                      .slot_bytes = gnii_msgq_slot_bytes(attrs->max_msg_sz) };
    g->directory_off = align_line(sizeof(struct gnii_msgq_head));
    g->pool_off = align_line(g->directory_off + (uint64_t)g->n_connections * sizeof(uint64_t)); /* below 2^36 */
    g->pool_stride = sizeof(struct gnii_msgq_pool) + g->pooled * g->slot_bytes;                 /* below 2^41 */
    g->connection_off = g->pool_off + g->n_insts * g->pool_stride;                              /* below 2^47 */
    g->connection_stride = align_line(sizeof(struct gnii_msgq_connection) +
                                      g->credits * (g->slot_bytes + sizeof(uint64_t) + sizeof(struct gnii_msgq_sent)));
    if (__builtin_mul_overflow(g->connection_stride, (uint64_t)g->n_connections, &bytes) ||
        __builtin_add_overflow(bytes, g->connection_off + HUGE_PAGE_BYTES - 1, &bytes))
        return false;
    g->region_bytes = bytes & ~(HUGE_PAGE_BYTES - 1);
    return g->region_bytes <= UINT32_MAX;
}

bool gnii_msgq_lives(const struct emu_table *table, uint64_t identity)
{
    uint32_t port = (uint32_t)identity - 1;
    const struct emu_table_port *entry;

    if ((uint32_t)identity == 0 || port >= table->n_ports)
        return false;
    entry = &emu_table_ports(table)[port];
    return atomic_load_explicit(&entry->state, memory_order_acquire) == EMU_PORT_LIVE &&
           entry->generation == (uint32_t)(identity >> 32);
}

/* One try. Our own identity: a thread of this process was ended inside. */
static bool try_lock(_Atomic uint64_t *lock, const struct emu_table *table, uint64_t me)
{
    uint64_t holder = atomic_load_explicit(lock, memory_order_relaxed);

    if (holder != 0 && holder != me && gnii_msgq_lives(table, holder))
        return false;
    /* Pairs with the release in gnii_msgq_unlock(). The stores of a dead holder are all done. */
    return atomic_compare_exchange_strong_explicit(lock, &holder, me, memory_order_acquire, memory_order_relaxed);
}

bool gnii_msgq_lock(_Atomic uint64_t *lock, const struct emu_table *table, uint64_t me)
{
    for (uint32_t tries = 0; tries < PAUSES + YIELDS; tries++) {
        if (try_lock(lock, table, me))
            return true;
        if (tries < PAUSES)
            emu_cpu_pause();
        else
            sched_yield();
    }
    return false;
}

void gnii_msgq_unlock(_Atomic uint64_t *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}
