/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory methods: the window of `map`, `cma` into a forked child, copies between every two methods, and which side a
 * fault is blamed on. A helper process stands for the peer; its memory was made before the fork, so addresses agree.
 */
#include "emunic/engine/memory.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE       4096u
#define AREA_BYTES (4 * PAGE)
#define ADDR(p)    ((uint64_t)(uintptr_t)(p))

/* ---- a peer process ---- */

struct peer {
    pid_t pid;
    int life; /* the peer ends when this end of a pipe closes */
};

/* The peer's private memory, at the same place in both processes:  [ data | data | read-only | not there ] */
static uint8_t *area;
/* Memory that both share, as emunic shares it. */
static uint8_t *pages;
static struct peer peer;

static void start_peer(struct peer *p, int (*body)(void))
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        char byte;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[1]);
        if (body)
            _exit(body());
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    p->life = ends[1];
}

static int end_peer(struct peer *p)
{
    int status = -1;

    close(p->life);
    waitpid(p->pid, &status, 0);
    return status;
}

static int make_areas(void **state)
{
    (void)state;
    area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || pages == MAP_FAILED)
        return -1;
    for (unsigned i = 0; i < AREA_BYTES; i++)
        area[i] = pages[i] = (uint8_t)i;
    return mprotect(area + 2 * PAGE, PAGE, PROT_READ) || munmap(area + 3 * PAGE, PAGE);
}

static int free_areas(void **state)
{
    (void)state;
    return munmap(area, 3 * PAGE) || munmap(pages, AREA_BYTES);
}

static int with_peer(void **state)
{
    if (make_areas(state))
        return -1;
    start_peer(&peer, NULL);
    return 0;
}

static int without_peer(void **state)
{
    return end_peer(&peer) || free_areas(state);
}

/* ---- map ---- */

static _Alignas(64) uint8_t buffer[256];

static struct emu_memory window(void)
{
    memset(buffer, 0xee, sizeof(buffer));
    return emu_memory_map(buffer + 64, 0x10000, 128); /* 64 bytes of guard on both sides */
}

static void assert_guards_untouched(void)
{
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(buffer[i], 0xee);
        assert_int_equal(buffer[192 + i], 0xee);
    }
}

static void test_map_reaches_first_and_last_byte(void **state)
{
    struct emu_memory m = window();
    uint8_t back[128];

    (void)state;
    memset(back, 7, sizeof(back));
    assert_int_equal(m.ops->write(&m, 0x10000, back, 128, NULL), 0);
    assert_int_equal(buffer[64], 7);
    assert_int_equal(buffer[191], 7);
    buffer[64] = 1;
    assert_int_equal(m.ops->read(&m, 0x10000, back, 128), 0);
    assert_int_equal(back[0], 1);
    assert_int_equal(m.ops->write(&m, 0x10080, back, 0, NULL), 0);
    assert_guards_untouched();
}

static void test_map_refuses_what_is_not_inside(void **state)
{
    static const struct {
        uint64_t addr;
        size_t len_bytes;
    } wrong[] = {
        { 0xffff, 1 },
        { 0xffff, 2 },
        { 0x10080, 1 },
        { 0x1007f, 2 },
        { 0x10000, 129 },
        { 0, 1 },
        { 0, SIZE_MAX },
        { UINT64_MAX, 1 },
        { UINT64_MAX, 2 },
        { 0x10000, SIZE_MAX },
        { 0x10040, SIZE_MAX - 0x3f },
        { 0x20000, 0 },
    };
    struct emu_memory m = window();
    uint8_t data[512] = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(m.ops->read(&m, wrong[i].addr, data, wrong[i].len_bytes), -EFAULT);
        if (wrong[i].len_bytes > 0)
            assert_int_equal(m.ops->write(&m, wrong[i].addr, data, wrong[i].len_bytes, NULL), -EFAULT);
        assert_null(m.ops->window(&m, wrong[i].addr, wrong[i].len_bytes));
    }
    assert_guards_untouched();
}

