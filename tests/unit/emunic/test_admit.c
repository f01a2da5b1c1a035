/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of a new connection: two sides with one key admit each other; nobody else gets that far.
 */
#include "emunic/transport/admit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/seed.h"

static struct emu_admit_config configs[2]; /* of caller and called */
static uint8_t addresses[3][EMU_ADMIT_ADDRESS_BYTES];
static struct emu_admit caller, called;

static int setup(void **state)
{
    static const char *const names[] = { "10.0.0.1", "10.0.0.2", "10.0.0.3" };

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct sockaddr_storage storage = { .ss_family = AF_INET };
        struct sockaddr_in *in = (struct sockaddr_in *)&storage;

        in->sin_port = htons((uint16_t)(1000 + i));
        inet_pton(AF_INET, names[i], &in->sin_addr);
        if (!emu_admit_address(&storage, addresses[i]))
            return -1;
    }
    for (unsigned i = 0; i < 2; i++) {
        configs[i] = (struct emu_admit_config){ .host = i, .n_hosts = 4 };
        memset(configs[i].key, 7, sizeof(configs[i].key));
    }
    return emu_crypt_init();
}

static void begin(void)
{
    emu_admit_begin(&caller, &configs[0], true, addresses[0], addresses[1]);
    emu_admit_begin(&called, &configs[1], false, addresses[0], addresses[1]);
}

/* What one has to say goes to the other, whole. */
static int pass(struct emu_admit *from, struct emu_admit *to)
{
    uint32_t n = from->n_out;

    from->n_out = 0;
    return emu_admit_take(to, from->out, n);
}

static void expect_refusal(int answer, int proof)
{
    begin();
    if (answer < 0) {
        assert_int_equal(pass(&caller, &called), answer);
        assert_int_equal(called.n_out, 0);
        return;
    }
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_MORE);
    assert_int_equal(pass(&called, &caller), proof);
    assert_int_equal(caller.n_out, 0);
}

static void test_hosts_with_one_key_admit_each_other(void **state)
{
    (void)state;
    begin();
    assert_int_equal(emu_admit_wants(&called), EMU_ADMIT_HELLO_BYTES);
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_MORE);
    assert_int_equal(emu_admit_wants(&called), EMU_ADMIT_PROOF_BYTES);
    assert_int_equal(pass(&called, &caller), EMU_ADMIT_DONE);
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_DONE);
    assert_int_equal(emu_admit_wants(&caller) + emu_admit_wants(&called), 0);
    assert_int_equal(caller.peer_host, 1);
    assert_int_equal(called.peer_host, 0);
}

static void test_words_may_come_byte_by_byte(void **state)
{
    struct emu_admit *sides[] = { &caller, &called };

    (void)state;
    begin();
    for (unsigned turn = 0; turn < 3; turn++) {
        struct emu_admit *from = sides[turn % 2];
        struct emu_admit *to = sides[(turn + 1) % 2];
        uint32_t n = from->n_out;

        from->n_out = 0;
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(emu_admit_wants(to), n - i);
            assert_int_equal(emu_admit_take(to, from->out + i, 1),
                             i + 1 < n || turn == 0 ? EMU_ADMIT_MORE : EMU_ADMIT_DONE);
        }
    }
}

static void test_another_key_is_refused_by_the_caller_first(void **state)
{
    (void)state;
    configs[1].key[31] ^= 1;
    expect_refusal(EMU_ADMIT_MORE, -EACCES);
}

static void test_stranger_without_proof_is_refused(void **state)
{
    uint8_t nothing[EMU_ADMIT_PROOF_BYTES] = { 0 };

    (void)state;
    begin();
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_MORE);
    assert_int_equal(emu_admit_take(&called, nothing, sizeof(nothing)), -EACCES);
}

static void test_called_sides_proof_sent_back_is_none(void **state)
{
    (void)state;
    begin();
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_MORE);
    assert_int_equal(emu_admit_take(&called, called.out + EMU_ADMIT_GREETING, EMU_ADMIT_PROOF_BYTES), -EACCES);
}

static void test_callers_own_words_sent_back_are_refused(void **state)
{
    struct emu_admit other;

    (void)state;
    begin();
    /* A connection of the called host's own is answered with what it says itself. */
    emu_admit_begin(&other, &configs[1], true, addresses[1], addresses[0]);
    assert_int_equal(pass(&other, &called), -EADDRINUSE);
}

