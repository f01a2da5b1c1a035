/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Job control: what launchers do with privilege.
 *
 * Declaring. A job is a domain with a number (job_id). A domain that a launcher has made gets its number here; one that
 * nobody has made is made here, on the nodes of the other domains and of the caller, or on those of its translation
 * entries. Such a job is its caller's, and ends with the last process that was in it, on whatever host. With several
 * hosts the head makes it on all; a node that no other domain has is on the caller's host.
 *
 * Translation. The table has EMU_NTT_ENTRIES entries for the whole machine, each `granularity` addresses long; the
 * granularity is set with the first entries and free again when all are. An entry sends its addresses to
 * blck_addr, blck_addr + 1 ...; the last rplc_size of them to rplc_addr ... instead, which is how a failed node is
 * mapped around. A job that is bound to entries [base, base + size) calls its nodes by address: address a belongs to
 * entry base + a / granularity. Binding rewrites the domain table's look-up, so commands, events, datagrams and
 * GNI_CdmAttach() all speak of addresses, at no cost per command. It can be done once, before the first attach.
 *
 * Suspending.   runs -> suspends (flag in the table, commands wait) -> suspended (nobody inside the engine) -> runs
 *                       suspends -> runs (deadline, or the caller has gone)
 * Commands stay in their rings and transfers where they are; nothing is lost or reordered. Requests are answered.
 *
 * With several hosts each does this for its own processes; what is under way to another host has been answered when a
 * host is quiet.
 *
 * Source: spec/ugni.md 3.7, 3.9, 4.2. The meaning of the entries' fields is not stated there: it is our reading.
 */
#include "emunic/daemon/jobs/job_control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/credentials.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/commands/remote.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/jobs/presence.h"
#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/word_list.h"

#define IOMMU_LOG2_MAX 27 /* 2^27 MiB: all that a process can address */

struct emu_ntt {
    uint32_t granularity;
    uint32_t n_taken;
    bool taken[EMU_NTT_ENTRIES];
    struct emu_ntt_entry entries[EMU_NTT_ENTRIES];
};

/* NULL until the first entry. */
static struct emu_ntt *ntt_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_NTT];
}

/* ---- translation table ---- */

void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out)
{
    *used_out = ntt_of(server) ? ntt_of(server)->n_taken : 0;
    *granularity_out = ntt_of(server) && ntt_of(server)->n_taken > 0 ? ntt_of(server)->granularity : 1;
}

static bool range_is_known(const struct emu_ntt *ntt, uint32_t base, uint32_t n)
{
    if (!ntt || n == 0 || base >= EMU_NTT_ENTRIES || n > EMU_NTT_ENTRIES - base)
        return false;
    for (uint32_t i = base; i < base + n; i++) {
        if (!ntt->taken[i])
            return false;
    }
    return true;
}

static bool is_bound(const struct emu_server *server, uint32_t entry)
{
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->job.ntt_size > 0 && entry >= domain->job.ntt_base &&
            entry - domain->job.ntt_base < domain->job.ntt_size)
            return true;
    }
    return false;
}

static void release_entries(struct emu_ntt *ntt, uint32_t base, uint32_t n)
{
    for (uint32_t i = base; i < base + n; i++) {
        ntt->n_taken -= ntt->taken[i];
        ntt->taken[i] = false;
    }
}

/* First fit. */
static int find_entries(const struct emu_ntt *ntt, uint32_t n, uint32_t *base_out)
{
    uint32_t run = 0;

    for (uint32_t i = 0; i < EMU_NTT_ENTRIES; i++) {
        run = ntt->taken[i] ? 0 : run + 1;
        if (run == n) {
            *base_out = i + 1 - n;
            return 0;
        }
    }
    return -ENOSPC;
}

static bool block_is_there(const struct emu_server *server, uint32_t first, uint32_t n)
{
    return first < server->n_nids && n <= server->n_nids - first;
}

static bool entry_is_sound(const struct emu_server *server, const struct emu_ntt_entry *entry, uint32_t granularity)
{
    if (entry->rplc_size > granularity)
        return false;
    /* What is replaced need not be there any more. */
    return block_is_there(server, entry->blck_addr, granularity - entry->rplc_size) &&
           (entry->rplc_size == 0 || block_is_there(server, entry->rplc_addr, entry->rplc_size));
}

static bool granularity_is_sound(uint32_t granularity)
{
    return granularity > 0 && granularity <= EMU_NTT_GRANULARITY_MAX && (granularity & (granularity - 1)) == 0;
}

