/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening, joining, rounds, waiting. transport.h has the model; peer_session.c has handshakes and ends, stream.c
 * packets.
 *
 * Received packets are posted for all peers together, as many as all peers may have under way.
 *
 * A round (progress) takes completions, then looks at the listed peers: those for which something changed.
 */
#include "emunic/transport/transport.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/transport/inner.h"

#define BLOB_MAGIC      0x454d5442u /* "EMTB" */
#define BLOB_HEAD_BYTES (20u + EMU_TRANSPORT_NAME_MAX)
#define POLL_BATCH      32
#define POLL_ROUNDS     4
#define RETRY_NS        2000000ull
#define SECOND_NS       1000000000ull

static_assert(BLOB_HEAD_BYTES + EMU_CARRIER_ADDRESS_MAX <= EMU_TRANSPORT_BLOB_MAX, "an address fits its blob");

void emu_transport_say(struct emu_transport *t, enum emu_log_level level, const char *format, ...)
{
    char line[256];
    va_list args;

    if (!t->events->log)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    t->events->log(t->owner, level, line);
}

/* ---- for all files of the transport ---- */

void emu_peer_list(struct emu_peer *p)
{
    if (p->is_listed)
        return;
    p->is_listed = true;
    p->next_listed = p->t->listed;
    p->t->listed = p;
}

void emu_transport_post(struct emu_transport *t, struct emu_packet *packet)
{
    int r = t->carrier->ops->receive(t->carrier, &packet->op, packet->bytes, EMU_WIRE_PACKET_MAX, packet->desc);

    if (r < 0)
        emu_packet_push(&t->unposted, packet);
}

void emu_transport_refuse(struct emu_transport *t, struct emu_peer *p, const char *why)
{
    uint64_t *count = p ? &p->stats.refused : &t->refused;
    uint64_t *told_ns = p ? &p->refused_log_ns : &t->refused_log_ns;
    uint64_t *told = p ? &p->refused_told : &t->refused_told;
    unsigned long long held_back;

    (*count)++;
    if (*told_ns != 0 && t->now_ns - *told_ns < SECOND_NS)
        return;
    *told_ns = t->now_ns;
    held_back = *count - *told - 1;
    *told = *count;
    if (p)
        emu_transport_say(t, EMU_LOG_WARN, "packet refused: it says host %u, %s; %llu so far, %llu lines held back",
                          p->host, why, (unsigned long long)*count, held_back);
    else
        emu_transport_say(t, EMU_LOG_WARN,
                          "packet refused: of no host that was joined, %s; %llu so far, %llu lines held back", why,
                          (unsigned long long)*count, held_back);
}

struct emu_peer *emu_peer_of(struct emu_transport *t, uint32_t host)
{
    return host < t->n_hosts ? t->peers[host] : NULL;
}

/* ---- rounds ---- */

static void take_event(struct emu_transport *t, const struct emu_carrier_event *event)
{
    struct emu_packet *packet;

    switch (event->op->kind) {
    case EMU_OP_PACKET:
    case EMU_OP_CONTROL:
        emu_stream_sent((struct emu_packet *)event->op, event->result);
        break;
    case EMU_OP_RECEIVE:
        packet = (struct emu_packet *)event->op;
        if (event->result == -EMSGSIZE)
            emu_transport_refuse(t, NULL, "too long");
        if (event->result < 0 || !emu_session_take(t, packet, event->length_bytes))
            emu_transport_post(t, packet);
        break;
    case EMU_OP_SLICE:
        emu_transfer_slice_done((struct emu_slice *)event->op, event->result);
        break;
    default:
        break;
    }
}

