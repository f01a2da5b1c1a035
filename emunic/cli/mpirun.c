/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process goes where is not left to mpirun's mappers: with several hosts a file has one line per rank with its
 * host, and "seq" maps by it. Processes on other hosts get no variables of the environment but those that -x names:
 * all, as with aprun and srun, except those that are about a host or a launcher.
 */
#include "emunic/cli/mpirun.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/cli/host_list.h"

#define MCA_PREFIX       "OMPI_MCA_"
#define AGENT_SETTING    "orte_launch_agent"
#define PLAIN            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@%^="
#define DIRECT_HOSTS_MAX 64 /* mpirun itself starts so many daemons, and they the others */

struct words {
    char **items;
    size_t n;
    size_t room;
    bool has_failed;
};

/* Keeps the pointer. */
static void add(struct words *words, const char *word)
{
    if (words->n + 1 >= words->room) {
        size_t room = words->room ? 2 * words->room : 64;
        char **items = realloc(words->items, room * sizeof(*items));

        if (!items) {
            words->has_failed = true;
            return;
        }
        words->items = items;
        words->room = room;
    }
    words->items[words->n++] = (char *)word;
    words->items[words->n] = NULL;
}

static void add_text(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_text(struct words *words, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text)
        add(words, text);
    else
        words->has_failed = true;
}

static void add_setting(struct words *words, const char *name, const char *value)
{
    add(words, "--mca");
    add(words, name);
    add(words, value);
}

/* ---- several hosts ---- */

/*
 * Daemons that further daemons start, in a tree of more than DIRECT_HOSTS_MAX, have no agent: mpirun drops words with a
 * space on the way to them.
 */
static void add_agent(struct words *words, const struct emu_mpirun_job *job, bool ends_processes)
{
    if (getenv(MCA_PREFIX AGENT_SETTING))
        return; /* the user has one */
    add(words, "--mca");
    add(words, AGENT_SETTING);
    if (ends_processes)
        add_text(words, "%s %s EMUNIC_COOKIE=%u orted", job->plan->agent, job->folder, job->cookie);
    else
        add_text(words, "%s %s - orted", job->plan->agent, job->folder);
}

/* Line r is the host of process r. */
static void add_map(struct words *words, const struct emu_mpirun_job *job, const char *name, uint32_t n,
                    const uint32_t *hosts)
{
    FILE *file;
    char *path;

    if (asprintf(&path, "%s/%s", job->folder, name) < 0) {
        words->has_failed = true;
        return;
    }
    file = fopen(path, "we");
    for (uint32_t i = 0; file && i < n; i++)
        fprintf(file, "%s\n", job->plan->hosts->names[hosts ? hosts[i] : i]);
    if (!file || fclose(file) == EOF)
        words->has_failed = true;
    add(words, "--hostfile");
    add(words, path);
    add(words, "--map-by");
    add(words, "seq");
}

/* "NAME=value" is about this host, this session or a launcher; or no program could use the name. */
static bool stays_here(const char *variable)
{
    static const char *const names[] = { "DISPLAY",  "HOSTNAME", "OLDPWD", "PMI_FD", "PMI_ID", "PMI_RANK",
                                         "PMI_SIZE", "PWD",      "SHLVL",  "TMPDIR", "_" };
    static const char *const families[] = { "DBUS_", "OMPI_", "PMIX_", "PRTE_", "SLURM_", "SSH_", "XDG_" };
    size_t len = strcspn(variable, "=");

    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)variable[i]) && variable[i] != '_')
            return true;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && strncmp(variable, names[i], len) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strncmp(variable, families[i], strlen(families[i])) == 0)
            return true;
    }
    return len == 0;
}

static bool is_exported(const struct emu_job_plan *plan, const char *variable)
{
    size_t len = strcspn(variable, "=");

    for (unsigned i = 0; i < plan->n_exports; i++) {
        if (strcspn(plan->exports[i], "=") == len && strncmp(plan->exports[i], variable, len) == 0)
            return true;
    }
    return false;
}

/* mpirun hands OMPI_MCA_* on by itself. */
static void add_environment(struct words *words, const struct emu_job_plan *plan)
{
    for (char **variable = environ; *variable; variable++) {
        if (stays_here(*variable) || is_exported(plan, *variable))
            continue;
        add(words, "-x");
        add_text(words, "%.*s", (int)strcspn(*variable, "="), *variable);
    }
}

/* ---- what mpirun says itself ---- */

/* mpirun hands words of its command line on through the shell of another host, and drops those with a space. */
static bool is_plain(const char *value)
{
    return value[0] && value[strspn(value, PLAIN)] == '\0';
}

