/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/daemon/virtual/link_windows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"

#define HEADER         "begin_ps,link,name,packets,units,busy_ps,stall_ps\n"
#define LINE_MAX_BYTES (EMU_LINK_NAME_MAX + 160u)
#define UNREAD_MAX     (64u << 20)
#define EVERY_MIN_PS   1000u
#define LAST_READ_NS   1000000000u /* for all readers together: emunic has to end */
#define READERS_MAX    16u

/* Of a link, since the begin of the run. */
struct counts {
    uint64_t packets;
    uint64_t units;
    uint64_t busy_ps;
    uint64_t stall_ps;
};

struct emu_link_windows {
    LIST_ENTRY(emu_link_windows) link;
    FILE *file; /* NULL: a reader's */
    struct {
        int fd; /* of the pipe */
        char *text;
        size_t n_bytes; /* of it that have not been written, */
        size_t room;
    } reader;
    bool is_over; /* nobody reads, or there is no memory */
    const struct emu_machine *machine;
    uint64_t every_ps;
    uint64_t begin_ps;
    struct counts before[]; /* by link, at the begin of the window */
};

static struct emu_link_windows *make(const struct emu_machine *machine, uint64_t every_ps)
{
    struct emu_link_windows *windows =
        calloc(1, sizeof(*windows) + emu_machine_n_links(machine) * sizeof(windows->before[0]));

    if (!windows)
        return NULL;
    windows->machine = machine;
    windows->every_ps = every_ps;
    windows->reader.fd = -1;
    return windows;
}

int emu_link_windows_open(const struct emu_time_options *options, const struct emu_machine *machine,
                          struct emu_link_windows_list *list, struct emu_complaint *why)
{
    struct emu_link_windows *windows = make(machine, options->links_every_ps);
    int r;

    if (!windows)
        return -ENOMEM;
    windows->file = fopen(options->links, "we");
    if (!windows->file) {
        r = -errno;
        snprintf(why->text, why->bytes, "--link-trace: %s: %s", options->links, strerror(errno));
        free(windows);
        return r;
    }
    fputs(HEADER, windows->file);
    fflush(windows->file); /* its buffer is there before emunic gives up its rights */
    LIST_INSERT_HEAD(list, windows, link);
    return 0;
}

/* ---- readers ---- */

static bool make_room(struct emu_link_windows *windows, size_t n)
{
    size_t room = windows->reader.room ? windows->reader.room : 65536;
    char *text;

    while (room < windows->reader.n_bytes + n)
        room *= 2;
    if (room == windows->reader.room)
        return true;
    text = room <= UNREAD_MAX ? realloc(windows->reader.text, room) : NULL;
    if (!text)
        return false;
    windows->reader.text = text;
    windows->reader.room = room;
    return true;
}

static void put(struct emu_link_windows *windows, const char *line)
{
    size_t n = strlen(line);

    if (windows->file) {
        fputs(line, windows->file);
        return;
    }
    if (windows->is_over || !make_room(windows, n)) {
        windows->is_over = true;
        return;
    }
    memcpy(windows->reader.text + windows->reader.n_bytes, line, n);
    windows->reader.n_bytes += n;
}

/* As much as there is room for in the pipe. */
static void write_some(struct emu_link_windows *windows)
{
    ssize_t n = write(windows->reader.fd, windows->reader.text, windows->reader.n_bytes);

    if (n < 0) {
        windows->is_over = windows->is_over || (errno != EAGAIN && errno != EINTR);
        return;
    }
    windows->reader.n_bytes -= (size_t)n;
    memmove(windows->reader.text, windows->reader.text + n, windows->reader.n_bytes);
}

static void forget(struct emu_link_windows *windows)
{
    LIST_REMOVE(windows, link);
    if (windows->reader.fd >= 0)
        close(windows->reader.fd);
    free(windows->reader.text);
    free(windows);
}

static unsigned n_readers(const struct emu_link_windows_list *list)
{
    const struct emu_link_windows *windows;
    unsigned n = 0;

    LIST_FOREACH(windows, list, link)
        n += !windows->file;
    return n;
}

