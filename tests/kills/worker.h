/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker of the kill tests: moves data to the others at random, until it is killed or told to end, and compares what
 * the others have done to its own memory with what they have noted on the board.
 *
 * Memory. A worker has a region with a lane for each worker, which only that one writes: slots of several lengths, with
 * guards between them that nobody writes, and words for atomics. Before a put the initiator notes the put's number
 * (`started`), after its completion the number again (`done`). So each byte of a slot is that of a put from done to
 * started, whoever has been killed meanwhile, and each word is between the sums of adds. Pages before and behind the
 * region are not registered and stay as they are.
 *
 * Messages have numbers, and come in order, each once. Of a sender that was killed those have come that it saw
 * complete.
 *
 * Failures. An operation may fail if its target is doomed (board.h), or all are. Any other failure is a finding.
 * A worker whose emunic is killed goes on until something fails, waits for the end of what is under way, and leaves.
 *
 * worker.c has the model, a backend for each API the calls.
 */
#ifndef TESTS_KILLS_WORKER_H
#define TESTS_KILLS_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "emunic/fabric/random.h"
#include "tests/kills/board.h"

#define OPS_MAX       6u
#define MESSAGE_BYTES 100u
#define PAGE          4096u
#define SLOT_MAX      100000u
#define LANE_BYTES    131072u
#define WORD_AT       (LANE_BYTES - 128u) /* in a lane */
#define REGION_BYTES  (RANKS_MAX * LANE_BYTES + PAGE)
#define COMMON_AT     (RANKS_MAX * LANE_BYTES) /* the word for all */

enum kind { PUT, GET, ADD, KINDS };

/* One operation under way. */
struct op {
    bool in_use;
    enum kind kind;
    unsigned target;
    unsigned slot; /* of an ADD: 0 own word, 1 the one for all */
    uint64_t number;
    uint64_t offset; /* in the target's region */
    uint64_t length;
    uint8_t *buffer; /* SLOT_MAX bytes, registered */
};

struct worker;

/* The calls of an API. A null pointer: has no such calls. */
struct backend {
    void (*open)(struct worker *w);
    void (*connect)(struct worker *w, unsigned peer);
    void (*disconnect)(struct worker *w, unsigned peer);
    bool (*post)(struct worker *w, struct op *op); /* false: failed at once, or there is no room */
    bool (*send)(struct worker *w, unsigned peer, void *message);
    void (*progress)(struct worker *w); /* calls the functions below */
    bool ends_unanswered;               /* an operation with a dead target may have no completion */
};

struct worker {
    struct board *board;
    struct line *line; /* our own */
    unsigned rank;
    unsigned n_ranks;
    uint64_t life;
    struct emu_random random;
    const struct backend *backend;
    uint8_t *region;  /* REGION_BYTES */
    uint8_t *buffers; /* OPS_MAX of them, PAGE apart */
    struct op ops[OPS_MAX];
    uint64_t sends_to[RANKS_MAX]; /* under way */
    bool is_connected[RANKS_MAX];
    uint64_t places[RANKS_MAX][PLACE_WORDS]; /* of those that we are connected to, as they were then */
    bool has_failed;                         /* something, and that may be */
};

#define BUFFER_BYTES  (102400u)
#define BUFFERS_BYTES (OPS_MAX * BUFFER_BYTES)

/* Says what was wrong and counts it. */
void worker_finding(struct worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Something that goes to this peer has failed: may it? */
bool worker_may_fail(struct worker *w, unsigned peer);
/* For backends, from progress(). */
void worker_completed(struct worker *w, struct op *op, bool is_good);
void worker_sent(struct worker *w, unsigned peer, bool is_good);
void worker_received(struct worker *w, unsigned peer, const void *message);
/* A call that may not fail, unless everything may: then the process ends. */
void worker_must(struct worker *w, bool is_good, const char *what);
/* All of a program: arguments BOARD RANK LIFE SEED. */
int worker_main(int argc, char **argv, const struct backend *backend);

#endif
