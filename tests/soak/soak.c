/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Soak: 16 processes on 4 nodes do everything at random for as long as asked; every byte and every event is compared
 * with a model.
 *
 *   soak [-k|-b] [SECONDS [SEED [RATE]]]   FX_DATAPATH=routed: through emunic; EMUNIC_MEMORY=cma: by system calls
 *
 * With a RATE, that part of the transactions is made to fail: each failure must be seen once, by its initiator, and
 * nothing else may be lost. Messages are sent again by the NIC until they arrive, so nobody sees theirs.
 *
 * On several hosts (FX_HOSTS) the last one can be lost when half of the time is over: with -k its emunic is killed,
 * with -b it is started again when all have noticed (loss.c). Its ranks and the others must go on as they can, for
 * a quarter of the time at least, and the emunics of the other hosts must keep nothing of what was lost.
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
#include "tests/common/proc.h"
#include "tests/common/seed.h"
#include "tests/soak/soak.h"

#define HANG_NS 60000000000ull
#define KEEP_NS 20000000000ull /* for which an emunic may keep what a process had */

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

/* ---- the lost host ---- */

enum loss { LOSS_NONE, LOSS_TO_COME, LOSS_NOTICED_BY_FEW, LOSS_MET_BY_FEW, LOSS_OVER };

struct watched {
    struct fx *fx;
    struct soak_board *board;
    enum loss loss;
    unsigned lost; /* the host */
    uint64_t killed_ns;
    uint64_t kept[FX_HOSTS_MAX]; /* of each emunic, before there were ranks */
};

static bool is_of_lost(const struct watched *w, unsigned rank)
{
    return w->board->host_of[rank] == w->lost;
}

static unsigned n_lost_ranks(const struct watched *w)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SOAK_RANKS; i++)
        n += is_of_lost(w, i);
    return n;
}

static void kill_host(struct watched *w)
{
    w->killed_ns = emu_clock_ns();
    atomic_store(&w->board->lost_host, w->lost);
    fx_kill_host(w->fx, w->lost);
}

static bool have_all_noticed(const struct watched *w)
{
    for (unsigned i = 0; i < SOAK_RANKS; i++) {
        struct soak_told *told = &w->board->ranks[i];

        if (is_of_lost(w, i) ? !atomic_load(&told->is_down) : atomic_load(&told->n_given_up) < n_lost_ranks(w))
            return false;
    }
    return true;
}

static void bring_host_back(struct watched *w)
{
    fx_restart_host(w->fx, w->lost);
    fx_await_all_hosts(w->fx);
    atomic_store(&w->board->is_back, 1);
}

static bool have_all_met(const struct watched *w)
{
    for (unsigned i = 0; i < SOAK_RANKS; i++) {
        struct soak_told *told = &w->board->ranks[i];

        if (is_of_lost(w, i) ? !atomic_load(&told->life) : atomic_load(&told->n_met) < n_lost_ranks(w))
            return false;
    }
    return true;
}

/* Takes the loss one step further if it is time. */
static bool moves_on(struct watched *w, bool is_half)
{
    enum loss before = w->loss;

    if (w->loss == LOSS_TO_COME && is_half) {
        kill_host(w);
        w->loss = LOSS_NOTICED_BY_FEW;
    } else if (w->loss == LOSS_NOTICED_BY_FEW && have_all_noticed(w)) {
        w->loss = w->board->comes_back ? LOSS_MET_BY_FEW : LOSS_OVER;
        if (w->board->comes_back)
            bring_host_back(w);
    } else if (w->loss == LOSS_MET_BY_FEW && have_all_met(w)) {
        w->loss = LOSS_OVER;
    }
    return w->loss != before;
}

static void print_loss(const struct watched *w)
{
    uint64_t failed = 0, last_ns = w->killed_ns;
    unsigned met = 0;

    for (unsigned i = 0; i < SOAK_RANKS; i++) {
        struct soak_told *told = &w->board->ranks[i];

        failed += atomic_load(&told->lost);
        met += atomic_load(&told->n_met);
        if (atomic_load(&told->last_lost_ns) > last_ns)
            last_ns = atomic_load(&told->last_lost_ns);
    }
    printf("# host %u was killed: %llu posts and messages failed, the last after %llu ms; %u pairs of ranks met "
           "again\n",
           w->lost, (unsigned long long)failed, (unsigned long long)(last_ns - w->killed_ns) / 1000000, met);
}

