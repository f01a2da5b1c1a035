/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running one experiment: its context, and the report that its calls build up line by line.
 *
 * The report is the JSON object of runner.h from the start; text lines are printed from it. Being out of memory or an
 * invalid metric never passes: the first loses the whole report, the second is a failed line.
 */
#include "emunic/experiments/experiment.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/base/text.h"
#include "emunic/experiments/ledger.h"
#include "emunic/experiments/runner.h"
#include "emunic/experiments/traffic.h"
#include "emunic/fabric/sim/sim.h"

#define TEXT_MAX 1024
#define WORD_MAX 128 /* of a value that is a text */
#define EXACT    1e-9
#define FITTED   0.02 /* spec/machines.md 0.2: K */

struct emu_exp {
    const struct emu_experiment *experiment; /* borrowed */
    struct emu_exp_context context;
    void (*progress)(void *ctx, double fraction);
    void *progress_ctx;
    json_t *lines;                 /* owned */
    json_t *metric;                /* borrowed from lines: the last one; NULL: none yet */
    char id[32];                   /* with the part */
    double got;                    /* of the last metric */
    enum emu_exp_class next_class; /* EMU_CLASS_NONE: of the row */
    uint64_t seen_packets;         /* simulated by this process when the last metric was reported */
    uint64_t packets;              /* of these, for the last metric that had any */
    uint32_t n_passed;
    uint32_t n_failed;
    bool is_short_of_memory;
};

/* ---- values as text ---- */

#define NUMBER_MAX 32

/* "0.65", "92544", "1e-12": what the lines print for a number. */
static void print_number(double value, char text_out[NUMBER_MAX])
{
    if (value == 0)
        value = 0; /* not "-0" */
    if (value == floor(value) && fabs(value) < 1e15)
        snprintf(text_out, NUMBER_MAX, "%.0f", value);
    else
        snprintf(text_out, NUMBER_MAX, "%.6g", value);
}

/* A value in an EXP line is one word. */
static void to_word(const char *text, char word_out[WORD_MAX])
{
    snprintf(word_out, WORD_MAX, "%s", text && *text ? text : "-");
    for (char *c = word_out; *c; c++) {
        if ((unsigned char)*c <= ' ' || *c == 127)
            *c = '_';
    }
}

static void tolerance_text(const struct emu_metric *m, char text[WORD_MAX])
{
    char number[NUMBER_MAX];

    switch (m->tolerance) {
    case EMU_TOL_RELATIVE:
        print_number(m->tol * 100, number);
        snprintf(text, WORD_MAX, "%s%%", number);
        return;
    case EMU_TOL_ABSOLUTE:
        print_number(m->tol, number);
        snprintf(text, WORD_MAX, "+-%s", number);
        return;
    case EMU_TOL_ROUNDED:
        snprintf(text, WORD_MAX, "rounded:%d", m->decimals);
        return;
    case EMU_TOL_AT_LEAST:
        snprintf(text, WORD_MAX, ">=");
        return;
    case EMU_TOL_AT_MOST:
        snprintf(text, WORD_MAX, "<=");
        return;
    case EMU_TOL_ABOVE:
        snprintf(text, WORD_MAX, ">");
        return;
    case EMU_TOL_BELOW:
        snprintf(text, WORD_MAX, "<");
        return;
    case EMU_TOL_RANGE:
        snprintf(text, WORD_MAX, "range");
        return;
    case EMU_TOL_EXACT:
    case EMU_TOL_TEXT:
        break;
    }
    snprintf(text, WORD_MAX, "exact");
}

/* ---- verdicts ---- */

static bool is_within(double src, double got, double distance)
{
    /* A figure on the very edge passes, however its digits were rounded on the way. */
    return fabs(got - src) <= distance + EXACT * fabs(src);
}

static bool judge(const struct emu_metric *m)
{
    if (m->tolerance == EMU_TOL_TEXT)
        return m->src_text && m->got_text && strcmp(m->src_text, m->got_text) == 0;
    if (!isfinite(m->got) || isnan(m->src))
        return false;
    switch (m->tolerance) {
    case EMU_TOL_EXACT:
        return is_within(m->src, m->got, 0);
    case EMU_TOL_ROUNDED:
        return is_within(m->src, m->got, 0.5 * pow(10, -m->decimals));
    case EMU_TOL_RELATIVE:
        return is_within(m->src, m->got, m->tol * fabs(m->src));
    case EMU_TOL_ABSOLUTE:
        return is_within(m->src, m->got, m->tol);
    case EMU_TOL_AT_LEAST:
        return m->got >= m->src;
    case EMU_TOL_AT_MOST:
        return m->got <= m->src;
    case EMU_TOL_ABOVE:
        return m->got > m->src;
    case EMU_TOL_BELOW:
        return m->got < m->src;
    case EMU_TOL_RANGE:
        return m->got >= m->src && m->got <= m->src_high;
    case EMU_TOL_TEXT:
        break;
    }
    return false;
}

