/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Teams and active sets.
 *
 * A team is a list of PEs and a slot, which names its channel (sma_channel.c) in all members. Members of a new team
 * choose the lowest slot that is free in each of them: PEs of the parent tell each other which slots they have free.
 * Teams without a common member may have one slot.
 *
 * An active set is a group of its own, remembered by its three numbers; all sets share one channel. It needs no pSync:
 * channels know the number of each message.
 */
#include <pthread.h>
#include <stdlib.h>

#include "mpi-shim/shmem/src/sma_calls.h"

struct active_set {
    struct smai_group group;
    int start;
    int log_stride;
    int size;
    struct active_set *next;
};

static struct shmem_team world;
static struct shmem_team shared;
static struct shmem_team *teams;
static struct active_set *_Atomic sets;
static uint64_t free_slots;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct smai_group *smai_world(void)
{
    return &world.group;
}

shmem_team_t smai_handle_of(struct shmem_team *team)
{
    return team == &world ? SHMEM_TEAM_WORLD : team == &shared ? SHMEM_TEAM_SHARED : team;
}

struct shmem_team *smai_team_of(shmem_team_t handle)
{
    if (!smai.is_up)
        return NULL;
    return handle == SHMEM_TEAM_WORLD ? &world : handle == SHMEM_TEAM_SHARED ? &shared : handle;
}

struct shmem_team *smai_team_must(shmem_team_t handle, const char *call)
{
    struct shmem_team *team = smai_team_of(handle);

    if (!smai.is_up)
        smai_fail(call, "not initialised");
    if (!team)
        smai_fail(call, "team: SHMEM_TEAM_INVALID");
    if (smai.is_checked && team != &world && team != &shared) {
        const struct shmem_team *known;

        pthread_mutex_lock(&lock);
        for (known = teams; known && known != team; known = known->next)
            ;
        pthread_mutex_unlock(&lock);
        if (!known)
            smai_fail(call, "team: there is none, or it has been destroyed");
    }
    return team;
}

/* ---- groups ---- */

/* Members of a parent (NULL: the job): first, first + stride, ... */
struct stride {
    int first;
    int stride;
    int n;
};

static bool fill_group(struct smai_group *g, const struct smai_group *parent, struct stride s)
{
    *g = (struct smai_group){ .pes = calloc((size_t)s.n, sizeof(*g->pes)), .n = s.n, .me = -1 };
    for (int i = 0; g->pes && i < s.n; i++) {
        int at = s.first + i * s.stride;

        g->pes[i] = parent ? parent->pes[at] : at;
        if (g->pes[i] == smai.pe)
            g->me = i;
    }
    if (g->pes)
        g->engines = smai_engines_of(g->n);
    return g->pes;
}

/* PEs whose memory we have by shmem_ptr(). */
static bool fill_shared(struct smai_group *g)
{
    *g = (struct smai_group){ .pes = calloc((size_t)smai.npes, sizeof(*g->pes)) };
    for (int pe = 0; g->pes && pe < smai.npes; pe++) {
        if (!smai_ptr((const void *)(uintptr_t)smai.heap, pe))
            continue;
        if (pe == smai.pe)
            g->me = g->n;
        g->pes[g->n++] = pe;
    }
    if (g->pes)
        g->engines = smai_engines_of(g->n);
    return g->pes;
}

static void free_group(struct smai_group *g)
{
    smai_engines_drop(g->engines);
    g->engines = NULL;
    free(g->pes);
}

int smai_teams_start(void)
{
    if (!fill_group(&world.group, NULL, (struct stride){ 0, 1, smai.npes }) || !fill_shared(&shared.group))
        return -1;
    world.slot = SMAI_SLOT_WORLD;
    shared.slot = SMAI_SLOT_SHARED;
    world.group.channel = smai_channel_of(SMAI_SLOT_WORLD);
    shared.group.channel = smai_channel_of(SMAI_SLOT_SHARED);
    free_slots = ~0ull << SMAI_SLOT_FIRST;
    return world.group.channel && shared.group.channel ? 0 : -1;
}

