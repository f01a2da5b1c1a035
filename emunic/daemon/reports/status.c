/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status of the machine.
 *
 * Each host tells of itself in rows (abi/host_admin.h), and whoever was asked puts them together, its own like the
 * others', in the order of the hosts; so all give the same picture. The words of a row come from the parts
 * (core/status_row.h). What a domain of all hosts is, is known here already; from the others come only the members,
 * nodes and ports there.
 *
 * Rows of other hosts are checked one by one: of each kind there are no more than can be (hosts, nodes and ports come
 * in order, a domain once), and a node or a port is on a node of the host that tells. The first row that makes no sense
 * ends what is taken of that host, with a line in the log, and the status says so.
 */
#include "emunic/daemon/reports/status.h"

#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/core/part.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/reports/gather.h"
#include "emunic/daemon/reports/time_report.h"
#include "emunic/daemon/reports/user_rows.h"
#include "emunic/daemon/rights/rights.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/node.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/word_list.h"

#define SCHEMA 1

#define DOMAIN_WORDS EMU_STATUS_DOMAIN_WORDS
#define PORT_COUNT   EMU_STATUS_PORT_COMMANDS         /* the first one in a row */
#define COUNT_MAX    (INT64_MAX / EMU_MEMORY_METHODS) /* their sum is a number, too */

static const char *const host_keys[EMU_STATUS_HOST_WORDS] = {
    [EMU_STATUS_HOST_PID] = "pid",
    [EMU_STATUS_HOST_UPTIME_MS] = "uptime_ms",
    [EMU_STATUS_HOST_ROUNDS] = "rounds",
    [EMU_STATUS_HOST_SLEEPS] = "sleeps",
};
static const char *const session_keys[EMU_STATUS_SESSION_COUNTS] = {
    [EMU_STATUS_SESSION_COUNT] = "sessions",
    [EMU_STATUS_SESSION_MESSAGES_SENT] = "messages_sent",
    [EMU_STATUS_SESSION_MESSAGES_RECEIVED] = "messages_received",
    [EMU_STATUS_SESSION_PACKETS_SENT] = "packets_sent",
    [EMU_STATUS_SESSION_PACKETS_RECEIVED] = "packets_received",
    [EMU_STATUS_SESSION_BYTES_SENT] = "bytes_sent",
    [EMU_STATUS_SESSION_BYTES_RECEIVED] = "bytes_received",
    [EMU_STATUS_SESSION_PUT_BYTES] = "put_bytes",
    [EMU_STATUS_SESSION_GET_BYTES] = "get_bytes",
    [EMU_STATUS_SESSION_QUEUED] = "queued",
    [EMU_STATUS_SESSION_REFUSED] = "refused",
};
/* By enum emu_cipher. */
static const char *const cipher_names[EMU_CIPHERS] = {
    [EMU_CIPHER_NONE] = "none",
    [EMU_CIPHER_CHACHA20_POLY1305] = "chacha20-poly1305",
    [EMU_CIPHER_AES256_GCM] = "aes-256-gcm",
};
static const char *const port_keys[EMU_STATUS_PORT_METHODS] = {
    [EMU_STATUS_PORT_INDEX] = "port",
    [EMU_STATUS_PORT_NID] = "nid",
    [EMU_STATUS_PORT_INSTANCE_ID] = "instance_id",
    [EMU_STATUS_PORT_PID] = "pid",
    [EMU_STATUS_PORT_COMMANDS] = "commands",
    [EMU_STATUS_PORT_COMMANDS_WAITING] = "commands_waiting",
    [EMU_STATUS_PORT_TRANSFERS] = "transfers",
    [EMU_STATUS_PORT_QUEUES] = "queues",
    [EMU_STATUS_PORT_QUEUES_IN_OVERRUN] = "queues_in_overrun",
    [EMU_STATUS_PORT_MEMORY_DOMAINS] = "memory_domains",
    [EMU_STATUS_PORT_DATAGRAMS] = "datagrams",
    [EMU_STATUS_PORT_TX_OPERATIONS] = "tx_operations",
    [EMU_STATUS_PORT_TX_BYTES] = "tx_bytes",
    [EMU_STATUS_PORT_TX_PACKETS] = "tx_packets",
    [EMU_STATUS_PORT_ERRORS] = "errors",
};
static const char *const amo_cache_keys[EMU_STATUS_NODE_AMO_WORDS] = { "commands", "hits", "host_reads",
                                                                       "host_writes" };
