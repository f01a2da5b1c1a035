/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports of servers and of experiments, as the command shows them to people: another program has written them.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "emunic/cli/server_report.h"
#include "emunic/experiments/runner.h"
#include "tests/fuzz/targets/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *report = json_loadb((const char *)data, size, 0, NULL);
    char *text = NULL;
    size_t length = 0;
    FILE *out;

    fuzz_count(json_is_object(report));
    if (report) {
        out = open_memstream(&text, &length);
        fuzz_require(out, "there is memory");
        (void)emu_cli_print_status(report, out);
        (void)emu_cli_print_paths(report, out);
        (void)emu_cli_print_links(report, out);
        (void)emu_exp_print(report, out);
        fclose(out);
        free(text);
    }
    json_decref(report);
    return 0;
}
