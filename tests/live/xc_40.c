/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-40: within one open transaction each launched word goes to a processing element and offset of its own; the event
 * comes when the transaction is closed and all of it has arrived, and not before. Rates are XC-11.
 */
#include "tests/common/seed.h"
#include "tests/live/live.h"

#define N       1000u
#define TARGETS 4u

static struct gx_side targets[TARGETS];
static gni_ep_handle_t eps[TARGETS];
static gni_ct_put_post_descriptor_t elements[N];
static struct {
    uint32_t target;
    uint32_t word;
} places[N];

static void open_targets(void)
{
    for (uint32_t i = 0; i < TARGETS; i++) {
        gx_open(&targets[i], &fx, i, 40 + i, 0);
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &eps[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(eps[i], targets[i].nic_addr, targets[i].inst_id), GNI_RC_SUCCESS);
    }
}

static void close_targets(void)
{
    for (uint32_t i = 0; i < TARGETS; i++) {
        assert_int_equal(GNI_EpDestroy(eps[i]), GNI_RC_SUCCESS);
        gx_close(&targets[i]);
    }
}

static uint64_t *word_of(uint32_t target, uint32_t word)
{
    return (uint64_t *)(void *)targets[target].mem + word;
}

/* A chain of words, each to a target and a place that no other has. */
static void make_chain(gni_post_descriptor_t *first, struct emu_random *random)
{
    void **link = &first->next_descr;

    for (uint32_t i = 0; i < N; i++) {
        uint32_t target = emu_random_below(random, TARGETS);
        uint32_t word = i * 8 + (uint32_t)emu_random_below(random, 8);

        places[i].target = target;
        places[i].word = word;
        ((uint64_t *)(void *)a.mem)[i] = 1000 + i;
        elements[i] = (gni_ct_put_post_descriptor_t){ .ep_hndl = eps[target],
                                                      .remote_addr = ADDR(word_of(target, word)),
                                                      .remote_mem_hndl = targets[target].mem_hndl,
                                                      .length = 8,
                                                      .local_addr = ADDR(a.mem) + (uint64_t)8 * i };
        *link = &elements[i];
        link = &elements[i].next_descr;
    }
}

static void test_event_comes_when_every_word_is_where_it_should_be(void **state)
{
    struct emu_random random = seeded(40);
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t empty = d;

    (void)state;
    open_targets();
    make_chain(&d, &random);
    freeze_emunic();
    assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE); /* closed, and not drained */
    thaw_emunic();
    assert_int_equal(finish(&d), STATUS_OK);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(*word_of(places[i].target, places[i].word), 1000 + i);
    for (uint32_t t = 0; t < TARGETS; t++) { /* and nowhere else */
        uint32_t n = 0;

        for (uint32_t w = 0; w < GX_BYTES / 8; w++)
            n += *word_of(t, w) != 0;
        for (uint32_t i = 0; i < N; i++)
            n -= places[i].target == t;
        assert_int_equal(n, 0);
    }
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE); /* one event for all of it */
    empty.next_descr = NULL;
    assert_int_equal(GNI_CtPostFma(a.ep, &empty), GNI_RC_SUCCESS);
    assert_int_equal(finish(&empty), STATUS_OK);
    close_targets();
}

int main(void)
{
    const struct CMUnitTest tests[] = { pair_test(test_event_comes_when_every_word_is_where_it_should_be) };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
