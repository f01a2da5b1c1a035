/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module: Open MPI's table of functions, and the processes that it talks to.
 *
 * All processes of MPI_COMM_WORLD are known before the first message (MCA_MTL_BASE_FLAG_REQUIRE_WORLD), because credits
 * are given per process, and events name processes by their Portals ids, which Open MPI's modex brings.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <ompi/mca/rte/rte.h>
#include <ompi/runtime/mpiruntime.h>
#include <opal/mca/pmix/pmix.h>
#include <opal/runtime/opal_progress.h>

#include "libportals/src/message_layer.h"
#include "mpi-shim/openmpi/looks.h"

#define PATIENCE_S 3 /* as in gni/btl_module.c */

extern mca_mtl_base_component_t mca_mtl_portals3_component;

static int add_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs);
static int del_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs);
static int finalize(struct mca_mtl_base_module_t *mtl);
static int change_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm);

struct mp3 mp3 = {
    .super = {
        .mtl_max_contextid = MP3_CONTEXT_MAX,
        .mtl_max_tag = INT32_MAX,
        .mtl_request_size = sizeof(struct mp3_request),
        .mtl_flags = MCA_MTL_BASE_FLAG_REQUIRE_WORLD,
        .mtl_add_procs = add_procs,
        .mtl_del_procs = del_procs,
        .mtl_finalize = finalize,
        .mtl_send = mp3_send,
        .mtl_isend = mp3_isend,
        .mtl_irecv = mp3_irecv,
        .mtl_iprobe = mp3_iprobe,
        .mtl_imrecv = mp3_imrecv,
        .mtl_improbe = mp3_improbe,
        .mtl_cancel = mp3_cancel,
        .mtl_add_comm = change_comm,
        .mtl_del_comm = change_comm,
    },
};

_Noreturn void mp3_fail(const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    opal_output(0, "emunic: mtl/portals3: %s", text);
    ompi_rte_abort(1, NULL);
    abort();
}

_Noreturn void mp3_lost(ptl_process_id_t id)
{
    /* mpirun notices a process's death a moment later than the NIC, and then ends us with a line about that. */
    for (time_t end_s = time(NULL) + PATIENCE_S; time(NULL) < end_s;)
        sleep(PATIENCE_S);
    mp3_fail("a message to or of %u:%u was lost: its host or process has gone, or the memory of a receive"
             " is not there",
             id.nid, id.pid);
}

struct mp3_peer *mp3_peer_of(ptl_process_id_t id)
{
    struct mp3_peer *peer = mp3.peers[id.pid];

    while (peer && peer->id.nid != id.nid)
        peer = peer->next_of_pid;
    return peer;
}

static struct mp3_peer *add_peer(ptl_process_id_t id)
{
    struct mp3_peer *peer = mp3_peer_of(id);

    if (peer)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (!peer)
        return NULL;
    peer->id = id;
    peer->way = p3_way_open(mp3.ni, id);
    peer->next_of_pid = mp3.peers[id.pid];
    mp3.peers[id.pid] = peer;
    return peer;
}

/*
 * Ranks of other nodes are elsewhere, though they may be on this host: so MPI_Comm_split_type() and windows of shared
 * memory are those of a node.
 */
static void place(struct ompi_proc_t *proc, ptl_process_id_t id)
{
    if (id.nid != mp3.id.nid)
        proc->super.proc_flags = OPAL_PROC_NON_LOCAL;
}

static void stir(void)
{
    p3_rounds_stir(mp3.ni);
}

static int add_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs)
{
    (void)mtl;
    for (size_t i = 0; i < n; i++) {
        uint8_t *id = NULL;
        ptl_process_id_t copy;
        size_t size = 0;
        int r;

        OPAL_MODEX_RECV(r, &mca_mtl_portals3_component.mtl_version, &procs[i]->super.proc_name, &id, &size);
        if (r != OMPI_SUCCESS || size != sizeof(copy)) {
            free(id);
            opal_output(0, "emunic: process %s has no Portals interface in this job",
                        OMPI_NAME_PRINT(&procs[i]->super.proc_name));
            return OMPI_ERR_UNREACH;
        }
        memcpy(&copy, id, sizeof(copy));
        free(id);
        place(procs[i], copy);
        mp3_lock();
        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = add_peer(copy);
        mp3_unlock();
        if (!procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL])
            return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (!mp3.is_progressing) {
        mp3.is_progressing = true;
        mp3_mend_buffered();
        mp3_offer_windows();
        looks_begin(stir);
        opal_progress_register(mp3_progress);
    }
    return OMPI_SUCCESS;
}

/* Peers stay until the end: their last events may still come. */
static int del_procs(struct mca_mtl_base_module_t *mtl, size_t n, struct ompi_proc_t **procs)
{
    (void)mtl;
    for (size_t i = 0; i < n; i++)
        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
    return OMPI_SUCCESS;
}

/* Messages that are complete for the program, and still are to be read from this process's memory. */
static void await_copies(void)
{
    bool has_copies = mp3.is_open;

    while (has_copies) {
        mp3_lock();
        mp3_poll(true);
        has_copies = mp3.n_copies > 0;
        mp3_unlock();
    }
}

static int finalize(struct mca_mtl_base_module_t *mtl)
{
    (void)mtl;
    if (mp3.is_progressing)
        opal_progress_unregister(mp3_progress);
    mp3.is_progressing = false;
    await_copies();
    mp3_close();
    return OMPI_SUCCESS;
}

/* Nothing is kept per communicator; pml/cm calls it all the same. */
static int change_comm(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm)
{
    (void)mtl;
    (void)comm;
    return OMPI_SUCCESS;
}
