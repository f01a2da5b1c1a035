/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OWN-XC and the like: what follows by arithmetic from the values of a machine file, measured on packets and programs
 * (probe.h). They are no evidence of a machine: many values are ours, and the files and sections of spec/machines.md
 * say which. They show that the model does with each value what the file says, and fail if one changes.
 *
 * How long a packet of u flits takes: u flits on the slowest link of its way, and hop_ns for each link between routers,
 * with what its wire is longer than hop_wire_ns. Where a slow link leads into a fast one, the tail decides. A router
 * decides once a clock. So a packet that a NIC sends takes a clock more; and two packets of which the second waits for
 * the credit of the first are whole clocks apart, rounded down: the head of the first at the far end (hop), its tail
 * out of there (or in, with column buffers), and the wire back. The first run had neither in its arithmetic, and missed
 * by just these clocks; no tolerance was widened. 0.5 % is what is left of rounding, of clocks in programs and of the
 * first packets of a stream.
 */
#include "emunic/experiments/contest.h"
#include "emunic/experiments/probe.h"
#include "emunic/experiments/singles.h"

/* A NIC that takes a packet in some 100 us. */
#define STUCK         "nic.drain_cycles=100000"
/* And sends one each 1.25 us. */
#define STUCK_SLOW    STUCK ",nic.access_cycles=1000"
/* Sixteen groups, so that two ways by a root at random are hardly ever both over the same link; slow links to them. */
#define DETOUR_GROUPS "groups=16,chassis=1,blades=6,links.blue.gbps_per_lane=1," STUCK_SLOW
/* Hosts without the times of generic mode and of stores; SeaStar and XT3. */
#define PLAIN         "host.generic=0,host.put_gap_ns=0"

#define FAST_NIC "host.packet_gap_ns=0.001,host.put_gap_ns=0"

