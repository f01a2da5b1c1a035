/* SPDX-License-Identifier: BSD-3-Clause */
/* ptltrace.h: programs include it and use nothing of it. (portals3 spec 2.11) */
#ifndef PORTALS_PTLTRACE_H
#define PORTALS_PTLTRACE_H

#endif /* PORTALS_PTLTRACE_H */
