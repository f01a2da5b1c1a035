/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic tells about itself, as JSON in a memfd that the asker gets: no limit of size, nothing to clean up.
 * Keys are snake_case with units; every object carries `schema`.
 *
 * Flows, loads of links and counts of fault rules are sums over all hosts of the machine: each host tells its own as
 * rows of words (abi/host_admin.h), and whoever was asked checks and adds them. The first row that makes no sense, or
 * is not the sender's to speak of, ends what is taken of that host, with a line in the log. Status: status.c.
 */
#include "emunic/daemon/reports/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/network/network.h"
#include "emunic/daemon/network/watcher.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/reports/gather.h"
#include "emunic/daemon/reports/status.h"
#include "emunic/daemon/reports/time_report.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/flows.h"
#include "emunic/daemon/world/ways.h"
#include "emunic/daemon/world/word_list.h"
#include "emunic/engine/fault_rule.h"
#include "emunic/fabric/detour.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/load.h"
#include "emunic/fabric/route.h"

#define SCHEMA      1
#define FLOW_WORDS  11u /* of a row with its kind, as these */
#define LINK_WORDS  4u
#define COUNT_WORDS 5u

static int write_whole(const char *data, size_t len, void *ctx)
{
    int fd = *(int *)ctx;

    while (len > 0) {
        ssize_t done = write(fd, data, len);

        if (done < 0)
            return -1;
        data += done;
        len -= (size_t)done;
    }
    return 0;
}

