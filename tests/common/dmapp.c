/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/common/dmapp.h"

#include <pmi.h>

dmapp_jobinfo_t dx_job;

static dmapp_rma_attrs_ext_t *wanted;

void dx_barrier(void)
{
    assert_int_equal(PMI_Barrier(), PMI_SUCCESS);
}

void *dx_alloc(size_t bytes)
{
    void *block = dmapp_sheap_malloc(bytes);

    assert_non_null(block);
    memset(block, 0, bytes);
    dx_barrier();
    return block;
}

void dx_free(void *block)
{
    dx_barrier();
    dmapp_sheap_free(block);
    dx_barrier();
}

uint64_t dx_get_word(void *at, dmapp_seg_desc_t *seg, dmapp_pe_t pe)
{
    uint64_t word;

    assert_int_equal(dmapp_get(&word, at, seg, pe, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    return word;
}

void dx_put_word(void *at, dmapp_seg_desc_t *seg, dmapp_pe_t pe, uint64_t value)
{
    assert_int_equal(dmapp_put(at, seg, pe, &value, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
}

static int set_up(void **state)
{
    (void)state;
    if (dmapp_init_ext(wanted, NULL) != DMAPP_RC_SUCCESS || dmapp_get_jobinfo(&dx_job) != DMAPP_RC_SUCCESS)
        return -1;
    return PMI_Barrier() == PMI_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return dmapp_finalize() == DMAPP_RC_SUCCESS ? 0 : -1;
}

int dx_run_group(const char *name, const struct CMUnitTest *tests, size_t n_tests, dmapp_rma_attrs_ext_t *attrs)
{
    const char *rank = getenv("EMUNIC_RANK");

    wanted = attrs;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (rank && strcmp(rank, "0") != 0 && !freopen("/dev/null", "w", stdout))
        return 1;
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    return _cmocka_run_group_tests(name, tests, n_tests, set_up, tear_down) == 0 ? 0 : 1;
}
