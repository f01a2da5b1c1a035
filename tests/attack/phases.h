/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A victim beside attackers: its time is measured by turns while they are quiet, while they do a control, and while
 * they attack. In the control the same processes do the same kind of work without touching emunic, and want the
 * processors for the same part of the time. So the attacked time over the control's tells emunic's part; what the
 * attackers take of the processors themselves is in both. Include after cmocka.h.
 */
#ifndef TESTS_ATTACK_PHASES_H
#define TESTS_ATTACK_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#define PHASES_MAX 4000u /* measurements of each kind: a million connections at 3000 a second and more */
#define BOUND      1.5   /* of a victim's time, attacked over control */

enum phase { QUIET, CONTROL, ATTACK, OVER, N_KINDS = OVER };

/* What attackers do; all in their own processes. Each may be NULL but `name`. */
struct attack {
    const char *name;
    const char *unit; /* of work */
    unsigned n_processes;
    bool keeps_its_pace;                     /* in the control as in the attack, by itself */
    void (*become)(unsigned number);         /* once, before anything else */
    void (*begin)(enum phase phase);         /* a phase; the victim is measured after it */
    unsigned (*work)(enum phase phase);      /* goes on for at most some ms. Units done */
    void (*end)(enum phase phase);           /* lets go of what begin() and work() hold */
    bool (*is_enough)(uint64_t n_units_all); /* measure no longer; NULL: PHASES_FEW measurements are enough */
};
#define PHASES_FEW 20u

/* The victim's work: a fixed amount, checked. Nanoseconds. */
typedef uint64_t (*victim_work)(void *victim);

/* The victim's work takes about so long when it is quiet: many turns of the processors. */
#define BLOCK_NS 100000000ull

struct figures {
    unsigned n;
    uint64_t ns[N_KINDS][PHASES_MAX];
    uint64_t units[N_KINDS];
    uint64_t phase_ns[N_KINDS];
    double control; /* attacked over control: of the medians */
    double quiet;   /* attacked over quiet */
};

/*
 * With ATTACK_APART attackers get half of the processors, and victim and emunic the other half: a group setup of
 * CMocka, before emunic starts. Then the quiet victim is the measure, because attackers take nothing but emunic's time
 * from it.
 */
int phases_stand_apart(void **state);
/* The victim's time has kept its bound. */
void phases_require_bound(const struct figures *figures);

/* Runs all phases, prints the figures, and ends the attackers. An attacker that fails fails the test. */
void phases_run(const struct attack *attack, victim_work victim, void *arg, struct figures *figures_out);
/* Attackers that attack until phases_stop(); nothing is measured. */
void phases_begin(const struct attack *attack);
uint64_t phases_stop(void);
/* Units of attack so far. */
uint64_t phases_units(void);
/* Ends attackers that a failed test has left; a teardown function of CMocka. */
int phases_kill(void **state);

/* The attack goes on: for long work(). */
bool phase_lasts(enum phase phase);
/* This process may have as many descriptors as the kernel lets it. */
void attacker_takes_all_descriptors(void);

/* For attackers. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno));            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#endif
