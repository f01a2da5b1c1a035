/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contiguous puts: every type and flavour into every kind of memory, any alignment, any size, any source; visible
 * to the owner's processor without its help.
 */
#include <sched.h>

#include "tests/conformance/dmapp/cases.h"

static dmapp_return_t put(enum flavour flavour, void *target, dmapp_seg_desc_t *seg, dmapp_pe_t pe, void *source,
                          uint64_t nelems, dmapp_type_t type)
{
    dmapp_syncid_handle_t syncid = NULL;
    dmapp_return_t rc = flavour == BLOCKING ? dmapp_put(target, seg, pe, source, nelems, type) :
                        flavour == NB       ? dmapp_put_nb(target, seg, pe, source, nelems, type, &syncid) :
                                              dmapp_put_nbi(target, seg, pe, source, nelems, type);

    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

/* covers: dmapp_put*: DMAPP_RC_SUCCESS */
static void test_every_type_and_flavour_arrives_in_every_kind_of_memory(void **state)
{
    static const uint64_t counts[] = { 1, 2, 3, 17, 64, 257, 4096 };

    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        struct remote to = remote_of(kind, next_pe());
        size_t used = 0;
        size_t at = 0;

        for (unsigned t = 0; t < COUNT_OF(types); t++) {
            for (unsigned c = 0; c < COUNT_OF(counts); c++) {
                enum flavour flavour = (enum flavour)((t + c) % FLAVOURS);
                size_t bytes = counts[c] * bytes_of[t];
                uint8_t *source = malloc(bytes);

                for (size_t i = 0; i < bytes; i++)
                    source[i] = pattern(used + i, (uint64_t)dx_job.pe);
                assert_int_equal(put(flavour, to.addr + used, &to.seg, next_pe(), source, counts[c], types[t]),
                                 DMAPP_RC_SUCCESS);
                used += bytes;
                free(source);
            }
        }
        assert_true(used < AREA_BYTES);
        dx_barrier();
        expect(own_area(kind), used, (uint64_t)previous_pe());
        for (at = used; at < AREA_BYTES; at++)
            assert_int_equal(own_area(kind)[at], 0);
        dx_barrier();
    }
    close_areas();
}

static void test_any_alignment_of_either_side_will_do(void **state)
{
    uint8_t source[96];

    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        struct remote to = remote_of(kind, next_pe());
        size_t at = 0;

        for (unsigned t = 0; t < COUNT_OF(types); t++) {
            for (unsigned shift = 0; shift < 17; shift++) {
                for (unsigned i = 0; i < 48; i++)
                    source[shift + i] = pattern(at + i, 5);
                assert_int_equal(put((enum flavour)(shift % FLAVOURS), to.addr + at, &to.seg, next_pe(), source + shift,
                                     48 / bytes_of[t], types[t]),
                                 DMAPP_RC_SUCCESS);
                at += 48;
                source[0] = pattern(at, 5);
                assert_int_equal(put(BLOCKING, to.addr + at, &to.seg, next_pe(), source, 1, DMAPP_BYTE),
                                 DMAPP_RC_SUCCESS);
                at++; /* the next one begins at an odd address */
            }
        }
        dx_barrier();
        expect(own_area(kind), at, 5);
        dx_barrier();
    }
    close_areas();
}