static const char *const method_keys[EMU_MEMORY_METHODS] = {
    [EMU_MEMORY_CMA] = "cma", [EMU_MEMORY_MAP] = "adopted", [EMU_MEMORY_FILE] = "shared_file"
};
static_assert(EMU_STATUS_PORT_WORDS - PORT_COUNT == EMU_HOST_PORT_COUNTS, "what a port's row has");

static const char *const text_keys[EMU_HOST_TEXTS] = {
    [EMU_HOST_TEXT_PROCESSORS] = "processors", [EMU_HOST_TEXT_WHY] = "why"
};

/* ---- what is here ---- */

static void put_text(struct emu_word_list *rows, enum emu_host_text which, const char *text)
{
    uint32_t length = (uint32_t)strnlen(text, EMU_HOST_TEXT_MAX);
    uint64_t *at = emu_word_list_extend(rows, 3 + (length + 7) / 8);

    if (!at)
        return;
    at[0] = EMU_HOST_ROW_TEXT;
    at[1] = which;
    at[2] = length;
    memset(at + 3, 0, (length + 7) / 8 * sizeof(*at));
    for (uint32_t i = 0; i < length; i++) {
        bool is_plain = text[i] >= ' ' && text[i] <= '~';

        at[3 + i / 8] |= (uint64_t)(uint8_t)(is_plain ? text[i] : '?') << 8 * (i % 8);
    }
}

static void put_row(struct emu_word_list *rows, enum emu_host_row kind, const uint64_t *words, uint32_t n)
{
    emu_word_list_add(rows, kind);
    emu_word_list_add_row(rows, words, n);
}

static void put_host(const struct emu_server *server, struct emu_word_list *rows)
{
    struct emu_status_host own = { .bind = NULL };

    emu_parts_status_host(server, &own);
    put_row(rows, EMU_HOST_ROW_HOST, own.words, EMU_STATUS_HOST_WORDS);
    for (unsigned i = 0; i < EMU_HOST_TEXTS; i++)
        put_text(rows, i, own.texts[i]);
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        const uint64_t host = i;

        if (!emu_hosts_is_up(server, i))
            put_row(rows, EMU_HOST_ROW_UNREACHED, &host, 1);
    }
}

static void put_nodes(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *rows)
{
    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        uint64_t row[EMU_STATUS_NODE_WORDS] = { 0 };

        if (emu_hosts_of_node(domain, i) != emu_hosts_own(server))
            continue;
        emu_parts_status_node(server, emu_table_nodes(domain->table)[i].nid, row);
        put_row(rows, EMU_HOST_ROW_NODE, row, EMU_STATUS_NODE_AMO_COMMANDS);
        if (emu_amo_caches_are_used(server))
            put_row(rows, EMU_HOST_ROW_ATOMICS, row + EMU_STATUS_NODE_AMO_COMMANDS, EMU_STATUS_NODE_AMO_WORDS);
    }
}

static void put_port(const struct emu_port_end *port, struct emu_word_list *rows)
{
    uint64_t row[EMU_STATUS_PORT_WORDS] = { 0 };

    emu_parts_status_port(port, row);
    /* Some come from memory that the process may write. */
    for (unsigned i = PORT_COUNT; i < EMU_STATUS_PORT_WORDS; i++)
        row[i] = row[i] < COUNT_MAX ? row[i] : COUNT_MAX;
    put_row(rows, EMU_HOST_ROW_PORT, row, EMU_STATUS_PORT_WORDS);
}

