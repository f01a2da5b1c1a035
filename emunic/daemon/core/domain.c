/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communication domains and their processes.
 *
 * A domain's nodes are the distinct nids of its ranks, in ascending order. The domain table is made whole at once
 * and sealed: after emunic has its mapping, F_SEAL_FUTURE_WRITE lets nobody map or write it for writing, whatever
 * descriptor he opens on it.
 *
 * A member is a process that is a rank or has attached. It is held by a pidfd; when that becomes readable the
 * process is gone and everything of it goes: ports, memory domains, datagrams, transfers. The limit counts members
 * that have a port.
 *
 * States of a domain: live -> ending (table says closed, members told to end) -> destroyed (no members, or their
 * time is up and they were killed). A domain of `emunic serve` lives until emunic ends; a job that was only declared
 * (job.c) until its last process ends.
 */
#include "emunic/daemon/core/domain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/bind/bind.h"
#include "emunic/daemon/core/channel.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/world/file.h"
#include "emunic/daemon/commands/bulk.h"
#include "emunic/daemon/ce/ce_hosts.h"
#include "emunic/daemon/datagrams/datagram_hosts.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/jobs/presence.h"
#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/jobs/job.h"
#include "emunic/daemon/network/network.h"
#include "emunic/daemon/core/port.h"
#include "emunic/daemon/portals/portals.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/daemon/core/server.h"
#include "emunic/engine/rest.h"

#define KILL_AFTER_NS           2000000000ull
#define WINDOW_BYTES_PER_DOMAIN (4ull << 40) /* of 128 TiB that emunic can address */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* ---- table ---- */

static int compare_nids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Distinct nids, ascending. Caller frees. */
static int collect_nodes(const struct emu_server *server, const struct emu_domain_spec *spec, uint32_t **nids_out,
                         uint32_t *n_out)
{
    uint32_t *nids = malloc(spec->n_ranks * sizeof(*nids));
    uint32_t n = 0;

    if (!nids)
        return -ENOMEM;
    for (uint32_t i = 0; i < spec->n_ranks; i++) {
        if (spec->rank_nids[i] >= server->n_nids) {
            free(nids);
            return -ERANGE;
        }
        nids[i] = spec->rank_nids[i];
    }
    qsort(nids, spec->n_ranks, sizeof(*nids), compare_nids);
    for (uint32_t i = 0; i < spec->n_ranks; i++) {
        if (n == 0 || nids[n - 1] != nids[i])
            nids[n++] = nids[i];
    }
    *nids_out = nids;
    *n_out = n;
    return 0;
}

static uint64_t align_line(uint64_t off)
{
    return (off + EMU_CACHE_LINE - 1) & ~(uint64_t)(EMU_CACHE_LINE - 1);
}

/* Ranks of one node are on one host. */
static int place_nodes(const struct emu_server *server, const struct emu_domain_spec *spec, struct emu_domain *domain)
{
    struct emu_table_node *nodes = emu_table_nodes(domain->table);

    for (uint32_t i = 0; spec->rank_hosts && i < spec->n_ranks; i++) {
        uint32_t node = emu_domain_node_of(domain, spec->rank_nids[i]);
        uint32_t host = spec->rank_hosts[i] == domain->own_host ? EMU_NODE_HERE : spec->rank_hosts[i] + 1;

        if (spec->rank_hosts[i] >= emu_hosts_count(server))
            return -EINVAL;
        nodes[node].host = host;
    }
    for (uint32_t i = 0; spec->rank_hosts && i < spec->n_ranks; i++) {
        if (emu_hosts_of_node(domain, emu_domain_node_of(domain, spec->rank_nids[i])) != spec->rank_hosts[i])
            return -EINVAL;
    }
    return 0;
}

