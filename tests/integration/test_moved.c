/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members of other users than emunic's own: emunic of root touches their memory by movers, with their rights
 * (emunic/daemon/movers). What a member can become, and memory whose pages never come. Needs root, to become others and
 * to make programs with privilege.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#include <cmocka.h>

#include "emunic/abi/abi.h"
#include "emunic/base/closing.h"
#include "emunic/engine/amo_arithmetic.h"
#include "tests/common/fixture.h"
#include "tests/common/proc.h"
#include "tests/common/raw.h"
#include "tests/integration/moved_target.h"

#define USER     65534u
#define GROUP    65532u
#define PAGE     4096u
#define PTAG     80u
#define COOKIE   800u
#define LIMIT_NS "1500000000"  /* of an access, where it has to be reached */
#define LONG_NS  "60000000000" /* and where others must not wait for it */
#define MARK     0x6d61726b6d61726bu
#define FRESH    0x1111111111111111u
#define PATIENCE 20000 /* ms; only a test that fails waits so long */

#define RUN(test)           cmocka_unit_test_setup_teardown(test, start_one, stop_one)
#define RUN_PATIENTLY(test) cmocka_unit_test_setup_teardown(test, start_patient, stop_one)
#define FUSE(test)          cmocka_unit_test_setup_teardown(test, start_with_fuse, stop_with_fuse)

static struct fx fx;
static struct emu_session admin;
static char folder[] = "/tmp/emunic-moved-XXXXXX";
static char program[64];

static int start(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || chmod(folder, 0755) < 0)
        return -1;
    snprintf(program, sizeof(program), "%s/target", folder);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    unlink(program);
    rmdir(folder);
    return 0;
}

/* Each test has an emunic of its own: a user whose mover had to be killed may be kept out for some time. */
static int start_limited(const char *limit_ns)
{
    setenv("EMUNIC_MOVER_LIMIT", limit_ns, 1);
    fx_start(&fx, NULL);
    return fx_add_domain(&fx, PTAG, COOKIE, USER, 0, &admin);
}

static int start_one(void **state)
{
    (void)state;
    return start_limited(LIMIT_NS);
}

static int start_patient(void **state)
{
    (void)state;
    return start_limited(LONG_NS);
}

static int stop_one(void **state)
{
    (void)state;
    fx_end_domain(&admin);
    return fx_stop(&fx);
}

/* ---- other users ---- */

static void become(uid_t uid)
{
    if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
        _exit(99);
    prctl(PR_SET_DUMPABLE, 1); /* setuid took it; an ordinary process of that user has it */
}

static int as_user(int (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fx.admin.fd);
        become(USER);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(body());
    }
    waitpid(child, &status, 0);
    return status;
}

/* ---- members ---- */

static int register_page(struct raw *raw, void *page, struct emu_msg_memory *memory_out)
{
    struct emu_msg msg = { .type = EMU_MSG_MEM_REGISTER,
                           .memory = { .addr = (uint64_t)(uintptr_t)page, .length_bytes = PAGE, .cq = EMU_CQ_NONE } };
    int r = raw_request(raw, &msg);

    *memory_out = msg.memory;
    return r;
}

/* Between the poster's own process (`local`) and registered memory. */
static struct emu_cmd transfer(uint8_t op, const struct raw *to, const struct emu_msg_memory *memory,
                               const void *remote, uint64_t local)
{
    return (struct emu_cmd){ .op = op,
                             .remote_nid = to->attach.nid,
                             .remote_addr = (uint64_t)(uintptr_t)remote,
                             .length_bytes = 8,
                             .remote_base = memory->addr & ~(uint64_t)(PAGE - 1),
                             .mdh = memory->mdh,
                             .generation = memory->generation,
                             .source_cq = EMU_CQ_NONE,
                             .local_addr = local };
}

