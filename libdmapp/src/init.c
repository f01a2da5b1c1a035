/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job: start, end, identity.
 *
 *   down ── dmapp_init ──▶ up, counted ── last dmapp_finalize ──▶ down
 *
 * Start: PMI, then the communication domain whose credentials the launcher has put first into PMI_GNI_PTAG and
 * PMI_GNI_COOKIE, a NIC handle and a source queue; the heap's place is agreed on; both segments are registered and
 * their handles exchanged; the parts start. Every PE goes through the same exchanges whatever happened to it, and
 * each carries the outcome so far, so that all PEs fail together and none waits for one that has given up.
 *
 * The instance id of a PE is not its number but a number of its own range, because programs that use uGNI beside
 * DMAPP take their rank. Nothing here addresses a peer by its instance.
 *
 * PMI: counted by the library; it is left as it was found. Source: spec/dmapp.md 1.2, 4.1, 7.1.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pmi.h>
#include <pmi_cray.h>

#include "emunic/abi/abi.h"
#include "libdmapp/src/attributes.h"
#include "libdmapp/src/request.h"

#define LIBRARY_VERSION 70101 /* of jobinfo: 7.1.1 */
#define INSTANCE_BASE   0x44000000u
#define AREA_ROUND(n)   (((n) + 63) & ~63ull)

struct dmappi_job dmappi_job = { .lock = PTHREAD_MUTEX_INITIALIZER, .heap_fd = -1 };
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

/* What PEs tell each other: before and after they have made their segments. */
struct wish {
    int32_t result;      /* 0, or -errno */
    uint32_t candidates; /* places where the heap could go */
    uint64_t map_bytes;
};

struct self {
    int32_t result;
    uint32_t nic_addr;
    uint32_t instance_id;
    uint32_t reserved;
    uint64_t area_addr;
    struct {
        uint64_t addr;
        uint64_t len_bytes;
        gni_mem_handle_t handle;
    } seg[DMAPPI_SYMMETRIC];
};

/* ---- PMI ---- */

int dmappi_exchange(const void *in, void *out, size_t len_bytes)
{
    size_t record_bytes = sizeof(int32_t) + len_bytes;
    size_t npes = (size_t)dmappi_job.npes;
    uint8_t *record = calloc(npes + 1, record_bytes);
    int32_t pe = dmappi_job.pe;
    int r = -EIO;

    if (!record)
        return -ENOMEM;
    memcpy(record, &pe, sizeof(pe));
    memcpy(record + sizeof(pe), in, len_bytes);
    /* The order is PMI's; so each record says whose it is. */
    if (record_bytes <= INT_MAX && PMI_Allgather(record, record + record_bytes, (int)record_bytes) == PMI_SUCCESS) {
        r = 0;
        for (size_t i = 0; i < npes && r == 0; i++) {
            const uint8_t *from = record + (i + 1) * record_bytes;

            memcpy(&pe, from, sizeof(pe));
            if (pe < 0 || pe >= dmappi_job.npes)
                r = -EIO;
            else
                memcpy((uint8_t *)out + (size_t)pe * len_bytes, from + sizeof(pe), len_bytes);
        }
    }
    free(record);
    return r;
}

int dmappi_barrier(void)
{
    return PMI_Barrier() == PMI_SUCCESS ? 0 : -EIO;
}

/* Have all PEs come as far with success? Collective. */
static int agree(int result)
{
    int32_t mine = result;
    int32_t *all = calloc((size_t)dmappi_job.npes, sizeof(*all));
    int r = all ? dmappi_exchange(&mine, all, sizeof(mine)) : -ENOMEM;

    for (int pe = 0; r == 0 && pe < dmappi_job.npes; pe++)
        r = all[pe];
    free(all);
    return r;
}

static bool first_number(const char *name, uint32_t *number_out)
{
    const char *text = getenv(name);
    char *end;
    long long number;

    if (!text)
        return false;
    number = strtoll(text, &end, 10);
    if (end == text || (*end != '\0' && *end != ':'))
        return false;
    *number_out = (uint32_t)number;
    return true;
}

/* ---- start ---- */

