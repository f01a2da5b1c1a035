/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic/transport costs over libfabric itself, between two processes on loopback, same provider, same run.
 *
 *   bare_message8_half_round_trip       8 bytes by fi_send and fi_recv, back and forth
 *   transport_message8_half_round_trip  8 bytes by send(), with header, tag and credits
 *   bare_put_bandwidth/SIZE             fi_writemsg with delivery complete, two under way
 *   transport_put_bandwidth/SIZE        put(), two under way
 *   *_ratio                             transport's figure by libfabric's
 *
 * `bare` is the carrier alone (ofi.c): libfabric's calls behind one pointer, and nothing else. Rounds of both
 * alternate, and the best of each is printed, because other programs share the processors.
 *
 *   transport_pair [-p] [-n N]    EMU_BENCH_PROVIDER, EMU_BENCH_NODE: other than tcp;ofi_rxm on 127.0.0.1
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/transport/inner.h"
#include "emunic/transport/transport.h"
#include "tests/bench/bare.h"
#include "tests/bench/common.h"

#define PUT_BYTES (4u << 20)
#define WINDOW    2
#define TIMES     5
#define KEY       "a benchmark has no secrets"

struct meeting {
    _Atomic int arrived;
    _Atomic int is_done;
    uint8_t blob[2][EMU_TRANSPORT_BLOB_MAX];
    uint32_t blob_bytes[2];
    struct emu_transport_remote remote[2];
    struct bare_name bare[2];
};

struct side {
    int rank;
    int n_met;
    struct meeting *meeting;
    struct emu_transport_config config;
    struct emu_transport *t;
    struct emu_transport_region *region;
    uint32_t n_up;
    long n_messages;
    long n_done;
    struct bare bare;
    bool has_bare;
    uint8_t *memory;
};

static const struct emu_transport_ops *ops;

static void check(int r, const char *what)
{
    if (r != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(r < 0 ? -r : EIO));
        exit(1);
    }
}

static void up(void *owner, uint32_t host)
{
    (void)host;
    ((struct side *)owner)->n_up++;
}

static void down(void *owner, uint32_t host, int cause)
{
    (void)owner;
    (void)host;
    check(cause, "peer");
}

static bool message(void *owner, uint32_t host, const void *data, uint32_t length)
{
    (void)host;
    (void)data;
    (void)length;
    ((struct side *)owner)->n_messages++;
    return true;
}

static void done(void *owner, uint64_t cookie, int result)
{
    (void)cookie;
    check(result, "put");
    ((struct side *)owner)->n_done++;
}

static const struct emu_transport_events events = {
    .peer_up = up, .peer_down = down, .message = message, .transfer_done = done
};

/* Both drive what they have while they wait for each other: a provider may need that. */
static void meet(struct side *s)
{
    atomic_fetch_add(&s->meeting->arrived, 1);
    s->n_met++;
    while (atomic_load(&s->meeting->arrived) < 2 * s->n_met) {
        if (s->t)
            ops->progress(s->t);
        if (s->has_bare)
            bare_poll(&s->bare);
        sched_yield();
    }
}

