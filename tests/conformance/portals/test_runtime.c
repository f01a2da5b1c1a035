/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank, group and maps of the REF dialect: set before an interface or after it, by the program or by the environment.
 */
#include "tests/common/portals.h"

static int n_interfaces;

static int begin(void **state)
{
    (void)state;
    unsetenv("PTL_MY_RID"); /* the launcher's, or of the test before */
    unsetenv("PTL_NIDMAP");
    unsetenv("PTL_PIDMAP");
    unsetenv("PTL_MY_JID");
    return PtlInit(&n_interfaces) == PTL_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    PtlFini();
    px_barrier();
    return 0;
}

static ptl_handle_ni_t open_pid(ptl_pid_t pid)
{
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;

    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &ni), PTL_OK);
    return ni;
}

static ptl_nid_t own_nid(void)
{
    unsigned nid;

    assert_int_equal(p3tcp_my_nid(NULL, &nid), 0);
    return nid;
}

static ptl_pid_t pid_of(ptl_handle_ni_t ni)
{
    ptl_process_id_t id;

    assert_int_equal(PtlGetId(ni, &id), PTL_OK);
    return id.pid;
}

static void test_without_a_rank_there_is_none(void **state)
{
    ptl_handle_ni_t ni = open_pid(PTL_PID_ANY);
    ptl_process_id_t id;
    ptl_nid_t nids[2] = { 0 };
    ptl_pid_t pids[2] = { 0 };
    unsigned rank, size;

    (void)state;
    assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_NO_INIT);
    assert_int_equal(PtlGetRankId(ni, 0, &id), PTL_NO_INIT);
    assert_int_equal(PtlGetNIDMap(ni, nids, 2), PTL_NO_INIT);
    assert_int_equal(PtlGetPIDMap(ni, pids, 2), PTL_NO_INIT);
    /* Maps need a rank. */
    assert_int_equal(PtlSetNIDMap(ni, nids, 2), PTL_NO_INIT);
    assert_int_equal(PtlSetPIDMap(ni, pids, 2), PTL_NO_INIT);
    assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 2), PTL_NO_INIT);
    assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 2), PTL_NO_INIT);
}

static void test_set_before_the_interface(void **state)
{
    ptl_nid_t nids[3] = { 900, own_nid(), 901 }, nids_seen[3];
    ptl_pid_t pids[3] = { 50, (ptl_pid_t)(300 + px_rank), 51 }, pids_seen[3];
    ptl_handle_ni_t ni;
    ptl_process_id_t id;
    ptl_jid_t jid;
    unsigned rank, size;

    (void)state;
    assert_int_equal(PtlSetJID(4242), PTL_OK);
    assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 1, 3), PTL_OK);
    assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 3), PTL_OK);
    assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 3), PTL_OK);
    ni = open_pid(PTL_PID_ANY);
    assert_int_equal(pid_of(ni), 300 + px_rank); /* from the map */
    assert_int_equal(PtlGetJid(ni, &jid), PTL_OK);
    assert_int_equal(jid, 4242);
    assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_OK);
    assert_int_equal(rank, 1);
    assert_int_equal(size, 3);
    for (unsigned r = 0; r < 3; r++) {
        assert_int_equal(PtlGetRankId(ni, r, &id), PTL_OK);
        assert_int_equal(id.nid, nids[r]);
        assert_int_equal(id.pid, pids[r]);
    }
    assert_int_equal(PtlGetRankId(ni, 3, &id), PTL_NO_INIT);
    assert_int_equal(PtlGetNIDMap(ni, nids_seen, 3), PTL_OK);
    assert_int_equal(PtlGetPIDMap(ni, pids_seen, 3), PTL_OK);
    assert_memory_equal(nids_seen, nids, sizeof(nids));
    assert_memory_equal(pids_seen, pids, sizeof(pids));

    assert_int_equal(PtlGetRank(ni, NULL, &size), PTL_SEGV);
    assert_int_equal(PtlGetRank(ni, &rank, NULL), PTL_SEGV);
    assert_int_equal(PtlGetRankId(ni, 0, NULL), PTL_SEGV);
    assert_int_equal(PtlGetNIDMap(ni, NULL, 3), PTL_SEGV);
    assert_int_equal(PtlGetPIDMap(ni, NULL, 3), PTL_SEGV);
}

