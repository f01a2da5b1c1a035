/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine of two hosts, each an emunic, on this one: nodes 0 and 2 are on the first, 1 and 3 on the second. A side
 * on each, and memory of both that is longer than a part of a transfer. Include after cmocka.h.
 */
#ifndef TESTS_INTEGRATION_TWO_HOSTS_H
#define TESTS_INTEGRATION_TWO_HOSTS_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/common/gni.h"
#include "tests/integration/children.h"

#define ADDR(p)    ((uint64_t)(uintptr_t)(p))
#define LONG_BYTES (3ull * 1024 * 1024 + 12345 * 4) /* parts of unequal size */
#define TIMEOUT_MS 1500u

static struct gx_side a; /* node 0, on the head */
static struct gx_side b; /* node 1, on the other host */

static inline int start_with(unsigned timeout_ms)
{
    struct fx_options options = { .n_hosts = 2, .timeout_ms = timeout_ms };

    fx_start(&fx, &options);
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&a, &b);
    return 0;
}

static inline int start(void **state)
{
    (void)state;
    return start_with(TIMEOUT_MS);
}

static inline int stop(void **state)
{
    (void)state;
    gx_close(&a);
    gx_close(&b);
    return fx_stop(&fx);
}

static inline gni_ep_handle_t ep_from_to(const struct gx_side *from, const struct gx_side *to)
{
    gni_ep_handle_t ep;

    assert_int_equal(GNI_EpCreate(from->nic, from->src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, to->nic_addr, to->inst_id), GNI_RC_SUCCESS);
    return ep;
}

static inline gni_return_t post(const struct gx_side *from, gni_post_descriptor_t *d, bool is_block)
{
    return is_block ? GNI_PostRdma(from->ep, d) : GNI_PostFma(from->ep, d);
}

/* Status of the entry, and the descriptor is the one that was posted. */
static inline gni_return_t complete(const struct gx_side *side, gni_post_descriptor_t *d)
{
    gni_post_descriptor_t *done = NULL;
    gni_return_t rc = gx_complete(side->src_cq, &done);

    assert_ptr_equal(done, d);
    return rc;
}

/* ---- memory of both sides that is longer than a part ---- */

struct long_memory {
    uint8_t *local;
    uint8_t *remote;
    gni_mem_handle_t local_hndl;
    gni_mem_handle_t remote_hndl;
};

static inline uint8_t *map_bytes(uint64_t bytes)
{
    uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

/* How emunic reaches the memory: mapped, by system calls, through a file that the program could make shorter. */
enum kind { ADOPTED, PRIVATE_FILE, SHARED_FILE, KINDS };

static inline uint8_t *map_kind(enum kind kind)
{
    int fd = memfd_create("long", MFD_CLOEXEC);
    uint8_t *p;

    if (kind == ADOPTED) {
        close(fd);
        return map_bytes(LONG_BYTES);
    }
    assert_int_equal(ftruncate(fd, (off_t)LONG_BYTES), 0);
    p = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, kind == SHARED_FILE ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    assert_true(p != MAP_FAILED);
    close(fd);
    return p;
}

static inline void open_kinds(struct long_memory *m, enum kind local, enum kind remote)
{
    m->local = map_kind(local);
    m->remote = map_kind(remote);
    for (uint64_t i = 0; i < LONG_BYTES; i++)
        m->local[i] = (uint8_t)(i * 7 + (i >> 12));
    assert_int_equal(
        GNI_MemRegister(a.nic, ADDR(m->local), LONG_BYTES, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &m->local_hndl),
        GNI_RC_SUCCESS);
    assert_int_equal(
        GNI_MemRegister(b.nic, ADDR(m->remote), LONG_BYTES, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &m->remote_hndl),
        GNI_RC_SUCCESS);
}

static inline void open_long(struct long_memory *m)
{
    open_kinds(m, ADOPTED, ADOPTED);
}

static inline void close_long(struct long_memory *m)
{
    GNI_MemDeregister(a.nic, &m->local_hndl);
    GNI_MemDeregister(b.nic, &m->remote_hndl);
    munmap(m->local, LONG_BYTES);
    munmap(m->remote, LONG_BYTES);
}

static inline gni_post_descriptor_t long_post(const struct long_memory *m, gni_post_type_t type)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, LONG_BYTES, GNI_CQMODE_GLOBAL_EVENT);

    d.type = type;
    d.local_addr = ADDR(m->local);
    d.local_mem_hndl = m->local_hndl;
    d.remote_addr = ADDR(m->remote);
    d.remote_mem_hndl = m->remote_hndl;
    d.src_cq_hndl = a.src_cq;
    return d;
}

/* Puts, then gets what it has put. */
static inline void move_both_ways(const struct long_memory *m, uint64_t from, uint64_t bytes)
{
    gni_post_descriptor_t d = long_post(m, GNI_POST_RDMA_PUT);

    d.local_addr += from;
    d.remote_addr += from;
    d.length = bytes;
    memset(m->remote, 0, LONG_BYTES);
    assert_int_equal(post(&a, &d, true), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_SUCCESS);
    assert_memory_equal(m->local + from, m->remote + from, bytes);
    assert_true(m->remote[from - 1] == 0 && m->remote[from + bytes] == 0);
    memset(m->local, 0, LONG_BYTES);
    d.type = GNI_POST_RDMA_GET;
    assert_int_equal(post(&a, &d, true), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_SUCCESS);
    assert_memory_equal(m->local + from, m->remote + from, bytes);
    assert_true(m->local[from - 1] == 0 && m->local[from + bytes] == 0);
}

#endif
