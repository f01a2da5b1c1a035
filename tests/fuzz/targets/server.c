/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/targets/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/abi/table.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/daemon.h"
#include "emunic/daemon/world/server.h"
#include "tests/fuzz/targets/target.h"

#define ROUNDS 4u

static struct emu_server *server;
static char name[EMU_SERVER_NAME_MAX];

static void start(const struct emu_time_options *time)
{
    static const uint32_t nids[FUZZ_NODES] = { 0, 1 };
    const struct emu_domain_spec spec = { .ptag = FUZZ_PTAG,
                                          .cookie = FUZZ_COOKIE,
                                          .owner_uid = geteuid(),
                                          .n_ranks = FUZZ_NODES,
                                          .rank_nids = nids,
                                          .flags = EMU_TABLE_ROUTED };
    struct emu_server_options options = { .name = name,
                                          .machine = time ? "seastar:x=2,y=2,z=2" : "seastar",
                                          .machine_dir = EMU_TEST_MACHINE_DIR,
                                          .bind = "none",
                                          .ready_fd = -1,
                                          .time = time };
    struct emu_domain *domain;
    char err[400];

    snprintf(name, sizeof(name), "fuzz-%d", (int)getpid());
    fuzz_require(emu_daemon_create(&options, &server, err, sizeof(err)) == 0, "an emunic starts");
    fuzz_require(emu_domain_create(server, &spec, &domain) == 0, "a domain begins");
}

void fuzz_server_begin_virtual(void)
{
    static const struct emu_time_options time = { .poll_ps = 10000, .max_lag_ppm = 1000000 };

    if (server)
        emu_server_destroy(server);
    start(&time);
}

void fuzz_server_turn(void)
{
    const struct emu_part_table *parts = server->parts;
    bool has_seen_all = false;

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < parts->n_rounds; i++)
            (void)parts->rounds[i](server);
        emu_quiesce_round(server);
        if (emu_server_call_watches(server, 0, NULL, &has_seen_all) > 0)
            emu_parts_served(server);
        if (has_seen_all && server->counts.looks_wanted > 0)
            emu_parts_looked(server);
        emu_domain_reap(server, emu_clock_ns());
    }
    fuzz_require(!server->stops, "emunic goes on");
}

bool fuzz_client_ask(struct fuzz_client *client, struct emu_msg *msg, const int *fds, unsigned n_fds,
                     struct emu_fds *fds_out)
{
    struct emu_fds own = { .n_fds = 0 };
    int r = client->fd < 0 ? -1 : emu_msg_send(client->fd, msg, fds, n_fds);

    for (unsigned i = 0; r == 0 && i < 4; i++) {
        fuzz_server_turn();
        r = emu_msg_receive(client->fd, msg, &own);
        if (r == 0)
            break;
        if (r != -EAGAIN)
            return false;
        r = 0;
    }
    if (fds_out)
        *fds_out = own;
    else
        emu_fds_close(&own);
    return r == 0;
}

static void open_client(struct fuzz_client *client, enum emu_socket_kind kind)
{
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC,
                           .abi_version = EMU_ABI_VERSION,
                           .type = EMU_MSG_HELLO,
                           .hello = { .abi_version = EMU_ABI_VERSION } };

    if (!server)
        start(NULL);
    *client = (struct fuzz_client){ .fd = emu_socket_connect(name, kind), .doorbell = -1 };
    fuzz_require(client->fd >= 0, "a client connects");
    fuzz_require(fcntl(client->fd, F_SETFL, O_NONBLOCK) == 0, "it does not wait");
    fuzz_require(fuzz_client_ask(client, &msg, NULL, 0, NULL) && msg.result == 0, "emunic says hello");
}

void fuzz_client_open(struct fuzz_client *client)
{
    open_client(client, EMU_SOCKET_CONTROL);
}

void fuzz_client_open_admin(struct fuzz_client *client)
{
    open_client(client, EMU_SOCKET_ADMIN);
}

void fuzz_client_close(struct fuzz_client *client)
{
    if (client->ni)
        munmap(client->ni, sizeof(*client->ni));
    if (client->segment)
        munmap(client->segment, client->attach.segment_bytes);
    if (client->doorbell >= 0)
        close(client->doorbell);
    if (client->fd >= 0)
        close(client->fd);
    fuzz_server_turn();
}

void fuzz_client_attach(struct fuzz_client *client, uint32_t nid, uint32_t instance_id)
{
    volatile uint64_t probe = 0x1122334455667788;
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC,
                           .abi_version = EMU_ABI_VERSION,
                           .type = EMU_MSG_ATTACH,
                           .attach = { .ptag = FUZZ_PTAG,
                                       .cookie = FUZZ_COOKIE,
                                       .instance_id = instance_id,
                                       .nid_wanted = nid,
                                       .probe_addr = (uint64_t)(uintptr_t)&probe,
                                       .probe_value = probe } };
    struct emu_fds fds;
    void *at;

    fuzz_require(fuzz_client_ask(client, &msg, NULL, 0, &fds) && msg.result == 0 && fds.n_fds == 3, "a port begins");
    client->attach = msg.attach;
    at = mmap(NULL, msg.attach.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds.fd[1], 0);
    fuzz_require(at != MAP_FAILED, "a segment is mapped");
    client->segment = at;
    client->doorbell = fds.fd[2];
    fds.fd[2] = -1;
    emu_fds_close(&fds);
}

void fuzz_client_open_portals(struct fuzz_client *client, uint32_t pid)
{
    struct emu_msg msg = {
        .magic = EMU_MSG_MAGIC, .abi_version = EMU_ABI_VERSION, .type = EMU_MSG_PORTALS_OPEN, .portals = { .pid = pid }
    };
    struct emu_fds fds;
    void *at;

    fuzz_require(fuzz_client_ask(client, &msg, NULL, 0, &fds) && msg.result == 0 && fds.n_fds == 1,
                 "a Portals interface begins");
    at = mmap(NULL, sizeof(*client->ni), PROT_READ | PROT_WRITE, MAP_SHARED, fds.fd[0], 0);
    fuzz_require(at != MAP_FAILED, "an interface is mapped");
    client->ni = at;
    emu_fds_close(&fds);
}

void fuzz_client_post(struct fuzz_client *client, const void *commands, uint32_t n)
{
    struct emu_cmd *slots = (struct emu_cmd *)((char *)client->segment + client->segment->slot_off);
    uint64_t tail = atomic_load(&client->segment->tail);

    for (uint32_t i = 0; i < n; i++)
        slots[(tail + i) & (EMU_RING_SLOTS - 1)] = ((const struct emu_cmd *)commands)[i];
    atomic_store(&client->segment->tail, tail + n);
}
