/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of a new connection; admit.h has its words and their reasons.
 *
 * The called side says its proof to everybody who says hello properly. That tells a stranger nothing about a key of
 * EMU_TRANSPORT_KEY_MIN random bytes, and costs one MAC. A side keeps nothing but this structure.
 */
#include "emunic/transport/admit.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "emunic/abi/fields.h"
#include "emunic/abi/wire.h"

#define MAGIC        "EMUADMIT"
#define LABEL_CALLER "emunic admission: the caller's proof"
#define LABEL_CALLED "emunic admission: the called's proof"

struct greeting {
    uint16_t version;
    uint16_t flags;
    uint32_t host;
};

static const struct emu_field greeting_fields[] = {
    EMU_FIELD(struct greeting, version),
    EMU_FIELD(struct greeting, flags),
    EMU_FIELD(struct greeting, host),
};

bool emu_admit_address(const struct sockaddr_storage *address, uint8_t out[EMU_ADMIT_ADDRESS_BYTES])
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;

    memset(out, 0, EMU_ADMIT_ADDRESS_BYTES);
    if (address->ss_family == AF_INET) {
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &in->sin_addr, 4);
        memcpy(out + 16, &in->sin_port, 2);
    } else if (address->ss_family == AF_INET6) {
        memcpy(out, &in6->sin6_addr, 16);
        memcpy(out + 16, &in6->sin6_port, 2);
    } else {
        return false;
    }
    return true;
}

/* Where a side's greeting is in the text. */
static uint8_t *greeting_of(struct emu_admit *a, bool is_caller)
{
    return a->text + (is_caller ? 0 : EMU_ADMIT_GREETING);
}

static void write_greeting(struct emu_admit *a)
{
    uint8_t *at = greeting_of(a, a->is_caller);
    struct greeting greeting = { .version = EMU_ADMIT_VERSION, .flags = a->config->flags, .host = a->config->host };

    memcpy(at, MAGIC, 8);
    emu_fields_put(at + 8, EMU_FIELDS(greeting_fields), &greeting);
    emu_crypt_random(at + 16, EMU_ADMIT_GREETING - 16);
    memcpy(a->out, at, EMU_ADMIT_GREETING);
    a->n_out = EMU_ADMIT_GREETING;
}

static void write_proof(struct emu_admit *a, uint8_t *at)
{
    emu_crypt_mac(a->config->key, a->is_caller ? LABEL_CALLER : LABEL_CALLED, a->text, sizeof(a->text), at);
    a->n_out = (uint32_t)(at - a->out) + EMU_ADMIT_PROOF_BYTES;
}

static bool is_proof(const struct emu_admit *a, const uint8_t *proof)
{
    uint8_t expected[EMU_ADMIT_PROOF_BYTES];

    emu_crypt_mac(a->config->key, a->is_caller ? LABEL_CALLED : LABEL_CALLER, a->text, sizeof(a->text), expected);
    return emu_crypt_is_same(expected, proof, sizeof(expected));
}

/* 0, or the error. */
static int take_greeting(struct emu_admit *a)
{
    struct greeting greeting;

    emu_fields_parse(a->in + 8, EMU_FIELDS(greeting_fields), &greeting);
    if (memcmp(a->in, MAGIC, 8) != 0)
        return -EPROTO;
    if (greeting.version != EMU_ADMIT_VERSION)
        return -EPROTONOSUPPORT;
    if (greeting.host >= a->config->n_hosts || greeting.host == a->config->host)
        return -EADDRINUSE;
    memcpy(greeting_of(a, !a->is_caller), a->in, EMU_ADMIT_GREETING);
    a->peer_host = greeting.host;
    a->has_greeting = true;
    return greeting.flags == a->config->flags ? 0 : -EOPNOTSUPP;
}

void emu_admit_begin(struct emu_admit *a, const struct emu_admit_config *config, bool is_caller,
                     const uint8_t caller[EMU_ADMIT_ADDRESS_BYTES], const uint8_t called[EMU_ADMIT_ADDRESS_BYTES])
{
    *a = (struct emu_admit){ .config = config, .is_caller = is_caller };
    memcpy(a->text + 2 * EMU_ADMIT_GREETING, caller, EMU_ADMIT_ADDRESS_BYTES);
    memcpy(a->text + 2 * EMU_ADMIT_GREETING + EMU_ADMIT_ADDRESS_BYTES, called, EMU_ADMIT_ADDRESS_BYTES);
    if (is_caller)
        write_greeting(a);
}

/* Bytes of what the peer says next. */
static uint32_t next_bytes(const struct emu_admit *a)
{
    if (a->is_caller)
        return EMU_ADMIT_ANSWER_BYTES;
    return a->has_greeting ? EMU_ADMIT_PROOF_BYTES : EMU_ADMIT_HELLO_BYTES;
}

uint32_t emu_admit_wants(const struct emu_admit *a)
{
    return a->is_done ? 0 : next_bytes(a) - a->n_in;
}

/* All of the next words are there. */
static int step(struct emu_admit *a)
{
    bool is_hello = !a->is_caller && !a->has_greeting;
    int r = a->has_greeting ? 0 : take_greeting(a);

    /* A caller with other flags is told so by ours. */
    if (is_hello && (r == 0 || r == -EOPNOTSUPP)) {
        write_greeting(a);
        write_proof(a, a->out + EMU_ADMIT_GREETING);
        a->n_in = 0;
    }
    if (is_hello || r < 0)
        return r < 0 ? r : EMU_ADMIT_MORE;
    if (!is_proof(a, a->is_caller ? a->in + EMU_ADMIT_GREETING : a->in))
        return -EACCES;
    if (a->is_caller)
        write_proof(a, a->out);
    a->is_done = true;
    return EMU_ADMIT_DONE;
}

int emu_admit_take(struct emu_admit *a, const uint8_t *bytes, uint32_t n_bytes)
{
    if (n_bytes > emu_admit_wants(a))
        return -EMSGSIZE;
    memcpy(a->in + a->n_in, bytes, n_bytes);
    a->n_in += n_bytes;
    /* Other words are refused at their first wrong byte. */
    if (!a->has_greeting && memcmp(a->in, MAGIC, a->n_in < 8 ? a->n_in : 8) != 0)
        return -EPROTO;
    return emu_admit_wants(a) > 0 ? EMU_ADMIT_MORE : step(a);
}

const char *emu_admit_reason(int error)
{
    switch (error) {
    case -EPROTO:
        return "no words of emunic";
    case -EPROTONOSUPPORT:
        return "another version";
    case -EOPNOTSUPP:
        return "only one side is secure";
    case -EADDRINUSE:
        return "an impossible host number";
    case -EACCES:
        return "another key, or addresses that were translated";
    case -ETIMEDOUT:
        return "too slow";
    case -ENOSPC:
        return "pushed out by later ones";
    default:
        return "gone before its proof";
    }
}
