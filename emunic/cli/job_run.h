/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job: a program on emulated nodes, from the first process to the last.
 */
#ifndef EMUNIC_CLI_JOB_RUN_H
#define EMUNIC_CLI_JOB_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/control.h"
#include "emunic/abi/fault.h"
#include "emunic/cli/host_list.h"

struct emu_job_plan {
    char **program;      /* ends with NULL */
    const char *mpirun;  /* path */
    const char *wrapper; /* path */
    uint32_t n_ranks;
    const uint32_t *rank_nids; /* n_ranks */
    const char *server;        /* name of a running one; NULL: one of its own */
    const char *machine;       /* of its server. Not a pointer into argv */
    const char *machine_dir;   /* the same */
    const char *bind;          /* processors of its emunics; NULL: auto. The same */
    uint32_t cabinet_columns;  /* of the machine; 0 not known */
    uint32_t member_limit;     /* 0 none */
    uint32_t timeout_s;        /* of the program, in the host's time; 0 none */
    bool is_routed;
    bool has_real_clock;                 /* the program's clocks are the host's */
    const struct emu_time_options *time; /* of its server; NULL: functional time */
    uint64_t begin_after_ps;             /* in virtual time, from its first fence to its begin */
    bool takes_own_nodes;                /* none that another job of the server has */
    bool is_quiet;                       /* no progress */
    bool is_verbose;                     /* mpirun explains */
    bool keeps_aslr;                     /* the ranks' addresses stay random */
    bool keeps_hostname;                 /* nodes have no names of their own */
    const char *huge_pages;              /* the ranks' EMUNIC_HUGE_PAGES; NULL: as the environment has it */
    const char *components; /* folder of our components for Open MPI: its messages go over them; NULL: as it likes */
    bool is_over_gni;       /* over btl/gni; else over mtl/portals3 */
    bool wants_links;
    const struct emu_fault_rule *faults; /* of the job's domain */
    uint32_t n_faults;
    const struct emu_msg_network *changes; /* of the server's network, after_ns from the job's start */
    uint32_t n_changes;
    const char *const *exports; /* for mpirun -x */
    unsigned n_exports;
    const struct emu_cli_hosts *hosts; /* two or more, the first is this one; NULL: this one alone */
    const uint32_t *rank_hosts;        /* n_ranks of them, with hosts */
    int launcher_fd;                   /* hangs up when the mpirun that has started us dies; 0: there is none */
    const char *host_program;          /* path of emunic-host */
    const char *agent;                 /* path of emunic-agent */
    const char *module;                /* path of the transport */
    const char *provider;              /* of libfabric; NULL: the best that is there */
    uint32_t peer_timeout_s;           /* 0: the default */
    bool is_secure;                    /* what hosts send to each other is encrypted */
};

/* An answer of emu_job_run(): nothing was started. */
#define EMU_JOB_NODES_TAKEN (-2)

/**
 * Run a job and leave nothing behind.
 *
 * @param[out] links_out  The server's links report, if the plan wants it and there was an answer; else NULL.
 * @return Exit status of the program: that of its first failing rank, 128 + N for a signal; 128 + N when signal N
 *         told us to end it, or ended mpirun; EMU_EXIT_TIMEOUT after timeout_s; EMU_EXIT_FAILED after a message when
 *         the job could not start or emunic died; EMU_JOB_NODES_TAKEN without one, where plan->takes_own_nodes.
 */
int emu_job_run(const struct emu_job_plan *plan, json_t **links_out);

#endif