static void test_map_refuses_an_atomic_that_is_not_inside(void **state)
{
    struct emu_memory m = window();
    struct emu_amo add = { .op = EMU_AMO_ADD, .operand1 = 1 };
    uint64_t old = 77;

    (void)state;
    assert_int_equal(m.ops->atomic(&m, 0x10080, &add, &old), -EFAULT);
    assert_int_equal(m.ops->atomic(&m, 0x1007c, &add, &old), -EFAULT);
    assert_int_equal(m.ops->atomic(&m, 0xfff8, &add, &old), -EFAULT);
    assert_int_equal(old, 77);
    add.flags = EMU_AMO_32BIT;
    assert_int_equal(m.ops->atomic(&m, 0x1007c, &add, &old), 0);
    assert_int_equal(old, 0xeeeeeeee);
    assert_guards_untouched();
}

static void test_map_write_with_a_flag_outside_writes_nothing(void **state)
{
    struct emu_memory m = window();
    const struct emu_flag flags[] = { { 0x10080, 1 }, { 0xfff8, 1 }, { 0x1007c, 1 }, { UINT64_MAX - 7, 1 } };

    (void)state;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        assert_int_equal(m.ops->write(&m, 0x10000, "12345678", 8, &flags[i]), -EFAULT);
    assert_int_equal(buffer[64], 0xee);
    assert_guards_untouched();
}

static void test_map_flag_needs_no_data(void **state)
{
    struct emu_memory m = window();
    struct emu_flag flag = { 0x10078, 0x1122334455667788 };
    uint64_t stored;

    (void)state;
    assert_int_equal(m.ops->write(&m, 0x10000, NULL, 0, &flag), 0);
    memcpy(&stored, buffer + 64 + 0x78, 8);
    assert_int_equal(stored, flag.value);
    assert_int_equal(buffer[64], 0xee);
}

static void test_self_is_the_callers_own_memory(void **state)
{
    struct emu_memory m = emu_memory_self();
    struct emu_amo add = { .op = EMU_AMO_ADD, .operand1 = 5 };
    struct {
        uint8_t bytes[24];
        uint64_t word;
        uint64_t flag;
    } own = { .word = 37 };
    struct emu_flag flag = { ADDR(&own.flag), 9 };
    uint64_t old = 0;

    (void)state;
    assert_int_equal(m.ops->write(&m, ADDR(own.bytes + 3), "hello", 5, &flag), 0);
    assert_memory_equal(own.bytes + 3, "hello", 5);
    assert_int_equal(own.flag, 9);
    assert_int_equal(m.ops->atomic(&m, ADDR(&own.word), &add, &old), 0);
    assert_int_equal(old, 37);
    assert_int_equal(own.word, 42);
    assert_ptr_equal(m.ops->window(&m, ADDR(own.bytes), 24), own.bytes);
}

/* ---- cma ---- */

static void test_cma_writes_and_reads_the_peers_memory_not_ours(void **state)
{
    struct emu_memory m = emu_memory_cma(peer.pid);
    uint8_t back[5] = { 0 };

    (void)state;
    assert_int_equal(m.ops->write(&m, ADDR(area + 100), "hello", 5, NULL), 0);
    assert_int_equal(area[100], 100);
    assert_int_equal(m.ops->read(&m, ADDR(area + 100), back, 5), 0);
    assert_memory_equal(back, "hello", 5);
}

static void test_cma_stores_a_flag_with_and_without_data(void **state)
{
    struct emu_memory m = emu_memory_cma(peer.pid);
    struct emu_flag flag = { ADDR(area + 512), 0x1122334455667788 };
    uint64_t stored = 0;

    (void)state;
    assert_int_equal(m.ops->write(&m, ADDR(area), "abc", 3, &flag), 0);
    assert_int_equal(m.ops->read(&m, flag.addr, &stored, 8), 0);
    assert_int_equal(stored, flag.value);
    flag.value = 5;
    assert_int_equal(m.ops->write(&m, 0, NULL, 0, &flag), 0);
    assert_int_equal(m.ops->read(&m, flag.addr, &stored, 8), 0);
    assert_int_equal(stored, 5);
}

static void test_cma_atomics_change_the_peers_word(void **state)
{
    struct emu_memory m = emu_memory_cma(peer.pid);
    struct emu_amo amo = { .op = EMU_AMO_SWAP, .operand1 = 1000 };
    uint64_t old = 0;
    uint64_t word = 0;

    (void)state;
    assert_int_equal(m.ops->atomic(&m, ADDR(area + 64), &amo, &old), 0);
    assert_int_equal(old, 0x4746454443424140);
    amo.op = EMU_AMO_ADD;
    amo.flags = EMU_AMO_32BIT;
    amo.operand1 = (uint64_t)-1;
    assert_int_equal(m.ops->atomic(&m, ADDR(area + 64), &amo, &old), 0);
    assert_int_equal(old, 1000);
    assert_int_equal(m.ops->read(&m, ADDR(area + 64), &word, 8), 0);
    assert_int_equal(word, 999);
}

