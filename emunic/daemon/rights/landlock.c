/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Landlock rules: which files emunic reaches, whatever its user may.
 *
 * Reading of the system's own folders alone, which starting needs (shared libraries, processors, names of hosts), and
 * the devices of a network. Nothing is written, made, removed or executed. Where there is one host, there are no
 * connections. A process under such rules reaches no memory of processes outside them: so they are for an emunic that
 * has movers for all of its members.
 *
 * libc has no functions for it, and Debian 12's header knows the first two versions only. Source: landlock(7),
 * linux/landlock.h of 6.12.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/daemon/rights/inner.h"

#define FS_FIRST     ((1ull << 13) - 1)
#define FS_REFER     (1ull << 13) /* from version 2 */
#define FS_TRUNCATE  (1ull << 14) /* 3 */
#define FS_IOCTL_DEV (1ull << 15) /* 5 */
#define NET_TCP      3ull         /* 4: to bind, to connect */
#define SCOPE_UNIX   1ull         /* 6: connecting to abstract names of processes outside the rules */

#define READS  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITES (READS | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_IOCTL_DEV)
#define FILES  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_IOCTL_DEV) /* of what is no folder */

/* As far as the kernel knows it. */
struct attributes {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};

static const struct {
    const char *path;
    uint64_t access;
    bool is_for_hosts;
} rules[] = {
    { "/proc", READS, false },     { "/sys", READS, false },         { "/usr", READS, false },
    { "/lib", READS, false },      { "/lib64", READS, false },       { "/etc", READS, false },
    { "/dev/null", FILES, false }, { "/dev/urandom", READS, false }, { "/dev/infiniband", WRITES, true },
    { "/dev/shm", WRITES, true },
};

unsigned emu_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi > 0 ? (unsigned)abi : 0;
}

/* What is not there needs no rule. */
static int allow(int ruleset, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = { .parent_fd = open(path, O_PATH | O_CLOEXEC) };
    struct stat info;
    int r = 0;

    if (rule.parent_fd < 0)
        return 0;
    if (fstat(rule.parent_fd, &info) < 0 || !S_ISDIR(info.st_mode))
        access &= FILES;
    rule.allowed_access = access;
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        r = -errno;
    close(rule.parent_fd);
    return r;
}

int emu_landlock_restrict(unsigned abi, const char *module)
{
    struct attributes all = { .fs = FS_FIRST | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
                                    (abi >= 5 ? FS_IOCTL_DEV : 0),
                              .net = abi >= 4 && !module ? NET_TCP : 0,
                              .scoped = abi >= 6 ? SCOPE_UNIX : 0 };
    size_t bytes = abi < 4 ? sizeof(all.fs) : abi < 6 ? sizeof(all.fs) + sizeof(all.net) : sizeof(all);
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, bytes, 0);
    int r = 0;

    if (ruleset < 0)
        return -errno;
    for (size_t i = 0; r == 0 && i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (module || !rules[i].is_for_hosts)
            r = allow(ruleset, rules[i].path, rules[i].access & all.fs);
    }
    if (r == 0 && module)
        r = allow(ruleset, module, READS);
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        r = -errno;
    close(ruleset);
    return r;
}
