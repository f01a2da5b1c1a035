/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * KEY-XC and the like: values of the machine files that no figure of a source feels (values.h). Numbers in brackets are
 * sections of spec/machines.md; [OUR] has no source but the comment in the machine file.
 */
#include "emunic/experiments/values.h"

#define NIC_RATE     "nic.clock_mhz packet.payload_bytes_max 1e-3 / nic.access_cycles"
#define DRAIN_RATE   "nic.clock_mhz packet.payload_bytes_max 1e-3 / nic.drain_cycles"
#define NODE_LINK    "links.processor.lanes links.processor.gbps_per_lane / 8"
#define FLIT_BYTES   "packet.flit_bits / 8"
#define PACKET_BYTES "router.packet_units_max packet.flit_bits / 8"
#define CHANNEL      "router.vc_units packet.flit_bits / 8"
#define RECEPTION    "nic.reception_units packet.flit_bits / 8"
#define CLOCK_MHZ    "1e6 / router.clock_ps"
#define ATOMICS      "nic.clock_mhz / nic.amo_cycles"

/* What uGNI programs find: of Aries (2.3), and on other machines the same [OUR]. */
#define LIMITS(outstanding, atomics_per_us)                                                                            \
    { "outstanding_packets", "packets", outstanding, 0, "nic.outstanding_packets" },                                   \
        { "fma_descriptors", "1", 127, 0, "nic.fma_descriptors" }, { "bte_channels", "1", 4, 0, "nic.bte_channels" },  \
        { "bte_transfer", "GiB", 4, 0, "nic.bte_bytes_max / 1073741824" },                                             \
        { "amo_cache", "words", 64, 0, "nic.amo_cache_entries" },                                                      \
    {                                                                                                                  \
        "amo_rate", "1/us", atomics_per_us, 0, ATOMICS                                                                 \
    }
#define COLLECTIVES                                                                                                    \
    { "ce_engines", "1", 4, 0, "nic.ce_engines" },                                                                     \
    {                                                                                                                  \
        "ce_children", "1", 32, 0, "nic.ce_children_max"                                                               \
    }

static const struct emu_value xc[] = {
    LIMITS(1024, 400), /* 2.3 */
    COLLECTIVES,       /* 2.3 */
    /* Two groups of six chassis, the smallest machine that could have been bought and has all classes [OUR]. */
    { "default_nodes", "1", 768, 0, "topology.groups topology.chassis topology.blades topology.nodes_per_blade" },
    { "cabinet_columns", "1", 12, 0, "topology.cabinet_columns" },              /* Cori's */
    { "processor_tile", "GB/s", 5.25, 0, "links.processor.gbps_per_lane / 8" }, /* 2.1 */
    /* 5 ns/m within 100 ns a hop [OUR] 2.6 */
    { "green_wire", "ns", 5, 0, "links.green.wire_ns" },
    { "black_wire", "ns", 15, 0, "links.black.wire_ns" },
    { "wire_in_a_hop", "ns", 50, 0, "router.hop_wire_ns" },
    { "crc_bits", "bits", 20, 0, "links.crc_bits" },                 /* 2.4 */
    { "router_clock", "MHz", 874.9, 1, CLOCK_MHZ },                  /* 875 MHz (2.1), a clock of 1 143 ps */
    { "load_period", "clocks", 10, 0, "router.load_period_clocks" }, /* 2.2 */
    { "channel_of_eight", "B", 1020, 0, CHANNEL },                 /* 8 KB of a port, in parts of 170 flits [OUR] 2.6 */
    { "reception_channel", "B", 1020, 0, RECEPTION },              /* as much [OUR] */
    { "packet_flits", "flits", 14, 0, "router.packet_units_max" }, /* 2.3 */
    { "response_flits", "flits", 1, 0, "packet.response_header_flits" }, /* 2.3 */
    { "drain_rate", "GB/s", 10.24, 0, DRAIN_RATE },                      /* as it sends (2.3) [D] */
    { "adaptive_threshold", "packets", 5, 0, "routing.threshold_flits / router.packet_units_max" }, /* [OUR] */
    /* Bias of the four modes [OUR] 2.2 */
    { "adaptive_0_shift", "1", 1, 0, "routing.adaptive_0.shift" },
    { "adaptive_1_shift", "1", 1, 0, "routing.adaptive_1.shift" },
    { "adaptive_1_per_hop", "flits", 8, 0, "routing.adaptive_1.add_flits_per_hop" },
    { "adaptive_2_shift", "1", 1, 0, "routing.adaptive_2.shift" },
    { "adaptive_2_add", "flits", 16, 0, "routing.adaptive_2.add_flits" },
    { "adaptive_3_shift", "1", 2, 0, "routing.adaptive_3.shift" },
    { "adaptive_3_add", "flits", 64, 0, "routing.adaptive_3.add_flits" },
    { "pages_known", "1", 1024, 0, "host.pte_entries" }, /* 128 entries of 8 (2.3) */
    /* Messages: chosen before any run, the source is silent [OUR]. */
    { "eager_max", "B", 8192, 0, "host.eager_bytes_max" },
    { "eager_buffer", "B", 8192, 0, "host.eager_buffer_bytes" },
    { "copy_rate", "MB/s", 10000, 0, "host.copy_mbs" },
    { "registration_known", "ns", 100, 0, "host.register_hit_ns" },
    { "registration", "ns", 1000, 0, "host.register_ns" },
    { "registration_of_a_page", "ns", 100, 0, "host.register_page_ns" },
    { "registration_page", "B", 4096, 0, "host.register_page_bytes" },
    { "copy_within_a_node", "MB/s", 5000, 0, "host.local_mbs" },
    { 0 },
};

