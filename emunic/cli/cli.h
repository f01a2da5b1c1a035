/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the verbs of the `emunic` command share. One thread.
 *
 * Results go to stdout, everything said to people goes to stderr as one line "emunic VERB: text".
 */
#ifndef EMUNIC_CLI_CLI_H
#define EMUNIC_CLI_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_machine;
struct emu_nearest;

/* Exit statuses. `emunic run` returns its program's. */
enum emu_exit {
    EMU_EXIT_DONE = 0,
    EMU_EXIT_FAILED = 1,
    EMU_EXIT_USAGE = 2,
    EMU_EXIT_TIMEOUT = 124, /* as that of timeout(1) */
};

/* argv[0] is the verb. Each returns the exit status. */
int emu_verb_run(int argc, char **argv);
int emu_verb_serve(int argc, char **argv);
int emu_verb_status(int argc, char **argv);
int emu_verb_links(int argc, char **argv);
int emu_verb_fault(int argc, char **argv);
int emu_verb_sim(int argc, char **argv);
int emu_verb_settings(int argc, char **argv);
int emu_verb_doctor(int argc, char **argv);

/* ---- messages.c ---- */

/* One line on stderr. Answers EMU_EXIT_FAILED. */
int emu_cli_fail(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with "; try --help". Answers EMU_EXIT_USAGE. */
int emu_cli_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define EMU_CLI_HINT_MAX 160

/* " (did you mean WORD?)" with `before` in front of the word, or nothing. Answers text. */
const char *emu_cli_hint(const struct emu_nearest *nearest, const char *before, char text[EMU_CLI_HINT_MAX]);

/* ---- paths.c ---- */

/* Folder with machine files: EMUNIC_MACHINES, else the source tree's in a build folder, else the installed one. */
const char *emu_cli_machine_dir(void);

/* The machine that a user has named. EMU_EXIT_USAGE, behind "WHAT: the reason": there is none, or its file is bad. */
int emu_cli_load_machine(const char *verb, const char *what, const char *spec, struct emu_machine **machine_out);

/* The rank wrapper: of the same build folder, else the installed one. 0, -ENOENT, -ENAMETOOLONG. */
int emu_cli_wrapper(char path_out[PATH_MAX]);

/* The library that is preloaded into mpirun, likewise. */
int emu_cli_mpirun_module(char path_out[PATH_MAX]);

/* What touches memory of other users for an emunic of root, likewise. */
int emu_cli_mover(char path_out[PATH_MAX]);

/* The emunic of one host of several, likewise. */
int emu_cli_host(char path_out[PATH_MAX]);

/* The program that starts mpirun's daemons on other hosts, likewise. */
int emu_cli_agent(char path_out[PATH_MAX]);

/* The program that asks an mpirun around this one, likewise. */
int emu_cli_allocation(char path_out[PATH_MAX]);

/* The program that `emunic sim traffic --mpi` becomes, likewise. */
int emu_cli_sim_mpi(char path_out[PATH_MAX]);

/* The program that `emunic doctor` becomes, likewise. */
int emu_cli_doctor(char path_out[PATH_MAX]);

/* The module that talks to other hosts, likewise. */
int emu_cli_transport(char path_out[PATH_MAX]);

/* The folder with our components for Open MPI, likewise. -ENOENT: they were not built. */
int emu_cli_openmpi(char path_out[PATH_MAX]);

/* The program that draws results of `emunic sim`: of the source tree in a build folder, else the installed one. */
int emu_cli_plotter(char path_out[PATH_MAX]);

/* A program as the shell would find it. 0 or the errno that explains why not, negative. */
int emu_cli_find_program(const char *name, char path_out[PATH_MAX]);

#endif
