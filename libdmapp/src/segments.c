/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments and descriptors.
 *
 * The data segment: static_data.c.
 *
 * The heap is a memfd, mapped shared at one of a few fixed addresses that is free in every PE; the first is where
 * XC systems had it. Where there is none, PEs have it at different addresses and still work, because an operation's
 * address is taken as an offset into the segment: PEs exchange the bases of both segments, so randomised static
 * data are found as well.
 *
 * A descriptor is known by its contents, as it may come from another PE as bytes: a mark in `flags` tells the kind, and
 * `reserved` is a sum over the rest. Whatever does not add up is nobody's. An operation on the heap with the
 * caller's own descriptor is checked inline (segments.h); everything else here. Offsets are taken from the
 * descriptor's own base, so that both the caller's descriptor of a symmetric segment and the target's mean the same.
 *
 * Registered memory: one entry for each pair of PE and handle that was ever used, found by hash, kept until
 * dmapp_finalize(), so that nobody has to count users. Beyond ENTRIES_MAX of them operations are posted.
 *
 * Freed blocks: the caller's own heap knows what it has freed. As the heap is symmetric, so has the target,
 * usually; since a program may free in one PE only, the target's own marks decide, which cost a get. So only the
 * suspicious pay for the look.
 */
#include "libdmapp/src/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libdmapp/src/request.h"

#define BUCKETS     1024u
#define ENTRIES_MAX 16384u

/* Where the heap may lie: places that neither the loader nor the usual sanitizers use. */
static const uint64_t heap_places[] = { 0x030000000000, 0x200000000000, 0x300000000000, 0x568000000000 };
#define HEAP_PLACES (sizeof(heap_places) / sizeof(heap_places[0]))

struct entry {
    struct entry *next; /* in its bucket; never changes */
    dmapp_pe_t pe;
    gni_mem_handle_t handle;
    struct gnii_launch_target *target; /* owned */
};

/* Own registrations, for local buffers and for unregistering. */
struct registration {
    struct registration *next;
    dmapp_seg_desc_t desc;
    bool is_reserved_only;
};

static _Atomic(struct entry *) buckets[BUCKETS];
static uint32_t n_entries;                 /* job lock */
static struct registration *registrations; /* job lock */

/* ---- heap ---- */

static bool is_free(uint64_t place, uint64_t bytes)
{
    void *wanted = (void *)(uintptr_t)place;
    void *got =
        mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == MAP_FAILED)
        return false;
    munmap(got, bytes);
    return got == wanted;
}

uint32_t dmappi_heap_candidates(uint64_t bytes)
{
    uint32_t found = 0;

    for (unsigned i = 0; i < HEAP_PLACES; i++) {
        if (is_free(heap_places[i], bytes))
            found |= 1u << i;
    }
    return found;
}

static void *map_heap(uint64_t bytes, uint32_t candidates)
{
    unsigned place = candidates ? (unsigned)__builtin_ctz(candidates) : 0;

    if (candidates)
        return mmap((void *)(uintptr_t)heap_places[place], bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, dmappi_job.heap_fd, 0);
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, dmappi_job.heap_fd, 0);
}

