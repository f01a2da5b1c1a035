/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is left when clients go: killed with everything open or in the middle of traffic, or coming and going. Counted
 * from outside: descriptors and memfd mappings of emunic in /proc, and its own report.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/common/gni.h"
#include "tests/common/proc.h"
#include "tests/common/seed.h"
#include "tests/integration/children.h"

static struct gx_side survivor;

/* ---- what emunic has ---- */

struct holdings {
    int fds;
    int memfd_maps;
    json_int_t members;
    json_int_t ports;
    json_int_t handles; /* memory domain handles in use on all nodes of the domain */
    json_int_t datagrams;
    json_int_t transfers;
    json_int_t queues;
};

static json_int_t sum_of(const json_t *array, const char *key)
{
    const json_t *item;
    json_int_t sum = 0;
    size_t i;

    json_array_foreach(array, i, item)
        sum += json_integer_value(json_object_get(item, key));
    return sum;
}

/* Of the fixture's domain. The report comes first: it makes emunic deal with all that happened before. */
static struct holdings look(void)
{
    char *text = fx_report(&fx, EMU_MSG_STATUS);
    json_t *status = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *domain;
    struct holdings h = { 0 };
    size_t i;

    free(text);
    json_array_foreach(json_object_get(status, "domains"), i, domain) {
        const json_t *ports = json_object_get(domain, "ports");

        if (json_integer_value(json_object_get(domain, "domain")) != fx.domain_id)
            continue;
        h.members = json_integer_value(json_object_get(domain, "members"));
        h.ports = (json_int_t)json_array_size(ports);
        h.handles = sum_of(json_object_get(domain, "nodes"), "memory_domains_on_node");
        h.datagrams = sum_of(ports, "datagrams");
        h.transfers = sum_of(ports, "transfers");
        h.queues = sum_of(ports, "queues");
    }
    json_decref(status);
    h.fds = fx_count_fds(&fx);
    h.memfd_maps = proc_count_memfd_maps(fx.daemon);
    return h;
}

static bool is_as_before(void *arg)
{
    struct holdings now = look();

    return memcmp(&now, arg, sizeof(now)) == 0;
}

static void expect_as_before(struct holdings *before)
{
    struct holdings now;

    if (eventually(is_as_before, before, PATIENCE_NS))
        return;
    now = look();
    fail_msg("left behind: %d descriptors, %d mappings, %lld members, %lld ports, %lld handles, %lld datagrams",
             now.fds - before->fds, now.memfd_maps - before->memfd_maps, (long long)(now.members - before->members),
             (long long)(now.ports - before->ports), (long long)(now.handles - before->handles),
             (long long)(now.datagrams - before->datagrams));
}

/* emunic may be asked before it has looked at the ring. */
static bool has_begun(void *during)
{
    *(struct holdings *)during = look();
    return ((struct holdings *)during)->transfers > 0;
}

static void test_killed_client_leaves_nothing(void **state)
{
    struct holdings before = look();
    struct holdings during;
    pid_t pid = start_child(open_everything);

    (void)state;
    wait_for_child(1);
    eventually(has_begun, &during, PATIENCE_NS);
    kill_child(pid);
    assert_int_equal(during.members, before.members + 1);
    assert_int_equal(during.ports, 1);
    assert_int_equal(during.queues, 5);
    assert_int_equal(during.handles, 11);
    assert_int_equal(during.datagrams, 3);
    assert_in_range(during.transfers, 19, 21); /* one is short */
    assert_true(during.fds > before.fds);
    assert_int_equal(during.memfd_maps, before.memfd_maps + 2); /* segment, and a window into its space file */
    expect_as_before(&before);
}

/* ---- kills in the middle of traffic ---- */

static void put_for_ever(void)
{
    struct gx_side a;
    struct gx_side b;

    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&a, &b);
    for (uint64_t n = 1;; n++) {
        static const uint64_t lengths[] = { 8, 64, 3000, 40000 };
        gni_post_descriptor_t d = gx_put(&a, &b, 0, lengths[n % 4], GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        gni_post_descriptor_t *done;
        gni_cq_entry_t entry;

        d.type = n % 8 < 4 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT;
        FX_CHECK((n % 8 < 4 ? GNI_PostFma(a.ep, &d) : GNI_PostRdma(a.ep, &d)) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(a.src_cq, &done) == GNI_RC_SUCCESS);
        FX_CHECK(gx_next(b.dst_cq, &entry) == GNI_RC_SUCCESS);
        atomic_store(&shared[0], n);
    }
}

