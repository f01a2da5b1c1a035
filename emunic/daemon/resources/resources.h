/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accounts: what jobs hold of each node, against what they and the device may.
 */
#ifndef EMUNIC_DAEMON_RESOURCES_RESOURCES_H
#define EMUNIC_DAEMON_RESOURCES_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

struct emu_connection;
struct emu_msg_ptag;
struct emu_msg_resources;
struct emu_port_end;

/* What a job may use on one node; UINT32_MAX: as much as there is. */
struct emu_limits {
    uint32_t mdd;
    uint32_t cq;
    uint32_t fma;
    uint32_t bte; /* outstanding block transfers; UINT32_MAX: no limit */
    uint32_t ce;
    uint64_t iommu_bytes; /* registered address space */
    uint32_t mrt;         /* translation entries of a Gemini */
    uint32_t gart;
};

/* What a registration takes of a NIC's translation. */
struct emu_translation {
    uint64_t iommu_bytes; /* address space */
    uint64_t mrt;         /* of a Gemini: blocks, or */
    uint64_t gart;        /* pages */
};

/* What a domain uses on one of its nodes. Memory domain handles are in n_handles. */
struct emu_account {
    uint32_t n_ports;
    uint32_t n_shared_fma; /* of those; together they hold one descriptor */
    uint32_t n_cqs;
    uint32_t n_blocks;  /* block transfers that emunic is moving */
    uint32_t vmdh_size; /* handles promised to the block of virtual ones */
    uint32_t vmdh_used;
    struct emu_translation translation;
};

void emu_limits_init(struct emu_limits *limits);
/* 0 or -ENOSPC, as the next ones. */
int emu_account_add_port(struct emu_port_end *port);
void emu_account_drop_port(struct emu_port_end *port);
int emu_account_may_add_cq(const struct emu_port_end *port);
/* One more memory domain handle, not of the block of virtual ones. */
bool emu_account_may_add_mdd(const struct emu_port_end *port);
/* 0 or -ENOSPC. */
int emu_account_may_add_translation(const struct emu_port_end *port, const struct emu_translation *more);
void emu_account_add_translation(struct emu_port_end *port, const struct emu_translation *more);
void emu_account_drop_translation(struct emu_port_end *port, const struct emu_translation *less);
bool emu_account_may_start_block(const struct emu_port_end *port);
/* A block transfer of the port begins (+1) or ends (-1) to be moved in slices. */
void emu_account_add_block(struct emu_port_end *port, int change);
int emu_resources_answer(struct emu_connection *connection, struct emu_msg_resources *res);
int emu_resources_ptag(struct emu_connection *connection, struct emu_msg_ptag *ptag);
/* Where a process is: node of its rank, the one it names, or the first of a domain it may use. */
uint32_t emu_place_of(struct emu_connection *connection, uint32_t nid_wanted);

#endif