/* Takes the object over. */
static int to_memfd(json_t *object)
{
    int fd = memfd_create("emunic-report", MFD_CLOEXEC);
    int r = 0;

    if (fd < 0)
        r = -errno;
    else if (json_dump_callback(object, write_whole, &fd, JSON_COMPACT) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        r = -EIO;
    json_decref(object);
    if (r < 0 && fd >= 0)
        close(fd);
    return r < 0 ? r : fd;
}

/* ---- links ---- */

static json_t *path_of(const struct emu_server *server, uint32_t src, uint32_t dst, json_int_t *hops_out)
{
    json_t *path = json_array();
    struct emu_route route;

    *hops_out = 0;
    if (emu_detour_route(server->machine, emu_network_faults(server), src, dst, emu_route_hash(src, dst, 0), &route) <
        0)
        return path; /* empty: there is no way now */
    *hops_out = route.n_hops;
    for (uint32_t i = 0; i < route.n_links; i++) {
        char name[EMU_LINK_NAME_MAX];

        if (emu_link_name(server->machine, route.links[i], name, sizeof(name)) == 0)
            json_array_append_new(path, json_string(name));
    }
    return path;
}

static json_t *describe_flow(const struct emu_server *server, const struct emu_domain *domain, uint32_t src,
                             uint32_t dst, const struct emu_flow_counts *flow)
{
    json_int_t hops;
    json_t *row = json_pack("{sI sI sI sI sI sI sI sI sI sI}", "domain", (json_int_t)domain->id, "src_nid",
                            (json_int_t)src, "dst_nid", (json_int_t)dst, "operations", (json_int_t)flow->operations,
                            "payload_bytes", (json_int_t)flow->payload_bytes, "request_packets",
                            (json_int_t)flow->request_packets, "request_flits", (json_int_t)flow->request_flits,
                            "response_packets", (json_int_t)flow->response_packets, "response_flits",
                            (json_int_t)flow->response_flits, "errors", (json_int_t)flow->errors);

    if (emu_server_is_virtual(server)) /* each packet has its own: describe_paths() */
        return row;
    json_object_set_new(row, "path", path_of(server, src, dst, &hops));
    json_object_set_new(row, "router_hops", json_integer(hops));
    return row;
}

/* One flow that has something to tell. */
static bool is_worth_telling(const struct emu_flow_counts *flow)
{
    return (flow->operations > 0 || flow->errors > 0) && emu_flow_is_plausible(flow);
}

struct collection {
    const struct emu_server *server;
    json_t *flows; /* borrowed */
};

static void collect(void *ctx, const struct emu_domain *domain, uint32_t s, uint32_t d,
                    const struct emu_flow_counts *flow)
{
    const struct collection *c = ctx;

    if (is_worth_telling(flow))
        json_array_append_new(c->flows, describe_flow(c->server, domain, emu_table_nodes(domain->table)[s].nid,
                                                      emu_table_nodes(domain->table)[d].nid, flow));
}

static void put_flow(void *ctx, const struct emu_domain *domain, uint32_t s, uint32_t d,
                     const struct emu_flow_counts *flow)
{
    const uint64_t row[FLOW_WORDS] = { EMU_HOST_ROW_FLOW,
                                       domain->common_number,
                                       emu_table_nodes(domain->table)[s].nid,
                                       emu_table_nodes(domain->table)[d].nid,
                                       flow->operations,
                                       flow->payload_bytes,
                                       flow->request_packets,
                                       flow->request_flits,
                                       flow->response_packets,
                                       flow->response_flits,
                                       flow->errors };

    if (is_worth_telling(flow))
        emu_word_list_add_row(ctx, row, FLOW_WORDS);
}

/* What a host says of what its nodes have sent. */
static bool take_flow(struct emu_server *server, uint32_t host, struct emu_words *words, json_t *flows)
{
    uint32_t number = (uint32_t)emu_words_take(words, UINT32_MAX);
    uint32_t src = (uint32_t)emu_words_take(words, EMU_NID_MAX);
    uint32_t dst = (uint32_t)emu_words_take(words, EMU_NID_MAX);
    const struct emu_domain *domain = emu_hosts_find_domain(server, number);
    struct emu_flow_counts flow = { 0 };
    uint32_t node;

    flow.operations = emu_words_take(words, INT64_MAX);
    flow.payload_bytes = emu_words_take(words, INT64_MAX);
    flow.request_packets = emu_words_take(words, INT64_MAX);
    flow.request_flits = emu_words_take(words, INT64_MAX);
    flow.response_packets = emu_words_take(words, INT64_MAX);
    flow.response_flits = emu_words_take(words, INT64_MAX);
    flow.errors = emu_words_take(words, INT64_MAX);
    if (words->is_bad)
        return false;
    if (!domain)
        return true; /* it has ended meanwhile */
    node = emu_domain_node_of(domain, src);
    if (node == EMU_NID_NONE || emu_hosts_of_node(domain, node) != host || !is_worth_telling(&flow) ||
        emu_domain_node_of(domain, dst) == EMU_NID_NONE)
        return false;
    json_array_append_new(flows, describe_flow(server, domain, src, dst, &flow));
    return true;
}

static json_t *describe_link(const struct emu_server *server, uint32_t id, const struct emu_link_load *load)
{
    const struct emu_fault_map *faults = emu_network_faults(server);
    char name[EMU_LINK_NAME_MAX] = "";
    struct emu_link link;
    uint32_t lanes;

    if (emu_link_get(server->machine, id, &link) < 0)
        return NULL;
    emu_link_name(server->machine, id, name, sizeof(name));
    lanes = faults ? (uint32_t)__builtin_popcount(emu_fault_map_lane_mask(faults, id)) : link.lanes;
    return json_pack("{sI ss ss sI sI sI sI sI sb sI}", "link", (json_int_t)id, "name", name, "class",
                     emu_link_class_name(link.link_class), "packets", (json_int_t)load->packets, "flits",
                     (json_int_t)load->flits, "data_bytes_per_s",
                     (json_int_t)(link.data_bytes_per_s / link.lanes * lanes), "lanes", (json_int_t)link.lanes,
                     "lanes_up", (json_int_t)lanes, "up", (int)emu_fault_map_link_up(faults, id), "errors",
                     (json_int_t)emu_network_link_errors(server, id));
}

/* In virtual time packets are counted where they cross. */
static json_t *describe_crossed(const struct emu_server *server, uint32_t id, const struct emu_sim_link_stats *stats)
{
    const struct emu_link_load load = { .packets = stats->packets, .flits = stats->units };
    json_t *link = describe_link(server, id, &load);

    json_object_set_new(link, "busy_ps", json_integer((json_int_t)stats->busy_ps));
    json_object_set_new(link, "stall_ps", json_integer((json_int_t)stats->stall_ps));
    json_object_set_new(link, "retransmissions", json_integer((json_int_t)stats->retransmissions));
    return link;
}

static json_t *describe_way(const struct emu_server *server, const struct emu_sim_path *way)
{
    json_t *path = json_array();

    for (uint32_t i = 0; i < way->n_links && i < EMU_SIM_PATH_LINKS_MAX; i++) {
        char name[EMU_LINK_NAME_MAX];

        if (emu_link_name(server->machine, way->links[i], name, sizeof(name)) == 0)
            json_array_append_new(path, json_string(name));
    }
    return json_pack("{sI sI ss sI sI sI so}", "src_nid", (json_int_t)way->src_nid, "dst_nid", (json_int_t)way->dst_nid,
                     "class", way->traffic_class == EMU_TRAFFIC_REQUEST ? "request" : "response", "packets",
                     (json_int_t)way->packets, "flits", (json_int_t)way->units, "router_hops",
                     (json_int_t)way->n_links - 2, "path", path);
}

/* The ways that packets have taken in virtual time. NULL: they are not kept. */
static json_t *describe_paths(const struct emu_server *server)
{
    json_t *paths = emu_virtual_keeps_paths(server) ? json_array() : NULL;
    struct emu_sim_path way;
    uint32_t place = 0;

    while (paths && emu_virtual_next_path(server, &place, &way))
        json_array_append_new(paths, describe_way(server, &way));
    return paths;
}

/* Links that have carried something, or have a fault. */
static json_t *describe_loads(const struct emu_server *server, const struct emu_link_load *loads)
{
    const struct emu_fault_map *faults = emu_network_faults(server);
    json_t *links = json_array();

    for (uint32_t id = 0; id < emu_machine_n_links(server->machine); id++) {
        struct emu_sim_link_stats stats;

        if (emu_virtual_link_stats(server, id, &stats)) {
            if (stats.packets > 0 || stats.stall_ps > 0 || emu_network_link_errors(server, id) > 0 ||
                !emu_fault_map_link_up(faults, id))
                json_array_append_new(links, describe_crossed(server, id, &stats));
            continue;
        }
        if (loads[id].packets > 0 || emu_network_link_errors(server, id) > 0 || !emu_fault_map_link_up(faults, id))
            json_array_append_new(links, describe_link(server, id, &loads[id]));
    }
    return links;
}

/* Of what is here. Caller frees; NULL without memory. */
static struct emu_link_load *loads_here(const struct emu_server *server)
{
    const size_t n_links = emu_machine_n_links(server->machine);
    struct emu_link_load *loads = calloc(n_links, sizeof(*loads));

    if (!loads)
        return NULL;
    if (emu_network_past_loads(server))
        memcpy(loads, emu_network_past_loads(server), n_links * sizeof(*loads));
    if (emu_flows_add_loads(server, loads) == 0)
        return loads;
    free(loads);
    return NULL;
}

static bool take_load(const struct emu_server *server, struct emu_words *words, struct emu_link_load *loads)
{
    uint32_t link = (uint32_t)emu_words_take(words, UINT32_MAX);
    uint64_t packets = emu_words_take(words, INT64_MAX);
    uint64_t flits = emu_words_take(words, INT64_MAX);

    if (words->is_bad || link >= emu_machine_n_links(server->machine))
        return false;
    loads[link].packets += packets;
    loads[link].flits += flits;
    return true;
}

static void add_links_of(struct emu_server *server, uint32_t host, const struct emu_word_list *rows, json_t *flows,
                         struct emu_link_load *loads)
{
    struct emu_words words = { .at = rows->words, .left = rows->n };
    bool is_good = true;

    while (is_good && words.left > 0) {
        uint64_t kind = emu_words_take(&words, UINT64_MAX);

        is_good = (kind == EMU_HOST_ROW_FLOW && take_flow(server, host, &words, flows)) ||
                  (kind == EMU_HOST_ROW_LINK && take_load(server, &words, loads));
    }
    if (!is_good)
        emu_hosts_refuse(server, host, "flows or loads that make no sense");
}

/* Hosts that have not answered; NULL if all have. */
static json_t *describe_missing(const struct emu_server *server, const struct emu_gathered *gathered)
{
    json_t *missing = NULL;

    for (uint32_t i = 0; gathered && i < gathered->n_hosts; i++) {
        const struct emu_word_list *rows = &gathered->rows[i];
        bool has_too_many = rows->n == 1 && rows->words[0] == EMU_HOST_ROW_TOO_MANY;

        if (!gathered->is_missing[i] && !has_too_many)
            continue;
        if (!missing)
            missing = json_array();
        json_array_append_new(missing, json_string(emu_hosts_name(server, i)));
    }
    return missing;
}

static int report_links(struct emu_server *server, const struct emu_gathered *gathered)
{
    bool is_whole = emu_fault_map_is_clean(emu_network_faults(server));
    struct emu_link_load *loads = loads_here(server);
    json_t *flows = json_array();
    struct collection collection = { server, flows };
    const struct emu_domain *domain;
    json_t *report;
    int r = loads ? 0 : -ENOMEM;

    LIST_FOREACH(domain, &server->domains, link) {
        if (r == 0)
            r = emu_flows_visit(domain, collect, &collection);
    }
    if (r < 0) {
        json_decref(flows);
        free(loads);
        return r;
    }
    for (uint32_t i = 0; gathered && i < gathered->n_hosts; i++) {
        if (gathered->rows[i].n > 1)
            add_links_of(server, i, &gathered->rows[i], flows, loads);
    }
    report =
        json_pack("{sI ss ss ss ss so* so so* so so*}", "schema", (json_int_t)SCHEMA, "server", server->name, "machine",
                  emu_machine_name(server->machine), "machine_spec", server->machine_spec, "routing",
                  emu_server_is_virtual(server) ? "packets in virtual time" :
                  is_whole                      ? "minimal, spread evenly" :
                                                  "around what is broken",
                  "missing_hosts", describe_missing(server, gathered), "flows", flows, "paths", describe_paths(server),
                  "links", describe_loads(server, loads), "time", emu_time_describe(server));
    free(loads);
    return to_memfd(report);
}

static void put_links(struct emu_server *server, struct emu_word_list *rows)
{
    struct emu_link_load *loads = loads_here(server);
    const struct emu_domain *domain;

    if (!loads) {
        rows->has_failed = true;
        return;
    }
    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->common_number != 0 && emu_flows_visit(domain, put_flow, rows) < 0)
            rows->has_failed = true;
    }
    for (uint32_t id = 0; id < emu_machine_n_links(server->machine); id++) {
        const uint64_t row[LINK_WORDS] = { EMU_HOST_ROW_LINK, id, loads[id].packets, loads[id].flits };

        if (loads[id].packets > 0)
            emu_word_list_add_row(rows, row, LINK_WORDS);
    }
    free(loads);
}

