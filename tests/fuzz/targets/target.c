/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/targets/target.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "emunic/base/log.h"

static unsigned long long n_taken, n_refused;

static void tell(void)
{
    printf("taken %llu, refused %llu\n", n_taken, n_refused);
    fflush(stdout);
}

/*
 * The limit of one input is processor time: on a busy machine an input of a second may take minutes of the wall clock,
 * which is what libFuzzer's own -timeout counts. SIGPROF comes after each PART of the limit.
 */
#define LIMIT_SECONDS 60
#define LIMIT_PARTS   6

static volatile unsigned long long n_inputs;

/* The linker gives each input to the first, which gives it to the target's own function (--wrap, meson.build). */
int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __real_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    n_inputs++;
    return __real_LLVMFuzzerTestOneInput(data, size);
}

static void on_part(int signal)
{
    static const char why[] = "not so: an input ends within its limit of processor time\n";
    static unsigned long long of_input;
    static unsigned n_parts;

    (void)signal;
    n_parts = n_inputs == of_input ? n_parts + 1 : 0;
    of_input = n_inputs;
    if (n_parts < LIMIT_PARTS || of_input == 0)
        return;
    (void)!write(STDERR_FILENO, why, sizeof(why) - 1);
    abort();
}

static int limit_input(void)
{
    const char *own = getenv("FUZZ_INPUT_SECONDS");
    long us = (own ? atol(own) : LIMIT_SECONDS) * 1000000 / LIMIT_PARTS;
    struct timeval part = { us / 1000000, us % 1000000 };
    struct itimerval timer = { part, part };
    struct sigaction action = { .sa_handler = on_part, .sa_flags = SA_RESTART };

    return sigaction(SIGPROF, &action, NULL) == 0 ? setitimer(ITIMER_PROF, &timer, NULL) : -1;
}

/* Before the first input. A target that has more to do calls this by another name of its own. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("EMUNIC_LOG", "none", 1);
    emu_log_init("fuzz", EMU_LOG_NONE);
    fuzz_require(limit_input() == 0, "the limit of an input is set");
    return atexit(tell);
}

void fuzz_count(bool is_taken)
{
    if (is_taken)
        n_taken++;
    else
        n_refused++;
}

void fuzz_require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    fuzz_require(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size, "a file is written");
    return path;
}

void fuzz_require_line(const char *text, size_t size)
{
    const char *end = memchr(text, '\0', size);

    fuzz_require(end && end != text, "a refusal says why");
    for (const char *c = text; c < end; c++)
        fuzz_require((unsigned char)*c >= ' ' && *c != 127, "a refusal is one plain line");
}

void fuzz_read(const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)((const volatile uint8_t *)bytes)[i];
}

void fuzz_take(struct fuzz_bytes *bytes, void *to, size_t n)
{
    size_t there = n < bytes->left ? n : bytes->left;

    memset(to, 0, n);
    if (there > 0)
        memcpy(to, bytes->at, there);
    bytes->at += there;
    bytes->left -= there;
}

uint8_t fuzz_u8(struct fuzz_bytes *bytes)
{
    uint8_t v;

    fuzz_take(bytes, &v, sizeof(v));
    return v;
}

uint16_t fuzz_u16(struct fuzz_bytes *bytes)
{
    uint16_t v;

    fuzz_take(bytes, &v, sizeof(v));
    return v;
}

uint32_t fuzz_u32(struct fuzz_bytes *bytes)
{
    uint32_t v;

    fuzz_take(bytes, &v, sizeof(v));
    return v;
}

uint64_t fuzz_u64(struct fuzz_bytes *bytes)
{
    uint64_t v;

    fuzz_take(bytes, &v, sizeof(v));
    return v;
}