/* The table; made when first used. */
static struct emu_ntt *table_of(struct emu_server *server)
{
    if (!ntt_of(server))
        server->slots[EMU_SERVER_NTT] = calloc(1, sizeof(*ntt_of(server)));
    return ntt_of(server);
}

static void fill_entries(struct emu_ntt *ntt, uint32_t base, const struct emu_ntt_entry *entries, uint32_t n,
                         uint32_t granularity)
{
    ntt->granularity = granularity;
    for (uint32_t i = 0; i < n; i++) {
        ntt->n_taken += !ntt->taken[base + i];
        ntt->taken[base + i] = true;
        ntt->entries[base + i] = entries[i];
    }
}

static bool entries_are_sound(const struct emu_server *server, const struct emu_change *request, uint32_t granularity)
{
    for (uint32_t i = 0; i < request->job.group_size; i++) {
        if (!entry_is_sound(server, &request->entries[i], granularity))
            return false;
    }
    return granularity_is_sound(granularity);
}

static int allocate_entries(struct emu_server *server, struct emu_change *request, uint32_t *base_out)
{
    struct emu_msg_job *job = &request->job;
    struct emu_ntt *ntt = table_of(server);
    int r;

    if (!ntt)
        return -ENOMEM;
    if (job->granularity == 0)
        job->granularity = ntt->n_taken > 0 ? ntt->granularity : 1;
    if (!granularity_is_sound(job->granularity))
        return -EINVAL;
    if (ntt->n_taken > 0 && job->granularity != ntt->granularity)
        return -ENOSPC; /* one granularity at a time */
    if (!entries_are_sound(server, request, job->granularity))
        return -EINVAL;
    r = find_entries(ntt, job->group_size, base_out);
    if (r == 0)
        fill_entries(ntt, *base_out, request->entries, job->group_size, job->granularity);
    return r;
}

static int clear_ntt(struct emu_server *server, const struct emu_msg_job *job, bool is_ordered)
{
    uint32_t base = (uint32_t)job->ntt_base;

    if (job->group_size == UINT32_MAX && job->ntt_base == -1) {
        for (uint32_t i = 0; ntt_of(server) && i < EMU_NTT_ENTRIES; i++) {
            if (!is_bound(server, i))
                release_entries(ntt_of(server), i, 1);
        }
        return 0;
    }
    if (!range_is_known(ntt_of(server), base, job->group_size))
        return -EINVAL;
    for (uint32_t i = base; !is_ordered && i < base + job->group_size; i++) {
        if (is_bound(server, i))
            return -ENOSPC;
    }
    release_entries(ntt_of(server), base, job->group_size);
    return 0;
}

/* The node that an address of the range leads to. */
static uint32_t translate(const struct emu_ntt *ntt, uint32_t base, uint32_t address)
{
    const struct emu_ntt_entry *entry = &ntt->entries[base + address / ntt->granularity];
    uint32_t offset = address % ntt->granularity;
    uint32_t kept = ntt->granularity - entry->rplc_size;

    return offset < kept ? entry->blck_addr + offset : entry->rplc_addr + (offset - kept);
}

static void bind_addresses(struct emu_server *server, struct emu_domain *domain, uint32_t base, uint32_t size)
{
    uint32_t *index_of = (uint32_t *)((char *)domain->table + domain->table->nid_off);
    uint32_t n_addresses = size * ntt_of(server)->granularity;

    for (uint32_t i = 0; i < domain->n_nodes; i++)
        domain->addresses[i] = EMU_NID_NONE;
    for (uint32_t address = 0; address < domain->table->n_nids; address++) {
        uint32_t node =
            address < n_addresses ? emu_domain_node_of(domain, translate(ntt_of(server), base, address)) : EMU_NID_NONE;

        index_of[address] = node;
        if (node != EMU_NID_NONE && domain->addresses[node] == EMU_NID_NONE)
            domain->addresses[node] = address;
    }
    domain->job.ntt_base = base;
    domain->job.ntt_size = size;
}

