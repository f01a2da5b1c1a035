/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC over a view made by hand: three nodes, one peer port with memory and a queue, one initiator. Checks and data
 * of emunic/engine/transaction.c; how transactions end: test_transaction_ends.c. Rules: spec/ugni.md 4.7, 4.8, Appendix
 * B.
 */
#include "tests/unit/emunic/transaction.h"

/* ---- who and what ---- */

static void test_nid_outside_the_domain_is_a_peer_that_is_gone(void **state)
{
    static const uint32_t nids[] = { 1, 4, 6, N_NIDS, N_NIDS + 1, EMU_NID_MAX, EMU_NID_NONE };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(nids); i++) {
        struct emu_cmd cmd = put_inline(8);

        cmd.remote_nid = nids[i];
        expect_refusal(&cmd, EMU_STATUS_PEER_GONE);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(flows[i].errors, 0); /* there is no flow to count it in */
}

static void test_node_without_a_counter_is_a_peer_that_is_gone(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    view.n_flows = 1; /* a broken segment; node 1 is the second */
    expect_refusal(&cmd, EMU_STATUS_PEER_GONE);
}

static void test_handle_that_names_no_memory_domain_is_refused(void **state)
{
    static const uint16_t mdhs[] = {
        0, MDH - 1, MDH + 1, EMU_MD_COUNT - 1, EMU_MD_COUNT, EMU_MD_COUNT + MDH, UINT16_MAX
    };

    (void)state;
    emu_table_mds(table, 2)[MDH] = *md; /* what EMU_MD_COUNT + MDH would find */
    for (size_t i = 0; i < COUNT_OF(mdhs); i++) {
        struct emu_cmd cmd = put_inline(8);

        cmd.mdh = mdhs[i];
        expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
    }
    emu_table_mds(table, 2)[MDH] = (struct emu_table_md){ 0 };
}

static void test_same_index_on_another_node_is_another_memory_domain(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.remote_nid = 9;
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
    assert_int_equal(flows[2].errors, 1);
}

static void test_deregistered_memory_is_refused(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    atomic_store(&md->state, 0);
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
}

static void test_stale_generation_is_refused(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.generation = GENERATION - 1;
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
}

static void test_handle_without_a_generation_is_taken(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.generation = 0;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
}

/* It tells the MDH and the page: among the domains that share the MDH, that is one. */
static void test_handle_without_a_generation_finds_its_page_among_sharers(void **state)
{
    struct emu_table_md *sharer = &emu_table_mds(table, 1)[(EMU_MDH_SHARERS - 1) * EMU_MDH_COUNT + MDH];
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    *sharer = *md;
    sharer->generation = GENERATION + 1;
    md->base += 4096; /* now the first one begins elsewhere */
    md = sharer;      /* whom reach() expects */
    atomic_store(&sharer->state, 0);
    cmd.generation = 0;
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
    atomic_store(&sharer->state, 1);
    cmd.generation = GENERATION + 1;
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE); /* this one says that it means the first */
    cmd.generation = 0;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    cmd.mdh += EMU_MDH_COUNT; /* a turn in such a handle says nothing */
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    cmd.generation = GENERATION + 1;
    cmd.mdh = (EMU_MDH_SHARERS - 1) * EMU_MDH_COUNT + MDH;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
}

static void test_handle_with_another_base_is_refused(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.remote_base = REG_PAGES_AT + 4096;
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
    cmd.remote_base = REG_AT; /* handles carry the page */
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
}

static void test_offset_handle_counts_from_its_own_base(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.handle_flags = EMU_HANDLE_OFFSET;
    cmd.remote_base = 0x9000;
    cmd.remote_addr = 0x9000 + 24;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_memory_equal(peer_at(REG_AT + 24), local_mem, 8);
}

static struct emu_cmd put_virtual(uint16_t index, uint64_t base, uint64_t addr)
{
    struct emu_cmd cmd = put_inline(8);

    cmd.handle_flags = EMU_HANDLE_VIRTUAL;
    cmd.mdh = index;
    cmd.generation = 0;
    cmd.remote_base = base;
    cmd.remote_addr = addr;
    return cmd;
}

