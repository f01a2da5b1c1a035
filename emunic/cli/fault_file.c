/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault schedules.
 *
 * A file is one YAML mapping: `schema: 1`, perhaps `seed`, and `rules` or `network` or both, lists of mappings. An
 * entry of `network` has `at_ms` and either `fail` or `repair`; what they name is looked up later, in the machine that
 * the schedule meets. The keys of a rule are the rows of a table below; `emunic fault add` takes the same keys. What
 * belongs together is judged when a rule is complete, by emu_fault_rule_check(), which emunic runs once more. The first
 * fault ends the reading; it is told with its place.
 */
#include "emunic/cli/fault_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "emunic/base/input_file.h"
#include "emunic/base/number.h"
#include "emunic/base/text.h"
#include "emunic/engine/fault_rule.h"
#include "emunic/fabric/yaml_bounds.h"

#define SCHEMA          "1"
#define FILE_MAX        (1u << 20)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A rule under construction. */
struct draft {
    struct emu_fault_rule rule;
    char status[32]; /* its meaning depends on the classes, which may come later */
    uint32_t keys;   /* rows that were given */
};

enum kind {
    KIND_CLASS,
    KIND_ACTION,
    KIND_STATUS,
    KIND_CATEGORY,
    KIND_VICTIM,
    KIND_RATE,
    KIND_U32, /* a number; with `flag`, which is set too */
    KIND_U64,
};

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t max;
    uint64_t factor; /* of the unit in the name */
    uint32_t flag;
};

#define FIELD(field) offsetof(struct emu_fault_rule, field)
#define HOUR_MS      3600000ull
#define YEAR_MS      (366 * 24 * HOUR_MS)

static const struct key keys[] = {
    { "class", KIND_CLASS, 0, 0, 0, 0 },
    { "action", KIND_ACTION, 0, 0, 0, 0 },
    { "status", KIND_STATUS, 0, 0, 0, 0 },
    { "category", KIND_CATEGORY, 0, 0, 0, 0 },
    { "victim", KIND_VICTIM, 0, 0, 0, 0 },
    { "rate", KIND_RATE, FIELD(rate_ppb), 0, 0, 0 },
    { "nth", KIND_U64, FIELD(nth), INT64_MAX, 1, 0 },
    { "every", KIND_U64, FIELD(every), INT64_MAX, 1, 0 },
    { "live_min", KIND_U32, FIELD(live_min), EMU_MD_COUNT, 1, 0 },
    { "after", KIND_U64, FIELD(after), INT64_MAX, 1, 0 },
    { "count", KIND_U64, FIELD(count), INT64_MAX, 1, 0 },
    { "from", KIND_U32, FIELD(from_nid), EMU_NID_MAX, 1, 0 },
    { "to", KIND_U32, FIELD(to_nid), EMU_NID_MAX, 1, 0 },
    { "from_instance", KIND_U32, FIELD(from_instance), UINT32_MAX, 1, EMU_FAULT_FROM_INSTANCE },
    { "to_instance", KIND_U32, FIELD(to_instance), UINT32_MAX, 1, EMU_FAULT_TO_INSTANCE },
    { "start_ms", KIND_U64, FIELD(start_ns), YEAR_MS, 1000000, 0 },
    { "end_ms", KIND_U64, FIELD(end_ns), YEAR_MS, 1000000, 0 },
    { "delay_us", KIND_U64, FIELD(delay_ns), HOUR_MS * 1000, 1000, 0 },
    { "seed", KIND_U64, FIELD(seed), INT64_MAX, 1, 0 },
};

static int __attribute__((format(printf, 3, 4))) fail(char *err, size_t err_len, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(err, err_len, format, ap);
    va_end(ap);
    emu_text_tame(err, '?');
    return -EINVAL;
}

/* ---- values ---- */

/* 0 to 1 with at most nine decimals, exactly. */
static bool parse_rate(const char *text, uint32_t *ppb_out)
{
    uint64_t ppb = 0;
    uint64_t unit = EMU_FAULT_RATE_ONE;

    if (*text != '0' && *text != '1')
        return false;
    ppb = (uint64_t)(*text++ - '0') * unit;
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9' && unit > 1; text++) {
            unit /= 10;
            ppb += (uint64_t)(*text - '0') * unit;
        }
    }
    if (*text != '\0' || ppb > EMU_FAULT_RATE_ONE)
        return false;
    *ppb_out = (uint32_t)ppb;
    return true;
}

