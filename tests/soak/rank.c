/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a rank: set up, tell the others, post and send at random and take what comes, and at the end compare
 * everything.
 *
 * The end: no new operations; own completions are awaited; then everybody goes on taking events and messages until what
 * each has counted is what the others say they sent. A rank that waits in vain is what the watcher (soak.c) calls a
 * hang. Ranks that were lost and did not come back (loss.c) are left out.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/proc.h"
#include "tests/soak/soak.h"

#define CQ_ENTRIES         65536u
#define SOURCE_QUEUE_WRITE 5u /* gni_cq_get_source() */

void soak_mismatch(struct soak_rank *r, const char *format, ...)
{
    va_list arguments;

    if (atomic_fetch_add(&r->told->n_mismatches, 1) >= 10)
        return;
    fprintf(stderr, "# rank %u: ", r->rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void soak_must(struct soak_rank *r, gni_return_t rc, const char *what)
{
    if (rc == GNI_RC_SUCCESS)
        return;
    if (soak_may_fail(r, r->rank)) {
        r->is_cut_off = true;
        return;
    }
    fprintf(stderr, "# %s: %s\n", what, gni_err_str[rc]);
    _exit(1);
}

/* ---- set-up ---- */

static uint8_t *registered(struct soak_rank *r, uint64_t bytes, gni_cq_handle_t cq, gni_mem_handle_t *hndl_out)
{
    uint8_t *mem = aligned_alloc(4096, (bytes + 4095) & ~4095ull);

    if (!mem)
        soak_must(r, GNI_RC_ERROR_NOMEM, "memory");
    memset(mem, 0, bytes);
    soak_must(r,
              GNI_MemRegister(r->nic, (uint64_t)(uintptr_t)mem, bytes, cq, GNI_MEM_READWRITE, (uint32_t)-1, hndl_out),
              "GNI_MemRegister");
    return mem;
}

static void open_nic(struct soak_rank *r)
{
    soak_must(r, GNI_CdmCreate(r->rank, (uint8_t)r->fx->ptag, r->fx->cookie, GNI_CDM_MODE_ERR_NO_KILL, &r->cdm),
              "GNI_CdmCreate");
    soak_must(r, GNI_CdmAttach(r->cdm, 0, &r->told->nic_addr, &r->nic), "GNI_CdmAttach");
    soak_must(r, GNI_CqCreate(r->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &r->src_cq), "GNI_CqCreate");
    soak_must(r, GNI_CqCreate(r->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &r->dst_cq), "GNI_CqCreate");
}

static gni_smsg_attr_t mailbox(const struct soak_told *owner, unsigned peer)
{
    return (gni_smsg_attr_t){
        .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
        .msg_buffer = (void *)(uintptr_t)owner->mail_addr,
        .buff_size = owner->mailbox_bytes,
        .mem_hndl = owner->mail_hndl,
        .mbox_offset = peer * owner->mailbox_bytes,
        .mbox_maxcredit = CREDITS,
        .msg_maxsize = MESSAGE_BYTES + 8,
    };
}

static void open_memory(struct soak_rank *r)
{
    struct soak_told *told = r->told;
    gni_smsg_attr_t attr = { .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                             .mbox_maxcredit = CREDITS,
                             .msg_maxsize = MESSAGE_BYTES + 8 };
    unsigned bytes;

    soak_must(r, GNI_SmsgBufferSizeNeeded(&attr, &bytes), "GNI_SmsgBufferSizeNeeded");
    told->mailbox_bytes = (bytes + 63) & ~63u;
    r->region = registered(r, REGION_BYTES, r->dst_cq, &r->region_hndl);
    r->mail = registered(r, SOAK_RANKS * (uint64_t)told->mailbox_bytes, r->dst_cq, &r->mail_hndl);
    r->buffers = registered(r, OPS_MAX * (uint64_t)(LANE_BYTES + 4096), NULL, &r->buffers_hndl);
    for (unsigned i = 0; i < OPS_MAX; i++)
        r->ops[i].buffer = r->buffers + i * (uint64_t)(LANE_BYTES + 4096);
    told->region_addr = (uint64_t)(uintptr_t)r->region;
    told->region_hndl = r->region_hndl;
    told->mail_addr = (uint64_t)(uintptr_t)r->mail;
    told->mail_hndl = r->mail_hndl;
}

void soak_open(struct soak_rank *r)
{
    open_nic(r);
    open_memory(r);
}

void soak_connect(struct soak_rank *r, unsigned peer)
{
    gni_smsg_attr_t own = mailbox(r->told, peer);
    gni_smsg_attr_t other = mailbox(&r->board->ranks[peer], r->rank);

    soak_must(r, GNI_EpCreate(r->nic, r->src_cq, &r->eps[peer]), "GNI_EpCreate");
    soak_must(r, GNI_EpBind(r->eps[peer], r->board->ranks[peer].nic_addr, peer), "GNI_EpBind");
    soak_must(r, GNI_EpSetEventData(r->eps[peer], peer, r->rank), "GNI_EpSetEventData");
    soak_must(r, GNI_SmsgInit(r->eps[peer], &own, &other), "GNI_SmsgInit");
}

/* ---- events ---- */

static void take_sent(struct soak_rank *r, gni_cq_entry_t entry, gni_return_t rc)
{
    unsigned to = GNI_CQ_GET_MSG_ID(entry) >> 16;

    if (r->sends_under_way == 0 || to >= SOAK_RANKS || r->sends_to[to] == 0) {
        soak_mismatch(r, "a completion of a message that was not sent");
        return;
    }
    r->sends_under_way--;
    r->sends_to[to]--;
    if (rc == GNI_RC_SUCCESS)
        return;
    if (soak_may_fail(r, to)) {
        soak_note_loss(r, to);
        return;
    }
    atomic_fetch_add(&r->told->errors, 1);
    soak_mismatch(r, "a message failed, status %u", (unsigned)GNI_CQ_GET_STATUS(entry));
}

void soak_take_completions(struct soak_rank *r)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(r->src_cq, &entry)) != GNI_RC_NOT_DONE) {
        if (rc != GNI_RC_SUCCESS && rc != GNI_RC_TRANSACTION_ERROR) {
            soak_mismatch(r, "the source queue says %s", gni_err_str[rc]);
            return;
        }
        if (GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG)
            take_sent(r, entry, rc);
        else
            soak_complete(r, entry, rc);
        /* From here on the queue says nothing but that the NIC has gone. */
        if (r->is_cut_off && !soak_posts_under_way(r) && r->sends_under_way == 0)
            return;
    }
}

