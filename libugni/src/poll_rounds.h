/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of polls. Private: exported by libugni.so for message layers of this project, in no installed header.
 *
 * An empty poll of a program may give its core away (emunic/client/idle.c). A message layer looks at several things in
 * turn each time that it is called. If each of these looks gave the core away, a message would wait for as many turns
 * of the scheduler as there are things. So its polls return at once, and it ends each round that found nothing with a
 * call of its own.
 *
 * In functional time. In virtual time polls and ends of rounds are as ever, and nothing, respectively.
 */
#ifndef LIBUGNI_POLL_ROUNDS_H
#define LIBUGNI_POLL_ROUNDS_H

#include <stdbool.h>

#include <gni_pub.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* From now on polls of this NIC return at once. Any thread. A handle that is none changes nothing. */
void gnii_rounds_begin(gni_nic_handle_t nic_hndl);

/*
 * A round has found nothing: gives the core away where others want it, unless the caller does that itself. Now and then
 * it looks whether emunic lives. Any thread, without locks of the caller.
 */
void gnii_rounds_end_one(gni_nic_handle_t nic_hndl, bool may_yield);

/*
 * The next rounds begin to wait anew, and other threads that wait in gnii_rounds_end_one() return. For what the NIC
 * does not see: the program does something without it between two rounds, so that it does not only wait; or a thread
 * has taken an event that another one waits for. Any thread, without locks of the caller.
 */
void gnii_rounds_stir(gni_nic_handle_t nic_hndl);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