/* Flits of 48 bits on three lanes of 14 Gb/s, one in ten of them the frame's: 1.27 ns; to a NIC, 168 Gb/s: 0.2857. */
static const struct probe_row aries[] = {
    { "outstanding_puts", PROBE_WINDOW, "", .n = 64, .src = 1024 * 64 / 200.1 },
    { "block_transfers_at_once", PROBE_CHANNELS, "", .n = 4096, .src = 4 * 50 },
    { "atomics_on_64_words", PROBE_ATOMICS, .n = 64, .src = 400 },
    { "atomics_on_65_words", PROBE_ATOMICS, .n = 65, .src = 1e3 / 8.5 },
    { "atomics_on_1024_pages", PROBE_ATOMICS, .n = 1024, .src = 1e3 / 8.5 },
    { "atomics_on_1025_pages", PROBE_ATOMICS, .n = 1025, .src = 1e3 / (8.5 + 11.3) },
    { "same_router", PROBE_LATENCY, "", .src = 14 * 0.2857 + 1.143 },
    { "round_trip_green", PROBE_PERIOD, "green", "router.vc_units=14", .src = 107 * 1.143 }, /* 100 + 14 x 1.27 + 5 */
    { "round_trip_black", PROBE_PERIOD, "black", "router.vc_units=14", .src = 116 * 1.143 }, /* 100 + 14 x 1.27 + 15 */
    { "round_trip_blue", PROBE_PERIOD, "blue", "router.vc_units=14", .src = 148 * 1.143 },   /* 100 + 14 x 1.422 + 50 */
    { "nic", PROBE_PERIOD, "", .src = 5 / 0.8 },
    { "reception", PROBE_RECEPTION, "green", STUCK, .src = 170 / 14 },
    { "channel", PROBE_CHANNEL, "green", STUCK, .src = 170 / 14 },
    { "channel_of_13", PROBE_CHANNEL, "green", STUCK, .n = 13, .src = 170 / 13 },
    /*
     * Packets of 14 before one takes a longer way. Twelve are in the reception buffer, then they stay in the channel: a
     * way's weight is what is there and waits for it beyond the 96 (green) or 22 (blue, 1 Gb/s) that a busy link has
     * under way, and 14. The longer way weighs 14. Limits: 28; 28 + 16; 56 + 64; and 70 more to another group, whose
     * cable has two links. With adaptive-1 the router behind the first hop decides: 28 + 8 + 69.
     */
    { "detour_adaptive_0", PROBE_DETOUR, "green", "chassis=1," STUCK_SLOW, .src = 12 + 8 },
    { "detour_adaptive_1", PROBE_DETOUR, "green", "chassis=1," STUCK_SLOW, .mode = EMU_MODE_ADAPTIVE_1, .src = 12 + 8 },
    { "detour_adaptive_2", PROBE_DETOUR, "green", "chassis=1," STUCK_SLOW, .mode = EMU_MODE_ADAPTIVE_2,
      .src = 12 + 10 },
    { "detour_adaptive_3", PROBE_DETOUR, "green", "chassis=1," STUCK_SLOW, .mode = EMU_MODE_ADAPTIVE_3,
      .src = 12 + 15 },
    { "detour_to_another_group", PROBE_DETOUR, "blue", DETOUR_GROUPS, .src = 12 + 2 * 8 },
    { "detour_behind_a_hop", PROBE_DETOUR, "green blue",
      DETOUR_GROUPS ",routing.far_percent=1,routing.threshold_flits=69", .mode = EMU_MODE_ADAPTIVE_1, .src = 12 + 2 * 9,
      .tol = 0.04 }, /* one more if both ways that are tried lead to the same group */
    /* The source hears of the second output, whose router keeps to its way: as to another group. */
    { "detour_by_news", PROBE_DETOUR, "green blue", DETOUR_GROUPS ",routing.adaptive_0.add_flits_per_hop=10000",
      .src = 12 + 2 * 8, .tol = 0.04 },
    { "missed", PROBE_MISSED, "green", .n = 200, .src = 1048576, .tol = 0.6 }, /* some 20 of them */
    /* issue, interface, NIC, tiles, out, network; tiles, in, NIC, interface, write. */
    { "put", PROBE_OPERATION, "", .n = 64, .src = 237 + 5.5 + 6.25 + 4 + 100 + 5.14 + 4 + 100 + 6.25 + 5.5 + 237 },
    { "get", PROBE_OPERATION, "", .n = 64, .kind = EMU_NIC_GET,
      .src = 237 + 0.86 + 100 + 2 + 0.86 + 100 + 5.5 + 6.25 + 497 + 3.43 + 100 + 4.57 + 3.43 + 100 + 6.25 + 5.5 + 237 },
    /* The last of 128 packets 127 x 6.25 behind the first; a copy at each end. */
    { "message_of_8192", PROBE_OPERATION, "", .n = 8192, .kind = EMU_NIC_MESSAGE,
      .src = 250 + 819.2 + 710.64 + 127 * 6.25 + 250 + 819.2 },
    /* Two messages of the protocol (440.7 + 237 each), and 256 packets of a block transfer at 8.8 GB/s. */
    { "message_of_16384", PROBE_OPERATION, "", .n = 16384, .kind = EMU_NIC_MESSAGE,
      .src = 250 + 100 + 440.7 + 237 + 250 + 100 + 250 + 440.7 + 237 + 250 + 710.64 + 255 * 7.2727 + 250 },
    /* And four pages registered at both ends. */
    { "message_of_a_new_buffer", PROBE_OPERATION, "", "host.registration=miss", .n = 16384, .kind = EMU_NIC_MESSAGE,
      .src = 5370.7 + 2 * (1000 + 4 * 100) },
    /* 24 bytes of each 64; 55 % of it the other way; 90 bytes of two NICs' packets and answers in a set of tiles. */
    { "interface", PROBE_RATE, "", FAST_NIC, .n = 4096, .src = 16000 * 64 / 88.0 },
    { "interface_both_ways", PROBE_BOTH, "", FAST_NIC ",host.tile_mbs=0", .n = 4096,
      .src = 2 * 16000 * 64 / 88 / 1.55 },
    { "tiles", PROBE_BOTH, "", FAST_NIC ",host.interface_mbs=100000", .n = 4096, .src = 21000 * 64 / 90.0 },
    { "puts", PROBE_RATE, "", .n = 8, .src = 8 / 0.4 },
    { "launches", PROBE_RATE, "", .n = 8, .kind = EMU_NIC_LAUNCH, .src = 8 / 0.133333 },
    { "within_a_node", PROBE_OPERATION, "node", .n = 1000, .src = 300 + 1000 / 5.0 },
    { "puts_answered", PROBE_RATE, "", "host.out_ns=100000,host.put_gap_ns=0", .n = 64, .src = 1024 * 64 / 200.3 },
    { 0 },
};

