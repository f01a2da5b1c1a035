/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers' registrations that lie in files which they have mapped themselves, as the direct path sees them: windows into
 * those files. One thread at a time per object.
 *
 * For whoever keeps what emu_peer_files_reach() told: base addresses hold for as long as the memory domain is live with
 * the same generation, seen so inside (`inside` is odd). An access counts only if *broken is 0 after it; before the
 * next one emu_peer_files_reach() must be asked again.
 */
#ifndef EMUNIC_CLIENT_PEER_FILES_H
#define EMUNIC_CLIENT_PEER_FILES_H

#include <stdbool.h>

#include "emunic/abi/table.h"
#include "emunic/client/session.h"
#include "emunic/engine/memory.h"

struct peer_file;

struct emu_peer_files {
    struct emu_session *session;   /* borrowed */
    const struct emu_table *table; /* borrowed */
    struct peer_file *files;       /* owned, EMU_FILES_MAX, made when first needed */
    uint32_t seen_gone;            /* of the table's files_gone */
};

void emu_peer_files_init(struct emu_peer_files *files, struct emu_session *session, const struct emu_table *table);
void emu_peer_files_fini(struct emu_peer_files *files);

/* The memory of a live domain with EMU_MEMORY_FILE. False: not to be reached from here. To be called inside. */
bool emu_peer_files_reach(struct emu_peer_files *files, const struct emu_table_md *md, struct emu_memory *mem_out);

void emu_peer_files_drop_gone(struct emu_peer_files *files);

/*
 * Unmaps files that no registration lies in any more: one load of the table's changing line. True: some may have been.
 */
static inline bool emu_peer_files_trim(struct emu_peer_files *files)
{
    if (atomic_load_explicit(&files->table->files_gone, memory_order_relaxed) == files->seen_gone)
        return false;
    emu_peer_files_drop_gone(files);
    return true;
}

#endif
