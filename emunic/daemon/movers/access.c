/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accesses by a mover.
 *
 * A mover has one errand at a time. emunic looks for its end, waits for PATIENCE_NS, and then has two ways:
 *
 *   with a tape     (a command of a ring) the access returns -EINPROGRESS, the mover rings when it is done, and the
 *                   step is made again. Meanwhile the loop serves others.
 *   without one     (what cannot be interrupted yet: see README.md) emunic waits on, to the limit.
 *
 *   free --post--> posted --done--> settled: the answer is on the tape, or with who waits --> free
 *                    |
 *                    +--limit, or the mover dies--> lost: the answer is -ESRCH, the mover is killed, its ports end
 *
 * An answer that nobody has fetched keeps nobody waiting: whoever needs the mover next puts it on its tape. An errand
 * whose port has ended, or whose step will not be made again, ends without a reader; until then its memory domain's
 * number is not used again (emu_movers_touch()).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/movers/mover.h"
#include "emunic/daemon/movers/movers.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

#define LOOKS          300u    /* before emunic waits */
#define PATIENCE_NS    200000u /* before the loop goes on with others */
#define NAP_NS         20000000u
#define STARVED_LIMITS 5u             /* limits that a mover has which its user does not hold up */
#define START_NS       10000000000ull /* and at least so long until it answers for the first time */
#define BAN_LIMITS     20u            /* limits for which a user is kept out whose mover held up the loop for one */

struct emu_tape_access {
    int result;
    uint32_t at; /* in the tape's bytes */
    uint64_t old;
    uint64_t len_bytes;
};

/* ---- tapes ---- */

static bool make_room(struct emu_tape *tape, uint64_t len_bytes)
{
    uint32_t n_max = tape->n_max ? 2 * tape->n_max : 8;
    struct emu_tape_access *accesses;
    uint8_t *bytes;

    if (tape->n == tape->n_max) {
        accesses = realloc(tape->accesses, n_max * sizeof(*accesses));
        if (!accesses)
            return false;
        tape->accesses = accesses;
        tape->n_max = n_max;
    }
    if (len_bytes > tape->bytes_max - tape->n_bytes) {
        bytes = realloc(tape->bytes, tape->n_bytes + len_bytes);
        if (!bytes)
            return false;
        tape->bytes = bytes;
        tape->bytes_max = tape->n_bytes + (uint32_t)len_bytes;
    }
    return true;
}

/* An errand of the tape has ended. */
static void record(struct emu_tape *tape, const struct emu_mover *mover)
{
    const struct emu_mover_errand *errand = &mover->errand;
    bool has_data = errand->result == 0 && errand->request.op == EMU_MOVER_READ;
    uint64_t len_bytes = has_data ? errand->request.len_bytes : 0;

    if (!make_room(tape, len_bytes)) {
        emu_log(EMU_LOG_ERROR, "out of memory: an access by a mover fails");
        return;
    }
    tape->accesses[tape->n++] = (struct emu_tape_access){ errand->result, tape->n_bytes, errand->old, len_bytes };
    if (len_bytes > 0)
        memcpy(tape->bytes + tape->n_bytes, mover->ring->bytes, len_bytes);
    tape->n_bytes += (uint32_t)len_bytes;
}

static void forget(struct emu_tape *tape)
{
    tape->n = tape->at = tape->n_bytes = 0;
}

/* What the access gave when it was made. */
static int replay(struct emu_tape *tape, void *to, uint64_t *old_out)
{
    const struct emu_tape_access *access = &tape->accesses[tape->at++];
    int result = access->result;

    if (to && access->len_bytes > 0)
        memcpy(to, tape->bytes + access->at, access->len_bytes);
    if (old_out)
        *old_out = access->old;
    if (tape->forgets)
        forget(tape);
    return result;
}

void emu_movers_begin(struct emu_server *server, struct emu_tape *tape)
{
    emu_movers_of(server)->tape = tape;
    tape->at = 0;
    tape->waits = false;
}

