/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: life, polling, transfer slots, descriptors, overrun. Specification: spec/ugni.md 2.9, 4.9, 7.9,
 * 7.10.
 */
#include "tests/conformance/pair.h"

#define BIG_BYTES (24u << 20)

static gni_cq_handle_t make_cq(const struct gx_side *side, uint32_t entries, gni_cq_mode_t mode)
{
    gni_cq_handle_t cq = NULL;

    assert_int_equal(GNI_CqCreate(side->nic, entries, 0, mode, NULL, NULL, &cq), GNI_RC_SUCCESS);
    return cq;
}

static gni_ep_handle_t make_ep(gni_cq_handle_t cq)
{
    gni_ep_handle_t ep = NULL;

    assert_int_equal(GNI_EpCreate(a.nic, cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    return ep;
}

/* b's memory once more, with a destination queue of its own. */
static gni_mem_handle_t register_with(gni_cq_handle_t cq)
{
    gni_mem_handle_t handle;

    assert_int_equal(GNI_MemRegister(b.nic, ADDR(b.mem), GX_BYTES, cq, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    return handle;
}

/* `count` puts of the number i to word i of the region, one remote event each; all have completed on return. */
static void send_remote_events(gni_mem_handle_t target, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 8 * i, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

        d.remote_mem_hndl = target;
        a.mem[8 * i] = (uint8_t)(i + 1);
        assert_int_equal(GNI_EpSetEventData(a.ep, 0, i), GNI_RC_SUCCESS);
        assert_int_equal(run(&d), STATUS_OK);
    }
}

/* ---- create, destroy ---- */

static void test_create_refuses_bad_arguments(void **state)
{
    gni_cq_handle_t cq = (gni_cq_handle_t)&fx;

    (void)state;
    assert_int_equal(GNI_CqCreate(NULL, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqCreate(a.nic, 0, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_EMULATED_INVALID, NULL, NULL, &cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_ptr_equal(cq, &fx);
}

static void test_create_takes_every_mode_that_programs_use(void **state)
{
    static const gni_cq_mode_t modes[] = { GNI_CQ_NOBLOCK, GNI_CQ_BLOCKING, GNI_CQ_PHYS_PAGES,
                                           GNI_CQ_BLOCKING | GNI_CQ_PHYS_PAGES, GNI_CQ_UNMANAGED };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        assert_int_equal(GNI_CqDestroy(make_cq(&a, 10, modes[i])), GNI_RC_SUCCESS);
}

static void test_limit_of_queues_gives_error_resource_until_one_goes(void **state)
{
    static gni_cq_handle_t cqs[8192];
    gni_return_t rc = GNI_RC_SUCCESS;
    size_t n = 0;

    (void)state;
    while (n < COUNT_OF(cqs)) {
        rc = GNI_CqCreate(a.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cqs[n]);
        if (rc != GNI_RC_SUCCESS)
            break;
        n++;
    }
    assert_int_equal(rc, GNI_RC_ERROR_RESOURCE); /* covers: GNI_CqCreate: GNI_RC_ERROR_RESOURCE */
    assert_int_equal(GNI_CqDestroy(cqs[n / 2]), GNI_RC_SUCCESS);
    cqs[n / 2] = make_cq(&a, 1, GNI_CQ_NOBLOCK);
    while (n > 0)
        assert_int_equal(GNI_CqDestroy(cqs[--n]), GNI_RC_SUCCESS);
}

static void test_destroy_twice_is_refused(void **state)
{
    gni_cq_handle_t cq = make_cq(&a, 1, GNI_CQ_NOBLOCK);

    (void)state;
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_INVALID_PARAM);
}

static void test_destroy_of_a_source_queue_in_use_gives_error_resource(void **state)
{
    (void)state;
    assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = NULL;
    assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_SUCCESS);
}

static void test_destination_queue_may_go_before_its_memory(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

    (void)state;
    assert_int_equal(GNI_CqDestroy(b.dst_cq), GNI_RC_SUCCESS);
    memcpy(a.mem, "delivers", 8);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem, "delivers", 8);
    assert_int_equal(GNI_MemDeregister(b.nic, &b.mem_hndl), GNI_RC_SUCCESS);
}

static void test_new_queue_gets_no_events_of_an_old_one(void **state)
{
    gni_cq_handle_t cq = make_cq(&b, 10, GNI_CQ_NOBLOCK);
    gni_mem_handle_t target = register_with(cq);

    (void)state;
    send_remote_events(target, 3);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    cq = make_cq(&b, 10, GNI_CQ_NOBLOCK);
    send_remote_events(target, 3);
    assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
    GNI_CqDestroy(cq);
    GNI_MemDeregister(b.nic, &target);
}

/* A long put that goes to the front of the target, or all of it. */
static gni_post_descriptor_t long_put(const uint8_t *source, gni_mem_handle_t source_handle, const uint8_t *target,
                                      gni_mem_handle_t target_handle, uint64_t length)
{
    return (gni_post_descriptor_t){ .type = GNI_POST_RDMA_PUT,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .local_addr = ADDR(source),
                                    .local_mem_hndl = source_handle,
                                    .remote_addr = ADDR(target),
                                    .remote_mem_hndl = target_handle,
                                    .length = length };
}

/* A queue goes while a long transfer for it runs; the one that takes its place must not hear of its end. */
static void replace_queue_under_way(bool is_of_the_end_point)
{
    uint8_t *source = pages(BIG_BYTES);
    uint8_t *target = pages(BIG_BYTES);
    gni_mem_handle_t source_handle = register_on(&a, source, BIG_BYTES, GNI_MEM_READWRITE);
    gni_mem_handle_t target_handle = register_on(&b, target, BIG_BYTES, GNI_MEM_READWRITE);
    gni_post_descriptor_t old = long_put(source, source_handle, target, target_handle, BIG_BYTES / 4);
    gni_post_descriptor_t new = long_put(source, source_handle, target, target_handle, BIG_BYTES);

    memset(source, 0x5a, BIG_BYTES);
    if (!is_of_the_end_point)
        old.src_cq_hndl = make_cq(&a, 128, GNI_CQ_BLOCKING);
    assert_int_equal(post(&old), GNI_RC_SUCCESS);
    if (is_of_the_end_point) {
        assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_SUCCESS);
        a.src_cq = make_cq(&a, 128, GNI_CQ_BLOCKING);
        a.ep = make_ep(a.src_cq);
    } else {
        assert_int_equal(GNI_CqDestroy(old.src_cq_hndl), GNI_RC_SUCCESS);
        new.src_cq_hndl = make_cq(&a, 128, GNI_CQ_BLOCKING);
    }
    assert_int_equal(post(&new), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(is_of_the_end_point ? a.src_cq : new.src_cq_hndl, &new), STATUS_OK);
    assert_int_equal(target[BIG_BYTES - 1], 0x5a);
    wait_for_all_before(&a, &b);
    assert_int_equal(poll_once(is_of_the_end_point ? a.src_cq : new.src_cq_hndl), GNI_RC_NOT_DONE);
    if (!is_of_the_end_point)
        assert_int_equal(GNI_CqDestroy(new.src_cq_hndl), GNI_RC_SUCCESS);
    GNI_MemDeregister(a.nic, &source_handle);
    GNI_MemDeregister(b.nic, &target_handle);
    munmap(source, BIG_BYTES);
    munmap(target, BIG_BYTES);
}

static void test_new_source_queue_hears_nothing_of_old_transfers(void **state)
{
    (void)state;
    replace_queue_under_way(true);
}

static void test_new_queue_of_block_transfers_hears_nothing_of_old_ones(void **state)
{
    (void)state;
    replace_queue_under_way(false);
}

/* ---- polling ---- */

static void test_poll_of_an_empty_queue_gives_not_done_and_zero(void **state)
{
    gni_cq_entry_t entry = 0x1234;

    (void)state;
    assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
    assert_int_equal(entry, 0);
}

static void test_poll_refuses_bad_arguments(void **state)
{
    gni_cq_handle_t dead = make_cq(&a, 1, GNI_CQ_NOBLOCK);
    gni_cq_entry_t entry;

    (void)state;
    GNI_CqDestroy(dead);
    assert_int_equal(GNI_CqGetEvent(NULL, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqGetEvent(dead, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqGetEvent(a.src_cq, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqTestEvent(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqTestEvent(dead), GNI_RC_INVALID_PARAM);
}

static void test_test_looks_and_takes_nothing(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

    (void)state;
    assert_int_equal(GNI_CqTestEvent(b.dst_cq), GNI_RC_NOT_DONE);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_CqTestEvent(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqTestEvent(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqTestEvent(b.dst_cq), GNI_RC_NOT_DONE);
}

struct heard {
    unsigned count;
    gni_cq_entry_t last;
};

static void hear(gni_cq_entry_t *entry, void *context)
{
    struct heard *heard = context;

    heard->count++;
    heard->last = *entry;
}

static void test_handler_is_called_with_every_entry_that_is_taken(void **state)
{
    gni_post_descriptor_t good = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t bad = word_post(GNI_POST_FMA_PUT, 0);
    struct heard heard = { 0, 0 };
    gni_cq_entry_t entry;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 10, 0, GNI_CQ_NOBLOCK, hear, &heard, &cq), GNI_RC_SUCCESS);
    ep = make_ep(cq);
    bad.remote_addr += GX_BYTES;
    assert_int_equal(post_on(ep, &good), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.last, entry);
    assert_int_equal(post_on(ep, &bad), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(heard.count, 2);
    assert_int_equal(heard.last, entry);
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
}

struct resolver {
    gni_cq_handle_t cq;
    gni_post_descriptor_t *done;
    gni_return_t rc;
};

static void resolve(gni_cq_entry_t *entry, void *context)
{
    struct resolver *resolver = context;

    resolver->rc = GNI_GetCompleted(resolver->cq, *entry, &resolver->done);
}

static void test_handler_may_use_the_nic(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    struct resolver resolver = { .rc = GNI_RC_ERROR_NOMEM };
    gni_cq_entry_t entry;
    gni_ep_handle_t ep;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(
            GNI_CqCreate(a.nic, 10, 0, i ? GNI_CQ_BLOCKING : GNI_CQ_NOBLOCK, resolve, &resolver, &resolver.cq),
            GNI_RC_SUCCESS);
        ep = make_ep(resolver.cq);
        assert_int_equal(post_on(ep, &d), GNI_RC_SUCCESS);
        if (i == 0)
            assert_int_equal(gx_next(resolver.cq, &entry), GNI_RC_SUCCESS);
        else
            assert_int_equal(GNI_CqWaitEvent(resolver.cq, 10000, &entry), GNI_RC_SUCCESS);
        assert_int_equal(resolver.rc, GNI_RC_SUCCESS);
        assert_ptr_equal(resolver.done, &d);
        resolver.done = NULL;
        GNI_EpDestroy(ep);
        GNI_CqDestroy(resolver.cq);
    }
}

/* ---- transfer slots ---- */

static void post_until_full(gni_ep_handle_t ep, gni_post_descriptor_t *d, unsigned expected)
{
    gni_post_descriptor_t before;

    for (unsigned i = 0; i < expected; i++) {
        d[i] = word_post(GNI_POST_FMA_PUT, 8 * i);
        assert_int_equal(post_on(ep, &d[i]), GNI_RC_SUCCESS);
    }
    d[expected] = before = word_post(GNI_POST_FMA_PUT, 8 * expected);
    assert_int_equal(GNI_PostFma(ep, &d[expected]), GNI_RC_ERROR_RESOURCE);
    assert_memory_equal(&d[expected], &before, sizeof(before));
}

static void test_queue_takes_as_many_posts_as_it_has_entries(void **state)
{
    static const unsigned sizes[] = { 1, 2, 7, 64, 100 };
    gni_post_descriptor_t d[101];

    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        gni_cq_handle_t cq = make_cq(&a, sizes[s], GNI_CQ_NOBLOCK);
        gni_ep_handle_t ep = make_ep(cq);

        post_until_full(ep, d, sizes[s]);
        for (unsigned i = 0; i < sizes[s]; i++)
            assert_int_equal(finish_on(cq, &d[i]), STATUS_OK);
        post_until_full(ep, d, sizes[s]);
        GNI_EpDestroy(ep);
        GNI_CqDestroy(cq);
    }
}

static void test_dual_events_halve_the_slots(void **state)
{
    gni_post_descriptor_t d[9];
    gni_cq_handle_t cq = make_cq(&a, 16, GNI_CQ_NOBLOCK);
    gni_ep_handle_t ep = make_ep(cq);

    (void)state;
    post_until_full(ep, d, 8);
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
}

static void test_dual_posts_never_overrun_their_queue(void **state)
{
    gni_post_descriptor_t d[8];
    gni_cq_handle_t cq = make_cq(&a, 16, GNI_CQ_NOBLOCK);
    gni_ep_handle_t ep = make_ep(cq);

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(d); i++) {
        d[i] = gx_put(&a, &b, 8 * i, 8, GNI_CQMODE_DUAL_EVENTS);
        assert_int_equal(post_on(ep, &d[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < 2 * COUNT_OF(d); i++)
        assert_int_equal(finish_on(cq, &d[i / 2]), STATUS_OK);
    assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
}

static void test_every_kind_of_post_needs_a_slot(void **state)
{
    gni_cq_handle_t cq = make_cq(&a, 2, GNI_CQ_NOBLOCK);
    gni_ep_handle_t ep = make_ep(cq);
    gni_post_descriptor_t puts[3];
    gni_post_descriptor_t rdma = word_post(GNI_POST_RDMA_PUT, 64);
    gni_post_descriptor_t write = word_post(GNI_POST_CQWRITE, 0);

    (void)state;
    a.mem[64] = 1;
    post_until_full(ep, puts, 2);
    assert_int_equal(GNI_PostRdma(ep, &rdma), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_PostCqWrite(ep, &write), GNI_RC_ERROR_RESOURCE);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(finish_on(cq, &puts[i]), STATUS_OK);
    assert_int_equal(b.mem[64], 0);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_PostRdma(ep, &rdma), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostCqWrite(ep, &write), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &(gni_cq_entry_t){ 0 }), GNI_RC_SUCCESS);
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
}

static void test_slots_are_the_queues_and_not_the_end_points(void **state)
{
    gni_cq_handle_t cq = make_cq(&a, 4, GNI_CQ_NOBLOCK);
    gni_ep_handle_t first = make_ep(cq);
    gni_ep_handle_t second = make_ep(cq);
    gni_post_descriptor_t d[5];

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        d[i] = word_post(GNI_POST_FMA_PUT, 8 * i);
        assert_int_equal(post_on(i % 2 ? first : second, &d[i]), i < 4 ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(finish_on(cq, &d[i]), STATUS_OK);
    GNI_EpDestroy(first);
    GNI_EpDestroy(second);
    GNI_CqDestroy(cq);
}

static void test_slot_is_free_after_the_descriptor_is_back_not_before(void **state)
{
    gni_cq_handle_t cq = make_cq(&a, 4, GNI_CQ_NOBLOCK);
    gni_ep_handle_t ep = make_ep(cq);
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d[5];
    gni_cq_entry_t entry;

    (void)state;
    post_until_full(ep, d, 4);
    assert_int_equal(gx_next(cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(post_on(ep, &d[4]), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_GetCompleted(cq, entry, &done), GNI_RC_SUCCESS);
    assert_int_equal(post_on(ep, &d[4]), GNI_RC_SUCCESS);
    for (unsigned i = 1; i < 5; i++)
        assert_int_equal(finish_on(cq, &d[i]), STATUS_OK);
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
}

static void test_every_kind_of_post_takes_a_slot(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT,  GNI_POST_FMA_GET,  GNI_POST_AMO,
                                             GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET, GNI_POST_CQWRITE };
    gni_cq_handle_t cq = make_cq(&a, 1, GNI_CQ_NOBLOCK);
    gni_ep_handle_t ep = make_ep(cq);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        gni_post_descriptor_t first = word_post(types[i], 0);
        gni_post_descriptor_t second = word_post(types[(i + 1) % COUNT_OF(types)], 8);

        first.amo_cmd = second.amo_cmd = GNI_FMA_ATOMIC_FADD;
        assert_int_equal(post_on(ep, &first), GNI_RC_SUCCESS);
        assert_int_equal(post_on(ep, &second), GNI_RC_ERROR_RESOURCE);
        assert_int_equal(finish_on(cq, &first), STATUS_OK);
    }
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
}

static void test_silent_posts_leak_no_slot(void **state)
{
    gni_cq_handle_t cq = make_cq(&a, 16, GNI_CQ_NOBLOCK);
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_ep_handle_t ep = make_ep(cq);
    gni_post_descriptor_t visible[17];
    gni_post_descriptor_t d[160];

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(d); i++) {
        gni_return_t rc;

        d[i] = gx_put(&a, &b, 8 * i, 8, GNI_CQMODE_SILENT);
        a.mem[8 * i] = (uint8_t)i;
        do {
            rc = post_on(ep, &d[i]);
            if (rc == GNI_RC_ERROR_RESOURCE)
                assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
        } while (rc == GNI_RC_ERROR_RESOURCE && emu_clock_ns() < end_ns);
        assert_int_equal(rc, GNI_RC_SUCCESS);
    }
    while (GNI_EpIdle(ep) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
    post_until_full(ep, visible, 16); /* all of them */
    for (unsigned i = 0; i < COUNT_OF(d); i++)
        assert_int_equal(b.mem[8 * i], (uint8_t)i);
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
}

/* ---- descriptors ---- */

static void test_entries_can_be_resolved_in_any_order(void **state)
{
    static const unsigned order[] = { 3, 0, 4, 1, 2 };
    gni_cq_entry_t entries[COUNT_OF(order)];
    gni_post_descriptor_t d[COUNT_OF(order)];
    gni_post_descriptor_t *done;

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(order); i++) {
        d[i] = word_post(GNI_POST_FMA_PUT, 8 * i);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entries[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < COUNT_OF(order); i++) {
        assert_int_equal(GNI_GetCompleted(a.src_cq, entries[order[i]], &done), GNI_RC_SUCCESS);
        assert_ptr_equal(done, &d[order[i]]);
    }
}

static void expect_no_descriptor(gni_cq_handle_t cq, gni_cq_entry_t entry)
{
    gni_post_descriptor_t *done = (gni_post_descriptor_t *)&fx;

    assert_int_equal(GNI_GetCompleted(cq, entry, &done), GNI_RC_DESCRIPTOR_ERROR);
    assert_null(done);
}

static void test_stale_entry_finds_no_descriptor(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
    expect_no_descriptor(a.src_cq, entry);
}

static void test_stale_entry_does_not_take_a_post_under_way(void **state)
{
    gni_post_descriptor_t first = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t second = word_post(GNI_POST_FMA_PUT, 8);
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(post(&first), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
    assert_int_equal(post(&second), GNI_RC_SUCCESS);
    expect_no_descriptor(a.src_cq, entry);
    assert_int_equal(finish(&second), STATUS_OK);
}

static void test_entry_of_another_queue_finds_no_descriptor(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t *done;
    gni_cq_entry_t remote;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &remote), GNI_RC_SUCCESS);
    expect_no_descriptor(a.dst_cq, entry);
    expect_no_descriptor(b.src_cq, entry);
    expect_no_descriptor(b.dst_cq, remote);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
    assert_ptr_equal(done, &d);
}

static void test_get_completed_refuses_bad_arguments(void **state)
{
    gni_cq_handle_t dead = make_cq(&a, 1, GNI_CQ_NOBLOCK);
    gni_post_descriptor_t *done;

    (void)state;
    GNI_CqDestroy(dead);
    assert_int_equal(GNI_GetCompleted(NULL, 1, &done), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetCompleted(dead, 1, &done), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetCompleted(a.src_cq, 1, NULL), GNI_RC_INVALID_PARAM);
}

static void test_lost_source_queue_lets_its_end_point_go(void **state)
{
    gni_cq_handle_t own = make_cq(&a, 4, GNI_CQ_NOBLOCK);
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    d.src_cq_hndl = own; /* no end point uses it, so it may be destroyed with the post unresolved */
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(own), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

/* ---- overrun ---- */

/* A destination queue of b and what it hears of: b's memory once more. */
struct listener {
    gni_cq_handle_t cq;
    gni_mem_handle_t target;
};

static struct listener open_listener(uint32_t entries, gni_cq_mode_t mode)
{
    struct listener l = { .cq = make_cq(&b, entries, mode) };

    l.target = register_with(l.cq);
    return l;
}

static void close_listener(struct listener *l)
{
    assert_int_equal(GNI_MemDeregister(b.nic, &l->target), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(l->cq), GNI_RC_SUCCESS);
}

static void expect_entries(gni_cq_handle_t cq, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(poll_once(cq), GNI_RC_SUCCESS);
}

static void expect_overrun(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry = 0;

    assert_int_equal(GNI_CqTestEvent(cq), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CqGetEvent(cq, &entry), GNI_RC_ERROR_RESOURCE);
    assert_int_not_equal(entry, 0);
    assert_true(GNI_CQ_OVERRUN(entry));
}

/* One for each entry that was lost, and the end of the queue after each. */
static void expect_overruns(gni_cq_handle_t cq, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        expect_overrun(cq);
        assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
    }
    assert_int_equal(GNI_CqTestEvent(cq), GNI_RC_NOT_DONE);
    assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
}

static void test_exactly_full_queue_is_no_overrun(void **state)
{
    struct listener l = open_listener(8, GNI_CQ_NOBLOCK);

    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        send_remote_events(l.target, 8);
        expect_entries(l.cq, 8);
        assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE);
    }
    close_listener(&l);
}

static void test_each_loss_is_told_once_after_the_entries_before_it(void **state)
{
    struct listener l = open_listener(8, GNI_CQ_NOBLOCK);
    gni_cq_entry_t entry;

    (void)state;
    send_remote_events(l.target, 11);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(GNI_CqGetEvent(l.cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), i);
        assert_false(GNI_CQ_OVERRUN(entry));
    }
    expect_overruns(l.cq, 3);
    close_listener(&l);
}

static void test_data_of_a_lost_event_are_delivered(void **state)
{
    struct listener l = open_listener(4, GNI_CQ_NOBLOCK);

    (void)state;
    send_remote_events(l.target, 20); /* completes each with status 0 */
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(b.mem[8 * i], i + 1);
    close_listener(&l);
}

static void test_queue_works_again_after_an_overrun_and_can_overrun_again(void **state)
{
    struct listener l = open_listener(4, GNI_CQ_NOBLOCK);

    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        send_remote_events(l.target, 5 + round);
        expect_entries(l.cq, 4);
        expect_overruns(l.cq, 1 + round);
        send_remote_events(l.target, 4);
        expect_entries(l.cq, 4);
        assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE);
    }
    close_listener(&l);
}

