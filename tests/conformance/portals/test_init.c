/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library and its interfaces: start, end, limits, process ids, what every call says before the start. Opens and
 * closes by itself; one rank is enough, with more the pids of a node are shared.
 */
#include "tests/common/portals.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static int n_interfaces;

static void up(void)
{
    assert_int_equal(PtlInit(&n_interfaces), PTL_OK);
}

static ptl_handle_ni_t open_any(ptl_ni_limits_t *desired, ptl_ni_limits_t *actual)
{
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;

    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, desired, actual, &ni), PTL_OK);
    assert_int_not_equal(ni, PTL_INVALID_HANDLE);
    return ni;
}

/* ---- without PtlInit() ---- */

static void interfaces_say_no_init(void)
{
    ptl_process_id_t id = { 0, 0 };
    ptl_handle_any_t h;
    ptl_sr_value_t value;
    unsigned long distance;
    ptl_uid_t uid;
    ptl_jid_t jid;
    int which;

    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &h), PTL_NO_INIT);
    assert_int_equal(PtlNIFini(0), PTL_NO_INIT);
    assert_int_equal(PtlNIStatus(0, PTL_SR_DROP_COUNT, &value), PTL_NO_INIT);
    assert_int_equal(PtlNIDist(0, id, &distance), PTL_NO_INIT);
    assert_int_equal(PtlNIHandle(0, &h), PTL_NO_INIT);
    assert_int_equal(PtlGetUid(0, &uid), PTL_NO_INIT);
    assert_int_equal(PtlGetId(0, &id), PTL_NO_INIT);
    assert_int_equal(PtlGetJid(0, &jid), PTL_NO_INIT);
    assert_int_equal(PtlACEntry(0, 0, id, 0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlFailNid(0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlNIFailNid(0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlLoopback(0, 0, &which), PTL_NO_INIT);
}

static void entries_and_descriptors_say_no_init(void)
{
    ptl_process_id_t id = { 0, 0 };
    ptl_md_t md = { .eq_handle = PTL_EQ_NONE };
    ptl_handle_any_t h, h2;
    ptl_pt_index_t pt;

    assert_int_equal(PtlMEAttach(0, 0, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &h), PTL_NO_INIT);
    assert_int_equal(PtlMEAttachAny(0, &pt, id, 0, 0, PTL_RETAIN, &h), PTL_NO_INIT);
    assert_int_equal(PtlMEInsert(0, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &h), PTL_NO_INIT);
    assert_int_equal(PtlMEUnlink(0), PTL_NO_INIT);
    assert_int_equal(PtlMDAttach(0, md, PTL_RETAIN, &h), PTL_NO_INIT);
    assert_int_equal(PtlMDBind(0, md, PTL_RETAIN, &h), PTL_NO_INIT);
    assert_int_equal(PtlMDUnlink(0), PTL_NO_INIT);
    assert_int_equal(PtlMDUpdate(0, NULL, NULL, PTL_EQ_NONE), PTL_NO_INIT);
    assert_int_equal(PtlMEMDPost(0, 0, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &h, &h2, PTL_EQ_NONE),
                     PTL_NO_INIT);
#if PX_CRAY
    assert_int_equal(PtlMEMDAttach(0, 0, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &h, &h2), PTL_NO_INIT);
    assert_int_equal(PtlMEMDInsert(0, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &h, &h2), PTL_NO_INIT);
#endif
}

static void queues_say_no_init(void)
{
    ptl_handle_eq_t eqs[1] = { 0 };
    ptl_handle_any_t h;
    ptl_event_t event;
    int which;

    assert_int_equal(PtlEQAlloc(0, 1, NULL, &h), PTL_NO_INIT);
    assert_int_equal(PtlEQFree(0), PTL_NO_INIT);
    assert_int_equal(PtlEQGet(0, &event), PTL_NO_INIT);
    assert_int_equal(PtlEQWait(0, &event), PTL_NO_INIT);
    assert_int_equal(PtlEQPoll(eqs, 1, 0, &event, &which), PTL_NO_INIT);
#if PX_CRAY
    assert_int_equal(PtlEQPeek(0, &event), PTL_NO_INIT);
#endif
}

static void transfers_say_no_init(void)
{
    ptl_process_id_t id = { 0, 0 };

    assert_int_equal(PtlPut(0, PTL_ACK_REQ, id, 0, 0, 0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlPutRegion(0, 0, 0, PTL_ACK_REQ, id, 0, 0, 0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlGet(0, id, 0, 0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlGetRegion(0, 0, 0, id, 0, 0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlGetPut(0, 0, id, 0, 0, 0, 0, 0), PTL_NO_INIT);
#if PX_CRAY
    assert_int_equal(PtlGetPutRegion(0, 0, 0, 0, 0, id, 0, 0, 0, 0, 0), PTL_NO_INIT);
    assert_int_equal(PtlMDMDCopy(0, id, 0, 0, 0, 0), PTL_NO_INIT);
#endif
}

#if !PX_CRAY
static void reference_calls_say_no_init(void)
{
    ptl_process_id_t id = { 0, 0 };
    unsigned rank, size;
    ptl_nid_t nids[1] = { 0 };
    ptl_pid_t pids[1] = { 0 };

    assert_int_equal(PtlTblDump(0, 0), PTL_NO_INIT);
    assert_int_equal(PtlMEDump(0), PTL_NO_INIT);
    assert_int_equal(PtlNIEqDump(0), PTL_NO_INIT);
    assert_int_equal(PtlProgress(0, 0), PTL_NO_INIT);
    assert_int_equal(PtlSetJID(1), PTL_NO_INIT);
    assert_int_equal(PtlSetRank(PTL_INVALID_HANDLE, 0, 1), PTL_NO_INIT);
    assert_int_equal(PtlSetNIDMap(PTL_INVALID_HANDLE, nids, 1), PTL_NO_INIT);
    assert_int_equal(PtlSetPIDMap(PTL_INVALID_HANDLE, pids, 1), PTL_NO_INIT);
    assert_int_equal(PtlGetRank(0, &rank, &size), PTL_NO_INIT);
    assert_int_equal(PtlGetRankId(0, 0, &id), PTL_NO_INIT);
    assert_int_equal(PtlGetNIDMap(0, nids, 1), PTL_NO_INIT);
    assert_int_equal(PtlGetPIDMap(0, pids, 1), PTL_NO_INIT);
}
#endif

static void every_call_says_no_init(void)
{
    interfaces_say_no_init();
    entries_and_descriptors_say_no_init();
    queues_say_no_init();
    transfers_say_no_init();
#if !PX_CRAY
    reference_calls_say_no_init();
#endif
}

static void test_before_the_start_nothing_works(void **state)
{
    (void)state;
    PtlFini(); /* harmless */
    every_call_says_no_init();
    assert_int_equal(PtlInit(NULL), PTL_SEGV);
    every_call_says_no_init();
}

/* NULL is looked at first. */
static void test_null_comes_before_a_missing_start(void **state)
{
    ptl_process_id_t id = { 0, 0 };

    (void)state;
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, NULL), PTL_SEGV);
    assert_int_equal(PtlNIStatus(0, 0, NULL), PTL_SEGV);
    assert_int_equal(PtlNIDist(0, id, NULL), PTL_SEGV);
    assert_int_equal(PtlNIHandle(0, NULL), PTL_SEGV);
    assert_int_equal(PtlGetUid(0, NULL), PTL_SEGV);
    assert_int_equal(PtlGetId(0, NULL), PTL_SEGV);
    assert_int_equal(PtlGetJid(0, NULL), PTL_SEGV);
    assert_int_equal(PtlEQAlloc(0, 1, NULL, NULL), PTL_SEGV);
    assert_int_equal(PtlEQGet(0, NULL), PTL_SEGV);
    assert_int_equal(PtlEQWait(0, NULL), PTL_SEGV);
    assert_int_equal(PtlLoopback(0, 0, NULL), PTL_SEGV);
}

static void test_one_end_ends_all_starts(void **state)
{
    int again = 0;

    (void)state;
    up();
    assert_true(n_interfaces >= 1);
    assert_int_equal(PtlInit(&again), PTL_OK);
    assert_int_equal(again, n_interfaces);
    PtlFini();
    every_call_says_no_init();
    PtlFini();
    up();
    PtlFini();
}

/* ---- interfaces ---- */

static void test_unknown_interfaces_are_refused(void **state)
{
    static const ptl_interface_t bad[] = {
        0,
        99,
#if PX_CRAY
        PTL_IFACE_TCP,
        PTL_IFACE_ER,
        CRAY_KB_ERNAL,
        IFACE_FROM_BRIDGE_AND_NALID(9, PTL_IFACE_SS),
#else
        PTL_NALTYPE_UTCP3 + 1,
#endif
    };

    (void)state;
    up();
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ptl_handle_ni_t ni = 0;

        assert_int_equal(PtlNIInit(bad[i], PTL_PID_ANY, NULL, NULL, &ni), PTL_IFACE_INVALID);
        assert_int_equal(ni, PTL_INVALID_HANDLE);
    }
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, NULL), PTL_SEGV);
    PtlFini();
}

static void test_an_open_interface_is_found_again(void **state)
{
    static const ptl_interface_t names[] = {
        PTL_IFACE_DEFAULT,
#if PX_CRAY
        PTL_IFACE_SS,
        CRAY_UK_SSNAL,
        CRAY_USER_NAL,
        CRAY_QK_NAL,
        CRAY_KERN_NAL,
        IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS),
#else
        PTL_IFACE_UTCP,
        PTL_IFACE_UTCP0,
        PTL_NALTYPE_UTCP,
#endif
    };
    ptl_ni_limits_t small = { .max_mes = 5,
                              .max_mds = 6,
                              .max_eqs = 3,
                              .max_ac_index = 1,
                              .max_pt_index = 9,
                              .max_md_iovecs = 2,
                              .max_me_list = 4,
                              .max_getput_md = 8 };
    ptl_ni_limits_t first, actual;
    ptl_process_id_t id, same;
    ptl_handle_ni_t ni;

    (void)state;
    up();
    ni = open_any(&small, &first);
    assert_int_equal(PtlGetId(ni, &id), PTL_OK);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ptl_handle_ni_t again = PTL_INVALID_HANDLE;

        memset(&actual, 0, sizeof(actual));
        /* covers: PtlNIInit: PTL_IFACE_DUP */
        assert_int_equal(PtlNIInit(names[i], (ptl_pid_t)(id.pid + 1), NULL, &actual, &again), PX_AGAIN);
        assert_int_equal(again, ni);
        assert_memory_equal(&actual, &first, sizeof(first));
        assert_int_equal(PtlGetId(again, &same), PTL_OK);
        assert_int_equal(same.pid, id.pid);
    }
    assert_int_equal(PtlNIFini(ni), PTL_OK);
    PtlFini();
}

