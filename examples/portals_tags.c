/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with tags, as an MPI library makes them of Portals (the scheme of the Portals reports' MPI example).
 *
 *   portals_tags [-n MESSAGES]
 *
 *   list "send":  posted receives, in the order of posting
 *                 mark                          receives are inserted before it
 *                 blocks                        take short messages that nobody has asked for yet
 *                 catcher                       takes long ones: nothing of their data, all of their envelope
 *   list "read":  one entry for each long send under way
 *
 * Match bits: 63 long, 47-32 rank of the sender, 31-0 tag. A short message is a plain put. A long one is put whole too,
 * asking for an acknowledgement, while its memory is open for reading on the list "read": if its receive is posted, the
 * data land and the acknowledgement ends the send; if not, the catcher keeps only the envelope and does not
 * acknowledge, and when the receive is posted the receiver gets the data, which ends the send too.
 *
 * A receive may be posted only while no message has come that it should take. So it is inserted switched off (threshold
 * 0), the messages that came are searched, and PtlMDUpdate() switches it on only if the queue of unexpected messages is
 * still empty; else it is all done again.
 *
 * Every rank sends MESSAGES messages (default 60) to every rank, itself included, short and long, with three tags. Of
 * every other batch the receives are posted before anything is sent. Receives of the last tag take any sender. Messages
 * of one sender and tag must come in order, whole.
 */
#include "examples/portals_common.h"

#include <unistd.h>

#define SEND_PT     32u
#define READ_PT     33u
#define LONG_BIT    (1ull << 63)
#define ANY_RANK    (-1)
#define SHORT_BYTES 4096u /* and below: short */
#define MOST_BYTES  60000u
#define BLOCK_BYTES 262144u
#define BLOCKS      3u
#define TAGS        3u
#define BATCH       4u /* of each pair and tag under way: the blocks have room for that */
#define EQ_ENTRIES  8192

/* A message that nobody has asked for yet, in the order of arrival. */
struct unexpected {
    struct unexpected *next;
    ptl_match_bits_t bits;
    ptl_process_id_t from;
    ptl_seq_t link;
    ptl_hdr_data_t read_bits; /* of a long one */
    uint64_t len_bytes;
    int is_whole; /* its END event has come */
    char *data;   /* of a short one; owned */
};

struct request {
    int is_done;
    int n_to_come; /* a long send: SEND_END, and ACK or GET_END */
    char *buffer;
    uint64_t len_bytes; /* of a receive, when it is done */
    ptl_match_bits_t bits;
};

static struct ex_job job;
static ptl_handle_eq_t unexpected_eq;
static ptl_handle_eq_t own_eq;
static ptl_handle_me_t mark;
static ptl_handle_me_t catcher;
static char *blocks[BLOCKS];
static struct unexpected *first;
static struct unexpected **behind_last = &first;
static uint64_t n_long_sends;
static uint64_t n_found, n_fetched;

static const ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };

static ptl_match_bits_t bits_of(int rank, uint32_t tag, int is_long)
{
    return (is_long ? LONG_BIT : 0) | (ptl_match_bits_t)rank << 32 | tag;
}

/* ---- unexpected messages ---- */

static void attach_block(unsigned n)
{
    ptl_md_t md = { .start = blocks[n],
                    .length = BLOCK_BYTES,
                    .threshold = PTL_MD_THRESH_INF,
                    .max_size = SHORT_BYTES,
                    .options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE | PTL_MD_EVENT_AUTO_UNLINK_ENABLE,
                    .user_ptr = (void *)(uintptr_t)n,
                    .eq_handle = unexpected_eq };
    ptl_handle_me_t me;
    ptl_handle_md_t handle;

    EX_PTL(PtlMEInsert(catcher, anybody, 0, ~LONG_BIT, PTL_UNLINK, PTL_INS_BEFORE, &me));
    EX_PTL(PtlMDAttach(me, md, PTL_UNLINK, &handle));
}

static void attach_catcher(void)
{
    ptl_md_t md = { .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE,
                    .eq_handle = unexpected_eq };
    ptl_handle_md_t handle;

    EX_PTL(PtlMEAttach(job.ni, SEND_PT, anybody, LONG_BIT, ~LONG_BIT, PTL_RETAIN, PTL_INS_AFTER, &catcher));
    EX_PTL(PtlMDAttach(catcher, md, PTL_RETAIN, &handle));
}

