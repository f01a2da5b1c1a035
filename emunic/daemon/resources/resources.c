/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What jobs hold of a node's NIC, against what the NIC has and what the job may.
 *
 * The device is one node's NIC. Its figures come from the machine file where it has them:
 *
 *   MDD     memory domain handles; blocks of virtual ones are reserved whole
 *   CQ      4 x EMU_CQS_MAX queues
 *   FMA     descriptors: one per NIC handle that does not share, one per job for all its handles that share. A handle
 *           that says neither has one of its own as long as there are any, and shares after that
 *   BTE     block transfers outstanding; a job's limit is also looked at by the poster (client/port.c)
 *   CE      collective engines (ce.c)
 *   IOMMU   registered address space, in MiB
 *   MRT     of a Gemini: 2 MiB blocks of registered memory, if it is not translated by the
 *   GART    4 KiB pages
 *   SFMA    NIC handles that share FMA descriptors
 *
 * A job's limit is per node (its ptag on that device) and never more than the device has. Lowering a limit below what
 * is held takes nothing away: there is just nothing more until enough was given back.
 * Source: spec ugni.md 2.18, 3.9, 3.10, 4.3; what the source leaves open is our choice.
 */
#include "emunic/daemon/resources/resources.h"

#include <errno.h>

#include "emunic/abi/segment.h"
#include "emunic/daemon/ce/ce.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain.h"
#include "emunic/daemon/jobs/job.h"
#include "emunic/daemon/memory/memory_domain.h"
#include "emunic/daemon/core/port.h"

#define DEVICE_CQS         (EMU_CQS_MAX * 4)
#define MIB                (1ull << 20)
#define DEVICE_BYTES       (1ull << 47)
#define MODE_FMA_DEDICATED 0x00010000u /* GNI_CDM_MODE_*, spec ugni.md 2.5 */
#define MODE_FMA_SHARED    0x00020000u

void emu_limits_init(struct emu_limits *limits)
{
    *limits = (struct emu_limits){ UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                   UINT32_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX };
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct emu_account *account_of(const struct emu_port_end *port)
{
    return &port->domain->accounts[port->node_index];
}

/* FMA descriptors that a job holds on a node. */
static uint32_t fma_of(const struct emu_account *account)
{
    return account->n_ports - account->n_shared_fma + (account->n_shared_fma > 0);
}

/* Sum of one figure over all domains on a node. */
static uint64_t sum_of(struct emu_server *server, uint32_t nid, uint64_t (*figure)(const struct emu_domain *, uint32_t))
{
    const struct emu_domain *domain;
    uint64_t sum = 0;

    LIST_FOREACH(domain, &server->domains, link) {
        uint32_t node = domain->table ? emu_domain_node_of(domain, nid) : EMU_NID_NONE;

        if (node != EMU_NID_NONE)
            sum += figure(domain, node);
    }
    return sum;
}

static uint64_t mdds_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return domain->n_handles[node];
}

static uint64_t promised_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return domain->accounts[node].vmdh_size - domain->accounts[node].vmdh_used;
}

static uint64_t cqs_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return domain->accounts[node].n_cqs;
}

static uint64_t fma_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return fma_of(&domain->accounts[node]);
}

static uint64_t blocks_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return domain->accounts[node].n_blocks;
}

static uint64_t mib_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return (domain->accounts[node].translation.iommu_bytes + MIB - 1) / MIB;
}

static uint64_t mrt_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return domain->accounts[node].translation.mrt;
}

static uint64_t gart_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return domain->accounts[node].translation.gart;
}

static uint64_t engines_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return emu_ce_in_use(domain, emu_table_nodes(domain->table)[node].nid);
}

static uint64_t shared_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return domain->accounts[node].n_shared_fma;
}

/* ---- taking and giving back ---- */

int emu_account_add_port(struct emu_port_end *port)
{
    struct emu_account *account = account_of(port);
    uint64_t device = emu_machine_nic(port->server->machine)->fma_descriptors;
    uint32_t mode = port->modes & (MODE_FMA_SHARED | MODE_FMA_DEDICATED);
    bool is_one_left =
        fma_of(account) < port->domain->limits.fma && sum_of(port->server, port->nid, fma_of_domain) < device;

    /* Of both the stricter counts. */
    if (mode & MODE_FMA_DEDICATED)
        port->shares_fma = false;
    else
        port->shares_fma = mode == MODE_FMA_SHARED || !is_one_left;
    if (!is_one_left && (!port->shares_fma || (account->n_shared_fma == 0 && mode == MODE_FMA_SHARED)))
        return -ENOSPC;
    if (!is_one_left && account->n_shared_fma == 0 && account->n_ports == 0)
        return -ENOSPC; /* nothing of the job's that it could share */
    /* One that joins dedicated ones when nothing is left counts as the job's shared descriptor: one too many. */
    account->n_ports++;
    account->n_shared_fma += port->shares_fma;
    return 0;
}

