/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a UCX transport move the right bytes? ucx_perftest measures but looks at no data, and it refuses transports
 * with asynchronous callbacks only (ugni_udt). This program, on UCX's transport layer (uct), does what is missing.
 *
 *   uct_check TRANSPORT DEVICE        for example: emunic run -n 2 --ppn 1 -- uct_check ugni_rdma ARIES:0
 *
 * Two ranks, wired up by PMI. What the transport can do is done, in this order:
 *
 *   am     ping-pong, then both ranks send at the same time; short and bcopy in turn, lengths up to the limit. Every
 *          message must arrive once with its length and content, in order where the transport promises it.
 *   put    short, bcopy, zcopy at all alignments into a target that is filled with another pattern: the target
 *          checks the written bytes and that the others are as before.
 *   get    bcopy, zcopy at all alignments of length, local and remote address; bytes around the result stay as
 *          they were.
 *   amo    each operation, 32 and 64 bit, posted and fetching, against the value a CPU would have computed.
 *
 * Rank 1 is the passive side of put, get and amo: it waits in a barrier. The last line names what was done:
 * "uct_check: ok ugni_rdma put_short ...". Exit status 0 ok, 1 wrong or failed, 2 wrong usage.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uct/api/uct.h>

#include <pmi.h>

#define AM_ID        3
#define N_PINGPONG   400u
#define N_CROSSING   400u
/* uct_iface_attr says 2048 for ugni_smsg, but 4 bytes of its mailbox slot are taken by UCX's own header. */
#define AM_MAX       2044u
#define RMA_AREA     (2u << 20)
#define GUARD        64u
#define WAIT_LIMIT_S 60

struct message {
    uint32_t seq;
    uint32_t len_bytes; /* of the whole message */
};

static struct {
    const char *transport;
    int rank;
    uct_component_h component;
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_md_h md;
    uct_md_attr_t md_attr;
    uct_iface_h iface;
    uct_iface_attr_t attr;
    uct_ep_h ep;
    char done[256]; /* names of the operations that were checked */
} ctx;

/* Arrivals, filled by the active message callback, which may run on a thread of UCX. */
static struct {
    atomic_uint n_arrived;
    atomic_int is_wrong;
    unsigned char seen[N_PINGPONG + N_CROSSING];
    uint32_t last_seq;
    int is_ordered;
} mail;

/* One-sided target and source: the same on both ranks. */
static struct {
    unsigned char *local;
    uct_mem_h memh;
    uint64_t peer; /* address of the peer's memory */
    uct_rkey_bundle_t rkey;
} rma;

/* ---- small things ---- */

static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "uct_check: rank %d: ", ctx.rank);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    PMI_Abort(1, "uct_check failed");
    exit(1);
}

static void check_status(ucs_status_t status, const char *what)
{
    if (status != UCS_OK)
        fail("%s: %s", what, ucs_status_string(status));
}

static void barrier(void)
{
    if (PMI_Barrier() != PMI_SUCCESS)
        fail("PMI_Barrier failed");
}

/* What the peer passed as in. */
static void swap_with_peer(const void *in, void *out, size_t len_bytes)
{
    size_t record_len = len_bytes + 1;
    unsigned char *mine = malloc(record_len), *both = malloc(2 * record_len);

    if (mine == NULL || both == NULL)
        fail("no memory");
    mine[0] = (unsigned char)ctx.rank;
    memcpy(mine + 1, in, len_bytes);
    if (PMI_Allgather(mine, both, (int)record_len) != PMI_SUCCESS)
        fail("PMI_Allgather failed");
    memcpy(out, (both[0] == ctx.rank ? both + record_len : both) + 1, len_bytes);
    free(both);
    free(mine);
}

static unsigned char pattern(size_t position, uint32_t seed)
{
    uint32_t x = (uint32_t)position * 2654435761u + seed * 40503u;

    return (unsigned char)(x >> 24 ^ x >> 11);
}

static void fill(unsigned char *at, size_t len_bytes, uint32_t seed)
{
    for (size_t i = 0; i < len_bytes; i++)
        at[i] = pattern(i, seed);
}

static void expect(const unsigned char *at, size_t len_bytes, size_t first, uint32_t seed, const char *what,
                   size_t size)
{
    for (size_t i = 0; i < len_bytes; i++) {
        if (at[i] != pattern(first + i, seed))
            fail("%s of %zu bytes: byte %zu of the area is wrong", what, size, first + i);
    }
}

