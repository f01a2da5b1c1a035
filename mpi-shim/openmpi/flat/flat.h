/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll/flat: small collective calls among few processes, in which each tells each. ../README.md has the protocol.
 *
 * Thread rule: any thread; calls on one communicator come one after the other, as MPI promises.
 */
#ifndef MPI_SHIM_OPENMPI_FLAT_FLAT_H
#define MPI_SHIM_OPENMPI_FLAT_FLAT_H

#include <ompi_config.h>

#include <stdatomic.h>

#include <mpi.h>

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/base/base.h>
#include <ompi/mca/coll/coll.h>

#include <gni_pub.h>

#define CFL_RANKS       32  /* of a communicator, at most */
#define CFL_PLACE_BYTES 56u /* of the data of a message, at most */

/*
 * What a process has heard from another one. A message is complete when its number stands in its place. Two places in
 * turn are enough: who sends message n + 2 has got n + 1 of its peer, which sent that after it had used n.
 */
struct cfl_line {
    struct {
        _Alignas(64) _Atomic uint64_t number; /* 0: none yet */
        uint8_t data[CFL_PLACE_BYTES];
    } place[2];
};

struct cfl_peer;

/* The lines of a communicator, from this process's side. */
struct cfl_channel {
    struct ompi_communicator_t *comm; /* borrowed */
    mca_coll_base_module_allreduce_fn_t agree;
    mca_coll_base_module_t *agree_module; /* borrowed */
    int n_ranks;
    int rank;
    uint64_t number;        /* of the last message to each, and of the next one from each when it comes */
    struct cfl_line *lines; /* owned, pages: by rank */
    bool is_registered;     /* with the NIC */
    gni_mem_handle_t memory;
    struct cfl_peer *peers; /* owned, by rank */
};

enum cfl_state { CFL_NEW, CFL_READY, CFL_REFUSED };

/* The module of a communicator: what it does itself, and what it leaves to the component before. */
typedef struct cfl_module {
    mca_coll_base_module_t super;
    enum cfl_state state;
    uint32_t n_calls;            /* that lines would have done */
    struct cfl_channel *channel; /* owned */
    mca_coll_base_module_allreduce_fn_t allreduce;
    mca_coll_base_module_t *allreduce_module;
    mca_coll_base_module_barrier_fn_t barrier;
    mca_coll_base_module_t *barrier_module;
} cfl_module_t;
OBJ_CLASS_DECLARATION(cfl_module_t);

extern int cfl_is_enabled;
extern int cfl_after_calls;
extern int cfl_ranks;

/* ---- flat_module.c ---- */

mca_coll_base_module_t *cfl_query(struct ompi_communicator_t *comm, int *priority);

/* ---- flat_channel.c ---- */

/* Once. Do processes share processors here? */
void cfl_look_around(void);

/* All processes of the communicator call it. NULL on all of them: there are no lines for it. */
struct cfl_channel *cfl_open(struct ompi_communicator_t *comm, cfl_module_t *module);
void cfl_close(struct cfl_channel *channel);

/* All processes of a channel call it. Their messages are in the lines until the call after the next one. */
void cfl_exchange(struct cfl_channel *channel, const void *data, size_t bytes);

/* True on all processes: all are fine. */
bool cfl_agree(struct cfl_channel *channel, bool is_fine);

/* What each process of the channel tells each. */
bool cfl_gather(struct cfl_channel *channel, const void *in, void *out, int bytes);

static inline const void *cfl_data_of(const struct cfl_channel *channel, int rank)
{
    return channel->lines[rank].place[channel->number & 1].data;
}

/* Ends the job with a message. */
_Noreturn void cfl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- flat_nic.c ---- */

/* All processes of the communicator call it. False on all of them: some cannot be reached as it should be. */
bool cfl_connect(struct cfl_channel *channel);

/* The number of the channel, and data before it, into our line at that process. */
void cfl_tell(struct cfl_channel *channel, int rank, const void *data, size_t bytes);

/* Open MPI's progress, of who waits for messages. */
void cfl_progress(void);

/* Also after cfl_connect() has failed. */
void cfl_disconnect(struct cfl_channel *channel);

/* Once, at the end of the job. */
void cfl_close_nic(void);

#endif
