/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Soak of DMAPP: 16 PEs do everything at random for as long as asked; every byte is compared with a model.
 *
 *   emunic run -n 16 --ppn 4 -- soak-dmapp [SECONDS [SEED]]
 *
 * Each PE has a lane in the memory of every PE: in its heap and in its static data. Nobody else writes there, so its
 * owner keeps a copy, the shadow, and knows at any time what every byte must be. Transfers under way at one time do not
 * overlap. Besides: a counter behind a lock on every PE, messages in both directions, and common words that only grow.
 * After some hundred operations a round ends with reductions, of numbers that everybody can work out, and of whether
 * time is over. One test in TAP's form.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dmapp.h>
#include <pmi.h>

#include "emunic/base/clock.h"
#include "emunic/fabric/random.h"

#define PES_MAX    16
#define LANE       8192u
#define WORDS      8u /* of a lane, behind its data */
#define LANE_BYTES (LANE + WORDS * 8)
#define UNDER_WAY  8u
#define ROUND      300u /* operations */
#define KINDS      2u   /* heap, static data */

struct lanes {
    uint8_t bytes[PES_MAX][LANE_BYTES];
};

struct op {
    bool in_use;
    bool is_get;
    dmapp_syncid_handle_t syncid; /* NULL: implicit */
    unsigned kind;
    dmapp_pe_t pe;
    uint32_t offset;
    uint32_t len;
    uint8_t buffer[LANE];
};

static dmapp_jobinfo_t job;
static struct emu_random randoms;
static struct lanes static_lanes;
static struct lanes *heap_lanes;
static uint8_t shadow[KINDS][PES_MAX][LANE_BYTES];
static struct op ops[UNDER_WAY];
static struct {
    dmapp_lock_desc_t lock;
    uint64_t locked; /* changed under the lock */
    uint64_t added;  /* by adds */
} * common;
static uint64_t done_locked[PES_MAX], done_added[PES_MAX], sent[PES_MAX];
static uint64_t next_from[PES_MAX];
static _Atomic uint64_t n_received;
static uint64_t n_ops, n_bytes, n_rounds;

static void wrong(const char *what, int64_t detail)
{
    fprintf(stderr, "soak-dmapp: PE %d round %llu: %s (%lld)\n", job.pe, (unsigned long long)n_rounds, what,
            (long long)detail);
    exit(1);
}

static void must(dmapp_return_t rc, const char *what)
{
    if (rc != DMAPP_RC_SUCCESS)
        wrong(what, rc);
}

static uint64_t draw(uint64_t below)
{
    return emu_random_next(&randoms) % below;
}

static uint8_t *lane_at(unsigned kind)
{
    return (kind ? &static_lanes : heap_lanes)->bytes[job.pe];
}

static dmapp_seg_desc_t *seg_of(unsigned kind)
{
    return kind ? &job.data_seg : &job.sheap_seg;
}

/* ---- transfers ---- */

static void settle(struct op *op)
{
    if (op->is_get && memcmp(op->buffer, &shadow[op->kind][op->pe][op->offset], op->len) != 0)
        wrong("a get differs from the model, offset", op->offset);
    op->in_use = false;
}

static void complete_all(void)
{
    must(dmapp_gsync_wait(), "gsync");
    for (unsigned i = 0; i < UNDER_WAY; i++) {
        if (!ops[i].in_use)
            continue;
        if (ops[i].syncid)
            must(dmapp_syncid_wait(&ops[i].syncid), "syncid");
        settle(&ops[i]);
    }
}

static bool overlaps(unsigned kind, dmapp_pe_t pe, uint32_t offset, uint32_t len)
{
    for (unsigned i = 0; i < UNDER_WAY; i++) {
        if (ops[i].in_use && ops[i].kind == kind && ops[i].pe == pe && offset < ops[i].offset + ops[i].len &&
            ops[i].offset < offset + len)
            return true;
    }
    return false;
}

static struct op *new_op(void)
{
    static const uint32_t most[] = { 8, 64, 512, LANE };
    uint32_t len = (uint32_t)draw(most[draw(4)]) + 1;
    struct op *op = NULL;
    struct op wanted = { .in_use = true,
                         .kind = (unsigned)draw(KINDS),
                         .pe = (dmapp_pe_t)draw((unsigned)job.npes),
                         .offset = (uint32_t)draw(LANE - len + 1),
                         .len = len };

