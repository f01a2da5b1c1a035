/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libp3lib, libp3utcp and libp3rt hold nothing: programs name them on the link line, and libp3api has it all
 * (spec/portals3.md 0.2).
 */
extern const char p3_is_in_libp3api;
__attribute__((visibility("hidden"))) const char p3_is_in_libp3api = 1;
