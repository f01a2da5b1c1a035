/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting another program: it must not inherit the trap of the time-stamp counter (counter.c). A child of vfork() has
 * the trap of its own, so taking it away there does not touch the parent.
 */
#include <alloca.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi-shim/clock/src/counter.h"
#include "mpi-shim/clock/src/program_clock.h"

/* ---- exec ---- */

enum how { BY_PATH, BY_SEARCH };

static int execute(enum how how, const char *file, char *const argv[], char *const envp[])
{
    static void *found[2];
    const char *name = how == BY_PATH ? "execve" : "execvpe";
    __typeof__(execve) *next = (__typeof__(execve) *)program_clock_next(&found[how], name);
    bool was_trapped = clock_counter_release();
    int r = next(file, argv, envp);

    clock_counter_trap(was_trapped);
    return r;
}

CLOCK_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    return execute(BY_PATH, path, argv, envp);
}

CLOCK_EXPORT int execv(const char *path, char *const argv[])
{
    return execute(BY_PATH, path, argv, environ);
}

CLOCK_EXPORT int execvp(const char *file, char *const argv[])
{
    return execute(BY_SEARCH, file, argv, environ);
}

CLOCK_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    return execute(BY_SEARCH, file, argv, envp);
}

CLOCK_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    static void *found;
    __typeof__(fexecve) *next = (__typeof__(fexecve) *)program_clock_next(&found, "fexecve");
    bool was_trapped = clock_counter_release();
    int r = next(fd, argv, envp);

    clock_counter_trap(was_trapped);
    return r;
}

/* The words of a list, up to its NULL. */
static size_t count_words(va_list list)
{
    size_t n = 1;

    while (va_arg(list, char *))
        n++;
    return n;
}

/* No memory of the heap: this may be a child of vfork(). */
static void take_words(char **words, const char *first, size_t n, va_list list)
{
    words[0] = (char *)first;
    for (size_t i = 1; i <= n; i++)
        words[i] = va_arg(list, char *);
}

CLOCK_EXPORT int execl(const char *path, const char *word, ...)
{
    va_list list;
    char **words;
    size_t n;

    va_start(list, word);
    n = count_words(list);
    va_end(list);
    words = alloca((n + 1) * sizeof(*words));
    va_start(list, word);
    take_words(words, word, n, list);
    va_end(list);
    return execute(BY_PATH, path, words, environ);
}

CLOCK_EXPORT int execlp(const char *file, const char *word, ...)
{
    va_list list;
    char **words;
    size_t n;

    va_start(list, word);
    n = count_words(list);
    va_end(list);
    words = alloca((n + 1) * sizeof(*words));
    va_start(list, word);
    take_words(words, word, n, list);
    va_end(list);
    return execute(BY_SEARCH, file, words, environ);
}

CLOCK_EXPORT int execle(const char *path, const char *word, ...)
{
    va_list list;
    char **words;
    char *const *envp;
    size_t n;

    va_start(list, word);
    n = count_words(list);
    va_end(list);
    words = alloca((n + 1) * sizeof(*words));
    va_start(list, word);
    take_words(words, word, n, list);
    envp = va_arg(list, char *const *);
    va_end(list);
    return execute(BY_PATH, path, words, envp);
}

/* ---- spawn ---- */

CLOCK_EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
                             const posix_spawn_file_actions_t *restrict actions,
                             const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                             char *const envp[restrict])
{
    static void *found;
    __typeof__(posix_spawn) *next =
        (__typeof__(posix_spawn) *)program_clock_next_version(&found, "posix_spawn", "GLIBC_2.15");
    bool was_trapped = clock_counter_release();
    int r = next(pid, path, actions, attributes, argv, envp);

    clock_counter_trap(was_trapped);
    return r;
}

CLOCK_EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                              const posix_spawn_file_actions_t *restrict actions,
                              const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                              char *const envp[restrict])
{
    static void *found;
    __typeof__(posix_spawnp) *next =
        (__typeof__(posix_spawnp) *)program_clock_next_version(&found, "posix_spawnp", "GLIBC_2.15");
    bool was_trapped = clock_counter_release();
    int r = next(pid, file, actions, attributes, argv, envp);

    clock_counter_trap(was_trapped);
    return r;
}

CLOCK_EXPORT int system(const char *command)
{
    static void *found;
    __typeof__(system) *next = (__typeof__(system) *)program_clock_next(&found, "system");
    bool was_trapped = clock_counter_release();
    int r = next(command);

    clock_counter_trap(was_trapped);
    return r;
}

CLOCK_EXPORT FILE *popen(const char *command, const char *mode)
{
    static void *found;
    __typeof__(popen) *next = (__typeof__(popen) *)program_clock_next(&found, "popen");
    bool was_trapped = clock_counter_release();
    FILE *stream = next(command, mode);

    clock_counter_trap(was_trapped);
    return stream;
}
