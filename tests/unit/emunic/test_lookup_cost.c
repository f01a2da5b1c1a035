/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a look-up costs does not depend on how many domains and Portals interfaces there are. Instructions are the cost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/lookups.h"
#include "emunic/fabric/machine.h"
#include "tests/common/cost.h"

#define MANY       20000u
#define INTERFACES 3000u /* each has a descriptor; a domain has at most EMU_PORTS_MAX */
#define USER       1000u
#define OTHER      1001u
#define TAG        7u
#define NID        5u
#define FAR        6u
#define PID        40000u

enum crowd { NOBODY, ELSEWHERE, OTHERS, SAME_NODE, OTHER_NODE };

static struct emu_server server;
static struct emu_connection connection;
static struct emu_member member;
static struct emu_segment segment;
static struct emu_port_end port;

/* ---- the world ---- */

struct small_table {
    struct emu_table head;
    uint32_t places[8]; /* of addresses among the nodes */
    struct emu_table_node nodes[2];
    struct emu_table_port ports[EMU_PORTS_MAX];
};

/* Two nodes, of which `n_here` are here. */
static struct emu_domain *add_domain(uint32_t id, uint32_t uid, uint32_t ptag, unsigned n_here)
{
    static uint32_t addresses[2] = { NID, FAR };
    static struct emu_account accounts[2];
    struct small_table *table = calloc(1, n_here == 2 ? sizeof(*table) : offsetof(struct small_table, ports));
    struct emu_domain *domain = calloc(1, sizeof(*domain));

    if (!table || !domain)
        abort();
    table->head.n_nids = 8;
    table->head.nid_off = offsetof(struct small_table, places);
    table->places[FAR] = 1;
    table->head.node_off = offsetof(struct small_table, nodes);
    table->head.port_off = offsetof(struct small_table, ports);
    table->nodes[0] = (struct emu_table_node){ .nid = NID, .host = n_here > 0 ? EMU_NODE_HERE : 2 };
    table->nodes[1] = (struct emu_table_node){ .nid = FAR, .host = n_here > 1 ? EMU_NODE_HERE : 2 };
    *domain = (struct emu_domain){ .id = id,
                                   .cookie = id,
                                   .ptag = ptag,
                                   .owner_uid = uid,
                                   .n_ranks = 1,
                                   .n_nodes = 2,
                                   .addresses = addresses,
                                   .table = &table->head };
    domain->budget.accounts = accounts;
    LIST_INSERT_HEAD(&server.domains, domain, link);
    if (emu_lookups_add_domain(&server, domain) < 0)
        abort();
    if (n_here > 0)
        emu_lookups_add_here(domain);
    return domain;
}

/* One domain of the user, and then as many of others as it says. */
static void make_domains(unsigned crowd, uint32_t n)
{
    char err[200];

    LIST_INIT(&server.domains);
    server.n_hosts = 1;
    if (emu_lookups_create(&server) < 0 ||
        emu_machine_load("aries:groups=1", EMU_TEST_MACHINE_DIR, &server.machine, err, sizeof(err)) < 0)
        abort();
    server.n_nids = emu_machine_n_nodes(server.machine);
    add_domain(1, USER, TAG, 1);
    for (uint32_t i = 0; i < n; i++)
        add_domain(2 + i, OTHER, TAG + 1 + i % 200, crowd != ELSEWHERE);
    connection = (struct emu_connection){ .server = &server, .peer = { .pid = 1, .uid = USER } };
}

static bool ask_of_a_tag(void)
{
    struct emu_msg msg = { .type = EMU_MSG_RESOURCES,
                           .resources = { .resource = EMU_RESOURCE_CQ, .ptag = TAG, .nid_wanted = NID } };
    struct emu_request request = { .connection = &connection, .msg = &msg };

    return emu_resources_part.requests[0].answer(&request) == 0 && msg.resources.used == 0;
}

static bool ask_where_root_is(void)
{
    const struct ucred root = { .pid = 1 };

    return emu_place_of(&server, &root, EMU_NID_NONE) == NID;
}

static bool ask_where_the_user_is(void)
{
    const struct ucred user = { .pid = 1, .uid = USER };

    return emu_place_of(&server, &user, EMU_NID_NONE) == NID;
}

/* ---- Portals ---- */