static void put_domain(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *rows)
{
    uint64_t row[DOMAIN_WORDS] = { 0 };

    emu_parts_status_domain(server, domain, row);
    put_row(rows, EMU_HOST_ROW_DOMAIN, row, DOMAIN_WORDS);
    put_nodes(server, domain, rows);
    for (uint32_t i = 0; i < EMU_PORTS_MAX; i++) {
        if (domain->ports[i])
            put_port(domain->ports[i], rows);
    }
}

void emu_status_rows(struct emu_server *server, struct emu_word_list *rows)
{
    const struct emu_domain *domain;

    put_host(server, rows);
    emu_user_rows_put(server, rows);
    LIST_FOREACH(domain, &server->domains, link)
        put_domain(server, domain, rows);
}

/* ---- what the hosts have told ---- */

/* A domain of all hosts, while they are listened to. */
struct common {
    const struct emu_domain *domain;
    json_t *object; /* owned until it is in the report */
    int64_t n_members;
    int64_t n_attached;
    uint32_t n_told; /* the last host that told of it, and 1 */
};

/* One host's rows. */
struct teller {
    struct emu_server *server;
    uint32_t host;
    struct emu_words words;
    json_t *report; /* borrowed: object of the host; NULL when there is only one */
    struct common *commons;
    uint32_t n_commons;
    json_t *domains; /* of hosts alone */
    json_t *users;
    bool is_known; /* HOST has come */
    uint32_t next_unreached;
    bool is_in_domain;               /* nodes and ports are of this one: */
    const struct emu_domain *domain; /* NULL: it is of that host alone, or has ended here */
    json_t *object;                  /* NULL: it has ended here */
    uint32_t next_nid;
    uint32_t next_port;
    json_t *node;      /* borrowed: object of the last row, if it was a node's; NULL: nobody wants to know */
    bool is_at_a_node; /* that row was one */
};

/* One word for each key, at most INT64_MAX. */
static void take_numbers(struct teller *t, json_t *object, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_object_set_new(object, keys[i], json_integer((json_int_t)emu_words_take(&t->words, INT64_MAX)));
}

static bool take_host(struct teller *t)
{
    if (t->is_known)
        return false;
    t->is_known = true;
    take_numbers(t, t->report, host_keys, EMU_STATUS_HOST_WORDS);
    return !t->words.is_bad;
}

static bool take_text(struct teller *t)
{
    uint32_t which = (uint32_t)emu_words_take(&t->words, EMU_HOST_TEXTS - 1);
    uint32_t length = (uint32_t)emu_words_take(&t->words, EMU_HOST_TEXT_MAX);
    char text[EMU_HOST_TEXT_MAX + 1] = "";
    uint64_t word = 0;

    for (uint32_t i = 0; i < length; i++) {
        word = i % 8 == 0 ? emu_words_take(&t->words, UINT64_MAX) : word >> 8;
        text[i] = (char)(word & 0xff);
        if (t->words.is_bad || text[i] < ' ' || text[i] > '~')
            return false;
    }
    if (t->words.is_bad)
        return false;
    json_object_set_new(t->report, text_keys[which], json_string(text));
    return true;
}

static bool take_unreached(struct teller *t)
{
    uint32_t host = (uint32_t)emu_words_take(&t->words, UINT32_MAX);

    if (t->words.is_bad || host >= emu_hosts_count(t->server) || host < t->next_unreached || host == t->host)
        return false;
    t->next_unreached = host + 1;
    json_array_append_new(json_object_get(t->report, "unreached"), json_string(emu_hosts_name(t->server, host)));
    return true;
}

/* The domain of that number that all hosts have; NULL: it has ended here, or is about to be made. */
static struct common *find_common(const struct teller *t, uint32_t number)
{
    for (uint32_t i = 0; i < t->n_commons; i++) {
        if (t->commons[i].domain->common_number == number)
            return &t->commons[i];
    }
    return NULL;
}

