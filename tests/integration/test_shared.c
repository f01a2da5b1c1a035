/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that programs have mapped shared themselves: each kind of it between two processes, how it is reached, and
 * what the program does with it. test_shared_files.c has its files.
 *
 * With EMUNIC_MEMORY=cma nothing is passed on, and everything else must be the same.
 */
#include <sys/stat.h>

#include "tests/integration/shared.h"

/* ---- kinds of shared memory ---- */

static uint8_t *make_closed_memfd(size_t bytes)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, bytes);

    close(fd);
    return mem;
}

static uint8_t *make_shm(size_t bytes, bool is_closed)
{
    char name[64];
    uint8_t *mem;
    int fd;

    snprintf(name, sizeof(name), "/emunic-shared-%d", (int)getpid());
    fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    mem = map_file(fd, bytes);
    shm_unlink(name);
    if (is_closed)
        close(fd);
    return mem;
}

static uint8_t *make_unlinked_shm(size_t bytes)
{
    return make_shm(bytes, false);
}

static uint8_t *make_lost_shm(size_t bytes)
{
    return make_shm(bytes, true);
}

static uint8_t *make_huge(size_t bytes)
{
    return map_file(memfd_create("shared test", MFD_CLOEXEC | MFD_HUGETLB), bytes);
}

struct kind {
    const char *name;
    uint8_t *(*make)(size_t bytes); /* NULL: not to be had here */
    bool needs_privilege;           /* to be passed on */
};

static const struct kind memfd = { "memfd", make_memfd, false };
static const struct kind closed_memfd = { "memfd without a descriptor", make_closed_memfd, true };
static const struct kind unlinked_shm = { "shm without a name", make_unlinked_shm, false };
static const struct kind lost_shm = { "shm without name and descriptor", make_lost_shm, true };
static const struct kind anonymous = { "anonymous", make_anonymous, true };
static const struct kind huge = { "huge pages", make_huge, false };

static const char *method_of(const struct kind *kind)
{
    return is_cma || (kind->needs_privilege && !is_privileged) ? "cma" : "shared_file";
}

#define KIND_BYTES (8u * MIB)

static void own_for_transfers(struct fx_rank *rank, const struct kind *kind)
{
    struct target *t = target_of(rank);
    struct gx_side side;
    uint8_t *mem = kind->make(KIND_BYTES);
    uint64_t word;

    open_owner(rank, &side);
    atomic_store(&t->is_missing, mem == NULL);
    if (mem) {
        /* Somewhere in the file, and not at the beginning of a page. */
        t->handle = enter(&side, mem + 7 * PAGE + 100, KIND_BYTES - 20 * PAGE, GNI_MEM_READWRITE);
        announce(rank, &side, mem + 7 * PAGE + 100, KIND_BYTES - 20 * PAGE);
        FX_CHECK(count_by(rank->fx, OWNER, method_of(kind)) >= 1);
        FX_CHECK(count_by(rank->fx, OWNER, "shared_file") == (strcmp(method_of(kind), "shared_file") == 0));
    }
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier); /* rank 0 is done */
    if (mem) {
        memcpy(&word, mem + 9 * PAGE, 8);
        FX_CHECK(word == 1000 + 5);
        FX_CHECK(GNI_MemDeregister(side.nic, &t->handle) == GNI_RC_SUCCESS);
        FX_CHECK(count_by(rank->fx, OWNER, "shared_file") == 0);
    }
    gx_close(&side);
}

static void transfer_all(struct fx_rank *rank, const struct gx_side *side)
{
    static const uint64_t lengths[] = { 1, 8, 9, 64, 1000, 4096, 70000, MIB, 6 * MIB };
    uint8_t *out = pages(8 * MIB);
    uint8_t *in = pages(8 * MIB);
    gni_mem_handle_t out_handle = enter(side, out, 8 * MIB, GNI_MEM_READWRITE);
    gni_mem_handle_t in_handle = enter(side, in, 8 * MIB, GNI_MEM_READWRITE);
    const uint64_t to_word = 9 * PAGE - (7 * PAGE + 100);
    uint64_t *words = (uint64_t *)(void *)in;

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        bool is_block = lengths[i] >= 70000;
        uint64_t offset = i * 12345;

        fill(out, lengths[i], (uint32_t)i);
        FX_CHECK(move(rank, side, is_block ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, offset, out, out_handle,
                      lengths[i]) == STATUS_OK);
        memset(in, 0, lengths[i] + 4);
        /* Gets are aligned to four bytes. */
        FX_CHECK(move(rank, side, is_block ? GNI_POST_RDMA_GET : GNI_POST_FMA_GET, offset & ~3ull, in, in_handle,
                      (lengths[i] + offset % 4 + 3) & ~3ull) == STATUS_OK);
        FX_CHECK(memcmp(in + offset % 4, out, lengths[i]) == 0);
    }
    words[0] = 1000;
    FX_CHECK(move(rank, side, GNI_POST_FMA_PUT, to_word, words, in_handle, 8) == STATUS_OK);
    for (uint64_t n = 0; n < 5; n++) {
        FX_CHECK(move(rank, side, GNI_POST_AMO, to_word, words, in_handle, 8) == STATUS_OK);
        FX_CHECK(words[0] == 1000 + n);
    }
    FX_CHECK(GNI_MemDeregister(side->nic, &out_handle) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_MemDeregister(side->nic, &in_handle) == GNI_RC_SUCCESS);
}