static bool has_hung_up(const struct raw *raw)
{
    struct pollfd p = { .fd = raw->session.fd, .events = POLLIN };

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLIN | POLLHUP)) != 0;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Until emunic has taken all commands, or closed the port. False: neither in a long time. */
static bool await_served(const struct raw *raw)
{
    uint64_t end_ms = now_ms() + PATIENCE;

    while (now_ms() < end_ms) {
        if (atomic_load(&raw->segment->head) == atomic_load(&raw->segment->tail) || has_hung_up(raw))
            return true;
        sched_yield();
    }
    return false;
}

static void *private_page(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        _exit(98);
    return page;
}

/* ---- a member that becomes a program with privilege ---- */

enum { SETUID, SETGID, CAPABLE, ORDINARY, KINDS };

/* A descriptor of the copy, to write. */
static int copy_program(const char *source, const char *to_path)
{
    char bytes[65536];
    ssize_t n;
    int from = open(source ? source : "", O_RDONLY);
    int to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

    assert_true(from >= 0 && to >= 0);
    while ((n = read(from, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(to, bytes, (size_t)n), n);
    close(from);
    return to;
}

static void make_program(int kind)
{
    static const mode_t modes[KINDS] = { 04755, 02755, 0755, 0755 };
    struct vfs_cap_data caps = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                 .data[0].permitted = 1u << CAP_NET_RAW };
    int to = copy_program(getenv("MOVED_TARGET"), program);

    assert_int_equal(fchown(to, 0, kind == SETGID ? GROUP : 0), 0);
    assert_int_equal(fchmod(to, modes[kind]), 0);
    if (kind == CAPABLE)
        assert_int_equal(fsetxattr(to, "security.capability", &caps, XATTR_CAPS_SZ_2, 0), 0);
    close(to);
}

static int secret_pipe[2];  /* where the secret is */
static int input_pipe[2];   /* the program ends when it is closed */
static int verdict_pipe[2]; /* of the process that has kept the member's descriptors */

enum { SAFE = 's', LEAKED = 'l', STUCK = 't', BROKEN = 'b' };

/* Has the member's ring and connection, and a port of its own for the loot. */
static char plunder(struct raw *raw)
{
    struct emu_msg_memory memory;
    uint64_t *loot = private_page();
    struct emu_cmd cmd;
    char line[32] = "";
    struct raw own;
    uint64_t secret;

    if (read(secret_pipe[0], line, sizeof(line) - 1) <= 0)
        return BROKEN;
    secret = strtoull(line, NULL, 10);
    loot[0] = FRESH;
    loot[1] = MARK;
    if (raw_open(&own, fx.server, PTAG, COOKIE, 2, EMU_NID_NONE) != 0 || register_page(&own, loot, &memory) != 0)
        return BROKEN;
    cmd = transfer(EMU_OP_PUT, &own, &memory, loot, secret);
    raw_post(raw, &cmd);
    if (!await_served(raw))
        return STUCK;
    cmd = transfer(EMU_OP_GET, &own, &memory, loot + 1, secret);
    raw_post(raw, &cmd);
    if (!await_served(raw))
        return STUCK;
    return *(volatile uint64_t *)loot == FRESH ? SAFE : LEAKED;
}

static void close_pipes(void)
{
    for (int i = 0; i < 2; i++) {
        close(secret_pipe[i]);
        close(input_pipe[i]);
        close(verdict_pipe[i]);
    }
}

/* The member, and then the program. vfork: the program is executed by a process that shares our memory until then. */
static _Noreturn void attach_and_execute(void)
{
    struct raw raw;
    char verdict;

    if (raw_open(&raw, fx.server, PTAG, COOKIE, 1, EMU_NID_NONE) != 0)
        _exit(97);
    if (fork() == 0) {
        close(input_pipe[1]);
        verdict = plunder(&raw);
        _exit(write(verdict_pipe[1], &verdict, 1) == 1 ? 0 : 1);
    }
    dup2(input_pipe[0], 0);
    dup2(secret_pipe[1], 1);
    close_pipes();
    execl(program, program, (char *)NULL);
    _exit(96);
}

static int body_executes(void)
{
    char verdict = BROKEN;
    int status = 0;
    pid_t child;

    FX_CHECK(pipe(secret_pipe) == 0 && pipe(input_pipe) == 0 && pipe(verdict_pipe) == 0);
    child = fork();
    if (child == 0)
        attach_and_execute();
    close(input_pipe[0]);
    close(secret_pipe[1]);
    close(verdict_pipe[1]);
    FX_CHECK(read(verdict_pipe[0], &verdict, 1) == 1);
    close(input_pipe[1]);
    FX_CHECK(waitpid(child, &status, 0) == child);
    FX_CHECK(WIFEXITED(status));
    FX_CHECK(WEXITSTATUS(status) == 0);
    FX_CHECK(verdict == SAFE);
    return 0;
}

static void execute(int kind)
{
    make_program(kind);
    assert_int_equal(as_user(body_executes), 0);
}

static void test_member_that_executes_a_setuid_program_is_served_no_more(void **state)
{
    (void)state;
    execute(SETUID);
}

static void test_member_that_executes_a_setgid_program_is_served_no_more(void **state)
{
    (void)state;
    execute(SETGID);
}

static void test_member_that_executes_a_program_with_a_capability_is_served_no_more(void **state)
{
    (void)state;
    execute(CAPABLE);
}

static void test_member_that_executes_another_program_is_served_no_more(void **state)
{
    (void)state;
    execute(ORDINARY);
}

/* ---- how a process can pass on what it has ---- */

static struct raw member;
static struct emu_msg_memory registered;
static uint64_t *page;
static int thread_verdict;

static int open_member(void)
{
    page = private_page();
    if (raw_open(&member, fx.server, PTAG, COOKIE, 1, EMU_NID_NONE) != 0)
        return 1;
    return register_page(&member, page, &registered);
}

static void post(uint8_t op, const uint64_t *remote, uint64_t local)
{
    struct emu_cmd cmd = transfer(op, &member, &registered, remote, local);

    cmd.amo_op = op == EMU_OP_AMO ? EMU_AMO_ADD : 0;
    cmd.amo_flags = op == EMU_OP_AMO ? EMU_AMO_FETCH : 0;
    cmd.operand1 = op == EMU_OP_AMO ? 1 : 0;
    raw_post(&member, &cmd);
}

static uint64_t word(unsigned i)
{
    return ((volatile uint64_t *)page)[i];
}

/* From word 0 to word 1. */
static int put_and_look(void)
{
    page[0] = MARK;
    page[1] = FRESH;
    post(EMU_OP_PUT, page + 1, (uint64_t)(uintptr_t)page);
    return await_served(&member) && !has_hung_up(&member) && word(1) == MARK ? 0 : 1;
}

static int body_moves_private_memory(void)
{
    FX_CHECK(open_member() == 0);
    FX_CHECK(put_and_look() == 0);
    post(EMU_OP_GET, page + 1, (uint64_t)(uintptr_t)(page + 2));
    FX_CHECK(await_served(&member));
    FX_CHECK(word(2) == MARK);
    post(EMU_OP_AMO, page + 1, (uint64_t)(uintptr_t)(page + 3));
    FX_CHECK(await_served(&member));
    FX_CHECK(word(1) == MARK + 1u);
    FX_CHECK(word(3) == MARK);
    post(EMU_OP_PUT, page, 8); /* nothing is mapped at 8 */
    FX_CHECK(await_served(&member));
    FX_CHECK(!has_hung_up(&member));
    FX_CHECK(word(0) == MARK);
    return 0;
}

static void test_movers_put_get_add_and_refuse(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_moves_private_memory), 0);
}

