/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has processes of a domain. Two bits per host, which a host tells the head when they change; a host that is lost
 * has none. A word that is under way when the head decides costs nothing: a process that came too late finds its job
 * ended, as it would on one host.
 */
#include "emunic/daemon/jobs/presence.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"

#define HAS_MEMBERS    1u
#define HAS_PORTS      2u
#define PRESENCE_WORDS 2u

static bool is_common(const struct emu_server *server, const struct emu_domain *domain)
{
    return emu_hosts_are_several(server) && domain->common_number != 0;
}

static struct emu_domain_hosts *hosts_of(const struct emu_domain *domain)
{
    return domain->slots[EMU_DOMAIN_HOSTS];
}

/* Of all other hosts together. */
static uint8_t presence_elsewhere(const struct emu_server *server, const struct emu_domain *domain)
{
    uint8_t sum = 0;

    for (uint32_t i = 0; hosts_of(domain)->presence && i < emu_hosts_count(server); i++)
        sum |= hosts_of(domain)->presence[i];
    return sum;
}

bool emu_presence_has_ports(const struct emu_server *server, const struct emu_domain *domain)
{
    return (presence_elsewhere(server, domain) & HAS_PORTS) != 0;
}

static uint8_t presence_here(const struct emu_domain *domain)
{
    return (uint8_t)((LIST_EMPTY(&domain->members) ? 0 : HAS_MEMBERS) |
                     (domain->port_slots.n_used > 0 ? HAS_PORTS : 0));
}

void emu_presence_tell(struct emu_server *server, struct emu_domain *domain)
{
    uint64_t words[PRESENCE_WORDS] = { domain->common_number, presence_here(domain) };

    if (!is_common(server, domain) || emu_hosts_own(server) == EMU_HOST_HEAD)
        return;
    hosts_of(domain)->told_presence = presence_here(domain);
    emu_list_send(server, &(struct emu_list_head){ .host = EMU_HOST_HEAD, .op = EMU_HOST_ADMIN_PRESENCE }, words,
                  PRESENCE_WORDS);
}

static void end_if_over(struct emu_server *server, struct emu_domain *domain)
{
    if (domain->job.is_declared && !domain->is_ending && LIST_EMPTY(&domain->members) &&
        (presence_elsewhere(server, domain) & HAS_MEMBERS) == 0)
        emu_domain_end(server, domain, 0);
}

void emu_presence_change(struct emu_server *server, struct emu_domain *domain)
{
    if (!is_common(server, domain) || emu_hosts_own(server) == EMU_HOST_HEAD)
        end_if_over(server, domain);
    else if (presence_here(domain) != hosts_of(domain)->told_presence)
        emu_presence_tell(server, domain);
}

bool emu_presence_hear(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_words *words = &list->words;
    uint32_t number = (uint32_t)emu_words_take(words, UINT32_MAX);
    uint8_t presence = (uint8_t)emu_words_take(words, HAS_MEMBERS | HAS_PORTS);
    struct emu_domain *domain;

    if (words->is_bad || words->left != 0 || emu_hosts_own(server) != EMU_HOST_HEAD)
        return false;
    domain = emu_hosts_find_domain(server, number);
    if (!domain)
        return true;
    if (!hosts_of(domain)->presence)
        hosts_of(domain)->presence = calloc(emu_hosts_count(server), sizeof(*hosts_of(domain)->presence));
    if (!hosts_of(domain)->presence)
        return true;
    if (hosts_of(domain)->presence[host] != presence) {
        bool had_members = (hosts_of(domain)->presence[host] & HAS_MEMBERS) != 0;

        hosts_of(domain)->presence[host] = presence;
        if (had_members)
            end_if_over(server, domain);
    }
    return true;
}

void emu_presence_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        hosts_of(domain)->told_presence = 0;
        if (!hosts_of(domain)->presence || hosts_of(domain)->presence[host] == 0)
            continue;
        hosts_of(domain)->presence[host] = 0;
        end_if_over(server, domain);
    }
}
