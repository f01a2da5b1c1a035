/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Child processes of a test that live until they are killed or emunic goes, a page of memory that they share with it,
 * and the client that has some of everything. Include after cmocka.h.
 */
#ifndef TESTS_INTEGRATION_CHILDREN_H
#define TESTS_INTEGRATION_CHILDREN_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "emunic/client/port.h"
#include "emunic/client/space.h"
#include "tests/common/fixture.h"
#include "tests/common/proc.h"

#define PATIENCE_NS  30000000000ull
#define SHARED_BYTES 4096u

static struct fx fx;

/* Between the test and the children it makes; shared[0] counts how far a child has come. */
static _Atomic uint64_t *shared;

static inline int children_init(void)
{
    shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static inline pid_t start_child(void (*body)(void))
{
    pid_t pid;

    memset((void *)(uintptr_t)shared, 0, SHARED_BYTES);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fx.admin.fd >= 0)
            close(fx.admin.fd);
        body();
        _exit(0);
    }
    return pid;
}

static inline bool has_come(void *arg)
{
    return atomic_load(&shared[0]) >= *(const uint64_t *)arg;
}

/* Waits until the child has counted shared[0] up to n. */
static inline void wait_for_child(uint64_t n)
{
    assert_true(eventually(has_come, &n, PATIENCE_NS));
}

static inline int end_of(pid_t pid)
{
    int status = -1;

    waitpid(pid, &status, 0);
    return status;
}

static inline void kill_child(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_true(WIFSIGNALED(end_of(pid)));
}

/* ---- a client that has some of everything ---- */

#define BIG_BYTES (64u << 20)

static inline void open_everything(void)
{
    uint8_t *big = mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct emu_port port;
    struct emu_cq_consumer cq;
    struct emu_msg msg;
    struct emu_cmd *cmd;
    uint64_t unused;
    uint32_t index;
    uint16_t mapped;
    uint16_t mapped_generation;
    uint16_t mdh = 0;
    uint16_t generation = 0;
    void *addr;

    FX_CHECK(big != MAP_FAILED);
    fx_set_node(1);
    FX_CHECK(emu_port_attach(&port, fx.ptag, fx.cookie, 50, 0) == 0);
    for (unsigned i = 0; i < 5; i++)
        FX_CHECK(emu_port_cq_create(&port, 1000, true, &index, &cq) == 0);
    for (unsigned i = 0; i < 10; i++)
        FX_CHECK(emu_port_mem_register(&port,
                                       &(struct emu_port_memory){ (uint64_t)(uintptr_t)big, BIG_BYTES, 0, index }, &mdh,
                                       &generation) == 0);
    FX_CHECK(fx_space_map(&port, 1u << 20, &addr) == 0);
    FX_CHECK(emu_port_mem_register(
                 &port, &(struct emu_port_memory){ (uint64_t)(uintptr_t)addr, 1u << 20, EMU_MD_MAPPED, index }, &mapped,
                 &mapped_generation) == 0);
    for (unsigned i = 0; i < 3; i++) {
        msg = (struct emu_msg){ .type = EMU_MSG_DATAGRAM_POST,
                                .datagram = { .ep = i, .flags = i ? 0 : EMU_DATAGRAM_WILDCARD, .remote_nid = 2 + i } };
        FX_CHECK(emu_port_request(&port, &msg) == 0);
    }
    for (unsigned i = 0; i < 21; i++) {
        cmd = emu_port_command(&port, 0, &unused);
        FX_CHECK(cmd);
        cmd->op = EMU_OP_GET;
        cmd->remote_nid = 1;
        cmd->remote_addr = i ? (uint64_t)(uintptr_t)big : (uint64_t)(uintptr_t)addr;
        cmd->remote_base = cmd->remote_addr;
        cmd->length_bytes = i ? BIG_BYTES : 1u << 20;
        cmd->local_addr = (uint64_t)(uintptr_t)big;
        cmd->mdh = i ? mdh : mapped;
        cmd->generation = i ? generation : mapped_generation;
        cmd->source_cq = index;
        emu_port_publish(&port);
    }
    atomic_store(&shared[0], 1);
    for (;;)
        pause();
}

#endif
