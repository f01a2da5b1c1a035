/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic-host OPTION...: the emunic of one host of a job on several; started by `emunic run --hosts` through mpirun, a
 * process per host, whose rank is the number of the host.
 *
 *   key       host 0 draws it and puts it into PMIx; nobody else sees it, and it is on no command line
 *   address   each puts its own when its transport is open, and takes those of all
 *   ready     one byte on stdout when the sockets listen
 *   end       the job's domain ends (the head told so), SIGTERM, or the launcher's death
 *
 * On hosts other than the head it has a keeper (keeper.c), so that the job's folder and stray processes go however this
 * process ends; on the head `emunic run` has one.
 *
 * Exit status: 0 when the job has ended, 1 after a message, 2 for a wrong usage.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pmix.h>
#include <signal.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "emunic/base/log.h"
#include "emunic/base/number.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/keeper.h"
#include "emunic/cli/sweep.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/daemon.h"

#define KEY_BYTES  32
#define KEY_NAME   "emunic.key"
#define BLOB_NAME  "emunic.address"
#define HOSTS_MAX  4096
#define SWEEP_MS   1000
#define SWEEPS_MAX 3

struct host {
    struct emu_server_options server;
    struct emu_hosts_options hosts;
    const char *names[HOSTS_MAX];
    uint8_t key[KEY_BYTES];
    char folder[PATH_MAX];
    char marker[32]; /* "EMUNIC_COOKIE=..." */
    pmix_proc_t self;
    struct emu_keeper keeper; /* pid 0: none */
};

/* ---- PMIx ---- */

static int put(const char *name, void *bytes, size_t n_bytes)
{
    pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
    pmix_status_t status;

    value.data.bo.bytes = bytes;
    value.data.bo.size = n_bytes;
    status = PMIx_Put(PMIX_GLOBAL, name, &value);
    return status == PMIX_SUCCESS ? 0 : -EIO;
}

/* What everybody has put before is there for everybody afterwards. */
static int exchange_all(void)
{
    pmix_info_t collect;
    bool yes = true;
    pmix_status_t status = PMIx_Commit();

    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    if (status == PMIX_SUCCESS)
        status = PMIx_Fence(NULL, 0, &collect, 1);
    PMIX_INFO_DESTRUCT(&collect);
    return status == PMIX_SUCCESS ? 0 : -EIO;
}

/* At most `room` bytes. */
static int get(const struct host *host, uint32_t rank, const char *name, void *bytes_out, size_t room, size_t *n_out)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc;
    int r = -EPROTO;

    PMIX_LOAD_PROCID(&proc, host->self.nspace, rank);
    if (PMIx_Get(&proc, name, NULL, 0, &value) != PMIX_SUCCESS)
        return -EIO;
    if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size <= room) {
        memcpy(bytes_out, value->data.bo.bytes, value->data.bo.size);
        *n_out = value->data.bo.size;
        r = 0;
    }
    if (value->type == PMIX_BYTE_OBJECT)
        sodium_memzero(value->data.bo.bytes, value->data.bo.size);
    PMIX_VALUE_RELEASE(value);
    return r;
}

static int share_key(struct host *host)
{
    size_t n_bytes = 0;
    int r = 0;

    if (host->self.rank == EMU_HOST_HEAD) {
        randombytes_buf(host->key, sizeof(host->key));
        r = put(KEY_NAME, host->key, sizeof(host->key));
    }
    if (r == 0)
        r = exchange_all();
    if (r == 0 && host->self.rank != EMU_HOST_HEAD)
        r = get(host, EMU_HOST_HEAD, KEY_NAME, host->key, sizeof(host->key), &n_bytes);
    return r == 0 && host->self.rank != EMU_HOST_HEAD && n_bytes != sizeof(host->key) ? -EPROTO : r;
}

static int exchange_addresses(void *ctx, const struct emu_host_blob *own, struct emu_host_blob *blobs_out)
{
    struct host *host = ctx;
    struct emu_host_blob mine = *own;
    int r;

    r = put(BLOB_NAME, mine.bytes, mine.length_bytes);
    if (r == 0)
        r = exchange_all();
    for (uint32_t i = 0; i < host->hosts.n && r == 0; i++) {
        size_t n_bytes = 0;

        r = get(host, i, BLOB_NAME, blobs_out[i].bytes, sizeof(blobs_out[i].bytes), &n_bytes);
        blobs_out[i].length_bytes = (uint32_t)n_bytes;
    }
    return r;
}