/* Flits of 24 bits; three lanes of 3.125, 6.25 and 5 Gb/s (86.363 % of the last): 2.56, 1.28 and 1.853 ns. */
static const struct probe_row gemini[] = {
    { "outstanding_puts", PROBE_WINDOW, "", .n = 64, .src = 1024 * 64 / 200.1 },
    { "block_transfers_at_once", PROBE_CHANNELS, "", .n = 4096, .src = 4 * 50 },
    { "atomics_on_64_words", PROBE_ATOMICS, .n = 64, .src = 325 },
    { "atomics_on_65_words", PROBE_ATOMICS, .n = 65, .src = 1e3 / 8 },
    { "atomics_on_1024_pages", PROBE_ATOMICS, .n = 1024, .src = 1e3 / 8 },
    { "atomics_on_1025_pages", PROBE_ATOMICS, .n = 1025, .src = 1e3 / (8 + 12) },
    { "same_router", PROBE_LATENCY, "", .src = 32 * 0.2 + 1.25 },
    { "round_trip_x", PROBE_PERIOD, "x", "router.vc_units=32", .src = 141 * 1.25 },                /* 80 + 81.92 + 15 */
    { "round_trip_y", PROBE_PERIOD, "y", "y=4,router.vc_units=32", .src = 141 * 1.25 },            /* the same */
    { "round_trip_z", PROBE_PERIOD, "z", "router.vc_units=32", .src = 137 * 1.25 },                /* 80 + 81.92 + 10 */
    { "round_trip_mezzanine", PROBE_PERIOD, "mezzanine", "router.vc_units=32", .src = 98 * 1.25 }, /* 80 + 40.96 + 2 */
    { "round_trip_backplane", PROBE_PERIOD, "backplane", "router.vc_units=32", .src = 115 * 1.25 }, /* 80 + 59.28 + 5 */
    { "nic", PROBE_PERIOD, "", .src = 5 / 0.65 },
    { "reception", PROBE_RECEPTION, "mezzanine", STUCK, .src = 192 / 32 },
    { "channel", PROBE_CHANNEL, "mezzanine", STUCK, .src = 192 / 32 },
    { "channel_of_11", PROBE_CHANNEL, "mezzanine", STUCK, .n = 11, .src = 192 / 11 },
    { "missed", PROBE_MISSED, "mezzanine", .n = 160, .src = 65536, .tol = 0.4 }, /* some 100 of them */
    /* issue, NIC, out, network; in, NIC, write. */
    { "put", PROBE_OPERATION, "", .n = 64, .src = 210 + 9.005 + 100 + 7.65 + 100 + 9.005 + 210 },
    { "get", PROBE_OPERATION, "", .n = 64, .kind = EMU_NIC_GET,
      .src = 210 + 100 + 3.25 + 100 + 9.005 + 420 + 100 + 6.25 + 100 + 9.005 + 210 },
    { "puts", PROBE_RATE, "", .n = 8, .src = 8 / 0.4 },
    { "message_of_8192", PROBE_OPERATION, "", .n = 8192, .kind = EMU_NIC_MESSAGE,
      .src = 415 + 819.2 + 645.66 + 127 * 9.005 + 416 + 819.2 },
    { "message_of_16384", PROBE_OPERATION, "", .n = 16384, .kind = EMU_NIC_MESSAGE,
      .src = 415 + 100 + 413.25 + 210 + 416 + 100 + 415 + 413.25 + 210 + 416 + 645.66 + 255 * 9.005 + 416 },
    { "message_of_a_new_buffer", PROBE_OPERATION, "", "host.registration=miss", .n = 16384, .kind = EMU_NIC_MESSAGE,
      .src = 6466.4 + 2 * (1000 + 4 * 100) },
    { "within_a_node", PROBE_OPERATION, "node", .n = 1000, .src = 300 + 1000 / 5.0 },
    { "puts_answered", PROBE_RATE, "", "host.out_ns=100000,host.put_gap_ns=0", .n = 64, .src = 1024 * 64 / 200.3 },
    /* 96 bytes of a packet and 9 of an answer. */
    { "tiles_of_a_nic", PROBE_BOTH, "", "host.tile_mbs=100,host.put_gap_ns=0", .n = 64, .src = 2 * 100 * 64 / 105.0 },
    { 0 },
};