static void *posts_in_a_thread(void *arg)
{
    (void)arg;
    thread_verdict = put_and_look();
    return NULL;
}

static int body_posts_in_a_thread(void)
{
    pthread_t thread;

    FX_CHECK(open_member() == 0);
    FX_CHECK(pthread_create(&thread, NULL, posts_in_a_thread, NULL) == 0);
    pthread_join(thread, NULL);
    FX_CHECK(thread_verdict == 0);
    return 0;
}

static void test_threads_of_a_member_are_served(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_posts_in_a_thread), 0);
}

/* The parent's memory is what is moved: the child's copy stays as it was. */
static int body_posts_in_a_fork(void)
{
    int status = -1;
    pid_t child;

    FX_CHECK(open_member() == 0);
    page[0] = MARK;
    child = fork();
    if (child == 0)
        _exit(put_and_look() == 1 && word(1) == FRESH ? 0 : 1);
    waitpid(child, &status, 0);
    FX_CHECK(status == 0);
    FX_CHECK(word(1) == MARK);
    return 0;
}

static void test_fork_that_posts_moves_its_parents_memory_only(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_posts_in_a_fork), 0);
}

/* A process that shares our memory until it executes something: we stay what we are. */
static int body_executes_in_a_vfork(void)
{
    int status = -1;
    pid_t child;

    FX_CHECK(open_member() == 0);
    child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    FX_CHECK(status == 0);
    FX_CHECK(put_and_look() == 0);
    return 0;
}

