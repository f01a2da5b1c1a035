/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small measurements. In the network one node sends to one other, by a traffic of a dozen lines; programs are those of
 * nic_scenario.h.
 *
 * A buffer's size is counted: the NIC at the end takes nothing for some 100 us, so what has crossed a link long before
 * that is in the buffers behind it.
 */
#include "emunic/experiments/probe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/route.h"
#include "emunic/model/nic_rates.h"
#include "emunic/model/nic_scenario.h"

#define PACKETS     200 /* of a stream, and as many before */
#define NODES       4096
#define FILL_PS     UINT64_C(50000000) /* 50 us: all buffers are full */
#define STREAM_PS   UINT64_C(100000000000000)
#define LOOK_PS     UINT64_C(100000) /* 100 ns: less than a slow NIC's packets are apart */
#define HASHES      16               /* of minimal routes of a pair */
#define GOOD        1e-5             /* share of packets that a bad link does not break */
#define WINDOW      4096             /* operations under way */
#define LONG_WINDOW 16
#define WARM_PS     UINT64_C(500000000) /* of a stream of operations */
#define ATOMICS     100000
#define TOLERANCE   0.005

/* ---- the network ---- */

struct flow {
    uint32_t src, dst;
    uint32_t units;
    uint8_t mode;
    uint32_t answer_units; /* 0: none */
    uint32_t n_owed;       /* answers */
    uint32_t most;         /* packets under way */
    uint32_t under_way, n_sent, n_arrived, n_corrupt;
    uint32_t n;
    uint64_t first_ps, last_ps;
    double latency_ps;
};

static bool next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                        uint64_t now_ps, struct emu_packet *packet)
{
    struct flow *f = ctx;

    (void)sim;
    if (nid == f->dst && traffic_class == EMU_TRAFFIC_RESPONSE && f->n_owed > 0) {
        packet->dst_nid = f->src;
        packet->units = (uint16_t)f->answer_units;
        packet->mode = f->mode;
        packet->created_ps = now_ps;
        f->n_owed--;
        return true;
    }
    if (nid != f->src || traffic_class != EMU_TRAFFIC_REQUEST || f->n_sent == f->n || f->under_way == f->most)
        return false;
    packet->dst_nid = f->dst;
    packet->units = (uint16_t)f->units;
    packet->mode = f->mode;
    packet->order_key = 0;
    packet->tag = f->n_sent++;
    packet->created_ps = now_ps;
    f->under_way++;
    return true;
}

static void take_packet(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct flow *f = ctx;

    if (nid == f->dst && f->answer_units > 0) {
        f->n_owed++;
        emu_sim_wake(sim, nid, EMU_TRAFFIC_RESPONSE);
        return;
    }
    f->n_arrived++;
    f->under_way--;
    f->n_corrupt += (packet->flags & EMU_PACKET_CORRUPT) != 0;
    f->latency_ps += (double)(now_ps - packet->created_ps);
    if (f->n_arrived == f->n / 2)
        f->first_ps = now_ps;
    f->last_ps = now_ps;
    emu_sim_wake(sim, f->src, EMU_TRAFFIC_REQUEST);
}

/* Are the route's links between routers of these classes, in this order? */
static bool is_along(const struct emu_machine *m, const struct emu_route *route, const char *path)
{
    for (uint32_t i = 1; i + 1 < route->n_links; i++) {
        struct emu_link link;
        size_t length = strcspn(path, " ");

        if (emu_link_get(m, route->links[i], &link) < 0 || strlen(emu_link_class_name(link.link_class)) != length ||
            strncmp(emu_link_class_name(link.link_class), path, length) != 0)
            return false;
        path += length + (path[length] == ' ');
    }
    return *path == '\0';
}

int probe_find_peer(const struct emu_machine *m, const char *path, bool is_only, uint32_t *nid_out,
                    struct emu_route *route_out)
{
    *nid_out = emu_machine_n_nodes(m) - 1;
    if (strcmp(path, "last") == 0)
        return emu_route_minimal(m, 0, *nid_out, 0, route_out);
    *nid_out = 1;
    if (strcmp(path, "next") == 0)
        return emu_route_minimal(m, 0, *nid_out, 0, route_out);
    for (uint32_t nid = 1; nid < emu_machine_n_nodes(m) && nid < NODES; nid++) {
        uint32_t n_along = 0;

        for (uint32_t hash = 0; hash < HASHES && n_along < (is_only ? HASHES : 1); hash++)
            n_along += emu_route_minimal(m, 0, nid, hash, route_out) == 0 && is_along(m, route_out, path);
        if (n_along == (is_only ? HASHES : 1)) {
            *nid_out = nid;
            return 0;
        }
    }
    return -ENOENT;
}

