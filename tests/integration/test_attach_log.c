/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic's log says of attaches that fail: a warning where somebody can mend the cause, and nothing of a process
 * that has just ended. Whoever starts a job reads this log, and one clear line of a death is the launcher's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "tests/common/daemon_log.h"
#include "tests/common/raw.h"
#include "tests/integration/children.h"

#define NID 0u

static struct daemon_log daemons;

static int start(void **state)
{
    struct fx_options options = { .n_ranks = 1 };

    (void)state;
    daemon_log_begin(&daemons);
    fx_start(&fx, &options);
    daemon_log_end(&daemons);
    return children_init();
}

static int stop(void **state)
{
    (void)state;
    daemon_log_close(&daemons);
    return fx_stop(&fx);
}

/* Behind the counter: the child's connection. */
static struct raw *connection(void)
{
    return (struct raw *)(uintptr_t)&shared[1];
}

static void connect_and_wait(void)
{
    if (raw_connect(connection(), fx.server) == 0)
        atomic_store(&shared[0], 1);
    pause();
}

/* The child's descriptor, as ours. */
static int take_descriptor(pid_t child, int fd)
{
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    int taken = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

    close(pidfd);
    return taken;
}

static void test_process_that_ended_while_it_attached_is_no_warning(void **state)
{
    pid_t child = start_child(connect_and_wait);
    struct raw raw;

    (void)state;
    wait_for_child(1);
    raw = *connection();
    raw.session.fd = take_descriptor(child, raw.session.fd);
    assert_true(raw.session.fd >= 0);
    kill_child(child);
    assert_int_equal(raw_attach(&raw, fx.ptag, fx.cookie, 9, NID), -EFAULT);
    assert_string_equal(daemon_log_text(&daemons), "");
    raw_close(&raw);
}

static void test_memory_that_cannot_be_read_is_a_warning(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_ATTACH,
                           .attach = { .ptag = fx.ptag, .cookie = fx.cookie, .nid_wanted = NID, .probe_addr = 16 } };
    char line[80];
    struct raw raw;

    (void)state;
    assert_int_equal(raw_connect(&raw, fx.server), 0);
    assert_int_equal(raw_request(&raw, &msg), -EFAULT);
    snprintf(line, sizeof(line), "warn: pid %d: its memory cannot be reached", (int)getpid());
    assert_non_null(strstr(daemon_log_text(&daemons), line));
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_process_that_ended_while_it_attached_is_no_warning, start, stop),
        cmocka_unit_test_setup_teardown(test_memory_that_cannot_be_read_is_a_warning, start, stop),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