    for (unsigned i = 0; i < UNDER_WAY && !op; i++)
        op = ops[i].in_use ? NULL : &ops[i];
    if (!op || overlaps(wanted.kind, wanted.pe, wanted.offset, wanted.len)) {
        complete_all();
        op = &ops[0];
    }
    memcpy(op, &wanted, offsetof(struct op, buffer));
    return op;
}

static void transfer(void)
{
    struct op *op = new_op();
    unsigned flavour = (unsigned)draw(3);
    dmapp_seg_desc_t *seg = seg_of(op->kind);
    uint8_t *remote = lane_at(op->kind) + op->offset;

    op->is_get = draw(2);
    if (op->is_get) {
        memset(op->buffer, 0xdd, op->len);
        must(flavour == 0 ? dmapp_get(op->buffer, remote, seg, op->pe, op->len, DMAPP_BYTE) :
             flavour == 1 ? dmapp_get_nb(op->buffer, remote, seg, op->pe, op->len, DMAPP_BYTE, &op->syncid) :
                            dmapp_get_nbi(op->buffer, remote, seg, op->pe, op->len, DMAPP_BYTE),
             "get");
    } else {
        for (uint32_t i = 0; i < op->len; i++)
            op->buffer[i] = (uint8_t)emu_random_next(&randoms);
        memcpy(&shadow[op->kind][op->pe][op->offset], op->buffer, op->len);
        must(flavour == 0 ? dmapp_put(remote, seg, op->pe, op->buffer, op->len, DMAPP_BYTE) :
             flavour == 1 ? dmapp_put_nb(remote, seg, op->pe, op->buffer, op->len, DMAPP_BYTE, &op->syncid) :
                            dmapp_put_nbi(remote, seg, op->pe, op->buffer, op->len, DMAPP_BYTE),
             "put");
    }
    n_bytes += op->len;
    if (flavour == 0)
        settle(op);
}

static void strided(void)
{
    uint32_t nelems = (uint32_t)draw(64) + 1, stride = (uint32_t)draw(7) + 1;
    uint32_t span = ((nelems - 1) * stride + 1) * 4, offset = (uint32_t)draw((LANE - span) / 4 + 1) * 4;
    dmapp_pe_t pe = (dmapp_pe_t)draw((unsigned)job.npes);
    unsigned kind = (unsigned)draw(KINDS);
    uint32_t data[64];

    if (overlaps(kind, pe, offset, span))
        complete_all();
    if (draw(2)) {
        for (uint32_t i = 0; i < nelems; i++) {
            data[i] = (uint32_t)emu_random_next(&randoms);
            memcpy(&shadow[kind][pe][offset + i * stride * 4], &data[i], 4);
        }
        must(dmapp_iput(lane_at(kind) + offset, seg_of(kind), pe, data, stride, 1, nelems, DMAPP_DW), "iput");
    } else {
        must(dmapp_iget(data, lane_at(kind) + offset, seg_of(kind), pe, 1, stride, nelems, DMAPP_DW), "iget");
        for (uint32_t i = 0; i < nelems; i++) {
            if (memcmp(&shadow[kind][pe][offset + i * stride * 4], &data[i], 4) != 0)
                wrong("a strided get differs from the model, element", i);
        }
    }
}

/* ---- words ---- */

static void atomic(void)
{
    dmapp_pe_t pe = (dmapp_pe_t)draw((unsigned)job.npes);
    unsigned kind = (unsigned)draw(KINDS);
    uint32_t at = LANE + (uint32_t)draw(WORDS) * 8;
    int64_t operand = (int64_t)emu_random_next(&randoms), old, value;
    void *remote = lane_at(kind) + at;

    memcpy(&value, &shadow[kind][pe][at], 8);
    switch (draw(4)) {
    case 0:
        must(dmapp_afadd_qw(&old, remote, seg_of(kind), pe, operand), "afadd");
        operand = (int64_t)((uint64_t)value + (uint64_t)operand);
        break;
    case 1:
        must(dmapp_afxor_qw(&old, remote, seg_of(kind), pe, operand), "afxor");
        operand ^= value;
        break;
    case 2:
        must(dmapp_acswap_qw(&old, remote, seg_of(kind), pe, value, operand), "acswap");
        break;
    default:
        must(dmapp_afax_qw(&old, remote, seg_of(kind), pe, 0, operand), "afax");
        break;
    }
    if (old != value)
        wrong("an atomic fetched another value than the model's", at);
    memcpy(&shadow[kind][pe][at], &operand, 8);
}

