/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains that all hosts of the machine have. On the server's thread; without other hosts nothing happens.
 */
#ifndef EMUNIC_DAEMON_JOBS_HOST_DOMAINS_H
#define EMUNIC_DAEMON_JOBS_HOST_DOMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/daemon/core/part.h"

struct emu_domain;
struct emu_domain_spec;

extern const struct emu_part emu_host_domains_part;

/* What a domain is on other hosts. */
struct emu_domain_hosts {
    uint8_t *presence;     /* owned, on the head: what each host has of it (presence.c); NULL none */
    uint8_t told_presence; /* elsewhere: what the head was told last */
    bool is_in_doubt;      /* the head has not said yet that it still exists */
    uint32_t told_lack;    /* elsewhere: what the head was told by EMU_HOST_DOMAIN_REACHES last */
};

/*
 * Makes a domain here and on all other hosts; the head only. 0: made, the others have been told; -EPERM: this is not
 * the head; -EHOSTUNREACH: a host that has nodes of it is not up, and must be. One that comes up later is told then.
 */
int emu_host_domains_make(struct emu_server *server, const struct emu_domain_spec *spec, bool must_be_up,
                          struct emu_domain **domain_out);

#endif
