/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside virtual time: clocks of processes, and the state of the part. clocks.c reads and moves clocks, schedule.c
 * decides whose turn it is, operations.c is the side of the model.
 */
#ifndef EMUNIC_DAEMON_VIRTUAL_INNER_H
#define EMUNIC_DAEMON_VIRTUAL_INNER_H

#include "emunic/abi/virtual_clock.h"
#include "emunic/daemon/virtual/lag.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server_time.h"
#include "emunic/model/nic_model.h"

#define NEVER EMU_VCLOCK_NEVER

/* A clock as emunic takes it. */
struct clock_end {
    uint32_t state;       /* enum emu_vclock_state, as last read */
    uint64_t now_ps;      /* never goes back */
    uint64_t look_ps;     /* LOOKS: when it goes on */
    bool has_news;        /* something has happened to its process since it went on last */
    bool is_absent;       /* RUNS, but its thread does not, or for long: it holds nobody up, and will return */
    bool is_moved_by_cpu; /* RUNS: its processor time has moved it beyond what it said */
    uint64_t still_ps;    /* its time when its process was looked at last */
    bool stands;          /* its time had not moved then since the look before */
    uint64_t slept_ns;    /* host time: when its thread was looked at, or its clock was seen to move */
    uint64_t n_sleeps;    /* 1 more than what the kernel has counted, if it slept then; else 0 */
};

/* A process in virtual time. */
struct emu_virtual_process {
    struct emu_watch watch; /* first; the doorbell */
    LIST_ENTRY(emu_virtual_process) link;
    struct emu_member *member;    /* borrowed: outlives this */
    struct emu_vclock_page *page; /* owned */
    int page_fd;
    int doorbell;
    uint32_t order;        /* among equal times: rank, else when it came */
    uint32_t proc;         /* in the model, on its node */
    uint64_t cpu_ns;       /* of the process, when it was looked at last */
    uint64_t cpu_began_ns; /* when its clocks were last seen to move */
    uint64_t spin_ns;      /* processor time without a call after which it holds nobody up */
    uint64_t spun_cpu_ns;  /* when that was so; 0: not now */
    struct emu_lag lag;
    struct clock_end clocks[EMU_VCLOCKS];
};

enum emu_virtual_effect_kind { EFFECT_BEGUN, EFFECT_ARRIVED, EFFECT_ENDED };

/* What the model has told, and nobody has seen yet. */
struct emu_virtual_effect {
    STAILQ_ENTRY(emu_virtual_effect) link;
    struct emu_virtual_op *op;
    uint64_t at_ps;
    enum emu_virtual_effect_kind kind;
};

struct emu_virtual {
    struct emu_server_time time;
    struct emu_time_options options;
    uint64_t network_changes;    /* those that the model knows */
    uint64_t released_ps;        /* when it took the last one over: commands of before have waited for that */
    struct emu_nic_model *model; /* owned */
    LIST_HEAD(, emu_virtual_process) processes;
    LIST_HEAD(, emu_virtual_op) ops;
    STAILQ_HEAD(, emu_virtual_effect) due; /* in the order of time */
    uint64_t clock_ps;                     /* of the routers */
    uint64_t idle_step_ps;                 /* with nothing under way: how far time moves next */
    uint64_t idle_ps;                      /* how far it has moved so without an effect */
    uint64_t idle_since_ns;                /* host time of the last such step, with others outside; 0: none */
    uint64_t looked_ns;                    /* host time of the last look at processes */
    uint64_t look_pause_ns;                /* until the next */
    uint32_t n_came;
    bool is_blocked;           /* some clock runs, and time cannot pass it */
    bool is_stuck;             /* told: nothing can happen any more */
    struct emu_lag lag;        /* of all processes */
    struct emu_lag_row *ended; /* owned; processes that have ended */
    size_t n_ended;
};

static inline struct emu_virtual *virtual_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_VIRTUAL];
}

/* ---- clocks ---- */

/* The clocks as they are now. */
struct clock_scan {
    uint64_t run_ps; /* the earliest that runs; NEVER: none */
    uint64_t look_ps;
    struct emu_virtual_process *looker; /* the earliest that wants to look, first in order; NULL */
    uint32_t look_index;
    uint64_t until_ps;
    struct emu_virtual_process *waiter; /* whose waiting ends first */
    uint32_t wait_index;
    uint32_t n_waiting;
    uint32_t n_outside; /* away, absent, or of a process that has no clock yet */
};

void emu_virtual_scan(struct emu_server *server, struct clock_scan *scan_out);
/* The clock goes on at that time. */
void emu_virtual_go_on(struct emu_virtual *v, struct emu_virtual_process *p, uint32_t index, uint64_t at_ps);
/* All that wait in polls look at now_ps + step_ps. False: there are none. */
bool emu_virtual_move_pollers(struct emu_virtual *v, uint64_t step_ps);
/* Looks whether the processes whose clocks run do run: once a millisecond is enough. */
void emu_virtual_look_at_processes(struct emu_virtual *v, uint64_t now_ns);
/* Is there a request that has not been seen yet? */
bool emu_virtual_is_asked(const struct emu_virtual *v);
void emu_virtual_announce_sleep(const struct emu_virtual *v, bool sleeps);

/* EMU_MSG_VIRTUAL_CLOCK: the page and the doorbell of the process. */
int emu_virtual_answer_page(struct emu_request *request);
void emu_virtual_end_process(struct emu_server *server, struct emu_member *member);

/* ---- operations ---- */

int emu_virtual_create_model(struct emu_server *server, struct emu_complaint *why);
/* Lets the model go on up to limit_ps. True: something has happened to somebody, look again. */
bool emu_virtual_run_model(struct emu_virtual *v, uint64_t limit_ps);
/*
 * Effects that are due happen, in order. True: some did. An effect at a process that runs waits for its next request,
 * so that what its polls find does not depend on the host; *waits_out tells.
 */
bool emu_virtual_apply_effects(struct emu_virtual *v, bool *waits_out);
/* Operations forget the process. */
void emu_virtual_forget_process(struct emu_virtual *v, const struct emu_virtual_process *p);
/* The model's network becomes what the machine's is, once traffic does not rest any more. */
void emu_virtual_follow_network(struct emu_server *server);
/* Is nothing under way in the model? */
bool emu_virtual_model_is_empty(const struct emu_virtual *v);

#endif
