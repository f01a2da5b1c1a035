/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ALPS that programs include without linking anything.
 *
 * Ranks of `emunic run` find the files under /proc, unless they are linked statically, and a host name of this form
 * (emunic-run(1), Names of nodes). A nid above 99999 has a sixth digit.
 * Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 1.2). The vendor header was not seen.
 */
#ifndef ALPS_ALPS_H
#define ALPS_ALPS_H

#define ALPS_XT_NID          "/proc/cray_xt/nid"   /* decimal node id */
#define ALPS_XT_CNAME        "/proc/cray_xt/cname" /* physical name */
#define ALPS_XT_HOSTNAME_FMT "nid%05d"
#define ALPS_XT_HOSTNAME_LEN 9 /* with the NUL */

#endif
