/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small measurements on a machine's packets, a row of a table each: how long one packet is under way, how far packets
 * that follow each other are apart, how many a buffer holds, what an operation of a program takes. Each is chosen so
 * that it follows from a few parameters by arithmetic, which stands in the row; the machine may be changed for it by
 * overrides, such as a slow NIC that makes a buffer fill.
 *
 *     static const struct probe_row rows[] = {
 *         { "next_vertex", PROBE_LATENCY, .path = "edge", .src = 2 * 10.3125 - 2.578 + 40 },
 *         { 0 },
 *     };
 *     r = probe_report(x, "x1", rows);
 */
#ifndef EMUNIC_EXPERIMENTS_PROBE_H
#define EMUNIC_EXPERIMENTS_PROBE_H

#include "emunic/experiments/experiment.h"
#include "emunic/fabric/route.h"
#include "emunic/fabric/sim/routing.h"
#include "emunic/model/nic_model.h"

enum probe {
    /* In the network. A packet of `n` units, or of the longest payload if `n` is 0. */
    PROBE_LATENCY = 0, /* ns, alone in the network; NICs are as fast as their link */
    PROBE_REPEATED,    /* ns, the same if the first link between routers has broken it once */
    PROBE_PERIOD,      /* ns between two of a stream; NICs have their rates */
    PROBE_SPREAD,      /* ns, the same if packets may take any way */
    PROBE_ANSWERED,    /* ns between two if each waits for the answer to the one before; NICs as fast as their link */
    PROBE_RECEPTION,   /* packets that a reception buffer takes of a stream, if the NIC takes none */
    PROBE_CHANNEL,     /* packets then behind the first link between routers */
    PROBE_INJECTION,   /* packets then behind the NIC's link */
    PROBE_DETOUR,      /* packets of a mode that go to a NIC which takes none, before the first takes a longer way */
    PROBE_MISSED,      /* broken packets per one that the link's check does not see */
    /* Between programs. `n` bytes. */
    PROBE_OPERATION, /* ns: half a ping-pong; of a get and the like post to data */
    PROBE_SWAP,      /* ns: both send at once */
    PROBE_RATE,      /* MB/s: operations one way, of one process, as many under way as the NIC keeps */
    PROBE_BOTH,      /* MB/s: the same both ways */
    PROBE_WINDOW,    /* MB/s: puts one way, if an answer is back 200 us after its packet */
    PROBE_CHANNELS,  /* MB/s: block transfers one way, if one has 50 */
    PROBE_ATOMICS,   /* 1/us: atomics on `n` words in turn, each in a page of its own, 100 ns of memory if it is 0 */
};

struct probe_row {
    const char *name;
    enum probe what;
    const char *path; /* links between routers by class, "x y"; "": the same router; "node": the same node;
                         * "next", "last": whatever leads to node 1, the last node */
    const char *with; /* overrides, "router.vc_units=33,links.x.wire_ns=9"; NULL: none */
    uint32_t n;
    enum emu_nic_kind kind;
    enum emu_nic_api api;
    enum emu_route_mode mode; /* of PROBE_DETOUR */
    double src;
    double tol;    /* 0: 0.5 % */
    bool is_least; /* `src` or more */
};

/* The first node that is so far from node 0; with `is_only` by each shortest route. -ENOENT: there is none. */
int probe_find_peer(const struct emu_machine *m, const char *path, bool is_only, uint32_t *nid_out,
                    struct emu_route *route_out);

/* Reports them, of kind S; the last one has no name. What emu_exp_machine() returns. */
int probe_report(struct emu_exp *x, const char *machine, const struct probe_row *rows);

/* ---- experiments ---- */

int emu_probe_xc(struct emu_exp *x);       /* OWN-XC */
int emu_probe_titan(struct emu_exp *x);    /* OWN-TITAN */
int emu_probe_seastar(struct emu_exp *x);  /* OWN-SEASTAR */
int emu_probe_xt3(struct emu_exp *x);      /* OWN-XT3 */
int emu_probe_bgl(struct emu_exp *x);      /* OWN-BGL */
int emu_probe_x1(struct emu_exp *x);       /* OWN-X1 */
int emu_probe_xd1(struct emu_exp *x);      /* OWN-XD1 */
int emu_probe_xd1_tree(struct emu_exp *x); /* OWN-TREE */

#endif
