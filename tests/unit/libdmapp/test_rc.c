/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uGNI's codes as DMAPP's: each one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libdmapp/src/job.h"

static void test_each_code_of_ugni_has_one_of_dmapp(void **state)
{
    static const dmapp_return_t code_of[] = {
        [GNI_RC_SUCCESS] = DMAPP_RC_SUCCESS,
        [GNI_RC_NOT_DONE] = DMAPP_RC_NOT_DONE,
        [GNI_RC_INVALID_PARAM] = DMAPP_RC_INVALID_PARAM,
        [GNI_RC_ERROR_RESOURCE] = DMAPP_RC_RESOURCE_ERROR,
        [GNI_RC_TIMEOUT] = DMAPP_RC_TRANSACTION_ERROR,
        [GNI_RC_PERMISSION_ERROR] = DMAPP_RC_PERMISSION_ERROR,
        [GNI_RC_DESCRIPTOR_ERROR] = DMAPP_RC_INVALID_PARAM,
        [GNI_RC_ALIGNMENT_ERROR] = DMAPP_RC_ALIGNMENT_ERROR,
        [GNI_RC_INVALID_STATE] = DMAPP_RC_RESOURCE_ERROR,
        [GNI_RC_NO_MATCH] = DMAPP_RC_INVALID_PARAM,
        [GNI_RC_SIZE_ERROR] = DMAPP_RC_INVALID_PARAM,
        [GNI_RC_TRANSACTION_ERROR] = DMAPP_RC_TRANSACTION_ERROR,
        [GNI_RC_ILLEGAL_OP] = DMAPP_RC_NOT_SUPPORTED,
        [GNI_RC_ERROR_NOMEM] = DMAPP_RC_RESOURCE_ERROR,
    };

    (void)state;
    for (unsigned rc = 0; rc < sizeof(code_of) / sizeof(code_of[0]); rc++)
        assert_int_equal(dmappi_rc((gni_return_t)rc), code_of[rc]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_code_of_ugni_has_one_of_dmapp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
