/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault schedules as files and as words, and the parts of the network that they name.
 */
#include <stdlib.h>
#include <string.h>

#include "emunic/cli/fault_file.h"
#include "emunic/cli/network_words.h"
#include "tests/fuzz/targets/target.h"

#define WORDS_MAX 32u

static const struct emu_machine *machine(void)
{
    static struct emu_machine *m;
    char err[400];

    if (!m)
        fuzz_require(emu_machine_load("aries:groups=1", EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)) == 0, "a machine");
    return m;
}

static void read_file(const uint8_t *data, size_t size)
{
    struct emu_fault_schedule schedule = { .n_rules = 0 };
    struct emu_msg_network *changes = NULL;
    char err[400];
    int r;

    memset(err, 'x', sizeof(err));
    r = emu_fault_file_read(fuzz_file(data, size), &schedule, err, sizeof(err));
    fuzz_count(r == 0);
    if (r < 0) {
        fuzz_require_line(err, sizeof(err));
        return;
    }
    fuzz_read(schedule.rules, schedule.n_rules * sizeof(schedule.rules[0]));
    memset(err, 'x', sizeof(err));
    if (emu_network_events_read(machine(), &schedule, &changes, err, sizeof(err)) < 0)
        fuzz_require_line(err, sizeof(err));
    else
        fuzz_read(changes, schedule.n_events * sizeof(*changes));
    free(changes);
    emu_fault_schedule_free(&schedule);
}

/* Lines that begin with a dot are words of `fault add`, and of a part of the network. */
static void read_words(char *text)
{
    char *words[WORDS_MAX];
    unsigned n = 0;
    struct emu_fault_rule rule;
    struct emu_msg_network change;
    char err[400];
    char *copy = strdup(text);

    memset(err, 'x', sizeof(err));
    if (emu_network_words_read(machine(), text, false, &change, err, sizeof(err)) < 0)
        fuzz_require_line(err, sizeof(err));
    for (char *word = strtok(copy, " \n"); word && n < WORDS_MAX; word = strtok(NULL, " \n"))
        words[n++] = word;
    memset(err, 'x', sizeof(err));
    if (n > 0 && emu_fault_words_read(words, n, &rule, err, sizeof(err)) < 0)
        fuzz_require_line(err, sizeof(err));
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0 || data[0] != '.') {
        read_file(data, size);
        return 0;
    }
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    read_words(text);
    free(text);
    return 0;
}
