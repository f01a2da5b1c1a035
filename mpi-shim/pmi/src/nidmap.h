/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_NIDMAP_H
#define PMI_SRC_NIDMAP_H

#include <stdbool.h>

/* All functions: any thread, no global state. See nidmap.c. */

/**
 * Parse a list of nids in rank order, as in EMUNIC_NIDS: "0*2,5*2,7" is 0,0,5,5,7.
 *
 * @param[out] nids_out  malloc-ed, caller frees.
 * @retval -EINVAL  Not such a list, or more than 2^24 ranks.   @retval -ENOMEM
 */
int pmii_nids_parse(const char *text, int **nids_out, int *n_ranks_out);

/** Parse numbers separated by blanks or commas, as in OMPI_APP_CTX_NUM_PROCS. Results as pmii_nids_parse(). */
int pmii_counts_parse(const char *text, int **counts_out, int *n_counts_out);

/** Number the nodes 0, 1, ... in the order in which ranks first name them. @retval -ENOMEM */
int pmii_node_numbers(const int *nids, int n_ranks, int *nodes_out);

/** Text of PMI_process_mapping. @param[out] text_out  malloc-ed, caller frees. @retval -ENOMEM */
int pmii_mapping_text(const int *nids, int n_ranks, char **text_out);

/** The number in a host name nidNNNNN, with or without a domain behind it. @retval -EINVAL another kind of name. */
int pmii_host_nid(const char *host, int *nid_out);

/** XC coordinate of a nid. @param n_columns cabinets per row, at least 1. @param[out] xyz_out three coordinates. */
void pmii_xc_coordinate(int nid, int n_columns, unsigned xyz_out[3]);

/** A decimal number in 0 .. 2^31-1 and nothing else. */
bool pmii_parse_int(const char *text, int *value_out);

#endif
