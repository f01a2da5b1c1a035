/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/client/park.h"

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/base/clock.h"
#include "emunic/client/direct.h"
#include "emunic/client/port.h"

bool emu_park_is_open(const struct emu_port *port)
{
    return port->direct && !atomic_load(&port->session.is_lost) && !atomic_load(&port->session.is_stale) &&
           (atomic_load_explicit(&port->table->flags, memory_order_acquire) & EMU_TABLE_NOT_DIRECT) == 0;
}

/* Has whoever is inside left? Most are inside for less than a microsecond; who was stopped there is emunic's affair. */
static bool has_left(const _Atomic uint64_t *inside, uint64_t tries)
{
    uint64_t mark = atomic_load_explicit(inside, memory_order_acquire);

    for (; (mark & 1) != 0 && tries > 0; tries--) {
        emu_cpu_pause();
        if (atomic_load_explicit(inside, memory_order_acquire) != mark)
            return true;
    }
    return (mark & 1) == 0;
}

/* As daemon/core/quiesce.c. We are not inside: the caller has the port to himself. */
static bool have_all_left(const struct emu_port *port)
{
    uint32_t end = atomic_load_explicit(&port->table->ports_end, memory_order_relaxed);
    const struct emu_table_port *ports = emu_table_ports(port->table);

    if (end > EMU_PARK_PORTS_MAX || end > port->table->n_ports)
        return false;
    for (uint32_t i = 0; i < end; i++) {
        const struct emu_segment *segment;

        if (i == port->index || atomic_load_explicit(&ports[i].state, memory_order_acquire) != EMU_PORT_LIVE)
            continue;
        segment = emu_direct_segment_of(port->direct, i);
        if (!segment || !has_left(&segment->inside, port->settings.spin_polls))
            return false;
    }
    return has_left(&port->table->emunic_inside, port->settings.spin_polls);
}

bool emu_park_take_away(struct emu_port *port, uint32_t park)
{
    bool is_fenced = (atomic_load_explicit(&port->table->flags, memory_order_relaxed) & EMU_TABLE_FENCED) != 0;

    /*
     * Pairs with emu_gate_enter() of each member, and with emunic's step_in(): who does not see the memory parked has
     * its mark up before we look. An exchange is a barrier of our own.
     */
    atomic_exchange_explicit(&port->segment->parks[park % EMU_PARKS], 0, memory_order_seq_cst);
    if (!is_fenced && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0)
        return false;
    return emu_park_is_open(port) && have_all_left(port);
}

void emu_park_give(struct emu_port *port, uint32_t park, uint16_t generation)
{
    /* Pairs with the acquire of whoever looks at the generation. */
    atomic_store_explicit(&port->segment->parks[park % EMU_PARKS], generation, memory_order_release);
}