#define FAST_LINKS "host.packet_gap_ns=0.001,links.processor.gbps_per_lane=16,links.x.gbps_per_lane=76"

/* Flits of 68 bits on four lanes of 7.6 Gb/s, 79 % of it: 2.8315 ns, a packet 25.48. HyperTransport: 23.9. Of both. */
static const struct probe_row seastar_network[] = {
    { "outstanding_puts", PROBE_WINDOW, "z", .n = 64, .src = 256 * 64 / 200.1 },
    { "block_transfers_at_once", PROBE_CHANNELS, "z", .n = 4096, .src = 4 * 50 },
    { "atomics_on_64_words", PROBE_ATOMICS, .n = 64, .src = 250 },
    { "atomics_on_65_words", PROBE_ATOMICS, .n = 65, .src = 1e3 / 100 },
    { "header_along_x", PROBE_LATENCY, "x", .n = 1, .src = 55 + 2.83 + 2 },
    { "half_of_the_ring_x", PROBE_LATENCY, "x x x x x", .src = 5 * 55 + 25.48 + 2 },
    { "round_trip_x", PROBE_PERIOD, "x", "router.vc_units=9", .src = 45 * 2 }, /* 55 + 25.48 + 10 */
    { "round_trip_y", PROBE_PERIOD, "y", "router.vc_units=9", .src = 42 * 2 }, /* 55 + 25.48 + 5 */
    { "round_trip_z", PROBE_PERIOD, "z", "router.vc_units=9", .src = 42 * 2 }, /* the same */
    { "nic", PROBE_PERIOD, "x", .src = 29 / 0.5 },
    { "reception", PROBE_RECEPTION, "x", STUCK, .src = 96 / 9 },
    { "channel", PROBE_CHANNEL, "x", STUCK, .src = 96 / 9 },
    { "missed", PROBE_MISSED, "x", .n = 160, .src = 65536, .tol = 0.4 }, /* some 100 of them */
    { "interface", PROBE_RATE, "x", PLAIN "," FAST_LINKS, .n = 4096, .src = 3200 * 64 / 72.0 },
    { "interface_both_ways", PROBE_BOTH, "x", PLAIN "," FAST_LINKS, .n = 4096, .src = 2 * 3200 * 64 / 72.0 / 1.11111 },
    { "tiles_of_a_nic", PROBE_BOTH, "next", PLAIN ",host.tile_mbs=100", .n = 64, .src = 2 * 100 * 64 / 77.0 },
    { 0 },
};

static const struct probe_row seastar[] = {
    { "across", PROBE_LATENCY, "last",
      .src = 17 * 55 + 25.48 + 2 }, /* a step back in the rings X and Z, 15 of the mesh */
    /* issue, interface, DMA, out, network; in, DMA, interface, write. */
    { "put", PROBE_OPERATION, "x", PLAIN, .n = 64,
      .src = 100 + 22.5 + 57.762 + 100 + 82.48 + 100 + 57.762 + 22.5 + 100 },
    { "get", PROBE_OPERATION, "x", PLAIN, .n = 64, .kind = EMU_NIC_GET,
      .src = 100 + 100 + 59.83 + 100 + 22.5 + 57.762 + 100 + 100 + 82.48 + 100 + 57.762 + 22.5 + 100 },
    /* The host answers: interrupt, reply; the data in the header. */
    { "get_by_the_host", PROBE_OPERATION, "x", .n = 8, .kind = EMU_NIC_GET,
      .src = 100 + 100 + 59.83 + 100 + 4432 + 942 + 5 + 57.762 + 100 + 62.66 + 100 + 57.762 + 5 + 100 },
    /* A header and its interrupt; 128 packets, one DMA apart; the interrupt at their end. */
    { "message_of_8192", PROBE_OPERATION, "x", .n = 8192, .kind = EMU_NIC_MESSAGE,
      .src = 100 + 100 + 59.83 + 100 + 4432 + 128 * 57.762 + 22.5 + 100 + 2500 },
    { "within_a_node", PROBE_OPERATION, "node", "host.put_gap_ns=0", .n = 1000, .src = 1000 + 1000 / 1.0 },
    { 0 },
};

