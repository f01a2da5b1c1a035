/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and end.
 *
 *   down ── shmem_init / start_pes ──▶ up ── shmem_finalize, or exit(0) without it ──▶ finished, for good
 *
 * DMAPP does the work: the job, the symmetric heap, the data segment. If the program has started DMAPP itself, it is
 * counted up, and the heap is the one that is there. The channels of collectives (sma_channel.c) are a block of the
 * heap; so much more is asked for than the environment says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <unistd.h>

#include <pmi.h>

#include "mpi-shim/pmi/src/pmi_session.h"
#include "emunic/base/yield_cost.h"
#include "mpi-shim/shmem/src/sma_calls.h"

struct smai_job smai;

#define VENDOR "Cray SHMEM over the emulated NIC"

/* ---- start ---- */

/* DMAPP reads the heap's size from the environment, and gets ours there for as long as it reads. */
static int start_dmapp(const char *call)
{
    dmapp_rma_attrs_ext_t attrs = smai_dmapp_attrs(call);
    const char *was = getenv("SHMEM_SYMMETRIC_SIZE");
    char *saved = was ? strdup(was) : NULL;
    char text[32];
    int npes = 1;
    dmapp_return_t rc;

    PMI_Get_size(&npes);
    if (smai_heap_bytes(npes, text, sizeof(text)))
        setenv("SHMEM_SYMMETRIC_SIZE", text, 1);
    rc = dmapp_init_ext(&attrs, NULL);
    if (saved)
        setenv("SHMEM_SYMMETRIC_SIZE", saved, 1);
    else
        unsetenv("SHMEM_SYMMETRIC_SIZE");
    free(saved);
    return rc == DMAPP_RC_SUCCESS ? 0 : -1;
}

static int learn_peers(void)
{
    smai.peers = calloc((size_t)smai.npes, sizeof(*smai.peers));
    if (!smai.peers)
        return -1;
    for (int pe = 0; pe < smai.npes; pe++) {
        struct dmappi_symmetric_segment heap = dmappi_symmetric_segment(pe, DMAPPI_SHEAP);
        struct dmappi_symmetric_segment data = dmappi_symmetric_segment(pe, DMAPPI_DATA);

        smai.peers[pe] = (struct smai_peer){ .heap = heap.target,
                                             .data = data.target,
                                             .heap_shift = heap.addr - smai.heap,
                                             .data_shift = data.addr - smai.data,
                                             .nic_addr = heap.nic_addr };
        /* Programs that differ: what all of them have. */
        if (data.len_bytes < smai.data_bytes)
            smai.data_bytes = data.len_bytes;
    }
    return 0;
}

static int learn_job(void)
{
    dmapp_jobinfo_t job;

    if (dmapp_get_jobinfo(&job) != DMAPP_RC_SUCCESS)
        return -1;
    smai.npes = job.npes;
    smai.pe = job.pe;
    smai.heap_seg = job.sheap_seg;
    smai.data_seg = job.data_seg;
    smai.heap = (uint64_t)(uintptr_t)job.sheap_seg.addr;
    smai.heap_bytes = job.sheap_seg.len;
    smai.data = (uint64_t)(uintptr_t)job.data_seg.addr;
    smai.data_bytes = job.data_seg.len;
    return learn_peers();
}

/* Looks in a row before a waiting PE is polite: one where PEs share processors. */
static void choose_spins(void)
{
    struct gnii_launch_target *own = smai.peers[smai.pe].heap;
    cpu_set_t set;
    int n_here = 0;

    for (int pe = 0; pe < smai.npes; pe++)
        n_here += smai_window((const void *)(uintptr_t)smai.heap, pe) ? 1 : 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return;
    smai.n_spins = n_here > CPU_COUNT(&set) ? 1 : SMAI_SPINS;
    smai.n_processors = n_here > CPU_COUNT(&set) ? CPU_COUNT(&set) : 0;
    smai.switch_ns = own ? EMU_YIELD_SLOW_FACTOR * gnii_launch_yield_ns(own) : 0;
}

