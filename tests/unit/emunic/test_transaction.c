/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC over a view made by hand: three nodes, one peer port with memory and a queue, one initiator. Checks, data,
 * events, chains, counters and slices of emunic/engine/transaction.c. Rules: spec ugni.md 4.7, 4.8, Appendix B.
 */
#include "emunic/engine/transaction.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/seed.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define ADDR(p)     ((uint64_t)(uintptr_t)(p))

/* Nids 0, 5 and 9 are nodes 0, 1 and 2 of the domain. The initiator is on node 0, the peer is port 7 on node 1. */
#define N_NIDS      10u
#define PEER        7u
#define PEER_NID    5u

/* The peer's registration: mdh 20 begins 100 bytes into its second page and is 8000 bytes long. */
#define MDH         20u
#define GENERATION  0x1234u
#define MEM_AT      0x40000000ull       /* where the peer has its pages */
#define MEM_BYTES   (5 * 4096u)
#define REG_AT      (MEM_AT + 4096 + 100)
#define REG_BYTES   8000u
#define REG_PAGES_AT  (MEM_AT + 4096)
#define REG_PAGES_END (MEM_AT + 3 * 4096)

#define SOURCE_CQ   4u
#define DEST_CQ     6u
#define CQ_ENTRIES  16u

struct queue {
    _Alignas(64) uint8_t bytes[sizeof(struct emu_cq_shm) + CQ_ENTRIES * 8];
    struct emu_cq_producer producer;
    struct emu_cq_consumer consumer;
};

static struct emu_table *table;
static struct emu_table_md *md;
static struct emu_view view;
static struct emu_flow_counts flows[3];
static unsigned chain_status;
static uint8_t bounce[256];
static struct queue source;
static struct queue destination;
static bool source_is_gone;
static bool destination_is_gone;
static int reach_answer;

static uint8_t *peer_mem;                       /* MEM_BYTES; the peer's pages as mapped here */
static _Alignas(64) uint8_t local_mem[16384];   /* the initiator's */
static _Alignas(64) uint8_t staging_mem[4096];

static int reach(void *ctx, const struct emu_table_md *entry, uint8_t op, struct emu_memory *mem_out)
{
    assert_ptr_equal(ctx, &view);
    assert_ptr_equal(entry, md);
    assert_in_range(op, EMU_OP_PUT, EMU_OP_CQ_WRITE);
    if (reach_answer == EMU_STATUS_OK)
        *mem_out = emu_memory_map(peer_mem, MEM_AT, MEM_BYTES);
    return reach_answer;
}

static struct emu_cq_producer *destination_of(void *ctx, const struct emu_table_md *entry)
{
    assert_ptr_equal(ctx, &view);
    assert_ptr_equal(entry, md);
    assert_int_equal(entry->cq, DEST_CQ);
    return destination_is_gone ? NULL : &destination.producer;
}

static struct emu_cq_producer *source_of(void *ctx, uint32_t cq)
{
    assert_ptr_equal(ctx, &view);
    return cq == SOURCE_CQ && !source_is_gone ? &source.producer : NULL;
}

static const struct emu_view_ops ops = { .reach = reach, .destination = destination_of, .source = source_of };

static void make_queue(struct queue *q)
{
    struct emu_cq_shm *shm = (struct emu_cq_shm *)q->bytes;

    memset(q, 0, sizeof(*q));
    emu_cq_format(shm, CQ_ENTRIES, CQ_ENTRIES);
    emu_cq_producer_init(&q->producer, shm, CQ_ENTRIES, CQ_ENTRIES, false, NULL);
    emu_cq_consumer_init(&q->consumer, shm, CQ_ENTRIES);
}

static void make_table(void)
{
    uint32_t *nids;

    memset(table, 0, sizeof(*table));
    table->n_nids = N_NIDS;
    table->n_nodes = 3;
    table->n_ports = 16;
    table->nid_off = sizeof(*table);
    table->node_off = table->nid_off + 64;
    table->port_off = table->node_off + 64;
    table->md_off = table->port_off + 1024;
    table->vmdh_off = table->md_off + 3ull * EMU_MDH_COUNT * sizeof(struct emu_table_md);
    table->format = (struct emu_packet_format){ .payload_bytes_max = 64, .flit_bits = 48, .request_header_flits = 3,
                                                .response_header_flits = 1 };
    nids = (uint32_t *)((char *)table + table->nid_off);
    memset(nids, 0xff, N_NIDS * sizeof(*nids));
    nids[0] = 0;
    nids[PEER_NID] = 1;
    nids[9] = 2;
}

