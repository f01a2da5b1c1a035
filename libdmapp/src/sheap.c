/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symmetric heap.
 *
 * Units of 64 bytes. Boundary tags, outside the heap, so that a PE that writes over its blocks cannot lead another call
 * astray: for the first and last unit of each free block and the first of each used one a tag says how long it is. Free
 * blocks stand in lists by the logarithm of their length. A request takes the first that is long enough in its own
 * list, else the first of the next list, and its lower end. Nothing depends on the PE, its addresses or time: the same
 * calls give the same offsets everywhere.
 *
 *   tags        |len,used| ... |len,free| ... |len,free| ...
 *   heap        | block        | free block            |
 *
 * Freed marks: a bit for each unit, set by free and cleared by malloc, in the first area, where peers read it.
 * Units that were never given out are not marked: a program may use the heap without asking for blocks.
 *
 * One lock. Tags are private pages, present where they were written: 12 bytes a unit, at most 19 % of what was ever
 * used.
 */
#include "libdmapp/src/sheap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "emunic/abi/abi.h"

#define DEFAULT_BYTES (2ull << 30)
#define MIN_BYTES     (64ull << 10)
#define BINS          32u
#define NOWHERE       UINT32_MAX
#define LOOK_MAX      64u /* blocks of the request's own list that are looked at */

struct tag {
    uint32_t length; /* units */
    uint32_t next;   /* of a free block, unit number */
    uint32_t prev;   /* the same; IN_USE of a used one */
};
#define IN_USE   (UINT32_MAX - 1)
#define LAST_TAG (UINT32_MAX - 1) /* next of the last tag of a used block */

