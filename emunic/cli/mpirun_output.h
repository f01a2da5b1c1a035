/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpirun says itself, apart from what it passes on from the ranks: which rank failed first, and words for people.
 */
#ifndef EMUNIC_CLI_MPIRUN_OUTPUT_H
#define EMUNIC_CLI_MPIRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How the first rank that failed did so. */
enum emu_rank_end {
    EMU_RANK_END_UNKNOWN = 0, /* none has failed, or mpirun does not say which */
    EMU_RANK_END_SIGNAL,
    EMU_RANK_END_STATUS,
    EMU_RANK_END_ABORT,       /* PMI_Abort, MPI_Abort */
    EMU_RANK_END_NO_FINALIZE, /* status 0, after an initialisation of PMI or MPI without its end */
};

struct emu_mpirun_output {
    int fd;        /* what mpirun writes comes here; does not block; -1: closed */
    int mpirun_fd; /* mpirun's end of it, open here as well: no end of file; -1: closed */
    enum emu_rank_end end;
    uint32_t rank;       /* unless the end is unknown */
    bool has_said;       /* something for people */
    bool is_inside_line; /* a line longer than `line` is passed on in parts */
    char held[256];      /* a line for people, unless a rank has failed; empty: none */
    size_t n_bytes;      /* of a line whose end has not come */
    char line[1024];
};

/* 0 or negative errno. */
int emu_mpirun_output_open(struct emu_mpirun_output *output_out);

/* Twice is fine. */
void emu_mpirun_output_close(struct emu_mpirun_output *output);

/* All that has come; what is for people goes to stderr. */
void emu_mpirun_output_read(struct emu_mpirun_output *output);

/* The same of these bytes: a part of what mpirun writes, cut anywhere. */
void emu_mpirun_output_take(struct emu_mpirun_output *output, const char *bytes, size_t n_bytes, FILE *people);

/* What is left when nothing more will come. */
void emu_mpirun_output_finish(struct emu_mpirun_output *output, FILE *people);

#endif
