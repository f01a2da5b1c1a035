/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The filter of system calls.
 *
 * A list of what emunic calls after its start. The rest returns EPERM. So a call that was forgotten here fails where it
 * was made, and emunic goes on: the kernel sends SIGSYS, whose handler counts the call, writes its number once, and
 * puts EPERM into its place. (A filter that answers EPERM itself would tell nobody.) A thread of ours must not block
 * SIGSYS, because the kernel ends a process that does.
 *
 *   never            other programs, other processes (fork, exec, ptrace), files for writing, changing or removing,
 *                    memory that can be executed, other users, namespaces, devices, mounts, io_uring, bpf, keys
 *   where there are other hosts    sockets
 *   where emunic touches memory    process_vm_*, opening for reading (/proc/PID/maps)
 *
 * Nothing is opened where movers touch all memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "emunic/daemon/rights/inner.h"

#define MAP_QUERY  0xc0686611u /* base/maps.c: a question to /proc/PID/maps */
#define RDMA       0x1b00u     /* the kind of all ioctls of an RDMA device */
#define SOCKETS    0x8900u     /* that of sockets and interfaces: libfabric asks for their speed */
#define KIND_MASK  0xff00u
#define NUMBERS    1024u
#define OPEN_FLAGS ((uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | O_TMPFILE) & ~(uint32_t)O_DIRECTORY)

/* ---- refusals ---- */

static _Atomic uint64_t n_refused;
static _Atomic uint8_t is_told[NUMBERS];

uint64_t emu_rights_refused(void)
{
    return atomic_load_explicit(&n_refused, memory_order_relaxed);
}

/* Digits of a number, for a handler of signals. */
static size_t put_number(char *to, unsigned number)
{
    char digits[16];
    size_t n = 0;
    size_t used = 0;

    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (n > 0)
        to[used++] = digits[--n];
    return used;
}

static void tell(unsigned number)
{
    static const char before[] = "emunic: error: its filter has refused system call ";
    static const char after[] = "; EMUNIC_SANDBOX=off takes the filter away\n";
    char line[sizeof(before) + sizeof(after) + 16];
    size_t used = sizeof(before) - 1;

    memcpy(line, before, used);
    used += put_number(line + used, number);
    memcpy(line + used, after, sizeof(after) - 1);
    if (write(STDERR_FILENO, line, used + sizeof(after) - 1) < 0)
        return; /* nobody to tell */
}

static void refuse(int signal, siginfo_t *info, void *context)
{
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    unsigned number = (unsigned)info->si_syscall;
    int error = errno;

    (void)signal;
    atomic_fetch_add_explicit(&n_refused, 1, memory_order_relaxed);
    if (number >= NUMBERS || atomic_exchange(&is_told[number], 1) == 0)
        tell(number);
    errno = error;
#if defined(__x86_64__)
    machine->gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
    machine->regs[0] = (unsigned long long)-EPERM;
#else
#error "where does this processor keep the result of a system call?"
#endif
}

static int catch_refusals(void)
{
    struct sigaction action = { .sa_sigaction = refuse, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };
    sigset_t one;

    sigemptyset(&action.sa_mask);
    sigemptyset(&one);
    sigaddset(&one, SIGSYS);
    return sigaction(SIGSYS, &action, NULL) == 0 ? -pthread_sigmask(SIG_UNBLOCK, &one, NULL) : -errno;
}

/* ---- lists ---- */

#define CALL(name) SCMP_SYS(name)

static const int always[] = {
    /* descriptors */
    CALL(read),
    CALL(write),
    CALL(readv),
    CALL(writev),
    CALL(pread64),
    CALL(pwrite64),
    CALL(lseek),
    CALL(close),
    CALL(close_range),
    CALL(fstat),
    CALL(newfstatat),
    CALL(fstatfs),
    CALL(fcntl),
    CALL(dup),
    CALL(dup3),
    CALL(dup2),
    CALL(ftruncate),
    CALL(fallocate),
    CALL(memfd_create),
    CALL(eventfd),
    CALL(eventfd2),
    CALL(pipe),
    CALL(pipe2),
    /* waiting */
    CALL(epoll_create),
    CALL(epoll_create1),
    CALL(epoll_ctl),
    CALL(epoll_wait),
    CALL(epoll_pwait),
    CALL(epoll_pwait2),
    CALL(poll),
    CALL(ppoll),
    CALL(select),
    CALL(pselect6),
    CALL(futex),
    CALL(nanosleep),
    CALL(clock_nanosleep),
    CALL(restart_syscall),
    CALL(sched_yield),
    CALL(membarrier),
    /* connections that were accepted */
    CALL(accept4),
    CALL(recvmsg),
    CALL(recvfrom),
    CALL(recvmmsg),
    CALL(sendmsg),
    CALL(sendto),
    CALL(sendmmsg),
    CALL(shutdown),
    CALL(getsockopt),
    CALL(getsockname),
    CALL(getpeername),
    /* memory */
    CALL(munmap),
    CALL(mremap),
    CALL(madvise),
    CALL(brk),
    CALL(msync),
    CALL(mincore),
    /* processes: to look at them, and to end those of a job */
    CALL(pidfd_open),
    CALL(pidfd_send_signal),
    CALL(waitid),
    CALL(wait4),
    CALL(sched_getaffinity),
    CALL(sched_getscheduler),
    CALL(sched_getparam),
    CALL(getpriority),
    CALL(getpid),
    CALL(gettid),
    CALL(getppid),
    CALL(getuid),
    CALL(geteuid),
    CALL(getgid),
    CALL(getegid),
    CALL(getrusage),
    CALL(getcpu),
    CALL(uname),
    CALL(sysinfo),
    CALL(times),
    /* itself */
    CALL(exit),
    CALL(exit_group),
    CALL(set_robust_list),
    CALL(rseq),
    CALL(sigaltstack),
    CALL(rt_sigaction),
    CALL(rt_sigprocmask),
    CALL(rt_sigreturn),
    CALL(rt_sigtimedwait),
    CALL(rt_sigpending),
    CALL(getrandom),
    CALL(clock_gettime),
    CALL(clock_getres),
    CALL(gettimeofday),
    CALL(time),
};

