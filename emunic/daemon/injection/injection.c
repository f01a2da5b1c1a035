/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Balanced injection: how fast a node's NIC may put requests into the network.
 *
 * The limit is a share of the NIC's rate (machine file: one packet of payload_bytes_max per access_cycles), given in
 * percent or as entries of the outstanding request buffer, ORB_ENTRIES of which are the whole. A limited node is
 * paced by emunic, which meters the node's requests by a bucket of BURST_BYTES that fills at the limited rate: a port
 * of it is served while the bucket is not empty, and each request takes its packets out, gets included, because an
 * entry is held for each packet that awaits its answer. As only emunic can meter, the domains on the node leave the
 * direct path (EMU_TABLE_PACED). A share of 0 is taken as one entry: something must move, or the job would hang.
 *
 * Updates are numbered. An update is done when every member that was inside the engine has left it (quiesce.c).
 *
 * The limit "after throttle" takes effect with a throttle event, which on the original comes from the machine's
 * supervision when links are congested, and here from an injected fault (action throttle). It is an update of its own
 * and stays until the next one.
 * Source: spec/ugni.md 2.18, 3.13, 4.3; that the share is one of the NIC's rate is our reading.
 */
#include "emunic/daemon/injection/injection.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/node.h"
#include "emunic/daemon/world/server_time.h"

#define PERCENT_MAX  100u
#define ORB_ENTRIES  992u
#define BURST_BYTES  (64 << 10)
#define FLAG_NOW     0x1u /* GNI_BI_FLAG_*, spec/ugni.md 2.18 */
#define FLAG_AFTER   0x2u
#define FLAG_DEFAULT 0x4u
#define FLAG_ORB     0x8u

struct emu_injection {
    uint16_t flags; /* of the last update */
    uint16_t norbs; /* current share, of ORB_ENTRIES */
    uint16_t aot_norbs;
    uint16_t asked;
    uint16_t done;
    uint32_t n_waits; /* domains whose members may still be unpaced */
    uint64_t bytes_per_s;
    int64_t bucket_bytes;
    uint64_t filled_ns;
};

static struct emu_injection *injection_of(struct emu_server *server, uint32_t nid)
{
    struct emu_node *node = emu_node_of(server, nid);

    if (node && !node->injection) {
        node->injection = calloc(1, sizeof(*node->injection));
        if (node->injection) {
            node->injection->norbs = node->injection->aot_norbs = ORB_ENTRIES;
            node->injection->flags = FLAG_DEFAULT;
        }
    }
    return node ? node->injection : NULL;
}

static bool is_paced(const struct emu_server *server, uint32_t nid)
{
    const struct emu_node *node = server->nodes[nid];

    return node && node->injection && node->injection->norbs < ORB_ENTRIES;
}

static int mark(struct emu_server *server, struct emu_domain *domain)
{
    bool paces = false;

    for (uint32_t i = 0; i < domain->n_nodes && !paces && server->n_paced > 0; i++)
        paces = is_paced(server, emu_table_nodes(domain->table)[i].nid);
    if (paces)
        atomic_fetch_or(&domain->table->flags, EMU_TABLE_PACED);
    else
        atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_PACED);
    return 0;
}

/* ---- requests ---- */

static uint16_t percent_of(uint16_t norbs)
{
    return (uint16_t)((norbs * PERCENT_MAX + ORB_ENTRIES / 2) / ORB_ENTRIES);
}

static int answer_get(struct emu_request *request)
{
    const struct emu_connection *c = request->connection;
    struct emu_msg_injection *msg = &request->msg->injection;
    uint32_t nid = emu_place_of(c->server, &c->peer, msg->nid_wanted);
    const struct emu_node *node = c->server->nodes[nid];
    const struct emu_injection *i = node ? node->injection : NULL;

    *msg = (struct emu_msg_injection){
        .nid_wanted = nid,
        .flags = i ? i->flags : FLAG_DEFAULT,
        .bw = i ? percent_of(i->norbs) : PERCENT_MAX,
        .aot_bw = i ? percent_of(i->aot_norbs) : PERCENT_MAX,
        .norbs = i ? i->norbs : ORB_ENTRIES,
        .default_bw = PERCENT_MAX,
        .default_aot_bw = PERCENT_MAX,
        .asked_seq = i ? i->asked : 0,
        .done_seq = i ? i->done : 0,
    };
    return 0;
}

static int norbs_of(uint16_t value, uint16_t flags, uint16_t *norbs_out)
{
    if (flags & FLAG_DEFAULT)
        *norbs_out = ORB_ENTRIES;
    else if (value > ((flags & FLAG_ORB) ? ORB_ENTRIES : PERCENT_MAX))
        return -EINVAL;
    else
        *norbs_out = (flags & FLAG_ORB) ? value : (uint16_t)(value * ORB_ENTRIES / PERCENT_MAX);
    return 0;
}

static void set_rate(struct emu_server *server, struct emu_injection *i, uint16_t norbs)
{
    const struct emu_nic_params *nic = emu_machine_nic(server->machine);
    uint64_t whole = (uint64_t)nic->clock_mhz * 1000000 / nic->access_cycles * nic->format.payload_bytes_max;

    server->n_paced -= i->norbs < ORB_ENTRIES;
    server->n_paced += norbs < ORB_ENTRIES;
    i->norbs = norbs;
    i->bytes_per_s = whole / ORB_ENTRIES * (norbs > 0 ? norbs : 1);
    i->bucket_bytes = 0;
    i->filled_ns = emu_server_now_ns(server);
}

