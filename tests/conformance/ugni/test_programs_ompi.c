/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Open MPI's btl/ugni depends on, each in the way that it does it.
 * docs/generated/ugni-programs.md lists the habits and their tests. Specification: spec/ugni.md 5.1.
 */
#include "tests/conformance/programs.h"

#define OMPI_MODES                                                                                                     \
    (GNI_CDM_MODE_FORK_PARTCOPY | GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_FAST_DATAGRAM_POLL |                         \
     GNI_CDM_MODE_MDD_SHARED | GNI_CDM_MODE_FMA_SHARED | GNI_CDM_MODE_FMA_SMALL_WINDOW)

/* shows: ompi-start-up, ompi-queues */
static void test_open_mpi_starts_up_with_four_virtual_devices(void **state)
{
    static const uint32_t entries[] = { 1024, 8192, 40000, 1024, 40000 };
    gni_cdm_handle_t cdms[4];
    gni_nic_device_t type;
    uint32_t address;
    uint32_t cpu;

    (void)state;
    fx_set_node(0);
    assert_int_equal(GNI_GetDeviceType(&type), GNI_RC_SUCCESS);
    assert_true(type == GNI_DEVICE_ARIES || type == GNI_DEVICE_GEMINI);
    assert_int_equal(GNI_CdmGetNicAddress(0, &address, &cpu), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < COUNT_OF(cdms); i++) {
        uint32_t inst_id = ((uint32_t)getpid() << 8) | i;
        gni_cq_handle_t cqs[COUNT_OF(entries)];
        gni_nic_handle_t nic;
        uint32_t local;

        assert_int_equal(GNI_CdmCreate(inst_id, (uint8_t)fx.ptag, fx.cookie, OMPI_MODES, &cdms[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmAttach(cdms[i], 0, &local, &nic), GNI_RC_SUCCESS);
        assert_int_equal(local, address);
        for (size_t q = 0; q < COUNT_OF(entries); q++)
            assert_int_equal(
                GNI_CqCreate(nic, entries[q], 0, q < 3 ? GNI_CQ_NOBLOCK : GNI_CQ_BLOCKING, NULL, NULL, &cqs[q]),
                GNI_RC_SUCCESS);
        for (size_t q = 0; q < COUNT_OF(entries); q++)
            assert_int_equal(GNI_CqDestroy(cqs[q]), GNI_RC_SUCCESS);
    }
    for (size_t i = 0; i < COUNT_OF(cdms); i++)
        assert_int_equal(GNI_CdmDestroy(cdms[i]), GNI_RC_SUCCESS);
}

/* shows: ompi-modes */
static void test_open_mpi_may_be_told_any_mode(void **state)
{
    static const uint32_t modes[] = {
        GNI_CDM_MODE_FORK_NOCOPY,        GNI_CDM_MODE_FORK_FULLCOPY,          GNI_CDM_MODE_FORK_PARTCOPY,
        GNI_CDM_MODE_ERR_NO_KILL,        GNI_CDM_MODE_ERR_ALL_KILL,           GNI_CDM_MODE_FAST_DATAGRAM_POLL,
        GNI_CDM_MODE_BTE_SINGLE_CHANNEL, GNI_CDM_MODE_USE_PCI_IOMMU,          GNI_CDM_MODE_MDD_DEDICATED,
        GNI_CDM_MODE_MDD_SHARED,         GNI_CDM_MODE_FMA_DEDICATED,          GNI_CDM_MODE_FMA_SHARED,
        GNI_CDM_MODE_CACHED_AMO_ENABLED, GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT, GNI_CDM_MODE_FMA_SMALL_WINDOW,
    };
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t address;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(GNI_CdmCreate(77, (uint8_t)fx.ptag, fx.cookie, modes[i], &cdm), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    }
}

/* End points of a pool: bound before a post, unbound right after its completion. shows: ompi-pool */
static void test_open_mpi_binds_for_one_post(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        gni_post_descriptor_t d = word_post(i % 2 ? GNI_POST_FMA_PUT : GNI_POST_FMA_GET, 8);

        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id | (uint32_t)(i % 3) << 30), GNI_RC_SUCCESS);
    }
}

