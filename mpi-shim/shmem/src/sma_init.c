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

static const char *first_of(const char *const names[])
{
    for (; *names; names++) {
        const char *text = getenv(*names);

        if (text && *text)
            return text;
    }
    return NULL;
}

static bool is_on(const char *const names[])
{
    const char *text = first_of(names);

    return text && strcmp(text, "0") != 0;
}

/* ---- start ---- */

/* The heap's size with what the library needs of it. False: nobody says one, or it is DMAPP's to complain. */
static bool heap_bytes(int npes, char *text_out, size_t text_bytes)
{
    static const char *const names[] = { "SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", "XT_SYMMETRIC_HEAP_SIZE", NULL };
    static const char suffixes[] = "kmgt";
    const char *text = first_of(names);
    const char *suffix;
    double bytes;
    char *end;

    if (!text || *text < '0' || *text > '9')
        return false;
    bytes = strtod(text, &end);
    suffix = *end ? strchr(suffixes, *end | 0x20) : NULL;
    for (long i = suffix ? suffix - suffixes : -1; i >= 0; i--)
        bytes *= 1024;
    if ((*end && (!suffix || end[1])) || !(bytes >= 1 && bytes < 1e18))
        return false;
    snprintf(text_out, text_bytes, "%llu", (unsigned long long)bytes + smai_channels_bytes(npes));
    return true;
}

static int start_dmapp(void)
{
    dmapp_rma_attrs_ext_t attrs = { .max_concurrency = DMAPP_MAX_THREADS_UNLIMITED };
    const char *was = getenv("SHMEM_SYMMETRIC_SIZE");
    char *saved = was ? strdup(was) : NULL;
    char text[32];
    int npes = 1;
    dmapp_return_t rc;

    PMI_Get_size(&npes);
    if (heap_bytes(npes, text, sizeof(text)))
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
    static const char *const version[] = { "SHMEM_VERSION", "SMA_VERSION", NULL };
    static const char *const info[] = { "SHMEM_INFO", "SMA_INFO", NULL };

    if (smai.pe != 0)
        return;
    if (is_on(version) || is_on(info))
        fprintf(stderr, "%s, OpenSHMEM %d.%d\n", VENDOR, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    if (is_on(info))
        fprintf(stderr,
                "XT_SYMMETRIC_HEAP_SIZE, SMA_SYMMETRIC_SIZE, SHMEM_SYMMETRIC_SIZE  size of the symmetric heap: %llu\n"
                "SMA_DEBUG, SHMEM_DEBUG  arguments are checked: %s\n",
                (unsigned long long)smai.heap_bytes, smai.is_checked ? "yes" : "no");
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
    static const char *const debug[] = { "SMA_DEBUG", "SHMEM_DEBUG", NULL };
    int spawned;

    if (smai.is_up)
        return;
    if (smai.is_finished)
        smai_fail(call, "after shmem_finalize()");
    if (PMI_Init(&spawned) != PMI_SUCCESS || start_dmapp() < 0 || learn_job() < 0)
        smai_fail(call, "DMAPP could not be started; programs are started with emunic run");
    smai.is_checked = is_on(debug);
    smai.is_up = true;
    choose_spins();
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
