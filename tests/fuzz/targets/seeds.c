/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seeds of the targets whose inputs are binary, made of the structs themselves: seeds TARGET FOLDER.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/abi/control.h"
#include "emunic/abi/fault.h"
#include "emunic/abi/host_admin.h"
#include "emunic/abi/host_ce.h"
#include "emunic/abi/host_datagram.h"
#include "emunic/abi/host_message.h"
#include "emunic/abi/host_portals.h"
#include "emunic/abi/portals.h"
#include "emunic/abi/table.h"

static uint8_t seed[20000];
static size_t n;
static const char *folder;

static void byte(unsigned value)
{
    seed[n++] = (uint8_t)value;
}

static void bytes(const void *from, size_t length)
{
    memcpy(seed + n, from, length);
    n += length;
}

static void save(const char *name)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    if (!file || fwrite(seed, 1, n, file) != n || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    n = 0;
}

/* ---- host messages: a zero, the message ---- */

static void save_message(const char *name, uint32_t length)
{
    n = 1 + length;
    seed[0] = 0;
    save(name);
}

static void host_message(void)
{
    static const uint64_t words[EMU_HOST_RULE_WORDS] = { 1, 1, 1 };
    uint8_t *message = seed + 1;
    struct emu_host_datagram datagram = {
        .word = EMU_DATAGRAM_OFFER, .number = 3, .bytes = 4, .nid = 1, .to_nid = 2, .data = (const uint8_t *)"data"
    };
    struct emu_host_domain domain = { .domain = 1, .op = EMU_HOST_DOMAIN_CREATE, .n = 2, .n_ranks = 2 };
    struct emu_host_admin admin = { .op = 1, .token = 5, .total = EMU_HOST_RULE_WORDS, .n = EMU_HOST_RULE_WORDS };
    struct emu_host_msgq msgq = { .domain = 1, .nid = 4, .mdh = 5, .generation = 6 };
    struct emu_host_portals_part part = { .domain = 1, .to = 2, .part_bytes = 8, .from = 3 };
    struct emu_host_portals_done done = { .domain = 1, .to = 2 };

    save_message("datagram", emu_host_datagram_put(message, 1, &datagram));
    memset(emu_host_domain_put(message, &domain), 0, 16);
    save_message("domain", EMU_HOST_DOMAIN_BYTES + 16);
    save_message("admin", emu_host_admin_put(message, &admin, words));
    emu_host_msgq_put(message, &msgq);
    save_message("msgq", EMU_HOST_MSGQ_BYTES);
    emu_host_portals_want_put(message, &part);
    save_message("want", EMU_HOST_PTL_WANT_BYTES);
    emu_host_portals_data_put(message, &part);
    memset(message + EMU_HOST_PTL_DATA_BYTES, 7, 8);
    save_message("data", EMU_HOST_PTL_DATA_BYTES + 8);
    emu_host_portals_done_put(message, &done);
    save_message("done", EMU_HOST_PTL_DONE_BYTES);
}

/* ---- control: has it a port, then requests: how, kind, length, body ---- */

static void request(unsigned type, const void *body, size_t length)
{
    byte(0);
    byte(type);
    byte((unsigned)length);
    bytes(body, length);
}

