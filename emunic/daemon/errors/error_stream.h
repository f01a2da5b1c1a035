/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error events and who has subscribed to them.
 */
#ifndef EMUNIC_DAEMON_ERRORS_ERROR_STREAM_H
#define EMUNIC_DAEMON_ERRORS_ERROR_STREAM_H

#include <stdint.h>

#include "emunic/abi/error.h"
#include "emunic/daemon/core/part.h"

struct emu_cmd;
struct emu_connection;
struct emu_domain;
struct emu_msg_errors;
struct emu_port_end;
struct emu_server;

/* Tells subscribers on all hosts; ptag, serial number and time stamp are filled in. */
void emu_error_tell(struct emu_server *server, const struct emu_domain *domain, struct emu_error_record record);
/* Those here alone: the other hosts tell theirs. A time stamp of 0 is filled in. */
void emu_error_tell_here(struct emu_server *server, const struct emu_domain *domain, struct emu_error_record record);
/* So many events were lost on their way from another host. */
void emu_error_lose(struct emu_server *server, uint32_t n_lost);
/* A transaction has failed. code 0: by its status; rule 0: not injected. */
void emu_error_tell_transaction(const struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status,
                                uint16_t code, uint32_t rule);
void emu_error_tell_port(const struct emu_port_end *port, uint16_t code, uint8_t category, uint64_t count,
                         uint32_t rule);
/* An EMU_OP_REPORT command. */
void emu_error_take_report(const struct emu_port_end *port, const struct emu_cmd *cmd);
/* Tells the members of all domains whether anybody listens. */
void emu_error_watch_all(struct emu_server *server);
/* Does anybody listen here? */
bool emu_error_is_heard_here(const struct emu_server *server);
/*
 * The connection becomes a subscription. The descriptor to pass on, or negative errno. Other hosts have to be told
 * then (error_hosts.h).
 */
int emu_error_open(struct emu_connection *connection, const struct emu_msg_errors *asked);
void emu_error_close(struct emu_connection *connection);

extern const struct emu_part emu_errors_part;

#endif
