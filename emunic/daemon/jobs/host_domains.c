/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains that all hosts of the machine have.
 *
 * The head makes and ends them, and gives them the number by which all hosts know them; numbers begin at random, so
 * that those of a head that was started again mean nothing to anybody. A host that comes up is told of all domains
 * there are, between BEGIN and COMPLETE. One that it has already, with the same ranks, gets its new number and goes on
 * with its processes; what it has and is not told of has ended while it was away.
 *
 * A launcher that asks for a domain is answered when each host has made it and, if it has nodes of it, has a session
 * with all others that have: sessions between two hosts come up when they do, whatever sessions the head has, and a
 * process there must find its peers in reach. Each host tells the head which one it lacks. One that still lacks some
 * after the peer timeout, or is lost, fails the request; the head's log names both.
 */
#include "emunic/daemon/jobs/host_domains.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <unistd.h>

#include "emunic/abi/control.h"
#include "emunic/abi/host_message.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/jobs/presence.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/lookups.h"

#define RANKS_MAX    (1u << 20)
#define LACK_UNKNOWN UINT32_MAX /* the host has not told yet */

/* A launcher that waits for its domain. */
struct waiting {
    LIST_ENTRY(waiting) link;
    struct emu_connection *connection; /* borrowed: forgotten when it goes */
    struct emu_msg reply;
    uint32_t number; /* of the domain */
    uint64_t deadline_ns;
    int result;
    struct {
        bool is_awaited; /* its result */
        bool must_reach; /* the others: it has nodes of the domain */
        uint32_t lack;   /* as EMU_HOST_DOMAIN_REACHES tells */
    } hosts[];
};

#define BEGIN_AFTER_MAX_PS 3600000000000000ull /* an hour */

struct emu_host_domains {
    uint32_t next_number;
    LIST_HEAD(, waiting) waiting;
    /* What the head is telling us. */
    struct emu_host_domain coming;
    uint32_t n_come; /* ranks */
    uint32_t *nids;  /* owned */
    uint32_t *hosts; /* owned */
};

static struct emu_host_domains *all_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_HOST_DOMAINS];
}

static struct emu_domain_hosts *hosts_of(const struct emu_domain *domain)
{
    return domain->slots[EMU_DOMAIN_HOSTS];
}

/* ---- life ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_host_domains *d = calloc(1, sizeof(*d));

    (void)options;
    (void)why;
    if (!d)
        return -ENOMEM;
    LIST_INIT(&d->waiting);
    if (getrandom(&d->next_number, sizeof(d->next_number), 0) != sizeof(d->next_number)) {
        free(d);
        return -EIO;
    }
    server->slots[EMU_SERVER_HOST_DOMAINS] = d;
    return 0;
}

static void drop_coming(struct emu_host_domains *d)
{
    free(d->nids);
    free(d->hosts);
    d->nids = d->hosts = NULL;
    d->n_come = 0;
}

static void destroy(struct emu_server *server)
{
    struct emu_host_domains *d = all_of(server);
    struct waiting *w;

    if (!d)
        return;
    while ((w = LIST_FIRST(&d->waiting))) {
        LIST_REMOVE(w, link);
        free(w);
    }
    drop_coming(d);
    free(d);
    server->slots[EMU_SERVER_HOST_DOMAINS] = NULL;
}

/* ---- the head ---- */

static uint32_t new_number(struct emu_server *server)
{
    struct emu_host_domains *d = all_of(server);

    do
        d->next_number++;
    while (d->next_number == 0 || emu_hosts_find_domain(server, d->next_number));
    return d->next_number;
}

static uint32_t host_of_rank(const struct emu_domain *domain, uint32_t rank)
{
    return emu_hosts_of_node(domain, emu_domain_node_of(domain, domain->rank_nids[rank]));
}

static struct emu_host_domain message_of(const struct emu_domain *domain, enum emu_host_domain_op op)
{
    return (struct emu_host_domain){ .domain = domain->common_number,
                                     .op = op,
                                     .n_ranks = domain->n_ranks,
                                     .ptag = domain->ptag,
                                     .cookie = domain->cookie,
                                     .owner_uid = domain->owner_uid,
                                     .member_limit = domain->member_limit,
                                     .flags = domain->paths.is_routed_for_good ? EMU_TABLE_ROUTED : 0 };
}

