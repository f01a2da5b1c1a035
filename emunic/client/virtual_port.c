/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port in virtual time.
 *
 * A command has the time at which its post was called. The post costs what the core needs for it, and only then does
 * the clock move: emunic reads the clock before the ring, so a clock that has moved tells that the command is there.
 *
 * An empty poll costs poll_ps. The first one in a row shows all that has happened up to the clock's time; before the
 * horizon that is nothing new. A program may poll several things in turn: others of them show the same. When the loop
 * has come round, and all have been seen empty, it waits for the next thing that happens to the process, and goes on
 * where the polls would have found it.
 */
#include "emunic/client/virtual_port.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/client/virtual_clock.h"

#define ROUND_MAX   64u   /* polls in a row of a loop that does not come round to the first */
#define COST_MIN_PS 1000u /* of a post: no two of a thread are at one time */

/* Of the library over libc's clocks, if it is loaded. */
extern void emunic_clock_attach(struct emu_vclock_page *page, int doorbell) __attribute__((weak));

/* ---- attach ---- */

static int take_page(const struct emu_fds *fds)
{
    void *addr;
    int doorbell;

    if (fds->n_fds != 2)
        return -EPROTO;
    addr = mmap(NULL, sizeof(struct emu_vclock_page), PROT_READ | PROT_WRITE, MAP_SHARED, fds->fd[0], 0);
    if (addr == MAP_FAILED)
        return -errno;
    doorbell = dup(fds->fd[1]);
    if (doorbell < 0 || ((struct emu_vclock_page *)addr)->magic != EMU_VCLOCK_MAGIC ||
        ((struct emu_vclock_page *)addr)->abi_version != EMU_ABI_VERSION || !emu_vclock_adopt(addr, doorbell)) {
        if (doorbell >= 0)
            close(doorbell);
        munmap(addr, sizeof(struct emu_vclock_page));
        return emu_vclock_is_on() ? 0 : -EPROTO;
    }
    if (emunic_clock_attach)
        emunic_clock_attach(addr, doorbell);
    return 0;
}

int emu_virtual_port_open(struct emu_port *port)
{
    struct emu_msg msg = { .type = EMU_MSG_VIRTUAL_CLOCK };
    struct emu_fds fds;
    int r = 0;

    if ((atomic_load(&port->table->flags) & EMU_TABLE_VIRTUAL) == 0)
        return 0;
    port->times = (_Atomic uint64_t *)(port->staging + EMU_STAGING_BYTES);
    if (!emu_vclock_is_on()) {
        r = emu_session_request(&port->session, &msg, NULL, 0, &fds);
        if (r == 0)
            r = msg.result;
        if (r == 0)
            r = take_page(&fds);
        emu_fds_close(&fds);
    }
    if (r != 0)
        return r < 0 ? r : -EPROTO;
    /* Each thread that attaches has a clock, or those that it creates would have none before their first call. */
    emu_vclock_begin();
    return 0;
}

/* ---- posts ---- */

static uint64_t cost_of(const struct emu_cmd *cmd)
{
    const struct emu_vclock_page *page = emu_vclock_page();
    uint64_t cost_ps;

    if (!page)
        return 0;
    if (cmd->flags & EMU_CMD_LAUNCH)
        return (uint64_t)page->launch_gap_ps *
               ((cmd->handle_flags & EMU_HANDLE_CHANGED) ? page->launch_mdh_percent : 100) / 100;
    cost_ps = page->put_gap_ps;
    if (page->store_kbs > 0 && cmd->op == EMU_OP_PUT && (cmd->flags & EMU_CMD_BLOCK) == 0)
        cost_ps += cmd->length_bytes * 1000000000ull / page->store_kbs;
    return cost_ps < COST_MIN_PS ? COST_MIN_PS : cost_ps;
}

/*
 * A window that another handle opens costs more. Handles of regions at one address count as one, such as symmetric
 * heaps: on the original they have one number in all processes, and here numbers are given in the order of the host.
 */
static void note_launch(struct emu_port *port, struct emu_cmd *cmd)
{
    if ((cmd->flags & EMU_CMD_LAUNCH) == 0)
        return;
    if (port->has_launched && port->launched_base != cmd->remote_base)
        cmd->handle_flags |= EMU_HANDLE_CHANGED;
    port->launched_base = cmd->remote_base;
    port->has_launched = true;
}

/*
 * emunic takes the commands of a ring in their order. Where several threads post, one whose clock is behind would come
 * too late behind one that is ahead: each waits until it is its turn.
 */
static void wait_for_turn(struct emu_port *port)
{
    const void *thread = __builtin_thread_pointer();

    port->has_posters = port->has_posters || (port->poster && port->poster != thread);
    port->poster = thread;
    if (port->has_posters)
        emu_vclock_look(EMU_VCLOCK_CALL_WAIT);
}

/*
 * When what is posted may come back to the process: 0, at once. What goes to no node fails so, and a datagram may find
 * another here.
 */
static uint64_t comes_back_ps(const struct emu_port *port, const struct emu_cmd *cmd, uint64_t now_ps)
{
    const struct emu_vclock_page *page = emu_vclock_page();
    uint32_t node = emu_table_node_index(port->table, cmd->remote_nid);

    if (!page || cmd->op == EMU_OP_DATAGRAM || node == EMU_NID_NONE ||
        emu_table_nodes(port->table)[node].nid == port->nid)
        return 0;
    return now_ps + page->lookahead_ps;
}

