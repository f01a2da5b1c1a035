/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other hosts of the machine.
 *
 * One session with each of them, over emunic/transport, whose module is loaded when there is more than one host.
 *
 *   down --transport joined--> greeted --its hello fits ours--> up --silence, error, farewell--> down (joined again)
 *
 * The hello tells what both must agree on: how many hosts and nodes the machine has. A host is up for the parts when
 * its hello has come; the transport keeps order, so nothing of the parts comes before it. A host that goes down is
 * joined again for ever, with the address that it had: a cut that heals, or an emunic that is started again there,
 * needs nobody's hand.
 *
 * Sending. What the transport does not take waits in a queue per host, which holds MESSAGES_SOFT messages or BYTES_SOFT
 * bytes for those who can try again (emu_hosts_send), and QUEUE_MAX_BYTES for answers. Messages are always taken, so
 * two hosts cannot wait for each other; the answers that a peer can make us queue are bounded by what it may ask.
 *
 * Answers wait for company. A process here often answers what another host's command has brought at once, with a
 * command to that host, and sending costs more than all else; so an answer is held for HOLD_NS, to share a packet with
 * what comes next. Whether that pays shows in what followed earlier answers to the same host: a two-bit counter per
 * host says, as for lingering (server.c).
 *
 * Answers that a host owes. Commands are answered as they come, so a host that owes answers and gives none for the peer
 * timeout does not work, although its transport does: its session is ended. What may have to wait there (datagrams,
 * Portals messages) is not counted; for its sake each host is asked once in a timeout whether it answers at all.
 *
 * Waiting. While somebody is talking to us each round looks at the transport. A round costs a system call or two then,
 * so with nothing from there for QUIET_ROUNDS rounds only every QUIET_EVERY-th looks; the descriptor wakes us from
 * sleep. While data are moved in bulk all rounds look: the transport moves them only then.
 */
#include "emunic/daemon/peers/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <time.h>

#include "emunic/abi/host_admin.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/world/domain.h"

#define MESSAGES_SOFT   4096u
#define BYTES_SOFT      (4u << 20)
#define QUEUE_MAX_BYTES (64u << 20)
#define REJOIN_NS       1000000000ull
#define BLIND_SLEEP_NS  500000ull /* while no descriptor tells of news */
#define TIMEOUT_NS      5000000000ull
#define REFUSE_LOG_NS   1000000000ull
#define HOLD_NS         2000ull
#define HOLD_MAX        3u
#define HOLD_PAYS       2u  /* half of it */
#define HOLD_TRIES      64u /* answers between two tries where it does not seem to pay */
#define LOOK_EVERY      64u /* rounds, at who owes answers */
#define QUIET_ROUNDS    256u
#define QUIET_EVERY     16u

struct queued {
    STAILQ_ENTRY(queued) link;
    uint32_t length_bytes;
    uint8_t bytes[];
};

struct peer {
    char name[EMU_HOST_NAME_MAX + 1];
    struct emu_host_blob blob;
    uint32_t n_nodes;
    bool is_up; /* its hello has come */
    bool must_join;
    bool must_leave; /* after the round */
    uint64_t join_at_ns;
    STAILQ_HEAD(, queued) queue;
    uint32_t n_queued;
    uint64_t queued_bytes;
    uint64_t held_until_ns; /* answers wait for company; 0: none does */
    uint8_t hold_pays;      /* 0 to HOLD_MAX */
    unsigned n_answers;
    uint64_t refused;
    uint64_t refused_told; /* of them, when the last line was written */
    uint64_t refuse_log_ns;
    bool differs;           /* it is secure and we are not, or the other way round: that was said */
    uint64_t up_ns;         /* when it came up last */
    uint32_t n_owed;        /* answers, to us */
    uint64_t owed_since_ns; /* without any of them coming; 0: not looked yet */
    uint64_t pinged_ns;     /* when it was asked whether it answers; 0: not yet */
    bool awaits_pong;
    bool has_spoken; /* since we looked last: what is before the answer may take its time */
};

