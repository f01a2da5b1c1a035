/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The broker: a small process that keeps what emunic gives up for its movers (README.md). On the server's thread.
 */
#ifndef EMUNIC_DAEMON_RIGHTS_BROKER_H
#define EMUNIC_DAEMON_RIGHTS_BROKER_H

#include <sched.h>
#include <sys/types.h>

struct emu_broker;

/*
 * Forks it, before there are threads. `server`: the name whose connections it believes. 0 or negative errno: -ENOENT,
 * there is no such program.
 */
int emu_broker_start(const char *server, const char *mover, struct emu_broker **broker_out);
/* Ends it, and all movers with it. NULL is fine. */
void emu_broker_end(struct emu_broker *broker);

/* A mover that has been started. */
struct emu_broker_mover {
    pid_t pid;
    int pidfd;
    int stat_fd; /* /proc/PID/stat */
};

/*
 * A mover for the user of a connection; for the process alone, if that is root's. It gets the ring, the bell and the
 * processors. 0 or negative errno: -EPERM, it is no connection of this emunic, or its process has ended.
 */
int emu_broker_start_mover(struct emu_broker *broker, int connection, const int ring_and_bell[2],
                           const cpu_set_t *processors, struct emu_broker_mover *mover_out);
/* /proc/PID/maps of the process behind a connection: of the memory that it has now. A descriptor, or negative errno. */
int emu_broker_open_maps(struct emu_broker *broker, int connection);

#endif
