/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: every EMUNIC_* variable has one row here. What reads the numbers, notices misspelt names, prints them
 * (`emunic settings`) and writes the table of the man page uses the rows.
 */
#ifndef EMUNIC_BASE_SETTINGS_H
#define EMUNIC_BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * NUM   field of struct emu_settings, variable, default, smallest, largest, unit, meaning
 * TEXT  variable, who sets it (USER or LAUNCHER), default ("": none), meaning
 */
#define EMU_SETTINGS(NUM, TEXT)                                                                                        \
    NUM(cq_floor_entries, "EMUNIC_CQ_FLOOR", 512, 0, 65536, "entries",                                                 \
        "smallest capacity of a completion queue; 0 gives programs exactly what they ask for")                         \
    NUM(cq_literal_entries, "EMUNIC_CQ_LITERAL", 1, 0, 65536, "entries",                                               \
        "a program that asks for a queue of no more entries means it: peers' events beyond them are lost, whatever "   \
        "EMUNIC_CQ_FLOOR says")                                                                                        \
    NUM(idle_yields, "EMUNIC_IDLE_YIELDS", 50, 0, 1000000, "yields", "empty rounds before emunic goes to sleep")       \
    NUM(linger_ns, "EMUNIC_LINGER", 1000, 0, 1000000, "ns",                                                            \
        "emunic looks so long for the next command before it gives its core away, where that has paid lately")         \
    NUM(slow_yield_ns, "EMUNIC_SLOW_YIELD", 5000, 0, 1000000000, "ns",                                                 \
        "a yield that takes longer than this tells that others work; emunic then sleeps at once")                      \
    NUM(slice_bytes, "EMUNIC_SLICE", 65536, 4096, 1073741824, "bytes",                                                 \
        "emunic moves larger transfers in slices of this size")                                                        \
    NUM(bulk_bytes, "EMUNIC_BULK", 65536, 16384, 4611686018427387904, "bytes",                                         \
        "between hosts, transfers from this size on are moved by the provider's remote memory access, whose data "     \
        "have no tags")                                                                                                \
    NUM(admission_ns, "EMUNIC_ADMISSION", 5000000000, 10000000, 60000000000, "ns",                                     \
        "between hosts over tcp, a connection has so long to prove that it has the key")                               \
    NUM(strangers, "EMUNIC_STRANGERS", 256, 1, 65536, "connections",                                                   \
        "connections without that proof that are kept; a later one pushes out the oldest")                             \
    NUM(strangers_per_address, "EMUNIC_STRANGERS_PER_ADDRESS", 64, 1, 65536, "connections",                            \
        "likewise, from one address")                                                                                  \
    NUM(strangers_per_second, "EMUNIC_STRANGERS_PER_SECOND", 256, 1, 1000000, "connections",                           \
        "connections without that proof that an address may begin in a second; the kernel drops the others")           \
    NUM(secure, "EMUNIC_SECURE", 0, 0, 1, "(off, on)",                                                                 \
        "1: what hosts send to each other is encrypted, as by --secure; the same on all hosts")                        \
    NUM(direct_limit_bytes, "EMUNIC_DIRECT_LIMIT", 4194304, 0, 4294967296, "bytes",                                    \
        "larger transfers are moved by emunic while the program computes")                                             \
    NUM(adopt_limit_bytes, "EMUNIC_ADOPT_LIMIT", 67108864, 0, 1099511627776, "bytes",                                  \
        "larger registrations stay private memory, unless EMUNIC_MEMORY=adopt")                                        \
    NUM(rest_after_ns, "EMUNIC_REST_AFTER", 20000, 0, 1000000000, "ns",                                                \
        "a process whose polls stay empty so long, where processes outnumber cores, makes room for others; "           \
        "0: it does not, and no empty poll waits")                                                                     \
    NUM(quiesce_ns, "EMUNIC_QUIESCE", 10000000, 0, 60000000000, "ns",                                                  \
        "traffic pauses so long when a part of the network breaks or is mended")                                       \
    NUM(sim_shared_events, "EMUNIC_SIM_SHARED", 1000, 0, 1000000000, "events",                                         \
        "in virtual time with --threads, the simulator's threads share a window of the network if the one before had " \
        "so many events; else one goes through it alone. Results are the same; 0: all are shared")                     \
    NUM(watcher_ns, "EMUNIC_WATCHER", 60000000000, 0, 3600000000000, "ns",                                             \
        "the network watcher of a Gemini machine looks at the links so often")                                         \
    NUM(command_page_bytes, "EMUNIC_COMMAND_PAGE", 0, 0, 1073741824, "bytes",                                          \
        "the host of a SeaStar gives its NIC a command for each such page of a message, as Linux with 4096; "          \
        "0: one for a message, as Catamount")                                                                          \
    NUM(hello_ns, "EMUNIC_HELLO", 60000000000, 1000000, 3600000000000, "ns",                                           \
        "a connection that has not greeted emunic by then is closed")                                                  \
    NUM(user_connections, "EMUNIC_USER_CONNECTIONS", 16384, 1, 1000000, "connections",                                 \
        "connections of one user to an emunic, and no more than a quarter of its descriptors")                         \
    NUM(user_ports, "EMUNIC_USER_PORTS", 16384, 1, 1000000, "ports", "attached NIC handles of one user")               \
    NUM(user_registrations, "EMUNIC_USER_REGISTRATIONS", 1048576, 1, 1000000000, "registrations",                      \
        "memory registrations of one user")                                                                            \
    NUM(user_pages, "EMUNIC_USER_PAGES", 0, 0, 1099511627776, "pages of 4096 bytes",                                   \
        "pages of one user in memory that emunic shares with it, before no more is registered and the process with "   \
        "the most loses its ports; 0: seven eighths of the host's memory")                                             \
    NUM(user_datagrams, "EMUNIC_USER_DATAGRAMS", 262144, 1, 1000000000, "datagrams",                                   \
        "datagrams of one user that are posted and not collected")                                                     \
    NUM(user_regions, "EMUNIC_USER_REGIONS", 16384, 1, 1000000, "regions",                                             \
        "regions of shared message queues of one user")                                                                \
    NUM(user_transfers, "EMUNIC_USER_TRANSFERS", 65536, 1, 1000000000, "transfers",                                    \
        "transfers of one user that emunic moves in slices; more wait in their command rings")                         \
    NUM(mover_limit_ns, "EMUNIC_MOVER_LIMIT", 1000000000, 10000000, 60000000000, "ns",                                 \
        "an emunic of root lets the kernel take so long to reach memory of another user; then the ports of that user " \
        "end")                                                                                                         \
    NUM(spin_polls, "EMUNIC_SPIN", 2000, 0, 1000000, "polls", "polls of a blocking call before it sleeps")             \
    TEXT("EMUNIC_LOG", USER, "warn",                                                                                   \
         "none, error, warn, info, debug or trace: what the command and the daemon say on stderr; "                    \
         "libraries say errors only, unless it is set")                                                                \
    TEXT("EMUNIC_SANDBOX", USER, "on",                                                                                 \
         "off: emunic keeps its capabilities and goes without seccomp and Landlock, for debugging")                    \
    TEXT("EMUNIC_SERVER", USER, "user-<uid>", "name of the emunic to talk to; emunic run sets it for its ranks")       \
    TEXT("EMUNIC_SERVER_UID", USER, "", "user whose emunic is trusted, besides root and oneself")                      \
    TEXT("EMUNIC_MACHINES", USER, "", "folder with machine files, instead of the installed one")                       \
    TEXT("EMUNIC_PROVIDER", USER, "",                                                                                  \
         "provider of libfabric that emunic doctor takes between hosts, or a part of its name, "                       \
         "instead of the best")                                                                                        \
    TEXT("EMUNIC_DEVICE", USER, "",                                                                                    \
         "aries or gemini: what uGNI programs take the NIC for, instead of what the machine has")                      \
    TEXT("EMUNIC_MEMORY", USER, "auto",                                                                                \
         "how registered memory is reached: auto, adopt (always), cma (never moved nor shared)")                       \
    TEXT("EMUNIC_ASLR", USER, "", "1: addresses of the ranks stay random; emunic run --aslr sets it")                  \
    TEXT("EMUNIC_HUGE_PAGES", USER, "", "1: malloc of the ranks asks for huge pages; emunic run --huge-pages sets it") \
    TEXT("EMUNIC_NODE_VIEW", USER, "auto",                                                                             \
         "what ranks find of their node: auto, library, files, none; emunic run --real-hostname "                      \
         "sets files")                                                                                                 \
    TEXT("EMUNIC_TIME", LAUNCHER, "", "virtual: the job is in virtual time")                                           \
    TEXT("EMUNIC_CLOCK", LAUNCHER, "", "real: the program's clocks are the host's in virtual time")                    \
    TEXT("EMUNIC_PMI_PERMUTE", USER, "", "seed for a permuted order of PMI_Allgather")                                 \
    TEXT("EMUNIC_CC", USER, "gcc", "C compiler behind cc")                                                             \
    TEXT("EMUNIC_CXX", USER, "g++", "C++ compiler behind CC")                                                          \
    TEXT("EMUNIC_FC", USER, "gfortran", "Fortran compiler behind ftn")                                                 \
    TEXT("EMUNIC_COOKIE", LAUNCHER, "", "credential of the job")                                                       \
    TEXT("EMUNIC_PTAG", LAUNCHER, "", "protection tag of the job")                                                     \
    TEXT("EMUNIC_RANK", LAUNCHER, "", "rank in the job")                                                               \
    TEXT("EMUNIC_NID", LAUNCHER, "", "node of this rank")                                                              \
    TEXT("EMUNIC_NIDS", LAUNCHER, "", "nodes of all ranks")                                                            \
    TEXT("EMUNIC_CNAME", LAUNCHER, "", "physical name of this rank's node")                                            \
    TEXT("EMUNIC_CABINET_COLUMNS", LAUNCHER, "", "cabinets in one row of the machine")                                 \
    TEXT("EMUNIC_HOST", LAUNCHER, "", "name of the host that this rank runs on")                                       \
    TEXT("EMUNIC_RANK_HOSTS", LAUNCHER, "", "hosts of all ranks, if several")                                          \
    TEXT("EMUNIC_NODE_NAME", LAUNCHER, "", "host name of this rank's node, where the kernel does not know it")         \
    TEXT("EMUNIC_PMI_SPAWNED", LAUNCHER, "", "this rank was started by a spawn call of PMI")                           \
    TEXT("EMUNIC_IPOGIF0_INSIDE", LAUNCHER, "", "emunic-ipogif0 runs inside its own network namespace")

