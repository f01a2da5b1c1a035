/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random posts and what must come of them.
 *
 * No two posts under way touch the same bytes, so the order in which they end does not matter: a put changes the shadow
 * when its completion comes, a get must show what the shadow holds. A post that ends with an error has had no effect,
 * or one that is overwritten: puts are posted again until they succeed, atomics and queue writes must not have
 * happened. What fails because a host was lost may have happened or not: at a rank that was lost nobody can ask any
 * more; a rank that was lost keeps it as unsure, for its second life to look at.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/soak/soak.h"

#define BLOCK_MIN 65536u

static uint64_t draw(struct soak_rank *r, uint64_t below)
{
    return emu_random_next(&r->random) % below;
}

static uint8_t byte_of(uint64_t number, uint32_t at)
{
    return (uint8_t)((at * 2654435761u + (uint32_t)number * 40503u) >> 13);
}

static uint64_t lane_addr(const struct soak_rank *r, unsigned target)
{
    return r->board->ranks[target].region_addr + r->rank * (uint64_t)LANE_BYTES;
}

static uint64_t common_addr(const struct soak_rank *r, unsigned target, uint32_t word)
{
    return r->board->ranks[target].region_addr + SOAK_RANKS * (uint64_t)LANE_BYTES + word * 8;
}

static bool overlaps(uint32_t a, uint32_t a_len, uint32_t b, uint32_t b_len)
{
    return a < b + b_len && b < a + a_len;
}

static bool touches_data(enum soak_kind kind)
{
    return kind <= SOAK_BLOCK_GET || kind == SOAK_CHAIN;
}

/* Does somebody under way use what `op` wants? */
static bool is_taken(const struct soak_rank *r, const struct soak_op *op)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        const struct soak_op *other = &r->ops[i];

        if (!other->in_use || other == op || other->target != op->target)
            continue;
        if (op->kind == SOAK_AMO && other->kind == SOAK_AMO && other->word == op->word)
            return true;
        if (op->kind == SOAK_FLAGGED_PUT && other->kind == SOAK_FLAGGED_PUT)
            return true;
        if (touches_data(op->kind) && touches_data(other->kind) &&
            (overlaps(op->offset, op->len_bytes, other->offset, other->len_bytes) ||
             (op->kind == SOAK_CHAIN && overlaps(op->more_offset, op->len_bytes, other->offset, other->len_bytes)) ||
             (other->kind == SOAK_CHAIN && overlaps(op->offset, op->len_bytes, other->more_offset, other->len_bytes)) ||
             (op->kind == SOAK_CHAIN && other->kind == SOAK_CHAIN &&
              overlaps(op->more_offset, op->len_bytes, other->more_offset, other->len_bytes))))
            return true;
    }
    return false;
}

static uint32_t draw_length(struct soak_rank *r, enum soak_kind kind)
{
    static const uint32_t most[] = { 8, 64, 256, 4096, 32768 };
    uint32_t chosen = most[draw(r, 5)];

    if (kind == SOAK_BLOCK_PUT || kind == SOAK_BLOCK_GET)
        chosen = draw(r, 16) == 0 ? DATA_BYTES / 2 : BLOCK_MIN;
    return (uint32_t)draw(r, chosen) + 1;
}

static void choose(struct soak_rank *r, struct soak_op *op)
{
    op->kind = (enum soak_kind)draw(r, SOAK_KINDS);
    op->target = (unsigned)draw(r, SOAK_RANKS);
    op->number = emu_random_next(&r->random);
    op->word = (uint32_t)draw(r, op->kind == SOAK_COMMON_ADD ? COMMON_WORDS : WORDS);
    op->len_bytes = draw_length(r, op->kind);
    op->offset = (uint32_t)draw(r, DATA_BYTES - op->len_bytes + 1);
    op->more_offset = (uint32_t)draw(r, DATA_BYTES - op->len_bytes + 1);
    if (op->kind == SOAK_GET || op->kind == SOAK_FLAGGED_GET || op->kind == SOAK_BLOCK_GET) {
        op->len_bytes = (op->len_bytes + 3) & ~3u;
        op->offset &= ~3u;
        if (op->offset + op->len_bytes > DATA_BYTES)
            op->offset = DATA_BYTES - op->len_bytes;
    }
    /* Of a chain several elements can fail, but only one failure is told. */
    if (op->kind == SOAK_CHAIN &&
        (r->allows_errors || overlaps(op->offset, op->len_bytes, op->more_offset, op->len_bytes)))
        op->kind = SOAK_PUT;
}