static void free_team(struct shmem_team *team)
{
    smai_contexts_drop(team);
    free_group(&team->group);
    if (team != &world && team != &shared)
        free(team);
}

void smai_teams_stop(void)
{
    struct active_set *set = atomic_exchange(&sets, NULL);

    while (set) {
        struct active_set *next = set->next;

        free_group(&set->group);
        free(set);
        set = next;
    }
    while (teams) {
        struct shmem_team *next = teams->next;

        free_team(teams);
        teams = next;
    }
    free_team(&world);
    free_team(&shared);
}

/* ---- active sets ---- */

static struct active_set *make_set(int start, int log_stride, int size, const char *call)
{
    struct active_set *set = calloc(1, sizeof(*set));

    if (!set || !fill_group(&set->group, NULL, (struct stride){ start, 1 << log_stride, size }))
        smai_fail(call, "out of memory");
    set->group.channel = smai_channel_of(SMAI_SLOT_SETS);
    if (!set->group.channel)
        smai_fail(call, "out of memory");
    set->start = start;
    set->log_stride = log_stride;
    set->size = size;
    set->next = atomic_load(&sets);
    while (!atomic_compare_exchange_weak(&sets, &set->next, set))
        ;
    return set;
}

struct smai_group *smai_active_set(int start, int log_stride, int size, const char *call)
{
    struct active_set *set = atomic_load_explicit(&sets, memory_order_acquire);

    while (set && (set->start != start || set->log_stride != log_stride || set->size != size))
        set = set->next;
    if (SMAI_LIKELY(set))
        return &set->group;
    if (!smai.is_up)
        smai_fail(call, "not initialised");
    if (start < 0 || size < 1 || log_stride < 0 || log_stride > 30 ||
        (int64_t)start + ((int64_t)(size - 1) << log_stride) >= smai.npes)
        smai_fail(call, "PE_start %d, logPE_stride %d, PE_size %d: not in the job", start, log_stride, size);
    set = make_set(start, log_stride, size, call);
    if (set->group.me < 0)
        smai_fail(call, "PE_start %d, logPE_stride %d, PE_size %d: this PE is not a member", start, log_stride, size);
    return &set->group;
}

/* ---- new teams ---- */

struct wishes {
    const shmem_team_config_t *config;
    long mask;
};

/* The lowest slot that is free in all members. words: each parent's member's free slots. */
static int common_slot(const uint64_t *words, struct stride s)
{
    uint64_t common = ~0ull;

    for (int i = 0; i < s.n; i++)
        common &= words[s.first + i * s.stride];
    return common ? __builtin_ctzll(common) : -1;
}

static struct shmem_team *make_team(const struct shmem_team *parent, struct stride s, int slot,
                                    const struct wishes *wishes)
{
    struct shmem_team *team = calloc(1, sizeof(*team));

    if (!team || !fill_group(&team->group, &parent->group, s)) {
        free(team);
        return NULL;
    }
    team->slot = slot;
    team->group.channel = smai_channel_of(slot);
    team->config_mask = wishes->mask;
    if (wishes->config && (wishes->mask & SHMEM_TEAM_NUM_CONTEXTS))
        team->config = *wishes->config;
    pthread_mutex_lock(&lock);
    free_slots &= ~(1ull << slot);
    team->next = teams;
    teams = team;
    pthread_mutex_unlock(&lock);
    return team;
}

/* Collective over the parent; only members get a team. */
static int split(struct shmem_team *parent, struct stride s, const struct wishes *wishes, shmem_team_t *new_team)
{
    int at = parent->group.me - s.first;
    bool is_member = at % s.stride == 0 && at / s.stride >= 0 && at / s.stride < s.n;
    uint64_t *words = calloc((size_t)parent->group.n, sizeof(*words));
    int slot;

    *new_team = SHMEM_TEAM_INVALID;
    if (!words)
        return -1;
    smai_share_words(&parent->group, free_slots, words);
    slot = common_slot(words, s);
    free(words);
    if (slot < 0)
        return -1;
    if (!is_member)
        return 0;
    *new_team = make_team(parent, s, slot, wishes);
    return *new_team ? 0 : -1;
}

