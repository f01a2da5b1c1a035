/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts about the job: who am I, how many are we, who is where.
 *
 * Sources in order: our launcher's variables (EMUNIC_NIDS, EMUNIC_NID), the environment of Open MPI or Slurm,
 * the PMIx server, and last "one program on one node". Only the third opens a connection. A process is part of
 * a job when the launcher named a PMIx namespace and rank; else it is a job of one rank, whatever a batch
 * script left in the environment. A set of variables is believed only if the rank in it is the PMIx rank.
 *
 * The host's name is EMUNIC_HOST where our launcher has given nodes names of their own, else what gethostname() says.
 *
 * Nodes: EMUNIC_NIDS gives the emulated nid of each rank, and two ranks share a node when their nids are equal.
 * It is ignored (with a warning) when it does not have one entry per rank, as in a program that a rank starts
 * on its own. Without it: the number in host names of the form nidNNNNN if all ranks have one, else the
 * launcher's node index, else the order in which hosts appear.
 *
 * Applications: Open MPI numbers the ranks of one command after the other, so the list of counts tells all. Its
 * list of first ranks (OMPI_FIRST_RANKS) is wrong in 4.1.4 and is not read.
 *
 * Everything learnt stays for the life of the process, also past the last finalize.
 * Source: spec/cray-runtime.md 7.3.
 */
#include "mpi-shim/pmi/src/facts.h"

#include "mpi-shim/pmi/src/pmi_log.h"
#include "mpi-shim/pmi/src/nidmap.h"
#include "mpi-shim/pmi/src/px.h"
#include "mpi-shim/pmi/src/pmi_session.h"

#include <errno.h>
#include <pmix_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_ROOM = 256 };

static struct {
    bool is_loaded;
    bool is_launched; /* part of a job with a server; else alone */
    bool is_ompi;     /* Open MPI's variables are about this rank */
    bool is_slurm;    /* Slurm's are */
    bool is_spawned;
    int rank;
    int size;     /* 0: not known yet */
    int universe; /* 0: environment does not tell */
    int n_local;  /* ranks of the job on this host; 0: environment does not tell */
    char job_name[16];
    int *app_of; /* owned; NULL: not known yet */
    int n_apps;
    int *nids; /* owned; NULL: not known yet */
} facts;

static bool env_int(const char *name, int *value_out)
{
    return pmii_parse_int(getenv(name), value_out);
}

void pmii_facts_name_job(const char *nspace, char *name_out, int room_bytes)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const unsigned char *c = (const unsigned char *)nspace; *c != '\0'; c++)
        hash = (hash ^ *c) * 16777619u;
    hash &= 0x7fffffffu; /* readers use atoi() */
    snprintf(name_out, (size_t)room_bytes, "kvs_%u", (unsigned)(hash != 0 ? hash : 1u));
}

static void load_launched(const char *nspace)
{
    int value;

    pmii_facts_name_job(nspace, facts.job_name, sizeof(facts.job_name));
    facts.is_ompi = env_int("OMPI_COMM_WORLD_RANK", &value) && value == facts.rank;
    facts.is_slurm = !facts.is_ompi && env_int("SLURM_PROCID", &value) && value == facts.rank;
    if (facts.is_ompi) {
        if (env_int("OMPI_COMM_WORLD_SIZE", &value) && value > facts.rank)
            facts.size = value;
        if (env_int("OMPI_UNIVERSE_SIZE", &value))
            facts.universe = value;
        if (env_int("OMPI_COMM_WORLD_LOCAL_SIZE", &value))
            facts.n_local = value;
    } else if (facts.is_slurm) {
        if ((env_int("SLURM_STEP_NUM_TASKS", &value) || env_int("SLURM_NTASKS", &value)) && value > facts.rank)
            facts.size = value;
    }
}

void pmii_facts_load(void)
{
    const char *nspace = getenv("PMIX_NAMESPACE");

    if (facts.is_loaded)
        return;
    facts.is_loaded = true;
    facts.is_launched = nspace && *nspace != '\0' && env_int("PMIX_RANK", &facts.rank);
    facts.is_spawned = getenv("EMUNIC_PMI_SPAWNED");
    if (facts.is_launched) {
        load_launched(nspace);
    } else {
        char name[32];

        facts.rank = 0;
        facts.size = 1;
        snprintf(name, sizeof(name), "singleton.%ld", (long)getpid());
        pmii_facts_name_job(name, facts.job_name, sizeof(facts.job_name));
    }
}

int pmii_facts_rank(void)
{
    return facts.rank;
}

bool pmii_facts_is_spawned(void)
{
    return facts.is_spawned;
}

const char *pmii_facts_job_name(void)
{
    return facts.job_name;
}

bool pmii_facts_is_alone(void)
{
    return facts.size == 1;
}