static const struct emu_value titan[] = {
    LIMITS(1024, 325),                              /* as Aries (3.3), at 650 MHz */
    { "processor_link", "GB/s", 15, 0, NODE_LINK }, /* as the fastest link (3.1) [OUR] */
    /* 5 ns/m within 80 ns a hop [OUR] */
    { "x_wire", "ns", 15, 0, "links.x.wire_ns" },
    { "y_wire", "ns", 15, 0, "links.y.wire_ns" },
    { "z_wire", "ns", 10, 0, "links.z.wire_ns" },
    { "mezzanine_wire", "ns", 2, 0, "links.mezzanine.wire_ns" },
    { "backplane_wire", "ns", 5, 0, "links.backplane.wire_ns" },
    { "wire_in_a_hop", "ns", 15, 0, "router.hop_wire_ns" },
    { "crc_bits", "bits", 16, 0, "links.crc_bits" }, /* [OUR] */
    { "router_clock", "MHz", 800, 0, CLOCK_MHZ },    /* [OUR] */
    { "channel", "packets", 6, 0,
      "router.vc_units / router.packet_units_max" },               /* a round trip and two packets [OUR] */
    { "reception_channel", "B", 576, 0, RECEPTION },               /* as much [OUR] */
    { "packet_phits", "phits", 32, 0, "router.packet_units_max" }, /* 3.3 */
    { "nic_rate", "GB/s", 8.32, 0, NIC_RATE },                     /* 3.3 */
    { "drain_rate", "GB/s", 8.32, 0, DRAIN_RATE },                 /* 3.3 [D] */
    /* 0.7 us for a put and 1.4 us for a get to a neighbour (3.3); how they divide is as Aries [OUR]. */
    { "put", "ns", 700, 0, "host.issue_ns + host.out_ns + router.hop_ns + host.in_ns + host.write_ns" },
    { "get", "ns", 1400, 0,
      "host.issue_ns + 2 host.out_ns + 2 router.hop_ns + 2 host.in_ns + host.read_ns + host.write_ns" },
    { "nic_in_and_out", "ns", 200, 0, "host.out_ns + host.in_ns" },
    { "put_gap", "ns", 400, 0, "host.put_gap_ns" },
    { "atomic_beside_the_cache", "ns", 8, 0, "host.amo_miss_ns" },
    { "page_unknown", "ns", 12, 0, "host.pte_miss_ns" },
    { "pages_known", "1", 1024, 0, "host.pte_entries" },
    { "eager_max", "B", 8192, 0, "host.eager_bytes_max" },
    { "eager_buffer", "B", 8192, 0, "host.eager_buffer_bytes" },
    { "copy_rate", "MB/s", 10000, 0, "host.copy_mbs" },
    { "registration_known", "ns", 100, 0, "host.register_hit_ns" },
    { "registration", "ns", 1000, 0, "host.register_ns" },
    { "registration_of_a_page", "ns", 100, 0, "host.register_page_ns" },
    { "registration_page", "B", 4096, 0, "host.register_page_bytes" },
    { "within_a_node", "ns", 300, 0, "host.local_ns" },
    { "copy_within_a_node", "MB/s", 5000, 0, "host.local_mbs" },
    { 0 },
};

