/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communication domains and NIC handles.
 *
 * GNI_CdmCreate is local. GNI_CdmAttach opens a port of the emulated NIC; emunic decides whether the credentials hold.
 * There is one device, number 0. Destroying a CDM takes everything below it along and returns when emunic has let go
 * of the process's memory. A thread that waits in a blocking call of the NIC is woken and gets INVALID_STATE; the last
 * such thread takes the memory down that it still looks at.
 *
 * A forked child shares the parent's descriptors but must not disturb its NIC: it only forgets its copies.
 *
 * A checkpointed domain's NIC is stale: requests fail at once and no system call names its device, so that queues and
 * the domain can be destroyed in a process that was restarted somewhere else. emunic ends the port with the process.
 *
 * Loss of the NIC (emunic died or ended the domain) is said once on stderr, by the first call that has to answer for
 * it. A process that did not set GNI_CDM_MODE_ERR_NO_KILL is then killed, as the original's driver does on critical
 * errors.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "emunic/base/barriers.h"
#include "emunic/base/log.h"
#include "libugni/src/device.h"
#include "libugni/src/rc.h"
#include "libugni/src/ugni.h"

static void __attribute__((constructor)) start_library(void)
{
    emu_log_init("libugni", EMU_LOG_ERROR);
    emu_barriers_register_early();
}

static struct gnii_cdm *find_cdm(gni_cdm_handle_t handle)
{
    return gnii_object_find(GNII_KIND_CDM, handle);
}

struct gnii_nic *gnii_nic_find(gni_nic_handle_t handle)
{
    return gnii_object_find(GNII_KIND_NIC, handle);
}

void gnii_nic_tell_loss(struct gnii_nic *nic)
{
    bool lives = (nic->modes & GNI_CDM_MODE_ERR_NO_KILL) != 0;

    if (nic->loss_was_told || atomic_load(&nic->is_closing) || atomic_load(&nic->port.session.is_stale))
        return;
    nic->loss_was_told = true;
    emu_log(EMU_LOG_ERROR, "nid %u inst 0x%x: the emulated NIC has gone; %s", nic->port.nid, nic->port.instance_id,
            lives ? "transactions fail from now on" :
                    "this process is killed, because it did not set GNI_CDM_MODE_ERR_NO_KILL");
    if (!lives)
        kill(getpid(), SIGKILL);
}

void gnii_nic_note_error(struct gnii_nic *nic, unsigned status)
{
    if (status == 0 ||
        (nic->modes & (GNI_CDM_MODE_ERR_ALL_KILL | GNI_CDM_MODE_ERR_NO_KILL)) != GNI_CDM_MODE_ERR_ALL_KILL)
        return;
    emu_log(EMU_LOG_ERROR, "transaction failed with status %u: ending this process (GNI_CDM_MODE_ERR_ALL_KILL)",
            status);
    kill(getpid(), SIGKILL);
}

/* ---- blocking calls ---- */

void gnii_wait_begin(struct gnii_wait *wait, void (*leave)(void *), void *arg)
{
    wait->leave = leave;
    wait->arg = arg;
    emu_cancel_hold(&wait->cancel);
}

void gnii_wait_end(struct gnii_wait *wait)
{
    wait->leave(wait->arg);
    emu_cancel_release(&wait->cancel);
}

/* Not instrumented: AddressSanitizer takes the unwinding of a cancelled thread through here for an error. */
__attribute__((no_sanitize_address)) int gnii_wait_sleep(const struct gnii_wait *wait, struct gnii_nic *nic,
                                                         _Atomic uint32_t *const *words, const uint32_t *seen,
                                                         unsigned n_words, uint64_t deadline_ns)
{
    struct emu_cancel open = wait->cancel;
    int r;

    pthread_cleanup_push(wait->leave, wait->arg);
    emu_cancel_release(&open);
    r = emu_port_wait(&nic->port, words, seen, n_words, deadline_ns);
    emu_cancel_hold(&open);
    pthread_cleanup_pop(0);
    return r;
}

/* ---- domains and NICs ---- */

gni_return_t GNI_CdmCreate(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes, gni_cdm_handle_t *cdm_hndl)
{
    struct gnii_cdm *cdm;
    void *handle;
    int r;

    if (!cdm_hndl || (modes & GNI_CDM_MODE_PRIV_MASK) != 0)
        return GNI_RC_INVALID_PARAM;
    cdm = calloc(1, sizeof(*cdm));
    if (!cdm)
        return GNI_RC_ERROR_NOMEM;
    *cdm = (struct gnii_cdm){ .inst_id = inst_id, .ptag = ptag, .cookie = cookie, .modes = modes };
    r = gnii_object_add(GNII_KIND_CDM, cdm, &handle);
    if (r < 0) {
        free(cdm);
        return gnii_rc(GNII_CALL_PLAIN, r);
    }
    cdm->handle = handle;
    *cdm_hndl = handle;
    return GNI_RC_SUCCESS;
}

static struct gnii_nic *make_nic(struct gnii_cdm *cdm)
{
    struct gnii_nic *nic = calloc(1, sizeof(*nic));

    if (!nic)
        return NULL;
    nic->refs = 1;
    nic->modes = cdm->modes;
    nic->free_tx = UINT32_MAX;
    nic->smsg_max_retrans = FMA_SMSG_MAX_RETRANS_DEFAULT;
    LIST_INIT(&nic->eps);
    LIST_INIT(&nic->cqs);
    LIST_INIT(&nic->chans);
    LIST_INIT(&nic->mds);
    LIST_INIT(&nic->parked.mds);
    LIST_INIT(&nic->ces);
    emu_biased_lock_init(&nic->lock);
    emu_biased_lock_bias(&nic->lock);
    return nic;
}

