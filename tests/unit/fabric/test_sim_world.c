/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several processes that simulate together, here as threads that talk through memory: the same bits as one process,
 * whatever the numbers of processes and of their threads. How MPI carries the same is tests/integration/cli's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "tests/unit/fabric/fixture.h"

#define PROCESSES_MAX 4
#define REDUCED_MAX   8192

/* ---- processes that are threads ---- */

struct job {
    uint32_t size;
    pthread_barrier_t meeting;
    const struct emu_sim_mail *posted[PROCESSES_MAX][PROCESSES_MAX]; /* by sender, then receiver */
    uint64_t values[PROCESSES_MAX][REDUCED_MAX];
    uint64_t n_exchanges;
};

struct process {
    struct job *job;
    struct emu_sim_world world;
};

static uint64_t combine(enum emu_sim_reduction how, uint64_t a, uint64_t b)
{
    if (how == EMU_SIM_SUM)
        return a + b;
    return (how == EMU_SIM_LEAST) == (a < b) ? a : b;
}

static void reduce(void *ctx, enum emu_sim_reduction how, uint64_t *values, size_t n)
{
    struct process *process = ctx;
    struct job *job = process->job;

    assert_true(n <= REDUCED_MAX);
    memcpy(job->values[process->world.rank], values, n * sizeof(*values));
    pthread_barrier_wait(&job->meeting);
    for (size_t i = 0; i < n; i++) {
        values[i] = job->values[0][i];
        for (uint32_t rank = 1; rank < job->size; rank++)
            values[i] = combine(how, values[i], job->values[rank][i]);
    }
    pthread_barrier_wait(&job->meeting);
}

static void exchange(void *ctx, struct emu_sim_mail *const *mails, uint32_t n_mails, uint64_t *least)
{
    struct process *process = ctx;
    struct job *job = process->job;
    uint32_t rank = process->world.rank;

    for (uint32_t i = 0; i < n_mails; i++)
        job->posted[rank][mails[i]->rank] = mails[i];
    reduce(ctx, EMU_SIM_LEAST, least, 1);
    for (uint32_t i = 0; i < n_mails; i++) {
        const struct emu_sim_mail *from = job->posted[mails[i]->rank][rank];
        uint64_t bytes;

        assert_non_null(from); /* who sends here is sent to */
        memcpy(&bytes, from->out, sizeof(bytes));
        if (bytes > mails[i]->in_room) {
            mails[i]->in = realloc(mails[i]->in, bytes);
            assert_non_null(mails[i]->in);
            mails[i]->in_room = bytes;
        }
        memcpy(mails[i]->in, from->out, bytes);
    }
    if (rank == 0)
        job->n_exchanges++;
    pthread_barrier_wait(&job->meeting);
}

/* ---- a run ---- */

struct scene {
    const char *spec;
    struct emu_generator_options traffic;
    uint64_t ns;          /* of which two fifths are not counted */
    uint32_t dead_router; /* 0: none */
};

/* All that comes of it. */
struct result {
    enum emu_sim_stop stop;
    uint64_t end_ps;
    struct emu_sim_totals totals;
    struct emu_histogram latency;
    uint64_t nodes_hash;
    uint64_t links_hash;
};

struct member {
    struct process process;
    const struct scene *scene;
    const struct emu_machine *m;
    const struct emu_fault_map *faults;
    uint32_t n_threads;
    size_t memory;
    uint32_t n_owned;
    struct result result;
};

static uint64_t hash_of_nodes(const struct emu_machine *m, const struct emu_generator *gen)
{
    uint64_t hash = 0;

    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_node_figures f;

        emu_generator_node(gen, nid, &f);
        hash = emu_random_mix(hash ^ f.sent ^ f.received_units << 20 ^ f.lost << 50);
        hash = emu_random_mix(hash ^ f.received_latency_ps ^ f.received_hops << 40);
    }
    return hash;
}

static uint64_t hash_of_links(const struct emu_machine *m, const struct emu_sim *sim, const struct emu_sim_world *world)
{
    uint64_t hash = 0;

    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_sim_link_stats s;
        uint64_t figures[4 + EMU_VCS_MAX];

        emu_sim_link_stats(sim, id, &s);
        figures[0] = s.packets;
        figures[1] = s.busy_ps;
        figures[2] = s.stall_ps;
        figures[3] = s.lanes_up;
        memcpy(&figures[4], s.vc_occupancy, sizeof(s.vc_occupancy));
        if (world)
            world->reduce(world->ctx, EMU_SIM_SUM, figures, 4 + EMU_VCS_MAX);
        for (size_t i = 0; i < 4 + EMU_VCS_MAX; i++)
            hash = emu_random_mix(hash ^ figures[i]) + hash;
    }
    return hash;
}

