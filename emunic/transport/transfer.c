/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions, and block transfers between them.
 *
 * A transfer is cut in slices; a peer has a table of slices under way, and its transfers take turns. A slice is one
 * operation of the carrier or, where one side has no remote memory access, one record:
 *
 *   initiator                                 target
 *   PUT(id, key, offset, data)   ------>      checks region, access, bounds; copies
 *                                <------      DONE(id, 0 or errno)
 *   GET(id, key, offset, length) ------>      checks
 *                                <------      GOT(id, data) or DONE(id, errno)
 *
 * A slice of the carrier has 512 KiB, and two are under way: what a message may have to wait for, 0.1 ms at 100 Gbit/s.
 * More under way fills the sockets of tcp, which then moves 2 GB/s over a veth pair instead of 5
 * (tests/bench/hosts_pair.c); smaller ones wait longer for each other (transport_pair.c).
 *
 * A slice's id is its place in the table and a number that does not come again, so an answer to none of ours is
 * noticed. The target keeps what it has to answer in a table as long as the initiator's; who asks for more breaks the
 * protocol. Slices go into packets only while half of the peer's packets are free, so messages find room beside them.
 *
 * Slices that come back because their connection broke begin again when the session goes on over another: to write or
 * read the same bytes twice does no harm. What they wrote may still arrive over the old connection, at any time; so
 * whoever gave away memory to be written has to know (peer_moved()).
 *
 * A transfer that fails issues no more slices, and ends when those under way have ended. One that is done hands over
 * its notice as a message first: the data are there, so whatever is sent now comes later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/transport/inner.h"

#define BACKGROUND_ROOM (EMU_TX_PACKETS / 2)
#define LOSSES_MAX      16u /* of a transfer: then it is what breaks its connections */

/* ---- regions ---- */

static struct emu_transport_region **bucket_of(struct emu_transport *t, uint64_t key)
{
    return &t->regions[(key * 0x9e3779b97f4a7c15ull) >> 56];
}

static struct emu_transport_region *find_region(struct emu_transport *t, uint64_t key)
{
    struct emu_transport_region *region = *bucket_of(t, key);

    while (region && region->memory.key != key)
        region = region->next;
    return region;
}

int emu_region_create(struct emu_transport *t, void *addr, uint64_t length_bytes, uint32_t access,
                      struct emu_transport_region **region_out)
{
    struct emu_transport_region *region;
    struct emu_transport_region **bucket;
    uint64_t key = 0;
    int r;

    if (!addr || length_bytes == 0 || (uintptr_t)addr + length_bytes < (uintptr_t)addr ||
        (access & ~(EMU_TRANSPORT_READ | EMU_TRANSPORT_WRITE)))
        return -EINVAL;
    region = calloc(1, sizeof(*region));
    if (!region)
        return -ENOMEM;
    /* Without remote memory access the carrier is to hand out no key that reaches the memory past our checks. */
    do {
        emu_crypt_random(&key, sizeof(key));
        r = t->carrier->ops->map(t->carrier, addr, length_bytes, t->uses_rma ? access : 0, key, &region->memory);
        if (r == 0 && !(t->uses_rma && access))
            region->memory.key = key;
    } while (r == -EEXIST);
    if (r < 0) {
        free(region);
        return r;
    }
    region->t = t;
    region->addr = addr;
    region->length_bytes = length_bytes;
    region->access = access;
    bucket = bucket_of(t, region->memory.key);
    region->next = *bucket;
    *bucket = region;
    *region_out = region;
    return 0;
}

int emu_region_destroy(struct emu_transport_region *region)
{
    struct emu_transport_region **at;

    if (!region)
        return 0;
    if (region->n_users > 0)
        return -EBUSY;
    at = bucket_of(region->t, region->memory.key);
    while (*at != region)
        at = &(*at)->next;
    *at = region->next;
    region->t->carrier->ops->unmap(region->t->carrier, &region->memory);
    free(region);
    return 0;
}

void emu_regions_free(struct emu_transport *t)
{
    for (uint32_t i = 0; i < EMU_REGION_BUCKETS; i++) {
        while (t->regions[i]) {
            t->regions[i]->n_users = 0;
            emu_region_destroy(t->regions[i]);
        }
    }
}

void emu_region_remote(const struct emu_transport_region *region, struct emu_transport_remote *remote_out)
{
    *remote_out = (struct emu_transport_remote){ .key = region->memory.key,
                                                 .base = region->memory.base,
                                                 .length_bytes = region->length_bytes };
}

