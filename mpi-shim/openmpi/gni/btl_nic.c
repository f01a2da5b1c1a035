/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC of a process: communication domain, queues, bounce buffers.
 *
 * Nothing is lost: each message has room in the queue of its receiver up to QUEUE_MAX entries; beyond, the queue may
 * overrun, and then all mailboxes are looked into. Mailboxes shrink with the number of processes, so that the memory of
 * a process that talks to all others has a bound.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <ompi/mca/rte/rte.h>
#include <opal/mca/pmix/pmix.h>

#include "emunic/client/message_cost.h"
#include "libugni/src/poll_rounds.h"

#define OWN_ENTRIES 4096u
#define QUEUE_MIN   1024u
#define QUEUE_MAX   65536u
#define INSTANCE    0x47000000u /* apart from those that programs choose, which are small */

/* Sizes of mailboxes by the number of processes. */
static const struct {
    uint32_t n_ranks;
    int message_bytes;
    int credits;
} sizes[] = { { 8, 8192, 64 },   { 16, 8192, 32 },   { 64, 8192, 16 },
              { 256, 4096, 16 }, { 1024, 1024, 16 }, { UINT32_MAX, 512, 8 } };

static int fail(const char *what, gni_return_t rc)
{
    opal_output(0, "emunic: btl/gni: %s: %s", what, gni_err_str[rc]);
    return -1;
}

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

static void limit(size_t *value, size_t most)
{
    if (*value > most)
        *value = most;
}

static void choose_sizes(void)
{
    size_t most;
    unsigned i = 0;

    mg.rank = OPAL_PROC_MY_NAME.vpid;
    mg.n_ranks = ompi_process_info.num_procs;
    while (mg.n_ranks > sizes[i].n_ranks)
        i++;
    mg.message_bytes = clamp(mg.message_bytes > 0 ? mg.message_bytes : sizes[i].message_bytes, 256, MG_INLINE);
    mg.credits = clamp(mg.credits > 0 ? mg.credits : sizes[i].credits, 1, 1024);
    mg.polls_mailboxes = mg.n_ranks <= (uint32_t)clamp(mg.polled_ranks, 0, MG_POLLED_RANKS);
    mg.fma_limit = clamp(mg.fma_limit, 0, 1 << 20);
    most = (size_t)mg.message_bytes;
    limit(&mg.super.btl_eager_limit, most);
    limit(&mg.super.btl_rndv_eager_limit, mg.super.btl_eager_limit);
    limit(&mg.super.btl_max_send_size, most);
    limit(&mg.super.btl_rdma_pipeline_send_length, most);
    /* A get of so few bytes may go through a bounce buffer; a put by FMA reads any memory. */
    mg.super.btl_get_local_registration_threshold = MG_SLOT_BYTES - 64;
    mg.super.btl_put_local_registration_threshold = (size_t)mg.fma_limit;
    mg.super.btl_get_alignment = 0;
    mg.super.btl_put_alignment = 0;
}

/* First element of a list of the launcher's. */
static bool read_number(const char *name, uint32_t *value_out)
{
    const char *text = getenv(name);
    char *end = NULL;
    long long value = text ? strtoll(text, &end, 10) : 0;

    *value_out = (uint32_t)value;
    return text && end != text && (*end == '\0' || *end == ':');
}

static int attach(void)
{
    struct mg_nic *nic = &mg.nic;
    uint32_t ptag;
    uint32_t cookie;
    uint32_t device;
    gni_return_t rc;

    if (!read_number("PMI_GNI_PTAG", &ptag) || !read_number("PMI_GNI_COOKIE", &cookie))
        return fail("PMI_GNI_PTAG, PMI_GNI_COOKIE", GNI_RC_INVALID_PARAM);
    if (!read_number("PMI_GNI_DEV_ID", &device))
        device = 0;
    nic->address.instance = INSTANCE | mg.rank;
    rc = GNI_GetDeviceType(&nic->device);
    if (rc == GNI_RC_SUCCESS)
        rc = GNI_CdmCreate(nic->address.instance, (uint8_t)ptag, cookie,
                           GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_FMA_SHARED | GNI_CDM_MODE_FAST_DATAGRAM_POLL,
                           &nic->cdm);
    if (rc == GNI_RC_SUCCESS)
        rc = GNI_CdmAttach(nic->cdm, device, &nic->address.nic, &nic->nic);
    mg.costs_time = gnii_message_costs(); /* the clock came with the first attach of the process */
    return rc == GNI_RC_SUCCESS ? 0 : fail("attach", rc);
}

