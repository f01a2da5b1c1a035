/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names, masks, dumps, and what programs find in the headers and the library: names that are macros too, types that can
 * be printed and compared, symbols that are there or must not be.
 */
#include "tests/common/portals.h"

#include <dlfcn.h>
#include <fcntl.h>

#if PX_CRAY
#include <portals/lib-types.h>
#include <portals/nal.h>
#include <portals/p30.h>
#include <portals/p3api/debug.h>
#include <portals/ptltrace.h>
#else
#include <p3api/api.h>
#include <p3api/debug.h>
#include <p3api/misc.h>
#include <p3api/types.h>
#include <p3nal_tcp.h>
#include <portals/p3api/debug.h>
#include <portals/p3nal_utcp.h>
#include <portals/portals3.h>
#endif

#define PT 13

/* ---- the headers ---- */

#if PX_CRAY
#if !defined(PTL_IFACE_DUP) || !defined(PTL_NOACK_REQ) || !defined(PTL_MD_EVENT_AUTO_UNLINK_ENABLE) ||                 \
    !defined(PTL_IFACE_SS)
#error "a name that programs test is no macro"
#endif
#if defined(PTL_NO_ACK_REQ) || defined(CRAY_ACCEL)
#error "a name of the other dialect, or one that chooses what there is not"
#endif
#define PTL_NO_ACK_REQ PTL_NOACK_REQ /* as programs do */
_Static_assert(sizeof(ptl_pid_t) == 2, "scanned with %hu");
_Static_assert((ptl_sr_value_t)-1 < 0, "signed");
#else
#if defined(PTL_IFACE_DUP) || defined(PTL_NOACK_REQ) || defined(PTL_MD_EVENT_AUTO_UNLINK_ENABLE) ||                    \
    defined(CRAY_UK_SSNAL)
#error "a name whose absence tells the dialects apart"
#endif
#ifndef PTL_UNKNOWN_ERROR
#error "programs look for it"
#endif
_Static_assert(sizeof(ptl_pid_t) == 4, "");
_Static_assert(sizeof(ptl_event_t) == 144, "LP64");
#endif
_Static_assert(PTL_OK == 0, "");
_Static_assert(sizeof(ptl_size_t) == 8 && sizeof(ptl_match_bits_t) == 8 && sizeof(ptl_hdr_data_t) == 8, "");
_Static_assert(sizeof(ptl_process_id_t) == 8, "");
_Static_assert(offsetof(ptl_event_t, sequence) + sizeof(ptl_seq_t) + 8 > sizeof(ptl_event_t), "sequence is the last");

static void test_ids_have_positional_initialisers(void **state)
{
    ptl_process_id_t id = (ptl_process_id_t){ 5, 6 };

    (void)state;
    assert_int_equal(id.nid, 5);
    assert_int_equal(id.pid, 6);
    assert_true((ptl_pid_t)PTL_PID_ANY == (ptl_pid_t) ~(ptl_pid_t)0);
    assert_true(PTL_EQ_NONE != PTL_INVALID_HANDLE);
}

/* What tells configure scripts which dialect it is. */
static void test_symbols_that_programs_look_for(void **state)
{
    static const char *const always[] = { "PtlGetJid", "PtlACEntry", "PtlPut", "ptl_err_str", "PtlNIDebug" };
    static const char *const of_cray[] = { "ptl_event_str", "PtlMEMDAttach",    "PtlGetPutRegion", "PtlEQPeek",
                                           "PtlMDMDCopy",   "PtlHandleIsEqual", "PtlMEMDInsert" };
    static const char *const of_ref[] = { "PtlErrorStr",  "PtlEventKindStr", "PtlNIFailStr", "PtlSetRank",
                                          "PtlGetRankId", "p3tcp_my_nid",    "utcp_api_out", "utcp_lib_out",
                                          "PtlProgress",  "PtlTblDump" };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(always); i++)
        assert_non_null(dlsym(RTLD_DEFAULT, always[i]));
    for (size_t i = 0; i < COUNT_OF(of_cray); i++)
        assert_int_equal(dlsym(RTLD_DEFAULT, of_cray[i]) != NULL, PX_CRAY);
    for (size_t i = 0; i < COUNT_OF(of_ref); i++)
        assert_int_equal(dlsym(RTLD_DEFAULT, of_ref[i]) != NULL, !PX_CRAY);
    /* Programs bring their own. */
    assert_null(dlsym(RTLD_DEFAULT, "PtlEQWait_timeout"));
}