static void test_kills_in_the_middle_of_traffic_leave_nothing(void **state)
{
    struct emu_random random = seeded(61);
    struct holdings before = look();

    (void)state;
    for (unsigned i = 0; i < 15; i++) {
        pid_t pid = start_child(put_for_ever);

        wait_for_child(1 + emu_random_below(&random, 200));
        kill_child(pid);
    }
    expect_as_before(&before);
}

/* ---- what the others see ---- */

struct victim {
    _Atomic uint64_t is_ready;
    uint32_t nic_addr;
    gni_mem_handle_t mem_hndl;
    uint64_t mem;
};

static void be_a_victim(void)
{
    struct victim *me = (struct victim *)(uintptr_t)shared;
    struct gx_side side;

    gx_open(&side, &fx, 1, 60, 0);
    me->nic_addr = side.nic_addr;
    me->mem_hndl = side.mem_hndl;
    me->mem = (uint64_t)(uintptr_t)side.mem;
    atomic_store(&me->is_ready, 1);
    for (;;)
        pause();
}

static int open_survivor(void **state)
{
    (void)state;
    gx_open(&survivor, &fx, 0, 10, 0);
    return GNI_EpCreate(survivor.nic, survivor.src_cq, &survivor.ep) == GNI_RC_SUCCESS ? 0 : -1;
}

static int close_survivor(void **state)
{
    (void)state;
    gx_close(&survivor);
    return 0;
}

/* A put of any kind to the victim; returns how it completed. */
static gni_return_t put_to_victim(uint64_t length, bool is_rdma)
{
    const struct victim *victim = (const struct victim *)(uintptr_t)shared;
    gni_post_descriptor_t *done = NULL;
    gni_post_descriptor_t d = {
        .type = is_rdma ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .local_addr = (uint64_t)(uintptr_t)survivor.mem,
        .local_mem_hndl = survivor.mem_hndl,
        .remote_addr = victim->mem,
        .remote_mem_hndl = victim->mem_hndl,
        .length = length,
    };
    gni_return_t rc = is_rdma ? GNI_PostRdma(survivor.ep, &d) : GNI_PostFma(survivor.ep, &d);

    return rc == GNI_RC_SUCCESS ? gx_complete(survivor.src_cq, &done) : rc;
}

static bool has_put_failed(void *arg)
{
    (void)arg;
    return put_to_victim(8, false) == GNI_RC_TRANSACTION_ERROR;
}