int emu_link_windows_add_reader(struct emu_link_windows_list *list, const struct emu_machine *machine,
                                const struct emu_sim *sim, uint64_t every_ps, uint64_t now_ps)
{
    struct emu_link_windows *windows;
    int fds[2];

    if (every_ps < EVERY_MIN_PS || every_ps > UINT64_MAX / 4)
        return -EINVAL;
    if (n_readers(list) >= READERS_MAX)
        return -EBUSY;
    windows = make(machine, every_ps);
    if (!windows)
        return -ENOMEM;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        free(windows);
        return -errno;
    }
    windows->reader.fd = fds[1];
    windows->begin_ps = now_ps - now_ps % every_ps;
    for (uint32_t link = 0; link < emu_machine_n_links(machine); link++) {
        struct emu_sim_link_stats stats;

        emu_sim_link_stats(sim, link, &stats);
        windows->before[link] = (struct counts){ stats.packets, stats.units, stats.busy_ps, stats.stall_ps };
    }
    put(windows, HEADER);
    LIST_INSERT_HEAD(list, windows, link);
    return fds[0];
}

bool emu_link_windows_flush(struct emu_link_windows_list *list)
{
    struct emu_link_windows *windows = LIST_FIRST(list);
    bool is_left = false;

    while (windows) {
        struct emu_link_windows *next = LIST_NEXT(windows, link);

        if (!windows->file && windows->reader.n_bytes > 0)
            write_some(windows);
        is_left = is_left || windows->reader.n_bytes > 0;
        if (windows->is_over)
            forget(windows);
        windows = next;
    }
    return is_left;
}

/* ---- windows ---- */

static void take_link(struct emu_link_windows *windows, const struct emu_sim *sim, uint32_t link)
{
    struct counts *before = &windows->before[link];
    char name[EMU_LINK_NAME_MAX] = "";
    char line[LINE_MAX_BYTES];
    struct emu_sim_link_stats stats;

    emu_sim_link_stats(sim, link, &stats);
    if (stats.packets == before->packets && stats.stall_ps == before->stall_ps)
        return;
    emu_link_name(windows->machine, link, name, sizeof(name));
    snprintf(line, sizeof(line), "%" PRIu64 ",%u,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
             windows->begin_ps, link, name, stats.packets - before->packets, stats.units - before->units,
             stats.busy_ps - before->busy_ps, stats.stall_ps - before->stall_ps);
    put(windows, line);
    *before = (struct counts){ stats.packets, stats.units, stats.busy_ps, stats.stall_ps };
}

static void take(struct emu_link_windows *windows, const struct emu_sim *sim)
{
    for (uint32_t link = 0; link < emu_machine_n_links(windows->machine); link++)
        take_link(windows, sim, link);
    windows->begin_ps += windows->every_ps;
}

uint64_t emu_link_windows_end_ps(const struct emu_link_windows_list *list)
{
    const struct emu_link_windows *windows;
    uint64_t end_ps = UINT64_MAX;

    LIST_FOREACH(windows, list, link) {
        if (windows->begin_ps + windows->every_ps < end_ps)
            end_ps = windows->begin_ps + windows->every_ps;
    }
    return end_ps;
}

void emu_link_windows_take(struct emu_link_windows_list *list, const struct emu_sim *sim, uint64_t at_ps)
{
    struct emu_link_windows *windows;

    LIST_FOREACH(windows, list, link) {
        if (windows->begin_ps + windows->every_ps <= at_ps)
            take(windows, sim);
    }
}

void emu_link_windows_pass(struct emu_link_windows_list *list, const struct emu_sim *sim, uint64_t until_ps)
{
    uint64_t next_ps = emu_sim_next_ps(sim);
    struct emu_link_windows *windows;

    /* Somebody may still post something before the next event. */
    if (next_ps != UINT64_MAX && until_ps < next_ps)
        next_ps = until_ps;
    LIST_FOREACH(windows, list, link) {
        if (next_ps == UINT64_MAX || next_ps < windows->begin_ps + windows->every_ps)
            continue;
        take(windows, sim);
        windows->begin_ps = next_ps - next_ps % windows->every_ps;
    }
}

static void end_file(FILE *file)
{
    if (ferror(file) || fclose(file) != 0)
        emu_log(EMU_LOG_ERROR, "--link-trace: the file is not whole: %s", strerror(errno));
}

void emu_link_windows_close(struct emu_link_windows_list *list)
{
    uint64_t until_ns = emu_clock_ns() + LAST_READ_NS;
    struct emu_link_windows *windows;

    while ((windows = LIST_FIRST(list))) {
        struct pollfd room = { .fd = windows->reader.fd, .events = POLLOUT };

        if (windows->file)
            end_file(windows->file);
        while (windows->reader.n_bytes > 0 && !windows->is_over) {
            uint64_t now_ns = emu_clock_ns();

            if (now_ns >= until_ns || poll(&room, 1, (int)((until_ns - now_ns) / 1000000)) <= 0)
                break;
            write_some(windows);
        }
        forget(windows);
    }
}
