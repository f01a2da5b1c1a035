/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_FACTS_H
#define PMI_SRC_FACTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What is known about this job. All functions need the library lock. Those with a result connect to the
 * launcher's server when the environment does not tell; then -ENOTCONN and other faults are possible. See
 * facts.c.
 */

/** Read the environment; once per process. No I/O. */
void pmii_facts_load(void);

int pmii_facts_rank(void);
bool pmii_facts_is_spawned(void);

/** "kvs_<number>". Static storage. */
const char *pmii_facts_job_name(void);

/** The name of another job, from its PMIx namespace. @param room_bytes 16 is enough. */
void pmii_facts_name_job(const char *nspace, char *name_out, int room_bytes);

int pmii_facts_size(int *size_out);
int pmii_facts_universe(int *size_out);

/** The application of each rank; lives as long as the process. */
int pmii_facts_apps(const int **app_of_out, int *n_apps_out);

/** The nid of each rank; lives as long as the process. */
int pmii_facts_nids(const int **nids_out);

/** Which ranks: of my node, and if asked only those of my application. */
enum pmii_group { PMII_NODE, PMII_NODE_AND_APP };

/**
 * Count the ranks of a group and list them, ascending.
 *
 * @param ranks_out  NULL or room for `room` ranks.   @retval -EMSGSIZE room too small; nothing written.
 */
int pmii_facts_group(enum pmii_group group, int *ranks_out, int room, int *n_out);

/** Text of PMI_process_mapping. @param[out] text_out malloc-ed, caller frees. */
int pmii_facts_mapping(char **text_out);

/** Whether the job is known to be this process alone, so that nothing needs a server. */
bool pmii_facts_is_alone(void);

/** Cabinets per row of the XC rule, from EMUNIC_CABINET_COLUMNS. */
int pmii_facts_cabinet_columns(void);

#endif
