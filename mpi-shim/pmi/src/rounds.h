/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_ROUNDS_H
#define PMI_SRC_ROUNDS_H

#include <stddef.h>

/* What ranks do together. All functions need the turn (pmi_session.h), without the lock. See rounds.c. */

/**
 * Every rank gets blocks of every rank, in the job's gather order.
 *
 * @param mine      My block.   @param mine_bytes  Its length.
 * @param lens      Expected length per rank, the same on all ranks.
 * @param[out] out  The blocks one after the other.
 * @retval -EBADMSG  A block did not arrive or has another length; all rounds were done nevertheless.
 */
int pmii_gather(const void *mine, size_t mine_bytes, const int *lens, void *out);

/** Wait for all ranks; everybody learns everybody's puts. */
int pmii_barrier(void);

/** The same in two halves. @retval -EALREADY one is open. */
int pmii_split_barrier_start(void);
/** @retval -EALREADY none is open. */
int pmii_split_barrier_wait(void);

/** Complete the started half, if any; the wait call then returns at once. */
void pmii_split_barrier_complete(void);

#endif
