/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/daemon/virtual/link_windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/log.h"

/* Of a link, since the begin of the run. */
struct counts {
    uint64_t packets;
    uint64_t units;
    uint64_t busy_ps;
    uint64_t stall_ps;
};

struct emu_link_windows {
    FILE *file;
    const struct emu_machine *machine;
    uint64_t every_ps;
    uint64_t begin_ps;
    struct counts before[]; /* by link, at the begin of the window */
};

int emu_link_windows_open(const struct emu_time_options *options, const struct emu_machine *machine,
                          struct emu_link_windows **windows_out, struct emu_complaint *why)
{
    uint32_t n_links = emu_machine_n_links(machine);
    struct emu_link_windows *windows = calloc(1, sizeof(*windows) + n_links * sizeof(windows->before[0]));
    int r;

    if (!windows)
        return -ENOMEM;
    windows->machine = machine;
    windows->every_ps = options->links_every_ps;
    windows->file = fopen(options->links, "we");
    if (!windows->file) {
        r = -errno;
        snprintf(why->text, why->bytes, "--link-trace: %s: %s", options->links, strerror(errno));
        free(windows);
        return r;
    }
    fprintf(windows->file, "begin_ps,link,name,packets,units,busy_ps,stall_ps\n");
    fflush(windows->file); /* its buffer is there before emunic gives up its rights */
    *windows_out = windows;
    return 0;
}

uint64_t emu_link_windows_end_ps(const struct emu_link_windows *windows)
{
    return windows->begin_ps + windows->every_ps;
}

static void take_link(struct emu_link_windows *windows, const struct emu_sim *sim, uint32_t link)
{
    struct counts *before = &windows->before[link];
    char name[EMU_LINK_NAME_MAX] = "";
    struct emu_sim_link_stats stats;

    emu_sim_link_stats(sim, link, &stats);
    if (stats.packets == before->packets && stats.stall_ps == before->stall_ps)
        return;
    emu_link_name(windows->machine, link, name, sizeof(name));
    fprintf(windows->file, "%" PRIu64 ",%u,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", windows->begin_ps,
            link, name, stats.packets - before->packets, stats.units - before->units, stats.busy_ps - before->busy_ps,
            stats.stall_ps - before->stall_ps);
    *before = (struct counts){ stats.packets, stats.units, stats.busy_ps, stats.stall_ps };
}

void emu_link_windows_take(struct emu_link_windows *windows, const struct emu_sim *sim)
{
    for (uint32_t link = 0; link < emu_machine_n_links(windows->machine); link++)
        take_link(windows, sim, link);
    windows->begin_ps += windows->every_ps;
}

void emu_link_windows_pass(struct emu_link_windows *windows, const struct emu_sim *sim)
{
    uint64_t next_ps = emu_sim_next_ps(sim);

    if (next_ps == UINT64_MAX || next_ps < emu_link_windows_end_ps(windows))
        return;
    emu_link_windows_take(windows, sim);
    windows->begin_ps = next_ps - next_ps % windows->every_ps;
}

void emu_link_windows_close(struct emu_link_windows *windows)
{
    if (!windows)
        return;
    if (ferror(windows->file) || fclose(windows->file) != 0)
        emu_log(EMU_LOG_ERROR, "--link-trace: the file is not whole: %s", strerror(errno));
    free(windows);
}
