/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-42: the cache of atomics. With nic.amo_cache=eager of the machine host memory is written at each update of a
 * cached command; lazy, once for many, and the processor finds an old value meanwhile. The NIC's counter of host writes
 * is in the status. No update is lost: whatever goes through the NIC sees the words as they are, and they are in memory
 * when it is deregistered.
 */
#include <jansson.h>

#include "tests/live/live.h"

#define UPDATES 1000u
#define BYTES   4096u
#define ENTRIES 64u /* nic.amo_cache_entries */

static uint64_t *words; /* of b; atomics of memory that emunic has mapped are kept */
static gni_mem_handle_t words_handle;

/*
 * At addresses that were never used: memory that comes to those of an emunic which has gone may be private. Each test
 * has an emunic of its own, as its machine differs.
 */
static uint64_t *fresh_pages(void)
{
    static uint64_t next = 0x200000000000;
    void *mem = mmap((void *)(uintptr_t)next, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(mem == (void *)(uintptr_t)next);
    next += 1u << 30;
    return mem;
}

static int open_on(const char *machine, uint32_t modes)
{
    const struct fx_options options = { .machine = machine };

    fx_start(&fx, &options);
    open_pair_in_mode(modes);
    words = fresh_pages();
    words_handle = register_on(&b, words, BYTES, GNI_MEM_READWRITE);
    return 0;
}

static int open_eager(void **state)
{
    (void)state;
    return open_on("aries:groups=2,nic.amo_cache=eager", GNI_CDM_MODE_CACHED_AMO_ENABLED);
}

static int open_lazy(void **state)
{
    (void)state;
    return open_on("aries:groups=2,nic.amo_cache=lazy", GNI_CDM_MODE_CACHED_AMO_ENABLED);
}

static int open_without_mode(void **state)
{
    (void)state;
    return open_on("aries:groups=2,nic.amo_cache=lazy", 0);
}

static int open_without_key(void **state)
{
    (void)state;
    return open_on("aries:groups=2", GNI_CDM_MODE_CACHED_AMO_ENABLED);
}

static int close_and_stop(void **state)
{
    GNI_MemDeregister(b.nic, &words_handle);
    close_pair(state);
    munmap(words, BYTES);
    return fx_stop(&fx);
}

#define on(open, test) cmocka_unit_test_setup_teardown(test, open, close_and_stop)

/* A counter of the NIC of b's node; -1: it has no cache. */
static json_int_t count_of(const char *key)
{
    char *text = fx_report(&fx, EMU_MSG_STATUS);
    json_t *status = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *nodes = json_object_get(json_array_get(json_object_get(status, "domains"), 0), "nodes");
    json_int_t count = -1;
    const json_t *node;
    size_t i;

    free(text);
    assert_non_null(nodes);
    json_array_foreach(nodes, i, node) {
        const json_t *value = json_object_get(json_object_get(node, "amo_cache"), key);

        if (json_integer_value(json_object_get(node, "nid")) == 1 && value)
            count = json_integer_value(value);
    }
    json_decref(status);
    return count;
}

static gni_post_descriptor_t post_of(gni_post_type_t type, unsigned word)
{
    gni_post_descriptor_t d = word_post(type, 8ull * word);

    d.remote_addr = ADDR(&words[word]);
    d.remote_mem_hndl = words_handle;
    return d;
}

/* A fetching add to a word. Answers the old value. */
static uint64_t add(gni_fma_cmd_type_t command, unsigned word, uint64_t value)
{
    gni_post_descriptor_t d = post_of(GNI_POST_AMO, word);
    uint64_t old;

    d.amo_cmd = command;
    d.first_operand = value;
    assert_int_equal(run(&d), STATUS_OK);
    memcpy(&old, a.mem + 8ull * word, 8);
    return old;
}

static uint64_t get(unsigned word)
{
    gni_post_descriptor_t d = post_of(GNI_POST_FMA_GET, word);
    uint64_t value;

    assert_int_equal(run(&d), STATUS_OK);
    memcpy(&value, a.mem + 8ull * word, 8);
    return value;
}

/* What the processor of b's node finds. */
static uint64_t load(unsigned word)
{
    return *(volatile uint64_t *)&words[word];
}

/* One line as the experiments of `emunic sim` print it, for whoever reads the test's output. */
static void tell(const char *metric, uint64_t source, json_int_t got, const char *relation)
{
    print_message("# EXP XC-42 %s src=%s%llu got=%lld unit=writes tol=0%% kind=F machine=aries\n", metric, relation,
                  (unsigned long long)source, (long long)got);
}

static void test_eager_has_one_write_per_update(void **state)
{
    json_int_t before = count_of("host_writes");
    json_int_t writes;

    (void)state;
    for (uint64_t i = 0; i < UPDATES; i++) {
        assert_int_equal(add(GNI_FMA_ATOMIC2_FIADD_C, 0, 1), i);
        assert_int_equal(load(0), i + 1);
    }
    writes = count_of("host_writes") - before;
    tell("eager_host_writes", UPDATES, writes, "");
    assert_int_equal(writes, UPDATES);
}

static void test_lazy_has_fewer_and_the_processor_sees_none_of_them(void **state)
{
    json_int_t before = count_of("host_writes");
    json_int_t writes;

    (void)state;
    for (uint64_t i = 0; i < UPDATES; i++) {
        assert_int_equal(add(GNI_FMA_ATOMIC_FADD_C, 0, 1), i);
        assert_int_equal(load(0), 0);
    }
    assert_int_equal(count_of("host_writes"), before);
    assert_int_equal(get(0), UPDATES);
    assert_int_equal(load(0), UPDATES);
    writes = count_of("host_writes") - before;
    tell("lazy_host_writes", UPDATES, writes, "<");
    assert_int_equal(writes, 1);
}

static void test_words_beyond_the_cache_are_written_when_they_give_way(void **state)
{
    json_int_t before = count_of("host_writes");

    (void)state;
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned word = 0; word <= ENTRIES; word++)
            assert_int_equal(add(GNI_FMA_ATOMIC_FADD_C, word, 1), round - 1);
    }
    /* The oldest goes, which is the next one wanted: all but the last 64 are written. */
    assert_int_equal(count_of("host_writes") - before, 3 * (ENTRIES + 1) - ENTRIES);
    for (unsigned word = 0; word <= ENTRIES; word++)
        assert_int_equal(get(word), 3);
    assert_int_equal(count_of("host_writes") - before, 3 * (ENTRIES + 1));
}