static void test_limits_are_granted_up_to_what_there_is(void **state)
{
    ptl_ni_limits_t small = { .max_mes = 5,
                              .max_mds = 6,
                              .max_eqs = 3,
                              .max_ac_index = 1,
                              .max_pt_index = 9,
                              .max_md_iovecs = 2,
                              .max_me_list = 4,
                              .max_getput_md = 8 };
    ptl_ni_limits_t huge = { INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX };
    ptl_ni_limits_t most, actual;
    ptl_handle_ni_t ni;

    (void)state;
    up();
    ni = open_any(NULL, &most);
    assert_int_equal(most.max_pt_index, 63);
    assert_true(most.max_mes >= 131072);
    assert_true(most.max_mds >= 131072);
    assert_true(most.max_eqs >= 4096);
    assert_true(most.max_ac_index >= 7);
    assert_true(most.max_md_iovecs >= 256);
    assert_true(most.max_me_list >= 131072);
    assert_true(most.max_getput_md >= 64);
    assert_int_equal(PtlNIFini(ni), PTL_OK);

    ni = open_any(&huge, &actual);
    assert_memory_equal(&actual, &most, sizeof(most));
    assert_int_equal(PtlNIFini(ni), PTL_OK);

    ni = open_any(&small, &actual);
    assert_memory_equal(&actual, &small, sizeof(small));
    assert_int_equal(PtlNIFini(ni), PTL_OK);

    ni = open_any(NULL, NULL);
    PtlFini();
}

