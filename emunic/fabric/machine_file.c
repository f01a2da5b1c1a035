/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machine files.
 *
 * Model: a file is one YAML mapping of mappings. Each leaf is a row of a table (struct emu_param): its path, where its
 * value goes, its type and its limits. Two tables apply: the common one below, and the one of the topology that
 * topology.kind names; a third one (node_params.c) if the file has a host section. The same rows serve the overrides
 * of a machine spec. No key has a default in the code and none may be missing, so the file is the one place where a
 * value stands, next to its source.
 *
 * Steps: parse the document; check `schema` first, because a file of another schema deserves no other complaint; find
 * the topology; walk the mappings; apply the overrides; look for rows without a value; let the topology check the
 * values together. Each row remembers where its value came from, so that even the last step can point at a line.
 * The first fault ends the reading.
 *
 * The parser is libyaml's, with our own walk: libcyaml reports a fault in several lines, blames a missing key on the
 * last key it saw, and knows no ranges. libyaml's document tree has the position of every node. Aliases are shared
 * nodes there, not copies, and the walk goes no deeper than the table's paths: a file cannot blow up.
 */
#include "emunic/fabric/machine_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "emunic/base/input_file.h"
#include "emunic/base/nearest.h"
#include "emunic/base/text.h"
#include "emunic/fabric/yaml_bounds.h"

#define SCHEMA         1
#define FILE_BYTES_MAX (1u << 20)
#define PARAMS_MAX     192 /* rows of all tables together */
#define SUFFIX         ".yaml"
#define KEY_MAX        64 /* longest path of a key, with the final zero */
#define SPEC_MAX       4096

#define FIELD(field) offsetof(struct emu_machine_params, field)

static const char *const charge_choices[] = { "true", "full", NULL };
static const char *const choice_choices[] = { "first", "random", "credits", "tokens", NULL };
static const char *const arbitration_choices[] = { "round-robin", "random", "age", "fullest", "longest-waiting", NULL };
static const char *const slow_input_choices[] = { "hold", "store", NULL };

/* In the order of enum emu_amo_cache_use. */
const char *const emu_amo_cache_choices[] = { "off", "eager", "lazy", NULL };

/* In the order of enum emu_device. */
static const char *const device_choices[] = { "gemini", "aries", NULL };

