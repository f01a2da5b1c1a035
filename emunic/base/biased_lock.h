/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock that is biased to one thread: that of a NIC handle, of a Portals interface.
 *
 * Most programs use such an object from one thread, though libraries around them (PMIx, MPI) start others. So one
 * thread locks with two plain stores and no locked instruction; that is a quarter of what an 8-byte operation costs
 * otherwise. The first time another thread wants the lock, it takes that right away for good: it says so in is_shared,
 * has the kernel run a barrier on every core that runs the process (membarrier), and waits until the owner is out. From
 * then on everybody uses the mutex.
 *
 * The store of is_held and the load of is_shared behind it are not ordered by the processor; membarrier is what orders
 * them against the other thread's. Where it is not to be had, the lock stays shared. Not recursive.
 */
#ifndef EMUNIC_BASE_BIASED_LOCK_H
#define EMUNIC_BASE_BIASED_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct emu_biased_lock {
    const void *_Atomic owner; /* thread pointer of who has the short way; NULL: nobody ever had it. Written
                                       once */
    _Atomic bool is_held;      /* by the owner, the short way */
    _Atomic bool is_shared;    /* the mutex is the lock now */
    _Atomic int owner_pid;     /* its process. A forked child may have a copy of the lock and no such thread */
    pthread_mutex_t mutex;
};

/* Nobody has the short way yet. Also for the copy in a forked child, which has one thread: nobody holds it there. */
void emu_biased_lock_init(struct emu_biased_lock *lock);
/*
 * The calling thread gets the short way, unless some thread has had it before. It holds the lock, or nobody else knows
 * of the lock yet.
 */
void emu_biased_lock_bias(struct emu_biased_lock *lock);
void emu_biased_lock_fini(struct emu_biased_lock *lock);
/* What emu_biased_lock() does where there is no short way. */
void emu_biased_lock_take_shared(struct emu_biased_lock *lock);

static inline bool emu_biased_lock_is_mine(const struct emu_biased_lock *lock)
{
    /* Another thread's pointer, or NULL, is as good as a stale one: neither is ours. */
    return atomic_load_explicit(&lock->owner, memory_order_relaxed) == __builtin_thread_pointer();
}

/* Any thread. */
static inline void emu_biased_lock(struct emu_biased_lock *lock)
{
    if (emu_biased_lock_is_mine(lock)) {
        atomic_store_explicit(&lock->is_held, true, memory_order_relaxed);
        /*
         * Pairs with the membarrier of share(): the processor may not have done the store yet, that call has it done.
         */
        atomic_signal_fence(memory_order_seq_cst);
        if (!atomic_load_explicit(&lock->is_shared, memory_order_acquire))
            return;
        atomic_store_explicit(&lock->is_held, false, memory_order_release);
    }
    emu_biased_lock_take_shared(lock);
}

static inline void emu_biased_unlock(struct emu_biased_lock *lock)
{
    if (emu_biased_lock_is_mine(lock) && atomic_load_explicit(&lock->is_held, memory_order_relaxed))
        atomic_store_explicit(&lock->is_held, false, memory_order_release);
    else
        pthread_mutex_unlock(&lock->mutex);
}

#endif
