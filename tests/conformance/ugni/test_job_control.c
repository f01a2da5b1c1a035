/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Job control: translation of addresses, suspending, checkpoints. Specification: spec/ugni.md 3.7, 4.1, 4.2.
 */
#include "tests/conformance/job.h"

/* ---- translation ---- */

static void clear_all_entries(void)
{
    gni_ntt_descriptor_t all = { .group_size = (uint32_t)-1 };
    uint32_t base = (uint32_t)-1;

    assert_int_equal(GNI_ConfigureNTT(0, &all, &base), GNI_RC_SUCCESS);
}

static int clear_entries(void **state)
{
    (void)state;
    clear_all_entries();
    return 0;
}

#define ntt_test(name) cmocka_unit_test_setup_teardown(name, clear_entries, clear_entries)

static void test_entries_are_allocated_side_by_side_and_cleared(void **state)
{
    gni_ntt_entry_t entries[3] = { { 0, 0, 0 }, { 1, 0, 0 }, { 2, 0, 0 } };
    gni_ntt_descriptor_t ntt = { .group_size = 3, .u.table_v2 = entries };
    gni_ntt_descriptor_t clear = { .group_size = 3 };
    uint32_t first = 0;
    uint32_t second = 0;
    uint32_t again = 0;
    uint32_t unknown = 5000;

    (void)state;
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &first), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &second), GNI_RC_SUCCESS);
    assert_true(second >= first + 3 || first >= second + 3);
    assert_int_equal(GNI_ConfigureNTT(0, &clear, &first), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ConfigureNTT(0, &clear, &first), GNI_RC_INVALID_PARAM); /* not there any more */
    assert_int_equal(GNI_ConfigureNTT(0, &clear, &unknown), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &again), GNI_RC_SUCCESS);
    assert_int_equal(again, first);
    clear_all_entries();
    assert_int_equal(GNI_ConfigureNTT(0, &clear, &second), GNI_RC_INVALID_PARAM);
}

static void test_entries_are_checked(void **state)
{
    static gni_ntt_entry_t many[9000];
    gni_ntt_entry_t entry = { 0, 0, 0 };
    gni_ntt_descriptor_t ntt = { .group_size = 1, .u.table_v2 = &entry };
    gni_ntt_descriptor_t other = { .group_size = 1, .granularity = 4, .u.table_v2 = &entry };
    gni_ntt_descriptor_t too_many = { .group_size = COUNT_OF(many), .u.table_v2 = many };
    gni_ntt_descriptor_t none = { .group_size = 0, .u.table_v2 = &entry };
    gni_ntt_descriptor_t half_clear = { .group_size = (uint32_t)-1 };
    uint32_t granularity = 0;
    uint32_t base = 0;

    (void)state;
    assert_int_equal(GNI_ConfigureNTT(0, NULL, &base), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ConfigureNTT(1, &ntt, &base), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_ConfigureNTT(0, &none, &base), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ConfigureNTT(0, &half_clear, &base), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ConfigureNTT(0, &too_many, &base), GNI_RC_ERROR_RESOURCE);
    entry.blck_addr = 100000; /* no such node */
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_INVALID_PARAM);
    entry = (gni_ntt_entry_t){ 0, 0, 2 }; /* more than a block has */
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_INVALID_PARAM);
    entry = (gni_ntt_entry_t){ 0, 0, 0 };
    other.granularity = 3; /* no power of two */
    assert_int_equal(GNI_ConfigureNTT(0, &other, &base), GNI_RC_INVALID_PARAM);
    other.granularity = 4;
    assert_int_equal(GNI_ConfigureNTT(0, &other, &base), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetNttGran(0, &granularity), GNI_RC_SUCCESS);
    assert_int_equal(granularity, 4);
    other.granularity = 2; /* one granularity at a time */
    assert_int_equal(GNI_ConfigureNTT(0, &other, &base), GNI_RC_ERROR_RESOURCE);
    clear_all_entries();
    assert_int_equal(GNI_GetNttGran(0, &granularity), GNI_RC_SUCCESS);
    assert_int_equal(granularity, 1);
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, NULL, &half_clear, &base), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, NULL, &ntt, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ConfigureNTTandJob(1, JOB_ID, PTAG, COOKIE, NULL, &ntt, &base), GNI_RC_NO_MATCH);
}