/* What comes while losses are still to be told is kept, and comes first. */
static void test_entries_come_between_losses(void **state)
{
    struct listener l = open_listener(4, GNI_CQ_NOBLOCK);

    (void)state;
    send_remote_events(l.target, 6);
    expect_entries(l.cq, 4);
    expect_overrun(l.cq);
    send_remote_events(l.target, 4);
    expect_entries(l.cq, 4);
    assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE); /* a drain ends, although there is more to be told */
    expect_overruns(l.cq, 1);
    close_listener(&l);
}

/* The default depth: whoever asks for one entry, and for no queue of others, means it. */
static void test_queue_of_one_entry_is_overrun_by_the_second_event(void **state)
{
    struct listener l = open_listener(1, GNI_CQ_NOBLOCK);

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        send_remote_events(l.target, 20);
        expect_entries(l.cq, 1);
        expect_overruns(l.cq, 19);
    }
    send_remote_events(l.target, 1);
    expect_entries(l.cq, 1);
    assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE);
    close_listener(&l);
}

/* An overrun on purpose: whoever has sent 20 events waits for 20 answers, and takes nothing else. shows: ex-overrun */
static void test_each_event_of_an_overrun_queue_has_its_answer(void **state)
{
    struct listener l = open_listener(1, GNI_CQ_BLOCKING);
    gni_cq_entry_t entry = 0;
    unsigned n_errors = 0;

    (void)state;
    for (unsigned wait = 0; wait < 2; wait++) {
        send_remote_events(l.target, 20);
        for (unsigned i = 0; i < 20; i++) {
            gni_return_t rc = wait ? GNI_CqWaitEvent(l.cq, 10000, &entry) : gx_next(l.cq, &entry);

            assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_ERROR_RESOURCE);
            assert_int_equal(GNI_CQ_OVERRUN(entry) != 0, rc == GNI_RC_ERROR_RESOURCE);
            n_errors += rc == GNI_RC_ERROR_RESOURCE;
        }
        poll_once(l.cq); /* the end of the last loss */
        assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE);
    }
    assert_int_equal(n_errors, 38);
    close_listener(&l);
}

