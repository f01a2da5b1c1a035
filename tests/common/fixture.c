/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private emunic of a test program. (fixture_job.c is the same interface in a launched job.)
 *
 * The server runs in a child made before any thread exists. The child ends when its admin connection closes (the job
 * has ended and it was started for one job), when it is told to, or with the test program (PR_SET_PDEATHSIG).
 */
#include "tests/common/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/abi/table.h"
#include "emunic/base/clock.h"
#include "emunic/cli/fault_file.h"
#include "emunic/client/space.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/daemon.h"
#include "emunic/transport/sockets.h"
#include "tests/common/proc.h"

static unsigned started;
static const struct fx *current; /* that attaching finds */
static struct network {
    int fd; /* 0: all hosts are in ours */
    char address[32];
} networks[FX_HOSTS_MAX];
static int home = -1; /* the network that this program was started in */

/* FX_SKIP: a pattern of CMocka's, for tests that mean something else on a machine of several hosts. */
__attribute__((constructor)) static void choose_tests(void)
{
    if (getenv("FX_SKIP"))
        cmocka_set_skip_filter(getenv("FX_SKIP"));
}

static _Noreturn void give_up(const char *what, int error)
{
    fprintf(stderr, "fixture: %s: %s\n", what, strerror(error));
    exit(1);
}

static void open_networks(unsigned n_hosts)
{
    char *text = getenv("FX_NETWORKS") ? strdup(getenv("FX_NETWORKS")) : NULL;
    char *rest = text;

    for (unsigned i = 0; text && i < n_hosts && networks[i].fd == 0; i++) {
        const char *address = strsep(&rest, "=");
        const char *name = strsep(&rest, ",");

        networks[i].fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
        if (networks[i].fd < 0)
            give_up("FX_NETWORKS", name ? errno : EINVAL);
        snprintf(networks[i].address, sizeof(networks[i].address), "%s", address);
    }
    free(text);
    if (networks[0].fd != 0 && home < 0)
        home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* Sockets that this thread makes from now on are in that network. */
static void go_to(int network)
{
    if (network > 0 && setns(network, CLONE_NEWNET) < 0)
        give_up("setns", errno);
}

void fx_stay(unsigned host)
{
    if (home < 0)
        return;
    go_to(networks[host].fd);
    close(home);
    home = -1;
}

/* The host whose emunic has that name; FX_HOSTS_MAX: none in a network of its own. */
static unsigned host_of_name(const struct sockaddr_un *addr, socklen_t length)
{
    const size_t name_at = offsetof(struct sockaddr_un, sun_path) + 1;
    unsigned host = 0;

    if (!current || home < 0 || addr->sun_family != AF_UNIX || length <= name_at || addr->sun_path[0] != '\0')
        return FX_HOSTS_MAX;
    while (host < current->n_hosts) {
        const char *server = current->hosts[host].server;
        const char *found = memmem(addr->sun_path + 1, length - name_at, server, strlen(server));

        if (found && found[strlen(server)] == '/')
            return host;
        host++;
    }
    return FX_HOSTS_MAX;
}

/* Names of sockets are known in one network only: libraries find each emunic from here as if it were in ours. */
__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *addr, socklen_t length)
{
    unsigned host = host_of_name((const struct sockaddr_un *)addr, length);
    int there;

    if (host == FX_HOSTS_MAX)
        return emu_sockets_connect(fd, addr, length);
    go_to(networks[host].fd);
    there = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    go_to(home);
    if (there < 0 || dup3(there, fd, O_CLOEXEC) < 0)
        give_up("socket", errno);
    close(there);
    return (int)syscall(SYS_connect, fd, addr, length);
}

