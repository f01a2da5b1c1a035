/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Titan: the table of its experiments (spec/machines.md 3.5 and 1.4).
 */
#include "emunic/experiments/titan.h"
#include "emunic/experiments/loaded.h"
#include "emunic/experiments/probe.h"

const struct emu_experiment emu_titan_experiments[] = {
    { "TITAN-1", "gemini", "A", "C", EMU_EXP_ANALYTIC, "rates of the classes of links", emu_titan_links },
    { "TITAN-2", "gemini", "KP", "KM", EMU_EXP_PACKETS, "TopoBW: the ten rows in print", emu_titan_rows },
    { "TITAN-3", "gemini", "P", "M", EMU_EXP_PACKETS, "TopoBW: least, most and mean of each dimension",
      emu_titan_summaries },
    { "TITAN-4", "gemini", "A", "C", EMU_EXP_ANALYTIC, "coordinates, neighbours and partners of 30 nodes",
      emu_titan_headers },
    { "TITAN-5", "gemini", "A", "C", EMU_EXP_ANALYTIC, "tiles of the router and their names", emu_titan_tiles },
    { "TITAN-6", "gemini", "A", "C", EMU_EXP_ANALYTIC, "nodes and cabinets of Titan, folded cables", emu_titan_system },
    { "TITAN-7", "gemini", "S", "M", EMU_EXP_PACKETS, "a lost lane, adaptive and hashed choice of tiles",
      emu_titan_lanes },
    { "TITAN-8", "gemini", "F", "-", EMU_EXP_LIVE, "the watcher's log lines and lane masks of a lost lane" },
    { "TITAN-9", "gemini", "P", "M", EMU_EXP_PACKETS, "lost lanes that one node alone does not see", emu_titan_hidden },
    { "TITAN-10", "gemini", "S", "M", EMU_EXP_PACKETS, "missing Geminis oversubscribe the links around them",
      emu_titan_turns },
    { "TITAN-11", "gemini", "AS", "CC", EMU_EXP_PACKETS, "unroutable pairs with and without order retry",
      emu_titan_unroutable },
    { "TITAN-12", "gemini", "FS", "-M", EMU_EXP_PACKETS, "a link is taken out: quiesce, new routes, release",
      emu_titan_reroute },
    { "TITAN-13", "gemini", "FS", "-M", EMU_EXP_PACKETS, "throttled nodes inject less", emu_titan_throttle },
    { "TITAN-14", "gemini", "Q", "M", EMU_EXP_PACKETS, "balanced injection has a best limit", emu_titan_balanced },
    { "TITAN-15", "gemini", "S", "M", EMU_EXP_PACKETS, "a foreign job crosses: drop where links are shared",
      emu_titan_placement },
    { "TITAN-16", "gemini", "F", "-", EMU_EXP_LIVE, "topology query by node id" },
    { "TITAN-17", "gemini", "KP", "KM", EMU_EXP_PACKETS, "MPI to neighbours and across the machine", emu_titan_mpi },
    { "TITAN-18", "gemini", "F", "-", EMU_EXP_LIVE, "two slow Geminis of 9 600 are named" },
    { "AUD-TITAN", "gemini", "A", "C", EMU_EXP_ANALYTIC, "routing is free of deadlock with 0, 1, 2 dead Geminis",
      emu_titan_audit },
    { "LOAD-9", "gemini", "S", "M", EMU_EXP_PACKETS, "rate of NICs, one way, both ways, incast (ours)",
      emu_gemini_nics },
    { "OWN-TITAN", "gemini", "S", "M", EMU_EXP_PACKETS,
      "times, rates and buffers by arithmetic on the machine file (ours)", emu_probe_titan },
    { 0 },
};
