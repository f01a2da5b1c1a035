/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the machine itself needs to pass a word on, for comparison.
 *
 *   hand_over       a cache line between two spinning processes, half a round trip
 *   cma_hand_over   the same behind eight bytes for the other's private memory, by process_vm_writev()
 *   yield_relay     hand_over through a third process, all three yielding while they have nothing to do; like a NIC
 *                   that relays everything, the third looks at both sides in turn
 *   yield_switch    one switch between two processes of one CPU that only yield
 *   yield_ring32    a word around 32 processes that yield while it is not theirs, per hop
 *   sched_yield     the call when nobody else wants the CPU
 *
 * With -p the two processes of hand_over, cma_hand_over and sched_yield are pinned; the relay and the ring are placed
 * by the scheduler, as emunic and its ranks are.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/common.h"

#define RING_PROCESSES 32
#define CELLS          64

struct cell {
    _Alignas(64) _Atomic long value;
};

static long get(struct cell *cell)
{
    return atomic_load_explicit(&cell->value, memory_order_acquire);
}

static void set(struct cell *cell, long value)
{
    atomic_store_explicit(&cell->value, value, memory_order_release);
}

static void wait_for(struct cell *cell, long value, bool yields)
{
    while (get(cell) < value) {
        if (yields)
            sched_yield();
        else
            __builtin_ia32_pause();
    }
}

/* Copies each new value of `from` to `to`, n times. */
static void pass_on(struct cell *from, struct cell *to, long n, bool yields)
{
    for (long i = 1; i <= n; i++) {
        wait_for(from, i, yields);
        set(to, i);
    }
}

/* Copies each new value of cell 0 to 1 and of cell 2 to 3, n times each. */
static void relay(struct cell *cells, long n)
{
    long there = 0;
    long back = 0;

    while (back < n) {
        bool idle = true;

        if (get(&cells[0]) > there) {
            set(&cells[1], ++there);
            idle = false;
        }
        if (get(&cells[2]) > back) {
            set(&cells[3], ++back);
            idle = false;
        }
        if (idle)
            sched_yield();
    }
}

static bool in_child(void)
{
    pid_t pid = fork();

    if (pid < 0)
        exit(1);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid == 0;
}

static void wait_for_children(void)
{
    int status;

    while (wait(&status) > 0) {
        if (status != 0)
            exit(1);
    }
}

/* Round trips from one cell to another while somebody passes each value on; time of one. */
static double round_trip_us(struct cell *first, struct cell *last, long n, bool yields)
{
    double start_us = bench_now_us();

    for (long i = 1; i <= n; i++) {
        set(first, i);
        wait_for(last, i, yields);
    }
    return (bench_now_us() - start_us) / (double)n;
}

static void measure_hand_over(struct cell *cells, const struct bench_options *options)
{
    long n = 10 * options->n;

    if (in_child()) {
        if (options->is_pinned)
            bench_pin(1);
        pass_on(&cells[0], &cells[1], n, false);
        _exit(0);
    }
    if (options->is_pinned)
        bench_pin(0);
    bench_print("hand_over", round_trip_us(&cells[0], &cells[1], n, false) / 2, "us");
}

/* Private to each process, at one address. */
static uint64_t word;

static void write_word(pid_t other, long value)
{
    struct iovec from = { &value, sizeof(value) };
    struct iovec to = { &word, sizeof(word) };

    if (process_vm_writev(other, &from, 1, &to, 1, 0) != sizeof(value))
        exit(1);
}

static void measure_cma_hand_over(struct cell *cells, const struct bench_options *options)
{
    const pid_t parent = getpid();
    double start_us;
    pid_t child;

    word = 1; /* the page is there */
    child = fork();
    if (child < 0)
        exit(1);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (options->is_pinned)
            bench_pin(1);
        for (long i = 1; i <= options->n; i++) {
            wait_for(&cells[0], i, false);
            write_word(parent, i);
            set(&cells[1], i);
        }
        _exit(0);
    }
    if (options->is_pinned)
        bench_pin(0);
    start_us = bench_now_us();
    for (long i = 1; i <= options->n; i++) {
        write_word(child, i);
        set(&cells[0], i);
        wait_for(&cells[1], i, false);
    }
    bench_print("cma_hand_over", (bench_now_us() - start_us) / (double)options->n / 2, "us");
}

static void measure_yield_relay(struct cell *cells, const struct bench_options *options)
{
    if (in_child()) {
        relay(cells, options->n);
        _exit(0);
    }
    if (in_child()) {
        pass_on(&cells[1], &cells[2], options->n, true);
        _exit(0);
    }
    bench_print("yield_relay", round_trip_us(&cells[0], &cells[3], options->n, true) / 2, "us");
}

/* Two processes on one CPU: each yield goes to the other, so one's round is two switches. */
static void measure_yield_switch(struct cell *cells, const struct bench_options *options)
{
    double start_us;

    bench_pin(0);
    if (in_child()) {
        set(&cells[0], 1);
        while (get(&cells[1]) == 0)
            sched_yield();
        _exit(0);
    }
    wait_for(&cells[0], 1, true);
    start_us = bench_now_us();
    for (long i = 0; i < options->n; i++)
        sched_yield();
    bench_print("yield_switch", (bench_now_us() - start_us) / (double)options->n / 2, "us");
    set(&cells[1], 1);
}

static void measure_yield_ring(struct cell *cells, const struct bench_options *options)
{
    long n_laps = options->n / 100 + 1;

    for (int i = 1; i < RING_PROCESSES; i++) {
        if (in_child()) {
            pass_on(&cells[i - 1], &cells[i], n_laps, true);
            _exit(0);
        }
    }
    bench_print("yield_ring32", round_trip_us(&cells[0], &cells[RING_PROCESSES - 1], n_laps, true) / RING_PROCESSES,
                "us");
}

static void measure_sched_yield(struct cell *cells, const struct bench_options *options)
{
    double start_us;

    (void)cells;
    if (options->is_pinned)
        bench_pin(0);
    start_us = bench_now_us();
    for (long i = 0; i < options->n; i++)
        sched_yield();
    bench_print("sched_yield", (bench_now_us() - start_us) / (double)options->n, "us");
}

int main(int argc, char **argv)
{
    static void (*const measurements[])(struct cell *, const struct bench_options *) = {
        measure_hand_over,    measure_cma_hand_over, measure_yield_relay,
        measure_yield_switch, measure_yield_ring,    measure_sched_yield,
    };
    struct bench_options options = bench_options(argc, argv);

    /* Each in a process of its own: a pinned one could not let its later children run elsewhere. */
    for (size_t i = 0; i < sizeof(measurements) / sizeof(measurements[0]); i++) {
        struct cell *cells = bench_shared(CELLS * sizeof(*cells));

        if (in_child()) {
            measurements[i](cells, &options);
            wait_for_children();
            _exit(0);
        }
        wait_for_children();
        munmap(cells, CELLS * sizeof(*cells));
    }
    return 0;
}
