/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other known programs depend on, each in the way that the program does it: Cray's examples, Charm++, CCI, LDMS,
 * NNTI. docs/generated/ugni-programs.md lists the habits and their tests. Specification: spec/ugni.md 5.5 and
 * Appendix A.2.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/conformance/programs.h"

/* ---- cray's examples ---- */

/* shows: ex-event-ids */
static void test_examples_check_the_event_ids_of_both_queues(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_GET,
                                             GNI_POST_AMO };

    (void)state;
    for (uint32_t i = 0; i < 2 * COUNT_OF(types); i++) {
        bool is_named = i >= COUNT_OF(types);
        gni_post_descriptor_t d = word_post(types[i % COUNT_OF(types)], 0);
        gni_post_descriptor_t *done;
        gni_cq_entry_t entry;

        d.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        if (is_named)
            assert_int_equal(GNI_EpSetEventData(a.ep, 0x1111 + i, 0x2222 + i), GNI_RC_SUCCESS);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_INST_ID(entry), is_named ? 0x1111 + i : b.inst_id);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), is_named ? 0x2222 + i : a.inst_id);
    }
}

/* shows: ex-get-notifies */
static void test_examples_tell_the_owner_of_data_that_were_read(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_GET, 0);
    gni_cq_entry_t entry;

    (void)state;
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    fill(b.mem, 8, 3);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(a.mem, b.mem, 8);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
}

/* shows: ex-error-texts */
static void test_examples_print_a_text_for_every_code(void **state)
{
    (void)state;
    for (int rc = GNI_RC_SUCCESS; rc <= GNI_RC_ERROR_NOMEM; rc++) {
        assert_non_null(gni_err_str[rc]);
        assert_true(strlen(gni_err_str[rc]) > 0);
        for (int other = 0; other < rc; other++)
            assert_string_not_equal(gni_err_str[rc], gni_err_str[other]);
    }
}

/* shows: ex-release */
static void test_examples_may_release_what_they_have_not_got(void **state)
{
    struct channel c;

    (void)state;
    open_channel(&c, 4, 64);
    assert_int_equal(GNI_SmsgRelease(c.ep[1]), GNI_RC_NOT_DONE);
    assert_int_equal(send_number(c.ep[0], 3), GNI_RC_SUCCESS);
    expect_number(c.ep[1], 3);
    assert_int_equal(GNI_SmsgRelease(c.ep[1]), GNI_RC_NOT_DONE);
    mb_drain(a.src_cq);
    close_channel(&c);
}

/* ---- charm++ ---- */

/* A queue write that tells nobody of its end and carries a pointer of 48 bits. shows: charm-pointer */
static void test_charm_silent_write_of_a_pointer(void **state)
{
    const uint64_t pointer = 0x7fffdeadbee0;
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE,
                                .cq_mode = 0,
                                .dlvr_mode = GNI_DLVMODE_IN_ORDER,
                                .cqwrite_value = pointer,
                                .remote_mem_hndl = b.mem_hndl };
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_PostCqWrite(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), pointer);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* The rank comes with the datagram. shows: charm-datagram, charm-retransmission */
static void test_charm_learns_the_rank_of_its_peer_by_datagram(void **state)
{
    gni_post_state_t post_state;
    gni_ep_handle_t wildcard;
    uint32_t address = 0;
    uint32_t rank = 0;
    char card[64] = "my mailbox";
    char got[64] = "";

    (void)state;
    assert_int_equal(GNI_SmsgSetMaxRetrans(a.nic, 4096), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(b.nic, NULL, &wildcard), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(wildcard, card, sizeof(card), got, sizeof(got), 9), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(a.ep, card, sizeof(card), got, sizeof(got)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWaitById(wildcard, 9, 10000, &post_state, &address, &rank), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_int_equal(address, a.nic_addr);
    assert_int_equal(rank, a.inst_id);
    assert_int_equal(GNI_EpPostDataWait(a.ep, 10000, &post_state, &address, &rank), GNI_RC_SUCCESS);
    assert_int_equal(rank, b.inst_id);
    assert_int_equal(GNI_EpDestroy(wildcard), GNI_RC_SUCCESS);
}

/*
 * The peer has its mailbox but has not yet called GNI_SmsgInit; later it sees the entry, or not, and finds the
 * messages. And an entry that was seen twice leads to nothing the second time. shows: charm-early-send, charm-empty,
 * ompi-early-message
 */
static void test_charm_sends_while_its_peer_is_connecting(void **state)
{
    struct mailbox mbs[2];
    gni_ep_handle_t eps[2];
    uint8_t tag = GNI_SMSG_ANY_TAG;
    gni_cq_entry_t entry;
    unsigned n_entries = 0;
    void *message;

    (void)state;
    for (unsigned s = 0; s < 2; s++) {
        struct gx_side *side = s ? &b : &a;

        assert_int_equal(GNI_EpCreate(side->nic, side->src_cq, &eps[s]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(eps[s], s ? a.nic_addr : b.nic_addr, s ? a.inst_id : b.inst_id), GNI_RC_SUCCESS);
        mb_open(&mbs[s], side->nic, side->dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 8, 1024, 0);
    }
    assert_int_equal(GNI_SmsgInit(eps[0], &mbs[0].attr, &mbs[1].attr), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(send_number(eps[0], i), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(eps[1], &mbs[1].attr, &mbs[0].attr), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < 3; i++)
        expect_number(eps[1], i);
    while (GNI_CqGetEvent(b.dst_cq, &entry) == GNI_RC_SUCCESS) {
        n_entries++; /* hints for messages that have been taken */
        assert_int_equal(GNI_SmsgGetNextWTag(eps[1], &message, &tag), GNI_RC_NOT_DONE);
    }
    assert_true(n_entries > 0);
    for (unsigned s = 0; s < 2; s++) {
        assert_int_equal(GNI_EpDestroy(eps[s]), GNI_RC_SUCCESS);
        mb_close(&mbs[s]);
    }
}

/* ---- CCI ---- */

/* Two queues, ten milliseconds. shows: cci-two-queues */
static void test_cci_waits_for_two_queues(void **state)
{
    gni_cq_handle_t cqs[2] = { b.src_cq, b.dst_cq };
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_cq_entry_t entry;
    uint32_t which = 9;

    (void)state;
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, 10, &entry, &which), GNI_RC_TIMEOUT);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, 10, &entry, &which), GNI_RC_SUCCESS);
    assert_int_equal(which, 1);
}

