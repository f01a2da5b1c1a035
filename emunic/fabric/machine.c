/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine is its parameters (machine_file.c), a topology's row of functions (topology.h) and whatever the topology
 * stores for itself. Three counts are kept: nodes, routers, links; their numbers start at 0 and have no gaps.
 * Everything else is computed on demand, so that the largest machine (92 544 nodes, 1.1 million links) costs less than
 * a megabyte and builds in milliseconds.
 *
 * Names: Cray's physical names, c<column>-<row>c<cage>s<slot>n<node> for a node; a router has its chip's name in the
 * place of n<node>. Numbers have no leading zeros, so that each node has one name only.
 * Source: spec/cray-runtime.md 4.2.
 */
#include "emunic/fabric/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/machine_file.h"
#include "emunic/fabric/topology.h"

int emu_text(char *buf, size_t len, const char *format, ...)
{
    char text[256];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(text) || (size_t)n >= len)
        return -ENOSPC;
    memcpy(buf, text, (size_t)n + 1);
    return 0;
}

/* Takes a decimal number of at most six digits, without leading zeros, off the front of a text. */
static bool take_number(const char **text, uint32_t *value_out)
{
    const char *p = *text;
    uint32_t value = 0;
    int digits = 0;

    while (*p >= '0' && *p <= '9' && digits < 7) {
        value = value * 10 + (uint32_t)(*p - '0');
        p++;
        digits++;
    }
    if (digits == 0 || digits == 7 || (**text == '0' && digits > 1))
        return false;
    *text = p;
    *value_out = value;
    return true;
}

static bool take_letter(const char **text, char letter)
{
    if (**text != letter)
        return false;
    (*text)++;
    return true;
}

const struct emu_topology *emu_topology_find(const char *kind)
{
    static const struct emu_topology *const topologies[] = {
        &emu_topology_dragonfly, &emu_topology_direct,    &emu_topology_fat_tree,       &emu_topology_bluegene_l,
        &emu_topology_gemini,    &emu_topology_hypercube, &emu_topology_seastar,        &emu_topology_tree,
        &emu_topology_hyperx,    &emu_topology_slim_fly,  &emu_topology_dragonfly_plus,
    };

    for (size_t i = 0; i < sizeof(topologies) / sizeof(topologies[0]); i++) {
        if (strcmp(topologies[i]->kind, kind) == 0)
            return topologies[i];
    }
    return NULL;
}

int emu_machine_load(const char *spec, const char *machine_dir, struct emu_machine **m_out, char *err, size_t err_len)
{
    struct emu_machine *m;
    int r;

    m = calloc(1, sizeof(*m));
    if (!m) {
        if (err)
            snprintf(err, err_len, "out of memory");
        return -ENOMEM;
    }
    r = emu_machine_file_read(spec, machine_dir, &m->params, &m->topology, err, err_len);
    if (r < 0)
        goto err_free;
    r = m->topology->build(m);
    if (r < 0) {
        if (err)
            snprintf(err, err_len, "%s: cannot build the machine: %s", spec, strerror(-r));
        goto err_free;
    }
    *m_out = m;
    return 0;

err_free:
    free(m);
    return r;
}

void emu_machine_destroy(struct emu_machine *m)
{
    if (!m)
        return;
    m->topology->destroy(m);
    free(m);
}

const char *emu_machine_name(const struct emu_machine *m)
{
    return m->params.name;
}

const char *emu_machine_topology(const struct emu_machine *m)
{
    return m->topology->kind;
}

uint32_t emu_machine_n_nodes(const struct emu_machine *m)
{
    return m->n_nodes;
}

uint32_t emu_machine_n_routers(const struct emu_machine *m)
{
    return m->n_routers;
}

uint32_t emu_machine_n_links(const struct emu_machine *m)
{
    return m->n_links;
}

const struct emu_nic_params *emu_machine_nic(const struct emu_machine *m)
{
    return &m->params.nic;
}

const struct emu_router_params *emu_machine_router(const struct emu_machine *m)
{
    return &m->params.router;
}

int emu_machine_place(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    if (nid >= m->n_nodes)
        return -ERANGE;
    m->topology->place(m, nid, place_out);
    return 0;
}

int emu_machine_nid_at(const struct emu_machine *m, uint32_t group, uint32_t chassis, uint32_t blade, uint32_t node,
                       uint32_t *nid_out)
{
    const struct emu_place place = { .group = group, .chassis = chassis, .blade = blade, .node = node };

    return m->topology->nid_at(m, &place, nid_out);
}

int emu_machine_cname(const struct emu_machine *m, uint32_t nid, char *buf, size_t len)
{
    struct emu_place place;

    if (nid >= m->n_nodes)
        return -ERANGE;
    m->topology->place(m, nid, &place);
    return emu_text(buf, len, "c%u-%uc%us%un%u", place.cabinet_column, place.cabinet_row, place.cage, place.blade,
                    place.node);
}

int emu_machine_router_cname(const struct emu_machine *m, uint32_t router, char *buf, size_t len)
{
    struct emu_place place;

    if (router >= m->n_routers)
        return -ERANGE;
    m->topology->place(m, m->topology->first_nid(m, router), &place);
    return emu_text(buf, len, "c%u-%uc%us%u%s", place.cabinet_column, place.cabinet_row, place.cage, place.blade,
                    m->topology->chip(m, router));
}

int emu_machine_nid_of_cname(const struct emu_machine *m, const char *cname, uint32_t *nid_out)
{
    struct emu_place place = { 0 };
    const char *p = cname;

    if (!take_letter(&p, 'c') || !take_number(&p, &place.cabinet_column) || !take_letter(&p, '-') ||
        !take_number(&p, &place.cabinet_row) || !take_letter(&p, 'c') || !take_number(&p, &place.cage) ||
        !take_letter(&p, 's') || !take_number(&p, &place.blade) || !take_letter(&p, 'n') ||
        !take_number(&p, &place.node) || *p != '\0')
        return -EINVAL;
    return m->topology->nid_in_cabinet(m, &place, nid_out);
}

int emu_machine_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                            void *ctx)
{
    return m->topology->check_rules(m, note, ctx);
}
