/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving.
 *
 * A receive first looks among the unexpected messages that are known, then becomes an entry of the match list. The NIC
 * refuses the entry (PtlMEMDPost with a queue to test) while a message is on its way into an overflow entry or has an
 * event there; then these events are taken first. So no message is ever behind a receive that it should have met.
 *
 * Where messages come by inboxes, a receive of no more bytes than they have is listed here instead: its message comes
 * that way as a rule, and then goes past the NIC. Others are unexpected for the NIC, and meet it when their event is
 * taken. An entry that takes what a listed receive takes is always the older one, because such receives become entries
 * before a newer one does; so whatever comes is shown to the entries first, then to the list.
 *
 * A receive for which the NIC has no entry left is listed as well.
 *
 * Messages are known from START on, because START comes in the order of matching, and END does not: a short message may
 * end before a long one that was matched first. A receive that has met one waits for its END.
 *
 * Short receives land in memory of the component, which peers have a window to; the rest lands in the program's.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <stdlib.h>

#include <ompi/message/message.h>
#include <opal/runtime/opal_progress.h>

#include "emunic/client/message_cost.h"
#include "libportals/src/message_layer.h"

#define FOUND_PER_ROUND 16u

static struct mp3_request *first_fetch; /* borrowed: they wait for a number */
static struct mp3_request **fetch_end = &first_fetch;

/* ---- matching ---- */

struct pattern {
    ptl_match_bits_t bits;
    ptl_match_bits_t ignore;
};

static struct pattern pattern_of(const struct ompi_communicator_t *comm, int src, int tag)
{
    struct pattern p = { (ptl_match_bits_t)comm->c_contextid << 48, MP3_BIT_FETCH };

    if (src == MPI_ANY_SOURCE)
        p.ignore |= MP3_IGNORE_RANK;
    else
        p.bits |= (ptl_match_bits_t)(uint16_t)src << 32;
    if (tag == MPI_ANY_TAG)
        p.ignore |= MP3_IGNORE_TAG;
    else
        p.bits |= (uint32_t)tag;
    return p;
}

/* The link to the oldest message that fits; what it points to is NULL if there is none. */
static struct mp3_unexpected **find(struct pattern p)
{
    struct mp3_unexpected **link = &mp3.unexpected;

    while (*link && (((*link)->bits ^ p.bits) & ~p.ignore) != 0)
        link = &(*link)->next;
    return link;
}

/* ---- receives that are no entries ---- */

/* The link to the oldest that takes a message; what it points to is NULL if there is none. */
static struct mp3_request **find_listed(ptl_match_bits_t bits)
{
    struct mp3_request **link = &mp3.listed;

    while (*link && (((*link)->bits ^ bits) & ~(*link)->ignore) != 0)
        link = &(*link)->next;
    return link;
}

static void list(struct mp3_request *request)
{
    request->is_listed = true;
    request->next = NULL;
    *mp3.listed_end = request;
    mp3.listed_end = &request->next;
}

static struct mp3_request *take_listed(struct mp3_request **link)
{
    struct mp3_request *request = *link;

    request->is_listed = false;
    *link = request->next;
    if (!*link)
        mp3.listed_end = link;
    return request;
}

/* Is there one that takes what a receive takes? */
static bool is_listed_for(struct pattern p)
{
    const struct mp3_request *request = mp3.listed;

    while (request && ((request->bits ^ p.bits) & ~(request->ignore | p.ignore)) != 0)
        request = request->next;
    return request;
}

/* ---- unexpected messages ---- */

static struct mp3_unexpected *take_out(struct mp3_unexpected **link)
{
    struct mp3_unexpected *message = *link;

    *link = message->next;
    if (!*link)
        mp3.unexpected_end = link;
    return message;
}

static struct mp3_unexpected *new_unexpected(size_t n)
{
    struct mp3_unexpected *message = malloc(sizeof(*message) + n);

