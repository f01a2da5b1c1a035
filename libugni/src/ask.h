/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions to emunic outside a NIC handle, each on a connection of its own.
 */
#ifndef LIBUGNI_ASK_H
#define LIBUGNI_ASK_H

#include <stdint.h>

#include "emunic/base/socket.h"

/*
 * Sends *msg, with a descriptor if fd >= 0, and takes the reply. emunic's answer; -ECONNREFUSED: there is none;
 * -EACCES: not a server to trust, or one that does not listen to this user on that socket.
 */
int gnii_ask(enum emu_socket_kind kind, struct emu_msg *msg, int fd);

/* Node of this process as the launcher has set it, or EMU_NID_NONE. */
uint32_t gnii_nid_of_environment(void);

#endif
