/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals/portals3.h: <portals3.h> of REF, for programs that look for it here.
 * (share/doc/emunic/spec/portals3.md 2.11)
 */
#ifndef PORTALS_REF_PORTALS3_H
#define PORTALS_REF_PORTALS3_H

#include <portals3.h>

#endif /* PORTALS_REF_PORTALS3_H */