/* The launcher is not one of those whose variables tell the size. */
static int learn_size_from_server(void)
{
    int *nids, n, r;

    if (getenv("EMUNIC_NIDS") && pmii_nids_parse(getenv("EMUNIC_NIDS"), &nids, &n) == 0) {
        free(nids);
        if (n > facts.rank) {
            facts.size = n;
            return 0;
        }
    }
    r = pmii_connect();
    if (r < 0)
        return r;
    r = pmii_px_fact_int(-1, PMIX_JOB_SIZE, &n);
    if (r != 0 || n <= facts.rank)
        return r < 0 ? r : -EIO;
    facts.size = n;
    return 0;
}

int pmii_facts_size(int *size_out)
{
    if (facts.size == 0) {
        int r = learn_size_from_server();

        if (r < 0)
            return r;
    }
    *size_out = facts.size;
    return 0;
}

int pmii_facts_universe(int *size_out)
{
    int size;
    int r = pmii_facts_size(&size);

    if (r < 0)
        return r;
    *size_out = facts.universe > size ? facts.universe : size;
    return 0;
}

/* ---- applications ---- */

static bool apps_from_environment(int *app_of, int *n_apps_out)
{
    const char *text = getenv("OMPI_APP_CTX_NUM_PROCS");
    int *counts;
    int n_counts, rank = 0;
    bool is_usable = true;

    if (facts.size == 1 || facts.is_slurm) {
        *n_apps_out = 1; /* app_of is all zero */
        return true;
    }
    if (!facts.is_ompi || !text || pmii_counts_parse(text, &counts, &n_counts) < 0)
        return false;
    for (int a = 0; a < n_counts; a++) {
        if (counts[a] > facts.size - rank) {
            is_usable = false;
            break;
        }
        for (int i = 0; i < counts[a]; i++)
            app_of[rank++] = a;
    }
    free(counts);
    if (!is_usable || rank != facts.size)
        return false;
    *n_apps_out = n_counts;
    return true;
}

static bool apps_from_server(int *app_of, int *n_apps_out)
{
    int n_apps;

    if (pmii_px_fact_int(-1, PMIX_JOB_NUM_APPS, &n_apps) != 0 || n_apps < 1)
        return false;
    for (int rank = 0; rank < facts.size && n_apps > 1; rank++) {
        if (pmii_px_fact_int(rank, PMIX_APPNUM, &app_of[rank]) != 0 || app_of[rank] >= n_apps)
            return false;
    }
    *n_apps_out = n_apps;
    return true;
}

/* Fill app_of, which is zero. @retval -ENXIO only the server knows, and PMI is not initialised. */
static int learn_apps(int *app_of, int *n_apps_out)
{
    int r;

    if (apps_from_environment(app_of, n_apps_out))
        return 0;
    r = pmii_connect();
    if (r == -ENXIO)
        return r;
    if (r < 0 || !apps_from_server(app_of, n_apps_out)) {
        pmii_log(PMII_WARN, "launcher does not tell the applications, taking one of %d ranks", facts.size);
        memset(app_of, 0, (size_t)facts.size * sizeof(*app_of));
        *n_apps_out = 1;
    }
    return 0;
}

int pmii_facts_apps(const int **app_of_out, int *n_apps_out)
{
    int size;
    int r = pmii_facts_size(&size);

    if (r < 0)
        return r;
    if (!facts.app_of) {
        int *app_of = calloc((size_t)size, sizeof(*app_of));

        if (!app_of)
            return -ENOMEM;
        r = learn_apps(app_of, &facts.n_apps);
        if (r < 0) {
            free(app_of);
            return r;
        }
        facts.app_of = app_of;
    }
    *app_of_out = facts.app_of;
    *n_apps_out = facts.n_apps;
    return 0;
}

/* ---- nodes ---- */

/* Ours to use, or NULL when the launcher's variables do not fit this job. */
static int *nids_from_launcher(void)
{
    const char *text = getenv("EMUNIC_NIDS");
    int *nids;
    int n, nid;

    if (text) {
        if (pmii_nids_parse(text, &nids, &n) == 0) {
            if (n == facts.size) {
                if (env_int("EMUNIC_NID", &nid) && nid != nids[facts.rank])
                    pmii_log(PMII_WARN, "EMUNIC_NID is %d but EMUNIC_NIDS has %d for rank %d, taking the list", nid,
                             nids[facts.rank], facts.rank);
                return nids;
            }
            free(nids);
        }
        pmii_log(PMII_WARN, "EMUNIC_NIDS is not a list of %d nids, ignored", facts.size);
    }
    if (facts.size == 1 && env_int("EMUNIC_NID", &nid)) {
        nids = malloc(sizeof(*nids));
        if (nids)
            nids[0] = nid;
        return nids;
    }
    return NULL;
}