/* Links that leave where this one does: other ways of the same stream are among them. */
static void beside(const struct emu_machine *m, const struct emu_sim *sim, uint32_t id,
                   struct emu_sim_link_stats *sum_out)
{
    struct emu_link self = { 0 };

    *sum_out = (struct emu_sim_link_stats){ 0 };
    (void)emu_link_get(m, id, &self);
    for (uint32_t other = 0; other < emu_machine_n_links(m); other++) {
        struct emu_sim_link_stats stats;
        struct emu_link link;

        if (emu_link_get(m, other, &link) < 0 || link.from.kind != self.from.kind || link.from.index != self.from.index)
            continue;
        emu_sim_link_stats(sim, other, &stats);
        sum_out->packets += stats.packets;
        sum_out->crc_errors += stats.crc_errors;
    }
}

/* Packets that have started on the i-th link of a route and not on the next. */
static double held_behind(const struct emu_machine *m, const struct emu_sim *sim, const struct emu_route *route,
                          uint32_t i)
{
    struct emu_sim_link_stats in, out = { 0 };

    beside(m, sim, route->links[i], &in);
    if (i + 1 < route->n_links)
        beside(m, sim, route->links[i + 1], &out);
    return (double)in.packets - (double)out.packets;
}

static bool is_filling(enum probe what)
{
    return what == PROBE_RECEPTION || what == PROBE_CHANNEL || what == PROBE_INJECTION || what == PROBE_DETOUR;
}

static bool is_stream(enum probe what)
{
    return what == PROBE_PERIOD || what == PROBE_SPREAD || is_filling(what);
}

/* Does a packet leave a router of the route, and not for the next one of it? */
static bool has_left(const struct emu_machine *m, const struct emu_sim *sim, const struct emu_route *route)
{
    for (uint32_t i = 1; i + 1 < route->n_links; i++) {
        struct emu_link way = { 0 };

        (void)emu_link_get(m, route->links[i], &way);
        for (uint32_t other = 0; other < emu_machine_n_links(m); other++) {
            struct emu_sim_link_stats stats;
            struct emu_link link;

            if (emu_link_get(m, other, &link) < 0 || link.from.kind != way.from.kind ||
                link.from.index != way.from.index || link.to.kind == EMU_END_NIC || link.to.index == way.to.index)
                continue;
            emu_sim_link_stats(sim, other, &stats);
            if (stats.packets > 0)
                return true;
        }
    }
    return false;
}

/* Packets that the NIC has sent before the first one that takes another way. */
static double count_to_detour(const struct emu_machine *m, struct emu_sim *sim, const struct emu_route *route)
{
    struct emu_sim_link_stats stats;

    for (uint64_t at_ps = LOOK_PS; at_ps <= FILL_PS; at_ps += LOOK_PS) {
        (void)emu_sim_run(sim, at_ps);
        if (!has_left(m, sim, route))
            continue;
        emu_sim_link_stats(sim, route->links[0], &stats);
        return (double)stats.packets - 1;
    }
    return NAN;
}

static double result_of(const struct emu_machine *m, const struct emu_sim *sim, const struct probe_row *row,
                        const struct flow *f, const struct emu_route *route)
{
    struct emu_sim_link_stats stats;

    switch (row->what) {
    case PROBE_PERIOD:
    case PROBE_SPREAD:
    case PROBE_ANSWERED:
        return f->n_arrived < f->n ? NAN : 1e-3 * (double)(f->last_ps - f->first_ps) / (f->n - f->n / 2);
    case PROBE_RECEPTION:
        return held_behind(m, sim, route, route->n_links - 1);
    case PROBE_CHANNEL:
        return held_behind(m, sim, route, 1);
    case PROBE_INJECTION:
        return held_behind(m, sim, route, 0);
    case PROBE_MISSED:
        beside(m, sim, route->links[1], &stats);
        if (f->n_arrived < f->n || (f->n_corrupt == 0 && !row->is_least))
            return NAN;
        return (double)stats.crc_errors / (f->n_corrupt > 0 ? f->n_corrupt : 1);
    default:
        return f->n_arrived < f->n ? NAN : 1e-3 * f->latency_ps / f->n_arrived;
    }
}

