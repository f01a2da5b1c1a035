/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of machine files that no figure of a source feels, each held against the arithmetic that it comes from: KEY-XC
 * and the like, kind A. They prove nothing of a machine: a limit that no figure reaches, a buffer, a part of a time of
 * which the source has the sum, a choice of ours. They are here so that such a value cannot change unseen;
 * docs/generated/mutations.md tells for each key why there is nothing better.
 *
 * A formula is a sum of products: "a b / c + d" is a x b / c + d; after the '/' all factors of a product divide.
 */
#include "emunic/experiments/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/topology.h"

#define KEY(key, field)                                                                                                \
    {                                                                                                                  \
        key, EMU_PARAM_COUNT, offsetof(struct emu_machine_params, field), 0, 0, NULL                                   \
    }

/* Those of all machines; a topology has rows of its own. */
static const struct emu_param common[] = {
    KEY("links.crc_bits", router.crc_bits),
    KEY("router.packet_units_max", router.packet_units_max),
    KEY("router.fullest_percent", router.fullest_percent),
    KEY("router.response_first", router.response_first),
    KEY("router.load_period_clocks", router.load_period_clocks),
    KEY("nic.outstanding_packets", nic.outstanding_packets),
    KEY("nic.fma_descriptors", nic.fma_descriptors),
    KEY("nic.bte_channels", nic.bte_channels),
    KEY("nic.ce_engines", nic.ce_engines),
    KEY("nic.ce_children_max", nic.ce_children_max),
};

/* NAN: no such key. */
static double value_of(const struct emu_machine *m, const struct emu_param *rows, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t value;

        if (strcmp(rows[i].key, key) != 0)
            continue;
        memcpy(&value, (const char *)&m->params + rows[i].offset, sizeof(value));
        return rows[i].type == EMU_PARAM_MILLI ? value / 1e3 : value;
    }
    return NAN;
}

/* A factor: a number, or the value of a key. NAN: there is no such key. */
static double factor(const struct emu_machine *m, const char *word)
{
    char *end;
    double number = strtod(word, &end);

    if (*end == '\0')
        return number;
    if (strncmp(word, "host.", strlen("host.")) == 0)
        return emu_node_param_value(&m->params.host, word + strlen("host."));
    number = value_of(m, m->topology->params, m->topology->n_params, word);
    return isnan(number) ? value_of(m, common, sizeof(common) / sizeof(common[0]), word) : number;
}

static double evaluate(const struct emu_machine *m, const char *formula)
{
    char text[256];
    char *rest = text;
    double sum = 0;
    double product = 1;
    bool is_divisor = false;

    if (snprintf(text, sizeof(text), "%s", formula) >= (int)sizeof(text))
        return NAN;
    for (const char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "+") == 0) {
            sum += product;
            product = 1;
            is_divisor = false;
        } else if (strcmp(word, "/") == 0) {
            is_divisor = true;
        } else {
            product *= is_divisor ? 1 / factor(m, word) : factor(m, word);
        }
    }
    return sum + product;
}

/* Is the word in the list? */
static bool is_of(const char *machines, const char *machine)
{
    size_t length = strlen(machine);

    for (const char *at = machines; (at = strstr(at, machine)); at += length) {
        if ((at == machines || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    }
    return false;
}

int emu_values_report(struct emu_exp *x, const char *machine, const char *prefix)
{
    struct emu_machine *m;
    int r = emu_exp_machine(x, machine, &m);

    if (r < 0)
        return r;
    for (const struct emu_value *v = emu_values; v->name; v++) {
        char name[64];

        if (!is_of(v->machines, machine))
            continue;
        snprintf(name, sizeof(name), "%s%s", prefix, v->name);
        emu_exp_exact(x, 'A', name, v->unit, v->src, evaluate(m, v->formula));
    }
    emu_machine_destroy(m);
    return 0;
}
