/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host that means harm: it has the machine's key and speaks the transport, but what it sends is random, or nearly
 * right.
 *
 * Three hosts: two are emunics, the third is a process of this test. For EMU_FUZZ_SECONDS (60) it sends mutated
 * commands, answers, domains, news of reduction trees, words about administration and noise to both. A domain spans all
 * three, so that its commands get as far as any; it is told a registration there, between guards, and commands are
 * posted to it, whose answers are as bad as its own commands; reduction trees there have an engine and leaves of its.
 * In another domain, where it has no node, data are put and reduced between the two emunics and everything is checked.
 * At the end both emunics must be alive, the guards whole, the transfers and reductions right, and the emunics must end
 * cleanly.
 * EMU_TEST_SEED repeats the choices of a run.
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/abi/host_admin.h"
#include "emunic/abi/host_ce.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/transport/inner.h"
#include "tests/common/gni.h"
#include "tests/common/seed.h"
#include "tests/conformance/tree.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/duration.h"

#define HOSTILE_HOST   2u
#define HOSTILE_NID    2u
#define HOSTILE_PTAG   99u
#define HOSTILE_COOKIE 0x666u
#define GUARD_BYTES    4096u
#define OPEN_BYTES     8192u
#define CORPUS         32u
#define PER_ROUND      16u

static struct fx fx;
static struct emu_random seed;

/* Of all processes. */
static struct common {
    _Atomic uint32_t domain; /* number of the hostile host's domain; 0: not told yet */
    _Atomic uint64_t sent;
    _Atomic uint64_t received;
    _Atomic uint64_t good_answers; /* commands of the hostile host that were done */
    _Atomic uint64_t good_posts;   /* contributions of its that were taken */
    _Atomic uint64_t ups;          /* partial results for its engine */
    _Atomic uint64_t sessions;
    _Atomic bool is_over;
    uint64_t open_addr;       /* the registration that it is told of, on node 0 */
    _Atomic uint64_t checked; /* transfers of the good processes */
    _Atomic uint64_t bad;
} * common;

/* ---- the hostile host ---- */

static struct emu_transport *transport;
static struct emu_host_blob blobs[2];
static bool is_up[2];
static bool owes_answer[2]; /* it goes first */
static uint8_t corpus[CORPUS][512];
static uint32_t corpus_bytes[CORPUS];
static uint32_t n_corpus;
static uint8_t region_bytes[OPEN_BYTES];
static struct emu_transport_remote place; /* of them */

static void keep(const uint8_t *bytes, uint32_t length)
{
    uint32_t at = n_corpus < CORPUS ? n_corpus++ : (uint32_t)below(CORPUS);

    corpus_bytes[at] = length < sizeof(corpus[0]) ? length : (uint32_t)sizeof(corpus[0]);
    memcpy(corpus[at], bytes, corpus_bytes[at]);
}

static void peer_up(void *owner, uint32_t host)
{
    struct emu_host_hello hello = { .n_hosts = 3, .name = "host2" };
    uint8_t message[EMU_HOST_HELLO_BYTES];

    hello.n_nids = *(const uint32_t *)owner;
    emu_host_hello_put(message, &hello);
    emu_transport_ops.send(transport, host, message, sizeof(message));
    is_up[host] = true;
    atomic_fetch_add(&common->sessions, 1);
}

static void peer_down(void *owner, uint32_t host, int cause)
{
    (void)owner;
    (void)cause;
    is_up[host] = false;
    owes_answer[host] = false;
}

static void answer_domain(uint32_t host, const uint8_t *bytes, uint32_t length)
{
    struct emu_host_domain d;
    uint8_t message[EMU_HOST_DOMAIN_BYTES];

    if (!emu_host_domain_parse(bytes, length, &d) || d.op != EMU_HOST_DOMAIN_CREATE || d.first + d.n != d.n_ranks)
        return;
    if (d.cookie == HOSTILE_COOKIE)
        atomic_store(&common->domain, d.domain);
    d = (struct emu_host_domain){ .domain = d.domain, .op = EMU_HOST_DOMAIN_RESULT };
    emu_host_domain_put(message, &d);
    emu_transport_ops.send(transport, host, message, sizeof(message));
    d.op = EMU_HOST_DOMAIN_REACHES;
    emu_host_domain_put(message, &d);
    emu_transport_ops.send(transport, host, message, sizeof(message));
}

