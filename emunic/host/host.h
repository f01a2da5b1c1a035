/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this host has for an emulated machine: cores, RDMA devices, providers of libfabric, and what the kernel permits.
 *
 * Everything here only looks: nothing is opened for longer than a call, nothing is changed. Each function fills plain
 * values; report.c makes JSON of them and draws the conclusions.
 *
 * Thread rule: libfabric and libibverbs read their environment and plug-ins; call from one thread.
 */
#ifndef EMUNIC_HOST_HOST_H
#define EMUNIC_HOST_HOST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_HOST_NAME_MAX 64
#define EMU_HOST_SET_MAX  256 /* text of a set of processors, "0-15,32" */

/* ---- cores.c: hwloc ---- */

struct emu_host_cache {
    unsigned level;
    unsigned n;
    uint64_t bytes;      /* of one */
    unsigned processors; /* that share one */
};

#define EMU_HOST_CACHES_MAX 8

struct emu_host_cores {
    unsigned packages;
    unsigned numa_nodes;
    unsigned cores;
    unsigned processors; /* hardware threads of the host */
    unsigned allowed;    /* of them, this process may use */
    uint64_t memory_bytes;
    char allowed_set[EMU_HOST_SET_MAX];
    unsigned n_caches;
    struct emu_host_cache caches[EMU_HOST_CACHES_MAX];
};

/* 0, or negative errno: hwloc does not understand this host. */
int emu_host_cores(struct emu_host_cores *cores_out);

/* ---- devices.c: libibverbs, and hwloc for the place ---- */

struct emu_host_rdma_port {
    unsigned number;
    char state[16];    /* "active", "init", "armed", "down", ... */
    char link[16];     /* "infiniband" or "ethernet" */
    double gbit_per_s; /* width times speed, before encoding; 0: unknown */
    unsigned mtu_bytes;
    unsigned lid;
    char gid[40]; /* the first, as an IPv6 address */
};

#define EMU_HOST_RDMA_PORTS_MAX 4
#define EMU_HOST_DEVICES_MAX    32

struct emu_host_device {
    char name[EMU_HOST_NAME_MAX];
    char firmware[EMU_HOST_NAME_MAX];
    bool is_open;                    /* it could be asked; else `error` says why not */
    int error;                       /* errno */
    int numa_node;                   /* -1: unknown */
    char near_set[EMU_HOST_SET_MAX]; /* processors near it; empty: unknown */
    unsigned n_ports;
    struct emu_host_rdma_port ports[EMU_HOST_RDMA_PORTS_MAX];
};

/* How many there are, at most EMU_HOST_DEVICES_MAX; negative errno: the list cannot be had. No driver: 0. */
int emu_host_devices(struct emu_host_device devices_out[EMU_HOST_DEVICES_MAX]);

/* ---- providers.c: libfabric ---- */

struct emu_host_provider {
    char name[EMU_HOST_NAME_MAX];   /* "verbs;ofi_rxm" */
    char domain[EMU_HOST_NAME_MAX]; /* device or interface */
    char fabric[EMU_HOST_NAME_MAX];
    double gbit_per_s; /* 0: it does not say */
    uint64_t max_message_bytes;
    unsigned rank; /* in our order of preference, 0 is best */
};

#define EMU_HOST_PROVIDERS_MAX 64

/*
 * Those that offer what emunic needs between hosts: reliable datagram endpoints with messages and remote memory access.
 * Best first. How many, or negative errno.
 */
int emu_host_providers(struct emu_host_provider providers_out[EMU_HOST_PROVIDERS_MAX]);

/* ---- placement.c ---- */

struct emu_host_placement {
    char processors[EMU_HOST_SET_MAX]; /* that emunic would run on */
    char why[EMU_HOST_SET_MAX];
    char near_set[EMU_HOST_SET_MAX]; /* near the device; empty: not known */
    bool is_near_elsewhere;          /* we may use none of those */
};

/* device: as libfabric calls it, "" for none. 0 or negative errno. */
int emu_host_placement(const char *device, struct emu_host_placement *placement_out);

/* ---- permissions.c ---- */

enum emu_host_state {
    EMU_HOST_GOOD = 0,
    EMU_HOST_SLOW,    /* works without it, slower or with less */
    EMU_HOST_MISSING, /* nothing works without it */
};

struct emu_host_check {
    const char *name;
    const char *purpose;
    const char *remedy; /* what to install or set if it is not good */
    enum emu_host_state state;
    char found[128];
};

#define EMU_HOST_CHECKS_MAX 16

/* How many. */
unsigned emu_host_permissions(struct emu_host_check checks_out[EMU_HOST_CHECKS_MAX]);

/* ---- report.c ---- */

/*
 * All of the above and what follows from it:
 * {"schema": 1, "cores": {...}, "devices": [...], "providers": [...], "permissions": [...],
 *  "chosen": {"provider", "domain", "device", "why"}, "placement": {"processors", "why", "near"}, "advice": [text...],
 *  "missing": number}.
 * `provider`: what the user wants (a name, or part of one), or NULL. NULL: out of memory.
 */
json_t *emu_host_report(const char *provider);

#endif
