/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic-mover: reads and writes memory of one user's processes for an emunic of root, with that user's rights.
 *
 * emunic starts it as that user, with nothing but the ring and the bell. It takes one request at a time and decides
 * nothing. All protection is the kernel's: a mover can do what the user could do, and not even open a file for writing.
 *
 *   memory     a slot holds /proc/PID/mem of a process, opened with the user's rights. Such a descriptor belongs to the
 *              memory map that the process had then. After an execve() it reads as ended, whoever still has a copy of
 *              the old process's descriptors. It is asked before each access that changes something, and after each one
 *              that tells something: what was read from another memory map is thrown away.
 *   data       go by process_vm_readv() and process_vm_writev(), which respect the protection of pages and check the
 *              rights once more at each call: a process that has become a setuid, setgid or file-capability program
 *              refuses.
 *   waits      of the kernel for pages that never come (userfaultfd, FUSE) are this process's. emunic kills it.
 *
 * For root it serves one process, whose number it is started with: it has CAP_SYS_PTRACE, because no process touches
 * memory of one that may do more.
 *
 * Everything is made at the start; from then on a filter allows eight system calls, for root one more. A compromised
 * mover could read what its user may read, and lie to emunic about that user's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/mover.h"
#include "emunic/base/clock.h"
#include "emunic/engine/amo_arithmetic.h"

#define LOOKS 300u /* at an empty ring, before it sleeps: some microseconds */

struct slot {
    pid_t pid;
    int mem_fd; /* + 1; 0: free */
};

static struct slot slots[EMU_MOVER_SLOTS];
static uint32_t only_pid; /* of root: the process that it is for; 0: its user's */

/* ---- one process's memory ---- */

static int open_slot(const struct emu_mover_request *rq)
{
    struct slot *slot = &slots[rq->slot];
    char path[32];
    int fd;

    if (only_pid != 0 && rq->pid != only_pid)
        return -EPERM;
    snprintf(path, sizeof(path), "/proc/%u/mem", (unsigned)rq->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? -EPERM : -errno;
    /* The number was still that of the process which was meant. */
    if (only_pid != 0 && syscall(SYS_pidfd_send_signal, EMU_MOVER_PIDFD_FD, 0, NULL, 0) < 0) {
        close(fd);
        return -ESRCH;
    }
    if (slot->mem_fd > 0)
        close(slot->mem_fd - 1);
    *slot = (struct slot){ (pid_t)rq->pid, fd + 1 };
    return 0;
}

/* Nothing is mapped at address 0: an error as long as the memory map lives, and nothing to read when it has ended. */
static int check_slot(const struct slot *slot)
{
    uint8_t byte;

    if (slot->mem_fd == 0)
        return -ESRCH;
    return pread(slot->mem_fd - 1, &byte, 1, 0) == 0 ? -ESRCH : 0;
}

static int result_of(ssize_t done, size_t wanted)
{
    if (done == (ssize_t)wanted)
        return 0;
    /* Another program than the one that was opened: for emunic the process has gone. */
    return done < 0 && (errno == ESRCH || errno == EPERM) ? -ESRCH : -EFAULT;
}

static int read_slot(const struct slot *slot, uint64_t addr, void *to, size_t len_bytes)
{
    struct iovec local = { to, len_bytes };
    struct iovec remote = { (void *)(uintptr_t)addr, len_bytes };
    int r = result_of(process_vm_readv(slot->pid, &local, 1, &remote, 1, 0), len_bytes);
    int still = check_slot(slot);

    return still < 0 ? still : r;
}

static int write_slot(const struct slot *slot, const struct emu_mover_request *rq, const void *bytes)
{
    uint64_t value = rq->flag_value;
    struct iovec local[2] = { { (void *)(uintptr_t)bytes, rq->len_bytes }, { &value, sizeof(value) } };
    struct iovec remote[2] = { { (void *)(uintptr_t)rq->addr, rq->len_bytes },
                               { (void *)(uintptr_t)rq->flag_addr, sizeof(value) } };
    bool has_flag = (rq->flags & EMU_MOVER_HAS_FLAG) != 0;
    unsigned first = rq->len_bytes > 0 ? 0 : 1;
    unsigned end = has_flag ? 2 : 1;
    int r = check_slot(slot);

    if (r < 0 || first == end)
        return r;
    return result_of(process_vm_writev(slot->pid, local + first, end - first, remote + first, end - first, 0),
                     rq->len_bytes + (has_flag ? sizeof(value) : 0));
}

static int change_word(const struct slot *slot, const struct emu_mover_request *rq, uint64_t *old_out)
{
    struct emu_amo amo = {
        .op = (uint8_t)rq->amo_op, .flags = (uint8_t)rq->amo_flags, .operand1 = rq->operand1, .operand2 = rq->operand2
    };
    struct emu_mover_request write = { .addr = rq->addr };
    uint64_t old = 0;
    uint64_t value;
    int r;

    if (!emu_amo_is_valid(&amo))
        return -EINVAL;
    write.len_bytes = emu_amo_word_bytes(&amo);
    /* Little endian: the low bytes of a 64-bit variable are the 32-bit word. */
    r = read_slot(slot, rq->addr, &old, write.len_bytes);
    if (r < 0)
        return r;
    value = emu_amo_apply(&amo, old);
    *old_out = old;
    return write_slot(slot, &write, &value);
}

static int copy(const struct slot *slot, const struct emu_mover_request *rq, struct emu_mover_ring *ring)
{
    int r = read_slot(&slots[rq->from_slot], rq->from_addr, ring->bytes, rq->len_bytes);

    ring->old = r == 0;
    return r < 0 ? r : write_slot(slot, rq, ring->bytes);
}

/* ---- requests ---- */

static int serve(struct emu_mover_ring *ring, const struct emu_mover_request *rq)
{
    struct slot *slot = &slots[rq->slot % EMU_MOVER_SLOTS];

    if (rq->slot >= EMU_MOVER_SLOTS || rq->from_slot >= EMU_MOVER_SLOTS || rq->len_bytes > EMU_MOVER_BYTES)
        return -EINVAL;
    switch (rq->op) {
    case EMU_MOVER_OPEN:
        return open_slot(rq);
    case EMU_MOVER_CHECK:
        return check_slot(slot);
    case EMU_MOVER_READ:
        return read_slot(slot, rq->addr, ring->bytes, rq->len_bytes);
    case EMU_MOVER_WRITE:
        return write_slot(slot, rq, ring->bytes);
    case EMU_MOVER_ATOMIC:
        return change_word(slot, rq, &ring->old);
    case EMU_MOVER_COPY:
        return copy(slot, rq, ring);
    default:
        return -EINVAL;
    }
}

static void tell(struct emu_mover_ring *ring)
{
    static const uint64_t one = 1;

    switch (atomic_exchange_explicit(&ring->wants, EMU_MOVER_LOOKS, memory_order_seq_cst)) {
    case EMU_MOVER_WAITS:
        syscall(SYS_futex, &ring->done, FUTEX_WAKE, 1, NULL, NULL, 0);
        break;
    case EMU_MOVER_LISTENS:
        if (write(EMU_MOVER_BELL_FD, &one, sizeof(one)) < 0)
            _exit(1);
        break;
    default:
        break;
    }
}

/* Until there is another request than `seen`. Its number. */
static uint32_t await(struct emu_mover_ring *ring, uint32_t seen)
{
    uint32_t posted;

    for (unsigned i = 0; i < LOOKS; i++) {
        /* Pairs with the release in emunic's post(): the request before its count. */
        posted = atomic_load_explicit(&ring->posted, memory_order_acquire);
        if (posted != seen)
            return posted;
        emu_cpu_pause();
    }
    for (;;) {
        /* Either emunic sees this, or we see its request. */
        atomic_store_explicit(&ring->sleeps, 1, memory_order_seq_cst);
        posted = atomic_load_explicit(&ring->posted, memory_order_seq_cst);
        if (posted == seen)
            syscall(SYS_futex, &ring->posted, FUTEX_WAIT, seen, NULL, NULL, 0);
        atomic_store_explicit(&ring->sleeps, 0, memory_order_relaxed);
        if (posted != seen)
            return posted;
    }
}

static void serve_all(struct emu_mover_ring *ring)
{
    uint32_t seen = 0;

    for (;;) {
        struct emu_mover_request rq;

        seen = await(ring, seen);
        rq = ring->request;
        ring->result = serve(ring, &rq);
        /* Pairs with the acquire in emunic: the answer before its count; and with its store of `wants`. */
        atomic_store_explicit(&ring->done, seen, memory_order_seq_cst);
        tell(ring);
    }
}

/* ---- start ---- */

/* What the user could do to it, and it to others. */
static bool shed(void)
{
    const struct rlimit none = { 0, 0 };
    struct rlimit files = { EMU_MOVER_SLOTS + 16, EMU_MOVER_SLOTS + 16 };
    struct rlimit now;

    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max < files.rlim_max)
        files.rlim_cur = files.rlim_max = now.rlim_max;
    return setrlimit(RLIMIT_CORE, &none) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0 &&
           setrlimit(RLIMIT_FSIZE, &none) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           close_range(only_pid != 0 ? EMU_MOVER_PIDFD_FD + 1 : EMU_MOVER_PIDFD_FD, UINT_MAX, 0) == 0;
}

