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
 * (job_control.c) until its last process ends.
 */
#include "emunic/daemon/core/domain_life.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/channel_end.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/rights/rights.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/flow_row.h"
#include "emunic/daemon/world/file.h"
#include "emunic/daemon/world/lookups.h"
#include "emunic/daemon/world/node.h"
#include "emunic/daemon/world/shared_pages.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/users.h"
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
    t->table_bytes = domain->table_file.bytes;
    t->ptag = domain->ptag;
    t->cookie = domain->cookie;
    t->device = emu_machine_nic(server->machine)->device;
    t->format = emu_machine_nic(server->machine)->format;
    t->yield_ns = server->counts.yield_ns;
    atomic_store(&t->flags, spec->flags | (server->starts_routed ? EMU_TABLE_ROUTED : 0) |
                                (emu_server_is_virtual(server) ? EMU_TABLE_VIRTUAL : 0) |
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
    domain->table_file.bytes = layout.vmdh_off + (uint64_t)layout.n_nodes * EMU_MDH_COUNT * sizeof(uint16_t);

    domain->table_file.fd = memfd_create("emunic-domain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (domain->table_file.fd < 0)
        return -errno;
    if (ftruncate(domain->table_file.fd, (off_t)domain->table_file.bytes) < 0)
        return -errno;
    domain->table = mmap(NULL, domain->table_file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                         domain->table_file.fd, 0);
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
    if (fcntl(domain->table_file.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    return 0;
}

/* ---- domains ---- */

/* After a change that its members may be waiting for. */
static void disturb(struct emu_domain *domain)
{
    struct emu_member *member;
    struct emu_port_end *port;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link)
            emu_port_end_disturb(port);
    }
}

void emu_domain_set_path(struct emu_domain *domain)
{
    if (domain->paths.is_routed_for_good || domain->paths.is_routed_on_demand || domain->paths.has_faults ||
        domain->paths.is_routed_around)
        atomic_fetch_or(&domain->table->flags, EMU_TABLE_ROUTED);
    else
        atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_ROUTED);
    disturb(domain);
}

static struct emu_domain *allocate(struct emu_server *server, const struct emu_domain_spec *spec)
{
    struct emu_domain *domain = calloc(1, sizeof(*domain));

    if (!domain)
        return NULL;
    domain->paths.is_routed_for_good = server->starts_routed || (spec->flags & EMU_TABLE_ROUTED) != 0;
    domain->id = ++server->counts.domains_made;
    domain->common_number = spec->common_number;
    domain->own_host = emu_hosts_own(server);
    domain->ptag = spec->ptag;
    domain->cookie = spec->cookie;
    domain->owner_uid = spec->owner_uid;
    domain->member_limit = spec->member_limit;
    domain->n_ranks = spec->n_ranks;
    domain->job.begin_after_ps = spec->begin_after_ps;
    domain->table_file.fd = -1;
    domain->memory.windows.left_bytes = WINDOW_BYTES_PER_DOMAIN;
    emu_limits_init(&domain->budget.limits);
    LIST_INIT(&domain->members);
    return domain;
}

/* What it has per rank, node, port or file. */
static int make_lists(struct emu_domain *domain, const struct emu_domain_spec *spec)
{
    domain->rank_nids = malloc(spec->n_ranks * sizeof(uint32_t));
    domain->ports = calloc(EMU_PORTS_MAX, sizeof(struct emu_port_end *));
    domain->port_slots.resting = calloc(EMU_PORTS_MAX, sizeof(*domain->port_slots.resting));
    domain->memory.files = calloc(EMU_FILES_MAX, sizeof(*domain->memory.files));
    domain->memory.segments = calloc(domain->n_nodes, sizeof(*domain->memory.segments));
    domain->budget.n_handles = calloc(domain->n_nodes, sizeof(*domain->budget.n_handles));
    domain->budget.accounts = calloc(domain->n_nodes, sizeof(*domain->budget.accounts));
    domain->flows.past = calloc(domain->n_nodes, sizeof(*domain->flows.past));
    domain->addresses = calloc(domain->n_nodes, sizeof(*domain->addresses));
    if (!domain->rank_nids || !domain->ports || !domain->port_slots.resting || !domain->memory.files ||
        !domain->memory.segments || !domain->budget.n_handles || !domain->budget.accounts || !domain->flows.past ||
        !domain->addresses)
        return -ENOMEM;
    for (uint32_t i = 0; i < spec->n_ranks; i++)
        domain->rank_nids[i] = spec->rank_nids[i];
    return 0;
}

