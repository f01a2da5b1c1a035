/* SPDX-License-Identifier: BSD-3-Clause */
/* What the guide of libpmi compiles. */
#include <pmi.h>
#include <stdio.h>

int main(void)
{
    int spawned, rank, size;

    if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS || PMI_Get_size(&size) != PMI_SUCCESS)
        return 1;
    printf("rank %d of %d\n", rank, size);
    return PMI_Finalize();
}