void emu_movers_end(struct emu_server *server)
{
    emu_movers_of(server)->tape = NULL;
}

void emu_tape_clear(struct emu_server *server, struct emu_tape *tape)
{
    struct emu_mover *mover;

    LIST_FOREACH(mover, &emu_movers_of(server)->list, link) {
        if (mover->errand.tape == tape)
            mover->errand.tape = NULL;
    }
    forget(tape);
    tape->waits = false;
}

void emu_tape_fini(struct emu_server *server, struct emu_tape *tape)
{
    emu_tape_clear(server, tape);
    free(tape->accesses);
    free(tape->bytes);
}

bool emu_tape_is_ready(const struct emu_server *server, const struct emu_tape *tape)
{
    struct emu_mover *mover;

    if (!tape->waits)
        return true;
    LIST_FOREACH(mover, &emu_movers_of(server)->list, link)
        emu_mover_settle(mover);
    return emu_movers_of(server)->n_done != tape->seen;
}

/* ---- errands ---- */

static bool is_done(const struct emu_mover *mover)
{
    /* Pairs with the mover's store: the answer before its count. */
    return atomic_load_explicit(&mover->ring->done, memory_order_acquire) == mover->posted;
}

static void end_errand(struct emu_mover *mover, int result, uint64_t old)
{
    struct emu_mover_errand *errand = &mover->errand;
    struct emu_movers *movers = emu_movers_of(mover->server);
    struct emu_moved *whose = errand->request.op == EMU_MOVER_COPY && old == 0 ? errand->from : errand->moved;

    errand->result = result;
    errand->old = old;
    errand->is_open = false;
    movers->n_done++;
    if (result == -ESRCH && whose)
        whose->is_gone = movers->some_are_gone = true;
    if (errand->tape)
        record(errand->tape, mover);
    errand->tape = NULL;
    errand->moved = errand->from = NULL;
}

/* Nothing of the answer is believed but that it is one. */
static int result_in(const struct emu_mover_ring *ring)
{
    int result = *(const volatile int32_t *)&ring->result;

    return result == 0 || result == -ESRCH || result == -EPERM ? result : -EFAULT;
}

void emu_mover_settle(struct emu_mover *mover)
{
    if (!mover->errand.is_open || !is_done(mover))
        return;
    mover->has_started = true;
    end_errand(mover, result_in(mover->ring), *(const volatile uint64_t *)&mover->ring->old);
}

static void ban(struct emu_movers *movers, uid_t uid, uint64_t until_ns)
{
    struct emu_mover_ban *one = calloc(1, sizeof(*one));

    if (!one)
        return;
    one->uid = uid;
    one->until_ns = until_ns;
    LIST_INSERT_HEAD(&movers->bans, one, link);
}

void emu_mover_lose(struct emu_mover *mover, const char *why)
{
    struct emu_movers *movers = emu_movers_of(mover->server);
    const struct emu_moved *whose = mover->errand.is_open ? mover->errand.moved : NULL;
    struct emu_moved *moved;

    if (mover->has_ended)
        return;
    if (whose)
        emu_log_limited(&mover->server->rate, EMU_LOG_WARN,
                        "uid %u: its mover %s, at address 0x%llx of pid %d: the user's ports are closed",
                        (unsigned)mover->uid, why, (unsigned long long)mover->errand.request.addr,
                        (int)whose->port->member->pid);
    else
        emu_log_limited(&mover->server->rate, EMU_LOG_WARN, "uid %u: its mover %s: the user's ports are closed",
                        (unsigned)mover->uid, why);
    mover->has_ended = true;
    emu_mover_kill(mover);
    LIST_FOREACH(moved, &mover->ports, link)
        moved->is_gone = true;
    movers->some_are_gone = true;
    if (mover->errand.is_open)
        end_errand(mover, -ESRCH, 0);
}