static void send_plain(struct emu_server *server, uint32_t host, const struct emu_host_domain *d)
{
    uint8_t message[EMU_HOST_DOMAIN_BYTES];

    emu_host_domain_put(message, d);
    emu_hosts_answer(server, host, message, sizeof(message));
}

static void send_domain(struct emu_server *server, uint32_t host, const struct emu_domain *domain)
{
    uint8_t message[EMU_HOST_DOMAIN_BYTES + 8 * EMU_HOST_RANKS_MAX];
    struct emu_host_domain d = message_of(domain, EMU_HOST_DOMAIN_CREATE);
    uint8_t *at;

    for (d.first = 0; d.first < d.n_ranks; d.first += d.n) {
        d.n = d.n_ranks - d.first < EMU_HOST_RANKS_MAX ? d.n_ranks - d.first : EMU_HOST_RANKS_MAX;
        at = emu_host_domain_put(message, &d);
        for (uint32_t i = d.first; i < d.first + d.n; i++) {
            at = emu_wire_put32(at, domain->rank_nids[i]);
            at = emu_wire_put32(at, host_of_rank(domain, i));
        }
        emu_hosts_answer(server, host, message, EMU_HOST_DOMAIN_BYTES + 8 * d.n);
    }
    emu_hosts_owe(server, host);
    emu_orders_tell_domain(server, host, domain);
}

static bool has_nodes_on(const struct emu_domain *domain, uint32_t host)
{
    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        if (emu_hosts_of_node(domain, i) == host)
            return true;
    }
    return false;
}

static bool has_nodes_there(const struct emu_domain_spec *spec, uint32_t host)
{
    for (uint32_t i = 0; i < spec->n_ranks; i++) {
        if (spec->rank_hosts[i] == host)
            return true;
    }
    return false;
}

int emu_host_domains_make(struct emu_server *server, const struct emu_domain_spec *spec, bool must_be_up,
                          struct emu_domain **domain_out)
{
    struct emu_domain_spec common = *spec;
    int r;

    if (!emu_hosts_are_several(server))
        return emu_domain_create(server, spec, domain_out);
    if (emu_hosts_own(server) != EMU_HOST_HEAD)
        return -EPERM;
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (must_be_up && !emu_hosts_is_up(server, i) && has_nodes_there(spec, i))
            return -EHOSTUNREACH;
    }
    common.common_number = new_number(server);
    r = emu_domain_create(server, &common, domain_out);
    for (uint32_t i = 0; r == 0 && i < emu_hosts_count(server); i++) {
        if (i != emu_hosts_own(server) && emu_hosts_is_up(server, i))
            send_domain(server, i, *domain_out);
    }
    if (r == 0)
        emu_parts_domain_spread(server, *domain_out);
    return r;
}

static int await(struct emu_connection *connection, const struct emu_domain *domain, const struct emu_msg *reply)
{
    struct emu_server *server = connection->server;
    uint32_t n = emu_hosts_count(server);
    uint32_t n_awaited = 0;
    struct waiting *w;

    if (!emu_hosts_are_several(server))
        return 0;
    w = calloc(1, sizeof(*w) + n * sizeof(w->hosts[0]));
    if (!w)
        return -ENOMEM;
    w->connection = connection;
    w->reply = *reply;
    w->number = domain->common_number;
    w->deadline_ns = emu_hosts_now_ns(server) + emu_hosts_timeout_ns(server);
    for (uint32_t i = 0; i < n; i++) {
        w->hosts[i].is_awaited = i != emu_hosts_own(server) && emu_hosts_is_up(server, i);
        n_awaited += w->hosts[i].is_awaited;
        w->hosts[i].must_reach = w->hosts[i].is_awaited && has_nodes_on(domain, i);
        w->hosts[i].lack = LACK_UNKNOWN;
    }
    if (n_awaited == 0) {
        free(w);
        return 0;
    }
    LIST_INSERT_HEAD(&all_of(server)->waiting, w, link);
    return EMU_DEFERRED;
}

