/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strangers at the port of a host: connections without the key. They reach nothing of libfabric, cost the host a
 * bounded number of descriptors, keep no honest host out, and the host ends in time.
 *
 * Hosts are children; this process is the stranger. Host 1 sends host 0 messages all the time, and records the bytes
 * of its connections: this program's send() and sendmsg() are found before those of libc. So there are good streams to
 * replay and to mutate. EMU_FUZZ_CONNECTIONS is the number of those connections, EMU_TEST_SEED repeats the choices.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/transport/admit.h"
#include "tests/common/hosts.h"
#include "tests/common/seed.h"

#define EXPORTED       __attribute__((visibility("default")))
#define SECOND_NS      1000000000ull
#define ADMISSION_NS   SECOND_NS
#define N_STRANGERS    64u
#define N_PER_SECOND   32u
#define FLOOD_MAX      (256 * N_PER_SECOND)
#define POLL_MS        10000
#define N_DESCRIPTORS  512u /* that a host may have */
#define SPARE          16u  /* descriptors that a host may have more than before: other paths, a listener's guests */
#define STREAM_BYTES   16384u
#define STREAMS        16u
#define HANDSHAKE      "EMUADMIT" /* a stream may begin with one */
#define HANDSHAKE_SIZE (EMU_ADMIT_HELLO_BYTES + EMU_ADMIT_PROOF_BYTES)
/* In libfabric's words: the port of the caller's listener, and the size of its first message header. */
#define LISTENER_AT    36u
#define HEADER_SIZE_AT 62u
#define CHANGED_BYTES  256u

struct stream {
    uint16_t port; /* the recorder's; 0: free */
    uint32_t n;
    uint8_t bytes[STREAM_BYTES];
};

struct child {
    pid_t pid;
    _Atomic uint32_t blob_bytes;
    uint8_t blob[EMU_TRANSPORT_BLOB_MAX];
    _Atomic uint32_t n_up;
    _Atomic uint32_t n_down;
    _Atomic uint64_t n_received;
    _Atomic uint64_t n_wrong;
    _Atomic uint64_t n_refused;
    _Atomic bool is_over;
    _Atomic bool must_hang; /* in libfabric, once it is to end */
    _Atomic uint64_t closing_ns;
};

/* Of all processes. */
static struct common {
    struct child children[HOSTS_MAX];
    struct stream streams[STREAMS];
} * common;

static struct emu_random choices;
static bool records;
static bool hangs;

/* ---- recording, and hanging ---- */

static void record(int fd, const uint8_t *bytes, size_t n)
{
    struct sockaddr_in address = { 0 };
    socklen_t length = sizeof(address);
    struct stream *s = common->streams;

    if (!records || getsockname(fd, (struct sockaddr *)&address, &length) < 0 || address.sin_family != AF_INET)
        return;
    while (s < common->streams + STREAMS && s->port != 0 && s->port != address.sin_port)
        s++;
    if (s == common->streams + STREAMS)
        return;
    s->port = address.sin_port;
    n = n < STREAM_BYTES - s->n ? n : STREAM_BYTES - s->n;
    memcpy(s->bytes + s->n, bytes, n);
    s->n += (uint32_t)n;
}

EXPORTED ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    ssize_t r = syscall(SYS_sendto, fd, bytes, n, flags, NULL, 0);

    if (r > 0)
        record(fd, bytes, (size_t)r);
    return r;
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t r = syscall(SYS_sendmsg, fd, message, flags);
    size_t left = r > 0 ? (size_t)r : 0;

    for (size_t i = 0; i < message->msg_iovlen && left > 0; i++) {
        size_t n = message->msg_iov[i].iov_len < left ? message->msg_iov[i].iov_len : left;

        record(fd, message->msg_iov[i].iov_base, n);
        left -= n;
    }
    return r;
}

static bool is_internet(int fd)
{
    int domain = 0;
    socklen_t length = sizeof(domain);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_INET;
}

EXPORTED int close(int fd)
{
    while (hangs && is_internet(fd))
        poll(NULL, 0, 1000);
    return (int)syscall(SYS_close, fd);
}

/* ---- hosts ---- */

static bool wait_until(bool (*is_true)(void *), void *arg)
{
    uint64_t end_ns = emu_clock_ns() + HOST_PATIENCE_NS;

    while (!is_true(arg)) {
        if (emu_clock_ns() > end_ns)
            return false;
        poll(NULL, 0, 1);
    }
    return true;
}

