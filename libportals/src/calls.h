/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files that know public types. <portals/portals3.h> of the dialect comes before this. */
#ifndef LIBPORTALS_CALLS_H
#define LIBPORTALS_CALLS_H

#include <string.h>

#include "libportals/src/core.h"
#include "libportals/src/dialect.h"

int p3_rc(enum p3_code code);
struct p3_id p3_id_in(ptl_process_id_t id);
void p3_id_out(struct p3_id id, ptl_process_id_t *out);
struct p3_md p3_md_in(const ptl_md_t *md);
struct p3_match p3_match_in(ptl_process_id_t id, ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink);
void p3_event_out(const struct emu_ptl_event *from, ptl_event_t *event);
/* The dialect's own fields of an event. */
void p3_event_extra(const struct emu_ptl_event *from, ptl_event_t *event);

#endif
