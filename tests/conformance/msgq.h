/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes with two instances of a shared message queue each, in one process: a0, a1 on node 0, b0, b1 on node 1. Each
 * program includes this once.
 */
#ifndef TESTS_CONFORMANCE_MSGQ_H
#define TESTS_CONFORMANCE_MSGQ_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/gni.h"
#include "tests/common/proc.h"
#include "tests/common/rows.h"
#include "tests/common/seed.h"

#define PATIENCE_NS  20000000000ull
#define DO_NOT_BLOCK ((uint32_t)-1)
#define CREDITS      8u
#define POOLED       4u
#define INBOX        256u

static struct fx fx;

/* A message as the callback saw it. */
struct got {
    uint32_t snd_id;
    uint32_t snd_pe;
    uint8_t tag;
    uint8_t bytes[GNI_MSGQ_MSG_SZ_MAX];
};

struct inst {
    struct gx_side side;
    gni_msgq_handle_t msgq;
    gni_ep_handle_t ep[4]; /* by number of the peer in all[] */
    struct got got[INBOX];
    unsigned n_got;
    int answer; /* of the callback */
};

static struct inst a0, a1, b0, b1;
static struct inst *const all[4] = { &a0, &a1, &b0, &b1 };
static const uint32_t node_of[4] = { 0, 0, 1, 1 };

static inline unsigned number_of(const struct inst *i)
{
    unsigned n = 0;

    while (all[n] != i)
        n++;
    return n;
}

static inline int receive(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    struct inst *i = cb_data;
    struct got *got = &i->got[i->n_got++ % INBOX];

    *got = (struct got){ .snd_id = snd_id, .snd_pe = snd_pe, .tag = msg_tag };
    memcpy(got->bytes, msg, sizeof(got->bytes));
    return i->answer;
}

static inline gni_msgq_attr_t usual_attrs(void)
{
    return (gni_msgq_attr_t){ .max_msg_sz = GNI_MSGQ_MSG_SZ_MAX,
                              .smsg_q_sz = CREDITS,
                              .rcv_pool_sz = POOLED,
                              .num_msgq_eps = 2,
                              .nloc_insts = 2,
                              .modes = 0,
                              .rcv_cq_sz = 64 };
}

/* answers: GNI_MsgqInit */
static inline gni_return_t init(struct inst *i, gni_msgq_attr_t attrs)
{
    return GNI_MsgqInit(i->side.nic, receive, i, i->side.src_cq, &attrs, &i->msgq);
}

static inline void open_inst(struct inst *i)
{
    unsigned n = number_of(i);

    memset(i, 0, sizeof(*i));
    i->answer = 1;
    gx_open(&i->side, &fx, node_of[n], 10 + n, 0);
}

/* Takes everything down, whatever is outstanding. */
static inline void close_inst(struct inst *i)
{
    if (!i->side.cdm)
        return;
    for (unsigned n = 0; n < 4; n++) {
        if (i->ep[n])
            GNI_EpDestroy(i->ep[n]);
    }
    gx_close(&i->side);
    memset(i, 0, sizeof(*i));
}

static inline int open_nodes(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++)
        open_inst(all[n]);
    return 0;
}

static inline int close_nodes(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++)
        close_inst(all[n]);
    unsetenv("EMUNIC_CQ_FLOOR");
    return 0;
}

static inline void init_all(gni_msgq_attr_t attrs)
{
    for (unsigned n = 0; n < 4; n++)
        assert_int_equal(init(all[n], attrs), GNI_RC_SUCCESS);
}

static inline void connect_nodes(struct inst *x, struct inst *y)
{
    gni_msgq_ep_attr_t of_x, of_y;

    assert_int_equal(GNI_MsgqGetConnAttrs(x->msgq, y->side.nic_addr, &of_x, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(y->msgq, x->side.nic_addr, &of_y, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(x->msgq, y->side.nic_addr, &of_y), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(y->msgq, x->side.nic_addr, &of_x), GNI_RC_SUCCESS);
}

static inline int open_connected_with(gni_msgq_attr_t attrs)
{
    open_nodes(NULL);
    init_all(attrs);
    connect_nodes(&a0, &b0);
    return 0;
}

static inline int open_connected(void **state)
{
    (void)state;
    return open_connected_with(usual_attrs());
}

static inline gni_ep_handle_t ep_to(struct inst *from, struct inst *to)
{
    gni_ep_handle_t *ep = &from->ep[number_of(to)];

    if (!*ep) {
        assert_int_equal(GNI_EpCreate(from->side.nic, from->side.src_cq, ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(*ep, to->side.nic_addr, to->side.inst_id), GNI_RC_SUCCESS);
    }
    return *ep;
}

/* A message whose data are one number. answers: GNI_MsgqSend */
static inline gni_return_t send_number(struct inst *from, struct inst *to, uint32_t number)
{
    return GNI_MsgqSend(from->msgq, ep_to(from, to), NULL, 0, &number, sizeof(number), number, (uint8_t)number);
}

static inline uint32_t number_in(const struct got *got)
{
    uint32_t number;

    memcpy(&number, got->bytes, sizeof(number));
    return number;
}

/* answers: GNI_MsgqProgress */
static inline gni_return_t progress(struct inst *i)
{
    return GNI_MsgqProgress(i->msgq, DO_NOT_BLOCK);
}

/* Until so many messages have come in all. */
static inline void progress_until(struct inst *i, unsigned n_got)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    while (i->n_got < n_got && emu_clock_ns() < end_ns) {
        gni_return_t rc = progress(i);

        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
    }
    assert_int_equal(i->n_got, n_got);
}

/* Takes the completion entries of so many sends. */
static inline void complete(struct inst *i, unsigned n)
{
    gni_cq_entry_t entry;

    while (n-- > 0)
        assert_int_equal(gx_next(i->side.src_cq, &entry), GNI_RC_SUCCESS);
}

/* Sends with patience: credits may be on their way back. `helper` looks after the queue of the other node. */
static inline void send_surely(struct inst *from, struct inst *to, uint32_t number, struct inst *helper)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    while ((rc = send_number(from, to, number)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        progress(helper);
    assert_int_equal(rc, GNI_RC_SUCCESS);
    complete(from, 1);
}

/*
 * Until sends to the instance that from->ep[3] is bound to are refused: the news from another host takes a while, and
 * what is sent before it arrives may end in an error.
 */
static inline void send_until_refused(struct inst *from)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_MsgqSend(from->msgq, from->ep[3], NULL, 0, NULL, 0, 0, 0)) != GNI_RC_INVALID_STATE &&
           emu_clock_ns() < end_ns) {
        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
        if (rc == GNI_RC_SUCCESS)
            gx_next(from->side.src_cq, &entry);
        progress(from);
    }
    assert_int_equal(rc, GNI_RC_INVALID_STATE);
}

/* ---- traffic between processes ---- */

#define RANKS 6u

/* ---- groups ---- */

static inline int start_emunic(void **state)
{
    static const uint32_t nids[RANKS] = { 0, 0, 1, 1, 2, 2 };
    struct fx_options options = { .n_ranks = RANKS, .nids = nids };

    (void)state;
    fx_start(&fx, &options);
    return 0;
}

static inline int stop_emunic(void **state)
{
    (void)state;
    fx_stop(&fx);
    return 0;
}

#define connected_test(name) cmocka_unit_test_setup_teardown(name, open_connected, close_nodes)

#endif
