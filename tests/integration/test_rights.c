/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic can still do after its start (emunic/daemon/rights): looked at from outside, and tried from inside, in
 * children that give up their rights by the same calls. Needs root, because an emunic of root has most to give up.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/mover.h"
#include "emunic/base/log.h"
#include "emunic/base/socket.h"
#include "emunic/daemon/rights/broker.h"
#include "emunic/daemon/rights/rights.h"
#include "tests/common/fixture.h"
#include "tests/common/proc.h"

#define USER    65534u
#define KILL    (1ull << CAP_KILL)
#define PTRACE  (1ull << CAP_SYS_PTRACE)
#define BROKER  (KILL | PTRACE | 1ull << CAP_SETUID | 1ull << CAP_SETGID)
#define ABI_MIN 1u

static struct fx fx;

/* ---- from outside ---- */

/* The number behind `name` in a status file of /proc. */
static unsigned long long line_of(const char *path, const char *name, int base)
{
    unsigned long long value = ~0ull;
    char line[256];
    FILE *file = fopen(path, "r");

    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoull(line + strlen(name), NULL, base);
    }
    if (file)
        fclose(file);
    return value;
}

/* Each thread of emunic: its main one and the watchdog. */
static void expect_threads(unsigned long long capabilities)
{
    char path[64];
    unsigned n = 0;

    for (int tid = (int)fx.daemon; tid < (int)fx.daemon + 16; tid++) {
        snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)fx.daemon, tid);
        if (line_of(path, "Pid:", 10) == ~0ull)
            continue;
        n++;
        assert_int_equal(line_of(path, "CapPrm:", 16), capabilities);
        assert_int_equal(line_of(path, "CapEff:", 16), capabilities);
        assert_int_equal(line_of(path, "CapInh:", 16), 0);
        assert_int_equal(line_of(path, "NoNewPrivs:", 10), 1);
        assert_int_equal(line_of(path, "Seccomp:", 10), 2);
    }
    assert_true(n >= 1);
}

static void start(const char *rights)
{
    setenv("FX_RIGHTS", rights, 1);
    fx_start(&fx, NULL);
}

static void stop(void)
{
    fx_stop(&fx);
    unsetenv("FX_RIGHTS");
}

static void test_emunic_of_root_for_users_keeps_the_right_to_end_processes_alone(void **state)
{
    (void)state;
    start("others");
    expect_threads(KILL);
    stop();
}

static void test_emunic_of_root_for_root_keeps_two_capabilities(void **state)
{
    (void)state;
    start("own");
    expect_threads(KILL | PTRACE);
    stop();
}

static void test_broker_keeps_four_capabilities_and_ends_with_emunic(void **state)
{
    struct pollfd end = { .events = POLLIN };
    char path[64];
    int broker;

    (void)state;
    start("others");
    broker = proc_first_child(fx.daemon);
    assert_true(broker > 0);
    snprintf(path, sizeof(path), "/proc/%d/status", broker);
    end.fd = (int)syscall(SYS_pidfd_open, broker, 0);
    assert_true(end.fd >= 0);
    /* It sheds after the fork, and this last. */
    while (line_of(path, "NoNewPrivs:", 10) == 0)
        sched_yield();
    assert_int_equal(line_of(path, "CapEff:", 16), BROKER);
    assert_int_equal(line_of(path, "CapPrm:", 16), BROKER);
    assert_int_equal(kill(fx.daemon, SIGKILL), 0);
    assert_int_equal(poll(&end, 1, 20000), 1);
    close(end.fd);
    stop();
}

/* ---- from inside ---- */

static int give_up(bool serves_others)
{
    struct emu_rights_plan plan = { .server = "rights", .is_confined = true, .serves_others = serves_others };
    struct emu_rights *rights;

    /* Each refusal is told, which is not wanted here. */
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    if (emu_rights_begin(&plan, &rights) < 0)
        return -1;
    return emu_rights_end(rights);
}

static int in_child(int (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(body());
    }
    waitpid(child, &status, 0);
    return status;
}

static void become(uid_t uid)
{
    if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
        _exit(99);
    prctl(PR_SET_DUMPABLE, 1); /* setuid took it */
}

static bool is_refused(long result)
{
    return result == -1 && errno == EPERM;
}