/* ---- declaring ---- */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Nodes of a job that no launcher has made: those that the range leads to, or else everybody's and the caller's. */
static int collect_nids(struct emu_server *server, const struct emu_msg_job *job, uint32_t base, uint32_t size,
                        uint32_t **nids_out, uint32_t *n_out)
{
    uint32_t n_max = size > 0 ? size * ntt_of(server)->granularity : 1;
    struct emu_domain *domain;
    uint32_t n = 0;
    uint32_t *nids;

    LIST_FOREACH(domain, &server->domains, link)
        n_max += domain->n_nodes;
    nids = malloc(n_max * sizeof(*nids));
    if (!nids)
        return -ENOMEM;
    if (size > 0) {
        for (uint32_t address = 0; address < size * ntt_of(server)->granularity; address++)
            nids[n++] = translate(ntt_of(server), base, address);
    } else {
        nids[n++] = job->nid_wanted;
        LIST_FOREACH(domain, &server->domains, link) {
            for (uint32_t i = 0; i < domain->n_nodes; i++)
                nids[n++] = emu_table_nodes(domain->table)[i].nid;
        }
    }
    qsort(nids, n, sizeof(*nids), compare);
    *nids_out = nids;
    *n_out = n;
    return 0;
}

/* The host that a node is on for all domains that all hosts know; the caller's if there is none with it. */
static uint32_t host_of_nid(const struct emu_server *server, uint32_t nid, uint32_t origin)
{
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        uint32_t node = domain->common_number ? emu_domain_node_of(domain, nid) : EMU_NID_NONE;

        if (node != EMU_NID_NONE)
            return emu_hosts_of_node(domain, node);
    }
    return origin;
}

/* Entries of the translation table. */
struct range {
    uint32_t base;
    uint32_t n;
};

static int make_domain(struct emu_server *server, const struct emu_change *request, uint32_t origin, uint32_t ptag,
                       struct range range, struct emu_domain **domain_out)
{
    struct emu_domain_spec spec = { .ptag = ptag, .cookie = request->job.cookie, .owner_uid = request->uid };
    uint32_t *hosts = NULL;
    uint32_t *nids;
    int r;

    r = collect_nids(server, &request->job, range.base, range.n, &nids, &spec.n_ranks);
    if (r < 0)
        return r;
    if (emu_hosts_are_several(server)) {
        hosts = malloc(spec.n_ranks * sizeof(*hosts));
        for (uint32_t i = 0; hosts && i < spec.n_ranks; i++)
            hosts[i] = host_of_nid(server, nids[i], origin);
        r = hosts ? 0 : -ENOMEM;
    }
    spec.rank_nids = nids;
    spec.rank_hosts = hosts;
    if (r == 0)
        r = emu_host_domains_make(server, &spec, false, domain_out);
    free(hosts);
    free(nids);
    if (r == 0)
        (*domain_out)->job.is_declared = true;
    return r;
}

/* 0: *domain_out is the job, or NULL. EMU_OUTCOME_IN_USE: its tag, cookie or number belong to another one. */
static int find_job(struct emu_server *server, uint64_t job_id, uint32_t ptag, uint32_t cookie,
                    struct emu_domain **domain_out)
{
    struct emu_domain *domain;

    *domain_out = NULL;
    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->is_ending)
            continue;
        if ((domain->ptag == ptag) != (domain->cookie == cookie))
            return EMU_OUTCOME_IN_USE;
        if (domain->cookie == cookie && domain->job.has_id && domain->job.id != job_id)
            return EMU_OUTCOME_IN_USE;
        if (domain->cookie == cookie)
            *domain_out = domain;
    }
    return 0;
}

static bool limit_is_sound(int32_t limit)
{
    return limit >= EMU_JOB_LIMIT_NONE;
}

static int check_limits(const struct emu_msg_job *job)
{
    if ((job->flags & EMU_JOB_LIMITS) == 0)
        return 0;
    if (!limit_is_sound(job->mdd_limit) || !limit_is_sound(job->cq_limit) || !limit_is_sound(job->fma_limit) ||
        !limit_is_sound(job->bte_limit) || !limit_is_sound(job->ce_limit) || !limit_is_sound(job->iommu_limit) ||
        !limit_is_sound(job->mrt_limit) || !limit_is_sound(job->gart_limit) || job->iommu_limit > 255 ||
        job->ntt_base < -1)
        return -EINVAL;
    return job->ntt_size < 0 || (job->ntt_size > 0 && job->ntt_base < 0) ? -EINVAL : 0;
}

static void set_limit(uint32_t *limit, int32_t wanted)
{
    if (wanted != EMU_JOB_LIMIT_NONE)
        *limit = (uint32_t)wanted;
}

