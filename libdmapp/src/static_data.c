/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data segment: the writable part of the executable as its program headers tell it, without what the loader makes
 * read-only after relocation.
 *
 *        p_vaddr      relro end                  p_filesz         p_memsz
 *   file    | read-only   | .data                   | .bss            |
 *                         [ data segment .......................... )
 *
 * When it is registered its pages are moved to where peers map them, as all registered memory is
 * (emunic/client/space.c). Other threads are stopped meanwhile by write protection that the kernel has for
 * anonymous pages only, and the pages of .data are private ones of a file. So they become anonymous before main(),
 * while there are no other threads: copied, and the copy put in their place in one step. What is larger than
 * registration would move is left alone.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "libdmapp/src/segments.h"

#define MOVED_MAX (64ull << 20) /* EMUNIC_ADOPT_LIMIT's default */

struct data_range {
    uint64_t first;
    uint64_t file_end; /* of the part that comes from the file */
    uint64_t end;
    bool is_found;
};

/* dl_iterate_phdr() shows the executable first. */
static int look_at_executable(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct data_range *range = arg;
    uint64_t relro_end = 0;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t first = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_GNU_RELRO)
            relro_end = emu_page_down(first + p->p_memsz);
        if (p->p_type != PT_LOAD || (p->p_flags & PF_W) == 0 || p->p_memsz == 0)
            continue;
        if (!range->is_found || first < range->first)
            range->first = first;
        if (first + p->p_memsz > range->end) {
            range->end = first + p->p_memsz;
            range->file_end = first + p->p_filesz;
        }
        range->is_found = true;
    }
    if (relro_end > range->first && relro_end < range->end)
        range->first = relro_end;
    return 1;
}

int dmappi_find_data(uint64_t *addr_out, uint64_t *len_bytes_out)
{
    struct data_range range = { 0 };

    dl_iterate_phdr(look_at_executable, &range);
    if (!range.is_found || range.first >= range.end)
        return -ENOENT;
    *addr_out = range.first;
    *len_bytes_out = range.end - range.first;
    return 0;
}

static bool is_alone(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/* Whole pages, red zones of sanitizers among them: no function of libc would do. */
static void copy_pages(void *to, const void *from, uint64_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* Bare system calls, because nothing but the stack may be written between the copy and the step that makes it count. */
static void replace_pages(uint64_t first, uint64_t bytes)
{
    void *copy = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return;
    copy_pages(copy, (const void *)(uintptr_t)first, bytes);
    if ((void *)syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, first) == MAP_FAILED)
        syscall(SYS_munmap, copy, bytes);
}

static __attribute__((constructor)) void make_data_anonymous(void)
{
    struct data_range range = { 0 };
    sigset_t all;
    sigset_t old;
    uint64_t first;
    uint64_t end;

    dl_iterate_phdr(look_at_executable, &range);
    first = emu_page_down(range.first);
    end = emu_page_up(range.file_end);
    if (!range.is_found || end <= first || end - first > MOVED_MAX || !is_alone())
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    replace_pages(first, end - first);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
