/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heat maps of links: a table of tabulators that simplot.py draws.
 *
 * A live server knows what its links carried, not for how long: each link's time on the wire is shown as a part of the
 * busiest link's. The table tells links that are down by lanes_up 0; links without any traffic or fault leave that
 * column empty.
 */
#include "emunic/cli/heat.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/cli/cli.h"
#include "emunic/fabric/link.h"

uint32_t *emu_heat_places(const struct emu_machine *m)
{
    uint32_t *places = calloc(emu_machine_n_routers(m), 3 * sizeof(*places));
    struct emu_place place;

    for (uint32_t nid = 0; places && nid < emu_machine_n_nodes(m); nid++) {
        if (emu_machine_place(m, nid, &place) == 0) {
            places[3 * place.router] = place.mesh_x;
            places[3 * place.router + 1] = place.mesh_y;
            places[3 * place.router + 2] = place.mesh_z;
        }
    }
    return places;
}

/* Where a link's end is: its router, or the router of its NIC. */
static uint32_t router_of(const struct emu_machine *m, const struct emu_link_end *end)
{
    struct emu_place place = { 0 };

    if (end->kind == EMU_END_ROUTER)
        return end->index;
    (void)emu_machine_place(m, end->index, &place);
    return place.router;
}

void emu_heat_print_head(FILE *out)
{
    fprintf(out, "link\tclass\tfrom\tfrom_x\tfrom_y\tfrom_z\tto\tto_x\tto_y\tto_z\tnumber");
}

void emu_heat_print_link(FILE *out, const struct emu_machine *m, uint32_t id, const uint32_t *places)
{
    struct emu_link link;
    const uint32_t *from;
    const uint32_t *to;

    if (emu_link_get(m, id, &link) < 0)
        return;
    from = &places[3 * (size_t)router_of(m, &link.from)];
    to = &places[3 * (size_t)router_of(m, &link.to)];
    fprintf(out, "%u\t%s\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%u", id, emu_link_class_name(link.link_class),
            router_of(m, &link.from), from[0], from[1], from[2], router_of(m, &link.to), to[0], to[1], to[2],
            link.number);
}

int emu_heat_draw(const char *verb, const char *folder)
{
    char plotter[PATH_MAX];
    char *argv[] = { (char *)"/usr/bin/python3", plotter, (char *)folder, NULL };
    int status = 0;
    pid_t pid;

    if (emu_cli_plotter(plotter) < 0)
        return emu_cli_fail(verb, "%s is missing", plotter);
    if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        return emu_cli_fail(verb, "no pictures: %s cannot be run", argv[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? EMU_EXIT_DONE :
                                                           emu_cli_fail(verb, "the pictures were not made");
}

/* ---- of a live server ---- */

/* Time on the wire, in any unit. */
static double time_of(const json_t *link)
{
    double rate = (double)json_integer_value(json_object_get(link, "data_bytes_per_s"));
    double flits = (double)json_integer_value(json_object_get(link, "flits"));

    return rate > 0 ? flits / rate : 0;
}

static double longest_time(const json_t *links)
{
    double longest = 0;
    const json_t *link;
    size_t i;

    json_array_foreach(links, i, link) {
        if (time_of(link) > longest)
            longest = time_of(link);
    }
    return longest > 0 ? longest : 1;
}

/* Both the report's links and the machine's are in the order of their numbers. */
static void print_rows(FILE *out, const struct emu_machine *m, const json_t *links, const uint32_t *places)
{
    double longest = longest_time(links);
    size_t next = 0;

    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        const json_t *link = json_array_get(links, next);
        bool is_told = link && (uint32_t)json_integer_value(json_object_get(link, "link")) == id;

        next += is_told;
        emu_heat_print_link(out, m, id, places);
        if (is_told)
            fprintf(out, "\t%lld\t%lld\t%.5f\t%lld\t%lld\n",
                    (long long)json_integer_value(json_object_get(link, "packets")),
                    (long long)json_integer_value(json_object_get(link, "flits")), time_of(link) / longest,
                    (long long)json_integer_value(json_object_get(link, "errors")),
                    json_is_true(json_object_get(link, "up")) ?
                        (long long)json_integer_value(json_object_get(link, "lanes_up")) :
                        0);
        else
            fprintf(out, "\t0\t0\t0\t0\t\n");
    }
}

static int write_report(const json_t *report, const struct emu_machine *m, const char *folder)
{
    uint32_t *places = emu_heat_places(m);
    char path[PATH_MAX];
    bool is_bad;
    FILE *out;

    if (!places)
        return emu_cli_fail("links", "out of memory");
    snprintf(path, sizeof(path), "%s/links-%s.tsv", folder, json_string_value(json_object_get(report, "server")));
    out = fopen(path, "we");
    if (!out) {
        free(places);
        return emu_cli_fail("links", "--heat: %s: %s", path, strerror(errno));
    }
    emu_heat_print_head(out);
    fprintf(out, "\tpackets\tunits\tutilisation\tcrc_errors\tlanes_up\n");
    print_rows(out, m, json_object_get(report, "links"), places);
    free(places);
    is_bad = ferror(out);
    if (fclose(out) != 0 || is_bad)
        return emu_cli_fail("links", "--heat: %s cannot be written", path);
    return EMU_EXIT_DONE;
}

int emu_heat_of_report(const json_t *report, const char *folder)
{
    const char *spec = json_string_value(json_object_get(report, "machine_spec"));
    struct emu_machine *machine;
    char err[512];
    int status;

    if (!spec || emu_machine_load(spec, emu_cli_machine_dir(), &machine, err, sizeof(err)) < 0)
        return emu_cli_fail("links", "--heat: the server's machine: %s", spec ? err : "not told");
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        status = emu_cli_fail("links", "--heat: %s: %s", folder, strerror(errno));
    else
        status = write_report(report, machine, folder);
    emu_machine_destroy(machine);
    return status == EMU_EXIT_DONE ? emu_heat_draw("links", folder) : status;
}
