/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs whose libc is hooked: MPI libraries and registration caches learn of unmapping by functions of their own in
 * place of mmap(), munmap() and mremap(), which write to the heap. Here the hooks write to the very memory that is
 * being registered or copied for a child; nothing may hang or be lost. Specification: none; Open MPI's memory hooks.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/pair.h"

#define PAGE 4096u

#define HOOK __attribute__((visibility("default"))) /* libugni shall find these */

static uint8_t *volatile target; /* NULL: the hooks do nothing */

static void hook(void)
{
    if (target)
        target[0]++;
}

HOOK void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
    hook();
    return (void *)syscall(SYS_mmap, addr, length, prot, flags, fd, offset);
}

HOOK int munmap(void *addr, size_t length)
{
    hook();
    return (int)syscall(SYS_munmap, addr, length);
}

HOOK void *mremap(void *addr, size_t old_length, size_t new_length, int flags, ...)
{
    va_list args;
    void *where;

    va_start(args, flags);
    where = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    hook();
    return (void *)syscall(SYS_mremap, addr, old_length, new_length, flags, where);
}

static void *wait_for_end(void *arg)
{
    int *end = arg;
    char byte;

    return read(end[0], &byte, 1) < 0 ? arg : NULL;
}

/* A second thread makes the library stop writes while it moves pages. */
static void with_a_thread(void (*body)(uint8_t *mem))
{
    uint8_t *mem = pages(4 * PAGE);
    pthread_t thread;
    int end[2];

    assert_int_equal(pipe(end), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, end), 0);
    fill(mem, 4 * PAGE, 5);
    body(mem);
    target = NULL;
    close(end[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(end[0]);
    munmap(mem, 4 * PAGE);
}

static void register_hooked(uint8_t *mem)
{
    uint8_t first = mem[0];
    gni_mem_handle_t handle;
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    target = mem;
    handle = register_on(&b, mem, 4 * PAGE, GNI_MEM_READWRITE);
    target = NULL;
    assert_in_range(mem[0], first, 255); /* no write undone */
    memcpy(a.mem, "through", 8);
    d.remote_addr = ADDR(mem) + PAGE;
    d.remote_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_string_equal((char *)mem + PAGE, "through");
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
}

static void test_registering_does_not_wait_for_itself(void **state)
{
    (void)state;
    with_a_thread(register_hooked);
}

static void fork_hooked(uint8_t *mem)
{
    gni_mem_handle_t handle = register_on(&b, mem, 4 * PAGE, GNI_MEM_READWRITE);
    uint8_t before = mem[0];
    int status;
    pid_t child;

    target = mem;
    child = fork();
    if (child == 0) {
        target = NULL;
        mem[PAGE] = 0x5a;
        _exit(mem[0] == before ? 0 : 1);
    }
    target = NULL;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(mem[0], before); /* the child's hooks have not written to our memory */
    assert_int_not_equal(mem[PAGE], 0x5a);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
}

static void test_fork_copies_without_calling_hooks(void **state)
{
    (void)state;
    with_a_thread(fork_hooked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_registering_does_not_wait_for_itself),
        pair_test(test_fork_copies_without_calling_hooks),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
