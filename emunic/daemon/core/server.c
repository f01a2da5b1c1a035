/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Main loop of emunic.
 *
 * A round serves every port's command ring and moves one slice of each large transfer; control traffic is looked at
 * every CONTROL_EVERY rounds while there is work, and at each idle round.
 *
 * Behind a command emunic lingers: it goes on looking for EMUNIC_LINGER, because an answer often comes at once from a
 * process on another core, and yielding meanwhile costs two switches to whoever shares emunic's own. Whether that pays
 * depends on who runs where, which shows in what followed earlier commands of the same port: a two-bit counter per port
 * says, as branch predictors do, whether to linger, and is tried again now and then.
 *
 * With nothing to do emunic yields; after
 * idle_yields empty rounds, or as soon as a yield comes back slowly (others want the core), it announces sleep in
 * every domain table, looks at the rings once more and blocks in epoll. A client that sees the announcement rings its
 * port's doorbell, an edge-triggered eventfd that nobody has to read. Numbers: figures.md, "best wait for a daemon".
 *
 * Nothing survives emunic: socket names are abstract, shared memory is memfd, processes are held by pidfd.
 */
#include "emunic/daemon/core/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/socket.h"
#include "emunic/daemon/bind/bind.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/datagrams/datagram.h"
#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/core/domain.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/ce/ce_hosts.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/memory/memory_domain.h"
#include "emunic/daemon/network/network.h"
#include "emunic/daemon/places/places.h"
#include "emunic/daemon/portals/portals.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/engine/burst.h"

#define CONTROL_EVERY   64u
#define EVENTS_PER_LOOK 64
#define PATIENCE_MAX    3u
#define PATIENCE_PAYS   2u  /* half of it */
#define PATIENCE_TRIES  64u /* commands between two tries where it does not seem to pay */

/* ---- watches ---- */

int emu_server_watch(struct emu_server *server, int fd, uint32_t events, struct emu_watch *watch)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };

    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void emu_server_bury(struct emu_server *server, int fd, struct emu_watch *watch)
{
    if (fd >= 0)
        epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    watch->is_dead = true;
    if (server->n_graves == server->graves_max) {
        unsigned more = server->graves_max ? 2 * server->graves_max : 64;
        void **graves = realloc(server->graveyard, more * sizeof(*graves));

        if (!graves)
            return; /* out of memory: leak one object rather than free it under epoll's feet */
        server->graveyard = graves;
        server->graves_max = more;
    }
    server->graveyard[server->n_graves++] = watch;
}

static void clear_graveyard(struct emu_server *server)
{
    while (server->n_graves > 0)
        free(server->graveyard[--server->n_graves]);
}

static void control_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
    emu_connection_accept(server, server->control_fd, false);
}

static void admin_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
    emu_connection_accept(server, server->admin_fd, true);
}

static void signal_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    struct signalfd_siginfo info;

    (void)watch;
    (void)events;
    while (read(server->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        emu_log(EMU_LOG_INFO, "signal %u: stopping", info.ssi_signo);
        server->stops = true;
    }
}

/* The starter has gone. Once there is a job its connection tells the same, and the job is ended first. */
static void starter_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)events;
    watch->is_dead = true;
    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->ready_fd, NULL);
    if (LIST_EMPTY(&server->domains)) {
        emu_log(EMU_LOG_INFO, "the starter has gone: stopping");
        server->stops = true;
    }
}

/* ---- life ---- */

static int open_signals(struct emu_server *server)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    /* A channel whose owner has gone. */
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -errno;
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    server->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return server->signal_fd < 0 ? -errno : 0;
}