/* What there is to do for a peer that something happened to. */
static void serve(struct emu_peer *p)
{
    struct emu_transport *t = p->t;

    if (p->state == EMU_PEER_ENDING) {
        emu_session_finish(p);
        return;
    }
    if (p->state != EMU_PEER_UP || p->is_mending)
        return;
    emu_stream_flush(p);
    emu_transfer_answer(p);
    emu_transfer_advance(p);
    if (p->state != EMU_PEER_UP || p->is_mending)
        return;
    emu_stream_flush(p);
    if (p->state != EMU_PEER_UP || p->is_mending)
        return;
    if (p->owes_heartbeat || p->rx_consumed + t->credits - p->rx_told >= t->credits / 2 ||
        p->rx_packets - p->rx_received >= EMU_ACK_EVERY)
        p->owes_heartbeat = !emu_stream_control(p, EMU_WIRE_DATA, NULL);
    if (p->state != EMU_PEER_UP || p->is_mending)
        return;
    if (p->owes_heartbeat) {
        p->must_retry = true;
        emu_peer_list(p);
    }
    if (p->wants_room && p->n_free >= EMU_TX_PACKETS / 4) {
        p->wants_room = false;
        if (t->events->room)
            t->events->room(t->owner, p->host);
    }
}

static void arm_timer(struct emu_transport *t)
{
    struct itimerspec when = { .it_value = { .tv_sec = (time_t)(t->next_tick_ns / SECOND_NS),
                                             .tv_nsec = (long)(t->next_tick_ns % SECOND_NS) } };

    timerfd_settime(t->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void emu_transport_hurry(struct emu_transport *t)
{
    t->next_tick_ns = t->now_ns;
    arm_timer(t);
}

/* This process did not run for so long, which is nobody's silence. */
static void forgive(struct emu_transport *t, uint64_t pause_ns)
{
    for (uint32_t i = 0; i < t->n_hosts; i++) {
        struct emu_peer *p = t->peers[i];

        if (!p)
            continue;
        p->joined_ns += pause_ns;
        p->last_heard_ns += pause_ns;
        if (p->joined_ns > t->now_ns)
            p->joined_ns = t->now_ns;
        if (p->last_heard_ns > t->now_ns)
            p->last_heard_ns = t->now_ns;
    }
}

/* Connections of strangers get a line at most once a second. */
static void tell_of_strangers(struct emu_transport *t)
{
    struct emu_carrier_strangers s;

    if (!t->carrier->ops->strangers || (t->strangers_log_ns != 0 && t->now_ns - t->strangers_log_ns < SECOND_NS))
        return;
    t->carrier->ops->strangers(t->carrier, &s);
    if (s.refused == t->strangers_told)
        return;
    /* Who only differs in being secure is a host, and called by its name (secure_differs()). */
    emu_transport_say(t, s.error == -EOPNOTSUPP ? EMU_LOG_DEBUG : EMU_LOG_WARN,
                      "connection refused: from %s, %s; %llu so far, %llu lines held back", s.address, s.reason,
                      (unsigned long long)s.refused, (unsigned long long)(s.refused - t->strangers_told - 1));
    t->strangers_told = s.refused;
    t->strangers_log_ns = t->now_ns;
}

/* Time does its work: hellos, heartbeats, silence. */
static void tick(struct emu_transport *t)
{
    struct emu_packet *packet = t->unposted.first;
    uint64_t step_ns = t->timeout_ns / 20;

    tell_of_strangers(t);
    /* Each once: what is still refused goes back to the list. */
    t->unposted = (struct emu_packet_list){ .first = NULL };
    while (packet) {
        struct emu_packet *next = packet->next;

        emu_transport_post(t, packet);
        packet = next;
    }
    for (uint32_t i = 0; i < t->n_hosts; i++) {
        struct emu_peer *p = t->peers[i];

        if (!p)
            continue;
        emu_session_tick(p);
        if ((p->state == EMU_PEER_JOINING || p->is_mending) && p->next_hello_ns - t->now_ns < step_ns)
            step_ns = p->next_hello_ns - t->now_ns;
        if ((p->is_listed || p->state == EMU_PEER_ENDING) && step_ns > RETRY_NS)
            step_ns = RETRY_NS;
    }
    t->next_tick_ns = t->now_ns + step_ns;
    arm_timer(t);
}

static int transport_progress(struct emu_transport *t)
{
    struct emu_carrier_event events[POLL_BATCH];
    uint64_t now_ns = emu_clock_ns();
    uint64_t gap_ns = now_ns - t->now_ns;
    struct emu_peer *p;
    int n_events = 0;

    t->now_ns = now_ns;
    if (gap_ns > t->timeout_ns / 5)
        forgive(t, gap_ns);
    for (int round = 0; round < POLL_ROUNDS; round++) {
        int n = t->carrier->ops->poll(t->carrier, events, POLL_BATCH);

        for (int i = 0; i < n; i++)
            take_event(t, &events[i]);
        if (n > 0)
            n_events += n;
        if (n < POLL_BATCH)
            break;
    }
    p = t->listed;
    t->listed = NULL;
    while (p) {
        struct emu_peer *next = p->next_listed;

        p->is_listed = false;
        serve(p);
        p = next;
    }
    if (now_ns >= t->next_tick_ns)
        tick(t);
    else if (t->listed && t->next_tick_ns > now_ns + RETRY_NS) {
        t->next_tick_ns = now_ns + RETRY_NS;
        arm_timer(t);
    }
    return n_events;
}

/* Is anybody listed who can go on at once? Who waits for room in the carrier, or for its last RMA, cannot. */
static bool has_work(const struct emu_transport *t)
{
    for (const struct emu_peer *p = t->listed; p; p = p->next_listed) {
        if (!p->must_retry && !(p->state == EMU_PEER_ENDING && p->n_rma > 0))
            return true;
    }
    return false;
}

static bool transport_may_sleep(struct emu_transport *t)
{
    return !has_work(t) && t->limits.fd >= 0 && t->carrier->ops->may_sleep(t->carrier);
}

static int transport_fd(struct emu_transport *t)
{
    return t->epoll_fd;
}

/* ---- joining and leaving ---- */

/* Its length. */
static uint32_t write_blob(const struct emu_transport *t, uint32_t host, uint64_t incarnation, const uint8_t *address,
                           uint32_t length, uint8_t *at)
{
    memset(at, 0, BLOB_HEAD_BYTES);
    at = emu_wire_put32(at, BLOB_MAGIC);
    at = emu_wire_put16(at, EMU_WIRE_VERSION);
    at = emu_wire_put16(at, (uint16_t)length);
    at = emu_wire_put32(at, host);
    at = emu_wire_put64(at, incarnation);
    strncpy((char *)at, t->limits.provider, EMU_TRANSPORT_NAME_MAX - 1);
    memcpy(at + EMU_TRANSPORT_NAME_MAX, address, length);
    return BLOB_HEAD_BYTES + length;
}

static int transport_address(struct emu_transport *t, void *blob_out, uint32_t *length_out)
{
    uint8_t address[EMU_CARRIER_ADDRESS_MAX];
    uint32_t length;
    int r = t->carrier->ops->address(t->carrier, address, &length);

    if (r < 0)
        return r;
    *length_out = write_blob(t, t->host, t->incarnation, address, length, blob_out);
    return 0;
}

static int transport_address_of(struct emu_transport *t, uint32_t host, const char *node, const char *service,
                                void *blob_out, uint32_t *length_out)
{
    uint8_t address[EMU_CARRIER_ADDRESS_MAX];
    uint32_t length;
    int r = t->carrier->ops->resolve ? t->carrier->ops->resolve(t->carrier, node, service, address, &length) : -ENOSYS;

    if (r < 0)
        return r;
    *length_out = write_blob(t, host, 0, address, length, blob_out);
    return 0;
}

/* 0, or -EINVAL. */
static int read_blob(struct emu_transport *t, uint32_t host, const uint8_t *blob, uint32_t length_bytes,
                     uint64_t *incarnation_out)
{
    char provider[EMU_TRANSPORT_NAME_MAX];

    if (length_bytes <= BLOB_HEAD_BYTES || length_bytes > EMU_TRANSPORT_BLOB_MAX ||
        emu_wire_get32(blob) != BLOB_MAGIC || (blob[4] << 8 | blob[5]) != (int)EMU_WIRE_VERSION ||
        BLOB_HEAD_BYTES + (blob[6] << 8 | blob[7]) != length_bytes || emu_wire_get32(blob + 8) != host) {
        emu_transport_say(t, EMU_LOG_ERROR, "host %u: its address is none, or of another version", host);
        return -EINVAL;
    }
    memcpy(provider, blob + 20, sizeof(provider));
    provider[sizeof(provider) - 1] = '\0';
    if (strcmp(provider, t->limits.provider) != 0) {
        emu_transport_say(t, EMU_LOG_ERROR, "host %u uses another provider than %s", host, t->limits.provider);
        return -EINVAL;
    }
    *incarnation_out = emu_wire_get64(blob + 12);
    return 0;
}

/* Of a peer. What is sealed has a place of its own, for a packet may have to be sealed again. */
static size_t block_bytes(const struct emu_transport *t)
{
    uint32_t n_sent = EMU_TX_PACKETS + EMU_KEPT_PACKETS + EMU_CONTROL_PACKETS;

    return (size_t)(n_sent * (t->is_secure ? 2 : 1) + EMU_SPARE_PACKETS + t->credits) * EMU_WIRE_PACKET_MAX;
}

/* The peer's packets: to be sent, without records, and posted for all. */
static int make_packets(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    uint32_t n_sent = EMU_TX_PACKETS + EMU_KEPT_PACKETS + EMU_CONTROL_PACKETS;
    uint32_t n = n_sent + EMU_SPARE_PACKETS + t->credits;
    size_t bytes = block_bytes(t);
    int r;

    p->packets = calloc(n, sizeof(*p->packets));
    if (!p->packets)
        return -ENOMEM;
    p->block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->block == MAP_FAILED) {
        free(p->packets);
        return -ENOMEM;
    }
    r = t->carrier->ops->map(t->carrier, p->block, bytes, 0, 0, &p->memory);
    if (r < 0) {
        munmap(p->block, bytes);
        free(p->packets);
        return r;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct emu_packet *packet = &p->packets[i];

        packet->peer = p;
        packet->bytes = p->block + (size_t)i * EMU_WIRE_PACKET_MAX;
        packet->wire = i < n_sent && t->is_secure ? p->block + (size_t)(n + i) * EMU_WIRE_PACKET_MAX : packet->bytes;
        packet->desc = p->memory.desc;
        if (i < EMU_TX_PACKETS + EMU_KEPT_PACKETS) {
            packet->op.kind = EMU_OP_PACKET;
            emu_stream_give_back(p, packet);
        } else if (i < n_sent) {
            packet->op.kind = EMU_OP_CONTROL;
            emu_packet_push(&p->control, packet);
        } else {
            packet->op.kind = EMU_OP_RECEIVE;
            emu_transport_post(t, packet);
        }
    }
    return 0;
}

static void free_peer(struct emu_peer *p)
{
    munmap(p->block, block_bytes(p->t));
    free(p->packets);
    emu_crypt_wipe(p, sizeof(*p));
    free(p);
}

static int make_peer(struct emu_transport *t, uint32_t host, struct emu_peer **peer_out)
{
    struct emu_peer *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    p->t = t;
    p->host = host;
    for (uint32_t i = 0; i < EMU_SLICES; i++) {
        p->slices[i].op.kind = EMU_OP_SLICE;
        p->slices[i].peer = p;
    }
    r = make_packets(p);
    if (r < 0) {
        free(p);
        return r;
    }
    t->peers[host] = p;
    *peer_out = p;
    return 0;
}

static int transport_join(struct emu_transport *t, uint32_t host, const void *blob, uint32_t length_bytes)
{
    struct emu_peer *p = emu_peer_of(t, host);
    uint64_t incarnation;
    int r;

    if (host >= t->n_hosts || host == t->host)
        return -EINVAL;
    r = read_blob(t, host, blob, length_bytes, &incarnation);
    if (r < 0)
        return r;
    if (p && p->state != EMU_PEER_ABSENT)
        return -EBUSY;
    if (p && incarnation != 0 && incarnation < p->last_incarnation)
        return -ESTALE;
    if (!p)
        r = make_peer(t, host, &p);
    if (r == 0)
        r = t->carrier->ops->add(t->carrier, (const uint8_t *)blob + BLOB_HEAD_BYTES, length_bytes - BLOB_HEAD_BYTES,
                                 &p->addr);
    if (r < 0)
        return r;
    p->incarnation = incarnation;
    if (incarnation != 0)
        p->last_incarnation = incarnation;
    emu_session_offer(p);
    emu_transport_hurry(t);
    return 0;
}

static int transport_leave(struct emu_transport *t, uint32_t host)
{
    struct emu_peer *p = emu_peer_of(t, host);

    if (!p || (p->state != EMU_PEER_JOINING && p->state != EMU_PEER_UP))
        return -ENOTCONN;
    if (p->state == EMU_PEER_UP)
        emu_stream_control(p, EMU_WIRE_GOODBYE, NULL);
    emu_peer_end(p, -ECANCELED);
    return 0;
}

/* ---- opening and closing ---- */

static int check_config(const struct emu_transport_config *config)
{
    if (config->n_hosts == 0 || config->n_hosts > EMU_WIRE_HOSTS_MAX || config->host >= config->n_hosts ||
        !config->key || config->key_bytes < EMU_TRANSPORT_KEY_MIN || !config->events || !config->events->message ||
        config->credits > EMU_WIRE_CREDITS_MAX || config->credits == 1)
        return -EINVAL;
    return 0;
}

static int open_waiting(struct emu_transport *t)
{
    struct epoll_event event = { .events = EPOLLIN };

    t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (t->epoll_fd < 0)
        return -errno;
    t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (t->timer_fd < 0)
        return -errno;
    if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->timer_fd, &event) < 0)
        return -errno;
    if (t->limits.fd >= 0 && epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->limits.fd, &event) < 0)
        return -errno;
    return 0;
}

