/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports as tables. A key that a report lacks shows as 0 or nothing, so that a newer command can read an older server.
 */
#include "emunic/cli/server_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/cli/text_table.h"

#define N_COLUMNS(columns) (sizeof(columns) / sizeof((columns)[0]))

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* ---- status ---- */

/* The first column is left out when there is one host. */
static const struct emu_cli_column port_columns[] = {
    { "HOST", false }, { "PORT", true },    { "NID", true },      { "NODE", false },      { "INSTANCE", true },
    { "PID", true },   { "QUEUES", true },  { "MDS", true },      { "REGISTERED", true }, { "OPERATIONS", true },
    { "BYTES", true }, { "PACKETS", true }, { "OVERRUNS", true }, { "ERRORS", true },
};

static const char *cname_of(const json_t *domain, uint64_t nid)
{
    const json_t *node;
    size_t i;

    json_array_foreach(json_object_get(domain, "nodes"), i, node) {
        if (number_of(node, "nid") == nid)
            return text_of(node, "cname");
    }
    return "";
}

static void init_table(struct emu_cli_table *table, const struct emu_cli_column *columns, size_t n, const json_t *hosts)
{
    bool has_hosts = json_array_size(hosts) > 0;

    emu_cli_table_init(table, columns + !has_hosts, n - !has_hosts);
}

static const char *host_name(const json_t *hosts, uint64_t host)
{
    return text_of(json_array_get(hosts, host), "name");
}

static void add_host(struct emu_cli_table *table, const json_t *hosts, const json_t *port)
{
    if (json_array_size(hosts) > 0)
        emu_cli_table_text(table, host_name(hosts, number_of(port, "host")));
}

static int print_ports(const json_t *domain, const json_t *hosts, FILE *out)
{
    static const char *const keys[] = { "instance_id",       "pid",           "queues",   "memory_domains",
                                        "registered_bytes",  "tx_operations", "tx_bytes", "tx_packets",
                                        "queues_in_overrun", "errors" };
    struct emu_cli_table table;
    const json_t *port;
    size_t i;
    int r;

    if (json_array_size(json_object_get(domain, "ports")) == 0)
        return 0;
    init_table(&table, port_columns, N_COLUMNS(port_columns), hosts);
    json_array_foreach(json_object_get(domain, "ports"), i, port) {
        add_host(&table, hosts, port);
        emu_cli_table_number(&table, number_of(port, "port"));
        emu_cli_table_number(&table, number_of(port, "nid"));
        emu_cli_table_text(&table, cname_of(domain, number_of(port, "nid")));
        for (size_t k = 0; k < N_COLUMNS(keys); k++)
            emu_cli_table_number(&table, number_of(port, keys[k]));
    }
    r = emu_cli_table_print(&table, 4, out);
    emu_cli_table_fini(&table);
    return r;
}

static const struct emu_cli_column memory_columns[] = {
    { "HOST", false },   { "PORT", true },          { "NID", true },    { "CMA", true },          { "CMA_BYTES", true },
    { "ADOPTED", true }, { "ADOPTED_BYTES", true }, { "SHARED", true }, { "SHARED_BYTES", true },
};

/* How registered memory is reached: a row per port that has some. */
static int print_memory(const json_t *domain, const json_t *hosts, FILE *out)
{
    static const char *const methods[] = { "cma", "adopted", "shared_file" };
    struct emu_cli_table table;
    const json_t *port;
    size_t n_rows = 0;
    size_t i;
    int r = 0;

    init_table(&table, memory_columns, N_COLUMNS(memory_columns), hosts);
    json_array_foreach(json_object_get(domain, "ports"), i, port) {
        const json_t *memory = json_object_get(port, "memory");

        if (number_of(port, "memory_domains") == 0 || !memory)
            continue;
        add_host(&table, hosts, port);
        emu_cli_table_number(&table, number_of(port, "port"));
        emu_cli_table_number(&table, number_of(port, "nid"));
        for (size_t k = 0; k < N_COLUMNS(methods); k++) {
            emu_cli_table_number(&table, number_of(json_object_get(memory, methods[k]), "memory_domains"));
            emu_cli_table_number(&table, number_of(json_object_get(memory, methods[k]), "bytes"));
        }
        n_rows++;
    }
    if (n_rows > 0)
        r = emu_cli_table_print(&table, 4, out);
    emu_cli_table_fini(&table);
    return r;
}

