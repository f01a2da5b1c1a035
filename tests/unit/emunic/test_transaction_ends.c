/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How transactions end: events, queue writes, chains, what is counted, slices; and random commands.
 */
#include "tests/unit/emunic/transaction.h"

/* ---- events ---- */

static void test_events_come_only_if_asked_for(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.events = 0;
    emu_transaction_run(&view, &cmd);
    assert_no_more(&source);
    assert_no_more(&destination);
    cmd.events = EMU_EV_LOCAL;
    emu_transaction_run(&view, &cmd);
    next(&source);
    assert_no_more(&source);
    assert_no_more(&destination);
    cmd.events = EMU_EV_REMOTE;
    emu_transaction_run(&view, &cmd);
    assert_no_more(&source);
    next(&destination);
    assert_no_more(&destination);
}

static void test_source_event_is_the_callers_word_twice(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    emu_transaction_run(&view, &cmd);
    assert_int_equal(next(&source), cmd.source_event);
    assert_int_equal(next(&source), cmd.source_event);
    assert_no_more(&source);
}

static void test_remote_event_is_rebuilt_from_what_a_port_may_choose(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.remote_event = UINT64_MAX;
    emu_transaction_run(&view, &cmd);
    assert_int_equal(next(&destination),
                     EMU_EVENT_FOREIGN_MASK | (uint64_t)EMU_SOURCE_REMOTE << EMU_EVENT_SOURCE_SHIFT);
    assert_no_more(&destination);
}

static void test_source_event_cannot_carry_queue_bits_or_status(void **state)
{
    struct emu_cmd cmd = put_inline(8);
    uint64_t event;

    (void)state;
    cmd.source_event = UINT64_MAX;
    emu_transaction_run(&view, &cmd);
    event = next(&source);
    assert_int_equal(event & (EMU_EVENT_LAP | EMU_EVENT_REM_OVERRUN), 0);
    assert_int_equal(emu_event_status(event), EMU_STATUS_OK);
}

static void test_failure_has_source_events_and_no_remote_event(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.remote_addr = 0;
    emu_transaction_run(&view, &cmd);
    assert_int_equal(next(&source), emu_event_with_status(cmd.source_event, EMU_STATUS_REMOTE_RANGE));
    assert_int_equal(next(&source), emu_event_with_status(cmd.source_event, EMU_STATUS_REMOTE_RANGE));
    assert_no_more(&source);
    assert_no_more(&destination);
}

static void test_silent_command_retires_with_a_library_event(void **state)
{
    struct emu_cmd cmd = put_inline(8);
    uint64_t event;

    (void)state;
    cmd.events = EMU_EV_RETIRE;
    emu_transaction_run(&view, &cmd);
    event = next(&source);
    assert_int_equal(event >> EMU_EVENT_SOURCE_SHIFT & 15, EMU_SOURCE_LIBRARY);
    assert_int_equal(event & EMU_EVENT_DATA_MASK, 0x111);
    assert_no_more(&source);
}

static void test_failed_silent_command_is_not_silent(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.events = EMU_EV_RETIRE;
    cmd.remote_addr = 0;
    emu_transaction_run(&view, &cmd);
    assert_int_equal(next(&source), emu_event_with_status(cmd.source_event, EMU_STATUS_REMOTE_RANGE));
    assert_no_more(&source);
}

static void test_queues_that_are_gone_swallow_their_events(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    source_is_gone = destination_is_gone = true;
    emu_transaction_run(&view, &cmd);
    assert_memory_equal(peer_at(REG_AT), local_mem, 8);
    source_is_gone = destination_is_gone = false;
    cmd.source_cq = EMU_CQ_NONE;
    md->cq = EMU_CQ_NONE;
    emu_transaction_run(&view, &cmd);
    assert_no_more(&source);
    assert_no_more(&destination);
}

static void test_queue_destroyed_during_a_transfer_gets_no_event(void **state)
{
    struct emu_cmd cmd = put_local(2000);
    struct emu_transaction t;

    (void)state;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    assert_true(emu_transaction_step(&view, &t, 1500));
    md->cq = EMU_CQ_NONE;
    assert_false(emu_transaction_step(&view, &t, 1500));
    emu_transaction_finish(&view, &t);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_OK);
    assert_no_more(&destination);
}