/* What no emunic needs. Source: what a program does that has been taken over. */
static int try_what_none_may(void)
{
    static char *const none[] = { NULL };
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t before = emu_rights_refused();

    FX_CHECK(page != MAP_FAILED);
    FX_CHECK(is_refused(execve("/bin/true", none, none)));
    FX_CHECK(is_refused(syscall(SYS_execveat, AT_FDCWD, "/bin/true", none, none, 0)));
    FX_CHECK(is_refused(fork()));
    FX_CHECK(is_refused(vfork()));
    FX_CHECK(is_refused(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL)));
    FX_CHECK(is_refused(syscall(SYS_pidfd_getfd, 0, 0, 0)));
    FX_CHECK(is_refused(open("/tmp/rights", O_WRONLY | O_CREAT, 0600)));
    FX_CHECK(is_refused(open("/proc/self/mem", O_RDWR)));
    FX_CHECK(is_refused(open("/tmp", O_TMPFILE | O_RDWR, 0600)));
    FX_CHECK(is_refused(unlink("/tmp/rights")));
    FX_CHECK(is_refused(rename("/tmp/rights", "/tmp/rights2")));
    FX_CHECK(is_refused(mkdir("/tmp/rights", 0700)));
    FX_CHECK(is_refused(symlink("/tmp", "/tmp/rights")));
    FX_CHECK(is_refused(chmod("/tmp", 0777)));
    FX_CHECK(is_refused(mount("none", "/mnt", "tmpfs", 0, NULL)));
    FX_CHECK(is_refused(syscall(SYS_setresuid, 0, 0, 0)));
    FX_CHECK(is_refused(syscall(SYS_capset, NULL, NULL)));
    FX_CHECK(is_refused(syscall(SYS_unshare, 0)));
    FX_CHECK(is_refused(syscall(SYS_setns, 0, 0)));
    FX_CHECK(is_refused(syscall(SYS_bpf, 0, NULL, 0)));
    FX_CHECK(is_refused(syscall(SYS_io_uring_setup, 1, NULL)));
    FX_CHECK(is_refused(syscall(SYS_userfaultfd, 0)));
    FX_CHECK(is_refused(socket(AF_INET, SOCK_STREAM, 0)));
    FX_CHECK(is_refused(socket(AF_UNIX, SOCK_STREAM, 0)));
    FX_CHECK(is_refused(mprotect(page, 4096, PROT_READ | PROT_EXEC)));
    FX_CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    FX_CHECK(is_refused(kill(getppid(), 0)));
    FX_CHECK(is_refused(prctl(PR_SET_DUMPABLE, 1)));
    FX_CHECK(emu_rights_refused() > before + 20);
    return 0;
}

static int body_is_for_root(void)
{
    FX_CHECK(give_up(false) == 0);
    return try_what_none_may();
}

static int body_is_of_a_user(void)
{
    become(USER);
    FX_CHECK(give_up(false) == 0);
    FX_CHECK(line_of("/proc/self/status", "CapEff:", 16) == 0);
    FX_CHECK(line_of("/proc/self/status", "NoNewPrivs:", 10) == 1);
    FX_CHECK(line_of("/proc/self/status", "Seccomp:", 10) == 2);
    FX_CHECK(open("/etc/shadow", O_RDONLY) < 0);
    return try_what_none_may();
}

/* It touches no memory and opens nothing. */
static int body_is_for_users(void)
{
    uint64_t word = 0;
    struct iovec part = { &word, sizeof(word) };

    FX_CHECK(give_up(true) == 0);
    FX_CHECK(is_refused(open("/etc/shadow", O_RDONLY)));
    FX_CHECK(is_refused(open("/proc/self/maps", O_RDONLY)));
    FX_CHECK(is_refused(process_vm_readv(getpid(), &part, 1, &part, 1, 0)));
    FX_CHECK(is_refused(process_vm_writev(getpid(), &part, 1, &part, 1, 0)));
    return try_what_none_may();
}

static void test_emunic_of_root_cannot_do_what_it_does_not_need(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_is_for_root), 0);
}

static void test_emunic_of_a_user_cannot_do_what_it_does_not_need(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_is_of_a_user), 0);
}

static void test_emunic_for_users_opens_nothing_and_touches_no_memory(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_is_for_users), 0);
}

static pthread_barrier_t both;

static void *try_in_a_thread(void *arg)
{
    bool *was_refused = arg;

    pthread_barrier_wait(&both);
    *was_refused = is_refused(unlink("/tmp/rights"));
    return NULL;
}

/* The watchdog is there before the filter. A thread that a library makes later is under it as well. */
static int body_has_threads(void)
{
    pthread_t threads[2];
    bool were_refused[2] = { false, false };

    FX_CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    FX_CHECK(pthread_create(&threads[0], NULL, try_in_a_thread, &were_refused[0]) == 0);
    FX_CHECK(give_up(false) == 0);
    pthread_barrier_wait(&both);
    FX_CHECK(pthread_join(threads[0], NULL) == 0);
    FX_CHECK(pthread_create(&threads[1], NULL, try_in_a_thread, &were_refused[1]) == 0);
    pthread_barrier_wait(&both);
    FX_CHECK(pthread_join(threads[1], NULL) == 0);
    FX_CHECK(were_refused[0] && were_refused[1]);
    return 0;
}