/* Both files of the SeaStar have these. */
#define SEASTAR_NETWORK                                                                                                \
    LIMITS(256, 250), /* 256 streams (4.3); the others as Gemini [OUR] */                                              \
        { "default_nodes", "1", 3840, 0, "topology.x topology.y topology.z" }, /* 4.1 */                               \
        { "hypertransport", "GB/s", 3.2, 0, NODE_LINK },                       /* 4.1 */                               \
        { "x_wire", "ns", 10, 0, "links.x.wire_ns" }, { "y_wire", "ns", 5, 0, "links.y.wire_ns" },                     \
        { "z_wire", "ns", 5, 0, "links.z.wire_ns" }, { "wire_in_a_hop", "ns", 10, 0, "router.hop_wire_ns" },           \
        { "crc_bits", "bits", 16, 0, "links.crc_bits" },        /* 4.3 */                                              \
        { "router_clock", "MHz", 500, 0, CLOCK_MHZ },           /* [OUR] */                                            \
        { "packet_on_the_wire", "B", 76.5, 0, PACKET_BYTES },   /* 4.6 */                                              \
        { "channel", "B", 816, 0, CHANNEL },                    /* a round trip and four packets [OUR] */              \
        { "reception_channel", "B", 816, 0, RECEPTION },        /* as much [OUR] */                                    \
        { "nic_rate", "GB/s", 1.103, 3, NIC_RATE },             /* 1.1 (4.1) */                                        \
        { "drain_rate", "GB/s", 1.103, 3, DRAIN_RATE },         /* 1.1 (4.1) */                                        \
        { "interface", "MB/s", 3200, 0, "host.interface_mbs" }, /* 4.1 */                                              \
        { "command", "B", 8, 0, "host.overhead_bytes" },        /* 2.8 of 3.2 GB/s are payload (4.1) */                \
    {                                                                                                                  \
        "request_of_a_read", "%", 11.111, 3, "host.duplex_percent" /* 8 of 72 bytes [OUR] */                           \
    }

static const struct emu_value seastar[] = {
    SEASTAR_NETWORK,
    /* Parts of the 4.89 us of SEASTAR-1a, which interrupt_ns fits: 100 ns each [OUR]. */
    { "issue", "ns", 100, 0, "host.issue_ns" },
    { "write", "ns", 100, 0, "host.write_ns" },
    { "read", "ns", 100, 0, "host.read_ns" },
    { "nic_out", "ns", 100, 0, "host.out_ns" },
    { "nic_in", "ns", 100, 0, "host.in_ns" },
    { "eager_max", "B", 8192, 0, "host.eager_bytes_max" },
    { "within_a_node", "ns", 1000, 0, "host.local_ns" },
    { "copy_within_a_node", "MB/s", 1000, 0, "host.local_mbs" },
    { 0 },
};

static const struct emu_value xt3[] = {
    SEASTAR_NETWORK,
    { "nic_out", "ns", 200, 0, "host.out_ns" }, /* of the 29 us of XT3-2 [OUR] */
    { "eager_max", "B", 4294967295, 0, "host.eager_bytes_max" },
    { "within_a_node", "ns", 100, 0, "host.local_ns" },
    { "one_copy_engine", "1", 1, 0, "host.local_shared" },
    { 0 },
};

