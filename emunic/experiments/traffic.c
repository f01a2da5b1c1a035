/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic generators.
 *
 * Each node has a state of its own: a random generator, the time of its next packet, how much it has sent, and a queue
 * of responses that it owes. The simulator calls next() and delivered() on the thread that owns the node, so that state
 * needs no lock. Latencies go into a few shards of a histogram, chosen by nid; neighbouring nodes share one, which
 * nearly always belongs to one thread, and the counts are atomic for the rest. Sums of integers do not depend on order,
 * so the results do not depend on threads.
 *
 * A message that waits for others looks at them when it is its turn; they arrive at its own node, whose thread so has
 * both ends. Each waits for earlier ones of the list only, and nodes keep the list's order where messages wait, so the
 * first that is left can always go: nothing waits in a circle.
 *
 * A request's tag is the number of its message, or 0. A response's tag is the time when its request was created.
 */
#include "emunic/experiments/traffic.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/pattern.h"

#define SHARDS       16
#define GATHERED     256 /* nodes or messages at a time */
#define START_MAX_PS UINT64_C(1000000000000000000)

/* A response that a node owes. */
struct answer {
    uint64_t tag;
    uint32_t dst_nid;
};

/* 144 bytes per node, and the queue of answers. */
struct node {
    struct emu_random random;
    uint64_t next_ps; /* when the next packet is created */
    double gap_ps;    /* mean */
    uint64_t n_created;
    uint32_t outstanding; /* packets without a response */
    uint32_t burst_left;  /* packets of the burst that it is in */
    bool is_sender;
    bool is_started;        /* else of another process */
    bool is_blocked;        /* by its window, or a message by those that it waits for */
    struct answer *answers; /* owned; a ring */
    uint32_t answers_mask;  /* its size - 1; 0 with NULL */
    uint32_t answers_head;
    uint32_t answers_count;
    uint32_t first_message;      /* in the order of messages */
    uint32_t n_messages;         /* left, the one in progress included */
    uint64_t message_bytes_sent; /* of the one in progress */
    struct emu_node_figures figures;
};

struct shard {
    _Atomic uint64_t sum_ps;
    _Atomic uint64_t buckets[EMU_HISTOGRAM_BUCKETS];
};

struct message_state {
    uint64_t packets_left; /* changed where the message arrives */
    uint64_t done_ps;
};

struct emu_generator {
    const struct emu_machine *m; /* borrowed */
    struct emu_generator_options options;
    struct emu_destinations destinations;
    struct emu_size sizes[EMU_SIZES_MAX]; /* weights are sums up to here, as parts of all */
    struct emu_traffic traffic;
    uint32_t n_nodes;
    uint32_t payload_max;
    uint16_t full_units;          /* of a packet with payload_max bytes */
    struct node *nodes;           /* owned */
    struct shard *shards;         /* owned; [latency][shard] */
    struct emu_messages messages; /* owned copy */
    struct message_state *states; /* owned; by message */
    uint32_t *order;              /* owned; messages by source, then start */
    atomic_bool is_short_of_memory;
};

uint64_t emu_generator_cycle_ps(const struct emu_generator *gen)
{
    return emu_link_cycle_ps(gen->m);
}

/* ---- latencies ---- */

static void count_latency(struct emu_generator *gen, enum emu_latency which, uint32_t nid, uint64_t value_ps)
{
    struct shard *shard = &gen->shards[which * SHARDS + (uint64_t)nid * SHARDS / gen->n_nodes];

    atomic_fetch_add_explicit(&shard->sum_ps, value_ps, memory_order_relaxed);
    atomic_fetch_add_explicit(&shard->buckets[emu_histogram_bucket(value_ps)], 1, memory_order_relaxed);
}

void emu_generator_latency(const struct emu_generator *gen, enum emu_latency which, struct emu_histogram *histogram_out)
{
    *histogram_out = (struct emu_histogram){ 0 };
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &gen->shards[which * SHARDS + i];

        histogram_out->sum_ps += atomic_load_explicit(&shard->sum_ps, memory_order_relaxed);
        for (uint32_t b = 0; b < EMU_HISTOGRAM_BUCKETS; b++) {
            uint64_t count = atomic_load_explicit(&shard->buckets[b], memory_order_relaxed);

            histogram_out->buckets[b] += count;
            histogram_out->count += count;
        }
    }
}