static void test_set_after_the_interface(void **state)
{
    ptl_handle_ni_t ni = open_pid((ptl_pid_t)(310 + px_rank));
    ptl_nid_t nids[2] = { own_nid(), 900 }, bad_nids[2] = { own_nid() + 1, 900 };
    ptl_pid_t pids[2] = { (ptl_pid_t)(310 + px_rank), 51 }, bad_pids[2] = { 52, 51 };
    ptl_process_id_t id;

    (void)state;
    assert_int_equal(PtlSetRank(ni, 0, 2), PTL_OK);
    assert_int_equal(PtlSetRank(ni, 0, 2), PTL_FAIL); /* once */
    assert_int_equal(PtlSetNIDMap(ni, bad_nids, 2), PTL_FAIL);
    assert_int_equal(PtlSetPIDMap(ni, bad_pids, 2), PTL_PID_INVALID);
    assert_int_equal(PtlSetNIDMap(ni, nids, 2), PTL_OK);
    assert_int_equal(PtlSetPIDMap(ni, pids, 2), PTL_OK);
    assert_int_equal(PtlGetRankId(ni, 1, &id), PTL_OK);
    assert_int_equal(id.nid, 900);
    assert_int_equal(id.pid, 51);
    assert_int_equal(PtlSetNIDMap(ni, NULL, 2), PTL_SEGV);
    assert_int_equal(PtlSetPIDMap(ni, NULL, 2), PTL_SEGV);
}

static void test_bad_interfaces(void **state)
{
    ptl_handle_ni_t none = PTL_HANDLE_NONE;
    ptl_nid_t nids[1] = { 0 };
    ptl_pid_t pids[1] = { 0 };
    ptl_process_id_t id;
    unsigned rank, size;

    (void)state;
    assert_int_equal(PtlSetRank(none, 0, 1), PTL_NI_INVALID);
    assert_int_equal(PtlSetNIDMap(none, nids, 1), PTL_NI_INVALID);
    assert_int_equal(PtlSetPIDMap(none, pids, 1), PTL_NI_INVALID);
    assert_int_equal(PtlGetRank(none, &rank, &size), PTL_NI_INVALID);
    assert_int_equal(PtlGetRankId(none, 0, &id), PTL_NI_INVALID);
    assert_int_equal(PtlGetNIDMap(none, nids, 1), PTL_NI_INVALID);
    assert_int_equal(PtlGetPIDMap(none, pids, 1), PTL_NI_INVALID);
}

/* What was set before and does not fit shows when the interface is opened. */
static void test_maps_that_disagree_prevent_the_interface(void **state)
{
    ptl_nid_t nids[1] = { own_nid() + 1 };
    ptl_pid_t pids[1] = { (ptl_pid_t)(320 + px_rank) };
    ptl_handle_ni_t ni = 0;

    (void)state;
    assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 1), PTL_OK);
    assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 1), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), PTL_FAIL);
    assert_int_equal(ni, PTL_INVALID_HANDLE);
    PtlFini();

    assert_int_equal(PtlInit(&n_interfaces), PTL_OK);
    assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 1), PTL_OK);
    assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 1), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, (ptl_pid_t)(pids[0] + 50), NULL, NULL, &ni), PTL_PID_INVALID);
    assert_int_equal(ni, PTL_INVALID_HANDLE);
}

/* As a launcher of that library did it. */
static void test_the_environment(void **state)
{
    char text[64];
    ptl_handle_ni_t ni;
    ptl_process_id_t id;
    ptl_jid_t jid;
    unsigned rank, size;

    (void)state;
    setenv("PTL_MY_RID", "1", 1);
    setenv("PTL_MY_JID", "77", 1);
    snprintf(text, sizeof(text), "700:%u", own_nid());
    setenv("PTL_NIDMAP", text, 1);
    snprintf(text, sizeof(text), "17:%d", 330 + px_rank);
    setenv("PTL_PIDMAP", text, 1);
    assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, (unsigned)-1, (unsigned)-1), PTL_OK);
    ni = open_pid(PTL_PID_ANY);
    assert_int_equal(pid_of(ni), 330 + px_rank);
    assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_OK);
    assert_int_equal(rank, 1);
    assert_int_equal(size, 2);
    assert_int_equal(PtlGetRankId(ni, 0, &id), PTL_OK);
    assert_int_equal(id.nid, 700);
    assert_int_equal(id.pid, 17);
    assert_int_equal(PtlGetJid(ni, &jid), PTL_OK);
    assert_int_equal(jid, 77);
}

