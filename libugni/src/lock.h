/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a NIC handle, biased to one thread.
 *
 * Most programs use a NIC handle from one thread, though libraries around them (PMIx, MPI) start others. So the thread
 * that made the handle locks with two plain stores and no locked instruction; that is a quarter of what an 8-byte
 * operation costs otherwise. The first time another thread wants the lock, it takes that right away for good: it says so
 * in is_shared, has the kernel run a barrier on every core that runs the process (membarrier), and waits until the owner
 * is out. From then on everybody uses the mutex.
 *
 * The store of is_held and the load of is_shared behind it are not ordered by the processor; membarrier is what orders
 * them against the other thread's. Where it is not to be had, the lock is shared from the start. Not recursive.
 */
#ifndef LIBUGNI_LOCK_H
#define LIBUGNI_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gnii_lock {
    const void *owner;              /* thread pointer of who made it */
    _Atomic bool is_held;           /* by the owner, the short way */
    _Atomic bool is_shared;         /* the mutex is the lock now */
    pthread_mutex_t mutex;
};

void gnii_lock_init(struct gnii_lock *lock);
void gnii_lock_fini(struct gnii_lock *lock);
void gnii_lock_take_shared(struct gnii_lock *lock);

static inline void gnii_lock(struct gnii_lock *lock)
{
    if (lock->owner == __builtin_thread_pointer()) {
        atomic_store_explicit(&lock->is_held, true, memory_order_relaxed);
        /* Pairs with the membarrier of take_shared(): the processor may not have done the store yet, that call has it done. */
        atomic_signal_fence(memory_order_seq_cst);
        if (!atomic_load_explicit(&lock->is_shared, memory_order_acquire))
            return;
        atomic_store_explicit(&lock->is_held, false, memory_order_release);
    }
    gnii_lock_take_shared(lock);
}

static inline void gnii_unlock(struct gnii_lock *lock)
{
    if (lock->owner == __builtin_thread_pointer() && atomic_load_explicit(&lock->is_held, memory_order_relaxed))
        atomic_store_explicit(&lock->is_held, false, memory_order_release);
    else
        pthread_mutex_unlock(&lock->mutex);
}

#endif