static json_t *describe_domain(const uint64_t words[DOMAIN_WORDS])
{
    return json_pack(
        "{sI sI sI sI sI sI sI sI sI sb ss sI s[] s[]}", "number", (json_int_t)words[EMU_STATUS_DOMAIN_NUMBER],
        "domain", (json_int_t)words[EMU_STATUS_DOMAIN_ID], "ptag", (json_int_t)words[EMU_STATUS_DOMAIN_PTAG], "cookie",
        (json_int_t)words[EMU_STATUS_DOMAIN_COOKIE], "uid", (json_int_t)words[EMU_STATUS_DOMAIN_UID], "ranks",
        (json_int_t)words[EMU_STATUS_DOMAIN_RANKS], "members", (json_int_t)words[EMU_STATUS_DOMAIN_MEMBERS], "attached",
        (json_int_t)words[EMU_STATUS_DOMAIN_ATTACHED], "member_limit",
        (json_int_t)words[EMU_STATUS_DOMAIN_MEMBER_LIMIT], "ending", (int)words[EMU_STATUS_DOMAIN_IS_ENDING],
        "datapath", "routed", "fault_rules", (json_int_t)words[EMU_STATUS_DOMAIN_FAULT_RULES], "nodes", "ports");
}

static bool take_domain(struct teller *t)
{
    uint64_t words[DOMAIN_WORDS];
    struct common *common;

    for (unsigned i = 0; i < DOMAIN_WORDS; i++)
        words[i] = emu_words_take(&t->words, i == EMU_STATUS_DOMAIN_IS_ENDING ? 1 : UINT32_MAX);
    common = words[EMU_STATUS_DOMAIN_NUMBER] != 0 ? find_common(t, (uint32_t)words[EMU_STATUS_DOMAIN_NUMBER]) : NULL;
    if (t->words.is_bad || (common && common->n_told == t->host + 1))
        return false;
    t->is_in_domain = true;
    t->domain = common ? common->domain : NULL;
    t->object = common ? common->object : NULL;
    t->next_nid = t->next_port = 0;
    if (common) {
        common->n_told = t->host + 1;
        common->n_members += (int64_t)words[EMU_STATUS_DOMAIN_MEMBERS];
        common->n_attached += (int64_t)words[EMU_STATUS_DOMAIN_ATTACHED];
    } else if (words[EMU_STATUS_DOMAIN_NUMBER] == 0) {
        t->object = describe_domain(words);
        json_object_set_new(t->object, "host", json_integer(t->host));
        json_array_append_new(t->domains, t->object);
    }
    return true;
}

static json_t *describe_node(const struct emu_server *server, uint32_t nid, uint32_t host, uint64_t n_used)
{
    char cname[EMU_CNAME_MAX] = "";

    emu_machine_cname(server->machine, nid, cname, sizeof(cname));
    return json_pack("{sI ss sI sI}", "nid", (json_int_t)nid, "cname", cname, "host", (json_int_t)host,
                     "memory_domains_on_node", (json_int_t)n_used);
}

/* Is that a node of the domain, if it is known here, on the host that tells? */
static bool is_theirs(const struct teller *t, uint32_t nid)
{
    uint32_t node;

    if (!t->is_in_domain || nid >= t->server->n_nids)
        return false;
    node = t->domain ? emu_domain_node_of(t->domain, nid) : 0;
    return !t->domain || (node != EMU_NID_NONE && emu_hosts_of_node(t->domain, node) == t->host);
}

