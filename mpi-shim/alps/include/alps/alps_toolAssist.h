/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of an application, as tools and libraries ask for it. The functions of the original's tool helper are not
 * provided.
 * Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 3.3). The vendor structure has more members,
 * which nobody was seen to use.
 */
#ifndef ALPS_ALPS_TOOLASSIST_H
#define ALPS_ALPS_TOOLASSIST_H

#include <stdint.h>

/** An application, seen from one of its nodes. A PE is a process. */
typedef struct alpsAppLayout {
    uint64_t apid;
    int numPes;     /* in the application */
    int numCmds;    /* programs of an MPMD launch, else 1 */
    int numPesHere; /* on this node */
    int firstPe;    /* lowest on this node */
    int controlNid; /* node of PE 0 */
} alpsAppLayout_t;

#endif