int dmappi_heap_make(uint64_t areas_bytes, uint64_t heap_bytes, uint32_t candidates)
{
    uint64_t bytes = areas_bytes + heap_bytes;
    void *map;

    dmappi_job.heap_fd = memfd_create("dmapp-sheap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (dmappi_job.heap_fd < 0)
        return -errno;
    if (ftruncate(dmappi_job.heap_fd, (off_t)bytes) < 0)
        return -errno;
    /* A peer that has the file cannot take pages away. */
    if (fcntl(dmappi_job.heap_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return -errno;
    map = map_heap(bytes, candidates);
    if (map == MAP_FAILED)
        return -errno;
    dmappi_job.heap_map = map;
    dmappi_job.heap_map_bytes = bytes;
    dmappi_job.sheap_seg.addr = (uint8_t *)map + areas_bytes;
    dmappi_job.sheap_seg.len = heap_bytes;
    return 0;
}

/* ---- registration ---- */

static uint32_t pi_flags(void)
{
    switch (dmappi_job.attrs.PI_ordering) {
    case DMAPP_PI_ORDERING_STRICT:
        return GNI_MEM_STRICT_PI_ORDERING;
    case DMAPP_PI_ORDERING_RELAXED:
        return GNI_MEM_RELAXED_PI_ORDERING;
    default:
        return 0;
    }
}

static gni_return_t register_range(const void *addr, uint64_t len_bytes, uint32_t flags, gni_mem_handle_t *handle_out)
{
    return GNI_MemRegister(dmappi_job.nic, (uint64_t)(uintptr_t)addr, len_bytes, NULL, GNI_MEM_READWRITE | flags,
                           (uint32_t)-1, handle_out);
}

int dmappi_segments_register(void)
{
    dmapp_seg_desc_t *data = &dmappi_job.data_seg;
    dmapp_seg_desc_t *heap = &dmappi_job.sheap_seg;
    uint64_t addr;
    int r = dmappi_find_data(&addr, &data->len);

    if (r < 0)
        return r;
    data->addr = (void *)(uintptr_t)addr;
    data->flags = DMAPPI_MARK_DATA;
    heap->flags = DMAPPI_MARK_SHEAP;
    if (register_range(data->addr, data->len, pi_flags(), &data->memhndl) != GNI_RC_SUCCESS ||
        register_range(dmappi_job.heap_map, dmappi_job.heap_map_bytes, pi_flags(), &heap->memhndl) != GNI_RC_SUCCESS)
        return -EIO;
    dmappi_desc_seal(data);
    dmappi_desc_seal(heap);
    return 0;
}

int dmappi_segments_connect(void)
{
    for (int pe = 0; pe < dmappi_job.npes; pe++) {
        struct dmappi_peer *peer = &dmappi_job.peers[pe];

        for (int i = 0; i < DMAPPI_SYMMETRIC; i++) {
            peer->seg[i].target = gnii_launch_open(dmappi_job.nic, peer->nic_addr, &peer->seg[i].handle);
            if (!peer->seg[i].target)
                return -ENOMEM;
        }
    }
    return 0;
}

/* Everything but the registrations themselves, which end with the NIC handle. */
void dmappi_segments_drop(void)
{
    for (int pe = 0; dmappi_job.peers && pe < dmappi_job.npes; pe++) {
        for (int i = 0; i < DMAPPI_SYMMETRIC; i++)
            gnii_launch_close(dmappi_job.peers[pe].seg[i].target);
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct entry *entry = atomic_exchange(&buckets[i], NULL);

        while (entry) {
            struct entry *next = entry->next;

            gnii_launch_close(entry->target);
            free(entry);
            entry = next;
        }
    }
    n_entries = 0;
    while (registrations) {
        struct registration *next = registrations->next;

        free(registrations);
        registrations = next;
    }
}

/* ---- descriptors ---- */

static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
    return sum ^ sum >> 32;
}

static void *sum_of(const dmapp_seg_desc_t *desc)
{
    uint64_t sum = mix(0x646d617070ull, (uint64_t)(uintptr_t)desc->addr);

    sum = mix(sum, desc->len);
    sum = mix(sum, desc->memhndl.qword1);
    sum = mix(sum, desc->memhndl.qword2);
    return (void *)(uintptr_t)(mix(sum, desc->flags) | 1);
}

void dmappi_desc_seal(dmapp_seg_desc_t *desc)
{
    desc->reserved = sum_of(desc);
}

static bool is_sealed(const dmapp_seg_desc_t *desc)
{
    return desc->reserved == sum_of(desc);
}

static bool is_same(const dmapp_seg_desc_t *a, const dmapp_seg_desc_t *b)
{
    return a->addr == b->addr && a->len == b->len && a->memhndl.qword1 == b->memhndl.qword1 &&
           a->memhndl.qword2 == b->memhndl.qword2 && a->flags == b->flags;
}

dmapp_return_t dmapp_segdesc_compare(dmapp_seg_desc_t *a, dmapp_seg_desc_t *b, int *flag)
{
    if (!a || !b || !flag)
        return DMAPP_RC_INVALID_PARAM;
    *flag = is_same(a, b);
    return DMAPP_RC_SUCCESS;
}

/* ---- resolving ---- */

static _Atomic(struct entry *) *bucket_of(dmapp_pe_t pe, const gni_mem_handle_t *handle)
{
    uint64_t hash = mix(mix((uint64_t)pe, handle->qword1), handle->qword2);

    return &buckets[hash % BUCKETS];
}

static struct entry *find_entry(struct entry *entry, dmapp_pe_t pe, const gni_mem_handle_t *handle)
{
    while (entry &&
           (entry->pe != pe || entry->handle.qword1 != handle->qword1 || entry->handle.qword2 != handle->qword2))
        entry = entry->next;
    return entry;
}

/* Job lock held. */
static struct entry *make_entry(_Atomic(struct entry *) *bucket, dmapp_pe_t pe, const gni_mem_handle_t *handle)
{
    struct entry *entry = n_entries < ENTRIES_MAX ? calloc(1, sizeof(*entry)) : NULL;

    if (!entry)
        return NULL;
    *entry = (struct entry){ .next = atomic_load(bucket), .pe = pe, .handle = *handle };
    entry->target = gnii_launch_open(dmappi_job.nic, dmappi_job.peers[pe].nic_addr, handle);
    if (!entry->target) {
        free(entry);
        return NULL;
    }
    n_entries++;
    atomic_store_explicit(bucket, entry, memory_order_release);
    return entry;
}

/* The target of registered memory; NULL: post. */
static struct gnii_launch_target *target_of(dmapp_pe_t pe, const gni_mem_handle_t *handle)
{
    _Atomic(struct entry *) *bucket = bucket_of(pe, handle);
    struct entry *entry = find_entry(atomic_load_explicit(bucket, memory_order_acquire), pe, handle);

    if (DMAPPI_LIKELY(entry))
        return entry->target;
    pthread_mutex_lock(&dmappi_job.lock);
    entry = find_entry(atomic_load(bucket), pe, handle);
    if (!entry)
        entry = make_entry(bucket, pe, handle);
    pthread_mutex_unlock(&dmappi_job.lock);
    return entry ? entry->target : NULL;
}

/* Do the target's own marks say that a block in the range has been freed? */
static dmapp_return_t check_freed_there(dmapp_pe_t pe, uint64_t offset, uint64_t len_bytes)
{
    uint64_t word = (offset >> DMAPPI_UNIT_SHIFT) / 64;
    uint64_t last = ((offset + len_bytes - 1) >> DMAPPI_UNIT_SHIFT) / 64;

    for (; word <= last; word++) {
        uint64_t first_unit = word == (offset >> DMAPPI_UNIT_SHIFT) / 64 ? (offset >> DMAPPI_UNIT_SHIFT) % 64 : 0;
        uint64_t last_unit = word == last ? ((offset + len_bytes - 1) >> DMAPPI_UNIT_SHIFT) % 64 : 63;
        uint64_t marks = 0;
        dmapp_return_t rc =
            dmappi_area_get(pe, (const void *)(uintptr_t)&dmappi_job.freed[word], &marks, sizeof(marks));

        if (rc != DMAPP_RC_SUCCESS)
            return DMAPP_RC_RESOURCE_ERROR;
        if ((marks >> first_unit & (~0ull >> (63 - (last_unit - first_unit)))) != 0)
            return DMAPP_RC_INVALID_PARAM;
    }
    return DMAPP_RC_SUCCESS;
}

static dmapp_return_t resolve_symmetric(uint64_t addr, const dmapp_seg_desc_t *seg, dmapp_pe_t pe, uint64_t len_bytes,
                                        struct dmappi_place *place_out)
{
    enum dmappi_symmetric kind = seg->flags == DMAPPI_MARK_DATA ? DMAPPI_DATA : DMAPPI_SHEAP;
    const struct dmappi_segment *s = &dmappi_job.peers[pe].seg[kind];
    uint64_t offset = addr - (uint64_t)(uintptr_t)seg->addr;
    dmapp_return_t rc;

    if (offset >= s->len_bytes || len_bytes > s->len_bytes - offset)
        return DMAPP_RC_INVALID_PARAM;
    if (kind == DMAPPI_SHEAP && dmappi_is_freed(offset, len_bytes)) {
        rc = check_freed_there(pe, offset, len_bytes);
        if (rc != DMAPP_RC_SUCCESS)
            return rc;
    }
    *place_out = (struct dmappi_place){ .addr = s->addr + offset,
                                        .first = s->addr,
                                        .end = s->addr + s->len_bytes,
                                        .target = s->target,
                                        .handle = &s->handle,
                                        .peer = &dmappi_job.peers[pe] };
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmappi_resolve_slowly(uint64_t addr, const dmapp_seg_desc_t *seg, dmapp_pe_t pe, uint64_t len_bytes,
                                     struct dmappi_place *place_out)
{
    uint64_t first = (uint64_t)(uintptr_t)seg->addr;

    if (!is_sealed(seg))
        return DMAPP_RC_INVALID_PARAM;
    if (seg->flags == DMAPPI_MARK_DATA || seg->flags == DMAPPI_MARK_SHEAP)
        return resolve_symmetric(addr, seg, pe, len_bytes, place_out);
    if (seg->flags != DMAPPI_MARK_REGISTERED || addr < first || addr - first > seg->len ||
        len_bytes > seg->len - (addr - first))
        return DMAPP_RC_INVALID_PARAM;
    *place_out = (struct dmappi_place){ .addr = addr,
                                        .first = first,
                                        .end = first + seg->len,
                                        .target = target_of(pe, &seg->memhndl),
                                        .handle = &seg->memhndl,
                                        .peer = &dmappi_job.peers[pe] };
    return DMAPP_RC_SUCCESS;
}

struct dmappi_symmetric_segment dmappi_symmetric_segment(dmapp_pe_t pe, enum dmappi_symmetric kind)
{
    const struct dmappi_peer *peer = &dmappi_job.peers[pe];
    const struct dmappi_segment *s = &peer->seg[kind];

    return (struct dmappi_symmetric_segment){
        .addr = s->addr,
        .len_bytes = s->len_bytes,
        .target = s->target,
        .nic_addr = peer->nic_addr,
        .instance_id = peer->instance_id,
    };
}

gni_nic_handle_t dmappi_nic(void)
{
    return dmappi_job.nic;
}

/* ---- local memory ---- */

static bool covers(const dmapp_seg_desc_t *desc, uint64_t addr, uint64_t len_bytes)
{
    uint64_t first = (uint64_t)(uintptr_t)desc->addr;

    return addr >= first && addr - first <= desc->len && len_bytes <= desc->len - (addr - first);
}

bool dmappi_local_handle(uint64_t addr, uint64_t len_bytes, gni_mem_handle_t *handle_out)
{
    const dmapp_seg_desc_t *found = NULL;

    if (covers(&dmappi_job.sheap_seg, addr, len_bytes))
        found = &dmappi_job.sheap_seg;
    else if (covers(&dmappi_job.data_seg, addr, len_bytes))
        found = &dmappi_job.data_seg;
    if (found) {
        *handle_out = found->memhndl;
        return true;
    }
    pthread_mutex_lock(&dmappi_job.lock);
    for (const struct registration *r = registrations; r && !found; r = r->next) {
        if (!r->is_reserved_only && covers(&r->desc, addr, len_bytes))
            found = &r->desc;
    }
    if (found)
        *handle_out = found->memhndl;
    pthread_mutex_unlock(&dmappi_job.lock);
    return found;
}

/* ---- registration by the program ---- */

static dmapp_return_t add_registration(void *addr, uint64_t length, uint32_t flags, dmapp_seg_desc_t *seg_desc)
{
    struct registration *r;
    gni_return_t rc;

    if (!dmappi_is_up() || !addr || length == 0 || !seg_desc || (uint64_t)(uintptr_t)addr + length < length)
        return DMAPP_RC_INVALID_PARAM;
    r = calloc(1, sizeof(*r));
    if (!r)
        return DMAPP_RC_RESOURCE_ERROR;
    r->desc = (dmapp_seg_desc_t){ .addr = addr, .len = length, .flags = DMAPPI_MARK_REGISTERED };
    r->is_reserved_only = (flags & GNI_MEM_RESERVE_REGION) != 0;
    rc = register_range(addr, length, flags | pi_flags(), &r->desc.memhndl);
    if (rc != GNI_RC_SUCCESS) {
        free(r);
        return rc == GNI_RC_INVALID_PARAM || rc == GNI_RC_PERMISSION_ERROR ? dmappi_rc(rc) : DMAPP_RC_RESOURCE_ERROR;
    }
    dmappi_desc_seal(&r->desc);
    *seg_desc = r->desc;
    pthread_mutex_lock(&dmappi_job.lock);
    r->next = registrations;
    registrations = r;
    pthread_mutex_unlock(&dmappi_job.lock);
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_mem_register(void *addr, uint64_t length, dmapp_seg_desc_t *seg_desc)
{
    return add_registration(addr, length, 0, seg_desc);
}

dmapp_return_t dmapp_mem_reserve(void *addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t *seg_desc)
{
    return flags != 0 ? DMAPP_RC_INVALID_PARAM : add_registration(addr, length, GNI_MEM_RESERVE_REGION, seg_desc);
}

/* Job lock held. */
static struct registration **find_registration(const dmapp_seg_desc_t *desc)
{
    struct registration **at = &registrations;

    while (*at && !is_same(&(*at)->desc, desc))
        at = &(*at)->next;
    return at;
}

dmapp_return_t dmapp_mem_unregister(dmapp_seg_desc_t *seg_desc)
{
    struct registration **at;
    struct registration *r;

    if (!dmappi_is_up() || !seg_desc)
        return DMAPP_RC_INVALID_PARAM;
    pthread_mutex_lock(&dmappi_job.lock);
    at = find_registration(seg_desc);
    r = *at;
    if (r)
        *at = r->next;
    pthread_mutex_unlock(&dmappi_job.lock);
    if (!r)
        return DMAPP_RC_INVALID_PARAM;
    GNI_MemDeregister(dmappi_job.nic, &r->desc.memhndl);
    free(r);
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_mem_update(void *addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t *seg_desc)
{
    gni_mem_handle_t handle;
    struct registration *r;
    gni_return_t rc;

    if (!dmappi_is_up() || !addr || length == 0 || flags != 0 || !seg_desc)
        return DMAPP_RC_INVALID_PARAM;
    pthread_mutex_lock(&dmappi_job.lock);
    r = *find_registration(seg_desc);
    if (r)
        handle = r->desc.memhndl;
    pthread_mutex_unlock(&dmappi_job.lock);
    if (!r)
        return DMAPP_RC_INVALID_PARAM;
    rc = register_range(addr, length, GNI_MEM_UPDATE_REGION, &handle);
    return rc == GNI_RC_SUCCESS || rc == GNI_RC_INVALID_PARAM || rc == GNI_RC_PERMISSION_ERROR ?
               dmappi_rc(rc) :
               DMAPP_RC_RESOURCE_ERROR;
}
