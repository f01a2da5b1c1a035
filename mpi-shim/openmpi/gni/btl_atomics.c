/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics of the NIC. A Gemini has the first generation: 64 bits, no minimum and maximum; it swaps by "and, then xor"
 * with 0. An Aries has all but the logical ones.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#define AND_THEN_XOR_FETCH GNI_FMA_ATOMIC_FAX
#define NONE               ((gni_fma_cmd_type_t)0)

#define BOTH_GENERATIONS                                                                                               \
    (MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND | MCA_BTL_ATOMIC_SUPPORTS_OR |                          \
     MCA_BTL_ATOMIC_SUPPORTS_XOR | MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_CSWAP)

/* Indices: 32 bits, floating point. */
struct commands {
    mca_btl_base_atomic_op_t op;
    gni_fma_cmd_type_t silent[2][2];
    gni_fma_cmd_type_t fetching[2][2];
};

static const struct commands aries[] = {
    { MCA_BTL_ATOMIC_ADD,
      { { GNI_FMA_ATOMIC2_IADD, GNI_FMA_ATOMIC2_FPADD }, { GNI_FMA_ATOMIC2_IADD_S, GNI_FMA_ATOMIC2_FPADD_S } },
      { { GNI_FMA_ATOMIC2_FIADD, GNI_FMA_ATOMIC2_FFPADD }, { GNI_FMA_ATOMIC2_FIADD_S, GNI_FMA_ATOMIC2_FFPADD_S } } },
    { MCA_BTL_ATOMIC_AND,
      { { GNI_FMA_ATOMIC2_AND, NONE }, { GNI_FMA_ATOMIC2_AND_S, NONE } },
      { { GNI_FMA_ATOMIC2_FAND, NONE }, { GNI_FMA_ATOMIC2_FAND_S, NONE } } },
    { MCA_BTL_ATOMIC_OR,
      { { GNI_FMA_ATOMIC2_OR, NONE }, { GNI_FMA_ATOMIC2_OR_S, NONE } },
      { { GNI_FMA_ATOMIC2_FOR, NONE }, { GNI_FMA_ATOMIC2_FOR_S, NONE } } },
    { MCA_BTL_ATOMIC_XOR,
      { { GNI_FMA_ATOMIC2_XOR, NONE }, { GNI_FMA_ATOMIC2_XOR_S, NONE } },
      { { GNI_FMA_ATOMIC2_FXOR, NONE }, { GNI_FMA_ATOMIC2_FXOR_S, NONE } } },
    { MCA_BTL_ATOMIC_SWAP,
      { { GNI_FMA_ATOMIC2_SWAP, GNI_FMA_ATOMIC2_SWAP }, { GNI_FMA_ATOMIC2_SWAP_S, GNI_FMA_ATOMIC2_SWAP_S } },
      { { GNI_FMA_ATOMIC2_FSWAP, GNI_FMA_ATOMIC2_FSWAP }, { GNI_FMA_ATOMIC2_FSWAP_S, GNI_FMA_ATOMIC2_FSWAP_S } } },
    { MCA_BTL_ATOMIC_MIN,
      { { GNI_FMA_ATOMIC2_IMIN, GNI_FMA_ATOMIC2_FPMIN }, { GNI_FMA_ATOMIC2_IMIN_S, GNI_FMA_ATOMIC2_FPMIN_S } },
      { { GNI_FMA_ATOMIC2_FIMIN, GNI_FMA_ATOMIC2_FFPMIN }, { GNI_FMA_ATOMIC2_FIMIN_S, GNI_FMA_ATOMIC2_FFPMIN_S } } },
    { MCA_BTL_ATOMIC_MAX,
      { { GNI_FMA_ATOMIC2_IMAX, GNI_FMA_ATOMIC2_FPMAX }, { GNI_FMA_ATOMIC2_IMAX_S, GNI_FMA_ATOMIC2_FPMAX_S } },
      { { GNI_FMA_ATOMIC2_FIMAX, GNI_FMA_ATOMIC2_FFPMAX }, { GNI_FMA_ATOMIC2_FIMAX_S, GNI_FMA_ATOMIC2_FFPMAX_S } } },
};

static const struct commands gemini[] = {
    { MCA_BTL_ATOMIC_ADD,
      { { GNI_FMA_ATOMIC_ADD, NONE }, { NONE, NONE } },
      { { GNI_FMA_ATOMIC_FADD, NONE }, { NONE, NONE } } },
    { MCA_BTL_ATOMIC_AND,
      { { GNI_FMA_ATOMIC_AND, NONE }, { NONE, NONE } },
      { { GNI_FMA_ATOMIC_FAND, NONE }, { NONE, NONE } } },
    { MCA_BTL_ATOMIC_OR,
      { { GNI_FMA_ATOMIC_OR, NONE }, { NONE, NONE } },
      { { GNI_FMA_ATOMIC_FOR, NONE }, { NONE, NONE } } },
    { MCA_BTL_ATOMIC_XOR,
      { { GNI_FMA_ATOMIC_XOR, NONE }, { NONE, NONE } },
      { { GNI_FMA_ATOMIC_FXOR, NONE }, { NONE, NONE } } },
    { MCA_BTL_ATOMIC_SWAP,
      { { GNI_FMA_ATOMIC_AX, GNI_FMA_ATOMIC_AX }, { NONE, NONE } },
      { { AND_THEN_XOR_FETCH, AND_THEN_XOR_FETCH }, { NONE, NONE } } },
};