    if (!message)
        mp3_fail("out of memory for unexpected messages");
    return message;
}

static void keep(struct mp3_unexpected *message)
{
    *mp3.unexpected_end = message;
    mp3.unexpected_end = &message->next;
}

void mp3_begin_unexpected(const ptl_event_t *event)
{
    struct mp3_unexpected *message = new_unexpected(event->md.user_ptr ? event->mlength : 0);
    struct mp3_request **link = find_listed(event->match_bits);

    *message = (struct mp3_unexpected){ .next_begun = mp3.begun,
                                        .link = event->link,
                                        .bits = event->match_bits,
                                        .source = event->initiator,
                                        .hdr_data = event->hdr_data,
                                        .length_bytes = event->rlength };
    mp3.begun = message;
    if (*link)
        message->met = take_listed(link);
    else
        keep(message);
}

void mp3_keep_short(const struct emu_short_message *from)
{
    struct mp3_unexpected *message = new_unexpected(from->length_bytes);

    *message = (struct mp3_unexpected){ .is_whole = true,
                                        .bits = from->bits,
                                        .source = { .nid = from->nid, .pid = (ptl_pid_t)from->pid },
                                        .length_bytes = from->length_bytes };
    memcpy(message->data, from->data, from->length_bytes);
    keep(message);
}

/* ---- the end of a receive ---- */

static int source_of(ptl_match_bits_t bits)
{
    return (int)(bits >> 32 & 0xffff);
}

/* Probes may have no status, and leave MPI_ERROR as it is. */
static void set_status(struct ompi_status_public_t *status, ptl_match_bits_t bits, size_t length_bytes)
{
    status->MPI_SOURCE = source_of(bits);
    status->MPI_TAG = (int)(uint32_t)bits;
    status->_ucount = length_bytes;
    status->_cancelled = 0;
}

/* n bytes are in the buffer. */
static void unpack(struct mp3_request *request, size_t n)
{
    if (request->is_packed && n == 0)
        free(request->buffer);
    else if (request->is_packed)
        ompi_mtl_datatype_unpack(request->convertor, request->buffer, n);
    request->is_packed = false;
}

/* Its data are in the buffer; the message had length_bytes. */
static void finish(struct mp3_request *request, ptl_match_bits_t bits, uint64_t length_bytes)
{
    bool is_cut = length_bytes > request->length_bytes;
    struct ompi_status_public_t *status = &request->super.ompi_req->req_status;

    p3_message_spend(EMU_MESSAGE_RECEIVED);
    set_status(status, bits, is_cut ? request->length_bytes : length_bytes);
    status->MPI_ERROR = is_cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    unpack(request, is_cut ? request->length_bytes : length_bytes);
    mp3_done(request);
}

bool mp3_receive_short(const struct emu_short_message *message)
{
    struct mp3_request **link = find_listed(message->bits);
    struct mp3_request *request = *link;
    size_t n = message->length_bytes;

    if (!request)
        return false;
    take_listed(link);
    if (n > request->length_bytes)
        n = request->length_bytes;
    if (n > 0)
        memcpy(request->buffer, message->data, n);
    finish(request, message->bits, message->length_bytes);
    return true;
}

/* ---- fetching ---- */

/* Gets the data, or with number MP3_NOBODY nothing: the sender only learns that it was matched. */
static void get(uint32_t number, char *buffer, size_t n, ptl_process_id_t source, ptl_hdr_data_t hdr_data)
{
    uint64_t address = hdr_data & MP3_ADDRESS;
    ptl_match_bits_t bits = (hdr_data & ~MP3_ADDRESS) | number;
    int r = PtlGetRegion(mp3.memory, n > 0 ? (uint64_t)(uintptr_t)buffer - MP3_BASE : 0, n, source, MP3_PT_FETCH, 0,
                         bits, n > 0 ? address - MP3_BASE : 0);

    if (r != PTL_OK)
        mp3_fail("get from %u:%u: %s", source.nid, source.pid, ptl_err_str[r]);
}

