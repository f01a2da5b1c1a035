/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache: what it registers, what it keeps, what it forgets. The device is a count here.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <udreg_pub.h>

#define PAGE    4096ull
#define N_PAGES 64u

/* What the callbacks saw, and what the registration callback shall answer. */
struct device {
    udreg_cache_handle_t cache;
    uint32_t n_registered;
    uint32_t n_deregistered;
    uint64_t first;
    uint64_t length;
    void *answer; /* NULL: `mark` */
    bool has_no_room;
    bool evicts; /* call back into the cache */
    void *deregistered;
    uint32_t n_destroyed;
};

static int mark;
static unsigned char *pages; /* N_PAGES, mapped anew by each test */

static void *register_pages(void *addr, uint64_t length, void *context)
{
    struct device *d = context;

    d->n_registered++;
    d->first = (uint64_t)(uintptr_t)addr;
    d->length = length;
    if (d->evicts)
        UDREG_Evict(d->cache);
    if (d->has_no_room)
        return NULL;
    return d->answer ? d->answer : &mark;
}

static uint32_t deregister_pages(void *data, void *context)
{
    struct device *d = context;

    d->n_deregistered++;
    d->deregistered = data;
    return 0;
}

static void destroyed(void *context)
{
    struct device *d = context;

    d->n_destroyed++;
}

static udreg_cache_attr_t attributes(struct device *d, const char *name, uint32_t modes, uint32_t max_entries)
{
    udreg_cache_attr_t attr = { .max_entries = max_entries,
                                .modes = modes,
                                .reg_context = d,
                                .dreg_context = d,
                                .destructor_context = d,
                                .device_reg_func = register_pages,
                                .device_dereg_func = deregister_pages,
                                .destructor_callback = destroyed };

    snprintf(attr.cache_name, sizeof(attr.cache_name), "%s", name);
    return attr;
}

