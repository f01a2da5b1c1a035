/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues of a port.
 *
 * They are cut out of the arena of its segment in pages. A destroyed queue's pages are punched out and come back as
 * zeroes.
 */
#include "emunic/daemon/core/port_queues.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emunic/daemon/core/channel_end.h"
#include "emunic/daemon/core/part.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/port_end.h"

#define ARENA_PAGE_BYTES 4096u
#define ARENA_PAGES      (EMU_CQ_ARENA_BYTES / ARENA_PAGE_BYTES)
#define CQ_CAPACITY_MAX  (1u << 20)

#define CQS_BYTES (EMU_CQS_MAX * sizeof(struct emu_cq_end))

/* Pages of its own: most ports have a few queues, and what lies on a page that nobody has written takes no memory. */
int emu_queues_init(struct emu_port_end *port)
{
    void *cqs = mmap(NULL, CQS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    port->queues.alarm.ring = emu_channel_end_ring;
    port->queues.cqs = cqs == MAP_FAILED ? NULL : cqs;
    port->queues.arena_map = calloc(ARENA_PAGES / 64, sizeof(*port->queues.arena_map));
    return port->queues.cqs && port->queues.arena_map ? 0 : -ENOMEM;
}

void emu_queues_fini(struct emu_port_end *port)
{
    if (port->queues.cqs)
        munmap(port->queues.cqs, CQS_BYTES);
    free(port->queues.arena_map);
}

static bool arena_bit(const struct emu_port_end *port, uint32_t page)
{
    return port->queues.arena_map[page / 64] >> (page % 64) & 1;
}

static void arena_set(struct emu_port_end *port, uint32_t first, uint32_t count, bool is_used)
{
    for (uint32_t page = first; page < first + count; page++) {
        if (is_used)
            port->queues.arena_map[page / 64] |= 1ull << (page % 64);
        else
            port->queues.arena_map[page / 64] &= ~(1ull << (page % 64));
    }
}

/* First fit. */
static int arena_alloc(struct emu_port_end *port, uint32_t count, uint32_t *first_out)
{
    uint32_t run = 0;

    for (uint32_t page = 0; page < ARENA_PAGES; page++) {
        run = arena_bit(port, page) ? 0 : run + 1;
        if (run == count) {
            *first_out = page + 1 - count;
            arena_set(port, *first_out, count, true);
            return 0;
        }
    }
    return -ENOSPC;
}

int emu_queue_create(struct emu_port_end *port, struct emu_msg_cq *cq)
{
    struct emu_cq_end *end = NULL;
    struct emu_cq_shm *shm;
    uint64_t entries = 64;
    uint64_t bytes;
    int r;

    if (cq->capacity == 0 || cq->capacity > CQ_CAPACITY_MAX || cq->ring_entries > CQ_CAPACITY_MAX)
        return -EINVAL;
    r = emu_account_may_add_cq(port);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < EMU_CQS_MAX && !end; i++) {
        if (!port->queues.cqs[i].in_use && port->queues.cqs[i].n_pages == 0) {
            end = &port->queues.cqs[i];
            cq->index = i;
        }
    }
    if (!end)
        return -ENOSPC;
    while (entries < cq->capacity || entries < cq->ring_entries)
        entries *= 2;
    bytes = sizeof(struct emu_cq_shm) + entries * sizeof(uint64_t);
    end->n_pages = (uint32_t)((bytes + ARENA_PAGE_BYTES - 1) / ARENA_PAGE_BYTES);
    r = arena_alloc(port, end->n_pages, &end->first_page);
    if (r < 0) {
        end->n_pages = 0;
        return r;
    }
    end->in_use = true;
    end->serial = ++port->server->counts.queues_made;
    end->offset = port->queues.arena_off + (uint64_t)end->first_page * ARENA_PAGE_BYTES;
    shm = (struct emu_cq_shm *)((char *)port->segment + end->offset);
    emu_cq_format(shm, entries, cq->capacity);
    end->flags = cq->flags & EMU_CQ_WAKES;
    end->channel = EMU_CHANNEL_NONE;
    emu_cq_producer_init(&end->producer, shm, entries, cq->capacity, (end->flags & EMU_CQ_WAKES) != 0,
                         &port->queues.alarm);
    port->queues.n_cqs++;
    port->domain->budget.accounts[port->node_index].n_cqs++;
    cq->offset = end->offset;
    cq->ring_entries = entries;
    return 0;
}

int emu_queue_destroy(struct emu_port_end *port, uint32_t index)
{
    if (index >= EMU_CQS_MAX || !port->queues.cqs[index].in_use)
        return -EINVAL;
    emu_parts_queue_end(port, index);
    port->queues.cqs[index].in_use = false;
    port->queues.n_cqs--;
    port->domain->budget.accounts[port->node_index].n_cqs--;
    return 0;
}

void emu_queue_release(struct emu_port_end *port, uint32_t index)
{
    struct emu_cq_end *end = &port->queues.cqs[index];

    /* The next queue on these pages must find zeroes, whatever the owner still writes until then. */
    if (fallocate(port->segment_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)end->offset,
                  (off_t)end->n_pages * ARENA_PAGE_BYTES) < 0)
        memset((char *)port->segment + end->offset, 0, (size_t)end->n_pages * ARENA_PAGE_BYTES);
    arena_set(port, end->first_page, end->n_pages, false);
    *end = (struct emu_cq_end){ .in_use = false };
}
