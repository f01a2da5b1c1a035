/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines (CE) as programs see them; the trees themselves live in emunic (emunic/daemon/ce/ce_trees.c).
 *
 * An engine is a small object with the number that emunic gave it. An end point's attributes stay with the end point;
 * they are copied when an engine is configured and when a contribution is posted. A contribution is a post with a slot
 * and an entry like others, always by way of emunic: no process but emunic sees all of a tree. Its entry says that it
 * was taken, or why not, and comes from the FMA engine, as the post did; entries of source CE are an engine's own.
 *
 * A result appears in the program's memory (emunic/abi/ce.h). It comes from emunic alone, so after the NIC has gone it
 * would be waited for in vain: results that are due are remembered with their NIC until GNI_CeCheckResult() has shown
 * them, and then fail. A poll that finds nothing gives way like an empty poll of a queue; else a host with fewer
 * cores than ranks would wait for emunic with the core it needs.
 *
 * Source: spec/ugni.md 2.16, 3.6, 4.12. The encoding of a result is private in the original too; this one is ours.
 */
#include <sched.h>
#include <stdlib.h>

#include "emunic/abi/ce.h"
#include "libugni/src/device.h"
#include "libugni/src/post.h"
#include "libugni/src/rc.h"

static_assert((int)GNI_CE_CHILD_UNUSED == (int)EMU_CE_LINK_NONE, "ce: child type");
static_assert((int)GNI_CE_CHILD_VCE == (int)EMU_CE_LINK_ENGINE, "ce: child type");
static_assert((int)GNI_CE_CHILD_PE == (int)EMU_CE_LINK_LEAF, "ce: child type");
static_assert(GNI_CE_MAX_CHILDREN == EMU_CE_CHILDREN_MAX, "ce: children");
static_assert(GNI_CE_MAX_CHILDREN <= 2 * EMU_CE_CHILDREN_PER_MSG, "ce: a configuration has two parts");
static_assert(GNI_CE_FPE_OP_INVAL == EMU_CE_FPE_INVALID && GNI_CE_FPE_OFLOW == EMU_CE_FPE_OVERFLOW &&
                  GNI_CE_FPE_UFLOW == EMU_CE_FPE_UNDERFLOW && GNI_CE_FPE_PRECISION == EMU_CE_FPE_INEXACT,
              "ce: exceptions");
static_assert(GNI_CEMODE_FPE_OP_INVAL == GNI_CE_FPE_OP_INVAL << 1 && GNI_CEMODE_FPE_OFLOW == GNI_CE_FPE_OFLOW << 1 &&
                  GNI_CEMODE_FPE_UFLOW == GNI_CE_FPE_UFLOW << 1 &&
                  GNI_CEMODE_FPE_PRECISION == GNI_CE_FPE_PRECISION << 1,
              "ce: exceptions in a post");
static_assert(sizeof(gni_ce_result_t) == sizeof(struct emu_ce_result) &&
                  offsetof(gni_ce_result_t, result1) == offsetof(struct emu_ce_result, result1),
              "ce: result");

#define ROUNDING_MODES (GNI_CE_MODE_ROUND_UP | GNI_CE_MODE_ROUND_DOWN | GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_ROUND_ZERO)
#define ENTRY_MODES    (GNI_CE_MODE_CQE_ONCOMP | GNI_CE_MODE_CQE_ONERR)
#define ROUTING_MODES                                                                                                  \
    (GNI_CE_MODE_RC_NMIN_HASH | GNI_CE_MODE_RC_MIN_HASH | GNI_CE_MODE_RC_MNON_HASH | GNI_CE_MODE_RC_ADAPT)
#define POST_FPE_MODES                                                                                                 \
    (GNI_CEMODE_FPE_OP_INVAL | GNI_CEMODE_FPE_OFLOW | GNI_CEMODE_FPE_UFLOW | GNI_CEMODE_FPE_PRECISION)

