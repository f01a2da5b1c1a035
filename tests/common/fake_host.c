/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/common/fake_host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/peers/sessions.h"

#define N_NIDS 768u /* of the fixture's machine */

static const struct fake_host_test *test;
static struct emu_host_blob blobs[FX_HOSTS_MAX];

static void say_hello(struct fake_host *fake, uint32_t host, uint32_t n_hosts)
{
    struct emu_host_hello hello = { .n_hosts = n_hosts, .n_nids = N_NIDS };
    uint8_t message[EMU_HOST_HELLO_BYTES];

    snprintf(hello.name, sizeof(hello.name), "host%u", fake->number);
    emu_host_hello_put(message, &hello);
    emu_transport_ops.send(fake->transport, host, message, sizeof(message));
}

static void peer_up(void *owner, uint32_t host)
{
    struct fake_host *fake = owner;

    fake->is_up[host] = fake->owes_hello[host] = true;
}

static void peer_down(void *owner, uint32_t host, int cause)
{
    struct fake_host *fake = owner;

    (void)cause;
    fake->is_up[host] = fake->owes_hello[host] = false;
    atomic_fetch_add(&fake->n_ends, 1);
}

static bool answer_domain(struct fake_host *fake, uint32_t host, const uint8_t *bytes, uint32_t length)
{
    struct emu_host_head head;
    struct emu_host_domain d;
    uint8_t message[EMU_HOST_DOMAIN_BYTES];

    if (!emu_host_head_parse(bytes, length, &head) || head.kind != EMU_HOST_DOMAIN ||
        !emu_host_domain_parse(bytes, length, &d) || d.op != EMU_HOST_DOMAIN_CREATE || d.first + d.n != d.n_ranks)
        return false;
    d = (struct emu_host_domain){ .domain = d.domain, .op = EMU_HOST_DOMAIN_RESULT };
    emu_host_domain_put(message, &d);
    emu_transport_ops.send(fake->transport, host, message, sizeof(message));
    d.op = EMU_HOST_DOMAIN_REACHES;
    emu_host_domain_put(message, &d);
    emu_transport_ops.send(fake->transport, host, message, sizeof(message));
    return true;
}

bool fake_host_answer_rows(struct emu_transport *transport, uint32_t host, const uint8_t *bytes, uint32_t length,
                           const uint64_t *words, uint32_t n)
{
    static uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];
    struct emu_host_head head;
    struct emu_host_admin m;

    if (!emu_host_head_parse(bytes, length, &head) || head.kind != EMU_HOST_ADMIN ||
        !emu_host_admin_parse(bytes, length, &m) || m.op != EMU_HOST_ADMIN_REPORT || m.type != EMU_MSG_STATUS)
        return false;
    if (m.first > n)
        return true;
    m.op = EMU_HOST_ADMIN_ROWS;
    m.total = n;
    m.n = n - m.first < EMU_HOST_ADMIN_WORDS ? n - m.first : EMU_HOST_ADMIN_WORDS;
    emu_transport_ops.send(transport, host, message, emu_host_admin_put(message, &m, words));
    return true;
}

bool fake_host_answer_status(struct emu_transport *transport, uint32_t host, const uint8_t *bytes, uint32_t length)
{
    const uint64_t words[] = { EMU_HOST_ROW_HOST, (uint64_t)getpid(), 0, 0, 0 };

    return fake_host_answer_rows(transport, host, bytes, length, words, sizeof(words) / sizeof(words[0]));
}

bool fake_host_answer_ping(struct fake_host *fake, uint32_t host, const uint8_t *bytes, uint32_t length)
{
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];
    struct emu_host_head head;
    struct emu_host_admin m;

    if (!emu_host_head_parse(bytes, length, &head) || head.kind != EMU_HOST_ADMIN ||
        !emu_host_admin_parse(bytes, length, &m) || m.op != EMU_HOST_ADMIN_PING)
        return false;
    m.op = EMU_HOST_ADMIN_PONG;
    emu_transport_ops.send(fake->transport, host, message, emu_host_admin_put(message, &m, NULL));
    return true;
}

