/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs on the NIC model: ping-pong, exchange, streams.
 *
 * Each scenario is a program of the model. Its state is divided by process, and a callback writes only what belongs to
 * the process that it is called for, since processes may run on different threads.
 *
 * Streams: a rate is the slope of the line of least squares through (time, number of operations) of a sender's events.
 * It needs few events, so that long messages do not need long runs, and operations that end together in bunches do not
 * mislead it. The run goes on until each sender has had some.
 * Source: spec/machines.md 2.5, 4.5, 6.5, 7.5: the conditions of the rows.
 */
#include "emunic/model/nic_scenario.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDS_DEFAULT 8
#define WINDOW_DEFAULT 64
#define WARMUP_PS      UINT64_C(20000000)  /* 20 us */
#define MEASURE_PS     UINT64_C(100000000) /* 100 us */
#define EVENTS_MIN     16                  /* of a sender, in a measurement */
#define EXTENSIONS_MAX 1000                /* times the measured time, until a run without those is given up */
#define FOR_EVER       UINT64_MAX

static double mbytes_per_s(double bytes, double ps)
{
    return ps <= 0 ? 0 : bytes / ps * 1e6;
}

static bool asks_for_answer(enum emu_nic_kind kind)
{
    return kind == EMU_NIC_GET || kind == EMU_NIC_BTE_GET || kind == EMU_NIC_AMO_FETCH;
}

/* ---- ping-pong ---- */

/* Of process a, but for `spec`, which nobody changes. */
struct pingpong {
    const struct emu_nic_pingpong *spec;
    uint32_t rounds;
    uint32_t round;
    uint64_t start_ps; /* of the first round that counts */
    uint64_t end_ps;
    int error;
};

static int post_to(struct emu_nic_model *nm, const struct emu_nic_pingpong *spec, struct emu_nic_proc from,
                   struct emu_nic_proc to, uint64_t at_ps)
{
    const struct emu_nic_op op = {
        .kind = spec->kind,
        .api = spec->api,
        .to = to,
        .bytes = spec->bytes,
        .is_told = !asks_for_answer(spec->kind),
    };

    return emu_nic_post(nm, from, &op, at_ps);
}

static bool is_same(struct emu_nic_proc x, struct emu_nic_proc y)
{
    return x.nid == y.nid && x.proc == y.proc;
}

/* A round is over at process a. */
static void next_round(struct pingpong *s, struct emu_nic_model *nm, uint64_t at_ps)
{
    if (s->round++ == 0)
        s->start_ps = at_ps;
    s->end_ps = at_ps;
    if (s->round < s->rounds)
        s->error = post_to(nm, s->spec, s->spec->a, s->spec->b, at_ps);
}

static void pingpong_completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct pingpong *s = ctx;

    if (asks_for_answer(s->spec->kind))
        next_round(s, nm, e->at_ps);
}

static void pingpong_arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct pingpong *s = ctx;

    if (is_same(e->at, s->spec->a))
        next_round(s, nm, e->at_ps);
    else
        (void)post_to(nm, s->spec, s->spec->b, s->spec->a, e->at_ps); /* if it fails, the rounds do not end */
}

int emu_nic_pingpong(const struct emu_nic_setup *setup, const struct emu_nic_pingpong *p,
                     struct emu_nic_pingpong_result *result_out)
{
    struct pingpong s = { .spec = p, .rounds = p->rounds == 0 ? ROUNDS_DEFAULT : p->rounds };
    const struct emu_nic_program program = { &s, pingpong_completed, pingpong_arrived };
    struct emu_nic_model *nm;
    uint64_t ps;
    int r;

    if (s.rounds < 2)
        s.rounds = 2;
    r = emu_nic_model_create(setup, &program, &nm);
    if (r < 0)
        return r;
    r = post_to(nm, p, p->a, p->b, 0);
    if (r == 0)
        (void)emu_sim_run(emu_nic_model_sim(nm), FOR_EVER);
    emu_nic_model_destroy(nm);
    if (r == 0)
        r = s.error;
    if (r == 0 && s.round < s.rounds)
        r = -EIO;
    if (r < 0)
        return r;
    ps = (s.end_ps - s.start_ps) / (s.rounds - 1);
    result_out->latency_ps = asks_for_answer(p->kind) ? ps : ps / 2;
    result_out->mbytes_per_s = mbytes_per_s(p->bytes, (double)result_out->latency_ps);
    return 0;
}

