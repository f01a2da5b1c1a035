/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings from the environment. A number has one row here; everything that reads, lists or checks it uses the row.
 */
#ifndef EMUNIC_BASE_SETTINGS_H
#define EMUNIC_BASE_SETTINGS_H

#include <stdint.h>

/*        field              variable                   default  min  max          unit       meaning */
#define EMU_SETTINGS(X)                                                                                                \
    X(cq_floor_entries, "EMUNIC_CQ_FLOOR", 512, 0, 65536, "entries",                                                   \
      "smallest capacity of a completion queue; 0 gives programs exactly what they ask for")                           \
    X(cq_literal_entries, "EMUNIC_CQ_LITERAL", 1, 0, 65536, "entries",                                                 \
      "a program that asks for a queue of no more entries means it: peers' events beyond them are lost, whatever "     \
      "EMUNIC_CQ_FLOOR says")                                                                                          \
    X(idle_yields, "EMUNIC_IDLE_YIELDS", 50, 0, 1000000, "yields", "empty rounds before emunic goes to sleep")         \
    X(linger_ns, "EMUNIC_LINGER", 1000, 0, 1000000, "ns",                                                              \
      "emunic looks so long for the next command before it gives its core away, where that has paid lately")           \
    X(slow_yield_ns, "EMUNIC_SLOW_YIELD", 5000, 0, 1000000000, "ns",                                                   \
      "a yield that takes longer than this tells that others work; emunic then sleeps at once")                        \
    X(slice_bytes, "EMUNIC_SLICE", 65536, 4096, 1073741824, "bytes",                                                   \
      "emunic moves larger transfers in slices of this size")                                                          \
    X(bulk_bytes, "EMUNIC_BULK", 65536, 16384, 4611686018427387904, "bytes",                                           \
      "between hosts, transfers from this size on are moved by the provider's remote memory access, whose data "       \
      "have no tags")                                                                                                  \
    X(direct_limit_bytes, "EMUNIC_DIRECT_LIMIT", 4194304, 0, 4294967296, "bytes",                                      \
      "larger transfers are moved by emunic while the program computes")                                               \
    X(adopt_limit_bytes, "EMUNIC_ADOPT_LIMIT", 67108864, 0, 1099511627776, "bytes",                                    \
      "larger registrations stay private memory, unless EMUNIC_MEMORY=adopt")                                          \
    X(rest_after_ns, "EMUNIC_REST_AFTER", 20000, 0, 1000000000, "ns",                                                  \
      "a process whose polls stay empty so long, where processes outnumber cores, makes room for others; "             \
      "0: it does not, and no empty poll waits")                                                                       \
    X(quiesce_ns, "EMUNIC_QUIESCE", 10000000, 0, 60000000000, "ns",                                                    \
      "traffic pauses so long when a part of the network breaks or is mended")                                         \
    X(watcher_ns, "EMUNIC_WATCHER", 60000000000, 0, 3600000000000, "ns",                                               \
      "the network watcher of a Gemini machine looks at the links so often")                                           \
    X(spin_polls, "EMUNIC_SPIN", 2000, 0, 1000000, "polls", "polls of a blocking call before it sleeps")

/* Text settings and what the launcher tells its ranks; listed so that a misspelt name can be noticed. */
#define EMU_TEXT_SETTINGS(X)                                                                                           \
    X("EMUNIC_LOG", "error, warn, info, debug or trace: what libraries and emunic say on stderr")                      \
    X("EMUNIC_SERVER", "name of the emunic to talk to")                                                                \
    X("EMUNIC_SERVER_UID", "user whose emunic is trusted, besides root and oneself")                                   \
    X("EMUNIC_MACHINES", "folder with machine files")                                                                  \
    X("EMUNIC_DEVICE", "aries or gemini: what uGNI programs take the NIC for, instead of what the machine has")        \
    X("EMUNIC_MEMORY", "how registered memory is reached: auto, adopt (always), cma (never moved nor shared)")         \
    X("EMUNIC_NID", "node of this rank (set by emunic run)")                                                           \
    X("EMUNIC_NIDS", "nodes of all ranks (set by emunic run)")                                                         \
    X("EMUNIC_COOKIE", "credential of the job (set by emunic run)")                                                    \
    X("EMUNIC_PTAG", "protection tag of the job (set by emunic run)")                                                  \
    X("EMUNIC_RANK", "rank in the job (set by emunic run)")                                                            \
    X("EMUNIC_CABINET_COLUMNS", "cabinets in one row of the machine (set by emunic run)")                              \
    X("EMUNIC_ASLR", "1: addresses of the ranks stay random (emunic run --aslr sets it)")                              \
    X("EMUNIC_NODE_VIEW", "what ranks find of their node: auto, library, files (emunic run --real-hostname), none")    \
    X("EMUNIC_CNAME", "physical name of this rank's node (set by emunic run)")                                         \
    X("EMUNIC_HOST", "name of the host that this rank runs on (set by emunic run)")                                    \
    X("EMUNIC_NODE_NAME", "host name of this rank's node, where the kernel does not know it (set by emunic run)")      \
    X("EMUNIC_RANK_HOSTS", "hosts of all ranks, if several (set by emunic run)")                                       \
    X("EMUNIC_PMI_PERMUTE", "seed for a permuted order of PMI_Allgather")

struct emu_settings {
#define EMU_SETTING_FIELD(field, variable, fallback, min, max, unit, meaning) uint64_t field;
    EMU_SETTINGS(EMU_SETTING_FIELD)
#undef EMU_SETTING_FIELD
};

/*
 * Reads all settings. A value that is no number or out of bounds draws a warning and the default is used; an unknown
 * EMUNIC_* variable draws a warning with the nearest name. Reads the environment: call it before threads start.
 */
void emu_settings_read(struct emu_settings *settings_out);

#endif
