/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of the ledger. tests/experiments/parameters.py holds them against the machine files: a key that says "K"
 * there has a row here, and the other way round.
 */
#include "emunic/experiments/ledger.h"

#include <stddef.h>

#define FITTED  EMU_LEDGER_FITTED
#define TUNED   EMU_LEDGER_TUNED
#define ASSUMED EMU_LEDGER_ASSUMED

const struct emu_ledger_row emu_ledger[] = {
    { "aries", "host.issue_ns+host.write_ns", FITTED, "XC-1", "put of 8 bytes in 0.8 us", 0 },
    { "aries", "host.read_ns", FITTED, "XC-2", "get of 8 bytes in 1.6 us", 0 },
    { "aries", "host.send_ns+host.recv_ns", FITTED, "XC-3", "message of 8 bytes in 1.3 us", 0 },
    { "aries", "host.duplex_percent", FITTED, "XC-8", "15 GB/s both ways, one pair", 0 },
    { "aries", "host.put_gap_ns", FITTED, "XC-9", "half of the peak at 64 to 160 bytes, 16 processes", 0 },
    { "aries", "host.launch_gap_ns", FITTED, "XC-11", "7.5 M/s per core", 0 },
    { "aries", "host.launch_node_gap_ns", FITTED, "XC-11", "120 M/s per node", 0 },
    { "aries", "host.bte_mbs", FITTED, "XC-12", "ping-pong of 1 MiB at 8.5 GB/s", 0 },
    { "aries", "host.pte_miss_ns", FITTED, "XC-16", "random atomics, 50 M/s at the slowest", 0 },
    { "aries", "host.amo_miss_ns", FITTED, "XC-16", "random atomics, 120 M/s at the fastest", 0 },
    { "aries", "routing.threshold_flits", TUNED, "XC-24",
      "adaptive over the better of minimal and Valiant, uniform and group shift, at saturation of "
      "groups=4,chassis=2,blades=8,cables_per_bundle=6",
      0 },
    { "aries", "router.vc_units+router.shared_units", TUNED, "XC-22",
      "uniform traffic on 8 groups: 0.86 of the bound with shared space, 0.93 with equal parts", 0 },
    { "aries", "router.arbitration", TUNED, "XC-24", "throughput of group shift that does not fall with time", 0 },
    { "aries", "router.response_first", TUNED, "XC-8", "pairs both ways: 12.6 GB/s without, 15 in the source", 0 },
    { "aries", "host.noise_ns", FITTED, "XC-15", "software with noise reaches the plot's ceiling of 35 us", 0 },

    { "gemini", "bytes_per_MB", FITTED, "TITAN-2a", "the source's MB as 2^20 bytes: 5 946 on a cable of X", 1048576 },
    { "gemini", "host.packet_gap_ns", FITTED, "TITAN-2e", "6 778 MiB/s inside one Gemini", 0 },
    { "gemini", "links.backplane.lost_percent", FITTED, "TITAN-2g", "two nodes share 8 236 MiB/s", 0 },
    { "gemini", "host.send_ns+host.recv_ns", FITTED, "TITAN-17", "mean of 1.5, 1.7 and 1.55 us to neighbours", 0 },

    { "seastar", "host.interrupt_ns", FITTED, "SEASTAR-1a", "put of 0 bytes in 4.89 us", 0 },
    { "seastar", "host.reply_ns", FITTED, "SEASTAR-1b", "get of 0 bytes in 6.09 us", 0 },
    { "seastar", "host.put_gap_ns", FITTED, "SEASTAR-1c", "puts both ways of 0 bytes in 8.39 us", 0 },
    { "seastar", "host.packet_gap_ns", FITTED, "SEASTAR-2", "1 108 MB/s for puts of 2 MB", 0 },
    { "seastar", "host.end_interrupt_ns", FITTED, "SEASTAR-6a", "NetPIPE: half of the peak at 8 KB", 0 },
    { "seastar", "accelerated.software_ns", ASSUMED, "SEASTAR-9", "MPI over Portals on the NIC, each end", 500 },
    { "seastar", "accelerated.packet_gap_ns", ASSUMED, "SEASTAR-10", "64 bytes at HyperTransport's 2.8 GB/s", 22.857 },

    { "xt3", "host.send_ns+host.recv_ns", FITTED, "XT3-2", "MPI of 8 bytes in 29 us", 0 },
    { "xt3", "host.packet_gap_ns", FITTED, "XT3-2", "1 111 MB/s one way", 0 },

    { "bluegene-l", "router.hop_ns", FITTED, "BGL-9", "97 ns a hop", 0 },
    { "bluegene-l", "nic.packet_start_ns", FITTED, "BGL-10", "71 % of peak, one packet of 32 bytes per pair", 0 },
    { "bluegene-l", "nic.drain_cycles", FITTED, "BGL-11", "92 % of the links into one node", 0 },
    { "bluegene-l", "exchange.pace", TUNED, "BGL-6b",
      "nodes that send 5 % more slowly than the longest dimension carries: queues no longer grow", 1 / 1.05 },
    { "bluegene-l", "router.arb_gap_clocks", TUNED, "BGL-14",
      "the place of the gap: channels fill by 1.3, links do not", 0 },

    { "x1", "router.arbitration", TUNED, "LOAD-1", "five nodes over an edge: none gets nothing", 0 },
    { "x1", "router.column_buffers", TUNED, "LOAD-2",
      "latency of a hop under load: packets under way do not wait for a node's link", 0 },
    { "x1", "host.send_ns+host.recv_ns", FITTED, "X1-1", "MPI between nodes in 7.3 us", 0 },
    { "x1", "host.local_ns", FITTED, "X1-1", "MPI within a node in 7.3 us", 0 },
    { "x1", "host.shmem_ns", FITTED, "X1-1", "SHMEM in 3.8 us", 0 },
    { "x1", "host.caf_ns", FITTED, "X1-1", "co-array Fortran in 3.9 us", 0 },
    { "x1", "host.interface_mbs", FITTED, "X1-2", "9 364 MB/s one way between nodes", 0 },
    { "x1", "host.local_mbs", FITTED, "X1-2", "9 503 MB/s one way within a node", 0 },
    { "x1", "host.duplex_percent", FITTED, "X1-2", "16 936 MB/s both ways between nodes", 0 },
    { "x1", "host.send_end_ns", FITTED, "X1-4", "one way over swap of 0.75 at 1 024 bytes", 0 },
    { "x1", "host.send_end_bytes_min+host.send_end_bytes_max", FITTED, "X1-4",
      "the source's middle band, 512 to 2 048 bytes", 0 },

    { "xd1", "host.send_ns+host.recv_ns", FITTED, "XD1-1", "MPI between nodes in 1.7 us", 0 },
    { "xd1", "host.local_ns", FITTED, "XD1-1", "MPI within a node in 1.7 us", 0 },
    { "xd1", "host.interface_mbs", FITTED, "XD1-2", "1 342 MB/s one way between nodes", 0 },
    { "xd1", "host.local_mbs", FITTED, "XD1-2", "1 087 MB/s one way within a node", 0 },
    { "xd1", "host.duplex_percent", FITTED, "XD1-2", "2 173 MB/s both ways between nodes", 0 },
    { "xd1", "host.duplex_bytes_min", FITTED, "XD1-4", "where one way over swap steps from 50 to 60 %", 0 },
    { "xd1", "topology.flow_links", TUNED, "XD1-2", "1 342 MB/s between chassis, more than one link's 1 GB/s", 0 },
    { "xd1-fat-tree", "host.send_ns+host.recv_ns", FITTED, "XD1-1", "as xd1", 0 },
    { "xd1-fat-tree", "host.local_ns", FITTED, "XD1-1", "as xd1", 0 },
    { "xd1-fat-tree", "host.interface_mbs", FITTED, "XD1-2", "as xd1", 0 },
    { "xd1-fat-tree", "host.local_mbs", FITTED, "XD1-2", "as xd1", 0 },
    { "xd1-fat-tree", "host.duplex_percent", FITTED, "XD1-2", "as xd1", 0 },
    { "xd1-fat-tree", "host.duplex_bytes_min", FITTED, "XD1-4", "as xd1", 0 },

    { "all", "CMP-1", FITTED, "CMP-1", "latencies and bandwidths of X1-1, X1-2, XD1-1, XD1-2 and XT3-2", 0 },
    { "x1", "pop.point_2d_us", ASSUMED, "CMP-6", "a point of the surface, one step of the solver", 0.0015 },
    { "xd1", "pop.point_2d_us", ASSUMED, "CMP-6", "as x1", 0.011 },
    { "xt3", "pop.point_2d_us", ASSUMED, "CMP-6", "as x1", 0.010 },
    { "x1", "pop.point_3d_us", ASSUMED, "CMP-6", "a point of the body, one step", 0.25 },
    { "xd1", "pop.point_3d_us", ASSUMED, "CMP-6", "as x1", 1.64 },
    { "xt3", "pop.point_3d_us", ASSUMED, "CMP-6", "as x1", 1.5 },
    { "x1", "pop.caf_gap_us", ASSUMED, "CMP-6", "between words of one processor to different others", 0.05 },
    { "x1", "gyro.b1_compute_us", TUNED, "CMP-7", "faster than the Opterons by the ratio of their peaks", 0.04e6 },
    { "xd1", "gyro.b1_compute_us", TUNED, "CMP-7", "a quarter of the time is communication at 16 processes", 0.27e6 },
    { "xt3", "gyro.b1_compute_us", TUNED, "CMP-7", "a quarter of the time is communication at 16 processes", 0.25e6 },
    { "x1", "gyro.b3_compute_us", TUNED, "CMP-7", "faster than the Opterons by the ratio of their peaks", 0.24e6 },
    { "xd1", "gyro.b3_compute_us", TUNED, "CMP-7", "a quarter of the time is communication at 16 processes", 1.53e6 },
    { "xt3", "gyro.b3_compute_us", TUNED, "CMP-7", "a quarter of the time is communication at 16 processes", 1.4e6 },
    { NULL },
};