static void test_member_goes_on_after_a_vfork(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_executes_in_a_vfork), 0);
}

static int body_is_traced(void)
{
    int status = -1;
    pid_t traced;
    char byte;

    FX_CHECK(pipe(verdict_pipe) == 0 && pipe(input_pipe) == 0);
    traced = fork();
    if (traced == 0) {
        if (open_member() != 0 || write(verdict_pipe[1], "r", 1) != 1 || read(input_pipe[0], &byte, 1) != 1)
            _exit(1);
        _exit(put_and_look());
    }
    FX_CHECK(read(verdict_pipe[0], &byte, 1) == 1);
    FX_CHECK(ptrace(PTRACE_SEIZE, traced, NULL, NULL) == 0);
    FX_CHECK(ptrace(PTRACE_INTERRUPT, traced, NULL, NULL) == 0);
    FX_CHECK(waitpid(traced, &status, __WALL) == traced && WIFSTOPPED(status));
    FX_CHECK(write(input_pipe[1], "g", 1) == 1);
    FX_CHECK(ptrace(PTRACE_CONT, traced, NULL, NULL) == 0);
    FX_CHECK(waitpid(traced, &status, __WALL) == traced);
    FX_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 0;
}

static void test_traced_member_is_served(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_is_traced), 0);
}

/* ---- pages that never come ---- */

static int fault_fd;     /* made as root: nobody else may serve faults of the kernel here */
static int fuse_fd = -1; /* of the program with the file whose pages never come; -1: there is none */
static char fuse_directory[48];
static char fuse_path[64];

static void *page_of_the_file(void)
{
    int fd = open(fuse_path, O_RDWR | O_CLOEXEC);
    void *never = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    fault_fd = fuse_fd;
    return never == MAP_FAILED ? NULL : never;
}

static void *page_that_never_comes(void)
{
    struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
    void *never;

    if (fuse_fd >= 0)
        return page_of_the_file();
    never = private_page();
    range.range.start = (uint64_t)(uintptr_t)never;
    range.range.len = PAGE;
    return ioctl(fault_fd, UFFDIO_REGISTER, &range) == 0 ? never : NULL;
}

static bool await_input(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, PATIENCE) == 1;
}

static int stall_pipe[2];  /* to the test: emunic is at the page now */
static int resume_pipe[2]; /* from it: how to end */

enum {
    HANGS_UP = 'h', /* its port has to end */
    STANDS = 's',   /* its port has not ended yet */
    QUITS = 'q',
};

/* A command on a page whose fault nobody serves. */
static int stall(uint8_t op, bool is_remote)
{
    uint64_t *never = page_that_never_comes();
    char how;

    FX_CHECK(never);
    FX_CHECK(open_member() == 0);
    if (is_remote)
        FX_CHECK(register_page(&member, never, &registered) == 0);
    post(op, is_remote ? never : page, (uint64_t)(uintptr_t)(is_remote ? page : never));
    FX_CHECK(await_input(fault_fd));
    FX_CHECK(write(stall_pipe[1], "s", 1) == 1);
    FX_CHECK(read(resume_pipe[0], &how, 1) == 1);
    FX_CHECK(how != HANGS_UP || await_input(member.session.fd));
    FX_CHECK(how != STANDS || !has_hung_up(&member));
    return 0;
}