static const struct probe_row xt3[] = {
    { "put", PROBE_OPERATION, "x", .n = 64, .src = 200 + 22.5 + 55.7 + 82.48 + 55.7 + 22.5 },
    { "message", PROBE_OPERATION, "x", .n = 8, .kind = EMU_NIC_MESSAGE,
      .src = 14213 + 200 + 5 + 55.7 + 62.66 + 55.7 + 5 + 14413 },
    { "within_a_node", PROBE_OPERATION, "node", .n = 1000, .src = 100 },
    { "one_copy_engine", PROBE_SWAP, "node", "host.local_mbs=100", .n = 1u << 20, .src = 2 * 1048576 / 0.1 },
    { 0 },
};

/* A byte on 1.4 Gb/s: 5.714 ns; a packet of 256 and 14: 1 542.9. */
#define FAST_BGL                                                                                                       \
    "links.processor.gbps_per_lane=560,links.x.gbps_per_lane=140,links.y.gbps_per_lane=140,links.z.gbps_per_lane=140"

static const struct probe_row bgl[] = {
    { "chunk_to_the_next", PROBE_LATENCY, "x", .n = 32, .src = 97.143 + 46 * 5.714 + 5.714 },
    { "half_of_the_ring_x", PROBE_LATENCY, "x x x x", .n = 32, .src = 4 * 97.143 + 46 * 5.714 + 5.714 },
    { "half_of_the_ring_y", PROBE_LATENCY, "y y y y", .n = 32, .src = 4 * 97.143 + 46 * 5.714 + 5.714 },
    { "half_of_the_ring_z", PROBE_LATENCY, "z z z z", .n = 32, .src = 4 * 97.143 + 46 * 5.714 + 5.714 },
    { "across_a_midplane", PROBE_LATENCY, "x x x x x x x x", "x=16", .n = 32,
      .src = 8 * 97.143 + 57.143 + 46 * 5.714 + 5.714 },
    /* 32 and 14 bytes there, as many back; each decided a clock later. */
    { "chunk_and_answer", PROBE_ANSWERED, "x", .n = 32, .src = 2 * (97.143 + 46 * 5.714 + 5.714) },
    { "repeated", PROBE_REPEATED, "x", .src = 97.143 + 2 * 1542.86 + 1024 * 5.714 + 5.714 },
    { "drain", PROBE_PERIOD, "x", FAST_BGL, .src = 194 / 0.7 },
    { "access", PROBE_PERIOD, "x", "nic.drain_cycles=1," FAST_BGL, .src = 15 / 0.7 },
    { "processor", PROBE_PERIOD, "x",
      "nic.drain_cycles=1,nic.access_cycles=1,links.x.gbps_per_lane=140,links.y.gbps_per_lane=140,"
      "links.z.gbps_per_lane=140",
      .src = 256 * 8 / 33.6 },
    /* 10 million are broken: of 24 bits one is not seen, of 17 some 76. */
    { "seen", PROBE_MISSED, "x", .n = 100, .src = 16777216 / 16.0, .is_least = true },
    { "reception", PROBE_RECEPTION, "x", STUCK, .src = 1024 / 256 },
    { "channels", PROBE_CHANNEL, "x", STUCK, .src = 2 * 4 + 3 }, /* two of 1 KB, and a bubble in the third */
    { "fifo", PROBE_INJECTION, "x", STUCK, .src = 1024 / 256 },
    { "atomics_on_64_words", PROBE_ATOMICS, .n = 64, .src = 350 },
    { "atomics_on_65_words", PROBE_ATOMICS, .n = 65, .src = 1e3 / 100 },
    { 0 },
};

