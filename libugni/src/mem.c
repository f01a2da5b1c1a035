/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory registration.
 *
 * Every call makes a memory domain of its own on the emulated NIC, named by (node, MDH, generation). The process
 * remembers its registrations per communication domain, so that a handle made on one NIC handle serves as local handle
 * on all of them. Addresses are virtual addresses; the handle carries the page-aligned base (Appendix B).
 *
 * Virtual handles (GNI_MEM_USE_VMDH) name an index of a block that the job has on each node; they carry no generation,
 * so that the same handle serves on every node. A reserved region has its handle at once and is reached from its first
 * update on. Segmented regions are addressed by offsets from 0; emunic alone knows the segments and moves what concerns
 * them.
 *
 * Registrations share MDDs when the job may have no more of them, unless a flag or the CDM's mode wants dedicated ones
 * (daemon/memory_domain.c). Ordering flags are hints: what the NIC does is as strict as the strictest of them. USE_GART
 * and PHYS_CONT change nothing; MDD_CLONE and the CDM's USE_PCI_IOMMU show in the handle.
 *
 * Pages are looked at once, at registration (base/maps.h): absent ones give INVALID_PARAM, ones that forbid
 * what the flags promise PERMISSION_ERROR. Content is not touched and nothing is pinned.
 * Source: spec/ugni.md 4.6 and Appendix B.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "emunic/base/maps.h"
#include "emunic/base/settings.h"
#include "emunic/client/park.h"
#include "emunic/client/space.h"
#include "emunic/engine/pages.h"
#include "libugni/src/parked.h"
#include "libugni/src/rc.h"
#include "libugni/src/ugni.h"

#define ORDERING_FLAGS                                                                                                 \
    (GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH | GNI_MEM_RELAXED_PI_ORDERING | GNI_MEM_USE_GART |                  \
     GNI_MEM_PHYS_CONT | GNI_MEM_MDD_CLONE)
#define KNOWN_FLAGS                                                                                                    \
    (ORDERING_FLAGS | GNI_MEM_READ_ONLY | GNI_MEM_USE_VMDH | GNI_MEM_RESERVE_REGION | GNI_MEM_MDD_SHARED |             \
     GNI_MEM_MDD_DEDICATED)

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, gnii_job) jobs = LIST_HEAD_INITIALIZER(jobs);

/* ---- jobs ---- */

static struct gnii_job *make_job(uint32_t cookie, uint32_t nid)
{
    struct gnii_job *job = emu_pages_take(sizeof(*job));

    if (!job)
        return NULL;
    job->cookie = cookie;
    job->nid = nid;
    LIST_INIT(&job->nics);
    LIST_INIT(&job->live);
    pthread_mutex_init(&job->lock, NULL);
    LIST_INSERT_HEAD(&jobs, job, link);
    return job;
}

int gnii_job_join(struct gnii_nic *nic, uint32_t cookie)
{
    struct gnii_job *job;

    pthread_mutex_lock(&jobs_lock);
    LIST_FOREACH(job, &jobs, link) {
        if (job->cookie == cookie && job->nid == nic->port.nid)
            break;
    }
    if (!job)
        job = make_job(cookie, nic->port.nid);
    if (job)
        LIST_INSERT_HEAD(&job->nics, nic, job_link);
    nic->job = job;
    pthread_mutex_unlock(&jobs_lock);
    return job ? 0 : -ENOMEM;
}

void gnii_job_leave(struct gnii_nic *nic)
{
    struct gnii_job *job = nic->job;

    pthread_mutex_lock(&jobs_lock);
    LIST_REMOVE(nic, job_link);
    nic->job = NULL;
    if (LIST_EMPTY(&job->nics)) {
        LIST_REMOVE(job, link);
        gnii_early_fini(&job->early);
        pthread_mutex_destroy(&job->lock);
        emu_pages_give(job, sizeof(*job));
    }
    pthread_mutex_unlock(&jobs_lock);
}

/* ---- look-up ---- */

/*
 * Is that the registration a handle names? A rebuilt handle tells neither generation nor which of the sharers of its
 * MDH.
 */
static bool is_named(const struct gnii_md *md, const struct gnii_handle_fields *fields)
{
    if (((fields->flags & GNII_HNDL_VMDH) != 0) != md->is_virtual)
        return false;
    if (md->is_virtual)
        return md->vmdh == fields->mdh && (fields->generation == 0 || fields->generation == md->generation);
    if (fields->generation == 0)
        return md->mdh % EMU_MDH_COUNT == fields->mdh % EMU_MDH_COUNT && emu_page_down(md->addr) == fields->base_va;
    return md->mdh == fields->mdh && md->generation == fields->generation;
}

