/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows of puts.
 *
 * State is kept per node and touched only by the thread that owns the node: a sender has its flows, its clock and its
 * window; a receiver has a queue of responses and, per flow that ends there, bytes and the last number. So the result
 * does not depend on the number of threads.
 *
 * A packet's tag is flow << 32 | number in its flow; a response has its request's.
 */
#include "emunic/experiments/put_flows.h"

#include <errno.h>
#include <stdlib.h>

struct response {
    uint32_t dst_nid;
    uint64_t tag;
};

struct sender {
    uint32_t flows[EMU_FLOWS_PER_NODE];
    uint32_t n_flows;
    uint32_t turn;
    uint32_t under_way; /* without response */
    uint64_t gap_ps;
    uint64_t next_ps; /* when the NIC is ready for the next */
    uint64_t answered;
    uint64_t lost;
};

struct receiver {
    struct response *queue; /* owned; a ring */
    uint32_t first;
    uint32_t n;
    uint32_t room;
};

struct flow {
    struct emu_flow_spec spec;
    uint32_t sent;        /* written at the source */
    uint32_t next_number; /* written at the destination */
    uint64_t arrived;
    uint64_t reordered;
    uint64_t bytes;
};

struct emu_flows {
    const struct emu_machine *machine;
    struct emu_flows_options options;
    uint32_t units;
    uint32_t response_units;
    uint32_t payload;
    uint64_t since_ps;
    bool is_paused;
    bool is_short_of_memory;
    struct flow *flows; /* owned */
    size_t n_flows;
    struct sender *senders;     /* owned; by nid */
    struct receiver *receivers; /* owned; by nid */
    struct emu_sim *sim;        /* owned */
};

/* ---- the traffic ---- */

static bool next_response(struct emu_flows *f, uint32_t nid, uint64_t now_ps, struct emu_packet *packet)
{
    struct receiver *r = &f->receivers[nid];
    const struct response *response;

    if (r->n == 0)
        return false;
    response = &r->queue[r->first];
    packet->dst_nid = response->dst_nid;
    packet->tag = response->tag;
    packet->units = (uint16_t)f->response_units;
    packet->created_ps = now_ps;
    r->first = (r->first + 1) % r->room;
    r->n--;
    return true;
}

static bool next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                        uint64_t now_ps, struct emu_packet *packet)
{
    struct emu_flows *f = ctx;
    struct sender *s = &f->senders[nid];
    struct flow *flow;

    (void)sim;
    packet->mode = (uint8_t)f->options.mode;
    packet->order_key = 0;
    if (traffic_class == EMU_TRAFFIC_RESPONSE)
        return next_response(f, nid, now_ps, packet);
    if (f->is_paused || s->n_flows == 0 || s->under_way >= f->options.window)
        return false;
    flow = &f->flows[s->flows[s->turn]];
    packet->dst_nid = flow->spec.dst_nid;
    packet->tag = (uint64_t)s->flows[s->turn] << 32 | flow->sent;
    packet->order_key = emu_random_mix(f->options.seed ^ packet->tag);
    packet->units = (uint16_t)f->units;
    packet->created_ps = s->next_ps > now_ps ? s->next_ps : now_ps;
    s->next_ps = packet->created_ps + s->gap_ps;
    s->turn = (s->turn + 1) % s->n_flows;
    s->under_way++;
    flow->sent++;
    return true;
}

static bool queue_response(struct receiver *r, const struct emu_packet *packet)
{
    if (r->n == r->room) {
        uint32_t room = r->room ? 2 * r->room : 64;
        struct response *queue = malloc(room * sizeof(*queue));

        if (!queue)
            return false;
        for (uint32_t i = 0; i < r->n; i++)
            queue[i] = r->queue[(r->first + i) % r->room];
        free(r->queue);
        r->queue = queue;
        r->first = 0;
        r->room = room;
    }
    r->queue[(r->first + r->n++) % r->room] = (struct response){ packet->src_nid, packet->tag };
    return true;
}

static void take_packet(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct emu_flows *f = ctx;
    struct flow *flow = &f->flows[packet->tag >> 32];
    uint32_t number = (uint32_t)packet->tag;

    (void)now_ps;
    if (packet->traffic_class == EMU_TRAFFIC_RESPONSE) {
        f->senders[nid].under_way--;
        f->senders[nid].answered++;
        emu_sim_wake(sim, nid, EMU_TRAFFIC_REQUEST);
        return;
    }
    flow->bytes += f->payload;
    flow->arrived++;
    flow->reordered += number < flow->next_number;
    if (number >= flow->next_number)
        flow->next_number = number + 1;
    if (!queue_response(&f->receivers[nid], packet))
        f->is_short_of_memory = true;
    emu_sim_wake(sim, nid, EMU_TRAFFIC_RESPONSE);
}

static void lose_packet(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct emu_flows *f = ctx;

    (void)sim;
    (void)packet;
    (void)now_ps;
    f->senders[nid].lost++;
}

/* ---- outside ---- */