static void test_full_destination_queue_does_not_fail_the_put(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    for (unsigned i = 0; i < CQ_ENTRIES; i++)
        emu_cq_push(&destination.producer, i);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    for (unsigned i = 0; i < CQ_ENTRIES; i++)
        assert_int_equal(next(&destination), i);
    assert_int_equal(emu_cq_take_overrun(&destination.consumer), 1);
}

/* ---- queue writes ---- */

static void test_cq_write_puts_an_event_into_the_owners_queue(void **state)
{
    struct emu_cmd cmd = command(EMU_OP_CQ_WRITE, 0);

    (void)state;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_int_equal(next(&destination), emu_event_make(2, EMU_SOURCE_CQ_WRITE, 0x222));
    assert_no_more(&destination);
    assert_peer_untouched();
}

static void test_cq_write_needs_no_write_access_and_no_address(void **state)
{
    struct emu_cmd cmd = command(EMU_OP_CQ_WRITE, UINT64_MAX);

    (void)state;
    md->flags = EMU_MD_READ_ONLY;
    cmd.remote_addr = 0;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    next(&destination);
}

static void test_cq_write_with_a_stale_handle_is_refused(void **state)
{
    struct emu_cmd cmd = command(EMU_OP_CQ_WRITE, 0);

    (void)state;
    cmd.generation = 1;
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
}

static void test_cq_write_to_a_full_queue_tells_the_writer(void **state)
{
    struct emu_cmd cmd = command(EMU_OP_CQ_WRITE, 0);
    uint64_t event;

    (void)state;
    for (unsigned i = 0; i < CQ_ENTRIES; i++)
        emu_cq_push(&destination.producer, i);
    cmd.events = EMU_EV_GLOBAL;
    emu_transaction_run(&view, &cmd);
    event = next(&source);
    assert_int_equal(emu_event_status(event), EMU_STATUS_REMOTE_CQ_FULL);
    assert_true(event & EMU_EVENT_REM_OVERRUN);
    assert_int_equal(flows[1].errors, 1);
}

static void test_cq_write_is_left_to_others_if_the_queue_is_out_of_reach(void **state)
{
    struct emu_cmd cmd = command(EMU_OP_CQ_WRITE, 0);

    (void)state;
    reach_answer = EMU_REACH_NOT_HERE;
    assert_false(emu_transaction_run(&view, &cmd));
    assert_no_more(&source);
    assert_no_more(&destination);
}

/* ---- chains ---- */

static struct emu_cmd link_of_chain(unsigned chain, bool fails)
{
    struct emu_cmd cmd = put_inline(8);

    cmd.chain = (uint8_t)chain;
    cmd.events = EMU_EV_GLOBAL | EMU_EV_REMOTE;
    if (fails)
        cmd.remote_addr = 0;
    return cmd;
}

static void test_only_the_last_of_a_chain_has_a_source_event(void **state)
{
    struct emu_cmd cmd = link_of_chain(EMU_CHAIN_MORE, false);

    (void)state;
    emu_transaction_run(&view, &cmd);
    emu_transaction_run(&view, &cmd);
    assert_no_more(&source);
    cmd.chain = EMU_CHAIN_LAST;
    emu_transaction_run(&view, &cmd);
    assert_int_equal(next(&source), cmd.source_event);
    assert_no_more(&source);
    for (unsigned i = 0; i < 3; i++)
        next(&destination); /* remote events come one by one */
    assert_no_more(&destination);
}

static void test_chain_reports_its_first_failure(void **state)
{
    struct emu_cmd good = link_of_chain(EMU_CHAIN_MORE, false);
    struct emu_cmd bad = link_of_chain(EMU_CHAIN_MORE, true);
    struct emu_cmd worse = link_of_chain(EMU_CHAIN_MORE, false);

    (void)state;
    worse.generation = 1;
    emu_transaction_run(&view, &good);
    emu_transaction_run(&view, &bad);
    emu_transaction_run(&view, &worse);
    good.chain = EMU_CHAIN_LAST;
    emu_transaction_run(&view, &good);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_REMOTE_RANGE);
    assert_no_more(&source);
}

