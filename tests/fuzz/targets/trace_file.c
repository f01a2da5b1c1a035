/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces of messages, for `emunic sim`.
 */
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "emunic/fabric/machine.h"
#include "tests/fuzz/targets/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct emu_machine *m;
    struct emu_message *messages = NULL;
    size_t n = 0;
    char err[400];
    int r;

    if (!m)
        fuzz_require(emu_machine_load("seastar", EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)) == 0, "a machine");
    memset(err, 'x', sizeof(err));
    r = emu_trace_read(fuzz_file(data, size), m, &messages, &n, err, sizeof(err));
    fuzz_count(r == 0);
    if (r < 0) {
        fuzz_require_line(err, sizeof(err));
        return 0;
    }
    fuzz_require(n > 0, "a trace has a message");
    for (size_t i = 0; i < n; i++)
        fuzz_require(messages[i].src_nid < emu_machine_n_nodes(m) && messages[i].dst_nid < emu_machine_n_nodes(m),
                     "a message is between nodes that are there");
    free(messages);
    return 0;
}