static void transport_close(struct emu_transport *t)
{
    bool is_closed;

    if (!t)
        return;
    for (uint32_t i = 0; t->peers && i < t->n_hosts; i++) {
        if (t->peers[i] && t->peers[i]->state == EMU_PEER_UP)
            emu_stream_control(t->peers[i], EMU_WIRE_GOODBYE, NULL);
        if (t->peers[i])
            t->carrier->ops->unmap(t->carrier, &t->peers[i]->memory);
    }
    emu_regions_free(t);
    is_closed = t->carrier->ops->close(t->carrier);
    if (!is_closed)
        emu_transport_say(t, EMU_LOG_WARN, "the network library does not end");
    for (uint32_t i = 0; t->peers && i < t->n_hosts; i++) {
        if (t->peers[i] && is_closed)
            free_peer(t->peers[i]);
    }
    if (t->epoll_fd >= 0)
        close(t->epoll_fd);
    if (t->timer_fd >= 0)
        close(t->timer_fd);
    for (uint32_t i = 0; t->transfers && i < t->n_transfers; i++)
        free(t->transfers[i].notice);
    free(t->transfers);
    free(t->peers);
    emu_crypt_wipe(t, sizeof(*t));
    free(t);
}

int emu_transport_open_over(const struct emu_transport_config *config, struct emu_carrier *carrier,
                            struct emu_transport **transport_out)
{
    struct emu_transport *t = calloc(1, sizeof(*t));
    int r;