static void add_to_common(void)
{
    dmapp_pe_t pe = (dmapp_pe_t)draw((unsigned)job.npes);

    must(dmapp_aadd_qw_nbi(&common->added, &job.sheap_seg, pe, 3), "aadd");
    done_added[pe] += 3;
}

static void count_under_lock(void)
{
    dmapp_pe_t pe = (dmapp_pe_t)draw((unsigned)job.npes);
    dmapp_lock_handle_t handle;
    uint64_t value;

    must(dmapp_lock_acquire(&common->lock, &job.sheap_seg, pe, 0, &handle), "lock");
    must(dmapp_get(&value, &common->locked, &job.sheap_seg, pe, 1, DMAPP_QW), "get");
    value++;
    must(dmapp_put(&common->locked, &job.sheap_seg, pe, &value, 1, DMAPP_QW), "put");
    must(dmapp_lock_release(handle, 0), "release");
    done_locked[pe]++;
}

/* ---- messages ---- */

static int receive(void *context, void *data, uint32_t len, dmapp_pe_t from)
{
    uint64_t *message = data;

    (void)context;
    if (len < 8 || message[0] != next_from[from]++ || len != (message[0] % 31 + 1) * 8)
        wrong("a message is not the next one of PE", from);
    for (uint32_t i = 1; i < len / 8; i++) {
        if (message[i] != message[0] * 257 + (unsigned)from + i)
            wrong("a message is not what was sent, word", i);
    }
    atomic_fetch_add(&n_received, 1);
    return 0;
}

static void send_message(dmapp_queue_handle_t queue)
{
    dmapp_pe_t to = (dmapp_pe_t)draw((unsigned)job.npes);
    uint64_t message[32] = { sent[to] };

    for (uint32_t i = 1; i < 32; i++)
        message[i] = message[0] * 257 + (unsigned)job.pe + i;
    must(dmapp_queue_put(queue, message, message[0] % 31 + 1, DMAPP_QW, to, 0), "queue_put");
    sent[to]++;
}

/* ---- rounds ---- */

static void reduce(dmapp_c_pset_handle_t set, void *in, void *out, uint32_t n, dmapp_c_type_t type, dmapp_c_op_t op)
{
    must(dmapp_c_greduce_start(set, in, out, n, type, op), "greduce");
    must(dmapp_c_pset_wait(set), "pset_wait");
}

/* Is time over? The same answer in all PEs. */
static bool end_round(dmapp_c_pset_handle_t set, uint64_t end_ns)
{
    uint64_t in[3] = { n_rounds * 7 + (unsigned)job.pe, (unsigned)job.pe, 1 }, out[3];
    int64_t is_over = emu_clock_ns() >= end_ns;
    uint64_t n = (unsigned)job.npes;

    reduce(set, in, out, 3, DMAPP_C_UINT64, DMAPP_C_SUM);
    if (out[0] != n_rounds * 7 * n + n * (n - 1) / 2 || out[1] != n * (n - 1) / 2 || out[2] != n)
        wrong("a sum is wrong", (int64_t)out[0]);
    reduce(set, &is_over, &is_over, 1, DMAPP_C_INT64, DMAPP_C_MAX);
    n_rounds++;
    return is_over;
}

static void one_operation(dmapp_queue_handle_t queue)
{
    uint64_t what = draw(100);

    if (what < 55)
        transfer();
    else if (what < 65)
        strided();
    else if (what < 80)
        atomic();
    else if (what < 90)
        add_to_common();
    else if (what < 93)
        count_under_lock();
    else
        send_message(queue);
    n_ops++;
}

static void barrier(dmapp_c_pset_handle_t set)
{
    must(dmapp_c_barrier_join(set), "barrier");
    must(dmapp_c_pset_wait(set), "barrier's wait");
}

