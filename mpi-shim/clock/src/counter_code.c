/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is there code that reads the time-stamp counter?
 *
 * The bytes of the instruction stand in most programs, mostly inside of others: about once in 64 KiB of code. So the
 * function around them is decoded from its begin, which the tables for exceptions tell, and only an instruction that
 * begins there, prefixes apart, counts. Where no table tells the begin, where the bytes before cannot be decoded, and
 * where memory may be executed that is of no loaded file, the answer is yes.
 *
 * No heap, and of libc only what a signal's handler may call beside dl_iterate_phdr(): the thread may be in one.
 *
 * A function that has data between its instructions may be decoded wrongly. Assemblers' programs alone are so.
 */
#include "mpi-shim/clock/src/counter_code.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi-shim/clock/src/counter.h"
#include "mpi-shim/clock/src/program_clock.h"

#define PAGE_BYTES     4096u
#define SEGMENTS_MAX   256u
#define LINE_MAX_BYTES 4608u /* numbers and a path */

/* Of libgcc: the entry for a place, and where its function begins. */
struct dwarf_eh_bases {
    void *text;
    void *data;
    void *function;
};
extern const void *_Unwind_Find_FDE(const void *at, struct dwarf_eh_bases *bases_out);

/* ---- one place ---- */

/* The bytes stand at `at`. Is that an instruction which reads the counter? */
static bool is_read(const ZydisDecoder *decoder, uintptr_t at, uintptr_t end)
{
    struct dwarf_eh_bases bases;
    ZydisDecodedInstruction instruction;
    uintptr_t place;

    if (!_Unwind_Find_FDE((const void *)at, &bases))
        return true;
    for (place = (uintptr_t)bases.function; place <= at; place += instruction.length) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, (const void *)place, end - place, &instruction)))
            return true;
        if (at < place + instruction.length)
            return instruction.mnemonic == ZYDIS_MNEMONIC_RDTSC || instruction.mnemonic == ZYDIS_MNEMONIC_RDTSCP;
    }
    return true; /* behind the place: its table is wrong */
}

static bool is_found(const ZydisDecoder *decoder, uintptr_t first, uintptr_t end, const char *bytes, size_t n)
{
    const char *at = (const char *)first;

    while ((at = memmem(at, end - (uintptr_t)at, bytes, n))) {
        if (is_read(decoder, (uintptr_t)at, end))
            return true;
        at++;
    }
    return false;
}

bool clock_code_reads_counter_in(uintptr_t first, uintptr_t end)
{
    ZydisDecoder decoder;

    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return true;
    return is_found(&decoder, first, end, "\x0f\x31", 2) || is_found(&decoder, first, end, "\x0f\x01\xf9", 3);
}

/* ---- the process ---- */

struct segment {
    uintptr_t first;
    uintptr_t end;
};

struct search {
    struct segment segments[SEGMENTS_MAX]; /* of loaded files, to whole pages */
    size_t n_segments;
    bool has_found;
};

/* Of this library, or of one that reads the host's counter. */
static bool is_passed_over(const struct segment *s)
{
    uintptr_t here = (uintptr_t)&clock_code_reads_counter;

    return (here >= s->first && here < s->end) || clock_counter_is_of_host(s->first) ||
           program_clock_is_of_runtime((const void *)s->first);
}

/* The loader lets nobody load or unload meanwhile. */
static int search_file(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        struct segment s = { .first = info->dlpi_addr + part->p_vaddr };

        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
            continue;
        s.end = s.first + part->p_memsz;
        if (search->n_segments == SEGMENTS_MAX || (part->p_flags & PF_W) || (part->p_flags & PF_R) == 0 ||
            (!is_passed_over(&s) && clock_code_reads_counter_in(s.first, s.end))) {
            search->has_found = true;
            return 1;
        }
        s.first &= ~(uintptr_t)(PAGE_BYTES - 1);
        s.end = (s.end + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
        search->segments[search->n_segments++] = s;
    }
    return 0;
}

static bool is_of_file(const struct search *search, uintptr_t first, uintptr_t end)
{
    for (size_t i = 0; i < search->n_segments; i++) {
        if (first >= search->segments[i].first && end <= search->segments[i].end)
            return true;
    }
    return clock_counter_is_of_host(first);
}

/* A line of /proc/self/maps: "first-end rights ...". */
static bool is_other_code(const struct search *search, const char *line)
{
    char *at;
    uintptr_t first = strtoul(line, &at, 16);
    uintptr_t end = *at == '-' ? strtoul(at + 1, &at, 16) : 0;

    if (*at != ' ' || strnlen(at, 5) < 5)
        return true;
    if (at[3] != 'x' || strstr(at, "[vsyscall]"))
        return false;
    return at[2] == 'w' || !is_of_file(search, first, end);
}

/* What may be executed and is of no loaded file: made by a compiler at run time, say. */
static bool has_other_code(const struct search *search)
{
    char lines[LINE_MAX_BYTES + 1];
    size_t n_bytes = 0;
    bool has_found = false;
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

    while (!has_found) {
        long n = fd < 0 ? -1 : syscall(SYS_read, fd, lines + n_bytes, LINE_MAX_BYTES - n_bytes);
        char *line = lines, *end;

        if (n == 0)
            break;
        has_found = n < 0;
        n_bytes += n > 0 ? (size_t)n : 0;
        lines[n_bytes] = '\0';
        for (; !has_found && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            has_found = is_other_code(search, line);
        }
        n_bytes -= (size_t)(line - lines);
        memmove(lines, line, n_bytes);
        has_found = has_found || n_bytes == LINE_MAX_BYTES; /* a line without an end */
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    return has_found;
}

bool clock_code_reads_counter(void)
{
    struct search search = { .n_segments = 0 };
    int error = errno;
    bool reads;

    dl_iterate_phdr(search_file, &search);
    reads = search.has_found || has_other_code(&search);
    errno = error;
    return reads;
}
