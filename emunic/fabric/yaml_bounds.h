/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds of a YAML file before it is loaded.
 */
#ifndef EMUNIC_FABRIC_YAML_BOUNDS_H
#define EMUNIC_FABRIC_YAML_BOUNDS_H

#include <stdio.h>
#include <yaml.h>

/*
 * NULL, or what is too much in the file, and where. A file that is no YAML is fine up to its error: loading it tells
 * more. The file is at its beginning afterwards.
 */
const char *emu_yaml_excess(FILE *file, yaml_mark_t *where_out);

#endif