static void test_failure_does_not_outlive_its_chain(void **state)
{
    struct emu_cmd bad = link_of_chain(EMU_CHAIN_MORE, true);
    struct emu_cmd last = link_of_chain(EMU_CHAIN_LAST, false);

    (void)state;
    emu_transaction_run(&view, &bad);
    emu_transaction_run(&view, &last);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_REMOTE_RANGE);
    emu_transaction_run(&view, &last);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_OK);
}

static void test_last_of_a_chain_reports_its_own_failure(void **state)
{
    struct emu_cmd cmd = link_of_chain(EMU_CHAIN_MORE, false);

    (void)state;
    emu_transaction_run(&view, &cmd);
    cmd = link_of_chain(EMU_CHAIN_LAST, true);
    emu_transaction_run(&view, &cmd);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_REMOTE_RANGE);
    assert_int_equal(chain_status, EMU_STATUS_OK);
}

static void test_single_command_does_not_disturb_an_open_chain(void **state)
{
    struct emu_cmd bad = link_of_chain(EMU_CHAIN_MORE, true);
    struct emu_cmd single = put_inline(8);
    struct emu_cmd last = link_of_chain(EMU_CHAIN_LAST, false);

    (void)state;
    emu_transaction_run(&view, &bad);
    assert_int_equal(run(&single), EMU_STATUS_OK);
    emu_transaction_run(&view, &last);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_REMOTE_RANGE);
}

/* ---- counters ---- */

static void expect_flow(uint64_t operations, uint64_t payload_bytes, uint64_t request_flits, uint64_t response_flits)
{
    assert_int_equal(flows[1].operations, operations);
    assert_int_equal(flows[1].payload_bytes, payload_bytes);
    assert_int_equal(flows[1].request_flits, request_flits);
    assert_int_equal(flows[1].response_flits, response_flits);
    assert_int_equal(flows[0].operations + flows[2].operations, 0);
}

static void test_put_of_64_bytes_takes_14_and_1_flits(void **state)
{
    struct emu_cmd cmd = put_inline(64);

    (void)state;
    run(&cmd);
    expect_flow(1, 64, 14, 1);
    assert_int_equal(flows[1].request_packets, 1);
    assert_int_equal(flows[1].response_packets, 1);
}

static void test_get_of_64_bytes_takes_3_and_12_flits(void **state)
{
    struct emu_cmd cmd = get(64);

    (void)state;
    run(&cmd);
    expect_flow(1, 64, 3, 12);
}

static void test_flag_counts_as_eight_bytes(void **state)
{
    struct emu_cmd cmd = put_local(56);

    (void)state;
    cmd.flags = EMU_CMD_FLAG;
    cmd.flag_addr = REG_PAGES_AT;
    run(&cmd);
    expect_flow(1, 64, 14, 1);
}

/* spec/machines.md 2.3 as quoted in aries.yaml: 3 + 2 and 1; 3 + 2 (one operand) or 3 + 3 (two) and 1 + 2. */
static void test_atomics_take_the_flits_of_their_operands(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, 0, 1, 0);

    (void)state;
    run(&cmd);
    expect_flow(1, 8, 5, 1);
    make_world(state);
    cmd = amo(EMU_AMO_ADD, EMU_AMO_FETCH, 1, 0);
    run(&cmd);
    expect_flow(1, 8, 5, 3);
    make_world(state);
    cmd = amo(EMU_AMO_CSWAP, EMU_AMO_FETCH, 1, 0);
    run(&cmd);
    expect_flow(1, 8, 6, 3);
    make_world(state);
    cmd = amo(EMU_AMO_AX, EMU_AMO_FETCH, 1, 0);
    run(&cmd);
    expect_flow(1, 8, 6, 3);
}