/* Addresses on this host are this process's own: nobody else listens there. */
void fx_describe_host(const struct fx *fx, unsigned host, struct emu_hosts_options *hosts_out)
{
    static char names[FX_HOSTS_MAX][16];
    static char services[FX_HOSTS_MAX][16];
    static char addresses[FX_HOSTS_MAX][32];
    static const char *all_names[FX_HOSTS_MAX];
    static const char *all_services[FX_HOSTS_MAX];
    static const char *all_nodes[FX_HOSTS_MAX];
    static const char key[] = "a key of a job for tests";
    unsigned pid = (unsigned)fx->owner;

    for (unsigned i = 0; i < fx->n_hosts; i++) {
        if (networks[i].fd != 0)
            strcpy(addresses[i], networks[i].address);
        else
            snprintf(addresses[i], sizeof(addresses[i]), "127.%u.%u.%u", 1 + (pid >> 16 & 63), pid >> 8 & 255,
                     1 + (pid & 255) % 254);
        snprintf(names[i], sizeof(names[i]), "host%u", i);
        snprintf(services[i], sizeof(services[i]), "%u",
                 20000 + (pid & 255) / 254 * 100 + i + fx->number * FX_HOSTS_MAX % 1000);
        all_names[i] = names[i];
        all_services[i] = services[i];
        all_nodes[i] = addresses[i];
    }
    *hosts_out = (struct emu_hosts_options){
        .n = fx->n_hosts,
        .own = host,
        .names = all_names,
        .module = getenv("EMU_TEST_TRANSPORT"),
        .provider = "tcp;ofi_rxm",
        .node = addresses[host],
        .service = services[host],
        .key = key,
        .key_bytes = sizeof(key),
        .timeout_ns = fx->timeout_ms * 1000000ull,
        .is_rma_off = getenv("FX_RMA_OFF") != NULL,
        .peer_nodes = all_nodes,
        .peer_services = all_services,
    };
}

static _Noreturn void serve(const struct fx *fx, unsigned host, int ready_fd)
{
    const char *machine_dir = getenv("FX_MACHINE_DIR"); /* installed programs */
    const char *mover = getenv("FX_MOVER");
    const char *rights = getenv("FX_RIGHTS");
    struct emu_server_options options = { .name = fx->hosts[host].server,
                                          .machine = fx->machine,
                                          .machine_dir = machine_dir ? machine_dir : FX_MACHINE_DIR,
                                          .rights = { .mover = mover ? mover : FX_MOVER,
                                                      .is_confined = rights != NULL,
                                                      .serves_others = !rights || strcmp(rights, "others") == 0 },
                                          .ready_fd = ready_fd };
    struct emu_hosts_options hosts;
    struct emu_server *server;
    char err[256];
    int r;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    emu_log_init("emunic", EMU_LOG_ERROR);
    if (fx->n_hosts > 1) {
        fx_describe_host(fx, host, &hosts);
        options.hosts = &hosts;
        options.rights.module = hosts.module;
    }
    r = emu_daemon_create(&options, &server, err, sizeof(err));
    if (r < 0) {
        fprintf(stderr, "fixture: %s\n", err);
        _exit(1);
    }
    close(ready_fd);
    r = emu_server_run(server);
    emu_server_destroy(server);
    /* Sanitizers look for leaks at exit(); a later child of this program has whatever the program had. */
    if (fx->number > 0 || fx->is_started)
        _exit(r < 0 ? 1 : 0);
    exit(r < 0 ? 1 : 0);
}

