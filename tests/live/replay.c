/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of a run in virtual time, given to the model alone: does it come to the same times?
 *
 *   replay MACHINE MACHINE-DIR TRACE
 *
 * TRACE is a file of `emunic run --trace`. Each operation is posted at its time, and when it arrived and ended is
 * compared to the picosecond. Prints how many operations there are, or the first that differ; status 1: some do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/machine.h"
#include "emunic/model/nic_model.h"

#define SHOWN 5u

struct row {
    struct emu_nic_proc from;
    struct emu_nic_op spec;
    uint64_t posted_ps;
    uint64_t live_ps[2]; /* arrived, ended */
    uint64_t model_ps[2];
    bool is_there;
};

struct rows {
    struct row *rows; /* by number */
    size_t n;
};

static void arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct rows *all = ctx;

    (void)nm;
    if (event->user > 0)
        all->rows[event->user - 1].model_ps[0] = event->at_ps;
}

static void completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct rows *all = ctx;

    (void)nm;
    all->rows[event->user - 1].model_ps[1] = event->at_ps;
}

static int kind_of(const char *name)
{
    static const char *const kinds[] = { "put", "get", "amo", "amo-fetch", "launch", "block-put", "block-get" };

    for (int i = 0; i < (int)(sizeof(kinds) / sizeof(kinds[0])); i++) {
        if (strcmp(kinds[i], name) == 0)
            return i;
    }
    return -1;
}

static bool read_row(const char *line, struct rows *all)
{
    uint32_t from[2], to[2], bytes, mode, launched, changes, answer;
    uint64_t number, posted_ps, begun_ps, arrived_ps, ended_ps;
    char kind[32];
    struct row *row;

    if (sscanf(line, "%" SCNu64 ",%u,%u,%u,%u,%31[^,],%u,%u,%u,%u,%u,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64,
               &number, &from[0], &from[1], &to[0], &to[1], kind, &bytes, &mode, &launched, &changes, &answer,
               &posted_ps, &begun_ps, &arrived_ps, &ended_ps) != 15 ||
        kind_of(kind) < 0 || number > 10000000)
        return false;
    if (number >= all->n) {
        row = realloc(all->rows, (number + 1) * sizeof(*row));
        if (!row)
            return false;
        all->rows = row;
        memset(&all->rows[all->n], 0, (number + 1 - all->n) * sizeof(*row));
        all->n = number + 1;
    }
    all->rows[number] = (struct row){
        .from = { from[0], from[1] },
        .spec = { .kind = (enum emu_nic_kind)kind_of(kind),
                  .to = { to[0], to[1] },
                  .bytes = bytes,
                  .is_told = true,
                  .is_launched = launched,
                  .changes_mdh = changes,
                  .is_answer = answer,
                  .has_mode = true,
                  .mode = (enum emu_route_mode)mode,
                  .user = number + 1 },
        .posted_ps = posted_ps,
        .live_ps = { arrived_ps, ended_ps },
        .is_there = true,
    };
    return true;
}

static bool read_trace(const char *path, struct rows *all)
{
    FILE *file = fopen(path, "re");
    char line[512];
    bool is_good = file && fgets(line, sizeof(line), file); /* names of the columns */

    while (is_good && fgets(line, sizeof(line), file))
        is_good = read_row(line, all);
    if (file)
        fclose(file);
    for (size_t i = 0; i < all->n; i++)
        is_good = is_good && all->rows[i].is_there;
    return is_good && all->n > 0;
}

/* As emunic does it: the simulation stands behind the slot of the clock in which the operation is posted. */
static bool run(const struct emu_machine *m, struct rows *all)
{
    const struct emu_nic_program program = { .ctx = all, .completed = completed, .arrived = arrived };
    const struct emu_nic_setup setup = { .machine = m, .host = *emu_machine_node_params(m), .is_live = true };
    uint64_t clock_ps = emu_machine_router(m)->clock_ps;
    struct emu_nic_model *nm;

    if (emu_nic_model_create(&setup, &program, &nm) < 0)
        return false;
    for (size_t i = 0; i < all->n; i++) {
        const struct row *row = &all->rows[i];

        (void)emu_nic_run(nm, row->posted_ps + clock_ps);
        if (emu_nic_post(nm, row->from, &row->spec, row->posted_ps) < 0)
            return false;
    }
    (void)emu_nic_run(nm, UINT64_MAX / 2);
    emu_nic_model_destroy(nm);
    return true;
}

static size_t compare(const struct rows *all)
{
    size_t n_wrong = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct row *row = &all->rows[i];

        if (row->live_ps[0] == row->model_ps[0] && row->live_ps[1] == row->model_ps[1])
            continue;
        if (n_wrong++ < SHOWN)
            printf("operation %zu, posted at %" PRIu64 " ps: live %" PRIu64 ", %" PRIu64 "; model %" PRIu64 ", %" PRIu64
                   "\n",
                   i, row->posted_ps, row->live_ps[0], row->live_ps[1], row->model_ps[0], row->model_ps[1]);
    }
    return n_wrong;
}

int main(int argc, char **argv)
{
    struct emu_machine *m;
    struct rows all = { 0 };
    char err[512];
    size_t n_wrong;

    if (argc != 4) {
        fprintf(stderr, "usage: replay MACHINE MACHINE-DIR TRACE\n");
        return 2;
    }
    if (emu_machine_load(argv[1], argv[2], &m, err, sizeof(err)) < 0) {
        fprintf(stderr, "replay: %s\n", err);
        return 2;
    }
    if (!read_trace(argv[3], &all) || !run(m, &all)) {
        fprintf(stderr, "replay: %s: no trace, or not of this machine\n", argv[3]);
        return 2;
    }
    n_wrong = compare(&all);
    printf("%zu operations, %zu differ\n", all.n, n_wrong);
    free(all.rows);
    emu_machine_destroy(m);
    return n_wrong > 0;
}
