/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine of three hosts is administered as one: nodes 0 and 3 are on the head, 1 and 2 on a host each. Whatever is
 * asked of one emunic holds on all, those that were away included; whatever one tells is told of all.
 */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"
#include "tests/integration/children.h"

#define CRAY_CONFIG_GHAL_ARIES
#define N_HOSTS    3u
#define TIMEOUT_MS 1500u
#define JOB_ID     4711ull

static struct gx_side sides[N_HOSTS]; /* one on each host: node and number of the host are the same */

static void start_machine(unsigned n_hosts)
{
    struct fx_options options = { .n_hosts = n_hosts, .timeout_ms = TIMEOUT_MS };

    fx_start(&fx, &options);
    for (uint32_t i = 0; i < N_HOSTS; i++)
        gx_open(&sides[i], &fx, i, 10 + i, 0);
}

static void stop_machine(void)
{
    for (uint32_t i = 0; i < N_HOSTS; i++)
        gx_close(&sides[i]);
    assert_int_equal(fx_stop(&fx), 0);
}

static int start(void **state)
{
    (void)state;
    start_machine(N_HOSTS);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    stop_machine();
    return 0;
}

/* The same machine, asked at that host. */
static struct fx *at(unsigned host)
{
    static struct fx views[N_HOSTS];

    views[host] = fx;
    if (host > 0)
        views[host].admin = fx.hosts[host].admin;
    return &views[host];
}

static json_t *ask(unsigned host, unsigned type)
{
    char *text = fx_report(at(host), type);
    json_t *report = text ? json_loads(text, 0, NULL) : NULL;

    free(text);
    assert_non_null(report);
    return report;
}

