/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that this library does not implement: each answers the code that gni_pub.h documents for it, and
 * leaves its outputs alone. Then what chained posts refuse.
 */
#include <gni_pub.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "libugni/src/object.h"

/* Handles that are not NULL; the calls must not read through them. */
static gni_ep_handle_t some_ep = (gni_ep_handle_t)0x10;

/* Chained posts are real (libugni/src/chained.c); without a NIC only their refusals can be seen. */
static void test_chained_posts_check_their_arguments(void **state)
{
    static const gni_post_type_t not_fma[] = { GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET, GNI_POST_CQWRITE };
    gni_post_descriptor_t put = { .type = GNI_POST_FMA_PUT }, cqw = { .type = GNI_POST_CQWRITE };

    (void)state;
    assert_int_equal(GNI_CtPostFma(some_ep, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostFma(NULL, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostFma(some_ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(some_ep, &cqw), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(NULL, &cqw), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(some_ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(some_ep, &put), GNI_RC_INVALID_PARAM);
    for (size_t i = 0; i < sizeof(not_fma) / sizeof(not_fma[0]); i++) {
        gni_post_descriptor_t d = { .type = not_fma[i] };

        assert_int_equal(GNI_CtPostFma(some_ep, &d), GNI_RC_INVALID_PARAM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chained_posts_check_their_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