/* What a handle names in this process, if it is that. Job locked. */
static struct gnii_md *md_of(const struct gnii_job *job, const struct gnii_handle_fields *fields)
{
    struct gnii_md *md;

    if (fields->flags & GNII_HNDL_VMDH)
        return fields->mdh < EMU_MDH_COUNT ? job->mds[job->virtual_mdhs[fields->mdh]] : NULL;
    if (fields->generation != 0)
        return job->mds[fields->mdh];
    for (uint32_t number = fields->mdh % EMU_MDH_COUNT; number < EMU_MD_COUNT; number += EMU_MDH_COUNT) {
        md = job->mds[number];
        if (md && is_named(md, fields))
            return md;
    }
    return NULL;
}

static bool covers(const struct gnii_md *md, uint64_t addr, uint64_t length_bytes)
{
    uint64_t first = emu_page_down(md->addr);
    uint64_t end = emu_page_up(md->addr + md->length_bytes);

    return addr >= first && addr <= end && length_bytes <= end - addr;
}

const struct gnii_md *gnii_md_find(struct gnii_nic *nic, const gni_mem_handle_t *handle, uint64_t addr,
                                   uint64_t length_bytes)
{
    struct gnii_handle_fields fields;
    const struct gnii_md *md;

    if (gnii_handle_decode(handle, &fields) < 0)
        return NULL;
    pthread_mutex_lock(&nic->job->lock);
    md = md_of(nic->job, &fields);
    if (md && ((fields.generation != 0 && fields.generation != md->generation) ||
               fields.base_va != emu_page_down(md->addr) || !covers(md, addr, length_bytes)))
        md = NULL;
    pthread_mutex_unlock(&nic->job->lock);
    return md;
}

bool gnii_local_find(struct gnii_nic *nic, const gni_mem_handle_t *handle, struct gnii_local *local_out)
{
    struct gnii_handle_fields fields;
    const struct gnii_md *md;
    bool is_found;

    if (gnii_handle_decode(handle, &fields) < 0)
        return false;
    pthread_mutex_lock(&nic->job->lock);
    md = md_of(nic->job, &fields);
    is_found = md && !md->segments && (fields.generation == 0 || fields.generation == md->generation) &&
               fields.base_va == emu_page_down(md->addr);
    if (is_found)
        *local_out = (struct gnii_local){
            .changes = atomic_load_explicit(&nic->job->changes, memory_order_relaxed),
            .qword1 = handle->qword1,
            .qword2 = handle->qword2,
            .first = emu_page_down(md->addr),
            .end = emu_page_up(md->addr + md->length_bytes),
            .is_read_only = md->is_read_only,
            .crc_is_good = gnii_handle_crc_is_good(handle),
        };
    pthread_mutex_unlock(&nic->job->lock);
    return is_found;
}

bool gnii_md_is_live(struct gnii_nic *nic, uint16_t mdh, uint16_t generation)
{
    const struct gnii_md *md;
    bool is_live;

    pthread_mutex_lock(&nic->job->lock);
    md = nic->job->mds[mdh % EMU_MD_COUNT];
    is_live = md && md->generation == generation;
    pthread_mutex_unlock(&nic->job->lock);
    return is_live;
}

/* ---- pages ---- */

/* 0, -EINVAL: pages are missing; -EPERM: pages forbid what is wanted. One system call for each mapping, and two. */
static int check_pages(uint64_t addr, uint64_t length_bytes, bool needs_write)
{
    uint64_t at = emu_page_down(addr);
    uint64_t end = addr + length_bytes;
    struct emu_maps maps;
    struct emu_piece piece;
    int r = -EINVAL;

    if (emu_maps_open(&maps, 0) < 0)
        return 0; /* cannot tell; the NIC finds out at the first access */
    while (at < end && emu_maps_find(&maps, at, &piece) && piece.first <= at) {
        if (!piece.is_readable || (needs_write && !piece.is_writable)) {
            r = -EPERM;
            break;
        }
        at = piece.end;
    }
    emu_maps_close(&maps);
    return at >= end ? 0 : r;
}

/* ---- method ---- */

static bool is_written_privately(const struct gnii_md *md, uint64_t first, uint64_t end)
{
    if (md->is_mapped || md->is_read_only || md->is_reserved)
        return false;
    for (uint32_t i = 0; i < md->n_segments; i++) {
        if (md->segments[i][0] < end && md->segments[i][0] + md->segments[i][1] > first)
            return true;
    }
    return !md->segments && md->addr < end && md->addr + md->length_bytes > first;
}

