/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of `emunic sim traffic`: the table, the JSON object, and the files that simplot.py draws.
 *
 * Files are tables with tabs and one line of titles:
 *   latency-MODE-LOAD.tsv   low_ns high_ns packets               of created to delivered
 *   links-MODE-LOAD.tsv     a row per link: class, ends with coordinates, packets, units, utilisation, stalls, errors
 *   vcs-MODE-LOAD.tsv       link, vc, packets, mean occupancy in units
 */
#include "emunic/cli/sim_traffic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/heat.h"
#include "emunic/cli/text_table.h"
#include "emunic/fabric/link.h"

static const char *const mode_names[EMU_MODES] = {
    [EMU_MODE_ADAPTIVE_0] = "adaptive-0", [EMU_MODE_ADAPTIVE_1] = "adaptive-1",
    [EMU_MODE_ADAPTIVE_2] = "adaptive-2", [EMU_MODE_ADAPTIVE_3] = "adaptive-3",
    [EMU_MODE_MIN_HASH] = "min-hash",     [EMU_MODE_NMIN_HASH] = "nmin-hash",
    [EMU_MODE_IN_ORDER] = "in-order",     [EMU_MODE_MINIMAL] = "minimal",
    [EMU_MODE_VALIANT] = "valiant",       [EMU_MODE_DETERMINISTIC] = "deterministic",
};

const char *emu_cli_mode_name(enum emu_route_mode mode)
{
    return mode_names[mode];
}

bool emu_cli_parse_mode(const char *text, enum emu_route_mode *mode_out)
{
    for (int mode = 0; mode < EMU_MODES; mode++) {
        if (strcmp(text, mode_names[mode]) == 0) {
            *mode_out = (enum emu_route_mode)mode;
            return true;
        }
    }
    return false;
}

void emu_cli_load_text(double load, char text_out[32])
{
    if (load > 0)
        snprintf(text_out, 32, "%g", load);
    else
        snprintf(text_out, 32, "max");
}

/* ---- derived figures ---- */

static double unit_bytes(const struct emu_cli_traffic *t)
{
    return emu_machine_nic(t->machine)->format.flit_bits / 8.0;
}

/* Of the requests alone. 0: no rate, each as fast as the network takes it. */
static double offered_gb_s(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run)
{
    return run->gap_ps > 0 ? t->mean_units * unit_bytes(t) * 1e3 / run->gap_ps : 0;
}