static int body_stalls_a_put(void)
{
    return stall(EMU_OP_PUT, false);
}

static int body_stalls_a_get(void)
{
    return stall(EMU_OP_GET, true);
}

static int body_stalls_an_atomic(void)
{
    return stall(EMU_OP_AMO, true);
}

static pid_t start_to_stall(int (*body)(void))
{
    pid_t child;
    char byte;

    assert_int_equal(pipe(stall_pipe), 0);
    assert_int_equal(pipe(resume_pipe), 0);
    child = fork();
    if (child == 0) {
        struct uffdio_api api = { .api = UFFD_API };

        close(fx.admin.fd);
        fault_fd = fuse_fd < 0 ? (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK) : fuse_fd;
        if (fault_fd < 0 || (fuse_fd < 0 && ioctl(fault_fd, UFFDIO_API, &api) < 0))
            _exit(95);
        become(USER);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(body());
    }
    close(stall_pipe[1]);
    assert_int_equal(read(stall_pipe[0], &byte, 1), 1);
    return child;
}

static void end_stall(pid_t child, char how)
{
    int status = -1;

    assert_int_equal(write(resume_pipe[1], &how, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(stall_pipe[0]);
    close(resume_pipe[0]);
    close(resume_pipe[1]);
}

/* A child that stands; others are served, and have what they should have. */
static pid_t start_beside_others(int (*body)(void))
{
    pid_t child;
    char *report;

    page = private_page();
    assert_int_equal(raw_open(&member, fx.server, fx.ptag, fx.cookie, 7, 0), 0);
    assert_int_equal(register_page(&member, page, &registered), 0);
    child = start_to_stall(body);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(put_and_look(), 0);
    report = fx_report(&fx, EMU_MSG_STATUS);
    assert_non_null(report);
    free(report);
    return child;
}

/* They did not wait for it: it stands still. */
static void others_go_on_while(int (*body)(void))
{
    end_stall(start_beside_others(body), STANDS);
    assert_int_equal(put_and_look(), 0);
    raw_close(&member);
}

static void test_put_from_a_page_that_never_comes_stops_nobody_else(void **state)
{
    (void)state;
    others_go_on_while(body_stalls_a_put);
}

static void test_get_from_a_page_that_never_comes_stops_nobody_else(void **state)
{
    (void)state;
    others_go_on_while(body_stalls_a_get);
}

static void test_atomic_on_a_page_that_never_comes_stops_nobody_else(void **state)
{
    (void)state;
    others_go_on_while(body_stalls_an_atomic);
}

static void test_ports_that_stand_end_and_their_user_can_attach_again(void **state)
{
    static int (*const bodies[])(void) = { body_stalls_a_put, body_stalls_a_get, body_stalls_an_atomic };

    for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        if (i > 0) {
            stop_one(state);
            start_one(state);
        }
        end_stall(start_to_stall(bodies[i]), HANGS_UP);
        assert_int_equal(as_user(body_moves_private_memory), 0);
    }
}

/* It does not wait for the end of the access either. Its two seconds are the watchdog's (test_watchdog.c). */
static void expect_end(void)
{
    struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, fx.daemon, 0), .events = POLLIN };

    assert_true(p.fd >= 0);
    assert_int_equal(kill(fx.daemon, SIGTERM), 0);
    assert_int_equal(poll(&p, 1, PATIENCE), 1);
    close(p.fd);
}

static void test_emunic_ends_while_a_mover_stands(void **state)
{
    pid_t child;

    (void)state;
    child = start_to_stall(body_stalls_a_put);
    expect_end();
    end_stall(child, QUITS);
}

/* ---- a file system whose pages never come (FUSE) ---- */

static pid_t fuse_server;
static pid_t stuck_child;

