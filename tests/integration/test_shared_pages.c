/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of sparse files that a command of a member makes emunic touch, and that no process has mapped: those that were
 * not promised at the registration.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/fixture.h"
#include "tests/common/raw.h"

#define LIMIT_MIB  64u
#define PIECE_MIB  32u
#define WANTED_MIB 1024u
#define MIB        (1ull << 20)
#define FAR        (1ull << 45) /* an address where nothing is mapped */

#define RUN(test) cmocka_unit_test_setup_teardown(test, start, stop)

static struct fx fx;
static void *zeroes; /* WANTED_MIB of them */

static int start(void **state)
{
    char text[32];

    (void)state;
    snprintf(text, sizeof(text), "%llu", LIMIT_MIB * MIB / 4096);
    setenv("EMUNIC_USER_PAGES", text, 1);
    fx_start(&fx, NULL);
    zeroes = mmap(NULL, WANTED_MIB * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return zeroes == MAP_FAILED ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    munmap(zeroes, WANTED_MIB * MIB);
    return fx_stop(&fx);
}

/* What emunic has mapped of files and touched, in MiB. */
static unsigned shared_mib(void)
{
    unsigned long long pages = 0;
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)fx.daemon);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %*u %llu", &pages), 1);
    fclose(file);
    return (unsigned)(pages * 4096 / MIB);
}

/* ---- a member ---- */