static void test_cma_32_bit_atomic_leaves_the_upper_half_alone(void **state)
{
    struct emu_memory m = emu_memory_cma(peer.pid);
    struct emu_amo add = { .op = EMU_AMO_ADD, .flags = EMU_AMO_32BIT, .operand1 = 0xffffffff };
    uint64_t old;
    uint64_t word = 0;

    (void)state;
    assert_int_equal(m.ops->atomic(&m, ADDR(area + 64), &add, &old), 0);
    assert_int_equal(m.ops->read(&m, ADDR(area + 64), &word, 8), 0);
    assert_int_equal(word, 0x474645444342413f);
}

static void test_cma_faults_where_pages_are_missing_or_forbid_it(void **state)
{
    struct emu_memory m = emu_memory_cma(peer.pid);
    struct emu_amo add = { .op = EMU_AMO_ADD, .operand1 = 0 };
    struct emu_flag flag = { ADDR(area + 2 * PAGE), 1 };
    uint8_t data[2 * PAGE] = { 0 };
    uint64_t old = 77;

    (void)state;
    assert_int_equal(m.ops->read(&m, ADDR(area + 3 * PAGE), data, 1), -EFAULT);
    assert_int_equal(m.ops->read(&m, ADDR(area + 3 * PAGE - 1), data, 2), -EFAULT);
    assert_int_equal(m.ops->write(&m, ADDR(area + 2 * PAGE), data, 1, NULL), -EFAULT);
    assert_int_equal(m.ops->write(&m, ADDR(area + 2 * PAGE - 1), data, 2, NULL), -EFAULT);
    assert_int_equal(m.ops->write(&m, ADDR(area), data, 1, &flag), -EFAULT);
    assert_int_equal(m.ops->write(&m, 0, data, 1, NULL), -EFAULT);
    assert_int_equal(m.ops->write(&m, UINT64_MAX - 3, data, 8, NULL), -EFAULT);
    assert_int_equal(m.ops->atomic(&m, ADDR(area + 2 * PAGE), &add, &old), -EFAULT); /* also when nothing changes */
    assert_int_equal(old, 77);
    assert_int_equal(m.ops->read(&m, ADDR(area + 2 * PAGE), data, PAGE), 0);
}

static void test_cma_tells_that_the_process_is_gone(void **state)
{
    struct emu_memory m = emu_memory_cma(peer.pid);
    struct emu_amo add = { .op = EMU_AMO_ADD, .operand1 = 1 };
    siginfo_t info;
    uint64_t word;

    (void)state;
    kill(peer.pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)peer.pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(m.ops->read(&m, ADDR(area), &word, 8), -ESRCH); /* not reaped yet */
    assert_int_equal(m.ops->write(&m, ADDR(area), &word, 8, NULL), -ESRCH);
    end_peer(&peer);
    assert_int_equal(m.ops->read(&m, ADDR(area), &word, 8), -ESRCH);
    assert_int_equal(m.ops->write(&m, ADDR(area), &word, 8, NULL), -ESRCH);
    assert_int_equal(m.ops->atomic(&m, ADDR(area), &add, &word), -ESRCH);
    start_peer(&peer, NULL); /* for the teardown */
}

/* ---- flag after data ---- */

#define FLAG_ROUNDS 3000u
#define FLAG_BYTES  8192u

/* What the reader sees: data, and a flag in another place. The answer goes through memory that both sides share. */
struct mail {
    _Atomic uint64_t flag;
    _Alignas(64) uint64_t data[FLAG_BYTES / 8];
};

static struct mail *mail;
static _Atomic uint64_t *answer;

static int read_mail(void)
{
    for (uint64_t round = 1; round <= FLAG_ROUNDS; round++) {
        while (atomic_load_explicit(&mail->flag, memory_order_acquire) != round)
            sched_yield();
        for (unsigned i = 0; i < FLAG_BYTES / 8; i++) {
            if (mail->data[i] != round)
                return 1;
        }
        atomic_store_explicit(answer, round, memory_order_release);
    }
    return 0;
}