/* Each PE writes into its own quarter of every PE, and knows what must be there. */
static void test_random_puts_agree_with_a_model(void **state)
{
    enum { REGION = 8192, STEPS = 400 };
    struct emu_random random = seeded(1);
    uint8_t *model = calloc((size_t)dx_job.npes, REGION);
    uint8_t *seen = malloc(REGION);

    (void)state;
    random.state += (uint64_t)dx_job.pe;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        memset(model, 0, (size_t)dx_job.npes * REGION);
        for (unsigned step = 0; step < STEPS; step++) {
            dmapp_pe_t pe = (dmapp_pe_t)emu_random_below(&random, (uint64_t)dx_job.npes);
            struct remote to = remote_of(kind, pe);
            unsigned t = (unsigned)emu_random_below(&random, COUNT_OF(types));
            uint64_t nelems = emu_random_below(&random, 64);
            uint64_t offset = emu_random_below(&random, REGION - 64 * 16);
            uint8_t source[64 * 16];

            fill(source, sizeof(source), step);
            memcpy(model + (size_t)pe * REGION + offset, source, nelems * bytes_of[t]);
            assert_int_equal(put((enum flavour)emu_random_below(&random, FLAVOURS),
                                 to.addr + (size_t)dx_job.pe * REGION + offset, &to.seg, pe, source, nelems, types[t]),
                             DMAPP_RC_SUCCESS);
        }
        dx_barrier();
        for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++) {
            struct remote from = remote_of(kind, pe);

            assert_int_equal(dmapp_get(seen, from.addr + (size_t)dx_job.pe * REGION, &from.seg, pe, REGION, DMAPP_BYTE),
                             DMAPP_RC_SUCCESS);
            assert_memory_equal(seen, model + (size_t)pe * REGION, REGION);
        }
        dx_barrier();
    }
    close_areas();
    free(model);
    free(seen);
}

static const uint64_t constant = 0x1122334455667788;

