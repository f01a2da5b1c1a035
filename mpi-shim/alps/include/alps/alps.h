/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ALPS that programs include without linking anything.
 *
 * The files under /proc do not exist on an ordinary node; whoever opens them finds none.
 * Source: use by public clients (cray-runtime.md, 1.2). The vendor header was not seen.
 */
#ifndef ALPS_ALPS_H
#define ALPS_ALPS_H

#define ALPS_XT_NID          "/proc/cray_xt/nid"   /* decimal node id */
#define ALPS_XT_CNAME        "/proc/cray_xt/cname" /* physical name */
#define ALPS_XT_HOSTNAME_FMT "nid%05d"
#define ALPS_XT_HOSTNAME_LEN 9                     /* with the NUL */

#endif
