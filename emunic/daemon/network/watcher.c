/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watcher looks at the links once a minute (EMUNIC_WATCHER). The end that saw a lane die writes its lines at once;
 * its peer's line comes with the next poll, counted from then. The newest LINES_MAX lines are kept for reports; each
 * also goes to emunic's own log.
 * Source: spec/machines.md 3.4.
 */
#include "emunic/daemon/network/watcher.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/daemon/world/server.h"
#include "emunic/fabric/watcher_log.h"

#define LINES_MAX   256u
#define PENDING_MAX 64u
#define Y2000_S     946684800ull /* 1 January 2000, since 1970 */

struct pending {
    struct emu_watcher_line line;
    uint64_t at_ns;
};

struct emu_watcher {
    char lines[LINES_MAX][EMU_WATCHER_LINE_MAX];
    uint64_t n_lines;                    /* ever written */
    struct pending pending[PENDING_MAX]; /* in the order of their times */
    uint32_t n_pending;
};

/* NULL until it writes a line. */
static struct emu_watcher *watcher_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_WATCHER];
}

static uint64_t now_s(void)
{
    return (uint64_t)time(NULL) - Y2000_S;
}

static void write_line(struct emu_watcher *w, const struct emu_watcher_line *line)
{
    char *text = w->lines[w->n_lines % LINES_MAX];

    if (emu_watcher_format(line, text, EMU_WATCHER_LINE_MAX) < 0)
        return;
    w->n_lines++;
    emu_log(EMU_LOG_INFO, "watcher: %s", text);
}

void emu_watcher_lose_lanes(struct emu_server *server, uint32_t link, uint32_t lane_mask)
{
    struct emu_watcher_line lines[4];
    struct emu_watcher *w;

    if (emu_watcher_lanes_lost(server->machine, link, lane_mask, now_s(), lines) < 0)
        return;
    if (!watcher_of(server))
        server->slots[EMU_SERVER_WATCHER] = calloc(1, sizeof(*watcher_of(server)));
    w = watcher_of(server);
    if (!w) {
        emu_log(EMU_LOG_ERROR, "watcher: no memory for the log");
        return;
    }
    for (unsigned i = 0; i < 3; i++)
        write_line(w, &lines[i]);
    if (w->n_pending == PENDING_MAX)
        return; /* a storm: the peers stay silent */
    w->pending[w->n_pending++] =
        (struct pending){ .line = lines[3], .at_ns = emu_clock_ns() + server->settings.watcher_ns };
}

void emu_watcher_round(struct emu_server *server)
{
    struct emu_watcher *w = watcher_of(server);
    uint64_t now_ns;

    if (!w || w->n_pending == 0)
        return;
    now_ns = emu_clock_ns();
    while (w->n_pending > 0 && w->pending[0].at_ns <= now_ns) {
        w->pending[0].line.time_s = now_s();
        write_line(w, &w->pending[0].line);
        w->n_pending--;
        memmove(&w->pending[0], &w->pending[1], w->n_pending * sizeof(w->pending[0]));
    }
}

uint64_t emu_watcher_next_ns(const struct emu_server *server)
{
    return watcher_of(server) && watcher_of(server)->n_pending > 0 ? watcher_of(server)->pending[0].at_ns : UINT64_MAX;
}

json_t *emu_watcher_lines(const struct emu_server *server)
{
    const struct emu_watcher *w = watcher_of(server);
    json_t *lines = json_array();
    uint64_t first;

    if (!w)
        return lines;
    first = w->n_lines > LINES_MAX ? w->n_lines - LINES_MAX : 0;
    for (uint64_t i = first; i < w->n_lines; i++)
        json_array_append_new(lines, json_string(w->lines[i % LINES_MAX]));
    return lines;
}

void emu_watcher_destroy(struct emu_server *server)
{
    free(watcher_of(server));
    server->slots[EMU_SERVER_WATCHER] = NULL;
}
