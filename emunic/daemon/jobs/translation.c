/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The translation table: the node that each address of a bound job leads to.
 *
 * The table has EMU_NTT_ENTRIES entries for the whole machine, each `granularity` addresses long; the granularity is
 * set with the first entries and free again when all are. An entry sends its addresses to blck_addr, blck_addr + 1 ...;
 * the last rplc_size of them to rplc_addr ... instead, which is how a failed node is mapped around. A job that is bound
 * to entries [base, base + size) calls its nodes by address: address a belongs to entry base + a / granularity. Binding
 * rewrites the domain table's look-up, so commands, events, datagrams and GNI_CdmAttach() all speak of addresses, at no
 * cost per command. It can be done once, before the first attach.
 *
 * Source: spec/ugni.md 3.7, 3.9, 4.2. The meaning of the entries' fields is not stated there: it is our reading.
 */
#include "emunic/daemon/jobs/translation.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/server.h"
#include "emunic/daemon/world/word_list.h"

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

/* ---- entries ---- */

void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out)
{
    *used_out = ntt_of(server) ? ntt_of(server)->n_taken : 0;
    *granularity_out = ntt_of(server) && ntt_of(server)->n_taken > 0 ? ntt_of(server)->granularity : 1;
}

bool emu_ntt_is_known(const struct emu_server *server, uint32_t base, uint32_t n)
{
    const struct emu_ntt *ntt = ntt_of(server);

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

void emu_ntt_release(struct emu_server *server, uint32_t base, uint32_t n)
{
    struct emu_ntt *ntt = ntt_of(server);

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

int emu_ntt_check_range(struct emu_server *server, uint32_t base, uint32_t n)
{
    if (!table_of(server))
        return -ENOMEM;
    return base < EMU_NTT_ENTRIES && n <= EMU_NTT_ENTRIES - base ? 0 : -EINVAL;
}

int emu_ntt_fill(struct emu_server *server, const struct emu_change *request, uint32_t base)
{
    if (!entries_are_sound(server, request, request->job.granularity))
        return -EINVAL;
    fill_entries(ntt_of(server), base, request->entries, request->job.group_size, request->job.granularity);
    return 0;
}

int emu_ntt_allocate(struct emu_server *server, struct emu_change *request, uint32_t *base_out)
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

int emu_ntt_clear(struct emu_server *server, const struct emu_msg_job *job, bool is_ordered)
{
    uint32_t base = (uint32_t)job->ntt_base;

    if (job->group_size == UINT32_MAX && job->ntt_base == -1) {
        for (uint32_t i = 0; ntt_of(server) && i < EMU_NTT_ENTRIES; i++) {
            if (!is_bound(server, i))
                emu_ntt_release(server, i, 1);
        }
        return 0;
    }
    if (!emu_ntt_is_known(server, base, job->group_size))
        return -EINVAL;
    for (uint32_t i = base; !is_ordered && i < base + job->group_size; i++) {
        if (is_bound(server, i))
            return -ENOSPC;
    }
    emu_ntt_release(server, base, job->group_size);
    return 0;
}

uint64_t emu_ntt_n_addresses(const struct emu_server *server, uint32_t n)
{
    return n > 0 ? (uint64_t)n * ntt_of(server)->granularity : 0;
}

uint32_t emu_ntt_translate(const struct emu_server *server, uint32_t base, uint32_t address)
{
    const struct emu_ntt *ntt = ntt_of(server);
    const struct emu_ntt_entry *entry = &ntt->entries[base + address / ntt->granularity];
    uint32_t offset = address % ntt->granularity;
    uint32_t kept = ntt->granularity - entry->rplc_size;

    return offset < kept ? entry->blck_addr + offset : entry->rplc_addr + (offset - kept);
}

void emu_ntt_bind(struct emu_server *server, struct emu_domain *domain, uint32_t base, uint32_t size)
{
    uint32_t *index_of = (uint32_t *)((char *)domain->table + domain->table->nid_off);
    uint32_t n_addresses = size * ntt_of(server)->granularity;

    for (uint32_t i = 0; i < domain->n_nodes; i++)
        domain->addresses[i] = EMU_NID_NONE;
    for (uint32_t address = 0; address < domain->table->n_nids; address++) {
        uint32_t node =
            address < n_addresses ? emu_domain_node_of(domain, emu_ntt_translate(server, base, address)) : EMU_NID_NONE;

        index_of[address] = node;
        if (node != EMU_NID_NONE && domain->addresses[node] == EMU_NID_NONE)
            domain->addresses[node] = address;
    }
    domain->job.ntt_base = base;
    domain->job.ntt_size = size;
}

/* ---- domains ---- */

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

void emu_ntt_end_domain(struct emu_server *server, struct emu_domain *domain)
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
            emu_ntt_release(server, i, 1);
    }
}

/* ---- state ---- */

void emu_ntt_put_state(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *list)
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

bool emu_ntt_take_state(struct emu_server *server, struct emu_domain *domain, struct emu_words *words)
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

void emu_ntt_destroy(struct emu_server *server)
{
    free(ntt_of(server));
    server->slots[EMU_SERVER_NTT] = NULL;
}
