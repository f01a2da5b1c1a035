/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA attributes. Static ones are the job's, dynamic ones the calling thread's. Values that make no sense are
 * replaced, never refused: programs leave the tail of the structure uninitialised. Source: spec/dmapp.md 1.7, 4.1.
 */
#include "libdmapp/src/attributes.h"

#include <string.h>

static const dmapp_rma_attrs_ext_t defaults = {
    .max_outstanding_nb = DMAPP_DEF_OUTSTANDING_NB,
    .offload_threshold = DMAPP_OFFLOAD_THRESHOLD,
    .put_relaxed_ordering = DMAPP_ROUTING_ADAPTIVE,
    .get_relaxed_ordering = DMAPP_ROUTING_ADAPTIVE,
    .max_concurrency = 1,
    .PI_ordering = DMAPP_PI_ORDERING_RELAXED,
    .queue_depth = DMAPP_QUEUE_DEFAULT_DEPTH,
    .queue_nelems = DMAPP_QUEUE_DEFAULT_NELEMS,
};

#define QUEUE_DEPTH_MAX  4096u
#define QUEUE_NELEMS_MIN 2u /* one word of them is the library's */

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

static uint8_t routing(uint8_t value)
{
    return value <= DMAPP_ROUTING_ADAPTIVE_3 ? value : DMAPP_ROUTING_ADAPTIVE;
}

dmapp_rma_attrs_ext_t dmappi_attrs_of(const dmapp_rma_attrs_ext_t *requested)
{
    dmapp_rma_attrs_ext_t a;

    if (!requested)
        return defaults;
    a = *requested;
    memset(a.unused, 0, sizeof(a.unused));
    a.max_outstanding_nb = a.max_outstanding_nb == 0 ?
                               DMAPP_DEF_OUTSTANDING_NB :
                               clamp(a.max_outstanding_nb, DMAPP_MIN_OUTSTANDING_NB, DMAPP_MAX_OUTSTANDING_NB);
    a.put_relaxed_ordering = routing(a.put_relaxed_ordering);
    a.get_relaxed_ordering = routing(a.get_relaxed_ordering);
    if (a.max_concurrency == 0)
        a.max_concurrency = 1;
    if (a.PI_ordering > DMAPP_PI_ORDERING_RELAXED)
        a.PI_ordering = defaults.PI_ordering;
    a.queue_depth = a.queue_depth == 0 ? DMAPP_QUEUE_DEFAULT_DEPTH : clamp(a.queue_depth, 1, QUEUE_DEPTH_MAX);
    a.queue_nelems = a.queue_nelems == 0 ? DMAPP_QUEUE_DEFAULT_NELEMS :
                                           clamp(a.queue_nelems, QUEUE_NELEMS_MIN, DMAPP_QUEUE_MAX_NELEMS);
    a.queue_flags &= DMAPP_QUEUE_ASYNC_PROGRESS;
    return a;
}

dmapp_rma_attrs_ext_t dmappi_attrs_extend(const dmapp_rma_attrs_t *attrs)
{
    dmapp_rma_attrs_ext_t a = defaults;

    a.max_outstanding_nb = attrs->max_outstanding_nb;
    a.offload_threshold = attrs->offload_threshold;
    a.put_relaxed_ordering = attrs->put_relaxed_ordering;
    a.get_relaxed_ordering = attrs->get_relaxed_ordering;
    a.max_concurrency = attrs->max_concurrency;
    return a;
}

static dmapp_rma_attrs_t shorten(const dmapp_rma_attrs_ext_t *a)
{
    return (dmapp_rma_attrs_t){
        .max_outstanding_nb = a->max_outstanding_nb,
        .offload_threshold = a->offload_threshold,
        .put_relaxed_ordering = a->put_relaxed_ordering,
        .get_relaxed_ordering = a->get_relaxed_ordering,
        .max_concurrency = a->max_concurrency,
    };
}

/* In force for an account. */
static dmapp_rma_attrs_ext_t attrs_in_force(const struct dmappi_thread *self)
{
    dmapp_rma_attrs_ext_t a = dmappi_job.attrs;

    a.offload_threshold = self->offload_threshold;
    a.put_relaxed_ordering = self->put_relaxed_ordering;
    a.get_relaxed_ordering = self->get_relaxed_ordering;
    return a;
}

dmapp_return_t dmappi_attrs_apply(const dmapp_rma_attrs_ext_t *attrs, dmapp_rma_attrs_ext_t *actual_out)
{
    struct dmappi_thread *self = dmappi_thread();

    if (!self)
        return DMAPP_RC_RESOURCE_ERROR;
    if (attrs) {
        self->offload_threshold = attrs->offload_threshold;
        self->put_relaxed_ordering = routing(attrs->put_relaxed_ordering);
        self->get_relaxed_ordering = routing(attrs->get_relaxed_ordering);
    }
    if (actual_out)
        *actual_out = attrs_in_force(self);
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_get_rma_attrs_ext(dmapp_rma_attrs_ext_t *attrs)
{
    if (!attrs)
        return DMAPP_RC_INVALID_PARAM;
    if (dmappi_is_up())
        return dmappi_attrs_apply(NULL, attrs);
    *attrs = defaults;
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_get_rma_attrs(dmapp_rma_attrs_t *attrs)
{
    dmapp_rma_attrs_ext_t a;
    dmapp_return_t rc;

    if (!attrs)
        return DMAPP_RC_INVALID_PARAM;
    rc = dmapp_get_rma_attrs_ext(&a);
    if (rc == DMAPP_RC_SUCCESS)
        *attrs = shorten(&a);
    return rc;
}

dmapp_return_t dmapp_set_rma_attrs_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual)
{
    if (!dmappi_is_up() || !requested)
        return DMAPP_RC_INVALID_PARAM;
    return dmappi_attrs_apply(requested, actual);
}

dmapp_return_t dmapp_set_rma_attrs(dmapp_rma_attrs_t *requested, dmapp_rma_attrs_t *actual)
{
    dmapp_rma_attrs_ext_t a;
    dmapp_return_t rc;

    if (!dmappi_is_up() || !requested)
        return DMAPP_RC_INVALID_PARAM;
    a = dmappi_attrs_extend(requested);
    rc = dmappi_attrs_apply(&a, &a);
    if (rc == DMAPP_RC_SUCCESS && actual)
        *actual = shorten(&a);
    return rc;
}

dmapp_return_t dmapp_init(dmapp_rma_attrs_t *requested, dmapp_rma_attrs_t *actual)
{
    dmapp_rma_attrs_ext_t a;
    dmapp_return_t rc;

    if (requested)
        a = dmappi_attrs_extend(requested);
    rc = dmapp_init_ext(requested ? &a : NULL, &a);
    if (rc == DMAPP_RC_SUCCESS && actual)
        *actual = shorten(&a);
    return rc;
}
