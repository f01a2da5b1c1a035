/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests on the control socket, of a client with a port or without.
 *
 * The first byte: has it a port? Then requests: kind, how many bytes of its body are given, those bytes, whether a
 * descriptor comes along. Every 16th request is sent as the bytes are, head and length as well.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/targets/server.h"
#include "tests/fuzz/targets/target.h"

#define REQUESTS_MAX 24u

static void send_raw(struct fuzz_client *client, struct fuzz_bytes *in)
{
    uint8_t bytes[300];
    size_t n = fuzz_u16(in) % sizeof(bytes);

    fuzz_take(in, bytes, n);
    (void)!send(client->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    fuzz_server_turn();
}

/* Addresses of the client's own memory, so that some are good. */
static void aim(struct emu_msg *msg)
{
    static uint8_t memory[8 * 4096];

    if (msg->type == EMU_MSG_MEM_REGISTER && msg->memory.addr < sizeof(memory))
        msg->memory.addr += (uint64_t)(uintptr_t)memory;
    for (uint32_t i = 0; msg->type == EMU_MSG_MEM_SEGMENTS && i < EMU_SEGMENTS_PER_MSG; i++) {
        if (msg->segments.segments[i].addr < sizeof(memory))
            msg->segments.segments[i].addr += (uint64_t)(uintptr_t)memory;
    }
    if (msg->type == EMU_MSG_ATTACH && msg->attach.probe_addr < sizeof(memory) - 8) {
        memcpy(&msg->attach.probe_value, memory + msg->attach.probe_addr, 8);
        msg->attach.probe_addr += (uint64_t)(uintptr_t)memory;
        msg->attach.ptag = FUZZ_PTAG;
        msg->attach.cookie = FUZZ_COOKIE;
    }
}

static void ask(struct fuzz_client *client, struct fuzz_bytes *in)
{
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC, .abi_version = EMU_ABI_VERSION };
    uint8_t how = fuzz_u8(in);
    int fd = -1;

    if (how % 16 == 15) {
        send_raw(client, in);
        return;
    }
    msg.type = fuzz_u8(in) % (EMU_MSG_PORTALS_DISTANCE + 3);
    fuzz_take(in, msg.bytes, fuzz_u8(in) % (sizeof(msg.bytes) + 1));
    aim(&msg);
    if (how & 0x40)
        fd = how & 0x20 ? memfd_create("control", MFD_ALLOW_SEALING) : open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fuzz_client_ask(client, &msg, &fd, fd >= 0, NULL))
        fuzz_count(msg.result >= 0);
    if (fd >= 0)
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { data, size };
    struct fuzz_client client;

    fuzz_client_open(&client);
    if (fuzz_u8(&in) & 1)
        fuzz_client_attach(&client, 0, 1);
    for (unsigned i = 0; i < REQUESTS_MAX && in.left > 0; i++)
        ask(&client, &in);
    fuzz_client_close(&client);
    return 0;
}
