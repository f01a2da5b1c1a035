/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the command: the parts of `emunic sim`.
 */
#ifndef EMUNIC_CLI_VERB_SIM_H
#define EMUNIC_CLI_VERB_SIM_H

/* argv[0] is the word behind `sim`. Each returns the exit status. */
int emu_cli_sim_list(int argc, char **argv);
int emu_cli_sim_run(int argc, char **argv);
int emu_cli_sim_audit(int argc, char **argv);
int emu_cli_sim_messages(int argc, char **argv);
int emu_cli_sim_explain(int argc, char **argv);
int emu_cli_sim_traffic(int argc, char **argv);

#endif
