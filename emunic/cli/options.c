/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command lines by table: getopt_long() finds the options, the rows tell what becomes of their values, and each thing
 * that can be wrong gets one precise line. An option is called as the user wrote it.
 */
#include "emunic/cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "emunic/base/nearest.h"
#include "emunic/base/number.h"
#include "emunic/cli/cli.h"

#define FIRST_LONG 256 /* what getopt_long() answers for row 0 by its long name; letters are smaller */
#define HELP       (FIRST_LONG + EMU_OPTIONS_MAX)

#define LABEL_MAX  24 /* columns; the help of an option with a longer one starts on the next line */
#define HELP_WIDTH 112

const char *const emu_cli_datapaths[] = { "auto", "routed", NULL };

static const struct emu_option help_row = { "help", 'h', NULL, "this text", 0 };

static bool is_end(const struct emu_option *row)
{
    return !row->name && row->letter == '\0';
}

/* ---- help ---- */

/* "  -n, --ranks N", "      --mpi[=KIND]". Answers its length. */
static size_t make_label(const struct emu_option *row, char *text, size_t room)
{
    const char *before = row->if_missing ? "[=" : row->argument ? " " : "";
    char letter[4] = "   ";
    int len;

    if (row->letter)
        snprintf(letter, sizeof(letter), "-%c%c", row->letter, row->name ? ',' : '\0');
    len = snprintf(text, room, "  %s%s%s%s%s%s", letter, row->name ? " --" : "", row->name ? row->name : "", before,
                   row->argument ? row->argument : "", row->if_missing ? "]" : "");
    return len > 0 ? (size_t)len : 0;
}

static size_t label_width(const struct emu_option *row)
{
    char label[128];
    size_t len = make_label(row, label, sizeof(label));

    return row->help && len <= LABEL_MAX ? len : 0;
}