/* The links at which the first router of a route has a choice of ways. */
static void damage(const struct emu_machine *m, struct emu_sim *sim, const struct emu_route *route,
                   const struct probe_row *row, double ber)
{
    struct emu_link self = { 0 };

    (void)emu_link_get(m, route->links[1], &self);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link link;

        if (emu_link_get(m, id, &link) < 0 || link.from.kind != self.from.kind || link.from.index != self.from.index)
            continue;
        if (row->what == PROBE_REPEATED)
            emu_sim_corrupt_next(sim, id, true);
        else
            emu_sim_set_bit_error_rate(sim, id, ber);
    }
}

/* That lets few packets through. */
static double bit_error_rate(const struct emu_machine *m, uint32_t id, uint32_t units)
{
    struct emu_link link = { 0 };
    double bits = units + emu_machine_router(m)->packet_overhead_flits;

    (void)emu_link_get(m, id, &link);
    bits *= emu_machine_nic(m)->format.flit_bits * (double)link.bytes_per_s / (double)link.data_bytes_per_s;
    return -expm1(log(GOOD) / bits);
}

static double measure_packets(struct emu_exp *x, const struct emu_machine *m, const struct probe_row *row)
{
    const struct emu_packet_format *format = &emu_machine_nic(m)->format;
    bool is_alone = !is_stream(row->what) && row->what != PROBE_MISSED;
    struct flow f = { .units = row->what != PROBE_MISSED && row->n > 0 ? row->n :
                                                                         emu_packet_units(m, format->payload_bytes_max),
                      .most = is_stream(row->what) ? UINT32_MAX : 1,
                      .n = row->what == PROBE_MISSED ? row->n :
                           is_alone                  ? 1 :
                                                       2 * PACKETS };
    const struct emu_traffic traffic = { .ctx = &f, .next = next_packet, .delivered = take_packet };
    const struct emu_sim_options options = { .seed = emu_exp_context(x)->seed, .has_ends = is_stream(row->what) };
    struct emu_route route;
    struct emu_sim *sim;
    double got;

    if (row->what == PROBE_ANSWERED) {
        f.answer_units = format->response_header_flits;
        f.n = 2 * PACKETS;
    }
    f.mode = row->what == PROBE_DETOUR ? row->mode : row->what == PROBE_SPREAD ? 0 : EMU_MODE_IN_ORDER;
    if (is_filling(row->what))
        f.n = UINT32_MAX;
    if (probe_find_peer(m, row->path, row->what == PROBE_DETOUR, &f.dst, &route) < 0 ||
        emu_sim_create(m, NULL, &traffic, &options, &sim) < 0)
        return NAN;
    if (row->what == PROBE_REPEATED || row->what == PROBE_MISSED)
        damage(m, sim, &route, row, bit_error_rate(m, route.links[1], f.units));
    if (row->what == PROBE_DETOUR) {
        got = count_to_detour(m, sim, &route);
    } else {
        (void)emu_sim_run(sim, is_filling(row->what) ? FILL_PS : STREAM_PS);
        got = result_of(m, sim, row, &f, &route);
    }
    emu_sim_destroy(sim);
    return got;
}

/* ---- programs ---- */

/* A machine without hosts has NICs that answer, and no other times. */
static struct emu_node_params host_of(const struct emu_machine *m, enum probe what)
{
    const struct emu_node_params *own = emu_machine_node_params(m);
    struct emu_node_params host = own ? *own : (struct emu_node_params){ .tile_nics = 1, .has_acks = 1 };

    if (what == PROBE_WINDOW || what == PROBE_CHANNELS) {
        host.is_generic = 0;
        host.put_gap_ps = 0;
    }
    if (what == PROBE_WINDOW) {
        host.has_acks = 1;
        host.out_ps = 100000000;
    }
    if (what == PROBE_CHANNELS)
        host.bte_kbs = 50000;
    if (what == PROBE_ATOMICS && host.amo_miss_ps == 0)
        host.amo_miss_ps = 100000;
    return host;
}

