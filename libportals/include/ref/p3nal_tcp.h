/* SPDX-License-Identifier: BSD-3-Clause */
/* p3nal_tcp.h: an older name of <p3nal_utcp.h>. (share/doc/emunic/spec/portals3.md 2.11) */
#ifndef P3NAL_TCP_H
#define P3NAL_TCP_H

#include <p3nal_utcp.h>

#endif /* P3NAL_TCP_H */
