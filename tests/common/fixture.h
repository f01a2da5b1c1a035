/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A private emunic for one test program: started in a child process with one domain, ended with it. Programs that use
 * no more of it than this header, <gni_pub.h> and the rest of tests/common also link with fixture_job.c, which needs no
 * emunic but takes the domain of the job that the program was launched in, on the node where it runs. What only a
 * private emunic can do then ends the test as skipped: fx_needs_emunic().
 *
 * One test process can be several ranks: fx_set_node() puts the next NIC handle on a node. Tests that need real
 * processes use fx_run(), whose bodies report through their exit status; CMocka's asserts belong to the parent.
 *
 * FX_DATAPATH=routed makes domains whose commands all go through emunic; the suites run both ways. FX_HOSTS=N makes a
 * machine of N hosts: N emunics, each with every N-th node, and fx_set_node() chooses the emunic, too.
 * EMU_TEST_TRANSPORT names the transport's module then. FX_NETWORKS=ADDRESS=FILE,... puts each host into a network
 * namespace (its file) where it has that address; FX_TIMEOUT_S is the silence after which a host is lost.
 */
#ifndef TESTS_COMMON_FIXTURE_H
#define TESTS_COMMON_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "emunic/client/port.h"
#include "emunic/client/session.h"

#define FX_RANKS_MAX 64
#define FX_HOSTS_MAX 4

struct fx_options {
    const char *machine;   /* NULL: "aries:groups=2" */
    unsigned n_ranks;      /* 0: 4 */
    const uint32_t *nids;  /* one per rank; NULL: 0, 1, 2 ... */
    unsigned member_limit; /* processes; 0 none */
    uint32_t owner_uid;    /* 0: the caller */
    unsigned n_hosts;      /* 0: as FX_HOSTS says, else 1 */
    unsigned n_absent;   /* the last of them have no emunic; then fx_start_domain() makes the domain, not fx_start() */
    unsigned timeout_ms; /* after which a host is lost; 0: as FX_TIMEOUT_S says, else emunic's default */
};

/* One of the emunics of a machine of several hosts. */
struct fx_host {
    char server[EMU_SERVER_NAME_MAX + 1];
    pid_t daemon; /* 0: has been killed */
    struct emu_session admin;
};

struct fx {
    char server[EMU_SERVER_NAME_MAX + 1];
    pid_t daemon;
    struct emu_session admin; /* owns the domain */
    uint32_t domain_id;
    uint32_t ptag;
    uint32_t cookie;
    unsigned n_ranks;
    uint32_t nids[FX_RANKS_MAX];
    unsigned n_hosts;
    struct fx_host hosts[FX_HOSTS_MAX]; /* the first is the head: `server`, `daemon` and `admin` are its */
    const char *machine;
    unsigned timeout_ms;
    uint32_t owner_uid;
    unsigned member_limit;
    pid_t owner;     /* the test program */
    unsigned number; /* of those that it has started */
    bool is_started;
};

/* Starts emunic and the domain and sets EMUNIC_SERVER. Ends the program with a message if that fails. */
void fx_start(struct fx *fx, const struct fx_options *options);

/* See fx_options.n_absent: all hosts are up now. */
void fx_start_domain(struct fx *fx);

/*
 * Ends the domain and emunic. Returns emunic's wait status: 0, or that of a SIGKILL which a test has sent. Any other
 * end (a crash, a leak that a sanitizer found) ends the program with a message.
 */
int fx_stop(struct fx *fx);

/* Attaching finds this one again: after another was started, or the environment was changed. */
void fx_use(const struct fx *fx);

/* One more domain on the same server; the session owns it and must be closed by the caller. 0 or negative errno. */
int fx_add_domain(const struct fx *fx, uint32_t ptag, uint32_t cookie, uint32_t owner_uid, unsigned member_limit,
                  struct emu_session *admin_out);

/* Ends what fx_add_domain() made, members and all. 0 or negative errno. */
int fx_end_domain(struct emu_session *admin);

/*
 * The rest of this test needs the private emunic: its process, its environment, its nodes. In a launched job the test
 * ends here, as skipped. Not for setup functions.
 */
void fx_needs_emunic(void);