/* A put of 8 bytes; answers whether it was done. */
static bool put_on(const struct gx_side *from, const struct gx_side *to, uint64_t address)
{
    gni_post_descriptor_t d = gx_put(from, to, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done = NULL;
    gni_ep_handle_t ep;
    gni_return_t rc;

    d.remote_addr += address;
    assert_int_equal(GNI_EpCreate(from->nic, from->src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, to->nic_addr, to->inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
    rc = gx_complete(from->src_cq, &done);
    assert_ptr_equal(done, &d);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    return rc == GNI_RC_SUCCESS;
}

static bool put(unsigned from, unsigned to)
{
    return put_on(&sides[from], &sides[to], 0);
}

/* ---- fault rules ---- */

static void test_rule_asked_of_any_host_holds_on_all(void **state)
{
    (void)state;
    fx_add_fault(at(2), "class=fma-put action=fail status=bad-handle nth=1");
    for (unsigned i = 0; i < N_HOSTS; i++) {
        assert_false(put(i, (i + 1) % N_HOSTS));
        assert_true(put(i, (i + 1) % N_HOSTS));
    }
    for (unsigned i = 0; i < N_HOSTS; i++)
        assert_int_equal(fx_fault_hits(at(i)), N_HOSTS);
    fx_clear_faults(at(1));
    for (unsigned i = 0; i < N_HOSTS; i++)
        assert_true(put(i, (i + 2) % N_HOSTS));
}

static void test_rule_for_an_instance_of_another_host_hits_it_alone(void **state)
{
    struct gx_side other;

    (void)state;
    gx_open(&other, &fx, 1, 77, 0);
    fx_add_fault(&fx, "class=fma-put action=fail status=bad-handle to=1 to_instance=77");
    assert_true(put(0, 1));
    assert_false(put_on(&sides[0], &other, 0));
    assert_false(put_on(&sides[2], &other, 0));
    assert_true(put(2, 1));
    assert_true(put(1, 2));
    gx_close(&other);
}

/* A target on the second host; shared[1] and on: its address and its handle. */
static void be_a_target(void)
{
    struct gx_side side;

    fx_forget(&fx);
    gx_open(&side, &fx, 1, 30, 0);
    atomic_store(&shared[1], (uint64_t)(uintptr_t)side.mem);
    memcpy((void *)(uintptr_t)&shared[2], &side.mem_hndl, sizeof(side.mem_hndl));
    atomic_fetch_add(&shared[0], 1);
    for (;;)
        pause();
}

static void test_rule_kills_a_target_on_another_host(void **state)
{
    pid_t pid = start_child(be_a_target);
    struct gx_side victim = { .nic_addr = 1, .inst_id = 30 };
    int status = 0;

    (void)state;
    wait_for_child(1);
    victim.mem = (uint8_t *)(uintptr_t)atomic_load(&shared[1]);
    memcpy(&victim.mem_hndl, (void *)(uintptr_t)&shared[2], sizeof(victim.mem_hndl));
    assert_true(put_on(&sides[0], &victim, 0));
    fx_add_fault(at(1), "class=fma-put action=kill to=1 to_instance=30");
    assert_true(put(0, 1));
    assert_false(put_on(&sides[0], &victim, 0));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(put(0, 1));
}

/* Which of the puts from one node fail, one bit for each. */
static uint64_t pattern_of(unsigned from, unsigned to)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < 64; i++)
        bits |= (uint64_t)put(from, to) << i;
    return bits;
}

static void test_same_seed_hits_the_same_operations_on_one_host_and_on_several(void **state)
{
    uint64_t patterns[N_HOSTS + 1][N_HOSTS];

    (void)state;
    for (unsigned n_hosts = 1; n_hosts <= N_HOSTS; n_hosts++) {
        start_machine(n_hosts);
        fx_add_fault(&fx, "class=fma-put action=drop rate=0.3 seed=7");
        fx_add_fault(&fx, "class=fma-put action=corrupt rate=0.1 seed=8 to=1");
        for (unsigned i = 0; i < N_HOSTS; i++)
            patterns[n_hosts][i] = pattern_of(i, (i + 1) % N_HOSTS);
        stop_machine();
    }
    for (unsigned i = 0; i < N_HOSTS; i++) {
        assert_int_not_equal(patterns[1][i], UINT64_MAX);
        assert_int_equal(patterns[2][i], patterns[1][i]);
        assert_int_equal(patterns[3][i], patterns[1][i]);
    }
}

/* ---- the network ---- */

static void test_node_that_fails_is_out_of_reach_from_every_host(void **state)
{
    struct emu_msg_network change = { .thing = EMU_NETWORK_NODE, .index = 2 };

    (void)state;
    assert_int_equal(fx_change_network(at(1), change), 0);
    assert_false(put(0, 2));
    assert_false(put(1, 2));
    assert_false(put(2, 0));
    assert_true(put(0, 1));
    change.flags = EMU_NETWORK_REPAIR;
    assert_int_equal(fx_change_network(at(2), change), 0);
    assert_true(put(0, 2));
    assert_true(put(1, 2));
    assert_true(put(2, 0));
    change.index = 100000;
    assert_int_equal(fx_change_network(at(2), change), -ERANGE);
}

static bool node_is_broken_at(void *arg)
{
    json_t *report = ask(*(unsigned *)arg, EMU_MSG_FAULTS);
    bool is_broken = json_array_size(json_object_get(json_object_get(report, "network"), "broken")) > 0;

    json_decref(report);
    return is_broken;
}

static void test_change_that_waits_for_its_time_comes_on_all_hosts(void **state)
{
    struct emu_msg_network change = { .thing = EMU_NETWORK_NODE, .index = 2, .after_ns = 20000000 };

    (void)state;
    assert_int_equal(fx_change_network(at(1), change), 0);
    for (unsigned i = 0; i < N_HOSTS; i++)
        assert_true(eventually(node_is_broken_at, &i, PATIENCE_NS));
    assert_false(put(1, 2));
    assert_false(put(2, 0));
}

/* ---- reports ---- */

static int compare_flows(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a;
    const json_t *y = *(json_t *const *)b;
    json_int_t x_key =
        json_integer_value(json_object_get(x, "src_nid")) * 1000 + json_integer_value(json_object_get(x, "dst_nid"));
    json_int_t y_key =
        json_integer_value(json_object_get(y, "src_nid")) * 1000 + json_integer_value(json_object_get(y, "dst_nid"));

    return (x_key > y_key) - (x_key < y_key);
}

/* Flows in the order of their nodes, and links; as a text. */
static char *describe_traffic(unsigned host)
{
    json_t *report = ask(host, EMU_MSG_LINKS);
    json_t *flows = json_object_get(report, "flows");
    size_t n = json_array_size(flows);
    const json_t *sorted[16];
    json_t *list = json_array();
    char *text;

    assert_true(n > 0 && n <= 16);
    assert_null(json_object_get(report, "missing_hosts"));
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_array_get(flows, i);
    qsort(sorted, n, sizeof(sorted[0]), compare_flows);
    for (size_t i = 0; i < n; i++)
        json_array_append(list, (json_t *)(uintptr_t)sorted[i]);
    json_array_append(list, json_object_get(report, "links"));
    text = json_dumps(list, JSON_SORT_KEYS);
    json_decref(list);
    json_decref(report);
    return text;
}

static void test_flows_and_links_are_those_of_the_whole_machine(void **state)
{
    char *alone = NULL;

    (void)state;
    for (unsigned n_hosts = 1; n_hosts <= N_HOSTS; n_hosts += 2) {
        start_machine(n_hosts);
        for (unsigned i = 0; i < N_HOSTS; i++) {
            for (unsigned k = 0; k < 5 + i; k++)
                assert_true(put(i, (i + 1) % N_HOSTS));
        }
        for (unsigned host = 0; host < n_hosts; host++) {
            char *text = describe_traffic(host);

            if (!alone)
                alone = strdup(text);
            assert_string_equal(text, alone);
            free(text);
        }
        stop_machine();
    }
    free(alone);
}

static void test_report_names_hosts_that_are_not_in_it(void **state)
{
    json_t *report;

    (void)state;
    assert_true(put(0, 1));
    kill(fx.hosts[2].daemon, SIGSTOP);
    report = ask(1, EMU_MSG_LINKS); /* answered when the silent one counts as lost */
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "missing_hosts"), 0)), "host2");
    assert_int_equal(json_array_size(json_object_get(report, "missing_hosts")), 1);
    assert_int_equal(json_array_size(json_object_get(report, "flows")), 1);
    json_decref(report);
    kill(fx.hosts[2].daemon, SIGCONT);
    fx_await_host(&fx, 0, 2, true);
}