static void test_explicit_pids_are_given_to_one_process_of_a_node(void **state)
{
    uint64_t *nids = calloc((size_t)px_size, sizeof(*nids));
    ptl_pid_t well_known = 128;
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    ptl_process_id_t id;
    int first = px_rank, rc;

    (void)state;
    up();
    ni = open_any(NULL, NULL);
    assert_int_equal(PtlGetId(ni, &id), PTL_OK);
    assert_int_equal(PtlNIFini(ni), PTL_OK);
    px_exchange(id.nid, nids);
    for (int r = px_size - 1; r >= 0; r--)
        first = nids[r] == id.nid ? r : first;
    if (first == px_rank) {
        assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, well_known, NULL, NULL, &ni), PTL_OK);
        assert_int_equal(PtlGetId(ni, &id), PTL_OK);
        assert_int_equal(id.pid, well_known);
    }
    px_barrier();
    if (first != px_rank) {
        rc = PtlNIInit(PTL_IFACE_DEFAULT, well_known, NULL, NULL, &ni);
        /* covers: PtlNIInit: PTL_PID_INVALID */
        assert_int_equal(rc, PTL_PID_INVALID);
        assert_int_equal(ni, PTL_INVALID_HANDLE);
        /* The failure left nothing behind. */
        assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, (ptl_pid_t)(200 + px_rank), NULL, NULL, &ni), PTL_OK);
        assert_int_equal(PtlGetId(ni, &id), PTL_OK);
        assert_int_equal(id.pid, 200 + px_rank);
    }
    px_barrier();
    assert_int_equal(PtlNIFini(ni), PTL_OK);
    px_barrier();
    /* Free again. */
    if (first != px_rank && (px_rank - first) == 1) {
        assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, well_known, NULL, NULL, &ni), PTL_OK);
        assert_int_equal(PtlNIFini(ni), PTL_OK);
    }
    PtlFini();
    free(nids);
    px_barrier();
}

