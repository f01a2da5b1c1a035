/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linux 6.11 finds a single mapping (PROCMAP_QUERY) in a time that does not depend on their number. Before that the
 * text is read from its beginning: some 0.2 us a line.
 *
 * Without the heap: after fork() it may still be shared with the parent, and a child that allocates from it would spoil
 * the parent's.
 */
#include "emunic/base/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* struct procmap_query of Linux 6.11, which Debian 12's headers do not have. */
struct map_query {
    uint64_t size;
    uint64_t flags;
    uint64_t addr;
    uint64_t first;
    uint64_t end;
    uint64_t access;
    uint64_t page_bytes;
    uint64_t offset;
    uint64_t ino;
    uint32_t dev_major;
    uint32_t dev_minor;
    uint32_t name_bytes;
    uint32_t build_id_bytes;
    uint64_t name_addr;
    uint64_t build_id_addr;
};
#define MAP_QUERY         _IOWR('f', 17, struct map_query)
#define MAP_QUERY_OR_NEXT 0x10u
#define MAP_QUERY_OF_FILE 0x20u
#define MAP_READABLE      0x01u
#define MAP_WRITABLE      0x02u
#define MAP_IS_SHARED     0x08u

static int begin(struct emu_maps *m, int fd)
{
    m->fd = fd;
    m->asks = true;
    m->is_borrowed = false;
    m->lines_left = UINT32_MAX;
    m->used = m->at = 0;
    m->name = "";
    return m->fd < 0 ? -errno : 0;
}

int emu_maps_open(struct emu_maps *m, pid_t pid)
{
    char path[32] = "/proc/self/maps";

    if (pid != 0)
        snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    return begin(m, open(path, O_RDONLY | O_CLOEXEC));
}

int emu_maps_open_at(struct emu_maps *m, int fd)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    /* The place in the text is common to both. */
    if (own >= 0)
        lseek(own, 0, SEEK_SET);
    return begin(m, own);
}

int emu_maps_open_by(struct emu_maps *m, const struct emu_maps *other)
{
    int r;

    if (!other)
        return emu_maps_open(m, 0);
    r = begin(m, other->fd);
    m->is_borrowed = true;
    return r;
}

/* The place in the text is the other's. Runs when the kernel does not answer any more. */
static bool stop_borrowing(struct emu_maps *m)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    m->fd = fd;
    m->is_borrowed = false;
    return true;
}

void emu_maps_close(struct emu_maps *m)
{
    if (!m->is_borrowed)
        close(m->fd);
}

/* ---- asking ---- */

static struct emu_piece piece_of(const struct map_query *q)
{
    return (struct emu_piece){ .first = q->first,
                               .end = q->end,
                               .offset = q->offset,
                               .ino = (ino_t)q->ino,
                               .dev = makedev(q->dev_major, q->dev_minor),
                               .is_readable = (q->access & MAP_READABLE) != 0,
                               .is_writable = (~q->access & (MAP_READABLE | MAP_WRITABLE)) == 0,
                               .is_shared = (q->access & MAP_IS_SHARED) != 0 };
}

/* 0, -ENOENT: nothing there; -ENOTTY: the kernel cannot. */
static int ask(struct emu_maps *m, uint64_t at, struct emu_piece *p)
{
    struct map_query q = { .size = sizeof(q),
                           .flags = MAP_QUERY_OR_NEXT,
                           .addr = at,
                           .name_addr = (uint64_t)(uintptr_t)m->bytes,
                           .name_bytes = 4096 };

    m->bytes[0] = '\0';
    if (ioctl(m->fd, MAP_QUERY, &q) < 0) {
        if (errno != ENAMETOOLONG)
            return errno == ENOENT || errno == ESRCH ? -ENOENT : -ENOTTY;
        q = (struct map_query){ .size = sizeof(q), .flags = MAP_QUERY_OR_NEXT, .addr = at };
        if (ioctl(m->fd, MAP_QUERY, &q) < 0)
            return -ENOTTY;
    }
    m->name = q.name_bytes > 0 ? m->bytes : "";
    *p = piece_of(&q);
    return 0;
}

int emu_maps_look(struct emu_maps *m, uint64_t at, struct emu_piece *p)
{
    struct map_query q = { .size = sizeof(q), .addr = at };

    if (ioctl(m->fd, MAP_QUERY, &q) < 0)
        return errno == ENOENT || errno == ESRCH ? -ENOENT : -ENOTTY;
    *p = piece_of(&q);
    return 0;
}

bool emu_maps_find_shared(struct emu_maps *m, uint64_t at, struct emu_piece *piece_out)
{
    /* The kernel passes over all others by itself: such mappings are few. */
    struct map_query q = { .size = sizeof(q),
                           .flags = MAP_QUERY_OR_NEXT | MAP_QUERY_OF_FILE | MAP_IS_SHARED,
                           .addr = at };

    if (m->asks && ioctl(m->fd, MAP_QUERY, &q) == 0) {
        *piece_out = piece_of(&q);
        return true;
    }
    if (m->asks && errno == ENOENT)
        return false;
    do {
        if (!emu_maps_find(m, at, piece_out))
            return false;
        at = piece_out->end;
    } while (!piece_out->is_shared);
    return true;
}

/* ---- reading ---- */

static bool refill(struct emu_maps *m)
{
    long n;

    memmove(m->bytes, m->bytes + m->at, m->used - m->at);
    m->used -= m->at;
    m->at = 0;
    n = read(m->fd, m->bytes + m->used, sizeof(m->bytes) - 1 - m->used);
    if (n > 0)
        m->used += (size_t)n;
    return n > 0;
}

/* The next line, cut at its end; false at the end of the text, and at a line that is too long to be one. */
static bool next_line(struct emu_maps *m, char **line_out)
{
    char *end;

    if (m->lines_left == 0)
        return false;
    while (!(end = memchr(m->bytes + m->at, '\n', m->used - m->at))) {
        if (!refill(m))
            return false;
    }
    *end = '\0';
    *line_out = m->bytes + m->at;
    m->at = (size_t)(end - m->bytes) + 1;
    m->lines_left--;
    return true;
}

static bool parse(struct emu_maps *m, const char *line, struct emu_piece *p)
{
    unsigned long long first, end, offset, ino;
    unsigned dev_major, dev_minor;
    char access[5];
    int name_at = 0;

    if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &first, &end, access, &offset, &dev_major, &dev_minor, &ino,
               &name_at) != 7)
        return false;
    m->name = line + name_at;
    *p = (struct emu_piece){ .first = first,
                             .end = end,
                             .offset = offset,
                             .ino = (ino_t)ino,
                             .dev = makedev(dev_major, dev_minor),
                             .is_readable = access[0] == 'r',
                             .is_writable = access[0] == 'r' && access[1] == 'w',
                             .is_shared = access[3] == 's' };
    return true;
}

bool emu_maps_find(struct emu_maps *m, uint64_t at, struct emu_piece *piece_out)
{
    struct emu_piece p;
    char *line;
    int r = -ENOTTY;

    if (m->asks)
        r = ask(m, at, &p);
    m->asks = r != -ENOTTY;
    if (r == -ENOENT || (r < 0 && m->is_borrowed && !stop_borrowing(m)))
        return false;
    if (r < 0) {
        do {
            if (!next_line(m, &line))
                return false;
        } while (!parse(m, line, &p) || p.end <= at);
    }
    p.is_stack = strncmp(m->name, "[stack", 6) == 0;
    *piece_out = p;
    return true;
}
