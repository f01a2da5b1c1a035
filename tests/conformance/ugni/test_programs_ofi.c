/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libfabric's GNI provider depends on, each in the way that it does it. docs/generated/ugni-programs.md lists the
 * habits and their tests. Specification: spec/ugni.md 5.3, 5.6 and Appendix B.
 */
#include <pthread.h>
#include <unistd.h>

#include "tests/conformance/programs.h"

#define OFI_MODES                                                                                                      \
    (GNI_CDM_MODE_FAST_DATAGRAM_POLL | GNI_CDM_MODE_FMA_SHARED | GNI_CDM_MODE_FMA_SMALL_WINDOW |                       \
     GNI_CDM_MODE_FORK_PARTCOPY | GNI_CDM_MODE_ERR_NO_KILL)

static int open_ofi_pair(void **state)
{
    (void)state;
    return open_pair_in_mode(OFI_MODES);
}

#define ofi_test(name) cmocka_unit_test_setup_teardown(name, open_ofi_pair, close_pair)

/* shows: ofi-device, ofi-codes */
static void test_libfabric_finds_one_device_and_a_good_version(void **state)
{
    gni_version_info_t info;
    int n = 0;

    (void)state;
    assert_int_equal(GNI_GetNumLocalDevices(&n), GNI_RC_SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(GNI_GetVersionInformation(&info), GNI_RC_SUCCESS);
    assert_true(info.ugni_version >> 16 >= (uint32_t)GNI_VERSION >> 16); /* major and minor */
    assert_int_equal(GNI_RC_SUCCESS, 0);
    assert_int_equal(GNI_RC_ERROR_NOMEM, 13); /* the last of its table */
}

/* shows: ofi-modes, ofi-queues */
static void test_libfabric_opens_four_queues_per_nic_handle(void **state)
{
    static const gni_cq_mode_t modes[4] = { GNI_CQ_NOBLOCK, GNI_CQ_BLOCKING | GNI_CQ_PHYS_PAGES,
                                            GNI_CQ_NOBLOCK | GNI_CQ_PHYS_PAGES, GNI_CQ_BLOCKING | GNI_CQ_PHYS_PAGES };
    gni_cq_handle_t cqs[4];
    struct channel c;
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t *done;
    unsigned n_messages = 0;
    unsigned n_posts = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cqs); i++)
        assert_int_equal(GNI_CqCreate(a.nic, 2048, 0, modes[i], NULL, NULL, &cqs[i]), GNI_RC_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(cqs); i++)
        assert_int_equal(GNI_CqDestroy(cqs[i]), GNI_RC_SUCCESS);
    /* Messages and posts on one queue. */
    open_channel(&c, 16, 256);
    assert_int_equal(send_number(c.ep[0], 31), GNI_RC_SUCCESS);
    assert_int_equal(post_on(c.ep[0], &d), GNI_RC_SUCCESS);
    assert_int_equal(send_number(c.ep[0], 32), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        gni_cq_entry_t entry;

        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
        if (GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG) {
            assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 31 + n_messages);
            n_messages++;
        } else {
            assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_POST);
            assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
            n_posts++;
        }
    }
    assert_true(n_messages == 2 && n_posts == 1);
    close_channel(&c);
}

/* shows: ofi-transmit, gasnet-source-queue */
static void test_libfabric_hears_three_answers_from_its_source_queue(void **state)
{
    unsigned seen[GNI_RC_ERROR_NOMEM + 1] = { 0 };

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        gni_post_descriptor_t d = word_post(i % 2 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_GET, 8 * i);
        gni_post_descriptor_t *done;
        gni_cq_entry_t entry;
        gni_return_t rc;

        if (i % 10 == 0)
            d.remote_addr += 1 << 30;
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        while ((rc = GNI_CqGetEvent(a.src_cq, &entry)) == GNI_RC_NOT_DONE)
            seen[rc]++;
        seen[rc]++;
        assert_int_equal(rc, i % 10 ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), rc);
        assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
    }
    assert_int_equal(seen[GNI_RC_SUCCESS], 180);
    assert_int_equal(seen[GNI_RC_TRANSACTION_ERROR], 20);
}

