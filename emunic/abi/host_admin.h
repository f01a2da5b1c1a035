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

#include <assert.h>
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

static const struct emu_field emu_host_admin_fields[] = {
    EMU_FIELD_RANGE(struct emu_host_admin, op, 1, EMU_HOST_ADMIN_OPS - 1),
    EMU_FIELD(struct emu_host_admin, type),
    EMU_FIELD_ZERO(4),
    EMU_FIELD(struct emu_host_admin, token),
    EMU_FIELD(struct emu_host_admin, first),
    EMU_FIELD_RANGE(struct emu_host_admin, total, 0, EMU_HOST_ADMIN_WORDS_MAX),
};

/* Of words [m->first, m->first + m->n) of a list. Bytes of the message. */
static inline uint32_t emu_host_admin_put(uint8_t message[EMU_HOST_ADMIN_BYTES_MAX], const struct emu_host_admin *m,
                                          const uint64_t *list)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_ADMIN, 0);

    at = emu_fields_put(at, EMU_FIELDS(emu_host_admin_fields), m);
    for (uint32_t i = 0; i < m->n; i++)
        at = emu_wire_put64(at, list[m->first + i]);
    return EMU_HOST_ADMIN_HEAD_BYTES + 8 * m->n;
}

static inline bool emu_host_admin_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_admin *m_out)
{
    struct emu_host_admin m;

    if (length_bytes < EMU_HOST_ADMIN_HEAD_BYTES || length_bytes > EMU_HOST_ADMIN_BYTES_MAX || length_bytes % 8 != 0 ||
        emu_host_domain_of(message) != 0 ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_admin_fields), &m))
        return false;
    m.n = (length_bytes - EMU_HOST_ADMIN_HEAD_BYTES) / 8;
    m.words = message + EMU_HOST_ADMIN_HEAD_BYTES;
    if (m.first > m.total || m.n > m.total - m.first || (m.n == 0) != (m.first == m.total))
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

/* Writes the fields of `from`, a word each, in the order of the table. */
static inline void emu_words_put(uint64_t *words, const struct emu_field *fields, unsigned n, const void *from)
{
    for (unsigned i = 0; i < n; i++)
        words[i] = emu_field_load(&fields[i], from);
}

/* Takes a word for each field. Of a word that is out of its field's bounds, and of all behind it, comes 0. */
static inline void emu_words_parse(struct emu_words *w, const struct emu_field *fields, unsigned n, void *to)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t most = UINT64_MAX >> (64 - 8 * fields[i].bytes);

        emu_field_store(&fields[i], to, emu_words_take(w, fields[i].last < most ? fields[i].last : most));
    }
}

#define EMU_HOST_RULE_WORDS 21u

static const struct emu_field emu_host_rule_fields[] = {
    EMU_FIELD(struct emu_fault_rule, id),          EMU_FIELD(struct emu_fault_rule, classes),
    EMU_FIELD(struct emu_fault_rule, action),      EMU_FIELD(struct emu_fault_rule, status),
    EMU_FIELD(struct emu_fault_rule, category),    EMU_FIELD(struct emu_fault_rule, flags),
    EMU_FIELD(struct emu_fault_rule, seed),        EMU_FIELD(struct emu_fault_rule, from_nid),
    EMU_FIELD(struct emu_fault_rule, to_nid),      EMU_FIELD(struct emu_fault_rule, from_instance),
    EMU_FIELD(struct emu_fault_rule, to_instance), EMU_FIELD(struct emu_fault_rule, rate_ppb),
    EMU_FIELD(struct emu_fault_rule, live_min),    EMU_FIELD(struct emu_fault_rule, nth),
    EMU_FIELD(struct emu_fault_rule, every),       EMU_FIELD(struct emu_fault_rule, after),
    EMU_FIELD(struct emu_fault_rule, count),       EMU_FIELD(struct emu_fault_rule, start_ns),
    EMU_FIELD(struct emu_fault_rule, end_ns),      EMU_FIELD(struct emu_fault_rule, delay_ns),
};

/* age_ns: since the rule was set, the last word. */
static inline void emu_host_rule_put(uint64_t words[EMU_HOST_RULE_WORDS], const struct emu_fault_rule *r,
                                     uint64_t age_ns)
{
    emu_words_put(words, EMU_FIELDS(emu_host_rule_fields), r);
    words[EMU_HOST_RULE_WORDS - 1] = age_ns;
}

/* Whether the rule makes sense is not checked here. */
static inline void emu_host_rule_take(struct emu_words *w, struct emu_fault_rule *rule_out, uint64_t *age_ns_out)
{
    struct emu_fault_rule r = { 0 };

    emu_words_parse(w, EMU_FIELDS(emu_host_rule_fields), &r);
    *age_ns_out = emu_words_take(w, INT64_MAX);
    *rule_out = r;
}

#define EMU_HOST_NETWORK_WORDS 5u

static const struct emu_field emu_host_network_fields[] = {
    EMU_FIELD(struct emu_msg_network, thing),
    EMU_FIELD(struct emu_msg_network, index),
    EMU_FIELD(struct emu_msg_network, lane_mask),
    EMU_FIELD(struct emu_msg_network, flags),
    EMU_FIELD_RANGE(struct emu_msg_network, after_ns, 0, INT64_MAX),
};

static inline void emu_host_network_put(uint64_t words[EMU_HOST_NETWORK_WORDS], const struct emu_msg_network *n)
{
    emu_words_put(words, EMU_FIELDS(emu_host_network_fields), n);
}

