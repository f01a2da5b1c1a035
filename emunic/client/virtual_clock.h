/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual clocks of this process, from the threads' side (abi/virtual_clock.h).
 *
 * Each library that has this code finds the same clock of a thread, by the thread's number in the page. So one thread
 * has one clock, whatever libraries it calls. Functions may be called by any thread and take no lock. None is a
 * cancellation point. Where virtual time is off (no page, the process's end of it, a forked child) they do nothing.
 */
#ifndef EMUNIC_CLIENT_VIRTUAL_CLOCK_H
#define EMUNIC_CLIENT_VIRTUAL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/virtual_clock.h"

/*
 * Takes a page over, once per process; what comes later is not taken. The page stays mapped and the doorbell open until
 * the process ends. False: there is one already.
 */
bool emu_vclock_adopt(struct emu_vclock_page *page, int doorbell);

struct emu_vclock;

/* Is there virtual time for this process? It ends with emunic, or with the domain. */
bool emu_vclock_is_on(void);

/* The page, or NULL: off. */
const struct emu_vclock_page *emu_vclock_page(void);

/*
 * Gives the thread a clock, if it has none: for threads that call an API library. Other threads, such as those of a
 * runtime, have none, so they hold no time up; the functions below do nothing for them.
 */
void emu_vclock_begin(void);

/*
 * For a thread that the calling one, which has a clock, is about to create: it begins at the creator's time, and holds
 * time up before it runs. The new thread takes it, or the creator gives it back. NULL: all are in use.
 */
struct emu_vclock *emu_vclock_reserve(void);
void emu_vclock_take_reserved(struct emu_vclock *clock);
void emu_vclock_give_back(struct emu_vclock *clock);

/* Has the calling thread a clock? */
bool emu_vclock_has_own(void);

/*
 * May it move that clock? Not in a signal handler that has interrupted a request to emunic, nor in a fence that it has
 * not come out of: another rank may have ended it already, and how soon is the host's choice.
 */
bool emu_vclock_runs(void);

/*
 * Brings in what the thread has computed since emu_vclock_leave(): called first in each call of a library. The clock's
 * time, in ps. 0: off.
 */
uint64_t emu_vclock_enter(void);
/* Last in each such call: what the library itself has computed does not count. */
void emu_vclock_leave(void);

/* Between enter and leave: moves the clock on, and returns its time before that. 0: off. */
uint64_t emu_vclock_spend(uint64_t cost_ps);

/* Between enter and leave: has nothing happened to the process up to the clock's time? Then no request is needed. */
bool emu_vclock_is_before_horizon(void);

/* Something was posted that may come back then. 0: at once, so there is no horizon. */
void emu_vclock_draw_in_horizon(uint64_t at_ps);

/* How a request to emunic has ended. */
enum emu_vclock_result {
    EMU_VCLOCK_WENT_ON = 0,
    EMU_VCLOCK_IS_OFF, /* there is no virtual time, or no more */
};

/* Between enter and leave. Waits until all that happens up to the clock's time has happened. */
enum emu_vclock_result emu_vclock_look(enum emu_vclock_call call);

/*
 * Between enter and leave. Waits until something happens to the process, or until until_ps (EMU_VCLOCK_NEVER: for
 * ever), and goes on at the first multiple of grid_ps behind the present time that is not before that; 0: at that time.
 * A timer of the program may end it before.
 */
enum emu_vclock_result emu_vclock_wait(enum emu_vclock_call call, uint64_t until_ps, uint64_t grid_ps);

/* Blocking calls of the process's threads look again: something has changed that emunic does not see. */
void emu_vclock_wake_all(void);

/* Before a thread looks whether its blocking call must wait: a later emu_vclock_wake_all() ends the wait. */
void emu_vclock_before_look(void);

/* Has a signal ended the last wait? Of blocking calls (EMU_VCLOCK_CALL_WAIT) alone. */
bool emu_vclock_was_interrupted(void);

/*
 * Around a call that returns when all processes of the job have made it: those that have clocks go on at the latest of
 * their times. key: the number of the fence, the same in all processes.
 */
void emu_vclock_fence_begin(uint32_t key);
void emu_vclock_fence_end(void);

/*
 * Says what the thread is in, and returns what it was in before. EMU_VCLOCK_CALL_SERVED: it waits for an answer of the
 * runtime, so others wait for it although it sleeps.
 */
enum emu_vclock_call emu_vclock_note_call(enum emu_vclock_call call);

/* Around a call that waits for something outside the model: goes on at the time that the others have reached. */
void emu_vclock_away(void);
void emu_vclock_return(void);

#endif