struct emu_hosts {
    struct emu_watch watch; /* first; the transport's descriptor */
    const struct emu_transport_ops *ops;
    struct emu_transport *transport; /* owned */
    int fd;
    uint32_t n;
    uint32_t own;
    bool can_sleep;
    bool is_secure;
    char device[EMU_TRANSPORT_NAME_MAX];
    unsigned quiet;     /* rounds without anything */
    unsigned n_things;  /* of this round */
    bool has_chores;    /* somebody must join or leave */
    uint32_t n_holding; /* peers whose answers wait */
    uint32_t n_owed;    /* answers of all */
    unsigned looks;
    uint64_t timeout_ns;
    uint64_t round_ns;  /* when the last round was */
    uint64_t paused_ns; /* time in which this process did not run, of all long pauses */
    struct peer peers[];
};

/* NULL while this host is alone. */
static struct emu_hosts *hosts_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_SESSIONS];
}

/* ---- looking ---- */

const char *emu_hosts_name(const struct emu_server *server, uint32_t host)
{
    return hosts_of(server) && host < hosts_of(server)->n ? hosts_of(server)->peers[host].name : "";
}

const char *emu_hosts_device(const struct emu_server *server)
{
    return hosts_of(server) ? hosts_of(server)->device : "";
}

uint32_t emu_hosts_n_nodes(const struct emu_server *server, uint32_t host)
{
    return hosts_of(server) && host < hosts_of(server)->n ? hosts_of(server)->peers[host].n_nodes : 0;
}

bool emu_hosts_is_up(const struct emu_server *server, uint32_t host)
{
    const struct emu_hosts *hosts = hosts_of(server);

    if (!hosts)
        return host == 0;
    return host < hosts->n && (host == hosts->own || hosts->peers[host].is_up);
}

struct emu_transport *emu_hosts_transport(const struct emu_server *server, const struct emu_transport_ops **ops_out)
{
    *ops_out = hosts_of(server)->ops;
    return hosts_of(server)->transport;
}

/* ---- sending ---- */

static void drop_queue(struct peer *peer)
{
    struct queued *message;

    while ((message = STAILQ_FIRST(&peer->queue))) {
        STAILQ_REMOVE_HEAD(&peer->queue, link);
        free(message);
    }
    peer->n_queued = 0;
    peer->queued_bytes = 0;
}

static int enqueue(struct peer *peer, const void *bytes, uint32_t length_bytes)
{
    struct queued *message = malloc(sizeof(*message) + length_bytes);

    if (!message)
        return -ENOMEM;
    message->length_bytes = length_bytes;
    memcpy(message->bytes, bytes, length_bytes);
    STAILQ_INSERT_TAIL(&peer->queue, message, link);
    peer->n_queued++;
    peer->queued_bytes += length_bytes;
    return 0;
}

/* Sends what waits, as far as there is room. */
static void drain(struct emu_hosts *hosts, uint32_t host)
{
    struct peer *peer = &hosts->peers[host];
    struct queued *message;

    while ((message = STAILQ_FIRST(&peer->queue))) {
        if (hosts->ops->send(hosts->transport, host, message->bytes, message->length_bytes) != EMU_TRANSPORT_OK)
            return;
        STAILQ_REMOVE_HEAD(&peer->queue, link);
        peer->n_queued--;
        peer->queued_bytes -= message->length_bytes;
        free(message);
        hosts->n_things++;
    }
}

static int send_or_queue(struct emu_hosts *hosts, uint32_t host, const void *message, uint32_t length_bytes)
{
    struct peer *peer = &hosts->peers[host];
    int r = EMU_TRANSPORT_FULL;

    hosts->quiet = 0;
    if (STAILQ_EMPTY(&peer->queue))
        r = hosts->ops->send(hosts->transport, host, message, length_bytes);
    return r == EMU_TRANSPORT_FULL ? enqueue(peer, message, length_bytes) : r;
}

static void end_hold(struct emu_hosts *hosts, uint32_t host, bool has_paid)
{
    struct peer *peer = &hosts->peers[host];

    peer->held_until_ns = 0;
    hosts->n_holding--;
    if (has_paid && peer->hold_pays < HOLD_MAX)
        peer->hold_pays++;
    else if (!has_paid && peer->hold_pays > 0)
        peer->hold_pays--;
}

