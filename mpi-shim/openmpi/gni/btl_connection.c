/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections on demand, by datagrams; or all at once, where mailboxes for all are no more than ALL_BYTES. That is for
 * virtual time, in which the moment of a datagram is the host's choice.
 *
 *   first send to a peer: directed datagram with a mailbox of ours
 *   it meets a wildcard of the peer, or the peer's own directed one -> both have the other's mailbox
 *
 * A directed datagram is refused while one of the peer has already met a wildcard of ours: that one connects us, so the
 * refusal needs no answer but patience. Two directed ones that cross meet each other. So a pair has one exchange.
 *
 * Mailboxes are parts of slabs, which are mapped and registered once and stay. A process has as many mailboxes as it
 * has connections, and one for each wildcard.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define VERSION       1u
#define SLAB_BYTES    (1u << 20)
#define SLAB_MOST     64u
#define ALL_BYTES     (256ull << 20)
#define DIRECTED      (1ull << 32) /* ids of directed datagrams; the rest is the rank */
#define NEW_MAILBOXES MG_WILDCARDS

struct mg_slab {
    struct mg_slab *next;
    void *memory;
    size_t bytes;
    gni_mem_handle_t handle;
    uint32_t n_used;
    uint32_t n;
};

/* ---- mailboxes ---- */

static uint32_t slab_size(void)
{
    uint32_t n = SLAB_BYTES / mg.mailbox_bytes;

    return n < NEW_MAILBOXES ? NEW_MAILBOXES : n > SLAB_MOST ? SLAB_MOST : n;
}

/* With room for n mailboxes. */
static struct mg_slab *make_slab(uint32_t n)
{
    struct mg_slab *slab = calloc(1, sizeof(*slab));
    gni_return_t rc;

    if (!slab)
        mg_fail("no memory for mailboxes");
    slab->n = n;
    slab->bytes = (size_t)n * mg.mailbox_bytes;
    slab->memory = mmap(NULL, slab->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab->memory == MAP_FAILED)
        mg_fail("no memory for mailboxes");
    rc =
        GNI_MemRegister(mg.nic.nic, (uint64_t)(uintptr_t)slab->memory, slab->bytes,
                        mg.polls_mailboxes ? NULL : mg.nic.other_queue, GNI_MEM_READWRITE, (uint32_t)-1, &slab->handle);
    mg_must(rc, "GNI_MemRegister");
    slab->next = mg.slabs;
    mg.slabs = slab;
    return slab;
}

static gni_smsg_attr_t attributes_of_all(void)
{
    return (gni_smsg_attr_t){ .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                              .mbox_maxcredit = (uint16_t)mg.credits,
                              .msg_maxsize = (uint32_t)mg.message_bytes };
}

static gni_smsg_attr_t new_mailbox(void)
{
    gni_smsg_attr_t attributes = attributes_of_all();
    struct mg_slab *slab = mg.slabs;

    if (!slab || slab->n_used == slab->n)
        slab = make_slab(slab_size());
    attributes.msg_buffer = slab->memory;
    attributes.buff_size = mg.mailbox_bytes;
    attributes.mem_hndl = slab->handle;
    attributes.mbox_offset = slab->n_used++ * mg.mailbox_bytes;
    return attributes;
}

static struct mg_hello new_hello(void)
{
    return (struct mg_hello){ .version = VERSION, .rank = mg.rank, .mailbox = new_mailbox() };
}

/* ---- peers ---- */

struct mca_btl_base_endpoint_t *mg_peer(uint32_t rank, struct mg_address address)
{
    struct mca_btl_base_endpoint_t *peer = mg.peers[rank];

    if (peer)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (!peer)
        return NULL;
    peer->rank = rank;
    peer->address = address;
    mg.peers[rank] = peer;
    return peer;
}

gni_ep_handle_t mg_end_point(struct mca_btl_base_endpoint_t *peer)
{
    if (peer->ep)
        return peer->ep;
    mg_must(GNI_EpCreate(mg.nic.nic, mg.nic.own_queue, &peer->ep), "GNI_EpCreate");
    mg_must(GNI_EpBind(peer->ep, peer->address.nic, peer->address.instance), "GNI_EpBind");
    mg_must(GNI_EpSetEventData(peer->ep, peer->rank, mg.rank), "GNI_EpSetEventData");
    return peer->ep;
}

static void finish(struct mca_btl_base_endpoint_t *peer)
{
    if (peer->other.version != VERSION || peer->other.rank != peer->rank)
        mg_fail("rank %u has another version of this component", peer->rank);
    mg_must(GNI_SmsgInit(mg_end_point(peer), &peer->own.mailbox, &peer->other.mailbox), "GNI_SmsgInit");
    peer->state = MG_CONNECTED;
    if (mg.polls_mailboxes)
        mg.connected[mg.n_connected++] = peer;
    mg_readable(peer);
}

void mg_connect(struct mca_btl_base_endpoint_t *peer)
{
    gni_return_t rc;

    if (peer->state != MG_IDLE)
        return;
    if (peer->own.version == 0)
        peer->own = new_hello();
    rc = GNI_EpPostDataWId(mg_end_point(peer), &peer->own, sizeof(peer->own), &peer->other, sizeof(peer->other),
                           DIRECTED | peer->rank);
    if (rc == GNI_RC_ERROR_RESOURCE)
        return; /* it is about to connect to us, or asked again with the next message that waits */
    mg_must(rc, "GNI_EpPostDataWId");
    peer->state = MG_CONNECTING;
}

