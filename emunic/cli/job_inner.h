/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside a job: its state, and what its files give each other. job_run.c has the drawing and the order of things;
 * job_start.c and job_hosts.c start what it needs, job_launch.c its ranks, job_events.c hears what happens.
 */
#ifndef EMUNIC_CLI_JOB_INNER_H
#define EMUNIC_CLI_JOB_INNER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "emunic/abi/credentials.h"
#include "emunic/cli/child.h"
#include "emunic/cli/job_run.h"
#include "emunic/cli/keeper.h"
#include "emunic/cli/mpirun.h"
#include "emunic/cli/mpirun_output.h"
#include "emunic/client/session.h"

struct job {
    const struct emu_job_plan *plan;
    char server[EMU_SERVER_NAME_MAX + 1];
    char folder[128];
    char marker[32];
    uint32_t cookie;
    uint32_t ptag;
    sigset_t old_mask;
    int signal_fd;
    bool has_foreign_children;
    bool shares_terminal; /* mpirun is in our process group */
    struct emu_keeper_plan keeper_plan;
    struct emu_child keeper;
    bool keeper_ended; /* and has been waited for */
    struct emu_child emunic;
    bool emunic_ended; /* and has been waited for */
    int emunic_status;
    struct emu_session session; /* with the admin socket; fd -1: none */
    bool lacks_nodes;           /* another job has taken some of them */
    bool has_domain;
    uint32_t domain_id;
    bool server_lost;
    pid_t hosts;             /* mpirun of the emunics; 0: none */
    int hosts_fd;            /* what they say */
    uint64_t hosts_limit_ns; /* they are ready before that */
    bool hosts_ended;
    int hosts_status;
    pid_t mpirun;                    /* 0: not started */
    struct emu_mpirun_output output; /* of mpirun */
    bool mpirun_ended;
    int mpirun_status;
    bool mpirun_killed; /* by us */
    bool mpirun_hung;
    long mpirun_sleeps;  /* at the last look */
    uint64_t look_at_ns; /* whether it hangs; 0: no rank has failed */
    int told_to_end;     /* signal, or 0 */
    uint64_t told_ns;
    uint64_t kill_at_ns; /* 0: no deadline */
    uint64_t limit_ns;   /* 0: it may run for ever */
    bool is_over_time;
};

/* ---- starting; each answers EMU_EXIT_DONE, or EMU_EXIT_FAILED after a message or a signal ---- */

/* 0 or negative errno. */
int emu_job_open_signals(struct job *job);
int emu_job_choose_names(struct job *job);
int emu_job_start_keeper(struct job *job);
int emu_job_start_emunic(struct job *job);
int emu_job_open_session(struct job *job);
int emu_job_create_domain(struct job *job);
/* Before the first rank starts. */
int emu_job_set_faults(struct job *job);

/* ---- ranks ---- */

int emu_job_launch(struct job *job);
/* In a child of `run`: executes mpirun with those words. */
_Noreturn void emu_job_become_mpirun(const struct job *job, pid_t run, bool is_in_front,
                                     char **(*words)(const struct emu_mpirun_job *));

/* ---- several hosts ---- */

int emu_job_start_hosts(struct job *job);
bool emu_job_wait_for_hosts(struct job *job, uint32_t *n_ready);
void emu_job_end_hosts(struct job *job);

/* ---- events ---- */

struct signalfd_siginfo;

/* All signals that have come. */
void emu_job_read_signals(struct job *job);
void emu_job_obey(struct job *job, const struct signalfd_siginfo *info);
/* Takes the status of each child that has ended. */
void emu_job_reap(struct job *job);
void emu_job_end_mpirun(struct job *job, int signal);
void emu_job_lose_server(struct job *job);
/* Says why the server has gone. */
void emu_job_explain_loss(struct job *job);
void emu_job_end_for_time(struct job *job);
/* After a rank has failed: is there nothing left that mpirun could wait for, but it does? Says when to look again. */
void emu_job_look_for_hang(struct job *job);

#endif
