/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking things up in a domain table, and the rule that gives a cookie its protection tag.
 */
#include "emunic/abi/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/abi/credentials.h"
#include "emunic/abi/event.h"
#include "tests/common/seed.h"

/* Nids 2 and 4 are nodes 0 and 1. */
static struct {
    struct emu_table table;
    uint32_t nids[5];
    _Alignas(16) struct emu_table_node nodes[2];
    _Alignas(64) struct emu_table_md first_md[2];
} made;

static int make(void **state)
{
    memset(&made, 0, sizeof(made));
    made.table.n_nids = 5;
    made.table.n_nodes = 2;
    made.table.nid_off = offsetof(__typeof__(made), nids);
    made.table.node_off = offsetof(__typeof__(made), nodes);
    made.table.md_off = offsetof(__typeof__(made), first_md);
    memset(made.nids, 0xff, sizeof(made.nids));
    made.nids[2] = 0;
    made.nids[4] = 1;
    made.nodes[1].nid = 4;
    *state = &made.table;
    return 0;
}

static void test_nid_of_the_domain_gives_its_node(void **state)
{
    const struct emu_table *t = *state;

    assert_int_equal(emu_table_node_index(t, 2), 0);
    assert_int_equal(emu_table_node_index(t, 4), 1);
    assert_int_equal(emu_table_nodes(t)[emu_table_node_index(t, 4)].nid, 4);
}

static void test_any_other_nid_gives_none(void **state)
{
    static const uint32_t nids[] = { 0, 1, 3, 5, 6, EMU_NID_MAX, EMU_NID_MAX + 1, EMU_NID_NONE };

    for (size_t i = 0; i < sizeof(nids) / sizeof(nids[0]); i++)
        assert_int_equal(emu_table_node_index(*state, nids[i]), EMU_NID_NONE);
}

static void test_memory_domains_of_a_node_follow_those_of_the_one_before(void **state)
{
    const struct emu_table *t = *state;

    assert_ptr_equal(emu_table_mds(t, 0), made.first_md);
    assert_int_equal((char *)emu_table_mds(t, 1) - (char *)emu_table_mds(t, 0),
                     EMU_MD_COUNT * sizeof(struct emu_table_md));
    /* Also where 32 bits would not do: 2^18 nodes of 2^21 bytes. */
    assert_int_equal((char *)emu_table_mds(t, EMU_NID_MAX) - (char *)t, t->md_off + ((uint64_t)EMU_NID_MAX << 21));
}

static void test_protection_tag_is_one_that_users_may_have(void **state)
{
    struct emu_random random = seeded(41);
    bool is_seen[256] = { false };
    unsigned n_seen = 0;

    (void)state;
    assert_in_range(emu_ptag_of_cookie(0), EMU_PTAG_USER_START, EMU_PTAG_USER_END);
    assert_in_range(emu_ptag_of_cookie(UINT32_MAX), EMU_PTAG_USER_START, EMU_PTAG_USER_END);
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t ptag = emu_ptag_of_cookie((uint32_t)emu_random_next(&random));

        assert_in_range(ptag, EMU_PTAG_USER_START, EMU_PTAG_USER_END);
        n_seen += !is_seen[ptag];
        is_seen[ptag] = true;
    }
    assert_int_equal(n_seen, EMU_PTAG_USER_END - EMU_PTAG_USER_START + 1);
}

static void test_event_word_keeps_its_fields_apart(void **state)
{
    uint64_t event = emu_event_make(2, 4, 0xabcdef012345);

    (void)state;
    assert_int_equal(event, 0x2400abcdef012345);
    assert_int_equal(emu_event_make(6, 20, UINT64_MAX), 0x2400ffffffffffff);
    assert_int_equal(emu_event_status(event), 0);
    event = emu_event_with_status(event, EMU_STATUS_REMOTE_RANGE);
    assert_int_equal(event, 0x2404abcdef012345);
    assert_int_equal(emu_event_status(event), EMU_STATUS_REMOTE_RANGE);
    assert_int_equal(emu_event_with_status(event, 0), 0x2400abcdef012345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nid_of_the_domain_gives_its_node, make),
        cmocka_unit_test_setup(test_any_other_nid_gives_none, make),
        cmocka_unit_test_setup(test_memory_domains_of_a_node_follow_those_of_the_one_before, make),
        cmocka_unit_test(test_protection_tag_is_one_that_users_may_have),
        cmocka_unit_test(test_event_word_keeps_its_fields_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
