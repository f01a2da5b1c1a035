/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory registration.
 *
 * Every call makes a memory domain of its own on the emulated NIC, named by (node, MDH, generation). The process
 * remembers its registrations per communication domain, so that a handle made on one NIC handle serves as local handle
 * on all of them. Addresses are virtual addresses; the handle carries the page-aligned base (Appendix B).
 *
 * Pages are looked at once, at registration, in /proc/self/maps: absent ones give INVALID_PARAM, ones that forbid
 * what the flags promise PERMISSION_ERROR. Content is not touched and nothing is pinned.
 * Source: spec ugni.md 4.6 and Appendix B.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/client/space.h"
#include "libugni/src/ugni.h"

#define PAGE_MASK 4095ull
#define ORDERING_FLAGS                                                                                   \
    (GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH | GNI_MEM_RELAXED_PI_ORDERING | GNI_MEM_MDD_SHARED |   \
     GNI_MEM_MDD_DEDICATED | GNI_MEM_USE_GART | GNI_MEM_PHYS_CONT | GNI_MEM_MDD_CLONE)
#define KNOWN_FLAGS (ORDERING_FLAGS | GNI_MEM_READ_ONLY)

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, gnii_job) jobs = LIST_HEAD_INITIALIZER(jobs);

/* ---- jobs ---- */

struct gnii_job *gnii_job_get(uint32_t cookie, uint32_t nid)
{
    struct gnii_job *job;

    pthread_mutex_lock(&jobs_lock);
    LIST_FOREACH(job, &jobs, link) {
        if (job->cookie == cookie && job->nid == nid)
            break;
    }
    if (!job) {
        job = calloc(1, sizeof(*job));
        if (job) {
            job->cookie = cookie;
            job->nid = nid;
            pthread_mutex_init(&job->lock, NULL);
            LIST_INSERT_HEAD(&jobs, job, link);
        }
    }
    if (job)
        job->n_nics++;
    pthread_mutex_unlock(&jobs_lock);
    return job;
}

void gnii_job_put(struct gnii_job *job)
{
    pthread_mutex_lock(&jobs_lock);
    if (--job->n_nics == 0) {
        LIST_REMOVE(job, link);
        pthread_mutex_destroy(&job->lock);
        free(job);
    }
    pthread_mutex_unlock(&jobs_lock);
}

/* ---- look-up ---- */

static bool covers(const struct gnii_md *md, uint64_t addr, uint64_t length_bytes)
{
    uint64_t first = md->addr & ~PAGE_MASK;
    uint64_t end = (md->addr + md->length_bytes + PAGE_MASK) & ~PAGE_MASK;

    return addr >= first && addr <= end && length_bytes <= end - addr;
}

const struct gnii_md *gnii_md_find(struct gnii_nic *nic, const gni_mem_handle_t *handle, uint64_t addr,
                                   uint64_t length_bytes)
{
    struct gnii_handle_fields fields;
    const struct gnii_md *md;

    if (gnii_handle_decode(handle, &fields) < 0 || fields.mdh >= EMU_MDH_COUNT)
        return NULL;
    pthread_mutex_lock(&nic->job->lock);
    md = nic->job->mds[fields.mdh];
    if (md && ((fields.generation != 0 && fields.generation != md->generation) ||
               fields.base_va != (md->addr & ~PAGE_MASK) || !covers(md, addr, length_bytes)))
        md = NULL;
    pthread_mutex_unlock(&nic->job->lock);
    return md;
}

