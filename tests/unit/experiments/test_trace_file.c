/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "emunic/experiments/traffic.h"
#include "tests/unit/fabric/fixture.h"

struct fixture {
    struct emu_machine *m; /* 16 nodes */
    char path[64];
    struct emu_messages trace;
    char err[512];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int fd;

    assert_non_null(f);
    f->m = load("aries:groups=1,chassis=1,blades=4");
    strcpy(f->path, "/tmp/emunic-trace-XXXXXX");
    fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unlink(f->path);
    emu_machine_destroy(f->m);
    free(f);
    return 0;
}

static int read_bytes(struct fixture *f, const char *text, size_t len)
{
    FILE *file = fopen(f->path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    fclose(file);
    strcpy(f->err, "");
    return emu_trace_read(f->path, f->m, &f->trace, f->err, sizeof(f->err));
}

/* Refused with the file's name, this line and these words. */
static void assert_refused(struct fixture *f, const char *text, int line, const char *words)
{
    char start[128];

    assert_int_equal(read_bytes(f, text, strlen(text)), -EINVAL);
    snprintf(start, sizeof(start), "%s:%d: ", f->path, line);
    if (strncmp(f->err, start, strlen(start)) != 0 || !strstr(f->err, words))
        fail_msg("'%s' does not tell line %d and '%s'", f->err, line, words);
}

static void test_a_trace_is_read(void **state)
{
    struct fixture *f = *state;
    const char *text = "# made by hand\n"
                       "\n"
                       "emunic-trace 1\n"
                       "0 0 1 64\n"
                       "\t1.5   2 3  0   # half a nanosecond later\r\n"
                       "1000000000000000 15 0 1099511627776";

    assert_int_equal(read_bytes(f, text, strlen(text)), 0);
    assert_int_equal(f->trace.n, 3);
    assert_int_equal(f->trace.list[0].dst_nid, 1);
    assert_int_equal(f->trace.list[0].bytes, 64);
    assert_int_equal(f->trace.list[1].start_ps, 1500);
    assert_int_equal(f->trace.list[1].src_nid, 2);
    assert_int_equal(f->trace.list[1].bytes, 0);
    assert_int_equal(f->trace.list[2].start_ps, UINT64_C(1000000000000000000));
    assert_int_equal(f->trace.list[2].bytes, UINT64_C(1) << 40);
    emu_messages_fini(&f->trace);
}

static void test_messages_wait_for_others(void **state)
{
    struct fixture *f = *state;
    const char *text = "emunic-trace 2\n"
                       "0 0 1 64\n"
                       "0 2 1 64 # another\n"
                       "5 1 3 8 1 2\n"
                       "0 3 0 8 3\n";

    assert_int_equal(read_bytes(f, text, strlen(text)), 0);
    assert_true(f->trace.is_program);
    assert_int_equal(f->trace.n, 4);
    assert_int_equal(f->trace.n_after, 3);
    assert_int_equal(f->trace.list[1].n_after, 0);
    assert_int_equal(f->trace.list[2].n_after, 2);
    assert_int_equal(f->trace.after[f->trace.list[2].first_after], 0);
    assert_int_equal(f->trace.after[f->trace.list[2].first_after + 1], 1);
    assert_int_equal(f->trace.after[f->trace.list[3].first_after], 2);
    emu_messages_fini(&f->trace);
}

static void test_bad_traces_are_refused_with_their_line(void **state)
{
    struct fixture *f = *state;
    char line[600];

    assert_refused(f, "", 0, "no message");
    assert_refused(f, "emunic-trace 1\n# nothing\n", 2, "no message");
    assert_refused(f, "0 0 1 64\n", 1, "starts with the line");
    assert_refused(f, "\n\nemunic-trace 3\n", 3, "version '3'");
    assert_refused(f, "emunic-trace 1\n0 0 1\n", 2, "found 3 fields");
    assert_refused(f, "emunic-trace 1\n0 0 1 2 3\n", 2, "found 5 fields");
    assert_refused(f, "emunic-trace 1\n0 0 1 2\n-1 0 1 2\n", 3, "start '-1'");
    assert_refused(f, "emunic-trace 1\n0.1234 0 1 2\n", 2, "start '0.1234'");
    assert_refused(f, "emunic-trace 1\n1. 0 1 2\n", 2, "start '1.'");
    assert_refused(f, "emunic-trace 1\n1.2.3 0 1 2\n", 2, "start");
    assert_refused(f, "emunic-trace 1\n1000000000000001 0 1 2\n", 2, "start");
    assert_refused(f, "emunic-trace 1\n99999999999999999999999999 0 1 2\n", 2, "start");
    assert_refused(f, "emunic-trace 1\n0 x 1 2\n", 2, "source 'x'");
    assert_refused(f, "emunic-trace 1\n0 0 16 2\n", 2, "destination 16 is not in the machine");
    assert_refused(f, "emunic-trace 1\n0 4294967296 1 2\n", 2, "source");
    assert_refused(f, "emunic-trace 1\n0 3 3 2\n", 2, "sends to itself");
    assert_refused(f, "emunic-trace 2\n0 0 1\n", 2, "found 3 fields");
    assert_refused(f, "emunic-trace 2\n0 0 1 2 1\n", 2, "'1' is not the number of a message before this one");
    assert_refused(f, "emunic-trace 2\n0 0 1 2\n0 1 0 2 0\n", 3, "'0' is not the number");
    assert_refused(f, "emunic-trace 2\n0 0 1 2\n0 1 0 2 -1\n", 3, "'-1' is not the number");
    assert_refused(f, "emunic-trace 2\n0 0 1 2\n0 1 0 2 1 1.5\n", 3, "'1.5' is not the number");
    assert_refused(f, "emunic-trace 2\n0 0 1 2\n0 1 0 2 4294967297\n", 3, "is not the number");
    assert_refused(f, "emunic-trace 2\n0 0 1 2\n0 2 0 2 1\n", 3, "goes to node 1, and node 2 cannot wait for it");
    assert_refused(f, "emunic-trace 1\n0 0 1 1.5\n", 2, "'1.5' is not a number of bytes");
    assert_refused(f, "emunic-trace 1\n0 0 1 1099511627777\n", 2, "bytes");
    assert_refused(f, "emunic-trace 1\n0 \033[31m 1 2\n", 2, "source '?[31m'");
    snprintf(line, sizeof(line), "emunic-trace 1\n%300s\n", "0 0 1 2");
    assert_refused(f, line, 2, "longer than 256");
}

static void test_a_zero_byte_does_not_hide_a_line(void **state)
{
    struct fixture *f = *state;
    static const char text[] = "emunic-trace 1\n0 0 1 2\0 3 4\n";

    assert_int_equal(read_bytes(f, text, sizeof(text) - 1), -EINVAL);
    assert_non_null(strstr(f->err, ":2: a zero byte"));
}

static void test_random_bytes_never_pass_for_a_trace(void **state)
{
    struct fixture *f = *state;
    struct emu_random random = seeded(77);
    static const char alphabet[] = "0123456789. \t\n#-x";
    char text[400];

    for (int i = 0; i < 2000; i++) {
        size_t len = (size_t)snprintf(text, sizeof(text), "emunic-trace %d\n", 1 + i % 2);

        while (len < sizeof(text) - 1 && emu_random_below(&random, 100) != 0)
            text[len++] = alphabet[emu_random_below(&random, sizeof(alphabet) - 1)];
        if (read_bytes(f, text, len) == 0) {
            assert_true(f->trace.n > 0);
            for (size_t k = 0; k < f->trace.n; k++)
                assert_true(f->trace.list[k].src_nid < 16 && f->trace.list[k].dst_nid < 16);
            emu_messages_fini(&f->trace);
        }
    }
}

static void test_a_missing_file_gives_its_errno(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(emu_trace_read("/nonexistent/trace", f->m, &f->trace, f->err, sizeof(f->err)), -ENOENT);
    assert_string_equal(f->err, "/nonexistent/trace: No such file or directory");
    assert_int_equal(emu_trace_read("/tmp", f->m, &f->trace, NULL, 0), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_trace_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_messages_wait_for_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_traces_are_refused_with_their_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_zero_byte_does_not_hide_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_bytes_never_pass_for_a_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_missing_file_gives_its_errno, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
