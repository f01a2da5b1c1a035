/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the first thread of MPI_Init starts, the process is registered for the kernel's barriers.
 *
 * A thread that registers later waits 10 ms and more for each of two barriers. The program's pthread_create() comes
 * before that of libc.
 */
#include <dlfcn.h>
#include <linux/membarrier.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int n_threads;
static int is_early;

static int is_registered(void)
{
    /* The kernel refuses the barrier to whoever has not registered. */
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                                          void *(*start)(void *), void *arg)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (!next)
        next =
            (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    if (n_threads++ == 0)
        is_early = is_registered();
    return next(thread, attr, start, arg);
}

int main(int argc, char **argv)
{
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    MPI_Init(&argc, &argv);
    MPI_Finalize();
    if (known < 0 || (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return 77;
    if (n_threads == 0)
        fprintf(stderr, "MPI_Init has started no thread\n");
    else if (!is_early)
        fprintf(stderr, "not registered when MPI_Init starts a thread\n");
    return n_threads > 0 && is_early ? 0 : 1;
}