static void every_call_says_ni_invalid(ptl_handle_ni_t ni, ptl_handle_me_t me)
{
    ptl_md_t contents = { .eq_handle = PTL_EQ_NONE };
    ptl_process_id_t id = { 0, 0 };
    ptl_handle_any_t h;
    ptl_pt_index_t pt;
    ptl_sr_value_t value;
    unsigned long distance;
    ptl_uid_t uid;
    ptl_jid_t jid;
    int enabled = 0;

    assert_int_equal(PtlNIFini(ni), PTL_NI_INVALID);
    assert_int_equal(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value), PTL_NI_INVALID);
    assert_int_equal(PtlNIDist(ni, id, &distance), PTL_NI_INVALID);
    assert_int_equal(PtlGetUid(ni, &uid), PTL_NI_INVALID);
    assert_int_equal(PtlGetId(ni, &id), PTL_NI_INVALID);
    assert_int_equal(PtlGetJid(ni, &jid), PTL_NI_INVALID);
    assert_int_equal(PtlMEAttach(ni, 0, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &h), PTL_NI_INVALID);
    assert_int_equal(PtlMEAttachAny(ni, &pt, id, 0, 0, PTL_RETAIN, &h), PTL_NI_INVALID);
    assert_int_equal(PtlMDBind(ni, contents, PTL_RETAIN, &h), PTL_NI_INVALID);
    assert_int_equal(PtlEQAlloc(ni, 1, NULL, &h), PTL_NI_INVALID);
    assert_int_equal(PtlACEntry(ni, 0, id, 0, 0, 0), PTL_NI_INVALID);
    assert_int_equal(PtlFailNid(ni, 0, 0), PTL_NI_INVALID);
    assert_int_equal(PtlNIFailNid(ni, 0, 0), PTL_NI_INVALID);
    assert_int_equal(PtlLoopback(ni, 0, &enabled), PTL_NI_INVALID);
    assert_int_equal(
        PtlMEMDPost(ni, me, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, contents, PTL_RETAIN, &h, &h, PTL_EQ_NONE),
        PTL_NI_INVALID);
#if PX_CRAY
    assert_int_equal(PtlMEMDAttach(ni, 0, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, contents, PTL_RETAIN, &h, &h),
                     PTL_NI_INVALID);
#else
    assert_int_equal(PtlTblDump(ni, 0), PTL_NI_INVALID);
    assert_int_equal(PtlNIEqDump(ni), PTL_NI_INVALID);
    assert_int_equal(PtlProgress(ni, 0), PTL_NI_INVALID);
#endif
}

