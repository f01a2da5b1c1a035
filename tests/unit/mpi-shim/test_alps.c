/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs ask the launcher: credentials and placement, from the environment that `emunic run` sets. The job here:
 * ranks 0, 1 on node 4, rank 2 on node 9, ranks 3 to 5 on node 200; two programs of 2 and 4 ranks; this is rank 4.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alps/alps.h>
#include <alps/libalpslli.h>
#include <alps/libalpsutil.h>
#include <cmocka.h>

#include "emunic/abi/credentials.h"

static const char *const credentials[] = {
    "PMI_GNI_COOKIE", "PMI_GNI_PTAG", "PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR", "EMUNIC_COOKIE",
    "EMUNIC_PTAG",    "EMUNIC_NID",   "ALPS_APP_ID",    "ALPS_APP_DEPTH",
};

static int clear_credentials(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(credentials) / sizeof(credentials[0]); i++)
        unsetenv(credentials[i]);
    return 0;
}

static int enter_job(void **state)
{
    (void)state;
    setenv("PMIX_NAMESPACE", "job", 1);
    setenv("PMIX_RANK", "4", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "6", 1);
    setenv("EMUNIC_NIDS", "4*2,9,200*3", 1);
    setenv("OMPI_COMM_WORLD_RANK", "4", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "6", 1);
    setenv("OMPI_NUM_APP_CTX", "2", 1);
    setenv("OMPI_APP_CTX_NUM_PROCS", "2 4", 1);
    setenv("OMPI_FIRST_RANKS", "0 2", 1);
    return 0;
}

/* As libfabric asks; NULL when the status is not good. */
static void *ask(int request, size_t *len_out)
{
    void *bytes;
    int status = -1;

    assert_int_equal(alps_app_lli_lock(), 0);
    assert_int_equal(alps_app_lli_put_request(request, NULL, 0), ALPS_APP_LLI_ALPS_STAT_OK);
    assert_int_equal(alps_app_lli_get_response(&status, len_out), ALPS_APP_LLI_ALPS_STAT_OK);
    bytes = malloc(*len_out + 1);
    if (*len_out > 0)
        assert_int_equal(alps_app_lli_get_response_bytes(bytes, *len_out), ALPS_APP_LLI_ALPS_STAT_OK);
    assert_int_equal(alps_app_lli_unlock(), 0);
    if (status != ALPS_APP_LLI_ALPS_STAT_OK) {
        assert_int_equal(*len_out, 0);
        free(bytes);
        return NULL;
    }
    return bytes;
}

static void expect_credential(const alpsAppLLIGni_t *reply, int index, alpsAppGni_t wanted)
{
    const alpsAppGni_t *c = (const alpsAppGni_t *)(const void *)reply->u.buf + index;

    assert_int_equal(c->device_id, wanted.device_id);
    assert_int_equal(c->local_addr, wanted.local_addr);
    assert_int_equal(c->cookie, wanted.cookie);
    assert_int_equal(c->ptag, wanted.ptag);
}

/* ---- the request channel ---- */

static void test_application_id_has_eight_bytes(void **state)
{
    uint64_t apid;
    size_t len;
    void *bytes;

    (void)state;
    setenv("ALPS_APP_ID", "12884901893", 1);
    bytes = ask(ALPS_APP_LLI_ALPS_REQ_APID, &len);
    assert_non_null(bytes);
    assert_int_equal(len, 8);
    memcpy(&apid, bytes, 8);
    assert_int_equal(apid, 12884901893);
    free(bytes);
}

static void test_credentials_are_those_of_the_environment(void **state)
{
    alpsAppLLIGni_t *reply;
    size_t len;

    (void)state;
    setenv("PMI_GNI_COOKIE", "305419896", 1);
    setenv("PMI_GNI_PTAG", "77", 1);
    setenv("PMI_GNI_DEV_ID", "0", 1);
    setenv("PMI_GNI_LOC_ADDR", "200", 1);
    reply = ask(ALPS_APP_LLI_ALPS_REQ_GNI, &len);
    assert_non_null(reply);
    assert_int_equal(reply->count, 1);
    expect_credential(reply, 0, (alpsAppGni_t){ 0, 200, 305419896, 77 });
    free(reply);
}