/* One name or several with commas between. */
static int add_classes(struct draft *draft, const char *text, char *err, size_t err_len)
{
    char copy[256];
    char *rest = copy;

    if (strlen(text) >= sizeof(copy))
        return fail(err, err_len, "class: too long");
    strcpy(copy, text);
    while (rest) {
        const char *name = strsep(&rest, ",");
        uint32_t bits;

        name += strspn(name, " ");
        if (!emu_fault_parse_classes(name, &bits))
            return fail(err, err_len,
                        "class: '%.40s' is none of fma-put, fma-get, fma-amo, bte-put, bte-get, smsg, "
                        "msgq, cq-write, ce, ptl-put, ptl-get, ptl-getput, datagram, registration; fma, bte, ptl, any",
                        name);
        draft->rule.classes |= bits;
    }
    return 0;
}

static int set_number(struct draft *draft, const struct key *key, const char *text, char *err, size_t err_len)
{
    char *field = (char *)&draft->rule + key->offset;
    uint64_t number;

    if (!emu_parse_number(text, 0, 0, key->max, &number))
        return fail(err, err_len, "%s: '%.40s' is not a number from 0 to %llu", key->name, text,
                    (unsigned long long)key->max);
    /* 0 would mean "not given" */
    if (number == 0 && (key->offset == FIELD(nth) || key->offset == FIELD(every) || key->offset == FIELD(live_min) ||
                        key->offset == FIELD(count) || key->offset == FIELD(delay_ns) || key->offset == FIELD(end_ns)))
        return fail(err, err_len, "%s: must be 1 at least", key->name);
    draft->rule.flags |= key->flag;
    if (key->kind == KIND_U32)
        memcpy(field, &(uint32_t){ (uint32_t)number }, sizeof(uint32_t));
    else
        memcpy(field, &(uint64_t){ number * key->factor }, sizeof(uint64_t));
    return 0;
}

static int set_value(struct draft *draft, const struct key *key, const char *text, char *err, size_t err_len)
{
    struct emu_fault_rule *rule = &draft->rule;

    switch (key->kind) {
    case KIND_CLASS:
        return add_classes(draft, text, err, err_len);
    case KIND_ACTION:
        if (emu_fault_parse_action(text, &rule->action))
            return 0;
        return fail(err, err_len, "action: '%.40s' is none of drop, corrupt, fail, delay, overrun, kill, report", text);
    case KIND_STATUS:
        if (strlen(text) >= sizeof(draft->status))
            return fail(err, err_len, "status: '%.40s' is too long", text);
        strcpy(draft->status, text);
        return 0;
    case KIND_CATEGORY:
        if (emu_error_parse_category(text, &rule->category))
            return 0;
        return fail(err, err_len,
                    "category: '%.40s' is none of correctable-memory, critical, transaction, "
                    "address-translation, transient, informational, diag-only, unknown-transaction",
                    text);
    case KIND_VICTIM:
        if (strcmp(text, "initiator") == 0)
            rule->flags |= EMU_FAULT_VICTIM_INITIATOR;
        else if (strcmp(text, "target") != 0)
            return fail(err, err_len, "victim: '%.40s' is neither target nor initiator", text);
        return 0;
    case KIND_RATE:
        if (!parse_rate(text, &rule->rate_ppb))
            return fail(err, err_len, "rate: '%.40s' is not a number from 0 to 1 with at most nine decimals", text);
        if (rule->rate_ppb == 0)
            return fail(err, err_len, "rate: 0 would never hit");
        return 0;
    default:
        return set_number(draft, key, text, err, err_len);
    }
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    }
    return NULL;
}

static struct draft new_draft(uint64_t seed)
{
    return (struct draft){ .rule = { .from_nid = EMU_NID_NONE, .to_nid = EMU_NID_NONE, .seed = seed } };
}

static int set_key(struct draft *draft, const char *name, const char *text, char *err, size_t err_len)
{
    const struct key *key = find_key(name);
    uint32_t bit;

    if (!key)
        return fail(err, err_len, "unknown key '%.40s'", name);
    bit = 1u << (key - keys);
    if ((draft->keys & bit) && key->kind != KIND_CLASS)
        return fail(err, err_len, "%s: given twice", name);
    draft->keys |= bit;
    return set_value(draft, key, text, err, err_len);
}

/* All keys are there: does it make a rule? */
static int complete(struct draft *draft, struct emu_fault_rule *rule_out, char *err, size_t err_len)
{
    struct emu_fault_rule *rule = &draft->rule;
    const char *what;

    if (rule->classes == 0 || rule->action == 0)
        return fail(err, err_len, "missing key '%s'", rule->classes == 0 ? "class" : "action");
    if (draft->status[0]) {
        if (!emu_fault_parse_status(draft->status, rule->classes, &rule->status))
            return fail(err, err_len, "status: '%s' is not one of this class", draft->status);
    } else if (rule->action == EMU_FAULT_FAIL) {
        rule->status = 1; /* network, resource, error */
    }
    what = emu_fault_rule_check(rule);
    if (what)
        return fail(err, err_len, "%s", what);
    *rule_out = *rule;
    return 0;
}

