/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tells the two dialects apart, for the core and for calls.c. Each library has one: cray.c or ref.c.
 */
#ifndef LIBPORTALS_DIALECT_H
#define LIBPORTALS_DIALECT_H

#include <stdbool.h>
#include <stdint.h>

#include "libportals/src/core.h"

struct p3_dialect {
    const char *name;   /* for the log */
    uint32_t behaviour; /* EMU_PTL_* */
    uint32_t n_interfaces;
    uint32_t options;    /* of descriptors, that there are */
    int codes[P3_CODES]; /* public codes */
};
extern const struct p3_dialect p3_dialect;

/* Number of an interface by its public name, or -1. */
int p3_dialect_interface(uint32_t iface);
/* Before PtlNIInit() opens one, and after; the first may refuse, and choose pid and jid. */
enum p3_code p3_dialect_before_open(uint32_t net, uint32_t *pid, uint32_t *jid);
/* After it was opened with that address; may still change the job id. Not P3_OK: it is closed again. */
enum p3_code p3_dialect_after_open(uint32_t ni, struct p3_id id, uint32_t *jid);
void p3_dialect_after_close(uint32_t ni);
/* The library ends. */
void p3_dialect_fini(void);

#endif