/* shows: cci-event-data */
static void test_cci_names_its_events_before_it_connects(void **state)
{
    struct mailbox mbs[2];
    gni_ep_handle_t eps[2];
    gni_cq_entry_t entry;

    (void)state;
    for (unsigned s = 0; s < 2; s++) {
        struct gx_side *side = s ? &b : &a;

        assert_int_equal(GNI_EpCreate(side->nic, side->src_cq, &eps[s]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(eps[s], s ? a.nic_addr : b.nic_addr, s ? a.inst_id : b.inst_id), GNI_RC_SUCCESS);
        mb_open(&mbs[s], side->nic, side->dst_cq, GNI_SMSG_TYPE_MBOX, 8, 1024, 0);
        assert_int_equal(GNI_EpSetEventData(eps[s], 100 + s, 200 + s), GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_SmsgInit(eps[0], &mbs[0].attr, &mbs[1].attr), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(eps[1], &mbs[1].attr, &mbs[0].attr), GNI_RC_SUCCESS);
    assert_int_equal(send_number(eps[1], 5), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 201);
    expect_number(eps[0], 5);
    mb_drain(b.src_cq);
    for (unsigned s = 0; s < 2; s++) {
        assert_int_equal(GNI_EpDestroy(eps[s]), GNI_RC_SUCCESS);
        mb_close(&mbs[s]);
    }
}

/* shows: cci-tag */
static void test_cci_lets_the_driver_find_the_protection_tag(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    uint32_t address;
    uint8_t ptag = 0;

    (void)state;
    fx_set_node(0);
    assert_int_equal(GNI_CdmCreate(61, GNI_FIND_ALLOC_PTAG, fx.cookie, GNI_CDM_MODE_BTE_SINGLE_CHANNEL, &cdm),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetPtag(0, fx.cookie, &ptag), GNI_RC_SUCCESS);
    assert_int_equal(ptag, fx.ptag);
    assert_int_equal(GNI_CqCreate(nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(nic, cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(post_on(ep, &d), GNI_RC_SUCCESS); /* it is the job's: its memory is within reach */
    assert_int_equal(finish_on(cq, &d), STATUS_OK);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
}

/* ---- LDMS ---- */

/* As root, before it attaches. shows: ldms-job */
static void test_ldms_declares_its_job(void **state)
{
    const uint8_t ptag = 201;
    const uint32_t cookie = 0x1d350000;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t address;

    (void)state;
    fx_needs_emunic();
    fx_set_node(0);
    assert_int_equal(GNI_CdmCreate(1, ptag, cookie, GNI_CDM_MODE_FMA_SHARED, &cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(GNI_ConfigureJob(0, 0, ptag, cookie, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ConfigureJob(0, 0, ptag, cookie, NULL), GNI_RC_SUCCESS); /* once more does nothing */
    assert_int_equal(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
}

struct error_thread {
    gni_err_handle_t errors;
    _Atomic unsigned n;
    _Atomic unsigned n_failed;
};

static void *wait_for_errors(void *arg)
{
    struct error_thread *t = arg;

    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) {
        gni_error_event_t event;
        uint32_t n = 9;
        gni_return_t rc = GNI_WaitErrorEvents(t->errors, &event, 1, 0, &n);

        if (rc == GNI_RC_SUCCESS && n == 1)
            atomic_fetch_add(&t->n, 1);
        else
            atomic_fetch_add(&t->n_failed, 1); /* it would be logged, and tried again at once */
    }
    return NULL;
}

/* shows: ldms-errors */
static void test_ldms_waits_for_errors_one_at_a_time(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    struct error_thread t = { .n = 0 };
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    pthread_t thread;

    (void)state;
    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, 0xff, 64, &t.errors), GNI_RC_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_errors, &t), 0);
    d.remote_addr += 1 << 30;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    while (atomic_load(&t.n) < 5 && emu_clock_ns() < end_ns)
        sched_yield();
    assert_int_equal(atomic_load(&t.n), 5);
    assert_int_equal(atomic_load(&t.n_failed), 0);
    pthread_cancel(thread);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(GNI_ReleaseErrors(t.errors), GNI_RC_SUCCESS);
}

/* Arms before it drains; the channel goes before its queue. shows: ldms-channels, ldms-depth, ldms-entry */
static void test_ldms_sleeps_in_epoll_for_its_queues(void **state)
{
    gni_comp_chan_handle_t chan;
    gni_cq_handle_t cq;
    gni_mem_handle_t handle;
    struct epoll_event event = { .events = EPOLLIN };
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    unsigned n = 0;
    int fd;

    (void)state;
    assert_int_equal(GNI_CompChanCreate(b.nic, &chan), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanFd(chan, &fd), GNI_RC_SUCCESS);
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
    assert_int_equal(GNI_CqCreate(b.nic, 65536, 0, GNI_CQ_BLOCKING, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqAttachCompChan(cq, chan), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(b.mem), 4096, cq, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqArmCompChan(&cq, 1), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 20; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        gni_cq_handle_t ready = NULL;
        gni_cq_entry_t entry;

        d.remote_mem_hndl = handle;
        d.dlvr_mode = GNI_DLVMODE_IN_ORDER;
        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(epoll_wait(epoll_fd, &event, 1, 10000), 1);
        assert_int_equal(GNI_CompChanGetEvent(chan, &ready), GNI_RC_SUCCESS);
        assert_ptr_equal(ready, cq);
        assert_int_equal(GNI_CqArmCompChan(&cq, 1), GNI_RC_SUCCESS);
        while (GNI_CqGetEvent(cq, &entry) == GNI_RC_SUCCESS) {
            assert_int_equal(GNI_CQ_GET_STATUS(entry), 0);
            (void)GNI_CQ_GET_SOURCE(entry); /* only printed */
            n++;
        }
        /* Armed before draining: it may tell of what has just been taken. */
        if (epoll_wait(epoll_fd, &event, 1, 0) == 1 && GNI_CompChanGetEvent(chan, &ready) == GNI_RC_SUCCESS)
            assert_int_equal(GNI_CqArmCompChan(&cq, 1), GNI_RC_SUCCESS);
    }
    assert_int_equal(n, 20);
    assert_int_equal(GNI_CompChanDestroy(chan), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    close(epoll_fd);
}

/* ---- NNTI ---- */

/* shows: nnti-wake-up, nnti-delivery */
static void test_nnti_wakes_a_waiter_with_a_source_queue_of_one_entry(void **state)
{
    static const uint16_t modes[] = { GNI_DLVMODE_PERFORMANCE, GNI_DLVMODE_IN_ORDER, GNI_DLVMODE_NO_ADAPT,
                                      GNI_DLVMODE_NO_HASH, GNI_DLVMODE_NO_RADAPT };
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_BLOCKING, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 4 * COUNT_OF(modes); i++) {
        gni_post_descriptor_t put = word_post(GNI_POST_FMA_PUT, 8 * i);
        gni_post_descriptor_t wake = { .type = GNI_POST_CQWRITE,
                                       .cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT,
                                       .dlvr_mode = modes[i % COUNT_OF(modes)],
                                       .cqwrite_value = i,
                                       .remote_mem_hndl = b.mem_hndl };
        gni_cq_entry_t entry;

        put.dlvr_mode = modes[i % COUNT_OF(modes)];
        fill(a.mem + 8 * i, 8, i);
        assert_int_equal(GNI_PostFma(ep, &put), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqWaitEvent(cq, 10000, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_GetCompleted(cq, entry, &(gni_post_descriptor_t *){ NULL }), GNI_RC_SUCCESS);
        assert_int_equal(GNI_PostCqWrite(ep, &wake), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 10000, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_DATA(entry), i);
        assert_memory_equal(b.mem + 8 * i, a.mem + 8 * i, 8);
        assert_int_equal(finish_on(cq, &wake), STATUS_OK);
    }
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
}

/* Functions behind the macros. shows: nnti-accessors */
static void test_nnti_traces_entries_by_the_functions(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    struct channel c;
    gni_cq_entry_t entry;

    (void)state;
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_true(gni_cq_get_data(entry) == GNI_CQ_GET_DATA(entry));
    assert_true(gni_cq_get_source(entry) == GNI_CQ_GET_SOURCE(entry));
    assert_true(gni_cq_get_status(entry) == 0 && GNI_CQ_STATUS_OK(entry));
    assert_true(gni_cq_get_info(entry) == GNI_CQ_GET_INFO(entry));
    assert_true(gni_cq_get_type(entry) == GNI_CQ_EVENT_TYPE_POST);
    assert_true(gni_cq_get_inst_id(entry) == b.inst_id);
    assert_true(gni_cq_get_tid(entry) == GNI_CQ_GET_TID(entry));
    assert_true(!gni_cq_overrun(entry));
    open_channel(&c, 4, 64);
    assert_int_equal(send_number(c.ep[0], 0x9abcdef0), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_true(gni_cq_get_msg_id(entry) == 0x9abcdef0);
    close_channel(&c);
}

/* ---- codes ---- */

/* shows: code-registration */
static void test_registration_tells_a_limit_from_pages_that_forbid_it(void **state)
{
    uint8_t *mem = pages(4096);
    gni_mem_handle_t handle;

    (void)state;
    fx_needs_emunic();
    fx_add_fault(&fx, "class=registration action=fail live_min=1"); /* a limit that is reached */
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_ERROR_RESOURCE);
    fx_clear_faults(&fx);
    assert_int_equal(mprotect(mem, 4096, PROT_READ), 0);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_PERMISSION_ERROR);
    munmap(mem, 4096);
}

/* shows: code-device */
static void test_device_tells_what_it_does_not_have(void **state)
{
    gni_dev_res_desc_t desc;
    unsigned n_absent = 0;

    (void)state;
    for (int type = GNI_DEV_RES_FIRST + 1; type < GNI_DEV_RES_LAST; type++) {
        gni_return_t rc = GNI_GetDevResInfo(0, (gni_dev_res_t)type, &desc);

        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_ERROR_RESOURCE);
        n_absent += rc == GNI_RC_ERROR_RESOURCE;
    }
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MRT, &desc), GNI_RC_ERROR_RESOURCE); /* a Gemini's */
    assert_true(n_absent < GNI_DEV_RES_LAST - 1);
}

/* shows: code-probe-timeout */
static void test_probe_that_waits_says_timeout(void **state)
{
    uint64_t id = 0;

    (void)state;
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, 10, &id), GNI_RC_TIMEOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_examples_check_the_event_ids_of_both_queues),
        pair_test(test_examples_tell_the_owner_of_data_that_were_read),
        pair_test(test_examples_print_a_text_for_every_code),
        pair_test(test_examples_may_release_what_they_have_not_got),
        pair_test(test_charm_silent_write_of_a_pointer),
        pair_test(test_charm_learns_the_rank_of_its_peer_by_datagram),
        pair_test(test_charm_sends_while_its_peer_is_connecting),
        pair_test(test_cci_waits_for_two_queues),
        pair_test(test_cci_names_its_events_before_it_connects),
        pair_test(test_cci_lets_the_driver_find_the_protection_tag),
        pair_test(test_ldms_declares_its_job),
        pair_test(test_ldms_waits_for_errors_one_at_a_time),
        pair_test(test_ldms_sleeps_in_epoll_for_its_queues),
        exact_pair_test(test_nnti_wakes_a_waiter_with_a_source_queue_of_one_entry),
        pair_test(test_nnti_traces_entries_by_the_functions),
        pair_test(test_registration_tells_a_limit_from_pages_that_forbid_it),
        pair_test(test_device_tells_what_it_does_not_have),
        pair_test(test_probe_that_waits_says_timeout),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