/* 0 or a positive errno, as an answer has it. */
static int find_piece(struct emu_transport *t, const struct emu_wire_piece *piece, uint32_t access, uint8_t **at_out)
{
    struct emu_transport_region *region = find_region(t, piece->key);

    if (!region)
        return ENXIO;
    if (!(region->access & access))
        return EACCES;
    if (piece->offset > region->length_bytes || piece->length > region->length_bytes - piece->offset)
        return ERANGE;
    *at_out = region->addr + piece->offset;
    return 0;
}

/* ---- beginning ---- */

static int begin(struct emu_transport *t, uint32_t host, const struct emu_transport_move *move, const void *notice,
                 uint32_t notice_bytes, bool is_put)
{
    struct emu_peer *p = host < t->n_hosts ? t->peers[host] : NULL;
    const struct emu_transport_remote *remote = move->remote;
    struct emu_transport_region *region = move->region;
    struct emu_transfer *transfer = t->free_transfers;
    uint8_t *copy = NULL;

    if (!region || region->t != t || move->length_bytes == 0 || notice_bytes > EMU_WIRE_MESSAGE_MAX)
        return -EINVAL;
    if (move->offset > region->length_bytes || move->length_bytes > region->length_bytes - move->offset ||
        move->remote_offset > remote->length_bytes || move->length_bytes > remote->length_bytes - move->remote_offset)
        return -ERANGE;
    if (!p || p->state != EMU_PEER_UP)
        return -ENOTCONN;
    if (!transfer) {
        p->wants_room = true;
        return EMU_TRANSPORT_FULL;
    }
    if (notice && notice_bytes > 0) {
        copy = malloc(notice_bytes);
        if (!copy)
            return -ENOMEM;
        memcpy(copy, notice, notice_bytes);
    }
    t->free_transfers = transfer->next;
    *transfer = (struct emu_transfer){ .region = region,
                                       .local = region->addr + move->offset,
                                       .remote = move->remote_offset,
                                       .remote_base = remote->base,
                                       .key = remote->key,
                                       .length_bytes = move->length_bytes,
                                       .cookie = move->cookie,
                                       .notice = copy,
                                       .notice_bytes = notice_bytes,
                                       .is_put = is_put };
    region->n_users++;
    if (p->transfers) {
        transfer->next = p->transfers->next;
        p->transfers->next = transfer;
    } else {
        transfer->next = transfer;
    }
    p->transfers = transfer;
    p->n_transfers++;
    emu_peer_list(p);
    return 0;
}

int emu_transfer_put(struct emu_transport *t, uint32_t host, const struct emu_transport_move *move, const void *notice,
                     uint32_t notice_bytes)
{
    return begin(t, host, move, notice, notice ? notice_bytes : 0, true);
}

int emu_transfer_get(struct emu_transport *t, uint32_t host, const struct emu_transport_move *move)
{
    return begin(t, host, move, NULL, 0, false);
}

/* ---- slices ---- */

static bool is_rma(const struct emu_peer *p)
{
    return p->t->uses_rma && (p->theirs.features & EMU_WIRE_HAS_RMA);
}

static struct emu_slice *free_slice(struct emu_peer *p)
{
    for (uint32_t i = 0; i < EMU_SLICES; i++) {
        if (!p->slices[i].is_busy) {
            p->slices[i].id = ++p->slice_turn * EMU_SLICES + i;
            return &p->slices[i];
        }
    }
    return NULL;
}

/* 0, or what the carrier says. */
static int start_rma(struct emu_peer *p, struct emu_slice *slice)
{
    const struct emu_transfer *transfer = slice->transfer;
    struct emu_carrier *c = p->t->carrier;
    struct emu_carrier_move move = { .local = slice->local,
                                     .desc = transfer->region->memory.desc,
                                     .length_bytes = slice->length_bytes,
                                     .remote = slice->remote,
                                     .key = transfer->key };
    int r;

    if (transfer->is_put)
        r = c->ops->write(c, p->addr, &slice->op, &move);
    else
        r = c->ops->read(c, p->addr, &slice->op, &move);
    if (r == -EAGAIN) {
        p->must_retry = true;
        emu_peer_list(p);
    }
    if (r < 0)
        return r;
    slice->is_lost = false;
    slice->path = p->path;
    p->n_rma++;
    return 0;
}

static bool issue_rma(struct emu_peer *p, struct emu_transfer *transfer, struct emu_slice *slice)
{
    uint64_t limit = p->t->limits.piece_bytes < EMU_RMA_SLICE_BYTES ? p->t->limits.piece_bytes : EMU_RMA_SLICE_BYTES;
    uint64_t left = transfer->length_bytes - transfer->issued_bytes;
    int r;

    if (p->n_rma >= EMU_RMA_SLICES)
        return false;
    slice->transfer = transfer;
    slice->local = transfer->local + transfer->issued_bytes;
    slice->remote = transfer->remote_base + transfer->remote + transfer->issued_bytes;
    slice->length_bytes = left < limit ? left : limit;
    slice->is_rma = true;
    r = start_rma(p, slice);
    if (r == 0)
        return true;
    slice->transfer = NULL;
    if (r != -EAGAIN)
        transfer->result = r;
    return r != -EAGAIN;
}

