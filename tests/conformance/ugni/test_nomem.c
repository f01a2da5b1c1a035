/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Out of memory. Each call that can say ERROR_NOMEM is made again and again while its first, second, third ...
 * allocation fails, in the library and in emunic, until none is left to fail. A call that fails says ERROR_NOMEM, has
 * done nothing and works when it is made once more; an allocation that the call can do without may fail unnoticed. What
 * a failed call would leak is found by the sanitized build.
 *
 * This program links libugni.a and emunic, and the linker leads their allocations through the wrappers below (--wrap).
 * Specification: spec/ugni.md 4, ERROR_NOMEM.
 */
#include <errno.h>

#include "tests/conformance/mailbox.h"
#include "tests/conformance/pair.h"
#include "tests/conformance/tree.h"

#define ATTEMPTS_MAX 100u

/* ---- allocations that fail ---- */

static struct {
    _Atomic pid_t victim; /* process whose allocations are counted; 0 nobody's */
    _Atomic int left;     /* the one that makes it 0 fails */
} * fault;                /* shared with emunic */

static bool fails_now(void)
{
    return fault && atomic_load(&fault->victim) == getpid() && atomic_fetch_sub(&fault->left, 1) == 1;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__real_emu_pages_take(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_emu_pages_take(size_t bytes);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *__wrap_malloc(size_t bytes)
{
    return fails_now() ? no_memory() : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return fails_now() ? no_memory() : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fails_now() ? no_memory() : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails_now() ? no_memory() : __real_aligned_alloc(alignment, bytes);
}

void *__wrap_emu_pages_take(size_t bytes)
{
    return fails_now() ? no_memory() : __real_emu_pages_take(bytes);
}

static void arm(pid_t victim, unsigned number)
{
    atomic_store(&fault->left, (int)number);
    atomic_store(&fault->victim, victim);
}

/* Has one failed? */
static bool disarm(void)
{
    atomic_store(&fault->victim, 0);
    return atomic_load(&fault->left) <= 0;
}

/* ---- the loop ---- */

/* A call under test and how to take its success back. */
struct subject {
    gni_return_t (*call)(void);
    void (*undo)(void);
};

/* Fails every allocation of that process in turn. Returns how many of them made the call fail. */
static unsigned fail_each_allocation(const struct subject *s, pid_t victim)
{
    unsigned n_failures = 0;

    for (unsigned n = 1; n < ATTEMPTS_MAX; n++) {
        gni_return_t rc;
        bool has_failed;

        arm(victim, n);
        rc = s->call();
        has_failed = disarm();
        if (rc != GNI_RC_SUCCESS) {
            /* An emunic that cannot take a connection hangs up. */
            assert_true(rc == GNI_RC_ERROR_NOMEM || (victim != getpid() && rc == GNI_RC_ERROR_RESOURCE));
            assert_true(has_failed);
            n_failures++;
            continue;
        }
        s->undo();
        if (!has_failed)
            return n_failures;
    }
    fail_msg("still failing after %u allocations", ATTEMPTS_MAX);
    return 0;
}

static void expect_failures(const struct subject *s, pid_t victim)
{
    assert_true(fail_each_allocation(s, victim) > 0);
}

/* ---- domains ---- */

static gni_cdm_handle_t cdm;
static gni_nic_handle_t nic;

static gni_return_t create_cdm(void)
{
    return GNI_CdmCreate(30, (uint8_t)fx.ptag, fx.cookie, GNI_CDM_MODE_ERR_NO_KILL, &cdm);
}

static void destroy_cdm(void)
{
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
}

/* covers: GNI_CdmCreate: GNI_RC_ERROR_NOMEM */
static void test_creating_a_domain(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ create_cdm, destroy_cdm }, getpid());
}

static gni_return_t attach(void)
{
    uint32_t addr = 99;
    gni_return_t rc = GNI_CdmAttach(cdm, 0, &addr, &nic);

    if (rc != GNI_RC_SUCCESS)
        assert_int_equal(addr, 99);
    return rc;
}

/* A domain attaches once: the next attempt takes another. */
static void attach_anew(void)
{
    destroy_cdm();
    assert_int_equal(create_cdm(), GNI_RC_SUCCESS);
}

/* covers: GNI_CdmAttach: GNI_RC_ERROR_NOMEM */
static void test_attaching(void **state)
{
    (void)state;
    fx_set_node(0);
    assert_int_equal(create_cdm(), GNI_RC_SUCCESS);
    expect_failures(&(struct subject){ attach, attach_anew }, getpid());
    destroy_cdm();
}

static void test_attaching_while_emunic_has_no_memory(void **state)
{
    (void)state;
    fx_set_node(0);
    assert_int_equal(create_cdm(), GNI_RC_SUCCESS);
    expect_failures(&(struct subject){ attach, attach_anew }, fx.daemon);
    destroy_cdm();
}

