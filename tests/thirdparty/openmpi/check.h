/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the MPI checks: patterns, the first difference, what must have crossed the network.
 *
 * Every byte is a function of a stream number and its position, so data that is lost, repeated, shifted or another
 * message's is seen. A wrong byte ends the job with one line. At the end rank 0 prints
 *
 *     NAME: ok, BYTES bytes between ranks
 *
 * BYTES counts only what has to move from one rank to another whatever the algorithm; run_case.sh compares it with
 * the counters of the emulated NIC.
 */
#ifndef TESTS_THIRDPARTY_OPENMPI_CHECK_H
#define TESTS_THIRDPARTY_OPENMPI_CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN_MAX ((size_t)16 << 20)

static int my_rank;
static int n_ranks;
static const char *check_name;
static uint64_t crossed_bytes; /* of this rank: received from others, at least */

static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "%s: rank %d: %s\n", check_name, my_rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

/* Eight bytes of a stream. */
static inline uint64_t pattern(uint64_t stream, size_t word)
{
    return (stream + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)word * 0x0101010101010101ull;
}

static inline void fill(void *mem, size_t len, uint64_t stream)
{
    unsigned char *p = mem;
    size_t at = 0;

    for (uint64_t value; at + 8 <= len; at += 8) {
        value = pattern(stream, at / 8);
        memcpy(p + at, &value, 8);
    }
    if (at < len) {
        uint64_t value = pattern(stream, at / 8);

        memcpy(p + at, &value, len - at);
    }
}

static inline void verify(const void *mem, size_t len, uint64_t stream, const char *what)
{
    const unsigned char *p = mem;

    for (size_t at = 0; at < len; at += 8) {
        uint64_t value = pattern(stream, at / 8);

        if (memcmp(p + at, &value, len - at < 8 ? len - at : 8) != 0)
            fail("%s: %zu bytes, stream %llu: wrong at %zu", what, len, (unsigned long long)stream, at);
    }
}

/* What surrounds a buffer must stay. */
#define GUARD 64

static inline void guard(unsigned char *mem, size_t len)
{
    memset(mem - GUARD, 0xa5, GUARD);
    memset(mem + len, 0xa5, GUARD);
}

static inline void check_guard(const unsigned char *mem, size_t len, const char *what)
{
    for (size_t i = 0; i < GUARD; i++) {
        if (mem[-1 - (ptrdiff_t)i] != 0xa5 || mem[len + i] != 0xa5)
            fail("%s: %zu bytes: written outside the buffer", what, len);
    }
}

static inline void *get_memory(size_t len)
{
    void *mem = malloc(len);

    if (!mem)
        fail("no memory for %zu bytes", len);
    return mem;
}

static inline void check_begin(int *argc, char ***argv, const char *name, int threads)
{
    int provided;

    check_name = name;
    MPI_Init_thread(argc, argv, threads, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (provided < threads)
        fail("thread level %d instead of %d", provided, threads);
    if (n_ranks < 2)
        fail("wants at least two ranks");
}

static inline int check_end(void)
{
    uint64_t all = 0;

    MPI_Reduce(&crossed_bytes, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (my_rank == 0)
        printf("%s: ok, %llu bytes between ranks\n", check_name, (unsigned long long)all);
    MPI_Finalize();
    return 0;
}

#endif
