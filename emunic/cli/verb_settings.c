/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic settings`: the table of EMUNIC_* variables with the values that this environment gives them.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/settings.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/text_table.h"

#define SCHEMA 1

struct request {
    bool is_json;
};

static const struct emu_option options[] = {
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"settings\": [...]}",
      EMU_OPTION_SET(struct request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "settings",
    .usage = "emunic settings [--json]",
    .about =
        "Show each EMUNIC_* variable of the environment with its value, default, origin and meaning. A value that\n"
        "is refused, and a name that nobody knows, draw a warning.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic settings | grep environment\n",
};

/* What a setting is at the moment. */
struct value {
    bool is_given; /* by the environment */
    uint64_t number;
    const char *text; /* "": none */
};

static struct value value_of(const struct emu_setting *setting)
{
    struct value value = { .number = setting->number, .text = setting->text };
    const char *text = getenv(setting->variable);

    if (setting->is_number)
        value.is_given = emu_setting_number(setting, &value.number);
    else if (text && *text)
        value = (struct value){ .is_given = true, .text = text };
    return value;
}

static const char *origin_of(const struct value *value)
{
    return value->is_given ? "environment" : "default";
}

static const char *setter_of(const struct emu_setting *setting)
{
    return setting->setter == EMU_SETTER_USER ? "user" : "launcher";
}

/* ---- table ---- */

static void put(struct emu_cli_table *table, const struct emu_setting *setting, uint64_t number, const char *text)
{
    if (setting->is_number)
        emu_cli_table_number(table, number);
    else
        emu_cli_table_text(table, *text ? text : "-");
}

static int print_table(void)
{
    static const struct emu_cli_column columns[] = {
        { "VARIABLE", false }, { "VALUE", false },  { "DEFAULT", false }, { "UNIT", false },
        { "ORIGIN", false },   { "SET_BY", false }, { "MEANING", false },
    };
    const struct emu_setting *setting;
    struct emu_cli_table table;
    int r;

    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; (setting = emu_setting_at(i)); i++) {
        struct value value = value_of(setting);

        emu_cli_table_text(&table, setting->variable);
        put(&table, setting, value.number, value.text);
        put(&table, setting, setting->number, setting->text);
        emu_cli_table_text(&table, setting->unit ? setting->unit : "-");
        emu_cli_table_text(&table, origin_of(&value));
        emu_cli_table_text(&table, setter_of(setting));
        emu_cli_table_text(&table, setting->meaning);
    }
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    if (r == 0 && fflush(stdout) == EOF)
        r = -errno;
    return r < 0 ? emu_cli_fail("settings", "cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

/* ---- JSON ---- */

static json_t *describe_number(const struct emu_setting *setting, const struct value *value)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:s}", "name", setting->variable, "type", "number", "value",
                     (json_int_t)value->number, "default", (json_int_t)setting->number, "min", (json_int_t)setting->min,
                     "max", (json_int_t)setting->max, "unit", setting->unit);
}

/* null: there is none; a text that is not UTF-8 is none, either. */
static json_t *text_or_null(const char *text)
{
    json_t *string = *text ? json_string(text) : NULL;

    return string ? string : json_null();
}

static json_t *describe_text(const struct emu_setting *setting, const struct value *value)
{
    return json_pack("{s:s, s:s, s:o, s:o}", "name", setting->variable, "type", "text", "value",
                     text_or_null(value->text), "default", text_or_null(setting->text));
}

static int print_json(void)
{
    const struct emu_setting *setting;
    json_t *rows = json_array();
    json_t *answer;
    int status;

    for (size_t i = 0; (setting = emu_setting_at(i)); i++) {
        struct value value = value_of(setting);
        json_t *row = setting->is_number ? describe_number(setting, &value) : describe_text(setting, &value);

        json_object_set_new(row, "origin", json_string(origin_of(&value)));
        json_object_set_new(row, "set_by", json_string(setter_of(setting)));
        json_object_set_new(row, "meaning", json_string(setting->meaning));
        json_array_append_new(rows, row);
    }
    answer = json_pack("{s:i, s:o}", "schema", SCHEMA, "settings", rows);
    status = answer ? emu_cli_print_json("settings", answer, stdout) : emu_cli_fail("settings", "out of memory");
    json_decref(answer);
    return status;
}

int emu_verb_settings(int argc, char **argv)
{
    struct request request = { 0 };
    struct emu_settings ignored;
    int status = emu_options_parse(&command, argc, argv, &request, NULL);

    if (status != EMU_PROCEED)
        return status;
    emu_settings_read(&ignored); /* warns of what is wrong */
    return request.is_json ? print_json() : print_table();
}
