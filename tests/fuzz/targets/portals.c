/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Portals part of a port: its owner writes into it whatever it likes, while emunic matches and delivers over it.
 *
 * The input fills the first entries of each table, most of them made to look live, and the index of a list that looks
 * long, then posts Portals commands of the port to itself.
 */
#include <string.h>

#include "emunic/engine/portals_index.h"
#include "tests/fuzz/targets/server.h"
#include "tests/fuzz/targets/target.h"

#define ENTRIES     6u
#define CHAINS      4u
#define LONG        (ENTRIES + EMU_PTL_SHORT_LIST) /* places: one entry is only found by the index */
#define COMMANDS    8u
#define PID         5u
#define MEMORY_SIZE 65536u

static _Alignas(4096) uint8_t memory[MEMORY_SIZE];

static void fill_index(struct emu_ptl_ni *ni, struct fuzz_bytes *in)
{
    struct emu_ptl_index *index = &ni->indices[0];
    uint8_t is_sound = fuzz_u8(in);

    fuzz_take(in, index, sizeof(*index));
    fuzz_take(in, ni->chains[0], CHAINS * sizeof(ni->chains[0][0]));
    if (is_sound & 1) {
        index->n_chains = CHAINS;
        index->n_classes %= EMU_PTL_CLASSES + 1;
        index->n_loose %= ENTRIES;
    }
    if (is_sound & 2) {
        index->loose.first %= ENTRIES;
        for (uint32_t i = 0; i < CHAINS; i++)
            ni->chains[0][i].first %= ENTRIES;
    }
    if (is_sound & 4)
        index->classes[0] = (struct emu_ptl_class){ .ignore = UINT64_MAX, .open = 3, .n = ENTRIES };
}

static void fill_lists(struct emu_ptl_ni *ni, struct fuzz_bytes *in)
{
    uint8_t is_sound = fuzz_u8(in);

    ni->is_up = 1;
    ni->pid = PID;
    ni->max_pt = EMU_PTL_PTS - 1;
    ni->max_ac = EMU_PTL_ACES - 1;
    fuzz_take(in, &ni->lists[0], is_sound & 1 ? 0 : sizeof(ni->lists[0]));
    if (is_sound & 1)
        ni->lists[0] = (struct emu_ptl_list){ .end = ENTRIES, .n_live = ENTRIES, .n_max = ENTRIES };
    if (is_sound & 4) {
        ni->lists[0] = (struct emu_ptl_list){ .end = LONG, .n_live = LONG, .n_max = LONG };
        fill_index(ni, in);
    }
    fuzz_take(in, &ni->aces[0], sizeof(ni->aces[0]));
    if (is_sound & 2)
        ni->aces[0] = (struct emu_ptl_ace){
            .nid = UINT32_MAX, .pid = UINT32_MAX, .uid = UINT32_MAX, .jid = UINT32_MAX, .pt = UINT32_MAX
        };
}

static void fill_entry(struct emu_ptl_ni *ni, uint32_t i, struct fuzz_bytes *in)
{
    uint8_t is_sound = fuzz_u8(in);
    struct emu_ptl_place *place = &ni->places[0][i];
    struct emu_ptl_md *md = &ni->mds[i];
    struct emu_ptl_eq *eq = &ni->eqs[i];
    uint64_t eq_tail;

    fuzz_take(in, place, sizeof(*place));
    fuzz_take(in, &ni->mes[i], sizeof(ni->mes[i]));
    fuzz_take(in, md, sizeof(*md));
    eq_tail = fuzz_u64(in);
    fuzz_take(in, &eq->capacity, 8);
    eq->ring_off = fuzz_u32(in);
    atomic_store(&eq->tail, eq_tail);
    if (is_sound & 1) {
        place->ignore = UINT64_MAX;
        place->nid = place->pid = UINT32_MAX;
        place->me = place->md = i;
        ni->mes[i].state = EMU_PTL_LIVE;
        ni->mes[i].md = i;
        ni->mes[i].place = i;
    }
    if (is_sound & 8)
        ni->mes[i].next = (i + 1) % (ENTRIES + 1);
    if (is_sound & 2) {
        md->state = EMU_PTL_LIVE;
        md->flags &= EMU_PTL_MD_UNLINKS;
        md->me = i;
        md->start = (uint64_t)(uintptr_t)memory;
        md->length = md->length_bytes = md->length_bytes % MEMORY_SIZE;
        md->iov_count = 0;
        md->threshold = md->threshold % 4;
    }
    if (!(is_sound & 2))
        md->start %= 4096; /* here the owner's memory is emunic's as well: no good address but in `memory` */
    if (is_sound & 4) {
        md->eq = i;
        md->eq_generation = eq->generation = 1;
        eq->state = EMU_PTL_LIVE;
        eq->capacity = 8;
        eq->ring_off = 4096 * i;
        eq->promised = 0;
    }
}

static void post(struct fuzz_client *client, struct fuzz_bytes *in)
{
    uint64_t received = client->ni->received;
    uint64_t drops = client->ni->drops;
    uint8_t how = fuzz_u8(in);
    struct emu_ptl_cmd cmd;

    fuzz_take(in, &cmd, sizeof(cmd));
    cmd.op = (uint8_t)(EMU_OP_PTL_PUT + cmd.op % 3);
    if (how & 1)
        cmd.nid = client->attach.nid;
    if (how & 2)
        cmd.pid = PID;
    if (how & 4)
        cmd.pt = cmd.ac = 0;
    if (how & 8)
        cmd.length_bytes %= 256;
    if (how & 16) {
        cmd.events = 0;
        cmd.attempts = cmd.reserved = 0;
    }
    if (how & 32)
        cmd.md %= ENTRIES;
    fuzz_client_post(client, &cmd, 1);
    fuzz_server_turn();
    if (client->ni->received != received || client->ni->drops != drops)
        fuzz_count(client->ni->received != received);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { data, size };
    struct fuzz_client client;

    fuzz_client_open(&client);
    fuzz_client_attach(&client, 0, 1);
    fuzz_client_open_portals(&client, PID);
    fill_lists(client.ni, &in);
    for (uint32_t i = 0; i < ENTRIES && in.left > 0; i++)
        fill_entry(client.ni, i, &in);
    for (unsigned i = 0; i < COMMANDS && in.left > 0; i++)
        post(&client, &in);
    fuzz_client_close(&client);
    return 0;
}