static bool has_address(void *arg)
{
    return atomic_load(&((struct child *)arg)->blob_bytes) != 0;
}

/* Sends messages to `peer` if that is 0. */
static void drive_child(struct child *c, struct host *h, uint32_t peer, bool is_sender)
{
    uint8_t message[100];
    uint64_t n_sent = 0;

    while (!atomic_load(&c->is_over)) {
        struct emu_transport_info info;

        emu_transport_ops.progress(h->t);
        if (is_sender && h->n_up > 0 && n_sent < h->n_messages[peer] + 64) {
            message_fill(message, sizeof(message), n_sent);
            n_sent += emu_transport_ops.send(h->t, peer, message, sizeof(message)) == 0;
        }
        if (!is_sender && h->n_up > 0 && n_sent < h->n_messages[peer]) {
            message_fill(message, sizeof(message), n_sent);
            n_sent += emu_transport_ops.send(h->t, peer, message, sizeof(message)) == 0;
        }
        emu_transport_ops.info(h->t, &info);
        atomic_store(&c->n_up, h->n_up);
        atomic_store(&c->n_down, h->n_down);
        atomic_store(&c->n_received, h->n_messages[peer]);
        atomic_store(&c->n_wrong, h->n_wrong);
        atomic_store(&c->n_refused, info.refused);
        sched_yield();
    }
}

/* The recorder has called: a stream has words of libfabric. */
static bool was_called(void)
{
    const struct stream *s = common->streams;

    return s->n > (memcmp(s->bytes, HANDSHAKE, 8) == 0 ? HANDSHAKE_SIZE : 0);
}

/*
 * Host `number`, which joins host `peer`. The one with the higher number calls first, so that its stream is a good one
 * from the beginning, and sends messages, which come back.
 */
static _Noreturn void be_host(uint32_t number, uint32_t peer)
{
    struct rlimit limit = { .rlim_cur = N_DESCRIPTORS, .rlim_max = N_DESCRIPTORS };
    struct child *c = &common->children[number];
    static struct host h;
    uint64_t begin_ns;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* What ends it ends it, and is no affair of cmocka's. */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    syscall(SYS_close_range, 3, ~0u, 0);
    setrlimit(RLIMIT_NOFILE, &limit);
    records = number == 1;
    if (host_open(&h, number,
                  (struct emu_transport_config){ .join_timeout_ns = 600 * SECOND_NS,
                                                 .timeout_ns = 30 * SECOND_NS,
                                                 .admission_ns = ADMISSION_NS,
                                                 .n_strangers = N_STRANGERS,
                                                 .n_strangers_per_address = N_STRANGERS,
                                                 .n_strangers_per_second = N_PER_SECOND }) < 0)
        _exit(2);
    memcpy(c->blob, h.blob, h.blob_bytes);
    atomic_store(&c->blob_bytes, h.blob_bytes);
    while (!has_address(&common->children[peer]) || (number < peer && !was_called())) {
        emu_transport_ops.progress(h.t);
        sched_yield();
    }
    if (emu_transport_ops.join(h.t, peer, common->children[peer].blob, common->children[peer].blob_bytes) < 0)
        _exit(3);
    drive_child(c, &h, peer, number > peer);
    begin_ns = emu_clock_ns();
    hangs = atomic_load(&c->must_hang);
    emu_transport_ops.close(h.t);
    atomic_store(&c->closing_ns, emu_clock_ns() - begin_ns);
    _exit(0);
}

static void start_host(uint32_t number, uint32_t peer)
{
    struct child *c = &common->children[number];
    pid_t pid;

    memset(c, 0, sizeof(*c));
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_host(number, peer);
    c->pid = pid;
    assert_true(wait_until(has_address, c));
}

static bool has_ended(void *arg)
{
    struct child *c = arg;
    int status;

    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return false;
    c->pid = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
    return true;
}

/* It ends well, and within two seconds. */
static void stop_host(uint32_t number)
{
    struct child *c = &common->children[number];

    atomic_store(&c->is_over, true);
    assert_true(wait_until(has_ended, c));
    assert_int_equal(c->pid, 0);
    assert_true(atomic_load(&c->closing_ns) < 2 * SECOND_NS);
}