/* ---- faults ---- */

static json_t *classes_of(const struct emu_fault_rule *rule)
{
    json_t *classes = json_array();

    for (unsigned c = 0; c < EMU_FAULT_CLASSES; c++) {
        if (rule->classes & EMU_FAULT_BIT(c))
            json_array_append_new(classes, json_string(emu_fault_class_name(c)));
    }
    return classes;
}

/* What is not set is null. */
static json_t *number_or_null(bool is_set, uint64_t number)
{
    return is_set ? json_integer((json_int_t)number) : json_null();
}

static json_t *describe_rule(const struct emu_fault_rule *rule, uint64_t seen, uint64_t hits)
{
    const char *status = emu_fault_status_name(rule);
    const char *category = emu_error_category_name(rule->category);

    return json_pack("{sI so ss ss* ss* ss* so so so so so so so so sI sI so so so sI sI sI}", "id",
                     (json_int_t)rule->id, "classes", classes_of(rule), "action", emu_fault_action_name(rule->action),
                     "status", status[0] ? status : NULL, "category", category, "victim",
                     rule->action != EMU_FAULT_KILL             ? NULL :
                     (rule->flags & EMU_FAULT_VICTIM_INITIATOR) ? "initiator" :
                                                                  "target",
                     "from_nid", number_or_null(rule->from_nid != EMU_NID_NONE, rule->from_nid), "to_nid",
                     number_or_null(rule->to_nid != EMU_NID_NONE, rule->to_nid), "from_instance",
                     number_or_null(rule->flags & EMU_FAULT_FROM_INSTANCE, rule->from_instance), "to_instance",
                     number_or_null(rule->flags & EMU_FAULT_TO_INSTANCE, rule->to_instance), "rate_ppb",
                     number_or_null(rule->rate_ppb != 0, rule->rate_ppb), "nth",
                     number_or_null(rule->nth != 0, rule->nth), "every", number_or_null(rule->every != 0, rule->every),
                     "live_min", number_or_null(rule->live_min != 0, rule->live_min), "after", (json_int_t)rule->after,
                     "start_ns", (json_int_t)rule->start_ns, "count", number_or_null(rule->count != 0, rule->count),
                     "end_ns", number_or_null(rule->end_ns != 0, rule->end_ns), "delay_ns",
                     number_or_null(rule->delay_ns != 0, rule->delay_ns), "seed", (json_int_t)rule->seed, "seen",
                     (json_int_t)seen, "hits", (json_int_t)hits);
}

