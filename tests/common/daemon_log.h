/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The warnings and errors of the emunics that a test starts. Include after cmocka.h.
 *
 * They write to their standard error, which is this program's at their start: between begin and end of the capture it
 * is a file.
 */
#ifndef TESTS_COMMON_DAEMON_LOG_H
#define TESTS_COMMON_DAEMON_LOG_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct daemon_log {
    int fd;
    int own_stderr;
};

/* Emunics that are started from here on. */
static inline void daemon_log_begin(struct daemon_log *log)
{
    setenv("EMUNIC_LOG", "warn", 1);
    log->fd = memfd_create("log", MFD_CLOEXEC);
    log->own_stderr = dup(STDERR_FILENO);
    assert_true(log->fd >= 0 && log->own_stderr >= 0 && dup2(log->fd, STDERR_FILENO) >= 0);
}

/* And no others. */
static inline void daemon_log_end(const struct daemon_log *log)
{
    dup2(log->own_stderr, STDERR_FILENO);
}

static inline void daemon_log_close(const struct daemon_log *log)
{
    close(log->fd);
    close(log->own_stderr);
}

/* All so far, until the next call; the emunics' own place in the file stays. */
static inline char *daemon_log_text(const struct daemon_log *log)
{
    static char text[1 << 16];
    ssize_t n = pread(log->fd, text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

#endif
