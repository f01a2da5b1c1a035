/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one member can take and break: limits of a domain, malformed requests, broken rings. The members here speak to
 * emunic without the library (tests/common/raw.h).
 */
#include "tests/integration/domain.h"

/* ---- limits ---- */

static struct emu_msg registration(uint64_t addr, uint64_t length_bytes, uint32_t flags)
{
    return (
        struct emu_msg){ .type = EMU_MSG_MEM_REGISTER,
                         .memory = { .addr = addr, .length_bytes = length_bytes, .flags = flags, .cq = EMU_CQ_NONE } };
}

static void test_lonely_domain_has_all_handles_of_a_node(void **state)
{
    struct emu_msg msg;
    struct raw raw;
    unsigned n = 0;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    do {
        msg = registration(0x10000, 0x1000, 0);
    } while (raw_request(&raw, &msg) == 0 && ++n < 2 * EMU_MDH_COUNT);
    assert_int_equal(msg.result, -ENOSPC);
    assert_int_equal(n, EMU_MDH_COUNT - 1);
    raw_close(&raw);
}

/* Elsewhere in memory they can share. */
static void test_lonely_domain_has_eight_times_as_many_regions(void **state)
{
    struct emu_msg msg;
    struct raw raw;
    unsigned n = 0;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    do {
        msg = registration(0x10000 + n * 0x1000ull, 0x1000, 0);
    } while (raw_request(&raw, &msg) == 0 && ++n < 2 * EMU_MD_COUNT);
    assert_int_equal(msg.result, -ENOSPC);
    assert_int_equal(n, EMU_MD_COUNT - EMU_MDH_SHARERS);
    msg = registration(0x10000, 0x1000, EMU_MD_DEDICATED);
    assert_int_equal(raw_request(&raw, &msg), -ENOSPC);
    raw_close(&raw);
}

static void test_greedy_domain_leaves_handles_to_its_neighbours(void **state)
{
    struct emu_msg msg;
    struct raw greedy;
    struct raw modest;
    unsigned n = 0;

    (void)state;
    assert_int_equal(open_own(&greedy, 9, 2), 0);
    assert_int_equal(raw_open(&modest, fx.server, OTHER_PTAG, OTHER_COOKIE, 9, 2), 0);
    do {
        msg = registration(0x10000, 0x1000, 0);
    } while (raw_request(&greedy, &msg) == 0 && ++n < 2 * EMU_MDH_COUNT);
    assert_int_equal(msg.result, -ENOSPC);
    assert_true(n >= EMU_MDH_COUNT / 2);
    for (n = 0; n < 1000; n++) {
        msg = registration(0x10000, 0x1000, 0);
        assert_int_equal(raw_request(&modest, &msg), 0);
    }
    raw_close(&greedy);
    raw_close(&modest);
}

/* Registers memory that is nowhere and makes emunic look at it. */
static void register_and_touch(struct raw *raw, uint64_t addr, uint64_t length_bytes)
{
    struct emu_msg msg = registration(addr, length_bytes, EMU_MD_MAPPED);
    struct emu_cmd cmd = { .op = EMU_OP_GET,
                           .remote_nid = raw->attach.nid,
                           .remote_addr = addr,
                           .length_bytes = 8,
                           .remote_base = addr,
                           .source_cq = EMU_CQ_NONE };
    uint64_t tail;

    if (raw_request(raw, &msg) != 0)
        return;
    cmd.mdh = msg.memory.mdh;
    cmd.generation = msg.memory.generation;
    raw_post(raw, &cmd);
    tail = atomic_load(&raw->segment->tail);
    while (atomic_load(&raw->segment->head) != tail)
        sched_yield();
}

static void test_huge_registrations_leave_emunic_room_for_others(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_SPACE };
    uint64_t end = (1ull << 46) + (1ull << 40);
    struct raw modest[8];
    struct raw greedy;

    (void)state;
    assert_int_equal(open_own(&greedy, 9, 2), 0);
    assert_int_equal(raw_request(&greedy, &msg), 0);
    /* As large as they come, each with an end of its own, so that no window serves two. */
    for (uint64_t length_bytes = 1ull << 46; length_bytes >= 1ull << 24; length_bytes >>= 1) {
        for (unsigned i = 0; i < 3; i++, end += 1ull << 27)
            register_and_touch(&greedy, end - length_bytes, length_bytes);
    }
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(raw_open(&modest[i], fx.server, OTHER_PTAG, OTHER_COOKIE, 9, 2), 0);
        msg = (struct emu_msg){ .type = EMU_MSG_CQ_CREATE, .cq = { .capacity = 1000 } };
        assert_int_equal(raw_request(&modest[i], &msg), 0);
    }
    expect_put(&b[0], &b[1], GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 8; i++)
        raw_close(&modest[i]);
    raw_close(&greedy);
}

