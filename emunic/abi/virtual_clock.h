/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual clocks: one page per process in virtual time, shared by the process and emunic. Each thread that calls an API
 * library has a clock in it; so has one that asks for the time. All times are in picoseconds of virtual time.
 *
 *   byte 0       64         128        4096
 *        | ident | costs | clock 0 | clock 1 | ... |
 *
 * Key: [I] emunic, before the process maps it  [T] the thread of the clock  [E] emunic
 *
 * Who may write a clock depends on its state. While it *runs* the thread moves it: by what the program computes and
 * what calls cost. For any other state the thread stores its request first and the state last, and then waits until
 * emunic has stored EMU_VCLOCK_RUNS, with the time that the clock has then.
 *
 *   FREE --thread--> RUNS --thread--> LOOKS, WAITS, FENCED, AWAY --emunic--> RUNS
 *                    RUNS --thread, at its end--> FREE
 *   AWAY --thread--> RETURNS --emunic--> RUNS
 *   WAITS --a thread of the process, if emunic has not let it go--> RETURNS: a signal was handled, or it shall look
 *   FENCED --thread, if emunic has not--> UNFENCED --emunic--> RUNS
 *
 * emunic believes nothing of this: it copies what it reads, a clock that goes back stands still, and a wrong one harms
 * the time of its own machine only.
 */
#ifndef EMUNIC_ABI_VIRTUAL_CLOCK_H
#define EMUNIC_ABI_VIRTUAL_CLOCK_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_VCLOCK_MAGIC 0x4b4c435f554d45ull /* "EMU_CLK" */
#define EMU_VCLOCKS      31u                 /* threads of a process that have a clock */
#define EMU_VCLOCK_NEVER UINT64_MAX

/* How long emunic and a waiting thread stay awake before they sleep, ns of the host. */
#define EMU_VCLOCK_AWAKE_NS 100000u

enum emu_vclock_state {
    EMU_VCLOCK_FREE = 0,
    EMU_VCLOCK_RUNS,     /* computes, or is inside a call */
    EMU_VCLOCK_LOOKS,    /* wants to see everything up to now_ps */
    EMU_VCLOCK_WAITS,    /* has nothing to do before something happens to its process, or until_ps */
    EMU_VCLOCK_FENCED,   /* in a fence of the job, whose number is fence_key */
    EMU_VCLOCK_AWAY,     /* waits for something outside the model: holds nobody up */
    EMU_VCLOCK_RETURNS,  /* wants to go on at the time that the others have reached */
    EMU_VCLOCK_UNFENCED, /* the fence is over: all who are in it go on at the latest of their times */
};

/* How computing moves a clock. */
enum emu_vclock_compute {
    EMU_VCLOCK_COMPUTE_NONE = 0, /* it does not */
    EMU_VCLOCK_COMPUTE_MEASURED, /* processor time of the thread, times factor_ppm / 10^6 */
    EMU_VCLOCK_COMPUTE_FIXED,    /* fixed_ps for each call */
};

struct emu_vclock {
    _Atomic uint32_t state;    /* enum emu_vclock_state, [T] and [E] as drawn above; futex */
    _Atomic uint32_t tid;      /* [T] of its thread */
    _Atomic uint64_t now_ps;   /* [T] while it runs, else [E] */
    _Atomic uint64_t until_ps; /* [T] WAITS: goes on then at the latest */
    _Atomic uint64_t grid_ps;  /* [T] WAITS: goes on at now_ps plus a multiple of that; 0 any time */
    /*
     * Nothing happens to the process before that: polls and questions for the time up to it need no request. [E]
     * while it does not run; [T] draws it in at a post, and a thread that comes those of all, to 0.
     */
    _Atomic uint64_t horizon_ps;
    _Atomic uint64_t cpu_ns;    /* [T] processor time that is accounted for */
    _Atomic uint32_t fence_key; /* [T] FENCED */
    _Atomic uint32_t is_left;   /* [E] 1: others went on without it; [T] then returns at its next call, and stores 0 */
    _Atomic uint32_t sleeps;    /* [T] 1: sleeps on `state` */
    _Atomic uint32_t call;      /* [T] enum emu_vclock_call: the last one, for reports */
    _Atomic uint32_t stays_awake; /* [E] 1: its thread yields for a moment before it sleeps */
    uint32_t reserved_word;
    uint64_t reserved[7];
};
static_assert(sizeof(struct emu_vclock) == 128, "ABI: two lines per clock");

/* What a thread was in when it last asked something of emunic. */
enum emu_vclock_call {
    EMU_VCLOCK_CALL_NONE = 0,
    EMU_VCLOCK_CALL_POLL,   /* an empty poll of a queue, mailbox, event queue */
    EMU_VCLOCK_CALL_WAIT,   /* a blocking call of an API */
    EMU_VCLOCK_CALL_SLEEP,  /* nanosleep() and its like, or a time-out */
    EMU_VCLOCK_CALL_FENCE,  /* of PMI or PMIx; until the thread has come out, which may be long after its clock has */
    EMU_VCLOCK_CALL_BLOCK,  /* a call of the system */
    EMU_VCLOCK_CALL_SERVED, /* of the runtime, whose answer is under way: the thread sleeps, and its clock runs */
    EMU_VCLOCK_CALL_ASKED,  /* a request to emunic, likewise */
    EMU_VCLOCK_CALLS
};

struct emu_vclock_page {
    uint64_t magic;           /* [I] EMU_VCLOCK_MAGIC */
    uint32_t abi_version;     /* [I] EMU_ABI_VERSION */
    uint32_t n_clocks;        /* [I] EMU_VCLOCKS */
    uint32_t compute;         /* [I] enum emu_vclock_compute */
    uint32_t factor_ppm;      /* [I] */
    uint64_t fixed_ps;        /* [I] */
    uint64_t epoch_ns;        /* [I] real time (CLOCK_REALTIME) of virtual time 0, for programs that ask for the date */
    uint64_t poll_ps;         /* [I] cost of an empty poll */
    uint32_t server_pid;      /* [I] */
    _Atomic uint32_t is_over; /* [E] 1: the domain has ended, no clock will be moved any more */
    alignas(64) uint64_t put_gap_ps; /* [I] core's time per post, and its stores */
    uint32_t store_kbs;              /* [I] 0: fast */
    _Atomic uint32_t emunic_sleeps;  /* [E] 1: ring the doorbell that came with the page behind a request */
    uint32_t launch_gap_ps;          /* [I] core's time per FMA launch */
    uint32_t launch_mdh_percent;     /* [I] of it, if the memory handle changes */
    _Atomic uint32_t n_taken;        /* clocks from this one on have never been taken; raised before one is */
    uint32_t message_send_ps;        /* [I] core's time per message that a message layer (MPI) sends */
    uint32_t message_recv_ps;        /* [I] and receives */
    uint64_t lookahead_ps;           /* [I] what a thread posts to another node comes back no sooner */
    alignas(64) struct emu_vclock clocks[EMU_VCLOCKS];
};
static_assert(offsetof(struct emu_vclock_page, clocks) == 128, "ABI: clocks behind two lines");
static_assert(sizeof(struct emu_vclock_page) == 4096, "ABI: one page");

#endif