static int start_pmi(void)
{
    int spawned;

    if (PMI_Init(&spawned) != PMI_SUCCESS)
        return -EIO;
    if (PMI_Get_size(&dmappi_job.npes) != PMI_SUCCESS || PMI_Get_rank(&dmappi_job.pe) != PMI_SUCCESS ||
        dmappi_job.npes < 1 || dmappi_job.pe < 0 || dmappi_job.pe >= dmappi_job.npes) {
        PMI_Finalize();
        return -EIO;
    }
    return 0;
}

static int attach(uint32_t *nic_addr_out)
{
    static const uint32_t modes[] = { GNI_CDM_MODE_FMA_DEDICATED, GNI_CDM_MODE_FMA_SHARED };
    gni_nic_device_t type;
    uint32_t cookie;
    uint32_t ptag;

    if (!first_number("PMI_GNI_PTAG", &ptag) || !first_number("PMI_GNI_COOKIE", &cookie))
        return -ENOENT;
    for (unsigned i = 0; i < 2; i++) {
        if (GNI_CdmCreate(INSTANCE_BASE + (uint32_t)dmappi_job.pe, (uint8_t)ptag, cookie,
                          GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_FORK_FULLCOPY | modes[i],
                          &dmappi_job.cdm) != GNI_RC_SUCCESS)
            return -EIO;
        if (GNI_CdmAttach(dmappi_job.cdm, 0, nic_addr_out, &dmappi_job.nic) == GNI_RC_SUCCESS)
            break;
        GNI_CdmDestroy(dmappi_job.cdm);
        dmappi_job.cdm = NULL;
    }
    if (!dmappi_job.cdm)
        return -ENETDOWN;
    if (GNI_GetDeviceType(&type) != GNI_RC_SUCCESS)
        type = GNI_DEVICE_ARIES;
    dmappi_job.hw_version = (int)type;
    /* An entry for each request, and one to spare. */
    return GNI_CqCreate(dmappi_job.nic, dmappi_job.attrs.max_outstanding_nb + 1, 0, GNI_CQ_NOBLOCK, NULL, NULL,
                        &dmappi_job.cq) == GNI_RC_SUCCESS ?
               0 :
               -ENOMEM;
}

static uint64_t areas_bytes(void)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < dmappi_n_parts; i++)
        bytes += dmappi_parts[i]->area_bytes ? AREA_ROUND(dmappi_parts[i]->area_bytes()) : 0;
    return emu_page_up(bytes);
}

/*
 * The queues' geometry is the job's, as its areas are: the most that any PE wants (a PE that leaves the fields
 * uninitialised wants anything). Collective; result as below.
 */
static int agree_on_queues(int result)
{
    struct {
        int32_t result;
        uint32_t depth;
        uint32_t nelems;
    } mine = { result, dmappi_job.attrs.queue_depth, dmappi_job.attrs.queue_nelems }, *all;
    int r;

    all = calloc((size_t)dmappi_job.npes, sizeof(*all));
    r = all ? dmappi_exchange(&mine, all, sizeof(mine)) : -ENOMEM;
    for (int pe = 0; r == 0 && pe < dmappi_job.npes; pe++) {
        r = all[pe].result;
        if (all[pe].depth > dmappi_job.attrs.queue_depth)
            dmappi_job.attrs.queue_depth = all[pe].depth;
        if (all[pe].nelems > dmappi_job.attrs.queue_nelems)
            dmappi_job.attrs.queue_nelems = all[pe].nelems;
    }
    free(all);
    return r;
}

/* Agrees on the heap's place and makes it. Collective; result: how far this PE has come. */
static int make_heap(int result)
{
    struct wish mine = { .result = result };
    uint64_t heap_bytes = 0;
    uint64_t areas = 0;
    struct wish *all;
    int r;

    if (mine.result == 0)
        mine.result = dmappi_sheap_size(&heap_bytes);
    if (mine.result == 0) {
        dmappi_job.sheap_seg.len = heap_bytes;
        areas = areas_bytes();
        mine.map_bytes = areas + heap_bytes;
        mine.candidates = dmappi_heap_candidates(mine.map_bytes);
    }
    all = calloc((size_t)dmappi_job.npes, sizeof(*all));
    r = all ? dmappi_exchange(&mine, all, sizeof(mine)) : -ENOMEM;
    for (int pe = 0; r == 0 && pe < dmappi_job.npes; pe++) {
        r = all[pe].result;
        mine.candidates &= all[pe].candidates;
    }
    free(all);
    return r < 0 ? r : dmappi_heap_make(areas, heap_bytes, mine.candidates);
}