bool gnii_local_find(struct gnii_nic *nic, const gni_mem_handle_t *handle, struct gnii_local *local_out)
{
    struct gnii_handle_fields fields;
    const struct gnii_md *md;
    bool is_found;

    if (gnii_handle_decode(handle, &fields) < 0 || fields.mdh >= EMU_MDH_COUNT)
        return false;
    pthread_mutex_lock(&nic->job->lock);
    md = nic->job->mds[fields.mdh];
    is_found = md && (fields.generation == 0 || fields.generation == md->generation) &&
               fields.base_va == (md->addr & ~PAGE_MASK);
    if (is_found)
        *local_out = (struct gnii_local){
            .changes = atomic_load_explicit(&nic->job->changes, memory_order_relaxed),
            .qword1 = handle->qword1,
            .qword2 = handle->qword2,
            .first = md->addr & ~PAGE_MASK,
            .end = (md->addr + md->length_bytes + PAGE_MASK) & ~PAGE_MASK,
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
    md = nic->job->mds[mdh % EMU_MDH_COUNT];
    is_live = md && md->generation == generation;
    pthread_mutex_unlock(&nic->job->lock);
    return is_live;
}

/* ---- pages ---- */

/* 0, -EINVAL: pages are missing; -EPERM: pages forbid what is wanted. */
static int check_pages(uint64_t addr, uint64_t length_bytes, bool needs_write)
{
    uint64_t at = addr & ~PAGE_MASK;
    uint64_t end = addr + length_bytes;
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int r = -EINVAL;

    if (!maps)
        return 0;       /* cannot tell; the NIC finds out at the first access */
    while (fgets(line, sizeof(line), maps)) {
        unsigned long long first;
        unsigned long long last;
        char access[5];

        if (sscanf(line, "%llx-%llx %4s", &first, &last, access) != 3 || last <= at)
            continue;
        if (first > at)
            break;
        if (access[0] != 'r' || (needs_write && access[1] != 'w')) {
            r = -EPERM;
            break;
        }
        at = last;
        if (at >= end) {
            r = 0;
            break;
        }
    }
    fclose(maps);
    return r;
}

/* ---- method ---- */

/* Does a live registration that is written by system calls touch these pages? Then they must stay where they are. */
static bool touches_private(uint64_t addr, uint64_t length_bytes)
{
    uint64_t first = addr & ~PAGE_MASK;
    uint64_t end = (addr + length_bytes + PAGE_MASK) & ~PAGE_MASK;
    struct gnii_job *job;
    bool touches = false;

    pthread_mutex_lock(&jobs_lock);
    LIST_FOREACH(job, &jobs, link) {
        pthread_mutex_lock(&job->lock);
        for (uint32_t mdh = 0; mdh < EMU_MDH_COUNT && !touches; mdh++) {
            const struct gnii_md *md = job->mds[mdh];

            touches = md && !md->is_mapped && !md->is_read_only && md->addr < end && md->addr + md->length_bytes > first;
        }
        pthread_mutex_unlock(&job->lock);
    }
    pthread_mutex_unlock(&jobs_lock);
    return touches;
}

static bool is_memory_setting(const char *value)
{
    const char *wanted = getenv("EMUNIC_MEMORY");

    return wanted && strcmp(wanted, value) == 0;
}

/* Moves the pages to where peers can map them, if they are not there and it may be done. */
static bool make_mappable(struct gnii_nic *nic, uint64_t addr, uint64_t length_bytes)
{
    bool may_adopt = is_memory_setting("adopt") || length_bytes <= nic->port.settings.adopt_limit_bytes;

    if (may_adopt && touches_private(addr, length_bytes))
        may_adopt = false;
    return emu_space_cover(&nic->port, addr, length_bytes, may_adopt);
}

/* ---- calls ---- */

static int make_handle(const struct gnii_md *md, gni_mem_handle_t *handle_out)
{
    uint64_t first = md->addr & ~PAGE_MASK;
    uint64_t n_pages = ((md->addr + md->length_bytes + PAGE_MASK) & ~PAGE_MASK) - first;
    struct gnii_handle_fields fields = {
        .base_va = first,
        .n_pages = (uint32_t)(n_pages / 4096 < UINT32_MAX ? n_pages / 4096 : UINT32_MAX),
        .mdh = md->mdh,
        .generation = md->generation,
        .page_shift = 12,
        .flags = md->is_read_only ? GNII_HNDL_READONLY : 0,
    };

    return gnii_handle_encode(&fields, handle_out);
}

/* With the best method there is. */
static int register_at_emunic(struct gnii_nic *nic, struct gnii_md *md, uint32_t cq)
{
    uint32_t flags = md->is_read_only ? EMU_MD_READ_ONLY : 0;
    bool is_private = is_memory_setting("cma");

    md->is_mapped = !is_private && make_mappable(nic, md->addr, md->length_bytes);
    if (md->is_mapped)
        flags |= EMU_MD_MAPPED;
    else if (!is_private && emu_port_mem_register_shared(&nic->port, md->addr, md->length_bytes, flags, cq, &md->mdh,
                                                         &md->generation) == 0)
        return 0;
    return emu_port_mem_register(&nic->port, md->addr, md->length_bytes, flags, cq, &md->mdh, &md->generation);
}

static int register_md(struct gnii_nic *nic, struct gnii_md *md, uint32_t cq)
{
    int r;

    r = register_at_emunic(nic, md, cq);
    if (r < 0)
        return r;
    r = make_handle(md, &md->handle);
    if (r < 0) {
        emu_port_mem_deregister(&nic->port, md->mdh, md->generation);
        return r;
    }
    pthread_mutex_lock(&nic->job->lock);
    nic->job->mds[md->mdh] = md;
    atomic_fetch_add_explicit(&nic->job->changes, 1, memory_order_release);
    pthread_mutex_unlock(&nic->job->lock);
    LIST_INSERT_HEAD(&nic->mds, md, link);
    return 0;
}

static gni_return_t register_memory(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length,
                                    gni_cq_handle_t dst_cq_hndl, uint32_t flags, gni_mem_handle_t *mem_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct gnii_cq *cq = dst_cq_hndl ? gnii_cq_find(dst_cq_hndl) : NULL;
    struct gnii_md *md;
    uint32_t cq_index = EMU_CQ_NONE;
    int r;

    if (!nic || !mem_hndl || length == 0 || address + length < address || (flags & ~KNOWN_FLAGS) != 0)
        return GNI_RC_INVALID_PARAM;
    if (dst_cq_hndl && (!cq || cq->nic != nic))
        return GNI_RC_INVALID_PARAM;
    r = check_pages(address, length, (flags & GNI_MEM_READ_ONLY) == 0);
    if (r < 0)
        return gnii_rc(r);
    md = calloc(1, sizeof(*md));
    if (!md)
        return GNI_RC_ERROR_NOMEM;
    *md = (struct gnii_md){ .nic = nic, .addr = address, .length_bytes = length,
                            .is_read_only = (flags & GNI_MEM_READ_ONLY) != 0 };
    if (cq && (cq->mode & GNI_CQ_UNMANAGED) == 0)
        cq_index = cq->index;
    gnii_lock(&nic->lock);
    r = register_md(nic, md, cq_index);
    gnii_unlock(&nic->lock);
    if (r < 0) {
        free(md);
        return r == -ENETDOWN ? GNI_RC_ERROR_RESOURCE : gnii_rc(r);
    }
    *mem_hndl = md->handle;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length, gni_cq_handle_t dst_cq_hndl,
                             uint32_t flags, uint32_t vmdh_index, gni_mem_handle_t *mem_hndl)
{
    struct emu_cancel cancel;
    gni_return_t rc;

    (void)vmdh_index;       /* only with GNI_MEM_USE_VMDH, which needs GNI_SetMddResources() first */
    /* Looking at and moving pages uses files: no place to lose the thread. */
    emu_cancel_hold(&cancel);
    rc = register_memory(nic_hndl, address, length, dst_cq_hndl, flags, mem_hndl);
    emu_cancel_release(&cancel);
    return rc;
}

static struct gnii_md *find_own(struct gnii_nic *nic, const gni_mem_handle_t *handle)
{
    struct gnii_handle_fields fields;
    struct gnii_md *md;

    if (gnii_handle_decode(handle, &fields) < 0)
        return NULL;
    LIST_FOREACH(md, &nic->mds, link) {
        if (md->mdh == fields.mdh && (fields.generation == 0 || fields.generation == md->generation))
            return md;
    }
    return NULL;
}

static void drop(struct gnii_nic *nic, struct gnii_md *md)
{
    pthread_mutex_lock(&nic->job->lock);
    if (nic->job->mds[md->mdh] == md)
        nic->job->mds[md->mdh] = NULL;
    atomic_fetch_add_explicit(&nic->job->changes, 1, memory_order_release);
    pthread_mutex_unlock(&nic->job->lock);
    LIST_REMOVE(md, link);
    free(md);
}

gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t *mem_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct gnii_md *md;

    if (!nic || !mem_hndl)
        return GNI_RC_INVALID_PARAM;
    gnii_lock(&nic->lock);
    md = find_own(nic, mem_hndl);
    if (md) {
        /* When the reply is here no transfer touches the memory any more; if emunic has gone, none ever will. */
        emu_port_mem_deregister(&nic->port, md->mdh, md->generation);
        drop(nic, md);
    }
    gnii_unlock(&nic->lock);
    return md ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

void gnii_md_drop_all(struct gnii_nic *nic)
{
    while (!LIST_EMPTY(&nic->mds))
        drop(nic, LIST_FIRST(&nic->mds));
}

gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t *mem_segments, uint32_t segments_cnt,
                                     gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t vmdh_index,
                                     gni_mem_handle_t *mem_hndl)
{
    if (!gnii_nic_find(nic_hndl) || !mem_segments || segments_cnt == 0 || !mem_hndl)
        return GNI_RC_INVALID_PARAM;
    for (uint32_t i = 0; i < segments_cnt; i++) {
        if (mem_segments[i].length == 0)
            return GNI_RC_INVALID_PARAM;
    }
    (void)dst_cq_hndl;
    (void)flags;
    (void)vmdh_index;
    /* Regions of several segments are not provided: as on a device without translation entries left. */
    return GNI_RC_ERROR_RESOURCE;
}

