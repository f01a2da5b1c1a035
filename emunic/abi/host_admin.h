/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EMU_HOST_ADMIN: how the emunics of several hosts are administered as one machine (emunic/daemon/orders/orders.h).
 *
 *   asked host                     head                          every other host
 *        ASK    ------------------> does it, numbers it
 *                                   APPLY  ----------------------> does it, too
 *                                          <---------------------  DONE
 *               <------------------ RESULT
 *        FORGET -------------------> who has asked does not wait any more
 *
 *   any host   REPORT  ---------->  any other
 *              <----------   ROWS   a part of what was asked for; the next REPORT asks for the next one
 *   head       STATE   ---------->  a host that has come up: what has been changed before
 *   any        LISTEN  ---------->  any other: subscribers here want to hear of errors there, or not any more
 *              <----------   HEARS  done
 *              ERROR   ---------->  a listener
 *   initiator  WHO     ---------->  whose memory, or interface, is it that a fault rule asks about?
 *              <----------   OWNER
 *              KILL    ---------->  a fault rule ends the process that owns it
 *   any        PING    ---------->  any other: do you answer?
 *              <----------   PONG
 *   any        PRESENCE ---------->  head: does a declared job have processes, and NIC handles, there?
 *
 *   byte 0      8    10     12     16      24      28
 *        | head | op | type | zero | token | first | total | words of 64 bits ...
 *
 * Network byte order, as all messages. Whatever is said is a list of `total` words of which a message has those from
 * `first` on; parts of one list follow each other. `token` is the sender's, and comes back with the answer. `type` is
 * enum emu_msg_type of a request, or the report wanted.
 */
#ifndef EMUNIC_ABI_HOST_ADMIN_H
#define EMUNIC_ABI_HOST_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/control.h"
#include "emunic/abi/error.h"
#include "emunic/abi/fault.h"
#include "emunic/abi/host_message.h"

enum emu_host_admin_op {
    EMU_HOST_ADMIN_ASK = 1,
    EMU_HOST_ADMIN_RESULT,
    EMU_HOST_ADMIN_FORGET,
    EMU_HOST_ADMIN_APPLY,
    EMU_HOST_ADMIN_DONE,
    EMU_HOST_ADMIN_STATE,
    EMU_HOST_ADMIN_REPORT,
    EMU_HOST_ADMIN_ROWS,
    EMU_HOST_ADMIN_LISTEN,
    EMU_HOST_ADMIN_HEARS,
    EMU_HOST_ADMIN_ERROR,
    EMU_HOST_ADMIN_WHO,
    EMU_HOST_ADMIN_OWNER,
    EMU_HOST_ADMIN_KILL,
    EMU_HOST_ADMIN_PRESENCE,
    EMU_HOST_ADMIN_PING,
    EMU_HOST_ADMIN_PONG,
    EMU_HOST_ADMIN_OPS
};

#define EMU_HOST_ADMIN_HEAD_BYTES 32u
#define EMU_HOST_ADMIN_WORDS      1536u      /* of one message */
#define EMU_HOST_ADMIN_WORDS_MAX  (1u << 24) /* of one list */
#define EMU_HOST_ADMIN_BYTES_MAX  (EMU_HOST_ADMIN_HEAD_BYTES + 8u * EMU_HOST_ADMIN_WORDS)
static_assert(EMU_HOST_ADMIN_BYTES_MAX <= EMU_HOST_MESSAGE_MAX, "words fit a message");

struct emu_host_admin {
    uint16_t op; /* enum emu_host_admin_op */
    uint16_t type;
    uint64_t token;
    uint32_t first;
    uint32_t total;
    uint32_t n;           /* words of this message */
    const uint8_t *words; /* of a parsed one: in the message */
};

/* Of words [m->first, m->first + m->n) of a list. Bytes of the message. */
static inline uint32_t emu_host_admin_put(uint8_t message[EMU_HOST_ADMIN_BYTES_MAX], const struct emu_host_admin *m,
                                          const uint64_t *list)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_ADMIN, 0);

    at = emu_wire_put16(at, m->op);
    at = emu_wire_put16(at, m->type);
    at = emu_wire_put32(at, 0);
    at = emu_wire_put64(at, m->token);
    at = emu_wire_put32(at, m->first);
    at = emu_wire_put32(at, m->total);
    for (uint32_t i = 0; i < m->n; i++)
        at = emu_wire_put64(at, list[m->first + i]);
    return EMU_HOST_ADMIN_HEAD_BYTES + 8 * m->n;
}