static void test_a_closed_interface_is_no_interface(void **state)
{
    ptl_ni_limits_t limits;
    ptl_handle_ni_t ni, other, out;
    ptl_handle_any_t eq, me, md, bound;
    ptl_md_t contents = { .eq_handle = PTL_EQ_NONE };
    ptl_event_t event;

    (void)state;
    up();
    ni = open_any(NULL, &limits);
    assert_int_equal(PtlEQAlloc(ni, 4, NULL, &eq), PTL_OK);
    assert_int_equal(PtlMEAttach(ni, 1, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    assert_int_equal(PtlMDAttach(me, contents, PTL_RETAIN, &md), PTL_OK);
    assert_int_equal(PtlMDBind(ni, contents, PTL_RETAIN, &bound), PTL_OK);
    assert_int_equal(PtlNIFini(ni), PTL_OK); /* with all of these */
    other = open_any(NULL, NULL);            /* handles of the old one do not mean this one's objects */
    assert_int_not_equal(other, ni);

    every_call_says_ni_invalid(ni, me);
    assert_int_equal(PtlNIHandle(ni, &out), PTL_HANDLE_INVALID);
    assert_int_equal(PtlNIHandle(md, &out), PTL_HANDLE_INVALID);
    assert_int_equal(PtlMEUnlink(me), PTL_ME_INVALID);
    assert_int_equal(PtlMDUnlink(md), PTL_MD_INVALID);
    assert_int_equal(PtlMDUnlink(bound), PTL_MD_INVALID);
    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_INVALID);
    assert_int_equal(PtlEQFree(eq), PTL_EQ_INVALID);
    /* What belongs to the library's end: the other one. */
    PtlFini();
    up();
    assert_int_equal(PtlNIFini(other), PTL_NI_INVALID);
    PtlFini();
}

static void test_handles_know_their_interface(void **state)
{
    ptl_handle_ni_t ni, out;
    ptl_handle_any_t eq, me, md;
    ptl_md_t contents = { .eq_handle = PTL_EQ_NONE };

    (void)state;
    up();
    ni = open_any(NULL, NULL);
    assert_int_equal(PtlEQAlloc(ni, 4, NULL, &eq), PTL_OK);
    assert_int_equal(PtlMEAttach(ni, 1, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    assert_int_equal(PtlMDAttach(me, contents, PTL_RETAIN, &md), PTL_OK);
    for (int i = 0; i < 4; i++) {
        const ptl_handle_any_t handles[] = { ni, eq, me, md };

        out = PTL_INVALID_HANDLE;
        assert_int_equal(PtlNIHandle(handles[i], &out), PTL_OK);
        assert_int_equal(out, ni);
    }
    for (size_t i = 0; i < 4; i++) {
        const ptl_handle_any_t bad[] = { PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_HANDLE_NONE, eq ^ 0x5aa5 };

        assert_int_equal(PtlNIHandle(bad[i], &out), PTL_HANDLE_INVALID);
    }
    assert_int_equal(PtlNIHandle(ni, NULL), PTL_SEGV);
    /* One kind is not another. */
    assert_int_equal(PtlMEUnlink(md), PTL_ME_INVALID);
    assert_int_equal(PtlMDUnlink(me), PTL_MD_INVALID);
    assert_int_equal(PtlEQFree(md), PTL_EQ_INVALID);
    assert_int_equal(PtlNIFini(eq), PTL_NI_INVALID);
    /* Gone is gone, although the slot is used again. */
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
    for (int i = 0; i < 100; i++) {
        ptl_handle_any_t new_me, new_md;

        assert_int_equal(PtlMEAttach(ni, 1, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &new_me), PTL_OK);
        assert_int_equal(PtlMDAttach(new_me, contents, PTL_RETAIN, &new_md), PTL_OK);
        assert_int_not_equal(new_me, me);
        assert_int_not_equal(new_md, md);
        assert_int_equal(PtlMEUnlink(me), PTL_ME_INVALID);
        assert_int_equal(PtlMDUnlink(md), PTL_MD_INVALID);
        assert_int_equal(PtlMEUnlink(new_me), PTL_OK);
    }
    PtlFini();
}

static void test_identification(void **state)
{
    uint64_t *all = calloc((size_t)px_size, sizeof(*all));
    unsigned char bytes[sizeof(ptl_process_id_t)];
    ptl_handle_ni_t ni;
    ptl_process_id_t id;
    ptl_uid_t uid = 0;
    ptl_jid_t jid = 0;

    (void)state;
    up();
    ni = open_any(NULL, NULL);
    assert_int_equal(PtlGetUid(ni, &uid), PTL_OK);
    assert_int_equal(uid, geteuid());
    assert_int_equal(PtlGetJid(ni, &jid), PTL_OK);
    memset(&id, 0xff, sizeof(id));
    assert_int_equal(PtlGetId(ni, &id), PTL_OK);
    assert_int_not_equal(id.nid, PTL_NID_ANY);
    assert_int_not_equal(id.pid, PTL_PID_ANY);
    if (sizeof(ptl_process_id_t) > sizeof(ptl_nid_t) + sizeof(ptl_pid_t)) {
        memcpy(bytes, &id, sizeof(bytes));
        for (size_t i = sizeof(ptl_nid_t) + sizeof(ptl_pid_t); i < sizeof(bytes); i++)
            assert_int_equal(bytes[i], 0); /* padding */
    }
    /* Nobody has the address of another. */
    px_exchange((uint64_t)id.nid << 32 | id.pid, all);
    for (int r = 0; r < px_size; r++)
        assert_true(r == px_rank || all[r] != all[px_rank]);
#if PX_CRAY
    px_exchange(jid, all);
    for (int r = 0; r < px_size; r++)
        assert_int_equal(all[r], jid);
#endif
    assert_int_equal(PtlGetUid(ni, NULL), PTL_SEGV);
    assert_int_equal(PtlGetId(ni, NULL), PTL_SEGV);
    assert_int_equal(PtlGetJid(ni, NULL), PTL_SEGV);
    PtlFini();
    free(all);
}

static void test_distance(void **state)
{
    uint64_t *all = calloc((size_t)px_size, sizeof(*all));
    unsigned long distance = 7;
    ptl_handle_ni_t ni;
    ptl_process_id_t id, far;

    (void)state;
    up();
    ni = open_any(NULL, NULL);
    assert_int_equal(PtlGetId(ni, &id), PTL_OK);
    assert_int_equal(PtlNIDist(ni, id, &distance), PTL_OK);
    assert_int_equal(distance, 0);
    px_exchange((uint64_t)id.nid << 32 | id.pid, all);
    for (int r = 0; r < px_size; r++) {
        far = (ptl_process_id_t){ (ptl_nid_t)(all[r] >> 32), (ptl_pid_t)all[r] };
        assert_int_equal(PtlNIDist(ni, far, &distance), PTL_OK);
        assert_int_equal(distance == 0, far.nid == id.nid);
    }
    far = (ptl_process_id_t){ PTL_NID_ANY, id.pid };
    assert_int_equal(PtlNIDist(ni, far, &distance), PTL_PROCESS_INVALID);
    assert_true(distance == ULONG_MAX);
    far = (ptl_process_id_t){ 0x7ffffff0, id.pid };
    assert_int_equal(PtlNIDist(ni, far, &distance), PTL_PROCESS_INVALID);
    assert_int_equal(PtlNIDist(ni, id, NULL), PTL_SEGV);
    PtlFini();
    free(all);
}

static void test_status_registers_count(void **state)
{
    static const ptl_sr_index_t none[] = { PTL_SR_NAL_COMMANDS + 1, 1000, 0x80000000u, 0xffffffffu };
    ptl_md_t contents = { .eq_handle = PTL_EQ_NONE };
    ptl_ni_limits_t limits;
    ptl_handle_any_t eq, me[3], md;
    ptl_sr_value_t value;

    (void)state;
    up();
    px_ni = open_any(NULL, &limits);
    for (ptl_sr_index_t reg = 0; reg < PTL_SR_NAL_REGS_START; reg++)
        assert_true(px_register(reg) == 0);
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_int_equal(PtlNIStatus(px_ni, none[i], &value), PTL_SR_INDEX_INVALID);
    assert_int_equal(PtlNIStatus(px_ni, PTL_SR_MLIST_LEN(limits.max_pt_index + 1), &value), PTL_SR_INDEX_INVALID);
    assert_int_equal(PtlNIStatus(px_ni, 0, NULL), PTL_SEGV);

    assert_int_equal(PtlEQAlloc(px_ni, 4, NULL, &eq), PTL_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(PtlMEAttach(px_ni, 5, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[i]), PTL_OK);
    assert_int_equal(PtlMDAttach(me[0], contents, PTL_RETAIN, &md), PTL_OK);
    assert_int_equal(px_register(PTL_SR_EQS_CUR), 1);
    assert_int_equal(px_register(PTL_SR_MES_CUR), 3);
    assert_int_equal(px_register(PTL_SR_MDS_CUR), 1);
    assert_int_equal(px_register(PTL_SR_PTLS_CUR), 1);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(5)), 3);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(4)), 0);
    assert_int_equal(PtlMEUnlink(me[0]), PTL_OK);
    assert_int_equal(PtlMEUnlink(me[1]), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(px_register(PTL_SR_MES_CUR), 1);
    assert_int_equal(px_register(PTL_SR_MES_MAX), 3);
    assert_int_equal(px_register(PTL_SR_MES_ALLOC), 3);
    assert_int_equal(px_register(PTL_SR_MES_FREED), 2);
    assert_int_equal(px_register(PTL_SR_MDS_CUR), 0);
    assert_int_equal(px_register(PTL_SR_MDS_MAX), 1);
    assert_int_equal(px_register(PTL_SR_EQS_CUR), 0);
    assert_int_equal(px_register(PTL_SR_EQS_ALLOC), 1);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(5)), 1);
    assert_int_equal(px_register(PTL_SR_MLIST_MAX(5)), 3);
    assert_int_equal(px_register(PTL_SR_DROP_COUNT), 0);
    PtlFini();
    px_ni = PTL_INVALID_HANDLE;
}

