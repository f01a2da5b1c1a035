/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is taken back under a storm of transfers.
 *
 * One process, the target, registers memory; three others storm it with puts, gets and atomics of 8 bytes to 1 MiB. The
 * target deregisters and at once uses the memory for something else: fills it with a canary, unmaps it and maps it
 * anew, gives it back to the heap and takes it again, registers another part. From the return of GNI_MemDeregister()
 * not one byte may change and not one canary may be read, for as long as the others storm on with the old handle.
 *
 * The storming processes see success, "bad handle" or "peer gone"; never "outside the region", which would mean that
 * somebody touched memory that had gone; and each post completes exactly once.
 *
 * Shared between the processes: the handle of the round under a sequence count, and counters by which the target knows
 * that all have posted often enough before and after. What is in the target's memory at which time:
 *
 *   PATTERN  while it is registered          bytes that puts bring differ from CANARY
 *   CANARY   after the deregistration
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "libugni/src/handle_bits.h"
#include "tests/common/gni.h"
#include "tests/common/proc.h"
#include "tests/common/seed.h"

#define N_STORMING   3u
#define REGION_BYTES (1536u << 10)
#define LENGTH_MAX   (1u << 20)
#define AMO_BYTES    4096u /* the region's first bytes are for atomics */
#define PATTERN      0x33
#define CANARY       0xc5
#define IN_FLIGHT    4u
#define ROUNDS       150u
#define ROUND_NS     50000000ull /* at most, before and after the deregistration */
#define PATIENCE_NS  30000000000ull

enum { STATUS_OK = 0, STATUS_PEER_GONE = 2, STATUS_BAD_HANDLE = 3 };

/* In fx_rank.shared. */
struct board {
    _Atomic uint64_t version; /* odd while the rest is being changed */
    _Atomic uint64_t qword1;
    _Atomic uint64_t qword2;
    _Atomic uint64_t addr;
    _Atomic uint32_t nic_addr;
    _Atomic uint32_t is_over;
    _Atomic uint32_t n_ready; /* storming processes that have what they need */
    struct {
        _Alignas(64) _Atomic uint64_t posts; /* that have completed */
        _Atomic uint64_t ok;
        _Atomic uint64_t refused;
    } storming[N_STORMING];
};

static struct fx fx;
static uint64_t seed;

/* ---- those who storm ---- */

struct slot {
    gni_post_descriptor_t d;
    bool is_busy;
    uint8_t *local; /* LENGTH_MAX, for gets and results */
};

struct stormer {
    struct board *board;
    unsigned number;
    struct emu_random random;
    struct gx_side side;
    uint8_t *source; /* what puts bring */
    uint8_t *memory; /* all local memory */
    gni_mem_handle_t memory_hndl;
    struct slot slots[IN_FLIGHT];
    uint32_t bound_to;
    bool is_bound;
};

struct aim {
    gni_mem_handle_t hndl;
    uint64_t addr;
    uint32_t nic_addr;
};

static struct aim read_board(struct board *board)
{
    struct aim aim;
    uint64_t version;

    do {
        version = atomic_load(&board->version);
        aim.hndl.qword1 = atomic_load(&board->qword1);
        aim.hndl.qword2 = atomic_load(&board->qword2);
        aim.addr = atomic_load(&board->addr);
        aim.nic_addr = atomic_load(&board->nic_addr);
    } while ((version & 1) != 0 || atomic_load(&board->version) != version);
    return aim;
}

static uint64_t random_length(struct emu_random *random)
{
    /* Of all sizes; every third is so long that its process is often interrupted in the middle. */
    uint64_t most = emu_random_below(random, 3) == 0 ? LENGTH_MAX : 8ull << emu_random_below(random, 18);

    return (most / 2 + emu_random_below(random, most / 2 + 1) + 7) & ~7ull;
}