static inline bool emu_host_admin_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_admin *m_out)
{
    struct emu_host_admin m;

    if (length_bytes < EMU_HOST_ADMIN_HEAD_BYTES || length_bytes > EMU_HOST_ADMIN_BYTES_MAX || length_bytes % 8 != 0)
        return false;
    m = (struct emu_host_admin){
        .op = (uint16_t)(message[8] << 8 | message[9]),
        .type = (uint16_t)(message[10] << 8 | message[11]),
        .token = emu_wire_get64(message + 16),
        .first = emu_wire_get32(message + 24),
        .total = emu_wire_get32(message + 28),
        .n = (length_bytes - EMU_HOST_ADMIN_HEAD_BYTES) / 8,
        .words = message + EMU_HOST_ADMIN_HEAD_BYTES,
    };
    if (m.op == 0 || m.op >= EMU_HOST_ADMIN_OPS || emu_wire_get32(message + 4) != 0 ||
        emu_wire_get32(message + 12) != 0 || m.total > EMU_HOST_ADMIN_WORDS_MAX || m.first > m.total ||
        m.n > m.total - m.first || (m.n == 0) != (m.first == m.total))
        return false;
    *m_out = m;
    return true;
}

static inline uint64_t emu_host_admin_word(const struct emu_host_admin *m, uint32_t i)
{
    return emu_wire_get64(m->words + 8 * i);
}

/* ---- what requests are about, as words ---- */

/* Takes words one after the other; a word that is none of its field makes all of it bad. */
struct emu_words {
    const uint64_t *at;
    uint32_t left;
    bool is_bad;
};

static inline uint64_t emu_words_take(struct emu_words *w, uint64_t max)
{
    uint64_t word;

    if (w->left == 0 || w->is_bad) {
        w->is_bad = true;
        return 0;
    }
    word = *w->at++;
    w->left--;
    if (word > max) {
        w->is_bad = true;
        return 0;
    }
    return word;
}

/* Of a signed number of 32 bits. */
static inline int32_t emu_words_take_int(struct emu_words *w)
{
    return (int32_t)(uint32_t)emu_words_take(w, UINT32_MAX);
}

#define EMU_HOST_RULE_WORDS 21u

/* age_ns: since the rule was set. */
static inline void emu_host_rule_put(uint64_t words[EMU_HOST_RULE_WORDS], const struct emu_fault_rule *r,
                                     uint64_t age_ns)
{
    const uint64_t all[EMU_HOST_RULE_WORDS] = {
        r->id,       r->classes, r->action,        r->status,      r->category, r->flags,    r->seed,
        r->from_nid, r->to_nid,  r->from_instance, r->to_instance, r->rate_ppb, r->live_min, r->nth,
        r->every,    r->after,   r->count,         r->start_ns,    r->end_ns,   r->delay_ns, age_ns,
    };

    memcpy(words, all, sizeof(all));
}

/* Whether the rule makes sense is not checked here. */
static inline void emu_host_rule_take(struct emu_words *w, struct emu_fault_rule *rule_out, uint64_t *age_ns_out)
{
    struct emu_fault_rule r = { 0 };

    r.id = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.classes = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.action = (uint8_t)emu_words_take(w, UINT8_MAX);
    r.status = (uint8_t)emu_words_take(w, UINT8_MAX);
    r.category = (uint8_t)emu_words_take(w, UINT8_MAX);
    r.flags = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.seed = emu_words_take(w, UINT64_MAX);
    r.from_nid = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.to_nid = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.from_instance = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.to_instance = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.rate_ppb = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.live_min = (uint32_t)emu_words_take(w, UINT32_MAX);
    r.nth = emu_words_take(w, UINT64_MAX);
    r.every = emu_words_take(w, UINT64_MAX);
    r.after = emu_words_take(w, UINT64_MAX);
    r.count = emu_words_take(w, UINT64_MAX);
    r.start_ns = emu_words_take(w, UINT64_MAX);
    r.end_ns = emu_words_take(w, UINT64_MAX);
    r.delay_ns = emu_words_take(w, UINT64_MAX);
    *age_ns_out = emu_words_take(w, INT64_MAX);
    *rule_out = r;
}

#define EMU_HOST_NETWORK_WORDS 5u

static inline void emu_host_network_put(uint64_t words[EMU_HOST_NETWORK_WORDS], const struct emu_msg_network *n)
{
    const uint64_t all[EMU_HOST_NETWORK_WORDS] = { n->thing, n->index, n->lane_mask, n->flags, n->after_ns };

    memcpy(words, all, sizeof(all));
}