/* shows: ofi-receive, ex-overrun */
static void test_libfabric_recovers_from_an_overrun_of_its_receive_queue(void **state)
{
    gni_cq_handle_t rx;
    struct channel c;
    gni_cq_entry_t entry;
    gni_return_t rc;
    unsigned n = 0;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 4, 0, GNI_CQ_NOBLOCK, NULL, NULL, &rx), GNI_RC_SUCCESS);
    open_channel_with(&c, 16, 64, a.dst_cq, rx);
    assert_int_equal(GNI_CqTestEvent(rx), GNI_RC_NOT_DONE);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(send_number(c.ep[0], i), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqTestEvent(rx), GNI_RC_SUCCESS);
    while ((rc = GNI_CqGetEvent(rx, &entry)) == GNI_RC_SUCCESS)
        n++;
    assert_int_equal(n, 4);
    assert_int_equal(rc, GNI_RC_ERROR_RESOURCE);
    assert_true(GNI_CQ_OVERRUN(entry));
    while ((rc = GNI_CqGetEvent(rx, &entry)) == GNI_RC_SUCCESS)
        ;
    assert_int_equal(rc, GNI_RC_NOT_DONE);
    for (uint32_t i = 0; i < 12; i++) /* every virtual channel is looked at */
        expect_number(c.ep[1], i);
    close_channel(&c);
    assert_int_equal(GNI_CqDestroy(rx), GNI_RC_SUCCESS);
}

/* shows: ofi-monitor, nnti-wait, code-wait */
static void test_libfabric_monitors_two_blocking_queues(void **state)
{
    gni_cq_handle_t cqs[2] = { b.src_cq, b.dst_cq };
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_REMOTE_EVENT);
    gni_cq_entry_t entry;
    uint32_t which = 9;

    (void)state;
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, 10, &which), GNI_RC_TIMEOUT);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 10, &entry), GNI_RC_TIMEOUT);
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, 10000, &which), GNI_RC_SUCCESS);
    assert_int_equal(which, 1);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 10000, &entry), GNI_RC_SUCCESS); /* nothing was taken */
}

static void *monitor(void *arg)
{
    gni_cq_handle_t *cqs = arg;
    uint32_t which;

    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        GNI_CqVectorMonitor(cqs, 2, (uint64_t)-1, &which);
    return NULL;
}

/* shows: ofi-cancellation */
static void test_libfabric_cancels_its_progress_thread(void **state)
{
    gni_cq_handle_t cqs[2];
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    pthread_t thread;

    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        assert_int_equal(GNI_CqCreate(a.nic, 64, 0, GNI_CQ_BLOCKING, NULL, NULL, &cqs[0]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqCreate(a.nic, 64, 0, GNI_CQ_BLOCKING, NULL, NULL, &cqs[1]), GNI_RC_SUCCESS);
        assert_int_equal(pthread_create(&thread, NULL, monitor, cqs), 0);
        assert_int_equal(run(&d), STATUS_OK); /* while it sleeps, or is about to */
        assert_int_equal(pthread_cancel(thread), 0);
        /* The result is not looked at: glibc 2.36 sometimes forgets it when the cancellation had to wait. */
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(GNI_CqDestroy(cqs[0]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqDestroy(cqs[1]), GNI_RC_SUCCESS);
    }
}

/* What it keeps of a handle: 37 bits of the page, 12 of the number, a format bit, two flags. */
static uint64_t pack(gni_mem_handle_t handle, bool is_read_only)
{
    return (handle.qword1 & 0x1fffffffff) | (handle.qword1 >> 52) << 37 | (uint64_t)is_read_only << 50;
}

static gni_mem_handle_t unpack(uint64_t key)
{
    uint64_t page = (uint64_t)((int64_t)(key << 27) >> 27) & 0xfffffffffffff;

    return (gni_mem_handle_t){ (key >> 37 & 0xfff) << 52 | page, 0xfffffff | 12ull << 28 | (key >> 50 & 1) << 34 };
}

/*
 * A handle is packed into 64 bits and built anew: number and page, no generation, no CRC, all ones as size. shows:
 * ofi-keys
 */
static void test_libfabric_rebuilds_a_handle(void **state)
{
    uint8_t *mem = pages(4096);
    gni_mem_handle_t read_only = register_on(&b, mem, 4096, GNI_MEM_READ_ONLY);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 16);

    (void)state;
    fill(a.mem + 16, 8, 5);
    d.remote_mem_hndl = unpack(pack(b.mem_hndl, false));
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem + 16, a.mem + 16, 8);
    d.type = GNI_POST_FMA_GET;
    d.remote_addr = ADDR(mem);
    d.remote_mem_hndl = unpack(pack(read_only, true));
    assert_int_equal(run(&d), STATUS_OK);
    d.type = GNI_POST_FMA_PUT;
    assert_int_equal(run(&d), STATUS_REMOTE_PERMISSION);
    GNI_MemDeregister(b.nic, &read_only);
    munmap(mem, 4096);
}

