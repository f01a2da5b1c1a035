/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port remembers of polls that found nothing. The calls are in port.h: emu_port_relax() and its like.
 */
#ifndef EMUNIC_CLIENT_IDLE_H
#define EMUNIC_CLIENT_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct emu_port;

/* Several threads may write at once and lose some: it does not matter. */
struct emu_idle {
    uint32_t n_cpus;                 /* that this process may run on */
    bool is_counted;                 /* the port, among those of this process */
    bool is_far;                     /* the domain has nodes on other hosts */
    _Atomic bool is_in_rounds;       /* the caller ends its rounds of polls itself */
    _Atomic uint32_t empty_polls;    /* of all threads, roughly */
    _Atomic uint32_t found_at;       /* of those, at the last poll that found something, roughly */
    _Atomic uint32_t shared;         /* 0: the core is ours; else so many quick yields in turn until it counts so */
    _Atomic uint32_t yield_ns;       /* the shortest so far; 0: none yet */
    _Atomic uint32_t cycle;          /* things that the program polls in turn */
    _Atomic uint32_t polls;          /* since polling is in vain, or since the last rest */
    _Atomic uint64_t since_ns;       /* since when polling is in vain */
    _Atomic uint64_t activity;       /* of the port when that began */
    _Atomic uint64_t left_ns;        /* end of the last poll that looked at the clock; 0: none has */
    _Atomic uint64_t left_cpu_ns;    /* processor time of the process then */
    _Atomic uintptr_t first_polled;  /* virtual time: what was polled first of those in a row, */
    _Atomic uint32_t aside_in_a_row; /* calls beside polls in vain, */
    _Atomic uint32_t aside_at;       /* and how many empty polls there were before the last of them */
    _Atomic uint64_t nap_until_ns; /* the program has slept by itself: until then it counts as one that does; 0: not */
};

/* Parts of emu_port_attach() and emu_port_detach(). A port that was never opened may be closed. */
void emu_idle_open(struct emu_port *port);
void emu_idle_close(struct emu_port *port);

#endif