static int add_flow(struct emu_flows *f, size_t index, const struct emu_flow_spec *spec)
{
    struct sender *s;

    if (spec->src_nid >= emu_machine_n_nodes(f->machine) || spec->dst_nid >= emu_machine_n_nodes(f->machine))
        return -EINVAL;
    s = &f->senders[spec->src_nid];
    if (s->n_flows == EMU_FLOWS_PER_NODE)
        return -EINVAL;
    s->flows[s->n_flows++] = (uint32_t)index;
    f->flows[index].spec = *spec;
    return 0;
}

int emu_flows_create(const struct emu_machine *m, const struct emu_fault_map *faults, const struct emu_flow_spec *flows,
                     size_t n_flows, const struct emu_flows_options *options, struct emu_flows **f_out)
{
    const struct emu_packet_format *format = &emu_machine_nic(m)->format;
    const struct emu_sim_options sim_options = { .seed = options->seed, .n_threads = options->n_threads };
    uint32_t n_nodes = emu_machine_n_nodes(m);
    struct emu_flows *f = calloc(1, sizeof(*f));
    const struct emu_traffic traffic = { .ctx = f, .next = next_packet, .delivered = take_packet, .lost = lose_packet };
    int r = -ENOMEM;

    if (!f)
        return -ENOMEM;
    f->machine = m;
    f->options = *options;
    if (f->options.window == 0)
        f->options.window = emu_machine_nic(m)->outstanding_packets;
    f->payload = format->payload_bytes_max;
    f->units = format->request_header_flits + (uint32_t)emu_data_flits(format, f->payload);
    f->response_units = format->response_header_flits;
    f->n_flows = n_flows;
    f->flows = calloc(n_flows + 1, sizeof(*f->flows));
    f->senders = calloc(n_nodes, sizeof(*f->senders));
    f->receivers = calloc(n_nodes, sizeof(*f->receivers));
    if (!f->flows || !f->senders || !f->receivers)
        goto err;
    for (uint32_t nid = 0; nid < n_nodes; nid++) {
        f->senders[nid].gap_ps = options->gap_ps;
        f->senders[nid].next_ps = emu_random_mix(options->seed * n_nodes + nid) % (options->gap_ps + 1);
    }
    r = 0;
    for (size_t i = 0; i < n_flows && r == 0; i++)
        r = add_flow(f, i, &flows[i]);
    if (r == 0)
        r = emu_sim_create(m, faults, &traffic, &sim_options, &f->sim);
    if (r < 0)
        goto err;
    *f_out = f;
    return 0;

err:
    emu_flows_destroy(f);
    return r;
}

void emu_flows_destroy(struct emu_flows *f)
{
    if (!f)
        return;
    emu_sim_destroy(f->sim);
    for (uint32_t nid = 0; f->receivers && nid < emu_machine_n_nodes(f->machine); nid++)
        free(f->receivers[nid].queue);
    free(f->receivers);
    free(f->senders);
    free(f->flows);
    free(f);
}

struct emu_sim *emu_flows_sim(struct emu_flows *f)
{
    return f->sim;
}

int emu_flows_run(struct emu_flows *f, uint64_t duration_ps)
{
    if (emu_sim_run(f->sim, emu_sim_now(f->sim) + duration_ps) == EMU_SIM_DEADLOCK)
        return -EIO;
    return f->is_short_of_memory ? -ENOMEM : 0;
}

void emu_flows_reset(struct emu_flows *f)
{
    f->since_ps = emu_sim_now(f->sim);
    for (size_t i = 0; i < f->n_flows; i++)
        f->flows[i].bytes = 0;
}

double emu_flows_rate(const struct emu_flows *f, size_t flow)
{
    return (double)f->flows[flow].bytes * 1e12 / (double)(emu_sim_now(f->sim) - f->since_ps);
}

double emu_flows_total_rate(const struct emu_flows *f)
{
    double sum = 0;

    for (size_t i = 0; i < f->n_flows; i++)
        sum += emu_flows_rate(f, i);
    return sum;
}

void emu_flows_set_gap(struct emu_flows *f, uint32_t nid, uint64_t gap_ps)
{
    f->senders[nid].gap_ps = gap_ps;
}

void emu_flows_pause(struct emu_flows *f, bool is_paused)
{
    f->is_paused = is_paused;
    for (uint32_t nid = 0; !is_paused && nid < emu_machine_n_nodes(f->machine); nid++)
        emu_sim_wake(f->sim, nid, EMU_TRAFFIC_REQUEST);
}

void emu_flows_counts(const struct emu_flows *f, struct emu_flows_counts *counts_out)
{
    *counts_out = (struct emu_flows_counts){ 0 };
    for (size_t i = 0; i < f->n_flows; i++) {
        counts_out->sent += f->flows[i].sent;
        counts_out->arrived += f->flows[i].arrived;
        counts_out->reordered += f->flows[i].reordered;
    }
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(f->machine); nid++) {
        counts_out->answered += f->senders[nid].answered;
        counts_out->lost += f->senders[nid].lost;
    }
}
