/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel and this session permit, each tried as the project uses it rather than read from a setting.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/doctor/doctor.h"

#define SHM_ENOUGH_BYTES (64ull << 20) /* Open MPI's own segments of a job */
#define NOFILE_ENOUGH    1024u
#define MEMLOCK_ENOUGH   (256ull << 20)

static void say(struct emu_doctor_check *check, enum emu_doctor_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct emu_doctor_check *check, enum emu_doctor_state state, const char *format, ...)
{
    va_list args;

    check->state = state;
    va_start(args, format);
    vsnprintf(check->found, sizeof(check->found), format, args);
    va_end(args);
}

static void try_memfd(struct emu_doctor_check *check)
{
    int fd = memfd_create("emunic-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0) {
        say(check, EMU_DOCTOR_MISSING, "memfd_create: %s", strerror(errno));
        return;
    }
    if (ftruncate(fd, 4096) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        say(check, EMU_DOCTOR_MISSING, "a memfd cannot be sized and sealed: %s", strerror(errno));
    else
        say(check, EMU_DOCTOR_GOOD, "sealed memfd");
    close(fd);
}

/* A child that waits, and one word of it. */
static void try_other_memory(struct emu_doctor_check *check)
{
    static int word = 20261;
    int seen = 0;
    struct iovec here = { &seen, sizeof(seen) };
    struct iovec there = { &word, sizeof(word) };
    int hold[2];
    char never;
    pid_t child;
    ssize_t n;

    if (pipe2(hold, O_CLOEXEC) < 0) {
        say(check, EMU_DOCTOR_MISSING, "pipe: %s", strerror(errno));
        return;
    }
    child = fork();
    if (child == 0) {
        close(hold[1]);
        _exit(read(hold[0], &never, 1) < 0);
    }
    close(hold[0]);
    if (child < 0) {
        say(check, EMU_DOCTOR_MISSING, "fork: %s", strerror(errno));
        close(hold[1]);
        return;
    }
    n = process_vm_readv(child, &here, 1, &there, 1, 0);
    if (n == sizeof(seen) && seen == word)
        say(check, EMU_DOCTOR_GOOD, "process_vm_readv of a child");
    else
        say(check, EMU_DOCTOR_SLOW, "process_vm_readv of a child: %s", n < 0 ? strerror(errno) : "wrong data");
    close(hold[1]);
    waitpid(child, NULL, 0);
}

static void try_userfaultfd(struct emu_doctor_check *check)
{
    struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        say(check, EMU_DOCTOR_SLOW, "userfaultfd: %s", strerror(errno));
        return;
    }
    if (ioctl(fd, UFFDIO_API, &api) == 0)
        say(check, EMU_DOCTOR_GOOD, "with write protection");
    else
        say(check, EMU_DOCTOR_SLOW, "no write protection: %s", strerror(errno));
    close(fd);
}

/* For emunic itself, which gives up the rest. In force is what `emunic status` tells. */
static void try_seccomp(struct emu_doctor_check *check)
{
    uint32_t action = SECCOMP_RET_TRAP;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
        say(check, EMU_DOCTOR_GOOD, "filters of system calls");
    else
        say(check, EMU_DOCTOR_SLOW, "seccomp: %s", strerror(errno));
}

static void try_landlock(struct emu_doctor_check *check)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi > 0)
        say(check, EMU_DOCTOR_GOOD, "version %ld", abi);
    else
        say(check, EMU_DOCTOR_SLOW, "the kernel has none: %s", strerror(errno));
}

static void try_membarrier(struct emu_doctor_check *check)
{
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    if (known >= 0 && (known & MEMBARRIER_CMD_GLOBAL_EXPEDITED))
        say(check, EMU_DOCTOR_GOOD, "global expedited");
    else
        say(check, EMU_DOCTOR_SLOW, "membarrier: %s", known < 0 ? strerror(errno) : "no expedited barrier");
}

/* In a child, because it would stay. */
static void try_personality(struct emu_doctor_check *check)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0)
        _exit(personality(ADDR_NO_RANDOMIZE) < 0);
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        say(check, EMU_DOCTOR_SLOW, "personality(ADDR_NO_RANDOMIZE) is refused");
    else
        say(check, EMU_DOCTOR_GOOD, "addresses can be the same in all ranks");
}

/* Trapped: the value is not read. */
static void note_trap(int number)
{
    (void)number;
    _exit(0);
}

/* In a child, because a trap would stay. A virtual machine may permit it, and not trap. */
static void try_counter(struct emu_doctor_check *check)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        signal(SIGSEGV, note_trap);
        if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) < 0)
            _exit(1);
#ifdef __x86_64__
        __asm__ volatile("rdtsc" : : : "eax", "edx");