static void publish_limits(struct emu_domain *domain)
{
    for (uint32_t i = 0; i < domain->n_nodes; i++)
        atomic_store_explicit(&emu_table_nodes(domain->table)[i].bte_limit,
                              domain->budget.limits.bte == UINT32_MAX ? 0 : domain->budget.limits.bte,
                              memory_order_relaxed);
}

static void set_limits(struct emu_domain *domain, const struct emu_msg_job *job)
{
    struct emu_limits *limits = &domain->budget.limits;

    if ((job->flags & EMU_JOB_LIMITS) == 0)
        return;
    set_limit(&limits->mdd, job->mdd_limit);
    set_limit(&limits->cq, job->cq_limit);
    set_limit(&limits->fma, job->fma_limit);
    set_limit(&limits->bte, job->bte_limit);
    set_limit(&limits->ce, job->ce_limit);
    set_limit(&limits->mrt, job->mrt_limit);
    set_limit(&limits->gart, job->gart_limit);
    if (job->iommu_limit != EMU_JOB_LIMIT_NONE)
        limits->iommu_bytes = 1ull << (20 + (job->iommu_limit < IOMMU_LOG2_MAX ? job->iommu_limit : IOMMU_LOG2_MAX));
    if (limits->bte == 0)
        limits->bte = 1; /* a block transfer has to begin some time */
    publish_limits(domain);
}

/* May the job be bound to these entries? */
static int check_binding(const struct emu_server *server, const struct emu_domain *domain, uint32_t base, uint32_t size)
{
    if (size == 0)
        return 0;
    if (!range_is_known(ntt_of(server), base, size))
        return -ENOENT;
    if ((uint64_t)size * ntt_of(server)->granularity > server->n_nids)
        return -ENOSPC;
    if (!domain || (domain->job.ntt_size == size && domain->job.ntt_base == base))
        return 0;
    if (domain->job.ntt_size > 0)
        return EMU_OUTCOME_RESIZE;
    return domain->port_slots.n_used > 0 || emu_presence_has_ports(server, domain) ? EMU_OUTCOME_IN_USE : 0;
}

/* What was decided. */
static void become_job(struct emu_server *server, struct emu_domain *domain, const struct emu_msg_job *job,
                       uint32_t base, uint32_t size)
{
    domain->job.has_id = true;
    domain->job.id = job->job_id;
    set_limits(domain, job);
    if (size > 0 && domain->job.ntt_size == 0)
        bind_addresses(server, domain, base, size);
    if (size > 0 && (job->flags & EMU_JOB_NTT_CLEANUP))
        domain->job.cleans_ntt = true;
    emu_log(EMU_LOG_INFO, "domain %u is job %llu, %u translation entries", domain->id,
            (unsigned long long)domain->job.id, domain->job.ntt_size);
}

static int declare(struct emu_server *server, struct emu_change *request, uint32_t origin, uint32_t base, uint32_t size)
{
    const struct emu_msg_job *job = &request->job;
    uint32_t ptag = job->ptag == 255 ? emu_ptag_of_cookie(job->cookie) : job->ptag;
    struct emu_domain *domain;
    int r;

    if (ptag == 0 || ptag > 254)
        return -EINVAL;
    r = find_job(server, job->job_id, ptag, job->cookie, &domain);
    if (r == 0)
        r = check_binding(server, domain, base, size);
    if (r == 0 && !domain)
        r = make_domain(server, request, origin, ptag, (struct range){ base, size }, &domain);
    if (r != 0)
        return r;
    request->domain = domain->common_number;
    request->declares = domain->job.is_declared;
    become_job(server, domain, job, base, size);
    return 0;
}

/* The entries that a job is to be bound to: those of its table, once they are allocated, or those that are named. */
static uint32_t range_of(const struct emu_msg_job *job, uint32_t *base_out)
{
    *base_out = (uint32_t)job->ntt_base;
    if (job->flags & EMU_JOB_NTT)
        return job->group_size;
    return (job->flags & EMU_JOB_LIMITS) && job->ntt_size > 0 ? (uint32_t)job->ntt_size : 0;
}

static int configure(struct emu_server *server, struct emu_change *request, uint32_t origin)
{
    struct emu_msg_job *job = &request->job;
    uint32_t base = 0;
    uint32_t size;
    int r;

    if ((job->flags & (EMU_JOB_DECLARE | EMU_JOB_NTT)) == 0)
        return -EINVAL;
    r = check_limits(job);
    if (r < 0)
        return r;
    size = range_of(job, &base);
    if (job->flags & EMU_JOB_NTT)
        r = allocate_entries(server, request, &base);
    if (r != 0)
        return r;
    if (job->flags & EMU_JOB_DECLARE)
        r = declare(server, request, origin, base, size);
    if (r != 0 && (job->flags & EMU_JOB_NTT))
        release_entries(ntt_of(server), base, size);
    if (r == 0 && (job->flags & EMU_JOB_NTT))
        job->ntt_base = (int32_t)base;
    return r;
}