static void test_virtual_handle_leads_to_the_domain_of_its_index(void **state)
{
    struct emu_cmd cmd = put_virtual(3, 0x70000000, 0x70000000 + 24);

    (void)state;
    memset((void *)emu_table_vmdhs(table, 0), 0, 3 * EMU_MDH_COUNT * sizeof(uint16_t));
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE); /* the index is free */
    atomic_store(&emu_table_vmdhs(table, 1)[3], MDH);
    assert_int_equal(run(&cmd), EMU_STATUS_OK); /* by its own base, from the first page on */
    assert_memory_equal(peer_at(REG_PAGES_AT + 24), local_mem, 8);
    make_world(state);
    atomic_store(&emu_table_vmdhs(table, 1)[3], MDH + 1);
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE); /* leads to a domain that is not live */
    atomic_store(&emu_table_vmdhs(table, 1)[3], EMU_MD_COUNT);
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
    atomic_store(&emu_table_vmdhs(table, 1)[3], MDH);
    cmd.remote_addr = cmd.remote_base + 2 * 4096;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
    atomic_store(&emu_table_vmdhs(table, 1)[3], 0);
}

static void test_virtual_handle_without_address_counts_from_the_start(void **state)
{
    struct emu_cmd cmd = put_virtual(EMU_MDH_COUNT - 1, 0, 40);

    (void)state;
    cmd.handle_flags |= EMU_HANDLE_OFFSET;
    atomic_store(&emu_table_vmdhs(table, 1)[EMU_MDH_COUNT - 1], MDH);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_memory_equal(peer_at(REG_AT + 40), local_mem, 8);
    atomic_store(&emu_table_vmdhs(table, 1)[EMU_MDH_COUNT - 1], 0);
}

/* ---- bounds ---- */

static void test_bounds_are_the_registrations_pages(void **state)
{
    static const struct {
        uint64_t addr;
        uint64_t len_bytes;
        unsigned status;
    } cases[] = {
        { REG_AT, REG_BYTES, EMU_STATUS_OK },
        { REG_PAGES_AT, 8, EMU_STATUS_OK },      /* same page, before the registration */
        { REG_PAGES_END - 8, 8, EMU_STATUS_OK }, /* same page, behind it */
        { REG_PAGES_AT, 2 * 4096, EMU_STATUS_OK },
        { REG_PAGES_END, 0, EMU_STATUS_OK },
        { REG_PAGES_AT - 1, 1, EMU_STATUS_REMOTE_RANGE },
        { REG_PAGES_AT - 1, 2, EMU_STATUS_REMOTE_RANGE },
        { REG_PAGES_END, 1, EMU_STATUS_REMOTE_RANGE },
        { REG_PAGES_END - 7, 8, EMU_STATUS_REMOTE_RANGE },
        { REG_PAGES_AT, 2 * 4096 + 1, EMU_STATUS_REMOTE_RANGE },
        { REG_PAGES_AT, UINT64_MAX, EMU_STATUS_REMOTE_RANGE },
        { REG_AT, 0 - REG_AT, EMU_STATUS_REMOTE_RANGE },
        { UINT64_MAX - 3, 8, EMU_STATUS_REMOTE_RANGE },
        { 0, 8, EMU_STATUS_REMOTE_RANGE },
        { 0, UINT64_MAX, EMU_STATUS_REMOTE_RANGE },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct emu_cmd cmd = put_local(cases[i].len_bytes);

        make_world(state);
        cmd.remote_addr = cases[i].addr;
        if (cases[i].status != EMU_STATUS_OK) {
            expect_refusal(&cmd, cases[i].status);
            continue;
        }
        assert_int_equal(run(&cmd), EMU_STATUS_OK);
        assert_memory_equal(peer_at(cases[i].addr), local_mem, cases[i].len_bytes);
        for (uint64_t at = MEM_AT; at < MEM_AT + MEM_BYTES; at++) {
            if (at < cases[i].addr || at >= cases[i].addr + cases[i].len_bytes)
                assert_int_equal(*peer_at(at), 0xee);
        }
    }
}

