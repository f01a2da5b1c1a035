/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One mover and the ports that it serves: for the files of this folder.
 */
#ifndef EMUNIC_DAEMON_MOVERS_MOVER_H
#define EMUNIC_DAEMON_MOVERS_MOVER_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "emunic/abi/mover.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/memory.h"

struct emu_mover;
struct emu_tape;

/* A port whose memory a mover touches. */
struct emu_moved {
    LIST_ENTRY(emu_moved) link;
    struct emu_mover *mover; /* borrowed: outlives it */
    struct emu_port_end *port;
    uint32_t slot;
    bool is_gone; /* the process is another one now, or its mover has ended: no access any more, and the port ends */
};

/* What is under way. */
struct emu_mover_errand {
    bool is_open;
    struct emu_mover_request request;
    struct emu_moved *moved;   /* whose memory; NULL: the port has ended */
    struct emu_moved *from;    /* likewise, of a copy */
    struct emu_domain *domain; /* of that port; only ever compared */
    struct emu_tape *tape;     /* that gets the answer; NULL: nobody, or who waits for it */
    uint64_t posted_ns;
    int result;
    uint64_t old;
};

struct emu_mover {
    struct emu_watch bell_watch; /* first */
    struct emu_watch end_watch;
    LIST_ENTRY(emu_mover) link;
    struct emu_server *server;
    uid_t uid;
    gid_t gid;
    pid_t only_pid; /* of root's process, which it serves alone; 0: all of its user's */
    pid_t pid;
    int pidfd;
    int stat_fd; /* /proc/PID/stat */
    int bell_fd;
    struct emu_mover_ring *ring;
    uint32_t posted;
    struct emu_mover_errand errand;
    LIST_HEAD(, emu_moved) ports;
    uint32_t next_slot;
    cpu_set_t processors; /* that it got from emunic */
    bool has_started;     /* has answered once */
    bool has_ended;       /* killed, or dead: nothing is posted any more */
};

/* A user whose mover had to be killed. */
struct emu_mover_ban {
    LIST_ENTRY(emu_mover_ban) link;
    uid_t uid;
    uint64_t until_ns;
};

struct emu_movers {
    LIST_HEAD(, emu_mover) list; /* owned; also of those that have ended and not yet been seen to be gone */
    LIST_HEAD(, emu_mover_ban) bans;
    struct emu_tape *tape; /* whose step is being made; NULL: accesses wait */
    uint64_t n_done;       /* errands that ended so far */
    bool some_are_gone;    /* a port has to end */
};

static inline struct emu_movers *emu_movers_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_MOVERS];
}

/* ---- process.c ---- */

/*
 * Has it started for the user of the connection. 0 or negative errno; pidfd, stat, pid, bell and ring are set then.
 * -ENOENT: there is nothing that could.
 */
int emu_mover_start(struct emu_mover *mover, int connection);
/* Ends it, and does not wait. */
void emu_mover_kill(struct emu_mover *mover);
/* Of one that has ended: nothing is left of it. */
void emu_mover_forget(struct emu_mover *mover);

/* ---- access.c ---- */

struct emu_memory emu_moved_memory(struct emu_moved *moved);
/* One request that is waited for. */
int emu_moved_request(struct emu_moved *moved, const struct emu_mover_request *request);
/* Takes in what a mover has done by now. */
void emu_mover_settle(struct emu_mover *mover);
/* Does its errand take longer than it may? */
bool emu_mover_is_late(const struct emu_mover *mover);
/* Its errand takes too long, or it has died: it ends, and its ports do. */
void emu_mover_lose(struct emu_mover *mover, const char *why);

#endif
