/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a piece of code says on stderr.
 */
#ifndef TESTS_UNIT_EMUNIC_CAPTURE_H
#define TESTS_UNIT_EMUNIC_CAPTURE_H

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct capture {
    int file;
    int saved;
};

/* From now on stderr goes to memory. 0 or -1. */
static inline int capture_start(struct capture *c)
{
    c->file = memfd_create("stderr", MFD_CLOEXEC);
    c->saved = dup(STDERR_FILENO);
    if (c->file < 0 || c->saved < 0)
        return -1;
    /* A memfd's position is not locked against several writers; appending is. */
    return fcntl(c->file, F_SETFL, O_APPEND) < 0 || dup2(c->file, STDERR_FILENO) < 0 ? -1 : 0;
}

/* Puts stderr back; what was said is in `text`, cut to fit. Returns its full length. */
static inline size_t capture_end(struct capture *c, char *text, size_t text_bytes)
{
    off_t end = lseek(c->file, 0, SEEK_END);
    ssize_t got = pread(c->file, text, text_bytes - 1, 0);

    text[got < 0 ? 0 : got] = '\0';
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    close(c->file);
    return end < 0 ? 0 : (size_t)end;
}

static inline unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

#endif
