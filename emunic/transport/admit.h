/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words that two hosts exchange over a new TCP connection before anybody else may read from it. No input, no
 * output, no clock: a caller carries the bytes and keeps the time.
 *
 *   caller                                        called
 *     | -- hello: host, nonce ------------------->  |  EMU_ADMIT_HELLO_BYTES
 *     | <- answer: host, nonce, proof ------------  |  EMU_ADMIT_ANSWER_BYTES
 *     | -- proof -------------------------------->  |  EMU_ADMIT_PROOF_BYTES
 *
 * A proof is a MAC with the key over a label for the side that makes it, hello and answer as they were sent, and the
 * addresses of both ends as the maker sees them. So each side knows that the other has the key now (its own nonce is in
 * it), that it is no message of its own that comes back (labels and host numbers differ), that version and flags are
 * those that were sent, and that nobody has passed the words on from another connection (addresses).
 */
#ifndef EMUNIC_TRANSPORT_ADMIT_H
#define EMUNIC_TRANSPORT_ADMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "emunic/transport/crypt.h"

#define EMU_ADMIT_VERSION       1u
#define EMU_ADMIT_GREETING      48u /* magic 8, version 2, flags 2, host 4, nonce 32 */
#define EMU_ADMIT_HELLO_BYTES   EMU_ADMIT_GREETING
#define EMU_ADMIT_PROOF_BYTES   32u
#define EMU_ADMIT_ANSWER_BYTES  (EMU_ADMIT_GREETING + EMU_ADMIT_PROOF_BYTES)
#define EMU_ADMIT_ADDRESS_BYTES 18u /* IPv6 or mapped IPv4, port */

/* Flags of a hello; both sides must say the same. */
#define EMU_ADMIT_SECURE 1u /* messages are encrypted */

enum emu_admit_result { EMU_ADMIT_MORE = 0, EMU_ADMIT_DONE };

struct emu_admit_config {
    uint8_t key[EMU_CRYPT_KEY_BYTES];
    uint32_t host; /* our number */
    uint32_t n_hosts;
    uint16_t flags;
};

struct emu_admit {
    const struct emu_admit_config *config; /* borrowed, lives longer */
    bool is_caller;
    bool has_greeting; /* the peer's, checked */
    bool is_done;
    uint32_t peer_host; /* once done */
    uint32_t n_in;
    uint32_t n_out; /* bytes to be sent now; who sends them sets it to 0 */
    uint8_t in[EMU_ADMIT_ANSWER_BYTES];
    uint8_t out[EMU_ADMIT_ANSWER_BYTES];
    /* Greetings of caller and called, their addresses: the text of both proofs. */
    uint8_t text[2 * EMU_ADMIT_GREETING + 2 * EMU_ADMIT_ADDRESS_BYTES];
};

/* False: neither IPv4 nor IPv6. */
bool emu_admit_address(const struct sockaddr_storage *address, uint8_t out[EMU_ADMIT_ADDRESS_BYTES]);

/* Addresses of the connection as this side sees them. A caller has its hello to send. */
void emu_admit_begin(struct emu_admit *a, const struct emu_admit_config *config, bool is_caller,
                     const uint8_t caller[EMU_ADMIT_ADDRESS_BYTES], const uint8_t called[EMU_ADMIT_ADDRESS_BYTES]);
/* Bytes that are missing until the next step: read no more than these. 0: done. */
uint32_t emu_admit_wants(const struct emu_admit *a);
/*
 * EMU_ADMIT_MORE or EMU_ADMIT_DONE; look at n_out after either. -EMSGSIZE: more than wanted; -EPROTO: these are other
 * words; -EPROTONOSUPPORT: of another version; -EOPNOTSUPP: other flags, and the called has an answer to send;
 * -EADDRINUSE: a host number that cannot be; -EACCES: no proof of our key. After an error the handshake is over.
 */
int emu_admit_take(struct emu_admit *a, const uint8_t *bytes, uint32_t n_bytes);
/* For a log. */
const char *emu_admit_reason(int error);

#endif
