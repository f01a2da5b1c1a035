/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: what the owner of an interface does to it. Lists, free places and what links them are its own affair; what
 * it needs to know of them is kept here, outside the shared memory, so that nobody else can spoil it.
 *
 * One thread at a time per object. Functions marked (lock) expect the interface's lock to be held.
 */
#ifndef EMUNIC_ENGINE_PORTALS_OWNER_H
#define EMUNIC_ENGINE_PORTALS_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/portals.h"
#include "emunic/engine/portals_engine.h"

/* Handles: kind (2 bits), interface (2), place (17), generation (11). */
enum emu_ptl_handle_kind { EMU_PTL_IS_NI = 0, EMU_PTL_IS_ME, EMU_PTL_IS_EQ, EMU_PTL_IS_MD };
#define EMU_PTL_HANDLE_GENERATIONS 2047u /* one less than there is room for: no handle looks like a constant */
#define EMU_PTL_HANDLE_NIS         4u

static inline uint32_t emu_ptl_handle(enum emu_ptl_handle_kind kind, uint32_t ni, uint32_t index, uint32_t generation)
{
    return (uint32_t)kind << 30 | ni << 28 | index << 11 | generation % EMU_PTL_HANDLE_GENERATIONS;
}

static inline enum emu_ptl_handle_kind emu_ptl_handle_kind(uint32_t handle)
{
    return (enum emu_ptl_handle_kind)(handle >> 30);
}

static inline uint32_t emu_ptl_handle_ni(uint32_t handle)
{
    return handle >> 28 & 3u;
}

static inline uint32_t emu_ptl_handle_index(uint32_t handle)
{
    return handle >> 11 & 0x1ffffu;
}

/* Free places: those that have been used, oldest first, then those that never were. */
struct emu_ptl_pool {
    uint32_t *freed;  /* owned: ring of `room` */
    uint32_t room;    /* places there are; a power of two */
    uint32_t limit;   /* that may be in use */
    uint32_t n_fresh; /* places ever used */
    uint32_t n_in_use;
    uint32_t first;
    uint32_t n_freed;
};

/* Pieces of powers of two, in units. */
#define EMU_PTL_PIECE_ORDERS 24u
struct emu_ptl_pieces {
    uint32_t *free[EMU_PTL_PIECE_ORDERS]; /* owned: stacks of starts */
    uint32_t n_free[EMU_PTL_PIECE_ORDERS];
    uint32_t n_room[EMU_PTL_PIECE_ORDERS];
    uint32_t fresh; /* never handed out from here on */
    uint32_t end;
};

struct emu_ptl_old_iov { /* of a descriptor that got others while operations on the old ones were going on */
    uint32_t md;
    uint32_t first;
    uint32_t count;
};

struct emu_ptl_eq_own {
    struct emu_ptl_head head;
    uint64_t ring_off;
    uint32_t capacity;
    uint32_t piece;
    uint32_t handle; /* here, because polling must not read lines that producers write; 0 free */
};

struct emu_ptl_limits {
    uint32_t max_mes;
    uint32_t max_mds;
    uint32_t max_eqs;
    uint32_t max_list;
};

struct emu_ptl_owner {
    struct emu_ptl_ni *ni; /* borrowed: mapped */
    uint32_t number;       /* for handles */
    uint32_t salt;         /* of the generations of handles */
    struct emu_ptl_limits limits;
    struct emu_ptl_pool mes;
    struct emu_ptl_pool mds;
    struct emu_ptl_pool eqs;
    struct emu_ptl_pieces iovs;
    struct emu_ptl_pieces arena;   /* units of a page */
    struct emu_ptl_eq_own *eq_own; /* owned, EMU_PTL_EQS */
    uint64_t eqs_made;
    uint32_t reaped;                  /* of the dead list */
    struct emu_ptl_old_iov *old_iovs; /* owned */
    uint32_t n_old_iovs;
};