static void put_counts(const struct emu_domain *domain, struct emu_word_list *rows)
{
    struct emu_fault_rule rule;
    uint64_t seen;
    uint64_t hits;

    for (uint32_t i = 0; emu_fault_rule_of(domain, i, &rule, &seen, &hits); i++) {
        const uint64_t row[COUNT_WORDS] = { EMU_HOST_ROW_RULE, domain->common_number, rule.id, seen, hits };

        emu_word_list_add_row(rows, row, COUNT_WORDS);
    }
}

struct rule_counts {
    uint32_t rule;
    uint64_t seen;
    uint64_t hits;
};

/* Adds what a rule has seen and hit on a host. */
static void add_counts_of(struct emu_server *server, uint32_t host, const struct emu_word_list *rows,
                          const struct emu_domain *domain, struct rule_counts *counts)
{
    struct emu_words words = { .at = rows->words, .left = rows->n };

    while (words.left > 0 && !words.is_bad) {
        uint64_t kind = emu_words_take(&words, EMU_HOST_ROW_RULE);
        uint64_t number = emu_words_take(&words, UINT32_MAX);
        uint64_t id = emu_words_take(&words, UINT32_MAX);
        uint64_t seen_there = emu_words_take(&words, INT64_MAX);
        uint64_t hits_there = emu_words_take(&words, INT64_MAX);

        words.is_bad = words.is_bad || kind != EMU_HOST_ROW_RULE;
        if (words.is_bad || number != domain->common_number || id != counts->rule)
            continue;
        counts->seen += seen_there;
        counts->hits += hits_there;
    }
    if (words.is_bad)
        emu_hosts_refuse(server, host, "counts of rules that make no sense");
}