static void note_done(const char *name)
{
    size_t used = strlen(ctx.done);

    snprintf(ctx.done + used, sizeof(ctx.done) - used, " %s", name);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One turn of a waiting loop. Yields: UCX's threads and the peer need the processor too. */
static void progress(double start_s, const char *what)
{
    uct_worker_progress(ctx.worker);
    sched_yield();
    if (now_s() - start_s > WAIT_LIMIT_S)
        fail("%s: nothing for %d s", what, WAIT_LIMIT_S);
}

static void flush(const char *what)
{
    double start_s = now_s();

    while (uct_ep_flush(ctx.ep, 0, NULL) != UCS_OK)
        progress(start_s, what);
}

/* ---- active messages ---- */

static size_t am_length(uint32_t seq, size_t max)
{
    /* All lengths get their turn; a message must hold its own description. */
    return sizeof(struct message) + (seq * 37) % (max - sizeof(struct message) + 1);
}

static ucs_status_t am_arrived(void *arg, void *data, size_t length, unsigned flags)
{
    const unsigned char *at = data;
    struct message message;

    (void)arg;
    (void)flags;
    if (length < sizeof(message)) {
        atomic_store(&mail.is_wrong, 1);
        return UCS_OK;
    }
    memcpy(&message, at, sizeof(message));
    if (message.seq >= sizeof(mail.seen) || mail.seen[message.seq]++ != 0 || message.len_bytes != length ||
        (mail.is_ordered && message.seq != mail.last_seq + 1)) {
        fprintf(stderr, "uct_check: rank %d: message %u of %u bytes came with %zu bytes after message %u\n", ctx.rank,
                message.seq, message.len_bytes, length, mail.last_seq);
        atomic_store(&mail.is_wrong, 1);
    }
    mail.last_seq = message.seq;
    for (size_t i = sizeof(message); i < length; i++) {
        if (at[i] != pattern(i, message.seq))
            atomic_store(&mail.is_wrong, 1);
    }
    atomic_fetch_add(&mail.n_arrived, 1);
    return UCS_OK;
}

struct outgoing {
    unsigned char bytes[AM_MAX];
    size_t len_bytes;
};

static size_t am_pack(void *to, void *arg)
{
    const struct outgoing *out = arg;

    memcpy(to, out->bytes, out->len_bytes);
    return out->len_bytes;
}

static void am_send(uint32_t seq)
{
    static struct outgoing out;
    double start_s = now_s();
    struct message message = { .seq = seq };
    /* The short form carries the first 8 bytes as its header; the limit counts the rest. */
    int is_short = seq % 2 == 0;
    size_t max = is_short ? ctx.attr.cap.am.max_short : ctx.attr.cap.am.max_bcopy;
    uint64_t header;

    max = max < AM_MAX ? max : AM_MAX - 4;
    out.len_bytes = am_length(seq, max);
    fill(out.bytes, out.len_bytes, seq);
    message.len_bytes = (uint32_t)out.len_bytes;
    memcpy(out.bytes, &message, sizeof(message));
    memcpy(&header, out.bytes, sizeof(header));

    for (;;) {
        ssize_t sent;

        if (is_short)
            sent = uct_ep_am_short(ctx.ep, AM_ID, header, out.bytes + sizeof(header),
                                   (unsigned)(out.len_bytes - sizeof(header)));
        else
            sent = uct_ep_am_bcopy(ctx.ep, AM_ID, am_pack, &out, 0);
        if (sent >= 0)
            return;
        if (sent != UCS_ERR_NO_RESOURCE)
            check_status((ucs_status_t)sent, "active message");
        progress(start_s, "sending a message");
    }
}

static void am_wait(uint32_t n_messages)
{
    double start_s = now_s();

    while (atomic_load(&mail.n_arrived) < n_messages && !atomic_load(&mail.is_wrong))
        progress(start_s, "waiting for a message");
    if (atomic_load(&mail.is_wrong))
        fail("a message was wrong");
}

static void check_am(void)
{
    double start_s;

    mail.last_seq = UINT32_MAX;
    /* One message at a time is in order everywhere, a stream only where callbacks run in progress calls. */
    mail.is_ordered = 1;
    check_status(uct_iface_set_am_handler(ctx.iface, AM_ID, am_arrived, NULL,
                                          ctx.attr.cap.flags & UCT_IFACE_FLAG_CB_SYNC ? 0 : UCT_CB_FLAG_ASYNC),
                 "setting the message handler");
    barrier();

    start_s = now_s();
    for (uint32_t seq = 0; seq < N_PINGPONG; seq++) {
        if (ctx.rank == 0)
            am_send(seq);
        am_wait(seq + 1);
        if (ctx.rank == 1)
            am_send(seq);
    }
    if (ctx.rank == 0)
        printf("%-10s message there and back, half: %.2f us\n", ctx.transport,
               (now_s() - start_s) * 1e6 / N_PINGPONG / 2);
    flush("flush of messages");
    barrier();

    mail.is_ordered = (ctx.attr.cap.flags & UCT_IFACE_FLAG_CB_SYNC) != 0;
    barrier();
    for (uint32_t seq = N_PINGPONG; seq < N_PINGPONG + N_CROSSING; seq++)
        am_send(seq);
    am_wait(N_PINGPONG + N_CROSSING);
    flush("flush of crossing messages");
    barrier();
    note_done("am_short am_bcopy");
}

/* ---- put and get ---- */

/* Sizes around the limits of the ways a transfer can take (2048 bytes for FMA in UCX), all residues modulo 4. */
static const size_t rma_sizes[] = {
    1,    2,    3,    4,    5,    7,    8,    9,    12,   15,   16,   31,    64,    65,    255,     1000,
    2039, 2040, 2041, 2047, 2048, 2049, 2051, 4095, 4096, 4097, 4099, 65535, 65536, 65539, 1048571, 1048576,
};
#define N_RMA_SIZES (sizeof(rma_sizes) / sizeof(rma_sizes[0]))

struct rma_source {
    const unsigned char *from;
    size_t len_bytes;
};

static size_t rma_pack(void *to, void *arg)
{
    const struct rma_source *source = arg;

    memcpy(to, source->from, source->len_bytes);
    return source->len_bytes;
}

static void rma_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static void rma_completed(uct_completion_t *self)
{
    if (self->status != UCS_OK)
        fail("transfer completed with %s", ucs_status_string(self->status));
}

enum rma_way { PUT_SHORT, PUT_BCOPY, PUT_ZCOPY, GET_BCOPY, GET_ZCOPY };

static const struct {
    const char *name;
    uint64_t flag;
} rma_ways[] = {
    [PUT_SHORT] = { "put_short", UCT_IFACE_FLAG_PUT_SHORT }, [PUT_BCOPY] = { "put_bcopy", UCT_IFACE_FLAG_PUT_BCOPY },
    [PUT_ZCOPY] = { "put_zcopy", UCT_IFACE_FLAG_PUT_ZCOPY }, [GET_BCOPY] = { "get_bcopy", UCT_IFACE_FLAG_GET_BCOPY },
    [GET_ZCOPY] = { "get_zcopy", UCT_IFACE_FLAG_GET_ZCOPY },
};

static size_t rma_limit(enum rma_way way)
{
    switch (way) {
    case PUT_SHORT:
        return ctx.attr.cap.put.max_short;
    case PUT_BCOPY:
        return ctx.attr.cap.put.max_bcopy;
    case PUT_ZCOPY:
        return ctx.attr.cap.put.max_zcopy;
    case GET_BCOPY:
        return ctx.attr.cap.get.max_bcopy;
    case GET_ZCOPY:
        return ctx.attr.cap.get.max_zcopy;
    }
    return 0;
}

/* One transfer between local[local_at] and peer[remote_at], complete on return. */
static void rma_transfer(enum rma_way way, size_t local_at, size_t remote_at, size_t size)
{
    unsigned char *local = rma.local + local_at;
    uint64_t remote = rma.peer + remote_at;
    uct_iov_t iov = { .buffer = local, .length = size, .memh = rma.memh, .count = 1 };
    struct rma_source source = { local, size };
    uct_completion_t completion = { .func = rma_completed, .count = 1, .status = UCS_OK };
    double start_s = now_s();
    ssize_t result;

    for (;;) {
        switch (way) {
        case PUT_SHORT:
            result = uct_ep_put_short(ctx.ep, local, (unsigned)size, remote, rma.rkey.rkey);
            break;
        case PUT_BCOPY:
            result = uct_ep_put_bcopy(ctx.ep, rma_pack, &source, remote, rma.rkey.rkey);
            break;
        case PUT_ZCOPY:
            result = uct_ep_put_zcopy(ctx.ep, &iov, 1, remote, rma.rkey.rkey, &completion);
            break;
        case GET_BCOPY:
            result = uct_ep_get_bcopy(ctx.ep, rma_unpack, local, size, remote, rma.rkey.rkey, &completion);
            break;
        default:
            result = uct_ep_get_zcopy(ctx.ep, &iov, 1, remote, rma.rkey.rkey, &completion);
            break;
        }
        if (result != UCS_ERR_NO_RESOURCE)
            break;
        progress(start_s, rma_ways[way].name);
    }
    if (result < 0)
        fail("%s of %zu bytes: %s", rma_ways[way].name, size, ucs_status_string((ucs_status_t)result));
    /* put_short has given the buffer back: what the library still needed of it must not be read any more. */
    if (way == PUT_SHORT)
        memset(local, 0xee, size);
    /* The short and packed put return 0 and a length: they have no completion. */
    if (way >= PUT_ZCOPY && result == UCS_INPROGRESS) {
        while (completion.count > 0)
            progress(start_s, rma_ways[way].name);
    }
    flush(rma_ways[way].name);
}

/*
 * Put: the source is a new pattern at the start of the area, the target was filled with an old one. The target
 * looks at everything. Rank 0 is the source, rank 1 the target.
 */
static void check_put(enum rma_way way)
{
    size_t limit = rma_limit(way);

    for (size_t i = 0; i < N_RMA_SIZES && rma_sizes[i] <= limit; i++) {
        size_t size = rma_sizes[i];
        /* 16 alignments of both ends for small sizes, some for large ones. */
        for (size_t shift = 0; shift<16; shift += size> 5000 ? 5 : 1) {
            size_t local_at = GUARD + shift / 4, remote_at = GUARD + shift % 4, area = size + 3 * GUARD;
            uint32_t seed = (uint32_t)(size * 16 + shift);

            if (ctx.rank == 1)
                fill(rma.local, area, seed);
            else
                fill(rma.local + local_at, size, seed + 7);
            barrier();
            if (ctx.rank == 0)
                rma_transfer(way, local_at, remote_at, size);
            barrier();
            if (ctx.rank == 1) {
                expect(rma.local, remote_at, 0, seed, rma_ways[way].name, size);
                expect(rma.local + remote_at, size, 0, seed + 7, rma_ways[way].name, size);
                expect(rma.local + remote_at + size, area - remote_at - size, remote_at + size, seed,
                       rma_ways[way].name, size);
            }
        }
    }
    note_done(rma_ways[way].name);
}

/*
 * UCX 1.13.1 crashes on its own when ugni_rdma rounds an unaligned GET of less than 2048 bytes up to 2048 or more:
 * it then splits it into 2048 bytes and a negative rest (uct_ugni_ep_get_composed).
 */
static int is_broken_in_ucx(enum rma_way way, size_t remote_at, size_t size)
{
    return way == GET_ZCOPY && size < 2048 && size + remote_at % 4 >= 2048;
}

/* Get: rank 1 provides one pattern for all; rank 0 fetches pieces of it into an area with another one. */
static void check_get(enum rma_way way)
{
    size_t limit = rma_limit(way);

    if (ctx.rank == 1)
        fill(rma.local, RMA_AREA, 99);
    barrier();
    for (size_t i = 0; i < N_RMA_SIZES && rma_sizes[i] <= limit && ctx.rank == 0; i++) {
        size_t size = rma_sizes[i];

        for (size_t shift = 0; shift<16; shift += size> 5000 ? 5 : 1) {
            size_t local_at = GUARD + shift / 4, remote_at = GUARD + shift % 4, area = size + 3 * GUARD;
            uint32_t seed = (uint32_t)(size * 16 + shift);

            if (is_broken_in_ucx(way, remote_at, size))
                continue;
            fill(rma.local, area, seed);
            rma_transfer(way, local_at, remote_at, size);
            expect(rma.local, local_at, 0, seed, rma_ways[way].name, size);
            expect(rma.local + local_at, size, remote_at, 99, rma_ways[way].name, size);
            expect(rma.local + local_at + size, area - local_at - size, local_at + size, seed, rma_ways[way].name,
                   size);
        }
    }
    barrier();
    note_done(rma_ways[way].name);
}

/* ---- atomics ---- */

static const char *const amo_names[] = {
    [UCT_ATOMIC_OP_ADD] = "add", [UCT_ATOMIC_OP_AND] = "and",   [UCT_ATOMIC_OP_OR] = "or",
    [UCT_ATOMIC_OP_XOR] = "xor", [UCT_ATOMIC_OP_SWAP] = "swap", [UCT_ATOMIC_OP_CSWAP] = "cswap",
};

static uint64_t amo_new_value(uct_atomic_op_t op, uint64_t old, uint64_t operand, uint64_t compare)
{
    switch (op) {
    case UCT_ATOMIC_OP_ADD:
        return old + operand;
    case UCT_ATOMIC_OP_AND:
        return old & operand;
    case UCT_ATOMIC_OP_OR:
        return old | operand;
    case UCT_ATOMIC_OP_XOR:
        return old ^ operand;
    case UCT_ATOMIC_OP_SWAP:
        return operand;
    default:
        return old == compare ? operand : old;
    }
}

/* Perform one operation on the peer's word at offset at; a fetching one returns the old value. */
static uint64_t amo(uct_atomic_op_t op, int is_fetching, int is_64, size_t at, uint64_t operand, uint64_t compare)
{
    uct_completion_t completion = { .func = rma_completed, .count = 1, .status = UCS_OK };
    uint64_t remote = rma.peer + at, result_64 = 0;
    uct_rkey_t rkey = rma.rkey.rkey;
    uint32_t result_32 = 0;
    double start_s = now_s();
    ucs_status_t status;

    for (;;) {
        if (op == UCT_ATOMIC_OP_CSWAP && is_64)
            status = uct_ep_atomic_cswap64(ctx.ep, compare, operand, remote, rkey, &result_64, &completion);
        else if (op == UCT_ATOMIC_OP_CSWAP)
            status = uct_ep_atomic_cswap32(ctx.ep, (uint32_t)compare, (uint32_t)operand, remote, rkey, &result_32,
                                           &completion);
        else if (is_fetching && is_64)
            status = uct_ep_atomic64_fetch(ctx.ep, op, operand, &result_64, remote, rkey, &completion);
        else if (is_fetching)
            status = uct_ep_atomic32_fetch(ctx.ep, op, (uint32_t)operand, &result_32, remote, rkey, &completion);
        else if (is_64)
            status = uct_ep_atomic64_post(ctx.ep, op, operand, remote, rkey);
        else
            status = uct_ep_atomic32_post(ctx.ep, op, (uint32_t)operand, remote, rkey);
        if (status != UCS_ERR_NO_RESOURCE)
            break;
        progress(start_s, "atomic operation");
    }
    if (status == UCS_INPROGRESS && is_fetching) {
        while (completion.count > 0)
            progress(start_s, "atomic operation");
    } else if (status != UCS_OK && status != UCS_INPROGRESS) {
        check_status(status, amo_names[op]);
    }
    flush("atomic operation");
    return is_64 ? result_64 : result_32;
}

/*
 * A series of each operation on a word of its own between two others that must not change. Rank 0 computes along;
 * at the end rank 1 is told what its memory has to look like.
 */
static void check_amo(int is_64)
{
    const uct_iface_attr_t *attr = &ctx.attr;
    uint64_t post_ops = is_64 ? attr->cap.atomic64.op_flags : attr->cap.atomic32.op_flags;
    uint64_t fetch_ops = is_64 ? attr->cap.atomic64.fop_flags : attr->cap.atomic32.fop_flags;
    uint64_t mask = is_64 ? UINT64_MAX : UINT32_MAX;
    size_t width = is_64 ? 8 : 4, at = 0;
    unsigned char expected[512], theirs[sizeof(expected)];
    char name[64];

    fill(rma.local, sizeof(expected), 5);
    fill(expected, sizeof(expected), 5);
    barrier();
    for (int is_fetching = 0; is_fetching < 2; is_fetching++) {
        for (uct_atomic_op_t op = UCT_ATOMIC_OP_ADD; op <= UCT_ATOMIC_OP_CSWAP; op++) {
            if (((is_fetching ? fetch_ops : post_ops) & UCS_BIT(op)) == 0)
                continue;
            at += 2 * width;
            for (uint64_t i = 0; ctx.rank == 0 && i < 20; i++) {
                uint64_t operand = (i * UINT64_C(0x123456789abcdef1) + 1) & mask, value = 0, old, compare;

                memcpy(&value, expected + at, width);
                old = value;
                compare = i % 3 == 0 ? old ^ 1 : old; /* some comparisons must fail */
                value = amo_new_value(op, old, operand, compare) & mask;
                memcpy(expected + at, &value, width);
                value = amo(op, is_fetching, is_64, at, operand, compare);
                if (is_fetching && value != old)
                    fail("%s of %zu bytes returned %#llx instead of %#llx", amo_names[op], width,
                         (unsigned long long)value, (unsigned long long)old);
            }
            snprintf(name, sizeof(name), "%s%s%d", is_fetching ? "f" : "", amo_names[op], is_64 ? 64 : 32);
            note_done(name);
        }
    }
    swap_with_peer(expected, theirs, sizeof(expected));
    if (ctx.rank == 1 && memcmp(rma.local, theirs, sizeof(theirs)) != 0)
        fail("memory after atomic operations of %zu bytes is not what it should be", width);
}

/* ---- set-up ---- */

/* Find the component that offers the transport on the device, and open its memory domain. */
static void open_md(const char *device)
{
    uct_component_h *components;
    unsigned n_components;

    check_status(uct_query_components(&components, &n_components), "uct_query_components");
    for (unsigned c = 0; c < n_components; c++) {
        uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT };
        uct_md_resource_desc_t resources[32];

        check_status(uct_component_query(components[c], &attr), "uct_component_query");
        if (attr.md_resource_count > 32)
            continue;
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = resources;
        check_status(uct_component_query(components[c], &attr), "uct_component_query");

        for (unsigned m = 0; m < attr.md_resource_count; m++) {
            uct_tl_resource_desc_t *tls;
            uct_md_config_t *config;
            unsigned n_tls, is_found = 0;
            ucs_status_t status;

            check_status(uct_md_config_read(components[c], NULL, NULL, &config), "uct_md_config_read");
            status = uct_md_open(components[c], resources[m].md_name, config, &ctx.md);
            uct_config_release(config);
            if (status != UCS_OK)
                continue;
            check_status(uct_md_query_tl_resources(ctx.md, &tls, &n_tls), "uct_md_query_tl_resources");
            for (unsigned t = 0; t < n_tls; t++)
                is_found |= strcmp(tls[t].tl_name, ctx.transport) == 0 && strcmp(tls[t].dev_name, device) == 0;
            uct_release_tl_resource_list(tls);
            if (is_found) {
                ctx.component = components[c];
                check_status(uct_md_query(ctx.md, &ctx.md_attr), "uct_md_query");
                uct_release_component_list(components);
                return;
            }
            uct_md_close(ctx.md);
        }
    }
    fail("no transport %s on device %s", ctx.transport, device);
}

