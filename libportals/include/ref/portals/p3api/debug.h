/* SPDX-License-Identifier: BSD-3-Clause */
/* portals/p3api/debug.h: where programs look for <p3api/debug.h>. (share/doc/emunic/spec/portals3.md 2.11) */
#ifndef PORTALS_REF_P3API_DEBUG_H
#define PORTALS_REF_P3API_DEBUG_H

#include <p3api/debug.h>

#endif /* PORTALS_REF_P3API_DEBUG_H */
