/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this process has been told about its node, and the functions that ours stand before.
 */
#ifndef NODE_VIEW_H
#define NODE_VIEW_H

#include <dirent.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* What the program is to find instead of libc's. */
#define NODE_EXPORT __attribute__((visibility("default")))

#define NODE_NAME_MAX  16 /* "nid262143" and the final zero */
#define NODE_CNAME_MAX 48
#define NODE_HOST_MAX  256

struct node_view {
    bool has_nid; /* of a rank; without it nothing is served */
    uint32_t nid;
    char cname[NODE_CNAME_MAX]; /* "": not told */
    bool is_named;              /* this node has a name of its own */
    char name[NODE_NAME_MAX];   /* what gethostname() says, where the kernel does not know; "": it does */
};

/*
 * Functions of whatever comes after us, libc or a sanitizer; NULL where it lacks them. In this order: what it
 * returns, its name, its parameters.
 */
#define NODE_REAL_FUNCTIONS(X)                                                                                         \
    X(int, open, (const char *, int, ...))                                                                             \
    X(int, open64, (const char *, int, ...))                                                                           \
    X(int, openat, (int, const char *, int, ...))                                                                      \
    X(int, openat64, (int, const char *, int, ...))                                                                    \
    X(int, __open_2, (const char *, int))                                                                              \
    X(int, __open64_2, (const char *, int))                                                                            \
    X(int, __openat_2, (int, const char *, int))                                                                       \
    X(int, __openat64_2, (int, const char *, int))                                                                     \
    X(FILE *, fopen, (const char *, const char *))                                                                     \
    X(FILE *, fopen64, (const char *, const char *))                                                                   \
    X(int, stat, (const char *, struct stat *))                                                                        \
    X(int, stat64, (const char *, struct stat64 *))                                                                    \
    X(int, lstat, (const char *, struct stat *))                                                                       \
    X(int, lstat64, (const char *, struct stat64 *))                                                                   \
    X(int, fstatat, (int, const char *, struct stat *, int))                                                           \
    X(int, fstatat64, (int, const char *, struct stat64 *, int))                                                       \
    X(int, statx, (int, const char *, int, unsigned, struct statx *))                                                  \
    X(int, access, (const char *, int))                                                                                \
    X(int, faccessat, (int, const char *, int, int))                                                                   \
    X(int, euidaccess, (const char *, int))                                                                            \
    X(ssize_t, readlink, (const char *, char *, size_t))                                                               \
    X(ssize_t, readlinkat, (int, const char *, char *, size_t))                                                        \
    X(ssize_t, __readlink_chk, (const char *, char *, size_t, size_t))                                                 \
    X(ssize_t, __readlinkat_chk, (int, const char *, char *, size_t, size_t))                                          \
    X(ssize_t, getxattr, (const char *, const char *, void *, size_t))                                                 \
    X(ssize_t, lgetxattr, (const char *, const char *, void *, size_t))                                                \
    X(int, uname, (struct utsname *))                                                                                  \
    X(int, gethostname, (char *, size_t))                                                                              \
    X(int, __gethostname_chk, (char *, size_t, size_t))                                                                \
    X(long, gethostid, (void))                                                                                         \
    X(int, getaddrinfo, (const char *, const char *, const struct addrinfo *, struct addrinfo **))                     \
    X(struct hostent *, gethostbyname, (const char *))                                                                 \
    X(struct hostent *, gethostbyname2, (const char *, int))                                                           \
    X(int, gethostbyname_r, (const char *, struct hostent *, char *, size_t, struct hostent **, int *))                \
    X(int, gethostbyname2_r, (const char *, int, struct hostent *, char *, size_t, struct hostent **, int *))

struct node_real {
#define NODE_REAL_FIELD(returned, function, parameters) returned(*function) parameters;
    NODE_REAL_FUNCTIONS(NODE_REAL_FIELD)
#undef NODE_REAL_FIELD
};

/*
 * Both are constant once there is more than one thread. Signal-safe, unless a constructor of another library that runs
 * before ours is interrupted in its first call here.
 */
const struct node_view *node_view(void);
const struct node_real *node_real(void);

#endif