static int print_domain(const json_t *domain, const json_t *hosts, FILE *out)
{
    bool is_alone = json_array_size(hosts) > 0 && json_object_get(domain, "host");
    int r;

    uint64_t limit = number_of(domain, "member_limit");
    char limit_text[32] = "no limit";

    if (limit != 0)
        snprintf(limit_text, sizeof(limit_text), "limit %llu", (unsigned long long)limit);
    fprintf(out,
            "  domain %llu: ptag %llu, cookie 0x%08llx, user %llu, %llu ranks on %zu nodes, %llu attached (%s)"
            "%s%s%s\n",
            (unsigned long long)number_of(domain, "domain"), (unsigned long long)number_of(domain, "ptag"),
            (unsigned long long)number_of(domain, "cookie"), (unsigned long long)number_of(domain, "uid"),
            (unsigned long long)number_of(domain, "ranks"), json_array_size(json_object_get(domain, "nodes")),
            (unsigned long long)number_of(domain, "attached"), limit_text,
            json_is_true(json_object_get(domain, "ending")) ? ", ending" : "", is_alone ? ", of host " : "",
            is_alone ? host_name(hosts, number_of(domain, "host")) : "");
    r = print_ports(domain, hosts, out);
    return r < 0 ? r : print_memory(domain, hosts, out);
}

static const struct emu_cli_column host_columns[] = {
    { "HOST", true },     { "NAME", false },    { "STATE", false },  { "ANSWER", false },
    { "PID", true },      { "UP_S", true },     { "NODES", true },   { "PORTS", true },
    { "SESSIONS", true }, { "MSGS_OUT", true }, { "MSGS_IN", true }, { "BYTES_OUT", true },
    { "BYTES_IN", true }, { "QUEUED", true },   { "REFUSED", true }, { "CIPHER", false },
};

/* Nodes, or ports, of all domains that are on that host. */
static uint64_t count_on(const json_t *report, const char *key, uint64_t host)
{
    const json_t *domain;
    const json_t *thing;
    uint64_t n = 0;
    size_t i;
    size_t k;

    json_array_foreach(json_object_get(report, "domains"), i, domain) {
        json_array_foreach(json_object_get(domain, key), k, thing)
            n += number_of(thing, "host") == host;
    }
    return n;
}

/* Where the host's emunic runs, and whom it does not reach. */
static void print_host_lines(const json_t *host, FILE *out)
{
    const json_t *name;
    size_t i;

    if (*text_of(host, "processors"))
        fprintf(out, "  host %s on processors %s: %s\n", text_of(host, "name"), text_of(host, "processors"),
                text_of(host, "why"));
    json_array_foreach(json_object_get(host, "unreached"), i, name)
        fprintf(out, "  host %s has no session with %s\n", text_of(host, "name"),
                json_is_string(name) ? json_string_value(name) : "");
}

/* A row per host, if there are several. */
static int print_hosts(const json_t *report, FILE *out)
{
    static const char *const keys[] = { "sessions",   "messages_sent",  "messages_received",
                                        "bytes_sent", "bytes_received", "queued",
                                        "refused" };
    struct emu_cli_table table;
    const json_t *host;
    size_t i;
    int r;

    if (json_array_size(json_object_get(report, "hosts")) == 0)
        return 0;
    emu_cli_table_init(&table, host_columns, N_COLUMNS(host_columns));
    json_array_foreach(json_object_get(report, "hosts"), i, host) {
        emu_cli_table_number(&table, number_of(host, "host"));
        emu_cli_table_text(&table, text_of(host, "name"));
        emu_cli_table_text(&table, text_of(host, "state"));
        emu_cli_table_text(&table, text_of(host, "answer"));
        emu_cli_table_number(&table, number_of(host, "pid"));
        emu_cli_table_number(&table, number_of(host, "uptime_ms") / 1000);
        emu_cli_table_number(&table, count_on(report, "nodes", number_of(host, "host")));
        emu_cli_table_number(&table, count_on(report, "ports", number_of(host, "host")));
        for (size_t k = 0; k < N_COLUMNS(keys); k++)
            emu_cli_table_number(&table, number_of(host, keys[k]));
        emu_cli_table_text(&table, *text_of(host, "cipher") ? text_of(host, "cipher") : "-");
    }
    r = emu_cli_table_print(&table, 2, out);
    emu_cli_table_fini(&table);
    json_array_foreach(json_object_get(report, "hosts"), i, host)
        print_host_lines(host, out);
    return r;
}

static const char *const user_keys[] = { "connections", "ports",   "registrations", "pages",
                                         "datagrams",   "regions", "transfers" };

