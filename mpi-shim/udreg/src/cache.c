/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Caches of registrations.
 *
 * An entry is a registered range of whole pages. States:
 *
 *   referenced, indexed  --last reference dropped-->  idle, indexed     only if its memory is watched (watch.h), else
 *           |                                                           it is removed
 *           ^  `--range lost-->  referenced, lost                       serves nobody any more
 *           |                          `--last reference dropped--> removed
 *   idle, indexed  --found--> referenced;  --evicted or range lost--> removed
 *
 * The index is an array sorted by first address; beside each entry the largest end of all up to it, so that a search
 * walks back only while something may still reach far enough. An insertion moves what is behind it: at 4096 entries
 * some 32 KiB, little beside the registration that causes it. Idle entries are also in a list, least recently used
 * first.
 *
 * Locks: `registry_lock` for the list of caches, then the cache's. The latter is recursive, because callbacks run under
 * it and may call us; an operation leaves the cache consistent before each callback and looks again after it. Nothing
 * happens on unloading or at exit: callbacks may be gone by then.
 * Source: spec/cray-runtime.md 5.1.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "emunic/abi/abi.h"

#pragma GCC visibility push(default)
#include "mpi-shim/udreg/include/udreg_pub.h"
#pragma GCC visibility pop
#include "mpi-shim/udreg/src/watch.h"

#define KNOWN_MODES                                                                                                    \
    (UDREG_CC_MODE_USE_KERNEL_CACHE | UDREG_CC_MODE_USE_LAZY_DEREG | UDREG_CC_MODE_USE_EVICT_W_UNREG |                 \
     UDREG_CC_MODE_USE_LARGE_PAGES)

struct udreg_cache;

struct entry {
    udreg_entry_t public;      /* first: what clients point to */
    struct udreg_cache *cache; /* borrowed */
    uint64_t first;            /* whole pages */
    uint64_t end;
    uint32_t refs;
    bool is_indexed;
    bool is_watched;
    TAILQ_ENTRY(entry) idle; /* while refs is 0 */
    LIST_ENTRY(entry) link;
};

struct place {
    struct entry *entry; /* borrowed from the list */
    uint64_t reach;      /* largest end of this and all earlier entries */
};

struct udreg_cache {
    LIST_ENTRY(udreg_cache) link;
    udreg_cache_attr_t attr;
    uint32_t n_users;           /* accesses without release */
    pthread_mutex_t lock;       /* recursive; of the following */
    struct udregi_watch *watch; /* owned; NULL: memory is not watched */
    LIST_HEAD(, entry) entries; /* owned */
    uint32_t n_entries;         /* at most attr.max_entries, with those being made */
    TAILQ_HEAD(, entry) idle;
    struct place *index; /* owned; attr.max_entries places */
    uint32_t n_indexed;
    uint64_t n_hits;
    uint64_t n_misses;
    uint64_t n_evicted;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, udreg_cache) registry = LIST_HEAD_INITIALIZER(registry);

/* ---- index ---- */

