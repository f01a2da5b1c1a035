/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core of both libraries: Portals with 32-bit ids, neutral codes and neutral events. A dialect (dialect.h) tells
 * what differs; calls.c, compiled once for each dialect, turns public calls into these.
 *
 * Thread rule: any thread at any time, unless said otherwise. Source: spec/portals3.md 4.
 */
#ifndef LIBPORTALS_CORE_H
#define LIBPORTALS_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/portals.h"
#include "emunic/engine/portals_owner.h"

#define P3_INVALID_HANDLE 0xffffffffu
#define P3_EQ_NONE        0xbfffffffu
#define P3_FOREVER        UINT32_MAX
#define P3_NIS_MAX        EMU_PTL_HANDLE_NIS

enum p3_code {
    P3_OK,
    P3_SEGV,
    P3_NO_INIT,
    P3_IFACE_DUP,
    P3_IFACE_INVALID,
    P3_PID_INVALID,
    P3_NO_SPACE,
    P3_FAIL,
    P3_NI_INVALID,
    P3_HANDLE_INVALID,
    P3_SR_INDEX_INVALID,
    P3_PROCESS_INVALID,
    P3_PT_INDEX_INVALID,
    P3_PT_FULL,
    P3_ME_INVALID,
    P3_ME_IN_USE,
    P3_ME_LIST_TOO_LONG,
    P3_MD_INVALID,
    P3_MD_ILLEGAL,
    P3_MD_IN_USE,
    P3_MD_NO_UPDATE,
    P3_EQ_INVALID,
    P3_EQ_EMPTY,
    P3_EQ_DROPPED,
    P3_AC_INDEX_INVALID,
    P3_CODES,
};

struct p3_limits {
    int max_mes;
    int max_mds;
    int max_eqs;
    int max_ac_index;
    int max_pt_index;
    int max_md_iovecs;
    int max_me_list;
    int max_getput_md;
};

struct p3_id {
    uint32_t nid;
    uint32_t pid; /* EMU_PTL_PID_ANY, whatever its width is outside */
};

/* A descriptor as the program gives it; also as old_md of an update, where start and length are room for segments. */
struct p3_md {
    void *start;
    uint64_t length;
    int threshold;
    uint64_t max_size;
    uint32_t options;
    void *user_ptr;
    uint32_t eq; /* handle */
};

/* The public type has the same layout in both dialects. */
struct p3_iovec {
    void *base;
    uint64_t length;
};

/* ---- library, interfaces ---- */

enum p3_code p3_init(int *max_interfaces);
void p3_fini(void);
/* net: which interface. jid: EMU_PTL_JID_ANY: the domain's. ni_out is written, also with P3_IFACE_DUP. */
enum p3_code p3_ni_init(uint32_t net, uint32_t pid, uint32_t jid, const struct p3_limits *desired,
                        struct p3_limits *actual, uint32_t *ni_out);
enum p3_code p3_ni_fini(uint32_t ni);
enum p3_code p3_ni_status(uint32_t ni, uint32_t reg, uint64_t *value);
enum p3_code p3_ni_distance(uint32_t ni, uint32_t nid, bool has_pid, unsigned long *distance);
enum p3_code p3_ni_handle(uint32_t handle, uint32_t *ni);
enum p3_code p3_ni_check(uint32_t ni);
enum p3_code p3_get_uid(uint32_t ni, uint32_t *uid);
enum p3_code p3_get_id(uint32_t ni, struct p3_id *id);
enum p3_code p3_get_jid(uint32_t ni, uint32_t *jid);
enum p3_code p3_ac_entry(uint32_t ni, uint32_t ac, struct p3_id id, uint32_t uid, uint32_t jid, uint32_t pt);
enum p3_code p3_fail_nid(uint32_t ni, uint32_t nid, uint32_t count);
enum p3_code p3_loopback(uint32_t ni, bool set, int *enabled);
unsigned p3_debug(uint32_t ni, unsigned mask);
enum p3_code p3_dump_table(uint32_t ni, int pt);
enum p3_code p3_dump_me(uint32_t me);
enum p3_code p3_dump_queues(uint32_t ni);
enum p3_code p3_progress(uint32_t handle);
bool p3_is_init(void);
/* Address of the node that this process is on, before any interface; -1. */
int p3_my_nid(uint32_t *nid);

/* ---- match entries, descriptors ---- */

struct p3_match {
    struct p3_id id;
    uint64_t bits;
    uint64_t ignore;
    bool unlinks;
};

enum p3_code p3_me_attach(uint32_t ni, uint32_t pt, const struct p3_match *match, bool at_head, uint32_t *me);
enum p3_code p3_me_attach_any(uint32_t ni, uint32_t *pt, const struct p3_match *match, uint32_t *me);
enum p3_code p3_me_insert(uint32_t base, const struct p3_match *match, bool before, uint32_t *me);
enum p3_code p3_me_unlink(uint32_t me);
enum p3_code p3_md_attach(uint32_t me, const struct p3_md *md, bool unlinks, uint32_t *mdh);
enum p3_code p3_md_bind(uint32_t ni, const struct p3_md *md, bool unlinks, uint32_t *mdh);
enum p3_code p3_md_unlink(uint32_t mdh);
enum p3_code p3_md_update(uint32_t mdh, struct p3_md *old_md, const struct p3_md *new_md, uint32_t test_eq);

/* Entry and descriptor in one. base: EMU_PTL_NONE: at `pt` of `ni`. test_eq: queue that has to be quiet. */
struct p3_post {
    uint32_t ni;
    bool has_base;
    uint32_t base;
    uint32_t pt;
    struct p3_match match;
    bool before;
    struct p3_md md;
    bool md_unlinks;
    uint32_t test_eq;
};
enum p3_code p3_me_md_post(const struct p3_post *post, uint32_t *me, uint32_t *mdh);

/* ---- event queues ---- */

/* The handler is the program's. It is kept and told with each event. */
enum p3_code p3_eq_alloc(uint32_t ni, uint64_t count, void (*handler)(void), uint32_t *eq);

enum p3_code p3_eq_free(uint32_t eq);

struct p3_taken {
    struct emu_ptl_event event;
    int which;
    void (*handler)(void); /* to be called with the event, or NULL */
};
/* P3_OK, P3_EQ_DROPPED: taken. P3_EQ_INVALID: taken->which is the position of the bad handle, or -1. */
enum p3_code p3_eq_poll(const uint32_t *eqs, int n, uint32_t timeout_ms, struct p3_taken *taken);
enum p3_code p3_eq_peek(uint32_t eq, struct p3_taken *taken);

/* ---- data movement ---- */

struct p3_operation {
    enum emu_ptl_request_kind kind;
    bool wants_ack;
    bool is_whole;    /* all of the descriptor (getput: of put_md), not offset and length */
    bool on_own_node; /* the target has to be there */
    uint32_t md;      /* handle: put: source; get, getput: where the reply goes */
    uint32_t put_md;  /* getput */
    uint64_t local_offset;
    uint64_t put_offset;
    uint64_t length;
    struct p3_id target;
    uint32_t pt;
    uint32_t ac;
    uint64_t bits;
    uint64_t offset;
    uint64_t hdr_data;
};
enum p3_code p3_move(const struct p3_operation *operation);
/*
 * A put without acknowledgement that is over when this returns; *is_over false: it cannot be, and nothing has happened.
 * put: all but the descriptor's place, which is filled in.
 */
enum p3_code p3_put_at_once(uint32_t md, struct emu_ptl_send *put, bool *is_over);

#endif