static int create_domain(const struct fx *fx, struct emu_session *admin, uint32_t ptag, uint32_t cookie, uint32_t uid,
                         unsigned limit, uint32_t *id_out)
{
    const unsigned n_ranks = fx->n_ranks;
    struct emu_msg msg = {
        .type = EMU_MSG_DOMAIN_CREATE,
        .domain = { .ptag = ptag, .cookie = cookie, .owner_uid = uid, .member_limit = limit, .n_ranks = n_ranks }
    };
    const char *datapath = getenv("FX_DATAPATH");
    uint32_t words[2 * FX_RANKS_MAX];
    size_t bytes = n_ranks * sizeof(words[0]);
    int fd = memfd_create("ranks", MFD_CLOEXEC);
    int r;

    for (unsigned i = 0; i < n_ranks; i++) {
        words[i] = fx->nids[i];
        words[n_ranks + i] = fx_host_of(fx, fx->nids[i]);
    }

    if (datapath && strcmp(datapath, "routed") == 0)
        msg.domain.flags = EMU_TABLE_ROUTED;
    if (fx->n_hosts > 1) {
        msg.domain.flags |= EMU_DOMAIN_HAS_HOSTS;
        bytes *= 2;
    }
    if (fd < 0 || write(fd, words, bytes) != (ssize_t)bytes)
        return -EIO;
    r = emu_session_request(admin, &msg, &fd, 1, NULL);
    close(fd);
    if (r == 0)
        r = msg.result;
    if (r == 0)
        *id_out = msg.domain.domain_id;
    return r;
}