gni_return_t GNI_SetMddResources(gni_nic_handle_t nic_hndl, uint32_t num_entries)
{
    if (!gnii_nic_find(nic_hndl) || num_entries == 0)
        return GNI_RC_INVALID_PARAM;
    /* Virtual memory domain handles are not provided: no block of them can be reserved. */
    return GNI_RC_ERROR_NOMEM;
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

gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t *src_mem_hndl, uint32_t vmdh_index, gni_mem_handle_t *dst_mem_hndl)
{
    int is_virtual;

    (void)vmdh_index;
    if (!src_mem_hndl || !dst_mem_hndl ||
        GNI_MemHndlQueryAttr(src_mem_hndl, GNI_MEMHNDL_ATTR_VMDH, &is_virtual) != GNI_RC_SUCCESS || !is_virtual)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_INVALID_STATE;    /* no region with a virtual handle was ever updated */
}

gni_return_t GNI_MemQueryHndls(gni_nic_handle_t nic_hndl, int fd, gni_mem_handle_t *mem_hndl, uint64_t *address,
                               uint64_t *length)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    gni_return_t rc = GNI_RC_SUCCESS;
    struct gnii_md *md;

    if (!mem_hndl || !address || !length)
        return GNI_RC_INVALID_PARAM;
    *address = 0;
    *length = 0;
    /* There is no device file: a NIC is selected by its handle. Nobody's NIC is descriptor 0, so 0 is "none" too. */
    if (!nic || fd > 0)
        return GNI_RC_INVALID_PARAM;
    gnii_lock(&nic->lock);
    if (gnii_handle_is_null(mem_hndl) || !gnii_handle_crc_is_good(mem_hndl)) {
        md = LIST_FIRST(&nic->mds);
    } else {
        md = find_own(nic, mem_hndl);
        if (!md)
            rc = GNI_RC_INVALID_STATE;
        else
            md = LIST_NEXT(md, link);
    }
    if (rc == GNI_RC_SUCCESS && !md)
        rc = GNI_RC_NO_MATCH;
    if (rc == GNI_RC_SUCCESS) {
        *mem_hndl = md->handle;
        *address = md->addr;
        *length = md->length_bytes;
    }
    gnii_unlock(&nic->lock);
    return rc;
}
