/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside libemunic-clock: what its files share. Any thread; no function prints, and errno is left alone.
 */
#ifndef EMUNIC_MPI_SHIM_CLOCK_PROGRAM_CLOCK_H
#define EMUNIC_MPI_SHIM_CLOCK_PROGRAM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_EXPORT __attribute__((visibility("default")))

/* Who has called the function that this stands in. */
#define CLOCK_CALLER __builtin_return_address(0)

/*
 * Between these two the calling thread has the host's time: it is inside a call of PMIx, whose timers are watched by a
 * thread of PMIx's own. They nest.
 */
void program_clock_enter_runtime(void);
void program_clock_leave_runtime(void);

/* What time a call has. */
enum program_clock_kind {
    PROGRAM_CLOCK_HOST = 0, /* the host's: a thread without a clock, or all of them before the first attach */
    PROGRAM_CLOCK_RUNTIME,  /* the host's, but the thread has a clock that others may wait for */
    PROGRAM_CLOCK_READ,     /* virtual, and it stands: a signal handler that has interrupted a wait for emunic */
    PROGRAM_CLOCK_VIRTUAL,
};

/* The time of a call that returns to `caller`. */
enum program_clock_kind program_clock_kind(const void *caller);

/* Learns where the libraries of the runtime are. Before threads have virtual time. */
void program_clock_note_runtime(void);

/* Is that address in a library of the runtime? */
bool program_clock_is_of_runtime(const void *caller);
/* In one of these that polls for the program? */
bool program_clock_is_of_progress(const void *caller);
/* In an API library? */
bool program_clock_is_of_api(const void *caller);

/* Virtual time, ns. For calls in virtual time. */
uint64_t program_clock_elapsed_ns(void);

/* A question for the time costs its thread something. */
void program_clock_charge(void);

/* What the host's clock said, a whole second later at most, when virtual time began. */
uint64_t program_clock_base_ns(clockid_t clock);

/* The host's clock, by the system call. 0, or -1 with errno. */
int program_clock_host(clockid_t clock, struct timespec *now_out);

/* What a call that returns to `caller` sees of CLOCK_MONOTONIC, ns. It costs nothing. */
uint64_t program_clock_now_ns(const void *caller);

enum program_clock_slept {
    PROGRAM_CLOCK_SLEPT = 0,
    PROGRAM_CLOCK_INTERRUPTED, /* by the signal of a timer */
    PROGRAM_CLOCK_ENDED,       /* virtual time has */
};

/* Sleeps to that virtual time, ns. */
enum program_clock_slept program_clock_sleep_until(uint64_t elapsed_ns);

/* Around a call that waits for something outside the model. They leave errno alone. */
void program_clock_away(void);
void program_clock_return(void);

/* The function behind ours, by its name: looked up once. */
void *program_clock_next(void **found, const char *name);
/* The same; of that version, if there is one. */
void *program_clock_next_version(void **found, const char *name, const char *version);

#endif