static void tell_about(void)
{
    bool has_info = smai_is_on("SHMEM_INFO", "SMA_INFO");
    dmapp_rma_attrs_ext_t attrs;

    if (smai.pe != 0)
        return;
    if (has_info || smai_is_on("SHMEM_VERSION", "SMA_VERSION"))
        fprintf(stderr, "%s, OpenSHMEM %d.%d\n", VENDOR, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    if (has_info && dmapp_get_rma_attrs_ext(&attrs) == DMAPP_RC_SUCCESS)
        fprintf(stderr,
                "XT_SYMMETRIC_HEAP_SIZE, SMA_SYMMETRIC_SIZE, SHMEM_SYMMETRIC_SIZE  size of the symmetric heap: %llu\n"
                "SMA_DEBUG, SHMEM_DEBUG  arguments are checked: %s\n" SMAI_BTE_THRESHOLD
                "  bytes from which block transfers are used: %u\n" SMAI_OUTSTANDING
                "  requests under way at most: %u\n" SMAI_ROUTING_MODE "  routing: %u\n",
                (unsigned long long)smai.heap_bytes, smai.is_checked ? "yes" : "no", attrs.offload_threshold,
                attrs.max_outstanding_nb, attrs.put_relaxed_ordering);
}

/* The program has ended well without shmem_finalize(). */
static void at_exit(int status, void *arg)
{
    (void)arg;
    if (smai.is_up && status == 0)
        smai_finalize();
}

void smai_start(const char *call)
{
    int spawned;

    if (smai.is_up)
        return;
    if (smai.is_finished)
        smai_fail(call, "after shmem_finalize()");
    if (PMI_Init(&spawned) != PMI_SUCCESS || PMI_Get_rank(&smai.pe) != PMI_SUCCESS || start_dmapp(call) < 0 ||
        learn_job() < 0)
        smai_fail(call, "DMAPP could not be started; programs are started with emunic run");
    smai.is_checked = smai_is_on("SMA_DEBUG", "SHMEM_DEBUG");
    smai.is_up = true;
    choose_spins();
    smai_choose_algorithms();
    if (smai_channels_start() < 0 || smai_teams_start() < 0)
        smai_fail(call, "the symmetric heap is too small for the library");
    PMI_Barrier();
    smai.n_fast = smai.is_checked ? 0 : smai.npes;
    on_exit(at_exit, NULL);
    tell_about();
}

void smai_init(void)
{
    smai_start("shmem_init");
}

int smai_init_thread(int requested, int *provided)
{
    if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE)
        return -1;
    smai_start("shmem_init_thread");
    smai.thread_level = requested;
    *provided = requested;
    return 0;
}

void smai_query_thread(int *provided)
{
    *provided = smai.thread_level;
}

void smai_start_pes(int npes)
{
    (void)npes;
    smai_start("start_pes");
}

/* ---- end ---- */

void smai_finalize(void)
{
    if (!smai.is_up)
        return;
    smai_barrier_all();
    smai.is_up = false;
    smai.is_finished = true;
    smai.n_fast = 0;
    PMI_Barrier();
    smai_teams_stop();
    smai_channels_stop();
    dmapp_finalize();
    free(smai.peers);
    smai.peers = NULL;
    PMI_Finalize();
}

void smai_global_exit(int status)
{
    fflush(NULL);
    pmii_session_abort(1, status, status & 0xff ? "shmem_global_exit" : NULL);
}

/* ---- who and what ---- */

int smai_my_pe(void)
{
    return smai.pe;
}

int smai_n_pes(void)
{
    return smai.npes;
}

int smai_pe_accessible(int pe)
{
    return smai.is_up && pe >= 0 && pe < smai.npes;
}

int smai_addr_accessible(const void *addr, int pe)
{
    uint64_t at = (uint64_t)(uintptr_t)addr;

    return smai_pe_accessible(pe) && (at - smai.heap < smai.heap_bytes || at - smai.data < smai.data_bytes);
}

void *smai_window(const void *at, int pe)
{
    uint64_t addr = (uint64_t)(uintptr_t)at;
    const struct smai_peer *peer = &smai.peers[pe];

    if (pe == smai.pe)
        return (void *)(uintptr_t)at;
    if (addr - smai.heap < smai.heap_bytes)
        return peer->heap ? gnii_launch_window(peer->heap, addr + peer->heap_shift, 1) : NULL;
    if (addr - smai.data < smai.data_bytes)
        return peer->data ? gnii_launch_window(peer->data, addr + peer->data_shift, 1) : NULL;
    return NULL;
}

/* PEs of one node have each other's memory, as on the machine. */
void *smai_ptr(const void *dest, int pe)
{
    if (!smai_addr_accessible(dest, pe) || smai.peers[pe].nic_addr != smai.peers[smai.pe].nic_addr)
        return NULL;
    return smai_window(dest, pe);
}

void smai_info_get_version(int *major, int *minor)
{
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

void smai_info_get_name(char *name)
{
    strcpy(name, SHMEM_VENDOR_STRING);
}
