/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * O_NONBLOCK opens a pipe that nobody writes at once, so that there is something to look at. On a regular file it means
 * nothing.
 */
#include "emunic/base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int look(int fd, uint64_t max_bytes)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return -EINVAL;
    return (uint64_t)info.st_size > max_bytes ? -EFBIG : 0;
}

int emu_input_file_open(const char *path, uint64_t max_bytes, FILE **file_out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    FILE *file;
    int r;

    if (fd < 0)
        return -errno;
    r = look(fd, max_bytes);
    file = r == 0 ? fdopen(fd, "r") : NULL;
    if (!file) {
        r = r < 0 ? r : -errno;
        close(fd);
        return r;
    }
    *file_out = file;
    return 0;
}

const char *emu_input_file_reason(int error)
{
    switch (error) {
    case -EINVAL:
        return "not a regular file";
    case -EFBIG:
        return "too large";
    default:
        return strerror(-error);
    }
}
