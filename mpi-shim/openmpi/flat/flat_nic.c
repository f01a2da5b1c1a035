/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages: a put of the data and a put of the number into registered lines, both by uGNI.
 *
 * They are launched (libugni/src/launch.h): on one host puts of the NIC are checked stores, counted as any other. A
 * communicator with a process that cannot be reached so has no lines. When the way is closed later (faults that are
 * injected, for instance), puts are posted, one after the other.
 *
 * The NIC handle is that of btl/gni, so that one poll looks at everything. Over Portals it is one of our own: a put of
 * Portals is matched by a processor, which takes longer than all the rest. But the mtl does not know of it: a process
 * that rested in a poll of Portals would not be woken. The mtl leaves yields to opal_progress() when that yields, and
 * does not rest then.
 */
#include "mpi-shim/openmpi/flat/flat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ompi/mca/rte/rte.h>
#include <opal/mca/btl/base/base.h>
#include <opal/runtime/opal_progress.h>
#include <opal/threads/mutex.h>

#include "libugni/src/launch.h"
#include "libugni/src/poll_rounds.h"
#include "mpi-shim/openmpi/gni/btl.h"

#define CHANNELS   64 /* at a time: each takes one of the NIC's memory domains */
#define ENTRIES    16u
#define INSTANCE   0x46000000u /* apart from those of btl/gni, coll/ce and programs */
#define PATIENCE_S 3           /* as in gni/btl_module.c */

/* What each process tells about its lines. */
struct card {
    struct mg_address address;
    uint64_t lines;
    gni_mem_handle_t memory;
};

struct cfl_peer {
    struct card card;
    struct gnii_launch_target *target; /* owned */
    gni_ep_handle_t ep;                /* owned; NULL: nothing was posted yet */
};

static struct {
    gni_nic_handle_t nic; /* borrowed from btl/gni, or owned as cdm */
    gni_cdm_handle_t cdm;
    struct mg_address address;
    gni_cq_handle_t queue; /* of what is posted */
    bool has_failed;
    bool yields; /* opal_progress(), where the NIC is our own */
} own;

static opal_mutex_t mutex = OPAL_MUTEX_STATIC_INIT; /* of own, and of what is posted */
static _Atomic int n_channels;

/* ---- the NIC ---- */

/* Its module is the first member of its state. */
static const struct mg *find_btl(void)
{
    mca_btl_base_selected_module_t *selected;

    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        if (strcmp(selected->btl_component->btl_version.mca_component_name, "gni") == 0)
            return (const struct mg *)selected->btl_module;
    }
    return NULL;
}

static bool read_number(const char *name, uint32_t *value_out)
{
    const char *text = getenv(name);

    *value_out = text ? (uint32_t)strtoll(text, NULL, 10) : 0;
    return text && text[0];
}

static bool attach(void)
{
    uint32_t ptag;
    uint32_t cookie;

    own.address.instance = INSTANCE | OPAL_PROC_MY_NAME.vpid;
    if (!read_number("PMI_GNI_PTAG", &ptag) || !read_number("PMI_GNI_COOKIE", &cookie) ||
        GNI_CdmCreate(own.address.instance, (uint8_t)ptag, cookie, GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_FMA_SHARED,
                      &own.cdm) != GNI_RC_SUCCESS)
        return false;
    if (GNI_CdmAttach(own.cdm, 0, &own.address.nic, &own.nic) == GNI_RC_SUCCESS) {
        own.yields = opal_progress_set_yield_when_idle(true);
        (void)opal_progress_set_yield_when_idle(own.yields);
        return true;
    }
    GNI_CdmDestroy(own.cdm);
    own.cdm = NULL;
    own.nic = NULL;
    return false;
}

static bool open_nic(void)
{
    const struct mg *btl = find_btl();
    bool is_open;

    OPAL_THREAD_LOCK(&mutex);
    if (!own.nic && btl) {
        own.nic = btl->nic.nic;
        own.address = btl->nic.address;
    } else if (!own.nic && !own.has_failed) {
        own.has_failed = !attach();
    }
    is_open = !!own.nic;
    OPAL_THREAD_UNLOCK(&mutex);
    return is_open;
}

void cfl_close_nic(void)
{
    if (own.cdm)
        GNI_CdmDestroy(own.cdm);
    own.cdm = NULL;
    own.nic = NULL;
}

void cfl_progress(void)
{
    if (!own.cdm) {
        opal_progress();
        return;
    }
    (void)opal_progress_set_yield_when_idle(true);
    opal_progress();
    (void)opal_progress_set_yield_when_idle(own.yields);
}

/* ---- life ---- */

static bool describe(struct cfl_channel *channel, struct card *card_out)
{
    if (atomic_fetch_add(&n_channels, 1) >= CHANNELS || !open_nic())
        return false;
    card_out->address = own.address;
    card_out->lines = (uint64_t)(uintptr_t)channel->lines;
    channel->is_registered =
        GNI_MemRegister(own.nic, card_out->lines, (uint64_t)channel->n_ranks * sizeof(struct cfl_line), NULL,
                        GNI_MEM_READWRITE, (uint32_t)-1, &channel->memory) == GNI_RC_SUCCESS;
    card_out->memory = channel->memory;
    return channel->is_registered;
}

