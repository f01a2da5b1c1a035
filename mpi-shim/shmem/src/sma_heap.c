/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symmetric heap: DMAPP's, with the barriers that OpenSHMEM asks for.
 *
 * DMAPP's blocks begin at 64 bytes. One that has to begin at more lies inside a larger one; a list remembers which. All
 * PEs make the same calls, so all have the same list.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "mpi-shim/shmem/src/sma_calls.h"

#define BLOCK_ALIGNMENT 64u

struct inside {
    void *at;
    void *block;
    size_t bytes;
    struct inside *next;
};

static struct inside *insides;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* With SMA_DEBUG: all PEs ask for the same. */
static void check_same(const char *call, uint64_t bytes)
{
    uint64_t *all;

    if (!smai.is_up)
        smai_fail(call, "not initialised");
    if (!smai.is_checked)
        return;
    all = calloc((size_t)smai.npes, sizeof(*all));
    if (!all)
        smai_fail(call, "out of memory");
    smai_share_words(smai_world(), bytes, all);
    for (int pe = 0; pe < smai.npes; pe++) {
        if (all[pe] != bytes)
            smai_fail(call, "size %llu, but PE %d says %llu", (unsigned long long)bytes, pe,
                      (unsigned long long)all[pe]);
    }
    free(all);
}

void *smai_malloc(size_t size)
{
    void *block;

    check_same("shmem_malloc", size);
    if (size == 0)
        return NULL;
    block = dmapp_sheap_malloc(size);
    smai_barrier_all();
    return block;
}

void *smai_malloc_with_hints(size_t size, long hints)
{
    (void)hints;
    return smai_malloc(size);
}

void *smai_calloc(size_t count, size_t size)
{
    size_t bytes;
    void *block;

    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    check_same("shmem_calloc", bytes);
    if (bytes == 0)
        return NULL;
    block = dmapp_sheap_malloc(bytes);
    if (block)
        memset(block, 0, bytes);
    smai_barrier_all();
    return block;
}

static void *make_inside(size_t alignment, size_t size)
{
    struct inside *inside = malloc(sizeof(*inside));
    uint8_t *block = inside && size + alignment > size ? dmapp_sheap_malloc(size + alignment) : NULL;

    if (!block) {
        free(inside);
        return NULL;
    }
    inside->block = block;
    inside->at = (void *)(((uintptr_t)block + alignment - 1) & ~(uintptr_t)(alignment - 1));
    inside->bytes = size;
    pthread_mutex_lock(&lock);
    inside->next = insides;
    insides = inside;
    pthread_mutex_unlock(&lock);
    return inside->at;
}

void *smai_align(size_t alignment, size_t size)
{
    void *block;

    check_same("shmem_align", size);
    if (size == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
        return NULL;
    block = alignment <= BLOCK_ALIGNMENT ? dmapp_sheap_malloc(size) : make_inside(alignment, size);
    smai_barrier_all();
    return block;
}

static struct inside *take_inside(const void *at)
{
    struct inside **link = &insides;
    struct inside *found;

    pthread_mutex_lock(&lock);
    while (*link && (*link)->at != at)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static void release(void *ptr)
{
    struct inside *inside = take_inside(ptr);

    dmapp_sheap_free(inside ? inside->block : ptr);
    free(inside);
}

void smai_free(void *ptr)
{
    if (!smai.is_up)
        smai_fail("shmem_free", "not initialised");
    if (!ptr)
        return;
    if (smai.is_checked)
        smai_check_symmetric("shmem_free", "ptr", ptr, 1);
    smai_barrier_all();
    release(ptr);
}

void *smai_realloc(void *ptr, size_t size)
{
    struct inside *inside;
    void *block;

    if (!ptr)
        return smai_malloc(size);
    if (size == 0) {
        smai_free(ptr);
        return NULL;
    }
    check_same("shmem_realloc", size);
    smai_barrier_all();
    inside = take_inside(ptr);
    if (inside) {
        block = dmapp_sheap_malloc(size);
        if (block) {
            memcpy(block, ptr, size < inside->bytes ? size : inside->bytes);
            dmapp_sheap_free(inside->block);
            free(inside);
        } else { /* as it was */
            pthread_mutex_lock(&lock);
            inside->next = insides;
            insides = inside;
            pthread_mutex_unlock(&lock);
        }
    } else {
        block = dmapp_sheap_realloc(ptr, size);
    }
    smai_barrier_all();
    return block;
}

/* ---- Fortran's: blocks are counted in 32-bit words, addresses are the values of Cray pointers ---- */

void smai_fortran_alloc(void **address, const int *words, int *status, const int *shall_abort)
{
    void *block = *words > 0 ? smai_malloc((size_t)*words * 4) : NULL;

    *status = *words <= 0 ? -1 : block ? 0 : -2;
    if (*status < 0 && *shall_abort)
        smai_fail("SHPALLOC", "%d words cannot be had", *words);
    *address = block;
}

void smai_fortran_free(void **address, int *status, const int *shall_abort)
{
    (void)shall_abort;
    *status = *address ? 0 : -3;
    smai_free(*address);
}

void smai_fortran_move(void **address, const int *words, int *status, const int *shall_abort)
{
    void *block = *words > 0 ? smai_realloc(*address, (size_t)*words * 4) : NULL;

    *status = *words <= 0 ? -1 : block ? 0 : -2;
    if (*status < 0 && *shall_abort)
        smai_fail("SHPCLMOVE", "%d words cannot be had", *words);
    if (block)
        *address = block;
}
