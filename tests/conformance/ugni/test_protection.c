/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may attach, and what a member cannot do to memory that is not its to reach: the access completes with an error
 * at the initiator and the target's memory stays as it was. Specification: spec/ugni.md 4.1, 4.7.2, 7.6.
 */
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/conformance/pair.h"

#define PAGE      4096u
#define NOBODY    65534u
#define BIG_BYTES (32u << 20)

static const uint32_t other_cookie = 0x77665544;
static const uint8_t other_ptag = 88;

static struct emu_session other_admin;

/* A second domain on the same server. */
static void make_other_domain(uint32_t owner_uid, unsigned member_limit)
{
    assert_int_equal(fx_add_domain(&fx, other_ptag, other_cookie, owner_uid, member_limit, &other_admin), 0);
}

/* Ends it without a signal: this process may be one of its members. */
static void end_other_domain(void)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_END };

    assert_int_equal(emu_session_request(&other_admin, &msg, NULL, 0, NULL), 0);
    emu_session_close(&other_admin);
}

/* ---- who may attach ---- */

static gni_return_t try_attach(uint8_t ptag, uint32_t cookie, gni_cdm_handle_t *cdm)
{
    gni_nic_handle_t nic;
    uint32_t addr;

    if (GNI_CdmCreate(1, ptag, cookie, GNI_CDM_MODE_ERR_NO_KILL, cdm) != GNI_RC_SUCCESS)
        return GNI_RC_INVALID_PARAM;
    fx_set_node(0);
    return GNI_CdmAttach(*cdm, 0, &addr, &nic);
}

static void expect_no_attach(uint8_t ptag, uint32_t cookie)
{
    gni_cdm_handle_t cdm = NULL;

    assert_int_equal(try_attach(ptag, cookie, &cdm), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
}

static void test_wrong_cookie_is_refused(void **state)
{
    (void)state;
    expect_no_attach((uint8_t)fx.ptag, fx.cookie ^ 1);
    expect_no_attach((uint8_t)fx.ptag, 0);
    expect_no_attach(GNI_FIND_ALLOC_PTAG, fx.cookie + 1);
}

static void test_wrong_tag_is_refused(void **state)
{
    (void)state;
    expect_no_attach((uint8_t)(fx.ptag + 1), fx.cookie);
    expect_no_attach(0, fx.cookie);
}

static void test_refused_attach_leaves_outputs_alone(void **state)
{
    gni_nic_handle_t nic = (gni_nic_handle_t)&fx;
    gni_cdm_handle_t cdm;
    uint32_t addr = 99;

    (void)state;
    assert_int_equal(GNI_CdmCreate(1, (uint8_t)fx.ptag, fx.cookie ^ 1, 0, &cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &nic), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(addr, 99);
    assert_ptr_equal(nic, &fx);
    GNI_CdmDestroy(cdm);
}

/* Root changes into somebody else; somebody else has no such choice, but then the domain is another user's anyway. */
static int attach_as_nobody(struct fx_rank *rank)
{
    gni_return_t expected = *(const gni_return_t *)rank->arg;
    gni_cdm_handle_t cdm;

    if (geteuid() == 0) {
        fx_stay(0);
        FX_CHECK(setgid(NOBODY) == 0);
        FX_CHECK(setuid(NOBODY) == 0);
        prctl(PR_SET_DUMPABLE, 1); /* setuid took it; an ordinary process of that user has it */
    }
    FX_CHECK(try_attach(other_ptag, other_cookie, &cdm) == expected);
    return 0;
}

/* A user namespace may have us alone: whoever is root there cannot become anybody else. */
static bool is_alone(void)
{
    FILE *map = fopen("/proc/self/uid_map", "r");
    unsigned inside, outside, n;
    bool has_nobody = false;

    while (map && fscanf(map, "%u %u %u", &inside, &outside, &n) == 3)
        has_nobody = has_nobody || NOBODY - inside < n;
    if (map)
        fclose(map);
    return geteuid() == 0 && !has_nobody;
}

static void test_domain_of_another_user_is_refused(void **state)
{
    const uint32_t owner = geteuid() == 0 ? 4242 : NOBODY;
    gni_return_t expected = GNI_RC_PERMISSION_ERROR;

    (void)state;
    if (is_alone())
        return;
    make_other_domain(owner, 0);
    assert_int_equal(fx_run(&fx, 1, attach_as_nobody, &expected), 0);
    end_other_domain();
}

static void test_owner_of_a_domain_may_attach(void **state)
{
    const uint32_t owner = geteuid() == 0 ? NOBODY : geteuid();
    gni_return_t expected = GNI_RC_SUCCESS;

    (void)state;
    if (is_alone())
        return;
    make_other_domain(owner, 0);
    assert_int_equal(fx_run(&fx, 1, attach_as_nobody, &expected), 0);
    end_other_domain();
}

/* Three processes want into a domain of two: ranks 0 and 1 first, 2 when they are in, then again when 1 has left. */
static int attach_three(struct fx_rank *rank)
{
    gni_cdm_handle_t second;
    gni_cdm_handle_t cdm;
    gni_return_t rc;

    if (rank->rank < 2) {
        FX_CHECK(try_attach(other_ptag, other_cookie, &cdm) == GNI_RC_SUCCESS);
        FX_CHECK(try_attach(other_ptag, other_cookie, &second) == GNI_RC_SUCCESS); /* it counts processes */
    }
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 2)
        FX_CHECK(try_attach(other_ptag, other_cookie, &cdm) == GNI_RC_PERMISSION_ERROR);
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 1) {
        FX_CHECK(GNI_CdmDestroy(cdm) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_CdmDestroy(second) == GNI_RC_SUCCESS);
    }
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 2) {
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

        do {
            GNI_CdmDestroy(cdm);
            rc = try_attach(other_ptag, other_cookie, &cdm);
        } while (rc == GNI_RC_PERMISSION_ERROR && emu_clock_ns() < end_ns);
        FX_CHECK(rc == GNI_RC_SUCCESS);
    }
    pthread_barrier_wait(rank->barrier);
    return 0;
}