static void choose(struct stormer *s, struct slot *slot)
{
    struct aim aim = read_board(s->board);
    uint64_t length = random_length(&s->random);
    uint64_t room = REGION_BYTES - AMO_BYTES - length;
    uint64_t offset = AMO_BYTES + (emu_random_below(&s->random, room + 1) & ~7ull);

    if (!s->is_bound || s->bound_to != aim.nic_addr) {
        if (s->is_bound)
            GNI_EpUnbind(s->side.ep);
        FX_CHECK(GNI_EpBind(s->side.ep, aim.nic_addr, 1) == GNI_RC_SUCCESS);
        s->bound_to = aim.nic_addr;
        s->is_bound = true;
    }
    slot->d = (gni_post_descriptor_t){
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_mem_hndl = s->memory_hndl,
        .remote_mem_hndl = aim.hndl,
        .remote_addr = aim.addr + offset,
        .length = length,
    };
    switch (emu_random_below(&s->random, 8)) {
    case 0:
    case 1:
        slot->d.type = GNI_POST_FMA_PUT;
        break;
    case 2:
    case 3:
        slot->d.type = GNI_POST_RDMA_PUT;
        break;
    case 4:
        slot->d.type = GNI_POST_FMA_GET;
        break;
    case 5:
        slot->d.type = GNI_POST_RDMA_GET;
        break;
    default:
        slot->d.type = GNI_POST_AMO;
        slot->d.amo_cmd = emu_random_below(&s->random, 2) ? GNI_FMA_ATOMIC_FADD : GNI_FMA_ATOMIC_ADD;
        slot->d.first_operand = 1 + emu_random_below(&s->random, 1000);
        slot->d.remote_addr = aim.addr + 8 * emu_random_below(&s->random, AMO_BYTES / 8);
        slot->d.length = 8;
        break;
    }
    slot->d.local_addr =
        (uint64_t)(uintptr_t)(slot->d.type == GNI_POST_FMA_PUT || slot->d.type == GNI_POST_RDMA_PUT ? s->source :
                                                                                                      slot->local);
}

static bool is_get(const gni_post_descriptor_t *d)
{
    return d->type == GNI_POST_FMA_GET || d->type == GNI_POST_RDMA_GET;
}

/* Takes one completion if there is one: it must be that of a post under way, with one of the documented ends. */
static bool settle(struct stormer *s)
{
    gni_post_descriptor_t *d = NULL;
    gni_cq_entry_t entry = 0;
    gni_return_t rc = GNI_CqGetEvent(s->side.src_cq, &entry);
    unsigned status = (unsigned)GNI_CQ_GET_STATUS(entry);
    struct slot *slot;

    if (rc == GNI_RC_NOT_DONE)
        return false;
    FX_CHECK(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR);
    if (status != STATUS_OK && status != STATUS_PEER_GONE && status != STATUS_BAD_HANDLE)
        fprintf(stderr, "status %u\n", status);
    FX_CHECK(status == STATUS_OK || status == STATUS_PEER_GONE || status == STATUS_BAD_HANDLE);
    FX_CHECK((rc == GNI_RC_SUCCESS) == (status == STATUS_OK));
    FX_CHECK(GNI_GetCompleted(s->side.src_cq, entry, &d) == rc);
    slot = (struct slot *)((char *)d - offsetof(struct slot, d));
    FX_CHECK(slot >= s->slots && slot < s->slots + IN_FLIGHT && slot->is_busy);
    FX_CHECK(!is_get(d) || !memchr(slot->local, CANARY, d->length));
    memset(slot->local, 0, d->length); /* also after an atomic: sums may have any bytes */
    slot->is_busy = false;
    atomic_fetch_add(status == STATUS_OK ? &s->board->storming[s->number].ok : &s->board->storming[s->number].refused,
                     1);
    atomic_fetch_add(&s->board->storming[s->number].posts, 1);
    return true;
}

static void settle_all(struct stormer *s)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    unsigned n_busy;

    do {
        n_busy = 0;
        for (unsigned i = 0; i < IN_FLIGHT; i++)
            n_busy += s->slots[i].is_busy;
        FX_CHECK(emu_clock_ns() < end_ns); /* a completion that never came */
    } while (n_busy > 0 && (settle(s) || true));
    FX_CHECK(!settle(s));
}

