/* SPDX-License-Identifier: BSD-3-Clause */
/* Chained FMA and chained queue writes: many operations, one completion. Specification: spec/ugni.md A.1. */
#include "tests/conformance/pair.h"

#define N 64 /* the longest chain that a known program makes */

static gni_post_descriptor_t head(gni_post_type_t type)
{
    gni_post_descriptor_t d = word_post(type, 0);

    d.amo_cmd = GNI_FMA_ATOMIC_FADD;
    d.first_operand = 1;
    d.cqwrite_value = 0;
    return d;
}

/* Links elements 0 .. n-1 behind the head; element i works on word i + 1. */
static void make_puts(gni_post_descriptor_t *first, gni_ct_put_post_descriptor_t *e, unsigned n)
{
    void **link = &first->next_descr;

    for (unsigned i = 0; i < n; i++) {
        e[i] = (gni_ct_put_post_descriptor_t){ .ep_hndl = a.ep,
                                               .remote_addr = ADDR(b.mem) + 8 * (i + 1),
                                               .remote_mem_hndl = b.mem_hndl,
                                               .length = 8,
                                               .local_addr = ADDR(a.mem) + 8 * (i + 1) };
        *link = &e[i];
        link = &e[i].next_descr;
    }
}

static void make_gets(gni_post_descriptor_t *first, gni_ct_get_post_descriptor_t *e, unsigned n)
{
    void **link = &first->next_descr;

    for (unsigned i = 0; i < n; i++) {
        e[i] = (gni_ct_get_post_descriptor_t){ .ep_hndl = a.ep,
                                               .remote_addr = ADDR(b.mem) + 8 * (i + 1),
                                               .remote_mem_hndl = b.mem_hndl,
                                               .length = 8,
                                               .local_addr = ADDR(a.mem) + 8 * (i + 1),
                                               .local_mem_hndl = a.mem_hndl };
        *link = &e[i];
        link = &e[i].next_descr;
    }
}

static void make_amos(gni_post_descriptor_t *first, gni_ct_amo_post_descriptor_t *e, unsigned n)
{
    void **link = &first->next_descr;

    for (unsigned i = 0; i < n; i++) {
        e[i] = (gni_ct_amo_post_descriptor_t){ .ep_hndl = a.ep,
                                               .remote_addr = ADDR(b.mem) + 8 * (i + 1),
                                               .remote_mem_hndl = b.mem_hndl,
                                               .length = 8,
                                               .amo_cmd = GNI_FMA_ATOMIC_FADD,
                                               .first_operand = i + 2,
                                               .local_addr = ADDR(a.mem) + 8 * (i + 1),
                                               .local_mem_hndl = a.mem_hndl };
        *link = &e[i];
        link = &e[i].next_descr;
    }
}

static void make_writes(gni_post_descriptor_t *first, gni_ct_cqw_post_descriptor_t *e, unsigned n)
{
    void **link = &first->next_descr;

    for (unsigned i = 0; i < n; i++) {
        e[i] = (gni_ct_cqw_post_descriptor_t){ .ep_hndl = a.ep, .remote_mem_hndl = b.mem_hndl, .cqwrite_value = i + 1 };
        *link = &e[i];
        link = &e[i].next_descr;
    }
}

static gni_return_t post_chain(gni_post_descriptor_t *d)
{
    return d->type == GNI_POST_CQWRITE ? GNI_CtPostCqWrite(a.ep, d) : GNI_CtPostFma(a.ep, d);
}

static enum status run_chain(gni_post_descriptor_t *d)
{
    enum status status;

    assert_int_equal(post_chain(d), GNI_RC_SUCCESS);
    status = finish(d);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE); /* one entry for all */
    return status;
}

static uint64_t word(const struct gx_side *side, unsigned i)
{
    uint64_t value;

    memcpy(&value, side->mem + (size_t)8 * i, 8);
    return value;
}

static void set_word(const struct gx_side *side, unsigned i, uint64_t value)
{
    memcpy(side->mem + (size_t)8 * i, &value, 8);
}

/* ---- each kind ---- */

/* covers: GNI_CtPostFma: GNI_RC_SUCCESS */
static void test_chained_puts_arrive_with_one_completion(void **state)
{
    static const unsigned lengths[] = { 0, 1, 2, N - 1 };
    gni_ct_put_post_descriptor_t e[N];

    (void)state;
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
        gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);

        for (unsigned i = 0; i < N; i++) {
            set_word(&a, i, i + 100);
            set_word(&b, i, 0);
        }
        make_puts(&d, e, lengths[l]);
        assert_int_equal(run_chain(&d), STATUS_OK);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(word(&b, i), i <= lengths[l] ? i + 100 : 0);
    }
}