static const char *pattern_text(const struct emu_cli_traffic *t)
{
    if (t->trace_path)
        return t->trace_path;
    return t->jobs.n > 0 ? "jobs" : emu_pattern_name(t->options.pattern);
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

static double per_second(uint64_t count, const struct emu_cli_traffic_run *run)
{
    return run->seconds > 0 ? (double)count / run->seconds : 0;
}

/* A unit that crosses a link between routers, as simulators of flits count. */
static double unit_hops(const struct emu_cli_traffic_run *run)
{
    return (double)run->totals.packet_hops * ratio(run->totals.delivered_units, run->totals.delivered);
}

/* ---- table ---- */

static const struct emu_cli_column columns[] = {
    { "MODE", false },     { "LOAD", true },    { "OFFERED_GB/S", true }, { "ACCEPTED_GB/S", true },
    { "DELIVERED", true }, { "MEAN_NS", true }, { "P50_NS", true },       { "P99_NS", true },
    { "MAX_NS", true },    { "HOPS", true },    { "NONMIN_%", true },     { "LOST", true },
    { "JAIN", true },      { "SEED", true },    { "RUN", false },
};

static void add(struct emu_cli_table *table, const char *format, double value)
{
    char text[48];

    snprintf(text, sizeof(text), format, value);
    emu_cli_table_text(table, text);
}

static void add_row(struct emu_cli_table *table, const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run)
{
    char load[32];

    emu_cli_load_text(run->load, load);
    emu_cli_table_text(table, emu_cli_mode_name(run->mode));
    emu_cli_table_text(table, load);
    if (run->load > 0)
        add(table, "%.3f", offered_gb_s(t, run));
    else
        emu_cli_table_text(table, "-");
    add(table, "%.3f", emu_cli_accepted_gb_s(t, run));
    emu_cli_table_number(table, run->totals.delivered);
    add(table, "%.0f", emu_histogram_mean_ps(&run->latency) / 1e3);
    add(table, "%.0f", emu_histogram_quantile_ps(&run->latency, 0.5) / 1e3);
    add(table, "%.0f", emu_histogram_quantile_ps(&run->latency, 0.99) / 1e3);
    add(table, "%.0f", (double)run->totals.latency_max_ps / 1e3);
    add(table, "%.2f", ratio(run->received_hops, run->received));
    add(table, "%.1f", 100 * ratio(run->totals.nonminimal, run->totals.delivered));
    emu_cli_table_number(table, run->totals.lost + run->totals.unroutable);
    add(table, "%.4f", run->nodes.jain);
    emu_cli_table_number(table, run->seed);
    emu_cli_table_text(table, run->kind);
}

/* Wall-clock speed of the host; unit-hops are what simulators of flits count. */
static const struct emu_cli_column speed_columns[] = {
    { "MODE", false },     { "LOAD", true },          { "SECONDS", true },     { "CPU_SECONDS", true },
    { "PACKETS/S", true }, { "PACKET_HOPS/S", true }, { "UNIT_HOPS/S", true }, { "NS/PACKET_HOP", true },
    { "NS/PACKET", true }, { "BYTES/NODE", true },    { "THREADS", true },     { "PROCESSES", true },
};

static double ns_per(const struct emu_cli_traffic_run *run, uint64_t count)
{
    return count == 0 ? 0 : run->seconds * 1e9 / (double)count;
}

static void add_speed(struct emu_cli_table *table, const struct emu_cli_traffic *t,
                      const struct emu_cli_traffic_run *run)
{
    char load[32];

    emu_cli_load_text(run->load, load);
    emu_cli_table_text(table, emu_cli_mode_name(run->mode));
    emu_cli_table_text(table, load);
    add(table, "%.3f", run->seconds);
    add(table, "%.3f", run->cpu_seconds);
    add(table, "%.3g", per_second(run->totals.delivered, run));
    add(table, "%.3g", per_second(run->totals.packet_hops, run));
    add(table, "%.3g", run->seconds > 0 ? unit_hops(run) / run->seconds : 0);
    add(table, "%.1f", ns_per(run, run->totals.packet_hops));
    add(table, "%.0f", ns_per(run, run->totals.delivered));
    add(table, "%.0f", (double)run->memory_bytes / emu_machine_n_nodes(t->machine));
    emu_cli_table_number(table, t->n_threads);
    emu_cli_table_number(table, t->n_processes);
}

/* What programs are compared by. */
static void print_ends(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    for (size_t i = 0; t->trace_path && i < n; i++)
        printf("# %s, seed %" PRIu64 ": last message after %.3f us\n", emu_cli_mode_name(runs[i].mode), runs[i].seed,
               (double)runs[i].last_ps / 1e6);
}

static int print_speed(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    struct emu_cli_table table;
    int r;

    printf("\n# speed of the simulation on this host\n");
    emu_cli_table_init(&table, speed_columns, sizeof(speed_columns) / sizeof(speed_columns[0]));
    for (size_t i = 0; i < n; i++)
        add_speed(&table, t, &runs[i]);
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    return r;
}

int emu_cli_sim_print(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    struct emu_cli_table table;
    int r;

    printf("# %s: %u nodes, %u routers, %s, %g units per packet, seed %" PRIu64 "\n", t->spec,
           emu_machine_n_nodes(t->machine), emu_machine_n_routers(t->machine), pattern_text(t), t->mean_units,
           t->options.seed);
    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n; i++)
        add_row(&table, t, &runs[i]);
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    if (r == 0) {
        print_ends(t, runs, n);
        r = emu_cli_print_means(t, runs, n);
    }
    if (r == 0)
        r = print_speed(t, runs, n);
    if (r == 0 && fflush(stdout) == EOF)
        r = -errno;
    return r;
}