/* ---- results that are due ---- */

struct due {
    LIST_ENTRY(due) link;
    const gni_ce_result_t *result;
    struct gnii_nic *nic; /* borrowed: it takes its own out of the list before it goes */
};

static pthread_mutex_t due_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, due) dues = LIST_HEAD_INITIALIZER(dues);

static struct due *find_due(const gni_ce_result_t *result)
{
    struct due *d;

    LIST_FOREACH(d, &dues, link) {
        if (d->result == result)
            return d;
    }
    return NULL;
}

/* A second post to the same place takes the first one's. */
static void remember(struct due *due)
{
    struct due *old;

    pthread_mutex_lock(&due_lock);
    old = find_due(due->result);
    if (old)
        LIST_REMOVE(old, link);
    LIST_INSERT_HEAD(&dues, due, link);
    pthread_mutex_unlock(&due_lock);
    free(old);
}

static void forget(const gni_ce_result_t *result)
{
    struct due *d;

    pthread_mutex_lock(&due_lock);
    d = find_due(result);
    if (d)
        LIST_REMOVE(d, link);
    pthread_mutex_unlock(&due_lock);
    free(d);
}

/* The NIC that a result is to come from, counted; NULL if nobody knows. */
static struct gnii_nic *nic_of(const gni_ce_result_t *result)
{
    struct gnii_nic *nic;
    struct due *d;

    pthread_mutex_lock(&due_lock);
    d = find_due(result);
    nic = d ? d->nic : NULL;
    if (nic)
        atomic_fetch_add(&nic->refs, 1);
    pthread_mutex_unlock(&due_lock);
    return nic;
}

/* ---- reading a result ---- */

/* Pairs with the store of whoever delivers the result: the operands before the mark. */
static uint64_t control_of(const gni_ce_result_t *result)
{
    return __atomic_load_n(&result->control, __ATOMIC_ACQUIRE);
}

static unsigned status_of(uint64_t control)
{
    return (unsigned)(control >> EMU_CE_CONTROL_STATUS_SHIFT & EMU_CE_CONTROL_STATUS_MASK);
}

static unsigned fpe_of(uint64_t control)
{
    return (unsigned)(control >> EMU_CE_CONTROL_FPE_SHIFT & EMU_CE_FPE_MASK);
}

uint64_t gni_ce_res_get_status(gni_ce_result_t *result)
{
    return status_of(control_of(result));
}

uint64_t gni_ce_res_status_ok(gni_ce_result_t *result)
{
    uint64_t control = control_of(result);

    return (control & EMU_CE_CONTROL_DONE) != 0 && status_of(control) == 0;
}

uint64_t gni_ce_res_get_fpe(gni_ce_result_t *result)
{
    return fpe_of(control_of(result));
}

uint64_t gni_ce_res_get_red_id(gni_ce_result_t *result)
{
    return control_of(result) & EMU_CE_CONTROL_ID_MASK;
}

/* Nothing there: lets others run, and tells if nothing will ever come. */
static gni_return_t look_at_nic(gni_ce_result_t *result)
{
    struct gnii_nic *nic = nic_of(result);
    gni_return_t rc = GNI_RC_NOT_DONE;

    sched_yield();
    /* No post has named this place. On a Gemini none can. */
    if (!nic)
        return gnii_device_known() == GNI_DEVICE_GEMINI ? GNI_RC_ILLEGAL_OP : rc;
    emu_port_relax(&nic->port, (uintptr_t)result);
    /* It may have come just before the NIC went. */
    if (gnii_nic_is_lost(nic) && (control_of(result) & EMU_CE_CONTROL_DONE) == 0) {
        emu_biased_lock(&nic->lock);
        gnii_nic_tell_loss(nic);
        emu_biased_unlock(&nic->lock);
        __atomic_store_n(&result->control, emu_ce_control(GNII_CQE_NETWORK, 0, 0), __ATOMIC_RELEASE);
        forget(result);
        rc = GNI_RC_TRANSACTION_ERROR;
    }
    gnii_nic_put(nic);
    return rc;
}

