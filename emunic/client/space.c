/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The space file of a process, one per communication domain: made by emunic, sparse, a page's offset is its address.
 * Ports of the process in one domain share it.
 *
 * Adopting a range of private anonymous pages: copy them into the file (one pwrite), then map the file over them
 * (MAP_FIXED, one step for everybody who looks). Between the two nobody may write, or the write is lost:
 *
 *   this thread         has its signals blocked and writes to nothing outside its stack; the stack is never adopted. So
 *                       it makes bare system calls: MPI libraries patch mmap() and others of libc with functions that
 *                       write to their heap, which may be what is being moved
 *   other threads       are stopped at their first write by userfaultfd write protection; when the file is mapped the
 *                       userfaultfd is closed, they try again and find the new pages. Without the right to stop writes
 *                       of the kernel as well (not root, no vm.unprivileged_userfaultfd) nothing is adopted while the
 *                       process has threads
 *   peers and emunic    write private memory only under a registration: the caller does not adopt what a live
 *                       registration with the cma method covers
 *
 * A program that moves adopted memory (mremap(), realloc()) takes its pages of the file along. What comes to the old
 * addresses then is not adopted, or it would be the same pages, as long as the moved memory is not adopted anew.
 *
 * Not adopted: the stack, file mappings, read-only pages, memory that is shared with others already.
 *
 * Afterwards the range behaves like any shared mapping of its process: munmap, mremap, free and realloc work; a page
 * whose address has changed is adopted anew when it is registered again. The file keeps pages of addresses that are no
 * longer mapped until they are used again or the process ends.
 *
 * fork: a child must not share memory with its parent. The handlers below give the child private copies before fork()
 * returns in either, without touching the heap; other threads of the parent run on meanwhile. vfork and posix_spawn
 * need nothing. Cost: about 0.4 ms per MiB, once (spec/figures.md "Limits"), which some 20 transfers pay back.
 */
#include "emunic/client/space.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/base/log.h"
#include "emunic/base/maps.h"
#include "emunic/client/port.h"

#define PIECES_MAX 64u

struct space {
    struct space *next;
    uint32_t server_pid;
    uint32_t domain_id;
    int fd;
    dev_t dev;
    ino_t ino;
    uint32_t n_ports;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct space *spaces;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* ---- what is mapped where ---- */

/* Pieces that cover [first, end) without a hole; their number, or -1. Cut to the range. */
static int find_pieces(const struct emu_maps *kept, uint64_t first, uint64_t end, struct emu_piece *pieces)
{
    struct emu_maps maps;
    struct emu_piece p;
    uint64_t at = first;
    int n = 0;

    if (emu_maps_open_by(&maps, kept) < 0)
        return -1;
    while (at < end && n < (int)PIECES_MAX && emu_maps_find(&maps, at, &p) && p.first <= at) {
        p.offset += at - p.first;
        p.first = at;
        p.end = p.end < end ? p.end : end;
        pieces[n++] = p;
        at = p.end;
    }
    emu_maps_close(&maps);
    return at >= end ? n : -1;
}

static bool is_ours(const struct space *s, const struct emu_piece *p)
{
    return p->is_shared && p->ino == s->ino;
}

static bool is_in_place(const struct space *s, const struct emu_piece *p)
{
    return is_ours(s, p) && p->offset == p->first && p->is_writable;
}

static bool holds(const struct emu_piece *p, const void *address)
{
    uint64_t a = (uint64_t)(uintptr_t)address;

    return a >= p->first && a < p->end;
}

static bool may_move(const struct space *s, const struct emu_piece *p)
{
    int here;

    if (!p->is_writable || p->is_stack || holds(p, &here) || holds(p, &errno))
        return false;
    return is_ours(s, p) || (!p->is_shared && p->ino == 0);
}

/* ---- moving pages ---- */

static unsigned count_threads(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) < 0 || st.st_nlink < 3 ? 2 : (unsigned)st.st_nlink - 2;
}

/* Stops all writes to the range. A descriptor whose closing lets them go on, or a negative errno. */
static int stop_writes(uint64_t first, uint64_t len_bytes)
{
    struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
    struct uffdio_register reg = { .range = { first, len_bytes }, .mode = UFFDIO_REGISTER_MODE_WP };
    struct uffdio_writeprotect wp = { .range = { first, len_bytes }, .mode = UFFDIO_WRITEPROTECT_MODE_WP };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    int r;

    if (fd < 0)
        return -errno;
    /* Protection is a property of present pages: make them present first. */
    if (ioctl(fd, UFFDIO_API, &api) == 0 && madvise((void *)(uintptr_t)first, len_bytes, MADV_POPULATE_WRITE) == 0 &&
        ioctl(fd, UFFDIO_REGISTER, &reg) == 0 && ioctl(fd, UFFDIO_WRITEPROTECT, &wp) == 0)
        return fd;
    r = -errno;
    close(fd);
    return r;
}