static void test_offset_handle_has_the_same_bounds(void **state)
{
    static const uint64_t addrs[] = { 0x9000 - 101, 0x9000 + 2 * 4096, UINT64_MAX, 0 };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(addrs); i++) {
        struct emu_cmd cmd = put_inline(8);

        cmd.handle_flags = EMU_HANDLE_OFFSET;
        cmd.remote_base = 0x9000;
        cmd.remote_addr = addrs[i];
        expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
    }
}

static void test_random_ranges_never_leave_the_pages(void **state)
{
    struct emu_random random = seeded(31);

    make_world(state);
    for (unsigned i = 0; i < 20000; i++) {
        struct emu_cmd cmd = put_local(emu_random_below(&random, 64));

        cmd.remote_addr = MEM_AT - 64 + emu_random_below(&random, MEM_BYTES + 128);
        if (i % 8 == 0)
            cmd.length_bytes = emu_random_next(&random);
        if (i % 16 == 1)
            cmd.remote_addr = emu_random_next(&random);
        if (i % 3 == 0) {
            cmd.handle_flags = EMU_HANDLE_OFFSET;
            cmd.remote_base = emu_random_below(&random, 2) ? cmd.remote_addr : emu_random_next(&random);
        }
        run(&cmd);
        while (!emu_cq_is_empty(&destination.consumer))
            next(&destination);
    }
    for (uint64_t at = MEM_AT; at < MEM_AT + MEM_BYTES; at++) {
        if (at < REG_PAGES_AT || at >= REG_PAGES_END)
            assert_int_equal(*peer_at(at), 0xee);
    }
}

/* ---- access ---- */

static void test_read_only_memory_can_only_be_read(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    md->flags = EMU_MD_READ_ONLY;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_PERMISSION);
    cmd = amo(EMU_AMO_ADD, EMU_AMO_FETCH, 1, 0);
    expect_refusal(&cmd, EMU_STATUS_REMOTE_PERMISSION);
    cmd = get(8);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
}

static void test_owner_that_cannot_be_reached_is_reported_as_it_is(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    reach_answer = EMU_STATUS_PEER_GONE;
    expect_refusal(&cmd, EMU_STATUS_PEER_GONE);
    reach_answer = EMU_STATUS_NETWORK;
    expect_refusal(&cmd, EMU_STATUS_NETWORK);
}

static void test_what_the_caller_leaves_to_others_has_not_happened(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    reach_answer = EMU_REACH_NOT_HERE;
    assert_false(emu_transaction_run(&view, &cmd));
    assert_peer_untouched();
    assert_no_more(&source);
    assert_no_more(&destination);
    assert_int_equal(flows[1].operations + flows[1].errors, 0);
    reach_answer = EMU_STATUS_OK;
    assert_true(emu_transaction_run(&view, &cmd));
    assert_memory_equal(peer_at(REG_AT), local_mem, 8);
}

/* ---- shape ---- */

static void test_unknown_operation_is_a_bad_command(void **state)
{
    static const uint8_t wrong[] = { 0, EMU_OP_END, 0x7f, 0xff };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct emu_cmd cmd = command(wrong[i], 8);

        expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    }
}

static void test_inline_data_must_fit_the_command(void **state)
{
    struct emu_cmd cmd = put_inline(EMU_CMD_INLINE_MAX + 1);

    (void)state;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd.length_bytes = UINT64_MAX;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd.length_bytes = EMU_CMD_INLINE_FLAGGED + 1;
    cmd.flags |= EMU_CMD_FLAG;
    cmd.flag_addr = REG_AT;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd = put_inline(EMU_CMD_INLINE_MAX);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_memory_equal(peer_at(REG_AT), local_mem, EMU_CMD_INLINE_MAX);
}

static void test_atomic_must_be_known_whole_and_aligned(void **state)
{
    struct emu_cmd cmd = amo(0, 0, 1, 0);

    (void)state;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd = amo(EMU_AMO_OP_END, 0, 1, 0);
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd = amo(EMU_AMO_ADD, 0, 1, 0);
    cmd.length_bytes = 0;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd.length_bytes = 12;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd.length_bytes = 8;
    cmd.remote_addr += 4;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
    cmd = amo(EMU_AMO_ADD, EMU_AMO_32BIT, 1, 0);
    cmd.remote_addr += 2;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
}