static struct fx translated; /* the same server, credentials of the declared job */

static void exchange_datagrams(struct gx_side *from, struct gx_side *to, uint32_t to_address)
{
    char out[8] = "knock";
    char in[8] = "";
    uint32_t address = 99;
    uint32_t instance = 0;
    gni_post_state_t state = GNI_POST_PENDING;
    gni_ep_handle_t ep;
    gni_ep_handle_t any;
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    FX_CHECK(GNI_EpCreate(from->nic, NULL, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpCreate(to->nic, NULL, &any) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, to_address, to->inst_id) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpPostData(any, out, 8, in, 8) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpPostData(ep, out, 8, in, 8) == GNI_RC_SUCCESS);
    while (state != GNI_POST_COMPLETED && emu_clock_ns() < end_ns)
        FX_CHECK(GNI_EpPostDataTest(any, &state, &address, &instance) == GNI_RC_SUCCESS);
    FX_CHECK(state == GNI_POST_COMPLETED && address == from->nic_addr && instance == from->inst_id);
    state = GNI_POST_PENDING;
    while (state != GNI_POST_COMPLETED && emu_clock_ns() < end_ns)
        FX_CHECK(GNI_EpPostDataTest(ep, &state, &address, &instance) == GNI_RC_SUCCESS);
    FX_CHECK(state == GNI_POST_COMPLETED && address == to_address && instance == to->inst_id);
    GNI_EpDestroy(ep);
    GNI_EpDestroy(any);
}

/* Node 2 is address 0, node 0 address 1, node 3 address 2, instead of the failed node 1. */
static int use_translated_addresses(void)
{
    static struct gx_side sides[3];
    static const uint32_t nids[3] = { 2, 0, 3 };
    uint32_t address = 99;
    uint32_t cpu;

    setenv("EMUNIC_COOKIE", "12648430", 1); /* COOKIE: what emunic run tells its ranks */
    for (uint32_t i = 0; i < 3; i++) {
        gx_open(&sides[i], &translated, nids[i], 30 + i, 0);
        FX_CHECK(sides[i].nic_addr == i);
        FX_CHECK(GNI_CdmGetNicAddress(0, &address, &cpu) == GNI_RC_SUCCESS && address == i);
    }
    FX_CHECK(try_attach(PTAG, COOKIE, 1, 0) == GNI_RC_NO_MATCH); /* the failed one has no address */
    for (uint32_t from = 0; from < 3; from++) {
        for (uint32_t to = 0; to < 3; to++) {
            gni_post_descriptor_t d = gx_put(&sides[from], &sides[to], 64 * from + 8 * to, 8, GNI_CQMODE_GLOBAL_EVENT);
            gni_post_descriptor_t *done = NULL;
            gni_ep_handle_t ep;

            FX_CHECK(GNI_EpCreate(sides[from].nic, sides[from].src_cq, &ep) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_EpBind(ep, to, sides[to].inst_id) == GNI_RC_SUCCESS);
            sides[from].mem[64 * from + 8 * to] = (uint8_t)(1 + 16 * from + to);
            FX_CHECK(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
            FX_CHECK(gx_complete(sides[from].src_cq, &done) == GNI_RC_SUCCESS && done == &d);
            FX_CHECK(sides[to].mem[64 * from + 8 * to] == 1 + 16 * from + to);
            GNI_EpUnbind(ep);
            /* An address behind the job's is nobody. */
            FX_CHECK(GNI_EpBind(ep, 3, 1) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
            FX_CHECK(gx_complete(sides[from].src_cq, &done) == GNI_RC_TRANSACTION_ERROR);
            GNI_EpDestroy(ep);
        }
    }
    exchange_datagrams(&sides[1], &sides[2], 2);
    for (uint32_t i = 0; i < 3; i++)
        gx_close(&sides[i]);
    return 0;
}

static void test_job_is_addressed_through_its_entries_around_a_failed_node(void **state)
{
    gni_ntt_entry_t entries[3] = { { 2, 0, 0 }, { 0, 0, 0 }, { 1, 3, 1 } };
    gni_ntt_descriptor_t ntt = { .group_size = 3, .u.table_v2 = entries };
    gni_ntt_descriptor_t clear = { .group_size = 3 };
    gni_job_limits_t limits = no_limits();
    uint32_t base = 0;

    (void)state;
    translated = fx;
    translated.ptag = PTAG;
    translated.cookie = COOKIE;
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_SUCCESS);
    limits.ntt_base = (int32_t)base;
    limits.ntt_size = 3;
    limits.ntt_ctrl = GNI_JOB_CTRL_NTT_CLEANUP;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, &limits), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, &limits), GNI_RC_SUCCESS); /* the same range */
    assert_int_equal(GNI_ConfigureNTT(0, &clear, &base), GNI_RC_ERROR_RESOURCE);          /* in use */
    limits.ntt_size = 2;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, &limits), GNI_RC_ILLEGAL_OP);
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, &limits, NULL, NULL), GNI_RC_ILLEGAL_OP);
    assert_int_equal(in_child(use_translated_addresses), 0);
    assert_true(eventually(job_is_gone, NULL, PATIENCE_NS));
    assert_int_equal(GNI_ConfigureNTT(0, &clear, &base), GNI_RC_INVALID_PARAM); /* cleaned up with the job */
}

