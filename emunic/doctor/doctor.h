/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this host has for an emulated machine: cores, RDMA devices, providers of libfabric, and what the kernel permits.
 *
 * Everything here only looks: nothing is opened for longer than a call, nothing is changed. Each function fills plain
 * values; diagnosis.c makes JSON of them and draws the conclusions.
 *
 * Thread rule: libfabric and libibverbs read their environment and plug-ins; call from one thread.
 */
#ifndef EMUNIC_DOCTOR_DOCTOR_H
#define EMUNIC_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_DOCTOR_NAME_MAX 64
#define EMU_DOCTOR_SET_MAX  256 /* text of a set of processors, "0-15,32" */

/* ---- cores.c: hwloc ---- */

struct emu_doctor_cache {
    unsigned level;
    unsigned n;
    uint64_t bytes;      /* of one */
    unsigned processors; /* that share one */
};

#define EMU_DOCTOR_CACHES_MAX 8

struct emu_doctor_cores {
    unsigned packages;
    unsigned numa_nodes;
    unsigned cores;
    unsigned processors; /* hardware threads of the host */
    unsigned allowed;    /* of them, this process may use */
    uint64_t memory_bytes;
    uint32_t yield_ns; /* of a sched_yield() that nobody wanted: how dear system calls and switches are here */
    char allowed_set[EMU_DOCTOR_SET_MAX];
    unsigned n_caches;
    struct emu_doctor_cache caches[EMU_DOCTOR_CACHES_MAX];
};

/* 0, or negative errno: hwloc does not understand this host. */
int emu_doctor_cores(struct emu_doctor_cores *cores_out);

/* ---- devices.c: libibverbs, and hwloc for the place ---- */

struct emu_doctor_rdma_port {
    unsigned number;
    char state[16];    /* "active", "init", "armed", "down", ... */
    char link[16];     /* "infiniband" or "ethernet" */
    double gbit_per_s; /* width times speed, before encoding; 0: unknown */
    unsigned mtu_bytes;
    unsigned lid;
    char gid[40]; /* the first, as an IPv6 address */
};

#define EMU_DOCTOR_RDMA_PORTS_MAX 4
#define EMU_DOCTOR_DEVICES_MAX    32

struct emu_doctor_device {
    char name[EMU_DOCTOR_NAME_MAX];
    char firmware[EMU_DOCTOR_NAME_MAX];
    bool is_open;                      /* it could be asked; else `error` says why not */
    int error;                         /* errno */
    int numa_node;                     /* -1: unknown */
    char near_set[EMU_DOCTOR_SET_MAX]; /* processors near it; empty: unknown */
    unsigned n_ports;
    struct emu_doctor_rdma_port ports[EMU_DOCTOR_RDMA_PORTS_MAX];
};

/* How many there are, at most EMU_DOCTOR_DEVICES_MAX; negative errno: the list cannot be had. No driver: 0. */
int emu_doctor_devices(struct emu_doctor_device devices_out[EMU_DOCTOR_DEVICES_MAX]);

/* ---- providers.c: libfabric ---- */

struct emu_doctor_provider {
    char name[EMU_DOCTOR_NAME_MAX];   /* "verbs;ofi_rxm" */
    char domain[EMU_DOCTOR_NAME_MAX]; /* device or interface */
    char fabric[EMU_DOCTOR_NAME_MAX];
    double gbit_per_s; /* 0: it does not say */
    uint64_t max_message_bytes;
    unsigned rank; /* in our order of preference, 0 is best */
};

#define EMU_DOCTOR_PROVIDERS_MAX 64

/*
 * Those that offer what emunic needs between hosts: reliable datagram endpoints with messages and remote memory access.
 * Best first. How many, or negative errno.
 */
int emu_doctor_providers(struct emu_doctor_provider providers_out[EMU_DOCTOR_PROVIDERS_MAX]);

/* ---- daemon_place.c ---- */

struct emu_doctor_placement {
    char processors[EMU_DOCTOR_SET_MAX]; /* that emunic would run on */
    char why[EMU_DOCTOR_SET_MAX];
    char near_set[EMU_DOCTOR_SET_MAX]; /* near the device; empty: not known */
    bool is_near_elsewhere;            /* we may use none of those */
};

/* device: as libfabric calls it, "" for none. 0 or negative errno. */
int emu_doctor_placement(const char *device, struct emu_doctor_placement *placement_out);

/* ---- permissions.c ---- */

enum emu_doctor_state {
    EMU_DOCTOR_GOOD = 0,
    EMU_DOCTOR_SLOW,    /* works without it, slower or with less */
    EMU_DOCTOR_MISSING, /* nothing works without it */
};

struct emu_doctor_check {
    const char *name;
    const char *purpose;
    const char *remedy; /* what to install or set if it is not good */
    enum emu_doctor_state state;
    char found[128];
};

#define EMU_DOCTOR_CHECKS_MAX 16

/* How many. */
unsigned emu_doctor_permissions(struct emu_doctor_check checks_out[EMU_DOCTOR_CHECKS_MAX]);

/* ---- diagnosis.c ---- */

/*
 * All of the above and what follows from it:
 * {"schema": 1, "cores": {...}, "devices": [...], "providers": [...], "permissions": [...],
 *  "chosen": {"provider", "domain", "device", "why"}, "placement": {"processors", "why", "near"}, "advice": [text...],
 *  "missing": number}.
 * `provider`: what the user wants (a name, or part of one), or NULL. NULL: out of memory.
 */
json_t *emu_doctor_report(const char *provider);

#endif