static void test_chained_gets_arrive_with_one_completion(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_GET);
    gni_ct_get_post_descriptor_t e[N - 1];

    (void)state;
    for (unsigned i = 0; i < N; i++)
        set_word(&b, i, i + 7);
    make_gets(&d, e, N - 1);
    assert_int_equal(run_chain(&d), STATUS_OK);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(word(&a, i), i + 7);
}

static void test_chained_atomics_work_with_one_completion(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_AMO);
    gni_ct_amo_post_descriptor_t e[N - 1];

    (void)state;
    for (unsigned i = 0; i < N; i++)
        set_word(&b, i, 1000 * i);
    make_amos(&d, e, N - 1);
    assert_int_equal(run_chain(&d), STATUS_OK);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(word(&b, i), 1000 * i + i + 1);
        assert_int_equal(word(&a, i), 1000 * i);
    }
}

static void test_chained_atomics_without_result_read_no_local_fields(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_AMO);
    gni_ct_amo_post_descriptor_t e[3];

    (void)state;
    make_amos(&d, e, 3);
    for (unsigned i = 0; i < 3; i++) {
        e[i].amo_cmd = i == 1 ? GNI_FMA_ATOMIC2_FAX : GNI_FMA_ATOMIC2_CSWAP; /* commands may differ */
        e[i].first_operand = 0;
        e[i].second_operand = i + 50;
        if (i != 1)
            memset(&e[i].local_addr, 0xa5, sizeof(e[i]) - offsetof(gni_ct_amo_post_descriptor_t, local_addr));
    }
    memset(a.mem, 0xdd, 64);
    assert_int_equal(run_chain(&d), STATUS_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(word(&b, i + 1), i + 50);
    assert_true(all_bytes_are(a.mem + 8, 0xdd, 8));
    assert_int_equal(word(&a, 2), 0);
    assert_true(all_bytes_are(a.mem + 24, 0xdd, 8));
}

/* covers: GNI_CtPostCqWrite: GNI_RC_SUCCESS */
static void test_chained_queue_writes_arrive_in_order_with_one_completion(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_CQWRITE);
    gni_ct_cqw_post_descriptor_t e[N - 1];
    gni_cq_entry_t entry;

    (void)state;
    make_writes(&d, e, N - 1);
    assert_int_equal(run_chain(&d), STATUS_OK);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_DATA(entry), i);
    }
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
}

/* ---- end points and events ---- */

static void test_elements_may_go_to_different_targets(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);
    gni_ct_put_post_descriptor_t e[2];
    struct gx_side c;
    gni_ep_handle_t ep;

    (void)state;
    gx_open(&c, &fx, 2, 12, 0);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, c.nic_addr, c.inst_id), GNI_RC_SUCCESS);
    make_puts(&d, e, 2);
    e[0].ep_hndl = ep;
    e[0].remote_addr = ADDR(c.mem);
    e[0].remote_mem_hndl = c.mem_hndl;
    for (unsigned i = 0; i < 3; i++)
        set_word(&a, i, i + 1);
    assert_int_equal(run_chain(&d), STATUS_OK);
    assert_int_equal(word(&b, 0), 1);
    assert_int_equal(word(&c, 0), 2);
    assert_int_equal(word(&b, 1), 0);
    assert_int_equal(word(&b, 2), 3);
    GNI_EpDestroy(ep);
    gx_close(&c);
}

static void test_every_element_makes_its_remote_event(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);
    gni_ct_put_post_descriptor_t e[9];
    gni_cq_entry_t entry;

    (void)state;
    make_puts(&d, e, 9);
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    assert_int_equal(run_chain(&d), STATUS_OK);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), a.inst_id);
    }
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
}

static void test_chain_takes_one_slot(void **state)
{
    gni_ct_put_post_descriptor_t e[128][3];
    gni_post_descriptor_t d[129];

    (void)state; /* 128 entries exactly */
    for (unsigned i = 0; i < 129; i++) {
        d[i] = head(GNI_POST_FMA_PUT);
        make_puts(&d[i], e[i % 128], 3);
        assert_int_equal(GNI_CtPostFma(a.ep, &d[i]), i < 128 ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE);
    }
    for (unsigned i = 0; i < 128; i++)
        assert_int_equal(finish(&d[i]), STATUS_OK);
}