/* text_fd: what there is to say about it, or -1. */
static void finish(struct emu_server *server, struct waiting *w, int text_fd)
{
    struct emu_domain *domain = emu_hosts_find_domain(server, w->number);

    if (!domain || domain->is_ending)
        w->result = w->result ? w->result : -ECANCELED;
    else if (w->result < 0) {
        w->connection->job = NULL;
        emu_domain_end(server, domain, 0);
    }
    LIST_REMOVE(w, link);
    emu_connection_answer_with(w->connection, &w->reply, w->result, text_fd);
    free(w);
}

/* It may be over, and gone, when this returns. */
static void finish_if_over(struct emu_server *server, struct waiting *w)
{
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        /* Of one that has failed all hosts are heard, but nobody waits for their sessions. */
        if (w->hosts[i].is_awaited || (w->result == 0 && w->hosts[i].must_reach && w->hosts[i].lack != 0))
            return;
    }
    finish(server, w, -1);
}

/* Into the log, and a line of the text. */
__attribute__((format(printf, 2, 3))) static void complain(int fd, const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    emu_log(EMU_LOG_ERROR, "a domain cannot be made: %s", line);
    if (fd >= 0)
        dprintf(fd, "%s\n", line);
}

/* A host has said something, or will not say anything any more. */
static void hear(struct emu_server *server, struct waiting *w, uint32_t host, int result)
{
    if (w->result == 0)
        w->result = result;
    w->hosts[host].is_awaited = false;
    finish_if_over(server, w);
}

/* After all that time: the launcher is told in a text, a line for each host, whom it lacks. */
static void expire(struct emu_server *server, struct waiting *w)
{
    unsigned long long timeout_ms = emu_hosts_timeout_ns(server) / 1000000;
    int fd = memfd_create("emunic-hosts", MFD_CLOEXEC);

    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        uint32_t lack = w->hosts[i].must_reach ? w->hosts[i].lack : 0;

        if (w->hosts[i].is_awaited || lack == LACK_UNKNOWN)
            complain(fd, "host %s has not made the domain in %llu ms", emu_hosts_name(server, i), timeout_ms);
        else if (lack != 0)
            complain(fd, "host %s has had no session with host %s for %llu ms", emu_hosts_name(server, i),
                     emu_hosts_name(server, lack - 1), timeout_ms);
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    w->result = w->result ? w->result : -EHOSTUNREACH;
    finish(server, w, fd);
    if (fd >= 0)
        close(fd);
}

/* Sleeps end often enough: those of the sessions do. */
static unsigned look(struct emu_server *server)
{
    struct waiting *w = all_of(server) ? LIST_FIRST(&all_of(server)->waiting) : NULL;

    while (w) {
        struct waiting *next = LIST_NEXT(w, link);

        if (emu_hosts_now_ns(server) >= w->deadline_ns)
            expire(server, w);
        w = next;
    }
    return 0;
}

static void forget_connection(struct emu_connection *connection)
{
    const struct emu_server *server = connection->server;
    struct waiting *w = all_of(server) ? LIST_FIRST(&all_of(server)->waiting) : NULL;

    while (w) {
        struct waiting *next = LIST_NEXT(w, link);

        if (w->connection == connection) {
            LIST_REMOVE(w, link);
            free(w);
        }
        w = next;
    }
}

static void tell_end(struct emu_server *server, struct emu_domain *domain, int signal)
{
    struct emu_host_domain d = message_of(domain, EMU_HOST_DOMAIN_END);

    if (!emu_hosts_are_several(server) || domain->common_number == 0 || emu_hosts_own(server) != EMU_HOST_HEAD)
        return;
    d.value = (uint32_t)signal;
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (i != emu_hosts_own(server) && emu_hosts_is_up(server, i))
            send_plain(server, i, &d);
    }
}

/* ---- whom a host reaches ---- */

static uint32_t lack_of(const struct emu_server *server, const struct emu_domain *domain)
{
    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        uint32_t host = emu_hosts_of_node(domain, i);

        if (!emu_hosts_is_up(server, host))
            return 1 + host;
    }
    return 0;
}