static void open_stormer(struct stormer *s, struct fx_rank *rank, unsigned number)
{
    uint64_t bytes = (1 + IN_FLIGHT) * (uint64_t)LENGTH_MAX;

    *s = (struct stormer){ .board = rank->shared, .number = number, .random.state = seed + 1 + number };
    /* One of them gives the larger ones to emunic, whatever the path of the others. */
    if (number == 1)
        setenv("EMUNIC_DIRECT_LIMIT", "32768", 1);
    gx_open(&s->side, rank->fx, rank->fx->nids[1 + number], 10 + number, 0);
    FX_CHECK(GNI_EpCreate(s->side.nic, s->side.src_cq, &s->side.ep) == GNI_RC_SUCCESS);
    s->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FX_CHECK(s->memory != MAP_FAILED);
    FX_CHECK(GNI_MemRegister(s->side.nic, (uint64_t)(uintptr_t)s->memory, bytes, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                             &s->memory_hndl) == GNI_RC_SUCCESS);
    s->source = s->memory;
    memset(s->source, 0x40 + (int)number, LENGTH_MAX);
    for (unsigned i = 0; i < IN_FLIGHT; i++)
        s->slots[i].local = s->memory + (1 + i) * (uint64_t)LENGTH_MAX;
    atomic_fetch_add(&s->board->n_ready, 1);
}

static int storm(struct fx_rank *rank, unsigned number)
{
    static struct stormer s;

    open_stormer(&s, rank, number);
    while (atomic_load(&s.board->version) == 0)
        sched_yield();
    while (!atomic_load(&s.board->is_over)) {
        for (unsigned i = 0; i < IN_FLIGHT; i++) {
            struct slot *slot = &s.slots[i];
            gni_return_t rc;

            if (slot->is_busy)
                continue;
            choose(&s, slot);
            slot->is_busy = true;
            rc = slot->d.type == GNI_POST_RDMA_PUT || slot->d.type == GNI_POST_RDMA_GET ?
                     GNI_PostRdma(s.side.ep, &slot->d) :
                     GNI_PostFma(s.side.ep, &slot->d);
            FX_CHECK(rc == GNI_RC_SUCCESS);
            settle(&s);
        }
        settle(&s);
    }
    settle_all(&s);
    return 0;
}

/* ---- the one who is stormed ---- */

struct region {
    uint8_t *mem;
    bool is_heap;
    gni_mem_handle_t hndl;
};

static void publish(struct board *board, const gni_mem_handle_t *hndl, const void *addr, uint32_t nic_addr)
{
    atomic_fetch_add(&board->version, 1);
    atomic_store(&board->qword1, hndl->qword1);
    atomic_store(&board->qword2, hndl->qword2);
    atomic_store(&board->addr, (uint64_t)(uintptr_t)addr);
    atomic_store(&board->nic_addr, nic_addr);
    atomic_fetch_add(&board->version, 1);
}

static uint64_t posts_of(const struct board *board, unsigned number)
{
    return atomic_load(&board->storming[number].posts);
}

/*
 * Until every one of them has completed some more posts, or the time of a round is over; `look` is called all the time.
 */
static void let_them_storm(const struct board *board, uint64_t n_posts, void (*look)(const struct region *region),
                           const struct region *region)
{
    uint64_t end_ns = emu_clock_ns() + ROUND_NS;
    uint64_t first[N_STORMING];
    bool all;

    for (unsigned i = 0; i < N_STORMING; i++)
        first[i] = posts_of(board, i);
    do {
        all = true;
        for (unsigned i = 0; i < N_STORMING; i++)
            all = all && posts_of(board, i) - first[i] >= n_posts;
        if (look)
            look(region);
        else
            sched_yield();
    } while (!all && emu_clock_ns() < end_ns);
}

static void map_region(struct region *r, void *where)
{
    r->mem =
        mmap(where, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);
    FX_CHECK(r->mem != MAP_FAILED);
    r->is_heap = false;
}

static void take_from_heap(struct region *r)
{
    r->mem = aligned_alloc(4096, REGION_BYTES);
    FX_CHECK(r->mem);
    r->is_heap = true;
}

static void drop_region(struct region *r)
{
    if (r->is_heap)
        free(r->mem);
    else
        munmap(r->mem, REGION_BYTES);
}

static void register_region(const struct gx_side *side, struct region *r)
{
    FX_CHECK(GNI_MemRegister(side->nic, (uint64_t)(uintptr_t)r->mem, REGION_BYTES, NULL, GNI_MEM_READWRITE,
                             (uint32_t)-1, &r->hndl) == GNI_RC_SUCCESS);
}

static bool has_only_canaries(const uint8_t *mem, uint64_t bytes)
{
    return mem[0] == CANARY && memcmp(mem, mem + 1, bytes - 1) == 0;
}

static void look_at_canary(const struct region *region)
{
    FX_CHECK(has_only_canaries(region->mem, REGION_BYTES));
}

