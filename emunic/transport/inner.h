/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the transport share. Not for others.
 */
#ifndef EMUNIC_TRANSPORT_INNER_H
#define EMUNIC_TRANSPORT_INNER_H

#include "emunic/transport/carrier.h"
#include "emunic/transport/crypt.h"
#include "emunic/transport/transport.h"

#define EMU_TX_PACKETS      16u /* with records, per peer, being filled or waiting */
#define EMU_KEPT_PACKETS    32u /* more of them, that were sent and not acknowledged */
#define EMU_ACK_EVERY       16u /* packets with records that arrive without a word */
#define EMU_CONTROL_PACKETS 4u  /* without */
#define EMU_SPARE_PACKETS   8u  /* received, per peer, for those without records */
#define EMU_EARLY_PACKETS   4u  /* of those */
#define EMU_SLICES          16u /* of transfers, under way per peer; also what a peer may have asked of us */
#define EMU_RMA_SLICES      2u
#define EMU_RMA_SLICE_BYTES 524288u
#define EMU_REGION_BUCKETS  256u

enum emu_op_kind { EMU_OP_PACKET = 1, EMU_OP_CONTROL, EMU_OP_RECEIVE, EMU_OP_SLICE };

struct emu_peer;

struct emu_packet {
    struct emu_carrier_op op;
    struct emu_packet *next;
    struct emu_peer *peer; /* borrowed; of packets that are sent */
    uint32_t path;         /* of the peer when it was sent */
    uint64_t position;     /* of the stream; once it was sent */
    bool is_with_carrier;
    bool is_done;          /* nobody needs it but the carrier */
    uint32_t length_bytes; /* without the tag */
    uint32_t n_records;
    uint32_t at_bytes; /* of the body; received: as far as it was delivered */
    uint8_t *bytes;    /* of the peer's block */
    uint8_t *wire;     /* what the carrier gets of it: `bytes`, or as many that are sealed */
    void *desc;
};

struct emu_packet_list {
    struct emu_packet *first;
    struct emu_packet *last;
};

struct emu_transfer {
    struct emu_transfer *next;
    struct emu_transport_region *region; /* counted */
    uint8_t *local;
    uint64_t remote; /* offset in the peer's region */
    uint64_t remote_base;
    uint64_t key;
    uint64_t length_bytes;
    uint64_t issued_bytes;
    uint64_t done_bytes;
    uint64_t cookie;
    uint8_t *notice; /* owned, or NULL */
    uint32_t notice_bytes;
    uint32_t n_slices; /* under way */
    uint32_t n_losses; /* slices that came back because their connection broke */
    int result;
    bool is_put;
};

struct emu_slice {
    struct emu_carrier_op op;
    struct emu_peer *peer;         /* borrowed */
    struct emu_transfer *transfer; /* borrowed; NULL: it has ended without this */
    uint8_t *local;
    uint64_t remote; /* as the carrier calls it */
    uint64_t length_bytes;
    uint32_t path; /* of the peer when the carrier got it */
    uint64_t id;   /* place in the table, and a number that does not come again */
    bool is_busy;
    bool is_rma;  /* the carrier has it; else the peer */
    bool is_lost; /* the carrier had it, on a connection that broke: is to begin again */
};

/* What a peer has asked for and is to be answered. */
struct emu_answer {
    struct emu_wire_piece piece;
    bool is_get;
    int result;
};

/*
 * One peer: about 3 KiB, and a block of (60 + credits) packets of 16 000 bytes that stays until the transport is
 * closed.
 */
struct emu_peer {
    struct emu_transport *t; /* borrowed */
    uint32_t host;
    uint32_t epoch; /* counts sessions; what belongs to an older one is only put away */
    enum emu_transport_state state;
    int cause;                  /* of the end; while joining, what came instead of a proof */
    uint64_t addr;              /* the carrier's */
    uint32_t path;              /* counts connections; what was sent over an older one tells nothing of this one */
    uint64_t incarnation;       /* that the blob tells; 0: any that is not older than the last */
    uint64_t last_incarnation;  /* the newest that is known */
    struct emu_crypt_side mine; /* of this session, or of the handshake that is to make it */
    struct emu_crypt_side theirs;
    struct emu_crypt_side next; /* of the handshake that would make the next one */
    struct emu_crypt_session session;
    uint64_t previous; /* number of the session that this one goes on with, 0: none */
    uint64_t stream;   /* number of the first session of these streams */
    bool is_mending;   /* up, but its connection is broken or silent: a handshake over another is under way */
    bool has_path;     /* that handshake's hello went out */
    bool is_listed;    /* something may be done for it */
    bool is_paused;    /* the owner takes no messages */
    bool is_delivering;
    bool wants_room;
    bool holds_open; /* `open` may wait for company */
    bool must_retry; /* the carrier had no room */
    bool owes_heartbeat;
    struct emu_peer *next_listed;

