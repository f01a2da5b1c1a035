/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: named stubs.
 *
 * A channel is a file descriptor that becomes readable when an armed BLOCKING completion queue has an event. Our
 * queues wake sleepers through a futex, which no descriptor can stand for, so GNI_CompChanCreate() answers
 * GNI_RC_ILLEGAL_OP, "operation not supported here". The codes of the original are unconfirmed, and its
 * GNI_RC_ERROR_RESOURCE would invite a retry. As no channel can be created, none is ever live, and the calls that
 * take one, or a queue attached to one, answer GNI_RC_INVALID_PARAM without reading through their arguments.
 *
 * No state, any thread. Source: uGNI spec A.2.
 */
#include <gni_pub.h>

gni_return_t GNI_CompChanCreate(gni_nic_handle_t nic_hndl, gni_comp_chan_handle_t *chan_hndl)
{
    if (nic_hndl == NULL || chan_hndl == NULL)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_ILLEGAL_OP;
}

gni_return_t GNI_CompChanDestroy(gni_comp_chan_handle_t chan_hndl)
{
    (void)chan_hndl;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_CompChanFd(gni_comp_chan_handle_t chan_hndl, int *comp_chan_fd)
{
    (void)chan_hndl;
    (void)comp_chan_fd;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_CompChanGetEvent(gni_comp_chan_handle_t chan_hndl, gni_cq_handle_t *cq_hndl)
{
    (void)chan_hndl;
    (void)cq_hndl;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_CqAttachCompChan(gni_cq_handle_t cq_hndl, gni_comp_chan_handle_t chan_hndl)
{
    (void)cq_hndl;
    (void)chan_hndl;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_CqArmCompChan(gni_cq_handle_t *cq_hndls, uint32_t num_cqs)
{
    (void)cq_hndls;
    (void)num_cqs;
    return GNI_RC_INVALID_PARAM;
}
