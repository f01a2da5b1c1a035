/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings of files that others can shorten. Touching a page that the file no longer has raises SIGBUS; here that
 * becomes a mark which whoever copies looks at afterwards.
 */
#ifndef EMUNIC_BASE_BUS_ERROR_H
#define EMUNIC_BASE_BUS_ERROR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct emu_bus_error_range;

/*
 * Watches a mapping from now on. Installs the handler if it is not the process's handler now. NULL: too many mappings
 * are watched. Any thread.
 */
struct emu_bus_error_range *emu_bus_error_watch(void *base, uint64_t len_bytes, uint64_t page_bytes);
/* To be called before the mapping goes. NULL is fine. */
void emu_bus_error_unwatch(struct emu_bus_error_range *range);

/* The mapping shows the file again. */
void emu_bus_error_clear(struct emu_bus_error_range *range);

/*
 * Not zero once a page was missing: from then on the range shows other memory, what was read from it is zeroes and what
 * was written to it is lost. Written by a handler on the thread that touched the page. Valid until
 * emu_bus_error_unwatch().
 */
_Atomic uint32_t *emu_bus_error_mark(struct emu_bus_error_range *range);

#endif
