/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside virtual time: clocks of processes, and the state of the part. clocks.c reads and moves clocks, absence.c looks
 * for threads that do not run, schedule.c decides whose turn it is, horizon.c up to when a process needs no turn,
 * operations.c is the side of the model.
 */
#ifndef EMUNIC_DAEMON_VIRTUAL_INNER_H
#define EMUNIC_DAEMON_VIRTUAL_INNER_H

#include "emunic/abi/virtual_clock.h"
#include "emunic/daemon/virtual/lag.h"
#include "emunic/daemon/virtual/link_windows.h"
#include "emunic/daemon/virtual/trace.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server_time.h"
#include "emunic/model/nic_model.h"

#define NEVER EMU_VCLOCK_NEVER

/* What a process says is cut here (53 days), so that no sum of times turns over. */
#define TIME_MAX_PS (NEVER / 4)

/* A clock as emunic takes it. */
struct clock_end {
    uint32_t state;       /* enum emu_vclock_state, as last read */
    uint64_t now_ps;      /* never goes back */
    uint64_t look_ps;     /* LOOKS: when it goes on */
    uint64_t news_ps;     /* when something happened to its process first since it went on last; NEVER: nothing has */
    bool is_absent;       /* RUNS, but its thread does not, or for long: it holds nobody up, and will return */
    bool is_moved_by_cpu; /* RUNS: its processor time has moved it beyond what it said */
    uint64_t still_ps;    /* its time when its process was looked at last */
    bool stands;          /* its time had not moved then since the look before */
    uint64_t slept_ns;    /* steady time: when its thread was looked at, or its clock was seen to move, */
    uint64_t fell_asleep_ns; /* and since when it has slept, as far as was seen */
    uint64_t n_sleeps;       /* 1 more than what the kernel has counted, if it slept then; else 0 */
};

/* Its clocks, as they were taken in last. */
struct process_scan {
    uint64_t run_ps; /* the earliest that runs; NEVER: none */
    uint64_t look_ps;
    uint64_t until_ps; /* the first end of a wait */
    uint16_t look_index;
    uint16_t wait_index;
    uint16_t n_waiting;
    uint16_t n_outside; /* away or absent */
    bool runs;          /* some clock does, absent or not */
    bool is_fenced;     /* some clock is in a fence, */
    uint64_t fence_ps;  /* since then at the latest */
};

/* A process in virtual time. */
struct emu_virtual_process {
    struct emu_watch watch; /* first; the doorbell */
    LIST_ENTRY(emu_virtual_process) link;
    struct emu_member *member;   /* borrowed: outlives this */
    struct emu_virtual_job *job; /* borrowed: likewise */
    uint32_t rank;               /* its own, or that of the process that has started it; or EMU_NID_NONE */
    pid_t starter;               /* that process; 0: none */
    struct process_scan sum;
    uint64_t news_ps;             /* of the first news that no scan has seen; NEVER: none */
    uint64_t n_takes;             /* by scans: its ports may have commands since */
    uint32_t n_used;              /* clocks that threads have, or had */
    uint32_t n_ops;               /* under way, from it or to it; */
    uint64_t reach_ps;            /* none of them does so before. NEVER: there are none */
    struct emu_vclock_page *page; /* owned */
    int page_fd;
    int doorbell;
    uint64_t order;        /* among equal times: rank, then node; else when it came */
    uint32_t proc;         /* in the model, on its node */
    bool is_alone;         /* no other rank is on its node */
    uint64_t cpu_ns;       /* of the process, when it was looked at last */
    uint64_t cpu_began_ns; /* when its clocks were last seen to move */
    uint64_t spin_ns;      /* processor time without a call after which it holds nobody up */
    uint64_t spun_cpu_ns;  /* when that was so; 0: not now */
    struct emu_lag lag;
    struct clock_end clocks[EMU_VCLOCKS];
};

/* The processes of a domain. */
struct emu_virtual_job {
    LIST_ENTRY(emu_virtual_job) link;
    const struct emu_domain *domain;
    bool has_come;        /* to its first fence */
    bool has_begun;       /* it is over */
    uint32_t n_processes; /* with clocks, at the last scan; */
    uint32_t n_unfenced;  /* of them, those without a clock in a fence, */
    uint64_t fence_ps;    /* and the latest that is in one */
};

