/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network watcher's log.
 *
 * Lines are plain values, and what no line can say is not written.
 * Source: spec/machines.md 3.4 (TITAN).
 */
#include "emunic/fabric/watcher_log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "emunic/fabric/gemini.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/topology.h"

#define YEAR_2000 INT64_C(946684800)        /* 1 January, 0 h, since 1970 */
#define SECONDS   (UINT64_C(36525) * 86400) /* 2000 to 2099 */

static const char error_mark[] = "***ERROR*** ";
static const char reinit_failed[] = "Gemini LCB lane(s) reinit failed";

/* ---- lines ---- */

static bool is_name(const char *text)
{
    return text[0] != '\0' && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

/* Printable, and no blanks at the ends. */
static bool is_error_text(const char *text)
{
    size_t len = strlen(text);

    for (const char *c = text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~')
            return false;
    }
    return len > 0 && text[0] != ' ' && text[len - 1] != ' ';
}

int emu_watcher_format(const struct emu_watcher_line *line, char *buf, size_t len)
{
    time_t seconds = (time_t)(YEAR_2000 + (int64_t)line->time_s);
    struct tm time;
    char event[32];
    char head[32];
    int r;

    if (line->time_s >= SECONDS || !is_name(line->link) || line->lane_mask > EMU_WATCHER_LANES_ALL)
        return -EINVAL;
    if (!gmtime_r(&seconds, &time) || strftime(head, sizeof(head), "%y%m%d %H:%M:%S", &time) == 0)
        return -EINVAL;
    switch (line->event) {
    case EMU_WATCHER_ERROR:
        return is_error_text(line->text) ? emu_text(buf, len, "%s %s %s%s", head, line->link, error_mark, line->text) :
                                           -EINVAL;
    case EMU_WATCHER_MODE_EXCHANGES:
        r = emu_text(event, sizeof(event), "Mode Exchanges");
        break;
    case EMU_WATCHER_RX_LANEMASK:
    case EMU_WATCHER_TX_LANEMASK:
        r = emu_text(event, sizeof(event), "%s lanemask=%u", line->event == EMU_WATCHER_RX_LANEMASK ? "RX" : "TX",
                     line->lane_mask);
        break;
    default:
        return -EINVAL;
    }
    if (r < 0)
        return r;
    return is_name(line->peer) ?
               emu_text(buf, len, "%s %s %s %u %s", head, line->link, line->peer, line->count, event) :
               -EINVAL;
}

/* ---- what a link says ---- */

int emu_watcher_lanes_lost(const struct emu_machine *m, uint32_t link, uint32_t lane_mask, uint64_t time_s,
                           struct emu_watcher_line lines_out[4])
{
    struct emu_watcher_line receiver = { .time_s = time_s, .count = 1 };
    struct emu_watcher_line sender;
    uint32_t reverse;
    int r;

    if (lane_mask == 0 || lane_mask > EMU_WATCHER_LANES_ALL)
        return -EINVAL;
    r = emu_gemini_tile_name(m, link, receiver.peer, sizeof(receiver.peer));
    if (r == 0)
        r = emu_link_reverse(m, link, &reverse);
    if (r == 0)
        r = emu_gemini_tile_name(m, reverse, receiver.link, sizeof(receiver.link));
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < 3; i++)
        lines_out[i] = receiver;
    lines_out[0].event = EMU_WATCHER_MODE_EXCHANGES;
    lines_out[1].event = EMU_WATCHER_RX_LANEMASK;
    lines_out[1].lane_mask = lane_mask;
    lines_out[2].event = EMU_WATCHER_ERROR;
    lines_out[2].count = 0;
    memset(lines_out[2].peer, 0, sizeof(lines_out[2].peer));
    memcpy(lines_out[2].text, reinit_failed, sizeof(reinit_failed));
    sender = receiver;
    memcpy(sender.link, receiver.peer, sizeof(sender.link));
    memcpy(sender.peer, receiver.link, sizeof(sender.peer));
    sender.time_s += EMU_WATCHER_POLL_S;
    sender.event = EMU_WATCHER_TX_LANEMASK;
    sender.lane_mask = lane_mask;
    lines_out[3] = sender;
    return 0;
}