#define EMU_SETTING_NO_NUMBER(field, variable, fallback, min, max, unit, meaning)
#define EMU_SETTING_NO_TEXT(variable, setter, fallback, meaning)

struct emu_settings {
#define EMU_SETTING_FIELD(field, variable, fallback, min, max, unit, meaning) uint64_t field;
    EMU_SETTINGS(EMU_SETTING_FIELD, EMU_SETTING_NO_TEXT)
#undef EMU_SETTING_FIELD
};

enum emu_setter {
    EMU_SETTER_USER,
    EMU_SETTER_LAUNCHER, /* a program of ours tells it to those that it starts */
};

/* One row of the table. */
struct emu_setting {
    const char *variable;
    bool is_number;
    enum emu_setter setter;
    uint64_t number; /* default, smallest and largest of a number */
    uint64_t min;
    uint64_t max;
    const char *unit; /* of a number */
    const char *text; /* default of a text; "": none */
    const char *meaning;
};

/* Row i of the table, or NULL behind the last. */
const struct emu_setting *emu_setting_at(size_t i);

/* The number that the environment gives. False: it is not set, or its value is refused; nothing is written then. */
bool emu_setting_number(const struct emu_setting *setting, uint64_t *number_out);

/* Is a text variable of the environment set to that? Searches the environment, each time. Any thread. */
bool emu_setting_is(const char *variable, const char *value);

/*
 * Reads all settings. A value that is no number or out of bounds draws a warning and the default is used; an unknown
 * EMUNIC_* variable draws a warning with the nearest name. EMUNIC_MEMORY=adopt lifts adopt_limit_bytes. Reads the
 * environment: call it before threads start.
 */
void emu_settings_read(struct emu_settings *settings_out);

#endif