static void take_event(struct soak_rank *r, gni_cq_entry_t entry)
{
    bool is_write = GNI_CQ_GET_SOURCE(entry) == SOURCE_QUEUE_WRITE;
    uint64_t data = GNI_CQ_GET_DATA(entry);
    uint64_t from = is_write ? data >> 32 : data;

    if (GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG)
        return; /* a hint */
    if (from >= SOAK_RANKS) {
        soak_mismatch(r, "an event of nobody: %llx", (unsigned long long)entry);
    } else if (is_write) {
        r->written_from[from]++;
        r->written_sum_from[from] += (uint32_t)data;
    } else {
        r->events_from[from]++;
    }
}

static void take_events(struct soak_rank *r)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(r->dst_cq, &entry)) == GNI_RC_SUCCESS)
        take_event(r, entry);
    if (rc == GNI_RC_TRANSACTION_ERROR && soak_may_fail(r, r->rank))
        r->is_cut_off = true;
    else if (rc != GNI_RC_NOT_DONE)
        soak_mismatch(r, "the destination queue says %s", gni_err_str[rc]);
}

static void progress(struct soak_rank *r)
{
    soak_take_completions(r);
    take_events(r);
    soak_receive(r);
}

/* ---- the end ---- */

/* Everybody has told its last numbers. */
static bool all_are_drained(const struct soak_rank *r)
{
    for (unsigned i = 0; i < SOAK_RANKS; i++) {
        if (!r->is_gone[i] && !atomic_load(&r->board->ranks[i].is_drained))
            return false;
    }
    return true;
}

static bool all_have_checked(const struct soak_rank *r)
{
    for (unsigned i = 0; i < SOAK_RANKS; i++) {
        if (!r->is_gone[i] && !atomic_load(&r->board->ranks[i].is_checked))
            return false;
    }
    return true;
}