static bool issue_record(struct emu_peer *p, struct emu_transfer *transfer, struct emu_slice *slice)
{
    uint64_t left = transfer->length_bytes - transfer->issued_bytes;
    uint32_t length = left < EMU_WIRE_PIECE_MAX ? (uint32_t)left : EMU_WIRE_PIECE_MAX;
    uint32_t body = EMU_WIRE_PIECE_BYTES + (transfer->is_put ? length : 0);
    struct emu_wire_piece piece = {
        .id = slice->id, .key = transfer->key, .offset = transfer->remote + transfer->issued_bytes, .length = length
    };
    uint8_t *at;

    if (p->n_free <= BACKGROUND_ROOM)
        return false;
    at = emu_peer_record_room(p, emu_wire_record_space(body));
    if (!at)
        return false;
    at = emu_wire_piece_put(emu_wire_record_put(at, transfer->is_put ? EMU_WIRE_PUT : EMU_WIRE_GET, body), &piece);
    if (transfer->is_put)
        memcpy(at, transfer->local + transfer->issued_bytes, length);
    slice->local = transfer->local + transfer->issued_bytes;
    slice->length_bytes = length;
    slice->is_rma = false;
    return true;
}

/* False: not now, for none of the peer's transfers. */
static bool issue(struct emu_peer *p, struct emu_transfer *transfer)
{
    struct emu_slice *slice = free_slice(p);

    if (!slice || !(is_rma(p) ? issue_rma(p, transfer, slice) : issue_record(p, transfer, slice)))
        return false;
    if (transfer->result < 0)
        return true;
    slice->is_busy = true;
    slice->transfer = transfer;
    transfer->issued_bytes += slice->length_bytes;
    transfer->n_slices++;
    p->n_slices++;
    return true;
}

static void end_slice(struct emu_slice *slice, int result)
{
    struct emu_transfer *transfer = slice->transfer;
    struct emu_peer *p = slice->peer;

    if (slice->is_rma && !slice->is_lost)
        p->n_rma--;
    slice->is_busy = false;
    slice->is_lost = false;
    slice->transfer = NULL;
    p->n_slices--;
    if (transfer) {
        transfer->n_slices--;
        if (result == 0) {
            transfer->done_bytes += slice->length_bytes;
            *(transfer->is_put ? &p->stats.put_bytes : &p->stats.get_bytes) += slice->length_bytes;
        } else if (transfer->result == 0) {
            transfer->result = result;
        }
    }
    emu_peer_list(p);
}