static void fill(struct soak_op *op)
{
    for (uint32_t i = 0; i < op->len_bytes; i++)
        op->buffer[i] = byte_of(op->number, i);
}

static void describe_atomic(struct soak_rank *r, struct soak_op *op)
{
    gni_post_descriptor_t *d = &op->descr;

    d->type = GNI_POST_AMO;
    d->length = 8;
    if (op->kind == SOAK_COMMON_ADD) {
        d->amo_cmd = GNI_FMA_ATOMIC_ADD;
        d->first_operand = op->number & 0xffff;
        d->remote_addr = common_addr(r, op->target, op->word);
    } else {
        d->amo_cmd = draw(r, 2) ? GNI_FMA_ATOMIC_FADD : GNI_FMA_ATOMIC2_FSWAP;
        d->first_operand = op->number;
        d->remote_addr = lane_addr(r, op->target) + DATA_BYTES + op->word * 8;
    }
}

static void describe_chain(const struct soak_rank *r, struct soak_op *op)
{
    op->more = (gni_ct_put_post_descriptor_t){
        .ep_hndl = r->eps[op->target],
        .length = op->len_bytes,
        .remote_addr = lane_addr(r, op->target) + op->more_offset,
        .remote_mem_hndl = op->descr.remote_mem_hndl,
        .local_addr = (uint64_t)(uintptr_t)op->buffer,
    };
    op->descr.next_descr = &op->more;
    op->descr.cq_mode &= (uint16_t)~GNI_CQMODE_REMOTE_EVENT;
}

static void describe(struct soak_rank *r, struct soak_op *op)
{
    const struct soak_told *peer = &r->board->ranks[op->target];
    gni_post_descriptor_t *d = &op->descr;

    *d = (gni_post_descriptor_t){
        .type = GNI_POST_FMA_PUT,
        .cq_mode = (draw(r, 2) ? GNI_CQMODE_GLOBAL_EVENT : GNI_CQMODE_LOCAL_EVENT) |
                   (draw(r, 2) ? GNI_CQMODE_REMOTE_EVENT : 0),
        .dlvr_mode = draw(r, 4) == 0 ? GNI_DLVMODE_IN_ORDER : GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)op->buffer,
        .local_mem_hndl = r->buffers_hndl,
        .remote_addr = lane_addr(r, op->target) + op->offset,
        .remote_mem_hndl = peer->region_hndl,
        .length = op->len_bytes,
    };
    switch (op->kind) {
    case SOAK_FLAGGED_PUT:
        d->type = GNI_POST_FMA_PUT_W_SYNCFLAG;
        d->sync_flag_addr = lane_addr(r, op->target) + DATA_BYTES + WORDS * 8;
        d->sync_flag_value = op->number;
        break;
    case SOAK_BLOCK_PUT:
        d->type = GNI_POST_RDMA_PUT;
        break;
    case SOAK_GET:
        d->type = GNI_POST_FMA_GET;
        break;
    case SOAK_FLAGGED_GET:
        d->type = GNI_POST_FMA_GET_W_FLAG;
        break;
    case SOAK_BLOCK_GET:
        d->type = GNI_POST_RDMA_GET;
        break;
    case SOAK_AMO:
    case SOAK_COMMON_ADD:
        describe_atomic(r, op);
        break;
    case SOAK_QUEUE_WRITE:
        d->type = GNI_POST_CQWRITE;
        d->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
        d->cqwrite_value = (uint64_t)r->rank << 32 | (uint32_t)op->number;
        break;
    case SOAK_CHAIN:
        describe_chain(r, op);
        break;
    default:
        break;
    }
}

