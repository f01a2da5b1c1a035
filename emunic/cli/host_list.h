/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts of a job: which, and which ranks on each.
 */
#ifndef EMUNIC_CLI_HOST_LIST_H
#define EMUNIC_CLI_HOST_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EMU_CLI_HOSTS_MAX     4096u
#define EMU_CLI_HOST_NAME_MAX 63u

/* Filled by emu_cli_hosts_read(); emu_cli_hosts_free() takes what a failed call left as well. */
struct emu_cli_hosts {
    uint32_t n;
    char **names;    /* owned; none twice; the first is this host */
    uint32_t *slots; /* owned; ranks that the host may have, 0: not told */
};

/**
 * Read a list of hosts.
 *
 * @param[in] text  "a,b:8,c": names with slots; "@FILE": one host per line, NAME, NAME:N or NAME slots=N, where a name
 *                  that comes again has one slot more (hostfiles of mpirun and of PBS); "slurm": the allocation that
 *                  this process is in, told by `scontrol show hostnames` and SLURM_TASKS_PER_NODE.
 * @return 0, or negative errno with one line in err.
 */
int emu_cli_hosts_read(const char *text, struct emu_cli_hosts *hosts_out, char *err, size_t err_len);
/* The same from lines as those of "@FILE", up to an empty one or the end. */
int emu_cli_hosts_read_lines(FILE *lines, struct emu_cli_hosts *hosts_out, char *err, size_t err_len);
void emu_cli_hosts_free(struct emu_cli_hosts *hosts);

/* Ranks that a job has if nobody says how many: all slots, and one on each host that has none told. */
uint64_t emu_cli_hosts_slots(const struct emu_cli_hosts *hosts);

/**
 * Deal ranks out, in order. A node is on one host, with all of its ranks.
 *
 * Without slots: nodes evenly. With slots: each host as many ranks as it has slots (1 where none are told), until all
 * ranks have a host; hosts behind the last one that is needed are taken off the list.
 *
 * @param[in]  ppn       ranks per node
 * @param[out] rank_hosts  n_ranks of them
 * @return 0, or -EINVAL with one line in err: not enough slots, or a node would be on two hosts.
 */
int emu_cli_hosts_deal(struct emu_cli_hosts *hosts, uint32_t n_ranks, uint32_t ppn, uint32_t *rank_hosts, char *err,
                       size_t err_len);

#endif
