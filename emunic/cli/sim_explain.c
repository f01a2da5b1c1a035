/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim explain`: the parameters of a machine with what its file says about them.
 *
 * The file is the one place where a value stands beside its source, as comments: behind the value, and in the lines
 * directly above the key. The loader checks file and overrides first; then the file is read once more, by libyaml for
 * the keys and their lines and as plain lines for the comments. In a comment, what stands in brackets and starts with
 * one of the words of spec/machines.md 0.1 is a mark; a seed's abbreviation starts the source. Nothing here can change
 * a value: the table shows the text of the file, and of the override if there is one.
 */
#include "emunic/cli/verb_sim.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "emunic/base/input_file.h"
#include "emunic/base/text.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/text_table.h"
#include "emunic/fabric/machine.h"

#define KEY_MAX     128
#define TEXT_MAX    2048
#define FILE_MAX    (1u << 20)
#define DEPTH_MAX   8
#define TEXT_COLUMN 64 /* width of the last column */

struct request {
    bool is_json;
};

static const struct emu_option options[] = {
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"parameters\": [...]}",
      EMU_OPTION_SET(struct request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "sim",
    .usage = "emunic sim explain MACHINE [--json]\n"
             "emunic sim --explain MACHINE [--json]",
    .about =
        "Show each parameter of a machine with its value, unit, source and mark, as its file tells them. MACHINE is a\n"
        "name, a path, or either with overrides: aries:groups=6,blades=4. An overridden value is shown with the\n"
        "file's behind it.\n"
        "\n"
        "Marks: [OUR] our choice where the sources are silent, [U:x] widely cited from x, [D] derived by arithmetic,\n"
        "[R:x] read in x, [S:x] quoted in x, [K: x] fitted to experiment x; none: stated by the source itself.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic sim explain aries:groups=8\n",
    .words = EMU_WORDS_ANYWHERE,
};

struct parameter {
    char key[KEY_MAX];      /* whole path */
    char value[KEY_MAX];    /* as the file has it */
    char override[KEY_MAX]; /* "": none */
    char text[TEXT_MAX];    /* its comments in one line */
    char source[KEY_MAX];
    char marks[KEY_MAX]; /* "[OUR] [D]" */
};

struct explanation {
    char path[PATH_MAX];
    char name[EMU_MACHINE_NAME_MAX];
    char *content; /* owned; of the file, lines ended by zeros */
    size_t len;
    char **lines; /* owned; into content */
    size_t n_lines;
    struct parameter *parameters; /* owned */
    size_t n;
    size_t max;
};

/* ---- the file ---- */

/* As the loader finds it: overrides start behind the last ':' that has no '/' after it. NULL: no overrides. */
static const char *split_spec(const char *spec, char path_out[PATH_MAX])
{
    const char *colon = strrchr(spec, ':');
    bool has_overrides = colon && !strchr(colon, '/');
    int len = has_overrides ? (int)(colon - spec) : (int)strlen(spec);
    bool is_path = memchr(spec, '/', (size_t)len) || (len > 5 && strncmp(spec + len - 5, ".yaml", 5) == 0);

    if (is_path)
        snprintf(path_out, PATH_MAX, "%.*s", len, spec);
    else
        snprintf(path_out, PATH_MAX, "%s/%.*s.yaml", emu_cli_machine_dir(), len, spec);
    return has_overrides ? colon + 1 : NULL;
}

static int read_content(struct explanation *x)
{
    FILE *file;
    int r = emu_input_file_open(x->path, FILE_MAX, &file);

    if (r < 0)
        return r;
    x->content = malloc(FILE_MAX + 1);
    if (x->content) {
        x->len = fread(x->content, 1, FILE_MAX, file);
        x->content[x->len] = '\0';
    }
    fclose(file);
    return x->content ? 0 : -ENOMEM;
}

static int split_lines(struct explanation *x)
{
    char *line = x->content;
    size_t n = 1;

    for (size_t i = 0; i < x->len; i++)
        n += x->content[i] == '\n';
    x->lines = calloc(n, sizeof(*x->lines));
    if (!x->lines)
        return -ENOMEM;
    for (char *c = x->content; x->n_lines < n; c++) {
        if (c == x->content + x->len || *c == '\n') {
            *c = '\0';
            x->lines[x->n_lines++] = line;
            line = c + 1;
        }
    }
    return 0;
}

/* ---- comments ---- */

static void append(char text[TEXT_MAX], const char *more)
{
    size_t used = strlen(text);

    while (*more == ' ' || *more == '\t' || *more == '#')
        more++;
    if (*more != '\0')
        snprintf(text + used, TEXT_MAX - used, "%s%s", used ? " " : "", more);
    emu_text_tame(text + used, ' ');
}

/* Where a comment starts that has nothing in front of it; NULL: no such line. */
static const char *whole_comment(const char *line)
{
    line += strspn(line, " \t");
    return *line == '#' ? line : NULL;
}

/* A key of a mapping: what is behind its colon is nothing or a comment. */
static bool is_section(const char *line)
{
    const char *colon = strchr(line, ':');

    return colon && !whole_comment(line) && strchr("#\r", colon[1 + strspn(colon + 1, " \t")]);
}

/* A key with a value and no word about it. */
static bool is_bare(const char *line)
{
    const char *colon = strchr(line, ':');

    return colon && !strchr(line, '#') && colon[1 + strspn(colon + 1, " \t\r")] != '\0';
}

/* The block of lines that ends above this one. A blank line, as at the top of the file, parts it from a key. */
static void take_block(const struct explanation *x, size_t line, char text[TEXT_MAX])
{
    size_t first = line;

    while (first > 0 && whole_comment(x->lines[first - 1]))
        first--;
    for (size_t i = first; i < line; i++)
        append(text, whole_comment(x->lines[i]));
}

/* The lines directly above the key, then what follows the value. Bare keys share the block above the first of them, or
 * what is said of their section. */
static void take_comments(const struct explanation *x, size_t line, size_t behind, char text_out[TEXT_MAX])
{
    const char *comment = strlen(x->lines[line]) > behind ? strchr(x->lines[line] + behind, '#') : NULL;

    text_out[0] = '\0';
    take_block(x, line, text_out);
    if (comment) {
        append(text_out, comment);
        return;
    }
    while (text_out[0] == '\0' && line > 0 && is_bare(x->lines[line - 1]))
        take_block(x, --line, text_out);
    if (text_out[0] == '\0' && line > 0 && is_section(x->lines[line - 1])) {
        line--;
        take_block(x, line, text_out);
        if (strchr(x->lines[line], '#'))
            append(text_out, strchr(x->lines[line], '#'));
    }
}

/* "[OUR]", "[D]", "[U:x]", "[R:x]", "[S:x]", "[I]", several in one pair of brackets. */
static bool is_mark(const char *inside, size_t len)
{
    static const char *const words[] = { "OUR", "D", "U", "R", "S", "I" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i]);

        if (len >= n && strncmp(inside, words[i], n) == 0 && (len == n || strchr(":/, ", inside[n])))
            return true;
    }
    return false;
}

static bool is_word_start(const char *text, const char *at)
{
    return at == text || !isalnum((unsigned char)at[-1]);
}

/* "(K: XC-9)": the experiment that a value was fitted to. */
static const char *find_fit(const char *text, size_t *len_out)
{
    const char *at = strstr(text, "K: ");

    if (!at || !is_word_start(text, at))
        return NULL;
    *len_out = strcspn(at + 3, " ,;.)") + 3;
    return at;
}

static void take_marks(const char *text, char marks_out[KEY_MAX])
{
    size_t len;
    const char *fit = find_fit(text, &len);

    marks_out[0] = '\0';
    if (fit)
        snprintf(marks_out, KEY_MAX, "[%.*s]", (int)len, fit);
    for (const char *open = strchr(text, '['); open; open = strchr(open + 1, '[')) {
        const char *close = strchr(open, ']');
        size_t used = strlen(marks_out);
        char mark[KEY_MAX];

        if (!close || !is_mark(open + 1, (size_t)(close - open - 1)))
            continue;
        snprintf(mark, sizeof(mark), "%.*s", (int)(close - open + 1), open);
        if (!strstr(marks_out, mark))
            snprintf(marks_out + used, KEY_MAX - used, "%s%.60s", used ? " " : "", mark);
    }
}

/* From a seed's abbreviation to the end of the phrase: "XCWP, 2.1 rules 1, 3". */
static bool find_seed(const char *text, char source_out[KEY_MAX])
{
    static const char *const seeds[] = { "XCWP", "BGL", "CUG05", "SEA", "TITAN" };
    const char *first = NULL;
    size_t len = 0;

    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        size_t n = strlen(seeds[i]);

        for (const char *at = strstr(text, seeds[i]); at; at = strstr(at + 1, seeds[i])) {
            /* "BGL-3" is an experiment. */
            if (!is_word_start(text, at) || isalnum((unsigned char)at[n]) || at[n] == '-')
                continue;
            if (!first || at < first)
                first = at;
            break;
        }
    }
    if (!first)
        return false;
    while (first[len] && !strchr("();:[]", first[len]) && strncmp(first + len, ". ", 2) != 0)
        len++;
    while (len > 0 && strchr(" ,.", first[len - 1]))
        len--;
    snprintf(source_out, KEY_MAX, "%.*s", (int)len, first);
    return true;
}

/* "[OUR] 2.6": the section of the specification. */
static bool find_own(const char *text, char source_out[KEY_MAX])
{
    const char *own = strstr(text, "[OUR]");
    size_t len;

    if (!own)
        return false;
    own += 5;
    own += strspn(own, " (");
    len = strspn(own, "0123456789.");
    while (len > 0 && own[len - 1] == '.')
        len--;
    if (len > 0 && memchr(own, '.', len))
        snprintf(source_out, KEY_MAX, "spec/machines.md %.*s", (int)len, own);
    else
        snprintf(source_out, KEY_MAX, "ours");
    return true;
}

/* "[R:EuroBen10]": what was read. */
static bool find_reference(const char *text, char source_out[KEY_MAX])
{
    for (const char *open = strchr(text, '['); open; open = strchr(open + 1, '[')) {
        size_t len = strcspn(open, "]");

        if (len > 3 && strchr("RSU", open[1]) && open[2] == ':') {
            snprintf(source_out, KEY_MAX, "%.*s", (int)(len - 3), open + 3);
            return true;
        }
    }
    return false;
}

static void take_source(const char *text, char source_out[KEY_MAX])
{
    size_t len;
    const char *fit = find_fit(text, &len);

    if (fit)
        snprintf(source_out, KEY_MAX, "fitted to %.*s", (int)(len - 3), fit + 3);
    else if (!find_seed(text, source_out) && !find_reference(text, source_out) && !find_own(text, source_out))
        snprintf(source_out, KEY_MAX, "-");
}

/* ---- keys ---- */

static int add_parameter(struct explanation *x, const char *key, const yaml_node_t *value)
{
    struct parameter *p;

    if (x->n == x->max) {
        size_t more = x->max ? 2 * x->max : 64;
        struct parameter *parameters = realloc(x->parameters, more * sizeof(*parameters));

        if (!parameters)
            return -ENOMEM;
        x->parameters = parameters;
        x->max = more;
    }
    p = &x->parameters[x->n++];
    *p = (struct parameter){ 0 };
    snprintf(p->key, sizeof(p->key), "%s", key);
    snprintf(p->value, sizeof(p->value), "%.*s", (int)value->data.scalar.length,
             (const char *)value->data.scalar.value);
    if (value->end_mark.line < x->n_lines)
        take_comments(x, value->end_mark.line, value->end_mark.column, p->text);
    take_marks(p->text, p->marks);
    take_source(p->text, p->source);
    return 0;
}

static int walk(struct explanation *x, yaml_document_t *document, const yaml_node_t *mapping, const char *prefix,
                int depth)
{
    int r = 0;

    if (depth == DEPTH_MAX)
        return 0;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         r == 0 && pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = yaml_document_get_node(document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(document, pair->value);
        char key[KEY_MAX];

        if (!name || !value || name->type != YAML_SCALAR_NODE)
            continue;
        snprintf(key, sizeof(key), "%s%s%s", prefix, *prefix ? "." : "", (const char *)name->data.scalar.value);
        if (value->type == YAML_MAPPING_NODE)
            r = walk(x, document, value, key, depth + 1);
        else if (value->type == YAML_SCALAR_NODE)
            r = add_parameter(x, key, value);
    }
    return r;
}

static int read_keys(struct explanation *x, const char *content, size_t len)
{
    yaml_document_t document;
    yaml_parser_t parser;
    const yaml_node_t *root;
    int r = -EINVAL;

    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)content, len);
    if (yaml_parser_load(&parser, &document)) {
        root = yaml_document_get_root_node(&document);
        if (root && root->type == YAML_MAPPING_NODE)
            r = walk(x, &document, root, "", 0);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return r;
}

/* The key that an override names: by its whole path, or by a tail. The loader has made sure that it is one. */
static struct parameter *find_parameter(struct explanation *x, const char *key)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < x->n; i++) {
        if (strcmp(x->parameters[i].key, key) == 0)
            return &x->parameters[i];
    }
    for (size_t i = 0; i < x->n; i++) {
        size_t whole = strlen(x->parameters[i].key);

        if (whole > len && x->parameters[i].key[whole - len - 1] == '.' &&
            strcmp(x->parameters[i].key + whole - len, key) == 0)
            return &x->parameters[i];
    }
    return NULL;
}

static int apply_overrides(struct explanation *x, const char *overrides)
{
    char *copy = strdup(overrides);
    char *rest = NULL;

    if (!copy)
        return -ENOMEM;
    for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(one, '=');
        struct parameter *p;

        if (!equals)
            continue;
        *equals = '\0';
        p = find_parameter(x, one);
        if (p)
            snprintf(p->override, sizeof(p->override), "%s", equals + 1);
    }
    free(copy);
    return 0;
}

/* ---- output ---- */

/* By a word of the key's last part. */
static const char *unit_of(const char *key)
{
    static const struct {
        const char *word;
        const char *unit;
    } units[] = {
        { "ns", "ns" },           { "ps", "ps" },        { "us", "us" },       { "mhz", "MHz" },
        { "gbps", "Gb/s" },       { "mbps", "Mb/s" },    { "bytes", "bytes" }, { "bits", "bits" },
        { "flits", "flits" },     { "phits", "phits" },  { "units", "units" }, { "cycles", "cycles" },
        { "clocks", "clocks" },   { "percent", "%" },    { "lanes", "lanes" }, { "chunks", "chunks" },
        { "packets", "packets" }, { "milli", "1/1000" },
    };
    const char *last = strrchr(key, '.') ? strrchr(key, '.') + 1 : key;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t len = strlen(units[i].word);

        for (const char *at = strstr(last, units[i].word); at; at = strstr(at + 1, units[i].word)) {
            if ((at == last || at[-1] == '_') && (at[len] == '\0' || at[len] == '_'))
                return units[i].unit;
        }
    }
    return "-";
}

static const struct emu_cli_column columns[] = {
    { "PARAMETER", false }, { "VALUE", true }, { "UNIT", false },
    { "SOURCE", false },    { "MARK", false }, { "TEXT", false },
};

/* The text goes on in rows that have nothing else. */
static void add_text(struct emu_cli_table *table, const char *text)
{
    bool is_first = true;

    do {
        size_t len = strlen(text);
        char line[TEXT_COLUMN + 1];

        if (len > TEXT_COLUMN) {
            len = TEXT_COLUMN;
            while (len > 0 && text[len] != ' ')
                len--;
            len = len == 0 ? TEXT_COLUMN : len;
        }
        snprintf(line, sizeof(line), "%.*s", (int)len, text);
        for (int i = 0; i < 5 && !is_first; i++)
            emu_cli_table_text(table, "");
        emu_cli_table_text(table, line);
        is_first = false;
        text += len;
        text += strspn(text, " ");
    } while (*text);
}

static void add_row(struct emu_cli_table *table, const struct parameter *p)
{
    char value[2 * KEY_MAX + 16];
    char marks[KEY_MAX + 16];

    snprintf(value, sizeof(value), p->override[0] ? "%s (file: %s)" : "%s%s", p->override, p->value);
    snprintf(marks, sizeof(marks), "%s%s%s", p->override[0] ? "override" : "", p->override[0] && p->marks[0] ? " " : "",
             p->marks);
    emu_cli_table_text(table, p->key);
    emu_cli_table_text(table, value);
    emu_cli_table_text(table, unit_of(p->key));
    emu_cli_table_text(table, p->source);
    emu_cli_table_text(table, marks[0] ? marks : "-");
    add_text(table, p->text[0] ? p->text : "-");
}

static int print_table(const struct explanation *x)
{
    struct emu_cli_table table;
    int r;

    printf("machine %s, %s\n", x->name, x->path);
    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < x->n; i++)
        add_row(&table, &x->parameters[i]);
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    if (r == 0 && fflush(stdout) == EOF)
        r = -errno;
    return r < 0 ? emu_cli_fail("sim", "explain: cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

static int print_json(const struct explanation *x)
{
    json_t *rows = json_array();
    json_t *answer;
    int status;

    for (size_t i = 0; i < x->n; i++) {
        const struct parameter *p = &x->parameters[i];
        json_t *row =
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "key", p->key, "value", p->override[0] ? p->override : p->value,
                      "unit", unit_of(p->key), "source", p->source, "marks", p->marks, "text", p->text);

        if (row && p->override[0])
            json_object_set_new(row, "file_value", json_string(p->value));
        json_array_append_new(rows, row);
    }
    answer = json_pack("{s:i, s:s, s:s, s:o}", "schema", 1, "machine", x->name, "file", x->path, "parameters", rows);
    status =
        answer ? emu_cli_print_json("sim", answer, stdout) : emu_cli_fail("sim", "explain: the file is not UTF-8 text");
    json_decref(answer);
    return status;
}

static int explain(const char *spec, bool is_json)
{
    struct explanation *x = calloc(1, sizeof(*x));
    struct emu_machine *m;
    const char *overrides;
    int status;
    int r;

    if (!x)
        return emu_cli_fail("sim", "explain: out of memory");
    status = emu_cli_load_machine("sim", "explain", spec, &m);
    if (status != EMU_EXIT_DONE) {
        free(x);
        return status;
    }
    snprintf(x->name, sizeof(x->name), "%s", emu_machine_name(m));
    emu_machine_destroy(m);
    overrides = split_spec(spec, x->path);
    r = read_content(x);
    if (r == 0) {
        /* The parser needs the text in one piece, the lines come after. */
        char *whole = strndup(x->content, x->len);

        r = whole ? split_lines(x) : -ENOMEM;
        if (r == 0)
            r = read_keys(x, whole, x->len);
        free(whole);
    }
    if (r == 0 && overrides)
        r = apply_overrides(x, overrides);
    if (r < 0)
        status = emu_cli_fail("sim", "explain: %s: %s", x->path, strerror(-r));
    else
        status = is_json ? print_json(x) : print_table(x);
    free(x->content);
    free(x->lines);
    free(x->parameters);
    free(x);
    return status;
}

int emu_cli_sim_explain(int argc, char **argv)
{
    struct request request = { 0 };
    int first;
    int status = emu_options_parse(&command, argc, argv, &request, &first);

    if (status != EMU_PROCEED)
        return status;
    if (first == argc)
        return emu_cli_usage("sim", "explain: the machine is missing");
    if (first + 1 < argc)
        return emu_cli_usage("sim", "explain: '%s': takes one machine", argv[first + 1]);
    return explain(argv[first], request.is_json);
}
