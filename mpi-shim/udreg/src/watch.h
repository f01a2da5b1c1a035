/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UDREG_SRC_WATCH_H
#define UDREG_SRC_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Tells of memory that this process unmaps or moves. One per cache. All calls under the cache's lock. See watch.c. */

#define UDREGI_LOST_MAX 64u

/* A range whose mapping is gone. */
struct udregi_range {
    uint64_t first;
    uint64_t end;
};

struct udregi_watch;

/** @retval -errno this process cannot watch memory. */
int udregi_watch_create(struct udregi_watch **watch_out);

/** Accepts NULL. What was watched is watched no more. */
void udregi_watch_destroy(struct udregi_watch *watch);

/** Watch whole pages that are mapped. Ranges may overlap. @retval -errno this memory cannot be watched. */
int udregi_watch_add(struct udregi_watch *watch, uint64_t first, uint64_t end);

/** No longer, for the whole range. */
void udregi_watch_remove(struct udregi_watch *watch, uint64_t first, uint64_t end);

/**
 * The ranges lost since the last call: of every unmapping that had returned before this call.
 * @param[out] all_lost_out  More than room was for: anything may be lost.
 * @return number of ranges written.
 */
uint32_t udregi_watch_take(struct udregi_watch *watch, struct udregi_range lost[static UDREGI_LOST_MAX],
                           bool *all_lost_out);

#endif