/* ---- JSON ---- */

static json_t *latency_json(const struct emu_histogram *h)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "packets", (json_int_t)h->count, "mean_ns",
                     emu_histogram_mean_ps(h) / 1e3, "p50_ns", emu_histogram_quantile_ps(h, 0.5) / 1e3, "p90_ns",
                     emu_histogram_quantile_ps(h, 0.9) / 1e3, "p99_ns", emu_histogram_quantile_ps(h, 0.99) / 1e3,
                     "p999_ns", emu_histogram_quantile_ps(h, 0.999) / 1e3);
}

static json_t *speed_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:f}", "seconds", run->seconds, "cpu_seconds",
                     run->cpu_seconds, "packets_per_s", per_second(run->totals.delivered, run), "packet_hops_per_s",
                     per_second(run->totals.packet_hops, run), "unit_hops_per_s",
                     run->seconds > 0 ? unit_hops(run) / run->seconds : 0.0, "ns_per_packet_hop",
                     ns_per(run, run->totals.packet_hops), "ns_per_packet", ns_per(run, run->totals.delivered),
                     "memory_bytes", (json_int_t)run->memory_bytes, "memory_bytes_of_a_process",
                     (json_int_t)run->memory_bytes_most, "memory_bytes_per_node",
                     (double)run->memory_bytes / emu_machine_n_nodes(t->machine));
}

static json_t *run_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run)
{
    char hash[24];
    json_t *object;

    snprintf(hash, sizeof(hash), "%016" PRIx64, run->trace_hash);
    object = json_pack("{s:s, s:f, s:s, s:f, s:f, s:f}", "mode", emu_cli_mode_name(run->mode), "load", run->load, "run",
                       run->kind, "offered_gb_per_s", offered_gb_s(t, run), "accepted_gb_per_s",
                       emu_cli_accepted_gb_s(t, run), "measured_ns", (double)run->measured_ps / 1e3);
    if (!object)
        return NULL;
    json_object_update_new(
        object, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:s}", "delivered",
                          (json_int_t)run->totals.delivered, "delivered_units", (json_int_t)run->totals.delivered_units,
                          "lost", (json_int_t)run->totals.lost, "unroutable", (json_int_t)run->totals.unroutable,
                          "in_network", (json_int_t)run->totals.in_network, "packet_hops",
                          (json_int_t)run->totals.packet_hops, "mean_hops", ratio(run->received_hops, run->received),
                          "nonminimal_share", ratio(run->totals.nonminimal, run->totals.delivered), "latency_max_ns",
                          (double)run->totals.latency_max_ps / 1e3, "trace_hash", hash));
    json_object_set_new(object, "latency", latency_json(&run->latency));
    json_object_set_new(object, "network_latency", latency_json(&run->network));
    if (t->options.response_units != 0)
        json_object_set_new(object, "round_trip", latency_json(&run->round_trip));
    if (t->trace_path)
        json_object_set_new(object, "last_message_ns", json_real((double)run->last_ps / 1e3));
    json_object_set_new(object, "seed", json_integer((json_int_t)run->seed));
    json_object_set_new(object, "nodes", emu_cli_nodes_json(t, run));
    if (t->jobs.n > 0)
        json_object_set_new(object, "jobs", emu_cli_jobs_json(&t->jobs, run->jobs));
    json_object_set_new(object, "speed", speed_json(t, run));
    return object;
}

