/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the audit: the graph of channels, which audit_graph.c builds, audit.c judges and audit_walk.c holds against
 * what packets are really offered.
 */
#ifndef EMUNIC_FABRIC_SIM_AUDIT_INNER_H
#define EMUNIC_FABRIC_SIM_AUDIT_INNER_H

#include "emunic/fabric/sim/audit.h"

#define EMU_AUDIT_NONE UINT32_MAX

enum emu_audit_flag {
    EMU_AUDIT_IS_ESCAPE = 1 << 0,
    EMU_AUDIT_IS_BUBBLE = 1 << 1,
    EMU_AUDIT_IS_TO_NIC = 1 << 2,
    EMU_AUDIT_IS_REMOVED = 1 << 3, /* cannot be on a cycle */
};

/* A channel's packets may wait for the channels of a list. */
struct emu_audit_holding {
    uint32_t channel;
    uint32_t list;
};

/* Counts of a set of targets. */
struct emu_audit_tally {
    uint32_t n_distinct;
    uint32_t n_escape; /* of those */
    bool is_settling;  /* an escape channel or a way to a NIC is among them */
};

struct emu_audit {
    const struct emu_machine *machine; /* the three borrowed; they outlive the audit */
    const struct emu_routing *routing;
    const struct emu_fault_map *faults;
    struct emu_vc_info vcs[EMU_LINK_CLASSES][EMU_VCS_MAX];
    uint32_t n_vcs[EMU_LINK_CLASSES];
    uint32_t n_links;
    uint32_t n_channels;
    uint8_t *class_of;       /* by link; owned, as all that follows */
    uint32_t *first_channel; /* by link; one more entry */
    uint32_t *from_router;   /* by link; EMU_AUDIT_NONE: a NIC */
    uint32_t *to_router;
    uint32_t *nic_link; /* into the network, by nid */
    uint8_t *flags;     /* enum emu_audit_flag, by channel */

    uint32_t *targets; /* of all lists, one after another */
    uint64_t n_targets, targets_room;
    uint64_t *list_start;            /* in targets, by list; one more entry */
    struct emu_audit_tally *tallies; /* by list */
    uint32_t n_lists, lists_room;
    struct emu_audit_holding *holdings; /* in the order of visits; freed once sorted */
    uint64_t n_holdings, holdings_room;
    uint64_t *holding_start; /* in held, by channel; one more entry */
    uint32_t *held;          /* lists */

    uint32_t *part_of;     /* by channel; 0: on no cycle. NULL: there are none */
    uint8_t *part_is_ring; /* by part */
    struct emu_audit_channel *cycle;
    size_t cycle_len;
    struct emu_audit_result result;
};

/* audit_graph.c: fills the graph and its counts. 0 or -ENOMEM; emu_audit_destroy() frees either way. */
int emu_audit_build_graph(struct emu_audit *a);

static inline bool emu_audit_is_used_by(const struct emu_vc_info *info, uint32_t traffic_class)
{
    return info->traffic_class == traffic_class || info->traffic_class == EMU_VC_ANY;
}

/* EMU_AUDIT_NONE: no such channel. */
static inline uint32_t emu_audit_channel_at(const struct emu_audit *a, uint32_t link, uint32_t vc)
{
    if (link >= a->n_links || vc >= a->first_channel[link + 1] - a->first_channel[link])
        return EMU_AUDIT_NONE;
    return a->first_channel[link] + vc;
}

/*
 * Walks over the targets of a channel, list by list. Start with { holding_start[c], 0 } and step until EMU_AUDIT_NONE.
 */
struct emu_audit_cursor {
    uint64_t holding;
    uint64_t target; /* within the list */
};

static inline struct emu_audit_cursor emu_audit_cursor_at(const struct emu_audit *a, uint32_t channel)
{
    return (struct emu_audit_cursor){ .holding = a->holding_start[channel] };
}

static inline uint32_t emu_audit_next_target(const struct emu_audit *a, uint32_t channel, struct emu_audit_cursor *cur)
{
    while (cur->holding < a->holding_start[channel + 1]) {
        uint32_t list = a->held[cur->holding];
        uint64_t at = a->list_start[list] + cur->target;

        if (at < a->list_start[list + 1]) {
            cur->target++;
            return a->targets[at];
        }
        cur->holding++;
        cur->target = 0;
    }
    return EMU_AUDIT_NONE;
}

#endif