/* The message's length and address wait in the request meanwhile. */
static bool try_fetch(struct mp3_request *request)
{
    struct mp3_unexpected *message = (struct mp3_unexpected *)request->peer;
    size_t n = message->length_bytes < request->length_bytes ? message->length_bytes : request->length_bytes;

    if (mp3.n_free_fetches == 0)
        return false;
    request->number = mp3.free_fetches[--mp3.n_free_fetches];
    mp3.fetches[request->number] = request;
    get(request->number, request->buffer, n, message->source, message->hdr_data);
    return true;
}

void mp3_fetch_waiting(void)
{
    while (first_fetch && mp3.n_free_fetches > 0) {
        struct mp3_request *request = first_fetch;

        first_fetch = request->next;
        if (!first_fetch)
            fetch_end = &first_fetch;
        (void)try_fetch(request);
    }
}

void mp3_fetch_event(const ptl_event_t *event)
{
    uint32_t number = (uint32_t)event->match_bits;
    struct mp3_request *request = number < MP3_FETCHES ? mp3.fetches[number] : NULL;
    struct mp3_unexpected *message;

    if (event->ni_fail_type != PTL_NI_OK)
        mp3_lost(event->initiator);
    if (!request)
        return;
    mp3.fetches[number] = NULL;
    mp3.free_fetches[mp3.n_free_fetches++] = number;
    message = (struct mp3_unexpected *)request->peer;
    request->peer = NULL;
    finish(request, message->bits, message->length_bytes);
    free(message);
}

/* The receive has met this message, which is its now. */
static void meet(struct mp3_request *request, struct mp3_unexpected *message)
{
    size_t n = message->length_bytes < request->length_bytes ? message->length_bytes : request->length_bytes;

    if (!message->is_whole) {
        message->met = request;
        return;
    }
    if (message->bits & MP3_BIT_FETCH) {
        request->peer = (struct mp3_peer *)message;
        if (first_fetch || !try_fetch(request)) {
            request->next = NULL;
            *fetch_end = request;
            fetch_end = &request->next;
        }
        return;
    }
    if (n > 0)
        memcpy(request->buffer, message->data, n);
    finish(request, message->bits, message->length_bytes);
    free(message);
}

static struct mp3_unexpected *take_begun(uint64_t link)
{
    struct mp3_unexpected **at = &mp3.begun;
    struct mp3_unexpected *message;

    while (*at && (*at)->link != link)
        at = &(*at)->next_begun;
    message = *at;
    if (!message)
        mp3_fail("a message has ended that had not begun");
    *at = message->next_begun;
    return message;
}

void mp3_keep(const ptl_event_t *event)
{
    const struct mp3_block *block = event->md.user_ptr;
    struct mp3_unexpected *message;

    if (event->ni_fail_type != PTL_NI_OK)
        mp3_lost(event->initiator);
    message = take_begun(event->link);
    if (block && event->mlength > 0)
        memcpy(message->data, block->start + event->offset, event->mlength);
    message->is_whole = true;
    if (message->met)
        meet(message->met, message);
}

/* ---- posted receives ---- */

static void leave_landing(struct mp3_request *request, size_t n)
{
    if (request->slot == MP3_NO_SLOT)
        return;
    if (n > 0)
        memcpy(request->buffer, mp3.landings + (size_t)request->slot * (size_t)mp3.landing_limit, n);
    mp3.free_landings[mp3.n_free_landings++] = request->slot;
    request->slot = MP3_NO_SLOT;
}

void mp3_receive_event(const ptl_event_t *event)
{
    struct mp3_request *request = event->md.user_ptr;

    if (event->ni_fail_type != PTL_NI_OK)
        mp3_lost(event->initiator);
    request->is_posted = false;
    mp3.n_posted--;
    leave_landing(request, event->mlength);
    if ((event->match_bits & MP3_BIT_FETCH) && event->mlength == 0)
        get(MP3_NOBODY, NULL, 0, event->initiator, event->hdr_data);
    finish(request, event->match_bits, event->rlength);
}

