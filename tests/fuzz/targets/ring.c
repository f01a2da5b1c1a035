/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command rings: a client with a port, a queue and registered memory writes commands, moves its tail and scribbles over
 * its segment.
 *
 * An input is a list of steps. Commands may be aimed at the registered memory; what they write there is theirs.
 */
#include <string.h>

#include "tests/fuzz/targets/server.h"
#include "tests/fuzz/targets/target.h"

#define STEPS_MAX    64u
#define MEMORY_BYTES (16u * 4096u)

static _Alignas(4096) uint8_t memory[MEMORY_BYTES];

struct setup {
    struct emu_msg_memory registered;
    uint32_t cq;
};

static void prepare(struct fuzz_client *client, struct setup *setup)
{
    struct emu_msg msg = {
        .magic = EMU_MSG_MAGIC, .abi_version = EMU_ABI_VERSION, .type = EMU_MSG_CQ_CREATE, .cq = { .capacity = 64 }
    };

    fuzz_client_attach(client, 0, 1);
    fuzz_require(fuzz_client_ask(client, &msg, NULL, 0, NULL) && msg.result == 0, "a queue begins");
    setup->cq = msg.cq.index;
    msg = (struct emu_msg){ .magic = EMU_MSG_MAGIC,
                            .abi_version = EMU_ABI_VERSION,
                            .type = EMU_MSG_MEM_REGISTER,
                            .memory = {
                                .addr = (uint64_t)(uintptr_t)memory, .length_bytes = MEMORY_BYTES, .cq = setup->cq } };
    fuzz_require(fuzz_client_ask(client, &msg, NULL, 0, NULL) && msg.result == 0, "memory is registered");
    setup->registered = msg.memory;
}

/* A client's own memory is its to destroy, but here it is emunic's as well: results go to `memory`, or nowhere. */
static void spare_us(struct emu_cmd *cmd)
{
    if (cmd->op == EMU_OP_PUT)
        return;
    if (cmd->length_bytes <= MEMORY_BYTES / 2)
        cmd->local_addr = (uint64_t)(uintptr_t)memory + cmd->local_addr % (MEMORY_BYTES / 2);
    else
        cmd->local_addr %= 4096;
}

/* Some fields as a program would set them, where the input says so. */
static void aim(struct emu_cmd *cmd, const struct setup *setup, uint8_t how)
{
    if (how & 1)
        cmd->remote_nid = 0;
    if (how & 2) {
        cmd->mdh = setup->registered.mdh;
        cmd->generation = setup->registered.generation;
        cmd->remote_base = (uint64_t)(uintptr_t)memory;
    }
    if (how & 4)
        cmd->remote_addr = (uint64_t)(uintptr_t)memory + cmd->remote_addr % (MEMORY_BYTES + 64);
    if (how & 8)
        cmd->length_bytes %= MEMORY_BYTES;
    if (how & 16)
        cmd->local_addr = (uint64_t)(uintptr_t)memory + cmd->local_addr % MEMORY_BYTES;
    if (how & 32)
        cmd->source_cq = setup->cq;
    if (how & 64)
        cmd->op %= EMU_OP_PTL_GETPUT + 2;
    spare_us(cmd);
}

static void post(struct fuzz_client *client, const struct setup *setup, struct fuzz_bytes *in)
{
    uint64_t before = atomic_load(&client->segment->head);
    struct emu_cmd cmd;
    uint8_t how = fuzz_u8(in);

    fuzz_take(in, &cmd, fuzz_u8(in) % (sizeof(cmd) + 1));
    aim(&cmd, setup, how);
    fuzz_client_post(client, &cmd, 1);
    fuzz_server_turn();
    fuzz_count(atomic_load(&client->segment->head) > before);
}

/* Words of the segment's head, and of the queue. */
static void scribble(struct fuzz_client *client, struct fuzz_bytes *in)
{
    uint64_t value = fuzz_u64(in);
    uint32_t at = fuzz_u16(in) % (sizeof(struct emu_segment) / 8);

    /* The client itself finds its way by these. */
    if (at != offsetof(struct emu_segment, slot_off) / 8)
        ((volatile uint64_t *)client->segment)[at] = value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { data, size };
    struct fuzz_client client;
    struct setup setup;

    fuzz_client_open(&client);
    prepare(&client, &setup);
    for (unsigned i = 0; i < STEPS_MAX && in.left > 0; i++) {
        uint8_t what = fuzz_u8(&in);

        if (what < 200)
            post(&client, &setup, &in);
        else if (what < 240)
            scribble(&client, &in);
        else
            atomic_store(&client.segment->tail, atomic_load(&client.segment->tail) + fuzz_u16(&in));
        fuzz_server_turn();
    }
    fuzz_client_close(&client);
    return 0;
}