/* ---- exchange ---- */

struct exchange_side {
    struct emu_nic_proc self, peer;
    uint32_t n_sent;
    uint32_t n_received;
    uint32_t round;
    uint64_t start_ps;
    uint64_t end_ps;
    int error;
};

struct exchange {
    const struct emu_nic_pingpong *spec;
    uint32_t rounds;
    struct exchange_side sides[2];
};

static struct exchange_side *side_of(struct exchange *x, struct emu_nic_proc at)
{
    return &x->sides[!is_same(at, x->sides[0].self)];
}

static void exchange_step(struct exchange *x, struct emu_nic_model *nm, struct exchange_side *s, uint64_t at_ps)
{
    if (s->n_sent <= s->round || (s->n_received <= s->round && !asks_for_answer(x->spec->kind)))
        return;
    if (s->round++ == 0)
        s->start_ps = at_ps;
    s->end_ps = at_ps;
    if (s->round < x->rounds)
        s->error = post_to(nm, x->spec, s->self, s->peer, at_ps);
}

static void exchange_completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct exchange_side *s = side_of(ctx, e->at);

    s->n_sent++;
    exchange_step(ctx, nm, s, e->at_ps);
}

static void exchange_arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct exchange_side *s = side_of(ctx, e->at);

    s->n_received++;
    exchange_step(ctx, nm, s, e->at_ps);
}

int emu_nic_exchange(const struct emu_nic_setup *setup, const struct emu_nic_pingpong *p,
                     struct emu_nic_exchange_result *result_out)
{
    struct exchange x = {
        .spec = p,
        .rounds = p->rounds == 0 ? ROUNDS_DEFAULT :
                  p->rounds < 2  ? 2 :
                                   p->rounds,
        .sides = { { .self = p->a, .peer = p->b }, { .self = p->b, .peer = p->a } },
    };
    const struct emu_nic_program program = { &x, exchange_completed, exchange_arrived };
    struct emu_nic_model *nm;
    int r;

    r = emu_nic_model_create(setup, &program, &nm);
    if (r < 0)
        return r;
    for (int i = 0; i < 2 && r == 0; i++)
        r = post_to(nm, p, x.sides[i].self, x.sides[i].peer, 0);
    if (r == 0)
        (void)emu_sim_run(emu_nic_model_sim(nm), FOR_EVER);
    emu_nic_model_destroy(nm);
    for (int i = 0; i < 2 && r == 0; i++)
        r = x.sides[i].error < 0 ? x.sides[i].error : x.sides[i].round < x.rounds ? -EIO : 0;
    if (r < 0)
        return r;
    result_out->round_ps = (x.sides[0].end_ps - x.sides[0].start_ps) / (x.rounds - 1);
    result_out->mbytes_per_s = mbytes_per_s(2.0 * p->bytes, (double)result_out->round_ps);
    return 0;
}

/* ---- streams ---- */

/* One direction of one pair. */
struct sender {
    struct emu_nic_proc from, to;
    uint64_t n_posted; /* written at `from` */
    int error;
    uint64_t n_counted; /* events that count; written where they are seen: at `to` for messages, else at `from` */
    uint64_t n_events;
    uint64_t last_ps;
    double sum_t, sum_i, sum_tt, sum_ti; /* of those that count: time since from_ps, and number */
};

/* Where a message comes from and goes to, and which sender that is. */
struct route_key {
    struct emu_nic_proc from, to;
    uint32_t sender;
};

struct stream {
    const struct emu_nic_stream *spec;
    struct sender *senders; /* owned */
    struct route_key *keys; /* owned; sorted */
    uint32_t n_senders;
    uint32_t window;
    uint64_t from_ps; /* events before do not count */
    bool counts_arrivals;
};

static int compare_keys(const void *a, const void *b)
{
    const struct route_key *x = a, *y = b;
    const uint32_t xs[] = { x->to.nid, x->to.proc, x->from.nid, x->from.proc };
    const uint32_t ys[] = { y->to.nid, y->to.proc, y->from.nid, y->from.proc };

    for (int i = 0; i < 4; i++) {
        if (xs[i] != ys[i])
            return xs[i] < ys[i] ? -1 : 1;
    }
    return 0;
}