/* `length` is ignored: real programs pass 0 and 1 alike. */
gni_return_t GNI_CeCheckResult(gni_ce_result_t *result, uint32_t length)
{
    uint64_t control;

    (void)length;
    if (!result)
        return GNI_RC_INVALID_PARAM;
    if ((control_of(result) & EMU_CE_CONTROL_DONE) == 0) {
        gni_return_t rc = look_at_nic(result);

        /* It may have come meanwhile. */
        if (rc != GNI_RC_NOT_DONE || (control_of(result) & EMU_CE_CONTROL_DONE) == 0)
            return rc;
    }
    control = control_of(result);
    forget(result);
    return status_of(control) != 0 || fpe_of(control) != 0 ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS;
}

/* ---- engines ---- */

static struct gnii_ce *find_ce(gni_ce_handle_t handle)
{
    return gnii_object_find(GNII_KIND_CE, handle);
}

gni_return_t GNI_CeCreate(gni_nic_handle_t nic_hndl, gni_ce_handle_t *ce_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct emu_msg msg = { .type = EMU_MSG_CE_CREATE };
    struct gnii_ce *ce;
    void *handle;
    int r;

    if (!nic || !ce_hndl)
        return GNI_RC_INVALID_PARAM;
    if (nic->is_gemini)
        return GNI_RC_ILLEGAL_OP;
    ce = calloc(1, sizeof(*ce));
    if (!ce)
        return GNI_RC_ERROR_NOMEM;
    ce->nic = nic;
    r = emu_port_request(&nic->port, &msg);
    if (r != 0)
        goto err_ce;
    ce->ce_id = msg.ce.ce_id;
    r = gnii_object_add(GNII_KIND_CE, ce, &handle);
    if (r < 0)
        goto err_engine;
    ce->handle = handle;
    emu_biased_lock(&nic->lock);
    LIST_INSERT_HEAD(&nic->ces, ce, link);
    emu_biased_unlock(&nic->lock);
    *ce_hndl = handle;
    return GNI_RC_SUCCESS;

err_engine:
    msg = (struct emu_msg){ .type = EMU_MSG_CE_DESTROY, .ce = { .ce_id = ce->ce_id } };
    emu_port_request(&nic->port, &msg);
err_ce:
    free(ce);
    return gnii_rc(GNII_CALL_CREATE, r);
}

static void free_ce(struct gnii_ce *ce)
{
    gnii_object_remove(ce->handle);
    LIST_REMOVE(ce, link);
    free(ce);
}

gni_return_t GNI_CeDestroy(gni_ce_handle_t ce_hndl)
{
    struct gnii_ce *ce = find_ce(ce_hndl);
    struct emu_msg msg = { .type = EMU_MSG_CE_DESTROY };
    struct gnii_nic *nic;

    if (!ce)
        return GNI_RC_INVALID_PARAM;
    nic = ce->nic;
    msg.ce.ce_id = ce->ce_id;
    emu_biased_lock(&nic->lock);
    emu_port_request(&nic->port, &msg); /* fails only when the NIC has gone, and the engine with it */
    free_ce(ce);
    emu_biased_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}

void gnii_ce_drop_all(struct gnii_nic *nic)
{
    struct due *d;
    struct due *next;

    while (!LIST_EMPTY(&nic->ces))
        free_ce(LIST_FIRST(&nic->ces));
    pthread_mutex_lock(&due_lock);
    for (d = LIST_FIRST(&dues); d; d = next) {
        next = LIST_NEXT(d, link);
        if (d->nic == nic) {
            LIST_REMOVE(d, link);
            free(d);
        }
    }
    pthread_mutex_unlock(&due_lock);
}