/* ---- classes ---- */

static const char *class_name(enum emu_exp_class class_of)
{
    static const char *const names[] = { "none", "measured", "counted", "fitted", "formula" };

    return names[class_of];
}

/* The metric's own, that of emu_exp_class(), or of its kind in the experiment's row. */
static enum emu_exp_class class_of_metric(const struct emu_exp *x, const struct emu_metric *m)
{
    static const char letters[] = "MCKF"; /* in the order of the enum, which begins with none */
    const char *kind = m->kind ? strchr(x->experiment->kinds, m->kind) : NULL;
    const char *classes = x->experiment->classes;
    const char *letter;

    if (m->class_of != EMU_CLASS_NONE)
        return m->class_of;
    if (x->next_class != EMU_CLASS_NONE)
        return x->next_class;
    if (!kind || !classes || (size_t)(kind - x->experiment->kinds) >= strlen(classes))
        return EMU_CLASS_NONE;
    letter = strchr(letters, classes[kind - x->experiment->kinds]);
    return letter ? (enum emu_exp_class)(letter - letters + 1) : EMU_CLASS_NONE;
}

void emu_exp_class(struct emu_exp *x, enum emu_exp_class class_of)
{
    x->next_class = class_of;
}

/* Packets since the last metric. Metrics that are reported one after another share those of the first. */
static void count_packets(struct emu_exp *x)
{
    uint64_t now = emu_sim_packets_of_process();

    if (now > x->seen_packets)
        x->packets = now - x->seen_packets;
    x->seen_packets = now;
}

/* "x1:host.caf_ns" is of the X1, "host.caf_ns" of the experiment's machine. */
static bool is_in_ledger(const struct emu_exp *x, const char *param)
{
    const char *colon = strchr(param, ':');
    char machine[64];

    if (!colon)
        return emu_ledger_find(x->experiment->machine, param);
    snprintf(machine, sizeof(machine), "%.*s", (int)(colon - param), param);
    return emu_ledger_find(machine, colon + 1);
}

/* What is not true of a metric's class; NULL: it is true. */
static const char *class_flaw(const struct emu_exp *x, const struct emu_metric *m, enum emu_exp_class class_of)
{
    if (class_of == EMU_CLASS_NONE)
        return "it has no class";
    if (class_of == EMU_CLASS_MEASURED && x->packets == 0)
        return "it says that it is measured, but no packet was simulated for it";
    if ((m->kind == 'K') != (class_of == EMU_CLASS_FITTED))
        return "kind K and class fitted go together";
    if (class_of == EMU_CLASS_FITTED && !m->param_name)
        return "it is fitted, but tells no parameter";
    if (class_of == EMU_CLASS_FITTED && !is_in_ledger(x, m->param_name))
        return "its parameter is not in the ledger";
    return NULL;
}

/* What makes a metric none at all; NULL: it is one. */
static const char *flaw(const struct emu_exp *x, const struct emu_metric *m)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/+";

    if (!m->name || *m->name == '\0' || strspn(m->name, letters) != strlen(m->name))
        return "its name is not one of letters, digits and _.-/+";
    if (m->kind == '\0' || !strchr("ASKPFQ", m->kind))
        return "its kind is not one of ASKPFQ";
    if (!strchr(x->experiment->kinds, m->kind))
        return "its kind is not one that the experiment's row names";
    if (m->param_name && !isfinite(m->param_value))
        return "its parameter is not a number";
    return class_flaw(x, m, class_of_metric(x, m));
}

/* ---- lines ---- */

static void append(struct emu_exp *x, json_t *line)
{
    if (!line || json_array_append_new(x->lines, line) < 0)
        x->is_short_of_memory = true;
}

static json_t *value_json(const struct emu_metric *m, double number, const char *text)
{
    char word[WORD_MAX];

    if (m->tolerance == EMU_TOL_TEXT) {
        to_word(text, word);
        return json_string(word);
    }
    if (!isfinite(number))
        return json_null();
    if (number == floor(number) && fabs(number) < 1e15)
        return json_integer((json_int_t)number);
    return json_real(number);
}

