/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's parameters: their rows in the machine file, and their values by key. Both come from the table in
 * node_params.h.
 */
#include "emunic/fabric/node_params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emunic/fabric/topology.h"

static const char *const rendezvous_choices[] = { "get", "put", "never", NULL };
static const char *const registration_choices[] = { "hit", "miss", NULL };

#define MILLI                 EMU_PARAM_MILLI
#define MILLI_OR_NONE         EMU_PARAM_MILLI_OR_NONE
#define COUNT                 EMU_PARAM_COUNT
#define RENDEZVOUS            EMU_PARAM_CHOICE
#define REGISTRATION          EMU_PARAM_CHOICE
#define CHOICES_MILLI         NULL
#define CHOICES_MILLI_OR_NONE NULL
#define CHOICES_COUNT         NULL
#define CHOICES_RENDEZVOUS    rendezvous_choices
#define CHOICES_REGISTRATION  registration_choices
#define ROW(field, key, type, min, max, meaning)                                                                       \
    { "host." key, type, offsetof(struct emu_machine_params, host.field), min, max, CHOICES_##type },

const struct emu_param emu_node_param_rows[] = { EMU_NODE_PARAMS(ROW) };
const size_t emu_node_param_n_rows = sizeof(emu_node_param_rows) / sizeof(emu_node_param_rows[0]);

const struct emu_node_params *emu_machine_node_params(const struct emu_machine *m)
{
    return m->params.has_host ? &m->params.host : NULL;
}

static uint32_t raw_value(const struct emu_node_params *params, const struct emu_param *row)
{
    uint32_t value;

    memcpy(&value, (const char *)params + (row->offset - offsetof(struct emu_machine_params, host)), sizeof(value));
    return value;
}

static double value_of(const struct emu_param *row, uint32_t raw)
{
    if (row->type == EMU_PARAM_MILLI_OR_NONE && raw == EMU_PARAM_NONE)
        return 0;
    return raw / (row->type == EMU_PARAM_MILLI || row->type == EMU_PARAM_MILLI_OR_NONE ? 1000.0 : 1.0);
}

double emu_node_param_value(const struct emu_node_params *params, const char *key)
{
    for (size_t i = 0; i < emu_node_param_n_rows; i++) {
        const struct emu_param *row = &emu_node_param_rows[i];

        if (strcmp(row->key + strlen("host."), key) == 0)
            return value_of(row, raw_value(params, row));
    }
    return NAN;
}