static int make_world(void **state)
{
    (void)state;
    make_table();
    md = &emu_table_mds(table, 1)[MDH];
    *md = (struct emu_table_md){ .state = 1, .generation = GENERATION, .port = PEER, .cq = DEST_CQ, .base = REG_AT,
                                 .length_bytes = REG_BYTES };
    make_queue(&source);
    make_queue(&destination);
    source_is_gone = destination_is_gone = false;
    reach_answer = EMU_STATUS_OK;
    chain_status = EMU_STATUS_OK;
    memset(flows, 0, sizeof(flows));
    memset(peer_mem, 0xee, MEM_BYTES);
    for (size_t i = 0; i < sizeof(local_mem); i++)
        local_mem[i] = (uint8_t)(i * 7 + 1);
    for (size_t i = 0; i < sizeof(staging_mem); i++)
        staging_mem[i] = (uint8_t)(i * 5 + 2);
    view = (struct emu_view){
        .table = table,
        .ops = &ops,
        .ctx = &view,
        .local = emu_memory_map(local_mem, ADDR(local_mem), sizeof(local_mem)),
        .staging = emu_memory_map(staging_mem, 0, sizeof(staging_mem)),
        .flows = flows,
        .n_flows = 3,
        .chain_status = &chain_status,
        .bounce = bounce,
        .bounce_bytes = sizeof(bounce),
    };
    return 0;
}

#define MD_BYTES_OFF 4096u

static int allocate(void **state)
{
    (void)state;
    table = calloc(1, MD_BYTES_OFF + 3ull * EMU_MDH_COUNT * (sizeof(struct emu_table_md) + sizeof(uint16_t)));
    peer_mem = malloc(MEM_BYTES);
    return table && peer_mem ? 0 : -1;
}

static int release(void **state)
{
    (void)state;
    free(table);
    free(peer_mem);
    return 0;
}

/* ---- short hands ---- */

/* An ordinary command to the start of the registration; it asks for all events. */
static struct emu_cmd command(unsigned op, uint64_t length_bytes)
{
    return (struct emu_cmd){
        .op = (uint8_t)op,
        .events = EMU_EV_LOCAL | EMU_EV_GLOBAL | EMU_EV_REMOTE,
        .remote_nid = PEER_NID,
        .remote_addr = REG_AT,
        .length_bytes = length_bytes,
        .remote_base = REG_PAGES_AT,
        .mdh = MDH,
        .generation = GENERATION,
        .source_event = emu_event_make(1, EMU_SOURCE_FMA, 0x111),
        .remote_event = emu_event_make(2, 0, 0x222),
        .source_cq = SOURCE_CQ,
    };
}

static struct emu_cmd put_local(uint64_t length_bytes)
{
    struct emu_cmd cmd = command(EMU_OP_PUT, length_bytes);

    cmd.local_addr = ADDR(local_mem);
    return cmd;
}

static struct emu_cmd put_inline(uint64_t length_bytes)
{
    struct emu_cmd cmd = command(EMU_OP_PUT, length_bytes);

    cmd.flags = EMU_CMD_INLINE;
    memcpy(cmd.data, local_mem, sizeof(cmd.data));
    return cmd;
}

static struct emu_cmd get(uint64_t length_bytes)
{
    struct emu_cmd cmd = command(EMU_OP_GET, length_bytes);

    cmd.local_addr = ADDR(local_mem);
    return cmd;
}

static struct emu_cmd amo(unsigned op, unsigned flags, uint64_t operand1, uint64_t operand2)
{
    struct emu_cmd cmd = command(EMU_OP_AMO, (flags & EMU_AMO_32BIT) ? 4 : 8);

    cmd.amo_op = (uint8_t)op;
    cmd.amo_flags = (uint8_t)flags;
    cmd.operand1 = operand1;
    cmd.operand2 = operand2;
    cmd.local_addr = ADDR(local_mem);
    cmd.remote_addr = (REG_AT + 7) & ~7ull;
    return cmd;
}

static uint8_t *peer_at(uint64_t addr)
{
    return peer_mem + (addr - MEM_AT);
}

static void assert_peer_untouched(void)
{
    for (unsigned i = 0; i < MEM_BYTES; i++)
        assert_int_equal(peer_mem[i], 0xee);
}

static uint64_t next(struct queue *q)
{
    uint64_t event = 0;

    assert_int_equal(emu_cq_pop(&q->consumer, &event), EMU_CQ_OK);
    return event;
}

static void assert_no_more(struct queue *q)
{
    assert_true(emu_cq_is_empty(&q->consumer));
}

/* The status that the command's one source event carries. */
static unsigned run(const struct emu_cmd *cmd)
{
    struct emu_cmd one = *cmd;
    unsigned status;

    one.events = (one.events & EMU_EV_REMOTE) | EMU_EV_GLOBAL;
    emu_transaction_run(&view, &one);
    status = emu_event_status(next(&source));
    assert_no_more(&source);
    return status;
}

