/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault schedules as people write them: YAML files for `--faults` and `emunic fault load`, KEY=VALUE words for `fault
 * add`.
 */
#ifndef EMUNIC_CLI_FAULT_FILE_H
#define EMUNIC_CLI_FAULT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/fault.h"

/* A change of the network at some time of a schedule. */
struct emu_network_event {
    uint64_t at_ns; /* since the schedule was set */
    bool is_repair;
    char what[160]; /* for emu_network_words_read() */
};

#define EMU_NETWORK_EVENTS_MAX 256u

struct emu_fault_schedule {
    struct emu_fault_rule *rules; /* owned; NULL: none */
    uint32_t n_rules;
    struct emu_network_event *events; /* owned; NULL: none */
    uint32_t n_events;
};

/* A file's schedule; the caller frees it. 0, or negative errno and a line in `err` that names file, line and column. */
int emu_fault_file_read(const char *path, struct emu_fault_schedule *schedule_out, char *err, size_t err_len);

void emu_fault_schedule_free(struct emu_fault_schedule *schedule);

/* One rule from words like "class=smsg". 0, or -EINVAL and a line in `err`. */
int emu_fault_words_read(char *const *words, unsigned n_words, struct emu_fault_rule *rule_out, char *err,
                         size_t err_len);

#endif
