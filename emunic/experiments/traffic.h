/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic for the packet simulator: patterns, open and closed sources, messages from a list or a trace file; and what
 * came of it: latency histograms, steady state, the figures of each node.
 *
 * A generator fills struct emu_traffic. Each node draws from a generator of its own, seeded by (seed, nid), so the
 * packets do not depend on the number of threads. The functions that change a generator or read its results run
 * between emu_sim_run() calls, on the thread that makes them.
 *
 * Example: saturation of a Dragonfly under group shift, puts of 64 B with their responses.
 *   struct emu_generator_options options = { .pattern = EMU_PATTERN_SHIFT, .seed = 1, .mode = EMU_MODE_MINIMAL,
 *                                            .units = 14, .response_units = 1 };
 *   emu_generator_create(m, &options, &gen, err, sizeof(err));
 *   emu_sim_create(m, NULL, emu_generator_traffic(gen), &sim_options, &sim);
 *   emu_generator_steady(gen, sim, &(struct emu_steady_options){ 0 }, &result);
 */
#ifndef EMUNIC_EXPERIMENTS_TRAFFIC_H
#define EMUNIC_EXPERIMENTS_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"
#include "emunic/fabric/random.h"
#include "emunic/fabric/sim/sim.h"

#define EMU_NOBODY    UINT32_MAX
#define EMU_GRID_DIMS 4

/* ---- where nodes are ---- */

/*
 * Nodes by coordinates: mesh x, y, z (Dragonfly: group, chassis, blade) and the number of the node on its router, by
 * rising nid. A topology without mesh coordinates is a line in the last dimension.
 */
struct emu_grid {
    uint32_t size[EMU_GRID_DIMS];
    uint32_t n_nodes;
    uint32_t *nids;   /* owned; by place, last dimension fastest; EMU_NOBODY: a hole */
    uint32_t *places; /* owned; by nid */
};

/* -ENOMEM. -EINVAL: the coordinates span more than 2^26 places. */
int emu_grid_init(struct emu_grid *grid, const struct emu_machine *m);
void emu_grid_fini(struct emu_grid *grid);

void emu_grid_at(const struct emu_grid *grid, uint32_t nid, uint32_t coordinates_out[EMU_GRID_DIMS]);
/* EMU_NOBODY: a hole, or out of range. */
uint32_t emu_grid_nid(const struct emu_grid *grid, const uint32_t coordinates[EMU_GRID_DIMS]);

/* ---- patterns ---- */

enum emu_pattern {
    /* A node that a permutation sends to itself stays silent. */
    EMU_PATTERN_UNIFORM = 0, /* every other node equally likely */
    EMU_PATTERN_HOT,         /* hot_share of the packets to a node of the hot box, the others uniform over all */
    EMU_PATTERN_SHIFT,       /* a random node `shift` slices on in `dimension`: groups of a Dragonfly, planes */
    EMU_PATTERN_TRANSPOSE,   /* nodes as the most nearly square matrix, nid (row, column) to (column, row) */
    EMU_PATTERN_TORNADO,     /* ceil(k / 2) - 1 on in each dimension of size k but the last (Dally & Towles 3.2) */
    EMU_PATTERN_NEIGHBOUR,   /* a random one of the neighbours one step up or down in x, y or z, with wrap */
    EMU_PATTERN_COMPLEMENT,  /* n - 1 - nid: for 2^k nodes all bits of the number turned round */
    EMU_PATTERN_ALL_TO_ALL,  /* rounds x one packet to each other node, each round in an order of its own; ends */
    EMU_PATTERN_MESSAGES,    /* the list in the options, or a trace file; ends */
    EMU_PATTERN_CUSTOM,      /* pick() in the options */
    EMU_PATTERNS,
};

/* "uniform", "hot", "shift", "transpose", "tornado", "neighbour", "complement", "all-to-all", "messages", "custom". */
const char *emu_pattern_name(enum emu_pattern pattern);
/* The first eight, by name. -EINVAL. */
int emu_pattern_of_name(const char *name, enum emu_pattern *pattern_out);

/* ---- generators ---- */

struct emu_message {
    uint64_t start_ps; /* not before; of one that waits for others: so long behind the last of them */
    uint32_t src_nid;
    uint32_t dst_nid;
    uint64_t bytes;       /* of payload; 0 is a packet without payload */
    uint32_t first_after; /* in emu_messages.after: the messages that it waits for */
    uint32_t n_after;
};

/* A message waits for messages before it in the list that arrive at its source. */
struct emu_messages {
    struct emu_message *list;
    size_t n;
    uint32_t *after; /* NULL: nobody waits */
    size_t n_after;
    bool is_program; /* messages of a node leave in the order of the list; else in that of their starts */
};

/* One of several sizes of packets. */
struct emu_size {
    uint16_t units;
    double weight; /* of all weights together: how often */
};

#define EMU_SIZES_MAX 16

struct emu_sizes {
    const struct emu_size *list;
    size_t n; /* 0: none */
};

