/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last rank aborts, the others wait for ever: the job must end, and not with success. The argument is the
 * exit code for PMI_Abort(), or "pmi2" for PMI2_Abort().
 */
#include <pmi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank = -1, size = -1;

    if (argc != 2 || PMI_Init(NULL) != PMI_SUCCESS || PMI_Get_rank(&rank) != PMI_SUCCESS ||
        PMI_Get_size(&size) != PMI_SUCCESS)
        return 0; /* this test expects a failure */
    if (rank == size - 1) {
        if (strcmp(argv[1], "pmi2") == 0)
            PMI2_Abort(1, "aborting as asked");
        PMI_Abort(atoi(argv[1]), "aborting as asked");
    }
    for (;;)
        pause();
}