static int post_next(struct stream *st, struct emu_nic_model *nm, uint32_t index, uint64_t at_ps)
{
    struct sender *s = &st->senders[index];
    const struct emu_nic_op op = {
        .kind = st->spec->kind,
        .api = st->spec->api,
        .to = s->to,
        .bytes = st->spec->bytes,
        .changes_mdh = st->spec->changes_mdh,
        .user = index,
    };

    if (st->spec->operations > 0 && s->n_posted == st->spec->operations)
        return 0;
    s->n_posted++;
    return emu_nic_post(nm, s->from, &op, at_ps);
}

static void count(const struct stream *st, struct sender *s, uint64_t at_ps)
{
    double t = (double)at_ps - (double)st->from_ps;
    double i = (double)s->n_counted;

    s->n_events++;
    s->last_ps = at_ps;
    if (at_ps < st->from_ps)
        return;
    s->n_counted++;
    s->sum_t += t;
    s->sum_i += i;
    s->sum_tt += t * t;
    s->sum_ti += t * i;
}

static void stream_completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct stream *st = ctx;
    struct sender *s = &st->senders[e->user];
    int r;

    if (!st->counts_arrivals)
        count(st, s, e->at_ps);
    r = post_next(st, nm, (uint32_t)e->user, e->at_ps);
    if (r < 0)
        s->error = r;
}

static void stream_arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct stream *st = ctx;
    const struct route_key key = { .from = e->peer, .to = e->at };
    const struct route_key *found = bsearch(&key, st->keys, st->n_senders, sizeof(key), compare_keys);

    (void)nm;
    if (found && st->counts_arrivals)
        count(st, &st->senders[found->sender], e->at_ps);
}

static int make_senders(struct stream *st)
{
    const struct emu_nic_stream *spec = st->spec;
    uint32_t per_pair = spec->is_bidirectional ? 2 : 1;

    st->n_senders = (uint32_t)spec->n_pairs * per_pair;
    st->senders = calloc((size_t)st->n_senders + 1, sizeof(*st->senders));
    st->keys = calloc((size_t)st->n_senders + 1, sizeof(*st->keys));
    if (!st->senders || !st->keys)
        return -ENOMEM;
    for (uint32_t i = 0; i < st->n_senders; i++) {
        const struct emu_nic_pair *pair = &spec->pairs[i / per_pair];
        bool is_back = i % per_pair != 0;
        struct sender *s = &st->senders[i];

        s->from = is_back ? pair->to : pair->from;
        s->to = is_back ? pair->from : pair->to;
        st->keys[i] = (struct route_key){ .from = s->from, .to = s->to, .sender = i };
    }
    qsort(st->keys, st->n_senders, sizeof(*st->keys), compare_keys);
    return 0;
}

static bool has_counted_enough(const struct stream *st)
{
    for (uint32_t i = 0; i < st->n_senders; i++) {
        if (st->senders[i].n_counted < EVENTS_MIN)
            return false;
    }
    return true;
}

static bool has_ended(const struct stream *st)
{
    for (uint32_t i = 0; i < st->n_senders; i++) {
        if (st->senders[i].n_events < st->spec->operations)
            return false;
    }
    return true;
}

/* Runs for the measured time, and longer if some sender is slow. */
static int run_for(struct stream *st, struct emu_nic_model *nm, uint64_t measure_ps)
{
    struct emu_sim *sim = emu_nic_model_sim(nm);

    for (uint32_t i = 1; i <= EXTENSIONS_MAX; i++) {
        enum emu_sim_stop stop = emu_sim_run(sim, st->from_ps + i * measure_ps);

        if (has_counted_enough(st))
            return 0;
        if (stop != EMU_SIM_REACHED)
            return -EIO;
    }
    return -EIO;
}

static int run_stream(struct stream *st, struct emu_nic_model *nm, uint64_t measure_ps)
{
    int r = 0;

    for (uint32_t i = 0; i < st->n_senders; i++) {
        for (uint32_t k = 0; k < st->window && r == 0; k++)
            r = post_next(st, nm, i, 0);
    }
    if (r < 0)
        return r;
    if (st->spec->operations == 0) {
        r = run_for(st, nm, measure_ps);
    } else {
        (void)emu_sim_run(emu_nic_model_sim(nm), FOR_EVER);
        r = has_ended(st) ? 0 : -EIO;
    }
    for (uint32_t i = 0; i < st->n_senders && r == 0; i++)
        r = st->senders[i].error;
    return r;
}