/* ---- protocol ---- */

static void test_other_version_is_refused_with_both_numbers(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_HELLO,
                           .magic = EMU_MSG_MAGIC,
                           .hello = { .abi_version = EMU_ABI_VERSION + 1 } };
    int fd = emu_socket_connect(fx.server, EMU_SOCKET_CONTROL);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(emu_msg_send(fd, &msg, NULL, 0), 0);
    assert_int_equal(emu_msg_receive(fd, &msg, NULL), 0);
    assert_int_equal(msg.result, -EPROTONOSUPPORT);
    assert_int_equal(msg.hello.abi_version, EMU_ABI_VERSION);
    assert_int_equal(msg.hello.server_pid, fx.daemon);
    close(fd);
}

/* Rules of the fixture's domain. */
static unsigned count_rules(void)
{
    char *text = fx_report(&fx, EMU_MSG_FAULTS);
    unsigned n = 0;

    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, "\"classes\"")) != NULL; at++)
        n++;
    free(text);
    return n;
}

/* Sends n_sent rules and says that they are n_rules; the last one is `last`. */
static int set_rules(unsigned n_sent, uint32_t n_rules, const struct emu_fault_rule *last, uint32_t domain_id,
                     uint32_t flags)
{
    struct emu_msg msg = { .type = EMU_MSG_FAULT_SET,
                           .fault = { .domain_id = domain_id, .n_rules = n_rules, .flags = flags } };
    struct emu_fault_rule rule = {
        .classes = 1, .action = EMU_FAULT_DROP, .from_nid = EMU_NID_NONE, .to_nid = EMU_NID_NONE
    };
    int fd = memfd_create("rules", MFD_CLOEXEC);

    assert_true(fd >= 0);
    for (unsigned i = 0; i < n_sent; i++)
        assert_int_equal(write(fd, i + 1 == n_sent && last ? last : &rule, sizeof(rule)), sizeof(rule));
    assert_int_equal(emu_session_request(&fx.admin, &msg, &fd, 1, NULL), 0);
    close(fd);
    return msg.result;
}

static void test_bad_fault_rules_are_refused_and_change_nothing(void **state)
{
    struct emu_msg without = { .type = EMU_MSG_FAULT_SET, .fault = { .domain_id = fx.domain_id, .n_rules = 1 } };
    struct emu_msg clear = { .type = EMU_MSG_FAULT_CLEAR, .fault = { .domain_id = fx.domain_id, .id = 99 } };
    const struct emu_fault_rule bad = { .classes = 1, .action = EMU_FAULT_FAIL };

    (void)state;
    assert_int_equal(set_rules(2, 2, NULL, fx.domain_id, 0), 0);
    assert_int_equal(count_rules(), 2);
    assert_int_equal(set_rules(3, 3, &bad, fx.domain_id, 0), -EINVAL);
    assert_int_equal(set_rules(3, 3, &bad, fx.domain_id, EMU_FAULT_APPEND), -EINVAL);
    assert_int_equal(set_rules(1, 2, NULL, fx.domain_id, 0), -EINVAL); /* not there */
    assert_int_equal(set_rules(1, 0, NULL, fx.domain_id, 0), -EINVAL);
    assert_int_equal(set_rules(1, UINT32_MAX, NULL, fx.domain_id, 0), -ENOSPC);
    assert_int_equal(set_rules(1, 1, NULL, fx.domain_id, 2), -EINVAL); /* no such flag */
    assert_int_equal(set_rules(1, 1, NULL, fx.domain_id + 100, 0), -ENODEV);
    assert_int_equal(emu_session_request(&fx.admin, &without, NULL, 0, NULL), 0);
    assert_int_equal(without.result, -EINVAL);
    assert_int_equal(emu_session_request(&fx.admin, &clear, NULL, 0, NULL), 0);
    assert_int_equal(clear.result, -ENOENT);
    assert_int_equal(count_rules(), 2);
    assert_int_equal(set_rules(EMU_FAULT_RULES_MAX, EMU_FAULT_RULES_MAX, NULL, fx.domain_id, EMU_FAULT_APPEND),
                     -ENOSPC);
    assert_int_equal(count_rules(), 2);
    assert_int_equal(set_rules(EMU_FAULT_RULES_MAX, EMU_FAULT_RULES_MAX, NULL, fx.domain_id, 0), 0);
    assert_int_equal(set_rules(1, 1, NULL, fx.domain_id, EMU_FAULT_APPEND), -ENOSPC);
    assert_int_equal(count_rules(), EMU_FAULT_RULES_MAX);
    fx_clear_faults(&fx);
    assert_int_equal(count_rules(), 0);
}

