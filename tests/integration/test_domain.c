/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communication domains: credentials, nodes of ranks, the seals on what emunic hands out, and that two domains on one
 * server know nothing of each other. Rules: docs/architecture.md "Protection"; other users: test_other_user.c.
 */
#include "tests/integration/domain.h"

#define PAGE 4096u

/* ---- credentials ---- */

static void test_right_credentials_attach(void **state)
{
    struct raw raw;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    assert_int_equal(raw.attach.nid, 2);
    assert_int_equal(raw.attach.ptag, fx.ptag);
    assert_int_equal(raw.table->cookie, fx.cookie);
    assert_int_equal(emu_table_ports(raw.table)[raw.attach.port].instance_id, 9);
    assert_int_equal(emu_table_ports(raw.table)[raw.attach.port].pid, getpid());
    raw_close(&raw);
}

static void test_wrong_credentials_are_refused(void **state)
{
    struct raw raw;

    (void)state;
    assert_int_equal(raw_open(&raw, fx.server, fx.ptag, fx.cookie + 1, 9, 2), -EACCES);
    assert_int_equal(raw_open(&raw, fx.server, fx.ptag + 1, fx.cookie, 9, 2), -EACCES);
    assert_int_equal(raw_open(&raw, fx.server, fx.ptag, 0, 9, 2), -EACCES);
}

static void test_tag_is_found_by_the_cookie(void **state)
{
    struct raw raw;

    (void)state;
    assert_int_equal(raw_open(&raw, fx.server, 255, fx.cookie, 9, 2), 0);
    assert_int_equal(raw.attach.ptag, fx.ptag);
    raw_close(&raw);
}

static void test_node_outside_the_domain_is_no_device(void **state)
{
    static const uint32_t nids[] = { 0, 3, 6, 700, EMU_NID_MAX, EMU_NID_NONE - 1 };
    struct raw raw;

    (void)state;
    for (size_t i = 0; i < sizeof(nids) / sizeof(nids[0]); i++)
        assert_int_equal(open_own(&raw, 9, nids[i]), -ENODEV);
}

static void test_memory_that_emunic_cannot_read_is_no_member(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_ATTACH,
                           .attach = { .ptag = fx.ptag, .cookie = fx.cookie, .nid_wanted = 2, .probe_addr = 16 } };
    static const uint64_t word = 5;
    struct raw raw;

    (void)state;
    assert_int_equal(raw_connect(&raw, fx.server), 0);
    assert_int_equal(raw_request(&raw, &msg), -EFAULT);
    msg.type = EMU_MSG_ATTACH;
    msg.attach.probe_addr = (uint64_t)(uintptr_t)&word; /* readable, but not what it says */
    msg.attach.probe_value = 6;
    assert_int_equal(raw_request(&raw, &msg), -EFAULT);
    assert_int_equal(raw_attach(&raw, fx.ptag, fx.cookie, 9, 2), 0); /* the connection is still good */
    raw_close(&raw);
}

static void test_connection_has_one_port(void **state)
{
    struct raw raw;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    close(raw.table_fd);
    assert_int_equal(raw_request(&raw, &(struct emu_msg){ .type = EMU_MSG_ATTACH }), -EALREADY);
    raw.table_fd = -1;
    raw_close(&raw);
}

static void test_requests_about_a_port_need_one(void **state)
{
    struct raw raw;

    (void)state;
    assert_int_equal(raw_connect(&raw, fx.server), 0);
    for (uint16_t type = EMU_MSG_CQ_CREATE; type <= EMU_MSG_DATAGRAM_DROP_EP; type++) {
        struct emu_msg msg = { .type = type };
        struct emu_fds fds;

        assert_int_equal(emu_session_request(&raw.session, &msg, NULL, 0, &fds), 0);
        assert_int_equal(msg.result, -ENOTCONN);
        assert_int_equal(fds.n_fds, 0);
    }
    raw_close(&raw);
}

/* ---- member limit ---- */

/* A second process that tries to attach. */
static int attach_elsewhere(uint32_t ptag, uint32_t cookie)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct raw raw;

        _exit(-raw_open(&raw, fx.server, ptag, cookie, 10, 2));
    }
    waitpid(child, &status, 0);
    return -WEXITSTATUS(status);
}

