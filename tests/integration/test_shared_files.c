/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of shared memory: what happens when one gets shorter under everybody's hands, and that none stays behind.
 */
#include <sys/stat.h>

#include "tests/common/proc.h"
#include "tests/integration/shared.h"

/* ---- files that get shorter ---- */

#define STORM_BYTES  (6u * MIB)
#define STORM_EVENTS 40u
#define STORM_KINDS  5u /* of transfers */

static int storm_fd;

/* Until rank 0 has made so many more transfers; 0: in the middle of one. */
static void let_move(struct target *t, unsigned n, uint64_t end_ns)
{
    uint64_t begin = atomic_load(&t->n_moved);

    do {
        sched_yield();
    } while (atomic_load(&t->n_moved) - begin < n && !atomic_load(&t->is_done) && emu_clock_ns() < end_ns);
}

static void own_storm(struct fx_rank *rank)
{
    struct target *t = target_of(rank);
    uint64_t end_ns = emu_clock_ns() + 4 * PATIENCE_NS;
    struct gx_side side;
    uint8_t *mem;

    storm_fd = memfd_create("storm", MFD_CLOEXEC);
    mem = map_file(storm_fd, STORM_BYTES);
    open_owner(rank, &side);
    t->handle = enter(&side, mem, STORM_BYTES, GNI_MEM_READWRITE);
    announce(rank, &side, mem, STORM_BYTES);
    pthread_barrier_wait(rank->barrier);
    /*
     * Every other time all kinds of transfers meet the short file, and then the long one. Else a kind may never do so
     * where the two processes take turns exactly, as on one processor.
     */
    for (unsigned n = 0; !atomic_load(&t->is_done) && emu_clock_ns() < end_ns; n++) {
        unsigned whole = n % 2 ? STORM_KINDS + 1 : 0;

        FX_CHECK(ftruncate(storm_fd, n % 3 * PAGE) == 0);
        let_move(t, whole + n % 4, end_ns);
        FX_CHECK(ftruncate(storm_fd, STORM_BYTES) == 0);
        let_move(t, whole + n % 8, end_ns);
    }
    FX_CHECK(atomic_load(&t->is_done));
    FX_CHECK(ftruncate(storm_fd, STORM_BYTES) == 0);
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
}

/* Until each kind of transfer has succeeded and failed often enough. */
static void brave_storm(struct fx_rank *rank, const struct gx_side *side)
{
    static const gni_post_type_t types[STORM_KINDS] = { GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_AMO,
                                                        GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET };
    static const uint64_t lengths[STORM_KINDS] = { 8, 5000, 8, 5 * MIB, 300000 };
    unsigned good[COUNT_OF(types)] = { 0 };
    unsigned bad[COUNT_OF(types)] = { 0 };
    uint8_t *mem = pages(STORM_BYTES);
    gni_mem_handle_t handle = enter(side, mem, STORM_BYTES, GNI_MEM_READWRITE);
    uint64_t end_ns = emu_clock_ns() + 3 * PATIENCE_NS;
    bool is_enough = false;

    for (uint64_t n = 0; !is_enough && emu_clock_ns() < end_ns; n++) {
        size_t k = n % COUNT_OF(types);
        enum status status = move(rank, side, types[k], (n * 72 + 3 * PAGE) % (STORM_BYTES - lengths[k]) & ~7ull, mem,
                                  handle, lengths[k]);

        /* The kernel does not tell whose page was missing, and when the engine looks it may be there again. */
        FX_CHECK(status == STATUS_OK || status == STATUS_REMOTE_RANGE || (is_cma && status == STATUS_LOCAL_ACCESS));
        atomic_fetch_add(&target_of(rank)->n_moved, 1);
        good[k] += status == STATUS_OK;
        bad[k] += status != STATUS_OK;
        is_enough = true;
        for (size_t i = 0; i < COUNT_OF(types); i++)
            is_enough &= good[i] >= (i < 3 ? STORM_EVENTS : 3) && bad[i] >= (i < 3 ? STORM_EVENTS : 3);
    }
    if (!is_enough) {
        for (size_t i = 0; i < COUNT_OF(types); i++)
            fprintf(stderr, "type %zu: %u good, %u bad\n", i, good[i], bad[i]);
    }
    FX_CHECK(is_enough);
    FX_CHECK(GNI_MemDeregister(side->nic, &handle) == GNI_RC_SUCCESS);
}

