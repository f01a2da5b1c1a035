/* SPDX-License-Identifier: BSD-3-Clause */
/* p3api/debug.h: masks of PtlNIDebug(). (share/doc/emunic/spec/portals3.md 2.10) */
#ifndef P3API_DEBUG_H
#define P3API_DEBUG_H

#include <portals3.h>
#include <portals/p3_debug.h>

#endif /* P3API_DEBUG_H */