int emu_domain_create(struct emu_server *server, const struct emu_domain_spec *spec, struct emu_domain **domain_out)
{
    struct emu_domain *domain;
    uint32_t *nids = NULL;
    int r;

    if (spec->n_ranks == 0 || spec->ptag > 255 || emu_domain_find(server, 255, spec->cookie))
        return spec->n_ranks == 0 || spec->ptag > 255 ? -EINVAL : -EEXIST;
    if (geteuid() == 0 && spec->owner_uid != 0 && !emu_rights_of(server)->serves_others) {
        emu_log(EMU_LOG_WARN, "no domain for uid %u: this emunic was started for processes of root alone",
                (unsigned)spec->owner_uid);
        return -EPERM;
    }
    domain = allocate(server, spec);
    if (!domain)
        return -ENOMEM;
    LIST_INSERT_HEAD(&server->domains, domain, link);
    r = emu_lookups_add_domain(server, domain);
    if (r == 0)
        r = collect_nodes(server, spec, &nids, &domain->n_nodes);
    if (r == 0)
        r = make_lists(domain, spec);
    if (r == 0)
        r = make_table(server, spec, domain, nids);
    free(nids);
    if (r == 0 && emu_domain_first_here(domain) != EMU_NID_NONE)
        emu_lookups_add_here(domain);
    if (r == 0)
        r = emu_parts_domain_begin(server, domain);
    if (r < 0) {
        emu_domain_destroy(server, domain);
        return r;
    }
    emu_domain_set_path(domain);
    emu_log(EMU_LOG_INFO, "domain %u ptag %u uid %u: %u ranks on %u nodes", domain->id, domain->ptag,
            (unsigned)domain->owner_uid, domain->n_ranks, domain->n_nodes);
    *domain_out = domain;
    return 0;
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
    disturb(domain);
    while ((member = LIST_FIRST(&domain->members)))
        emu_member_destroy(server, member);
    emu_quiesce_drop_domain(server, domain);
    emu_parts_domain_end(server, domain);
    LIST_REMOVE(domain, link);
    emu_lookups_remove_domain(domain);
    if (domain->table)
        munmap(domain->table, domain->table_file.bytes);
    if (domain->table_file.fd >= 0)
        close(domain->table_file.fd);
    for (uint32_t i = 0; domain->flows.past && i < domain->n_nodes; i++)
        emu_flow_row_free(&domain->flows.past[i], domain->n_nodes);
    free(domain->flows.past);
    for (uint32_t i = 0; domain->flows.marked && i < domain->n_nodes; i++)
        emu_flow_row_free(&domain->flows.marked[i], domain->n_nodes);
    free(domain->flows.marked);
    for (uint32_t i = 0; domain->memory.segments && i < domain->n_nodes; i++)
        free(domain->memory.segments[i]); /* the lists themselves went with their memory domains */
    free(domain->memory.segments);
    free(domain->budget.accounts);
    free(domain->addresses);
    free(domain->rank_nids);
    free(domain->ports);
    free(domain->port_slots.resting);
    free(domain->memory.files);
    free(domain->budget.n_handles);
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
    disturb(domain);
    drop_channels(domain);
    domain->is_ending = true;
    domain->kill_at_ns = signal ? emu_clock_ns() + KILL_AFTER_NS : 0;
    if (signal) {
        emu_log(EMU_LOG_INFO, "domain %u: signal %d to what is left of the job", domain->id, signal);
        signal_members(domain, signal);
    }
    emu_parts_domain_ending(server, domain, signal);
}

