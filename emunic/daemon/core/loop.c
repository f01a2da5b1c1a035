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
 * port's doorbell, an edge-triggered eventfd that nobody has to read. Numbers: spec/figures.md "best wait found for a
 * daemon".
 *
 * Nothing survives emunic: socket names are abstract, shared memory is memfd, processes are held by pidfd.
 */
#include "emunic/daemon/core/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/socket.h"
#include "emunic/base/yield_cost.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/core/watchdog.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/rights/rights.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/lookups.h"
#include "emunic/daemon/world/node.h"

#define CONTROL_EVERY  64u
#define BOUNCE_BYTES   65536u
#define PATIENCES      256u /* ports of different domains may share one: it is a guess anyway */
#define PATIENCE_MAX   3u
#define PATIENCE_PAYS  2u  /* half of it */
#define PATIENCE_TRIES 64u /* commands between two tries where it does not seem to pay */

struct emu_loop {
    struct emu_watch control_watch;
    struct emu_watch admin_watch;
    struct emu_watch signal_watch;
    struct emu_watch starter_watch;
    int control_fd;
    int admin_fd;
    int ready_fd;                  /* borrowed */
    struct emu_watchdog *watchdog; /* owned */
    uint32_t serves;
    uint64_t inside;                  /* our mark as last written: odd while it is up */
    uint64_t linger_until_ns;         /* 0: not lingering */
    struct emu_yield_backoff backoff; /* of staying awake (part.h) */
    uint8_t patience[PATIENCES];      /* by served port: has lingering behind its commands paid lately? */
};

/* ---- watches ---- */

static void control_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
    emu_connection_accept(server, server->loop->control_fd, false);
}

static void admin_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
    emu_connection_accept(server, server->loop->admin_fd, true);
}

static void signal_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    int signal = emu_watchdog_signal(server->loop->watchdog);

    (void)watch;
    (void)events;
    if (signal == 0)
        return;
    emu_log(EMU_LOG_INFO, "signal %d: stopping", signal);
    server->stops = true;
}

/* The starter has gone. Once there is a job its connection tells the same, and the job is ended first. */
static void starter_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)events;
    watch->is_dead = true;
    emu_server_unwatch(server, server->loop->ready_fd);
    if (LIST_EMPTY(&server->domains)) {
        emu_log(EMU_LOG_INFO, "the starter has gone: stopping");
        server->stops = true;
    }
}

/* ---- life ---- */

