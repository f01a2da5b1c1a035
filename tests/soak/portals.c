/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Soak of Portals: 16 processes on 4 nodes do everything at random for as long as asked; every byte and every event is
 * compared with a model.
 *
 *   soak-portals [SECONDS [SEED]]      FX_DATAPATH=routed: through emunic; EMUNIC_MEMORY=cma: by system calls
 *
 * Lanes. Every process has memory with one lane for each process. Only that one writes its lane, so it keeps a copy,
 * the shadow, and knows what every byte must be. What leads to a lane changes all the time: behind entries that are
 * used up by a few requests and others that fit nothing there is always one that takes everything, and it is replaced
 * too, the new one before the old one. So no request may be dropped, ever. Requests of one process are done in order,
 * so a get brings what was put before it and nothing of what was put after it.
 *
 * Messages of unexpected size go into blocks that the library manages, one behind the other, and have to come in the
 * order of their numbers. Words that are swapped (getput) keep the sum of all numbers that ever went in.
 *
 * One test in TAP's form. A run in which nobody gets any further for a minute is a hang and is ended.
 */
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/common/portals_job.h"
#include "tests/common/seed.h"

#define RANKS         16u
#define NODES         4u
#define LANE_BYTES    32768u
#define LANE_PT       10u
#define WORD_PT       11u
#define MESSAGE_PT    12u
#define OPS_MAX       12u
#define SPECIALS      3u /* entries before a lane's last one */
#define DECOYS        24u
#define BLOCKS        3u
#define BLOCK_BYTES   131072u
#define MESSAGE_BYTES 512u
#define CREDITS       8u   /* messages under way to one process */
#define AHEAD_MAX     512u /* requests to one process whose events it has not taken */
#define EQ_ENTRIES    65536u
#define FIRST_PID     300u
#define HANG_NS       60000000000ull

/* What one process tells the others; each line is written by its process. */
struct told {
    _Alignas(64) ptl_process_id_t id;
    _Atomic uint64_t requests_to[RANKS]; /* lanes and words: accepted, or to be */
    _Atomic uint64_t messages_to[RANKS];
    _Atomic uint64_t events_from[RANKS]; /* of requests_to[us], taken */
    _Atomic uint64_t messages_from[RANKS];
    _Atomic uint64_t sum_put;
    _Atomic uint64_t sum_got; /* at the end with the own word's value */
    _Atomic uint64_t n_ops;
    _Atomic uint64_t n_bytes;
    _Atomic uint64_t n_churned; /* entries and descriptors made */
    _Atomic uint64_t n_mismatches;
    _Atomic uint32_t is_drained;
};

struct board {
    _Atomic uint32_t is_over;
    _Atomic uint64_t beats;
    uint64_t seed;
    struct told ranks[RANKS];
};

struct entry {
    bool is_there;
    unsigned source;
    ptl_handle_me_t me;
};

enum op_kind { OP_PUT, OP_PUT_ACKED, OP_GET, OP_SWAP, OP_MESSAGE, OP_KINDS };

/* One call under way. */
struct op {
    bool in_use;
    enum op_kind kind;
    unsigned target;
    ptl_handle_md_t md;
    ptl_handle_md_t put_md; /* swap */
    bool is_unlinked_by_itself;
    unsigned n_to_come; /* events */
    uint64_t offset;
    uint64_t length;
    uint64_t word[2];  /* swap: what goes, what comes */
    uint8_t *buffer;   /* LANE_BYTES */
    uint8_t *expected; /* of a get, as it was when it was issued */
};

static struct {
    unsigned rank;
    struct board *board;
    struct told *told;
    struct emu_random random;
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq; /* of the target side */
    ptl_handle_eq_t op_eq;
    ptl_handle_eq_t empty_eq;
    uint8_t *lanes;
    uint64_t word;
    uint8_t *blocks[BLOCKS];
    uint8_t *shadow[RANKS];
    ptl_handle_me_t last[RANKS]; /* of each lane: takes everything */
    ptl_handle_me_t mark;        /* behind the message blocks */
    struct entry specials[RANKS * SPECIALS];
    struct entry decoys[DECOYS];
    struct op ops[OPS_MAX];
    uint64_t next_message[RANKS];
} r;