static json_t *faults_of(struct emu_server *server, const struct emu_domain *domain,
                         const struct emu_gathered *gathered)
{
    json_t *rules = json_array();
    struct emu_fault_rule rule;
    struct rule_counts counts;

    for (uint32_t i = 0; emu_fault_rule_of(domain, i, &rule, &counts.seen, &counts.hits); i++) {
        counts.rule = rule.id;
        for (uint32_t host = 0; domain->common_number != 0 && gathered && host < gathered->n_hosts; host++) {
            if (gathered->rows[host].n > 1)
                add_counts_of(server, host, &gathered->rows[host], domain, &counts);
        }
        json_array_append_new(rules, describe_rule(&rule, counts.seen, counts.hits));
    }
    return json_pack("{sI sI so}", "domain", (json_int_t)domain->id, "ptag", (json_int_t)domain->ptag, "rules", rules);
}

static void add_broken(json_t *list, const char *thing, uint32_t index, const char *name, const char *state)
{
    json_array_append_new(
        list, json_pack("{ss sI ss ss}", "thing", thing, "index", (json_int_t)index, "name", name, "state", state));
}

static void add_broken_links(const struct emu_server *server, json_t *list)
{
    const struct emu_fault_map *faults = emu_network_faults(server);
    char name[EMU_LINK_NAME_MAX] = "";
    struct emu_link link;
    char state[40];

    for (uint32_t id = 0; id < emu_machine_n_links(server->machine); id++) {
        uint32_t mask = emu_fault_map_lane_mask(faults, id);

        if (emu_link_get(server->machine, id, &link) < 0)
            continue;
        if (!emu_fault_map_link_itself_up(faults, id))
            snprintf(state, sizeof(state), "down");
        else if (link.lanes < 32 && mask != (1u << link.lanes) - 1)
            snprintf(state, sizeof(state), "lane mask %u", mask);
        else
            continue;
        emu_link_name(server->machine, id, name, sizeof(name));
        add_broken(list, "link", id, name, state);
    }
}

