/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: what Open MPI calls while it waits. Events and queues under the lock, callbacks without it.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <opal/runtime/opal_progress.h>

#include "libugni/src/poll_rounds.h"
#include "libugni/src/smsg_now.h"

#define EVENTS_AT_A_TIME 64
#define DATAGRAM_ROUND   64u  /* datagrams are looked for each so many calls, unless messages wait for a connection */
#define OWN_ROUND        16u  /* ends of sends tell nothing but losses: they are looked for each so many calls, */
#define OWN_WAITING      256u /* or when so many wait */

static void lose(gni_cq_entry_t entry)
{
    bool is_message = GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG;

    mg.nic.n_own--;
    if (!is_message)
        mg.nic.n_posts--;
    mg_lost((uint32_t)(is_message ? GNI_CQ_GET_MSG_ID(entry) : GNI_CQ_GET_INST_ID(entry)));
}

/* Sends have ended when they were handed over; the entry only makes room. */
static int poll_own(void)
{
    gni_cq_entry_t entry;
    gni_post_descriptor_t *descriptor;
    int n = 0;

    while (mg.nic.n_own > 0 && n < EVENTS_AT_A_TIME) {
        gni_return_t rc = GNI_CqGetEvent(mg.nic.own_queue, &entry);

        if (rc == GNI_RC_NOT_DONE)
            break;
        if (rc == GNI_RC_TRANSACTION_ERROR) {
            lose(entry);
            continue;
        }
        mg_must(rc, "GNI_CqGetEvent");
        mg.nic.n_own--;
        n++;
        if (GNI_CQ_GET_TYPE(entry) != GNI_CQ_EVENT_TYPE_POST)
            continue;
        mg.nic.n_posts--;
        mg_must(GNI_GetCompleted(mg.nic.own_queue, entry, &descriptor), "GNI_GetCompleted");
        mg_completed(descriptor);
    }
    return n;
}

/* The queue had no room for all: looks into every mailbox. */
static void look_everywhere(void)
{
    for (uint32_t i = 0; i < mg.n_ranks; i++)
        if (mg.peers[i])
            mg_readable(mg.peers[i]);
}

/*
 * Messages have no events: few mailboxes are looked into more quickly than a queue and then one of them. Now and then,
 * and in virtual time always, an empty one is read as well, because only that tells of a lost NIC and passes the time.
 */
static void look_into_mailboxes(bool reads_all)
{
    for (uint32_t i = 0; i < mg.n_connected; i++)
        if (reads_all || gnii_smsg_waits(mg.connected[i]->ep))
            mg_readable(mg.connected[i]);
}

static int poll_others(void)
{
    gni_cq_entry_t entry;
    int n = 0;

    for (; n < EVENTS_AT_A_TIME; n++) {
        gni_return_t rc = GNI_CqGetEvent(mg.nic.other_queue, &entry);
        uint64_t rank = GNI_CQ_GET_REM_INST_ID(entry);

        if (rc == GNI_RC_NOT_DONE)
            break;
        if (rc == GNI_RC_ERROR_RESOURCE) {
            look_everywhere();
            continue;
        }
        mg_must(rc, "GNI_CqGetEvent");
        if (rank < mg.n_ranks && mg.peers[rank])
            mg_readable(mg.peers[rank]);
    }
    return n;
}

int mg_progress(void)
{
    static uint32_t calls;
    int n = 0;

    calls++;
    mg_lock();
    if (mg.nic.n_posts > 0 || mg.nic.n_own > OWN_WAITING || calls % OWN_ROUND == 0)
        n += poll_own();
    if (mg.polls_mailboxes)
        look_into_mailboxes(mg.costs_time || calls % OWN_ROUND == 0);
    else
        n += poll_others();
    if (mg.first_waiting || calls % DATAGRAM_ROUND == 0)
        n += mg_poll_datagrams();
    if (mg.has_lost)
        mg_lost(mg.lost_rank);
    if (mg.queued)
        mg_post_queued();
    if (mg.first_waiting)
        mg_send_waiting();
    mg_unlock();
    n = mg_read_messages();
    if (mg.done)
        n += mg_call_back_works();
    if (mg.sent)
        n += mg_call_back_sends();
    if (n == 0)
        gnii_rounds_end_one(mg.nic.nic, !opal_progress_yield_when_idle); /* or opal_progress() yields */
    else if (opal_using_threads())
        gnii_rounds_stir(mg.nic.nic); /* another thread may wait for what this one has completed */
    return n;
}
