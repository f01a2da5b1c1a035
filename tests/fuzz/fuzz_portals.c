/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Portals process that means harm, beside its own job and beside another.
 *
 * For EMU_FUZZ_SECONDS (60) hostile members of one domain write random bytes over everything that they have mapped of
 * emunic's shared memory, their own interfaces and those of their peers, and go on calling Portals. Their peers in the
 * same domain do ordinary things and look at no result: whatever they get, each call has to return, and they have to
 * end. In another domain, on the same nodes of the same emunic, jobs of three processes put, get, swap and match, check
 * every byte and event, and end, one after the other. At the end emunic must be alive, must have let go of everything,
 * and must end cleanly. EMU_TEST_SEED repeats the choices of a run.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/portals_job.h"
#include "tests/fuzz/beside.h"
#include "tests/fuzz/choices.h"

#define ROUNDS     20u
#define JOB_PID    600u
#define MEMBER_PID 700u
#define VICTIMS    2u
#define HOSTILES   2u
#define MEMBERS    (VICTIMS + HOSTILES)
#define PT         5u
#define BYTES      8192u
#define MAPS_MAX   64u
#define LIFE_MS    1500u

static struct beside beside;

static struct counts {
    _Atomic uint64_t hostiles;
    _Atomic uint64_t strokes;
    _Atomic uint64_t mappings;      /* most that one had */
    _Atomic uint64_t calls;         /* of victims, returned */
    _Atomic uint64_t victims_ended; /* by themselves */
    _Atomic uint64_t victims_died;  /* by a signal, or emunic ended them */
} * counts;

/* ---- the job that is to be left alone ---- */

struct card {
    ptl_process_id_t id;
};

struct job {
    const struct fx_rank *rank;
    const struct card *cards;
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_eq_t own_eq;
    uint8_t *in;
    uint8_t *out;
    uint64_t word;
    ptl_process_id_t next;
    unsigned previous;
};

static ptl_handle_md_t job_bind(struct job *j, void *start, uint64_t length)
{
    ptl_md_t md = { .start = start,
                    .length = length,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_EVENT_START_DISABLE,
                    .eq_handle = j->own_eq };
    ptl_handle_md_t mdh;

    PJ(PtlMDBind(j->ni, md, PTL_RETAIN, &mdh));
    return mdh;
}

static void job_unlink(ptl_handle_md_t mdh)
{
    int rc;

    while ((rc = PtlMDUnlink(mdh)) == PTL_MD_IN_USE)
        sched_yield();
    pj_must(rc, "PtlMDUnlink");
}

static void job_round(struct job *j, unsigned round)
{
    uint64_t words[2] = { round + 1, 0 };
    ptl_md_t md = { .start = j->in,
                    .length = BYTES,
                    .threshold = 2,
                    .eq_handle = j->eq,
                    .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE |
                               AUTO_UNLINK_EVENT };
    ptl_handle_md_t put_md, get_md, swap_md, old_md, mdh;
    ptl_handle_me_t me;

    for (uint64_t i = 0; i < BYTES; i++)
        j->out[i] = beside_pattern(j->rank->rank, round, i);
    memset(j->in, 0xee, BYTES);
    put_md = job_bind(j, j->out, BYTES);
    get_md = job_bind(j, j->out, BYTES);
    swap_md = job_bind(j, &words[0], 8);
    old_md = job_bind(j, &words[1], 8);
    PJ(PtlMEAttach(j->ni, PT, pj_anybody(), round, 0, PTL_UNLINK, PTL_INS_BEFORE, &me));
    PJ(PtlMDAttach(me, md, PTL_UNLINK, &mdh));
    pthread_barrier_wait(j->rank->barrier);
    PJ(PtlPut(put_md, PTL_ACK_REQ, j->next, PT, 0, round, 0, round));
    pj_expect(j->own_eq, PTL_EVENT_SEND_END);
    FX_CHECK(pj_expect(j->own_eq, PTL_EVENT_ACK).mlength == BYTES);
    FX_CHECK(pj_expect(j->eq, PTL_EVENT_PUT_END).hdr_data == round);
    for (uint64_t i = 0; i < BYTES; i++)
        FX_CHECK(j->in[i] == beside_pattern(j->previous, round, i));
    pthread_barrier_wait(j->rank->barrier);
    memset(j->out, 0, BYTES);
    PJ(PtlGet(get_md, j->next, PT, 0, round, 0));
    if (IS_CRAY)
        pj_expect(j->own_eq, PTL_EVENT_SEND_END);
    pj_expect(j->own_eq, PTL_EVENT_REPLY_END);
    for (uint64_t i = 0; i < BYTES; i++)
        FX_CHECK(j->out[i] == beside_pattern(j->rank->rank, round, i)); /* what we put there */
    pj_expect(j->eq, PTL_EVENT_GET_END);
    pj_expect(j->eq, PTL_EVENT_UNLINK);
    PJ(PtlGetPut(old_md, swap_md, j->next, PT + 1, 0, 0, 0, 0));
    pj_expect(j->own_eq, PTL_EVENT_SEND_END);
    pj_expect(j->own_eq, PTL_EVENT_REPLY_END);
    FX_CHECK(words[1] == round);
    pj_expect(j->eq, PTL_EVENT_GETPUT_END);
    job_unlink(put_md);
    job_unlink(get_md);
    job_unlink(swap_md);
    job_unlink(old_md);
    pthread_barrier_wait(j->rank->barrier);
}

