/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs ask about the resources of a node's NIC. The figures are those of world/accounts.c.
 * Source: spec/ugni.md 2.18, 3.9, 3.10, 4.3; what the source leaves open is our choice.
 */
#include "emunic/daemon/resources/resources.h"

#include <errno.h>

#include "emunic/abi/segment.h"
#include "emunic/daemon/ce/ce_trees.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/jobs/translation.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/lookups.h"

#define MIB          (1ull << 20)
#define DEVICE_BYTES (1ull << 47)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t engines_of_domain(const struct emu_domain *domain, uint32_t node)
{
    return emu_ce_in_use(domain, emu_table_nodes(domain->table)[node].nid);
}

struct resource {
    emu_account_figure *figure;
    uint64_t device_limit;
    uint64_t job_limit;
};

static int describe(const struct emu_server *server, const struct emu_limits *limits, uint32_t resource,
                    struct resource *out)
{
    const struct emu_nic_params *nic = emu_machine_nic(server->machine);

    switch (resource) {
    case EMU_RESOURCE_MDD:
        *out = (struct resource){ emu_account_mdds, EMU_MDH_COUNT - 1, limits->mdd };
        return 0;
    case EMU_RESOURCE_CQ:
        *out = (struct resource){ emu_account_cqs, EMU_DEVICE_CQS, limits->cq };
        return 0;
    case EMU_RESOURCE_FMA:
        *out = (struct resource){ emu_account_fma, nic->fma_descriptors, limits->fma };
        return 0;
    case EMU_RESOURCE_BTE:
        *out = (struct resource){ emu_account_blocks, EMU_RING_SLOTS, limits->bte };
        return 0;
    case EMU_RESOURCE_CE:
        *out = (struct resource){ engines_of_domain, nic->ce_engines, limits->ce };
        return 0;
    case EMU_RESOURCE_IOMMU:
        *out = (struct resource){ emu_account_mib, DEVICE_BYTES / MIB, limits->iommu_bytes / MIB };
        return 0;
    case EMU_RESOURCE_MRT:
        *out = (struct resource){ emu_account_mrt, EMU_MRT_ENTRIES, limits->mrt };
        return 0;
    case EMU_RESOURCE_GART:
        *out = (struct resource){ emu_account_gart, EMU_GART_ENTRIES, limits->gart };
        return 0;
    case EMU_RESOURCE_SFMA:
        *out = (struct resource){ emu_account_shared_fma, EMU_PORTS_MAX, UINT32_MAX };
        return 0;
    default:
        return -EINVAL;
    }
}

static bool is_on_node(const struct emu_domain *domain, uint32_t ptag, uint32_t nid)
{
    return !domain->is_ending && domain->ptag == ptag && emu_domain_node_of(domain, nid) != EMU_NID_NONE;
}

/* A tag may belong to several jobs: the one that the caller is in, else the first on the node. */
static struct emu_domain *domain_of_tag(struct emu_connection *c, uint32_t ptag, uint32_t nid)
{
    const struct emu_member *member;
    struct emu_domain *domain;

    for (member = emu_member_of(c->server, c->peer.pid); member; member = emu_member_of_older(member)) {
        if (is_on_node(member->domain, ptag, nid))
            return member->domain;
    }
    /* Those that are passed over have this tag on other nodes, or end. */
    domain = emu_domain_of_tag(c->server, ptag);
    while (domain && !is_on_node(domain, ptag, nid))
        domain = emu_domain_of_tag_newer(domain);
    return domain;
}

static int answer(struct emu_request *request)
{
    struct emu_connection *c = request->connection;
    struct emu_msg_resources *res = &request->msg->resources;
    struct emu_server *server = c->server;
    uint32_t nid = emu_place_of(server, &c->peer, res->nid_wanted);
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
    r = describe(server, domain ? &domain->budget.limits : &limits, res->resource, &resource);
    if (r < 0)
        return r;
    res->reserved = 0;
    if (res->ptag == 0) {
        res->limit = resource.device_limit;
        res->used = least(emu_account_sum(server, nid, resource.figure), res->limit);
        if (res->resource == EMU_RESOURCE_MDD)
            res->reserved = emu_account_sum(server, nid, emu_account_promised);
        return 0;
    }
    /* A tag that nobody uses has everything before it. */
    res->limit = least(resource.device_limit, resource.job_limit);
    res->used = domain ? resource.figure(domain, emu_domain_node_of(domain, nid)) : 0;
    if (domain && res->resource == EMU_RESOURCE_MDD)
        res->used += emu_account_promised(domain, emu_domain_node_of(domain, nid));
    return 0;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_RESOURCES, EMU_MSG_RESOURCES, EMU_NEEDS_CONTROL, answer },
};

const struct emu_part emu_resources_part = {
    .name = "resources",
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
};
