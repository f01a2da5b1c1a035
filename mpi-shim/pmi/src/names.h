/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_NAMES_H
#define PMI_SRC_NAMES_H

#include <pmi2.h>

#include <stddef.h>

/* Name service and spawn, shared by PMI-1 and PMI-2. With the library lock. Negative errno. See names.c. */

int pmii_name_publish(const char *name, const char *port);
/** @retval -ENOENT not published. @retval -EMSGSIZE room too small. */
int pmii_name_lookup(const char *name, char *port_out, size_t room_bytes);
int pmii_name_unpublish(const char *name);

/* The programs of a new job, as the caller of PMI has them: `count` of each array. */
struct pmii_programs {
    int count;
    const char *const *cmds;
    const int *argcs; /* NULL: each argvs[i] ends with NULL */
    const char **const *argvs;
    const int *maxprocs;
    const int *info_sizes;
    const PMI_keyval_t *const *infos;
};

/** @param[out] job_name_out 16 bytes. */
int pmii_job_spawn(const struct pmii_programs *programs, char *job_name_out);

#endif