static void open_cache(struct device *d, uint32_t modes, uint32_t max_entries)
{
    udreg_cache_attr_t attr = attributes(d, "test", modes, max_entries);

    *d = (struct device){ 0 };
    assert_int_equal(UDREG_CacheCreate(&attr), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_CacheAccess("test", &d->cache), UDREG_RC_SUCCESS);
    pages = mmap(NULL, N_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
}

static void close_cache(struct device *d)
{
    assert_int_equal(UDREG_CacheDestroy(d->cache), UDREG_RC_SUCCESS);
    assert_int_equal(d->n_deregistered, d->n_registered);
    assert_int_equal(munmap(pages, N_PAGES * PAGE), 0);
}

#define WATCHED (UDREG_CC_MODE_USE_KERNEL_CACHE | UDREG_CC_MODE_USE_LAZY_DEREG)

static udreg_entry_t *take(struct device *d, void *addr, uint64_t length)
{
    udreg_entry_t *e = NULL;

    assert_int_equal(UDREG_Register(d->cache, addr, length, &e), UDREG_RC_SUCCESS);
    assert_non_null(e);
    return e;
}

static uint64_t stat_of(struct device *d, udreg_stat_t which)
{
    uint64_t value = UINT64_MAX;

    assert_int_equal(UDREG_GetStat(d->cache, which, &value), UDREG_RC_SUCCESS);
    return value;
}

/* Whether this kernel lets us watch: without, idle entries go at once, which has a test of its own. */
static bool can_watch(void)
{
    struct device d;
    udreg_entry_t *e;
    bool is_kept;

    open_cache(&d, WATCHED, 4);
    e = take(&d, pages, PAGE);
    UDREG_DecrRefcount(d.cache, e);
    is_kept = d.n_deregistered == 0;
    UDREG_CacheDestroy(d.cache);
    munmap(pages, N_PAGES * PAGE);
    return is_kept;
}

/* ---- caches ---- */

static void test_a_name_is_taken_once(void **state)
{
    struct device d;
    udreg_cache_attr_t again = attributes(&d, "test", 0, 4);

    (void)state;
    open_cache(&d, 0, 4);
    assert_int_equal(UDREG_CacheCreate(&again), UDREG_RC_INVALID_PARAM);
    close_cache(&d);
    assert_int_equal(UDREG_CacheCreate(&again), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_CacheAccess("test", &d.cache), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_CacheDestroy(d.cache), UDREG_RC_SUCCESS);
}

static void test_wrong_attributes_are_refused(void **state)
{
    struct device d;
    udreg_cache_attr_t good = attributes(&d, "wrong", 0, 4);
    udreg_cache_attr_t wrong[6];

    (void)state;
    for (size_t i = 0; i < 6; i++)
        wrong[i] = good;
    wrong[0].cache_name[0] = '\0';
    memset(wrong[1].cache_name, 'x', sizeof(wrong[1].cache_name));
    wrong[2].max_entries = 0;
    wrong[3].modes = 0x100;
    wrong[4].device_reg_func = NULL;
    wrong[5].device_dereg_func = NULL;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(UDREG_CacheCreate(&wrong[i]), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_CacheCreate(NULL), UDREG_RC_INVALID_PARAM);
}

static void test_access_finds_a_cache_by_name_and_release_gives_back(void **state)
{
    struct device d;
    struct udreg_cache *second = NULL; /* as libfabric keeps it */

    (void)state;
    open_cache(&d, 0, 4);
    assert_int_equal(UDREG_CacheAccess("test", &second), UDREG_RC_SUCCESS);
    assert_ptr_equal(second, d.cache);
    assert_int_equal(UDREG_CacheAccess("other", &second), UDREG_RC_NO_MATCH);
    assert_int_equal(UDREG_CacheRelease(d.cache), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_CacheRelease(d.cache), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_CacheRelease(d.cache), UDREG_RC_INVALID_PARAM);
    close_cache(&d);
}

static void test_a_dead_handle_is_refused(void **state)
{
    struct device d;
    udreg_entry_t *e = NULL;
    uint64_t value;

    (void)state;
    open_cache(&d, 0, 4);
    close_cache(&d);
    assert_int_equal(UDREG_Register(d.cache, &mark, 1, &e), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_Register(NULL, &mark, 1, &e), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_Evict(d.cache), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_GetStat(d.cache, UDREG_STAT_CACHE_HIT, &value), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_CacheRelease(d.cache), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_CacheDestroy(d.cache), UDREG_RC_INVALID_PARAM);
}

static void test_destroying_deregisters_everything_then_tells(void **state)
{
    struct device d;

    (void)state;
    open_cache(&d, WATCHED, 4);
    take(&d, pages, PAGE);
    UDREG_DecrRefcount(d.cache, take(&d, pages + 8 * PAGE, PAGE));
    close_cache(&d);
    assert_int_equal(d.n_deregistered, 2);
    assert_int_equal(d.n_destroyed, 1);
}

/* ---- registering ---- */

static void test_a_miss_registers_whole_pages(void **state)
{
    struct device d;
    udreg_entry_t *e;

    (void)state;
    open_cache(&d, 0, 4);
    e = take(&d, pages + PAGE + 100, 2 * PAGE);
    assert_int_equal(d.first, (uintptr_t)pages + PAGE);
    assert_int_equal(d.length, 3 * PAGE);
    assert_ptr_equal(e->device_data, &mark);
    close_cache(&d);
}

static void test_a_covered_range_hits(void **state)
{
    struct device d;
    udreg_entry_t *e;

    (void)state;
    open_cache(&d, 0, 8);
    e = take(&d, pages, 16 * PAGE);
    take(&d, pages + 2 * PAGE, PAGE); /* a hit itself */
    assert_ptr_equal(take(&d, pages + 15 * PAGE + 7, PAGE - 7), e);
    assert_ptr_equal(take(&d, pages, 16 * PAGE), e);
    assert_int_equal(d.n_registered, 1);
    take(&d, pages + 15 * PAGE, PAGE + 1); /* reaches further */
    assert_int_equal(d.n_registered, 2);
    assert_int_equal(stat_of(&d, UDREG_STAT_CACHE_HIT), 3);
    assert_int_equal(stat_of(&d, UDREG_STAT_CACHE_MISS), 2);
    close_cache(&d);
}

static void test_a_long_entry_is_found_behind_short_ones(void **state)
{
    struct device d;
    udreg_entry_t *e;

    (void)state;
    open_cache(&d, 0, N_PAGES);
    for (uint32_t i = 1; i < 30; i++) /* first, so that the long one does not cover them */
        take(&d, pages + i * PAGE, PAGE);
    e = take(&d, pages, 40 * PAGE);
    assert_ptr_equal(take(&d, pages + 10 * PAGE, 20 * PAGE), e);
    assert_int_equal(d.n_registered, 30);
    close_cache(&d);
}

static void test_callback_results_become_codes(void **state)
{
    struct device d;
    udreg_entry_t *e = NULL;

    (void)state;
    open_cache(&d, 0, 1);
    d.has_no_room = true;
    assert_int_equal(UDREG_Register(d.cache, pages, 1, &e), UDREG_RC_NO_SPACE);
    d.has_no_room = false;
    d.answer = UDREG_DEVICE_REG_FAILED;
    assert_int_equal(UDREG_Register(d.cache, pages, 1, &e), UDREG_RC_ERROR_NO_DEVICE);
    assert_null(e);
    d.answer = NULL;
    take(&d, pages, 1); /* the failures left no entry: there is room for one */
    d.n_registered -= 2;
    close_cache(&d);
}

static void test_wrong_ranges_are_refused(void **state)
{
    struct device d;
    udreg_entry_t *e = NULL;

    (void)state;
    open_cache(&d, 0, 4);
    assert_int_equal(UDREG_Register(d.cache, pages, 0, &e), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_Register(d.cache, pages, UINT64_MAX, &e), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_Register(d.cache, pages, UINT64_MAX - PAGE, &e), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_Register(d.cache, pages, 1, NULL), UDREG_RC_INVALID_PARAM);
    assert_int_equal(d.n_registered, 0);
    close_cache(&d);
}

/* ---- references ---- */

static void test_more_drops_than_references_are_refused(void **state)
{
    struct device d;
    udreg_entry_t *e;

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED, 4);
    e = take(&d, pages, PAGE);
    take(&d, pages, PAGE);
    assert_int_equal(UDREG_DecrRefcount(d.cache, e), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_Unregister(d.cache, e), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_Unregister(d.cache, e), UDREG_RC_INVALID_PARAM);
    assert_int_equal(UDREG_DecrRefcount(d.cache, NULL), UDREG_RC_INVALID_PARAM);
    close_cache(&d);
}