static void test_process_above_the_member_limit_is_refused_until_one_leaves(void **state)
{
    (void)state;
    make_other_domain(geteuid(), 2);
    assert_int_equal(fx_run(&fx, 3, attach_three, NULL), 0);
    end_other_domain();
}

/* ---- what a member cannot reach ---- */

enum target_kind {
    WRITABLE, /* the check of the check */
    READ_ONLY,
    STALE,
    OUTSIDE,
    N_TARGETS,
};

struct victim {
    uint32_t nic_addr;
    uint64_t addr[N_TARGETS];
    gni_mem_handle_t handle[N_TARGETS];
};

static const gni_post_type_t writes[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_PUT_W_SYNCFLAG,
                                          GNI_POST_AMO };
static const uint64_t lengths[] = { 8, 64, 1024, PAGE };

/* One write of each kind and length from that side; returns the status, which must be the same for all. */
static bool all_writes_end_with(const struct gx_side *side, uint64_t addr, gni_mem_handle_t handle,
                                enum status expected)
{
    for (size_t t = 0; t < COUNT_OF(writes); t++) {
        for (size_t l = 0; l < COUNT_OF(lengths); l++) {
            gni_post_descriptor_t d = { .type = writes[t],
                                        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                        .local_addr = ADDR(side->mem),
                                        .local_mem_hndl = side->mem_hndl,
                                        .remote_addr = addr,
                                        .remote_mem_hndl = handle,
                                        .length = lengths[l],
                                        .sync_flag_addr = addr,
                                        .sync_flag_value = 7,
                                        .amo_cmd = GNI_FMA_ATOMIC_FADD,
                                        .first_operand = 1 };
            gni_post_descriptor_t *done = NULL;
            gni_cq_entry_t entry = 0;
            gni_return_t rc = post_on(side->ep, &d);

            if (rc != GNI_RC_SUCCESS) {
                fprintf(stderr, "post type %d length %llu: %s\n", (int)d.type, (unsigned long long)d.length,
                        gni_err_str[rc]);
                return false;
            }
            rc = gx_next(side->src_cq, &entry);
            if (rc != (expected == STATUS_OK ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR) ||
                GNI_GetCompleted(side->src_cq, entry, &done) != rc || done != &d ||
                GNI_CQ_GET_STATUS(entry) != expected) {
                fprintf(stderr, "type %d length %llu: %s, status %u and not %u\n", (int)d.type,
                        (unsigned long long)d.length, gni_err_str[rc], (unsigned)GNI_CQ_GET_STATUS(entry),
                        (unsigned)expected);
                return false;
            }
        }
    }
    return true;
}