/* Number of entries that begin at or before an address. */
static uint32_t count_up_to(const struct udreg_cache *c, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = c->n_indexed;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (c->index[middle].entry->first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *find_covering(const struct udreg_cache *c, uint64_t first, uint64_t end)
{
    for (uint32_t i = count_up_to(c, first); i > 0 && c->index[i - 1].reach >= end; i--) {
        if (c->index[i - 1].entry->end >= end)
            return c->index[i - 1].entry;
    }
    return NULL;
}

static struct entry *find_overlapping(const struct udreg_cache *c, uint64_t first, uint64_t end)
{
    for (uint32_t i = count_up_to(c, end - 1); i > 0 && c->index[i - 1].reach > first; i--) {
        if (c->index[i - 1].entry->end > first)
            return c->index[i - 1].entry;
    }
    return NULL;
}

static void renew_reach(struct udreg_cache *c, uint32_t from)
{
    for (uint32_t i = from; i < c->n_indexed; i++) {
        uint64_t before = i > 0 ? c->index[i - 1].reach : 0;
        uint64_t end = c->index[i].entry->end;

        c->index[i].reach = end > before ? end : before;
    }
}

static void index_entry(struct udreg_cache *c, struct entry *e)
{
    uint32_t at = count_up_to(c, e->first);

    memmove(&c->index[at + 1], &c->index[at], (c->n_indexed - at) * sizeof(*c->index));
    c->index[at].entry = e;
    c->n_indexed++;
    e->is_indexed = true;
    renew_reach(c, at);
}

static void unindex_entry(struct udreg_cache *c, struct entry *e)
{
    uint32_t at = count_up_to(c, e->first) - 1;

    while (c->index[at].entry != e) /* others may begin there too */
        at--;
    c->n_indexed--;
    memmove(&c->index[at], &c->index[at + 1], (c->n_indexed - at) * sizeof(*c->index));
    e->is_indexed = false;
    renew_reach(c, at);
}

/* ---- entries ---- */

/* For entries without references. Calls back. */
static void remove_entry(struct udreg_cache *c, struct entry *e)
{
    void *data = e->public.device_data;

    if (e->is_indexed)
        unindex_entry(c, e);
    /* A neighbour that shares pages still needs them watched. */
    if (e->is_watched && !find_overlapping(c, e->first, e->end))
        udregi_watch_remove(c->watch, e->first, e->end);
    LIST_REMOVE(e, link);
    c->n_entries--;
    free(e);
    if (data)
        c->attr.device_dereg_func(data, c->attr.dreg_context);
}

static bool evict_one(struct udreg_cache *c)
{
    struct entry *e = TAILQ_FIRST(&c->idle);

    if (!e)
        return false;
    TAILQ_REMOVE(&c->idle, e, idle);
    c->n_evicted++;
    remove_entry(c, e);
    return true;
}

static void lose(struct udreg_cache *c, uint64_t first, uint64_t end)
{
    struct entry *e;

    while ((e = find_overlapping(c, first, end))) {
        unindex_entry(c, e);
        e->is_watched = false;
        if (e->refs == 0) {
            TAILQ_REMOVE(&c->idle, e, idle);
            remove_entry(c, e);
        }
    }
}

/* Take note of what was unmapped since the last time. */
static void catch_up(struct udreg_cache *c)
{
    struct udregi_range lost[UDREGI_LOST_MAX];
    bool all_lost;
    uint32_t n;

    if (!c->watch)
        return;
    n = udregi_watch_take(c->watch, lost, &all_lost);
    if (all_lost)
        lose(c, 0, UINT64_MAX);
    for (uint32_t i = 0; i < n; i++)
        lose(c, lost[i].first, lost[i].end);
}

static void hold(struct udreg_cache *c, struct entry *e)
{
    if (e->refs++ == 0)
        TAILQ_REMOVE(&c->idle, e, idle);
}

static udreg_return_t make_entry(struct udreg_cache *c, uint64_t first, uint64_t end, struct entry **entry_out)
{
    struct entry *e;
    void *data;

    if (c->n_entries == c->attr.max_entries && !evict_one(c))
        return UDREG_RC_NO_SPACE;
    e = calloc(1, sizeof(*e));
    if (!e)
        return UDREG_RC_NO_SPACE;
    c->n_entries++;
    data = c->attr.device_reg_func((void *)(uintptr_t)first, end - first, c->attr.reg_context);
    if (!data || data == UDREG_DEVICE_REG_FAILED) {
        c->n_entries--;
        free(e);
        return data ? UDREG_RC_ERROR_NO_DEVICE : UDREG_RC_NO_SPACE;
    }
    *e = (struct entry){ .public.device_data = data, .cache = c, .first = first, .end = end, .refs = 1 };
    /* After the registration, which may itself map something else there (libugni's adopting). */
    e->is_watched = c->watch && udregi_watch_add(c->watch, first, end) == 0;
    LIST_INSERT_HEAD(&c->entries, e, link);
    index_entry(c, e);
    *entry_out = e;
    return UDREG_RC_SUCCESS;
}

/* ---- caches ---- */

static void unlock_cache(struct udreg_cache *c)
{
    pthread_mutex_unlock(&c->lock);
}

/* The live cache of a handle, locked; NULL if it is none. */
static struct udreg_cache *lock_cache(udreg_cache_handle_t handle)
{
    struct udreg_cache *c;

    pthread_mutex_lock(&registry_lock);
    LIST_FOREACH(c, &registry, link) {
        if (c == handle)
            break;
    }
    pthread_mutex_unlock(&registry_lock);
    if (c)
        pthread_mutex_lock(&c->lock);
    return c;
}

static struct udreg_cache *find_cache(const char *name)
{
    struct udreg_cache *c;

    LIST_FOREACH(c, &registry, link) {
        if (strcmp(c->attr.cache_name, name) == 0)
            return c;
    }
    return NULL;
}

static bool is_valid(const udreg_cache_attr_t *attr)
{
    size_t len = strnlen(attr->cache_name, UDREG_MAX_CACHENAME_LEN);

    return len > 0 && len < UDREG_MAX_CACHENAME_LEN && attr->max_entries > 0 && (attr->modes & ~KNOWN_MODES) == 0 &&
           attr->device_reg_func && attr->device_dereg_func;
}

static void free_cache(struct udreg_cache *c)
{
    if (!c)
        return;
    udregi_watch_destroy(c->watch);
    pthread_mutex_destroy(&c->lock);
    free(c->index);
    free(c);
}

static struct udreg_cache *new_cache(const udreg_cache_attr_t *attr)
{
    struct udreg_cache *c = calloc(1, sizeof(*c));
    pthread_mutexattr_t recursive;

    if (!c)
        return NULL;
    c->attr = *attr;
    LIST_INIT(&c->entries);
    TAILQ_INIT(&c->idle);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&c->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    c->index = calloc(attr->max_entries, sizeof(*c->index));
    if (!c->index) {
        free_cache(c);
        return NULL;
    }
    /* Without it every idle entry goes at once: slower, not wrong. */
    if (attr->modes & UDREG_CC_MODE_USE_KERNEL_CACHE && udregi_watch_create(&c->watch) < 0)
        c->watch = NULL;
    return c;
}

udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t *attr)
{
    udreg_return_t rc = UDREG_RC_INVALID_PARAM;
    struct udreg_cache *c = NULL;

    if (!attr || !is_valid(attr))
        return UDREG_RC_INVALID_PARAM;
    pthread_mutex_lock(&registry_lock);
    if (!find_cache(attr->cache_name)) {
        c = new_cache(attr);
        rc = c ? UDREG_RC_SUCCESS : UDREG_RC_NO_SPACE;
    }
    if (c)
        LIST_INSERT_HEAD(&registry, c, link);
    pthread_mutex_unlock(&registry_lock);
    return rc;
}

udreg_return_t UDREG_CacheAccess(char *name, udreg_cache_handle_t *handle)
{
    struct udreg_cache *c;

    if (!name || !handle)
        return UDREG_RC_INVALID_PARAM;
    pthread_mutex_lock(&registry_lock);
    c = find_cache(name);
    if (c) {
        c->n_users++;
        *handle = c;
    }
    pthread_mutex_unlock(&registry_lock);
    return c ? UDREG_RC_SUCCESS : UDREG_RC_NO_MATCH;
}

udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t handle)
{
    udreg_return_t rc = UDREG_RC_INVALID_PARAM;
    struct udreg_cache *c;

    pthread_mutex_lock(&registry_lock);
    LIST_FOREACH(c, &registry, link) {
        if (c == handle && c->n_users > 0) {
            c->n_users--;
            rc = UDREG_RC_SUCCESS;
            break;
        }
    }
    pthread_mutex_unlock(&registry_lock);
    return rc;
}

udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t handle)
{
    struct udreg_cache *c = lock_cache(handle);
    struct entry *e;

    if (!c)
        return UDREG_RC_INVALID_PARAM;
    unlock_cache(c);
    pthread_mutex_lock(&registry_lock);
    LIST_REMOVE(c, link);
    pthread_mutex_unlock(&registry_lock);
    while ((e = LIST_FIRST(&c->entries)))
        remove_entry(c, e);
    if (c->attr.destructor_callback)
        c->attr.destructor_callback(c->attr.destructor_context);
    free_cache(c);
    return UDREG_RC_SUCCESS;
}

/* ---- registrations ---- */

udreg_return_t UDREG_Register(udreg_cache_handle_t handle, void *addr, uint64_t length, udreg_entry_t **entry)
{
    uint64_t first = emu_page_down((uint64_t)(uintptr_t)addr);
    uint64_t end = emu_page_up((uint64_t)(uintptr_t)addr + length);
    udreg_return_t rc = UDREG_RC_SUCCESS;
    struct udreg_cache *c;
    struct entry *e;

    if (!entry || length == 0 || length > emu_page_down(UINT64_MAX) || end <= first)
        return UDREG_RC_INVALID_PARAM;
    c = lock_cache(handle);
    if (!c)
        return UDREG_RC_INVALID_PARAM;
    catch_up(c);
    e = find_covering(c, first, end);
    if (e) {
        c->n_hits++;
        hold(c, e);
    } else {
        c->n_misses++;
        rc = make_entry(c, first, end, &e);
    }
    if (rc == UDREG_RC_SUCCESS)
        *entry = &e->public;
    unlock_cache(c);
    return rc;
}