gni_return_t GNI_CeGetId(gni_ce_handle_t ce_hndl, uint32_t *ce_id)
{
    const struct gnii_ce *ce = find_ce(ce_hndl);

    if (!ce || !ce_id)
        return GNI_RC_INVALID_PARAM;
    *ce_id = ce->ce_id;
    return GNI_RC_SUCCESS;
}

/* ---- trees ---- */

gni_return_t GNI_EpSetCeAttr(gni_ep_handle_t ep_hndl, uint32_t ce_id, uint32_t child_id, gni_ce_child_t child_type)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);

    if (!ep || child_id >= GNI_CE_MAX_CHILDREN || (child_type != GNI_CE_CHILD_VCE && child_type != GNI_CE_CHILD_PE))
        return GNI_RC_INVALID_PARAM;
    if (ep->nic->is_gemini)
        return GNI_RC_ILLEGAL_OP;
    emu_biased_lock(&ep->nic->lock);
    /* A number that no engine has must not become one that some engine has. */
    ep->ce = (struct emu_ce_link){ .ce_id = (uint16_t)(ce_id < UINT16_MAX ? ce_id : UINT16_MAX),
                                   .child_id = (uint8_t)child_id,
                                   .type = (uint8_t)child_type };
    emu_biased_unlock(&ep->nic->lock);
    return GNI_RC_SUCCESS;
}

static bool is_one_bit(uint32_t bits)
{
    return bits != 0 && (bits & (bits - 1)) == 0;
}

static bool modes_are_sound(uint32_t modes)
{
    return (modes & ~(uint32_t)(ROUNDING_MODES | ENTRY_MODES | ROUTING_MODES)) == 0 &&
           is_one_bit(modes & ROUNDING_MODES) && is_one_bit(modes & ENTRY_MODES) &&
           ((modes & ROUTING_MODES) == 0 || is_one_bit(modes & ROUTING_MODES));
}

static uint32_t rounding_of(uint32_t modes)
{
    switch (modes & ROUNDING_MODES) {
    case GNI_CE_MODE_ROUND_UP:
        return EMU_CE_ROUND_UP;
    case GNI_CE_MODE_ROUND_DOWN:
        return EMU_CE_ROUND_DOWN;
    case GNI_CE_MODE_ROUND_ZERO:
        return EMU_CE_ROUND_ZERO;
    default:
        return EMU_CE_ROUND_NEAR;
    }
}

/* What an end point says about a neighbour of the engine. */
static bool link_of(const struct gnii_ce *ce, gni_ep_handle_t handle, struct emu_ce_link *link_out)
{
    const struct gnii_ep *ep = gnii_ep_find(handle);

    if (!ep || ep->nic != ce->nic || !ep->is_bound || ep->ce.type == EMU_CE_LINK_NONE)
        return false;
    *link_out = ep->ce;
    link_out->nid = ep->remote_addr;
    link_out->instance_id = ep->remote_id;
    if (link_out->type == EMU_CE_LINK_LEAF)
        link_out->ce_id = 0;
    return true;
}

/* The configuration in one or two parts, the settings in each. */
static int send_configuration(struct gnii_ce *ce, const struct emu_msg_ce *settings, const struct emu_ce_link *children,
                              uint32_t n_children)
{
    int r = 0;

    for (uint32_t sent = 0; sent < n_children && r == 0; sent += EMU_CE_CHILDREN_PER_MSG) {
        struct emu_msg msg = { .type = EMU_MSG_CE_CONFIGURE, .ce = *settings };
        uint32_t left = n_children - sent;

        msg.ce.n_children = (uint16_t)(left < EMU_CE_CHILDREN_PER_MSG ? left : EMU_CE_CHILDREN_PER_MSG);
        msg.ce.flags |= (uint16_t)((sent == 0 ? EMU_CE_FIRST : 0) | (left == msg.ce.n_children ? EMU_CE_LAST : 0));
        for (uint32_t i = 0; i < msg.ce.n_children; i++)
            msg.ce.children[i] = children[sent + i];
        r = emu_port_request(&ce->nic->port, &msg);
    }
    return r;
}