/* shows: ompi-unregistered, ompi-default-queue, ompi-delivery */
static void test_open_mpi_puts_from_memory_that_nobody_knows(void **state)
{
    uint64_t stack = 0x1122334455667788;
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    d.local_addr = ADDR(&stack);
    d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    d.src_cq_hndl = NULL;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem, &stack, 8);
    d = amo_on_word(GNI_FMA_ATOMIC_ADD, 8, 1, 0);
    d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    d.dlvr_mode = GNI_DLVMODE_NO_ADAPT;
    assert_int_equal(run(&d), STATUS_OK);
    stack++;
    assert_memory_equal(b.mem, &stack, 8);
    d = word_post(GNI_POST_RDMA_PUT, 64);
    d.src_cq_hndl = NULL;
    d.dlvr_mode = GNI_DLVMODE_NO_ADAPT;
    fill(a.mem + 64, 8, 3);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem + 64, a.mem + 64, 8);
}

/* shows: ompi-get */
static void test_open_mpi_gets_in_units_of_four_bytes(void **state)
{
    (void)state;
    fill(b.mem, 4096, 4);
    for (uint64_t size = 1; size <= 1024; size += 13) {
        gni_post_descriptor_t d = gx_put(&a, &b, 4, (size + 3) & ~3ull, GNI_CQMODE_GLOBAL_EVENT);

        d.type = size % 2 ? GNI_POST_FMA_GET : GNI_POST_RDMA_GET;
        d.local_addr = ADDR(a.mem) + 12;
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(a.mem + 12, b.mem + 4, size);
    }
}

/* One turn of its progress function. True: a descriptor is back for good, with or without success. */
static bool ompi_progress(unsigned *tries, bool *failed_out)
{
    gni_post_descriptor_t *d = NULL;
    gni_cq_entry_t event = 77;
    gni_return_t rc = GNI_CqGetEvent(a.src_cq, &event);
    uint32_t recoverable = 1;
    char text[1024];

    if (rc == GNI_RC_NOT_DONE) {
        assert_true(event == 0);
        return false;
    }
    assert_true(event != 0);
    rc = GNI_GetCompleted(a.src_cq, event, &d);
    assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR);
    *failed_out = !GNI_CQ_STATUS_OK(event);
    if (!*failed_out)
        return true;
    assert_int_equal(GNI_CqErrorRecoverable(event, &recoverable), GNI_RC_SUCCESS);
    if (recoverable && ++*tries < 16) {
        assert_int_equal(post(d), GNI_RC_SUCCESS);
        return false;
    }
    assert_int_equal(GNI_CqErrorStr(event, text, sizeof(text)), GNI_RC_SUCCESS);
    assert_true(strlen(text) > 0);
    return true;
}

/* shows: ompi-completion-loop, ompi-repost */
static void test_open_mpi_posts_again_what_failed_on_the_way(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);
    bool failed = true;
    unsigned tries = 0;

    (void)state;
    fx_needs_emunic();
    assert_false(ompi_progress(&tries, &failed));
    fx_add_fault(&fx, "class=bte action=drop count=9");
    fill(a.mem, 8, 6);
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    while (!ompi_progress(&tries, &failed))
        ;
    assert_false(failed);
    assert_int_equal(tries, 9);
    assert_memory_equal(b.mem, a.mem, 8);
    fx_clear_faults(&fx);
    d.remote_addr += 1 << 30; /* and what is wrong in itself is given up at once */
    tries = 0;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    while (!ompi_progress(&tries, &failed))
        ;
    assert_true(failed);
    assert_int_equal(tries, 0);
}