/* What is down or has lost lanes. */
static json_t *describe_broken(const struct emu_server *server)
{
    const struct emu_fault_map *faults = emu_network_faults(server);
    json_t *list = json_array();
    char name[EMU_CNAME_MAX] = "";

    if (emu_fault_map_is_clean(faults))
        return list;
    for (uint32_t r = 0; r < emu_machine_n_routers(server->machine); r++) {
        if (!emu_fault_map_router_up(faults, r) &&
            emu_machine_router_cname(server->machine, r, name, sizeof(name)) == 0)
            add_broken(list, "router", r, name, "down");
    }
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(server->machine); nid++) {
        if (!emu_fault_map_node_up(faults, nid) && emu_machine_cname(server->machine, nid, name, sizeof(name)) == 0)
            add_broken(list, "node", nid, name, "down");
    }
    add_broken_links(server, list);
    return list;
}

static json_t *describe_network(const struct emu_server *server)
{
    return json_pack("{sb sI so so}", "quiesced", (int)emu_network_is_quiesced(server), "quiesces",
                     (json_int_t)emu_network_quiesces(server), "broken", describe_broken(server), "watcher_log",
                     emu_watcher_lines(server));
}

static int report_faults(struct emu_server *server, const struct emu_gathered *gathered)
{
    json_t *domains = json_array();
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link)
        json_array_append_new(domains, faults_of(server, domain, gathered));
    return to_memfd(json_pack("{sI ss ss ss so* so so}", "schema", (json_int_t)SCHEMA, "server", server->name,
                              "machine", emu_machine_name(server->machine), "machine_spec", server->machine_spec,
                              "missing_hosts", describe_missing(server, gathered), "domains", domains, "network",
                              describe_network(server)));
}

/* ---- whoever asks ---- */

int emu_report_make(struct emu_server *server, uint16_t type, const struct emu_gathered *gathered)
{
    switch (type) {
    case EMU_MSG_STATUS:
        return to_memfd(emu_status_describe(server, gathered));
    case EMU_MSG_FAULTS:
        return report_faults(server, gathered);
    default:
        return report_links(server, gathered);
    }
}

void emu_report_rows(struct emu_server *server, uint16_t type, struct emu_word_list *rows)
{
    const struct emu_domain *domain;

    if (type == EMU_MSG_STATUS)
        emu_status_rows(server, rows);
    if (type == EMU_MSG_LINKS)
        put_links(server, rows);
    LIST_FOREACH(domain, &server->domains, link) {
        if (type == EMU_MSG_FAULTS && domain->common_number != 0)
            put_counts(domain, rows);
    }
}