static void test_a_put_and_an_atomic_that_is_not_cached_see_it(void **state)
{
    gni_post_descriptor_t d = post_of(GNI_POST_FMA_PUT, 1);
    const uint64_t value = 70;

    (void)state;
    add(GNI_FMA_ATOMIC_FADD_C, 0, 5);
    assert_int_equal(add(GNI_FMA_ATOMIC_FADD, 0, 1), 5);
    assert_int_equal(load(0), 6);
    add(GNI_FMA_ATOMIC_FADD_C, 1, 5);
    memcpy(a.mem + 8, &value, 8);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(add(GNI_FMA_ATOMIC_FADD_C, 1, 1), 70);
    assert_int_equal(get(1), 71);
}

/* The NIC reads the source of a block transfer that is longer than what fits a command. */
static void test_the_owner_sends_what_is_cached(void **state)
{
    gni_post_descriptor_t d = gx_put(&b, &a, 0, 128, GNI_CQMODE_GLOBAL_EVENT);
    uint64_t value;

    (void)state;
    d.type = GNI_POST_RDMA_PUT;
    d.local_addr = ADDR(words);
    d.local_mem_hndl = words_handle;
    add(GNI_FMA_ATOMIC_FADD_C, 0, 9);
    memset(a.mem, 0, 8);
    assert_int_equal(post_on(b.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(b.src_cq, &d), STATUS_OK);
    memcpy(&value, a.mem, 8);
    assert_int_equal(value, 9);
}

static void test_deregistration_writes_it(void **state)
{
    (void)state;
    add(GNI_FMA_ATOMIC_FADD_C, 0, 77);
    assert_int_equal(load(0), 0);
    assert_int_equal(GNI_MemDeregister(b.nic, &words_handle), GNI_RC_SUCCESS);
    assert_int_equal(load(0), 77);
}

/* b's handle without its registration: what it has ends with it. */
static void test_the_end_of_the_nic_handle_writes_it(void **state)
{
    (void)state;
    add(GNI_FMA_ATOMIC_FADD_C, 0, 78);
    GNI_EpDestroy(b.ep);
    b.ep = NULL;
    assert_int_equal(load(0), 0);
    gx_close(&b);
    gx_open(&b, &fx, 1, 11, 0); /* for close_pair() */
    assert_int_equal(load(0), 78);
}

static void test_without_the_mode_nothing_is_kept(void **state)
{
    json_int_t before = count_of("commands");

    (void)state;
    add(GNI_FMA_ATOMIC_FADD_C, 0, 3);
    assert_int_equal(load(0), 3);
    assert_int_equal(count_of("commands"), before);
}

static void test_a_machine_without_the_key_has_no_cache(void **state)
{
    (void)state;
    add(GNI_FMA_ATOMIC_FADD_C, 0, 3);
    assert_int_equal(load(0), 3);
    assert_int_equal(count_of("host_writes"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on(open_eager, test_eager_has_one_write_per_update),
        on(open_eager, test_a_put_and_an_atomic_that_is_not_cached_see_it),
        on(open_lazy, test_lazy_has_fewer_and_the_processor_sees_none_of_them),
        on(open_lazy, test_words_beyond_the_cache_are_written_when_they_give_way),
        on(open_lazy, test_a_put_and_an_atomic_that_is_not_cached_see_it),
        on(open_lazy, test_the_owner_sends_what_is_cached),
        on(open_lazy, test_deregistration_writes_it),
        on(open_lazy, test_the_end_of_the_nic_handle_writes_it),
        on(open_without_mode, test_without_the_mode_nothing_is_kept),
        on(open_without_key, test_a_machine_without_the_key_has_no_cache),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
