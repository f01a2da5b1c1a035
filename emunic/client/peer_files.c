/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file is asked for when a window of it has to be mapped, and its descriptor closed at once: the program's
 * descriptors are scarce, and few files need a second window. Windows stay until the file's number disappears from the
 * domain table, which is noticed at the next post of this port; a port that never posts again keeps them until it ends.
 *
 * Read-only registrations have files of their own, whose descriptors only read: their windows cannot be written.
 */
#include "emunic/client/peer_files.h"

#include <stdlib.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/base/window.h"

struct peer_file {
    uint32_t number; /* 0: nothing here */
    bool is_refused; /* emunic said no */
    struct emu_windows windows;
};

void emu_peer_files_init(struct emu_peer_files *files, struct emu_session *session, const struct emu_table *table)
{
    *files = (struct emu_peer_files){ .session = session,
                                      .table = table,
                                      .seen_gone = atomic_load_explicit(&table->files_gone, memory_order_relaxed) };
}

static void drop(struct peer_file *file)
{
    struct emu_cancel cancel;

    emu_cancel_hold(&cancel);
    emu_windows_fini(&file->windows);
    emu_cancel_release(&cancel);
    *file = (struct peer_file){ .number = 0 };
}

void emu_peer_files_fini(struct emu_peer_files *files)
{
    for (uint32_t i = 0; files->files && i < EMU_FILES_MAX; i++)
        drop(&files->files[i]);
    free(files->files);
    files->files = NULL;
}

void emu_peer_files_drop_gone(struct emu_peer_files *files)
{
    /* Pairs with the release in emunic: the numbers that have gone, before their count. */
    files->seen_gone = atomic_load_explicit(&files->table->files_gone, memory_order_acquire);
    for (uint32_t i = 0; files->files && i < EMU_FILES_MAX; i++) {
        struct peer_file *file = &files->files[i];

        if (file->number != 0 &&
            file->number != atomic_load_explicit(&emu_table_files(files->table)[i], memory_order_relaxed))
            drop(file);
    }
}

/* Runs once per window. */
static const struct emu_window *map_window(const struct emu_peer_files *files, struct peer_file *file,
                                           const struct emu_table_md *md, uint64_t len_bytes)
{
    struct emu_msg msg = { .type = EMU_MSG_PEER_FILE, .file = { .file = md->file } };
    const struct emu_window *window = NULL;
    struct emu_fds fds;

    if (emu_session_request(files->session, &msg, NULL, 0, &fds) < 0)
        return NULL;
    if (msg.result == 0 && fds.n_fds == 1 && (msg.file.page_bytes & (msg.file.page_bytes - 1)) == 0) {
        file->windows.is_read_only = (md->flags & EMU_MD_READ_ONLY) != 0;
        file->windows.can_break = true;
        file->windows.page_bytes = msg.file.page_bytes;
        window = emu_windows_get(&file->windows, fds.fd[0], md->file_offset, len_bytes);
    }
    file->is_refused = msg.result != 0;
    emu_fds_close(&fds);
    return window;
}

static struct peer_file *file_of(struct emu_peer_files *files, uint32_t number)
{
    struct peer_file *file;

    if (!files->files)
        files->files = calloc(EMU_FILES_MAX, sizeof(*files->files));
    if (!files->files)
        return NULL;
    file = &files->files[number % EMU_FILES_MAX];
    if (file->number != number) {
        drop(file);
        file->number = number;
    }
    return file;
}

bool emu_peer_files_reach(struct emu_peer_files *files, const struct emu_table_md *md, struct emu_memory *mem_out)
{
    uint64_t first = emu_page_down(md->base);
    uint64_t len_bytes = emu_page_up(md->base + md->length_bytes) - first;
    struct peer_file *file = file_of(files, md->file);
    const struct emu_window *window;
    struct emu_cancel cancel;

    if (!file || file->is_refused)
        return false;
    window = emu_windows_find(&file->windows, md->file_offset, len_bytes);
    if (!window) {
        emu_cancel_hold(&cancel);
        window = map_window(files, file, md, len_bytes);
        emu_cancel_release(&cancel);
        if (!window)
            return false;
    }
    *mem_out = emu_memory_map(window->base + (md->file_offset - window->owner_addr), first, len_bytes);
    mem_out->broken = emu_window_mark(window);
    return true;
}