static void fill_table(const struct emu_server *server, const struct emu_domain_spec *spec, struct emu_domain *domain,
                       const uint32_t *nids)
{
    struct emu_table *t = domain->table;
    uint32_t *index_of = (uint32_t *)((char *)t + t->nid_off);

    t->magic = EMU_TABLE_MAGIC;
    t->abi_version = EMU_ABI_VERSION;
    t->domain_id = domain->id;
    t->table_bytes = domain->table_bytes;
    t->ptag = domain->ptag;
    t->cookie = domain->cookie;
    t->device = emu_machine_nic(server->machine)->device;
    t->format = emu_machine_nic(server->machine)->format;
    atomic_store(&t->flags, spec->flags | (server->starts_routed ? EMU_TABLE_ROUTED : 0) |
                                (emu_quiesce_has_barrier() ? 0 : EMU_TABLE_FENCED));
    for (uint32_t nid = 0; nid < t->n_nids; nid++)
        index_of[nid] = EMU_NID_NONE;
    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        index_of[nids[i]] = i;
        emu_table_nodes(t)[i].nid = nids[i];
        domain->addresses[i] = nids[i];
    }
}

static int make_table(const struct emu_server *server, const struct emu_domain_spec *spec, struct emu_domain *domain,
                      const uint32_t *nids)
{
    /* Room for every address that a translation may give. */
    struct emu_table layout = { .n_nids = server->n_nids, .n_nodes = domain->n_nodes, .n_ports = EMU_PORTS_MAX };
    int r;

    layout.nid_off = align_line(sizeof(layout));
    layout.node_off = align_line(layout.nid_off + (uint64_t)layout.n_nids * sizeof(uint32_t));
    layout.port_off = align_line(layout.node_off + (uint64_t)layout.n_nodes * sizeof(struct emu_table_node));
    layout.file_off = align_line(layout.port_off + (uint64_t)layout.n_ports * sizeof(struct emu_table_port));
    layout.md_off = align_line(layout.file_off + EMU_FILES_MAX * sizeof(uint32_t));
    layout.vmdh_off = layout.md_off + (uint64_t)layout.n_nodes * EMU_MD_COUNT * sizeof(struct emu_table_md);
    domain->table_bytes = layout.vmdh_off + (uint64_t)layout.n_nodes * EMU_MDH_COUNT * sizeof(uint16_t);

    domain->table_fd = memfd_create("emunic-domain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (domain->table_fd < 0)
        return -errno;
    if (ftruncate(domain->table_fd, (off_t)domain->table_bytes) < 0)
        return -errno;
    domain->table =
        mmap(NULL, domain->table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, domain->table_fd, 0);
    if (domain->table == MAP_FAILED) {
        r = -errno;
        domain->table = NULL;
        return r;
    }
    domain->table->n_nids = layout.n_nids;
    domain->table->n_nodes = layout.n_nodes;
    domain->table->n_ports = layout.n_ports;
    domain->table->nid_off = layout.nid_off;
    domain->table->node_off = layout.node_off;
    domain->table->port_off = layout.port_off;
    domain->table->file_off = layout.file_off;
    domain->table->md_off = layout.md_off;
    domain->table->vmdh_off = layout.vmdh_off;
    fill_table(server, spec, domain, nids);
    r = place_nodes(server, spec, domain);
    if (r < 0)
        return r;
    if (fcntl(domain->table_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    return 0;
}

/* ---- nodes ---- */

uint32_t emu_domain_node_of(const struct emu_domain *domain, uint32_t nid)
{
    const struct emu_table_node *nodes = emu_table_nodes(domain->table);
    uint32_t low = 0;
    uint32_t high = domain->n_nodes;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (nodes[middle].nid < nid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < domain->n_nodes && nodes[low].nid == nid ? low : EMU_NID_NONE;
}

uint32_t emu_domain_first_here(const struct emu_domain *domain)
{
    const struct emu_table_node *nodes = emu_table_nodes(domain->table);

    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        if (nodes[i].host == EMU_NODE_HERE)
            return i;
    }
    return EMU_NID_NONE;
}

uint32_t emu_domain_nid_at(const struct emu_domain *domain, uint32_t address)
{
    uint32_t node = emu_table_node_index(domain->table, address);

    return node < domain->n_nodes ? emu_table_nodes(domain->table)[node].nid : EMU_NID_NONE;
}

bool emu_domain_may_use(const struct emu_domain *domain, const struct ucred *peer)
{
    return peer->uid == domain->owner_uid || peer->uid == 0;
}

/* ---- domains ---- */

void emu_domain_set_path(struct emu_domain *domain)
{
    if (domain->is_routed_for_good || domain->is_routed_on_demand || domain->faults || domain->is_routed_around)
        atomic_fetch_or(&domain->table->flags, EMU_TABLE_ROUTED);
    else
        atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_ROUTED);
    emu_domain_disturb(domain);
}

struct emu_domain *emu_domain_find(struct emu_server *server, uint32_t ptag, uint32_t cookie)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (!domain->is_ending && domain->cookie == cookie && (ptag == 255 || domain->ptag == ptag))
            return domain;
    }
    return NULL;
}