static void nids_of_one_host(int *nids)
{
    const char *real = getenv("EMUNIC_HOST"); /* gethostname() says the node's name, each rank's another */
    char host[HOST_ROOM];
    int nid = 0;

    if (gethostname(host, sizeof(host)) < 0)
        host[0] = '\0';
    host[sizeof(host) - 1] = '\0';
    pmii_host_nid(real ? real : host, &nid); /* stays 0 for other names */
    for (int rank = 0; rank < facts.size; rank++)
        nids[rank] = nid;
}

static bool nids_from_host_names(int *nids)
{
    char host[HOST_ROOM];

    for (int rank = 0; rank < facts.size; rank++) {
        if (pmii_px_fact_text(rank, PMIX_HOSTNAME, host, sizeof(host)) != 0 || pmii_host_nid(host, &nids[rank]) < 0)
            return false;
    }
    return true;
}

static bool nids_from_node_index(int *nids)
{
    for (int rank = 0; rank < facts.size; rank++) {
        if (pmii_px_fact_int(rank, PMIX_NODEID, &nids[rank]) != 0)
            return false;
    }
    return true;
}

static bool nids_from_host_order(int *nids)
{
    char(*hosts)[HOST_ROOM] = calloc((size_t)facts.size, sizeof(*hosts));
    int n_hosts = 0, rank;

    if (!hosts)
        return false;
    for (rank = 0; rank < facts.size; rank++) {
        int h = 0;

        if (pmii_px_fact_text(rank, PMIX_HOSTNAME, hosts[n_hosts], HOST_ROOM) != 0)
            break;
        while (strcmp(hosts[h], hosts[n_hosts]) != 0)
            h++;
        n_hosts += h == n_hosts;
        nids[rank] = h;
    }
    free(hosts);
    return rank == facts.size;
}

/* Fill nids without our launcher's help. @retval -ENXIO only the server knows, and PMI is not initialised. */
static int learn_nids(int *nids)
{
    int r;

    if (facts.size == 1 || facts.size == facts.n_local) {
        nids_of_one_host(nids);
        return 0;
    }
    r = pmii_connect();
    if (r == -ENXIO)
        return r;
    if (r < 0 || (!nids_from_host_names(nids) && !nids_from_node_index(nids) && !nids_from_host_order(nids))) {
        pmii_log(PMII_WARN, "launcher does not tell the nodes, taking one");
        nids_of_one_host(nids);
    }
    return 0;
}

int pmii_facts_nids(const int **nids_out)
{
    int size;
    int r = pmii_facts_size(&size);

    if (r < 0)
        return r;
    if (!facts.nids)
        facts.nids = nids_from_launcher();
    if (!facts.nids) {
        int *nids = calloc((size_t)size, sizeof(*nids));

        if (!nids)
            return -ENOMEM;
        r = learn_nids(nids);
        if (r < 0) {
            free(nids);
            return r;
        }
        facts.nids = nids;
    }
    *nids_out = facts.nids;
    return 0;
}

static int count_group(enum pmii_group group, const int *nids, const int *app_of, int *ranks_out)
{
    int n = 0;

    for (int rank = 0; rank < facts.size; rank++) {
        if (nids[rank] != nids[facts.rank])
            continue;
        if (group == PMII_NODE_AND_APP && app_of[rank] != app_of[facts.rank])
            continue;
        if (ranks_out)
            ranks_out[n] = rank;
        n++;
    }
    return n;
}

int pmii_facts_group(enum pmii_group group, int *ranks_out, int room, int *n_out)
{
    const int *nids, *app_of = NULL;
    int n, n_apps;
    int r;

    if (group == PMII_NODE && !ranks_out && !facts.nids && facts.n_local > 0 && !getenv("EMUNIC_NIDS")) {
        *n_out = facts.n_local; /* nodes are hosts: no need to ask the server which */
        return 0;
    }
    r = pmii_facts_nids(&nids);
    if (r == 0 && group == PMII_NODE_AND_APP)
        r = pmii_facts_apps(&app_of, &n_apps);
    if (r < 0)
        return r;
    n = count_group(group, nids, app_of, NULL);
    if (ranks_out) {
        if (room < n)
            return -EMSGSIZE;
        count_group(group, nids, app_of, ranks_out);
    }
    *n_out = n;
    return 0;
}

int pmii_facts_mapping(char **text_out)
{
    const int *nids;
    int r = pmii_facts_nids(&nids);

    return r < 0 ? r : pmii_mapping_text(nids, facts.size, text_out);
}

int pmii_facts_cabinet_columns(void)
{
    int n;

    return env_int("EMUNIC_CABINET_COLUMNS", &n) && n > 0 ? n : 2;
}
