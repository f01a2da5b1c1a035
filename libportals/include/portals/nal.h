/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nal.h: programs include it; what they need of it is in <portals/portals3.h>.
 * (share/doc/emunic/spec/portals3.md 2.11)
 */
#ifndef PORTALS_NAL_H
#define PORTALS_NAL_H

#include <portals/portals3.h>

#endif /* PORTALS_NAL_H */