/* NIC lock held. */
static gni_return_t configure(struct gnii_ce *ce, const gni_ep_handle_t *child_eps, uint32_t n_children,
                              gni_ep_handle_t parent_ep, const struct gnii_cq *cq, uint32_t modes)
{
    struct emu_msg_ce settings = { .ce_id = ce->ce_id,
                                   .cq = cq->index,
                                   .rounding = rounding_of(modes),
                                   .flags = (modes & GNI_CE_MODE_CQE_ONCOMP) ? EMU_CE_ALWAYS : 0 };
    struct emu_ce_link children[GNI_CE_MAX_CHILDREN];
    uint32_t used = 0;

    for (uint32_t i = 0; i < n_children; i++) {
        if (!link_of(ce, child_eps[i], &children[i]) || (used >> children[i].child_id & 1))
            return GNI_RC_INVALID_PARAM;
        used |= 1u << children[i].child_id;
    }
    if (parent_ep && (!link_of(ce, parent_ep, &settings.parent) || settings.parent.type != EMU_CE_LINK_ENGINE))
        return GNI_RC_INVALID_PARAM;
    return gnii_rc(GNII_CALL_CREATE, send_configuration(ce, &settings, children, n_children));
}

gni_return_t GNI_CeConfigure(gni_ce_handle_t ce_hndl, gni_ep_handle_t *child_eps, uint32_t num_child_eps,
                             gni_ep_handle_t parent_ep, gni_cq_handle_t cq_hndl, uint32_t modes)
{
    struct gnii_ce *ce = find_ce(ce_hndl);
    const struct gnii_cq *cq = gnii_cq_find(cq_hndl);
    gni_return_t rc;

    if (!ce || !child_eps || num_child_eps == 0 || num_child_eps > GNI_CE_MAX_CHILDREN || !cq || cq->nic != ce->nic ||
        !modes_are_sound(modes))
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ce->nic->lock);
    rc = configure(ce, child_eps, num_child_eps, parent_ep, cq, modes);
    emu_biased_unlock(&ce->nic->lock);
    return rc;
}

/* ---- contributions ---- */

/* The operation in the low five bits, bit 0 set for 64 bits; bit 5: greatest index. */
static bool set_operation(struct emu_cmd *cmd, uint32_t ce_cmd)
{
    static const uint8_t op_of[16] = {
        [0x00 / 2] = EMU_CE_AND,   [0x02 / 2] = EMU_CE_OR,    [0x04 / 2] = EMU_CE_XOR,
        [0x10 / 2] = EMU_CE_IMIN,  [0x12 / 2] = EMU_CE_IMAX,  [0x14 / 2] = EMU_CE_IADD,
        [0x18 / 2] = EMU_CE_FPMIN, [0x1a / 2] = EMU_CE_FPMAX, [0x1c / 2] = EMU_CE_FPADD,
    };
    bool is_greatest = (ce_cmd & 0x20u) != 0;

    if ((ce_cmd & ~0x3fu) != 0)
        return false;
    cmd->ce_op = op_of[(ce_cmd & 0x1fu) / 2];
    if ((ce_cmd & 1u) == 0)
        cmd->ce_flags |= EMU_CE_32BIT;
    if (is_greatest)
        cmd->ce_flags |= EMU_CE_GREATEST;
    return cmd->ce_op != 0 && (!is_greatest || cmd->ce_op >= EMU_CE_IMIN);
}

/* Everything that does not need a slot. */
static gni_return_t prepare(struct gnii_ep *ep, const gni_post_descriptor_t *d, const struct gnii_post *p,
                            struct emu_cmd *cmd)
{
    const struct gnii_md *md;

