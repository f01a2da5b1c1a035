/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Diagnostics. Silent unless EMUNIC_LOG names a level; then every line of that level and the graver ones goes
 * to stderr in one write, so that lines of different ranks do not mix. Any thread.
 */
#include "mpi-shim/pmi/src/pmi_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wanted_level(void)
{
    static const char *const names[] = { "error", "warn", "info", "debug", "trace" };
    const char *text = getenv("EMUNIC_LOG");

    if (!text)
        return 0;
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
        if (strcmp(text, names[i]) == 0)
            return i + 1;
    }
    return 0;
}

void pmii_log(enum pmii_level level, const char *format, ...)
{
    char line[512];
    va_list args;
    int n, m;

    if ((int)level > wanted_level())
        return;
    n = snprintf(line, sizeof(line), "pmi: ");
    va_start(args, format);
    m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
    va_end(args);
    if (m < 0)
        return;
    n += m;
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nobody left to tell */
}