static int make_queues(void)
{
    struct mg_nic *nic = &mg.nic;
    uint64_t n_others = (uint64_t)mg.n_ranks * (uint64_t)(mg.credits + 4);
    gni_return_t rc = GNI_CqCreate(nic->nic, OWN_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &nic->own_queue);

    if (n_others < QUEUE_MIN)
        n_others = QUEUE_MIN;
    if (n_others > QUEUE_MAX)
        n_others = QUEUE_MAX;
    if (rc == GNI_RC_SUCCESS)
        rc = GNI_CqCreate(nic->nic, (uint32_t)n_others, 0, GNI_CQ_NOBLOCK, NULL, NULL, &nic->other_queue);
    return rc == GNI_RC_SUCCESS ? 0 : fail("completion queues", rc);
}

static int make_slots(void)
{
    struct mg_nic *nic = &mg.nic;
    size_t bytes = (size_t)MG_SLOTS * MG_SLOT_BYTES;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gni_return_t rc = GNI_RC_ERROR_NOMEM;

    if (memory != MAP_FAILED) {
        nic->slots = memory;
        rc = GNI_MemRegister(nic->nic, (uint64_t)(uintptr_t)memory, bytes, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                             &nic->slots_memory);
    }
    if (rc != GNI_RC_SUCCESS)
        return fail("bounce buffers", rc);
    for (uint32_t i = 0; i < MG_SLOTS; i++)
        nic->free_slots[i] = nic->slots + (size_t)(MG_SLOTS - 1 - i) * MG_SLOT_BYTES;
    nic->n_free_slots = MG_SLOTS;
    return 0;
}

static int tell_others(void)
{
    struct mg_card card = { .address = mg.nic.address, .first = mg.first };
    int r;

    OPAL_MODEX_SEND(r, OPAL_PMIX_GLOBAL, &mca_btl_gni_component.btl_version, &card, sizeof(card));
    if (r == OPAL_SUCCESS)
        return 0;
    opal_output(0, "emunic: btl/gni: modex: %d", r);
    return -1;
}

int mg_open(void)
{
    OBJ_CONSTRUCT(&mg.mutex, opal_mutex_t);
    mg.is_open = true;
    mg.readable_end = &mg.first_readable;
    mg.sent_end = &mg.sent;
    mg.queued_end = &mg.queued;
    mg.done_end = &mg.done;
    choose_sizes();
    mg.peers = calloc(mg.n_ranks, sizeof(struct mca_btl_base_endpoint_t *));
    if (mg.peers && mg_make_fragments() == 0 && mg_make_posts() == 0 && attach() == 0 && make_queues() == 0 &&
        make_slots() == 0 && mg_make_cache() == 0 && mg_listen() == 0 && tell_others() == 0) {
        gnii_rounds_begin(mg.nic.nic);
        mg_offer_windows();
        mg.super.btl_atomic_flags = mg_atomics(mg.nic.device);
        return 0;
    }
    mg_close();
    return -1;
}

void mg_close(void)
{
    if (!mg.is_open)
        return;
    mg.is_open = false;
    mg_free_cache();
    mg_disconnect_all();
    if (mg.nic.cdm)
        GNI_CdmDestroy(mg.nic.cdm);
    if (mg.nic.slots)
        munmap(mg.nic.slots, (size_t)MG_SLOTS * MG_SLOT_BYTES);
    free(mg.posts);
    OBJ_DESTRUCT(&mg.works);
    OBJ_DESTRUCT(&mg.small_frags);
    OBJ_DESTRUCT(&mg.large_frags);
    OBJ_DESTRUCT(&mg.mutex);
}
