/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Soak: 16 processes on 4 nodes do everything at random for as long as asked; every byte and every event is compared
 * with a model.
 *
 *   soak [SECONDS [SEED [RATE]]]      FX_DATAPATH=routed: through emunic; EMUNIC_MEMORY=cma: by system calls
 *
 * With a RATE, that part of the transactions is made to fail: each failure must be seen once, by its initiator, and
 * nothing else may be lost. Messages are sent again by the NIC until they arrive, so nobody sees theirs.
 *
 * One test in TAP's form. Same seed, same draws of each rank; how the ranks' operations fall between each other is the
 * machine's. A run in which nobody gets any further for a minute is a hang and is ended.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "emunic/base/clock.h"
#include "tests/common/seed.h"
#include "tests/soak/soak.h"

#define HANG_NS 60000000000ull

struct task {
    struct soak_board *board;
    uint64_t seed;
    bool allows_errors;
};

static int body(struct fx_rank *rank)
{
    const struct task *task = rank->arg;

    return soak_rank_main(rank, task->board, task->seed, task->allows_errors);
}

static void doze(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

/* False: a hang. Time is up after `seconds`. */
static bool watch(struct fx_ranks *ranks, struct soak_board *board, uint64_t seconds)
{
    uint64_t end_ns = emu_clock_ns() + seconds * 1000000000ull;
    uint64_t moved_ns = emu_clock_ns();
    uint64_t beats = 0;

    while (!fx_is_over(ranks)) {
        uint64_t now_ns = emu_clock_ns();
        uint64_t now = atomic_load(&board->beats);

        if (now_ns >= end_ns)
            atomic_store(&board->is_over, 1);
        if (now != beats || now_ns < end_ns) {
            moved_ns = now != beats ? now_ns : moved_ns;
            beats = now;
        }
        if (now_ns - moved_ns > HANG_NS)
            return false;
        doze();
    }
    return true;
}

/* How many completions had an error. */
static uint64_t print_totals(struct soak_board *board)
{
    uint64_t ops = 0, bytes = 0, messages = 0, errors = 0, mismatches = 0;

    for (unsigned i = 0; i < SOAK_RANKS; i++) {
        const struct soak_told *told = &board->ranks[i];

        ops += atomic_load(&told->n_ops);
        bytes += atomic_load(&told->n_bytes);
        messages += atomic_load(&told->n_messages);
        errors += atomic_load(&told->errors);
        mismatches += atomic_load(&told->n_mismatches);
    }
    printf("# %llu posts, %llu MiB, %llu messages, %llu errors, %llu mismatches\n", (unsigned long long)ops,
           (unsigned long long)(bytes >> 20), (unsigned long long)messages, (unsigned long long)errors,
           (unsigned long long)mismatches);
    return errors;
}

static void inject(struct fx *fx, const char *rate)
{
    char words[128];

    snprintf(words, sizeof(words), "class=fma,bte,cq-write,smsg action=drop rate=%s", rate);
    fx_add_fault(fx, words);
}

int main(int argc, char **argv)
{
    static const uint32_t nids[SOAK_NODES] = { 0, 1, 6, 303 };
    struct fx_options options = { .n_ranks = SOAK_NODES, .nids = nids };
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 30;
    struct task task = { .seed = argc > 2 ? strtoull(argv[2], NULL, 0) : seeded(20261121).state };
    struct fx_ranks ranks;
    uint64_t retransmitted = 0;
    uint64_t injected;
    uint64_t errors;
    bool has_ended;
    unsigned n_bad;
    struct fx fx;

    task.allows_errors = argc > 3;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..1\n");
    task.board = mmap(NULL, sizeof(*task.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (task.board == MAP_FAILED)
        return 1;
    fx_start(&fx, &options);
    if (task.allows_errors)
        inject(&fx, argv[3]);
    fx_spawn(&fx, SOAK_RANKS, body, &task, &ranks);
    has_ended = watch(&ranks, task.board, seconds);
    if (!has_ended) {
        printf("# nobody gets any further\n");
        for (unsigned i = 0; i < SOAK_RANKS; i++) {
            if (ranks.pids[i] > 0)
                kill(ranks.pids[i], SIGKILL);
        }
    }
    n_bad = fx_join(&ranks);
    errors = print_totals(task.board);
    for (unsigned i = 0; i < SOAK_RANKS; i++)
        retransmitted += task.board->ranks[i].retransmitted;
    if (task.allows_errors) {
        injected = fx_fault_hits(&fx);
        printf("# %llu failures injected, %llu of them of messages that were sent again\n",
               (unsigned long long)injected, (unsigned long long)retransmitted);
        injected -= retransmitted;
        n_bad += injected != errors || injected == 0;
    }
    fx_stop(&fx);
    printf("%sok 1 - %llu seconds of everything\n", has_ended && n_bad == 0 ? "" : "not ", (unsigned long long)seconds);
    return has_ended && n_bad == 0 ? 0 : 1;
}
