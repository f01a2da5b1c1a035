/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines: formatted into one buffer and written with one call, so that lines of several processes on one
 * terminal do not mix. The level is process-wide and read without a lock.
 */
#include "emunic/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/clock.h"

#define LINES_PER_SECOND 10u

static _Atomic int log_level = EMU_LOG_NONE;
static const char *log_name = "emunic";

static const char *const level_names[] = { "none", "error", "warn", "info", "debug", "trace" };

void emu_log_init(const char *name, enum emu_log_level fallback)
{
    const char *wanted = getenv("EMUNIC_LOG");
    int level = fallback;

    log_name = name;
    if (wanted) {
        for (int i = 0; i <= EMU_LOG_TRACE; i++) {
            if (strcmp(wanted, level_names[i]) == 0)
                level = i;
        }
    }
    atomic_store_explicit(&log_level, level, memory_order_relaxed);
}

bool emu_log_is_on(enum emu_log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void write_line(enum emu_log_level level, uint32_t held_back, const char *format, va_list args)
{
    char line[1024];
    int used;
    int more;

    used = snprintf(line, sizeof(line), "%s[%d]: %s: ", log_name, (int)getpid(), level_names[level]);
    if (held_back > 0)
        used += snprintf(line + used, sizeof(line) - (size_t)used, "(%u such lines held back) ", held_back);
    more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
    if (more < 0)
        return;
    used += more;
    if (used > (int)sizeof(line) - 2)
        used = (int)sizeof(line) - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return; /* nobody to tell */
}

void emu_log_write(enum emu_log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(level, 0, format, args);
    va_end(args);
}

void emu_log_limited(struct emu_log_rate *rate, enum emu_log_level level, const char *format, ...)
{
    uint32_t held_back;
    va_list args;

    if (!emu_log_is_on(level) || !emu_log_rate_allows(rate, &held_back))
        return;
    va_start(args, format);
    write_line(level, held_back, format, args);
    va_end(args);
}

bool emu_log_rate_allows(struct emu_log_rate *rate, uint32_t *held_back_out)
{
    uint64_t now_ns = emu_clock_ns();

    if (now_ns - rate->window_start_ns >= 1000000000ull) {
        *held_back_out = rate->held_back;
        *rate = (struct emu_log_rate){ .window_start_ns = now_ns, .in_window = 1 };
        return true;
    }
    if (rate->in_window < LINES_PER_SECOND) {
        rate->in_window++;
        *held_back_out = 0;
        return true;
    }
    rate->held_back++;
    return false;
}