static int storm_body(struct fx_rank *rank)
{
    struct gx_side side;

    if (rank->rank == 1) {
        own_storm(rank);
        return 0;
    }
    open_reacher(rank, &side);
    brave_storm(rank, &side);
    atomic_store(&target_of(rank)->is_done, 1);
    pthread_barrier_wait(rank->barrier);
    /* The file is whole again: so is everything else. */
    memcpy(side.mem, "the calm", 8);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_PUT, STORM_BYTES - 8, side.mem, side.mem_hndl, 8) == STATUS_OK);
    memset(side.mem, 0, 8);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_GET, STORM_BYTES - 8, side.mem, side.mem_hndl, 8) == STATUS_OK);
    FX_CHECK(memcmp(side.mem, "the calm", 8) == 0);
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void test_file_that_gets_shorter_gives_error_events_and_harms_nobody(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, storm_body, NULL), 0);
}

static void test_rest_of_a_short_file_is_reached(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_GET,
                                             GNI_POST_AMO };
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, 8 * PAGE, GNI_MEM_READWRITE);

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    for (unsigned n = 0; n < 20; n++) {
        gni_post_descriptor_t d = word_post(types[n % COUNT_OF(types)], 0);

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem) + 2 * PAGE;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
        d.remote_addr = ADDR(mem) + n * 8;
        assert_int_equal(run(&d), STATUS_OK);
        /* Half of it is there: not good enough. */
        d.type = types[n % 4];
        d.remote_addr = ADDR(mem) + PAGE - 8;
        d.length = 16;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    }
    /* Failed writes are nowhere to be seen when the file is long again. */
    assert_int_equal(ftruncate(fd, 8 * PAGE), 0);
    assert_true(all_bytes_are(mem + PAGE, 0, 7 * PAGE));
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

static void test_remote_events_tell_of_data_that_are_there_and_of_no_others(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_AMO };
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_mem_handle_t handle;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 8 * PAGE, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    for (unsigned n = 0; n < 40; n++) {
        gni_post_descriptor_t d = word_post(types[n % COUNT_OF(types)], 0);
        bool is_short = n / 4 % 2;

        assert_int_equal(ftruncate(fd, is_short ? PAGE : 8 * PAGE), 0);
        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        d.amo_cmd = GNI_FMA_ATOMIC_ADD;
        d.first_operand = 1;
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem) + 3 * PAGE;
        assert_int_equal(run(&d), is_short ? STATUS_REMOTE_RANGE : STATUS_OK);
        assert_int_equal(poll_once(b.dst_cq), is_short ? GNI_RC_NOT_DONE : GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_NOT_DONE);
    }
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

/* An atomic that is tried twice counts once. */
static void test_atomics_beside_missing_pages_count_once(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 2 * PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, 2 * PAGE, GNI_MEM_READWRITE);
    uint64_t sum;

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    for (unsigned n = 0; n < 100; n++) {
        gni_post_descriptor_t d = word_post(GNI_POST_AMO, 0);

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 1;
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem) + (n % 2 ? PAGE : 0) + 8;
        assert_int_equal(run(&d), n % 2 ? STATUS_REMOTE_RANGE : STATUS_OK);
    }
    memcpy(&sum, mem + 8, 8);
    assert_int_equal(sum, 50);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 2 * PAGE);
    close(fd);
}

/* A message is a put with a flag, which must not be seen if the data before it got lost. */
static void test_flag_is_not_set_when_data_are_lost(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, 8 * PAGE, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT_W_SYNCFLAG, 0);

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    d.remote_mem_hndl = handle;
    d.remote_addr = ADDR(mem) + 4 * PAGE;
    d.sync_flag_addr = ADDR(mem) + 64;
    d.sync_flag_value = 0x1234;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_true(all_bytes_are(mem, 0, PAGE));
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

/* ---- what stays behind ---- */

static bool has_no_fds_more(void *arg)
{
    return fx_count_fds(&fx) == *(const int *)arg;
}