static int transfer_body(struct fx_rank *rank)
{
    const struct kind *kind = rank->arg;
    const struct target *t = target_of(rank);
    struct gx_side side;
    unsigned writable;

    if (rank->rank == 1) {
        own_for_transfers(rank, kind);
        return 0;
    }
    open_reacher(rank, &side);
    if (t->is_missing) {
        printf("# SKIP %s: not to be had here\n", kind->name);
        fflush(stdout);
    } else {
        transfer_all(rank, &side);
        /* Without system calls: the file is mapped here. */
        FX_CHECK((count_mappings(0, (dev_t)t->dev, (ino_t)t->ino, &writable) > 0) ==
                 (is_direct && strcmp(method_of(kind), "shared_file") == 0));
    }
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void expect_transfers(const struct kind *kind)
{
    assert_int_equal(fx_run(&fx, 2, transfer_body, (void *)(uintptr_t)kind), 0);
}

static void test_memfd_is_reached(void **state)
{
    (void)state;
    expect_transfers(&memfd);
}

static void test_memfd_without_descriptor_is_reached(void **state)
{
    (void)state;
    expect_transfers(&closed_memfd);
}

static void test_unlinked_shared_memory_is_reached(void **state)
{
    (void)state;
    expect_transfers(&unlinked_shm);
}

static void test_shared_memory_without_name_and_descriptor_is_reached(void **state)
{
    (void)state;
    expect_transfers(&lost_shm);
}

static void test_anonymous_shared_memory_is_reached(void **state)
{
    (void)state;
    expect_transfers(&anonymous);
}

static void test_huge_pages_are_reached(void **state)
{
    (void)state;
    expect_transfers(&huge);
}

/* ---- read-only registrations ---- */

static void own_read_only(struct fx_rank *rank, bool is_shared)
{
    struct target *t = target_of(rank);
    uint8_t *mem = is_shared ? make_memfd(16 * PAGE) : pages(16 * PAGE);
    struct gx_side side;

    open_owner(rank, &side);
    fill(mem, 16 * PAGE, 3);
    t->handle = enter(&side, mem, 16 * PAGE, GNI_MEM_READ_ONLY);
    t->other = enter(&side, mem + 4 * PAGE, PAGE, GNI_MEM_READWRITE);
    announce(rank, &side, mem, 16 * PAGE);
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(mem[4 * PAGE] == 0x5a);
    mem[4 * PAGE] = mem[4 * PAGE + 1];
    gx_close(&side);
}

static int read_only_body(struct fx_rank *rank)
{
    struct target *t = target_of(rank);
    bool is_shared = rank->arg != NULL;
    uint8_t expected[PAGE];
    struct gx_side side;
    unsigned writable;

    if (rank->rank == 1) {
        own_read_only(rank, is_shared);
        return 0;
    }
    open_reacher(rank, &side);
    fill(expected, PAGE, 3);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_PUT, 0, side.mem, side.mem_hndl, 64) == STATUS_REMOTE_PERMISSION);
    FX_CHECK(move(rank, &side, GNI_POST_RDMA_PUT, PAGE, side.mem, side.mem_hndl, 64) == STATUS_REMOTE_PERMISSION);
    FX_CHECK(move(rank, &side, GNI_POST_AMO, 0, side.mem, side.mem_hndl, 8) == STATUS_REMOTE_PERMISSION);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_GET, 0, side.mem, side.mem_hndl, PAGE) == STATUS_OK);
    FX_CHECK(memcmp(side.mem, expected, PAGE) == 0);
    FX_CHECK((count_mappings(0, (dev_t)t->dev, (ino_t)t->ino, &writable) > 0) == (is_direct && !is_cma));
    FX_CHECK(writable == 0);
    /* The other registration of it can be written, and this one still not. */
    memset(side.mem, 0x5a, 8);
    t->handle = t->other;
    FX_CHECK(move(rank, &side, GNI_POST_FMA_PUT, 4 * PAGE, side.mem, side.mem_hndl, 1) == STATUS_OK);
    count_mappings(0, (dev_t)t->dev, (ino_t)t->ino, &writable);
    FX_CHECK((writable > 0) == (is_direct && !is_cma));
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void test_read_only_shared_memory_is_mapped_for_reading(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, read_only_body, (void *)1), 0);
}

static void test_read_only_private_memory_is_mapped_for_reading(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, read_only_body, NULL), 0);
}