static udreg_return_t drop(udreg_cache_handle_t handle, udreg_entry_t *entry, bool is_unregister)
{
    struct entry *e = (struct entry *)entry;
    struct udreg_cache *c = entry ? lock_cache(handle) : NULL;
    bool is_kept;

    if (!c)
        return UDREG_RC_INVALID_PARAM;
    if (e->cache != c || e->refs == 0) {
        unlock_cache(c);
        return UDREG_RC_INVALID_PARAM;
    }
    catch_up(c);
    is_kept = e->is_watched && (!is_unregister || c->attr.modes & UDREG_CC_MODE_USE_LAZY_DEREG);
    if (--e->refs == 0) {
        if (is_kept)
            TAILQ_INSERT_TAIL(&c->idle, e, idle);
        else
            remove_entry(c, e);
    }
    if (is_unregister && c->attr.modes & UDREG_CC_MODE_USE_EVICT_W_UNREG && c->n_entries == c->attr.max_entries)
        evict_one(c);
    unlock_cache(c);
    return UDREG_RC_SUCCESS;
}

udreg_return_t UDREG_Unregister(udreg_cache_handle_t handle, udreg_entry_t *entry)
{
    return drop(handle, entry, true);
}

udreg_return_t UDREG_DecrRefcount(udreg_cache_handle_t handle, udreg_entry_t *entry)
{
    return drop(handle, entry, false);
}

udreg_return_t UDREG_Evict(udreg_cache_handle_t handle)
{
    struct udreg_cache *c = lock_cache(handle);
    bool is_done;

    if (!c)
        return UDREG_RC_INVALID_PARAM;
    catch_up(c);
    is_done = evict_one(c);
    unlock_cache(c);
    return is_done ? UDREG_RC_SUCCESS : UDREG_RC_NO_MATCH;
}

udreg_return_t UDREG_GetStat(udreg_cache_handle_t handle, udreg_stat_t statistic, uint64_t *value)
{
    udreg_return_t rc = UDREG_RC_SUCCESS;
    struct udreg_cache *c = value ? lock_cache(handle) : NULL;

    if (!c)
        return UDREG_RC_INVALID_PARAM;
    switch (statistic) {
    case UDREG_STAT_CACHE_HIT:
        *value = c->n_hits;
        break;
    case UDREG_STAT_CACHE_MISS:
        *value = c->n_misses;
        break;
    case UDREG_STAT_CACHE_EVICTED:
        *value = c->n_evicted;
        break;
    default:
        rc = UDREG_RC_INVALID_PARAM;
    }
    unlock_cache(c);
    return rc;
}