static void open_side(struct side *s)
{
    struct meeting *m = s->meeting;
    int peer = 1 - s->rank;

    s->config = (struct emu_transport_config){
        .host = (uint32_t)s->rank,
        .n_hosts = 2,
        .incarnation = 1,
        .key = KEY,
        .key_bytes = sizeof(KEY),
        .provider = getenv("EMU_BENCH_PROVIDER") ? getenv("EMU_BENCH_PROVIDER") : "tcp;ofi_rxm",
        .node = getenv("EMU_BENCH_NODE") ? getenv("EMU_BENCH_NODE") : "127.0.0.1",
        .events = &events,
        .owner = s,
    };
    s->memory =
        mmap(NULL, PUT_BYTES * WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    check(s->memory == MAP_FAILED ? -ENOMEM : 0, "memory");
    check(ops->open(&s->config, &s->t), "open");
    check(ops->address(s->t, m->blob[s->rank], &m->blob_bytes[s->rank]), "address");
    check(ops->region_create(s->t, s->memory, PUT_BYTES * WINDOW, EMU_TRANSPORT_WRITE, &s->region), "region");
    ops->region_remote(s->region, &m->remote[s->rank]);
    bare_open(&s->bare, s->config.provider, s->config.node, s->memory, PUT_BYTES * WINDOW, &m->bare[s->rank]);
    s->has_bare = true;
    meet(s);
    check(ops->join(s->t, (uint32_t)peer, m->blob[peer], m->blob_bytes[peer]), "join");
    bare_join(&s->bare, &m->bare[peer]);
    while (s->n_up == 0)
        ops->progress(s->t);
    meet(s);
}

static void send_transport(struct side *s)
{
    while (ops->send(s->t, (uint32_t)(1 - s->rank), "8 bytes", 8) != 0)
        ops->progress(s->t);
}

static void pingpong_transport(struct side *s, long n)
{
    long first = s->n_messages;

    for (long i = 1; i <= n; i++) {
        if (s->rank == 0)
            send_transport(s);
        while (s->n_messages < first + i)
            ops->progress(s->t);
        if (s->rank == 1)
            send_transport(s);
    }
}

static void pingpong_bare(struct side *s, long n)
{
    bare_message_pingpong(&s->bare, s->rank, n);
}

static void stream_transport(struct side *s, long n)
{
    long first = s->n_done;

    for (long i = 0; i < n; i++) {
        check(ops->put(s->t, 1,
                       &(struct emu_transport_move){ s->region, 0, &s->meeting->remote[1], PUT_BYTES * (i % WINDOW),
                                                     PUT_BYTES, 0 },
                       NULL, 0),
              "put");
        while (i + 1 - (s->n_done - first) >= WINDOW)
            ops->progress(s->t);
    }
    while (s->n_done - first < n)
        ops->progress(s->t);
}

static void stream_bare(struct side *s, long n)
{
    bare_stream(&s->bare, true, PUT_BYTES, WINDOW, n);
}

static double time_of(struct side *s, void (*body)(struct side *s, long n), long n, bool is_one_sided)
{
    double begin;
    double end;

    meet(s);
    begin = bench_now_us();
    if (s->rank == 0 || !is_one_sided)
        body(s, n);
    end = bench_now_us();
    meet(s);
    return (end - begin) / (double)n;
}

static double smaller(double a, double b)
{
    return a == 0 || b < a ? b : a;
}

static void run_side(struct side *s, const struct bench_options *options)
{
    double best[4] = { 0 };
    long n_puts = bench_rounds(options, PUT_BYTES);

    if (options->is_pinned)
        bench_pin(s->rank);
    open_side(s);
    for (int i = 0; i < TIMES; i++) {
        best[0] = smaller(best[0], time_of(s, pingpong_bare, options->n / TIMES + 1, false));
        best[1] = smaller(best[1], time_of(s, pingpong_transport, options->n / TIMES + 1, false));
        best[2] = smaller(best[2], time_of(s, stream_bare, n_puts, true));
        best[3] = smaller(best[3], time_of(s, stream_transport, n_puts, true));
    }
    if (s->rank != 0)
        return;
    bench_print("bare_message8_half_round_trip", best[0] / 2, "us");
    bench_print("transport_message8_half_round_trip", best[1] / 2, "us");
    bench_print("message8_ratio", best[1] / best[0], "x");
    bench_print_sized("bare_put_bandwidth", PUT_BYTES, PUT_BYTES / best[2], "MB/s");
    bench_print_sized("transport_put_bandwidth", PUT_BYTES, PUT_BYTES / best[3], "MB/s");
    bench_print("put_bandwidth_ratio", best[2] / best[3], "x");
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    static struct side side;
    pid_t pid;
    int status = 1;

    ops = &emu_transport_ops;
    side.meeting = bench_shared(sizeof(*side.meeting));
    pid = fork();
    side.rank = pid == 0;
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_side(&side, &options);
    if (pid == 0)
        _exit(0);
    waitpid(pid, &status, 0);
    return status != 0;
}
