/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attacks over the network, by a stranger without the key, on whole emunics in network namespaces: a pair that has a
 * job whose data are checked, and a host whose partner never comes. `attack-hosts PATTERN` runs some.
 *
 *   10.99.8.1  h0: emunic   <-- the job -->   10.99.8.2  h1: emunic
 *          ^                                         ^
 *          `----------- 10.99.8.3  h2: strangers ----'        control: a program on h0 that takes and closes
 *
 * What a stranger sends are random bytes, streams of h1 as they were, cut, and with bytes changed; with the handshake
 * before libfabric's words or without. This program's send() and sendmsg() are found before those of libc, so h1's
 * streams are recorded. ATTACK_SECONDS and ATTACK_CONNECTIONS say how long, EMU_TEST_SEED repeats the choices. Below
 * tests/multihost/cluster.py.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/daemon/peers/sessions.h"
#include "emunic/transport/admit.h"
#include "tests/attack/phases.h"
#include "tests/attack/victim.h"
#include "tests/common/proc.h"
#include "tests/common/seed.h"

#define EXPORTED       __attribute__((visibility("default")))
#define SECOND_NS      1000000000ull
#define END_NS         (2 * SECOND_NS)
#define PATIENCE_NS    (20 * SECOND_NS)
#define STRANGERS      2u
#define SLOTS          256u  /* connections of a stranger at a time */
#define SLOTS_HELD     2048u /* of one that holds them */
#define STREAM_BYTES   16384u
#define STREAMS        16u
#define STREAM_MIN     200u
#define HANDSHAKE      "EMUADMIT"
#define HANDSHAKE_SIZE (EMU_ADMIT_HELLO_BYTES + EMU_ADMIT_PROOF_BYTES)
#define SINK_PORT      9999u

struct stream {
    uint16_t port; /* the recorder's; 0: free */
    uint32_t n;
    uint8_t bytes[STREAM_BYTES];
};

/* Of all processes. */
static struct common {
    atomic_flag lock;
    _Atomic bool records;
    struct stream streams[STREAMS];
    _Atomic uint64_t n_answered; /* hostile connections that the other side has closed, or said something on */
} * common;

static struct network {
    char file[64];
    struct in_addr address;
} networks[3];
static const struct network *const attackers_network = &networks[2];

static struct fx fx;
static struct sockaddr_in targets[2];
static unsigned n_targets;
static pid_t sink;
static pid_t own_pid;
static struct emu_random choices;

/* ---- recording ---- */

static void record(int fd, const uint8_t *bytes, size_t n)
{
    struct sockaddr_in own = { 0 };
    struct sockaddr_in peer = { 0 };
    socklen_t length = sizeof(own);
    struct stream *s = common->streams;

    if (getpeername(fd, (struct sockaddr *)&peer, &length) < 0 || peer.sin_family != AF_INET ||
        peer.sin_addr.s_addr != networks[0].address.s_addr)
        return;
    length = sizeof(own);
    syscall(SYS_getsockname, fd, &own, &length);
    while (atomic_flag_test_and_set(&common->lock))
        ;
    while (s < common->streams + STREAMS && s->port != 0 && s->port != own.sin_port)
        s++;
    if (s < common->streams + STREAMS) {
        s->port = own.sin_port;
        n = n < STREAM_BYTES - s->n ? n : STREAM_BYTES - s->n;
        memcpy(s->bytes + s->n, bytes, n);
        s->n += (uint32_t)n;
    }
    atomic_flag_clear(&common->lock);
}

static bool must_record(void)
{
    return common && atomic_load_explicit(&common->records, memory_order_relaxed) && getpid() != own_pid;
}

EXPORTED ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    ssize_t r = syscall(SYS_sendto, fd, bytes, n, flags, NULL, 0);

    if (r > 0 && must_record())
        record(fd, bytes, (size_t)r);
    return r;
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t r = syscall(SYS_sendmsg, fd, message, flags);
    size_t left = r > 0 && must_record() ? (size_t)r : 0;

    for (size_t i = 0; i < message->msg_iovlen && left > 0; i++) {
        size_t n = message->msg_iov[i].iov_len < left ? message->msg_iov[i].iov_len : left;

        record(fd, message->msg_iov[i].iov_base, n);
        left -= n;
    }
    return r;
}

static uint32_t words_at(const struct stream *s)
{
    return s->n >= HANDSHAKE_SIZE && memcmp(s->bytes, HANDSHAKE, 8) == 0 ? HANDSHAKE_SIZE : 0;
}

/* Those with words of libfabric. */
static unsigned n_good_streams(void)
{
    unsigned n = 0;

    for (const struct stream *s = common->streams; s < common->streams + STREAMS; s++)
        n += s->n > STREAM_MIN;
    return n;
}

/* ---- hosts ---- */

static void find_targets(unsigned n)
{
    struct emu_hosts_options hosts;

    fx_describe_host(&fx, 0, &hosts);
    n_targets = n;
    for (unsigned i = 0; i < n; i++)
        targets[i] = (struct sockaddr_in){ .sin_family = AF_INET,
                                           .sin_addr = networks[i].address,
                                           .sin_port = htons((uint16_t)atoi(hosts.peer_services[i])) };
}

/* The number of connections that an address may begin is out of the way: all get to the handshake. */
static int let_all_come(void **state)
{
    (void)state;
    return setenv("EMUNIC_STRANGERS_PER_SECOND", "1000000", 1);
}

static int start_pair(void **state)
{
    (void)state;
    atomic_store(&common->records, n_good_streams() == 0);
    fx_start(&fx, &(struct fx_options){ .n_hosts = 2 });
    find_targets(2);
    return 0;
}

static int start_open_pair(void **state)
{
    return let_all_come(state) == 0 ? start_pair(state) : -1;
}

static int start_waiting(void **state)
{
    if (let_all_come(state) < 0)
        return -1;
    fx_start(&fx, &(struct fx_options){ .n_hosts = 2, .n_absent = 1 });
    find_targets(1);
    return 0;
}

static bool has_ended(void *arg)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t) * (pid_t *)arg, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* SIGTERM ends each of them, well and in time. */
static void end_all(void)
{
    for (unsigned i = 0; i < n_targets; i++) {
        uint64_t began_ns = emu_clock_ns();
        int status = -1;

        assert_int_equal(kill(fx.hosts[i].daemon, SIGTERM), 0);
        assert_true(eventually(has_ended, &fx.hosts[i].daemon, PATIENCE_NS));
        print_message("# host %u ends %.3f s after SIGTERM\n", i, (double)(emu_clock_ns() - began_ns) / 1e9);
        assert_true(emu_clock_ns() - began_ns < END_NS);
        assert_int_equal(waitpid(fx.hosts[i].daemon, &status, 0), fx.hosts[i].daemon);
        assert_int_equal(status, 0);
    }
}

static int stop(void **state)
{
    phases_kill(state);
    fx_stop(&fx);
    unsetenv("EMUNIC_STRANGERS_PER_SECOND");
    return 0;
}

static int n_before[2];

/* Once it has let go of the strangers. */
static bool has_no_more(void *arg)
{
    unsigned host = *(unsigned *)arg;

    return proc_count_fds(fx.hosts[host].daemon) <= n_before[host];
}

static void count_descriptors(void)
{
    for (unsigned i = 0; i < n_targets; i++)
        n_before[i] = proc_count_fds(fx.hosts[i].daemon);
}

static void expect_no_descriptor_left(void)
{
    for (unsigned i = 0; i < n_targets; i++) {
        int now = proc_count_fds(fx.hosts[i].daemon);

        assert_true(eventually(has_no_more, &i, PATIENCE_NS));
        print_message("# host %u has %d descriptors, at the end of the attack %d, before it %d\n", i,
                      proc_count_fds(fx.hosts[i].daemon), now, n_before[i]);
    }
}

/* ---- the stranger ---- */

/* The recorded stream: as it was, or libfabric's words of it alone. */
static uint32_t good_stream(bool is_bare, uint8_t *bytes)
{
    const struct stream *s;
    uint32_t skip;

    do {
        s = &common->streams[emu_random_below(&choices, STREAMS)];
    } while (s->n <= STREAM_MIN);
    skip = is_bare ? words_at(s) : 0;
    memcpy(bytes, s->bytes + skip, s->n - skip);
    return s->n - skip;
}

static void mutate(uint8_t *bytes, uint32_t n)
{
    uint32_t times = 1 + (uint32_t)emu_random_below(&choices, 8);

    while (times-- > 0) {
        uint32_t at = (uint32_t)emu_random_below(&choices, emu_random_below(&choices, 2) ? n : (n < 300 ? n : 300));

        bytes[at] = (uint8_t)emu_random_next(&choices);
    }
}

static uint32_t random_bytes(uint8_t *bytes)
{
    uint32_t n = 1 + (uint32_t)emu_random_below(&choices, 500);

    for (uint32_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)emu_random_next(&choices);
    if (n >= 8 && emu_random_below(&choices, 2))
        memcpy(bytes, HANDSHAKE, 8);
    return n;
}

/* Bytes of one hostile connection. */
static uint32_t hostile_stream(uint8_t *bytes)
{
    uint32_t way = (uint32_t)emu_random_below(&choices, 6);
    uint32_t n;

    if (way == 0)
        return random_bytes(bytes);
    n = good_stream(way & 1, bytes);
    if (way == 2)
        return 1 + (uint32_t)emu_random_below(&choices, n);
    if (way > 2)
        mutate(bytes, n);
    return n;
}

enum state { EMPTY, CALLING, SENT };

struct slot {
    enum state state;
    int fd;
    unsigned visits; /* until it is closed */
};

static struct slot slots[SLOTS_HELD];
static unsigned n_slots;
static bool is_patient; /* holds what it has */
static uint64_t rate;   /* connections a second of this process; 0: as fast as it can */
static uint64_t next_ns;

static void become_stranger(unsigned number)
{
    int network = open(attackers_network->file, O_RDONLY | O_CLOEXEC);
    int range;

    MUST(network >= 0 && setns(network, CLONE_NEWNET) == 0);
    syscall(SYS_close_range, 3, ~0u, 0);
    attacker_takes_all_descriptors();
    range = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC);
    MUST(range >= 0 && write(range, "1024 65535", 10) == 10);
    close(range);
    choices.state += number;
    n_slots = SLOTS;
}

static void become_holder(unsigned number)
{
    become_stranger(number);
    n_slots = SLOTS_HELD;
    is_patient = true;
}

/* No faster than `rate`: then a moment later. */
static bool may_call(void)
{
    uint64_t now_ns = emu_clock_ns();

    if (rate == 0)
        return true;
    if (next_ns + SECOND_NS / 100 < now_ns) /* what is later than that is not made up for */
        next_ns = now_ns;
    if (next_ns > now_ns)
        return false;
    next_ns += SECOND_NS / rate;
    return true;
}

static void call(struct slot *slot, enum phase phase)
{
    struct sockaddr_in address = targets[emu_random_below(&choices, n_targets)];

    if (phase == CONTROL) {
        address.sin_addr = networks[0].address;
        address.sin_port = htons(SINK_PORT);
    }
    slot->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    MUST(slot->fd >= 0);
    if (syscall(SYS_connect, slot->fd, &address, sizeof(address)) < 0 && errno != EINPROGRESS) {
        MUST(errno == EADDRNOTAVAIL || errno == EAGAIN); /* all ports are in use */
        close(slot->fd);
        return;
    }
    slot->state = CALLING;
}

/* Ends as an honest process does, or at once. */
static void hang_up(struct slot *slot)
{
    struct linger at_once = { .l_onoff = 1 };

    if (emu_random_below(&choices, 8) != 0)
        setsockopt(slot->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(slot->fd);
    slot->state = EMPTY;
}

/* A part of a handshake, or nothing at all. */
static uint32_t begun_stream(uint8_t *bytes)
{
    (void)good_stream(false, bytes);
    return (uint32_t)emu_random_below(&choices, HANDSHAKE_SIZE);
}

/* Has it been made? Then it says its words. */
static bool speak(struct slot *slot, enum phase phase)
{
    static uint8_t bytes[STREAM_BYTES];
    struct pollfd made = { .fd = slot->fd, .events = POLLOUT };
    uint32_t n;

    if (poll(&made, 1, 0) == 0)
        return false;
    n = !is_patient ? hostile_stream(bytes) : phase == ATTACK ? begun_stream(bytes) : 0;
    if (made.revents & (POLLERR | POLLHUP) ||
        (n > 0 && syscall(SYS_sendto, slot->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0) < 0)) {
        hang_up(slot);
        return false;
    }
    slot->state = SENT;
    slot->visits = emu_random_below(&choices, 64) == 0 ? 200 : 1 + (unsigned)emu_random_below(&choices, 4);
    return true;
}

static void listen_to(struct slot *slot)
{
    uint8_t bytes[256];
    ssize_t n = syscall(SYS_recvfrom, slot->fd, bytes, sizeof(bytes), MSG_DONTWAIT, NULL, NULL);
    bool is_over = n == 0 || (n < 0 && errno != EAGAIN);

    if (n >= 0)
        atomic_fetch_add(&common->n_answered, 1);
    if (is_over || (!is_patient && --slot->visits == 0))
        hang_up(slot);
}

/* Each connection goes one step ahead. How many were made and got their words. */
static unsigned visit_slots(enum phase phase)
{
    unsigned n = 0;
    bool must_wait = is_patient;

    for (unsigned i = 0; i < n_slots && phase_lasts(phase); i++) {
        if (slots[i].state == EMPTY && !may_call())
            must_wait = true;
        else if (slots[i].state == EMPTY)
            call(&slots[i], phase);
        else if (slots[i].state == CALLING)
            n += speak(&slots[i], phase);
        else
            listen_to(&slots[i]);
    }
    if (must_wait)
        poll(NULL, 0, is_patient ? 10 : 4);
    return n;
}

static void hang_up_all(enum phase phase)
{
    (void)phase;
    for (unsigned i = 0; i < n_slots; i++) {
        if (slots[i].state != EMPTY)
            hang_up(&slots[i]);
    }
}

/* Until all that can be held are held. */
static void hold_all(enum phase phase)
{
    uint64_t end_ns = emu_clock_ns() + SECOND_NS / 5;

    while (emu_clock_ns() < end_ns && phase_lasts(phase))
        (void)visit_slots(phase);
}

/* ---- the control's target ---- */

/* Takes connections; closes each when it says something. */
static _Noreturn void be_sink(void)
{
    const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(SINK_PORT) };
    int network = open(networks[0].file, O_RDONLY | O_CLOEXEC);
    int fd, epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    MUST(network >= 0 && setns(network, CLONE_NEWNET) == 0);
    attacker_takes_all_descriptors();
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    MUST(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    MUST(syscall(SYS_listen, fd, SOMAXCONN) == 0);
    event.data.fd = fd;
    MUST(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
    for (;;) {
        struct epoll_event ready[64];
        int n = epoll_wait(epoll_fd, ready, 64, -1);

        for (int i = 0; i < n; i++) {
            uint8_t bytes[256];

            if (ready[i].data.fd != fd) {
                (void)!syscall(SYS_recvfrom, ready[i].data.fd, bytes, sizeof(bytes), MSG_DONTWAIT, NULL, NULL);
                close(ready[i].data.fd);
                continue;
            }
            event.data.fd = (int)syscall(SYS_accept4, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (event.data.fd >= 0)
                epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event);
        }
    }
}

static int start_all(void **state)
{
    sink = fork();
    if (sink == 0)
        be_sink();
    return sink > 0 ? phases_stand_apart(state) : -1;
}

static int stop_all(void **state)
{
    (void)state;
    kill(sink, SIGKILL);
    waitpid(sink, NULL, 0);
    return 0;
}

/* ---- tests ---- */

static uint64_t wanted(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

static const struct attack streams = { .name = "streams",
                                       .unit = "connections",
                                       .n_processes = STRANGERS,
                                       .become = become_stranger,
                                       .work = visit_slots,
                                       .end = hang_up_all };

static struct victim victim;

static void open_victim(void)
{
    victim_open(&victim, &fx, 0, 1);
    victim_measure(&victim);
    atomic_store(&common->records, false);
    assert_true(n_good_streams() > 0);
}

static void tell_connections(const char *name, uint64_t n)
{
    print_message("# %s: %llu connections, %llu of them answered or closed\n", name, (unsigned long long)n,
                  (unsigned long long)atomic_load(&common->n_answered));
    assert_true(atomic_load(&common->n_answered) > 0);
    atomic_store(&common->n_answered, 0);
}

static void test_mutated_streams_leave_a_joined_pair_alone(void **state)
{
    uint64_t end_ns;
    uint64_t n_blocks = 0;

    (void)state;
    choices = seeded(51);
    open_victim();
    count_descriptors();
    end_ns = emu_clock_ns() + wanted("ATTACK_SECONDS", 600) * SECOND_NS;
    phases_begin(&streams);
    while (emu_clock_ns() < end_ns) {
        (void)victim_put_often(&victim);
        n_blocks++;
    }
    tell_connections("a joined pair", phases_stop());
    print_message("# a joined pair: %llu puts beside them, each right\n",
                  (unsigned long long)(n_blocks * victim.n_puts));
    (void)victim_put_often(&victim);
    expect_no_descriptor_left();
    victim_close(&victim);
    end_all();
}

static bool is_over(void *arg)
{
    return emu_clock_ns() > *(uint64_t *)arg;
}

static void test_mutated_streams_leave_a_waiting_host_alone(void **state)
{
    uint64_t seconds = wanted("ATTACK_SECONDS", 600);
    uint64_t end_ns;

    (void)state;
    if (n_good_streams() == 0)
        fail_msg("the test of the pair records the streams: it runs before");
    choices = seeded(53);
    count_descriptors();
    end_ns = emu_clock_ns() + seconds * SECOND_NS;
    phases_begin(&streams);
    while (!is_over(&end_ns)) {
        assert_false(has_ended(&fx.hosts[0].daemon));
        poll(NULL, 0, 50);
    }
    tell_connections("a waiting host", phases_stop());
    expect_no_descriptor_left();
    end_all();
}

static uint64_t n_wanted;

static bool are_enough(uint64_t n)
{
    return n >= n_wanted;
}

/* Connections beside the job until there are as many as wanted. */
static double beside_a_job(struct attack *attack, uint64_t n)
{
    static struct figures figures;

    choices = seeded(57);
    n_wanted = n;
    attack->is_enough = are_enough;
    open_victim();
    count_descriptors();
    phases_run(attack, victim_put_often, &victim, &figures);
    tell_connections(attack->name, figures.units[ATTACK]);
    assert_true(figures.units[ATTACK] >= n_wanted);
    expect_no_descriptor_left();
    victim_close(&victim);
    end_all();
    phases_require_bound(&figures);
    return figures.quiet;
}

static void become_slower_stranger(unsigned number)
{
    become_stranger(number);
    rate = wanted("ATTACK_RATE", 3000) / STRANGERS;
}

static void test_a_million_connections_beside_a_job(void **state)
{
    struct attack million = streams;

    (void)state;
    million.name = "a million";
    million.become = become_slower_stranger;
    million.keeps_its_pace = true;
    assert_true(beside_a_job(&million, wanted("ATTACK_CONNECTIONS", 1000000)) < BOUND);
}

/* The strangers take all that there is of the processors, which they share with the job: no bound but the control's. Of
 * what they begin the emunics take a part only (EMUNIC_STRANGERS_PER_SECOND), so there are fewer to wait for. */
static void test_connections_as_fast_as_they_can_be_made(void **state)
{
    struct attack flood = streams;

    (void)state;
    flood.name = "a flood";
    beside_a_job(&flood, wanted("ATTACK_CONNECTIONS", 1000000) / 100);
}

static void test_held_connections_beside_a_job(void **state)
{
    const struct attack held = { .name = "held",
                                 .unit = "connections",
                                 .n_processes = STRANGERS,
                                 .become = become_holder,
                                 .begin = hold_all,
                                 .work = visit_slots,
                                 .end = hang_up_all };
    static struct figures figures;

    (void)state;
    choices = seeded(59);
    open_victim();
    count_descriptors();
    phases_run(&held, victim_put_often, &victim, &figures);
    expect_no_descriptor_left();
    victim_close(&victim);
    end_all();
    phases_require_bound(&figures);
}

/* As cluster.py says it: ADDRESS=FILE,... */
static bool read_networks(void)
{
    const char *variable = getenv("FX_NETWORKS");
    char *text = variable ? strdup(variable) : NULL;
    char *rest = text;
    unsigned n = 0;

    for (; text && n < 3 && rest; n++) {
        const char *address = strsep(&rest, "=");
        const char *file = strsep(&rest, ",");

        if (!file || inet_pton(AF_INET, address, &networks[n].address) != 1)
            break;
        snprintf(networks[n].file, sizeof(networks[n].file), "%s", file);
    }
    free(text);
    return n == 3;
}

#define PAIR(name)    cmocka_unit_test_setup_teardown(name, start_pair, stop)
#define OPEN(name)    cmocka_unit_test_setup_teardown(name, start_open_pair, stop)
#define WAITING(name) cmocka_unit_test_setup_teardown(name, start_waiting, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        OPEN(test_mutated_streams_leave_a_joined_pair_alone),
        WAITING(test_mutated_streams_leave_a_waiting_host_alone),
        OPEN(test_a_million_connections_beside_a_job),
        PAIR(test_connections_as_fast_as_they_can_be_made),
        PAIR(test_held_connections_beside_a_job),
    };

    if (!read_networks()) {
        printf("1..0 # SKIP needs three networks: tests/multihost/cluster.py -n 3 --above\n");
        return 0;
    }
    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED)
        return 1;
    own_pid = getpid();
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("hosts", tests, start_all, stop_all);
}