/* Nobody came along. */
static void push_held(struct emu_hosts *hosts)
{
    uint64_t now_ns = emu_clock_ns();

    for (uint32_t i = 0; i < hosts->n && hosts->n_holding > 0; i++) {
        if (hosts->peers[i].held_until_ns == 0 || now_ns < hosts->peers[i].held_until_ns)
            continue;
        end_hold(hosts, i, false);
        hosts->ops->push(hosts->transport, i);
    }
}

bool emu_hosts_has_room(const struct emu_server *server, uint32_t host)
{
    const struct peer *peer = &hosts_of(server)->peers[host];

    return peer->n_queued < MESSAGES_SOFT && peer->queued_bytes < BYTES_SOFT;
}

bool emu_hosts_is_idle(const struct emu_server *server, uint32_t host)
{
    return STAILQ_EMPTY(&hosts_of(server)->peers[host].queue);
}

int emu_hosts_send(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes)
{
    struct emu_hosts *hosts = hosts_of(server);

    if (!hosts || host >= hosts->n || !hosts->peers[host].is_up)
        return -ENOTCONN;
    if (!emu_hosts_has_room(server, host))
        return -ENOBUFS;
    if (hosts->peers[host].held_until_ns != 0)
        end_hold(hosts, host, true);
    return send_or_queue(hosts, host, message, length_bytes);
}

static void leave_later(struct emu_hosts *hosts, uint32_t host)
{
    hosts->peers[host].must_leave = true;
    hosts->has_chores = true;
}

static bool may_hold(struct peer *peer)
{
    return STAILQ_EMPTY(&peer->queue) &&
           (peer->held_until_ns != 0 || peer->hold_pays >= HOLD_PAYS || ++peer->n_answers % HOLD_TRIES == 0);
}

static int hold(struct emu_hosts *hosts, uint32_t host, const void *message, uint32_t length_bytes)
{
    struct peer *peer = &hosts->peers[host];
    int r = hosts->ops->send_later(hosts->transport, host, message, length_bytes);

    hosts->quiet = 0;
    if (r == EMU_TRANSPORT_FULL)
        return enqueue(peer, message, length_bytes);
    if (r == 0 && peer->held_until_ns == 0) {
        peer->held_until_ns = emu_clock_ns() + HOLD_NS;
        hosts->n_holding++;
    }
    return r;
}

int emu_hosts_answer(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes)
{
    struct emu_hosts *hosts = hosts_of(server);
    int r;

    if (!hosts || host >= hosts->n || !hosts->peers[host].is_up)
        return -ENOTCONN;
    if (hosts->peers[host].queued_bytes >= QUEUE_MAX_BYTES)
        r = -ENOMEM;
    else if (may_hold(&hosts->peers[host]))
        r = hold(hosts, host, message, length_bytes);
    else
        r = send_or_queue(hosts, host, message, length_bytes);
    if (r == -ENOMEM) {
        emu_hosts_refuse(server, host, "asks for more than it takes");
        leave_later(hosts, host);
    }
    return r;
}

void emu_hosts_refuse(struct emu_server *server, uint32_t host, const char *what)
{
    struct peer *peer = &hosts_of(server)->peers[host];
    uint64_t now_ns = emu_clock_ns();

    peer->refused++;
    if (peer->refuse_log_ns != 0 && now_ns - peer->refuse_log_ns < REFUSE_LOG_NS)
        return;
    peer->refuse_log_ns = now_ns;
    emu_log(EMU_LOG_WARN, "host %s: %s; %llu of its messages refused so far, %llu lines held back", peer->name, what,
            (unsigned long long)peer->refused, (unsigned long long)(peer->refused - peer->refused_told - 1));
    peer->refused_told = peer->refused;
}

/* ---- answers that are due ---- */

void emu_hosts_owe(struct emu_server *server, uint32_t host)
{
    hosts_of(server)->peers[host].n_owed++;
    hosts_of(server)->n_owed++;
}

bool emu_hosts_pay(struct emu_server *server, uint32_t host)
{
    struct peer *peer = &hosts_of(server)->peers[host];

    if (peer->n_owed == 0)
        return false; /* of a session before this one */
    peer->n_owed--;
    peer->owed_since_ns = 0;
    hosts_of(server)->n_owed--;
    return true;
}

