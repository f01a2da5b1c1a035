/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic serve`: the daemon in the foreground, until SIGTERM, SIGINT or SIGHUP.
 *
 * Domains given on the command line exist from the start and belong to no launcher: they end with the server. Each
 * has one rank slot on each of the first --nodes nodes, so programs that a user starts by hand have a place.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/socket.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/fault_file.h"
#include "emunic/cli/network_words.h"
#include "emunic/daemon/domain.h"
#include "emunic/daemon/network.h"
#include "emunic/daemon/server.h"

#define DEFAULT_MACHINE "aries"
#define DEFAULT_NODES   4
#define DOMAINS_MAX     64

static const char help[] =
    "usage: emunic serve [OPTION]...\n"
    "\n"
    "Run the daemon in the foreground. SIGTERM, SIGINT or SIGHUP ends it and the domains with it.\n"
    "\n"
    "  -s, --name NAME       name to find it by (default: user-<uid>)\n"
    "  -m, --machine SPEC    machine file or its name, overrides behind a colon (default: aries)\n"
    "  -d, --domain PTAG:COOKIE[:UID[:LIMIT]]\n"
    "                        make a communication domain for this user id (default: your own) and at most LIMIT\n"
    "                        processes (default: no limit); may be given several times\n"
    "  -N, --nodes N         nodes of such a domain: the first N of the machine, a rank each (default: 4)\n"
    "      --datapath PATH   routed: all traffic goes through the daemon; auto (default)\n"
    "      --faults FILE     inject the faults of this schedule into every domain, see emunic-fault(1)\n"
    "  -h, --help            this text\n"
    "\n"
    "Example:\n"
    "  emunic serve --machine aries:groups=4 --domain 100:0x5420000\n";

enum { OPTION_DATAPATH = EMU_OPTION_FIRST, OPTION_FAULTS };

static const struct option options[] = {
    { "name", required_argument, NULL, 's' },
    { "machine", required_argument, NULL, 'm' },
    { "domain", required_argument, NULL, 'd' },
    { "nodes", required_argument, NULL, 'N' },
    { "datapath", required_argument, NULL, OPTION_DATAPATH },
    { "faults", required_argument, NULL, OPTION_FAULTS },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

struct serve_plan {
    bool wants_help;            /* has been given */
    const char *name;
    const char *machine;
    bool is_routed;
    const char *faults_path;
    struct emu_fault_schedule schedule;
    uint32_t n_nodes;
    struct emu_domain_spec domains[DOMAINS_MAX];
    unsigned n_domains;
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
        if (n == 4 || !emu_cli_parse_number(strsep(&rest, ":"), 0, 0, most[n], &values[n]))
            return false;
        n++;
    }
    *spec_out = (struct emu_domain_spec){ .ptag = (uint32_t)values[0], .cookie = (uint32_t)values[1],
                                          .owner_uid = (uid_t)values[2], .member_limit = (uint32_t)values[3] };
    return n >= 2;
}

static int add_domain(struct serve_plan *plan, const char *text)
{
    if (plan->n_domains == DOMAINS_MAX)
        return emu_cli_usage("serve", "--domain: more than %d of them", DOMAINS_MAX);
    if (!parse_domain(text, &plan->domains[plan->n_domains]))
        return emu_cli_usage("serve", "--domain: '%s' is not PTAG:COOKIE[:UID[:LIMIT]] with a ptag of 0 to 255", text);
    plan->n_domains++;
    return EMU_EXIT_DONE;
}

static int parse(int argc, char **argv, struct serve_plan *plan)
{
    uint64_t number;
    int status = EMU_EXIT_DONE;
    int option;

    opterr = 0;
    while (status == EMU_EXIT_DONE && (option = getopt_long(argc, argv, "+:s:m:d:N:h", options, NULL)) != -1) {
        switch (option) {
        case 's':
            plan->name = optarg;
            break;
        case 'm':
            plan->machine = optarg;
            break;
        case 'd':
            status = add_domain(plan, optarg);
            break;
        case 'N':
            if (!emu_cli_parse_number(optarg, 10, 1, EMU_NID_MAX + 1, &number))
                return emu_cli_usage("serve", "--nodes: '%s' is not a number of nodes", optarg);
            plan->n_nodes = (uint32_t)number;
            break;
        case OPTION_DATAPATH:
            if (!emu_cli_parse_datapath(optarg, &plan->is_routed))
                return emu_cli_usage("serve", "--datapath: '%s' is neither routed nor auto", optarg);
            break;
        case OPTION_FAULTS:
            plan->faults_path = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            plan->wants_help = true;
            return EMU_EXIT_DONE;
        default:
            return emu_cli_bad_option("serve", option, argv);
        }
    }
    if (status == EMU_EXIT_DONE && optind < argc)
        return emu_cli_usage("serve", "'%s': takes options only", argv[optind]);
    if (status == EMU_EXIT_DONE && !emu_server_name_is_valid(plan->name))
        return emu_cli_usage("serve", "--name: '%s' is not a server name: 1 to %d of A-Z a-z 0-9 . _ -", plan->name,
                             EMU_SERVER_NAME_MAX);
    return status;
}

static int create_domains(struct emu_server *server, const struct serve_plan *plan)
{
    uint32_t n_nodes = plan->n_nodes ? plan->n_nodes : DEFAULT_NODES;
    struct emu_domain *domain;
    uint32_t *nids;
    int status = EMU_EXIT_DONE;

    if (plan->n_nodes == 0 && n_nodes > server->n_nids)
        n_nodes = server->n_nids;
    if (n_nodes > server->n_nids)
        return emu_cli_fail("serve", "--nodes: machine %s has %u nodes, not %u", plan->machine, server->n_nids,
                            n_nodes);
    nids = malloc(n_nodes * sizeof(*nids));
    if (!nids)
        return emu_cli_fail("serve", "out of memory");
    for (uint32_t i = 0; i < n_nodes; i++)
        nids[i] = i;
    for (unsigned i = 0; i < plan->n_domains && status == EMU_EXIT_DONE; i++) {
        struct emu_domain_spec spec = plan->domains[i];
        int r;

        spec.n_ranks = n_nodes;
        spec.rank_nids = nids;
        r = emu_domain_create(server, &spec, &domain);
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

int emu_verb_serve(int argc, char **argv)
{
    char name[32];
    struct serve_plan plan = { .name = name, .machine = DEFAULT_MACHINE };
    struct emu_server_options server_options;
    struct emu_server *server;
    char err[512];
    int status;
    int r;

    snprintf(name, sizeof(name), "user-%u", (unsigned)geteuid());
    status = parse(argc, argv, &plan);
    if (status != EMU_EXIT_DONE || plan.wants_help)
        return status;
    status = read_faults(&plan);
    if (status != EMU_EXIT_DONE)
        return status;
    server_options = (struct emu_server_options){ .name = plan.name, .machine = plan.machine,
                                                  .machine_dir = emu_cli_machine_dir(),
                                                  .starts_routed = plan.is_routed, .ready_fd = -1,
                                                  .faults = plan.schedule.rules,
                                                  .n_faults = plan.schedule.n_rules };
    r = emu_server_create(&server_options, &server, err, sizeof(err));
    if (r < 0) {
        emu_fault_schedule_free(&plan.schedule);
        return emu_cli_fail("serve", "%s", err);
    }
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
    emu_fault_schedule_free(&plan.schedule);
    return status;
}