struct emu_hosts_options;
/* What the emunic of a host is told of all hosts. Valid until the next call. */
void fx_describe_host(const struct fx *fx, unsigned host, struct emu_hosts_options *hosts_out);
/* Number of the host that has node `nid`. */
unsigned fx_host_of(const struct fx *fx, uint32_t nid);
/* Kills the emunic of a host that is not the head, or starts it again at the same address. */
void fx_kill_host(struct fx *fx, unsigned host);
void fx_restart_host(struct fx *fx, unsigned host);
/* Waits until host `from` holds host `of` for up, or for down. Ends the program after a minute. */
void fx_await_host(struct fx *fx, unsigned from, unsigned of, bool is_up);
/*
 * Waits until all hosts that were started hold each other for up: after a restart or a cut, before a test asks anything
 * of two hosts, as sessions come one by one.
 */
void fx_await_all_hosts(struct fx *fx);

/* A forked process lets go of what the fixture has. */
void fx_forget(struct fx *fx);

/*
 * Sends the domain's commands through emunic from now on, or no longer. Without effect in a domain that was made
 * routed. A test that stops emunic to hold transactions back does this first.
 */
void fx_set_routed(struct fx *fx, bool is_routed);

/*
 * Adds a fault rule, written as for `emunic fault add`, to the domain. Ends the program with a message if it is
 * not valid.
 */
void fx_add_fault(struct fx *fx, const char *words);
void fx_clear_faults(struct fx *fx);
/* How often the rules have hit so far, all together. */
unsigned fx_fault_hits(struct fx *fx);

/* Breaks or mends a part of the network. 0 or negative errno, see EMU_MSG_NETWORK. */
int fx_change_network(struct fx *fx, struct emu_msg_network change);

/* The next attach of this process goes to that node. */
void fx_set_node(uint32_t nid);

/*
 * This process stays in the network of that host and attaches there alone: for one that becomes another user, who could
 * not go to and fro. Where hosts have no networks of their own nothing happens.
 */
void fx_stay(unsigned host);

/* Text of the server's STATUS or LINKS report. Caller frees. NULL on failure. */
char *fx_report(struct fx *fx, unsigned type);

/*
 * Descriptors that emunic holds, counted between two of its turns: what it was given with a request or sent with a
 * reply is closed by then.
 */
int fx_count_fds(struct fx *fx);

/*
 * Private pages that were moved into the space file that the port uses, as a registration moves them. 0, -errno.
 */
int fx_space_map(struct emu_port *port, size_t bytes, void **addr_out);

/* Memory that a port of its own on node `nid` has allocated shareably and registered, as DMAPP's heap. */
struct fx_mapped {
    struct emu_port port;
    void *mem;
    size_t bytes;
    uint16_t mdh;
    uint16_t generation;
};
void *fx_map(struct fx_mapped *m, const struct fx *fx, uint32_t nid, uint32_t instance_id, size_t bytes);
void fx_deregister_mapped(struct fx_mapped *m);
void fx_unmap(struct fx_mapped *m);

/* What a rank's process gets in fx_run(). */
struct fx_rank {
    struct fx *fx;
    unsigned rank;
    unsigned n_ranks;
    void *shared;               /* of all ranks, zeroed, FX_SHARED_BYTES */
    pthread_barrier_t *barrier; /* of all ranks */
    void *arg;
};
#define FX_SHARED_BYTES 65536

/*
 * Runs body in n_ranks processes, rank r on node fx->nids[r]; waits for all. Returns how many did not exit with 0.
 */
unsigned fx_run(struct fx *fx, unsigned n_ranks, int (*body)(struct fx_rank *rank), void *arg);

/* The same in halves, for a test that does something meanwhile. */
struct fx_ranks {
    unsigned n_ranks;
    unsigned n_failed;
    pid_t pids[FX_RANKS_MAX]; /* 0: has ended and was counted */
    void *shared;             /* what the bodies get */
    void *owned;
};
void fx_spawn(struct fx *fx, unsigned n_ranks, int (*body)(struct fx_rank *rank), void *arg,
              struct fx_ranks *ranks_out);
/* Have all of them ended? Does not wait. */
bool fx_is_over(struct fx_ranks *ranks);
/* Waits for all and lets go of what they shared. How many did not exit with 0. */
unsigned fx_join(struct fx_ranks *ranks);

/* For bodies: says what went wrong and ends the process. */
#define FX_CHECK(condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: pid %d: not true: %s\n", __FILE__, __LINE__, (int)getpid(), #condition);           \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#endif