/* A port takes three descriptors, a process one more: the shell's usual 1024 would be a few hundred ranks. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        emu_log(EMU_LOG_WARN, "cannot raise the limit of descriptors: %s", strerror(errno));
}

static int open_descriptors(struct emu_server *server, char *err, size_t err_len)
{
    int r;

    raise_descriptor_limit();
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll_fd < 0)
        return -errno;
    r = open_signals(server);
    if (r < 0)
        return r;
    server->control_fd = emu_socket_listen(server->name, EMU_SOCKET_CONTROL);
    if (server->control_fd == -EADDRINUSE)
        snprintf(err, err_len, "a server named '%s' is running already", server->name);
    if (server->control_fd < 0)
        return server->control_fd;
    server->admin_fd = emu_socket_listen(server->name, EMU_SOCKET_ADMIN);
    if (server->admin_fd < 0)
        return server->admin_fd;
    server->control_watch.ready = control_ready;
    server->admin_watch.ready = admin_ready;
    server->signal_watch.ready = signal_ready;
    r = emu_server_watch(server, server->control_fd, EPOLLIN, &server->control_watch);
    if (r == 0)
        r = emu_server_watch(server, server->admin_fd, EPOLLIN, &server->admin_watch);
    if (r == 0)
        r = emu_server_watch(server, server->signal_fd, EPOLLIN, &server->signal_watch);
    return r;
}

int emu_server_create(const struct emu_server_options *options, struct emu_server **server_out, char *err,
                      size_t err_len)
{
    struct emu_server *server;
    int r;

    err[0] = '\0';
    if (!emu_server_name_is_valid(options->name)) {
        snprintf(err, err_len, "'%s' is not a server name: 1 to %d of A-Z a-z 0-9 . _ -", options->name,
                 EMU_SERVER_NAME_MAX);
        return -EINVAL;
    }
    server = calloc(1, sizeof(*server));
    if (!server)
        return -ENOMEM;
    snprintf(server->name, sizeof(server->name), "%s", options->name);
    server->epoll_fd = server->control_fd = server->admin_fd = server->signal_fd = server->spare_fd = -1;
    server->places_fd = -1;
    server->stops_with_last_job = options->stops_with_last_job;
    server->starts_routed = options->starts_routed;
    server->started_ns = emu_clock_ns();
    server->next_domain_id = 1;
    LIST_INIT(&server->connections);
    LIST_INIT(&server->domains);
    LIST_INIT(&server->ports);
    LIST_INIT(&server->quiesces);
    LIST_INIT(&server->portals_repairs);
    TAILQ_INIT(&server->ce_work);
    LIST_INIT(&server->error_subs);
    server->first_faults = options->faults;
    server->n_first_faults = options->n_faults;
    emu_settings_read(&server->settings);

    r = emu_machine_load(options->machine, options->machine_dir, &server->machine, err, err_len);
    if (r < 0)
        goto err_server;
    server->n_nids = emu_machine_n_nodes(server->machine);
    server->machine_spec = strdup(options->machine);
    server->nodes = calloc(server->n_nids, sizeof(*server->nodes));
    server->bounce_bytes = 65536;
    server->bounce = aligned_alloc(4096, server->bounce_bytes);
    server->burst = calloc(1, sizeof(*server->burst));
    r = -ENOMEM;
    if (!server->machine_spec || !server->nodes || !server->bounce || !server->burst)
        goto err_server;
    r = server->places_fd = emu_places_make(server->machine);
    if (r < 0)
        goto err_server;
    r = open_descriptors(server, err, err_len);
    if (r == 0 && options->hosts)
        r = emu_hosts_create(server, options->hosts, err, err_len);
    if (r == 0)
        r = emu_bind_create(server, options->bind, err, err_len);
    if (r == 0)
        r = emu_admin_create(server);
    if (r < 0)
        goto err_server;
    if (options->ready_fd >= 0 && write(options->ready_fd, "r", 1) != 1)
        emu_log(options->stops_with_starter ? EMU_LOG_INFO : EMU_LOG_WARN, "nobody waits for this server to be ready");
    if (options->stops_with_starter) {
        server->ready_fd = options->ready_fd;
        server->starter_watch.ready = starter_ready;
        r = emu_server_watch(server, server->ready_fd, EPOLLRDHUP, &server->starter_watch);
        if (r < 0)
            goto err_server;
    }
    *server_out = server;
    return 0;

err_server:
    if (!err[0])
        snprintf(err, err_len, "cannot start: %s", strerror(-r));
    emu_server_destroy(server);
    return r;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void emu_server_destroy(struct emu_server *server)
{
    struct emu_connection *connection;
    struct emu_domain *domain;

    if (!server)
        return;
    while ((domain = LIST_FIRST(&server->domains)))
        emu_domain_destroy(server, domain);
    while ((connection = LIST_FIRST(&server->connections)))
        emu_connection_destroy(connection);
    emu_hosts_destroy(server);
    emu_bind_destroy(server);
    emu_admin_destroy(server);
    clear_graveyard(server);
    free(server->graveyard);
    close_fd(server->control_fd);
    close_fd(server->admin_fd);
    close_fd(server->signal_fd);
    close_fd(server->spare_fd);
    close_fd(server->places_fd);
    close_fd(server->epoll_fd);
    for (uint32_t nid = 0; server->nodes && nid < server->n_nids; nid++) {
        if (server->nodes[nid])
            free(server->nodes[nid]->injection);
        free(server->nodes[nid]);
    }
    free(server->ntt);
    free(server->nodes);
    free(server->engines);
    free(server->bounce);
    free(server->burst);
    free(server->machine_spec);
    emu_network_destroy(server);
    emu_machine_destroy(server->machine);
    free(server);
}

/* ---- loop ---- */

static int timeout_ms(uint64_t wake_at_ns, uint64_t now_ns)
{
    if (wake_at_ns == UINT64_MAX)
        return -1;
    if (wake_at_ns <= now_ns)
        return 0;
    return (wake_at_ns - now_ns) / 1000000 >= INT_MAX ? INT_MAX : (int)((wake_at_ns - now_ns) / 1000000) + 1;
}

/* Of two timeouts of which -1 is none. */
static int shorter_ms(int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return a < b ? a : b;
}

static int look_at_control(struct emu_server *server, int wait_ms)
{
    struct epoll_event events[EVENTS_PER_LOOK];
    int n;

    n = epoll_wait(server->epoll_fd, events, EVENTS_PER_LOOK, wait_ms);
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < n; i++) {
        struct emu_watch *watch = events[i].data.ptr;

        if (!watch->is_dead)
            watch->ready(server, watch, events[i].events);
    }
    clear_graveyard(server);
    if (n < EVENTS_PER_LOOK && emu_ce_owes(server->ce_hosts))
        emu_ce_looked(server);
    return n;
}