/* A mapping that the program itself cannot write, from a descriptor that cannot either. */
static void test_mapping_that_is_only_readable_is_reached(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *writable = map_file(fd, PAGE);
    uint8_t *mem = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    gni_mem_handle_t handle = register_on(&b, mem, PAGE, GNI_MEM_READ_ONLY);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_GET, 0);

    (void)state;
    assert_int_equal(count_by(&fx, OWNER, "shared_file"), !is_cma);
    memcpy(writable, "readable", 8);
    d.remote_addr = ADDR(mem);
    d.remote_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(a.mem, "readable", 8);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, PAGE);
    munmap(writable, PAGE);
    close(fd);
}

/* ---- what the program does with its memory ---- */

static void test_mappings_that_continue_each_other_are_one(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 6 * PAGE, GNI_CQMODE_GLOBAL_EVENT);
    gni_mem_handle_t handle;

    (void)state;
    d.type = GNI_POST_RDMA_PUT;
    assert_int_equal(mprotect(mem + 3 * PAGE, PAGE, RW | PROT_EXEC), 0);
    handle = register_on(&b, mem + PAGE, 6 * PAGE, GNI_MEM_READWRITE);
    assert_int_equal(count_by(&fx, OWNER, "shared_file"), !is_cma);
    fill(a.mem, 6 * PAGE, 9);
    d.remote_mem_hndl = handle;
    d.remote_addr = ADDR(mem) + PAGE;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + PAGE, a.mem, 6 * PAGE);
    GNI_MemDeregister(b.nic, &handle);

    /* Not in the order of the file: the kernel has to help. */
    assert_ptr_equal(mmap(mem + 3 * PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0), mem + 3 * PAGE);
    handle = register_on(&b, mem + PAGE, 6 * PAGE, GNI_MEM_READWRITE);
    assert_int_equal(count_by(&fx, OWNER, "shared_file"), 0);
    d.remote_mem_hndl = handle;
    fill(a.mem, 6 * PAGE, 10);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + PAGE, a.mem, 6 * PAGE);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

static void test_sealed_files_are_reached(void **state)
{
    static const int seals[] = { F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_FUTURE_WRITE };

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(seals); i++) {
        int fd = memfd_create("shared test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        uint8_t *mem = map_file(fd, PAGE);
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        gni_mem_handle_t handle;

        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
        handle = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);
        assert_int_equal(count_by(&fx, OWNER, "shared_file"), !is_cma && i == 0);
        memcpy(a.mem, "unsealed", 8);
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem);
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(mem, "unsealed", 8);
        GNI_MemDeregister(b.nic, &handle);
        munmap(mem, PAGE);
        close(fd);
    }
}

static void test_child_shares_the_memory_as_ever(void **state)
{
    uint8_t *mem = make_memfd(PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)mem;
    uint64_t value = 77;
    int status = -1;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

        while (atomic_load(word) != 77 && emu_clock_ns() < end_ns)
            sched_yield();
        atomic_store(&word[1], 78);
        _exit(atomic_load(word) == 77 ? 0 : 1);
    }
    d.remote_mem_hndl = handle;
    d.remote_addr = ADDR(mem);
    memcpy(a.mem, &value, 8);
    assert_int_equal(run(&d), STATUS_OK);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&word[1]), 78);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, PAGE);
}

/* Atomics of two owners of one file, each through his own registration, count together. */
static void test_two_registrations_of_one_file_are_the_same_memory(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mine = map_file(fd, PAGE);
    uint8_t *again = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    gni_mem_handle_t handles[2] = { register_on(&b, mine, PAGE, GNI_MEM_READWRITE),
                                    register_on(&b, again, PAGE, GNI_MEM_READWRITE) };
    uint64_t sum;

    (void)state;
    for (unsigned n = 0; n < 10; n++) {
        gni_post_descriptor_t d = word_post(GNI_POST_AMO, 0);

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 3;
        d.remote_mem_hndl = handles[n % 2];
        d.remote_addr = ADDR(n % 2 ? again : mine) + 16;
        assert_int_equal(run(&d), STATUS_OK);
    }
    memcpy(&sum, mine + 16, 8);
    assert_int_equal(sum, 30);
    for (unsigned i = 0; i < 2; i++)
        GNI_MemDeregister(b.nic, &handles[i]);
    munmap(mine, PAGE);
    munmap(again, PAGE);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memfd_is_reached),
        cmocka_unit_test(test_memfd_without_descriptor_is_reached),
        cmocka_unit_test(test_unlinked_shared_memory_is_reached),
        cmocka_unit_test(test_shared_memory_without_name_and_descriptor_is_reached),
        cmocka_unit_test(test_anonymous_shared_memory_is_reached),
        cmocka_unit_test(test_huge_pages_are_reached),
        cmocka_unit_test(test_read_only_shared_memory_is_mapped_for_reading),
        cmocka_unit_test(test_read_only_private_memory_is_mapped_for_reading),
        pair_test(test_mapping_that_is_only_readable_is_reached),
        pair_test(test_mappings_that_continue_each_other_are_one),
        pair_test(test_sealed_files_are_reached),
        pair_test(test_child_shares_the_memory_as_ever),
        pair_test(test_two_registrations_of_one_file_are_the_same_memory),
    };

    return cmocka_run_group_tests(tests, start_all, stop_emunic);
}
