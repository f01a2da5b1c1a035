/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of real programs share: entries and descriptors as these programs make them. Source of what the programs
 * do: spec/portals3.md 7.3 and 8. Written from its descriptions; no code of the programs.
 */
#ifndef TESTS_CONFORMANCE_PORTALS_PROGRAMS_H
#define TESTS_CONFORMANCE_PORTALS_PROGRAMS_H

#include "tests/common/portals.h"

#define START_OFF PTL_MD_EVENT_START_DISABLE
#define END_OFF   PTL_MD_EVENT_END_DISABLE

static inline ptl_handle_me_t attach(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore,
                                     ptl_unlink_t unlink, ptl_ins_pos_t pos)
{
    ptl_handle_me_t me;

    assert_int_equal(PtlMEAttach(px_ni, pt, px_anybody, bits, ignore, unlink, pos, &me), PTL_OK);
    return me;
}

static inline ptl_handle_me_t insert(ptl_handle_me_t base, ptl_match_bits_t bits, ptl_match_bits_t ignore,
                                     ptl_unlink_t unlink)
{
    ptl_handle_me_t me;

    assert_int_equal(PtlMEInsert(base, px_anybody, bits, ignore, unlink, PTL_INS_BEFORE, &me), PTL_OK);
    return me;
}

static inline ptl_handle_md_t equip(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink)
{
    ptl_handle_md_t mdh;

    assert_int_equal(PtlMDAttach(me, md, unlink, &mdh), PTL_OK);
    return mdh;
}

static inline uint64_t previous_rank(void)
{
    return (uint64_t)((px_rank + px_size - 1) % px_size);
}

#endif
