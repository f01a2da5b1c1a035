/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child that is led instruction by instruction (ptrace) and killed where the test wants it.
 *
 * The child calls trace_here() at the place where the leading begins and again where it ends; between the two the
 * parent, always with the same thread, calls trace_step() as often as it likes. A child that is led ends with its
 * parent.
 */
#ifndef TESTS_COMMON_TRACE_H
#define TESTS_COMMON_TRACE_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: stops here until the parent goes on. */
static inline void trace_here(void)
{
    static bool is_traced;

    if (!is_traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(99);
    is_traced = true;
    raise(SIGSTOP);
}

/* Waits until the child is at its first trace_here(). False: it has ended, or may not be led. */
static inline bool trace_begin(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP &&
           ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(long)PTRACE_O_EXITKILL) == 0;
}

/* One instruction, or one system call. False: the child is at its next trace_here(), or has ended. */
static inline bool trace_step(pid_t pid)
{
    int status = 0;

    if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

/* Lets the child run to its next trace_here(). */
static inline bool trace_run(pid_t pid)
{
    int status = 0;

    if (ptrace(PTRACE_CONT, pid, NULL, NULL) < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
}

/* Ends a child that is stopped, where it is. True: it died of that. */
static inline bool trace_kill(pid_t pid)
{
    int status = 0;

    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* A word of the child's memory; 0 if it cannot be read. */
static inline uint64_t trace_peek(pid_t pid, uint64_t addr)
{
    uint64_t word = 0;
    struct iovec here = { &word, sizeof(word) };
    struct iovec there = { (void *)(uintptr_t)addr, sizeof(word) };

    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(word) ? word : 0;
}

/* May this process lead its children at all? (Containers and hardened kernels forbid it.) */
static inline bool trace_is_permitted(void)
{
    bool may;
    pid_t pid = fork();

    if (pid < 0)
        return false;
    if (pid == 0) {
        trace_here();
        trace_here();
        _exit(0);
    }
    may = trace_begin(pid) && trace_step(pid);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return may;
}

#endif
