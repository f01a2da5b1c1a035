/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From an address to the file that is mapped there.
 *
 * The range must lie in shared mappings of one file that follow each other in the file as they do in memory. Only
 * memory counts: memfd, POSIX shared memory, anonymous shared memory, huge pages. Not what emunic made, which is mapped
 * in its own way; and not System V shared memory, whose file number is its id and may be that of a memfd as well. Three
 * ways lead to the file, the first that works is taken:
 *
 *   /proc/self/map_files/<range>   the mapping itself; needs CAP_CHECKPOINT_RESTORE
 *   /proc/self/fd                  a descriptor of the program that is the same file
 *   the path                       of the mapping, if the same file is still there
 *
 * In each case the file is opened again: a copy of the program's descriptor would share its position and its flags with
 * all who get it. What was opened counts only if it is the mapped file by device and number.
 * Anonymous shared memory and files that have neither path nor descriptor any more are therefore found by the
 * privileged only.
 */
#include "emunic/client/mapping.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/base/maps.h"

#define PATH_LENGTH 4096
#define OUR_NAMES   "/memfd:emunic-"
#define SYSV_NAMES  "/SYSV"

#ifndef HUGETLBFS_MAGIC
#define HUGETLBFS_MAGIC 0x958458f6
#endif

struct found {
    struct emu_piece first; /* the mapping that the range begins in */
    uint64_t file_offset;
    bool is_writable; /* wanted so */
    char path[PATH_LENGTH];
};

/* ---- what is mapped ---- */

static bool continues(const struct emu_piece *p, const struct found *f, uint64_t at)
{
    return p->first <= at && p->is_shared && p->ino != 0 && p->dev == f->first.dev && p->ino == f->first.ino &&
           p->is_readable && (p->is_writable || !f->is_writable) &&
           p->offset + (at - p->first) - f->first.offset == at - f->first.first;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool look(uint64_t at, uint64_t end, struct found *f)
{
    const uint64_t begin = at;
    struct emu_maps maps;
    struct emu_piece p;

    if (emu_maps_open(&maps, 0) < 0)
        return false;
    while (at < end && emu_maps_find(&maps, at, &p)) {
        if (at == begin) {
            f->first = p;
            snprintf(f->path, sizeof(f->path), "%s", maps.name);
        }
        if (!continues(&p, f, at))
            break;
        at = p.end;
    }
    emu_maps_close(&maps);
    f->file_offset = f->first.offset + (begin - f->first.first);
    return at >= end && !begins_with(f->path, OUR_NAMES) && !begins_with(f->path, SYSV_NAMES);
}

/* ---- opening it ---- */

static bool is_it(const struct found *f, const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_dev == f->first.dev && st->st_ino == f->first.ino;
}

static bool is_memory(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/* Opens what a name in /proc/self leads to, if it is the file. A descriptor or -1. */
static int open_if_it(const struct found *f, const char *name)
{
    struct stat st;
    int fd;

    if (stat(name, &st) < 0 || !is_it(f, &st))
        return -1;
    fd = open(name, (f->is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && is_it(f, &st) && is_memory(fd))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int open_mapping(const struct found *f)
{
    char name[80];

    snprintf(name, sizeof(name), "/proc/self/map_files/%llx-%llx", (unsigned long long)f->first.first,
             (unsigned long long)f->first.end);
    return open_if_it(f, name);
}

static int open_by_descriptor(const struct found *f)
{
    DIR *dir = opendir("/proc/self/fd");
    int fd = -1;

    if (!dir)
        return -1;
    for (struct dirent *entry; fd < 0 && (entry = readdir(dir));) {
        char name[300];
        struct stat st;

        /* Its own attributes first: /proc/self/fd leads to places where a mere look can hang. */
        if (entry->d_name[0] == '.' || fstat(atoi(entry->d_name), &st) < 0 || !is_it(f, &st))
            continue;
        snprintf(name, sizeof(name), "/proc/self/fd/%s", entry->d_name);
        fd = open_if_it(f, name);
    }
    closedir(dir);
    return fd;
}

static int open_path(const struct found *f)
{
    char name[64];
    int place;
    int fd;

    if (f->path[0] != '/')
        return -1;
    /* Opening for real could wait or do something, if it is another file by now. */
    place = open(f->path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (place < 0)
        return -1;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
    fd = open_if_it(f, name);
    close(place);
    return fd;
}

int emu_mapping_find(uint64_t addr, uint64_t len_bytes, bool is_writable, struct emu_mapping *mapping_out)
{
    struct found f = { .is_writable = is_writable };
    int fd;

    if (len_bytes == 0 || addr + len_bytes < addr || addr + len_bytes > UINT64_MAX - (EMU_PAGE_BYTES - 1) ||
        !look(emu_page_down(addr), emu_page_up(addr + len_bytes), &f))
        return -ENOENT;
    fd = open_mapping(&f);
    if (fd < 0)
        fd = open_by_descriptor(&f);
    if (fd < 0)
        fd = open_path(&f);
    if (fd < 0)
        return -EACCES;
    *mapping_out = (struct emu_mapping){ .fd = fd, .file_offset = f.file_offset };
    return 0;
}
