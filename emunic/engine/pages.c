/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bare system calls: the names mmap() and munmap() may be a communication library's, which would look through its cache
 * of registrations.
 */
#include "emunic/engine/pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the leak sanitizer, in programs that have it: pointers to the heap live in these pages. */
void __lsan_register_root_region(const void *begin, size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *begin, size_t bytes) __attribute__((weak));

void *emu_pages_take(size_t bytes)
{
    long r = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (r == -1)
        return NULL;
    if (__lsan_register_root_region)
        __lsan_register_root_region((void *)r, bytes);
    return (void *)r;
}

void emu_pages_give(void *pages, size_t bytes)
{
    if (!pages)
        return;
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(pages, bytes);
    syscall(SYS_munmap, pages, bytes);
}