static void test_replay_of_a_good_connection_is_refused(void **state)
{
    uint8_t hello[EMU_ADMIT_HELLO_BYTES];
    uint8_t answer[EMU_ADMIT_ANSWER_BYTES];
    uint8_t proof[EMU_ADMIT_PROOF_BYTES];

    (void)state;
    begin();
    memcpy(hello, caller.out, sizeof(hello));
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_MORE);
    memcpy(answer, called.out, sizeof(answer));
    assert_int_equal(pass(&called, &caller), EMU_ADMIT_DONE);
    memcpy(proof, caller.out, sizeof(proof));
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_DONE);
    begin();
    assert_int_equal(emu_admit_take(&called, hello, sizeof(hello)), EMU_ADMIT_MORE);
    assert_int_equal(emu_admit_take(&called, proof, sizeof(proof)), -EACCES);
    begin();
    assert_int_equal(emu_admit_take(&caller, answer, sizeof(answer)), -EACCES);
}

static void test_words_passed_on_from_another_address_are_refused(void **state)
{
    (void)state;
    begin();
    emu_admit_begin(&called, &configs[1], false, addresses[2], addresses[1]);
    assert_int_equal(pass(&caller, &called), EMU_ADMIT_MORE);
    assert_int_equal(pass(&called, &caller), -EACCES);
}

static void test_any_changed_bit_is_refused(void **state)
{
    struct emu_random random = seeded(3);

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        unsigned which = (unsigned)emu_random_below(&random, 3);
        int r = EMU_ADMIT_MORE;

        begin();
        for (unsigned turn = 0; turn < 3 && r >= 0; turn++) {
            struct emu_admit *from = turn % 2 ? &called : &caller;

            if (turn == which)
                from->out[emu_random_below(&random, from->n_out)] ^= (uint8_t)(1u << emu_random_below(&random, 8));
            r = pass(from, turn % 2 ? &caller : &called);
        }
        assert_true(r < 0);
    }
}

static void test_other_versions_flags_and_numbers_are_named(void **state)
{
    (void)state;
    begin();
    caller.out[9]++;
    assert_int_equal(pass(&caller, &called), -EPROTONOSUPPORT);
    /* Who is called says its own flags before it hangs up. */
    configs[0].flags = EMU_ADMIT_SECURE;
    begin();
    assert_int_equal(pass(&caller, &called), -EOPNOTSUPP);
    assert_int_equal(pass(&called, &caller), -EOPNOTSUPP);
    assert_int_equal(caller.n_out + called.n_out, 0);
    configs[0].flags = 0;
    configs[0].host = 4;
    expect_refusal(-EADDRINUSE, 0);
    configs[0].host = configs[1].host;
    expect_refusal(-EADDRINUSE, 0);
}

static void test_other_words_are_refused_at_their_first_byte(void **state)
{
    (void)state;
    begin();
    assert_int_equal(emu_admit_take(&called, (const uint8_t *)"G", 1), -EPROTO);
}

static void test_more_than_is_wanted_is_refused(void **state)
{
    uint8_t bytes[EMU_ADMIT_ANSWER_BYTES] = { 0 };

    (void)state;
    begin();
    memcpy(bytes, caller.out, caller.n_out);
    assert_int_equal(emu_admit_take(&called, bytes, EMU_ADMIT_HELLO_BYTES + 1), -EMSGSIZE);
}

static void test_truncated_words_are_waited_for(void **state)
{
    (void)state;
    begin();
    assert_int_equal(emu_admit_take(&called, caller.out, EMU_ADMIT_HELLO_BYTES - 1), EMU_ADMIT_MORE);
    assert_int_equal(called.n_out, 0);
    assert_int_equal(emu_admit_wants(&called), 1);
}

static void test_either_kind_of_address_is_the_same_host(void **state)
{
    struct sockaddr_storage storage = { .ss_family = AF_INET6 };
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;
    uint8_t bytes[EMU_ADMIT_ADDRESS_BYTES];

    (void)state;
    in6->sin6_port = htons(1000);
    inet_pton(AF_INET6, "::ffff:10.0.0.1", &in6->sin6_addr);
    assert_true(emu_admit_address(&storage, bytes));
    assert_memory_equal(bytes, addresses[0], sizeof(bytes));
    storage.ss_family = AF_UNIX;
    assert_false(emu_admit_address(&storage, bytes));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hosts_with_one_key_admit_each_other),
        TEST(test_words_may_come_byte_by_byte),
        TEST(test_another_key_is_refused_by_the_caller_first),
        TEST(test_stranger_without_proof_is_refused),
        TEST(test_called_sides_proof_sent_back_is_none),
        TEST(test_callers_own_words_sent_back_are_refused),
        TEST(test_replay_of_a_good_connection_is_refused),
        TEST(test_words_passed_on_from_another_address_are_refused),
        TEST(test_any_changed_bit_is_refused),
        TEST(test_other_versions_flags_and_numbers_are_named),
        TEST(test_other_words_are_refused_at_their_first_byte),
        TEST(test_more_than_is_wanted_is_refused),
        TEST(test_truncated_words_are_waited_for),
        TEST(test_either_kind_of_address_is_the_same_host),
    };

    return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
