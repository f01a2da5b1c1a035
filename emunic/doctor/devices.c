/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA devices: libibverbs tells which there are and how their ports stand, hwloc which processors are near them.
 *
 * Rates are width times speed as the port reports both (before encoding), in the units of the InfiniBand specification.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "emunic/doctor/doctor.h"

static const char *state_name(enum ibv_port_state state)
{
    switch (state) {
    case IBV_PORT_DOWN:
        return "down";
    case IBV_PORT_INIT:
        return "init";
    case IBV_PORT_ARMED:
        return "armed";
    case IBV_PORT_ACTIVE:
        return "active";
    case IBV_PORT_ACTIVE_DEFER:
        return "deferred";
    case IBV_PORT_NOP:
        break;
    }
    return "unknown";
}

static double gbit_per_s(unsigned width, unsigned speed)
{
    double lanes;
    double lane;

    switch (width) {
    case 1:
        lanes = 1;
        break;
    case 2:
        lanes = 4;
        break;
    case 4:
        lanes = 8;
        break;
    case 8:
        lanes = 12;
        break;
    case 16:
        lanes = 2;
        break;
    default:
        return 0;
    }
    switch (speed) {
    case 1:
        lane = 2.5;
        break;
    case 2:
        lane = 5;
        break;
    case 4: /* QDR and FDR-10 */
    case 8:
        lane = 10;
        break;
    case 16:
        lane = 14;
        break;
    case 32:
        lane = 25;
        break;
    case 64:
        lane = 50;
        break;
    case 128:
        lane = 100;
        break;
    default:
        return 0;
    }
    return lanes * lane;
}

static void look_at_port(struct ibv_context *context, unsigned number, struct emu_doctor_rdma_port *port)
{
    struct ibv_port_attr attr;
    union ibv_gid gid;

    *port = (struct emu_doctor_rdma_port){ .number = number, .state = "unknown" };
    if (ibv_query_port(context, (uint8_t)number, &attr) != 0)
        return;
    snprintf(port->state, sizeof(port->state), "%s", state_name(attr.state));
    snprintf(port->link, sizeof(port->link), "%s",
             attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet" : "infiniband");
    port->gbit_per_s = gbit_per_s(attr.active_width, attr.active_speed);
    port->mtu_bytes = 128u << attr.active_mtu;
    port->lid = attr.lid;
    if (ibv_query_gid(context, (uint8_t)number, 0, &gid) == 0)
        inet_ntop(AF_INET6, gid.raw, port->gid, sizeof(port->gid));
}

static void look_at_place(hwloc_topology_t topology, struct ibv_device *ibv, struct emu_doctor_device *device)
{
    hwloc_bitmap_t near = hwloc_bitmap_alloc();
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();

    if (near && nodes && hwloc_ibv_get_device_cpuset(topology, ibv, near) == 0) {
        hwloc_bitmap_list_snprintf(device->near_set, sizeof(device->near_set), near);
        hwloc_cpuset_to_nodeset(topology, near, nodes);
        if (hwloc_bitmap_weight(nodes) == 1)
            device->numa_node = hwloc_bitmap_first(nodes);
    }
    hwloc_bitmap_free(near);
    hwloc_bitmap_free(nodes);
}

static void look_at_device(hwloc_topology_t topology, struct ibv_device *ibv, struct emu_doctor_device *device)
{
    struct ibv_context *context;
    struct ibv_device_attr attr;

    *device = (struct emu_doctor_device){ .numa_node = -1 };
    snprintf(device->name, sizeof(device->name), "%s", ibv_get_device_name(ibv));
    if (topology)
        look_at_place(topology, ibv, device);
    errno = 0;
    context = ibv_open_device(ibv);
    if (!context) {
        device->error = errno ? errno : EIO;
        return;
    }
    if (ibv_query_device(context, &attr) == 0) {
        device->is_open = true;
        snprintf(device->firmware, sizeof(device->firmware), "%.*s", (int)sizeof(attr.fw_ver), attr.fw_ver);
        while (device->n_ports < attr.phys_port_cnt && device->n_ports < EMU_DOCTOR_RDMA_PORTS_MAX) {
            look_at_port(context, device->n_ports + 1, &device->ports[device->n_ports]);
            device->n_ports++;
        }
    } else {
        device->error = EIO;
    }
    ibv_close_device(context);
}

/* NULL: places stay unknown. */
static hwloc_topology_t load_topology(void)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) < 0)
        return NULL;
    if (hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

int emu_doctor_devices(struct emu_doctor_device devices_out[EMU_DOCTOR_DEVICES_MAX])
{
    hwloc_topology_t topology;
    struct ibv_device **list;
    int n = 0;

    errno = 0;
    list = ibv_get_device_list(&n);
    if (!list)
        return errno == ENOSYS || errno == 0 ? 0 : -errno; /* ENOSYS: the kernel has no RDMA */
    if (n > EMU_DOCTOR_DEVICES_MAX)
        n = EMU_DOCTOR_DEVICES_MAX;
    topology = n > 0 ? load_topology() : NULL;
    for (int i = 0; i < n; i++)
        look_at_device(topology, list[i], &devices_out[i]);
    if (topology)
        hwloc_topology_destroy(topology);
    ibv_free_device_list(list);
    return n;
}
