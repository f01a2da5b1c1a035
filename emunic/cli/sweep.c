/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sweep goes through /proc once, opens a pidfd for each process that might be meant, and only then looks at it in
 * earnest: so what was looked at is what gets the signal, however fast process numbers are used again.
 */
#include "emunic/cli/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"

#define FOLDERS_OPEN_MAX 16

struct found {
    struct pollfd *items; /* owned, with the descriptors in it */
    nfds_t n;
};

/* The environment, with a zero behind it; the file tells no size. Caller frees; NULL if it cannot be read. */
static char *read_environ(pid_t pid, size_t *len_out)
{
    char path[64];
    char *text = NULL;
    size_t room = 0;
    ssize_t len = -1;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return NULL;
    /* Which no text contains. */
    len = getdelim(&text, &room, 0xff, file);
    fclose(file);
    if (len < 0) {
        free(text);
        return NULL;
    }
    *len_out = (size_t)len;
    return text;
}

/* What `stat` says of a process. */
struct state {
    bool is_alive;
    pid_t parent;
    uint64_t since; /* ticks of the kernel's clock */
};

/* One read: most processes of a machine are nobody's, and this is all that is seen of them. */
static struct state state_of(pid_t pid)
{
    struct state state = { .parent = -1 };
    char letter = 'Z';
    int parent = -1;
    char path[64];
    char text[1024];
    const char *behind_name;
    ssize_t len = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    text[len > 0 ? len : 0] = '\0';
    /* The name in parentheses may contain anything. */
    behind_name = strrchr(text, ')');
    if (behind_name &&
        sscanf(behind_name, ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
               &letter, &parent, &state.since) < 2)
        return state;
    state.is_alive = letter != 'Z' && letter != 'X';
    state.parent = parent;
    return state;
}

uint64_t emu_sweep_since(void)
{
    return state_of(getpid()).since;
}

bool emu_sweep_is_only_child(pid_t child)
{
    char wanted[24];
    char children[sizeof(wanted)];
    int wanted_len = snprintf(wanted, sizeof(wanted), "%d ", (int)child);
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    ssize_t len;

    if (fd < 0)
        return false;
    len = read(fd, children, sizeof(children));
    close(fd);
    return len == wanted_len && memcmp(children, wanted, (size_t)len) == 0;
}

static bool has_marker(pid_t pid, const char *marker)
{
    size_t len;
    char *text = read_environ(pid, &len);
    size_t marker_len = strlen(marker) + 1;
    bool answer = false;

    for (size_t at = 0; text && at + marker_len <= len && !answer; at += strlen(text + at) + 1)
        answer = memcmp(text + at, marker, marker_len) == 0;
    free(text);
    return answer;
}

/* May it be meant? By what costs little to know. */
static bool is_candidate(const struct emu_sweep *what, const struct state *state)
{
    return state->is_alive &&
           ((what->parent != 0 && state->parent == what->parent) || (what->marker && state->since >= what->since));
}

static bool is_meant(const struct emu_sweep *what, pid_t pid)
{
    struct state state = state_of(pid);

    if (!is_candidate(what, &state))
        return false;
    return (what->parent != 0 && state.parent == what->parent) || has_marker(pid, what->marker);
}

static int keep(struct found *found, int pidfd)
{
    struct pollfd *items = realloc(found->items, (found->n + 1) * sizeof(*items));

    if (!items)
        return -ENOMEM;
    items[found->n++] = (struct pollfd){ .fd = pidfd, .events = POLLIN };
    found->items = items;
    return 0;
}

static int find(const struct emu_sweep *what, struct found *found)
{
    const pid_t self = getpid();
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int r = 0;

    if (!proc)
        return -errno;
    while (r == 0 && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct state state;
        int pidfd;

        if (pid <= 1 || pid == self || pid == what->except)
            continue;
        state = state_of(pid);
        if (!is_candidate(what, &state))
            continue;
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0)
            continue;
        if (is_meant(what, pid))
            r = keep(found, pidfd);
        else
            close(pidfd);
    }
    closedir(proc);
    return r;
}

static void wait_for(struct found *found, int wait_ms)
{
    uint64_t end_ns = emu_clock_ns() + (uint64_t)wait_ms * 1000000;
    nfds_t n_left = found->n;

    while (n_left > 0) {
        uint64_t now_ns = emu_clock_ns();

        if (now_ns >= end_ns || poll(found->items, found->n, (int)((end_ns - now_ns) / 1000000) + 1) < 0)
            return;
        for (nfds_t i = 0; i < found->n; i++) {
            if (found->items[i].fd >= 0 && found->items[i].revents) {
                close(found->items[i].fd);
                found->items[i].fd = -1;
                n_left--;
            }
        }
    }
}

int emu_sweep(const struct emu_sweep *what, int signal, int wait_ms)
{
    struct found found = { 0 };
    int r;

    r = find(what, &found);
    for (nfds_t i = 0; signal && i < found.n; i++)
        syscall(SYS_pidfd_send_signal, found.items[i].fd, signal, NULL, 0);
    wait_for(&found, wait_ms);
    for (nfds_t i = 0; i < found.n; i++) {
        if (found.items[i].fd >= 0)
            close(found.items[i].fd);
    }
    free(found.items);
    return r < 0 ? r : (int)found.n;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    remove(path);
    return 0;
}

void emu_remove_folder(const char *path)
{
    nftw(path, remove_entry, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
