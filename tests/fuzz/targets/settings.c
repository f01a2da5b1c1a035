/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment: each line of the input is a variable.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/log.h"
#include "emunic/base/settings.h"
#include "tests/fuzz/targets/target.h"

#define LINES_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *entries[LINES_MAX + 1];
    char **own = environ;
    char *text = malloc(size + 1);
    struct emu_settings settings;
    uint64_t number;
    unsigned n = 0;

    memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = strtok(text, "\n"); line && n < LINES_MAX; line = strtok(NULL, "\n"))
        entries[n++] = line;
    entries[n] = NULL;
    environ = entries;
    emu_settings_read(&settings);
    for (size_t i = 0; emu_setting_at(i); i++) {
        const struct emu_setting *row = emu_setting_at(i);

        if (!row->is_number || !getenv(row->variable))
            continue;
        if (emu_setting_number(row, &number)) {
            fuzz_require(number >= row->min && number <= row->max, "a number is in bounds");
            fuzz_count(true);
        } else {
            fuzz_count(false);
        }
    }
    emu_log_init("fuzz", EMU_LOG_NONE);
    environ = own;
    free(text);
    return 0;
}