int smai_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                            const struct smai_team_wish *wish)
{
    struct shmem_team *parent = smai_team_of(parent_team);
    const struct wishes wishes = { wish->config, wish->mask };
    int64_t last = start + (int64_t)(size - 1) * stride;

    *wish->team = SHMEM_TEAM_INVALID;
    if (!parent || start < 0 || start >= parent->group.n || size < 1 || last < 0 || last >= parent->group.n ||
        (stride == 0 && size > 1))
        return -1;
    return split(parent, (struct stride){ start, size == 1 ? 1 : stride, size }, &wishes, wish->team);
}

/* PE = y * xrange + x */
int smai_team_split_2d(shmem_team_t parent_team, int xrange, const struct smai_team_wish *x,
                       const struct smai_team_wish *y)
{
    struct shmem_team *parent = smai_team_of(parent_team);
    const struct wishes x_wishes = { x->config, x->mask };
    const struct wishes y_wishes = { y->config, y->mask };
    struct stride row;
    struct stride column;
    int n;
    int r;

    *x->team = SHMEM_TEAM_INVALID;
    *y->team = SHMEM_TEAM_INVALID;
    if (!parent || xrange < 1)
        return -1;
    n = parent->group.n;
    if (xrange > n)
        xrange = n;
    row = (struct stride){ parent->group.me / xrange * xrange, 1, xrange };
    if (row.n > n - row.first)
        row.n = n - row.first;
    column = (struct stride){ parent->group.me % xrange, xrange, 0 };
    column.n = (n - column.first + xrange - 1) / xrange;
    r = split(parent, row, &x_wishes, x->team);
    return split(parent, column, &y_wishes, y->team) < 0 ? -1 : r;
}

void smai_team_destroy(shmem_team_t handle)
{
    struct shmem_team *team = handle ? smai_team_must(handle, "shmem_team_destroy") : NULL;
    struct shmem_team **link;

    if (!team)
        return;
    if (team == &world || team == &shared)
        smai_fail("shmem_team_destroy", "team: a predefined one");
    smai_settle("shmem_team_destroy");
    if (team->group.engines)
        smai_sync_by_messages(&team->group);
    pthread_mutex_lock(&lock);
    for (link = &teams; *link && *link != team; link = &(*link)->next)
        ;
    if (*link) {
        *link = team->next;
        free_slots |= 1ull << team->slot;
    }
    pthread_mutex_unlock(&lock);
    free_team(team);
}

/* ---- questions ---- */

int smai_team_my_pe(shmem_team_t handle)
{
    const struct shmem_team *team = smai_team_of(handle);

    return team ? team->group.me : -1;
}

int smai_team_n_pes(shmem_team_t handle)
{
    const struct shmem_team *team = smai_team_of(handle);

    return team ? team->group.n : -1;
}

int smai_team_get_config(shmem_team_t handle, long mask, shmem_team_config_t *config)
{
    const struct shmem_team *team = smai_team_of(handle);

    if (!team)
        return -1;
    if (mask & ~SHMEM_TEAM_NUM_CONTEXTS)
        return -1;
    if (mask & SHMEM_TEAM_NUM_CONTEXTS)
        config->num_contexts = team->config.num_contexts;
    return 0;
}

int smai_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to)
{
    const struct shmem_team *source = smai_team_of(from);
    const struct shmem_team *dest = smai_team_of(to);

    if (!source || !dest || pe < 0 || pe >= source->group.n)
        return -1;
    for (int i = 0; i < dest->group.n; i++) {
        if (dest->group.pes[i] == source->group.pes[pe])
            return i;
    }
    return -1;
}

void *smai_team_ptr(shmem_team_t handle, const void *dest, int pe)
{
    const struct shmem_team *team = smai_team_of(handle);

    return team && pe >= 0 && pe < team->group.n ? smai_ptr(dest, team->group.pes[pe]) : NULL;
}

int smai_team_sync(shmem_team_t handle)
{
    smai_sync(&smai_team_must(handle, "shmem_team_sync")->group);
    return 0;
}