static void test_cq_write_counts_as_eight_bytes(void **state)
{
    struct emu_cmd cmd = command(EMU_OP_CQ_WRITE, 0);

    (void)state;
    run(&cmd);
    expect_flow(1, 8, 5, 1);
}

static void test_failure_counts_as_an_error_only(void **state)
{
    struct emu_cmd cmd = put_inline(64);

    (void)state;
    cmd.remote_addr = 0;
    run(&cmd);
    expect_flow(0, 0, 0, 0);
    assert_int_equal(flows[1].errors, 1);
}

/* ---- slices ---- */

static void test_transfer_moves_in_slices(void **state)
{
    struct emu_cmd cmd = put_local(2500);
    struct emu_transaction t;

    (void)state;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    assert_peer_untouched();
    assert_true(emu_transaction_step(&view, &t, 1000));
    assert_memory_equal(peer_at(REG_AT), local_mem, 1000);
    assert_int_equal(*peer_at(REG_AT + 1000), 0xee);
    assert_true(emu_transaction_step(&view, &t, 1000));
    assert_int_equal(*peer_at(REG_AT + 2000), 0xee);
    assert_no_more(&source);
    assert_false(emu_transaction_step(&view, &t, 1000));
    assert_memory_equal(peer_at(REG_AT), local_mem, 2500);
    assert_int_equal(*peer_at(REG_AT + 2500), 0xee);
    assert_no_more(&destination);
    emu_transaction_finish(&view, &t);
    next(&source);
    next(&destination);
    expect_flow(1, 2500, 40 * 3 + 39 * 11 + 1, 40);
}

static void test_slice_that_ends_with_the_transfer_is_the_last(void **state)
{
    struct emu_cmd cmd = get(2000);
    struct emu_transaction t;

    (void)state;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    assert_true(emu_transaction_step(&view, &t, 1000));
    assert_false(emu_transaction_step(&view, &t, 1000));
    assert_int_equal(t.status, EMU_STATUS_OK);
}

static void test_flag_of_a_sliced_put_comes_last(void **state)
{
    struct emu_cmd cmd = put_local(2000);
    struct emu_transaction t;

    (void)state;
    cmd.flags = EMU_CMD_FLAG;
    cmd.flag_addr = REG_PAGES_AT;
    cmd.flag_value = 42;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    assert_true(emu_transaction_step(&view, &t, 1500));
    assert_int_equal(peer_word(REG_PAGES_AT), 0xeeeeeeeeeeeeeeee);
    assert_false(emu_transaction_step(&view, &t, 1500));
    assert_int_equal(peer_word(REG_PAGES_AT), 42);
}

static void test_flag_of_a_sliced_get_comes_last(void **state)
{
    struct emu_cmd cmd = get(2000);
    struct emu_transaction t;

    (void)state;
    cmd.flags = EMU_CMD_GET_FLAG;
    memset(local_mem, 0, 4096);
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    assert_true(emu_transaction_step(&view, &t, 1500));
    assert_int_equal(local_mem[2000], 0);
    assert_false(emu_transaction_step(&view, &t, 1500));
    assert_int_equal(local_mem[2000], 1);
}

static void test_fault_in_the_middle_ends_a_transfer(void **state)
{
    struct emu_cmd cmd = put_local(3000);
    struct emu_transaction t;

    (void)state;
    cmd.local_addr = ADDR(local_mem) + sizeof(local_mem) - 1500;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    assert_true(emu_transaction_step(&view, &t, 1000));
    assert_false(emu_transaction_step(&view, &t, 1000));
    assert_int_equal(t.status, EMU_STATUS_LOCAL_ACCESS);
    emu_transaction_finish(&view, &t);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_LOCAL_ACCESS);
    assert_no_more(&destination);
    assert_int_equal(*peer_at(REG_AT + 1000), 0xee);
}

