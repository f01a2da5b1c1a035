/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view_rank NID CNAME [NAME]: what a rank finds of its node, by every call that the library before libc serves, and
 * what it must not notice. NAME: that of the node; without it, the node has none of its own. Status 0: all is as told.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FOLDER "/proc/cray_xt"
#define NID    FOLDER "/nid"
#define CNAME  FOLDER "/cname"

/* What compilers make of some calls where _FORTIFY_SOURCE is set. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *out, size_t room, size_t size);
ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t room, size_t size);
int __gethostname_chk(char *out, size_t room, size_t size);

static char nid_text[64];
static char cname_text[64];
static int n_failures;

static void check(bool is_true, const char *what)
{
    if (is_true)
        return;
    n_failures++;
    fprintf(stderr, "view_rank: wrong: %s (errno %d)\n", what, errno);
}

#define CHECK(cond)              check((cond), #cond)
/* A call that fails, and why. */
#define CHECK_FAILS(call, error) check((errno = 0, (call) == -1 && errno == (error)), #call)

static bool holds(int fd, const char *text)
{
    char buf[128];
    ssize_t len = fd >= 0 ? read(fd, buf, sizeof(buf)) : -1;

    if (fd >= 0)
        close(fd);
    return len == (ssize_t)strlen(text) && memcmp(buf, text, strlen(text)) == 0;
}

static bool stream_holds(FILE *file, const char *text)
{
    char buf[128] = "";
    bool is_same = file && fgets(buf, sizeof(buf), file) && strcmp(buf, text) == 0 && fgetc(file) == EOF;

    if (file)
        fclose(file);
    return is_same;
}

static void check_opens(void)
{
    CHECK(holds(open(NID, O_RDONLY), nid_text));
    CHECK(holds(open64(CNAME, O_RDONLY | O_NONBLOCK), cname_text));
    CHECK(holds(openat(AT_FDCWD, NID, O_RDONLY), nid_text));
    CHECK(holds(openat64(AT_FDCWD, CNAME, O_RDONLY), cname_text));
    CHECK(holds(__open_2(NID, O_RDONLY), nid_text));
    CHECK(holds(__open64_2(CNAME, O_RDONLY), cname_text));
    CHECK(holds(__openat_2(AT_FDCWD, NID, O_RDONLY), nid_text));
    CHECK(holds(__openat64_2(AT_FDCWD, CNAME, O_RDONLY), cname_text));
    CHECK(stream_holds(fopen(NID, "r"), nid_text));
    CHECK(stream_holds(fopen64(CNAME, "re"), cname_text));
}

static void check_opened_file(void)
{
    struct stat st;
    int kept = open(NID, O_RDONLY);
    int closed = open(NID, O_RDONLY | O_CLOEXEC);

    CHECK(kept >= 0 && fcntl(kept, F_GETFD) == 0);
    CHECK(closed >= 0 && fcntl(closed, F_GETFD) == FD_CLOEXEC);
    CHECK(fstat(kept, &st) == 0 && S_ISREG(st.st_mode));
    CHECK(write(kept, "x", 1) == -1 && ftruncate(kept, 0) == -1);
    close(closed);
    CHECK(holds(kept, nid_text));
    CHECK_FAILS(open(NID, O_WRONLY), EACCES);
    CHECK_FAILS(open(CNAME, O_RDWR | O_CREAT, 0600), EACCES);
    CHECK_FAILS(open(CNAME, O_RDONLY | O_DIRECTORY), ENOTDIR);
    errno = 0;
    CHECK(!fopen(NID, "w") && errno == EACCES);
    CHECK(!fopen(NID, "r+") && errno == EACCES);
}

static bool is_as_procfs(const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_mode & 07777) == 0444 && st->st_uid == 0;
}

static void check_questions(void)
{
    char buf[16];
    struct stat st;
    struct stat64 st64;
    struct statx sx;

    CHECK(stat(NID, &st) == 0 && is_as_procfs(&st));
    CHECK(lstat(CNAME, &st) == 0 && is_as_procfs(&st));
    CHECK(fstatat(AT_FDCWD, NID, &st, 0) == 0 && is_as_procfs(&st));
    CHECK(stat64(NID, &st64) == 0 && S_ISREG(st64.st_mode));
    CHECK(lstat64(CNAME, &st64) == 0 && S_ISREG(st64.st_mode));
    CHECK(fstatat64(AT_FDCWD, NID, &st64, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st64.st_mode));
    CHECK(statx(AT_FDCWD, CNAME, 0, STATX_MODE, &sx) == 0 && S_ISREG(sx.stx_mode));
    CHECK(stat(FOLDER, &st) == 0 && S_ISDIR(st.st_mode));
    CHECK(stat(FOLDER "/", &st) == 0 && S_ISDIR(st.st_mode));
    CHECK(access(NID, F_OK) == 0 && access(CNAME, R_OK) == 0 && access(FOLDER, R_OK | X_OK) == 0);
    CHECK(faccessat(AT_FDCWD, NID, R_OK, 0) == 0 && euidaccess(NID, R_OK) == 0 && eaccess(CNAME, R_OK) == 0);
    CHECK_FAILS(readlink(NID, buf, sizeof(buf)), EINVAL);
    CHECK_FAILS(readlinkat(AT_FDCWD, CNAME, buf, sizeof(buf)), EINVAL);
    CHECK_FAILS(__readlink_chk(NID, buf, sizeof(buf), sizeof(buf)), EINVAL);
    CHECK_FAILS(__readlinkat_chk(AT_FDCWD, CNAME, buf, sizeof(buf), sizeof(buf)), EINVAL);
}