static void test_without_notification_the_last_drop_deregisters(void **state)
{
    struct device d;
    udreg_entry_t *e;

    (void)state;
    open_cache(&d, UDREG_CC_MODE_USE_LAZY_DEREG, 4);
    e = take(&d, pages, PAGE);
    take(&d, pages, PAGE);
    UDREG_DecrRefcount(d.cache, e);
    assert_int_equal(d.n_deregistered, 0);
    UDREG_DecrRefcount(d.cache, e);
    assert_int_equal(d.n_deregistered, 1);
    close_cache(&d);
}

static void test_lazy_unregister_keeps_and_eager_does_not(void **state)
{
    struct device d;

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED, 4);
    UDREG_Unregister(d.cache, take(&d, pages, PAGE));
    UDREG_Unregister(d.cache, take(&d, pages, PAGE));
    assert_int_equal(d.n_registered, 1);
    assert_int_equal(d.n_deregistered, 0);
    close_cache(&d);
    open_cache(&d, UDREG_CC_MODE_USE_KERNEL_CACHE, 4);
    UDREG_DecrRefcount(d.cache, take(&d, pages, PAGE));
    assert_int_equal(d.n_deregistered, 0);
    UDREG_Unregister(d.cache, take(&d, pages, PAGE));
    assert_int_equal(d.n_deregistered, 1);
    close_cache(&d);
}