static void announce_sleep(struct emu_server *server, uint32_t sleeps)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link)
        atomic_store_explicit(&domain->table->emunic_sleeps, sleeps, memory_order_relaxed);
}

/* Runs only after idle rounds: blocks until a doorbell, a request or `wake_at_ns`. */
static int sleep_until_called(struct emu_server *server, uint64_t wake_at_ns)
{
    uint64_t held_ns = emu_fault_next_ns(server);
    uint64_t released_ns = emu_network_next_ns(server);
    uint64_t waited_ns = emu_admin_next_ns(server);
    int r = 0;

    if (held_ns < wake_at_ns)
        wake_at_ns = held_ns;
    if (released_ns < wake_at_ns)
        wake_at_ns = released_ns;
    if (waited_ns < wake_at_ns)
        wake_at_ns = waited_ns;
    announce_sleep(server, 1);
    /* Pairs with the fence in emu_port_publish(): either we see the command, or its sender sees us asleep. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!emu_datapath_has_work(server) && emu_hosts_may_sleep(server)) {
        server->sleeps++;
        /* Nobody rings when he leaves the engine. */
        r = look_at_control(server, LIST_EMPTY(&server->quiesces) && !emu_portals_has_work(server) ?
                                        shorter_ms(timeout_ms(wake_at_ns, emu_clock_ns()), emu_hosts_sleep_ms(server)) :
                                        1);
    }
    announce_sleep(server, 0);
    return r;
}

/* ---- lingering ---- */

static uint8_t *patience_of(struct emu_server *server)
{
    return &server->patience[server->served_port % EMU_PATIENCES];
}

/* A round has served `server->served_port`. */
static void begin_to_linger(struct emu_server *server)
{
    if (*patience_of(server) >= PATIENCE_PAYS || ++server->serves % PATIENCE_TRIES == 0)
        server->linger_until_ns = emu_clock_ns() + server->settings.linger_ns;
    else
        server->linger_until_ns = 0;
}

/* A round has found work. */
static void linger_paid(struct emu_server *server, uint8_t *patience)
{
    if (server->linger_until_ns != 0 && *patience < PATIENCE_MAX)
        (*patience)++;
}

/* A round has found nothing. Look once more at once? */
static bool goes_on_lingering(struct emu_server *server)
{
    uint8_t *patience = patience_of(server);

    if (server->linger_until_ns == 0)
        return false;
    if (emu_clock_ns() < server->linger_until_ns) {
        emu_cpu_pause();
        return true;
    }
    server->linger_until_ns = 0;
    if (*patience > 0)
        (*patience)--;
    return false;
}

/* Gives the core away once. True if others used it. */
static bool yield_was_slow(const struct emu_server *server)
{
    uint64_t before_ns = emu_clock_ns();

    sched_yield();
    return emu_clock_ns() - before_ns > server->settings.slow_yield_ns;
}

int emu_server_run(struct emu_server *server)
{
    uint64_t wake_at_ns = UINT64_MAX;
    uint64_t looked_at = 0;
    uint64_t idle = 0;
    int r = 0;

    emu_log(EMU_LOG_INFO, "server %s serves %s: %u nodes", server->name, emu_machine_name(server->machine),
            server->n_nids);
    emu_bind_round(server);
    while (!server->stops) {
        uint8_t *patience = patience_of(server);
        unsigned done = emu_datapath_round(server) + emu_hosts_round(server);

        emu_quiesce_round(server);
        emu_portals_round(server);
        emu_datagram_look_at_delayed(server);
        emu_network_round(server);
        emu_admin_round(server);
        emu_host_domains_round(server);

        if (done > 0) {
            idle = 0;
            linger_paid(server, patience);
            begin_to_linger(server);
        } else if (goes_on_lingering(server)) {
            continue;
        }
        server->rounds++;
        /* Counted from the last look, with and without work: rounds in step with a client would miss any fixed beat. */
        if (server->rounds - looked_at >= CONTROL_EVERY || emu_ce_owes(server->ce_hosts)) {
            looked_at = server->rounds;
            r = look_at_control(server, 0);
        } else if (done > 0) {
            continue;
        } else if (LIST_EMPTY(&server->ports)) {
            r = sleep_until_called(server, wake_at_ns);
        } else if (++idle > server->settings.idle_yields || yield_was_slow(server)) {
            idle = 0;
            r = sleep_until_called(server, wake_at_ns);
        } else if (idle % 16 == 0) {
            r = look_at_control(server, 0);
        } else {
            continue;
        }
        if (r < 0)
            break;
        if (r > 0 || wake_at_ns != UINT64_MAX)
            wake_at_ns = emu_domain_reap(server, emu_clock_ns());
        if (r > 0)
            emu_bind_round(server);
    }
    emu_log(EMU_LOG_INFO, "server %s ends", server->name);
    return r < 0 ? r : 0;
}
