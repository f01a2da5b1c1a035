/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic, the process that plays driver, device and machine: what starts it.
 */
#ifndef EMUNIC_DAEMON_DAEMON_H
#define EMUNIC_DAEMON_DAEMON_H

#include "emunic/daemon/core/loop.h"

/* A server with all parts that there are. 0 or negative errno, and then a text that says why. */
int emu_daemon_create(const struct emu_server_options *options, struct emu_server **server_out, char *err,
                      size_t err_len);

#endif