static void learn_peer(struct dmappi_peer *peer, const struct self *s)
{
    peer->nic_addr = s->nic_addr;
    peer->instance_id = s->instance_id;
    peer->area_addr = s->area_addr;
    for (int i = 0; i < DMAPPI_SYMMETRIC; i++) {
        peer->seg[i].addr = s->seg[i].addr;
        peer->seg[i].len_bytes = s->seg[i].len_bytes;
        peer->seg[i].handle = s->seg[i].handle;
    }
}

/* Collective; result as above. */
static int meet_peers(int result, uint32_t nic_addr)
{
    const dmapp_seg_desc_t *own[DMAPPI_SYMMETRIC] = { &dmappi_job.data_seg, &dmappi_job.sheap_seg };
    struct self mine = { .result = result,
                         .nic_addr = nic_addr,
                         .instance_id = INSTANCE_BASE + (uint32_t)dmappi_job.pe,
                         .area_addr = (uint64_t)(uintptr_t)dmappi_job.heap_map };
    struct self *all = calloc((size_t)dmappi_job.npes, sizeof(*all));
    int r;

    for (int i = 0; i < DMAPPI_SYMMETRIC; i++) {
        mine.seg[i].addr = (uint64_t)(uintptr_t)own[i]->addr;
        mine.seg[i].len_bytes = own[i]->len;
        mine.seg[i].handle = own[i]->memhndl;
    }
    r = all ? dmappi_exchange(&mine, all, sizeof(mine)) : -ENOMEM;
    for (int pe = 0; r == 0 && pe < dmappi_job.npes; pe++)
        r = all[pe].result;
    if (r == 0) {
        dmappi_job.peers = calloc((size_t)dmappi_job.npes, sizeof(*dmappi_job.peers));
        r = dmappi_job.peers ? 0 : -ENOMEM;
    }
    for (int pe = 0; r == 0 && pe < dmappi_job.npes; pe++)
        learn_peer(&dmappi_job.peers[pe], &all[pe]);
    free(all);
    return r < 0 ? r : dmappi_segments_connect();
}

static int start_parts(void)
{
    uint8_t *area = dmappi_job.heap_map;
    int r = 0;

    for (unsigned i = 0; i < dmappi_n_parts && r == 0; i++) {
        const struct dmappi_part *part = dmappi_parts[i];

        if (part->start)
            r = part->start(area);
        area += part->area_bytes ? AREA_ROUND(part->area_bytes()) : 0;
    }
    return r;
}

static void tear_down(void)
{
    for (unsigned i = 0; i < dmappi_n_parts; i++) {
        if (dmappi_parts[i]->stop)
            dmappi_parts[i]->stop();
    }
    dmappi_segments_drop();
    for (int pe = 0; dmappi_job.peers && pe < dmappi_job.npes; pe++) {
        if (dmappi_job.peers[pe].ep)
            GNI_EpDestroy(dmappi_job.peers[pe].ep);
    }
    if (dmappi_job.cq)
        GNI_CqDestroy(dmappi_job.cq);
    if (dmappi_job.cdm)
        GNI_CdmDestroy(dmappi_job.cdm);
    dmappi_requests_stop();
    free(dmappi_job.peers);
    if (dmappi_job.heap_map)
        munmap(dmappi_job.heap_map, dmappi_job.heap_map_bytes);
    if (dmappi_job.heap_fd >= 0)
        close(dmappi_job.heap_fd);
    dmappi_job.peers = NULL;
    dmappi_job.cq = NULL;
    dmappi_job.cdm = NULL;
    dmappi_job.nic = NULL;
    dmappi_job.heap_map = NULL;
    dmappi_job.heap_fd = -1;
    dmappi_job.data_seg = (dmapp_seg_desc_t){ 0 };
    dmappi_job.sheap_seg = (dmapp_seg_desc_t){ 0 };
    dmappi_job.n_registered = 0;
    atomic_store(&dmappi_job.n_helpers, 0);
    atomic_store(&dmappi_job.n_posts, 0);
    atomic_store(&dmappi_job.n_implicit, 0);
    atomic_store(&dmappi_job.has_failed, false);
    atomic_store(&dmappi_job.is_lost, false);
}

