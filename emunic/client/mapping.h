/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the program itself has mapped shared: finding the file behind it, so that peers can map it too.
 */
#ifndef EMUNIC_CLIENT_MAPPING_H
#define EMUNIC_CLIENT_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

struct emu_mapping {
    int fd;               /* owned by the caller; a file description of its own, that nobody else has */
    uint64_t file_offset; /* of the page that the range begins in */
};

/*
 * The file that all pages of [addr, addr + len) are shared mappings of, open for reading, or with is_writable for
 * reading and writing. -ENOENT: the memory is nothing of the kind; -EACCES: the file cannot be opened again. Any
 * thread.
 */
int emu_mapping_find(uint64_t addr, uint64_t len_bytes, bool is_writable, struct emu_mapping *mapping_out);

#endif