static int kill_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOSTS_MAX; i++) {
        struct child *c = &common->children[i];

        if (c->pid > 0) {
            kill(c->pid, SIGKILL);
            waitpid(c->pid, NULL, 0);
        }
        memset(c, 0, sizeof(*c));
    }
    return 0;
}

static bool is_up(void *arg)
{
    return atomic_load(&((struct child *)arg)->n_up) == 1;
}

struct count {
    struct child *child;
    uint64_t n;
};

static bool has_received(void *arg)
{
    const struct count *count = arg;

    return atomic_load(&count->child->n_received) >= count->n;
}

static bool is_alive(const struct child *c)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* Both are there, messages go on arriving, and each was right. */
static void expect_traffic(void)
{
    for (unsigned i = 0; i < 2; i++) {
        struct child *c = &common->children[i];
        struct count count = { c, atomic_load(&c->n_received) + 1000 };

        assert_true(is_alive(c));
        assert_true(wait_until(has_received, &count));
        assert_int_equal(atomic_load(&c->n_wrong), 0);
        assert_int_equal(atomic_load(&c->n_down), 0);
    }
}

/* libfabric's words in a stream. */
static uint32_t words_at(const struct stream *s)
{
    return s->n >= HANDSHAKE_SIZE && memcmp(s->bytes, HANDSHAKE, 8) == 0 ? HANDSHAKE_SIZE : 0;
}

/* The longest of host 1's streams that begin with a call; NULL: there is none worth the name. */
static const struct stream *callers_stream(void)
{
    const struct stream *best = NULL;

    for (const struct stream *s = common->streams; s < common->streams + STREAMS; s++) {
        if (s->n > 1000 && s->bytes[words_at(s) + 1] == 0 && (!best || s->n > best->n))
            best = s;
    }
    return best;
}

/* Where both have called, the wrong one may have won. */
static void start_pair(void)
{
    for (unsigned i = 0; i < 20 && !callers_stream(); i++) {
        kill_all(NULL);
        memset(common->streams, 0, sizeof(common->streams));
        start_host(0, 1);
        start_host(1, 0);
        assert_true(wait_until(is_up, &common->children[0]));
        assert_true(wait_until(is_up, &common->children[1]));
        expect_traffic();
    }
    assert_non_null(callers_stream());
}

static unsigned descriptors(uint32_t number)
{
    char path[64];
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)common->children[number].pid);
    dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

struct descriptors {
    uint32_t number;
    unsigned most;
};

static bool has_few(void *arg)
{
    const struct descriptors *d = arg;

    return descriptors(d->number) <= d->most;
}

/* ---- the stranger ---- */

/* A blob ends with the address. */
static struct sockaddr_in address_of(uint32_t number)
{
    struct sockaddr_in address;

    memcpy(&address, common->children[number].blob + common->children[number].blob_bytes - sizeof(address),
           sizeof(address));
    return address;
}

static int call(uint32_t number)
{
    struct sockaddr_in address = address_of(number);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* From an address that is not the hosts'. -1: the kernel says nothing; on loopback an answer is there at once. */
static int call_from_elsewhere(uint32_t number)
{
    struct sockaddr_in elsewhere = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 8) };
    struct sockaddr_in address = address_of(number);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = { .fd = fd, .events = POLLOUT };

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&elsewhere, sizeof(elsewhere)), 0);
    (void)syscall(SYS_connect, fd, (struct sockaddr *)&address, sizeof(address));
    if (poll(&p, 1, 0) == 1 && (p.revents & (POLLOUT | POLLHUP)) == POLLOUT)
        return fd;
    close(fd);
    return -1;
}

