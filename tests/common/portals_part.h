/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of the domain that looks into the Portals interfaces of others (emunic/abi/portals.h), as a sender on the
 * direct path may. A domain that is routed for good hands nobody an interface of others.
 */
#ifndef TESTS_COMMON_PORTALS_PART_H
#define TESTS_COMMON_PORTALS_PART_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "emunic/abi/portals.h"
#include "emunic/engine/portals_owner.h"
#include "tests/common/portals_job.h"

static inline uint32_t part_slot_of(const struct emu_port *by, ptl_process_id_t id)
{
    const struct emu_table_port *ports = emu_table_ports(by->table);

    for (uint32_t i = 0; i < by->table->n_ports; i++) {
        if (atomic_load(&ports[i].state) == EMU_PORT_LIVE && ports[i].nid == id.nid &&
            atomic_load(&ports[i].ptl_id) == (uint32_t)id.pid + 1)
            return i;
    }
    fail_msg("no port of %u:%u", (unsigned)id.nid, (unsigned)id.pid);
    return 0;
}

/* What a sender on the direct path is given, too. */
static inline struct emu_ptl_ni *part_map(struct emu_port *by, uint32_t slot)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_PEER, .portals = { .port = slot } };
    struct emu_ptl_ni *part;
    struct emu_fds fds;

    assert_int_equal(emu_session_request(&by->session, &msg, NULL, 0, &fds), 0);
    assert_int_equal(msg.result, 0);
    assert_int_equal(fds.n_fds, 1);
    part = mmap(NULL, sizeof(*part), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fds.fd[0], 0);
    assert_true(part != MAP_FAILED);
    emu_fds_close(&fds);
    return part;
}

static inline void part_unmap(struct emu_ptl_ni *part)
{
    munmap(part, sizeof(*part));
}

/* Name of a port in locks; `later` of a next owner of its slot. */
static inline uint64_t part_name_of(const struct emu_port *by, uint32_t slot, uint32_t later)
{
    return emu_ptl_holder(slot, emu_table_ports(by->table)[slot].generation + later);
}

static inline void part_lock_as(struct emu_ptl_ni *part, uint64_t name)
{
    uint64_t nobody = 0;

    /* It may be in use for a moment. */
    while (!atomic_compare_exchange_strong(&part->lock, &nobody, name))
        nobody = 0;
}

/* As one who may: inside, so that nobody breaks it. */
static inline void part_hold(struct emu_port *by, struct emu_ptl_ni *part)
{
    atomic_fetch_add(&by->segment->inside, 1);
    part_lock_as(part, part_name_of(by, by->index, 0));
}

static inline void part_release(struct emu_port *by, struct emu_ptl_ni *part)
{
    atomic_store(&part->lock, 0);
    atomic_fetch_add(&by->segment->inside, 1);
}

/* Events that have been put into a queue so far, counted or not. */
static inline uint64_t part_events(const struct emu_ptl_ni *part, ptl_handle_eq_t handle)
{
    const struct emu_ptl_eq *eq = &part->eqs[emu_ptl_handle_index((uint32_t)handle)];
    const struct emu_ptl_event *ring = (const struct emu_ptl_event *)(part->arena + eq->ring_off);
    uint64_t tail = atomic_load(&eq->tail);

    while (atomic_load(&ring[tail & (eq->capacity - 1)].seq) == tail + 1)
        tail++;
    return (uint32_t)tail;
}

#endif
