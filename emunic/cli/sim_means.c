/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim traffic`: figures over nodes and over seeds, and what a search for saturation found.
 *
 * Fairness is that among senders: a node that a permutation sends to itself has nothing to be unfair about. A sender's
 * throughput is what the network took from it in the measured time; in a steady state that is what arrives.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "emunic/cli/sim_traffic.h"
#include "emunic/cli/text_table.h"

static double unit_bytes(const struct emu_cli_traffic *t)
{
    return emu_machine_nic(t->machine)->format.flit_bits / 8.0;
}

double emu_cli_accepted_gb_s(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run)
{
    if (run->measured_ps == 0)
        return 0;
    return (double)run->totals.delivered_units * unit_bytes(t) / (double)run->measured_ps * 1e3 /
           emu_machine_n_nodes(t->machine);
}

/* ---- nodes ---- */

int emu_cli_take_nodes(const struct emu_cli_traffic *t, const struct emu_generator *gen,
                       struct emu_cli_traffic_run *run)
{
    uint32_t n = emu_machine_n_nodes(t->machine);
    struct emu_cli_nodes *nodes = &run->nodes;
    double scale = run->measured_ps > 0 ? unit_bytes(t) * 1e3 / (double)run->measured_ps : 0;
    double *senders = calloc(n, sizeof(*senders));
    uint64_t received_units = 0;
    double rates = 0; /* of all senders, in those of a node with load 1 */
    struct emu_sample sample;

    if (t->has_per_node) {
        nodes->sent_gb_s = calloc(n, sizeof(double));
        nodes->received_gb_s = calloc(n, sizeof(double));
    }
    if (!senders || (t->has_per_node && (!nodes->sent_gb_s || !nodes->received_gb_s))) {
        free(senders);
        return -ENOMEM;
    }
    for (uint32_t nid = 0; nid < n; nid++) {
        struct emu_node_figures figures;

        emu_generator_node(gen, nid, &figures);
        received_units += figures.received_units;
        if (emu_generator_is_active(gen, nid)) {
            rates += t->jobs.n > 0 ? t->jobs.rates[nid] : 1;
            senders[nodes->n_senders++] = (double)figures.sent_units * scale;
        }
        if (t->has_per_node) {
            nodes->sent_gb_s[nid] = (double)figures.sent_units * scale;
            nodes->received_gb_s[nid] = (double)figures.received_units * scale;
        }
    }
    sample = emu_sample_of(senders, nodes->n_senders);
    nodes->jain = emu_jain_index(senders, nodes->n_senders);
    nodes->min_gb_s = sample.min;
    nodes->max_gb_s = sample.max;
    if (run->gap_ps > 0 && run->measured_ps > 0 && nodes->n_senders > 0)
        nodes->follows = (double)received_units * run->gap_ps / ((double)run->measured_ps * t->mean_units * rates);
    free(senders);
    if (t->jobs.n == 0)
        return 0;
    return emu_cli_jobs_measure(&t->jobs, gen, scale,
                                run->gap_ps > 0 ? t->mean_units * unit_bytes(t) * 1e3 / run->gap_ps : 0, run->jobs);
}

static json_t *array_json(const double *values, uint32_t n)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(array, json_real(values[i]));
    return array;
}

json_t *emu_cli_nodes_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run)
{
    const struct emu_cli_nodes *nodes = &run->nodes;
    json_t *object =
        json_pack("{s:I, s:f, s:f, s:f, s:f}", "senders", (json_int_t)nodes->n_senders, "jain_index", nodes->jain,
                  "min_gb_per_s", nodes->min_gb_s, "max_gb_per_s", nodes->max_gb_s, "accepted_share", nodes->follows);

    if (object && nodes->sent_gb_s) {
        json_object_set_new(object, "sent_gb_per_s", array_json(nodes->sent_gb_s, emu_machine_n_nodes(t->machine)));
        json_object_set_new(object, "received_gb_per_s",
                            array_json(nodes->received_gb_s, emu_machine_n_nodes(t->machine)));
    }
    return object;
}

/* ---- seeds ---- */

/* The figures that have means. */
struct means {
    struct emu_sample accepted_gb_s;
    struct emu_sample mean_ns;
    struct emu_sample p99_ns;
    struct emu_sample jain;
};

/* Of n_seeds runs that differ in their seeds only. False: out of memory. */
static bool means_of(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, struct means *means_out)
{
    size_t n = t->n_seeds;
    double *values = calloc(4 * n, sizeof(*values));

    if (!values)
        return false;
    for (size_t i = 0; i < n; i++) {
        values[i] = emu_cli_accepted_gb_s(t, &runs[i]);
        values[n + i] = emu_histogram_mean_ps(&runs[i].latency) / 1e3;
        values[2 * n + i] = emu_histogram_quantile_ps(&runs[i].latency, 0.99) / 1e3;
        values[3 * n + i] = runs[i].nodes.jain;
    }
    *means_out = (struct means){
        .accepted_gb_s = emu_sample_of(values, n),
        .mean_ns = emu_sample_of(values + n, n),
        .p99_ns = emu_sample_of(values + 2 * n, n),
        .jain = emu_sample_of(values + 3 * n, n),
    };
    free(values);
    return true;
}

static void add(struct emu_cli_table *table, const char *format, double value)
{
    char text[48];

    snprintf(text, sizeof(text), format, value);
    emu_cli_table_text(table, text);
}

static void add_sample(struct emu_cli_table *table, const char *format, const struct emu_sample *sample)
{
    add(table, format, sample->mean);
    add(table, format, sample->half_95);
}

static int print_seeds(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    static const struct emu_cli_column columns[] = {
        { "MODE", false },   { "LOAD", true }, { "ACCEPTED_GB/S", true }, { "+-", true },
        { "MEAN_NS", true }, { "+-", true },   { "P99_NS", true },        { "+-", true },
        { "JAIN", true },    { "+-", true },
    };
    struct emu_cli_table table;
    int r = 0;

    printf("\n# means over %zu seeds, with half of the 95 %% confidence interval\n", (size_t)t->n_seeds);
    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; r == 0 && i + t->n_seeds <= n; i += t->n_seeds) {
        struct means means;
        char load[32];

        if (!means_of(t, &runs[i], &means)) {
            r = -ENOMEM;
            break;
        }
        emu_cli_load_text(runs[i].load, load);
        emu_cli_table_text(&table, emu_cli_mode_name(runs[i].mode));
        emu_cli_table_text(&table, load);
        add_sample(&table, "%.4f", &means.accepted_gb_s);
        add_sample(&table, "%.1f", &means.mean_ns);
        add_sample(&table, "%.1f", &means.p99_ns);
        add_sample(&table, "%.4f", &means.jain);
    }
    if (r == 0)
        r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    return r;
}

static json_t *sample_json(const struct emu_sample *s)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "n", (json_int_t)s->n, "mean", s->mean, "half_95", s->half_95, "min",
                     s->min, "max", s->max);
}

json_t *emu_cli_means_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    json_t *rows = json_array();
    struct means means;

    for (size_t i = 0; !t->finds_saturation && i + t->n_seeds <= n; i += t->n_seeds) {
        if (!means_of(t, &runs[i], &means))
            break;
        (void)json_array_append_new(rows, json_pack("{s:s, s:f, s:o, s:o, s:o, s:o}", "mode",
                                                    emu_cli_mode_name(runs[i].mode), "load", runs[i].load,
                                                    "accepted_gb_per_s", sample_json(&means.accepted_gb_s), "mean_ns",
                                                    sample_json(&means.mean_ns), "p99_ns", sample_json(&means.p99_ns),
                                                    "jain_index", sample_json(&means.jain)));
    }
    return rows;
}

/* ---- saturation ---- */

/* Of the searches first .. first + n_seeds - 1, which are one mode's. */
static bool loads_of(const struct emu_cli_traffic *t, size_t first, struct emu_sample *load_out,
                     struct emu_sample *accepted_out)
{
    size_t n = t->n_seeds;
    double *values = calloc(2 * n, sizeof(*values));

    if (!values)
        return false;
    for (size_t i = 0; i < n; i++) {
        values[i] = t->saturations[first + i].search.followed;
        values[n + i] = t->saturations[first + i].accepted_gb_s;
    }
    *load_out = emu_sample_of(values, n);
    *accepted_out = emu_sample_of(values + n, n);
    free(values);
    return true;
}

static int print_saturation(const struct emu_cli_traffic *t)
{
    static const struct emu_cli_column columns[] = {
        { "MODE", false }, { "SATURATION", true },   { "+-", true },        { "ACCEPTED_GB/S", true },
        { "+-", true },    { "REFUSED_LOAD", true }, { "MOST_GB/S", true },
    };
    struct emu_cli_table table;
    int r = 0;

    printf("\n# saturation: highest load of which %g %% or more is accepted, and lowest of which less is\n",
           100 * EMU_SATURATION_SHARE);
    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i + t->n_seeds <= t->n_saturations; i += t->n_seeds) {
        const struct emu_cli_saturation *s = &t->saturations[i];
        struct emu_sample load, accepted;
        double refused = 0;
        double most = 0;

        for (size_t k = 0; k < t->n_seeds; k++) {
            refused = s[k].search.refused > refused ? s[k].search.refused : refused;
            most = s[k].most_gb_s > most ? s[k].most_gb_s : most;
        }
        if (!loads_of(t, i, &load, &accepted)) {
            r = -ENOMEM;
            break;
        }
        emu_cli_table_text(&table, emu_cli_mode_name(s->mode));
        add_sample(&table, "%.4f", &load);
        add_sample(&table, "%.4f", &accepted);
        if (refused > 0)
            add(&table, "%.4f", refused);
        else
            emu_cli_table_text(&table, "none");
        add(&table, "%.4f", most);
    }
    if (r == 0)
        r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    return r;
}

static json_t *searches_json(const struct emu_cli_traffic *t, size_t first)
{
    json_t *rows = json_array();

    for (size_t i = first; i < first + t->n_seeds; i++) {
        const struct emu_cli_saturation *s = &t->saturations[i];

        (void)json_array_append_new(rows, json_pack("{s:I, s:f, s:f, s:f, s:f, s:I}", "seed", (json_int_t)s->seed,
                                                    "load", s->search.followed, "refused_load", s->search.refused,
                                                    "accepted_gb_per_s", s->accepted_gb_s, "most_gb_per_s",
                                                    s->most_gb_s, "loads", (json_int_t)s->search.n_loads));
    }
    return rows;
}

json_t *emu_cli_saturation_json(const struct emu_cli_traffic *t)
{
    json_t *rows = json_array();
    struct emu_sample load, accepted;

    for (size_t i = 0; i + t->n_seeds <= t->n_saturations; i += t->n_seeds) {
        if (!loads_of(t, i, &load, &accepted))
            break;
        (void)json_array_append_new(
            rows, json_pack("{s:s, s:f, s:o, s:o, s:o}", "mode", emu_cli_mode_name(t->saturations[i].mode),
                            "accepted_share_min", EMU_SATURATION_SHARE, "load", sample_json(&load), "accepted_gb_per_s",
                            sample_json(&accepted), "searches", searches_json(t, i)));
    }
    return rows;
}

/* ---- jobs ---- */

static int print_jobs(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    static const struct emu_cli_column columns[] = {
        { "MODE", false },         { "LOAD", true },    { "SEED", true },     { "JOB", true },
        { "PATTERN", false },      { "NODES", true },   { "PLACE", false },   { "OFFERED_GB/S", true },
        { "ACCEPTED_GB/S", true }, { "MEAN_NS", true }, { "MIN_GB/S", true }, { "MAX_GB/S", true },
        { "JAIN", true },
    };
    struct emu_cli_table table;
    char load[32];
    int r;

    printf("\n# jobs, per node of each\n");
    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n * t->jobs.n; i++) {
        const struct emu_cli_traffic_run *run = &runs[i / t->jobs.n];
        const struct emu_cli_job *job = &t->jobs.jobs[i % t->jobs.n];
        const struct emu_cli_job_figures *f = &run->jobs[i % t->jobs.n];

        emu_cli_load_text(run->load, load);
        emu_cli_table_text(&table, emu_cli_mode_name(run->mode));
        emu_cli_table_text(&table, load);
        emu_cli_table_number(&table, run->seed);
        emu_cli_table_number(&table, i % t->jobs.n + 1);
        emu_cli_table_text(&table, emu_pattern_name(job->pattern));
        emu_cli_table_number(&table, job->n_nodes);
        emu_cli_table_text(&table, emu_cli_job_place_name(job->place));
        add(&table, "%.3f", f->offered_gb_s);
        add(&table, "%.3f", f->accepted_gb_s);
        add(&table, "%.0f", f->mean_ns);
        add(&table, "%.3f", f->min_gb_s);
        add(&table, "%.3f", f->max_gb_s);
        add(&table, "%.4f", f->jain);
    }
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    return r;
}

int emu_cli_print_means(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    int r = t->jobs.n > 0 ? print_jobs(t, runs, n) : 0;

    if (r < 0)
        return r;
    if (t->finds_saturation)
        return print_saturation(t);
    return t->n_seeds > 1 ? print_seeds(t, runs, n) : 0;
}
