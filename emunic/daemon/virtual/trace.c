/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/daemon/virtual/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/log.h"

struct emu_virtual_trace {
    FILE *file; /* owned */
    uint64_t n_rows;
};

static const char *const kinds[EMU_NIC_KINDS] = {
    [EMU_NIC_PUT] = "put",           [EMU_NIC_GET] = "get",
    [EMU_NIC_AMO] = "amo",           [EMU_NIC_AMO_FETCH] = "amo-fetch",
    [EMU_NIC_LAUNCH] = "launch",     [EMU_NIC_BTE_PUT] = "block-put",
    [EMU_NIC_BTE_GET] = "block-get",
};

int emu_virtual_trace_open(const char *path, struct emu_virtual_trace **trace_out, struct emu_complaint *why)
{
    struct emu_virtual_trace *trace = calloc(1, sizeof(*trace));

    if (!trace)
        return -ENOMEM;
    trace->file = fopen(path, "we");
    if (!trace->file) {
        int r = -errno;

        snprintf(why->text, why->bytes, "--trace: %s: %s", path, strerror(errno));
        free(trace);
        return r;
    }
    fprintf(trace->file, "number,from_nid,from_core,to_nid,to_core,kind,bytes,mode,launched,changes_handle,answer,"
                         "posted_ps,begun_ps,arrived_ps,ended_ps\n");
    fflush(trace->file); /* its buffer is there before emunic gives up its rights */
    *trace_out = trace;
    return 0;
}

void emu_virtual_trace_close(struct emu_virtual_trace *trace)
{
    if (!trace)
        return;
    if (ferror(trace->file) || fclose(trace->file) != 0)
        emu_log(EMU_LOG_ERROR, "--trace: the file is not whole: %s", strerror(errno));
    free(trace);
}

struct emu_virtual_trace_row *emu_virtual_trace_begin(struct emu_virtual_trace *trace, struct emu_nic_proc from,
                                                      const struct emu_nic_op *spec, uint64_t posted_ps)
{
    struct emu_virtual_trace_row *row = trace ? malloc(sizeof(*row)) : NULL;

    if (!row)
        return NULL;
    *row = (struct emu_virtual_trace_row){
        .number = trace->n_rows++, .from = from, .spec = *spec, .posted_ps = posted_ps
    };
    return row;
}

void emu_virtual_trace_end(struct emu_virtual_trace *trace, struct emu_virtual_trace_row *row)
{
    const struct emu_nic_op *spec;

    if (!row)
        return;
    spec = &row->spec;
    fprintf(trace->file, "%" PRIu64 ",%u,%u,%u,%u,%s,%u,%d,%d,%d,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
            row->number, row->from.nid, row->from.proc, spec->to.nid, spec->to.proc, kinds[spec->kind], spec->bytes,
            (int)spec->mode, spec->is_launched, spec->changes_mdh, spec->is_answer, row->posted_ps, row->begun_ps,
            row->arrived_ps, row->ended_ps);
    free(row);
}
