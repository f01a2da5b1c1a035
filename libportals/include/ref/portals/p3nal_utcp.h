/* SPDX-License-Identifier: BSD-3-Clause */
/* portals/p3nal_utcp.h: <p3nal_utcp.h>, for programs that look for it here. (share/doc/emunic/spec/portals3.md 2.11) */
#ifndef PORTALS_REF_P3NAL_UTCP_H
#define PORTALS_REF_P3NAL_UTCP_H

#include <p3nal_utcp.h>

#endif /* PORTALS_REF_P3NAL_UTCP_H */