int emu_domain_create(struct emu_server *server, const struct emu_domain_spec *spec, struct emu_domain **domain_out)
{
    struct emu_domain *domain;
    uint32_t *nids = NULL;
    int r;

    if (spec->n_ranks == 0 || spec->ptag > 255 || emu_domain_find(server, 255, spec->cookie))
        return spec->n_ranks == 0 || spec->ptag > 255 ? -EINVAL : -EEXIST;
    domain = calloc(1, sizeof(*domain));
    if (!domain)
        return -ENOMEM;
    *domain = (struct emu_domain){ .is_routed_for_good = server->starts_routed || (spec->flags & EMU_TABLE_ROUTED) != 0,
                                   .id = server->next_domain_id++,
                                   .common_number = spec->common_number,
                                   .own_host = emu_hosts_own(server),
                                   .ptag = spec->ptag,
                                   .cookie = spec->cookie,
                                   .owner_uid = spec->owner_uid,
                                   .member_limit = spec->member_limit,
                                   .n_ranks = spec->n_ranks,
                                   .table_fd = -1,
                                   .windows.left_bytes = WINDOW_BYTES_PER_DOMAIN };
    LIST_INIT(&domain->members);
    LIST_INSERT_HEAD(&server->domains, domain, link);
    r = collect_nodes(server, spec, &nids, &domain->n_nodes);
    if (r < 0)
        goto err_domain;
    domain->rank_nids = malloc(spec->n_ranks * sizeof(uint32_t));
    domain->ports = calloc(EMU_PORTS_MAX, sizeof(struct emu_port_end *));
    domain->resting = calloc(EMU_PORTS_MAX, sizeof(*domain->resting));
    domain->files = calloc(EMU_FILES_MAX, sizeof(*domain->files));
    domain->n_handles = calloc(domain->n_nodes, sizeof(*domain->n_handles));
    domain->past_flows = calloc(domain->n_nodes, sizeof(struct emu_flow_counts *));
    r = -ENOMEM;
    domain->accounts = calloc(domain->n_nodes, sizeof(*domain->accounts));
    domain->segments = calloc(domain->n_nodes, sizeof(*domain->segments));
    domain->addresses = calloc(domain->n_nodes, sizeof(*domain->addresses));
    emu_limits_init(&domain->limits);
    if (!domain->rank_nids || !domain->ports || !domain->resting || !domain->files || !domain->n_handles ||
        !domain->past_flows || !domain->accounts || !domain->segments || !domain->addresses)
        goto err_domain;
    for (uint32_t i = 0; i < spec->n_ranks; i++)
        domain->rank_nids[i] = spec->rank_nids[i];
    r = make_table(server, spec, domain, nids);
    if (r < 0)
        goto err_domain;
    emu_error_watch_domain(server, domain);
    if (server->n_first_faults > 0) {
        r = emu_fault_set_rules(server, domain, server->first_faults, server->n_first_faults, false);
        if (r < 0)
            goto err_domain;
    }
    emu_injection_mark(server, domain);
    domain->is_routed_around = emu_network_is_disturbed(server);
    emu_domain_set_path(domain);
    free(nids);
    emu_log(EMU_LOG_INFO, "domain %u ptag %u uid %u: %u ranks on %u nodes", domain->id, domain->ptag,
            (unsigned)domain->owner_uid, domain->n_ranks, domain->n_nodes);
    *domain_out = domain;
    return 0;

err_domain:
    free(nids);
    emu_domain_destroy(server, domain);
    return r;
}