static bool take_message(void *owner, uint32_t host, const void *data, uint32_t length)
{
    struct fake_host *fake = owner;

    if (test->take && test->take(fake, host, data, length))
        return true;
    if (!answer_domain(fake, host, data, length) && !atomic_load(&fake->hides_status))
        fake_host_answer_status(fake->transport, host, data, length);
    return true;
}

static void transport_says(void *owner, enum emu_log_level level, const char *line)
{
    (void)owner;
    (void)level;
    (void)line;
}

static void look_at(struct fake_host *fake, uint32_t host, uint32_t n_hosts)
{
    struct emu_transport_stats stats;

    emu_transport_ops.stats(fake->transport, host, &stats);
    if (stats.state == EMU_PEER_ABSENT)
        emu_transport_ops.join(fake->transport, host, blobs[host].bytes, blobs[host].length_bytes);
    if (!fake->owes_hello[host] || atomic_load(&fake->holds_hello[host]))
        return;
    fake->owes_hello[host] = false;
    say_hello(fake, host, n_hosts);
}

static _Noreturn void be_it(struct fx *fx, struct fake_host *fake)
{
    static const struct emu_transport_events events = {
        .peer_up = peer_up, .peer_down = peer_down, .message = take_message, .log = transport_says
    };
    struct emu_transport_config config;
    struct emu_hosts_options o;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fx_forget(fx);
    fx_describe_host(fx, fake->number, &o);
    config = (struct emu_transport_config){ .host = fake->number,
                                            .n_hosts = o.n,
                                            .incarnation = emu_clock_ns(),
                                            .key = test->key ? test->key : o.key,
                                            .key_bytes = test->key ? (uint32_t)strlen(test->key) : o.key_bytes,
                                            .provider = o.provider,
                                            .node = o.node,
                                            .timeout_ns = o.timeout_ns, /* how often it gives a sign of life */
                                            .service = o.service,
                                            .events = &events,
                                            .owner = fake };
    if (emu_transport_ops.open(&config, &fake->transport) < 0)
        _exit(1);
    for (uint32_t i = 0; i < o.n; i++) {
        if (i != fake->number && emu_transport_ops.address_of(fake->transport, i, o.peer_nodes[i], o.peer_services[i],
                                                              blobs[i].bytes, &blobs[i].length_bytes) < 0)
            _exit(1);
    }
    while (!atomic_load(&fake->is_over)) {
        for (uint32_t i = 0; i < o.n; i++) {
            if (i != fake->number)
                look_at(fake, i, o.n);
        }
        if (test->act) {
            test->act(fake);
            atomic_fetch_add(&fake->n_rounds, 1);
        }
        emu_transport_ops.progress(fake->transport);
        sched_yield();
    }
    emu_transport_ops.close(fake->transport);
    _exit(0);
}

struct fake_host *fake_host_start(struct fx *fx, unsigned number, const struct fake_host_test *its_test)
{
    static const struct fake_host_test nothing;
    struct fake_host *fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (fake == MAP_FAILED) {
        perror("fake host");
        exit(1);
    }
    fake->number = number;
    test = its_test ? its_test : &nothing;
    for (unsigned i = 0; i < FX_HOSTS_MAX; i++)
        atomic_store(&fake->holds_hello[i], (test->held_hellos >> i & 1) != 0);
    fflush(NULL);
    fake->pid = fork();
    if (fake->pid == 0)
        be_it(fx, fake);
    return fake;
}

int fake_host_stop(struct fake_host *fake)
{
    int status = -1;

    atomic_store(&fake->is_over, true);
    waitpid(fake->pid, &status, 0);
    munmap(fake, sizeof(*fake));
    return status;
}