static inline void emu_host_network_take(struct emu_words *w, struct emu_msg_network *network_out)
{
    *network_out = (struct emu_msg_network){ 0 };
    network_out->thing = (uint32_t)emu_words_take(w, UINT32_MAX);
    network_out->index = (uint32_t)emu_words_take(w, UINT32_MAX);
    network_out->lane_mask = (uint32_t)emu_words_take(w, UINT32_MAX);
    network_out->flags = (uint32_t)emu_words_take(w, UINT32_MAX);
    network_out->after_ns = emu_words_take(w, INT64_MAX);
}

#define EMU_HOST_JOB_WORDS 18u

static inline void emu_host_job_put(uint64_t words[EMU_HOST_JOB_WORDS], const struct emu_msg_job *j)
{
    const uint64_t all[EMU_HOST_JOB_WORDS] = {
        j->job_id,
        j->ptag,
        j->cookie,
        j->flags,
        j->timeout_ms,
        (uint32_t)j->mdd_limit,
        (uint32_t)j->cq_limit,
        (uint32_t)j->fma_limit,
        (uint32_t)j->bte_limit,
        (uint32_t)j->ce_limit,
        (uint32_t)j->iommu_limit,
        (uint32_t)j->ntt_base,
        (uint32_t)j->ntt_size,
        j->group_size,
        j->granularity,
        j->nid_wanted,
        (uint32_t)j->mrt_limit,
        (uint32_t)j->gart_limit,
    };

    memcpy(words, all, sizeof(all));
}

static inline void emu_host_job_take(struct emu_words *w, struct emu_msg_job *job_out)
{
    struct emu_msg_job j = { 0 };

    j.job_id = emu_words_take(w, UINT64_MAX);
    j.ptag = (uint32_t)emu_words_take(w, UINT32_MAX);
    j.cookie = (uint32_t)emu_words_take(w, UINT32_MAX);
    j.flags = (uint32_t)emu_words_take(w, UINT32_MAX);
    j.timeout_ms = (uint32_t)emu_words_take(w, UINT32_MAX);
    j.mdd_limit = emu_words_take_int(w);
    j.cq_limit = emu_words_take_int(w);
    j.fma_limit = emu_words_take_int(w);
    j.bte_limit = emu_words_take_int(w);
    j.ce_limit = emu_words_take_int(w);
    j.iommu_limit = emu_words_take_int(w);
    j.ntt_base = emu_words_take_int(w);
    j.ntt_size = emu_words_take_int(w);
    j.group_size = (uint32_t)emu_words_take(w, UINT32_MAX);
    j.granularity = (uint32_t)emu_words_take(w, UINT32_MAX);
    j.nid_wanted = (uint32_t)emu_words_take(w, UINT32_MAX);
    j.mrt_limit = emu_words_take_int(w);
    j.gart_limit = emu_words_take_int(w);
    *job_out = j;
}

#define EMU_HOST_NTT_WORDS 3u

static inline void emu_host_ntt_put(uint64_t words[EMU_HOST_NTT_WORDS], const struct emu_ntt_entry *e)
{
    words[0] = e->blck_addr;
    words[1] = e->rplc_addr;
    words[2] = e->rplc_size;
}

static inline void emu_host_ntt_take(struct emu_words *w, struct emu_ntt_entry *entry_out)
{
    entry_out->blck_addr = (uint32_t)emu_words_take(w, UINT32_MAX);
    entry_out->rplc_addr = (uint32_t)emu_words_take(w, UINT32_MAX);
    entry_out->rplc_size = (uint32_t)emu_words_take(w, UINT32_MAX);
}

/* ---- EMU_HOST_ADMIN_ERROR: domain, events lost before it, record ---- */

#define EMU_HOST_ERROR_WORDS 9u

struct emu_host_error {
    uint32_t domain;
    uint32_t n_lost;
    struct emu_error_record record; /* its ptag and serial are the receiver's to give */
};

static inline void emu_host_error_put(uint64_t words[EMU_HOST_ERROR_WORDS], const struct emu_host_error *e)
{
    words[0] = e->domain;
    words[1] = e->n_lost;
    words[2] = e->record.code;
    words[3] = e->record.category;
    words[4] = e->record.timestamp_ns;
    for (unsigned i = 0; i < 4; i++)
        words[5 + i] = e->record.info[i];
}