static void open_iface(const char *device)
{
    uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                      UCT_IFACE_PARAM_FIELD_STATS_ROOT | UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                      UCT_IFACE_PARAM_FIELD_CPU_MASK,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name = ctx.transport,
        .mode.device.dev_name = device,
    };
    uct_iface_config_t *config;

    check_status(uct_md_iface_config_read(ctx.md, ctx.transport, NULL, NULL, &config), "uct_md_iface_config_read");
    check_status(uct_iface_open(ctx.md, ctx.worker, &params, config, &ctx.iface), "uct_iface_open");
    uct_config_release(config);
    uct_iface_progress_enable(ctx.iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    check_status(uct_iface_query(ctx.iface, &ctx.attr), "uct_iface_query");
}

static void connect_peer(void)
{
    struct address {
        unsigned char device[64], iface[64], ep[128];
    } mine, theirs;
    uct_ep_params_t params = { .field_mask = UCT_EP_PARAM_FIELD_IFACE, .iface = ctx.iface };
    int is_ep_to_ep = (ctx.attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) == 0;

    memset(&mine, 0, sizeof(mine));
    if (ctx.attr.device_addr_len > sizeof(mine.device) || ctx.attr.iface_addr_len > sizeof(mine.iface) ||
        ctx.attr.ep_addr_len > sizeof(mine.ep))
        fail("addresses of this transport are too long");
    check_status(uct_iface_get_device_address(ctx.iface, (uct_device_addr_t *)mine.device), "device address");
    if (is_ep_to_ep) {
        check_status(uct_ep_create(&params, &ctx.ep), "uct_ep_create");
        check_status(uct_ep_get_address(ctx.ep, (uct_ep_addr_t *)mine.ep), "endpoint address");
    } else {
        check_status(uct_iface_get_address(ctx.iface, (uct_iface_addr_t *)mine.iface), "interface address");
    }
    swap_with_peer(&mine, &theirs, sizeof(mine));
    if (is_ep_to_ep) {
        check_status(uct_ep_connect_to_ep(ctx.ep, (uct_device_addr_t *)theirs.device, (uct_ep_addr_t *)theirs.ep),
                     "uct_ep_connect_to_ep");
    } else {
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr = (uct_device_addr_t *)theirs.device;
        params.iface_addr = (uct_iface_addr_t *)theirs.iface;
        check_status(uct_ep_create(&params, &ctx.ep), "uct_ep_create");
    }
    barrier();
}