static void tell_done(struct emu_injection *i)
{
    if (--i->n_waits == 0)
        i->done = i->asked;
}

/* The members of a domain have seen the update. */
static void members_know(struct emu_server *server, struct emu_quiesce *q)
{
    tell_done(server->nodes[q->nid]->injection);
}

/* Members learn that they are paced, or not any more. */
static void commit(struct emu_server *server, uint32_t nid, struct emu_injection *i)
{
    static const struct emu_quiesce_ops ops = { .left = members_know };
    struct emu_domain *domain;

    i->asked++;
    i->n_waits++; /* ours: nothing is done before the last domain was told */
    LIST_FOREACH(domain, &server->domains, link) {
        struct emu_quiesce *q;

        if (emu_domain_node_of(domain, nid) == EMU_NID_NONE)
            continue;
        mark(server, domain);
        q = emu_quiesce_create(domain, &ops, NULL);
        if (!q)
            continue;
        i->n_waits++;
        q->nid = nid;
        emu_quiesce_start(server, q);
    }
    tell_done(i);
}

static int answer_set(struct emu_request *request)
{
    const struct emu_connection *c = request->connection;
    struct emu_msg_injection *msg = &request->msg->injection;
    struct emu_server *server = c->server;
    uint32_t nid = emu_place_of(c->server, &c->peer, msg->nid_wanted);
    struct emu_injection *i = injection_of(server, nid);
    uint16_t norbs;
    uint16_t aot_norbs;

    if (!i)
        return -ENOMEM;
    if ((msg->flags & ~(FLAG_NOW | FLAG_AFTER | FLAG_DEFAULT | FLAG_ORB)) != 0 ||
        norbs_of(msg->bw, msg->flags, &norbs) < 0 || norbs_of(msg->aot_bw, msg->flags, &aot_norbs) < 0)
        return -EINVAL;
    i->flags = msg->flags;
    /* Neither named: now. */
    if ((msg->flags & FLAG_NOW) || (msg->flags & FLAG_AFTER) == 0)
        set_rate(server, i, norbs);
    if ((msg->flags & FLAG_AFTER) || (msg->flags & FLAG_NOW) == 0)
        i->aot_norbs = aot_norbs;
    commit(server, nid, i);
    return 0;
}

void emu_injection_throttle(struct emu_server *server, uint32_t nid)
{
    struct emu_injection *i = injection_of(server, nid);

    if (!i || i->aot_norbs >= i->norbs)
        return;
    set_rate(server, i, i->aot_norbs);
    commit(server, nid, i);
}

/* ---- metering ---- */

bool emu_injection_is_open(struct emu_server *server, uint32_t nid)
{
    struct emu_injection *i = is_paced(server, nid) ? server->nodes[nid]->injection : NULL;
    uint64_t now_ns;
    uint64_t gained;

    if (!i)
        return true;
    now_ns = emu_server_now_ns(server);
    if (now_ns - i->filled_ns > 1000000000) /* more than a second fills any bucket */
        i->filled_ns = now_ns - 1000000000;
    gained = (now_ns - i->filled_ns) * (i->bytes_per_s / 1000) / 1000000;
    if (gained > 0) {
        i->filled_ns = now_ns;
        i->bucket_bytes += (int64_t)gained;
        if (i->bucket_bytes > BURST_BYTES)
            i->bucket_bytes = BURST_BYTES;
    }
    return i->bucket_bytes > 0;
}

uint64_t emu_injection_open_ns(struct emu_server *server, uint32_t nid)
{
    const struct emu_injection *i = is_paced(server, nid) ? server->nodes[nid]->injection : NULL;
    uint64_t missing, gain = i ? i->bytes_per_s / 1000 : 0;

    if (!i || i->bucket_bytes > 0 || gain == 0)
        return emu_server_now_ns(server);
    missing = (uint64_t)(1 - i->bucket_bytes);
    return i->filled_ns + (missing * 1000000 + gain - 1) / gain;
}

void emu_injection_charge(struct emu_server *server, uint32_t nid, uint64_t bytes)
{
    uint32_t payload = emu_machine_nic(server->machine)->format.payload_bytes_max;

    if (!is_paced(server, nid))
        return;
    /* Each packet holds an entry, whatever is in it. */
    server->nodes[nid]->injection->bucket_bytes -=
        (int64_t)(emu_packets(&emu_machine_nic(server->machine)->format, bytes) * payload);
}

/* ---- the part ---- */

static void destroy(struct emu_server *server)
{
    for (uint32_t nid = 0; server->nodes && nid < server->n_nids; nid++) {
        if (server->nodes[nid])
            free(server->nodes[nid]->injection);
    }
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_INJECTION, EMU_MSG_INJECTION, EMU_NEEDS_CONTROL, answer_get },
    { EMU_MSG_INJECTION_SET, EMU_MSG_INJECTION_SET, EMU_NEEDS_ADMIN, answer_set },
};

const struct emu_part emu_injection_part = {
    .name = "injection",
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .domains = { .begin = mark },
};
