/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fixture in a launched job: for another libugni, another machine, or an emunic that somebody else runs.
 *
 * The domain is the job's (PMI_GNI_PTAG, PMI_GNI_COOKIE); all sides of a test are on the node where the program runs,
 * so one process is enough: `emunic run -n 1 -- PROGRAM`, `aprun -n 1 PROGRAM`. Needs <gni_pub.h> and CMocka, and
 * nothing of emunic but headers. There is no emunic to be stopped or killed: a process that only waits stands in for
 * it, so that signals of set-up and clean-up hit nobody; what a private emunic alone can do ends the test as skipped.
 */
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <gni_pub.h>

#include "tests/common/fixture.h"

/* A program without a job is left out as a whole, in TAP's words. */
static _Noreturn void leave_out(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    exit(0);
}

/* The first number of a list; programs take it so (spec/ugni.md 1.8). */
static uint32_t first_number(const char *variable)
{
    const char *text = getenv(variable);
    char *end;
    unsigned long value;

    if (!text || !text[0])
        leave_out("this is no job with a communication domain: PMI_GNI_PTAG, PMI_GNI_COOKIE");
    value = strtoul(text, &end, 0);
    if (end == text || (*end && *end != ':'))
        leave_out("PMI_GNI_PTAG, PMI_GNI_COOKIE: not numbers");
    return (uint32_t)value;
}

static pid_t start_stand_in(void)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

void fx_start(struct fx *fx, const struct fx_options *options)
{
    uint32_t addr = 0;
    uint32_t cpu;

    memset(fx, 0, sizeof(*fx));
    if (options && (options->machine || options->member_limit || options->owner_uid || options->nids))
        leave_out("needs an emunic of its own");
    fx->n_ranks = options && options->n_ranks ? options->n_ranks : 4;
    fx->ptag = first_number("PMI_GNI_PTAG");
    fx->cookie = first_number("PMI_GNI_COOKIE");
    if (GNI_CdmGetNicAddress(0, &addr, &cpu) != GNI_RC_SUCCESS)
        leave_out("no device");
    for (unsigned i = 0; i < fx->n_ranks; i++)
        fx->nids[i] = addr;
    fx->daemon = start_stand_in();
}

int fx_stop(struct fx *fx)
{
    int status;

    if (fx->daemon > 0) {
        kill(fx->daemon, SIGKILL);
        waitpid(fx->daemon, &status, 0);
    }
    return 0;
}

/* There is only one. */
void fx_use(const struct fx *fx)
{
    (void)fx;
}

void fx_stay(unsigned host)
{
    (void)host;
}

void fx_needs_emunic(void)
{
    skip();
}

int fx_add_domain(const struct fx *fx, uint32_t ptag, uint32_t cookie, uint32_t owner_uid, unsigned member_limit,
                  struct emu_session *admin_out)
{
    (void)fx;
    (void)ptag;
    (void)cookie;
    (void)owner_uid;
    (void)member_limit;
    (void)admin_out;
    fx_needs_emunic();
    return -1;
}

int fx_end_domain(struct emu_session *admin)
{
    (void)admin;
    return 0;
}

/* Also called by set-up and clean-up: says nothing. */
void fx_set_routed(struct fx *fx, bool is_routed)
{
    (void)fx;
    (void)is_routed;
}

void fx_add_fault(struct fx *fx, const char *words)
{
    (void)fx;
    (void)words;
    fx_needs_emunic();
}

void fx_clear_faults(struct fx *fx)
{
    (void)fx;
}

unsigned fx_fault_hits(struct fx *fx)
{
    (void)fx;
    return 0;
}

/* All sides are here. */
void fx_set_node(uint32_t nid)
{
    (void)nid;
}

void fx_forget(struct fx *fx)
{
    (void)fx;
}

char *fx_report(struct fx *fx, unsigned type)
{
    (void)fx;
    (void)type;
    fx_needs_emunic();
    return NULL;
}

int fx_count_fds(struct fx *fx)
{
    (void)fx;
    fx_needs_emunic();
    return -1;
}

void *fx_map(struct fx_mapped *m, const struct fx *fx, uint32_t nid, uint32_t instance_id, size_t bytes)
{
    (void)m;
    (void)fx;
    (void)nid;
    (void)instance_id;
    (void)bytes;
    fx_needs_emunic();
    return NULL;
}

void fx_deregister_mapped(struct fx_mapped *m)
{
    (void)m;
}

void fx_unmap(struct fx_mapped *m)
{
    (void)m;
}
