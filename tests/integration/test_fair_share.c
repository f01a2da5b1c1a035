/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A routed program beside another user who asks emunic all the time, over as many connections as a job has. Needs root
 * to become somebody else. The rules of turns are tested exactly, in a time of the test's own, by unit/emunic/turns;
 * this test sees that emunic keeps them.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"
#include "tests/common/raw.h"

#define STRANGER       65534u
#define STRANGE_PTAG   80u
#define STRANGE_COOKIE 800u
#define CONNECTIONS    64u
#define PUTS           20000u
#define AHEAD          8u /* requests of a connection that emunic finds when it comes by */
#define PER_PUT_MAX    8u /* of the other's requests; it takes 64 x 16 where nobody has turns */

static struct fx fx;
static struct emu_session strange_admin;

struct shared {
    _Atomic uint64_t n_answers;
    _Atomic bool is_busy;
};
static struct shared *shared;

static int start(void **state)
{
    (void)state;
    setenv("FX_DATAPATH", "routed", 1);
    fx_start(&fx, NULL);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return fx_add_domain(&fx, STRANGE_PTAG, STRANGE_COOKIE, STRANGER, 0, &strange_admin);
}

static int stop(void **state)
{
    (void)state;
    munmap(shared, sizeof(*shared));
    fx_end_domain(&strange_admin);
    emu_session_close(&strange_admin);
    return fx_stop(&fx);
}

/* ---- the other user ---- */

static const struct emu_msg question = { .magic = EMU_MSG_MAGIC,
                                         .abi_version = EMU_ABI_VERSION,
                                         .type = EMU_MSG_WHERE };

/* Takes all answers that are there, and asks as often. */
static void ask_again(int fd)
{
    struct emu_msg msg;

    while (recv(fd, &msg, sizeof(msg), MSG_DONTWAIT) == (ssize_t)sizeof(msg)) {
        atomic_fetch_add(&shared->n_answers, 1);
        if (send(fd, &question, sizeof(question), MSG_NOSIGNAL) < 0)
            _exit(1);
    }
}

static _Noreturn void ask_for_ever(void)
{
    struct raw raw[CONNECTIONS];
    struct pollfd polled[CONNECTIONS];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setgroups(0, NULL) < 0 || setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
        _exit(1);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        if (raw_connect(&raw[i], fx.server) != 0)
            _exit(1);
        polled[i] = (struct pollfd){ raw[i].session.fd, POLLIN, 0 };
        for (unsigned k = 0; k < AHEAD; k++)
            send(polled[i].fd, &question, sizeof(question), MSG_NOSIGNAL);
    }
    atomic_store(&shared->is_busy, true);
    for (;;) {
        poll(polled, CONNECTIONS, -1);
        for (unsigned i = 0; i < CONNECTIONS; i++)
            ask_again(polled[i].fd);
    }
}

static void *await_it(pid_t *pid_out)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        fx_forget(&fx);
        ask_for_ever();
    }
    *pid_out = pid;
    while (!atomic_load(&shared->is_busy))
        sched_yield();
    return NULL;
}

/* ---- the program ---- */

/* One after the other. Nanoseconds for all. */
static uint64_t put_often(struct gx_side *from, const struct gx_side *to)
{
    uint64_t began_ns = emu_clock_ns();

    for (unsigned i = 0; i < PUTS; i++) {
        gni_post_descriptor_t d = gx_put(from, to, 128, 32, GNI_CQMODE_GLOBAL_EVENT);
        gni_post_descriptor_t *done = NULL;

        assert_int_equal(GNI_PostFma(from->ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(gx_complete(from->src_cq, &done), GNI_RC_SUCCESS);
    }
    return emu_clock_ns() - began_ns;
}

static void test_requests_of_another_user_take_turns_with_a_routed_job(void **state)
{
    struct gx_side side[2];
    uint64_t quiet_ns;
    uint64_t busy_ns;
    uint64_t answers;
    pid_t pid;

    (void)state;
    gx_open(&side[0], &fx, 1, 10, 0);
    gx_open(&side[1], &fx, 2, 11, 0);
    gx_connect(&side[0], &side[1]);
    quiet_ns = put_often(&side[0], &side[1]);
    await_it(&pid);
    answers = atomic_load(&shared->n_answers);
    busy_ns = put_often(&side[0], &side[1]);
    answers = atomic_load(&shared->n_answers) - answers;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    printf("# a put takes %llu ns quiet, %llu ns beside %u connections; %.2f of their requests per put\n",
           (unsigned long long)quiet_ns / PUTS, (unsigned long long)busy_ns / PUTS, CONNECTIONS,
           (double)answers / PUTS);
    assert_true(answers < (uint64_t)PER_PUT_MAX * PUTS);
    assert_true(answers > 0);
    gx_close(&side[0]);
    gx_close(&side[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_requests_of_another_user_take_turns_with_a_routed_job, start, stop),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can become another user\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
