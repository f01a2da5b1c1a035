/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that programs have mapped shared and registered: memfd, POSIX shared memory, huge pages, anonymous shared
 * memory.
 *
 * A client that finds a registration in such a mapping sends a descriptor of the file along. emunic keeps one for each
 * file, process and access; maps what it needs of it when it moves data; and gives it to members of the domain that
 * want to map it themselves. A file has a place in the domain table while registrations lie in it; its number there
 * tells members when to let go of their windows.
 *
 * Nothing of this is believed:
 *   kind      shared memory only (tmpfs, hugetlbfs): any other file system could make emunic wait for a page for ever
 *   access    a writable registration needs a descriptor to read and write, a read-only one a descriptor to read only:
 *             peers get no more than the owner meant
 *   size      ends no earlier than the memory. Whoever has the file can shorten it (base/bus_error.c)
 *   identity  the kernel's list of the process's mappings names this file, at these offsets, for all of the range
 *
 * Lifetime: held by the numbers of memory domains (emu_node.file) until these are released, which is when nobody can be
 * inside any more (quiesce.c). So it may outlive its process, but not its domain.
 */
#include "emunic/daemon/world/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/table.h"
#include "emunic/base/maps.h"
#include "emunic/base/window.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/engine/completion_queue.h"
#include "emunic/engine/memory.h"

#define FILES_PER_MEMBER 64u
#define MAP_LINES_MAX    20000u       /* some 4 ms of emunic's time, where the kernel finds no mappings itself */
#define OFFSET_END       (1ull << 47) /* windows reach no further */

#ifndef HUGETLBFS_MAGIC
#define HUGETLBFS_MAGIC 0x958458f6
#endif

struct emu_file {
    LIST_ENTRY(emu_file) link; /* in its member's list */
    struct emu_member *member; /* borrowed; NULL when the process has ended */
    struct emu_domain *domain; /* borrowed: outlives the file */
    uint32_t number;
    uint32_t n_users; /* memory domains */
    int fd;
    dev_t dev;
    ino_t ino;
    bool is_writable;
    uint64_t page_bytes;        /* 0: ordinary pages */
    struct emu_windows windows; /* into it */
};

/* ---- checks ---- */

struct span {
    uint64_t first; /* addresses, rounded out to pages */
    uint64_t end;
    uint64_t offset; /* in the file, of `first` */
    bool is_writable;
};

static int check_range(const struct emu_msg_memory *memory, struct span *span_out)
{
    *span_out = (struct span){ .first = emu_page_down(memory->addr),
                               .end = emu_page_up(memory->addr + memory->length_bytes),
                               .offset = memory->file_offset,
                               .is_writable = !(memory->flags & EMU_MD_READ_ONLY) };
    if ((memory->flags & EMU_MD_MAPPED) || memory->file_offset % 4096 != 0 || memory->file_offset >= OFFSET_END ||
        span_out->end - span_out->first > OFFSET_END - memory->file_offset)
        return -EINVAL;
    return 0;
}

static int check_kind(int fd, bool is_writable, struct stat *st_out, uint64_t *page_bytes_out)
{
    int access = fcntl(fd, F_GETFL);
    int seals = fcntl(fd, F_GET_SEALS);
    struct statfs fs;

    /* Only files in memory have seals. Other file systems are asked nothing: their answer may never come. */
    if (seals < 0 || access < 0 || (access & O_PATH) || (access & O_ACCMODE) != (is_writable ? O_RDWR : O_RDONLY))
        return -EBADF;
    if (fstat(fd, st_out) < 0 || !S_ISREG(st_out->st_mode) || fstatfs(fd, &fs) < 0)
        return -EBADF;
    if (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC)
        return -EBADF;
    /* Mapped for writing before it was sealed: nobody else can map it so. */
    if (is_writable && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)))
        return -EBADF;
    *page_bytes_out = fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize : 0;
    return *page_bytes_out & (*page_bytes_out - 1) ? -EBADF : 0;
}

static int check_size(const struct stat *st, const struct span *span)
{
    uint64_t end = emu_page_up((uint64_t)st->st_size);

    return st->st_size < 0 || end < span->offset + (span->end - span->first) ? -ERANGE : 0;
}

static bool is_part(const struct emu_piece *p, const struct stat *st, const struct span *span, uint64_t at)
{
    return p->first <= at && p->is_shared && p->dev == st->st_dev && p->ino == st->st_ino && p->is_readable &&
           (p->is_writable || !span->is_writable) && p->offset + (at - p->first) == span->offset + (at - span->first);
}

/* Has the process mapped this, there? */
static int check_identity(const struct emu_member *member, const struct stat *st, const struct span *span)
{
    uint64_t at = span->first;
    struct emu_maps maps;
    struct emu_piece p;

    if (emu_member_open_maps(member, &maps) < 0)
        return -EPERM;
    maps.lines_left = MAP_LINES_MAX;
    /* The number of System V memory is its id, which may be that of another file. */
    while (at < span->end && emu_maps_find(&maps, at, &p) && is_part(&p, st, span, at) &&
           strncmp(maps.name, "/SYSV", 5) != 0)
        at = p.end;
    emu_maps_close(&maps);
    return at < span->end ? -EPERM : 0;
}

/* ---- life ---- */

static struct emu_file *find(const struct emu_member *member, const struct stat *st, bool is_writable)
{
    struct emu_file *file;

    LIST_FOREACH(file, &member->files, link) {
        if (file->dev == st->st_dev && file->ino == st->st_ino && file->is_writable == is_writable)
            return file;
    }
    return NULL;
}