static char *report_of(struct emu_session *admin, unsigned type)
{
    struct emu_msg msg = { .type = (uint16_t)type };
    struct emu_fds fds;
    char *text = NULL;
    off_t len;

    if (emu_session_request(admin, &msg, NULL, 0, &fds) < 0 || msg.result < 0 || fds.n_fds != 1)
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

static void start_server(struct fx *fx, unsigned host)
{
    int ready[2];
    char byte;

    if (pipe(ready) < 0)
        give_up("pipe", errno);
    fflush(NULL);
    go_to(networks[host].fd);
    fx->hosts[host].daemon = fork();
    if (fx->hosts[host].daemon < 0)
        give_up("fork", errno);
    if (fx->hosts[host].daemon == 0) {
        close(ready[0]);
        serve(fx, host, ready[1]);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        give_up("the server did not start", EIO);
    close(ready[0]);
    go_to(home);
}

static void open_admin(struct fx_host *host)
{
    int r = emu_session_open(&host->admin, host->server, EMU_SOCKET_ADMIN);

    if (r < 0)
        give_up("admin socket", -r);
}

static unsigned hosts_wanted(const struct fx_options *o)
{
    const char *text = getenv("FX_HOSTS");
    unsigned n = o->n_hosts ? o->n_hosts : text ? (unsigned)atoi(text) : 1;

    return n == 0 || n > FX_HOSTS_MAX ? 1 : n;
}

void fx_start(struct fx *fx, const struct fx_options *options)
{
    static const struct fx_options defaults;
    const struct fx_options *o = options ? options : &defaults;
    const char *seconds = getenv("FX_TIMEOUT_S");

    memset(fx, 0, sizeof(*fx));
    fx->n_ranks = o->n_ranks ? o->n_ranks : 4;
    fx->ptag = 77;
    fx->cookie = 0x1234abcd;
    fx->owner = getpid();
    fx->number = started++;
    fx->n_hosts = hosts_wanted(o);
    fx->machine = o->machine ? o->machine : "aries:groups=2";
    fx->timeout_ms = o->timeout_ms ? o->timeout_ms : seconds ? 1000 * (unsigned)atoi(seconds) : 0;
    open_networks(fx->n_hosts);
    current = fx;
    for (unsigned i = 0; i < fx->n_ranks; i++)
        fx->nids[i] = o->nids ? o->nids[i] : i;
    for (unsigned i = 0; i < fx->n_hosts - o->n_absent; i++) {
        snprintf(fx->hosts[i].server, sizeof(fx->hosts[i].server), i == 0 ? "test-%d-%u" : "test-%d-%u-%u",
                 (int)fx->owner, fx->number, i);
        start_server(fx, i);
        open_admin(&fx->hosts[i]);
    }
    strcpy(fx->server, fx->hosts[0].server);
    fx->daemon = fx->hosts[0].daemon;
    fx->admin = fx->hosts[0].admin;
    fx_use(fx);
    fx->owner_uid = o->owner_uid ? o->owner_uid : geteuid();
    fx->member_limit = o->member_limit;
    fx_await_all_hosts(fx);
    fx->is_started = true;
    if (o->n_absent == 0)
        fx_start_domain(fx);
}

void fx_start_domain(struct fx *fx)
{
    int r = create_domain(fx, &fx->admin, fx->ptag, fx->cookie, fx->owner_uid, fx->member_limit, &fx->domain_id);

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

static int stop_host(struct emu_session *admin, pid_t daemon)
{
    struct emu_msg msg = { .type = EMU_MSG_SHUTDOWN };
    int status = -1;

    emu_session_request(admin, &msg, NULL, 0, NULL);
    while (waitpid(daemon, &status, 0) < 0 && errno == EINTR)
        ;
    emu_session_close(admin);
    expect_end(status);
    return status;
}

int fx_stop(struct fx *fx)
{
    int status = stop_host(&fx->admin, fx->daemon);

    for (unsigned i = 1; i < fx->n_hosts; i++) {
        if (fx->hosts[i].daemon > 0)
            stop_host(&fx->hosts[i].admin, fx->hosts[i].daemon);
    }
    current = NULL;
    unsetenv("EMUNIC_SERVER");
    return status;
}

unsigned fx_host_of(const struct fx *fx, uint32_t nid)
{
    return nid % fx->n_hosts;
}

void fx_kill_host(struct fx *fx, unsigned host)
{
    kill(fx->hosts[host].daemon, SIGKILL);
    while (waitpid(fx->hosts[host].daemon, NULL, 0) < 0 && errno == EINTR)
        ;
    fx->hosts[host].daemon = 0;
    emu_session_close(&fx->hosts[host].admin);
}

void fx_restart_host(struct fx *fx, unsigned host)
{
    start_server(fx, host);
    open_admin(&fx->hosts[host]);
}

void fx_await_host(struct fx *fx, unsigned from, unsigned of, bool is_up)
{
    uint64_t end_ns = emu_clock_ns() + 60000000000ull;
    bool was_up = !is_up;

    while (was_up != is_up) {
        char *text = report_of(from == 0 && fx->admin.fd > 0 ? &fx->admin : &fx->hosts[from].admin, EMU_MSG_STATUS);
        json_t *report = text ? json_loads(text, 0, NULL) : NULL;
        const json_t *host = json_array_get(json_object_get(report, "hosts"), of);
        const char *state = json_string_value(json_object_get(host, "state"));

        was_up = state && strcmp(state, "up") == 0;
        json_decref(report);
        free(text);
        if (emu_clock_ns() > end_ns)
            give_up("a host does not come or go", ETIMEDOUT);
        sched_yield();
    }
}

void fx_await_all_hosts(struct fx *fx)
{
    for (unsigned from = 0; from < fx->n_hosts; from++) {
        for (unsigned of = 0; of < fx->n_hosts; of++) {
            if (from != of && fx->hosts[from].daemon > 0 && fx->hosts[of].daemon > 0)
                fx_await_host(fx, from, of, true);
        }
    }
}

int fx_add_domain(const struct fx *fx, uint32_t ptag, uint32_t cookie, uint32_t owner_uid, unsigned member_limit,
                  struct emu_session *admin_out)
{
    uint32_t id;
    int r;

    r = emu_session_open(admin_out, fx->server, EMU_SOCKET_ADMIN);
    if (r < 0)
        return r;
    r = create_domain(fx, admin_out, ptag, cookie, owner_uid, member_limit, &id);
    if (r < 0)
        emu_session_close(admin_out);
    return r;
}

int fx_end_domain(struct emu_session *admin)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END }; /* without a signal: the caller may be a member */
    int r = emu_session_request(admin, &end, NULL, 0, NULL);

    emu_session_close(admin);
    return r;
}

void fx_use(const struct fx *fx)
{
    current = fx;
    setenv("EMUNIC_SERVER", fx->server, 1);
}

void fx_needs_emunic(void)
{
}

void fx_forget(struct fx *fx)
{
    close(fx->admin.fd);
    for (unsigned i = 1; i < fx->n_hosts; i++) {
        if (fx->hosts[i].daemon > 0)
            close(fx->hosts[i].admin.fd);
    }
}

/* What an administrator says to the machine. */
static int tell_machine(struct fx *fx, const struct emu_msg *what, const int *fds, unsigned n_fds)
{
    struct emu_msg msg = *what;
    int r = emu_session_request(&fx->admin, &msg, fds, n_fds, NULL);

    return r < 0 ? r : msg.result;
}

void fx_set_routed(struct fx *fx, bool is_routed)
{
    struct emu_msg msg = { .type = EMU_MSG_DATAPATH,
                           .domain = { .domain_id = fx->domain_id, .flags = is_routed ? EMU_TABLE_ROUTED : 0 } };

    tell_machine(fx, &msg, NULL, 0);
}

int fx_change_network(struct fx *fx, struct emu_msg_network change)
{
    struct emu_msg msg = { .type = EMU_MSG_NETWORK, .network = change };

    return tell_machine(fx, &msg, NULL, 0);
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
    int r;

    snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, " ")) && n < 24)
        items[n++] = word;
    if (emu_fault_words_read(items, n, &rule, err, sizeof(err)) < 0) {
        fprintf(stderr, "fixture: fault '%s': %s\n", words, err);
        exit(1);
    }
    if (fd < 0 || write(fd, &rule, sizeof(rule)) != (ssize_t)sizeof(rule))
        give_up("fault", errno);
    r = tell_machine(fx, &msg, &fd, 1);
    if (r < 0)
        give_up("fault", -r);
    close(fd);
}