static const struct emu_param common_params[] = {
    { "schema", EMU_PARAM_COUNT, FIELD(schema), SCHEMA, SCHEMA },
    { "name", EMU_PARAM_NAME, FIELD(name), 0, 0 },
    { "topology.kind", EMU_PARAM_NAME, FIELD(kind), 0, 0 },
    { "links.processor.lanes", EMU_PARAM_COUNT, FIELD(link[EMU_LINK_PROCESSOR_IN].lanes), 1, 64 },
    { "links.processor.gbps_per_lane", EMU_PARAM_MILLI, FIELD(link[EMU_LINK_PROCESSOR_IN].mbps_per_lane), 1, 1000000 },
    { "links.processor.wire_ns", EMU_PARAM_MILLI, FIELD(link[EMU_LINK_PROCESSOR_IN].wire_ps), 0, 1000000000 },
    { "links.frame_flits", EMU_PARAM_COUNT, FIELD(router.frame_flits), 0, 1000 },
    { "links.frame_overhead_flits", EMU_PARAM_COUNT, FIELD(router.frame_overhead_flits), 0, 999 },
    { "links.packet_overhead_flits", EMU_PARAM_COUNT, FIELD(router.packet_overhead_flits), 0, 1000 },
    { "links.crc_bits", EMU_PARAM_COUNT, FIELD(router.crc_bits), 0, 64 },
    { "links.retry_timeout_clocks", EMU_PARAM_COUNT, FIELD(router.retry_timeout_clocks), 0, 1000000 },
    { "router.hop_ns", EMU_PARAM_MILLI, FIELD(router.hop_ps), 0, 1000000000 },
    { "router.hop_wire_ns", EMU_PARAM_MILLI, FIELD(router.hop_wire_ps), 0, 1000000000 },
    { "router.clock_ps", EMU_PARAM_COUNT, FIELD(router.clock_ps), 100, 65535 },
    { "router.vc_units", EMU_PARAM_COUNT, FIELD(router.vc_units), 1, 32767 },
    { "router.shared_units", EMU_PARAM_COUNT, FIELD(router.shared_units), 0, 32767 },
    { "router.token_units", EMU_PARAM_COUNT, FIELD(router.token_units), 1, 65535 },
    { "router.packet_units_max", EMU_PARAM_COUNT, FIELD(router.packet_units_max), 1, 65535 },
    { "router.room", EMU_PARAM_CHOICE, FIELD(router.room), 0, 0, charge_choices },
    { "router.bubble_charge", EMU_PARAM_CHOICE, FIELD(router.bubble_charge), 0, 0, charge_choices },
    { "router.choice", EMU_PARAM_CHOICE, FIELD(router.choice), 0, 0, choice_choices },
    { "router.arbitration", EMU_PARAM_CHOICE, FIELD(router.arbitration), 0, 0, arbitration_choices },
    { "router.fullest_percent", EMU_PARAM_COUNT, FIELD(router.fullest_percent), 0, 100 },
    { "router.network_first_percent", EMU_PARAM_COUNT, FIELD(router.network_first_percent), 0, 100 },
    { "router.response_first", EMU_PARAM_COUNT, FIELD(router.response_first), 0, 65535 },
    { "router.paths", EMU_PARAM_COUNT, FIELD(router.paths), 0, 255 },
    { "router.requests", EMU_PARAM_COUNT, FIELD(router.requests), 0, 255 },
    { "router.arb_gap_clocks", EMU_PARAM_COUNT, FIELD(router.arb_gap_clocks), 0, 1000 },
    { "router.slow_input", EMU_PARAM_CHOICE, FIELD(router.slow_input), 0, 0, slow_input_choices },
    { "router.load_period_clocks", EMU_PARAM_COUNT, FIELD(router.load_period_clocks), 0, 1000000 },
    { "packet.payload_bytes_max", EMU_PARAM_COUNT, FIELD(nic.format.payload_bytes_max), 1, 65536 },
    { "packet.flit_bits", EMU_PARAM_COUNT, FIELD(nic.format.flit_bits), 1, 4096 },
    { "packet.request_header_flits", EMU_PARAM_COUNT, FIELD(nic.format.request_header_flits), 1, 1000 },
    { "packet.response_header_flits", EMU_PARAM_COUNT, FIELD(nic.format.response_header_flits), 0, 1000 },
    { "nic.device", EMU_PARAM_CHOICE, FIELD(nic.device), 0, 0, device_choices },
    { "nic.clock_mhz", EMU_PARAM_COUNT, FIELD(nic.clock_mhz), 1, 1000000 },
    { "nic.access_cycles", EMU_PARAM_COUNT, FIELD(nic.access_cycles), 1, 1000 },
    { "nic.drain_cycles", EMU_PARAM_COUNT, FIELD(ends.drain_cycles), 0, 100000 },
    { "nic.reception_units", EMU_PARAM_COUNT, FIELD(ends.reception_units), 0, 32767 },
    { "nic.outstanding_packets", EMU_PARAM_COUNT, FIELD(nic.outstanding_packets), 1, 1u << 20 },
    { "nic.fma_descriptors", EMU_PARAM_COUNT, FIELD(nic.fma_descriptors), 0, 65536 },
    { "nic.bte_channels", EMU_PARAM_COUNT, FIELD(nic.bte_channels), 0, 1024 },
    { "nic.ce_engines", EMU_PARAM_COUNT, FIELD(nic.ce_engines), 0, 1024 },
    { "nic.ce_children_max", EMU_PARAM_COUNT, FIELD(nic.ce_children_max), 0, 1024 },
    { "nic.amo_cache_entries", EMU_PARAM_COUNT, FIELD(nic.amo_cache_entries), 0, 65536 },
    { "nic.amo_cycles", EMU_PARAM_COUNT, FIELD(nic.amo_cycles), 1, 1000 },
};

/* Where a row's value came from. */
struct origin {
    bool is_set;
    uint32_t line; /* 0: an override */
    uint32_t column;
    char override[KEY_MAX]; /* "groups=2", perhaps cut short */
};

struct reader {
    const char *path; /* borrowed */
    yaml_document_t document;
    const struct emu_param *rows[PARAMS_MAX];
    struct origin origins[PARAMS_MAX];
    size_t n_rows;
    struct emu_machine_params params;
    char *err; /* borrowed; may be NULL */
    size_t err_len;
};