/* ---- error events ---- */

static gni_error_event_t next_event(gni_err_handle_t err)
{
    gni_error_event_t event = { 0 };
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    while ((rc = GNI_GetErrorEvent(err, &event)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        ;
    assert_int_equal(rc, GNI_RC_SUCCESS);
    return event;
}

static void test_subscription_hears_of_errors_on_all_hosts_once(void **state)
{
    gni_error_event_t event;
    gni_err_handle_t err;

    (void)state;
    fx_set_node(0);
    assert_int_equal(GNI_SubscribeErrors(sides[0].nic, 0, 0xff, 16, &err), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < N_HOSTS; i++) {
        assert_false(put_on(&sides[i], &sides[i], 1ull << 40)); /* direct path */
        event = next_event(err);
        assert_int_equal(event.info_mmrs[0] >> 32, i);
        assert_false(put_on(&sides[i], &sides[(i + 1) % N_HOSTS], 1ull << 40));
        event = next_event(err);
        assert_int_equal(event.info_mmrs[0] >> 32, i);
        assert_int_equal(event.ptag, fx.ptag);
    }
    /* What all hosts do is one event. */
    fx_add_fault(at(2), "class=smsg action=drop nth=1000000");
    event = next_event(err);
    assert_int_equal(event.error_code, EMU_ERROR_RULES);
    assert_false(put_on(&sides[2], &sides[0], 1ull << 40));
    event = next_event(err);
    assert_int_equal(event.info_mmrs[0] >> 32, 2);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_subscription_hears_of_a_host_that_has_come_back(void **state)
{
    gni_error_event_t event;
    gni_err_handle_t err;

    (void)state;
    kill(fx.hosts[1].daemon, SIGSTOP);
    fx_set_node(0);
    assert_int_equal(GNI_SubscribeErrors(sides[0].nic, 0, 0xff, 16, &err), GNI_RC_SUCCESS);
    fx_await_host(&fx, 0, 1, false);
    fx_await_host(&fx, 2, 1, false);
    kill(fx.hosts[1].daemon, SIGCONT);
    fx_await_all_hosts(&fx);
    /* What hosts tell each other comes in order: when this is here, its listening was heard of. */
    json_decref(ask(0, EMU_MSG_FAULTS));
    assert_false(put_on(&sides[1], &sides[2], 1ull << 40));
    event = next_event(err);
    assert_int_equal(event.info_mmrs[0] >> 32, 1);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

/* ---- hosts that are away ---- */

/* What the answer to a change says of hosts that have not made it; "" if it says nothing. */
static void change_at(unsigned host, struct emu_msg msg, int expected, char text_out[256])
{
    struct emu_fds fds = { .n_fds = 0 };

    assert_int_equal(emu_session_request(&at(host)->admin, &msg, NULL, 0, &fds), 0);
    assert_int_equal(msg.result, expected);
    memset(text_out, 0, 256);
    if (fds.n_fds > 0)
        assert_true(read(fds.fd[0], text_out, 255) > 0);
    emu_fds_close(&fds);
}

static struct emu_msg fail_node(uint32_t nid, bool is_repair)
{
    return (struct emu_msg){
        .type = EMU_MSG_NETWORK,
        .network = { .thing = EMU_NETWORK_NODE, .index = nid, .flags = is_repair ? EMU_NETWORK_REPAIR : 0 }
    };
}

/* Rules and the network, as a host sees them; counts aside. */
static char *describe_faults(unsigned host)
{
    json_t *report = ask(host, EMU_MSG_FAULTS);
    json_t *list = json_array();
    json_t *rule;
    char *text;
    size_t i;

    json_array_foreach(json_object_get(json_array_get(json_object_get(report, "domains"), 0), "rules"), i, rule) {
        json_object_del(rule, "seen");
        json_object_del(rule, "hits");
        json_array_append(list, rule);
    }
    json_array_append(list, json_object_get(json_object_get(report, "network"), "broken"));
    text = json_dumps(list, JSON_SORT_KEYS);
    json_decref(list);
    json_decref(report);
    return text;
}

static void expect_same_faults(unsigned a, unsigned b)
{
    char *text_a = describe_faults(a);
    char *text_b = describe_faults(b);

    assert_string_equal(text_a, text_b);
    free(text_a);
    free(text_b);
}

static void test_host_that_is_started_again_is_told_what_was_changed(void **state)
{
    char text[256];

    (void)state;
    fx_add_fault(&fx, "class=fma-put action=drop rate=0.001 seed=3");
    fx_add_fault(&fx, "class=fma-put action=fail status=bad-handle nth=2");
    fx_kill_host(&fx, 1);
    fx_await_host(&fx, 2, 1, false);
    fx_await_host(&fx, 0, 1, false);
    change_at(2, fail_node(3, false), 0, text);
    assert_string_equal(text, "host1: No route to host\n");
    change_at(0, (struct emu_msg){ .type = EMU_MSG_FAULT_CLEAR, .fault = { .domain_id = fx.domain_id, .id = 1 } }, 0,
              text);
    assert_string_equal(text, "host1: No route to host\n");
    fx_restart_host(&fx, 1);
    fx_await_all_hosts(&fx);
    gx_close(&sides[1]);
    gx_open(&sides[1], &fx, 1, 11, 0);
    expect_same_faults(0, 1);
    assert_true(put(1, 2));
    assert_false(put(1, 2));
    assert_true(put(1, 2));
    /* Numbers of rules go on where they were. */
    fx_add_fault(at(1), "class=fma-get action=drop nth=9");
    expect_same_faults(0, 1);
    expect_same_faults(2, 1);
    change_at(1, fail_node(3, true), 0, text);
    assert_string_equal(text, "");
}

static void test_host_that_was_cut_off_is_told_and_keeps_its_counts(void **state)
{
    char text[256];

    (void)state;
    fx_add_fault(&fx, "class=fma-put action=fail status=bad-handle nth=3");
    assert_true(put(1, 1));
    assert_true(put(1, 1));
    kill(fx.hosts[1].daemon, SIGSTOP);
    change_at(2, fail_node(3, false), 0, text); /* answered when the silent one counts as lost */
    assert_string_equal(text, "host1: No route to host\n");
    kill(fx.hosts[1].daemon, SIGCONT);
    fx_await_all_hosts(&fx);
    assert_false(put(1, 1)); /* the third */
    expect_same_faults(0, 1);
}

static void test_without_the_head_changes_are_refused_in_time(void **state)
{
    char text[256];

    (void)state;
    kill(fx.daemon, SIGSTOP);
    change_at(2, fail_node(3, false), -EHOSTUNREACH, text);
    change_at(1, fail_node(3, false), -EHOSTUNREACH, text);
    kill(fx.daemon, SIGCONT);
    fx_await_all_hosts(&fx);
    change_at(2, fail_node(3, true), 0, text);
    expect_same_faults(0, 1);
    expect_same_faults(0, 2);
}

/* ---- jobs ---- */

/* Beside the two that it has. */
static bool can_make_a_queue(const struct gx_side *side)
{
    gni_cq_handle_t cq;

    if (GNI_CqCreate(side->nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) != GNI_RC_SUCCESS)
        return false;
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    return true;
}

static void test_limits_of_a_job_hold_on_all_hosts_and_after_a_restart(void **state)
{
    gni_job_limits_t limits;

    (void)state;
    memset(&limits, 0xff, sizeof(limits));
    limits.cq_limit = 2;
    fx_set_node(2);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, &limits), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < N_HOSTS; i++)
        assert_false(can_make_a_queue(&sides[i]));
    fx_kill_host(&fx, 1);
    fx_await_host(&fx, 0, 1, false);
    fx_restart_host(&fx, 1);
    fx_await_all_hosts(&fx);
    gx_close(&sides[1]);
    gx_open(&sides[1], &fx, 1, 11, 0);
    assert_false(can_make_a_queue(&sides[1]));
    limits.cq_limit = 3;
    fx_set_node(1);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, &limits), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < N_HOSTS; i++)
        assert_true(can_make_a_queue(&sides[i]));
}