/* The connection broke, not the slice. */
static bool is_of_connection(int result)
{
    switch (-result) {
    case ECANCELED:
    case ECONNABORTED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

void emu_transfer_slice_done(struct emu_slice *slice, int result)
{
    struct emu_transfer *transfer = slice->transfer;
    struct emu_peer *p = slice->peer;

    if (!is_of_connection(result) || !transfer || p->state != EMU_PEER_UP || transfer->n_losses++ >= LOSSES_MAX) {
        end_slice(slice, result);
        return;
    }
    slice->is_lost = true;
    p->n_rma--;
    emu_peer_list(p);
    if (slice->path == p->path)
        emu_session_mend(p, strerror(-result));
}

/* False: not now. */
static bool begin_lost_slices_again(struct emu_peer *p)
{
    for (uint32_t i = 0; i < EMU_SLICES; i++) {
        struct emu_slice *slice = &p->slices[i];
        int r;

        if (!slice->is_lost)
            continue;
        if (p->n_rma >= EMU_RMA_SLICES)
            return false;
        r = slice->transfer->result < 0 ? -ECANCELED : start_rma(p, slice);
        if (r == -EAGAIN)
            return false;
        if (r < 0)
            end_slice(slice, r);
    }
    return true;
}

/* ---- ending ---- */

/* Takes the transfer after p->transfers out of the round, and tells its owner. */
static void finish_next(struct emu_peer *p, int result)
{
    struct emu_transport *t = p->t;
    struct emu_transfer *transfer = p->transfers->next;
    uint64_t cookie = transfer->cookie;

    if (transfer == p->transfers)
        p->transfers = NULL;
    else
        p->transfers->next = transfer->next;
    p->n_transfers--;
    transfer->region->n_users--;
    free(transfer->notice);
    transfer->notice = NULL;
    transfer->next = t->free_transfers;
    t->free_transfers = transfer;
    if (t->events->transfer_done)
        t->events->transfer_done(t->owner, cookie, result);
}

void emu_transfer_end_all(struct emu_peer *p, int cause)
{
    for (uint32_t i = 0; i < EMU_SLICES; i++) {
        struct emu_slice *slice = &p->slices[i];

        if (!slice->is_busy)
            continue;
        if (slice->is_rma && !slice->is_lost)
            slice->transfer = NULL; /* still with the carrier */
        else
            end_slice(slice, cause);
    }
    while (p->transfers)
        finish_next(p, cause);
}

/* The notice is on its way, or there is none. */
static bool gave_notice(struct emu_peer *p, struct emu_transfer *transfer)
{
    uint8_t *at;

    if (!transfer->notice)
        return true;
    at = emu_peer_record_room(p, emu_wire_record_space(transfer->notice_bytes));
    if (!at)
        return false;
    memcpy(emu_wire_record_put(at, EMU_WIRE_MESSAGE, transfer->notice_bytes), transfer->notice, transfer->notice_bytes);
    p->stats.messages_sent++;
    return true;
}

void emu_transfer_advance(struct emu_peer *p)
{
    uint32_t epoch = p->epoch;
    uint32_t idle = 0; /* transfers in a row for which nothing could be done */

    if (!begin_lost_slices_again(p))
        return;
    while (p->transfers && idle < p->n_transfers) {
        struct emu_transfer *transfer = p->transfers->next;
        bool is_over = transfer->result < 0 || transfer->done_bytes == transfer->length_bytes;

        if (is_over && transfer->n_slices == 0 && (transfer->result < 0 || gave_notice(p, transfer))) {
            finish_next(p, transfer->result);
            if (p->epoch != epoch)
                return;
            idle = 0;
            continue;
        }
        if (!is_over && transfer->issued_bytes < transfer->length_bytes && issue(p, transfer))
            idle = 0;
        else
            idle++;
        p->transfers = transfer;
    }
}

/* ---- at the target ---- */

void emu_transfer_answer(struct emu_peer *p)
{
    while (p->n_answers > 0) {
        struct emu_answer *a = &p->answers[p->first_answer];
        struct emu_wire_piece piece = a->piece;
        uint8_t *data = NULL;
        uint32_t body = EMU_WIRE_PIECE_BYTES;
        uint8_t *at;

        /* The region may have gone since. */
        if (a->is_get && a->result == 0)
            a->result = find_piece(p->t, &piece, EMU_TRANSPORT_READ, &data);
        if (data) {
            if (p->n_free <= BACKGROUND_ROOM)
                return;
            body += (uint32_t)piece.length;
        } else {
            piece.length = (uint64_t)a->result;
        }
        at = emu_peer_record_room(p, emu_wire_record_space(body));
        if (!at)
            return;
        at = emu_wire_piece_put(emu_wire_record_put(at, data ? EMU_WIRE_GOT : EMU_WIRE_DONE, body), &piece);
        if (data)
            memcpy(at, data, piece.length);
        p->first_answer = (p->first_answer + 1) % EMU_SLICES;
        p->n_answers--;
    }
}

static bool take_question(struct emu_peer *p, const struct emu_wire_record *record)
{
    struct emu_answer *a = &p->answers[(p->first_answer + p->n_answers) % EMU_SLICES];
    uint8_t *at;

    if (p->n_answers == EMU_SLICES)
        return false;
    *a = (struct emu_answer){ .piece = record->piece, .is_get = record->kind == EMU_WIRE_GET };
    if (!a->is_get) {
        a->result = find_piece(p->t, &record->piece, EMU_TRANSPORT_WRITE, &at);
        if (a->result == 0)
            memcpy(at, record->data, record->length);
    }
    p->n_answers++;
    return true;
}

static bool take_answer(struct emu_peer *p, const struct emu_wire_record *record)
{
    struct emu_slice *slice = &p->slices[record->piece.id % EMU_SLICES];
    struct emu_transfer *transfer = slice->transfer;

    if (!slice->is_busy || slice->is_rma || slice->id != record->piece.id || !transfer)
        return false;
    if (record->kind == EMU_WIRE_GOT) {
        if (transfer->is_put || record->length != slice->length_bytes)
            return false;
        memcpy(slice->local, record->data, record->length);
        end_slice(slice, 0);
        return true;
    }
    if (record->piece.length > 4095 || (record->piece.length == 0 && !transfer->is_put))
        return false;
    end_slice(slice, -(int)record->piece.length);
    return true;
}

bool emu_transfer_record(struct emu_peer *p, const struct emu_wire_record *record)
{
    if (record->kind == EMU_WIRE_PUT || record->kind == EMU_WIRE_GET)
        return take_question(p, record);
    return take_answer(p, record);
}