static uint64_t place_at(const struct cfl_channel *channel, const struct cfl_peer *peer, uint64_t number)
{
    return peer->card.lines + (uint64_t)channel->rank * sizeof(struct cfl_line) +
           (number & 1) * sizeof(((struct cfl_line *)NULL)->place[0]);
}

/* True: puts to it are launched. The number is that of no message. */
static bool reach(struct cfl_channel *channel, struct cfl_peer *peer)
{
    peer->target = gnii_launch_open(own.nic, peer->card.address.nic, &peer->card.memory);
    return peer->target && gnii_launch_flag(peer->target, place_at(channel, peer, 0), 0) == GNII_LAUNCH_DONE;
}

bool cfl_connect(struct cfl_channel *channel)
{
    struct card *cards = calloc((size_t)channel->n_ranks, sizeof(*cards));
    struct card card = { { 0, 0 }, 0, { 0, 0 } };
    bool is_fine;

    channel->peers = calloc((size_t)channel->n_ranks, sizeof(*channel->peers));
    if (!cards || !channel->peers)
        cfl_fail("memory");
    is_fine = cfl_agree(channel, describe(channel, &card)) && cfl_gather(channel, &card, cards, sizeof(card));
    if (is_fine) {
        for (int i = 0; i < channel->n_ranks; i++) {
            channel->peers[i].card = cards[i];
            is_fine = is_fine && (i == channel->rank || reach(channel, &channel->peers[i]));
        }
        is_fine = cfl_agree(channel, is_fine);
    }
    free(cards);
    return is_fine;
}

void cfl_disconnect(struct cfl_channel *channel)
{
    for (int i = 0; i < channel->n_ranks; i++) {
        gnii_launch_close(channel->peers[i].target);
        if (channel->peers[i].ep)
            GNI_EpDestroy(channel->peers[i].ep);
    }
    if (channel->is_registered)
        GNI_MemDeregister(own.nic, &channel->memory);
    atomic_fetch_sub(&n_channels, 1);
    free(channel->peers);
}

/* ---- posted puts ---- */

static _Noreturn void fail(const char *what, gni_return_t rc)
{
    /* mpirun notices a process's death a moment later than the NIC, and then ends us with a line about that. */
    for (time_t end_s = time(NULL) + PATIENCE_S; time(NULL) < end_s;)
        sleep(PATIENCE_S);
    cfl_fail("%s: %s", what, gni_err_str[rc]);
}

static void must(gni_return_t rc, const char *what)
{
    if (rc != GNI_RC_SUCCESS)
        fail(what, rc);
}

static void connect_to(struct cfl_peer *peer)
{
    if (!own.queue)
        must(GNI_CqCreate(own.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &own.queue), "GNI_CqCreate");
    must(GNI_EpCreate(own.nic, own.queue, &peer->ep), "GNI_EpCreate");
    must(GNI_EpBind(peer->ep, peer->card.address.nic, peer->card.address.instance), "GNI_EpBind");
}

static void post(struct cfl_peer *peer, uint64_t at, const void *data, size_t bytes)
{
    gni_post_descriptor_t put = { .type = GNI_POST_FMA_PUT,
                                  .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                  .local_addr = (uint64_t)(uintptr_t)data,
                                  .remote_addr = at,
                                  .remote_mem_hndl = peer->card.memory,
                                  .length = bytes };
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_return_t rc;

    OPAL_THREAD_LOCK(&mutex);
    if (!peer->ep)
        connect_to(peer);
    while ((rc = GNI_PostFma(peer->ep, &put)) == GNI_RC_ERROR_RESOURCE)
        gnii_rounds_end_one(own.nic, true);
    must(rc, "GNI_PostFma");
    while ((rc = GNI_CqGetEvent(own.queue, &entry)) == GNI_RC_NOT_DONE)
        gnii_rounds_end_one(own.nic, true);
    must(rc, "a process cannot be reached");
    must(GNI_GetCompleted(own.queue, entry, &done), "GNI_GetCompleted");
    OPAL_THREAD_UNLOCK(&mutex);
}

/* ---- messages ---- */

void cfl_tell(struct cfl_channel *channel, int rank, const void *data, size_t bytes)
{
    struct cfl_peer *peer = &channel->peers[rank];
    uint64_t at = place_at(channel, peer, channel->number);
    uint64_t data_at = at + offsetof(struct cfl_line, place[0].data);

    if (bytes > 0 && gnii_launch_put(peer->target, data_at, data, bytes) != GNII_LAUNCH_DONE)
        post(peer, data_at, data, bytes);
    if (gnii_launch_flag(peer->target, at, channel->number) != GNII_LAUNCH_DONE)
        post(peer, at, &channel->number, sizeof(channel->number));
}