/* Read by daemons that start further daemons, of which a tree of so many hosts has none. */
static bool is_for_starters(const struct emu_job_plan *plan, const char *name)
{
    return plan->hosts->n <= DIRECT_HOSTS_MAX && strncmp(name, "plm_", 4) == 0;
}

static bool has_setting(const struct words *words, const char *name, size_t len)
{
    for (size_t i = 0; i + 1 < words->n; i++) {
        const char *setting = words->items[i + 1];

        if (strcmp(words->items[i], "--mca") == 0 && strlen(setting) == len && memcmp(setting, name, len) == 0)
            return true;
    }
    return false;
}

/*
 * The user's settings of Open MPI as words instead of variables, because mpirun hands all variables on to its daemons
 * or none, and one of them shall be mpirun's own. False, with nothing added: some value is not fit for that.
 */
static bool add_user_settings(struct words *words, const struct emu_job_plan *plan)
{
    size_t prefix_len = strlen(MCA_PREFIX);

    for (int does_add = 0; does_add < 2; does_add++) {
        for (char **variable = environ; *variable; variable++) {
            const char *name = *variable + prefix_len;
            size_t len;

            if (strncmp(*variable, MCA_PREFIX, prefix_len) != 0 || is_for_starters(plan, name))
                continue;
            len = strcspn(name, "=");
            if (name[len] != '=' || !is_plain(name + len + 1))
                return false;
            if (!does_add || has_setting(words, name, len))
                continue;
            add(words, "--mca");
            add_text(words, "%.*s", (int)len, name);
            add(words, name + len + 1);
        }
    }
    return true;
}

/* Not for its daemons on other hosts, whose words would end up among those of the ranks. */
static void tell_states(struct words *words, const struct emu_mpirun_job *job)
{
    char fd[16];

    if (job->output_fd < 0)
        return;
    if (job->plan->hosts) {
        if (!add_user_settings(words, job->plan))
            return;
        add_setting(words, "plm_rsh_pass_environ_mca_params", "0");
    }
    snprintf(fd, sizeof(fd), "%d", job->output_fd);
    /*
     * emunic-rank takes all of them out of the ranks' environment. When a rank dies while it connects, PMIx in mpirun
     * closes a descriptor that is waited for still. libevent's epoll complains of that on stderr, its poll does not.
     */
    if (setenv("OPAL_OUTPUT_STDERR_FD", fd, 1) < 0 || setenv("PMIX_OUTPUT_STDERR_FD", fd, 1) < 0 ||
        setenv("EVENT_NOEPOLL", "emunic", 0) < 0 || setenv(MCA_PREFIX "state_base_verbose", "1", 1) < 0)
        words->has_failed = true;
}

/* ---- command lines ---- */

static void begin(struct words *words, const struct emu_mpirun_job *job, uint32_t n_processes)
{
    static const char *const folder_settings[] = {
        "orte_tmpdir_base",            /* session files */
        "btl_vader_backing_directory", /* shared memory between ranks */
        "osc_sm_backing_directory",    /* MPI windows */
        "osc_rdma_backing_directory",
    };

    add(words, job->plan->mpirun);
    add(words, "-np");
    add_text(words, "%u", n_processes);
    add(words, "--oversubscribe");
    add(words, "--bind-to");
    add(words, "none");
    /* Whatever Open MPI writes goes into the job's folder: nobody tidies up after a killed mpirun but us. */
    for (size_t i = 0; i < sizeof(folder_settings) / sizeof(folder_settings[0]); i++)
        add_setting(words, folder_settings[i], job->folder);
    /* From 32 ranks on mpirun forks on helper threads, whose end would count as the parent's death. */
    add_setting(words, "odls_base_num_threads", "0");
    if (!job->plan->is_verbose)
        add(words, "-q");
}

/* A setting of Open MPI, unless the user has chosen another value. */
static void add_default(struct words *words, const struct emu_job_plan *plan, const char *variable, const char *value)
{
    if (!getenv(variable) && !is_exported(plan, variable))
        add_setting(words, variable + strlen(MCA_PREFIX), value);
}

/*
 * The program's MPI sends over our component, or not at all. osc/emunic chooses the component that makes a window.
 * btl/gni tells Open MPI which processes share a node of the machine. Ranks keep their order, because topo/treematch
 * goes by the cores of this host, and fails where these are not those of the nodes.
 */
