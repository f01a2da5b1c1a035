/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A checked post on its way to becoming commands; shared by single posts and chains. NIC lock held throughout.
 */
#ifndef LIBUGNI_POST_H
#define LIBUGNI_POST_H

#include "emunic/abi/amo.h"
#include "libugni/src/ugni.h"

/* What a post wants, taken from its descriptor once: the program may rewrite it before the completion. */
struct gnii_post {
    struct gnii_ep *ep;
    struct gnii_cq *cq;           /* source queue */
    gni_post_descriptor_t *descr; /* what GNI_GetCompleted returns */
    struct gnii_handle_fields remote;
    uint64_t local_addr;
    uint64_t remote_addr;
    uint64_t length_bytes;
    uint64_t operand1;
    uint64_t operand2;
    uint64_t value; /* of the flag, or of the queue write */
    uint64_t flag_addr;
    uint16_t cq_mode;
    uint8_t op;       /* enum emu_op */
    uint8_t flags;    /* EMU_CMD_* */
    uint8_t delivery; /* enum emu_delivery */
    uint8_t amo_op;
    uint8_t amo_flags;
    uint8_t chain;         /* enum emu_chain */
    bool is_local_special; /* local_addr is not simply an address of ours, but: */
    uint16_t local_mdh;    /* an offset in this segmented registration; 0: in nothing that is registered */
    uint16_t local_generation;
    enum gnii_cqe_engine engine;
};

#define GNII_SECOND_GENERATION 0x040u /* bit of an amo_cmd */

/* ---- post_command.c: descriptors ---- */

/* Type, command and modes that a Gemini does not have. */
bool gnii_post_came_with_aries(const gni_post_descriptor_t *d);

/* Has the NIC's device what the descriptor asks for? */
static inline bool gnii_post_is_of_device(const struct gnii_nic *nic, const gni_post_descriptor_t *d)
{
    return !nic->is_gemini || !gnii_post_came_with_aries(d);
}

/* End point, queue, events and delivery mode of a descriptor. */
gni_return_t gnii_post_set_common(struct gnii_post *p, struct gnii_ep *ep, gni_post_descriptor_t *descr,
                                  struct gnii_cq *cq);
/* The rest of an FMA descriptor. */
gni_return_t gnii_post_prepare_fma(struct gnii_post *p, const gni_post_descriptor_t *d);
/* The rest of a block transfer's. */
gni_return_t gnii_post_prepare_rdma(struct gnii_post *p, const gni_post_descriptor_t *d);
/* The rest of a queue write. */
gni_return_t gnii_post_prepare_cqwrite(struct gnii_post *p, const gni_post_descriptor_t *d);

/* What an atomic command of the API is. False: nothing. */
bool gnii_post_amo_of(uint32_t command, uint8_t *op_out, uint8_t *flags_out);

/* ---- post_command.c: commands ---- */

/*
 * The post as a command in the port's next slot, with its data still in the program's buffer: so it can be run. NULL:
 * the NIC has gone. *staging_off_out is where the data go if they are to be staged.
 */
struct emu_cmd *gnii_post_build(const struct gnii_post *p, uint32_t tid, uint64_t *staging_off_out);
/* Copies the data to where emunic finds them: so the command can be published. */
void gnii_post_hand_over_data(const struct gnii_post *p, struct emu_cmd *cmd, uint64_t staging_off);

/* ---- post.c ---- */

/* Takes a transfer slot, and the room of the post's entries in its source queue. False: there is none. */
bool gnii_post_take_room(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *descr, uint16_t cq_mode,
                         uint32_t *tid_out);
/* Takes one slot for the first post's descriptor and sends all of them as one chain (n_posts 1: a plain post). */
gni_return_t gnii_post_start(const struct gnii_post *posts, uint32_t n_posts);

#endif