static int body_of_a_job(struct fx_rank *rank)
{
    struct card *cards = rank->shared;
    struct job j = { .rank = rank, .cards = cards, .previous = (rank->rank + rank->n_ranks - 1) % rank->n_ranks };
    ptl_md_t word = { .start = &j.word,
                      .length = 8,
                      .threshold = PTL_MD_THRESH_INF,
                      .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE };
    ptl_sr_value_t drops = -1;
    ptl_handle_md_t mdh;
    ptl_handle_me_t me;

    alarm(60); /* one that fails would leave the others at the barrier */
    j.ni = pj_open(rank->fx, (ptl_pid_t)(JOB_PID + rank->rank), &cards[rank->rank].id);
    PJ(PtlEQAlloc(j.ni, 64, NULL, &j.eq));
    PJ(PtlEQAlloc(j.ni, 64, NULL, &j.own_eq));
    j.in = malloc(BYTES);
    j.out = malloc(BYTES);
    word.eq_handle = j.eq;
    PJ(PtlMEAttach(j.ni, PT + 1, pj_anybody(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    PJ(PtlMDAttach(me, word, PTL_RETAIN, &mdh));
    pthread_barrier_wait(rank->barrier);
    j.next = cards[(rank->rank + 1) % rank->n_ranks].id;
    for (unsigned round = 0; round < ROUNDS; round++)
        job_round(&j, round);
    PJ(PtlNIStatus(j.ni, PTL_SR_DROP_COUNT, &drops));
    FX_CHECK(drops == 0);
    PtlFini();
    free(j.in);
    free(j.out);
    return 0;
}

/* ---- members of the hostile domain ---- */

static uint8_t member_memory[BYTES];

struct member {
    unsigned number;
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_me_t me;
    ptl_handle_md_t md;
};

static ptl_process_id_t id_of_member(unsigned number)
{
    return (ptl_process_id_t){ .nid = beside.fx.nids[number % beside.fx.n_ranks],
                               .pid = (ptl_pid_t)(MEMBER_PID + number) };
}

/* Opening may fail: the peers are at work. */
static bool open_member(struct member *m, unsigned number)
{
    ptl_md_t md = { .start = member_memory,
                    .length = BYTES,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE };
    int n_interfaces;

    *m = (struct member){ .number = number };
    pj_use_domain(HOSTILE_PTAG, HOSTILE_COOKIE);
    fx_set_node(id_of_member(number).nid);
    if (PtlInit(&n_interfaces) != PTL_OK ||
        PtlNIInit(PTL_IFACE_DEFAULT, id_of_member(number).pid, NULL, NULL, &m->ni) != PTL_OK ||
        PtlEQAlloc(m->ni, 128, NULL, &m->eq) != PTL_OK ||
        PtlMEAttach(m->ni, PT, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &m->me) != PTL_OK)
        return false;
    md.eq_handle = m->eq;
    return PtlMDAttach(m->me, md, PTL_RETAIN, &m->md) == PTL_OK;
}

/* One call, whatever it gives. */
static void call_something(struct member *m)
{
    ptl_process_id_t peer = id_of_member((unsigned)below(MEMBERS));
    ptl_md_t md = { .start = member_memory,
                    .length = below(BYTES),
                    .threshold = (int)below(4) - 1,
                    .eq_handle = m->eq,
                    .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE | AUTO_UNLINK_EVENT };
    ptl_handle_md_t mdh;
    ptl_handle_me_t me;
    ptl_event_t event;
    int which;

    switch (below(8)) {
    case 0:
    case 1:
        PtlPutRegion(m->md, 0, below(BYTES), one_in(2) ? PTL_ACK_REQ : NO_ACK, peer, PT, 0, below(4), below(64), 0);
        break;
    case 2:
        PtlGetRegion(m->md, 0, below(BYTES), peer, PT, 0, below(4), below(64));
        break;
    case 3:
        PtlMEMDPost(m->ni, m->me, pj_anybody(), below(4), one_in(2) ? 0 : 3, PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK,
                    &me, &mdh, one_in(2) ? PTL_EQ_NONE : m->eq);
        break;
    case 4:
        if (PtlMDBind(m->ni, md, PTL_RETAIN, &mdh) == PTL_OK) {
            PtlPut(mdh, PTL_ACK_REQ, peer, PT, 0, 0, 0, 0);
            for (unsigned i = 0; i < 20 && PtlMDUnlink(mdh) == PTL_MD_IN_USE; i++)
                sched_yield();
        }
        break;
    case 5:
        if (PtlMEInsert(m->me, pj_anybody(), 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me) == PTL_OK)
            PtlMEUnlink(me);
        break;
    case 6:
        PtlEQPoll(&m->eq, 1, 1, &event, &which);
        break;
    default:
        for (unsigned i = 0; i < 20; i++)
            PtlEQGet(m->eq, &event);
        break;
    }
}

static _Noreturn void be_a_victim(unsigned number, uint64_t own_seed)
{
    uint64_t end_ns = emu_clock_ns() + 1000000ull * (200 + own_seed % LIFE_MS);
    struct member m;

    choices_begin(own_seed);
    if (open_member(&m, number)) {
        while (emu_clock_ns() < end_ns) {
            call_something(&m);
            atomic_fetch_add(&counts->calls, 1);
        }
    }
    PtlFini();
    _exit(0);
}

struct map {
    uint8_t *at;
    uint64_t bytes;
};

/*
 * What this process can write of what others can see. Its own memory in a space file is left out, so that it lives on.
 */
static unsigned find_maps(struct map *maps)
{
    uintptr_t own = (uintptr_t)member_memory;
    void *heap = malloc(16);
    char line[512];
    unsigned n = 0;
    FILE *file = fopen("/proc/self/maps", "re");

    while (file && n < MAPS_MAX && fgets(line, sizeof(line), file)) {
        unsigned long begin, end;
        char rights[8];

        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || strncmp(rights, "rw-s", 4) != 0 ||
            !strstr(line, "memfd:"))
            continue;
        if ((own >= begin && own < end) || ((uintptr_t)heap >= begin && (uintptr_t)heap < end))
            continue;
        maps[n++] = (struct map){ (uint8_t *)begin, end - begin };
    }
    if (file)
        fclose(file);
    free(heap);
    return n;
}

static void scribble(const struct map *map)
{
    uint64_t first = map->bytes < 65536 ? map->bytes : 65536;
    uint64_t at = one_in(2) ? below(first) : one_in(2) ? below(first < 4096 ? first : 4096) : below(map->bytes);
    uint64_t number = odd_number();

    switch (below(8)) {
    case 0:
        fill_random(map->at + at, map->bytes - at < 4096 ? map->bytes - at : 4096);
        break;
    case 1:
        fill_random(map->at, first);
        break;
    case 2:
        flip_bits(map->at + at, 1, 1);
        break;
    default:
        at &= ~7ull;
        memcpy(map->at + at, &number, map->bytes - at < 8 ? map->bytes - at : 8);
        break;
    }
    atomic_fetch_add(&counts->strokes, 1);
}

/* First it behaves, so that it has its peers mapped. It is killed in the end. */
static _Noreturn void be_hostile(unsigned number, uint64_t own_seed)
{
    static struct map maps[MAPS_MAX];
    struct member m;

    choices_begin(own_seed);
    atomic_fetch_add(&counts->hostiles, 1);
    if (!open_member(&m, number))
        _exit(0);
    for (;;) {
        unsigned n;

        for (unsigned i = 0; i < 40; i++)
            call_something(&m);
        n = find_maps(maps);
        if (n > atomic_load(&counts->mappings))
            atomic_store(&counts->mappings, n);
        for (unsigned i = 0; n > 0 && i < 1 + below(30); i++)
            scribble(&maps[below(n)]);
    }
}

/* ---- the run ---- */

static void be_a_member(unsigned number, uint64_t own_seed)
{
    if (number < VICTIMS)
        be_a_victim(number, own_seed);
    be_hostile(number, own_seed);
}

static void note_end(unsigned number, int status)
{
    if (number < VICTIMS)
        atomic_fetch_add(status == 0 ? &counts->victims_ended : &counts->victims_died, 1);
}

static void test_jobs_beside_a_hostile_initiator_end_correctly(void **state)
{
    static const struct hostiles members = {
        .n = MEMBERS, .n_ending = VICTIMS, .life_ms = LIFE_MS, .body = be_a_member, .ended = note_end
    };

    (void)state;
    beside_run_jobs(&beside, &members, body_of_a_job);
    printf("# %llu jobs; %llu hostile processes, %llu strokes over at most %llu mappings; their peers: %llu calls, "
           "%llu ended, %llu died\n",
           (unsigned long long)beside.n_jobs, (unsigned long long)counts->hostiles, (unsigned long long)counts->strokes,
           (unsigned long long)counts->mappings, (unsigned long long)counts->calls,
           (unsigned long long)counts->victims_ended, (unsigned long long)counts->victims_died);
}

static void test_there_was_harm(void **state)
{
    (void)state;
    assert_true(beside.n_jobs > 0);
    assert_true(counts->hostiles > HOSTILES);
    assert_true(counts->strokes > 100);
    assert_true(counts->mappings > 0);
    assert_true(counts->calls > 100);
}

static void test_emunic_is_alive_and_holds_nothing(void **state)
{
    (void)state;
    beside_assert_nothing_left(&beside);
}

static int start(void **state)
{
    (void)state;
    counts = beside_start(&beside, 20261122, sizeof(*counts));
    return counts ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    return beside_stop(&beside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_beside_a_hostile_initiator_end_correctly),
        cmocka_unit_test(test_there_was_harm),
        cmocka_unit_test(test_emunic_is_alive_and_holds_nothing),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
