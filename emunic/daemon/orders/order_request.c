/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that change the machine.
 *
 * Each is a value that says all there is to know, so that it can be done here, there, or everywhere. What its sender's
 * emunic knew alone (who asks, on which node) is in it.
 */
#include "emunic/daemon/orders/order_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/abi/table.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/jobs/job.h"
#include "emunic/daemon/network/network.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/engine/fault.h"

bool emu_admin_is_change(uint16_t type)
{
    switch (type) {
    case EMU_MSG_FAULT_SET:
    case EMU_MSG_FAULT_CLEAR:
    case EMU_MSG_NETWORK:
    case EMU_MSG_DATAPATH:
    case EMU_MSG_JOB_CONFIGURE:
    case EMU_MSG_JOB_SUSPEND:
    case EMU_MSG_JOB_RESUME:
    case EMU_MSG_NTT_CLEAR:
        return true;
    default:
        return false;
    }
}

static bool is_about_job(uint16_t type)
{
    return type >= EMU_MSG_JOB_CONFIGURE && type <= EMU_MSG_NTT_CLEAR;
}

static bool has_table(const struct emu_admin_request *request)
{
    return request->type == EMU_MSG_JOB_CONFIGURE && (request->job.flags & EMU_JOB_NTT) != 0;
}

void emu_admin_request_free(struct emu_admin_request *request)
{
    if (!request)
        return;
    free(request->rules);
    free(request->entries);
    free(request);
}

/* ---- from the admin socket ---- */

/* A table that the caller has sent along. */
static int read_table(const struct emu_fds *fds, uint32_t n, uint32_t n_max, size_t size, void **table_out)
{
    void *table;

    if (fds->n_fds != 1 || n == 0)
        return -EINVAL;
    if (n > n_max)
        return -ENOSPC;
    table = malloc(n * size);
    if (!table)
        return -ENOMEM;
    if (pread(fds->fd[0], table, n * size, 0) != (ssize_t)(n * size)) {
        free(table);
        return -EINVAL;
    }
    *table_out = table;
    return 0;
}

static struct emu_domain *domain_by_id(struct emu_server *server, uint32_t id)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->id == id)
            return domain;
    }
    return NULL;
}

/* The number by which all hosts know the domain that is meant. */
static int name_domain(struct emu_server *server, struct emu_admin_request *request, uint32_t id)
{
    const struct emu_domain *domain = domain_by_id(server, id);

    if (!domain)
        return request->type == EMU_MSG_DATAPATH ? -ENOENT : -ENODEV;
    request->domain = domain->common_number;
    request->domain_id = domain->common_number == 0 ? id : 0;
    return 0;
}

static int read_fault(struct emu_server *server, const struct emu_msg *msg, const struct emu_fds *fds,
                      struct emu_admin_request *request)
{
    void *rules = NULL;
    int r = 0;

    request->fault = msg->fault;
    if ((msg->fault.flags & ~EMU_FAULT_APPEND) != 0 || fds->n_fds != (msg->type == EMU_MSG_FAULT_SET))
        return -EINVAL;
    if (msg->type == EMU_MSG_FAULT_SET)
        r = read_table(fds, msg->fault.n_rules, EMU_FAULT_RULES_MAX, sizeof(*request->rules), &rules);
    request->rules = rules;
    if (r == 0 && msg->fault.domain_id != EMU_FAULT_ALL_DOMAINS)
        r = name_domain(server, request, msg->fault.domain_id);
    return r;
}

static int read_job(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds,
                    struct emu_admin_request *request)
{
    void *entries = NULL;
    int r = 0;

    request->job = msg->job;
    if (msg->type == EMU_MSG_JOB_CONFIGURE)
        request->job.nid_wanted = emu_place_of(c, msg->job.nid_wanted);
    if (has_table(request))
        r = read_table(fds, msg->job.group_size, EMU_NTT_ENTRIES, sizeof(*request->entries), &entries);
    request->entries = entries;
    return r;
}

int emu_admin_request_read(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds,
                           struct emu_admin_request **request_out)
{
    struct emu_admin_request *request = calloc(1, sizeof(*request));
    int r = 0;

