/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accounts: what jobs hold of each node, against what they and the device may.
 */
#ifndef EMUNIC_DAEMON_WORLD_ACCOUNTS_H
#define EMUNIC_DAEMON_WORLD_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#define EMU_DEVICE_CQS (EMU_CQS_MAX * 4) /* of one node */

struct emu_domain;
struct emu_port_end;
struct emu_server;

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
/* May the job register as much as there is? */
bool emu_limits_are_open(const struct emu_limits *limits);
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

/* ---- figures ---- */

/* A figure of a domain on one of its nodes. */
typedef uint64_t emu_account_figure(const struct emu_domain *domain, uint32_t node);

/* Its sum over all domains on a node. */
uint64_t emu_account_sum(struct emu_server *server, uint32_t nid, emu_account_figure *figure);
uint64_t emu_account_mdds(const struct emu_domain *domain, uint32_t node);
/* Handles that are kept for blocks of virtual ones. */
uint64_t emu_account_promised(const struct emu_domain *domain, uint32_t node);
uint64_t emu_account_cqs(const struct emu_domain *domain, uint32_t node);
/* FMA descriptors. */
uint64_t emu_account_fma(const struct emu_domain *domain, uint32_t node);
uint64_t emu_account_blocks(const struct emu_domain *domain, uint32_t node);
/* Registered address space in MiB. */
uint64_t emu_account_mib(const struct emu_domain *domain, uint32_t node);
uint64_t emu_account_mrt(const struct emu_domain *domain, uint32_t node);
uint64_t emu_account_gart(const struct emu_domain *domain, uint32_t node);
uint64_t emu_account_shared_fma(const struct emu_domain *domain, uint32_t node);

#endif