    uint64_t tx_sequence;
    uint64_t rx_sequence;
    uint64_t tx_packets;  /* with records, of this stream */
    uint64_t tx_granted;  /* as many may be sent */
    uint64_t tx_received; /* as many are known to have arrived */
    uint64_t rx_packets;  /* arrived */
    uint64_t rx_received; /* arrived, as the peer was told */
    uint64_t rx_consumed; /* delivered */
    uint64_t rx_told;     /* granted, as the peer knows */
    uint64_t last_heard_ns;
    uint64_t last_sent_ns;
    uint64_t joined_ns;
    uint64_t next_hello_ns;
    uint64_t next_path_ns;  /* when to try another connection */
    uint64_t asked_path_ns; /* since when one is being made; 0: none is */
    uint64_t next_ask_ns;   /* when to ask whether it is still there */
    uint32_t n_refusals;    /* answers in a row that nobody is */
    bool is_asked;
    uint64_t ending_ns;
    uint64_t refused_log_ns;
    uint64_t refused_told; /* of them, when the last line was written */

    struct emu_packet *packets; /* owned: all of its block */
    uint8_t *block;             /* owned */
    struct emu_carrier_memory memory;
    struct emu_packet_list free;
    uint32_t n_free;
    struct emu_packet_list waiting; /* full, for credits */
    struct emu_packet *open;        /* being filled, or NULL */
    struct emu_packet_list kept;    /* sent, not acknowledged, by position */
    struct emu_packet *again;       /* of those: from here on they are sent again; or NULL */
    uint32_t in_flight;             /* with the carrier, on this path */
    struct emu_packet_list control;
    struct emu_packet *unsent;    /* sealed and refused by the carrier: goes out as it is, before any other; or NULL */
    struct emu_packet_list held;  /* received, not delivered */
    struct emu_packet_list early; /* received while joining, before the proof that it belongs to */
    uint32_t n_early;

    struct emu_slice slices[EMU_SLICES];
    uint32_t n_slices; /* busy */
    uint32_t n_rma;    /* of them with the carrier */
    uint64_t slice_turn;
    struct emu_transfer *transfers; /* round: the one that had its turn last */
    uint32_t n_transfers;
    struct emu_answer answers[EMU_SLICES];
    uint32_t first_answer;
    uint32_t n_answers;

    struct emu_transport_stats stats;
};

struct emu_transport_region {
    struct emu_transport *t;           /* borrowed */
    struct emu_transport_region *next; /* of the bucket */
    uint8_t *addr;
    uint64_t length_bytes;
    uint32_t access;
    uint32_t n_users; /* transfers */
    struct emu_carrier_memory memory;
};

struct emu_transport {
    struct emu_carrier *carrier; /* owned */
    struct emu_carrier_limits limits;
    const struct emu_transport_events *events; /* borrowed */
    void *owner;
    uint32_t host;
    uint32_t n_hosts;
    uint32_t credits;
    uint64_t incarnation;
    uint64_t timeout_ns;
    uint64_t join_timeout_ns;
    bool uses_rma;
    bool is_secure;
    bool has_aes;
    uint8_t key[EMU_CRYPT_KEY_BYTES];

    struct emu_peer **peers; /* owned; by host, NULL if never joined */
    struct emu_peer *listed;
    struct emu_packet_list unposted; /* receive buffers that the carrier had no room for */
    struct emu_transfer *transfers;  /* owned */
    struct emu_transfer *free_transfers;
    struct emu_transport_region *regions[EMU_REGION_BUCKETS];
    uint32_t n_transfers;

    uint64_t now_ns; /* of this round */
    uint64_t next_tick_ns;
    uint64_t refused; /* of nobody we know */
    uint64_t refused_log_ns;
    uint64_t refused_told;
    uint64_t strangers_told; /* connections, of the carrier's count */
    uint64_t strangers_log_ns;
    int epoll_fd;
    int timer_fd;
};

static inline void emu_packet_push(struct emu_packet_list *list, struct emu_packet *packet)
{
    packet->next = NULL;
    if (list->first)
        list->last->next = packet;
    else
        list->first = packet;
    list->last = packet;
}

static inline void emu_packet_push_first(struct emu_packet_list *list, struct emu_packet *packet)
{
    packet->next = list->first;
    if (!list->first)
        list->last = packet;
    list->first = packet;
}

static inline struct emu_packet *emu_packet_pop(struct emu_packet_list *list)
{
    struct emu_packet *packet = list->first;

    if (packet)
        list->first = packet->next;
    return packet;
}

