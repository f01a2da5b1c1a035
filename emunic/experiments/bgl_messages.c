/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blue Gene/L: single messages, bit errors, broadcasts. BGL-9, BGL-12, BGL-13.
 * Source: spec/machines.md 5.1, 5.2, 5.4, 5.5 (BGL).
 */
#include "emunic/experiments/bgl_experiments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/bgl_run.h"
#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/torus.h"

#define PROCESSOR_MHZ 700.0
#define CYCLES_OF(ps) ((double)(ps)*PROCESSOR_MHZ / 1e6)

/* ---- BGL-9 ---- */

/* Processor cycles from the first packet's start to the last one's end, for a message of so many full packets. */
static int measure_message(struct emu_exp *x, uint32_t hops, uint64_t bytes, double *cycles_out)
{
    struct emu_message message = { .src_nid = 0, .dst_nid = hops, .bytes = bytes };
    const struct emu_generator_options options = {
        .pattern = EMU_PATTERN_MESSAGES,
        .messages = { .list = &message, .n = 1 },
        .mode = EMU_MODE_DETERMINISTIC,
    };
    struct bgl_run run;
    int r = bgl_start(x, &run, "bluegene-l", &options, BGL_COUNT_NOTHING);

    if (r < 0)
        return r;
    emu_sim_run(run.sim, UINT64_C(1) << 50);
    *cycles_out = CYCLES_OF(emu_generator_message_done_ps(run.gen, 0));
    bgl_end(&run);
    return 0;
}

int bgl_run_ping_pong(struct emu_exp *x)
{
    static const uint64_t sizes[] = { 16, 48, 112, 240, 480, 960, 1920, 3840, 7680, 15360 };
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    FILE *data;
    double network[3][SIZES];
    double lowest = INFINITY;
    double highest = 0;
    double software, hop_ns, mean, slope;
    struct bgl_run run;
    int r = bgl_machine(x, &run, "bluegene-l");

    if (r < 0)
        return r;
    software = 2 * bgl_packet_start_ns(run.m) * PROCESSOR_MHZ / 1e3;
    hop_ns = run.m->params.router.hop_ps * 1e-3;
    bgl_end(&run);
    data = emu_exp_data(x, "latency", "One-way latency", "bytes of payload", "processor cycles");
    for (uint32_t h = 0; r == 0 && h < 3; h++) {
        for (uint32_t i = 0; r == 0 && i < SIZES; i++) {
            r = measure_message(x, h + 1, sizes[i], &network[h][i]);
            if (r < 0)
                break;
            if (data) {
                fprintf(data, "network, %u hops\t%llu\t%g\n", h + 1, (unsigned long long)sizes[i], network[h][i]);
                fprintf(data, "total, %u hops\t%llu\t%g\n", h + 1, (unsigned long long)sizes[i],
                        network[h][i] + software);
            }
            if (h > 0) {
                lowest = fmin(lowest, network[h][i] - network[h - 1][i]);
                highest = fmax(highest, network[h][i] - network[h - 1][i]);
            }
        }
    }
    if (data)
        fclose(data);
    if (r < 0)
        return r;
    mean = (lowest + highest) / 2;
    slope = (network[0][SIZES - 1] - network[0][3]) / ((double)(sizes[SIZES - 1] - sizes[3]) / 240 * 256);
    emu_exp_fitted(x, "per_hop", "ns", 97.0, mean / PROCESSOR_MHZ * 1e3, emu_exp_param("router.hop_ns", hop_ns));
    emu_exp_at_most(x, 'Q', "hop_increment_spread", "ratio", 0.05, (highest - lowest) / 2 / mean);
    emu_exp_figure(x, 'Q', "slope", "cycles/byte", emu_exp_within(4.0 * 270 / 256, 0.02), slope);
    for (uint32_t i = 0; i < SIZES; i++)
        emu_exp_detail(x, "%llu bytes: network %.0f, %.0f, %.0f cycles for 1, 2, 3 hops; total %.0f, %.0f, %.0f",
                       (unsigned long long)sizes[i], network[0][i], network[1][i], network[2][i],
                       network[0][i] + software, network[1][i] + software, network[2][i] + software);
    return 0;
}

/* ---- BGL-12 ---- */