/* ---- end points and datagrams ---- */

static gni_ep_handle_t ep;

static gni_return_t create_ep(void)
{
    return GNI_EpCreate(a.nic, NULL, &ep);
}

static void destroy_ep(void)
{
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

/* covers: GNI_EpCreate: GNI_RC_ERROR_NOMEM */
static void test_creating_an_end_point(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ create_ep, destroy_ep }, getpid());
}

static gni_return_t post_datagram(void)
{
    return GNI_EpPostData(a.ep, "x", 1, NULL, 0);
}

static gni_return_t post_datagram_with_id(void)
{
    return GNI_EpPostDataWId(a.ep, "x", 1, NULL, 0, 1);
}

static void collect_datagram(void)
{
    gni_post_state_t post_state = GNI_POST_PENDING;

    assert_int_equal(GNI_EpPostDataCancel(a.ep), GNI_RC_SUCCESS);
    if (GNI_EpPostDataTest(a.ep, &post_state, NULL, NULL) == GNI_RC_NO_MATCH)
        assert_int_equal(GNI_EpPostDataTestById(a.ep, 1, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_TERMINATED);
}

/* covers: GNI_EpPostData: GNI_RC_ERROR_NOMEM; covers: GNI_EpPostDataWId: GNI_RC_ERROR_NOMEM */
static void test_posting_datagrams_while_emunic_has_no_memory(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ post_datagram, collect_datagram }, fx.daemon);
    expect_failures(&(struct subject){ post_datagram_with_id, collect_datagram }, fx.daemon);
    assert_int_equal(fail_each_allocation(&(struct subject){ post_datagram, collect_datagram }, getpid()), 0);
}

/* ---- memory and queues ---- */

static uint8_t *buffer;
static gni_mem_handle_t handle;
static gni_cq_handle_t cq;

static gni_return_t register_buffer(void)
{
    return GNI_MemRegister(a.nic, ADDR(buffer), 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle);
}

static void deregister_buffer(void)
{
    gni_dev_res_desc_t figures;

    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    /* Asking for figures gives back what the library keeps of it, so that the next registration is a whole one. */
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &figures), GNI_RC_SUCCESS);
}

/* covers: GNI_MemRegister: GNI_RC_ERROR_NOMEM */
static void test_registering_memory(void **state)
{
    (void)state;
    buffer = pages(4096);
    memcpy(buffer, "what was there", 15);
    expect_failures(&(struct subject){ register_buffer, deregister_buffer }, getpid());
    expect_failures(&(struct subject){ register_buffer, deregister_buffer }, fx.daemon);
    assert_string_equal(buffer, "what was there");
    munmap(buffer, 4096);
}

static gni_return_t create_cq(void)
{
    return GNI_CqCreate(a.nic, 64, 0, GNI_CQ_BLOCKING, NULL, NULL, &cq);
}

static void destroy_cq(void)
{
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
}

/* covers: GNI_CqCreate: GNI_RC_ERROR_NOMEM */
static void test_creating_a_queue(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ create_cq, destroy_cq }, getpid());
    fail_each_allocation(&(struct subject){ create_cq, destroy_cq }, fx.daemon);
}

static gni_comp_chan_handle_t channel;

static gni_return_t create_channel(void)
{
    return GNI_CompChanCreate(a.nic, &channel);
}

static void destroy_channel(void)
{
    assert_int_equal(GNI_CompChanDestroy(channel), GNI_RC_SUCCESS);
}

/* covers: GNI_CompChanCreate: GNI_RC_ERROR_NOMEM */
static void test_creating_a_channel(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ create_channel, destroy_channel }, getpid());
}

/* ---- messages ---- */

static struct mailbox box_a, box_b;

static gni_return_t init_smsg(void)
{
    return GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr);
}

static void unbind(void)
{
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
}

/* covers: GNI_SmsgInit: GNI_RC_ERROR_NOMEM */
static void test_connecting_mailboxes(void **state)
{
    (void)state;
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 100, 0);
    mb_open(&box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 100, 0);
    expect_failures(&(struct subject){ init_smsg, unbind }, getpid());
    mb_close(&box_a);
    mb_close(&box_b);
}

static int receive(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    (void)snd_id;
    (void)snd_pe;
    (void)msg;
    (void)msg_tag;
    (void)cb_data;
    return 0;
}

static gni_msgq_handle_t msgq;

static gni_return_t init_msgq(void)
{
    gni_msgq_attr_t attrs = { .max_msg_sz = 64,
                              .smsg_q_sz = 4,
                              .rcv_pool_sz = 4,
                              .num_msgq_eps = 1,
                              .nloc_insts = 1,
                              .modes = 0,
                              .rcv_cq_sz = 16 };

    return GNI_MsgqInit(a.nic, receive, NULL, a.src_cq, &attrs, &msgq);
}

