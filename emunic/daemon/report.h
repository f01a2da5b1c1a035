/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports: JSON text in a new memfd. Descriptor or negative errno.
 */
#ifndef EMUNIC_DAEMON_REPORT_H
#define EMUNIC_DAEMON_REPORT_H

struct emu_server;

int emu_report_status(struct emu_server *server);
int emu_report_links(struct emu_server *server);
int emu_report_faults(struct emu_server *server);

#endif