static void test_chain_of_queue_writes_takes_one_slot(void **state)
{
    gni_ct_cqw_post_descriptor_t e[3];
    gni_post_descriptor_t puts[128];
    gni_post_descriptor_t d = head(GNI_POST_CQWRITE);

    (void)state; /* 128 entries exactly */
    make_writes(&d, e, 3);
    for (unsigned i = 0; i < 128; i++) {
        puts[i] = word_post(GNI_POST_FMA_PUT, 8);
        assert_int_equal(post(&puts[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_CtPostCqWrite(a.ep, &d), GNI_RC_ERROR_RESOURCE);
    for (unsigned i = 0; i < 128; i++)
        assert_int_equal(finish(&puts[i]), STATUS_OK);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE); /* nothing of it was started */
    assert_int_equal(GNI_CtPostCqWrite(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
}

static void test_silent_chain_makes_no_entry(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);
    gni_ct_put_post_descriptor_t e[5];

    (void)state;
    set_word(&a, 5, 55);
    make_puts(&d, e, 5);
    d.cq_mode = GNI_CQMODE_SILENT;
    assert_int_equal(post_chain(&d), GNI_RC_SUCCESS);
    wait_for_all_before(&a, &b);
    assert_int_equal(word(&b, 5), 55);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

static void test_dual_chain_makes_two_entries(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);
    gni_ct_put_post_descriptor_t e[5];

    (void)state;
    make_puts(&d, e, 5);
    d.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    assert_int_equal(post_chain(&d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

static void test_completion_comes_after_the_longest_element(void **state)
{
    const size_t bytes = 4u << 20;
    gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);
    gni_ct_put_post_descriptor_t e[3];
    uint8_t *source = pages(bytes);
    uint8_t *target = pages(bytes);
    gni_mem_handle_t handle = register_on(&b, target, bytes, GNI_MEM_READWRITE);

    (void)state;
    fill(source, bytes, 1);
    for (unsigned place = 0; place < 3; place++) {
        make_puts(&d, e, 3);
        e[place].length = bytes;
        e[place].local_addr = ADDR(source);
        e[place].remote_addr = ADDR(target);
        e[place].remote_mem_hndl = handle;
        memset(target, 0, bytes);
        assert_int_equal(run_chain(&d), STATUS_OK);
        assert_true(memcmp(target, source, bytes) == 0);
    }
    GNI_MemDeregister(b.nic, &handle);
    munmap(source, bytes);
    munmap(target, bytes);
}

static void test_element_writes_nothing_after_its_end_point_is_destroyed(void **state)
{
    const size_t bytes = 32u << 20;
    gni_post_descriptor_t d = head(GNI_POST_FMA_GET);
    gni_ct_get_post_descriptor_t e[1];
    uint8_t *source = pages(bytes);
    uint8_t *sink = pages(bytes);
    gni_mem_handle_t source_handle = register_on(&b, source, bytes, GNI_MEM_READWRITE);
    gni_mem_handle_t sink_handle = register_on(&a, sink, bytes, GNI_MEM_READWRITE);
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    make_gets(&d, e, 1);
    e[0] = (gni_ct_get_post_descriptor_t){ .ep_hndl = ep,
                                           .remote_addr = ADDR(source),
                                           .remote_mem_hndl = source_handle,
                                           .length = bytes,
                                           .local_addr = ADDR(sink),
                                           .local_mem_hndl = sink_handle };
    assert_int_equal(post_chain(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    memset(sink, 0xee, bytes);
    assert_int_equal(finish(&d), STATUS_OK); /* the chain is the head's */
    assert_true(all_bytes_are(sink, 0xee, bytes));
    GNI_MemDeregister(a.nic, &sink_handle);
    GNI_MemDeregister(b.nic, &source_handle);
    munmap(source, bytes);
    munmap(sink, bytes);
}

/* ---- failures ---- */

static void test_failure_of_any_element_is_the_chains(void **state)
{
    gni_ct_put_post_descriptor_t e[4];

    (void)state;
    for (unsigned bad = 0; bad < 5; bad++) {
        gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);

        make_puts(&d, e, 4);
        if (bad == 0)
            d.remote_addr += GX_BYTES;
        else
            e[bad - 1].remote_addr += GX_BYTES;
        assert_int_equal(run_chain(&d), STATUS_REMOTE_RANGE);
        assert_int_equal(d.status, STATUS_REMOTE_RANGE);
    }
}

static void test_first_failure_is_the_one_that_is_told(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_GET);
    gni_ct_get_post_descriptor_t e[4];
    uint8_t *mem = pages(4096);
    gni_mem_handle_t stale = register_on(&b, mem, 4096, GNI_MEM_READWRITE);

    (void)state;
    GNI_MemDeregister(b.nic, &stale);
    make_gets(&d, e, 4);
    e[1].remote_addr = ADDR(mem);
    e[1].remote_mem_hndl = stale;
    e[2].remote_addr += GX_BYTES;
    assert_int_equal(run_chain(&d), STATUS_BAD_HANDLE);
    munmap(mem, 4096);
}

static void test_failed_chain_does_not_taint_the_next(void **state)
{
    gni_post_descriptor_t bad = head(GNI_POST_FMA_PUT);
    gni_post_descriptor_t good = head(GNI_POST_FMA_PUT);
    gni_post_descriptor_t single = head(GNI_POST_FMA_PUT);
    gni_ct_put_post_descriptor_t e[2][3];

    (void)state;
    make_puts(&bad, e[0], 3);
    e[0][1].remote_addr += GX_BYTES;
    make_puts(&good, e[1], 3);
    assert_int_equal(post_chain(&bad), GNI_RC_SUCCESS);
    assert_int_equal(post(&single), GNI_RC_SUCCESS);
    assert_int_equal(post_chain(&good), GNI_RC_SUCCESS);
    assert_int_equal(finish(&bad), STATUS_REMOTE_RANGE);
    assert_int_equal(finish(&single), STATUS_OK);
    assert_int_equal(finish(&good), STATUS_OK);
}

static void test_queue_write_into_a_full_queue_fails_the_chain(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_CQWRITE);
    gni_ct_cqw_post_descriptor_t e[4];
    gni_mem_handle_t handle;
    gni_cq_handle_t cq;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 2, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(b.mem), 4096, cq, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    make_writes(&d, e, 4);
    d.remote_mem_hndl = handle;
    e[0].remote_mem_hndl = e[1].remote_mem_hndl = handle; /* the third is one too many, the last two go elsewhere */
    assert_int_equal(run_chain(&d), STATUS_REMOTE_CQ_FULL);
    GNI_MemDeregister(b.nic, &handle);
    GNI_CqDestroy(cq);
}

/* ---- refused as a whole ---- */

static void expect_refused(gni_post_descriptor_t *d, gni_return_t rc)
{
    memset(a.mem, 0x11, 128);
    memset(b.mem, 0xee, 128);
    assert_int_equal(post_chain(d), rc);
    wait_for_all_before(&a, &b);
    assert_true(all_bytes_are(b.mem, 0xee, 128)); /* nothing was started */
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
}

static void test_element_on_a_bad_end_point_refuses_the_chain(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_PUT);
    gni_ct_put_post_descriptor_t e[3];
    gni_ep_handle_t unbound;
    gni_ep_handle_t dead;

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &unbound), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &dead), GNI_RC_SUCCESS);
    GNI_EpDestroy(dead);
    make_puts(&d, e, 3);
    e[2].ep_hndl = NULL;
    expect_refused(&d, GNI_RC_INVALID_PARAM);
    e[2].ep_hndl = dead;
    expect_refused(&d, GNI_RC_INVALID_PARAM);
    e[2].ep_hndl = unbound;
    expect_refused(&d, GNI_RC_INVALID_PARAM);
    e[2].ep_hndl = b.ep; /* of another NIC handle */
    expect_refused(&d, GNI_RC_INVALID_PARAM);
    GNI_EpDestroy(unbound);
}