/* Runs a command that must fail before it touches anything. */
static void expect_refusal(const struct emu_cmd *cmd, unsigned status)
{
    assert_int_equal(run(cmd), status);
    assert_peer_untouched();
    assert_no_more(&destination);
}

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
        assert_int_equal(flows[i].errors, 0);   /* there is no flow to count it in */
}

static void test_node_without_a_counter_is_a_peer_that_is_gone(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    view.n_flows = 1;       /* a broken segment; node 1 is the second */
    expect_refusal(&cmd, EMU_STATUS_PEER_GONE);
}

static void test_handle_that_names_no_memory_domain_is_refused(void **state)
{
    static const uint16_t mdhs[] = { 0, MDH - 1, MDH + 1, EMU_MDH_COUNT - 1, EMU_MDH_COUNT, EMU_MDH_COUNT + MDH,
                                     UINT16_MAX };

    (void)state;
    emu_table_mds(table, 2)[MDH] = *md;      /* what EMU_MDH_COUNT + MDH would find */
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

static void test_handle_with_another_base_is_refused(void **state)
{
    struct emu_cmd cmd = put_inline(8);

    (void)state;
    cmd.remote_base = REG_PAGES_AT + 4096;
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);
    cmd.remote_base = REG_AT;       /* handles carry the page */
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
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);        /* the index is free */
    atomic_store(&emu_table_vmdhs(table, 1)[3], MDH);
    assert_int_equal(run(&cmd), EMU_STATUS_OK);         /* by its own base, from the first page on */
    assert_memory_equal(peer_at(REG_PAGES_AT + 24), local_mem, 8);
    make_world(state);
    atomic_store(&emu_table_vmdhs(table, 1)[3], MDH + 1);
    expect_refusal(&cmd, EMU_STATUS_BAD_HANDLE);        /* leads to a domain that is not live */
    atomic_store(&emu_table_vmdhs(table, 1)[3], EMU_MDH_COUNT);
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
    static const struct { uint64_t addr; uint64_t len_bytes; unsigned status; } cases[] = {
        { REG_AT, REG_BYTES, EMU_STATUS_OK },
        { REG_PAGES_AT, 8, EMU_STATUS_OK },                    /* same page, before the registration */
        { REG_PAGES_END - 8, 8, EMU_STATUS_OK },               /* same page, behind it */
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
    cmd.remote_addr = 0x9000;       /* aligned here; REG_AT is not */
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
    static const struct { uint64_t off; uint64_t len_bytes; } wrong[] = {
        { sizeof(staging_mem), 1 }, { sizeof(staging_mem) - 1, 2 }, { UINT64_MAX, 1 }, { UINT64_MAX, 2 },
        { 0, sizeof(staging_mem) + 1 },
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
    cmd.flag_addr = 0x9000 + 4;     /* REG_AT + 4 is aligned */
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
    cmd.local_addr = ADDR(local_mem) + sizeof(local_mem) - 8;       /* no room for the flag */
    assert_int_equal(run(&cmd), EMU_STATUS_LOCAL_ACCESS);
    cmd = amo(EMU_AMO_ADD, EMU_AMO_FETCH, 1, 0);
    cmd.local_addr = 16;
    assert_int_equal(run(&cmd), EMU_STATUS_LOCAL_ACCESS);
}

static void test_pages_that_the_owner_lost_are_a_remote_fault(void **state)
{
    struct emu_cmd cmd = put_local(16);

    (void)state;
    md->base = MEM_AT + MEM_BYTES - 8;      /* registered beyond what is there */
    md->length_bytes = 64;
    cmd.remote_base = md->base & ~4095ull;
    cmd.remote_addr = md->base;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
    cmd.op = EMU_OP_GET;
    expect_refusal(&cmd, EMU_STATUS_REMOTE_RANGE);
}

/* ---- atomics ---- */

static uint64_t peer_word(uint64_t addr)
{
    uint64_t word;

    memcpy(&word, peer_at(addr), 8);
    return word;
}

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
    cmd.local_addr = 16;        /* not even looked at */
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
        next(&destination);     /* remote events come one by one */
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

/* machines.md 2.3 as quoted in aries.yaml: 3 + 2 and 1; 3 + 2 (one operand) or 3 + 3 (two) and 1 + 2. */
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

#define UNIT(name) cmocka_unit_test_setup(name, make_world)

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
        UNIT(test_random_commands_touch_only_what_the_domain_allows),
    };

    return cmocka_run_group_tests(tests, allocate, release);
}