enum emu_virtual_effect_kind { EFFECT_BEGUN, EFFECT_ARRIVED, EFFECT_ENDED };

/* What the model has told, and nobody has seen yet. */
struct emu_virtual_effect {
    STAILQ_ENTRY(emu_virtual_effect) link;
    struct emu_virtual_op *op;
    uint64_t at_ps;
    enum emu_virtual_effect_kind kind;
};

#define AWAKE_MAX 64u

/* Clocks whose threads stay awake while they wait: the last ones that went on, as many as there are cores. */
struct emu_virtual_awake {
    struct {
        struct emu_virtual_process *p; /* NULL: nobody */
        uint32_t index;
    } clocks[AWAKE_MAX];
    uint32_t n;
    uint32_t next;       /* the one that went on first of them */
    uint64_t went_on_ns; /* host time when the last one did */
};

/* At processes: host times. */
struct emu_virtual_looks {
    uint64_t at_ns;     /* the last one */
    uint64_t pause_ns;  /* until the next */
    uint64_t steady_ns; /* that have passed while emunic looked (absence.c) */
};

struct emu_virtual_network {
    uint64_t changes;     /* those that the model knows */
    uint64_t released_ps; /* when it took the last one over: commands of before have waited for that */
};

/* With nothing under way. */
struct emu_virtual_idle {
    uint64_t step_ps;   /* how far time moves next */
    uint64_t passed_ps; /* how far it has moved so without an effect */
    uint64_t looked_ns; /* host time of the last look whether others come back from outside; 0: somebody has */
    uint64_t quiet_ns;  /* for how long nobody has */
    uint64_t effect_ps; /* the last that has happened to anybody: idle time begins there, or where who waits stands */
};

struct emu_virtual_files {
    struct emu_virtual_trace *trace; /* owned; NULL: not asked for */
    struct emu_link_windows_list link_windows;
};

struct emu_virtual_jobs {
    LIST_HEAD(, emu_virtual_job) all;
    uint32_t n_missing; /* that are to begin together with those that are here */
    bool has_opened;    /* just now, for all */
    uint64_t begin_ps;  /* when those that waited begin */
};

/* Processes that have ended. */
struct emu_virtual_ended {
    uint64_t latest_ps;       /* of them */
    struct emu_lag_row *rows; /* owned */
    size_t n_rows;
};

struct emu_virtual {
    struct emu_server_time time;
    struct emu_time_options options;
    uint32_t n_unaddressed; /* operations under way whose effects may reach anybody, */
    uint64_t reach_ps;      /* not before that */
    struct emu_virtual_network network;
    struct emu_nic_model *model; /* owned */
    struct emu_nic_lookahead lookahead;
    LIST_HEAD(, emu_virtual_process) processes;
    LIST_HEAD(, emu_virtual_op) ops;
    STAILQ_HEAD(, emu_virtual_effect) due; /* in the order of time */
    uint64_t clock_ps;                     /* of the routers */
    uint64_t command_ps;                   /* when the first of all commands is due, as last seen; 0: not looked for */
    struct emu_virtual_idle idle;
    struct emu_virtual_looks looks;
    struct emu_virtual_files files;
    uint32_t n_came;
    uint32_t n_rankless;  /* processes without a rank so far: they may be on any node */
    uint32_t n_clockless; /* processes without a clock, at the last scan of all */
    bool is_announced;    /* that emunic sleeps */
    struct emu_virtual_awake awake;
    bool is_blocked;    /* some clock runs, and time cannot pass it */
    bool is_stuck;      /* told: nothing can happen any more */
    struct emu_lag lag; /* of all processes */
    struct emu_virtual_ended ended;
    struct emu_virtual_jobs jobs;
};

static inline struct emu_virtual *virtual_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_VIRTUAL];
}

/* ---- times ---- */

static inline uint64_t earliest(uint64_t a_ps, uint64_t b_ps)
{
    return a_ps < b_ps ? a_ps : b_ps;
}