/* What becomes of the memory once it is not registered any more. Leaves a region of canaries that is mapped. */
static void use_otherwise(const struct gx_side *side, struct region *r, unsigned way)
{
    gni_mem_handle_t part;

    switch (way) {
    case 1: /* gone, and other pages in its place */
        if (r->is_heap) {
            free(r->mem);
            take_from_heap(r);
        } else {
            munmap(r->mem, REGION_BYTES);
            map_region(r, r->mem);
        }
        memset(r->mem, CANARY, REGION_BYTES);
        break;
    case 2: /* other pages at once, without a hole in between */
        if (!r->is_heap)
            map_region(r, r->mem);
        memset(r->mem, CANARY, REGION_BYTES);
        break;
    case 3: /* another registration, of a part of it, which nobody has been told */
        memset(r->mem, CANARY, REGION_BYTES);
        FX_CHECK(GNI_MemRegister(side->nic, (uint64_t)(uintptr_t)r->mem, REGION_BYTES / 2, NULL, GNI_MEM_READWRITE,
                                 (uint32_t)-1, &part) == GNI_RC_SUCCESS);
        look_at_canary(r);
        FX_CHECK(GNI_MemDeregister(side->nic, &part) == GNI_RC_SUCCESS);
        break;
    default: /* the same pages, at once */
        memset(r->mem, CANARY, REGION_BYTES);
        break;
    }
}

static int be_stormed(struct fx_rank *rank)
{
    struct board *board = rank->shared;
    struct emu_random random = { .state = seed };
    struct gx_side side;

    gx_open(&side, rank->fx, rank->fx->nids[0], 1, 0);
    while (atomic_load(&board->n_ready) < N_STORMING)
        sched_yield();
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct region r;

        if (emu_random_below(&random, 2))
            take_from_heap(&r);
        else
            map_region(&r, NULL);
        memset(r.mem, PATTERN, REGION_BYTES);
        register_region(&side, &r);
        publish(board, &r.hndl, r.mem, side.nic_addr);
        let_them_storm(board, emu_random_below(&random, 60), NULL, NULL);
        FX_CHECK(GNI_MemDeregister(side.nic, &r.hndl) == GNI_RC_SUCCESS);
        use_otherwise(&side, &r, (unsigned)emu_random_below(&random, 6));
        look_at_canary(&r);
        let_them_storm(board, 20, look_at_canary, &r);
        drop_region(&r);
    }
    atomic_store(&board->is_over, 1);
    gx_close(&side);
    return 0;
}

static int body_storm(struct fx_rank *rank)
{
    alarm(100);
    return rank->rank == 0 ? be_stormed(rank) : storm(rank, rank->rank - 1);
}

/* Both ends must have happened, or the storm was none. */
static void expect_a_storm(const struct board *board)
{
    for (unsigned i = 0; i < N_STORMING; i++) {
        printf("# process %u: %llu done, %llu refused\n", i, (unsigned long long)atomic_load(&board->storming[i].ok),
               (unsigned long long)atomic_load(&board->storming[i].refused));
        assert_true(atomic_load(&board->storming[i].ok) > 0);
        assert_true(atomic_load(&board->storming[i].refused) > 0);
    }
}

static unsigned run_storm(int (*body)(struct fx_rank *rank))
{
    struct fx_ranks ranks;
    unsigned n_failed;

    fx_spawn(&fx, 1 + N_STORMING, body, NULL, &ranks);
    while (!fx_is_over(&ranks) && ranks.n_failed == 0)
        sched_yield();
    if (ranks.n_failed > 0) {
        for (unsigned i = 0; i < ranks.n_ranks; i++) {
            if (ranks.pids[i] > 0)
                kill(ranks.pids[i], SIGKILL);
        }
    } else {
        expect_a_storm(ranks.shared);
    }
    n_failed = ranks.n_failed;
    fx_join(&ranks);
    return n_failed;
}

static void test_nothing_touches_memory_after_its_deregistration(void **state)
{
    (void)state;
    seed = seeded(81).state;
    assert_int_equal(run_storm(body_storm), 0);
}

/* ---- the same number again ---- */

#define REUSES 12u

/*
 * All handles of the node but a few are taken, so that the number of the region comes back soon, with another
 * generation and at the same address. Its new owner is not in the storm's way.
 */
