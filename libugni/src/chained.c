/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chained FMA and chained queue writes.
 *
 * A chain is a head descriptor and a list of elements, each on an end point of its own, that complete as one. It is
 * checked as a whole before anything starts; then every element becomes one command, in order, and takes no slot but
 * the head's. The commands are marked in-order, so that the last one runs after all others; its entry is the head's
 * completion and carries the first failure of the chain (other elements may have been executed then). REMOTE
 * events are delivered by each element. All end points belong to the head's NIC and the entry goes to the head's queue.
 * Source: spec/ugni.md A.1.
 */
#include <stdlib.h>

#include "libugni/src/post.h"

#define CHAIN_MAX 1024u

struct chain {
    struct gnii_post *posts; /* owned */
    uint32_t n_posts;
};

/* The common start of every element. */
struct element {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
};

/* Element as a descriptor of the head's type; fields that do not apply are not read. */
static gni_post_descriptor_t descriptor_of(const gni_post_descriptor_t *head, const void *element)
{
    gni_post_descriptor_t d = { .type = head->type, .cq_mode = head->cq_mode, .dlvr_mode = head->dlvr_mode };

    if (head->type == GNI_POST_FMA_PUT) {
        const gni_ct_put_post_descriptor_t *e = element;

        d.remote_addr = e->remote_addr;
        d.remote_mem_hndl = e->remote_mem_hndl;
        d.length = e->length;
        d.local_addr = e->local_addr;
    } else if (head->type == GNI_POST_FMA_GET) {
        const gni_ct_get_post_descriptor_t *e = element;

        d.remote_addr = e->remote_addr;
        d.remote_mem_hndl = e->remote_mem_hndl;
        d.length = e->length;
        d.local_addr = e->local_addr;
        d.local_mem_hndl = e->local_mem_hndl;
    } else if (head->type == GNI_POST_AMO) {
        const gni_ct_amo_post_descriptor_t *e = element;

        d.remote_addr = e->remote_addr;
        d.remote_mem_hndl = e->remote_mem_hndl;
        d.length = e->length;
        d.amo_cmd = e->amo_cmd;
        d.first_operand = e->first_operand;
        d.second_operand = e->second_operand;
        if ((e->amo_cmd & 0x100) == 0) {
            d.local_addr = e->local_addr;
            d.local_mem_hndl = e->local_mem_hndl;
        }
    } else {
        const gni_ct_cqw_post_descriptor_t *e = element;

        d.remote_mem_hndl = e->remote_mem_hndl;
        d.cqwrite_value = e->cqwrite_value;
    }
    return d;
}

static gni_return_t append(struct chain *chain, struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *d)
{
    struct gnii_post *grown;
    struct gnii_post *p;
    gni_return_t rc;

    if (chain->n_posts == CHAIN_MAX)
        return GNI_RC_INVALID_PARAM;
    grown = realloc(chain->posts, (chain->n_posts + 1) * sizeof(*grown));
    if (!grown)
        return GNI_RC_ERROR_NOMEM;
    chain->posts = grown;
    p = &grown[chain->n_posts];
    rc = gnii_post_set_common(p, ep, d, cq);
    if (rc == GNI_RC_SUCCESS)
        rc = d->type == GNI_POST_CQWRITE ? gnii_post_prepare_cqwrite(p, d) : gnii_post_prepare_fma(p, d);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    p->flags |= EMU_CMD_IN_ORDER;
    p->chain = EMU_CHAIN_MORE;
    chain->n_posts++;
    return GNI_RC_SUCCESS;
}

/* NIC lock held. */
static gni_return_t post_chain(struct gnii_ep *ep, gni_post_descriptor_t *head, struct chain *chain)
{
    gni_return_t rc = append(chain, ep, ep->cq, head);

    for (const struct element *e = head->next_descr; e && rc == GNI_RC_SUCCESS; e = e->next_descr) {
        struct gnii_ep *element_ep = gnii_ep_find(e->ep_hndl);
        gni_post_descriptor_t d = descriptor_of(head, e);

        rc = element_ep && element_ep->nic == ep->nic ? append(chain, element_ep, ep->cq, &d) : GNI_RC_INVALID_PARAM;
    }
    if (rc != GNI_RC_SUCCESS)
        return rc;
    chain->posts[chain->n_posts - 1].chain = chain->n_posts > 1 ? EMU_CHAIN_LAST : EMU_CHAIN_NONE;
    return gnii_post_start(chain->posts, chain->n_posts);
}

static gni_return_t start_chain(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct chain chain = { 0 };
    gni_return_t rc;

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    rc = post_chain(ep, post_descr, &chain);
    emu_biased_unlock(&ep->nic->lock);
    free(chain.posts);
    return rc;
}

gni_return_t GNI_CtPostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    if (!post_descr || (post_descr->type != GNI_POST_FMA_PUT && post_descr->type != GNI_POST_FMA_GET &&
                        post_descr->type != GNI_POST_AMO))
        return GNI_RC_INVALID_PARAM;
    return start_chain(ep_hndl, post_descr);
}

gni_return_t GNI_CtPostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    if (!post_descr || post_descr->type != GNI_POST_CQWRITE)
        return GNI_RC_INVALID_PARAM;
    return start_chain(ep_hndl, post_descr);
}