/* The key is the index; addresses count from the start of the region. shows: ofi-virtual-keys */
static void test_libfabric_addresses_virtual_handles_by_offset(void **state)
{
    uint8_t *mem = pages(2 * 4096);
    gni_mem_handle_t handle = { 0, 0 };
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    assert_int_equal(GNI_SetMddResources(b.nic, 128), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 2 * 4096, b.dst_cq,
                                     GNI_MEM_READWRITE | GNI_MEM_USE_VMDH | GNI_MEM_RESERVE_REGION, 5, &handle),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 2 * 4096, NULL, GNI_MEM_UPDATE_REGION, 5, &handle),
                     GNI_RC_SUCCESS);
    d.remote_mem_hndl = (gni_mem_handle_t){ 5ull << 52, 0xfffffff | 12ull << 28 | 2ull << 34 };
    d.remote_addr = 4096 + 40;
    fill(a.mem, 8, 8);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + 4096 + 40, a.mem, 8);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    munmap(mem, 2 * 4096);
}

/* shows: ofi-unbind, ex-unbind, code-unbind */
static void test_libfabric_unbinds_until_it_is_done(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);
    gni_post_descriptor_t *done;
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_cq_entry_t entry;
    gni_return_t rc;
    unsigned n = 0;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    while ((rc = GNI_EpUnbind(a.ep)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns) {
        n++;
        if (GNI_CqGetEvent(a.src_cq, &entry) == GNI_RC_SUCCESS)
            assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
    }
    assert_int_equal(rc, GNI_RC_SUCCESS);
    assert_true(n > 0);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = NULL;
}

#define DIRECTED  128u
#define WILDCARDS 4u

struct dgram {
    gni_ep_handle_t ep;
    bool is_wildcard;
    bool is_done;
    uint8_t out[128];
    uint8_t in[128];
};

static void open_dgrams(struct dgram *d, gni_nic_handle_t nic, unsigned n, bool is_wildcard)
{
    for (unsigned i = 0; i < n; i++) {
        memset(&d[i], 0, sizeof(d[i]));
        d[i].is_wildcard = is_wildcard;
        d[i].out[0] = (uint8_t)i;
        assert_int_equal(GNI_EpCreate(nic, NULL, &d[i].ep), GNI_RC_SUCCESS);
    }
}

static gni_return_t post_dgram(struct dgram *d)
{
    return GNI_EpPostDataWId(d->ep, d->out, sizeof(d->out), d->in, sizeof(d->in), ADDR(d));
}

/* Takes one that is done. NULL: there is none. */
static struct dgram *take_dgram(gni_nic_handle_t nic)
{
    gni_post_state_t post_state;
    uint32_t address;
    uint32_t inst_id;
    struct dgram *d;
    uint64_t id;

