/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What most conformance programs start with: one private emunic and, for each test, two sides in this process, a on
 * node 0 and b on node 1, bound to each other. Each program includes this once; the objects are its own.
 */
#ifndef TESTS_CONFORMANCE_PAIR_H
#define TESTS_CONFORMANCE_PAIR_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"
#include "tests/common/rows.h"

#define ADDR(pointer) ((uint64_t)(uintptr_t)(pointer))
#define PATIENCE_NS   30000000000ull

/* gni_cq_get_status() as gni_pub.h documents it */
enum status {
    STATUS_OK,
    STATUS_NETWORK,
    STATUS_PEER_GONE,
    STATUS_BAD_HANDLE,
    STATUS_REMOTE_RANGE,
    STATUS_REMOTE_PERMISSION,
    STATUS_REMOTE_CQ_FULL,
    STATUS_LOCAL_ACCESS,
    STATUS_RETRANSMIT_LIMIT,
    STATUS_CANCELLED,
    STATUS_BAD_COMMAND,
    STATUS_MISMATCH,
    STATUS_END,
};

static struct fx fx;
static struct gx_side a; /* node 0, instance 10 */
static struct gx_side b; /* node 1, instance 11 */

static inline int start_emunic(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static inline int stop_emunic(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

/*
 * Stops emunic in its tracks: posts go on, nothing is served until thaw_emunic(). Then everything posted meanwhile is
 * there when it looks at the first. Requests (registration, queues, datagrams) would hang: do them before.
 */
static inline void freeze_emunic(void)
{
    int status = 0;

    fx_needs_emunic();
    fx_set_routed(&fx, true);
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    assert_int_equal(waitpid(fx.daemon, &status, WUNTRACED), fx.daemon);
    assert_true(WIFSTOPPED(status));
}

static inline void thaw_emunic(void)
{
    kill(fx.daemon, SIGCONT);
    fx_set_routed(&fx, false);
}

static inline int open_pair_in_mode(uint32_t modes)
{
    gx_open(&a, &fx, 0, 10, modes);
    gx_open(&b, &fx, 1, 11, modes);
    gx_connect(&a, &b);
    return 0;
}

static inline int open_pair(void **state)
{
    (void)state;
    return open_pair_in_mode(0);
}

static inline int open_dual_pair(void **state)
{
    (void)state;
    return open_pair_in_mode(GNI_CDM_MODE_DUAL_EVENTS);
}

/* Queues get exactly the entries they ask for. */
static inline int open_exact_pair(void **state)
{
    (void)state;
    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    return open_pair_in_mode(0);
}

static inline int open_exact_dual_pair(void **state)
{
    (void)state;
    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    return open_pair_in_mode(GNI_CDM_MODE_DUAL_EVENTS);
}

static inline int close_pair(void **state)
{
    (void)state;
    thaw_emunic(); /* a test may have failed in between */
    gx_close(&a);
    gx_close(&b);
    unsetenv("EMUNIC_CQ_FLOOR");
    return 0;
}

#define pair_test(name)            cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
#define dual_pair_test(name)       cmocka_unit_test_setup_teardown(name, open_dual_pair, close_pair)
#define exact_pair_test(name)      cmocka_unit_test_setup_teardown(name, open_exact_pair, close_pair)
#define exact_dual_pair_test(name) cmocka_unit_test_setup_teardown(name, open_exact_dual_pair, close_pair)

/* Posts on an end point with the call that the type belongs to. */
static inline gni_return_t post_on(gni_ep_handle_t ep, gni_post_descriptor_t *d)
{
    if (d->type == GNI_POST_RDMA_PUT || d->type == GNI_POST_RDMA_GET)
        return GNI_PostRdma(ep, d);
    return d->type == GNI_POST_CQWRITE ? GNI_PostCqWrite(ep, d) : GNI_PostFma(ep, d);
}

static inline gni_return_t post(gni_post_descriptor_t *d)
{
    return post_on(a.ep, d);
}

/* Waits for the next entry of a source queue, which must be that post's. Returns the status it carries. */
static inline enum status finish_on(gni_cq_handle_t cq, const gni_post_descriptor_t *d)
{
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry = 0;
    gni_return_t rc = gx_next(cq, &entry);

    assert_int_equal(rc, GNI_CQ_STATUS_OK(entry) ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_POST);
    assert_int_equal(GNI_GetCompleted(cq, entry, &done), rc);
    assert_ptr_equal(done, d);
    assert_int_equal(d->status, GNI_CQ_GET_STATUS(entry));
    return (enum status)GNI_CQ_GET_STATUS(entry);
}

static inline enum status finish(const gni_post_descriptor_t *d)
{
    return finish_on(a.src_cq, d);
}

/* Posts from a, with one source event, and waits for it. */
static inline enum status run(gni_post_descriptor_t *d)
{
    assert_int_equal(post(d), GNI_RC_SUCCESS);
    return finish(d);
}

/* answers: GNI_CqGetEvent */
static inline gni_return_t poll_once(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;

    return GNI_CqGetEvent(cq, &entry);
}

/* A put, get or whatever of the 8 bytes at `offset` of both sides, with a GLOBAL event. */
static inline gni_post_descriptor_t word_post(gni_post_type_t type, uint64_t offset)
{
    gni_post_descriptor_t d = gx_put(&a, &b, offset, 8, GNI_CQMODE_GLOBAL_EVENT);

    d.type = type;
    return d;
}

/* A put of 8 bytes by a into memory of b under that handle. */
static inline enum status put_text(const void *target, gni_mem_handle_t handle, const char *text)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    memcpy(a.mem, text, 8);
    d.remote_addr = ADDR(target);
    d.remote_mem_hndl = handle;
    return run(&d);
}

/* When this has completed, so has everything that was posted on the NIC handle of `side` before. */
static inline void wait_for_all_before(const struct gx_side *side, const struct gx_side *peer)
{
    gni_post_descriptor_t d = gx_put(side, peer, GX_BYTES - 8, 0, GNI_CQMODE_GLOBAL_EVENT);

    d.dlvr_mode = GNI_DLVMODE_IN_ORDER;
    assert_int_equal(post_on(side->ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(side->src_cq, &d), STATUS_OK);
}

/* Bytes that differ from their neighbours and from those of another seed. */
static inline void fill(uint8_t *mem, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        mem[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

static inline bool all_bytes_are(const void *mem, uint8_t value, size_t len_bytes)
{
    const uint8_t *bytes = mem;

    return len_bytes == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, len_bytes - 1) == 0);
}

/* Page-aligned memory of a test, as zeroes. */
static inline uint8_t *pages(size_t len_bytes)
{
    uint8_t *mem = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(mem, MAP_FAILED);
    return mem;
}

static inline gni_mem_handle_t register_on(const struct gx_side *side, void *mem, size_t len_bytes, uint32_t flags)
{
    gni_mem_handle_t handle = { 0, 0 };

    assert_int_equal(GNI_MemRegister(side->nic, ADDR(mem), len_bytes, NULL, flags, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    return handle;
}

#endif
