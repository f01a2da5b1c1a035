/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes with memory that the program has mapped shared itself: rank 1 owns it, rank 0 reaches it; and what
 * emunic and /proc say about it.
 */
#ifndef TESTS_INTEGRATION_SHARED_H
#define TESTS_INTEGRATION_SHARED_H

#include <fcntl.h>
#include <jansson.h>

#include "emunic/base/maps.h"
#include "tests/conformance/pair.h"

#define PAGE  4096u
#define MIB   (1u << 20)
#define RW    (PROT_READ | PROT_WRITE)
#define OWNER 11u /* instance */

static bool is_cma;        /* EMUNIC_MEMORY=cma */
static bool is_direct;     /* members map each other's memory */
static bool is_privileged; /* files are found by the mapping alone */

/* ---- memory ---- */

static inline uint8_t *map_file(int fd, size_t bytes)
{
    uint8_t *mem = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        mem = mmap(NULL, bytes, RW, MAP_SHARED, fd, 0);
    return mem == MAP_FAILED ? NULL : mem;
}

static inline uint8_t *make_memfd(size_t bytes)
{
    return map_file(memfd_create("shared test", MFD_CLOEXEC), bytes);
}

static inline uint8_t *make_anonymous(size_t bytes)
{
    uint8_t *mem = mmap(NULL, bytes, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return mem == MAP_FAILED ? NULL : mem;
}

/* ---- what emunic says ---- */

/* Registrations by that method of the port with that instance, according to `emunic status`. */
static inline json_int_t count_by(struct fx *server, unsigned instance, const char *method)
{
    char *text = fx_report(server, EMU_MSG_STATUS);
    json_t *status = json_loads(text, 0, NULL);
    json_int_t n = -1;
    json_t *domain;
    json_t *port;
    size_t i, k;

    free(text);
    json_array_foreach(json_object_get(status, "domains"), i, domain) {
        json_array_foreach(json_object_get(domain, "ports"), k, port) {
            if (json_integer_value(json_object_get(port, "instance_id")) == instance)
                n = json_integer_value(
                    json_object_get(json_object_get(json_object_get(port, "memory"), method), "memory_domains"));
        }
    }
    json_decref(status);
    return n;
}

/* Mappings of a file in a process; writable_out: how many of them can be written. */
static inline unsigned count_mappings(pid_t pid, dev_t dev, ino_t ino, unsigned *writable_out)
{
    struct emu_maps maps;
    struct emu_piece p;
    unsigned n = 0;

    *writable_out = 0;
    if (ino == 0) /* private memory that stayed what it is */
        return 0;
    FX_CHECK(emu_maps_open(&maps, pid) == 0);
    for (uint64_t at = 0; emu_maps_find(&maps, at, &p); at = p.end) {
        if (p.dev != dev || p.ino != ino)
            continue;
        n++;
        *writable_out += p.is_writable;
    }
    emu_maps_close(&maps);
    return n;
}

/* ---- two processes: rank 1 owns, rank 0 reaches ---- */

struct target {
    uint64_t addr;
    uint64_t bytes;
    uint64_t dev;
    uint64_t ino;
    gni_mem_handle_t handle;
    gni_mem_handle_t other; /* one more registration */
    uint32_t nic_addr;
    _Atomic uint32_t is_missing;
    _Atomic uint32_t is_done;
    _Atomic uint64_t n_moved; /* transfers of rank 0 */
};

static inline struct target *target_of(struct fx_rank *rank)
{
    return rank->shared;
}

static inline gni_mem_handle_t enter(const struct gx_side *side, const void *mem, uint64_t bytes, uint32_t flags)
{
    gni_mem_handle_t handle;

    FX_CHECK(GNI_MemRegister(side->nic, ADDR(mem), bytes, side->dst_cq, flags, (uint32_t)-1, &handle) ==
             GNI_RC_SUCCESS);
    return handle;
}

static inline void announce(struct fx_rank *rank, const struct gx_side *side, const void *mem, uint64_t bytes)
{
    struct target *t = target_of(rank);
    struct emu_maps maps;
    struct emu_piece p;

    t->nic_addr = side->nic_addr;
    t->addr = ADDR(mem);
    t->bytes = bytes;
    FX_CHECK(emu_maps_open(&maps, 0) == 0 && emu_maps_find(&maps, t->addr, &p) && p.first <= t->addr);
    emu_maps_close(&maps);
    t->dev = p.dev;
    t->ino = p.ino;
}

static inline void open_owner(struct fx_rank *rank, struct gx_side *side)
{
    gx_open(side, rank->fx, rank->fx->nids[1], OWNER, 0);
    FX_CHECK(emu_session_open(&rank->fx->admin, rank->fx->server, EMU_SOCKET_ADMIN) == 0);
}

static inline void open_reacher(struct fx_rank *rank, struct gx_side *side)
{
    gx_open(side, rank->fx, rank->fx->nids[0], 10, 0);
    FX_CHECK(GNI_EpCreate(side->nic, side->src_cq, &side->ep) == GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier); /* the owner has registered */
    FX_CHECK(GNI_EpBind(side->ep, target_of(rank)->nic_addr, OWNER) == GNI_RC_SUCCESS);
}

/* Between `offset` of the target and `local`. The status of the event. */
static inline enum status move(struct fx_rank *rank, const struct gx_side *side, gni_post_type_t type, uint64_t offset,
                               const void *local, gni_mem_handle_t local_handle, uint64_t bytes)
{
    const struct target *t = target_of(rank);
    gni_post_descriptor_t d = { .type = type,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .local_addr = ADDR(local),
                                .local_mem_hndl = local_handle,
                                .remote_addr = t->addr + offset,
                                .remote_mem_hndl = t->handle,
                                .length = bytes,
                                .amo_cmd = GNI_FMA_ATOMIC_FADD,
                                .first_operand = 1 };
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry = 0;

    FX_CHECK(post_on(side->ep, &d) == GNI_RC_SUCCESS);
    FX_CHECK(gx_next(side->src_cq, &entry) != GNI_RC_NOT_DONE);
    GNI_GetCompleted(side->src_cq, entry, &done);
    FX_CHECK(done == &d);
    return (enum status)GNI_CQ_GET_STATUS(entry);
}

static inline int start_all(void **state)
{
    const char *memory = getenv("EMUNIC_MEMORY");
    const char *datapath = getenv("FX_DATAPATH");
    uint8_t *mem = make_anonymous(PAGE);
    char name[80];
    int fd;

    is_cma = memory && strcmp(memory, "cma") == 0;
    is_direct = !datapath || strcmp(datapath, "routed") != 0;
    snprintf(name, sizeof(name), "/proc/self/map_files/%lx-%lx", (unsigned long)mem, (unsigned long)mem + PAGE);
    fd = open(name, O_RDWR | O_CLOEXEC);
    is_privileged = fd >= 0;
    if (fd >= 0)
        close(fd);
    munmap(mem, PAGE);
    return start_emunic(state);
}

#endif
