/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of a machine's links for heat maps, and the program that draws them.
 */
#ifndef EMUNIC_CLI_HEAT_H
#define EMUNIC_CLI_HEAT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "emunic/fabric/machine.h"

/* x, y, z of each router, from its nodes: 3 numbers each. The caller frees. NULL: no memory. */
uint32_t *emu_heat_places(const struct emu_machine *m);

/* "link class from from_x ... number": the columns that all such files begin with, without newline. */
void emu_heat_print_head(FILE *out);
void emu_heat_print_link(FILE *out, const struct emu_machine *m, uint32_t link, const uint32_t *places);

/**
 * Draw all files of a folder, as SVG and PNG beside them.
 *
 * @param[in] verb    For messages.
 * @return EMU_EXIT_DONE, or EMU_EXIT_FAILED after a message.
 */
int emu_heat_draw(const char *verb, const char *folder);

/**
 * A links report of a server as a heat map in a folder, which is made if it is not there: links-SERVER.tsv and its
 * pictures.
 *
 * @return EMU_EXIT_DONE, or EMU_EXIT_FAILED after a message.
 */
int emu_heat_of_report(const json_t *report, const char *folder);

#endif