static bool take_node(struct teller *t)
{
    uint32_t nid = (uint32_t)emu_words_take(&t->words, EMU_NID_MAX);
    uint64_t n_used = emu_words_take(&t->words, EMU_MD_COUNT);

    if (t->words.is_bad || nid < t->next_nid || !is_theirs(t, nid))
        return false;
    t->next_nid = nid + 1;
    t->is_at_a_node = true;
    if (t->domain) {
        t->node = json_array_get(json_object_get(t->object, "nodes"), emu_domain_node_of(t->domain, nid));
        json_object_set_new(t->node, "memory_domains_on_node", json_integer((json_int_t)n_used));
    } else if (t->object) {
        t->node = describe_node(t->server, nid, t->host, n_used);
        json_array_append_new(json_object_get(t->object, "nodes"), t->node);
    }
    return true;
}

/* Of the node's NIC, all domains together. */
static bool take_atomics(struct teller *t)
{
    bool is_lazy = emu_machine_nic(t->server->machine)->amo_cache == EMU_AMO_CACHE_LAZY;
    json_t *cache = json_pack("{ss}", "mode", is_lazy ? "lazy" : "eager");

    take_numbers(t, cache, amo_cache_keys, EMU_STATUS_NODE_AMO_WORDS);
    if (!t->words.is_bad && t->node)
        json_object_set(t->node, "amo_cache", cache);
    json_decref(cache);
    return !t->words.is_bad;
}

/* The rest of a port's row: how its memory is reached. */
static void take_methods(struct teller *t, json_t *port)
{
    json_t *memory = json_object();
    uint64_t n_mapped = 0;
    uint64_t sum_bytes = 0;

    for (unsigned i = 0; i < EMU_MEMORY_METHODS; i++) {
        uint64_t n = emu_words_take(&t->words, COUNT_MAX);
        uint64_t bytes = emu_words_take(&t->words, COUNT_MAX);

        n_mapped += i == EMU_MEMORY_CMA ? 0 : n;
        sum_bytes += bytes;
        json_object_set_new(memory, method_keys[i],
                            json_pack("{sI sI}", "memory_domains", (json_int_t)n, "bytes", (json_int_t)bytes));
    }
    json_object_set_new(port, "memory_domains_mapped", json_integer((json_int_t)n_mapped));
    json_object_set_new(port, "registered_bytes", json_integer((json_int_t)sum_bytes));
    json_object_set_new(port, "memory", memory);
}

static bool take_port(struct teller *t)
{
    static const uint64_t max[PORT_COUNT] = { EMU_PORTS_MAX - 1, EMU_NID_MAX, UINT32_MAX, INT32_MAX };
    uint64_t words[PORT_COUNT];
    json_t *port;

    for (unsigned i = 0; i < PORT_COUNT; i++)
        words[i] = emu_words_take(&t->words, max[i]);
    if (t->words.is_bad || words[EMU_STATUS_PORT_INDEX] < t->next_port ||
        !is_theirs(t, (uint32_t)words[EMU_STATUS_PORT_NID]))
        return false;
    t->next_port = (uint32_t)words[EMU_STATUS_PORT_INDEX] + 1;
    port = json_pack("{sI}", "host", (json_int_t)t->host);
    for (unsigned i = 0; i < PORT_COUNT; i++)
        json_object_set_new(port, port_keys[i], json_integer((json_int_t)words[i]));
    take_numbers(t, port, port_keys + PORT_COUNT, EMU_STATUS_PORT_METHODS - PORT_COUNT);
    take_methods(t, port);
    if (!t->words.is_bad && t->object)
        json_array_append(json_object_get(t->object, "ports"), port);
    json_decref(port);
    return !t->words.is_bad;
}

static bool take_row(struct teller *t)
{
    uint64_t kind = emu_words_take(&t->words, UINT64_MAX);

    if (kind == EMU_HOST_ROW_ATOMICS)
        return t->is_at_a_node && take_atomics(t);
    t->is_at_a_node = false;
    t->node = NULL;
    if (kind == EMU_HOST_ROW_HOST)
        return take_host(t);
    if (!t->is_known)
        return false;
    switch (kind) {
    case EMU_HOST_ROW_TEXT:
        return take_text(t);
    case EMU_HOST_ROW_UNREACHED:
        return take_unreached(t);
    case EMU_HOST_ROW_DOMAIN:
        return take_domain(t);
    case EMU_HOST_ROW_NODE:
        return take_node(t);
    case EMU_HOST_ROW_PORT:
        return take_port(t);
    case EMU_HOST_ROW_USER:
        return emu_user_rows_take(&t->words, t->host, t->users);
    default:
        return false;
    }
}