static int open_errors(struct raw *raw, struct emu_msg_errors asked)
{
    struct emu_msg msg = { .type = EMU_MSG_ERRORS_OPEN, .errors = asked };
    struct emu_fds fds;

    assert_int_equal(emu_session_request(&raw->session, &msg, NULL, 0, &fds), 0);
    assert_int_equal(fds.n_fds, msg.result == 0);
    emu_fds_close(&fds);
    return msg.result;
}

static void test_bad_requests_of_subscriptions_are_refused(void **state)
{
    const struct emu_msg_errors good = { .ptag = fx.ptag, .cookie = fx.cookie, .mask = 0xff };
    struct emu_msg_errors bad = good;
    struct emu_msg msg;
    struct raw raw;

    (void)state;
    assert_int_equal(raw_connect(&raw, fx.server), 0);
    for (uint16_t type = EMU_MSG_ERRORS_MASK; type <= EMU_MSG_ERRORS_FETCH; type++) {
        msg = (struct emu_msg){ .type = type };
        assert_int_equal(raw_request(&raw, &msg), -ENOTCONN);
    }
    bad.cookie++;
    assert_int_equal(open_errors(&raw, bad), -EACCES);
    bad = good;
    bad.flags = 2;
    assert_int_equal(open_errors(&raw, bad), -EINVAL);
    bad = good;
    bad.mask = 0x100;
    assert_int_equal(open_errors(&raw, bad), -EINVAL);
    bad = good;
    bad.room = EMU_ERRORS_MAX + 1;
    assert_int_equal(open_errors(&raw, bad), -ENOSPC);
    assert_int_equal(open_errors(&raw, good), 0);
    assert_int_equal(open_errors(&raw, good), -EALREADY);
    msg = (struct emu_msg){ .type = EMU_MSG_ERRORS_MASK, .errors = { .mask = 0x100 } };
    assert_int_equal(raw_request(&raw, &msg), -EINVAL);
    msg = (struct emu_msg){ .type = EMU_MSG_ERRORS_PTAG, .errors = { .ptag = 256 } };
    assert_int_equal(raw_request(&raw, &msg), -EINVAL);
    msg = (struct emu_msg){ .type = EMU_MSG_ERRORS_FETCH, .errors = { .room = UINT32_MAX } };
    assert_int_equal(raw_request(&raw, &msg), 0);
    assert_int_equal(msg.errors.n_records, 0);
    raw_close(&raw);
}

static void expect_thrown_out(enum emu_socket_kind kind, const struct emu_msg *first, const struct emu_msg *second)
{
    int fd = emu_socket_connect(fx.server, kind);
    struct emu_msg reply;

    assert_true(fd >= 0);
    if (first) {
        assert_int_equal(emu_msg_send(fd, first, NULL, 0), 0);
        assert_int_equal(emu_msg_receive(fd, &reply, NULL), 0);
    }
    assert_int_equal(emu_msg_send(fd, second, NULL, 0), 0);
    assert_int_equal(emu_msg_receive(fd, &reply, NULL), -ECONNRESET);
    close(fd);
}