static void test_replaced_device_data_is_what_gets_deregistered(void **state)
{
    struct device d;
    udreg_entry_t *e;
    int other;

    (void)state;
    open_cache(&d, 0, 4);
    e = take(&d, pages, PAGE);
    e->device_data = &other;
    UDREG_Unregister(d.cache, e);
    assert_ptr_equal(d.deregistered, &other);
    e = take(&d, pages, PAGE);
    e->device_data = NULL;
    UDREG_Unregister(d.cache, e);
    assert_int_equal(d.n_deregistered, 1);
    d.n_registered--;
    close_cache(&d);
}

/* ---- room ---- */

static void test_a_full_cache_evicts_what_was_unused_longest(void **state)
{
    struct device d;
    udreg_entry_t *e[3];

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED, 3);
    for (int i = 0; i < 3; i++)
        e[i] = take(&d, pages + 2 * (unsigned)i * PAGE, PAGE);
    UDREG_DecrRefcount(d.cache, e[1]);
    UDREG_DecrRefcount(d.cache, e[0]);
    UDREG_DecrRefcount(d.cache, take(&d, pages + 2 * PAGE, PAGE)); /* e[1] was used since */
    e[1]->device_data = NULL;                                      /* would not be counted */
    take(&d, pages + 20 * PAGE, PAGE);
    assert_int_equal(d.n_deregistered, 1);
    assert_int_equal(stat_of(&d, UDREG_STAT_CACHE_EVICTED), 1);
    take(&d, pages, PAGE); /* e[0] is gone; e[1] goes */
    assert_int_equal(d.n_registered, 5);
    d.n_registered--;
    close_cache(&d);
}

static void test_a_cache_full_of_references_has_no_room(void **state)
{
    struct device d;
    udreg_entry_t *e = NULL;

    (void)state;
    open_cache(&d, WATCHED, 2);
    take(&d, pages, PAGE);
    take(&d, pages + PAGE, PAGE);
    assert_int_equal(UDREG_Register(d.cache, pages + 2 * PAGE, PAGE, &e), UDREG_RC_NO_SPACE);
    assert_null(e);
    assert_int_equal(UDREG_Evict(d.cache), UDREG_RC_NO_MATCH);
    take(&d, pages, PAGE); /* hits need none */
    close_cache(&d);
}

static void test_evict_removes_one_entry_that_nobody_uses(void **state)
{
    struct device d;

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED, 4);
    UDREG_DecrRefcount(d.cache, take(&d, pages, PAGE));
    take(&d, pages + 2 * PAGE, PAGE);
    assert_int_equal(UDREG_Evict(d.cache), UDREG_RC_SUCCESS);
    assert_int_equal(UDREG_Evict(d.cache), UDREG_RC_NO_MATCH);
    assert_int_equal(d.n_deregistered, 1);
    close_cache(&d);
}

static void test_a_callback_may_evict(void **state)
{
    struct device d;

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED, 4);
    for (unsigned i = 0; i < 3; i++)
        UDREG_DecrRefcount(d.cache, take(&d, pages + i * PAGE, PAGE));
    d.evicts = true;
    take(&d, pages + 8 * PAGE, PAGE);
    assert_int_equal(d.n_deregistered, 1);
    take(&d, pages + 2 * PAGE, PAGE);
    assert_int_equal(d.n_registered, 4);
    close_cache(&d);
}

static void test_unregister_makes_room_when_asked(void **state)
{
    struct device d;

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED | UDREG_CC_MODE_USE_EVICT_W_UNREG, 2);
    UDREG_Unregister(d.cache, take(&d, pages, PAGE));
    assert_int_equal(d.n_deregistered, 0);
    UDREG_Unregister(d.cache, take(&d, pages + PAGE, PAGE));
    assert_int_equal(d.n_deregistered, 1);
    close_cache(&d);
}

