/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Key-value pairs in memory, and as bytes.
 *
 * A hash table with chains holds (space, key, rank) -> value. Two ranks may put one key; both pairs are kept,
 * since a reader may name the rank it means. Pairs also stand in a list in order of arrival, which is what a
 * walk follows.
 *
 * A parcel is the concatenation of "space NUL key NUL value NUL".
 * No locks here: the caller has one.
 */
#include "mpi-shim/pmi/src/kvs.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        hash = (hash ^ *c) * 16777619u; /* FNV-1a */
    return (hash ^ 0xff) * 16777619u;
}

static size_t bucket_of(const struct pmii_table *table, const char *space, const char *key)
{
    return hash_text(hash_text(2166136261u, space), key) % table->n_buckets;
}

static int grow(struct pmii_table *table)
{
    struct pmii_table larger = *table;

    larger.n_buckets = table->n_buckets > 0 ? table->n_buckets * 2 : 64;
    larger.buckets = calloc(larger.n_buckets, sizeof(struct pmii_pair *));
    if (!larger.buckets)
        return -ENOMEM;
    for (struct pmii_pair *pair = table->first; pair; pair = pair->later) {
        size_t b = bucket_of(&larger, pair->space, pair->key);

        pair->next = larger.buckets[b];
        larger.buckets[b] = pair;
    }
    free(table->buckets);
    *table = larger;
    return 0;
}

static struct pmii_pair *find_exact(const struct pmii_table *table, const char *space, const char *key, int rank)
{
    if (table->n_buckets == 0)
        return NULL;
    for (struct pmii_pair *pair = table->buckets[bucket_of(table, space, key)]; pair; pair = pair->next) {
        if (pair->rank == rank && strcmp(pair->key, key) == 0 && strcmp(pair->space, space) == 0)
            return pair;
    }
    return NULL;
}

static void free_pair(struct pmii_pair *pair)
{
    free(pair->space);
    free(pair->value);
    free(pair);
}

static struct pmii_pair *new_pair(const char *space, const char *key, int rank, const char *value)
{
    size_t space_bytes = strlen(space) + 1;
    struct pmii_pair *pair = calloc(1, sizeof(*pair));

    if (!pair)
        return NULL;
    pair->rank = rank;
    pair->space = malloc(space_bytes + strlen(key) + 1);
    pair->value = strdup(value);
    if (!pair->space || !pair->value) {
        free_pair(pair);
        return NULL;
    }
    strcpy(pair->space, space);
    pair->key = pair->space + space_bytes;
    strcpy(pair->key, key);
    return pair;
}

int pmii_table_put(struct pmii_table *table, const char *space, const char *key, int rank, const char *value)
{
    struct pmii_pair *pair = find_exact(table, space, key, rank);
    size_t b;

    if (pair) {
        char *copy = strdup(value);

        if (!copy)
            return -ENOMEM;
        free(pair->value);
        pair->value = copy;
        return 0;
    }
    if (table->n_pairs >= table->n_buckets && grow(table) < 0)
        return -ENOMEM;
    pair = new_pair(space, key, rank, value);
    if (!pair)
        return -ENOMEM;
    b = bucket_of(table, space, key);
    pair->next = table->buckets[b];
    table->buckets[b] = pair;
    if (table->last)
        table->last->later = pair;
    else
        table->first = pair;
    table->last = pair;
    table->n_pairs++;
    return 0;
}

const struct pmii_pair *pmii_table_find(const struct pmii_table *table, const char *space, const char *key,
                                        int preferred_rank)
{
    const struct pmii_pair *best = NULL;

    if (table->n_buckets == 0)
        return NULL;
    for (const struct pmii_pair *pair = table->buckets[bucket_of(table, space, key)]; pair; pair = pair->next) {
        if (strcmp(pair->key, key) != 0 || strcmp(pair->space, space) != 0)
            continue;
        if (pair->rank == preferred_rank)
            return pair;
        if (!best || pair->rank < best->rank)
            best = pair;
    }
    return best;
}

const struct pmii_pair *pmii_table_next(const struct pmii_table *table, const char *space,
                                        const struct pmii_pair *previous)
{
    const struct pmii_pair *pair = previous ? previous->later : table->first;

    while (pair && strcmp(pair->space, space) != 0)
        pair = pair->later;
    return pair;
}

static void unlink_from_bucket(struct pmii_table *table, struct pmii_pair *pair)
{
    struct pmii_pair **link = &table->buckets[bucket_of(table, pair->space, pair->key)];

    while (*link != pair)
        link = &(*link)->next;
    *link = pair->next;
}

size_t pmii_table_drop(struct pmii_table *table, const char *space, const char *key)
{
    struct pmii_pair **link = &table->first;
    size_t n_dropped = 0;

    table->last = NULL;
    while (*link) {
        struct pmii_pair *pair = *link;

        if (strcmp(pair->space, space) != 0 || (key && strcmp(pair->key, key) != 0)) {
            table->last = pair;
            link = &pair->later;
            continue;
        }
        *link = pair->later;
        unlink_from_bucket(table, pair);
        free_pair(pair);
        n_dropped++;
    }
    table->n_pairs -= n_dropped;
    return n_dropped;
}

void pmii_table_fini(struct pmii_table *table)
{
    for (struct pmii_pair *pair = table->first; pair;) {
        struct pmii_pair *later = pair->later;

        free_pair(pair);
        pair = later;
    }
    free(table->buckets);
    memset(table, 0, sizeof(*table));
}

/* ---- parcels ---- */

int pmii_parcel_add(struct pmii_parcel *parcel, const char *space, const char *key, const char *value)
{
    const char *const texts[3] = { space, key, value };
    size_t need = parcel->len_bytes + strlen(space) + strlen(key) + strlen(value) + 3;

    if (need > parcel->room_bytes) {
        size_t room = need * 2;
        char *bytes = realloc(parcel->bytes, room);

        if (!bytes)
            return -ENOMEM;
        parcel->bytes = bytes;
        parcel->room_bytes = room;
    }
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(texts[i]) + 1;

        memcpy(parcel->bytes + parcel->len_bytes, texts[i], n);
        parcel->len_bytes += n;
    }
    return 0;
}

/* Length of the pair at the start of len_bytes bytes, or 0 when no whole pair is there. */
static size_t pair_length(const char *bytes, size_t len_bytes)
{
    size_t used = 0;

    for (int i = 0; i < 3; i++) {
        const char *end = len_bytes > used ? memchr(bytes + used, '\0', len_bytes - used) : NULL;

        if (!end)
            return 0;
        used = (size_t)(end - bytes) + 1;
    }
    return used;
}

int pmii_parcel_unpack(const char *bytes, size_t len_bytes, int rank, struct pmii_table *table)
{
    for (size_t at = 0; at < len_bytes;) {
        size_t n = pair_length(bytes + at, len_bytes - at);
        const char *space, *key, *value;
        int r;

        if (n == 0)
            return -EBADMSG;
        space = bytes + at;
        key = space + strlen(space) + 1;
        value = key + strlen(key) + 1;
        r = pmii_table_put(table, space, key, rank, value);
        if (r < 0)
            return r;
        at += n;
    }
    return 0;
}

void pmii_parcel_fini(struct pmii_parcel *parcel)
{
    free(parcel->bytes);
    memset(parcel, 0, sizeof(*parcel));
}
