/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From words to a change of the network. Names are compared with what the machine calls its parts; a link that has
 * several parallels is told by its class and number, or by its id of `emunic links`.
 */
#include "emunic/cli/network_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/number.h"
#include "emunic/base/text.h"
#include "emunic/fabric/link.h"

#define WORDS_MAX 8
#define TEXT_MAX  256

struct words {
    char text[TEXT_MAX];
    char *word[WORDS_MAX];
    unsigned n;
};

struct place {
    const struct emu_machine *machine;
    char *err;
    size_t err_len;
};

static int __attribute__((format(printf, 2, 3))) fail(const struct place *at, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(at->err, at->err_len, format, ap);
    va_end(ap);
    emu_text_tame(at->err, '?');
    return -EINVAL;
}

static bool parse_number(const char *text, uint32_t *number_out)
{
    uint64_t value;

    if (!emu_parse_number(text, 0, 0, UINT32_MAX, &value))
        return false;
    *number_out = (uint32_t)value;
    return true;
}

/* The arrow of a link's name says nothing. */
static bool split(struct words *w, const char *text)
{
    char *rest = w->text;
    char *word;

    w->n = 0;
    if (strlen(text) >= sizeof(w->text))
        return false;
    strcpy(w->text, text);
    while ((word = strsep(&rest, " \t"))) {
        if (*word == '\0' || strcmp(word, "->") == 0)
            continue;
        if (w->n == WORDS_MAX)
            return false;
        w->word[w->n++] = word;
    }
    return w->n > 0;
}

/* ---- parts ---- */

static int find_node(const struct place *at, const char *word, uint32_t *nid_out)
{
    uint32_t n_nodes = emu_machine_n_nodes(at->machine);

    if (emu_machine_nid_of_cname(at->machine, word, nid_out) == 0)
        return 0;
    if (parse_number(word, nid_out) && *nid_out < n_nodes)
        return 0;
    return fail(at, "node '%.60s': neither the name of a node nor a number from 0 to %u", word, n_nodes - 1);
}

static int find_router(const struct place *at, const char *word, uint32_t *router_out)
{
    uint32_t n_routers = emu_machine_n_routers(at->machine);
    char name[EMU_CNAME_MAX];

    if (parse_number(word, router_out) && *router_out < n_routers)
        return 0;
    for (uint32_t r = 0; r < n_routers; r++) {
        if (emu_machine_router_cname(at->machine, r, name, sizeof(name)) == 0 && strcmp(name, word) == 0) {
            *router_out = r;
            return 0;
        }
    }
    return fail(at, "router '%.60s': neither the name of a router nor a number from 0 to %u", word, n_routers - 1);
}

/* Do the words begin the link's name? "FROM TO", perhaps class and number behind. */
static bool is_called(const struct place *at, uint32_t link, const struct words *w, unsigned first)
{
    char name[EMU_LINK_NAME_MAX];
    struct words of;

    if (emu_link_name(at->machine, link, name, sizeof(name)) < 0 || !split(&of, name) || w->n - first > of.n)
        return false;
    for (unsigned i = first; i < w->n; i++) {
        if (strcmp(w->word[i], of.word[i - first]) != 0)
            return false;
    }
    return true;
}

static int find_link(const struct place *at, const struct words *w, unsigned first, uint32_t *link_out)
{
    uint32_t n_links = emu_machine_n_links(at->machine);
    uint32_t n_found = 0;

    if (w->n == first + 1) {
        if (parse_number(w->word[first], link_out) && *link_out < n_links)
            return 0;
        return fail(at, "link '%.60s': not a number from 0 to %u; a name has two ends", w->word[first], n_links - 1);
    }
    for (uint32_t l = 0; l < n_links; l++) {
        if (is_called(at, l, w, first) && n_found++ == 0)
            *link_out = l;
    }
    if (n_found == 1)
        return 0;
    if (n_found == 0)
        return fail(at, "no link leads from '%.40s' to '%.40s'%s", w->word[first], w->word[first + 1],
                    w->n > first + 2 ? " of that class and number" : "");
    return fail(at, "%u links lead from '%.40s' to '%.40s': class and number tell which", n_found, w->word[first],
                w->word[first + 1]);
}

