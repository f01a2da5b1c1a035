/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages and block transfers between one emunic per host.
 *
 * Knows nothing of what it carries. One thread owns a transport; callbacks run on it, from progress() only. No call
 * blocks. Over tcp one thread of its own admits connections. Layers, from above:
 *
 *   transport.c     opening, joining, rounds, waiting
 *   peer_session.c  handshakes, silence, other connections, ends
 *   stream.c        packets: messages gathered, credits, delivery, replay
 *   transfer.c      block transfers in pieces, by the provider's remote memory access or through messages
 *   crypt.c         proofs, session keys, tags (libsodium)
 *   envelope.c      encrypted packets (libsodium)
 *   carrier.h       what is needed of a network: packets to an address, remote memory access, completions
 *   ofi*.c          that, by libfabric's reliable datagram endpoints
 *   gate.c          no connection reaches libfabric's tcp before both ends have proven that they have the key
 *
 * Loading. libfabric with all its providers takes about 200 ms to load, so nobody links this: emu_transport_load()
 * (loader.c, the only part that is linked) opens the shared module emunic-transport.so and hands out its
 * `emu_transport_ops`. Call it when there is more than one host.
 *
 * Peers are hosts with a number. The owner gets its own address() (a short blob), exchanges blobs as it likes (PMIx,
 * a hosts file), and join()s every other host, as that host joins it.
 *
 *   absent --join--> joining --proof--> up --silence, error, leave--> ending --peer_down--> absent
 *
 * Handshake. Each side draws a nonce per join and repeats HELLO(nonce) until it is up. A HELLO is answered, without
 * keeping anything of it, by PROOF(my nonce, your nonce, HMAC over both, both host numbers, incarnation and
 * features). Who sees a correct proof that echoes its current nonce knows that the other has the key now. It sends
 * its own proof and is up. Both derive a session number and a key per direction from key and transcript.
 *
 * What is protected. Every packet after the handshake has the session's number, a sequence number without gaps and a
 * 16 byte tag over all of it (ChaCha20-Poly1305 with nothing to encrypt; about 0.3 us for a small packet), always. So
 * a stranger who can send to our port, replay what was sent, or alter messages is refused and counted; a log line
 * tells it once per peer and second. Not protected: what is carried is readable on the wire. Data of transfers by
 * remote memory access have no tag: keys of regions are random numbers of 64 bits where the provider lets us choose
 * them, so who cannot read the traffic cannot guess them, but who reads it and can reach the port can write
 * registered memory. With `is_rma_off` all data have tags. libfabric parses its own wire formats before we see
 * anything: over tcp those of hosts that have the key, and of who changes their bytes on the way; with other
 * providers anybody's. Keys are never printed; they are wiped.
 *
 * Secure. With `is_secure` on both sides the body of every packet after the handshake is encrypted, its header covered
 * by the same tag, and all data go through packets, whatever the provider. The nonces of the handshake are public keys
 * of X25519 then, drawn for one session; its keys follow from what only both sides can compute of them and from the
 * job's key. So who has recorded the traffic and gets the job's key later reads nothing of it. Keys change before a
 * cipher's limit (envelope.h) and with each other connection. Of the traffic a reader learns hosts, sizes and times. A
 * side that is secure and one that is not have no session: the proofs cover what each says of it.
 *
 * Messages arrive in the order of send(), each once. Several go in one packet when they queue up: the first two packets
 * leave at once, what is sent while two are under way is gathered. A peer holds `credits` packets of each other peer;
 * each packet tells how many more may come. send() says EMU_TRANSPORT_FULL when a peer's packets are all waiting for
 * credits or under way; room() is called when some are free. So a host that does not take its messages stops nobody
 * but those who send to it. An owner that cannot take a message now returns false from message(): it and all that
 * follow from that peer wait until resume(), and hold back the peer's credits.
 *
 * Transfers move between a region here and a region of a peer, in slices, round robin over a peer's transfers, a few
 * at a time, so a long one delays messages by a few slices at most. Order: transfer_done() of a put means that the
 * data are in the target's memory; a message that is sent after it, or that was given to put() as its notice, is
 * delivered after the data are there. Nothing is promised about messages that are sent while the transfer is under
 * way, nor between two transfers.
 *
 * Connections that break. Each side sends at least every tenth of `timeout_ns`. After two fifths of it without anything
 * valid, or when the provider reports a broken connection or packets are missing, the session is mended: another
 * handshake over another connection of the provider, then what the peer does not have of the messages is sent again, so
 * that they still arrive in order and each once. For the owner the peer stays up meanwhile. TCP would do the same, but
 * it may be silent for as long again as a cut has lasted. Slices that are moved by remote memory access begin again
 * when the provider says that their connection broke; those of one that is only slow end when it has recovered.
 * What the ones that begin again have written before may still arrive over the old connection, see peer_moved().
 *
 * Failure. A peer is lost when nothing valid came for `timeout_ns`, when it has lost the session, when it says goodbye,
 * when an authenticated packet breaks the protocol, or, with tcp, when its session is to be mended and its host refuses
 * connections to its address for a tenth of `timeout_ns`: so a process that was killed is lost soon, after half of the
 * timeout at the latest, and one behind a cut is not. Then each of its transfers ends with the cause, and peer_down()
 * is called last. Messages that were not yet delivered are lost, and nobody can tell which. Time in which this process
 * did not run is not a peer's silence. After peer_down() the host can be joined again, with the same blob or a newer
 * one; one with an older incarnation is refused. The blob of address_of() tells no incarnation: the peer's proof does,
 * and an older one than before is no proof. A slice that the
 * provider still works on keeps its transfer from ending, for at most another fifth of the timeout; after that, memory
 * of a get may be written until its region is destroyed.
 *
 * Results: 0 or negative errno, or EMU_TRANSPORT_FULL.
 */
