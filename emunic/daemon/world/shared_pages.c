/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Space files, port segments and what parts share with processes (interfaces of Portals, regions of message queues) are
 * sparse. A page is there once anybody has touched it: its owner, another member, or
 * emunic, when a command writes to memory that was said to be mapped there and was never touched. Such pages are
 * emunic's to the kernel, which would end emunic for them. So a registration is reached through the space file only if
 * the user's limit has room for all its pages that are missing: they are promised until the registration ends. Else it
 * is reached by system calls, which make no pages.
 */
#include "emunic/daemon/world/shared_pages.h"

#include <sys/stat.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/file.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/users.h"

#define BLOCKS_PER_PAGE (EMU_PAGE_BYTES / 512) /* of st_blocks */
#define PIECES_MAX      256u                   /* that are looked at; behind them nothing is taken to be there */

static uint64_t pages_of(int fd)
{
    struct stat info;

    return fd >= 0 && fstat(fd, &info) == 0 ? (uint64_t)info.st_blocks / BLOCKS_PER_PAGE : 0;
}

void emu_pages_count(struct emu_member *member)
{
    uint64_t *used = &member->user->used[EMU_USER_PAGES];
    uint64_t n = pages_of(member->space_fd);
    const struct emu_shared_file *file;
    const struct emu_port_end *port;

    n += emu_files_bytes(member) / EMU_PAGE_BYTES;
    LIST_FOREACH(port, &member->ports, member_link)
        n += pages_of(port->segment_fd);
    LIST_FOREACH(file, &member->shared, link)
        n += pages_of(file->fd);
    *used = *used - member->n_pages + n;
    member->n_pages = n;
}

void emu_pages_count_all(struct emu_server *server)
{
    struct emu_domain *domain;
    struct emu_member *member;

    LIST_FOREACH(domain, &server->domains, link) {
        LIST_FOREACH(member, &domain->members, link)
            emu_pages_count(member);
    }
}

void emu_pages_forget(struct emu_member *member)
{
    emu_user_give(member->user, EMU_USER_PAGES, member->n_pages);
    member->n_pages = 0;
}

/* Bytes of [at, end) that are not there. */
static uint64_t count_missing(int fd, uint64_t at, uint64_t end)
{
    uint64_t missing = 0;

    for (unsigned i = 0; i < PIECES_MAX && at < end; i++) {
        off_t data = lseek(fd, (off_t)at, SEEK_DATA);
        off_t hole;

        if (data < 0 || (uint64_t)data >= end)
            break;
        missing += (uint64_t)data > at ? (uint64_t)data - at : 0;
        hole = lseek(fd, data, SEEK_HOLE);
        if (hole <= data)
            break;
        at = (uint64_t)hole;
    }
    return at < end ? missing + (end - at) : missing;
}

bool emu_pages_promise(const struct emu_server *server, struct emu_member *member, uint64_t addr, uint64_t length_bytes,
                       uint64_t *n_promised)
{
    uint64_t limit = emu_user_limit(server, EMU_USER_PAGES);
    struct emu_user *user = member->user;
    uint64_t missing;

    if (member->space_fd < 0 || user->used[EMU_USER_PAGES] + user->n_promised > limit)
        return false;
    missing = count_missing(member->space_fd, emu_page_down(addr), emu_page_up(addr + length_bytes)) / EMU_PAGE_BYTES;
    if (missing > limit - user->used[EMU_USER_PAGES] - user->n_promised)
        return false;
    user->n_promised += missing;
    *n_promised += missing;
    return true;
}