/* ---- changes ---- */

static int read_link(const struct place *at, struct words *w, struct emu_msg_network *change)
{
    change->thing = EMU_NETWORK_LINK;
    if (w->n > 2 && strcmp(w->word[w->n - 1], "one-way") == 0) {
        change->flags |= EMU_NETWORK_ONE_WAY;
        w->n--;
    }
    if (w->n < 2)
        return fail(at, "link: its number or its two ends are missing");
    return find_link(at, w, 1, &change->index);
}

static int read_lanes(const struct place *at, struct words *w, struct emu_msg_network *change)
{
    bool is_repair = (change->flags & EMU_NETWORK_REPAIR) != 0;
    struct emu_link link;
    int r;

    change->thing = EMU_NETWORK_LANES;
    if (!is_repair && (w->n < 3 || !parse_number(w->word[--w->n], &change->lane_mask)))
        return fail(at, "lanes: a link and a mask are wanted; bit i of the mask: lane i works");
    if (w->n < 2)
        return fail(at, "lanes: the link is missing");
    r = find_link(at, w, 1, &change->index);
    if (r < 0 || is_repair)
        return r;
    emu_link_get(at->machine, change->index, &link);
    if (change->lane_mask == 0 || (link.lanes < 32 && change->lane_mask >> link.lanes != 0))
        return fail(at, "lanes: the link has %u: a mask from 1 to %u", link.lanes, (1u << link.lanes) - 1);
    return 0;
}

int emu_network_words_read(const struct emu_machine *m, const char *text, bool is_repair,
                           struct emu_msg_network *change_out, char *err, size_t err_len)
{
    const struct place at = { .machine = m, .err = err, .err_len = err_len };
    struct emu_msg_network change = { .flags = is_repair ? EMU_NETWORK_REPAIR : 0 };
    struct words w;
    int r;

    if (!split(&w, text))
        return fail(&at, "one of link, lanes, router, node%s is missing", is_repair ? ", all" : "");
    if (strcmp(w.word[0], "link") == 0) {
        r = read_link(&at, &w, &change);
    } else if (strcmp(w.word[0], "lanes") == 0) {
        r = read_lanes(&at, &w, &change);
    } else if (strcmp(w.word[0], "router") == 0 && w.n == 2) {
        change.thing = EMU_NETWORK_ROUTER;
        r = find_router(&at, w.word[1], &change.index);
    } else if (strcmp(w.word[0], "node") == 0 && w.n == 2) {
        change.thing = EMU_NETWORK_NODE;
        r = find_node(&at, w.word[1], &change.index);
    } else if (strcmp(w.word[0], "all") == 0 && w.n == 1 && is_repair) {
        change.thing = EMU_NETWORK_ALL;
        r = 0;
    } else {
        r = fail(&at, "'%.80s' is none of link, lanes, router, node%s, with its name", text, is_repair ? ", all" : "");
    }
    if (r == 0)
        *change_out = change;
    return r;
}

int emu_network_events_read(const struct emu_machine *m, const struct emu_fault_schedule *schedule,
                            struct emu_msg_network **changes_out, char *err, size_t err_len)
{
    struct emu_msg_network *changes = calloc(schedule->n_events, sizeof(*changes));

    if (!changes) {
        snprintf(err, err_len, "no memory");
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < schedule->n_events; i++) {
        const struct emu_network_event *event = &schedule->events[i];
        int r = emu_network_words_read(m, event->what, event->is_repair, &changes[i], err, err_len);

        if (r < 0) {
            free(changes);
            return r;
        }
        changes[i].after_ns = event->at_ns;
    }
    *changes_out = changes;
    return 0;
}
