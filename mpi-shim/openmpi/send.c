/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending.
 *
 *   short: put at once                                                    -> done
 *          or, where the NIC of the peer is not in reach of this process, put a copy                     -> done
 *          (in virtual time from where it is; SEND_END -> done)
 *   long or synchronous: put with acknowledgement
 *       SEND_END and an acknowledgement of some bytes (a receive took it)  -> done
 *       SEND_END and one of no bytes, and the get of the receiver          -> done
 *
 * A receiver that gets no byte of a message of the second kind fetches it, even if it is empty: so its end tells the
 * sender that it was matched. What has no credit, or no number, waits in the order of the calls; a short message for
 * which the peer's overflow entries may have no room goes the second way.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <stdlib.h>
#include <string.h>

#include <opal/runtime/opal_progress.h>

#include "emunic/client/message_cost.h"
#include "libportals/src/message_layer.h"

#define POLL_ROUND 16u

static bool is_short(const struct mp3_request *request)
{
    const struct mp3_peer *peer = request->peer;
    uint64_t waiting = (uint64_t)(uint32_t)(peer->sent_bytes - peer->granted_bytes) + request->length_bytes;

    return !request->is_synchronous && request->length_bytes <= (size_t)mp3.eager_limit && waiting <= mp3.window_bytes;
}

static void conclude(struct mp3_request *request)
{
    if (request->is_packed)
        free(request->buffer);
    if (request->super.ompi_req)
        request->super.ompi_req->req_status.MPI_ERROR = MPI_SUCCESS;
    mp3_done(request);
}

/* Of the memory's descriptor. */
static uint64_t offset_of(const struct mp3_request *request)
{
    return request->length_bytes > 0 ? (uint64_t)(uintptr_t)request->buffer - MP3_BASE : 0;
}

static bool leave(const struct mp3_request *request, const struct p3_message *message)
{
    struct p3_way *way = request->peer->way;

    return way && request->length_bytes <= P3_SHORT_BYTES &&
           p3_way_leave(way, request->buffer, request->length_bytes, message);
}

/* By the ordinary call. False: nothing has happened. */
static bool put_now(const struct mp3_request *request, const struct p3_message *message)
{
    bool is_over = false;
    int r = p3_put_now(mp3.silent_memory, offset_of(request), request->length_bytes, message, &is_over);

    if (r == PTL_FAIL)
        mp3_lost(message->target);
    if (r != PTL_OK)
        mp3_fail("put to %u:%u: %s", message->target.nid, message->target.pid, ptl_err_str[r]);
    return is_over;
}

/* A short one, if it can be over at once. False: nothing has happened. */
static bool put_at_once(struct mp3_request *request)
{
    struct mp3_peer *peer = request->peer;
    const struct p3_message message = { peer->id, MP3_PT_MESSAGE, request->bits, 0 };

    if (!leave(request, &message) && !put_now(request, &message))
        return false;
    peer->sent_messages++;
    peer->sent_bytes += (uint32_t)request->length_bytes;
    conclude(request);
    return true;
}

/*
 * What is put instead of a short message, whose sender need not wait for emunic then. NULL: the message itself, out of
 * memory; or in virtual time, where a send is complete when the modelled NIC has read it.
 */
static struct mp3_request *copy_of(const struct mp3_request *request)
{
    struct mp3_request *copy = p3_message_costs() ? NULL : malloc(sizeof(*copy) + request->length_bytes);

    if (!copy)
        return NULL;
    *copy = *request;
    copy->is_copy = true;
    copy->is_packed = false;
    copy->super.ompi_req = NULL;
    copy->buffer = (char *)(copy + 1);
    memcpy(copy->buffer, request->buffer, request->length_bytes);
    mp3.n_copies++;
    return copy;
}

/* Puts it. False: there is no credit, too much is under way, or short ones before it wait to be taken. */
static bool launch(struct mp3_request *request)
{
    struct mp3_peer *peer = request->peer;
    struct mp3_request *copy;
    uint64_t address;
    int r;

    if (mp3.n_free_sends == 0 || mp3.n_flights == MP3_FLIGHTS ||
        peer->sent_messages - peer->granted_messages >= mp3.window_messages)
        return false;
    request->is_fetched = !is_short(request);
    if (!request->is_fetched && put_at_once(request))
        return true;
    if (!p3_has_taken(mp3.ni, peer->id))
        return false;
    copy = request->is_fetched ? NULL : copy_of(request);
    if (copy) {
        conclude(request);
        request = copy;
    }
    address = (uint64_t)(uintptr_t)request->buffer;
    request->number = mp3.free_sends[--mp3.n_free_sends];
    mp3.sends[request->number] = request;
    mp3.n_flights++;
    peer->sent_messages++;
    if (!request->is_fetched)
        peer->sent_bytes += (uint32_t)request->length_bytes;
    r = PtlPutRegion(mp3.memory, offset_of(request), request->length_bytes,
                     request->is_fetched ? PTL_ACK_REQ : PTL_NOACK_REQ, peer->id, MP3_PT_MESSAGE, 0,
                     request->bits | (request->is_fetched ? MP3_BIT_FETCH : 0), 0,
                     (ptl_hdr_data_t)request->number << 48 | (address & MP3_ADDRESS));
    if (r != PTL_OK)
        mp3_fail("put to %u:%u: %s", peer->id.nid, peer->id.pid, ptl_err_str[r]);
    return true;
}

