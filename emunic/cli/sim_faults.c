/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is broken, as a text file: one thing a line, "#" starts a comment.
 *
 *   router NAME|NUMBER     node NAME|NUMBER     link NUMBER (one direction)     cable NUMBER (both directions)
 *   lanes LINK MASK        lanes that still work: bit i is lane i
 */
#include "emunic/cli/sim_faults.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emunic/base/input_file.h"
#include "emunic/base/number.h"
#include "emunic/base/text.h"
#include "emunic/cli/cli.h"
#include "emunic/fabric/link.h"

#define LINE_MAX_LEN   256
#define FIELDS_MAX     3
#define FILE_BYTES_MAX (64u << 20)

struct faults {
    const char *path; /* borrowed */
    unsigned line;
    const struct emu_machine *m;
    struct emu_fault_map *map;
    char *err;
    size_t err_len;
};

static int __attribute__((format(printf, 2, 3))) fail_at(const struct faults *f, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    emu_text_tame_to_ascii(text);
    snprintf(f->err, f->err_len, "%s:%u: %s", f->path, f->line, text);
    return -EINVAL;
}

static int find_router(const struct faults *f, const char *word, uint32_t *router_out)
{
    char name[EMU_CNAME_MAX];
    uint64_t number;

    if (emu_parse_number(word, 10, 0, UINT32_MAX, &number)) {
        *router_out = (uint32_t)number;
        return 0;
    }
    for (uint32_t router = 0; router < emu_machine_n_routers(f->m); router++) {
        if (emu_machine_router_cname(f->m, router, name, sizeof(name)) == 0 && strcmp(name, word) == 0) {
            *router_out = router;
            return 0;
        }
    }
    return fail_at(f, "'%.40s' is neither a router's name nor its number", word);
}

static int find_node(const struct faults *f, const char *word, uint32_t *nid_out)
{
    uint64_t number;

    if (emu_parse_number(word, 10, 0, UINT32_MAX, &number)) {
        *nid_out = (uint32_t)number;
        return 0;
    }
    if (emu_machine_nid_of_cname(f->m, word, nid_out) < 0)
        return fail_at(f, "'%.40s' is neither a node's name nor its number", word);
    return 0;
}

static int find_link(const struct faults *f, const char *word, uint32_t *link_out)
{
    uint64_t number;

    if (!emu_parse_number(word, 10, 0, UINT32_MAX, &number))
        return fail_at(f, "'%.40s' is not the number of a link", word);
    *link_out = (uint32_t)number;
    return 0;
}

static int fail_link(const struct faults *f, uint32_t link, uint32_t reverse)
{
    int r = emu_fault_map_set_link(f->map, link, false);

    return r == 0 && reverse != link ? emu_fault_map_set_link(f->map, reverse, false) : r;
}

static int apply(const struct faults *f, char *const fields[], size_t n)
{
    uint64_t mask;
    uint32_t id;
    uint32_t reverse;
    int r;

    if (strcmp(fields[0], "router") == 0 && n == 2) {
        r = find_router(f, fields[1], &id);
        r = r < 0 ? r : emu_fault_map_set_router(f->map, id, false);
    } else if (strcmp(fields[0], "node") == 0 && n == 2) {
        r = find_node(f, fields[1], &id);
        r = r < 0 ? r : emu_fault_map_set_node(f->map, id, false);
    } else if ((strcmp(fields[0], "link") == 0 || strcmp(fields[0], "cable") == 0) && n == 2) {
        r = find_link(f, fields[1], &id);
        reverse = id;
        if (r == 0 && fields[0][0] == 'c')
            r = emu_link_reverse(f->m, id, &reverse);
        r = r < 0 ? r : fail_link(f, id, reverse);
    } else if (strcmp(fields[0], "lanes") == 0 && n == 3) {
        r = find_link(f, fields[1], &id);
        if (r == 0 && !emu_parse_number(fields[2], 0, 1, UINT32_MAX, &mask))
            return fail_at(f, "'%.40s' is not a mask of lanes", fields[2]);
        r = r < 0 ? r : emu_fault_map_set_lanes(f->map, id, (uint32_t)mask);
        if (r == -EINVAL && f->err[0] == '\0')
            return fail_at(f, "link %u has not all the lanes of mask %s", id, fields[2]);
    } else {
        return fail_at(f, "expected 'router X', 'node X', 'link N', 'cable N' or 'lanes N MASK'");
    }
    if (r == -ERANGE)
        return fail_at(f, "the machine has no %s %s", fields[0][0] == 'l' || fields[0][0] == 'c' ? "link" : fields[0],
                       fields[1]);
    return r;
}

static int read_lines(struct faults *f, FILE *file)
{
    char line[LINE_MAX_LEN + 2];
    int r = 0;

    while (r == 0 && fgets(line, sizeof(line), file)) {
        char *fields[FIELDS_MAX + 1];
        char *rest = NULL;
        size_t n = 0;

        f->line++;
        if (strlen(line) > LINE_MAX_LEN)
            return fail_at(f, "longer than %d bytes", LINE_MAX_LEN);
        line[strcspn(line, "#\r\n")] = '\0';
        for (char *field = strtok_r(line, " \t", &rest); field && n <= FIELDS_MAX; field = strtok_r(NULL, " \t", &rest))
            fields[n++] = field;
        if (n > 0)
            r = apply(f, fields, n);
    }
    return r;
}

int emu_cli_read_faults(const char *path, const struct emu_machine *m, struct emu_fault_map **map_out, char *err,
                        size_t err_len)
{
    struct faults f = { .path = path, .m = m, .err = err, .err_len = err_len };
    FILE *file;
    int r = emu_input_file_open(path, FILE_BYTES_MAX, &file);

    err[0] = '\0';
    if (r < 0) {
        snprintf(err, err_len, "%s: %s", path, emu_input_file_reason(r));
        return r;
    }
    r = emu_fault_map_create(m, &f.map);
    if (r == 0)
        r = read_lines(&f, file);
    if (r == 0 && ferror(file))
        r = -EIO;
    fclose(file);
    if (r < 0) {
        if (err[0] == '\0')
            snprintf(err, err_len, "%s: %s", path, strerror(-r));
        emu_fault_map_destroy(f.map);
        return r;
    }
    *map_out = f.map;
    return 0;
}