/* ---- memory that goes away ---- */

static void remap(unsigned char *at, uint64_t length)
{
    assert_ptr_equal(mmap(at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
}

static void test_unmapped_memory_is_registered_anew(void **state)
{
    struct device d;

    (void)state;
    open_cache(&d, WATCHED, 8);
    UDREG_DecrRefcount(d.cache, take(&d, pages, 4 * PAGE));
    UDREG_DecrRefcount(d.cache, take(&d, pages + 8 * PAGE, PAGE));
    assert_int_equal(munmap(pages + 2 * PAGE, PAGE), 0);
    remap(pages + 2 * PAGE, PAGE);
    take(&d, pages, PAGE);
    assert_int_equal(d.n_registered, 3);
    take(&d, pages + 8 * PAGE, PAGE);
    close_cache(&d);
}

static void test_memory_mapped_over_is_registered_anew(void **state)
{
    struct device d;

    (void)state;
    open_cache(&d, WATCHED, 8);
    UDREG_DecrRefcount(d.cache, take(&d, pages, 4 * PAGE));
    remap(pages, 4 * PAGE);
    take(&d, pages, 4 * PAGE);
    assert_int_equal(d.n_registered, 2);
    close_cache(&d);
}

static void test_moved_memory_is_registered_anew(void **state)
{
    struct device d;
    unsigned char *moved;

    (void)state;
    open_cache(&d, WATCHED, 8);
    UDREG_DecrRefcount(d.cache, take(&d, pages, 4 * PAGE));
    moved = mremap(pages, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, pages + 32 * PAGE);
    assert_ptr_equal(moved, pages + 32 * PAGE);
    remap(pages, 4 * PAGE);
    take(&d, pages, 4 * PAGE);
    assert_int_equal(d.n_registered, 2);
    close_cache(&d);
}

static void test_shared_memory_is_watched_too(void **state)
{
    struct device d;
    unsigned char *shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(shared, MAP_FAILED);
    open_cache(&d, WATCHED, 8);
    UDREG_DecrRefcount(d.cache, take(&d, shared, 4 * PAGE));
    assert_int_equal(munmap(shared, 4 * PAGE), 0);
    remap(shared, 4 * PAGE);
    take(&d, shared, 4 * PAGE);
    assert_int_equal(d.n_registered, 2);
    close_cache(&d);
    munmap(shared, 4 * PAGE);
}

static void test_an_entry_in_use_is_deregistered_at_its_last_drop(void **state)
{
    struct device d;
    udreg_entry_t *e;

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED, 8);
    e = take(&d, pages, 4 * PAGE);
    remap(pages, PAGE);
    take(&d, pages, PAGE); /* not by the old one */
    assert_int_equal(d.n_registered, 2);
    assert_int_equal(d.n_deregistered, 0);
    UDREG_DecrRefcount(d.cache, e);
    assert_int_equal(d.n_deregistered, 1);
    close_cache(&d);
}

static void test_more_unmappings_than_are_noted_forget_everything(void **state)
{
    struct device d;

    (void)state;
    open_cache(&d, WATCHED, N_PAGES + 1);
    for (unsigned i = 0; i < N_PAGES; i++)
        UDREG_DecrRefcount(d.cache, take(&d, pages + i * PAGE, PAGE));
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < N_PAGES - 1; i++) {
            munmap(pages + i * PAGE, PAGE);
            remap(pages + i * PAGE, PAGE);
        }
        for (unsigned i = 0; i < N_PAGES - 1; i++)
            UDREG_DecrRefcount(d.cache, take(&d, pages + i * PAGE, PAGE));
    }
    assert_int_equal(stat_of(&d, UDREG_STAT_CACHE_HIT), 0);
    close_cache(&d);
}