/* Bursts of packets, and pauses, so that the mean rate stays. */
struct emu_burst {
    double packets; /* 0: no bursts; else mean length of one (geometric), 1 or more; needs a gap */
    double on;      /* share of the time, above 0 to 1; gaps in a burst are so much shorter */
};

/* Zero means what each line says first. */
struct emu_generator_options {
    enum emu_pattern pattern;
    uint64_t seed;

    /* How often. A node's packets come with exponential gaps. */
    double gap_ps;             /* 0: always one more, as fast as the network takes them; else the mean gap */
    bool is_regular;           /* gaps all alike, with a random phase */
    uint64_t packets_per_node; /* 0: without end; not for the patterns that end by themselves */
    uint64_t stop_ps;          /* 0: never; nothing is created at or after this time */
    struct emu_burst burst;
    const double *rates; /* NULL: 1; else by nid what the gap is divided by, above 0. Read at creation. */

    /* What. */
    uint16_t units;          /* 0: a full packet of the machine (not for messages: those are cut by payload) */
    uint16_t response_units; /* 0: no responses; else each delivered packet is answered by one of this size */
    struct emu_sizes sizes;  /* none: all of `units`; else up to EMU_SIZES_MAX. Copied. */
    uint32_t window;         /* 0: no limit; else packets of a node without response so far. Needs response_units. */
    uint8_t mode;            /* enum emu_route_mode; the hashed modes get a random order_key per packet */
    uint8_t traffic_class;   /* of the packets; responses are EMU_TRAFFIC_RESPONSE */

    /* To whom. */
    double hot_share;                 /* HOT: 0 .. 1 */
    uint32_t hot_low[EMU_GRID_DIMS];  /* HOT: lowest corner of the box */
    uint32_t hot_size[EMU_GRID_DIMS]; /* HOT: its size; 0: the whole dimension */
    uint32_t dimension;               /* SHIFT */
    uint32_t shift;                   /* SHIFT: 0: 1 */
    uint32_t rounds;                  /* ALL_TO_ALL: 0: 1 */
    const bool *senders;              /* NULL: all nodes send; else one per nid. Read at creation. */
    struct emu_messages messages;     /* MESSAGES: copied */
    /* CUSTOM: the destination of the next packet, or EMU_NOBODY: this node sends no more. Pure but for `random`. */
    uint32_t (*pick)(void *ctx, struct emu_random *random, uint32_t src_nid);
    void *pick_ctx;

    bool
        is_shared; /* several processes simulate: emu_generator_start() starts each one's nodes, reads senders, rates */
};

struct emu_generator;

/**
 * @param[in]  m    Must outlive the generator.
 * @param[out] err  One line on failure; may be NULL.
 * @retval 0        Made.
 * @retval -EINVAL  Options that do not fit each other or the machine.
 * @retval -ENOMEM  Out of memory.
 */
int emu_generator_create(const struct emu_machine *m, const struct emu_generator_options *options,
                         struct emu_generator **gen_out, char *err, size_t err_len);
void emu_generator_destroy(struct emu_generator *gen); /* NULL is fine */

/* For emu_sim_create(); lives as long as the generator. One simulation per generator. */
const struct emu_traffic *emu_generator_traffic(const struct emu_generator *gen);

/* With is_shared, before the first run: the nodes that the simulation has here. Those of others take no memory. */
void emu_generator_start(struct emu_generator *gen, const struct emu_sim *sim);

/* With is_shared, once, behind the last run: process 0 hears of all nodes, latencies and messages. All call it. */
void emu_generator_gather(struct emu_generator *gen, const struct emu_sim *sim, const struct emu_sim_world *world);

/* 0, or -ENOMEM: responses are missing because there was no memory for them; the run is worth nothing. */
int emu_generator_status(const struct emu_generator *gen);

/* Units of a full request packet, and of one with so many bytes of payload. */
uint16_t emu_packet_units(const struct emu_machine *m, uint64_t payload_bytes);

/* Mean of the sizes, by their weights. */
double emu_mean_units(const struct emu_sizes *sizes);

/* Mean gap so that under uniform traffic on minimal routes the busiest class of links is busy this share of the time:
 * the usual "fraction of capacity". response_units 0: no responses. Takes some 20 ms. */
double emu_uniform_gap_ps(const struct emu_machine *m, uint16_t units, uint16_t response_units, double load);

/* ---- latency ---- */

/* Counts in buckets 1/16 of a power of two wide. */
#define EMU_HISTOGRAM_BUCKETS 976
struct emu_histogram {
    uint64_t count;
    uint64_t sum_ps;
    uint64_t buckets[EMU_HISTOGRAM_BUCKETS];
};

uint32_t emu_histogram_bucket(uint64_t value_ps);
uint64_t emu_histogram_low_ps(uint32_t bucket);              /* smallest value in it; the next one's is its end */
double emu_histogram_mean_ps(const struct emu_histogram *h); /* 0 if it is empty */
/* Inside the bucket by straight line. 0 if it is empty. */
double emu_histogram_quantile_ps(const struct emu_histogram *h, double quantile);