    if (ep->ce.type != EMU_CE_LINK_LEAF || !set_operation(cmd, d->ce_cmd) ||
        (d->ce_mode & ~(uint32_t)(GNI_CEMODE_TWO_OP | POST_FPE_MODES)) != 0)
        return GNI_RC_INVALID_PARAM;
    if (d->local_addr % EMU_CE_RESULT_ALIGN != 0)
        return GNI_RC_ALIGNMENT_ERROR;
    md = gnii_md_find(ep->nic, &d->local_mem_hndl, d->local_addr, sizeof(gni_ce_result_t));
    if (!md)
        return GNI_RC_INVALID_PARAM;
    if (md->is_read_only)
        return GNI_RC_PERMISSION_ERROR;
    cmd->op = EMU_OP_CE;
    cmd->flags = p->flags;
    cmd->remote_nid = ep->remote_addr;
    cmd->mdh = md->mdh;
    cmd->generation = md->generation;
    cmd->source_cq = p->cq->index;
    cmd->local_addr = d->local_addr;
    cmd->operand1 = d->first_operand;
    cmd->operand2 = d->second_operand;
    cmd->ce_red_id = d->ce_red_id;
    cmd->ce_id = ep->ce.ce_id;
    cmd->ce_child = ep->ce.child_id;
    if (d->ce_mode & GNI_CEMODE_TWO_OP)
        cmd->ce_flags |= EMU_CE_TWO_OP;
    cmd->ce_flags |= (uint8_t)((d->ce_mode & POST_FPE_MODES) >> 1 << EMU_CE_FPE_SHIFT);
    if (d->cq_mode & GNI_CQMODE_LOCAL_EVENT)
        cmd->events |= EMU_EV_LOCAL;
    if (d->cq_mode & GNI_CQMODE_GLOBAL_EVENT)
        cmd->events |= EMU_EV_GLOBAL;
    if ((d->cq_mode & GNI_CQMODE_DUAL_EVENTS) == 0)
        cmd->events |= EMU_EV_RETIRE;
    return GNI_RC_SUCCESS;
}

/* NIC lock held. To emunic in any case: nobody else sees the tree. */
static gni_return_t post(struct gnii_ep *ep, gni_post_descriptor_t *descr, struct due *due)
{
    struct emu_cmd cmd = { .op = 0 };
    struct emu_cmd *slot;
    struct gnii_post p;
    gni_return_t rc = gnii_post_set_common(&p, ep, descr, ep->cq);
    uint32_t tid;

    if (rc == GNI_RC_SUCCESS)
        rc = prepare(ep, descr, &p, &cmd);
    if (rc == GNI_RC_SUCCESS && !gnii_post_take_room(ep, ep->cq, descr, descr->cq_mode, &tid))
        rc = GNI_RC_ERROR_RESOURCE;
    if (rc != GNI_RC_SUCCESS)
        return rc;
    slot = emu_port_command(&ep->nic->port, 0, NULL);
    if (!slot) { /* the NIC has gone */
        gnii_tx_give(ep->nic, tid);
        return GNI_RC_ERROR_RESOURCE;
    }
    cmd.source_event = gnii_cqe_post(GNII_CQE_ENGINE_FMA, tid, ep->local_event, GNII_CQE_OK);
    *slot = cmd;
    due->result = (const gni_ce_result_t *)(uintptr_t)descr->local_addr;
    due->nic = ep->nic;
    remember(due);
    emu_port_publish(&ep->nic->port);
    return GNI_RC_SUCCESS;
}

gni_return_t gnii_ce_post(struct gnii_ep *ep, gni_post_descriptor_t *descr)
{
    struct due *due = calloc(1, sizeof(*due));
    gni_return_t rc;

    if (!due)
        return GNI_RC_ERROR_RESOURCE;
    emu_biased_lock(&ep->nic->lock);
    rc = post(ep, descr, due);
    emu_biased_unlock(&ep->nic->lock);
    if (rc != GNI_RC_SUCCESS)
        free(due);
    else
        sched_yield(); /* emunic is the one that has to run now */
    return rc;
}
