/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links of a machine. Every link is directed; a cable or trace is a link and its reverse. Ids run from 0 without gaps
 * and depend on the machine's parameters alone. Nothing is stored per link: each is computed when asked for.
 */
#ifndef EMUNIC_FABRIC_LINK_H
#define EMUNIC_FABRIC_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"

enum emu_link_class {
    EMU_LINK_PROCESSOR_IN = 0, /* NIC to router: into the network */
    EMU_LINK_PROCESSOR_OUT,    /* router to NIC: out of the network */
    EMU_LINK_GREEN,            /* rank 1: within a chassis */
    EMU_LINK_BLACK,            /* rank 2: same slot, other chassis of the group */
    EMU_LINK_BLUE,             /* rank 3: between groups */
    EMU_LINK_X,                /* of a torus or mesh: along one dimension */
    EMU_LINK_Y,
    EMU_LINK_Z,
    EMU_LINK_MEZZANINE, /* Gemini: Y within a module */
    EMU_LINK_BACKPLANE, /* Gemini: Z within a cage */
    EMU_LINK_EDGE,      /* hypercube: between two vertices; HyperX, Slim Fly, tree: between two routers */
    EMU_LINK_NODE,      /* XD1: between a node's own router and a switch of its chassis */
    EMU_LINK_EXTERNAL,  /* XD1: between two chassis switches */
    EMU_LINK_SPINE,     /* XD1 fat tree: between a chassis switch and a spine switch */
    EMU_LINK_LOCAL,     /* Dragonfly+: between a leaf and a spine of its group */
    EMU_LINK_GLOBAL,    /* Dragonfly+: between spines of two groups */
    EMU_LINK_CLASSES,
};

enum emu_link_end_kind {
    EMU_END_NIC = 0,
    EMU_END_ROUTER,
};

struct emu_link_end {
    enum emu_link_end_kind kind;
    uint32_t index; /* nid or router */
};

struct emu_link {
    uint32_t id;
    enum emu_link_class link_class;
    struct emu_link_end from;
    struct emu_link_end to;
    uint32_t number; /* tells parallel links apart: black 0-2; blue 4 x cable + link within the bundle of
                                    its two groups; 0 elsewhere. A link and its reverse have the same number. */
    uint32_t lanes;
    uint32_t mbps_per_lane;
    uint32_t wire_ps;
    uint64_t bytes_per_s;      /* raw: lanes x rate */
    uint64_t data_bytes_per_s; /* left for flits of packets, the link layer's frames taken off */
};

/* -ERANGE: no such link. */
int emu_link_get(const struct emu_machine *m, uint32_t link, struct emu_link *link_out);

/* The link that runs the other way over the same wires. -ERANGE: no such link. */
int emu_link_reverse(const struct emu_machine *m, uint32_t link, uint32_t *reverse_out);

/* "c0-0c0s0a0 -> c0-0c0s3a0 green 0"; EMU_LINK_NAME_MAX is always enough. -ERANGE, -ENOSPC. */
#define EMU_LINK_NAME_MAX 112
int emu_link_name(const struct emu_machine *m, uint32_t link, char *buf, size_t len);

/* "processor-in", "green" ...; static. */
const char *emu_link_class_name(enum emu_link_class link_class);

#endif
