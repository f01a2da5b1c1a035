/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private emunic of a test program. (fixture_job.c is the same interface in a launched job.)
 *
 * The server runs in a child made before any thread exists. The child ends when its admin connection closes (the job
 * has ended and it was started for one job), when it is told to, or with the test program (PR_SET_PDEATHSIG).
 */
#include "tests/common/fixture.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "emunic/abi/table.h"
#include "emunic/cli/fault_file.h"
#include "emunic/client/space.h"
#include "emunic/daemon/server.h"
#include "tests/common/proc.h"

static unsigned started;

static _Noreturn void give_up(const char *what, int error)
{
    fprintf(stderr, "fixture: %s: %s\n", what, strerror(error));
    exit(1);
}

static _Noreturn void serve(const char *name, const char *machine, int ready_fd)
{
    const char *machine_dir = getenv("FX_MACHINE_DIR");     /* installed programs */
    struct emu_server_options options = { .name = name, .machine = machine,
                                          .machine_dir = machine_dir ? machine_dir : FX_MACHINE_DIR,
                                          .ready_fd = ready_fd };
    struct emu_server *server;
    char err[256];
    int r;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    emu_log_init("emunic", EMU_LOG_ERROR);
    r = emu_server_create(&options, &server, err, sizeof(err));
    if (r < 0) {
        fprintf(stderr, "fixture: %s\n", err);
        _exit(1);
    }
    close(ready_fd);
    r = emu_server_run(server);
    emu_server_destroy(server);
    /* exit, not _exit: sanitizers look for leaks here. */
    exit(r < 0 ? 1 : 0);
}

static int create_domain(struct emu_session *admin, uint32_t ptag, uint32_t cookie, uint32_t uid, unsigned limit,
                         const uint32_t *nids, unsigned n_ranks, uint32_t *id_out)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_CREATE,
                           .domain = { .ptag = ptag, .cookie = cookie, .owner_uid = uid, .member_limit = limit,
                                       .n_ranks = n_ranks } };
    const char *datapath = getenv("FX_DATAPATH");
    size_t bytes = n_ranks * sizeof(*nids);
    int fd = memfd_create("ranks", MFD_CLOEXEC);
    int r;

    if (datapath && strcmp(datapath, "routed") == 0)
        msg.domain.flags = EMU_TABLE_ROUTED;
    if (fd < 0 || write(fd, nids, bytes) != (ssize_t)bytes)
        return -EIO;
    r = emu_session_request(admin, &msg, &fd, 1, NULL);
    close(fd);
    if (r == 0)
        r = msg.result;
    if (r == 0)
        *id_out = msg.domain.domain_id;
    return r;
}

static void start_server(struct fx *fx, const char *machine)
{
    int ready[2];
    char byte;

    snprintf(fx->server, sizeof(fx->server), "test-%d-%u", (int)getpid(), started++);
    if (pipe(ready) < 0)
        give_up("pipe", errno);
    fflush(NULL);
    fx->daemon = fork();
    if (fx->daemon < 0)
        give_up("fork", errno);
    if (fx->daemon == 0) {
        close(ready[0]);
        serve(fx->server, machine, ready[1]);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        give_up("the server did not start", EIO);
    close(ready[0]);
}

void fx_start(struct fx *fx, const struct fx_options *options)
{
    static const struct fx_options defaults;
    const struct fx_options *o = options ? options : &defaults;
    int r;

    memset(fx, 0, sizeof(*fx));
    fx->n_ranks = o->n_ranks ? o->n_ranks : 4;
    fx->ptag = 77;
    fx->cookie = 0x1234abcd;
    for (unsigned i = 0; i < fx->n_ranks; i++)
        fx->nids[i] = o->nids ? o->nids[i] : i;
    start_server(fx, o->machine ? o->machine : "aries:groups=2");
    fx_use(fx);
    r = emu_session_open(&fx->admin, fx->server, EMU_SOCKET_ADMIN);
    if (r < 0)
        give_up("admin socket", -r);
    r = create_domain(&fx->admin, fx->ptag, fx->cookie, o->owner_uid ? o->owner_uid : geteuid(), o->member_limit,
                      fx->nids, fx->n_ranks, &fx->domain_id);
    if (r < 0)
        give_up("domain", -r);
}

/*
 * A crash, a leak or an error of emunic fails the program, whoever asks: CMocka does not count a failed group teardown.
 * Tests kill emunic with SIGKILL only.
 */
static void expect_end(int status)
{
    /* -1: the test has waited for it already. */
    if (status == 0 || status == -1 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        return;
    fprintf(stderr, "fixture: emunic ended with wait status 0x%x\n", status);
    exit(1);
}

int fx_stop(struct fx *fx)
{
    struct emu_msg msg = { .type = EMU_MSG_SHUTDOWN };
    int status = -1;

    emu_session_request(&fx->admin, &msg, NULL, 0, NULL);
    while (waitpid(fx->daemon, &status, 0) < 0 && errno == EINTR)
        ;
    emu_session_close(&fx->admin);
    unsetenv("EMUNIC_SERVER");
    expect_end(status);
    return status;
}

int fx_add_domain(const struct fx *fx, uint32_t ptag, uint32_t cookie, uint32_t owner_uid, unsigned member_limit,
                  struct emu_session *admin_out)
{
    uint32_t id;
    int r;

    r = emu_session_open(admin_out, fx->server, EMU_SOCKET_ADMIN);
    if (r < 0)
        return r;
    r = create_domain(admin_out, ptag, cookie, owner_uid, member_limit, fx->nids, fx->n_ranks, &id);
    if (r < 0)
        emu_session_close(admin_out);
    return r;
}

int fx_end_domain(struct emu_session *admin)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END };    /* without a signal: the caller may be a member */
    int r = emu_session_request(admin, &end, NULL, 0, NULL);

    emu_session_close(admin);
    return r;
}

