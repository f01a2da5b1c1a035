/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fills the map of places from the machine's topology: 18 bytes for a node.
 */
#include "emunic/daemon/places/machine_places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/abi/places.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/fabric/machine.h"

static void fill(const struct emu_machine *m, struct emu_places *places, uint32_t n_nids)
{
    struct emu_node_place *nodes = (struct emu_node_place *)(places + 1);

    *places = (struct emu_places){ .magic = EMU_PLACES_MAGIC, .abi_version = EMU_ABI_VERSION, .n_nids = n_nids };
    for (uint32_t nid = 0; nid < n_nids; nid++) {
        struct emu_place at;

        emu_machine_place(m, nid, &at); /* there are no gaps among nids */
        nodes[nid] = (struct emu_node_place){
            .mesh = { (uint16_t)at.mesh_x, (uint16_t)at.mesh_y, (uint16_t)at.mesh_z },
            .column = (uint16_t)at.cabinet_column,
            .row = (uint16_t)at.cabinet_row,
            .cage = (uint16_t)at.cage,
            .slot = (uint16_t)at.blade,
            .node = (uint16_t)at.node,
            .chip = (uint16_t)at.chip,
        };
        for (unsigned axis = 0; axis < 3; axis++) {
            if (nodes[nid].mesh[axis] > places->mesh_max[axis])
                places->mesh_max[axis] = nodes[nid].mesh[axis];
        }
    }
}

static int make_places(const struct emu_machine *machine)
{
    uint32_t n_nids = emu_machine_n_nodes(machine);
    uint64_t bytes = emu_places_bytes(n_nids);
    int fd = memfd_create("emunic-places", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *places = MAP_FAILED;
    int r;

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)bytes) == 0)
        places = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (places == MAP_FAILED)
        goto err;
    fill(machine, places, n_nids);
    munmap(places, bytes);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
        return fd;
err:
    r = -errno;
    close(fd);
    return r;
}

/* ---- the part ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    int *fd = malloc(sizeof(*fd));

    (void)options;
    (void)why;
    if (!fd)
        return -ENOMEM;
    *fd = make_places(server->machine);
    server->slots[EMU_SERVER_PLACES] = fd;
    return *fd < 0 ? *fd : 0;
}

static void destroy(struct emu_server *server)
{
    int *fd = server->slots[EMU_SERVER_PLACES];

    if (fd && *fd >= 0)
        close(*fd);
    free(fd);
    server->slots[EMU_SERVER_PLACES] = NULL;
}

static int answer_machine(struct emu_request *request)
{
    const struct emu_server *server = request->connection->server;
    struct emu_msg_machine *machine = &request->msg->machine;

    machine->device = emu_machine_nic(server->machine)->device;
    if (machine->wants_places == 0)
        return 0;
    return emu_request_pass(request, *(const int *)server->slots[EMU_SERVER_PLACES], false);
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_MACHINE, EMU_MSG_MACHINE, EMU_NEEDS_CONTROL, answer_machine },
};

const struct emu_part emu_places_part = {
    .name = "places",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
};
