/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small domain for tests of the engine: a table, a peer with memory and a queue, an initiator. Each program includes
 * this once.
 */
#ifndef TESTS_UNIT_EMUNIC_TRANSACTION_H
#define TESTS_UNIT_EMUNIC_TRANSACTION_H

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
#define N_NIDS   10u
#define PEER     7u
#define PEER_NID 5u

/* The peer's registration: mdh 20 begins 100 bytes into its second page and is 8000 bytes long. */
#define MDH           20u
#define GENERATION    0x1234u
#define MEM_AT        0x40000000ull /* where the peer has its pages */
#define MEM_BYTES     (5 * 4096u)
#define REG_AT        (MEM_AT + 4096 + 100)
#define REG_BYTES     8000u
#define REG_PAGES_AT  (MEM_AT + 4096)
#define REG_PAGES_END (MEM_AT + 3 * 4096)

#define SOURCE_CQ  4u
#define DEST_CQ    6u
#define CQ_ENTRIES 16u

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

static uint8_t *peer_mem;                     /* MEM_BYTES; the peer's pages as mapped here */
static _Alignas(64) uint8_t local_mem[16384]; /* the initiator's */
static _Alignas(64) uint8_t staging_mem[4096];

static inline int reach(void *ctx, const struct emu_table_md *entry, uint8_t op, struct emu_memory *mem_out)
{
    assert_ptr_equal(ctx, &view);
    assert_ptr_equal(entry, md);
    assert_in_range(op, EMU_OP_PUT, EMU_OP_CQ_WRITE);
    if (reach_answer == EMU_STATUS_OK)
        *mem_out = emu_memory_map(peer_mem, MEM_AT, MEM_BYTES);
    return reach_answer;
}

static inline struct emu_cq_producer *destination_of(void *ctx, const struct emu_table_md *entry)
{
    assert_ptr_equal(ctx, &view);
    assert_ptr_equal(entry, md);
    assert_int_equal(entry->cq, DEST_CQ);
    return destination_is_gone ? NULL : &destination.producer;
}

static inline struct emu_cq_producer *source_of(void *ctx, uint32_t cq)
{
    assert_ptr_equal(ctx, &view);
    return cq == SOURCE_CQ && !source_is_gone ? &source.producer : NULL;
}

static const struct emu_view_ops ops = { .reach = reach, .destination = destination_of, .source = source_of };

static inline void make_queue(struct queue *q)
{
    struct emu_cq_shm *shm = (struct emu_cq_shm *)q->bytes;

    memset(q, 0, sizeof(*q));
    emu_cq_format(shm, CQ_ENTRIES, CQ_ENTRIES);
    emu_cq_producer_init(&q->producer, shm, CQ_ENTRIES, CQ_ENTRIES, false, NULL);
    emu_cq_consumer_init(&q->consumer, shm, CQ_ENTRIES);
}

static inline void make_table(void)
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
    table->vmdh_off = table->md_off + 3ull * EMU_MD_COUNT * sizeof(struct emu_table_md);
    table->format = (struct emu_packet_format){
        .payload_bytes_max = 64, .flit_bits = 48, .request_header_flits = 3, .response_header_flits = 1
    };
    nids = (uint32_t *)((char *)table + table->nid_off);
    memset(nids, 0xff, N_NIDS * sizeof(*nids));
    nids[0] = 0;
    nids[PEER_NID] = 1;
    nids[9] = 2;
}

static inline int make_world(void **state)
{
    (void)state;
    make_table();
    md = &emu_table_mds(table, 1)[MDH];
    *md = (struct emu_table_md){
        .state = 1, .generation = GENERATION, .port = PEER, .cq = DEST_CQ, .base = REG_AT, .length_bytes = REG_BYTES
    };
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

static inline int allocate(void **state)
{
    (void)state;
    table = calloc(1, MD_BYTES_OFF + 3ull * EMU_MD_COUNT * (sizeof(struct emu_table_md) + sizeof(uint16_t)));
    peer_mem = malloc(MEM_BYTES);
    return table && peer_mem ? 0 : -1;
}

static inline int release(void **state)
{
    (void)state;
    free(table);
    free(peer_mem);
    return 0;
}

/* ---- short hands ---- */

/* An ordinary command to the start of the registration; it asks for all events. */
static inline struct emu_cmd command(unsigned op, uint64_t length_bytes)
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

static inline struct emu_cmd put_local(uint64_t length_bytes)
{
    struct emu_cmd cmd = command(EMU_OP_PUT, length_bytes);

    cmd.local_addr = ADDR(local_mem);
    return cmd;
}

static inline struct emu_cmd put_inline(uint64_t length_bytes)
{
    struct emu_cmd cmd = command(EMU_OP_PUT, length_bytes);

    cmd.flags = EMU_CMD_INLINE;
    memcpy(cmd.data, local_mem, sizeof(cmd.data));
    return cmd;
}

static inline struct emu_cmd get(uint64_t length_bytes)
{
    struct emu_cmd cmd = command(EMU_OP_GET, length_bytes);

    cmd.local_addr = ADDR(local_mem);
    return cmd;
}

static inline struct emu_cmd amo(unsigned op, unsigned flags, uint64_t operand1, uint64_t operand2)
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

static inline uint8_t *peer_at(uint64_t addr)
{
    return peer_mem + (addr - MEM_AT);
}

static inline void assert_peer_untouched(void)
{
    for (unsigned i = 0; i < MEM_BYTES; i++)
        assert_int_equal(peer_mem[i], 0xee);
}

static inline uint64_t next(struct queue *q)
{
    uint64_t event = 0;

    assert_int_equal(emu_cq_pop(&q->consumer, &event), EMU_CQ_OK);
    return event;
}

static inline void assert_no_more(struct queue *q)
{
    assert_true(emu_cq_is_empty(&q->consumer));
}

/* The status that the command's one source event carries. */
static inline unsigned run(const struct emu_cmd *cmd)
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
static inline void expect_refusal(const struct emu_cmd *cmd, unsigned status)
{
    assert_int_equal(run(cmd), status);
    assert_peer_untouched();
    assert_no_more(&destination);
}

/* ---- atomics ---- */

static inline uint64_t peer_word(uint64_t addr)
{
    uint64_t word;

    memcpy(&word, peer_at(addr), 8);
    return word;
}

/* ---- anything at all ---- */

#define UNIT(name) cmocka_unit_test_setup(name, make_world)

#endif
