/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpirun says itself: states of ranks are read, all else is for people, however it is cut into pieces.
 */
#include "emunic/cli/mpirun_output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define STATE(process, state) "[h0:10] [[487,0],0] ACTIVATE PROC [[487," process "] STATE " state " AT ../a/b.c:352\n"

static struct emu_mpirun_output output;

/* Takes the text in pieces of n bytes. What people get, which the caller frees. */
static char *take(const char *text, size_t n)
{
    char *people = NULL;
    size_t len;
    FILE *out = open_memstream(&people, &len);

    assert_non_null(out);
    output = (struct emu_mpirun_output){ .fd = -1, .mpirun_fd = -1 };
    for (size_t i = 0; i < strlen(text); i += n)
        emu_mpirun_output_take(&output, text + i, strlen(text + i) < n ? strlen(text + i) : n, out);
    emu_mpirun_output_finish(&output, out);
    fclose(out);
    return people;
}

static void expect(const char *text, const char *people_wanted, enum emu_rank_end end, uint32_t rank)
{
    for (size_t n = 1; n <= strlen(text); n++) {
        char *people = take(text, n);

        assert_string_equal(people, people_wanted);
        assert_int_equal(output.end, end);
        assert_int_equal(output.rank, rank);
        assert_int_equal(output.has_said, people_wanted[0] != '\0');
        free(people);
    }
}

static void test_each_way_to_fail_is_known(void **state)
{
    (void)state;
    expect(STATE("1],7", "ABORTED BY SIGNAL"), "", EMU_RANK_END_SIGNAL, 7);
    expect(STATE("1],65535", "EXITED WITH NON-ZERO STATUS"), "", EMU_RANK_END_STATUS, 65535);
    expect(STATE("1],0", "CALLED ABORT"), "", EMU_RANK_END_ABORT, 0);
    expect(STATE("1],2", "TERMINATED WITHOUT SYNC"), "", EMU_RANK_END_NO_FINALIZE, 2);
}

static void test_what_is_no_failure_of_a_rank_names_none(void **state)
{
    (void)state;
    expect("[h0:10] [[487,0],0] ACTIVATE JOB [487,1] STATE RUNNING AT a.c:1\n" STATE("1],0", "RUNNING")
               STATE("1],0", "NORMALLY TERMINATED") STATE("0],1", "COMMUNICATION FAILURE")
                   STATE("0],1", "ABORTED BY SIGNAL") STATE("1],1", "KILLED BY INTERNAL COMMAND")
                       STATE("1],1", "CALLED ABORTION") STATE("1],x", "CALLED ABORT"),
           "", EMU_RANK_END_UNKNOWN, 0);
}

static void test_the_first_failure_counts(void **state)
{
    (void)state;
    expect(STATE("1],1", "RUNNING") STATE("1],4", "EXITED WITH NON-ZERO STATUS") STATE("1],1", "ABORTED BY SIGNAL"), "",
           EMU_RANK_END_STATUS, 4);
}

static void test_all_else_is_for_people_in_order(void **state)
{
    (void)state;
    expect("-----\nPrimary job\n" STATE("1],3", "CALLED ABORT") "\n[h1:9] ORTE_ERROR_LOG: a\n-----\nno end",
           "-----\nPrimary job\n\n[h1:9] ORTE_ERROR_LOG: a\n-----\nno end", EMU_RANK_END_ABORT, 3);
}

static void test_errors_of_connections_are_for_people_if_no_rank_failed(void **state)
{
    (void)state;
    expect("[h0:10] PMIX ERROR: UNREACHABLE in file a.c at line 388\n" STATE("1],3", "ABORTED BY SIGNAL"), "",
           EMU_RANK_END_SIGNAL, 3);
    expect(STATE("1],3", "ABORTED BY SIGNAL") "[h0:10] PMIX ERROR: UNREACHABLE in file a.c at line 388\n", "",
           EMU_RANK_END_SIGNAL, 3);
    expect("[h0:10] PMIX ERROR: UNREACHABLE in file a.c at line 388\nb\n[h0:10] PMIX ERROR: BAD-PARAM in file\n",
           "b\n[h0:10] PMIX ERROR: UNREACHABLE in file a.c at line 388\n", EMU_RANK_END_UNKNOWN, 0);
}

static void test_a_very_long_line_is_passed_on_whole(void **state)
{
    char *people;
    char text[5001];

    (void)state;
    memset(text, 'x', sizeof(text) - 2);
    strcpy(text + sizeof(text) - 2, "\n");
    people = take(text, 100);
    assert_string_equal(people, text);
    free(people);
}

/* Daemons of mpirun may inherit the number, not the descriptor: it must not be one that they use themselves. */
static void test_the_descriptor_for_mpirun_has_a_number_of_its_own(void **state)
{
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(emu_mpirun_output_open(&output), 0);
    assert_true(output.mpirun_fd >= 700 || limit.rlim_cur <= 700);
    assert_int_equal(write(output.mpirun_fd, STATE("1],5", "CALLED ABORT"), sizeof(STATE("1],5", "CALLED ABORT")) - 1),
                     sizeof(STATE("1],5", "CALLED ABORT")) - 1);
    emu_mpirun_output_read(&output);
    assert_int_equal(output.end, EMU_RANK_END_ABORT);
    assert_int_equal(output.rank, 5);
    emu_mpirun_output_close(&output);
    emu_mpirun_output_close(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_way_to_fail_is_known),
        cmocka_unit_test(test_what_is_no_failure_of_a_rank_names_none),
        cmocka_unit_test(test_the_first_failure_counts),
        cmocka_unit_test(test_all_else_is_for_people_in_order),
        cmocka_unit_test(test_errors_of_connections_are_for_people_if_no_rank_failed),
        cmocka_unit_test(test_a_very_long_line_is_passed_on_whole),
        cmocka_unit_test(test_the_descriptor_for_mpirun_has_a_number_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