static int join_launch(struct host *host)
{
    pmix_value_t *value = NULL;
    pmix_proc_t all;
    uint32_t size = 0;
    pmix_status_t status;
    sigset_t everything;
    sigset_t before;

    /* PMIx has a thread. Signals are the business of this one. */
    sigfillset(&everything);
    pthread_sigmask(SIG_SETMASK, &everything, &before);
    status = PMIx_Init(&host->self, NULL, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != PMIX_SUCCESS)
        return emu_cli_fail("host", "PMIx: %s; `emunic run --hosts` starts this program", PMIx_Error_string(status));
    PMIX_LOAD_PROCID(&all, host->self.nspace, PMIX_RANK_WILDCARD);
    if (PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_SUCCESS) {
        if (value->type == PMIX_UINT32)
            size = value->data.uint32;
        PMIX_VALUE_RELEASE(value);
    }
    if (size != host->hosts.n)
        return emu_cli_fail("host", "%u hosts are named, but %u processes were started", host->hosts.n, size);
    host->hosts.own = host->self.rank;
    return EMU_EXIT_DONE;
}

/* ---- command line ---- */

enum {
    OPTION_SERVER = EMU_OPTION_FIRST,
    OPTION_MACHINE,
    OPTION_MACHINE_DIR,
    OPTION_MODULE,
    OPTION_FOLDER,
    OPTION_COOKIE,
    OPTION_HOSTS,
    OPTION_PROVIDER,
    OPTION_PEER_TIMEOUT,
    OPTION_BIND,
    OPTION_ROUTED,
};

static const struct option options[] = {
    { "server", required_argument, NULL, OPTION_SERVER },
    { "machine", required_argument, NULL, OPTION_MACHINE },
    { "machine-dir", required_argument, NULL, OPTION_MACHINE_DIR },
    { "module", required_argument, NULL, OPTION_MODULE },
    { "folder", required_argument, NULL, OPTION_FOLDER },
    { "cookie", required_argument, NULL, OPTION_COOKIE },
    { "hosts", required_argument, NULL, OPTION_HOSTS },
    { "provider", required_argument, NULL, OPTION_PROVIDER },
    { "peer-timeout", required_argument, NULL, OPTION_PEER_TIMEOUT },
    { "bind", required_argument, NULL, OPTION_BIND },
    { "routed", no_argument, NULL, OPTION_ROUTED },
    { 0 },
};

static int take_names(struct host *host, char *list)
{
    while (list) {
        if (host->hosts.n == HOSTS_MAX)
            return emu_cli_usage("host", "--hosts: more than %d", HOSTS_MAX);
        host->names[host->hosts.n++] = strsep(&list, ",");
    }
    host->hosts.names = host->names;
    return EMU_EXIT_DONE;
}

static int take_option(struct host *host, int option, char **argv)
{
    uint64_t number;

    switch (option) {
    case OPTION_SERVER:
        host->server.name = optarg;
        return EMU_EXIT_DONE;
    case OPTION_MACHINE:
        host->server.machine = optarg;
        return EMU_EXIT_DONE;
    case OPTION_MACHINE_DIR:
        host->server.machine_dir = optarg;
        return EMU_EXIT_DONE;
    case OPTION_MODULE:
        host->hosts.module = optarg;
        return EMU_EXIT_DONE;
    case OPTION_FOLDER:
        if (optarg[0] != '/' || strlen(optarg) >= sizeof(host->folder))
            return emu_cli_usage("host", "--folder: '%s' is not a whole path", optarg);
        strcpy(host->folder, optarg);
        return EMU_EXIT_DONE;
    case OPTION_COOKIE:
        if (!emu_parse_number(optarg, 10, 1, UINT32_MAX, &number))
            return emu_cli_usage("host", "--cookie: '%s' is not a cookie", optarg);
        snprintf(host->marker, sizeof(host->marker), "EMUNIC_COOKIE=%u", (unsigned)number);
        return EMU_EXIT_DONE;
    case OPTION_HOSTS:
        return take_names(host, optarg);
    case OPTION_PROVIDER:
        host->hosts.provider = optarg;
        return EMU_EXIT_DONE;
    case OPTION_PEER_TIMEOUT:
        if (!emu_parse_number(optarg, 10, 1, 3600, &number))
            return emu_cli_usage("host", "--peer-timeout: '%s' is not 1 to 3600 seconds", optarg);
        host->hosts.timeout_ns = number * 1000000000ull;
        return EMU_EXIT_DONE;
    case OPTION_BIND:
        host->server.bind = optarg;
        return EMU_EXIT_DONE;
    case OPTION_ROUTED:
        host->server.starts_routed = true;
        return EMU_EXIT_DONE;
    default:
        return emu_cli_bad_option("host", option, argv, options);
    }
}

