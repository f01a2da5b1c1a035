/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error subscriptions.
 *
 * A subscription is a connection to emunic of its own (emunic/daemon/errors/error_stream.c), so it lives on when the
 * NIC handle that it was made with is gone. Events wait in emunic, which filters them; they are fetched by request. An
 * eventfd that emunic passes is readable while some wait, so a waiting thread sleeps in poll() on it and on the
 * connection.
 *
 *   free --GNI_SubscribeErrors--> live, 0 waiters --GNI_WaitErrorEvents--> live, n waiters
 *     ^                             |    ^                                     |
 *     +------GNI_ReleaseErrors------+    +---events, or cancelled--------------+
 *
 * A waiting thread makes GNI_ReleaseErrors() answer GNI_RC_NOT_DONE, so a subscription never goes away under a waiter.
 * poll() is the one place where a waiting thread can be cancelled; a cleanup handler takes it off the count.
 *
 * When emunic goes, the library makes one last event itself (critical, EMU_ERROR_NIC_GONE, if the mask has it). After
 * that a wait lasts for ever: the known user calls again at once whatever the code, so an error would make it spin.
 *
 * Live subscriptions stand in one list under one lock, which makes a stale handle GNI_RC_INVALID_PARAM instead of
 * a crash; none of this is on a fast path. Requests are made with the lock held: emunic answers at once.
 *
 * Privileged, as emunic decides (root and emunic's own user): a NULL NIC handle, GNI_SetErrorPtag().
 * Source: spec/ugni.md 2.18, 3.8, 4.13.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "libugni/src/rc.h"
#include "libugni/src/ugni.h"

_Static_assert(GNI_ERRMASK_CORRECTABLE_MEMORY == EMU_ERROR_CORRECTABLE_MEMORY, "category");
_Static_assert(GNI_ERRMASK_CRITICAL == EMU_ERROR_CRITICAL, "category");
_Static_assert(GNI_ERRMASK_TRANSACTION == EMU_ERROR_TRANSACTION, "category");
_Static_assert(GNI_ERRMASK_ADDRESS_TRANSLATION == EMU_ERROR_ADDRESS_TRANSLATION, "category");
_Static_assert(GNI_ERRMASK_TRANSIENT == EMU_ERROR_TRANSIENT, "category");
_Static_assert(GNI_ERRMASK_INFORMATIONAL == EMU_ERROR_INFORMATIONAL, "category");
_Static_assert(GNI_ERRMASK_DIAG_ONLY == EMU_ERROR_DIAG_ONLY, "category");
_Static_assert(GNI_ERRMASK_UNKNOWN_TRANSACTION == EMU_ERROR_UNKNOWN_TRANSACTION, "category");

#define DEFAULT_ENTRIES 64u

struct gni_err {
    struct gni_err *next;       /* in live_list */
    struct emu_session session; /* owned */
    int event_fd;               /* owned: readable while events wait */
    gni_error_mask_t mask;
    uint8_t ptag;
    uint32_t serial;        /* of the last event taken */
    _Atomic bool told_loss; /* the last event has been made */
    unsigned n_waiters;     /* threads inside GNI_WaitErrorEvents() */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gni_err *live_list; /* owned; guarded by lock, as all of its elements */

/* The link that leads to err, or NULL if it is not live. Call with the lock held. */
static struct gni_err **find_live(gni_err_handle_t err)
{
    for (struct gni_err **link = &live_list; *link; link = &(*link)->next) {
        if (*link == err)
            return link;
    }
    return NULL;
}

/* ---- subscribing ---- */

static int open_stream(struct gni_err *err, const struct gnii_nic *nic, uint32_t n_entries)
{
    struct emu_msg msg = { .type = EMU_MSG_ERRORS_OPEN, .errors = { .mask = err->mask, .room = n_entries } };
    char name[EMU_SERVER_NAME_MAX + 1];
    struct emu_fds fds;
    int r;

    if (nic) {
        msg.errors.ptag = nic->port.ptag;
        msg.errors.cookie = nic->port.cookie;
    } else {
        msg.errors.flags = EMU_ERRORS_ALL;
    }
    r = emu_session_open(&err->session, nic ? nic->port.server : emu_session_default_server(name, sizeof(name)),
                         EMU_SOCKET_CONTROL);
    if (r < 0)
        return r;
    r = emu_session_request(&err->session, &msg, NULL, 0, &fds);
    if (r == 0)
        r = msg.result;
    if (r == 0 && fds.n_fds != 1)
        r = -EPROTO;
    if (r == 0) {
        err->event_fd = fds.fd[0];
        fds.n_fds = 0;
    }
    emu_fds_close(&fds);
    if (r < 0)
        emu_session_close(&err->session);
    return r;
}

static gni_return_t subscribe(gni_nic_handle_t nic_handle, gni_error_mask_t mask, uint32_t n_entries,
                              gni_err_handle_t *err_handle)
{
    const struct gnii_nic *nic = nic_handle ? gnii_nic_find(nic_handle) : NULL;
    struct gni_err *err;
    int r;

    if (nic_handle && !nic)
        return GNI_RC_INVALID_PARAM;
    err = calloc(1, sizeof(*err));
    if (!err)
        return GNI_RC_ERROR_NOMEM;
    err->mask = mask;
    err->ptag = nic ? (uint8_t)nic->port.ptag : 0;
    err->session.fd = -1;
    r = open_stream(err, nic, n_entries ? n_entries : DEFAULT_ENTRIES);
    if (r < 0) {
        free(err);
        return gnii_rc(nic ? GNII_CALL_SUBSCRIBE : GNII_CALL_SUBSCRIBE_ALL, r);
    }
    pthread_mutex_lock(&lock);
    err->next = live_list;
    live_list = err;
    pthread_mutex_unlock(&lock);
    *err_handle = err;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SubscribeErrors(gni_nic_handle_t nic_handle, uint32_t device_id, gni_error_mask_t mask,
                                 uint32_t EEQ_size, gni_err_handle_t *err_handle)
{
    struct emu_cancel cancel;
    gni_return_t rc;

    if (!err_handle)
        return GNI_RC_INVALID_PARAM;
    if (!nic_handle && device_id != 0)
        return GNI_RC_NO_MATCH;
    emu_cancel_hold(&cancel);
    rc = subscribe(nic_handle, mask, EEQ_size, err_handle);
    emu_cancel_release(&cancel);
    return rc;
}

static gni_return_t release(gni_err_handle_t err)
{
    struct gni_err **link = find_live(err);

    if (!link)
        return GNI_RC_INVALID_PARAM;
    if (err->n_waiters > 0)
        return GNI_RC_NOT_DONE;
    *link = err->next;
    emu_session_close(&err->session);
    close(err->event_fd);
    free(err);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_ReleaseErrors(gni_err_handle_t err_handle)
{
    struct emu_cancel cancel;
    gni_return_t rc;

    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&lock);
    rc = release(err_handle);
    pthread_mutex_unlock(&lock);
    emu_cancel_release(&cancel);
    return rc;
}

/* ---- masks ---- */

gni_return_t GNI_GetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t *mask)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct emu_cancel cancel;

    if (!mask)
        return GNI_RC_INVALID_PARAM;
    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&lock);
    if (find_live(err_handle)) {
        *mask = err_handle->mask;
        rc = GNI_RC_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    emu_cancel_release(&cancel);
    return rc;
}

gni_return_t GNI_SetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t mask_in, gni_error_mask_t *mask_out)
{
    struct emu_msg msg = { .type = EMU_MSG_ERRORS_MASK, .errors = { .mask = mask_in } };
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct emu_cancel cancel;

    if (!mask_out)
        return GNI_RC_INVALID_PARAM;
    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&lock);
    if (find_live(err_handle)) {
        /* Without emunic there is nothing left to filter but the last event. */
        emu_session_request(&err_handle->session, &msg, NULL, 0, NULL);
        *mask_out = err_handle->mask;
        err_handle->mask = mask_in;
        rc = GNI_RC_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    emu_cancel_release(&cancel);
    return rc;
}

