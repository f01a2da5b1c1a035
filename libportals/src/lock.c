/* SPDX-License-Identifier: BSD-3-Clause */
#include "libportals/src/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void p3_lock_init(struct p3_lock *lock)
{
    lock->owner = NULL;
    atomic_init(&lock->is_held, false);
    atomic_init(&lock->is_shared, true);
    pthread_mutex_init(&lock->mutex, NULL);
}

void p3_lock_bias(struct p3_lock *lock)
{
#ifndef __SANITIZE_THREAD__
    if (!lock->owner && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {
        lock->owner = __builtin_thread_pointer();
        atomic_store(&lock->is_shared, false);
    }
#else
    (void)lock;
#endif
}

/* Runs once per lock: the owner loses its short way. Mutex held. */
static void share(struct p3_lock *lock)
{
    atomic_store_explicit(&lock->is_shared, true, memory_order_seq_cst);
    /* In a forked child, which does not inherit the registration, there is no owner to wait for. */
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    /* Pairs with the release in p3_unlock(): all that the owner did under the lock. */
    while (atomic_load_explicit(&lock->is_held, memory_order_acquire))
        sched_yield();
}

void p3_lock_take_shared(struct p3_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    if (!atomic_load_explicit(&lock->is_shared, memory_order_relaxed))
        share(lock);
}
