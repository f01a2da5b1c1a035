/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collective calls of a communicator: a small one is one exchange in which each process tells each, any other is
 * left to the component before this one.
 *
 *   barrier     messages without data
 *   allreduce   elements of a predefined type without holes, as many as a message has room for; any operation
 *
 * All processes decide alike, by what MPI wants to be equal on all of them: type, count and operation. Each of them
 * combines the elements of all, in the order of ranks and with the brackets of Open MPI's recursive doubling: first
 * pairs, until a power of two is left, then pairs of those. So all get the same bits each time, the same as without
 * this component where Open MPI doubles, and operations need not commute.
 */
#include "mpi-shim/openmpi/flat/flat.h"

#include <string.h>

#define PRIORITY    80 /* below coll/ce: who has turned engines on wants them */
#define STEP_BYTES  64u
#define ALIGN_BYTES 16u /* of the most demanding type */

/* True: lines do this call, which they could do. The first calls are left to others, so that not every communicator
 * takes memory. */
static bool has_lines(cfl_module_t *module, struct ompi_communicator_t *comm)
{
    if (module->state == CFL_READY)
        return true;
    if (module->state == CFL_NEW && module->n_calls++ >= (uint32_t)cfl_after_calls) {
        module->channel = cfl_open(comm, module);
        module->state = module->channel ? CFL_READY : CFL_REFUSED;
    }
    return module->state == CFL_READY;
}

static int barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    cfl_module_t *module = (cfl_module_t *)base;

    if (!has_lines(module, comm))
        return module->barrier(comm, module->barrier_module);
    cfl_exchange(module->channel, NULL, 0);
    return OMPI_SUCCESS;
}

/* Bytes of the elements; 0: not for lines. */
static size_t small_bytes(const struct ompi_datatype_t *type, int count)
{
    ptrdiff_t extent = type->super.ub - type->super.lb;

    if (!ompi_datatype_is_predefined(type) || type->super.lb != 0 || (size_t)extent != type->super.size)
        return 0;
    return (size_t)count > CFL_PLACE_BYTES ? 0 : type->super.size * (size_t)count;
}

/* Of two neighbours: the second one's become those of both. */
static uint8_t *join(uint8_t *lower, uint8_t *higher, int count, struct ompi_datatype_t *type, struct ompi_op_t *op)
{
    (void)PMPI_Reduce_local(lower, higher, count, type, op);
    return higher;
}

static void combine(const struct cfl_channel *channel, void *out, size_t bytes, int count, struct ompi_datatype_t *type,
                    struct ompi_op_t *op)
{
    _Alignas(ALIGN_BYTES) uint8_t elements[CFL_RANKS][STEP_BYTES];
    uint8_t *nodes[CFL_RANKS];
    int n = 1;
    int more;

    for (int i = 0; i < channel->n_ranks; i++)
        nodes[i] = memcpy(elements[i], cfl_data_of(channel, i), bytes);
    while (2 * n <= channel->n_ranks)
        n *= 2;
    more = channel->n_ranks - n;
    for (int i = 0; i < n; i++)
        nodes[i] = i < more ? join(nodes[2 * i], nodes[2 * i + 1], count, type, op) : nodes[i + more];
    for (; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++)
            nodes[i] = join(nodes[2 * i], nodes[2 * i + 1], count, type, op);
    memcpy(out, nodes[0], bytes);
}

static int cfl_allreduce(const void *in, void *out, int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
                         struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    cfl_module_t *module = (cfl_module_t *)base;
    size_t bytes = small_bytes(type, count);

    if (bytes == 0 || bytes > CFL_PLACE_BYTES || !has_lines(module, comm))
        return module->allreduce(in, out, count, type, op, comm, module->allreduce_module);
    cfl_exchange(module->channel, in == MPI_IN_PLACE ? out : in, bytes);
    combine(module->channel, out, bytes, count, type, op);
    return OMPI_SUCCESS;
}

/* ---- life ---- */

static void construct(cfl_module_t *module)
{
    memset((char *)module + sizeof(module->super), 0, sizeof(*module) - sizeof(module->super));
}

static void destruct(cfl_module_t *module)
{
    if (module->channel)
        cfl_close(module->channel);
    if (module->allreduce_module)
        OBJ_RELEASE(module->allreduce_module);
    if (module->barrier_module)
        OBJ_RELEASE(module->barrier_module);
}

OBJ_CLASS_INSTANCE(cfl_module_t, mca_coll_base_module_t, construct, destruct);

static int enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    cfl_module_t *module = (cfl_module_t *)base;

    if (!comm->c_coll->coll_allreduce || !comm->c_coll->coll_barrier)
        return OMPI_ERR_NOT_AVAILABLE;
    module->allreduce = comm->c_coll->coll_allreduce;
    module->allreduce_module = comm->c_coll->coll_allreduce_module;
    module->barrier = comm->c_coll->coll_barrier;
    module->barrier_module = comm->c_coll->coll_barrier_module;
    OBJ_RETAIN(module->allreduce_module);
    OBJ_RETAIN(module->barrier_module);
    return OMPI_SUCCESS;
}

mca_coll_base_module_t *cfl_query(struct ompi_communicator_t *comm, int *priority)
{
    cfl_module_t *module;

    *priority = PRIORITY;
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2 || ompi_comm_size(comm) > CFL_RANKS ||
        ompi_comm_size(comm) > cfl_ranks)
        return NULL;
    module = OBJ_NEW(cfl_module_t);
    if (!module)
        return NULL;
    module->super.coll_module_enable = enable;
    module->super.coll_allreduce = cfl_allreduce;
    module->super.coll_barrier = barrier;
    return &module->super;
}
