/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A command line as a table: one row for each option. The parser and `--help` are made from the rows. One thread.
 *
 *   static const struct emu_option options[] = {
 *       { "ppn", 0, "N", "processes per node (default: 1)", EMU_OPTION_NUMBER(struct run, ppn, 1, 65536) },
 *       { "quiet", 'q', NULL, "no progress", EMU_OPTION_SET(struct run, is_quiet) },
 *       { 0 },
 *   };
 *
 * -h, --help is an option of every command and has no row.
 */
#ifndef EMUNIC_CLI_OPTIONS_H
#define EMUNIC_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The options are read and the command is to be done: no exit status. */
#define EMU_PROCEED (-1)

enum emu_option_kind {
    EMU_OPTION_KIND_SET,    /* a bool becomes true */
    EMU_OPTION_KIND_UNSET,  /* a bool becomes false */
    EMU_OPTION_KIND_TEXT,   /* a text of argv */
    EMU_OPTION_KIND_NUMBER, /* a whole number within bounds */
    EMU_OPTION_KIND_WORD,   /* one of a list of words; the value is its index */
    EMU_OPTION_KIND_CALL,   /* a function takes the value */
};

struct emu_option {
    const char *name;     /* behind two dashes; NULL: the option has a letter only */
    char letter;          /* behind one dash; 0: none */
    const char *argument; /* the value in the help; NULL: the option takes none */
    const char *help;     /* one sentence without line breaks; NULL: another name of the row above, not shown */

    /* The macros below set these. */
    enum emu_option_kind kind;
    size_t at;    /* offset of the value in the target */
    size_t bytes; /* of the value: numbers and words */
    uint64_t min;
    uint64_t max;
    const char *const *words; /* ended by NULL */
    int (*take)(void *target, const char *name, const char *text);

    const char *if_missing; /* what the name alone means: a value stands behind "=" only; NULL: a value is needed */

    /* For the message about a wrong value; each may be NULL. */
    const char *unit;                   /* of a number: "'0' is not a number of UNIT from 1 to 9" */
    bool (*is_valid)(const char *text); /* of a text */
    const char *refusal;                /* of such a text: "'a b' is REFUSAL" */
};

/* The offset of a member. Does not compile if the member has another type. */
#define EMU_OPTION_AT(type, member, kind) (offsetof(type, member) + 0 * _Generic(((type *)0)->member, kind : 1))
#define EMU_OPTION_BYTES(type, member)                                                                                 \
    _Generic(((type *)0)->member, bool : sizeof(bool), uint16_t : 2, uint32_t : 4, uint64_t : 8)

#define EMU_OPTION_SET(type, member)   .kind = EMU_OPTION_KIND_SET, .at = EMU_OPTION_AT(type, member, bool)
#define EMU_OPTION_UNSET(type, member) .kind = EMU_OPTION_KIND_UNSET, .at = EMU_OPTION_AT(type, member, bool)
#define EMU_OPTION_TEXT(type, member)  .kind = EMU_OPTION_KIND_TEXT, .at = EMU_OPTION_AT(type, member, const char *)
#define EMU_OPTION_NUMBER(type, member, smallest, largest)                                                             \
    .kind = EMU_OPTION_KIND_NUMBER, .at = offsetof(type, member), .bytes = EMU_OPTION_BYTES(type, member),             \
    .min = (smallest), .max = (largest)
#define EMU_OPTION_WORD(type, member, list)                                                                            \
    .kind = EMU_OPTION_KIND_WORD, .at = offsetof(type, member), .bytes = EMU_OPTION_BYTES(type, member), .words = (list)

/*
 * name: the option as the user wrote it, for messages; text: the value, or NULL. Answers EMU_EXIT_DONE, or the exit
 * status after a message.
 */
#define EMU_OPTION_CALL(function) .kind = EMU_OPTION_KIND_CALL, .take = (function)

/* Where words that are no options may stand. */
enum emu_word_place {
    EMU_WORDS_NONE,     /* nowhere: the parser refuses them */
    EMU_WORDS_LAST,     /* behind the options: the first word ends them */
    EMU_WORDS_ANYWHERE, /* between the options: argv is sorted so that they come last */
};

struct emu_command {
    const char *verb;                 /* for messages */
    const char *usage;                /* lines without "usage: " */
    const char *about;                /* lines between usage and options */
    const struct emu_option *options; /* ended by a row without name and letter; at most EMU_OPTIONS_MAX */
    const char *after;                /* lines behind the options: an example, and what else there is to say */
    enum emu_word_place words;
};

#define EMU_OPTIONS_MAX 40

/**
 * Read a command line into a target struct.
 *
 * @param[out] target      Only what the given options concern is written: it comes with the defaults.
 * @param[out] words_out   Index in argv of the first word that is no option; argc if there is none. NULL: not wanted.
 * @return EMU_PROCEED; or the exit status: EMU_EXIT_DONE after --help, EMU_EXIT_USAGE after a message.
 */
int emu_options_parse(const struct emu_command *command, int argc, char **argv, void *target, int *words_out);

/* What --help prints. */
void emu_options_print_help(const struct emu_command *command, FILE *out);

/* ---- values that several commands take ---- */

/* For --datapath: "auto", "routed"; the index says that all traffic goes through the daemon. */
extern const char *const emu_cli_datapaths[];

/* For --bind, for a text that emu_bind_is_valid() refuses. */
#define EMU_CLI_BIND_REFUSAL "neither auto, none nor a list of processors"

#endif