/* What user_ptr of a target's descriptor says. */
enum { USER_LANE = 1, USER_WORD, USER_SPECIAL, USER_BLOCK = 1000, USER_DECOY = 2000 };

static void mismatch(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void mismatch(const char *format, ...)
{
    va_list arguments;

    if (atomic_fetch_add(&r.told->n_mismatches, 1) >= 10)
        return;
    fprintf(stderr, "# rank %u: ", r.rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static uint64_t draw(uint64_t n)
{
    return emu_random_below(&r.random, n);
}

static void made(void)
{
    atomic_fetch_add_explicit(&r.told->n_churned, 1, memory_order_relaxed);
}

/* ---- what requests meet ---- */

static ptl_md_t lane_md(unsigned source, int threshold, uintptr_t user)
{
    return (ptl_md_t){ .start = r.lanes + (uint64_t)source * LANE_BYTES,
                       .length = LANE_BYTES,
                       .threshold = threshold,
                       .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
                                  (threshold > 0 ? AUTO_UNLINK_EVENT : 0),
                       .user_ptr = (void *)user,
                       .eq_handle = r.eq };
}

/*
 * An entry with its descriptor, at the tail of a list or before `base`; both stay, or both go. In one call where there
 * is one.
 */
static ptl_handle_me_t attach_both(ptl_pt_index_t pt, ptl_process_id_t id, ptl_match_bits_t ignore, ptl_md_t md)
{
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

#if IS_CRAY
    PJ(PtlMEMDAttach(r.ni, pt, id, 0, ignore, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &me, &mdh));
#else
    PJ(PtlMEAttach(r.ni, pt, id, 0, ignore, PTL_RETAIN, PTL_INS_AFTER, &me));
    PJ(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
#endif
    return me;
}

static ptl_handle_me_t insert_both(ptl_handle_me_t base, ptl_process_id_t id, ptl_match_bits_t ignore,
                                   ptl_unlink_t unlink, ptl_md_t md)
{
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

#if IS_CRAY
    PJ(PtlMEMDInsert(base, id, 0, ignore, unlink, PTL_INS_BEFORE, md, unlink, &me, &mdh));
#else
    PJ(PtlMEInsert(base, id, 0, ignore, unlink, PTL_INS_BEFORE, &me));
    PJ(PtlMDAttach(me, md, unlink, &mdh));
#endif
    return me;
}

/* Requests to a lane carry 0 to 15 in their lowest bits. */
static void attach_last(unsigned source, bool is_first)
{
    ptl_md_t md = lane_md(source, PTL_MD_THRESH_INF, USER_LANE);
    ptl_process_id_t id = r.board->ranks[source].id;
    ptl_handle_me_t old = r.last[source];
    int rc;

    r.last[source] = is_first ? attach_both(LANE_PT, id, 15, md) : insert_both(old, id, 15, PTL_RETAIN, md);
    made();
    if (is_first)
        return;
    while ((rc = PtlMEUnlink(old)) == PTL_ME_IN_USE)
        sched_yield();
    pj_must(rc, "PtlMEUnlink of the last entry");
}

/* An entry that some requests use up, before the last one; also as the post of a receive is made. */
static void make_special(void)
{
    unsigned n = (unsigned)draw(RANKS * SPECIALS);
    struct entry *e = &r.specials[n];
    unsigned source = n / SPECIALS;
    uint64_t bits = draw(16);
    uint64_t ignore = draw(16);
    ptl_md_t md = lane_md(source, 1 + (int)draw(6), USER_SPECIAL + (uintptr_t)n);
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;
    int rc;

    if (e->is_there)
        return;
    if (draw(2)) {
        rc = PtlMEMDPost(r.ni, r.last[source], r.board->ranks[source].id, bits, ignore, PTL_UNLINK, PTL_INS_BEFORE, md,
                         PTL_UNLINK, &me, &mdh, draw(2) ? r.empty_eq : r.eq);
        if (rc == PTL_MD_NO_UPDATE)
            return;
        pj_must(rc, "PtlMEMDPost");
    } else {
        int threshold = md.threshold;

        PJ(PtlMEInsert(r.last[source], r.board->ranks[source].id, bits, ignore, PTL_UNLINK, PTL_INS_BEFORE, &me));
        md.threshold = 0;
        PJ(PtlMDAttach(me, md, PTL_UNLINK, &mdh));
        md.threshold = threshold;
        rc = PtlMDUpdate(mdh, NULL, &md, draw(2) ? r.empty_eq : r.eq);
        if (rc == PTL_MD_NO_UPDATE) {
            PJ(PtlMEUnlink(me));
            return;
        }
        pj_must(rc, "PtlMDUpdate");
    }
    made();
    *e = (struct entry){ .is_there = true, .source = source, .me = me };
}

/* Requests may be using it up at this moment; then its event says that it is gone. */
static void take_special_away(void)
{
    struct entry *e = &r.specials[draw(RANKS * SPECIALS)];
    int rc;

    if (!e->is_there)
        return;
    rc = PtlMEUnlink(e->me);
    if (rc == PTL_OK)
        e->is_there = false;
    else if (rc != PTL_ME_IN_USE && rc != PTL_ME_INVALID)
        mismatch("PtlMEUnlink of an entry that may be in use gives %d", rc);
}

/*
 * Entries that no request fits: without memory, used up, for another process, for other bits, too small, for other
 * operations.
 */
static void change_decoy(void)
{
    struct entry *e = &r.decoys[draw(DECOYS)];
    unsigned source = (unsigned)draw(RANKS);
    ptl_md_t md = lane_md(source, PTL_MD_THRESH_INF, USER_DECOY);
    ptl_process_id_t id = r.board->ranks[source].id;
    uint64_t bits = 0;
    ptl_handle_md_t mdh;
    unsigned what = (unsigned)draw(6);

    if (e->is_there) {
        PJ(PtlMEUnlink(e->me));
        e->is_there = false;
        return;
    }
    if (what == 1)
        md.threshold = 0;
    else if (what == 2)
        id.pid = (ptl_pid_t)(id.pid + RANKS);
    else if (what == 3)
        bits = 16 + draw(1000) * 16;
    else if (what == 4)
        md.options &= ~(unsigned)(PTL_MD_OP_PUT | PTL_MD_OP_GET);
    else if (what == 5)
        md = (ptl_md_t){ .threshold = PTL_MD_THRESH_INF,
                         .options = PTL_MD_OP_PUT | PTL_MD_OP_GET,
                         .eq_handle = PTL_EQ_NONE };
    PJ(PtlMEInsert(r.last[source], id, bits, 15, draw(2) ? PTL_UNLINK : PTL_RETAIN,
                   draw(2) ? PTL_INS_BEFORE : PTL_INS_AFTER, &e->me));
    if (what != 0)
        PJ(PtlMDAttach(e->me, md, draw(2) ? PTL_UNLINK : PTL_RETAIN, &mdh));
    e->is_there = true;
    made();
}

static void attach_block(unsigned n)
{
    ptl_md_t md = { .start = r.blocks[n],
                    .length = BLOCK_BYTES,
                    .threshold = PTL_MD_THRESH_INF,
                    .max_size = MESSAGE_BYTES,
                    .options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE | AUTO_UNLINK_EVENT,
                    .user_ptr = (void *)(uintptr_t)(USER_BLOCK + n),
                    .eq_handle = r.eq };

    insert_both(r.mark, pj_anybody(), ~0ull, PTL_UNLINK, md);
    made();
}

static void open_target(void)
{
    ptl_md_t word = { .start = &r.word,
                      .length = 8,
                      .threshold = PTL_MD_THRESH_INF,
                      .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
                      .user_ptr = (void *)USER_WORD,
                      .eq_handle = r.eq };

    r.lanes = aligned_alloc(4096, RANKS * LANE_BYTES);
    memset(r.lanes, 0, RANKS * LANE_BYTES);
    for (unsigned source = 0; source < RANKS; source++)
        attach_last(source, true);
    attach_both(WORD_PT, pj_anybody(), 0, word);
    PJ(PtlMEAttach(r.ni, MESSAGE_PT, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_BEFORE, &r.mark));
    for (unsigned n = 0; n < BLOCKS; n++) {
        r.blocks[n] = malloc(BLOCK_BYTES);
        attach_block(n);
    }
}

/* ---- what comes in ---- */

static unsigned source_of(const ptl_event_t *event)
{
    unsigned source = (unsigned)event->initiator.pid - FIRST_PID;

    if (source < RANKS && event->initiator.nid == r.board->ranks[source].id.nid)
        return source;
    mismatch("an event of nobody: nid %u pid %u", (unsigned)event->initiator.nid, (unsigned)event->initiator.pid);
    return r.rank;
}

static uint8_t message_byte(unsigned source, uint64_t number, uint64_t i)
{
    return (uint8_t)(source * 61 + number * 13 + i * 3);
}

static void take_message(const ptl_event_t *event)
{
    unsigned source = source_of(event);
    const uint8_t *at = (const uint8_t *)event->md.start + event->offset;

    if (event->type == PTL_EVENT_PUT_START)
        return;
    if (event->hdr_data != r.next_message[source] || event->mlength != event->rlength)
        mismatch("message %llu of rank %u instead of %llu, %llu of %llu bytes", (unsigned long long)event->hdr_data,
                 source, (unsigned long long)r.next_message[source], (unsigned long long)event->mlength,
                 (unsigned long long)event->rlength);
    r.next_message[source] = event->hdr_data + 1;
    for (uint64_t i = 0; i < event->mlength; i++) {
        if (at[i] != message_byte(source, event->hdr_data, i)) {
            mismatch("message %llu of rank %u: byte %llu of %llu is wrong", (unsigned long long)event->hdr_data, source,
                     (unsigned long long)i, (unsigned long long)event->mlength);
            break;
        }
    }
    atomic_fetch_add(&r.told->messages_from[source], 1);
}

static void take_event(const ptl_event_t *event)
{
    uintptr_t user = (uintptr_t)event->md.user_ptr;

    if (event->ni_fail_type != PTL_NI_OK)
        mismatch("event %d has fail type %u", (int)event->type, (unsigned)event->ni_fail_type);
    if (user >= USER_DECOY) {
        mismatch("event %d of an entry that fits nothing", (int)event->type);
    } else if (event->type == PTL_EVENT_UNLINK) {
        if (user >= USER_BLOCK)
            attach_block((unsigned)(user - USER_BLOCK));
        else if (user >= USER_SPECIAL)
            r.specials[user - USER_SPECIAL].is_there = false;
        else
            mismatch("an entry went that is to stay");
    } else if (user >= USER_BLOCK) {
        take_message(event);
    } else {
        if (event->mlength != event->rlength)
            mismatch("event %d: %llu of %llu bytes", (int)event->type, (unsigned long long)event->mlength,
                     (unsigned long long)event->rlength);
        atomic_fetch_add(&r.told->events_from[source_of(event)], 1);
    }
}

/* ---- what goes out ---- */

static struct op *free_op(void)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        if (!r.ops[i].in_use)
            return &r.ops[i];
    }
    return NULL;
}

static bool has_ops(void)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        if (r.ops[i].in_use)
            return true;
    }
    return false;
}