/* shows: ompi-atomics, ompi-cswap-s */
static void test_open_mpi_atomics(void **state)
{
    static const struct amo_row rows[] = {
        { GNI_FMA_ATOMIC_ADD, 8, 5, 3, 0, 8, false },
        { GNI_FMA_ATOMIC_AND, 8, 0xff0f, 0x0ff0, 0, 0x0f00, false },
        { GNI_FMA_ATOMIC_OR, 8, 0xf0, 0x0f, 0, 0xff, false },
        { GNI_FMA_ATOMIC_XOR, 8, 0xff, 0x0f, 0, 0xf0, false },
        { GNI_FMA_ATOMIC_FADD, 8, 5, 3, 0, 8, true },
        { GNI_FMA_ATOMIC_FAND, 8, 0xff0f, 0x0ff0, 0, 0x0f00, true },
        { GNI_FMA_ATOMIC_FOR, 8, 0xf0, 0x0f, 0, 0xff, true },
        { GNI_FMA_ATOMIC_FXOR, 8, 0xff, 0x0f, 0, 0xf0, true },
        { GNI_FMA_ATOMIC_CSWAP, 8, 5, 5, 9, 9, true }, /* first compares, second is new */
        { GNI_FMA_ATOMIC_CSWAP, 8, 5, 6, 9, 5, true },
        { GNI_FMA_ATOMIC2_FSWAP, 8, 5, 7, 0, 7, true },
        { GNI_FMA_ATOMIC2_FIMIN, 8, 5, (uint64_t)-7, 0, (uint64_t)-7, true },
        { GNI_FMA_ATOMIC2_FIMAX, 8, 5, (uint64_t)-7, 0, 5, true },
        { GNI_FMA_ATOMIC2_SWAP, 8, 5, 7, 0, 7, false },
        { GNI_FMA_ATOMIC2_IMIN, 8, 5, 4, 0, 4, false },
        { GNI_FMA_ATOMIC2_IMAX, 8, 5, 6, 0, 6, false },
        { GNI_FMA_ATOMIC2_IADD_S, 4, 0xffffffff, 2, 0, 1, false },
        { GNI_FMA_ATOMIC2_AND_S, 4, 0xff, 0x3c, 0, 0x3c, false },
        { GNI_FMA_ATOMIC2_OR_S, 4, 0xf0, 0x0f, 0, 0xff, false },
        { GNI_FMA_ATOMIC2_XOR_S, 4, 0xff, 0x0f, 0, 0xf0, false },
        { GNI_FMA_ATOMIC2_FIADD_S, 4, 40, 2, 0, 42, true },
        { GNI_FMA_ATOMIC2_FAND_S, 4, 0xff, 0x3c, 0, 0x3c, true },
        { GNI_FMA_ATOMIC2_FOR_S, 4, 0xf0, 0x0f, 0, 0xff, true },
        { GNI_FMA_ATOMIC2_FXOR_S, 4, 0xff, 0x0f, 0, 0xf0, true },
        { GNI_FMA_ATOMIC2_FSWAP_S, 4, 5, 7, 0, 7, true },
        { GNI_FMA_ATOMIC2_FIMIN_S, 4, 5, 0xfffffff9, 0, 0xfffffff9, true },
        { GNI_FMA_ATOMIC2_FIMAX_S, 4, 5, 0xfffffff9, 0, 5, true },
    };
    gni_post_descriptor_t d = amo_on_word(GNI_FMA_ATOMIC2_CSWAP_S, 4, 5, 9);
    uint32_t word = 5;

    (void)state;
    check_amos(rows, COUNT_OF(rows));
    /* With a good local handle; it would like the old value, and has none, as on the original. */
    memcpy(b.mem, &word, sizeof(word));
    memset(a.mem + 64, 0xee, 8);
    assert_int_equal(run(&d), STATUS_OK);
    memcpy(&word, b.mem, sizeof(word));
    assert_int_equal(word, 9);
    assert_true(all_bytes_are(a.mem + 64, 0xee, 8));
}

/* What it sends by datagram. */
struct ompi_card {
    gni_smsg_attr_t attr;
    uint32_t index;
    uint8_t rest[60];
};

struct ompi_peer {
    struct gx_side *side;
    gni_ep_handle_t wildcard;
    gni_ep_handle_t ep;
    struct mailbox mb;
    struct ompi_card out; /* of the directed datagram */
    struct ompi_card in;
    struct ompi_card wildcard_out; /* zeroes: type INVALID */
    struct ompi_card wildcard_in;
    uint64_t id;
    bool is_connected;
    bool is_posted;
    bool owes_answer;
};