static void control(void)
{
    const struct emu_msg_cq cq = { .capacity = 16 };
    const struct emu_msg_memory memory = { .length_bytes = 8192, .cq = EMU_CQ_NONE };
    const struct emu_msg_datagram datagram = { .ep = 1, .flags = EMU_DATAGRAM_WILDCARD, .room_bytes = 128 };
    const struct emu_msg_portals portals = { .pid = 3 };
    const struct emu_msg_segments segments = { .n = 2, .segments = { { 0, 4096 }, { 8192, 4096 } } };
    const struct emu_msg_msgq msgq = {
        .shape = { .max_bytes = 64, .credits = 4, .n_connections = 2, .n_insts = 2, .region_bytes = 65536 }
    };
    const struct emu_msg_ce ce = { .flags = EMU_CE_FIRST | EMU_CE_LAST };
    const struct emu_msg_attach attach = { .instance_id = 1 };
    const struct emu_msg_resources resources = { .resource = EMU_RESOURCE_CQ, .ptag = 7 };

    byte(1);
    request(EMU_MSG_CQ_CREATE, &cq, sizeof(cq));
    request(EMU_MSG_MEM_REGISTER, &memory, sizeof(memory));
    request(EMU_MSG_MEM_DEREGISTER, &memory, sizeof(memory));
    request(EMU_MSG_CQ_DESTROY, &cq, sizeof(cq));
    save("memory");
    byte(1);
    request(EMU_MSG_DATAGRAM_POST, &datagram, sizeof(datagram));
    request(EMU_MSG_DATAGRAM_TEST, &datagram, sizeof(datagram));
    request(EMU_MSG_DATAGRAM_CANCEL, &datagram, sizeof(datagram));
    request(EMU_MSG_DATAGRAM_PROBE, &datagram, sizeof(datagram));
    save("datagrams");
    byte(1);
    request(EMU_MSG_PORTALS_OPEN, &portals, sizeof(portals));
    request(EMU_MSG_PORTALS_PEER, &portals, sizeof(portals));
    request(EMU_MSG_CHANNEL_CREATE, &portals, sizeof(portals));
    request(EMU_MSG_SPACE, &portals, sizeof(portals));
    save("portals");
    byte(1);
    request(EMU_MSG_MEM_SEGMENTS, &segments, sizeof(segments));
    request(EMU_MSG_MEM_REGISTER, &memory, sizeof(memory));
    request(EMU_MSG_MSGQ_JOIN, &msgq, sizeof(msgq));
    request(EMU_MSG_CE_CREATE, &ce, sizeof(ce));
    request(EMU_MSG_CE_CONFIGURE, &ce, sizeof(ce));
    save("rest");
    byte(0);
    request(EMU_MSG_ATTACH, &attach, sizeof(attach));
    request(EMU_MSG_RESOURCES, &resources, sizeof(resources));
    request(EMU_MSG_ERRORS_OPEN, &attach, sizeof(attach));
    request(EMU_MSG_MACHINE, &cq, sizeof(cq));
    save("attach");
}

/* ---- admin: requests: how, kind, length, body; then a file: length, bytes ---- */

static void admin_request(unsigned type, const void *body, size_t length, const void *file, size_t file_bytes)
{
    byte(file ? 0x50 : 0);
    byte(type - EMU_MSG_DOMAIN_CREATE);
    byte((unsigned)length);
    bytes(body, length);
    if (!file)
        return;
    byte((unsigned)file_bytes & 255);
    byte((unsigned)file_bytes >> 8);
    bytes(file, file_bytes);
}

static void admin(void)
{
    static const uint32_t nids[2] = { 0, 1 };
    const struct emu_fault_rule rule = {
        .classes = 1, .action = 1, .status = 1, .from_nid = EMU_NID_NONE, .to_nid = EMU_NID_NONE
    };
    const struct emu_msg_domain domain = { .ptag = 9, .cookie = 99, .n_ranks = 2 };
    const struct emu_msg_domain first = { .domain_id = 1, .flags = EMU_TABLE_ROUTED };
    const struct emu_msg_fault fault = { .domain_id = EMU_FAULT_ALL_DOMAINS, .n_rules = 1 };
    const struct emu_msg_network network = { .index = 1, .lane_mask = 1 };
    const struct emu_msg_job job = { .cookie = 99 };

    admin_request(EMU_MSG_DOMAIN_CREATE, &domain, sizeof(domain), nids, sizeof(nids));
    admin_request(EMU_MSG_STATUS, &domain, 0, NULL, 0);
    admin_request(EMU_MSG_LINKS, &domain, 0, NULL, 0);
    admin_request(EMU_MSG_DOMAIN_END, &domain, sizeof(domain), NULL, 0);
    save("domain");
    admin_request(EMU_MSG_FAULT_SET, &fault, sizeof(fault), &rule, sizeof(rule));
    admin_request(EMU_MSG_FAULTS, &fault, sizeof(fault), NULL, 0);
    admin_request(EMU_MSG_FAULT_CLEAR, &fault, sizeof(fault), NULL, 0);
    admin_request(EMU_MSG_DATAPATH, &first, sizeof(first), NULL, 0);
    save("faults");
    admin_request(EMU_MSG_NETWORK, &network, sizeof(network), NULL, 0);
    admin_request(EMU_MSG_STATUS, &domain, 0, NULL, 0);
    save("network");
    admin_request(EMU_MSG_JOB_CONFIGURE, &job, sizeof(job), nids, sizeof(nids));
    admin_request(EMU_MSG_JOB_SUSPEND, &job, sizeof(job), NULL, 0);
    admin_request(EMU_MSG_JOB_RESUME, &job, sizeof(job), NULL, 0);
    admin_request(EMU_MSG_NTT_CLEAR, &job, sizeof(job), NULL, 0);
    admin_request(EMU_MSG_INJECTION_SET, &job, sizeof(job), NULL, 0);
    save("job");
}