/* Some of its answers are right, so that who waits goes on. False: that one has to wait. */
static bool answer_command(uint32_t host, const uint8_t *bytes, uint32_t length)
{
    static uint8_t message[EMU_HOST_ANSWER_BYTES + EMU_HOST_PART_BYTES];
    struct emu_host_command c;
    struct emu_host_answer a = { 0 };
    uint32_t room;

    if (!emu_host_command_parse(bytes, length, &c))
        return true;
    a.domain = c.domain;
    a.id = c.id;
    a.length_bytes = emu_host_result_bytes(&c);
    emu_host_answer_put(message, &a);
    room = EMU_HOST_ANSWER_BYTES + a.length_bytes;
    if (one_in(3))
        flip_bits(message, EMU_HOST_ANSWER_BYTES, 1 + (unsigned)below(3));
    if (one_in(5))
        room = 1 + (uint32_t)below(sizeof(message));
    emu_transport_ops.send(transport, host, message, room);
    if (one_in(4)) /* twice */
        emu_transport_ops.send(transport, host, message, room);
    /* At last the right one, if it is still wanted. */
    emu_host_answer_put(message, &a);
    return emu_transport_ops.send(transport, host, message, EMU_HOST_ANSWER_BYTES + a.length_bytes) == EMU_TRANSPORT_OK;
}

/* ---- reduction trees ---- */

static struct emu_host_ce heard_of; /* the last engine that it was told of */

/* False: there was no room. */
static bool send_ce(uint32_t host, const struct emu_host_ce *m)
{
    uint8_t message[EMU_HOST_CE_BYTES];

    emu_host_ce_put(message, atomic_load(&common->domain), m);
    if (one_in(4)) { /* a bad one before */
        uint8_t bad[EMU_HOST_CE_BYTES];

        memcpy(bad, message, sizeof(bad));
        flip_bits(bad, sizeof(bad), 1 + (unsigned)below(3));
        emu_transport_ops.send(transport, host, bad, sizeof(bad));
    }
    return emu_transport_ops.send(transport, host, message, sizeof(message)) == EMU_TRANSPORT_OK;
}

/* Who waits goes on, and engines get what they wait for, now and then. False: that one has to wait. */
static bool answer_ce(uint32_t host, const uint8_t *bytes, uint32_t length)
{
    struct emu_host_ce m;
    struct emu_host_ce back = { 0 };

    if (!emu_host_ce_parse(bytes, length, &m))
        return true;
    back.number = m.number;
    switch (m.op) {
    case EMU_HOST_CE_STATE:
        heard_of = m;
        /* fall through */
    case EMU_HOST_CE_GONE:
        back.op = EMU_HOST_CE_KNOWN;
        return m.number == 0 || send_ce(host, &back);
    case EMU_HOST_CE_POST:
        back.op = EMU_HOST_CE_TAKEN;
        back.status = one_in(4) ? EMU_STATUS_MISMATCH : EMU_STATUS_OK;
        if (!send_ce(host, &back))
            return false;
        back.op = EMU_HOST_CE_RESULT;
        send_ce(host, &back);
        return true;
    case EMU_HOST_CE_TAKEN:
        atomic_fetch_add(&common->good_posts, m.status == EMU_STATUS_OK);
        return true;
    case EMU_HOST_CE_UP:
        atomic_fetch_add(&common->ups, 1);
        back = (struct emu_host_ce){ .op = EMU_HOST_CE_DOWN,
                                     .from_nid = m.to_nid,
                                     .to_nid = m.from_nid,
                                     .from_ce = m.to_ce,
                                     .to_ce = m.from_ce,
                                     .from_version = m.to_version,
                                     .to_version = m.from_version,
                                     .value = m.value };
        if (!one_in(4))
            send_ce(host, &back);
        return true;
    default:
        return true;
    }
}