static int open_signals(struct emu_server *server)
{
    /* A channel whose owner has gone. */
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -errno;
    return emu_watchdog_start(&server->loop->watchdog);
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

static int open_descriptors(struct emu_server *server, const struct emu_complaint *why)
{
    int r;

    raise_descriptor_limit();
    r = emu_server_watches_create(server);
    if (r == 0)
        r = open_signals(server);
    if (r < 0)
        return r;
    server->loop->control_fd = emu_socket_listen(server->name, EMU_SOCKET_CONTROL);
    if (server->loop->control_fd == -EADDRINUSE)
        snprintf(why->text, why->bytes, "a server named '%s' is running already", server->name);
    if (server->loop->control_fd < 0)
        return server->loop->control_fd;
    server->loop->admin_fd = emu_socket_listen(server->name, EMU_SOCKET_ADMIN);
    if (server->loop->admin_fd < 0)
        return server->loop->admin_fd;
    server->loop->control_watch.ready = control_ready;
    server->loop->admin_watch.ready = admin_ready;
    server->loop->signal_watch.ready = signal_ready;
    server->spare_fd = fcntl(server->loop->control_fd, F_DUPFD_CLOEXEC, 0);
    r = emu_server_watch(server, server->loop->control_fd, EPOLLIN, &server->loop->control_watch);
    if (r == 0)
        r = emu_server_watch(server, server->loop->admin_fd, EPOLLIN, &server->loop->admin_watch);
    if (r == 0)
        r = emu_server_watch(server, emu_watchdog_fd(server->loop->watchdog), EPOLLIN, &server->loop->signal_watch);
    return r;
}

/* Before the watchdog, which is the first thread. */
static int begin_rights(struct emu_server *server, const struct emu_server_options *options)
{
    struct emu_rights_plan plan = options->rights;
    struct emu_rights *rights;
    int r;

    plan.server = options->name;
    r = emu_rights_begin(&plan, &rights);
    if (r == 0)
        server->slots[EMU_SERVER_RIGHTS] = rights;
    return r;
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    int r = emu_machine_load(options->machine, options->machine_dir, &server->machine, why->text, why->bytes);

    if (r < 0)
        return r;
    server->n_nids = emu_machine_n_nodes(server->machine);
    server->starts_routed = server->starts_routed || emu_amo_caches_are_used(server); /* emunic alone has the words */
    server->machine_spec = strdup(options->machine);
    server->nodes = calloc(server->n_nids, sizeof(*server->nodes));
    server->bounce.len_bytes = BOUNCE_BYTES;
    server->bounce.bytes = aligned_alloc(EMU_PAGE_BYTES, BOUNCE_BYTES);
    if (!server->machine_spec || !server->nodes || !server->bounce.bytes)
        return -ENOMEM;
    r = begin_rights(server, options);
    if (r == 0)
        r = open_descriptors(server, why);
    return r == 0 ? emu_parts_create(server, options, why) : r;
}

/* The starter hears that the sockets listen, and we when it ends. */
static int greet_starter(struct emu_server *server, const struct emu_server_options *options)
{
    if (options->ready_fd >= 0 && write(options->ready_fd, "r", 1) != 1)
        emu_log(options->stops_with_starter ? EMU_LOG_INFO : EMU_LOG_WARN, "nobody waits for this server to be ready");
    if (!options->stops_with_starter)
        return 0;
    server->loop->ready_fd = options->ready_fd;
    server->loop->starter_watch.ready = starter_ready;
    return emu_server_watch(server, server->loop->ready_fd, EPOLLRDHUP, &server->loop->starter_watch);
}

static struct emu_server *allocate(const struct emu_server_options *options, const struct emu_part *const *parts,
                                   uint32_t n_parts)
{
    struct emu_server *server = calloc(1, sizeof(*server));

    if (!server)
        return NULL;
    snprintf(server->name, sizeof(server->name), "%s", options->name);
    server->spare_fd = -1;
    server->n_hosts = 1;
    server->stops_with_last_job = options->stops_with_last_job;
    server->starts_routed = options->starts_routed || options->time;
    server->counts.yield_ns = emu_yield_measure_ns();
    /* Asked before there is a second thread: of a process with several the kernel waits for all processors, 10 ms. */
    (void)emu_quiesce_has_barrier();
    server->counts.started_ns = emu_clock_ns();
    LIST_INIT(&server->connections);
    LIST_INIT(&server->domains);
    LIST_INIT(&server->ports);
    LIST_INIT(&server->quiesces);
    emu_settings_read(&server->settings);
    server->loop = calloc(1, sizeof(*server->loop));
    server->parts = emu_part_table_make(parts, n_parts);
    if (!server->loop || !server->parts || emu_lookups_create(server) < 0) {
        free(server->loop);
        free((void *)(uintptr_t)server->parts);
        free(server);
        return NULL;
    }
    *server->loop = (struct emu_loop){ .control_fd = -1, .admin_fd = -1 };
    return server;
}

int emu_server_create(const struct emu_server_options *options, const struct emu_part *const *parts, uint32_t n_parts,
                      struct emu_complaint *why, struct emu_server **server_out)
{
    struct emu_server *server;
    int r;

    why->text[0] = '\0';
    if (!emu_server_name_is_valid(options->name)) {
        snprintf(why->text, why->bytes, "'%s' is not a server name: 1 to %d of A-Z a-z 0-9 . _ -", options->name,
                 EMU_SERVER_NAME_MAX);
        return -EINVAL;
    }
    server = allocate(options, parts, n_parts);
    if (!server)
        return -ENOMEM;
    r = create(server, options, why);
    if (r == 0)
        r = emu_rights_end(emu_rights_of(server));
    if (r == 0)
        r = greet_starter(server, options);
    if (r == 0) {
        *server_out = server;
        return 0;
    }
    if (!why->text[0])
        snprintf(why->text, why->bytes, "cannot start: %s", strerror(-r));
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
    emu_parts_destroy(server);
    emu_server_watches_destroy(server);
    close_fd(server->loop->control_fd);
    close_fd(server->loop->admin_fd);
    close_fd(server->spare_fd);
    for (uint32_t nid = 0; server->nodes && nid < server->n_nids; nid++)
        emu_node_destroy(server->nodes[nid]);
    free(server->nodes);
    free(server->bounce.bytes);
    free(server->machine_spec);
    emu_machine_destroy(server->machine);
    free((void *)(uintptr_t)server->parts);
    emu_lookups_destroy(server);
    emu_rights_destroy(emu_rights_of(server));
    emu_watchdog_stop(server->loop->watchdog);
    free(server->loop);
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

/*
 * Our mark, in every domain: up while we may touch memory of programs (client/park.c). Pairs with the barrier of who
 * parks memory: either we see it parked, or its owner sees the mark. As emu_gate_enter(): a plain store, where members
 * can run barriers on our core.
 */
static void step_in(struct emu_server *server)
{
    struct emu_domain *domain;
    bool is_fenced = false;

    server->loop->inside++;
    LIST_FOREACH(domain, &server->domains, link) {
        atomic_store_explicit(&domain->table->emunic_inside, server->loop->inside, memory_order_relaxed);
        is_fenced = is_fenced || (atomic_load_explicit(&domain->table->flags, memory_order_relaxed) & EMU_TABLE_FENCED);
    }
    if (is_fenced)
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst);
}

static void step_out(struct emu_server *server)
{
    struct emu_domain *domain;

    server->loop->inside++;
    LIST_FOREACH(domain, &server->domains, link)
        atomic_store_explicit(&domain->table->emunic_inside, server->loop->inside, memory_order_release);
}

static int look_at_control(struct emu_server *server, int wait_ms)
{
    bool has_seen_all;
    int n = emu_server_call_watches(server, wait_ms, step_in, &has_seen_all);

    emu_connection_expire(server);
    if (has_seen_all && server->counts.looks_wanted > 0)
        emu_parts_looked(server);
    step_out(server);
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
    uint64_t next_ns = emu_parts_next_ns(server);
    int r = 0;

    if (next_ns < wake_at_ns)
        wake_at_ns = next_ns;
    announce_sleep(server, 1);
    /* Pairs with the fence in emu_port_publish(): either we see the command, or its sender sees us asleep. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!emu_parts_have_work(server)) {
        server->counts.sleeps++;
        /* Nobody rings when he leaves the engine. */
        r = look_at_control(server, LIST_EMPTY(&server->quiesces) ? timeout_ms(wake_at_ns, emu_clock_ns()) : 1);
    }
    announce_sleep(server, 0);
    return r;
}