static void test_no_flag_turns_a_get_into_one_big_slice(void **state)
{
    static const uint8_t flags[] = { EMU_CMD_INLINE, EMU_CMD_STAGED, EMU_CMD_INLINE | EMU_CMD_STAGED, 0xff };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        struct emu_cmd cmd = get(3000);
        struct emu_transaction t;

        cmd.flags = flags[i];
        assert_true(emu_transaction_begin(&view, &cmd, &t));
        assert_true(emu_transaction_step(&view, &t, 1000));
        assert_int_equal(t.done_bytes, 1000);
    }
}

static void test_long_vector_of_atomics_moves_in_steps(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, EMU_AMO_FETCH, 1, 0);
    struct emu_transaction t;
    unsigned n_steps = 1;

    (void)state;
    memset(peer_mem, 0, MEM_BYTES);
    cmd.length_bytes = 7200;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    while (emu_transaction_step(&view, &t, UINT64_MAX)) {
        n_steps++;
        assert_int_equal(peer_word(cmd.remote_addr + 7192), 0);
    }
    assert_int_equal(n_steps, 4);
    for (unsigned i = 0; i < 900; i++)
        assert_int_equal(peer_word(cmd.remote_addr + 8 * i), 1);
    assert_int_equal(peer_word(cmd.remote_addr + 7200), 0);
}

/* ---- anything at all ---- */

static void test_random_commands_touch_only_what_the_domain_allows(void **state)
{
    struct emu_random random = seeded(32);
    uint64_t n_good = 0;

    make_world(state);
    for (unsigned i = 0; i < 30000; i++) {
        struct emu_cmd cmd;
        uint64_t *words = (uint64_t *)&cmd;

        switch (emu_random_below(&random, 4)) {
        case 0:
            for (size_t w = 0; w < sizeof(cmd) / 8; w++)
                words[w] = emu_random_next(&random);
            break;
        case 1:
            cmd = put_local(emu_random_below(&random, 4096));
            break;
        case 2:
            cmd = get(emu_random_below(&random, 4096));
            break;
        default:
            cmd = amo(1 + (unsigned)emu_random_below(&random, 12), (unsigned)emu_random_below(&random, 8),
                      emu_random_next(&random), emu_random_next(&random));
            cmd.length_bytes *= 1 + emu_random_below(&random, 20);
            break;
        }
        for (uint64_t n = emu_random_below(&random, 3); n > 0; n--)
            words[emu_random_below(&random, sizeof(cmd) / 8)] ^= 1ull << emu_random_below(&random, 64);
        cmd.chain = EMU_CHAIN_NONE;
        cmd.source_cq = SOURCE_CQ;
        n_good += run(&cmd) == EMU_STATUS_OK;
        while (!emu_cq_is_empty(&destination.consumer))
            next(&destination);
    }
    for (uint64_t at = MEM_AT; at < MEM_AT + MEM_BYTES; at++) {
        if (at < REG_PAGES_AT || at >= REG_PAGES_END)
            assert_int_equal(*peer_at(at), 0xee);
    }
    assert_true(n_good > 1000);
}

/* ---- a memory that answers later ---- */

static unsigned n_late; /* accesses that say "not yet" before one is made */

static struct emu_memory behind(const struct emu_memory *mem)
{
    return emu_memory_map(mem->base, mem->owner_addr, mem->len_bytes);
}

static int late_read(const struct emu_memory *mem, uint64_t addr, void *dst, size_t len_bytes)
{
    struct emu_memory there = behind(mem);

    return n_late > 0 ? n_late--, -EINPROGRESS : there.ops->read(&there, addr, dst, len_bytes);
}

static int late_write(const struct emu_memory *mem, uint64_t addr, const void *src, size_t len_bytes,
                      const struct emu_flag *flag)
{
    struct emu_memory there = behind(mem);

    return n_late > 0 ? n_late--, -EINPROGRESS : there.ops->write(&there, addr, src, len_bytes, flag);
}

static const struct emu_memory_ops late_ops = {
    .name = "late", .read = late_read, .write = late_write, .may_wait = true
};