static int follow(struct emu_server *server, const struct emu_change *request)
{
    const struct emu_msg_job *job = &request->job;
    struct emu_domain *domain = emu_hosts_find_domain(server, request->domain);
    uint32_t base;
    uint32_t size = range_of(job, &base);
    struct emu_ntt *ntt = size > 0 ? table_of(server) : NULL;

    if (size > 0 && (!ntt || base >= EMU_NTT_ENTRIES || size > EMU_NTT_ENTRIES - base))
        return ntt ? -EINVAL : -ENOMEM;
    if (check_limits(job) < 0)
        return -EINVAL;
    if (job->flags & EMU_JOB_NTT) {
        if (!entries_are_sound(server, request, job->granularity))
            return -EINVAL;
        fill_entries(ntt, base, request->entries, size, job->granularity);
    }
    if ((job->flags & EMU_JOB_DECLARE) == 0)
        return 0;
    if (!domain || domain->is_ending)
        return -ENODEV;
    domain->job.is_declared = request->declares;
    /* A process here was quicker than the head's word: its job's addresses stay what it was told. */
    if (size > 0 && domain->job.ntt_size == 0 && domain->port_slots.n_used > 0)
        return -EBUSY;
    if (size > 0 && (!range_is_known(ntt, base, size) || (uint64_t)size * ntt->granularity > server->n_nids))
        return -EINVAL;
    become_job(server, domain, job, base, size);
    return 0;
}

/* The head has released an entry: so do all. */
static void order_release(struct emu_server *server, uint32_t entry)
{
    struct emu_change *change = calloc(1, sizeof(*change));

    if (change) {
        change->job.ntt_base = (int32_t)entry;
        change->job.group_size = 1;
    }
    emu_order_begin(server, EMU_MSG_NTT_CLEAR, change);
}

static void end_domain(struct emu_server *server, struct emu_domain *domain)
{
    uint32_t size = domain->job.ntt_size;

    domain->job.ntt_size = 0;
    /* The head says when entries are free. */
    if (!domain->job.cleans_ntt || (domain->common_number != 0 && emu_hosts_own(server) != EMU_HOST_HEAD))
        return;
    for (uint32_t i = domain->job.ntt_base; i < domain->job.ntt_base + size; i++) {
        if (is_bound(server, i))
            continue;
        if (emu_hosts_are_several(server))
            order_release(server, i);
        else
            release_entries(ntt_of(server), i, 1);
    }
}

/* ---- suspending ---- */

/* The order of a suspension, while somebody waits for its end. */
struct suspension {
    uint64_t order;
    bool is_awaited;
};

static void end_suspending(struct emu_domain *domain, bool is_quiet)
{
    domain->job.suspension = is_quiet ? EMU_SUSPENDED : EMU_RUNS;
    if (!is_quiet)
        atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_SUSPENDED);
    emu_log(EMU_LOG_INFO, "domain %u %s", domain->id, is_quiet ? "is suspended" : "could not be suspended");
}

/* Is anything of the domain under way to other hosts that has not been answered? */
static bool is_anything_under_way(const struct emu_server *server, const struct emu_quiesce *q)
{
    const struct emu_member *member;
    const struct emu_port_end *port;

    (void)server;
    LIST_FOREACH(member, &q->domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            if (emu_remote_awaits_answers(port) || emu_portals_remote_of(port)->n > 0)
                return true;
        }
    }
    return false;
}

/* Nobody is inside any more, or it was given up. */
static void members_have_left(struct emu_server *server, struct emu_quiesce *q)
{
    const struct suspension *s = q->ctx;

    end_suspending(q->domain, !q->gave_up);
    if (s->is_awaited)
        emu_order_ended(server, s->order, q->gave_up ? -ETIMEDOUT : 0);
}

static const struct emu_quiesce_ops suspend_ops = { .left = members_have_left, .is_busy = is_anything_under_way };

