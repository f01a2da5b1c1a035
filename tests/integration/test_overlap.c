/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large transfers run while the program computes: GNI_PostRdma() above EMUNIC_DIRECT_LIMIT returns before they are
 * done, and emunic moves them without any help of the initiator. Shown by state, not by time: emunic is stopped while
 * the posts are made, so what is done then was done without it, and what is done afterwards was done by it alone.
 */
#include <sched.h>

#include "tests/conformance/pair.h"
#include "tests/common/proc.h"

#define LIMIT_BYTES (64u << 10)
#define LARGE_BYTES (8u << 20)
#define SLICE_BYTES (64u << 10) /* EMUNIC_SLICE */
#define N_LARGE     6u
#define N_SMALL     100u

static uint8_t *source; /* of a, N_LARGE * LARGE_BYTES */
static uint8_t *target; /* of b */
static gni_mem_handle_t source_hndl;
static gni_mem_handle_t target_hndl;

static bool is_routed(void)
{
    const char *path = getenv("FX_DATAPATH");

    return path && strcmp(path, "routed") == 0;
}

/* emunic stands still; the direct path stays open. */
static void hold_emunic(void)
{
    int status = 0;

    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    assert_int_equal(waitpid(fx.daemon, &status, WUNTRACED), fx.daemon);
    assert_true(WIFSTOPPED(status));
}

static void let_emunic_go(void)
{
    kill(fx.daemon, SIGCONT);
}

static int open_large(void **state)
{
    gni_post_descriptor_t d;

    (void)state;
    setenv("EMUNIC_DIRECT_LIMIT", "65536", 1);
    open_pair_in_mode(0);
    source = pages(N_LARGE * (size_t)LARGE_BYTES);
    target = pages(N_LARGE * (size_t)LARGE_BYTES);
    fill(source, N_LARGE * (size_t)LARGE_BYTES, 5);
    source_hndl = register_on(&a, source, N_LARGE * (size_t)LARGE_BYTES, GNI_MEM_READWRITE);
    target_hndl = register_on(&b, target, N_LARGE * (size_t)LARGE_BYTES, GNI_MEM_READWRITE);
    /* What a first meeting needs of emunic is behind us when it stands still. */
    d = word_post(GNI_POST_FMA_PUT, 0);
    assert_int_equal(run(&d), STATUS_OK);
    d.remote_addr = ADDR(target);
    d.remote_mem_hndl = target_hndl;
    assert_int_equal(run(&d), STATUS_OK);
    memset(target, 0, 8);
    return 0;
}

static int close_large(void **state)
{
    let_emunic_go();
    GNI_MemDeregister(a.nic, &source_hndl);
    GNI_MemDeregister(b.nic, &target_hndl);
    munmap(source, N_LARGE * (size_t)LARGE_BYTES);
    munmap(target, N_LARGE * (size_t)LARGE_BYTES);
    unsetenv("EMUNIC_DIRECT_LIMIT");
    return close_pair(state);
}

/* The i-th large transfer. */
static gni_post_descriptor_t large_post(gni_post_type_t type, unsigned i)
{
    return (gni_post_descriptor_t){
        .type = type,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = ADDR(source) + i * (uint64_t)LARGE_BYTES,
        .local_mem_hndl = source_hndl,
        .remote_addr = ADDR(target) + i * (uint64_t)LARGE_BYTES,
        .remote_mem_hndl = target_hndl,
        .length = LARGE_BYTES,
    };
}

static bool has_arrived(unsigned i)
{
    return memcmp(target + i * (size_t)LARGE_BYTES, source + i * (size_t)LARGE_BYTES, LARGE_BYTES) == 0;
}

static bool has_first_arrived(void *arg)
{
    (void)arg;
    return has_arrived(0);
}

/* Which of the posts does the next completion belong to? */
static unsigned next_of(const gni_post_descriptor_t *posts, unsigned n_posts)
{
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry = 0;

    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
    assert_true(done >= posts && done < posts + n_posts);
    return (unsigned)(done - posts);
}

