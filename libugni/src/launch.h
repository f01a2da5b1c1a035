/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launch entry: small operations for libdmapp. Private: exported by libugni.so for libraries of this project, in no
 * installed header.
 *
 * The counterpart of Aries' FMA launch: one operation to any node and offset without a descriptor, completion entry or
 * transfer slot. A target is one memory handle of a peer. On memory that is mapped here an operation is a checked
 * store, load or processor atomic, done and visible when the call returns. Whatever else it would take (errors,
 * faults, memory that is not mapped, the routed path) answers GNII_LAUNCH_POST before anything has happened: post
 * it instead.
 *
 * Ordering: operations of one thread through one target are seen in their order.
 */
#ifndef LIBUGNI_LAUNCH_H
#define LIBUGNI_LAUNCH_H

#include <stdint.h>

#include <gni_pub.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct gnii_launch_target;

enum gnii_launch_op {
    GNII_LAUNCH_PUT,        /* arg1 local address, arg2 length in bytes */
    GNII_LAUNCH_GET,        /* the same */
    GNII_LAUNCH_FLAG,       /* arg1 value of an aligned 64-bit word */
    GNII_LAUNCH_AMO = 0x10, /* + enum emu_amo_op, with GNII_LAUNCH_32BIT: arg1, arg2 operands; *old_out, if not NULL */
};
#define GNII_LAUNCH_32BIT 0x100

enum gnii_launch_result {
    GNII_LAUNCH_DONE,
    GNII_LAUNCH_POST, /* nothing has happened */
};

/* A target of a live NIC handle. NULL: out of memory. */
struct gnii_launch_target *gnii_launch_open(gni_nic_handle_t nic, uint32_t nic_addr, const gni_mem_handle_t *handle);

/* Before the NIC is destroyed. */
void gnii_launch_close(struct gnii_launch_target *target);

/*
 * One operation; a function for each kind, because what they have in common is less than what keeping them in one would
 * cost. Any thread. No bytes: nothing. Local memory is the caller's to have.
 */
enum gnii_launch_result gnii_launch_put(struct gnii_launch_target *target, uint64_t remote_addr, const void *data,
                                        uint64_t len_bytes);
enum gnii_launch_result gnii_launch_get(struct gnii_launch_target *target, uint64_t remote_addr, void *data,
                                        uint64_t len_bytes);
enum gnii_launch_result gnii_launch_flag(struct gnii_launch_target *target, uint64_t remote_addr, uint64_t value);
/* op: GNII_LAUNCH_AMO and more. */
enum gnii_launch_result gnii_launch_amo(struct gnii_launch_target *target, unsigned op, uint64_t remote_addr,
                                        uint64_t operand1, uint64_t operand2);
enum gnii_launch_result gnii_launch_fetching_amo(struct gnii_launch_target *target, unsigned op, uint64_t remote_addr,
                                                 uint64_t operand1, uint64_t operand2, uint64_t *old_out);

/* The one that op names; callers mostly know it when they are compiled. */
static inline enum gnii_launch_result gnii_launch(struct gnii_launch_target *target, unsigned op, uint64_t remote_addr,
                                                  uint64_t arg1, uint64_t arg2, uint64_t *old_out)
{
    switch (op) {
    case GNII_LAUNCH_PUT:
        return gnii_launch_put(target, remote_addr, (const void *)(uintptr_t)arg1, arg2);
    case GNII_LAUNCH_GET:
        return gnii_launch_get(target, remote_addr, (void *)(uintptr_t)arg1, arg2);
    case GNII_LAUNCH_FLAG:
        return gnii_launch_flag(target, remote_addr, arg1);
    default:
        return old_out ? gnii_launch_fetching_amo(target, op, remote_addr, arg1, arg2, old_out) :
                         gnii_launch_amo(target, op, remote_addr, arg1, arg2);
    }
}

/*
 * Where [remote_addr, remote_addr + len) of the target is mapped here, for loads and stores of the program itself;
 * NULL: nowhere, or the direct path is closed. It stays while the peer has its memory. Nothing there is counted.
 */
void *gnii_launch_window(struct gnii_launch_target *target, uint64_t remote_addr, uint64_t len_bytes);

/* What a sched_yield() that nobody wanted costs on this host, as emunic measured it. */
uint32_t gnii_launch_yield_ns(const struct gnii_launch_target *target);

/* Says once per process, where EMUNIC_LOG lets errors through, that the launcher's variable is not set. */
void gnii_tell_no_job(const char *variable);

/* Longest put or get that is served at once; what is longer is to be cut or posted. */
#define GNII_LAUNCH_BYTES_MAX (1u << 20)

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
