/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What /proc tells of mappings, asked for and read as text: both must say the same.
 */
#include "emunic/base/maps.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096ull

static uint64_t at; /* three pages between two without access */
static int fd;

static int make_mappings(void **state)
{
    uint8_t *mem = mmap(NULL, 5 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    fd = memfd_create("maps test", MFD_CLOEXEC);
    if (mem == MAP_FAILED || ftruncate(fd, 16 * PAGE) < 0)
        return -1;
    mmap(mem + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 7 * PAGE);
    mmap(mem + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 2 * PAGE);
    mmap(mem + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    at = (uint64_t)(uintptr_t)mem + PAGE;
    return 0;
}

static int drop_mappings(void **state)
{
    (void)state;
    munmap((void *)(uintptr_t)(at - PAGE), 5 * PAGE);
    return close(fd);
}

static void open_maps(struct emu_maps *maps, pid_t pid, bool asks)
{
    assert_int_equal(emu_maps_open(maps, pid), 0);
    maps->asks = asks;
}

static void expect_mappings(pid_t pid, bool asks)
{
    struct emu_maps maps;
    struct emu_piece p;
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    open_maps(&maps, pid, asks);
    assert_true(emu_maps_find(&maps, at + 100, &p));
    assert_true(p.first == at && p.end == at + PAGE && p.offset == 7 * PAGE);
    assert_true(p.dev == st.st_dev && p.ino == st.st_ino);
    assert_true(p.is_readable && p.is_writable && p.is_shared && !p.is_stack);
    assert_string_equal(maps.name, "/memfd:maps test (deleted)");
    assert_true(emu_maps_find(&maps, at + PAGE, &p));
    assert_true(p.first == at + PAGE && p.offset == 2 * PAGE && p.ino == st.st_ino);
    assert_true(p.is_readable && !p.is_writable && !p.is_shared);
    assert_true(emu_maps_find(&maps, at + 2 * PAGE, &p));
    assert_true(p.first == at + 2 * PAGE && p.ino == 0 && p.is_writable && !p.is_shared);
    emu_maps_close(&maps);
}

static void test_mappings_are_told_as_they_are(void **state)
{
    (void)state;
    expect_mappings(0, true);
    expect_mappings(0, false);
    expect_mappings(getpid(), true);
}

static void test_mappings_of_another_process_are_told(void **state)
{
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        pause();
        _exit(0);
    }
    munmap((void *)(uintptr_t)at, PAGE);
    mmap((void *)(uintptr_t)at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 7 * PAGE);
    expect_mappings(pid, true);
    expect_mappings(pid, false);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_place_without_mapping_gives_the_next(void **state)
{
    struct emu_maps maps;
    struct emu_piece p;

    (void)state;
    munmap((void *)(uintptr_t)at, PAGE);
    for (int asks = 0; asks < 2; asks++) {
        open_maps(&maps, 0, asks);
        assert_true(emu_maps_find(&maps, at, &p));
        assert_true(p.first == at + PAGE);
        emu_maps_close(&maps);
    }
}

static void test_there_is_an_end(void **state)
{
    struct emu_maps maps;
    struct emu_piece p;

    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        unsigned n = 0;

        open_maps(&maps, 0, asks);
        for (uint64_t from = 0; emu_maps_find(&maps, from, &p); from = p.end)
            assert_true(++n < 100000);
        assert_true(n > 5);
        assert_false(emu_maps_find(&maps, UINT64_MAX - 1, &p));
        emu_maps_close(&maps);
    }
}

static void test_stack_is_known(void **state)
{
    struct emu_maps maps;
    struct emu_piece p;
    int here;

    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        open_maps(&maps, 0, asks);
        assert_true(emu_maps_find(&maps, (uint64_t)(uintptr_t)&here, &p));
        assert_true(p.is_stack);
        emu_maps_close(&maps);
    }
}

static void test_lines_to_read_are_limited(void **state)
{
    struct emu_maps maps;
    struct emu_piece p;

    (void)state;
    open_maps(&maps, 0, false);
    maps.lines_left = 3;
    assert_true(emu_maps_find(&maps, 0, &p));
    assert_false(emu_maps_find(&maps, UINT64_MAX - 1, &p));
    assert_false(emu_maps_find(&maps, 0, &p));
    emu_maps_close(&maps);
}

static void test_process_that_is_not_there_has_no_mappings(void **state)
{
    struct emu_maps maps;

    (void)state;
    assert_int_equal(emu_maps_open(&maps, 0x3ffffffe), -ENOENT);
}

static void test_borrowed_descriptor_stays_open_and_where_it_was(void **state)
{
    struct emu_maps other;
    struct emu_maps maps;
    struct emu_piece p;

    (void)state;
    open_maps(&other, 0, true);
    if (emu_maps_look(&other, at, &p) != -ENOTTY) {
        assert_int_equal(emu_maps_open_by(&maps, &other), 0);
        assert_true(emu_maps_find(&maps, at, &p));
        assert_int_equal(maps.fd, other.fd);
        assert_true(p.first == at);
        emu_maps_close(&maps);
        assert_int_equal(emu_maps_look(&other, at + PAGE, &p), 0);
    }
    /* Where it has to read it opens its own. */
    assert_int_equal(emu_maps_open_by(&maps, &other), 0);
    maps.asks = false;
    assert_true(emu_maps_find(&maps, at, &p));
    assert_int_not_equal(maps.fd, other.fd);
    assert_true(p.first == at);
    emu_maps_close(&maps);
    assert_int_equal(lseek(other.fd, 0, SEEK_CUR), 0);
    emu_maps_close(&other);
}

static void test_without_another_they_are_opened(void **state)
{
    struct emu_maps maps;
    struct emu_piece p;

    (void)state;
    assert_int_equal(emu_maps_open_by(&maps, NULL), 0);
    assert_true(emu_maps_find(&maps, at, &p));
    assert_true(p.first == at);
    emu_maps_close(&maps);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, make_mappings, drop_mappings)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_mappings_are_told_as_they_are),
        UNIT(test_mappings_of_another_process_are_told),
        UNIT(test_place_without_mapping_gives_the_next),
        UNIT(test_there_is_an_end),
        UNIT(test_stack_is_known),
        UNIT(test_lines_to_read_are_limited),
        UNIT(test_process_that_is_not_there_has_no_mappings),
        UNIT(test_borrowed_descriptor_stays_open_and_where_it_was),
        UNIT(test_without_another_they_are_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