/* One that would be good, or nearly. */
static uint32_t make_ce(uint8_t *message)
{
    unsigned op = 1 + (unsigned)below(EMU_HOST_CE_OPS - 1);
    unsigned fields = emu_host_ce_fields(op);
    struct emu_host_ce m = { .op = (uint8_t)op };
    uint8_t *at;

    if (fields & (EMU_CE_HAS_FROM | EMU_CE_HAS_FROM_NODE))
        m.from_nid = one_in(16) ? (uint32_t)below(4) : HOSTILE_NID;
    if (fields & EMU_CE_HAS_FROM) {
        m.from_ce = (uint16_t)(one_in(8) ? below(5) : 0);
        m.from_version = 1 + below(2);
    }
    if (fields & (EMU_CE_HAS_TO | EMU_CE_HAS_TO_ANY)) {
        m.to_nid = heard_of.from_nid;
        m.to_ce = (uint16_t)(one_in(8) ? below(5) : heard_of.from_ce);
        m.to_version = op == EMU_HOST_CE_POST ? 0 : one_in(8) ? below(100) : heard_of.from_version;
    }
    if (fields & (EMU_CE_HAS_STATUS | EMU_CE_HAS_FAILURE))
        m.status = (uint8_t)below(EMU_STATUS_MISMATCH + 1);
    if (fields & (EMU_CE_HAS_NUMBER | EMU_CE_MAY_HAVE_NUMBER))
        m.number = one_in(2) ? 1 + below(8) : next_random();
    if (fields & EMU_CE_HAS_POSTER)
        m.poster = 1 + below(4);
    if (fields & EMU_CE_HAS_CHILD)
        m.child = (uint8_t)(one_in(4) ? below(32) : 2);
    if (fields & EMU_CE_HAS_VALUE)
        m.value = (struct emu_ce_value){ .red_id = below(2),
                                         .operand1 = next_random(),
                                         .operand2 = odd_number(),
                                         .op = (uint8_t)(one_in(2) ? EMU_CE_IADD : below(EMU_CE_OP_END)),
                                         .flags = (uint8_t)(one_in(2) ? 0 : below(EMU_CE_FLAG_MASK + 1)),
                                         .status = (uint8_t)(one_in(8) ? below(12) : 0) };
    if (op == EMU_HOST_CE_STATE) {
        m.flags = one_in(8) ? 0 : EMU_HOST_CE_CONFIGURED;
        m.status = one_in(2) ? 0 : m.status;
        m.n = m.flags ? 1 + (uint32_t)below(2) : 0;
    } else if (op == EMU_HOST_CE_POST || op == EMU_HOST_CE_LEFT) {
        m.n = 1;
    }
    at = emu_host_ce_put(message, atomic_load(&common->domain), &m);
    for (uint32_t i = 0; i < m.n; i++) {
        const struct emu_ce_link link = { .nid = i == 0 ? heard_of.from_nid : (uint32_t)below(4),
                                          .ce_id = i == 0 ? heard_of.from_ce : (uint16_t)below(5),
                                          .child_id = (uint8_t)(i == 0 ? 1 : below(33)) };

        if (op == EMU_HOST_CE_STATE)
            at = emu_host_ce_put_link(at, &link, i == 0 && one_in(2));
        else if (op == EMU_HOST_CE_POST)
            at = emu_host_ce_put_leaf(at, 12, one_in(8) ? 2 : 1);
        else
            at = emu_host_ce_put_instance(at, 12);
    }
    return (uint32_t)(at - message);
}

/* ---- messages ---- */

/* Questions, so that who waits goes on. */
/* A status that would be good, but for a few words. */
static uint32_t make_status(uint64_t *words)
{
    const uint64_t rows[] = { EMU_HOST_ROW_HOST,
                              1,
                              2,
                              3,
                              4,
                              EMU_HOST_ROW_TEXT,
                              EMU_HOST_TEXT_WHY,
                              3,
                              0x797877,
                              EMU_HOST_ROW_UNREACHED,
                              1,
                              EMU_HOST_ROW_DOMAIN,
                              atomic_load(&common->domain),
                              1,
                              99,
                              6,
                              0,
                              3,
                              1,
                              1,
                              0,
                              0,
                              0,
                              EMU_HOST_ROW_NODE,
                              HOSTILE_NID,
                              1,
                              EMU_HOST_ROW_PORT,
                              0,
                              HOSTILE_NID,
                              12,
                              7 };
    uint32_t n = sizeof(rows) / sizeof(rows[0]) + EMU_HOST_PORT_COUNTS;

    memset(words, 0, n * sizeof(*words));
    memcpy(words, rows, sizeof(rows));
    for (uint64_t i = below(4); i > 0; i--)
        words[below(n)] = one_in(2) ? odd_number() : below(EMU_HOST_ROW_PORT + 2);
    return one_in(4) ? (uint32_t)below(n) : n;
}

static uint64_t last_token; /* of what it was asked */

static void answer_admin(uint32_t host, const uint8_t *bytes, uint32_t length)
{
    struct emu_host_admin m;
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];
    uint64_t words[64];

    static const uint8_t answers[EMU_HOST_ADMIN_OPS] = { [EMU_HOST_ADMIN_REPORT] = EMU_HOST_ADMIN_ROWS,
                                                         [EMU_HOST_ADMIN_LISTEN] = EMU_HOST_ADMIN_HEARS,
                                                         [EMU_HOST_ADMIN_PING] = EMU_HOST_ADMIN_PONG };

    if (!emu_host_admin_parse(bytes, length, &m) || answers[m.op] == 0)
        return;
    last_token = m.token;
    m = (struct emu_host_admin){ .op = answers[m.op], .type = m.type, .token = m.token };
    if (m.op == EMU_HOST_ADMIN_ROWS && m.type == EMU_MSG_STATUS)
        m.n = m.total = make_status(words);
    emu_transport_ops.send(transport, host, message, emu_host_admin_put(message, &m, words));
}