static void test_member_limit_counts_processes_that_are_attached(void **state)
{
    struct emu_session admin;
    struct raw first;
    struct raw second;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 90, 900, geteuid(), 1, &admin), 0);
    assert_int_equal(attach_elsewhere(90, 900), 0); /* came and went */
    assert_int_equal(raw_open(&first, fx.server, 90, 900, 9, 2), 0);
    assert_int_equal(raw_open(&second, fx.server, 90, 900, 10, 5), 0); /* the same process */
    assert_int_equal(attach_elsewhere(90, 900), -EACCES);
    raw_close(&first);
    assert_int_equal(attach_elsewhere(90, 900), -EACCES);
    raw_close(&second);
    /* emunic serves connections in the order in which they become ready: the end of ours before the new one. */
    assert_int_equal(attach_elsewhere(90, 900), 0);
    end_domain(&admin);
}

/* ---- ranks ---- */

static struct emu_msg join(uint32_t cookie, uint32_t rank)
{
    return (struct emu_msg){ .type = EMU_MSG_JOIN_RANK, .rank = { .ptag = fx.ptag, .cookie = cookie, .rank = rank } };
}

/* These run in processes of their own: what a process joins lasts until it ends. */

static int body_join_every_rank(struct fx_rank *rank)
{
    static const uint32_t local_ranks[N_RANKS] = { 0, 1, 0, 2, 1 };
    char cname[EMU_MSG_CNAME_MAX];
    struct raw raw;

    (void)rank;
    FX_CHECK(raw_connect(&raw, fx.server) == 0);
    for (uint32_t i = 0; i < N_RANKS; i++) {
        struct emu_msg msg = join(fx.cookie, i);

        FX_CHECK(raw_request(&raw, &msg) == 0);
        FX_CHECK(msg.rank.nid == rank_nids[i]);
        FX_CHECK(msg.rank.local_rank == local_ranks[i]);
        snprintf(cname, sizeof(cname), "c0-0c0s%un%u", rank_nids[i] / 4, rank_nids[i] % 4); /* 4 nodes on a blade */
        FX_CHECK(strcmp(msg.rank.cname, cname) == 0);
    }
    raw_close(&raw);
    return 0;
}

static void test_joining_tells_node_its_name_and_local_rank(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 1, body_join_every_rank, NULL), 0);
}

static void test_joining_needs_credentials_and_a_rank_of_the_job(void **state)
{
    struct raw raw;
    struct emu_msg msg;

    (void)state;
    assert_int_equal(raw_connect(&raw, fx.server), 0);
    msg = join(fx.cookie, N_RANKS);
    assert_int_equal(raw_request(&raw, &msg), -EACCES);
    msg = join(fx.cookie, UINT32_MAX);
    assert_int_equal(raw_request(&raw, &msg), -EACCES);
    msg = join(fx.cookie + 1, 0);
    assert_int_equal(raw_request(&raw, &msg), -EACCES);
    raw_close(&raw);
}

static int body_rank_keeps_its_node(struct fx_rank *rank)
{
    struct emu_msg msg = join(fx.cookie, 2);
    struct emu_msg where = { .type = EMU_MSG_WHERE };
    struct raw raw;
    struct raw port;

    (void)rank;
    FX_CHECK(raw_connect(&raw, fx.server) == 0);
    FX_CHECK(raw_request(&raw, &msg) == 0);
    FX_CHECK(raw_request(&raw, &where) == 0);
    FX_CHECK(where.rank.nid == 2);
    raw_close(&raw);
    /* Another connection of the same process, and a wish that it may not have. */
    FX_CHECK(open_own(&port, 9, 5) == 0);
    FX_CHECK(port.attach.nid == 2);
    raw_close(&port);
    return 0;
}

static void test_rank_attaches_on_its_own_node_whatever_it_wants(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 1, body_rank_keeps_its_node, NULL), 0);
}

static int body_each_process_is_its_rank(struct fx_rank *rank)
{
    struct emu_msg msg = join(fx.cookie, rank->rank);
    struct emu_msg where = { .type = EMU_MSG_WHERE };
    struct raw raw;

    FX_CHECK(raw_connect(&raw, fx.server) == 0);
    FX_CHECK(raw_request(&raw, &msg) == 0);
    pthread_barrier_wait(rank->barrier); /* all have joined */
    FX_CHECK(raw_request(&raw, &where) == 0);
    FX_CHECK(where.rank.nid == rank_nids[rank->rank]);
    FX_CHECK(raw_attach(&raw, fx.ptag, fx.cookie, rank->rank, EMU_NID_NONE) == 0);
    FX_CHECK(raw.attach.nid == rank_nids[rank->rank]);
    raw_close(&raw);
    return 0;
}