static const int of_hosts[] = {
    CALL(socket),     CALL(socketpair), CALL(bind),    CALL(listen),         CALL(connect),         CALL(accept),
    CALL(setsockopt), CALL(mlock),      CALL(munlock), CALL(timerfd_create), CALL(timerfd_settime),
};

/* Where emunic touches memory itself. It then opens files to read: what is mapped, and which processors are near. */
static const int of_memory[] = {
    CALL(process_vm_readv), CALL(process_vm_writev), CALL(getdents64), CALL(access),
    CALL(faccessat),        CALL(faccessat2),        CALL(readlink),   CALL(readlinkat),
};

#define N(list) (sizeof(list) / sizeof((list)[0]))

static int add_all(scmp_filter_ctx filter, const int *calls, size_t n)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    return r;
}

struct rule {
    int call;
    struct scmp_arg_cmp arg;
};

/* Calls whose argument says what they do. */
static int add_checked(scmp_filter_ctx filter)
{
    const struct rule rules[] = {
        /* memory that is not executed */
        { CALL(mmap), SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
        { CALL(mprotect), SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
        /* a thread, no process */
        { CALL(clone), SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD) },
        /* this process */
        { CALL(tgkill), SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)getpid()) },
        { CALL(prlimit64), SCMP_A0_32(SCMP_CMP_EQ, 0) },
        { CALL(sched_setaffinity), SCMP_A0_32(SCMP_CMP_EQ, 0) },
        { CALL(prctl), SCMP_A0_32(SCMP_CMP_EQ, PR_SET_NAME) },
        { CALL(prctl), SCMP_A0_32(SCMP_CMP_EQ, PR_GET_NAME) },
        /* no input to a terminal */
        { CALL(ioctl), SCMP_A1_32(SCMP_CMP_EQ, FIONBIO) },
        { CALL(ioctl), SCMP_A1_32(SCMP_CMP_EQ, FIONREAD) },
        { CALL(ioctl), SCMP_A1_32(SCMP_CMP_EQ, TCGETS) },
        { CALL(ioctl), SCMP_A1_32(SCMP_CMP_EQ, TIOCGWINSZ) },
        { CALL(ioctl), SCMP_A1_32(SCMP_CMP_EQ, MAP_QUERY) },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < N(rules); i++)
        r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, 1, &rules[i].arg);
    /* Its arguments are in memory, where a filter does not see them. libc then takes clone(). */
    return r == 0 ? seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), CALL(clone3), 0) : r;
}

static int add_rules(scmp_filter_ctx filter, const struct emu_rights *rights)
{
    int r = add_all(filter, always, N(always));

    if (r == 0)
        r = add_checked(filter);
    if (r == 0 && rights->has_hosts) {
        r = add_all(filter, of_hosts, N(of_hosts));
        if (r == 0)
            r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(ioctl), 1,
                                 SCMP_A1_64(SCMP_CMP_MASKED_EQ, KIND_MASK, RDMA));
        if (r == 0)
            r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(ioctl), 1,
                                 SCMP_A1_64(SCMP_CMP_MASKED_EQ, KIND_MASK, SOCKETS));
    }
    if (r == 0 && !rights->moves_all) {
        r = add_all(filter, of_memory, N(of_memory));
        if (r == 0)
            r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(openat), 1,
                                 SCMP_A2_64(SCMP_CMP_MASKED_EQ, OPEN_FLAGS, O_RDONLY));
    }
    return r;
}

int emu_filter_load(const struct emu_rights *rights)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
    int r = filter ? catch_refusals() : -ENOMEM;

    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    /* A tree of comparisons, not a row of them: some calls are made for each message. */
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (r == 0)
        r = add_rules(filter, rights);
    if (r == 0)
        r = seccomp_load(filter);
    if (filter)
        seccomp_release(filter);
    return r;
}
