/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between hosts, and the packets around them: every table of fields. The first byte chooses: a packet of the
 * wire, or a message; the rest is the message.
 */
#include <string.h>

#include "emunic/abi/host_admin.h"
#include "emunic/abi/host_ce.h"
#include "emunic/abi/host_datagram.h"
#include "emunic/abi/host_message.h"
#include "emunic/abi/host_portals.h"
#include "emunic/abi/wire.h"
#include "tests/fuzz/targets/target.h"

#define WORDS_MAX EMU_HOST_ADMIN_WORDS

/* What is parsed from a list of words, as each kind that there is. */
static void take_words(const struct emu_host_admin *m)
{
    static uint64_t list[WORDS_MAX];
    struct emu_words begin = { .at = list, .left = m->n };
    struct emu_words w;
    struct emu_fault_rule rule;
    struct emu_host_target target;
    struct emu_host_error error;
    uint64_t age_ns;

    for (uint32_t i = 0; i < m->n; i++)
        list[i] = emu_host_admin_word(m, i);
    w = begin;
    emu_host_rule_take(&w, &rule, &age_ns);
    fuzz_count(!w.is_bad);
    w = begin;
    if (emu_host_target_take(&w, &target))
        fuzz_require(target.nid <= EMU_NID_MAX && target.from_nid <= EMU_NID_MAX, "nodes are in bounds");
    w = begin;
    if (emu_host_error_take(&w, &error))
        fuzz_require(error.record.code <= EMU_ERROR_ROUTES && error.record.category != 0, "an error is one");
}

static bool take_admin(const uint8_t *message, uint32_t n)
{
    struct emu_host_admin m;

    if (!emu_host_admin_parse(message, n, &m))
        return false;
    fuzz_require(m.n <= WORDS_MAX && m.total <= EMU_HOST_ADMIN_WORDS_MAX && m.first + m.n <= m.total, "words fit");
    take_words(&m);
    return true;
}

static bool take_ce(const uint8_t *message, uint32_t n)
{
    struct emu_host_ce m;
    bool is_parent;

    if (!emu_host_ce_parse(message, n, &m))
        return false;
    fuzz_read(m.list, 8 * (size_t)m.n);
    for (uint32_t i = 0; m.op == EMU_HOST_CE_STATE && i < m.n; i++)
        (void)emu_host_ce_link(&m, i, &is_parent);
    return true;
}

static bool take_datagram(const uint8_t *message, uint32_t n)
{
    struct emu_host_datagram d;
    uint8_t again[EMU_HOST_DATAGRAM_MAX];

    if (!emu_host_datagram_parse(message, n, &d))
        return false;
    fuzz_require(emu_host_datagram_put(again, emu_host_domain_of(message), &d) == n && memcmp(again, message, n) == 0,
                 "a datagram is written as it was read");
    return true;
}

static bool take_portals(const uint8_t *message, uint32_t n)
{
    struct emu_host_portals_request request;
    struct emu_host_portals_answer answer;
    struct emu_host_portals_part part;
    struct emu_host_portals_done done;

    switch (emu_host_portals_op(message, n)) {
    case EMU_HOST_PTL_WANT:
    case EMU_HOST_PTL_DATA:
        if (!emu_host_portals_part_parse(message, n, &part))
            return false;
        fuzz_read(part.data, (size_t)(message + n - part.data) <= n ? (size_t)(message + n - part.data) : 0);
        return true;
    case EMU_HOST_PTL_DONE:
        return emu_host_portals_done_parse(message, n, &done);
    case EMU_HOST_PTL_ANSWER:
        if (!emu_host_portals_answer_parse(message, n, &answer))
            return false;
        fuzz_read(answer.data, answer.data_bytes);
        return true;
    default:
        if (!emu_host_portals_request_parse(message, n, &request))
            return false;
        fuzz_read(request.data, request.data_bytes);
        return true;
    }
}

static bool take_message(const uint8_t *message, uint32_t n)
{
    struct emu_host_head head;
    struct emu_host_hello hello;
    struct emu_host_domain domain;
    struct emu_host_command command;
    struct emu_host_answer answer;
    struct emu_host_msgq msgq;

    if (!emu_host_head_parse(message, n, &head))
        return false;
    switch (head.kind) {
    case EMU_HOST_HELLO:
        return emu_host_hello_parse(message, n, &hello);
    case EMU_HOST_DOMAIN:
        if (!emu_host_domain_parse(message, n, &domain))
            return false;
        fuzz_read(domain.ranks, 8 * (size_t)domain.n);
        return true;
    case EMU_HOST_COMMAND:
        return emu_host_command_parse(message, n, &command);
    case EMU_HOST_ANSWER:
        return emu_host_answer_parse(message, n, &answer);
    case EMU_HOST_DATAGRAM:
        return take_datagram(message, n);
    case EMU_HOST_CE:
        return take_ce(message, n);
    case EMU_HOST_MSGQ:
        return emu_host_msgq_parse(message, n, &msgq);
    case EMU_HOST_PORTALS:
        return take_portals(message, n);
    default:
        return take_admin(message, n);
    }
}

static bool take_packet(const uint8_t *packet, uint32_t n)
{
    struct emu_wire_header header;
    struct emu_wire_record record;
    struct emu_wire_hello hello;
    const uint8_t *body = packet + EMU_WIRE_HEADER_BYTES;
    uint32_t at = 0;
    uint32_t body_bytes;

    if (emu_wire_header_parse(packet, n, &header) != EMU_WIRE_OK)
        return false;
    if (header.type == EMU_WIRE_HELLO || header.type == EMU_WIRE_PROOF)
        return emu_wire_hello_parse(body, &hello) == EMU_WIRE_OK;
    body_bytes = n - EMU_WIRE_HEADER_BYTES - EMU_WIRE_TAG_BYTES;
    while (at < body_bytes) {
        if (emu_wire_record_next(body, body_bytes, &at, &record) != EMU_WIRE_OK)
            return false;
        fuzz_read(record.data, record.length);
        if (record.kind == EMU_WIRE_MESSAGE)
            fuzz_count(take_message(record.data, record.length));
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && size - 1 <= EMU_WIRE_PACKET_MAX)
        fuzz_count(data[0] % 2 ? take_packet(data + 1, (uint32_t)size - 1) :
                                 take_message(data + 1, (uint32_t)size - 1));
    return 0;
}
