/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_KVS_H
#define PMI_SRC_KVS_H

#include <stddef.h>

/* Bytes with NUL. What PMI_KVS_Get_*_length_max() report. */
#define PMII_NAME_ROOM  64
#define PMII_KEY_ROOM   256
#define PMII_VALUE_ROOM 4096

/* One pair as a rank put it. Texts belong to the table. */
struct pmii_pair {
    struct pmii_pair *next;  /* in its bucket; borrowed by the table */
    struct pmii_pair *later; /* in order of arrival */
    int rank;
    char *space; /* owned, one block with key */
    char *key;
    char *value; /* owned */
};

/* All pairs this process knows. Zero-filled is empty. Callers hold the library lock. */
struct pmii_table {
    struct pmii_pair **buckets; /* owned */
    size_t n_buckets;
    size_t n_pairs;
    struct pmii_pair *first, *last;
};

enum pmii_any_rank { PMII_ANY_RANK = -1 };

/** Store a pair; the same rank's earlier value of the key is replaced. @retval -ENOMEM nothing changed. */
int pmii_table_put(struct pmii_table *table, const char *space, const char *key, int rank, const char *value);

/** The pair of that rank, else the lowest rank's; NULL when nobody's. Valid until the next put or drop. */
const struct pmii_pair *pmii_table_find(const struct pmii_table *table, const char *space, const char *key,
                                        int preferred_rank);

/** The pair of a space that arrived next after another one (NULL: the first); NULL behind the last. */
const struct pmii_pair *pmii_table_next(const struct pmii_table *table, const char *space,
                                        const struct pmii_pair *previous);

/** Forget the pairs of a space: of one key, or all (key NULL). @return how many there were. */
size_t pmii_table_drop(struct pmii_table *table, const char *space, const char *key);

void pmii_table_fini(struct pmii_table *table);

/* Pairs written one after the other, to be sent. Zero-filled is empty. */
struct pmii_parcel {
    char *bytes; /* owned */
    size_t len_bytes;
    size_t room_bytes;
};

/** Append a pair. @retval -ENOMEM parcel unchanged. */
int pmii_parcel_add(struct pmii_parcel *parcel, const char *space, const char *key, const char *value);

/** Store all pairs of received bytes. @retval -EBADMSG not written by pmii_parcel_add(). @retval -ENOMEM */
int pmii_parcel_unpack(const char *bytes, size_t len_bytes, int rank, struct pmii_table *table);

void pmii_parcel_fini(struct pmii_parcel *parcel);

#endif