static void write_mail(const struct emu_memory *m)
{
    static uint64_t data[FLAG_BYTES / 8];
    struct emu_flag flag = { .addr = ADDR(&mail->flag) };

    for (uint64_t round = 1; round <= FLAG_ROUNDS; round++) {
        for (unsigned i = 0; i < FLAG_BYTES / 8; i++)
            data[i] = round;
        flag.value = round;
        assert_int_equal(m->ops->write(m, ADDR(mail->data), data, FLAG_BYTES, &flag), 0);
        while (atomic_load_explicit(answer, memory_order_acquire) != round) {
            assert_int_equal(waitpid(peer.pid, NULL, WNOHANG), 0);
            sched_yield();
        }
    }
}

static void check_flag_order(int sharing, bool is_cma)
{
    struct emu_memory m;

    mail = mmap(NULL, sizeof(*mail), PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    answer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(mail != MAP_FAILED && answer != MAP_FAILED);
    start_peer(&peer, read_mail);
    m = is_cma ? emu_memory_cma(peer.pid) : emu_memory_map(mail, ADDR(mail), sizeof(*mail));
    write_mail(&m);
    assert_int_equal(end_peer(&peer), 0);
    munmap(mail, sizeof(*mail));
    munmap(answer, PAGE);
}

static void test_who_sees_a_cma_flag_sees_its_data(void **state)
{
    (void)state;
    check_flag_order(MAP_PRIVATE, true);
}

static void test_who_sees_a_map_flag_sees_its_data(void **state)
{
    (void)state;
    check_flag_order(MAP_SHARED, false);
}

/* ---- between two memories ---- */

/* The peer's private area, and the shared pages under an address of the owner's. */
#define PAGES_AT 0x7000000000ull

static struct emu_memory side(bool is_cma)
{
    return is_cma ? emu_memory_cma(peer.pid) : emu_memory_map(pages, PAGES_AT, AREA_BYTES);
}

static uint64_t place(bool is_cma, uint64_t off)
{
    return is_cma ? ADDR(area) + off : PAGES_AT + off;
}

static void test_copy_moves_every_byte_between_any_two_methods(void **state)
{
    static const size_t lengths[] = { 0, 1, 8, 63, 64, 65, 128, 1000 };
    uint8_t bounce[64];
    uint8_t got[1002];

    (void)state;
    for (unsigned pair = 0; pair < 4; pair++) {
        bool src_cma = pair & 1;
        bool dst_cma = pair & 2;
        struct emu_memory src = side(src_cma);
        struct emu_memory dst = side(dst_cma);

        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            size_t len = lengths[i];
            struct emu_flag flag = { place(dst_cma, PAGE + 2048), i + 1 };
            uint8_t pattern[1000];
            uint64_t stored = 0;
            int fault;

            for (size_t j = 0; j < len; j++)
                pattern[j] = (uint8_t)(j * 13 + pair + i);
            memset(got, 0xee, sizeof(got));
            assert_int_equal(src.ops->write(&src, place(src_cma, 3), pattern, len, NULL), 0);
            assert_int_equal(dst.ops->write(&dst, place(dst_cma, PAGE), got, sizeof(got), NULL), 0);
            assert_int_equal(emu_memory_copy((struct emu_memory_at){ &dst, place(dst_cma, PAGE + 1) },
                                             (struct emu_memory_at){ &src, place(src_cma, 3) }, len, &flag,
                                             (struct emu_bounce){ bounce, sizeof(bounce) }, &fault),
                             0);
            assert_int_equal(dst.ops->read(&dst, place(dst_cma, PAGE), got, sizeof(got)), 0);
            assert_int_equal(got[0], 0xee);
            assert_memory_equal(got + 1, pattern, len);
            assert_int_equal(got[len + 1], 0xee);
            assert_int_equal(dst.ops->read(&dst, flag.addr, &stored, 8), 0);
            assert_int_equal(stored, flag.value);
        }
    }
}