static int start(const dmapp_rma_attrs_ext_t *requested)
{
    uint32_t nic_addr = 0;
    int r;

    if (!getenv("PMI_GNI_COOKIE"))
        gnii_tell_no_job("PMI_GNI_COOKIE");
    r = start_pmi();
    if (r < 0)
        return r;
    dmappi_job.epoch++;
    dmappi_job.attrs = dmappi_attrs_of(requested);
    r = agree_on_queues(attach(&nic_addr));
    r = make_heap(r);
    if (r == 0)
        r = dmappi_segments_register();
    if (r == 0)
        r = dmappi_requests_start();
    r = meet_peers(r, nic_addr);
    if (r == 0)
        r = start_parts();
    r = agree(r);
    if (r < 0) {
        tear_down();
        PMI_Finalize();
        return r;
    }
    dmappi_job.n_inits = 1;
    atomic_store_explicit(&dmappi_job.is_up, true, memory_order_release);
    return 0;
}

/* ---- calls ---- */

dmapp_return_t dmapp_init_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual)
{
    dmapp_return_t rc;

    pthread_mutex_lock(&init_lock);
    if (dmappi_is_up()) {
        dmappi_job.n_inits++;
        rc = dmappi_attrs_apply(requested, actual);
    } else {
        rc = start(requested) < 0 ? DMAPP_RC_RESOURCE_ERROR : dmappi_attrs_apply(NULL, actual);
    }
    pthread_mutex_unlock(&init_lock);
    return rc;
}

dmapp_return_t dmapp_initialized(int *flag)
{
    if (!flag)
        return DMAPP_RC_INVALID_PARAM;
    *flag = dmappi_is_up();
    return DMAPP_RC_SUCCESS;
}

/* Nobody comes any more: everybody's requests are complete, and no peer reaches our memory when it goes. */
static void finish(void)
{
    while (atomic_load(&dmappi_job.n_posts) > 0 && !dmappi_is_lost())
        dmappi_wait_step();
    for (unsigned i = 0; i < dmappi_n_parts; i++) {
        if (dmappi_parts[i]->drain)
            dmappi_parts[i]->drain();
    }
    dmappi_barrier();
    atomic_store(&dmappi_job.is_up, false);
    tear_down();
    PMI_Finalize();
}

dmapp_return_t dmapp_finalize(void)
{
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    pthread_mutex_lock(&init_lock);
    if (!dmappi_is_up())
        rc = DMAPP_RC_INVALID_PARAM;
    else if (--dmappi_job.n_inits == 0)
        finish();
    pthread_mutex_unlock(&init_lock);
    return rc;
}

dmapp_return_t dmapp_get_jobinfo(dmapp_jobinfo_t *info)
{
    if (!dmappi_is_up() || !info)
        return DMAPP_RC_INVALID_PARAM;
    *info = (dmapp_jobinfo_t){ .version = LIBRARY_VERSION,
                               .hw_version = dmappi_job.hw_version,
                               .npes = dmappi_job.npes,
                               .pe = dmappi_job.pe,
                               .data_seg = dmappi_job.data_seg,
                               .sheap_seg = dmappi_job.sheap_seg };
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_get_version(int *major, int *minor)
{
    if (!major || !minor)
        return DMAPP_RC_INVALID_PARAM;
    *major = LIBRARY_VERSION / 10000;
    *minor = LIBRARY_VERSION / 100 % 100;
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmappi_rc(gni_return_t rc)
{
    switch (rc) {
    case GNI_RC_SUCCESS:
        return DMAPP_RC_SUCCESS;
    case GNI_RC_NOT_DONE:
        return DMAPP_RC_NOT_DONE;
    case GNI_RC_INVALID_PARAM:
    case GNI_RC_DESCRIPTOR_ERROR:
    case GNI_RC_SIZE_ERROR:
    case GNI_RC_NO_MATCH:
        return DMAPP_RC_INVALID_PARAM;
    case GNI_RC_ALIGNMENT_ERROR:
        return DMAPP_RC_ALIGNMENT_ERROR;
    case GNI_RC_PERMISSION_ERROR:
        return DMAPP_RC_PERMISSION_ERROR;
    case GNI_RC_TRANSACTION_ERROR:
    case GNI_RC_TIMEOUT:
        return DMAPP_RC_TRANSACTION_ERROR;
    case GNI_RC_ILLEGAL_OP:
        return DMAPP_RC_NOT_SUPPORTED;
    default:
        return DMAPP_RC_RESOURCE_ERROR;
    }
}