static void test_an_overlapping_neighbour_stays_watched(void **state)
{
    struct device d;
    udreg_entry_t *long_one, *e;

    (void)state;
    if (!can_watch())
        return;
    open_cache(&d, WATCHED, 8);
    e = take(&d, pages, 2 * PAGE);
    long_one = take(&d, pages + PAGE, 4 * PAGE);
    UDREG_DecrRefcount(d.cache, e);
    assert_int_equal(UDREG_Evict(d.cache), UDREG_RC_SUCCESS);
    UDREG_DecrRefcount(d.cache, long_one);
    remap(pages + PAGE, PAGE);
    take(&d, pages + PAGE, 4 * PAGE);
    assert_int_equal(d.n_registered, 3);
    close_cache(&d);
}

/* A thread that maps, registers, drops and maps over it at its own place must never be given what was there before. */
struct worker {
    struct device *device;
    unsigned char *at;
    uint32_t n_stale;
};

static void *map_and_unmap(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < 300; i++) {
        udreg_entry_t *e = NULL;

        if (UDREG_Register(w->device->cache, w->at, PAGE, &e) != UDREG_RC_SUCCESS)
            return NULL;
        if (e->device_data == w) /* what the last round left */
            w->n_stale++;
        e->device_data = w;
        UDREG_DecrRefcount(w->device->cache, e);
        /* In one step: into a hole another thread's memory might be mapped. */
        mmap(w->at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    return NULL;
}

static void test_threads_never_see_a_stale_entry(void **state)
{
    struct device d;
    struct worker workers[2];
    pthread_t threads[2];

    (void)state;
    open_cache(&d, WATCHED, 8);
    for (unsigned i = 0; i < 2; i++) {
        workers[i] = (struct worker){ .device = &d, .at = pages + 8 * i * PAGE };
        assert_int_equal(pthread_create(&threads[i], NULL, map_and_unmap, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].n_stale, 0);
    }
    assert_int_equal(stat_of(&d, UDREG_STAT_CACHE_MISS), 600);
    close_cache(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_taken_once),
        cmocka_unit_test(test_wrong_attributes_are_refused),
        cmocka_unit_test(test_access_finds_a_cache_by_name_and_release_gives_back),
        cmocka_unit_test(test_a_dead_handle_is_refused),
        cmocka_unit_test(test_destroying_deregisters_everything_then_tells),
        cmocka_unit_test(test_a_miss_registers_whole_pages),
        cmocka_unit_test(test_a_covered_range_hits),
        cmocka_unit_test(test_a_long_entry_is_found_behind_short_ones),
        cmocka_unit_test(test_callback_results_become_codes),
        cmocka_unit_test(test_wrong_ranges_are_refused),
        cmocka_unit_test(test_more_drops_than_references_are_refused),
        cmocka_unit_test(test_without_notification_the_last_drop_deregisters),
        cmocka_unit_test(test_lazy_unregister_keeps_and_eager_does_not),
        cmocka_unit_test(test_replaced_device_data_is_what_gets_deregistered),
        cmocka_unit_test(test_a_full_cache_evicts_what_was_unused_longest),
        cmocka_unit_test(test_a_cache_full_of_references_has_no_room),
        cmocka_unit_test(test_evict_removes_one_entry_that_nobody_uses),
        cmocka_unit_test(test_a_callback_may_evict),
        cmocka_unit_test(test_unregister_makes_room_when_asked),
        cmocka_unit_test(test_unmapped_memory_is_registered_anew),
        cmocka_unit_test(test_memory_mapped_over_is_registered_anew),
        cmocka_unit_test(test_moved_memory_is_registered_anew),
        cmocka_unit_test(test_shared_memory_is_watched_too),
        cmocka_unit_test(test_an_entry_in_use_is_deregistered_at_its_last_drop),
        cmocka_unit_test(test_more_unmappings_than_are_noted_forget_everything),
        cmocka_unit_test(test_an_overlapping_neighbour_stays_watched),
        cmocka_unit_test(test_threads_never_see_a_stale_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