static gni_return_t start(struct soak_rank *r, struct soak_op *op)
{
    gni_ep_handle_t ep = r->eps[op->target];

    switch (op->kind) {
    case SOAK_BLOCK_PUT:
    case SOAK_BLOCK_GET:
        return GNI_PostRdma(ep, &op->descr);
    case SOAK_QUEUE_WRITE:
        return GNI_PostCqWrite(ep, &op->descr);
    case SOAK_CHAIN:
        return GNI_CtPostFma(ep, &op->descr);
    default:
        return GNI_PostFma(ep, &op->descr);
    }
}

static void give_back(struct soak_op *op)
{
    uint8_t *buffer = op->buffer;

    memset(op, 0, sizeof(*op));
    op->buffer = buffer;
}

void soak_post(struct soak_rank *r)
{
    struct soak_op *op = NULL;
    gni_return_t rc;

    for (unsigned i = 0; i < OPS_MAX && !op; i++) {
        if (!r->ops[i].in_use)
            op = &r->ops[i];
    }
    if (!op)
        return;
    choose(r, op);
    if (r->is_gone[op->target] || is_taken(r, op))
        return;
    if (touches_data(op->kind) && op->kind != SOAK_GET && op->kind != SOAK_FLAGGED_GET && op->kind != SOAK_BLOCK_GET)
        fill(op);
    else
        memset(op->buffer, 0xee, op->len_bytes + 4);
    describe(r, op);
    rc = start(r, op);
    if (rc == GNI_RC_SUCCESS)
        op->in_use = true;
    else if (rc == GNI_RC_ERROR_RESOURCE)
        give_back(op); /* no room in the source queue: the program tries again later */
    else if (soak_may_fail(r, op->target)) {
        soak_note_loss(r, op->target);
        give_back(op);
    } else
        soak_must(r, rc, "post");
}

bool soak_posts_under_way(const struct soak_rank *r)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        if (r->ops[i].in_use)
            return true;
    }
    return false;
}

bool soak_posts_to(const struct soak_rank *r, unsigned target)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        if (r->ops[i].in_use && r->ops[i].target == target)
            return true;
    }
    return false;
}

/* ---- completions ---- */

static void check_got(struct soak_rank *r, const struct soak_op *op)
{
    const uint8_t *expected = r->shadows[op->target].data + op->offset;
    uint32_t flag;

    if (memcmp(op->buffer, expected, op->len_bytes) != 0) {
        uint32_t at = 0;

        while (op->buffer[at] == expected[at])
            at++;
        soak_mismatch(r, "get of %u bytes at %u from rank %u: byte %u is %02x instead of %02x", op->len_bytes,
                      op->offset, op->target, at, op->buffer[at], expected[at]);
    }
    memcpy(&flag, op->buffer + op->len_bytes, 4);
    if (op->kind == SOAK_FLAGGED_GET && flag == 0xeeeeeeee)
        soak_mismatch(r, "a flagged get of rank %u ended without its flag", op->target);
    if (op->kind != SOAK_FLAGGED_GET && flag != 0xeeeeeeee)
        soak_mismatch(r, "a get of %u bytes from rank %u wrote beyond its end", op->len_bytes, op->target);
}

static void check_amo(struct soak_rank *r, const struct soak_op *op)
{
    uint64_t *word = &r->shadows[op->target].words[op->word];
    uint64_t old;

    memcpy(&old, op->buffer, 8);
    if (old != *word)
        soak_mismatch(r, "word %u of rank %u was %llx instead of %llx", op->word, op->target, (unsigned long long)old,
                      (unsigned long long)*word);
    *word = op->descr.amo_cmd == GNI_FMA_ATOMIC_FADD ? *word + op->number : op->number;
}

static void put_into_shadow(struct soak_rank *r, const struct soak_op *op)
{
    struct soak_shadow *shadow = &r->shadows[op->target];

    memcpy(shadow->data + op->offset, op->buffer, op->len_bytes);
    if (op->kind == SOAK_CHAIN)
        memcpy(shadow->data + op->more_offset, op->buffer, op->len_bytes);
    if (op->kind == SOAK_FLAGGED_PUT)
        shadow->flag = op->number;
}

