/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `emunic` command: the first word is the verb; verb_NAME.c has the function that does it.
 */
#include <stdio.h>
#include <string.h>

#include "emunic-config.h"
#include "emunic/abi/abi.h"
#include "emunic/base/log.h"
#include "emunic/base/nearest.h"
#include "emunic/cli/cli.h"

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct verb verbs[] = {
    { "run", emu_verb_run, "run a program on emulated nodes" },
    { "serve", emu_verb_serve, "run the daemon in the foreground" },
    { "status", emu_verb_status, "show nodes, domains, ports and counters of running daemons" },
    { "fault", emu_verb_fault, "inject faults into the transactions of running jobs" },
    { "links", emu_verb_links, "show what each link of the machine has carried" },
    { "sim", emu_verb_sim, "simulate a machine's network alone: experiments and free traffic" },
    { "settings", emu_verb_settings, "show the EMUNIC_* variables: values, defaults, meanings" },
    { "doctor", emu_verb_doctor, "show what this host has and permits, and what would make it faster" },
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(void)
{
    printf("usage: emunic VERB [OPTION]...\n"
           "\n"
           "Run programs for Cray's network interfaces on an emulated NIC and machine.\n"
           "\n");
    for (size_t i = 0; i < N_VERBS; i++)
        printf("  %-8s %s\n", verbs[i].name, verbs[i].summary);
    printf("\n"
           "  -h, --help     this text; `emunic VERB --help` tells the options of a verb\n"
           "      --version  version of the command and of the ABI it speaks\n"
           "\n"
           "Example:\n"
           "  emunic run -n 4 -- ./gni_program\n");
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    struct emu_nearest nearest;
    char hint[EMU_CLI_HINT_MAX];

    emu_log_init("emunic", EMU_LOG_WARN);
    if (!word)
        return emu_cli_usage(NULL, "what to do is missing");
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help();
        return EMU_EXIT_DONE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("emunic %s\nABI %u\n", EMU_VERSION, EMU_ABI_VERSION);
        return EMU_EXIT_DONE;
    }
    nearest = emu_nearest_to(word, 2);
    for (size_t i = 0; i < N_VERBS; i++) {
        if (strcmp(word, verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
        emu_nearest_offer(&nearest, verbs[i].name, verbs[i].name);
    }
    return emu_cli_usage(NULL, "'%s' is not a verb%s", word, emu_cli_hint(&nearest, "", hint));
}