/* ---- ring: steps; 0: a command, how it is aimed, length, bytes ---- */

static void ring(void)
{
    for (unsigned op = 0; op <= EMU_OP_PTL_GETPUT; op++) {
        const struct emu_cmd cmd = { .op = (uint8_t)op,
                                     .flags = op % 2 ? EMU_CMD_INLINE : 0,
                                     .events = 1,
                                     .length_bytes = 8,
                                     .source_cq = EMU_CQ_NONE };
        char name[32];

        byte(0);
        byte(0x3f);
        byte(sizeof(cmd));
        bytes(&cmd, sizeof(cmd));
        byte(0);
        byte(0x3f);
        byte(sizeof(cmd));
        bytes(&cmd, sizeof(cmd));
        snprintf(name, sizeof(name), "op-%u", op);
        save(name);
    }
}

/* ---- portals: lists, entries, then commands, all as a program would have them ---- */

/* mode: of the lists; 4: one that looks long, with the index behind it. */
static void portals_lists(uint8_t mode)
{
    const struct emu_ptl_index index = { .n_classes = 1 };
    const struct emu_ptl_chain chains[4] = { { 0, 0 } };

    byte(mode);
    if ((mode & 4) == 0)
        return;
    byte(7);
    bytes(&index, sizeof(index));
    bytes(chains, sizeof(chains));
}

static void portals(void)
{
    const struct emu_ptl_ace ace = { 0 };
    const struct emu_ptl_place place = { .bits = 1 };
    const struct emu_ptl_me me = { .generation = 1 };
    const uint64_t queue[2] = { 1ull << 33, 8 };
    const uint32_t ring_off = 0;

    for (unsigned n = 0; n < 6; n++) {
        const unsigned op = n % 3;
        const struct emu_ptl_cmd cmd = { .op = (uint8_t)op, .length_bytes = 40, .bits = 1, .eq = EMU_PTL_NONE };
        const struct emu_ptl_md md = { .threshold = 3,
                                       .options = EMU_PTL_MD_OP_PUT | EMU_PTL_MD_OP_GET | EMU_PTL_MD_TRUNCATE,
                                       .length_bytes = 4096,
                                       .max_size = 4096,
                                       .generation = 0 };
        char name[16];

        portals_lists(n < 3 ? 3 : 7);
        bytes(&ace, sizeof(ace));
        for (unsigned i = 0; i < 6; i++) {
            byte(n < 3 ? 7 : 15);
            bytes(&place, sizeof(place));
            bytes(&me, sizeof(me));
            bytes(&md, sizeof(md));
            bytes(queue, sizeof(queue));
            bytes(&ring_off, sizeof(ring_off));
        }
        for (unsigned i = 0; i < 4; i++) {
            byte(0x3f);
            bytes(&cmd, sizeof(cmd));
        }
        snprintf(name, sizeof(name), "%s-%u", n < 3 ? "op" : "index", op);
        save(name);
    }
}

/* Bytes of every kind do for those that give their input a meaning themselves. */
static void any(size_t length)
{
    for (unsigned i = 0; i < 4; i++) {
        char name[16];

        for (size_t k = 0; k < length; k++)
            byte((unsigned)((k + 1) * (2 * i + 37) + k / 7 * 11));
        snprintf(name, sizeof(name), "any-%u", i);
        save(name);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    folder = argv[2];
    if (strcmp(argv[1], "host_message") == 0 || strcmp(argv[1], "planted") == 0)
        host_message();
    else if (strcmp(argv[1], "admin") == 0)
        admin();
    else if (strcmp(argv[1], "control") == 0)
        control();
    else if (strcmp(argv[1], "ring") == 0)
        ring();
    else if (strcmp(argv[1], "portals") == 0)
        portals();
    else
        any(500);
    return 0;
}
