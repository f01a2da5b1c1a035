/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault schedules as people write them: YAML files for `--faults` and `emunic fault load`, KEY=VALUE words for `fault add`.
 */
#ifndef EMUNIC_CLI_FAULT_FILE_H
#define EMUNIC_CLI_FAULT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/fault.h"

/* Rules of a file; the caller frees them. 0, or negative errno and a line in `err` that names file, line and column. */
int emu_fault_file_read(const char *path, struct emu_fault_rule **rules_out, uint32_t *n_rules_out, char *err,
                        size_t err_len);

/* One rule from words like "class=smsg". 0, or -EINVAL and a line in `err`. */
int emu_fault_words_read(char *const *words, unsigned n_words, struct emu_fault_rule *rule_out, char *err,
                         size_t err_len);

#endif