static gni_return_t attach_nic(struct gnii_cdm *cdm, uint32_t *local_addr, gni_nic_handle_t *nic_hndl)
{
    struct gnii_nic *nic = make_nic(cdm);
    void *handle;
    int r;

    if (!nic)
        return GNI_RC_ERROR_NOMEM;
    r = emu_port_attach(&nic->port, cdm->ptag, cdm->cookie, cdm->inst_id, cdm->modes);
    if (r < 0)
        goto err_nic;
    nic->is_gemini = gnii_device_of(nic->port.table->device) == GNI_DEVICE_GEMINI;
    gnii_cqe_set_wide(nic->is_gemini);
    r = gnii_job_join(nic, cdm->cookie);
    if (r < 0)
        goto err_port;
    r = gnii_object_add(GNII_KIND_NIC, nic, &handle);
    if (r < 0)
        goto err_job;
    nic->handle = handle;
    cdm->nic = nic;
    cdm->ptag = (uint8_t)nic->port.ptag;
    *local_addr = nic->port.nid;
    *nic_hndl = handle;
    return GNI_RC_SUCCESS;

err_job:
    gnii_job_leave(nic);
err_port:
    emu_port_detach(&nic->port);
err_nic:
    emu_biased_lock_fini(&nic->lock);
    free(nic);
    return gnii_rc(GNII_CALL_CREATE, r);
}

gni_return_t GNI_CdmAttach(gni_cdm_handle_t cdm_hndl, uint32_t device_id, uint32_t *local_addr,
                           gni_nic_handle_t *nic_hndl)
{
    struct gnii_cdm *cdm = find_cdm(cdm_hndl);
    struct emu_cancel cancel;
    gni_return_t rc;

    if (!cdm || !local_addr || !nic_hndl)
        return GNI_RC_INVALID_PARAM;
    if (device_id != 0 && device_id != (uint32_t)-1)
        return GNI_RC_NO_MATCH;
    if (cdm->nic || cdm->is_checkpointed)
        return GNI_RC_INVALID_STATE;
    emu_cancel_hold(&cancel);
    rc = attach_nic(cdm, local_addr, nic_hndl);
    emu_cancel_release(&cancel);
    return rc;
}

void gnii_nic_put(struct gnii_nic *nic)
{
    if (atomic_fetch_sub(&nic->refs, 1) > 1)
        return;
    emu_port_detach(&nic->port);
    emu_biased_lock_fini(&nic->lock);
    free(nic);
}

/* Threads in blocking calls look at is_closing now. */
static void wake_waiters(struct gnii_nic *nic)
{
    struct gnii_cq *cq;

    LIST_FOREACH(cq, &nic->cqs, link)
        gnii_cq_wake(cq);
    if (nic->msgq)
        gnii_msgq_wake(nic->msgq);
    atomic_fetch_add(&nic->port.segment->datagram_news, 1);
    emu_port_wake(&nic->port.segment->datagram_news);
}

static void destroy_nic(struct gnii_nic *nic)
{
    bool is_child = nic->port.owner != getpid();
    const struct gnii_md *md;

    gnii_object_remove(nic->handle);
    emu_biased_lock(&nic->lock);
    atomic_store(&nic->is_closing, true);
    if (!is_child)
        wake_waiters(nic);
    while (!LIST_EMPTY(&nic->eps))
        gnii_ep_free(LIST_FIRST(&nic->eps));
    gnii_chan_free_all(nic);
    while (!LIST_EMPTY(&nic->cqs))
        gnii_cq_free(LIST_FIRST(&nic->cqs));
    if (nic->msgq)
        gnii_msgq_free(nic->msgq, false);
    /* The program may free its memory when we return: no transfer may touch it then. */
    LIST_FOREACH(md, &nic->mds, link) {
        if (!is_child)
            gnii_md_deregister(nic, md);
    }
    emu_port_hang_up(&nic->port);
    gnii_ce_drop_all(nic);
    gnii_md_drop_all(nic);
    gnii_job_leave(nic);
    gnii_post_lanes_free(nic);
    free(nic->tx);
    nic->tx = NULL;
    nic->n_tx = 0;
    emu_biased_unlock(&nic->lock);
    gnii_nic_put(nic);
}

gni_return_t GNI_CdmDestroy(gni_cdm_handle_t cdm_hndl)
{
    struct gnii_cdm *cdm = find_cdm(cdm_hndl);

    if (!cdm)
        return GNI_RC_INVALID_PARAM;
    gnii_object_remove(cdm->handle);
    if (cdm->nic)
        destroy_nic(cdm->nic);
    free(cdm);
    return GNI_RC_SUCCESS;
}

static gni_return_t set_stale(gni_cdm_handle_t cdm_handle, bool is_stale)
{
    struct gnii_cdm *cdm = find_cdm(cdm_handle);

    if (!cdm)
        return GNI_RC_INVALID_PARAM;
    cdm->is_checkpointed = is_stale;
    if (cdm->nic)
        emu_port_set_stale(&cdm->nic->port, is_stale);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CdmCheckpoint(gni_cdm_handle_t cdm_handle)
{
    return set_stale(cdm_handle, true);
}

gni_return_t GNI_CdmResume(gni_cdm_handle_t cdm_handle)
{
    return set_stale(cdm_handle, false);
}