    if (!request)
        return -ENOMEM;
    request->type = msg->type;
    request->uid = c->peer.uid;
    switch (msg->type) {
    case EMU_MSG_FAULT_SET:
    case EMU_MSG_FAULT_CLEAR:
        r = read_fault(c->server, msg, fds, request);
        break;
    case EMU_MSG_NETWORK:
        request->network = msg->network;
        break;
    case EMU_MSG_DATAPATH:
        request->flags = msg->domain.flags & EMU_TABLE_ROUTED;
        r = name_domain(c->server, request, msg->domain.domain_id);
        break;
    default:
        r = read_job(c, msg, fds, request);
    }
    if (r < 0) {
        emu_admin_request_free(request);
        return r;
    }
    *request_out = request;
    return 0;
}

/* ---- between hosts ---- */

static void put_fault(const struct emu_admin_request *request, struct emu_word_list *list)
{
    emu_word_list_add(list, request->fault.flags);
    emu_word_list_add(list, request->fault.id);
    emu_word_list_add(list, request->rules ? request->fault.n_rules : 0);
    for (uint32_t i = 0; request->rules && i < request->fault.n_rules; i++) {
        uint64_t *at = emu_word_list_extend(list, EMU_HOST_RULE_WORDS);

        if (at)
            emu_host_rule_put(at, &request->rules[i], 0);
    }
}

static bool take_fault(struct emu_words *words, struct emu_admin_request *request)
{
    uint64_t age_ns;
    uint32_t n;

    request->fault.flags = (uint32_t)emu_words_take(words, EMU_FAULT_APPEND);
    request->fault.id = (uint32_t)emu_words_take(words, UINT32_MAX);
    request->fault.n_rules = n = (uint32_t)emu_words_take(words, EMU_FAULT_RULES_MAX);
    if (words->is_bad || (n != 0) != (request->type == EMU_MSG_FAULT_SET))
        return false;
    if (n > 0)
        request->rules = calloc(n, sizeof(*request->rules));
    for (uint32_t i = 0; request->rules && i < n; i++)
        emu_host_rule_take(words, &request->rules[i], &age_ns);
    return n == 0 || request->rules;
}

static void put_job(const struct emu_admin_request *request, struct emu_word_list *list)
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

static bool take_job(const struct emu_server *server, struct emu_words *words, struct emu_admin_request *request)
{
    emu_host_job_take(words, &request->job);
    request->declares = emu_words_take(words, 1) != 0;
    if (words->is_bad || (request->type == EMU_MSG_JOB_CONFIGURE && request->job.nid_wanted >= server->n_nids))
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

void emu_admin_request_put(const struct emu_admin_request *request, struct emu_word_list *list)
{
    uint64_t *at;

    emu_word_list_add(list, request->domain);
    emu_word_list_add(list, request->uid);
    switch (request->type) {
    case EMU_MSG_FAULT_SET:
    case EMU_MSG_FAULT_CLEAR:
        put_fault(request, list);
        break;
    case EMU_MSG_NETWORK:
        at = emu_word_list_extend(list, EMU_HOST_NETWORK_WORDS);
        if (at)
            emu_host_network_put(at, &request->network);
        break;
    case EMU_MSG_DATAPATH:
        emu_word_list_add(list, request->flags);
        break;
    default:
        put_job(request, list);
    }
}

struct emu_admin_request *emu_admin_request_parse(const struct emu_server *server, uint16_t type,
                                                  struct emu_words *words)
{
    struct emu_admin_request *request = emu_admin_is_change(type) ? calloc(1, sizeof(*request)) : NULL;
    bool is_good = true;

    if (!request)
        return NULL;
    request->type = type;
    request->domain = (uint32_t)emu_words_take(words, UINT32_MAX);
    request->uid = (uid_t)emu_words_take(words, UINT32_MAX);
    switch (type) {
    case EMU_MSG_FAULT_SET:
    case EMU_MSG_FAULT_CLEAR:
        is_good = take_fault(words, request);
        break;
    case EMU_MSG_NETWORK:
        emu_host_network_take(words, &request->network);
        break;
    case EMU_MSG_DATAPATH:
        request->flags = (uint32_t)emu_words_take(words, EMU_TABLE_ROUTED);
        is_good = request->domain != 0;
        break;
    default:
        is_good = take_job(server, words, request);
    }
    if (!is_good || words->is_bad || words->left != 0) {
        emu_admin_request_free(request);
        return NULL;
    }
    return request;
}

/* ---- doing ---- */

static bool is_meant(const struct emu_admin_request *request, const struct emu_domain *domain)
{
    if (request->domain_id != 0)
        return domain->id == request->domain_id;
    return request->domain == 0 || domain->common_number == request->domain;
}

bool emu_admin_is_own(struct emu_server *server, const struct emu_admin_request *request)
{
    const struct emu_domain *domain;

    if (request->domain_id != 0)
        return true;
    if (!is_about_job(request->type) || request->type == EMU_MSG_NTT_CLEAR)
        return false;
    domain = emu_job_find(server, &request->job);
    return domain && domain->common_number == 0;
}

static int check_fault(struct emu_server *server, const struct emu_admin_request *request)
{
    const struct emu_domain *domain;
    uint32_t n_domains = 0;
    int r = -ENODEV;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->is_ending || !is_meant(request, domain))
            continue;
        n_domains++;
        if (request->type == EMU_MSG_FAULT_SET)
            r = emu_fault_check_rules(domain, request->rules, request->fault.n_rules,
                                      (request->fault.flags & EMU_FAULT_APPEND) != 0);
        else if (r != 0) /* one that has it will do */
            r = request->fault.id == 0 || emu_fault_has_rule(domain, request->fault.id) ? 0 : -ENOENT;
        if (request->type == EMU_MSG_FAULT_SET && r < 0)
            return r;
    }
    return n_domains > 0 ? r : -ENODEV;
}

