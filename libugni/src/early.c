/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of early messages.
 *
 * A message may come before its receiver has called GNI_SmsgInit(). Its entry is then taken perhaps by a program that
 * cannot fetch the message yet, and GNI_SmsgInit() has to put the entry back; but not if it is still in the queue, or
 * on its way there: one message has one entry. So a sender marks the entries of messages that it sends while it does
 * not know of its receiver, with a tag of their connection (smsg.c), and the receiver counts those alone:
 *
 *   balance = entries taken - messages released - entries put back        of each event data and tag
 *
 * A balance above 0 when the connection is made says how many of the messages that wait have lost their entries. It is
 * 0 when everything was taken and released, and then there is no row.
 *
 * The table: open addressing, linear probing, at most half full. What never comes to 0 (messages that nobody fetches,
 * queues that nobody looks at) stays as a row; when ROOM_MAX is half full all is forgotten, most of it is of the past.
 */
#include "libugni/src/early.h"

#include <stdlib.h>

#define ROOM_MIN 64u
#define ROOM_MAX (1u << 17)

struct gnii_early_row {
    uint64_t key;    /* 0: free */
    int64_t balance; /* never 0 */
};

static uint64_t key_of(uint32_t event, uint16_t tag)
{
    return (uint64_t)tag << 32 | event;
}

static uint32_t home_of(uint64_t key, uint32_t room)
{
    /* Fibonacci hashing: Knuth, The Art of Computer Programming 3, 6.4. */
    return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40) & (room - 1);
}

/* Its row, or the free one where it belongs. */
static uint32_t place_of(const struct gnii_early_row *rows, uint32_t room, uint64_t key)
{
    uint32_t at = home_of(key, room);

    while (rows[at].key != 0 && rows[at].key != key)
        at = (at + 1) & (room - 1);
    return at;
}

/* What lies behind moves up, so that nobody's way to his row has a hole. */
static void remove_row(struct gnii_early *early, uint32_t at)
{
    struct gnii_early_row *rows = early->rows;
    uint32_t mask = early->room - 1;
    uint32_t next = at;

    for (;;) {
        next = (next + 1) & mask;
        if (rows[next].key == 0)
            break;
        if (((next - home_of(rows[next].key, early->room)) & mask) < ((next - at) & mask))
            continue;
        rows[at] = rows[next];
        at = next;
    }
    rows[at] = (struct gnii_early_row){ 0 };
    early->n_rows--;
}

/* False: no memory. */
static bool make_room(struct gnii_early *early)
{
    uint32_t room = early->room == 0 ? ROOM_MIN : 2 * early->room;
    struct gnii_early_row *rows;

    if (early->n_rows < early->room / 2)
        return true;
    if (room > ROOM_MAX)
        gnii_early_fini(early);
    if (room > ROOM_MAX)
        room = ROOM_MIN;
    rows = calloc(room, sizeof(*rows));
    if (!rows)
        return false;
    for (uint32_t i = 0; i < early->room; i++) {
        if (early->rows[i].key != 0)
            rows[place_of(rows, room, early->rows[i].key)] = early->rows[i];
    }
    free(early->rows);
    early->rows = rows;
    early->room = room;
    return true;
}

static void change(struct gnii_early *early, uint32_t event, uint16_t tag, int by)
{
    uint64_t key = key_of(event, tag);
    struct gnii_early_row *row;
    uint32_t at;

    if (!make_room(early))
        return;
    at = place_of(early->rows, early->room, key);
    row = &early->rows[at];
    early->n_rows += row->key == 0;
    row->key = key;
    row->balance += by;
    if (row->balance == 0)
        remove_row(early, at);
}

void gnii_early_taken(struct gnii_early *early, uint32_t event, uint16_t tag)
{
    change(early, event, tag, 1);
}

void gnii_early_put_back(struct gnii_early *early, uint32_t event, uint16_t tag)
{
    change(early, event, tag, -1);
}

void gnii_early_released(struct gnii_early *early, uint32_t event, uint16_t tag)
{
    change(early, event, tag, -1);
}

bool gnii_early_is_taken(const struct gnii_early *early, uint32_t event, uint16_t tag)
{
    uint64_t key = key_of(event, tag);
    const struct gnii_early_row *row;

    if (early->room == 0)
        return false;
    row = &early->rows[place_of(early->rows, early->room, key)];
    return row->key == key && row->balance > 0;
}

void gnii_early_forget(struct gnii_early *early, uint32_t event, uint16_t tag)
{
    uint64_t key = key_of(event, tag);
    uint32_t at;

    if (early->room == 0)
        return;
    at = place_of(early->rows, early->room, key);
    if (early->rows[at].key == key)
        remove_row(early, at);
}

void gnii_early_fini(struct gnii_early *early)
{
    free(early->rows);
    *early = (struct gnii_early){ 0 };
}
