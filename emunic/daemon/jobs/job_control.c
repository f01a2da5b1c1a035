/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs: domains with a number, limits and translation entries, as launchers with privilege declare them.
 *
 * Declaring. A job is a domain with a number (job_id). A domain that a launcher has made gets its number here; one that
 * nobody has made is made here, on the nodes of the other domains and of the caller, or on those of its translation
 * entries. Such a job is its caller's, and ends with the last process that was in it, on whatever host. With several
 * hosts the head makes it on all; a node that no other domain has is on the caller's host.
 *
 * Limits say how much of each node's NIC a job may hold (world/accounts.h).
 *
 * The translation table is in translation.c, suspending in suspend.c. Source: spec/ugni.md 3.7, 3.9, 4.2.
 */
#include "emunic/daemon/jobs/job_control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/credentials.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/jobs/presence.h"
#include "emunic/daemon/jobs/suspend.h"
#include "emunic/daemon/jobs/translation.h"
#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/word_list.h"

#define IOMMU_LOG2_MAX 27 /* 2^27 MiB: all that a process can address */

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
    uint32_t n_max = size > 0 ? (uint32_t)emu_ntt_n_addresses(server, size) : 1;
    struct emu_domain *domain;
    uint32_t n = 0;
    uint32_t *nids;

    LIST_FOREACH(domain, &server->domains, link)
        n_max += domain->n_nodes;
    nids = malloc(n_max * sizeof(*nids));
    if (!nids)
        return -ENOMEM;
    if (size > 0) {
        for (uint32_t address = 0; address < emu_ntt_n_addresses(server, size); address++)
            nids[n++] = emu_ntt_translate(server, base, address);
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
    if (!emu_ntt_is_known(server, base, size))
        return -ENOENT;
    if (emu_ntt_n_addresses(server, size) > server->n_nids)
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
        emu_ntt_bind(server, domain, base, size);
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
        r = emu_ntt_allocate(server, request, &base);
    if (r != 0)
        return r;
    if (job->flags & EMU_JOB_DECLARE)
        r = declare(server, request, origin, base, size);
    if (r != 0 && (job->flags & EMU_JOB_NTT))
        emu_ntt_release(server, base, size);
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
    int r = size > 0 ? emu_ntt_check_range(server, base, size) : 0;

    if (r == 0)
        r = check_limits(job);
    if (r == 0 && (job->flags & EMU_JOB_NTT))
        r = emu_ntt_fill(server, request, base);
    if (r < 0)
        return r;
    if ((job->flags & EMU_JOB_DECLARE) == 0)
        return 0;
    if (!domain || domain->is_ending)
        return -ENODEV;
    domain->job.is_declared = request->declares;
    /* A process here was quicker than the head's word: its job's addresses stay what it was told. */
    if (size > 0 && domain->job.ntt_size == 0 && domain->port_slots.n_used > 0)
        return -EBUSY;
    if (size > 0 && (!emu_ntt_is_known(server, base, size) || emu_ntt_n_addresses(server, size) > server->n_nids))
        return -EINVAL;
    become_job(server, domain, job, base, size);
    return 0;
}

/* ---- state ---- */

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
    if (size > 0 && (!emu_ntt_is_known(server, base, size) || emu_ntt_n_addresses(server, size) > server->n_nids))
        return false;
    domain->job.has_id = has_job_id;
    domain->job.id = job_id;
    domain->job.is_declared = is_declared;
    *l = limits;
    publish_limits(domain);
    if (size > 0 && domain->job.ntt_size == 0)
        emu_ntt_bind(server, domain, base, size);
    domain->job.cleans_ntt = cleans;
    domain->paths.is_routed_on_demand = is_routed;
    emu_domain_set_path(domain);
    emu_job_follow_suspension(server, domain, is_suspended);
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

    if (!domain)
        return -EINVAL;
    if (domain->is_ending)
        return -ENOSPC;
    if (domain->job.suspension != EMU_RUNS)
        return EMU_OUTCOME_IN_USE;
    return emu_job_suspend(server, domain, order->number, request->job.timeout_ms);
}

static int resume(struct emu_server *server, struct emu_change *request, const struct emu_change_order *order)
{
    struct emu_domain *domain = domain_of(server, request, order->is_ordered);

    if (!domain)
        return -EINVAL;
    if (domain->job.suspension != EMU_SUSPENDED && !order->is_ordered)
        return EMU_OUTCOME_IN_USE;
    emu_job_run_again(server, domain);
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
    return emu_ntt_clear(server, &request->job, order->is_ordered);
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
    { EMU_MSG_NTT_CLEAR, false, emu_ntt_put_state, emu_ntt_take_state },
    { EMU_MSG_JOB_CONFIGURE, true, put_state, take_state },
};

const struct emu_part emu_jobs_part = {
    .name = "jobs",
    .destroy = emu_ntt_destroy,
    .changes = changes,
    .n_changes = EMU_ROWS(changes),
    .states = states,
    .n_states = EMU_ROWS(states),
    .domains = { .end = emu_ntt_end_domain },
};
