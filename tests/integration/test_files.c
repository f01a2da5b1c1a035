/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic takes for the file behind a registration: requests of a client that lies. Each lie is refused, costs
 * emunic nothing, and leaves the client able to register what is true.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/common/fixture.h"
#include "tests/common/proc.h"
#include "tests/common/raw.h"

#define PAGE  4096u
#define PAGES 16u
#define RW    (PROT_READ | PROT_WRITE)

static struct fx fx;
static struct raw raw;
static int fd; /* PAGES pages, of which all but the first are mapped at mem */
static uint8_t *mem;
static uint64_t addr;
static int fds_before;

static int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

static int open_client(void **state)
{
    (void)state;
    fd = memfd_create("true", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, PAGES * PAGE) < 0 || raw_open(&raw, fx.server, fx.ptag, fx.cookie, 7, 0) != 0)
        return -1;
    mem = mmap(NULL, (PAGES - 1) * PAGE, RW, MAP_SHARED, fd, PAGE);
    addr = (uint64_t)(uintptr_t)mem;
    fds_before = fx_count_fds(&fx);
    return mem == MAP_FAILED ? -1 : 0;
}

static int close_client(void **state)
{
    (void)state;
    munmap(mem, (PAGES - 1) * PAGE);
    close(fd);
    raw_close(&raw);
    return 0;
}

static struct emu_msg honest(void)
{
    return (struct emu_msg){ .type = EMU_MSG_MEM_REGISTER,
                             .memory = { .addr = addr,
                                         .length_bytes = 4 * PAGE,
                                         .flags = EMU_MD_FILE,
                                         .cq = EMU_CQ_NONE,
                                         .file_offset = PAGE } };
}

static int ask_with(struct emu_msg *msg, const int *fds, unsigned n_fds)
{
    int r = emu_session_request(&raw.session, msg, fds, n_fds, NULL);

    return r < 0 ? r : msg->result;
}

static int ask(struct emu_msg msg, int file)
{
    return ask_with(&msg, &file, 1);
}

/* What is no file in memory is closed by a thread. */
static bool has_no_more(void *arg)
{
    (void)arg;
    return fx_count_fds(&fx) == fds_before;
}

/* The truth still counts, and nothing of the lies is left in emunic. */
static void expect_no_loss(void)
{
    struct emu_msg msg = honest();
    struct emu_msg end = { .type = EMU_MSG_MEM_DEREGISTER };

    assert_true(eventually(has_no_more, NULL, 20000000000));
    assert_int_equal(ask_with(&msg, &fd, 1), 0);
    assert_int_equal(fx_count_fds(&fx), fds_before + 1);
    end.memory.mdh = msg.memory.mdh;
    end.memory.generation = msg.memory.generation;
    assert_int_equal(raw_request(&raw, &end), 0);
    assert_int_equal(fx_count_fds(&fx), fds_before);
}

static void test_the_truth_is_taken(void **state)
{
    const struct emu_table_md *md;
    struct emu_msg msg = honest();

    (void)state;
    assert_int_equal(ask_with(&msg, &fd, 1), 0);
    md = &emu_table_mds(raw.table, 0)[msg.memory.mdh];
    assert_int_equal(md->method, EMU_MEMORY_FILE);
    assert_int_equal(md->file_offset, PAGE);
    assert_int_not_equal(md->file, 0);
    assert_int_equal(atomic_load(&emu_table_files(raw.table)[md->file % EMU_FILES_MAX]), md->file);
    /* The end of the file, and a range that does not begin with a page. */
    msg = honest();
    msg.memory.addr += 11 * PAGE + 5;
    msg.memory.length_bytes = 4 * PAGE - 5;
    msg.memory.file_offset += 11 * PAGE;
    assert_int_equal(ask_with(&msg, &fd, 1), 0);
    assert_int_equal(fx_count_fds(&fx), fds_before + 1);
}