static void bind_buffer(struct op *op, void *start, uint64_t length, unsigned n_counted, ptl_handle_md_t *md_out)
{
    ptl_md_t md = { .start = start,
                    .length = length,
                    .options = PTL_MD_EVENT_START_DISABLE,
                    .user_ptr = op,
                    .eq_handle = r.op_eq,
                    .threshold = PTL_MD_THRESH_INF };
    ptl_md_iovec_t iov[3];

    if (op->is_unlinked_by_itself) {
        md.threshold = (int)n_counted;
        md.options |= AUTO_UNLINK_EVENT;
    }
    if (length >= 3 && draw(4) == 0) {
        uint64_t first = draw(length / 2);
        uint64_t second = draw(length / 2);

        iov[0] = (ptl_md_iovec_t){ start, first };
        iov[1] = (ptl_md_iovec_t){ (uint8_t *)start + first, second };
        iov[2] = (ptl_md_iovec_t){ (uint8_t *)start + first + second, length - first - second };
        md.start = iov;
        md.length = 3;
        md.options |= PTL_MD_IOVEC;
    }
    PJ(PtlMDBind(r.ni, md, op->is_unlinked_by_itself ? PTL_UNLINK : PTL_RETAIN, md_out));
    made();
}

static uint64_t some_length(void)
{
    static const uint64_t most[] = { 8, 12, 64, 512, 4096, LANE_BYTES };

    return 1 + draw(most[draw(6)]);
}