/* Has everything come that the others sent? More than that is never right. */
static bool has_come(struct soak_rank *r)
{
    bool is_all = true;

    for (unsigned from = 0; from < SOAK_RANKS; from++) {
        struct soak_told *told = &r->board->ranks[from];

        is_all = is_all && (r->is_gone[from] || r->taken_from[from] == atomic_load(&told->messages_to[r->rank])) &&
                 r->events_from[from] >= atomic_load(&told->events_to[r->rank]) &&
                 r->written_from[from] >= atomic_load(&told->written_to[r->rank]);
    }
    return is_all;
}

/* `maybe`: more that may have come. */
static bool is_between(uint64_t n, uint64_t least, uint64_t maybe)
{
    return n >= least && n - least <= maybe;
}

static void check_counts(struct soak_rank *r)
{
    for (unsigned from = 0; from < SOAK_RANKS; from++) {
        struct soak_told *told = &r->board->ranks[from];

        if (!is_between(r->events_from[from], atomic_load(&told->events_to[r->rank]),
                        atomic_load(&told->maybe_events_to[r->rank])))
            soak_mismatch(r, "%llu events of rank %u instead of %llu", (unsigned long long)r->events_from[from], from,
                          (unsigned long long)atomic_load(&told->events_to[r->rank]));
        if (!is_between(r->written_from[from], atomic_load(&told->written_to[r->rank]),
                        atomic_load(&told->maybe_written_to[r->rank])) ||
            !is_between(r->written_sum_from[from], atomic_load(&told->written_sum_to[r->rank]),
                        atomic_load(&told->maybe_written_sum_to[r->rank])))
            soak_mismatch(r, "queue writes of rank %u: %llu instead of %llu, or other values", from,
                          (unsigned long long)r->written_from[from],
                          (unsigned long long)atomic_load(&told->written_to[r->rank]));
    }
}

static void check_common_words(struct soak_rank *r)
{
    const _Atomic uint64_t *words =
        (const _Atomic uint64_t *)(const void *)(r->region + SOAK_RANKS * (uint64_t)LANE_BYTES);

    for (uint32_t w = 0; w < COMMON_WORDS; w++) {
        uint64_t expected = 0;
        uint64_t maybe = 0;

        for (unsigned from = 0; from < SOAK_RANKS; from++) {
            expected += atomic_load(&r->board->ranks[from].added_to[r->rank][w]);
            maybe += atomic_load(&r->board->ranks[from].maybe_added_to[r->rank][w]);
        }
        if (!is_between(atomic_load(&words[w]), expected, maybe))
            soak_mismatch(r, "common word %u is %llu instead of %llu", w, (unsigned long long)atomic_load(&words[w]),
                          (unsigned long long)expected);
    }
}

/* But for the file that registered memory was moved to: that stays. */
static int count_fds(void)
{
    return proc_count_fds(getpid()) - proc_count_fds_of(getpid(), "emunic-space");
}

void soak_close(struct soak_rank *r)
{
    for (unsigned peer = 0; peer < SOAK_RANKS; peer++)
        soak_must(r, GNI_EpDestroy(r->eps[peer]), "GNI_EpDestroy");
    soak_must(r, GNI_MemDeregister(r->nic, &r->region_hndl), "GNI_MemDeregister");
    soak_must(r, GNI_MemDeregister(r->nic, &r->mail_hndl), "GNI_MemDeregister");
    soak_must(r, GNI_MemDeregister(r->nic, &r->buffers_hndl), "GNI_MemDeregister");
    soak_must(r, GNI_CqDestroy(r->src_cq), "GNI_CqDestroy");
    soak_must(r, GNI_CqDestroy(r->dst_cq), "GNI_CqDestroy");
    soak_must(r, GNI_CdmDestroy(r->cdm), "GNI_CdmDestroy");
    free(r->region);
    free(r->mail);
    free(r->buffers);
    if (count_fds() != r->n_fds)
        soak_mismatch(r, "%d descriptors instead of %d", count_fds(), r->n_fds);
}

/* ---- main ---- */

/*
 * Registers a piece of memory, puts into it, looks, and takes it away again: handles come and go while all else runs.
 */