static void test_each_process_is_where_its_rank_is(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, N_RANKS, body_each_process_is_its_rank, NULL), 0);
}

/* ---- seals ---- */

/* Every way to change a file that a member has a descriptor of. */
static void expect_no_write(int fd, uint64_t bytes)
{
    uint8_t byte = 0x5a;
    void *map;

    assert_int_equal(pwrite(fd, &byte, 1, 0), -1);
    assert_ptr_equal(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_ptr_equal(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0, PAGE), -1);
    map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mprotect(map, PAGE, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(madvise(map, PAGE, MADV_REMOVE), -1);
    munmap(map, bytes);
}

static void expect_fixed_size(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, st.st_size - PAGE), -1);
    assert_int_equal(ftruncate(fd, st.st_size + PAGE), -1);
    assert_int_equal(fallocate(fd, 0, st.st_size, PAGE), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, 0), -1);
}

static int reopen(int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void test_member_cannot_write_the_domain_table(void **state)
{
    struct raw raw;
    int again;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    expect_no_write(raw.table_fd, raw.attach.table_bytes);
    again = reopen(raw.table_fd);
    assert_true(again >= 0);
    expect_no_write(again, raw.attach.table_bytes);
    close(again);
    assert_true(raw.table->magic == EMU_TABLE_MAGIC);
    raw_close(&raw);
}

static void test_member_cannot_write_its_mapping_of_the_table(void **state)
{
    struct raw raw;
    uint64_t zero = 0;
    int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

    (void)state;
    assert_true(mem >= 0);
    assert_int_equal(open_own(&raw, 9, 2), 0);
    assert_int_equal(mprotect((void *)(uintptr_t)raw.table, PAGE, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(pwrite(mem, &zero, 8, (off_t)(uintptr_t)raw.table), -1);
    assert_true(raw.table->magic == EMU_TABLE_MAGIC);
    raw_close(&raw);
    close(mem);
}

static void test_private_copy_of_the_table_changes_nothing(void **state)
{
    struct raw raw;
    struct emu_table *copy;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, raw.table_fd, 0);
    assert_ptr_not_equal(copy, MAP_FAILED);
    copy->magic = 0;
    assert_true(raw.table->magic == EMU_TABLE_MAGIC);
    munmap(copy, PAGE);
    raw_close(&raw);
}

static void test_table_and_segment_keep_their_size(void **state)
{
    struct raw raw;
    int again;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    expect_fixed_size(raw.table_fd);
    expect_fixed_size(raw.segment_fd);
    again = reopen(raw.segment_fd);
    assert_true(again >= 0);
    expect_fixed_size(again);
    close(again);
    raw_close(&raw);
}

static void test_space_file_keeps_its_size(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_SPACE };
    struct emu_fds fds;
    struct raw raw;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    assert_int_equal(emu_session_request(&raw.session, &msg, NULL, 0, &fds), 0);
    assert_int_equal(msg.result, 0);
    assert_int_equal(fds.n_fds, 1);
    expect_fixed_size(fds.fd[0]);
    emu_fds_close(&fds);
    raw_close(&raw);
}

/* ---- what members get of each other ---- */

/* Answer to a request for something of a peer; what comes is closed. */
static int ask_for_peers(struct raw *raw, uint16_t type, uint32_t port, unsigned *n_fds_out)
{
    struct emu_msg msg = { .type = type, .peer = { .port = port } };
    struct emu_fds fds;

    assert_int_equal(emu_session_request(&raw->session, &msg, NULL, 0, &fds), 0);
    *n_fds_out = fds.n_fds;
    emu_fds_close(&fds);
    return msg.result;
}

static void test_routed_domain_keeps_its_segments_apart(void **state)
{
    struct emu_msg msg = {
        .type = EMU_MSG_DOMAIN_CREATE,
        .domain = { .ptag = 92, .cookie = 920, .owner_uid = geteuid(), .n_ranks = 2, .flags = EMU_TABLE_ROUTED }
    };
    static const uint32_t nids[2] = { 0, 1 };
    int fd = memfd_create("ranks", MFD_CLOEXEC);
    struct emu_session admin;
    struct raw one;
    struct raw two;
    unsigned n_fds;

    (void)state;
    assert_int_equal(write(fd, nids, sizeof(nids)), sizeof(nids));
    assert_int_equal(emu_session_open(&admin, fx.server, EMU_SOCKET_ADMIN), 0);
    assert_int_equal(emu_session_request(&admin, &msg, &fd, 1, NULL), 0);
    assert_int_equal(msg.result, 0);
    close(fd);
    assert_int_equal(raw_open(&one, fx.server, 92, 920, 1, 0), 0);
    assert_int_equal(raw_open(&two, fx.server, 92, 920, 2, 1), 0);
    assert_true(atomic_load(&one.table->flags) & EMU_TABLE_ROUTED);
    assert_int_equal(ask_for_peers(&one, EMU_MSG_PEER_SEGMENT, two.attach.port, &n_fds), -EPERM);
    assert_int_equal(n_fds, 0);
    assert_int_equal(ask_for_peers(&one, EMU_MSG_PEER_SPACE, two.attach.port, &n_fds), -EPERM);
    assert_int_equal(n_fds, 0);
    /* Not even emunic's own user can open it afterwards. */
    msg = (struct emu_msg){ .type = EMU_MSG_DATAPATH, .domain = { .domain_id = one.table->domain_id } };
    assert_int_equal(emu_session_request(&admin, &msg, NULL, 0, NULL), 0);
    assert_int_equal(msg.result, -EPERM);
    raw_close(&one);
    raw_close(&two);
    end_domain(&admin);
}

static void test_peers_are_found_in_the_own_domain_only(void **state)
{
    static const uint32_t wrong[] = { EMU_PORTS_MAX - 1, EMU_PORTS_MAX, UINT32_MAX };
    struct raw raw;
    unsigned n_fds;

    (void)state;
    assert_int_equal(open_own(&raw, 9, 2), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ask_for_peers(&raw, EMU_MSG_PEER_SEGMENT, wrong[i], &n_fds), -ENOENT);
        assert_int_equal(n_fds, 0);
        assert_int_equal(ask_for_peers(&raw, EMU_MSG_PEER_SPACE, wrong[i], &n_fds), -ENOENT);
        assert_int_equal(n_fds, 0);
    }
    raw_close(&raw);
}

