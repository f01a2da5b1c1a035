/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One source for programs of both Portals profiles: PROFILE_REF chooses the reference layout, else Cray's. Where a name
 * exists in one only, the other has what it means there.
 */
#ifndef TESTS_COMMON_PORTALS_PROFILE_H
#define TESTS_COMMON_PORTALS_PROFILE_H

#ifdef PROFILE_REF
#include <portals3.h>
#include <p3nal_utcp.h>

#define PROFILE_NAME        "ref"
#define IS_CRAY             0
#define NO_ACK              PTL_NO_ACK_REQ
#define AUTO_UNLINK_EVENT   0u
#define MANUAL_UNLINK_EVENT 0u
#else
#include <portals/portals3.h>

#define PROFILE_NAME        "cray"
#define IS_CRAY             1
#define NO_ACK              PTL_NOACK_REQ
#define AUTO_UNLINK_EVENT   PTL_MD_EVENT_AUTO_UNLINK_ENABLE
#define MANUAL_UNLINK_EVENT PTL_MD_EVENT_MANUAL_UNLINK_ENABLE
#endif

#endif
