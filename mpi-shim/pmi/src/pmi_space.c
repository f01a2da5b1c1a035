/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Key-value spaces shared by the ranks, and attributes shared by the ranks of a node.
 *
 * A put goes into this process's table at once and into the pending parcel. The next barrier (rounds.c) carries
 * the parcels to all ranks, and each takes them into its own table. So every rank holds all pairs, a get never
 * leaves the process, and a missing key is an ordinary answer; the price is that each process holds the pairs of
 * the whole job. Spaces made by PMI_KVS_Create() are a name in front of the key and exist as long as somebody
 * uses it.
 *
 * Node attributes need no barrier. Each rank has an area with its own attributes at the host's server, a parcel
 * padded to NODE_AREA bytes under one key that is overwritten in place; a reader asks for the area of each rank
 * of its node, in rank order, until it finds the name, and keeps the answer. The area is full with about 16 KiB
 * of pairs. Where the store does not show new values under an old key (rounds.c), each attribute has a key of
 * its own with a number, and the reader asks for the next number.
 */
#include "mpi-shim/pmi/src/pmi_space.h"

#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/px.h"
#include "mpi-shim/pmi/src/pmi_session.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_SPACE "@node" /* no job's name begins so */
enum { NODE_AREA = 16384, NODE_KEY_ROOM = 40 };

static struct {
    struct pmii_table table;
    struct pmii_parcel pending;
    unsigned n_created;
    const struct pmii_pair *walk; /* borrowed from the table */
    char walk_space[PMII_NAME_ROOM];
    struct pmii_parcel node_area; /* my attributes */
    unsigned n_node_puts;
    unsigned *n_node_gets; /* owned; attributes read from each rank, when each has its own key; NULL until needed */
} spaces;

/* ---- put, learn, get ---- */

int pmii_space_put(const char *space, const char *key, const char *value)
{
    if (!pmii_facts_is_alone()) {
        int r = pmii_parcel_add(&spaces.pending, space, key, value);

        if (r < 0)
            return r;
    }
    return pmii_table_put(&spaces.table, space, key, pmii_facts_rank(), value);
}

void pmii_space_take_pending(struct pmii_parcel *parcel_out)
{
    pmii_lock();
    *parcel_out = spaces.pending;
    memset(&spaces.pending, 0, sizeof(spaces.pending));
    pmii_unlock();
}

int pmii_space_learn(int rank, const char *bytes, size_t len_bytes)
{
    int r;

    pmii_lock();
    r = pmii_parcel_unpack(bytes, len_bytes, rank, &spaces.table);
    pmii_unlock();
    return r;
}

int pmii_space_get(const char *space, const char *key, int preferred_rank, const char **value_out)
{
    const struct pmii_pair *pair = pmii_table_find(&spaces.table, space, key, preferred_rank);

    if (!pair)
        return -ENOENT;
    *value_out = pair->value;
    return 0;
}

/* ---- walk ---- */

void pmii_space_walk_start(const char *space)
{
    snprintf(spaces.walk_space, sizeof(spaces.walk_space), "%s", space);
    spaces.walk = pmii_table_next(&spaces.table, space, NULL);
}

void pmii_space_walk_on(void)
{
    if (spaces.walk)
        spaces.walk = pmii_table_next(&spaces.table, spaces.walk_space, spaces.walk);
}

const struct pmii_pair *pmii_space_walk_pair(void)
{
    return spaces.walk;
}

bool pmii_space_is_walking(const char *space)
{
    return strcmp(spaces.walk_space, space) == 0;
}

/* ---- names of spaces ---- */

bool pmii_space_is_ours(const char *space)
{
    const char *job = pmii_facts_job_name();
    size_t n = strlen(job);

    return strncmp(space, job, n) == 0 && (space[n] == '\0' || space[n] == '_') && strlen(space) < PMII_NAME_ROOM;
}

int pmii_space_create(char *name_out, int room)
{
    char name[PMII_NAME_ROOM];
    int n = snprintf(name, sizeof(name), "%s_%d_%u", pmii_facts_job_name(), pmii_facts_rank(), spaces.n_created);

    if (n >= room)
        return -EMSGSIZE;
    spaces.n_created++;
    strcpy(name_out, name);
    return 0;
}

int pmii_space_destroy(const char *space)
{
    if (!pmii_space_is_ours(space) || strcmp(space, pmii_facts_job_name()) == 0)
        return -ENOENT;
    if (pmii_space_is_walking(space)) {
        spaces.walk = NULL;
        spaces.walk_space[0] = '\0';
    }
    pmii_table_drop(&spaces.table, space, NULL);
    return 0;
}

/* ---- node attributes ---- */