/* ---- names ---- */

#if PX_CRAY
extern char *ptl_event_str[]; /* no header may say otherwise: programs have this, too */
#endif

static void test_codes_and_kinds_have_their_names(void **state)
{
    (void)state;
    for (int rc = 0; rc <= PTL_MAX_ERRNO; rc++) {
        assert_non_null(ptl_err_str[rc]);
        assert_memory_equal(ptl_err_str[rc], "PTL_", 4);
        for (int other = 0; other < rc; other++)
            assert_string_not_equal(ptl_err_str[rc], ptl_err_str[other]);
    }
    assert_string_equal(ptl_err_str[PTL_OK], "PTL_OK");
    assert_string_equal(ptl_err_str[PTL_MD_IN_USE], "PTL_MD_IN_USE");
    assert_string_equal(ptl_err_str[PTL_MAX_ERRNO], "PTL_MAX_ERRNO");
#if PX_CRAY
    assert_string_equal(ptl_event_str[PTL_EVENT_GET_START], "PTL_EVENT_GET_START");
    assert_string_equal(ptl_event_str[PTL_EVENT_UNLINK], "PTL_EVENT_UNLINK");
    for (int kind = 0; kind <= PTL_EVENT_UNLINK; kind++)
        assert_memory_equal(ptl_event_str[kind], "PTL_EVENT_", 10);
#else
    assert_string_equal(PtlErrorStr(PTL_SEGV), "PTL_SEGV");
    assert_string_equal(PtlErrorStr(1000), "PTL_UNKNOWN_ERROR");
    assert_string_equal(PtlErrorStr((unsigned)-1), "PTL_UNKNOWN_ERROR");
    assert_string_equal(PtlEventKindStr(PTL_EVENT_ACK), "PTL_EVENT_ACK");
    assert_string_equal(PtlEventKindStr((ptl_event_kind_t)12), "PTL_UNKNOWN_EVENT_KIND");
    assert_string_equal(PtlNIFailStr(px_ni, PTL_NI_OK), "PTL_NI_OK");
    assert_string_equal(PtlNIFailStr(px_ni, PTL_NI_FAIL), "PTL_NI_FAIL");
    assert_string_equal(PtlNIFailStr(px_ni, 99), "PTL_NI_UNKNOWN_ERROR");
#endif
}

static void test_masks_are_kept(void **state)
{
    (void)state;
    assert_int_equal(PtlNIDebug(px_ni, PTL_DBG_API), PTL_DBG_NONE);
    assert_int_equal(PtlNIDebug(px_ni, PTL_DBG_NONE), PTL_DBG_API);
    assert_int_equal(PtlNIDebug(px_ni, PTL_DBG_NONE), PTL_DBG_NONE);
    assert_int_equal(PtlNIDebug(PTL_INVALID_HANDLE, PTL_DEBUG_DROP | PTL_DEBUG_NI_ALL), PTL_DBG_NONE);
    assert_int_equal(PtlNIDebug(PTL_INVALID_HANDLE, PTL_DBG_NONE), PTL_DBG_DROP | PTL_DBG_NI_ALL);
    assert_int_equal(PTL_DEBUG_ALL, PTL_DBG_ALL);
}

static void test_loopback_keeps_its_value(void **state)
{
    int enabled = -1;

    (void)state;
    assert_int_equal(PtlLoopback(px_ni, 0, &enabled), PTL_OK);
    assert_int_equal(enabled, 1);
    enabled = 0;
    assert_int_equal(PtlLoopback(px_ni, 1, &enabled), PTL_OK);
    enabled = 7;
    assert_int_equal(PtlLoopback(px_ni, 0, &enabled), PTL_OK);
    assert_int_equal(enabled, 0);
    enabled = 1;
    assert_int_equal(PtlLoopback(px_ni, 1, &enabled), PTL_OK);
    assert_int_equal(PtlLoopback(px_ni, 0, NULL), PTL_SEGV);
    assert_int_equal(PtlLoopback(PTL_INVALID_HANDLE, 0, &enabled), PTL_NI_INVALID);
}