/* What an emunic keeps for processes: their memory and their descriptors, but not the sockets to other hosts. */
static uint64_t count_kept(const struct watched *w, unsigned host)
{
    pid_t pid = w->fx->hosts[host].daemon;

    return pid == 0 ? 0 :
                      (uint64_t)(proc_count_fds_of(pid, "memfd:") + proc_count_fds_of(pid, "pidfd") +
                                 proc_count_memfd_maps(pid));
}

static bool keep_nothing(void *arg)
{
    const struct watched *w = arg;

    for (unsigned host = 0; host < w->fx->n_hosts; host++) {
        if (host != w->lost && count_kept(w, host) != w->kept[host])
            return false;
    }
    return true;
}

static void prepare_loss(struct watched *w, struct fx *fx, struct soak_board *board, bool comes_back)
{
    w->fx = fx;
    w->board = board;
    w->lost = fx->n_hosts - 1;
    board->comes_back = comes_back;
    for (unsigned i = 0; i < SOAK_RANKS; i++)
        board->host_of[i] = fx_host_of(fx, fx->nids[i % fx->n_ranks]);
    for (unsigned host = 0; w->loss != LOSS_NONE && host < fx->n_hosts; host++)
        w->kept[host] = count_kept(w, host);
}

/* Once the ranks have ended. */
static bool ends_well(struct watched *w)
{
    if (w->loss == LOSS_NONE)
        return true;
    print_loss(w);
    if (w->loss == LOSS_OVER && eventually(keep_nothing, w, KEEP_NS))
        return true;
    for (unsigned host = 0; host < w->fx->n_hosts; host++)
        printf("# the emunic of host %u keeps %llu descriptors and mappings; at first it were %llu\n", host,
               (unsigned long long)count_kept(w, host), (unsigned long long)w->kept[host]);
    return false;
}

/* ---- watching ---- */

/* False: a hang. Time is up after `seconds`, and when the loss of a host has been over for a quarter of that. */
static bool watch(struct watched *w, struct fx_ranks *ranks, uint64_t seconds)
{
    struct soak_board *board = w->board;
    uint64_t begin_ns = emu_clock_ns();
    uint64_t end_ns = begin_ns + seconds * 1000000000ull;
    uint64_t moved_ns = begin_ns;
    uint64_t beats = 0;

    while (!fx_is_over(ranks)) {
        uint64_t now_ns = emu_clock_ns();
        uint64_t now = atomic_load(&board->beats);
        bool is_waiting = w->loss == LOSS_NOTICED_BY_FEW || w->loss == LOSS_MET_BY_FEW;

        if (moves_on(w, now_ns - begin_ns > seconds * 500000000ull)) {
            moved_ns = now_ns = emu_clock_ns();
            if (w->loss == LOSS_OVER && end_ns < now_ns + seconds * 250000000ull)
                end_ns = now_ns + seconds * 250000000ull;
        }
        if (now_ns >= end_ns && (w->loss == LOSS_NONE || w->loss == LOSS_OVER))
            atomic_store(&board->is_over, 1);
        if (now != beats && !is_waiting)
            moved_ns = now_ns;
        beats = now;
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
    bool comes_back = argc > 1 && strcmp(argv[1], "-b") == 0;
    bool is_lost = comes_back || (argc > 1 && strcmp(argv[1], "-k") == 0);
    struct watched w = { .loss = is_lost ? LOSS_TO_COME : LOSS_NONE };
    struct task task = { 0 };
    struct fx_ranks ranks;
    uint64_t retransmitted = 0;
    uint64_t injected;
    uint64_t seconds;
    uint64_t errors;
    bool has_ended;
    unsigned n_bad;
    struct fx fx;

    argc -= is_lost;
    argv += is_lost;
    seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 30;
    task.seed = argc > 2 ? strtoull(argv[2], NULL, 0) : seeded(20261121).state;
    task.allows_errors = argc > 3;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..1\n");
    task.board = mmap(NULL, sizeof(*task.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (task.board == MAP_FAILED)
        return 1;
    fx_start(&fx, &options);
    if (is_lost && fx.n_hosts == 1) {
        fprintf(stderr, "soak: there is one host: none can be lost\n");
        return 2;
    }
    prepare_loss(&w, &fx, task.board, comes_back);
    if (task.allows_errors)
        inject(&fx, argv[3]);
    fx_spawn(&fx, SOAK_RANKS, body, &task, &ranks);
    has_ended = watch(&w, &ranks, seconds);
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
    n_bad += !ends_well(&w);
    fx_stop(&fx);
    printf("%sok 1 - %llu seconds of everything\n", has_ended && n_bad == 0 ? "" : "not ", (unsigned long long)seconds);
    return has_ended && n_bad == 0 ? 0 : 1;
}