static void add_metric(struct emu_exp *x, const struct emu_metric *m, bool is_pass)
{
    char kind[2] = { m->kind ? m->kind : '-', '\0' };
    char name[WORD_MAX];
    char tol[WORD_MAX];
    char unit[WORD_MAX];
    enum emu_exp_class class_of = class_of_metric(x, m);
    json_t *line;

    tolerance_text(m, tol);
    to_word(m->name, name);
    to_word(m->unit ? m->unit : "1", unit);
    line = json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:I, s:s, s:s}", "id", x->id, "metric", name, "src",
                     value_json(m, m->src, m->src_text), "got", value_json(m, m->got, m->got_text), "unit", unit, "tol",
                     tol, "kind", kind, "seed", (json_int_t)x->context.seed, "verdict", is_pass ? "PASS" : "FAIL",
                     "class", class_name(class_of));
    x->metric = line;
    x->got = m->got;
    if (line && class_of == EMU_CLASS_MEASURED)
        x->is_short_of_memory |= json_object_set_new(line, "packets", json_integer((json_int_t)x->packets)) < 0;
    if (line && m->tolerance == EMU_TOL_RANGE)
        x->is_short_of_memory |= json_object_set_new(line, "src_high", json_real(m->src_high)) < 0;
    if (line && m->param_name && isfinite(m->param_value))
        x->is_short_of_memory |=
            json_object_set_new(line, "param",
                                json_pack("{s:s, s:f}", "name", m->param_name, "value", m->param_value)) < 0;
    append(x, line);
    if (is_pass)
        x->n_passed++;
    else
        x->n_failed++;
}

bool emu_exp_report(struct emu_exp *x, const struct emu_metric *metric)
{
    const char *problem;
    bool is_pass;

    count_packets(x);
    problem = flaw(x, metric);
    is_pass = !problem && judge(metric);
    add_metric(x, metric, is_pass);
    x->next_class = EMU_CLASS_NONE;
    if (problem)
        emu_exp_detail(x, "%s: not a valid metric: %s", metric->name ? metric->name : "?", problem);
    return is_pass;
}

static void __attribute__((format(printf, 1, 0))) one_line(const char *format, va_list args, char text_out[TEXT_MAX])
{
    vsnprintf(text_out, TEXT_MAX, format, args);
    emu_text_tame(text_out, ' ');
}

void emu_exp_detail(struct emu_exp *x, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, format);
    one_line(format, args, text);
    va_end(args);
    append(x, json_pack("{s:s}", "detail", text));
}

void emu_exp_why(struct emu_exp *x, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    if (!x->metric || strcmp(json_string_value(json_object_get(x->metric, "verdict")), "FAIL") != 0)
        return;
    va_start(args, format);
    one_line(format, args, text);
    va_end(args);
    x->is_short_of_memory |= json_object_set_new(x->metric, "why", json_string(text)) < 0;
}

void emu_exp_before(struct emu_exp *x, const struct emu_exp_before *before)
{
    struct emu_metric m = { .kind = 'A',
                            .name = "before",
                            .tolerance = before->source.tolerance,
                            .src = before->source.src,
                            .src_high = before->source.src_high,
                            .got = isnan(before->got) ? x->got : before->got,
                            .tol = before->source.tol,
                            .decimals = before->source.decimals };
    char tol[WORD_MAX];
    json_t *old;

    if (!x->metric)
        return;
    tolerance_text(&m, tol);
    old = json_pack("{s:o, s:o, s:s, s:s, s:s}", "src", value_json(&m, m.src, NULL), "got", value_json(&m, m.got, NULL),
                    "tol", tol, "verdict", judge(&m) ? "PASS" : "FAIL", "text", before->text);
    if (old && m.tolerance == EMU_TOL_RANGE)
        x->is_short_of_memory |= json_object_set_new(old, "src_high", json_real(m.src_high)) < 0;
    x->is_short_of_memory |= json_object_set_new(x->metric, "before", old) < 0;
}

void emu_exp_part(struct emu_exp *x, const char *part)
{
    snprintf(x->id, sizeof(x->id), "%s%s", x->experiment->id, part ? part : "");
}

/* ---- metrics of one call ---- */