static void ompi_post_wildcard(struct ompi_peer *p)
{
    memset(&p->wildcard_out, 0, sizeof(p->wildcard_out));
    assert_int_equal(GNI_EpPostDataWId(p->wildcard, &p->wildcard_out, sizeof(p->wildcard_out), &p->wildcard_in,
                                       sizeof(p->wildcard_in), 0),
                     GNI_RC_SUCCESS);
}

static void ompi_post_directed(struct ompi_peer *p)
{
    gni_return_t rc = GNI_EpPostDataWId(p->ep, &p->out, sizeof(p->out), &p->in, sizeof(p->in), p->id);

    assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_ERROR_RESOURCE);
    p->is_posted = rc == GNI_RC_SUCCESS;
    p->owes_answer = rc != GNI_RC_SUCCESS; /* busy: in the next turn */
}

static void ompi_open_peer(struct ompi_peer *p, struct gx_side *side, const struct gx_side *other, uint32_t index)
{
    memset(p, 0, sizeof(*p));
    p->side = side;
    p->id = 1ull << 63 | index;
    assert_int_equal(GNI_EpCreate(side->nic, NULL, &p->wildcard), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(side->nic, side->src_cq, &p->ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(p->ep, other->nic_addr, other->inst_id), GNI_RC_SUCCESS);
    mb_open(&p->mb, side->nic, side->dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 32, 8192, 0);
    memset(p->mb.mem, 0, p->mb.bytes);
    p->out.attr = p->mb.attr;
    p->out.index = index;
    ompi_post_wildcard(p);
}

static void ompi_connect(struct ompi_peer *p, const struct ompi_card *card)
{
    gni_smsg_attr_t remote = card->attr;

    assert_int_equal(GNI_SmsgInit(p->ep, &p->mb.attr, &remote), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetEventData(p->ep, p->out.index, card->index), GNI_RC_SUCCESS);
    p->is_connected = true;
}

/* One turn of its datagram progress: whatever has completed. */
static void ompi_progress_datagrams(struct ompi_peer *p)
{
    gni_post_state_t post_state;
    uint32_t address;
    uint32_t inst_id;
    uint64_t id;

    if ((!p->is_connected || p->owes_answer) && !p->is_posted)
        ompi_post_directed(p);
    if (GNI_PostDataProbeById(p->side->nic, &id) != GNI_RC_SUCCESS)
        return;
    assert_int_equal(
        GNI_EpPostDataWaitById(id == 0 ? p->wildcard : p->ep, id, (uint32_t)-1, &post_state, &address, &inst_id),
        GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    if (id == 0) {
        /* Reached by the peer's: answer it with one of ours; its card came with it. */
        if (!p->is_connected && p->wildcard_in.attr.msg_type != GNI_SMSG_TYPE_INVALID)
            ompi_connect(p, &p->wildcard_in);
        ompi_post_wildcard(p);
        if (!p->is_posted)
            ompi_post_directed(p);
        return;
    }
    p->is_posted = false;
    /* Else an empty wildcard answered: its owner's directed one will come, or ours goes out again in the next turn. */
    if (!p->is_connected && p->in.attr.msg_type != GNI_SMSG_TYPE_INVALID)
        ompi_connect(p, &p->in);
}

static void ompi_connect_both(struct ompi_peer *x, struct ompi_peer *y)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    while (!(x->is_connected && y->is_connected) && emu_clock_ns() < end_ns) {
        ompi_progress_datagrams(x);
        ompi_progress_datagrams(y);
    }
    assert_true(x->is_connected && y->is_connected);
}

static void ompi_close_peer(struct ompi_peer *p)
{
    assert_int_equal(GNI_EpDestroy(p->wildcard), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(p->ep), GNI_RC_SUCCESS);
    mb_close(&p->mb);
}

/* shows: ompi-connection, ompi-busy, ompi-mailboxes, ompi-instances, ompi-disconnect */
static void test_open_mpi_connects_and_disconnects(void **state)
{
    struct ompi_peer x, y;
    gni_cq_entry_t entry;
    void *message;
    uint8_t tag = GNI_SMSG_ANY_TAG;

    (void)state;
    assert_int_equal(GNI_SmsgSetMaxRetrans(a.nic, 16), GNI_RC_SUCCESS);
    ompi_open_peer(&x, &a, &b, 5);
    ompi_open_peer(&y, &b, &a, 9);
    /* One may be slower: its peer's directed datagram meets the wildcard first. */
    ompi_post_directed(&x);
    assert_int_equal(GNI_EpPostDataWId(x.ep, &x.out, sizeof(x.out), &x.in, sizeof(x.in), x.id), GNI_RC_ERROR_RESOURCE);
    ompi_connect_both(&x, &y);
    assert_int_equal(send_number(x.ep, 42), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 42);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 9); /* the receiver's own index */
    expect_number(y.ep, 42);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    assert_int_equal(post_on(x.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 5); /* and the sender's */
    assert_int_equal(GNI_SmsgSendWTag(x.ep, NULL, 0, NULL, 0, (uint32_t)-1, 3), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(y.ep, &message, &tag), GNI_RC_SUCCESS);
    assert_int_equal(tag, 3);
    assert_int_equal(GNI_SmsgRelease(y.ep), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), (uint32_t)-1);
    ompi_close_peer(&x);
    ompi_close_peer(&y);
}

