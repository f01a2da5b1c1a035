/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the generated functions call that is not on the way of an operation, and what the files give each other.
 */
#ifndef MPI_SHIM_SHMEM_SMA_CALLS_H
#define MPI_SHIM_SHMEM_SMA_CALLS_H

#include "mpi-shim/shmem/src/sma.h"

/* ---- sma_init.c ---- */

/* Brings the library up unless it is; collective. Ends the job if that fails. */
void smai_start(const char *call);
void smai_init(void);
int smai_init_thread(int requested, int *provided);
void smai_query_thread(int *provided);
void smai_start_pes(int npes);
void smai_finalize(void);
void smai_global_exit(int status) __attribute__((noreturn));
int smai_my_pe(void);
int smai_n_pes(void);
int smai_pe_accessible(int pe);
int smai_addr_accessible(const void *addr, int pe);
void *smai_ptr(const void *dest, int pe);
void smai_info_get_version(int *major, int *minor);
void smai_info_get_name(char *name);

/* ---- sma_heap.c; collective but for the hints ---- */

void *smai_malloc(size_t size);
void *smai_malloc_with_hints(size_t size, long hints);
void *smai_calloc(size_t count, size_t size);
void *smai_align(size_t alignment, size_t size);
void *smai_realloc(void *ptr, size_t size);
void smai_free(void *ptr);
void smai_fortran_alloc(void **address, const int *words, int *status, const int *shall_abort);
void smai_fortran_free(void **address, int *status, const int *shall_abort);
void smai_fortran_move(void **address, const int *words, int *status, const int *shall_abort);

/* ---- sma_context.c ---- */

int smai_ctx_create(long options, shmem_ctx_t *ctx);
int smai_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx);
void smai_ctx_destroy(shmem_ctx_t ctx);
int smai_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team);
void smai_ctx_fence(shmem_ctx_t ctx);
void smai_ctx_quiet(shmem_ctx_t ctx);

/* ---- sma_team.c ---- */

/* A team that a split shall make. */
struct smai_team_wish {
    const shmem_team_config_t *config;
    long mask;
    shmem_team_t *team;
};

struct smai_group *smai_world(void);
/* The program's name of a team. */
shmem_team_t smai_handle_of(struct shmem_team *team);
int smai_team_split_strided(shmem_team_t parent, int start, int stride, int size, const struct smai_team_wish *wish);
int smai_team_split_2d(shmem_team_t parent, int xrange, const struct smai_team_wish *x, const struct smai_team_wish *y);
void smai_team_destroy(shmem_team_t team);
int smai_team_my_pe(shmem_team_t team);
int smai_team_n_pes(shmem_team_t team);
int smai_team_get_config(shmem_team_t team, long mask, shmem_team_config_t *config);
int smai_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to);
int smai_team_sync(shmem_team_t team);
/* NULL: as smai_ptr(), or no such team or member. */
void *smai_team_ptr(shmem_team_t team, const void *dest, int pe);

/* ---- sma_channel.c ---- */

/* Of the symmetric heap, for all slots. */
uint64_t smai_channels_bytes(int npes);

/* ---- sma_collective.c ---- */

#define SMAI_FLAT_MAX 16

/* What suits the cost of a message, which is a store in functional time. */
void smai_choose_algorithms(void);

void smai_barrier_all(void);
void smai_sync_all(void);
void smai_barrier(int start, int log_stride, int size, long *psync);
void smai_sync_set(int start, int log_stride, int size, long *psync);

/* ---- sma_lock.c ---- */

void smai_set_lock(long *lock);
int smai_test_lock(long *lock);
void smai_clear_lock(long *lock);

#endif
