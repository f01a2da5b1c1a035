/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains, members and ports by their names.
 *
 *   domain   cookie (several may have one while they end), common number, owner, tag; once it has a node here, "here"
 *            by its owner, and as one of all
 *   member   process, of any domain
 *   port     domain, nid and instance id; several may share an address
 */
#include "emunic/daemon/world/lookups.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/index.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

struct emu_lookups {
    struct emu_index cookies;
    struct emu_index numbers;
    struct emu_index owners;
    struct emu_index tags;
    struct emu_index here;
    struct emu_index processes;
    struct emu_index addresses;
};

/* What a domain is found by. */
struct domain_names {
    struct emu_lookups *lookups; /* borrowed: of the server */
    struct emu_domain *domain;   /* borrowed: owns this */
    struct emu_index_entry by_cookie;
    struct emu_index_entry by_number;
    struct emu_index_entry by_owner;
    struct emu_index_entry by_tag;
    struct emu_index_entry here_of_owner;
    struct emu_index_entry here_of_all;
};

/* Keys of those that are here: of a user, or of all. */
enum { HERE_OF_OWNER = 1, HERE_OF_ALL };

static struct emu_lookups *lookups_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_LOOKUPS];
}

static struct domain_names *names_of(const struct emu_domain *domain)
{
    return domain->slots[EMU_DOMAIN_NAMES];
}

int emu_lookups_create(struct emu_server *server)
{
    server->slots[EMU_SERVER_LOOKUPS] = calloc(1, sizeof(struct emu_lookups));
    return server->slots[EMU_SERVER_LOOKUPS] ? 0 : -ENOMEM;
}

void emu_lookups_destroy(struct emu_server *server)
{
    struct emu_lookups *lookups = lookups_of(server);

    if (!lookups)
        return;
    emu_index_fini(&lookups->cookies);
    emu_index_fini(&lookups->numbers);
    emu_index_fini(&lookups->owners);
    emu_index_fini(&lookups->tags);
    emu_index_fini(&lookups->here);
    emu_index_fini(&lookups->processes);
    emu_index_fini(&lookups->addresses);
    free(lookups);
    server->slots[EMU_SERVER_LOOKUPS] = NULL;
}

/* ---- domains ---- */

static struct emu_key one_word(uint64_t word)
{
    return (struct emu_key){ { word } };
}

int emu_lookups_add_domain(struct emu_server *server, struct emu_domain *domain)
{
    struct emu_lookups *lookups = lookups_of(server);
    struct domain_names *names = calloc(1, sizeof(*names));

    if (!names)
        return -ENOMEM;
    names->lookups = lookups;
    names->domain = domain;
    domain->slots[EMU_DOMAIN_NAMES] = names;
    emu_index_add(&lookups->cookies, one_word(domain->cookie), &names->by_cookie);
    emu_index_add(&lookups->owners, one_word(domain->owner_uid), &names->by_owner);
    emu_index_add(&lookups->tags, one_word(domain->ptag), &names->by_tag);
    if (domain->common_number != 0)
        emu_index_add(&lookups->numbers, one_word(domain->common_number), &names->by_number);
    return 0;
}

void emu_lookups_add_here(struct emu_domain *domain)
{
    struct domain_names *names = names_of(domain);
    struct emu_index *here = &names->lookups->here;

    emu_index_add(here, (struct emu_key){ { HERE_OF_OWNER, domain->owner_uid } }, &names->here_of_owner);
    emu_index_add(here, one_word(HERE_OF_ALL), &names->here_of_all);
}

void emu_lookups_remove_domain(struct emu_domain *domain)
{
    struct domain_names *names = names_of(domain);

    if (!names)
        return;
    emu_index_remove(&names->lookups->cookies, &names->by_cookie);
    emu_index_remove(&names->lookups->owners, &names->by_owner);
    emu_index_remove(&names->lookups->numbers, &names->by_number);
    emu_index_remove(&names->lookups->tags, &names->by_tag);
    emu_index_remove(&names->lookups->here, &names->here_of_owner);
    emu_index_remove(&names->lookups->here, &names->here_of_all);
    free(names);
    domain->slots[EMU_DOMAIN_NAMES] = NULL;
}

void emu_lookups_renumber(struct emu_domain *domain, uint32_t common_number)
{
    struct domain_names *names = names_of(domain);

    emu_index_remove(&names->lookups->numbers, &names->by_number);
    domain->common_number = common_number;
    if (common_number != 0)
        emu_index_add(&names->lookups->numbers, one_word(common_number), &names->by_number);
}