static void release_msgq(void)
{
    assert_int_equal(GNI_MsgqRelease(msgq), GNI_RC_SUCCESS);
}

/* covers: GNI_MsgqInit: GNI_RC_ERROR_NOMEM */
static void test_making_a_shared_queue(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ init_msgq, release_msgq }, getpid());
    expect_failures(&(struct subject){ init_msgq, release_msgq }, fx.daemon);
}

static gni_return_t register_segments(void)
{
    gni_mem_segment_t segments[2] = { { ADDR(buffer), 4096 }, { ADDR(buffer) + 8192, 4096 } };

    return GNI_MemRegisterSegments(a.nic, segments, 2, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle);
}

/* covers: GNI_MemRegisterSegments: GNI_RC_ERROR_NOMEM */
static void test_registering_segments(void **state)
{
    (void)state;
    buffer = pages(3 * 4096);
    expect_failures(&(struct subject){ register_segments, deregister_buffer }, getpid());
    expect_failures(&(struct subject){ register_segments, deregister_buffer }, fx.daemon);
    munmap(buffer, 3 * 4096);
}

/* ---- jobs ---- */

static gni_ntt_entry_t ntt_entry;
static gni_ntt_descriptor_t ntt = { .group_size = 1, .u.table_v2 = &ntt_entry };
static uint32_t ntt_base;
static unsigned job_number = 1; /* a job that nobody attaches to stays: each attempt makes another */

static gni_return_t configure_ntt(void)
{
    return GNI_ConfigureNTT(0, &ntt, &ntt_base);
}

static gni_return_t configure_job(void)
{
    return GNI_ConfigureJob(0, 500 + job_number, (uint8_t)(100 + job_number), 500 + job_number, NULL);
}

static gni_return_t configure_both(void)
{
    return GNI_ConfigureNTTandJob(0, 500 + job_number, (uint8_t)(100 + job_number), 500 + job_number, NULL, &ntt,
                                  &ntt_base);
}

static void take_next_job(void)
{
    job_number++;
}

static void clear_ntt(void)
{
    gni_ntt_descriptor_t clear = { .group_size = 1 };

    assert_int_equal(GNI_ConfigureNTT(0, &clear, &ntt_base), GNI_RC_SUCCESS);
}

/*
 * An emunic that hangs up at once is also what a caller without privilege meets.
 * covers: GNI_ConfigureNTT: GNI_RC_ERROR_NOMEM; covers: GNI_ConfigureJob: GNI_RC_ERROR_NOMEM;
 * covers: GNI_ConfigureNTTandJob: GNI_RC_ERROR_NOMEM
 */
static void test_configuring_jobs_while_emunic_has_no_memory(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ configure_ntt, clear_ntt }, fx.daemon);
    expect_failures(&(struct subject){ configure_job, take_next_job }, fx.daemon);
    expect_failures(&(struct subject){ configure_both, take_next_job }, fx.daemon);
}

/* ---- engines, error events ---- */

static gni_ce_handle_t ce;
static struct tree tree;
static gni_err_handle_t err;

static gni_return_t create_engine(void)
{
    return GNI_CeCreate(a.nic, &ce);
}

static void destroy_engine(void)
{
    assert_int_equal(GNI_CeDestroy(ce), GNI_RC_SUCCESS);
}

/* covers: GNI_CeCreate: GNI_RC_ERROR_NOMEM */
static void test_creating_an_engine(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ create_engine, destroy_engine }, getpid());
    expect_failures(&(struct subject){ create_engine, destroy_engine }, fx.daemon);
}

static void make_tree(void)
{
    tree_add_engine(&tree, &a, NO_PARENT);
    tree_add_leaf(&tree, &a, 0);
    tree_add_leaf(&tree, &b, 0);
    tree_create(&tree);
}

static gni_return_t configure_engine(void)
{
    return tree_configure(&tree.engines[0]);
}

static void make_another_tree(void)
{
    tree_drop(&tree);
    make_tree();
}

/* covers: GNI_CeConfigure: GNI_RC_ERROR_NOMEM */
static void test_configuring_an_engine_while_emunic_has_no_memory(void **state)
{
    (void)state;
    make_tree();
    expect_failures(&(struct subject){ configure_engine, make_another_tree }, fx.daemon);
    tree_drop(&tree);
}

static gni_return_t subscribe(void)
{
    return GNI_SubscribeErrors(a.nic, 0, GNI_ERRMASK_CRITICAL, 0, &err);
}

