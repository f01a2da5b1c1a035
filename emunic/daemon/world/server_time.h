/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time in which the emulated machine lives: the host's, or virtual time. Timers of the machine itself (a network
 * that rests, a schedule of faults) run in it. The virtual part moves it.
 */
#ifndef EMUNIC_DAEMON_WORLD_SERVER_TIME_H
#define EMUNIC_DAEMON_WORLD_SERVER_TIME_H

#include <stdint.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/world/server.h"

struct emu_server_time {
    uint64_t now_ps;      /* all before has happened */
    uint64_t n_under_way; /* operations in the model */
    uint64_t alarm_ns;    /* a round is wanted then; 0: none is */
};

/* NULL: the machine lives in the host's time. */
static inline const struct emu_server_time *emu_server_virtual_time(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_TIME];
}

/* In virtual time a round is wanted at that time; UINT64_MAX: none is. For one part alone, that of datagrams. */
static inline void emu_server_set_alarm(struct emu_server *server, uint64_t at_ns)
{
    struct emu_server_time *time = server->slots[EMU_SERVER_TIME];

    if (time)
        time->alarm_ns = at_ns == UINT64_MAX ? 0 : at_ns;
}

static inline uint64_t emu_server_now_ns(const struct emu_server *server)
{
    const struct emu_server_time *time = emu_server_virtual_time(server);

    return time ? time->now_ps / 1000 : emu_clock_ns();
}

#endif