static void note_arrival(const ptl_event_t *event)
{
    struct unexpected *u = calloc(1, sizeof(*u));

    EX_EXPECT(u);
    u->bits = event->match_bits;
    u->from = event->initiator;
    u->link = event->link;
    u->read_bits = event->hdr_data;
    u->len_bytes = event->rlength;
    *behind_last = u;
    behind_last = &u->next;
}

static void note_end(const ptl_event_t *event)
{
    struct unexpected *u = first;

    while (u && (u->is_whole || u->link != event->link))
        u = u->next;
    EX_EXPECT(u && u->bits == event->match_bits);
    u->is_whole = 1;
    if (u->bits & LONG_BIT)
        return;
    u->data = malloc(u->len_bytes + 1);
    EX_EXPECT(u->data && event->mlength == u->len_bytes);
    memcpy(u->data, (const char *)event->md.start + event->offset, u->len_bytes);
}

static void take_unexpected(const ptl_event_t *event)
{
    EX_EXPECT(event->ni_fail_type == PTL_NI_OK);
    if (event->type == PTL_EVENT_PUT_START)
        note_arrival(event);
    else if (event->type == PTL_EVENT_PUT_END)
        note_end(event);
    else
        attach_block((unsigned)(uintptr_t)event->md.user_ptr);
}

static void look_for_unexpected(void)
{
    ptl_event_t event;
    int rc;

    while ((rc = PtlEQGet(unexpected_eq, &event)) == PTL_OK)
        take_unexpected(&event);
    EX_EXPECT(rc == PTL_EQ_EMPTY);
}

/* ---- progress ---- */

static void progress(void)
{
    struct request *r;
    ptl_event_t event;
    int rc;

    while ((rc = PtlEQGet(own_eq, &event)) == PTL_OK) {
        EX_EXPECT(event.ni_fail_type == PTL_NI_OK);
        r = event.md.user_ptr;
        if (event.type == PTL_EVENT_PUT_END || event.type == PTL_EVENT_REPLY_END) {
            EX_EXPECT(event.mlength == event.rlength);
            r->len_bytes = event.mlength;
            if (event.type == PTL_EVENT_PUT_END)
                r->bits = event.match_bits;
            r->is_done = 1;
        } else if (r->n_to_come > 0) { /* else it is the SEND_END of a get */
            r->is_done = --r->n_to_come == 0;
        }
    }
    EX_EXPECT(rc == PTL_EQ_EMPTY);
    look_for_unexpected();
}

static void wait_for(struct request *r)
{
    while (!r->is_done)
        progress();
}

/* ---- send ---- */

static void send_short(struct request *r, const void *data, uint64_t len_bytes, int to, uint32_t tag)
{
    ptl_md_t md = { .start = (void *)(uintptr_t)data,
                    .length = len_bytes,
                    .threshold = 1,
                    .options = PTL_MD_EVENT_START_DISABLE,
                    .user_ptr = r,
                    .eq_handle = own_eq };
    ptl_handle_md_t handle;

    r->n_to_come = 1;
    EX_PTL(PtlMDBind(job.ni, md, PTL_UNLINK, &handle));
    EX_PTL(PtlPut(handle, PTL_NOACK_REQ, job.ids[to], SEND_PT, 0, bits_of(job.rank, tag, 0), 0, 0));
}

