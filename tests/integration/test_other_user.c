/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a user can do who neither is root nor owns the domain: nothing. Needs root to become somebody else; each body
 * runs in a child that does so first.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/common/fixture.h"
#include "tests/common/raw.h"

#define STRANGER 65534u
#define THIRD    65533u
#define PAGE     4096u

static struct fx fx;

static int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

/* Runs body as that user in a child without any descriptor of the fixture. Its exit status. */
static int as_user(uid_t uid, int (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        close(fx.admin.fd);
        if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
            _exit(99);
        prctl(PR_SET_DUMPABLE, 1); /* setuid took it; an ordinary process of that user has it */
        _exit(body());
    }
    waitpid(child, &status, 0);
    return status;
}

/* Ends a domain that this process may be a member of: without a signal to its members. */
static void end_domain(struct emu_session *admin)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_END };

    emu_session_request(admin, &msg, NULL, 0, NULL);
    emu_session_close(admin);
}

static int body_uses_the_admin_socket(void)
{
    struct emu_session session;
    int fd = emu_socket_connect(fx.server, EMU_SOCKET_ADMIN);
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC, .type = EMU_MSG_SHUTDOWN, .abi_version = EMU_ABI_VERSION };

    FX_CHECK(emu_session_open(&session, fx.server, EMU_SOCKET_ADMIN) < 0);
    if (fd >= 0) {
        emu_msg_send(fd, &msg, NULL, 0);
        while (emu_msg_receive(fd, &msg, NULL) == 0)
            FX_CHECK(msg.type == EMU_MSG_HELLO && msg.result == -EPERM);
        close(fd);
    }
    return 0;
}

static void test_admin_socket_refuses_a_stranger(void **state)
{
    char *report;

    (void)state;
    assert_int_equal(as_user(STRANGER, body_uses_the_admin_socket), 0);
    report = fx_report(&fx, EMU_MSG_STATUS); /* and emunic is still there for its own user */
    assert_non_null(report);
    free(report);
}

static int body_attaches(void)
{
    volatile uint64_t probe = 5;
    struct emu_msg msg = { .type = EMU_MSG_ATTACH,
                           .attach = { .ptag = fx.ptag,
                                       .cookie = fx.cookie,
                                       .probe_value = probe,
                                       .probe_addr = (uint64_t)(uintptr_t)&probe } };
    struct emu_fds fds;
    struct raw raw;

    FX_CHECK(raw_connect(&raw, fx.server) == 0);
    FX_CHECK(emu_session_request(&raw.session, &msg, NULL, 0, &fds) == 0);
    FX_CHECK(msg.result == -EACCES);
    FX_CHECK(fds.n_fds == 0);
    raw_close(&raw);
    return 0;
}

/* One who has a domain here, or emunic would not talk to it. */
static void test_stranger_cannot_attach_with_known_credentials(void **state)
{
    struct emu_session admin;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 80, 800, STRANGER, 0, &admin), 0);
    assert_int_equal(as_user(STRANGER, body_attaches), 0);
    end_domain(&admin);
}

static int body_joins(void)
{
    struct emu_msg msg = { .type = EMU_MSG_JOIN_RANK, .rank = { .ptag = fx.ptag, .cookie = fx.cookie } };
    struct raw raw;

    FX_CHECK(raw_connect(&raw, fx.server) == 0);
    FX_CHECK(raw_request(&raw, &msg) == -EACCES);
    raw_close(&raw);
    return 0;
}

static void test_stranger_cannot_join_the_job(void **state)
{
    struct emu_session admin;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 80, 800, STRANGER, 0, &admin), 0);
    assert_int_equal(as_user(STRANGER, body_joins), 0);
    end_domain(&admin);
}

static int body_attaches_to_strangers_domain(void)
{
    struct raw raw;
    int r = raw_open(&raw, fx.server, 80, 800, 1, 1);

    if (r == 0)
        raw_close(&raw);
    return -r;
}

static void test_domain_of_a_user_is_for_that_user_and_root(void **state)
{
    struct emu_session admin;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 80, 800, STRANGER, 0, &admin), 0);
    assert_int_equal(as_user(STRANGER, body_attaches_to_strangers_domain), 0);
    assert_int_equal(WEXITSTATUS(as_user(THIRD, body_attaches_to_strangers_domain)), EACCES);
    assert_int_equal(body_attaches_to_strangers_domain(), 0);
    end_domain(&admin);
}

static int subscribe(struct raw *raw, uint32_t ptag, uint32_t cookie, uint32_t flags)
{
    struct emu_msg msg = { .type = EMU_MSG_ERRORS_OPEN,
                           .errors = { .ptag = ptag, .cookie = cookie, .mask = 0xff, .flags = flags } };
    struct emu_fds fds;

    FX_CHECK(raw_connect(raw, fx.server) == 0);
    FX_CHECK(emu_session_request(&raw->session, &msg, NULL, 0, &fds) == 0);
    FX_CHECK(fds.n_fds == (msg.result == 0));
    emu_fds_close(&fds);
    return msg.result;
}

