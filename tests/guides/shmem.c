/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of docs/shmem.md. */
#include <shmem.h>
#include <stdio.h>

static long mine;
static long sum;

int main(void)
{
    shmem_init();
    mine = shmem_my_pe();
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1);
    if (mine == 0)
        printf("sum %ld\n", sum);
    shmem_finalize();
    return 0;
}
