/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors and checks.
 *
 * OpenSHMEM leaves misuse undefined. Here an address that is not symmetric and a PE that is not there always end the
 * job with a message, because they cannot be carried out; the other checks are made with SMA_DEBUG=1.
 */
#include "mpi-shim/shmem/src/sma.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <pmi.h>

/* A death is known here by a request that failed, which may be earlier than the launcher has it from the kernel. */
#define LAUNCHER_S 1

static void end_job(const char *call, const char *format, va_list args) __attribute__((noreturn, format(printf, 2, 0)));

static void end_job(const char *call, const char *format, va_list args)
{
    char what[256];
    char line[400];

    vsnprintf(what, sizeof(what), format, args);
    snprintf(line, sizeof(line), "PE %d: %s: %s", smai.pe, call, what);
    fflush(NULL);
    PMI_Abort(1, line);
    _exit(1);
}

void smai_fail(const char *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    end_job(call, format, args);
    va_end(args);
}

void smai_fail_lost(const char *call, const char *format, ...)
{
    va_list args;

    /* Of the host: nanosleep() would be over at once in virtual time. */
    (void)syscall(SYS_nanosleep, &(struct timespec){ .tv_sec = LAUNCHER_S }, NULL);
    va_start(args, format);
    end_job(call, format, args);
    va_end(args);
}

static bool is_inside(uint64_t at, uint64_t len_bytes, uint64_t first, uint64_t bytes)
{
    return at - first < bytes && len_bytes <= bytes - (at - first);
}

/* NULL: neither. */
static dmapp_seg_desc_t *segment_of(const volatile void *at, uint64_t len_bytes)
{
    uint64_t addr = (uint64_t)(uintptr_t)at;

    if (is_inside(addr, len_bytes, smai.heap, smai.heap_bytes))
        return &smai.heap_seg;
    return is_inside(addr, len_bytes, smai.data, smai.data_bytes) ? &smai.data_seg : NULL;
}

dmapp_seg_desc_t *smai_check(struct smai_remote r, int pe, uint64_t len_bytes)
{
    dmapp_seg_desc_t *seg;

    if (!smai.is_up)
        smai_fail(r.call, "not initialised");
    if (pe < 0 || pe >= smai.npes)
        smai_fail(r.call, "PE %d: there is none", r.pe);
    seg = segment_of(r.at, len_bytes);
    if (!seg && len_bytes > 0)
        smai_fail(r.call, "address %p, %llu bytes: not symmetric", r.at, (unsigned long long)len_bytes);
    return seg;
}

void smai_check_symmetric(const char *call, const char *argument, const volatile void *at, uint64_t len_bytes)
{
    if (!smai.is_up)
        smai_fail(call, "not initialised");
    if (len_bytes > 0 && !segment_of(at, len_bytes))
        smai_fail(call, "%s %p, %llu bytes: not symmetric", argument, (const void *)at, (unsigned long long)len_bytes);
}

void smai_check_blocks(const struct smai_blocks *b, size_t n_dest, size_t n_source)
{
    uint64_t dest_bytes;
    uint64_t source_bytes;

    if (__builtin_mul_overflow(n_dest, b->elem_bytes, &dest_bytes) ||
        __builtin_mul_overflow(n_source, b->elem_bytes, &source_bytes))
        smai_fail(b->call, "%zu elements are too many", b->nelems);
    if (!smai.is_checked)
        return;
    smai_check_symmetric(b->call, "dest", b->dest, dest_bytes);
    smai_check_symmetric(b->call, "source", b->source, source_bytes);
}
