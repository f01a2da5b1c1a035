/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links as the outside sees them: the topology says what a link connects, this file adds the figures of its class.
 *
 * Raw bandwidth is lanes x lane rate. The link layer packs flits into frames and keeps some flits of each frame for
 * itself (Aries: one in ten); a class may have a share of its rate that it never reaches (Gemini's backplane). What is
 * left is data_bytes_per_s. Links between a NIC and its router are on the chip and have no frames. emu_link_rate() is
 * the one place of this rule. Source: spec/machines.md 1.2, 2.1, 2.3.
 */
#include "emunic/fabric/link.h"

#include <errno.h>

#include "emunic/fabric/topology.h"

static int end_name(const struct emu_machine *m, const struct emu_link_end *end, char *buf, size_t len)
{
    if (end->kind == EMU_END_NIC)
        return emu_machine_cname(m, end->index, buf, len);
    return emu_machine_router_cname(m, end->index, buf, len);
}

struct emu_link_rate emu_link_rate(const struct emu_machine_params *params, enum emu_link_class link_class,
                                   uint32_t lanes)
{
    const struct emu_link_params *link = &params->link[link_class];
    const struct emu_router_params *router = &params->router;
    struct emu_link_rate rate = { .mbps = (uint64_t)lanes * link->mbps_per_lane, .payload = 1, .frame = 1 };

    if (link_class != EMU_LINK_PROCESSOR_IN && link_class != EMU_LINK_PROCESSOR_OUT) {
        uint64_t frame_flits = router->frame_flits > 0 ? router->frame_flits : 1;

        rate.payload = (frame_flits - router->frame_overhead_flits) * (EMU_LOST_SHARE_ONE - link->lost_share);
        rate.frame = frame_flits * EMU_LOST_SHARE_ONE;
    }
    return rate;
}

int emu_link_get(const struct emu_machine *m, uint32_t link, struct emu_link *link_out)
{
    const struct emu_link_params *params;
    struct emu_link_rate rate;

    if (link >= m->n_links)
        return -ERANGE;
    m->topology->link(m, link, link_out);
    params = &m->params.link[link_out->link_class];
    link_out->lanes = params->lanes;
    link_out->mbps_per_lane = params->mbps_per_lane;
    link_out->wire_ps += params->wire_ps;
    rate = emu_link_rate(&m->params, link_out->link_class, params->lanes);
    link_out->bytes_per_s = rate.mbps * (1000000 / 8);
    link_out->data_bytes_per_s = (uint64_t)((unsigned __int128)link_out->bytes_per_s * rate.payload / rate.frame);
    return 0;
}

int emu_link_reverse(const struct emu_machine *m, uint32_t link, uint32_t *reverse_out)
{
    if (link >= m->n_links)
        return -ERANGE;
    *reverse_out = m->topology->link_reverse(m, link);
    return 0;
}

int emu_link_name(const struct emu_machine *m, uint32_t link, char *buf, size_t len)
{
    char from[EMU_CNAME_MAX];
    char to[EMU_CNAME_MAX];
    struct emu_link l;
    int r;

    r = emu_link_get(m, link, &l);
    if (r < 0)
        return r;
    r = end_name(m, &l.from, from, sizeof(from));
    if (r < 0)
        return r;
    r = end_name(m, &l.to, to, sizeof(to));
    if (r < 0)
        return r;
    return emu_text(buf, len, "%s -> %s %s %u", from, to, emu_link_class_name(l.link_class), l.number);
}

const char *emu_link_class_name(enum emu_link_class link_class)
{
    switch (link_class) {
    case EMU_LINK_PROCESSOR_IN:
        return "processor-in";
    case EMU_LINK_PROCESSOR_OUT:
        return "processor-out";
    case EMU_LINK_GREEN:
        return "green";
    case EMU_LINK_BLACK:
        return "black";
    case EMU_LINK_BLUE:
        return "blue";
    case EMU_LINK_X:
        return "x";
    case EMU_LINK_Y:
        return "y";
    case EMU_LINK_Z:
        return "z";
    case EMU_LINK_MEZZANINE:
        return "mezzanine";
    case EMU_LINK_BACKPLANE:
        return "backplane";
    case EMU_LINK_EDGE:
        return "edge";
    case EMU_LINK_NODE:
        return "node";
    case EMU_LINK_EXTERNAL:
        return "external";
    case EMU_LINK_SPINE:
        return "spine";
    case EMU_LINK_LOCAL:
        return "local";
    case EMU_LINK_GLOBAL:
        return "global";
    case EMU_LINK_CLASSES:
        break;
    }
    return "unknown";
}