void emu_generator_reset(struct emu_generator *gen)
{
    for (uint32_t i = 0; i < EMU_LATENCIES * SHARDS; i++) {
        atomic_store_explicit(&gen->shards[i].sum_ps, 0, memory_order_relaxed);
        for (uint32_t b = 0; b < EMU_HISTOGRAM_BUCKETS; b++)
            atomic_store_explicit(&gen->shards[i].buckets[b], 0, memory_order_relaxed);
    }
    for (uint32_t nid = 0; nid < gen->n_nodes; nid++) {
        if (gen->nodes[nid].is_started)
            gen->nodes[nid].figures = (struct emu_node_figures){ 0 };
    }
}

void emu_generator_node(const struct emu_generator *gen, uint32_t nid, struct emu_node_figures *figures_out)
{
    *figures_out = gen->nodes[nid].figures;
}

bool emu_generator_is_active(const struct emu_generator *gen, uint32_t nid)
{
    return gen->nodes[nid].n_created > 0;
}

uint64_t emu_generator_message_done_ps(const struct emu_generator *gen, size_t message)
{
    return gen->states[message].done_ps;
}

uint64_t emu_generator_messages_left(const struct emu_generator *gen)
{
    uint64_t left = 0;

    for (uint32_t nid = 0; nid < gen->n_nodes; nid++)
        left += gen->nodes[nid].n_messages;
    return left;
}

int emu_generator_status(const struct emu_generator *gen)
{
    return atomic_load_explicit(&gen->is_short_of_memory, memory_order_relaxed) ? -ENOMEM : 0;
}

/* ---- sending ---- */

/* Above 0, below 1. */
static double draw_share(struct node *node)
{
    return ((double)(emu_random_next(&node->random) >> 11) + 0.5) * 0x1p-53;
}

/* Gaps within a burst, and before its first packet the pause. The mean of all is gap_ps: a burst of n packets takes
 * n x gap_ps x on, a pause n x gap_ps x (1 - on). */
static uint64_t draw_burst_gap(const struct emu_generator *gen, struct node *node)
{
    const struct emu_generator_options *o = &gen->options;
    double gap_ps = -log(draw_share(node)) * node->gap_ps * o->burst.on;

    if (node->burst_left == 0) {
        double stays = 1 - 1 / o->burst.packets; /* chance of one more packet */
        double more = stays > 0 ? floor(log(draw_share(node)) / log(stays)) : 0;

        node->burst_left = 1 + (uint32_t)fmin(more, 1e9);
        gap_ps -= log(draw_share(node)) * node->gap_ps * o->burst.packets * (1 - o->burst.on);
    }
    node->burst_left--;
    return (uint64_t)(gap_ps + 0.5);
}

/* Until the next packet: exponential, or always the mean. */
static uint64_t draw_gap(const struct emu_generator *gen, struct node *node)
{
    if (gen->options.is_regular)
        return (uint64_t)(node->gap_ps + 0.5);
    if (gen->options.burst.packets > 0)
        return draw_burst_gap(gen, node);
    return (uint64_t)(-log(draw_share(node)) * node->gap_ps + 0.5);
}

static uint16_t draw_units(const struct emu_generator *gen, struct node *node)
{
    double share;
    size_t i = 0;

    if (gen->options.sizes.n == 0)
        return gen->options.units;
    share = draw_share(node);
    while (i + 1 < gen->options.sizes.n && share > gen->sizes[i].weight)
        i++;
    return gen->sizes[i].units;
}

static void fill_key(const struct emu_generator *gen, struct node *node, struct emu_packet *packet)
{
    packet->mode = gen->options.mode;
    packet->order_key = 0;
    if (packet->mode == EMU_MODE_MIN_HASH || packet->mode == EMU_MODE_NMIN_HASH)
        packet->order_key = emu_random_next(&node->random);
}