static struct emu_port_end *add_port(struct emu_domain *domain, uint32_t index, uint32_t node)
{
    struct emu_port_end *made = calloc(1, sizeof(*made));

    if (!made)
        abort();
    *made = (struct emu_port_end){ .server = &server,
                                   .domain = domain,
                                   .member = &member,
                                   .index = index,
                                   .node_index = node,
                                   .nid = node == 0 ? NID : FAR,
                                   .segment = &segment };
    domain->ports[index] = made;
    LIST_INSERT_HEAD(&server.ports, made, link);
    return made;
}

static void open_interface(struct emu_port_end *p, uint32_t pid)
{
    struct emu_msg_portals asked = { .pid = pid };

    if (emu_portals_end_open(p, &asked) < 0)
        abort();
}

static void make_interfaces(unsigned crowd, uint32_t n)
{
    struct rlimit files;
    struct emu_domain *domain;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    make_domains(NOBODY, 0);
    LIST_INIT(&server.ports);
    if (emu_portals_part.create(&server, NULL, NULL) < 0)
        abort();
    domain = add_domain(2, USER, TAG, 2);
    domain->ports = calloc(EMU_PORTS_MAX, sizeof(struct emu_port_end *));
    for (uint32_t i = 0; i < n; i++)
        open_interface(add_port(domain, 10 + i, crowd == OTHER_NODE), i);
    port = *add_port(domain, 0, 0);
    domain->ports[0] = &port;
    port.segment = &segment;
}

static bool open_and_close(void)
{
    struct emu_msg_portals asked = { .pid = PID };
    bool is_open = emu_portals_end_open(&port, &asked) >= 0 && asked.pid == PID;

    if (is_open)
        emu_portals_end_close(&port);
    return is_open;
}

static void make_an_initiator(unsigned crowd, uint32_t n)
{
    make_interfaces(crowd, n);
    open_interface(&port, PID);
}

/* Nobody has that process id. */
static bool look_for_nobody(void)
{
    return !emu_portals_end_find(&port, NID, PID + 1);
}

/* ---- tests ---- */

static void check_flat(const char *what, cost_prepare prepare, unsigned crowd, uint32_t n, cost_once once)
{
    unsigned long alone = cost_of(prepare, NOBODY, 0, once);
    unsigned long many = cost_of(prepare, crowd, n, once);

    print_message("# %s: %lu instructions alone, %lu beside %u\n", what, alone, many, n);
    assert_true(many < alone + alone / 2);
}

static void test_tag_is_found_among_many_domains(void **state)
{
    (void)state;
    check_flat("a tag", make_domains, OTHERS, MANY, ask_of_a_tag);
}

static void test_place_of_root_is_found_among_domains_of_other_hosts(void **state)
{
    (void)state;
    check_flat("root", make_domains, ELSEWHERE, MANY, ask_where_root_is);
}

static void test_place_of_a_user_is_found_among_domains_of_others(void **state)
{
    (void)state;
    check_flat("a user", make_domains, OTHERS, MANY, ask_where_the_user_is);
}

static void test_interface_opens_beside_many_of_its_node(void **state)
{
    (void)state;
    check_flat("opening", make_interfaces, SAME_NODE, INTERFACES, open_and_close);
}

static void test_interface_opens_beside_many_of_other_nodes(void **state)
{
    (void)state;
    check_flat("opening", make_interfaces, OTHER_NODE, INTERFACES, open_and_close);
}

static void test_interface_that_is_not_there_is_looked_for_at_once(void **state)
{
    (void)state;
    check_flat("a miss", make_an_initiator, SAME_NODE, INTERFACES, look_for_nobody);
    /* An empty table is no better. */
    assert_true(cost_of(make_an_initiator, NOBODY, 0, look_for_nobody) < EMU_PORTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tag_is_found_among_many_domains),
        cmocka_unit_test(test_place_of_root_is_found_among_domains_of_other_hosts),
        cmocka_unit_test(test_place_of_a_user_is_found_among_domains_of_others),
        cmocka_unit_test(test_interface_opens_beside_many_of_its_node),
        cmocka_unit_test(test_interface_opens_beside_many_of_other_nodes),
        cmocka_unit_test(test_interface_that_is_not_there_is_looked_for_at_once),
    };

    if (!trace_is_permitted()) {
        printf("1..0 # SKIP a process may not lead its children here\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