/* A machine spec, taken apart. */
struct spec {
    char name[81]; /* of a machine, perhaps cut short; "" if a path was given */
    char path[SPEC_MAX];
    char overrides[SPEC_MAX]; /* "" if there are none */
    bool has_overrides;
};

/* ---- messages. All return -EINVAL. ---- */

static int __attribute__((format(printf, 3, 4))) fail(char *err, size_t err_len, const char *format, ...)
{
    va_list ap;

    if (!err || err_len == 0)
        return -EINVAL;
    va_start(ap, format);
    vsnprintf(err, err_len, format, ap);
    va_end(ap);
    emu_text_tame(err, '?');
    return -EINVAL;
}

static int __attribute__((format(printf, 3, 4)))
fail_at(const struct reader *r, const yaml_mark_t *mark, const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return fail(r->err, r->err_len, "%s:%zu:%zu: %s", r->path, mark->line + 1, mark->column + 1, text);
}

static int fail_row(const struct reader *r, size_t row, const char *text)
{
    const struct origin *o = &r->origins[row];

    if (o->line == 0)
        return fail(r->err, r->err_len, "override '%s': %s: %s", o->override, r->rows[row]->key, text);
    return fail(r->err, r->err_len, "%s:%u:%u: %s: %s", r->path, o->line, o->column, r->rows[row]->key, text);
}

/* Writes "; did you mean 'x'?" for the key that looks most like this one, or nothing. */
static void suggest(const struct reader *r, const char *key, char *text, size_t len)
{
    struct emu_nearest nearest = emu_nearest_to(key, 2);

    for (size_t i = 0; i < r->n_rows; i++) {
        const char *row_key = r->rows[i]->key;
        const char *dot = strrchr(row_key, '.');

        emu_nearest_offer(&nearest, row_key, row_key);
        if (dot && !strchr(key, '.'))
            emu_nearest_offer(&nearest, dot + 1, row_key);
    }
    text[0] = '\0';
    if (nearest.answer)
        snprintf(text, len, "; did you mean '%s'?", nearest.answer);
}

/* ---- values ---- */

/* Digits, and for milli values up to three decimals. */
static bool parse_number(const char *text, bool is_milli, uint64_t *value_out)
{
    uint64_t value = 0;
    int decimals = -1; /* none seen yet, not even the point */
    int digits = 0;

    for (; *text != '\0'; text++) {
        if (*text == '.' && is_milli && decimals < 0 && digits > 0) {
            decimals = 0;
            continue;
        }
        if (*text < '0' || *text > '9' || decimals == 3)
            return false;
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
        digits++;
        decimals += decimals >= 0;
    }
    if (digits == 0 || decimals == 0)
        return false;
    for (int i = decimals < 0 ? 0 : decimals; is_milli && i < 3; i++) {
        if (__builtin_mul_overflow(value, UINT64_C(10), &value))
            return false;
    }
    *value_out = value;
    return true;
}

static int set_name(const struct emu_param *p, const char *value, struct emu_machine_params *params, char *text,
                    size_t text_len)
{
    size_t len = strlen(value);

    if (len == 0 || len >= EMU_MACHINE_NAME_MAX || strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-_") != len) {
        (void)snprintf(text, text_len, "'%.40s' is not a name of up to %d lower case letters, digits, '-' and '_'",
                       value, EMU_MACHINE_NAME_MAX - 1);
        return -EINVAL;
    }
    memcpy((char *)params + p->offset, value, len + 1);
    return 0;
}

static int set_choice(const struct emu_param *p, const char *value, struct emu_machine_params *params, char *text,
                      size_t text_len)
{
    size_t len = 0;

    for (uint32_t i = 0; p->choices[i]; i++) {
        if (strcmp(p->choices[i], value) == 0) {
            memcpy((char *)params + p->offset, &i, sizeof(i));
            return 0;
        }
    }
    len = (size_t)snprintf(text, text_len, "'%.40s' is none of:", value);
    for (uint32_t i = 0; p->choices[i] && len < text_len; i++)
        len += (size_t)snprintf(text + len, text_len - len, " %s", p->choices[i]);
    return -EINVAL;
}

static bool is_milli(const struct emu_param *p)
{
    return p->type == EMU_PARAM_MILLI || p->type == EMU_PARAM_MILLI_OR_NONE;
}

