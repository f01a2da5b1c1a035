/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations that were given back and may be wanted again (parked.c). NIC lock held, but where it says otherwise.
 */
#ifndef LIBUGNI_PARKED_H
#define LIBUGNI_PARKED_H

#include <stdbool.h>
#include <stdint.h>

#include "libugni/src/ugni.h"

/* A park for a new registration, or GNII_NO_PARK. */
int8_t gnii_parked_reserve(struct gnii_nic *nic);
void gnii_parked_release(struct gnii_nic *nic, int8_t park);

/* Takes a registration over whose handle is no longer known. False: the caller has to deregister it at emunic. */
bool gnii_parked_put(struct gnii_nic *nic, struct gnii_md *md);

/* What a program asks for. */
struct gnii_parked_wish {
    uint64_t addr;
    uint64_t length_bytes;
    uint32_t flags;
    uint32_t dst_cq;
};

/*
 * A parked registration that is the same in every respect, no longer parked and not yet reached by anybody; NULL: there
 * is none. Its pages may be others than they were: see gnii_parked_is_in_place().
 */
struct gnii_md *gnii_parked_take(struct gnii_nic *nic, const struct gnii_parked_wish *wish);

/* Are the pages there, accessible, and where this registration says that peers find them? */
bool gnii_parked_is_in_place(struct gnii_nic *nic, const struct gnii_md *md);

/* Maps of this process that stay open after gnii_parked_is_in_place(); NULL: this kernel has nothing to ask. */
const struct emu_maps *gnii_parked_maps(const struct gnii_nic *nic);

/* Deregisters one that was taken, and frees it. */
void gnii_parked_deregister(struct gnii_nic *nic, struct gnii_md *md);

/* Deregisters all that is parked. */
void gnii_parked_give_back(struct gnii_nic *nic);

/* A queue ends: its registrations, parked or living, are not to be found again under the next queue of its index. */
void gnii_parked_queue_ends(struct gnii_nic *nic, uint32_t index);

/* Forgets all, when the port has gone or is another process's. */
void gnii_parked_forget(struct gnii_nic *nic);

#endif