static void append(struct mp3_request *request)
{
    struct mp3_peer *peer = request->peer;

    request->next = NULL;
    if (peer->waiting)
        peer->last_waiting->next = request;
    else
        peer->waiting = request;
    peer->last_waiting = request;
    if (!peer->is_waiting) {
        peer->is_waiting = true;
        peer->next_waiting = mp3.first_waiting;
        mp3.first_waiting = peer;
    }
}

void mp3_send_waiting(void)
{
    struct mp3_peer **link = &mp3.first_waiting;

    while (*link) {
        struct mp3_peer *peer = *link;

        while (peer->waiting) {
            struct mp3_request *request = peer->waiting;
            struct mp3_request *next = request->next;

            if (!launch(request))
                break;
            peer->waiting = next;
        }
        if (peer->waiting) {
            link = &peer->next_waiting;
        } else {
            peer->is_waiting = false;
            *link = peer->next_waiting;
        }
    }
}

static bool is_in_flight(const struct mp3_request *request)
{
    unsigned state = request->state;

    return (state & MP3_SENT) == 0 || (request->is_fetched && (state & (MP3_KEPT | MP3_REFUSED)) == 0);
}

static bool is_over(const struct mp3_request *request)
{
    unsigned state = request->state;
    bool is_taken = (state & MP3_KEPT) || ((state & MP3_REFUSED) && (state & MP3_FETCHED));

    return (state & MP3_SENT) && (is_taken || !request->is_fetched);
}

void mp3_send_event(uint32_t number, unsigned state, bool has_failed)
{
    struct mp3_request *request = number < MP3_SENDS ? mp3.sends[number] : NULL;
    bool was_in_flight;

    if (!request)
        return;
    if (has_failed)
        mp3_lost(request->peer->id);
    was_in_flight = is_in_flight(request);
    request->state |= state;
    if (was_in_flight && !is_in_flight(request))
        mp3.n_flights--;
    if (!is_over(request))
        return;
    mp3.sends[number] = NULL;
    mp3.free_sends[mp3.n_free_sends++] = number;
    if (request->is_copy) {
        mp3.n_copies--;
        free(request);
    } else {
        conclude(request);
    }
}

/* ---- calls ---- */

/*
 * Data that lie together are sent from where they are. Then ompi_mtl_datatype_pack() takes the convertor's base for
 * their address. Of persistent sends it is not: pml/cm has the convertor prepared as usual, so the datatype's lower
 * bound comes on top.
 */
static int pack(struct mp3_request *request, struct opal_convertor_t *convertor)
{
    bool is_based = convertor->pDesc && (convertor->flags & CONVERTOR_SEND) &&
                    !(convertor->flags & CONVERTOR_COMPLETED) &&
                    opal_datatype_is_contiguous_memory_layout(convertor->pDesc, (int32_t)convertor->count);
    void *buffer = NULL;
    int r = ompi_mtl_datatype_pack(convertor, &buffer, &request->length_bytes, &request->is_packed);

    request->buffer = is_based ? (char *)buffer + convertor->pDesc->true_lb : buffer;
    return r;
}

static int prepare(struct mp3_request *request, struct ompi_communicator_t *comm, int dest, int tag,
                   struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    int r = pack(request, convertor);

    if (r != OMPI_SUCCESS)
        return r;
    request->is_synchronous = mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    request->is_done = false;
    request->is_copy = false;
    request->is_posted = false;
    request->is_listed = false;
    request->state = 0;
    request->peer = ompi_comm_peer_lookup(comm, dest)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
    request->bits =
        (ptl_match_bits_t)comm->c_contextid << 48 | (ptl_match_bits_t)(uint16_t)comm->c_my_rank << 32 | (uint32_t)tag;
    return request->peer ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

/* Looks at events unless it is over at once: of such sends every POLL_ROUND-th does. */
static void submit(struct mp3_request *request)
{
    static uint32_t calls;

    p3_message_spend(EMU_MESSAGE_SENT);
    mp3_lock();
    if (request->peer->waiting || !launch(request))
        append(request);
    if (!mp3.done || ++calls % POLL_ROUND == 0)
        mp3_poll(false);
    mp3_unlock();
    mp3_call_back();
}

int mp3_isend(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
              struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode, bool blocking,
              mca_mtl_request_t *mtl_request)
{
    struct mp3_request *request = (struct mp3_request *)mtl_request;
    int r = prepare(request, comm, dest, tag, convertor, mode);

    (void)mtl;
    (void)blocking;
    if (r == OMPI_SUCCESS)
        submit(request);
    return r;
}

int mp3_send(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int dest, int tag,
             struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    struct mp3_request request = { .super.ompi_req = NULL };
    int r = prepare(&request, comm, dest, tag, convertor, mode);

    (void)mtl;
    if (r != OMPI_SUCCESS)
        return r;
    submit(&request);
    while (!*(volatile bool *)&request.is_done)
        opal_progress();
    return OMPI_SUCCESS;
}
