/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whoever has news for a resting port wakes it. The sleeper is a thread on the port's word with a minute's patience, so
 * a kind of news that forgets to wake shows as that minute's end. The initiator is another port of this process; with
 * FX_DATAPATH=routed emunic does the waking.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/abi/amo.h"
#include "emunic/client/direct.h"
#include "emunic/client/lane.h"
#include "emunic/client/port.h"
#include "emunic/client/space.h"
#include "emunic/engine/rest.h"
#include "tests/common/fixture.h"
#include "tests/common/proc.h"

#define MINUTE_NS   60000000000ull
#define PATIENCE_NS 30000000000ull
#define BYTES       65536u

static struct fx fx;

/* A port with memory that raises events and memory that does not. */
struct side {
    struct emu_port port;
    struct emu_cq_consumer cq;
    uint32_t cq_index;
    uint8_t *mem;
    uint16_t mdh[2]; /* without events, with */
    uint16_t generation[2];
};

static struct side from;
static struct side to;

static void open_side(struct side *s, uint32_t nid, uint32_t instance)
{
    bool is_mapped;

    fx_set_node(nid);
    assert_int_equal(emu_port_attach(&s->port, fx.ptag, fx.cookie, instance, 0), 0);
    assert_int_equal(emu_port_cq_create(&s->port, 64, false, &s->cq_index, &s->cq), 0);
    s->mem = aligned_alloc(4096, BYTES);
    assert_non_null(s->mem);
    memset(s->mem, 0, BYTES);
    is_mapped = emu_space_cover(&s->port, (uint64_t)(uintptr_t)s->mem, BYTES, !getenv("EMUNIC_MEMORY"));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(emu_port_mem_register(&s->port,
                                               &(struct emu_port_memory){ (uint64_t)(uintptr_t)s->mem, BYTES,
                                                                          is_mapped ? EMU_MD_MAPPED : 0,
                                                                          i ? s->cq_index : EMU_CQ_NONE },
                                               &s->mdh[i], &s->generation[i]),
                         0);
}

static void close_side(struct side *s)
{
    emu_port_detach(&s->port);
    free(s->mem);
}

static int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    open_side(&from, 0, 10);
    open_side(&to, 1, 11);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    close_side(&from);
    close_side(&to);
    fx_stop(&fx);
    return 0;
}

/* ---- the sleeper ---- */

struct sleeper {
    struct emu_segment *segment;
    atomic_bool is_told; /* the news are out */
};

/*
 * Rests as a program does: announces, polls, sleeps. So what comes late of an earlier operation wakes it for one poll
 * only.
 */
static void *sleep_long(void *sleeper)
{
    struct sleeper *s = sleeper;

    for (;;) {
        emu_rest_announce(s->segment);
        if (atomic_load(&s->is_told))
            return s;
        if (!emu_rest_sleep(s->segment, MINUTE_NS))
            return NULL;
    }
}

static bool is_asleep(void *segment)
{
    return atomic_load(&((struct emu_segment *)segment)->rests) == EMU_REST_ASLEEP;
}

static void expect_woken(struct side *side, void (*news)(void))
{
    struct sleeper s = { .segment = side->port.segment };
    void *was_woken = NULL;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, sleep_long, &s), 0);
    assert_true(eventually(is_asleep, s.segment, PATIENCE_NS));
    atomic_store(&s.is_told, true);
    news();
    assert_int_equal(pthread_join(thread, &was_woken), 0);
    assert_non_null(was_woken);
}

/* ---- news ---- */

static struct emu_cmd *begin(uint8_t op, unsigned has_events, uint64_t length_bytes)
{
    uint64_t unused;
    struct emu_cmd *cmd = emu_port_command(&from.port, 0, &unused);

    assert_non_null(cmd);
    cmd->op = op;
    cmd->remote_nid = to.port.nid;
    cmd->mdh = to.mdh[has_events];
    cmd->generation = to.generation[has_events];
    cmd->remote_base = (uint64_t)(uintptr_t)to.mem & ~4095ull;
    cmd->remote_addr = (uint64_t)(uintptr_t)to.mem;
    cmd->length_bytes = length_bytes;
    cmd->source_cq = from.cq_index;
    return cmd;
}

