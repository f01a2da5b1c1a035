/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric by itself between two processes, as emunic's transport opens it (emunic/transport/ofi.c): its calls behind
 * one pointer and nothing else. What the transport and emunic are measured against.
 */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/transport/carrier.h"

#define BARE_WINDOW 8u

/* What the other side has to know; travels as bytes. */
struct bare_name {
    uint8_t address[EMU_CARRIER_ADDRESS_MAX];
    uint32_t address_bytes;
    uint64_t key;
    uint64_t base;
};

struct bare {
    struct emu_carrier *c;
    uint64_t peer;
    struct bare_name theirs;
    struct emu_carrier_memory own;
    volatile uint8_t *memory; /* borrowed */
    struct emu_carrier_op send_op;
    struct emu_carrier_op receive_op;
    struct emu_carrier_op move_op[BARE_WINDOW];
    uint8_t packet[2][64];
    uint64_t turn; /* number of the put last, back and forth */
    long n_sent;
    long n_received;
    long n_moved;
};

/*
 * The provider and local address to use; NULL: tcp;ofi_rxm, the provider's choice. Memory outlives it. Errors end the
 * program.
 */
void bare_open(struct bare *b, const char *provider, const char *node, void *memory, uint64_t length_bytes,
               struct bare_name *mine_out);
void bare_join(struct bare *b, const struct bare_name *theirs);
void bare_poll(struct bare *b);

/* 8 bytes n times back and forth; rank 0 begins. By messages, or by puts that the other side sees in its memory. */
void bare_message_pingpong(struct bare *b, int rank, long n);
void bare_put_pingpong(struct bare *b, int rank, long n);

/* n transfers from or to the first bytes of both memories, `window` under way. The other side serves meanwhile. */
void bare_stream(struct bare *b, bool is_put, uint64_t bytes, unsigned window, long n);
/* Lets libfabric work until the other side says bare_dismiss(). */
void bare_serve(struct bare *b);
void bare_dismiss(struct bare *b);

#endif