static void send_long(struct request *r, const void *data, uint64_t len_bytes, int to, uint32_t tag)
{
    ptl_md_t md = { .start = (void *)(uintptr_t)data,
                    .length = len_bytes,
                    .threshold = 2,
                    .options = PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE,
                    .user_ptr = r,
                    .eq_handle = own_eq };
    ptl_match_bits_t read_bits = ++n_long_sends;
    ptl_handle_me_t me;
    ptl_handle_md_t handle;

    r->n_to_come = 2;
    EX_PTL(PtlMEAttach(job.ni, READ_PT, job.ids[to], read_bits, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
    EX_PTL(PtlMDAttach(me, md, PTL_UNLINK, &handle));
    EX_PTL(PtlPut(handle, PTL_ACK_REQ, job.ids[to], SEND_PT, 0, bits_of(job.rank, tag, 1), 0, read_bits));
}

static void start_send(struct request *r, const void *data, uint64_t len_bytes, int to, uint32_t tag)
{
    memset(r, 0, sizeof(*r));
    if (len_bytes <= SHORT_BYTES)
        send_short(r, data, len_bytes, to, tag);
    else
        send_long(r, data, len_bytes, to, tag);
}

/* ---- receive ---- */

/* The oldest one that fits is taken off the list. */
static struct unexpected *find_unexpected(int from, uint32_t tag)
{
    for (struct unexpected **at = &first; *at; at = &(*at)->next) {
        struct unexpected *u = *at;

        if ((uint32_t)u->bits != tag || (from != ANY_RANK && (int)(u->bits >> 32 & 0xffff) != from))
            continue;
        while (!u->is_whole)
            look_for_unexpected();
        if (!(*at = u->next))
            behind_last = at;
        return u;
    }
    return NULL;
}

static void take_found(struct request *r, struct unexpected *u, uint64_t room)
{
    ptl_md_t md = { .start = r->buffer,
                    .length = u->len_bytes,
                    .threshold = 2,
                    .options = PTL_MD_EVENT_START_DISABLE,
                    .user_ptr = r,
                    .eq_handle = own_eq };
    ptl_handle_md_t handle;

    n_found++;
    EX_EXPECT(u->len_bytes <= room);
    r->bits = u->bits;
    if (u->bits & LONG_BIT) {
        n_fetched++;
        EX_PTL(PtlMDBind(job.ni, md, PTL_UNLINK, &handle));
        EX_PTL(PtlGet(handle, u->from, READ_PT, 0, u->read_bits, 0));
    } else {
        memcpy(r->buffer, u->data, u->len_bytes);
        r->len_bytes = u->len_bytes;
        r->is_done = 1;
    }
    free(u->data);
    free(u);
}

static void start_receive(struct request *r, char *buffer, uint64_t room, int from, uint32_t tag)
{
    ptl_process_id_t id = from == ANY_RANK ? anybody : job.ids[from];
    ptl_md_t md = { .start = buffer,
                    .length = room,
                    .threshold = 0,
                    .options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE,
                    .user_ptr = r,
                    .eq_handle = own_eq };
    ptl_match_bits_t ignore = LONG_BIT | (from == ANY_RANK ? 0xffffull << 32 : 0);
    struct unexpected *found;
    ptl_handle_me_t me;
    ptl_handle_md_t handle;
    int rc;

    *r = (struct request){ .buffer = buffer };
    EX_PTL(
        PtlMEInsert(mark, id, bits_of(from == ANY_RANK ? 0 : from, tag, 0), ignore, PTL_UNLINK, PTL_INS_BEFORE, &me));
    EX_PTL(PtlMDAttach(me, md, PTL_UNLINK, &handle));
    md.threshold = 1;
    do {
        look_for_unexpected();
        found = find_unexpected(from, tag);
        if (found) {
            EX_PTL(PtlMEUnlink(me));
            take_found(r, found, room);
            return;
        }
        rc = PtlMDUpdate(handle, NULL, &md, unexpected_eq);
    } while (rc == PTL_MD_NO_UPDATE);
    EX_PTL(rc);
}

/* ---- the program ---- */

struct envelope {
    uint32_t from;
    uint32_t number; /* of this sender and tag */
};

static uint64_t length_of(int from, int to, uint32_t tag, uint32_t number)
{
    uint64_t mixed = (uint64_t)(from * 31 + to * 17) + tag * 7 + number * 1009;

    return sizeof(struct envelope) + (number % 3 == 2 ? mixed * 13 % MOST_BYTES : mixed % 700);
}

static char *message(int from, int to, uint32_t tag, uint32_t number)
{
    uint64_t len_bytes = length_of(from, to, tag, number);
    struct envelope envelope = { (uint32_t)from, number };
    char *data = malloc(len_bytes);

    EX_EXPECT(data);
    ex_fill(data, len_bytes, (uint32_t)from + tag * 16 + number * 64);
    memcpy(data, &envelope, sizeof(envelope));
    return data;
}

/* Of each rank and tag: how many have been taken. */
static uint32_t *taken;

static void check_receive(struct request *r, uint32_t tag)
{
    struct envelope envelope;
    char *expected;

    memcpy(&envelope, r->buffer, sizeof(envelope));
    EX_EXPECT((int)envelope.from < job.n_ranks && (int)(r->bits >> 32 & 0xffff) == (int)envelope.from);
    EX_EXPECT((uint32_t)r->bits == tag);
    EX_EXPECT(envelope.number == taken[envelope.from * TAGS + tag]++);
    EX_EXPECT(r->len_bytes == length_of((int)envelope.from, job.rank, tag, envelope.number));
    expected = message((int)envelope.from, job.rank, tag, envelope.number);
    EX_EXPECT(memcmp(r->buffer, expected, r->len_bytes) == 0);
    free(expected);
    free(r->buffer);
}

static void post(struct request *r, int from, uint32_t tag)
{
    char *buffer = malloc(MOST_BYTES + sizeof(struct envelope));

    EX_EXPECT(buffer);
    start_receive(r, buffer, MOST_BYTES + sizeof(struct envelope), tag == TAGS - 1 ? ANY_RANK : from, tag);
}

/*
 * Receives and sends [first, end) of each pair of ranks and tag. Receives that are posted when messages wait come
 * behind the sends.
 */
static void exchange(uint32_t begin, uint32_t end, int is_expected)
{
    uint32_t n = (end - begin) * (uint32_t)job.n_ranks * TAGS;
    struct request *receives = calloc(n, sizeof(*receives));
    struct request *sends = calloc(n, sizeof(*sends));
    char **data = calloc(n, sizeof(*data));
    uint32_t k;

    EX_EXPECT(n == 0 || (receives && sends && data));
    for (int pass = 0; pass < 2; pass++) {
        k = 0;
        for (uint32_t number = begin; number < end; number++) {
            for (int rank = 0; rank < job.n_ranks; rank++) {
                for (uint32_t tag = 0; tag < TAGS; tag++, k++) {
                    if ((pass == 0) == is_expected) {
                        post(&receives[k], rank, tag);
                    } else {
                        data[k] = message(job.rank, rank, tag, number);
                        start_send(&sends[k], data[k], length_of(job.rank, rank, tag, number), rank, tag);
                    }
                }
            }
        }
        ex_barrier();
    }
    for (k = 0; k < n; k++)
        wait_for(&receives[k]);
    for (k = 0; k < n; k++) {
        check_receive(&receives[k], k % TAGS);
        wait_for(&sends[k]);
        free(data[k]);
    }
    free(receives);
    free(sends);
    free(data);
    ex_barrier();
}

static void open_lists(void)
{
    EX_PTL(PtlEQAlloc(job.ni, EQ_ENTRIES, PTL_EQ_HANDLER_NONE, &unexpected_eq));
    EX_PTL(PtlEQAlloc(job.ni, EQ_ENTRIES, PTL_EQ_HANDLER_NONE, &own_eq));
    EX_PTL(PtlMEAttach(job.ni, SEND_PT, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &mark));
    attach_catcher();
    for (unsigned n = 0; n < BLOCKS; n++) {
        blocks[n] = malloc(BLOCK_BYTES);
        EX_EXPECT(blocks[n]);
        attach_block(n);
    }
    ex_barrier();
}

static void report(uint64_t n_messages)
{
    ptl_sr_value_t drops;

    EX_PTL(PtlNIStatus(job.ni, PTL_SR_DROP_COUNT, &drops));
    EX_EXPECT(drops == 0 && !first);
    if (job.rank == 0)
        printf("%d ranks, %llu messages received by each; on rank 0 %llu came before their receive, %llu of them were "
               "fetched\n",
               job.n_ranks, (unsigned long long)n_messages, (unsigned long long)n_found, (unsigned long long)n_fetched);
}

int main(int argc, char **argv)
{
    uint32_t n = 60;
    int option;

    while ((option = getopt(argc, argv, "hn:")) != -1) {
        if (option == 'n' && atoi(optarg) > 0) {
            n = (uint32_t)atoi(optarg);
        } else {
            fprintf(option == 'h' ? stdout : stderr, "usage: portals_tags [-n MESSAGES]\n");
            return option == 'h' ? 0 : 2;
        }
    }
    n = (n + TAGS - 1) / TAGS;
    ex_start(&job);
    taken = calloc((size_t)job.n_ranks * TAGS, sizeof(*taken));
    EX_EXPECT(taken);
    open_lists();
    for (uint32_t begin = 0; begin < n; begin += BATCH)
        exchange(begin, begin + BATCH < n ? begin + BATCH : n, begin / BATCH % 2 == 0);
    report((uint64_t)n * (uint64_t)job.n_ranks * TAGS);
    ex_stop(&job);
    free(taken);
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return 0;
}
