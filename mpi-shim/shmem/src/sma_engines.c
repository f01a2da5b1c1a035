/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines: in virtual time on an Aries, barriers and small reductions are one reduction of the NICs.
 *
 * A group gets its tree (../../ce_tree/ce_tree.h) at the call behind the first AFTER_CALLS that a tree could do: so a
 * team that lives shortly takes no engines, of which a NIC has few. All members count the same calls. A group without
 * a tree, and all else, goes by messages. In functional time nobody has a tree, because stores into mapped memory are
 * faster than emunic.
 */
#include <stdlib.h>

#include "emunic/client/message_cost.h"
#include "mpi-shim/ce_tree/ce_tree.h"
#include "mpi-shim/shmem/src/sma_calls.h"

#define AFTER_CALLS  3
#define MEMBERS_MIN  4 /* fewer are sooner done by messages: two in 0.72 us of the model, by engines in 1.17 */
#define ELEMENTS_MAX 2u

struct smai_engines {
    enum { ENGINES_NEW, ENGINES_READY, ENGINES_REFUSED } state;
    unsigned n_calls;
    struct cet_tree *tree; /* owned */
};

struct smai_engines *smai_engines_of(int n_members)
{
    struct smai_engines *engines;
    gni_nic_device_t device;

    if (n_members < MEMBERS_MIN || !gnii_message_costs() || GNI_GetDeviceType(&device) != GNI_RC_SUCCESS ||
        device != GNI_DEVICE_ARIES)
        return NULL;
    engines = calloc(1, sizeof(*engines));
    if (!engines) /* the others would wait for a member that goes by messages */
        smai_fail("team", "out of memory");
    return engines;
}

void smai_engines_drop(struct smai_engines *engines)
{
    if (engines)
        cet_destroy(engines->tree);
    free(engines);
}

/* ---- building ---- */

static bool share(void *arg, uint64_t *words, size_t n)
{
    smai_share_bits(arg, words, n);
    return true;
}

/* False: out of memory, and then the group knows nothing of its members. */
static bool fill_places(const struct smai_group *g, struct cet_place *places)
{
    for (int i = 0; places && i < g->n; i++) {
        struct dmappi_symmetric_segment heap = dmappi_symmetric_segment(g->pes[i], DMAPPI_SHEAP);

        places[i] = (struct cet_place){ heap.nic_addr, heap.instance_id };
    }
    return places;
}

static struct cet_tree *build(const struct smai_group *g, const char *call)
{
    struct cet_place *places = calloc((size_t)g->n, sizeof(*places));
    struct cet_tree *tree;

    if (!fill_places(g, places))
        smai_fail(call, "out of memory");
    tree = cet_build(dmappi_nic(), &(struct cet_group){ .n = g->n,
                                                        .me = g->me,
                                                        .places = places,
                                                        .share = share,
                                                        .progress = smai_wait_politely,
                                                        .arg = (void *)(uintptr_t)g });
    free(places);
    return tree;
}

static bool has_tree(const struct smai_group *g, const char *call)
{
    struct smai_engines *engines = g->engines;

    if (engines->state == ENGINES_NEW && engines->n_calls++ >= AFTER_CALLS) {
        engines->tree = build(g, call);
        engines->state = engines->tree ? ENGINES_READY : ENGINES_REFUSED;
    }
    return engines->state == ENGINES_READY;
}

/* ---- reducing ---- */

static void reduce(const struct smai_group *g, const char *call, const struct cet_operands *operands,
                   uint64_t results_out[2])
{
    if (cet_reduce(g->engines->tree, operands, results_out) != GNI_RC_SUCCESS)
        smai_fail_requests(call, DMAPP_RC_TRANSACTION_ERROR);
}

bool smai_engines_sync(const struct smai_group *g)
{
    uint64_t results[2];

    if (!has_tree(g, "collective"))
        return false;
    reduce(g, "collective", &(struct cet_operands){ .command = GNI_FMA_CE_IADD }, results);
    return true;
}

bool smai_engines_reduce(const struct smai_group *g, const struct smai_blocks *b, const struct smai_operation *op)
{
    struct cet_operands operands = { .command = op->command, .mode = b->nelems == 2 ? GNI_CEMODE_TWO_OP : 0 };
    uint64_t results[2];

    if (b->nelems == 0 || b->nelems > op->n_by_engines || !has_tree(g, b->call))
        return false;
    for (size_t i = 0; i < b->nelems; i++)
        memcpy(&operands.values[i], (const uint8_t *)b->source + i * b->elem_bytes, b->elem_bytes);
    reduce(g, b->call, &operands, results);
    for (size_t i = 0; i < b->nelems; i++)
        memcpy((uint8_t *)b->dest + i * b->elem_bytes, &results[i], b->elem_bytes);
    return true;
}
