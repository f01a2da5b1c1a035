/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic run`: from the command line to a plan, and from the job's counters to tables.
 *
 * Everything that can be wrong with the command line, the machine, the program or this installation is found before
 * the first process starts. Rank r gets node r / ppn of the placement.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/number.h"
#include "emunic/cli/allocation.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/fault_file.h"
#include "emunic/cli/job.h"
#include "emunic/cli/network_words.h"
#include "emunic/cli/program.h"
#include "emunic/cli/report.h"
#include "emunic/daemon/bind/bind.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/placement.h"

#define DEFAULT_MACHINE "aries"
#define SCHEMA          1
#define RANKS_MAX       65536

static const char help[] =
    "usage: emunic run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Run a program on emulated nodes. Returns the status of the first rank that fails, 128 + N for signal N.\n"
    "\n"
    "  -n, --ranks N         processes (default: 1; with --hosts one per slot)\n"
    "      --ppn N           processes per node (default: 1)\n"
    "  -m, --machine SPEC    machine file or its name, overrides behind a colon (default: aries)\n"
    "      --place POLICY    nodes to take: linear (default), scatter, random:SEED\n"
    "      --first-nid N     lowest node to take (default: 0; 1 for a program that is linked with Portals)\n"
    "      --hosts LIST      hosts to run on, this one first: a,b:8,c with ranks per host; @FILE; slurm, for the\n"
    "                        allocation that this is; or mpirun, for the one that this is a process of\n"
    "      --provider NAME   of libfabric, between hosts (default: the best that is there, see `emunic doctor`)\n"
    "      --peer-timeout S  a host that is silent for S seconds is lost, 1 to 3600 (default: 5)\n"
    "  -s, --server NAME     use a running daemon instead of starting one, and its machine\n"
    "      --members N       processes that may attach to the job's domain (default: as many as ranks; 0: no limit)\n"
    "      --bind WHERE      processors that emunic runs on: auto (default), none, or a list as 0-3,8; not the ranks'\n"
    "      --datapath PATH   routed: all traffic goes through the daemon; auto (default)\n"
    "      --aslr            addresses of the ranks stay random; else they are the same in every rank\n"
    "      --real-hostname   ranks see the host's name; else each node has one of its own, nid00012 and the like\n"
    "      --faults FILE     inject the faults of this schedule, see emunic-fault(1)\n"
    "  -x VAR[=VALUE]        environment variable for mpirun to pass on; all of yours reach the ranks anyway\n"
    "      --paths           afterwards print each flow with the path of its messages\n"
    "      --links           afterwards print what each link carried\n"
    "      --json FILE       afterwards write both, and the plan, to this file as one JSON object\n"
    "  -q, --quiet           no progress\n"
    "      --verbose         with mpirun's explanations of what went wrong\n"
    "  -h, --help            this text\n"
    "\n"
    "Example:\n"
    "  emunic run -n 8 --ppn 2 --machine aries:groups=4 --place scatter --paths -- ./gni_program its arguments\n";

enum {
    OPTION_PPN = EMU_OPTION_FIRST,
    OPTION_HOSTS,
    OPTION_PROVIDER,
    OPTION_PEER_TIMEOUT,
    OPTION_PLACE,
    OPTION_FIRST_NID,
    OPTION_MEMBERS,
    OPTION_BIND,
    OPTION_DATAPATH,
    OPTION_ASLR,
    OPTION_REAL_HOSTNAME,
    OPTION_FAULTS,
    OPTION_PATHS,
    OPTION_LINKS,
    OPTION_JSON,
    OPTION_VERBOSE,
};

static const struct option options[] = {
    { "ranks", required_argument, NULL, 'n' },
    { "np", required_argument, NULL, 'n' },
    { "ppn", required_argument, NULL, OPTION_PPN },
    { "machine", required_argument, NULL, 'm' },
    { "place", required_argument, NULL, OPTION_PLACE },
    { "first-nid", required_argument, NULL, OPTION_FIRST_NID },
    { "hosts", required_argument, NULL, OPTION_HOSTS },
    { "provider", required_argument, NULL, OPTION_PROVIDER },
    { "peer-timeout", required_argument, NULL, OPTION_PEER_TIMEOUT },
    { "server", required_argument, NULL, 's' },
    { "members", required_argument, NULL, OPTION_MEMBERS },
    { "bind", required_argument, NULL, OPTION_BIND },
    { "datapath", required_argument, NULL, OPTION_DATAPATH },
    { "aslr", no_argument, NULL, OPTION_ASLR },
    { "real-hostname", no_argument, NULL, OPTION_REAL_HOSTNAME },
    { "faults", required_argument, NULL, OPTION_FAULTS },
    { "paths", no_argument, NULL, OPTION_PATHS },
    { "links", no_argument, NULL, OPTION_LINKS },
    { "json", required_argument, NULL, OPTION_JSON },
    { "quiet", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, OPTION_VERBOSE },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

struct run {
    bool wants_help;  /* has been given */
    uint32_t n_ranks; /* 0: not given */
    uint32_t ppn;
    uint32_t n_nodes;
    const char *machine; /* as given, or NULL */
    char *machine_spec;  /* owned: given, the server's, or the default */
    const char *place;
    bool has_first_nid;
    uint32_t first_nid;
    bool is_portals; /* the program */
    const char *server;
    const char *hosts_text;           /* as given, or NULL */
    struct emu_cli_hosts hosts;       /* owned */
    struct emu_allocation allocation; /* owned */
    uint32_t *rank_hosts;             /* owned */
    const char *json_path;
    const char *faults_path;
    struct emu_fault_schedule schedule;
    struct emu_msg_network *changes; /* owned */
    FILE *json_file;                 /* owned */
    bool has_members;
    bool prints_paths;
    bool prints_links;
    uint32_t *rank_nids; /* owned */
    char *exports[64];
    char *bind; /* owned: the words of argv are overwritten */
    char mpirun[PATH_MAX];
    char wrapper[PATH_MAX];
    char host_program[PATH_MAX];
    char module[PATH_MAX];
    struct emu_job_plan plan;
};

/* ---- command line ---- */

static int set_count(uint32_t *count, const char *text, uint64_t min, uint64_t max, const char *option,
                     const char *what)
{
    uint64_t number;

    if (!emu_parse_number(text, 10, min, max, &number))
        return emu_cli_usage("run", "%s: '%s' is not a number of %s from %llu to %llu", option, text, what,
                             (unsigned long long)min, (unsigned long long)max);
    *count = (uint32_t)number;
    return EMU_EXIT_DONE;
}

static int add_export(struct run *run, char *variable)
{
    if (variable[0] == '\0' || variable[0] == '=')
        return emu_cli_usage("run", "-x: '%s' is not VAR or VAR=VALUE", variable);
    if (run->plan.n_exports == sizeof(run->exports) / sizeof(run->exports[0]))
        return emu_cli_usage("run", "-x: more than %u of them", run->plan.n_exports);
    run->exports[run->plan.n_exports++] = variable;
    return EMU_EXIT_DONE;
}

static int take_bind(struct run *run, const char *text)
{
    if (!emu_bind_is_valid(text))
        return emu_cli_usage("run", "--bind: '%s' is neither auto, none nor a list of processors", text);
    free(run->bind);
    run->bind = strdup(text);
    run->plan.bind = run->bind;
    return run->bind ? EMU_EXIT_DONE : emu_cli_fail("run", "out of memory");
}

static int take_option(struct run *run, int option, char **argv)
{
    switch (option) {
    case 'n':
        return set_count(&run->n_ranks, optarg, 1, RANKS_MAX, "-n", "ranks");
    case OPTION_PPN:
        return set_count(&run->ppn, optarg, 1, RANKS_MAX, "--ppn", "ranks per node");
    case 'm':
        run->machine = optarg;
        return EMU_EXIT_DONE;
    case OPTION_PLACE:
        run->place = optarg;
        return EMU_EXIT_DONE;
    case OPTION_FIRST_NID:
        run->has_first_nid = true;
        return set_count(&run->first_nid, optarg, 0, INT32_MAX, "--first-nid", "a node");
    case OPTION_HOSTS:
        run->hosts_text = optarg;
        return EMU_EXIT_DONE;
    case OPTION_PROVIDER:
        run->plan.provider = optarg;
        return EMU_EXIT_DONE;
    case OPTION_PEER_TIMEOUT:
        return set_count(&run->plan.peer_timeout_s, optarg, 1, 3600, "--peer-timeout", "seconds");
    case 's':
        run->server = optarg;
        if (!emu_server_name_is_valid(optarg))
            return emu_cli_usage("run", "--server: '%s' is not a server name", optarg);
        return EMU_EXIT_DONE;
    case OPTION_MEMBERS:
        run->has_members = true;
        return set_count(&run->plan.member_limit, optarg, 0, UINT32_MAX, "--members", "processes");
    case OPTION_BIND:
        return take_bind(run, optarg);
    case OPTION_DATAPATH:
        if (!emu_cli_parse_datapath(optarg, &run->plan.is_routed))
            return emu_cli_usage("run", "--datapath: '%s' is neither routed nor auto", optarg);
        return EMU_EXIT_DONE;
    case OPTION_ASLR:
        run->plan.keeps_aslr = true;
        return EMU_EXIT_DONE;
    case OPTION_REAL_HOSTNAME:
        run->plan.keeps_hostname = true;
        return EMU_EXIT_DONE;
    case OPTION_FAULTS:
        run->faults_path = optarg;
        return EMU_EXIT_DONE;
    case 'x':
        return add_export(run, optarg);
    case OPTION_PATHS:
        run->prints_paths = true;
        return EMU_EXIT_DONE;
    case OPTION_LINKS:
        run->prints_links = true;
        return EMU_EXIT_DONE;
    case OPTION_JSON:
        run->json_path = optarg;
        return EMU_EXIT_DONE;
    case 'q':
        run->plan.is_quiet = true;
        return EMU_EXIT_DONE;
    case OPTION_VERBOSE:
        run->plan.is_verbose = true;
        return EMU_EXIT_DONE;
    case 'h':
        fputs(help, stdout);
        run->wants_help = true;
        return EMU_EXIT_DONE;
    default:
        return emu_cli_bad_option("run", option, argv, options);
    }
}

static int parse(struct run *run, int argc, char **argv)
{
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:n:m:s:x:qh", options, NULL)) != -1) {
        int status = take_option(run, option, argv);

        if (status != EMU_EXIT_DONE || run->wants_help)
            return status;
    }
    if (optind == argc)
        return emu_cli_usage("run", "the program is missing");
    if (run->hosts_text && run->server)
        return emu_cli_usage("run", "--hosts and --server exclude each other");
    if (run->bind && run->server)
        return emu_cli_usage("run", "--bind and --server exclude each other: give it to `emunic serve`");
    if ((run->plan.provider || run->plan.peer_timeout_s) && !run->hosts_text)
        return emu_cli_usage("run", "--provider and --peer-timeout need --hosts");
    run->plan.program = argv + optind;
    return EMU_EXIT_DONE;
}

/* ---- plan ---- */

static int read_hosts(struct run *run)
{
    bool is_mpirun = strcmp(run->hosts_text, "mpirun") == 0;
    char program[PATH_MAX];
    char err[512];
    int r;

    if (is_mpirun) {
        if (!emu_allocation_is_there())
            return emu_cli_fail("run", "--hosts: this is no process of an mpirun: PMIX_RANK is not set");
        r = emu_cli_allocation(program);
        if (r == 0)
            r = emu_allocation_enter(program, &run->allocation);
        if (r < 0)
            return emu_cli_fail("run", "%s: %s", program, strerror(-r));
        r = emu_cli_hosts_read_lines(run->allocation.hosts, &run->hosts, err, sizeof(err));
    } else {
        r = emu_cli_hosts_read(run->hosts_text, &run->hosts, err, sizeof(err));
    }
    return r < 0 ? emu_cli_fail("run", "--hosts: %s", err) : EMU_EXIT_DONE;
}

/* With more than one: also what its emunics need. */
static int choose_hosts(struct run *run)
{
    char err[512];
    uint64_t slots = 1;
    int r;

    if (run->hosts_text && read_hosts(run) != EMU_EXIT_DONE)
        return EMU_EXIT_FAILED;
    if (run->hosts_text)
        slots = emu_cli_hosts_slots(&run->hosts);
    if (slots > RANKS_MAX)
        return emu_cli_fail("run", "--hosts: more than %d slots", RANKS_MAX);
    if (run->n_ranks == 0)
        run->n_ranks = (uint32_t)slots;
    if (!run->hosts_text)
        return EMU_EXIT_DONE;
    run->rank_hosts = malloc(run->n_ranks * sizeof(*run->rank_hosts));
    if (!run->rank_hosts)
        return emu_cli_fail("run", "out of memory");
    if (emu_cli_hosts_deal(&run->hosts, run->n_ranks, run->ppn, run->rank_hosts, err, sizeof(err)) < 0)
        return emu_cli_fail("run", "--hosts: %s", err);
    if (run->hosts.n < 2)
        return EMU_EXIT_DONE;
    r = emu_cli_host(run->host_program);
    if (r < 0)
        return emu_cli_fail("run", "%s: %s", run->host_program, strerror(-r));
    r = emu_cli_transport(run->module);
    if (r < 0)
        return emu_cli_fail("run", "%s: %s", run->module, strerror(-r));
    run->plan.hosts = &run->hosts;
    run->plan.rank_hosts = run->rank_hosts;
    run->plan.host_program = run->host_program;
    run->plan.module = run->module;
    return EMU_EXIT_DONE;
}

static int find_programs(struct run *run)
{
    char path[PATH_MAX];
    int r;

    r = emu_cli_find_program("mpirun", run->mpirun);
    if (r < 0)
        return emu_cli_fail("run", "mpirun is not in PATH (%s); it comes with Open MPI, on Debian in openmpi-bin",
                            strerror(-r));
    r = emu_cli_wrapper(run->wrapper);
    if (r < 0)
        return emu_cli_fail("run", "%s: %s", run->wrapper, strerror(-r));
    r = emu_cli_find_program(run->plan.program[0], path);
    if (r < 0)
        return emu_cli_fail("run", "%s: %s", run->plan.program[0], r == -ENOENT ? "no such program" : strerror(-r));
    run->is_portals = emu_program_needs_portals(path);
    run->plan.mpirun = run->mpirun;
    run->plan.wrapper = run->wrapper;
    return EMU_EXIT_DONE;
}

/* The machine that a running server emulates, unless one was given. */
static int choose_machine(struct run *run)
{
    const char *spec = run->machine ? run->machine : DEFAULT_MACHINE;
    json_t *answers = NULL;
    int status;

    if (run->server && !run->machine) {
        status = emu_cli_collect("run", run->server, EMU_MSG_STATUS, &answers);
        if (status != EMU_EXIT_DONE)
            return status;
        if (json_unpack(answers, "{s[{ss}]}", "servers", "machine_spec", &spec) < 0) {
            json_decref(answers);
            return emu_cli_fail("run", "server '%s' does not tell its machine; use --machine", run->server);
        }
    }
    run->machine_spec = strdup(spec);
    json_decref(answers);
    return run->machine_spec ? EMU_EXIT_DONE : emu_cli_fail("run", "out of memory");
}

/* Old Portals programs take node 0 for themselves. Where the machine has no node to spare they get it all the same. */
static void choose_first_nid(struct run *run, const struct emu_machine *machine)
{
    if (!run->has_first_nid)
        run->first_nid = run->is_portals && run->n_nodes < emu_machine_n_nodes(machine) ? 1 : 0;
}

/* The placement without the nodes below the first one: of as many nodes more, the first that remain. Caller frees. */
static int choose_nodes(const struct run *run, const struct emu_machine *machine, uint32_t **nids_out)
{
    uint64_t n = (uint64_t)run->n_nodes + run->first_nid;
    uint32_t n_left = 0;
    uint32_t *nids;
    int r;

    if (n > emu_machine_n_nodes(machine))
        return -ERANGE;
    nids = malloc(n * sizeof(*nids));
    if (!nids)
        return -ENOMEM;
    r = emu_machine_placement(machine, run->place, (uint32_t)n, nids);
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        if (nids[i] >= run->first_nid)
            nids[n_left++] = nids[i];
    }
    *nids_out = nids;
    return r;
}

static int too_small(const struct run *run, const struct emu_machine *machine)
{
    char from[32] = "";

    if (run->first_nid > 0)
        snprintf(from, sizeof(from), " from node %u on", run->first_nid);
    return emu_cli_fail("run",
                        "%u ranks with %u per node need %u nodes%s, machine %s has %u: more ranks per node "
                        "(--ppn) or a larger machine (--machine aries:groups=4) help",
                        run->n_ranks, run->ppn, run->n_nodes, from, run->machine_spec, emu_machine_n_nodes(machine));
}

static int place_ranks(struct run *run, const struct emu_machine *machine)
{
    uint32_t *nids = NULL;
    int r;

    choose_first_nid(run, machine);
    run->rank_nids = malloc(run->n_ranks * sizeof(*run->rank_nids));
    r = run->rank_nids ? choose_nodes(run, machine, &nids) : -ENOMEM;
    for (uint32_t rank = 0; r == 0 && rank < run->n_ranks; rank++)
        run->rank_nids[rank] = nids[rank / run->ppn];
    free(nids);
    if (r == -ERANGE)
        return too_small(run, machine);
    if (r == -EINVAL)
        return emu_cli_usage("run", "--place: '%s' is none of linear, scatter, random:SEED", run->place);
    if (r < 0)
        return emu_cli_fail("run", "placement: %s", strerror(-r));
    return EMU_EXIT_DONE;
}

static int make_plan(struct run *run)
{
    struct emu_dragonfly_shape shape;
    struct emu_machine *machine;
    char err[512];
    int status;

    status = choose_machine(run);
    if (status != EMU_EXIT_DONE)
        return status;
    run->plan.machine_dir = emu_cli_machine_dir();
    if (emu_machine_load(run->machine_spec, run->plan.machine_dir, &machine, err, sizeof(err)) < 0)
        return emu_cli_fail("run", "--machine: %s", err);
    run->n_nodes = (run->n_ranks + run->ppn - 1) / run->ppn;
    status = place_ranks(run, machine);
    if (emu_dragonfly_shape(machine, &shape) == 0)
        run->plan.cabinet_columns = shape.cabinet_columns;
    emu_machine_destroy(machine);
    run->plan.n_ranks = run->n_ranks;
    run->plan.rank_nids = run->rank_nids;
    run->plan.server = run->server;
    run->plan.machine = run->machine_spec;
    run->plan.exports = run->exports;
    run->plan.wants_links = run->prints_paths || run->prints_links || run->json_path;
    if (!run->has_members)
        run->plan.member_limit = run->n_ranks;
    return status;
}

static int read_faults(struct run *run)
{
    struct emu_machine *machine;
    char err[512];
    int r;

    if (!run->faults_path)
        return EMU_EXIT_DONE;
    if (emu_fault_file_read(run->faults_path, &run->schedule, err, sizeof(err)) < 0)
        return emu_cli_fail("run", "--faults: %s", err);
    run->plan.faults = run->schedule.rules;
    run->plan.n_faults = run->schedule.n_rules;
    if (run->schedule.n_events == 0)
        return EMU_EXIT_DONE;
    if (emu_machine_load(run->machine_spec, run->plan.machine_dir, &machine, err, sizeof(err)) < 0)
        return emu_cli_fail("run", "--machine: %s", err);
    r = emu_network_events_read(machine, &run->schedule, &run->changes, err, sizeof(err));
    emu_machine_destroy(machine);
    if (r < 0)
        return emu_cli_fail("run", "--faults: %s: %s", run->faults_path, err);
    run->plan.changes = run->changes;
    run->plan.n_changes = run->schedule.n_events;
    return EMU_EXIT_DONE;
}

/* Before the job, so that nobody computes for hours and then has no file. */
static int open_json(struct run *run)
{
    if (!run->json_path)
        return EMU_EXIT_DONE;
    run->json_file = fopen(run->json_path, "we");
    if (!run->json_file)
        return emu_cli_fail("run", "--json: %s: %s", run->json_path, strerror(errno));
    return EMU_EXIT_DONE;
}

/* ---- reports ---- */

static json_t *describe_nids(const struct run *run)
{
    json_t *nids = json_array();

    for (uint32_t rank = 0; rank < run->n_ranks; rank++)
        json_array_append_new(nids, json_integer(run->rank_nids[rank]));
    return nids;
}

static int write_json(const struct run *run, int job_status, const json_t *links)
{
    json_t *object =
        json_pack("{si ss ss ss sI sI sI si so sO? sO? sO?}", "schema", SCHEMA, "program", run->plan.program[0],
                  "machine", run->machine_spec, "place", run->place, "ranks", (json_int_t)run->n_ranks,
                  "ranks_per_node", (json_int_t)run->ppn, "nodes", (json_int_t)run->n_nodes, "exit_status", job_status,
                  "rank_nids", describe_nids(run), "routing", json_object_get(links, "routing"), "flows",
                  json_object_get(links, "flows"), "links", json_object_get(links, "links"));
    int status = object ? emu_cli_print_json("run", object, run->json_file) : emu_cli_fail("run", "out of memory");

    json_decref(object);
    return status;
}

/* The program's status stays the status; a report that fails makes a success a failure. */
static int report(struct run *run, int job_status, const json_t *links)
{
    int status = EMU_EXIT_DONE;
    int r = 0;

    if (run->prints_paths)
        r = emu_cli_print_paths(links, stdout);
    if (r == 0 && run->prints_links)
        r = emu_cli_print_links(links, stdout);
    if (r < 0 || fflush(stdout) == EOF)
        status = emu_cli_fail("run", "cannot print: %s", strerror(r < 0 ? -r : errno));
    if (run->json_file && write_json(run, job_status, links) != EMU_EXIT_DONE)
        status = EMU_EXIT_FAILED;
    return job_status != EMU_EXIT_DONE ? job_status : status;
}

static int execute(struct run *run)
{
    json_t *links;
    int status;

    if (!run->plan.is_quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "emunic run: %u ranks on %u nodes of %s, %s, %u host%s\n", run->n_ranks, run->n_nodes,
                run->machine_spec, run->place, run->plan.hosts ? run->hosts.n : 1, run->plan.hosts ? "s" : "");
    status = emu_job_run(&run->plan, &links);
    status = report(run, status, links);
    json_decref(links);
    return status;
}

int emu_verb_run(int argc, char **argv)
{
    struct run run = { .ppn = 1, .place = "linear" };
    int status;

    status = parse(&run, argc, argv);
    if (status == EMU_EXIT_DONE && !run.wants_help)
        status = find_programs(&run);
    if (status == EMU_EXIT_DONE && !run.wants_help)
        status = choose_hosts(&run);
    if (status == EMU_EXIT_DONE && !run.wants_help)
        status = make_plan(&run);
    if (status == EMU_EXIT_DONE && !run.wants_help)
        status = read_faults(&run);
    if (status == EMU_EXIT_DONE && !run.wants_help)
        status = open_json(&run);
    if (status == EMU_EXIT_DONE && !run.wants_help)
        status = execute(&run);
    emu_allocation_leave(&run.allocation, status);
    if (run.json_file)
        fclose(run.json_file);
    emu_fault_schedule_free(&run.schedule);
    free(run.changes);
    emu_cli_hosts_free(&run.hosts);
    free(run.rank_hosts);
    free(run.rank_nids);
    free(run.machine_spec);
    free(run.bind);
    return status;
}
