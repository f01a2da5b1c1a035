/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine: the modelled supercomputer as its file describes it. Nodes, their numbers, names and places, and the
 * figures of NIC and router. Links, routes, loads and placements have headers of their own.
 *
 * A machine never changes after emu_machine_load(), so every function that takes a const machine may be called from
 * any thread, together with any other.
 *
 * Results: 0 done, negative errno a fault. A text buffer that is too short gives -ENOSPC and is left alone.
 */
#ifndef EMUNIC_FABRIC_MACHINE_H
#define EMUNIC_FABRIC_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/flow.h"

#define EMU_MACHINE_NAME_MAX 32 /* with the final zero */
#define EMU_CNAME_MAX        40 /* longest name of a node or router, with the final zero */

struct emu_machine;

/* What one NIC can do. Fixed widths: may be copied into a shared table as it is. */
struct emu_nic_params {
    struct emu_packet_format format; /* flits of a packet: emunic/abi/flow.h counts with it */
    uint32_t clock_mhz;
    uint32_t access_cycles;       /* NIC clocks for one read or write of payload_bytes_max */
    uint32_t outstanding_packets; /* requests on the way that one NIC keeps track of */
    uint32_t fma_descriptors;
    uint32_t bte_channels; /* block transfers in progress at once */
    uint32_t ce_engines;   /* virtual collective engines */
    uint32_t ce_children_max;
    uint32_t amo_cache_entries;
    uint32_t amo_cache;  /* enum emu_amo_cache_use: by programs; most machines have no key for it */
    uint32_t amo_cycles; /* NIC clocks for one cached atomic operation */
    uint32_t device;     /* enum emu_device: what programs take it for */
};

/* What cached atomics of programs do with the cache. */
enum emu_amo_cache_use {
    EMU_AMO_CACHE_OFF = 0, /* nothing: they work as those that are not cached */
    EMU_AMO_CACHE_EAGER,   /* host memory is written at each update */
    EMU_AMO_CACHE_LAZY,    /* ... when a word leaves the cache */
};

/* How a packet chooses among ways on that its routing calls equal. */
enum emu_choice {
    EMU_CHOICE_FIRST = 0, /* the first that routing offers */
    EMU_CHOICE_RANDOM,
    EMU_CHOICE_CREDITS, /* most room downstream, in units; ties random */
    EMU_CHOICE_TOKENS,  /* most room downstream, as two bits: full quarters of the channel; ties random
                                        (BG/L "JSQ") */
};

/* Which packet wins, within an input port and then at an output. */
enum emu_arbitration {
    EMU_ARBITRATE_ROUND_ROBIN = 0,
    EMU_ARBITRATE_RANDOM,
    EMU_ARBITRATE_AGE,     /* the longest in the network first (SeaStar) */
    EMU_ARBITRATE_FULLEST, /* fullest channel, as two bits, in fullest_percent of the decisions, else random
                                        (BG/L "SLQ") */
    EMU_ARBITRATE_LONGEST, /* whose head has waited longest here; of equals the next one in turn */
};

/* What a packet is charged for, in the buffer that it enters, or needs to find free there. */
enum emu_charge {
    EMU_CHARGE_TRUE = 0, /* its own size */
    EMU_CHARGE_FULL,     /* that of the largest packet */
};

/* A packet over a slow link into a router that would leave it over a faster one. */
enum emu_slow_input {
    EMU_SLOW_HOLD = 0, /* has the fast link to itself from its head to its tail */
    EMU_SLOW_STORE,    /* stays in its buffer until the rest of it keeps up; the link takes others meanwhile */
};

struct emu_router_params {
    uint32_t hop_ps;                /* delay of a head from the start on one link to the decision behind it */
    uint32_t hop_wire_ps;           /* of that, the wire; a longer wire adds to hop_ps what it is longer */
    uint32_t frame_flits;           /* a frame of the link layer, 0: there are none ... */
    uint32_t frame_overhead_flits;  /* ... of which this many carry no packet */
    uint32_t packet_overhead_flits; /* on the wire behind each packet, between routers; takes no buffer */
    uint32_t crc_bits;              /* of the link's check: of 2^crc_bits broken packets one is not noticed */
    uint32_t retry_timeout_clocks;  /* from the end of a broken packet to its repetition; 0: when the NAK is back */
    uint32_t clock_ps;              /* one decision per clock */
    uint32_t vc_units;              /* buffer of a virtual channel; the routing may give its own */
    uint32_t shared_units;          /* more of it that all channels of an input port share */
    uint32_t token_units;           /* credits are counted in these: BG/L 32 bytes; 1 elsewhere */
    uint32_t packet_units_max;      /* a full-size packet */
    uint32_t room;                  /* enum emu_charge: what must be free on a plain channel */
    uint32_t bubble_charge;         /* enum emu_charge: what a packet takes on a bubble channel */
    uint32_t choice;                /* enum emu_choice */
    uint32_t arbitration;           /* enum emu_arbitration */
    uint32_t fullest_percent;
    uint32_t network_first_percent; /* decisions of an output in which injected packets wait for all others */
    uint32_t response_first;        /* responses of up to so many units go before all others */
    uint32_t paths;                 /* transfers at once from a router's port to other routers; 0: one per channel */
    uint32_t requests;              /* outputs that such a port may ask for in one clock; 0: one per channel */
    uint32_t arb_gap_clocks;        /* a port from another router that began or ended a transfer asks for nothing */
    uint32_t column_buffers;        /* 1: outputs hold the packet that they send, so it leaves its input buffer as soon
                                        as its tail has arrived; most machines have no key for it */
    uint32_t slow_input;            /* enum emu_slow_input: a packet that comes in more slowly than it would go out */
    uint32_t load_period_clocks;    /* a router tells its neighbours its load so often; 0: never */
};

