/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code that comes later: libraries that the program loads, memory that it makes executable. It may read the time-stamp
 * counter (counter.c).
 *
 * The loader looks for a library where its caller's file says. So dlopen() and dlmopen() are jumped to, and return to
 * the caller by themselves. Nothing is noted behind them.
 *
 * The functions of memory are system calls here. To ask the loader for libc's takes its lock, which a thread may hold
 * that waits in turn for the calling one: a process that watches its own memory (userfaultfd) has such threads.
 */
#undef _FILE_OFFSET_BITS /* or mmap() were mmap64() */
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi-shim/clock/src/counter.h"
#include "mpi-shim/clock/src/program_clock.h"

#ifdef __x86_64__

/* What to jump to. Called by the functions below. */
__attribute__((used)) void *clock_loads_next(int is_dlmopen);

__attribute__((used)) void *clock_loads_next(int is_dlmopen)
{
    static void *found[2];

    clock_counter_note_load();
    return program_clock_next(&found[is_dlmopen], is_dlmopen ? "dlmopen" : "dlopen");
}

/* The arguments stay where they are, and so does the address to return to. */
#define JUMP(name, is_dlmopen)                                                                                         \
    __asm__(".text\n"                                                                                                  \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", @function\n" #name ":\n"                                                                 \
            "    .cfi_startproc\n"                                                                                     \
            "    endbr64\n"                                                                                            \
            "    push %rdi\n"                                                                                          \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    push %rsi\n"                                                                                          \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    push %rdx\n"                                                                                          \
            "    .cfi_adjust_cfa_offset 8\n"                                                                           \
            "    mov $" #is_dlmopen ", %edi\n"                                                                         \
            "    call clock_loads_next\n"                                                                              \
            "    pop %rdx\n"                                                                                           \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    pop %rsi\n"                                                                                           \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    pop %rdi\n"                                                                                           \
            "    .cfi_adjust_cfa_offset -8\n"                                                                          \
            "    jmp *%rax\n"                                                                                          \
            "    .cfi_endproc\n"                                                                                       \
            ".size " #name ", . - " #name "\n")

JUMP(dlopen, 0);
JUMP(dlmopen, 1);

#endif

/* Of the program, not of the runtime, which patches libc's functions. */
static void note_rights(const void *caller, int rights)
{
    if ((rights & PROT_EXEC) != 0 && !program_clock_is_of_runtime(caller))
        clock_counter_note_code();
}

#define MAP(name)                                                                                                      \
    CLOCK_EXPORT void *name(void *at, size_t length, int rights, int flags, int fd, off_t offset)                      \
    {                                                                                                                  \
        note_rights(CLOCK_CALLER, rights);                                                                             \
        return (void *)syscall(SYS_mmap, at, length, rights, flags, fd, offset);                                       \
    }

MAP(mmap)
MAP(mmap64)

CLOCK_EXPORT int mprotect(void *at, size_t length, int rights)
{
    note_rights(CLOCK_CALLER, rights);
    return (int)syscall(SYS_mprotect, at, length, rights);
}

CLOCK_EXPORT int pkey_mprotect(void *at, size_t length, int rights, int key)
{
    note_rights(CLOCK_CALLER, rights);
    return (int)(key == -1 ? syscall(SYS_mprotect, at, length, rights) :
                             syscall(SYS_pkey_mprotect, at, length, rights, key));
}
