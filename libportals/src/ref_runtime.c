/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runtime calls of the reference dialect: rank, group, maps. What is set before an interface is opened is kept as
 * `coming` and becomes the next interface's, which is refused if it disagrees.
 *
 * The environment's maps are a program's own or those that `emunic run` sets. The latter say what holds without them:
 * the rank's number is the process id that the emulated NIC gives. They bind nobody: who asks for another process id,
 * opens a second interface or sets a rank himself gets it, and what of the maps is wrong then is forgotten.
 * Source: spec/portals3.md 4.2, 4.11.
 */
#include <portals/portals3.h>

#include <pthread.h>
#include <stdlib.h>

#include <p3rt/p3rt.h>

#include "libportals/src/calls.h"

struct map {
    uint32_t *entries; /* owned */
    uint32_t n;
};

struct runtime {
    bool has_rank;
    bool is_launchers; /* from the environment that `emunic run` sets */
    uint32_t rank;
    uint32_t size;
    struct map nids;
    struct map pids;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct runtime coming;               /* for the next interface */
static struct runtime runtimes[P3_NIS_MAX]; /* of open ones */
static struct p3_id ids[P3_NIS_MAX];
static bool has_jid;
static uint32_t set_jid;
static bool has_first_pid;
static uint32_t first_pid;

/* ---- maps ---- */

static void drop_map(struct map *map)
{
    free(map->entries);
    *map = (struct map){ .n = 0 };
}

static void drop_runtime(struct runtime *r)
{
    drop_map(&r->nids);
    drop_map(&r->pids);
    *r = (struct runtime){ .has_rank = false };
}

static enum p3_code copy_map(struct map *map, const uint32_t *entries, uint32_t n)
{
    uint32_t *copy = malloc(n ? n * sizeof(*copy) : 1);

    if (!copy)
        return P3_FAIL;
    if (n > 0)
        memcpy(copy, entries, n * sizeof(*copy));
    drop_map(map);
    *map = (struct map){ copy, n };
    return P3_OK;
}

static bool agrees(const struct map *map, const struct runtime *r, uint32_t value)
{
    return !r->has_rank || r->rank >= map->n || map->entries[r->rank] == value;
}

/* ---- environment ---- */

/* "1:2:3" */
static enum p3_code parse_map(const char *name, struct map *map)
{
    const char *text = getenv(name);
    uint32_t n = 1;
    enum p3_code code;
    uint32_t *entries;

    if (!text || !text[0])
        return P3_OK;
    for (const char *c = text; *c; c++)
        n += *c == ':';
    entries = malloc(n * sizeof(*entries));
    if (!entries)
        return P3_FAIL;
    for (uint32_t i = 0; i < n; i++) {
        char *end;

        entries[i] = (uint32_t)strtoul(text, &end, 0);
        text = *end == ':' ? end + 1 : end;
    }
    code = copy_map(map, entries, n);
    free(entries);
    return code;
}

/* Is that what emunic-rank sets (mpi-shim/rank/portals_maps.c)? */
static bool is_of_launcher(const struct runtime *r)
{
    const char *rank = getenv("EMUNIC_RANK");

    if (!rank || (uint32_t)strtoul(rank, NULL, 10) != r->rank || r->rank >= r->pids.n)
        return false;
    for (uint32_t i = 0; i < r->pids.n; i++) {
        if (r->pids.entries[i] != i)
            return false;
    }
    return true;
}

static enum p3_code read_environment(struct runtime *r)
{
    const char *rank = getenv("PTL_MY_RID");
    const char *jid = getenv("PTL_MY_JID");
    enum p3_code code;