/* Thousands of mailboxes in one registration, the size rounded up to 64. shows: ompi-mailboxes */
static void test_open_mpi_lays_mailboxes_back_to_back(void **state)
{
    gni_smsg_attr_t attr = { .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                             .mbox_maxcredit = 32,
                             .msg_maxsize = 1024 };
    gni_ep_handle_t eps[8][2];
    gni_mem_handle_t handles[2];
    unsigned int bytes;
    uint8_t *mem[2];

    (void)state;
    assert_int_equal(GNI_SmsgBufferSizeNeeded(&attr, &bytes), GNI_RC_SUCCESS);
    bytes = (bytes + 63) & ~63u;
    for (unsigned s = 0; s < 2; s++) {
        struct gx_side *side = s ? &b : &a;

        mem[s] = pages((size_t)bytes * COUNT_OF(eps));
        assert_int_equal(GNI_MemRegister(side->nic, ADDR(mem[s]), (uint64_t)bytes * COUNT_OF(eps), side->dst_cq,
                                         GNI_MEM_READWRITE, (uint32_t)-1, &handles[s]),
                         GNI_RC_SUCCESS);
    }
    for (uint32_t i = 0; i < COUNT_OF(eps); i++) {
        gni_smsg_attr_t attrs[2];

        for (unsigned s = 0; s < 2; s++) {
            attrs[s] = attr;
            attrs[s].msg_buffer = mem[s];
            attrs[s].buff_size = bytes;
            attrs[s].mem_hndl = handles[s];
            attrs[s].mbox_offset = i * bytes;
            assert_int_equal(GNI_EpCreate(s ? b.nic : a.nic, s ? b.src_cq : a.src_cq, &eps[i][s]), GNI_RC_SUCCESS);
            assert_int_equal(GNI_EpBind(eps[i][s], s ? a.nic_addr : b.nic_addr, s ? a.inst_id : b.inst_id),
                             GNI_RC_SUCCESS);
        }
        assert_int_equal(GNI_SmsgInit(eps[i][0], &attrs[0], &attrs[1]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_SmsgInit(eps[i][1], &attrs[1], &attrs[0]), GNI_RC_SUCCESS);
    }
    for (uint32_t i = 0; i < COUNT_OF(eps); i++) {
        assert_int_equal(send_number(eps[i][0], 100 + i), GNI_RC_SUCCESS);
        assert_int_equal(send_number(eps[i][1], 200 + i), GNI_RC_SUCCESS);
    }
    for (uint32_t i = 0; i < COUNT_OF(eps); i++) {
        expect_number(eps[i][1], 100 + i);
        expect_number(eps[i][0], 200 + i);
        assert_int_equal(GNI_EpDestroy(eps[i][0]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpDestroy(eps[i][1]), GNI_RC_SUCCESS);
    }
    GNI_MemDeregister(a.nic, &handles[0]);
    GNI_MemDeregister(b.nic, &handles[1]);
    munmap(mem[0], (size_t)bytes * COUNT_OF(eps));
    munmap(mem[1], (size_t)bytes * COUNT_OF(eps));
}

/* shows: ompi-back-pressure, ompi-drain, code-send, code-next */
static void test_open_mpi_queues_what_finds_no_credit(void **state)
{
    struct channel c;
    uint32_t sent = 0;
    uint32_t received = 0;
    bool was_refused = false;
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    (void)state;
    open_channel(&c, 32, 8192);
    while (received < 500 && emu_clock_ns() < end_ns) {
        uint8_t tag = GNI_SMSG_ANY_TAG;
        gni_return_t rc = GNI_RC_SUCCESS;
        void *message;

        while (sent < 500 && (rc = send_number(c.ep[0], sent)) == GNI_RC_SUCCESS)
            sent++;
        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
        was_refused = was_refused || rc == GNI_RC_NOT_DONE;
        mb_drain(a.src_cq); /* both queues */
        mb_drain(a.dst_cq);
        mb_drain(b.dst_cq); /* entries are hints: their number does not matter */
        while ((rc = GNI_SmsgGetNextWTag(c.ep[1], &message, &tag)) == GNI_RC_SUCCESS) {
            uint32_t got;

            memcpy(&got, message, sizeof(got));
            assert_int_equal(got, received);
            received++;
            assert_int_equal(GNI_SmsgRelease(c.ep[1]), GNI_RC_SUCCESS);
            tag = GNI_SMSG_ANY_TAG;
        }
        assert_int_equal(rc, GNI_RC_NOT_DONE);
    }
    assert_int_equal(received, 500);
    assert_true(was_refused);
    close_channel(&c);
}

/* The next entry; what else comes tells of losses, after which they look everywhere again. */
static void expect_entry_after_losses(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = gx_next(cq, &entry)) == GNI_RC_ERROR_RESOURCE)
        assert_true(GNI_CQ_OVERRUN(entry));
    assert_int_equal(rc, GNI_RC_SUCCESS);
}