static void test_job_has_no_more_addresses_than_the_machine_has_nodes(void **state)
{
    static gni_ntt_entry_t many[9000];
    gni_ntt_descriptor_t ntt = { .group_size = 16, .granularity = 128, .u.table_v2 = many };
    gni_job_limits_t limits = no_limits();
    uint32_t base = 0;

    (void)state;
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_SUCCESS);
    limits.ntt_base = (int32_t)base;
    limits.ntt_size = 16;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, &limits), GNI_RC_ERROR_RESOURCE);
    ntt.group_size = COUNT_OF(many); /* and no more entries than the device has */
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, NULL, &ntt, &base), GNI_RC_ERROR_RESOURCE);
    assert_true(job_is_gone(NULL));
}

static int use_blocks_of_four(void)
{
    struct gx_side side;
    uint32_t address;

    /* Entry 0: nodes 4 5 6 and 12 instead of 7; entry 1: nodes 8 to 11. */
    static const uint32_t nid_of[8] = { 4, 5, 6, 12, 8, 9, 10, 11 };

    for (address = 0; address < 8; address++) {
        gx_open(&side, &translated, nid_of[address], 1, 0);
        FX_CHECK(side.nic_addr == address);
        gx_close(&side);
    }
    return 0;
}

static void test_entries_of_four_addresses_replace_the_end_of_a_block(void **state)
{
    gni_ntt_entry_t entries[2] = { { 4, 12, 1 }, { 8, 0, 0 } };
    gni_ntt_descriptor_t ntt = { .group_size = 2, .granularity = 4, .u.table_v2 = entries };
    gni_ntt_descriptor_t clear = { .group_size = 2 };
    uint32_t base = 0;

    (void)state;
    translated = fx;
    translated.ptag = PTAG;
    translated.cookie = COOKIE;
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, NULL, &ntt, &base), GNI_RC_SUCCESS);
    assert_int_equal(in_child(use_blocks_of_four), 0);
    assert_true(eventually(job_is_gone, NULL, PATIENCE_NS));
    assert_int_equal(GNI_ConfigureNTT(0, &clear, &base), GNI_RC_SUCCESS); /* nobody asked for cleaning up */
}

static void test_entries_of_a_refused_job_are_not_kept(void **state)
{
    gni_ntt_entry_t entry = { 0, 0, 0 };
    gni_ntt_descriptor_t ntt = { .group_size = 1, .u.table_v2 = &entry };
    uint32_t first = 0;
    uint32_t base = 77;

    (void)state;
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &first), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, (uint8_t)fx.ptag, COOKIE, NULL, &ntt, &base),
                     GNI_RC_INVALID_STATE);
    assert_int_equal(base, 77);
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_SUCCESS);
    assert_int_equal(base, first + 1);
    /* Without a table it is GNI_ConfigureJob(). */
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, NULL, NULL, NULL), GNI_RC_SUCCESS);
}

static void test_job_that_is_attached_cannot_be_translated_any_more(void **state)
{
    gni_ntt_entry_t entry = { 0, 0, 0 };
    gni_ntt_descriptor_t ntt = { .group_size = 1, .u.table_v2 = &entry };
    uint32_t base = 0;

    (void)state;
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, NULL, &ntt, &base),
                     GNI_RC_INVALID_STATE);
}