static void describe_range(const struct emu_param *p, char *text, size_t len)
{
    if (p->min == p->max)
        snprintf(text, len, "only %llu", (unsigned long long)p->min);
    else if (is_milli(p))
        snprintf(text, len, "%g to %g", (double)p->min / 1000, (double)p->max / 1000);
    else
        snprintf(text, len, "%llu to %llu", (unsigned long long)p->min, (unsigned long long)p->max);
}

/* Parses a value and stores it. -EINVAL: text says why not. */
static int set_value(const struct emu_param *p, const char *value, struct emu_machine_params *params, char *text,
                     size_t text_len)
{
    bool may_be_auto = p->type == EMU_PARAM_COUNT_OR_AUTO;
    bool may_be_none = p->type == EMU_PARAM_MILLI_OR_NONE;
    char *field = (char *)params + p->offset;
    uint64_t number;
    char range[80];

    if (p->type == EMU_PARAM_NAME)
        return set_name(p, value, params, text, text_len);
    if (p->type == EMU_PARAM_CHOICE)
        return set_choice(p, value, params, text, text_len);
    if (may_be_auto && strcmp(value, "auto") == 0) {
        number = EMU_PARAM_AUTO;
    } else if (may_be_none && strcmp(value, "none") == 0) {
        number = EMU_PARAM_NONE;
    } else if (!parse_number(value, is_milli(p), &number)) {
        snprintf(text, text_len, "'%.40s' is not a %s%s", value,
                 is_milli(p) ? "number with at most three decimals" : "whole number",
                 may_be_auto ? " and not 'auto'" :
                 may_be_none ? " and not 'none'" :
                               "");
        return -EINVAL;
    } else if (number < p->min || number > p->max) {
        describe_range(p, range, sizeof(range));
        snprintf(text, text_len, "%.40s is out of range (%s)", value, range);
        return -EINVAL;
    }
    memcpy(field, &(uint32_t){ (uint32_t)number }, sizeof(uint32_t));
    return 0;
}

/* ---- walking the document ---- */

static const char *text_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* A scalar without an embedded zero byte. */
static bool is_text(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE && strlen(text_of(node)) == node->data.scalar.length;
}

static const char *type_name(const yaml_node_t *node)
{
    switch (node->type) {
    case YAML_SEQUENCE_NODE:
        return "a list";
    case YAML_MAPPING_NODE:
        return "a mapping";
    case YAML_SCALAR_NODE:
        return "a single value";
    default:
        return "nothing";
    }
}

static int fail_not_text(const struct reader *r, const char *key, const yaml_node_t *node)
{
    return fail_at(r, &node->start_mark, "%s: expected a single value, found %s", key,
                   node->type == YAML_SCALAR_NODE ? "binary data" : type_name(node));
}

static bool find_row(const struct reader *r, const char *key, size_t *row_out)
{
    for (size_t i = 0; i < r->n_rows; i++) {
        if (strcmp(r->rows[i]->key, key) == 0) {
            *row_out = i;
            return true;
        }
    }
    return false;
}

/* Is there a row below this path? */
static bool is_section(const struct reader *r, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < r->n_rows; i++) {
        if (strncmp(r->rows[i]->key, path, len) == 0 && r->rows[i]->key[len] == '.')
            return true;
    }
    return false;
}

/* Value of a key of a mapping; NULL if there is none. */
static yaml_node_t *child_of(struct reader *r, yaml_node_t *mapping, const char *key, size_t key_len)
{
    if (mapping->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = mapping->data.mapping.pairs.start; p < mapping->data.mapping.pairs.top; p++) {
        yaml_node_t *k = yaml_document_get_node(&r->document, p->key);

        if (is_text(k) && strlen(text_of(k)) == key_len && memcmp(text_of(k), key, key_len) == 0)
            return yaml_document_get_node(&r->document, p->value);
    }
    return NULL;
}

/* The node of a path, or NULL; *nearest_out is the innermost mapping on the way that exists. */
static yaml_node_t *node_of_path(struct reader *r, const char *path, yaml_node_t **nearest_out)
{
    yaml_node_t *node = yaml_document_get_root_node(&r->document);

    *nearest_out = node;
    while (node) {
        size_t len = strcspn(path, ".");

        *nearest_out = node;
        node = child_of(r, node, path, len);
        if (path[len] == '\0')
            return node;
        path += len + 1;
    }
    return NULL;
}

