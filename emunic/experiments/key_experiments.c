/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * KEY-XC and the like: values of the machine files that no figure feels (values.h). Numbers in brackets are sections of
 * spec/machines.md; [OUR] has no source but the comment in the machine file.
 */
#include "emunic/experiments/values.h"

#define X1_XD1 "x1 xd1 xd1-fat-tree"

const struct emu_value emu_values[] = {
    /* What uGNI programs find: of Aries (2.3), on other machines the same [OUR]. Real processes feel them (XC-39). */
    { "aries gemini seastar xt3 bluegene-l " X1_XD1, "fma_descriptors", "1", 127, "nic.fma_descriptors" },
    { "aries gemini seastar xt3 bluegene-l " X1_XD1, "bte_transfer", "GiB", 4, "nic.bte_bytes_max / 1073741824" },
    { "aries " X1_XD1, "ce_engines", "1", 4, "nic.ce_engines" },
    { X1_XD1, "ce_children", "1", 32, "nic.ce_children_max" },
    /* No message is longer: one protocol for all sizes [OUR]. */
    { "xt3 " X1_XD1, "eager_max", "B", 4294967295, "host.eager_bytes_max" },
    { "xd1 xd1-fat-tree", "switch", "GB/s", 48,
      "topology.switch_ports links.node.lanes links.node.gbps_per_lane 2 / 8" }, /* 7.1 */
    { "xd1-fat-tree", "duplex_from", "B", 32768, "host.duplex_bytes_min" },      /* as xd1, where XD1-4 fits it */
    { "aries", "cabinet_columns", "1", 12, "topology.cabinet_columns" },         /* Cori's */
    { "aries", "load_period", "clocks", 10, "router.load_period_clocks" },       /* 2.2 */
    { "aries", "adaptive_threshold", "packets", 5, "routing.threshold_flits / router.packet_units_max" }, /* [OUR] */
    /* Bias of the four modes [OUR] 2.2 */
    { "aries", "adaptive_0_shift", "1", 1, "routing.adaptive_0.shift" },
    { "aries", "adaptive_1_shift", "1", 1, "routing.adaptive_1.shift" },
    { "aries", "adaptive_1_per_hop", "flits", 8, "routing.adaptive_1.add_flits_per_hop" },
    { "aries", "adaptive_2_shift", "1", 1, "routing.adaptive_2.shift" },
    { "aries", "adaptive_2_add", "flits", 16, "routing.adaptive_2.add_flits" },
    { "aries", "adaptive_3_shift", "1", 2, "routing.adaptive_3.shift" },
    { "aries", "adaptive_3_add", "flits", 64, "routing.adaptive_3.add_flits" },
    { "bluegene-l", "crc_bits", "bits", 24, "links.crc_bits" },                        /* 5.4 */
    { "bluegene-l", "slq_cycles", "%", 75, "router.fullest_percent" },                 /* 5.2 */
    { "bluegene-l", "priority_for_packets_up_to", "B", 256, "router.response_first" }, /* 5.2 */
    /* No program of the NIC model runs there: an answer with data would be longer than a packet [OUR]. */
    { "bluegene-l", "outstanding_packets", "packets", 1024, "nic.outstanding_packets" },
    { "bluegene-l", "bte_channels", "1", 4, "nic.bte_channels" },
    { 0 },
};

int emu_values_xc(struct emu_exp *x)
{
    return emu_values_report(x, "aries", "");
}

int emu_values_titan(struct emu_exp *x)
{
    return emu_values_report(x, "gemini", "");
}

int emu_values_seastar(struct emu_exp *x)
{
    return emu_values_report(x, "seastar", "");
}

int emu_values_xt3(struct emu_exp *x)
{
    return emu_values_report(x, "xt3", "");
}

int emu_values_bgl(struct emu_exp *x)
{
    return emu_values_report(x, "bluegene-l", "");
}

int emu_values_x1(struct emu_exp *x)
{
    return emu_values_report(x, "x1", "");
}

int emu_values_xd1(struct emu_exp *x)
{
    int r = emu_values_report(x, "xd1", "");

    return r < 0 ? r : emu_values_report(x, "xd1-fat-tree", "fat_tree_");
}
