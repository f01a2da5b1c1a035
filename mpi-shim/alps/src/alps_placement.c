/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement of the application, from what libpmi knows of the job: nid of each rank, ranks of my node, programs. A PE
 * is a rank. All arrays are made first and given out together. Source: spec/cray-runtime.md 3.3.
 */
#include <pmi.h>
#include <pmi_cray.h>
#include <stdbool.h>
#include <stdlib.h>

#pragma GCC visibility push(default)
#include "mpi-shim/alps/include/alps/libalpsutil.h"
#pragma GCC visibility pop

struct placement {
    int n_pes;
    int n_apps;
    int n_here;
    int *here; /* owned, as the others: PEs of this node, ascending */
    int *nids;
    int *first_pes;
    int *app_sizes;
    int *node_sizes;
    int *depths;
};

static void free_placement(struct placement *p)
{
    free(p->here);
    free(p->nids);
    free(p->first_pes);
    free(p->app_sizes);
    free(p->node_sizes);
    free(p->depths);
}

static int *ints(int n)
{
    return calloc(n > 0 ? (size_t)n : 1, sizeof(int));
}

/* Programs are launched one behind the other, each with the next ranks. */
static bool find_apps(struct placement *p)
{
    if (PMI_Get_num_apps(&p->n_apps) != PMI_SUCCESS || p->n_apps < 1)
        return false;
    p->first_pes = ints(p->n_apps);
    p->app_sizes = ints(p->n_apps);
    if (!p->first_pes || !p->app_sizes)
        return false;
    for (int a = 0; a < p->n_apps; a++) {
        if (PMI_Get_app_size(a, &p->app_sizes[a]) != PMI_SUCCESS)
            return false;
        p->first_pes[a] = p->n_pes;
        p->n_pes += p->app_sizes[a];
    }
    return p->n_pes > 0;
}

static bool find_nodes(struct placement *p)
{
    const char *depth_text = getenv("ALPS_APP_DEPTH");
    int depth = depth_text ? atoi(depth_text) : 1;
    void *list;

    if (PMI_Get_nidlist_ptr(&list) != PMI_SUCCESS || PMI_Get_numpes_on_smp(&p->n_here) != PMI_SUCCESS || p->n_here < 1)
        return false;
    p->here = ints(p->n_here);
    p->nids = ints(p->n_pes);
    p->node_sizes = ints(p->n_pes);
    p->depths = ints(p->n_pes);
    if (!p->here || !p->nids || !p->node_sizes || !p->depths || PMI_Get_pes_on_smp(p->here, p->n_here) != PMI_SUCCESS)
        return false;
    for (int pe = 0; pe < p->n_pes; pe++) {
        p->nids[pe] = ((const int *)list)[pe];
        p->depths[pe] = depth > 0 ? depth : 1;
    }
    return true;
}

static int compare_nids(const void *a, const void *b)
{
    int x = *(const int *)a;
    int y = *(const int *)b;

    return (x > y) - (x < y);
}

/* How many PEs share each PE's node: equal nids are neighbours in a sorted copy. */
static bool count_nodes(struct placement *p)
{
    int *sorted = ints(p->n_pes);

    if (!sorted)
        return false;
    for (int pe = 0; pe < p->n_pes; pe++)
        sorted[pe] = p->nids[pe];
    qsort(sorted, (size_t)p->n_pes, sizeof(*sorted), compare_nids);
    for (int pe = 0; pe < p->n_pes; pe++) {
        const int *one = bsearch(&p->nids[pe], sorted, (size_t)p->n_pes, sizeof(*sorted), compare_nids);
        const int *first = one;
        const int *end = one;

        while (first > sorted && first[-1] == *one)
            first--;
        while (end < sorted + p->n_pes && *end == *one)
            end++;
        p->node_sizes[pe] = (int)(end - first);
    }
    free(sorted);
    return true;
}

static void give(int **to, int **from)
{
    if (to) {
        *to = *from;
        *from = NULL;
    }
}

static void give_nothing(int **to)
{
    if (to)
        *to = NULL;
}

int alps_get_placement_info(uint64_t apid, alpsAppLayout_t *layout, int **placementList, int **targetNids,
                            int **targetPes, int **targetLen, struct in_addr **targetIps, int **startPe, int **totalPes,
                            int **nodePes, int **peCpus)
{
    struct placement p = { 0 };
    bool is_known = find_apps(&p) && find_nodes(&p) && count_nodes(&p);

    if (is_known) {
        if (layout)
            *layout = (alpsAppLayout_t){ .apid = apid,
                                         .numPes = p.n_pes,
                                         .numCmds = p.n_apps,
                                         .numPesHere = p.n_here,
                                         .firstPe = p.here[0],
                                         .controlNid = p.nids[0] };
        give(placementList, &p.nids);
        give(startPe, &p.first_pes);
        give(totalPes, &p.app_sizes);
        give(nodePes, &p.node_sizes);
        give(peCpus, &p.depths);
        give_nothing(targetNids);
        give_nothing(targetPes);
        give_nothing(targetLen);
        if (targetIps)
            *targetIps = NULL;
    }
    free_placement(&p);
    return is_known ? 1 : 0;
}
