/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Version of the vendor's PMI library that this one stands for, as PMI_Get_version_info() tells it. The vendor
 * ships a file of this name; its contents are not known and no client uses them: the names are ours.
 */
#ifndef PMI_VERSION_H
#define PMI_VERSION_H

#define PMI_CRAY_VERSION_MAJOR    5
#define PMI_CRAY_VERSION_MINOR    0
#define PMI_CRAY_VERSION_REVISION 14

#endif
