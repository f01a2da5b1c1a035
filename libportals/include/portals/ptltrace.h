/* SPDX-License-Identifier: BSD-3-Clause */
/* ptltrace.h: programs include it and use nothing of it. (share/doc/emunic/spec/portals3.md 2.11) */
#ifndef PORTALS_PTLTRACE_H
#define PORTALS_PTLTRACE_H

#endif /* PORTALS_PTLTRACE_H */
