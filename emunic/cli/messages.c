/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines on stderr: one precise line for each thing that goes wrong.
 */
#include <stdarg.h>
#include <stdio.h>

#include "emunic/base/nearest.h"
#include "emunic/cli/cli.h"

/* One write, so that lines of several processes do not mix. */
static void say(const char *verb, const char *format, va_list args, const char *tail)
{
    char text[2048];

    vsnprintf(text, sizeof(text), format, args);
    fprintf(stderr, "emunic%s%s: %s%s\n", verb ? " " : "", verb ? verb : "", text, tail);
}

int emu_cli_fail(const char *verb, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(verb, format, args, "");
    va_end(args);
    return EMU_EXIT_FAILED;
}

int emu_cli_usage(const char *verb, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(verb, format, args, "; try --help");
    va_end(args);
    return EMU_EXIT_USAGE;
}

const char *emu_cli_hint(const struct emu_nearest *nearest, const char *before, char text[EMU_CLI_HINT_MAX])
{
    text[0] = '\0';
    if (nearest->answer)
        snprintf(text, EMU_CLI_HINT_MAX, " (did you mean %s%s?)", before, nearest->answer);
    return text;
}
