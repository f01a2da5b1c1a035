/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of words between hosts. The parts of a list follow each other, because nothing else of its kind is sent in
 * between; so the receiver has one list at a time of each host, and a part that does not fit makes it forget it.
 */
#include "emunic/daemon/peers/lists.h"

#include "emunic/daemon/peers/sessions.h"

void emu_admin_send_part(struct emu_server *server, uint32_t host, enum emu_host_admin_op op, uint16_t type,
                         uint64_t token, const uint64_t *words, uint32_t n, uint32_t first)
{
    struct emu_host_admin m = { .op = (uint16_t)op, .type = type, .token = token, .first = first, .total = n };
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];

    m.n = n - first < EMU_HOST_ADMIN_WORDS ? n - first : EMU_HOST_ADMIN_WORDS;
    emu_hosts_answer(server, host, message, emu_host_admin_put(message, &m, words));
}

void emu_admin_send(struct emu_server *server, uint32_t host, enum emu_host_admin_op op, uint16_t type, uint64_t token,
                    const uint64_t *words, uint32_t n)
{
    uint32_t first = 0;

    do {
        emu_admin_send_part(server, host, op, type, token, words, n, first);
        first += EMU_HOST_ADMIN_WORDS;
    } while (first < n);
}

bool emu_admin_incoming_add(struct emu_admin_incoming *incoming, const struct emu_host_admin *part)
{
    uint64_t *at;

    if (part->first == 0) {
        incoming->list.n = 0;
        incoming->op = part->op;
        incoming->type = part->type;
        incoming->token = part->token;
        incoming->total = part->total;
    }
    if (part->op != incoming->op || part->type != incoming->type || part->token != incoming->token ||
        part->total != incoming->total || part->first != incoming->list.n)
        return false;
    at = part->n > 0 ? emu_word_list_extend(&incoming->list, part->n) : NULL;
    for (uint32_t i = 0; at && i < part->n; i++)
        at[i] = emu_host_admin_word(part, i);
    return !incoming->list.has_failed;
}
