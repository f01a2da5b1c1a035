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
    uint32_t n_cpus;                  /* that this process may run on */
    bool is_counted;                  /* the port, among those of this process */
    _Atomic uint32_t empty_polls;     /* of all threads since the last check for loss, roughly */
    _Atomic uint64_t since_ns;        /* since when polling has been in vain */
    _Atomic uint64_t activity;        /* of the port when that began */
    _Atomic uint32_t polls;           /* since then, or since the last rest */
    _Atomic uint32_t cycle;           /* things that the program polls in turn */
    _Atomic uint32_t shared;          /* 0: the core is ours; else so many quick yields in turn until it counts so */
};

/* Parts of emu_port_attach() and emu_port_detach(). A port that was never opened may be closed. */
void emu_idle_open(struct emu_port *port);
void emu_idle_close(struct emu_port *port);

#endif