/* Alignment registers count descriptors by the best alignment of their memory. */
static void test_alignment_is_counted(void **state)
{
    static _Alignas(256) char memory[512];
    ptl_md_t contents = { .start = memory + 8, .length = 8, .eq_handle = PTL_EQ_NONE };
    ptl_handle_md_t md;

    (void)state;
    up();
    px_ni = open_any(NULL, NULL);
    assert_int_equal(PtlMDBind(px_ni, contents, PTL_RETAIN, &md), PTL_OK);
    assert_int_equal(px_register(PTL_SR_MD_ALIGN_8), 1);
    contents.start = memory + 64;
    assert_int_equal(PtlMDBind(px_ni, contents, PTL_RETAIN, &md), PTL_OK);
    assert_int_equal(px_register(PTL_SR_MD_ALIGN_64), 1);
    contents.start = memory;
    assert_int_equal(PtlMDBind(px_ni, contents, PTL_RETAIN, &md), PTL_OK);
    assert_int_equal(px_register(PTL_SR_MD_ALIGN_128), 1);
    contents.start = memory + 3;
    assert_int_equal(PtlMDBind(px_ni, contents, PTL_RETAIN, &md), PTL_OK);
    assert_int_equal(px_register(PTL_SR_MD_ALIGN_8) + px_register(PTL_SR_MD_ALIGN_16) +
                         px_register(PTL_SR_MD_ALIGN_32) + px_register(PTL_SR_MD_ALIGN_64) +
                         px_register(PTL_SR_MD_ALIGN_128),
                     3);
    PtlFini();
    px_ni = PTL_INVALID_HANDLE;
}