/* ---- transport.c ---- */

void emu_transport_say(struct emu_transport *t, enum emu_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A packet that is not taken: counted, and told once per peer and second. `p` NULL: of nobody that we have joined. */
void emu_transport_refuse(struct emu_transport *t, struct emu_peer *p, const char *why);
/* A packet may be received into again. */
void emu_transport_post(struct emu_transport *t, struct emu_packet *packet);
/* Something may be done for the peer: it is looked at in this or the next round. */
void emu_peer_list(struct emu_peer *p);
/* NULL: no such host, or it was never joined. */
struct emu_peer *emu_peer_of(struct emu_transport *t, uint32_t host);
/* Time is to do its work in the next round, which is to come soon. */
void emu_transport_hurry(struct emu_transport *t);

/* ---- peer_session.c ---- */

/* The peer is joining: it is offered a new handshake. */
void emu_session_offer(struct emu_peer *p);
/* The session ends, with -ETIMEDOUT and the like. Nothing is called back before the round's end. */
void emu_peer_end(struct emu_peer *p, int cause);
/* The connection does not do what it should: the session is to go on over another. */
void emu_session_mend(struct emu_peer *p, const char *why);
/* Of a peer that is ending, if the carrier has given back what is its. Calls back. */
void emu_session_finish(struct emu_peer *p);
/* A packet of whomever. True: it is held. */
bool emu_session_take(struct emu_transport *t, struct emu_packet *packet, uint64_t length_bytes);
/* Time does its work: hellos, heartbeats, silence. */
void emu_session_tick(struct emu_peer *p);

/* ---- stream.c ---- */

/* Where the next record of a peer goes, `space` bytes, or NULL: no room. It counts as written. */
uint8_t *emu_peer_record_room(struct emu_peer *p, uint32_t space);
void emu_stream_give_back(struct emu_peer *p, struct emu_packet *packet);
/* Streams begin; nothing is left of others. */
void emu_stream_begin(struct emu_peer *p);
/* The streams go on in another session: the peer has `received` packets, those after them are sent again. */
void emu_stream_go_on(struct emu_peer *p, uint64_t received);
/* Everything that was to be sent is dropped. */
void emu_stream_end(struct emu_peer *p);
/* A packet without records. False: not now. */
bool emu_stream_control(struct emu_peer *p, enum emu_wire_type type, const struct emu_wire_hello *hello);
/* Full packets as long as there are credits; the open one if little is under way. */
void emu_stream_flush(struct emu_peer *p);
/* The carrier is done with a packet that was sent. */
void emu_stream_sent(struct emu_packet *packet, int result);
/* A packet that says to be of a session. True: it is held. */
bool emu_stream_take(struct emu_peer *p, struct emu_packet *packet, const struct emu_wire_header *h);
int emu_transport_send(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes);
int emu_transport_send_later(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes);
void emu_transport_push(struct emu_transport *t, uint32_t host);
int emu_transport_resume(struct emu_transport *t, uint32_t host);

/* ---- transfer.c ---- */

/* Moves the peer's transfers on as far as there is room. May call back. */
void emu_transfer_advance(struct emu_peer *p);
/* Sends the answers that the peer's pieces wait for, as far as there is room. */
void emu_transfer_answer(struct emu_peer *p);
/* A record of a piece that the peer has sent. False: it breaks the protocol. */
bool emu_transfer_record(struct emu_peer *p, const struct emu_wire_record *record);
/* The carrier is done with a slice. */
void emu_transfer_slice_done(struct emu_slice *slice, int result);
/* All of the peer's transfers end. Calls back. */
void emu_transfer_end_all(struct emu_peer *p, int cause);

int emu_transfer_put(struct emu_transport *t, uint32_t host, const struct emu_transport_move *move, const void *notice,
                     uint32_t notice_bytes);
int emu_transfer_get(struct emu_transport *t, uint32_t host, const struct emu_transport_move *move);
int emu_region_create(struct emu_transport *t, void *addr, uint64_t length_bytes, uint32_t access,
                      struct emu_transport_region **region_out);
int emu_region_destroy(struct emu_transport_region *region);
/* Of a transport that is closed. */
void emu_regions_free(struct emu_transport *t);
void emu_region_remote(const struct emu_transport_region *region, struct emu_transport_remote *remote_out);

/* ---- transport.c, for tests: a transport over any carrier, which it then owns ---- */
int emu_transport_open_over(const struct emu_transport_config *config, struct emu_carrier *carrier,
                            struct emu_transport **transport_out);

extern const struct emu_transport_ops emu_transport_ops;

#endif
