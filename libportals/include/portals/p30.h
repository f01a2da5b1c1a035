/* SPDX-License-Identifier: BSD-3-Clause */
/* p30.h: an older name of <portals/portals3.h>. (share/doc/emunic/spec/portals3.md 2.11) */
#ifndef PORTALS_P30_H
#define PORTALS_P30_H

#include <portals/portals3.h>

#endif /* PORTALS_P30_H */
