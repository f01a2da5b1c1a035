/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures as programs see them: texts, dead handles everywhere, what kills a process, a NIC that goes away.
 * Specification: spec/ugni.md 4.9, 2.5, 7.3.
 */
#include <unistd.h>

#include "tests/conformance/pair.h"

/* ---- texts ---- */

static gni_cq_entry_t failed_entry(gni_post_descriptor_t *d)
{
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry = 0;

    assert_int_equal(post(d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_not_equal(entry, 0);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
    return entry;
}

static void test_failed_transactions_have_a_text_and_cannot_be_repeated(void **state)
{
    gni_post_descriptor_t range = word_post(GNI_POST_FMA_PUT, GX_BYTES);
    gni_post_descriptor_t handle = word_post(GNI_POST_FMA_PUT, 0);
    gni_cq_entry_t entries[2];
    char texts[2][256];

    (void)state;
    range.local_addr = ADDR(a.mem);
    handle.remote_mem_hndl.qword2 ^= 1ull << 55; /* another generation */
    entries[0] = failed_entry(&range);
    entries[1] = failed_entry(&handle);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t recoverable = 77;

        assert_int_equal(GNI_CqErrorStr(entries[i], texts[i], sizeof(texts[i])), GNI_RC_SUCCESS);
        assert_true(strlen(texts[i]) > 0);
        assert_int_equal(GNI_CqErrorRecoverable(entries[i], &recoverable), GNI_RC_SUCCESS);
        assert_int_equal(recoverable, 0);
    }
    assert_string_not_equal(texts[0], texts[1]);
}

static void test_good_entry_says_no_error_and_recoverable(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    uint32_t recoverable = 77;
    gni_cq_entry_t entry;
    char text[256];

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqErrorStr(entry, text, sizeof(text)), GNI_RC_SUCCESS);
    assert_string_equal(text, "no error");
    assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
    assert_int_equal(recoverable, 1);
}

static void test_text_that_does_not_fit_gives_size_error(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_cq_entry_t entry;
    char whole[256];
    char text[256];
    size_t len;

    (void)state;
    d.remote_addr += GX_BYTES;
    entry = failed_entry(&d);
    assert_int_equal(GNI_CqErrorStr(entry, whole, sizeof(whole)), GNI_RC_SUCCESS);
    len = strlen(whole);
    memset(text, 'x', sizeof(text));
    assert_int_equal(GNI_CqErrorStr(entry, text, 0), GNI_RC_SIZE_ERROR);
    assert_int_equal(GNI_CqErrorStr(entry, text, (uint32_t)len), GNI_RC_SIZE_ERROR);
    assert_true(all_bytes_are(text, 'x', sizeof(text)));
    assert_int_equal(GNI_CqErrorStr(entry, text, (uint32_t)len + 1), GNI_RC_SUCCESS);
    assert_string_equal(text, whole);
}

static void test_every_status_has_a_text_and_only_the_networks_are_recoverable(void **state)
{
    (void)state;
    for (uint64_t status = 0; status < STATUS_END; status++) {
        bool can_repeat = status == STATUS_OK || status == STATUS_NETWORK || status == STATUS_RETRANSMIT_LIMIT;
        gni_cq_entry_t entry = 1ull << 56 | status << 48;
        uint32_t recoverable = 77;
        char text[256];

        assert_int_equal(GNI_CQ_GET_STATUS(entry), status);
        assert_int_equal(GNI_CqErrorStr(entry, text, sizeof(text)), GNI_RC_SUCCESS);
        assert_true(strlen(text) > 0);
        assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
        assert_int_equal(recoverable, can_repeat);
    }
}

static void test_unknown_status_gives_invalid_state(void **state)
{
    gni_cq_entry_t entry = 1ull << 56 | 200ull << 48;
    uint32_t recoverable = 77;
    char text[256];

    (void)state;
    assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_INVALID_STATE);
    assert_int_equal(recoverable, 77);
    assert_int_equal(GNI_CqErrorStr(entry, text, sizeof(text)), GNI_RC_SUCCESS);
}

static void test_overrun_word_has_a_text_and_is_not_recoverable(void **state)
{
    gni_mem_handle_t handle;
    uint32_t recoverable = 77;
    gni_cq_entry_t entry;
    gni_cq_handle_t cq;
    char text[256];

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(b.mem), 4096, cq, 0, (uint32_t)-1, &handle), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

        d.remote_mem_hndl = handle;
        assert_int_equal(run(&d), STATUS_OK);
    }
    assert_int_equal(GNI_CqGetEvent(cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqGetEvent(cq, &entry), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CqErrorStr(entry, text, sizeof(text)), GNI_RC_SUCCESS);
    assert_string_not_equal(text, "no error");
    assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
    assert_int_equal(recoverable, 0);
    GNI_MemDeregister(b.nic, &handle);
    GNI_CqDestroy(cq);
}

