/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGTERM ends emunic in every state. The hang here is a standard error that takes nothing any more: emunic blocks in
 * its next message, as it would in a provider's call or in a page that nobody serves.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/daemon/daemon.h"
#include "tests/common/fixture.h"
#include "tests/common/proc.h"

#define BOUND_NS    2000000000ull
#define PATIENCE_MS 20000

static char name[64];

/* Nobody reads what is there, and nothing more fits. */
static void fill(int fd)
{
    static const char text[4096];

    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, text, sizeof(text)) > 0)
        ;
    while (write(fd, text, 1) > 0)
        ;
    fcntl(fd, F_SETFL, 0);
}

static _Noreturn void serve(int ready_fd, bool hangs)
{
    const struct emu_server_options options = {
        .name = name, .machine = "aries:groups=2", .machine_dir = FX_MACHINE_DIR, .ready_fd = ready_fd
    };
    struct emu_server *server;
    char err[256];
    int out[2];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* As a quiet one it says nothing at its end; as a talkative one it says that it stops. */
    setenv("EMUNIC_LOG", hangs ? "info" : "error", 1);
    emu_log_init("emunic", EMU_LOG_ERROR);
    if (emu_daemon_create(&options, &server, err, sizeof(err)) < 0 || pipe(out) < 0)
        _exit(99);
    if (hangs) {
        fill(out[1]);
        dup2(out[1], STDERR_FILENO);
    }
    emu_server_run(server);
    emu_server_destroy(server);
    _exit(0);
}

static pid_t start(bool hangs)
{
    static unsigned n;
    int ready[2];
    char byte;
    pid_t pid;

    snprintf(name, sizeof(name), "watchdog-%d-%u", (int)getpid(), n++);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        serve(ready[1], hangs);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

/* Its wait status. */
static int await_end(pid_t pid)
{
    struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
    int status = -1;

    if (poll(&end, 1, PATIENCE_MS) <= 0)
        kill(pid, SIGKILL);
    close(end.fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static bool blocks_in_write(void *arg)
{
    char path[64];
    char line[128];
    FILE *file;
    bool answer;

    snprintf(path, sizeof(path), "/proc/%d/syscall", *(pid_t *)arg);
    file = fopen(path, "re");
    answer = file && fgets(line, sizeof(line), file) && atoi(line) == SYS_write;
    if (file)
        fclose(file);
    return answer;
}

/* The kernel keeps a signal of the process for as long as no thread has taken it, and only the watchdog does. */
static bool has_taken_SIGTERM(void *arg)
{
    char path[64];
    char line[128];
    unsigned long long pending = 0;
    bool is_known = false;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", *(pid_t *)arg);
    file = fopen(path, "re");
    while (file && !is_known && fgets(line, sizeof(line), file))
        is_known = sscanf(line, "ShdPnd: %llx", &pending) == 1;
    if (file)
        fclose(file);
    return is_known && (pending >> (SIGTERM - 1) & 1) == 0;
}

static void test_SIGTERM_ends_an_emunic_that_works(void **state)
{
    pid_t pid = start(false);

    (void)state;
    kill(pid, SIGTERM);
    assert_int_equal(await_end(pid), 0);
}

static void test_SIGTERM_ends_an_emunic_that_hangs_within_two_seconds(void **state)
{
    pid_t pid = start(true);
    uint64_t began_ns;
    int status;

    (void)state;
    assert_true(eventually(blocks_in_write, &pid, PATIENCE_MS * 1000000ull));
    began_ns = emu_clock_ns();
    kill(pid, SIGTERM);
    status = await_end(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
    assert_true(emu_clock_ns() - began_ns < BOUND_NS);
}

static void test_second_SIGTERM_ends_it_at_once(void **state)
{
    pid_t pid = start(true);
    uint64_t began_ns;
    int status;

    (void)state;
    assert_true(eventually(blocks_in_write, &pid, PATIENCE_MS * 1000000ull));
    began_ns = emu_clock_ns();
    kill(pid, SIGTERM);
    assert_true(eventually(has_taken_SIGTERM, &pid, PATIENCE_MS * 1000000ull)); /* two at once are one */
    kill(pid, SIGTERM);
    status = await_end(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
    assert_true(emu_clock_ns() - began_ns < 1200000000);
}

static void test_SIGTERM_before_the_loop_runs_ends_it(void **state)
{
    pid_t pid = start(false);

    (void)state;
    kill(pid, SIGTERM); /* perhaps between the sockets and the first round */
    assert_int_equal(await_end(pid), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_SIGTERM_ends_an_emunic_that_works),
        cmocka_unit_test(test_SIGTERM_ends_an_emunic_that_hangs_within_two_seconds),
        cmocka_unit_test(test_second_SIGTERM_ends_it_at_once),
        cmocka_unit_test(test_SIGTERM_before_the_loop_runs_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
