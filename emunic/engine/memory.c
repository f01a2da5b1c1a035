/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory methods.
 *
 * cma   process_vm_readv/writev on the owner's process. A write with a flag is one call of two segments; the kernel
 *       copies them in order, so nobody sees the flag before the data. The kernel's copy of an aligned word is not
 *       documented to be atomic, therefore readers of a flag compare the whole word. An atomic operation is a read
 *       and a write: callers must be one per process (emunic is). A process that ended makes the calls fail; a
 *       process number is only used while emunic holds the process's pidfd and has not seen it end.
 * map   pages of a share mapped here. The window was computed from emunic's own records; each access is checked
 *       against it once more, because it is cheap and a wrong bound would be ours. Pages of a file that its owner
 *       can shorten may be missing: whoever runs the engine lets such an access go on into nowhere and marks the
 *       window; the mark is looked at behind each access, which then counts as one to pages that are not there.
 * self  plain pointers, for the engine inside the initiator.
 */
#include "emunic/engine/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include "emunic/abi/abi.h"
#include "emunic/engine/word.h"

#define RETRIES 8

/* ---- cma ---- */

static int cma_result(ssize_t done, size_t wanted)
{
    if (done == (ssize_t)wanted)
        return 0;
    if (done < 0 && (errno == ESRCH || errno == EPERM))
        return -errno;
    return -EFAULT;
}

static int cma_read(const struct emu_memory *mem, uint64_t addr, void *dst, size_t len_bytes)
{
    struct iovec local = { dst, len_bytes };
    struct iovec remote = { (void *)(uintptr_t)addr, len_bytes };

    if (len_bytes == 0)
        return 0;
    return cma_result(process_vm_readv(mem->pid, &local, 1, &remote, 1, 0), len_bytes);
}

static int cma_write(const struct emu_memory *mem, uint64_t addr, const void *src, size_t len_bytes,
                     const struct emu_flag *flag)
{
    uint64_t value = flag ? flag->value : 0;
    struct iovec local[2] = { { (void *)(uintptr_t)src, len_bytes }, { &value, sizeof(value) } };
    struct iovec remote[2] = { { (void *)(uintptr_t)addr, len_bytes }, { NULL, sizeof(value) } };
    size_t wanted = len_bytes;
    int first = len_bytes ? 0 : 1;
    int count = len_bytes ? 1 : 0;

    if (flag) {
        remote[1].iov_base = (void *)(uintptr_t)flag->addr;
        wanted += sizeof(value);
        count++;
    }
    if (count == 0)
        return 0;
    return cma_result(process_vm_writev(mem->pid, local + first, count, remote + first, count, 0), wanted);
}

static size_t cma_write_many(const struct emu_memory *mem, const struct iovec *local, const struct iovec *remote,
                             unsigned n)
{
    ssize_t done = process_vm_writev(mem->pid, local, n, remote, n, 0);

    return done < 0 ? 0 : (size_t)done;
}

static int cma_atomic(const struct emu_memory *mem, uint64_t addr, const struct emu_amo *amo, uint64_t *old_out)
{
    uint32_t width_bytes = emu_amo_word_bytes(amo);
    uint64_t old = 0;
    uint64_t value;
    int r;

    /* Little endian: the low bytes of a 64-bit variable are the 32-bit word. */
    r = cma_read(mem, addr, &old, width_bytes);
    if (r < 0)
        return r;
    value = emu_amo_apply(amo, old);
    /* Also when nothing changes: a refused write must be an error whatever the values are. */
    r = cma_write(mem, addr, &value, width_bytes, NULL);
    if (r < 0)
        return r;
    *old_out = old;
    return 0;
}

static const struct emu_memory_ops cma_ops = {
    .name = "cma",
    .read = cma_read,
    .write = cma_write,
    .atomic = cma_atomic,
    .write_many = cma_write_many,
};

struct emu_memory emu_memory_cma(pid_t pid)
{
    return (struct emu_memory){ .ops = &cma_ops, .pid = pid };
}

/* ---- map ---- */

static void *map_window(const struct emu_memory *mem, uint64_t addr, size_t len_bytes)
{
    uint64_t off = addr - mem->owner_addr;

    if (addr < mem->owner_addr || off > mem->len_bytes || len_bytes > mem->len_bytes - off)
        return NULL;
    return (void *)((uintptr_t)mem->base + (uintptr_t)off);
}

static int map_read(const struct emu_memory *mem, uint64_t addr, void *dst, size_t len_bytes)
{
    const void *src = map_window(mem, addr, len_bytes);

    if (!src)
        return -EFAULT;
    emu_word_load(dst, src, len_bytes);
    return emu_memory_is_broken(mem) ? -EFAULT : 0;
}