/* An access as its caller wants it. */
struct wish {
    struct emu_moved *moved;
    struct emu_moved *from; /* of a copy */
    struct emu_mover_request request;
    const void *bytes; /* to be written */
    void *to;          /* what is read */
};

static void post(const struct wish *wish)
{
    struct emu_mover *mover = wish->moved->mover;
    struct emu_mover_ring *ring = mover->ring;

    mover->errand = (struct emu_mover_errand){ .is_open = true,
                                               .request = wish->request,
                                               .moved = wish->moved,
                                               .from = wish->from,
                                               .domain = wish->moved->port->domain,
                                               .tape = emu_movers_of(mover->server)->tape,
                                               .posted_ns = emu_clock_ns() };
    ring->request = wish->request;
    if (wish->bytes)
        memcpy(ring->bytes, wish->bytes, wish->request.len_bytes);
    /* Pairs with the acquire in the mover: the request before its count; and with its store of `sleeps`. */
    atomic_store_explicit(&ring->posted, ++mover->posted, memory_order_seq_cst);
    if (atomic_load_explicit(&ring->sleeps, memory_order_seq_cst))
        syscall(SYS_futex, &ring->posted, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool has_died(const struct emu_mover *mover)
{
    struct pollfd p = { .fd = mover->pidfd, .events = POLLIN };

    return poll(&p, 1, 0) > 0;
}

/* Until the errand is done, the mover dies, or it is `until_ns`. */
static void wait_for(struct emu_mover *mover, uint64_t until_ns)
{
    struct emu_mover_ring *ring = mover->ring;
    uint64_t now_ns;

    for (unsigned i = 0; i < LOOKS && !is_done(mover); i++)
        emu_cpu_pause();
    while (!is_done(mover) && (now_ns = emu_clock_ns()) < until_ns) {
        uint64_t nap_ns = until_ns - now_ns < NAP_NS ? until_ns - now_ns : NAP_NS;
        struct timespec nap = { .tv_nsec = (long)nap_ns };

        atomic_store_explicit(&ring->wants, EMU_MOVER_WAITS, memory_order_seq_cst);
        if (!is_done(mover) && syscall(SYS_futex, &ring->done, FUTEX_WAIT, mover->posted - 1, &nap, NULL, 0) < 0 &&
            errno == ETIMEDOUT && nap_ns == NAP_NS && has_died(mover))
            break;
    }
    atomic_store_explicit(&ring->wants, EMU_MOVER_LOOKS, memory_order_relaxed);
}

/* R: ready to run. T, t: stopped, traced. Others: it waits in the kernel. 0: unknown. */
static char state_of(const struct emu_mover *mover)
{
    char text[64] = "";
    const char *name_end;

    if (pread(mover->stat_fd, text, sizeof(text) - 1, 0) <= 0)
        text[0] = '\0';
    name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' ? name_end[2] : '\0';
}

/* Its user may have changed what it has got from emunic. */
static bool was_slowed(const struct emu_mover *mover)
{
    cpu_set_t now;

    return getpriority(PRIO_PROCESS, (id_t)mover->pid) > getpriority(PRIO_PROCESS, 0) ||
           sched_getscheduler(mover->pid) != sched_getscheduler(0) ||
           sched_getaffinity(mover->pid, sizeof(now), &now) < 0 || !CPU_EQUAL(&now, &mover->processors);
}

/*
 * By its user, or is the host loaded, which is nobody's fault? Then it is ready to run and gets no processor, or it
 * waits in the kernel for its own program.
 */
static bool is_held_up(const struct emu_mover *mover)
{
    switch (state_of(mover)) {
    case 'R':
        return was_slowed(mover);
    case 'T':
    case 't':
        return true;
    default:
        return mover->has_started;
    }
}

bool emu_mover_is_late(const struct emu_mover *mover)
{
    uint64_t limit_ns = mover->server->settings.mover_limit_ns;
    uint64_t most_ns = STARVED_LIMITS * limit_ns;
    uint64_t past_ns;

    if (!mover->errand.is_open)
        return false;
    if (!mover->has_started && most_ns < START_NS)
        most_ns = START_NS;
    past_ns = emu_clock_ns() - mover->errand.posted_ns;
    return past_ns > limit_ns && (past_ns > most_ns || is_held_up(mover));
}

/* Waits to the limit; then the mover is lost. Its user has to wait as well, if it is the one who held everybody up. */
static void wait_to_the_limit(struct emu_mover *mover)
{
    uint64_t limit_ns = mover->server->settings.mover_limit_ns;
    bool is_to_blame;

    do {
        wait_for(mover, emu_clock_ns() + limit_ns);
        emu_mover_settle(mover);
    } while (mover->errand.is_open && !has_died(mover) && !emu_mover_is_late(mover));
    if (!mover->errand.is_open)
        return;
    if (has_died(mover)) {
        emu_mover_lose(mover, "has died");
        return;
    }
    is_to_blame = is_held_up(mover);
    emu_mover_lose(mover, "got no answer of the kernel");
    if (is_to_blame)
        ban(emu_movers_of(mover->server), mover->uid, emu_clock_ns() + BAN_LIMITS * limit_ns);
}

static int come_again(struct emu_movers *movers, struct emu_tape *tape)
{
    tape->waits = true;
    tape->seen = movers->n_done;
    return -EINPROGRESS;
}

/* The errand belongs to the tape and is not done. */
static int wait_with_tape(struct emu_mover *mover, struct emu_tape *tape)
{
    if (is_done(mover))
        return 0;
    wait_for(mover, mover->errand.posted_ns + PATIENCE_NS);
    atomic_store_explicit(&mover->ring->wants, EMU_MOVER_LISTENS, memory_order_seq_cst);
    /* Either the mover sees that it has to ring, or we see that it is done. */
    atomic_thread_fence(memory_order_seq_cst);
    return is_done(mover) ? 0 : come_again(emu_movers_of(mover->server), tape);
}

static int access_with_tape(const struct wish *wish, uint64_t *old_out)
{
    struct emu_mover *mover = wish->moved->mover;
    struct emu_movers *movers = emu_movers_of(mover->server);
    struct emu_tape *tape = movers->tape;
    int r;

    emu_mover_settle(mover);
    if (tape->at < tape->n)
        return replay(tape, wish->to, old_out);
    if (wish->moved->is_gone)
        return -ESRCH;
    if (mover->errand.is_open && mover->errand.tape != tape)
        return come_again(movers, tape);
    if (!mover->errand.is_open)
        post(wish);
    r = wait_with_tape(mover, tape);
    if (r < 0)
        return r;
    emu_mover_settle(mover);
    if (tape->at < tape->n)
        return replay(tape, wish->to, old_out);
    return -EFAULT; /* no memory to remember it */
}

static int access_and_wait(const struct wish *wish, uint64_t *old_out)
{
    struct emu_mover *mover = wish->moved->mover;

    emu_mover_settle(mover);
    if (mover->errand.is_open)
        wait_to_the_limit(mover);
    if (wish->moved->is_gone)
        return -ESRCH;
    post(wish);
    wait_to_the_limit(mover);
    if (mover->errand.result == 0 && wish->to)
        memcpy(wish->to, mover->ring->bytes, wish->request.len_bytes);
    if (old_out)
        *old_out = mover->errand.old;
    return mover->errand.result;
}

static int make_access(const struct wish *wish, uint64_t *old_out)
{
    return emu_movers_of(wish->moved->mover->server)->tape ? access_with_tape(wish, old_out) :
                                                             access_and_wait(wish, old_out);
}

int emu_moved_request(struct emu_moved *moved, const struct emu_mover_request *request)
{
    struct wish wish = { .moved = moved, .request = *request };

    wish.request.slot = moved->slot;
    return access_and_wait(&wish, NULL);
}

/* ---- the memory method ---- */

static struct wish wish_for(const struct emu_memory *mem, uint32_t op, uint64_t addr)
{
    struct emu_moved *moved = mem->mover;

    return (struct wish){ .moved = moved, .request = { .op = op, .slot = moved->slot, .addr = addr } };
}

/* At most as much as one request takes. With the last of it goes the flag. */
static size_t take_part(struct emu_mover_request *request, size_t len_bytes, const struct emu_flag *flag)
{
    size_t part = len_bytes < EMU_MOVER_BYTES ? len_bytes : EMU_MOVER_BYTES;

    request->len_bytes = part;
    if (flag && part == len_bytes) {
        request->flags = EMU_MOVER_HAS_FLAG;
        request->flag_addr = flag->addr;
        request->flag_value = flag->value;
    }
    return part;
}

static int moved_read(const struct emu_memory *mem, uint64_t addr, void *dst, size_t len_bytes)
{
    struct wish wish = wish_for(mem, EMU_MOVER_READ, addr);
    uint8_t *to = dst;
    int r = 0;

    while (r == 0 && len_bytes > 0) {
        size_t part = take_part(&wish.request, len_bytes, NULL);

        wish.to = to;
        r = make_access(&wish, NULL);
        to += part;
        wish.request.addr += part;
        len_bytes -= part;
    }
    return r;
}

static int moved_write(const struct emu_memory *mem, uint64_t addr, const void *src, size_t len_bytes,
                       const struct emu_flag *flag)
{
    struct wish wish = wish_for(mem, EMU_MOVER_WRITE, addr);
    bool has_more = len_bytes > 0 || flag;
    const uint8_t *from = src;
    int r = 0;

    while (r == 0 && has_more) {
        size_t part = take_part(&wish.request, len_bytes, flag);

        wish.bytes = part > 0 ? from : NULL;
        r = make_access(&wish, NULL);
        from += part;
        wish.request.addr += part;
        len_bytes -= part;
        has_more = len_bytes > 0;
    }
    return r;
}

static int moved_atomic(const struct emu_memory *mem, uint64_t addr, const struct emu_amo *amo, uint64_t *old_out)
{
    struct wish wish = wish_for(mem, EMU_MOVER_ATOMIC, addr);

    wish.request.operand1 = amo->operand1;
    wish.request.operand2 = amo->operand2;
    wish.request.amo_op = amo->op;
    wish.request.amo_flags = amo->flags;
    return make_access(&wish, old_out);
}

static int moved_copy(struct emu_memory_at dst, struct emu_memory_at src, size_t len_bytes, const struct emu_flag *flag,
                      int *fault_out)
{
    struct wish wish = wish_for(dst.memory, EMU_MOVER_COPY, dst.addr);
    uint64_t side = 0;
    int r;

    wish.from = src.memory->mover;
    if (wish.from->mover != wish.moved->mover)
        return -EXDEV;
    wish.request.from_slot = wish.from->slot;
    wish.request.from_addr = src.addr;
    do {
        size_t part = take_part(&wish.request, len_bytes, flag);

        r = wish.from->is_gone ? -ESRCH : make_access(&wish, &side);
        wish.request.addr += part;
        wish.request.from_addr += part;
        len_bytes -= part;
    } while (r == 0 && len_bytes > 0);
    *fault_out = side != 0;
    return r;
}

static const struct emu_memory_ops moved_ops = {
    .name = "moved",
    .read = moved_read,
    .write = moved_write,
    .atomic = moved_atomic,
    .copy = moved_copy,
    .may_wait = true,
};

struct emu_memory emu_moved_memory(struct emu_moved *moved)
{
    return (struct emu_memory){ .ops = &moved_ops, .pid = moved->port->member->pid, .mover = moved };
}