static void test_broken_protocol_ends_the_connection(void **state)
{
    struct emu_msg hello = { .type = EMU_MSG_HELLO,
                             .magic = EMU_MSG_MAGIC,
                             .abi_version = EMU_ABI_VERSION,
                             .hello = { .abi_version = EMU_ABI_VERSION } };
    struct emu_msg where = { .type = EMU_MSG_WHERE, .magic = EMU_MSG_MAGIC, .abi_version = EMU_ABI_VERSION };
    struct emu_msg msg;

    (void)state;
    expect_thrown_out(EMU_SOCKET_CONTROL, NULL, &where); /* no hello */
    msg = where;
    msg.magic++;
    expect_thrown_out(EMU_SOCKET_CONTROL, &hello, &msg);
    msg = where;
    msg.abi_version++;
    expect_thrown_out(EMU_SOCKET_CONTROL, &hello, &msg);
    msg = where;
    msg.type = 0;
    expect_thrown_out(EMU_SOCKET_CONTROL, &hello, &msg);
    msg.type = EMU_MSG_DOMAIN_CREATE - 1; /* nobody has this one */
    expect_thrown_out(EMU_SOCKET_CONTROL, &hello, &msg);
    msg.type = EMU_MSG_DOMAIN_CREATE; /* belongs on the admin socket */
    expect_thrown_out(EMU_SOCKET_CONTROL, &hello, &msg);
    msg.type = EMU_MSG_SHUTDOWN;
    expect_thrown_out(EMU_SOCKET_CONTROL, &hello, &msg);
    expect_thrown_out(EMU_SOCKET_ADMIN, &hello, &where); /* and the other way round */
}

static void test_who_reads_no_replies_is_thrown_out(void **state)
{
    struct emu_msg hello = { .type = EMU_MSG_HELLO,
                             .magic = EMU_MSG_MAGIC,
                             .abi_version = EMU_ABI_VERSION,
                             .hello = { .abi_version = EMU_ABI_VERSION } };
    int fd = emu_socket_connect(fx.server, EMU_SOCKET_CONTROL);
    int r = 0;

    (void)state;
    assert_true(fd >= 0);
    for (unsigned i = 0; i < 1000000 && r == 0; i++)
        r = emu_msg_send(fd, &hello, NULL, 0); /* blocks while emunic has not looked */
    assert_true(r == -EPIPE || r == -ECONNRESET);
    close(fd);
}

static void test_broken_ring_ends_the_connection(void **state)
{
    static const uint64_t tails[] = { EMU_RING_SLOTS + 1, 1ull << 32, UINT64_MAX };

    (void)state;
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        struct emu_msg msg = { .type = EMU_MSG_RESOURCES, .resources = { .resource = EMU_RESOURCE_CQ } };
        uint64_t one = 1;
        struct raw raw;

        assert_int_equal(open_own(&raw, 9, 2), 0);
        assert_int_equal(raw_request(&raw, &msg), 0);
        atomic_store(&raw.segment->tail, tails[i]);
        assert_int_equal(write(raw.doorbell, &one, sizeof(one)), sizeof(one));
        assert_int_equal(emu_msg_receive(raw.session.fd, &msg, NULL), -ECONNRESET);
        raw_close(&raw);
    }
}

static void test_domain_with_unknown_flags_is_refused(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_CREATE,
                           .domain = { .ptag = 91, .cookie = 910, .n_ranks = 1, .flags = EMU_TABLE_CLOSED } };
    struct emu_session admin;
    uint32_t nid = 0;
    int fd = memfd_create("ranks", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(write(fd, &nid, 4), 4);
    assert_int_equal(emu_session_open(&admin, fx.server, EMU_SOCKET_ADMIN), 0);
    assert_int_equal(emu_session_request(&admin, &msg, &fd, 1, NULL), 0);
    assert_int_equal(msg.result, -EINVAL);
    emu_session_close(&admin);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_lonely_domain_has_all_handles_of_a_node),
        UNIT(test_lonely_domain_has_eight_times_as_many_regions),
        TWO(test_greedy_domain_leaves_handles_to_its_neighbours),
        TWO(test_huge_registrations_leave_emunic_room_for_others),
        UNIT(test_other_version_is_refused_with_both_numbers),
        UNIT(test_bad_fault_rules_are_refused_and_change_nothing),
        UNIT(test_bad_requests_of_subscriptions_are_refused),
        UNIT(test_broken_protocol_ends_the_connection),
        UNIT(test_who_reads_no_replies_is_thrown_out),
        UNIT(test_broken_ring_ends_the_connection),
        UNIT(test_domain_with_unknown_flags_is_refused),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
