/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bare system calls: the names mmap() and munmap() may be a communication library's, which would look through its cache
 * of registrations. The thread sanitizer has to see them: else what one thread did to pages that it gave back seems to
 * race with another thread that was given the same place.
 */
#include "emunic/engine/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
#define MAP(bytes, protection, flags) ((intptr_t)mmap(NULL, (bytes), (protection), (flags), -1, 0))
#define UNMAP(pages, bytes)           munmap((pages), (bytes))
#else
#define MAP(bytes, protection, flags) syscall(SYS_mmap, NULL, (bytes), (protection), (flags), -1, 0)
#define UNMAP(pages, bytes)           syscall(SYS_munmap, (pages), (bytes))
#endif

/* Of the leak sanitizer, in programs that have it: pointers to the heap live in these pages. */
void __lsan_register_root_region(const void *begin, size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *begin, size_t bytes) __attribute__((weak));

void *emu_pages_take(size_t bytes)
{
    intptr_t r = MAP(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);

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
    UNMAP(pages, bytes);
}