static inline bool emu_host_error_take(struct emu_words *w, struct emu_host_error *error_out)
{
    struct emu_host_error e = { 0 };

    e.domain = (uint32_t)emu_words_take(w, UINT32_MAX);
    e.n_lost = (uint32_t)emu_words_take(w, UINT32_MAX);
    e.record.code = (uint16_t)emu_words_take(w, EMU_ERROR_ROUTES);
    e.record.category = (uint8_t)emu_words_take(w, UINT8_MAX);
    e.record.timestamp_ns = emu_words_take(w, UINT64_MAX);
    for (unsigned i = 0; i < 4; i++)
        e.record.info[i] = emu_words_take(w, UINT64_MAX);
    /* Exactly one category. */
    if (w->is_bad || w->left != 0 || e.record.code == 0 || e.record.category == 0 ||
        (e.record.category & (e.record.category - 1)) != 0)
        return false;
    *error_out = e;
    return true;
}

/* ---- EMU_HOST_ADMIN_WHO, _KILL: what a fault rule asks about ---- */

#define EMU_HOST_TARGET_WORDS 8u

struct emu_host_target {
    uint32_t domain;
    uint32_t rule;     /* KILL: id of the rule */
    uint32_t from_nid; /* the initiator's node */
    uint32_t nid;      /* physical, of the receiver's host */
    uint32_t pid;      /* of a Portals interface; UINT32_MAX: it is memory */
    uint64_t base;     /* memory: as in a command */
    uint16_t mdh;
    uint16_t generation;
    uint8_t handle_flags; /* EMU_HOST_HANDLE_FLAGS */
};

static inline void emu_host_target_put(uint64_t words[EMU_HOST_TARGET_WORDS], const struct emu_host_target *t)
{
    words[0] = t->domain;
    words[1] = t->rule;
    words[2] = t->from_nid;
    words[3] = t->nid;
    words[4] = t->pid;
    words[5] = t->base;
    words[6] = (uint64_t)t->mdh << 16 | t->generation;
    words[7] = t->handle_flags;
}

static inline bool emu_host_target_take(struct emu_words *w, struct emu_host_target *target_out)
{
    struct emu_host_target t;
    uint64_t handle;

    t.domain = (uint32_t)emu_words_take(w, UINT32_MAX);
    t.rule = (uint32_t)emu_words_take(w, UINT32_MAX);
    t.from_nid = (uint32_t)emu_words_take(w, EMU_NID_MAX);
    t.nid = (uint32_t)emu_words_take(w, EMU_NID_MAX);
    t.pid = (uint32_t)emu_words_take(w, UINT32_MAX);
    t.base = emu_words_take(w, UINT64_MAX);
    handle = emu_words_take(w, UINT32_MAX);
    t.mdh = (uint16_t)(handle >> 16);
    t.generation = (uint16_t)handle;
    t.handle_flags = (uint8_t)emu_words_take(w, UINT8_MAX);
    if (w->is_bad || w->left != 0 || (t.handle_flags & ~EMU_HOST_HANDLE_FLAGS) != 0)
        return false;
    *target_out = t;
    return true;
}

/* ---- EMU_HOST_ADMIN_ROWS: rows, each a kind and its words ---- */

#define EMU_HOST_STATUS_WORDS_MAX (1u << 20) /* of a status; other lists hold EMU_HOST_ADMIN_WORDS_MAX */
#define EMU_HOST_TEXT_MAX         255u
#define EMU_HOST_PORT_COUNTS      17u /* their names: emunic/daemon/reports/status.c */

enum emu_host_text {
    EMU_HOST_TEXT_PROCESSORS, /* that it runs on */
    EMU_HOST_TEXT_WHY,
    EMU_HOST_TEXTS
};

enum emu_host_row {
    EMU_HOST_ROW_FLOW = 1, /* domain, source nid, target nid, then struct emu_flow_counts in its order */
    EMU_HOST_ROW_LINK,     /* link, packets, flits */
    EMU_HOST_ROW_RULE,     /* domain, rule, seen, hits */
    EMU_HOST_ROW_TOO_MANY, /* alone: the host has more to tell than a list holds */
    /* Status: HOST comes first, nodes and ports behind their domain. */
    EMU_HOST_ROW_HOST,      /* pid, uptime in ms, rounds, sleeps */
    EMU_HOST_ROW_TEXT,      /* enum emu_host_text, length, then its bytes: 8 to a word, the first in the lowest */
    EMU_HOST_ROW_UNREACHED, /* a host that it has no session with; in their order */
    EMU_HOST_ROW_DOMAIN,    /* number (0: it is of that host alone), id, ptag, cookie, uid, ranks, members,
                                   attached, member limit, is ending, fault rules */
    EMU_HOST_ROW_NODE,      /* nid, memory domains there; of that host alone, in their order */
    EMU_HOST_ROW_PORT,      /* index, nid, instance id, pid, then EMU_HOST_PORT_COUNTS; in their order */
};

#endif
