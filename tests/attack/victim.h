/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The victim: two NICs of this process. One puts to the other, which looks whether the data are right. Include after
 * cmocka.h.
 */
#ifndef TESTS_ATTACK_VICTIM_H
#define TESTS_ATTACK_VICTIM_H

#include <stdint.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "tests/attack/phases.h"
#include "tests/common/gni.h"

#define PUT_BYTES 32u

struct victim {
    struct gx_side side[2];
    uint32_t n_puts; /* of one measurement */
    uint64_t n_all;
};

static inline void victim_open(struct victim *v, const struct fx *fx, uint32_t from, uint32_t to)
{
    gx_open(&v->side[0], fx, from, 10, 0);
    gx_open(&v->side[1], fx, to, 11, 0);
    gx_connect(&v->side[0], &v->side[1]);
}

static inline void victim_close(struct victim *v)
{
    gx_close(&v->side[0]);
    gx_close(&v->side[1]);
}

/* One put after the other, to and fro. Nanoseconds for all. */
static inline uint64_t victim_put_often(void *arg)
{
    struct victim *v = arg;
    uint64_t began_ns = emu_clock_ns();

    for (uint32_t i = 0; i < v->n_puts; i++) {
        struct gx_side *from = &v->side[i % 2];
        struct gx_side *to = &v->side[(i + 1) % 2];
        uint64_t offset = i % (GX_BYTES / PUT_BYTES) * PUT_BYTES;
        gni_post_descriptor_t d = gx_put(from, to, offset, PUT_BYTES, GNI_CQMODE_GLOBAL_EVENT);
        gni_post_descriptor_t *done = NULL;

        for (uint32_t k = 0; k < PUT_BYTES; k += 8) {
            uint64_t word = ++v->n_all * 0x9e3779b97f4a7c15u;

            memcpy(from->mem + offset + k, &word, sizeof(word));
        }
        assert_int_equal(GNI_PostFma(from->ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(gx_complete(from->src_cq, &done), GNI_RC_SUCCESS);
        assert_memory_equal(to->mem + offset, from->mem + offset, PUT_BYTES);
    }
    return emu_clock_ns() - began_ns;
}

/* Chooses how much a measurement is. */
static inline void victim_measure(struct victim *v)
{
    v->n_puts = 200;
    (void)victim_put_often(v);
    v->n_puts = (uint32_t)(v->n_puts * BLOCK_NS / victim_put_often(v));
    (void)victim_put_often(v);
    v->n_puts = (uint32_t)(v->n_puts * BLOCK_NS / victim_put_often(v));
}

#endif
