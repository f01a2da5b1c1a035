/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attached and idle: ranks that wait in the kernel until a byte for each arrives through a named pipe, so that the
 * CPU time emunic uses meanwhile can be read.
 *
 *   gni_idle_rank FIFO
 *
 * Rank 0 prints the line "attached" when all are.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "examples/common.h"

int main(int argc, char **argv)
{
    struct ex_job job;
    char byte;
    int fd;

    if (argc != 2) {
        fputs("usage: gni_idle_rank FIFO\n", stderr);
        return 2;
    }
    ex_start(&job, 0);
    ex_barrier();
    if (job.rank == 0) {
        puts("attached");
        fflush(stdout);
    }
    fd = open(argv[1], O_RDONLY);
    EX_EXPECT(fd >= 0 && read(fd, &byte, 1) == 1, "%s: cannot read", argv[1]);
    close(fd);
    ex_stop(&job);
    return 0;
}
