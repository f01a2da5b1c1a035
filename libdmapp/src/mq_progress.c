/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper thread of a message queue: delivers messages while the program computes.
 *
 * With nothing to deliver it announces sleep in the ring, looks once more, and waits in GNI_CqWaitEvent(), which polls
 * a little and then sleeps. A sender looks at the announcement behind its message; who takes it away writes to the
 * queue that the thread waits for, which works on both data paths. Announcement before the last look, message before
 * the look at the announcement: one of the two sees the other.
 *
 * The thread has attributes and an account of requests of its own, and blocks all signals. Source: spec/dmapp.md 1.8,
 * 4.14.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/abi/amo.h"
#include "libdmapp/src/mq.h"

#define QUEUE_ENTRIES 64u
#define WAIT_MS       250u /* so long a write that got lost delays messages */

/* ---- waking ---- */

static pthread_mutex_t wake_mutex = PTHREAD_MUTEX_INITIALIZER;
static gni_ep_handle_t *wake_eps; /* owned, one per PE, NULL until used. Wake mutex */
static gni_cq_handle_t wake_cq;

static gni_ep_handle_t wake_ep(dmapp_pe_t pe)
{
    const struct dmappi_peer *peer = &dmappi_job.peers[pe];
    gni_ep_handle_t ep;

    if (!wake_eps) {
        wake_eps = calloc((size_t)dmappi_job.npes, sizeof(*wake_eps));
        if (wake_eps &&
            GNI_CqCreate(dmappi_job.nic, QUEUE_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &wake_cq) != GNI_RC_SUCCESS) {
            free(wake_eps);
            wake_eps = NULL;
        }
        if (!wake_eps)
            return NULL;
    }
    if (!wake_eps[pe] && GNI_EpCreate(dmappi_job.nic, wake_cq, &ep) == GNI_RC_SUCCESS) {
        if (GNI_EpBind(ep, peer->nic_addr, peer->instance_id) == GNI_RC_SUCCESS)
            wake_eps[pe] = ep;
        else
            GNI_EpDestroy(ep);
    }
    return wake_eps[pe];
}

/* One that gets lost, as every failure here, costs WAIT_MS. */
static void write_to_queue(dmapp_pe_t pe, const gni_mem_handle_t *hndl)
{
    gni_post_descriptor_t descr = {
        .type = GNI_POST_CQWRITE,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .cqwrite_value = 1,
        .remote_mem_hndl = *hndl,
    };
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_ep_handle_t ep;
    gni_return_t rc;

    pthread_mutex_lock(&wake_mutex);
    ep = wake_ep(pe);
    if (ep && GNI_PostCqWrite(ep, &descr) == GNI_RC_SUCCESS) {
        while ((rc = GNI_CqGetEvent(wake_cq, &entry)) == GNI_RC_NOT_DONE && !dmappi_is_lost())
            ;
        if (rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR)
            GNI_GetCompleted(wake_cq, entry, &done);
    }
    pthread_mutex_unlock(&wake_mutex);
}

void dmappi_mq_wake(dmapp_pe_t pe)
{
    const struct dmappi_atomic wake = { .op = EMU_AMO_SWAP };
    gni_mem_handle_t hndl;
    uint64_t is_asleep;

    /* The message before the look. Pairs with the fence in wait_for_news(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (dmappi_area_get(pe, &dmappi_mq_ring->is_asleep, &is_asleep, sizeof(is_asleep)) == DMAPP_RC_SUCCESS &&
        is_asleep && dmappi_area_amo(pe, &dmappi_mq_ring->is_asleep, &wake, &is_asleep) == DMAPP_RC_SUCCESS &&
        is_asleep && dmappi_area_get(pe, &dmappi_mq_ring->wake_hndl, &hndl, sizeof(hndl)) == DMAPP_RC_SUCCESS)
        write_to_queue(pe, &hndl);
}

void dmappi_mq_wake_fini(void)
{
    if (!wake_eps)
        return;
    for (int pe = 0; pe < dmappi_job.npes; pe++) {
        if (wake_eps[pe])
            GNI_EpDestroy(wake_eps[pe]);
    }
    GNI_CqDestroy(wake_cq);
    free(wake_eps);
    wake_eps = NULL;
}

/* ---- the thread ---- */

static void wait_for_news(struct mq_helper *helper)
{
    gni_cq_entry_t entry;

    atomic_store(&dmappi_mq_ring->is_asleep, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (!dmappi_mq_has_news() && !atomic_load(&helper->has_to_end))
        GNI_CqWaitEvent(helper->cq, WAIT_MS, &entry);
    atomic_store(&dmappi_mq_ring->is_asleep, 0);
    while (GNI_CqGetEvent(helper->cq, &entry) == GNI_RC_SUCCESS)
        ;
}

static void *run(void *arg)
{
    struct mq_helper *helper = arg;

    while (!atomic_load(&helper->has_to_end) && !dmappi_is_lost()) {
        if (dmappi_mq_deliver() == 0)
            wait_for_news(helper);
    }
    return NULL;
}

static int start_thread(struct mq_helper *helper)
{
    sigset_t all, old;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&helper->thread, NULL, run, helper);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -r;
}

int dmappi_mq_helper_start(struct mq_helper *helper)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    int r = -ENOMEM;

    atomic_store(&helper->has_to_end, false);
    helper->page = aligned_alloc(page_bytes, page_bytes);
    if (!helper->page)
        return r;
    memset(helper->page, 0, page_bytes);
    if (GNI_CqCreate(dmappi_job.nic, QUEUE_ENTRIES, 0, GNI_CQ_BLOCKING, NULL, NULL, &helper->cq) != GNI_RC_SUCCESS)
        goto err_page;
    if (GNI_MemRegister(dmappi_job.nic, (uint64_t)(uintptr_t)helper->page, page_bytes, helper->cq, GNI_MEM_READWRITE,
                        UINT32_MAX, &helper->hndl) != GNI_RC_SUCCESS)
        goto err_cq;
    dmappi_mq_ring->wake_hndl = helper->hndl;
    atomic_fetch_add(&dmappi_job.n_helpers, 1);
    r = start_thread(helper);
    if (r == 0)
        return 0;
    atomic_fetch_sub(&dmappi_job.n_helpers, 1);
    GNI_MemDeregister(dmappi_job.nic, &helper->hndl);
err_cq:
    GNI_CqDestroy(helper->cq);
err_page:
    free(helper->page);
    return r;
}

void dmappi_mq_helper_stop(struct mq_helper *helper)
{
    atomic_store(&helper->has_to_end, true);
    write_to_queue(dmappi_job.pe, &helper->hndl);
    pthread_join(helper->thread, NULL);
    atomic_fetch_sub(&dmappi_job.n_helpers, 1);
    GNI_MemDeregister(dmappi_job.nic, &helper->hndl);
    GNI_CqDestroy(helper->cq);
    free(helper->page);
}