/* ---- datagrams ---- */

static void post_wildcard(uint32_t i)
{
    struct mg_wildcard *wildcard = &mg.wildcards[i];

    mg_must(GNI_EpPostDataWId(wildcard->ep, &wildcard->own, sizeof(wildcard->own), &wildcard->other,
                              sizeof(wildcard->other), i),
            "GNI_EpPostDataWId");
}

/* One mailbox behind the other, by rank. */
static void make_all_mailboxes(void)
{
    make_slab(mg.n_ranks);
    mg.first = new_hello();
    mg.slabs->n_used = mg.slabs->n;
}

int mg_listen(void)
{
    gni_smsg_attr_t attributes = attributes_of_all();
    unsigned bytes = 0;

    mg_must(GNI_SmsgBufferSizeNeeded(&attributes, &bytes), "GNI_SmsgBufferSizeNeeded");
    mg.mailbox_bytes = (bytes + 63) & ~63u;
    if (mg.connects_all && (uint64_t)mg.n_ranks * mg.mailbox_bytes <= ALL_BYTES) {
        make_all_mailboxes();
        return 0;
    }
    for (uint32_t i = 0; i < MG_WILDCARDS; i++) {
        mg.wildcards[i].own = new_hello();
        mg_must(GNI_EpCreate(mg.nic.nic, NULL, &mg.wildcards[i].ep), "GNI_EpCreate");
        post_wildcard(i);
    }
    return 0;
}

void mg_connect_by_card(struct mca_btl_base_endpoint_t *peer, const struct mg_card *card)
{
    if (card->first.version == 0 || mg.first.version == 0 || peer->state != MG_IDLE)
        return;
    peer->own = mg.first;
    peer->own.mailbox.mbox_offset += peer->rank * mg.mailbox_bytes;
    peer->other = card->first;
    peer->other.mailbox.mbox_offset += mg.rank * mg.mailbox_bytes;
    finish(peer);
}

/* A peer has come to a wildcard. */
static void welcome(uint32_t i, struct mg_address address)
{
    struct mg_wildcard *wildcard = &mg.wildcards[i];
    struct mca_btl_base_endpoint_t *peer;

    if (wildcard->other.version != VERSION || wildcard->other.rank >= mg.n_ranks)
        mg_fail("a datagram of NIC %u, instance %#x is none of this job", address.nic, address.instance);
    peer = mg_peer(wildcard->other.rank, address);
    if (!peer)
        mg_fail("no memory for rank %u", wildcard->other.rank);
    if (peer->state != MG_IDLE)
        mg_fail("rank %u has connected twice", peer->rank);
    peer->own = wildcard->own;
    peer->other = wildcard->other;
    wildcard->own = new_hello();
    finish(peer);
    post_wildcard(i);
}

static bool collect(uint64_t id)
{
    bool is_directed = (id & DIRECTED) != 0;
    uint32_t i = (uint32_t)id;
    struct mca_btl_base_endpoint_t *peer = NULL;
    struct mg_address address;
    gni_post_state_t state;
    gni_return_t rc;

    if (is_directed && i < mg.n_ranks)
        peer = mg.peers[i];
    if (is_directed ? !peer : i >= MG_WILDCARDS)
        mg_fail("a datagram with id %llx", (unsigned long long)id);
    rc = GNI_EpPostDataTestById(peer ? peer->ep : mg.wildcards[i].ep, id, &state, &address.nic, &address.instance);
    if (rc == GNI_RC_NO_MATCH || (rc == GNI_RC_SUCCESS && state == GNI_POST_PENDING))
        return false;
    mg_must(rc, "GNI_EpPostDataTestById");
    if (state == GNI_POST_REMOTE_DATA)
        return false;
    if (state != GNI_POST_COMPLETED && peer) {
        mg_lost(peer->rank);
        return true;
    }
    if (state != GNI_POST_COMPLETED)
        mg_fail("datagrams have ended: the NIC has gone");
    if (peer)
        finish(peer);
    else
        welcome(i, address);
    return true;
}

int mg_poll_datagrams(void)
{
    uint64_t id;
    int n = 0;

    while (GNI_PostDataProbeById(mg.nic.nic, &id) == GNI_RC_SUCCESS && collect(id))
        n++;
    return n;
}

/* ---- end ---- */

void mg_disconnect_all(void)
{
    for (uint32_t i = 0; i < MG_WILDCARDS; i++) {
        if (mg.wildcards[i].ep)
            GNI_EpDestroy(mg.wildcards[i].ep);
        mg.wildcards[i].ep = NULL;
    }
    for (uint32_t i = 0; mg.peers && i < mg.n_ranks; i++) {
        if (mg.peers[i] && mg.peers[i]->ep)
            GNI_EpDestroy(mg.peers[i]->ep);
        free(mg.peers[i]);
    }
    free(mg.peers);
    mg.peers = NULL;
    while (mg.slabs) {
        struct mg_slab *slab = mg.slabs;

        mg.slabs = slab->next;
        GNI_MemDeregister(mg.nic.nic, &slab->handle);
        munmap(slab->memory, slab->bytes);
        free(slab);
    }
}