#ifndef EMUNIC_TRANSPORT_TRANSPORT_H
#define EMUNIC_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/wire.h"
#include "emunic/base/log.h"

#define EMU_TRANSPORT_OPS_VERSION 6u
#define EMU_TRANSPORT_BLOB_MAX    512u /* bytes of an address */
#define EMU_TRANSPORT_KEY_MIN     16u  /* bytes of a job's key */
#define EMU_TRANSPORT_NAME_MAX    64u

enum emu_transport_result {
    EMU_TRANSPORT_OK = 0,
    EMU_TRANSPORT_FULL, /* not now; room() or transfer_done() tells when */
};

/* How what is carried in a session is encrypted. */
enum emu_cipher { EMU_CIPHER_NONE, EMU_CIPHER_CHACHA20_POLY1305, EMU_CIPHER_AES256_GCM, EMU_CIPHERS };

struct emu_transport;        /* owned by who opened it */
struct emu_transport_region; /* owned by who created it; ends with its transport at the latest */

/* Each is called from progress() alone. It may call everything but progress() and close(). NULL: not wanted. */
struct emu_transport_events {
    void (*peer_up)(void *owner, uint32_t host);
    /*
     * cause: -ETIMEDOUT, -ECONNREFUSED (nobody listens there any more), -ECONNRESET (has lost the session), -ESHUTDOWN
     * (goodbye), -EPROTO, -EPROTONOSUPPORT (another version), -EOPNOTSUPP (only one side is secure), ...
     */
    void (*peer_down)(void *owner, uint32_t host, int cause);
    /*
     * The session goes on over another connection. What the peer wrote over the old one may still arrive, so memory of
     * regions with EMU_TRANSPORT_WRITE that exist now is for nothing else from here on, when they are destroyed either.
     */
    void (*peer_moved)(void *owner, uint32_t host);
    /* Data are valid during the call. False: not taken; comes again after resume(). Not NULL. */
    bool (*message)(void *owner, uint32_t host, const void *data, uint32_t length_bytes);
    /* After EMU_TRANSPORT_FULL from send(), put() or get(). */
    void (*room)(void *owner, uint32_t host);
    /* Exactly once per put() and get() that returned 0. result: 0 or negative errno. */
    void (*transfer_done)(void *owner, uint64_t cookie, int result);
    /*
     * The host says that it is secure and we are not, or the other way round: there is no session with it. Once per
     * join, and unproven unless the carrier is tcp.
     */
    void (*secure_differs)(void *owner, uint32_t host);
    void (*log)(void *owner, enum emu_log_level level, const char *line);
};