/* ---- lingering ---- */

static uint8_t *patience_of(struct emu_server *server)
{
    return &server->loop->patience[server->counts.served_port % PATIENCES];
}

/* A round has served `counts.served_port`. */
static void begin_to_linger(struct emu_server *server)
{
    if (*patience_of(server) >= PATIENCE_PAYS || ++server->loop->serves % PATIENCE_TRIES == 0)
        server->loop->linger_until_ns = emu_clock_ns() + server->settings.linger_ns;
    else
        server->loop->linger_until_ns = 0;
}

/* A round has found work. */
static void linger_paid(struct emu_server *server, uint8_t *patience)
{
    if (server->loop->linger_until_ns != 0 && *patience < PATIENCE_MAX)
        (*patience)++;
}

/* A round has found nothing. Look once more at once? */
static bool goes_on_lingering(struct emu_server *server)
{
    uint8_t *patience = patience_of(server);

    if (server->loop->linger_until_ns == 0)
        return false;
    if (emu_clock_ns() < server->loop->linger_until_ns) {
        emu_cpu_pause();
        return true;
    }
    server->loop->linger_until_ns = 0;
    if (*patience > 0)
        (*patience)--;
    return false;
}

/* Gives the core away once. */
static uint64_t yield_ns(void)
{
    uint64_t before_ns = emu_clock_ns();

    sched_yield();
    return emu_clock_ns() - before_ns;
}

static bool is_time_to_sleep(const struct emu_server *server, uint64_t idle_rounds)
{
    struct emu_yield_backoff *backoff = &server->loop->backoff;
    bool stays_awake = emu_parts_stay_awake(server);
    uint64_t took_ns;

    if (emu_yield_is_skipped(backoff))
        return true;
    took_ns = yield_ns();
    if (stays_awake)
        emu_yield_took(backoff, took_ns);
    return (took_ns > server->settings.slow_yield_ns || idle_rounds > server->settings.idle_yields) &&
           !emu_parts_stay_awake(server);
}

static unsigned run_round(struct emu_server *server)
{
    const struct emu_part_table *parts = server->parts;
    unsigned done = 0;

    for (uint32_t i = 0; i < parts->n_rounds; i++)
        done += parts->rounds[i](server);
    return done;
}

int emu_server_run(struct emu_server *server)
{
    uint64_t wake_at_ns = UINT64_MAX;
    uint64_t looked_at = 0;
    uint64_t idle = 0;
    int r = 0;

    emu_log(EMU_LOG_INFO, "server %s serves %s: %u nodes", server->name, emu_machine_name(server->machine),
            server->n_nids);
    emu_parts_served(server);
    while (!server->stops) {
        uint8_t *patience = patience_of(server);
        unsigned done;

        step_in(server);
        done = run_round(server);
        emu_quiesce_round(server);
        step_out(server);
        if (done > 0) {
            idle = 0;
            linger_paid(server, patience);
            begin_to_linger(server);
        } else if (goes_on_lingering(server)) {
            continue;
        }
        server->counts.rounds++;
        /* Counted from the last look, with and without work: rounds in step with a client would miss any fixed beat. */
        if (server->counts.rounds - looked_at >= CONTROL_EVERY || server->counts.looks_wanted > 0) {
            looked_at = server->counts.rounds;
            r = look_at_control(server, 0);
        } else if (done > 0) {
            continue;
        } else if (LIST_EMPTY(&server->ports)) {
            r = sleep_until_called(server, wake_at_ns);
        } else if (is_time_to_sleep(server, ++idle)) {
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
            emu_parts_served(server);
    }
    emu_log(EMU_LOG_INFO, "server %s ends", server->name);
    return r < 0 ? r : 0;
}

/* ---- the part ---- */

static void put_status(const struct emu_server *server, struct emu_status_host *row)
{
    row->words[EMU_STATUS_HOST_PID] = (uint64_t)getpid();
    row->words[EMU_STATUS_HOST_UPTIME_MS] = (emu_clock_ns() - server->counts.started_ns) / 1000000;
    row->words[EMU_STATUS_HOST_ROUNDS] = server->counts.rounds;
    row->words[EMU_STATUS_HOST_SLEEPS] = server->counts.sleeps;
    row->rights = emu_rights_of(server);
}

const struct emu_part emu_server_part = {
    .name = "server",
    .status = { .host = put_status },
};
