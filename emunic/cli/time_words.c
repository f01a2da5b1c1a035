/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time on the command line: what moves the clocks of ranks. The date of its begin is the same in each run, so
 * that a program that prints it prints the same.
 */
#include "emunic/cli/time_words.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/virtual_clock.h"
#include "emunic/cli/cli.h"
#include "emunic/fabric/node_params.h"
#include "emunic/fabric/sim/sim.h"

#define FACTOR_MAX    1000.0
#define FIXED_MAX     1e9                    /* ns: a second */
#define MAX_LAG       1.0                    /* percent of the run */
#define POLL_PS       10000u                 /* an empty poll: a load and a branch of a core of the time */
#define BIT_ERRORS    1e-4                   /* the longest packets get through now and then */
#define EPOCH_NS      1262304000000000000ull /* 2010-01-01 */
#define LENGTH_MIN_PS 1e3
#define LENGTH_MAX_PS 3.6e15 /* an hour */
#define MEASURED      "measured"
#define FIXED         "fixed:"

const char *const emu_cli_times[] = { "functional", "virtual", NULL };
const char *const emu_cli_clocks[] = { "virtual", "real", NULL };

/* A number behind the words, from min to max. */
static bool read_number(const char *text, double min, double max, double *number_out)
{
    char *end;

    *number_out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*number_out) && *number_out >= min && *number_out <= max;
}

static bool read_compute(const char *text, struct emu_time_options *options)
{
    double number;

    options->factor_ppm = 1000000;
    if (strcmp(text, "none") == 0) {
        options->compute = EMU_VCLOCK_COMPUTE_NONE;
        return true;
    }
    if (strncmp(text, FIXED, strlen(FIXED)) == 0) {
        options->compute = EMU_VCLOCK_COMPUTE_FIXED;
        if (!read_number(text + strlen(FIXED), 1e-3, FIXED_MAX, &number))
            return false;
        options->fixed_ps = (uint64_t)(number * 1000);
        return true;
    }
    if (strncmp(text, MEASURED, strlen(MEASURED)) != 0)
        return false;
    options->compute = EMU_VCLOCK_COMPUTE_MEASURED;
    text += strlen(MEASURED);
    if (text[0] == '\0')
        return true;
    if (text[0] != ':' || !read_number(text + 1, 1e-6, FACTOR_MAX, &number))
        return false;
    options->factor_ppm = (uint32_t)(number * 1e6);
    return true;
}

bool emu_time_compute_is_valid(const char *text)
{
    struct emu_time_options options = { 0 };

    return read_compute(text, &options);
}

bool emu_time_max_lag_is_valid(const char *text)
{
    double percent;

    return read_number(text, 0, 100, &percent);
}

bool emu_time_bit_errors_is_valid(const char *text)
{
    double rate;

    return read_number(text, 0, BIT_ERRORS, &rate);
}

const char *emu_cli_time_option(const struct emu_cli_time *time)
{
    const struct {
        const char *name;
        const char *value;
    } given[] = { { "--compute", time->compute }, { "--max-lag", time->max_lag },
                  { "--trace", time->trace },     { "--link-trace", time->link_trace },
                  { "--every", time->every },     { "--bit-errors", time->bit_errors } };

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        if (given[i].value)
            return given[i].name;
    }
    return time->n_threads > 0 ? "--threads" : NULL;
}

/* The daemon opens it: that it can be written is seen here, before anything is started. NULL is fine. */
static int keep_path(const char *verb, const char *option, const char *path, char **kept_out)
{
    FILE *file = path ? fopen(path, "we") : NULL;

    if (!path)
        return EMU_EXIT_DONE;
    if (!file)
        return emu_cli_fail(verb, "--%s: %s: %s", option, path, strerror(errno));
    fclose(file);
    *kept_out = strdup(path);
    return *kept_out ? EMU_EXIT_DONE : emu_cli_fail(verb, "out of memory");
}

int emu_cli_time_read(const char *verb, struct emu_cli_time *time)
{
    struct emu_time_options *options = &time->options;
    double percent = MAX_LAG;
    int status;

    if (!time->is_virtual && emu_cli_time_option(time))
        return emu_cli_usage(verb, "%s is for --time virtual", emu_cli_time_option(time));
    if (time->every && !time->link_trace)
        return emu_cli_usage(verb, "--every is for --link-trace");
    options->factor_ppm = 1000000;
    options->poll_ps = POLL_PS;
    options->epoch_ns = EPOCH_NS;
    if (time->compute)
        (void)read_compute(time->compute, options);
    if (time->max_lag)
        (void)read_number(time->max_lag, 0, 100, &percent);
    options->max_lag_ppm = (uint32_t)(percent * 1e4);
    if (time->bit_errors)
        (void)read_number(time->bit_errors, 0, BIT_ERRORS, &options->bit_error_rate);
    options->n_threads = (uint32_t)time->n_threads;
    options->links_every_ps = emu_time_length_ps(time->every ? time->every : "10us");
    status = keep_path(verb, "trace", time->trace, &time->trace_path);
    if (status == EMU_EXIT_DONE)
        status = keep_path(verb, "link-trace", time->link_trace, &time->link_trace_path);
    options->trace = time->trace_path;
    options->links = time->link_trace_path;
    return status;
}

int emu_cli_time_check(const char *verb, const struct emu_cli_time *time, const struct emu_machine *machine)
{
    uint32_t n_routers = emu_machine_n_routers(machine);

    static_assert(EMU_CLI_THREADS_MAX == EMU_SIM_PARTS_MAX, "what the simulator can tell apart");
    if (time->is_virtual && !emu_machine_node_params(machine))
        return emu_cli_usage(verb, "--time virtual: machine %s has no host parameters (section host:)",
                             emu_machine_name(machine));
    if (time->n_threads > n_routers)
        return emu_cli_usage(verb, "--threads: %u are more than the %u routers", (unsigned)time->n_threads, n_routers);
    if (time->n_threads > 1 && time->options.keeps_paths)
        return emu_cli_usage(verb, "--paths needs --threads 1");
    return EMU_EXIT_DONE;
}

void emu_cli_time_free(struct emu_cli_time *time)
{
    free(time->trace_path);
    free(time->link_trace_path);
}

uint64_t emu_time_length_ps(const char *text)
{
    static const struct {
        const char *name;
        double ps;
    } units[] = { { "ns", 1e3 }, { "us", 1e6 }, { "ms", 1e9 }, { "s", 1e12 } };
    char *end;
    double number = strtod(text, &end);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0 && isdigit((unsigned char)text[0]) &&
            number * units[i].ps >= LENGTH_MIN_PS && number * units[i].ps <= LENGTH_MAX_PS)
            return (uint64_t)(number * units[i].ps);
    }
    return 0;
}

bool emu_time_length_is_valid(const char *text)
{
    return emu_time_length_ps(text) > 0;
}