/* NULL: there is one. The mount is of this process's namespace, which ends with it. */
static const char *start_fuse(const char *how)
{
    int told[2];
    char byte;

    if (access("/dev/fuse", R_OK | W_OK) < 0)
        return "/dev/fuse cannot be opened";
    if (!getenv("NEVER_FILE"))
        return "built without libfuse3";
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return "no mount namespace of its own";
    snprintf(fuse_directory, sizeof(fuse_directory), "%s/fuse", folder);
    snprintf(fuse_path, sizeof(fuse_path), "%s/never", fuse_directory);
    if (mkdir(fuse_directory, 0755) < 0 || pipe(told) < 0)
        return "no directory";
    fuse_server = fork();
    if (fuse_server == 0) {
        dup2(told[1], STDOUT_FILENO);
        syscall(SYS_close_range, 3, ~0u, 0);
        execl(getenv("NEVER_FILE"), "never-file", fuse_directory, how, (char *)NULL);
        _exit(1);
    }
    close(told[1]);
    if (read(told[0], &byte, 1) != 1 || byte != 'i')
        return "FUSE does not begin";
    fuse_fd = told[0];
    return NULL;
}

/* Whoever waits for a page gets an error now. */
static void stop_fuse(void)
{
    if (fuse_server > 0) {
        kill(fuse_server, SIGKILL);
        waitpid(fuse_server, NULL, 0);
    }
    if (fuse_fd >= 0)
        close(fuse_fd);
    fuse_fd = -1;
    fuse_server = 0;
    umount2(fuse_directory, MNT_DETACH);
    rmdir(fuse_directory);
}

static int start_with(void **state, const char *how, const char *limit_ns)
{
    const char *why_not = start_fuse(how);

    *state = (void *)(uintptr_t)why_not;
    if (why_not)
        print_message("# FUSE left out: %s\n", why_not);
    return start_limited(limit_ns);
}

static int start_with_fuse(void **state)
{
    return start_with(state, NULL, LONG_NS);
}

static int start_with_fuse_and_limit(void **state)
{
    return start_with(state, NULL, LIMIT_NS);
}

static int start_with_fuse_that_hangs_in_close(void **state)
{
    return start_with(state, "flush", LONG_NS);
}

static int stop_with_fuse(void **state)
{
    stop_fuse();
    if (stuck_child > 0)
        waitpid(stuck_child, NULL, 0);
    stuck_child = 0;
    return stop_one(state);
}

static void test_put_from_a_file_that_never_answers_stops_nobody_else(void **state)
{
    if (!*state)
        others_go_on_while(body_stalls_a_put);
}

static void test_get_from_a_file_that_never_answers_stops_nobody_else(void **state)
{
    if (!*state)
        others_go_on_while(body_stalls_a_get);
}

static void test_port_that_waits_for_a_file_ends(void **state)
{
    if (!*state)
        end_stall(start_to_stall(body_stalls_a_put), HANGS_UP);
}

static void test_emunic_ends_while_a_file_does_not_answer(void **state)
{
    if (!*state)
        test_emunic_ends_while_a_mover_stands(state);
}

static int body_registers_the_file(void)
{
    struct emu_msg msg = { .type = EMU_MSG_MEM_REGISTER,
                           .memory = { .length_bytes = PAGE, .cq = EMU_CQ_NONE, .flags = EMU_MD_FILE } };
    struct raw raw;
    int fd = open(fuse_path, O_RDWR | O_CLOEXEC);

    msg.memory.addr = (uint64_t)(uintptr_t)page_of_the_file();
    FX_CHECK(raw_open(&raw, fx.server, PTAG, COOKIE, 1, EMU_NID_NONE) == 0);
    FX_CHECK(fd >= 0 && msg.memory.addr != 0);
    FX_CHECK(emu_session_request(&raw.session, &msg, &fd, 1, NULL) == 0);
    FX_CHECK(msg.result < 0);
    return 0;
}

static void test_file_of_such_a_system_is_refused(void **state)
{
    if (!*state)
        assert_int_equal(as_user(body_registers_the_file), 0);
}