static int read_leaf(struct reader *r, size_t row, const yaml_node_t *value)
{
    const struct emu_param *p = r->rows[row];
    char text[256];

    if (r->origins[row].is_set) /* by way of an alias: plain repetition is found earlier */
        return fail_at(r, &value->start_mark, "%s: given twice", p->key);
    if (!is_text(value))
        return fail_not_text(r, p->key, value);
    if (p->type != EMU_PARAM_NAME && p->type != EMU_PARAM_CHOICE && value->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return fail_at(r, &value->start_mark, "%s: expected a number, found a quoted text", p->key);
    r->origins[row] = (struct origin){
        .is_set = true,
        .line = (uint32_t)value->start_mark.line + 1,
        .column = (uint32_t)value->start_mark.column + 1,
    };
    if (set_value(p, text_of(value), &r->params, text, sizeof(text)) < 0)
        return fail_row(r, row, text);
    return 0;
}

static int read_mapping(struct reader *r, const char *prefix, yaml_node_t *mapping)
{
    if (mapping->type != YAML_MAPPING_NODE)
        return fail_at(r, &mapping->start_mark, "%s: expected a mapping, found %s",
                       prefix[0] == '\0' ? "machine file" : prefix, type_name(mapping));

    for (yaml_node_pair_t *p = mapping->data.mapping.pairs.start; p < mapping->data.mapping.pairs.top; p++) {
        yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
        yaml_node_t *value = yaml_document_get_node(&r->document, p->value);
        char path[KEY_MAX];
        char hint[KEY_MAX + 32];
        size_t row;
        int result;

        if (!is_text(key))
            return fail_at(r, &key->start_mark, "a key must be a plain word, found %s", type_name(key));
        if (snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", text_of(key)) >=
            (int)sizeof(path))
            return fail_at(r, &key->start_mark, "unknown key '%s...'", path);
        if (child_of(r, mapping, text_of(key), strlen(text_of(key))) != value)
            return fail_at(r, &key->start_mark, "%s: given twice", path);

        if (find_row(r, path, &row)) {
            result = read_leaf(r, row, value);
        } else if (is_section(r, path)) {
            result = read_mapping(r, path, value);
        } else {
            suggest(r, path, hint, sizeof(hint));
            result = fail_at(r, &key->start_mark, "unknown key '%s'%s", path, hint);
        }
        if (result < 0)
            return result;
    }
    return 0;
}

static int fail_missing(struct reader *r, const char *key)
{
    yaml_node_t *nearest;

    (void)node_of_path(r, key, &nearest);
    return fail_at(r, &nearest->start_mark, "missing key '%s'", key);
}

/* Reads one scalar before the walk; the walk will read it again. */
static int peek(struct reader *r, const char *key, const yaml_node_t **node_out)
{
    yaml_node_t *nearest;
    yaml_node_t *node = node_of_path(r, key, &nearest);

    if (!node)
        return fail_missing(r, key);
    if (!is_text(node))
        return fail_not_text(r, key, node);
    *node_out = node;
    return 0;
}

static void add_rows(struct reader *r, const struct emu_param *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows && r->n_rows < PARAMS_MAX; i++)
        r->rows[r->n_rows++] = &rows[i];
}

static int read_document(struct reader *r, const struct emu_topology **topology_out)
{
    yaml_node_t *root = yaml_document_get_root_node(&r->document);
    const struct emu_topology *topology;
    const yaml_node_t *node;
    int result;

    if (!root)
        return fail(r->err, r->err_len, "%s:1:1: the file is empty", r->path);
    if (root->type != YAML_MAPPING_NODE)
        return fail_at(r, &root->start_mark, "machine file: expected a mapping, found %s", type_name(root));
    result = peek(r, "schema", &node);
    if (result < 0)
        return result;
    if (strcmp(text_of(node), "1") != 0)
        return fail_at(r, &node->start_mark, "schema '%.20s' is not supported, only %d is", text_of(node), SCHEMA);
    result = peek(r, "topology.kind", &node);
    if (result < 0)
        return result;
    topology = emu_topology_find(text_of(node));
    if (!topology)
        return fail_at(r, &node->start_mark, "topology.kind: '%.40s' is not a known topology", text_of(node));

    add_rows(r, common_params, sizeof(common_params) / sizeof(common_params[0]));
    add_rows(r, topology->params, topology->n_params);
    /* The one section that a file may leave out, as a whole. */
    r->params.has_host = child_of(r, root, "host", strlen("host"));
    if (r->params.has_host)
        add_rows(r, emu_node_param_rows, emu_node_param_n_rows);
    result = read_mapping(r, "", root);
    if (result < 0)
        return result;
    *topology_out = topology;
    return 0;
}