int emu_fault_words_read(char *const *words, unsigned n_words, struct emu_fault_rule *rule_out, char *err,
                         size_t err_len)
{
    struct draft draft = new_draft(0);

    for (unsigned i = 0; i < n_words; i++) {
        const char *equals = strchr(words[i], '=');
        char name[32];
        int r;

        if (!equals || (size_t)(equals - words[i]) >= sizeof(name))
            return fail(err, err_len, "'%.40s' is not KEY=VALUE", words[i]);
        memcpy(name, words[i], (size_t)(equals - words[i]));
        name[equals - words[i]] = '\0';
        r = set_key(&draft, name, equals + 1, err, err_len);
        if (r < 0)
            return r;
    }
    return complete(&draft, rule_out, err, err_len);
}

/* ---- files ---- */

struct reader {
    const char *path; /* borrowed */
    yaml_document_t document;
    struct emu_fault_schedule schedule;
    uint64_t seed;
    char *err; /* borrowed */
    size_t err_len;
};

static int fail_at(const struct reader *r, const yaml_node_t *node, const char *text)
{
    return fail(r->err, r->err_len, "%s:%zu:%zu: %s", r->path, node->start_mark.line + 1, node->start_mark.column + 1,
                text);
}

/* Text of a scalar without an embedded zero byte, or NULL. */
static const char *text_of(const yaml_node_t *node)
{
    const char *text;

    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}

static int read_value(struct reader *r, struct draft *draft, const char *name, const yaml_node_t *value)
{
    char what[400];

    if (!text_of(value))
        return fail_at(r, value, "expected a single value");
    return set_key(draft, name, text_of(value), what, sizeof(what)) < 0 ? fail_at(r, value, what) : 0;
}

/* `class` may be a list. */
static int read_list(struct reader *r, struct draft *draft, const char *name, const yaml_node_t *list)
{
    for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
        int result = read_value(r, draft, name, yaml_document_get_node(&r->document, *item));

        if (result < 0)
            return result;
    }
    return 0;
}

static int read_rule(struct reader *r, const yaml_node_t *node)
{
    struct draft draft = new_draft(r->seed);
    char what[400];

    if (node->type != YAML_MAPPING_NODE)
        return fail_at(r, node, "a rule is a mapping");
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
        const yaml_node_t *value = yaml_document_get_node(&r->document, p->value);
        const char *name = text_of(key);
        int result;

        if (!name || !find_key(name)) {
            snprintf(what, sizeof(what), "unknown key '%.40s'", name ? name : "");
            return fail_at(r, key, what);
        }
        if (strcmp(name, "class") == 0 && value->type == YAML_SEQUENCE_NODE)
            result = read_list(r, &draft, name, value);
        else
            result = read_value(r, &draft, name, value);
        if (result < 0)
            return result;
    }
    if (complete(&draft, &r->schedule.rules[r->schedule.n_rules], what, sizeof(what)) < 0)
        return fail_at(r, node, what);
    r->schedule.n_rules++;
    return 0;
}

static int read_rules(struct reader *r, const yaml_node_t *list)
{
    if (list->type != YAML_SEQUENCE_NODE)
        return fail_at(r, list, "rules: expected a list");
    for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
        const yaml_node_t *node = yaml_document_get_node(&r->document, *item);
        int result;

        if (r->schedule.n_rules == EMU_FAULT_RULES_MAX)
            return fail_at(r, node, "too many rules");
        result = read_rule(r, node);
        if (result < 0)
            return result;
    }
    return r->schedule.n_rules > 0 ? 0 : fail_at(r, list, "rules: the list is empty");
}

static int read_event(struct reader *r, const yaml_node_t *node)
{
    struct emu_network_event *event = &r->schedule.events[r->schedule.n_events];
    bool has_what = false;
    uint64_t at_ms = 0;

    if (node->type != YAML_MAPPING_NODE)
        return fail_at(r, node, "an entry of network is a mapping");
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
        const yaml_node_t *value = yaml_document_get_node(&r->document, p->value);
        const char *name = text_of(key);
        const char *text = text_of(value);

        if (name && strcmp(name, "at_ms") == 0) {
            if (!text || !emu_parse_number(text, 0, 0, YEAR_MS, &at_ms))
                return fail_at(r, value, "at_ms: expected a whole number of milliseconds");
        } else if (name && !has_what && (strcmp(name, "fail") == 0 || strcmp(name, "repair") == 0)) {
            if (!text || strlen(text) >= sizeof(event->what))
                return fail_at(r, value, "expected one part of the network, such as: router c0-0c0s3a0");
            strcpy(event->what, text);
            event->is_repair = strcmp(name, "repair") == 0;
            has_what = true;
        } else {
            return fail_at(r, key, "expected at_ms and one of fail, repair");
        }
    }
    if (!has_what)
        return fail_at(r, node, "one of fail, repair is missing");
    event->at_ns = at_ms * 1000000;
    r->schedule.n_events++;
    return 0;
}