void emu_virtual_port_publish(struct emu_port *port)
{
    uint64_t slot = port->tail & (EMU_RING_SLOTS - 1);
    struct emu_cmd *cmd = &port->slots[slot];
    uint64_t cost_ps;
    uint64_t now_ps;

    note_launch(port, cmd);
    cost_ps = cost_of(cmd);
    emu_vclock_begin();
    emu_vclock_enter();
    wait_for_turn(port);
    now_ps = emu_vclock_spend(0);

    port->staging_end[slot] = port->staging_tail;
    port->blocks_sent += (cmd->flags & EMU_CMD_BLOCK) != 0;
    port->tail++;
    atomic_store_explicit(&port->times[slot], now_ps, memory_order_relaxed);
    /* Pairs with the acquire of `tail` in emunic: the command and its time before their count. */
    atomic_store_explicit(&port->segment->tail, port->tail, memory_order_release);
    emu_vclock_draw_in_horizon(comes_back_ps(port, cmd, now_ps));
    /* No doorbell: emunic takes it when this thread's time has moved on, and then the thread asks for something. */
    emu_vclock_spend(cost_ps);
    emu_port_found(port);
    emu_vclock_leave();
}

void emu_virtual_port_wait_for_room(struct emu_port *port)
{
    (void)port;
    emu_vclock_before_look();
    emu_vclock_begin();
    emu_vclock_enter();
    emu_vclock_wait(EMU_VCLOCK_CALL_WAIT, EMU_VCLOCK_NEVER, 0);
    emu_vclock_leave();
}

/* ---- looking ---- */

/* The thread has slept, or waited for something else, since it polled last: it is no loop of polls. */
static bool has_slept(enum emu_vclock_call last)
{
    return last == EMU_VCLOCK_CALL_SLEEP || last == EMU_VCLOCK_CALL_NONE;
}

static enum emu_vclock_result look_or_wait(struct emu_port *port, uint32_t in_a_row, uintptr_t polled)
{
    _Atomic uintptr_t *first = &port->idle.first_polled;

    if (has_slept(emu_vclock_note_call(EMU_VCLOCK_CALL_POLL)) || in_a_row <= 1) {
        atomic_store_explicit(first, polled, memory_order_relaxed);
        return emu_vclock_is_before_horizon() ? EMU_VCLOCK_WENT_ON : emu_vclock_look(EMU_VCLOCK_CALL_POLL);
    }
    if (polled != atomic_load_explicit(first, memory_order_relaxed) && in_a_row % ROUND_MAX != 0)
        return EMU_VCLOCK_WENT_ON;
    return emu_vclock_wait(EMU_VCLOCK_CALL_POLL, EMU_VCLOCK_NEVER, emu_vclock_page()->poll_ps);
}

bool emu_virtual_port_relax(struct emu_port *port, uint32_t in_a_row, uintptr_t polled)
{
    const struct emu_vclock_page *page = emu_vclock_page();
    enum emu_vclock_result r = EMU_VCLOCK_IS_OFF;

    if (page) {
        emu_vclock_begin();
        emu_vclock_enter();
        emu_vclock_spend(page->poll_ps);
        r = look_or_wait(port, in_a_row, polled);
        emu_vclock_leave();
    }
    if (r == EMU_VCLOCK_IS_OFF)
        emu_port_is_lost(port);
    return true;
}

void emu_virtual_port_catch_up(struct emu_port *port)
{
    uint64_t now_ps;

    if (!port->times)
        return;
    emu_vclock_begin();
    now_ps = emu_vclock_enter();
    /* Not a look, which others that are behind may go beside. */
    emu_vclock_wait(EMU_VCLOCK_CALL_SLEEP, now_ps, 0);
    emu_vclock_leave();
}

static bool has_changed(_Atomic uint32_t *const *words, const uint32_t *seen, unsigned n_words)
{
    for (unsigned i = 0; i < n_words; i++) {
        if (atomic_load(words[i]) != seen[i])
            return true;
    }
    return false;
}

int emu_virtual_port_wait(struct emu_port *port, _Atomic uint32_t *const *words, const uint32_t *seen, unsigned n_words,
                          uint64_t deadline_ns)
{
    uint64_t host_ns = emu_clock_ns();
    uint64_t until_ps = EMU_VCLOCK_NEVER;
    uint64_t now_ps;
    enum emu_vclock_result r;

    if (emu_port_is_lost(port))
        return -ENETDOWN;
    emu_vclock_before_look();
    if (has_changed(words, seen, n_words))
        return 0;
    if (host_ns >= deadline_ns)
        return -ETIMEDOUT;
    emu_vclock_begin();
    now_ps = emu_vclock_enter();
    if ((deadline_ns - host_ns) < (EMU_VCLOCK_NEVER - now_ps) / 1000)
        until_ps = now_ps + (deadline_ns - host_ns) * 1000;
    r = emu_vclock_wait(EMU_VCLOCK_CALL_WAIT, until_ps, 0);
    now_ps = emu_vclock_spend(0);
    emu_vclock_leave();
    if (r == EMU_VCLOCK_IS_OFF)
        return emu_port_is_lost(port) ? -ENETDOWN : 0;
    if (has_changed(words, seen, n_words))
        return 0;
    return now_ps >= until_ps ? -ETIMEDOUT : emu_vclock_was_interrupted() ? -EINTR : 0;
}