/* ---- suspending ---- */

/* answers: GNI_SuspendJob */
static gni_return_t suspend(uint32_t timeout_ms)
{
    return GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, timeout_ms);
}

/* answers: GNI_ResumeJob */
static gni_return_t resume(void)
{
    return GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie);
}

static void test_suspended_job_keeps_its_transactions_and_their_order(void **state)
{
    enum { N = 100 };
    static gni_post_descriptor_t posts[N];
    uint64_t *words = (uint64_t *)(void *)a.mem;
    uint64_t *theirs = (uint64_t *)(void *)b.mem;

    (void)state;
    posts[0] = word_post(GNI_POST_FMA_PUT, 0);
    assert_int_equal(run(&posts[0]), STATUS_OK); /* the direct path knows its way */
    assert_int_equal(suspend(1000), GNI_RC_SUCCESS);
    for (uint64_t i = 0; i < N; i++) {
        words[i] = i + 1;
        posts[i] = word_post(i % 3 == 0 ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, 8 * i);
        assert_int_equal(post(&posts[i]), GNI_RC_SUCCESS);
    }
    for (unsigned looks = 0; looks < 1000; looks++) {
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
        assert_int_equal(theirs[N - 1], 0);
    }
    assert_int_equal(resume(), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(finish(&posts[i]), STATUS_OK);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(theirs[i], i + 1);
}

static void test_large_transfer_stands_still_while_the_job_is_suspended(void **state)
{
    const size_t bytes = 64 << 20;
    uint8_t *from = pages(bytes);
    uint8_t *to = pages(bytes);
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);
    gni_mem_handle_t from_handle;
    gni_mem_handle_t to_handle;
    volatile uint8_t *last = to + bytes - 1;

    (void)state;
    memset(from, 0x5a, bytes);
    from_handle = register_on(&a, from, bytes, 0);
    to_handle = register_on(&b, to, bytes, 0);
    d.local_addr = ADDR(from);
    d.local_mem_hndl = from_handle;
    d.remote_addr = ADDR(to);
    d.remote_mem_hndl = to_handle;
    d.length = bytes;
    assert_int_equal(post(&d), GNI_RC_SUCCESS); /* above EMUNIC_DIRECT_LIMIT: emunic moves it in slices */
    assert_int_equal(suspend(1000), GNI_RC_SUCCESS);
    if (*last == 0) { /* it has not been faster than we were */
        for (unsigned looks = 0; looks < 200; looks++) {
            sched_yield();
            assert_int_equal(*last, 0);
            assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
        }
    }
    assert_int_equal(resume(), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(memcmp(from, to, bytes), 0);
    GNI_MemDeregister(a.nic, &from_handle);
    GNI_MemDeregister(b.nic, &to_handle);
    munmap(from, bytes);
    munmap(to, bytes);
}

static void test_suspending_and_resuming_have_their_states(void **state)
{
    (void)state;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, NULL), GNI_RC_SUCCESS);
    assert_int_equal(resume(), GNI_RC_INVALID_STATE);
    assert_int_equal(suspend(0), GNI_RC_SUCCESS); /* nobody is inside: no need to wait */
    assert_int_equal(suspend(100), GNI_RC_INVALID_STATE);
    assert_int_equal(resume(), GNI_RC_SUCCESS);
    assert_int_equal(resume(), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_SuspendJob(1, JOB_ID, (uint8_t)fx.ptag, fx.cookie, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag + 1, fx.cookie, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie + 1, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID + 1, (uint8_t)fx.ptag, fx.cookie, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ResumeJob(1, JOB_ID, (uint8_t)fx.ptag, fx.cookie), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie + 1), GNI_RC_INVALID_PARAM);
}

/* A member that stays inside the engine, as one that the kernel has stopped there would. */
static void test_suspending_gives_up_when_a_member_does_not_come_out(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    struct raw raw;

    (void)state;
    assert_int_equal(raw_open(&raw, fx.hosts[fx_host_of(&fx, 2)].server, fx.ptag, fx.cookie, 50, 2), 0);
    atomic_store(&raw.segment->inside, 1);
    assert_int_equal(suspend(0), GNI_RC_NOT_DONE);
    assert_int_equal(suspend(30), GNI_RC_TIMEOUT);
    assert_int_equal(resume(), GNI_RC_INVALID_STATE);
    assert_int_equal(run(&d), STATUS_OK); /* the job goes on */
    atomic_store(&raw.segment->inside, 2);
    assert_int_equal(suspend(1000), GNI_RC_SUCCESS);
    assert_int_equal(resume(), GNI_RC_SUCCESS);
    raw_close(&raw);
}