json_t *emu_cli_sim_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n)
{
    json_t *rows = json_array();
    json_t *object;

    for (size_t i = 0; i < n; i++) {
        if (json_array_append_new(rows, run_json(t, &runs[i])) < 0) {
            json_decref(rows);
            return NULL;
        }
    }
    object =
        json_pack("{s:i, s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "schema", 1, "machine", t->spec,
                  "topology", emu_machine_topology(t->machine), "nodes", (json_int_t)emu_machine_n_nodes(t->machine),
                  "routers", (json_int_t)emu_machine_n_routers(t->machine), "pattern", pattern_text(t), "units",
                  (json_int_t)t->options.units, "response_units", (json_int_t)t->options.response_units, "seed",
                  (json_int_t)t->options.seed, "threads", (json_int_t)t->n_threads, "processes",
                  (json_int_t)t->n_processes, "runs", rows);
    if (object && t->options.sizes.n > 0)
        json_object_set_new(object, "mean_units", json_real(t->mean_units));
    if (object && t->n_seeds > 1)
        json_object_set_new(object, "means", emu_cli_means_json(t, runs, n));
    if (object && t->finds_saturation)
        json_object_set_new(object, "saturation", emu_cli_saturation_json(t));
    return object;
}

/* ---- files ---- */

/* Of several processes the first writes; the others do the same to nothing. All can or none. */
static FILE *open_file(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run, const char *what)
{
    bool is_writer = !t->world || t->world->rank == 0;
    uint64_t has_failed;
    char path[4200];
    char load[32];
    FILE *file;

    emu_cli_load_text(run->load, load);
    snprintf(path, sizeof(path), "%s/%s-%s-%s.tsv", t->output, what, emu_cli_mode_name(run->mode), load);
    file = fopen(is_writer ? path : "/dev/null", "we");
    if (!file)
        (void)emu_cli_fail("sim", "--output: %s: %s", path, strerror(errno));
    has_failed = !file;
    if (t->world)
        t->world->reduce(t->world->ctx, EMU_SIM_MOST, &has_failed, 1);
    if (has_failed && file) {
        fclose(file);
        file = NULL;
    }
    return file;
}

#define LINK_FIGURES (7 + 2 * EMU_VCS_MAX)
#define LINKS_READ   128 /* at a time, where they come from several processes */

/* Reads links in their order. */
struct link_reader {
    const struct emu_sim *sim;
    const struct emu_sim_world *world;
    uint32_t n_links;
    uint64_t figures[LINKS_READ][LINK_FIGURES];
};

static void to_figures(const struct emu_sim_link_stats *s, uint64_t figures_out[LINK_FIGURES])
{
    const uint64_t first[7] = { s->packets,    s->units,           s->busy_ps, s->stall_ps,
                                s->crc_errors, s->retransmissions, s->lanes_up };

    memcpy(figures_out, first, sizeof(first));
    memcpy(figures_out + 7, s->vc_packets, sizeof(s->vc_packets));
    memcpy(figures_out + 7 + EMU_VCS_MAX, s->vc_occupancy, sizeof(s->vc_occupancy));
}

static struct emu_sim_link_stats of_figures(const uint64_t figures[LINK_FIGURES])
{
    struct emu_sim_link_stats s = { .packets = figures[0],
                                    .units = figures[1],
                                    .busy_ps = figures[2],
                                    .stall_ps = figures[3],
                                    .crc_errors = figures[4],
                                    .retransmissions = figures[5],
                                    .lanes_up = (uint32_t)figures[6] };

    memcpy(s.vc_packets, figures + 7, sizeof(s.vc_packets));
    memcpy(s.vc_occupancy, figures + 7 + EMU_VCS_MAX, sizeof(s.vc_occupancy));
    return s;
}

static struct emu_sim_link_stats read_link(struct link_reader *reader, uint32_t id)
{
    struct emu_sim_link_stats s;

    if (!reader->world) {
        emu_sim_link_stats(reader->sim, id, &s);
        return s;
    }
    for (uint32_t i = 0; id % LINKS_READ == 0 && i < LINKS_READ && id + i < reader->n_links; i++) {
        emu_sim_link_stats(reader->sim, id + i, &s);
        to_figures(&s, reader->figures[i]);
    }
    if (id % LINKS_READ == 0)
        reader->world->reduce(reader->world->ctx, EMU_SIM_SUM, reader->figures[0],
                              sizeof(reader->figures) / sizeof(reader->figures[0][0]));
    return of_figures(reader->figures[id % LINKS_READ]);
}