static void cancel_debts(struct emu_hosts *hosts, struct peer *peer)
{
    hosts->n_owed -= peer->n_owed;
    peer->n_owed = 0;
    peer->owed_since_ns = 0;
    peer->pinged_ns = 0;
    peer->awaits_pong = false;
}

void emu_hosts_drop(struct emu_server *server, uint32_t host, const char *why)
{
    struct peer *peer = &hosts_of(server)->peers[host];

    if (!peer->is_up || peer->must_leave)
        return;
    emu_log(EMU_LOG_WARN, "host %s %s for %llu ms: it counts as lost", peer->name, why,
            (unsigned long long)(hosts_of(server)->timeout_ns / 1000000));
    leave_later(hosts_of(server), host);
}

void emu_hosts_hear_pong(struct emu_server *server, uint32_t host)
{
    hosts_of(server)->peers[host].awaits_pong = false;
}

static void ping(struct emu_server *server, uint32_t host, uint64_t now_ns)
{
    const struct emu_host_admin question = { .op = EMU_HOST_ADMIN_PING };
    struct peer *peer = &hosts_of(server)->peers[host];
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];

    peer->pinged_ns = now_ns;
    peer->awaits_pong = true;
    emu_hosts_answer(server, host, message, emu_host_admin_put(message, &question, NULL));
}

/* Longer between two rounds than any sleep of ours: the transport wakes us every twentieth of the timeout. */
static void notice_pause(struct emu_hosts *hosts)
{
    uint64_t now_ns = emu_clock_ns();

    if (hosts->round_ns != 0 && now_ns - hosts->round_ns > hosts->timeout_ns / 5)
        hosts->paused_ns += now_ns - hosts->round_ns;
    hosts->round_ns = now_ns;
}

static bool is_late(const struct emu_hosts *hosts, uint64_t since_ns, uint64_t now_ns)
{
    return since_ns != 0 && now_ns - since_ns > hosts->timeout_ns;
}

static void look_at_peers(struct emu_server *server)
{
    struct emu_hosts *hosts = hosts_of(server);
    uint64_t now_ns = emu_hosts_now_ns(server);

    for (uint32_t i = 0; i < hosts->n; i++) {
        struct peer *peer = &hosts->peers[i];

        if (!peer->is_up)
            continue;
        if (peer->n_owed > 0 && is_late(hosts, peer->owed_since_ns, now_ns))
            emu_hosts_drop(server, i, "has not answered a command");
        else if (peer->n_owed > 0 && peer->owed_since_ns == 0)
            peer->owed_since_ns = now_ns;
        if (peer->awaits_pong && peer->has_spoken)
            peer->pinged_ns = now_ns;
        peer->has_spoken = false;
        if (peer->awaits_pong && is_late(hosts, peer->pinged_ns, now_ns))
            emu_hosts_drop(server, i, "has not answered");
        else if (!peer->awaits_pong && (peer->pinged_ns == 0 || is_late(hosts, peer->pinged_ns, now_ns)))
            ping(server, i, now_ns);
    }
}

uint64_t emu_hosts_timeout_ns(const struct emu_server *server)
{
    return hosts_of(server) ? hosts_of(server)->timeout_ns : 0;
}

uint64_t emu_hosts_now_ns(const struct emu_server *server)
{
    return emu_clock_ns() - (hosts_of(server) ? hosts_of(server)->paused_ns : 0);
}

/* ---- messages ---- */