/* covers: GNI_CtPostFma: GNI_RC_ALIGNMENT_ERROR */
static void test_misaligned_element_refuses_the_chain(void **state)
{
    gni_post_descriptor_t get = head(GNI_POST_FMA_GET);
    gni_post_descriptor_t amo = head(GNI_POST_AMO);
    gni_ct_get_post_descriptor_t gets[3];
    gni_ct_amo_post_descriptor_t amos[3];

    (void)state;
    make_gets(&get, gets, 3);
    gets[1].remote_addr += 2;
    expect_refused(&get, GNI_RC_ALIGNMENT_ERROR);
    make_amos(&amo, amos, 3);
    amos[2].remote_addr += 4;
    expect_refused(&amo, GNI_RC_ALIGNMENT_ERROR);
}

static void test_element_without_its_memory_refuses_the_chain(void **state)
{
    gni_post_descriptor_t d = head(GNI_POST_FMA_GET);
    gni_ct_get_post_descriptor_t e[3];

    (void)state;
    make_gets(&d, e, 3);
    e[0].local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    expect_refused(&d, GNI_RC_INVALID_PARAM);
    make_gets(&d, e, 3);
    e[2].remote_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    expect_refused(&d, GNI_RC_INVALID_PARAM);
    make_gets(&d, e, 3);
    e[2].length = 0;
    expect_refused(&d, GNI_RC_INVALID_PARAM);
}