/* Flits of 64 bits: 0.3125 ns on a node's link, 0.0781 on an edge; packets of 33: 10.31 and 2.58. */
static const struct probe_row x1[] = {
    { "outstanding_puts", PROBE_WINDOW, "", .n = 64, .src = 1024 * 64 / 200.1 },
    { "block_transfers_at_once", PROBE_CHANNELS, "", .n = 4096, .src = 4 * 50 },
    { "atomics_on_64_words", PROBE_ATOMICS, .n = 64, .src = 400 },
    { "atomics_on_65_words", PROBE_ATOMICS, .n = 65, .src = 1e3 / 100 },
    { "next_vertex", PROBE_LATENCY, "edge", .src = 2 * 10.3125 - 2.578 + 40 + 1.25 },
    { "two_edges", PROBE_LATENCY, "edge edge", .src = 2 * 10.3125 - 2.578 + 2 * 40 + 1.25 },
    { "round_trip", PROBE_PERIOD, "edge", "router.vc_units=33", .src = 42 * 1.25 }, /* 40 + 2.58 + 10 */
    { "nic", PROBE_PERIOD, "", "links.processor.gbps_per_lane=128", .src = 8 / 0.8 },
    { "words_decided_a_clock_apart", PROBE_PERIOD, "edge", .n = 1, .src = 1.25 },
    { "reception", PROBE_RECEPTION, "edge", STUCK, .src = 4096 / 33 },
    { "channel", PROBE_CHANNEL, "edge", STUCK, .src = 4096 / 33 },
    { "missed", PROBE_MISSED, "edge", .n = 160, .src = 65536, .tol = 0.4 }, /* some 100 of them */
    { "within_a_node", PROBE_OPERATION, "node", .n = 1000, .src = 143 + 1000 / 10.211 },
    { "shmem", PROBE_OPERATION, "edge", .n = 8, .api = EMU_NIC_API_SHMEM, .src = 3606 + 100 + 42.4 + 1.6 },
    { "caf", PROBE_OPERATION, "edge", .n = 8, .api = EMU_NIC_API_CAF, .src = 3706 + 100 + 42.4 + 1.6 },
    /* send, interface, out, the time behind a send, recv. */
    { "swap_of_512", PROBE_SWAP, "edge", .n = 512, .kind = EMU_NIC_MESSAGE, .src = 3556 + 51 + 100 + 3800 + 3600 },
    { "swap_of_2048", PROBE_SWAP, "edge", .n = 2048, .kind = EMU_NIC_MESSAGE, .src = 3556 + 204 + 100 + 3800 + 3600 },
    { "tiles_of_a_nic", PROBE_BOTH, "", "host.tile_mbs=100", .n = 256, .src = 2 * 100 * 256 / 264.0 },
    { 0 },
};

/* Flits of 64 bits on 8 Gb/s, 14 of 19: 10.857 ns; a packet of 65: 705.7. HyperTransport 2.5: 162.5. */
#define FAST_NODE "links.node.gbps_per_lane=800,links.processor.gbps_per_lane=160"
#define SHORT_XD1                                                                                                      \
    "packet.payload_bytes_max=32,router.packet_units_max=5,router.vc_units=5,nic.access_cycles=1,nic.drain_cycles=1"

/* Of both shapes. */
static const struct probe_row xd1_node[] = {
    { "outstanding_puts", PROBE_WINDOW, "node node", .n = 64, .src = 1024 * 64 / 200.1 },
    { "block_transfers_at_once", PROBE_CHANNELS, "node node", .n = 4096, .src = 4 * 50 },
    { "atomics_on_64_words", PROBE_ATOMICS, .n = 64, .src = 100 },
    { "atomics_on_65_words", PROBE_ATOMICS, .n = 65, .src = 1e3 / 100 },
    { "word_to_the_next_node", PROBE_LATENCY, "node node", .n = 1, .src = 2 * 25 + 10.857 + 5 },
    { "packet_to_the_next_node", PROBE_LATENCY, "node node", .src = 2 * 25 + 705.7 + 5 },
    { "round_trip", PROBE_PERIOD, "node node", SHORT_XD1, .src = 16 * 5 }, /* 25 + 5 x 10.857 + 5 */
    { "nic", PROBE_PERIOD, "node node", FAST_NODE, .src = 32 / 0.2 },
    { "hypertransport", PROBE_PERIOD, "node node",
      "links.node.gbps_per_lane=800,nic.access_cycles=1,nic.drain_cycles=1", .src = 162.5 },
    { "reception", PROBE_RECEPTION, "node node", STUCK, .src = 260 / 65 },
    { "channel", PROBE_CHANNEL, "node node", STUCK, .src = 260 / 65 },
    { "missed", PROBE_MISSED, "node node", .n = 160, .src = 65536, .tol = 0.4 }, /* some 100 of them */
    { "put", PROBE_OPERATION, "node node", .n = 512, .src = 400 + 380.1 + 50 + 705.7 + 5 + 380.1 },
    { "get", PROBE_OPERATION, "node node", .n = 8, .kind = EMU_NIC_GET,
      .src = 400 + 50 + 10.86 + 5 + 5.94 + 400 + 50 + 21.7 + 5 + 5.94 },
    { "message", PROBE_OPERATION, "node node", .n = 8, .kind = EMU_NIC_MESSAGE,
      .src = 432 + 400 + 5.94 + 50 + 21.7 + 5 + 5.94 + 783 },
    { "within_a_node", PROBE_OPERATION, "node", .n = 1000, .src = 478 + 1000 / 1.089 },
    { "tiles_of_a_nic", PROBE_BOTH, "next", "host.tile_mbs=100", .n = 512, .src = 2 * 100 * 512 / 520.0 },
    { 0 },
};

