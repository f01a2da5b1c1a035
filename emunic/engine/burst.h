/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several small puts into one process's private memory with one system call (burst.c).
 */
#ifndef EMUNIC_ENGINE_BURST_H
#define EMUNIC_ENGINE_BURST_H

#include <stdbool.h>
#include <sys/uio.h>

#include "emunic/engine/transaction.h"

#define EMU_BURST_SEGMENTS 64u /* a put takes one, with a flag two */

struct emu_burst {
    unsigned n;
    unsigned n_segments;
    struct emu_transaction puts[EMU_BURST_SEGMENTS];
    uint64_t end_bytes[EMU_BURST_SEGMENTS]; /* of the burst's data, up to and with each put */
    struct iovec local[EMU_BURST_SEGMENTS];
    struct iovec remote[EMU_BURST_SEGMENTS];
};

enum emu_burst_result {
    EMU_BURST_TAKEN = 0,
    EMU_BURST_FULL,  /* no room, or the burst goes to another process: run it and offer the put again */
    EMU_BURST_NEVER, /* not such a put: it is to be done in the usual way */
};

/* Can the memory behind a transaction take several writes at once? Else a burst gains nothing: one load says so. */
static inline bool emu_burst_pays(const struct emu_transaction *t)
{
    return t->remote.ops->write_many;
}

/*
 * Takes a transaction over that emu_transaction_begin() has found good. The view's staging memory must stay as it is
 * until the burst has run.
 */
enum emu_burst_result emu_burst_add(struct emu_burst *burst, const struct emu_view *view,
                                    const struct emu_transaction *t);

/* Moves the data of all puts, in order. Each has its own status then; the caller finishes them, in order. */
void emu_burst_run(struct emu_burst *burst, const struct emu_view *view);

#endif