static int post(struct mp3_request *request)
{
    static const ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
    ptl_md_t md = { .start = request->length_bytes > 0 ? request->buffer : NULL,
                    .length = request->length_bytes,
                    .threshold = 1,
                    .options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE,
                    .user_ptr = request,
                    .eq_handle = mp3.queues[0] };
    ptl_handle_md_t handle;
    int r;

    if (request->length_bytes > 0 && request->length_bytes <= (size_t)mp3.landing_limit && mp3.n_free_landings > 0) {
        request->slot = mp3.free_landings[--mp3.n_free_landings];
        md.start = mp3.landings + (size_t)request->slot * (size_t)mp3.landing_limit;
    }
    r = PtlMEMDPost(mp3.ni, mp3.anchor, anybody, request->bits, request->ignore, PTL_UNLINK, PTL_INS_BEFORE, md,
                    PTL_UNLINK, &request->entry, &handle, mp3.queues[1]);
    if (r != PTL_OK)
        leave_landing(request, 0);
    else
        mp3.n_posted++;
    request->is_posted = r == PTL_OK;
    return r;
}

/* Those that are listed, up to the first that cannot be. */
static int post_listed(void)
{
    int r = PTL_OK;

    while (mp3.listed && r == PTL_OK) {
        r = post(mp3.listed);
        if (r == PTL_OK)
            take_listed(&mp3.listed);
    }
    return r;
}

/* Meets an unexpected message, or is listed or posted. */
static int receive(struct mp3_request *request, struct pattern p)
{
    int r;

    request->bits = p.bits;
    request->ignore = p.ignore;
    do {
        struct mp3_unexpected **link = find(p);

        if (*link) {
            meet(request, take_out(link));
            return OMPI_SUCCESS;
        }
        if (mp3.has_inboxes && request->length_bytes <= P3_SHORT_BYTES) {
            list(request);
            return OMPI_SUCCESS;
        }
        r = is_listed_for(p) ? post_listed() : PTL_OK;
        if (r == PTL_OK)
            r = post(request);
        if (r == PTL_MD_NO_UPDATE)
            mp3_poll(true);
    } while (r == PTL_MD_NO_UPDATE);
    if (r == PTL_NO_SPACE || r == PTL_ME_LIST_TOO_LONG)
        list(request); /* younger than all entries, and than all that are listed */
    else if (r != PTL_OK)
        mp3_fail("receive: %s", ptl_err_str[r]);
    return OMPI_SUCCESS;
}

static int prepare(struct mp3_request *request, struct opal_convertor_t *convertor)
{
    void *buffer = NULL;
    size_t length_bytes = 0;
    bool is_packed = false;
    int r = ompi_mtl_datatype_recv_buf(convertor, &buffer, &length_bytes, &is_packed);

    if (r == OMPI_SUCCESS && is_packed && !buffer)
        r = OMPI_ERR_OUT_OF_RESOURCE;
    request->convertor = convertor;
    request->buffer = buffer;
    request->length_bytes = length_bytes;
    request->is_packed = is_packed;
    request->slot = MP3_NO_SLOT;
    request->is_posted = false;
    request->is_listed = false;
    request->is_done = false;
    return r;
}

/* ---- calls ---- */

int mp3_irecv(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag,
              struct opal_convertor_t *convertor, mca_mtl_request_t *mtl_request)
{
    struct mp3_request *request = (struct mp3_request *)mtl_request;
    int r = prepare(request, convertor);

    (void)mtl;
    if (r != OMPI_SUCCESS)
        return r;
    mp3_lock();
    r = receive(request, pattern_of(comm, src, tag));
    if (r != OMPI_SUCCESS && request->is_packed)
        free(request->buffer);
    mp3_unlock();
    if (mp3.done)
        mp3_call_back();
    return r;
}