static void make_victim(const struct gx_side *side, uint8_t *mem, struct victim *victim)
{
    static const uint32_t flags[N_TARGETS] = { [READ_ONLY] = GNI_MEM_READ_ONLY };

    victim->nic_addr = side->nic_addr;
    for (unsigned k = 0; k < N_TARGETS; k++) {
        victim->addr[k] = ADDR(mem) + 2 * PAGE * k;
        FX_CHECK(GNI_MemRegister(side->nic, victim->addr[k], PAGE, NULL, flags[k], (uint32_t)-1, &victim->handle[k]) ==
                 GNI_RC_SUCCESS);
    }
    FX_CHECK(GNI_MemDeregister(side->nic, &victim->handle[STALE]) == GNI_RC_SUCCESS);
    victim->addr[OUTSIDE] += PAGE;
    memset(mem, 0xee, 2 * PAGE * N_TARGETS);
}

static bool victim_is_whole(const uint8_t *mem)
{
    for (unsigned page = 0; page < 2 * N_TARGETS; page++) {
        if (page / 2 != WRITABLE && !all_bytes_are(mem + page * PAGE, 0xee, PAGE))
            return false;
    }
    return true;
}

static bool every_attack_fails(const struct gx_side *side, const struct victim *victim)
{
    return all_writes_end_with(side, victim->addr[WRITABLE], victim->handle[WRITABLE], STATUS_OK) &&
           all_writes_end_with(side, victim->addr[READ_ONLY], victim->handle[READ_ONLY], STATUS_REMOTE_PERMISSION) &&
           all_writes_end_with(side, victim->addr[STALE], victim->handle[STALE], STATUS_BAD_HANDLE) &&
           all_writes_end_with(side, victim->addr[OUTSIDE], victim->handle[OUTSIDE], STATUS_REMOTE_RANGE) &&
           /* another region's handle does not help */
           all_writes_end_with(side, victim->addr[READ_ONLY], victim->handle[WRITABLE], STATUS_REMOTE_RANGE);
}

static void test_member_cannot_write_where_it_may_not(void **state)
{
    uint8_t *mem = pages(2 * PAGE * N_TARGETS);
    struct victim victim;

    (void)state;
    make_victim(&b, mem, &victim);
    assert_true(every_attack_fails(&a, &victim));
    assert_true(victim_is_whole(mem));
    GNI_MemDeregister(b.nic, &victim.handle[WRITABLE]);
    GNI_MemDeregister(b.nic, &victim.handle[READ_ONLY]);
    GNI_MemDeregister(b.nic, &victim.handle[OUTSIDE]);
    munmap(mem, 2 * PAGE * N_TARGETS);
}

static void open_towards(struct gx_side *side, const struct fx *job, const struct fx_rank *rank,
                         const struct victim *victim)
{
    gx_open(side, job, rank->fx->nids[rank->rank], rank->rank, 0);
    FX_CHECK(GNI_EpCreate(side->nic, side->src_cq, &side->ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(side->ep, victim->nic_addr, 0) == GNI_RC_SUCCESS);
}

/* Rank 0 owns the memory, rank 1 is in its domain, rank 2 in another one. */
static int attack(struct fx_rank *rank)
{
    struct victim *victim = rank->shared;
    struct fx job = *rank->fx;
    struct gx_side side;
    uint8_t *mem = NULL;

    if (rank->rank == 0) {
        gx_open(&side, &job, job.nids[0], 0, 0);
        mem = mmap(NULL, 2 * PAGE * N_TARGETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FX_CHECK(mem != MAP_FAILED);
        make_victim(&side, mem, victim);
    }
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 1) {
        open_towards(&side, &job, rank, victim);
        FX_CHECK(every_attack_fails(&side, victim));
    } else if (rank->rank == 2) {
        job.ptag = other_ptag;
        job.cookie = other_cookie;
        open_towards(&side, &job, rank, victim);
        for (unsigned k = 0; k < N_TARGETS; k++)
            FX_CHECK(all_writes_end_with(&side, victim->addr[k], victim->handle[k], STATUS_BAD_HANDLE));
    }
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 0)
        FX_CHECK(victim_is_whole(mem));
    gx_close(&side);
    return 0;
}

static void test_processes_cannot_write_where_they_may_not(void **state)
{
    (void)state;
    make_other_domain(geteuid(), 0);
    assert_int_equal(fx_run(&fx, 3, attack, NULL), 0);
    end_other_domain();
}

