/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of the network watcher's log on Gemini machines: what a link did, as the system's people read it.
 *
 *   YYMMDD HH:MM:SS <link> <peer link> <count> <event>
 *   YYMMDD HH:MM:SS <link> ***ERROR*** <text>
 *
 * Source: spec/machines.md 3.4 (TITAN).
 */
#ifndef EMUNIC_FABRIC_WATCHER_LOG_H
#define EMUNIC_FABRIC_WATCHER_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"

#define EMU_WATCHER_LINE_MAX  192 /* of a line, with the final zero */
#define EMU_WATCHER_TEXT_MAX  64  /* of an error's text */
#define EMU_WATCHER_LANES_ALL 7   /* lane mask of a whole link: bit i set, lane i works */
#define EMU_WATCHER_POLL_S    60  /* the peer's line comes with the next poll */

enum emu_watcher_event {
    EMU_WATCHER_MODE_EXCHANGES = 0, /* "Mode Exchanges": the ends agreed on lanes anew */
    EMU_WATCHER_RX_LANEMASK,        /* "RX lanemask=3": lanes on which this end receives */
    EMU_WATCHER_TX_LANEMASK,        /* "TX lanemask=3" */
    EMU_WATCHER_ERROR,              /* "***ERROR*** text" */
};

struct emu_watcher_line {
    uint64_t time_s; /* since 1 January 2000, 0 h; up to the end of 2099 */
    enum emu_watcher_event event;
    uint32_t count;                  /* not with errors */
    uint32_t lane_mask;              /* of the lane masks: 0 .. 7 */
    char link[EMU_CNAME_MAX];        /* "c0-0c1s0g0l27" */
    char peer[EMU_CNAME_MAX];        /* not with errors */
    char text[EMU_WATCHER_TEXT_MAX]; /* of an error */
};

/* One line without newline. -ENOSPC; -EINVAL: a time, mask or text that no line can have. */
int emu_watcher_format(const struct emu_watcher_line *line, char *buf, size_t len);

/**
 * What the watcher writes when a link loses lanes and cannot bring them back: the receiving end exchanges modes, tells
 * its mask and the error; one poll later the sending end tells its mask.
 *
 * @param[in]  link       Directed: the one whose lanes are down.
 * @param[in]  lane_mask  Lanes that are left, 1 .. 7.
 * @param[out] lines_out  Four lines in the order of the log.
 * @retval 0        Done.
 * @retval -EINVAL  Not a Gemini machine, not a link between routers, or no such mask.
 * @retval -ERANGE  No such link.
 */
int emu_watcher_lanes_lost(const struct emu_machine *m, uint32_t link, uint32_t lane_mask, uint64_t time_s,
                           struct emu_watcher_line lines_out[4]);

#endif