static bool has_launched_job(const struct emu_server *server)
{
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (!domain->job.is_declared)
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
            had_job = had_job || !domain->job.is_declared;
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
        emu_parts_member_seen(server, member);
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
                                   .is_moved = geteuid() == 0 && (peer->uid != 0 || emu_rights_of(server)->moves_all),
                                   .maps_fd = -1,
                                   .user = emu_user_get(server, peer->uid),
                                   .rank = EMU_NID_NONE,
                                   .node_index = EMU_NID_NONE,
                                   .space_fd = -1,
                                   .windows.budget = &domain->memory.windows };
    LIST_INIT(&member->ports);
    LIST_INIT(&member->files);
    LIST_INIT(&member->pieces);
    r = member->user ? open_peer_pidfd(connection) : -ENOMEM;
    if (r < 0)
        goto err_user;
    member->pidfd = r;
    r = emu_server_watch(server, member->pidfd, EPOLLIN, &member->watch);
    if (r < 0)
        goto err_pidfd;
    LIST_INSERT_HEAD(&domain->members, member, link);
    emu_lookups_add_member(member);
    emu_parts_member_seen(server, member);
    emu_parts_domain_changed(server, domain);
    *member_out = member;
    return 0;

err_pidfd:
    close(member->pidfd);
err_user:
    if (member->user)
        emu_user_put(server, member->user);
    free(member);
    return r;
}

void emu_member_destroy(struct emu_server *server, struct emu_member *member)
{
    struct emu_port_end *port;

    while ((port = LIST_FIRST(&member->ports)))
        emu_connection_destroy(port->connection);
    LIST_REMOVE(member, link);
    emu_lookups_remove_member(member);
    emu_parts_member_end(server, member);
    emu_file_drop_member(member);
    emu_parts_domain_changed(server, member->domain);
    emu_windows_fini(&member->windows);
    if (member->space_fd >= 0)
        close(member->space_fd);
    if (member->maps_fd >= 0)
        close(member->maps_fd);
    emu_pages_forget(member);
    emu_user_put(server, member->user);
    emu_server_bury(server, member->pidfd, &member->watch);
    close(member->pidfd);
}

/* ---- requests ---- */

static int answer_join_rank(struct emu_request *request)
{
    const struct emu_connection *c = request->connection;
    struct emu_msg_rank *rank = &request->msg->rank;
    struct emu_domain *domain = emu_domain_find(c->server, rank->ptag, rank->cookie);
    struct emu_member *member;
    int r;

    if (!domain || !emu_domain_may_use(domain, &c->peer) || rank->rank >= domain->n_ranks)
        return -EACCES;
    r = emu_member_get(domain, c, &member);
    if (r < 0)
        return r;
    if (emu_table_nodes(domain->table)[emu_domain_node_of(domain, domain->rank_nids[rank->rank])].host !=
        EMU_NODE_HERE) {
        emu_log_limited(&c->server->rate, EMU_LOG_WARN, "pid %d: rank %u is on another host", (int)c->peer.pid,
                        rank->rank);
        return -EXDEV;
    }
    member->rank = rank->rank;
    rank->nid = domain->rank_nids[rank->rank];
    static_assert(sizeof(rank->cname) >= EMU_CNAME_MAX, "the name of any node has room in a message");
    r = emu_machine_cname(c->server->machine, rank->nid, rank->cname, sizeof(rank->cname));
    if (r < 0)
        return r;
    member->node_index = emu_domain_node_of(domain, rank->nid);
    rank->local_rank = 0;
    for (uint32_t i = 0; i < rank->rank; i++)
        rank->local_rank += domain->rank_nids[i] == rank->nid;
    return 0;
}

/* The domain that a process means: the one it names, is in, or may use first. */
static const struct emu_domain *domain_meant(const struct emu_connection *c, const struct emu_msg_rank *rank)
{
    const struct emu_member *found = NULL;
    const struct emu_member *member;

    if (rank->cookie != 0)
        return emu_domain_find(c->server, 255, rank->cookie);
    for (member = emu_member_of(c->server, c->peer.pid); member; member = emu_member_of_older(member)) {
        if (!found || member->domain->id > found->domain->id)
            found = member;
    }
    if (found)
        return found->domain;
    return c->peer.uid == 0 ? LIST_FIRST(&c->server->domains) : emu_domain_of_owner(c->server, c->peer.uid);
}