bool emu_exp_figure(struct emu_exp *x, char kind, const char *name, const char *unit, struct emu_exp_source source,
                    double got)
{
    return emu_exp_report(x, &(struct emu_metric){ .kind = kind,
                                                   .name = name,
                                                   .unit = unit,
                                                   .tolerance = source.tolerance,
                                                   .src = source.src,
                                                   .src_high = source.src_high,
                                                   .got = got,
                                                   .tol = source.tol,
                                                   .decimals = source.decimals });
}

bool emu_exp_exact(struct emu_exp *x, char kind, const char *name, const char *unit, double src, double got)
{
    return emu_exp_figure(x, kind, name, unit, (struct emu_exp_source){ .tolerance = EMU_TOL_EXACT, .src = src }, got);
}

bool emu_exp_at_least(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got)
{
    return emu_exp_figure(x, kind, name, unit, (struct emu_exp_source){ .tolerance = EMU_TOL_AT_LEAST, .src = bound },
                          got);
}

bool emu_exp_at_most(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got)
{
    return emu_exp_figure(x, kind, name, unit, (struct emu_exp_source){ .tolerance = EMU_TOL_AT_MOST, .src = bound },
                          got);
}

bool emu_exp_above(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got)
{
    return emu_exp_figure(x, kind, name, unit, (struct emu_exp_source){ .tolerance = EMU_TOL_ABOVE, .src = bound },
                          got);
}

bool emu_exp_below(struct emu_exp *x, char kind, const char *name, const char *unit, double bound, double got)
{
    return emu_exp_figure(x, kind, name, unit, (struct emu_exp_source){ .tolerance = EMU_TOL_BELOW, .src = bound },
                          got);
}

bool emu_exp_text(struct emu_exp *x, char kind, const char *name, const char *src, const char *got)
{
    return emu_exp_report(
        x, &(struct emu_metric){
               .kind = kind, .name = name, .tolerance = EMU_TOL_TEXT, .src_text = src, .got_text = got });
}

bool emu_exp_holds(struct emu_exp *x, char kind, const char *name, bool is_so)
{
    return emu_exp_text(x, kind, name, "yes", is_so ? "yes" : "no");
}

bool emu_exp_fitted(struct emu_exp *x, const char *name, const char *unit, double src, double got,
                    struct emu_exp_param param)
{
    return emu_exp_report(x, &(struct emu_metric){ .kind = 'K',
                                                   .name = name,
                                                   .unit = unit,
                                                   .tolerance = EMU_TOL_RELATIVE,
                                                   .src = src,
                                                   .got = got,
                                                   .tol = FITTED,
                                                   .param_name = param.name,
                                                   .param_value = param.value });
}

/* ---- context ---- */

const struct emu_exp_context *emu_exp_context(const struct emu_exp *x)
{
    return &x->context;
}

int emu_exp_machine(struct emu_exp *x, const char *spec, struct emu_machine **m_out)
{
    char text[256] = "";
    int r = emu_machine_load(spec, x->context.machine_dir, m_out, text, sizeof(text));

    if (r < 0)
        emu_exp_detail(x, "machine %s: %s", spec, text);
    return r;
}

void emu_exp_progress(struct emu_exp *x, double fraction)
{
    if (x->progress)
        x->progress(x->progress_ctx, fraction);
}

FILE *emu_exp_data(struct emu_exp *x, const char *name, const char *title, const char *x_label, const char *y_label)
{
    char path[4096];
    FILE *file;

    if (!x->context.data_dir)
        return NULL;
    if (snprintf(path, sizeof(path), "%s/%s-%s.tsv", x->context.data_dir, x->experiment->id, name) >=
        (int)sizeof(path)) {
        emu_exp_detail(x, "no plot data: the path of '%s' is too long", name);
        return NULL;
    }
    file = fopen(path, "we");
    if (!file) {
        emu_exp_detail(x, "no plot data: %s: %s", path, strerror(errno));
        return NULL;
    }
    fprintf(file, "# title\t%s\n# x\t%s\n# y\t%s\n", title, x_label, y_label);
    return file;
}

/* ---- running ---- */

static json_t *finish(struct emu_exp *x, double seconds, double cpu_seconds)
{
    json_t *report = NULL;

    if (!x->is_short_of_memory)
        report = json_pack("{s:s, s:s, s:I, s:f, s:f, s:I, s:I, s:O}", "id", x->experiment->id, "machine",
                           x->experiment->machine, "seed", (json_int_t)x->context.seed, "seconds", seconds,
                           "cpu_seconds", cpu_seconds, "passed", (json_int_t)x->n_passed, "failed",
                           (json_int_t)x->n_failed, "lines", x->lines);
    json_decref(x->lines);
    return report;
}