static void open_memory(void)
{
    unsigned char mine[256] = { 0 }, theirs[256];

    if (posix_memalign((void **)&rma.local, 4096, RMA_AREA) != 0)
        fail("no memory");
    memset(rma.local, 0, RMA_AREA);
    check_status(uct_md_mem_reg(ctx.md, rma.local, RMA_AREA, UCT_MD_MEM_ACCESS_ALL, &rma.memh), "uct_md_mem_reg");
    if (ctx.md_attr.rkey_packed_size + sizeof(uint64_t) > sizeof(mine))
        fail("remote keys of this transport are too long");
    memcpy(mine, &(uint64_t){ (uintptr_t)rma.local }, sizeof(uint64_t));
    check_status(uct_md_mkey_pack(ctx.md, rma.memh, mine + sizeof(uint64_t)), "uct_md_mkey_pack");
    swap_with_peer(mine, theirs, sizeof(mine));
    memcpy(&rma.peer, theirs, sizeof(rma.peer));
    check_status(uct_rkey_unpack(ctx.component, theirs + sizeof(uint64_t), &rma.rkey), "uct_rkey_unpack");
}

static void close_memory(void)
{
    check_status(uct_rkey_release(ctx.component, &rma.rkey), "uct_rkey_release");
    check_status(uct_md_mem_dereg(ctx.md, rma.memh), "uct_md_mem_dereg");
    free(rma.local);
}

