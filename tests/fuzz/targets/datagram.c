/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of the first of three hosts: requests of its ports, messages of the others, hosts that come and go, in any
 * order.
 *
 * An input is a list of steps. A message is built from the input's fields, or is the input's bytes.
 */
#include <string.h>

#include "emunic/abi/control.h"
#include "emunic/abi/host_datagram.h"
#include "tests/common/datagram_world.h"
#include "tests/fuzz/targets/target.h"

#define HOSTS     3u
#define EPS       6u
#define STEPS_MAX 120u

/* A node with a port: mostly. */
static uint32_t node(struct fuzz_bytes *in, uint32_t host)
{
    uint8_t which = fuzz_u8(in);

    return which == 255 ? EMU_NID_NONE : host * 10 + which % (DATAGRAM_WORLD_PORTS + 1);
}

static void request(struct datagram_world *world, struct fuzz_bytes *in)
{
    uint8_t what = fuzz_u8(in);
    uint16_t type = (uint16_t)(EMU_MSG_DATAGRAM_POST + (what >> 5 < 4 ? 0 : 1 + what % 4));
    uint8_t flags = fuzz_u8(in);
    struct emu_msg_datagram datagram = { .ep = fuzz_u8(in) % EPS,
                                         .flags = flags & 7,
                                         .id = flags >> 6,
                                         .remote_nid = node(in, (flags >> 3 & 3) % HOSTS),
                                         .remote_instance = flags == 255,
                                         .length_bytes = what % 130,
                                         .room_bytes = (uint16_t)(128 - what % 3) };
    int r = datagram_world_ask(world, what % DATAGRAM_WORLD_PORTS, type, &datagram);

    fuzz_count(r == 0);
    fuzz_require(type != EMU_MSG_DATAGRAM_TEST || datagram.length_bytes <= EMU_DATAGRAM_MAX || r != 0, "data fit");
}

static void message(struct datagram_world *world, struct fuzz_bytes *in)
{
    uint8_t bytes[EMU_HOST_DATAGRAM_MAX + 8] = { 0 };
    uint8_t data[EMU_DATAGRAM_MAX] = { 0 };
    uint8_t what = fuzz_u8(in);
    uint32_t host = 1 + what % (HOSTS - 1);
    struct emu_host_datagram d = { .word = 1 + (what >> 1) % (EMU_DATAGRAM_WORDS - 1), .data = data };
    uint32_t n = fuzz_u8(in);

    if (what == 255) {
        fuzz_take(in, bytes, n < sizeof(bytes) ? n : sizeof(bytes));
    } else {
        d.bytes = d.word == EMU_DATAGRAM_OFFER || d.word == EMU_DATAGRAM_CLAIM ? n % (EMU_DATAGRAM_MAX + 1) : 0;
        d.number = d.word == EMU_DATAGRAM_BEGIN ? 0 : 1 + fuzz_u8(in) % 32;
        d.claimer = d.word > EMU_DATAGRAM_WITHDRAW ? 1 + fuzz_u8(in) % 32 : 0;
        d.nid = node(in, host);
        d.to_nid = node(in, 0);
        n = emu_host_datagram_put(bytes, 1 + (what >> 7), &d);
    }
    fuzz_count(datagram_world_hear(world, host, bytes, n < sizeof(bytes) ? n : sizeof(bytes)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { data, size };
    struct datagram_world *world = datagram_world_create(CROWD_NONE, 0);

    datagram_world_set_hosts(world, HOSTS);
    for (unsigned i = 0; i < STEPS_MAX && in.left > 0; i++) {
        uint8_t step = fuzz_u8(&in);

        if (step < 150)
            request(world, &in);
        else if (step < 240)
            message(world, &in);
        else if (step < 246)
            datagram_world_set_host(world, 1 + step % 2, step & 2);
        else if (step < 250)
            datagram_world_set_full(step & 1);
        else if (step < 252)
            datagram_world_turn(world);
        else
            datagram_world_renew_port(world, step % DATAGRAM_WORLD_PORTS);
    }
    datagram_world_destroy(world);
    return 0;
}
