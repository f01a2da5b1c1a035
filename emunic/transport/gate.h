/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission in front of libfabric's tcp: it gets no descriptor but of a connection whose two ends have proven to each
 * other that they have the key (admit.h). README.md tells the design.
 *
 * A gate belongs to one carrier. Whoever calls libfabric for that carrier puts it into emu_gate_current for the time
 * of the call; calls of other code for sockets are the kernel's.
 */
#ifndef EMUNIC_TRANSPORT_GATE_H
#define EMUNIC_TRANSPORT_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/transport/admit.h"

struct emu_gate;

struct emu_gate_config {
    struct emu_admit_config admit;
    uint64_t deadline_ns;   /* from a connection to its proof */
    uint64_t again_ns;      /* after that another connection is tried beside one that is still being made */
    uint32_t n_strangers;   /* connections without a proof that are kept; a later one pushes out the oldest */
    uint32_t n_per_address; /* likewise, of one address */
    uint32_t per_second;    /* new ones of one address, see caller_rate.h */
};

struct emu_gate_counts {
    uint64_t admitted; /* that called us */
    uint64_t refused;  /* strangers that said anything, or were too slow */
    uint64_t silent;   /* strangers that went without a word */
    int last_error;    /* of the last refused one, for emu_admit_reason() */
    char last[64];     /* its address */
};

extern _Thread_local struct emu_gate *emu_gate_current;

/* Starts the gate's thread. */
int emu_gate_open(const struct emu_gate_config *config, struct emu_gate **gate_out);
/* Ends the thread, which never waits for a peer, and closes what nobody has got. NULL is fine. */
void emu_gate_close(struct emu_gate *gate);
/* Has libfabric's first listening socket passed through the gate? */
bool emu_gate_is_listening(const struct emu_gate *gate);
/* Changes when a connection was admitted or is ready: what could not be sent may go now. Any thread. */
uint64_t emu_gate_news(const struct emu_gate *gate);
/* How often libfabric was told to come back for a connection. Owner's thread. */
uint64_t emu_gate_delays(const struct emu_gate *gate);
/* The last call to the address: 0, or the error for which the handshake ended, see emu_admit_take(). */
int emu_gate_verdict(struct emu_gate *gate, const struct sockaddr *address);
void emu_gate_counts(struct emu_gate *gate, struct emu_gate_counts *counts_out);

#endif