static void test_file_that_is_not_mapped_there_is_refused(void **state)
{
    int other = memfd_create("other", MFD_CLOEXEC);
    uint8_t *elsewhere;

    (void)state;
    assert_int_equal(ftruncate(other, PAGES * PAGE), 0);
    assert_int_equal(ask(honest(), other), -EPERM);
    elsewhere = mmap(NULL, PAGES * PAGE, RW, MAP_SHARED, other, 0);
    assert_int_equal(ask(honest(), other), -EPERM);
    munmap(elsewhere, PAGES * PAGE);
    close(other);
    expect_no_loss();
}

static void test_wrong_place_in_the_file_is_refused(void **state)
{
    struct emu_msg msg = honest();

    (void)state;
    msg.memory.file_offset = 0;
    assert_int_equal(ask(msg, fd), -EPERM);
    msg.memory.file_offset = 2 * PAGE;
    assert_int_equal(ask(msg, fd), -EPERM);
    expect_no_loss();
}

static void test_range_that_is_mapped_in_part_is_refused(void **state)
{
    struct emu_msg msg = honest();

    (void)state;
    msg.memory.addr -= PAGE;
    msg.memory.file_offset -= PAGE;
    munmap(mem + 2 * PAGE, PAGE);
    assert_int_equal(ask(msg, fd), -EPERM);
    assert_int_equal(ask(honest(), fd), -EPERM);
    assert_ptr_equal(mmap(mem + 2 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_FIXED, fd, 3 * PAGE), mem + 2 * PAGE);
    assert_int_equal(ask(honest(), fd), -EPERM);
    assert_ptr_equal(mmap(mem + 2 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 3 * PAGE), mem + 2 * PAGE);
    assert_int_equal(ask(honest(), fd), -EPERM);
    assert_ptr_equal(mmap(mem + 2 * PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 3 * PAGE), mem + 2 * PAGE);
    expect_no_loss();
}

static void test_file_that_ends_before_the_memory_is_refused(void **state)
{
    (void)state;
    assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
    assert_int_equal(ask(honest(), fd), -ERANGE);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(ask(honest(), fd), -ERANGE);
    assert_int_equal(ftruncate(fd, 4 * PAGE + 1), 0); /* its last page is there */
    expect_no_loss();
}

static void test_numbers_that_cannot_be_are_refused(void **state)
{
    static const uint64_t offsets[] = { 1,
                                        4095,
                                        4097,
                                        1ull << 47,
                                        1ull << 63,
                                        UINT64_MAX & ~4095ull,
                                        UINT64_MAX,
                                        (1ull << 47) - PAGE,
                                        INT64_MAX & ~4095ull };
    static const uint64_t lengths[] = { 0, 1ull << 47, UINT64_MAX, UINT64_MAX - 4095 };
    static const uint64_t addresses[] = { (1ull << 47) - PAGE, 1ull << 47, 1ull << 63, UINT64_MAX - 2 * PAGE,
                                          UINT64_MAX };

    (void)state;
    for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        struct emu_msg msg = honest();

        msg.memory.file_offset = offsets[i];
        assert_int_equal(ask(msg, fd), -EINVAL);
    }
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct emu_msg msg = honest();

        msg.memory.length_bytes = lengths[i];
        assert_int_equal(ask(msg, fd), -EINVAL);
    }
    for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        struct emu_msg msg = honest();

        msg.memory.addr = addresses[i];
        assert_int_equal(ask(msg, fd), -EINVAL);
    }
    expect_no_loss();
}

static void test_number_of_descriptors_must_be_one(void **state)
{
    const int two[] = { fd, fd };
    struct emu_msg msg = honest();

    (void)state;
    assert_int_equal(ask_with(&msg, NULL, 0), -EINVAL);
    msg = honest();
    assert_int_equal(ask_with(&msg, two, 2), -EINVAL);
    msg = honest();
    msg.memory.flags |= EMU_MD_MAPPED;
    assert_int_equal(ask_with(&msg, two, 1), -EINVAL);
    expect_no_loss();
}

