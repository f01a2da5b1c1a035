/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aries/misc/exceptions.h as programs for Aries use it: they compare the status of an entry with its names.
 * Specification: spec/ugni.md 2.10, 7.3; and what the access that memory is registered with forbids (2.7, 4.7, 4.8).
 */
#ifndef CRAY_CONFIG_GHAL_ARIES
#define CRAY_CONFIG_GHAL_ARIES
#endif

#include <gni_pub.h>
#ifdef CRAY_CONFIG_GHAL_ARIES
#include "aries/misc/exceptions.h"
#endif

#include "tests/conformance/pair.h"

/* The names and the numbers that gni_cq_get_status() documents. */
static_assert(A_STATUS_OK == STATUS_OK, "status");
static_assert(A_STATUS_NETWORK_ERR == STATUS_NETWORK, "status");
static_assert(A_STATUS_PEER_GONE == STATUS_PEER_GONE, "status");
static_assert(A_STATUS_AT_INVALID_HNDL == STATUS_BAD_HANDLE, "status");
static_assert(A_STATUS_AT_BOUNDS_ERR == STATUS_REMOTE_RANGE, "status");
static_assert(A_STATUS_AT_PROTECTION_ERR == STATUS_REMOTE_PERMISSION, "status");
static_assert(A_STATUS_CQ_FULL == STATUS_REMOTE_CQ_FULL, "status");
static_assert(A_STATUS_LOCAL_ACCESS_ERR == STATUS_LOCAL_ACCESS, "status");
static_assert(A_STATUS_RETRANSMIT_LIMIT == STATUS_RETRANSMIT_LIMIT, "status");
static_assert(A_STATUS_CANCELLED == STATUS_CANCELLED, "status");
static_assert(A_STATUS_BAD_COMMAND == STATUS_BAD_COMMAND, "status");
static_assert(A_STATUS_CE_MISMATCH == STATUS_MISMATCH, "status");

static uint8_t *page;
static gni_mem_handle_t read_only;

/* A page of the side, registered so that it may only be read. */
static void open_page(const struct gx_side *side)
{
    page = aligned_alloc(4096, 4096);
    assert_non_null(page);
    memset(page, 0, 4096);
    assert_int_equal(GNI_MemRegister(side->nic, ADDR(page), 4096, NULL, GNI_MEM_READ_ONLY, (uint32_t)-1, &read_only),
                     GNI_RC_SUCCESS);
}

static void close_page(const struct gx_side *side)
{
    assert_int_equal(GNI_MemDeregister(side->nic, &read_only), GNI_RC_SUCCESS);
    free(page);
}

static gni_post_descriptor_t transfer(gni_post_type_t type)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 64, GNI_CQMODE_GLOBAL_EVENT);

    d.type = type;
    return d;
}

/* What the program prints or counts: the status of the entry of a transaction that failed. */
static uint64_t status_of_failure(gni_post_descriptor_t *d)
{
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry = 0;

    assert_int_equal(post(d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
    assert_ptr_equal(done, d);
    assert_int_equal(done->status, GNI_CQ_GET_STATUS(entry));
    return GNI_CQ_GET_STATUS(entry);
}

static void test_put_into_read_only_memory_is_a_protection_error(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };

    (void)state;
    open_page(&b);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        gni_post_descriptor_t d = transfer(types[i]);

        memset(a.mem, 1, 64);
        d.remote_addr = ADDR(page);
        d.remote_mem_hndl = read_only;
        assert_int_equal(status_of_failure(&d), A_STATUS_AT_PROTECTION_ERR);
        assert_int_equal(page[0], 0);
    }
    close_page(&b);
}

static void test_transfers_that_no_registration_covers_have_statuses_of_their_own(void **state)
{
    gni_post_descriptor_t beyond = transfer(GNI_POST_FMA_PUT);
    gni_post_descriptor_t stale = transfer(GNI_POST_RDMA_GET);

    (void)state;
    beyond.remote_addr += GX_BYTES;
    assert_int_equal(status_of_failure(&beyond), A_STATUS_AT_BOUNDS_ERR);
    open_page(&b);
    stale.remote_addr = ADDR(page);
    stale.remote_mem_hndl = read_only;
    close_page(&b);
    assert_int_equal(status_of_failure(&stale), A_STATUS_AT_INVALID_HNDL);
}

/*
 * At the initiator it is told at the post, and nothing is started: the entry and the slot would have come to nothing.
 * covers: GNI_PostFma: GNI_RC_PERMISSION_ERROR; covers: GNI_PostRdma: GNI_RC_PERMISSION_ERROR
 */
static void test_get_into_ones_own_read_only_memory_is_refused_at_the_post(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_GET, GNI_POST_RDMA_GET };
    gni_post_descriptor_t good = transfer(GNI_POST_FMA_PUT);

    (void)state;
    open_page(&a);
    memset(b.mem, 1, 64);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        gni_post_descriptor_t d = transfer(types[i]);
        gni_post_descriptor_t before;

        d.local_addr = ADDR(page);
        d.local_mem_hndl = read_only;
        before = d;
        assert_int_equal(post(&d), GNI_RC_PERMISSION_ERROR);
        assert_memory_equal(&d, &before, sizeof(d));
    }
    /* No entry of theirs comes before that of the next post. */
    assert_int_equal(run(&good), STATUS_OK);
    assert_int_equal(page[0], 0);
    close_page(&a);
}

/* Peers may read such memory, and its owner may send from it. */
static void test_read_only_memory_can_be_got_from_and_put_from(void **state)
{
    gni_post_descriptor_t put = transfer(GNI_POST_RDMA_PUT);
    gni_post_descriptor_t get = transfer(GNI_POST_RDMA_GET);

    (void)state;
    open_page(&a);
    put.local_addr = ADDR(page);
    put.local_mem_hndl = read_only;
    assert_int_equal(run(&put), STATUS_OK);
    close_page(&a);
    open_page(&b);
    get.remote_addr = ADDR(page);
    get.remote_mem_hndl = read_only;
    assert_int_equal(run(&get), STATUS_OK);
    close_page(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_put_into_read_only_memory_is_a_protection_error),
        pair_test(test_transfers_that_no_registration_covers_have_statuses_of_their_own),
        pair_test(test_get_into_ones_own_read_only_memory_is_refused_at_the_post),
        pair_test(test_read_only_memory_can_be_got_from_and_put_from),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
