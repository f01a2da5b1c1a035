/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Job control: what launchers do with privilege.
 *
 * Declaring. A job is a domain with a number (job_id). A domain that a launcher has made gets its number here; one that
 * nobody has made is made here, on the nodes of the other domains and of the caller, or on those of its translation
 * entries. Such a job is its caller's, and ends with the last process that was in it.
 *
 * Translation. The table has EMU_NTT_ENTRIES entries for the whole host, each `granularity` addresses long; the
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
 * Source: spec ugni.md 3.7, 3.9, 4.2. The meaning of the entries' fields is not stated there: it is our reading.
 */
#include "emunic/daemon/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/abi/credentials.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/connection.h"
#include "emunic/daemon/domain.h"
#include "emunic/daemon/quiesce.h"
#include "emunic/daemon/resources.h"

#define IOMMU_LOG2_MAX 27       /* 2^27 MiB: all that a process can address */

struct emu_ntt {
    uint32_t granularity;
    uint32_t n_taken;
    bool taken[EMU_NTT_ENTRIES];
    struct emu_ntt_entry entries[EMU_NTT_ENTRIES];
};

/* ---- translation table ---- */

void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out)
{
    *used_out = server->ntt ? server->ntt->n_taken : 0;
    *granularity_out = server->ntt && server->ntt->n_taken > 0 ? server->ntt->granularity : 1;
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
        if (domain->ntt_size > 0 && entry >= domain->ntt_base && entry - domain->ntt_base < domain->ntt_size)
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

/* Reads the caller's table. */
static int read_entries(const struct emu_server *server, const struct emu_fds *fds, const struct emu_msg_job *job,
                        uint32_t granularity, struct emu_ntt_entry **entries_out)
{
    size_t bytes = (size_t)job->group_size * sizeof(struct emu_ntt_entry);
    struct emu_ntt_entry *entries;

    if (fds->n_fds != 1 || job->group_size == 0)
        return -EINVAL;
    if (job->group_size > EMU_NTT_ENTRIES)
        return -ENOSPC;
    entries = malloc(bytes);
    if (!entries)
        return -ENOMEM;
    if (pread(fds->fd[0], entries, bytes, 0) != (ssize_t)bytes) {
        free(entries);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < job->group_size; i++) {
        if (!entry_is_sound(server, &entries[i], granularity)) {
            free(entries);
            return -EINVAL;
        }
    }
    *entries_out = entries;
    return 0;
}

static bool granularity_is_sound(uint32_t granularity)
{
    return granularity > 0 && granularity <= EMU_NTT_GRANULARITY_MAX && (granularity & (granularity - 1)) == 0;
}

static int allocate_entries(struct emu_server *server, const struct emu_msg_job *job, const struct emu_fds *fds,
                            uint32_t *base_out)
{
    uint32_t granularity = job->granularity;
    struct emu_ntt_entry *entries;
    struct emu_ntt *ntt;
    int r;

    if (!server->ntt)
        server->ntt = calloc(1, sizeof(*server->ntt));
    ntt = server->ntt;
    if (!ntt)
        return -ENOMEM;
    if (granularity == 0)
        granularity = ntt->n_taken > 0 ? ntt->granularity : 1;
    if (!granularity_is_sound(granularity))
        return -EINVAL;
    if (ntt->n_taken > 0 && granularity != ntt->granularity)
        return -ENOSPC;         /* one granularity at a time */
    r = read_entries(server, fds, job, granularity, &entries);
    if (r < 0)
        return r;
    r = find_entries(ntt, job->group_size, base_out);
    if (r == 0) {
        ntt->granularity = granularity;
        ntt->n_taken += job->group_size;
        for (uint32_t i = 0; i < job->group_size; i++) {
            ntt->taken[*base_out + i] = true;
            ntt->entries[*base_out + i] = entries[i];
        }
    }
    free(entries);
    return r;
}

int emu_job_clear_ntt(struct emu_connection *c, const struct emu_msg_job *job)
{
    struct emu_server *server = c->server;
    uint32_t base = (uint32_t)job->ntt_base;

    if (job->group_size == UINT32_MAX && job->ntt_base == -1) {
        for (uint32_t i = 0; server->ntt && i < EMU_NTT_ENTRIES; i++) {
            if (!is_bound(server, i))
                release_entries(server->ntt, i, 1);
        }
        return 0;
    }
    if (!range_is_known(server->ntt, base, job->group_size))
        return -EINVAL;
    for (uint32_t i = base; i < base + job->group_size; i++) {
        if (is_bound(server, i))
            return -ENOSPC;
    }
    release_entries(server->ntt, base, job->group_size);
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
    uint32_t n_addresses = size * server->ntt->granularity;

    for (uint32_t i = 0; i < domain->n_nodes; i++)
        domain->addresses[i] = EMU_NID_NONE;
    for (uint32_t address = 0; address < domain->table->n_nids; address++) {
        uint32_t node = address < n_addresses ? emu_domain_node_of(domain, translate(server->ntt, base, address))
                                              : EMU_NID_NONE;

        index_of[address] = node;
        if (node != EMU_NID_NONE && domain->addresses[node] == EMU_NID_NONE)
            domain->addresses[node] = address;
    }
    domain->ntt_base = base;
    domain->ntt_size = size;
}

/* ---- declaring ---- */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Nodes of a job that no launcher has made: those that the range leads to, or else everybody's and the caller's. */
static int collect_nids(struct emu_connection *c, const struct emu_msg_job *job, uint32_t base, uint32_t size,
                        uint32_t **nids_out, uint32_t *n_out)
{
    struct emu_server *server = c->server;
    uint32_t n_max = size > 0 ? size * server->ntt->granularity : 1;
    struct emu_domain *domain;
    uint32_t n = 0;
    uint32_t *nids;

    LIST_FOREACH(domain, &server->domains, link)
        n_max += domain->n_nodes;
    nids = malloc(n_max * sizeof(*nids));
    if (!nids)
        return -ENOMEM;
    if (size > 0) {
        for (uint32_t address = 0; address < size * server->ntt->granularity; address++)
            nids[n++] = translate(server->ntt, base, address);
    } else {
        nids[n++] = emu_place_of(c, job->nid_wanted);
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

static int make_domain(struct emu_connection *c, const struct emu_msg_job *job, uint32_t ptag, uint32_t base,
                       uint32_t size, struct emu_domain **domain_out)
{
    struct emu_domain_spec spec = { .ptag = ptag, .cookie = job->cookie, .owner_uid = c->peer.uid };
    uint32_t *nids;
    int r;

    r = collect_nids(c, job, base, size, &nids, &spec.n_ranks);
    if (r < 0)
        return r;
    spec.rank_nids = nids;
    r = emu_domain_create(c->server, &spec, domain_out);
    free(nids);
    if (r == 0)
        (*domain_out)->is_declared = true;
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
        if (domain->cookie == cookie && domain->has_job_id && domain->job_id != job_id)
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
        job->iommu_limit > 255 || job->ntt_base < -1)
        return -EINVAL;
    return job->ntt_size < 0 || (job->ntt_size > 0 && job->ntt_base < 0) ? -EINVAL : 0;
}

static void set_limit(uint32_t *limit, int32_t wanted)
{
    if (wanted != EMU_JOB_LIMIT_NONE)
        *limit = (uint32_t)wanted;
}

static void set_limits(struct emu_domain *domain, const struct emu_msg_job *job)
{
    struct emu_limits *limits = &domain->limits;

    if ((job->flags & EMU_JOB_LIMITS) == 0)
        return;
    set_limit(&limits->mdd, job->mdd_limit);
    set_limit(&limits->cq, job->cq_limit);
    set_limit(&limits->fma, job->fma_limit);
    set_limit(&limits->bte, job->bte_limit);
    set_limit(&limits->ce, job->ce_limit);
    if (job->iommu_limit != EMU_JOB_LIMIT_NONE)
        limits->iommu_bytes = 1ull << (20 + (job->iommu_limit < IOMMU_LOG2_MAX ? job->iommu_limit : IOMMU_LOG2_MAX));
    if (limits->bte == 0)
        limits->bte = 1;        /* a block transfer has to begin some time */
    for (uint32_t i = 0; i < domain->n_nodes; i++)
        atomic_store_explicit(&emu_table_nodes(domain->table)[i].bte_limit,
                              limits->bte == UINT32_MAX ? 0 : limits->bte, memory_order_relaxed);
}

/* May the job be bound to these entries? */
static int check_binding(const struct emu_server *server, const struct emu_domain *domain, uint32_t base, uint32_t size)
{
    if (size == 0)
        return 0;
    if (!range_is_known(server->ntt, base, size))
        return -ENOENT;
    if ((uint64_t)size * server->ntt->granularity > server->n_nids)
        return -ENOSPC;
    if (!domain || (domain->ntt_size == size && domain->ntt_base == base))
        return 0;
    if (domain->ntt_size > 0)
        return EMU_OUTCOME_RESIZE;
    return domain->n_ports > 0 ? EMU_OUTCOME_IN_USE : 0;
}

static int declare(struct emu_connection *c, const struct emu_msg_job *job, uint32_t base, uint32_t size)
{
    uint32_t ptag = job->ptag == 255 ? emu_ptag_of_cookie(job->cookie) : job->ptag;
    struct emu_domain *domain;
    int r;

    if (ptag == 0 || ptag > 254)
        return -EINVAL;
    r = find_job(c->server, job->job_id, ptag, job->cookie, &domain);
    if (r == 0)
        r = check_binding(c->server, domain, base, size);
    if (r == 0 && !domain)
        r = make_domain(c, job, ptag, base, size, &domain);
    if (r != 0)
        return r;
    domain->has_job_id = true;
    domain->job_id = job->job_id;
    set_limits(domain, job);
    if (size > 0 && domain->ntt_size == 0)
        bind_addresses(c->server, domain, base, size);
    if (size > 0 && (job->flags & EMU_JOB_NTT_CLEANUP))
        domain->cleans_ntt = true;
    emu_log(EMU_LOG_INFO, "domain %u is job %llu, %u translation entries", domain->id,
            (unsigned long long)domain->job_id, domain->ntt_size);
    return 0;
}

int emu_job_configure(struct emu_connection *c, struct emu_msg_job *job, const struct emu_fds *fds)
{
    uint32_t base = 0;
    uint32_t size = 0;
    int r;

    if ((job->flags & (EMU_JOB_DECLARE | EMU_JOB_NTT)) == 0)
        return -EINVAL;
    r = check_limits(job);
    if (r < 0)
        return r;
    if (job->flags & EMU_JOB_NTT) {
        size = job->group_size;
        r = allocate_entries(c->server, job, fds, &base);
    } else if ((job->flags & EMU_JOB_LIMITS) && job->ntt_size > 0) {
        base = (uint32_t)job->ntt_base;
        size = (uint32_t)job->ntt_size;
    }
    if (r != 0)
        return r;
    if (job->flags & EMU_JOB_DECLARE)
        r = declare(c, job, base, size);
    if (r != 0 && (job->flags & EMU_JOB_NTT))
        release_entries(c->server->ntt, base, size);
    if (r == 0 && (job->flags & EMU_JOB_NTT))
        job->ntt_base = (int32_t)base;
    return r;
}

void emu_job_forget(struct emu_server *server, struct emu_domain *domain)
{
    uint32_t size = domain->ntt_size;

    domain->ntt_size = 0;
    for (uint32_t i = domain->ntt_base; domain->cleans_ntt && i < domain->ntt_base + size; i++) {
        if (!is_bound(server, i))
            release_entries(server->ntt, i, 1);
    }
}

/* ---- suspending ---- */

static struct emu_domain *find_declared(struct emu_server *server, const struct emu_msg_job *job)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->cookie == job->cookie && (job->ptag == 255 || domain->ptag == job->ptag) &&
            (!domain->has_job_id || domain->job_id == job->job_id))
            return domain;
    }
    return NULL;
}

