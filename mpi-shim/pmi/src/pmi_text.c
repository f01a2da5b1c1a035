/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of keys and values, and copies into buffers of the caller. No state.
 */
#include "mpi-shim/pmi/src/pmi_text.h"

#include "mpi-shim/pmi/src/kvs.h"
#include "mpi-shim/pmi/src/nidmap.h"

#include <pmi.h>
#include <stdlib.h>
#include <string.h>

int pmii_check_key(const char *key)
{
    if (!key)
        return PMI_ERR_INVALID_ARG;
    if (*key == '\0')
        return PMI_ERR_INVALID_KEY;
    return strlen(key) < PMII_KEY_ROOM ? PMI_SUCCESS : PMI_ERR_INVALID_KEY_LENGTH;
}

int pmii_check_value(const char *value)
{
    if (!value)
        return PMI_ERR_INVALID_ARG;
    return strlen(value) < PMII_VALUE_ROOM ? PMI_SUCCESS : PMI_ERR_INVALID_VAL_LENGTH;
}

int pmii_copy_text(const char *text, char *out, int room)
{
    size_t n = strlen(text) + 1;

    if (room < 0 || n > (size_t)room)
        return PMI_ERR_INVALID_LENGTH;
    memcpy(out, text, n);
    return PMI_SUCCESS;
}

int pmii_text_to_ints(const char *text, int *out, int room)
{
    int *numbers;
    int n;

    if (strchr(text, ' ') || pmii_counts_parse(text, &numbers, &n) < 0)
        return -1;
    for (int i = 0; i < n && i < room; i++)
        out[i] = numbers[i];
    free(numbers);
    return n;
}