static int copy_to_file(const struct space *s, const struct emu_piece *p)
{
    uint64_t done = p->first;

    while (done < p->end) {
        /* The bare call: a sanitizer's wrapper would object to whole pages, freed memory and red zones among them. */
        long n = syscall(SYS_pwrite64, s->fd, (const void *)(uintptr_t)done, p->end - done, (off_t)done);

        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (uint64_t)n;
    }
    return 0;
}

/* mmap() past hooks; see the top. */
static void *bare_mmap(void *addr, uint64_t len_bytes, int flags, int fd, uint64_t offset)
{
    return (void *)syscall(SYS_mmap, addr, len_bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
}

/* From here to the mapping nothing but the stack is written by this thread. */
static int move_guarded(const struct space *s, const struct emu_piece *p)
{
    int guard = -1;
    int r;

    if (count_threads() > 1) {
        guard = stop_writes(p->first, p->end - p->first);
        if (guard < 0)
            return guard;
    }
    r = copy_to_file(s, p);
    if (r == 0 && bare_mmap((void *)(uintptr_t)p->first, p->end - p->first, MAP_SHARED | MAP_FIXED, s->fd, p->first) ==
                      MAP_FAILED)
        r = -errno;
    /*
     * The file has the pages. Faults of reading map many of them at once, writable; those of writing, by MAP_POPULATE,
     * one each. Where it fails they come when they are touched.
     */
    if (r == 0)
        syscall(SYS_madvise, (void *)(uintptr_t)p->first, p->end - p->first, MADV_POPULATE_READ);
    if (guard >= 0)
        close(guard);
    return r;
}

static int move_piece(const struct space *s, const struct emu_piece *p)
{
    sigset_t all;
    sigset_t old;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = move_guarded(s, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r < 0)
        emu_log(EMU_LOG_DEBUG, "0x%llx bytes at 0x%llx not adopted: %s", (unsigned long long)(p->end - p->first),
                (unsigned long long)p->first, strerror(-r));
    return r;
}

/* ---- fork ---- */

static int fork_pipe[2] = { -1, -1 };

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    if (spaces && pipe2(fork_pipe, O_CLOEXEC) < 0)
        fork_pipe[0] = fork_pipe[1] = -1;
}

static void after_fork_in_parent(void)
{
    char byte;

    if (fork_pipe[0] >= 0) {
        close(fork_pipe[1]);
        /* Ends when the child has its copies, or has died. */
        while (read(fork_pipe[0], &byte, 1) > 0 || errno == EINTR)
            errno = 0;
        close(fork_pipe[0]);
        fork_pipe[0] = fork_pipe[1] = -1;
    }
    pthread_mutex_unlock(&lock);
}

