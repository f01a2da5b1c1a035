/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zeroed pages straight from the kernel, for the large parts of objects: untouched ones cost nothing, and the program's
 * heap does not grow. Some programs (libfabric's tests) compare their program break around calls. Any thread.
 */
#ifndef EMUNIC_ENGINE_PAGES_H
#define EMUNIC_ENGINE_PAGES_H

#include <stddef.h>

/* NULL: no memory. */
void *emu_pages_take(size_t bytes);
/* What emu_pages_take(bytes) gave; NULL is fine. */
void emu_pages_give(void *pages, size_t bytes);

#endif