static int parse(struct host *host, int argc, char **argv)
{
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
        int status = take_option(host, option, argv);

        if (status != EMU_EXIT_DONE)
            return status;
    }
    if (!host->server.name || !host->server.machine || !host->server.machine_dir || !host->hosts.module ||
        !host->folder[0] || !host->marker[0] || host->hosts.n < 2 || optind < argc)
        return emu_cli_usage("host", "started by `emunic run --hosts`, see emunic-run(1)");
    return EMU_EXIT_DONE;
}

/* ---- life ---- */

static bool tie_to_launcher(void)
{
    pid_t launcher = getppid();

    return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == launcher;
}

static int start_keeper(struct host *host)
{
    const struct emu_keeper_plan plan = { .folder = host->folder, .may_exist = true, .marker = host->marker };
    char byte;
    int r;

    r = emu_keeper_start(&plan, &host->keeper);
    if (r < 0)
        return emu_cli_fail("host", "cannot start a keeper: %s", strerror(-r));
    if (read(host->keeper.link, &byte, 1) != 1 || byte != EMU_KEEPER_READY)
        return EMU_EXIT_FAILED;
    return EMU_EXIT_DONE;
}

/* Whatever is still there of the job on this host. */
static void clean_up(struct host *host)
{
    const struct emu_sweep strays = { .marker = host->marker };

    if (!host->keeper.pid)
        return;
    for (int i = 0; i < SWEEPS_MAX && emu_sweep(&strays, SIGKILL, SWEEP_MS) > 0; i++)
        ;
    emu_remove_folder(host->folder);
    emu_keeper_dismiss(&host->keeper, true);
}

static int serve(struct host *host)
{
    struct emu_server *server;
    char err[512];
    int r;

    r = emu_daemon_create(&host->server, &server, err, sizeof(err));
    sodium_memzero(host->key, sizeof(host->key));
    if (r < 0)
        return emu_cli_fail("host", "%s: %s", host->names[host->hosts.own], err);
    r = emu_server_run(server);
    emu_server_destroy(server);
    return r < 0 ? emu_cli_fail("host", "%s: %s", host->names[host->hosts.own], strerror(-r)) : EMU_EXIT_DONE;
}

int main(int argc, char **argv)
{
    static struct host host = { .server = { .stops_with_last_job = true, .ready_fd = STDOUT_FILENO } };
    int status;

    emu_log_init("emunic", EMU_LOG_WARN);
    status = parse(&host, argc, argv);
    if (status != EMU_EXIT_DONE)
        return status;
    if (!tie_to_launcher() || sodium_init() < 0)
        return emu_cli_fail("host", "cannot start");
    host.server.hosts = &host.hosts;
    host.hosts.key = host.key;
    host.hosts.key_bytes = sizeof(host.key);
    host.hosts.exchange = exchange_addresses;
    host.hosts.ctx = &host;
    /* Before there are threads. */
    status = getenv("PMIX_RANK") && strcmp(getenv("PMIX_RANK"), "0") != 0 ? start_keeper(&host) : EMU_EXIT_DONE;
    if (status == EMU_EXIT_DONE)
        status = join_launch(&host);
    if (status == EMU_EXIT_DONE && share_key(&host) < 0)
        status = emu_cli_fail("host", "PMIx does not carry the job's key");
    if (status == EMU_EXIT_DONE)
        status = serve(&host);
    clean_up(&host);
    PMIx_Finalize(NULL, 0);
    return status;
}