static void start_put(struct op *op)
{
    bool is_acked = op->kind == OP_PUT_ACKED;
    bool is_region = draw(2);
    uint64_t before = is_region ? draw(LANE_BYTES - op->length + 1) : 0;
    uint8_t *data = op->buffer + before;

    for (uint64_t i = 0; i < op->length; i++)
        data[i] = (uint8_t)emu_random_next(&r.random);
    memcpy(r.shadow[op->target] + op->offset, data, op->length);
    op->n_to_come = 1u + is_acked + op->is_unlinked_by_itself;
    if (is_region) {
        bind_buffer(op, op->buffer, LANE_BYTES, 1 + is_acked, &op->md);
        PJ(PtlPutRegion(op->md, before, op->length, is_acked ? PTL_ACK_REQ : NO_ACK, r.board->ranks[op->target].id,
                        LANE_PT, 0, draw(16), op->offset, 0));
    } else {
        bind_buffer(op, op->buffer, op->length, 1 + is_acked, &op->md);
        PJ(PtlPut(op->md, is_acked ? PTL_ACK_REQ : NO_ACK, r.board->ranks[op->target].id, LANE_PT, 0, draw(16),
                  op->offset, 0));
    }
}

static void start_get(struct op *op)
{
    memcpy(op->expected, r.shadow[op->target] + op->offset, op->length);
    memset(op->buffer, 0xee, op->length);
    /* SEND_END, and its share of the threshold, in the CRAY dialect only. */
    op->n_to_come = 1u + IS_CRAY + op->is_unlinked_by_itself;
    bind_buffer(op, op->buffer, op->length, 1u + IS_CRAY, &op->md);
    PJ(PtlGet(op->md, r.board->ranks[op->target].id, LANE_PT, 0, draw(16), op->offset));
}