static void test_what_is_no_memory_file_is_refused(void **state)
{
    char name[] = "/var/tmp/emunic-files-XXXXXX";
    int kinds[8];
    unsigned n = 0;
    int pipes[2];
    int sockets[2];

    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    kinds[n++] = pipes[0];
    kinds[n++] = pipes[1];
    kinds[n++] = sockets[0];
    kinds[n++] = sockets[1];
    kinds[n++] = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    kinds[n++] = open("/dev/zero", O_RDWR | O_CLOEXEC);
    kinds[n++] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    kinds[n++] = mkostemp(name, O_CLOEXEC);
    unlink(name);
    for (unsigned i = 0; i < n; i++) {
        assert_true(kinds[i] >= 0);
        if (i < n - 1)
            assert_int_equal(ask(honest(), kinds[i]), -EBADF);
    }
    /* A true file, but on a disk: its pages may be a long time coming. */
    assert_int_equal(ftruncate(kinds[n - 1], PAGES * PAGE), 0);
    assert_ptr_equal(mmap(mem, 8 * PAGE, RW, MAP_SHARED | MAP_FIXED, kinds[n - 1], PAGE), mem);
    assert_true(ask(honest(), kinds[n - 1]) < 0);
    assert_ptr_equal(mmap(mem, 8 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, PAGE), mem);
    for (unsigned i = 0; i < n; i++)
        close(kinds[i]);
    expect_no_loss();
}

static int reopen(int flags)
{
    char name[64];

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return open(name, flags | O_CLOEXEC);
}

static void test_descriptor_must_be_open_for_what_the_memory_is_for(void **state)
{
    int reads = reopen(O_RDONLY);
    int writes = reopen(O_WRONLY);
    int path = reopen(O_PATH);
    struct emu_msg msg = honest();

    (void)state;
    assert_true(reads >= 0 && writes >= 0 && path >= 0);
    assert_int_equal(ask(msg, reads), -EBADF);
    assert_int_equal(ask(msg, writes), -EBADF);
    assert_int_equal(ask(msg, path), -EBADF);
    msg.memory.flags |= EMU_MD_READ_ONLY;
    assert_int_equal(ask(msg, fd), -EBADF); /* peers would get to write */
    assert_int_equal(ask(msg, writes), -EBADF);
    assert_int_equal(ask(msg, path), -EBADF);
    expect_no_loss();
    assert_int_equal(ask(msg, reads), 0);
    close(reads);
    close(writes);
    close(path);
}

static void test_sealed_file_is_refused_for_writing(void **state)
{
    (void)state;
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
    assert_int_equal(ask(honest(), fd), -EBADF);
    assert_int_equal(fx_count_fds(&fx), fds_before);
}

static void test_memory_of_another_process_is_refused(void **state)
{
    pid_t pid = fork(); /* has it mapped; we do not any more */

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    munmap(mem, (PAGES - 1) * PAGE);
    assert_int_equal(ask(honest(), fd), -EPERM);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_ptr_equal(mmap(mem, (PAGES - 1) * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, PAGE), mem);
    expect_no_loss();
}

static void test_descriptors_that_nobody_asked_for_are_closed(void **state)
{
    const int many[] = { fd, fd, fd, fd };
    struct emu_msg msg = honest();

    (void)state;
    msg.memory.flags = 0;
    assert_int_equal(ask_with(&msg, many, 4), 0);
    assert_int_equal(emu_table_mds(raw.table, 0)[msg.memory.mdh].method, EMU_MEMORY_CMA);
    expect_no_loss();
}

