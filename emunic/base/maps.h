/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is mapped where in a process, from /proc/<pid>/maps. Uses no heap. One thread per struct.
 */
#ifndef EMUNIC_BASE_MAPS_H
#define EMUNIC_BASE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EMU_MAPS_LINE_MAX 4400u /* numbers and a path; what is longer is cut */

/* One mapping. */
struct emu_piece {
    uint64_t first;
    uint64_t end;
    uint64_t offset; /* in the file, of `first` */
    dev_t dev;
    ino_t ino; /* 0: anonymous */
    bool is_readable;
    bool is_writable; /* and readable */
    bool is_shared;
    bool is_stack;
};

struct emu_maps {
    int fd;
    bool asks;           /* the kernel finds single mappings itself */
    bool is_borrowed;    /* the descriptor is another's */
    uint32_t lines_left; /* that may be read where it does not */
    size_t used;
    size_t at;
    const char *name; /* of the piece found last: a path, a name in brackets, or "". Valid until the next look */
    char bytes[EMU_MAPS_LINE_MAX];
};

/* pid 0: the caller. 0 or negative errno. */
int emu_maps_open(struct emu_maps *maps, pid_t pid);
/*
 * Of the caller, by the descriptor of another one of the caller's that emu_maps_look() has served: without a system
 * call. `other` must stay open; NULL: as emu_maps_open().
 */
int emu_maps_open_by(struct emu_maps *maps, const struct emu_maps *other);
/* By a descriptor of such a file, which stays the caller's. */
int emu_maps_open_at(struct emu_maps *maps, int fd);
void emu_maps_close(struct emu_maps *maps);

/*
 * The first mapping that ends after `at`. False: there is none, or too many lines had to be read. `at` must not be
 * smaller than at the look before.
 */
bool emu_maps_find(struct emu_maps *maps, uint64_t at, struct emu_piece *piece_out);

/* The same of shared mappings of files alone; is_stack is not told. */
bool emu_maps_find_shared(struct emu_maps *maps, uint64_t at, struct emu_piece *piece_out);

/*
 * The mapping that `at` lies in, without its name (is_stack is not told), for many looks with one struct: one system
 * call each. 0; -ENOENT; -ENOTTY: this kernel cannot, open anew and use emu_maps_find().
 */
int emu_maps_look(struct emu_maps *maps, uint64_t at, struct emu_piece *piece_out);

#endif