static bool is_plain(const char *text)
{
    for (; *text; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

static void take_hello(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_hosts *hosts = hosts_of(server);
    struct peer *peer = &hosts->peers[host];
    struct emu_host_hello hello;

    if (peer->must_leave)
        return;
    if (peer->is_up || !emu_host_hello_parse(bytes, length_bytes, &hello)) {
        emu_hosts_refuse(server, host, "a hello that makes no sense");
        return;
    }
    if (hello.n_hosts != hosts->n || hello.n_nids != server->n_nids || strcmp(hello.name, peer->name) != 0) {
        char what[256];

        snprintf(what, sizeof(what),
                 "calls itself %s of %u hosts, machine of %u nodes; here there are %u hosts and %u nodes",
                 is_plain(hello.name) ? hello.name : "what is no name", hello.n_hosts, hello.n_nids, hosts->n,
                 server->n_nids);
        emu_hosts_refuse(server, host, what);
        leave_later(hosts, host);
        return;
    }
    peer->is_up = true;
    peer->differs = false;
    peer->up_ns = emu_clock_ns();
    emu_log(EMU_LOG_INFO, "host %s is up", peer->name);
}

/* Each part takes the messages of its kinds. */
static void dispatch(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    const struct emu_message_row *row;
    struct emu_host_head head;

    if (!emu_host_head_parse(bytes, length_bytes, &head)) {
        emu_hosts_refuse(server, host, "a message of no known kind or of another version");
        return;
    }
    if (head.kind == EMU_HOST_HELLO) {
        take_hello(server, host, bytes, length_bytes);
        return;
    }
    if (!hosts_of(server)->peers[host].is_up)
        return; /* it is being left */
    row = head.kind < EMU_MESSAGE_KINDS ? server->parts->messages[head.kind] : NULL;
    if (!row || !row->take(server, host, bytes, length_bytes))
        emu_hosts_refuse(server, host, "a message that makes no sense");
}

/* ---- what the transport tells ---- */

static void peer_up(void *owner, uint32_t host)
{
    struct emu_server *server = owner;
    struct emu_hosts *hosts = hosts_of(server);
    struct emu_host_hello hello = { .n_hosts = hosts->n, .n_nids = server->n_nids };
    uint8_t message[EMU_HOST_HELLO_BYTES];

    memcpy(hello.name, hosts->peers[hosts->own].name, sizeof(hello.name));
    emu_host_hello_put(message, &hello);
    /* A new session has room. */
    if (hosts->ops->send(hosts->transport, host, message, sizeof(message)) != EMU_TRANSPORT_OK)
        leave_later(hosts, host);
    hosts->n_things++;
}

static void peer_down(void *owner, uint32_t host, int cause)
{
    struct emu_server *server = owner;
    struct emu_hosts *hosts = hosts_of(server);
    struct peer *peer = &hosts->peers[host];
    uint64_t now_ns = emu_clock_ns();
    bool was_up = peer->is_up;

    peer->is_up = false;
    peer->must_leave = false;
    peer->must_join = true;
    /* One that comes only to be refused is not joined more often. */
    peer->join_at_ns = was_up && now_ns - peer->up_ns >= REJOIN_NS ? 0 : now_ns + REJOIN_NS;
    hosts->has_chores = true;
    hosts->n_things++;
    drop_queue(peer);
    cancel_debts(hosts, peer);
    if (peer->held_until_ns != 0)
        end_hold(hosts, host, false);
    if (!was_up)
        return;
    if (cause == -ESHUTDOWN)
        emu_log(EMU_LOG_INFO, "host %s has said goodbye", peer->name);
    else
        emu_log(EMU_LOG_WARN, "host %s is down: %s", peer->name, strerror(-cause));
    emu_parts_host_down(server, host);
}

static void peer_moved(void *owner, uint32_t host)
{
    emu_parts_host_moved(owner, host);
}

static bool peer_message(void *owner, uint32_t host, const void *data, uint32_t length_bytes)
{
    struct emu_server *server = owner;
    bool was_up = hosts_of(server)->peers[host].is_up;

    hosts_of(server)->n_things++;
    hosts_of(server)->peers[host].has_spoken = true;
    dispatch(server, host, data, length_bytes);
    if (!was_up && hosts_of(server)->peers[host].is_up)
        emu_parts_host_up(server, host);
    return true;
}

static void peer_room(void *owner, uint32_t host)
{
    struct emu_server *server = owner;

    drain(hosts_of(server), host);
}

static void transfer_done(void *owner, uint64_t cookie, int result)
{
    struct emu_server *server = owner;

    hosts_of(server)->n_things++;
    emu_parts_transfer_done(server, cookie, result);
}

/* Once, until it has been up. */
static void secure_differs(void *owner, uint32_t host)
{
    struct emu_server *server = owner;
    struct emu_hosts *hosts = hosts_of(server);
    const char *own = hosts->peers[hosts->own].name;
    const char *other = hosts->peers[host].name;

    if (hosts->peers[host].differs)
        return;
    hosts->peers[host].differs = true;
    emu_log(EMU_LOG_WARN,
            "host %s has --secure and host %s has not: they refuse each other; all hosts or none must have it",
            hosts->is_secure ? own : other, hosts->is_secure ? other : own);
}

static void transport_log(void *owner, enum emu_log_level level, const char *line)
{
    (void)owner;
    emu_log(level, "%s", line);
}

static const struct emu_transport_events events = {
    .peer_up = peer_up,
    .peer_down = peer_down,
    .peer_moved = peer_moved,
    .message = peer_message,
    .room = peer_room,
    .transfer_done = transfer_done,
    .secure_differs = secure_differs,
    .log = transport_log,
};

/* ---- rounds ---- */

static void transport_ready(struct emu_server *server, struct emu_watch *watch, uint32_t what)
{
    (void)watch;
    (void)what;
    hosts_of(server)->quiet = 0; /* the next round looks */
}

/* Runs after a change only. */
static void do_chores(struct emu_hosts *hosts)
{
    uint64_t now_ns = emu_clock_ns();

    hosts->has_chores = false;
    for (uint32_t i = 0; i < hosts->n; i++) {
        struct peer *peer = &hosts->peers[i];

        if (peer->must_leave) {
            peer->must_leave = false;
            hosts->ops->leave(hosts->transport, i);
        }
        if (!peer->must_join)
            continue;
        if (now_ns >= peer->join_at_ns) {
            peer->must_join = hosts->ops->join(hosts->transport, i, peer->blob.bytes, peer->blob.length_bytes) != 0;
            peer->join_at_ns = now_ns + REJOIN_NS;
        }
        hosts->has_chores = hosts->has_chores || peer->must_join;
    }
}

static unsigned look_round(struct emu_server *server)
{
    struct emu_hosts *hosts = hosts_of(server);
    bool is_time_to_look;

    if (!hosts)
        return 0;
    is_time_to_look = hosts->looks++ % LOOK_EVERY == 0;
    if (!is_time_to_look && hosts->quiet >= QUIET_ROUNDS && hosts->quiet++ % QUIET_EVERY != 0)
        return 0;
    notice_pause(hosts);
    hosts->n_things = 0;
    if (hosts->n_holding > 0)
        push_held(hosts);
    hosts->ops->progress(hosts->transport);
    if (is_time_to_look)
        look_at_peers(server);
    if (hosts->has_chores)
        do_chores(hosts);
    if (hosts->n_things > 0 || hosts->n_holding > 0 || emu_parts_are_moving(server))
        hosts->quiet = 0;
    else if (hosts->quiet < QUIET_ROUNDS)
        hosts->quiet++;
    return hosts->n_things;
}

static bool has_work(struct emu_server *server)
{
    struct emu_hosts *hosts = hosts_of(server);

    if (!hosts || !hosts->can_sleep)
        return false;
    notice_pause(hosts);
    look_at_peers(server);
    if (hosts->n_holding == 0 && hosts->ops->may_sleep(hosts->transport))
        return false;
    hosts->quiet = 0;
    return true;
}

/* The most that a sleep may last, because nothing would end it. */
static uint64_t next_ns(const struct emu_server *server)
{
    const struct emu_hosts *hosts = hosts_of(server);
    uint64_t sleep_ns;

    if (!hosts)
        return UINT64_MAX;
    if (!hosts->can_sleep)
        sleep_ns = BLIND_SLEEP_NS;
    else if (hosts->has_chores)
        sleep_ns = REJOIN_NS;
    else
        sleep_ns = hosts->timeout_ns / 4;
    return emu_clock_ns() + sleep_ns;
}

/* ---- life ---- */

static int take_names(struct emu_hosts *hosts, const struct emu_hosts_options *options, const struct emu_complaint *why)
{
    for (uint32_t i = 0; i < hosts->n; i++) {
        if (strlen(options->names[i]) > EMU_HOST_NAME_MAX) {
            snprintf(why->text, why->bytes, "host name '%s' has more than %u characters", options->names[i],
                     EMU_HOST_NAME_MAX);
            return -EINVAL;
        }
        strcpy(hosts->peers[i].name, options->names[i]);
        hosts->peers[i].n_nodes = options->n_nodes ? options->n_nodes[i] : 0;
    }
    return 0;
}

static int open_transport(struct emu_server *server, const struct emu_hosts_options *options,
                          const struct emu_complaint *why)
{
    struct emu_hosts *hosts = hosts_of(server);
    struct timespec now;
    struct emu_transport_config config = {
        .host = options->own,
        .n_hosts = options->n,
        .key = options->key,
        .key_bytes = options->key_bytes,
        .provider = options->provider,
        .node = options->node,
        .service = options->service,
        .is_rma_off = options->is_rma_off,
        .is_secure = hosts->is_secure,
        .timeout_ns = hosts->timeout_ns,
        .admission_ns = server->settings.admission_ns,
        .n_strangers = (uint32_t)server->settings.strangers,
        .n_strangers_per_address = (uint32_t)server->settings.strangers_per_address,
        .n_strangers_per_second = (uint32_t)server->settings.strangers_per_second,
        .events = &events,
        .owner = server,
    };
    struct emu_transport_info info;
    const char *text;
    int r;

    /* Later starts have greater numbers, on the same host at least. */
    clock_gettime(CLOCK_REALTIME, &now);
    config.incarnation = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
    r = emu_transport_load(options->module, &hosts->ops, &text);
    if (r < 0) {
        snprintf(why->text, why->bytes, "no transport: %s", r == -EPROTO ? "module of another version" : text);
        return r;
    }
    r = hosts->ops->open(&config, &hosts->transport);
    if (r < 0) {
        snprintf(why->text, why->bytes, "no transport over %s at %s port %s: %s",
                 options->provider ? options->provider : "any provider", options->node ? options->node : "any address",
                 options->service ? options->service : "any", strerror(-r));
        return r;
    }
    hosts->ops->info(hosts->transport, &info);
    hosts->can_sleep = info.can_sleep;
    memcpy(hosts->device, info.domain, sizeof(hosts->device));
    hosts->fd = hosts->ops->fd(hosts->transport);
    emu_log(EMU_LOG_INFO, "host %s, %u of %u: provider %s, domain %s%s", hosts->peers[hosts->own].name, hosts->own,
            hosts->n, info.provider, info.domain, hosts->is_secure ? ", secure" : "");
    return emu_server_watch(server, hosts->fd, EPOLLIN, &hosts->watch);
}

static int find_blobs(struct emu_hosts *hosts, const struct emu_hosts_options *options, const struct emu_complaint *why)
{
    struct emu_host_blob own;
    struct emu_host_blob *blobs;
    int r = hosts->ops->address(hosts->transport, own.bytes, &own.length_bytes);

    if (r < 0)
        return r;
    if (options->exchange) {
        blobs = calloc(hosts->n, sizeof(*blobs));
        if (!blobs)
            return -ENOMEM;
        r = options->exchange(options->ctx, &own, blobs);
        for (uint32_t i = 0; r == 0 && i < hosts->n; i++)
            hosts->peers[i].blob = blobs[i];
        free(blobs);
        if (r < 0)
            snprintf(why->text, why->bytes, "hosts cannot exchange their addresses: %s", strerror(-r));
        return r;
    }
    for (uint32_t i = 0; i < hosts->n; i++) {
        struct emu_host_blob *blob = &hosts->peers[i].blob;

        if (i == hosts->own)
            continue;
        r = hosts->ops->address_of(hosts->transport, i, options->peer_nodes[i], options->peer_services[i], blob->bytes,
                                   &blob->length_bytes);
        if (r < 0) {
            snprintf(why->text, why->bytes, "host %s: no address for %s port %s: %s", hosts->peers[i].name,
                     options->peer_nodes[i], options->peer_services[i], strerror(-r));
            return r;
        }
    }
    return 0;
}

static int create_sessions(struct emu_server *server, const struct emu_server_options *server_options,
                           struct emu_complaint *why)
{
    const struct emu_hosts_options *options = server_options->hosts;
    struct emu_hosts *hosts;
    int r;

    if (!options)
        return 0;
    if (options->n < 2 || options->n > EMU_WIRE_HOSTS_MAX || options->own >= options->n)
        return -EINVAL;
    hosts = calloc(1, sizeof(*hosts) + options->n * sizeof(hosts->peers[0]));
    if (!hosts)
        return -ENOMEM;
    server->slots[EMU_SERVER_SESSIONS] = hosts;
    hosts->watch.ready = transport_ready;
    hosts->fd = -1;
    hosts->n = options->n;
    hosts->own = options->own;
    hosts->is_secure = options->is_secure || server->settings.secure != 0;
    hosts->timeout_ns = options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
    for (uint32_t i = 0; i < hosts->n; i++)
        STAILQ_INIT(&hosts->peers[i].queue);
    server->n_hosts = hosts->n;
    server->own_host = hosts->own;
    /* Of requests that several emunics answer one after the other: who was asked, the head, the others. */
    server->answer_ms = (uint32_t)(3 * hosts->timeout_ns / 1000000);
    r = take_names(hosts, options, why);
    return r == 0 ? open_transport(server, options, why) : r;
}

static int open_links(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_hosts *hosts = hosts_of(server);
    int r;

    if (!hosts)
        return 0;
    r = find_blobs(hosts, options->hosts, why);
    for (uint32_t i = 0; r == 0 && i < hosts->n; i++) {
        if (i != hosts->own)
            r = hosts->ops->join(hosts->transport, i, hosts->peers[i].blob.bytes, hosts->peers[i].blob.length_bytes);
    }
    return r;
}

static void close_links(struct emu_server *server)
{
    struct emu_hosts *hosts = hosts_of(server);

    if (!hosts || !hosts->transport)
        return;
    if (hosts->fd >= 0)
        emu_server_unwatch(server, hosts->fd);
    hosts->ops->close(hosts->transport);
    hosts->transport = NULL;
}

static void destroy_sessions(struct emu_server *server)
{
    struct emu_hosts *hosts = hosts_of(server);

    if (!hosts)
        return;
    close_links(server);
    for (uint32_t i = 0; i < hosts->n; i++)
        drop_queue(&hosts->peers[i]);
    free(hosts);
    server->slots[EMU_SERVER_SESSIONS] = NULL;
}

static void put_status(const struct emu_server *server, uint32_t host, uint64_t *row)
{
    const struct emu_hosts *hosts = hosts_of(server);
    struct emu_transport_stats stats = { 0 };

    if (host != hosts->own)
        hosts->ops->stats(hosts->transport, host, &stats);
    row[EMU_STATUS_SESSION_COUNT] = stats.sessions;
    row[EMU_STATUS_SESSION_MESSAGES_SENT] = stats.messages_sent;
    row[EMU_STATUS_SESSION_MESSAGES_RECEIVED] = stats.messages_received;
    row[EMU_STATUS_SESSION_PACKETS_SENT] = stats.packets_sent;
    row[EMU_STATUS_SESSION_PACKETS_RECEIVED] = stats.packets_received;
    row[EMU_STATUS_SESSION_BYTES_SENT] = stats.bytes_sent;
    row[EMU_STATUS_SESSION_BYTES_RECEIVED] = stats.bytes_received;
    row[EMU_STATUS_SESSION_PUT_BYTES] = stats.put_bytes;
    row[EMU_STATUS_SESSION_GET_BYTES] = stats.get_bytes;
    row[EMU_STATUS_SESSION_QUEUED] = hosts->peers[host].n_queued;
    row[EMU_STATUS_SESSION_REFUSED] = hosts->peers[host].refused + stats.refused;
    row[EMU_STATUS_SESSION_CIPHER] = stats.cipher;
}

const struct emu_part emu_sessions_part = {
    .name = "sessions",
    .create = create_sessions,
    .destroy = destroy_sessions,
    .status = { .session = put_status },
};

const struct emu_part emu_links_part = {
    .name = "links",
    .create = open_links,
    .destroy = close_links,
    .loop = { .round = look_round, .has_work = has_work, .next_ns = next_ns },
};
