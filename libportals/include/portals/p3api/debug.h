/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3api/debug.h: names of <portals/p3_debug.h> where programs look for them. (share/doc/emunic/spec/portals3.md
 * 2.11)
 */
#ifndef PORTALS_P3API_DEBUG_H
#define PORTALS_P3API_DEBUG_H

#include <portals/p3_debug.h>

#endif /* PORTALS_P3API_DEBUG_H */
