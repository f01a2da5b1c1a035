/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines: making them, filling those of others, waiting for one's own.
 *
 * Opening takes one exchange and one agreement, both by the component before this one. The agreement also is the
 * barrier behind which all lines are there. Nobody's message is on its way to lines that are freed: each process waits
 * for the messages of all in each call, and has got the last ones when its last call ends.
 */
#include "mpi-shim/openmpi/flat/coll.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ompi/mca/rte/rte.h>

#include "emunic/base/clock.h"
#include "emunic/base/yield_cost.h"

#define LOOKS    64u /* between two calls of cfl_progress() */
#define SWITCHES EMU_YIELD_SLOW_FACTOR

/* Of this process. */
static struct {
    int n_processors;   /* 0: no two processes share one */
    uint64_t switch_ns; /* what it costs at least to give the processor to another process */
} here;

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
    here.n_processors = n_processes > CPU_COUNT(&set) ? CPU_COUNT(&set) : 0;
    if (here.n_processors > 0)
        here.switch_ns = (uint64_t)SWITCHES * emu_yield_measure_ns();
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

static int count_missing(const struct cfl_channel *channel)
{
    uint64_t number = channel->number;
    int n = 0;

    for (int i = 0; i < channel->n_ranks; i++)
        n += atomic_load_explicit(&channel->lines[i].place[number & 1].number, memory_order_acquire) != number;
    return n;
}

/*
 * Processes that run now, on other processors, come by themselves. If more are missing than there are other
 * processors, one waits for ours and gets it at once. Else the last ones are on their way, and are waited for as long
 * as giving the processor away would cost.
 */
static void wait_crowded(int n_missing, uint64_t *until_ns)
{
    if (n_missing < here.n_processors) {
        uint64_t time_ns = emu_clock_ns();

        if (*until_ns == 0)
            *until_ns = time_ns + here.switch_ns;
        if (time_ns < *until_ns)
            return;
    }
    *until_ns = 0;
    cfl_progress();
}

static void wait_for_all(const struct cfl_channel *channel)
{
    uint64_t until_ns = 0;
    unsigned n_looks = 0;
    int n_missing;

    while ((n_missing = count_missing(channel)) > 0) {
        if (here.n_processors > 0)
            wait_crowded(n_missing, &until_ns);
        else if (++n_looks % LOOKS == 0)
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