/* Operations per ps of one sender. */
static double rate_of(const struct stream *st, const struct sender *s)
{
    double n = (double)s->n_counted;
    double spread = n * s->sum_tt - s->sum_t * s->sum_t;

    if (st->spec->operations > 0)
        return s->last_ps == 0 ? 0 : (double)s->n_events / (double)s->last_ps;
    return spread <= 0 ? 0 : (n * s->sum_ti - s->sum_t * s->sum_i) / spread;
}

static uint64_t count_interrupts(const struct stream *st, const struct emu_nic_model *nm)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < st->n_senders; i++) {
        struct emu_nic_counters c;

        for (uint32_t k = 0; k < 2; k++) {
            uint32_t nid = k == 0 ? st->senders[i].from.nid : st->senders[i].to.nid;
            bool is_known = false;

            for (uint32_t j = 0; j < i && !is_known; j++)
                is_known = st->senders[j].from.nid == nid || st->senders[j].to.nid == nid;
            if (is_known || (k == 1 && nid == st->senders[i].from.nid))
                continue;
            emu_nic_counters(nm, nid, &c);
            sum += c.interrupts;
        }
    }
    return sum;
}

static void judge_stream(const struct stream *st, double *pair_out, struct emu_nic_stream_result *result)
{
    uint32_t per_pair = st->spec->is_bidirectional ? 2 : 1;

    *result = (struct emu_nic_stream_result){ .pair_min_mbytes_per_s = INFINITY };
    for (uint32_t i = 0; i < st->n_senders; i += per_pair) {
        double rate = 0;
        double mbytes;

        for (uint32_t k = 0; k < per_pair; k++) {
            rate += rate_of(st, &st->senders[i + k]);
            if (st->senders[i + k].last_ps > result->elapsed_ps)
                result->elapsed_ps = st->senders[i + k].last_ps;
        }
        mbytes = rate * st->spec->bytes * 1e6;
        result->operations_per_s += rate * 1e12;
        result->mbytes_per_s += mbytes;
        result->pair_min_mbytes_per_s = fmin(result->pair_min_mbytes_per_s, mbytes);
        result->pair_max_mbytes_per_s = fmax(result->pair_max_mbytes_per_s, mbytes);
        if (pair_out)
            pair_out[i / per_pair] = mbytes;
    }
}

int emu_nic_stream(const struct emu_nic_setup *setup, const struct emu_nic_stream *s, double *pair_mbytes_per_s,
                   struct emu_nic_stream_result *result_out)
{
    struct stream st = {
        .spec = s,
        .window = s->window == 0 ? WINDOW_DEFAULT : s->window,
        .from_ps = s->operations > 0 ? 0 :
                   s->warmup_ps == 0 ? WARMUP_PS :
                                       s->warmup_ps,
        .counts_arrivals = s->kind == EMU_NIC_MESSAGE,
    };
    const struct emu_nic_program program = { &st, stream_completed, stream_arrived };
    struct emu_nic_model *nm = NULL;
    int r;

    if (s->n_pairs == 0 || s->n_pairs > UINT32_MAX / 2)
        return -EINVAL;
    r = make_senders(&st);
    if (r == 0)
        r = emu_nic_model_create(setup, &program, &nm);
    if (r == 0)
        r = run_stream(&st, nm, s->measure_ps == 0 ? MEASURE_PS : s->measure_ps);
    if (r == 0) {
        judge_stream(&st, pair_mbytes_per_s, result_out);
        result_out->interrupts = count_interrupts(&st, nm);
    }
    emu_nic_model_destroy(nm);
    free(st.senders);
    free(st.keys);
    return r;
}

void emu_nic_pairs_between(uint32_t from_nid, uint32_t to_nid, uint32_t n, struct emu_nic_pair *pairs_out)
{
    for (uint32_t i = 0; i < n; i++)
        pairs_out[i] = (struct emu_nic_pair){ .from = { from_nid, i }, .to = { to_nid, i } };
}
