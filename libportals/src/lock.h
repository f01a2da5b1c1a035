/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of an interface, biased to one thread.
 *
 * Most programs use an interface from one thread. The thread that opened it locks with two plain stores; the first time
 * another one comes, that right ends for good: it is told by is_shared, the kernel runs a barrier on every core that runs
 * the process (membarrier), and the newcomer waits until the owner is out. From then on everybody uses the mutex. Where
 * membarrier is not to be had, and where a sanitizer watches (which does not know it), the lock is shared from the start.
 * Not recursive.
 */
#ifndef LIBPORTALS_LOCK_H
#define LIBPORTALS_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct p3_lock {
    const void *owner;              /* thread pointer of who may take the short way */
    _Atomic bool is_held;           /* by it */
    _Atomic bool is_shared;         /* the mutex is the lock now */
    pthread_mutex_t mutex;
};

/* Nobody has the short way yet. */
void p3_lock_init(struct p3_lock *lock);
/* The calling thread, which holds the lock, gets it if nobody else has ever come. */
void p3_lock_bias(struct p3_lock *lock);
void p3_lock_take_shared(struct p3_lock *lock);

static inline void p3_lock(struct p3_lock *lock)
{
    if (lock->owner == __builtin_thread_pointer()) {
        atomic_store_explicit(&lock->is_held, true, memory_order_relaxed);
        /* Pairs with the membarrier of share(): the processor may not have done the store yet, that call has it done. */
        atomic_signal_fence(memory_order_seq_cst);
        if (!atomic_load_explicit(&lock->is_shared, memory_order_acquire))
            return;
        atomic_store_explicit(&lock->is_held, false, memory_order_release);
    }
    p3_lock_take_shared(lock);
}

static inline void p3_unlock(struct p3_lock *lock)
{
    if (lock->owner == __builtin_thread_pointer() && atomic_load_explicit(&lock->is_held, memory_order_relaxed))
        atomic_store_explicit(&lock->is_held, false, memory_order_release);
    else
        pthread_mutex_unlock(&lock->mutex);
}

#endif