static void run_again(struct emu_server *server, struct emu_domain *domain)
{
    if (domain->job.suspension == EMU_SUSPENDS)
        emu_quiesce_give_up(server, domain, &suspend_ops); /* its end makes it run */
    if (domain->job.suspension != EMU_SUSPENDED)
        return;
    domain->job.suspension = EMU_RUNS;
    atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_SUSPENDED);
    emu_log(EMU_LOG_INFO, "domain %u runs again", domain->id);
}

/* ---- state ---- */

static void put_ntt(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *list)
{
    const struct emu_ntt *ntt = ntt_of(server);
    uint64_t *at;

    (void)domain;
    emu_word_list_add(list, ntt && ntt->n_taken > 0 ? ntt->granularity : 1);
    for (uint32_t i = 0; ntt && i < EMU_NTT_ENTRIES; i++) {
        at = ntt->taken[i] ? emu_word_list_extend(list, 1 + EMU_HOST_NTT_WORDS) : NULL;
        if (at) {
            at[0] = i;
            emu_host_ntt_put(at + 1, &ntt->entries[i]);
        }
    }
}

static bool take_ntt(struct emu_server *server, struct emu_domain *domain, struct emu_words *words)
{
    uint32_t granularity = (uint32_t)emu_words_take(words, EMU_NTT_GRANULARITY_MAX);
    struct emu_ntt *ntt;

    (void)domain;
    if (words->is_bad || !granularity_is_sound(granularity))
        return false;
    if (words->left == 0 && !ntt_of(server))
        return true;
    ntt = calloc(1, sizeof(*ntt));
    while (ntt && words->left > 0) {
        uint32_t index = (uint32_t)emu_words_take(words, EMU_NTT_ENTRIES - 1);
        struct emu_ntt_entry entry;

        emu_host_ntt_take(words, &entry);
        if (words->is_bad || !entry_is_sound(server, &entry, granularity)) {
            free(ntt);
            return false;
        }
        fill_entries(ntt, index, &entry, 1, granularity);
    }
    if (ntt) {
        free(ntt_of(server));
        server->slots[EMU_SERVER_NTT] = ntt;
    }
    return true;
}

#define STATE_WORDS 16u

static void put_state(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *list)
{
    const struct emu_limits *l = &domain->budget.limits;
    const uint64_t words[STATE_WORDS] = {
        domain->job.has_id,
        domain->job.id,
        domain->job.is_declared,
        domain->paths.is_routed_on_demand,
        domain->job.suspension != EMU_RUNS,
        l->mdd,
        l->cq,
        l->fma,
        l->bte,
        l->ce,
        l->iommu_bytes,
        domain->job.ntt_base,
        domain->job.ntt_size,
        domain->job.cleans_ntt,
        l->mrt,
        l->gart,
    };
    uint64_t *at = emu_word_list_extend(list, STATE_WORDS);

    (void)server;
    if (at)
        memcpy(at, words, sizeof(words));
}

/* Suspended while nobody was told, or resumed. */
static void follow_suspension(struct emu_server *server, struct emu_domain *domain, bool is_suspended)
{
    if (is_suspended == (domain->job.suspension != EMU_RUNS))
        return;
    if (is_suspended) {
        domain->job.suspension = EMU_SUSPENDED;
        atomic_fetch_or(&domain->table->flags, EMU_TABLE_SUSPENDED);
    } else {
        run_again(server, domain);
    }
}

static bool take_state(struct emu_server *server, struct emu_domain *domain, struct emu_words *words)
{
    struct emu_limits *l = &domain->budget.limits;
    bool has_job_id = emu_words_take(words, 1) != 0;
    uint64_t job_id = emu_words_take(words, UINT64_MAX);
    bool is_declared = emu_words_take(words, 1) != 0;
    bool is_routed = emu_words_take(words, 1) != 0;
    bool is_suspended = emu_words_take(words, 1) != 0;
    struct emu_limits limits;
    uint32_t base;
    uint32_t size;
    bool cleans;

    limits.mdd = (uint32_t)emu_words_take(words, UINT32_MAX);
    limits.cq = (uint32_t)emu_words_take(words, UINT32_MAX);
    limits.fma = (uint32_t)emu_words_take(words, UINT32_MAX);
    limits.bte = (uint32_t)emu_words_take(words, UINT32_MAX);
    limits.ce = (uint32_t)emu_words_take(words, UINT32_MAX);
    limits.iommu_bytes = emu_words_take(words, UINT64_MAX);
    base = (uint32_t)emu_words_take(words, EMU_NTT_ENTRIES);
    size = (uint32_t)emu_words_take(words, EMU_NTT_ENTRIES);
    cleans = emu_words_take(words, 1) != 0;
    limits.mrt = (uint32_t)emu_words_take(words, UINT32_MAX);
    limits.gart = (uint32_t)emu_words_take(words, UINT32_MAX);
    if (words->is_bad || words->left != 0 || limits.bte == 0)
        return false;
    if (size > 0 &&
        (!range_is_known(ntt_of(server), base, size) || (uint64_t)size * ntt_of(server)->granularity > server->n_nids))
        return false;
    domain->job.has_id = has_job_id;
    domain->job.id = job_id;
    domain->job.is_declared = is_declared;
    *l = limits;
    publish_limits(domain);
    if (size > 0 && domain->job.ntt_size == 0)
        bind_addresses(server, domain, base, size);
    domain->job.cleans_ntt = cleans;
    domain->paths.is_routed_on_demand = is_routed;
    emu_domain_set_path(domain);
    follow_suspension(server, domain, is_suspended);
    return true;
}