static void test_file_is_let_go_when_its_last_registration_ends(void **state)
{
    int before = fx_count_fds(&fx);
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 32 * PAGE);
    gni_mem_handle_t first = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);
    gni_mem_handle_t second = register_on(&b, mem + 5 * PAGE, PAGE, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    unsigned writable;
    struct stat st;

    (void)state;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(fx_count_fds(&fx), before + !is_cma);
    d.remote_mem_hndl = second;
    d.remote_addr = ADDR(mem) + 5 * PAGE;
    assert_int_equal(run(&d), STATUS_OK);
    fx_set_routed(&fx, true); /* emunic maps it, too */
    assert_int_equal(run(&d), STATUS_OK);
    fx_set_routed(&fx, false);
    assert_int_equal(count_mappings(fx.daemon, st.st_dev, st.st_ino, &writable), !is_cma);
    assert_int_equal(GNI_MemDeregister(b.nic, &first), GNI_RC_SUCCESS);
    assert_int_equal(fx_count_fds(&fx), before + !is_cma);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_MemDeregister(b.nic, &second), GNI_RC_SUCCESS);
    assert_int_equal(fx_count_fds(&fx), before);
    assert_int_equal(count_mappings(fx.daemon, st.st_dev, st.st_ino, &writable), 0);
    munmap(mem, 32 * PAGE);
    /* Peers notice at their next post. */
    assert_int_equal(run(&d), STATUS_BAD_HANDLE);
    assert_int_equal(count_mappings(0, st.st_dev, st.st_ino, &writable), 0);
    close(fd);
}

static int own_and_die(struct fx_rank *rank)
{
    uint8_t *mem = make_memfd(16 * PAGE);
    struct gx_side side;

    gx_open(&side, rank->fx, rank->fx->nids[1], OWNER + 1, 0);
    for (unsigned i = 0; i < 10; i++)
        enter(&side, mem + i * PAGE, PAGE, i % 2 ? GNI_MEM_READWRITE : GNI_MEM_READ_ONLY);
    kill(getpid(), SIGKILL);
    return 0;
}

static void test_files_of_a_killed_process_are_let_go(void **state)
{
    int before = fx_count_fds(&fx);

    (void)state;
    assert_int_equal(fx_run(&fx, 1, own_and_die, NULL), 1);
    assert_true(eventually(has_no_fds_more, &before, PATIENCE_NS));
}

static void test_number_of_files_is_limited_and_the_rest_is_reached_too(void **state)
{
    static gni_mem_handle_t handles[100];
    static uint8_t *mems[100];
    static int fds[100];
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    int before = fx_count_fds(&fx);

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        fds[i] = memfd_create("shared test", MFD_CLOEXEC);
        mems[i] = map_file(fds[i], PAGE);
        handles[i] = register_on(&b, mems[i], PAGE, GNI_MEM_READWRITE);
    }
    assert_in_range(count_by(&fx, OWNER, "shared_file"), is_cma ? 0 : 16, is_cma ? 0 : 99);
    assert_in_range(count_by(&fx, OWNER, "cma"), 1, 101);
    for (unsigned i = 0; i < 100; i++) {
        d.remote_mem_hndl = handles[i];
        d.remote_addr = ADDR(mems[i]) + 8;
        memcpy(a.mem, "everyone", 8);
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(mems[i] + 8, "everyone", 8);
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(GNI_MemDeregister(b.nic, &handles[i]), GNI_RC_SUCCESS);
        munmap(mems[i], PAGE);
        close(fds[i]);
    }
    assert_int_equal(fx_count_fds(&fx), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_that_gets_shorter_gives_error_events_and_harms_nobody),
        pair_test(test_rest_of_a_short_file_is_reached),
        pair_test(test_remote_events_tell_of_data_that_are_there_and_of_no_others),
        pair_test(test_atomics_beside_missing_pages_count_once),
        pair_test(test_flag_is_not_set_when_data_are_lost),
        pair_test(test_file_is_let_go_when_its_last_registration_ends),
        cmocka_unit_test(test_files_of_a_killed_process_are_let_go),
        pair_test(test_number_of_files_is_limited_and_the_rest_is_reached_too),
    };

    return cmocka_run_group_tests(tests, start_all, stop_emunic);
}