static void test_source_can_be_anywhere(void **state)
{
    struct remote to;
    uint64_t on_stack = 2;
    uint64_t *private = malloc(8);

    (void)state;
    open_areas();
    to = remote_of(HEAP, next_pe());
    *private = 3;
    ((uint64_t *)static_area)[0] = 4;
    ((uint64_t *)heap_area)[100] = 5;
    for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++) {
        uint64_t *target = (uint64_t *)to.addr + flavour * 8;

        assert_int_equal(put(flavour, target, &to.seg, next_pe(), (void *)(uintptr_t)&constant, 1, DMAPP_QW),
                         DMAPP_RC_SUCCESS);
        assert_int_equal(put(flavour, target + 1, &to.seg, next_pe(), &on_stack, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
        assert_int_equal(put(flavour, target + 2, &to.seg, next_pe(), private, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
        assert_int_equal(put(flavour, target + 3, &to.seg, next_pe(), static_area, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
        assert_int_equal(put(flavour, target + 4, &to.seg, next_pe(), (uint64_t *)heap_area + 100, 1, DMAPP_QW),
                         DMAPP_RC_SUCCESS);
    }
    dx_barrier();
    for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++) {
        const uint64_t *words = (const uint64_t *)heap_area + flavour * 8;

        assert_true(words[0] == constant);
        for (unsigned i = 1; i < 5; i++)
            assert_int_equal(words[i], i + 1);
    }
    close_areas();
    free(private);
}

static void test_large_puts_arrive_whole(void **state)
{
    const size_t bytes = (9u << 20) + 13;
    uint8_t *target = dx_alloc(bytes + 3);
    uint8_t *source = malloc(bytes);
    dmapp_seg_desc_t desc;

    (void)state;
    for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++) {
        for (unsigned is_registered = 0; is_registered < 2; is_registered++) {
            fill(source, bytes, flavour * 2 + is_registered);
            if (is_registered)
                assert_int_equal(dmapp_mem_register(source, bytes, &desc), DMAPP_RC_SUCCESS);
            dx_barrier();
            assert_int_equal(put(flavour, target + 3, &dx_job.sheap_seg, next_pe(), source, bytes, DMAPP_BYTE),
                             DMAPP_RC_SUCCESS);
            dx_barrier();
            expect(target + 3, bytes, flavour * 2 + is_registered);
            if (is_registered)
                assert_int_equal(dmapp_mem_unregister(&desc), DMAPP_RC_SUCCESS);
        }
    }
    dx_free(target);
    free(source);
}

static void test_target_can_be_the_caller(void **state)
{
    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        struct remote to = remote_of(kind, dx_job.pe);
        uint64_t word = 77 + (uint64_t)kind;

        for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++) {
            assert_int_equal(put(flavour, to.addr + 8 * flavour, &to.seg, dx_job.pe, &word, 1, DMAPP_QW),
                             DMAPP_RC_SUCCESS);
            assert_int_equal(((uint64_t *)own_area(kind))[flavour], word);
        }
    }
    close_areas();
}

static void test_no_elements_succeed_without_a_look_at_pointers(void **state)
{
    dmapp_syncid_handle_t syncid = NULL;
    int flag = 0;

    (void)state;
    assert_int_equal(dmapp_put(NULL, NULL, next_pe(), NULL, 0, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_put_nbi(NULL, NULL, next_pe(), NULL, 0, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_put_nb(NULL, NULL, next_pe(), NULL, 0, DMAPP_QW, &syncid), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_syncid_test(&syncid, &flag), DMAPP_RC_SUCCESS);
    assert_int_equal(flag, 1);
    assert_null(syncid);
}

/* More than any table has entries, and no call in between that would make room. */
static void test_nbi_never_runs_out_of_space(void **state)
{
    enum { ROUNDS = 20000 };
    uint64_t *target = dx_alloc(64 * 8);
    uint64_t *words = malloc(ROUNDS * 8);

    (void)state;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        words[i] = i;
        assert_int_equal(dmapp_put_nbi(&target[i % 64], &dx_job.sheap_seg, next_pe(), &words[i], 1, DMAPP_QW),
                         DMAPP_RC_SUCCESS);
    }
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
    dx_barrier();
    for (uint64_t i = 0; i < 64; i++)
        assert_int_equal(target[i] % 64, i);
    dx_free(target);
    free(words);
}

/* PE 0 does nothing but look; everybody else writes to it. */
static void test_target_sees_puts_without_a_call(void **state)
{
    volatile uint64_t *words = dx_alloc((size_t)dx_job.npes * 8);

    (void)state;
    if (dx_job.pe != 0) {
        uint64_t one = 1;

        assert_int_equal(dmapp_put((void *)(uintptr_t)&words[dx_job.pe], &dx_job.sheap_seg, 0, &one, 1, DMAPP_QW),
                         DMAPP_RC_SUCCESS);
    } else {
        for (dmapp_pe_t pe = 1; pe < dx_job.npes; pe++) {
            while (words[pe] == 0)
                sched_yield();
        }
    }
    dx_free((void *)(uintptr_t)words);
}

static void test_descriptor_of_the_target_means_the_same(void **state)
{
    dmapp_jobinfo_t *infos = dx_alloc(sizeof(dx_job) * (size_t)dx_job.npes);
    static uint64_t word;
    uint64_t value = 1000 + (uint64_t)dx_job.pe;
    dmapp_seg_desc_t *theirs;
    uint8_t *there;

    (void)state;
    word = 0;
    for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++)
        assert_int_equal(dmapp_put(&infos[dx_job.pe], &dx_job.sheap_seg, pe, &dx_job, sizeof(dx_job), DMAPP_BYTE),
                         DMAPP_RC_SUCCESS);
    dx_barrier();
    theirs = &infos[next_pe()].data_seg;
    there = (uint8_t *)theirs->addr + ((uint8_t *)&word - (uint8_t *)dx_job.data_seg.addr);
    assert_int_equal(dmapp_put(there, theirs, next_pe(), &value, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    dx_barrier();
    assert_int_equal(word, 1000 + previous_pe());
    dx_free(infos);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_and_flavour_arrives_in_every_kind_of_memory),
        cmocka_unit_test(test_any_alignment_of_either_side_will_do),
        cmocka_unit_test(test_random_puts_agree_with_a_model),
        cmocka_unit_test(test_source_can_be_anywhere),
        cmocka_unit_test(test_large_puts_arrive_whole),
        cmocka_unit_test(test_target_can_be_the_caller),
        cmocka_unit_test(test_no_elements_succeed_without_a_look_at_pointers),
        cmocka_unit_test(test_nbi_never_runs_out_of_space),
        cmocka_unit_test(test_target_sees_puts_without_a_call),
        cmocka_unit_test(test_descriptor_of_the_target_means_the_same),
    };

    return dx_run(tests, NULL);
}