enum emu_latency {
    EMU_LATENCY_CREATED = 0, /* created to delivered */
    EMU_LATENCY_NETWORK,     /* head entered to delivered */
    EMU_LATENCY_ROUND_TRIP,  /* created to response delivered */
    EMU_LATENCIES,
};

/* Since the start or the last emu_generator_reset(). Responses count only in the round trip. */
void emu_generator_latency(const struct emu_generator *gen, enum emu_latency which,
                           struct emu_histogram *histogram_out);

struct emu_node_figures {
    uint64_t sent; /* packets given to the network, responses left out */
    uint64_t sent_units;
    uint64_t received; /* packets delivered here, responses left out */
    uint64_t received_units;
    uint64_t received_hops;       /* links between routers that the received ones crossed */
    uint64_t received_latency_ps; /* their latencies together, created to delivered */
    uint64_t lost;                /* of those sent */
};

/* Since the start or the last emu_generator_reset(). */
void emu_generator_node(const struct emu_generator *gen, uint32_t nid, struct emu_node_figures *figures_out);

/* Has the node sent a packet since the start? Not so those that a permutation sends to themselves. */
bool emu_generator_is_active(const struct emu_generator *gen, uint32_t nid);

/* MESSAGES: when the last packet of message i arrived; 0: not yet, or part of it was lost. */
uint64_t emu_generator_message_done_ps(const struct emu_generator *gen, size_t message);

/* MESSAGES: those that have not left, or not all of them. If nothing more happens, they wait for a lost one. */
uint64_t emu_generator_messages_left(const struct emu_generator *gen);

/* Latencies and node figures to zero: the end of a warm-up. */
void emu_generator_reset(struct emu_generator *gen);

/* ---- steady state ---- */

/* Processor time of this process so far, all threads together. */
double emu_cpu_seconds(void);

/* Time of one unit on the slowest link between routers (spec/machines.md 0.6 counts in it). */
uint64_t emu_link_cycle_ps(const struct emu_machine *m);
/* Of the generator's machine. */
uint64_t emu_generator_cycle_ps(const struct emu_generator *gen);

struct emu_steady_options {
    uint64_t window_ps;                           /* 0: 10 000 link cycles */
    double agreement;                             /* 0: 0.02 */
    uint32_t warmup_max;                          /* windows; 0: 40 */
    uint32_t windows;                             /* that are measured; 0: 5 */
    void (*progress)(void *ctx, double fraction); /* NULL: nobody asks */
    void *progress_ctx;
    bool (*stop)(void *ctx); /* NULL: nobody; true ends the run early, as if time was up */
};

struct emu_steady_result {
    bool is_steady; /* two windows in a row agreed, and nothing below ended the run */
    bool is_deadlock;
    bool is_empty; /* nothing more to come */
    uint32_t warmup_windows;
    uint32_t windows;
    uint64_t measured_ps;
    struct emu_sim_totals totals; /* of the measured windows */
    double units_per_ns;          /* delivered, all nodes together, responses included */
    double spread;                /* (largest - smallest) / mean of the windows' throughput */
    double seconds;               /* of the host, for the measured windows: speed, never part of a figure */
    double cpu_seconds;           /* of all threads of the process in that time */
};

/**
 * Warm up until two windows in a row deliver the same within `agreement`, reset all statistics, then measure
 * (spec/machines.md 0.6). Not steady after warmup_max windows: measures all the same and says so.
 */
void emu_generator_steady(struct emu_generator *gen, struct emu_sim *sim, const struct emu_steady_options *options,
                          struct emu_steady_result *result_out);

/* ---- trace files ---- */

/**
 * Read a trace: text, one message a line, "#" starts a comment, blanks between fields:
 *
 *   emunic-trace 1                  first line that is neither empty nor a comment
 *   <start_ns> <src> <dst> <bytes>  start with up to three decimals; nids of the machine; any order of times
 *
 * or messages that wait for others:
 *
 *   emunic-trace 2
 *   <start_ns> <src> <dst> <bytes> [<number>]...  of messages before, 1 is the first, that arrive at the source
 *
 * Nothing of it is trusted: lines up to 256 bytes, up to 2^24 messages, 2^40 bytes each, times up to 10^15 ns, up to
 * 2^26 numbers.
 *
 * @param[out] trace_out  Freed with emu_messages_fini(); on failure nothing is in it.
 * @param[out] err        "file:line: ..." on failure; may be NULL.
 * @retval 0        Read; at least one message.
 * @retval -EINVAL  Not such a file.
 * @retval -ENOMEM  Out of memory.
 * @retval other    The errno of open(2) or read(2).
 */
int emu_trace_read(const char *path, const struct emu_machine *m, struct emu_messages *trace_out, char *err,
                   size_t err_len);
void emu_messages_fini(struct emu_messages *messages);

#endif