static const struct probe_row xd1[] = {
    { "round_trip_between_chassis", PROBE_PERIOD, "node external node", SHORT_XD1, .src = 17 * 5 }, /* 25 + 54.3 + 10 */
    { "flow_over_three_links", PROBE_SPREAD, "node external node", FAST_NODE, .src = 705.7 / 3 },
    { 0 },
};

static const struct probe_row tree[] = {
    { "round_trip_between_chassis", PROBE_PERIOD, "node spine spine node", SHORT_XD1, .src = 17 * 5 },
    { "interface", PROBE_RATE, "node node", .n = 65536, .kind = EMU_NIC_MESSAGE, .src = 1347 },
    { "interface_both_ways", PROBE_SWAP, "node node", .n = 1u << 22, .kind = EMU_NIC_MESSAGE,
      .src = 4194304 * 1.2357 / 1.347 },
    { "one_copy_engine", PROBE_SWAP, "node", .n = 1u << 20, .kind = EMU_NIC_MESSAGE, .src = 2 * 1048576 / 1.089 },
    /* A swap takes 23.57 % longer, and a packet's time beside it. */
    { "swap_of_32768", PROBE_SWAP, "node node", .n = 32768, .kind = EMU_NIC_MESSAGE,
      .src = 432 + 400 + 32768 * 1.2357 / 1.347 + 50 + 705.7 + 5 + 470 + 783, .tol = 0.03 },
    { 0 },
};

int emu_probe_xc(struct emu_exp *x)
{
    int r = probe_report(x, "aries", aries);

    r = r < 0 ? r : contest_xc(x);
    r = r < 0 ? r : single_load_period(x);
    r = r < 0 ? r : single_reductions(x);
    return r < 0 ? r : single_named_node(x);
}

int emu_probe_titan(struct emu_exp *x)
{
    return probe_report(x, "gemini", gemini);
}

int emu_probe_seastar(struct emu_exp *x)
{
    int r = probe_report(x, "seastar", seastar_network);

    return r < 0 ? r : probe_report(x, "seastar", seastar);
}

int emu_probe_xt3(struct emu_exp *x)
{
    int r = probe_report(x, "xt3", seastar_network);

    return r < 0 ? r : probe_report(x, "xt3", xt3);
}

int emu_probe_bgl(struct emu_exp *x)
{
    int r = probe_report(x, "bluegene-l", bgl);

    r = r < 0 ? r : contest_bgl(x);
    return r < 0 ? r : single_under_way(x);
}

int emu_probe_x1(struct emu_exp *x)
{
    return probe_report(x, "x1", x1);
}

int emu_probe_xd1(struct emu_exp *x)
{
    int r = probe_report(x, "xd1", xd1_node);

    r = r < 0 ? r : probe_report(x, "xd1", xd1);
    return r < 0 ? r : single_ports(x, "xd1", "external_ports");
}

int emu_probe_xd1_tree(struct emu_exp *x)
{
    int r = probe_report(x, "xd1-fat-tree", xd1_node);

    r = r < 0 ? r : probe_report(x, "xd1-fat-tree", tree);
    return r < 0 ? r : single_ports(x, "xd1-fat-tree", "topology.chassis");
}