static void test_step_that_waits_has_done_nothing_and_is_made_again(void **state)
{
    struct emu_cmd cmd = put_local(200);
    struct emu_transaction t;

    (void)state;
    view.local.ops = &late_ops;
    n_late = 3;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    for (unsigned i = 0; i < 3; i++) {
        assert_true(emu_transaction_step(&view, &t, UINT64_MAX));
        assert_true(t.is_waiting);
        assert_int_equal(t.status, EMU_STATUS_OK);
        assert_peer_untouched();
    }
    assert_false(emu_transaction_step(&view, &t, UINT64_MAX));
    assert_false(t.is_waiting);
    emu_transaction_finish(&view, &t);
    assert_memory_equal(peer_at(REG_AT), local_mem, 200);
    assert_int_equal(emu_event_status(next(&source)), EMU_STATUS_OK);
}

static void test_atomic_is_made_once_however_late_its_result_is_taken(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, EMU_AMO_FETCH, 1, 0);
    struct emu_transaction t;
    uint64_t first = 41;
    uint64_t word;

    (void)state;
    memcpy(peer_at(cmd.remote_addr), &first, sizeof(first));
    view.local.ops = &late_ops;
    n_late = 5;
    assert_true(emu_transaction_begin(&view, &cmd, &t));
    while (emu_transaction_step(&view, &t, UINT64_MAX))
        assert_true(t.is_waiting);
    assert_int_equal(n_late, 0);
    emu_transaction_finish(&view, &t);
    memcpy(&word, peer_at(cmd.remote_addr), sizeof(word));
    assert_int_equal(word, 42);
    memcpy(&word, local_mem, sizeof(word));
    assert_int_equal(word, 41);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_events_come_only_if_asked_for),
        UNIT(test_source_event_is_the_callers_word_twice),
        UNIT(test_remote_event_is_rebuilt_from_what_a_port_may_choose),
        UNIT(test_source_event_cannot_carry_queue_bits_or_status),
        UNIT(test_failure_has_source_events_and_no_remote_event),
        UNIT(test_silent_command_retires_with_a_library_event),
        UNIT(test_failed_silent_command_is_not_silent),
        UNIT(test_queues_that_are_gone_swallow_their_events),
        UNIT(test_queue_destroyed_during_a_transfer_gets_no_event),
        UNIT(test_full_destination_queue_does_not_fail_the_put),
        UNIT(test_cq_write_puts_an_event_into_the_owners_queue),
        UNIT(test_cq_write_needs_no_write_access_and_no_address),
        UNIT(test_cq_write_with_a_stale_handle_is_refused),
        UNIT(test_cq_write_to_a_full_queue_tells_the_writer),
        UNIT(test_cq_write_is_left_to_others_if_the_queue_is_out_of_reach),
        UNIT(test_only_the_last_of_a_chain_has_a_source_event),
        UNIT(test_chain_reports_its_first_failure),
        UNIT(test_failure_does_not_outlive_its_chain),
        UNIT(test_last_of_a_chain_reports_its_own_failure),
        UNIT(test_single_command_does_not_disturb_an_open_chain),
        UNIT(test_put_of_64_bytes_takes_14_and_1_flits),
        UNIT(test_get_of_64_bytes_takes_3_and_12_flits),
        UNIT(test_flag_counts_as_eight_bytes),
        UNIT(test_atomics_take_the_flits_of_their_operands),
        UNIT(test_cq_write_counts_as_eight_bytes),
        UNIT(test_failure_counts_as_an_error_only),
        UNIT(test_transfer_moves_in_slices),
        UNIT(test_slice_that_ends_with_the_transfer_is_the_last),
        UNIT(test_flag_of_a_sliced_put_comes_last),
        UNIT(test_flag_of_a_sliced_get_comes_last),
        UNIT(test_fault_in_the_middle_ends_a_transfer),
        UNIT(test_no_flag_turns_a_get_into_one_big_slice),
        UNIT(test_long_vector_of_atomics_moves_in_steps),
        UNIT(test_step_that_waits_has_done_nothing_and_is_made_again),
        UNIT(test_atomic_is_made_once_however_late_its_result_is_taken),
        UNIT(test_random_commands_touch_only_what_the_domain_allows),
    };

    return cmocka_run_group_tests(tests, allocate, release);
}
