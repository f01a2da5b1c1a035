/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sizes of packets and rates of sources.
 *
 * The capacity for uniform traffic follows from the routes: random pairs of nodes, one of the minimal routes of each,
 * count how often a packet crosses a link of each class. The class whose links would be busy first sets the rate, all
 * links of a class taken as equally busy. That is exact for tori and for the routers of a Dragonfly, and the mean for a
 * mesh, whose middle is busier than its edges.
 */
#include "emunic/experiments/traffic.h"

#include "emunic/fabric/link.h"
#include "emunic/fabric/route.h"

#define PAIRS 20000 /* of nodes; an estimate within 1 % */
#define SEED  UINT64_C(0x6361706163697479)

uint16_t emu_packet_units(const struct emu_machine *m, uint64_t payload_bytes)
{
    const struct emu_packet_format *format = &emu_machine_nic(m)->format;
    uint64_t units = format->request_header_flits + emu_data_flits(format, payload_bytes);

    return units > UINT16_MAX ? UINT16_MAX : (uint16_t)units;
}

/* Picoseconds for one unit at this rate. */
static double unit_ps(const struct emu_machine *m, uint64_t bytes_per_s)
{
    return emu_machine_nic(m)->format.flit_bits / 8.0 / (double)bytes_per_s * 1e12;
}

static bool is_between_routers(const struct emu_link *link)
{
    return link->from.kind == EMU_END_ROUTER && link->to.kind == EMU_END_ROUTER;
}

/* How long one packet and its response occupy a link of this kind. */
static double busy_ps(const struct emu_machine *m, const struct emu_link *link, uint16_t units, uint16_t response_units)
{
    uint32_t overhead = is_between_routers(link) ? emu_machine_router(m)->packet_overhead_flits : 0;
    uint32_t all = units + overhead + (response_units ? response_units + overhead : 0);

    return all * unit_ps(m, link->data_bytes_per_s);
}

double emu_uniform_gap_ps(const struct emu_machine *m, uint16_t units, uint16_t response_units, double load)
{
    struct emu_random random = { .state = SEED };
    uint32_t n_nodes = emu_machine_n_nodes(m);
    uint64_t n_links[EMU_LINK_CLASSES] = { 0 };
    double crossing_ps[EMU_LINK_CLASSES] = { 0 }; /* of all pairs together */
    double gap = 0;
    struct emu_route route;
    struct emu_link link;

    if (n_nodes < 2)
        return 0;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        if (emu_link_get(m, id, &link) == 0)
            n_links[link.link_class]++;
    }
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint32_t src = (uint32_t)emu_random_below(&random, n_nodes);
        uint32_t dst = (uint32_t)((src + 1 + emu_random_below(&random, n_nodes - 1)) % n_nodes);

        if (emu_route_minimal(m, src, dst, emu_random_next(&random), &route) < 0)
            continue;
        for (uint32_t k = 0; k < route.n_links; k++) {
            if (emu_link_get(m, route.links[k], &link) == 0)
                crossing_ps[link.link_class] += busy_ps(m, &link, units, response_units);
        }
    }
    for (int c = 0; c < EMU_LINK_CLASSES; c++) {
        double own = n_links[c] ? crossing_ps[c] / PAIRS * n_nodes / (double)n_links[c] : 0;

        gap = own > gap ? own : gap;
    }
    return gap / load;
}

uint64_t emu_link_cycle_ps(const struct emu_machine *m)
{
    uint64_t slowest = UINT64_MAX;
    struct emu_link link;

    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        if (emu_link_get(m, id, &link) == 0 && is_between_routers(&link) && link.bytes_per_s < slowest)
            slowest = link.bytes_per_s;
    }
    return slowest == UINT64_MAX ? 1000 : (uint64_t)(unit_ps(m, slowest) + 0.5);
}

double emu_mean_units(const struct emu_sizes *sizes)
{
    double units = 0;
    double weights = 0;

    for (size_t i = 0; i < sizes->n; i++) {
        units += sizes->list[i].units * sizes->list[i].weight;
        weights += sizes->list[i].weight;
    }
    return weights > 0 ? units / weights : 0;
}