static int map_write(const struct emu_memory *mem, uint64_t addr, const void *src, size_t len_bytes,
                     const struct emu_flag *flag)
{
    void *dst = map_window(mem, addr, len_bytes);
    _Atomic uint64_t *flag_word = NULL;

    if (flag) {
        flag_word = map_window(mem, flag->addr, sizeof(*flag_word));
        if (!flag_word)
            return -EFAULT;
    }
    if (len_bytes > 0 && !dst)
        return -EFAULT;
    if (len_bytes > 0)
        emu_word_store(dst, src, len_bytes);
    if (emu_memory_is_broken(mem))
        return -EFAULT;
    if (!flag_word)
        return 0;
    /* Pairs with the program's own read of the flag. */
    atomic_store_explicit(flag_word, flag->value, memory_order_release);
    return emu_memory_is_broken(mem) ? -EFAULT : 0;
}

static int map_atomic(const struct emu_memory *mem, uint64_t addr, const struct emu_amo *amo, uint64_t *old_out)
{
    void *word = map_window(mem, addr, emu_amo_word_bytes(amo));

    if (!word)
        return -EFAULT;
    *old_out = emu_amo_apply_shared(amo, word);
    return emu_memory_is_broken(mem) ? -EFAULT : 0;
}

static const struct emu_memory_ops map_ops = {
    .name = "map",
    .read = map_read,
    .write = map_write,
    .atomic = map_atomic,
    .window = map_window,
};

struct emu_memory emu_memory_map(void *base, uint64_t owner_addr, uint64_t len_bytes)
{
    return (struct emu_memory){ .ops = &map_ops, .base = base, .owner_addr = owner_addr, .len_bytes = len_bytes };
}

/* ---- self: a window over everything ---- */

struct emu_memory emu_memory_self(void)
{
    return (struct emu_memory){ .ops = &map_ops, .base = NULL, .owner_addr = 0, .len_bytes = UINT64_MAX };
}

/* ---- between two memories ---- */

static void *window_of(const struct emu_memory *mem, uint64_t addr, size_t len_bytes)
{
    return mem->ops->window ? mem->ops->window(mem, addr, len_bytes) : NULL;
}

/* A read into a window failed: 0 if the source is not there, else 1: the window's pages were not. */
static int whose_fault(const struct emu_memory *src, uint64_t addr, size_t len_bytes)
{
    uint8_t byte;

    return src->ops->read(src, addr, &byte, 1) == 0 && src->ops->read(src, addr + len_bytes - 1, &byte, 1) == 0;
}

/*
 * The kernel met a page that is not there, ours or the window's, and marks nothing: do what sets the window's mark. Is
 * the window whole?
 */
static bool touch(const struct emu_memory *mem, const volatile uint8_t *window, size_t len_bytes)
{
    for (size_t at = 0; at < len_bytes; at += EMU_PAGE_BYTES)
        (void)window[at];
    if (len_bytes > 0)
        (void)window[len_bytes - 1];
    return !emu_memory_is_broken(mem);
}

int emu_memory_copy(struct emu_memory_at dst_at, struct emu_memory_at src_at, size_t len_bytes,
                    const struct emu_flag *flag, struct emu_bounce bounce, int *fault_out)
{
    const struct emu_memory *dst = dst_at.memory;
    const struct emu_memory *src = src_at.memory;
    uint64_t dst_addr = dst_at.addr;
    uint64_t src_addr = src_at.addr;
    void *window;
    int r;

    assert(bounce.len_bytes > 0);
    r = dst->ops == src->ops && dst->ops->copy ? dst->ops->copy(dst_at, src_at, len_bytes, flag, fault_out) : -EXDEV;
    if (r != -EXDEV)
        return r;
    window = window_of(src, src_addr, len_bytes);
    if (window) {
        r = dst->ops->write(dst, dst_addr, window, len_bytes, flag);
        /*
         * Pages come and go while their file is made shorter and longer: one that is there now may have been missing.
         */
        for (int i = 0; r == -EFAULT && src->broken && touch(src, window, len_bytes) && i < RETRIES; i++)
            r = dst->ops->write(dst, dst_addr, window, len_bytes, flag);
        *fault_out = !emu_memory_is_broken(src);
        return *fault_out ? r : -EFAULT;
    }
    window = window_of(dst, dst_addr, len_bytes);
    if (window) {
        r = src->ops->read(src, src_addr, window, len_bytes);
        if (src->ops->may_wait)
            *fault_out = r == 0 && emu_memory_is_broken(dst);
        else
            *fault_out = r < 0 && len_bytes > 0 ? whose_fault(src, src_addr, len_bytes) : 0;
        if (r == 0 && *fault_out)
            return -EFAULT;
        if (r < 0 || !flag)
            return r;
        *fault_out = 1;
        return dst->ops->write(dst, dst_addr, NULL, 0, flag);
    }
    for (;;) {
        size_t part = len_bytes < bounce.len_bytes ? len_bytes : bounce.len_bytes;
        int is_last = part == len_bytes;

        *fault_out = 0;
        r = src->ops->read(src, src_addr, bounce.bytes, part);
        if (r < 0)
            return r;
        *fault_out = 1;
        r = dst->ops->write(dst, dst_addr, bounce.bytes, part, is_last ? flag : NULL);
        if (r < 0 || is_last)
            return r;
        len_bytes -= part;
        src_addr += part;
        dst_addr += part;
    }
}
