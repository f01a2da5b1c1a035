/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target with a fault in it: it believes the length that a message tells. It shows that a finding is found and told.
 */
#include "emunic/abi/host_datagram.h"
#include "tests/fuzz/targets/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct emu_host_datagram d;

    if (size < 1 + EMU_HOST_DATAGRAM_BYTES || data[0] % 2)
        return 0;
    if (emu_fields_parse(data + 1 + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_datagram_fields), &d))
        fuzz_read(data + 1 + EMU_HOST_DATAGRAM_BYTES, d.bytes);
    return 0;
}