static int stay_in_the_other_job(void)
{
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t address;

    signal(SIGUSR1, SIG_IGN);
    FX_CHECK(GNI_CdmCreate(1, PTAG, COOKIE, GNI_CDM_MODE_ERR_NO_KILL, &cdm) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmAttach(cdm, 0, &address, &nic) == GNI_RC_SUCCESS);
    kill(getppid(), SIGUSR2);
    pause();
    return 0;
}

static void test_job_that_is_ending_cannot_be_suspended(void **state)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END, .domain = { .signal = SIGUSR1 } };
    struct emu_session admin;
    sigset_t set;
    pid_t child;
    int number;

    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fx_set_node(0);
    assert_int_equal(fx_add_domain(&fx, PTAG, COOKIE, geteuid(), 0, &admin), 0);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        close(fx.admin.fd);
        close(admin.fd);
        _exit(stay_in_the_other_job());
    }
    sigwait(&set, &number);
    assert_int_equal(emu_session_request(&admin, &end, NULL, 0, NULL), 0);
    assert_int_equal(end.result, 0);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, PTAG, COOKIE, 100), GNI_RC_ERROR_RESOURCE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    emu_session_close(&admin);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int suspend_and_resume_often(void)
{
    for (unsigned i = 0; i < 60; i++) {
        FX_CHECK(suspend(5000) == GNI_RC_SUCCESS);
        for (unsigned looks = 0; looks < i % 7; looks++)
            sched_yield();
        FX_CHECK(resume() == GNI_RC_SUCCESS);
    }
    return 0;
}

/* Counts up a word of the peer, by atomics, and its own copy of it by puts that have to come in order. */
static int work_while_suspended(struct fx_rank *rank)
{
    struct {
        uint32_t address;
        uint64_t mem;
        gni_mem_handle_t handle;
    } *infos = rank->shared;
    _Atomic uint32_t *stop = (_Atomic uint32_t *)(void *)((char *)rank->shared + 4096);
    uint32_t peer = 1 - rank->rank;
    struct gx_side side;
    gni_ep_handle_t ep;
    uint64_t n = 0;

    alarm(50);
    if (rank->rank == 2) {
        pthread_barrier_wait(rank->barrier);
        suspend_and_resume_often();
        atomic_store(stop, 1);
        pthread_barrier_wait(rank->barrier);
        return 0;
    }
    gx_open(&side, rank->fx, rank->fx->nids[rank->rank], rank->rank, 0);
    infos[rank->rank].address = side.nic_addr;
    infos[rank->rank].mem = ADDR(side.mem);
    infos[rank->rank].handle = side.mem_hndl;
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, infos[peer].address, peer) == GNI_RC_SUCCESS);
    while (!atomic_load(stop)) {
        gni_post_descriptor_t add = { .type = GNI_POST_AMO,
                                      .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                      .length = 8,
                                      .amo_cmd = GNI_FMA_ATOMIC_ADD,
                                      .first_operand = 1,
                                      .remote_addr = infos[peer].mem,
                                      .remote_mem_hndl = infos[peer].handle };
        gni_post_descriptor_t put = add;
        gni_post_descriptor_t *done = NULL;

        n++;
        memcpy(side.mem + 64, &n, 8);
        put.type = n % 2 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT;
        put.local_addr = ADDR(side.mem) + 64;
        put.local_mem_hndl = side.mem_hndl;
        put.remote_addr = infos[peer].mem + 128;
        FX_CHECK(GNI_PostFma(ep, &add) == GNI_RC_SUCCESS);
        FX_CHECK(post_on(ep, &put) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS && done == &add);
        FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS && done == &put);
    }
    ((uint64_t *)rank->shared)[1000 + rank->rank] = n;
    pthread_barrier_wait(rank->barrier);
    n = ((uint64_t *)rank->shared)[1000 + peer];
    FX_CHECK(n > 0 && memcmp(side.mem, &n, 8) == 0 && memcmp(side.mem + 128, &n, 8) == 0);
    GNI_EpDestroy(ep);
    side.ep = NULL;
    gx_close(&side);
    return 0;
}

