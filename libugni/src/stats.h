/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of a NIC handle (GNI_GetNicStat).
 *
 * One plain 32-bit word each, changed and read under the NIC's lock: counting is one increment of a line that the NIC's
 * owner has anyway, and happens only where something was refused or done again, never on the way of an operation
 * that goes through. What is counted where (meanings inferred from the names, spec/ugni.md 2.19):
 *
 *   SMSG_MBOX_CREDITS_STALL   a send found no credit: all slots of the peer's mailbox are taken
 *   SMSG_REQ_STALL            a send found no room in its source queue for the completion
 *   SMSG_BUFF_CREDITS_STALL   a send found no memory to remember it, or the NIC gone while it waited for ring space
 *   SMSG_RETRANS_COUNT        messages sent again
 *   FLBTE_TXD_NONE            a block transfer was refused: the job's limit of outstanding ones is reached
 *
 * The others count parts that this NIC does not have (DLA blocks, descriptors in host memory) and stay 0.
 */
#ifndef LIBUGNI_STATS_H
#define LIBUGNI_STATS_H

#include "libugni/src/ugni.h"

/* The long form's numbers, whatever form the program uses. */
enum gnii_stat {
    GNII_STAT_SMSG_BUFF_CREDITS_STALL = 0,
    GNII_STAT_SMSG_MBOX_CREDITS_STALL = 2,
    GNII_STAT_SMSG_REQ_STALL = 3,
    GNII_STAT_SMSG_RETRANS_COUNT = 4,
    GNII_STAT_FLBTE_TXD_NONE = 18,
};

/* NIC lock held. Wraps at 2^32, as the original's width says. */
static inline void gnii_stat_count(struct gnii_nic *nic, unsigned stat)
{
    nic->stats[stat]++;
}

#endif
