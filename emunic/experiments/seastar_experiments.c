/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SeaStar, Red Storm and the shape of the XT3: the table of their experiments (spec/machines.md 4.5 and 1.4).
 */
#include "emunic/experiments/seastar_experiments.h"

#include "emunic/experiments/loaded.h"
#include "emunic/experiments/probe.h"

const struct emu_experiment emu_seastar_experiments[] = {
    { "SEASTAR-1", "seastar", "K", "K", EMU_EXP_PACKETS, "zero-length put, get and put both ways",
      emu_seastar_latency },
    { "SEASTAR-2", "seastar", "K", "K", EMU_EXP_PACKETS, "bandwidth of long puts", emu_seastar_asymptote },
    { "SEASTAR-3", "seastar", "P", "M", EMU_EXP_PACKETS, "put of 100 KB", emu_seastar_put_100k },
    { "SEASTAR-4", "seastar", "P", "M", EMU_EXP_PACKETS, "get of 100 KB", emu_seastar_get_100k },
    { "SEASTAR-5", "seastar", "P", "M", EMU_EXP_PACKETS, "both ways is twice one way", emu_seastar_both_ways },
    { "SEASTAR-6", "seastar", "KP", "KM", EMU_EXP_PACKETS, "message sizes of half the peak", emu_seastar_half_peak },
    { "SEASTAR-7", "seastar", "FS", "-M", EMU_EXP_PACKETS, "step of latency behind 12 bytes", emu_seastar_step },
    { "SEASTAR-8", "seastar", "P", "M", EMU_EXP_PACKETS, "interrupts govern small streams", emu_seastar_stream },
    { "SEASTAR-9", "seastar", "P", "M", EMU_EXP_PACKETS, "offload: 2 us to the nearest, 5 us to the farthest",
      emu_seastar_offload },
    { "SEASTAR-10", "seastar", "AP", "FM", EMU_EXP_PACKETS, "ceilings of host interface and link",
      emu_seastar_ceilings },
    { "SEASTAR-11", "seastar", "FS", "-M", EMU_EXP_PACKETS, "errors of links stay invisible, escapes are caught",
      emu_seastar_errors },
    { "SEASTAR-12", "seastar", "P", "M", EMU_EXP_PACKETS, "both ways cost each other little", emu_seastar_duplex },
    { "SEASTAR-13", "seastar", "F", "-", EMU_EXP_LIVE, "rules of Portals" },
    { "SEASTAR-14", "seastar", "F", "-", EMU_EXP_LIVE, "order of start and end events" },
    { "SEASTAR-15", "seastar", "F", "-", EMU_EXP_LIVE, "interrupts per message, generic and accelerated" },
    { "SEASTAR-16", "seastar", "F", "-", EMU_EXP_LIVE, "commands per message, Linux and Catamount" },
    { "LOAD-7", "seastar", "S", "M", EMU_EXP_PACKETS, "Red Storm: full lines, sections apart, incast (ours)",
      emu_redstorm_saturated },
    { "LOAD-8", "seastar", "S", "M", EMU_EXP_PACKETS, "Red Storm, uniform traffic: mesh links busy, hops (ours)",
      emu_redstorm_half },
    { "XT3-1", "seastar", "A", "C", EMU_EXP_ANALYTIC, "10 x 16 x 24 in 40 cabinets", emu_seastar_xt3 },
    { "AUD-XT3", "seastar", "A", "C", EMU_EXP_ANALYTIC, "routing is free of deadlock with a broken link",
      emu_seastar_audit },
    { "OWN-SEASTAR", "seastar", "S", "M", EMU_EXP_PACKETS,
      "times, rates and buffers by arithmetic on the machine file (ours)", emu_probe_seastar },
    { 0 },
};