static int body_subscribes_to_errors(void)
{
    struct emu_msg ptag = { .type = EMU_MSG_ERRORS_PTAG, .errors = { .ptag = fx.ptag } };
    struct raw raw;

    FX_CHECK(subscribe(&raw, fx.ptag, fx.cookie, 0) == -EACCES);
    raw_close(&raw);
    FX_CHECK(subscribe(&raw, 0, 0, EMU_ERRORS_ALL) == -EACCES);
    raw_close(&raw);
    FX_CHECK(subscribe(&raw, 80, 800, 0) == 0);
    FX_CHECK(raw_request(&raw, &ptag) == -EPERM);
    raw_close(&raw);
    return 0;
}

static void test_ordinary_user_hears_of_errors_in_its_own_domain_only(void **state)
{
    struct emu_session admin;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 80, 800, STRANGER, 0, &admin), 0);
    assert_int_equal(as_user(STRANGER, body_subscribes_to_errors), 0);
    end_domain(&admin);
}

/* The ways from one process to what another one has open or mapped. */
static int body_reaches_for_descriptors(void)
{
    static const char *const names[] = { "fd", "maps", "mem", "map_files" };
    uint64_t word = 0;
    struct iovec here = { &word, sizeof(word) };
    struct iovec there = { (void *)(uintptr_t)&fx, sizeof(word) }; /* the same address in emunic, a fork of us */
    int pidfd = (int)syscall(SYS_pidfd_open, fx.daemon, 0);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)fx.daemon, names[i]);
        FX_CHECK(open(path, O_RDONLY) < 0);
    }
    FX_CHECK(pidfd >= 0);
    for (int fd = 0; fd < 32; fd++)
        FX_CHECK(syscall(SYS_pidfd_getfd, pidfd, fd, 0) < 0);
    FX_CHECK(process_vm_readv(fx.daemon, &here, 1, &there, 1, 0) < 0);
    FX_CHECK(process_vm_writev(fx.daemon, &here, 1, &there, 1, 0) < 0);
    return 0;
}

static void test_stranger_gets_no_descriptor_of_others(void **state)
{
    (void)state;
    assert_int_equal(as_user(STRANGER, body_reaches_for_descriptors), 0);
}

static int body_writes_its_table(void)
{
    struct raw raw;
    char path[64];
    int again;

    FX_CHECK(raw_open(&raw, fx.server, 80, 800, 1, 1) == 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", raw.table_fd);
    again = open(path, O_RDWR);
    FX_CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, raw.table_fd, 0) == MAP_FAILED);
    FX_CHECK(pwrite(raw.table_fd, "x", 1, 0) < 0);
    FX_CHECK(ftruncate(raw.table_fd, 0) < 0);
    if (again >= 0) {
        FX_CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
        FX_CHECK(pwrite(again, "x", 1, 0) < 0);
        FX_CHECK(ftruncate(again, 0) < 0);
    }
    raw_close(&raw);
    return 0;
}

static void test_ordinary_member_cannot_write_its_table(void **state)
{
    struct emu_session admin;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 80, 800, STRANGER, 0, &admin), 0);
    assert_int_equal(as_user(STRANGER, body_writes_its_table), 0);
    end_domain(&admin);
}

/* ---- a stranger who plays emunic ---- */

static char squat_name[64];
static int squat_ends[2]; /* [0] ours, [1] the stranger's */

static int body_listens_under_a_name_that_others_trust(void)
{
    char byte;

    close(squat_ends[0]);
    FX_CHECK(emu_socket_listen(squat_name, EMU_SOCKET_CONTROL) >= 0);
    FX_CHECK(write(squat_ends[1], "r", 1) == 1);
    FX_CHECK(read(squat_ends[1], &byte, 1) == 0); /* until the other end has closed */
    return 0;
}

static void *tries_to_trust(void *arg)
{
    struct emu_session session;
    char byte;

    if (read(squat_ends[0], &byte, 1) == 1)
        *(int *)arg = emu_session_open(&session, squat_name, EMU_SOCKET_CONTROL);
    shutdown(squat_ends[0], SHUT_RDWR);
    return NULL;
}

static void test_server_of_a_stranger_is_not_trusted(void **state)
{
    pthread_t thread;
    int result = 0;

    (void)state;
    snprintf(squat_name, sizeof(squat_name), "squat-%d", (int)getpid());
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, squat_ends), 0);
    assert_int_equal(pthread_create(&thread, NULL, tries_to_trust, &result), 0);
    assert_int_equal(as_user(STRANGER, body_listens_under_a_name_that_others_trust), 0);
    pthread_join(thread, NULL);
    assert_int_equal(result, -EACCES);
    close(squat_ends[0]);
    close(squat_ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admin_socket_refuses_a_stranger),
        cmocka_unit_test(test_stranger_cannot_attach_with_known_credentials),
        cmocka_unit_test(test_stranger_cannot_join_the_job),
        cmocka_unit_test(test_domain_of_a_user_is_for_that_user_and_root),
        cmocka_unit_test(test_ordinary_user_hears_of_errors_in_its_own_domain_only),
        cmocka_unit_test(test_stranger_gets_no_descriptor_of_others),
        cmocka_unit_test(test_ordinary_member_cannot_write_its_table),
        cmocka_unit_test(test_server_of_a_stranger_is_not_trusted),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can become another user\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, start, stop);
}