int main(int argc, char **argv)
{
    const uint64_t rma_flags = UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                               UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY;
    int spawned, n_ranks;

    if (argc != 3) {
        fputs("usage: uct_check TRANSPORT DEVICE, on two ranks\n", stderr);
        return 2;
    }
    if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_size(&n_ranks) != PMI_SUCCESS ||
        PMI_Get_rank(&ctx.rank) != PMI_SUCCESS || n_ranks != 2) {
        fputs("uct_check: needs two ranks and PMI\n", stderr);
        return 2;
    }
    ctx.transport = argv[1];
    check_status(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &ctx.async), "ucs_async_context_create");
    check_status(uct_worker_create(ctx.async, UCS_THREAD_MODE_SINGLE, &ctx.worker), "uct_worker_create");
    open_md(argv[2]);
    open_iface(argv[2]);
    connect_peer();

    if (ctx.attr.cap.flags & UCT_IFACE_FLAG_AM_BCOPY)
        check_am();
    if (ctx.attr.cap.flags & rma_flags) {
        open_memory();
        for (enum rma_way way = PUT_SHORT; way <= GET_ZCOPY; way++) {
            if (ctx.attr.cap.flags & rma_ways[way].flag)
                (way <= PUT_ZCOPY ? check_put : check_get)(way);
        }
        check_amo(0);
        check_amo(1);
        barrier();
        close_memory();
    }

    barrier();
    uct_ep_destroy(ctx.ep);
    uct_iface_close(ctx.iface);
    uct_md_close(ctx.md);
    uct_worker_destroy(ctx.worker);
    ucs_async_context_destroy(ctx.async);
    if (ctx.rank == 0)
        printf("uct_check: ok %s%s\n", ctx.transport, ctx.done);
    PMI_Finalize();
    return 0;
}
