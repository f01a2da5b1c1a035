/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines: making them, filling those of others, waiting for one's own.
 *
 * Opening takes one exchange and one agreement, both by the component before this one. The agreement also is the
 * barrier behind which all lines are there. Nobody's message is on its way to lines that are freed: each process waits
 * for the messages of all in each call, and has got the last ones when its last call ends.
 */
#include "mpi-shim/openmpi/flat/flat.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ompi/mca/rte/rte.h>

#define LOOKS  64u /* between two calls of cfl_progress() */
#define YIELDS 4u  /* likewise, where processes share processors */

static bool is_crowded; /* processes of the job share the processors of this one */

_Noreturn void cfl_fail(const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    opal_output(0, "emunic: coll/flat: %s", text);
    ompi_rte_abort(1, NULL);
    abort();
}

void cfl_look_around(void)
{
    int n_processes = (int)ompi_process_info.num_local_peers + 1;
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        CPU_SET(0, &set);
    is_crowded = n_processes > CPU_COUNT(&set);
}

/* ---- talking to the others, by the component before ---- */

bool cfl_gather(struct cfl_channel *channel, const void *in, void *out, int bytes)
{
    struct ompi_communicator_t *comm = channel->comm;

    return comm->c_coll->coll_allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm,
                                        comm->c_coll->coll_allgather_module) == OMPI_SUCCESS;
}

bool cfl_agree(struct cfl_channel *channel, bool is_fine)
{
    int mine = is_fine;
    int all = 0;

    return channel->agree(&mine, &all, 1, MPI_INT, MPI_MIN, channel->comm, channel->agree_module) == OMPI_SUCCESS &&
           all;
}

/* ---- life ---- */

static size_t lines_bytes(const struct cfl_channel *channel)
{
    return (size_t)channel->n_ranks * sizeof(struct cfl_line);
}

struct cfl_channel *cfl_open(struct ompi_communicator_t *comm, cfl_module_t *module)
{
    struct cfl_channel *channel = calloc(1, sizeof(*channel));

    if (!channel)
        cfl_fail("memory");
    channel->comm = comm;
    channel->agree = module->allreduce;
    channel->agree_module = module->allreduce_module;
    channel->n_ranks = ompi_comm_size(comm);
    channel->rank = ompi_comm_rank(comm);
    channel->lines = mmap(NULL, lines_bytes(channel), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (channel->lines == MAP_FAILED)
        cfl_fail("memory");
    if (cfl_connect(channel))
        return channel;
    cfl_close(channel);
    return NULL;
}

void cfl_close(struct cfl_channel *channel)
{
    cfl_disconnect(channel);
    munmap(channel->lines, lines_bytes(channel));
    free(channel);
}

/* ---- waiting ---- */

static bool is_missing(const struct cfl_channel *channel)
{
    uint64_t number = channel->number;

    for (int i = 0; i < channel->n_ranks; i++)
        if (atomic_load_explicit(&channel->lines[i].place[number & 1].number, memory_order_acquire) != number)
            return true;
    return false;
}

/*
 * Somebody who is missing waits for our processor, mostly. Looking for as long as a switch takes before giving it away,
 * where few enough are missing, took twice as long with two processes on each core.
 */
static void give_way(unsigned n_looks)
{
    if (n_looks % YIELDS == 0)
        cfl_progress();
    else
        sched_yield();
}

static void wait_for_all(const struct cfl_channel *channel)
{
    unsigned n_looks = 0;

    while (is_missing(channel)) {
        n_looks++;
        if (is_crowded)
            give_way(n_looks);
        else if (n_looks % LOOKS == 0)
            cfl_progress();
    }
}

void cfl_exchange(struct cfl_channel *channel, const void *data, size_t bytes)
{
    struct cfl_line *own = &channel->lines[channel->rank];
    uint64_t number = ++channel->number;

    if (bytes > 0)
        memcpy(own->place[number & 1].data, data, bytes);
    atomic_store_explicit(&own->place[number & 1].number, number, memory_order_relaxed);
    for (int i = 1; i < channel->n_ranks; i++)
        cfl_tell(channel, (channel->rank + i) % channel->n_ranks, data, bytes);
    wait_for_all(channel);
}
