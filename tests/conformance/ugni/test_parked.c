/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is registered again: what the library keeps of a registration that is over (libugni/src/parked.c) must
 * not show. Programs unmap, move and share their memory in between. Which of these tests meets memory that was parked
 * depends on emunic, which may be busy; so each goes through it several times.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/conformance/pair.h"

#define PAGE  4096u
#define BYTES (4 * PAGE)
#define TIMES 8

/* Registered, reached and given back. */
static gni_mem_handle_t use_once(uint8_t *mem, size_t bytes)
{
    gni_mem_handle_t handle = register_on(&b, mem, bytes, GNI_MEM_READWRITE);

    assert_int_equal(put_text(mem, handle, "used    "), STATUS_OK);
    assert_memory_equal(mem, "used    ", 8);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    return handle;
}

static uint8_t *map_at(uint8_t *mem, size_t bytes, int fd)
{
    int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

    assert_ptr_equal(mmap(mem, bytes, PROT_READ | PROT_WRITE, flags, fd, 0), mem);
    return mem;
}

static void test_memory_mapped_anew_is_the_one_that_is_reached(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        use_once(mem, BYTES);
        munmap(mem, BYTES);
        map_at(mem, BYTES, -1);
        assert_true(all_bytes_are(mem, 0, BYTES));
    }
    munmap(mem, BYTES);
}

static void test_one_page_of_it_mapped_anew(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        gni_mem_handle_t handle;

        use_once(mem, BYTES);
        map_at(mem + 2 * PAGE, PAGE, -1);
        handle = register_on(&b, mem, BYTES, GNI_MEM_READWRITE);
        assert_int_equal(put_text(mem + 2 * PAGE, handle, "the page"), STATUS_OK);
        assert_memory_equal(mem + 2 * PAGE, "the page", 8);
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    }
    munmap(mem, BYTES);
}

static void test_memory_moved_away_is_not_reached_at_its_old_place(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        uint8_t *moved;

        use_once(mem, BYTES);
        memcpy(mem, "has left", 8);
        moved = mremap(mem, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, pages(BYTES));
        assert_ptr_not_equal(moved, MAP_FAILED);
        map_at(mem, BYTES, -1);
        use_once(mem, BYTES);
        assert_memory_equal(moved, "has left", 8);
        munmap(moved, BYTES);
    }
    munmap(mem, BYTES);
}

static void test_shared_memory_in_its_place_is_the_one_that_is_reached(void **state)
{
    uint8_t *mem = pages(BYTES);
    int fd = memfd_create("of the program", MFD_CLOEXEC);
    char text[8];

    (void)state;
    assert_int_equal(ftruncate(fd, BYTES), 0);
    for (int i = 0; i < TIMES; i++) {
        use_once(mem, BYTES);
        map_at(mem, BYTES, fd);
        use_once(mem, BYTES);
        assert_int_equal(pread(fd, text, 8, 0), 8);
        assert_memory_equal(text, "used    ", 8);
        map_at(mem, BYTES, -1);
    }
    close(fd);
    munmap(mem, BYTES);
}

/* answers: GNI_MemRegister */
static gni_return_t try_again(uint8_t *mem)
{
    gni_mem_handle_t handle;

    return GNI_MemRegister(b.nic, ADDR(mem), BYTES, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle);
}

static void test_memory_that_is_gone_cannot_be_registered_again(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        use_once(mem, BYTES);
        munmap(mem + PAGE, PAGE);
        assert_int_equal(try_again(mem), GNI_RC_INVALID_PARAM);
        map_at(mem + PAGE, PAGE, -1);
        use_once(mem, BYTES);
        assert_int_equal(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
        assert_int_equal(try_again(mem), GNI_RC_PERMISSION_ERROR);
        assert_int_equal(mprotect(mem + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    }
    munmap(mem, BYTES);
}

/* The child has memory of its own, and the parent goes on with its registrations. */
static void test_fork_in_between(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        int go[2];
        int status;
        char byte;
        pid_t child;

        use_once(mem, BYTES);
        memcpy(mem, "as forkd", 8);
        assert_int_equal(pipe(go), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(go[1]);
            if (read(go[0], &byte, 1) != 1 || memcmp(mem, "as forkd", 8) != 0)
                _exit(1);
            memcpy(mem, "of child", 8);
            _exit(0);
        }
        close(go[0]);
        use_once(mem, BYTES);
        assert_int_equal(write(go[1], "g", 1), 1);
        close(go[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_memory_equal(mem, "used    ", 8);
    }
    munmap(mem, BYTES);
}

/* As many as one number has generations, and more. */
static void test_no_old_handle_works_again(void **state)
{
    enum { N = 5000, EVERY = 500 };
    static gni_mem_handle_t old[N / EVERY];
    uint8_t *mem = pages(BYTES);
    gni_mem_handle_t handle;

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        handle = register_on(&b, mem, BYTES, GNI_MEM_READWRITE);
        if (i % EVERY == 0)
            old[i / EVERY] = handle;
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_INVALID_PARAM);
    }
    handle = register_on(&b, mem, BYTES, GNI_MEM_READWRITE);
    for (unsigned i = 0; i < COUNT_OF(old); i++)
        assert_int_equal(put_text(mem, old[i], "too late"), STATUS_BAD_HANDLE);
    assert_true(all_bytes_are(mem, 0, BYTES));
    assert_int_equal(put_text(mem, handle, "in time "), STATUS_OK);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, BYTES);
}