/* When a message may leave: its start, or so long behind the last one that it waits for. False: one is not there. */
static bool is_ready(const struct emu_generator *gen, const struct emu_message *message, uint64_t *ready_ps_out)
{
    uint64_t last_ps = 0;

    for (uint32_t i = 0; i < message->n_after; i++) {
        uint64_t done_ps = gen->states[gen->messages.after[message->first_after + i]].done_ps;

        if (done_ps == 0)
            return false;
        last_ps = done_ps > last_ps ? done_ps : last_ps;
    }
    *ready_ps_out = last_ps + message->start_ps < START_MAX_PS ? last_ps + message->start_ps : START_MAX_PS;
    return true;
}

/* The next packet of the list; the message in progress is cut by payload. */
static bool next_of_messages(struct emu_generator *gen, struct node *node, struct emu_packet *packet)
{
    const struct emu_message *message;
    uint32_t index;
    uint64_t bytes;

    if (node->n_messages == 0)
        return false;
    index = gen->order[node->first_message];
    message = &gen->messages.list[index];
    if (!is_ready(gen, message, &packet->created_ps)) {
        node->is_blocked = true;
        return false;
    }
    bytes = message->bytes - node->message_bytes_sent;
    bytes = bytes > gen->payload_max ? gen->payload_max : bytes;
    packet->dst_nid = message->dst_nid;
    packet->units = bytes == gen->payload_max ? gen->full_units : emu_packet_units(gen->m, bytes);
    packet->tag = index;
    node->message_bytes_sent += bytes;
    if (node->message_bytes_sent == message->bytes) {
        node->message_bytes_sent = 0;
        node->first_message++;
        node->n_messages--;
    }
    return true;
}

static bool next_of_pattern(struct emu_generator *gen, struct node *node, uint32_t nid, uint64_t now_ps,
                            struct emu_packet *packet)
{
    const struct emu_generator_options *o = &gen->options;
    uint64_t created_ps = o->gap_ps > 0 ? node->next_ps : now_ps;

    if (o->packets_per_node != 0 && node->n_created >= o->packets_per_node && o->pattern != EMU_PATTERN_ALL_TO_ALL)
        return false;
    if (o->stop_ps != 0 && created_ps >= o->stop_ps)
        return false;
    packet->dst_nid = emu_destinations_pick(&gen->destinations, &node->random, nid, node->n_created);
    if (packet->dst_nid == EMU_NOBODY)
        return false;
    packet->units = draw_units(gen, node);
    packet->created_ps = created_ps;
    packet->tag = 0;
    if (o->gap_ps > 0)
        node->next_ps += draw_gap(gen, node);
    return true;
}

static bool next_answer(struct emu_generator *gen, struct node *node, uint32_t nid, uint64_t now_ps,
                        struct emu_packet *packet)
{
    const struct answer *answer;

    if (node->answers_count == 0)
        return false;
    answer = &node->answers[node->answers_head & node->answers_mask];
    *packet = (struct emu_packet){ .src_nid = nid,
                                   .dst_nid = answer->dst_nid,
                                   .units = gen->options.response_units,
                                   .traffic_class = EMU_TRAFFIC_RESPONSE,
                                   .created_ps = now_ps,
                                   .tag = answer->tag };
    fill_key(gen, node, packet);
    node->answers_head++;
    node->answers_count--;
    return true;
}

static bool on_next(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class, uint64_t now_ps,
                    struct emu_packet *packet_out)
{
    struct emu_generator *gen = ctx;
    struct node *node = &gen->nodes[nid];
    bool is_message = gen->options.pattern == EMU_PATTERN_MESSAGES;

    (void)sim;
    if (gen->options.response_units != 0 && traffic_class == EMU_TRAFFIC_RESPONSE)
        return next_answer(gen, node, nid, now_ps, packet_out);
    if (traffic_class != gen->options.traffic_class || !node->is_sender)
        return false;
    if (gen->options.window != 0 && node->outstanding >= gen->options.window) {
        node->is_blocked = true;
        return false;
    }
    *packet_out = (struct emu_packet){ .src_nid = nid, .traffic_class = (uint8_t)traffic_class };
    if (!(is_message ? next_of_messages(gen, node, packet_out) : next_of_pattern(gen, node, nid, now_ps, packet_out)))
        return false;
    fill_key(gen, node, packet_out);
    node->n_created++;
    node->outstanding++;
    node->figures.sent++;
    node->figures.sent_units += packet_out->units;
    return true;
}