/* ---- another domain ---- */

static struct gx_side stranger; /* on the node of a, in another domain, bound to b's address */

static int open_stranger(void **state)
{
    struct fx other = fx;

    make_other_domain(geteuid(), 0);
    open_pair(state);
    other.ptag = other_ptag;
    other.cookie = other_cookie;
    gx_open(&stranger, &other, 0, a.inst_id, 0);
    if (GNI_EpCreate(stranger.nic, stranger.src_cq, &stranger.ep) != GNI_RC_SUCCESS ||
        GNI_EpBind(stranger.ep, b.nic_addr, b.inst_id) != GNI_RC_SUCCESS)
        return -1;
    return 0;
}

static int close_stranger(void **state)
{
    gx_close(&stranger);
    close_pair(state);
    end_other_domain();
    return 0;
}

static void test_handle_of_another_domain_writes_nothing(void **state)
{
    (void)state;
    memset(b.mem, 0xee, GX_BYTES);
    assert_true(all_writes_end_with(&stranger, ADDR(b.mem), b.mem_hndl, STATUS_BAD_HANDLE));
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
}

static void test_handle_of_another_domain_reads_nothing(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_GET, GNI_POST_RDMA_GET, GNI_POST_AMO };

    (void)state;
    memset(b.mem, 0xee, GX_BYTES);
    memset(stranger.mem, 0x11, GX_BYTES);
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        gni_post_descriptor_t d = gx_put(&stranger, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);

        d.type = types[t];
        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        assert_int_equal(post_on(stranger.ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(finish_on(stranger.src_cq, &d), STATUS_BAD_HANDLE);
    }
    assert_true(all_bytes_are(stranger.mem, 0x11, GX_BYTES));
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
}

