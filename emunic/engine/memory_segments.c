/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A range of the region is cut at the segments' borders; each piece goes through its own memory, in order. A flag is
 * stored with the last piece, so after all data. An atomic operation never crosses a border, because segments take
 * whole pages. Bounds were checked against the region before; a range that leaves it anyway is a fault.
 */
#include "emunic/engine/memory_segments.h"

#include <errno.h>

/* Last part that begins at or before `offset`. */
static const struct emu_segment_part *part_at(const struct emu_segment_list *list, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = list->n;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (list->parts[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return &list->parts[low];
}

static uint64_t addr_in(const struct emu_segment_part *part, uint64_t offset)
{
    return part->addr + (offset - part->offset);
}

/* How much of [offset, offset + len) lies in the part that holds `offset`. */
static uint64_t piece_bytes(const struct emu_segment_part *part, uint64_t offset, uint64_t len_bytes)
{
    uint64_t left = part->len_bytes - (offset - part->offset);

    return len_bytes < left ? len_bytes : left;
}

static int check_range(const struct emu_segment_list *list, uint64_t offset, uint64_t len_bytes)
{
    return offset > list->total_bytes || len_bytes > list->total_bytes - offset ? -EFAULT : 0;
}

static int segments_read(const struct emu_memory *mem, uint64_t offset, void *dst, size_t len_bytes)
{
    const struct emu_segment_list *list = mem->segments;
    uint8_t *to = dst;
    int r = check_range(list, offset, len_bytes);

    while (r == 0 && len_bytes > 0) {
        const struct emu_segment_part *part = part_at(list, offset);
        uint64_t piece = piece_bytes(part, offset, len_bytes);

        r = part->memory.ops->read(&part->memory, addr_in(part, offset), to, piece);
        to += piece;
        offset += piece;
        len_bytes -= piece;
    }
    return r;
}

static int store_flag(const struct emu_segment_list *list, const struct emu_flag *flag)
{
    const struct emu_segment_part *part;
    struct emu_flag there;

    if (check_range(list, flag->addr, sizeof(flag->value)) < 0)
        return -EFAULT;
    part = part_at(list, flag->addr);
    there = (struct emu_flag){ addr_in(part, flag->addr), flag->value };
    return part->memory.ops->write(&part->memory, there.addr, NULL, 0, &there);
}

static int segments_write(const struct emu_memory *mem, uint64_t offset, const void *src, size_t len_bytes,
                          const struct emu_flag *flag)
{
    const struct emu_segment_list *list = mem->segments;
    const uint8_t *from = src;
    int r = check_range(list, offset, len_bytes);

    while (r == 0 && len_bytes > 0) {
        const struct emu_segment_part *part = part_at(list, offset);
        uint64_t piece = piece_bytes(part, offset, len_bytes);

        r = part->memory.ops->write(&part->memory, addr_in(part, offset), from, piece, NULL);
        from += piece;
        offset += piece;
        len_bytes -= piece;
    }
    return r == 0 && flag ? store_flag(list, flag) : r;
}

static int segments_atomic(const struct emu_memory *mem, uint64_t offset, const struct emu_amo *amo, uint64_t *old_out)
{
    const struct emu_segment_list *list = mem->segments;
    const struct emu_segment_part *part;

    if (check_range(list, offset, emu_amo_word_bytes(amo)) < 0)
        return -EFAULT;
    part = part_at(list, offset);
    return part->memory.ops->atomic(&part->memory, addr_in(part, offset), amo, old_out);
}

static void *segments_window(const struct emu_memory *mem, uint64_t offset, size_t len_bytes)
{
    const struct emu_segment_list *list = mem->segments;
    const struct emu_segment_part *part;

    if (check_range(list, offset, len_bytes) < 0)
        return NULL;
    part = part_at(list, offset);
    if (!part->memory.ops->window || piece_bytes(part, offset, len_bytes) != len_bytes)
        return NULL;
    return part->memory.ops->window(&part->memory, addr_in(part, offset), len_bytes);
}

static const struct emu_memory_ops segments_ops = {
    .name = "segments",
    .read = segments_read,
    .write = segments_write,
    .atomic = segments_atomic,
    .window = segments_window,
};

struct emu_memory emu_memory_segments(const struct emu_segment_list *list)
{
    return (struct emu_memory){ .ops = &segments_ops, .segments = list };
}
