/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Portals 3.3 says has to happen, in as few words of C as that takes: match lists, descriptors, queues and memory
 * of a few interfaces, where every operation is whole before the next begins. Written from the specification (1.4 to
 * 1.9, 3.3, 4.4, 4.5, 4.8, 4.9, 5) without a look at the engine, and slow on purpose: lists are arrays, every search
 * goes from the start.
 *
 * What the specification leaves open is left open here: events of the two sides of one operation may be mixed in a
 * queue that both use, so each expected event names its stream; within a stream the order is fixed. `link` is known by
 * equality only.
 *
 * The types and constants are those of the public header; tests/common/portals_profile.h chooses the profile.
 */
#ifndef TESTS_PROPERTY_MODEL_H
#define TESTS_PROPERTY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/common/portals_profile.h"

#define MODEL_NIS         4u
#define MODEL_PTS         64u
#define MODEL_ACS         8u
#define MODEL_LIST_MAX    128u
#define MODEL_MES         256u
#define MODEL_MDS         256u
#define MODEL_EQS         8u
#define MODEL_SEGMENTS    8u
#define MODEL_EVENTS      4096u
#define MODEL_ARENA_BYTES 32768u
#define MODEL_NONE        (-1)

struct model_event {
    ptl_event_t event;     /* as expected; `link` and `sequence` are not filled */
    uint64_t stream;       /* order is fixed among events of one stream */
    uint64_t operation;    /* events of one operation share their link */
    uint64_t call;         /* what calls bring about comes in the order of the calls */
    bool is_manual_unlink; /* only type, md_handle and md.user_ptr are said */
    bool is_get_sent;      /* SEND of a get: mlength is not said */
};

struct model_eq {
    bool in_use;
    ptl_handle_eq_t handle;
    unsigned n_events;
    struct model_event events[MODEL_EVENTS];
};

struct model_me {
    bool in_use;
    ptl_handle_me_t handle;
    unsigned pt;
    ptl_process_id_t id;
    ptl_match_bits_t bits;
    ptl_match_bits_t ignore;
    bool unlinks;
    int md; /* or MODEL_NONE */
};

struct model_segment {
    uint64_t at; /* in the arena */
    uint64_t bytes;
};

struct model_md {
    bool in_use;
    ptl_handle_md_t handle;
    int me;      /* or MODEL_NONE: bound */
    int eq;      /* or MODEL_NONE */
    ptl_md_t md; /* as given */
    struct model_segment segments[MODEL_SEGMENTS];
    unsigned n_segments;
    uint64_t total;
    int threshold;
    bool is_active;
    bool unlinks;
    uint64_t offset;      /* local */
    unsigned replies_due; /* of gets under way */
};

struct model_ac {
    ptl_process_id_t id;
    ptl_uid_t uid;
    ptl_jid_t jid;
    ptl_pt_index_t pt;
};

struct model_ni {
    ptl_process_id_t id;
    ptl_uid_t uid;
    ptl_jid_t jid;
    uint64_t arena_addr; /* in its own process */
    uint8_t arena[MODEL_ARENA_BYTES];
    uint64_t drops;
    bool was_used[MODEL_PTS];
    unsigned n_listed[MODEL_PTS];
    int lists[MODEL_PTS][MODEL_LIST_MAX];
    struct model_me mes[MODEL_MES];
    struct model_md mds[MODEL_MDS];
    struct model_eq eqs[MODEL_EQS];
    struct model_ac acs[MODEL_ACS];
};

struct model {
    unsigned n_nis;
    uint64_t n_operations;
    uint64_t n_streams;
    uint64_t n_calls;
    struct model_ni nis[MODEL_NIS];
};

enum model_kind { MODEL_PUT, MODEL_GET, MODEL_GETPUT };

/* A call of PtlPut() and its relatives. */
struct model_call {
    enum model_kind kind;
    int md;     /* what is sent, or where a reply goes */
    int put_md; /* getput: what is sent */
    uint64_t local_offset;
    uint64_t put_offset;
    uint64_t length;
    bool wants_ack;
    unsigned target; /* number of the interface; its id is in there */
    ptl_pt_index_t pt;
    ptl_ac_index_t ac;
    ptl_match_bits_t bits;
    uint64_t remote_offset;
    ptl_hdr_data_t hdr_data;
};

void model_init(struct model *m);
struct model_ni *model_ni_add(struct model *m, ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid, uint64_t arena_addr);

/*
 * The calls, with their return codes. Objects are named by their place in the tables, which stays theirs for ever: the
 * tables are refilled from the start only where nothing is in use. Handles are filled in by whoever asked the library
 * for the same thing.
 */
int model_me_attach(struct model_ni *ni, ptl_pt_index_t pt, ptl_process_id_t id, ptl_match_bits_t bits,
                    ptl_match_bits_t ignore, bool unlinks, ptl_ins_pos_t position, int *me_out);
int model_me_attach_any(struct model_ni *ni, ptl_pt_index_t *pt_out, ptl_process_id_t id, ptl_match_bits_t bits,
                        ptl_match_bits_t ignore, bool unlinks, int *me_out);
int model_me_insert(struct model_ni *ni, int base, ptl_process_id_t id, ptl_match_bits_t bits, ptl_match_bits_t ignore,
                    bool unlinks, ptl_ins_pos_t position, int *me_out);
int model_me_unlink(struct model *m, struct model_ni *ni, int me);
/* me MODEL_NONE: PtlMDBind. The descriptor's memory lies in the arena. */
int model_md_create(struct model_ni *ni, int me, const ptl_md_t *md, int eq, bool unlinks, int *md_out);
int model_md_unlink(struct model *m, struct model_ni *ni, int md);
int model_md_update(struct model_ni *ni, int md, const ptl_md_t *new_md, int eq, int testq);
int model_eq_alloc(struct model_ni *ni, int *eq_out);
void model_eq_free(struct model_ni *ni, int eq);
int model_ac_entry(struct model_ni *ni, ptl_ac_index_t ac, ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid,
                   ptl_pt_index_t pt);
int model_move(struct model *m, struct model_ni *from, const struct model_call *call);
/* Would the target take it? */
bool model_is_accepted(struct model *m, struct model_ni *from, const struct model_call *call);

/*
 * An event that a queue has given: the expected one is taken off the model's queue, or NULL if nothing like it may come
 * now. `why_out` says what differs from the nearest one.
 */
bool model_event_take(struct model_ni *ni, int eq, const ptl_event_t *event, struct model_event *taken_out, char *why,
                      size_t why_bytes);

#endif
