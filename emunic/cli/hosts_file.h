/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts files and key files, for emunics that are started by hand.
 *
 * A hosts file has one line per host: NAME ADDRESS[:PORT] [NODES]. Text behind a # is a remark. The order of the lines
 * gives the hosts their numbers, so all hosts need the same file. An IPv6 address with a port stands in brackets.
 */
#ifndef EMUNIC_CLI_HOSTS_FILE_H
#define EMUNIC_CLI_HOSTS_FILE_H

#include <stddef.h>
#include <stdint.h>

#define EMU_HOSTS_FILE_PORT     "7117" /* of a line without one */
#define EMU_HOSTS_FILE_MAX      1024u
#define EMU_HOSTS_FILE_WORD_MAX 64u

struct emu_hosts_file {
    uint32_t n;
    char (*names)[EMU_HOSTS_FILE_WORD_MAX]; /* owned, as all that follow */
    char (*addresses)[EMU_HOSTS_FILE_WORD_MAX];
    char (*ports)[EMU_HOSTS_FILE_WORD_MAX];
    uint32_t *n_nodes; /* 0: the line does not say */
};

/* 0, or negative errno and a text for people. Free it either way. */
int emu_hosts_file_read(const char *path, struct emu_hosts_file *file_out, char *err, size_t err_len);
void emu_hosts_file_free(struct emu_hosts_file *file);

#define EMU_KEY_FILE_MAX 4096u

/*
 * The bytes of a key file, which only its owner may read or write. 0; -EPERM: others may; -EINVAL: too short, too long
 * or no file; another negative errno.
 */
int emu_key_file_read(const char *path, uint8_t key_out[EMU_KEY_FILE_MAX], uint32_t *length_out);

#endif
