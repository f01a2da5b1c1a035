/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of codes, of kinds of events and of failures, REF: the C identifiers themselves. (spec/portals3.md 4.10)
 */
#include <portals3.h>

#define NAME(identifier) [identifier] = #identifier

const char *ptl_err_str[] = {
    NAME(PTL_OK),
    NAME(PTL_AC_INDEX_INVALID),
    NAME(PTL_EQ_DROPPED),
    NAME(PTL_EQ_EMPTY),
    NAME(PTL_EQ_INVALID),
    NAME(PTL_FAIL),
    NAME(PTL_HANDLE_INVALID),
    NAME(PTL_IFACE_INVALID),
    NAME(PTL_MD_ILLEGAL),
    NAME(PTL_MD_INVALID),
    NAME(PTL_MD_IN_USE),
    NAME(PTL_MD_NO_UPDATE),
    NAME(PTL_ME_INVALID),
    NAME(PTL_ME_IN_USE),
    NAME(PTL_ME_LIST_TOO_LONG),
    NAME(PTL_NI_INVALID),
    NAME(PTL_NO_INIT),
    NAME(PTL_NO_SPACE),
    NAME(PTL_PID_INVALID),
    NAME(PTL_PROCESS_INVALID),
    NAME(PTL_PT_FULL),
    NAME(PTL_PT_INDEX_INVALID),
    NAME(PTL_SEGV),
    NAME(PTL_SR_INDEX_INVALID),
    NAME(PTL_UNKNOWN_ERROR),
    NAME(PTL_MAX_ERRNO),
};

static const char *const kinds[] = {
    NAME(PTL_EVENT_GET_START),    NAME(PTL_EVENT_GET_END),    NAME(PTL_EVENT_PUT_START),   NAME(PTL_EVENT_PUT_END),
    NAME(PTL_EVENT_GETPUT_START), NAME(PTL_EVENT_GETPUT_END), NAME(PTL_EVENT_REPLY_START), NAME(PTL_EVENT_REPLY_END),
    NAME(PTL_EVENT_SEND_START),   NAME(PTL_EVENT_SEND_END),   NAME(PTL_EVENT_ACK),         NAME(PTL_EVENT_UNLINK),
};

const char *PtlErrorStr(unsigned rc)
{
    return ptl_err_str[rc < PTL_MAX_ERRNO ? rc : PTL_UNKNOWN_ERROR];
}

const char *PtlEventKindStr(ptl_event_kind_t k)
{
    return (unsigned)k < sizeof(kinds) / sizeof(*kinds) ? kinds[k] : "PTL_UNKNOWN_EVENT_KIND";
}

const char *PtlNIFailStr(ptl_handle_ni_t ni, ptl_ni_fail_t e)
{
    (void)ni;
    return e == PTL_NI_OK ? "PTL_NI_OK" : e == PTL_NI_FAIL ? "PTL_NI_FAIL" : "PTL_NI_UNKNOWN_ERROR";
}
