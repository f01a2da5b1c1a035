/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test programs of DMAPP. Every PE of a launched job runs the same program and goes through its tests in step; PE 0
 * prints the TAP. An assertion that fails in any PE ends that PE, and with it the job, after its message on stderr.
 * Public headers only.
 */
#ifndef TESTS_COMMON_DMAPP_H
#define TESTS_COMMON_DMAPP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dmapp.h>

#include "tests/common/rows.h"
#include "tests/common/seed.h"

/* Filled while tests run. */
extern dmapp_jobinfo_t dx_job;

/* All PEs; not by DMAPP, so that what is tested does not test itself. */
void dx_barrier(void);

/* A block of the symmetric heap, zeroed in every PE. Freed with dx_free(); both are collective. */
void *dx_alloc(size_t bytes);
void dx_free(void *block);

/* 64-bit words of a PE, as its own DMAPP calls see them. */
uint64_t dx_get_word(void *at, dmapp_seg_desc_t *seg, dmapp_pe_t pe);
void dx_put_word(void *at, dmapp_seg_desc_t *seg, dmapp_pe_t pe, uint64_t value);

/* Initialises with these attributes (NULL: defaults), runs the tests, finalises. For main(). */
int dx_run_group(const char *name, const struct CMUnitTest *tests, size_t n_tests, dmapp_rma_attrs_ext_t *attrs);
#define dx_run(tests, attrs) dx_run_group(#tests, tests, sizeof(tests) / sizeof((tests)[0]), attrs)

#endif