void emu_domain_disturb(struct emu_domain *domain)
{
    struct emu_member *member;
    struct emu_port_end *port;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link)
            emu_rest_disturb(port->segment);
    }
}

void emu_domain_destroy(struct emu_server *server, struct emu_domain *domain)
{
    struct emu_connection *c;
    struct emu_member *member;

    LIST_FOREACH(c, &server->connections, link) {
        if (c->job == domain)
            c->job = NULL;
    }
    if (domain->table)
        atomic_fetch_or(&domain->table->flags, EMU_TABLE_CLOSED);
    emu_domain_disturb(domain);
    while ((member = LIST_FIRST(&domain->members)))
        emu_member_destroy(server, member);
    emu_quiesce_drop_domain(server, domain);
    emu_portals_drop_domain(server, domain);
    emu_ce_drop_domain(server, domain);
    emu_offers_end(domain);
    emu_fault_drop(domain);
    emu_job_forget(server, domain);
    LIST_REMOVE(domain, link);
    if (domain->table)
        munmap(domain->table, domain->table_bytes);
    if (domain->table_fd >= 0)
        close(domain->table_fd);
    for (uint32_t i = 0; domain->past_flows && i < domain->n_nodes; i++)
        free(domain->past_flows[i]);
    free(domain->past_flows);
    free(domain->marked_flows);
    for (uint32_t i = 0; domain->segments && i < domain->n_nodes; i++)
        free(domain->segments[i]); /* the lists themselves went with their memory domains */
    free(domain->segments);
    free(domain->presence);
    free(domain->accounts);
    free(domain->addresses);
    free(domain->rank_nids);
    free(domain->ports);
    free(domain->resting);
    free(domain->files);
    free(domain->n_handles);
    free(domain);
}

static void signal_members(struct emu_domain *domain, int signal)
{
    struct emu_member *member;

    LIST_FOREACH(member, &domain->members, link)
        syscall(SYS_pidfd_send_signal, member->pidfd, signal, NULL, 0);
}

/* Its members may sleep in poll(). */
static void drop_channels(struct emu_domain *domain)
{
    struct emu_member *member;
    struct emu_port_end *port;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link)
            emu_channel_end_drop_all(port);
    }
}

void emu_domain_end(struct emu_server *server, struct emu_domain *domain, int signal)
{
    atomic_fetch_or(&domain->table->flags, EMU_TABLE_CLOSED);
    emu_domain_disturb(domain);
    drop_channels(domain);
    domain->is_ending = true;
    domain->kill_at_ns = signal ? emu_clock_ns() + KILL_AFTER_NS : 0;
    if (signal) {
        emu_log(EMU_LOG_INFO, "domain %u: signal %d to what is left of the job", domain->id, signal);
        signal_members(domain, signal);
    }
    emu_host_domains_end(server, domain, signal);
}

static bool has_launched_job(const struct emu_server *server)
{
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (!domain->is_declared)
            return true;
    }
    return false;
}