struct emu_transport_config {
    uint32_t host;        /* our number */
    uint32_t n_hosts;     /* numbers of all are below it; at most EMU_WIRE_HOSTS_MAX */
    uint64_t incarnation; /* greater than that of an earlier emunic with our number */
    const void *key;      /* of the job; borrowed during open() */
    uint32_t key_bytes;
    const char *provider;                      /* NULL: the best that is there */
    const char *node;                          /* local address or name to use; NULL: the provider's choice */
    const char *service;                       /* port to listen at; NULL: any */
    bool is_rma_off;                           /* data go through messages, with tags */
    bool is_secure;                            /* all that is carried is encrypted, and is_rma_off; on all hosts */
    uint32_t credits;                          /* packets held per peer; 0: 32 */
    uint32_t n_transfers;                      /* that can be under way; 0: 1024 */
    uint64_t timeout_ns;                       /* 0: 5 s */
    uint64_t join_timeout_ns;                  /* 0: 30 s */
    uint64_t admission_ns;                     /* over tcp, from a connection to its proof; 0: 5 s */
    uint32_t n_strangers;                      /* connections without proof that are kept; 0: 256 */
    uint32_t n_strangers_per_address;          /* 0: 64 */
    uint32_t n_strangers_per_second;           /* begun by one address; 0: 256 */
    const struct emu_transport_events *events; /* outlives the transport */
    void *owner;                               /* handed to events */
};

/*
 * What a peer needs to know of a region to reach it; carried there by the owner's messages, as 24 bytes of any
 * order.
 */
struct emu_transport_remote {
    uint64_t key;
    uint64_t base; /* how the provider calls its first byte */
    uint64_t length_bytes;
};

/* Bytes that are put from our region to a peer's, or got from there. */
struct emu_transport_move {
    struct emu_transport_region *region;
    uint64_t offset; /* in it */
    const struct emu_transport_remote *remote;
    uint64_t remote_offset;
    uint64_t length_bytes;
    uint64_t cookie; /* for transfer_done() */
};

#define EMU_TRANSPORT_READ  1u /* peers may get from it */
#define EMU_TRANSPORT_WRITE 2u /* peers may put to it */

enum emu_transport_state { EMU_PEER_ABSENT, EMU_PEER_JOINING, EMU_PEER_UP, EMU_PEER_ENDING };

/* Counted since open(), over all sessions with the peer. */
struct emu_transport_stats {
    enum emu_transport_state state;
    uint64_t messages_sent;
    uint64_t messages_received;
    uint64_t packets_sent; /* with records */
    uint64_t packets_received;
    uint64_t control_sent; /* heartbeats, credits, handshakes */
    uint64_t control_received;
    uint64_t bytes_sent; /* of packets */
    uint64_t bytes_received;
    uint64_t put_bytes; /* of transfers that we began, as far as they are done */
    uint64_t get_bytes;
    uint64_t full;    /* times that send() said so */
    uint64_t refused; /* packets that claimed to be of this host and were not taken */
    uint64_t sessions;
    enum emu_cipher cipher; /* of the session that is up */
};

struct emu_transport_info {
    char provider[EMU_TRANSPORT_NAME_MAX];
    char domain[EMU_TRANSPORT_NAME_MAX];
    bool has_rma;
    bool can_sleep;   /* fd() tells of traffic */
    uint64_t refused; /* connections without proof, and packets of nobody whom we have joined */
};