/* A descriptor as the program describes it. */
struct emu_ptl_md_spec {
    uint64_t start;
    uint64_t length;   /* bytes, or segments with EMU_PTL_MD_IOVEC */
    int32_t threshold; /* -1: no end; else not negative */
    uint32_t options;
    uint64_t max_size;
    uint64_t user_ptr;
    uint32_t eq_handle;
    uint32_t eq; /* index, or EMU_PTL_NONE */
    bool unlinks;
    const struct emu_ptl_iov *iovs; /* with EMU_PTL_MD_IOVEC: `length` of them */
    uint32_t mdh;                   /* memory domain that covers it, or 0 */
    uint32_t mdh_generation;
};

enum emu_ptl_where { EMU_PTL_HEAD, EMU_PTL_TAIL, EMU_PTL_BEFORE, EMU_PTL_AFTER };

struct emu_ptl_me_spec {
    uint32_t pt;   /* head, tail */
    uint32_t base; /* before, after: another entry */
    enum emu_ptl_where where;
    uint32_t nid;
    uint32_t pid;
    uint64_t bits;
    uint64_t ignore;
    bool unlinks;
};

/* Makes the interface ready: it is all zeroes but for what emunic has written. -ENOMEM. (nobody else has it yet) */
int emu_ptl_owner_init(struct emu_ptl_owner *owner, struct emu_ptl_ni *ni, uint32_t number, uint32_t salt,
                       const struct emu_ptl_limits *limits);
void emu_ptl_owner_fini(struct emu_ptl_owner *owner);

/* Frees what others have marked dead. (lock) */
void emu_ptl_reap(struct emu_ptl_owner *owner);
static inline bool emu_ptl_has_dead(const struct emu_ptl_owner *owner)
{
    return owner->ni->n_dead != owner->reaped;
}

/* Index of a live object, or EMU_PTL_NONE. */
uint32_t emu_ptl_find_me(const struct emu_ptl_owner *owner, uint32_t handle);
uint32_t emu_ptl_find_md(const struct emu_ptl_owner *owner, uint32_t handle);
uint32_t emu_ptl_find_eq(const struct emu_ptl_owner *owner, uint32_t handle);

/* -ENOSPC: no entry left; -E2BIG: the list is full. (lock) */
int emu_ptl_me_create(struct emu_ptl_owner *owner, const struct emu_ptl_me_spec *spec, uint32_t *me_out);
/* With its descriptor. -EBUSY: that has operations going on. (lock) */
int emu_ptl_me_unlink(struct emu_ptl_owner *owner, uint32_t me);
/* The lowest index that was never used, else the lowest with an empty list; EMU_PTL_NONE. */
uint32_t emu_ptl_unused_pt(const struct emu_ptl_owner *owner);

/* me: EMU_PTL_NONE for a descriptor of its own. -EEXIST: the entry has one; -ENOSPC. (lock, if there is an entry) */
int emu_ptl_md_create(struct emu_ptl_owner *owner, const struct emu_ptl_md_spec *spec, uint32_t me, uint32_t *md_out);
/* -EBUSY: operations are going on. (lock) */
int emu_ptl_md_unlink(struct emu_ptl_owner *owner, uint32_t md);
/* UNLINK, for a descriptor that is about to be unlinked by the program. (lock) */
void emu_ptl_md_tell_unlink(struct emu_ptl_owner *owner, uint32_t md);
/* -EAGAIN: not while that queue (or EMU_PTL_NONE) has events or promises; -ENOSPC. (lock) */
int emu_ptl_md_update(struct emu_ptl_owner *owner, uint32_t md, const struct emu_ptl_md_spec *spec, uint32_t test_eq);
/* The predicate alone. (lock) */
bool emu_ptl_eq_is_quiet(struct emu_ptl_owner *owner, uint32_t eq);

/* -ENOSPC. capacity is rounded up. */
int emu_ptl_eq_create(struct emu_ptl_owner *owner, uint64_t capacity, uint32_t *eq_out);
/* (lock) */
void emu_ptl_eq_destroy(struct emu_ptl_owner *owner, uint32_t eq);
/* Has somebody put in what has not been taken? Perhaps it is lost: taking tells. Reads one line. */
bool emu_ptl_eq_holds_event(const struct emu_ptl_owner *owner, uint32_t eq);
/* Takes the next event, or with `stays` looks at it. */
enum emu_ptl_take emu_ptl_eq_take(struct emu_ptl_owner *owner, uint32_t eq, bool stays,
                                  struct emu_ptl_event *event_out);

#endif
