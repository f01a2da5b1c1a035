/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameters of an emulated node before and behind the network: core, host interface, NIC pipeline, message layer. They
 * are the `host:` section of a machine file; a file without it describes a network alone. This file holds values only.
 * emunic/model gives them a meaning in the course of an operation (nic_model.c, nic_packet.c).
 *
 * One row per parameter: struct and keys of the file come from it. Times are in picoseconds here and in
 * nanoseconds with up to three decimals in the file; rates are in kB/s here and in MB/s (10^6) there; percentages in
 * thousandths here. A parameter that a machine has no use for is 0 in its file.
 */
#ifndef EMUNIC_FABRIC_NODE_PARAMS_H
#define EMUNIC_FABRIC_NODE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"

enum emu_rendezvous {
    EMU_RENDEZVOUS_GET = 0, /* the receiver fetches by block transfer and tells the sender when it has all */
    EMU_RENDEZVOUS_PUT,     /* the receiver answers that it is ready, the sender puts by block transfer */
    EMU_RENDEZVOUS_NEVER,   /* all messages are eager */
};

/* Does the message layer's cache of registrations have the buffer of a rendezvous? For all messages of a run. */
enum emu_registration {
    EMU_REGISTRATION_HIT = 0,
    EMU_REGISTRATION_MISS,
};

#define EMU_NODE_NO_GAP   UINT32_MAX /* packet_gap_ns: none, no stage beside the interface */
#define EMU_NODE_TIME_MAX 1000000000 /* 1 ms */
#define EMU_NODE_RATE_MAX 4000000000 /* 4 TB/s */