static void take_again(void *owner, uint32_t host)
{
    (void)owner;
    owes_answer[host] = false;
    emu_transport_ops.resume(transport, host);
}

static bool take_message(void *owner, uint32_t host, const void *data, uint32_t length)
{
    struct emu_host_answer answer;
    struct emu_host_head head;

    (void)owner;
    atomic_fetch_add(&common->received, 1);
    keep(data, length);
    if (!emu_host_head_parse(data, length, &head))
        return true;
    if (head.kind == EMU_HOST_DOMAIN)
        answer_domain(host, data, length);
    else if (head.kind == EMU_HOST_ADMIN)
        answer_admin(host, data, length);
    else if (head.kind == EMU_HOST_COMMAND)
        owes_answer[host] = !answer_command(host, data, length);
    else if (head.kind == EMU_HOST_CE)
        owes_answer[host] = !answer_ce(host, data, length);
    else if (head.kind == EMU_HOST_ANSWER && emu_host_answer_parse(data, length, &answer) &&
             answer.status == EMU_STATUS_OK)
        atomic_fetch_add(&common->good_answers, 1);
    return !owes_answer[host];
}

/* A command that would be good. */
static uint32_t make_command(uint8_t *message)
{
    static const uint8_t ops[] = { EMU_OP_PUT, EMU_OP_PUT, EMU_OP_GET, EMU_OP_AMO, EMU_OP_CQ_WRITE };
    struct emu_host_command c = {
        .domain = atomic_load(&common->domain),
        .id = next_random(),
        .from_nid = HOSTILE_NID,
        .cmd = { .op = ops[below(sizeof(ops))],
                 .remote_nid = (uint32_t)below(2),
                 .mdh = (uint16_t)below(8),
                 .generation = (uint16_t)(one_in(8) ? below(4) : 0),
                 .remote_base = common->open_addr,
                 .amo_op = (uint8_t)below(EMU_AMO_OP_END),
                 .amo_flags = (uint8_t)below(8),
                 .remote_event = next_random(),
                 .events = (uint16_t)below(16) },
    };

    if (one_in(2))
        c.cmd.remote_nid = 0;
    c.cmd.remote_addr = common->open_addr + (one_in(4) ? odd_number() : below(OPEN_BYTES) & ~7ull);
    c.cmd.length_bytes = one_in(8) ? odd_number() : c.cmd.op == EMU_OP_CQ_WRITE ? 0 : below(64) * 8;
    if (one_in(8))
        c.offset = one_in(2) ? odd_number() : below(64) * 16;
    c.part_bytes =
        (uint32_t)(c.cmd.length_bytes - c.offset < EMU_HOST_PART_BYTES ? c.cmd.length_bytes - c.offset : below(4096));
    if (one_in(3) && c.cmd.op == EMU_OP_PUT) {
        c.cmd.flags = EMU_CMD_FLAG;
        c.cmd.flag_addr = common->open_addr + (one_in(4) ? odd_number() : below(OPEN_BYTES) & ~7ull);
    }
    if (c.cmd.op == EMU_OP_AMO) {
        c.cmd.operand1 = odd_number();
        c.cmd.operand2 = odd_number();
    }
    if (one_in(4)) { /* a region that there is, or not */
        c.is_bulk = true;
        c.key = one_in(8) ? next_random() : place.key;
        c.base = one_in(8) ? odd_number() : place.base;
        emu_host_command_put(message, &c);
        emu_host_place_put(message + EMU_HOST_COMMAND_BYTES, &c);
        return EMU_HOST_COMMAND_BYTES + EMU_HOST_PLACE_BYTES;
    }
    emu_host_command_put(message, &c);
    return EMU_HOST_COMMAND_BYTES + (c.cmd.op == EMU_OP_PUT && c.part_bytes <= EMU_HOST_PART_BYTES ? c.part_bytes : 0);
}

/* Of its own domain or of none, so that it breaks nothing that others have if it is taken. */
static void fill_words(uint64_t *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        words[i] = one_in(3) ? odd_number() : below(300);
    words[0] = one_in(4) ? 1 + below(1u << 31) : atomic_load(&common->domain);
}

