/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts: what a PE number means, and with whom the context ends.
 *
 * Operations of all contexts share one stream below. So shmem_ctx_fence() and shmem_ctx_quiet() order and complete more
 * than they have to. The options are promises of the program that this library needs for nothing.
 */
#include <pthread.h>
#include <stdlib.h>

#include "mpi-shim/shmem/src/sma_calls.h"

#define OPTIONS (SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int smai_context_pe(shmem_ctx_t ctx, int pe, const char *call)
{
    if (SMAI_UNLIKELY(!ctx))
        smai_fail(call, "SHMEM_CTX_INVALID");
    return (unsigned)pe < (unsigned)ctx->n ? ctx->pes[pe] : -1;
}

int smai_team_create_ctx(shmem_team_t handle, long options, shmem_ctx_t *ctx)
{
    struct shmem_team *team = smai_team_of(handle);
    struct shmem_ctx *made = team ? malloc(sizeof(*made)) : NULL;

    *ctx = SHMEM_CTX_INVALID;
    if (!made)
        return -1;
    if (options & ~OPTIONS) {
        free(made);
        return -1;
    }
    *made = (struct shmem_ctx){ .pes = team->group.pes, .n = team->group.n, .options = options, .team = team };
    pthread_mutex_lock(&lock);
    made->next = team->contexts;
    team->contexts = made;
    pthread_mutex_unlock(&lock);
    *ctx = made;
    return 0;
}

int smai_ctx_create(long options, shmem_ctx_t *ctx)
{
    return smai_team_create_ctx(SHMEM_TEAM_WORLD, options, ctx);
}

void smai_ctx_destroy(shmem_ctx_t ctx)
{
    struct shmem_ctx **link;

    if (!ctx)
        return;
    smai_settle("shmem_ctx_destroy");
    if (ctx == SHMEM_CTX_DEFAULT)
        return;
    pthread_mutex_lock(&lock);
    for (link = &ctx->team->contexts; *link && *link != ctx; link = &(*link)->next)
        ;
    if (*link)
        *link = ctx->next;
    pthread_mutex_unlock(&lock);
    free(ctx);
}

void smai_contexts_drop(struct shmem_team *team)
{
    pthread_mutex_lock(&lock);
    while (team->contexts) {
        struct shmem_ctx *next = team->contexts->next;

        free(team->contexts);
        team->contexts = next;
    }
    pthread_mutex_unlock(&lock);
}

int smai_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
{
    *team = SHMEM_TEAM_INVALID;
    if (!ctx)
        return -1;
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : smai_handle_of(ctx->team);
    return 0;
}

void smai_ctx_fence(shmem_ctx_t ctx)
{
    if (ctx)
        smai_order("shmem_ctx_fence");
}

void smai_ctx_quiet(shmem_ctx_t ctx)
{
    if (ctx)
        smai_settle("shmem_ctx_quiet");
}
