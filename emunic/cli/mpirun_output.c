/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpirun says itself.
 *
 * Its own words leave Open MPI through opal_output(), which writes to the descriptor that OPAL_OUTPUT_STDERR_FD names;
 * what it passes on from the ranks goes to stdout and stderr as ever and is never looked at. With state_base_verbose 1
 * it tells each change of a process's state in the moment in which it acts on it, a line each:
 *
 *   [host:pid] [[7508,0],0] ACTIVATE PROC [[7508,1],3] STATE ABORTED BY SIGNAL AT file:line
 *
 * [7508,1] is the job of the ranks, 3 the rank; [7508,0] are mpirun's own daemons. The first rank in a state that is a
 * failure is the one whose status becomes mpirun's, which therefore needs no second source. mpirun's own report of it,
 * a box of text, comes too late now and then and is missing then. Lines about states go no further; all others do.
 *
 * The PMIx library in mpirun speaks likewise, through PMIX_OUTPUT_STDERR_FD. When a rank dies while it connects, it
 * tells an error of that connection. This is no news beside the rank's own end, so it is held back, and told at the end
 * only if no rank has failed.
 *
 * Checked with Open MPI 4.1.4. With one that says it in other words the rank stays unknown and nothing else changes.
 */
#include "emunic/cli/mpirun_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIGH_FD 700 /* of the 1024 that processes usually may have; not reached by daemons of mpirun */

static const struct {
    const char *text;
    enum emu_rank_end end;
} states[] = {
    { "ABORTED BY SIGNAL", EMU_RANK_END_SIGNAL },
    { "EXITED WITH NON-ZERO STATUS", EMU_RANK_END_STATUS },
    { "CALLED ABORT", EMU_RANK_END_ABORT },
    { "TERMINATED WITHOUT SYNC", EMU_RANK_END_NO_FINALIZE },
};

/*
 * mpirun's daemons on other hosts may inherit the variable: Slurm hands the environment on, and so do some agents. The
 * number then must be none of theirs, or they would write their words into a connection.
 */
static int raise_number(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

    if (high < 0)
        return fd;
    close(fd);
    return high;
}

int emu_mpirun_output_open(struct emu_mpirun_output *output_out)
{
    int ends[2];
    int r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        r = -errno;
        close(ends[0]);
        close(ends[1]);
        return r;
    }
    *output_out = (struct emu_mpirun_output){ .fd = ends[0], .mpirun_fd = raise_number(ends[1]) };
    return 0;
}

void emu_mpirun_output_close(struct emu_mpirun_output *output)
{
    if (output->fd >= 0)
        close(output->fd);
    if (output->mpirun_fd >= 0)
        close(output->mpirun_fd);
    output->fd = -1;
    output->mpirun_fd = -1;
}

static bool is_about_states(const char *line)
{
    return line[0] == '[' && (strstr(line, "] ACTIVATE PROC ") || strstr(line, "] ACTIVATE JOB "));
}

static void take_state(struct emu_mpirun_output *output, const char *line)
{
    const char *process = strstr(line, "] ACTIVATE PROC ");
    unsigned job;
    unsigned rank;
    int len = 0;

    if (output->end != EMU_RANK_END_UNKNOWN || !process)
        return;
    if (sscanf(process, "] ACTIVATE PROC [[%*u,%u],%u] STATE %n", &job, &rank, &len) != 2 || len == 0 || job != 1)
        return;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        size_t text_len = strlen(states[i].text);

        if (strncmp(process + len, states[i].text, text_len) != 0 || strncmp(process + len + text_len, " AT ", 4) != 0)
            continue;
        output->end = states[i].end;
        output->rank = rank;
    }
}

static bool is_about_connections(const char *line)
{
    return line[0] == '[' && strstr(line, "] PMIX ERROR: ");
}

/* The first one tells most. */
static void hold(struct emu_mpirun_output *output)
{
    if (output->held[0] == '\0')
        snprintf(output->held, sizeof(output->held), "%.*s", (int)sizeof(output->held) - 1, output->line);
}

/* The line, or its beginning, in output->line. */
static void end_line(struct emu_mpirun_output *output, bool is_whole, FILE *people)
{
    output->line[output->n_bytes] = '\0';
    if (!output->is_inside_line && is_about_states(output->line)) {
        take_state(output, output->line);
    } else if (!output->is_inside_line && is_whole && is_about_connections(output->line)) {
        hold(output);
    } else {
        fwrite(output->line, 1, output->n_bytes, people);
        if (is_whole)
            fputc('\n', people);
        output->has_said = true;
        output->is_inside_line = !is_whole;
    }
    if (is_whole)
        output->is_inside_line = false;
    output->n_bytes = 0;
}

void emu_mpirun_output_take(struct emu_mpirun_output *output, const char *bytes, size_t n_bytes, FILE *people)
{
    for (size_t i = 0; i < n_bytes; i++) {
        if (bytes[i] == '\n') {
            end_line(output, true, people);
            continue;
        }
        if (output->n_bytes == sizeof(output->line) - 1)
            end_line(output, false, people);
        output->line[output->n_bytes++] = bytes[i];
    }
}

void emu_mpirun_output_finish(struct emu_mpirun_output *output, FILE *people)
{
    if (output->n_bytes > 0)
        end_line(output, false, people);
    if (output->held[0] != '\0' && output->end == EMU_RANK_END_UNKNOWN) {
        fprintf(people, "%s\n", output->held);
        output->has_said = true;
    }
}

void emu_mpirun_output_read(struct emu_mpirun_output *output)
{
    char bytes[8192];
    char *text = NULL;
    size_t len = 0;
    FILE *people;
    ssize_t got;

    if (output->fd < 0)
        return;
    people = open_memstream(&text, &len);
    while ((got = read(output->fd, bytes, sizeof(bytes))) > 0)
        emu_mpirun_output_take(output, bytes, (size_t)got, people ? people : stderr);
    if (!people)
        return;
    /* At once, so that it does not mix with what ranks say. */
    if (fclose(people) == 0 && len > 0)
        fwrite(text, 1, len, stderr);
    free(text);
}
