/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: the memory of descriptors, one piece or a list of pieces, as spans that are walked with cursors.
 */
#include <errno.h>

#include "emunic/engine/portals_engine.h"

void emu_ptl_span_of(struct emu_ptl_ni *ni, const struct emu_ptl_md *md, struct emu_ptl_span *span_out)
{
    *span_out = (struct emu_ptl_span){ .n = 1, .one = { md->start, md->length_bytes } };
    if ((md->options & EMU_PTL_MD_IOVEC) == 0)
        return;
    span_out->n = 0;
    if (md->iov_count <= EMU_PTL_IOVEC_MAX && md->iov_first <= EMU_PTL_IOVECS - md->iov_count) {
        span_out->iovs = &ni->iovs[md->iov_first];
        span_out->n = md->iov_count;
    }
}

struct cursor {
    const struct emu_ptl_span *span;
    uint32_t at;
    struct emu_ptl_iov here; /* what is left of the segment at `at` */
};

/* To the first byte that is not passed yet. False: there is none. */
static bool settle_cursor(struct cursor *c)
{
    while (c->here.length_bytes == 0) {
        if (++c->at >= c->span->n)
            return false;
        c->here = c->span->iovs ? c->span->iovs[c->at] : c->span->one;
    }
    return true;
}

static bool start_cursor(struct cursor *c, const struct emu_ptl_span *span, uint64_t offset)
{
    *c = (struct cursor){ .span = span, .at = UINT32_MAX };
    while (settle_cursor(c)) {
        uint64_t skip = offset < c->here.length_bytes ? offset : c->here.length_bytes;

        c->here.addr += skip;
        c->here.length_bytes -= skip;
        offset -= skip;
        if (offset == 0 && c->here.length_bytes > 0)
            return true;
    }
    return false;
}

static void pass(struct cursor *c, uint64_t bytes)
{
    c->here.addr += bytes;
    c->here.length_bytes -= bytes;
}

int emu_ptl_move(struct emu_ptl_at dst, struct emu_ptl_at src, uint64_t len_bytes, struct emu_bounce bounce,
                 int *fault_out)
{
    struct cursor to;
    struct cursor from;

    *fault_out = 0;
    if (len_bytes == 0)
        return 0;
    if (!start_cursor(&from, src.span, src.offset))
        return -EFAULT;
    *fault_out = 1;
    if (!start_cursor(&to, dst.span, dst.offset))
        return -EFAULT;
    for (;;) {
        uint64_t part = len_bytes;
        int r;

        if (part > to.here.length_bytes)
            part = to.here.length_bytes;
        if (part > from.here.length_bytes)
            part = from.here.length_bytes;
        r = emu_memory_copy((struct emu_memory_at){ dst.memory, to.here.addr },
                            (struct emu_memory_at){ src.memory, from.here.addr }, part, NULL, bounce, fault_out);
        len_bytes -= part;
        if (r < 0 || len_bytes == 0)
            return r;
        pass(&to, part);
        pass(&from, part);
        *fault_out = 0;
        if (!settle_cursor(&from))
            return -EFAULT;
        *fault_out = 1;
        if (!settle_cursor(&to))
            return -EFAULT;
    }
}