/* Does a live registration that is written by system calls touch these pages? Then they must stay where they are. */
static bool touches_private(uint64_t addr, uint64_t length_bytes)
{
    uint64_t first = emu_page_down(addr);
    uint64_t end = emu_page_up(addr + length_bytes);
    const struct gnii_md *md;
    struct gnii_job *job;
    bool touches = false;

    pthread_mutex_lock(&jobs_lock);
    LIST_FOREACH(job, &jobs, link) {
        pthread_mutex_lock(&job->lock);
        LIST_FOREACH(md, &job->live, job_link) {
            touches = is_written_privately(md, first, end);
            if (touches)
                break;
        }
        pthread_mutex_unlock(&job->lock);
        if (touches)
            break;
    }
    pthread_mutex_unlock(&jobs_lock);
    return touches;
}

/* At each registration, as a program may want it of some: asked last, because the environment is long. */
static bool is_cma_only(void)
{
    return emu_setting_is("EMUNIC_MEMORY", "cma");
}

/* Moves the pages to where peers can map them, if they are not there and it may be done. */
static bool make_mappable(struct gnii_nic *nic, const struct emu_maps *kept, uint64_t addr, uint64_t length_bytes)
{
    bool may_adopt = length_bytes <= nic->port.settings.adopt_limit_bytes;

    if (may_adopt && touches_private(addr, length_bytes))
        may_adopt = false;
    return emu_space_cover_by(&nic->port, kept, addr, length_bytes, may_adopt);
}

/* ---- calls ---- */

static uint8_t handle_flags_of(const struct gnii_md *md, uint32_t flags)
{
    uint32_t translation = 0;

    if (md->nic->is_gemini)
        translation = md->is_gart ? GNII_HNDL_GART : GNII_HNDL_MRT;
    return (uint8_t)(translation | (md->is_read_only ? GNII_HNDL_READONLY : 0) | (md->is_virtual ? GNII_HNDL_VMDH : 0) |
                     ((flags & GNI_MEM_MDD_CLONE) ? GNII_HNDL_CLONE : 0) |
                     ((md->nic->modes & GNI_CDM_MODE_USE_PCI_IOMMU) ? GNII_HNDL_PCI_IOMMU : 0));
}

static int make_handle(const struct gnii_md *md, uint32_t flags, gni_mem_handle_t *handle_out)
{
    uint64_t first = emu_page_down(md->addr);
    uint64_t n_pages = (emu_page_up(md->addr + md->length_bytes) - first) / EMU_PAGE_BYTES;
    struct gnii_handle_fields fields = {
        .base_va = first,
        .n_pages = (uint32_t)(n_pages < UINT32_MAX ? n_pages : UINT32_MAX),
        .mdh = md->is_virtual ? md->vmdh : md->mdh,
        .generation = md->is_virtual ? 0 : md->generation,
        .page_shift = 12,
        .flags = handle_flags_of(md, flags),
    };

    return gnii_handle_encode(&fields, handle_out);
}

static uint32_t request_flags_of(const struct gnii_md *md)
{
    return (md->is_read_only ? EMU_MD_READ_ONLY : 0) | (md->is_mapped ? EMU_MD_MAPPED : 0) |
           (md->is_virtual ? EMU_MD_VMDH : 0) | (md->is_reserved ? EMU_MD_RESERVED : 0) |
           (md->segments ? EMU_MD_SEGMENTED : 0) | (md->is_dedicated ? EMU_MD_DEDICATED : 0) |
           (md->is_gart ? EMU_MD_GART : 0) | (md->park != GNII_NO_PARK ? EMU_MD_PARKS : 0);
}

/* To the job's look-ups and the NIC's list. */
static void show(struct gnii_nic *nic, struct gnii_md *md)
{
    struct gnii_job *job = nic->job;

    LIST_INSERT_HEAD(&nic->mds, md, link);
    pthread_mutex_lock(&job->lock);
    job->mds[md->mdh] = md;
    LIST_INSERT_HEAD(&job->live, md, job_link);
    if (md->is_virtual)
        job->virtual_mdhs[md->vmdh] = md->mdh;
    atomic_fetch_add_explicit(&job->changes, 1, memory_order_release);
    pthread_mutex_unlock(&job->lock);
}