int emu_job_suspend(struct emu_connection *c, const struct emu_msg *request)
{
    struct emu_domain *domain = find_declared(c->server, &request->job);
    int r;

    if (!domain)
        return -EINVAL;
    if (domain->is_ending)
        return -ENOSPC;
    if (domain->suspension != EMU_RUNS)
        return EMU_OUTCOME_IN_USE;
    domain->suspension = EMU_SUSPENDS;
    atomic_fetch_or(&domain->table->flags, EMU_TABLE_SUSPENDED);
    r = emu_quiesce_suspend(c, domain, request, emu_clock_ns() + request->job.timeout_ms * 1000000ull);
    if (r < 0)
        emu_job_suspended(domain, false);
    return r;
}

void emu_job_suspended(struct emu_domain *domain, bool is_quiet)
{
    domain->suspension = is_quiet ? EMU_SUSPENDED : EMU_RUNS;
    if (!is_quiet)
        atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_SUSPENDED);
    emu_log(EMU_LOG_INFO, "domain %u %s", domain->id, is_quiet ? "is suspended" : "could not be suspended");
}

int emu_job_resume(struct emu_connection *c, const struct emu_msg_job *job)
{
    struct emu_domain *domain = find_declared(c->server, job);

    if (!domain)
        return -EINVAL;
    if (domain->suspension != EMU_SUSPENDED)
        return EMU_OUTCOME_IN_USE;
    domain->suspension = EMU_RUNS;
    atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_SUSPENDED);
    emu_log(EMU_LOG_INFO, "domain %u runs again", domain->id);
    return 0;
}