/* ---- orders ---- */

static struct emu_domain *find_named(struct emu_server *server, const struct emu_msg_job *job)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->cookie == job->cookie && (job->ptag == 255 || domain->ptag == job->ptag) &&
            (!domain->job.has_id || domain->job.id == job->job_id))
            return domain;
    }
    return NULL;
}

static struct emu_domain *domain_of(struct emu_server *server, struct emu_change *request, bool is_ordered)
{
    struct emu_domain *domain = is_ordered && request->domain != 0 ? emu_hosts_find_domain(server, request->domain) :
                                                                     find_named(server, &request->job);

    if (domain)
        request->domain = domain->common_number;
    return domain;
}

static int suspend(struct emu_server *server, struct emu_change *request, const struct emu_change_order *order)
{
    struct emu_domain *domain = domain_of(server, request, order->is_ordered);
    struct suspension *s;
    struct emu_quiesce *q;

    if (!domain)
        return -EINVAL;
    if (domain->is_ending)
        return -ENOSPC;
    if (domain->job.suspension != EMU_RUNS)
        return EMU_OUTCOME_IN_USE;
    s = calloc(1, sizeof(*s));
    q = s ? emu_quiesce_create(domain, &suspend_ops, s) : NULL;
    if (!q)
        return -ENOMEM;
    s->order = order->number;
    q->deadline_ns = emu_clock_ns() + request->job.timeout_ms * 1000000ull;
    domain->job.suspension = EMU_SUSPENDS;
    atomic_fetch_or(&domain->table->flags, EMU_TABLE_SUSPENDED);
    if (emu_quiesce_start(server, q))
        return 0;
    s->is_awaited = true;
    return EMU_DEFERRED;
}

static int resume(struct emu_server *server, struct emu_change *request, const struct emu_change_order *order)
{
    struct emu_domain *domain = domain_of(server, request, order->is_ordered);

    if (!domain)
        return -EINVAL;
    if (domain->job.suspension != EMU_SUSPENDED && !order->is_ordered)
        return EMU_OUTCOME_IN_USE;
    run_again(server, domain);
    return 0;
}

static int configure_or_follow(struct emu_server *server, struct emu_change *request,
                               const struct emu_change_order *order)
{
    return order->is_ordered ? follow(server, request) : configure(server, request, order->origin);
}

static int clear_ntt_by_order(struct emu_server *server, struct emu_change *request,
                              const struct emu_change_order *order)
{
    return clear_ntt(server, &request->job, order->is_ordered);
}

static bool has_table(const struct emu_change *request)
{
    return request->row->type == EMU_MSG_JOB_CONFIGURE && (request->job.flags & EMU_JOB_NTT) != 0;
}

static int read_change(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds,
                       struct emu_change *request)
{
    void *entries = NULL;
    int r = 0;

    request->job = msg->job;
    if (msg->type == EMU_MSG_JOB_CONFIGURE)
        request->job.nid_wanted = emu_place_of(c->server, &c->peer, msg->job.nid_wanted);
    if (has_table(request))
        r = emu_change_read_table(fds, msg->job.group_size, EMU_NTT_ENTRIES, sizeof(*request->entries), &entries);
    request->entries = entries;
    return r;
}