static void *run_member(void *arg)
{
    struct member *member = arg;
    const struct emu_sim_world *world = member->process.job->size > 1 ? &member->process.world : NULL;
    struct emu_sim_options options = {
        .seed = 5, .n_threads = member->n_threads, .has_ends = true, .count_occupancy = true, .world = world
    };
    struct emu_generator_options traffic = member->scene->traffic;
    struct result *result = &member->result;
    struct emu_generator *gen;
    struct emu_sim *sim;

    traffic.seed = 5;
    traffic.is_shared = world;
    assert_int_equal(emu_generator_create(member->m, &traffic, &gen, NULL, 0), 0);
    assert_int_equal(emu_sim_create(member->m, member->faults, emu_generator_traffic(gen), &options, &sim), 0);
    if (world)
        emu_generator_start(gen, sim);
    (void)emu_sim_run(sim, member->scene->ns * 400);
    emu_sim_reset_stats(sim);
    result->stop = emu_sim_run(sim, member->scene->ns * 1000);
    if (result->stop == EMU_SIM_EMPTY) /* once more changes nothing */
        assert_int_equal(emu_sim_run(sim, member->scene->ns * 1000), EMU_SIM_EMPTY);
    result->end_ps = emu_sim_now(sim);
    emu_sim_totals(sim, &result->totals);
    if (world)
        emu_generator_gather(gen, sim, world);
    emu_generator_latency(gen, EMU_LATENCY_CREATED, &result->latency);
    result->nodes_hash = hash_of_nodes(member->m, gen);
    result->links_hash = hash_of_links(member->m, sim, world);
    member->memory = emu_sim_memory(sim);
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(member->m); nid++)
        member->n_owned += emu_sim_owns(sim, nid);
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    return NULL;
}

/* The result of process 0; what they hold into members_out. */
static struct result run(const struct scene *scene, uint32_t size, uint32_t n_threads, struct member *members_out)
{
    static struct job job;
    struct emu_machine *m = load(scene->spec);
    struct emu_fault_map *faults = NULL;
    pthread_t threads[PROCESSES_MAX];

    memset(&job, 0, sizeof(job));
    job.size = size;
    pthread_barrier_init(&job.meeting, NULL, size);
    if (scene->dead_router != 0) {
        assert_int_equal(emu_fault_map_create(m, &faults), 0);
        assert_int_equal(emu_fault_map_set_router(faults, scene->dead_router, false), 0);
    }
    for (uint32_t rank = 0; rank < size; rank++) {
        struct member *member = &members_out[rank];

        *member = (struct member){
            .process = { .job = &job }, .scene = scene, .m = m, .faults = faults, .n_threads = n_threads
        };
        member->process.world = (struct emu_sim_world){
            .ctx = &member->process, .rank = rank, .size = size, .exchange = exchange, .reduce = reduce
        };
        assert_int_equal(pthread_create(&threads[rank], NULL, run_member, member), 0);
    }
    for (uint32_t rank = 0; rank < size; rank++)
        pthread_join(threads[rank], NULL);
    pthread_barrier_destroy(&job.meeting);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
    return members_out[0].result;
}

/* Events, too: no process does what another has done. */
static void assert_same_bits(const struct scene *scene)
{
    static const uint32_t shares[][2] = { { 1, 3 }, { 2, 1 }, { 3, 1 }, { 4, 1 }, { 2, 2 }, { 3, 2 }, { 4, 2 } };
    struct member members[PROCESSES_MAX];
    struct result one = run(scene, 1, 1, members);

    assert_true(one.totals.delivered > 100);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        struct result other = run(scene, shares[i][0], shares[i][1], members);

        assert_int_equal(other.totals.trace_hash, one.totals.trace_hash);
        assert_memory_equal(&other, &one, sizeof(one));
        for (uint32_t rank = 1; rank < shares[i][0]; rank++) {
            assert_int_equal(members[rank].result.stop, one.stop);
            assert_int_equal(members[rank].result.end_ps, one.end_ps);
            assert_memory_equal(&members[rank].result.totals, &one.totals, sizeof(one.totals));
        }
    }
}

/* ---- tests ---- */

#define SMALL "aries:groups=3,chassis=2,blades=4"

static void test_dragonfly_adaptive(void **state)
{
    struct scene scene = { .spec = SMALL, .ns = 2000, .traffic = { .gap_ps = 12000, .mode = EMU_MODE_ADAPTIVE_0 } };

    (void)state;
    assert_same_bits(&scene);
}

/* Loads that neighbours tell each other every few clocks, and traffic that needs them. */
static void test_dragonfly_loads_of_neighbours(void **state)
{
    struct scene scene = { .spec = SMALL ",router.load_period_clocks=3",
                           .ns = 2000,
                           .traffic = { .gap_ps = 9000, .pattern = EMU_PATTERN_SHIFT, .mode = EMU_MODE_ADAPTIVE_0 } };

    (void)state;
    assert_same_bits(&scene);
    scene.spec = SMALL ",router.load_period_clocks=200";
    assert_same_bits(&scene);
}

static void test_dragonfly_with_responses(void **state)
{
    struct scene scene = {
        .spec = "aries:groups=4,chassis=1,blades=4",
        .ns = 2000,
        .traffic = { .pattern = EMU_PATTERN_TORNADO, .mode = EMU_MODE_MINIMAL, .response_units = 1, .window = 6 }
    };

    (void)state;
    assert_same_bits(&scene);
}

