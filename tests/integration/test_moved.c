/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a member can become, and what it can pass on, while movers touch its memory: programs with privilege, threads,
 * forks, a tracer. Elsewhere: memory whose pages never come (test_moved_never.c), the movers themselves
 * (test_moved_movers.c).
 */
#include "tests/integration/moved.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define GROUP 65532u

static char program[64];

static int stop_and_remove(void **state)
{
    unlink(program);
    return stop(state);
}

/* ---- a member that becomes a program with privilege ---- */

enum { SETUID, SETGID, CAPABLE, ORDINARY, KINDS };

static void make_program(int kind)
{
    static const mode_t modes[KINDS] = { 04755, 02755, 0755, 0755 };
    struct vfs_cap_data caps = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                 .data[0].permitted = 1u << CAP_NET_RAW };
    int to;

    snprintf(program, sizeof(program), "%s/target", folder);
    to = copy_program(getenv("MOVED_TARGET"), program);
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

static int thread_verdict;

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_member_that_executes_a_setuid_program_is_served_no_more),
        RUN(test_member_that_executes_a_setgid_program_is_served_no_more),
        RUN(test_member_that_executes_a_program_with_a_capability_is_served_no_more),
        RUN(test_member_that_executes_another_program_is_served_no_more),
        RUN(test_threads_of_a_member_are_served),
        RUN(test_fork_that_posts_moves_its_parents_memory_only),
        RUN(test_member_goes_on_after_a_vfork),
        RUN(test_traced_member_is_served),
    };

    if (is_left_out())
        return 0;
    return cmocka_run_group_tests(tests, start, stop_and_remove);
}