static void check_everything(dmapp_c_pset_handle_t set)
{
    static uint8_t lane[LANE_BYTES];
    uint64_t expected;

    complete_all();
    barrier(set);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (dmapp_pe_t pe = 0; pe < job.npes; pe++) {
            must(dmapp_get(lane, lane_at(kind), seg_of(kind), pe, LANE_BYTES, DMAPP_BYTE), "get");
            if (memcmp(lane, shadow[kind][pe], LANE_BYTES) != 0)
                wrong("a lane differs from the model at the end, PE", pe);
        }
    }
    for (dmapp_pe_t pe = 0; pe < job.npes; pe++) {
        reduce(set, &done_locked[pe], &expected, 1, DMAPP_C_UINT64, DMAPP_C_SUM);
        if (pe == job.pe && common->locked != expected)
            wrong("additions under the lock were lost", (int64_t)(expected - common->locked));
        reduce(set, &done_added[pe], &expected, 1, DMAPP_C_UINT64, DMAPP_C_SUM);
        if (pe == job.pe && common->added != expected)
            wrong("additions were lost", (int64_t)(expected - common->added));
        reduce(set, &sent[pe], &expected, 1, DMAPP_C_UINT64, DMAPP_C_SUM);
        if (pe == job.pe) {
            while (atomic_load(&n_received) < expected)
                must(dmapp_progress(), "progress");
            if (atomic_load(&n_received) != expected)
                wrong("messages came that nobody sent", (int64_t)(atomic_load(&n_received) - expected));
        }
    }
    barrier(set);
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 30;
    const char *seed_text = getenv("EMU_TEST_SEED");
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : seed_text ? strtoull(seed_text, NULL, 0) : 20261122;
    dmapp_c_pset_desc_t everybody = { .type = DMAPP_C_PSET_DELIMITER_STRIDED, .u.stride_type = { .stride_pe = 1 } };
    dmapp_c_pset_handle_t set;
    dmapp_queue_handle_t queue;
    uint64_t end_ns, totals[3];

    setenv("XT_SYMMETRIC_HEAP_SIZE", "4M", 0);
    must(dmapp_init(NULL, NULL), "init");
    must(dmapp_get_jobinfo(&job), "jobinfo");
    if (job.npes > PES_MAX)
        wrong("too many PEs", job.npes);
    heap_lanes = dmapp_sheap_malloc(sizeof(*heap_lanes));
    common = dmapp_sheap_malloc(sizeof(*common));
    if (!heap_lanes || !common)
        wrong("no heap", 0);
    memset(heap_lanes, 0, sizeof(*heap_lanes));
    memset(common, 0, sizeof(*common));
    everybody.u.stride_type.n_pes = (uint32_t)job.npes;
    must(dmapp_c_pset_create(&everybody, 1, 0, NULL, &set), "pset");
    must(dmapp_queue_attach(receive, NULL, 0, &queue), "queue");
    PMI_Barrier();
    must(dmapp_c_pset_export(set), "export");
    randoms.state = emu_random_mix(seed + (unsigned)job.pe);
    if (job.pe == 0)
        printf("1..1\n# EMU_TEST_SEED=%llu\n", (unsigned long long)seed);
    end_ns = emu_clock_ns() + seconds * 1000000000ull;
    do {
        for (unsigned i = 0; i < ROUND; i++)
            one_operation(queue);
    } while (!end_round(set, end_ns));
    check_everything(set);
    totals[0] = n_ops;
    totals[1] = n_bytes;
    totals[2] = atomic_load(&n_received);
    reduce(set, totals, totals, 3, DMAPP_C_UINT64, DMAPP_C_SUM);
    if (job.pe == 0)
        printf("# %llu operations, %llu MiB, %llu messages, %llu rounds\nok 1 - %llu seconds of everything\n",
               (unsigned long long)totals[0], (unsigned long long)(totals[1] >> 20), (unsigned long long)totals[2],
               (unsigned long long)n_rounds, (unsigned long long)seconds);
    must(dmapp_queue_detach(queue, 0), "detach");
    must(dmapp_c_pset_destroy(set), "destroy");
    must(dmapp_finalize(), "finalize");
    return 0;
}
