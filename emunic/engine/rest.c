/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resting.
 *
 * Where processes outnumber cores, one whose polls stay empty is in the way: whoever has work waits until the scheduler
 * has been round all that only poll. So the owner of a port rests for a moment, and whoever has news for it wakes it.
 * What the program polls is not known here (queues, mailboxes, its own memory), so the last look is the program's own:
 *
 *   none --owner announces--> announced --polls stay empty--> asleep --time is up--> asleep (and polls)
 *     ^                           |                             |
 *     +----------- news ----------+-------- news: futex wake ---+
 *
 * The owner announces, lets the program poll everything at least once more, and sleeps only if the word still says
 * "announced". Who brings news looks at the word with a plain load behind its stores; no fence. The processor may do
 * that load before the stores are visible, so a look that misses the announcement may belong to news that the next poll
 * misses too. But stores leave a store buffer within a fraction of a microsecond, and between announcing and sleeping
 * lie EMUNIC_REST_AFTER and a yield that came back slowly, or many yields: no wake is lost that way. If one were, the
 * sleep is bounded.
 *
 * The word is written by the owner and, once per rest, by who disturbs it; so its line stays shared and the load costs
 * next to nothing. A member that scribbles over it makes its victim poll, or rest for the bound.
 */
#include "emunic/engine/rest.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void emu_rest_disturb_marked(struct emu_segment *segment)
{
    /* One disturber of several makes the system call. */
    if (atomic_exchange_explicit(&segment->rests, EMU_REST_NONE, memory_order_seq_cst) == EMU_REST_ASLEEP)
        syscall(SYS_futex, &segment->rests, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool emu_rest_announce(struct emu_segment *segment)
{
    uint32_t none = EMU_REST_NONE;

    if (atomic_load_explicit(&segment->rests, memory_order_relaxed) != EMU_REST_NONE)
        return false;
    /*
     * A compare-and-swap, because another thread may be asleep already; it orders the mark before the polls behind it.
     */
    return atomic_compare_exchange_strong_explicit(&segment->rests, &none, EMU_REST_ANNOUNCED, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

bool emu_rest_sleep(struct emu_segment *segment, uint64_t limit_ns)
{
    struct timespec limit = { .tv_sec = (time_t)(limit_ns / 1000000000u), .tv_nsec = (long)(limit_ns % 1000000000u) };
    uint32_t seen = EMU_REST_ANNOUNCED;

    if (!atomic_compare_exchange_strong_explicit(&segment->rests, &seen, EMU_REST_ASLEEP, memory_order_seq_cst,
                                                 memory_order_relaxed) &&
        seen != EMU_REST_ASLEEP)
        return true;
    return syscall(SYS_futex, &segment->rests, FUTEX_WAIT, EMU_REST_ASLEEP, &limit, NULL, 0) == 0 || errno != ETIMEDOUT;
}