static const struct emu_value bgl[] = {
    LIMITS(1024, 350),                                                    /* as Gemini [OUR], at 700 MHz (5.1) */
    { "default_nodes", "1", 512, 0, "topology.x topology.y topology.z" }, /* a midplane (5.1) */
    { "between_midplanes", "cycles", 10, 2, "links.midplane_ns 1000 / router.clock_ps" }, /* BGL-17 */
    { "hop", "cycles", 17, 2, "router.hop_ns 1000 / router.clock_ps" },                   /* 5.6 */
    { "wire_in_a_hop", "cycles", 6, 2, "router.hop_wire_ns 1000 / router.clock_ps" },     /* 5.6 */
    { "x_wire", "cycles", 6, 2, "links.x.wire_ns 1000 / router.clock_ps" },
    { "y_wire", "cycles", 6, 2, "links.y.wire_ns 1000 / router.clock_ps" },
    { "z_wire", "cycles", 6, 2, "links.z.wire_ns 1000 / router.clock_ps" },
    { "packet_on_the_wire", "B", 270, 0, "router.packet_units_max + links.packet_overhead_flits" }, /* 5.1 */
    { "byte_per_cycle", "B", 1, 0, FLIT_BYTES },                                                    /* 5.1 */
    { "crc_bits", "bits", 24, 0, "links.crc_bits" },                                                /* 5.4 */
    { "time_out", "cycles", 1024, 0, "links.retry_timeout_clocks" },                                /* [OUR] 5.4 */
    { "channel", "packets", 4, 0, "router.vc_units / router.packet_units_max" },                    /* 5.1 */
    { "packet", "tokens", 8, 0, "router.packet_units_max / router.token_units" },                   /* 5.1, 5.2 */
    { "answer", "B", 32, 0, "packet.response_header_flits" },                                       /* [OUR] */
    { "slq_cycles", "%", 75, 0, "router.fullest_percent" },                                         /* 5.2 */
    { "priority_for_packets_up_to", "B", 256, 0, "router.response_first" },                         /* 5.2 */
    { "processor_bus", "GB/s", 4.2, 0, NODE_LINK },                                                 /* [OUR] */
    { "access_rate", "GB/s", 11.2, 0, NIC_RATE },  /* 16 bytes a clock of 700 MHz (5.1, 5.3) [OUR] */
    { "reception_fifo", "B", 1024, 0, RECEPTION }, /* [OUR] 5.3 */
    { "fifo", "B", 1024, 0, "nic.fifo_bytes" },    /* [OUR] 5.3 */
    { 0 },
};

static const struct emu_value x1[] = {
    LIMITS(1024, 400), /* as Aries [OUR], at 800 MHz */
    COLLECTIVES,       /* as Aries [OUR] */
    /* Nothing is known of packets and buffers (6.2, 6.4). */
    { "crc_bits", "bits", 16, 0, "links.crc_bits" },
    { "packet_flits", "flits", 33, 0, "packet.payload_bytes_max 8 / packet.flit_bits + packet.request_header_flits" },
    { "longest_packet", "flits", 33, 0, "router.packet_units_max" },
    { "payload", "B", 256, 0, "packet.payload_bytes_max" },
    { "channel", "B", 32768, 0, CHANNEL },
    { "reception_channel", "B", 32768, 0, RECEPTION },
    { "token", "flits", 1, 0, "router.token_units" },
    /* Without the overheads of sender and receiver; 7.3 us in all (6.5). */
    { "mpi_within_a_node", "ns", 7299, 0, "host.send_ns + host.recv_ns + host.local_ns" },
    { "within_a_node", "ns", 143, 0, "host.local_ns" },
    { "eager_max", "B", 4294967295, 0, "host.eager_bytes_max" },
    { 0 },
};