static const struct emu_cli_column user_columns[] = {
    { "HOST", false },   { "USER", true },          { "REQUESTS", true }, { "CONNECTIONS", true },
    { "PORTS", true },   { "REGISTRATIONS", true }, { "PAGES", true },    { "DATAGRAMS", true },
    { "REGIONS", true }, { "TRANSFERS", true },     { "REFUSED", true },
};

/* What users hold, of what they may hold. */
static int print_users(const json_t *report, FILE *out)
{
    const json_t *hosts = json_object_get(report, "hosts");
    struct emu_cli_table table;
    const json_t *user;
    size_t i;
    int r;

    if (json_array_size(json_object_get(report, "users")) == 0)
        return 0;
    init_table(&table, user_columns, N_COLUMNS(user_columns), hosts);
    json_array_foreach(json_object_get(report, "users"), i, user) {
        uint64_t refused = 0;

        add_host(&table, hosts, user);
        emu_cli_table_number(&table, number_of(user, "uid"));
        emu_cli_table_number(&table, number_of(user, "requests"));
        for (size_t k = 0; k < N_COLUMNS(user_keys); k++) {
            const json_t *kind = json_object_get(user, user_keys[k]);
            char text[64];

            snprintf(text, sizeof(text), "%llu/%llu", (unsigned long long)number_of(kind, "used"),
                     (unsigned long long)number_of(kind, "limit"));
            emu_cli_table_text(&table, text);
            refused += number_of(kind, "refused");
        }
        emu_cli_table_number(&table, refused);
    }
    r = emu_cli_table_print(&table, 2, out);
    emu_cli_table_fini(&table);
    return r;
}

/* What emunic has kept of its rights. */
static void print_rights(const json_t *rights, FILE *out)
{
    const char *capabilities = text_of(rights, "capabilities");
    unsigned abi = (unsigned)number_of(rights, "landlock_abi");

    fprintf(out, "  rights: capabilities %s; ", *capabilities ? capabilities : "none");
    if (json_object_get(rights, "off_because"))
        fprintf(out, "nothing given up: %s", text_of(rights, "off_because"));
    else
        fprintf(out, "no new privileges; seccomp for %s; ", text_of(rights, "seccomp"));
    if (!json_object_get(rights, "off_because") && json_is_true(json_object_get(rights, "landlock")))
        fprintf(out, "Landlock %u", abi);
    else if (!json_object_get(rights, "off_because"))
        fprintf(out, "no Landlock: %s", abi > 0 ? "emunic touches memory itself" : "the kernel has none");
    if (number_of(rights, "refused_calls") > 0)
        fprintf(out, "; %llu calls refused", (unsigned long long)number_of(rights, "refused_calls"));
    fprintf(out, "\n");
}

/* Of a server in virtual time. */
static void print_time(const json_t *time, FILE *out)
{
    if (!time)
        return;
    fprintf(out, "  virtual time: %.3f us; ", (double)number_of(time, "now_ps") * 1e-6);
    if (number_of(time, "late_operations") == 0 && number_of(time, "spins") == 0)
        fprintf(out, "no lag\n");
    else
        fprintf(out, "%llu operations late by %.3f us in all, %llu computations passed over%s\n",
                (unsigned long long)number_of(time, "late_operations"), (double)number_of(time, "late_ps") * 1e-6,
                (unsigned long long)number_of(time, "spins"),
                json_is_true(json_object_get(time, "is_exact")) ? "" : ": MORE THAN --max-lag");
    if (number_of(time, "missing_jobs") > 0)
        fprintf(out, "  jobs begin when %llu more are at their first fence\n",
                (unsigned long long)number_of(time, "missing_jobs"));
}

int emu_cli_print_status(const json_t *report, FILE *out)
{
    const json_t *hosts = json_object_get(report, "hosts");
    const json_t *placement;
    const json_t *domain;
    size_t i;
    int r = 0;

    fprintf(out, "server %s, pid %llu: %s (%s, %llu nodes), up %.1f s\n", text_of(report, "server"),
            (unsigned long long)number_of(report, "pid"), text_of(report, "machine_spec"), text_of(report, "topology"),
            (unsigned long long)number_of(report, "machine_nodes"), (double)number_of(report, "uptime_ms") / 1e3);
    placement = json_object_get(report, "placement");
    if (json_array_size(hosts) == 0)
        fprintf(out, "  on processors %s: %s\n", text_of(placement, "processors"), text_of(placement, "why"));
    print_rights(json_object_get(report, "rights"), out);
    print_time(json_object_get(report, "time"), out);
    r = print_hosts(report, out);
    if (r == 0)
        r = print_users(report, out);
    json_array_foreach(json_object_get(report, "domains"), i, domain) {
        if (r == 0)
            r = print_domain(domain, hosts, out);
    }
    return r;
}