/* All of a region is where peers can map it. */
static bool make_all_mappable(struct gnii_nic *nic, const struct gnii_md *md)
{
    bool is_mapped = true;

    if (md->is_reserved || is_cma_only())
        return false; /* a reserved region's pages come later */
    if (!md->segments)
        return make_mappable(nic, NULL, md->addr, md->length_bytes);
    for (uint32_t i = 0; i < md->n_segments; i++)
        is_mapped = make_mappable(nic, NULL, md->segments[i][0], md->segments[i][1]) && is_mapped;
    return is_mapped;
}

/* With the best method there is. */
static int register_at_emunic(struct gnii_nic *nic, struct gnii_md *md, struct emu_msg_memory *memory)
{
    md->is_mapped = make_all_mappable(nic, md);
    if (!md->is_virtual && !md->is_reserved && !md->segments)
        md->park = gnii_parked_reserve(nic);
    memory->flags = request_flags_of(md);
    if (md->park != GNII_NO_PARK)
        memory->vmdh = (uint32_t)md->park;
    if (!md->is_mapped && !md->segments && !md->is_reserved && !is_cma_only() &&
        emu_port_mem_register_shared(&nic->port, memory) == 0)
        return 0;
    return emu_port_mem_request(&nic->port, EMU_MSG_MEM_REGISTER, memory);
}

/* Again when what is parked has made room. Then the park, if emunic has given it one, gets its generation. */
static int register_with_room(struct gnii_nic *nic, struct gnii_md *md, struct emu_msg_memory *memory)
{
    struct emu_msg_memory again = *memory;
    int r = register_at_emunic(nic, md, memory);

    if (r < 0 && r != -EINVAL && !LIST_EMPTY(&nic->parked.mds)) {
        gnii_parked_release(nic, md->park);
        md->park = GNII_NO_PARK;
        gnii_parked_give_back(nic);
        *memory = again;
        r = register_at_emunic(nic, md, memory);
    }
    if (r < 0 || (memory->flags & EMU_MD_PARKS) == 0) {
        gnii_parked_release(nic, md->park);
        md->park = GNII_NO_PARK;
    } else {
        emu_park_give(&nic->port, (uint32_t)md->park, memory->generation);
    }
    return r;
}

/* NIC lock held: the segments and their registration are several requests. */
static int register_md(struct gnii_nic *nic, struct gnii_md *md, uint32_t cq, uint32_t flags, uint32_t vmdh_index)
{
    struct emu_msg_memory memory = {
        .addr = md->addr, .length_bytes = md->segments ? 0 : md->length_bytes, .cq = cq, .vmdh = vmdh_index
    };
    int r = 0;

    if (md->segments)
        r = emu_port_mem_segments(&nic->port, (const uint64_t(*)[2])md->segments, md->n_segments);
    if (r == 0)
        r = register_with_room(nic, md, &memory);
    if (r < 0)
        return r;
    md->mdh = memory.mdh;
    md->generation = md->registered_generation = memory.generation;
    md->vmdh = (uint16_t)(memory.vmdh % EMU_MDH_COUNT);
    r = make_handle(md, flags, &md->handle);
    if (r < 0) {
        gnii_md_deregister(nic, md);
        return r;
    }
    show(nic, md);
    return 0;
}

static void free_md(struct gnii_md *md)
{
    free(md->segments);
    free(md);
}

/* The call overrides the CDM; of two opposite wishes the stricter one counts. */
static bool wants_dedicated(const struct gnii_nic *nic, uint32_t flags)
{
    if (flags & (GNI_MEM_MDD_SHARED | GNI_MEM_MDD_DEDICATED))
        return (flags & GNI_MEM_MDD_DEDICATED) != 0;
    return (nic->modes & GNI_CDM_MODE_MDD_DEDICATED) != 0;
}

/* What registering a region and registering segments have in common. */
struct registration {
    struct gnii_nic *nic;
    const struct gnii_cq *cq; /* of the events of peers, or NULL */
    uint32_t flags;
    uint32_t vmdh_index;
};

/* False: the handles, or the two together, are none of ours. */
static bool find_objects(struct registration *r, gni_nic_handle_t nic_hndl, gni_cq_handle_t dst_cq_hndl)
{
    r->nic = gnii_nic_find(nic_hndl);
    r->cq = dst_cq_hndl ? gnii_cq_find(dst_cq_hndl) : NULL;
    return r->nic && (!dst_cq_hndl || (r->cq && r->cq->nic == r->nic));
}

static uint32_t queue_of(const struct registration *reg)
{
    return reg->cq && (reg->cq->mode & GNI_CQ_UNMANAGED) == 0 ? reg->cq->index : EMU_CQ_NONE;
}