static void test_job_that_was_resumed_runs_on_a_host_that_was_cut_off_as_well(void **state)
{
    gni_post_descriptor_t d = gx_put(&sides[1], &sides[2], 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done = NULL;
    gni_ep_handle_t ep;

    (void)state;
    fx_set_node(1);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, 10000), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(sides[1].nic, sides[1].src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, 2, sides[2].inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
    kill(fx.hosts[1].daemon, SIGSTOP);
    fx_await_host(&fx, 0, 1, false);
    fx_await_host(&fx, 2, 1, false);
    fx_set_node(2);
    assert_int_equal(GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie), GNI_RC_SUCCESS);
    assert_true(put(0, 2));
    kill(fx.hosts[1].daemon, SIGCONT);
    fx_await_host(&fx, 1, 0, true);
    assert_true(gx_complete(sides[1].src_cq, &done) != GNI_RC_NOT_DONE);
    assert_ptr_equal(done, &d);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    fx_await_all_hosts(&fx);
    assert_true(put(1, 2));
}

static void test_suspended_job_stands_still_on_a_host_that_is_cut_off_and_back(void **state)
{
    gni_post_descriptor_t d = gx_put(&sides[1], &sides[1], 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry;
    gni_ep_handle_t ep;

    (void)state;
    kill(fx.hosts[1].daemon, SIGSTOP);
    fx_await_host(&fx, 0, 1, false);
    fx_set_node(2);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, 10000), GNI_RC_SUCCESS);
    kill(fx.hosts[1].daemon, SIGCONT);
    fx_await_host(&fx, 0, 1, true);
    json_decref(ask(0, EMU_MSG_FAULTS)); /* behind what it was told */
    assert_int_equal(GNI_EpCreate(sides[1].nic, sides[1].src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, 1, sides[1].inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(GNI_CqGetEvent(sides[1].src_cq, &entry), GNI_RC_NOT_DONE);
    fx_set_node(0);
    assert_int_equal(GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(sides[1].src_cq, &done), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

#define machine_test(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        machine_test(test_rule_asked_of_any_host_holds_on_all),
        machine_test(test_rule_for_an_instance_of_another_host_hits_it_alone),
        machine_test(test_rule_kills_a_target_on_another_host),
        cmocka_unit_test(test_same_seed_hits_the_same_operations_on_one_host_and_on_several),
        machine_test(test_node_that_fails_is_out_of_reach_from_every_host),
        machine_test(test_change_that_waits_for_its_time_comes_on_all_hosts),
        cmocka_unit_test(test_flows_and_links_are_those_of_the_whole_machine),
        machine_test(test_report_names_hosts_that_are_not_in_it),
        machine_test(test_subscription_hears_of_errors_on_all_hosts_once),
        machine_test(test_subscription_hears_of_a_host_that_has_come_back),
        machine_test(test_host_that_is_started_again_is_told_what_was_changed),
        machine_test(test_host_that_was_cut_off_is_told_and_keeps_its_counts),
        machine_test(test_without_the_head_changes_are_refused_in_time),
        machine_test(test_limits_of_a_job_hold_on_all_hosts_and_after_a_restart),
        machine_test(test_job_that_was_resumed_runs_on_a_host_that_was_cut_off_as_well),
        machine_test(test_suspended_job_stands_still_on_a_host_that_is_cut_off_and_back),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    if (children_init() < 0)
        return 1;
    return cmocka_run_group_tests_name("hosts_admin", tests, NULL, NULL);
}