uint32_t mg_atomics(gni_nic_device_t device)
{
    if (device == GNI_DEVICE_GEMINI)
        return BOTH_GENERATIONS;
    return BOTH_GENERATIONS | MCA_BTL_ATOMIC_SUPPORTS_MIN | MCA_BTL_ATOMIC_SUPPORTS_MAX |
           MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_FLOAT;
}

static bool is_gemini(void)
{
    return mg.nic.device == GNI_DEVICE_GEMINI;
}

static gni_fma_cmd_type_t command_of(mca_btl_base_atomic_op_t op, int flags, bool is_fetching)
{
    const struct commands *table = is_gemini() ? gemini : aries;
    size_t n = is_gemini() ? sizeof(gemini) / sizeof(gemini[0]) : sizeof(aries) / sizeof(aries[0]);
    int is_short = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0;
    int is_float = (flags & MCA_BTL_ATOMIC_FLAG_FLOAT) != 0;

    for (size_t i = 0; i < n; i++)
        if (table[i].op == op)
            return is_fetching ? table[i].fetching[is_short][is_float] : table[i].silent[is_short][is_float];
    return NONE;
}

/*
 * result: where the old value goes, or NULL. A window of one process is not registered, so there is no handle then, and
 * Open MPI does it by itself.
 */
static int submit(struct mg_work *work, uint64_t remote, mca_btl_base_registration_handle_t *remote_handle,
                  void *result, mca_btl_base_registration_handle_t *handle, int flags)
{
    size_t bytes = flags & MCA_BTL_ATOMIC_FLAG_32BIT ? 4 : 8;

    if (work->command == NONE || remote % bytes != 0 || !remote_handle) {
        opal_free_list_return(&mg.works, &work->super);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    work->local = NULL;
    work->remote = remote;
    work->remote_memory = remote_handle->memory;
    work->left_bytes = bytes;
    work->address = result;
    work->handle = handle;
    mg_submit(work);
    return OPAL_SUCCESS;
}

static struct mg_work *new_atomic(struct mca_btl_base_endpoint_t *peer, mca_btl_base_rdma_completion_fn_t callback,
                                  void *context, void *data)
{
    struct mg_work *work = mg_new_work(MG_ATOMIC, peer);

    if (!work)
        return NULL;
    work->callback = callback;
    work->context = context;
    work->data = data;
    return work;
}

static void set_operation(struct mg_work *work, mca_btl_base_atomic_op_t op, uint64_t operand, int flags,
                          bool is_fetching)
{
    bool is_by_xor = is_gemini() && op == MCA_BTL_ATOMIC_SWAP;

    work->command = command_of(op, flags, is_fetching);
    work->operands[0] = is_by_xor ? 0 : operand;
    work->operands[1] = is_by_xor ? operand : 0;
}

int mg_atomic_op(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, uint64_t remote,
                 mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op, uint64_t operand,
                 int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct mg_work *work = new_atomic(peer, callback, context, data);

    (void)btl;
    (void)order;
    if (!work)
        return OPAL_ERR_OUT_OF_RESOURCE;
    set_operation(work, op, operand, flags, false);
    return submit(work, remote, remote_handle, NULL, NULL, flags);
}

int mg_atomic_fop(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local, uint64_t remote,
                  mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
                  mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                  mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct mg_work *work = new_atomic(peer, callback, context, data);

    (void)btl;
    (void)order;
    if (!work)
        return OPAL_ERR_OUT_OF_RESOURCE;
    set_operation(work, op, operand, flags, true);
    return submit(work, remote, remote_handle, local, local_handle, flags);
}

int mg_atomic_cswap(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local,
                    uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
                    mca_btl_base_registration_handle_t *remote_handle, uint64_t compare, uint64_t value, int flags,
                    int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct mg_work *work = new_atomic(peer, callback, context, data);
    bool is_short = (flags & MCA_BTL_ATOMIC_FLAG_32BIT) != 0;

    (void)btl;
    (void)order;
    if (!work)
        return OPAL_ERR_OUT_OF_RESOURCE;
    work->command = is_short ? GNI_FMA_ATOMIC2_FCSWAP_S : GNI_FMA_ATOMIC_CSWAP;
    if (is_short && is_gemini())
        work->command = NONE;
    work->operands[0] = compare;
    work->operands[1] = value;
    return submit(work, remote, remote_handle, local, local_handle, flags);
}
