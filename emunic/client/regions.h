/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a process that others reach through windows, found again by address: registrations of whole ranges, made
 * once and used by many short-lived descriptors. One thread at a time per object.
 */
#ifndef EMUNIC_CLIENT_REGIONS_H
#define EMUNIC_CLIENT_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

struct emu_maps;
struct emu_port;

#define EMU_REGIONS_MAX      32u
#define EMU_REGIONS_KEPT_MAX 4u

struct emu_region {
    uint64_t first;
    uint64_t end;
    uint16_t mdh; /* memory domain of the port */
    uint16_t generation;
};

struct emu_regions {
    struct emu_port *port; /* borrowed */
    struct emu_region list[EMU_REGIONS_MAX];
    uint32_t n;
    uint64_t kept[EMU_REGIONS_KEPT_MAX][2]; /* whole pages */
    uint32_t n_kept;
    uint32_t n_refused; /* ranges that could not be adopted, lately */
    uint64_t refused[8][2];
    uint64_t ino;          /* of the space file; 0 not known yet */
    struct emu_maps *maps; /* owned: kept open; NULL: the kernel cannot tell single mappings */
    bool is_off;
};

void emu_regions_init(struct emu_regions *regions, struct emu_port *port);
void emu_regions_fini(struct emu_regions *regions);

/*
 * The caller promises that these bytes stay mapped until emu_regions_fini(), so that nobody has to ask.
 * Only whole pages within them count. False: it has promised EMU_REGIONS_KEPT_MAX times already; nothing has changed.
 */
bool emu_regions_keep(struct emu_regions *regions, uint64_t addr, uint64_t len_bytes);

/*
 * The memory domain that covers [addr, addr + len), all of whose pages are where peers see them; false: none does. With
 * may_adopt one is made where that is possible: nobody may be writing there by system calls.
 */
bool emu_regions_find(struct emu_regions *regions, uint64_t addr, uint64_t len_bytes, bool may_adopt, uint16_t *mdh_out,
                      uint16_t *generation_out);

#endif