/* Nothing happens unless it can in each domain. */
static int do_fault(struct emu_server *server, struct emu_admin_request *request)
{
    struct emu_domain *domain;
    int r = check_fault(server, request);

    if (r < 0)
        return r;
    LIST_FOREACH(domain, &server->domains, link) {
        int failed = 0;

        if (domain->is_ending || !is_meant(request, domain))
            continue;
        if (request->type == EMU_MSG_FAULT_SET)
            failed = emu_fault_set_rules(server, domain, request->rules, request->fault.n_rules,
                                         (request->fault.flags & EMU_FAULT_APPEND) != 0);
        else if (request->fault.id == 0 || emu_fault_has_rule(domain, request->fault.id))
            failed = emu_fault_clear_rules(server, domain, request->fault.id);
        r = r < 0 ? r : failed;
    }
    return r;
}

static int do_datapath(struct emu_server *server, const struct emu_admin_request *request)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (!is_meant(request, domain))
            continue;
        if (domain->is_routed_for_good)
            return -EPERM;
        domain->is_routed_on_demand = request->flags != 0;
        emu_domain_set_path(domain);
        return 0;
    }
    return -ENOENT;
}

int emu_admin_request_do(struct emu_server *server, struct emu_admin_request *request, bool is_ordered, uint32_t origin,
                         uint64_t order)
{
    switch (request->type) {
    case EMU_MSG_FAULT_SET:
    case EMU_MSG_FAULT_CLEAR:
        return do_fault(server, request);
    case EMU_MSG_NETWORK:
        return emu_network_change(server, &request->network);
    case EMU_MSG_DATAPATH:
        return do_datapath(server, request);
    case EMU_MSG_JOB_CONFIGURE:
        return is_ordered ? emu_job_follow(server, request) : emu_job_configure(server, request, origin);
    case EMU_MSG_JOB_SUSPEND:
        return emu_job_suspend(server, request, is_ordered, order);
    case EMU_MSG_JOB_RESUME:
        return emu_job_resume(server, request, is_ordered);
    default:
        return emu_job_clear_ntt(server, &request->job, is_ordered);
    }
}

uint32_t emu_admin_request_value(struct emu_server *server, const struct emu_admin_request *request)
{
    const struct emu_domain *domain;
    uint32_t n = 0;

    if (request->type == EMU_MSG_JOB_CONFIGURE)
        return (uint32_t)request->job.ntt_base;
    if (request->type != EMU_MSG_FAULT_SET && request->type != EMU_MSG_FAULT_CLEAR)
        return 0;
    LIST_FOREACH(domain, &server->domains, link) {
        if (!domain->is_ending && is_meant(request, domain))
            n = emu_fault_count_rules(domain);
    }
    return n;
}

void emu_admin_request_reply(uint32_t value, struct emu_msg *reply)
{
    if (reply->type == EMU_MSG_JOB_CONFIGURE && (reply->job.flags & EMU_JOB_NTT))
        reply->job.ntt_base = (int32_t)value;
    else if (reply->type == EMU_MSG_FAULT_SET || reply->type == EMU_MSG_FAULT_CLEAR)
        reply->fault.n_rules = value;
}
