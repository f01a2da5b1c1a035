/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processors that emunic itself runs on, kept away from those of its ranks (emunic/place tells which).
 */
#ifndef EMUNIC_DAEMON_BIND_BIND_H
#define EMUNIC_DAEMON_BIND_BIND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "emunic/daemon/core/server.h"

struct emu_member;
struct emu_bind;       /* owned by its server */
struct emu_bind_group; /* members that may use the same processors; owned by the bind */

/* "auto", "none", or a list of processors as "0-3,8"? */
bool emu_bind_is_valid(const char *text);

/*
 * Looks at what this thread may use and, for a list, goes there. Call it before there are members, and when the
 * transport is open. text NULL: auto. -EINVAL: none of the list's processors may be used here; err tells.
 */
int emu_bind_create(struct emu_server *server, const char *text, char *err, size_t err_len);
/* No member is left. */
void emu_bind_destroy(struct emu_server *server);

/* The member's process has come, or may have bound itself since. */
void emu_bind_look(struct emu_server *server, struct emu_member *member);
/* The member goes. */
void emu_bind_forget(struct emu_server *server, struct emu_member *member);
/* In the loop: chooses anew if ranks have come, gone or moved. */
void emu_bind_round(struct emu_server *server);

/* {"bind", "processors", "why"}; NULL: no memory. */
json_t *emu_bind_describe(const struct emu_server *server);

#endif