void fx_clear_faults(struct fx *fx)
{
    struct emu_msg msg = { .type = EMU_MSG_FAULT_CLEAR, .fault = { .domain_id = fx->domain_id } };

    tell_machine(fx, &msg, NULL, 0);
}

unsigned fx_fault_hits(struct fx *fx)
{
    char *text = report_of(&fx->admin, EMU_MSG_FAULTS);
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
    if (current && current->n_hosts > 1)
        setenv("EMUNIC_SERVER", current->hosts[fx_host_of(current, nid)].server, 1);
}

char *fx_report(struct fx *fx, unsigned type)
{
    return report_of(&fx->admin, type);
}

int fx_count_fds(struct fx *fx)
{
    struct emu_msg nothing = { .type = EMU_MSG_DATAPATH, .domain = { .domain_id = UINT32_MAX } };

    /* emunic answers one request after the other: its answer to this one says that all turns before it are over. */
    emu_session_request(&fx->admin, &nothing, NULL, 0, NULL);
    return proc_count_fds(fx->daemon);
}

int fx_space_map(struct emu_port *port, size_t bytes, void **addr_out)
{
    void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (addr == MAP_FAILED)
        return -errno;
    memset(addr, 0, bytes); /* so that there are pages to be moved */
    if (!emu_space_cover(port, (uint64_t)(uintptr_t)addr, bytes, true)) {
        munmap(addr, bytes);
        return -ENOMEM;
    }
    *addr_out = addr;
    return 0;
}

void *fx_map(struct fx_mapped *m, const struct fx *fx, uint32_t nid, uint32_t instance_id, size_t bytes)
{
    void *mem = NULL;
    int r;

    fx_set_node(nid);
    r = emu_port_attach(&m->port, fx->ptag, fx->cookie, instance_id, 0);
    if (r == 0)
        r = fx_space_map(&m->port, bytes, &mem);
    if (r == 0)
        r = emu_port_mem_register(
            &m->port, &(struct emu_port_memory){ (uint64_t)(uintptr_t)mem, bytes, EMU_MD_MAPPED, EMU_CQ_NONE }, &m->mdh,
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
    madvise(m->mem, m->bytes, MADV_REMOVE);
    munmap(m->mem, m->bytes);
    emu_port_detach(&m->port);
}