/* The newest one that is asked for. */
struct emu_domain *emu_domain_find(struct emu_server *server, uint32_t ptag, uint32_t cookie)
{
    struct emu_index_entry *entry = emu_index_newest(&lookups_of(server)->cookies, one_word(cookie));

    for (; entry; entry = emu_index_older(entry)) {
        struct emu_domain *domain = EMU_INDEXED(entry, struct domain_names, by_cookie)->domain;

        if (!domain->is_ending && (ptag == 255 || domain->ptag == ptag))
            return domain;
    }
    return NULL;
}

struct emu_domain *emu_hosts_find_domain(struct emu_server *server, uint32_t number)
{
    struct emu_index_entry *entry = emu_index_newest(&lookups_of(server)->numbers, one_word(number));

    return entry ? EMU_INDEXED(entry, struct domain_names, by_number)->domain : NULL;
}

struct emu_domain *emu_domain_of_owner(struct emu_server *server, uid_t uid)
{
    struct emu_index_entry *entry = emu_index_newest(&lookups_of(server)->owners, one_word(uid));

    return entry ? EMU_INDEXED(entry, struct domain_names, by_owner)->domain : NULL;
}

struct emu_domain *emu_domain_here(struct emu_server *server, uid_t uid)
{
    struct emu_index *here = &lookups_of(server)->here;
    struct emu_index_entry *entry;

    if (uid == 0) {
        entry = emu_index_newest(here, one_word(HERE_OF_ALL));
        return entry ? EMU_INDEXED(entry, struct domain_names, here_of_all)->domain : NULL;
    }
    entry = emu_index_newest(here, (struct emu_key){ { HERE_OF_OWNER, uid } });
    return entry ? EMU_INDEXED(entry, struct domain_names, here_of_owner)->domain : NULL;
}

struct emu_domain *emu_domain_of_tag(struct emu_server *server, uint32_t ptag)
{
    struct emu_index_entry *entry = emu_index_oldest(&lookups_of(server)->tags, one_word(ptag));

    return entry ? EMU_INDEXED(entry, struct domain_names, by_tag)->domain : NULL;
}

struct emu_domain *emu_domain_of_tag_newer(const struct emu_domain *domain)
{
    struct emu_index_entry *entry = emu_index_newer(&names_of(domain)->by_tag);

    return entry ? EMU_INDEXED(entry, struct domain_names, by_tag)->domain : NULL;
}

/* ---- members ---- */

void emu_lookups_add_member(struct emu_member *member)
{
    emu_index_add(&names_of(member->domain)->lookups->processes, one_word((uint64_t)member->pid), &member->by_process);
}

void emu_lookups_remove_member(struct emu_member *member)
{
    emu_index_remove(&names_of(member->domain)->lookups->processes, &member->by_process);
}

static struct emu_member *newest_of_process(struct emu_lookups *lookups, pid_t pid)
{
    return EMU_INDEXED(emu_index_newest(&lookups->processes, one_word((uint64_t)pid)), struct emu_member, by_process);
}

struct emu_member *emu_member_of(struct emu_server *server, pid_t pid)
{
    return newest_of_process(lookups_of(server), pid);
}

struct emu_member *emu_member_of_older(const struct emu_member *member)
{
    return EMU_INDEXED(emu_index_older(&member->by_process), struct emu_member, by_process);
}

struct emu_member *emu_member_find(struct emu_domain *domain, pid_t pid)
{
    struct emu_member *member = newest_of_process(names_of(domain)->lookups, pid);

    while (member && member->domain != domain)
        member = emu_member_of_older(member);
    return member;
}

/* ---- ports ---- */

static struct emu_key address_of(const struct emu_domain *domain, uint32_t nid, uint32_t instance_id)
{
    return (struct emu_key){ { domain->id, nid, instance_id } };
}

void emu_lookups_add_port(struct emu_port_end *port)
{
    emu_index_add(&names_of(port->domain)->lookups->addresses, address_of(port->domain, port->nid, port->instance_id),
                  &port->by_address);
}

void emu_lookups_remove_port(struct emu_port_end *port)
{
    emu_index_remove(&names_of(port->domain)->lookups->addresses, &port->by_address);
}

struct emu_port_end *emu_port_end_at(const struct emu_domain *domain, uint32_t nid, uint32_t instance_id)
{
    struct emu_index *addresses = &names_of(domain)->lookups->addresses;

    return EMU_INDEXED(emu_index_newest(addresses, address_of(domain, nid, instance_id)), struct emu_port_end,
                       by_address);
}

struct emu_port_end *emu_port_end_at_older(const struct emu_port_end *port)
{
    return EMU_INDEXED(emu_index_older(&port->by_address), struct emu_port_end, by_address);
}
