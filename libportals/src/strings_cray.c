/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of codes and of kinds of events, CRAY: the C identifiers themselves. (spec/portals3.md 4.10)
 */
#include <portals/portals3.h>

#define NAME(identifier) [identifier] = #identifier

const char *ptl_err_str[] = {
    NAME(PTL_OK),
    NAME(PTL_SEGV),
    NAME(PTL_NO_SPACE),
    NAME(PTL_ME_IN_USE),
    NAME(PTL_NAL_FAILED),
    NAME(PTL_NO_INIT),
    NAME(PTL_IFACE_DUP),
    NAME(PTL_IFACE_INVALID),
    NAME(PTL_HANDLE_INVALID),
    NAME(PTL_MD_INVALID),
    NAME(PTL_ME_INVALID),
    NAME(PTL_PROCESS_INVALID),
    NAME(PTL_PT_INDEX_INVALID),
    NAME(PTL_SR_INDEX_INVALID),
    NAME(PTL_EQ_INVALID),
    NAME(PTL_EQ_DROPPED),
    NAME(PTL_EQ_EMPTY),
    NAME(PTL_MD_NO_UPDATE),
    NAME(PTL_FAIL),
    NAME(PTL_AC_INDEX_INVALID),
    NAME(PTL_MD_ILLEGAL),
    NAME(PTL_ME_LIST_TOO_LONG),
    NAME(PTL_MD_IN_USE),
    NAME(PTL_NI_INVALID),
    NAME(PTL_PID_INVALID),
    NAME(PTL_PT_FULL),
    NAME(PTL_VAL_FAILED),
    NAME(PTL_NOT_IMPLEMENTED),
    NAME(PTL_NO_ACK),
    NAME(PTL_EQ_IN_USE),
    NAME(PTL_PID_IN_USE),
    NAME(PTL_INV_EQ_SIZE),
    NAME(PTL_AGAIN),
    NAME(PTL_MAX_ERRNO),
};

/* No header has it: programs declare it themselves, in their own ways. */
extern const char *ptl_event_str[];
__attribute__((visibility("default"))) const char *ptl_event_str[] = {
    NAME(PTL_EVENT_GET_START),    NAME(PTL_EVENT_GET_END),    NAME(PTL_EVENT_PUT_START),   NAME(PTL_EVENT_PUT_END),
    NAME(PTL_EVENT_GETPUT_START), NAME(PTL_EVENT_GETPUT_END), NAME(PTL_EVENT_REPLY_START), NAME(PTL_EVENT_REPLY_END),
    NAME(PTL_EVENT_SEND_START),   NAME(PTL_EVENT_SEND_END),   NAME(PTL_EVENT_ACK),         NAME(PTL_EVENT_UNLINK),
};
