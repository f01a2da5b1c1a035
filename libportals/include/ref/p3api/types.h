/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3api/types.h: a name under which programs look for what <portals3.h> has. (share/doc/emunic/spec/portals3.md
 * 2.11)
 */
#ifndef P3API_TYPES_H
#define P3API_TYPES_H

#include <portals3.h>

#endif /* P3API_TYPES_H */