    code = parse_map("PTL_NIDMAP", &r->nids);
    if (code == P3_OK)
        code = parse_map("PTL_PIDMAP", &r->pids);
    r->has_rank = true;
    r->rank = rank && rank[0] ? (uint32_t)strtoul(rank, NULL, 0) : UINT32_MAX;
    r->size = !rank || !rank[0] ? 0 : r->nids.n > r->pids.n ? r->nids.n : r->pids.n;
    r->is_launchers = is_of_launcher(r);
    if (!has_jid && jid && jid[0]) { /* else it is the first interface's pid */
        has_jid = true;
        set_jid = (uint32_t)strtoul(jid, NULL, 0);
    }
    return code;
}

/* Does what was set agree with an interface? */
static enum p3_code fit(struct runtime *r, struct p3_id id)
{
    if (!agrees(&r->nids, r, id.nid)) {
        if (!r->is_launchers)
            return P3_FAIL;
        drop_map(&r->nids);
    }
    if (!agrees(&r->pids, r, id.pid)) {
        if (!r->is_launchers)
            return P3_PID_INVALID;
        drop_map(&r->pids);
    }
    return P3_OK;
}

/* ---- opening ---- */

enum p3_code p3_dialect_before_open(uint32_t net, uint32_t *pid, uint32_t *jid)
{
    enum p3_code code = P3_OK;

    (void)net;
    pthread_mutex_lock(&lock);
    if (!coming.has_rank && getenv("PTL_MY_RID"))
        code = read_environment(&coming);
    if (coming.has_rank && !coming.is_launchers && coming.rank < coming.pids.n) {
        if (*pid == EMU_PTL_PID_ANY)
            *pid = coming.pids.entries[coming.rank];
        else if (*pid != coming.pids.entries[coming.rank])
            code = P3_PID_INVALID;
    }
    if (has_jid)
        *jid = set_jid;
    pthread_mutex_unlock(&lock);
    return code;
}

enum p3_code p3_dialect_after_open(uint32_t ni, struct p3_id id, uint32_t *jid)
{
    uint32_t number = emu_ptl_handle_ni(ni);
    enum p3_code code;

