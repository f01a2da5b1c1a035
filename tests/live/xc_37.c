/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-37: a virtual memory handle is one value on all nodes of a job, whatever the real ones are. A hit adds the node's
 * base; a value that is no virtual handle is used as given.
 */
#include "tests/live/live.h"

#define PAGE  4096u
#define BLOCK 8u
#define INDEX 5u

static gni_mem_handle_t register_virtual(const struct gx_side *side, void *mem)
{
    gni_mem_handle_t handle = { 0, 0 };

    assert_int_equal(GNI_MemRegister(side->nic, ADDR(mem), PAGE, NULL, GNI_MEM_USE_VMDH, INDEX, &handle),
                     GNI_RC_SUCCESS);
    return handle;
}

/* As a key makes it: an index, no address. */
static gni_mem_handle_t virtual_handle(uint32_t index)
{
    return (gni_mem_handle_t){ (uint64_t)index << 52, 0xfffffff | 12ull << 28 | 2ull << 34 };
}

/* A real number, and where its memory begins. */
static gni_mem_handle_t real_handle(uint32_t number, const void *mem)
{
    return (gni_mem_handle_t){ (uint64_t)number << 52 | ADDR(mem) >> 12, 0xfffffff | 12ull << 28 };
}

static enum status put_word(const struct gx_side *from, gni_mem_handle_t handle, uint64_t remote, uint64_t word)
{
    gni_post_descriptor_t d = gx_put(from, from == &a ? &b : &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);

    memcpy(from->mem, &word, 8);
    d.remote_addr = remote;
    d.remote_mem_hndl = handle;
    assert_int_equal(post_on(from->ep, &d), GNI_RC_SUCCESS);
    return finish_on(from->src_cq, &d);
}

static void test_one_value_leads_to_each_nodes_own_memory(void **state)
{
    uint8_t *on_a = pages(PAGE);
    uint8_t *on_b = pages(4 * PAGE);
    uint8_t *third = on_b + 2 * PAGE;
    gni_mem_handle_t other = { 0, 0 };
    gni_mem_handle_t handle;
    uint32_t number;

    (void)state;
    assert_int_equal(GNI_SetMddResources(a.nic, BLOCK), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SetMddResources(b.nic, BLOCK), GNI_RC_SUCCESS);
    /* b has one registration more before: its real numbers differ from a's */
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(third), PAGE, NULL, 0, (uint32_t)-1, &other), GNI_RC_SUCCESS);
    handle = register_virtual(&a, on_a);
    assert_int_equal(register_virtual(&b, on_b).qword1 >> 52, handle.qword1 >> 52);
    handle = virtual_handle(INDEX);
    assert_int_equal(put_word(&a, handle, 8, 0xb0b0), STATUS_OK);
    assert_int_equal(put_word(&b, handle, 8, 0xa0a0), STATUS_OK);
    assert_int_equal(((uint64_t *)(void *)on_b)[1], 0xb0b0);
    assert_int_equal(((uint64_t *)(void *)on_a)[1], 0xa0a0);
    /* no virtual handle: the number as given, which is another registration of the node */
    number = (uint32_t)(other.qword1 >> 52);
    assert_int_equal(put_word(&a, real_handle(number, third), ADDR(third), 0xc0c0), STATUS_OK);
    assert_int_equal(*(uint64_t *)(void *)third, 0xc0c0);
    assert_int_equal(put_word(&a, real_handle(number, on_b), ADDR(on_b), 0xd0d0), STATUS_BAD_HANDLE);
    assert_int_equal(*(uint64_t *)(void *)on_b, 0);
    /* an index of the block that nobody has */
    assert_int_equal(put_word(&a, virtual_handle(INDEX + 1), 0, 0xd0d0), STATUS_BAD_HANDLE);
    GNI_MemDeregister(b.nic, &other);
    munmap(on_a, PAGE);
    munmap(on_b, 4 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = { pair_test(test_one_value_leads_to_each_nodes_own_memory) };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