uint64_t emu_domain_reap(struct emu_server *server, uint64_t now_ns)
{
    struct emu_domain *domain = LIST_FIRST(&server->domains);
    uint64_t wake_at_ns = UINT64_MAX;
    bool had_job = false;

    while (domain) {
        struct emu_domain *next = LIST_NEXT(domain, link);

        if (domain->is_ending) {
            had_job = had_job || !domain->is_declared;
            if (domain->kill_at_ns != 0 && !LIST_EMPTY(&domain->members) && now_ns >= domain->kill_at_ns) {
                emu_log(EMU_LOG_WARN, "domain %u: killing what did not end by itself", domain->id);
                signal_members(domain, SIGKILL);
                domain->kill_at_ns = now_ns + KILL_AFTER_NS;
            }
            if (domain->kill_at_ns == 0 || LIST_EMPTY(&domain->members))
                emu_domain_destroy(server, domain);
            else if (domain->kill_at_ns < wake_at_ns)
                wake_at_ns = domain->kill_at_ns;
        }
        domain = next;
    }
    if (had_job && !has_launched_job(server) && server->stops_with_last_job)
        server->stops = true;
    return wake_at_ns;
}

/* ---- members ---- */

struct emu_member *emu_member_find(struct emu_domain *domain, pid_t pid)
{
    struct emu_member *member;

    LIST_FOREACH(member, &domain->members, link) {
        if (member->pid == pid)
            return member;
    }
    return NULL;
}

static void member_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    struct emu_member *member = (struct emu_member *)watch;
    struct emu_port_end *port;

    (void)events;
    LIST_FOREACH(port, &member->ports, member_link)
        port->connection->hung_up = true;
    emu_log(EMU_LOG_DEBUG, "pid %d has ended with %u ports", (int)member->pid, member->n_ports);
    emu_member_destroy(server, member);
}

/* The process at the other end of a connection. From the socket where the kernel can (6.5), else by its number. */
static int open_peer_pidfd(const struct emu_connection *connection)
{
    int pidfd = -1;
    socklen_t len = sizeof(pidfd);

    if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0)
        pidfd = (int)syscall(SYS_pidfd_open, connection->peer.pid, 0);
    return pidfd < 0 ? -errno : pidfd;
}

int emu_member_get(struct emu_domain *domain, const struct emu_connection *connection, struct emu_member **member_out)
{
    struct emu_server *server = connection->server;
    const struct ucred *peer = &connection->peer;
    struct emu_member *member = emu_member_find(domain, peer->pid);
    int r;

    if (member) {
        emu_bind_look(server, member);
        *member_out = member;
        return 0;
    }
    member = calloc(1, sizeof(*member));
    if (!member)
        return -ENOMEM;
    *member = (struct emu_member){ .watch.ready = member_ready,
                                   .domain = domain,
                                   .pid = peer->pid,
                                   .uid = peer->uid,
                                   .rank = EMU_NID_NONE,
                                   .node_index = EMU_NID_NONE,
                                   .space_fd = -1,
                                   .windows.budget = &domain->windows };
    LIST_INIT(&member->ports);
    LIST_INIT(&member->files);
    LIST_INIT(&member->pieces);
    r = open_peer_pidfd(connection);
    if (r < 0)
        goto err_free;
    member->pidfd = r;
    r = emu_server_watch(server, member->pidfd, EPOLLIN, &member->watch);
    if (r < 0)
        goto err_pidfd;
    LIST_INSERT_HEAD(&domain->members, member, link);
    emu_bind_look(server, member);
    emu_presence_change(server, domain);
    *member_out = member;
    return 0;

err_pidfd:
    close(member->pidfd);
err_free:
    free(member);
    return r;
}

void emu_member_destroy(struct emu_server *server, struct emu_member *member)
{
    struct emu_port_end *port;

    while ((port = LIST_FIRST(&member->ports)))
        emu_connection_destroy(port->connection);
    LIST_REMOVE(member, link);
    emu_bind_forget(server, member);
    emu_file_drop_member(member);
    emu_presence_change(server, member->domain);
    emu_bulk_member_ends(member);
    emu_windows_fini(&member->windows);
    if (member->space_fd >= 0)
        close(member->space_fd);
    emu_server_bury(server, member->pidfd, &member->watch);
    close(member->pidfd);
}