    if (!t) {
        carrier->ops->close(carrier);
        return -ENOMEM;
    }
    t->carrier = carrier;
    carrier->ops->limits(carrier, &t->limits);
    t->events = config->events;
    t->owner = config->owner;
    t->host = config->host;
    t->n_hosts = config->n_hosts;
    t->incarnation = config->incarnation;
    t->credits = config->credits ? config->credits : 32;
    t->n_transfers = config->n_transfers ? config->n_transfers : 1024;
    t->timeout_ns = config->timeout_ns ? config->timeout_ns : 5 * SECOND_NS;
    t->join_timeout_ns = config->join_timeout_ns ? config->join_timeout_ns : 30 * SECOND_NS;
    t->uses_rma = t->limits.has_rma && !config->is_rma_off && !config->is_secure;
    t->is_secure = config->is_secure;
    t->epoll_fd = t->timer_fd = -1;
    t->now_ns = emu_clock_ns();
    r = check_config(config);
    if (r == 0)
        r = emu_crypt_init();
    if (r == 0) {
        t->has_aes = emu_envelope_has_aes();
        emu_crypt_key(config->key, config->key_bytes, t->key);
        t->peers = calloc(t->n_hosts, sizeof(t->peers[0]));
        t->transfers = calloc(t->n_transfers, sizeof(*t->transfers));
        r = t->peers && t->transfers ? open_waiting(t) : -ENOMEM;
    }
    if (r < 0) {
        transport_close(t);
        return r;
    }
    for (uint32_t i = 0; i < t->n_transfers; i++) {
        t->transfers[i].next = t->free_transfers;
        t->free_transfers = &t->transfers[i];
    }
    *transport_out = t;
    return 0;
}

