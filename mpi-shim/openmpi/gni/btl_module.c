/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module: Open MPI's table of functions, and the processes that it talks to.
 *
 * A process on another node of the emulated machine is on another node for Open MPI, too, although both may run on
 * one host: so nothing that is for the processes of a node, such as windows in shared memory, goes past the machine.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ompi/mca/rte/rte.h>
#include <opal/class/opal_bitmap.h>
#include <opal/mca/hwloc/base/base.h>
#include <opal/mca/pmix/pmix.h>

#include "libugni/src/poll_rounds.h"
#include "mpi-shim/openmpi/looks.h"

#define PATIENCE_S 3

static int add_procs(struct mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                     struct mca_btl_base_endpoint_t **peers, struct opal_bitmap_t *reachable);
static int del_procs(struct mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                     struct mca_btl_base_endpoint_t **peers);
static int finalize(struct mca_btl_base_module_t *btl);

struct mg mg = {
    .super = {
        .btl_component = &mca_btl_gni_component,
        .btl_add_procs = add_procs,
        .btl_del_procs = del_procs,
        .btl_finalize = finalize,
        .btl_alloc = mg_alloc,
        .btl_free = mg_free,
        .btl_prepare_src = mg_prepare,
        .btl_send = mg_send,
        .btl_sendi = mg_sendi,
        .btl_put = mg_put,
        .btl_get = mg_get,
        .btl_atomic_op = mg_atomic_op,
        .btl_atomic_fop = mg_atomic_fop,
        .btl_atomic_cswap = mg_atomic_cswap,
        .btl_register_mem = mg_register,
        .btl_deregister_mem = mg_deregister,
        .btl_flush = mg_flush,
    },
};

_Noreturn void mg_fail(const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    opal_output(0, "emunic: btl/gni: %s", text);
    ompi_rte_abort(1, NULL);
    abort();
}

void mg_lost(uint32_t rank)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!mg.has_lost) {
        mg.has_lost = true;
        mg.lost_rank = rank;
        mg.lost_at_s = now.tv_sec;
    }
    if (now.tv_sec - mg.lost_at_s > PATIENCE_S)
        mg_fail("rank %u cannot be reached: its host or the process has gone", mg.lost_rank);
}

void mg_wrong(gni_return_t rc, const char *call)
{
    mg_fail("%s: %s", call, gni_err_str[rc]);
}

/* Open MPI looks it up again when it meets the process in another communicator. */
static void move_away(struct opal_proc_t *proc)
{
    opal_value_t locality;

    proc->proc_flags = OPAL_PROC_NON_LOCAL;
    OBJ_CONSTRUCT(&locality, opal_value_t);
    locality.key = strdup(OPAL_PMIX_LOCALITY);
    locality.type = OPAL_UINT16;
    locality.data.uint16 = OPAL_PROC_NON_LOCAL;
    (void)opal_pmix.store_local(&proc->proc_name, &locality);
    OBJ_DESTRUCT(&locality);
}

static int add_proc(struct opal_proc_t *proc, struct mca_btl_base_endpoint_t **peer_out)
{
    struct mg_card card;
    uint8_t *told = NULL;
    size_t size = 0;
    int r;

    OPAL_MODEX_RECV(r, &mca_btl_gni_component.btl_version, &proc->proc_name, &told, &size);
    if (r != OPAL_SUCCESS || size != sizeof(card)) {
        free(told);
        opal_output(0, "emunic: process %s has no GNI interface in this job", OPAL_NAME_PRINT(proc->proc_name));
        return OPAL_ERR_UNREACH;
    }
    memcpy(&card, told, sizeof(card));
    free(told);
    if (proc->proc_name.vpid >= mg.n_ranks)
        return OPAL_ERR_UNREACH;
    if (card.address.nic != mg.nic.address.nic)
        move_away(proc);
    mg_lock();
    *peer_out = mg_peer(proc->proc_name.vpid, card.address);
    if (*peer_out)
        mg_connect_by_card(*peer_out, &card);
    mg_unlock();
    return *peer_out ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static void stir(void)
{
    gnii_rounds_stir(mg.nic.nic);
}

/* This process itself, too: one-sided calls want its atomics to be the NIC's. */
static int add_procs(struct mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                     struct mca_btl_base_endpoint_t **peers, struct opal_bitmap_t *reachable)
{
    (void)btl;
    for (size_t i = 0; i < n; i++) {
        int r = add_proc(procs[i], &peers[i]);

        if (r != OPAL_SUCCESS)
            return r;
        if (reachable)
            opal_bitmap_set_bit(reachable, (int)i);
    }
    looks_begin(stir);
    return OPAL_SUCCESS;
}

/* Peers stay until the end: their last messages may still come. */
static int del_procs(struct mca_btl_base_module_t *btl, size_t n, struct opal_proc_t **procs,
                     struct mca_btl_base_endpoint_t **peers)
{
    (void)btl;
    (void)n;
    (void)procs;
    (void)peers;
    return OPAL_SUCCESS;
}

static int finalize(struct mca_btl_base_module_t *btl)
{
    (void)btl;
    mg_close();
    return OPAL_SUCCESS;
}