static void settle(struct soak_rank *r, const struct soak_op *op)
{
    struct soak_told *told = r->told;

    switch (op->kind) {
    case SOAK_GET:
    case SOAK_FLAGGED_GET:
    case SOAK_BLOCK_GET:
        check_got(r, op);
        break;
    case SOAK_AMO:
        check_amo(r, op);
        break;
    case SOAK_COMMON_ADD:
        atomic_fetch_add(&told->added_to[op->target][op->word], op->descr.first_operand);
        break;
    case SOAK_QUEUE_WRITE:
        atomic_fetch_add(&told->written_to[op->target], 1);
        atomic_fetch_add(&told->written_sum_to[op->target], (uint32_t)op->number);
        break;
    default:
        put_into_shadow(r, op);
    }
    if (op->descr.cq_mode & GNI_CQMODE_REMOTE_EVENT)
        atomic_fetch_add(&told->events_to[op->target], 1);
    atomic_fetch_add_explicit(&told->n_ops, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&told->n_bytes, op->len_bytes, memory_order_relaxed);
}

/* Nobody knows what a failed put has left: again, until it is what the shadow will say. */
static bool post_again(struct soak_rank *r, struct soak_op *op)
{
    gni_return_t rc;

    if (!touches_data(op->kind) || op->kind == SOAK_GET || op->kind == SOAK_FLAGGED_GET || op->kind == SOAK_BLOCK_GET)
        return false;
    do {
        rc = start(r, op);
    } while (rc == GNI_RC_ERROR_RESOURCE);
    soak_must(r, rc, "post again");
    return true;
}

/* Failed because a host was lost. */
static void keep_unsure(struct soak_rank *r, const struct soak_op *op)
{
    struct soak_told *told = r->told;

    soak_note_loss(r, op->target);
    if (!r->is_cut_off || r->board->host_of[op->target] == r->board->host_of[r->rank])
        return;
    if (op->descr.cq_mode & GNI_CQMODE_REMOTE_EVENT)
        atomic_fetch_add(&told->maybe_events_to[op->target], 1);
    if (op->kind == SOAK_COMMON_ADD)
        atomic_fetch_add(&told->maybe_added_to[op->target][op->word], op->descr.first_operand);
    if (op->kind == SOAK_QUEUE_WRITE) {
        atomic_fetch_add(&told->maybe_written_to[op->target], 1);
        atomic_fetch_add(&told->maybe_written_sum_to[op->target], (uint32_t)op->number);
    }
    r->unsure[r->n_unsure++] = *op;
}

void soak_complete(struct soak_rank *r, gni_cq_entry_t entry, gni_return_t rc)
{
    gni_post_descriptor_t *descr = NULL;
    gni_return_t done = GNI_GetCompleted(r->src_cq, entry, &descr);
    struct soak_op *op = (struct soak_op *)descr;

    if (!op && rc == GNI_RC_TRANSACTION_ERROR && soak_may_fail(r, r->rank)) {
        r->is_cut_off = true;
        return;
    }
    if (!op || op < r->ops || op >= r->ops + OPS_MAX || !op->in_use) {
        soak_mismatch(r, "a completion of nothing: entry %llx, code %d, %d", (unsigned long long)entry, rc, done);
        return;
    }
    if (rc == GNI_RC_SUCCESS && done == GNI_RC_SUCCESS) {
        settle(r, op);
        give_back(op);
        return;
    }
    if (soak_may_fail(r, op->target)) {
        keep_unsure(r, op);
        give_back(op);
        return;
    }
    atomic_fetch_add(&r->told->errors, 1);
    if (!r->allows_errors)
        soak_mismatch(r, "a post of kind %d to rank %u failed: %d, %d, status %u", op->kind, op->target, rc, done,
                      (unsigned)GNI_CQ_GET_STATUS(entry));
    if (!r->allows_errors || !post_again(r, op))
        give_back(op);
}

