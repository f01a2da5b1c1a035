/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The broker.
 *
 * emunic forks it at its start, before it gives up its rights. It does two things, and both for a process that has
 * connected to this emunic, which the broker does not believe emunic but asks the kernel: the request brings the
 * connection itself. That must have the name of emunic's control socket at this end, which accept() gave it; its other
 * end then says user, group and process.
 *
 *   MOVER   starts emunic-mover as that user. A process of root gets a mover of its own, which touches no other one.
 *   MAPS    opens /proc/PID/maps of that process for reading.
 *
 * emunic waits for each answer. The broker never waits: it neither reads nor writes memory of members, nor files.
 *
 *   emunic <--link--> broker [CAP_KILL, CAP_SETUID, CAP_SETGID, CAP_SYS_PTRACE] --fork, become--> emunic-mover
 *
 * It dies with emunic, and movers with it, by parent death signals. emunic's memory at the start is in it; no member
 * has connected by then.
 */
#include "emunic/daemon/rights/broker.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/mover.h"
#include "emunic/base/socket.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define PROGRAM_FD (EMU_MOVER_PIDFD_FD + 1)
#define FDS_MAX    4 /* no more have room in CMSG_SPACE() of them */
#define ANSWER_MS  10000

enum { MOVER = 1, MAPS };

struct request {
    uint32_t kind;
    uint32_t zero;
    cpu_set_t processors;
};

/* With pidfd and stat of a mover, or with the maps. */
struct answer {
    int32_t result;
    int32_t pid;
};

struct emu_broker {
    pid_t pid;
    int link;
};

/* ---- messages ---- */

struct packet {
    void *bytes;
    size_t length;
    int fds[FDS_MAX];
    unsigned n_fds;
};

static int send_packet(int link, const struct packet *p)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = { 0 };
    struct iovec part = { p->bytes, p->length };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };

    if (p->n_fds > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(p->n_fds * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(p->n_fds * sizeof(int));
        memcpy(CMSG_DATA(&control.head), p->fds, p->n_fds * sizeof(int));
    }
    return sendmsg(link, &header, MSG_NOSIGNAL) == (ssize_t)p->length ? 0 : -EPIPE;
}

static void close_all(struct packet *p)
{
    while (p->n_fds > 0)
        close(p->fds[--p->n_fds]);
}

/* 0; -EPIPE: the other end has gone; -EPROTO: another length, and no descriptor is left then. */
static int receive_packet(int link, struct packet *p)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = { 0 };
    struct iovec part = { p->bytes, p->length };
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
    };
    const struct cmsghdr *c;
    ssize_t got;

    p->n_fds = 0;
    do {
        got = recvmsg(link, &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0)
        return -EPIPE;
    c = CMSG_FIRSTHDR(&header);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        p->n_fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(p->fds, CMSG_DATA(c), p->n_fds * sizeof(int));
    }
    if ((size_t)got == p->length && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return 0;
    close_all(p);
    return -EPROTO;
}

/* ---- the broker ---- */

struct broker {
    const char *server;
    int link;
    int program_fd;
};

/* Whoever is at the other end of the connection. */
struct peer {
    struct ucred cred;
    int pidfd;
};

static int ask_peer(const struct broker *b, int connection, struct peer *peer_out)
{
    socklen_t bytes = sizeof(peer_out->pidfd);
    struct pollfd end = { .events = POLLIN };

    if (!emu_socket_is_accepted(connection, b->server) || emu_socket_peer(connection, &peer_out->cred) < 0)
        return -EPERM;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &peer_out->pidfd, &bytes) < 0)
        peer_out->pidfd = (int)syscall(SYS_pidfd_open, peer_out->cred.pid, 0);
    if (peer_out->pidfd < 0)
        return -EPERM;
    end.fd = peer_out->pidfd;
    if (poll(&end, 1, 0) == 0)
        return 0;
    close(peer_out->pidfd);
    return -EPERM;
}

static bool is_alive(int pidfd)
{
    struct pollfd end = { .fd = pidfd, .events = POLLIN };

    return poll(&end, 1, 0) == 0;
}

static int open_proc(pid_t pid, const char *name)
{
    char path[48];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A descriptor at its place for the program. Never returns where that fails. */
static void place(int fd, int at)
{
    if (fd == at ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, at) < 0)
        _exit(126);
}

/* Of root's rights that one alone which its processes' memory needs; of others' nothing, which setresuid() sees to. */
static void shed_capabilities(const struct ucred *user)
{
    if (user->uid != 0)
        return;
    capng_clear(CAPNG_SELECT_BOTH);
    if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_PTRACE) < 0 ||
        capng_apply(CAPNG_SELECT_CAPS) < 0)
        _exit(126);
}