/* Takes md over. The outcome of a registration whose arguments and pages are in order. */
static gni_return_t finish_registration(const struct registration *reg, struct gnii_md *md, gni_mem_handle_t *mem_hndl)
{
    struct gnii_nic *nic = reg->nic;
    uint32_t flags = reg->flags;
    uint32_t cq_index = queue_of(reg);
    int r;

    md->nic = nic;
    md->flags = flags;
    md->park = GNII_NO_PARK;
    md->dst_cq = cq_index;
    md->is_read_only = (flags & GNI_MEM_READ_ONLY) != 0;
    md->is_virtual = (flags & GNI_MEM_USE_VMDH) != 0;
    md->is_updatable = md->is_reserved = (flags & GNI_MEM_RESERVE_REGION) != 0;
    md->is_dedicated = wants_dedicated(nic, flags);
    md->is_gart = nic->is_gemini && (flags & GNI_MEM_USE_GART) != 0;
    emu_biased_lock(&nic->lock);
    r = register_md(nic, md, cq_index, flags, md->is_virtual ? reg->vmdh_index : EMU_VMDH_ANY);
    emu_biased_unlock(&nic->lock);
    if (r < 0) {
        free_md(md);
        return gnii_rc(GNII_CALL_CREATE, r);
    }
    *mem_hndl = md->handle;
    return GNI_RC_SUCCESS;
}

/* Are the pages of what was parked where it says, or can be brought there? */
static bool brings_pages(struct gnii_nic *nic, const struct gnii_md *md)
{
    if (md->is_mapped && is_cma_only())
        return false;
    if (gnii_parked_is_in_place(nic, md))
        return true;
    /* Where that says yes the pages are there, to be read and written. */
    return md->is_mapped && make_mappable(nic, gnii_parked_maps(nic), md->addr, md->length_bytes);
}

static uint16_t next_generation(const struct gnii_md *md)
{
    return (uint16_t)(md->generation % EMU_MD_GENERATION_MAX + 1);
}

/* The same registration once more, if it is parked: under a new generation. */
static bool register_again(const struct registration *reg, uint64_t address, uint64_t length,
                           gni_mem_handle_t *mem_hndl)
{
    const struct gnii_parked_wish wish = { address, length, reg->flags, queue_of(reg) };
    struct gnii_nic *nic = reg->nic;
    struct gnii_md *md;
    bool is_good;

    emu_biased_lock(&nic->lock);
    md = gnii_parked_take(nic, &wish);
    /* All generations were used: another number has others. */
    is_good = md && next_generation(md) != md->registered_generation && brings_pages(nic, md);
    if (is_good) {
        md->generation = next_generation(md);
        is_good = make_handle(md, md->flags, &md->handle) == 0;
    }
    if (is_good) {
        emu_park_give(&nic->port, (uint32_t)md->park, md->generation);
        show(nic, md);
        *mem_hndl = md->handle;
    } else if (md) {
        gnii_parked_deregister(nic, md);
    }
    emu_biased_unlock(&nic->lock);
    return is_good;
}

static gni_return_t register_memory(const struct registration *reg, uint64_t address, uint64_t length,
                                    gni_mem_handle_t *mem_hndl)
{
    struct gnii_md *md;
    int r = 0;

    if (length == 0 || address + length < address || (reg->flags & ~KNOWN_FLAGS) != 0)
        return GNI_RC_INVALID_PARAM;
    if (atomic_load_explicit(&reg->nic->parked.n, memory_order_relaxed) > 0 &&
        register_again(reg, address, length, mem_hndl))
        return GNI_RC_SUCCESS;
    if ((reg->flags & GNI_MEM_RESERVE_REGION) == 0)
        r = check_pages(address, length, (reg->flags & GNI_MEM_READ_ONLY) == 0);
    if (r < 0)
        return gnii_rc(GNII_CALL_PLAIN, r);
    md = calloc(1, sizeof(*md));
    if (!md)
        return GNI_RC_ERROR_NOMEM;
    md->addr = address;
    md->length_bytes = length;
    return finish_registration(reg, md, mem_hndl);
}

static struct gnii_md *find_own(struct gnii_nic *nic, const gni_mem_handle_t *handle)
{
    struct gnii_handle_fields fields;
    struct gnii_md *md;

    if (gnii_handle_decode(handle, &fields) < 0)
        return NULL;
    LIST_FOREACH(md, &nic->mds, link) {
        if (is_named(md, &fields))
            return md;
    }
    return NULL;
}

/* The reserved region that an update means: by virtual index, or by its handle. */
static struct gnii_md *find_reserved(struct gnii_nic *nic, uint32_t vmdh_index, const gni_mem_handle_t *handle)
{
    struct gnii_md *md;