static void test_number_of_files_of_a_process_is_limited(void **state)
{
    unsigned n = 0;
    int r = 0;

    (void)state;
    while (r == 0 && n < 1000) {
        int own = memfd_create("one of many", MFD_CLOEXEC);
        struct emu_msg msg = honest();

        assert_int_equal(ftruncate(own, PAGES * PAGE), 0);
        assert_ptr_equal(mmap(mem, 8 * PAGE, RW, MAP_SHARED | MAP_FIXED, own, PAGE), mem);
        r = ask(msg, own);
        close(own);
        n += r == 0;
    }
    assert_int_equal(r, -EMFILE);
    assert_in_range(n, 16, 256);
    assert_int_equal(fx_count_fds(&fx), fds_before + (int)n);
}

/* ---- asking for files of others ---- */

static int ask_for_file(struct raw *who, uint32_t number, unsigned *n_fds_out)
{
    struct emu_msg msg = { .type = EMU_MSG_PEER_FILE, .file = { .file = number } };
    struct emu_fds fds;

    assert_int_equal(emu_session_request(&who->session, &msg, NULL, 0, &fds), 0);
    *n_fds_out = fds.n_fds;
    emu_fds_close(&fds);
    return msg.result;
}

static void test_peers_get_files_that_are_registered_and_no_others(void **state)
{
    const char *datapath = getenv("FX_DATAPATH");
    bool is_routed = datapath && strcmp(datapath, "routed") == 0;
    struct emu_msg msg = honest();
    struct emu_session admin;
    struct raw stranger;
    struct raw peer;
    uint32_t number;
    unsigned n_fds;

    (void)state;
    assert_int_equal(raw_open(&peer, fx.server, fx.ptag, fx.cookie, 8, 1), 0);
    assert_int_equal(fx_add_domain(&fx, 99, 0x99, geteuid(), 0, &admin), 0);
    assert_int_equal(raw_open(&stranger, fx.server, 99, 0x99, 8, 1), 0);
    assert_int_equal(ask_with(&msg, &fd, 1), 0);
    number = emu_table_mds(raw.table, 0)[msg.memory.mdh].file;

    assert_int_equal(ask_for_file(&peer, number, &n_fds), is_routed ? -EPERM : 0);
    assert_int_equal(n_fds, !is_routed);
    for (uint32_t wrong = 0; wrong < 64; wrong++) {
        uint32_t other = wrong < 32 ? number ^ 1u << wrong : wrong;

        assert_true(other == number || ask_for_file(&peer, other, &n_fds) == (is_routed ? -EPERM : -ENOENT));
        assert_int_equal(n_fds, 0);
    }
    assert_true(ask_for_file(&stranger, number, &n_fds) < 0);
    assert_int_equal(n_fds, 0);
    msg.type = EMU_MSG_MEM_DEREGISTER;
    assert_int_equal(raw_request(&raw, &msg), 0);
    assert_true(ask_for_file(&peer, number, &n_fds) < 0);
    assert_int_equal(n_fds, 0);
    raw_close(&peer);
    raw_close(&stranger);
    msg = (struct emu_msg){ .type = EMU_MSG_DOMAIN_END }; /* without a signal: we are a member */
    emu_session_request(&admin, &msg, NULL, 0, NULL);
    emu_session_close(&admin);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_the_truth_is_taken),
        UNIT(test_file_that_is_not_mapped_there_is_refused),
        UNIT(test_wrong_place_in_the_file_is_refused),
        UNIT(test_range_that_is_mapped_in_part_is_refused),
        UNIT(test_file_that_ends_before_the_memory_is_refused),
        UNIT(test_numbers_that_cannot_be_are_refused),
        UNIT(test_number_of_descriptors_must_be_one),
        UNIT(test_what_is_no_memory_file_is_refused),
        UNIT(test_descriptor_must_be_open_for_what_the_memory_is_for),
        UNIT(test_sealed_file_is_refused_for_writing),
        UNIT(test_memory_of_another_process_is_refused),
        UNIT(test_descriptors_that_nobody_asked_for_are_closed),
        UNIT(test_number_of_files_of_a_process_is_limited),
        UNIT(test_peers_get_files_that_are_registered_and_no_others),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