void fx_use(const struct fx *fx)
{
    setenv("EMUNIC_SERVER", fx->server, 1);
}

void fx_needs_emunic(void)
{
}

void fx_forget(struct fx *fx)
{
    close(fx->admin.fd);
}

void fx_set_routed(struct fx *fx, bool is_routed)
{
    struct emu_msg msg = { .type = EMU_MSG_DATAPATH,
                           .domain = { .domain_id = fx->domain_id, .flags = is_routed ? EMU_TABLE_ROUTED : 0 } };

    emu_session_request(&fx->admin, &msg, NULL, 0, NULL);
}

int fx_change_network(struct fx *fx, struct emu_msg_network change)
{
    struct emu_msg msg = { .type = EMU_MSG_NETWORK, .network = change };
    int r = emu_session_request(&fx->admin, &msg, NULL, 0, NULL);

    return r < 0 ? r : msg.result;
}

void fx_add_fault(struct fx *fx, const char *words)
{
    struct emu_msg msg = { .type = EMU_MSG_FAULT_SET,
                           .fault = { .domain_id = fx->domain_id, .flags = EMU_FAULT_APPEND, .n_rules = 1 } };
    int fd = memfd_create("faults", MFD_CLOEXEC);
    struct emu_fault_rule rule;
    char *items[24];
    unsigned n = 0;
    char copy[512];
    char err[256];
    char *rest = copy;
    char *word;

    snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, " ")) && n < 24)
        items[n++] = word;
    if (emu_fault_words_read(items, n, &rule, err, sizeof(err)) < 0) {
        fprintf(stderr, "fixture: fault '%s': %s\n", words, err);
        exit(1);
    }
    if (fd < 0 || write(fd, &rule, sizeof(rule)) != (ssize_t)sizeof(rule))
        give_up("fault", errno);
    if (emu_session_request(&fx->admin, &msg, &fd, 1, NULL) < 0 || msg.result != 0)
        give_up("fault", -msg.result);
    close(fd);
}

void fx_clear_faults(struct fx *fx)
{
    struct emu_msg msg = { .type = EMU_MSG_FAULT_CLEAR, .fault = { .domain_id = fx->domain_id } };

    emu_session_request(&fx->admin, &msg, NULL, 0, NULL);
}

unsigned fx_fault_hits(struct fx *fx)
{
    char *text = fx_report(fx, EMU_MSG_FAULTS);
    json_t *report = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *domain;
    const json_t *rule;
    unsigned hits = 0;
    size_t i;
    size_t k;

    free(text);
    json_array_foreach(json_object_get(report, "domains"), i, domain) {
        json_array_foreach(json_object_get(domain, "rules"), k, rule)
            hits += (unsigned)json_integer_value(json_object_get(rule, "hits"));
    }
    json_decref(report);
    return hits;
}

void fx_set_node(uint32_t nid)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", nid);
    setenv("EMUNIC_NID", text, 1);
}

char *fx_report(struct fx *fx, unsigned type)
{
    struct emu_msg msg = { .type = (uint16_t)type };
    struct emu_fds fds;
    char *text = NULL;
    off_t len;

    if (emu_session_request(&fx->admin, &msg, NULL, 0, &fds) < 0 || msg.result < 0 || fds.n_fds != 1)
        return NULL;
    len = lseek(fds.fd[0], 0, SEEK_END);
    text = calloc(1, (size_t)len + 1);
    if (text && pread(fds.fd[0], text, (size_t)len, 0) != len) {
        free(text);
        text = NULL;
    }
    emu_fds_close(&fds);
    return text;
}

int fx_count_fds(struct fx *fx)
{
    struct emu_msg nothing = { .type = EMU_MSG_DATAPATH, .domain = { .domain_id = UINT32_MAX } };

    /* emunic answers one request after the other: its answer to this one says that all turns before it are over. */
    emu_session_request(&fx->admin, &nothing, NULL, 0, NULL);
    return proc_count_fds(fx->daemon);
}

void *fx_map(struct fx_mapped *m, const struct fx *fx, uint32_t nid, uint32_t instance_id, size_t bytes)
{
    void *mem = NULL;
    int r;

    fx_set_node(nid);
    r = emu_port_attach(&m->port, fx->ptag, fx->cookie, instance_id, 0);
    if (r == 0)
        r = emu_space_alloc(&m->port, bytes, &mem);
    if (r == 0)
        r = emu_port_mem_register(&m->port, (uint64_t)(uintptr_t)mem, bytes, EMU_MD_MAPPED, EMU_CQ_NONE, &m->mdh,
                                  &m->generation);
    if (r < 0)
        give_up("memory of a port", -r);
    m->mem = mem;
    m->bytes = bytes;
    return mem;
}

void fx_deregister_mapped(struct fx_mapped *m)
{
    int r = emu_port_mem_deregister(&m->port, m->mdh, m->generation);

    if (r < 0)
        give_up("deregistration", -r);
}

void fx_unmap(struct fx_mapped *m)
{
    emu_space_free(&m->port, m->mem, m->bytes);
    emu_port_detach(&m->port);
}