/* X(field, key, type, min, max, meaning) */
#define EMU_NODE_PARAMS(X)                                                                                             \
    /* A core. */                                                                                                      \
    X(issue_ps, "issue_ns", MILLI, 0, EMU_NODE_TIME_MAX, "call to the NIC's door")                                     \
    X(put_gap_ps, "put_gap_ns", MILLI, 0, EMU_NODE_TIME_MAX, "core's time per FMA operation")                          \
    X(store_kbs, "store_mbs", MILLI, 0, EMU_NODE_RATE_MAX, "core's stores to a window; 0: fast")                       \
    X(launch_gap_ps, "launch_gap_ns", MILLI, 0, EMU_NODE_TIME_MAX, "core's time per FMA launch")                       \
    X(launch_node_gap_ps, "launch_node_gap_ns", MILLI, 0, EMU_NODE_TIME_MAX, "NIC's time per FMA launch")              \
    X(launch_mdh_percent, "launch_mdh_percent", COUNT, 0, 1000, "of both, if the handle changes")                      \
    X(shmem_ps, "shmem_ns", MILLI, 0, EMU_NODE_TIME_MAX, "SHMEM's time per operation")                                 \
    X(caf_ps, "caf_ns", MILLI, 0, EMU_NODE_TIME_MAX, "CAF's time per operation")                                       \
    /* Host interface: a server each way. */                                                                           \
    X(interface_kbs, "interface_mbs", MILLI, 0, EMU_NODE_RATE_MAX, "rate each way; 0: no limit")                       \
    X(overhead_bytes, "overhead_bytes", COUNT, 0, 65536, "per transfer of a packet's data")                            \
    X(duplex_share, "duplex_percent", MILLI, 0, 1000000, "of a transfer, on the other way")                            \
    X(duplex_bytes_min, "duplex_bytes_min", COUNT, 0, UINT32_MAX, "shorter messages do not pay that")                  \
    X(write_ps, "write_ns", MILLI, 0, EMU_NODE_TIME_MAX, "NIC to visible in memory")                                   \
    X(read_ps, "read_ns", MILLI, 0, EMU_NODE_TIME_MAX, "NIC's read of memory")                                         \
    /* NIC. */                                                                                                         \
    X(out_ps, "out_ns", MILLI, 0, EMU_NODE_TIME_MAX, "pipeline into the network")                                      \
    X(in_ps, "in_ns", MILLI, 0, EMU_NODE_TIME_MAX, "pipeline out of the network")                                      \
    X(packet_gap_ps, "packet_gap_ns", MILLI_OR_NONE, 0, EMU_NODE_TIME_MAX, "per data packet; 0: from nic")             \
    X(respond_ps, "respond_ns", MILLI, 0, EMU_NODE_TIME_MAX, "a put's arrival to its response")                        \
    X(event_ps, "event_ns", MILLI, 0, EMU_NODE_TIME_MAX, "last response to event at the core")                         \
    X(has_acks, "acks", COUNT, 0, 1, "each request packet is answered")                                                \
    X(tile_nics, "tile_nics", COUNT, 1, 64, "NICs that share a set of tiles")                                          \
    X(tile_kbs, "tile_mbs", MILLI, 0, EMU_NODE_RATE_MAX, "rate of a set each way; 0: no limit")                        \
    X(bte_start_ps, "bte_start_ns", MILLI, 0, EMU_NODE_TIME_MAX, "block transfer to its first data")                   \
    X(bte_kbs, "bte_mbs", MILLI, 0, EMU_NODE_RATE_MAX, "rate of one block transfer; 0: no limit")                      \
    X(amo_miss_ps, "amo_miss_ns", MILLI, 0, EMU_NODE_TIME_MAX, "per operation on a word not cached")                   \
    X(pte_miss_ps, "pte_miss_ns", MILLI, 0, EMU_NODE_TIME_MAX, "and if its page is not known")                         \
    X(pte_entries, "pte_entries", COUNT, 0, 65536, "pages that are known at once")                                     \
    /* A host that matches messages itself (SeaStar's generic mode). */                                                \
    X(is_generic, "generic", COUNT, 0, 1, "arrivals interrupt the host")                                               \
    X(interrupt_ps, "interrupt_ns", MILLI, 0, EMU_NODE_TIME_MAX, "interrupt and match of a header")                    \
    X(end_interrupt_ps, "end_interrupt_ns", MILLI, 0, EMU_NODE_TIME_MAX, "interrupt at the end of the data")           \
    X(inline_bytes, "inline_bytes", COUNT, 0, 65536, "data that travel in the header")                                 \
    X(reply_ps, "reply_ns", MILLI, 0, EMU_NODE_TIME_MAX, "match of a get to its reply")                                \
    /* Messages. */                                                                                                    \
    X(send_ps, "send_ns", MILLI, 0, EMU_NODE_TIME_MAX, "sender's o")                                                   \
    X(recv_ps, "recv_ns", MILLI, 0, EMU_NODE_TIME_MAX, "receiver's o")                                                 \
    X(noise_ps, "noise_ns", MILLI, 0, EMU_NODE_TIME_MAX, "operating system, per step of software")                     \
    X(send_end_ps, "send_end_ns", MILLI, 0, EMU_NODE_TIME_MAX, "core's time behind a send")                            \
    X(send_end_bytes_min, "send_end_bytes_min", COUNT, 0, UINT32_MAX, "for messages from this size")                   \
    X(send_end_bytes_max, "send_end_bytes_max", COUNT, 0, UINT32_MAX, "to this")                                       \
    X(eager_bytes_max, "eager_bytes_max", COUNT, 0, UINT32_MAX, "longer ones by rendezvous")                           \
    X(eager_buffer_bytes, "eager_buffer_bytes", COUNT, 0, 1 << 30, "eager data go in parts of this size; 0: whole")    \
    X(copy_kbs, "copy_mbs", MILLI, 0, EMU_NODE_RATE_MAX, "copy of eager data at each end; 0: none")                    \
    X(rendezvous, "rendezvous", RENDEZVOUS, 0, 0, "who moves the data: get, put; never")                               \
    X(registration, "registration", REGISTRATION, 0, 0, "of buffers of a rendezvous: hit, miss")                       \
    X(register_hit_ps, "register_hit_ns", MILLI, 0, EMU_NODE_TIME_MAX, "look into the cache of registrations")         \
    X(register_ps, "register_ns", MILLI, 0, EMU_NODE_TIME_MAX, "registration, if the cache does not have it")          \
    X(register_page_ps, "register_page_ns", MILLI, 0, EMU_NODE_TIME_MAX, "and each page of the buffer")                \
    X(register_page_bytes, "register_page_bytes", COUNT, 0, 1 << 30, "of a page; 0: no pages")                         \
    /* Between processes of one node. */                                                                               \
    X(local_ps, "local_ns", MILLI, 0, EMU_NODE_TIME_MAX, "latency, overheads left out")                                \
    X(local_kbs, "local_mbs", MILLI, 0, EMU_NODE_RATE_MAX, "rate of the copy; 0: no limit")                            \
    X(local_is_shared, "local_shared", COUNT, 0, 1, "one engine for both ways")

struct emu_node_params {
#define EMU_NODE_FIELD(field, key, type, min, max, meaning) uint32_t field;
    EMU_NODE_PARAMS(EMU_NODE_FIELD)
#undef EMU_NODE_FIELD
};

static inline bool emu_node_is_eager(const struct emu_node_params *params, uint32_t bytes)
{
    return bytes <= params->eager_bytes_max || params->rendezvous == EMU_RENDEZVOUS_NEVER;
}

/* Of data packets, where the file says 0 this. */
static inline uint64_t emu_node_packet_gap_ps(const struct emu_node_params *params, uint64_t nic_gap_ps)
{
    if (params->packet_gap_ps == EMU_NODE_NO_GAP)
        return 0;
    return params->packet_gap_ps > 0 ? params->packet_gap_ps : nic_gap_ps;
}

/* NULL: the machine's file has no host section. */
const struct emu_node_params *emu_machine_node_params(const struct emu_machine *m);

/* Value in the file's unit by the key's last part ("issue_ns"); not a number if there is no such key. */
double emu_node_param_value(const struct emu_node_params *params, const char *key);

#endif