gni_return_t GNI_SetErrorPtag(gni_err_handle_t err_handle, uint8_t ptag)
{
    struct emu_msg msg = { .type = EMU_MSG_ERRORS_PTAG, .errors = { .ptag = ptag } };
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct emu_cancel cancel;

    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&lock);
    if (find_live(err_handle)) {
        rc = GNI_RC_PERMISSION_ERROR;
        if (emu_session_request(&err_handle->session, &msg, NULL, 0, NULL) == 0 && msg.result == 0) {
            err_handle->ptag = ptag;
            rc = GNI_RC_SUCCESS;
        }
    }
    pthread_mutex_unlock(&lock);
    emu_cancel_release(&cancel);
    return rc;
}

/* ---- events; lock held ---- */

static gni_error_event_t event_of(struct gni_err *err, const struct emu_error_record *record)
{
    gni_error_event_t event = { .error_code = record->code,
                                .error_category = record->category,
                                .ptag = record->ptag,
                                .serial_number = record->serial,
                                .timestamp = record->timestamp_ns };

    _Static_assert(sizeof(event.info_mmrs) == sizeof(record->info), "four words");
    memcpy(event.info_mmrs, record->info, sizeof(event.info_mmrs));
    err->serial = record->serial;
    return event;
}

static bool make_last_event(struct gni_err *err, gni_error_event_t *event_out)
{
    struct timespec now;

    if (err->told_loss)
        return false;
    err->told_loss = true;
    if ((err->mask & GNI_ERRMASK_CRITICAL) == 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    *event_out = (gni_error_event_t){ .error_code = EMU_ERROR_NIC_GONE,
                                      .error_category = GNI_ERRMASK_CRITICAL,
                                      .ptag = err->ptag,
                                      .serial_number = ++err->serial,
                                      .timestamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec };
    return true;
}

/* Takes up to n_wanted events. */
static uint32_t take_events(struct gni_err *err, gni_error_event_t *events, uint32_t n_wanted)
{
    uint32_t n = 0;

    while (n < n_wanted) {
        struct emu_msg msg = { .type = EMU_MSG_ERRORS_FETCH, .errors = { .room = n_wanted - n } };

        if (emu_session_request(&err->session, &msg, NULL, 0, NULL) < 0)
            return n + (make_last_event(err, &events[n]) ? 1 : 0);
        if (msg.result < 0 || msg.errors.n_records == 0 || msg.errors.n_records > EMU_ERRORS_PER_REPLY ||
            msg.errors.n_records > n_wanted - n)
            return n;
        for (uint32_t i = 0; i < msg.errors.n_records; i++)
            events[n++] = event_of(err, &msg.errors.records[i]);
    }
    return n;
}

/* Without a request when nothing waits. */
static bool may_have_events(const struct gni_err *err)
{
    struct pollfd p[2] = { { .fd = err->event_fd, .events = POLLIN }, { .fd = err->session.fd, .events = POLLRDHUP } };

    return poll(p, 2, 0) > 0;
}

gni_return_t GNI_GetErrorEvent(gni_err_handle_t err_handle, gni_error_event_t *event)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct emu_cancel cancel;

    if (!event)
        return GNI_RC_INVALID_PARAM;
    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&lock);
    if (find_live(err_handle)) {
        rc = GNI_RC_NOT_DONE;
        if (may_have_events(err_handle) && take_events(err_handle, event, 1) == 1)
            rc = GNI_RC_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    emu_cancel_release(&cancel);
    return rc;
}

