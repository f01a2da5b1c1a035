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
#include <unistd.h>

#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/world/domain.h"

const struct emu_change_row *emu_change_row_of(const struct emu_server *server, uint16_t type)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];

        for (uint32_t k = 0; k < part->n_changes; k++) {
            if (part->changes[k].type == type)
                return &part->changes[k];
        }
    }
    return NULL;
}

void emu_change_free(struct emu_change *change)
{
    if (!change)
        return;
    free(change->rules);
    free(change->entries);
    free(change);
}

int emu_change_read(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds,
                    struct emu_change **change_out)
{
    struct emu_change *change = calloc(1, sizeof(*change));
    int r;

    if (!change)
        return -ENOMEM;
    change->row = emu_change_row_of(c->server, msg->type);
    change->uid = c->peer.uid;
    r = change->row->read(c, msg, fds, change);
    if (r < 0) {
        emu_change_free(change);
        return r;
    }
    *change_out = change;
    return 0;
}

void emu_change_put(const struct emu_change *change, struct emu_word_list *list)
{
    emu_word_list_add(list, change->domain);
    emu_word_list_add(list, change->uid);
    change->row->put(change, list);
}

struct emu_change *emu_change_parse(const struct emu_server *server, uint16_t type, struct emu_words *words)
{
    const struct emu_change_row *row = emu_change_row_of(server, type);
    struct emu_change *change = row ? calloc(1, sizeof(*change)) : NULL;

    if (!change)
        return NULL;
    change->row = row;
    change->domain = (uint32_t)emu_words_take(words, UINT32_MAX);
    change->uid = (uid_t)emu_words_take(words, UINT32_MAX);
    if (!row->take(server, words, change) || words->is_bad || words->left != 0) {
        emu_change_free(change);
        return NULL;
    }
    return change;
}

bool emu_change_is_own(struct emu_server *server, const struct emu_change *change)
{
    return change->domain_id != 0 || (change->row->is_own && change->row->is_own(server, change));
}

/* ---- for rows ---- */

int emu_change_read_table(const struct emu_fds *fds, uint32_t n, uint32_t n_max, size_t size, void **table_out)
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

bool emu_change_name_domain(struct emu_server *server, struct emu_change *change, uint32_t domain_id)
{
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->id != domain_id)
            continue;
        change->domain = domain->common_number;
        change->domain_id = domain->common_number == 0 ? domain_id : 0;
        return true;
    }
    return false;
}

bool emu_change_means(const struct emu_change *change, const struct emu_domain *domain)
{
    if (change->domain_id != 0)
        return domain->id == change->domain_id;
    return change->domain == 0 || domain->common_number == change->domain;
}