static _Noreturn void become(const struct broker *b, const struct peer *peer, const int ring_and_bell[2], pid_t parent)
{
    static char name[] = "emunic-mover";
    char number[16] = "";
    char *const arguments[] = { name, peer->cred.uid == 0 ? number : NULL, NULL };
    char *const environment[] = { NULL };
    sigset_t none;
    int high[4];

    sigemptyset(&none);
    snprintf(number, sizeof(number), "%d", (int)peer->cred.pid);
    /* First out of the way of each other's places. */
    high[0] = fcntl(ring_and_bell[0], F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    high[1] = fcntl(ring_and_bell[1], F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    high[2] = fcntl(peer->pidfd, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    high[3] = fcntl(b->program_fd, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    if (high[0] < 0 || high[1] < 0 || high[2] < 0 || high[3] < 0)
        _exit(126);
    place(high[0], EMU_MOVER_RING_FD);
    place(high[1], EMU_MOVER_BELL_FD);
    place(high[2], EMU_MOVER_PIDFD_FD);
    if (dup3(high[3], PROGRAM_FD, O_CLOEXEC) < 0 || close_range(PROGRAM_FD + 1, ~0u, 0) < 0)
        _exit(126);
    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, peer->cred.gid, peer->cred.gid, peer->cred.gid) < 0 ||
        syscall(SYS_setresuid, peer->cred.uid, peer->cred.uid, peer->cred.uid) < 0)
        _exit(126);
    shed_capabilities(&peer->cred);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
        sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        _exit(126);
    syscall(SYS_execveat, PROGRAM_FD, "", arguments, environment, AT_EMPTY_PATH);
    _exit(127);
}

static int start_mover(const struct broker *b, const struct peer *peer, const struct packet *asked, struct packet *told)
{
    const struct request *request = asked->bytes;
    struct answer *answer = told->bytes;
    pid_t parent = getpid();
    pid_t pid;

    if (asked->n_fds != 3)
        return -EINVAL;
    if (b->program_fd < 0)
        return -ENOENT;
    pid = fork();
    if (pid == 0) {
        if (sched_setaffinity(0, sizeof(request->processors), &request->processors) < 0)
            _exit(126);
        become(b, peer, asked->fds + 1, parent);
    }
    if (pid < 0)
        return -errno;
    /* Our child, not waited for: the number is still its own. */
    told->fds[0] = (int)syscall(SYS_pidfd_open, pid, 0);
    told->fds[1] = open_proc(pid, "stat");
    answer->pid = (int32_t)pid;
    if (told->fds[0] >= 0 && told->fds[1] >= 0) {
        told->n_fds = 2;
        return 0;
    }
    kill(pid, SIGKILL);
    for (unsigned i = 0; i < 2; i++) {
        if (told->fds[i] >= 0)
            close(told->fds[i]);
    }
    return -EAGAIN;
}

static int open_maps(const struct peer *peer, struct packet *told)
{
    int fd = open_proc(peer->cred.pid, "maps");

    if (fd < 0)
        return fd;
    /* Otherwise the number may have been another one's by then. */
    if (!is_alive(peer->pidfd)) {
        close(fd);
        return -EPERM;
    }
    told->fds[0] = fd;
    told->n_fds = 1;
    return 0;
}

static int serve_one(const struct broker *b, const struct packet *asked, struct packet *told)
{
    const struct request *request = asked->bytes;
    struct peer peer;
    int r = asked->n_fds > 0 ? ask_peer(b, asked->fds[0], &peer) : -EINVAL;

    if (r < 0)
        return r;
    r = request->kind == MOVER && request->zero == 0 ? start_mover(b, &peer, asked, told) :
        request->kind == MAPS && asked->n_fds == 1   ? open_maps(&peer, told) :
                                                       -EINVAL;
    close(peer.pidfd);
    return r;
}

static void child_has_ended(int signal)
{
    (void)signal; /* ppoll() returns */
}

/* Until there is a request. Movers that have ended are gone at once. */
static void await_request(const struct broker *b)
{
    struct pollfd link = { .fd = b->link, .events = POLLIN };
    sigset_t all_but_one;

    sigfillset(&all_but_one);
    sigdelset(&all_but_one, SIGCHLD);
    do {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    } while (ppoll(&link, 1, NULL, &all_but_one) <= 0);
}

static _Noreturn void serve(const struct broker *b)
{
    for (;;) {
        struct request request;
        struct answer answer = { 0 };
        struct packet asked = { .bytes = &request, .length = sizeof(request) };
        struct packet told = { .bytes = &answer, .length = sizeof(answer) };
        int r;

        await_request(b);
        r = receive_packet(b->link, &asked);
        if (r == -EPIPE)
            _exit(0);
        answer.result = r < 0 ? r : serve_one(b, &asked, &told);
        close_all(&asked);
        r = send_packet(b->link, &told);
        close_all(&told);
        if (r < 0)
            _exit(0);
    }
}

/* CAP_KILL, because a parent death signal comes from the parent, which needs the right to send it. */
static bool keep_little(void)
{
    capng_clear(CAPNG_SELECT_BOTH);
    return capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_KILL, CAP_SETUID, CAP_SETGID, CAP_SYS_PTRACE,
                         -1) == 0 &&
           capng_apply(CAPNG_SELECT_CAPS) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static _Noreturn void run(struct broker *b, pid_t emunic)
{
    sigset_t all;

    /* Signals are emunic's affair: this ends with emunic. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (b->link != 3 && dup2(b->link, 3) < 0)
        _exit(126);
    b->link = 3;
    if (b->program_fd >= 0 && b->program_fd != 4) {
        if (dup3(b->program_fd, 4, O_CLOEXEC) < 0)
            _exit(126);
        b->program_fd = 4;
    }
    if (close_range(5, ~0u, 0) < 0 || fcntl(b->link, F_SETFD, FD_CLOEXEC) < 0 ||
        signal(SIGCHLD, child_has_ended) == SIG_ERR)
        _exit(126);
    prctl(PR_SET_NAME, "emunic-broker");
    if (!keep_little() || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != emunic)
        _exit(126);
    serve(b);
}

int emu_broker_start(const char *server, const char *mover, struct emu_broker **broker_out)
{
    struct broker own = { .server = server };
    struct emu_broker *broker = calloc(1, sizeof(*broker));
    pid_t emunic = getpid();
    int link[2];
    int r = 0;

    if (!broker)
        return -ENOMEM;
    own.program_fd = open(mover, O_PATH | O_CLOEXEC);
    if (own.program_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0) {
        r = -errno;
        goto err_program;
    }
    broker->pid = fork();
    if (broker->pid == 0) {
        /* Not over what is still needed. */
        own.link = fcntl(link[1], F_DUPFD_CLOEXEC, 5);
        own.program_fd = fcntl(own.program_fd, F_DUPFD_CLOEXEC, 5);
        if (own.link < 0 || own.program_fd < 0)
            _exit(126);
        run(&own, emunic);
    }
    r = broker->pid < 0 ? -errno : 0;
    close(link[1]);
    broker->link = link[0];
    if (r < 0)
        close(link[0]);
err_program:
    if (own.program_fd >= 0)
        close(own.program_fd);
    if (r < 0) {
        free(broker);
        return r;
    }
    *broker_out = broker;
    return 0;
}

void emu_broker_end(struct emu_broker *broker)
{
    if (!broker)
        return;
    close(broker->link);
    while (waitpid(broker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(broker);
}

/* ---- emunic's side ---- */

static int ask(struct emu_broker *broker, struct request *request, struct packet *asked, struct packet *told)
{
    struct pollfd link = { .fd = broker->link, .events = POLLIN };
    struct answer *answer = told->bytes;
    int r;

    asked->bytes = request;
    asked->length = sizeof(*request);
    told->length = sizeof(*answer);
    r = send_packet(broker->link, asked);
    if (r == 0 && poll(&link, 1, ANSWER_MS) <= 0)
        r = -ETIMEDOUT;
    if (r == 0)
        r = receive_packet(broker->link, told);
    if (r == 0)
        return answer->result < 0 ? answer->result : 0;
    /* Later answers would be taken for those of other requests. */
    shutdown(broker->link, SHUT_RDWR);
    return r;
}

int emu_broker_start_mover(struct emu_broker *broker, int connection, const int ring_and_bell[2],
                           const cpu_set_t *processors, struct emu_broker_mover *mover_out)
{
    struct request request = { .kind = MOVER, .processors = *processors };
    struct packet asked = { .fds = { connection, ring_and_bell[0], ring_and_bell[1] }, .n_fds = 3 };
    struct answer answer = { 0 };
    struct packet told = { .bytes = &answer };
    int r = ask(broker, &request, &asked, &told);

    if (r == 0 && told.n_fds != 2)
        r = -EPROTO;
    if (r < 0) {
        close_all(&told);
        return r;
    }
    *mover_out = (struct emu_broker_mover){ .pid = answer.pid, .pidfd = told.fds[0], .stat_fd = told.fds[1] };
    return 0;
}

int emu_broker_open_maps(struct emu_broker *broker, int connection)
{
    struct request request = { .kind = MAPS };
    struct packet asked = { .fds = { connection }, .n_fds = 1 };
    struct answer answer = { 0 };
    struct packet told = { .bytes = &answer };
    int r = ask(broker, &request, &asked, &told);

    if (r == 0 && told.n_fds == 1)
        return told.fds[0];
    close_all(&told);
    return r < 0 ? r : -EPROTO;
}