static void test_torus(void **state)
{
    struct scene scene = { .spec = "seastar:x=5,y=4,z=4",
                           .ns = 12000,
                           .traffic = { .gap_ps = 90000, .pattern = EMU_PATTERN_NEIGHBOUR } };

    (void)state;
    assert_same_bits(&scene);
    scene.traffic.gap_ps = 0;
    assert_same_bits(&scene);
}

static void test_torus_with_bubbles(void **state)
{
    struct scene scene = { .spec = "bluegene-l:x=4,y=4,z=4", .ns = 30000, .traffic = { .gap_ps = 4000000 } };

    (void)state;
    assert_same_bits(&scene);
}

static void test_gemini(void **state)
{
    struct scene scene = { .spec = "gemini:x=4,y=4,z=3",
                           .ns = 3000,
                           .traffic = { .gap_ps = 30000, .pattern = EMU_PATTERN_TRANSPOSE } };

    (void)state;
    assert_same_bits(&scene);
}

static void test_hypercube(void **state)
{
    struct scene scene = { .spec = "x1",
                           .ns = 2000,
                           .traffic = { .gap_ps = 40000, .pattern = EMU_PATTERN_COMPLEMENT } };

    (void)state;
    assert_same_bits(&scene);
}

static void test_fat_tree(void **state)
{
    struct scene scene = { .spec = "xd1-fat-tree", .ns = 10000, .traffic = { .gap_ps = 500000 } };

    (void)state;
    assert_same_bits(&scene);
}

static void test_graph(void **state)
{
    struct scene scene = { .spec = "dragonfly-plus", .ns = 5000, .traffic = { .gap_ps = 60000 } };

    (void)state;
    assert_same_bits(&scene);
}

/* The end of all traffic comes at the same time everywhere. */
static void test_traffic_that_ends(void **state)
{
    struct scene scene = { .spec = "x1:dimensions=3,nodes_per_vertex=2",
                           .ns = 2000,
                           .traffic = { .pattern = EMU_PATTERN_ALL_TO_ALL, .rounds = 10 } };
    struct member members[PROCESSES_MAX];

    (void)state;
    assert_int_equal(run(&scene, 3, 1, members).stop, EMU_SIM_EMPTY);
    assert_same_bits(&scene);
}

/* Who sent a lost packet may be in any process. */
static void test_lost_packets(void **state)
{
    struct scene scene = {
        .spec = SMALL, .ns = 3000, .traffic = { .gap_ps = 20000, .response_units = 1, .window = 4 }, .dead_router = 9
    };
    struct member members[PROCESSES_MAX];
    struct result one = run(&scene, 1, 1, members);

    (void)state;
    assert_true(one.totals.unroutable + one.totals.lost > 0);
    assert_same_bits(&scene);
}

/* Each node belongs to one process, and each process holds its part. */
static void test_memory_is_shared_out(void **state)
{
    struct scene scene = { .spec = "aries:groups=8", .ns = 60, .traffic = { .gap_ps = 1e9 } };
    struct member members[PROCESSES_MAX];
    size_t whole;
    uint32_t n_nodes = 0;

    (void)state;
    (void)run(&scene, 1, 1, members);
    whole = members[0].memory;
    (void)run(&scene, 4, 1, members);
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_true(members[rank].memory < whole / 2);
        assert_int_equal(members[rank].n_owned, 768); /* whole groups, two of eight */
        n_nodes += members[rank].n_owned;
    }
    assert_int_equal(n_nodes, 3072);
}

static void test_too_many_processes(void **state)
{
    struct emu_machine *m = load("x1:dimensions=1");
    struct emu_generator_options traffic = { .gap_ps = 1e6 };
    struct emu_sim_world world = { .rank = 0, .size = 3 };
    struct emu_sim_options options = { .n_threads = 1, .world = &world };
    struct emu_generator *gen;
    struct emu_sim *sim;

    (void)state;
    assert_int_equal(emu_generator_create(m, &traffic, &gen, NULL, 0), 0);
    assert_int_equal(emu_sim_create(m, NULL, emu_generator_traffic(gen), &options, &sim), -EINVAL);
    world.size = 2;
    options.n_threads = 2;
    assert_int_equal(emu_sim_create(m, NULL, emu_generator_traffic(gen), &options, &sim), -EINVAL);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dragonfly_adaptive),
        cmocka_unit_test(test_dragonfly_loads_of_neighbours),
        cmocka_unit_test(test_dragonfly_with_responses),
        cmocka_unit_test(test_torus),
        cmocka_unit_test(test_torus_with_bubbles),
        cmocka_unit_test(test_gemini),
        cmocka_unit_test(test_hypercube),
        cmocka_unit_test(test_fat_tree),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_traffic_that_ends),
        cmocka_unit_test(test_lost_packets),
        cmocka_unit_test(test_memory_is_shared_out),
        cmocka_unit_test(test_too_many_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