static void tell_reach(struct emu_server *server, struct emu_domain *domain)
{
    struct emu_host_domain reaches = { .domain = domain->common_number, .op = EMU_HOST_DOMAIN_REACHES };

    hosts_of(domain)->told_lack = reaches.value = lack_of(server, domain);
    send_plain(server, EMU_HOST_HEAD, &reaches);
}

/* A host has come or gone. */
static void tell_reach_again(struct emu_server *server)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (emu_hosts_own(server) != EMU_HOST_HEAD && domain->common_number != 0 && !domain->is_ending &&
            lack_of(server, domain) != hosts_of(domain)->told_lack)
            tell_reach(server, domain);
    }
}

static void host_up(struct emu_server *server, uint32_t host)
{
    struct emu_host_domain d = { .op = EMU_HOST_DOMAIN_BEGIN };
    struct emu_domain *domain;

    tell_reach_again(server);
    if (emu_hosts_own(server) != EMU_HOST_HEAD)
        return;
    send_plain(server, host, &d);
    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->common_number != 0 && !domain->is_ending)
            send_domain(server, host, domain);
    }
    d.op = EMU_HOST_DOMAIN_COMPLETE;
    send_plain(server, host, &d);
}

static void host_down(struct emu_server *server, uint32_t host)
{
    struct waiting *w = LIST_FIRST(&all_of(server)->waiting);

    while (w) {
        struct waiting *next = LIST_NEXT(w, link);

        if (w->hosts[host].is_awaited || w->hosts[host].must_reach)
            hear(server, w, host, -EHOSTUNREACH);
        w = next;
    }
    if (host == EMU_HOST_HEAD)
        drop_coming(all_of(server));
    tell_reach_again(server);
}

/* ---- the others ---- */

static bool is_same(const struct emu_host_domains *d, const struct emu_domain *domain)
{
    const struct emu_host_domain *c = &d->coming;

    if (domain->ptag != c->ptag || domain->owner_uid != c->owner_uid || domain->member_limit != c->member_limit ||
        domain->n_ranks != c->n_ranks)
        return false;
    for (uint32_t i = 0; i < domain->n_ranks; i++) {
        if (domain->rank_nids[i] != d->nids[i] || host_of_rank(domain, i) != d->hosts[i])
            return false;
    }
    return true;
}

static int make_what_came(struct emu_server *server)
{
    struct emu_host_domains *d = all_of(server);
    const struct emu_host_domain *c = &d->coming;
    struct emu_domain_spec spec = { .ptag = c->ptag,
                                    .cookie = c->cookie,
                                    .owner_uid = c->owner_uid,
                                    .member_limit = c->member_limit,
                                    .n_ranks = c->n_ranks,
                                    .flags = c->flags,
                                    .rank_nids = d->nids,
                                    .rank_hosts = d->hosts,
                                    .common_number = c->domain };
    struct emu_domain *domain = emu_domain_find(server, 255, c->cookie);
    int r;

    if (domain && domain->common_number != 0) {
        if (is_same(d, domain)) {
            bool is_new = domain->common_number != c->domain;

            emu_lookups_renumber(domain, c->domain);
            hosts_of(domain)->is_in_doubt = false;
            emu_presence_tell(server, domain);
            if (is_new)
                emu_parts_domain_spread(server, domain);
            return 0;
        }
        emu_domain_end(server, domain, 0);
    }
    r = emu_domain_create(server, &spec, &domain);
    if (r == 0)
        emu_parts_domain_spread(server, domain);
    return r;
}