/* ---- overrides ---- */

/* Does the key end in this path, at a dot? */
static bool has_tail(const char *key, const char *tail)
{
    size_t key_len = strlen(key);
    size_t tail_len = strlen(tail);

    return tail_len < key_len && key[key_len - tail_len - 1] == '.' && strcmp(key + key_len - tail_len, tail) == 0;
}

/* The row that an override's key means. */
static int find_override(const struct reader *r, const char *key, const char *override, size_t *row_out)
{
    char hint[KEY_MAX + 32];
    size_t row = 0;
    size_t n_found = 0;

    if (find_row(r, key, row_out))
        return 0;
    for (size_t i = 0; i < r->n_rows; i++) {
        if (!has_tail(r->rows[i]->key, key))
            continue;
        if (n_found++ == 0)
            row = i;
        else
            return fail(r->err, r->err_len, "override '%s': '%s' may mean '%s' or '%s'", override, key,
                        r->rows[row]->key, r->rows[i]->key);
    }
    if (n_found == 0) {
        suggest(r, key, hint, sizeof(hint));
        return fail(r->err, r->err_len, "override '%s': unknown key '%s'%s", override, key, hint);
    }
    *row_out = row;
    return 0;
}

static int apply_override(struct reader *r, char *override)
{
    char *equals = strchr(override, '=');
    char whole[KEY_MAX];
    char text[256];
    size_t row = 0;
    int result;

    snprintf(whole, sizeof(whole), "%.*s", KEY_MAX - 1, override);
    if (!equals || equals == override)
        return fail(r->err, r->err_len, "override '%s': expected key=value", whole);
    *equals = '\0';
    result = find_override(r, override, whole, &row);
    if (result < 0)
        return result;
    if (strcmp(r->rows[row]->key, "schema") == 0 || strcmp(r->rows[row]->key, "topology.kind") == 0)
        return fail(r->err, r->err_len, "override '%s': %s belongs to the file and cannot be overridden", whole,
                    r->rows[row]->key);
    r->origins[row] = (struct origin){ .is_set = true };
    memcpy(r->origins[row].override, whole, sizeof(whole));
    if (set_value(r->rows[row], equals + 1, &r->params, text, sizeof(text)) < 0)
        return fail_row(r, row, text);
    return 0;
}

