/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmi2.so.0: the name under which PMI-2 programs load what is in libpmi.so.0.
 *
 * It is a filter (DT_FILTER): its symbols tell the linker what is there, and the dynamic linker of glibc finds each of
 * them in libpmi.so.0, which it loads first. So the two names mean one library with one state, however a process comes
 * to them. The only code of this one is what all symbols stand for where a dynamic linker knows no filters.
 */
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) void pmii_filtered(void);
void pmii_filtered(void)
{
    fputs("libpmi2.so.0: the dynamic linker knows no filters; link with -lpmi instead of -lpmi2\n", stderr);
    abort();
}
