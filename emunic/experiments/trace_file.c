/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trace files: a line is a message. Read line by line with a limit for everything; the first fault ends the reading.
 * The numbers behind a message, in version 2, are those of messages before it.
 */
#include "emunic/experiments/traffic.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/input_file.h"
#include "emunic/base/text.h"

#define MAGIC          "emunic-trace"
#define LINE_MAX_LEN   256
#define MESSAGES_MAX   ((size_t)1 << 24)
#define BYTES_MAX      (UINT64_C(1) << 40)
#define START_NS_MAX   UINT64_C(1000000000000000)
#define FIELDS         4
#define FIELDS_MAX     (LINE_MAX_LEN / 2 + 1)
#define AFTER_MAX      ((size_t)1 << 26)
#define FILE_BYTES_MAX (UINT64_C(4) << 30)

struct trace {
    const char *path; /* borrowed */
    uint32_t n_nodes;
    uint64_t line;
    bool has_magic;
    struct emu_messages all;
    size_t max;
    size_t after_max;
    char *err; /* borrowed; may be NULL */
    size_t err_len;
};

static int __attribute__((format(printf, 2, 3))) fail_at(const struct trace *t, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    emu_text_tame_to_ascii(text);
    if (t->err)
        snprintf(t->err, t->err_len, "%s:%llu: %s", t->path, (unsigned long long)t->line, text);
    return -EINVAL;
}

/* Digits, then with `scale` > 1 perhaps a point and as many decimals as it has zeros. */
static bool parse_number(const char *text, uint64_t scale, uint64_t max, uint64_t *value_out)
{
    uint64_t value = 0;
    bool has_point = false;

    if (*text == '\0' || *text == '.')
        return false;
    for (; *text; text++) {
        if (*text == '.' && !has_point && scale > 1 && text[1] != '\0') {
            has_point = true;
            continue;
        }
        if (*text < '0' || *text > '9' || (has_point && scale == 1))
            return false;
        if (has_point)
            scale /= 10;
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > UINT64_MAX / 10 - 10 || value > max)
            return false;
    }
    if (value > max / scale)
        return false;
    *value_out = value * scale;
    return true;
}

static int read_magic(struct trace *t, char *const fields[], size_t n)
{
    if (strcmp(fields[0], MAGIC) != 0 || n != 2)
        return fail_at(t, "a trace starts with the line '" MAGIC " 1' or '" MAGIC " 2'");
    if (strcmp(fields[1], "1") != 0 && strcmp(fields[1], "2") != 0)
        return fail_at(t, "version '%.20s' of traces is not known, only 1 and 2", fields[1]);
    t->has_magic = true;
    t->all.is_program = fields[1][0] == '2';
    return 0;
}

/* Room for one more element of an array. */
static int grow(const struct trace *t, void **array, size_t n, size_t *max, size_t size)
{
    size_t more = *max ? 2 * *max : 256;
    void *grown;

    if (n < *max)
        return 0;
    grown = realloc(*array, more * size);
    if (!grown) {
        (void)fail_at(t, "out of memory");
        return -ENOMEM;
    }
    *array = grown;
    *max = more;
    return 0;
}

static int add_message(struct trace *t, const struct emu_message *message)
{
    int r;

    if (t->all.n == MESSAGES_MAX)
        return fail_at(t, "more than %zu messages", MESSAGES_MAX);
    r = grow(t, (void **)&t->all.list, t->all.n, &t->max, sizeof(*t->all.list));
    if (r == 0)
        t->all.list[t->all.n++] = *message;
    return r;
}

/* The message waits for the one with this number, which the source must have seen arrive. */
static int add_after(struct trace *t, struct emu_message *message, const char *text)
{
    uint64_t number;
    int r;

    if (!parse_number(text, 1, MESSAGES_MAX, &number) || number == 0 || number > t->all.n)
        return fail_at(t, "'%.40s' is not the number of a message before this one, 1 to %zu", text, t->all.n);
    if (t->all.list[number - 1].dst_nid != message->src_nid)
        return fail_at(t, "message %llu goes to node %u, and node %u cannot wait for it", (unsigned long long)number,
                       t->all.list[number - 1].dst_nid, message->src_nid);
    if (t->all.n_after == AFTER_MAX)
        return fail_at(t, "messages wait for more than %zu others", AFTER_MAX);
    r = grow(t, (void **)&t->all.after, t->all.n_after, &t->after_max, sizeof(*t->all.after));
    if (r < 0)
        return r;
    t->all.after[t->all.n_after++] = (uint32_t)number - 1;
    message->n_after++;
    return 0;
}