/* ---- waiting ---- */

struct wait {
    struct gni_err *err;
    struct emu_cancel cancel;
    struct pollfd polls[2];
};

/* Also when the thread is cancelled: the subscription may be released then. */
static void leave_wait(void *arg)
{
    struct wait *w = arg;

    pthread_mutex_lock(&lock);
    w->err->n_waiters--;
    pthread_mutex_unlock(&lock);
}

/*
 * Sleeps until events may be there or the deadline has passed. The thread can be cancelled here and nowhere else, if
 * the program allows it at all.
 */
static int sleep_for_events(struct wait *w, uint64_t deadline_ns)
{
    uint64_t now_ns = emu_clock_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    struct timespec left = { .tv_sec = (time_t)(left_ns / 1000000000u), .tv_nsec = (long)(left_ns % 1000000000u) };
    struct emu_cancel open = { .state = w->cancel.state, .type = PTHREAD_CANCEL_DEFERRED };
    int n;
    int error;

    pthread_cleanup_push(leave_wait, w);
    emu_cancel_release(&open);
    /* After the last event the connection stays at its end: only cancellation can still wake us. */
    n = ppoll(w->polls, w->err->told_loss ? 0 : 2, deadline_ns == UINT64_MAX ? NULL : &left, NULL);
    error = errno;
    emu_cancel_hold(&open);
    pthread_cleanup_pop(0);
    return n < 0 ? -error : n;
}

/* Until the buffer is full or, once there is one event, `timeout` ms have passed. */
static gni_return_t collect(struct wait *w, gni_error_event_t *events, uint32_t events_size, uint32_t timeout,
                            uint32_t *n_out)
{
    uint64_t deadline_ns = UINT64_MAX;
    uint32_t n = 0;

    for (;;) {
        uint32_t more;
        int r;

        pthread_mutex_lock(&lock);
        more = take_events(w->err, events + n, events_size - n);
        pthread_mutex_unlock(&lock);
        if (n == 0 && more > 0)
            deadline_ns = emu_clock_ns() + timeout * 1000000ull;
        n += more;
        if (n == events_size || (n > 0 && timeout == 0))
            break;
        r = sleep_for_events(w, deadline_ns);
        if (r == -EINTR && n == 0)
            return GNI_RC_NOT_DONE;
        if (r == 0) {
            *n_out = n;
            return GNI_RC_TIMEOUT;
        }
    }
    *n_out = n;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_WaitErrorEvents(gni_err_handle_t err_handle, gni_error_event_t *events, uint32_t events_size,
                                 uint32_t timeout, uint32_t *num_events)
{
    struct wait w = { .err = err_handle };
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    bool is_live;

    if (!events || events_size == 0 || !num_events)
        return GNI_RC_INVALID_PARAM;
    emu_cancel_hold(&w.cancel);
    pthread_mutex_lock(&lock);
    is_live = find_live(err_handle);
    if (is_live) {
        err_handle->n_waiters++;
        w.polls[0] = (struct pollfd){ .fd = err_handle->event_fd, .events = POLLIN };
        w.polls[1] = (struct pollfd){ .fd = err_handle->session.fd, .events = POLLRDHUP };
    }
    pthread_mutex_unlock(&lock);
    if (is_live) {
        rc = collect(&w, events, events_size, timeout, num_events);
        leave_wait(&w);
    }
    emu_cancel_release(&w.cancel);
    return rc;
}