static void start_swap(struct op *op)
{
    op->length = 8;
    op->word[0] = emu_random_next(&r.random);
    atomic_fetch_add(&r.told->sum_put, op->word[0]);
    op->n_to_come = 2u + 2u * op->is_unlinked_by_itself;
    bind_buffer(op, &op->word[1], 8, 1, &op->md);
    bind_buffer(op, &op->word[0], 8, 1, &op->put_md);
    PJ(PtlGetPut(op->md, op->put_md, r.board->ranks[op->target].id, WORD_PT, 0, 0, 0, 0));
}

static void start_message(struct op *op)
{
    uint64_t number = atomic_load(&r.told->messages_to[op->target]);

    op->length = draw(MESSAGE_BYTES + 1);
    for (uint64_t i = 0; i < op->length; i++)
        op->buffer[i] = message_byte(r.rank, number, i);
    op->n_to_come = 1u + op->is_unlinked_by_itself;
    atomic_store(&r.told->messages_to[op->target], number + 1);
    bind_buffer(op, op->buffer, op->length, 1, &op->md);
    PJ(PtlPut(op->md, PTL_ACK_REQ, r.board->ranks[op->target].id, MESSAGE_PT, 0, draw(1000), 0, number));
}

static bool may_go(const struct op *op)
{
    const struct told *peer = &r.board->ranks[op->target];

    if (op->kind == OP_MESSAGE)
        return atomic_load(&r.told->messages_to[op->target]) - atomic_load(&peer->messages_from[r.rank]) < CREDITS;
    return atomic_load(&r.told->requests_to[op->target]) - atomic_load(&peer->events_from[r.rank]) < AHEAD_MAX;
}

