/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference dialect: its constants, and the calls that only it has but those of the runtime (ref_runtime.c). Four
 * interfaces, each a network of its own. Source: spec/portals3.md 0.2, 2.6, 2.8, 2.11, 4.10.
 */
#include <portals/portals3.h>

#include <stdio.h>

#include <p3nal_utcp.h>

#include "libportals/src/calls.h"

/* Programs assign them, or define them themselves. */
__attribute__((weak)) FILE *utcp_api_out;
__attribute__((weak)) FILE *utcp_lib_out;
__attribute__((weak)) FILE *p3_out;

const struct p3_dialect p3_dialect = {
    .name = "libp3api",
    .behaviour = EMU_PTL_ACCESS_CONTROL,
    .n_interfaces = 4,
    .options = 0x1ff,
    .codes = {
        [P3_OK] = PTL_OK,
        [P3_SEGV] = PTL_SEGV,
        [P3_NO_INIT] = PTL_NO_INIT,
        [P3_IFACE_DUP] = PTL_OK,
        [P3_IFACE_INVALID] = PTL_IFACE_INVALID,
        [P3_PID_INVALID] = PTL_PID_INVALID,
        [P3_NO_SPACE] = PTL_NO_SPACE,
        [P3_FAIL] = PTL_FAIL,
        [P3_NI_INVALID] = PTL_NI_INVALID,
        [P3_HANDLE_INVALID] = PTL_HANDLE_INVALID,
        [P3_SR_INDEX_INVALID] = PTL_SR_INDEX_INVALID,
        [P3_PROCESS_INVALID] = PTL_PROCESS_INVALID,
        [P3_PT_INDEX_INVALID] = PTL_PT_INDEX_INVALID,
        [P3_PT_FULL] = PTL_PT_FULL,
        [P3_ME_INVALID] = PTL_ME_INVALID,
        [P3_ME_IN_USE] = PTL_ME_IN_USE,
        [P3_ME_LIST_TOO_LONG] = PTL_ME_LIST_TOO_LONG,
        [P3_MD_INVALID] = PTL_MD_INVALID,
        [P3_MD_ILLEGAL] = PTL_MD_ILLEGAL,
        [P3_MD_IN_USE] = PTL_MD_IN_USE,
        [P3_MD_NO_UPDATE] = PTL_MD_NO_UPDATE,
        [P3_EQ_INVALID] = PTL_EQ_INVALID,
        [P3_EQ_EMPTY] = PTL_EQ_EMPTY,
        [P3_EQ_DROPPED] = PTL_EQ_DROPPED,
        [P3_AC_INDEX_INVALID] = PTL_AC_INDEX_INVALID,
    },
};

int p3_dialect_interface(uint32_t iface)
{
    return iface >= PTL_IFACE_UTCP0 && iface - PTL_IFACE_UTCP0 < 4 ? (int)(iface - PTL_IFACE_UTCP0) : -1;
}

void p3_event_extra(const struct emu_ptl_event *from, ptl_event_t *event)
{
    (void)from;
    (void)event;
}

int PtlTblDump(ptl_handle_ni_t ni, int pt_index)
{
    return p3_rc(p3_is_init() ? p3_dump_table(ni, pt_index) : P3_NO_INIT);
}

int PtlMEDump(ptl_handle_me_t me)
{
    return p3_rc(p3_is_init() ? p3_dump_me(me) : P3_NO_INIT);
}

int PtlNIEqDump(ptl_handle_ni_t ni)
{
    return p3_rc(p3_is_init() ? p3_dump_queues(ni) : P3_NO_INIT);
}

/* There is nothing to be helped along: emunic and the initiators make the progress. */
int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout)
{
    (void)timeout;
    return p3_rc(p3_is_init() ? p3_progress(handle) : P3_NO_INIT);
}

int p3tcp_my_nid(const char *ifname, unsigned *nid)
{
    uint32_t found;

    (void)ifname;
    if (!nid || p3_my_nid(&found) < 0)
        return -1;
    *nid = found;
    return 0;
}
