/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aries/misc/exceptions.h: names for the status of a completion queue entry, gni_cq_get_status().
 *
 * Programs that are compiled with -DCRAY_CONFIG_GHAL_ARIES include it beside gni_pub.h, to tell what has become of a
 * transaction that failed:
 *
 *   if (GNI_CQ_GET_STATUS(entry) == A_STATUS_AT_PROTECTION_ERR)
 *
 * A_STATUS_AT_PROTECTION_ERR is the original's name: address translation found that the registration does not allow
 * the access, such as a PUT into memory that is registered GNI_MEM_READ_ONLY. The other names are this library's,
 * because no source tells the original's, and so are all values: those that the entries of this library carry (reading
 * 7.3). A program that uses a name of the original which is not here does not compile, rather than to compare with a
 * wrong number. In C and C++, by itself or with gni_pub.h.
 */
#ifndef ARIES_MISC_EXCEPTIONS_H
#define ARIES_MISC_EXCEPTIONS_H

#define A_STATUS_OK                0  /* ours: no error */
#define A_STATUS_NETWORK_ERR       1  /* ours: lost on the way, or the NIC or a host has gone */
#define A_STATUS_PEER_GONE         2  /* ours: no such node in the domain, or the owner of the memory has died */
#define A_STATUS_AT_INVALID_HNDL   3  /* ours: no such memory domain, or a stale handle */
#define A_STATUS_AT_BOUNDS_ERR     4  /* ours: outside the registration */
#define A_STATUS_AT_PROTECTION_ERR 5  /* the registration, or the page, does not allow the access */
#define A_STATUS_CQ_FULL           6  /* ours: a queue write found no room */
#define A_STATUS_LOCAL_ACCESS_ERR  7  /* ours: the initiator's own memory is not there */
#define A_STATUS_RETRANSMIT_LIMIT  8  /* ours */
#define A_STATUS_CANCELLED         9  /* ours */
#define A_STATUS_BAD_COMMAND       10 /* ours */
#define A_STATUS_CE_MISMATCH       11 /* ours: the members of a reduction do not agree */

#endif