/* Whatever is not ours is as it was. */
static void check_other_paths(void)
{
    char *volatile nowhere = (char *)1;
    struct stat st;

    CHECK_FAILS(open(FOLDER "/other", O_RDONLY), ENOENT);
    CHECK_FAILS(open(FOLDER "/nid/", O_RDONLY), ENOENT);
    CHECK_FAILS(open(FOLDER "x/nid", O_RDONLY), ENOENT);
    CHECK_FAILS(open("/nowhere/nid", O_RDONLY), ENOENT);
    CHECK_FAILS(stat(FOLDER "/other", &st), ENOENT);
    CHECK_FAILS(access("", F_OK), ENOENT);
    CHECK_FAILS(open(nowhere, O_RDONLY), EFAULT);
    CHECK_FAILS(access(nowhere, F_OK), EFAULT);
    CHECK(!fopen("/nowhere/nid", "r") && errno == ENOENT);
    CHECK(stat("/proc/self/exe", &st) == 0 && S_ISREG(st.st_mode));
}

static void check_created_file(void)
{
    char path[] = "/tmp/view_rank.XXXXXX";
    struct stat st;
    int fd = mkstemp(path);

    CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    umask(0);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0640);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0640);
    close(fd);
    unlink(path);
}

static void check_names(const char *name, long nid)
{
    struct utsname names;
    char buf[256] = "";
    char room[5] = "";

    CHECK(uname(&names) == 0 && gethostname(buf, sizeof(buf)) == 0 && strcmp(names.nodename, buf) == 0);
    if (!name)
        return;
    CHECK(strcmp(buf, name) == 0 && gethostid() == nid + 1);
    memset(buf, 0, sizeof(buf));
    CHECK(__gethostname_chk(buf, sizeof(buf), sizeof(buf)) == 0 && strcmp(buf, name) == 0);
    CHECK_FAILS(gethostname(room, 4), ENAMETOOLONG);
    CHECK(strcmp(room, "nid0") == 0);
}

static bool same_address(const struct addrinfo *a, const struct addrinfo *b)
{
    return a->ai_addrlen == b->ai_addrlen && memcmp(a->ai_addr, b->ai_addr, a->ai_addrlen) == 0;
}

/* The name of the node leads where the host's name leads, which may be nowhere. */
static void check_addresses(const char *name, const char *host)
{
    const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_CANONNAME };
    struct addrinfo *ours = NULL;
    struct addrinfo *hosts = NULL;
    struct hostent entry;
    struct hostent *found = NULL;
    char room[4096];
    int error = 0;
    int r = getaddrinfo(name, NULL, &hints, &ours);

    CHECK(getaddrinfo(host, NULL, &hints, &hosts) == r);
    CHECK(r != 0 || (same_address(ours, hosts) && strcmp(ours->ai_canonname, name) == 0));
    if (r == 0) {
        freeaddrinfo(ours);
        freeaddrinfo(hosts);
        found = gethostbyname(name);
        CHECK(found && strcmp(found->h_name, name) == 0);
        found = gethostbyname2(name, AF_INET);
        CHECK(found && strcmp(found->h_name, name) == 0);
        CHECK(gethostbyname_r(name, &entry, room, sizeof(room), &found, &error) == 0 && found == &entry &&
              strcmp(entry.h_name, name) == 0);
        CHECK(gethostbyname2_r(name, AF_INET, &entry, room, sizeof(room), &found, &error) == 0 && found == &entry);
    }
    CHECK(getaddrinfo("127.0.0.1", NULL, &hints, &ours) == 0);
    freeaddrinfo(ours);
}

static void *read_often(void *unused)
{
    bool is_good = true;

    (void)unused;
    for (int i = 0; i < 200; i++)
        is_good = is_good && holds(open(NID, O_RDONLY), nid_text) && access("/nowhere", F_OK) == -1;
    return is_good ? NULL : (void *)1;
}

static void check_threads(void)
{
    pthread_t threads[4];
    void *result;

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, read_often, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], &result) == 0 && !result);
}

static volatile sig_atomic_t handler_reads;

static void read_in_handler(int signal)
{
    char buf[128];
    int fd = open(CNAME, O_RDONLY);

    (void)signal;
    handler_reads = fd >= 0 && read(fd, buf, sizeof(buf)) == (ssize_t)strlen(cname_text);
    close(fd);
}

int main(int argc, char **argv)
{
    const char *host = getenv("EMUNIC_HOST");
    const char *name = argc > 3 ? argv[3] : NULL;

    if (argc < 3)
        return 2;
    snprintf(nid_text, sizeof(nid_text), "%s\n", argv[1]);
    snprintf(cname_text, sizeof(cname_text), "%s\n", argv[2]);
    CHECK((name != NULL) == (host != NULL));
    if (name && host)
        check_addresses(name, host);
    clearenv();
    check_opens();
    check_opened_file();
    check_questions();
    check_other_paths();
    check_created_file();
    check_names(name, atol(argv[1]));
    check_threads();
    signal(SIGUSR1, read_in_handler);
    raise(SIGUSR1);
    CHECK(handler_reads);
    return n_failures ? 1 : 0;
}