static void make_private(const struct space *s, const struct emu_piece *p)
{
    uint64_t len_bytes = p->end - p->first;
    uint64_t done = 0;
    char *copy = bare_mmap(NULL, len_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        _exit(127); /* a child that shares memory with its parent would be worse */
    while (done < len_bytes) {
        long n = syscall(SYS_pread64, s->fd, copy + done, len_bytes - done, (off_t)(p->offset + done));

        if (n <= 0)
            _exit(127);
        done += (uint64_t)n;
    }
    if ((void *)syscall(SYS_mremap, copy, len_bytes, len_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, p->first) == MAP_FAILED)
        _exit(127);
}

/*
 * Next mapping of a space file at or after *at, and that space; NULL: no more. Opens the map anew each time, because it
 * changes under our hands.
 */
static const struct space *find_ours(uint64_t *at, struct emu_piece *found)
{
    const struct space *owner = NULL;
    struct emu_maps maps;

    if (emu_maps_open(&maps, 0) < 0)
        _exit(127);
    while (!owner && emu_maps_find(&maps, *at, found)) {
        *at = found->end;
        for (owner = spaces; owner && !is_ours(owner, found); owner = owner->next)
            ;
    }
    emu_maps_close(&maps);
    return owner;
}

static void after_fork_in_child(void)
{
    const struct space *owner;
    struct emu_piece p;
    uint64_t at = 0;

    while (spaces && (owner = find_ours(&at, &p)))
        make_private(owner, &p);
    if (fork_pipe[0] >= 0) {
        close(fork_pipe[0]);
        close(fork_pipe[1]);
        fork_pipe[0] = fork_pipe[1] = -1;
    }
    while (spaces) {
        struct space *next = spaces->next;

        close(spaces->fd);
        free(spaces);
        spaces = next;
    }
    pthread_mutex_init(&lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- spaces ---- */

/* The space of a port's domain, made when first needed. Lock held. */
static struct space *space_of(struct emu_port *port)
{
    struct emu_msg msg = { .type = EMU_MSG_SPACE };
    struct emu_fds fds;
    struct stat st;
    struct space *s;

    for (s = spaces; s; s = s->next) {
        if (s->server_pid == port->session.server_pid && s->domain_id == port->table->domain_id)
            break;
    }
    if (!s) {
        if (emu_session_request(&port->session, &msg, NULL, 0, &fds) < 0)
            return NULL;
        s = calloc(1, sizeof(*s));
        if (msg.result != 0 || fds.n_fds != 1 || !s || fstat(fds.fd[0], &st) < 0 ||
            (uint64_t)st.st_size != EMU_SPACE_BYTES) {
            emu_fds_close(&fds);
            free(s);
            return NULL;
        }
        *s = (struct space){ .next = spaces,
                             .server_pid = port->session.server_pid,
                             .domain_id = port->table->domain_id,
                             .fd = fds.fd[0],
                             .dev = st.st_dev,
                             .ino = st.st_ino };
        spaces = s;
        pthread_once(&fork_once, watch_forks);
    }
    if (!port->has_space) {
        port->has_space = true;
        s->n_ports++;
    }
    return s;
}

void emu_space_put(struct emu_port *port)
{
    struct space **at;

    if (!port->has_space)
        return;
    pthread_mutex_lock(&lock);
    for (at = &spaces; *at; at = &(*at)->next) {
        struct space *s = *at;

        if (s->server_pid != port->session.server_pid || s->domain_id != port->table->domain_id)
            continue;
        /*
         * The last port keeps the record: adopted memory stays mapped, and fork must still find it. Another attach to
         * the domain uses it again.
         */
        s->n_ports--;
        break;
    }
    port->has_space = false;
    pthread_mutex_unlock(&lock);
}

/* ---- calls ---- */

/*
 * Are the file's pages for these addresses seen at other ones? One question to the kernel for pages that nobody has
 * used yet, else one for each shared mapping of the process.
 */
static bool is_seen_elsewhere(const struct space *s, const struct emu_maps *kept, uint64_t first, uint64_t end)
{
    off_t data = lseek(s->fd, (off_t)first, SEEK_DATA);
    bool is_seen = false;
    struct emu_maps maps;
    struct emu_piece p;

    if (data < 0 ? errno == ENXIO : (uint64_t)data >= end)
        return false;
    if (emu_maps_open_by(&maps, kept) < 0)
        return true;
    for (uint64_t at = 0; !is_seen && emu_maps_find_shared(&maps, at, &p); at = p.end)
        is_seen = is_ours(s, &p) && p.offset != p.first && p.offset < end && p.offset + (p.end - p.first) > first;
    emu_maps_close(&maps);
    return is_seen;
}

static bool cover(const struct space *s, const struct emu_maps *kept, uint64_t first, uint64_t end, bool may_adopt)
{
    struct emu_piece pieces[PIECES_MAX];
    int n = find_pieces(kept, first, end, pieces);

    if (n < 0)
        return false;
    for (int i = 0; i < n; i++) {
        if (!is_in_place(s, &pieces[i]) &&
            (!may_adopt || !may_move(s, &pieces[i]) || is_seen_elsewhere(s, kept, pieces[i].first, pieces[i].end)))
            return false;
    }
    for (int i = 0; i < n; i++) {
        if (!is_in_place(s, &pieces[i]) && move_piece(s, &pieces[i]) < 0)
            return false;
    }
    return true;
}

bool emu_space_cover_by(struct emu_port *port, const struct emu_maps *kept, uint64_t addr, uint64_t len_bytes,
                        bool may_adopt)
{
    uint64_t first = emu_page_down(addr);
    uint64_t end = emu_page_up(addr + len_bytes);
    const struct space *s;
    bool is_covered;

    pthread_mutex_lock(&lock);
    s = space_of(port);
    is_covered = s && cover(s, kept, first, end, may_adopt);
    pthread_mutex_unlock(&lock);
    return is_covered;
}

bool emu_space_cover(struct emu_port *port, uint64_t addr, uint64_t len_bytes, bool may_adopt)
{
    return emu_space_cover_by(port, NULL, addr, len_bytes, may_adopt);
}

uint64_t emu_space_ino(struct emu_port *port)
{
    uint64_t ino = 0;

    pthread_mutex_lock(&lock);
    for (const struct space *s = spaces; s && ino == 0; s = s->next) {
        if (s->server_pid == port->session.server_pid && s->domain_id == port->table->domain_id)
            ino = (uint64_t)s->ino;
    }
    pthread_mutex_unlock(&lock);
    return ino;
}