static void test_lists_give_one_credential_per_element(void **state)
{
    alpsAppLLIGni_t *reply;
    size_t len;

    (void)state;
    setenv("PMI_GNI_COOKIE", "10:-2:30", 1);
    setenv("PMI_GNI_PTAG", "3:4:5", 1);
    setenv("PMI_GNI_DEV_ID", "0:0:0", 1);
    setenv("PMI_GNI_LOC_ADDR", "9:9:9", 1);
    reply = ask(ALPS_APP_LLI_ALPS_REQ_GNI, &len);
    assert_non_null(reply);
    assert_int_equal(reply->count, 3);
    assert_int_equal(reply->len, 3 * sizeof(alpsAppGni_t));
    expect_credential(reply, 1, (alpsAppGni_t){ 0, 9, 0xfffffffe, 4 });
    expect_credential(reply, 2, (alpsAppGni_t){ 0, 9, 30, 5 });
    free(reply);
}

static void test_a_hundred_credentials_stay_below_a_kibibyte(void **state)
{
    char list[400] = "1";
    alpsAppLLIGni_t *reply;
    size_t len;

    (void)state;
    for (int i = 0; i < 99; i++)
        strcat(list, ":1");
    setenv("PMI_GNI_COOKIE", list, 1);
    reply = ask(ALPS_APP_LLI_ALPS_REQ_GNI, &len);
    assert_non_null(reply);
    assert_true(len <= 1024);
    assert_int_equal(reply->count, 16);
    free(reply);
}

static void test_a_cookie_alone_brings_its_tag(void **state)
{
    alpsAppLLIGni_t *reply;
    size_t len;

    (void)state;
    setenv("EMUNIC_COOKIE", "4711", 1);
    setenv("EMUNIC_NID", "200", 1);
    reply = ask(ALPS_APP_LLI_ALPS_REQ_GNI, &len);
    assert_non_null(reply);
    expect_credential(reply, 0, (alpsAppGni_t){ 0, 200, 4711, emu_ptag_of_cookie(4711) });
    free(reply);
}

static void test_outside_a_job_status_says_so(void **state)
{
    size_t len;

    (void)state;
    assert_null(ask(ALPS_APP_LLI_ALPS_REQ_GNI, &len));
    assert_null(ask(ALPS_APP_LLI_ALPS_REQ_APID, &len));
    setenv("PMI_GNI_COOKIE", "sugar", 1);
    assert_null(ask(ALPS_APP_LLI_ALPS_REQ_GNI, &len));
}

static void test_start_and_exit_have_no_bytes(void **state)
{
    static const int requests[] = { ALPS_APP_LLI_ALPS_REQ_START, ALPS_APP_LLI_ALPS_REQ_EXITING };
    size_t len;

    (void)state;
    for (int i = 0; i < 2; i++) {
        void *bytes = ask(requests[i], &len);

        assert_non_null(bytes);
        assert_int_equal(len, 0);
        free(bytes);
    }
}

static void test_answers_come_in_pieces_and_end(void **state)
{
    char pieces[8], beyond = 'x';
    uint64_t apid;

    (void)state;
    setenv("ALPS_APP_ID", "72623859790382856", 1); /* eight different bytes */
    assert_int_equal(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, NULL, 0), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(alps_app_lli_get_response_bytes(pieces + i, 1), 0);
    memcpy(&apid, pieces, 8);
    assert_int_equal(apid, 72623859790382856);
    assert_int_equal(alps_app_lli_get_response_bytes(&beyond, 1), 0);
    assert_int_equal(beyond, 'x');
}

static void test_wrong_requests_are_refused(void **state)
{
    size_t len = 5;
    int status = 5;
    char byte;

    (void)state;
    assert_int_equal(alps_app_lli_put_request(99, NULL, 0), ALPS_APP_LLI_ALPS_STAT_ERROR);
    assert_int_equal(alps_app_lli_get_response(&status, &len), ALPS_APP_LLI_ALPS_STAT_ERROR);
    assert_int_equal(alps_app_lli_get_response_bytes(&byte, 1), ALPS_APP_LLI_ALPS_STAT_ERROR);
    assert_int_equal(status, 5);
    assert_int_equal(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_START, NULL, 0), 0);
    assert_int_equal(alps_app_lli_get_response(NULL, &len), ALPS_APP_LLI_ALPS_STAT_ERROR);
    assert_int_equal(alps_app_lli_get_response_bytes(NULL, 1), ALPS_APP_LLI_ALPS_STAT_ERROR);
    assert_int_equal(alps_app_lli_unlock(), 0); /* without a lock */
}