static void test_handle_of_another_domain_makes_no_event(void **state)
{
    gni_post_descriptor_t d = gx_put(&stranger, &b, 0, 0, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

    (void)state;
    assert_int_equal(post_on(stranger.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(stranger.src_cq, &d), STATUS_BAD_HANDLE);
    d.type = GNI_POST_CQWRITE;
    assert_int_equal(post_on(stranger.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(stranger.src_cq, &d), STATUS_BAD_HANDLE);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
}

/* Every index of the node, with the right address and no generation to be wrong about. */
static void test_no_guessed_handle_reaches_another_domain(void **state)
{
    (void)state;
    memset(b.mem, 0xee, GX_BYTES);
    for (uint64_t mdh = 0; mdh < 4096; mdh++) {
        gni_post_descriptor_t d = gx_put(&stranger, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);

        d.remote_mem_hndl = (gni_mem_handle_t){ mdh << 52 | ADDR(b.mem) >> 12, 0xfffffff | 12ull << 28 };
        assert_int_equal(post_on(stranger.ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(finish_on(stranger.src_cq, &d), STATUS_BAD_HANDLE);
    }
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
}

static void test_local_handle_of_another_domain_is_no_local_handle(void **state)
{
    gni_post_descriptor_t d = gx_put(&stranger, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);

    (void)state;
    d.type = GNI_POST_RDMA_GET;
    d.local_addr = ADDR(a.mem);
    d.local_mem_hndl = a.mem_hndl; /* same process, same node, other cookie */
    memset(a.mem, 0xee, 8);
    assert_int_equal(post_on(stranger.ep, &d), GNI_RC_SUCCESS);
    assert_true(finish_on(stranger.src_cq, &d) != STATUS_OK);
    assert_true(all_bytes_are(a.mem, 0xee, 8));
}

static void test_registrations_of_another_domain_cannot_be_ended(void **state)
{
    (void)state;
    assert_int_equal(GNI_MemDeregister(stranger.nic, &b.mem_hndl), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemDeregister(stranger.nic, &a.mem_hndl), GNI_RC_INVALID_PARAM);
}

/* ---- memory that goes while it is written ---- */

static void test_deregistered_memory_is_left_alone_by_transfers_under_way(void **state)
{
    uint8_t *source = pages(BIG_BYTES);
    uint8_t *target = pages(BIG_BYTES);
    gni_mem_handle_t source_handle = register_on(&a, source, BIG_BYTES, GNI_MEM_READWRITE);
    gni_mem_handle_t target_handle = register_on(&b, target, BIG_BYTES, GNI_MEM_READWRITE);
    gni_post_descriptor_t d[8];
    enum status last = STATUS_OK;

    (void)state;
    memset(source, 0x33, BIG_BYTES);
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        d[i] = (gni_post_descriptor_t){ .type = i % 2 ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT,
                                        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                        .dlvr_mode = GNI_DLVMODE_IN_ORDER,
                                        .local_addr = ADDR(source),
                                        .local_mem_hndl = source_handle,
                                        .remote_addr = ADDR(target),
                                        .remote_mem_hndl = target_handle,
                                        .length = BIG_BYTES };
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_MemDeregister(b.nic, &target_handle), GNI_RC_SUCCESS);
    memset(target, 0xee, BIG_BYTES);
    for (size_t i = 0; i < COUNT_OF(d); i++)
        last = finish(&d[i]);
    assert_true(last == STATUS_BAD_HANDLE || last == STATUS_PEER_GONE);
    assert_true(all_bytes_are(target, 0xee, BIG_BYTES));
    GNI_MemDeregister(a.nic, &source_handle);
    munmap(source, BIG_BYTES);
    munmap(target, BIG_BYTES);
}

/* Rank 0 registers and dies without a word; rank 1 goes on writing there. */
static int write_to_the_dying(struct fx_rank *rank)
{
    struct victim *victim = rank->shared;
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    enum status status = STATUS_OK;
    struct gx_side side;

    if (rank->rank == 0) {
        gx_open(&side, rank->fx, rank->fx->nids[0], 0, 0);
        victim->nic_addr = side.nic_addr;
        victim->addr[0] = ADDR(side.mem);
        victim->handle[0] = side.mem_hndl;
        pthread_barrier_wait(rank->barrier);
        _exit(0);
    }
    pthread_barrier_wait(rank->barrier);
    open_towards(&side, rank->fx, rank, victim);
    while (status == STATUS_OK && emu_clock_ns() < end_ns) {
        gni_post_descriptor_t d = { .type = GNI_POST_FMA_PUT,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .local_addr = ADDR(side.mem),
                                    .remote_addr = victim->addr[0],
                                    .remote_mem_hndl = victim->handle[0],
                                    .length = 30000 };
        gni_cq_entry_t entry;
        gni_post_descriptor_t *done;

        FX_CHECK(post_on(side.ep, &d) == GNI_RC_SUCCESS);
        gx_next(side.src_cq, &entry);
        GNI_GetCompleted(side.src_cq, entry, &done);
        FX_CHECK(done == &d);
        status = (enum status)GNI_CQ_GET_STATUS(entry);
    }
    FX_CHECK(status == STATUS_PEER_GONE || status == STATUS_BAD_HANDLE);
    gx_close(&side);
    return 0;
}

static void test_writes_to_a_process_that_has_ended_fail(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, write_to_the_dying, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_cookie_is_refused),
        cmocka_unit_test(test_wrong_tag_is_refused),
        cmocka_unit_test(test_refused_attach_leaves_outputs_alone),
        cmocka_unit_test(test_domain_of_another_user_is_refused),
        cmocka_unit_test(test_owner_of_a_domain_may_attach),
        cmocka_unit_test(test_process_above_the_member_limit_is_refused_until_one_leaves),
        pair_test(test_member_cannot_write_where_it_may_not),
        cmocka_unit_test(test_processes_cannot_write_where_they_may_not),
        cmocka_unit_test_setup_teardown(test_handle_of_another_domain_writes_nothing, open_stranger, close_stranger),
        cmocka_unit_test_setup_teardown(test_handle_of_another_domain_reads_nothing, open_stranger, close_stranger),
        cmocka_unit_test_setup_teardown(test_handle_of_another_domain_makes_no_event, open_stranger, close_stranger),
        cmocka_unit_test_setup_teardown(test_no_guessed_handle_reaches_another_domain, open_stranger, close_stranger),
        cmocka_unit_test_setup_teardown(test_local_handle_of_another_domain_is_no_local_handle, open_stranger,
                                        close_stranger),
        cmocka_unit_test_setup_teardown(test_registrations_of_another_domain_cannot_be_ended, open_stranger,
                                        close_stranger),
        pair_test(test_deregistered_memory_is_left_alone_by_transfers_under_way),
        cmocka_unit_test(test_writes_to_a_process_that_has_ended_fail),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
