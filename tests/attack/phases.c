/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One word says to all what phase it is. Attackers sleep on it (futex) while there is nothing to do.
 *
 * An attacker that has to wait for emunic sleeps; in the control it sleeps for as great a part of the time as in its
 * attacks before. So the first round attacks first; then the order turns from round to round.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/attack/phases.h"
#include "tests/common/proc.h"

#define ATTACKERS_MAX 16u
#define PATIENCE_NS   60000000000ull

static struct common {
    _Atomic uint32_t now; /* phases that have begun, times N_KINDS + 1, and the phase */
    _Atomic uint32_t n_ready;
    _Atomic uint64_t units[N_KINDS];
} * common;

static pid_t attackers[ATTACKERS_MAX];
static unsigned n_attackers;

static bool is_apart;
static cpu_set_t attackers_cpus;

static enum phase phase_now(void)
{
    return (enum phase)(atomic_load(&common->now) % (N_KINDS + 1));
}

bool phase_lasts(enum phase phase)
{
    return phase_now() == phase;
}

/* ---- attackers ---- */

static void sleep_while(uint32_t word)
{
    while (atomic_load(&common->now) == word)
        syscall(SYS_futex, &common->now, FUTEX_WAIT, word, NULL, NULL, 0);
}

/* Time for which this process has run, or has waited for a processor. */
static uint64_t busy_ns(void)
{
    static int fd = -1;
    char text[128] = "";
    unsigned long long ran_ns, waited_ns;

    if (fd < 0)
        fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    MUST(pread(fd, text, sizeof(text) - 1, 0) > 0 && sscanf(text, "%llu %llu", &ran_ns, &waited_ns) == 2);
    return ran_ns + waited_ns;
}

static void go_on_while(const struct attack *attack, uint32_t word, enum phase phase)
{
    static double attack_busy_ns, attack_ns; /* in all attacks of this process */
    const struct timespec moment = { .tv_nsec = 50000 };
    uint64_t began_ns = emu_clock_ns();
    uint64_t before_ns = busy_ns();

    while (atomic_load(&common->now) == word) {
        double due_ns = (double)(emu_clock_ns() - began_ns) * attack_busy_ns / attack_ns;

        if (phase == CONTROL && !attack->keeps_its_pace && (double)(busy_ns() - before_ns) > due_ns)
            nanosleep(&moment, NULL);
        else
            atomic_fetch_add(&common->units[phase], attack->work(phase));
    }
    if (phase == ATTACK) {
        attack_busy_ns += (double)(busy_ns() - before_ns);
        attack_ns += (double)(emu_clock_ns() - began_ns);
    }
}

static _Noreturn void be_attacker(const struct attack *attack, unsigned number)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    MUST(!is_apart || sched_setaffinity(0, sizeof(attackers_cpus), &attackers_cpus) == 0);
    if (attack->become)
        attack->become(number);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's has none */
    for (;;) {
        uint32_t word = atomic_load(&common->now);
        enum phase phase = (enum phase)(word % (N_KINDS + 1));

        if (phase == OVER)
            _exit(0);
        if (phase != QUIET && attack->begin)
            attack->begin(phase);
        atomic_fetch_add(&common->n_ready, 1);
        if (phase != QUIET && attack->work)
            go_on_while(attack, word, phase);
        else
            sleep_while(word);
        if (phase != QUIET && attack->end)
            attack->end(phase);
    }
}

void attacker_takes_all_descriptors(void)
{
    struct rlimit files;

    MUST(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    MUST(setrlimit(RLIMIT_NOFILE, &files) == 0);
}

/* ---- who measures ---- */

int phases_stand_apart(void **state)
{
    cpu_set_t all, ours;
    int n_ours;

    (void)state;
    if (!getenv("ATTACK_APART"))
        return 0;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    n_ours = CPU_COUNT(&all) / 2;
    assert_true(n_ours > 0);
    CPU_ZERO(&ours);
    CPU_ZERO(&attackers_cpus);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, CPU_COUNT(&ours) < n_ours ? &ours : &attackers_cpus);
    }
    assert_int_equal(sched_setaffinity(0, sizeof(ours), &ours), 0);
    is_apart = true;
    return 0;
}

void phases_require_bound(const struct figures *figures)
{
    assert_true(figures->control < BOUND);
    assert_true(!is_apart || figures->quiet < BOUND);
}

