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

void *sim_grown(void *memory, size_t bytes)
{
    void *bigger = realloc(memory, bytes);

    if (!bigger)
        emu_wheel_no_memory();
    return bigger;
}

/* The machine's arrays are read at random, so most of a large machine's time goes to address translation unless its
 * pages are large. */
void *sim_array(void *old, size_t old_bytes, size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    char *array;

    if (posix_memalign((void **)&array, bytes < page ? 64 : page, bytes > 0 ? bytes : 1) != 0)
        return NULL;
    if (bytes >= page)
        (void)madvise(array, bytes / page * page, MADV_HUGEPAGE); /* a wish */
    if (old_bytes > 0)
        memcpy(array, old, old_bytes);
    memset(array + old_bytes, 0, bytes - old_bytes);
    free(old);
    return array;
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

void sim_cells_grow(struct part *part)
{
    uint32_t old = part->cell_capacity;
    uint32_t capacity = old == 0 ? 1024 : old < 1u << 20 ? old * 2 : old + (1u << 20);

    part->cells = array_grown(part->cells, old * sizeof(*part->cells), capacity * sizeof(*part->cells));
    for (uint32_t i = capacity; i-- > old;) {
        part->cells[i].next = part->free_cell;
        part->free_cell = i;
    }
    part->cell_capacity = capacity;
}

void sim_options_grow(struct part *part)
{
    uint32_t stride = part->sim->options_stride;
    uint32_t old = part->option_capacity;
    uint32_t capacity = old == 0 ? 256 * stride : old * 2;

    part->options = array_grown(part->options, old * sizeof(*part->options), capacity * sizeof(*part->options));
    for (uint32_t i = old; i < capacity; i++)
        part->options[i].link = part->own_link;
    for (uint32_t i = capacity; i > old; i -= stride)
        sim_options_free(part, i - stride);
    part->option_capacity = capacity;
}

struct in_vc sim_vc_new(const struct emu_sim *sim, uint32_t link, uint32_t vc)
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
    };
}

uint32_t sim_vc_make(struct part *part, uint32_t link, uint32_t vc)
{
    struct emu_sim *sim = part->sim;

    if (part->n_vcs == part->vc_capacity) {
        part->vc_capacity = part->vc_capacity == 0 ? 64 : part->vc_capacity * 2;
        part->vcs = array_grown(part->vcs, part->n_vcs * sizeof(*part->vcs), part->vc_capacity * sizeof(*part->vcs));
    }
    part->vcs[part->n_vcs] = sim_vc_new(sim, link, vc);
    sim->vc_index[sim->ins[link].first_vc + vc] = part->n_vcs;
    return part->n_vcs++;
}