static int be_stormed_at_one_number(struct fx_rank *rank)
{
    static gni_mem_handle_t taken[EMU_MDH_COUNT];
    struct board *board = rank->shared;
    struct emu_random random = { .state = seed };
    unsigned n_taken = 0;
    struct region r;
    struct gx_side side;

    gx_open(&side, rank->fx, rank->fx->nids[0], 1, 0);
    while (GNI_MemRegister(side.nic, (uint64_t)(uintptr_t)side.mem, 8, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                           &taken[n_taken]) == GNI_RC_SUCCESS)
        n_taken++;
    FX_CHECK(n_taken > 100);
    FX_CHECK(GNI_MemDeregister(side.nic, &taken[--n_taken]) == GNI_RC_SUCCESS);
    while (atomic_load(&board->n_ready) < N_STORMING)
        sched_yield();
    map_region(&r, NULL);
    for (unsigned i = 0; i < REUSES; i++) {
        gni_mem_handle_t old;

        memset(r.mem, PATTERN, REGION_BYTES);
        register_region(&side, &r);
        publish(board, &r.hndl, r.mem, side.nic_addr);
        let_them_storm(board, 1 + emu_random_below(&random, 40), NULL, NULL);
        old = r.hndl;
        FX_CHECK(GNI_MemDeregister(side.nic, &r.hndl) == GNI_RC_SUCCESS);
        memset(r.mem, CANARY, REGION_BYTES);
        register_region(&side, &r);
        FX_CHECK(r.hndl.qword1 == old.qword1); /* number and address */
        FX_CHECK(r.hndl.qword2 != old.qword2); /* generation */
        let_them_storm(board, 30, look_at_canary, &r);
        FX_CHECK(GNI_MemDeregister(side.nic, &r.hndl) == GNI_RC_SUCCESS);
        look_at_canary(&r);
    }
    atomic_store(&board->is_over, 1);
    return 0;
}

static int body_storm_at_one_number(struct fx_rank *rank)
{
    alarm(100);
    return rank->rank == 0 ? be_stormed_at_one_number(rank) : storm(rank, rank->rank - 1);
}

static void test_next_registration_of_a_number_gets_nothing_meant_for_the_last(void **state)
{
    (void)state;
    seed = seeded(82).state;
    assert_int_equal(run_storm(body_storm_at_one_number), 0);
}

/* ---- the owner dies ---- */

#define DEATHS 12u

/* Registers a region and waits for its end. */
static void live_until_killed(struct fx_rank *rank)
{
    struct board *board = rank->shared;
    struct gx_side side;
    struct region r;

    gx_open(&side, rank->fx, rank->fx->nids[0], 1, 0);
    map_region(&r, NULL);
    memset(r.mem, PATTERN, REGION_BYTES);
    register_region(&side, &r);
    publish(board, &r.hndl, r.mem, side.nic_addr);
    for (;;)
        pause();
}

static int body_owner_dies(struct fx_rank *rank)
{
    struct board *board = rank->shared;
    struct emu_random random = { .state = seed };

    alarm(100);
    if (rank->rank != 0)
        return storm(rank, rank->rank - 1);
    while (atomic_load(&board->n_ready) < N_STORMING)
        sched_yield();
    for (unsigned i = 0; i < DEATHS; i++) {
        uint64_t version = atomic_load(&board->version);
        pid_t pid = fork();
        int status;

        FX_CHECK(pid >= 0);
        if (pid == 0)
            live_until_killed(rank);
        while (atomic_load(&board->version) < version + 2) {
            FX_CHECK(waitpid(pid, &status, WNOHANG) == 0);
            sched_yield();
        }
        let_them_storm(board, 1 + emu_random_below(&random, 40), NULL, NULL);
        kill(pid, SIGKILL);
        FX_CHECK(waitpid(pid, &status, 0) == pid);
        let_them_storm(board, 10, NULL, NULL);
    }
    atomic_store(&board->is_over, 1);
    return 0;
}

static void test_death_of_the_owner_ends_each_transfer_once(void **state)
{
    (void)state;
    seed = seeded(83).state;
    assert_int_equal(run_storm(body_owner_dies), 0);
}

static int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_touches_memory_after_its_deregistration),
        cmocka_unit_test(test_next_registration_of_a_number_gets_nothing_meant_for_the_last),
        cmocka_unit_test(test_death_of_the_owner_ends_each_transfer_once),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