static int apply_overrides(struct reader *r, char *overrides)
{
    char *next;

    for (char *one = overrides; one; one = next) {
        int result;

        next = strchr(one, ',');
        if (next)
            *next++ = '\0';
        result = apply_override(r, one);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- the whole ---- */

/* What every machine must fulfil. -EINVAL with the key to blame and a text. */
static int check_common(const struct emu_machine_params *p, const char **key_out, char *text, size_t text_len)
{
    const struct emu_router_params *router = &p->router;
    const struct emu_packet_format *format = &p->nic.format;
    uint64_t packet_flits = format->request_header_flits + emu_data_flits(format, format->payload_bytes_max);
    uint32_t packet_tokens = (router->packet_units_max + router->token_units - 1) / router->token_units;

    if (router->frame_overhead_flits > 0 && router->frame_overhead_flits >= router->frame_flits) {
        *key_out = "links.frame_overhead_flits";
        snprintf(text, text_len, "%u leaves nothing of a frame of %u flits", router->frame_overhead_flits,
                 router->frame_flits);
    } else if (router->hop_wire_ps > router->hop_ps) {
        *key_out = "router.hop_wire_ns";
        snprintf(text, text_len, "%g ns of wire are more than the whole hop, %g ns (router.hop_ns)",
                 router->hop_wire_ps / 1000.0, router->hop_ps / 1000.0);
    } else if (packet_flits > router->packet_units_max) {
        *key_out = "router.packet_units_max";
        snprintf(text, text_len, "%u is less than a request with %u bytes has, %llu flits", router->packet_units_max,
                 format->payload_bytes_max, (unsigned long long)packet_flits);
    } else if (router->vc_units < router->packet_units_max) {
        *key_out = "router.vc_units";
        snprintf(text, text_len, "%u has no room for a packet of %u (router.packet_units_max)", router->vc_units,
                 router->packet_units_max);
    } else if (packet_tokens > router->vc_units / router->token_units) {
        *key_out = "router.token_units";
        snprintf(text, text_len, "a channel of %u units has %u tokens of %u, a packet takes %u", router->vc_units,
                 router->vc_units / router->token_units, router->token_units, packet_tokens);
    } else if (p->has_host && p->host.has_acks != 0 && format->response_header_flits == 0) {
        *key_out = "host.acks";
        snprintf(text, text_len, "answers of no flits (packet.response_header_flits)");
    } else if (p->has_host && p->host.send_end_ps > 0 && p->host.send_end_bytes_min > p->host.send_end_bytes_max) {
        *key_out = "host.send_end_bytes_max";
        snprintf(text, text_len, "%u is less than host.send_end_bytes_min, %u", p->host.send_end_bytes_max,
                 p->host.send_end_bytes_min);
    } else {
        return 0;
    }
    return -EINVAL;
}

static int check_values(struct reader *r, const struct emu_topology *topology)
{
    const char *key = NULL;
    char text[256] = "";
    size_t row;

    for (size_t i = 0; i < r->n_rows; i++) {
        if (!r->origins[i].is_set)
            return fail_missing(r, r->rows[i]->key);
    }
    if (check_common(&r->params, &key, text, sizeof(text)) == 0 &&
        topology->check(&r->params, &key, text, sizeof(text)) == 0)
        return 0;
    if (!find_row(r, key, &row))
        return fail(r->err, r->err_len, "%s: %s: %s", r->path, key, text);
    return fail_row(r, row, text);
}

/* Splits "aries:groups=2" or "dir/x.yaml:groups=2" and finds the file. */
static int split_spec(const char *text, const char *machine_dir, struct spec *s, char *err, size_t err_len)
{
    const char *colon = strrchr(text, ':');
    size_t len = strlen(text);
    char base[SPEC_MAX];
    bool is_path;

    if (len >= SPEC_MAX)
        return fail(err, err_len, "machine spec of %zu bytes is too long", len);
    s->has_overrides = colon && !strchr(colon, '/');
    if (s->has_overrides) {
        len = (size_t)(colon - text);
        snprintf(s->overrides, sizeof(s->overrides), "%s", colon + 1);
    }
    memcpy(base, text, len);
    base[len] = '\0';

    s->name[0] = '\0';
    is_path = strchr(base, '/') || (len > 5 && strcmp(base + len - 5, ".yaml") == 0);
    if (is_path) {
        memcpy(s->path, base, len + 1);
        return 0;
    }
    if (len == 0 || strspn(base, "abcdefghijklmnopqrstuvwxyz0123456789-_") != len)
        return fail(err, err_len, "'%.80s' is neither the name of a machine nor a path with a '/' or '.yaml'", base);
    if (!machine_dir)
        return fail(err, err_len, "machine '%.80s': no directory of machine files is set", base);
    if (snprintf(s->path, sizeof(s->path), "%s/%s.yaml", machine_dir, base) >= (int)sizeof(s->path))
        return fail(err, err_len, "machine '%.80s': the path of its file is too long", base);
    snprintf(s->name, sizeof(s->name), "%.80s", base);
    return 0;
}

static int is_machine_file(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > strlen(SUFFIX) && strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX) == 0;
}

/* Names the machines that there are. False, with nothing written: none can be found. */
static bool fail_unknown(const char *name, const char *machine_dir, char *err, size_t err_len)
{
    struct emu_nearest nearest = emu_nearest_to(name, 2);
    struct dirent **entries;
    char known[SPEC_MAX] = "";
    size_t used = 0;
    int n = scandir(machine_dir, &entries, is_machine_file, alphasort);

    if (n < 0)
        return false;
    for (int i = 0; i < n; i++) {
        char *machine = entries[i]->d_name;

        machine[strlen(machine) - strlen(SUFFIX)] = '\0';
        emu_nearest_offer(&nearest, machine, machine);
        if (used < sizeof(known))
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "", machine);
    }
    if (n > 0 && nearest.answer)
        (void)fail(err, err_len, "no machine '%.80s'; did you mean '%s'? There are %s", name, nearest.answer, known);
    else if (n > 0)
        (void)fail(err, err_len, "no machine '%.80s'; there are %s", name, known);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return n > 0;
}