static void test_atomic_must_be_aligned_where_the_owner_has_it(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, 0, 1, 0);

    (void)state;
    cmd.handle_flags = EMU_HANDLE_OFFSET;
    cmd.remote_base = 0x9000;
    cmd.remote_addr = 0x9000; /* aligned here; REG_AT is not */
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
}

static void test_flag_must_be_inside_and_aligned(void **state)
{
    struct emu_cmd cmd = put_local(8);

    (void)state;
    cmd.flags = EMU_CMD_FLAG;
    cmd.flag_addr = REG_PAGES_END;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
    cmd.flag_addr = REG_PAGES_END - 4;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
    cmd.flag_addr = UINT64_MAX - 7;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
    cmd.flag_addr = REG_PAGES_AT + 4;
    expect_refusal(&cmd, EMU_STATUS_BAD_COMMAND);
}

/* ---- data ---- */

static void test_put_takes_local_inline_and_staged_data(void **state)
{
    struct emu_cmd cmd = put_local(1000);

    (void)state;
    cmd.local_addr += 3;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_memory_equal(peer_at(REG_AT), local_mem + 3, 1000);
    assert_int_equal(*peer_at(REG_AT + 1000), 0xee);

    cmd = put_inline(33);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_memory_equal(peer_at(REG_AT), local_mem, 33);
    assert_int_equal(*peer_at(REG_AT + 33), local_mem[3 + 33]);

    cmd = put_local(500);
    cmd.flags = EMU_CMD_STAGED;
    cmd.local_addr = 128;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_memory_equal(peer_at(REG_AT), staging_mem + 128, 500);
}