    if (GNI_PostDataProbeById(nic, &id) != GNI_RC_SUCCESS)
        return NULL;
    d = (struct dgram *)(uintptr_t)id;
    assert_int_equal(GNI_EpPostDataTestById(d->ep, id, &post_state, &address, &inst_id), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_int_equal(GNI_EpPostDataTestById(d->ep, id, &post_state, &address, &inst_id), GNI_RC_NO_MATCH);
    return d;
}

/* shows: ofi-datagrams, ofi-lost-race, ofi-shut-down, code-datagram, code-no-match */
static void test_libfabric_connects_128_virtual_channels_by_datagrams(void **state)
{
    static struct dgram directed[DIRECTED];
    static struct dgram wildcards[WILDCARDS];
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    unsigned posted = 0;
    unsigned done = 0;
    gni_post_state_t post_state;
    uint32_t number;
    uint64_t id;

    (void)state;
    open_dgrams(directed, a.nic, DIRECTED, false);
    open_dgrams(wildcards, b.nic, WILDCARDS, true);
    assert_int_equal(GNI_PostDataProbeById(b.nic, &id), GNI_RC_NO_MATCH);
    for (unsigned i = 0; i < DIRECTED; i++)
        assert_int_equal(GNI_EpBind(directed[i].ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < WILDCARDS; i++)
        assert_int_equal(post_dgram(&wildcards[i]), GNI_RC_SUCCESS);
    while (done < DIRECTED && emu_clock_ns() < end_ns) {
        struct dgram *d;

        if (posted < DIRECTED) {
            gni_return_t rc = post_dgram(&directed[posted]);

            assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_ERROR_RESOURCE); /* busy with that peer: later */
            posted += rc == GNI_RC_SUCCESS;
        }
        d = take_dgram(b.nic);
        if (d) {
            assert_true(d->is_wildcard);
            assert_int_equal(post_dgram(d), GNI_RC_SUCCESS); /* in again at once */
        }
        d = take_dgram(a.nic);
        if (d) {
            assert_false(d->is_done);
            d->is_done = true;
            done++;
        }
    }
    assert_int_equal(done, DIRECTED);
    while (take_dgram(b.nic))
        ;
    for (unsigned i = 0; i < WILDCARDS; i++) {
        gni_return_t rc = GNI_EpPostDataCancel(wildcards[i].ep); /* without id */

        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NO_MATCH);
        GNI_EpPostDataTestById(wildcards[i].ep, ADDR(&wildcards[i]), &post_state, &number, &number);
        assert_int_equal(GNI_EpDestroy(wildcards[i].ep), GNI_RC_SUCCESS);
    }
    assert_int_equal(post_dgram(&directed[0]), GNI_RC_SUCCESS);
    assert_int_equal(post_dgram(&directed[1]), GNI_RC_ERROR_RESOURCE); /* busy with that peer */
    for (unsigned i = 0; i < DIRECTED; i++)
        assert_int_equal(GNI_EpDestroy(directed[i].ep), GNI_RC_SUCCESS);
}

/* shows: ofi-small-get */
static void test_libfabric_gets_small_ranges_rounded_into_a_bounce_buffer(void **state)
{
    (void)state;
    fill(b.mem, 128, 2);
    for (uint64_t offset = 1; offset < 4; offset++) {
        for (uint64_t length = 1; length <= 60; length++) {
            uint64_t before = offset & 3;
            gni_post_descriptor_t d = gx_put(&a, &b, 0, (before + length + 3) & ~3ull, GNI_CQMODE_GLOBAL_EVENT);

            d.type = GNI_POST_FMA_GET;
            d.remote_addr = ADDR(b.mem) + offset - before;
            assert_int_equal(run(&d), STATUS_OK);
            assert_memory_equal(a.mem + before, b.mem + offset, length);
        }
    }
}

