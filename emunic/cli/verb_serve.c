/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic serve`: the daemon in the foreground, until SIGTERM, SIGINT or SIGHUP.
 *
 * Domains given on the command line exist from the start and belong to no launcher: they end with the server. Each
 * has one rank slot on each of the first --nodes nodes, so programs that a user starts by hand have a place.
 *
 * With --hosts it is one host of several: each runs this command with the same hosts file and key, and domains are
 * given to the first alone, which makes them on all. Their nodes are dealt out in the order of the hosts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/number.h"
#include "emunic/base/socket.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/fault_file.h"
#include "emunic/cli/hosts_file.h"
#include "emunic/cli/network_words.h"
#include "emunic/cli/options.h"
#include "emunic/cli/time_words.h"
#include "emunic/daemon/bind/bind.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/users.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/network/network.h"
#include "emunic/daemon/daemon.h"

#define DEFAULT_MACHINE "aries"
#define DEFAULT_NODES   4
#define DOMAINS_MAX     64

struct serve_plan {
    const char *name;
    const char *machine;
    const char *bind;
    bool is_routed;
    bool is_not_head; /* of several hosts */
    const char *faults_path;
    struct emu_fault_schedule schedule;
    uint32_t n_nodes;
    struct emu_domain_spec domains[DOMAINS_MAX];
    unsigned n_domains;
    const char *hosts_path;
    const char *host;
    const char *key_path;
    const char *provider;
    uint64_t timeout_s;
    bool is_secure;
    struct emu_hosts_file hosts;
    char module[PATH_MAX];
    uint64_t user_limits[EMU_USER_KINDS]; /* 0: as the settings say */
    struct emu_cli_time time;
    char mover[PATH_MAX];
    uint8_t key[EMU_KEY_FILE_MAX];
    const char *names[EMU_HOSTS_FILE_MAX];
    const char *addresses[EMU_HOSTS_FILE_MAX];
    const char *ports[EMU_HOSTS_FILE_MAX];
};

/* PTAG:COOKIE[:UID[:LIMIT]] */
static bool parse_domain(const char *text, struct emu_domain_spec *spec_out)
{
    static const uint64_t most[] = { 255, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX };
    uint64_t values[4] = { 0, 0, geteuid(), 0 };
    char copy[80];
    char *rest = copy;
    unsigned n = 0;

    if (strlen(text) >= sizeof(copy))
        return false;
    strcpy(copy, text);
    while (rest) {
        if (n == 4 || !emu_parse_number(strsep(&rest, ":"), 0, 0, most[n], &values[n]))
            return false;
        n++;
    }
    *spec_out = (struct emu_domain_spec){ .ptag = (uint32_t)values[0],
                                          .cookie = (uint32_t)values[1],
                                          .owner_uid = (uid_t)values[2],
                                          .member_limit = (uint32_t)values[3] };
    return n >= 2;
}

static int add_domain(void *target, const char *name, const char *text)
{
    struct serve_plan *plan = target;

    if (plan->n_domains == DOMAINS_MAX)
        return emu_cli_usage("serve", "%s: more than %d of them", name, DOMAINS_MAX);
    if (!parse_domain(text, &plan->domains[plan->n_domains]))
        return emu_cli_usage("serve", "%s: '%s' is not PTAG:COOKIE[:UID[:LIMIT]] with a ptag of 0 to 255", name, text);
    plan->n_domains++;
    return EMU_EXIT_DONE;
}

/* KIND=N */
static int add_user_limit(void *target, const char *name, const char *text)
{
    struct serve_plan *plan = target;
    const char *number = strchr(text, '=');

    for (unsigned i = 0; number && i < EMU_USER_KINDS; i++) {
        if (strlen(emu_user_words[i]) == (size_t)(number - text) &&
            strncmp(emu_user_words[i], text, (size_t)(number - text)) == 0 &&
            emu_parse_number(number + 1, 0, 1, INT64_MAX, &plan->user_limits[i]))
            return EMU_EXIT_DONE;
    }
    return emu_cli_usage("serve",
                         "%s: '%s' is not KIND=N with connections, ports, registrations, pages, datagrams, regions or "
                         "transfers",
                         name, text);
}

static const struct emu_option options[] = {
    { "name", 's', "NAME", "name to find it by (default: user-<uid>)", EMU_OPTION_TEXT(struct serve_plan, name) },
    { "machine", 'm', "SPEC", "machine file or its name, overrides behind a colon (default: aries)",
      EMU_OPTION_TEXT(struct serve_plan, machine) },
    { "domain", 'd', "PTAG:COOKIE[:UID[:LIMIT]]",
      "make a communication domain for this user id (default: your own) and at most LIMIT processes (default: no "
      "limit); may be given several times",
      EMU_OPTION_CALL(add_domain) },
    { "nodes", 'N', "N", "nodes of such a domain: the first N of the machine, a rank each (default: 4)",
      EMU_OPTION_NUMBER(struct serve_plan, n_nodes, 1, EMU_NID_MAX + 1), .unit = "nodes" },
    { "user-limit", 0, "KIND=N",
      "what one user may have, instead of EMUNIC_USER_KIND; kinds: connections, ports, registrations, pages, "
      "datagrams, regions, transfers; may be given several times",
      EMU_OPTION_CALL(add_user_limit) },
    { "bind", 0, "WHERE", "processors that the daemon runs on: auto (default), none, or a list as 0-3,8",
      EMU_OPTION_TEXT(struct serve_plan, bind), .is_valid = emu_bind_is_valid, .refusal = EMU_CLI_BIND_REFUSAL },
    { "datapath", 0, "PATH", "routed: all traffic goes through the daemon; auto (default)",
      EMU_OPTION_WORD(struct serve_plan, is_routed, emu_cli_datapaths) },
    { "faults", 0, "FILE", "inject the faults of this schedule into every domain, see emunic-fault(1)",
      EMU_OPTION_TEXT(struct serve_plan, faults_path) },
    EMU_CLI_TIME_ROWS(struct serve_plan, time),
    { "jobs", 0, "N", "in virtual time: the first N jobs begin together, when all are at their first fence",
      EMU_OPTION_NUMBER(struct serve_plan, time.options.n_jobs, 1, DOMAINS_MAX), .unit = "jobs" },
    { "paths", 0, NULL, "in virtual time: keep the paths that packets take, for `emunic links --paths`",
      EMU_OPTION_SET(struct serve_plan, time.options.keeps_paths) },
    { "hosts", 0, "FILE",
      "be one host of several: a line for each, NAME ADDRESS[:PORT] [NODES]; the first is the head, which alone is "
      "given domains and faults",
      EMU_OPTION_TEXT(struct serve_plan, hosts_path) },
    { "host", 0, "NAME", "which of them this is (default: the name of this host)",
      EMU_OPTION_TEXT(struct serve_plan, host) },
    { "key-file", 0, "FILE", "what all hosts know and nobody else: 16 bytes or more that only you may read",
      EMU_OPTION_TEXT(struct serve_plan, key_path) },
    { "provider", 0, "NAME", "of libfabric (default: the best that is there)",
      EMU_OPTION_TEXT(struct serve_plan, provider) },
    { "peer-timeout", 0, "S", "a host that is silent for S seconds is lost, 1 to 3600 (default: 5)",
      EMU_OPTION_NUMBER(struct serve_plan, timeout_s, 1, 3600), .unit = "seconds" },
    { "secure", 0, NULL, "encrypt all that hosts send to each other; of all hosts or of none",
      EMU_OPTION_SET(struct serve_plan, is_secure) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "serve",
    .usage = "emunic serve [OPTION]...",
    .about = "Run the daemon in the foreground. SIGTERM, SIGINT or SIGHUP ends it and the domains with it.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic serve --machine aries:groups=4 --domain 100:0x5420000\n",
};

static int parse(int argc, char **argv, struct serve_plan *plan)
{
    int status = emu_options_parse(&command, argc, argv, plan, NULL);

    if (status != EMU_PROCEED)
        return status;
    if (!emu_server_name_is_valid(plan->name))
        return emu_cli_usage("serve", "--name: '%s' is not a server name: 1 to %d of A-Z a-z 0-9 . _ -", plan->name,
                             EMU_SERVER_NAME_MAX);
    if (!plan->hosts_path && (plan->host || plan->key_path || plan->provider || plan->timeout_s || plan->is_secure))
        return emu_cli_usage("serve", "--host, --key-file, --provider, --peer-timeout and --secure need --hosts");
    if (plan->hosts_path && !plan->key_path)
        return emu_cli_usage("serve", "--hosts needs --key-file");
    if (plan->time.options.n_jobs && !plan->time.is_virtual)
        return emu_cli_usage("serve", "--jobs is for --time virtual");
    if (plan->time.options.keeps_paths && !plan->time.is_virtual)
        return emu_cli_usage("serve", "--paths is for --time virtual");
    if (plan->time.is_virtual && plan->hosts_path)
        return emu_cli_usage("serve", "--time virtual is for one host, not with --hosts");
    return EMU_PROCEED;
}

/* Its number in the hosts file. */
static int find_host(const struct serve_plan *plan, uint32_t *own_out)
{
    char here[HOST_NAME_MAX + 1] = "";
    const char *wanted = plan->host ? plan->host : here;

    if (!plan->host && gethostname(here, sizeof(here) - 1) < 0)
        return emu_cli_fail("serve", "--host: %s", strerror(errno));
    for (uint32_t i = 0; i < plan->hosts.n; i++) {
        if (strcmp(plan->hosts.names[i], wanted) == 0) {
            *own_out = i;
            return 0;
        }
    }
    return emu_cli_fail("serve", "--host: no host '%s' in %s", wanted, plan->hosts_path);
}

static int read_key(struct serve_plan *plan, uint32_t *length_out)
{
    int r = emu_key_file_read(plan->key_path, plan->key, length_out);

    if (r == -EPERM)
        return emu_cli_fail("serve", "--key-file: others may read %s: make its mode 0600", plan->key_path);
    if (r == -EINVAL)
        return emu_cli_fail("serve", "--key-file: %s has not %u to %u bytes", plan->key_path, EMU_TRANSPORT_KEY_MIN,
                            EMU_KEY_FILE_MAX);
    return r < 0 ? emu_cli_fail("serve", "--key-file: %s: %s", plan->key_path, strerror(-r)) : EMU_EXIT_DONE;
}

/* Pointers go into the plan. */
static int read_hosts(struct serve_plan *plan, struct emu_hosts_options *hosts_out)
{
    struct emu_hosts_options hosts = { .names = plan->names,
                                       .module = plan->module,
                                       .provider = plan->provider,
                                       .key = plan->key,
                                       .timeout_ns = plan->timeout_s * 1000000000ull,
                                       .is_secure = plan->is_secure,
                                       .peer_nodes = plan->addresses,
                                       .peer_services = plan->ports };
    char err[512];
    int status;

    if (emu_hosts_file_read(plan->hosts_path, &plan->hosts, err, sizeof(err)) < 0)
        return emu_cli_fail("serve", "--hosts: %s", err);
    status = find_host(plan, &hosts.own);
    if (status == EMU_EXIT_DONE)
        status = read_key(plan, &hosts.key_bytes);
    if (status != EMU_EXIT_DONE)
        return status;
    if (emu_cli_transport(plan->module) < 0)
        return emu_cli_fail("serve", "%s is not there, or cannot be read", plan->module);
    if (hosts.own != EMU_HOST_HEAD && plan->n_domains > 0)
        return emu_cli_fail("serve", "--domain: domains are given to the first host, %s", plan->hosts.names[0]);
    if (hosts.own != EMU_HOST_HEAD && plan->faults_path)
        return emu_cli_fail("serve", "--faults: faults are given to the first host, %s", plan->hosts.names[0]);
    for (uint32_t i = 0; i < plan->hosts.n; i++) {
        plan->names[i] = plan->hosts.names[i];
        plan->addresses[i] = plan->hosts.addresses[i];
        plan->ports[i] = plan->hosts.ports[i];
    }
    plan->is_not_head = hosts.own != EMU_HOST_HEAD;
    hosts.n = plan->hosts.n;
    hosts.n_nodes = plan->hosts.n_nodes[0] ? plan->hosts.n_nodes : NULL;
    hosts.node = plan->addresses[hosts.own];
    hosts.service = plan->ports[hosts.own];
    *hosts_out = hosts;
    return EMU_EXIT_DONE;
}

/* How many of n nodes a host gets: as many as its line says, or as many as the others. */
static uint32_t share_of(const struct emu_server *server, uint32_t host, uint32_t n)
{
    uint32_t n_hosts = emu_hosts_count(server);

    if (emu_hosts_n_nodes(server, host) > 0)
        return emu_hosts_n_nodes(server, host);
    return n / n_hosts + (host < n % n_hosts);
}

/* Nodes in order, dealt out to the hosts in order. False: they are not as many. */
static bool deal_nodes(const struct emu_server *server, uint32_t n, uint32_t *hosts)
{
    uint32_t at = 0;

    for (uint32_t host = 0; host < emu_hosts_count(server); host++) {
        for (uint32_t i = share_of(server, host, n); i > 0; i--) {
            if (at == n)
                return false;
            hosts[at++] = host;
        }
    }
    return at == n;
}

static uint32_t count_nodes(const struct emu_server *server)
{
    uint32_t n = 0;

    for (uint32_t host = 0; host < emu_hosts_count(server); host++)
        n += emu_hosts_n_nodes(server, host);
    return n > 0 ? n : emu_hosts_count(server) > DEFAULT_NODES ? emu_hosts_count(server) : DEFAULT_NODES;
}

static int create_domains(struct emu_server *server, const struct serve_plan *plan)
{
    uint32_t n_nodes = plan->n_nodes ? plan->n_nodes : count_nodes(server);
    struct emu_domain *domain;
    uint32_t *hosts;
    uint32_t *nids;
    int status = EMU_EXIT_DONE;

    if (plan->n_nodes == 0 && n_nodes > server->n_nids)
        n_nodes = server->n_nids;
    if (n_nodes > server->n_nids)
        return emu_cli_fail("serve", "--nodes: machine %s has %u nodes, not %u", plan->machine, server->n_nids,
                            n_nodes);
    nids = malloc(2 * n_nodes * sizeof(*nids));
    if (!nids)
        return emu_cli_fail("serve", "out of memory");
    hosts = nids + n_nodes;
    for (uint32_t i = 0; i < n_nodes; i++)
        nids[i] = i;
    if (!deal_nodes(server, n_nodes, hosts)) {
        free(nids);
        return emu_cli_fail("serve", "--nodes: the hosts do not have %u nodes, but %u", n_nodes, count_nodes(server));
    }
    for (unsigned i = 0; i < plan->n_domains && status == EMU_EXIT_DONE; i++) {
        struct emu_domain_spec spec = plan->domains[i];
        int r;

        spec.n_ranks = n_nodes;
        spec.rank_nids = nids;
        spec.rank_hosts = hosts;
        r = emu_host_domains_make(server, &spec, false, &domain);
        if (r < 0)
            status = emu_cli_fail("serve", "--domain: ptag %u cookie 0x%08x: %s", spec.ptag, spec.cookie,
                                  r == -EEXIST ? "the cookie is taken" : strerror(-r));
    }
    free(nids);
    return status;
}

static int read_faults(struct serve_plan *plan)
{
    char err[512];

    if (plan->faults_path && emu_fault_file_read(plan->faults_path, &plan->schedule, err, sizeof(err)) < 0)
        return emu_cli_fail("serve", "--faults: %s", err);
    return EMU_EXIT_DONE;
}

static int change_network(struct emu_server *server, const struct serve_plan *plan)
{
    struct emu_msg_network *changes;
    char err[512];
    int r;

    if (plan->schedule.n_events == 0)
        return EMU_EXIT_DONE;
    if (emu_network_events_read(server->machine, &plan->schedule, &changes, err, sizeof(err)) < 0)
        return emu_cli_fail("serve", "--faults: %s: %s", plan->faults_path, err);
    r = 0;
    for (uint32_t i = 0; i < plan->schedule.n_events && r == 0; i++)
        r = emu_network_change(server, &changes[i]);
    free(changes);
    return r < 0 ? emu_cli_fail("serve", "--faults: network: %s", strerror(-r)) : EMU_EXIT_DONE;
}

/* Found here, a bad machine costs one line and is wrong usage. */
static int check_machine(const struct serve_plan *plan)
{
    struct emu_machine *machine;
    int status = emu_cli_load_machine("serve", "--machine", plan->machine, &machine);

    if (status != EMU_EXIT_DONE)
        return status;
    status = emu_cli_time_check("serve", &plan->time, machine);
    emu_machine_destroy(machine);
    return status;
}

/*
 * An emunic of root that is there for users touches no memory itself. Which users there will be the head alone knows.
 */
static struct emu_rights_plan rights_of(struct serve_plan *plan)
{
    struct emu_rights_plan rights = { .is_confined = true, .module = plan->hosts_path ? plan->module : NULL };

    for (unsigned i = 0; i < plan->n_domains; i++)
        rights.serves_others |= plan->domains[i].owner_uid != geteuid();
    rights.serves_others |= plan->is_not_head;
    rights.mover = rights.serves_others && emu_cli_mover(plan->mover) == 0 ? plan->mover : NULL;
    return rights;
}

static void free_plan(struct serve_plan *plan)
{
    explicit_bzero(plan->key, sizeof(plan->key));
    emu_fault_schedule_free(&plan->schedule);
    emu_hosts_file_free(&plan->hosts);
    emu_cli_time_free(&plan->time);
}

int emu_verb_serve(int argc, char **argv)
{
    char name[32];
    struct serve_plan plan = { .name = name, .machine = DEFAULT_MACHINE };
    struct emu_hosts_options hosts;
    struct emu_server_options server_options;
    struct emu_server *server;
    char err[512];
    int status;
    int r;

    snprintf(name, sizeof(name), "user-%u", (unsigned)geteuid());
    status = parse(argc, argv, &plan);
    if (status != EMU_PROCEED)
        return status;
    status = emu_cli_time_read("serve", &plan.time);
    if (status == EMU_EXIT_DONE)
        status = check_machine(&plan);
    if (status == EMU_EXIT_DONE)
        status = read_faults(&plan);
    if (status == EMU_EXIT_DONE && plan.hosts_path)
        status = read_hosts(&plan, &hosts);
    if (status != EMU_EXIT_DONE) {
        free_plan(&plan);
        return status;
    }
    server_options = (struct emu_server_options){ .name = plan.name,
                                                  .machine = plan.machine,
                                                  .machine_dir = emu_cli_machine_dir(),
                                                  .rights = rights_of(&plan),
                                                  .bind = plan.bind,
                                                  .starts_routed = plan.is_routed,
                                                  .ready_fd = -1,
                                                  .faults = plan.schedule.rules,
                                                  .n_faults = plan.schedule.n_rules,
                                                  .hosts = plan.hosts_path ? &hosts : NULL,
                                                  .time = plan.time.is_virtual ? &plan.time.options : NULL,
                                                  .user_limits = plan.user_limits };
    r = emu_daemon_create(&server_options, &server, err, sizeof(err));
    if (r < 0) {
        free_plan(&plan);
        return emu_cli_fail("serve", "%s", err);
    }
    explicit_bzero(plan.key, sizeof(plan.key));
    status = change_network(server, &plan);
    if (status == EMU_EXIT_DONE)
        status = create_domains(server, &plan);
    if (status == EMU_EXIT_DONE) {
        fprintf(stderr, "emunic serve: server %s is ready: pid %d, machine %s, %u nodes\n", plan.name, (int)getpid(),
                plan.machine, server->n_nids);
        r = emu_server_run(server);
        if (r < 0)
            status = emu_cli_fail("serve", "%s", strerror(-r));
    }
    emu_server_destroy(server);
    free_plan(&plan);
    return status;
}