#if !PX_CRAY
/* The others of the four are interfaces of their own: addresses, tables, descriptors. */
static void test_interfaces_do_not_mix(void **state)
{
    ptl_md_t md = { .eq_handle = PTL_EQ_NONE };
    ptl_handle_any_t ni[2], eq[2], me, mdh[2], h;
    ptl_process_id_t id[2];
    ptl_event_t event;
    int which = -1;

    (void)state;
    up();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(PtlNIInit(PTL_IFACE_UTCP0 + (unsigned)i, PTL_PID_ANY, NULL, NULL, &ni[i]), PTL_OK);
        assert_int_equal(PtlGetId(ni[i], &id[i]), PTL_OK);
        assert_int_equal(PtlEQAlloc(ni[i], 4, NULL, &eq[i]), PTL_OK);
        assert_int_equal(PtlMDBind(ni[i], md, PTL_RETAIN, &mdh[i]), PTL_OK);
    }
    assert_int_not_equal(ni[0], ni[1]);
    assert_int_not_equal(id[0].pid, id[1].pid);
    md.eq_handle = eq[1];
    assert_int_equal(PtlMDBind(ni[0], md, PTL_RETAIN, &h), PTL_MD_ILLEGAL);
    assert_int_equal(PtlMEAttach(ni[0], 0, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    assert_int_equal(PtlMDAttach(me, md, PTL_RETAIN, &h), PTL_MD_ILLEGAL);
    assert_int_equal(PtlMDUpdate(mdh[0], NULL, &md, PTL_EQ_NONE), PTL_MD_ILLEGAL);
    assert_int_equal(
        PtlMEMDPost(ni[1], me, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &h, &h, PTL_EQ_NONE),
        PTL_ME_INVALID);
    assert_int_equal(PtlGetPut(mdh[0], mdh[1], id[0], 0, 0, 0, 0, 0), PTL_MD_ILLEGAL);
    assert_int_equal(PtlEQPoll(eq, 2, 0, &event, &which), PTL_EQ_INVALID);
    PtlFini();
}

/* Messages go from one interface of a process to the other. */
static void test_interfaces_of_one_process_reach_each_other(void **state)
{
    ptl_handle_any_t ni[2], eq, me, mdh;
    ptl_process_id_t id[2];
    char from[32] = "between interfaces", to[32] = "";
    ptl_md_t md = {
        .start = to, .length = sizeof(to), .threshold = 1, .options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE
    };

    (void)state;
    up();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(PtlNIInit(PTL_IFACE_UTCP0 + (unsigned)i, PTL_PID_ANY, NULL, NULL, &ni[i]), PTL_OK);
        assert_int_equal(PtlGetId(ni[i], &id[i]), PTL_OK);
    }
    assert_int_equal(PtlEQAlloc(ni[1], 4, NULL, &eq), PTL_OK);
    assert_int_equal(PtlMEAttach(ni[1], 0, id[0], 3, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    md.eq_handle = eq;
    assert_int_equal(PtlMDAttach(me, md, PTL_RETAIN, &mdh), PTL_OK);
    md = (ptl_md_t){ .start = from, .length = sizeof(from), .threshold = 1, .eq_handle = PTL_EQ_NONE };
    assert_int_equal(PtlMDBind(ni[0], md, PTL_RETAIN, &mdh), PTL_OK);
    assert_int_equal(PtlPut(mdh, PTL_NO_ACK_REQ, id[1], 0, 0, 3, 0, 0), PTL_OK);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).initiator.pid, id[0].pid);
    assert_string_equal(to, "between interfaces");
    PtlFini();
}
#endif

