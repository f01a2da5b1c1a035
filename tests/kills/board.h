/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What workers of the kill tests (worker.h) and the driver (kills.py) tell each other: a file that all of them map.
 * It outlives each of them, so it still says what a killed worker had begun and what it had completed.
 *
 * A worker begins a life when the driver starts it, and each life has a number that no other one has. kills.py reads
 * and writes the words of this file by their place: WORDS_OF_HEAD and WORDS_OF_LINE are known there, too.
 */
#ifndef TESTS_KILLS_BOARD_H
#define TESTS_KILLS_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#define RANKS_MAX   8u
#define SLOTS       6u
#define PLACE_WORDS 12u

/* Counters of one worker towards another. Only the initiator writes them, and they go on when it has a new life. */
struct towards {
    _Atomic uint64_t life;           /* of the other one, to which the rest belongs; 0: not connected */
    _Atomic uint64_t started[SLOTS]; /* puts into each slot: begun, completed */
    _Atomic uint64_t done[SLOTS];
    _Atomic uint64_t adds_started[2]; /* to the word of its own, and to the one for all */
    _Atomic uint64_t adds_done[2];
    _Atomic uint64_t own_life; /* messages belong to both lives */
    _Atomic uint64_t sent_started;
    _Atomic uint64_t sent_done;
    _Atomic uint64_t received; /* messages of the other one, of this connection */
    _Atomic uint64_t let_go;   /* the last life of the other one whose end it has seen, with nothing under way */
};

/* Written by its worker. */
struct line {
    _Atomic uint64_t life; /* when others may connect; 0 before */
    _Atomic uint64_t beats;
    _Atomic uint64_t findings;
    _Atomic uint64_t paused;  /* the last pause that it has come to */
    _Atomic uint64_t checked; /* the last pause in which it has compared everything */
    _Atomic uint64_t bytes_checked;
    _Atomic uint64_t place[PLACE_WORDS]; /* where its memory is, as the API says it */
    struct towards towards[RANKS_MAX];
};

/* Written by the driver. */
struct board {
    _Atomic uint64_t n_ranks;
    _Atomic uint64_t pause;             /* number of the pause: nothing new is begun. 0: none */
    _Atomic uint64_t check;             /* number of the pause in which all have paused and may compare */
    _Atomic uint64_t ends;              /* 1: finish and leave; 2: what they run on is killed, so everything may fail */
    _Atomic uint64_t doomed[RANKS_MAX]; /* lives that are about to be killed: what goes there may fail */
    _Atomic uint64_t gone[RANKS_MAX];   /* and have ended */
    struct line lines[RANKS_MAX];
};

#define WORDS_OF_HEAD    (4u + 2u * RANKS_MAX)
#define WORDS_OF_TOWARDS (10u + 2u * SLOTS)
#define WORDS_OF_LINE    (18u + RANKS_MAX * WORDS_OF_TOWARDS)
_Static_assert(sizeof(struct towards) == 8 * WORDS_OF_TOWARDS, "kills.py knows it");
_Static_assert(sizeof(struct line) == 8 * WORDS_OF_LINE, "kills.py knows it");
_Static_assert(sizeof(struct board) == 8 * (WORDS_OF_HEAD + RANKS_MAX * WORDS_OF_LINE), "kills.py knows it");

#endif
