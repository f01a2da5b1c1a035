/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libemunic-mpirun, preloaded into this test as into mpirun: whose descriptors are closed at exec, and what is left of
 * LD_PRELOAD.
 *
 *   test_close_at_exec LIBRARY [THOSE-OF-THE-USER]
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHERS "LD_PRELOAD_OF_THE_USER"

/* How many of the names are numbers, as mpirun counts them. */
static unsigned count_numbers(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned n = 0;

    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += isdigit((unsigned char)entry->d_name[0]) != 0;
    closedir(dir);
    return n;
}

static bool closes_at_exec(int fd)
{
    return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

/* What a child of ours says of itself; bits of its exit status. */
enum {
    SAW_NUMBERS = 1,
    CLOSES_OURS = 2,
    CLOSES_OUTPUT = 4,
};

static int ask_child(const char *folder, int fd)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit((count_numbers(folder) ? SAW_NUMBERS : 0) | (closes_at_exec(fd) ? CLOSES_OURS : 0) |
              (closes_at_exec(STDOUT_FILENO) || closes_at_exec(STDERR_FILENO) ? CLOSES_OUTPUT : 0));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_child_closes_all_but_its_output_and_finds_none(void **state)
{
    int fd = dup(STDERR_FILENO);

    (void)state;
    assert_true(fd > STDERR_FILENO);
    assert_int_equal(ask_child("/proc/self/fd", fd), CLOSES_OURS);
    close(fd);
}

static void test_other_folders_are_read_as_they_are(void **state)
{
    int fd = dup(STDERR_FILENO);

    (void)state;
    assert_int_equal(ask_child("/proc", fd), SAW_NUMBERS);
    close(fd);
}

static void test_process_itself_finds_its_own(void **state)
{
    int fd = dup(STDERR_FILENO);

    (void)state;
    assert_true(count_numbers("/proc/self/fd") > 4); /* and the folder */
    assert_false(closes_at_exec(fd));
    close(fd);
}

static void test_only_the_users_libraries_stay_in_the_environment(void **state)
{
    const char *users = getenv(OTHERS);
    const char *now = getenv("LD_PRELOAD");

    (void)state;
    if (users[0])
        assert_string_equal(now, users);
    else
        assert_null(now);
}

/* Anew with the library, behind the user's. */
static int start_with(char **argv, const char *others)
{
    char list[4096];

    snprintf(list, sizeof(list), "%s%s%s", others, others[0] ? ":" : "", argv[1]);
    setenv("LD_PRELOAD", list, 1);
    setenv(OTHERS, others, 1);
    execl("/proc/self/exe", argv[0], NULL);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child_closes_all_but_its_output_and_finds_none),
        cmocka_unit_test(test_other_folders_are_read_as_they_are),
        cmocka_unit_test(test_process_itself_finds_its_own),
        cmocka_unit_test(test_only_the_users_libraries_stay_in_the_environment),
    };

    if (argc >= 2)
        return start_with(argv, argc == 3 ? argv[2] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
