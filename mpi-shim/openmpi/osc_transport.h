/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a transport of ours offers to osc/emunic: memory of another process by plain calls.
 *
 * A process exposes the memory of a window and tells others the words that it got for it. With them another process
 * opens a reach of that memory. A put or get through a reach is over when the call returns, and is the NIC's: it is
 * counted like any other. What a call cannot do at once it does not do at all.
 */
#ifndef MPI_SHIM_OPENMPI_OSC_TRANSPORT_H
#define MPI_SHIM_OPENMPI_OSC_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ompi_config.h>

#include <ompi/mca/mtl/mtl.h>
#include <opal/mca/btl/btl.h>

#define MO_WORDS 4u

struct mo_transport {
    size_t longest_bytes; /* of a put or get */
    /* NULL: not possible. */
    void *(*expose)(void *base, size_t size, uint64_t words_out[MO_WORDS]);
    void (*hide)(void *exposed);
    /* Never of this process. NULL: over gni memory of its node, which needs no NIC; or not possible. */
    void *(*open)(const uint64_t words[MO_WORDS]);
    void (*close)(void *reach);
    /* False: nothing has happened. */
    bool (*put)(void *reach, uint64_t address, const void *data, size_t n_bytes);
    bool (*get)(void *reach, uint64_t address, void *data, size_t n_bytes);
    /* Makes progress. To be called now and then by who does not wait. */
    void (*progress)(void);
};

/* How the module of btl/gni begins. */
struct mo_module {
    mca_btl_base_module_t super;
    const struct mo_transport *windows;
};

/* And that of mtl/portals3. */
struct mo_mtl_module {
    mca_mtl_base_module_t super;
    const struct mo_transport *windows;
};

#endif
