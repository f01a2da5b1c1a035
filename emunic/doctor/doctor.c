/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic-doctor: what `emunic doctor` becomes. Findings of this folder as tables, or as their JSON.
 *
 * A program of its own, because loading libfabric and libibverbs with all their providers takes a hundred times as long
 * as starting `emunic` does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/cli/text_table.h"
#include "emunic/doctor/doctor.h"

#define N_COLUMNS(columns) (sizeof(columns) / sizeof((columns)[0]))

struct request {
    const char *provider; /* NULL: the best */
    bool is_json;
};

static const struct emu_option options[] = {
    { "provider", 'p', "NAME",
      "the provider of libfabric to take, or a part of its name (default: EMUNIC_PROVIDER, else the best)",
      EMU_OPTION_TEXT(struct request, provider) },
    { "json", 'j', NULL, "one JSON object", EMU_OPTION_SET(struct request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "doctor",
    .usage = "emunic doctor [--provider NAME] [--json]",
    .about =
        "Show what this host has for emulated machines: cores and caches, RDMA devices, libfabric's providers, what\n"
        "the kernel permits; what would be chosen to reach other hosts, where emunic would run, and what would\n"
        "make it faster. Returns 1 when something is missing without which nothing works.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic doctor --json | jq '.permissions[] | select(.state != \"good\")'\n",
};

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static void put_text(struct emu_cli_table *table, const json_t *object, const char *key)
{
    const char *text = text_of(object, key);

    emu_cli_table_text(table, *text ? text : "-");
}

/* "-" for what is not known. */
static void put_rate(struct emu_cli_table *table, const json_t *object)
{
    double gbit_per_s = json_number_value(json_object_get(object, "gbit_per_s"));
    char text[32] = "-";

    if (gbit_per_s > 0)
        snprintf(text, sizeof(text), "%g", gbit_per_s);
    emu_cli_table_text(table, text);
}

static int end_table(struct emu_cli_table *table)
{
    int r = emu_cli_table_print(table, 2, stdout);

    emu_cli_table_fini(table);
    return r;
}

static void print_bytes(json_int_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 1024 && unit + 1 < N_COLUMNS(units); unit++)
        value /= 1024;
    printf("%.4g %s", value, units[unit]);
}

static void print_cores(const json_t *cores)
{
    const json_t *cache;
    size_t i;

    printf("cores\n  %lld processors (%lld allowed: %s) of %lld cores in %lld packages, %lld NUMA nodes, ",
           (long long)number_of(cores, "processors"), (long long)number_of(cores, "allowed"),
           text_of(cores, "allowed_set"), (long long)number_of(cores, "cores"), (long long)number_of(cores, "packages"),
           (long long)number_of(cores, "numa_nodes"));
    print_bytes(number_of(cores, "memory_bytes"));
    printf("\n");
    json_array_foreach(json_object_get(cores, "caches"), i, cache) {
        printf("  L%lld: %lld of ", (long long)number_of(cache, "level"), (long long)number_of(cache, "count"));
        print_bytes(number_of(cache, "bytes"));
        printf(", each for %lld\n", (long long)number_of(cache, "processors"));
    }
}

static int print_devices(const json_t *devices)
{
    static const struct emu_cli_column columns[] = {
        { "DEVICE", false }, { "PORT", true }, { "STATE", false }, { "LINK", false }, { "GBIT/S", true },
        { "MTU", true },     { "NUMA", true }, { "NEAR", false },  { "GID", false },
    };
    struct emu_cli_table table;
    const json_t *device;
    size_t i;

    printf("RDMA devices\n");
    if (json_array_size(devices) == 0) {
        printf("  none\n");
        return 0;
    }
    emu_cli_table_init(&table, columns, N_COLUMNS(columns));
    json_array_foreach(devices, i, device) {
        const json_t *ports = json_object_get(device, "ports");
        size_t n_rows = json_array_size(ports) > 0 ? json_array_size(ports) : 1;

        for (size_t p = 0; p < n_rows; p++) {
            const json_t *port = json_array_get(ports, p);

            put_text(&table, device, "name");
            emu_cli_table_number(&table, (uint64_t)number_of(port, "port"));
            emu_cli_table_text(&table, port ? text_of(port, "state") : text_of(device, "error"));
            put_text(&table, port, "link");
            put_rate(&table, port);
            emu_cli_table_number(&table, (uint64_t)number_of(port, "mtu_bytes"));
            if (number_of(device, "numa_node") < 0)
                emu_cli_table_text(&table, "-");
            else
                emu_cli_table_number(&table, (uint64_t)number_of(device, "numa_node"));
            put_text(&table, device, "near");
            put_text(&table, port, "gid");
        }
    }
    return end_table(&table);
}

static int print_providers(const json_t *providers)
{
    static const struct emu_cli_column columns[] = {
        { "PROVIDER", false },
        { "DOMAIN", false },
        { "FABRIC", false },
        { "GBIT/S", true },
    };
    struct emu_cli_table table;
    const json_t *provider;
    size_t i;

    printf("libfabric's providers with reliable datagrams and remote memory access, best first\n");
    if (json_array_size(providers) == 0) {
        printf("  none\n");
        return 0;
    }
    emu_cli_table_init(&table, columns, N_COLUMNS(columns));
    json_array_foreach(providers, i, provider) {
        put_text(&table, provider, "provider");
        put_text(&table, provider, "domain");
        put_text(&table, provider, "fabric");
        put_rate(&table, provider);
    }
    return end_table(&table);
}

static int print_permissions(const json_t *permissions)
{
    static const struct emu_cli_column columns[] = {
        { "NAME", false },
        { "STATE", false },
        { "FOUND", false },
        { "FOR", false },
    };
    struct emu_cli_table table;
    const json_t *check;
    size_t i;

    printf("permissions\n");
    emu_cli_table_init(&table, columns, N_COLUMNS(columns));
    json_array_foreach(permissions, i, check) {
        put_text(&table, check, "name");
        put_text(&table, check, "state");
        put_text(&table, check, "found");
        put_text(&table, check, "purpose");
    }
    return end_table(&table);
}

static void print_choice(const json_t *report)
{
    const json_t *chosen = json_object_get(report, "chosen");
    const json_t *placement = json_object_get(report, "placement");
    const json_t *advice = json_object_get(report, "advice");
    const json_t *line;
    size_t i;

    if (json_is_object(chosen))
        printf("between hosts\n  %s on %s: %s\n", text_of(chosen, "provider"), text_of(chosen, "domain"),
               text_of(chosen, "why"));
    if (json_is_object(placement))
        printf("where emunic runs\n  on processors %s: %s\n", text_of(placement, "processors"),
               text_of(placement, "why"));
    if (json_array_size(advice) > 0)
        printf("what would help\n");
    json_array_foreach(advice, i, line)
        printf("  %s\n", json_string_value(line));
}

static int print_report(const json_t *report)
{
    int r;

    print_cores(json_object_get(report, "cores"));
    r = print_devices(json_object_get(report, "devices"));
    if (r == 0)
        r = print_providers(json_object_get(report, "providers"));
    if (r == 0)
        r = print_permissions(json_object_get(report, "permissions"));
    if (r < 0)
        return emu_cli_fail("doctor", "out of memory");
    print_choice(report);
    return EMU_EXIT_DONE;
}

static int print_json(const json_t *report)
{
    if (json_dumpf(report, stdout, JSON_COMPACT) < 0 || putchar('\n') == EOF || fflush(stdout) != 0)
        return emu_cli_fail("doctor", "cannot write the report: %s", strerror(errno));
    return EMU_EXIT_DONE;
}

int main(int argc, char **argv)
{
    struct request request = { .provider = getenv("EMUNIC_PROVIDER") };
    json_t *report;
    int status = emu_options_parse(&command, argc, argv, &request, NULL);

    if (status != EMU_PROCEED)
        return status;
    report = emu_doctor_report(request.provider && *request.provider ? request.provider : NULL);
    if (!report)
        return emu_cli_fail("doctor", "out of memory");
    status = request.is_json ? print_json(report) : print_report(report);
    if (status == EMU_EXIT_DONE && number_of(report, "missing") > 0)
        status = EMU_EXIT_FAILED;
    json_decref(report);
    return status;
}
