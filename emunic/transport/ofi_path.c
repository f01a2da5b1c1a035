/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths: endpoints that only send.
 *
 * One endpoint receives everything, and sends at first. ofi_rxm keeps one connection between two endpoints and offers
 * no way to give it up (in 1.17 removing an address either leaves it or, when told to close it, fails on one that is
 * just being made), so another connection to a peer means another endpoint, a path. Making one takes 30 ms, so peers
 * that need another at the same time share it. A path that no peer sends over is closed RETIRED_MAX paths later: what
 * it has to send may still arrive. A path's queue goes once it is empty; one for all would keep the descriptors of
 * endpoints that were closed.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "emunic/transport/ofi.h"

#define RETIRED_MAX 8u /* as many as are made within a timeout */

void emu_ofi_close_path(struct ofi_path *path)
{
    if (path->ep)
        fi_close(&path->ep->fid);
    if (path->cq)
        fi_close(&path->cq->fid);
}

/* Of an endpoint at the same address and any port. */
static int open_path(struct ofi *o, struct ofi_path *path)
{
    struct fi_info *info = fi_dupinfo(o->info);
    int r;

    if (!info)
        return -ENOMEM;
    /* The port is at the same place in either kind of address. */
    if (info->src_addr)
        ((struct sockaddr_in *)info->src_addr)->sin_port = 0;
    r = emu_ofi_open_queue(o, 1024, path);
    if (r == 0)
        r = fi_endpoint(o->domain, info, &path->ep, NULL);
    fi_freeinfo(info);
    emu_ofi_enter(o);
    r = r < 0 ? r : emu_ofi_enable_endpoint(o, path);
    emu_ofi_leave();
    return r;
}

/* What nobody sends over and is old. What it has under way comes back with errors; then its queue goes (ofi_poll()). */
static void close_old_paths(struct ofi *o)
{
    for (struct ofi_path *path = o->main.next; path; path = path->next) {
        if (path->ep && path->n_users == 0 && path->number + RETIRED_MAX <= o->n_paths) {
            emu_ofi_enter(o);
            fi_close(&path->ep->fid);
            emu_ofi_leave();
            path->ep = NULL;
        }
    }
}

static void *run_maker(void *argument)
{
    struct ofi *o = argument;

    o->made = open_path(o, o->making);
    /* Pairs with the acquire in make_path(). */
    atomic_store_explicit(&o->is_made, true, memory_order_release);
    return NULL;
}

/*
 * rxm clears all its buffers for an endpoint: 70 MB, 230 ms of processor time on a virtual machine. All other hosts
 * would hear nothing of us meanwhile. So a thread does it, if libfabric may be called by several.
 */
static void begin_path(struct ofi *o)
{
    atomic_store_explicit(&o->is_made, false, memory_order_relaxed);
    o->has_maker =
        o->info->domain_attr->threading == FI_THREAD_SAFE && emu_ofi_start_thread(&o->maker, run_maker, o) == 0;
    if (!o->has_maker)
        run_maker(o);
}

/* -EAGAIN: not yet. */
static int make_path(struct ofi *o, struct ofi_path **path_out)
{
    struct ofi_path *path;

    if (!o->making) {
        o->making = calloc(1, sizeof(*o->making));
        if (!o->making)
            return -ENOMEM;
        begin_path(o);
    }
    if (!atomic_load_explicit(&o->is_made, memory_order_acquire))
        return -EAGAIN;
    if (o->has_maker)
        pthread_join(o->maker, NULL);
    path = o->making;
    o->making = NULL;
    if (o->made < 0) {
        emu_ofi_close_path(path);
        free(path);
        return o->made;
    }
    path->number = ++o->n_paths;
    path->next = o->main.next;
    o->main.next = path;
    close_old_paths(o);
    *path_out = path;
    return 0;
}

int emu_ofi_renew(struct emu_carrier *carrier, uint64_t peer_number)
{
    struct ofi *o = (struct ofi *)carrier;
    struct ofi_peer *peer = emu_ofi_peer(peer_number);
    struct ofi_path *path = NULL;
    int r = 0;

    if (o->main.fd < 0 || (o->info->addr_format != FI_SOCKADDR_IN && o->info->addr_format != FI_SOCKADDR_IN6))
        return -ENOSYS;
    for (struct ofi_path *at = o->main.next; at && at->number > peer->path->number; at = at->next) {
        if (at->ep)
            path = at;
    }
    if (!path)
        r = make_path(o, &path);
    if (r < 0)
        return r;
    peer->path->n_users--;
    peer->path = path;
    path->n_users++;
    peer->is_connecting = false;
    return 0;
}