/* The address of the node of a process, in its job. */
static int answer_where(struct emu_request *request)
{
    const struct emu_connection *c = request->connection;
    struct emu_msg_rank *rank = &request->msg->rank;
    uint32_t nid = emu_place_of(c->server, &c->peer, rank->nid);
    const struct emu_domain *domain = domain_meant(c, rank);
    uint32_t node = domain ? emu_domain_node_of(domain, nid) : EMU_NID_NONE;

    rank->nid = node != EMU_NID_NONE && domain->addresses[node] != EMU_NID_NONE ? domain->addresses[node] : nid;
    return 0;
}

static int answer_ptag(struct emu_request *request)
{
    const struct emu_connection *c = request->connection;
    struct emu_msg_ptag *ptag = &request->msg->ptag;
    struct emu_domain *domain = emu_domain_find(c->server, 255, ptag->cookie);

    if (!domain || !emu_domain_may_use(domain, &c->peer))
        return -ENOENT;
    ptag->ptag = domain->ptag;
    return 0;
}

static int answer_end(struct emu_request *request)
{
    struct emu_connection *c = request->connection;
    struct emu_domain *domain = c->job;

    if (!domain)
        return -ENOENT;
    if (request->msg->domain.signal > 64)
        return -EINVAL;
    c->job = NULL;
    emu_domain_end(c->server, domain, (int)request->msg->domain.signal);
    return 0;
}

static int answer_shutdown(struct emu_request *request)
{
    request->connection->server->stops = true;
    return 0;
}

static void end_job(struct emu_connection *c)
{
    struct emu_domain *job = c->job;

    c->job = NULL;
    if (!job)
        return;
    emu_log(EMU_LOG_WARN, "launcher pid %d has gone: ending its job", (int)c->peer.pid);
    emu_domain_end(c->server, job, SIGTERM);
}

static void put_status(const struct emu_domain *domain, uint64_t *row)
{
    const struct emu_member *member;

    row[EMU_STATUS_DOMAIN_NUMBER] = domain->common_number;
    row[EMU_STATUS_DOMAIN_ID] = domain->id;
    row[EMU_STATUS_DOMAIN_PTAG] = domain->ptag;
    row[EMU_STATUS_DOMAIN_COOKIE] = domain->cookie;
    row[EMU_STATUS_DOMAIN_UID] = domain->owner_uid;
    row[EMU_STATUS_DOMAIN_RANKS] = domain->n_ranks;
    LIST_FOREACH(member, &domain->members, link)
        row[EMU_STATUS_DOMAIN_MEMBERS]++;
    row[EMU_STATUS_DOMAIN_ATTACHED] = domain->port_slots.n_attached;
    row[EMU_STATUS_DOMAIN_MEMBER_LIMIT] = domain->member_limit;
    row[EMU_STATUS_DOMAIN_IS_ENDING] = domain->is_ending;
}

static void put_node_status(const struct emu_server *server, uint32_t nid, uint64_t *row)
{
    row[EMU_STATUS_NODE_NID] = nid;
    row[EMU_STATUS_NODE_MEMORY_DOMAINS] = server->nodes[nid] ? server->nodes[nid]->n_used : 0;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_JOIN_RANK, EMU_MSG_JOIN_RANK, EMU_NEEDS_CONTROL, answer_join_rank },
    { EMU_MSG_WHERE, EMU_MSG_WHERE, EMU_NEEDS_CONTROL, answer_where },
    { EMU_MSG_PTAG, EMU_MSG_PTAG, EMU_NEEDS_CONTROL, answer_ptag },
    { EMU_MSG_DOMAIN_END, EMU_MSG_DOMAIN_END, EMU_NEEDS_ADMIN, answer_end },
    { EMU_MSG_SHUTDOWN, EMU_MSG_SHUTDOWN, EMU_NEEDS_ADMIN, answer_shutdown },
};

const struct emu_part emu_domains_part = {
    .name = "domains",
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .connection_end = end_job,
    .status = { .domain = put_status, .node = put_node_status },
};