/* A sentence from a column on, in as many lines as it needs. */
static void print_wrapped(const char *text, size_t column, FILE *out)
{
    size_t at = column;

    while (*text) {
        size_t len = strcspn(text, " ");

        if (at > column && at + 1 + len > HELP_WIDTH) {
            fprintf(out, "\n%*s", (int)column, "");
            at = column;
        }
        at += (size_t)fprintf(out, "%s%.*s", at > column ? " " : "", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
    fprintf(out, "\n");
}

static void print_row(const struct emu_option *row, size_t column, FILE *out)
{
    char label[128];

    if (!row->help)
        return;
    if (make_label(row, label, sizeof(label)) > LABEL_MAX)
        fprintf(out, "%s\n%*s", label, (int)column, "");
    else
        fprintf(out, "%-*s", (int)column, label);
    print_wrapped(row->help, column, out);
}

void emu_options_print_help(const struct emu_command *command, FILE *out)
{
    size_t column = label_width(&help_row);

    fprintf(out, "usage: ");
    for (const char *c = command->usage; *c; c++) {
        fputc(*c, out);
        if (*c == '\n')
            fprintf(out, "       ");
    }
    fprintf(out, "\n\n%s\n", command->about);
    for (const struct emu_option *row = command->options; !is_end(row); row++)
        column = label_width(row) > column ? label_width(row) : column;
    for (const struct emu_option *row = command->options; !is_end(row); row++)
        print_row(row, column + 2, out);
    print_row(&help_row, column + 2, out);
    fprintf(out, "\n%s", command->after);
}

/* ---- what getopt_long() refuses ---- */

static void offer_name(struct emu_nearest *nearest, const char *name)
{
    emu_nearest_offer(nearest, name, name);
}

/* A long option that getopt_long() does not know, or knows several that begin so. */
static int unknown_option(const struct emu_command *command, char *word)
{
    char *name = word + strlen("--");
    struct emu_nearest nearest;
    char hint[EMU_CLI_HINT_MAX];
    char several[512] = "";
    size_t used = 0;
    unsigned n = 0;

    word[strcspn(word, "=")] = '\0';
    nearest = emu_nearest_to(name, 2);
    for (const struct emu_option *row = command->options; !is_end(row); row++) {
        if (!row->name)
            continue;
        offer_name(&nearest, row->name);
        if (strncmp(row->name, name, strlen(name)) != 0)
            continue;
        n++;
        if (used < sizeof(several))
            used += (size_t)snprintf(several + used, sizeof(several) - used, "%s--%s", n > 1 ? ", " : "", row->name);
    }
    offer_name(&nearest, help_row.name);
    if (n > 1)
        return emu_cli_usage(command->verb, "%s: may be %s", word, several);
    return emu_cli_usage(command->verb, "%s: no such option%s", word, emu_cli_hint(&nearest, "--", hint));
}

static int bad_option(const struct emu_command *command, int answer, char **argv)
{
    char *word = argv[optind - 1];
    char letter[3] = { '-', (char)optopt, '\0' };
    bool is_long = strncmp(word, "--", 2) == 0;

    /* A letter inside a word of several: optind has not moved on. */
    if (optopt != 0 && optopt < FIRST_LONG && !is_long)
        word = letter;
    if (answer == ':')
        return emu_cli_usage(command->verb, "%s: needs a value", word);
    if (is_long && optopt != 0)
        return emu_cli_usage(command->verb, "%s: takes no value", word);
    if (is_long)
        return unknown_option(command, word);
    return emu_cli_usage(command->verb, "%s: no such option", word);
}

/* ---- values ---- */

struct given {
    const struct emu_command *command;
    const struct emu_option *row;
    const char *name; /* as the user wrote it */
    const char *text; /* the value; NULL: none */
    void *at;         /* where it goes */
};

static void store(const struct given *given, uint64_t value)
{
    switch (given->row->bytes) {
    case sizeof(bool):
        *(bool *)given->at = value != 0;
        break;
    case sizeof(uint16_t):
        *(uint16_t *)given->at = (uint16_t)value;
        break;
    case sizeof(uint32_t):
        *(uint32_t *)given->at = (uint32_t)value;
        break;
    default:
        *(uint64_t *)given->at = value;
    }
}

static int take_text(const struct given *given)
{
    const struct emu_option *row = given->row;

    if (row->is_valid && !row->is_valid(given->text))
        return emu_cli_usage(given->command->verb, "%s: '%s' is %s", given->name, given->text, row->refusal);
    *(const char **)given->at = given->text;
    return EMU_EXIT_DONE;
}

static int take_number(const struct given *given)
{
    const struct emu_option *row = given->row;
    uint64_t value;

    if (!emu_parse_number(given->text, 10, row->min, row->max, &value))
        return emu_cli_usage(given->command->verb, "%s: '%s' is not a number%s%s from %llu to %llu", given->name,
                             given->text, row->unit ? " of " : "", row->unit ? row->unit : "",
                             (unsigned long long)row->min, (unsigned long long)row->max);
    store(given, value);
    return EMU_EXIT_DONE;
}

/* "neither routed nor auto", "none of latency, links, vcs" */
static void list_words(const char *const *words, char *text, size_t room)
{
    bool is_pair = words[0] && words[1] && !words[2];
    size_t used = (size_t)snprintf(text, room, "%s", is_pair ? "neither" : "none of");

    for (size_t i = 0; words[i] && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s %s", i == 0 ? "" : is_pair ? " nor" : ",", words[i]);
}

static int take_word(const struct given *given)
{
    const char *const *words = given->row->words;
    char list[256];

    for (uint64_t i = 0; words[i]; i++) {
        if (strcmp(given->text, words[i]) == 0) {
            store(given, i);
            return EMU_EXIT_DONE;
        }
    }
    list_words(words, list, sizeof(list));
    return emu_cli_usage(given->command->verb, "%s: '%s' is %s", given->name, given->text, list);
}

static int take(const struct given *given, void *target)
{
    switch (given->row->kind) {
    case EMU_OPTION_KIND_SET:
    case EMU_OPTION_KIND_UNSET:
        *(bool *)given->at = given->row->kind == EMU_OPTION_KIND_SET;
        return EMU_EXIT_DONE;
    case EMU_OPTION_KIND_TEXT:
        return take_text(given);
    case EMU_OPTION_KIND_NUMBER:
        return take_number(given);
    case EMU_OPTION_KIND_WORD:
        return take_word(given);
    case EMU_OPTION_KIND_CALL:
        return given->row->take(target, given->name, given->text);
    }
    return EMU_EXIT_USAGE;
}

/* ---- the whole line ---- */

/* The table as getopt_long() wants it. */
struct getopt_table {
    struct option longs[EMU_OPTIONS_MAX + 2];
    char letters[2 * EMU_OPTIONS_MAX + 4];
};

static int argument_of(const struct emu_option *row)
{
    if (row->if_missing)
        return optional_argument;
    return row->argument ? required_argument : no_argument;
}

static void fill_table(struct getopt_table *table, const struct emu_command *command)
{
    struct option *option = table->longs;
    char *letter = table->letters;
    int n = 0;

    if (command->words != EMU_WORDS_ANYWHERE)
        *letter++ = '+';
    *letter++ = ':';
    for (const struct emu_option *row = command->options; !is_end(row) && n < EMU_OPTIONS_MAX; row++, n++) {
        if (row->name)
            *option++ = (struct option){ row->name, argument_of(row), NULL, FIRST_LONG + n };
        if (row->letter) {
            *letter++ = row->letter;
            if (row->argument)
                *letter++ = ':';
        }
    }
    *option++ = (struct option){ help_row.name, no_argument, NULL, HELP };
    *option = (struct option){ 0 };
    *letter++ = help_row.letter;
    *letter = '\0';
}

/* The row that getopt_long() found, and its name with dashes. */
static const struct emu_option *find_row(const struct emu_command *command, int answer, char *name, size_t room)
{
    const struct emu_option *row = command->options;

    if (answer >= FIRST_LONG) {
        row += answer - FIRST_LONG;
        snprintf(name, room, "--%s", row->name);
        return row;
    }
    while (row->letter != answer)
        row++;
    snprintf(name, room, "-%c", row->letter);
    return row;
}

int emu_options_parse(const struct emu_command *command, int argc, char **argv, void *target, int *words_out)
{
    struct getopt_table table;
    int answer;

    fill_table(&table, command);
    opterr = 0;
    while ((answer = getopt_long(argc, argv, table.letters, table.longs, NULL)) != -1) {
        struct given given = { .command = command };
        char name[64];
        int status;

        if (answer == '?' || answer == ':')
            return bad_option(command, answer, argv);
        if (answer == HELP || answer == help_row.letter) {
            emu_options_print_help(command, stdout);
            return EMU_EXIT_DONE;
        }
        given.row = find_row(command, answer, name, sizeof(name));
        given.name = name;
        given.text = optarg ? optarg : given.row->if_missing;
        given.at = (char *)target + given.row->at;
        status = take(&given, target);
        if (status != EMU_EXIT_DONE)
            return status;
    }
    if (command->words == EMU_WORDS_NONE && optind < argc)
        return emu_cli_usage(command->verb, "'%s': takes options only", argv[optind]);
    if (words_out)
        *words_out = optind;
    return EMU_PROCEED;
}
