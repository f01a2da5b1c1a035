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
 *   CE      collective engines (ce_trees.c)
 *   IOMMU   registered address space, in MiB
 *   MRT     of a Gemini: 2 MiB blocks of registered memory, if it is not translated by the
 *   GART    4 KiB pages
 *   SFMA    NIC handles that share FMA descriptors
 *
 * A job's limit is per node (its ptag on that device) and never more than the device has. Lowering a limit below what
 * is held takes nothing away: there is just nothing more until enough was given back.
 * Source: spec/ugni.md 2.18, 3.9, 3.10, 4.3; what the source leaves open is our choice.
 */
#include "emunic/daemon/world/accounts.h"

#include <errno.h>

#include "emunic/abi/segment.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/node.h"
#include "emunic/daemon/world/port_end.h"

#define MIB                (1ull << 20)
#define MODE_FMA_DEDICATED 0x00010000u /* GNI_CDM_MODE_*, spec/ugni.md 2.5 */
#define MODE_FMA_SHARED    0x00020000u

void emu_limits_init(struct emu_limits *limits)
{
    *limits = (struct emu_limits){ UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                   UINT32_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX };
}

bool emu_limits_are_open(const struct emu_limits *limits)
{
    struct emu_limits open;

    emu_limits_init(&open);
    return limits->mdd == open.mdd && limits->iommu_bytes == open.iommu_bytes && limits->mrt == open.mrt &&
           limits->gart == open.gart;
}

static struct emu_account *account_of(const struct emu_port_end *port)
{
    return &port->domain->budget.accounts[port->node_index];
}

/* FMA descriptors that a job holds on a node. */
static uint32_t fma_of(const struct emu_account *account)
{
    return account->n_ports - account->n_shared_fma + (account->n_shared_fma > 0);
}

uint64_t emu_account_sum(struct emu_server *server, uint32_t nid, emu_account_figure *figure)
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

uint64_t emu_account_mdds(const struct emu_domain *domain, uint32_t node)
{
    return domain->budget.n_handles[node];
}

uint64_t emu_account_promised(const struct emu_domain *domain, uint32_t node)
{
    return domain->budget.accounts[node].vmdh_size - domain->budget.accounts[node].vmdh_used;
}

uint64_t emu_account_cqs(const struct emu_domain *domain, uint32_t node)
{
    return domain->budget.accounts[node].n_cqs;
}

uint64_t emu_account_fma(const struct emu_domain *domain, uint32_t node)
{
    return fma_of(&domain->budget.accounts[node]);
}

uint64_t emu_account_blocks(const struct emu_domain *domain, uint32_t node)
{
    return domain->budget.accounts[node].n_blocks;
}

uint64_t emu_account_mib(const struct emu_domain *domain, uint32_t node)
{
    return (domain->budget.accounts[node].translation.iommu_bytes + MIB - 1) / MIB;
}

uint64_t emu_account_mrt(const struct emu_domain *domain, uint32_t node)
{
    return domain->budget.accounts[node].translation.mrt;
}

uint64_t emu_account_gart(const struct emu_domain *domain, uint32_t node)
{
    return domain->budget.accounts[node].translation.gart;
}

uint64_t emu_account_shared_fma(const struct emu_domain *domain, uint32_t node)
{
    return domain->budget.accounts[node].n_shared_fma;
}

/* ---- taking and giving back ---- */

int emu_account_add_port(struct emu_port_end *port)
{
    struct emu_account *account = account_of(port);
    uint64_t device = emu_machine_nic(port->server->machine)->fma_descriptors;
    uint32_t mode = port->modes & (MODE_FMA_SHARED | MODE_FMA_DEDICATED);
    bool is_one_left = fma_of(account) < port->domain->budget.limits.fma &&
                       emu_account_sum(port->server, port->nid, emu_account_fma) < device;

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
    account->n_cqs -= port->queues.n_cqs;
    emu_account_add_block(port, -(int)port->transfers.n_blocks);
    if (account->n_ports > 0 || !port->server->nodes[port->nid])
        return;
    /* Nobody is left to use the block of virtual handles. */
    port->server->nodes[port->nid]->n_promised -= account->vmdh_size - account->vmdh_used;
    account->vmdh_size = account->vmdh_used;
}

int emu_account_may_add_cq(const struct emu_port_end *port)
{
    return account_of(port)->n_cqs >= port->domain->budget.limits.cq ||
                   emu_account_sum(port->server, port->nid, emu_account_cqs) >= EMU_DEVICE_CQS ?
               -ENOSPC :
               0;
}

bool emu_account_may_add_mdd(const struct emu_port_end *port)
{
    uint64_t held =
        emu_account_mdds(port->domain, port->node_index) + emu_account_promised(port->domain, port->node_index);

    return held < port->domain->budget.limits.mdd;
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
    const struct emu_limits *limits = &port->domain->budget.limits;

    if (!has_room(used->iommu_bytes, more->iommu_bytes, limits->iommu_bytes) ||
        !has_room(used->mrt, more->mrt, limits->mrt) || !has_room(used->gart, more->gart, limits->gart))
        return -ENOSPC;
    if (emu_machine_nic(port->server->machine)->device != EMU_DEVICE_GEMINI)
        return 0;
    return has_room(emu_account_sum(port->server, port->nid, emu_account_mrt), more->mrt, EMU_MRT_ENTRIES) &&
                   has_room(emu_account_sum(port->server, port->nid, emu_account_gart), more->gart, EMU_GART_ENTRIES) ?
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
    return account_of(port)->n_blocks < port->domain->budget.limits.bte;
}

void emu_account_add_block(struct emu_port_end *port, int change)
{
    struct emu_account *account = account_of(port);

    port->transfers.n_blocks = (uint32_t)((int)port->transfers.n_blocks + change);
    account->n_blocks = (uint32_t)((int)account->n_blocks + change);
    atomic_store_explicit(&emu_table_nodes(port->domain->table)[port->node_index].bte_running, account->n_blocks,
                          memory_order_relaxed);
}
