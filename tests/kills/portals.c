/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worker of Portals (worker.h): puts with acknowledgement and gets. One entry of each worker takes everything, at the
 * offset that the initiator says. A request to a process that is dead has no answer, and its descriptor can be unlinked
 * all the same. The list of that entry is long enough to have an index, and changes with each request that its owner
 * makes.
 */
#include <string.h>

#include "tests/common/portals_profile.h"
#include "tests/kills/worker.h"

#define PT         4u
#define FIRST_PID  300u
#define EQ_ENTRIES 4096u
#define OTHERS     150u /* entries that take nothing */

static struct {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_process_id_t peers[RANKS_MAX];
    ptl_handle_md_t mds[OPS_MAX];
    bool is_bound[OPS_MAX];
    uint64_t numbers[OPS_MAX]; /* of the request that has a descriptor */
    ptl_handle_me_t taker;
    ptl_handle_me_t others[OTHERS];
    uint64_t n_changes;
} p;

static void must(struct worker *w, int rc, const char *what)
{
    worker_must(w, rc == PTL_OK, what);
}

/* Another entry, before or behind the one that takes all; every third one with an ignore mask of its own. */
static void add_other(struct worker *w, unsigned which)
{
    ptl_process_id_t anybody = { .nid = PTL_NID_ANY, .pid = PTL_PID_ANY };
    ptl_match_bits_t ignore = which % 3 == 0 ? 1ull << which % 50 : 0;

    must(w,
         PtlMEInsert(p.taker, anybody, 1ull << 60 | which % 40, ignore, PTL_RETAIN,
                     p.n_changes++ % 2 ? PTL_INS_BEFORE : PTL_INS_AFTER, &p.others[which]),
         "PtlMEInsert");
}

static void change_list(struct worker *w)
{
    unsigned which = (unsigned)(p.n_changes * 7 % OTHERS);

    must(w, PtlMEUnlink(p.others[which]), "PtlMEUnlink");
    add_other(w, which);
}

static void open_portals(struct worker *w)
{
    ptl_md_t md = { .start = w->region,
                    .length = REGION_BYTES,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
                    .eq_handle = PTL_EQ_NONE };
    ptl_process_id_t anybody = { .nid = PTL_NID_ANY, .pid = PTL_PID_ANY };
    ptl_process_id_t id;
    ptl_handle_md_t mdh;
    int n_interfaces;

    must(w, PtlInit(&n_interfaces), "PtlInit");
    must(w, PtlNIInit(PTL_IFACE_DEFAULT, FIRST_PID + w->rank, NULL, NULL, &p.ni), "PtlNIInit");
    must(w, PtlGetId(p.ni, &id), "PtlGetId");
    must(w, PtlEQAlloc(p.ni, EQ_ENTRIES, NULL, &p.eq), "PtlEQAlloc");
    must(w, PtlMEAttach(p.ni, PT, anybody, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &p.taker), "PtlMEAttach");
    must(w, PtlMDAttach(p.taker, md, PTL_RETAIN, &mdh), "PtlMDAttach");
    for (unsigned i = 0; i < OTHERS; i++)
        add_other(w, i);
    w->line->place[0] = id.nid;
    w->line->place[1] = id.pid;
}

static void connect_portals(struct worker *w, unsigned peer)
{
    p.peers[peer].nid = (ptl_nid_t)w->places[peer][0];
    p.peers[peer].pid = (ptl_pid_t)w->places[peer][1];
}

static void unbind(struct worker *w, unsigned which)
{
    int rc;

    if (!p.is_bound[which])
        return;
    do { /* what the dead one still does with it ends soon */
        rc = PtlMDUnlink(p.mds[which]);
    } while (rc == PTL_MD_IN_USE);
    must(w, rc, "PtlMDUnlink");
    p.is_bound[which] = false;
}

/* The descriptors of what has got no answer can be taken away. */
static void disconnect_portals(struct worker *w, unsigned peer)
{
    for (unsigned i = 0; i < OPS_MAX; i++) {
        if (w->ops[i].target == peer)
            unbind(w, i);
    }
}

static bool post_portals(struct worker *w, struct op *op)
{
    unsigned which = (unsigned)(op - w->ops);
    ptl_md_t md = { .start = op->buffer,
                    .length = op->length,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_EVENT_START_DISABLE,
                    .user_ptr = (void *)(uintptr_t)(++p.numbers[which] * OPS_MAX + which),
                    .eq_handle = p.eq };
    int rc;

    change_list(w);
    unbind(w, which);
    must(w, PtlMDBind(p.ni, md, PTL_RETAIN, &p.mds[which]), "PtlMDBind");
    p.is_bound[which] = true;
    rc = op->kind == PUT ? PtlPut(p.mds[which], PTL_ACK_REQ, p.peers[op->target], PT, 0, 0, op->offset, 0) :
                           PtlGet(p.mds[which], p.peers[op->target], PT, 0, 0, op->offset);
    if (rc != PTL_OK && !worker_may_fail(w, op->target))
        worker_finding(w, "a request to %u gives %d", op->target, rc);
    return rc == PTL_OK;
}

static void progress_portals(struct worker *w)
{
    ptl_event_t event;
    int rc;

    while ((rc = PtlEQGet(p.eq, &event)) == PTL_OK) {
        uintptr_t mark = (uintptr_t)event.md.user_ptr;
        unsigned which = (unsigned)(mark % OPS_MAX);
        struct op *op = &w->ops[which];

        if (mark / OPS_MAX != p.numbers[which] || !op->in_use)
            continue; /* of one who has been given up */
        if (event.ni_fail_type != PTL_NI_OK)
            worker_completed(w, op, false);
        else if (event.type == (op->kind == PUT ? PTL_EVENT_ACK : PTL_EVENT_REPLY_END))
            worker_completed(w, op, event.mlength == op->length);
    }
    worker_must(w, rc == PTL_EQ_EMPTY, "PtlEQGet");
}

int main(int argc, char **argv)
{
    static const struct backend backend = {
        .open = open_portals,
        .connect = connect_portals,
        .disconnect = disconnect_portals,
        .post = post_portals,
        .progress = progress_portals,
        .ends_unanswered = true,
    };

    return worker_main(argc, argv, &backend);
}