/* emunic is the one that closes it: the sender keeps it open. */
static int body_sends_what_does_not_close(void)
{
    struct emu_msg msg = { .type = EMU_MSG_MEM_REGISTER,
                           .memory = {
                               .addr = 0x10000, .length_bytes = PAGE, .cq = EMU_CQ_NONE, .flags = EMU_MD_FILE } };
    struct raw raw;
    int fd = open(fuse_path, O_RDWR | O_CLOEXEC);

    FX_CHECK(fd >= 0 && raw_open(&raw, fx.server, PTAG, COOKIE, 1, EMU_NID_NONE) == 0);
    /* The last ones do not come in: too many hang. */
    for (unsigned i = 0; i < EMU_CLOSING_MAX + 4; i++) {
        struct emu_msg wanted = msg;

        FX_CHECK(emu_session_request(&raw.session, &wanted, &fd, 1, NULL) == 0);
        FX_CHECK(wanted.result < 0);
        FX_CHECK(await_input(fuse_fd));
    }
    FX_CHECK(write(stall_pipe[1], "s", 1) == 1);
    for (;;)
        pause();
}

static bool has_no_name(void *arg)
{
    uid_t uid;

    (void)arg;
    return emu_socket_owner(fx.server, EMU_SOCKET_CONTROL, &uid) < 0;
}

static void test_descriptor_that_does_not_close_stops_nobody(void **state)
{
    struct pollfd p = { .events = POLLIN };

    if (*state)
        return;
    stuck_child = start_beside_others(body_sends_what_does_not_close);
    /* The kernel keeps the process for as long as the file system does not answer. Of emunic nothing stays. */
    assert_int_equal(kill(fx.daemon, SIGTERM), 0);
    p.fd = member.session.fd;
    assert_int_equal(poll(&p, 1, PATIENCE), 1);
    assert_true((p.revents & POLLHUP) != 0);
    assert_true(eventually(has_no_name, NULL, PATIENCE * 1000000ull));
    kill(stuck_child, SIGKILL); /* ends when the file system does */
    raw_close(&member);
}

/* ---- the movers themselves ---- */

/* In a domain of a user root may be a member, whose memory is emunic's own to touch: what goes between is staged. */
static int body_exchanges_with_root(void)
{
    uint64_t *mine = private_page();
    struct emu_cmd cmd = transfer(EMU_OP_PUT, &member, &registered, page, (uint64_t)(uintptr_t)mine);
    struct raw own;

    mine[0] = MARK;
    FX_CHECK(raw_open(&own, fx.server, PTAG, COOKIE, 2, EMU_NID_NONE) == 0);
    raw_post(&own, &cmd);
    FX_CHECK(await_served(&own));
    cmd = transfer(EMU_OP_GET, &member, &registered, page, (uint64_t)(uintptr_t)(mine + 1));
    raw_post(&own, &cmd);
    FX_CHECK(await_served(&own));
    FX_CHECK(((volatile uint64_t *)mine)[1] == MARK);
    return 0;
}

static void test_user_and_root_of_one_domain_exchange_data(void **state)
{
    (void)state;
    assert_int_equal(open_member(), 0);
    page[0] = FRESH;
    assert_int_equal(as_user(body_exchanges_with_root), 0);
    assert_int_equal(word(0), MARK);
    raw_close(&member);
}

/* The only child; 0: it has none. */
static int child_of(int parent)
{
    int child = 0;
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
    file = fopen(path, "r");
    if (!file || fscanf(file, "%d", &child) != 1)
        child = 0;
    if (file)
        fclose(file);
    return child;
}

/* A line of /proc/PID/status of the only child of emunic's only child, its broker. */
static unsigned long long status_of_mover(const char *name, int base)
{
    int mover = child_of(child_of((int)fx.daemon));
    unsigned long long value = ~0ull;
    char path[64];
    char line[256];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", mover);
    file = mover ? fopen(path, "r") : NULL;
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoull(line + strlen(name), NULL, base);
    }
    if (file)
        fclose(file);
    return value;
}

static int body_attaches_and_waits(void)
{
    char how;

    FX_CHECK(open_member() == 0);
    FX_CHECK(write(stall_pipe[1], "s", 1) == 1);
    FX_CHECK(read(resume_pipe[0], &how, 1) == 1);
    return 0;
}