/* ---- receiving ---- */

static bool grow_answers(struct node *node)
{
    uint32_t size = node->answers ? node->answers_mask + 1 : 0;
    uint32_t more = size ? 2 * size : 8;
    struct answer *answers = malloc(more * sizeof(*answers));

    if (!answers)
        return false;
    for (uint32_t i = 0; i < node->answers_count; i++)
        answers[i] = node->answers[(node->answers_head + i) & node->answers_mask];
    free(node->answers);
    node->answers = answers;
    node->answers_mask = more - 1;
    node->answers_head = 0;
    return true;
}

static void owe_answer(struct emu_generator *gen, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet)
{
    struct node *node = &gen->nodes[nid];

    if ((!node->answers || node->answers_count == node->answers_mask + 1) && !grow_answers(node)) {
        atomic_store_explicit(&gen->is_short_of_memory, true, memory_order_relaxed);
        return;
    }
    node->answers[(node->answers_head + node->answers_count) & node->answers_mask] =
        (struct answer){ .tag = packet->created_ps, .dst_nid = packet->src_nid };
    if (node->answers_count++ == 0)
        emu_sim_wake(sim, nid, EMU_TRAFFIC_RESPONSE);
}

/* Something that it may have waited for is there. */
static void unblock(struct emu_generator *gen, struct emu_sim *sim, uint32_t nid)
{
    if (!gen->nodes[nid].is_blocked)
        return;
    gen->nodes[nid].is_blocked = false;
    emu_sim_wake(sim, nid, (enum emu_traffic_class)gen->options.traffic_class);
}

static void leave_window(struct emu_generator *gen, struct emu_sim *sim, uint32_t nid)
{
    assert(gen->nodes[nid].outstanding > 0);
    gen->nodes[nid].outstanding--;
    unblock(gen, sim, nid);
}

static void on_delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct emu_generator *gen = ctx;
    struct node *node = &gen->nodes[nid];

    if (gen->options.response_units != 0 && packet->traffic_class == EMU_TRAFFIC_RESPONSE) {
        count_latency(gen, EMU_LATENCY_ROUND_TRIP, nid, now_ps - packet->tag);
        leave_window(gen, sim, nid);
        return;
    }
    node->figures.received++;
    node->figures.received_units += packet->units;
    node->figures.received_hops += packet->hops;
    node->figures.received_latency_ps += now_ps - packet->created_ps;
    count_latency(gen, EMU_LATENCY_CREATED, nid, now_ps - packet->created_ps);
    count_latency(gen, EMU_LATENCY_NETWORK, nid, now_ps - packet->entered_ps);
    if (gen->states && --gen->states[packet->tag].packets_left == 0) {
        gen->states[packet->tag].done_ps = now_ps;
        unblock(gen, sim, nid);
    }
    if (gen->options.response_units != 0)
        owe_answer(gen, sim, nid, packet);
}

static void on_lost(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct emu_generator *gen = ctx;

    (void)now_ps;
    /* Of a lost response the requester hears nothing: its packet stays outstanding, as on the machine. */
    if (gen->options.response_units != 0 && packet->traffic_class == EMU_TRAFFIC_RESPONSE)
        return;
    gen->nodes[nid].figures.lost++;
    if (gen->options.response_units != 0)
        leave_window(gen, sim, nid);
}

/* ---- several processes ---- */

/* What of a node is asked for afterwards. */
struct node_row {
    struct emu_node_figures figures;
    uint64_t n_created;
    uint64_t n_messages;
};
static_assert(sizeof(struct node_row) % sizeof(uint64_t) == 0, "numbers only");

