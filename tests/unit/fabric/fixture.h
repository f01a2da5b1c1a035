/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of the fabric share: building machines, and a seed.
 */
#ifndef TESTS_UNIT_FABRIC_FIXTURE_H
#define TESTS_UNIT_FABRIC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/random.h"

#ifndef EMU_TEST_MACHINE_DIR
#define EMU_TEST_MACHINE_DIR "emunic/machines" /* run from the root of the source tree */
#endif

static inline struct emu_machine *load(const char *spec)
{
    struct emu_machine *m = NULL;
    char err[300] = "";

    if (emu_machine_load(spec, EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)) < 0)
        fail_msg("%s: %s", spec, err);
    return m;
}

/* EMU_TEST_SEED, or the test's own. Printed, so that a failure can be repeated. */
static inline struct emu_random seeded(uint64_t own_seed)
{
    const char *text = getenv("EMU_TEST_SEED");
    struct emu_random random = { .state = text ? strtoull(text, NULL, 10) : own_seed };

    print_message("# EMU_TEST_SEED=%llu\n", (unsigned long long)random.state);
    return random;
}

static inline struct emu_link link_of(const struct emu_machine *m, uint32_t id)
{
    struct emu_link l;

    assert_int_equal(emu_link_get(m, id, &l), 0);
    return l;
}

/* The link from a hypercube's vertex along a dimension: the one that turns this bit. */
static inline uint32_t edge_of(const struct emu_machine *m, uint32_t vertex, uint32_t dimension)
{
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_EDGE && l.from.index == vertex && l.to.index == (vertex ^ (1u << dimension)))
            return id;
    }
    fail_msg("vertex %u has no edge along dimension %u", vertex, dimension);
    return 0;
}

static inline struct emu_place place_of(const struct emu_machine *m, uint32_t nid)
{
    struct emu_place place;

    assert_int_equal(emu_machine_place(m, nid, &place), 0);
    return place;
}

/* Aries has four nodes per router. */
static inline struct emu_place place_of_router(const struct emu_machine *m, uint32_t router)
{
    return place_of(m, router * 4);
}

#endif