/* ---- links ---- */

/* "FROM -> TO CLASS NUMBER" taken apart; the pieces point into `text`. */
struct link_name {
    char text[256];
    char *from;
    char *to;
    char *link_class;
    char *number;
};

static bool take_apart(const char *name, struct link_name *parts_out)
{
    char *rest = parts_out->text;

    if (strlen(name) >= sizeof(parts_out->text))
        return false;
    strcpy(parts_out->text, name);
    parts_out->from = strsep(&rest, " ");
    if (!strsep(&rest, " ")) /* the arrow */
        return false;
    parts_out->to = strsep(&rest, " ");
    parts_out->link_class = strsep(&rest, " ");
    parts_out->number = rest;
    return parts_out->number;
}

/* "A -processor-in-> B -black 2-> C ...": the number only where links run in parallel. */
static int describe_path(const json_t *path, char **text_out)
{
    const json_t *name;
    struct link_name parts;
    size_t i, len;
    FILE *out = open_memstream(text_out, &len);

    if (!out)
        return -errno;
    json_array_foreach(path, i, name) {
        const char *text = json_string_value(name);
        bool has_parallels;

        if (!text || !take_apart(text, &parts))
            continue;
        has_parallels = strcmp(parts.link_class, "black") == 0 || strcmp(parts.link_class, "blue") == 0;
        if (i == 0)
            fputs(parts.from, out);
        fprintf(out, " -%s%s%s-> %s", parts.link_class, has_parallels ? " " : "", has_parallels ? parts.number : "",
                parts.to);
    }
    return fclose(out) == EOF ? -ENOMEM : 0;
}

static const struct emu_cli_column path_columns[] = {
    { "FROM", true },       { "TO", true },      { "HOPS", true },  { "MESSAGES", true },
    { "BYTES", true },      { "PACKETS", true }, { "FLITS", true }, { "BACK_PACKETS", true },
    { "BACK_FLITS", true }, { "ERRORS", true },  { "PATH", false },
};

static const struct emu_cli_column way_columns[] = {
    { "FROM", true },    { "TO", true },    { "CLASS", false }, { "HOPS", true },
    { "PACKETS", true }, { "FLITS", true }, { "PATH", false },
};

/* By the ends, requests first, those that most have taken first. */
static int compare_ways(const void *a, const void *b)
{
    static const char *const keys[] = { "src_nid", "dst_nid" };
    const json_t *x = *(json_t *const *)a;
    const json_t *y = *(json_t *const *)b;
    int order;

    for (size_t i = 0; i < N_COLUMNS(keys); i++) {
        if (number_of(x, keys[i]) != number_of(y, keys[i]))
            return number_of(x, keys[i]) < number_of(y, keys[i]) ? -1 : 1;
    }
    order = strcmp(text_of(x, "class"), text_of(y, "class"));
    if (order != 0)
        return order;
    return (number_of(x, "packets") < number_of(y, "packets")) - (number_of(x, "packets") > number_of(y, "packets"));
}

static int add_way(struct emu_cli_table *table, const json_t *way)
{
    char *path = NULL;
    int r = describe_path(json_object_get(way, "path"), &path);

    emu_cli_table_number(table, number_of(way, "src_nid"));
    emu_cli_table_number(table, number_of(way, "dst_nid"));
    emu_cli_table_text(table, text_of(way, "class"));
    emu_cli_table_number(table, number_of(way, "router_hops"));
    emu_cli_table_number(table, number_of(way, "packets"));
    emu_cli_table_number(table, number_of(way, "flits"));
    emu_cli_table_text(table, r == 0 ? path : "");
    free(path);
    return r;
}

/* Virtual time: the ways that packets have taken. */
static int print_ways(const json_t *report, const json_t *ways, FILE *out)
{
    size_t n = json_array_size(ways);
    const json_t **sorted = malloc((n + 1) * sizeof(json_t *));
    struct emu_cli_table table;
    int r = 0;

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_array_get(ways, i);
    qsort(sorted, n, sizeof(json_t *), compare_ways);
    emu_cli_table_init(&table, way_columns, N_COLUMNS(way_columns));
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_way(&table, sorted[i]);
    free(sorted);
    if (r == 0) {
        fprintf(out, "paths of packets on %s\n", text_of(report, "machine"));
        r = emu_cli_table_print(&table, 2, out);
    }
    emu_cli_table_fini(&table);
    return r;
}

