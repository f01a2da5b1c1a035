/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /proc/cray_xt, cname and nid in it.
 *
 * Nobody can add to a file system of the kernel, and nothing can be mounted where there is no directory. So each call
 * is made as it was asked for, and only if the answer is that there is no such file is the path looked at. Every other
 * path costs nothing but that, bad pointers are the kernel's to judge, and on a machine that has the files they are the
 * machine's.
 *
 * An opened file is a memfd with the text, sealed. What asks about a path gets the answer for a file of procfs that is
 * as ours would be: readable by all, writable by nobody, without a length.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpi-shim/node/src/view.h"

#define FOLDER "/proc/cray_xt"

enum node_file {
    NODE_FILE_NONE,
    NODE_FILE_FOLDER,
    NODE_FILE_CNAME,
    NODE_FILE_NID,
};

static enum node_file find_file(const char *path)
{
    const struct node_view *view = node_view();

    if (strncmp(path, FOLDER, strlen(FOLDER)) != 0 || !view->has_nid)
        return NODE_FILE_NONE;
    path += strlen(FOLDER);
    if (path[0] == '\0' || strcmp(path, "/") == 0)
        return NODE_FILE_FOLDER;
    if (strcmp(path, "/nid") == 0)
        return NODE_FILE_NID;
    return strcmp(path, "/cname") == 0 && view->cname[0] ? NODE_FILE_CNAME : NODE_FILE_NONE;
}

/* ---- opening ---- */

/* As "%u\n", without stdio: open() may be called by a signal handler. */
static size_t print_nid(uint32_t nid, char text[NODE_CNAME_MAX])
{
    char digits[10];
    size_t n = 0;
    size_t len = 0;

    do {
        digits[n++] = (char)('0' + nid % 10);
        nid /= 10;
    } while (nid > 0);
    while (n > 0)
        text[len++] = digits[--n];
    text[len++] = '\n';
    return len;
}

static size_t print_file(enum node_file file, char text[NODE_CNAME_MAX + 1])
{
    const struct node_view *view = node_view();
    size_t len = strlen(view->cname);

    if (file == NODE_FILE_NID)
        return print_nid(view->nid, text);
    memcpy(text, view->cname, len);
    text[len] = '\n';
    return len + 1;
}

static int make_file(const char *text, size_t len, bool closes_on_exec)
{
    int fd = memfd_create("cray_xt", MFD_ALLOW_SEALING | (closes_on_exec ? MFD_CLOEXEC : 0u));
    int error;

    if (fd < 0)
        return -1;
    if (write(fd, text, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The kernel has said that there is no such path: so it is a string. errno is ENOENT, and stays if it is not ours. */
static int open_ours(const char *path, int flags)
{
    enum node_file file = find_file(path);
    char text[NODE_CNAME_MAX + 1];

    if (file == NODE_FILE_NONE || file == NODE_FILE_FOLDER)
        return -1;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC))
        errno = EACCES;
    else if (flags & O_DIRECTORY)
        errno = ENOTDIR;
    else
        return make_file(text, print_file(file, text), flags & O_CLOEXEC);
    return -1;
}

static bool takes_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static mode_t mode_of(int flags, va_list args)
{
    return takes_mode(flags) ? va_arg(args, mode_t) : 0;
}

static int open_real(int (*function)(const char *, int, ...), const char *path, int flags, mode_t mode)
{
    int fd = function(path, flags, mode);

    return fd >= 0 || errno != ENOENT ? fd : open_ours(path, flags);
}

static int openat_real(int (*function)(int, const char *, int, ...), int dir, const char *path, int flags, mode_t mode)
{
    int fd = function(dir, path, flags, mode);

    return fd >= 0 || errno != ENOENT ? fd : open_ours(path, flags);
}

NODE_EXPORT int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return open_real(node_real()->open, path, flags, mode);
}

NODE_EXPORT int open64(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return open_real(node_real()->open64, path, flags, mode);
}

NODE_EXPORT int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return openat_real(node_real()->openat, dir, path, flags, mode);
}

NODE_EXPORT int openat64(int dir, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = mode_of(flags, args);
    va_end(args);
    return openat_real(node_real()->openat64, dir, path, flags, mode);
}

/* What programs call that were compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

NODE_EXPORT int __open_2(const char *path, int flags)
{
    int fd = node_real()->__open_2(path, flags);

    return fd >= 0 || errno != ENOENT ? fd : open_ours(path, flags);
}

NODE_EXPORT int __open64_2(const char *path, int flags)
{
    int fd = node_real()->__open64_2(path, flags);

    return fd >= 0 || errno != ENOENT ? fd : open_ours(path, flags);
}

NODE_EXPORT int __openat_2(int dir, const char *path, int flags)
{
    int fd = node_real()->__openat_2(dir, path, flags);

    return fd >= 0 || errno != ENOENT ? fd : open_ours(path, flags);
}

NODE_EXPORT int __openat64_2(int dir, const char *path, int flags)
{
    int fd = node_real()->__openat64_2(dir, path, flags);

    return fd >= 0 || errno != ENOENT ? fd : open_ours(path, flags);
}

static FILE *fopen_ours(const char *path, const char *mode)
{
    int flags = mode[0] == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR;
    int fd = open_ours(path, flags | (strchr(mode, 'e') ? O_CLOEXEC : 0));
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

NODE_EXPORT FILE *fopen(const char *path, const char *mode)
{
    FILE *file = node_real()->fopen(path, mode);

    return file || errno != ENOENT ? file : fopen_ours(path, mode);
}

NODE_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    FILE *file = node_real()->fopen64(path, mode);

    return file || errno != ENOENT ? file : fopen_ours(path, mode);
}

/* ---- asking ---- */

