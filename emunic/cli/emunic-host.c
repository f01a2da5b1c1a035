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
 * The job's folder and stray processes are the affair of a keeper: of `emunic run` on the head, of emunic-agent on the
 * other hosts.
 *
 * Exit status: 0 when the job has ended, 1 after a message, 2 for a wrong usage.
 */
#include <errno.h>
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
#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/rights/rights.h"
#include "emunic/daemon/daemon.h"

#define KEY_BYTES 32
#define KEY_NAME  "emunic.key"
#define BLOB_NAME "emunic.address"
#define HOSTS_MAX 4096

struct host {
    struct emu_server_options server;
    struct emu_hosts_options hosts;
    const char *names[HOSTS_MAX];
    uint8_t key[KEY_BYTES];
    uint64_t timeout_s; /* 0: the default */
    pmix_proc_t self;
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
    sigdelset(&everything, SIGSYS); /* which is the thread's own: a call that is refused */
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

static int take_names(void *target, const char *name, const char *text)
{
    struct host *host = target;
    char *list = strdup(text); /* lives as long as the program */

    while (list) {
        if (host->hosts.n == HOSTS_MAX)
            return emu_cli_usage("host", "%s: more than %d", name, HOSTS_MAX);
        host->names[host->hosts.n++] = strsep(&list, ",");
    }
    host->hosts.names = host->names;
    return EMU_EXIT_DONE;
}

static const struct emu_option options[] = {
    { "server", 0, "NAME", "name of the job's server", EMU_OPTION_TEXT(struct host, server.name) },
    { "machine", 0, "SPEC", "machine file or its name", EMU_OPTION_TEXT(struct host, server.machine) },
    { "machine-dir", 0, "FOLDER", "folder with machine files", EMU_OPTION_TEXT(struct host, server.machine_dir) },
    { "module", 0, "FILE", "the module that talks to other hosts", EMU_OPTION_TEXT(struct host, hosts.module) },
    { "hosts", 0, "NAME,NAME...", "all hosts of the job in the order of the ranks", EMU_OPTION_CALL(take_names) },
    { "provider", 0, "NAME", "of libfabric", EMU_OPTION_TEXT(struct host, hosts.provider) },
    { "peer-timeout", 0, "S", "a host that is silent for S seconds is lost, 1 to 3600",
      EMU_OPTION_NUMBER(struct host, timeout_s, 1, 3600), .unit = "seconds" },
    { "bind", 0, "WHERE", "processors to run on", EMU_OPTION_TEXT(struct host, server.bind) },
    { "routed", 0, NULL, "all traffic goes through the daemon", EMU_OPTION_SET(struct host, server.starts_routed) },
    { "secure", 0, NULL, "encrypt all that hosts send to each other", EMU_OPTION_SET(struct host, hosts.is_secure) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "host",
    .usage = "emunic-host OPTION...",
    .about = "The emunic of one host of a job on several. `emunic run --hosts` starts it, see emunic-run(1).\n",
    .options = options,
    .after = "Example:\n"
             "  emunic run --hosts a,b -- ./gni_program\n",
};

static int parse(struct host *host, int argc, char **argv)
{
    int status = emu_options_parse(&command, argc, argv, host, NULL);

    if (status != EMU_PROCEED)
        return status;
    if (!host->server.name || !host->server.machine || !host->server.machine_dir || !host->hosts.module ||
        host->hosts.n < 2)
        return emu_cli_usage("host", "started by `emunic run --hosts`, see emunic-run(1)");
    host->hosts.timeout_ns = host->timeout_s * 1000000000ull;
    return EMU_PROCEED;
}

/* ---- life ---- */

static bool tie_to_launcher(void)
{
    pid_t launcher = getppid();

    return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == launcher;
}

static int serve(struct host *host)
{
    struct emu_server *server;
    char err[512];
    int r;

    host->server.rights = (struct emu_rights_plan){ .is_confined = true, .module = host->hosts.module };
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
    if (status != EMU_PROCEED)
        return status;
    if (!tie_to_launcher() || sodium_init() < 0)
        return emu_cli_fail("host", "cannot start");
    host.server.hosts = &host.hosts;
    host.hosts.key = host.key;
    host.hosts.key_bytes = sizeof(host.key);
    host.hosts.exchange = exchange_addresses;
    host.hosts.ctx = &host;
    /* Before there are threads. */
    status = EMU_EXIT_DONE;
    if (emu_rights_shed_early() < 0)
        status = emu_cli_fail("host", "cannot give up its capabilities: %s", strerror(errno));
    if (status == EMU_EXIT_DONE)
        status = join_launch(&host);
    if (status == EMU_EXIT_DONE && share_key(&host) < 0)
        status = emu_cli_fail("host", "PMIx does not carry the job's key");
    if (status == EMU_EXIT_DONE)
        status = serve(&host);
    PMIx_Finalize(NULL, 0);
    return status;
}