static int transport_open(const struct emu_transport_config *config, struct emu_transport **transport_out)
{
    struct emu_carrier *carrier;
    const char *text;
    char line[128];
    int r = check_config(config);

    if (r == 0)
        r = emu_ofi_open(config, &carrier, &text);
    else
        return r;
    if (r < 0) {
        if (config->events->log) {
            snprintf(line, sizeof(line), "no transport: %s: %s", text, strerror(-r));
            config->events->log(config->owner, EMU_LOG_ERROR, line);
        }
        return r;
    }
    return emu_transport_open_over(config, carrier, transport_out);
}

/* ---- looking ---- */

static int transport_stats(struct emu_transport *t, uint32_t host, struct emu_transport_stats *stats_out)
{
    struct emu_peer *p = emu_peer_of(t, host);

    if (host >= t->n_hosts)
        return -EINVAL;
    *stats_out = p ? p->stats : (struct emu_transport_stats){ 0 };
    stats_out->state = p ? p->state : EMU_PEER_ABSENT;
    stats_out->cipher = stats_out->state == EMU_PEER_UP ? p->session.cipher : EMU_CIPHER_NONE;
    return 0;
}

static void transport_info(struct emu_transport *t, struct emu_transport_info *info_out)
{
    struct emu_carrier_strangers strangers = { 0 };

    if (t->carrier->ops->strangers)
        t->carrier->ops->strangers(t->carrier, &strangers);
    *info_out = (struct emu_transport_info){ .has_rma = t->uses_rma,
                                             .can_sleep = t->limits.fd >= 0,
                                             .refused = t->refused + strangers.refused };
    snprintf(info_out->provider, sizeof(info_out->provider), "%s", t->limits.provider);
    snprintf(info_out->domain, sizeof(info_out->domain), "%s", t->limits.domain);
}

__attribute__((visibility("default"))) const struct emu_transport_ops emu_transport_ops = {
    .version = EMU_TRANSPORT_OPS_VERSION,
    .open = transport_open,
    .close = transport_close,
    .address = transport_address,
    .address_of = transport_address_of,
    .join = transport_join,
    .leave = transport_leave,
    .send = emu_transport_send,
    .send_later = emu_transport_send_later,
    .push = emu_transport_push,
    .resume = emu_transport_resume,
    .region_create = emu_region_create,
    .region_destroy = emu_region_destroy,
    .region_remote = emu_region_remote,
    .put = emu_transfer_put,
    .get = emu_transfer_get,
    .progress = transport_progress,
    .fd = transport_fd,
    .may_sleep = transport_may_sleep,
    .stats = transport_stats,
    .info = transport_info,
};
