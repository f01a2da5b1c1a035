/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/transport/caller_rate.h"

#include <arpa/inet.h>
#include <string.h>

#define SECOND_NS     1000000000ull
#define IPV4_SOURCE   12
#define IPV6_SOURCE   8
#define KEEPS         UINT32_MAX /* bytes of a packet that a filter lets through */
#define V4_WORD_PLACE 12

static const uint8_t mapped[V4_WORD_PLACE] = { [10] = 0xff, [11] = 0xff };

static bool is_v4(const struct emu_caller *c)
{
    return memcmp(c->address, mapped, sizeof(mapped)) == 0;
}

static struct emu_caller *find(struct emu_caller_rate *rate, const uint8_t address[EMU_CALLER_BYTES])
{
    for (uint32_t i = 0; i < rate->n_callers; i++) {
        if (memcmp(rate->callers[i].address, address, EMU_CALLER_BYTES) == 0)
            return &rate->callers[i];
    }
    return NULL;
}

/* A place for a new address: a free one, or one that has not called in this second. Strangers' go first. */
static struct emu_caller *place_for(struct emu_caller_rate *rate)
{
    struct emu_caller *idle = NULL;

    if (rate->n_callers < EMU_CALLERS)
        return &rate->callers[rate->n_callers++];
    for (uint32_t i = 0; i < rate->n_callers; i++) {
        struct emu_caller *c = &rate->callers[i];

        if (c->n == 0 && (!idle || (idle->is_known && !c->is_known)))
            idle = c;
    }
    return idle;
}

static struct emu_caller *caller_of(struct emu_caller_rate *rate, const uint8_t address[EMU_CALLER_BYTES])
{
    struct emu_caller *c = find(rate, address);

    if (c)
        return c;
    c = place_for(rate);
    if (!c)
        return &rate->others;
    *c = (struct emu_caller){ 0 };
    memcpy(c->address, address, EMU_CALLER_BYTES);
    return c;
}

enum emu_caller_verdict emu_caller_begins(struct emu_caller_rate *rate, const uint8_t address[EMU_CALLER_BYTES],
                                          uint64_t now_ns)
{
    struct emu_caller *c;

    if (rate->n_shut == 0)
        (void)emu_caller_second_is_over(rate, now_ns);
    c = caller_of(rate, address);
    c->n++;
    if (c->n <= (uint64_t)rate->per_second * (c->is_known ? EMU_CALLER_KNOWN : 1))
        return EMU_CALLER_WELCOME;
    if (c->is_shut || c == &rate->others || rate->n_shut == EMU_CALLERS_SHUT)
        return EMU_CALLER_TOO_MANY;
    c->is_shut = true;
    rate->n_shut++;
    return EMU_CALLER_SHUT;
}

void emu_caller_proves(struct emu_caller_rate *rate, const uint8_t address[EMU_CALLER_BYTES])
{
    struct emu_caller *c = caller_of(rate, address);

    if (c->n > 0)
        c->n--;
    if (c != &rate->others)
        c->is_known = true;
}

bool emu_caller_second_is_over(struct emu_caller_rate *rate, uint64_t now_ns)
{
    if (now_ns - rate->second_ns < SECOND_NS)
        return false;
    rate->second_ns = now_ns;
    rate->n_shut = 0;
    rate->others.n = 0;
    for (uint32_t i = 0; i < rate->n_callers; i++) {
        rate->callers[i].n = 0;
        rate->callers[i].is_shut = false;
    }
    return true;
}

uint64_t emu_caller_next_ns(const struct emu_caller_rate *rate)
{
    return rate->n_shut > 0 ? rate->second_ns + SECOND_NS : UINT64_MAX;
}

/* ---- the filter ---- */

static uint32_t word_of(const struct emu_caller *c, unsigned place)
{
    uint32_t word;

    memcpy(&word, c->address + place, sizeof(word));
    return ntohl(word);
}

static uint16_t drop_v4(const struct emu_caller *c, struct sock_filter *p)
{
    p[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word_of(c, V4_WORD_PLACE), 0, 1);
    p[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    return 2;
}

static uint16_t drop_v6(const struct emu_caller *c, struct sock_filter *p)
{
    for (uint8_t i = 0; i < 4; i++) {
        p[2 * i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IPV6_SOURCE + 4u * i);
        p[2 * i + 1] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word_of(c, 4u * i), 0, (uint8_t)(7 - 2 * i));
    }
    p[8] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    return 9;
}

uint16_t emu_caller_filter(const struct emu_caller_rate *rate, struct sock_filter program_out[EMU_CALLER_FILTER])
{
    const struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)SKF_NET_OFF),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 1, 0),
        BPF_STMT(BPF_JMP | BPF_JA, 0), /* to IPv6 */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IPV4_SOURCE),
    };
    const struct sock_filter keep = BPF_STMT(BPF_RET | BPF_K, KEEPS);
    uint16_t n = sizeof(head) / sizeof(head[0]);

    memcpy(program_out, head, sizeof(head));
    for (uint32_t i = 0; i < rate->n_callers; i++) {
        if (rate->callers[i].is_shut && is_v4(&rate->callers[i]))
            n += drop_v4(&rate->callers[i], program_out + n);
    }
    program_out[n++] = keep;
    program_out[3].k = n - 4u;
    for (uint32_t i = 0; i < rate->n_callers; i++) {
        if (rate->callers[i].is_shut && !is_v4(&rate->callers[i]))
            n += drop_v6(&rate->callers[i], program_out + n);
    }
    program_out[n++] = keep;
    return n;
}