static int read_nid(const struct trace *t, const char *what, const char *text, uint32_t *nid_out)
{
    uint64_t nid;

    if (!parse_number(text, 1, UINT32_MAX, &nid))
        return fail_at(t, "%s '%.40s' is not a node id", what, text);
    if (nid >= t->n_nodes)
        return fail_at(t, "%s %llu is not in the machine, which has nodes 0 to %u", what, (unsigned long long)nid,
                       t->n_nodes - 1);
    *nid_out = (uint32_t)nid;
    return 0;
}

static int read_message(struct trace *t, char *const fields[], size_t n)
{
    struct emu_message message = { .first_after = (uint32_t)t->all.n_after };
    int r;

    if (n < FIELDS || (n > FIELDS && !t->all.is_program))
        return fail_at(t, "expected start, source, destination and bytes, found %zu field%s", n, n == 1 ? "" : "s");
    /* Picoseconds from nanoseconds with three decimals. */
    if (!parse_number(fields[0], 1000, START_NS_MAX * 1000, &message.start_ps))
        return fail_at(t, "start '%.40s' is not a time in ns with up to three decimals, up to 10^15", fields[0]);
    r = read_nid(t, "source", fields[1], &message.src_nid);
    if (r == 0)
        r = read_nid(t, "destination", fields[2], &message.dst_nid);
    if (r < 0)
        return r;
    if (message.src_nid == message.dst_nid)
        return fail_at(t, "node %u sends to itself", message.src_nid);
    if (!parse_number(fields[3], 1, BYTES_MAX, &message.bytes))
        return fail_at(t, "'%.40s' is not a number of bytes up to 2^40", fields[3]);
    for (size_t i = FIELDS; r == 0 && i < n; i++)
        r = add_after(t, &message, fields[i]);
    return r < 0 ? r : add_message(t, &message);
}

static int read_line(struct trace *t, char *line)
{
    char *fields[FIELDS_MAX];
    size_t n = 0;
    char *rest = NULL;

    line[strcspn(line, "#\r\n")] = '\0';
    for (char *field = strtok_r(line, " \t", &rest); field && n < FIELDS_MAX; field = strtok_r(NULL, " \t", &rest))
        fields[n++] = field;
    if (n == 0)
        return 0;
    return t->has_magic ? read_message(t, fields, n) : read_magic(t, fields, n);
}

static int read_lines(struct trace *t, FILE *file)
{
    char line[LINE_MAX_LEN + 2];
    int r = 0;

    while (r == 0) {
        size_t len = 0;
        int c;

        /* Not fgets(): a zero byte must not hide the rest of a line. */
        while ((c = getc(file)) != EOF && c != '\n') {
            if (len == 0)
                t->line++;
            if (c == '\0')
                return fail_at(t, "a zero byte: not a text file");
            if (len == LINE_MAX_LEN)
                return fail_at(t, "longer than %d bytes", LINE_MAX_LEN);
            line[len++] = (char)c;
        }
        if (c == '\n' && len == 0)
            t->line++;
        if (c == EOF && len == 0)
            break;
        line[len] = '\0';
        r = read_line(t, line);
    }
    return r;
}

int emu_trace_read(const char *path, const struct emu_machine *m, struct emu_messages *trace_out, char *err,
                   size_t err_len)
{
    struct trace t = { .path = path, .n_nodes = emu_machine_n_nodes(m), .err = err, .err_len = err_len };
    FILE *file;
    int r = emu_input_file_open(path, FILE_BYTES_MAX, &file);

    *trace_out = t.all;
    if (r < 0) {
        if (err)
            snprintf(err, err_len, "%s: %s", path, emu_input_file_reason(r));
        return r;
    }
    r = read_lines(&t, file);
    if (r == 0 && ferror(file)) {
        r = -EIO;
        if (err)
            snprintf(err, err_len, "%s: cannot be read", path);
    }
    if (r == 0 && t.all.n == 0)
        r = fail_at(&t, "no message");
    fclose(file);
    if (r < 0)
        emu_messages_fini(&t.all);
    *trace_out = t.all;
    return r;
}

void emu_messages_fini(struct emu_messages *messages)
{
    free(messages->list);
    free(messages->after);
    *messages = (struct emu_messages){ 0 };
}