/* ---- the end ---- */

static void get_lane(struct soak_rank *r, unsigned target, struct soak_op *op)
{
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry;
    gni_return_t rc;

    op->descr = (gni_post_descriptor_t){
        .type = GNI_POST_RDMA_GET,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)op->buffer,
        .local_mem_hndl = r->buffers_hndl,
        .remote_addr = lane_addr(r, target),
        .remote_mem_hndl = r->board->ranks[target].region_hndl,
        .length = LANE_BYTES,
    };
    do {
        soak_must(r, GNI_PostRdma(r->eps[target], &op->descr), "final get");
        while ((rc = GNI_CqGetEvent(r->src_cq, &entry)) == GNI_RC_NOT_DONE)
            ;
        if (rc != GNI_RC_SUCCESS)
            atomic_fetch_add(&r->told->errors, 1);
        if (GNI_GetCompleted(r->src_cq, entry, &done) != rc || done != &op->descr)
            soak_mismatch(r, "the final get of rank %u has another completion", target);
    } while (rc != GNI_RC_SUCCESS && r->allows_errors);
    if (rc != GNI_RC_SUCCESS)
        soak_mismatch(r, "the final get of rank %u: %d", target, rc);
}

static bool wrote(const struct soak_op *op, uint32_t at, uint8_t byte)
{
    bool is_put =
        touches_data(op->kind) && op->kind != SOAK_GET && op->kind != SOAK_FLAGGED_GET && op->kind != SOAK_BLOCK_GET;

    if (!is_put)
        return false;
    if (op->kind == SOAK_CHAIN && overlaps(op->more_offset, op->len_bytes, at, 1) &&
        byte == byte_of(op->number, at - op->more_offset))
        return true;
    return overlaps(op->offset, op->len_bytes, at, 1) && byte == byte_of(op->number, at - op->offset);
}

/* Takes what is there for right where an unsure post may have written it. */
static void settle_unsure(struct soak_rank *r, unsigned target, const uint8_t *lane)
{
    struct soak_shadow *shadow = &r->shadows[target];

    for (unsigned i = 0; i < r->n_unsure; i++) {
        const struct soak_op *op = &r->unsure[i];
        uint64_t *word = &shadow->words[op->word];
        uint64_t changed = op->descr.amo_cmd == GNI_FMA_ATOMIC_FADD ? *word + op->number : op->number;
        uint64_t found;

        if (op->target != target)
            continue;
        for (uint32_t at = 0; at < DATA_BYTES; at++) {
            if (wrote(op, at, lane[at]))
                shadow->data[at] = lane[at];
        }
        memcpy(&found, lane + DATA_BYTES + op->word * 8, 8);
        if (op->kind == SOAK_AMO && found == changed)
            *word = changed;
        memcpy(&found, lane + DATA_BYTES + WORDS * 8, 8);
        if (op->kind == SOAK_FLAGGED_PUT && found == op->number)
            shadow->flag = found;
    }
}

void soak_check_lanes(struct soak_rank *r)
{
    struct soak_op *op = &r->ops[0];
    uint64_t flag;

    for (unsigned target = 0; target < SOAK_RANKS; target++) {
        const struct soak_shadow *shadow = &r->shadows[target];

        if (r->is_gone[target])
            continue;
        get_lane(r, target, op);
        settle_unsure(r, target, op->buffer);
        memcpy(&flag, op->buffer + DATA_BYTES + WORDS * 8, 8);
        if (memcmp(op->buffer, shadow->data, DATA_BYTES) != 0)
            soak_mismatch(r, "the lane at rank %u is not what was put there", target);
        if (memcmp(op->buffer + DATA_BYTES, shadow->words, sizeof(shadow->words)) != 0)
            soak_mismatch(r, "the words at rank %u are not what was computed there", target);
        if (flag != shadow->flag)
            soak_mismatch(r, "the flag at rank %u is not the last one", target);
    }
    r->n_unsure = 0;
}