static void start_op(void)
{
    struct op *op = free_op();

    if (!op)
        return;
    op->kind = (enum op_kind)draw(OP_KINDS);
    op->target = (unsigned)draw(RANKS);
    op->is_unlinked_by_itself = draw(2);
    op->length = some_length();
    op->offset = draw(LANE_BYTES - op->length + 1);
    if (!may_go(op))
        return;
    op->in_use = true;
    if (op->kind != OP_MESSAGE)
        atomic_fetch_add(&r.told->requests_to[op->target], 1);
    if (op->kind == OP_GET)
        start_get(op);
    else if (op->kind == OP_SWAP)
        start_swap(op);
    else if (op->kind == OP_MESSAGE)
        start_message(op);
    else
        start_put(op);
    atomic_fetch_add_explicit(&r.told->n_ops, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&r.told->n_bytes, op->length, memory_order_relaxed);
}

static void unlink_md(ptl_handle_md_t md)
{
    int rc;

    while ((rc = PtlMDUnlink(md)) == PTL_MD_IN_USE)
        sched_yield();
    pj_must(rc, "PtlMDUnlink");
}

static void end_op(struct op *op)
{
    if (op->kind == OP_GET && memcmp(op->buffer, op->expected, op->length) != 0)
        mismatch("a get of %llu bytes at %llu from rank %u differs from the model", (unsigned long long)op->length,
                 (unsigned long long)op->offset, op->target);
    if (op->kind == OP_SWAP)
        atomic_fetch_add(&r.told->sum_got, op->word[1]);
    if (!op->is_unlinked_by_itself) {
        unlink_md(op->md);
        if (op->kind == OP_SWAP)
            unlink_md(op->put_md);
    } else if (PtlMDUnlink(op->md) != PTL_MD_INVALID) {
        mismatch("a descriptor that is used up is still there");
    }
    op->in_use = false;
}

static bool fits(const struct op *op, ptl_event_kind_t type)
{
    switch (type) {
    case PTL_EVENT_SEND_END:
        return IS_CRAY || op->kind != OP_GET;
    case PTL_EVENT_ACK:
        return op->kind == OP_PUT_ACKED;
    case PTL_EVENT_REPLY_END:
        return op->kind == OP_GET || op->kind == OP_SWAP;
    case PTL_EVENT_UNLINK:
        return op->is_unlinked_by_itself;
    default:
        return false;
    }
}

static void take_op_event(const ptl_event_t *event)
{
    struct op *op = event->md.user_ptr;

    if (op < r.ops || op >= r.ops + OPS_MAX || !op->in_use || op->n_to_come == 0 || !fits(op, event->type)) {
        mismatch("event %d that does not belong to a call", (int)event->type);
        return;
    }
    if (event->ni_fail_type != PTL_NI_OK)
        mismatch("event %d has fail type %u", (int)event->type, (unsigned)event->ni_fail_type);
    if ((event->type == PTL_EVENT_ACK || event->type == PTL_EVENT_REPLY_END) &&
        (event->mlength != op->length || event->rlength != op->length))
        mismatch("event %d: %llu of %llu bytes", (int)event->type, (unsigned long long)event->mlength,
                 (unsigned long long)op->length);
    if (--op->n_to_come == 0)
        end_op(op);
}

