/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options and error lines: one precise line for each thing that can be wrong with a command line.
 */
#include "emunic/cli/cli.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emunic/base/nearest.h"

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

/* A long option that getopt_long() does not know, or knows several that begin so. */
static int unknown_option(const char *verb, char *word, const struct option *options)
{
    char *name = word + strlen("--");
    struct emu_nearest nearest;
    char hint[EMU_CLI_HINT_MAX];
    char several[512] = "";
    size_t used = 0;
    unsigned n = 0;

    word[strcspn(word, "=")] = '\0';
    nearest = emu_nearest_to(name, 2);
    for (const struct option *option = options; option->name; option++) {
        emu_nearest_offer(&nearest, option->name, option->name);
        if (strncmp(option->name, name, strlen(name)) != 0)
            continue;
        n++;
        if (used < sizeof(several))
            used += (size_t)snprintf(several + used, sizeof(several) - used, "%s--%s", n > 1 ? ", " : "", option->name);
    }
    if (n > 1)
        return emu_cli_usage(verb, "%s: may be %s", word, several);
    return emu_cli_usage(verb, "%s: no such option%s", word, emu_cli_hint(&nearest, "--", hint));
}

int emu_cli_bad_option(const char *verb, int answer, char **argv, const struct option *options)
{
    char *word = argv[optind - 1];
    char letter[3] = { '-', (char)optopt, '\0' };
    bool is_long = strncmp(word, "--", 2) == 0;

    /* A letter inside a word of several: optind has not moved on. */
    if (optopt != 0 && optopt < EMU_OPTION_FIRST && !is_long)
        word = letter;
    if (answer == ':')
        return emu_cli_usage(verb, "%s: needs a value", word);
    if (is_long && optopt != 0)
        return emu_cli_usage(verb, "%s: takes no value", word);
    if (is_long)
        return unknown_option(verb, word, options);
    return emu_cli_usage(verb, "%s: no such option", word);
}

bool emu_cli_parse_datapath(const char *text, bool *is_routed_out)
{
    bool is_routed = strcmp(text, "routed") == 0;

    if (!is_routed && strcmp(text, "auto") != 0)
        return false;
    *is_routed_out = is_routed;
    return true;
}