/* Opening is for reading, the bell alone is written to. */
static bool confine(void)
{
    static const int plain[] = {
        SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(pread64), SCMP_SYS(close), SCMP_SYS(futex),
        SCMP_SYS(exit_group)
    };
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    bool is_good = filter;

    for (size_t i = 0; is_good && i < sizeof(plain) / sizeof(plain[0]); i++)
        is_good = seccomp_rule_add(filter, SCMP_ACT_ALLOW, plain[i], 0) == 0;
    is_good =
        is_good &&
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 2, SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)AT_FDCWD),
                         SCMP_A2_32(SCMP_CMP_EQ, O_RDONLY | O_CLOEXEC)) == 0 &&
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0_32(SCMP_CMP_EQ, EMU_MOVER_BELL_FD)) == 0 &&
        (only_pid == 0 ||
         seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(pidfd_send_signal), 2,
                          SCMP_A0_32(SCMP_CMP_EQ, EMU_MOVER_PIDFD_FD), SCMP_A1_32(SCMP_CMP_EQ, 0)) == 0) &&
        seccomp_load(filter) == 0;
    if (filter)
        seccomp_release(filter);
    return is_good;
}

int main(int argc, char **argv)
{
    struct emu_mover_ring *ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, EMU_MOVER_RING_FD, 0);

    if (ring == MAP_FAILED || ring->magic != EMU_MOVER_MAGIC || ring->abi_version != EMU_ABI_VERSION) {
        fprintf(stderr, "emunic-mover: started by emunic only\n");
        return 2;
    }
    if (argc == 2)
        only_pid = (uint32_t)strtoul(argv[1], NULL, 10);
    if ((geteuid() == 0 || getuid() == 0) && only_pid == 0) {
        fprintf(stderr, "emunic-mover: not for all of root's processes\n");
        return 1;
    }
    if (!shed() || !confine()) {
        fprintf(stderr, "emunic-mover: cannot give up its rights: %s\n", strerror(errno));
        return 1;
    }
    serve_all(ring);
}
