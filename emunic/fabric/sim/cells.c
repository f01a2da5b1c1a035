/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory. What grows with what is under way: packets, the options of heads that wait, and channels that were ever used.
 * All are arrays addressed by index, so that they can move when they grow and an index fits in four bytes; packets and
 * options have free lists.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emunic/fabric/sim/state.h"

#define ARRAY_ALIGN 64
#define SMALL_PAGE  ((size_t)4 << 10)
#define LARGE_PAGE  ((size_t)2 << 20)
#define CELLS_ADDED 64u /* to a free list at a time: memory beyond is not written. Capacities are multiples of it. */

void *sim_grown(void *memory, size_t bytes)
{
    void *bigger = realloc(memory, bytes);

    if (!bigger)
        emu_wheel_no_memory();
    return bigger;
}

/* Before each array. */
struct array_head {
    void *memory;
    size_t mapped_bytes; /* 0: from malloc */
    uint64_t reserved[6];
};
static_assert(sizeof(struct array_head) == ARRAY_ALIGN, "the array behind it is aligned as it is");

static struct array_head *head_of(void *array)
{
    return (struct array_head *)((char *)array - sizeof(struct array_head));
}

/* Of whole pages that are zero until they are written, on a border of large ones. */
static char *map_array(size_t bytes)
{
    size_t tail = (bytes + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE;
    size_t room = SMALL_PAGE + LARGE_PAGE + tail;
    char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *array;

    if (memory == MAP_FAILED)
        return NULL;
    array = (char *)(((uintptr_t)memory + SMALL_PAGE + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
    if (array - SMALL_PAGE > memory)
        (void)munmap(memory, (size_t)(array - SMALL_PAGE - memory));
    if (array + tail < memory + room)
        (void)munmap(array + tail, (size_t)(memory + room - array - tail));
    *head_of(array) = (struct array_head){ .memory = array - SMALL_PAGE, .mapped_bytes = SMALL_PAGE + tail };
    return array;
}

/* The array of nothing has a byte: a checker of leaks looks for addresses within the memory. */
static char *small_array(size_t bytes)
{
    size_t room = ARRAY_ALIGN + (bytes > 0 ? bytes : 1);
    char *memory;

    if (posix_memalign((void **)&memory, ARRAY_ALIGN, room) != 0)
        return NULL;
    memset(memory, 0, room);
    head_of(memory + ARRAY_ALIGN)->memory = memory;
    return memory + ARRAY_ALIGN;
}

/* Gives whole pages to another array, so that nobody clears new ones and copies. Returns how many bytes went. */
static size_t move_pages(char *array, char *old, size_t bytes)
{
    bytes = bytes / LARGE_PAGE * LARGE_PAGE;
    if (bytes == 0 || head_of(array)->mapped_bytes == 0 || head_of(old)->mapped_bytes == 0 ||
        mremap(old, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, array) == MAP_FAILED)
        return 0;
    return bytes;
}

void *sim_array(void *old, size_t old_bytes, size_t bytes)
{
    char *array = bytes < LARGE_PAGE ? small_array(bytes) : map_array(bytes);

    if (!array)
        return NULL;
    if (old_bytes > 0) {
        size_t moved = move_pages(array, old, old_bytes);

        sim_array_wish(array, 0, bytes);
        memcpy(array + moved, (char *)old + moved, old_bytes - moved);
    }
    sim_array_free(old);
    return array;
}

/* The machine's arrays are read at random, so most of a large machine's time goes to address translation unless its
 * pages are large. No more than was asked for: the rest may belong to another process, and be empty here. */
void sim_array_wish(void *array, size_t first_byte, size_t end_byte)
{
    size_t first = (first_byte + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    size_t end = end_byte / LARGE_PAGE * LARGE_PAGE;

    if (array && first < end && head_of(array)->mapped_bytes != 0)
        (void)madvise((char *)array + first, end - first, MADV_HUGEPAGE);
}

void sim_array_free(void *array)
{
    if (!array)
        return;
    if (head_of(array)->mapped_bytes != 0)
        (void)munmap(head_of(array)->memory, head_of(array)->mapped_bytes);
    else
        free(head_of(array)->memory);
}

static void *array_grown(void *old, size_t old_bytes, size_t bytes)
{
    void *array = sim_array(old, old_bytes, bytes);

    if (!array)
        emu_wheel_no_memory();
    return array;
}

struct emu_event *sim_place_elsewhere(struct part *part, uint64_t at_ps, enum emu_event_kind kind)
{
    uint16_t offset;
    uint64_t slot = sim_slot_of(part, at_ps, &offset);
    struct emu_event *event = emu_wheel_place(&part->wheel, slot, emu_wheel_list_of(kind));

    event->kind = kind;
    event->offset_ps = offset;
    return event;
}

static void grow_cells(struct part *part)
{
    uint32_t old = part->cell_capacity;
    uint32_t capacity = old == 0 ? 1024 : old < 1u << 20 ? old * 2 : old + (1u << 20);

    part->cells = array_grown(part->cells, old * sizeof(*part->cells), capacity * sizeof(*part->cells));
    part->cell_capacity = capacity;
}

void sim_cells_add(struct part *part)
{
    uint32_t first = part->n_cells;

    if (first == part->cell_capacity)
        grow_cells(part);
    part->n_cells += CELLS_ADDED;
    for (uint32_t i = part->n_cells; i-- > first;)
        sim_cell_free(part, i);
}

static void grow_options(struct part *part)
{
    uint32_t old = part->option_capacity;
    uint32_t capacity = old == 0 ? 256 * part->sim->options_stride : old * 2;

    part->options = array_grown(part->options, old * sizeof(*part->options), capacity * sizeof(*part->options));
    part->option_capacity = capacity;
}

void sim_options_add(struct part *part)
{
    uint32_t stride = part->sim->options_stride;
    uint32_t first = part->n_options;

    if (first == part->option_capacity)
        grow_options(part);
    part->n_options += CELLS_ADDED * stride;
    for (uint32_t i = first; i < part->n_options; i++)
        part->options[i].link = part->own_link;
    for (uint32_t i = part->n_options; i > first; i -= stride)
        sim_options_free(part, i - stride);
}

struct out_link sim_out_new(const struct emu_sim *sim, uint16_t kind)
{
    struct out_link out = {
        .kind = kind,
        .turn = UINT16_MAX,
        .flags = OUT_IS_UP | OUT_IS_OWN,
        .bubble_vcs = sim->kinds[kind].bubble_vcs,
        .shared_tokens = (uint16_t)(sim->p.shared_units / sim->p.token_units),
    };

    for (uint32_t vc = 0; vc < sim->kinds[kind].n_vcs; vc++)
        out.tokens[vc] = (int16_t)sim->kinds[kind].capacity_tokens[vc];
    return out;
}

static void make_outs_of(struct emu_sim *sim, uint32_t router)
{
    struct router *r = &sim->routers[router];

    if (r->has_outs)
        return;
    for (uint32_t id = r->first_out; id != SIM_NONE; id = sim->next_out[id]) {
        const struct in_link *in = &sim->ins[id];
        struct out_link out = sim_out_new(sim, in->kind);

        out.from = router;
        out.to = in->first_vc;
        out.part = sim->routers[in->router].part;
        sim->outs[id] = out;
    }
    r->has_outs = true;
}

void sim_make_outs(struct emu_sim *sim)
{
    for (uint32_t i = sim->first_router; sim_is_own(sim, i); i++)
        make_outs_of(sim, i);
}

/* Without a packet so far. */
static struct in_vc new_vc(const struct emu_sim *sim, uint32_t link, uint32_t vc)
{
    const struct in_link *in = &sim->ins[link];
    const struct link_kind *kind = &sim->kinds[in->kind];

    return (struct in_vc){
        .first = SIM_NONE,
        .last = SIM_NONE,
        .options = SIM_NONE,
        .at = {
            .router = in->router,
            .in_link = link,
            .in_vc = (uint8_t)vc,
            .is_entering = (in->flags & IN_IS_ENTERING) != 0,
        },
        .local = (uint16_t)(in->first_vc + vc - sim->routers[in->router].first_vc),
        .kind = in->kind,
        .part = in->part,
        .is_charged_full = (kind->bubble_vcs >> vc & 1) != 0 && sim->p.bubble_charge == EMU_CHARGE_FULL,
        .is_made = true,
    };
}

uint32_t sim_vc_make(struct part *part, uint32_t link, uint32_t vc)
{
    struct emu_sim *sim = part->sim;
    uint32_t channel = sim->ins[link].first_vc + vc;

    make_outs_of(sim, sim->ins[link].router);
    if (!sim->vc_index) {
        part->vcs[channel] = new_vc(sim, link, vc);
        return channel;
    }
    if (part->n_vcs == part->vc_capacity) {
        part->vc_capacity = part->vc_capacity == 0 ? 64 : part->vc_capacity * 2;
        part->vcs = array_grown(part->vcs, part->n_vcs * sizeof(*part->vcs), part->vc_capacity * sizeof(*part->vcs));
    }
    part->vcs[part->n_vcs] = new_vc(sim, link, vc);
    sim->vc_index[channel] = ++part->n_vcs;
    return part->n_vcs - 1;
}
