/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collective calls of a communicator: a small one is one reduction of the engines, any other is left to the
 * component before this one.
 *
 *   barrier              a sum of nothing
 *   bcast, to 16 bytes   the bitwise or of the root's bytes and of zeros
 *   allreduce, reduce    of one or two integers or floating-point numbers; of one for minimum and maximum
 *
 * All processes decide alike, by what MPI wants to be equal on all of them: operation and type, or the bytes of a
 * broadcast. The engines add in the order of ranks, so a sum of floating point is the same each time.
 */
#include "mpi-shim/openmpi/ce/coll.h"

#include <string.h>

#include <opal/datatype/opal_convertor.h>

#define PRIORITY    90
#define BCAST_BYTES 16u
#define TYPES       (sizeof(types) / sizeof(types[0]))

enum kind { KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT };

static const struct {
    const struct ompi_predefined_datatype_t *type;
    enum kind kind;
    uint32_t bytes;
} types[] = {
    { &ompi_mpi_int, KIND_SIGNED, 4 },           { &ompi_mpi_unsigned, KIND_UNSIGNED, 4 },
    { &ompi_mpi_long, KIND_SIGNED, 8 },          { &ompi_mpi_unsigned_long, KIND_UNSIGNED, 8 },
    { &ompi_mpi_long_long_int, KIND_SIGNED, 8 }, { &ompi_mpi_float, KIND_FLOAT, 4 },
    { &ompi_mpi_double, KIND_FLOAT, 8 },         { &ompi_mpi_integer, KIND_SIGNED, 4 },
    { &ompi_mpi_dblprec, KIND_FLOAT, 8 },        { &ompi_mpi_real, KIND_FLOAT, 4 },
    { &ompi_mpi_int32_t, KIND_SIGNED, 4 },       { &ompi_mpi_int64_t, KIND_SIGNED, 8 },
    { &ompi_mpi_uint32_t, KIND_UNSIGNED, 4 },    { &ompi_mpi_uint64_t, KIND_UNSIGNED, 8 },
};

/* ---- choosing ---- */

/* True: the engines can do it, by this command of 64 bits (32 bits: one less). */
static bool find_command(const struct ompi_op_t *op, enum kind kind, gni_ce_cmd_type_t *command_out, int *most_out)
{
    *most_out = 2;
    if (op == MPI_SUM) {
        *command_out = kind == KIND_FLOAT ? GNI_FMA_CE_FPADD : GNI_FMA_CE_IADD;
        return true;
    }
    if ((op == MPI_MIN || op == MPI_MAX) && kind == KIND_SIGNED) {
        *most_out = 1; /* the second operand is an index */
        *command_out = op == MPI_MIN ? GNI_FMA_CE_IMIN_LIDX : GNI_FMA_CE_IMAX_LIDX;
        return true;
    }
    if (kind == KIND_FLOAT)
        return false;
    if (op == MPI_BAND)
        *command_out = GNI_FMA_CE_AND;
    else if (op == MPI_BOR)
        *command_out = GNI_FMA_CE_OR;
    else if (op == MPI_BXOR)
        *command_out = GNI_FMA_CE_XOR;
    else
        return false;
    return true;
}

/* Bytes of an element; 0: not for the engines. */
static uint32_t choose(const struct ompi_op_t *op, const struct ompi_datatype_t *type, int count,
                       struct cet_operands *operands)
{
    for (size_t i = 0; i < TYPES; i++) {
        int most;

        if (&types[i].type->dt != type)
            continue;
        if (!find_command(op, types[i].kind, &operands->command, &most) || count < 1 || count > most)
            return 0;
        if (types[i].bytes == 4)
            operands->command = (gni_ce_cmd_type_t)(operands->command - 1);
        operands->mode = count == 2 ? GNI_CEMODE_TWO_OP : 0;
        return types[i].bytes;
    }
    return 0;
}

/* True: the tree does this call, which it could do. The first calls are left to others, so that not every
 * communicator takes engines. */
static bool has_tree(cce_module_t *module, struct ompi_communicator_t *comm)
{
    if (module->state == CCE_NEW && module->n_calls++ >= (uint32_t)cce_after_calls) {
        module->tree = cce_build(comm, module);
        module->state = module->tree ? CCE_READY : CCE_REFUSED;
    }
    return module->state == CCE_READY;
}

/* ---- calls ---- */

static int barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    cce_module_t *module = (cce_module_t *)base;
    const struct cet_operands nothing = { .command = GNI_FMA_CE_IADD };
    uint64_t results[2];

    if (!has_tree(module, comm))
        return module->barrier(comm, module->barrier_module);
    cce_run(module->tree, &nothing, results);
    return OMPI_SUCCESS;
}

static void copy(void *packed, void *buffer, int count, struct ompi_datatype_t *type, bool is_packing)
{
    struct iovec iov = { packed, BCAST_BYTES };
    opal_convertor_t convertor;
    size_t bytes = BCAST_BYTES;
    uint32_t n = 1;

    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    if (is_packing)
        opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, (size_t)count, buffer, 0,
                                                 &convertor);
    else
        opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, (size_t)count, buffer, 0,
                                                 &convertor);
    opal_convertor_get_packed_size(&convertor, &iov.iov_len);
    bytes = iov.iov_len;
    if (is_packing)
        opal_convertor_pack(&convertor, &iov, &n, &bytes);
    else
        opal_convertor_unpack(&convertor, &iov, &n, &bytes);
    OBJ_DESTRUCT(&convertor);
}