/* Changes by an administrator of that host are not harm, so those that would be understood are about nothing. */
static void spoil_request(struct emu_host_admin *m, uint64_t *words)
{
    static const struct {
        uint16_t type;
        uint16_t n;
    } requests[] = {
        { EMU_MSG_FAULT_SET, 26 }, { EMU_MSG_FAULT_CLEAR, 5 },    { EMU_MSG_NETWORK, 7 },     { EMU_MSG_DATAPATH, 3 },
        { EMU_MSG_NTT_CLEAR, 19 }, { EMU_MSG_JOB_CONFIGURE, 19 }, { EMU_MSG_JOB_RESUME, 19 }, { EMU_MSG_STATUS, 2 },
    };
    unsigned which = (unsigned)below(sizeof(requests) / sizeof(requests[0]));

    m->type = requests[which].type;
    if (m->first == 0)
        m->total = m->n = requests[which].n;
    words[2] = m->type == EMU_MSG_NETWORK ? 100 + below(9) : words[2];
    words[4] = m->type == EMU_MSG_JOB_CONFIGURE ? HOSTILE_COOKIE : words[4];
    words[3] = m->type == EMU_MSG_JOB_CONFIGURE ? HOSTILE_PTAG : words[3];
}

/* A word about administration that would be good, but for what it says. */
static uint32_t make_admin(uint8_t *message)
{
    static uint64_t words[2 * EMU_HOST_ADMIN_WORDS];
    static const uint8_t lengths[EMU_HOST_ADMIN_OPS] = {
        [EMU_HOST_ADMIN_ASK] = 25,
        [EMU_HOST_ADMIN_RESULT] = 4,
        [EMU_HOST_ADMIN_APPLY] = 8,
        [EMU_HOST_ADMIN_DONE] = 1,
        [EMU_HOST_ADMIN_STATE] = 15,
        [EMU_HOST_ADMIN_LISTEN] = 1,
        [EMU_HOST_ADMIN_ERROR] = EMU_HOST_ERROR_WORDS,
        [EMU_HOST_ADMIN_WHO] = EMU_HOST_TARGET_WORDS,
        [EMU_HOST_ADMIN_OWNER] = 2,
        [EMU_HOST_ADMIN_ROWS] = 11,
        [EMU_HOST_ADMIN_KILL] = EMU_HOST_TARGET_WORDS,
        [EMU_HOST_ADMIN_PRESENCE] = 2,
    };
    struct emu_host_admin m = { .op = (uint16_t)(1 + below(EMU_HOST_ADMIN_OPS - 1)),
                                .token = one_in(2) ? last_token : below(8) };

    m.type = one_in(3) ? EMU_MSG_STATUS : one_in(2) ? EMU_MSG_LINKS : EMU_MSG_FAULTS;
    m.total = one_in(6) ? (uint32_t)below(2 * EMU_HOST_ADMIN_WORDS) : lengths[m.op];
    m.first = one_in(8) ? (uint32_t)below(m.total + 1) : 0;
    m.n = m.total - m.first < EMU_HOST_ADMIN_WORDS ? m.total - m.first : EMU_HOST_ADMIN_WORDS;
    fill_words(words, m.total > 32 ? m.total : 32);
    if (m.op == EMU_HOST_ADMIN_ASK)
        spoil_request(&m, words);
    if (m.op == EMU_HOST_ADMIN_LISTEN || m.op == EMU_HOST_ADMIN_OWNER)
        words[0] = below(2);
    if (m.op == EMU_HOST_ADMIN_ERROR) {
        words[2] = 1 + below(EMU_ERROR_ROUTES);
        words[3] = 1u << below(8);
        words[5] = (uint64_t)HOSTILE_NID << 32;
    }
    if (m.op == EMU_HOST_ADMIN_WHO || m.op == EMU_HOST_ADMIN_KILL) {
        words[2] = HOSTILE_NID;
        words[3] = 0;
        words[5] = common->open_addr;
        words[7] = below(8);
    }
    return emu_host_admin_put(message, &m, words);
}

static uint32_t make_message(uint8_t *message)
{
    uint32_t length;

    fill_random(message, 256);
    switch (below(10)) {
    case 0:
        length = 1 + (uint32_t)below(EMU_HOST_MESSAGE_MAX);
        emu_host_head_put(message, (enum emu_host_kind)below(EMU_HOST_KINDS + 1), (uint32_t)next_random());
        break;
    case 1: /* what it has heard itself */
        if (n_corpus > 0) {
            uint32_t which = (uint32_t)below(n_corpus);

            length = corpus_bytes[which];
            memcpy(message, corpus[which], length);
            break;
        }
        /* fall through */
    case 2:
    case 3:
        length = make_admin(message);
        return length;
    default:
        length = one_in(2) ? make_ce(message) : make_command(message);
    }
    if (one_in(2))
        flip_bits(message, length < 160 ? length : 160, 1 + (unsigned)below(4));
    if (one_in(10))
        length = 1 + (uint32_t)below(EMU_HOST_MESSAGE_MAX);
    return length;
}

static void transport_says(void *owner, enum emu_log_level level, const char *line)
{
    (void)owner;
    (void)level;
    (void)line;
}