static int read_events(struct reader *r, const yaml_node_t *list)
{
    if (list->type != YAML_SEQUENCE_NODE)
        return fail_at(r, list, "network: expected a list");
    for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top; item++) {
        const yaml_node_t *node = yaml_document_get_node(&r->document, *item);
        int result;

        if (r->schedule.n_events == EMU_NETWORK_EVENTS_MAX)
            return fail_at(r, node, "too many entries");
        result = read_event(r, node);
        if (result < 0)
            return result;
    }
    return r->schedule.n_events > 0 ? 0 : fail_at(r, list, "network: the list is empty");
}

static int read_document(struct reader *r)
{
    const yaml_node_t *network = NULL;
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    const yaml_node_t *schema = NULL;
    const yaml_node_t *rules = NULL;

    if (!root)
        return fail(r->err, r->err_len, "%s:1:1: the file is empty", r->path);
    if (root->type != YAML_MAPPING_NODE)
        return fail_at(r, root, "expected a mapping with schema and rules");
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
        const yaml_node_t *value = yaml_document_get_node(&r->document, p->value);
        const char *name = text_of(key);

        if (name && strcmp(name, "schema") == 0)
            schema = value;
        else if (name && strcmp(name, "rules") == 0)
            rules = value;
        else if (name && strcmp(name, "network") == 0)
            network = value;
        else if (!name || strcmp(name, "seed") != 0)
            return fail_at(r, key, "unknown key: expected schema, seed, rules or network");
        else if (!text_of(value) || !emu_parse_number(text_of(value), 0, 0, INT64_MAX, &r->seed))
            return fail_at(r, value, "seed: expected a whole number");
    }
    if (!schema || !text_of(schema) || strcmp(text_of(schema), SCHEMA) != 0)
        return fail_at(r, schema ? schema : root, "schema: must be there and be 1");
    if (!rules && !network)
        return fail_at(r, root, "missing key 'rules' or 'network'");
    if (rules) {
        int result = read_rules(r, rules);

        if (result < 0)
            return result;
    }
    return network ? read_events(r, network) : 0;
}

static int parse_file(struct reader *r, FILE *file)
{
    yaml_parser_t parser;
    yaml_mark_t mark;
    const char *excess = emu_yaml_excess(file, &mark);
    int result;

    if (excess)
        return fail(r->err, r->err_len, "%s:%zu:%zu: %s", r->path, mark.line + 1, mark.column + 1, excess);
    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, &r->document)) {
        result = read_document(r);
        yaml_document_delete(&r->document);
    } else {
        result = fail(r->err, r->err_len, "%s:%zu:%zu: %s", r->path, parser.problem_mark.line + 1,
                      parser.problem_mark.column + 1, parser.problem ? parser.problem : "not YAML");
    }
    yaml_parser_delete(&parser);
    return result;
}

void emu_fault_schedule_free(struct emu_fault_schedule *schedule)
{
    free(schedule->rules);
    free(schedule->events);
    *schedule = (struct emu_fault_schedule){ .rules = NULL };
}

static int read_file(struct reader *r, FILE *file)
{
    r->schedule.rules = calloc(EMU_FAULT_RULES_MAX, sizeof(*r->schedule.rules));
    r->schedule.events = calloc(EMU_NETWORK_EVENTS_MAX, sizeof(*r->schedule.events));
    if (!r->schedule.rules || !r->schedule.events)
        return -ENOMEM;
    return parse_file(r, file);
}

int emu_fault_file_read(const char *path, struct emu_fault_schedule *schedule_out, char *err, size_t err_len)
{
    struct reader r = { .path = path, .err = err, .err_len = err_len };
    FILE *file;
    int result = emu_input_file_open(path, FILE_MAX, &file);

    err[0] = '\0';
    if (result < 0) {
        if (result == -EINVAL || result == -EFBIG)
            fail(err, err_len, "%s: not a file of at most %u bytes", path, FILE_MAX);
        else
            fail(err, err_len, "%s: %s", path, strerror(-result));
        return result;
    }
    result = read_file(&r, file);
    fclose(file);
    if (result < 0) {
        if (!err[0])
            fail(err, err_len, "%s: %s", path, strerror(-result));
        emu_fault_schedule_free(&r.schedule);
        return result;
    }
    *schedule_out = r.schedule;
    return 0;
}
