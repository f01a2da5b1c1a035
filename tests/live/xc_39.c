/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-39: one contiguous store of 64 bytes for each processing element reaches every one of them (the window's scatter
 * bits), one get collects them, and a NIC has 127 FMA descriptors: the 128th is refused.
 */
#include <gni_pub.h>

#include "tests/common/dmapp.h"

#define WORDS 8u /* 64 bytes */

static void test_one_store_scatters_over_all(void **state)
{
    size_t npes = (size_t)dx_job.npes;
    size_t me = (size_t)dx_job.pe;
    uint64_t *area = dx_alloc(npes * WORDS * 8);
    uint64_t *source = malloc(npes * WORDS * 8);
    uint64_t *back = calloc(npes, WORDS * 8);
    dmapp_pe_t *list = malloc(npes * sizeof(*list));

    (void)state;
    for (size_t i = 0; i < npes * WORDS; i++)
        source[i] = me * 1000 + i;
    for (size_t i = 0; i < npes; i++)
        list[i] = (dmapp_pe_t)i;
    assert_int_equal(
        dmapp_scatter_ixpe(area + me * WORDS, &dx_job.sheap_seg, list, (uint32_t)npes, source, WORDS, DMAPP_QW),
        DMAPP_RC_SUCCESS);
    dx_barrier();
    for (size_t from = 0; from < npes; from++) {
        for (size_t k = 0; k < WORDS; k++)
            assert_int_equal(area[from * WORDS + k], from * 1000 + me * WORDS + k);
    }
    assert_int_equal(
        dmapp_gather_ixpe(back, area + me * WORDS, &dx_job.sheap_seg, list, (uint32_t)npes, WORDS, DMAPP_QW),
        DMAPP_RC_SUCCESS);
    assert_memory_equal(back, source, npes * WORDS * 8);
    dx_barrier();
    dx_free(area);
    free(source);
    free(back);
    free(list);
}

/* The first element alone: what is held already counts. */
static void test_the_128th_descriptor_is_refused(void **state)
{
    static gni_cdm_handle_t cdms[128];
    gni_dev_res_desc_t device;
    gni_return_t rc = GNI_RC_SUCCESS;
    gni_nic_handle_t nic;
    uint32_t address;
    uint64_t held = 0;
    unsigned n = 0;

    (void)state;
    if (dx_job.pe == 0) {
        uint8_t ptag = (uint8_t)atoi(getenv("PMI_GNI_PTAG"));
        uint32_t cookie = (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 0);

        assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_FMA, &device), GNI_RC_SUCCESS);
        assert_int_equal(device.total, 127);
        held = device.held;
        while (n < COUNT_OF(cdms) && rc == GNI_RC_SUCCESS) {
            assert_int_equal(
                GNI_CdmCreate(1000 + n, ptag, cookie, GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_ERR_NO_KILL, &cdms[n]),
                GNI_RC_SUCCESS);
            rc = GNI_CdmAttach(cdms[n], 0, &address, &nic);
            n++;
        }
        assert_int_equal(rc, GNI_RC_ERROR_RESOURCE);
        assert_int_equal(held + n, 128);
        while (n > 0)
            GNI_CdmDestroy(cdms[--n]);
    }
    dx_barrier();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_store_scatters_over_all),
        cmocka_unit_test(test_the_128th_descriptor_is_refused),
    };

    return dx_run(tests, NULL);
}