static inline void emu_host_network_take(struct emu_words *w, struct emu_msg_network *network_out)
{
    *network_out = (struct emu_msg_network){ 0 };
    emu_words_parse(w, EMU_FIELDS(emu_host_network_fields), network_out);
}

#define EMU_HOST_JOB_WORDS 18u

static const struct emu_field emu_host_job_fields[] = {
    EMU_FIELD(struct emu_msg_job, job_id),      EMU_FIELD(struct emu_msg_job, ptag),
    EMU_FIELD(struct emu_msg_job, cookie),      EMU_FIELD(struct emu_msg_job, flags),
    EMU_FIELD(struct emu_msg_job, timeout_ms),  EMU_FIELD(struct emu_msg_job, mdd_limit),
    EMU_FIELD(struct emu_msg_job, cq_limit),    EMU_FIELD(struct emu_msg_job, fma_limit),
    EMU_FIELD(struct emu_msg_job, bte_limit),   EMU_FIELD(struct emu_msg_job, ce_limit),
    EMU_FIELD(struct emu_msg_job, iommu_limit), EMU_FIELD(struct emu_msg_job, ntt_base),
    EMU_FIELD(struct emu_msg_job, ntt_size),    EMU_FIELD(struct emu_msg_job, group_size),
    EMU_FIELD(struct emu_msg_job, granularity), EMU_FIELD(struct emu_msg_job, nid_wanted),
    EMU_FIELD(struct emu_msg_job, mrt_limit),   EMU_FIELD(struct emu_msg_job, gart_limit),
};

static inline void emu_host_job_put(uint64_t words[EMU_HOST_JOB_WORDS], const struct emu_msg_job *j)
{
    emu_words_put(words, EMU_FIELDS(emu_host_job_fields), j);
}

static inline void emu_host_job_take(struct emu_words *w, struct emu_msg_job *job_out)
{
    *job_out = (struct emu_msg_job){ 0 };
    emu_words_parse(w, EMU_FIELDS(emu_host_job_fields), job_out);
}

#define EMU_HOST_NTT_WORDS 3u

static const struct emu_field emu_host_ntt_fields[] = {
    EMU_FIELD(struct emu_ntt_entry, blck_addr),
    EMU_FIELD(struct emu_ntt_entry, rplc_addr),
    EMU_FIELD(struct emu_ntt_entry, rplc_size),
};

static inline void emu_host_ntt_put(uint64_t words[EMU_HOST_NTT_WORDS], const struct emu_ntt_entry *e)
{
    emu_words_put(words, EMU_FIELDS(emu_host_ntt_fields), e);
}

static inline void emu_host_ntt_take(struct emu_words *w, struct emu_ntt_entry *entry_out)
{
    emu_words_parse(w, EMU_FIELDS(emu_host_ntt_fields), entry_out);
}

/* ---- EMU_HOST_ADMIN_ERROR: domain, events lost before it, record ---- */

#define EMU_HOST_ERROR_WORDS 9u

struct emu_host_error {
    uint32_t domain;
    uint32_t n_lost;
    struct emu_error_record record; /* its ptag and serial are the receiver's to give */
};

static const struct emu_field emu_host_error_fields[] = {
    EMU_FIELD(struct emu_host_error, domain),
    EMU_FIELD(struct emu_host_error, n_lost),
    EMU_FIELD_RANGE(struct emu_host_error, record.code, 0, EMU_ERROR_ROUTES),
    EMU_FIELD(struct emu_host_error, record.category),
    EMU_FIELD(struct emu_host_error, record.timestamp_ns),
    EMU_FIELD(struct emu_host_error, record.info[0]),
    EMU_FIELD(struct emu_host_error, record.info[1]),
    EMU_FIELD(struct emu_host_error, record.info[2]),
    EMU_FIELD(struct emu_host_error, record.info[3]),
};

static inline void emu_host_error_put(uint64_t words[EMU_HOST_ERROR_WORDS], const struct emu_host_error *e)
{
    emu_words_put(words, EMU_FIELDS(emu_host_error_fields), e);
}

static inline bool emu_host_error_take(struct emu_words *w, struct emu_host_error *error_out)
{
    struct emu_host_error e = { 0 };

    emu_words_parse(w, EMU_FIELDS(emu_host_error_fields), &e);
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

/* The two words behind them: memory domain << 16 | generation, and the flags. */
static const struct emu_field emu_host_target_fields[] = {
    EMU_FIELD(struct emu_host_target, domain),
    EMU_FIELD(struct emu_host_target, rule),
    EMU_FIELD_RANGE(struct emu_host_target, from_nid, 0, EMU_NID_MAX),
    EMU_FIELD_RANGE(struct emu_host_target, nid, 0, EMU_NID_MAX),
    EMU_FIELD(struct emu_host_target, pid),
    EMU_FIELD(struct emu_host_target, base),
};

static inline void emu_host_target_put(uint64_t words[EMU_HOST_TARGET_WORDS], const struct emu_host_target *t)
{
    emu_words_put(words, EMU_FIELDS(emu_host_target_fields), t);
    words[6] = (uint64_t)t->mdh << 16 | t->generation;
    words[7] = t->handle_flags;
}

static inline bool emu_host_target_take(struct emu_words *w, struct emu_host_target *target_out)
{
    struct emu_host_target t;
    uint64_t handle;

    emu_words_parse(w, EMU_FIELDS(emu_host_target_fields), &t);
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
    EMU_HOST_ROW_ATOMICS, /* of the node before, where caches of atomics are used: commands, hits, host reads, writes */
    EMU_HOST_ROW_USER,    /* uid, requests, then use, limit and refusals of each kind; behind HOST, in their order */
};

#endif
