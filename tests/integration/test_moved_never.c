/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of members whose pages never come, by userfaultfd or as a file of FUSE: the mover that touches it stands, and
 * nobody else does.
 */
#include "tests/integration/moved.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/base/closing.h"
#include "tests/common/proc.h"

#define RUN_PATIENTLY(test) cmocka_unit_test_setup_teardown(test, start_patient, stop_one)
#define FUSE(test)          cmocka_unit_test_setup_teardown(test, start_with_fuse, stop_with_fuse)

static int start_patient(void **state)
{
    (void)state;
    return start_limited(LONG_NS);
}

/* ---- pages whose faults nobody serves ---- */

static int fault_fd;     /* made as root: nobody else may serve faults of the kernel here */
static int fuse_fd = -1; /* of the program with the file whose pages never come; -1: there is none */
static char fuse_directory[48];
static char fuse_path[64];

static int open_faults(void)
{
    struct uffdio_api api = { .api = UFFD_API };

    fault_fd = fuse_fd < 0 ? (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK) : fuse_fd;
    if (fault_fd < 0)
        return -1;
    return fuse_fd < 0 ? ioctl(fault_fd, UFFDIO_API, &api) : 0;
}

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

/* A child that stands; others are served, and have what they should have. */
static pid_t start_beside_others(int (*body)(void))
{
    pid_t child;
    char *report;

    page = private_page();
    assert_int_equal(raw_open(&member, fx.server, fx.ptag, fx.cookie, 7, 0), 0);
    assert_int_equal(register_page(&member, page, &registered), 0);
    child = start_to_stall(open_faults, body);
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
        end_stall(start_to_stall(open_faults, bodies[i]), HANGS_UP);
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
    child = start_to_stall(open_faults, body_stalls_a_put);
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
        end_stall(start_to_stall(open_faults, body_stalls_a_put), HANGS_UP);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };

    if (is_left_out())
        return 0;
    return cmocka_run_group_tests(tests, start, stop);
}