static void gather_nodes(struct emu_generator *gen, const struct emu_sim *sim, const struct emu_sim_world *world)
{
    struct node_row rows[GATHERED];

    for (uint32_t first = 0; first < gen->n_nodes; first += GATHERED) {
        uint32_t n = gen->n_nodes - first < GATHERED ? gen->n_nodes - first : GATHERED;

        memset(rows, 0, sizeof(rows));
        for (uint32_t i = 0; i < n; i++) {
            const struct node *node = &gen->nodes[first + i];

            if (emu_sim_owns(sim, first + i))
                rows[i] = (struct node_row){ node->figures, node->n_created, node->n_messages };
        }
        world->reduce(world->ctx, EMU_SIM_SUM, (uint64_t *)rows, n * sizeof(rows[0]) / sizeof(uint64_t));
        for (uint32_t i = 0; i < n && world->rank == 0; i++) {
            struct node *node = &gen->nodes[first + i];

            node->figures = rows[i].figures;
            node->n_created = rows[i].n_created;
            node->n_messages = (uint32_t)rows[i].n_messages;
        }
    }
}

static void gather_latencies(struct emu_generator *gen, const struct emu_sim_world *world)
{
    for (uint32_t which = 0; which < EMU_LATENCIES; which++) {
        struct shard *shards = &gen->shards[which * SHARDS];
        struct emu_histogram all;

        emu_generator_latency(gen, (enum emu_latency)which, &all);
        world->reduce(world->ctx, EMU_SIM_SUM, (uint64_t *)&all, sizeof(all) / sizeof(uint64_t));
        if (world->rank != 0)
            continue;
        memset((void *)shards, 0, SHARDS * sizeof(*shards));
        atomic_store_explicit(&shards[0].sum_ps, all.sum_ps, memory_order_relaxed);
        for (uint32_t b = 0; b < EMU_HISTOGRAM_BUCKETS; b++)
            atomic_store_explicit(&shards[0].buckets[b], all.buckets[b], memory_order_relaxed);
    }
}

/* A message's end is known where it arrives. */
static void gather_messages(struct emu_generator *gen, const struct emu_sim_world *world)
{
    uint64_t done_ps[GATHERED];

    for (size_t first = 0; first < gen->messages.n; first += GATHERED) {
        size_t n = gen->messages.n - first < GATHERED ? gen->messages.n - first : GATHERED;

        for (size_t i = 0; i < n; i++)
            done_ps[i] = gen->states[first + i].done_ps;
        world->reduce(world->ctx, EMU_SIM_MOST, done_ps, n);
        for (size_t i = 0; i < n; i++)
            gen->states[first + i].done_ps = done_ps[i];
    }
}

void emu_generator_gather(struct emu_generator *gen, const struct emu_sim *sim, const struct emu_sim_world *world)
{
    uint64_t is_short = emu_generator_status(gen) < 0;

    gather_nodes(gen, sim, world);
    gather_latencies(gen, world);
    gather_messages(gen, world);
    world->reduce(world->ctx, EMU_SIM_MOST, &is_short, 1);
    atomic_store_explicit(&gen->is_short_of_memory, is_short != 0, memory_order_relaxed);
}

/* ---- lifecycle ---- */

static int __attribute__((format(printf, 3, 4))) fail(char *err, size_t err_len, const char *format, ...)
{
    va_list args;

    if (err) {
        va_start(args, format);
        vsnprintf(err, err_len, format, args);
        va_end(args);
    }
    return -EINVAL;
}

static int check_messages(const struct emu_generator *gen, char *err, size_t err_len)
{
    const struct emu_messages *all = &gen->options.messages;

    if (all->n >= UINT32_MAX)
        return fail(err, err_len, "%zu messages are too many", all->n);
    for (size_t i = 0; i < all->n; i++) {
        const struct emu_message *message = &all->list[i];

        if (message->src_nid >= gen->n_nodes || message->dst_nid >= gen->n_nodes)
            return fail(err, err_len, "message %zu: no such node", i);
        if (message->n_after > 0 && !all->is_program)
            return fail(err, err_len, "message %zu waits, so the list must be a program", i);
        if (message->first_after > all->n_after || message->n_after > all->n_after - message->first_after)
            return fail(err, err_len, "message %zu waits for more than there is", i);
        for (uint32_t k = 0; k < message->n_after; k++) {
            uint32_t before = all->after[message->first_after + k];

            if (before >= i || all->list[before].dst_nid != message->src_nid)
                return fail(err, err_len, "message %zu waits for %u, which is not before it or goes elsewhere", i,
                            before);
        }
    }
    return 0;
}

