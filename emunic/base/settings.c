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

static const struct emu_setting settings[] = {
#define NUMBER_ROW(field, name, fallback, smallest, largest, unit_name, sentence)                                      \
    { .variable = name,                                                                                                \
      .is_number = true,                                                                                               \
      .number = fallback,                                                                                              \
      .min = smallest,                                                                                                 \
      .max = largest,                                                                                                  \
      .unit = unit_name,                                                                                               \
      .meaning = sentence },
#define TEXT_ROW(name, who, fallback, sentence)                                                                        \
    { .variable = name, .setter = EMU_SETTER_##who, .text = fallback, .meaning = sentence },
    EMU_SETTINGS(NUMBER_ROW, TEXT_ROW)
#undef NUMBER_ROW
#undef TEXT_ROW
};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

const struct emu_setting *emu_setting_at(size_t i)
{
    return i < N_SETTINGS ? &settings[i] : NULL;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (strcmp(name, settings[i].variable) == 0)
            return true;
    }
    return false;
}

static void warn_of_unknown(const char *name)
{
    struct emu_nearest nearest = emu_nearest_to(name, FAR);

    for (size_t i = 0; i < N_SETTINGS; i++)
        emu_nearest_offer(&nearest, settings[i].variable, settings[i].variable);
    if (nearest.answer)
        emu_log(EMU_LOG_WARN, "unknown variable %s; did you mean %s?", name, nearest.answer);
    else
        emu_log(EMU_LOG_WARN, "unknown variable %s", name);
}

bool emu_setting_number(const struct emu_setting *setting, uint64_t *number_out)
{
    const char *text = getenv(setting->variable);

    return text && emu_parse_number(text, 0, setting->min, setting->max, number_out);
}

static uint64_t read_number(const struct emu_setting *setting)
{
    const char *text = getenv(setting->variable);
    uint64_t value = setting->number;

    if (text && !emu_setting_number(setting, &value))
        emu_log(EMU_LOG_WARN, "%s: '%s' is not a number from %llu to %llu %s; using %llu", setting->variable, text,
                (unsigned long long)setting->min, (unsigned long long)setting->max, setting->unit,
                (unsigned long long)setting->number);
    return value;
}

bool emu_setting_is(const char *variable, const char *value)
{
    const char *text = getenv(variable);

    return text && strcmp(text, value) == 0;
}

void emu_settings_read(struct emu_settings *settings_out)
{
    const struct emu_setting *row = settings; /* numbers are the first rows, in the order of the fields */

#define READ_NUMBER(field, variable, fallback, min, max, unit, meaning) settings_out->field = read_number(row++);
    EMU_SETTINGS(READ_NUMBER, EMU_SETTING_NO_TEXT)
#undef READ_NUMBER
    if (emu_setting_is("EMUNIC_MEMORY", "adopt"))
        settings_out->adopt_limit_bytes = UINT64_MAX;

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
        if (!is_known(name))
            warn_of_unknown(name);
    }
}