/* A full disk shows here at the latest. */
static int close_file(FILE *file, const char *what)
{
    bool is_bad = ferror(file);

    if (fclose(file) == 0 && !is_bad)
        return 0;
    (void)emu_cli_fail("sim", "--output: %s: cannot be written", what);
    return -EIO;
}

static int write_latency(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run)
{
    FILE *file = open_file(t, run, "latency");

    if (!file)
        return -EIO;
    fprintf(file, "low_ns\thigh_ns\tpackets\n");
    for (uint32_t b = 0; b < EMU_HISTOGRAM_BUCKETS; b++) {
        if (run->latency.buckets[b] != 0)
            fprintf(file, "%.3f\t%.3f\t%" PRIu64 "\n", (double)emu_histogram_low_ps(b) / 1e3,
                    (double)emu_histogram_low_ps(b + 1) / 1e3, run->latency.buckets[b]);
    }
    return close_file(file, "latency");
}

static int write_links(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run,
                       const struct emu_sim *sim)
{
    uint32_t *places = emu_heat_places(t->machine);
    double measured = run->measured_ps ? (double)run->measured_ps : 1;
    struct link_reader reader = { .sim = sim, .world = t->world, .n_links = emu_machine_n_links(t->machine) };
    FILE *file;

    if (!places) {
        (void)emu_cli_fail("sim", "out of memory");
        return -ENOMEM;
    }
    file = open_file(t, run, "links");
    if (file) {
        emu_heat_print_head(file);
        fprintf(file, "\tpackets\tunits\tutilisation\tstalled\tcrc_errors\tretransmissions\tlanes_up\n");
    }
    for (uint32_t id = 0; file && id < emu_machine_n_links(t->machine); id++) {
        struct emu_sim_link_stats s = read_link(&reader, id);

        emu_heat_print_link(file, t->machine, id, places);
        fprintf(file, "\t%" PRIu64 "\t%" PRIu64 "\t%.5f\t%.5f\t%" PRIu64 "\t%" PRIu64 "\t%u\n", s.packets, s.units,
                (double)s.busy_ps / measured, (double)s.stall_ps / measured, s.crc_errors, s.retransmissions,
                s.lanes_up);
    }
    free(places);
    return file ? close_file(file, "links") : -EIO;
}

static int write_vcs(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run, const struct emu_sim *sim)
{
    double measured = run->measured_ps ? (double)run->measured_ps : 1;
    struct link_reader reader = { .sim = sim, .world = t->world, .n_links = emu_machine_n_links(t->machine) };
    FILE *file = open_file(t, run, "vcs");

    if (!file)
        return -EIO;
    fprintf(file, "link\tclass\tvc\tpackets\toccupancy_units\n");
    for (uint32_t id = 0; id < emu_machine_n_links(t->machine); id++) {
        struct emu_sim_link_stats s = read_link(&reader, id);
        struct emu_link link;

        if (emu_link_get(t->machine, id, &link) < 0)
            continue;
        for (uint32_t vc = 0; vc < EMU_VCS_MAX; vc++) {
            if (s.vc_packets[vc] != 0)
                fprintf(file, "%u\t%s\t%u\t%" PRIu64 "\t%.4f\n", id, emu_link_class_name(link.link_class), vc,
                        s.vc_packets[vc], (double)s.vc_occupancy[vc] / measured);
        }
    }
    return close_file(file, "vcs");
}

int emu_cli_sim_write(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run, const struct emu_sim *sim)
{
    int r = 0;

    if (t->record & EMU_CLI_RECORD_LATENCY)
        r = write_latency(t, run);
    if (r == 0 && (t->record & EMU_CLI_RECORD_LINKS))
        r = write_links(t, run, sim);
    if (r == 0 && (t->record & EMU_CLI_RECORD_VCS))
        r = write_vcs(t, run, sim);
    return r;
}