static _Noreturn void be_hostile(uint32_t n_nids)
{
    static const struct emu_transport_events events = {
        .peer_up = peer_up, .peer_down = peer_down, .message = take_message, .room = take_again, .log = transport_says
    };
    static uint8_t message[EMU_HOST_MESSAGE_MAX];
    struct emu_transport_region *region;
    struct emu_hosts_options o;
    struct emu_transport_config config;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fx_forget(&fx);
    choices_begin(emu_random_next(&seed));
    fx_describe_host(&fx, HOSTILE_HOST, &o);
    config = (struct emu_transport_config){ .host = HOSTILE_HOST,
                                            .n_hosts = 3,
                                            .incarnation = emu_clock_ns(),
                                            .key = o.key,
                                            .key_bytes = o.key_bytes,
                                            .provider = o.provider,
                                            .node = o.node,
                                            .service = o.service,
                                            .events = &events,
                                            .owner = &n_nids };
    if (emu_transport_ops.open(&config, &transport) < 0)
        _exit(1);
    if (emu_transport_ops.region_create(transport, region_bytes, sizeof(region_bytes),
                                        EMU_TRANSPORT_READ | EMU_TRANSPORT_WRITE, &region) < 0)
        _exit(1);
    emu_transport_ops.region_remote(region, &place);
    for (uint32_t i = 0; i < 2; i++) {
        if (emu_transport_ops.address_of(transport, i, o.peer_nodes[i], o.peer_services[i], blobs[i].bytes,
                                         &blobs[i].length_bytes) < 0)
            _exit(1);
    }
    while (!atomic_load(&common->is_over)) {
        for (uint32_t i = 0; i < 2; i++) {
            struct emu_transport_stats stats;

            emu_transport_ops.stats(transport, i, &stats);
            if (stats.state == EMU_PEER_ABSENT)
                emu_transport_ops.join(transport, i, blobs[i].bytes, blobs[i].length_bytes);
            for (unsigned n = 0;
                 n < PER_ROUND && is_up[i] && !owes_answer[i] && atomic_load(&common->domain) != 0 && common->open_addr;
                 n++) {
                if (emu_transport_ops.send(transport, i, message, make_message(message)) != EMU_TRANSPORT_OK)
                    break;
                atomic_fetch_add(&common->sent, 1);
            }
        }
        emu_transport_ops.progress(transport);
        sched_yield();
    }
    emu_transport_ops.close(transport);
    _exit(0);
}

/* ---- the others ---- */

static bool is_filled(const uint8_t *bytes, uint64_t n, uint8_t value)
{
    for (uint64_t i = 0; i < n; i++) {
        if (bytes[i] != value)
            return false;
    }
    return true;
}

/* Both sides are of this process. */
static void check_transfers(struct gx_side *a, struct gx_side *b, unsigned round)
{
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d = gx_put(a, b, 4096, 16384 + round % 64 * 8, GNI_CQMODE_GLOBAL_EVENT);

    memset(a->mem, (int)round, GX_BYTES);
    memset(b->mem, 0xee, GX_BYTES);
    if (GNI_PostFma(a->ep, &d) != GNI_RC_SUCCESS || gx_complete(a->src_cq, &done) != GNI_RC_SUCCESS ||
        !is_filled(b->mem + 4096, d.length, (uint8_t)round) || !is_filled(b->mem, 4096, 0xee) ||
        !is_filled(b->mem + 4096 + d.length, GX_BYTES - 4096 - d.length, 0xee))
        atomic_fetch_add(&common->bad, 1);
    atomic_fetch_add(&common->checked, 1);
}

/* To and from the hostile host: any outcome will do, if it comes. Local memory is what it may write to anyway. */
static void ask_for_trouble(const struct gx_side *c, const gni_mem_handle_t *local, unsigned round)
{
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d = { .type = round % 2 ? GNI_POST_FMA_GET : GNI_POST_FMA_PUT,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .local_addr = common->open_addr,
                                .local_mem_hndl = *local,
                                .remote_addr = common->open_addr,
                                .remote_mem_hndl = *local,
                                .length = 64 + round % 60 * 128 };

    if (GNI_PostFma(c->ep, &d) != GNI_RC_SUCCESS || gx_complete(c->src_cq, &done) == GNI_RC_NOT_DONE)
        atomic_fetch_add(&common->bad, 1);
}

/* Every reduction between the good ones is right. */
static void check_reduction(struct tree *tree, unsigned round)
{
    bool is_right = true;

    for (unsigned i = 0; i < tree->n_leaves; i++)
        tree_contribute(&tree->leaves[i], GNI_FMA_CE_IADD, round + i, 0, round);
    for (unsigned i = 0; i < tree->n_leaves; i++)
        is_right = tree_wait(tree->leaves[i].result) == GNI_RC_SUCCESS && is_right &&
                   tree->leaves[i].result->result1 == 2ull * round + 1;
    atomic_fetch_add(&common->bad, !is_right);
}