static void test_staged_data_end_with_the_staging_area(void **state)
{
    static const struct {
        uint64_t off;
        uint64_t len_bytes;
    } wrong[] = {
        { sizeof(staging_mem), 1 }, { sizeof(staging_mem) - 1, 2 }, { UINT64_MAX, 1 },
        { UINT64_MAX, 2 },          { 0, sizeof(staging_mem) + 1 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct emu_cmd cmd = put_local(wrong[i].len_bytes);

        cmd.flags = EMU_CMD_STAGED;
        cmd.local_addr = wrong[i].off;
        expect_refusal(&cmd, EMU_STATUS_LOCAL_ACCESS);
    }
}

static void test_put_with_a_flag_stores_both(void **state)
{
    struct emu_cmd cmd = put_inline(0);
    uint64_t stored;

    (void)state;
    for (uint64_t len = 0; len <= EMU_CMD_INLINE_FLAGGED; len++) {
        cmd = command(EMU_OP_PUT, len);
        cmd.flags = EMU_CMD_INLINE | EMU_CMD_FLAG;
        cmd.flag_addr = REG_PAGES_AT + 4096;
        cmd.flag_value = 0xabc0 + len;
        memcpy(cmd.flagged_data, local_mem, EMU_CMD_INLINE_FLAGGED);
        assert_int_equal(run(&cmd), EMU_STATUS_OK);
        assert_memory_equal(peer_at(REG_AT), local_mem, len);
        memcpy(&stored, peer_at(cmd.flag_addr), 8);
        assert_int_equal(stored, cmd.flag_value);
        while (!emu_cq_is_empty(&destination.consumer))
            next(&destination);
    }
}

static void test_flag_of_an_offset_handle_is_translated_too(void **state)
{
    struct emu_cmd cmd = put_local(8);
    uint64_t stored;

    (void)state;
    cmd.handle_flags = EMU_HANDLE_OFFSET;
    cmd.remote_base = 0x9000;
    cmd.remote_addr = 0x9000;
    cmd.flags = EMU_CMD_FLAG;
    cmd.flag_addr = 0x9000 + 4; /* REG_AT + 4 is aligned */
    cmd.flag_value = 77;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    memcpy(&stored, peer_at(REG_AT + 4), 8);
    assert_int_equal(stored, 77);
}

static void test_get_brings_the_data(void **state)
{
    struct emu_cmd cmd = get(1000);

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        *peer_at(REG_AT + i) = (uint8_t)(i * 3);
    local_mem[1000] = 0x5a;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_memory_equal(local_mem, peer_at(REG_AT), 1000);
    assert_int_equal(local_mem[1000], 0x5a);
}

static void test_get_with_a_flag_sets_the_four_bytes_behind(void **state)
{
    struct emu_cmd cmd = get(100);
    uint32_t flag;

    (void)state;
    cmd.flags = EMU_CMD_GET_FLAG;
    memset(local_mem, 0, 128);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    memcpy(&flag, local_mem + 100, 4);
    assert_int_equal(flag, 1);
    assert_int_equal(local_mem[104], 0);
    assert_int_equal(local_mem[99], 0xee);
}

static void test_transfer_of_no_bytes_is_done(void **state)
{
    struct emu_cmd cmd = put_local(0);

    (void)state;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    cmd = get(0);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    cmd = put_inline(0);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_peer_untouched();
}

static void test_own_memory_that_is_not_there_is_a_local_fault(void **state)
{
    struct emu_cmd cmd = put_local(8);

    (void)state;
    cmd.local_addr = ADDR(local_mem) + sizeof(local_mem) - 4;
    expect_refusal(&cmd, EMU_STATUS_LOCAL_ACCESS);
    cmd = get(8);
    cmd.local_addr = ADDR(local_mem) - 1;
    assert_int_equal(run(&cmd), EMU_STATUS_LOCAL_ACCESS);
    cmd = get(8);
    cmd.flags = EMU_CMD_GET_FLAG;
    cmd.local_addr = ADDR(local_mem) + sizeof(local_mem) - 8; /* no room for the flag */
    assert_int_equal(run(&cmd), EMU_STATUS_LOCAL_ACCESS);
    cmd = amo(EMU_AMO_ADD, EMU_AMO_FETCH, 1, 0);
    cmd.local_addr = 16;
    assert_int_equal(run(&cmd), EMU_STATUS_LOCAL_ACCESS);
}

static void test_pages_that_the_owner_lost_are_a_remote_fault(void **state)
{
    struct emu_cmd cmd = put_local(16);

    (void)state;
    md->base = MEM_AT + MEM_BYTES - 8; /* registered beyond what is there */
    md->length_bytes = 64;
    cmd.remote_base = md->base & ~4095ull;
    cmd.remote_addr = md->base;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
    cmd.op = EMU_OP_GET;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
}

/* ---- atomics ---- */

static void set_peer_word(uint64_t addr, uint64_t word)
{
    memcpy(peer_at(addr), &word, 8);
}

static uint64_t local_word(unsigned index)
{
    uint64_t word;

    memcpy(&word, local_mem + 8 * index, 8);
    return word;
}

static void test_fetching_atomic_changes_the_word_and_brings_the_old(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_CSWAP, EMU_AMO_FETCH, 40, 41);

    (void)state;
    set_peer_word(cmd.remote_addr, 40);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_int_equal(peer_word(cmd.remote_addr), 41);
    assert_int_equal(local_word(0), 40);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_int_equal(peer_word(cmd.remote_addr), 41);
    assert_int_equal(local_word(0), 41);
}

static void test_atomic_without_fetch_leaves_local_memory_alone(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, 0, 2, 0);
    uint64_t before = local_word(0);

    (void)state;
    set_peer_word(cmd.remote_addr, 40);
    cmd.local_addr = 16; /* not even looked at */
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_int_equal(peer_word(cmd.remote_addr), 42);
    assert_int_equal(local_word(0), before);
}

static void test_32_bit_fetching_atomic_brings_four_bytes(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, EMU_AMO_32BIT | EMU_AMO_FETCH, 1, 0);

    (void)state;
    set_peer_word(cmd.remote_addr, 0xaaaaaaaaffffffff);
    memset(local_mem, 0x11, 16);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_int_equal(peer_word(cmd.remote_addr), 0xaaaaaaaa00000000);
    assert_int_equal(local_word(0), 0x11111111ffffffff);
}

static void test_longer_atomic_is_applied_to_each_word(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, EMU_AMO_FETCH, 100, 0);

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        set_peer_word(cmd.remote_addr + 8 * i, i);
    cmd.length_bytes = 32;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(peer_word(cmd.remote_addr + 8 * i), 100 + i);
        assert_int_equal(local_word(i), i);
    }
    assert_int_equal(peer_word(cmd.remote_addr + 32), 4);
}

