/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udreg: a cache of memory registrations. A registration costs more than a small transfer, so libraries keep the ones
 * they have made and ask here first. The cache knows nothing of a network: it calls the functions it was given.
 *
 * Entries cover whole pages. One entry serves every request inside its range. What tells the cache that memory was
 * unmapped is in UDREG_CC_MODE_USE_KERNEL_CACHE.
 *
 * For every call here: thread-safe; callbacks run in the caller's thread and may call back into the same cache.
 * UDREG_RC_INVALID_PARAM for a NULL argument or for what is not a live cache. Never prints.
 *
 * After fork() the registrations are the parent's; a child must not use its copies of the caches.
 *
 * Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 5.1). The vendor header was not seen;
 * numbers are our own but for UDREG_RC_SUCCESS (0) and UDREG_RC_NO_SPACE (2), so programs must be compiled against
 * this header.
 */
#ifndef UDREG_PUB_H
#define UDREG_PUB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest name of a cache, with its NUL. */
#define UDREG_MAX_CACHENAME_LEN 64

typedef enum udreg_return {
    UDREG_RC_SUCCESS = 0,
    UDREG_RC_INVALID_PARAM = 1,
    UDREG_RC_NO_SPACE = 2,        /* no room in the cache, or none on the device */
    UDREG_RC_ERROR_NO_DEVICE = 3, /* the registration callback failed */
    UDREG_RC_NO_MATCH = 4,        /* nothing of that kind there */
} udreg_return_t;

/* ---- modes of a cache, or-ed ---- */

/**
 * The kernel tells when registered memory is unmapped or moved, so an unreferenced entry may stay in the cache. Here by
 * userfaultfd (the original has a driver, kdreg): from munmap(), mremap(), brk() or mmap() over it on, the entry serves
 * nobody. Where userfaultfd cannot watch the memory (kernel before 5.19 for shared pages, a filter that
 * forbids the call, memory that somebody else watches), the entry goes as soon as nobody references it.
 */
#define UDREG_CC_MODE_USE_KERNEL_CACHE  0x1u
/** UDREG_Unregister() keeps the entry, as UDREG_DecrRefcount() does. */
#define UDREG_CC_MODE_USE_LAZY_DEREG    0x2u
/** UDREG_Unregister() also evicts an entry when the cache is full, so that the next miss need not. */
#define UDREG_CC_MODE_USE_EVICT_W_UNREG 0x4u
/** The original aligns entries to large pages. Here without effect: entries cover whole pages of 4 KiB. */
#define UDREG_CC_MODE_USE_LARGE_PAGES   0x8u

/** What a registration callback returns when it failed; NULL means that the device has no room. */
#define UDREG_DEVICE_REG_FAILED ((void *)(intptr_t)-1)

typedef struct udreg_cache_attr {
    char cache_name[UDREG_MAX_CACHENAME_LEN]; /* of this process; not empty, with NUL */
    uint32_t max_entries;                     /* at least 1 */
    uint32_t modes;                           /* UDREG_CC_MODE_* */
    uint32_t debug_mode;                      /* ignored */
    uint32_t debug_rank;                      /* ignored */
    void *reg_context;                        /* passed to the callbacks */
    void *dreg_context;
    void *destructor_context;
    /** Register whole pages. @return any pointer but NULL and UDREG_DEVICE_REG_FAILED: the entry's device_data. */
    void *(*device_reg_func)(void *addr, uint64_t length, void *reg_context);
    /** Undo it. The result is ignored. */
    uint32_t (*device_dereg_func)(void *device_data, void *dreg_context);
    /** Called when the cache is destroyed. May be NULL. */
    void (*destructor_callback)(void *destructor_context);
} udreg_cache_attr_t;

/** A cache; programs also write it as a pointer to the structure, of which they see nothing else. */
typedef struct udreg_cache *udreg_cache_handle_t;

/** An entry; valid while the caller holds a reference. */
typedef struct udreg_entry {
    /** From the registration callback. The holder may replace it, also by NULL: then nothing is de-registered. */
    void *device_data;
} udreg_entry_t;

typedef enum udreg_stat {
    UDREG_STAT_CACHE_HIT,     /* registrations that were there */
    UDREG_STAT_CACHE_MISS,    /* registrations that were not */
    UDREG_STAT_CACHE_EVICTED, /* unreferenced entries removed to make room */
} udreg_stat_t;

/**
 * Create a cache. Handles come from UDREG_CacheAccess(). The attributes are copied.
 * @retval UDREG_RC_INVALID_PARAM  Also: name empty, without NUL or taken; no entries; unknown mode; a callback is
 *                                 missing.
 * @retval UDREG_RC_NO_SPACE       Out of memory.
 */
udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t *cache_attr);

/** A handle to the cache of that name; all are equal. @retval UDREG_RC_NO_MATCH no such cache. */
udreg_return_t UDREG_CacheAccess(char *cache_name, udreg_cache_handle_t *cache_handle);

/**
 * Take a reference to an entry that covers a range, made now if there is none.
 *
 * A full cache evicts its least recently used unreferenced entry first.
 *
 * @param[out] entry  Written on success.
 * @retval UDREG_RC_INVALID_PARAM     Also: length 0, or the range wraps.
 * @retval UDREG_RC_NO_SPACE          Every entry is referenced, the callback returned NULL, or out of memory.
 *                                    UDREG_Evict() may help.
 * @retval UDREG_RC_ERROR_NO_DEVICE   The callback returned UDREG_DEVICE_REG_FAILED.
 */
udreg_return_t UDREG_Register(udreg_cache_handle_t cache_handle, void *addr, uint64_t length, udreg_entry_t **entry);

/**
 * Drop a reference. Without references the entry stays if UDREG_CC_MODE_USE_LAZY_DEREG is set and its memory watched.
 */
udreg_return_t UDREG_Unregister(udreg_cache_handle_t cache_handle, udreg_entry_t *entry);

/** Drop a reference. Without references the entry stays if its memory is watched. */
udreg_return_t UDREG_DecrRefcount(udreg_cache_handle_t cache_handle, udreg_entry_t *entry);

/** Remove the least recently used unreferenced entry. @retval UDREG_RC_NO_MATCH there is none. */
udreg_return_t UDREG_Evict(udreg_cache_handle_t cache_handle);

/** @retval UDREG_RC_INVALID_PARAM also: no such figure. */
udreg_return_t UDREG_GetStat(udreg_cache_handle_t cache_handle, udreg_stat_t statistic, uint64_t *value);

/** Give a handle back. The cache and its entries stay. @retval UDREG_RC_INVALID_PARAM also: more than accesses. */
udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t cache_handle);

/**
 * De-register all entries, referenced or not, then call the destructor callback. Entries and handles are dead.
 * @note Other threads must not be inside a call on this cache. Caches that still exist at exit are left alone.
 */
udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t cache_handle);

#ifdef __cplusplus
}
#endif

#endif
