/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is broken in the network of a running machine, and what that does to traffic.
 */
#ifndef EMUNIC_DAEMON_NETWORK_NETWORK_H
#define EMUNIC_DAEMON_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/control.h"
#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/load.h"

struct emu_cmd;
struct emu_domain;
struct emu_port_end;
struct emu_server;
struct emu_word_list;
struct emu_words;

/*
 * EMU_MSG_NETWORK: breaks or mends something, now or later. -EINVAL; -ERANGE no such thing; -ENOSPC too many wait;
 * -ENOMEM.
 */
int emu_network_change(struct emu_server *server, const struct emu_msg_network *change);
/* All that is broken, for another host; and what another host has said. False: it makes no sense. */
void emu_network_put_state(const struct emu_server *server, struct emu_word_list *list);
bool emu_network_take_state(struct emu_server *server, struct emu_words *words);
void emu_network_destroy(struct emu_server *server);

/* NULL: everything is whole, and always was. */
const struct emu_fault_map *emu_network_faults(const struct emu_server *server);
/* Is every domain routed for the network's sake? */
bool emu_network_is_disturbed(const struct emu_server *server);
/* Does a packet get from one node to the other, and its answer back? Nids. */
bool emu_network_reaches(struct emu_server *server, uint32_t src_nid, uint32_t dst_nid);
/* No new request may start. */
bool emu_network_is_quiesced(const struct emu_server *server);
/* Has this command's target a way? False: it is dealt with, usually by an error. */
bool emu_network_takes(struct emu_port_end *port, const struct emu_cmd *cmd);
void emu_network_drop_port(struct emu_port_end *port);
/* Makes the changes that are due. Releases the traffic when its time has come and what was on the way has arrived. */
void emu_network_round(struct emu_server *server);
/* When to look again; UINT64_MAX: nothing waits. */
uint64_t emu_network_next_ns(const struct emu_server *server);

/* For reports. What links carried before the last change (by id), or NULL; faults that a link has had. */
const struct emu_link_load *emu_network_past_loads(const struct emu_server *server);
uint32_t emu_network_link_errors(const struct emu_server *server, uint32_t link);
uint64_t emu_network_quiesces(const struct emu_server *server);

#endif