    if (vmdh_index == (uint32_t)-1) {
        md = find_own(nic, handle);
        return md && md->is_updatable ? md : NULL;
    }
    LIST_FOREACH(md, &nic->mds, link) {
        if (md->is_updatable && md->is_virtual && md->vmdh == vmdh_index)
            return md;
    }
    return NULL;
}

/* NIC lock held. */
static int update_region(struct gnii_nic *nic, uint64_t address, uint64_t length, uint32_t vmdh_index,
                         gni_mem_handle_t *handle)
{
    struct gnii_md *md = find_reserved(nic, vmdh_index, handle);
    struct emu_msg_memory memory = { .addr = address, .length_bytes = length };
    int r;

    if (!md || address < md->addr || length > md->length_bytes || address - md->addr > md->length_bytes - length)
        return -EINVAL;
    r = check_pages(address, length, !md->is_read_only);
    if (r < 0)
        return r;
    memory.mdh = md->mdh;
    memory.generation = md->registered_generation;
    /* How a region is reached is settled when it becomes live: mapped only if it is there as a whole. */
    if (md->is_reserved && length == md->length_bytes && !is_cma_only() && make_mappable(nic, NULL, address, length))
        memory.flags = EMU_MD_MAPPED;
    r = emu_port_mem_request(&nic->port, EMU_MSG_MEM_UPDATE, &memory);
    if (r < 0)
        return r;
    pthread_mutex_lock(&nic->job->lock);
    if (md->is_reserved)
        md->is_mapped = (memory.flags & EMU_MD_MAPPED) != 0;
    md->is_reserved = false;
    atomic_fetch_add_explicit(&nic->job->changes, 1, memory_order_release);
    pthread_mutex_unlock(&nic->job->lock);
    *handle = md->handle;
    return 0;
}

static gni_return_t update_memory(const struct registration *reg, uint64_t address, uint64_t length,
                                  gni_mem_handle_t *mem_hndl)
{
    int r;

    if (length == 0 || address + length < address || reg->cq ||
        (reg->flags & ~(KNOWN_FLAGS | GNI_MEM_UPDATE_REGION)) != 0 || (reg->flags & GNI_MEM_RESERVE_REGION) != 0)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&reg->nic->lock);
    r = update_region(reg->nic, address, length, reg->vmdh_index, mem_hndl);
    emu_biased_unlock(&reg->nic->lock);
    return gnii_rc(GNII_CALL_CREATE, r);
}

gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length, gni_cq_handle_t dst_cq_hndl,
                             uint32_t flags, uint32_t vmdh_index, gni_mem_handle_t *mem_hndl)
{
    struct registration reg = { .flags = flags, .vmdh_index = vmdh_index };
    struct emu_cancel cancel;
    gni_return_t rc;

    if (!mem_hndl || !find_objects(&reg, nic_hndl, dst_cq_hndl))
        return GNI_RC_INVALID_PARAM;
    /* Looking at and moving pages uses files: no place to lose the thread. */
    emu_cancel_hold(&cancel);
    if (flags & GNI_MEM_UPDATE_REGION)
        rc = update_memory(&reg, address, length, mem_hndl);
    else
        rc = register_memory(&reg, address, length, mem_hndl);
    emu_cancel_release(&cancel);
    return rc;
}

/* Its handle is no longer known. */
static void hide(struct gnii_nic *nic, struct gnii_md *md)
{
    pthread_mutex_lock(&nic->job->lock);
    if (nic->job->mds[md->mdh] == md)
        nic->job->mds[md->mdh] = NULL;
    LIST_REMOVE(md, job_link);
    if (md->is_virtual)
        nic->job->virtual_mdhs[md->vmdh] = 0;
    atomic_fetch_add_explicit(&nic->job->changes, 1, memory_order_release);
    pthread_mutex_unlock(&nic->job->lock);
    LIST_REMOVE(md, link);
}

void gnii_md_deregister(struct gnii_nic *nic, const struct gnii_md *md)
{
    emu_port_mem_deregister_latest(&nic->port, md->mdh, md->registered_generation, md->generation);
}

gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t *mem_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct gnii_md *md;

    if (!nic || !mem_hndl)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&nic->lock);
    md = find_own(nic, mem_hndl);
    if (md) {
        hide(nic, md);
        if (!gnii_parked_put(nic, md)) {
            /* When the reply is here no transfer touches the memory any more; if emunic has gone, none ever will. */
            gnii_md_deregister(nic, md);
            gnii_parked_release(nic, md->park);
            free_md(md);
        }
    }
    emu_biased_unlock(&nic->lock);
    return md ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

