/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic gives up when it starts: README.md.
 *
 * Two steps, because capabilities and Landlock rules are those of a thread and its later children, whereas a filter of
 * system calls can be put on all threads at once, when everything has been opened:
 *
 *   emu_rights_begin()   before the first thread: the broker starts, capabilities go, Landlock comes
 *   emu_rights_end()     when all is open: the filter
 */
#ifndef EMUNIC_DAEMON_RIGHTS_RIGHTS_H
#define EMUNIC_DAEMON_RIGHTS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_broker;

struct emu_rights_plan {
    const char *server; /* its name */
    const char *mover;  /* path of emunic-mover; NULL: none */
    const char *module; /* of a machine of several hosts; NULL: this one alone */
    bool is_confined;   /* false: everything is kept */
    bool serves_others; /* of root: processes of other users */
};

struct emu_rights {
    struct emu_broker *broker; /* owned; NULL: no mover can be started */
    bool is_confined;
    bool serves_others;
    bool has_hosts;
    bool moves_all; /* emunic may touch no process's memory itself */
    bool has_filter;
    unsigned landlock_abi; /* of the kernel; 0: it has none */
    bool has_landlock;     /* rules are in force */
    const char *why_off;   /* static: why nothing is given up; NULL: it is */
    uint64_t capabilities; /* kept: a bit each */
};

/*
 * 0, or negative errno: then emunic must not go on. A kernel without Landlock is no error. Call it before there are
 * threads; the broker is forked here. The plan's texts are not needed afterwards.
 */
int emu_rights_begin(const struct emu_rights_plan *plan, struct emu_rights **rights_out);
/*
 * Before a library starts threads, of whom emu_rights_begin() would know nothing: capabilities go that no emunic of
 * several hosts for one user needs. 0 or negative errno.
 */
int emu_rights_shed_early(void);
/* From now on what is not on the list of system calls fails with EPERM, in all threads. 0 or negative errno. */
int emu_rights_end(struct emu_rights *rights);
/* Ends the broker, and so the movers. NULL is fine. What was given up does not come back. */
void emu_rights_destroy(struct emu_rights *rights);

/* System calls that the filter has refused. Any thread. */
uint64_t emu_rights_refused(void);

/* What is kept, as "kill,sys_ptrace". Returns text, which may be empty. */
const char *emu_rights_capabilities(const struct emu_rights *rights, char *text, size_t bytes);

#endif