void emu_account_drop_port(struct emu_port_end *port)
{
    struct emu_account *account = account_of(port);

    account->n_ports--;
    account->n_shared_fma -= port->shares_fma;
    account->n_cqs -= port->n_cqs;
    emu_account_add_block(port, -(int)port->n_blocks);
    if (account->n_ports > 0 || !port->server->nodes[port->nid])
        return;
    /* Nobody is left to use the block of virtual handles. */
    port->server->nodes[port->nid]->n_promised -= account->vmdh_size - account->vmdh_used;
    account->vmdh_size = account->vmdh_used;
}

int emu_account_may_add_cq(const struct emu_port_end *port)
{
    return account_of(port)->n_cqs >= port->domain->limits.cq ||
                   sum_of(port->server, port->nid, cqs_of_domain) >= DEVICE_CQS ?
               -ENOSPC :
               0;
}

bool emu_account_may_add_mdd(const struct emu_port_end *port)
{
    uint64_t held = mdds_of_domain(port->domain, port->node_index) + promised_of_domain(port->domain, port->node_index);

    return held < port->domain->limits.mdd;
}

/* Is there room for `more` beside what is used? */
static bool has_room(uint64_t used, uint64_t more, uint64_t limit)
{
    return more <= limit && used <= limit - more;
}

/* What the device has counts where the machine is a Gemini; elsewhere nobody translates by entries. */
int emu_account_may_add_translation(const struct emu_port_end *port, const struct emu_translation *more)
{
    const struct emu_translation *used = &account_of(port)->translation;
    const struct emu_limits *limits = &port->domain->limits;

    if (!has_room(used->iommu_bytes, more->iommu_bytes, limits->iommu_bytes) ||
        !has_room(used->mrt, more->mrt, limits->mrt) || !has_room(used->gart, more->gart, limits->gart))
        return -ENOSPC;
    if (emu_machine_nic(port->server->machine)->device != EMU_DEVICE_GEMINI)
        return 0;
    return has_room(sum_of(port->server, port->nid, mrt_of_domain), more->mrt, EMU_MRT_ENTRIES) &&
                   has_room(sum_of(port->server, port->nid, gart_of_domain), more->gart, EMU_GART_ENTRIES) ?
               0 :
               -ENOSPC;
}

void emu_account_add_translation(struct emu_port_end *port, const struct emu_translation *more)
{
    struct emu_translation *used = &account_of(port)->translation;

    used->iommu_bytes += more->iommu_bytes;
    used->mrt += more->mrt;
    used->gart += more->gart;
}

void emu_account_drop_translation(struct emu_port_end *port, const struct emu_translation *less)
{
    struct emu_translation *used = &account_of(port)->translation;

    used->iommu_bytes -= less->iommu_bytes;
    used->mrt -= less->mrt;
    used->gart -= less->gart;
}

bool emu_account_may_start_block(const struct emu_port_end *port)
{
    return account_of(port)->n_blocks < port->domain->limits.bte;
}

void emu_account_add_block(struct emu_port_end *port, int change)
{
    struct emu_account *account = account_of(port);

    port->n_blocks = (uint32_t)((int)port->n_blocks + change);
    account->n_blocks = (uint32_t)((int)account->n_blocks + change);
    atomic_store_explicit(&emu_table_nodes(port->domain->table)[port->node_index].bte_running, account->n_blocks,
                          memory_order_relaxed);
}

/* ---- answers ---- */

uint32_t emu_place_of(struct emu_connection *c, uint32_t nid_wanted)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &c->server->domains, link) {
        struct emu_member *member = domain->table ? emu_member_find(domain, c->peer.pid) : NULL;

        if (member && member->node_index != EMU_NID_NONE)
            return emu_table_nodes(domain->table)[member->node_index].nid;
    }
    if (nid_wanted < c->server->n_nids)
        return nid_wanted;
    LIST_FOREACH(domain, &c->server->domains, link) {
        uint32_t node = domain->table ? emu_domain_first_here(domain) : EMU_NID_NONE;

        if (node != EMU_NID_NONE && emu_domain_may_use(domain, &c->peer))
            return emu_table_nodes(domain->table)[node].nid;
    }
    return 0;
}