/* What has come of the answer, in a word. */
static const char *take_all(struct teller *t, const struct emu_word_list *rows)
{
    bool is_good = true;

    if (rows->has_failed || (rows->n == 1 && rows->words[0] == EMU_HOST_ROW_TOO_MANY))
        return "too long";
    t->words = (struct emu_words){ .at = rows->words, .left = rows->n };
    while (is_good && t->words.left > 0)
        is_good = take_row(t);
    if (is_good && t->is_known)
        return "whole";
    if (t->host != emu_hosts_own(t->server))
        emu_hosts_refuse(t->server, t->host, "a status that makes no sense");
    return "nonsense";
}

/* ---- the report ---- */

/* A host, and what this emunic knows of it: what went between the two. */
static json_t *describe_host(const struct emu_server *server, uint32_t host)
{
    const char *state = host == emu_hosts_own(server) ? "here" : emu_hosts_is_up(server, host) ? "up" : "down";
    uint64_t row[EMU_STATUS_SESSION_WORDS] = { 0 };
    json_t *object;

    emu_parts_status_session(server, host, row);
    object = json_pack("{sI ss ss}", "host", (json_int_t)host, "name", emu_hosts_name(server, host), "state", state);
    for (unsigned i = 0; i < EMU_STATUS_SESSION_COUNTS; i++)
        json_object_set_new(object, session_keys[i], json_integer((json_int_t)row[i]));
    json_object_set_new(object, "cipher", json_string(cipher_names[row[EMU_STATUS_SESSION_CIPHER]]));
    json_object_set_new(object, "unreached", json_array());
    return object;
}

static int compare_commons(const void *a, const void *b)
{
    const struct common *x = a;
    const struct common *y = b;

    return (x->domain->common_number > y->domain->common_number) -
           (x->domain->common_number < y->domain->common_number);
}

/* In the order of their numbers, with what is the same on all hosts. */
static struct common *find_commons(const struct emu_server *server, uint32_t *n_out)
{
    const struct emu_domain *domain;
    struct common *commons;
    uint32_t n = 0;

    LIST_FOREACH(domain, &server->domains, link)
        n += domain->common_number != 0;
    commons = calloc(n + 1, sizeof(*commons));
    *n_out = commons ? n : 0;
    n = 0;
    LIST_FOREACH(domain, &server->domains, link) {
        if (commons && domain->common_number != 0)
            commons[n++].domain = domain;
    }
    for (uint32_t i = 0; i < *n_out; i++) {
        const struct emu_domain *d = commons[i].domain;
        uint64_t row[DOMAIN_WORDS] = { 0 };

        emu_parts_status_domain(server, d, row);
        commons[i].object = describe_domain(row);
        for (uint32_t k = 0; k < d->n_nodes; k++)
            json_array_append_new(json_object_get(commons[i].object, "nodes"),
                                  describe_node(server, emu_table_nodes(d->table)[k].nid, emu_hosts_of_node(d, k), 0));
    }
    if (commons)
        qsort(commons, *n_out, sizeof(*commons), compare_commons);
    return commons;
}

/* Ours, or of another. */
static const char *hear_host(struct teller *t, const struct emu_gathered *gathered)
{
    struct emu_word_list own = { .words = NULL };
    const char *answer;

    if (t->host != emu_hosts_own(t->server))
        return gathered->is_missing[t->host] ? "none" : take_all(t, &gathered->rows[t->host]);
    emu_status_rows(t->server, &own);
    answer = take_all(t, &own);
    emu_word_list_fini(&own);
    return answer;
}