/* Hand the area to the server: a length, the pairs, and zeros up to the full length. */
static int put_area(void)
{
    uint32_t len = (uint32_t)spaces.node_area.len_bytes;
    char *bytes;
    int r;

    if (len > NODE_AREA - sizeof(len))
        return -ENOSPC;
    bytes = calloc(1, NODE_AREA);
    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, &len, sizeof(len));
    memcpy(bytes + sizeof(len), spaces.node_area.bytes, len);
    r = pmii_px_put(PMII_PX_HOST, "emunic.node", bytes, NODE_AREA);
    free(bytes);
    return r;
}

static int put_numbered(const char *name, const char *value)
{
    struct pmii_parcel parcel = { 0 };
    char key[NODE_KEY_ROOM];
    int r;

    r = pmii_parcel_add(&parcel, NODE_SPACE, name, value);
    if (r < 0)
        return r;
    snprintf(key, sizeof(key), "emunic.node.n%u", spaces.n_node_puts);
    r = pmii_px_put(PMII_PX_HOST, key, parcel.bytes, parcel.len_bytes);
    pmii_parcel_fini(&parcel);
    if (r == 0)
        spaces.n_node_puts++;
    return r;
}

static int tell_node(const char *name, const char *value)
{
    size_t before = spaces.node_area.len_bytes;
    int r;

    r = pmii_connect();
    if (r < 0)
        return r;
    if (pmii_px_keys_are_reused()) {
        r = pmii_parcel_add(&spaces.node_area, NODE_SPACE, name, value);
        if (r < 0)
            return r;
        r = put_area();
        if (r < 0)
            spaces.node_area.len_bytes = before;
    } else {
        r = put_numbered(name, value);
    }
    return r < 0 ? r : pmii_px_commit();
}

int pmii_node_attr_put(const char *name, const char *value)
{
    if (pmii_table_find(&spaces.table, NODE_SPACE, name, PMII_ANY_RANK))
        return 0; /* the first value stays */
    if (!pmii_facts_is_alone()) {
        int r = tell_node(name, value);

        if (r < 0)
            return r;
    }
    return pmii_table_put(&spaces.table, NODE_SPACE, name, pmii_facts_rank(), value);
}

/* Learn the attributes of one rank, from its area; later reads see later attributes. */
static int read_area(int rank)
{
    uint32_t len = 0;
    size_t area;
    void *bytes;
    int r;

    r = pmii_px_get(rank, "emunic.node", &bytes, &area);
    if (r != 0)
        return r < 0 ? r : 0;
    if (area >= sizeof(len))
        memcpy(&len, bytes, sizeof(len));
    if (area < sizeof(len) || len > area - sizeof(len))
        r = -EBADMSG;
    else
        r = pmii_parcel_unpack((char *)bytes + sizeof(len), len, rank, &spaces.table);
    free(bytes);
    return r;
}

/* Learn the attributes of one rank that have not been read yet, one key each. */
static int read_numbered(int rank, int size)
{
    char key[NODE_KEY_ROOM];
    size_t len;
    void *bytes;
    int r;

    if (!spaces.n_node_gets) {
        spaces.n_node_gets = calloc((size_t)size, sizeof(*spaces.n_node_gets));
        if (!spaces.n_node_gets)
            return -ENOMEM;
    }
    for (;;) {
        snprintf(key, sizeof(key), "emunic.node.n%u", spaces.n_node_gets[rank]);
        r = pmii_px_get(rank, key, &bytes, &len);
        if (r != 0)
            return r < 0 ? r : 0;
        r = pmii_parcel_unpack(bytes, len, rank, &spaces.table);
        free(bytes);
        if (r < 0)
            return r;
        spaces.n_node_gets[rank]++;
    }
}

/* Ask the ranks of my node one after the other, until one has it. */
static int look_for_attr(const char *name)
{
    const int *nids;
    int size, r;

    if (pmii_facts_is_alone())
        return 0;
    r = pmii_facts_size(&size);
    if (r == 0)
        r = pmii_facts_nids(&nids);
    if (r == 0)
        r = pmii_connect();
    for (int rank = 0; r == 0 && rank < size; rank++) {
        if (rank == pmii_facts_rank() || nids[rank] != nids[pmii_facts_rank()])
            continue;
        r = pmii_px_keys_are_reused() ? read_area(rank) : read_numbered(rank, size);
        if (pmii_table_find(&spaces.table, NODE_SPACE, name, PMII_ANY_RANK))
            break;
    }
    return r;
}

int pmii_node_attr_get(const char *name, const char **value_out)
{
    const struct pmii_pair *pair = pmii_table_find(&spaces.table, NODE_SPACE, name, PMII_ANY_RANK);

    if (!pair) {
        int r = look_for_attr(name);

        if (r < 0)
            return r;
        pair = pmii_table_find(&spaces.table, NODE_SPACE, name, PMII_ANY_RANK);
    }
    if (!pair)
        return -ENOENT;
    *value_out = pair->value;
    return 0;
}
