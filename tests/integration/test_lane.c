/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane (client/lane.h) that is found while its memory goes. Finding one asks emunic about the owner; emunic is
 * stopped, so the question waits behind the deregistration, which in turn waits for us. Afterwards the lane must lead
 * nowhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/client/direct.h"
#include "emunic/client/lane.h"
#include "emunic/client/port.h"
#include "emunic/client/space.h"
#include "tests/common/fixture.h"
#include "tests/common/proc.h"

#define PATIENCE_NS 30000000000ull
#define BYTES       4096u
#define CANARY      0x5a

static struct fx fx;
static struct emu_port from;
static struct emu_port to;
static uint8_t *mem;
static struct emu_lane lane;
static struct emu_lane_target target;

static int start(void **state)
{
    bool is_mapped;

    (void)state;
    fx_start(&fx, NULL);
    fx_set_node(0);
    assert_int_equal(emu_port_attach(&from, fx.ptag, fx.cookie, 10, 0), 0);
    fx_set_node(1);
    assert_int_equal(emu_port_attach(&to, fx.ptag, fx.cookie, 11, 0), 0);
    mem = aligned_alloc(BYTES, BYTES);
    assert_non_null(mem);
    memset(mem, CANARY, BYTES);
    is_mapped = emu_space_cover(&to, (uint64_t)(uintptr_t)mem, BYTES, !getenv("EMUNIC_MEMORY"));
    target = (struct emu_lane_target){ .nid = to.nid, .remote_base = (uint64_t)(uintptr_t)mem };
    assert_int_equal(emu_port_mem_register(&to,
                                           &(struct emu_port_memory){ (uint64_t)(uintptr_t)mem, BYTES,
                                                                      is_mapped ? EMU_MD_MAPPED : 0, EMU_CQ_NONE },
                                           &target.mdh, &target.generation),
                     0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    emu_port_detach(&from);
    emu_port_detach(&to);
    free(mem);
    fx_stop(&fx);
    return 0;
}

/* A thread with one call to make. */
struct caller {
    pthread_t thread;
    _Atomic pid_t tid;
    int answer;
};

static void *deregister(void *caller)
{
    struct caller *c = caller;

    atomic_store(&c->tid, gettid());
    c->answer = emu_port_mem_deregister(&to, target.mdh, target.generation);
    return NULL;
}

static void *find(void *caller)
{
    struct caller *c = caller;

    atomic_store(&c->tid, gettid());
    c->answer = emu_lane_find(from.direct, &target, &lane);
    return NULL;
}

static bool is_asleep(void *caller)
{
    pid_t tid = atomic_load(&((struct caller *)caller)->tid);

    return tid != 0 && proc_is_asleep(tid);
}

static void call(struct caller *c, void *(*body)(void *))
{
    assert_int_equal(pthread_create(&c->thread, NULL, body, c), 0);
    assert_true(eventually(is_asleep, c, PATIENCE_NS));
}

static void test_a_lane_found_while_its_memory_goes_leads_nowhere(void **state)
{
    struct caller owner = { 0 };
    struct caller initiator = { 0 };
    const uint64_t value = 0;

    (void)state;
    if (!from.gate || !emu_gate_is_open(from.gate))
        return; /* no lanes here, so none can be wrong */
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    call(&owner, deregister); /* emunic will see it first */
    call(&initiator, find);   /* the table still shows the memory */
    assert_int_equal(kill(fx.daemon, SIGCONT), 0);
    assert_int_equal(pthread_join(owner.thread, NULL), 0);
    assert_int_equal(pthread_join(initiator.thread, NULL), 0);
    assert_int_equal(owner.answer, 0);
    if (initiator.answer) {
        assert_false(emu_lane_put(&lane, (uint64_t)(uintptr_t)mem, &value, sizeof(value), EMU_LANE_NO_EVENT));
    }
    for (unsigned i = 0; i < BYTES; i++)
        assert_int_equal(mem[i], CANARY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_lane_found_while_its_memory_goes_leads_nowhere, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
