/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What /proc tells about a process, and waiting for something to become true.
 */
#ifndef TESTS_COMMON_PROC_H
#define TESTS_COMMON_PROC_H

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "emunic/base/clock.h"

/* Open descriptors of what has `word` in its name, or -1. */
static inline int proc_count_fds_of(pid_t pid, const char *word)
{
    char path[64];
    char name[512];
    DIR *dir;
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    if (!dir)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir));) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, name, sizeof(name) - 1);

        if (length > 0) {
            name[length] = '\0';
            n += strstr(name, word) != NULL;
        }
    }
    closedir(dir);
    return n;
}

/* Open descriptors, or -1. */
static inline int proc_count_fds(pid_t pid)
{
    return proc_count_fds_of(pid, "");
}

/* Mappings of memfds, or -1. */
static inline int proc_count_memfd_maps(pid_t pid)
{
    char line[512];
    FILE *file;
    int n = 0;

    snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
    file = fopen(line, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        n += strstr(line, "/memfd:") != NULL;
    fclose(file);
    return n;
}

/* Of its main thread; 0: it has none. */
static inline pid_t proc_first_child(pid_t parent)
{
    int child = 0;
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    file = fopen(path, "r");
    if (!file || fscanf(file, "%d", &child) != 1)
        child = 0;
    if (file)
        fclose(file);
    return child;
}

/* Does that thread sleep in the kernel? (State S of its stat line; its name may hold anything.) */
static inline bool proc_is_asleep(pid_t tid)
{
    char line[512];
    const char *at;
    FILE *file;

    snprintf(line, sizeof(line), "/proc/self/task/%d/stat", (int)tid);
    file = fopen(line, "re");
    if (!file)
        return false;
    line[fread(line, 1, sizeof(line) - 1, file)] = '\0';
    fclose(file);
    at = strrchr(line, ')');
    return at && strncmp(at, ") S", 3) == 0;
}

/* Looks again and again, giving the processor away, until `is_true`. False after `patience_ns`. */
static inline bool eventually(bool (*is_true)(void *arg), void *arg, uint64_t patience_ns)
{
    uint64_t end_ns = emu_clock_ns() + patience_ns;

    while (!is_true(arg)) {
        if (emu_clock_ns() > end_ns)
            return false;
        sched_yield();
    }
    return true;
}

#endif
