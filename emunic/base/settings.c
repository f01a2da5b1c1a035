/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the environment by the rows of settings.h and notices misspelt names.
 */
#include "emunic/base/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/log.h"
#include "emunic/base/nearest.h"
#include "emunic/base/number.h"

#define NAME_MAX_LEN 40
#define FAR          4 /* letters; more are another word */

static const char *const known_names[] = {
#define NUMBER_NAME(field, variable, fallback, min, max, unit, meaning) variable,
    EMU_SETTINGS(NUMBER_NAME)
#undef NUMBER_NAME
#define TEXT_NAME(variable, meaning) variable,
        EMU_TEXT_SETTINGS(TEXT_NAME)
#undef TEXT_NAME
};

static void check_name(const char *name)
{
    struct emu_nearest nearest = emu_nearest_to(name, FAR);

    for (size_t i = 0; i < sizeof(known_names) / sizeof(known_names[0]); i++) {
        if (strcmp(name, known_names[i]) == 0)
            return;
        emu_nearest_offer(&nearest, known_names[i], known_names[i]);
    }
    if (nearest.answer)
        emu_log(EMU_LOG_WARN, "unknown variable %s; did you mean %s?", name, nearest.answer);
    else
        emu_log(EMU_LOG_WARN, "unknown variable %s", name);
}

static uint64_t read_number(const char *variable, uint64_t fallback, uint64_t min, uint64_t max, const char *unit)
{
    const char *text = getenv(variable);
    uint64_t value;

    if (!text)
        return fallback;
    if (!emu_parse_number(text, 0, min, max, &value)) {
        emu_log(EMU_LOG_WARN, "%s: '%s' is not a number from %llu to %llu %s; using %llu", variable, text,
                (unsigned long long)min, (unsigned long long)max, unit, (unsigned long long)fallback);
        return fallback;
    }
    return value;
}

void emu_settings_read(struct emu_settings *settings_out)
{
#define READ_NUMBER(field, variable, fallback, min, max, unit, meaning)                                                \
    settings_out->field = read_number(variable, fallback, min, max, unit);
    EMU_SETTINGS(READ_NUMBER)
#undef READ_NUMBER

    for (char **entry = environ; entry && *entry; entry++) {
        char name[NAME_MAX_LEN + 1];
        size_t len = strcspn(*entry, "=");

        if (strncmp(*entry, "EMUNIC_", 7) != 0)
            continue;
        if (len > NAME_MAX_LEN) { /* longer than any that we know */
            emu_log(EMU_LOG_WARN, "unknown variable %.*s...", NAME_MAX_LEN, *entry);
            continue;
        }
        memcpy(name, *entry, len);
        name[len] = '\0';
        check_name(name);
    }
}
