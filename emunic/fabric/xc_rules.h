/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The published configuration rules of Cray XC systems (spec/machines.md 2.1, rules 1-8), as functions over numbers:
 * they answer for any configuration, built or not.
 */
#ifndef EMUNIC_FABRIC_XC_RULES_H
#define EMUNIC_FABRIC_XC_RULES_H

#include <stdint.h>

#define EMU_XC_CHASSIS_MAX     6  /* per group */
#define EMU_XC_BLADES_MAX      16 /* per chassis */
#define EMU_XC_CAGES           3  /* chassis per cabinet */
#define EMU_XC_CONNECTORS      5  /* optical connectors of a pair of blades */
#define EMU_XC_CONNECTORS_LONE 2  /* of a blade without a partner: its 10 links fill two connectors of 4 */

struct emu_xc_config {
    uint32_t groups;
    uint32_t chassis;           /* in every group but the last */
    uint32_t last_chassis;      /* in the last group */
    uint32_t blades;            /* per chassis */
    uint32_t cables_per_bundle; /* between each two groups */
};

/* Global cables that a chassis or a group can take. */
uint32_t emu_xc_connectors_per_chassis(uint32_t blades);
uint32_t emu_xc_connectors_per_group(uint32_t chassis, uint32_t blades);

uint32_t emu_xc_cabinets(const struct emu_xc_config *config);

/* The largest bundle that rules 1, 3 and 4 allow; if none does, the largest that fits. 0 for a single group. */
uint32_t emu_xc_bundle_max(const struct emu_xc_config *config);

/*
 * Calls note (may be NULL) once per broken rule with its number and one line of text; returns how many are broken.
 * Rule 7 (upgrades move no cable) is about two configurations: compare their cables, see dragonfly.h.
 */
int emu_xc_check(const struct emu_xc_config *config, void (*note)(void *ctx, uint32_t rule, const char *text),
                 void *ctx);

#endif
