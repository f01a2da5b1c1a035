/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that does not read the time-stamp counter, until it loads a library that may, or makes memory executable.
 * Prints whether its reads are trapped: before, behind that, behind the next request; and by how much the counter went
 * on in a second's sleep, if the library reads it.
 *
 *   counter_load [LIBRARY]      which the program's own search path has
 *
 * For one rank.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "examples/common.h"

static const char *state(void)
{
    int now = PR_TSC_ENABLE;

    prctl(PR_GET_TSC, &now);
    return now == PR_TSC_SIGSEGV ? "trapped" : "free";
}

static void poll_once(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;

    for (int i = 0; i < 3; i++)
        EX_EXPECT(GNI_CqGetEvent(cq, &entry) == GNI_RC_NOT_DONE, "an event that nobody has caused");
}

/* How far the counter goes in a second's sleep. 0: the library does not read it. */
static uint64_t count_second(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);
    uint64_t (*read_counter)(void);
    uint64_t before;

    EX_EXPECT(library != NULL, "%s", dlerror());
    printf(" %s", state());
    *(void **)&read_counter = dlsym(library, "read_counter");
    if (!read_counter)
        return 0;
    before = read_counter();
    sleep(1);
    return read_counter() - before;
}

static void make_code(void)
{
    EX_EXPECT(mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "no memory");
    printf(" %s", state());
}

int main(int argc, char **argv)
{
    struct ex_job job;
    gni_cq_handle_t cq;
    uint64_t counted = 0;

    ex_start(&job, 0);
    EX_GNI(GNI_CqCreate(job.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
    poll_once(cq);
    printf("%s", state());
    if (argc > 1)
        counted = count_second(argv[1]);
    else
        make_code();
    poll_once(cq);
    printf(" %s %llu\n", state(), (unsigned long long)counted);
    EX_GNI(GNI_CqDestroy(cq));
    ex_stop(&job);
    return EXIT_SUCCESS;
}