    pthread_mutex_lock(&lock);
    code = fit(&coming, id);
    if (code == P3_OK) {
        drop_runtime(&runtimes[number]);
        runtimes[number] = coming;
        coming = (struct runtime){ .has_rank = false };
        ids[number] = id;
        if (!has_first_pid)
            first_pid = id.pid;
        has_first_pid = true;
        if (!has_jid)
            *jid = first_pid;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

void p3_dialect_after_close(uint32_t ni)
{
    pthread_mutex_lock(&lock);
    drop_runtime(&runtimes[emu_ptl_handle_ni(ni)]);
    pthread_mutex_unlock(&lock);
}

void p3_dialect_fini(void)
{
    pthread_mutex_lock(&lock);
    drop_runtime(&coming);
    has_jid = has_first_pid = false;
    pthread_mutex_unlock(&lock);
}

/* ---- calls ---- */

/* Whose runtime a call is about, and with what address it has to agree (NULL: not known yet). */
static enum p3_code find(ptl_handle_ni_t ni, bool may_come, struct runtime **r_out, const struct p3_id **id_out)
{
    if (!p3_is_init())
        return P3_NO_INIT;
    *id_out = NULL;
    *r_out = &coming;
    if (may_come && ni == PTL_INVALID_HANDLE)
        return P3_OK;
    if (p3_ni_check(ni) != P3_OK)
        return P3_NI_INVALID;
    *r_out = &runtimes[emu_ptl_handle_ni(ni)];
    *id_out = &ids[emu_ptl_handle_ni(ni)];
    return P3_OK;
}

int PtlSetJID(ptl_jid_t jid)
{
    if (!p3_is_init())
        return p3_rc(P3_NO_INIT);
    pthread_mutex_lock(&lock);
    has_jid = true;
    set_jid = jid;
    pthread_mutex_unlock(&lock);
    return p3_rc(P3_OK);
}

/* Lock held. Nothing is kept after an error. */
static enum p3_code set_rank(struct runtime *r, const struct p3_id *id, unsigned rank, unsigned size)
{
    struct runtime wanted = { .has_rank = true, .rank = rank, .size = size };
    enum p3_code code = P3_OK;

    if (!r->is_launchers && (r->has_rank || r->nids.n > 0 || r->pids.n > 0))
        return P3_FAIL;
    if (rank == UINT32_MAX && size == UINT32_MAX)
        code = read_environment(&wanted);
    if (code == P3_OK && id)
        code = fit(&wanted, *id);
    drop_runtime(code == P3_OK ? r : &wanted);
    if (code == P3_OK)
        *r = wanted;
    return code;
}

int PtlSetRank(ptl_handle_ni_t ni, unsigned rank, unsigned group_size)
{
    const struct p3_id *id;
    struct runtime *r;
    enum p3_code code = find(ni, true, &r, &id);

    if (code != P3_OK)
        return p3_rc(code);
    pthread_mutex_lock(&lock);
    code = set_rank(r, id, rank, group_size);
    pthread_mutex_unlock(&lock);
    return p3_rc(code);
}

static int set_map(ptl_handle_ni_t ni, bool is_nids, const uint32_t *entries, unsigned size)
{
    const struct p3_id *id;
    struct runtime *r;
    enum p3_code code = find(ni, true, &r, &id);

    if (!entries && size > 0)
        return p3_rc(P3_SEGV);
    if (code != P3_OK)
        return p3_rc(code);
    pthread_mutex_lock(&lock);
    if (!r->has_rank)
        code = P3_NO_INIT;
    else if (id && r->rank < size && entries[r->rank] != (is_nids ? id->nid : id->pid))
        code = is_nids ? P3_FAIL : P3_PID_INVALID;
    else
        code = copy_map(is_nids ? &r->nids : &r->pids, entries, size);
    pthread_mutex_unlock(&lock);
    return p3_rc(code);
}

int PtlSetNIDMap(ptl_handle_ni_t ni, ptl_nid_t *map, unsigned size)
{
    return set_map(ni, true, map, size);
}

int PtlSetPIDMap(ptl_handle_ni_t ni, ptl_pid_t *map, unsigned size)
{
    return set_map(ni, false, map, size);
}

int PtlGetRank(ptl_handle_ni_t ni, unsigned *rank, unsigned *group_size)
{
    const struct p3_id *id;
    struct runtime *r;
    enum p3_code code;

    if (!rank || !group_size)
        return p3_rc(P3_SEGV);
    code = find(ni, false, &r, &id);
    if (code != P3_OK)
        return p3_rc(code);
    pthread_mutex_lock(&lock);
    if (r->has_rank) {
        *rank = r->rank;
        *group_size = r->size;
    } else {
        code = P3_NO_INIT;
    }
    pthread_mutex_unlock(&lock);
    return p3_rc(code);
}

int PtlGetRankId(ptl_handle_ni_t ni, unsigned rank, ptl_process_id_t *id_out)
{
    const struct p3_id *id;
    struct runtime *r;
    enum p3_code code;

    if (!id_out)
        return p3_rc(P3_SEGV);
    code = find(ni, false, &r, &id);
    if (code != P3_OK)
        return p3_rc(code);
    pthread_mutex_lock(&lock);
    if (rank < r->nids.n && rank < r->pids.n)
        p3_id_out((struct p3_id){ r->nids.entries[rank], r->pids.entries[rank] }, id_out);
    else
        code = P3_NO_INIT;
    pthread_mutex_unlock(&lock);
    return p3_rc(code);
}

static int get_map(ptl_handle_ni_t ni, bool is_nids, uint32_t *entries, unsigned size)
{
    const struct p3_id *id;
    const struct map *map;
    struct runtime *r;
    enum p3_code code;

    if (!entries)
        return p3_rc(P3_SEGV);
    code = find(ni, false, &r, &id);
    if (code != P3_OK)
        return p3_rc(code);
    pthread_mutex_lock(&lock);
    map = is_nids ? &r->nids : &r->pids;
    if (!map->entries)
        code = P3_NO_INIT;
    for (unsigned i = 0; code == P3_OK && i < size && i < map->n; i++)
        entries[i] = map->entries[i];
    pthread_mutex_unlock(&lock);
    return p3_rc(code);
}

int PtlGetNIDMap(ptl_handle_ni_t ni, ptl_nid_t *map, unsigned size)
{
    return get_map(ni, true, map, size);
}

int PtlGetPIDMap(ptl_handle_ni_t ni, ptl_pid_t *map, unsigned size)
{
    return get_map(ni, false, map, size);
}
