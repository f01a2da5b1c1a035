/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3nal_utcp.h: interfaces of the REF dialect. The names are those of its TCP layer; behind each is the emulated NIC of
 * the job's node, with a process id of its own. (share/doc/emunic/spec/portals3.md 2.6, 2.11)
 */
#ifndef P3NAL_UTCP_H
#define P3NAL_UTCP_H

#include <stdio.h>

#include <portals3.h>

#define PTL_NALTYPE_NONE  0u
#define PTL_NALTYPE_UTCP0 0xF0F0F000u
#define PTL_NALTYPE_UTCP1 0xF0F0F001u
#define PTL_NALTYPE_UTCP2 0xF0F0F002u
#define PTL_NALTYPE_UTCP3 0xF0F0F003u
#define PTL_NALTYPE_UTCP  PTL_NALTYPE_UTCP0

#define PTL_IFACE_UTCP  PTL_NALTYPE_UTCP
#define PTL_IFACE_UTCP0 PTL_NALTYPE_UTCP0
#define PTL_IFACE_UTCP1 PTL_NALTYPE_UTCP1
#define PTL_IFACE_UTCP2 PTL_NALTYPE_UTCP2
#define PTL_IFACE_UTCP3 PTL_NALTYPE_UTCP3

#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT PTL_IFACE_UTCP
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Streams that programs assign. Weak in the library: a program may define them itself. Nothing is written to them.
 */
extern FILE *utcp_api_out;
extern FILE *utcp_lib_out;
extern FILE *p3_out;

/*
 * The emulated node
 */

/**
 * Node id of this process before it opens an interface. Programs declare it themselves.
 *
 * @param[in]  ifname  A network device in the original; not looked at.
 * @param[out] nid     The id.
 * @return 0; -1 if nid is NULL or the process was not started in a job.
 * @note Threads: any. Any time. REF only.
 * @note Source: spec/portals3.md 2.11.
 */
int p3tcp_my_nid(const char *ifname, unsigned *nid);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* P3NAL_UTCP_H */
