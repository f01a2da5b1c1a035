/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target with a loop that does not end. It shows that an input has a limit of processor time, and that an input which
 * passes it is a finding.
 */
#include "tests/fuzz/targets/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (volatile size_t i = 0; size > 0 && data[0] == 'l'; i++)
        continue;
    return 0;
}