static void test_queue_of_few_entries_holds_as_many_as_the_floor(void **state)
{
    struct listener l = open_listener(2, GNI_CQ_NOBLOCK);

    (void)state;
    send_remote_events(l.target, 512);
    expect_entries(l.cq, 512);
    assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE);
    close_listener(&l);
}

/* Its own completions do not overrun a queue of one entry: as a source queue it has the floor's transfer slots. */
static void test_source_queue_of_one_entry_has_the_floors_slots(void **state)
{
    gni_cq_handle_t cq = make_cq(&a, 1, GNI_CQ_NOBLOCK);
    gni_ep_handle_t ep = make_ep(cq);
    static gni_post_descriptor_t d[512];

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(d); i++) {
        d[i] = word_post(GNI_POST_FMA_PUT, 0);
        assert_int_equal(post_on(ep, &d[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < COUNT_OF(d); i++) {
        gni_post_descriptor_t *done;

        assert_int_equal(gx_complete(cq, &done), GNI_RC_SUCCESS);
    }
    assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
}

static int open_lenient_pair(void **state)
{
    setenv("EMUNIC_CQ_LITERAL", "0", 1);
    open_pair(state);
    unsetenv("EMUNIC_CQ_LITERAL");
    return 0;
}

static void test_setting_gives_a_queue_of_one_entry_the_floor(void **state)
{
    struct listener l = open_listener(1, GNI_CQ_NOBLOCK);

    (void)state;
    send_remote_events(l.target, 512);
    expect_entries(l.cq, 512);
    assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE);
    close_listener(&l);
}

static void test_unmanaged_queue_swallows_everything(void **state)
{
    struct listener l = open_listener(2, GNI_CQ_UNMANAGED);
    gni_post_descriptor_t d = word_post(GNI_POST_CQWRITE, 0);

    (void)state;
    send_remote_events(l.target, 20);
    d.remote_mem_hndl = l.target;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(run(&d), STATUS_OK);
    close_listener(&l);
}

static void test_unmanaged_queue_may_block_and_stays_empty(void **state)
{
    struct listener l = open_listener(2, GNI_CQ_UNMANAGED | GNI_CQ_BLOCKING | GNI_CQ_PHYS_PAGES);
    gni_cq_entry_t entry = 77;
    uint32_t which;

    (void)state;
    send_remote_events(l.target, 20);
    assert_int_equal(poll_once(l.cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqTestEvent(l.cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqWaitEvent(l.cq, 5, &entry), GNI_RC_TIMEOUT);
    assert_int_equal(GNI_CqVectorMonitor(&l.cq, 1, 5, &which), GNI_RC_TIMEOUT);
    close_listener(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_create_refuses_bad_arguments),
        pair_test(test_create_takes_every_mode_that_programs_use),
        pair_test(test_limit_of_queues_gives_error_resource_until_one_goes),
        pair_test(test_destroy_twice_is_refused),
        pair_test(test_destroy_of_a_source_queue_in_use_gives_error_resource),
        pair_test(test_destination_queue_may_go_before_its_memory),
        pair_test(test_new_queue_gets_no_events_of_an_old_one),
        pair_test(test_new_source_queue_hears_nothing_of_old_transfers),
        pair_test(test_new_queue_of_block_transfers_hears_nothing_of_old_ones),
        pair_test(test_poll_of_an_empty_queue_gives_not_done_and_zero),
        pair_test(test_poll_refuses_bad_arguments),
        pair_test(test_test_looks_and_takes_nothing),
        pair_test(test_handler_is_called_with_every_entry_that_is_taken),
        pair_test(test_handler_may_use_the_nic),
        exact_pair_test(test_queue_takes_as_many_posts_as_it_has_entries),
        exact_dual_pair_test(test_dual_events_halve_the_slots),
        exact_dual_pair_test(test_dual_posts_never_overrun_their_queue),
        exact_pair_test(test_every_kind_of_post_needs_a_slot),
        exact_pair_test(test_slots_are_the_queues_and_not_the_end_points),
        exact_pair_test(test_slot_is_free_after_the_descriptor_is_back_not_before),
        exact_pair_test(test_every_kind_of_post_takes_a_slot),
        exact_pair_test(test_silent_posts_leak_no_slot),
        pair_test(test_entries_can_be_resolved_in_any_order),
        pair_test(test_stale_entry_finds_no_descriptor),
        pair_test(test_stale_entry_does_not_take_a_post_under_way),
        pair_test(test_entry_of_another_queue_finds_no_descriptor),
        pair_test(test_get_completed_refuses_bad_arguments),
        pair_test(test_lost_source_queue_lets_its_end_point_go),
        exact_pair_test(test_exactly_full_queue_is_no_overrun),
        exact_pair_test(test_each_loss_is_told_once_after_the_entries_before_it),
        exact_pair_test(test_data_of_a_lost_event_are_delivered),
        exact_pair_test(test_queue_works_again_after_an_overrun_and_can_overrun_again),
        exact_pair_test(test_entries_come_between_losses),
        pair_test(test_queue_of_one_entry_is_overrun_by_the_second_event),
        pair_test(test_each_event_of_an_overrun_queue_has_its_answer),
        pair_test(test_queue_of_few_entries_holds_as_many_as_the_floor),
        pair_test(test_source_queue_of_one_entry_has_the_floors_slots),
        cmocka_unit_test_setup_teardown(test_setting_gives_a_queue_of_one_entry_the_floor, open_lenient_pair,
                                        close_pair),
        exact_pair_test(test_unmanaged_queue_swallows_everything),
        exact_pair_test(test_unmanaged_queue_may_block_and_stays_empty),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