static int check_options(const struct emu_generator *gen, char *err, size_t err_len)
{
    const struct emu_generator_options *o = &gen->options;

    if (o->mode >= EMU_MODES)
        return fail(err, err_len, "routing mode %u does not exist", o->mode);
    if (o->traffic_class >= EMU_TRAFFIC_CLASSES)
        return fail(err, err_len, "traffic class %u does not exist", o->traffic_class);
    if (o->response_units != 0 && o->traffic_class == EMU_TRAFFIC_RESPONSE)
        return fail(err, err_len, "responses are not answered");
    if (o->window != 0 && o->response_units == 0)
        return fail(err, err_len, "a window needs responses");
    if (!(o->gap_ps >= 0) || o->gap_ps > 1e18)
        return fail(err, err_len, "a gap of %g ps is none", o->gap_ps);
    if (o->burst.packets != 0 && (!(o->burst.packets >= 1) || !(o->burst.on > 0) || !(o->burst.on <= 1)))
        return fail(err, err_len, "bursts of %g packets for %g of the time are none", o->burst.packets, o->burst.on);
    if (o->burst.packets != 0 && (o->gap_ps <= 0 || o->is_regular))
        return fail(err, err_len, "bursts need a load, with random gaps");
    return o->pattern == EMU_PATTERN_MESSAGES ? check_messages(gen, err, err_len) : 0;
}

/* Makes sums of the weights. */
static int take_sizes(struct emu_generator *gen, char *err, size_t err_len)
{
    const struct emu_generator_options *o = &gen->options;
    double sum = 0;
    double all = 0;

    if (o->sizes.n > EMU_SIZES_MAX)
        return fail(err, err_len, "%zu sizes are too many", o->sizes.n);
    for (size_t i = 0; i < o->sizes.n; i++) {
        if (o->sizes.list[i].units == 0 || !(o->sizes.list[i].weight > 0))
            return fail(err, err_len, "size %zu has no units or no weight", i);
        all += o->sizes.list[i].weight;
    }
    for (size_t i = 0; i < o->sizes.n; i++) {
        sum += o->sizes.list[i].weight;
        gen->sizes[i] = (struct emu_size){ o->sizes.list[i].units, sum / all };
    }
    return 0;
}

static int compare_messages(const void *a, const void *b, void *ctx)
{
    const struct emu_messages *all = ctx;
    const struct emu_message *messages = all->list;
    uint32_t i = *(const uint32_t *)a;
    uint32_t j = *(const uint32_t *)b;

    if (messages[i].src_nid != messages[j].src_nid)
        return messages[i].src_nid < messages[j].src_nid ? -1 : 1;
    if (!all->is_program && messages[i].start_ps != messages[j].start_ps)
        return messages[i].start_ps < messages[j].start_ps ? -1 : 1;
    return i < j ? -1 : 1;
}

static int take_messages(struct emu_generator *gen)
{
    const struct emu_messages *all = &gen->options.messages;
    size_t n = all->n;

    gen->messages = (struct emu_messages){ .n = n, .n_after = all->n_after, .is_program = all->is_program };
    gen->messages.list = malloc((n + 1) * sizeof(*gen->messages.list));
    gen->messages.after = malloc((all->n_after + 1) * sizeof(*gen->messages.after));
    gen->states = calloc(n + 1, sizeof(*gen->states));
    gen->order = malloc((n + 1) * sizeof(*gen->order));
    if (!gen->messages.list || !gen->messages.after || !gen->states || !gen->order)
        return -ENOMEM;
    if (n > 0)
        memcpy(gen->messages.list, all->list, n * sizeof(*all->list));
    if (all->n_after > 0)
        memcpy(gen->messages.after, all->after, all->n_after * sizeof(*all->after));
    for (uint32_t i = 0; i < n; i++) {
        gen->order[i] = i;
        gen->states[i].packets_left = emu_packets(&emu_machine_nic(gen->m)->format, gen->messages.list[i].bytes);
    }
    qsort_r(gen->order, n, sizeof(*gen->order), compare_messages, &gen->messages);
    for (uint32_t i = 0; i < n; i++) {
        struct node *node = &gen->nodes[gen->messages.list[gen->order[i]].src_nid];

        if (node->n_messages++ == 0)
            node->first_message = i;
    }
    return 0;
}