/* The same for an interface that is open, and what disagrees with it. */
static void test_the_environment_after_the_interface(void **state)
{
    char nids[64], pids[64];
    ptl_handle_ni_t ni = open_pid((ptl_pid_t)(340 + px_rank));
    unsigned rank, size;

    (void)state;
    setenv("PTL_MY_RID", "0", 1);
    snprintf(nids, sizeof(nids), "%u:5", own_nid() + 1);
    snprintf(pids, sizeof(pids), "%d:6", 340 + px_rank);
    setenv("PTL_NIDMAP", nids, 1);
    setenv("PTL_PIDMAP", pids, 1);
    assert_int_equal(PtlSetRank(ni, (unsigned)-1, (unsigned)-1), PTL_FAIL);
    snprintf(nids, sizeof(nids), "%u:5", own_nid());
    setenv("PTL_NIDMAP", nids, 1);
    setenv("PTL_PIDMAP", "3:6", 1);
    assert_int_equal(PtlSetRank(ni, (unsigned)-1, (unsigned)-1), PTL_PID_INVALID);
    setenv("PTL_PIDMAP", pids, 1);
    assert_int_equal(PtlSetRank(ni, (unsigned)-1, (unsigned)-1), PTL_OK);
    assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_OK);
    assert_int_equal(rank, 0);
    assert_int_equal(size, 2);
}

/* As emunic run sets it: told, but it binds nobody. */
static void test_the_launchers_environment_yields(void **state)
{
    const char *outer = getenv("EMUNIC_RANK");
    char *kept = outer ? strdup(outer) : NULL;
    ptl_handle_ni_t ni, second;
    ptl_process_id_t id;
    ptl_pid_t pids[2];
    ptl_nid_t nids[2];
    unsigned rank, size;
    char text[64];

    (void)state;
    setenv("EMUNIC_RANK", "1", 1);
    setenv("PTL_MY_RID", "1", 1);
    snprintf(text, sizeof(text), "700:%u", own_nid());
    setenv("PTL_NIDMAP", text, 1);
    setenv("PTL_PIDMAP", "0:1", 1);
    ni = open_pid((ptl_pid_t)(350 + px_rank));
    assert_int_equal(pid_of(ni), 350 + px_rank);
    assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_OK);
    assert_int_equal(rank, 1);
    assert_int_equal(size, 2);
    assert_int_equal(PtlGetNIDMap(ni, nids, 2), PTL_OK);
    assert_int_equal(nids[0], 700);
    assert_int_equal(PtlGetPIDMap(ni, pids, 2), PTL_NO_INIT); /* wrong for the own rank: not told */
    assert_int_equal(PtlGetRankId(ni, 0, &id), PTL_NO_INIT);
    assert_int_equal(PtlNIInit(PTL_IFACE_UTCP1, PTL_PID_ANY, NULL, NULL, &second), PTL_OK);
    assert_int_equal(PtlSetRank(ni, 0, 1), PTL_OK);
    assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_OK);
    assert_int_equal(rank, 0);
    assert_int_equal(size, 1);
    assert_int_equal(PtlSetRank(ni, 0, 1), PTL_FAIL);
    assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, (unsigned)-1, (unsigned)-1), PTL_OK);
    if (kept)
        setenv("EMUNIC_RANK", kept, 1);
    else
        unsetenv("EMUNIC_RANK");
    free(kept);
}

/* Nothing there: rank -1 of 0. */
static void test_an_empty_environment(void **state)
{
    ptl_handle_ni_t ni;
    unsigned rank = 5, size = 5;
    ptl_jid_t jid = 0;

    (void)state;
    assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, (unsigned)-1, (unsigned)-1), PTL_OK);
    ni = open_pid(PTL_PID_ANY);
    assert_int_equal(PtlGetRank(ni, &rank, &size), PTL_OK);
    assert_int_equal(rank, (unsigned)-1);
    assert_int_equal(size, 0);
    assert_int_equal(PtlGetJid(ni, &jid), PTL_OK);
    assert_int_equal(jid, pid_of(ni));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define runtime_test(name) cmocka_unit_test_setup_teardown(name, begin, end)
        runtime_test(test_without_a_rank_there_is_none),
        runtime_test(test_set_before_the_interface),
        runtime_test(test_set_after_the_interface),
        runtime_test(test_bad_interfaces),
        runtime_test(test_maps_that_disagree_prevent_the_interface),
        runtime_test(test_the_environment),
        runtime_test(test_the_environment_after_the_interface),
        runtime_test(test_the_launchers_environment_yields),
        runtime_test(test_an_empty_environment),
    };

    return px_run(tests, PX_CLOSED);
}