static void test_filter_holds_for_all_threads(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_has_threads), 0);
}

/* Landlock, without the filter, which would refuse before it. */
static int body_is_under_landlock(void)
{
    struct emu_rights_plan plan = { .server = "rights", .is_confined = true, .serves_others = true };
    struct emu_rights *rights;
    uint64_t word = 0;
    struct iovec part = { &word, sizeof(word) };
    int fd;

    FX_CHECK(emu_rights_begin(&plan, &rights) == 0);
    FX_CHECK(rights->has_landlock);
    FX_CHECK(open("/tmp", O_RDONLY) < 0);
    FX_CHECK(errno == EACCES);
    FX_CHECK(open("/tmp/rights", O_WRONLY | O_CREAT, 0600) < 0);
    FX_CHECK(open("/etc/hostname", O_RDWR) < 0);
    FX_CHECK(process_vm_readv(getppid(), &part, 1, &part, 1, 0) < 0);
    fd = open("/proc/self/statm", O_RDONLY);
    FX_CHECK(fd >= 0);
    return 0;
}

static void test_files_and_memory_are_closed_by_the_kernels_own_rules_too(void **state)
{
    (void)state;
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1u) < (long)ABI_MIN) {
        print_message("# this kernel has no Landlock\n");
        skip();
    }
    assert_int_equal(in_child(body_is_under_landlock), 0);
}

static int body_is_switched_off(void)
{
    setenv("EMUNIC_SANDBOX", "off", 1);
    FX_CHECK(give_up(true) == 0);
    FX_CHECK(line_of("/proc/self/status", "NoNewPrivs:", 10) == 0);
    FX_CHECK(line_of("/proc/self/status", "Seccomp:", 10) == 0);
    FX_CHECK(unlink("/tmp/none-such") < 0);
    FX_CHECK(errno == ENOENT);
    return 0;
}

static void test_setting_switches_it_off(void **state)
{
    (void)state;
    assert_int_equal(in_child(body_is_switched_off), 0);
}

/* ---- the broker ---- */

static char name[64];
static struct emu_broker *broker;

/* A connection to `to`, and what its server has accepted; the other end is a child's of that user, who keeps it. */
static int accept_from(const char *to, uid_t uid, pid_t *child_out)
{
    int listener = emu_socket_listen(to, EMU_SOCKET_CONTROL);
    struct pollfd waits = { .fd = listener, .events = POLLIN };
    int fd;

    assert_true(listener >= 0);
    *child_out = fork();
    if (*child_out == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        become(uid);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = emu_socket_connect(to, EMU_SOCKET_CONTROL);
        pause();
        _exit(fd);
    }
    assert_int_equal(poll(&waits, 1, 20000), 1);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    close(listener);
    return fd;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static int start_mover(int connection, struct emu_broker_mover *mover_out)
{
    cpu_set_t processors;
    int fds[2] = { memfd_create("ring", MFD_CLOEXEC), memfd_create("bell", MFD_CLOEXEC) };
    struct emu_mover_ring *ring;
    int r;

    assert_int_equal(ftruncate(fds[0], sizeof(*ring)), 0);
    ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    assert_true(ring != MAP_FAILED);
    ring->magic = EMU_MOVER_MAGIC;
    ring->abi_version = EMU_ABI_VERSION;
    munmap(ring, sizeof(*ring));
    sched_getaffinity(0, sizeof(processors), &processors);
    r = emu_broker_start_mover(broker, connection, fds, &processors, mover_out);
    close(fds[0]);
    close(fds[1]);
    return r;
}

static void start_broker(void)
{
    snprintf(name, sizeof(name), "rights-%d", (int)getpid());
    assert_int_equal(emu_broker_start(name, FX_MOVER, &broker), 0);
}

/* Whoever has taken emunic over asks for movers with what it has. */
static void test_broker_believes_accepted_connections_of_its_emunic_alone(void **state)
{
    struct emu_broker_mover mover;
    char other[80];
    int pair[2];
    pid_t child;
    int fd;

    (void)state;
    start_broker();
    snprintf(other, sizeof(other), "%s-other", name);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(start_mover(pair[0], &mover), -EPERM);
    assert_int_equal(emu_broker_open_maps(broker, pair[0]), -EPERM);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(start_mover(fd, &mover), -EPERM);
    close(fd);
    fd = emu_socket_listen(name, EMU_SOCKET_CONTROL);
    assert_int_equal(start_mover(fd, &mover), -EPERM);
    /* The end that connects, whose other end is the listener's user. */
    close(pair[1]);
    pair[1] = emu_socket_connect(name, EMU_SOCKET_CONTROL);
    assert_true(pair[1] >= 0);
    assert_int_equal(start_mover(pair[1], &mover), -EPERM);
    close(fd);
    fd = accept_from(other, USER, &child);
    assert_int_equal(start_mover(fd, &mover), -EPERM);
    end_child(child);
    close(fd);
    close(pair[0]);
    close(pair[1]);
    emu_broker_end(broker);
}

static void test_broker_starts_movers_for_the_user_that_the_kernel_names(void **state)
{
    struct pollfd end = { .events = POLLIN };
    struct emu_broker_mover mover;
    char path[64];
    pid_t child;
    int maps;
    int fd;

    (void)state;
    start_broker();
    fd = accept_from(name, USER, &child);
    assert_int_equal(start_mover(fd, &mover), 0);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)mover.pid);
    while (line_of(path, "Seccomp:", 10) == 0)
        sched_yield();
    assert_int_equal(line_of(path, "Uid:", 10), USER);
    assert_int_equal(line_of(path, "CapPrm:", 16), 0);
    maps = emu_broker_open_maps(broker, fd);
    assert_true(maps >= 0);
    close(maps);
    /* Its process has ended: the number may be another one's. */
    end_child(child);
    assert_int_equal(emu_broker_open_maps(broker, fd), -EPERM);
    emu_broker_end(broker);
    end.fd = mover.pidfd;
    assert_int_equal(poll(&end, 1, 20000), 1);
    close(mover.pidfd);
    close(mover.stat_fd);
    close(fd);
}