static void put(unsigned has_events, uint8_t flags, uint16_t events)
{
    struct emu_cmd *cmd = begin(EMU_OP_PUT, has_events, 8);

    cmd->flags = EMU_CMD_INLINE | flags;
    cmd->events = events;
    if (flags & EMU_CMD_FLAG) {
        cmd->flag_addr = cmd->remote_addr + 64;
        cmd->flag_value = 1;
    }
    emu_port_submit(&from.port);
}

static void put_with_event(void)
{
    put(1, 0, EMU_EV_REMOTE);
}

static void put_into_memory(void)
{
    put(0, 0, 0);
}

/* What a short message without an arrival queue is. */
static void put_with_flag(void)
{
    put(0, EMU_CMD_FLAG, 0);
}

static void put_many_slices(void)
{
    struct emu_cmd *cmd = begin(EMU_OP_PUT, 1, BYTES);

    cmd->flags = EMU_CMD_BLOCK;
    cmd->local_addr = (uint64_t)(uintptr_t)from.mem;
    cmd->events = EMU_EV_LOCAL;
    emu_port_publish(&from.port); /* emunic moves it */
}

static void add(void)
{
    struct emu_cmd *cmd = begin(EMU_OP_AMO, 0, 8);

    cmd->amo_op = EMU_AMO_ADD;
    cmd->operand1 = 1;
    emu_port_submit(&from.port);
}

static void write_queue(void)
{
    begin(EMU_OP_CQ_WRITE, 1, 0)->remote_event = 7;
    emu_port_submit(&from.port);
}

static void go_through_a_lane(void)
{
    struct emu_lane_target target = { .nid = to.port.nid,
                                      .mdh = to.mdh[0],
                                      .generation = to.generation[0],
                                      .remote_base = (uint64_t)(uintptr_t)to.mem & ~4095ull };
    struct emu_lane lane;
    uint64_t value = 1;

    if (!from.port.gate || !emu_gate_is_open(from.port.gate) || !emu_lane_find(from.port.direct, &target, &lane)) {
        put_into_memory(); /* no lanes here */
        return;
    }
    assert_true(emu_lane_put(&lane, (uint64_t)(uintptr_t)to.mem, &value, sizeof(value), EMU_LANE_NO_EVENT));
}

static void post_datagram(struct side *s, const struct side *peer)
{
    struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_POST,
                           .datagram = {
                               .ep = 1, .remote_nid = peer->port.nid, .remote_instance = peer->port.instance_id } };

    assert_int_equal(emu_port_request(&s->port, &msg), 0);
}

static void answer_datagram(void)
{
    post_datagram(&from, &to);
}

static void switch_to_routed(void)
{
    fx_set_routed(&fx, true);
}

static void end_domain(void)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END };

    assert_int_equal(emu_session_request(&fx.admin, &end, NULL, 0, NULL), 0);
}

/* ---- tests ---- */

static void test_what_a_peer_does_wakes(void **state)
{
    (void)state;
    expect_woken(&to, put_with_event);
    expect_woken(&to, put_into_memory);
    expect_woken(&to, put_with_flag);
    expect_woken(&to, put_many_slices);
    expect_woken(&to, add);
    expect_woken(&to, write_queue);
    expect_woken(&to, go_through_a_lane);
}

static void test_a_completion_wakes_the_initiator(void **state)
{
    (void)state;
    expect_woken(&from, put_many_slices);
    expect_woken(&from, put_with_event); /* of another thread, perhaps */
}

static void test_a_datagram_wakes(void **state)
{
    (void)state;
    post_datagram(&to, &from);
    expect_woken(&to, answer_datagram);
}

static void test_a_switch_of_the_data_path_wakes(void **state)
{
    (void)state;
    /* Of a domain that was made routed it changes nothing, and wakes nobody. */
    if ((atomic_load(&to.port.table->flags) & EMU_TABLE_ROUTED) == 0)
        expect_woken(&to, switch_to_routed);
}

static void test_the_end_of_the_domain_wakes(void **state)
{
    (void)state;
    expect_woken(&to, end_domain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_a_peer_does_wakes, start, stop),
        cmocka_unit_test_setup_teardown(test_a_completion_wakes_the_initiator, start, stop),
        cmocka_unit_test_setup_teardown(test_a_datagram_wakes, start, stop),
        cmocka_unit_test_setup_teardown(test_a_switch_of_the_data_path_wakes, start, stop),
        cmocka_unit_test_setup_teardown(test_the_end_of_the_domain_wakes, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
