/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Things by key.
 *
 * A place is a chain of keys. The oldest entry of each key stands for it in the chain; all entries of the key are a
 * ring, in order. So a key with many entries delays nobody else's look-up, and removing is done in the ring. There are
 * at least as many places as keys: when there are more keys, the places are doubled. Without memory for that, chains
 * get longer.
 */
#include "emunic/daemon/world/index.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_FIRST 16u
#define PLACES_MAX   (1u << 30)

static uint64_t hash_of(const struct emu_key *key)
{
    static unsigned char secret[crypto_shorthash_KEYBYTES];
    static bool has_secret;
    uint64_t hash;

    if (!has_secret) {
        randombytes_buf(secret, sizeof(secret));
        has_secret = true;
    }
    crypto_shorthash((unsigned char *)&hash, (const unsigned char *)key, sizeof(*key), secret);
    return hash;
}

static struct emu_index_entry **place_of(struct emu_index_entry **places, uint32_t n_places, uint64_t hash)
{
    return &places[hash & (n_places - 1)];
}

/* Where the oldest entry of the key is, or would be, named. */
static struct emu_index_entry **find(struct emu_index *index, uint64_t hash, const struct emu_key *key)
{
    struct emu_index_entry **at = index->n_places ? place_of(index->places, index->n_places, hash) : &index->only;

    while (*at && ((*at)->hash != hash || memcmp(&(*at)->key, key, sizeof(*key)) != 0))
        at = &(*at)->next_key;
    return at;
}

static void grow(struct emu_index *index)
{
    uint32_t n = index->n_places ? 2 * index->n_places : PLACES_FIRST;
    struct emu_index_entry **places = index->n_places < PLACES_MAX ? calloc(n, sizeof(struct emu_index_entry *)) : NULL;

    if (!places)
        return;
    for (uint32_t i = 0; i < (index->n_places ? index->n_places : 1); i++) {
        struct emu_index_entry *entry = index->n_places ? index->places[i] : index->only;

        while (entry) {
            struct emu_index_entry *next = entry->next_key;
            struct emu_index_entry **place = place_of(places, n, entry->hash);

            entry->next_key = *place;
            *place = entry;
            entry = next;
        }
    }
    free(index->places);
    index->places = places;
    index->n_places = n;
    index->only = NULL;
}

void emu_index_fini(struct emu_index *index)
{
    free(index->places);
    *index = (struct emu_index){ .n_places = 0 };
}

void emu_index_add(struct emu_index *index, struct emu_key key, struct emu_index_entry *entry)
{
    uint64_t hash = hash_of(&key);
    struct emu_index_entry **at = find(index, hash, &key);
    struct emu_index_entry *oldest = *at;

    *entry = (struct emu_index_entry){ .key = key, .hash = hash, .older = entry, .newer = entry };
    if (oldest) {
        entry->older = oldest->older;
        entry->newer = oldest;
        entry->older->newer = entry;
        oldest->older = entry;
        return;
    }
    entry->is_oldest = true;
    *at = entry;
    if (++index->n_keys > index->n_places)
        grow(index);
}

void emu_index_remove(struct emu_index *index, struct emu_index_entry *entry)
{
    struct emu_index_entry **at;

    if (!entry->older)
        return;
    if (entry->is_oldest) {
        at = find(index, entry->hash, &entry->key);
        if (entry->newer == entry) {
            *at = entry->next_key;
            index->n_keys--;
        } else {
            entry->newer->next_key = entry->next_key;
            entry->newer->is_oldest = true;
            *at = entry->newer;
        }
    }
    entry->older->newer = entry->newer;
    entry->newer->older = entry->older;
    *entry = (struct emu_index_entry){ .hash = 0 };
}

struct emu_index_entry *emu_index_oldest(struct emu_index *index, struct emu_key key)
{
    return *find(index, hash_of(&key), &key);
}

struct emu_index_entry *emu_index_newest(struct emu_index *index, struct emu_key key)
{
    struct emu_index_entry *oldest = emu_index_oldest(index, key);

    return oldest ? oldest->older : NULL;
}