static bool take_ranks(struct emu_server *server, const struct emu_host_domain *m)
{
    struct emu_host_domains *d = all_of(server);
    struct emu_host_domain result = { .domain = m->domain, .op = EMU_HOST_DOMAIN_RESULT };
    struct emu_domain *domain;
    int r;

    if (m->first == 0) {
        drop_coming(d);
        d->coming = *m;
        d->nids = malloc(m->n_ranks * sizeof(*d->nids));
        d->hosts = malloc(m->n_ranks * sizeof(*d->hosts));
    }
    if (m->domain != d->coming.domain || m->first != d->n_come || m->n_ranks != d->coming.n_ranks ||
        (m->flags & ~EMU_TABLE_ROUTED) != 0)
        return false;
    for (uint32_t i = 0; d->nids && d->hosts && i < m->n; i++) {
        d->nids[m->first + i] = emu_wire_get32(m->ranks + 8 * i);
        d->hosts[m->first + i] = emu_wire_get32(m->ranks + 8 * i + 4);
    }
    d->n_come += m->n;
    if (d->n_come < m->n_ranks)
        return true;
    r = d->nids && d->hosts ? make_what_came(server) : -ENOMEM;
    if (r < 0)
        emu_log_limited(&server->rate, EMU_LOG_ERROR, "domain of ptag %u, cookie 0x%08x, from host %s: %s", m->ptag,
                        m->cookie, emu_hosts_name(server, EMU_HOST_HEAD), strerror(-r));
    drop_coming(d);
    result.value = (uint32_t)-r;
    send_plain(server, EMU_HOST_HEAD, &result);
    domain = r == 0 ? emu_hosts_find_domain(server, m->domain) : NULL;
    if (domain)
        tell_reach(server, domain);
    return true;
}

static void doubt_all(struct emu_server *server)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link)
        hosts_of(domain)->is_in_doubt = domain->common_number != 0;
}

static void end_doubtful(struct emu_server *server)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (hosts_of(domain)->is_in_doubt && !domain->is_ending)
            emu_domain_end(server, domain, 0);
    }
}

/* The head's answer to a host that could not make a domain is a line in its log, unless a launcher waits. */
static bool take_result(struct emu_server *server, uint32_t host, const struct emu_host_domain *m)
{
    struct waiting *w;

    if (m->value > 4095 || !emu_hosts_pay(server, host))
        return false;
    LIST_FOREACH(w, &all_of(server)->waiting, link) {
        if (w->number == m->domain && w->hosts[host].is_awaited) {
            hear(server, w, host, -(int)m->value);
            return true;
        }
    }
    if (m->value != 0)
        emu_log(EMU_LOG_ERROR, "host %s cannot make a domain: %s", emu_hosts_name(server, host),
                strerror((int)m->value));
    return true;
}

static bool take_reaches(struct emu_server *server, uint32_t host, const struct emu_host_domain *m)
{
    struct waiting *w;

    if (m->value > emu_hosts_count(server))
        return false;
    LIST_FOREACH(w, &all_of(server)->waiting, link) {
        if (w->number == m->domain && w->hosts[host].must_reach) {
            w->hosts[host].lack = m->value;
            finish_if_over(server, w);
            return true;
        }
    }
    return true; /* nobody waits */
}

static bool take(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_host_domain m;
    struct emu_domain *domain;

    if (!emu_host_domain_parse(bytes, length_bytes, &m))
        return false;
    if (m.op == EMU_HOST_DOMAIN_RESULT)
        return emu_hosts_own(server) == EMU_HOST_HEAD && take_result(server, host, &m);
    if (m.op == EMU_HOST_DOMAIN_REACHES)
        return emu_hosts_own(server) == EMU_HOST_HEAD && take_reaches(server, host, &m);
    if (host != EMU_HOST_HEAD)
        return false;
    switch (m.op) {
    case EMU_HOST_DOMAIN_BEGIN:
        doubt_all(server);
        return true;
    case EMU_HOST_DOMAIN_COMPLETE:
        end_doubtful(server);
        return true;
    case EMU_HOST_DOMAIN_CREATE:
        return take_ranks(server, &m);
    default:
        domain = emu_hosts_find_domain(server, m.domain);
        if (m.value > 64)
            return false;
        if (domain && !domain->is_ending)
            emu_domain_end(server, domain, (int)m.value);
        return true;
    }
}

/* ---- requests ---- */

/* Node of each rank and, with EMU_DOMAIN_HAS_HOSTS, behind them the host of each. */
static int read_ranks(int fd, uint32_t n_ranks, bool has_hosts, uint32_t **nids_out)
{
    uint32_t *nids;
    size_t bytes = (size_t)n_ranks * sizeof(*nids) * (has_hosts ? 2 : 1);

    if (n_ranks == 0 || n_ranks > RANKS_MAX)
        return -EINVAL;
    nids = malloc(bytes);
    if (!nids)
        return -ENOMEM;
    if (pread(fd, nids, bytes, 0) != (ssize_t)bytes) {
        free(nids);
        return -EINVAL;
    }
    *nids_out = nids;
    return 0;
}