static double stream(const struct emu_nic_setup *setup, const struct probe_row *row, struct emu_nic_proc to)
{
    const struct emu_nic_pair pair = { { 0, 0 }, to };
    bool is_long = row->kind == EMU_NIC_MESSAGE || row->what == PROBE_CHANNELS;
    const struct emu_nic_stream s = { .kind = row->what == PROBE_CHANNELS ? EMU_NIC_BTE_PUT : row->kind,
                                      .bytes = row->n,
                                      .pairs = &pair,
                                      .n_pairs = 1,
                                      .window = is_long ? LONG_WINDOW : WINDOW,
                                      .is_bidirectional = row->what == PROBE_BOTH,
                                      .warmup_ps = WARM_PS,
                                      .measure_ps = 4 * WARM_PS };
    struct emu_nic_stream_result result;

    return emu_nic_stream(setup, &s, NULL, &result) < 0 ? NAN : result.mbytes_per_s;
}

static double measure_program(struct emu_exp *x, const struct emu_machine *m, const struct probe_row *row)
{
    const struct emu_nic_setup setup = { .machine = m,
                                         .host = host_of(m, row->what),
                                         .seed = emu_exp_context(x)->seed };
    struct emu_nic_pingpong p = { .kind = row->kind, .api = row->api, .bytes = row->n };
    struct emu_nic_pingpong_result pingpong;
    struct emu_nic_exchange_result swap;
    struct emu_route route;

    if (row->what == PROBE_ATOMICS)
        return 1e-6 * emu_nic_amo_rate(&setup, row->n, sizeof(uint64_t), false, ATOMICS);
    if (strcmp(row->path, "node") == 0)
        p.b.proc = 1;
    else if (probe_find_peer(m, row->path, false, &p.b.nid, &route) < 0)
        return NAN;
    if (row->what == PROBE_OPERATION)
        return emu_nic_pingpong(&setup, &p, &pingpong) < 0 ? NAN : 1e-3 * (double)pingpong.latency_ps;
    if (row->what == PROBE_SWAP)
        return emu_nic_exchange(&setup, &p, &swap) < 0 ? NAN : 1e-3 * (double)swap.round_ps;
    return stream(&setup, row, p.b);
}

static const char *unit_of(enum probe what)
{
    switch (what) {
    case PROBE_RECEPTION:
    case PROBE_CHANNEL:
    case PROBE_INJECTION:
    case PROBE_DETOUR:
    case PROBE_MISSED:
        return "packets";
    case PROBE_RATE:
    case PROBE_BOTH:
    case PROBE_WINDOW:
    case PROBE_CHANNELS:
        return "MB/s";
    case PROBE_ATOMICS:
        return "1/us";
    default:
        return "ns";
    }
}

static struct emu_exp_source source_of(const struct probe_row *row)
{
    if (is_filling(row->what) && row->tol == 0)
        return (struct emu_exp_source){ .tolerance = EMU_TOL_EXACT, .src = row->src };
    if (row->is_least)
        return (struct emu_exp_source){ .tolerance = EMU_TOL_AT_LEAST, .src = row->src };
    return emu_exp_within(row->src, row->tol > 0 ? row->tol : TOLERANCE);
}

static int report(struct emu_exp *x, const char *machine, const struct probe_row *row)
{
    struct emu_machine *m;
    char text[200];
    double got;
    int r;

    snprintf(text, sizeof(text), "%s%s%s", machine, row->with ? ":" : "", row->with ? row->with : "");
    r = emu_exp_machine(x, text, &m);
    if (r < 0)
        return r;
    got = row->what <= PROBE_MISSED ? measure_packets(x, m, row) : measure_program(x, m, row);
    emu_machine_destroy(m);
    if (row->what == PROBE_ATOMICS)
        emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(x, 'S', row->name, unit_of(row->what), source_of(row), got);
    return 0;
}

int probe_report(struct emu_exp *x, const char *machine, const struct probe_row *rows)
{
    int r = 0;

    for (const struct probe_row *row = rows; row->name && r == 0; row++)
        r = report(x, machine, row);
    return r;
}