static void use_components(struct words *words, const struct emu_job_plan *plan)
{
    if (!plan->components)
        return;
    add(words, "--mca");
    add(words, "mca_base_component_path");
    add_text(words, "%s:SYS_DEFAULT:USER_DEFAULT", plan->components);
    add_setting(words, "hook_emunic_layer", plan->is_over_gni ? "gni" : "portals3");
    if (plan->is_over_gni) {
        add_setting(words, "pml", "ob1");
        add_setting(words, "btl", "gni,self");
        add_setting(words, "osc_rdma_btls", "gni");
        /* With two levels processes that want the same lock keep each other from it for milliseconds. */
        add_default(words, plan, MCA_PREFIX "osc_rdma_locking_mode", "on_demand");
        /* See mpi-shim/openmpi/osc_accumulate.h. */
        add_default(words, plan, MCA_PREFIX "osc_rdma_network_max_amo", "0");
        if (plan->time) {
            add_setting(words, "btl_gni_connect_all", "1");
            add_setting(words, "btl_gni_polled_ranks", "0");
            add_default(words, plan, MCA_PREFIX "coll_ce_enable", "1");
        }
    } else {
        add_setting(words, "pml", "cm");
        add_setting(words, "mtl", "portals3");
        add_setting(words, "btl", "self"); /* others would be started all the same, and attach to the NIC */
    }
    if (plan->time) {
        add_setting(words, "osc_emunic_node_windows", "0");
        add_setting(words, "osc_emunic_direct", "0");
    }
    /* Who looks at the links wants Open MPI's own messages there, as in virtual time. */
    if (!plan->time && !plan->wants_links)
        add_default(words, plan, MCA_PREFIX "coll_flat_enable", "1");
    add_default(words, plan, MCA_PREFIX "osc", plan->is_over_gni ? "emunic,rdma,pt2pt,sm" : "emunic,pt2pt,sm");
    add_default(words, plan, MCA_PREFIX "topo", "basic");
}

/* In the allocation of a resource manager mpirun would use all of its hosts. */
static void stay_here(struct words *words)
{
    add_setting(words, "ras", "^slurm,tm,alps,lsf,gridengine,loadleveler");
    add_setting(words, "orte_default_hostfile", "none");
}

char **emu_mpirun_ranks(const struct emu_mpirun_job *job)
{
    const struct emu_job_plan *plan = job->plan;
    struct words words = { 0 };

    begin(&words, job, plan->n_ranks);
    use_components(&words, plan);
    if (plan->hosts) {
        add_map(&words, job, "ranks", plan->n_ranks, plan->rank_hosts);
        add_agent(&words, job, false);
        add_environment(&words, plan);
    } else {
        stay_here(&words);
    }
    tell_states(&words, job);
    for (unsigned i = 0; i < plan->n_exports; i++) {
        add(&words, "-x");
        add(&words, plan->exports[i]);
    }
    add(&words, plan->wrapper);
    for (unsigned i = 0; plan->program[i]; i++)
        add(&words, plan->program[i]);
    return words.has_failed ? NULL : words.items;
}

static void add_names(struct words *words, const struct emu_cli_hosts *hosts)
{
    char *list = NULL;
    size_t len;
    FILE *out = open_memstream(&list, &len);

    for (uint32_t i = 0; out && i < hosts->n; i++)
        fprintf(out, "%s%s", i ? "," : "", hosts->names[i]);
    if (!out || fclose(out) == EOF)
        words->has_failed = true;
    else
        add(words, list);
}

char **emu_mpirun_hosts(const struct emu_mpirun_job *job)
{
    const struct emu_job_plan *plan = job->plan;
    struct words words = { 0 };

    begin(&words, job, plan->hosts->n);
    add_map(&words, job, "hosts", plan->hosts->n, NULL);
    add_agent(&words, job, true);
    add_environment(&words, plan);
    add(&words, plan->host_program);
    add(&words, "--server");
    add(&words, job->server);
    add(&words, "--machine");
    add(&words, plan->machine);
    add(&words, "--machine-dir");
    add(&words, plan->machine_dir);
    add(&words, "--module");
    add(&words, plan->module);
    add(&words, "--hosts");
    add_names(&words, plan->hosts);
    if (plan->provider) {
        add(&words, "--provider");
        add(&words, plan->provider);
    }
    if (plan->peer_timeout_s) {
        add(&words, "--peer-timeout");
        add_text(&words, "%u", plan->peer_timeout_s);
    }
    if (plan->bind) {
        add(&words, "--bind");
        add(&words, plan->bind);
    }
    if (plan->is_routed)
        add(&words, "--routed");
    if (plan->is_secure)
        add(&words, "--secure");
    return words.has_failed ? NULL : words.items;
}
