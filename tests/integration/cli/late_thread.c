/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that is slow to begin. The main thread attaches behind another thread, creates the slow one, and polls in
 * vain until it has polled often enough; prints for how long, by its own clock and by the host's, in nanoseconds.
 *
 * For one rank.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "examples/common.h"

#define POLLS 18 /* waits of 1 us, 2 us and so on */

static struct ex_job job;
static int pipe_fds[2];

static void *attach_first(void *arg)
{
    (void)arg;
    ex_start(&job, 0);
    return NULL;
}

/* Makes no call of an API library, and waits where virtual time does not. */
static void *be_slow(void *arg)
{
    char byte;

    (void)arg;
    EX_EXPECT(read(pipe_fds[0], &byte, 1) == 1, "nothing to read");
    return NULL;
}

static int64_t ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static int64_t own_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return ns_of(&t);
}

static int64_t host_ns(void)
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return ns_of(&t);
}

static gni_nic_handle_t attach_second(gni_cdm_handle_t *cdm_out)
{
    gni_nic_handle_t nic;
    uint32_t address;

    EX_GNI(GNI_CdmCreate(1, (uint8_t)atoi(getenv("PMI_GNI_PTAG")), (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 0),
                         GNI_CDM_MODE_ERR_NO_KILL, cdm_out));
    EX_GNI(GNI_CdmAttach(*cdm_out, 0, &address, &nic));
    return nic;
}

static void join(pthread_t thread)
{
    EX_EXPECT(pthread_join(thread, NULL) == 0, "a thread that cannot be joined");
}

int main(void)
{
    pthread_t first, slow;
    gni_cdm_handle_t cdm;
    gni_cq_handle_t cq;
    gni_cq_entry_t entry;
    int64_t own_began_ns, host_began_ns;

    EX_EXPECT(pipe(pipe_fds) == 0 && pthread_create(&first, NULL, attach_first, NULL) == 0, "no pipe, or no thread");
    join(first);
    EX_GNI(GNI_CqCreate(attach_second(&cdm), 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
    own_began_ns = own_ns();
    host_began_ns = host_ns();
    EX_EXPECT(pthread_create(&slow, NULL, be_slow, NULL) == 0, "no thread");
    for (int i = 0; i < POLLS; i++)
        EX_EXPECT(GNI_CqGetEvent(cq, &entry) == GNI_RC_NOT_DONE, "an event that nobody has caused");
    printf("%lld %lld\n", (long long)(own_ns() - own_began_ns), (long long)(host_ns() - host_began_ns));
    EX_EXPECT(write(pipe_fds[1], "", 1) == 1, "a pipe that takes nothing");
    join(slow);
    EX_GNI(GNI_CqDestroy(cq));
    EX_GNI(GNI_CdmDestroy(cdm));
    ex_stop(&job);
    return EXIT_SUCCESS;
}
