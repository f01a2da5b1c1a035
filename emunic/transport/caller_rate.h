/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many connections an address may begin in a second without a proof of the key. What comes from an address beyond
 * its number is dropped by the kernel, by a filter of the listening socket, until the second is over: a packet dropped
 * there costs neither the gate's thread nor a wake-up.
 *
 * One thread at a time. No memory is allocated.
 */
#ifndef EMUNIC_TRANSPORT_CALLER_RATE_H
#define EMUNIC_TRANSPORT_CALLER_RATE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#define EMU_CALLER_BYTES  16  /* IPv6, or IPv4 mapped */
#define EMU_CALLERS       256 /* addresses with a number of their own; the others share one */
#define EMU_CALLERS_SHUT  32  /* of these, in the filter at a time: older kernels take no longer one */
#define EMU_CALLER_KNOWN  8   /* an address that has proven the key before may have that many times the number */
#define EMU_CALLER_FILTER (8 + 9 * EMU_CALLERS_SHUT) /* instructions at most */

struct emu_caller {
    uint8_t address[EMU_CALLER_BYTES];
    uint32_t n;    /* begun in this second, less those proven */
    bool is_known; /* has proven the key */
    bool is_shut;  /* in the filter */
};

struct emu_caller_rate {
    uint32_t per_second;
    uint32_t n_callers;
    uint32_t n_shut;
    uint64_t second_ns; /* when the second began */
    struct emu_caller others;
    struct emu_caller callers[EMU_CALLERS];
};

enum emu_caller_verdict {
    EMU_CALLER_WELCOME,
    EMU_CALLER_SHUT,     /* and the filter has changed */
    EMU_CALLER_TOO_MANY, /* beyond its number, and in the filter already, or there is no room in it */
};

/* A connection of the address has come. */
enum emu_caller_verdict emu_caller_begins(struct emu_caller_rate *rate, const uint8_t address[EMU_CALLER_BYTES],
                                          uint64_t now_ns);
/* One of the address has proven the key. */
void emu_caller_proves(struct emu_caller_rate *rate, const uint8_t address[EMU_CALLER_BYTES]);
/* True: the second is over, and the filter has to go. */
bool emu_caller_second_is_over(struct emu_caller_rate *rate, uint64_t now_ns);
/* When to look again (ns): UINT64_MAX if nobody is shut out. */
uint64_t emu_caller_next_ns(const struct emu_caller_rate *rate);
/* A program for SO_ATTACH_FILTER that drops packets of those who are shut out. Returns its length. */
uint16_t emu_caller_filter(const struct emu_caller_rate *rate, struct sock_filter program_out[EMU_CALLER_FILTER]);

#endif