/* After the answer `result`: a path to ask about instead, or NULL: it is the answer. */
static const char *stand_in(ssize_t result, const char *path)
{
    if (result >= 0 || errno != ENOENT)
        return NULL;
    switch (find_file(path)) {
    case NODE_FILE_FOLDER:
        return "/proc/fs";
    case NODE_FILE_CNAME:
        return "/proc/version";
    case NODE_FILE_NID:
        return "/proc/uptime";
    default:
        return NULL;
    }
}

NODE_EXPORT int stat(const char *path, struct stat *out)
{
    int r = node_real()->stat(path, out);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->stat(instead, out) : r;
}

NODE_EXPORT int stat64(const char *path, struct stat64 *out)
{
    int r = node_real()->stat64(path, out);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->stat64(instead, out) : r;
}

NODE_EXPORT int lstat(const char *path, struct stat *out)
{
    int r = node_real()->lstat(path, out);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->lstat(instead, out) : r;
}

NODE_EXPORT int lstat64(const char *path, struct stat64 *out)
{
    int r = node_real()->lstat64(path, out);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->lstat64(instead, out) : r;
}

NODE_EXPORT int fstatat(int dir, const char *path, struct stat *out, int flags)
{
    int r = node_real()->fstatat(dir, path, out, flags);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->fstatat(dir, instead, out, flags) : r;
}

NODE_EXPORT int fstatat64(int dir, const char *path, struct stat64 *out, int flags)
{
    int r = node_real()->fstatat64(dir, path, out, flags);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->fstatat64(dir, instead, out, flags) : r;
}

NODE_EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *out)
{
    int r = node_real()->statx(dir, path, flags, mask, out);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->statx(dir, instead, flags, mask, out) : r;
}

NODE_EXPORT int access(const char *path, int mode)
{
    int r = node_real()->access(path, mode);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->access(instead, mode) : r;
}

NODE_EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
    int r = node_real()->faccessat(dir, path, mode, flags);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->faccessat(dir, instead, mode, flags) : r;
}

NODE_EXPORT int euidaccess(const char *path, int mode)
{
    int r = node_real()->euidaccess(path, mode);
    const char *instead = stand_in(r, path);

    return instead ? node_real()->euidaccess(instead, mode) : r;
}

NODE_EXPORT int eaccess(const char *path, int mode)
{
    return euidaccess(path, mode);
}

NODE_EXPORT ssize_t readlink(const char *path, char *out, size_t room)
{
    ssize_t len = node_real()->readlink(path, out, room);
    const char *instead = stand_in(len, path);

    return instead ? node_real()->readlink(instead, out, room) : len;
}

NODE_EXPORT ssize_t readlinkat(int dir, const char *path, char *out, size_t room)
{
    ssize_t len = node_real()->readlinkat(dir, path, out, room);
    const char *instead = stand_in(len, path);

    return instead ? node_real()->readlinkat(dir, instead, out, room) : len;
}

/* Of programs that were compiled with _FORTIFY_SOURCE; size is that of `out`. */
ssize_t __readlink_chk(const char *path, char *out, size_t room, size_t size);
ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t room, size_t size);

NODE_EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t room, size_t size)
{
    ssize_t len = node_real()->__readlink_chk(path, out, room, size);
    const char *instead = stand_in(len, path);

    return instead ? node_real()->__readlink_chk(instead, out, room, size) : len;
}

NODE_EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t room, size_t size)
{
    ssize_t len = node_real()->__readlinkat_chk(dir, path, out, room, size);
    const char *instead = stand_in(len, path);

    return instead ? node_real()->__readlinkat_chk(dir, instead, out, room, size) : len;
}

/* Who lists files asks for access lists. */
NODE_EXPORT ssize_t getxattr(const char *path, const char *name, void *out, size_t room)
{
    ssize_t len = node_real()->getxattr(path, name, out, room);
    const char *instead = stand_in(len, path);

    return instead ? node_real()->getxattr(instead, name, out, room) : len;
}

NODE_EXPORT ssize_t lgetxattr(const char *path, const char *name, void *out, size_t room)
{
    ssize_t len = node_real()->lgetxattr(path, name, out, room);
    const char *instead = stand_in(len, path);

    return instead ? node_real()->lgetxattr(instead, name, out, room) : len;
}