static bool has_hung_up(const struct raw *raw)
{
    struct pollfd p = { .fd = raw->session.fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

static int get_space(struct raw *raw)
{
    struct emu_msg space = { .type = EMU_MSG_SPACE };
    struct emu_fds fds;

    assert_int_equal(emu_session_request(&raw->session, &space, NULL, 0, &fds), 0);
    assert_int_equal(space.result, 0);
    assert_int_equal(fds.n_fds, 1);
    return fds.fd[0];
}

static struct emu_msg_memory register_memory(struct raw *raw, uint64_t addr, uint64_t len_bytes, uint32_t flags,
                                             const int *fd)
{
    struct emu_msg msg = {
        .type = EMU_MSG_MEM_REGISTER,
        .memory = { .addr = addr, .length_bytes = len_bytes, .flags = flags, .cq = EMU_CQ_NONE },
    };

    assert_int_equal(emu_session_request(&raw->session, &msg, fd, fd ? 1 : 0, NULL), 0);
    assert_int_equal(msg.result, 0);
    return msg.memory;
}

/* Until all is moved, or emunic hangs up. False: it did. */
static bool put_zeroes(struct raw *raw, const struct emu_msg_memory *to, unsigned *most_mib)
{
    const struct emu_cmd cmd = { .op = EMU_OP_PUT,
                                 .remote_nid = raw->attach.nid,
                                 .remote_addr = to->addr,
                                 .length_bytes = to->length_bytes,
                                 .remote_base = to->addr,
                                 .mdh = to->mdh,
                                 .generation = to->generation,
                                 .source_cq = EMU_CQ_NONE,
                                 .local_addr = (uint64_t)(uintptr_t)zeroes };

    raw_post(raw, &cmd);
    while (atomic_load(&raw->segment->head) != atomic_load(&raw->segment->tail) ||
           atomic_load(&raw->segment->unfinished) > 0) {
        unsigned now_mib = shared_mib();

        *most_mib = now_mib > *most_mib ? now_mib : *most_mib;
        if (has_hung_up(raw))
            return false;
        sched_yield();
    }
    return true;
}

/* ---- tests ---- */

/* Its pages are there at the registration, so none is promised; then it takes them out of the file. */
static void test_member_that_takes_out_its_pages_makes_no_more_than_its_limit(void **state)
{
    struct emu_msg_memory pieces[WANTED_MIB / PIECE_MIB];
    unsigned before_mib = shared_mib();
    unsigned most_mib = 0;
    struct raw raw;
    unsigned i;
    int space;

    (void)state;
    assert_int_equal(raw_open(&raw, fx.server, fx.ptag, fx.cookie, 1, 0), 0);
    space = get_space(&raw);
    for (i = 0; i < WANTED_MIB / PIECE_MIB; i++) {
        off_t at = (off_t)(FAR + i * PIECE_MIB * MIB);

        assert_int_equal(pwrite(space, zeroes, PIECE_MIB * MIB, at), PIECE_MIB * MIB);
        pieces[i] = register_memory(&raw, (uint64_t)at, PIECE_MIB * MIB, EMU_MD_MAPPED, NULL);
        assert_int_equal(fallocate(space, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, PIECE_MIB * MIB), 0);
    }
    for (i = 0; i < WANTED_MIB / PIECE_MIB && put_zeroes(&raw, &pieces[i], &most_mib); i++)
        ;
    assert_true(i < WANTED_MIB / PIECE_MIB);
    assert_true(most_mib < WANTED_MIB / 2);
    raw_close(&raw);
    close(space);
    /* Nothing stays: another member goes through the same. */
    assert_int_equal(raw_open(&raw, fx.server, fx.ptag, fx.cookie, 2, 0), 0);
    assert_true(shared_mib() < before_mib + LIMIT_MIB);
    raw_close(&raw);
}

static void test_member_with_a_file_that_grows_too_much_loses_its_port(void **state)
{
    int fd = memfd_create("sparse", MFD_CLOEXEC);
    struct emu_msg_memory memory;
    unsigned most_mib = 0;
    struct raw raw;
    void *mem;

    (void)state;
    assert_int_equal(ftruncate(fd, WANTED_MIB * MIB), 0);
    mem = mmap(NULL, WANTED_MIB * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    assert_ptr_not_equal(mem, MAP_FAILED);
    assert_int_equal(raw_open(&raw, fx.server, fx.ptag, fx.cookie, 1, 0), 0);
    memory = register_memory(&raw, (uint64_t)(uintptr_t)mem, WANTED_MIB * MIB, EMU_MD_FILE, &fd);
    assert_false(put_zeroes(&raw, &memory, &most_mib));
    assert_true(most_mib < WANTED_MIB / 2);
    raw_close(&raw);
    munmap(mem, WANTED_MIB * MIB);
    close(fd);
}

static void test_emunic_keeps_few_pages_of_what_it_has_moved(void **state)
{
    unsigned before_mib = shared_mib();
    struct emu_msg_memory memory;
    unsigned most_mib = 0;
    struct raw raw;

    (void)state;
    assert_int_equal(raw_open(&raw, fx.server, fx.ptag, fx.cookie, 1, 0), 0);
    close(get_space(&raw));
    memory = register_memory(&raw, FAR, PIECE_MIB * MIB, EMU_MD_MAPPED, NULL);
    /* Again and again to the same pages, until emunic has come to look. */
    do {
        assert_true(put_zeroes(&raw, &memory, &most_mib));
    } while (most_mib < before_mib + LIMIT_MIB / 4 || shared_mib() >= before_mib + LIMIT_MIB / 4 + LIMIT_MIB / 8);
    raw_close(&raw);
}

/* ---- memory of queues and interfaces ---- */

static int try_register(struct raw *raw)
{
    static uint8_t own[4096];
    struct emu_msg msg = {
        .type = EMU_MSG_MEM_REGISTER,
        .memory = { .addr = (uint64_t)(uintptr_t)own, .length_bytes = sizeof(own), .cq = EMU_CQ_NONE },
    };

    return raw_request(raw, &msg);
}

/* The memory that emunic answers with. */
static int ask_for_memory(struct raw *raw, struct emu_msg *msg)
{
    struct emu_fds fds;

    assert_int_equal(emu_session_request(&raw->session, msg, NULL, 0, &fds), 0);
    assert_int_equal(msg->result, 0);
    assert_int_equal(fds.n_fds, 1);
    return fds.fd[0];
}

/* Whoever has made the region may leave before others. */
static void test_pages_of_a_message_queue_count(void **state)
{
    const struct emu_msg join = { .type = EMU_MSG_MSGQ_JOIN,
                                  .msgq = { .shape = { .n_insts = 2, .region_bytes = 2 * LIMIT_MIB * MIB } } };
    struct emu_msg msg = join;
    struct raw raw[2];
    int fd;

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(raw_open(&raw[i], fx.server, fx.ptag, fx.cookie, 1 + i, 0), 0);
    fd = ask_for_memory(&raw[0], &msg);
    assert_int_equal(try_register(&raw[0]), 0);
    assert_int_equal(fallocate(fd, 0, 0, (off_t)((LIMIT_MIB + 1) * MIB)), 0);
    close(fd);
    assert_int_equal(try_register(&raw[0]), -ENOSPC);
    msg = join;
    close(ask_for_memory(&raw[1], &msg));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(try_register(&raw[1]), -ENOSPC);
        msg = (struct emu_msg){ .type = EMU_MSG_MSGQ_LEAVE };
        assert_int_equal(raw_request(&raw[i], &msg), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(try_register(&raw[i]), 0);
        raw_close(&raw[i]);
    }
}

static void test_pages_of_Portals_interfaces_count(void **state)
{
    static struct raw raw[128];
    uint64_t part_bytes = 0;
    unsigned n = 0;
    int r;

    (void)state;
    do {
        struct emu_msg msg = { .type = EMU_MSG_PORTALS_OPEN, .portals = { .pid = UINT32_MAX } };
        int fd;

        assert_int_equal(raw_open(&raw[n], fx.server, fx.ptag, fx.cookie, 1 + n, 0), 0);
        fd = ask_for_memory(&raw[n], &msg);
        part_bytes = msg.portals.length_bytes;
        assert_int_equal(fallocate(fd, 0, 0, (off_t)part_bytes), 0);
        close(fd);
        r = try_register(&raw[n++]);
    } while (r == 0 && n < 128);
    assert_int_equal(r, -ENOSPC);
    assert_true((n - 1) * part_bytes <= LIMIT_MIB * MIB);
    for (unsigned i = 0; i < n; i++)
        raw_close(&raw[i]);
    assert_int_equal(raw_open(&raw[0], fx.server, fx.ptag, fx.cookie, 1, 0), 0);
    assert_int_equal(try_register(&raw[0]), 0);
    raw_close(&raw[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_member_that_takes_out_its_pages_makes_no_more_than_its_limit),
        RUN(test_member_with_a_file_that_grows_too_much_loses_its_port),
        RUN(test_emunic_keeps_few_pages_of_what_it_has_moved),
        RUN(test_pages_of_a_message_queue_count),
        RUN(test_pages_of_Portals_interfaces_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
