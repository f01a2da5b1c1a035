/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Portals would have cost a SeaStar's host: interrupts and commands, counted in two registers of the interface.
 *
 *   a message arrives   generic: the header interrupts the host, which matches; the end of the data again, if they
 *                       are more than the header packet holds. Where the NIC matches (host.generic 0) nobody is
 *                       interrupted.
 *   a host's command    to send data, and in generic mode to store what is not in the header: one, or one for each page
 *                       that the memory touches (EMUNIC_COMMAND_PAGE)
 *
 * Messages are requests, replies and acknowledgements. The interface is locked by the caller. The direct path has none
 * of this: there the initiator's process does all the work, and counts nothing.
 * Source: spec/machines.md 4.3, SEASTAR-15, SEASTAR-16.
 */
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"
#include "emunic/fabric/node_params.h"

/* How many bytes come with the header where the host matches; -1: it does not. */
static int64_t inline_bytes(const struct emu_port_end *port)
{
    const struct emu_node_params *host = emu_machine_node_params(port->server->machine);

    return host && host->is_generic ? (int64_t)host->inline_bytes : -1;
}

/* Pages of `page` bytes that this part of the memory touches. */
static uint64_t pages_of(const struct emu_ptl_span *span, uint64_t offset, uint64_t length_bytes, uint64_t page)
{
    const struct emu_ptl_iov *iovs = span->iovs ? span->iovs : &span->one;
    uint64_t n = 0;

    for (uint32_t i = 0; i < span->n && length_bytes > 0; i++) {
        uint64_t left = iovs[i].length_bytes > offset ? iovs[i].length_bytes - offset : 0;
        uint64_t part = left < length_bytes ? left : length_bytes;
        uint64_t first = iovs[i].addr + offset;

        if (part > 0)
            n += (first + part - 1) / page - first / page + 1;
        offset = left > 0 ? 0 : offset - iovs[i].length_bytes;
        length_bytes -= part;
    }
    return n;
}

uint64_t emu_portals_host_commands(const struct emu_port_end *port, const struct emu_ptl_span *span, uint64_t offset,
                                   uint64_t length_bytes)
{
    uint64_t page = port->server->settings.command_page_bytes;
    uint64_t n = page > 0 ? pages_of(span, offset, length_bytes, page) : 1;

    return n > 0 ? n : 1;
}

void emu_portals_host_takes(struct emu_port_end *port, const struct emu_ptl_span *span, uint64_t offset,
                            uint64_t length_bytes)
{
    uint64_t *registers = emu_portals_end_ni(port)->registers;
    int64_t with_header = inline_bytes(port);
    bool has_rest = span && length_bytes > (uint64_t)with_header;

    if (with_header < 0)
        return;
    registers[EMU_PTL_SR_INTERRUPTS] += has_rest ? 2 : 1;
    if (has_rest)
        registers[EMU_PTL_SR_COMMANDS] += emu_portals_host_commands(port, span, offset, length_bytes);
}

void emu_portals_host_answers(struct emu_port_end *port, const struct emu_ptl_span *span, uint64_t offset,
                              uint64_t length_bytes)
{
    if (inline_bytes(port) >= 0)
        emu_portals_end_ni(port)->registers[EMU_PTL_SR_COMMANDS] +=
            emu_portals_host_commands(port, span, offset, length_bytes);
}