/* ---- the life of a process ---- */

static void take_all(ptl_handle_eq_t eq, void (*take)(const ptl_event_t *event))
{
    ptl_event_t event;
    int rc;

    while ((rc = PtlEQGet(eq, &event)) == PTL_OK)
        take(&event);
    if (rc != PTL_EQ_EMPTY)
        mismatch("PtlEQGet gives %d", rc);
}

static void progress(void)
{
    take_all(r.op_eq, take_op_event);
    take_all(r.eq, take_event);
}

static void work(void)
{
    while (!atomic_load_explicit(&r.board->is_over, memory_order_relaxed)) {
        uint64_t what = draw(128);

        if (what < 90)
            start_op();
        else if (what < 108)
            make_special();
        else if (what < 116)
            take_special_away();
        else if (what < 126)
            change_decoy();
        else
            attach_last((unsigned)draw(RANKS), false);
        if (what % 2 == 0)
            progress();
        atomic_fetch_add_explicit(&r.board->beats, 1, memory_order_relaxed);
    }
    while (has_ops())
        progress();
}

static void check_lanes(void)
{
    for (unsigned target = 0; target < RANKS; target++) {
        struct op *op = &r.ops[0];

        *op = (struct op){ .in_use = true,
                           .kind = OP_GET,
                           .target = target,
                           .length = LANE_BYTES,
                           .buffer = op->buffer,
                           .expected = op->expected };
        atomic_fetch_add(&r.told->requests_to[target], 1);
        start_get(op);
        while (op->in_use)
            progress();
        atomic_fetch_add_explicit(&r.board->beats, 1, memory_order_relaxed);
    }
}

static bool everything_has_come(void)
{
    for (unsigned i = 0; i < RANKS; i++) {
        const struct told *peer = &r.board->ranks[i];

        if (!atomic_load(&peer->is_drained) ||
            atomic_load(&r.told->events_from[i]) < atomic_load(&peer->requests_to[r.rank]) ||
            atomic_load(&r.told->messages_from[i]) < atomic_load(&peer->messages_to[r.rank]))
            return false;
    }
    return true;
}

static void check_counts(void)
{
    ptl_sr_value_t drops = 0;

    for (unsigned i = 0; i < RANKS; i++) {
        const struct told *peer = &r.board->ranks[i];

        if (atomic_load(&r.told->events_from[i]) != atomic_load(&peer->requests_to[r.rank]))
            mismatch("%llu events of rank %u instead of %llu", (unsigned long long)atomic_load(&r.told->events_from[i]),
                     i, (unsigned long long)atomic_load(&peer->requests_to[r.rank]));
    }
    PJ(PtlNIStatus(r.ni, PTL_SR_DROP_COUNT, &drops));
    if (drops != 0)
        mismatch("%lld requests were dropped", (long long)drops);
    atomic_fetch_add(&r.told->sum_got, *(volatile uint64_t *)&r.word);
}

static void open_rank(struct fx_rank *rank)
{
    r.rank = rank->rank;
    r.board = rank->arg;
    r.told = &r.board->ranks[r.rank];
    r.random.state = emu_random_mix(r.board->seed + r.rank);
    r.ni = pj_open(rank->fx, (ptl_pid_t)(FIRST_PID + r.rank), &r.told->id);
    PJ(PtlEQAlloc(r.ni, EQ_ENTRIES, NULL, &r.eq));
    PJ(PtlEQAlloc(r.ni, 1024, NULL, &r.op_eq));
    PJ(PtlEQAlloc(r.ni, 1, NULL, &r.empty_eq));
    for (unsigned i = 0; i < RANKS; i++)
        r.shadow[i] = calloc(1, LANE_BYTES);
    for (unsigned i = 0; i < OPS_MAX; i++) {
        r.ops[i].buffer = malloc(LANE_BYTES);
        r.ops[i].expected = malloc(LANE_BYTES);
    }
}