static void release(void)
{
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

/* covers: GNI_SubscribeErrors: GNI_RC_ERROR_NOMEM */
static void test_subscribing_to_errors(void **state)
{
    (void)state;
    expect_failures(&(struct subject){ subscribe, release }, getpid());
    expect_failures(&(struct subject){ subscribe, release }, fx.daemon);
}

/* ---- chains ---- */

static gni_post_descriptor_t head;
static gni_ct_put_post_descriptor_t put;
static gni_ct_cqw_post_descriptor_t write_element;

static gni_return_t post_puts(void)
{
    head = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    put = (gni_ct_put_post_descriptor_t){ .ep_hndl = a.ep,
                                          .remote_addr = ADDR(b.mem) + 8,
                                          .remote_mem_hndl = b.mem_hndl,
                                          .length = 8,
                                          .local_addr = ADDR(a.mem) + 8 };
    head.next_descr = &put;
    return GNI_CtPostFma(a.ep, &head);
}

static gni_return_t post_writes(void)
{
    head = word_post(GNI_POST_CQWRITE, 0);
    write_element = (gni_ct_cqw_post_descriptor_t){ .ep_hndl = a.ep, .remote_mem_hndl = b.mem_hndl };
    head.next_descr = &write_element;
    return GNI_CtPostCqWrite(a.ep, &head);
}

static void finish_chain(void)
{
    assert_int_equal(finish(&head), STATUS_OK);
}

/* covers: GNI_CtPostFma: GNI_RC_ERROR_NOMEM; covers: GNI_CtPostCqWrite: GNI_RC_ERROR_NOMEM */
static void test_posting_chains(void **state)
{
    gni_post_descriptor_t first = word_post(GNI_POST_FMA_PUT, 64);
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(run(&first), STATUS_OK); /* memory for slots is another matter: below */
    memset(a.mem, 1, 16);
    expect_failures(&(struct subject){ post_puts, finish_chain }, getpid());
    assert_true(all_bytes_are(b.mem, 1, 16));
    expect_failures(&(struct subject){ post_writes, finish_chain }, getpid());
    while (GNI_CqGetEvent(b.dst_cq, &entry) == GNI_RC_SUCCESS)
        continue;
}

/*
 * A post that finds no memory goes another way or is refused as one that finds no slot; a program that tries again gets
 * through.
 */
static void test_first_post_without_memory_can_be_repeated(void **state)
{
    bool has_failed = true;

    for (unsigned n = 1; has_failed && n < ATTEMPTS_MAX; n++) {
        gni_post_descriptor_t d;
        gni_return_t rc;

        open_pair(state);
        d = word_post(GNI_POST_RDMA_PUT, 0);
        a.mem[0] = (uint8_t)n;
        arm(getpid(), n);
        rc = GNI_PostRdma(a.ep, &d);
        has_failed = disarm();
        if (rc == GNI_RC_ERROR_RESOURCE) {
            assert_true(has_failed);
            rc = GNI_PostRdma(a.ep, &d);
        }
        assert_int_equal(rc, GNI_RC_SUCCESS);
        assert_int_equal(finish(&d), STATUS_OK);
        assert_int_equal(b.mem[0], n);
        close_pair(state);
    }
    assert_false(has_failed);
}

/* The first message of a source queue takes memory too: refused like one without credit, then it goes. */
static void test_first_message_without_memory_can_be_repeated(void **state)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    (void)state;
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 100, 0);
    mb_open(&box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 100, 0);
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr), GNI_RC_SUCCESS);
    arm(getpid(), 1);
    rc = GNI_SmsgSend(a.ep, "abc", 4, NULL, 0, 7);
    assert_true(disarm());
    assert_int_equal(rc, GNI_RC_NOT_DONE);
    assert_int_equal(GNI_SmsgSend(a.ep, "abc", 4, NULL, 0, 7), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 7);
    mb_close(&box_a);
    mb_close(&box_b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creating_a_domain),
        cmocka_unit_test(test_attaching),
        cmocka_unit_test(test_attaching_while_emunic_has_no_memory),
        pair_test(test_creating_an_end_point),
        pair_test(test_posting_datagrams_while_emunic_has_no_memory),
        pair_test(test_registering_memory),
        pair_test(test_creating_a_queue),
        pair_test(test_creating_a_channel),
        pair_test(test_connecting_mailboxes),
        pair_test(test_making_a_shared_queue),
        pair_test(test_registering_segments),
        pair_test(test_configuring_jobs_while_emunic_has_no_memory),
        pair_test(test_creating_an_engine),
        pair_test(test_configuring_an_engine_while_emunic_has_no_memory),
        pair_test(test_subscribing_to_errors),
        pair_test(test_posting_chains),
        cmocka_unit_test(test_first_post_without_memory_can_be_repeated),
        pair_test(test_first_message_without_memory_can_be_repeated),
    };

    fault = mmap(NULL, sizeof(*fault), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fault == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
