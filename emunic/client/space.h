/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that peers can map: pages of the process's space file (abi.h), either allocated there or adopted, which means
 * that ordinary private pages are moved there while they keep address and content.
 */
#ifndef EMUNIC_CLIENT_SPACE_H
#define EMUNIC_CLIENT_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct emu_maps;
struct emu_port;

/*
 * Are all pages of [addr, addr + len) in the space file? With may_adopt, private anonymous pages are moved there first
 * where that is safe; what is not stays as it is. Any thread; one range at a time per process.
 */
bool emu_space_cover(struct emu_port *port, uint64_t addr, uint64_t len_bytes, bool may_adopt);
/* The same by maps that the caller keeps open, as emu_maps_open_by(): four system calls fewer where pages move. */
bool emu_space_cover_by(struct emu_port *port, const struct emu_maps *kept, uint64_t addr, uint64_t len_bytes,
                        bool may_adopt);

/* File number of the space that the port uses; 0: none yet. Tells its pages in /proc/self/maps. */
uint64_t emu_space_ino(struct emu_port *port);

/* The port lets go of the space. */
void emu_space_put(struct emu_port *port);

#endif