/* Where a node is. What the topology does not have is 0. */
struct emu_place {
    uint32_t group;
    uint32_t chassis; /* within the group */
    uint32_t blade;   /* slot within the chassis */
    uint32_t node;    /* on the blade */
    uint32_t cabinet_column;
    uint32_t cabinet_row;
    uint32_t cage; /* chassis within the cabinet */
    uint32_t router;
    uint32_t chip;   /* its network chip on the blade */
    uint32_t mesh_x; /* as rca_get_meshcoord() answers */
    uint32_t mesh_y;
    uint32_t mesh_z;
};

/**
 * Build a machine.
 *
 * @param[in]  spec         "aries", a path with a '/' or ending in ".yaml", either followed by overrides:
 *                          "aries:groups=6,blades=4". An override names a key of the file by its whole path
 *                          ("links.blue.lanes") or by any tail of it that fits one key only ("groups").
 *                          The overrides start behind the last ':' that has no '/' after it.
 * @param[in]  machine_dir  Where "<name>.yaml" is looked for; NULL if spec is always a path.
 * @param[out] m_out        Freed with emu_machine_destroy().
 * @param[out] err          One line without newline, set on failure: "file:line:column: ..." for the file,
 *                          "override 'groups=0': ..." for an override. May be NULL.
 * @retval 0        Built.
 * @retval -EINVAL  The file or an override is wrong, or the values do not fit together.
 * @retval -ENOMEM  Out of memory.
 * @retval other    The file could not be opened; the errno of open(2).
 */
int emu_machine_load(const char *spec, const char *machine_dir, struct emu_machine **m_out, char *err, size_t err_len);

/* NULL is fine. */
void emu_machine_destroy(struct emu_machine *m);

const char *emu_machine_name(const struct emu_machine *m);     /* lives as long as the machine */
const char *emu_machine_topology(const struct emu_machine *m); /* "dragonfly"; static */
uint32_t emu_machine_n_nodes(const struct emu_machine *m);     /* nids are 0 .. n_nodes - 1, without gaps */
uint32_t emu_machine_n_routers(const struct emu_machine *m);
uint32_t emu_machine_n_links(const struct emu_machine *m); /* directed, NIC links included */
const struct emu_nic_params *emu_machine_nic(const struct emu_machine *m);
const struct emu_router_params *emu_machine_router(const struct emu_machine *m);

/* -ERANGE: no such nid. */
int emu_machine_place(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out);

/* The inverse, from group, chassis, blade and node alone. -ERANGE: no such place. */
int emu_machine_nid_at(const struct emu_machine *m, uint32_t group, uint32_t chassis, uint32_t blade, uint32_t node,
                       uint32_t *nid_out);

/* "c0-0c0s0n1": cabinet column and row, cage, slot, node. -ERANGE: no such nid. */
int emu_machine_cname(const struct emu_machine *m, uint32_t nid, char *buf, size_t len);

/* "c0-0c0s0a0". -ERANGE: no such router. */
int emu_machine_router_cname(const struct emu_machine *m, uint32_t router, char *buf, size_t len);

/* Takes names exactly as emu_machine_cname() writes them. -EINVAL: not a node name; -ERANGE: not in this machine. */
int emu_machine_nid_of_cname(const struct emu_machine *m, const char *cname, uint32_t *nid_out);

/**
 * Hold the machine against the vendor's published configuration rules. A machine that breaks some of them is still
 * a good emulation target (most small ones do); this says what could not have been bought.
 *
 * @param[in] note  Called once per broken rule with its number in spec/machines.md and one line of text; may be NULL.
 * @return Number of broken rules.
 */
int emu_machine_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                            void *ctx);

#endif
