/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib-types.h: kernel programs include it for names that <portals/portals3.h> has.
 * (share/doc/emunic/spec/portals3.md 2.11)
 */
#ifndef PORTALS_LIB_TYPES_H
#define PORTALS_LIB_TYPES_H

#include <portals/portals3.h>

#endif /* PORTALS_LIB_TYPES_H */