static void register_for_a_while(struct soak_rank *r)
{
    uint64_t bytes = 8 + emu_random_next(&r->random) % 100000;
    gni_mem_handle_t hndl = { 0 };
    uint8_t *mem = registered(r, bytes, NULL, &hndl);
    gni_post_descriptor_t d = {
        .type = GNI_POST_FMA_PUT,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)&bytes,
        .remote_addr = (uint64_t)(uintptr_t)mem + bytes - 8,
        .remote_mem_hndl = hndl,
        .length = 8,
    };
    gni_post_descriptor_t *done = NULL;
    gni_cq_handle_t cq = NULL;
    gni_cq_entry_t entry;
    gni_ep_handle_t ep = NULL;
    gni_return_t rc;

    soak_must(r, GNI_CqCreate(r->nic, 4, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), "GNI_CqCreate");
    soak_must(r, GNI_EpCreate(r->nic, cq, &ep), "GNI_EpCreate");
    soak_must(r, GNI_EpBind(ep, r->told->nic_addr, r->rank), "GNI_EpBind");
    do {
        soak_must(r, GNI_PostFma(ep, &d), "GNI_PostFma");
        while ((rc = GNI_CqGetEvent(cq, &entry)) == GNI_RC_NOT_DONE)
            ;
        if (rc != GNI_RC_SUCCESS && soak_may_fail(r, r->rank)) {
            r->is_cut_off = true;
            break;
        }
        atomic_fetch_add(&r->told->errors, rc != GNI_RC_SUCCESS);
        if (GNI_GetCompleted(cq, entry, &done) != rc || done != &d)
            soak_mismatch(r, "a put to oneself has another completion");
    } while (rc != GNI_RC_SUCCESS && r->allows_errors);
    if (!r->is_cut_off && memcmp(mem + bytes - 8, &bytes, 8) != 0)
        soak_mismatch(r, "a put to oneself is not there");
    soak_must(r, GNI_EpDestroy(ep), "GNI_EpDestroy");
    soak_must(r, GNI_CqDestroy(cq), "GNI_CqDestroy");
    soak_must(r, GNI_MemDeregister(r->nic, &hndl), "GNI_MemDeregister");
    free(mem);
}

/* False: our host was lost for good. */
static bool work(struct soak_rank *r)
{
    while (!atomic_load_explicit(&r->board->is_over, memory_order_relaxed)) {
        uint64_t what = emu_random_next(&r->random) % 1024;

        if (r->is_cut_off) {
            soak_go_down(r);
            if (!r->board->comes_back)
                return false;
            soak_come_back(r);
        }
        if (what < 700)
            soak_post(r);
        else if (what < 1022)
            soak_send(r);
        else
            register_for_a_while(r);
        if (what % 2 == 0)
            progress(r);
        soak_meet(r);
        atomic_fetch_add_explicit(&r->board->beats, 1, memory_order_relaxed);
    }
    while (soak_posts_under_way(r) || r->sends_under_way > 0)
        progress(r);
    return true;
}

int soak_rank_main(struct fx_rank *rank, struct soak_board *board, uint64_t seed, bool allows_errors)
{
    static struct soak_rank r;

    r.fx = rank->fx;
    r.rank = rank->rank;
    r.board = board;
    r.told = &board->ranks[rank->rank];
    r.allows_errors = allows_errors;
    r.random.state = emu_random_mix(seed + rank->rank);
    r.n_fds = count_fds();
    r.shadows = calloc(SOAK_RANKS, sizeof(*r.shadows));
    if (!r.shadows)
        soak_must(&r, GNI_RC_ERROR_NOMEM, "shadows");
    soak_open(&r);
    pthread_barrier_wait(rank->barrier);
    for (unsigned peer = 0; peer < SOAK_RANKS; peer++)
        soak_connect(&r, peer);
    pthread_barrier_wait(rank->barrier);
    if (work(&r)) {
        soak_check_lanes(&r);
        atomic_store(&r.told->is_drained, 1);
        while (!all_are_drained(&r) || !has_come(&r))
            progress(&r);
        take_events(&r);
        check_counts(&r);
        check_common_words(&r);
        soak_must(&r, GNI_GetNicStat(r.nic, GNI_STAT_SMSG_RETRANS_COUNT, &r.told->retransmitted), "GNI_GetNicStat");
        atomic_store(&r.told->is_checked, 1);
        while (!all_have_checked(&r))
            sched_yield();
        soak_close(&r);
    }
    free(r.shadows);
    return atomic_load(&r.told->n_mismatches) == 0 ? 0 : 1;
}
