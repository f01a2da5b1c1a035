/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-38: a job on the nodes 3, 4, 9 and 17 sees the addresses 0 to 3, side by side. What is not of the job has no
 * address, and an address beyond them ends transactions with an error.
 */
#include "tests/conformance/job.h"

#define N 4u

static const uint32_t nids[N] = { 3, 4, 9, 17 };
static struct fx translated; /* the same server, credentials of the declared job */

static int talk_by_addresses(void)
{
    static struct gx_side sides[N];

    setenv("EMUNIC_COOKIE", "12648430", 1); /* COOKIE: what emunic run tells its ranks */
    for (uint32_t i = 0; i < N; i++) {
        gx_open(&sides[i], &translated, nids[i], 30 + i, 0);
        FX_CHECK(sides[i].nic_addr == i);
    }
    for (uint32_t foreign = 0; foreign < 20; foreign++) {
        bool is_ours = foreign == 3 || foreign == 4 || foreign == 9 || foreign == 17;

        FX_CHECK(is_ours || try_attach(PTAG, COOKIE, foreign, 0) == GNI_RC_NO_MATCH);
    }
    for (uint32_t from = 0; from < N; from++) {
        for (uint32_t to = 0; to < N + 2; to++) {
            const struct gx_side *target = &sides[to < N ? to : 0];
            gni_post_descriptor_t d = gx_put(&sides[from], target, 64 * from + 8 * to, 8, GNI_CQMODE_GLOBAL_EVENT);
            gni_post_descriptor_t *done = NULL;
            gni_ep_handle_t ep;

            FX_CHECK(GNI_EpCreate(sides[from].nic, sides[from].src_cq, &ep) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_EpBind(ep, to, target->inst_id) == GNI_RC_SUCCESS);
            sides[from].mem[64 * from + 8 * to] = (uint8_t)(1 + 16 * from + to);
            FX_CHECK(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
            FX_CHECK(gx_complete(sides[from].src_cq, &done) == (to < N ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR));
            FX_CHECK(done == &d);
            FX_CHECK(to >= N || target->mem[64 * from + 8 * to] == 1 + 16 * from + to);
            GNI_EpDestroy(ep);
        }
    }
    for (uint32_t i = 0; i < N; i++)
        gx_close(&sides[i]);
    return 0;
}

static void test_a_job_on_scattered_nodes_has_addresses_side_by_side(void **state)
{
    gni_ntt_entry_t entries[N] = { { 3, 0, 0 }, { 4, 0, 0 }, { 9, 0, 0 }, { 17, 0, 0 } };
    gni_ntt_descriptor_t ntt = { .group_size = N, .u.table_v2 = entries };
    gni_job_limits_t limits = no_limits();
    uint32_t base = 0;

    (void)state;
    translated = fx;
    translated.ptag = PTAG;
    translated.cookie = COOKIE;
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_SUCCESS);
    limits.ntt_base = (int32_t)base;
    limits.ntt_size = N;
    limits.ntt_ctrl = GNI_JOB_CTRL_NTT_CLEANUP;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, &limits), GNI_RC_SUCCESS);
    assert_int_equal(in_child(talk_by_addresses), 0);
    assert_true(eventually(job_is_gone, NULL, PATIENCE_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_on_scattered_nodes_has_addresses_side_by_side),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
