/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libemunic-mpirun, which `emunic run` puts before the libc of mpirun: the children of mpirun close at once what they
 * must not hand on.
 *
 * Open MPI reads /proc/self/fd in each child and closes what it finds. mpirun has two descriptors open for each rank
 * that it has started, and the kernel makes an entry for each name that is read and throws all away when the child
 * ends. So the cost of a start grew with the square of the ranks, and was most of it from 256 on. Here the kernel is
 * asked to close all of them at exec, and the child reads a folder whose names are not those of descriptors.
 *
 * mpirun itself reads its own descriptors. Where the kernel refuses (before Linux 5.11), all goes on as without us.
 * The ranks are not loaded with this: the library takes its name, the last one, out of LD_PRELOAD.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

#define DESCRIPTORS "/proc/self/fd"
#define NO_NUMBERS  "/"
#define PRELOAD     "LD_PRELOAD"

static DIR *(*real_opendir)(const char *name);
static pid_t mpirun;

static void forget_ourselves(void)
{
    char *list = getenv(PRELOAD);
    char *own = list ? strrchr(list, ':') : NULL;

    if (own)
        *own = '\0'; /* the list is in the environment */
    else
        unsetenv(PRELOAD);
}

__attribute__((constructor)) static void load(void)
{
    real_opendir = dlsym(RTLD_NEXT, "opendir");
    mpirun = getpid();
    forget_ourselves();
}

__attribute__((visibility("default"))) DIR *opendir(const char *name)
{
    if (getpid() != mpirun && strcmp(name, DESCRIPTORS) == 0 &&
        syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        name = NO_NUMBERS;
    return real_opendir(name);
}