static void *ask_in_a_dialogue(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        size_t len;
        void *bytes;

        /* Another thread's question in between would change the length. */
        bytes = ask(i % 2 ? ALPS_APP_LLI_ALPS_REQ_APID : ALPS_APP_LLI_ALPS_REQ_GNI, &len);
        if (len != (i % 2 ? 8 : offsetof(alpsAppLLIGni_t, u) + sizeof(alpsAppGni_t)))
            return arg;
        free(bytes);
    }
    return NULL;
}

static void test_dialogues_of_threads_do_not_mix(void **state)
{
    pthread_t threads[3];
    void *wrong;

    (void)state;
    setenv("EMUNIC_COOKIE", "4711", 1);
    setenv("ALPS_APP_ID", "1", 1);
    setenv("EMUNIC_NID", "1", 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_in_a_dialogue, threads), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

/* ---- placement ---- */

static void test_placement_tells_every_rank_and_program(void **state)
{
    static const int nids[] = { 4, 4, 9, 200, 200, 200 }, here[] = { 2, 2, 1, 3, 3, 3 };
    static const int starts[] = { 0, 2 }, totals[] = { 2, 4 };
    int old = 0; /* clients initialise their pointers to something */
    int *placement = &old, *start = &old, *total = &old, *node_pes = &old, *cpus = &old;
    int *target_nids = &old, *target_pes = &old, *target_len = &old;
    struct in_addr *ips = (struct in_addr *)(void *)&old;
    alpsAppLayout_t layout;

    (void)state;
    setenv("ALPS_APP_DEPTH", "3", 1);
    assert_int_equal(alps_get_placement_info(5, &layout, &placement, &target_nids, &target_pes, &target_len, &ips,
                                             &start, &total, &node_pes, &cpus),
                     1);
    assert_int_equal(layout.apid, 5);
    assert_int_equal(layout.numPes, 6);
    assert_int_equal(layout.numCmds, 2);
    assert_int_equal(layout.numPesHere, 3);
    assert_int_equal(layout.firstPe, 3);
    assert_int_equal(layout.controlNid, 4);
    assert_memory_equal(placement, nids, sizeof(nids));
    assert_memory_equal(node_pes, here, sizeof(here));
    assert_memory_equal(start, starts, sizeof(starts));
    assert_memory_equal(total, totals, sizeof(totals));
    for (int i = 0; i < 6; i++)
        assert_int_equal(cpus[i], 3);
    assert_null(target_nids);
    assert_null(target_pes);
    assert_null(target_len);
    assert_null(ips);
    free(placement);
    free(start);
    free(total);
    free(node_pes);
    free(cpus);
}

static void test_nothing_needs_to_be_wanted(void **state)
{
    (void)state;
    assert_int_equal(alps_get_placement_info(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_application_id_has_eight_bytes, clear_credentials),
        cmocka_unit_test_setup(test_credentials_are_those_of_the_environment, clear_credentials),
        cmocka_unit_test_setup(test_lists_give_one_credential_per_element, clear_credentials),
        cmocka_unit_test_setup(test_a_hundred_credentials_stay_below_a_kibibyte, clear_credentials),
        cmocka_unit_test_setup(test_a_cookie_alone_brings_its_tag, clear_credentials),
        cmocka_unit_test_setup(test_outside_a_job_status_says_so, clear_credentials),
        cmocka_unit_test_setup(test_start_and_exit_have_no_bytes, clear_credentials),
        cmocka_unit_test_setup(test_answers_come_in_pieces_and_end, clear_credentials),
        cmocka_unit_test_setup(test_wrong_requests_are_refused, clear_credentials),
        cmocka_unit_test_setup(test_dialogues_of_threads_do_not_mix, clear_credentials),
        cmocka_unit_test_setup(test_placement_tells_every_rank_and_program, clear_credentials),
        cmocka_unit_test_setup(test_nothing_needs_to_be_wanted, clear_credentials),
    };

    return cmocka_run_group_tests(tests, enter_job, NULL);
}