/* ---- two domains ---- */

static void test_same_names_work_in_two_domains(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    expect_put(&a[0], &a[1], GNI_RC_SUCCESS);
    assert_int_equal(a[1].mem[128], 0x11);
    assert_int_equal(b[1].mem[128], 0);
    assert_int_equal(gx_next(a[1].dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqGetEvent(b[1].dst_cq, &entry), GNI_RC_NOT_DONE);
    expect_put(&b[0], &b[1], GNI_RC_SUCCESS);
    assert_int_equal(b[1].mem[128], 0x11);
}

static void test_handle_of_another_domain_is_refused(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    expect_put(&a[0], &b[1], GNI_RC_TRANSACTION_ERROR);
    expect_put(&b[0], &a[1], GNI_RC_TRANSACTION_ERROR);
    for (unsigned i = 0; i < GX_BYTES; i++) {
        assert_int_equal(a[1].mem[i], 0);
        assert_int_equal(b[1].mem[i], 0);
    }
    assert_int_equal(GNI_CqGetEvent(a[1].dst_cq, &entry), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqGetEvent(b[1].dst_cq, &entry), GNI_RC_NOT_DONE);
}

static void test_datagrams_stay_in_their_domain(void **state)
{
    char out[8] = "domain a";
    char in[4][8] = { { 0 } };
    uint32_t node;
    uint32_t instance;
    gni_post_state_t post_state;
    gni_ep_handle_t any;

    (void)state;
    assert_int_equal(GNI_EpPostData(a[0].ep, out, 8, in[0], 8), GNI_RC_SUCCESS); /* to node 5, instance 11 */
    assert_int_equal(GNI_EpCreate(b[1].nic, NULL, &any), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(any, "domain b", 8, in[1], 8, 7), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(b[1].ep, "domain b", 8, in[2], 8), GNI_RC_SUCCESS); /* from there back to 2, 10 */
    assert_int_equal(GNI_EpPostDataTestById(any, 7, &post_state, &node, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    assert_int_equal(GNI_EpPostDataTest(b[1].ep, &post_state, &node, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    assert_int_equal(GNI_EpPostDataTest(a[0].ep, &post_state, &node, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    /* The right peer still gets it. */
    assert_int_equal(GNI_EpPostData(a[1].ep, "answer a", 8, in[3], 8), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataTest(a[0].ep, &post_state, &node, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_memory_equal(in[0], "answer a", 8);
    assert_int_equal(GNI_EpPostDataTest(a[1].ep, &post_state, &node, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_memory_equal(in[3], "domain a", 8);
    GNI_EpPostDataCancel(b[1].ep);
    GNI_EpPostDataTest(b[1].ep, &post_state, &node, &instance);
    GNI_EpPostDataCancelById(any, 7);
    GNI_EpPostDataTestById(any, 7, &post_state, &node, &instance);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static unsigned live_mds(const struct emu_table *table)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < table->n_nodes * EMU_MD_COUNT; i++)
        n += atomic_load(&emu_table_mds(table, 0)[i].state) != 0;
    return n;
}

static unsigned live_ports(const struct emu_table *table)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < table->n_ports; i++)
        n += atomic_load(&emu_table_ports(table)[i].state) != EMU_PORT_FREE;
    return n;
}

static void test_table_shows_only_the_own_domain(void **state)
{
    struct raw one;
    struct raw two;

    (void)state;
    assert_int_equal(open_own(&one, 20, 2), 0);
    assert_int_equal(raw_open(&two, fx.server, OTHER_PTAG, OTHER_COOKIE, 20, 2), 0);
    assert_int_equal(live_mds(one.table), 2);
    assert_int_equal(live_ports(one.table), 3);
    gx_close(&a[0]);
    assert_int_equal(live_mds(one.table), 1);
    assert_int_equal(live_mds(two.table), 2);
    assert_int_equal(live_ports(two.table), 3);
    assert_int_not_equal(one.table->domain_id, two.table->domain_id);
    gx_open(&a[0], &fx, 2, 10, 0); /* for the teardown */
    raw_close(&one);
    raw_close(&two);
}

static void test_cookie_names_one_domain(void **state)
{
    struct emu_session third;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 79, OTHER_COOKIE, geteuid(), 0, &third), -EEXIST);
}

static void test_end_of_one_domain_leaves_the_other_alone(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_END };

    (void)state;
    assert_int_equal(emu_session_request(&other_admin, &msg, NULL, 0, NULL), 0);
    assert_int_equal(msg.result, 0);
    expect_put(&a[0], &a[1], GNI_RC_SUCCESS);
    expect_put(&b[0], &b[1], GNI_RC_TRANSACTION_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_right_credentials_attach),
        UNIT(test_wrong_credentials_are_refused),
        UNIT(test_tag_is_found_by_the_cookie),
        UNIT(test_node_outside_the_domain_is_no_device),
        UNIT(test_memory_that_emunic_cannot_read_is_no_member),
        UNIT(test_connection_has_one_port),
        UNIT(test_requests_about_a_port_need_one),
        UNIT(test_member_limit_counts_processes_that_are_attached),
        UNIT(test_joining_tells_node_its_name_and_local_rank),
        UNIT(test_joining_needs_credentials_and_a_rank_of_the_job),
        UNIT(test_rank_attaches_on_its_own_node_whatever_it_wants),
        UNIT(test_each_process_is_where_its_rank_is),
        UNIT(test_member_cannot_write_the_domain_table),
        UNIT(test_member_cannot_write_its_mapping_of_the_table),
        UNIT(test_private_copy_of_the_table_changes_nothing),
        UNIT(test_table_and_segment_keep_their_size),
        UNIT(test_space_file_keeps_its_size),
        UNIT(test_routed_domain_keeps_its_segments_apart),
        UNIT(test_peers_are_found_in_the_own_domain_only),
        TWO(test_same_names_work_in_two_domains),
        TWO(test_handle_of_another_domain_is_refused),
        TWO(test_datagrams_stay_in_their_domain),
        TWO(test_table_shows_only_the_own_domain),
        TWO(test_cookie_names_one_domain),
        TWO(test_end_of_one_domain_leaves_the_other_alone),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
