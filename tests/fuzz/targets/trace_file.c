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
    struct emu_messages trace;
    char err[400];
    int r;

    if (!m)
        fuzz_require(emu_machine_load("seastar", EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)) == 0, "a machine");
    memset(err, 'x', sizeof(err));
    r = emu_trace_read(fuzz_file(data, size), m, &trace, err, sizeof(err));
    fuzz_count(r == 0);
    if (r < 0) {
        fuzz_require_line(err, sizeof(err));
        return 0;
    }
    fuzz_require(trace.n > 0, "a trace has a message");
    for (size_t i = 0; i < trace.n; i++) {
        const struct emu_message *message = &trace.list[i];

        fuzz_require(message->src_nid < emu_machine_n_nodes(m) && message->dst_nid < emu_machine_n_nodes(m),
                     "a message is between nodes that are there");
        for (uint32_t k = 0; k < message->n_after; k++) {
            uint32_t before = trace.after[message->first_after + k];

            fuzz_require(before < i && trace.list[before].dst_nid == message->src_nid,
                         "a message waits for earlier ones that arrive at its source");
        }
    }
    emu_messages_fini(&trace);
    return 0;
}
