/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks: tickets in one PE's copy of the word, which its address chooses, so that locks are spread.
 *
 *   bits 63..32  tickets given out    bits 31..0  the ticket that has the lock
 *
 * Who comes first gets it first. The word is 0 again when nobody wants the lock.
 */
#include "mpi-shim/shmem/src/sma_calls.h"

#define TICKET (1ull << 32)

static struct smai_remote word_of(const volatile long *lock, const char *call)
{
    uint64_t at = (uint64_t)(uintptr_t)lock;
    uint64_t offset = at - (at - smai.heap < smai.heap_bytes ? smai.heap : smai.data);

    if (!smai.is_up)
        smai_fail(call, "not initialised");
    return (struct smai_remote){ SHMEM_CTX_DEFAULT, (const void *)(uintptr_t)at,
                                 (int)(offset / sizeof(long) % (uint64_t)smai.npes), call };
}

void smai_set_lock(long *lock)
{
    const struct smai_remote word = word_of(lock, "shmem_set_lock");
    uint64_t old = smai_amo(word, (struct smai_atomic){ EMU_AMO_ADD, true, 8, TICKET, 0 });
    uint32_t mine = (uint32_t)(old >> 32);
    unsigned n = 0;

    while ((uint32_t)old != mine) {
        smai_wait_step(&n);
        old = smai_fetch(word, 8);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

int smai_test_lock(long *lock)
{
    const struct smai_remote word = word_of(lock, "shmem_test_lock");

    return smai_amo(word, (struct smai_atomic){ EMU_AMO_CSWAP, true, 8, 0, TICKET }) == 0 ? 0 : 1;
}

void smai_clear_lock(long *lock)
{
    const struct smai_remote word = word_of(lock, "shmem_clear_lock");
    uint64_t old;
    uint64_t seen;

    smai_settle("shmem_clear_lock");
    seen = smai_fetch(word, 8);
    do {
        uint32_t next = (uint32_t)(seen >> 32);
        uint32_t served = (uint32_t)seen + 1;

        old = seen;
        if (smai.is_checked && next == (uint32_t)seen)
            smai_fail(word.call, "lock %p: nobody has it", (void *)lock);
        seen = smai_amo(word, (struct smai_atomic){ EMU_AMO_CSWAP, true, 8, old,
                                                    next == served ? 0 : (old & ~0xffffffffull) | served });
    } while (seen != old);
}
