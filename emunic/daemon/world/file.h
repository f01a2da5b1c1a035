/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of programs that registrations lie in.
 */
#ifndef EMUNIC_DAEMON_WORLD_FILE_H
#define EMUNIC_DAEMON_WORLD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/base/socket.h"

struct emu_domain;
struct emu_file;
struct emu_member;
struct emu_memory;
struct emu_msg_file;
struct emu_msg_memory;
struct emu_table_md;

/* A place for a file in the domain table. */
struct emu_file_place {
    struct emu_file *file; /* owned by the registrations that lie in it; or NULL */
    uint32_t turn;         /* of its number: grows each time the place is used */
};

/*
 * The file that a registration with EMU_MD_FILE lies in, for one more of its registrations; takes the descriptor over.
 * -EINVAL not one descriptor or no such range; -EBADF not a file that can be shared, or not open for what is wanted;
 * -ERANGE the file ends before the memory; -EPERM it is not what the process has mapped there; -EMFILE too many files.
 */
int emu_file_get(struct emu_member *member, const struct emu_msg_memory *memory, struct emu_fds *fds,
                 struct emu_file **file_out);
/* One registration less. NULL is fine. */
void emu_file_put(struct emu_file *file);
uint32_t emu_file_number(const struct emu_file *file);
/* The process has ended. Its files stay until the last of its registrations is released. */
void emu_file_drop_member(struct emu_member *member);
/* Bytes that the files of a process hold. A file that several of a user hold in a domain counts for one of them. */
uint64_t emu_files_bytes(const struct emu_member *member);
/* Pages of them that emunic has touched are touched no longer. */
void emu_files_let_go(const struct emu_member *member);
/* For a peer: emunic's descriptor, or -ENOENT. */
int emu_file_of(const struct emu_domain *domain, struct emu_msg_file *asked);
/* The memory of a live memory domain in a file. False: there is no window to be had. */
bool emu_file_reach(struct emu_file *file, const struct emu_table_md *md, struct emu_memory *mem_out);

#endif
