/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host parameters: their rows in the machine file, and printing them. Everything comes from the table in host.h.
 */
#include "emunic/fabric/host.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emunic/fabric/topology.h"

static const char *const rendezvous_choices[] = { "get", "put", NULL };

#define MILLI  EMU_PARAM_MILLI
#define COUNT  EMU_PARAM_COUNT
#define CHOICE EMU_PARAM_CHOICE
#define ROW(field, key, type, min, max, meaning)                                                                       \
    { "host." key, type, offsetof(struct emu_machine_params, host.field),                                              \
      min,         max,  type == EMU_PARAM_CHOICE ? rendezvous_choices : NULL },

const struct emu_param emu_host_rows[] = { EMU_HOST_PARAMS(ROW) };
const size_t emu_host_n_rows = sizeof(emu_host_rows) / sizeof(emu_host_rows[0]);

const struct emu_host_params *emu_machine_host(const struct emu_machine *m)
{
    return m->params.has_host ? &m->params.host : NULL;
}

static uint32_t raw_value(const struct emu_host_params *params, const struct emu_param *row)
{
    uint32_t value;

    memcpy(&value, (const char *)params + (row->offset - offsetof(struct emu_machine_params, host)), sizeof(value));
    return value;
}

int emu_host_param(const struct emu_host_params *params, const char *key, double *value_out)
{
    for (size_t i = 0; i < emu_host_n_rows; i++) {
        const struct emu_param *row = &emu_host_rows[i];

        if (strcmp(row->key + strlen("host."), key) == 0) {
            *value_out = raw_value(params, row) / (row->type == EMU_PARAM_MILLI ? 1000.0 : 1.0);
            return 0;
        }
    }
    return -EINVAL;
}

double emu_host_value(const struct emu_host_params *params, const char *key)
{
    double value = NAN;

    (void)emu_host_param(params, key, &value);
    return value;
}
