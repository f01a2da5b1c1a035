/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the engine reaches the memory of one process. A method is a row of functions; the engine never asks which.
 */
#ifndef EMUNIC_ENGINE_MEMORY_H
#define EMUNIC_ENGINE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "emunic/engine/amo_arithmetic.h"

struct emu_memory;
struct emu_segment_list;

/* A value that is stored after the data of a write are in place. */
struct emu_flag {
    uint64_t addr; /* owner's address, aligned to 8 */
    uint64_t value;
};

/* An address in a memory. */
struct emu_memory_at {
    const struct emu_memory *memory; /* borrowed */
    uint64_t addr;
};

/*
 * Called by the engine only, on the thread that runs it. Each returns 0, -EFAULT (pages not there or access not
 * allowed), -ESRCH (the process is gone), -EPERM (this caller may not; nothing was moved) or, where may_wait is set,
 * -EINPROGRESS (not yet; the same call has to be made again). Addresses are the owner's. A range may end anywhere.
 */
struct emu_memory_ops {
    const char *name;
    /* Copies out of the memory. */
    int (*read)(const struct emu_memory *mem, uint64_t addr, void *dst, size_t len_bytes);
    /* Copies into the memory, then stores the flag. flag may be NULL; len_bytes may be 0. */
    int (*write)(const struct emu_memory *mem, uint64_t addr, const void *src, size_t len_bytes,
                 const struct emu_flag *flag);
    /* One atomic operation; atomic against all others that reach this memory the same way. */
    int (*atomic)(const struct emu_memory *mem, uint64_t addr, const struct emu_amo *amo, uint64_t *old_out);
    /*
     * Copies n segments into the memory, in order, and stops at one that fails. Returns the bytes copied. A NULL slot
     * means that single writes are as good.
     */
    size_t (*write_many)(const struct emu_memory *mem, const struct iovec *local, const struct iovec *remote,
                         unsigned n);
    /* Where the range is mapped here, or NULL. A NULL slot means: never. */
    void *(*window)(const struct emu_memory *mem, uint64_t addr, size_t len_bytes);
    /*
     * Copies between two memories of this method, then stores the flag. fault_out: as of emu_memory_copy(). -EXDEV: not
     * between these two. NULL: never.
     */
    int (*copy)(struct emu_memory_at dst, struct emu_memory_at src, size_t len_bytes, const struct emu_flag *flag,
                int *fault_out);
    /*
     * Somebody else moves the data and may be waited for; he never sees this side's windows, so a failure is always one
     * of this memory.
     */
    bool may_wait;
};

struct emu_memory {
    const struct emu_memory_ops *ops;
    pid_t pid;     /* cma */
    uint8_t *base; /* map: where owner_addr is mapped here. borrowed */
    uint64_t owner_addr;
    uint64_t len_bytes; /* map: length of the window; checked again at each access */
    /* map: not zero when pages of the window were missing and what was moved is lost. borrowed; NULL: cannot happen */
    const _Atomic uint32_t *broken;
    const struct emu_segment_list *segments; /* memory_segments.h; borrowed */
    void *mover;                             /* of a method that the engine's user has made; borrowed */
};

/* Another process's private memory through process_vm_readv/writev: one system call per operation. */
struct emu_memory emu_memory_cma(pid_t pid);

/* Shared pages that are mapped here: no system call, the processor's atomics. */
struct emu_memory emu_memory_map(void *base, uint64_t owner_addr, uint64_t len_bytes);

/* Were pages missing at an access to the window? To be looked at after each. */
static inline int emu_memory_is_broken(const struct emu_memory *mem)
{
    /* The mark is set by a signal handler on this thread. */
    atomic_signal_fence(memory_order_seq_cst);
    return mem->broken && atomic_load_explicit(mem->broken, memory_order_relaxed) != 0;
}

/* The caller's own memory. */
struct emu_memory emu_memory_self(void);

/* Room for what is copied between two memories of which neither has a window. */
struct emu_bounce {
    void *bytes; /* borrowed */
    size_t len_bytes;
};

/*
 * Copies between two memories: straight through where one side has a window, else by way of `bounce`.
 * fault_out tells the side that failed: 0 source, 1 destination.
 */
int emu_memory_copy(struct emu_memory_at dst_at, struct emu_memory_at src_at, size_t len_bytes,
                    const struct emu_flag *flag, struct emu_bounce bounce, int *fault_out);

#endif