struct resource {
    uint64_t (*figure)(const struct emu_domain *, uint32_t);
    uint64_t device_limit;
    uint64_t job_limit;
};

static int describe(const struct emu_server *server, const struct emu_limits *limits, uint32_t resource,
                    struct resource *out)
{
    const struct emu_nic_params *nic = emu_machine_nic(server->machine);

    switch (resource) {
    case EMU_RESOURCE_MDD:
        *out = (struct resource){ mdds_of_domain, EMU_MDH_COUNT - 1, limits->mdd };
        return 0;
    case EMU_RESOURCE_CQ:
        *out = (struct resource){ cqs_of_domain, DEVICE_CQS, limits->cq };
        return 0;
    case EMU_RESOURCE_FMA:
        *out = (struct resource){ fma_of_domain, nic->fma_descriptors, limits->fma };
        return 0;
    case EMU_RESOURCE_BTE:
        *out = (struct resource){ blocks_of_domain, EMU_RING_SLOTS, limits->bte };
        return 0;
    case EMU_RESOURCE_CE:
        *out = (struct resource){ engines_of_domain, nic->ce_engines, limits->ce };
        return 0;
    case EMU_RESOURCE_IOMMU:
        *out = (struct resource){ mib_of_domain, DEVICE_BYTES / MIB, limits->iommu_bytes / MIB };
        return 0;
    case EMU_RESOURCE_MRT:
        *out = (struct resource){ mrt_of_domain, EMU_MRT_ENTRIES, limits->mrt };
        return 0;
    case EMU_RESOURCE_GART:
        *out = (struct resource){ gart_of_domain, EMU_GART_ENTRIES, limits->gart };
        return 0;
    case EMU_RESOURCE_SFMA:
        *out = (struct resource){ shared_of_domain, EMU_PORTS_MAX, UINT32_MAX };
        return 0;
    default:
        return -EINVAL;
    }
}

static struct emu_domain *domain_of_tag(struct emu_connection *c, uint32_t ptag, uint32_t nid)
{
    struct emu_domain *found = NULL;
    struct emu_domain *domain;

    /* A tag may belong to several jobs: the one that the caller is in, else the first on the node. */
    LIST_FOREACH(domain, &c->server->domains, link) {
        if (domain->is_ending || domain->ptag != ptag || emu_domain_node_of(domain, nid) == EMU_NID_NONE)
            continue;
        if (emu_member_find(domain, c->peer.pid))
            return domain;
        found = domain;
    }
    return found;
}

int emu_resources_answer(struct emu_connection *c, struct emu_msg_resources *res)
{
    struct emu_server *server = c->server;
    uint32_t nid = emu_place_of(c, res->nid_wanted);
    struct emu_domain *domain = NULL;
    struct emu_limits limits;
    struct resource resource;
    uint32_t used;
    uint32_t granularity;
    int r;

    if (res->resource == EMU_RESOURCE_NTT) {
        emu_ntt_figures(server, &used, &granularity);
        res->used = used;
        res->limit = EMU_NTT_ENTRIES;
        res->reserved = granularity;
        return 0;
    }
    emu_limits_init(&limits);
    if (res->ptag != 0)
        domain = domain_of_tag(c, res->ptag, nid);
    r = describe(server, domain ? &domain->limits : &limits, res->resource, &resource);
    if (r < 0)
        return r;
    res->reserved = 0;
    if (res->ptag == 0) {
        res->limit = resource.device_limit;
        res->used = least(sum_of(server, nid, resource.figure), res->limit);
        if (res->resource == EMU_RESOURCE_MDD)
            res->reserved = sum_of(server, nid, promised_of_domain);
        return 0;
    }
    /* A tag that nobody uses has everything before it. */
    res->limit = least(resource.device_limit, resource.job_limit);
    res->used = domain ? resource.figure(domain, emu_domain_node_of(domain, nid)) : 0;
    if (domain && res->resource == EMU_RESOURCE_MDD)
        res->used += promised_of_domain(domain, emu_domain_node_of(domain, nid));
    return 0;
}

int emu_resources_ptag(struct emu_connection *c, struct emu_msg_ptag *ptag)
{
    struct emu_domain *domain = emu_domain_find(c->server, 255, ptag->cookie);

    if (!domain || !emu_domain_may_use(domain, &c->peer))
        return -ENOENT;
    ptag->ptag = domain->ptag;
    return 0;
}