static struct {
    pthread_mutex_t lock;
    uint8_t *base;
    uint32_t n_units;
    struct tag *tags;        /* owned mapping */
    _Atomic uint64_t *freed; /* in the area */
    uint32_t bins[BINS];
    uint32_t bins_used; /* a bit for each that is not empty */
    uint64_t units_in_use;
    uint64_t n_blocks;
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- size ---- */

static bool parse_size(const char *text, uint64_t *bytes_out)
{
    double number;
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    number = strtod(text, &end);
    switch (*end) {
    case 'k':
    case 'K':
        number *= 1024.0;
        end++;
        break;
    case 'm':
    case 'M':
        number *= 1024.0 * 1024.0;
        end++;
        break;
    case 'g':
    case 'G':
        number *= 1024.0 * 1024.0 * 1024.0;
        end++;
        break;
    default:
        break;
    }
    if (*end != '\0' || !(number >= 1.0 && number < 1e18))
        return false;
    *bytes_out = (uint64_t)number;
    return true;
}

int dmappi_sheap_size(uint64_t *bytes_out)
{
    const char *text = getenv("SHMEM_SYMMETRIC_SIZE");
    struct sysinfo info;

    if (!text)
        text = getenv("XT_SYMMETRIC_HEAP_SIZE");
    if (!text) {
        *bytes_out = DEFAULT_BYTES;
        return 0;
    }
    if (!parse_size(text, bytes_out))
        return -EINVAL;
    /* What the machine does not have cannot be had. */
    if (sysinfo(&info) == 0 && *bytes_out > ((uint64_t)info.totalram + info.totalswap) * info.mem_unit)
        return -ENOMEM;
    if (*bytes_out < MIN_BYTES)
        *bytes_out = MIN_BYTES;
    *bytes_out = emu_page_up(*bytes_out);
    return *bytes_out >> DMAPPI_UNIT_SHIFT < IN_USE ? 0 : -ENOMEM;
}

/* ---- free lists. Lock held ---- */

static unsigned bin_of(uint32_t length)
{
    return 31u - (unsigned)__builtin_clz(length);
}

static void list_add(uint32_t unit, uint32_t length)
{
    unsigned bin = bin_of(length);
    uint32_t head = heap.bins[bin];

    heap.tags[unit] = (struct tag){ .length = length, .next = head, .prev = NOWHERE };
    if (length > 1)
        heap.tags[unit + length - 1] = (struct tag){ .length = length, .next = NOWHERE, .prev = NOWHERE };
    if (head != NOWHERE)
        heap.tags[head].prev = unit;
    heap.bins[bin] = unit;
    heap.bins_used |= 1u << bin;
}

static void list_remove(uint32_t unit)
{
    const struct tag tag = heap.tags[unit];
    unsigned bin = bin_of(tag.length);

    if (tag.prev != NOWHERE)
        heap.tags[tag.prev].next = tag.next;
    else
        heap.bins[bin] = tag.next;
    if (tag.next != NOWHERE)
        heap.tags[tag.next].prev = tag.prev;
    if (heap.bins[bin] == NOWHERE)
        heap.bins_used &= ~(1u << bin);
}

/* A free block of at least so many units, or NOWHERE. */
static uint32_t list_find(uint32_t length)
{
    unsigned bin = bin_of(length);
    uint32_t unit = heap.bins[bin];
    uint32_t larger;

    for (unsigned looks = 0; unit != NOWHERE && looks < LOOK_MAX; looks++) {
        if (heap.tags[unit].length >= length)
            return unit;
        unit = heap.tags[unit].next;
    }
    larger = bin < BINS - 1 ? heap.bins_used & ~((2u << bin) - 1) : 0;
    if (larger)
        return heap.bins[__builtin_ctz(larger)];
    while (unit != NOWHERE && heap.tags[unit].length < length)
        unit = heap.tags[unit].next;
    return unit;
}

/* ---- blocks. Lock held ---- */

static void mark(uint32_t unit, uint32_t length, bool is_freed)
{
    uint64_t end = (uint64_t)unit + length;

    for (uint64_t at = unit; at < end;) {
        uint64_t word = at / 64;
        uint64_t n = 64 - at % 64 < end - at ? 64 - at % 64 : end - at;
        uint64_t bits = (~0ull >> (64 - n)) << (at % 64);
        uint64_t old = atomic_load_explicit(&heap.freed[word], memory_order_relaxed);

        if ((old & bits) != (is_freed ? bits : 0))
            atomic_store_explicit(&heap.freed[word], is_freed ? old | bits : old & ~bits, memory_order_relaxed);
        at += n;
    }
}

static void set_used(uint32_t unit, uint32_t length)
{
    heap.tags[unit] = (struct tag){ .length = length, .next = NOWHERE, .prev = IN_USE };
    if (length > 1)
        heap.tags[unit + length - 1] = (struct tag){ .length = length, .next = LAST_TAG, .prev = IN_USE };
}

/* Is the unit the first of a used block? */
static bool is_block(uint32_t unit)
{
    return heap.tags[unit].prev == IN_USE && heap.tags[unit].next == NOWHERE;
}

static uint32_t take(uint32_t length)
{
    uint32_t unit = list_find(length);
    uint32_t have;

    if (unit == NOWHERE)
        return NOWHERE;
    have = heap.tags[unit].length;
    list_remove(unit);
    if (have > length)
        list_add(unit + length, have - length);
    set_used(unit, length);
    mark(unit, length, false);
    heap.units_in_use += length;
    heap.n_blocks++;
    return unit;
}

/* Units become free, and one block with their free neighbours. Tags inside a block are nobody's: cleared. */
static void give(uint32_t unit, uint32_t length)
{
    uint32_t next = unit + length;

    mark(unit, length, true);
    heap.tags[unit] = (struct tag){ 0 };
    heap.tags[unit + length - 1] = (struct tag){ 0 };
    if (next < heap.n_units && heap.tags[next].prev != IN_USE) {
        uint32_t more = heap.tags[next].length;

        list_remove(next);
        heap.tags[next] = (struct tag){ 0 };
        length += more;
    }
    if (unit > 0 && heap.tags[unit - 1].prev != IN_USE) {
        uint32_t before = heap.tags[unit - 1].length;

        list_remove(unit - before);
        heap.tags[unit - 1] = (struct tag){ 0 };
        unit -= before;
        length += before;
    }
    list_add(unit, length);
}

static uint32_t units_of(size_t size)
{
    uint64_t units = ((uint64_t)size >> DMAPPI_UNIT_SHIFT) + ((size & (DMAPPI_UNIT_BYTES - 1)) != 0);

    if (units == 0)
        return 1;
    return units <= heap.n_units ? (uint32_t)units : 0;
}

/* First unit of the used block at ptr, or NOWHERE. */
static uint32_t find_block(const void *ptr)
{
    uint64_t offset = (uint64_t)((const uint8_t *)ptr - heap.base);

    if (!heap.tags || offset % DMAPPI_UNIT_BYTES != 0 || offset >> DMAPPI_UNIT_SHIFT >= heap.n_units ||
        !is_block((uint32_t)(offset >> DMAPPI_UNIT_SHIFT)))
        return NOWHERE;
    return (uint32_t)(offset >> DMAPPI_UNIT_SHIFT);
}

static void *address_of(uint32_t unit)
{
    return unit == NOWHERE ? NULL : heap.base + ((uint64_t)unit << DMAPPI_UNIT_SHIFT);
}

static void free_block(uint32_t unit)
{
    uint32_t length = heap.tags[unit].length;

    heap.units_in_use -= length;
    heap.n_blocks--;
    give(unit, length);
}

/* ---- part of the job ---- */

static uint64_t area_bytes(void)
{
    return (dmappi_job.sheap_seg.len >> DMAPPI_UNIT_SHIFT) / 8 + 8;
}

static int start(void *area)
{
    uint32_t n_units = (uint32_t)(dmappi_job.sheap_seg.len >> DMAPPI_UNIT_SHIFT);
    void *tags = mmap(NULL, (uint64_t)n_units * sizeof(struct tag), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (tags == MAP_FAILED)
        return -ENOMEM;
    heap.base = dmappi_job.sheap_seg.addr;
    heap.n_units = n_units;
    heap.tags = tags;
    heap.freed = area;
    heap.bins_used = 0;
    heap.units_in_use = 0;
    heap.n_blocks = 0;
    for (unsigned i = 0; i < BINS; i++)
        heap.bins[i] = NOWHERE;
    list_add(0, n_units);
    dmappi_job.freed = area;
    return 0;
}

static void stop(void)
{
    if (heap.tags)
        munmap(heap.tags, (uint64_t)heap.n_units * sizeof(struct tag));
    heap.tags = NULL;
    heap.n_units = 0;
}

const struct dmappi_part dmappi_sheap_part = {
    .name = "heap",
    .area_bytes = area_bytes,
    .start = start,
    .stop = stop,
};

/* ---- calls ---- */

void *dmapp_sheap_malloc(size_t size)
{
    uint32_t unit = NOWHERE;
    uint32_t length;

    pthread_mutex_lock(&heap.lock);
    length = heap.tags ? units_of(size) : 0;
    if (length > 0)
        unit = take(length);
    pthread_mutex_unlock(&heap.lock);
    return address_of(unit);
}

void dmapp_sheap_free(void *ptr)
{
    uint32_t unit;

    if (!ptr)
        return;
    pthread_mutex_lock(&heap.lock);
    unit = find_block(ptr);
    if (unit != NOWHERE)
        free_block(unit);
    pthread_mutex_unlock(&heap.lock);
}

/* The block's place after it has got its new length, or NOWHERE: it is as it was. Lock held. */
static uint32_t resize(uint32_t unit, uint32_t length)
{
    uint32_t have = heap.tags[unit].length;
    uint32_t next = unit + have;
    uint32_t elsewhere;

    if (length > have && next < heap.n_units && heap.tags[next].prev != IN_USE &&
        heap.tags[next].length >= length - have) {
        uint32_t more = heap.tags[next].length;

        list_remove(next);
        heap.tags[next] = (struct tag){ 0 };
        if (have > 1)
            heap.tags[next - 1] = (struct tag){ 0 };
        if (have + more > length)
            list_add(unit + length, have + more - length);
        mark(next, length - have, false);
        set_used(unit, length);
        heap.units_in_use += length - have;
        return unit;
    }
    if (length <= have) {
        if (length < have) {
            set_used(unit, length);
            heap.units_in_use -= have - length;
            give(unit + length, have - length);
        }
        return unit;
    }
    elsewhere = take(length);
    if (elsewhere == NOWHERE)
        return NOWHERE;
    memcpy(address_of(elsewhere), address_of(unit), (uint64_t)have << DMAPPI_UNIT_SHIFT);
    free_block(unit);
    return elsewhere;
}

void *dmapp_sheap_realloc(void *ptr, size_t size)
{
    uint32_t unit;
    uint32_t length;

    if (!ptr)
        return dmapp_sheap_malloc(size);
    pthread_mutex_lock(&heap.lock);
    unit = find_block(ptr);
    length = unit == NOWHERE ? 0 : units_of(size);
    if (unit != NOWHERE && size == 0) {
        free_block(unit);
        unit = NOWHERE;
    } else {
        unit = length > 0 ? resize(unit, length) : NOWHERE;
    }
    pthread_mutex_unlock(&heap.lock);
    return address_of(unit);
}

/* Lock held. */
static uint64_t largest_free(void)
{
    uint32_t largest = 0;

    if (!heap.bins_used)
        return 0;
    for (uint32_t unit = heap.bins[bin_of(heap.bins_used)]; unit != NOWHERE; unit = heap.tags[unit].next) {
        if (heap.tags[unit].length > largest)
            largest = heap.tags[unit].length;
    }
    return (uint64_t)largest << DMAPPI_UNIT_SHIFT;
}

dmapp_return_t dmapp_sheap_stats(dmapp_sheap_stats_t *stats)
{
    if (!dmappi_is_up() || !stats)
        return DMAPP_RC_INVALID_PARAM;
    pthread_mutex_lock(&heap.lock);
    *stats = (dmapp_sheap_stats_t){
        .size = (uint64_t)heap.n_units << DMAPPI_UNIT_SHIFT,
        .max_size = (uint64_t)heap.n_units << DMAPPI_UNIT_SHIFT,
        .in_use = heap.units_in_use << DMAPPI_UNIT_SHIFT,
        .free = (heap.n_units - heap.units_in_use) << DMAPPI_UNIT_SHIFT,
        .largest_free = largest_free(),
        .nallocs = heap.n_blocks,
    };
    pthread_mutex_unlock(&heap.lock);
    return DMAPP_RC_SUCCESS;
}