struct emu_transport_ops {
    uint32_t version; /* EMU_TRANSPORT_OPS_VERSION */

    /* -ENODATA: no such provider here; -EINVAL: a field of the configuration. */
    int (*open)(const struct emu_transport_config *config, struct emu_transport **transport_out);
    /*
     * Says goodbye to those who are up, as far as that needs no waiting. Ends its regions. No callbacks but
     * log(). At most about a second, also when libfabric does not end. NULL is fine.
     */
    void (*close)(struct emu_transport *t);

    /* How others reach us. length_out at most EMU_TRANSPORT_BLOB_MAX. */
    int (*address)(struct emu_transport *t, void *blob_out, uint32_t *length_out);
    /*
     * The blob of a host of which only this is known: its address or name, and the port it listens at. May ask a name
     * server, so it can block. -ENODATA: the provider cannot reach it; -ENOSYS: it knows nothing of such names.
     */
    int (*address_of)(struct emu_transport *t, uint32_t host, const char *node, const char *service, void *blob_out,
                      uint32_t *length_out);
    /*
     * -EINVAL: no blob of ours, or another provider's; -ESTALE: older than what was there; -EBUSY: peer_down() is
     * to come
     */
    int (*join)(struct emu_transport *t, uint32_t host, const void *blob, uint32_t length_bytes);
    /* Says goodbye. Its transfers end with -ECANCELED, then peer_down() with that. -ENOTCONN: not joined. */
    int (*leave)(struct emu_transport *t, uint32_t host);

    /* 1 to EMU_WIRE_MESSAGE_MAX bytes, copied. -ENOTCONN: not up. */
    int (*send)(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes);
    /* The same, but it may wait for the next send() or for push(), to share a packet. */
    int (*send_later)(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes);
    /* Sends what waits. */
    void (*push)(struct emu_transport *t, uint32_t host);
    int (*resume)(struct emu_transport *t, uint32_t host);

    /* Memory outlives the region. */
    int (*region_create)(struct emu_transport *t, void *addr, uint64_t length_bytes, uint32_t access,
                         struct emu_transport_region **region_out);
    /* -EBUSY: transfers that we began use it. What peers began ends with an error at them, and may cost the session. */
    int (*region_destroy)(struct emu_transport_region *region);
    void (*region_remote)(const struct emu_transport_region *region, struct emu_transport_remote *remote_out);

    /*
     * The region is borrowed until transfer_done(), the notice is copied, and the rest is read at once. A notice has at
     * most EMU_WIRE_MESSAGE_MAX bytes and arrives as a message at the target when the data are there; NULL: none.
     * -ERANGE: outside of a region. length_bytes > 0.
     */
    int (*put)(struct emu_transport *t, uint32_t host, const struct emu_transport_move *move, const void *notice,
               uint32_t notice_bytes);
    int (*get)(struct emu_transport *t, uint32_t host, const struct emu_transport_move *move);

    /* Does what there is to do, calls back. Number of completions seen, 0: nothing to do. */
    int (*progress)(struct emu_transport *t);
    /* A descriptor for epoll, readable when progress() is worth calling; valid until close(). */
    int (*fd)(struct emu_transport *t);
    /*
     * True: sleep on fd() misses nothing. False: call progress() first. Always false where a provider has no
     * descriptor.
     */
    bool (*may_sleep)(struct emu_transport *t);

    int (*stats)(struct emu_transport *t, uint32_t host, struct emu_transport_stats *stats_out);
    void (*info)(struct emu_transport *t, struct emu_transport_info *info_out);
};

/*
 * Loads the module from a path; ops are valid until the process ends. -ENOENT: there is none, or a library it needs is
 * missing (text tells, "" else; valid until the next call), -EPROTO: of another version.
 */
int emu_transport_load(const char *path, const struct emu_transport_ops **ops_out, const char **text_out);

#endif
