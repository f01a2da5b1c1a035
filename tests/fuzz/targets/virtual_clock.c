/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clocks of virtual time: two clients write anything into the pages of their clocks, post commands at any time, and
 * come and go.
 *
 * An input is a list of steps. Behind it the first client goes, and the other one asks as a program does: whatever was
 * written before, emunic has to let it go on.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/abi/virtual_clock.h"
#include "tests/fuzz/targets/server.h"
#include "tests/fuzz/targets/target.h"

#define STEPS_MAX 64u
#define TURNS_MAX 64u

struct member {
    struct fuzz_client client;
    struct emu_vclock_page *page;
};

static void begin(struct member *m, uint32_t nid)
{
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC, .abi_version = EMU_ABI_VERSION, .type = EMU_MSG_VIRTUAL_CLOCK };
    struct emu_fds fds;
    void *at;

    fuzz_client_open(&m->client);
    fuzz_client_attach(&m->client, nid, 1);
    fuzz_require(fuzz_client_ask(&m->client, &msg, NULL, 0, &fds) && msg.result == 0 && fds.n_fds == 2,
                 "a page of clocks comes");
    at = mmap(NULL, sizeof(*m->page), PROT_READ | PROT_WRITE, MAP_SHARED, fds.fd[0], 0);
    fuzz_require(at != MAP_FAILED, "it is mapped");
    m->page = at;
    emu_fds_close(&fds);
}

static void end(struct member *m)
{
    munmap(m->page, sizeof(*m->page));
    fuzz_client_close(&m->client);
}

/* A clock as a thread might leave it: a state, with times that the input gives. */
static void ask(struct member *m, struct fuzz_bytes *in)
{
    uint32_t index = fuzz_u8(in) % 4;
    struct emu_vclock *c = &m->page->clocks[index];
    uint8_t what = fuzz_u8(in);

    if (atomic_load(&m->page->n_taken) <= index)
        atomic_store(&m->page->n_taken, index + 1);
    atomic_store(&c->tid, (uint32_t)getpid());
    atomic_store(&c->now_ps, (what & 8) ? fuzz_u64(in) : atomic_load(&c->now_ps) + fuzz_u16(in));
    atomic_store(&c->until_ps, (what & 16) ? fuzz_u64(in) : EMU_VCLOCK_NEVER);
    atomic_store(&c->grid_ps, (what & 32) ? fuzz_u64(in) : 10000);
    atomic_store(&c->fence_key, what >> 6);
    atomic_store(&c->call, fuzz_u8(in) % (EMU_VCLOCK_CALLS + 1));
    atomic_store(&c->state, what & 7);
}

static void scribble(struct member *m, struct fuzz_bytes *in)
{
    uint64_t value = fuzz_u64(in);
    uint32_t at = fuzz_u16(in) % (sizeof(*m->page) / 8);

    ((volatile uint64_t *)m->page)[at] = value;
}

/* At a time that the input gives. */
static void post(struct member *m, struct fuzz_bytes *in)
{
    const struct emu_segment *segment = m->client.segment;
    uint64_t tail = atomic_load(&segment->tail);
    _Atomic uint64_t *times =
        (_Atomic uint64_t *)((char *)m->client.segment + segment->staging_off + EMU_STAGING_BYTES);
    struct emu_cmd cmd = { .op = fuzz_u8(in) % EMU_OP_END, .remote_nid = fuzz_u8(in) % 3, .length_bytes = 8 };

    atomic_store(&times[tail & (EMU_RING_SLOTS - 1)], (fuzz_u8(in) & 1) ? fuzz_u64(in) : fuzz_u16(in));
    fuzz_client_post(&m->client, &cmd, 1);
}

static void step(struct member *m, struct fuzz_bytes *in)
{
    uint8_t what = fuzz_u8(in);

    if (what < 70)
        ask(m, in);
    else if (what < 100)
        scribble(m, in);
    else
        post(m, in);
}

/* All other clocks are free, or have gone with their process. */
static bool goes_on(struct member *m, enum emu_vclock_state state)
{
    struct emu_vclock *c = &m->page->clocks[0];

    memset(m->page->clocks, 0, sizeof(m->page->clocks));
    atomic_store(&m->page->n_taken, 1);
    atomic_store(&c->tid, (uint32_t)getpid());
    atomic_store(&c->until_ps, EMU_VCLOCK_NEVER);
    fuzz_server_turn();
    atomic_store(&c->state, state);
    for (unsigned i = 0; i < TURNS_MAX && atomic_load(&c->state) != EMU_VCLOCK_RUNS; i++)
        fuzz_server_turn();
    return atomic_load(&c->state) == EMU_VCLOCK_RUNS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { data, size };
    struct member members[2];
    uint64_t before;

    fuzz_server_begin_virtual();
    begin(&members[0], 0);
    begin(&members[1], 1);
    before = atomic_load(&members[0].client.segment->head);
    for (unsigned i = 0; i < STEPS_MAX && in.left > 0; i++) {
        step(&members[fuzz_u8(&in) % 2], &in);
        fuzz_server_turn();
    }
    fuzz_count(atomic_load(&members[0].client.segment->head) > before);
    end(&members[0]);
    fuzz_require(goes_on(&members[1], EMU_VCLOCK_RETURNS), "who returns goes on");
    end(&members[1]);
    return 0;
}
