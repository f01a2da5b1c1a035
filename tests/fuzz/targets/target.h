/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What targets of libFuzzer share. A target is one file NAME.c with LLVMFuzzerTestOneInput() over the true parser; its
 * seeds are in ../corpus/NAME or come from seeds.c. It says of each input whether that was taken or refused: a run in
 * which nothing was taken, or nothing refused, has not reached the parser (run_target.py).
 */
#ifndef TESTS_FUZZ_TARGETS_TARGET_H
#define TESTS_FUZZ_TARGETS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Something that the parser took or refused; the counts are printed at the end. */
void fuzz_count(bool is_taken);
/* Ends the program as a finding. */
void fuzz_require(bool is_so, const char *what);
/* A file with these bytes: its path, until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* The text that a refusal has left in `size` bytes ends, and is one line. */
void fuzz_require_line(const char *text, size_t size);
/* Reads all of some bytes, so that a sanitizer sees those that are not there. */
void fuzz_read(const void *bytes, size_t n);

/* The rest of an input. What is not there is zero. */
struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};

void fuzz_take(struct fuzz_bytes *bytes, void *to, size_t n);
uint8_t fuzz_u8(struct fuzz_bytes *bytes);
uint16_t fuzz_u16(struct fuzz_bytes *bytes);
uint32_t fuzz_u32(struct fuzz_bytes *bytes);
uint64_t fuzz_u64(struct fuzz_bytes *bytes);

#endif