/* The aligned middle goes where it belongs; the words at the ends go to a side buffer. shows: ofi-chained-get */
static void test_libfabric_gets_medium_ranges_as_a_chain(void **state)
{
    const uint64_t offset = 3;
    const uint64_t length = 1001;
    uint64_t first = 4; /* of the body */
    uint64_t body = (offset + length - first) & ~3ull;
    uint8_t *side = a.mem + 8192;
    gni_ct_get_post_descriptor_t tail = { .next_descr = NULL,
                                          .ep_hndl = a.ep,
                                          .remote_addr = ADDR(b.mem) + first + body,
                                          .remote_mem_hndl = b.mem_hndl,
                                          .length = 4,
                                          .local_addr = ADDR(side) + 4,
                                          .local_mem_hndl = a.mem_hndl };
    gni_ct_get_post_descriptor_t head = { .next_descr = &tail,
                                          .ep_hndl = a.ep,
                                          .remote_addr = ADDR(b.mem),
                                          .remote_mem_hndl = b.mem_hndl,
                                          .length = 4,
                                          .local_addr = ADDR(side),
                                          .local_mem_hndl = a.mem_hndl };
    gni_post_descriptor_t d = gx_put(&a, &b, 0, body, GNI_CQMODE_GLOBAL_EVENT);
    uint8_t *to = a.mem + 4096;

    (void)state;
    fill(b.mem, 2048, 5);
    d.type = GNI_POST_FMA_GET;
    d.remote_addr = ADDR(b.mem) + first;
    d.local_addr = ADDR(to) + (first - offset); /* any address on Aries */
    d.next_descr = &head;
    assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
    memcpy(to, side + offset, first - offset);
    memcpy(to + first - offset + body, side + 4, offset + length - first - body);
    assert_memory_equal(to, b.mem + offset, length);
}

