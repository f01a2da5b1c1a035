/* SPDX-License-Identifier: BSD-3-Clause */
/* The message queue of a PE: what its rings (mq.c) and its helper thread (mq_progress.c) share. */
#ifndef LIBDMAPP_MQ_H
#define LIBDMAPP_MQ_H

#include <pthread.h>

#include "libdmapp/src/parts.h"

/*
 * At the start of the area. Written by: [S] senders  [O] the owner
 *
 *   byte 0        64                                  128             + depth * slot
 *        | tail   | head  is_asleep  wake handle      | slot 0 | slot 1 ...
 */
struct mq_ring {
    _Alignas(64) _Atomic uint64_t tail; /* [S] numbers ever taken */
    _Alignas(64) _Atomic uint64_t head; /* [O] messages ever taken out */
    _Atomic uint64_t is_asleep;         /* [O] 1, [S] 0 by who wakes: the helper thread waits for a queue write */
    gni_mem_handle_t wake_hndl;         /* [O] what to write to; valid while is_asleep is or has been 1 */
};

struct mq_slot {
    _Atomic uint64_t stamp; /* [S] last; see mq_stamp() */
    uint8_t data[];
};

struct mq_helper {
    pthread_t thread;
    _Atomic bool has_to_end;
    gni_cq_handle_t cq; /* of queue writes; blocking */
    gni_mem_handle_t hndl;
    void *page; /* owned: what the handle registers */
};

struct dmapp_queue {
    bool is_attached;
    _Atomic bool has_helper; /* it delivers, nobody else */
    int (*callback)(void *context, void *data, uint32_t len, dmapp_pe_t rank);
    void *context;
    struct mq_helper helper;
};

extern struct mq_ring *dmappi_mq_ring; /* ours */

/* Delivers what is there, unless another thread does, or this one is inside a callback. How many messages. */
unsigned dmappi_mq_deliver(void);
bool dmappi_mq_has_news(void);

/* The helper thread. 0 or a negative errno. */
int dmappi_mq_helper_start(struct mq_helper *helper);
void dmappi_mq_helper_stop(struct mq_helper *helper);
/* Wakes the helper thread of a PE, if there is one that sleeps. */
void dmappi_mq_wake(dmapp_pe_t pe);
void dmappi_mq_wake_fini(void);

#endif
