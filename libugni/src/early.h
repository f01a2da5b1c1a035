/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which entries of early messages a program has taken: early.c.
 */
#ifndef LIBUGNI_EARLY_H
#define LIBUGNI_EARLY_H

#include <stdbool.h>
#include <stdint.h>

struct gnii_early_row;

/* Of a process in a communication domain. Zeroed: empty. Its owner locks. */
struct gnii_early {
    struct gnii_early_row *rows; /* owned; NULL until wanted */
    uint32_t n_rows;
    uint32_t room; /* a power of two, or 0 */
};

/* The tag of a connection's early messages, from the mark of its sender. Never 0. */
static inline uint16_t gnii_early_tag(uint32_t mark)
{
    uint16_t tag = (uint16_t)(mark ^ mark >> 16);

    return tag ? tag : 1;
}

/* In all of these `event` is the data of an entry. */

/* It was taken off a queue. */
void gnii_early_taken(struct gnii_early *early, uint32_t event, uint16_t tag);

/* It was put into a queue again. */
void gnii_early_put_back(struct gnii_early *early, uint32_t event, uint16_t tag);

/* Its message was released. */
void gnii_early_released(struct gnii_early *early, uint32_t event, uint16_t tag);

/* Was one taken that belongs to a message which waits still? */
bool gnii_early_is_taken(const struct gnii_early *early, uint32_t event, uint16_t tag);

/* The connection ends. */
void gnii_early_forget(struct gnii_early *early, uint32_t event, uint16_t tag);

void gnii_early_fini(struct gnii_early *early);

#endif
