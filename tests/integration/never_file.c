/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file system with one file whose contents never come: never-file DIRECTORY [flush]. With `flush` no close() of the
 * file comes back. Tells on its standard output that it is there ('i'), that somebody waits for a page ('r'), that
 * somebody closes ('f').
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES 65536

static void tell(char what)
{
    (void)!write(STDOUT_FILENO, &what, 1);
}

static void *be_there(struct fuse_conn_info *connection, struct fuse_config *config)
{
    (void)connection;
    (void)config;
    tell('i');
    return NULL;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *file)
{
    (void)file;
    memset(st, 0, sizeof(*st));
    if (strcmp(path, "/") == 0) {
        st->st_mode = S_IFDIR | 0755;
        st->st_nlink = 2;
        return 0;
    }
    if (strcmp(path, "/never") != 0)
        return -ENOENT;
    st->st_mode = S_IFREG | 0666;
    st->st_nlink = 1;
    st->st_size = BYTES;
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *file)
{
    (void)path;
    (void)file;
    return 0;
}

static int read_never(const char *path, char *bytes, size_t n, off_t offset, struct fuse_file_info *file)
{
    (void)path;
    (void)bytes;
    (void)n;
    (void)offset;
    (void)file;
    tell('r');
    for (;;)
        pause();
    return -EIO;
}

static int flush_never(const char *path, struct fuse_file_info *file)
{
    (void)path;
    (void)file;
    tell('f');
    for (;;)
        pause();
    return 0;
}

int main(int argc, char **argv)
{
    const struct fuse_operations operations = { .init = be_there,
                                                .getattr = get_attributes,
                                                .open = open_file,
                                                .read = read_never,
                                                .flush = argc > 2 ? flush_never : NULL };
    char *arguments[] = { argv[0], "-f", "-o", "allow_other,max_threads=10", argc > 1 ? argv[1] : "", NULL };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return fuse_main(5, arguments, &operations, NULL);
}
