/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts files of emunics that are started by hand, and lists of hosts of mpirun.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/cli/host_list.h"
#include "emunic/cli/hosts_file.h"
#include "tests/fuzz/targets/target.h"

#define DEALT 16u

static void read_hosts_file(const uint8_t *data, size_t size)
{
    struct emu_hosts_file file;
    char err[400];
    int r;

    memset(err, 'x', sizeof(err));
    r = emu_hosts_file_read(fuzz_file(data, size), &file, err, sizeof(err));
    fuzz_count(r == 0);
    if (r < 0)
        fuzz_require_line(err, sizeof(err));
    for (uint32_t i = 0; r == 0 && i < file.n; i++) {
        fuzz_require(strlen(file.names[i]) < EMU_HOSTS_FILE_WORD_MAX, "a name ends");
        fuzz_require(strlen(file.addresses[i]) < EMU_HOSTS_FILE_WORD_MAX, "an address ends");
        fuzz_require(atoi(file.ports[i]) > 0 && atoi(file.ports[i]) < 65536, "a port is one");
    }
    emu_hosts_file_free(&file);
}

static void read_list(const uint8_t *data, size_t size)
{
    struct emu_cli_hosts hosts = { .n = 0 };
    uint32_t rank_hosts[DEALT];
    char err[400];
    char *text = NULL;
    FILE *lines;
    int r;

    /* Of the first host the list asks whether it is this one; no name of the input is looked up. */
    fuzz_require(asprintf(&text, "localhost\n%.*s", (int)size, (const char *)data) > 0, "there is memory");
    lines = fmemopen(text, strlen(text), "r");
    fuzz_require(lines, "there is memory");
    memset(err, 'x', sizeof(err));
    r = emu_cli_hosts_read_lines(lines, &hosts, err, sizeof(err));
    fclose(lines);
    free(text);
    if (r < 0)
        fuzz_require_line(err, sizeof(err));
    if (r == 0 && hosts.n > 0) {
        (void)emu_cli_hosts_slots(&hosts);
        memset(err, 'x', sizeof(err));
        if (emu_cli_hosts_deal(&hosts, DEALT, 2, rank_hosts, err, sizeof(err)) < 0)
            fuzz_require_line(err, sizeof(err));
        else
            fuzz_require(rank_hosts[DEALT - 1] < hosts.n, "ranks are on hosts that are there");
    }
    emu_cli_hosts_free(&hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_hosts_file(data, size);
    read_list(data, size);
    return 0;
}
