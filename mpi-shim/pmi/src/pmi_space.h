/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_SPACE_H
#define PMI_SRC_SPACE_H

#include "mpi-shim/pmi/src/kvs.h"

#include <stdbool.h>

/* Key-value spaces and node attributes. All functions but the two marked need the library lock. See pmi_space.c. */

/** @retval -ENOMEM */
int pmii_space_put(const char *space, const char *key, const char *value);

/**
 * @param preferred_rank  Or PMII_ANY_RANK.
 * @param[out] value_out  Borrowed from the table; valid under the lock.
 * @retval -ENOENT  Nobody has put it.
 */
int pmii_space_get(const char *space, const char *key, int preferred_rank, const char **value_out);

/** Stand on the first pair of a space. One walk at a time. */
void pmii_space_walk_start(const char *space);
/** The pair the walk stands on; NULL at the end. */
const struct pmii_pair *pmii_space_walk_pair(void);
void pmii_space_walk_on(void);
/** Whether the last walk was started over this space. */
bool pmii_space_is_walking(const char *space);

/** A name for one more space. @retval -EMSGSIZE */
int pmii_space_create(char *name_out, int room);
/** @retval -ENOENT the job's own space, or a name that is not of this job. */
int pmii_space_destroy(const char *space);
/** Whether a name is that of the job's space or of a created one of any rank. */
bool pmii_space_is_ours(const char *space);

/** Puts since the last barrier, to be told the others; the caller owns them. Without the lock. */
void pmii_space_take_pending(struct pmii_parcel *parcel_out);
/** Take in what another rank has put. Without the lock. @retval -EBADMSG */
int pmii_space_learn(int rank, const char *bytes, size_t len_bytes);

/** Give the ranks of my node a pair; an earlier value of mine stays. @retval -ENOSPC see pmi_space.c */
int pmii_node_attr_put(const char *name, const char *value);
/** @param[out] value_out as pmii_space_get(). @retval -ENOENT no rank of my node has put it yet. */
int pmii_node_attr_get(const char *name, const char **value_out);

#endif