#endif
        _exit(2);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        say(check, EMU_DOCTOR_SLOW, "%s",
            WIFEXITED(status) && WEXITSTATUS(status) == 1 ? "prctl(PR_SET_TSC) is refused" :
                                                            "rdtsc is not trapped: programs see the host's counter");
    else
        say(check, EMU_DOCTOR_GOOD, "rdtsc is trapped");
}

static void say_limit(struct emu_doctor_check *check, int resource, uint64_t enough, const char *unit, uint64_t scale)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        say(check, EMU_DOCTOR_SLOW, "getrlimit: %s", strerror(errno));
    else if (limit.rlim_cur == RLIM_INFINITY)
        say(check, EMU_DOCTOR_GOOD, "no limit");
    else
        say(check, limit.rlim_cur >= enough ? EMU_DOCTOR_GOOD : EMU_DOCTOR_SLOW, "%llu%s",
            (unsigned long long)(limit.rlim_cur / scale), unit);
}

static void try_files(struct emu_doctor_check *check)
{
    say_limit(check, RLIMIT_NOFILE, NOFILE_ENOUGH, " files", 1);
}

static void try_memlock(struct emu_doctor_check *check)
{
    say_limit(check, RLIMIT_MEMLOCK, MEMLOCK_ENOUGH, " MiB", 1u << 20);
}

static void try_shm(struct emu_doctor_check *check)
{
    struct statvfs fs;

    if (statvfs("/dev/shm", &fs) < 0)
        say(check, EMU_DOCTOR_SLOW, "/dev/shm: %s", strerror(errno));
    else
        say(check, (uint64_t)fs.f_bavail * fs.f_frsize >= SHM_ENOUGH_BYTES ? EMU_DOCTOR_GOOD : EMU_DOCTOR_SLOW,
            "%llu MiB free", (unsigned long long)((uint64_t)fs.f_bavail * fs.f_frsize >> 20));
}

/* As the shell would look for it. */
static void try_mpirun(struct emu_doctor_check *check)
{
    char folders[4096];
    char path[4352];
    char *rest = folders;
    const char *folder;

    snprintf(folders, sizeof(folders), "%s", getenv("PATH") ? getenv("PATH") : "");
    while ((folder = strsep(&rest, ":"))) {
        snprintf(path, sizeof(path), "%s/mpirun", *folder ? folder : ".");
        if (access(path, X_OK) == 0) {
            say(check, EMU_DOCTOR_GOOD, "%.100s", path);
            return;
        }
    }
    say(check, EMU_DOCTOR_MISSING, "no mpirun in PATH");
}

static const struct {
    struct emu_doctor_check check;
    void (*look)(struct emu_doctor_check *check);
} all[] = {
    { { "memfd", "segments between emunic and ranks", "a kernel of 3.17 or newer whose sandbox permits memfd_create", 0,
        "" },
      try_memfd },
    { { "mpirun", "launching ranks", "install Open MPI (Debian: openmpi-bin) or add it to PATH", 0, "" }, try_mpirun },
    { { "ptrace", "transfers of private memory that could not be adopted",
        "sysctl kernel.yama.ptrace_scope=0 or 1; in a container --cap-add=SYS_PTRACE", 0, "" },
      try_other_memory },
    { { "userfaultfd", "adopting malloc'd memory while a program has threads",
        "sysctl vm.unprivileged_userfaultfd=1, or run as root", 0, "" },
      try_userfaultfd },
    { { "seccomp", "taking system calls from emunic that it does not need", "a kernel with CONFIG_SECCOMP_FILTER", 0,
        "" },
      try_seccomp },
    { { "landlock", "closing files to an emunic of root that serves users",
        "a kernel of 5.13 or newer with landlock in its parameter lsm=", 0, "" },
      try_landlock },
    { { "membarrier", "posts without a fence", "a kernel of 4.16 or newer whose sandbox permits membarrier", 0, "" },
      try_membarrier },
    { { "personality", "static data of a DMAPP program at the same address in all ranks",
        "in a container --security-opt seccomp=unconfined", 0, "" },
      try_personality },
    { { "counter", "the time-stamp counter in virtual time", "a processor whose kernel and hypervisor trap rdtsc", 0,
        "" },
      try_counter },
    { { "shm", "Open MPI's own shared memory", "mount a larger /dev/shm; in a container --shm-size=1g", 0, "" },
      try_shm },
    { { "files", "connections and mappings of many ranks", "ulimit -n 4096", 0, "" }, try_files },
    { { "memlock", "registration of memory with an RDMA device", "ulimit -l unlimited (/etc/security/limits.conf)", 0,
        "" },
      try_memlock },
};

unsigned emu_doctor_permissions(struct emu_doctor_check checks_out[EMU_DOCTOR_CHECKS_MAX])
{
    unsigned n = 0;

    for (; n < sizeof(all) / sizeof(all[0]) && n < EMU_DOCTOR_CHECKS_MAX; n++) {
        checks_out[n] = all[n].check;
        all[n].look(&checks_out[n]);
    }
    return n;
}
