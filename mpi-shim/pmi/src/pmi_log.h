/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_LOG_H
#define PMI_SRC_LOG_H

/* One line on stderr when EMUNIC_LOG asks for the level (error, warn, info, debug, trace); silent by default. */
enum pmii_level { PMII_ERROR = 1, PMII_WARN, PMII_INFO, PMII_DEBUG };

void pmii_log(enum pmii_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