int emu_cli_print_paths(const json_t *report, FILE *out)
{
    const json_t *ways = json_object_get(report, "paths");
    static const char *const keys[] = { "src_nid",        "dst_nid",         "router_hops",   "operations",
                                        "payload_bytes",  "request_packets", "request_flits", "response_packets",
                                        "response_flits", "errors" };
    const json_t *flows = json_object_get(report, "flows");
    struct emu_cli_table table;
    const json_t *flow;
    size_t i;
    int r = 0;

    if (json_array_size(ways) > 0)
        return print_ways(report, ways, out);
    if (json_object_get(report, "time") && !ways)
        fprintf(out, "no paths are kept: start the server with --paths\n");
    if (json_array_size(flows) == 0 || json_object_get(report, "time"))
        return 0;
    emu_cli_table_init(&table, path_columns, N_COLUMNS(path_columns));
    json_array_foreach(flows, i, flow) {
        char *path = NULL;

        for (size_t k = 0; k < N_COLUMNS(keys); k++)
            emu_cli_table_number(&table, number_of(flow, keys[k]));
        r = describe_path(json_object_get(flow, "path"), &path);
        if (r < 0)
            break;
        emu_cli_table_text(&table, path);
        free(path);
    }
    if (r == 0) {
        fprintf(out, "paths on %s\n", text_of(report, "machine"));
        r = emu_cli_table_print(&table, 2, out);
    }
    emu_cli_table_fini(&table);
    return r;
}

static const struct emu_cli_column link_columns[] = {
    { "FROM", false },   { "TO", false },     { "CLASS", false },        { "NUMBER", true },   { "LINK", true },
    { "PACKETS", true }, { "FLITS", true },   { "CAPACITY_MB/S", true }, { "LANES", true },    { "ERRORS", true },
    { "STATE", false },  { "BUSY_NS", true }, { "STALL_NS", true },      { "REPEATED", true },
};

#define N_COLUMNS_OF_TIME 3u /* the last ones: virtual time alone has them */

static int compare_loads(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a;
    const json_t *y = *(json_t *const *)b;
    uint64_t x_flits = number_of(x, "flits"), y_flits = number_of(y, "flits");
    uint64_t x_link = number_of(x, "link"), y_link = number_of(y, "link");

    if (x_flits != y_flits)
        return x_flits < y_flits ? 1 : -1;
    return (x_link > y_link) - (x_link < y_link);
}

static void add_link(struct emu_cli_table *table, const json_t *link)
{
    struct link_name parts;
    char lanes[48];

    if (!take_apart(text_of(link, "name"), &parts))
        return;
    emu_cli_table_text(table, parts.from);
    emu_cli_table_text(table, parts.to);
    emu_cli_table_text(table, parts.link_class);
    emu_cli_table_text(table, parts.number);
    emu_cli_table_number(table, number_of(link, "link"));
    emu_cli_table_number(table, number_of(link, "packets"));
    emu_cli_table_number(table, number_of(link, "flits"));
    emu_cli_table_number(table, number_of(link, "data_bytes_per_s") / 1000000);
    snprintf(lanes, sizeof(lanes), "%llu/%llu", (unsigned long long)number_of(link, "lanes_up"),
             (unsigned long long)number_of(link, "lanes"));
    emu_cli_table_text(table, lanes);
    emu_cli_table_number(table, number_of(link, "errors"));
    emu_cli_table_text(table, json_is_true(json_object_get(link, "up")) ? "up" : "down");
    if (!json_object_get(link, "busy_ps"))
        return;
    emu_cli_table_number(table, number_of(link, "busy_ps") / 1000);
    emu_cli_table_number(table, number_of(link, "stall_ps") / 1000);
    emu_cli_table_number(table, number_of(link, "retransmissions"));
}

int emu_cli_print_links(const json_t *report, FILE *out)
{
    const json_t *links = json_object_get(report, "links");
    size_t n = json_array_size(links);
    const json_t **sorted;
    struct emu_cli_table table;
    int r;

    if (n == 0)
        return 0;
    sorted = malloc(n * sizeof(json_t *));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_array_get(links, i);
    qsort(sorted, n, sizeof(json_t *), compare_loads);
    emu_cli_table_init(&table, link_columns,
                       N_COLUMNS(link_columns) - (json_object_get(sorted[0], "busy_ps") ? 0 : N_COLUMNS_OF_TIME));
    for (size_t i = 0; i < n; i++)
        add_link(&table, sorted[i]);
    free(sorted);
    fprintf(out, "links of %s (routing: %s)\n", text_of(report, "machine"), text_of(report, "routing"));
    r = emu_cli_table_print(&table, 2, out);
    emu_cli_table_fini(&table);
    return r;
}
