/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From memory to the file behind it: what counts, which part of the file it is, and what is opened. Whether a file is
 * found that has neither path nor descriptor depends on privilege; everything else is tried without any, too.
 */
#include "emunic/client/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/fixture.h"

#define PAGE       4096u
#define FILE_PAGES 32u
#define RW         (PROT_READ | PROT_WRITE)

static int fd = -1;
static char shm_name[64];

static int make_file(void **state)
{
    (void)state;
    fd = memfd_create("mapping test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    snprintf(shm_name, sizeof(shm_name), "/emunic-mapping-%d", (int)getpid());
    return fd < 0 ? -1 : ftruncate(fd, FILE_PAGES * PAGE);
}

static int drop_file(void **state)
{
    (void)state;
    if (fd >= 0)
        close(fd);
    shm_unlink(shm_name);
    return 0;
}

static uint8_t *map_at(void *at, unsigned n_pages, int protection, int file, unsigned page)
{
    uint8_t *mem = mmap(at, n_pages * PAGE, protection, MAP_SHARED | (at ? MAP_FIXED : 0), file, page * PAGE);

    assert_ptr_not_equal(mem, MAP_FAILED);
    return mem;
}

static int find(const void *mem, uint64_t len_bytes, bool is_writable, struct emu_mapping *m)
{
    m->fd = -1;
    return emu_mapping_find((uint64_t)(uintptr_t)mem, len_bytes, is_writable, m);
}

/* It is that place of the file that is mapped there. */
static void expect_found(uint8_t *mem, uint64_t len_bytes, unsigned page)
{
    uint8_t byte = 0;
    struct emu_mapping m;

    assert_int_equal(find(mem, len_bytes, true, &m), 0);
    assert_int_equal(m.file_offset, page * PAGE);
    mem[0] = (uint8_t)(page + 1);
    assert_int_equal(pread(m.fd, &byte, 1, (off_t)(m.file_offset + (uintptr_t)mem % PAGE)), 1);
    assert_int_equal(byte, page + 1);
    assert_int_equal(fcntl(m.fd, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
    close(m.fd);
}

static void expect_nothing(const void *mem, uint64_t len_bytes, bool is_writable)
{
    struct emu_mapping m;

    assert_true(find(mem, len_bytes, is_writable, &m) < 0);
    assert_int_equal(m.fd, -1);
}

/* Whether a mapping can be opened by its address. */
static bool is_privileged(void)
{
    uint8_t *mem = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char name[80];
    int file;

    snprintf(name, sizeof(name), "/proc/self/map_files/%lx-%lx", (unsigned long)mem, (unsigned long)mem + PAGE);
    file = open(name, O_RDWR | O_CLOEXEC);
    munmap(mem, PAGE);
    if (file >= 0)
        close(file);
    return file >= 0;
}

static void test_file_is_found_by_the_programs_descriptor(void **state)
{
    uint8_t *mem = map_at(NULL, 8, RW, fd, 5);

    (void)state;
    expect_found(mem, PAGE, 5);
    expect_found(mem + PAGE, 7 * PAGE, 6);
    expect_found(mem + 2 * PAGE + 100, 10, 7);
    expect_found(mem + 4095, 2, 5);
    munmap(mem, 8 * PAGE);
}

static void test_descriptor_is_one_of_its_own(void **state)
{
    uint8_t *mem = map_at(NULL, 1, RW, fd, 0);
    struct emu_mapping m;

    (void)state;
    assert_int_equal(find(mem, 1, true, &m), 0);
    assert_int_equal(lseek(m.fd, 77, SEEK_SET), 77);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    close(m.fd);
    munmap(mem, PAGE);
}

static void test_reading_gets_a_descriptor_that_only_reads(void **state)
{
    uint8_t *writable = map_at(NULL, 1, RW, fd, 0);
    uint8_t *read_only = map_at(NULL, 1, PROT_READ, fd, 3);
    struct emu_mapping m;

    (void)state;
    assert_int_equal(find(writable, PAGE, false, &m), 0);
    assert_int_equal(fcntl(m.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    close(m.fd);
    assert_int_equal(find(read_only, PAGE, false, &m), 0);
    assert_int_equal(m.file_offset, 3 * PAGE);
    close(m.fd);
    expect_nothing(read_only, PAGE, true);
    munmap(writable, PAGE);
    munmap(read_only, PAGE);
}

static void test_mappings_that_continue_each_other_count_as_one(void **state)
{
    uint8_t *mem = map_at(NULL, 6, RW, fd, 10);

    (void)state;
    map_at(mem + 2 * PAGE, 2, RW, fd, 12);
    assert_int_equal(mprotect(mem + 4 * PAGE, PAGE, RW | PROT_EXEC), 0);
    expect_found(mem, 6 * PAGE, 10);
    map_at(mem + 2 * PAGE, 2, RW, fd, 20);
    expect_nothing(mem, 6 * PAGE, true);
    expect_found(mem + 2 * PAGE, 2 * PAGE, 20);
    munmap(mem, 6 * PAGE);
}

static void test_mappings_of_two_files_do_not_count(void **state)
{
    int other = memfd_create("other", MFD_CLOEXEC);
    uint8_t *mem = map_at(NULL, 2, RW, fd, 0);

    (void)state;
    assert_int_equal(ftruncate(other, FILE_PAGES * PAGE), 0);
    map_at(mem + PAGE, 1, RW, other, 1);
    expect_nothing(mem, 2 * PAGE, true);
    expect_found(mem, PAGE, 0);
    munmap(mem, 2 * PAGE);
    close(other);
}

static void test_holes_and_what_is_not_shared_do_not_count(void **state)
{
    uint8_t *mem = map_at(NULL, 4, RW, fd, 0);
    uint8_t *private = mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0);
    uint8_t *anonymous = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int on_stack = 0;

    (void)state;
    munmap(mem + PAGE, PAGE);
    expect_nothing(mem, 4 * PAGE, true);
    expect_nothing(mem + PAGE, 1, true);
    expect_nothing(private, PAGE, true);
    expect_nothing(private, PAGE, false);
    expect_nothing(anonymous, PAGE, true);
    expect_nothing(&on_stack, sizeof(on_stack), true);
    munmap(mem, 4 * PAGE);
    munmap(private, PAGE);
    munmap(anonymous, PAGE);
}

static void test_ranges_that_cannot_be_are_refused(void **state)
{
    uint8_t *mem = map_at(NULL, 1, RW, fd, 0);

    (void)state;
    expect_nothing(mem, 0, true);
    expect_nothing(mem, UINT64_MAX, true);
    expect_nothing(mem, UINT64_MAX - (uintptr_t)mem, true);
    expect_nothing(NULL, 1, true);
    expect_nothing((void *)UINTPTR_MAX, 1, true);
    munmap(mem, PAGE);
}

static void test_files_of_a_disk_of_emunic_and_of_system_v_do_not_count(void **state)
{
    char name[] = "/var/tmp/emunic-mapping-XXXXXX";
    int disk = mkstemp(name);
    int ours = memfd_create("emunic-space", MFD_CLOEXEC);
    int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    struct stat tmp, shm;
    uint8_t *mem;

    (void)state;
    assert_true(disk >= 0);
    unlink(name);
    assert_int_equal(ftruncate(disk, PAGE), 0);
    assert_int_equal(ftruncate(ours, PAGE), 0);
    if (fstat(disk, &tmp) == 0 && stat("/dev/shm", &shm) == 0 && tmp.st_dev != shm.st_dev) {
        mem = map_at(NULL, 1, RW, disk, 0);
        expect_nothing(mem, PAGE, true);
        expect_nothing(mem, PAGE, false);
        munmap(mem, PAGE);
    }
    mem = map_at(NULL, 1, RW, ours, 0);
    expect_nothing(mem, PAGE, true);
    munmap(mem, PAGE);
    close(disk);
    close(ours);
    mem = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    assert_ptr_not_equal(mem, (void *)-1);
    expect_nothing(mem, PAGE, true);
    shmdt(mem);
}

static int open_shm(void)
{
    int shm = shm_open(shm_name, O_CREAT | O_EXCL | O_RDWR, 0600);

    assert_true(shm >= 0);
    assert_int_equal(ftruncate(shm, FILE_PAGES * PAGE), 0);
    return shm;
}

static void test_file_is_found_by_its_path(void **state)
{
    int shm = open_shm();
    uint8_t *mem = map_at(NULL, 4, RW, shm, 9);

    (void)state;
    close(shm);
    expect_found(mem, 4 * PAGE, 9);
    munmap(mem, 4 * PAGE);
}

static void test_another_file_of_the_same_path_is_not_taken(void **state)
{
    int shm = open_shm();
    uint8_t *mem = map_at(NULL, 1, RW, shm, 0);

    (void)state;
    close(shm);
    shm_unlink(shm_name);
    close(open_shm());
    if (is_privileged())
        expect_found(mem, PAGE, 0);
    else
        expect_nothing(mem, PAGE, true);
    munmap(mem, PAGE);
}

static void test_memory_without_path_and_descriptor_is_for_the_privileged(void **state)
{
    uint8_t *anonymous = mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint8_t *mem = map_at(NULL, 1, RW, fd, 2);

    (void)state;
    close(fd);
    fd = -1;
    if (is_privileged()) {
        expect_found(anonymous, 2 * PAGE, 0);
        expect_found(mem, PAGE, 2);
    } else {
        expect_nothing(anonymous, 2 * PAGE, true);
        expect_nothing(mem, PAGE, true);
    }
    munmap(anonymous, 2 * PAGE);
    munmap(mem, PAGE);
}

/* ---- the same without privilege ---- */

static void drop_privilege(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } };

    FX_CHECK(syscall(SYS_capset, &header, none) == 0);
    FX_CHECK(!is_privileged());
}

static int run_all(bool is_again);

static void test_all_of_this_works_without_privilege(void **state)
{
    int status = -1;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);

        /* One TAP stream is enough; run by hand with an argument to see which one fails. */
        dup2(null, STDOUT_FILENO);
        drop_privilege();
        _exit(run_all(true));
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, make_file, drop_file)

static int run_all(bool is_again)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_file_is_found_by_the_programs_descriptor),
        UNIT(test_descriptor_is_one_of_its_own),
        UNIT(test_reading_gets_a_descriptor_that_only_reads),
        UNIT(test_mappings_that_continue_each_other_count_as_one),
        UNIT(test_mappings_of_two_files_do_not_count),
        UNIT(test_holes_and_what_is_not_shared_do_not_count),
        UNIT(test_ranges_that_cannot_be_are_refused),
        UNIT(test_files_of_a_disk_of_emunic_and_of_system_v_do_not_count),
        UNIT(test_file_is_found_by_its_path),
        UNIT(test_another_file_of_the_same_path_is_not_taken),
        UNIT(test_memory_without_path_and_descriptor_is_for_the_privileged),
        UNIT(test_all_of_this_works_without_privilege),
    };

    return _cmocka_run_group_tests("mapping", tests, sizeof(tests) / sizeof(tests[0]) - is_again, NULL, NULL);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        drop_privilege();
    return run_all(argc > 1);
}