int mp3_imrecv(struct mca_mtl_base_module_t *mtl, struct opal_convertor_t *convertor, struct ompi_message_t **message,
               mca_mtl_request_t *mtl_request)
{
    struct mp3_request *request = (struct mp3_request *)mtl_request;
    struct mp3_unexpected *met = (*message)->req_ptr;
    int r = prepare(request, convertor);

    (void)mtl;
    if (r != OMPI_SUCCESS)
        return r;
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    mp3_lock();
    meet(request, met);
    mp3_unlock();
    mp3_call_back();
    return OMPI_SUCCESS;
}

/*
 * As find(), locked. What is known already needs no round, which might give the core away. But who finds messages may
 * wait for something else, so now and then there is one. *n_out: what it has taken; 1 if there was none.
 */
static struct mp3_unexpected **look(struct pattern p, int *n_out)
{
    static uint32_t n_found;
    struct mp3_unexpected **link = find(p);

    *n_out = 1;
    if (*link && ++n_found % FOUND_PER_ROUND != 0)
        return link;
    *n_out = mp3_poll(true);
    return find(p);
}

int mp3_iprobe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag, int *flag,
               struct ompi_status_public_t *status)
{
    struct mp3_unexpected *found;
    int n;

    (void)mtl;
    mp3_lock();
    found = *look(pattern_of(comm, src, tag), &n);
    if (found && status != MPI_STATUS_IGNORE)
        set_status(status, found->bits, found->length_bytes);
    *flag = found ? 1 : 0;
    mp3_unlock();
    mp3_end_round(found || n > 0);
    return OMPI_SUCCESS;
}

int mp3_improbe(struct mca_mtl_base_module_t *mtl, struct ompi_communicator_t *comm, int src, int tag, int *matched,
                struct ompi_message_t **message, struct ompi_status_public_t *status)
{
    struct mp3_unexpected **link;
    ompi_message_t *handle = NULL;
    bool has_found;
    int n;

    (void)mtl;
    mp3_lock();
    link = look(pattern_of(comm, src, tag), &n);
    has_found = *link;
    if (has_found)
        handle = ompi_message_alloc();
    if (handle) {
        struct mp3_unexpected *met = take_out(link);

        if (status != MPI_STATUS_IGNORE)
            set_status(status, met->bits, met->length_bytes);
        handle->comm = comm;
        handle->req_ptr = met;
        handle->peer = source_of(met->bits);
        handle->count = met->length_bytes;
        *message = handle;
    }
    *matched = handle ? 1 : 0;
    mp3_unlock();
    mp3_end_round(has_found || n > 0);
    return has_found && !handle ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
}

/* False: a message has met it. */
static bool withdraw(struct mp3_request *request)
{
    struct mp3_request **link = &mp3.listed;

    if (request->is_listed) {
        while (*link != request)
            link = &(*link)->next;
        take_listed(link);
        return true;
    }
    if (!request->is_posted || PtlMEUnlink(request->entry) != PTL_OK)
        return false;
    request->is_posted = false;
    mp3.n_posted--;
    return true;
}

/* Sends are not cancelled: the message may be matched already. */
int mp3_cancel(struct mca_mtl_base_module_t *mtl, mca_mtl_request_t *mtl_request, int flag)
{
    struct mp3_request *request = (struct mp3_request *)mtl_request;

    (void)mtl;
    (void)flag;
    if (request->super.ompi_req->req_type == OMPI_REQUEST_PML) {
        mp3_lock();
        if (withdraw(request)) {
            struct ompi_status_public_t *status = &request->super.ompi_req->req_status;

            leave_landing(request, 0);
            unpack(request, 0);
            set_status(status, 0, 0);
            status->MPI_ERROR = MPI_SUCCESS;
            status->_cancelled = 1;
            mp3_done(request);
        }
        mp3_unlock();
        mp3_call_back();
    }
    return OMPI_SUCCESS;
}
