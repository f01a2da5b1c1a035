/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to people: one lowercase line on stderr. Any thread. Libraries say errors alone, unless EMUNIC_LOG asks.
 */
#ifndef EMUNIC_BASE_LOG_H
#define EMUNIC_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum emu_log_level {
    EMU_LOG_NONE = 0,
    EMU_LOG_ERROR, /* needs action */
    EMU_LOG_WARN,
    EMU_LOG_INFO,  /* start, stop, attach */
    EMU_LOG_DEBUG, /* grows with objects */
    EMU_LOG_TRACE, /* grows with packets */
};

/* Level from EMUNIC_LOG (error, warn, info, debug, trace, none), else `fallback`. Name is put before each line. */
void emu_log_init(const char *name, enum emu_log_level fallback);

bool emu_log_is_on(enum emu_log_level level);

void emu_log_write(enum emu_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define emu_log(level, ...)                                                                                            \
    do {                                                                                                               \
        if (emu_log_is_on(level))                                                                                      \
            emu_log_write((level), __VA_ARGS__);                                                                       \
    } while (0)

/* For what a client can provoke: true at most ten times a second; tells how many were held back since. */
struct emu_log_rate {
    uint64_t window_start_ns;
    uint32_t in_window;
    uint32_t held_back;
};
bool emu_log_rate_allows(struct emu_log_rate *rate, uint32_t *held_back_out);

/* A line under such a limit, with the count of those that were held back before it. */
void emu_log_limited(struct emu_log_rate *rate, enum emu_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
