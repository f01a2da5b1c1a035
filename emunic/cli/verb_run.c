/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic run`: from the command line to a plan, and from the job's counters to tables.
 *
 * Everything that can be wrong with the command line, the machine, the program or this installation is found before
 * the first process starts. Rank r gets node r / ppn of the placement.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/number.h"
#include "emunic/cli/allocation.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/fault_file.h"
#include "emunic/cli/job_run.h"
#include "emunic/cli/network_words.h"
#include "emunic/cli/options.h"
#include "emunic/cli/program.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/time_words.h"
#include "emunic/daemon/bind/bind.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/node_params.h"
#include "emunic/fabric/placement.h"

#define DEFAULT_MACHINE "aries"
#define SCHEMA          1
#define RANKS_MAX       65536
#define PLACES_MAX      100 /* that are tried, while other jobs take their nodes */
#define NOT_GIVEN       UINT64_MAX

/* Over which component the messages of MPI go. */
enum mpi_kind { MPI_NONE, MPI_AUTO, MPI_GNI, MPI_PORTALS };
static const char *const mpi_kinds[] = { "none", "auto", "gni", "portals", NULL };

enum huge_pages { HUGE_PAGES_AUTO, HUGE_PAGES_NO, HUGE_PAGES_YES };
static const char *const huge_pages_words[] = { "auto", "no", "yes", NULL };

struct run {
    uint32_t n_ranks; /* 0: not given */
    uint32_t ppn;
    uint32_t n_nodes;
    const char *machine; /* as given, or NULL */
    char *machine_spec;  /* owned: given, the server's, or the default */
    const char *place;
    uint64_t wanted_first_nid; /* or NOT_GIVEN */
    uint32_t first_nid;
    bool is_portals;     /* the program */
    bool is_mpi;         /* likewise */
    uint32_t mpi;        /* enum mpi_kind */
    uint32_t huge_pages; /* enum huge_pages */
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
    uint64_t wanted_members;         /* or NOT_GIVEN */
    bool prints_paths;
    bool prints_links;
    uint32_t *rank_nids; /* owned */
    const char *exports[64];
    const char *wanted_bind; /* as given, or NULL */
    struct emu_cli_time time;
    const char *begin_after; /* as given, or NULL */
    json_t *server_status;   /* owned; NULL: no server was named */
    char *bind;              /* owned: the words of argv are overwritten */
    char mpirun[PATH_MAX];
    char wrapper[PATH_MAX];
    char host_program[PATH_MAX];
    char agent[PATH_MAX];
    char module[PATH_MAX];
    char components[PATH_MAX];
    struct emu_job_plan plan;
};

/* ---- command line ---- */

static int add_export(void *target, const char *name, const char *text)
{
    struct run *run = target;

    if (text[0] == '\0' || text[0] == '=')
        return emu_cli_usage("run", "%s: '%s' is not VAR or VAR=VALUE", name, text);
    if (run->plan.n_exports == sizeof(run->exports) / sizeof(run->exports[0]))
        return emu_cli_usage("run", "%s: more than %u of them", name, run->plan.n_exports);
    run->exports[run->plan.n_exports++] = text;
    return EMU_EXIT_DONE;
}

static const struct emu_option options[] = {
    { "ranks", 'n', "N", "processes (default: 1; with --hosts one per slot)",
      EMU_OPTION_NUMBER(struct run, n_ranks, 1, RANKS_MAX), .unit = "ranks" },
    { "np", 0, "N", NULL, EMU_OPTION_NUMBER(struct run, n_ranks, 1, RANKS_MAX), .unit = "ranks" },
    { "ppn", 0, "N", "processes per node (default: 1)", EMU_OPTION_NUMBER(struct run, ppn, 1, RANKS_MAX),
      .unit = "ranks per node" },
    { "machine", 'm', "SPEC", "machine file or its name, overrides behind a colon (default: aries)",
      EMU_OPTION_TEXT(struct run, machine) },
    { "place", 0, "POLICY", "nodes to take: linear (default), scatter, random:SEED, nids:LIST with a list as 6,7,10-13",
      EMU_OPTION_TEXT(struct run, place) },
    { "first-nid", 0, "N", "lowest node to take (default: 0; 1 for a program that is linked with Portals)",
      EMU_OPTION_NUMBER(struct run, wanted_first_nid, 0, INT32_MAX) },
    { "hosts", 0, "LIST",
      "hosts to run on, this one first: a,b:8,c with ranks per host; @FILE; slurm, for the allocation that this is; "
      "or mpirun, for the one that this is a process of",
      EMU_OPTION_TEXT(struct run, hosts_text) },
    { "provider", 0, "NAME", "of libfabric, between hosts (default: the best that is there, see `emunic doctor`)",
      EMU_OPTION_TEXT(struct run, plan.provider) },
    { "peer-timeout", 0, "S", "a host that is silent for S seconds is lost, 1 to 3600 (default: 5)",
      EMU_OPTION_NUMBER(struct run, plan.peer_timeout_s, 1, 3600), .unit = "seconds" },
    { "timeout", 0, "S", "end the job when it has run for S seconds of the host's time, with status 124",
      EMU_OPTION_NUMBER(struct run, plan.timeout_s, 1, 100000000), .unit = "seconds" },
    { "secure", 0, NULL, "encrypt all that the emunics of the hosts send to each other",
      EMU_OPTION_SET(struct run, plan.is_secure) },
    { "server", 's', "NAME", "use a running daemon instead of starting one, and its machine",
      EMU_OPTION_TEXT(struct run, server), .is_valid = emu_server_name_is_valid, .refusal = "not a server name" },
    { "members", 0, "N", "processes that may attach to the job's domain (default: as many as ranks; 0: no limit)",
      EMU_OPTION_NUMBER(struct run, wanted_members, 0, UINT32_MAX), .unit = "processes" },
    { "bind", 0, "WHERE", "processors that emunic runs on: auto (default), none, or a list as 0-3,8; not the ranks'",
      EMU_OPTION_TEXT(struct run, wanted_bind), .is_valid = emu_bind_is_valid, .refusal = EMU_CLI_BIND_REFUSAL },
    { "mpi", 0, "KIND",
      "messages of MPI go over the emulated machine, for a program of the installed Open MPI: gni, portals, or auto "
      "(which is meant without a value: gni on Aries and Gemini, portals on the others); none (default)",
      EMU_OPTION_WORD(struct run, mpi, mpi_kinds), .if_missing = "auto" },
    { "datapath", 0, "PATH", "routed: all traffic goes through the daemon; auto (default)",
      EMU_OPTION_WORD(struct run, plan.is_routed, emu_cli_datapaths) },
    EMU_CLI_TIME_ROWS(struct run, time),
    { "begin-after", 0, "LENGTH",
      "in virtual time: the job begins so long after its first fence, or after that of the jobs it begins with",
      EMU_OPTION_TEXT(struct run, begin_after), .is_valid = emu_time_length_is_valid,
      .refusal = EMU_CLI_LENGTH_REFUSAL },
    { "clock", 0, "CLOCK", "what the program's clocks show in virtual time: virtual (default), real",
      EMU_OPTION_WORD(struct run, plan.has_real_clock, emu_cli_clocks) },
    { "huge-pages", 0, "WHEN",
      "yes, no: malloc of the ranks asks the kernel for huge pages; auto (default): for programs of SHMEM",
      EMU_OPTION_WORD(struct run, huge_pages, huge_pages_words) },
    { "aslr", 0, NULL, "addresses of the ranks stay random; else they are the same in every rank",
      EMU_OPTION_SET(struct run, plan.keeps_aslr) },
    { "real-hostname", 0, NULL, "ranks see the host's name; else each node has one of its own, nid00012 and the like",
      EMU_OPTION_SET(struct run, plan.keeps_hostname) },
    { "faults", 0, "FILE", "inject the faults of this schedule, see emunic-fault(1)",
      EMU_OPTION_TEXT(struct run, faults_path) },
    { NULL, 'x', "VAR[=VALUE]", "environment variable for mpirun to pass on; all of yours reach the ranks anyway",
      EMU_OPTION_CALL(add_export) },
    { "paths", 0, NULL,
      "afterwards print each flow with the path of its messages; in virtual time, the paths that packets took",
      EMU_OPTION_SET(struct run, prints_paths) },
    { "links", 0, NULL, "afterwards print what each link carried", EMU_OPTION_SET(struct run, prints_links) },
    { "json", 0, "FILE", "afterwards write both, and the plan, to this file as one JSON object",
      EMU_OPTION_TEXT(struct run, json_path) },
    { "quiet", 'q', NULL, "no progress", EMU_OPTION_SET(struct run, plan.is_quiet) },
    { "verbose", 0, NULL, "with mpirun's explanations of what went wrong",
      EMU_OPTION_SET(struct run, plan.is_verbose) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "run",
    .usage = "emunic run [OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about =
        "Run a program on emulated nodes. Returns the status of the first rank that fails, 128 + N for signal N.\n",
    .options = options,
    .after =
        "Example:\n"
        "  emunic run -n 8 --ppn 2 --machine aries:groups=4 --place scatter --paths -- ./gni_program its arguments\n",
    .words = EMU_WORDS_LAST,
};

static int parse(struct run *run, int argc, char **argv)
{
    int first;
    int status = emu_options_parse(&command, argc, argv, run, &first);

    if (status != EMU_PROCEED)
        return status;
    if (first == argc)
        return emu_cli_usage("run", "the program is missing");
    if (run->hosts_text && run->server)
        return emu_cli_usage("run", "--hosts and --server exclude each other");
    if (run->wanted_bind && run->server)
        return emu_cli_usage("run", "--bind and --server exclude each other: give it to `emunic serve`");
    if ((run->plan.provider || run->plan.peer_timeout_s || run->plan.is_secure) && !run->hosts_text)
        return emu_cli_usage("run", "--provider, --peer-timeout and --secure need --hosts");
    run->plan.program = argv + first;
    return EMU_PROCEED;
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
    r = emu_cli_agent(run->agent);
    if (r < 0)
        return emu_cli_fail("run", "%s: %s", run->agent, strerror(-r));
    r = emu_cli_transport(run->module);
    if (r < 0)
        return emu_cli_fail("run", "%s: %s", run->module, strerror(-r));
    run->plan.hosts = &run->hosts;
    run->plan.rank_hosts = run->rank_hosts;
    run->plan.launcher_fd = run->allocation.hosts ? fileno(run->allocation.hosts) : 0;
    run->plan.host_program = run->host_program;
    run->plan.agent = run->agent;
    run->plan.module = run->module;
    return EMU_EXIT_DONE;
}

/* The environment of the user's own choice of MPI's transport: nothing to tell about. */
static bool has_chosen(void)
{
    return getenv("OMPI_MCA_pml") || getenv("OMPI_MCA_btl") || getenv("OMPI_MCA_mtl");
}

static int choose_mpi(struct run *run)
{
    int r;

    if (run->mpi == MPI_NONE) {
        if (run->is_mpi && !run->plan.is_quiet && !has_chosen())
            fprintf(stderr,
                    "emunic run: %s is a program of MPI: without --mpi its messages do not go over the emulated "
                    "machine\n",
                    run->plan.program[0]);
        return EMU_EXIT_DONE;
    }
    r = emu_cli_openmpi(run->components);
    if (r < 0)
        return emu_cli_fail("run",
                            "--mpi: %s: %s; the components for Open MPI are built where libopenmpi-dev 4.1 is "
                            "installed",
                            run->components, strerror(-r));
    run->plan.components = run->components;
    return EMU_EXIT_DONE;
}

/* Cray's guides ask users of SHMEM for huge pages; for others the 2 MiB that a process may take more are too dear. */
static void choose_huge_pages(struct run *run, const char *program)
{
    if (run->huge_pages == HUGE_PAGES_AUTO && !getenv("EMUNIC_HUGE_PAGES") && emu_program_needs_shmem(program))
        run->plan.huge_pages = "1";
    else if (run->huge_pages != HUGE_PAGES_AUTO)
        run->plan.huge_pages = run->huge_pages == HUGE_PAGES_YES ? "1" : "0";
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
    choose_huge_pages(run, path);
    run->is_portals = emu_program_needs_portals(path);
    run->is_mpi = emu_program_is_mpi(path, run->plan.program + 1);
    run->plan.mpirun = run->mpirun;
    run->plan.wrapper = run->wrapper;
    return EMU_EXIT_DONE;
}

/* What a running server is: its status. */
static int ask_server(struct run *run)
{
    json_t *answers;
    int status;

    if (!run->server)
        return EMU_EXIT_DONE;
    status = emu_cli_collect("run", run->server, EMU_MSG_STATUS, &answers);
    if (status != EMU_EXIT_DONE)
        return status;
    json_decref(run->server_status);
    run->server_status = json_incref(json_array_get(json_object_get(answers, "servers"), 0));
    json_decref(answers);
    return EMU_EXIT_DONE;
}

static bool is_server_virtual(const struct run *run)
{
    const json_t *time = json_object_get(run->server_status, "time");

    return time && !json_is_null(time);
}

/* The machine that a running server emulates, unless one was given. */
static int choose_machine(struct run *run)
{
    const char *spec = run->machine ? run->machine : DEFAULT_MACHINE;

    if (run->server && !run->machine && json_unpack(run->server_status, "{ss}", "machine_spec", &spec) < 0)
        return emu_cli_fail("run", "server '%s' does not tell its machine; use --machine", run->server);
    run->machine_spec = strdup(spec);
    return run->machine_spec ? EMU_EXIT_DONE : emu_cli_fail("run", "out of memory");
}

static bool has_list(const struct run *run)
{
    return strncmp(run->place, "nids:", strlen("nids:")) == 0;
}

/* Old Portals programs take node 0 for themselves. Where the machine has no node to spare they get it all the same. */
static void choose_first_nid(struct run *run, const struct emu_machine *machine)
{
    if (run->wanted_first_nid != NOT_GIVEN)
        run->first_nid = (uint32_t)run->wanted_first_nid;
    else
        run->first_nid = run->is_portals && !has_list(run) && run->n_nodes < emu_machine_n_nodes(machine) ? 1 : 0;
}

/* Nodes of a server's other jobs are marked; in functional time, and of a list of nodes, none is. Their number. */
static uint32_t mark_taken(const struct run *run, bool *is_taken, uint32_t n_nids)
{
    const json_t *domain, *node;
    uint32_t n = 0;
    size_t i, k;

    if (!run->plan.takes_own_nodes)
        return 0;
    json_array_foreach(json_object_get(run->server_status, "domains"), i, domain) {
        json_array_foreach(json_object_get(domain, "nodes"), k, node) {
            json_int_t nid = json_integer_value(json_object_get(node, "nid"));

            if (nid >= 0 && nid < n_nids && !is_taken[nid]) {
                is_taken[nid] = true;
                n++;
            }
        }
    }
    return n;
}

/*
 * The placement without the nodes below the first one, and without those of other jobs: of as many nodes more, the
 * first that remain. Caller frees.
 */
static int choose_nodes(const struct run *run, const struct emu_machine *machine, uint32_t **nids_out)
{
    uint32_t n_nids = emu_machine_n_nodes(machine);
    bool *is_taken = calloc(n_nids, sizeof(*is_taken));
    uint64_t n = (uint64_t)run->n_nodes + run->first_nid;
    uint32_t n_left = 0;
    uint32_t *nids;
    int r;

    if (!is_taken)
        return -ENOMEM;
    n += mark_taken(run, is_taken, n_nids);
    nids = n <= n_nids ? malloc(n * sizeof(*nids)) : NULL;
    r = n > n_nids ? -ERANGE : !nids ? -ENOMEM : emu_machine_placement(machine, run->place, (uint32_t)n, nids);
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        if (nids[i] >= run->first_nid && !is_taken[nids[i]])
            nids[n_left++] = nids[i];
    }
    free(is_taken);
    *nids_out = nids;
    return r;
}

static int too_small(const struct run *run, const struct emu_machine *machine)
{
    char from[64] = "";

    if (run->first_nid > 0)
        snprintf(from, sizeof(from), " from node %u on", run->first_nid);
    if (run->plan.takes_own_nodes)
        snprintf(from + strlen(from), sizeof(from) - strlen(from), " that no other job has");
    return emu_cli_fail("run",
                        "%u ranks with %u per node need %u nodes%s, machine %s has %u: more ranks per node "
                        "(--ppn) or a larger machine (--machine aries:groups=4) help",
                        run->n_ranks, run->ppn, run->n_nodes, from, run->machine_spec, emu_machine_n_nodes(machine));
}

static int refuse_list(const struct run *run, const struct emu_machine *machine, int r)
{
    if (r == -ENODATA)
        return emu_cli_usage("run", "--place: '%s' has fewer nodes than the %u of %u ranks with %u per node",
                             run->place, run->n_nodes + run->first_nid, run->n_ranks, run->ppn);
    return emu_cli_usage("run", "--place: '%s': machine %s has the nodes 0 to %u", run->place, run->machine_spec,
                         emu_machine_n_nodes(machine) - 1);
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
    if (has_list(run) && (r == -ENODATA || (r == -ERANGE && run->n_nodes <= emu_machine_n_nodes(machine))))
        return refuse_list(run, machine, r);
    if (r == -ERANGE)
        return too_small(run, machine);
    if (r == -EINVAL)
        return emu_cli_usage("run", "--place: '%s' is none of linear, scatter, random:SEED, nids:LIST", run->place);
    if (r < 0)
        return emu_cli_fail("run", "placement: %s", strerror(-r));
    return EMU_EXIT_DONE;
}

/* Of a server, its time is that of all its jobs. */
static int choose_server_time(struct run *run)
{
    if (run->time.is_virtual && !is_server_virtual(run))
        return emu_cli_usage("run", "--time virtual: server '%s' is in functional time; `emunic serve --time virtual`",
                             run->server);
    if (emu_cli_time_option(&run->time))
        return emu_cli_usage("run", "%s is for the server: give it to `emunic serve --time virtual`",
                             emu_cli_time_option(&run->time));
    run->time.is_virtual = is_server_virtual(run);
    return EMU_EXIT_DONE;
}

/* Virtual time needs a model of one machine, on this host alone. */
static int choose_time(struct run *run)
{
    int status = run->server ? choose_server_time(run) : EMU_EXIT_DONE;

    if (status == EMU_EXIT_DONE)
        status = emu_cli_time_read("run", &run->time);
    if (status != EMU_EXIT_DONE)
        return status;
    if (!run->time.is_virtual && (run->plan.has_real_clock || run->begin_after))
        return emu_cli_usage("run", "%s is for --time virtual", run->begin_after ? "--begin-after" : "--clock");
    if (run->time.is_virtual && run->hosts_text)
        return emu_cli_usage("run", "--time virtual is for one host, not with --hosts");
    if (run->time.is_virtual)
        run->plan.time = &run->time.options;
    run->plan.takes_own_nodes = run->server && run->time.is_virtual && !has_list(run);
    if (run->begin_after)
        run->plan.begin_after_ps = emu_time_length_ps(run->begin_after);
    return EMU_EXIT_DONE;
}

/* What the machine had: uGNI on Gemini and on Aries, whose dragonfly is its own; Portals or its like on the others. */
static void choose_layer(struct run *run, const struct emu_machine *machine)
{
    bool had_gni = emu_machine_nic(machine)->device == EMU_DEVICE_GEMINI ||
                   strcmp(emu_machine_topology(machine), "dragonfly") == 0;

    run->plan.is_over_gni = run->mpi == MPI_GNI || (run->mpi == MPI_AUTO && had_gni);
}

static int make_plan(struct run *run)
{
    struct emu_dragonfly_shape shape;
    struct emu_machine *machine;
    int status;

    status = choose_machine(run);
    if (status != EMU_EXIT_DONE)
        return status;
    run->plan.machine_dir = emu_cli_machine_dir();
    status = emu_cli_load_machine("run", "--machine", run->machine_spec, &machine);
    if (status != EMU_EXIT_DONE)
        return status;
    run->n_nodes = (run->n_ranks + run->ppn - 1) / run->ppn;
    choose_layer(run, machine);
    run->time.options.keeps_paths = run->prints_paths;
    status = emu_cli_time_check("run", &run->time, machine);
    if (status == EMU_EXIT_DONE)
        status = place_ranks(run, machine);
    if (emu_dragonfly_shape(machine, &shape) == 0)
        run->plan.cabinet_columns = shape.cabinet_columns;
    emu_machine_destroy(machine);
    run->plan.n_ranks = run->n_ranks;
    run->plan.rank_nids = run->rank_nids;
    run->plan.server = run->server;
    run->plan.machine = run->machine_spec;
    run->plan.exports = run->exports;
    run->plan.wants_links = run->prints_paths || run->prints_links || run->json_path || is_server_virtual(run);
    run->plan.member_limit = run->wanted_members == NOT_GIVEN ? run->n_ranks : (uint32_t)run->wanted_members;
    return status;
}

static int read_faults(struct run *run)
{
    struct emu_machine *machine;
    char err[512];
    int status;
    int r;

    if (!run->faults_path)
        return EMU_EXIT_DONE;
    if (emu_fault_file_read(run->faults_path, &run->schedule, err, sizeof(err)) < 0)
        return emu_cli_fail("run", "--faults: %s", err);
    run->plan.faults = run->schedule.rules;
    run->plan.n_faults = run->schedule.n_rules;
    if (run->schedule.n_events == 0)
        return EMU_EXIT_DONE;
    status = emu_cli_load_machine("run", "--machine", run->machine_spec, &machine);
    if (status != EMU_EXIT_DONE)
        return status;
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
        json_pack("{si ss ss ss sI sI sI si so sO? sO? sO* sO? sO*}", "schema", SCHEMA, "program", run->plan.program[0],
                  "machine", run->machine_spec, "place", run->place, "ranks", (json_int_t)run->n_ranks,
                  "ranks_per_node", (json_int_t)run->ppn, "nodes", (json_int_t)run->n_nodes, "exit_status", job_status,
                  "rank_nids", describe_nids(run), "routing", json_object_get(links, "routing"), "flows",
                  json_object_get(links, "flows"), "paths", json_object_get(links, "paths"), "links",
                  json_object_get(links, "links"), "time", json_object_get(links, "time"));
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
    if (run->server && json_is_false(json_object_get(json_object_get(links, "time"), "is_exact")))
        status = emu_cli_fail("run", "server '%s': its figures are not the model's, see `emunic status`", run->server);
    if (r < 0 || fflush(stdout) == EOF)
        status = emu_cli_fail("run", "cannot print: %s", strerror(r < 0 ? -r : errno));
    if (run->json_file && write_json(run, job_status, links) != EMU_EXIT_DONE)
        status = EMU_EXIT_FAILED;
    return job_status != EMU_EXIT_DONE ? job_status : status;
}

/* Another job that starts just now was faster. */
static int place_again(struct run *run)
{
    struct emu_machine *machine;
    int status = ask_server(run);

    if (status != EMU_EXIT_DONE)
        return status;
    status = emu_cli_load_machine("run", "--machine", run->machine_spec, &machine);
    if (status != EMU_EXIT_DONE)
        return status;
    free(run->rank_nids);
    status = place_ranks(run, machine);
    run->plan.rank_nids = run->rank_nids;
    emu_machine_destroy(machine);
    return status;
}

static int execute(struct run *run)
{
    json_t *links = NULL;
    int status;

    if (!run->plan.is_quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "emunic run: %u ranks on %u nodes of %s, %s, %u host%s\n", run->n_ranks, run->n_nodes,
                run->machine_spec, run->place, run->plan.hosts ? run->hosts.n : 1, run->plan.hosts ? "s" : "");
    status = emu_job_run(&run->plan, &links);
    for (int i = 0; i < PLACES_MAX && status == EMU_JOB_NODES_TAKEN; i++) {
        status = place_again(run);
        if (status == EMU_EXIT_DONE)
            status = emu_job_run(&run->plan, &links);
    }
    if (status == EMU_JOB_NODES_TAKEN)
        return emu_cli_fail("run", "other jobs take the nodes again and again");
    status = report(run, status, links);
    json_decref(links);
    return status;
}

/* Words of the command line that must outlive it. */
static int keep_words(struct run *run)
{
    if (!run->wanted_bind)
        return EMU_EXIT_DONE;
    run->bind = strdup(run->wanted_bind);
    run->plan.bind = run->bind;
    return run->bind ? EMU_EXIT_DONE : emu_cli_fail("run", "out of memory");
}

int emu_verb_run(int argc, char **argv)
{
    static int (*const steps[])(struct run * run) = { ask_server,   choose_time, keep_words,  find_programs, choose_mpi,
                                                      choose_hosts, make_plan,   read_faults, open_json,     execute };
    struct run run = { .ppn = 1, .place = "linear", .wanted_first_nid = NOT_GIVEN, .wanted_members = NOT_GIVEN };
    int status = parse(&run, argc, argv);

    if (status != EMU_PROCEED)
        return status;
    status = EMU_EXIT_DONE;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == EMU_EXIT_DONE; i++)
        status = steps[i](&run);
    emu_allocation_leave(&run.allocation, status);
    if (run.json_file)
        fclose(run.json_file);
    emu_fault_schedule_free(&run.schedule);
    free(run.changes);
    emu_cli_hosts_free(&run.hosts);
    free(run.rank_hosts);
    free(run.rank_nids);
    json_decref(run.server_status);
    free(run.machine_spec);
    free(run.bind);
    emu_cli_time_free(&run.time);
    return status;
}
