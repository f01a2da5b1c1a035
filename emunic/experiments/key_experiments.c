/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * KEY-XC and the like: values of the machine files that no figure feels (values.h). Numbers in brackets are sections of
 * spec/machines.md; [OUR] has no source but the comment in the machine file.
 */
#include "emunic/experiments/values.h"

const struct emu_value emu_values[] = {
    { "aries", "ce_engines", "1", 4, "nic.ce_engines" },
    { "xd1 xd1-fat-tree", "switch", "GB/s", 48,
      "topology.switch_ports links.node.lanes links.node.gbps_per_lane 2 / 8" },       /* 7.1 */
    { "aries", "cabinet_columns", "1", 12, "topology.cabinet_columns" },               /* Cori's */
    { "aries", "load_period", "clocks", 10, "router.load_period_clocks" },             /* 2.2 */
    { "bluegene-l", "slq_cycles", "%", 75, "router.fullest_percent" },                 /* 5.2 */
    { "bluegene-l", "priority_for_packets_up_to", "B", 256, "router.response_first" }, /* 5.2 */
    /* No program of the NIC model runs there: an answer with data would be longer than a packet [OUR]. */
    { "bluegene-l", "outstanding_packets", "packets", 1024, "nic.outstanding_packets" },
    { 0 },
};

int emu_values_xc(struct emu_exp *x)
{
    return emu_values_report(x, "aries", "");
}

int emu_values_bgl(struct emu_exp *x)
{
    return emu_values_report(x, "bluegene-l", "");
}

int emu_values_xd1(struct emu_exp *x)
{
    int r = emu_values_report(x, "xd1", "");

    return r < 0 ? r : emu_values_report(x, "xd1-fat-tree", "fat_tree_");
}
