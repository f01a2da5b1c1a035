/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process of a mover.
 *
 * It is a program of its own, so nothing of emunic's memory is in it: no key, no other user's data, no address. Between
 * fork() and exec the child makes bare system calls only. It becomes the user for good (real, effective and saved
 * numbers, no supplementary groups: it opens nothing but /proc), which takes all capabilities; then it asks to die with
 * emunic, and looks whether emunic is still there.
 */
#include "emunic/daemon/movers/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/abi/abi.h"

#define PROGRAM_FD 5

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

/* A descriptor at its place for the program. Never returns where that fails. */
static void place(int fd, int at)
{
    if (fd == at ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, at) < 0)
        _exit(126);
}

static _Noreturn void become(const struct emu_mover *mover, int ring_fd, int program_fd, pid_t emunic)
{
    static char name[] = "emunic-mover";
    char *const arguments[] = { name, NULL };
    char *const environment[] = { NULL };
    sigset_t none;
    int high[3];

    sigemptyset(&none);
    /* First out of the way of each other's places. */
    high[0] = fcntl(ring_fd, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    high[1] = fcntl(mover->bell_fd, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    high[2] = fcntl(program_fd, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    if (high[0] < 0 || high[1] < 0 || high[2] < 0)
        _exit(126);
    place(high[0], EMU_MOVER_RING_FD);
    place(high[1], EMU_MOVER_BELL_FD);
    if (dup3(high[2], PROGRAM_FD, O_CLOEXEC) < 0 || close_range(PROGRAM_FD + 1, ~0u, 0) < 0)
        _exit(126);
    /* The bare calls: the library's would change all threads, which are the parent's. */
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, mover->gid, mover->gid, mover->gid) < 0 ||
        syscall(SYS_setresuid, mover->uid, mover->uid, mover->uid) < 0)
        _exit(126);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != emunic ||
        sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        _exit(126);
    syscall(SYS_execveat, PROGRAM_FD, "", arguments, environment, AT_EMPTY_PATH);
    _exit(127);
}

int emu_mover_start(struct emu_mover *mover, int program_fd)
{
    pid_t emunic = getpid();
    int ring_fd;
    int r;

    if (sched_getaffinity(0, sizeof(mover->processors), &mover->processors) < 0)
        return -errno;
    mover->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mover->bell_fd < 0)
        return -errno;
    ring_fd = make_ring(mover);
    if (ring_fd < 0) {
        close(mover->bell_fd);
        return ring_fd;
    }
    mover->pid = fork();
    if (mover->pid == 0)
        become(mover, ring_fd, program_fd, emunic);
    r = mover->pid < 0 ? -errno : 0;
    close(ring_fd);
    if (r == 0) {
        mover->pidfd = (int)syscall(SYS_pidfd_open, mover->pid, 0);
        if (mover->pidfd >= 0)
            return 0;
        r = -errno;
        kill(mover->pid, SIGKILL); /* our child, not waited for: the number is still its */
        waitpid(mover->pid, NULL, 0);
    }
    munmap(mover->ring, sizeof(*mover->ring));
    close(mover->bell_fd);
    return r;
}

void emu_mover_kill(struct emu_mover *mover)
{
    syscall(SYS_pidfd_send_signal, mover->pidfd, SIGKILL, NULL, 0);
}

bool emu_mover_is_reaped(struct emu_mover *mover)
{
    siginfo_t info = { 0 };

    if (waitid(P_PIDFD, (id_t)mover->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return false;
    close(mover->pidfd);
    close(mover->bell_fd);
    munmap(mover->ring, sizeof(*mover->ring));
    return true;
}