void gnii_md_drop_all(struct gnii_nic *nic)
{
    struct gnii_md *md;

    while ((md = LIST_FIRST(&nic->mds))) {
        hide(nic, md);
        free_md(md);
    }
    gnii_parked_forget(nic);
}

/* A NIC with something parked, counted; NULL: none. */
static struct gnii_nic *nic_with_parked(void)
{
    struct gnii_nic *found = NULL;
    struct gnii_nic *nic;
    struct gnii_job *job;

    pthread_mutex_lock(&jobs_lock);
    LIST_FOREACH(job, &jobs, link) {
        LIST_FOREACH(nic, &job->nics, job_link) {
            if (!found && nic->port.owner == getpid() && atomic_load_explicit(&nic->parked.n, memory_order_relaxed) > 0)
                found = gnii_object_get(GNII_KIND_NIC, nic->handle);
        }
    }
    pthread_mutex_unlock(&jobs_lock);
    return found;
}

void gnii_md_give_back_all(void)
{
    struct gnii_nic *nic;

    while ((nic = nic_with_parked())) {
        emu_biased_lock(&nic->lock);
        gnii_parked_give_back(nic);
        emu_biased_unlock(&nic->lock);
        gnii_nic_put(nic);
    }
}

/* ---- segments ---- */

/* A description of the segments, each rounded out to whole pages in the region. *result_out tells why there is none. */
static struct gnii_md *describe_segments(const gni_mem_segment_t *segments, uint32_t n, uint32_t flags, int *result_out)
{
    struct gnii_md *md = calloc(1, sizeof(*md));

    *result_out = -ENOMEM;
    if (!md)
        return NULL;
    md->segments = calloc(n, sizeof(*md->segments));
    if (!md->segments)
        goto err_md;
    md->n_segments = n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t addr = segments[i].address;
        uint64_t length_bytes = segments[i].length;

        *result_out = -EINVAL;
        if (length_bytes == 0 || addr + length_bytes < addr)
            goto err_md;
        *result_out = check_pages(addr, length_bytes, (flags & GNI_MEM_READ_ONLY) == 0);
        if (*result_out < 0)
            goto err_md;
        md->segments[i][0] = addr;
        md->segments[i][1] = length_bytes;
        md->length_bytes += emu_page_up(addr + length_bytes) - emu_page_down(addr);
    }
    return md;

err_md:
    free_md(md);
    return NULL;
}

static gni_return_t register_segments(const struct registration *reg, const gni_mem_segment_t *segments, uint32_t n,
                                      gni_mem_handle_t *mem_hndl)
{
    struct gnii_md *md;
    int r;

    if (!segments || n == 0 || (reg->flags & ~(KNOWN_FLAGS & ~(uint32_t)GNI_MEM_RESERVE_REGION)) != 0)
        return GNI_RC_INVALID_PARAM;
    for (uint32_t i = 0; i < n; i++) {
        if (segments[i].length == 0)
            return GNI_RC_INVALID_PARAM;
    }
    if (n > EMU_SEGMENTS_MAX)
        return GNI_RC_ERROR_RESOURCE;
    md = describe_segments(segments, n, reg->flags, &r);
    return md ? finish_registration(reg, md, mem_hndl) : gnii_rc(GNII_CALL_PLAIN, r);
}

gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t *mem_segments, uint32_t segments_cnt,
                                     gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t vmdh_index,
                                     gni_mem_handle_t *mem_hndl)
{
    struct registration reg = { .flags = flags, .vmdh_index = vmdh_index };
    struct emu_cancel cancel;
    gni_return_t rc;

    if (!mem_hndl || !find_objects(&reg, nic_hndl, dst_cq_hndl))
        return GNI_RC_INVALID_PARAM;
    emu_cancel_hold(&cancel);
    rc = register_segments(&reg, mem_segments, segments_cnt, mem_hndl);
    emu_cancel_release(&cancel);
    return rc;
}

/* ---- virtual handles and questions about handles ---- */

gni_return_t GNI_SetMddResources(gni_nic_handle_t nic_hndl, uint32_t num_entries)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct emu_msg msg = { .type = EMU_MSG_VMDH_RESERVE, .memory = { .vmdh = num_entries } };
    int r;

    if (!nic || num_entries == 0)
        return GNI_RC_INVALID_PARAM;
    r = emu_port_request(&nic->port, &msg);
    return gnii_rc(GNII_CALL_RESERVE_MDDS, r);
}