/* shows: ompi-overrun, ucx-overrun */
static void test_open_mpi_and_ucx_look_everywhere_after_an_overrun(void **state)
{
    struct channel channels[3];
    gni_cq_handle_t tiny;
    gni_cq_entry_t entry;
    gni_return_t rc;
    bool overran = false;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 4, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tiny), GNI_RC_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(channels); i++)
        open_channel_with(&channels[i], 16, 64, a.dst_cq, tiny);
    for (uint32_t n = 0; n < 10; n++) {
        for (size_t i = 0; i < COUNT_OF(channels); i++)
            assert_int_equal(send_number(channels[i].ep[0], n), GNI_RC_SUCCESS);
    }
    for (unsigned n = 0; n < 30; n++)
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    do {
        rc = GNI_CqGetEvent(tiny, &entry);
        overran = overran || rc == GNI_RC_ERROR_RESOURCE || (rc == GNI_RC_SUCCESS && GNI_CQ_OVERRUN(entry));
    } while (rc != GNI_RC_NOT_DONE);
    assert_true(overran);
    for (size_t i = 0; i < COUNT_OF(channels); i++) {
        for (uint32_t n = 0; n < 10; n++)
            expect_number(channels[i].ep[1], n);
    }
    assert_int_equal(send_number(channels[1].ep[0], 99), GNI_RC_SUCCESS); /* and goes on */
    expect_entry_after_losses(tiny);
    expect_number(channels[1].ep[1], 99);
    mb_drain(a.src_cq);
    for (size_t i = 0; i < COUNT_OF(channels); i++)
        close_channel(&channels[i]);
    assert_int_equal(GNI_CqDestroy(tiny), GNI_RC_SUCCESS);
}

