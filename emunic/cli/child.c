/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child is in a process group of its own, where no signal of the terminal reaches it, and has a command line of its
 * own, so that `ps` tells it from its launcher. It stays in run's session, because Linux deals cores out to sessions
 * first (sched_autogroup) and a yield passes a core on within one session only: an emunic in another one would not make
 * room for the ranks that it shares a core with.
 */
#include "emunic/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/cli/cli.h"

/* Overwrites the command line that /proc shows. Nothing that points into argv may be used afterwards. */
static void set_title(const char *title)
{
    char *start = program_invocation_name;
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t room = 0;

    if (!file)
        return;
    while (fgetc(file) != EOF)
        room++;
    fclose(file);
    if (room < 2)
        return;
    memset(start, 0, room);
    memcpy(start, title, strlen(title) < room ? strlen(title) : room - 1);
}

/* Only stderr and the link stay open. */
static int close_the_rest(int link)
{
    int null = open("/dev/null", O_RDWR);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return -errno;
    if (link != STDERR_FILENO + 1 && dup2(link, STDERR_FILENO + 1) < 0)
        return -errno;
    syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0);
    return STDERR_FILENO + 1;
}

int emu_child_start(const char *title, int (*body)(const void *ctx, int link), const void *ctx,
                    struct emu_child *child_out)
{
    int link[2];
    pid_t pid;
    int r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
        return -errno;
    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        r = -errno;
        close(link[0]);
        close(link[1]);
        return r;
    }
    if (pid == 0) {
        close(link[0]);
        set_title(title);
        signal(SIGPIPE, SIG_IGN);
        /* What it has to say goes to the terminal, in the background as well. */
        signal(SIGTTOU, SIG_IGN);
        setpgid(0, 0);
        r = close_the_rest(link[1]);
        if (r < 0)
            _exit(EMU_EXIT_FAILED);
        /* exit, not _exit: sanitizers look for leaks here. Nothing waits in a buffer, see above. */
        exit(body(ctx, r));
    }
    close(link[1]);
    *child_out = (struct emu_child){ .pid = pid, .link = link[0] };
    return 0;
}

void emu_child_tell(int link, char byte)
{
    if (send(link, &byte, 1, MSG_NOSIGNAL) < 0)
        return; /* the other end has gone; the next read from the link tells the same */
}

void emu_child_await(struct emu_child *child, int patience_ms, int *status_out)
{
    struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, child->pid, 0), .events = POLLIN };
    int status = 0;

    if (end.fd < 0 || poll(&end, 1, patience_ms) <= 0)
        kill(child->pid, SIGKILL);
    if (end.fd >= 0)
        close(end.fd);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(child->link);
    *child = (struct emu_child){ .pid = 0, .link = -1 };
    if (status_out)
        *status_out = status;
}
