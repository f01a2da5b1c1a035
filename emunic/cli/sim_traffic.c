/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim traffic`: any traffic on any machine.
 *
 * Each mode with each load is a simulation of its own, one after another on the threads that were asked for. Without
 * --packets, --time or messages it runs to the steady state of spec/machines.md 0.6.
 */
#include "emunic/cli/sim_traffic.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "emunic/base/clock.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/heat.h"
#include "emunic/cli/options.h"
#include "emunic/cli/progress.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/verb_sim.h"
#include "emunic/cli/sim_faults.h"
#include "emunic/cli/sim_world.h"

#define THREADS_MAX    1024
#define SLICES         200 /* of a run with a time, for bar and interrupt */
#define SLICES_OF_MANY 20  /* likewise, when several processes have to agree on an interrupt */
#define SEARCH_LOADS   9   /* of a search for saturation: about so many */
#define SEEDS_MAX      1000

struct request {
    struct emu_cli_traffic traffic;
    struct emu_machine *machine;  /* owned */
    struct emu_fault_map *faults; /* owned; NULL: none */
    struct emu_messages messages; /* owned */
    struct emu_size sizes[EMU_SIZES_MAX];
    double loads[EMU_CLI_LOADS_MAX];
    size_t n_loads;
    enum emu_route_mode modes[EMU_CLI_MODES_MAX];
    size_t n_modes;
    double capacity_gap_ps; /* between packets of a node at load 1 */
    uint64_t time_ps;
    const char *faults_path;
    bool is_json;
    bool is_ideal_nic;
    bool is_quiet;
    bool is_mpi;
    const struct emu_cli_world *world; /* NULL: this process alone */
    int interrupted;                   /* the signal's number; with others: when all know of it */
    struct emu_cli_traffic_run *runs;  /* owned */
    size_t n_runs;                     /* done */
    size_t n_wanted;                   /* of all; a guess for the search of saturation */
    struct emu_cli_progress progress;
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
    is_interrupted = number;
}

/* ---- one simulation ---- */

static void draw(void *ctx, double fraction)
{
    struct request *q = ctx;
    const struct emu_cli_traffic_run *run = &q->runs[q->n_runs];
    double done = ((double)q->n_runs + fraction) / (double)q->n_wanted;
    char load[32];
    char text[80];

    emu_cli_load_text(run->load, load);
    snprintf(text, sizeof(text), "%s %s", emu_cli_mode_name(run->mode), load);
    emu_cli_progress_draw(&q->progress, done < 1 ? done : 1, text);
}

/* With other processes all come here at the same points. */
static bool wants_stop(void *ctx)
{
    struct request *q = ctx;
    uint64_t number = (uint64_t)is_interrupted;

    if (q->world)
        q->world->calls.reduce(q->world->calls.ctx, EMU_SIM_MOST, &number, 1);
    q->interrupted = (int)number;
    return number != 0;
}

/* Process 0 hears of what the others have. */
static void gather(struct request *q, struct emu_generator *gen, const struct emu_sim *sim)
{
    if (q->world)
        emu_generator_gather(gen, sim, &q->world->calls);
}

/* To time_ps, or until all packets have arrived. */
static void run_whole(struct request *q, struct emu_sim *sim, struct emu_generator *gen,
                      struct emu_cli_traffic_run *run)
{
    uint64_t slices = q->world ? SLICES_OF_MANY : SLICES;
    uint64_t slice_ps = q->time_ps ? (q->time_ps + slices - 1) / slices : 10000 * emu_link_cycle_ps(q->machine);
    uint64_t start_ns = emu_clock_ns();
    double start_cpu = emu_cpu_seconds();
    enum emu_sim_stop stop = EMU_SIM_REACHED;

    for (uint32_t i = 1; stop == EMU_SIM_REACHED && !wants_stop(q); i++) {
        uint64_t until_ps = i * slice_ps;

        if (q->time_ps && until_ps > q->time_ps)
            until_ps = q->time_ps;
        stop = emu_sim_run(sim, until_ps);
        draw(q, q->time_ps ? (double)until_ps / (double)q->time_ps : 0.5);
        if (until_ps == q->time_ps)
            break;
    }
    run->seconds = (double)(emu_clock_ns() - start_ns) / 1e9;
    run->cpu_seconds = emu_cpu_seconds() - start_cpu;
    run->measured_ps = emu_sim_now(sim);
    emu_sim_totals(sim, &run->totals);
    gather(q, gen, sim);
    run->kind = stop == EMU_SIM_DEADLOCK              ? "deadlock" :
                stop != EMU_SIM_EMPTY                 ? "time" :
                emu_generator_messages_left(gen) != 0 ? "stalled" :
                                                        "complete";
}

static void run_steady(struct request *q, struct emu_sim *sim, struct emu_generator *gen,
                       struct emu_cli_traffic_run *run)
{
    struct emu_steady_options steady = { .progress = draw, .progress_ctx = q, .stop = wants_stop };
    struct emu_steady_result result;

    emu_generator_steady(gen, sim, &steady, &result);
    gather(q, gen, sim);
    run->seconds = result.seconds;
    run->cpu_seconds = result.cpu_seconds;
    run->measured_ps = result.measured_ps;
    run->totals = result.totals;
    run->kind = result.is_deadlock ? "deadlock" :
                result.is_empty    ? "complete" :
                result.is_steady   ? "steady" :
                                     "unsteady";
}

static bool ends_by_itself(const struct request *q)
{
    return q->traffic.options.packets_per_node != 0 || q->traffic.options.pattern == EMU_PATTERN_ALL_TO_ALL ||
           q->traffic.options.pattern == EMU_PATTERN_MESSAGES;
}

static int take_results(struct request *q, const struct emu_generator *gen, const struct emu_sim *sim,
                        struct emu_cli_traffic_run *run)
{
    struct emu_node_figures figures;
    struct emu_sim_totals totals;

    for (uint32_t nid = 0; nid < emu_machine_n_nodes(q->machine); nid++) {
        emu_generator_node(gen, nid, &figures);
        run->received += figures.received;
        run->received_hops += figures.received_hops;
    }
    for (size_t i = 0; i < q->messages.n; i++) {
        uint64_t done_ps = emu_generator_message_done_ps(gen, i);

        run->last_ps = done_ps > run->last_ps ? done_ps : run->last_ps;
    }
    emu_sim_totals(sim, &totals);
    run->trace_hash = totals.trace_hash;
    run->memory_bytes = emu_sim_memory(sim);
    emu_generator_latency(gen, EMU_LATENCY_CREATED, &run->latency);
    emu_generator_latency(gen, EMU_LATENCY_NETWORK, &run->network);
    emu_generator_latency(gen, EMU_LATENCY_ROUND_TRIP, &run->round_trip);
    run->memory_bytes_most = run->memory_bytes;
    return emu_cli_take_nodes(&q->traffic, gen, run);
}

/* What each process has of its own, and what process 0 alone has and all go by. */
static void share_results(struct request *q, struct emu_cli_traffic_run *run)
{
    const struct emu_sim_world *calls = &q->world->calls;
    uint64_t sums[3] = { run->memory_bytes, (uint64_t)(run->cpu_seconds * 1e6), 0 };

    if (calls->rank == 0)
        memcpy(&sums[2], &run->nodes.follows, sizeof(sums[2]));
    calls->reduce(calls->ctx, EMU_SIM_SUM, sums, 3);
    calls->reduce(calls->ctx, EMU_SIM_MOST, &run->memory_bytes_most, 1);
    run->memory_bytes = sums[0];
    run->cpu_seconds = (double)sums[1] / 1e6;
    memcpy(&run->nodes.follows, &sums[2], sizeof(sums[2]));
}

/* Is it this process that says what all have to say? */
static bool is_speaker(const struct request *q)
{
    return !q->world || q->world->calls.rank == 0;
}

/* An error of one process is one of all. */
static int share_error(const struct request *q, int r)
{
    uint64_t error = (uint64_t)-r;

    if (!q->world)
        return r;
    q->world->calls.reduce(q->world->calls.ctx, EMU_SIM_MOST, &error, 1);
    return -(int)error;
}

/* Do all processes simulate the same machine? */
static bool is_one_machine(const struct request *q, const struct emu_sim *sim)
{
    uint64_t least = emu_sim_machine_hash(sim);
    uint64_t most = least;

    if (!q->world)
        return true;
    q->world->calls.reduce(q->world->calls.ctx, EMU_SIM_LEAST, &least, 1);
    q->world->calls.reduce(q->world->calls.ctx, EMU_SIM_MOST, &most, 1);
    return least == most;
}

/* Room for one more. */
static int grow_runs(struct request *q)
{
    struct emu_cli_traffic_run *runs = realloc(q->runs, (q->n_runs + 1) * sizeof(*runs));

    if (!runs)
        return emu_cli_fail("sim", "traffic: out of memory");
    q->runs = runs;
    return EMU_EXIT_DONE;
}

/* Traffic and network of a run. 0 or negative errno, the same in all processes; what there is is the caller's. */
static int make_simulation(struct request *q, const struct emu_cli_traffic_run *run, struct emu_generator **gen_out,
                           struct emu_sim **sim_out)
{
    struct emu_generator_options generator = q->traffic.options;
    struct emu_sim_options sim_options = { .seed = run->seed,
                                           .n_threads = (uint32_t)q->traffic.n_threads,
                                           .has_ends = !q->is_ideal_nic,
                                           .count_occupancy = (q->traffic.record & EMU_CLI_RECORD_VCS) != 0,
                                           .world = !q->world ? NULL : &q->world->calls };
    char err[256];
    int r;

    generator.seed = run->seed;
    generator.mode = (uint8_t)run->mode;
    generator.gap_ps = run->gap_ps;
    generator.is_shared = q->world;
    r = share_error(q, emu_generator_create(q->machine, &generator, gen_out, err, sizeof(err)));
    if (r < 0) {
        if (is_speaker(q))
            (void)emu_cli_fail("sim", "traffic: %s", *gen_out ? strerror(-r) : err);
        return r;
    }
    r = share_error(q, emu_sim_create(q->machine, q->faults, emu_generator_traffic(*gen_out), &sim_options, sim_out));
    if (r < 0 && is_speaker(q))
        (void)emu_cli_fail("sim", "traffic: %s",
                           r == -ENOTSUP ? "this topology has no routing for packets" : strerror(-r));
    if (r == 0 && !is_one_machine(q, *sim_out)) {
        if (is_speaker(q))
            (void)emu_cli_fail("sim", "--mpi: the processes have different files of this machine");
        r = -EINVAL;
    }
    if (r == 0 && q->world)
        emu_generator_start(*gen_out, *sim_out);
    return r;
}

static int run_simulation(struct request *q, struct emu_cli_traffic_run *run, struct emu_generator *gen,
                          struct emu_sim *sim)
{
    int r;

    draw(q, 0);
    if (q->time_ps || ends_by_itself(q))
        run_whole(q, sim, gen, run);
    else
        run_steady(q, sim, gen, run);
    r = take_results(q, gen, sim, run);
    if (r == 0)
        r = emu_generator_status(gen);
    r = share_error(q, r);
    if (q->world)
        share_results(q, run);
    emu_cli_progress_clear(&q->progress);
    if (r < 0 && is_speaker(q))
        (void)emu_cli_fail("sim", "traffic: %s", strerror(-r));
    return r;
}

/* The run becomes the last one, unless it was interrupted. */
static int simulate(struct request *q, enum emu_route_mode mode, double load, uint64_t seed)
{
    struct emu_cli_traffic_run *run;
    struct emu_generator *gen = NULL;
    struct emu_sim *sim = NULL;
    int r;

    if (grow_runs(q) != EMU_EXIT_DONE)
        return EMU_EXIT_FAILED;
    run = &q->runs[q->n_runs];
    *run = (struct emu_cli_traffic_run){ .mode = mode, .load = load, .seed = seed };
    run->gap_ps = load > 0 ? q->capacity_gap_ps / load : 0;
    r = make_simulation(q, run, &gen, &sim);
    if (r == 0)
        r = run_simulation(q, run, gen, sim);
    if (r == 0 && !wants_stop(q)) {
        q->n_runs++;
        r = q->traffic.output && seed == q->traffic.options.seed ? emu_cli_sim_write(&q->traffic, run, sim) : 0;
    }
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    return r < 0 ? EMU_EXIT_FAILED : EMU_EXIT_DONE;
}

/* Bisection, with one mode and one seed. */
static int find_saturation(struct request *q, enum emu_route_mode mode, uint64_t seed)
{
    struct emu_cli_saturation found = { .mode = mode, .seed = seed };
    struct emu_cli_saturation *all;
    double load;

    while (emu_saturation_next(&found.search, &load)) {
        const struct emu_cli_traffic_run *run;
        double accepted;

        if (simulate(q, mode, load, seed) != EMU_EXIT_DONE)
            return EMU_EXIT_FAILED;
        if (q->interrupted)
            return EMU_EXIT_DONE;
        run = &q->runs[q->n_runs - 1];
        emu_saturation_tell(&found.search, load, run->nodes.follows);
        accepted = emu_cli_accepted_gb_s(&q->traffic, run);
        found.most_gb_s = accepted > found.most_gb_s ? accepted : found.most_gb_s;
        if (found.search.followed == load)
            found.accepted_gb_s = accepted;
    }
    all = realloc(q->traffic.saturations, (q->traffic.n_saturations + 1) * sizeof(*all));
    if (!all)
        return emu_cli_fail("sim", "traffic: out of memory");
    q->traffic.saturations = all;
    all[q->traffic.n_saturations++] = found;
    return EMU_EXIT_DONE;
}

/* ---- all of them ---- */

/* result.json, then the pictures. */
static int write_folder(struct request *q, const json_t *answer)
{
    char path[4200];

    snprintf(path, sizeof(path), "%s/result.json", q->traffic.output);
    if (json_dump_file(answer, path, JSON_INDENT(1)) < 0)
        return emu_cli_fail("sim", "--output: %s: %s", path, strerror(errno));
    return emu_heat_draw("sim", q->traffic.output);
}

static int show(struct request *q)
{
    json_t *answer = emu_cli_sim_json(&q->traffic, q->runs, q->n_runs);
    int status = EMU_EXIT_DONE;
    int r;

    if (!answer)
        return emu_cli_fail("sim", "traffic: out of memory");
    if (q->is_json) {
        status = emu_cli_print_json("sim", answer, stdout);
    } else {
        r = emu_cli_sim_print(&q->traffic, q->runs, q->n_runs);
        if (r < 0)
            status = emu_cli_fail("sim", "traffic: cannot print: %s", strerror(-r));
    }
    if (status == EMU_EXIT_DONE && q->traffic.output)
        status = write_folder(q, answer);
    json_decref(answer);
    return status;
}

/* Number i of all: seeds within loads within modes. */
static int run_number(struct request *q, size_t i)
{
    uint64_t seed = q->traffic.options.seed + i % q->traffic.n_seeds;

    i /= q->traffic.n_seeds;
    if (q->traffic.finds_saturation)
        return find_saturation(q, q->modes[i], seed);
    return simulate(q, q->modes[i / q->n_loads], q->loads[i % q->n_loads], seed);
}

static int run_all(struct request *q)
{
    struct sigaction action = { .sa_handler = on_interrupt };
    size_t n = (q->traffic.finds_saturation ? 1 : q->n_loads) * q->n_modes * q->traffic.n_seeds;
    int status = EMU_EXIT_DONE;

    q->n_wanted = q->traffic.finds_saturation ? n * SEARCH_LOADS : n;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    emu_cli_progress_init(&q->progress, q->is_quiet || !is_speaker(q));
    for (size_t i = 0; i < n && status == EMU_EXIT_DONE && !q->interrupted; i++)
        status = run_number(q, i);
    emu_cli_progress_clear(&q->progress);
    if (status == EMU_EXIT_DONE && (q->n_runs > 0 || !q->interrupted) && is_speaker(q))
        status = show(q);
    if (q->interrupted) {
        if (is_speaker(q))
            (void)emu_cli_fail("sim", "traffic: interrupted, %zu of %zu runs were done", q->n_runs, q->n_wanted);
        return 128 + q->interrupted;
    }
    return status;
}

/* Mean size and mean gap at load 1: links are busy in proportion to the units that cross them. */
static int take_gap(struct request *q)
{
    struct emu_generator_options *o = &q->traffic.options;
    uint32_t most = emu_machine_router(q->machine)->packet_units_max;
    double weights = 0;

    q->traffic.mean_units = o->units;
    q->capacity_gap_ps = emu_uniform_gap_ps(q->machine, o->units, o->response_units, 1);
    if (o->sizes.n == 0)
        return EMU_EXIT_DONE;
    o->sizes.list = q->sizes;
    q->traffic.mean_units = emu_mean_units(&o->sizes);
    q->capacity_gap_ps = 0;
    for (size_t i = 0; i < o->sizes.n; i++) {
        if (q->sizes[i].units > most)
            return emu_cli_fail("sim", "--sizes: a packet of this machine has at most %u units, not %u", most,
                                q->sizes[i].units);
        weights += q->sizes[i].weight;
        q->capacity_gap_ps +=
            q->sizes[i].weight * emu_uniform_gap_ps(q->machine, q->sizes[i].units, o->response_units, 1);
    }
    q->capacity_gap_ps /= weights;
    return EMU_EXIT_DONE;
}

/* Each thread needs a router, and numbers them and the other processes with a byte. */
static int check_threads(const struct request *q)
{
    uint64_t size = q->traffic.n_processes;
    uint64_t n_threads = q->traffic.n_threads;
    uint32_t n_routers = emu_machine_n_routers(q->machine);

    if (size * n_threads > n_routers && size > 1)
        return emu_cli_fail("sim", "--mpi: %llu processes of %llu threads are more than the %u routers",
                            (unsigned long long)size, (unsigned long long)n_threads, n_routers);
    if (n_threads > n_routers)
        return emu_cli_fail("sim", "--threads: %llu are more than the %u routers", (unsigned long long)n_threads,
                            n_routers);
    if (n_threads + (size > 1 ? size : 0) > EMU_SIM_PARTS_MAX)
        return emu_cli_fail("sim", "--threads: more than %u, other processes included", EMU_SIM_PARTS_MAX);
    return EMU_EXIT_DONE;
}

static int prepare(struct request *q)
{
    struct emu_cli_traffic *t = &q->traffic;
    char err[512];
    int status;

    status = emu_cli_load_machine("sim", "traffic", t->spec, &q->machine);
    if (status != EMU_EXIT_DONE)
        return status;
    t->machine = q->machine;
    if (t->options.units == 0)
        t->options.units = emu_packet_units(q->machine, emu_machine_nic(q->machine)->format.payload_bytes_max);
    status = take_gap(q);
    if (status != EMU_EXIT_DONE)
        return status;
    if (q->faults_path && emu_cli_read_faults(q->faults_path, q->machine, &q->faults, err, sizeof(err)) < 0)
        return emu_cli_fail("sim", "%s", err);
    if (t->jobs.n > 0) {
        status = emu_cli_jobs_place(&t->jobs, q->machine, &t->options);
        if (status != EMU_EXIT_DONE)
            return status;
    }
    if (t->trace_path) {
        if (emu_trace_read(t->trace_path, q->machine, &q->messages, err, sizeof(err)) < 0)
            return emu_cli_fail("sim", "%s", err);
        t->options.pattern = EMU_PATTERN_MESSAGES;
        t->options.messages = q->messages;
        q->loads[0] = 0; /* the file tells when */
        q->n_loads = 1;
    }
    if (t->output && is_speaker(q) && mkdir(t->output, 0777) < 0 && errno != EEXIST)
        return emu_cli_fail("sim", "--output: %s: %s", t->output, strerror(errno));
    return check_threads(q);
}

/* ---- command line ---- */

static bool parse_real(const char *text, double min, double max, double *value_out)
{
    char *end;
    double value;

    if (!(*text >= '0' && *text <= '9') && *text != '.')
        return false;
    value = strtod(text, &end);
    if (*end != '\0' || !(value >= min && value <= max))
        return false;
    *value_out = value;
    return true;
}

/* Each word between commas. */
static int for_each_word(struct request *q, const char *name, const char *text,
                         int (*visit)(struct request *q, const char *name, const char *word))
{
    char copy[1024];
    char *rest = NULL;
    int status = EMU_EXIT_DONE;

    if (strlen(text) >= sizeof(copy))
        return emu_cli_usage("sim", "%s: a list of %zu bytes is too long", name, strlen(text));
    strcpy(copy, text);
    if (copy[0] == '\0')
        return visit(q, name, copy);
    for (char *word = strtok_r(copy, ",", &rest); word && status == EMU_EXIT_DONE; word = strtok_r(NULL, ",", &rest))
        status = visit(q, name, word);
    return status;
}

static int add_load(struct request *q, const char *name, const char *word)
{
    double load = 0;

    if (strcmp(word, "max") != 0 && !parse_real(word, 0.0001, 4, &load))
        return emu_cli_usage("sim", "%s: '%s' is neither a number from 0.0001 to 4 nor 'max'", name, word);
    if (q->n_loads == EMU_CLI_LOADS_MAX)
        return emu_cli_usage("sim", "%s: more than %d", name, EMU_CLI_LOADS_MAX);
    q->loads[q->n_loads++] = load;
    return EMU_EXIT_DONE;
}

static int add_mode(struct request *q, const char *name, const char *word)
{
    enum emu_route_mode mode;

    if (!emu_cli_parse_mode(word, &mode))
        return emu_cli_usage("sim", "%s: '%s' is not a routing mode", name, word);
    if (q->n_modes == EMU_CLI_MODES_MAX)
        return emu_cli_usage("sim", "%s: more than there are", name);
    q->modes[q->n_modes++] = mode;
    return EMU_EXIT_DONE;
}

static int add_record(struct request *q, const char *name, const char *word)
{
    static const char *const names[] = { "latency", "links", "vcs" };

    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(word, names[i]) == 0) {
            q->traffic.record |= 1u << i;
            return EMU_EXIT_DONE;
        }
    }
    return emu_cli_usage("sim", "%s: '%s' is none of latency, links, vcs", name, word);
}

/* "14:0.25": units, and a weight if it is not 1 */
static int add_size(struct request *q, const char *name, const char *word)
{
    struct emu_sizes *sizes = &q->traffic.options.sizes;
    double weight = 1;
    unsigned units = 0;
    int len = 0;

    if (strspn(word, "0123456789") == 0 || sscanf(word, "%5u%n", &units, &len) != 1 || units == 0 ||
        units > UINT16_MAX || (word[len] != '\0' && word[len] != ':') ||
        (word[len] == ':' && !parse_real(word + len + 1, 0.000001, 1e6, &weight)))
        return emu_cli_usage("sim", "%s: '%s' is not UNITS or UNITS:WEIGHT", name, word);
    if (sizes->n == EMU_SIZES_MAX)
        return emu_cli_usage("sim", "%s: more than %d", name, EMU_SIZES_MAX);
    q->sizes[sizes->n++] = (struct emu_size){ (uint16_t)units, weight };
    return EMU_EXIT_DONE;
}

/* "8:0.25" */
static bool parse_burst(const char *text, struct emu_burst *burst)
{
    const char *colon = strchr(text, ':');
    char packets[32];

    if (!colon || colon - text >= (int)sizeof(packets))
        return false;
    snprintf(packets, sizeof(packets), "%.*s", (int)(colon - text), text);
    return parse_real(packets, 1, 1e6, &burst->packets) && parse_real(colon + 1, 0.0001, 1, &burst->on);
}

/* "0.25:4,4,4" */
static bool parse_hot(const char *text, struct emu_generator_options *o)
{
    const char *colon = strchr(text, ':');
    char share[32];
    unsigned size[3];
    int len = 0;

    if (!colon || colon - text >= (int)sizeof(share) || strspn(colon + 1, "0123456789,") != strlen(colon + 1))
        return false;
    snprintf(share, sizeof(share), "%.*s", (int)(colon - text), text);
    if (!parse_real(share, 0, 1, &o->hot_share) ||
        sscanf(colon + 1, "%4u,%4u,%4u%n", &size[0], &size[1], &size[2], &len) != 3 || colon[1 + len] != '\0')
        return false;
    for (int i = 0; i < 3; i++) {
        if (size[i] == 0)
            return false;
        o->hot_size[i] = size[i];
    }
    return true;
}

/* "0:1" */
static bool parse_shift(const char *text, struct emu_generator_options *o)
{
    unsigned dimension;
    unsigned shift;
    int len = 0;

    if (strspn(text, "0123456789:") != strlen(text) || sscanf(text, "%1u:%7u%n", &dimension, &shift, &len) != 2 ||
        text[len] != '\0' || dimension > 2 || shift == 0)
        return false;
    o->dimension = dimension;
    o->shift = shift;
    return true;
}

static int take_loads(void *target, const char *name, const char *text)
{
    return for_each_word(target, name, text, add_load);
}

static int take_modes(void *target, const char *name, const char *text)
{
    return for_each_word(target, name, text, add_mode);
}

static int take_records(void *target, const char *name, const char *text)
{
    return for_each_word(target, name, text, add_record);
}

static int take_pattern(void *target, const char *name, const char *text)
{
    struct request *q = target;

    if (emu_pattern_of_name(text, &q->traffic.options.pattern) < 0)
        return emu_cli_usage("sim", "%s: '%s' is not a pattern", name, text);
    return EMU_EXIT_DONE;
}

static int take_time(void *target, const char *name, const char *text)
{
    struct request *q = target;
    double us;

    if (!parse_real(text, 0.001, 1e9, &us))
        return emu_cli_usage("sim", "%s: '%s' is not a time in us", name, text);
    q->time_ps = (uint64_t)(us * 1e6 + 0.5);
    return EMU_EXIT_DONE;
}

static int take_sizes(void *target, const char *name, const char *text)
{
    return for_each_word(target, name, text, add_size);
}

static int take_burst(void *target, const char *name, const char *text)
{
    struct request *q = target;

    if (!parse_burst(text, &q->traffic.options.burst))
        return emu_cli_usage("sim", "%s: '%s' is not PACKETS:SHARE", name, text);
    return EMU_EXIT_DONE;
}

static int take_job(void *target, const char *name, const char *text)
{
    struct request *q = target;
    const char *why;

    if (!emu_cli_jobs_add(&q->traffic.jobs, text, &why))
        return emu_cli_usage("sim", "%s: '%s' %s", name, text, why);
    return EMU_EXIT_DONE;
}

static int take_hot(void *target, const char *name, const char *text)
{
    struct request *q = target;

    if (!parse_hot(text, &q->traffic.options))
        return emu_cli_usage("sim", "%s: '%s' is not SHARE:X,Y,Z", name, text);
    return EMU_EXIT_DONE;
}

static int take_shift(void *target, const char *name, const char *text)
{
    struct request *q = target;

    if (!parse_shift(text, &q->traffic.options))
        return emu_cli_usage("sim", "%s: '%s' is not DIMENSION:NUMBER", name, text);
    return EMU_EXIT_DONE;
}

static const struct emu_option options[] = {
    { "pattern", 'p', "P",
      "uniform, hot, shift, transpose, tornado, neighbour, complement or all-to-all (default: uniform)",
      EMU_OPTION_CALL(take_pattern) },
    { "job", 0, "P:N[:PLACE[:L]]",
      "pattern P among N nodes, packed, random or group (by whole groups), at L times the load; once for each job",
      EMU_OPTION_CALL(take_job) },
    { "trace", 'x', "FILE", "the messages of this file instead", EMU_OPTION_TEXT(struct request, traffic.trace_path) },
    { "load", 'l', "L[,L...]", "0.0001 to 4, or max: as fast as the network takes packets (default: 0.5)",
      EMU_OPTION_CALL(take_loads) },
    { "mode", 'm', "M[,M...]",
      "adaptive-0 to adaptive-3, min-hash, nmin-hash, in-order, minimal, valiant, deterministic (default: adaptive-0)",
      EMU_OPTION_CALL(take_modes) },
    { "units", 'u', "N", "of a packet (default: a full one)",
      EMU_OPTION_NUMBER(struct request, traffic.options.units, 1, UINT16_MAX) },
    { "sizes", 0, "N[:W][,N[:W]]...", "packets of N units with weight W (default: 1), mixed, instead of --units",
      EMU_OPTION_CALL(take_sizes) },
    { "burst", 0, "N:SHARE", "bursts of N packets on average, for SHARE of the time; the load stays (default: none)",
      EMU_OPTION_CALL(take_burst) },
    { "response", 'r', "N", "each packet is answered by one of N units (default: none)",
      EMU_OPTION_NUMBER(struct request, traffic.options.response_units, 1, UINT16_MAX) },
    { "window", 'w', "N", "packets of a node without answer at a time (default: no limit)",
      EMU_OPTION_NUMBER(struct request, traffic.options.window, 1, UINT32_MAX) },
    { "packets", 'n', "N", "of each node; run until all are there",
      EMU_OPTION_NUMBER(struct request, traffic.options.packets_per_node, 1, UINT64_C(1) << 40) },
    { "time", 'T', "US", "run for this virtual time; measure all of it (default: until steady, then five windows)",
      EMU_OPTION_CALL(take_time) },
    { "hot", 0, "SHARE:X,Y,Z", "hot: share of packets to the box of this size at the origin (default: 0.25:1,1,1)",
      EMU_OPTION_CALL(take_hot) },
    { "shift", 0, "D:N", "shift: N places on in dimension D of 0 to 2 (default: 0:1)", EMU_OPTION_CALL(take_shift) },
    { "rounds", 0, "N", "all-to-all: packets to each other node (default: 1)",
      EMU_OPTION_NUMBER(struct request, traffic.options.rounds, 1, 1000000) },
    { "ideal-nic", 0, NULL,
      "NICs send and take packets as fast as their links, without the machine file's rates and buffers",
      EMU_OPTION_SET(struct request, is_ideal_nic) },
    { "faults", 'f', "FILE", "what is broken (emunic-sim(1))", EMU_OPTION_TEXT(struct request, faults_path) },
    { "seed", 's', "N", "of all random choices (default: 1)",
      EMU_OPTION_NUMBER(struct request, traffic.options.seed, 0, INT64_MAX) },
    { "seeds", 0, "N", "seeds, counted up from --seed: mean and 95 % confidence interval (default: 1)",
      EMU_OPTION_NUMBER(struct request, traffic.n_seeds, 1, SEEDS_MAX) },
    { "find-saturation", 0, NULL, "instead of --load: the load at which accepted throughput stops following",
      EMU_OPTION_SET(struct request, traffic.finds_saturation) },
    { "per-node", 0, NULL, "throughput of each node in the JSON object",
      EMU_OPTION_SET(struct request, traffic.has_per_node) },
    { "threads", 't', "N", "of the simulation (default: 1); results do not depend on it",
      EMU_OPTION_NUMBER(struct request, traffic.n_threads, 1, THREADS_MAX) },
    { "mpi", 0, NULL, "the processes of the mpirun around this command simulate together; results do not depend on it",
      EMU_OPTION_SET(struct request, is_mpi) },
    { "record", 'c', "WHAT", "latency, links, vcs, or several with commas: into files of the folder",
      EMU_OPTION_CALL(take_records) },
    { "output", 'o', "FOLDER", "for result.json, the recorded files and plots of them (SVG and PNG)",
      EMU_OPTION_TEXT(struct request, traffic.output) },
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"runs\": [...]}", EMU_OPTION_SET(struct request, is_json) },
    { "quiet", 0, NULL, "no progress bar", EMU_OPTION_SET(struct request, is_quiet) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "sim",
    .usage = "emunic sim traffic MACHINE [OPTION]...",
    .about =
        "Load the network of a machine with a pattern of packets or the messages of a trace, and show throughput,\n"
        "latency and speed. MACHINE is a name or path, with overrides if wanted: aries:groups=8. Load 1 is the rate\n"
        "at which uniform traffic on minimal routes would keep the busiest class of links busy all the time.\n",
    .options = options,
    .after =
        "Example:\n"
        "  emunic sim traffic aries:groups=8 --pattern shift --mode minimal,valiant --load 0.1,0.2,0.3 --output out\n",
    .words = EMU_WORDS_ANYWHERE,
};

/* A search needs traffic without end whose rate it may set. */
static int check_search(const struct request *q)
{
    if (q->n_loads > 0)
        return emu_cli_usage("sim", "--find-saturation and --load exclude each other");
    if (q->traffic.trace_path || q->time_ps || ends_by_itself(q))
        return emu_cli_usage("sim", "--find-saturation: not with --time, --packets, --trace or all-to-all");
    if (q->traffic.record)
        return emu_cli_usage("sim", "--find-saturation and --record exclude each other");
    return EMU_PROCEED;
}

static int parse(struct request *q, int argc, char **argv)
{
    int first;
    int status = emu_options_parse(&command, argc, argv, q, &first);

    if (status != EMU_PROCEED)
        return status;
    if (first == argc)
        return emu_cli_usage("sim", "traffic: the machine is missing");
    if (first + 1 < argc)
        return emu_cli_usage("sim", "traffic: '%s': takes one machine", argv[first + 1]);
    if (q->traffic.record && !q->traffic.output)
        return emu_cli_usage("sim", "--record: needs --output");
    if (q->traffic.options.window && !q->traffic.options.response_units)
        return emu_cli_usage("sim", "--window: needs --response");
    if (q->time_ps && q->traffic.options.packets_per_node)
        return emu_cli_usage("sim", "--time and --packets exclude each other");
    if (q->traffic.options.sizes.n > 0 && q->traffic.options.units != 0)
        return emu_cli_usage("sim", "--sizes and --units exclude each other");
    if (q->traffic.trace_path && (q->traffic.options.sizes.n > 0 || q->traffic.options.burst.packets > 0))
        return emu_cli_usage("sim", "--trace: has sizes and times of its own");
    for (size_t i = 0; i < q->n_loads && q->traffic.options.burst.packets > 0; i++) {
        if (q->loads[i] <= 0)
            return emu_cli_usage("sim", "--burst: not with load max");
    }
    if (q->traffic.jobs.n > 0 && (q->traffic.trace_path || q->traffic.options.pattern != EMU_PATTERN_UNIFORM))
        return emu_cli_usage("sim", "--job: has a pattern of its own; not with --pattern or --trace");
    q->traffic.spec = argv[first];
    if (q->traffic.finds_saturation)
        return check_search(q);
    return EMU_PROCEED;
}

static void set_defaults(struct request *q)
{
    struct emu_generator_options *o = &q->traffic.options;

    if (q->n_loads == 0)
        q->loads[q->n_loads++] = 0.5;
    if (q->n_modes == 0)
        q->modes[q->n_modes++] = EMU_MODE_ADAPTIVE_0;
    if (o->pattern == EMU_PATTERN_HOT && o->hot_size[0] == 0) {
        o->hot_share = 0.25;
        for (int i = 0; i < 3; i++)
            o->hot_size[i] = 1;
    }
}

static void fini(struct request *q)
{
    for (size_t i = 0; i < q->n_runs; i++) {
        free(q->runs[i].nodes.sent_gb_s);
        free(q->runs[i].nodes.received_gb_s);
    }
    free(q->runs);
    free(q->traffic.saturations);
    emu_cli_jobs_fini(&q->traffic.jobs);
    emu_messages_fini(&q->messages);
    emu_fault_map_destroy(q->faults);
    emu_machine_destroy(q->machine);
}

static int sim_traffic(int argc, char **argv, const struct emu_cli_world *world)
{
    struct request q = { .traffic = { .n_threads = 1, .n_processes = 1, .n_seeds = 1, .options = { .seed = 1 } } };
    int status = parse(&q, argc, argv);

    if (status != EMU_PROCEED)
        return status;
    set_defaults(&q);
    if (world && world->calls.size > 1) {
        q.world = world;
        q.traffic.world = &world->calls;
        q.traffic.n_processes = world->calls.size;
        q.traffic.has_per_node &= world->calls.rank == 0;
    }
    status = prepare(&q);
    if (q.world)
        status = world->agree(&world->calls, status);
    if (status == EMU_EXIT_DONE)
        status = run_all(&q);
    if (q.world)
        status = world->agree(&world->calls, status);
    fini(&q);
    return status;
}

int emu_cli_sim_traffic(int argc, char **argv)
{
    return sim_traffic(argc, argv, NULL);
}

int emu_cli_sim_traffic_of_many(int argc, char **argv, const struct emu_cli_world *world)
{
    uint64_t least = world->arguments_hash;
    uint64_t most = least;

    world->calls.reduce(world->calls.ctx, EMU_SIM_LEAST, &least, 1);
    world->calls.reduce(world->calls.ctx, EMU_SIM_MOST, &most, 1);
    if (least != most)
        return emu_cli_usage("sim", "--mpi: the processes have different arguments, or versions of emunic");
    return sim_traffic(argc, argv, world);
}