static void start_node(struct emu_generator *gen, uint32_t nid)
{
    struct node *node = &gen->nodes[nid];

    node->random.state = emu_random_mix(gen->options.seed) ^ emu_random_mix(nid + UINT64_C(0x7261666669636e31));
    node->is_started = true;
    node->is_sender = !gen->options.senders || gen->options.senders[nid];
    node->gap_ps = gen->options.gap_ps / (gen->options.rates ? gen->options.rates[nid] : 1);
    if (gen->options.gap_ps <= 0)
        return;
    if (gen->options.is_regular)
        node->next_ps = emu_random_below(&node->random, (uint64_t)node->gap_ps + 1);
    else
        node->next_ps = draw_gap(gen, node);
}

static void forget_nodes(struct emu_generator *gen)
{
    gen->options.senders = NULL;
    gen->options.rates = NULL;
}

void emu_generator_start(struct emu_generator *gen, const struct emu_sim *sim)
{
    for (uint32_t nid = 0; nid < gen->n_nodes; nid++) {
        if (emu_sim_owns(sim, nid))
            start_node(gen, nid);
    }
    forget_nodes(gen);
}

int emu_generator_create(const struct emu_machine *m, const struct emu_generator_options *options,
                         struct emu_generator **gen_out, char *err, size_t err_len)
{
    char text[256] = "out of memory";
    struct emu_generator *gen = calloc(1, sizeof(*gen));
    int r = -ENOMEM;

    if (!gen)
        goto out;
    gen->m = m;
    gen->options = *options;
    gen->n_nodes = emu_machine_n_nodes(m);
    gen->payload_max = emu_machine_nic(m)->format.payload_bytes_max;
    gen->full_units = emu_packet_units(m, gen->payload_max);
    if (gen->options.units == 0)
        gen->options.units = gen->full_units;
    r = check_options(gen, text, sizeof(text));
    if (r == 0)
        r = take_sizes(gen, text, sizeof(text));
    if (r == 0)
        r = emu_destinations_init(&gen->destinations, m, options, text, sizeof(text));
    if (r < 0)
        goto out;
    r = -ENOMEM;
    gen->nodes = calloc(gen->n_nodes, sizeof(*gen->nodes));
    gen->shards = calloc(EMU_LATENCIES * SHARDS, sizeof(*gen->shards));
    if (!gen->nodes || !gen->shards)
        goto out;
    for (uint32_t nid = 0; nid < gen->n_nodes && !options->is_shared; nid++)
        start_node(gen, nid);
    r = options->pattern == EMU_PATTERN_MESSAGES ? take_messages(gen) : 0;
    /* What was borrowed is not used again. */
    gen->options.messages = (struct emu_messages){ 0 };
    gen->options.sizes.list = NULL;
    if (!options->is_shared)
        forget_nodes(gen);
    gen->traffic = (struct emu_traffic){ .ctx = gen, .next = on_next, .delivered = on_delivered, .lost = on_lost };
out:
    if (r < 0) {
        (void)fail(err, err_len, "%s", text);
        emu_generator_destroy(gen);
        return r;
    }
    *gen_out = gen;
    return 0;
}

void emu_generator_destroy(struct emu_generator *gen)
{
    if (!gen)
        return;
    for (uint32_t nid = 0; gen->nodes && nid < gen->n_nodes; nid++)
        free(gen->nodes[nid].answers);
    emu_destinations_fini(&gen->destinations);
    free(gen->nodes);
    free(gen->shards);
    emu_messages_fini(&gen->messages);
    free(gen->states);
    free(gen->order);
    free(gen);
}

const struct emu_traffic *emu_generator_traffic(const struct emu_generator *gen)
{
    return &gen->traffic;
}