/* No file descriptor is left: told, and nothing stays behind. */
static void test_without_resources_there_is_no_interface(void **state)
{
    struct rlimit before, none;
    ptl_handle_ni_t ni = 0;
    int next, rc;

    (void)state;
    up();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    next = dup(0);
    assert_true(next >= 0);
    close(next);
    none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    /* covers: PtlNIInit: PTL_NO_SPACE */
    assert_int_equal(rc, PTL_NO_SPACE);
    assert_int_equal(ni, PTL_INVALID_HANDLE);
    open_any(NULL, NULL);
    PtlFini();
}

/* ---- without a job ---- */

static int alone(void)
{
    ptl_handle_ni_t ni = 0;
    int n;

    if (PtlInit(&n) != PTL_OK)
        return 2;
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_FAIL)
        return 3;
    return ni == PTL_INVALID_HANDLE ? 0 : 4;
}

/* covers: PtlNIInit: PTL_FAIL */
static void test_without_a_launcher_there_is_no_interface(void **state)
{
    char *args[] = { (char *)"alone", (char *)"alone", NULL };
    char *names[] = { (char *)"LD_LIBRARY_PATH", (char *)"ASAN_OPTIONS", (char *)"LSAN_OPTIONS",
                      (char *)"UBSAN_OPTIONS" };
    char texts[COUNT_OF(names)][4096];
    char *env[COUNT_OF(names) + 2];
    int status = -1, n = 0;
    pid_t pid;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!getenv(names[i]))
            continue;
        snprintf(texts[n], sizeof(texts[n]), "%s=%s", names[i], getenv(names[i]));
        env[n] = texts[n];
        n++;
    }
    env[n] = NULL;
    pid = fork();
    if (pid == 0) {
        execve("/proc/self/exe", args, env);
        _exit(9);
    }
    assert_true(pid > 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    assert_int_equal(status, 0);
}

static int exit_code_of(int (*body)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(body());
    assert_true(pid > 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int open_and_close(void)
{
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);

    return rc == PTL_OK ? PtlNIFini(ni) : rc;
}

/* A program that starts the library, forks, and opens its interface in the child. */
static void test_start_outlives_a_fork_before_the_interface(void **state)
{
    int n;

    (void)state;
    assert_int_equal(exit_code_of(open_and_close), PTL_NO_INIT);
    assert_int_equal(PtlInit(&n), PTL_OK);
    assert_int_equal(exit_code_of(open_and_close), PTL_OK);
    /* With an interface it is the parent's alone, which the child has to know. */
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &px_ni), PTL_OK);
    assert_int_equal(exit_code_of(open_and_close), PTL_NO_INIT);
    assert_int_equal(PtlNIFini(px_ni), PTL_OK);
    assert_int_equal(exit_code_of(open_and_close), PTL_OK);
    PtlFini();
    px_barrier();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_start_nothing_works),
        cmocka_unit_test(test_null_comes_before_a_missing_start),
        cmocka_unit_test(test_one_end_ends_all_starts),
        cmocka_unit_test(test_unknown_interfaces_are_refused),
        cmocka_unit_test(test_an_open_interface_is_found_again),
        cmocka_unit_test(test_limits_are_granted_up_to_what_there_is),
        cmocka_unit_test(test_explicit_pids_are_given_to_one_process_of_a_node),
        cmocka_unit_test(test_a_closed_interface_is_no_interface),
        cmocka_unit_test(test_handles_know_their_interface),
        cmocka_unit_test(test_identification),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_status_registers_count),
        cmocka_unit_test(test_alignment_is_counted),
#if !PX_CRAY
        cmocka_unit_test(test_interfaces_do_not_mix),
        cmocka_unit_test(test_interfaces_of_one_process_reach_each_other),
#endif
        cmocka_unit_test(test_without_resources_there_is_no_interface),
        cmocka_unit_test(test_without_a_launcher_there_is_no_interface),
        cmocka_unit_test(test_start_outlives_a_fork_before_the_interface),
    };

    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        return alone();
    return px_run(tests, PX_CLOSED);
}
