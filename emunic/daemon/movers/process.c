/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process of a mover.
 *
 * It is a program of its own, so nothing of emunic's memory is in it: no key, no other user's data, no address. emunic
 * has no right to become others, so its broker starts it (rights/broker.c), for the user that the kernel names for a
 * connection.
 */
#include "emunic/daemon/movers/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/daemon/rights/broker.h"
#include "emunic/daemon/rights/rights.h"

static int make_ring(struct emu_mover *mover)
{
    int fd = memfd_create("emunic-mover", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *ring;

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, sizeof(struct emu_mover_ring)) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        goto err_fd;
    ring = mmap(NULL, sizeof(struct emu_mover_ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (ring == MAP_FAILED)
        goto err_fd;
    mover->ring = ring;
    mover->ring->magic = EMU_MOVER_MAGIC;
    mover->ring->abi_version = EMU_ABI_VERSION;
    return fd;

err_fd:
    close(fd);
    return -ENOMEM;
}

int emu_mover_start(struct emu_mover *mover, int connection)
{
    struct emu_broker *broker = emu_rights_of(mover->server)->broker;
    struct emu_broker_mover started;
    int fds[2];
    int r;

    if (!broker)
        return -ENOENT;
    if (sched_getaffinity(0, sizeof(mover->processors), &mover->processors) < 0)
        return -errno;
    mover->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mover->bell_fd < 0)
        return -errno;
    fds[0] = make_ring(mover);
    fds[1] = mover->bell_fd;
    if (fds[0] < 0) {
        close(mover->bell_fd);
        return fds[0];
    }
    r = emu_broker_start_mover(broker, connection, fds, &mover->processors, &started);
    close(fds[0]);
    if (r < 0) {
        munmap(mover->ring, sizeof(*mover->ring));
        close(mover->bell_fd);
        return r;
    }
    mover->pid = started.pid;
    mover->pidfd = started.pidfd;
    mover->stat_fd = started.stat_fd;
    return 0;
}

void emu_mover_kill(struct emu_mover *mover)
{
    syscall(SYS_pidfd_send_signal, mover->pidfd, SIGKILL, NULL, 0);
}

void emu_mover_forget(struct emu_mover *mover)
{
    close(mover->pidfd);
    close(mover->stat_fd);
    close(mover->bell_fd);
    munmap(mover->ring, sizeof(*mover->ring));
}