gni_return_t GNI_MemHndlQueryAttr(gni_mem_handle_t *mem_hndl, gni_mem_handle_attr_t attr, int *yesno)
{
    if (!mem_hndl || !yesno || attr < GNI_MEMHNDL_ATTR_READONLY || attr > GNI_MEMHNDL_ATTR_CLONE)
        return GNI_RC_INVALID_PARAM;
    if (gnii_handle_is_null(mem_hndl) || !gnii_handle_crc_is_good(mem_hndl))
        return GNI_RC_INVALID_PARAM;
    *yesno = gnii_handle_has_attr(mem_hndl, attr);
    return GNI_RC_SUCCESS;
}

/* A region of this process with that virtual handle, whichever NIC handle it was registered on, is live. */
static bool is_live_virtual(const struct gnii_handle_fields *fields)
{
    struct gnii_job *job;
    bool is_live = false;

    pthread_mutex_lock(&jobs_lock);
    LIST_FOREACH(job, &jobs, link) {
        const struct gnii_md *md;

        pthread_mutex_lock(&job->lock);
        md = md_of(job, fields);
        is_live = is_live || (md && !md->is_reserved && fields->base_va == emu_page_down(md->addr));
        pthread_mutex_unlock(&job->lock);
    }
    pthread_mutex_unlock(&jobs_lock);
    return is_live;
}

gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t *src_mem_hndl, uint32_t vmdh_index, gni_mem_handle_t *dst_mem_hndl)
{
    struct gnii_handle_fields fields;

    if (!src_mem_hndl || !dst_mem_hndl || !gnii_handle_crc_is_good(src_mem_hndl) ||
        gnii_handle_decode(src_mem_hndl, &fields) < 0 || (fields.flags & GNII_HNDL_VMDH) == 0 ||
        vmdh_index >= EMU_MDH_COUNT)
        return GNI_RC_INVALID_PARAM;
    if (!is_live_virtual(&fields))
        return GNI_RC_INVALID_STATE;
    fields.mdh = (uint16_t)vmdh_index;
    return gnii_rc(GNII_CALL_PLAIN, gnii_handle_encode(&fields, dst_mem_hndl));
}

/* The NIC handle whose connection to emunic, which stands for the device file, has that descriptor; counted. */
static struct gnii_nic *nic_of_descriptor(int fd)
{
    struct gnii_nic *nic = NULL;
    struct gnii_job *job;

    pthread_mutex_lock(&jobs_lock);
    LIST_FOREACH(job, &jobs, link) {
        LIST_FOREACH(nic, &job->nics, job_link) {
            if (nic->port.session.fd == fd && !atomic_load(&nic->port.session.is_stale))
                break;
        }
        if (nic)
            break;
    }
    if (nic)
        nic = gnii_object_get(GNII_KIND_NIC, nic->handle);
    pthread_mutex_unlock(&jobs_lock);
    return nic;
}

/* NIC lock held. */
static gni_return_t find_next(struct gnii_nic *nic, const gni_mem_handle_t *handle, struct gnii_md **md_out)
{
    struct gnii_md *md;

    if (gnii_handle_is_null(handle) || !gnii_handle_crc_is_good(handle)) {
        md = LIST_FIRST(&nic->mds);
    } else {
        md = find_own(nic, handle);
        if (!md)
            return GNI_RC_INVALID_STATE;
        md = LIST_NEXT(md, link);
    }
    *md_out = md;
    return md ? GNI_RC_SUCCESS : GNI_RC_NO_MATCH;
}

gni_return_t GNI_MemQueryHndls(gni_nic_handle_t nic_hndl, int fd, gni_mem_handle_t *mem_hndl, uint64_t *address,
                               uint64_t *length)
{
    struct gnii_nic *nic;
    struct gnii_md *md;
    gni_return_t rc;

    if (!mem_hndl || !address || !length)
        return GNI_RC_INVALID_PARAM;
    *address = 0;
    *length = 0;
    if (nic_hndl && fd > 0) /* one of the two; programs that pass a handle leave 0 or -1 there */
        return GNI_RC_INVALID_PARAM;
    nic = nic_hndl ? gnii_object_get(GNII_KIND_NIC, nic_hndl) : nic_of_descriptor(fd);
    if (!nic)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&nic->lock);
    rc = find_next(nic, mem_hndl, &md);
    if (rc == GNI_RC_SUCCESS) {
        *mem_hndl = md->handle;
        *address = md->addr;
        *length = md->length_bytes;
    }
    emu_biased_unlock(&nic->lock);
    gnii_nic_put(nic);
    return rc;
}
