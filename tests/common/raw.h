/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client without the library: keeps the descriptors that emunic hands out, maps the segment itself, sends any request
 * and any command. For tests of what emunic lets a member do.
 */
#ifndef TESTS_COMMON_RAW_H
#define TESTS_COMMON_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/client/session.h"

struct raw {
    struct emu_session session;
    struct emu_msg_attach attach; /* emunic's answer */
    int table_fd;
    int segment_fd;
    int doorbell;
    const struct emu_table *table; /* mapped, read-only */
    struct emu_segment *segment;   /* mapped */
};

/* Connects and says hello. 0 or negative errno. */
int raw_connect(struct raw *raw, const char *server);

/* Attaches on an open connection. 0, or emunic's answer. */
int raw_attach(struct raw *raw, uint32_t ptag, uint32_t cookie, uint32_t instance_id, uint32_t nid);

/* Both. On failure nothing stays open. */
int raw_open(struct raw *raw, const char *server, uint32_t ptag, uint32_t cookie, uint32_t instance_id, uint32_t nid);

/* Lets go of everything; also after a failed attach. */
void raw_close(struct raw *raw);

/* One request without descriptors; the reply replaces *msg. emunic's answer, or -ENETDOWN. */
int raw_request(struct raw *raw, struct emu_msg *msg);

/* Publishes one command and rings the doorbell. The ring must have room. */
void raw_post(struct raw *raw, const struct emu_cmd *cmd);

#endif