static int take_place(struct emu_domain *domain, struct emu_file *file)
{
    for (uint32_t i = 0; i < EMU_FILES_MAX; i++) {
        struct emu_file_place *place = &domain->memory.files[i];

        if (place->file)
            continue;
        place->turn = place->turn % (UINT32_MAX / EMU_FILES_MAX) + 1;
        place->file = file;
        file->number = place->turn * EMU_FILES_MAX + i;
        /* Members read it only after they have seen a memory domain that lies in it. */
        atomic_store_explicit(&emu_table_files(domain->table)[i], file->number, memory_order_relaxed);
        return 0;
    }
    return -EMFILE;
}

static int create(struct emu_member *member, int fd, const struct stat *st, bool is_writable, uint64_t page_bytes,
                  struct emu_file **file_out)
{
    struct emu_file *file;

    if (member->n_files >= FILES_PER_MEMBER)
        return -EMFILE;
    file = calloc(1, sizeof(*file));
    if (!file)
        return -ENOMEM;
    *file = (struct emu_file){ .member = member,
                               .domain = member->domain,
                               .fd = fd,
                               .dev = st->st_dev,
                               .ino = st->st_ino,
                               .is_writable = is_writable,
                               .page_bytes = page_bytes,
                               .windows = { .budget = &member->domain->memory.windows,
                                            .is_read_only = !is_writable,
                                            .can_break = true,
                                            .page_bytes = page_bytes } };
    if (take_place(member->domain, file) < 0) {
        free(file);
        return -EMFILE;
    }
    LIST_INSERT_HEAD(&member->files, file, link);
    member->n_files++;
    *file_out = file;
    return 0;
}

int emu_file_get(struct emu_member *member, const struct emu_msg_memory *memory, struct emu_fds *fds,
                 struct emu_file **file_out)
{
    uint64_t page_bytes;
    struct emu_file *file;
    struct span span;
    struct stat st;
    int r;

    if (fds->n_fds != 1)
        return -EINVAL;
    r = check_range(memory, &span);
    if (r == 0)
        r = check_kind(fds->fd[0], span.is_writable, &st, &page_bytes);
    if (r == 0)
        r = check_size(&st, &span);
    if (r == 0)
        r = check_identity(member, &st, &span);
    if (r < 0)
        return r;
    file = find(member, &st, span.is_writable);
    if (!file) {
        r = create(member, fds->fd[0], &st, span.is_writable, page_bytes, &file);
        if (r < 0)
            return r;
        fds->fd[0] = -1;
    }
    file->n_users++;
    *file_out = file;
    return 0;
}

static void leave_member(struct emu_file *file)
{
    if (!file->member)
        return;
    LIST_REMOVE(file, link);
    file->member->n_files--;
    file->member = NULL;
}

void emu_file_put(struct emu_file *file)
{
    uint32_t i;

    if (!file || --file->n_users > 0)
        return;
    i = file->number % EMU_FILES_MAX;
    leave_member(file);
    atomic_store_explicit(&emu_table_files(file->domain->table)[i], 0, memory_order_relaxed);
    /* Pairs with the acquire of those who look for what has gone. */
    atomic_fetch_add_explicit(&file->domain->table->files_gone, 1, memory_order_release);
    file->domain->memory.files[i].file = NULL;
    emu_windows_fini(&file->windows);
    close(file->fd);
    free(file);
}

void emu_file_drop_member(struct emu_member *member)
{
    struct emu_file *file;

    while ((file = LIST_FIRST(&member->files)))
        leave_member(file);
}

/* ---- use ---- */

/* Held by another process of the user, too: then it is counted there. */
static bool is_counted_before(const struct emu_file *file)
{
    for (uint32_t i = 0; i < file->number % EMU_FILES_MAX; i++) {
        const struct emu_file *other = file->domain->memory.files[i].file;

        if (other && other->member && other->member->user == file->member->user && other->dev == file->dev &&
            other->ino == file->ino)
            return true;
    }
    return false;
}

uint64_t emu_files_bytes(const struct emu_member *member)
{
    const struct emu_file *file;
    uint64_t bytes = 0;
    struct stat st;

    LIST_FOREACH(file, &member->files, link) {
        /* Huge pages come from a pool of their own. */
        if (file->page_bytes == 0 && !is_counted_before(file) && fstat(file->fd, &st) == 0)
            bytes += (uint64_t)st.st_blocks * 512;
    }
    return bytes;
}

void emu_files_let_go(const struct emu_member *member)
{
    const struct emu_file *file;

    LIST_FOREACH(file, &member->files, link)
        emu_windows_let_go(&file->windows);
}

uint32_t emu_file_number(const struct emu_file *file)
{
    return file->number;
}

int emu_file_of(const struct emu_domain *domain, struct emu_msg_file *asked)
{
    const struct emu_file *file = domain->memory.files[asked->file % EMU_FILES_MAX].file;

    if (!file || file->number != asked->file)
        return -ENOENT;
    asked->page_bytes = file->page_bytes;
    return file->fd;
}

bool emu_file_reach(struct emu_file *file, const struct emu_table_md *md, struct emu_memory *mem_out)
{
    uint64_t first = emu_page_down(md->base);
    uint64_t len_bytes = emu_page_up(md->base + md->length_bytes) - first;
    const struct emu_window *window = emu_windows_get(&file->windows, file->fd, md->file_offset, len_bytes);

    if (!window)
        return false;
    *mem_out = emu_memory_map(window->base + (md->file_offset - window->owner_addr), first, len_bytes);
    mem_out->broken = emu_window_mark(window);
    return true;
}