static void test_movers_have_the_users_rights_and_no_more(void **state)
{
    pid_t child;

    (void)state;
    child = start_to_stall(body_attaches_and_waits);
    assert_int_equal(status_of_mover("Uid:", 10), USER);
    assert_int_equal(status_of_mover("Gid:", 10), USER);
    assert_int_equal(status_of_mover("CapPrm:", 16), 0);
    assert_int_equal(status_of_mover("CapEff:", 16), 0);
    assert_int_equal(status_of_mover("NoNewPrivs:", 10), 1);
    assert_int_equal(status_of_mover("Seccomp:", 10), 2);
    /* emunic blocks what its watchdog waits for. */
    assert_int_equal(status_of_mover("SigBlk:", 16), 0);
    end_stall(child, QUITS);
}

static int body_kills_its_mover(void)
{
    int mover;

    FX_CHECK(open_member() == 0);
    mover = child_of(child_of((int)fx.daemon));
    FX_CHECK(mover > 0);
    FX_CHECK(kill(mover, SIGKILL) == 0);
    FX_CHECK(await_input(member.session.fd)); /* the port has been closed */
    return 0;
}

static void test_user_who_kills_the_mover_loses_the_ports(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_kills_its_mover), 0);
    assert_int_equal(as_user(body_moves_private_memory), 0);
}

/* Longer than the limit of an access, as on a loaded host. */
static int start_slow(void **state)
{
    char slow[96];
    char mover[96];

    snprintf(slow, sizeof(slow), "%s/slow-2000", folder);
    snprintf(mover, sizeof(mover), "%s/mover", folder);
    close(copy_program(getenv("SLOW_MOVER"), slow));
    close(copy_program(getenv("MOVER"), mover));
    setenv("FX_MOVER", slow, 1);
    start_one(state);
    unsetenv("FX_MOVER");
    return 0;
}

static int stop_slow(void **state)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/slow-2000", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/mover", folder);
    unlink(path);
    return stop_one(state);
}

static void test_mover_that_starts_slowly_serves(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_moves_private_memory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_member_that_executes_a_setuid_program_is_served_no_more),
        RUN(test_member_that_executes_a_setgid_program_is_served_no_more),
        RUN(test_member_that_executes_a_program_with_a_capability_is_served_no_more),
        RUN(test_member_that_executes_another_program_is_served_no_more),
        RUN(test_movers_put_get_add_and_refuse),
        RUN(test_threads_of_a_member_are_served),
        RUN(test_fork_that_posts_moves_its_parents_memory_only),
        RUN(test_member_goes_on_after_a_vfork),
        RUN(test_traced_member_is_served),
        RUN_PATIENTLY(test_put_from_a_page_that_never_comes_stops_nobody_else),
        RUN_PATIENTLY(test_get_from_a_page_that_never_comes_stops_nobody_else),
        RUN_PATIENTLY(test_atomic_on_a_page_that_never_comes_stops_nobody_else),
        RUN(test_ports_that_stand_end_and_their_user_can_attach_again),
        RUN_PATIENTLY(test_emunic_ends_while_a_mover_stands),
        FUSE(test_put_from_a_file_that_never_answers_stops_nobody_else),
        FUSE(test_get_from_a_file_that_never_answers_stops_nobody_else),
        cmocka_unit_test_setup_teardown(test_port_that_waits_for_a_file_ends, start_with_fuse_and_limit,
                                        stop_with_fuse),
        FUSE(test_emunic_ends_while_a_file_does_not_answer),
        FUSE(test_file_of_such_a_system_is_refused),
        cmocka_unit_test_setup_teardown(test_descriptor_that_does_not_close_stops_nobody,
                                        start_with_fuse_that_hangs_in_close, stop_with_fuse),
        RUN(test_user_and_root_of_one_domain_exchange_data),
        RUN(test_movers_have_the_users_rights_and_no_more),
        RUN(test_user_who_kills_the_mover_loses_the_ports),
        cmocka_unit_test_setup_teardown(test_mover_that_starts_slowly_serves, start_slow, stop_slow),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can become another user and make setuid programs\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, start, stop);
}
