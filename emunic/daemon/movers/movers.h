/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Movers: processes that touch the memory of other users' processes with those users' rights (README.md). On the
 * server's thread.
 */
#ifndef EMUNIC_DAEMON_MOVERS_MOVERS_H
#define EMUNIC_DAEMON_MOVERS_MOVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/daemon/core/part.h"

struct emu_tape_access;

/*
 * What one step of a transaction has done so far by movers. A step whose mover takes long is made again from its
 * beginning; accesses that are on the tape are not made again, but give what they gave.
 */
struct emu_tape {
    struct emu_tape_access *accesses; /* owned */
    uint8_t *bytes;                   /* owned: what was read */
    uint32_t n;
    uint32_t n_max;
    uint32_t at; /* of the step that is being made: accesses seen */
    uint32_t n_bytes;
    uint32_t bytes_max;
    bool forgets; /* the step itself remembers what it has done: nothing is given twice */
    bool waits;   /* the step has to be made again */
    uint64_t seen;
};

extern const struct emu_part emu_movers_part;

/* Between the two calls accesses to moved memory are the tape's, and return -EINPROGRESS where they take long. */
void emu_movers_begin(struct emu_server *server, struct emu_tape *tape);
void emu_movers_end(struct emu_server *server);
/* May the step be made (again)? */
bool emu_tape_is_ready(const struct emu_server *server, const struct emu_tape *tape);
/* The step is over, or will not be made again. */
void emu_tape_clear(struct emu_server *server, struct emu_tape *tape);
void emu_tape_fini(struct emu_server *server, struct emu_tape *tape);

/* Is memory of the domain being touched now? */
bool emu_movers_touch(const struct emu_server *server, const struct emu_domain *domain);
/* Is the port's process still what attached? 0, or -ESRCH. Of a port that has no mover: 0. */
int emu_movers_check(struct emu_port_end *port);

#endif