static void test_texts_refuse_null_pointers(void **state)
{
    (void)state;
    assert_int_equal(GNI_CqErrorStr(1, NULL, 100), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqErrorRecoverable(1, NULL), GNI_RC_INVALID_PARAM);
}

/* ---- handles that are none ---- */

/* Every call that takes a handle of the kind, with one that is not live. */
static void expect_dead_cdm(gni_cdm_handle_t cdm)
{
    gni_nic_handle_t nic;
    uint32_t word;

    assert_int_equal(GNI_CdmAttach(cdm, 0, &word, &nic), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmCheckpoint(cdm), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmResume(cdm), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_INVALID_PARAM);
}

static void expect_dead_nic(gni_nic_handle_t nic)
{
    gni_mem_segment_t segment = { ADDR(a.mem), 4096 };
    gni_mem_handle_t handle = a.mem_hndl;
    gni_err_handle_t err;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    uint64_t wide[2];
    uint32_t word;

    assert_int_equal(GNI_EpCreate(nic, NULL, &ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqCreate(nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegister(nic, ADDR(a.mem), 4096, NULL, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegisterSegments(nic, &segment, 1, NULL, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetMddResources(nic, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemDeregister(nic, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemQueryHndls(nic, -1, &handle, &wide[0], &wide[1]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetNicStat(nic, GNI_STAT_SMSG_DLA_STALL, &word), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ResetNicStat(nic, GNI_STAT_SMSG_DLA_STALL), GNI_RC_INVALID_PARAM);
    if (nic) /* NULL is the privileged form */
        assert_int_equal(GNI_SubscribeErrors(nic, 0, 0xff, 0, &err), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostDataProbe(nic, &word, &word), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostDataProbeById(nic, &wide[0]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostdataProbeWaitById(nic, 0, &wide[0]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSetDeliveryMode(nic, GNI_DLVMODE_PERFORMANCE), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSetMaxRetrans(nic, 1), GNI_RC_INVALID_PARAM);
}

static void expect_dead_ep(gni_ep_handle_t ep)
{
    gni_post_descriptor_t put = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t rdma = word_post(GNI_POST_RDMA_PUT, 0);
    gni_post_descriptor_t write = word_post(GNI_POST_CQWRITE, 0);
    gni_smsg_attr_t attr = { .msg_type = GNI_SMSG_TYPE_MBOX };
    gni_post_state_t post_state;
    uint32_t words[2];
    void *message;
    uint8_t tag = GNI_SMSG_ANY_TAG;

    assert_int_equal(GNI_EpSetEventData(ep, 1, 2), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpBind(ep, 1, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpUnbind(ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpIdle(ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostFma(ep, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostRdma(ep, &rdma), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostCqWrite(ep, &write), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostFma(ep, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(ep, &write), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostData(ep, NULL, 0, NULL, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWId(ep, NULL, 0, NULL, 0, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataTest(ep, &post_state, &words[0], &words[1]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataTestById(ep, 1, &post_state, &words[0], &words[1]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWait(ep, 1, &post_state, &words[0], &words[1]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWaitById(ep, 1, 1, &post_state, &words[0], &words[1]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataCancel(ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataCancelById(ep, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgInit(ep, &attr, &attr), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSend(ep, NULL, 0, NULL, 0, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSendWTag(ep, NULL, 0, NULL, 0, 1, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNext(ep, &message), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNextWTag(ep, &message, &tag), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgRelease(ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_INVALID_PARAM);
}

static void expect_dead_cq(gni_cq_handle_t cq)
{
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_mem_handle_t handle;
    gni_ep_handle_t ep;
    uint32_t which;

    if (cq) { /* NULL is allowed there */
        assert_int_equal(GNI_EpCreate(a.nic, cq, &ep), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_MemRegister(a.nic, ADDR(a.mem), 4096, cq, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
    }
    assert_int_equal(GNI_CqGetEvent(cq, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqTestEvent(cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqWaitEvent(cq, 0, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorWaitEvent(&cq, 1, 0, &entry, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorMonitor(&cq, 1, 0, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqInterruptMask(cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqInterruptUnmask(cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetCompleted(cq, 1, &done), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_INVALID_PARAM);
}

static void test_null_handles_are_refused_everywhere(void **state)
{
    (void)state;
    expect_dead_cdm(NULL);
    expect_dead_nic(NULL);
    expect_dead_ep(NULL);
    expect_dead_cq(NULL);
}

static void test_handles_of_another_kind_are_refused_everywhere(void **state)
{
    (void)state;
    expect_dead_cdm((gni_cdm_handle_t)(void *)a.nic);
    expect_dead_nic((gni_nic_handle_t)(void *)a.ep);
    expect_dead_ep((gni_ep_handle_t)(void *)a.src_cq);
    expect_dead_cq((gni_cq_handle_t)(void *)a.cdm);
}

static void test_made_up_handles_are_refused_everywhere(void **state)
{
    static const uint64_t words[] = { 1, 0xdeadbeef, UINT64_MAX, 0x7fffffffffff };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        void *word = (void *)(uintptr_t)words[i];

        expect_dead_cdm(word);
        expect_dead_nic(word);
        expect_dead_ep(word);
        expect_dead_cq(word);
    }
    expect_dead_ep((gni_ep_handle_t)(void *)&fx);
}

static void test_stale_handles_are_refused_everywhere(void **state)
{
    struct gx_side gone;
    gni_ep_handle_t ep;

    (void)state;
    gx_open(&gone, &fx, 0, 20, 0);
    assert_int_equal(GNI_EpCreate(gone.nic, gone.src_cq, &ep), GNI_RC_SUCCESS);
    gx_close(&gone);
    expect_dead_cdm(gone.cdm);
    expect_dead_nic(gone.nic);
    expect_dead_ep(ep);
    expect_dead_cq(gone.src_cq);
}

/* ---- what kills ---- */

/* Runs body in a child and returns the signal that ended it, or 0. */
static int signal_of(void (*body)(uint32_t modes), uint32_t modes)
{
    int status = 0;
    pid_t child;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(modes);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void fail_a_put(uint32_t modes)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_cq_entry_t entry = 0;
    gni_post_descriptor_t d;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    gni_return_t rc;
    uint32_t addr;

    fx_set_node(0);
    FX_CHECK(GNI_CdmCreate(1, (uint8_t)fx.ptag, fx.cookie, modes, &cdm) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmAttach(cdm, 0, &addr, &nic) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpCreate(nic, cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, addr, 1) == GNI_RC_SUCCESS);
    d = (gni_post_descriptor_t){ .type = GNI_POST_FMA_PUT,
                                 .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                 .remote_mem_hndl = { 99ull << 52 | 1, 1 },
                                 .remote_addr = 4096 };
    FX_CHECK(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
    do {
        rc = GNI_CqGetEvent(cq, &entry);
    } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    FX_CHECK(rc == GNI_RC_TRANSACTION_ERROR);
}

static void test_failed_transaction_kills_only_who_asked_for_it(void **state)
{
    (void)state;
    assert_int_equal(signal_of(fail_a_put, 0), 0);
    assert_int_equal(signal_of(fail_a_put, GNI_CDM_MODE_ERR_NO_KILL), 0);
    assert_int_equal(signal_of(fail_a_put, GNI_CDM_MODE_ERR_ALL_KILL), SIGKILL);
    assert_int_equal(signal_of(fail_a_put, GNI_CDM_MODE_ERR_ALL_KILL | GNI_CDM_MODE_ERR_NO_KILL), 0);
}

/* ---- a NIC that goes away ---- */

static struct fx doomed;

static void end_emunic_of(const struct fx *server)
{
    int status;

    fx_needs_emunic();
    kill(server->daemon, SIGKILL);
    waitpid(server->daemon, &status, 0);
}

static int open_doomed(void **state)
{
    (void)state;
    fx_start(&doomed, NULL);
    fx_set_routed(&doomed, true); /* so that posts can be held back */
    gx_open(&a, &doomed, 0, 10, 0);
    gx_open(&b, &doomed, 1, 11, 0);
    gx_connect(&a, &b);
    return 0;
}

static int close_doomed(void **state)
{
    (void)state;
    gx_close(&a);
    gx_close(&b);
    fx_stop(&doomed);
    fx_use(&fx);
    return 0;
}

static void test_posts_under_way_fail_when_the_nic_goes(void **state)
{
    gni_post_descriptor_t d[6];
    uint32_t recoverable = 0;
    gni_cq_entry_t entry = 0;
    unsigned seen = 0;
    int status;

    (void)state;
    fx_needs_emunic();
    assert_int_equal(kill(doomed.daemon, SIGSTOP), 0);
    assert_int_equal(waitpid(doomed.daemon, &status, WUNTRACED), doomed.daemon);
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        d[i] = word_post(i % 2 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_GET, 8 * i);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    end_emunic_of(&doomed);
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        gni_post_descriptor_t *done = NULL;

        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_CQ_GET_STATUS(entry), STATUS_NETWORK);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
        assert_true(done >= d && done < d + COUNT_OF(d));
        assert_false(seen & 1u << (done - d)); /* each once */
        seen |= 1u << (done - d);
        assert_int_equal(done->status, STATUS_NETWORK);
    }
    assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
    assert_int_equal(recoverable, 1);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_entries_from_before_the_loss_are_delivered_first(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    while (GNI_CqTestEvent(a.src_cq) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        ;
    end_emunic_of(&doomed);
    assert_int_equal(finish(&d), STATUS_OK);
}

static void test_lost_nic_is_told_by_every_poll_and_post(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_cq_entry_t entry;

    (void)state;
    end_emunic_of(&doomed);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(gx_next(a.dst_cq, &entry), GNI_RC_TRANSACTION_ERROR);
        assert_int_not_equal(entry, 0);
        assert_int_equal(GNI_CQ_GET_STATUS(entry), STATUS_NETWORK);
    }
    assert_int_equal(GNI_CqTestEvent(a.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_NETWORK);
}

static void test_new_objects_need_a_living_nic(void **state)
{
    gni_mem_handle_t handle;
    gni_cq_handle_t cq;

    (void)state;
    end_emunic_of(&doomed);
    assert_int_equal(GNI_CqCreate(a.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_MemRegister(a.nic, ADDR(a.mem), 4096, NULL, 0, (uint32_t)-1, &handle), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_MemDeregister(a.nic, &a.mem_hndl), GNI_RC_SUCCESS);
}

static void lose_the_nic(uint32_t modes)
{
    gni_cq_entry_t entry = 0;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    uint32_t addr;

    fx_set_node(0);
    FX_CHECK(GNI_CdmCreate(1, (uint8_t)doomed.ptag, doomed.cookie, modes, &cdm) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmAttach(cdm, 0, &addr, &nic) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) == GNI_RC_SUCCESS);
    kill(doomed.daemon, SIGKILL);
    FX_CHECK(gx_next(cq, &entry) == GNI_RC_TRANSACTION_ERROR);
}

static void test_lost_nic_kills_who_did_not_say_otherwise(void **state)
{
    (void)state;
    fx_needs_emunic();
    fx_start(&doomed, NULL);
    assert_int_equal(signal_of(lose_the_nic, 0), SIGKILL);
    fx_stop(&doomed);
    fx_start(&doomed, NULL);
    assert_int_equal(signal_of(lose_the_nic, GNI_CDM_MODE_ERR_NO_KILL), 0);
    fx_stop(&doomed);
    fx_use(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_failed_transactions_have_a_text_and_cannot_be_repeated),
        pair_test(test_good_entry_says_no_error_and_recoverable),
        pair_test(test_text_that_does_not_fit_gives_size_error),
        cmocka_unit_test(test_every_status_has_a_text_and_only_the_networks_are_recoverable),
        cmocka_unit_test(test_unknown_status_gives_invalid_state),
        exact_pair_test(test_overrun_word_has_a_text_and_is_not_recoverable),
        cmocka_unit_test(test_texts_refuse_null_pointers),
        pair_test(test_null_handles_are_refused_everywhere),
        pair_test(test_handles_of_another_kind_are_refused_everywhere),
        pair_test(test_made_up_handles_are_refused_everywhere),
        pair_test(test_stale_handles_are_refused_everywhere),
        cmocka_unit_test(test_failed_transaction_kills_only_who_asked_for_it),
        cmocka_unit_test_setup_teardown(test_posts_under_way_fail_when_the_nic_goes, open_doomed, close_doomed),
        cmocka_unit_test_setup_teardown(test_entries_from_before_the_loss_are_delivered_first, open_doomed,
                                        close_doomed),
        cmocka_unit_test_setup_teardown(test_lost_nic_is_told_by_every_poll_and_post, open_doomed, close_doomed),
        cmocka_unit_test_setup_teardown(test_new_objects_need_a_living_nic, open_doomed, close_doomed),
        cmocka_unit_test(test_lost_nic_kills_who_did_not_say_otherwise),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