/* The parser reads ahead and knows only the offset of a byte that is no text: look up its line. */
static void find_offset(FILE *file, size_t offset, yaml_mark_t *mark_out)
{
    yaml_mark_t mark = { 0 };
    int c;

    rewind(file);
    for (size_t i = 0; i < offset && (c = getc(file)) != EOF; i++) {
        mark.column++;
        if (c == '\n') {
            mark.line++;
            mark.column = 0;
        }
    }
    *mark_out = mark;
}

static int fail_parse(const struct reader *r, const yaml_parser_t *parser, FILE *file)
{
    const char *problem = parser->problem ? parser->problem : "not readable";
    yaml_mark_t mark;

    if (parser->error == YAML_MEMORY_ERROR) {
        (void)fail(r->err, r->err_len, "%s: out of memory", r->path);
        return -ENOMEM;
    }
    if (parser->error == YAML_READER_ERROR) {
        find_offset(file, parser->problem_offset, &mark);
        return fail_at(r, &mark, "%s", problem);
    }
    if (parser->context)
        return fail_at(r, &parser->problem_mark, "%s %s", problem, parser->context);
    return fail_at(r, &parser->problem_mark, "%s", problem);
}

/* Nothing but the end may follow the document. */
static int check_end(struct reader *r, yaml_parser_t *parser, FILE *file)
{
    yaml_document_t second;
    yaml_node_t *root;
    int result = 0;

    if (!yaml_parser_load(parser, &second))
        return fail_parse(r, parser, file);
    root = yaml_document_get_root_node(&second);
    if (root)
        result = fail_at(r, &root->start_mark, "a machine file has one document only");
    yaml_document_delete(&second);
    return result;
}

static int read_stream(struct reader *r, FILE *file, struct spec *s, const struct emu_topology **topology_out)
{
    const struct emu_topology *topology = NULL;
    yaml_parser_t parser;
    yaml_mark_t mark;
    const char *excess = emu_yaml_excess(file, &mark);
    int result;

    if (excess)
        return fail_at(r, &mark, "%s", excess);
    if (!yaml_parser_initialize(&parser)) {
        (void)fail(r->err, r->err_len, "out of memory");
        return -ENOMEM;
    }
    yaml_parser_set_input_file(&parser, file);
    if (!yaml_parser_load(&parser, &r->document)) {
        result = fail_parse(r, &parser, file);
        goto out_parser;
    }
    result = read_document(r, &topology);
    if (result == 0)
        result = check_end(r, &parser, file);
    if (result == 0 && s->has_overrides)
        result = apply_overrides(r, s->overrides);
    if (result == 0)
        result = check_values(r, topology);
    if (result == 0)
        *topology_out = topology;
    yaml_document_delete(&r->document);
out_parser:
    yaml_parser_delete(&parser);
    return result;
}

int emu_machine_file_read(const char *spec, const char *machine_dir, struct emu_machine_params *params_out,
                          const struct emu_topology **topology_out, char *err, size_t err_len)
{
    struct reader *r;
    struct spec *s;
    FILE *file;
    int result;

    r = calloc(1, sizeof(*r));
    s = calloc(1, sizeof(*s));
    if (!r || !s) {
        (void)fail(err, err_len, "out of memory");
        result = -ENOMEM;
        goto out_free;
    }
    result = split_spec(spec, machine_dir, s, err, err_len);
    if (result < 0)
        goto out_free;
    result = emu_input_file_open(s->path, FILE_BYTES_MAX, &file);
    if (result < 0) {
        if (result != -ENOENT || s->name[0] == '\0' || !fail_unknown(s->name, machine_dir, err, err_len))
            (void)fail(err, err_len, "%s: %s", s->path, emu_input_file_reason(result));
        goto out_free;
    }
    r->path = s->path;
    r->err = err;
    r->err_len = err_len;
    result = read_stream(r, file, s, topology_out);
    fclose(file);
    if (result == 0) {
        *params_out = r->params;
        params_out->link[EMU_LINK_PROCESSOR_OUT] = params_out->link[EMU_LINK_PROCESSOR_IN];
    }
out_free:
    free(s);
    free(r);
    return result;
}