static bool are_ready(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < n_attackers; i++) {
        siginfo_t info = { 0 };

        /* One that has failed has said why. */
        assert_int_equal(waitid(P_PID, (id_t)attackers[i], &info, WEXITED | WNOHANG | WNOWAIT), 0);
        assert_int_equal(info.si_pid, 0);
    }
    return atomic_load(&common->n_ready) == n_attackers;
}

static void enter(enum phase phase)
{
    uint32_t word = atomic_load(&common->now);

    atomic_store(&common->n_ready, 0);
    atomic_store(&common->now, (word / (N_KINDS + 1) + 1) * (N_KINDS + 1) + phase);
    syscall(SYS_futex, &common->now, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (phase != OVER)
        assert_true(eventually(are_ready, NULL, PATIENCE_NS));
}

static void start(const struct attack *attack)
{
    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(common != MAP_FAILED && attack->n_processes <= ATTACKERS_MAX);
    fflush(NULL);
    n_attackers = attack->n_processes;
    for (unsigned i = 0; i < n_attackers; i++) {
        attackers[i] = fork();
        assert_true(attackers[i] >= 0);
        if (attackers[i] == 0)
            be_attacker(attack, i);
    }
    assert_true(eventually(are_ready, NULL, PATIENCE_NS)); /* quiet */
}

static void stop(void)
{
    enter(OVER);
    for (unsigned i = 0; i < n_attackers; i++) {
        int status = -1;

        assert_int_equal(waitpid(attackers[i], &status, 0), attackers[i]);
        attackers[i] = 0;
        assert_int_equal(status, 0);
    }
    n_attackers = 0;
    munmap(common, sizeof(*common));
}

int phases_kill(void **state)
{
    (void)state;
    for (unsigned i = 0; i < n_attackers; i++) {
        if (attackers[i] > 0) {
            kill(attackers[i], SIGKILL);
            waitpid(attackers[i], NULL, 0);
        }
    }
    n_attackers = 0;
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static double quartile(const struct figures *f, enum phase phase, unsigned which)
{
    return (double)f->ns[phase][(f->n - 1) * which / 4];
}

static void tell(const struct attack *attack, struct figures *f)
{
    static const char *const kinds[] = { "quiet", "control", "attacked" };

    for (enum phase phase = QUIET; phase < OVER; phase++) {
        qsort(f->ns[phase], f->n, sizeof(f->ns[phase][0]), compare);
        print_message("# %s: %-8s %9.3f ms (quartiles %.3f, %.3f; n %u), %.0f %s a second\n", attack->name,
                      kinds[phase], quartile(f, phase, 2) / 1e6, quartile(f, phase, 1) / 1e6,
                      quartile(f, phase, 3) / 1e6, f->n, (double)f->units[phase] * 1e9 / (double)f->phase_ns[phase],
                      attack->unit);
    }
    f->control = quartile(f, ATTACK, 2) / quartile(f, CONTROL, 2);
    f->quiet = quartile(f, ATTACK, 2) / quartile(f, QUIET, 2);
    print_message("# %s: attacked / control %.2f, attacked / quiet %.2f, control / quiet %.2f\n", attack->name,
                  f->control, f->quiet, f->quiet / f->control);
}

void phases_run(const struct attack *attack, victim_work victim, void *arg, struct figures *f)
{
    memset(f, 0, sizeof(*f));
    start(attack);
    (void)victim(arg); /* the first one is cold */
    while (f->n < PHASES_MAX && (attack->is_enough ? !attack->is_enough(f->units[ATTACK]) : f->n < PHASES_FEW)) {
        for (unsigned i = 0; i < N_KINDS; i++) {
            enum phase phase = (enum phase)((ATTACK + f->n + i) % N_KINDS);
            uint64_t units = atomic_load(&common->units[phase]);
            uint64_t began_ns;

            enter(phase);
            began_ns = emu_clock_ns();
            f->ns[phase][f->n] = victim(arg);
            f->phase_ns[phase] += emu_clock_ns() - began_ns;
            f->units[phase] += atomic_load(&common->units[phase]) - units;
        }
        f->n++;
    }
    stop();
    tell(attack, f);
}

void phases_begin(const struct attack *attack)
{
    start(attack);
    enter(ATTACK);
}

uint64_t phases_units(void)
{
    return atomic_load(&common->units[ATTACK]);
}

uint64_t phases_stop(void)
{
    uint64_t n = phases_units();

    stop();
    return n;
}