static void test_pairs_change_the_first_word_of_each(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, EMU_AMO_PAIRS, 100, 0);

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        set_peer_word(cmd.remote_addr + 8 * i, i);
    cmd.length_bytes = 32;
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(peer_word(cmd.remote_addr + 8 * i), i % 2 ? i : 100 + i);
}

static void test_pair_of_one_word_is_that_word(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_ADD, EMU_AMO_PAIRS, 100, 0);

    (void)state;
    set_peer_word(cmd.remote_addr, 1);
    set_peer_word(cmd.remote_addr + 8, 1);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_int_equal(peer_word(cmd.remote_addr), 101);
    assert_int_equal(peer_word(cmd.remote_addr + 8), 1);
}

static void test_fetching_atomic_with_a_flag_sets_the_four_bytes_behind(void **state)
{
    struct emu_cmd cmd = amo(EMU_AMO_SWAP, EMU_AMO_FETCH, 5, 0);

    (void)state;
    cmd.flags = EMU_CMD_GET_FLAG;
    memset(local_mem, 0, 32);
    set_peer_word(cmd.remote_addr, 9);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);
    assert_int_equal(local_word(0), 9);
    assert_int_equal(local_word(1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_nid_outside_the_domain_is_a_peer_that_is_gone),
        UNIT(test_node_without_a_counter_is_a_peer_that_is_gone),
        UNIT(test_handle_that_names_no_memory_domain_is_refused),
        UNIT(test_same_index_on_another_node_is_another_memory_domain),
        UNIT(test_deregistered_memory_is_refused),
        UNIT(test_stale_generation_is_refused),
        UNIT(test_handle_without_a_generation_is_taken),
        UNIT(test_handle_without_a_generation_finds_its_page_among_sharers),
        UNIT(test_handle_with_another_base_is_refused),
        UNIT(test_offset_handle_counts_from_its_own_base),
        UNIT(test_virtual_handle_leads_to_the_domain_of_its_index),
        UNIT(test_virtual_handle_without_address_counts_from_the_start),
        UNIT(test_bounds_are_the_registrations_pages),
        UNIT(test_offset_handle_has_the_same_bounds),
        UNIT(test_random_ranges_never_leave_the_pages),
        UNIT(test_read_only_memory_can_only_be_read),
        UNIT(test_owner_that_cannot_be_reached_is_reported_as_it_is),
        UNIT(test_what_the_caller_leaves_to_others_has_not_happened),
        UNIT(test_unknown_operation_is_a_bad_command),
        UNIT(test_inline_data_must_fit_the_command),
        UNIT(test_atomic_must_be_known_whole_and_aligned),
        UNIT(test_atomic_must_be_aligned_where_the_owner_has_it),
        UNIT(test_flag_must_be_inside_and_aligned),
        UNIT(test_put_takes_local_inline_and_staged_data),
        UNIT(test_staged_data_end_with_the_staging_area),
        UNIT(test_put_with_a_flag_stores_both),
        UNIT(test_flag_of_an_offset_handle_is_translated_too),
        UNIT(test_get_brings_the_data),
        UNIT(test_get_with_a_flag_sets_the_four_bytes_behind),
        UNIT(test_transfer_of_no_bytes_is_done),
        UNIT(test_own_memory_that_is_not_there_is_a_local_fault),
        UNIT(test_pages_that_the_owner_lost_are_a_remote_fault),
        UNIT(test_fetching_atomic_changes_the_word_and_brings_the_old),
        UNIT(test_atomic_without_fetch_leaves_local_memory_alone),
        UNIT(test_32_bit_fetching_atomic_brings_four_bytes),
        UNIT(test_longer_atomic_is_applied_to_each_word),
        UNIT(test_pairs_change_the_first_word_of_each),
        UNIT(test_pair_of_one_word_is_that_word),
        UNIT(test_fetching_atomic_with_a_flag_sets_the_four_bytes_behind),
    };

    return cmocka_run_group_tests(tests, allocate, release);
}
