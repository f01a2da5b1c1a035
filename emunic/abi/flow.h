/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets and flits of a transaction, and the per-flow counters.
 *
 * A flow is everything that one port sends to one node of its domain. Whoever runs the engine for a port adds to
 * the port's own counters, so they need no atomics; readers may see a count that is one transaction old.
 * The format comes from the machine file (spec/machines.md 2.3: put of 64 B 14 + 1 flits, get of 64 B 3 + 12).
 */
#ifndef EMUNIC_ABI_FLOW_H
#define EMUNIC_ABI_FLOW_H

#include <assert.h>
#include <stdint.h>

struct emu_packet_format {
    uint32_t payload_bytes_max; /* of one packet */
    uint32_t flit_bits;
    uint32_t request_header_flits;  /* of a put or get request */
    uint32_t response_header_flits; /* of a put or get response */
};

/* Requests travel from the port's node to the other one, responses the other way round. */
struct emu_flow_counts {
    uint64_t operations;
    uint64_t payload_bytes;
    uint64_t request_packets;
    uint64_t request_flits;
    uint64_t response_packets;
    uint64_t response_flits;
    uint64_t errors; /* transactions that ended with an error */
    uint64_t reserved;
};
static_assert(sizeof(struct emu_flow_counts) == 64, "ABI: one line per flow");

static inline uint64_t emu_data_flits(const struct emu_packet_format *fmt, uint64_t bytes)
{
    return (bytes * 8 + fmt->flit_bits - 1) / fmt->flit_bits;
}

/* Flits that carry `bytes` of payload in packets of the machine's size, headers left out. */
static inline uint64_t emu_payload_flits(const struct emu_packet_format *fmt, uint64_t bytes)
{
    uint64_t whole = bytes / fmt->payload_bytes_max;
    uint64_t rest = bytes % fmt->payload_bytes_max;

    return whole * emu_data_flits(fmt, fmt->payload_bytes_max) + emu_data_flits(fmt, rest);
}

/* A transfer of 0 bytes still sends one packet (a flag, an event). */
static inline uint64_t emu_packets(const struct emu_packet_format *fmt, uint64_t bytes)
{
    return bytes == 0 ? 1 : (bytes + fmt->payload_bytes_max - 1) / fmt->payload_bytes_max;
}

/* Data go with the requests: puts, non-fetching atomics, queue writes. */
static inline void emu_flow_add_put(struct emu_flow_counts *flow, const struct emu_packet_format *fmt, uint64_t bytes)
{
    uint64_t packets = emu_packets(fmt, bytes);

    flow->operations++;
    flow->payload_bytes += bytes;
    flow->request_packets += packets;
    flow->request_flits += packets * fmt->request_header_flits + emu_payload_flits(fmt, bytes);
    flow->response_packets += packets;
    flow->response_flits += packets * fmt->response_header_flits;
}

/* Data come with the responses; `operand_bytes` go with the requests (fetching atomics). */
static inline void emu_flow_add_get(struct emu_flow_counts *flow, const struct emu_packet_format *fmt, uint64_t bytes,
                                    uint64_t operand_bytes)
{
    uint64_t packets = emu_packets(fmt, bytes);

    flow->operations++;
    flow->payload_bytes += bytes;
    flow->request_packets += packets;
    flow->request_flits += packets * fmt->request_header_flits + emu_data_flits(fmt, operand_bytes);
    flow->response_packets += packets;
    flow->response_flits += packets * fmt->response_header_flits + emu_payload_flits(fmt, bytes);
}

#endif