static void test_put_to_a_killed_process_fails(void **state)
{
    pid_t pid = start_child(be_a_victim);

    (void)state;
    wait_for_child(1);
    assert_int_equal(GNI_EpBind(survivor.ep, ((struct victim *)(uintptr_t)shared)->nic_addr, 60), GNI_RC_SUCCESS);
    assert_int_equal(put_to_victim(8, false), GNI_RC_SUCCESS);
    assert_int_equal(put_to_victim(60000, true), GNI_RC_SUCCESS);
    kill_child(pid);
    /* Memory that we map ourselves is there until emunic has noticed. */
    assert_true(eventually(has_put_failed, NULL, PATIENCE_NS));
    assert_int_equal(put_to_victim(60000, true), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(put_to_victim(8, false), GNI_RC_TRANSACTION_ERROR);
}

/* ---- deregistration under a transfer ---- */

#define LONG_BYTES (64u << 20)

/*
 * Puts source into target through emunic, deregisters target on the way, then writes zeroes there. Status of the put.
 */
static unsigned deregister_under_a_put(struct emu_port *port, struct emu_cq_consumer *cq, uint32_t cq_index,
                                       const uint8_t *source, uint8_t *target)
{
    uint64_t unused;
    struct emu_cmd *cmd;
    uint64_t event;
    uint16_t mdh;
    uint16_t generation;

    assert_int_equal(emu_port_mem_register(
                         port, &(struct emu_port_memory){ (uint64_t)(uintptr_t)target, LONG_BYTES, 0, EMU_CQ_NONE },
                         &mdh, &generation),
                     0);
    cmd = emu_port_command(port, 0, &unused);
    cmd->op = EMU_OP_PUT;
    cmd->flags = EMU_CMD_BLOCK;
    cmd->events = EMU_EV_GLOBAL;
    cmd->remote_nid = port->nid;
    cmd->remote_addr = cmd->remote_base = (uint64_t)(uintptr_t)target;
    cmd->length_bytes = LONG_BYTES;
    cmd->local_addr = (uint64_t)(uintptr_t)source;
    cmd->mdh = mdh;
    cmd->generation = generation;
    cmd->source_cq = cq_index;
    emu_port_publish(port);
    while (atomic_load(&port->segment->head) != port->tail) /* until it is on its way */
        sched_yield();
    assert_int_equal(emu_port_mem_deregister(port, mdh, generation), 0);
    memset(target, 0, LONG_BYTES);
    while (emu_cq_pop(cq, &event) != EMU_CQ_OK)
        sched_yield();
    return emu_event_status(event);
}

static void test_deregistered_memory_is_not_written_any_more(void **state)
{
    uint8_t *source = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *target = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct emu_cq_consumer cq;
    struct emu_port port;
    uint32_t cq_index;
    unsigned n_ended = 0;

    (void)state;
    assert_true(source != MAP_FAILED && target != MAP_FAILED);
    memset(source, 0x77, LONG_BYTES);
    assert_int_equal(emu_port_attach(&port, fx.ptag, fx.cookie, 1, 0), 0);
    assert_int_equal(emu_port_cq_create(&port, 64, true, &cq_index, &cq), 0);
    for (unsigned i = 0; i < 20 && n_ended < 3; i++) {
        unsigned status = deregister_under_a_put(&port, &cq, cq_index, source, target);

        assert_true(status == EMU_STATUS_OK || status == EMU_STATUS_PEER_GONE);
        n_ended += status == EMU_STATUS_PEER_GONE;
        for (unsigned at = 0; at < LONG_BYTES; at += 512)
            assert_int_equal(target[at], 0);
    }
    assert_true(n_ended > 0);
    emu_port_detach(&port);
    munmap(source, LONG_BYTES);
    munmap(target, LONG_BYTES);
}

/* ---- coming and going ---- */

static void attach_and_go(unsigned n_times)
{
    for (unsigned i = 0; i < n_times; i++) {
        struct emu_cq_consumer cq;
        struct emu_port port;
        uint32_t index;
        uint16_t mdh;
        uint16_t generation;
        void *addr;

        FX_CHECK(emu_port_attach(&port, fx.ptag, fx.cookie, i, 0) == 0);
        FX_CHECK(emu_port_cq_create(&port, 100, true, &index, &cq) == 0);
        FX_CHECK(emu_port_mem_register(&port, &(struct emu_port_memory){ 0x1000, 0x1000, 0, index }, &mdh,
                                       &generation) == 0);
        FX_CHECK(fx_space_map(&port, 8192, &addr) == 0);
        munmap(addr, 8192);
        emu_port_detach(&port); /* and nothing is given back */
    }
}

static bool has_no_ports(void *arg)
{
    (void)arg;
    return look().ports == 0;
}

static void test_200_clients_that_come_and_go_leave_nothing(void **state)
{
    struct holdings before;

    (void)state;
    fx_set_node(1);
    attach_and_go(1); /* from now on emunic holds this process, until it ends */
    assert_true(eventually(has_no_ports, NULL, PATIENCE_NS));
    before = look();
    attach_and_go(200);
    expect_as_before(&before);
}

static void test_queues_that_come_and_go_leave_nothing(void **state)
{
    struct emu_cq_consumer cq;
    struct emu_port port;
    uint32_t index;

    (void)state;
    fx_set_node(1);
    assert_int_equal(emu_port_attach(&port, fx.ptag, fx.cookie, 1, 0), 0);
    for (unsigned i = 0; i < 2000; i++) { /* more than the arena holds at one time */
        uint64_t event;

        assert_int_equal(emu_port_cq_create(&port, 65536, true, &index, &cq), 0);
        assert_int_equal(emu_cq_pop(&cq, &event), EMU_CQ_EMPTY);
        atomic_store(&cq.shm->entries[0], UINT64_MAX); /* must not show in the next one */
        atomic_store(&cq.shm->tail, 77);
        assert_int_equal(emu_port_cq_destroy(&port, index), 0);
    }
    emu_port_detach(&port);
}

static int start(void **state)
{
    (void)state;
    if (children_init() < 0)
        return -1;
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
        cmocka_unit_test(test_killed_client_leaves_nothing),
        cmocka_unit_test(test_kills_in_the_middle_of_traffic_leave_nothing),
        cmocka_unit_test_setup_teardown(test_put_to_a_killed_process_fails, open_survivor, close_survivor),
        cmocka_unit_test(test_deregistered_memory_is_not_written_any_more),
        cmocka_unit_test(test_200_clients_that_come_and_go_leave_nothing),
        cmocka_unit_test(test_queues_that_come_and_go_leave_nothing),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
