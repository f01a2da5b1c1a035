/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The movers themselves: what they do for a member, with which rights, and what follows if one is slow or is killed.
 */
#include "tests/common/proc.h"
#include "tests/integration/moved.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_movers_put_get_add_and_refuse(void **state)
{
    (void)state;
    assert_int_equal(as_user(body_moves_private_memory), 0);
}

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

/* A line of /proc/PID/status of the only child of emunic's only child, its broker. */
static unsigned long long status_of_mover(const char *name, int base)
{
    int mover = proc_first_child(proc_first_child(fx.daemon));
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
    child = start_to_stall(NULL, body_attaches_and_waits);
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
    mover = proc_first_child(proc_first_child(fx.daemon));
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
        RUN(test_movers_put_get_add_and_refuse),
        RUN(test_user_and_root_of_one_domain_exchange_data),
        RUN(test_movers_have_the_users_rights_and_no_more),
        RUN(test_user_who_kills_the_mover_loses_the_ports),
        cmocka_unit_test_setup_teardown(test_mover_that_starts_slowly_serves, start_slow, stop_slow),
    };

    if (is_left_out())
        return 0;
    return cmocka_run_group_tests(tests, start, stop);
}