/* What is posted to another node has no effect on anybody before so much has passed. */
static inline uint64_t remote_lookahead_ps(const struct emu_virtual *v)
{
    return earliest(v->lookahead.own_ps, v->lookahead.remote_ps);
}

/* ---- clocks ---- */

/* The clocks as they are now. */
struct clock_scan {
    uint64_t run_ps; /* the earliest that runs; NEVER: none */
    uint64_t look_ps;
    struct emu_virtual_process *looker; /* the earliest that wants to look, first in order; NULL */
    uint64_t until_ps;
    struct emu_virtual_process *waiter; /* whose waiting ends first */
    uint32_t n_waiting;
    uint32_t n_outside; /* away, absent, or of a process that has no clock yet */
};

/*
 * All: each process is read. Else those alone that ran, or have had news, when they were read last: others come back
 * from outside, at no certain time.
 */
void emu_virtual_scan(struct emu_server *server, bool all, struct clock_scan *scan_out);
/* The clock goes on at that time. */
void emu_virtual_go_on(struct emu_virtual *v, struct emu_virtual_process *p, uint32_t index, uint64_t at_ps);
/* Nothing happens to the process before that, unless its own thread posts something. */
uint64_t emu_virtual_horizon_ps(const struct emu_virtual *v, const struct emu_virtual_process *p);
/* Its thread sleeps when it waits, from now on. */
void emu_virtual_put_to_sleep(struct emu_virtual *v, const struct emu_virtual_process *p);
/* The latest time of those who wait, and of what has happened to anybody. */
uint64_t emu_virtual_latest_ps(const struct emu_virtual *v);
/* All that wait in polls look at now_ps + step_ps. False: there are none. */
bool emu_virtual_move_pollers(struct emu_virtual *v, uint64_t step_ps);
/* So do those at at_ps that have waited in a poll without an end for long: they may have something else to look at. */
void emu_virtual_let_pollers_look(struct emu_virtual *v, uint64_t at_ps);
/* Is there a request that has not been seen yet? */
bool emu_virtual_is_asked(const struct emu_virtual *v);
void emu_virtual_announce_sleep(struct emu_virtual *v, bool sleeps);

/* ---- absence ---- */

/* Looks whether the processes whose clocks run do run: once a millisecond is enough. */
void emu_virtual_look_at_processes(struct emu_virtual *v, uint64_t now_ns);

/* ---- processes ---- */

/* EMU_MSG_VIRTUAL_CLOCK: the page and the doorbell of the process. */
int emu_virtual_answer_page(struct emu_request *request);
void emu_virtual_end_process(struct emu_server *server, struct emu_member *member);

/* ---- jobs ---- */

int emu_virtual_begin_job(struct emu_server *server, struct emu_domain *domain);
void emu_virtual_end_job(struct emu_server *server, struct emu_domain *domain);
/* Are there jobs to come that others begin together with? */
bool emu_virtual_waits_for_jobs(const struct emu_virtual *v);
/* A clock of the job is in a fence that is over. */
void emu_virtual_note_fence(struct emu_virtual *v, struct emu_virtual_job *job);
/* Once all jobs of a scan are noted: if the last one has come, they may begin. */
void emu_virtual_open_jobs(struct emu_virtual *v);
/* May clocks of the job leave their fence? At *at_ps, or later: where it is its first one that may be moved. */
bool emu_virtual_leaves_fence(struct emu_virtual *v, struct emu_virtual_job *job, uint64_t *at_ps);
/* Before a scan counts them anew. */
void emu_virtual_forget_fences(struct emu_virtual *v);
/* All processes of some job are in a fence since then: time stands there until the host has ended it. NEVER: none. */
uint64_t emu_virtual_held_ps(const struct emu_virtual *v);

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
/* At the server's end: what is under way goes on to its end, and gets its lines. Nobody sees its effects. */
void emu_virtual_drain(struct emu_virtual *v);
/* Is nothing under way in the model? */
bool emu_virtual_model_is_empty(const struct emu_virtual *v);

#endif