static int bcast(void *buffer, int count, struct ompi_datatype_t *type, int root, struct ompi_communicator_t *comm,
                 mca_coll_base_module_t *base)
{
    cce_module_t *module = (cce_module_t *)base;
    struct cet_operands operands = { .command = GNI_FMA_CE_OR, .mode = GNI_CEMODE_TWO_OP };
    uint64_t results[2];
    size_t bytes = type->super.size * (size_t)count;

    if (bytes == 0 || bytes > BCAST_BYTES || !has_tree(module, comm))
        return module->bcast(buffer, count, type, root, comm, module->bcast_module);
    if (ompi_comm_rank(comm) == root)
        copy(operands.values, buffer, count, type, true);
    cce_run(module->tree, &operands, results);
    if (ompi_comm_rank(comm) != root)
        copy(results, buffer, count, type, false);
    return OMPI_SUCCESS;
}

/* in and out: arrays of at most two elements of 4 or 8 bytes. out: NULL, who does not want the result. */
static void reduce_elements(cce_module_t *module, struct cet_operands *operands, const void *in, void *out, int count,
                            uint32_t bytes)
{
    uint64_t results[2];

    for (int i = 0; i < count; i++)
        memcpy(&operands->values[i], (const char *)in + (size_t)i * bytes, bytes);
    cce_run(module->tree, operands, results);
    for (int i = 0; out && i < count; i++)
        memcpy((char *)out + (size_t)i * bytes, &results[i], bytes);
}

static int cce_allreduce(const void *in, void *out, int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
                         struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    cce_module_t *module = (cce_module_t *)base;
    struct cet_operands operands = { 0 };
    uint32_t bytes = choose(op, type, count, &operands);

    if (bytes == 0 || !has_tree(module, comm))
        return module->allreduce(in, out, count, type, op, comm, module->allreduce_module);
    reduce_elements(module, &operands, in == MPI_IN_PLACE ? out : in, out, count, bytes);
    return OMPI_SUCCESS;
}

static int cce_reduce(const void *in, void *out, int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
                      int root, struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    cce_module_t *module = (cce_module_t *)base;
    struct cet_operands operands = { 0 };
    uint32_t bytes = choose(op, type, count, &operands);

    if (bytes == 0 || !has_tree(module, comm))
        return module->reduce(in, out, count, type, op, root, comm, module->reduce_module);
    reduce_elements(module, &operands, in == MPI_IN_PLACE ? out : in, ompi_comm_rank(comm) == root ? out : NULL, count,
                    bytes);
    return OMPI_SUCCESS;
}

/* ---- life ---- */

static void construct(cce_module_t *module)
{
    memset((char *)module + sizeof(module->super), 0, sizeof(*module) - sizeof(module->super));
}

static void release(mca_coll_base_module_t *module)
{
    if (module)
        OBJ_RELEASE(module);
}

static void destruct(cce_module_t *module)
{
    release(module->allreduce_module);
    release(module->barrier_module);
    release(module->bcast_module);
    release(module->reduce_module);
}

OBJ_CLASS_INSTANCE(cce_module_t, mca_coll_base_module_t, construct, destruct);

static int enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    cce_module_t *module = (cce_module_t *)base;

    if (!comm->c_coll->coll_allreduce || !comm->c_coll->coll_barrier || !comm->c_coll->coll_bcast ||
        !comm->c_coll->coll_reduce)
        return OMPI_ERR_NOT_AVAILABLE;
    module->allreduce = comm->c_coll->coll_allreduce;
    module->allreduce_module = comm->c_coll->coll_allreduce_module;
    module->barrier = comm->c_coll->coll_barrier;
    module->barrier_module = comm->c_coll->coll_barrier_module;
    module->bcast = comm->c_coll->coll_bcast;
    module->bcast_module = comm->c_coll->coll_bcast_module;
    module->reduce = comm->c_coll->coll_reduce;
    module->reduce_module = comm->c_coll->coll_reduce_module;
    OBJ_RETAIN(module->allreduce_module);
    OBJ_RETAIN(module->barrier_module);
    OBJ_RETAIN(module->bcast_module);
    OBJ_RETAIN(module->reduce_module);
    return OMPI_SUCCESS;
}

mca_coll_base_module_t *cce_query(struct ompi_communicator_t *comm, int *priority)
{
    cce_module_t *module;

    *priority = PRIORITY;
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
        return NULL;
    module = OBJ_NEW(cce_module_t);
    if (!module)
        return NULL;
    module->super.coll_module_enable = enable;
    module->super.coll_allreduce = cce_allreduce;
    module->super.coll_barrier = barrier;
    module->super.coll_bcast = bcast;
    module->super.coll_reduce = cce_reduce;
    return &module->super;
}