/* The recorded stream: as it was, or libfabric's words of it alone. */
static uint32_t good_stream(bool is_bare, uint8_t *bytes)
{
    static uint16_t other_port = 1;
    const struct stream *s = callers_stream();
    uint32_t skip = is_bare ? words_at(s) : 0;

    memcpy(bytes, s->bytes + skip, s->n - skip);
    /* Those of a peer that is connected are not read further; another port is another peer. */
    if (is_bare)
        memcpy(bytes + LISTENER_AT, &other_port, sizeof(other_port));
    other_port++;
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

/* Bytes of one hostile connection. */
static uint32_t hostile_stream(uint8_t *bytes)
{
    uint32_t way = (uint32_t)emu_random_below(&choices, 6);
    uint32_t n = way == 0 ? (uint32_t)emu_random_below(&choices, 500) : good_stream(way & 1, bytes);

    if (way == 0) {
        for (uint32_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)emu_random_next(&choices);
        if (n >= 8 && emu_random_below(&choices, 2))
            memcpy(bytes, HANDSHAKE, 8);
    } else if (way == 2) {
        n = 1 + (uint32_t)emu_random_below(&choices, n);
    } else if (way > 2) {
        mutate(bytes, n);
    }
    return n;
}

/* Ends as an honest process does, or at once. */
static void end_call(int fd)
{
    struct linger at_once = { .l_onoff = 1 };

    if (emu_random_below(&choices, 2))
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

static unsigned n_connections(void)
{
    const char *text = getenv("EMU_FUZZ_CONNECTIONS");

    return text ? (unsigned)strtoul(text, NULL, 0) : 3000;
}

/* Many hostile connections, of which some are held for a while. */
static void be_hostile(uint32_t number, unsigned n)
{
    static uint8_t bytes[STREAM_BYTES];
    int held[32];

    memset(held, -1, sizeof(held));
    for (unsigned i = 0; i < n; i++) {
        int *place = &held[i % 32];
        int fd = call(number);

        (void)!syscall(SYS_sendto, fd, bytes, hostile_stream(bytes), MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
        if (*place >= 0)
            end_call(*place);
        *place = fd;
        if (i % 64 == 0)
            assert_true(is_alive(&common->children[number]));
    }
    for (unsigned i = 0; i < 32; i++) {
        if (held[i] >= 0)
            end_call(held[i]);
    }
}

/* ---- tests ---- */

static void test_stranger_that_speaks_libfabric_gets_no_word_of_it(void **state)
{
    static uint8_t bytes[STREAM_BYTES];
    int fd;

    (void)state;
    start_pair();
    fd = call(0);
    (void)!syscall(SYS_sendto, fd, bytes, good_stream(true, bytes), MSG_NOSIGNAL, NULL, 0);
    assert_true(recv(fd, bytes, sizeof(bytes), 0) <= 0);
    close(fd);
    expect_traffic();
    stop_host(1);
    stop_host(0);
}

static void test_replayed_connections_get_no_further_than_the_handshake(void **state)
{
    static uint8_t bytes[STREAM_BYTES];
    ssize_t n;
    uint32_t n_got = 0;
    int fd;

    (void)state;
    start_pair();
    fd = call(0);
    (void)!syscall(SYS_sendto, fd, bytes, good_stream(false, bytes), MSG_NOSIGNAL, NULL, 0);
    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        n_got += (uint32_t)n;
    assert_in_range(n_got, 0, EMU_ADMIT_ANSWER_BYTES);
    close(fd);
    expect_traffic();
    stop_host(1);
    stop_host(0);
}

/* A good stream with one byte changed, and the end of its answer. */
static void send_changed(uint32_t number, uint32_t at, uint8_t value)
{
    static uint8_t bytes[STREAM_BYTES];
    uint32_t n = good_stream(true, bytes);
    int fd = call(number);
    uint8_t byte;

    bytes[at] = value;
    (void)!syscall(SYS_sendto, fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
    (void)!syscall(SYS_shutdown, fd, SHUT_WR);
    while (recv(fd, &byte, 1, 0) > 0)
        ;
    close(fd);
}

/* libfabric 1.17 is known to crash when its header's size is one that it does not use. */
static void send_all_changed(uint32_t number)
{
    static const uint8_t values[] = { 0x54, 0x00, 0xff };

    send_changed(number, HEADER_SIZE_AT, 0x54);
    for (uint32_t at = 0; at < CHANGED_BYTES; at++) {
        for (unsigned i = 0; i < sizeof(values); i++)
            send_changed(number, at, values[i]);
        assert_true(is_alive(&common->children[number]));
    }
}

static void test_changed_byte_in_a_good_stream_ends_nothing(void **state)
{
    (void)state;
    start_pair();
    send_all_changed(0);
    expect_traffic();
    stop_host(1);
    stop_host(0);
    /* The other one has an address, and is not there. */
    start_host(2, 0);
    send_all_changed(2);
    stop_host(2);
}

static void test_mutated_connections_leave_a_joined_pair_alone(void **state)
{
    struct descriptors after = { .number = 0 };

    (void)state;
    choices = seeded(41);
    start_pair();
    after.most = descriptors(0) + SPARE;
    be_hostile(0, n_connections());
    expect_traffic();
    assert_true(wait_until(has_few, &after));
    assert_true(atomic_load(&common->children[0].n_refused) > 0);
    stop_host(1);
    stop_host(0);
}

static void test_mutated_connections_leave_a_waiting_host_alone(void **state)
{
    struct descriptors after = { .number = 2 };

    (void)state;
    choices = seeded(43);
    start_pair();
    stop_host(1);
    stop_host(0);
    /* The other one has an address, and is not there. */
    start_host(2, 0);
    after.most = descriptors(2) + SPARE;
    be_hostile(2, n_connections());
    assert_true(is_alive(&common->children[2]));
    assert_true(wait_until(has_few, &after));
    stop_host(2);
}

/* More than the limit, silent ones and ones that have begun well. */
static void test_held_connections_keep_no_host_out(void **state)
{
    static int fds[4 * N_DESCRIPTORS];
    static uint8_t bytes[STREAM_BYTES];
    struct rlimit limit = { .rlim_cur = 8 * N_DESCRIPTORS, .rlim_max = 8 * N_DESCRIPTORS };
    struct descriptors after = { .number = 0 };
    unsigned before;

    (void)state;
    start_pair();
    stop_host(1);
    kill_all(NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    start_host(0, 1);
    before = descriptors(0);
    (void)good_stream(false, bytes);
    for (unsigned i = 0; i < 4 * N_DESCRIPTORS; i++) {
        fds[i] = call(0);
        if (i % 2)
            (void)!syscall(SYS_sendto, fds[i], bytes, i % HANDSHAKE_SIZE, MSG_NOSIGNAL, NULL, 0);
    }
    assert_in_range(descriptors(0), before, before + N_STRANGERS + SPARE);
    start_host(1, 0);
    assert_true(wait_until(is_up, &common->children[0]));
    assert_true(wait_until(is_up, &common->children[1]));
    expect_traffic();
    after.most = before + SPARE;
    assert_true(wait_until(has_few, &after)); /* though they are still held */
    for (unsigned i = 0; i < 4 * N_DESCRIPTORS; i++)
        close(fds[i]);
    expect_traffic();
    stop_host(1);
    stop_host(0);
}

/* The kernel drops what comes beyond the number of its address; hosts at other addresses do not feel it. */
static void test_flood_of_an_address_is_dropped_and_keeps_no_host_out(void **state)
{
    uint8_t bytes[4 * HANDSHAKE_SIZE] = { 1 };
    unsigned n = 0;
    int fd;

    (void)state;
    start_pair();
    stop_host(1);
    kill_all(NULL);
    start_host(0, 1);
    while (n < FLOOD_MAX && (fd = call_from_elsewhere(0)) >= 0) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        (void)!syscall(SYS_sendto, fd, bytes, sizeof(bytes), MSG_NOSIGNAL, NULL, 0);
        assert_int_equal(poll(&p, 1, POLL_MS), 1); /* the gate has let go of it */
        close(fd);
        n++;
    }
    assert_in_range(n, N_PER_SECOND, FLOOD_MAX - 1);
    start_host(1, 0);
    assert_true(wait_until(is_up, &common->children[0]));
    assert_true(wait_until(is_up, &common->children[1]));
    expect_traffic();
    stop_host(1);
    stop_host(0);
}

static void test_host_ends_in_time_when_libfabric_does_not(void **state)
{
    (void)state;
    start_pair();
    atomic_store(&common->children[0].must_hang, true);
    stop_host(0);
}

static int forget_all(void **state)
{
    kill_all(state);
    memset(common->streams, 0, sizeof(common->streams));
    return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stranger_that_speaks_libfabric_gets_no_word_of_it),
        TEST(test_replayed_connections_get_no_further_than_the_handshake),
        TEST(test_changed_byte_in_a_good_stream_ends_nothing),
        TEST(test_mutated_connections_leave_a_joined_pair_alone),
        TEST(test_mutated_connections_leave_a_waiting_host_alone),
        TEST(test_held_connections_keep_no_host_out),
        TEST(test_flood_of_an_address_is_dropped_and_keeps_no_host_out),
        TEST(test_host_ends_in_time_when_libfabric_does_not),
    };

    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