static void put_change(const struct emu_change *request, struct emu_word_list *list)
{
    uint64_t *at = emu_word_list_extend(list, EMU_HOST_JOB_WORDS);

    if (at)
        emu_host_job_put(at, &request->job);
    emu_word_list_add(list, request->declares);
    for (uint32_t i = 0; request->entries && i < request->job.group_size; i++) {
        at = emu_word_list_extend(list, EMU_HOST_NTT_WORDS);
        if (at)
            emu_host_ntt_put(at, &request->entries[i]);
    }
}

static bool take_change(const struct emu_server *server, struct emu_words *words, struct emu_change *request)
{
    emu_host_job_take(words, &request->job);
    request->declares = emu_words_take(words, 1) != 0;
    if (words->is_bad || (request->row->type == EMU_MSG_JOB_CONFIGURE && request->job.nid_wanted >= server->n_nids))
        return false;
    if (!has_table(request))
        return true;
    if (request->job.group_size == 0 || request->job.group_size > EMU_NTT_ENTRIES)
        return false;
    request->entries = calloc(request->job.group_size, sizeof(*request->entries));
    for (uint32_t i = 0; request->entries && i < request->job.group_size; i++)
        emu_host_ntt_take(words, &request->entries[i]);
    return request->entries;
}

static bool is_own(struct emu_server *server, const struct emu_change *request)
{
    const struct emu_domain *domain = find_named(server, &request->job);

    return domain && domain->common_number == 0;
}

static uint32_t first_entry(struct emu_server *server, const struct emu_change *request)
{
    (void)server;
    return (uint32_t)request->job.ntt_base;
}

static void reply_first_entry(uint32_t value, struct emu_msg *reply)
{
    if (reply->job.flags & EMU_JOB_NTT)
        reply->job.ntt_base = (int32_t)value;
}

/* ---- the data path of a domain ---- */

static int read_path(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds,
                     struct emu_change *request)
{
    (void)fds;
    request->flags = msg->domain.flags & EMU_TABLE_ROUTED;
    return emu_change_name_domain(c->server, request, msg->domain.domain_id) ? 0 : -ENOENT;
}

static void put_path(const struct emu_change *request, struct emu_word_list *list)
{
    emu_word_list_add(list, request->flags);
}

static bool take_path(const struct emu_server *server, struct emu_words *words, struct emu_change *request)
{
    (void)server;
    request->flags = (uint32_t)emu_words_take(words, EMU_TABLE_ROUTED);
    return request->domain != 0;
}

static int set_path(struct emu_server *server, struct emu_change *request, const struct emu_change_order *order)
{
    struct emu_domain *domain;

    (void)order;
    LIST_FOREACH(domain, &server->domains, link) {
        if (!emu_change_means(request, domain))
            continue;
        if (domain->paths.is_routed_for_good)
            return -EPERM;
        domain->paths.is_routed_on_demand = request->flags != 0;
        emu_domain_set_path(domain);
        return 0;
    }
    return -ENOENT;
}

/* ---- the part ---- */

static void destroy(struct emu_server *server)
{
    free(ntt_of(server));
    server->slots[EMU_SERVER_NTT] = NULL;
}

static const struct emu_change_row changes[] = {
    { .type = EMU_MSG_JOB_CONFIGURE,
      .read = read_change,
      .put = put_change,
      .take = take_change,
      .act = configure_or_follow,
      .is_own = is_own,
      .value = first_entry,
      .reply = reply_first_entry },
    { .type = EMU_MSG_JOB_SUSPEND,
      .read = read_change,
      .put = put_change,
      .take = take_change,
      .act = suspend,
      .is_own = is_own },
    { .type = EMU_MSG_JOB_RESUME,
      .read = read_change,
      .put = put_change,
      .take = take_change,
      .act = resume,
      .is_own = is_own },
    { .type = EMU_MSG_NTT_CLEAR,
      .read = read_change,
      .put = put_change,
      .take = take_change,
      .act = clear_ntt_by_order },
    { .type = EMU_MSG_DATAPATH, .read = read_path, .put = put_path, .take = take_path, .act = set_path },
};
static const struct emu_state_row states[] = {
    { EMU_MSG_NTT_CLEAR, false, put_ntt, take_ntt },
    { EMU_MSG_JOB_CONFIGURE, true, put_state, take_state },
};

const struct emu_part emu_jobs_part = {
    .name = "jobs",
    .destroy = destroy,
    .changes = changes,
    .n_changes = EMU_ROWS(changes),
    .states = states,
    .n_states = EMU_ROWS(states),
    .domains = { .end = end_domain },
};