static void test_large_put_returns_at_once_and_arrives_by_itself(void **state)
{
    gni_post_descriptor_t d = large_post(GNI_POST_RDMA_PUT, 0);
    uint64_t sum = 0;

    (void)state;
    hold_emunic();
    assert_int_equal(GNI_PostRdma(a.ep, &d), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_true(all_bytes_are(target, 0, LARGE_BYTES));
    for (size_t i = 0; i < LARGE_BYTES; i++) /* the program computes */
        sum += source[i];
    assert_true(sum > 0);
    let_emunic_go();
    /* Without a call of the library. */
    assert_true(eventually(has_first_arrived, NULL, PATIENCE_NS));
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

static void test_large_get_returns_at_once_and_is_whole_with_its_event(void **state)
{
    gni_post_descriptor_t d = large_post(GNI_POST_RDMA_GET, 0);

    (void)state;
    fill(target, LARGE_BYTES, 77);
    hold_emunic();
    assert_int_equal(GNI_PostRdma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_false(has_arrived(0));
    let_emunic_go();
    assert_int_equal(finish(&d), STATUS_OK);
    assert_true(has_arrived(0));
}

/* Eight bytes more, and emunic has to move it. */
static void test_transfer_at_the_limit_needs_no_emunic(void **state)
{
    gni_post_descriptor_t d = large_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    if (is_routed())
        return; /* there emunic does everything */
    d.length = LIMIT_BYTES;
    hold_emunic();
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(target, source, LIMIT_BYTES);
    d.length = LIMIT_BYTES + 8;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    let_emunic_go();
    assert_int_equal(finish(&d), STATUS_OK);
    assert_memory_equal(target, source, LIMIT_BYTES + 8);
}

/* Several under way, puts and gets; each event says that its data are whole. */
static void test_large_transfers_overlap_and_each_is_whole_with_its_event(void **state)
{
    gni_post_descriptor_t posts[N_LARGE];
    bool is_done[N_LARGE] = { false };

    (void)state;
    fill(target, N_LARGE * (size_t)LARGE_BYTES, 1234);
    hold_emunic();
    for (unsigned i = 0; i < N_LARGE; i++) {
        posts[i] = large_post(i % 2 ? GNI_POST_RDMA_GET : GNI_POST_RDMA_PUT, i);
        assert_int_equal(GNI_PostRdma(a.ep, &posts[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    let_emunic_go();
    for (unsigned i = 0; i < N_LARGE; i++) {
        unsigned which = next_of(posts, N_LARGE);

        assert_false(is_done[which]);
        is_done[which] = true;
        assert_true(has_arrived(which));
    }
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* emunic has taken the large ones and is moving them: small ones overtake, whoever moves those. */
static void test_small_puts_pass_large_ones_under_way(void **state)
{
    gni_post_descriptor_t posts[N_LARGE + N_SMALL];

    (void)state;
    hold_emunic();
    for (unsigned i = 0; i < N_LARGE; i++) {
        posts[i] = large_post(GNI_POST_RDMA_PUT, i);
        assert_int_equal(GNI_PostRdma(a.ep, &posts[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = N_LARGE; i < N_LARGE + N_SMALL; i++) {
        posts[i] = word_post(GNI_POST_FMA_PUT, 8 * i);
        a.mem[8 * i] = (uint8_t)i;
        assert_int_equal(GNI_PostFma(a.ep, &posts[i]), GNI_RC_SUCCESS);
    }
    let_emunic_go();
    for (unsigned i = N_LARGE; i < N_LARGE + N_SMALL; i++) {
        assert_int_equal(next_of(posts, N_LARGE + N_SMALL), i);
        assert_int_equal(b.mem[8 * i], (uint8_t)i);
    }
    for (unsigned i = 0; i < N_LARGE; i++)
        assert_true(next_of(posts, N_LARGE + N_SMALL) < N_LARGE);
    for (unsigned i = 0; i < N_LARGE; i++)
        assert_true(has_arrived(i));
}

/* Has emunic given the last one its second slice? Then all commands are out of the ring. */
static bool are_all_under_way(void *arg)
{
    const volatile uint64_t *word =
        (const volatile uint64_t *)(target + (N_LARGE - 1) * (size_t)LARGE_BYTES + 2 * 65536 - 8);

    (void)arg;
    return *word != 0;
}

/* Stops emunic in the middle of N_LARGE puts. False: they were over before. */
static bool stop_in_the_middle(gni_post_descriptor_t *posts)
{
    memset(target, 0, N_LARGE * (size_t)LARGE_BYTES);
    hold_emunic();
    for (unsigned i = 0; i < N_LARGE; i++) {
        posts[i] = large_post(GNI_POST_RDMA_PUT, i);
        assert_int_equal(GNI_PostRdma(a.ep, &posts[i]), GNI_RC_SUCCESS);
    }
    let_emunic_go();
    assert_true(eventually(are_all_under_way, NULL, PATIENCE_NS));
    hold_emunic();
    return !has_arrived(N_LARGE - 1);
}

/* emunic stops in the middle of the large ones: small ones go on by themselves, ordered ones wait. */
static void test_small_puts_are_done_while_large_ones_stand_still(void **state)
{
    gni_post_descriptor_t posts[N_LARGE + 2];
    unsigned tries = 0;

    (void)state;
    if (is_routed())
        return; /* there nothing goes without emunic */
    while (!stop_in_the_middle(posts)) {
        assert_true(++tries < 20);
        let_emunic_go();
        for (unsigned i = 0; i < N_LARGE; i++)
            next_of(posts, N_LARGE);
    }
    posts[N_LARGE] = word_post(GNI_POST_FMA_PUT, 64);
    posts[N_LARGE + 1] = word_post(GNI_POST_FMA_PUT, 72);
    posts[N_LARGE + 1].dlvr_mode = GNI_DLVMODE_IN_ORDER;
    memset(a.mem + 64, 0x6b, 16);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(GNI_PostFma(a.ep, &posts[N_LARGE + i]), GNI_RC_SUCCESS);
    while (next_of(posts, N_LARGE + 2) != N_LARGE) /* a large one may be over already */
        ;
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_true(all_bytes_are(b.mem + 64, 0x6b, 8));
    assert_true(all_bytes_are(b.mem + 72, 0, 8));
    let_emunic_go();
    while (next_of(posts, N_LARGE + 2) != N_LARGE + 1)
        ;
    for (unsigned i = 0; i < N_LARGE; i++)
        assert_true(has_arrived(i));
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* Slices of a transfer that have not arrived. */
static unsigned count_missing(unsigned i)
{
    unsigned n = 0;

    for (size_t at = i * (size_t)LARGE_BYTES; at < (i + 1) * (size_t)LARGE_BYTES; at += SLICE_BYTES)
        n += memcmp(target + at, source + at, SLICE_BYTES) != 0;
    return n;
}

/* The first that is not over; N_LARGE if all are. */
static unsigned first_under_way(void)
{
    unsigned i = 0;

    while (i < N_LARGE && count_missing(i) == 0)
        i++;
    return i;
}

/*
 * A program that polls moves slices of the oldest transfer itself. emunic is stopped and may hold one, so one may be
 * missing in the end. The completions stay emunic's.
 */
static void test_a_poll_moves_what_emunic_has_not_begun(void **state)
{
    gni_post_descriptor_t posts[N_LARGE];
    unsigned n_done = 0;
    unsigned tries = 0;
    unsigned oldest;
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    (void)state;
    if (is_routed())
        return; /* there emunic does everything */
    while (!stop_in_the_middle(posts) || (oldest = first_under_way()) == N_LARGE || count_missing(oldest) < 8) {
        assert_true(++tries < 20);
        let_emunic_go();
        for (unsigned i = 0; i < N_LARGE; i++)
            next_of(posts, N_LARGE);
    }
    for (unsigned polls = 0; count_missing(oldest) > 1; polls++) {
        assert_true(polls < 2 * LARGE_BYTES / SLICE_BYTES);
        if (GNI_CqGetEvent(a.src_cq, &entry) == GNI_RC_SUCCESS) {
            assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
            n_done++;
        }
    }
    assert_true(n_done <= oldest);
    let_emunic_go();
    for (; n_done < N_LARGE; n_done++)
        next_of(posts, N_LARGE);
    for (unsigned i = 0; i < N_LARGE; i++)
        assert_true(has_arrived(i));
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* ---- order ---- */

static void test_fence_behind_a_large_transfer_waits_for_it(void **state)
{
    gni_post_descriptor_t posts[3];

    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        memset(target, 0, 2 * (size_t)LARGE_BYTES);
        hold_emunic();
        posts[0] = large_post(GNI_POST_RDMA_PUT, 0);
        posts[1] = large_post(GNI_POST_RDMA_PUT, 1);
        posts[1].length = 4096;
        posts[1].rdma_mode = GNI_RDMAMODE_FENCE;
        posts[2] = large_post(GNI_POST_RDMA_PUT, 1); /* behind the fence */
        posts[2].local_addr += 4096;
        posts[2].remote_addr += 4096;
        posts[2].length = 4096;
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(GNI_PostRdma(a.ep, &posts[i]), GNI_RC_SUCCESS);
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
        assert_true(all_bytes_are(target + LARGE_BYTES, 0, 8192));
        if (round % 2) {
            /* Whoever sees the fenced data sees those before: the program looks at memory alone. */
            let_emunic_go();
            while (*(volatile uint64_t *)(target + LARGE_BYTES) == 0)
                sched_yield();
            assert_true(has_arrived(0));
        } else {
            let_emunic_go();
        }
        assert_int_equal(next_of(posts, 3), 0);
        assert_int_equal(next_of(posts, 3), 1);
        assert_int_equal(next_of(posts, 3), 2);
        assert_memory_equal(target + LARGE_BYTES, source + LARGE_BYTES, 8192);
    }
}

static void test_ordered_put_behind_a_large_transfer_waits_for_it(void **state)
{
    gni_post_descriptor_t large = large_post(GNI_POST_RDMA_PUT, 0);
    gni_post_descriptor_t small = word_post(GNI_POST_FMA_PUT, 128);

    (void)state;
    small.dlvr_mode = GNI_DLVMODE_IN_ORDER;
    memset(a.mem + 128, 0x5a, 8);
    hold_emunic();
    assert_int_equal(GNI_PostRdma(a.ep, &large), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(a.ep, &small), GNI_RC_SUCCESS);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_true(all_bytes_are(b.mem + 128, 0, 8));
    let_emunic_go();
    while (*(volatile uint64_t *)(b.mem + 128) == 0)
        sched_yield();
    assert_true(has_arrived(0));
    assert_int_equal(finish(&large), STATUS_OK);
    assert_int_equal(finish(&small), STATUS_OK);
}

#define large_test(name) cmocka_unit_test_setup_teardown(name, open_large, close_large)

int main(void)
{
    const struct CMUnitTest tests[] = {
        large_test(test_large_put_returns_at_once_and_arrives_by_itself),
        large_test(test_large_get_returns_at_once_and_is_whole_with_its_event),
        large_test(test_transfer_at_the_limit_needs_no_emunic),
        large_test(test_large_transfers_overlap_and_each_is_whole_with_its_event),
        large_test(test_small_puts_pass_large_ones_under_way),
        large_test(test_small_puts_are_done_while_large_ones_stand_still),
        large_test(test_a_poll_moves_what_emunic_has_not_begun),
        large_test(test_fence_behind_a_large_transfer_waits_for_it),
        large_test(test_ordered_put_behind_a_large_transfer_waits_for_it),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