static bool begin(struct emu_exp *x, const struct emu_experiment *experiment, const struct emu_exp_context *context)
{
    *x = (struct emu_exp){ .experiment = experiment,
                           .context = *context,
                           .lines = json_array(),
                           .seen_packets = emu_sim_packets_of_process() };
    emu_exp_part(x, NULL);
    return x->lines;
}

static void add_aborted(struct emu_exp *x, const char *reason)
{
    emu_exp_part(x, NULL);
    add_metric(x,
               &(struct emu_metric){ .kind = x->experiment->kinds[0],
                                     .name = "completed",
                                     .tolerance = EMU_TOL_TEXT,
                                     .src_text = "yes",
                                     .got_text = "no" },
               false);
    emu_exp_detail(x, "not completed: %s", reason);
}

json_t *emu_exp_run(const struct emu_experiment *experiment, const struct emu_exp_context *context,
                    void (*progress)(void *ctx, double fraction), void *ctx)
{
    uint64_t start = emu_clock_ns();
    double start_cpu = emu_cpu_seconds();
    struct emu_exp x;
    int r;

    assert(experiment->run);
    if (!begin(&x, experiment, context))
        return NULL;
    x.progress = progress;
    x.progress_ctx = ctx;
    r = experiment->run(&x);
    if (r < 0)
        add_aborted(&x, strerror(-r));
    else if (x.n_passed + x.n_failed == 0)
        add_aborted(&x, "it reported nothing");
    return finish(&x, (double)(emu_clock_ns() - start) / 1e9, emu_cpu_seconds() - start_cpu);
}

json_t *emu_exp_aborted(const struct emu_experiment *experiment, uint64_t seed, const char *reason)
{
    struct emu_exp_context context = { .seed = seed };
    struct emu_exp x;

    if (!begin(&x, experiment, &context))
        return NULL;
    add_aborted(&x, reason);
    return finish(&x, 0, 0);
}

/* ---- printing ---- */

static void print_value(const json_t *value, FILE *out)
{
    char number[NUMBER_MAX];

    if (json_is_string(value)) {
        fputs(json_string_value(value), out);
    } else if (json_is_number(value)) {
        print_number(json_number_value(value), number);
        fputs(number, out);
    } else {
        fputs("nan", out);
    }
}

static const char *text_of(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));

    return text ? text : "-";
}

static void print_before(const json_t *before, FILE *out)
{
    const json_t *high = json_object_get(before, "src_high");

    fputs("# before: src=", out);
    print_value(json_object_get(before, "src"), out);
    if (high) {
        fputs("..", out);
        print_value(high, out);
    }
    fputs(" got=", out);
    print_value(json_object_get(before, "got"), out);
    fprintf(out, " tol=%s verdict=%s; %s\n", text_of(before, "tol"), text_of(before, "verdict"),
            text_of(before, "text"));
}

static void print_metric(const json_t *line, FILE *out)
{
    const json_t *param = json_object_get(line, "param");
    const json_t *why = json_object_get(line, "why");
    const json_t *high = json_object_get(line, "src_high");

    fprintf(out, "EXP %s %s src=", text_of(line, "id"), text_of(line, "metric"));
    print_value(json_object_get(line, "src"), out);
    if (high) {
        fputs("..", out);
        print_value(high, out);
    }
    fputs(" got=", out);
    print_value(json_object_get(line, "got"), out);
    fprintf(out, " unit=%s tol=%s kind=%s seed=%" JSON_INTEGER_FORMAT " verdict=%s class=%s", text_of(line, "unit"),
            text_of(line, "tol"), text_of(line, "kind"), json_integer_value(json_object_get(line, "seed")),
            text_of(line, "verdict"), text_of(line, "class"));
    if (param) {
        fprintf(out, " param=%s:", text_of(param, "name"));
        print_value(json_object_get(param, "value"), out);
    }
    fputc('\n', out);
    if (why)
        fprintf(out, "# why: %s\n", json_string_value(why));
    if (json_object_get(line, "before"))
        print_before(json_object_get(line, "before"), out);
}

int emu_exp_print(const json_t *report, FILE *out)
{
    const json_t *line;
    size_t i;

    json_array_foreach(json_object_get(report, "lines"), i, line) {
        if (json_object_get(line, "detail"))
            fprintf(out, "# %s\n", text_of(line, "detail"));
        else
            print_metric(line, out);
    }
    return ferror(out) ? -EIO : 0;
}