/* shows: ofi-block-get */
static void test_libfabric_gets_large_ranges_as_a_block_and_pieces(void **state)
{
    const uint64_t offset = 2;
    const uint64_t length = 40001;
    uint64_t first = 4;
    uint64_t body = (offset + length - first) & ~3ull;
    uint8_t *side = a.mem + 60000;
    gni_post_descriptor_t pieces[2] = { word_post(GNI_POST_FMA_GET, 0), word_post(GNI_POST_FMA_GET, 0) };
    gni_post_descriptor_t d = gx_put(&a, &b, 0, body, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done;

    (void)state;
    fill(b.mem, GX_BYTES, 6);
    d.type = GNI_POST_RDMA_GET;
    d.remote_addr = ADDR(b.mem) + first;
    d.local_addr = ADDR(a.mem) + (first - offset);
    for (unsigned i = 0; i < 2; i++) {
        pieces[i].length = 4;
        pieces[i].remote_addr = ADDR(b.mem) + (i ? first + body : 0);
        pieces[i].local_addr = ADDR(side) + 4 * i;
        assert_int_equal(post(&pieces[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    memcpy(a.mem, side + offset, first - offset);
    memcpy(a.mem + first - offset + body, side + 4, offset + length - first - body);
    assert_memory_equal(a.mem, b.mem + offset, length);
}

static uint64_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* shows: ofi-atomics */
static void test_libfabric_atomics(void **state)
{
    const struct amo_row rows[] = {
        { GNI_FMA_ATOMIC2_IMIN, 8, 5, (uint64_t)-3, 0, (uint64_t)-3, false },
        { GNI_FMA_ATOMIC2_IMAX_S, 4, 5, 7, 0, 7, false },
        { GNI_FMA_ATOMIC2_FPMIN_S, 4, float_bits(2.5f), float_bits(-1.0f), 0, float_bits(-1.0f), false },
        { GNI_FMA_ATOMIC2_FPMAX_S, 4, float_bits(2.5f), float_bits(-1.0f), 0, float_bits(2.5f), false },
        { GNI_FMA_ATOMIC2_FPADD_S, 4, float_bits(2.5f), float_bits(-1.0f), 0, float_bits(1.5f), false },
        { GNI_FMA_ATOMIC2_FPMIN, 8, double_bits(2.5), double_bits(-1.0), 0, double_bits(-1.0), false },
        { GNI_FMA_ATOMIC2_FPMAX, 8, double_bits(2.5), double_bits(9.0), 0, double_bits(9.0), false },
        { GNI_FMA_ATOMIC2_FFPMIN_S, 4, float_bits(2.5f), float_bits(-1.0f), 0, float_bits(-1.0f), true },
        { GNI_FMA_ATOMIC2_FFPMAX, 8, double_bits(2.5), double_bits(9.0), 0, double_bits(9.0), true },
        { GNI_FMA_ATOMIC2_FFPADD_S, 4, float_bits(2.5f), float_bits(-1.0f), 0, float_bits(1.5f), true },
        { GNI_FMA_ATOMIC2_FCSWAP, 8, 5, 5, 6, 6, true },
        { GNI_FMA_ATOMIC2_FCSWAP_S, 4, 5, 4, 6, 5, true },
        { GNI_FMA_ATOMIC2_FAX, 8, 0xff, 0x0f, 0xf0, 0xff, true },
    };

    (void)state;
    check_amos(rows, COUNT_OF(rows));
}

/* shows: ofi-recovery */
static void test_libfabric_repeats_what_is_recoverable_and_reports_the_rest(void **state)
{
    static const char *const faults[] = { "class=fma-put action=drop nth=1",
                                          "class=fma-put action=fail status=bad-handle" };
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    fx_needs_emunic();
    for (uint32_t i = 0; i < COUNT_OF(faults); i++) {
        gni_post_descriptor_t *done;
        gni_cq_entry_t entry;
        uint32_t recoverable = 9;

        fx_add_fault(&fx, faults[i]);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
        assert_int_equal(recoverable, i == 0);
        if (recoverable)
            assert_int_equal(run(done), STATUS_OK);
        fx_clear_faults(&fx);
    }
}

/*
 * Its tests compare the break before and after. Two domains come and go first, after which the allocator keeps even
 * large blocks in the heap; the next ones stay, so that none finds the room that another has left. shows: ofi-heap
 */
static void test_libfabric_finds_its_program_break_where_it_was(void **state)
{
    enum { GO = 2, ALL = 6 };
    gni_cdm_handle_t cdms[ALL];
    gni_nic_handle_t nic;
    gni_cq_handle_t cqs[2];
    uint32_t address;

    (void)state;
    for (unsigned i = 0; i < ALL; i++) {
        void *before;

        fx_set_node(3);
        free(malloc(64 << 10)); /* small things find room */
        before = sbrk(0);
        assert_int_equal(GNI_CdmCreate(300 + i, (uint8_t)fx.ptag, fx.cookie, OFI_MODES, &cdms[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmAttach(cdms[i], 0, &address, &nic), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqCreate(nic, 8192, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cqs[0]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqCreate(nic, 40000, 0, GNI_CQ_BLOCKING, NULL, NULL, &cqs[1]), GNI_RC_SUCCESS);
        assert_true(i < GO || sbrk(0) == before);
        if (i < GO)
            assert_int_equal(GNI_CdmDestroy(cdms[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = GO; i < ALL; i++)
        assert_int_equal(GNI_CdmDestroy(cdms[i]), GNI_RC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libfabric_finds_its_program_break_where_it_was), /* first: little has been allocated */
        ofi_test(test_libfabric_finds_one_device_and_a_good_version),
        ofi_test(test_libfabric_opens_four_queues_per_nic_handle),
        ofi_test(test_libfabric_hears_three_answers_from_its_source_queue),
        exact_pair_test(test_libfabric_recovers_from_an_overrun_of_its_receive_queue),
        ofi_test(test_libfabric_monitors_two_blocking_queues),
        ofi_test(test_libfabric_cancels_its_progress_thread),
        ofi_test(test_libfabric_rebuilds_a_handle),
        ofi_test(test_libfabric_addresses_virtual_handles_by_offset),
        ofi_test(test_libfabric_unbinds_until_it_is_done),
        ofi_test(test_libfabric_connects_128_virtual_channels_by_datagrams),
        ofi_test(test_libfabric_gets_small_ranges_rounded_into_a_bounce_buffer),
        ofi_test(test_libfabric_gets_medium_ranges_as_a_chain),
        ofi_test(test_libfabric_gets_large_ranges_as_a_block_and_pieces),
        ofi_test(test_libfabric_atomics),
        ofi_test(test_libfabric_repeats_what_is_recoverable_and_reports_the_rest),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
