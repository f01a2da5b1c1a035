/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Administration of the machine: whoever asks the emunic of one host asks all of them. On the server's thread; while
 * this host is alone everything is done at once.
 *
 * A request of the admin socket that changes the machine (order_request.h) is answered when all hosts that are up have
 * done the same, with a descriptor of a text if some have not: a line for each, "NAME: why". -EHOSTUNREACH: the head is
 * not up, is lost meanwhile, or does not answer.
 */
#ifndef EMUNIC_DAEMON_ORDERS_ORDERS_H
#define EMUNIC_DAEMON_ORDERS_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/daemon/core/part.h"

struct emu_change;
struct emu_domain;

extern const struct emu_part emu_orders_part;

/* The end of a suspension that was begun with this order. */
void emu_order_ended(struct emu_server *server, uint64_t number, int result);
/* A change that nobody has asked for: on all hosts, from the head. `change` is taken over; its type alone is set. */
int emu_order_begin(struct emu_server *server, uint16_t type, struct emu_change *change);
/* To a host that was told of the domain just before: its rules, limits and all. */
void emu_orders_tell_domain(struct emu_server *server, uint32_t host, const struct emu_domain *domain);

#endif