/* shows: ompi-registration */
static void test_open_mpi_registers_within_the_jobs_limit(void **state)
{
    gni_job_res_desc_t mdd = { 0, 0 };
    uint8_t *mem = pages(2 * 4096);
    gni_mem_handle_t handles[2];

    (void)state;
    fx_set_node(0);
    assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, GNI_JOB_RES_MDD, &mdd), GNI_RC_SUCCESS);
    assert_true(mdd.limit > 20 && mdd.limit - 20 > 1000); /* something for each rank of a full node */
    handles[0] = register_on(&a, mem, 4096, GNI_MEM_READWRITE | GNI_MEM_RELAXED_PI_ORDERING);
    handles[1] = register_on(&a, mem + 4096, 4096, GNI_MEM_READ_ONLY | GNI_MEM_RELAXED_PI_ORDERING);
    assert_int_equal(GNI_MemDeregister(a.nic, &handles[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(a.nic, &handles[1]), GNI_RC_SUCCESS);
    munmap(mem, 2 * 4096);
}

static void wake_by_queue_write(struct gx_side *from, struct gx_side *to)
{
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .dlvr_mode = GNI_DLVMODE_IN_ORDER,
                                .cqwrite_value = 0xdead,
                                .remote_mem_hndl = to->mem_hndl };
    gni_cq_handle_t cqs[2] = { to == &a ? b.dst_cq : a.dst_cq, to->dst_cq };
    gni_cq_entry_t entry;
    gni_ep_handle_t ep;
    uint32_t which = 9;

    assert_int_equal(GNI_EpCreate(from->nic, from->src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, to->nic_addr, to->inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostCqWrite(ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, (uint64_t)-1, &which), GNI_RC_SUCCESS);
    assert_int_equal(which, 1);
    assert_int_equal(gx_next(to->dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 0xdead);
    assert_int_equal(finish_on(from->src_cq, &d), STATUS_OK);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

/* The thread that watches the queues is woken by a queue write to oneself. shows: ompi-progress-thread */
static void test_open_mpi_wakes_its_progress_thread(void **state)
{
    (void)state;
    wake_by_queue_write(&a, &a);
}

/* shows: ompi-interrupt-page */
static void test_open_mpi_wakes_its_peers_progress_thread(void **state)
{
    (void)state;
    wake_by_queue_write(&a, &b);
}

/* shows: ompi-teardown, gasnet-queue-first */
static void test_open_mpi_tears_down_queues_before_memory(void **state)
{
    uint8_t *mem = pages(4096);
    gni_mem_handle_t handle;
    gni_cq_handle_t cqs[2];
    gni_ep_handle_t ep;
    uint32_t value;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cqs[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(b.nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cqs[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 4096, cqs[0], GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(b.nic, cqs[1], &ep), GNI_RC_SUCCESS);
    for (int stat = 0; stat < GNI_NUM_STATS; stat++)
        assert_int_equal(GNI_GetNicStat(b.nic, (gni_statistic_t)stat, &value), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cqs[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cqs[1]), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cqs[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    munmap(mem, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_open_mpi_starts_up_with_four_virtual_devices),
        pair_test(test_open_mpi_may_be_told_any_mode),
        pair_test(test_open_mpi_binds_for_one_post),
        pair_test(test_open_mpi_puts_from_memory_that_nobody_knows),
        pair_test(test_open_mpi_gets_in_units_of_four_bytes),
        pair_test(test_open_mpi_posts_again_what_failed_on_the_way),
        pair_test(test_open_mpi_atomics),
        pair_test(test_open_mpi_connects_and_disconnects),
        pair_test(test_open_mpi_lays_mailboxes_back_to_back),
        pair_test(test_open_mpi_queues_what_finds_no_credit),
        exact_pair_test(test_open_mpi_and_ucx_look_everywhere_after_an_overrun),
        pair_test(test_open_mpi_registers_within_the_jobs_limit),
        pair_test(test_open_mpi_wakes_its_progress_thread),
        pair_test(test_open_mpi_wakes_its_peers_progress_thread),
        pair_test(test_open_mpi_tears_down_queues_before_memory),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