/* covers: GNI_CtPostFma: GNI_RC_PERMISSION_ERROR */
static void test_element_into_read_only_memory_refuses_the_chain(void **state)
{
    uint8_t *sink = pages(4096);
    gni_mem_handle_t handle = register_on(&a, sink, 4096, GNI_MEM_READ_ONLY);
    gni_post_descriptor_t d = head(GNI_POST_FMA_GET);
    gni_ct_get_post_descriptor_t e[3];

    (void)state;
    make_gets(&d, e, 3);
    e[1].local_addr = ADDR(sink);
    e[1].local_mem_hndl = handle;
    expect_refused(&d, GNI_RC_PERMISSION_ERROR);
    assert_true(all_bytes_are(sink, 0, 4096));
    GNI_MemDeregister(a.nic, &handle);
    munmap(sink, 4096);
}

static void test_other_types_cannot_be_chained(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 20; type++) {
        gni_post_descriptor_t d = head((gni_post_type_t)type);

        if (type != GNI_POST_FMA_PUT && type != GNI_POST_FMA_GET && type != GNI_POST_AMO)
            assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
        if (type != GNI_POST_CQWRITE)
            assert_int_equal(GNI_CtPostCqWrite(a.ep, &d), GNI_RC_INVALID_PARAM);
    }
}

static void test_chains_refuse_null_and_dead_arguments(void **state)
{
    gni_post_descriptor_t put = head(GNI_POST_FMA_PUT);
    gni_post_descriptor_t write = head(GNI_POST_CQWRITE);

    (void)state;
    assert_int_equal(GNI_CtPostFma(NULL, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostFma(a.ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(NULL, &write), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(a.ep, NULL), GNI_RC_INVALID_PARAM);
    put.cq_mode = GNI_CQMODE_DUAL_EVENTS; /* without the mode */
    assert_int_equal(GNI_CtPostFma(a.ep, &put), GNI_RC_INVALID_PARAM);
    GNI_EpDestroy(a.ep);
    assert_int_equal(GNI_CtPostFma(a.ep, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(a.ep, &write), GNI_RC_INVALID_PARAM);
    a.ep = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_chained_puts_arrive_with_one_completion),
        pair_test(test_chained_gets_arrive_with_one_completion),
        pair_test(test_chained_atomics_work_with_one_completion),
        pair_test(test_chained_atomics_without_result_read_no_local_fields),
        pair_test(test_chained_queue_writes_arrive_in_order_with_one_completion),
        pair_test(test_elements_may_go_to_different_targets),
        pair_test(test_every_element_makes_its_remote_event),
        exact_pair_test(test_chain_takes_one_slot),
        exact_pair_test(test_chain_of_queue_writes_takes_one_slot),
        pair_test(test_silent_chain_makes_no_entry),
        dual_pair_test(test_dual_chain_makes_two_entries),
        pair_test(test_completion_comes_after_the_longest_element),
        pair_test(test_element_writes_nothing_after_its_end_point_is_destroyed),
        pair_test(test_failure_of_any_element_is_the_chains),
        pair_test(test_first_failure_is_the_one_that_is_told),
        pair_test(test_failed_chain_does_not_taint_the_next),
        exact_pair_test(test_queue_write_into_a_full_queue_fails_the_chain),
        pair_test(test_element_on_a_bad_end_point_refuses_the_chain),
        pair_test(test_misaligned_element_refuses_the_chain),
        pair_test(test_element_without_its_memory_refuses_the_chain),
        pair_test(test_element_into_read_only_memory_refuses_the_chain),
        pair_test(test_other_types_cannot_be_chained),
        pair_test(test_chains_refuse_null_and_dead_arguments),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