/* Domains with their nodes and ports; fills the others, which are NULL when there is one host. */
static json_t *hear_all(struct emu_server *server, const struct emu_gathered *gathered, json_t *hosts, json_t *missing,
                        json_t *users)
{
    json_t *domains = json_array();
    json_t *alone = json_array();
    uint32_t n_commons;
    struct common *commons = find_commons(server, &n_commons);

    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        struct teller teller = { .server = server,
                                 .host = i,
                                 .report = json_array_get(hosts, i),
                                 .commons = commons,
                                 .n_commons = n_commons,
                                 .domains = alone,
                                 .users = users };
        const char *answer = hear_host(&teller, gathered);

        json_object_set_new(teller.report, "answer", json_string(answer));
        if (strcmp(answer, "whole") != 0)
            json_array_append_new(missing, json_string(emu_hosts_name(server, i)));
    }
    for (uint32_t i = 0; i < n_commons; i++) {
        json_object_set_new(commons[i].object, "members", json_integer(commons[i].n_members));
        json_object_set_new(commons[i].object, "attached", json_integer(commons[i].n_attached));
        json_array_append_new(domains, commons[i].object);
    }
    json_array_extend(domains, alone);
    json_decref(alone);
    free(commons);
    return domains;
}

static json_t *describe_placement(const struct emu_status_host *own)
{
    json_t *placement = json_pack("{ss}", "bind", own->bind);

    for (unsigned i = 0; i < EMU_HOST_TEXTS; i++)
        json_object_set_new(placement, text_keys[i], json_string(own->texts[i]));
    return placement;
}

static json_t *describe_rights(const struct emu_rights *rights)
{
    char text[1024];

    return json_pack("{ss sb ss sb sI sI ss*}", "capabilities", emu_rights_capabilities(rights, text, sizeof(text)),
                     "no_new_privileges", rights->is_confined, "seccomp",
                     !rights->has_filter ? "none" :
                     rights->has_hosts   ? "several hosts" :
                                           "one host",
                     "landlock", rights->has_landlock, "landlock_abi", (json_int_t)rights->landlock_abi,
                     "refused_calls", (json_int_t)emu_rights_refused(), "off_because", rights->why_off);
}

json_t *emu_status_describe(struct emu_server *server, const struct emu_gathered *gathered)
{
    json_t *hosts = gathered ? json_array() : NULL;
    json_t *missing = gathered ? json_array() : NULL;
    struct emu_status_host own = { .bind = NULL };
    json_t *users = json_array();
    json_t *domains;

    for (uint32_t i = 0; gathered && i < gathered->n_hosts; i++)
        json_array_append_new(hosts, describe_host(server, i));
    domains = hear_all(server, gathered, hosts, missing, users);
    if (json_array_size(missing) == 0) {
        json_decref(missing);
        missing = NULL;
    }
    emu_parts_status_host(server, &own);
    return json_pack("{sI ss sI sI sI ss ss ss sI sI sI so so so* so* so so so*}", "schema", (json_int_t)SCHEMA,
                     "server", server->name, "pid", (json_int_t)own.words[EMU_STATUS_HOST_PID], "abi_version",
                     (json_int_t)EMU_ABI_VERSION, "uptime_ms", (json_int_t)own.words[EMU_STATUS_HOST_UPTIME_MS],
                     "machine", emu_machine_name(server->machine), "machine_spec", server->machine_spec, "topology",
                     emu_machine_topology(server->machine), "machine_nodes", (json_int_t)server->n_nids, "rounds",
                     (json_int_t)own.words[EMU_STATUS_HOST_ROUNDS], "sleeps",
                     (json_int_t)own.words[EMU_STATUS_HOST_SLEEPS], "placement", describe_placement(&own), "rights",
                     describe_rights(own.rights), "hosts", hosts, "missing_hosts", missing, "users", users, "domains",
                     domains, "time", emu_time_describe(server));
}
