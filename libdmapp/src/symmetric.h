/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job's symmetric memory and NIC handles for libsma. Private: exported by libdmapp.so for libraries of this
 * project, in no installed header. With them libsma goes the short way (libugni/src/launch.h) itself, to the targets
 * of dmapp_put(), and reduces by collective engines.
 */
#ifndef LIBDMAPP_SYMMETRIC_H
#define LIBDMAPP_SYMMETRIC_H

#include <stdint.h>

#include <dmapp.h>
#include <gni_pub.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct gnii_launch_target;

enum dmappi_symmetric { DMAPPI_DATA, DMAPPI_SHEAP, DMAPPI_SYMMETRIC };

/* A symmetric segment of a PE, in its own addresses. */
struct dmappi_symmetric_segment {
    uint64_t addr;
    uint64_t len_bytes;
    struct gnii_launch_target *target; /* borrowed, until the last dmapp_finalize(); NULL: post only */
    uint32_t nic_addr;                 /* of the PE's node */
    uint32_t instance_id;              /* of the PE's NIC handle */
};

/* Any thread, between dmapp_init() and the last dmapp_finalize(); pe is one of the job's. */
struct dmappi_symmetric_segment dmappi_symmetric_segment(dmapp_pe_t pe, enum dmappi_symmetric kind);

/* The NIC handle of this PE, borrowed. Likewise. */
gni_nic_handle_t dmappi_nic(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
