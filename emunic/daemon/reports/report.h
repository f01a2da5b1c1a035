/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports: JSON text in a new memfd.
 */
#ifndef EMUNIC_DAEMON_REPORTS_REPORT_H
#define EMUNIC_DAEMON_REPORTS_REPORT_H

#include <stdint.h>

struct emu_gathered;
struct emu_server;
struct emu_word_list;

/*
 * EMU_MSG_STATUS, EMU_MSG_LINKS or EMU_MSG_FAULTS, with what the other hosts have said; NULL: nothing. Descriptor or
 * negative errno.
 */
int emu_report_make(struct emu_server *server, uint16_t type, const struct emu_gathered *gathered);
/* What another host wants to know for its report of that type: rows of abi/host_admin.h. */
void emu_report_rows(struct emu_server *server, uint16_t type, struct emu_word_list *rows);

#endif
