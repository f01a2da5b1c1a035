/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request on a connection of its own. The admin socket answers only root and emunic's own user: a caller without
 * privilege is told from an emunic that is not there (-ECONNREFUSED) and one that can take nobody (-ENETDOWN).
 */
#include "libugni/src/ask.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/client/session.h"
#include "libugni/src/launch.h"

int gnii_ask(enum emu_socket_kind kind, struct emu_msg *msg, int fd)
{
    char name[EMU_SERVER_NAME_MAX + 1];
    struct emu_session session;
    int r;

    r = emu_session_open(&session, emu_session_default_server(name, sizeof(name)), kind);
    if (r == -EPERM)
        return -EACCES;
    if (r < 0)
        return r;
    r = emu_session_request(&session, msg, &fd, fd >= 0 ? 1 : 0, NULL);
    emu_session_close(&session);
    return r < 0 ? r : msg->result;
}

uint32_t gnii_nid_of_environment(void)
{
    const char *text = getenv("EMUNIC_NID");
    unsigned long nid;
    char *end;

    if (!text || !text[0])
        return EMU_NID_NONE;
    nid = strtoul(text, &end, 10);
    return *end || nid > EMU_NID_MAX ? EMU_NID_NONE : (uint32_t)nid;
}

void gnii_tell_no_job(const char *variable)
{
    emu_session_tell_no_job(variable);
}
