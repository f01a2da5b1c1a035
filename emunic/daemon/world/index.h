/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Things by key: a hash table whose entries lie in the things themselves, so adding cannot fail.
 *
 * Things with the same key are kept in the order in which they were added. The cost of a call does not depend on how
 * many things there are, nor on how many have the same key. Clients and other hosts choose keys, so places come from a
 * keyed hash (SipHash) with a random key of this process: nobody outside can choose keys that share a place.
 */
#ifndef EMUNIC_DAEMON_WORLD_INDEX_H
#define EMUNIC_DAEMON_WORLD_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unused words are 0. */
struct emu_key {
    uint64_t words[3];
};

/* Part of a thing. All zero: it is in no index. */
struct emu_index_entry {
    struct emu_key key;
    uint64_t hash;
    struct emu_index_entry *next_key; /* of the first one with its key: another key of the same place */
    struct emu_index_entry *older;    /* with the same key, in a ring; NULL: in no index */
    struct emu_index_entry *newer;
    bool is_oldest; /* with its key */
};

/* All zero: empty. */
struct emu_index {
    struct emu_index_entry **places; /* owned; NULL: all lie in `only` */
    struct emu_index_entry *only;
    uint32_t n_places; /* a power of two, or 0 */
    uint32_t n_keys;
};

/* The thing that has this entry at `member`; NULL for NULL. */
#define EMU_INDEXED(entry, type, member) ((type *)emu_indexed((entry), offsetof(type, member)))

static inline void *emu_indexed(struct emu_index_entry *entry, size_t offset)
{
    return entry ? (char *)entry - offset : NULL;
}

/* Of an index with nothing in it any more. */
void emu_index_fini(struct emu_index *index);
/* The entry is in no index. */
void emu_index_add(struct emu_index *index, struct emu_key key, struct emu_index_entry *entry);
/* An entry of no index: nothing. */
void emu_index_remove(struct emu_index *index, struct emu_index_entry *entry);
/* With that key, the one added first or last; NULL: none. */
struct emu_index_entry *emu_index_oldest(struct emu_index *index, struct emu_key key);
struct emu_index_entry *emu_index_newest(struct emu_index *index, struct emu_key key);

/* With the same key, the one added next; NULL: no more. */
static inline struct emu_index_entry *emu_index_newer(const struct emu_index_entry *entry)
{
    return entry->newer->is_oldest ? NULL : entry->newer;
}

/* With the same key, the one added before; NULL: no more. */
static inline struct emu_index_entry *emu_index_older(const struct emu_index_entry *entry)
{
    return entry->is_oldest ? NULL : entry->older;
}

#endif