static void test_the_queue_of_the_registration_is_the_one_that_hears(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        gni_cq_handle_t cq;
        gni_cq_entry_t entry;

        assert_int_equal(GNI_CqCreate(b.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        d.remote_addr = ADDR(mem);
        assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), BYTES, i % 2 ? cq : NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                                         &d.remote_mem_hndl),
                         GNI_RC_SUCCESS);
        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(GNI_CqGetEvent(cq, &entry), i % 2 ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE);
        assert_int_equal(GNI_MemDeregister(b.nic, &d.remote_mem_hndl), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    }
    munmap(mem, BYTES);
}

/* The next queue has the same place as the one that went first. */
static void test_a_registration_that_outlives_its_queue_is_not_found_again(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        gni_cq_handle_t cq;
        gni_cq_entry_t entry;

        assert_int_equal(GNI_CqCreate(b.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        d.remote_addr = ADDR(mem);
        assert_int_equal(
            GNI_MemRegister(b.nic, ADDR(mem), BYTES, cq, GNI_MEM_READWRITE, (uint32_t)-1, &d.remote_mem_hndl),
            GNI_RC_SUCCESS);
        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(GNI_CqGetEvent(cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MemDeregister(b.nic, &d.remote_mem_hndl), GNI_RC_SUCCESS);
    }
    munmap(mem, BYTES);
}

static void test_read_only_stays_read_only(void **state)
{
    uint8_t *mem = pages(BYTES);

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        gni_mem_handle_t handle = register_on(&b, mem, BYTES, GNI_MEM_READ_ONLY);

        assert_int_equal(put_text(mem, handle, "not this"), STATUS_REMOTE_PERMISSION);
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
        use_once(mem, BYTES);
    }
    munmap(mem, BYTES);
}

/* The figures that a program sees are those of its registrations. */
static void test_what_is_parked_does_not_count(void **state)
{
    gni_dev_res_desc_t before;
    gni_dev_res_desc_t after;
    uint8_t *mem = pages(BYTES);

    (void)state;
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &before), GNI_RC_SUCCESS);
    for (int i = 0; i < TIMES; i++)
        use_once(mem, BYTES - (size_t)i);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &after), GNI_RC_SUCCESS);
    assert_int_equal(after.available, before.available);
    assert_int_equal(after.held, before.held);
    munmap(mem, BYTES);
}

/* More at one time than there are parks. */
static void test_many_at_one_time(void **state)
{
    enum { N = 100 };
    static gni_mem_handle_t handles[N];
    uint8_t *mem = pages(N * PAGE);

    (void)state;
    for (int round = 0; round < TIMES; round++) {
        for (unsigned i = 0; i < N; i++)
            handles[i] = register_on(&b, mem + i * PAGE, PAGE, GNI_MEM_READWRITE);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(put_text(mem + i * PAGE, handles[i], "one of N"), STATUS_OK);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(GNI_MemDeregister(b.nic, &handles[i]), GNI_RC_SUCCESS);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(put_text(mem + i * PAGE, handles[i], "too late"), STATUS_BAD_HANDLE);
    }
    munmap(mem, N * PAGE);
}

static bool sleeps(pid_t pid)
{
    char path[32];
    char text[512] = "";
    const char *state;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    state = strrchr(text, ')');
    return state && state[2] == 'S';
}

/* On the direct path, memory that was parked is registered again, reached and given back without emunic. */
static void test_emunic_is_not_needed(void **state)
{
    const char *datapath = getenv("FX_DATAPATH");
    uint8_t *mem = pages(BYTES);
    gni_mem_handle_t handle;
    int status;

    (void)state;
    fx_needs_emunic();
    if ((datapath && strcmp(datapath, "routed") == 0) || getenv("FX_HOSTS"))
        return;
    /* The peer's segment is met, then one registration is parked. */
    for (int i = 0; i < 100; i++) {
        use_once(mem, BYTES);
        while (!sleeps(fx.daemon))
            ;
    }
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    assert_int_equal(waitpid(fx.daemon, &status, WUNTRACED), fx.daemon);
    alarm(20); /* a request would wait for ever */
    handle = use_once(mem, BYTES);
    assert_int_equal(put_text(mem, handle, "too late"), STATUS_BAD_HANDLE);
    use_once(mem, BYTES);
    alarm(0);
    kill(fx.daemon, SIGCONT);
    munmap(mem, BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_memory_mapped_anew_is_the_one_that_is_reached),
        pair_test(test_one_page_of_it_mapped_anew),
        pair_test(test_memory_moved_away_is_not_reached_at_its_old_place),
        pair_test(test_shared_memory_in_its_place_is_the_one_that_is_reached),
        pair_test(test_memory_that_is_gone_cannot_be_registered_again),
        pair_test(test_fork_in_between),
        pair_test(test_no_old_handle_works_again),
        pair_test(test_the_queue_of_the_registration_is_the_one_that_hears),
        pair_test(test_a_registration_that_outlives_its_queue_is_not_found_again),
        pair_test(test_read_only_stays_read_only),
        pair_test(test_what_is_parked_does_not_count),
        pair_test(test_many_at_one_time),
        pair_test(test_emunic_is_not_needed),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