/* A tree with the hostile host's engine above and below, and a leaf there: whatever comes of it, each call returns. */
struct bad_tree {
    gni_ce_handle_t ce;
    gni_cq_handle_t cq;     /* of its entries; nobody looks */
    gni_ep_handle_t eps[3]; /* a leaf of ours, its engine, a leaf of its */
    gni_ep_handle_t parent_ep;
    gni_ep_handle_t to_ours;
    gni_ep_handle_t to_its;
    uint32_t id;
};

static gni_ep_handle_t ep_to(const struct gx_side *c, bool has_cq, uint32_t nid, uint32_t ce_id, uint32_t child_id,
                             gni_ce_child_t type)
{
    const struct gx_side there = { .nic_addr = nid, .inst_id = 12 };

    return tree_ep(c, has_cq ? c->src_cq : NULL, &there, ce_id, child_id, type);
}

static void open_bad_tree(struct bad_tree *tree, const struct gx_side *c)
{
    assert_int_equal(GNI_CeCreate(c->nic, &tree->ce), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(c->nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tree->cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeGetId(tree->ce, &tree->id), GNI_RC_SUCCESS);
    tree->eps[0] = ep_to(c, false, 0, 0, 0, GNI_CE_CHILD_PE);
    tree->eps[1] = ep_to(c, false, HOSTILE_NID, 0, 1, GNI_CE_CHILD_VCE);
    tree->eps[2] = ep_to(c, false, HOSTILE_NID, 0, 2, GNI_CE_CHILD_PE);
    tree->parent_ep = ep_to(c, false, HOSTILE_NID, 0, 1, GNI_CE_CHILD_VCE);
    tree->to_ours = ep_to(c, true, 0, tree->id, 0, GNI_CE_CHILD_PE);
    tree->to_its = ep_to(c, true, HOSTILE_NID, 0, 0, GNI_CE_CHILD_PE);
}

static void ask_for_reductions(struct bad_tree *tree, const struct gx_side *c, const gni_mem_handle_t *local,
                               unsigned round)
{
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d = { .type = GNI_POST_CE,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .ce_cmd = GNI_FMA_CE_IADD,
                                .local_addr = common->open_addr,
                                .local_mem_hndl = *local };
    bool is_root = round % 3 == 0;
    uint32_t n = 1 + round / 3 % 3;

    if (round % 4 == 0 && GNI_CeConfigure(tree->ce, tree->eps, n, is_root ? NULL : tree->parent_ep, tree->cq,
                                          TREE_MODES) != GNI_RC_SUCCESS)
        atomic_fetch_add(&common->bad, 1);
    for (unsigned i = 0; i < 2; i++) {
        gni_ep_handle_t ep = i == 0 ? tree->to_ours : tree->to_its;

        if (GNI_PostFma(ep, &d) != GNI_RC_SUCCESS || gx_complete(c->src_cq, &done) == GNI_RC_NOT_DONE)
            atomic_fetch_add(&common->bad, 1);
    }
}

static void close_bad_tree(struct bad_tree *tree)
{
    assert_int_equal(GNI_CeDestroy(tree->ce), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        GNI_EpDestroy(tree->eps[i]);
    GNI_EpDestroy(tree->parent_ep);
    GNI_EpDestroy(tree->to_ours);
    GNI_EpDestroy(tree->to_its);
    GNI_CqDestroy(tree->cq);
}

/* Guard, what the hostile host may change, guard. What the handle says is what any peer would be told. */
static uint8_t *open_target(const struct gx_side *c, gni_mem_handle_t *handle_out)
{
    uint8_t *mem = mmap(NULL, 2 * GUARD_BYTES + OPEN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(mem != MAP_FAILED);
    memset(mem, 0x5a, 2 * GUARD_BYTES + OPEN_BYTES);
    assert_int_equal(GNI_MemRegister(c->nic, (uint64_t)(uintptr_t)mem + GUARD_BYTES, OPEN_BYTES, c->dst_cq,
                                     GNI_MEM_READWRITE, (uint32_t)-1, handle_out),
                     GNI_RC_SUCCESS);
    common->open_addr = (uint64_t)(uintptr_t)mem + GUARD_BYTES;
    return mem;
}

static pid_t start_hostile_host(void)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_hostile(768);
    fx_await_host(&fx, 0, HOSTILE_HOST, true);
    fx_await_host(&fx, 1, HOSTILE_HOST, true);
    return pid;
}

/* A domain that the hostile host is in, and a side of it with an endpoint to there. */
static void open_beside_hostile(struct emu_session *domain, struct gx_side *side)
{
    struct fx shared_with_it;

    fx.n_ranks = 3;
    assert_int_equal(fx_add_domain(&fx, HOSTILE_PTAG, HOSTILE_COOKIE, geteuid(), 0, domain), 0);
    shared_with_it = fx;
    shared_with_it.ptag = HOSTILE_PTAG;
    shared_with_it.cookie = HOSTILE_COOKIE;
    gx_open(side, &shared_with_it, 0, 12, 0);
    assert_int_equal(GNI_EpCreate(side->nic, side->src_cq, &side->ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(side->ep, HOSTILE_NID, 12), GNI_RC_SUCCESS);
}

/* A leaf and an engine on each side. */
static void build_good_tree(struct tree *tree, struct gx_side *a, struct gx_side *b)
{
    tree_add_engine(tree, a, NO_PARENT);
    tree_add_engine(tree, b, 0);
    tree_add_leaf(tree, a, 0);
    tree_add_leaf(tree, b, 1);
    tree_build(tree);
}

static void print_counts(void)
{
    printf("# contributions of it taken %llu, partial results to it %llu\n",
           (unsigned long long)atomic_load(&common->good_posts), (unsigned long long)atomic_load(&common->ups));
    printf("# sent %llu received %llu done %llu sessions %llu, transfers checked %llu\n",
           (unsigned long long)atomic_load(&common->sent), (unsigned long long)atomic_load(&common->received),
           (unsigned long long)atomic_load(&common->good_answers), (unsigned long long)atomic_load(&common->sessions),
           (unsigned long long)atomic_load(&common->checked));
}

static void test_host_that_means_harm_does_none(void **state)
{
    static const unsigned reports[] = { EMU_MSG_LINKS, EMU_MSG_FAULTS, EMU_MSG_STATUS };
    uint64_t end_ns = emu_clock_ns() + fuzz_duration_ns();
    struct emu_session hostile_domain;
    struct gx_side a;
    struct gx_side b;
    struct gx_side c;
    gni_mem_handle_t handle;
    struct bad_tree bad_tree;
    struct tree tree = { .n_engines = 0 };
    gni_err_handle_t errors;
    uint8_t *mem;
    unsigned round = 0;
    int status = -1;
    pid_t pid;

    (void)state;
    pid = start_hostile_host();
    fx.n_ranks = 2;
    fx_start_domain(&fx);
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&a, &b);
    open_beside_hostile(&hostile_domain, &c);
    mem = open_target(&c, &handle);
    open_bad_tree(&bad_tree, &c);
    build_good_tree(&tree, &a, &b);
    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, 0xff, 4, &errors), GNI_RC_SUCCESS);
    /* On a busy machine some of it takes longer to come about. */
    while (emu_clock_ns() < end_ns || atomic_load(&common->good_answers) == 0 ||
           atomic_load(&common->good_posts) == 0) {
        check_transfers(&a, &b, round);
        check_reduction(&tree, round);
        ask_for_reductions(&bad_tree, &c, &handle, round);
        ask_for_trouble(&c, &handle, round++);
        if (round % 64 == 0)
            free(fx_report(&fx, reports[round / 64 % 3]));
        assert_true(is_filled(mem, GUARD_BYTES, 0x5a));
        assert_true(is_filled(mem + GUARD_BYTES + OPEN_BYTES, GUARD_BYTES, 0x5a));
    }
    close_bad_tree(&bad_tree);
    tree_drop(&tree);
    atomic_store(&common->is_over, true);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    print_counts();
    assert_int_equal(atomic_load(&common->bad), 0);
    assert_int_equal(kill(fx.hosts[0].daemon, 0), 0);
    assert_int_equal(kill(fx.hosts[1].daemon, 0), 0);
    GNI_ReleaseErrors(errors);
    GNI_MemDeregister(c.nic, &handle);
    munmap(mem, 2 * GUARD_BYTES + OPEN_BYTES);
    gx_close(&a);
    gx_close(&b);
    gx_close(&c);
    fx_end_domain(&hostile_domain);
}

static int start(void **state)
{
    struct fx_options options = { .n_hosts = 3, .n_absent = 1, .n_ranks = 3 };

    (void)state;
    seed = seeded(17);
    /*
     * ofi_rxm has few places to receive more than are in use: one that is lost with a broken connection is missed
     * soon.
     */
    setenv("FI_OFI_RXM_RX_SIZE", "96", 1);
    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fx_start(&fx, &options);
    return common == MAP_FAILED ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_that_means_harm_does_none),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    return cmocka_run_group_tests_name("fuzz of messages between emunics", tests, start, stop);
}
