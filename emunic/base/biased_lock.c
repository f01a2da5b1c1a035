/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/base/biased_lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void emu_biased_lock_init(struct emu_biased_lock *lock)
{
    atomic_init(&lock->owner, NULL);
    atomic_init(&lock->is_held, false);
    atomic_init(&lock->is_shared, true);
    atomic_init(&lock->owner_pid, 0);
    pthread_mutex_init(&lock->mutex, NULL);
}

void emu_biased_lock_bias(struct emu_biased_lock *lock)
{
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) ||
        !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
        return;
    atomic_store_explicit(&lock->owner_pid, getpid(), memory_order_relaxed);
    atomic_store_explicit(&lock->is_shared, false, memory_order_relaxed);
    atomic_store_explicit(&lock->owner, __builtin_thread_pointer(), memory_order_relaxed);
}

void emu_biased_lock_fini(struct emu_biased_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

/*
 * In a forked child only the thread that forked goes on. That is the first one there; if it comes here it is not the
 * owner, so nobody is.
 */
static bool is_left_behind(const struct emu_biased_lock *lock)
{
    return atomic_load_explicit(&lock->owner_pid, memory_order_relaxed) != getpid() && gettid() == getpid();
}

/* Runs once per lock: the owner loses its short way. Mutex held. */
static void share(struct emu_biased_lock *lock)
{
    atomic_store_explicit(&lock->is_shared, true, memory_order_seq_cst);
    if (is_left_behind(lock))
        atomic_store_explicit(&lock->is_held, false, memory_order_relaxed);
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    /* Pairs with the release in emu_biased_unlock(): all that the owner did under the lock. */
    while (atomic_load_explicit(&lock->is_held, memory_order_acquire))
        sched_yield();
}

void emu_biased_lock_take_shared(struct emu_biased_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    if (!atomic_load_explicit(&lock->is_shared, memory_order_relaxed))
        share(lock);
}
