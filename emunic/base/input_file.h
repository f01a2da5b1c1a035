/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files whose names come from outside: a pipe or a device must not make us wait, nor a large file read for ever.
 */
#ifndef EMUNIC_BASE_INPUT_FILE_H
#define EMUNIC_BASE_INPUT_FILE_H

#include <stdint.h>
#include <stdio.h>

/*
 * Opens a regular file of at most max_bytes for reading. 0; -EINVAL: something else than a regular file; -EFBIG: more
 * bytes; or another negative errno.
 */
int emu_input_file_open(const char *path, uint64_t max_bytes, FILE **file_out);

/* The error of emu_input_file_open() in words. */
const char *emu_input_file_reason(int error);

#endif