/* One request that the mover answers. */
static int ask_mover(struct emu_mover_ring *ring, const struct emu_mover_request *request)
{
    uint32_t number = atomic_load(&ring->posted) + 1;

    ring->request = *request;
    atomic_store(&ring->posted, number);
    syscall(SYS_futex, &ring->posted, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
    while (atomic_load(&ring->done) != number)
        sched_yield();
    return ring->result;
}

static void test_mover_of_root_touches_the_process_that_has_connected_alone(void **state)
{
    struct emu_mover_request request = { .op = EMU_MOVER_OPEN };
    int fds[2] = { memfd_create("ring", MFD_CLOEXEC), memfd_create("bell", MFD_CLOEXEC) };
    struct emu_broker_mover mover;
    struct emu_mover_ring *ring;
    cpu_set_t processors;
    char path[64];
    pid_t child;
    int fd;

    (void)state;
    start_broker();
    fd = accept_from(name, 0, &child);
    assert_int_equal(ftruncate(fds[0], sizeof(*ring)), 0);
    ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    assert_true(ring != MAP_FAILED);
    ring->magic = EMU_MOVER_MAGIC;
    ring->abi_version = EMU_ABI_VERSION;
    sched_getaffinity(0, sizeof(processors), &processors);
    assert_int_equal(emu_broker_start_mover(broker, fd, fds, &processors, &mover), 0);
    request.pid = (uint32_t)getpid();
    assert_int_equal(ask_mover(ring, &request), -EPERM);
    request.pid = 1;
    assert_int_equal(ask_mover(ring, &request), -EPERM);
    request.pid = (uint32_t)child;
    assert_int_equal(ask_mover(ring, &request), 0);
    snprintf(path, sizeof(path), "/proc/%d/status", (int)mover.pid);
    assert_int_equal(line_of(path, "CapPrm:", 16), PTRACE);
    assert_int_equal(line_of(path, "CapEff:", 16), PTRACE);
    end_child(child);
    emu_broker_end(broker);
    munmap(ring, sizeof(*ring));
    close(mover.pidfd);
    close(mover.stat_fd);
    close(fds[0]);
    close(fds[1]);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emunic_of_root_for_users_keeps_the_right_to_end_processes_alone),
        cmocka_unit_test(test_emunic_of_root_for_root_keeps_two_capabilities),
        cmocka_unit_test(test_broker_keeps_four_capabilities_and_ends_with_emunic),
        cmocka_unit_test(test_emunic_of_root_cannot_do_what_it_does_not_need),
        cmocka_unit_test(test_emunic_of_a_user_cannot_do_what_it_does_not_need),
        cmocka_unit_test(test_emunic_for_users_opens_nothing_and_touches_no_memory),
        cmocka_unit_test(test_filter_holds_for_all_threads),
        cmocka_unit_test(test_files_and_memory_are_closed_by_the_kernels_own_rules_too),
        cmocka_unit_test(test_setting_switches_it_off),
        cmocka_unit_test(test_broker_believes_accepted_connections_of_its_emunic_alone),
        cmocka_unit_test(test_broker_starts_movers_for_the_user_that_the_kernel_names),
        cmocka_unit_test(test_mover_of_root_touches_the_process_that_has_connected_alone),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can become another user\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
