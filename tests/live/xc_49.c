/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-49: the first error of a burst is known. Five errors of five kinds are there when emunic looks at the first, so
 * they come within microseconds. The marked event names the first one, also where there is no room for the others.
 */
#include "tests/live/live.h"

#define N     5u
#define FIRST (1ull << 16) /* in info_mmrs[3], as gni_pub.h says */

static const enum status statuses[N] = { STATUS_REMOTE_RANGE, STATUS_BAD_HANDLE, STATUS_REMOTE_PERMISSION,
                                         STATUS_NETWORK, STATUS_PEER_GONE };

/* Five that fail, the first of them kind `first`. */
static void burst(unsigned first)
{
    gni_mem_handle_t gone = register_on(&b, b.mem, 4096, GNI_MEM_READWRITE);
    gni_mem_handle_t read_only = register_on(&b, b.mem, 4096, GNI_MEM_READ_ONLY);
    static gni_post_descriptor_t d[N];
    gni_ep_handle_t nobody;

    assert_int_equal(GNI_MemDeregister(b.nic, &gone), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &nobody), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(nobody, 4000, 1), GNI_RC_SUCCESS);
    fx_add_fault(&fx, "class=bte-put action=drop");
    freeze_emunic();
    for (unsigned i = 0; i < N; i++) {
        unsigned kind = (first + i) % N;

        d[i] = word_post(kind == 3 ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, 0);
        d[i].remote_addr = ADDR(b.mem) + (kind == 0 ? GX_BYTES : 8 * kind);
        d[i].remote_mem_hndl = kind == 1 ? gone : kind == 2 ? read_only : b.mem_hndl;
        assert_int_equal(post_on(kind == 4 ? nobody : a.ep, &d[i]), GNI_RC_SUCCESS);
    }
    thaw_emunic();
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(finish(&d[i]), statuses[(first + i) % N]);
    fx_clear_faults(&fx);
    assert_int_equal(GNI_EpDestroy(nobody), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(b.nic, &read_only), GNI_RC_SUCCESS);
}

static gni_err_handle_t subscribe_with(uint32_t room)
{
    gni_err_handle_t err = NULL;
    gni_error_mask_t mask = 0xff & ~GNI_ERRMASK_INFORMATIONAL; /* not the changes of rules */

    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, mask, room, &err), GNI_RC_SUCCESS);
    return err;
}

static void test_the_first_of_five_is_marked_whatever_it_is(void **state)
{
    gni_err_handle_t err = subscribe_with(64);

    (void)state;
    for (unsigned first = 0; first < N; first++) {
        burst(first);
        for (unsigned i = 0; i < N; i++) {
            unsigned kind = (first + i) % N;
            gni_error_event_t event = next_error(err);

            assert_int_equal(event.error_code, statuses[kind]);
            assert_int_equal(event.serial_number, first * N + i + 1);
            assert_true(((event.info_mmrs[3] & FIRST) != 0) == (i == 0));
            assert_true(event.info_mmrs[2] == ADDR(b.mem) + (kind == 0 ? GX_BYTES : 8 * kind));
        }
    }
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_the_first_is_kept_where_there_is_no_room_for_the_others(void **state)
{
    gni_err_handle_t err = subscribe_with(1);
    gni_error_event_t event;

    (void)state;
    for (unsigned first = 0; first < N; first++) {
        burst(first);
        event = next_error(err);
        assert_int_equal(event.error_code, statuses[first]);
        assert_true((event.info_mmrs[3] & FIRST) != 0);
        assert_int_equal(event.serial_number, first * N + 1); /* the lost ones are counted */
        assert_int_equal(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE);
    }
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_the_first_of_five_is_marked_whatever_it_is),
        pair_test(test_the_first_is_kept_where_there_is_no_room_for_the_others),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