static void test_nothing_is_lost_in_a_job_that_is_often_suspended(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 3, work_while_suspended, NULL), 0);
}

/* Who asked for the suspension dies before it is complete: nobody would resume the job. */
static int ask_and_die(void)
{
    alarm(1);
    suspend(1000000);
    return 0;
}

static bool runs_again(void *arg)
{
    gni_return_t rc = suspend(0);

    (void)arg;
    if (rc == GNI_RC_SUCCESS)
        resume();
    return rc == GNI_RC_NOT_DONE || rc == GNI_RC_SUCCESS;
}

static void test_pending_suspension_ends_with_who_asked_for_it(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    struct raw raw;

    (void)state;
    assert_int_equal(raw_open(&raw, fx.hosts[fx_host_of(&fx, 2)].server, fx.ptag, fx.cookie, 50, 2), 0);
    atomic_store(&raw.segment->inside, 1);
    assert_true(WIFSIGNALED(in_child(ask_and_die)));
    assert_true(eventually(runs_again, NULL, PATIENCE_NS));
    assert_int_equal(run(&d), STATUS_OK);
    atomic_store(&raw.segment->inside, 2);
    raw_close(&raw);
}

/* ---- checkpoints ---- */

static void test_checkpointed_domain_makes_no_requests_until_it_is_resumed(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_mem_handle_t handle;
    gni_cq_handle_t cq;

    (void)state;
    assert_int_equal(GNI_CdmCheckpoint(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmResume(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmCheckpoint(a.cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(a.nic, ADDR(a.mem), 64, NULL, 0, (uint32_t)-1, &handle), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CqCreate(a.nic, 10, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CdmResume(a.cdm), GNI_RC_SUCCESS);
    handle = register_on(&a, a.mem, 64, 0);
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_OK);
}

/* As after a restart: emunic does not answer, and the descriptors are not ours. */
static int destroy_after_a_checkpoint(void)
{
    static struct gx_side side;
    gni_cq_handle_t cq;
    int fds;

    gx_open(&side, &fx, 2, 60, 0);
    FX_CHECK(GNI_CqCreate(side.nic, 10, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmCheckpoint(side.cdm) == GNI_RC_SUCCESS);
    fds = proc_count_fds(getpid());
    FX_CHECK(kill(fx.daemon, SIGSTOP) == 0); /* whoever asks it anything hangs */
    alarm(20);
    FX_CHECK(GNI_CqDestroy(cq) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmDestroy(side.cdm) == GNI_RC_SUCCESS);
    FX_CHECK(proc_count_fds(getpid()) == fds); /* not closed: they may be somebody else's */
    free(side.mem);
    return 0;
}

static void test_queue_and_domain_can_be_destroyed_after_a_checkpoint(void **state)
{
    int status = in_child(destroy_after_a_checkpoint);

    (void)state;
    kill(fx.daemon, SIGCONT);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ntt_test(test_entries_are_allocated_side_by_side_and_cleared),
        ntt_test(test_entries_are_checked),
        ntt_test(test_job_is_addressed_through_its_entries_around_a_failed_node),
        ntt_test(test_entries_of_four_addresses_replace_the_end_of_a_block),
        ntt_test(test_entries_of_a_refused_job_are_not_kept),
        ntt_test(test_job_has_no_more_addresses_than_the_machine_has_nodes),
        pair_test(test_job_that_is_attached_cannot_be_translated_any_more),
        pair_test(test_suspended_job_keeps_its_transactions_and_their_order),
        pair_test(test_large_transfer_stands_still_while_the_job_is_suspended),
        pair_test(test_suspending_and_resuming_have_their_states),
        pair_test(test_suspending_gives_up_when_a_member_does_not_come_out),
        cmocka_unit_test(test_job_that_is_ending_cannot_be_suspended),
        cmocka_unit_test(test_nothing_is_lost_in_a_job_that_is_often_suspended),
        pair_test(test_pending_suspension_ends_with_who_asked_for_it),
        pair_test(test_checkpointed_domain_makes_no_requests_until_it_is_resumed),
        cmocka_unit_test(test_queue_and_domain_can_be_destroyed_after_a_checkpoint),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