static void test_handles_can_be_printed(void **state)
{
    char text[64], other[64], small[4] = "xyz";

    (void)state;
    PtlSnprintHandle(text, sizeof(text), px_ni);
    PtlSnprintHandle(other, sizeof(other), PTL_INVALID_HANDLE);
    assert_true(strlen(text) > 0);
    assert_string_not_equal(text, other);
    PtlSnprintHandle(small, 3, px_ni);
    assert_true(strlen(small) <= 2);
    small[0] = 'k';
    PtlSnprintHandle(small, 0, px_ni);
    assert_int_equal(small[0], 'k');
    PtlSnprintHandle(NULL, 5, px_ni);
}

#if !PX_CRAY
/* Dumps go to standard error, and tell an entry by its bits. */
static void test_dumps(void **state)
{
    struct px_entry e =
        px_entry(PT, 0xabcdef12345ull, 0, PTL_RETAIN, px_md(NULL, 0, PTL_MD_OP_PUT, 1, PTL_EQ_NONE), PTL_RETAIN);
    ptl_handle_eq_t eq = px_eq(4);
    char text[16384] = "";
    int kept = dup(2), file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    int rcs[4];
    ssize_t n;

    (void)state;
    assert_true(kept >= 0 && file >= 0);
    fflush(stderr);
    dup2(file, 2);
    rcs[0] = PtlTblDump(px_ni, PT);
    rcs[1] = PtlMEDump(e.me);
    rcs[2] = PtlNIEqDump(px_ni);
    rcs[3] = PtlTblDump(px_ni, px_limits.max_pt_index + 1);
    fflush(stderr);
    dup2(kept, 2);
    n = pread(file, text, sizeof(text) - 1, 0);
    close(kept);
    close(file);
    /* covers: PtlTblDump, PtlMEDump, PtlNIEqDump: PTL_OK */
    for (int i = 0; i < 3; i++)
        assert_int_equal(rcs[i], PTL_OK);
    /* covers: PtlTblDump: PTL_PT_INDEX_INVALID */
    assert_int_equal(rcs[3], PTL_PT_INDEX_INVALID);
    assert_true(n > 0);
    assert_non_null(strstr(text, "abcdef12345"));
    assert_int_equal(PtlTblDump(px_ni, -1), PTL_PT_INDEX_INVALID);
    assert_int_equal(PtlTblDump(PTL_INVALID_HANDLE, 0), PTL_NI_INVALID);
    assert_int_equal(PtlMEDump(PTL_INVALID_HANDLE), PTL_ME_INVALID);
    assert_int_equal(PtlNIEqDump(PTL_INVALID_HANDLE), PTL_NI_INVALID);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlMEDump(e.me), PTL_ME_INVALID);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

static void test_progress(void **state)
{
    ptl_handle_eq_t eq = px_eq(4);

    (void)state;
    assert_int_equal(PtlProgress(px_ni, 0), PTL_OK);
    assert_int_equal(PtlProgress(eq, 1), PTL_OK);
    assert_int_equal(PtlProgress(PTL_INVALID_HANDLE, 0), PTL_NI_INVALID);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

static void test_the_node_is_known_before_the_interface(void **state)
{
    unsigned nid = 0xffffffff;

    (void)state;
    assert_int_equal(p3tcp_my_nid("eth0", &nid), 0);
    assert_int_equal(nid, px_self.nid);
    assert_int_equal(p3tcp_my_nid(NULL, NULL), -1);
    utcp_api_out = utcp_lib_out = p3_out = stderr;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_have_positional_initialisers),
        cmocka_unit_test(test_symbols_that_programs_look_for),
        cmocka_unit_test(test_codes_and_kinds_have_their_names),
        cmocka_unit_test(test_masks_are_kept),
        cmocka_unit_test(test_loopback_keeps_its_value),
        cmocka_unit_test(test_handles_can_be_printed),
#if !PX_CRAY
        cmocka_unit_test(test_dumps),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_the_node_is_known_before_the_interface),
#endif
    };

    return px_run(tests, NULL);
}