/* Of both shapes. */
#define XD1_NODE                                                                                                       \
    LIMITS(1024, 100), COLLECTIVES, /* as Aries [OUR], at 200 MHz */                                                   \
        { "switch", "GB/s", 48, 0,                                                                                     \
          "topology.switch_ports links.node.lanes links.node.gbps_per_lane 2 / 8" }, /* 7.1 */                         \
        { "hypertransport", "GB/s", 3.2, 0, NODE_LINK },                             /* [OUR] 4.1 */                   \
        { "node_wire", "ns", 5, 0, "links.node.wire_ns" }, { "hop", "ns", 25, 0, "router.hop_ns" },                    \
        { "wire_in_a_hop", "ns", 10, 0, "router.hop_wire_ns" }, { "router_clock", "MHz", 200, 0, CLOCK_MHZ },          \
        { "crc_bits", "bits", 16, 0, "links.crc_bits" },                                                               \
        { "packet_flits", "flits", 65, 0,                                                                              \
          "packet.payload_bytes_max 8 / packet.flit_bits + packet.request_header_flits" },                             \
        { "longest_packet", "flits", 65, 0, "router.packet_units_max" },                                               \
        { "payload", "B", 512, 0, "packet.payload_bytes_max" },                                                        \
        { "channel", "packets", 4, 0, "router.vc_units / router.packet_units_max" },                                   \
        { "token", "flits", 1, 0, "router.token_units" }, { "reception_channel", "B", 2080, 0, RECEPTION },            \
        { "nic_rate", "GB/s", 3.2, 0, NIC_RATE }, { "drain_rate", "GB/s", 3.2, 0, DRAIN_RATE },                        \
    {                                                                                                                  \
        "eager_max", "B", 4294967295, 0, "host.eager_bytes_max"                                                        \
    }

static const struct emu_value xd1[] = {
    XD1_NODE,
    { "external_wire", "ns", 10, 0, "links.external.wire_ns" },
    { "links_of_a_flow", "1", 3, 0, "topology.flow_links" }, /* as many as a pair of chassis has (7.1) */
    { 0 },
};

static const struct emu_value xd1_fat_tree[] = {
    XD1_NODE,
    { "spine_wire", "ns", 10, 0, "links.spine.wire_ns" },
    /* As xd1.yaml, whose values XD1-1, XD1-2 and XD1-4 fit. */
    { "interface", "MB/s", 1347, 0, "host.interface_mbs" },
    { "duplex", "%", 23.57, 2, "host.duplex_percent" },
    { "duplex_from", "B", 32768, 0, "host.duplex_bytes_min" },
    { "nic_out", "ns", 400, 0, "host.out_ns" },
    { "send", "ns", 432, 0, "host.send_ns" },
    { "receive", "ns", 783, 0, "host.recv_ns" },
    { "within_a_node", "ns", 478, 0, "host.local_ns" },
    { "copy_within_a_node", "MB/s", 1089, 0, "host.local_mbs" },
    { "one_copy_engine", "1", 1, 0, "host.local_shared" },
    { 0 },
};

int emu_values_xc(struct emu_exp *x)
{
    return emu_values_report(x, "aries", "", xc);
}

int emu_values_titan(struct emu_exp *x)
{
    return emu_values_report(x, "gemini", "", titan);
}

int emu_values_seastar(struct emu_exp *x)
{
    return emu_values_report(x, "seastar", "", seastar);
}

int emu_values_xt3(struct emu_exp *x)
{
    return emu_values_report(x, "xt3", "", xt3);
}

int emu_values_bgl(struct emu_exp *x)
{
    return emu_values_report(x, "bluegene-l", "", bgl);
}

int emu_values_x1(struct emu_exp *x)
{
    return emu_values_report(x, "x1", "", x1);
}

int emu_values_xd1(struct emu_exp *x)
{
    int r = emu_values_report(x, "xd1", "", xd1);

    return r < 0 ? r : emu_values_report(x, "xd1-fat-tree", "fat_tree_", xd1_fat_tree);
}