static int body(struct fx_rank *rank)
{
    open_rank(rank);
    pthread_barrier_wait(rank->barrier);
    open_target();
    pthread_barrier_wait(rank->barrier);
    work();
    check_lanes();
    atomic_store(&r.told->is_drained, 1);
    while (!everything_has_come())
        progress();
    pthread_barrier_wait(rank->barrier);
    progress();
    check_counts();
    pthread_barrier_wait(rank->barrier);
    PJ(PtlNIFini(r.ni));
    PtlFini();
    for (unsigned i = 0; i < RANKS; i++)
        free(r.shadow[i]);
    for (unsigned i = 0; i < OPS_MAX; i++) {
        free(r.ops[i].buffer);
        free(r.ops[i].expected);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(r.blocks[i]);
    free(r.lanes);
    return atomic_load(&r.told->n_mismatches) == 0 ? 0 : 1;
}

/* ---- the test ---- */

static void doze(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

/* False: a hang. */
static bool watch(struct fx_ranks *ranks, struct board *board, uint64_t seconds)
{
    uint64_t end_ns = emu_clock_ns() + seconds * 1000000000ull;
    uint64_t moved_ns = emu_clock_ns();
    uint64_t beats = 0;

    while (!fx_is_over(ranks)) {
        uint64_t now_ns = emu_clock_ns();
        uint64_t now = atomic_load(&board->beats);

        if (now_ns >= end_ns)
            atomic_store(&board->is_over, 1);
        if (now != beats || now_ns < end_ns) {
            moved_ns = now_ns;
            beats = now;
        }
        if (now_ns - moved_ns > HANG_NS)
            return false;
        doze();
    }
    return true;
}

/* False: a number that was swapped is lost or was doubled. */
static bool print_totals(struct board *board)
{
    uint64_t ops = 0, bytes = 0, churned = 0, messages = 0, mismatches = 0, put = 0, got = 0;

    for (unsigned i = 0; i < RANKS; i++) {
        const struct told *told = &board->ranks[i];

        ops += atomic_load(&told->n_ops);
        bytes += atomic_load(&told->n_bytes);
        churned += atomic_load(&told->n_churned);
        mismatches += atomic_load(&told->n_mismatches);
        put += atomic_load(&told->sum_put);
        got += atomic_load(&told->sum_got);
        for (unsigned k = 0; k < RANKS; k++)
            messages += atomic_load(&told->messages_from[k]);
    }
    printf("# %llu calls, %llu MiB, %llu messages, %llu entries and descriptors made, %llu mismatches, swapped numbers "
           "%s\n",
           (unsigned long long)ops, (unsigned long long)(bytes >> 20), (unsigned long long)messages,
           (unsigned long long)churned, (unsigned long long)mismatches, put == got ? "all there" : "lost");
    return put == got && ops > 0;
}

int main(int argc, char **argv)
{
    static const uint32_t nids[NODES] = { 0, 1, 6, 303 };
    struct fx_options options = { .n_ranks = NODES, .nids = nids };
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 30;
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct fx_ranks ranks;
    bool is_good;
    struct fx fx;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..1\n");
    if (board == MAP_FAILED)
        return 1;
    board->seed = argc > 2 ? strtoull(argv[2], NULL, 0) : seeded(20261122).state;
    fx_start(&fx, &options);
    fx_spawn(&fx, RANKS, body, board, &ranks);
    is_good = watch(&ranks, board, seconds);
    if (!is_good) {
        printf("# nobody gets any further\n");
        for (unsigned i = 0; i < RANKS; i++) {
            if (ranks.pids[i] > 0)
                kill(ranks.pids[i], SIGKILL);
        }
    }
    is_good = fx_join(&ranks) == 0 && is_good;
    is_good = print_totals(board) && is_good;
    fx_stop(&fx);
    printf("%sok 1 - %llu seconds of everything\n", is_good ? "" : "not ", (unsigned long long)seconds);
    return is_good ? 0 : 1;
}