/* Is one of its nodes that of another domain? */
static bool has_taken_nodes(const struct emu_server *server, const struct emu_domain_spec *spec)
{
    const struct emu_domain *other;

    LIST_FOREACH(other, &server->domains, link) {
        for (uint32_t i = 0; i < spec->n_ranks; i++) {
            if (emu_domain_node_of(other, spec->rank_nids[i]) != EMU_NID_NONE)
                return true;
        }
    }
    return false;
}

static int answer_create(struct emu_request *request)
{
    struct emu_connection *c = request->connection;
    struct emu_msg_domain *d = &request->msg->domain;
    bool has_hosts = (d->flags & EMU_DOMAIN_HAS_HOSTS) != 0;
    struct emu_domain_spec spec = { .ptag = d->ptag,
                                    .cookie = d->cookie,
                                    .owner_uid = d->owner_uid,
                                    .member_limit = d->member_limit,
                                    .n_ranks = d->n_ranks,
                                    .flags = d->flags & ~(EMU_DOMAIN_HAS_HOSTS | EMU_DOMAIN_OWN_NODES),
                                    .begin_after_ps = d->begin_after_ps };
    struct emu_domain *domain;
    uint32_t *nids;
    int r;

    if (c->job || request->fds->n_fds != 1 ||
        (d->flags & ~(EMU_TABLE_ROUTED | EMU_DOMAIN_HAS_HOSTS | EMU_DOMAIN_OWN_NODES)) != 0 ||
        d->begin_after_ps > BEGIN_AFTER_MAX_PS)
        return -EINVAL;
    r = read_ranks(request->fds->fd[0], d->n_ranks, has_hosts, &nids);
    if (r < 0)
        return r;
    spec.rank_nids = nids;
    if ((d->flags & EMU_DOMAIN_OWN_NODES) != 0 && has_taken_nodes(c->server, &spec)) {
        r = -EBUSY;
    } else if (has_hosts) {
        spec.rank_hosts = nids + d->n_ranks;
        r = emu_host_domains_make(c->server, &spec, true, &domain);
    } else {
        r = emu_domain_create(c->server, &spec, &domain);
    }
    free(nids);
    if (r < 0)
        return r;
    c->job = domain;
    d->domain_id = domain->id;
    return has_hosts ? await(c, domain, request->msg) : 0;
}

/* ---- the part ---- */

static int begin_domain(struct emu_server *server, struct emu_domain *domain)
{
    (void)server;
    domain->slots[EMU_DOMAIN_HOSTS] = calloc(1, sizeof(struct emu_domain_hosts));
    return domain->slots[EMU_DOMAIN_HOSTS] ? 0 : -ENOMEM;
}

static void end_domain(struct emu_server *server, struct emu_domain *domain)
{
    (void)server;
    if (hosts_of(domain))
        free(hosts_of(domain)->presence);
    free(hosts_of(domain));
    domain->slots[EMU_DOMAIN_HOSTS] = NULL;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_DOMAIN_CREATE, EMU_MSG_DOMAIN_CREATE, EMU_NEEDS_ADMIN, answer_create },
};
static const struct emu_message_row messages[] = { { EMU_HOST_DOMAIN, take } };
static const struct emu_list_row lists[] = { { EMU_HOST_ADMIN_PRESENCE, emu_presence_hear } };

static void down(struct emu_server *server, uint32_t host)
{
    host_down(server, host);
    emu_presence_host_down(server, host);
}

const struct emu_part emu_host_domains_part = {
    .name = "domains of all hosts",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = look },
    .hosts = { .messages = messages,
               .n_messages = EMU_ROWS(messages),
               .lists = lists,
               .n_lists = EMU_ROWS(lists),
               .up = host_up,
               .down = down },
    .domains = { .begin = begin_domain, .ending = tell_end, .end = end_domain, .changed = emu_presence_change },
    .connection_end = forget_connection,
};