/*
 * Each node sends a stream of packets to its neighbour in x+, in order on the bubble channel, so a node's stream is
 * what its link carries. Both ends of each link keep a CRC-32 of the packets, as the hardware's link-level one: of what
 * was handed to the link for the first time, and of what came through its check. A packet that is marked corrupt has a
 * bit turned over when it arrives.
 */
struct streams {
    const struct emu_machine *m;
    uint32_t packets; /* of each node */
    struct stream {
        uint32_t sent;
        uint32_t received;
        uint32_t sent_crc;
        uint32_t received_crc;
        uint32_t wrong; /* arrived with a wrong payload */
    } * nodes;          /* owned; by nid: its stream; what was received belongs to the sender's neighbour */
};

static uint32_t crc32_of(uint32_t crc, uint64_t value)
{
    for (uint32_t i = 0; i < 64; i += 8) {
        crc ^= (uint32_t)(value >> i & 0xff);
        for (uint32_t bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return crc;
}

static uint32_t next_in_x(const struct emu_machine *m, uint32_t nid)
{
    return emu_torus_neighbour(emu_torus_of(m), nid, emu_torus_direction(0, true));
}

static bool next_of_stream(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                           uint64_t now_ps, struct emu_packet *p)
{
    struct streams *s = ctx;
    struct stream *n = &s->nodes[nid];

    (void)sim;
    if (traffic_class != EMU_TRAFFIC_REQUEST || n->sent == s->packets)
        return false;
    *p = (struct emu_packet){
        .src_nid = nid,
        .dst_nid = next_in_x(s->m, nid),
        .units = (uint16_t)s->m->params.router.packet_units_max,
        .mode = EMU_MODE_DETERMINISTIC,
        .created_ps = now_ps,
        .tag = emu_random_mix((uint64_t)nid << 32 | n->sent), /* stands for the payload */
    };
    n->sent++;
    n->sent_crc = crc32_of(n->sent_crc, p->tag);
    return true;
}

static void delivered_of_stream(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p,
                                uint64_t now_ps)
{
    struct streams *s = ctx;
    struct stream *n = &s->nodes[nid];
    uint64_t payload = p->tag ^ ((p->flags & EMU_PACKET_CORRUPT) != 0 ? 1 : 0);

    (void)sim;
    (void)now_ps;
    n->wrong += payload != emu_random_mix((uint64_t)p->src_nid << 32 | n->received);
    n->received++;
    n->received_crc = crc32_of(n->received_crc, payload);
}

struct error_outcome {
    uint64_t received;
    uint64_t wrong;
    uint64_t errors;
    uint64_t resent;
    uint32_t differing_crcs;
    double cycles;
};

/* escape: one broken packet on the first link is not seen by its check. */
static int run_streams(struct emu_exp *x, double ber, bool escape, uint32_t packets, struct error_outcome *out)
{
    struct streams s = { .packets = packets };
    const struct emu_traffic traffic = { .ctx = &s, .next = next_of_stream, .delivered = delivered_of_stream };
    struct bgl_run run;
    int r = bgl_machine(x, &run, "bluegene-l:x=4,y=4,z=4");

    if (r < 0)
        return r;
    *out = (struct error_outcome){ 0 };
    s.m = run.m;
    s.nodes = calloc(emu_machine_n_nodes(run.m), sizeof(*s.nodes));
    r = !s.nodes ? -ENOMEM : 0;
    if (r == 0)
        r = bgl_start_traffic(x, &run, &traffic, NULL, BGL_COUNT_NOTHING);
    if (r == 0) {
        uint32_t first = emu_torus_link(emu_torus_of(run.m), 0, emu_torus_direction(0, true), 0);

        emu_sim_set_bit_error_rate(run.sim, EMU_SIM_ALL_LINKS, ber);
        if (escape)
            emu_sim_corrupt_next(run.sim, first, false);
        emu_sim_run(run.sim, UINT64_C(1) << 60);
        for (uint32_t nid = 0; nid < emu_machine_n_nodes(run.m); nid++) {
            const struct stream *receiver = &s.nodes[next_in_x(run.m, nid)];
            struct emu_sim_link_stats stats;

            out->received += receiver->received;
            out->wrong += receiver->wrong;
            out->differing_crcs += s.nodes[nid].sent_crc != receiver->received_crc;
            emu_sim_link_stats(run.sim, emu_torus_link(emu_torus_of(run.m), nid, emu_torus_direction(0, true), 0),
                               &stats);
            out->errors += stats.crc_errors;
            out->resent += stats.retransmissions;
        }
    }
    free(s.nodes);
    bgl_end(&run);
    return r;
}

int bgl_run_errors(struct emu_exp *x)
{
    static const double rates[] = { 1e-9, 1e-8, 1e-7, 1e-6, 1e-5 };
    uint32_t packets = emu_exp_context(x)->is_full ? 20000 : 2000;
    struct error_outcome o;
    uint64_t wrong = 0;
    uint64_t missing = 0;
    uint64_t errors = 0;
    uint64_t resent = 0;
    uint32_t differing = 0;
    double expected = 0;
    int r;

    for (uint32_t i = 0; i < 5; i++) {
        double share = 1 - pow(1 - rates[i], 270 * 8);
        double broken = 64.0 * packets * share / (1 - share); /* what is sent again may break again */

        r = run_streams(x, rates[i], false, packets, &o);
        if (r < 0)
            return r;
        wrong += o.wrong;
        missing += 64ull * packets - o.received;
        errors += o.errors;
        resent += o.resent;
        differing += o.differing_crcs;
        expected += broken;
        /* A packet is dropped at once if one of the 8 bytes that the header's CRC covers is hit: 8 of 270. */
        emu_exp_detail(x,
                       "bit error rate %g: %llu delivered, %llu broken (%.1f expected), of these about %.1f dropped "
                       "early by the header's CRC, %llu resent, %u of 64 pairs of link CRCs differ",
                       rates[i], (unsigned long long)o.received, (unsigned long long)o.errors, broken,
                       (double)o.errors * 8 / 270, (unsigned long long)o.resent, o.differing_crcs);
        emu_exp_progress(x, (i + 1) / 6.0);
    }
    emu_exp_exact(x, 'S', "wrong_payloads", "packets", 0, (double)wrong);
    emu_exp_exact(x, 'S', "not_delivered", "packets", 0, (double)missing);
    emu_exp_exact(x, 'S', "resent_for_each_error", "ratio", 1, (double)resent / (double)errors);
    emu_exp_figure(x, 'S', "broken_packets", "packets", emu_exp_within(expected, 4 / sqrt(expected)),
                   (double)errors); /* 4 sigma */
    emu_exp_exact(x, 'S', "link_crcs_differ", "links", 0, differing);
    r = run_streams(x, 0, true, packets, &o);
    if (r < 0)
        return r;
    emu_exp_exact(x, 'S', "forced_escape_wrong_payloads", "packets", 1, (double)o.wrong);
    emu_exp_exact(x, 'S', "forced_escape_link_crcs_differ", "links", 1, o.differing_crcs);
    return 0;
}

/* ---- BGL-13 ---- */

/*
 * Line: node 0 sends packets with the broadcast bit once round its line in x, seven copies each.
 *
 * Plane: node 0 of an 8 x 8 plane sends four colours of packets, one on each of its links in the plane. Colour x+ goes
 * along its row (broadcast bit, seven copies); each of those nodes sends it on along its column in y+ (seven copies);
 * what is left is the root's own column, whose nodes get it from the last node of their row, one hop in x+: the corner
 * turn. The other colours are the same turned round. No link carries two colours, so each node receives four links'
 * worth. Nodes send packets on when they have them. One processor takes packets out of the reception FIFOs
 * (nic.drain_cycles), the other needs nic.packet_start_ns for each packet sent. Each direction has an injection FIFO.
 */
enum { COLOURS = 4, EDGE = 8 };

struct fill {
    const struct emu_machine *m;
    bool is_plane;
    uint32_t packets; /* of each colour */
    struct fill_node {
        uint32_t sent[COLOURS]; /* root */
        uint64_t received[COLOURS];
        uint64_t last_ps;
        uint64_t busy_until_ps; /* the processor that sends */
        uint32_t head;          /* of the queue of packets to send on */
        uint32_t tail;
        struct fill_task {
            uint64_t ready_ps;
            uint8_t colour;
            bool is_turn; /* the corner turn: one hop to the root's line */
        } * queue;        /* owned */
        uint32_t capacity;
        uint8_t next_colour;
    } * nodes;
};

/* Direction of a colour's first leg, and of its second. */
static uint32_t first_leg(uint32_t colour)
{
    return colour; /* X-, X+, Y-, Y+ */
}

static uint32_t second_leg(uint32_t colour)
{
    return colour ^ 2; /* the other dimension, the same sign */
}

static uint32_t walk(const struct emu_machine *m, uint32_t nid, uint32_t direction, uint32_t hops)
{
    for (uint32_t i = 0; i < hops; i++)
        nid = emu_torus_neighbour(emu_torus_of(m), nid, direction);
    return nid;
}

/* A leg of a broadcast: hops along a direction. */
struct leg {
    uint32_t colour;
    uint32_t direction;
    uint32_t hops;
};

static void fill_packet(const struct fill *f, uint32_t nid, struct leg leg, uint64_t created_ps, struct emu_packet *p)
{
    *p = (struct emu_packet){
        .src_nid = nid,
        .dst_nid = walk(f->m, nid, leg.direction, leg.hops),
        .units = (uint16_t)f->m->params.router.packet_units_max,
        .created_ps = created_ps,
        .tag = (uint64_t)leg.colour << 8 | leg.direction,
    };
    if (leg.hops > 1)
        (void)emu_bgl_give_broadcast(f->m, p, 1u << leg.direction);
    else
        (void)emu_bgl_give_hints(f->m, p, 1u << leg.direction);
}

static bool next_of_fill(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                         uint64_t now_ps, struct emu_packet *p)
{
    struct fill *f = ctx;
    struct fill_node *n = &f->nodes[nid];
    const struct fill_task *task;
    struct leg leg;

    (void)sim;
    if (traffic_class != EMU_TRAFFIC_REQUEST)
        return false;
    if (nid == 0) {
        uint32_t colours = f->is_plane ? COLOURS : 1;
        uint32_t colour = n->next_colour;

        if (n->sent[colour] == f->packets)
            return false;
        n->sent[colour]++;
        n->next_colour = (uint8_t)((colour + 1) % colours);
        fill_packet(f, nid, (struct leg){ colour, first_leg(colour), EDGE - 1 }, now_ps, p);
        return true;
    }
    if (n->head == n->tail)
        return false;
    task = &n->queue[n->head++ % n->capacity];
    leg.colour = task->colour;
    leg.direction = task->is_turn ? first_leg(task->colour) : second_leg(task->colour);
    leg.hops = task->is_turn ? 1 : EDGE - 1;
    fill_packet(f, nid, leg, task->ready_ps, p);
    return true;
}

/* The processor that sends is busy for one packet more, from now or when it is done with others. */
static uint64_t work(const struct fill *f, struct fill_node *n, uint64_t now_ps)
{
    if (n->busy_until_ps < now_ps)
        n->busy_until_ps = now_ps;
    n->busy_until_ps += (uint64_t)(bgl_packet_start_ns(f->m) * 1000);
    return n->busy_until_ps;
}

static void delivered_of_fill(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    struct fill *f = ctx;
    struct fill_node *n = &f->nodes[nid];
    uint32_t colour = (uint32_t)(p->tag >> 8);
    uint32_t direction = (uint32_t)(p->tag & 0xff);
    bool is_first_leg = direction == first_leg(colour) && p->src_nid == 0;
    bool is_second_leg = direction == second_leg(colour);
    bool turns;

    n->received[colour]++;
    n->last_ps = now_ps;
    if (!f->is_plane)
        return;
    /* The last node before the root's line hands it on there. */
    turns =
        is_second_leg && emu_torus_coord(emu_torus_of(f->m), walk(f->m, nid, first_leg(colour), 1))[colour / 2] == 0;
    if (!is_first_leg && !turns)
        return;
    n->queue[n->tail++ % n->capacity] = (struct fill_task){
        .ready_ps = work(f, n, now_ps),
        .colour = (uint8_t)colour,
        .is_turn = turns,
    };
    emu_sim_wake(sim, nid, EMU_TRAFFIC_REQUEST);
}

/* Rate at which the slowest node of the line or plane received, as a share of the links it could receive on. */
static int run_fill(struct emu_exp *x, bool is_plane, uint32_t packets, double *share_out, uint64_t *missing_out)
{
    struct fill f = { .is_plane = is_plane, .packets = packets };
    const struct emu_traffic traffic = { .ctx = &f, .next = next_of_fill, .delivered = delivered_of_fill };
    uint32_t colours = is_plane ? COLOURS : 1;
    uint64_t last_ps = 0;
    struct bgl_run run;
    int r = bgl_machine(x, &run, is_plane ? "bluegene-l:x=8,y=8,z=1" : "bluegene-l:x=8,y=1,z=1");

    if (r < 0)
        return r;
    f.m = run.m;
    f.nodes = calloc(emu_machine_n_nodes(run.m), sizeof(*f.nodes));
    r = !f.nodes ? -ENOMEM : 0;
    for (uint32_t nid = 0; r == 0 && nid < emu_machine_n_nodes(run.m); nid++) {
        f.nodes[nid].capacity = COLOURS * packets;
        f.nodes[nid].queue = calloc(f.nodes[nid].capacity, sizeof(*f.nodes[nid].queue));
        r = !f.nodes[nid].queue ? -ENOMEM : 0;
    }
    if (r == 0)
        r = bgl_start_traffic(x, &run, &traffic, NULL, BGL_HAS_ENDS);
    if (r == 0) {
        emu_sim_run(run.sim, UINT64_C(1) << 60);
        *missing_out = 0;
        for (uint32_t nid = 1; nid < emu_machine_n_nodes(run.m); nid++) {
            for (uint32_t c = 0; c < colours; c++)
                *missing_out += (uint64_t)llabs((long long)packets - (long long)f.nodes[nid].received[c]);
            last_ps = f.nodes[nid].last_ps > last_ps ? f.nodes[nid].last_ps : last_ps;
        }
        *share_out = packets * (double)run.wire_units / ((double)last_ps / run.cycle_ps);
    }
    for (uint32_t nid = 0; f.nodes && nid < emu_machine_n_nodes(run.m); nid++)
        free(f.nodes[nid].queue);
    free(f.nodes);
    bgl_end(&run);
    return r;
}

/*
 * The source says "more than 96 %", and 585 MB/s is that share of four links' payload: 175 x 4 x 0.87 x 0.96 = 584.6.
 * Either is a lower bound; no more than all of the links is the upper one.
 */
static void report_plane(struct emu_exp *x, double plane)
{
    static const char why[] =
        "bound of ours, revised: the source says more than 96 %, which was read as 96 and 2 points "
        "either way. With an injection FIFO for each direction, as software has them, each link of "
        "a node carries one colour, and nothing holds packets up";
    double most = 175 * 4 * 240.0 / 270;

    emu_exp_figure(x, 'S', "plane_fill", "%", emu_exp_range(96, 100), 100 * plane);
    emu_exp_before(x, &(struct emu_exp_before){ .source = emu_exp_points(96, 2), .got = NAN, .text = why });
    emu_exp_figure(x, 'S', "plane_rate", "MB/s", emu_exp_range(585, most), 175 * 4 * 0.87 * plane);
    emu_exp_before(x, &(struct emu_exp_before){
                          .source = emu_exp_within(585, 0.02),
                          .got = NAN,
                          .text = "bound of ours, revised: 175 x 4 x 0.87 x 0.96 = 585, so more than that, as "
                                  "plane_fill",
                      });
}

int bgl_run_broadcast(struct emu_exp *x)
{
    uint32_t packets = emu_exp_context(x)->is_full ? 20000 : 2000;
    double line = 0;
    double plane = 0;
    uint64_t line_missing = 0;
    uint64_t plane_missing = 0;
    int r = run_fill(x, false, packets, &line, &line_missing);

    emu_exp_progress(x, 0.2);
    if (r == 0)
        r = run_fill(x, true, packets, &plane, &plane_missing);
    if (r < 0)
        return r;
    emu_exp_figure(x, 'S', "line_broadcast", "%", emu_exp_points(99, 1), 100 * line);
    report_plane(x, plane);
    emu_exp_exact(x, 'S', "not_delivered", "packets", 0, (double)(line_missing + plane_missing));
    return 0;
}