static void test_copy_blames_the_side_that_failed(void **state)
{
    uint8_t bounce[64];

    (void)state;
    for (unsigned pair = 0; pair < 4; pair++) {
        bool src_cma = pair & 1;
        bool dst_cma = pair & 2;
        struct emu_memory src = side(src_cma);
        struct emu_memory dst = side(dst_cma);
        uint64_t no_src = src_cma ? ADDR(area) + 3 * PAGE : PAGES_AT + AREA_BYTES;
        uint64_t no_dst = dst_cma ? ADDR(area) + 3 * PAGE : PAGES_AT + AREA_BYTES;
        int fault = 9;

        assert_int_equal(emu_memory_copy((struct emu_memory_at){ &dst, place(dst_cma, 0) },
                                         (struct emu_memory_at){ &src, no_src - 100 }, 200, NULL,
                                         (struct emu_bounce){ bounce, sizeof(bounce) }, &fault),
                         -EFAULT);
        assert_int_equal(fault, 0);
        assert_int_equal(emu_memory_copy((struct emu_memory_at){ &dst, no_dst - 100 },
                                         (struct emu_memory_at){ &src, place(src_cma, 0) }, 200, NULL,
                                         (struct emu_bounce){ bounce, sizeof(bounce) }, &fault),
                         -EFAULT);
        assert_int_equal(fault, 1);
    }
}

static void test_copy_blames_the_destination_for_a_bad_flag(void **state)
{
    uint8_t bounce[64];

    (void)state;
    for (unsigned pair = 0; pair < 4; pair++) {
        bool src_cma = pair & 1;
        bool dst_cma = pair & 2;
        struct emu_memory src = side(src_cma);
        struct emu_memory dst = side(dst_cma);
        struct emu_flag flag = { dst_cma ? ADDR(area) + 3 * PAGE : PAGES_AT + AREA_BYTES, 1 };
        int fault = 9;

        assert_int_equal(emu_memory_copy((struct emu_memory_at){ &dst, place(dst_cma, 0) },
                                         (struct emu_memory_at){ &src, place(src_cma, 0) }, 200, &flag,
                                         (struct emu_bounce){ bounce, sizeof(bounce) }, &fault),
                         -EFAULT);
        assert_int_equal(fault, 1);
    }
}

static void test_copy_blames_a_window_without_pages(void **state)
{
    struct emu_memory src = emu_memory_cma(peer.pid);
    struct emu_memory dst = emu_memory_map(area + 2 * PAGE, PAGES_AT, PAGE); /* read-only here */
    uint8_t bounce[64];
    int fault = 9;

    (void)state;
    assert_int_equal(emu_memory_copy((struct emu_memory_at){ &dst, PAGES_AT },
                                     (struct emu_memory_at){ &src, ADDR(area) }, 200, NULL,
                                     (struct emu_bounce){ bounce, sizeof(bounce) }, &fault),
                     -EFAULT);
    assert_int_equal(fault, 1);
    assert_int_equal(emu_memory_copy((struct emu_memory_at){ &dst, PAGES_AT },
                                     (struct emu_memory_at){ &src, ADDR(area + 3 * PAGE - 100) }, 200, NULL,
                                     (struct emu_bounce){ bounce, sizeof(bounce) }, &fault),
                     -EFAULT);
    assert_int_equal(fault, 0);
}

#define WITH_AREAS(name) cmocka_unit_test_setup_teardown(name, make_areas, free_areas)
#define WITH_PEER(name)  cmocka_unit_test_setup_teardown(name, with_peer, without_peer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_reaches_first_and_last_byte),
        cmocka_unit_test(test_map_refuses_what_is_not_inside),
        cmocka_unit_test(test_map_refuses_an_atomic_that_is_not_inside),
        cmocka_unit_test(test_map_write_with_a_flag_outside_writes_nothing),
        cmocka_unit_test(test_map_flag_needs_no_data),
        cmocka_unit_test(test_self_is_the_callers_own_memory),
        WITH_PEER(test_cma_writes_and_reads_the_peers_memory_not_ours),
        WITH_PEER(test_cma_stores_a_flag_with_and_without_data),
        WITH_PEER(test_cma_atomics_change_the_peers_word),
        WITH_PEER(test_cma_32_bit_atomic_leaves_the_upper_half_alone),
        WITH_PEER(test_cma_faults_where_pages_are_missing_or_forbid_it),
        WITH_PEER(test_cma_tells_that_the_process_is_gone),
        WITH_AREAS(test_who_sees_a_cma_flag_sees_its_data),
        WITH_AREAS(test_who_sees_a_map_flag_sees_its_data),
        WITH_PEER(test_copy_moves_every_byte_between_any_two_methods),
        WITH_PEER(test_copy_blames_the_side_that_failed),
        WITH_PEER(test_copy_blames_the_destination_for_a_bad_flag),
        WITH_PEER(test_copy_blames_a_window_without_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
