/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of README's recipe: rank, size and node by PMI and GNI, between barriers.
 */
#include <gni_pub.h>
#include <pmi.h>
#include <stdio.h>

int main(void)
{
    unsigned int node, cpu;
    int spawned, rank, size;

    if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS || PMI_Get_size(&size) != PMI_SUCCESS)
        return 1;
    if (GNI_CdmGetNicAddress(0, &node, &cpu) != GNI_RC_SUCCESS)
        return 1;
    printf("rank %d of %d on node %u\n", rank, size, node);
    return PMI_Barrier() == PMI_SUCCESS && PMI_Finalize() == PMI_SUCCESS ? 0 : 1;
}
