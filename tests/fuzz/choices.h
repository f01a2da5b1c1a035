/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a hostile process chooses, from one seed. A process has one generator.
 */
#ifndef TESTS_FUZZ_CHOICES_H
#define TESTS_FUZZ_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

void choices_begin(uint64_t seed);
uint64_t next_random(void);
uint64_t below(uint64_t bound);
/* True once in n times. */
bool one_in(unsigned n);
void fill_random(void *place, uint64_t len_bytes);
/* A number that somebody may have forgotten to check. */
uint64_t odd_number(void);
/* n single bits, anywhere in it. */
void flip_bits(void *place, uint64_t len_bytes, unsigned n);

#endif
