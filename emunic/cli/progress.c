/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One line that is drawn over again: bar, percent, text, cut to the width of the terminal so that it never wraps.
 */
#include "emunic/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "emunic/base/clock.h"

#define BAR_CELLS    24
#define INTERVAL_NS  100000000ull
#define LINE_MAX_LEN 256

void emu_cli_progress_init(struct emu_cli_progress *progress, bool is_quiet)
{
    *progress = (struct emu_cli_progress){ .is_on = !is_quiet && isatty(STDERR_FILENO) };
}

static size_t terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

void emu_cli_progress_draw(struct emu_cli_progress *progress, double fraction, const char *text)
{
    char line[LINE_MAX_LEN];
    char bar[BAR_CELLS + 1];
    uint64_t now_ns;
    size_t columns;

    if (!progress->is_on)
        return;
    now_ns = emu_clock_ns();
    if (progress->is_drawn && now_ns - progress->drawn_ns < INTERVAL_NS)
        return;
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = i < (int)(fraction * BAR_CELLS + 0.5) ? '#' : '.';
    bar[BAR_CELLS] = '\0';
    snprintf(line, sizeof(line), "[%s] %3.0f%% %s", bar, fraction * 100, text);
    columns = terminal_columns();
    if (strlen(line) >= columns)
        line[columns - 1] = '\0';
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    progress->is_drawn = true;
    progress->drawn_ns = now_ns;
}

void emu_cli_progress_clear(struct emu_cli_progress *progress)
{
    if (!progress->is_drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->is_drawn = false;
}
