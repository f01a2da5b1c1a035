/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that programs have mapped shared themselves: each kind of it between two processes, how it is reached, what
 * happens when its file gets shorter under everybody's hands, and that nothing of it stays behind.
 *
 * With EMUNIC_MEMORY=cma nothing is passed on, and everything else must be the same.
 */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "emunic/base/maps.h"
#include "tests/common/proc.h"
#include "tests/conformance/pair.h"

#define PAGE  4096u
#define MIB   (1u << 20)
#define RW    (PROT_READ | PROT_WRITE)
#define OWNER 11u /* instance */

static bool is_cma;        /* EMUNIC_MEMORY=cma */
static bool is_direct;     /* members map each other's memory */
static bool is_privileged; /* files are found by the mapping alone */

/* ---- kinds of shared memory ---- */

static uint8_t *map_file(int fd, size_t bytes)
{
    uint8_t *mem = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        mem = mmap(NULL, bytes, RW, MAP_SHARED, fd, 0);
    return mem == MAP_FAILED ? NULL : mem;
}

static uint8_t *make_memfd(size_t bytes)
{
    return map_file(memfd_create("shared test", MFD_CLOEXEC), bytes);
}

static uint8_t *make_closed_memfd(size_t bytes)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, bytes);

    close(fd);
    return mem;
}

static uint8_t *make_shm(size_t bytes, bool is_closed)
{
    char name[64];
    uint8_t *mem;
    int fd;

    snprintf(name, sizeof(name), "/emunic-shared-%d", (int)getpid());
    fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    mem = map_file(fd, bytes);
    shm_unlink(name);
    if (is_closed)
        close(fd);
    return mem;
}

static uint8_t *make_unlinked_shm(size_t bytes)
{
    return make_shm(bytes, false);
}

static uint8_t *make_lost_shm(size_t bytes)
{
    return make_shm(bytes, true);
}

static uint8_t *make_anonymous(size_t bytes)
{
    uint8_t *mem = mmap(NULL, bytes, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return mem == MAP_FAILED ? NULL : mem;
}

static uint8_t *make_huge(size_t bytes)
{
    return map_file(memfd_create("shared test", MFD_CLOEXEC | MFD_HUGETLB), bytes);
}

struct kind {
    const char *name;
    uint8_t *(*make)(size_t bytes); /* NULL: not to be had here */
    bool needs_privilege;           /* to be passed on */
};

static const struct kind memfd = { "memfd", make_memfd, false };
static const struct kind closed_memfd = { "memfd without a descriptor", make_closed_memfd, true };
static const struct kind unlinked_shm = { "shm without a name", make_unlinked_shm, false };
static const struct kind lost_shm = { "shm without name and descriptor", make_lost_shm, true };
static const struct kind anonymous = { "anonymous", make_anonymous, true };
static const struct kind huge = { "huge pages", make_huge, false };

static const char *method_of(const struct kind *kind)
{
    return is_cma || (kind->needs_privilege && !is_privileged) ? "cma" : "shared_file";
}

/* ---- what emunic says ---- */

/* Registrations by that method of the port with that instance, according to `emunic status`. */
static json_int_t count_by(struct fx *server, unsigned instance, const char *method)
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
static unsigned count_mappings(pid_t pid, dev_t dev, ino_t ino, unsigned *writable_out)
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

static struct target *target_of(struct fx_rank *rank)
{
    return rank->shared;
}

static gni_mem_handle_t enter(const struct gx_side *side, const void *mem, uint64_t bytes, uint32_t flags)
{
    gni_mem_handle_t handle;

    FX_CHECK(GNI_MemRegister(side->nic, ADDR(mem), bytes, side->dst_cq, flags, (uint32_t)-1, &handle) ==
             GNI_RC_SUCCESS);
    return handle;
}

static void announce(struct fx_rank *rank, const struct gx_side *side, const void *mem, uint64_t bytes)
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

static void open_owner(struct fx_rank *rank, struct gx_side *side)
{
    gx_open(side, rank->fx, rank->fx->nids[1], OWNER, 0);
    FX_CHECK(emu_session_open(&rank->fx->admin, rank->fx->server, EMU_SOCKET_ADMIN) == 0);
}

static void open_reacher(struct fx_rank *rank, struct gx_side *side)
{
    gx_open(side, rank->fx, rank->fx->nids[0], 10, 0);
    FX_CHECK(GNI_EpCreate(side->nic, side->src_cq, &side->ep) == GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier); /* the owner has registered */
    FX_CHECK(GNI_EpBind(side->ep, target_of(rank)->nic_addr, OWNER) == GNI_RC_SUCCESS);
}

/* Between `offset` of the target and `local`. The status of the event. */
static enum status move(struct fx_rank *rank, const struct gx_side *side, gni_post_type_t type, uint64_t offset,
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

#define KIND_BYTES (8u * MIB)

static void own_for_transfers(struct fx_rank *rank, const struct kind *kind)
{
    struct target *t = target_of(rank);
    struct gx_side side;
    uint8_t *mem = kind->make(KIND_BYTES);
    uint64_t word;

    open_owner(rank, &side);
    atomic_store(&t->is_missing, mem == NULL);
    if (mem) {
        /* Somewhere in the file, and not at the beginning of a page. */
        t->handle = enter(&side, mem + 7 * PAGE + 100, KIND_BYTES - 20 * PAGE, GNI_MEM_READWRITE);
        announce(rank, &side, mem + 7 * PAGE + 100, KIND_BYTES - 20 * PAGE);
        FX_CHECK(count_by(rank->fx, OWNER, method_of(kind)) >= 1);
        FX_CHECK(count_by(rank->fx, OWNER, "shared_file") == (strcmp(method_of(kind), "shared_file") == 0));
    }
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier); /* rank 0 is done */
    if (mem) {
        memcpy(&word, mem + 9 * PAGE, 8);
        FX_CHECK(word == 1000 + 5);
        FX_CHECK(GNI_MemDeregister(side.nic, &t->handle) == GNI_RC_SUCCESS);
        FX_CHECK(count_by(rank->fx, OWNER, "shared_file") == 0);
    }
    gx_close(&side);
}

static void transfer_all(struct fx_rank *rank, const struct gx_side *side)
{
    static const uint64_t lengths[] = { 1, 8, 9, 64, 1000, 4096, 70000, MIB, 6 * MIB };
    uint8_t *out = pages(8 * MIB);
    uint8_t *in = pages(8 * MIB);
    gni_mem_handle_t out_handle = enter(side, out, 8 * MIB, GNI_MEM_READWRITE);
    gni_mem_handle_t in_handle = enter(side, in, 8 * MIB, GNI_MEM_READWRITE);
    const uint64_t to_word = 9 * PAGE - (7 * PAGE + 100);
    uint64_t *words = (uint64_t *)(void *)in;

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        bool is_block = lengths[i] >= 70000;
        uint64_t offset = i * 12345;

        fill(out, lengths[i], (uint32_t)i);
        FX_CHECK(move(rank, side, is_block ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, offset, out, out_handle,
                      lengths[i]) == STATUS_OK);
        memset(in, 0, lengths[i] + 4);
        /* Gets are aligned to four bytes. */
        FX_CHECK(move(rank, side, is_block ? GNI_POST_RDMA_GET : GNI_POST_FMA_GET, offset & ~3ull, in, in_handle,
                      (lengths[i] + offset % 4 + 3) & ~3ull) == STATUS_OK);
        FX_CHECK(memcmp(in + offset % 4, out, lengths[i]) == 0);
    }
    words[0] = 1000;
    FX_CHECK(move(rank, side, GNI_POST_FMA_PUT, to_word, words, in_handle, 8) == STATUS_OK);
    for (uint64_t n = 0; n < 5; n++) {
        FX_CHECK(move(rank, side, GNI_POST_AMO, to_word, words, in_handle, 8) == STATUS_OK);
        FX_CHECK(words[0] == 1000 + n);
    }
    FX_CHECK(GNI_MemDeregister(side->nic, &out_handle) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_MemDeregister(side->nic, &in_handle) == GNI_RC_SUCCESS);
}

static int transfer_body(struct fx_rank *rank)
{
    const struct kind *kind = rank->arg;
    const struct target *t = target_of(rank);
    struct gx_side side;
    unsigned writable;

    if (rank->rank == 1) {
        own_for_transfers(rank, kind);
        return 0;
    }
    open_reacher(rank, &side);
    if (t->is_missing) {
        printf("# SKIP %s: not to be had here\n", kind->name);
        fflush(stdout);
    } else {
        transfer_all(rank, &side);
        /* Without system calls: the file is mapped here. */
        FX_CHECK((count_mappings(0, (dev_t)t->dev, (ino_t)t->ino, &writable) > 0) ==
                 (is_direct && strcmp(method_of(kind), "shared_file") == 0));
    }
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void expect_transfers(const struct kind *kind)
{
    assert_int_equal(fx_run(&fx, 2, transfer_body, (void *)(uintptr_t)kind), 0);
}

static void test_memfd_is_reached(void **state)
{
    (void)state;
    expect_transfers(&memfd);
}

static void test_memfd_without_descriptor_is_reached(void **state)
{
    (void)state;
    expect_transfers(&closed_memfd);
}

static void test_unlinked_shared_memory_is_reached(void **state)
{
    (void)state;
    expect_transfers(&unlinked_shm);
}

static void test_shared_memory_without_name_and_descriptor_is_reached(void **state)
{
    (void)state;
    expect_transfers(&lost_shm);
}

static void test_anonymous_shared_memory_is_reached(void **state)
{
    (void)state;
    expect_transfers(&anonymous);
}

static void test_huge_pages_are_reached(void **state)
{
    (void)state;
    expect_transfers(&huge);
}

/* ---- read-only registrations ---- */

static void own_read_only(struct fx_rank *rank, bool is_shared)
{
    struct target *t = target_of(rank);
    uint8_t *mem = is_shared ? make_memfd(16 * PAGE) : pages(16 * PAGE);
    struct gx_side side;

    open_owner(rank, &side);
    fill(mem, 16 * PAGE, 3);
    t->handle = enter(&side, mem, 16 * PAGE, GNI_MEM_READ_ONLY);
    t->other = enter(&side, mem + 4 * PAGE, PAGE, GNI_MEM_READWRITE);
    announce(rank, &side, mem, 16 * PAGE);
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(mem[4 * PAGE] == 0x5a);
    mem[4 * PAGE] = mem[4 * PAGE + 1];
    gx_close(&side);
}

static int read_only_body(struct fx_rank *rank)
{
    struct target *t = target_of(rank);
    bool is_shared = rank->arg != NULL;
    uint8_t expected[PAGE];
    struct gx_side side;
    unsigned writable;

    if (rank->rank == 1) {
        own_read_only(rank, is_shared);
        return 0;
    }
    open_reacher(rank, &side);
    fill(expected, PAGE, 3);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_PUT, 0, side.mem, side.mem_hndl, 64) == STATUS_REMOTE_PERMISSION);
    FX_CHECK(move(rank, &side, GNI_POST_RDMA_PUT, PAGE, side.mem, side.mem_hndl, 64) == STATUS_REMOTE_PERMISSION);
    FX_CHECK(move(rank, &side, GNI_POST_AMO, 0, side.mem, side.mem_hndl, 8) == STATUS_REMOTE_PERMISSION);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_GET, 0, side.mem, side.mem_hndl, PAGE) == STATUS_OK);
    FX_CHECK(memcmp(side.mem, expected, PAGE) == 0);
    FX_CHECK((count_mappings(0, (dev_t)t->dev, (ino_t)t->ino, &writable) > 0) == (is_direct && !is_cma));
    FX_CHECK(writable == 0);
    /* The other registration of it can be written, and this one still not. */
    memset(side.mem, 0x5a, 8);
    t->handle = t->other;
    FX_CHECK(move(rank, &side, GNI_POST_FMA_PUT, 4 * PAGE, side.mem, side.mem_hndl, 1) == STATUS_OK);
    count_mappings(0, (dev_t)t->dev, (ino_t)t->ino, &writable);
    FX_CHECK((writable > 0) == (is_direct && !is_cma));
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void test_read_only_shared_memory_is_mapped_for_reading(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, read_only_body, (void *)1), 0);
}

static void test_read_only_private_memory_is_mapped_for_reading(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, read_only_body, NULL), 0);
}

/* A mapping that the program itself cannot write, from a descriptor that cannot either. */
static void test_mapping_that_is_only_readable_is_reached(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *writable = map_file(fd, PAGE);
    uint8_t *mem = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    gni_mem_handle_t handle = register_on(&b, mem, PAGE, GNI_MEM_READ_ONLY);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_GET, 0);

    (void)state;
    assert_int_equal(count_by(&fx, OWNER, "shared_file"), !is_cma);
    memcpy(writable, "readable", 8);
    d.remote_addr = ADDR(mem);
    d.remote_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(a.mem, "readable", 8);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, PAGE);
    munmap(writable, PAGE);
    close(fd);
}

/* ---- files that get shorter ---- */

#define STORM_BYTES  (6u * MIB)
#define STORM_EVENTS 40u

static int storm_fd;

/* Until rank 0 has made so many more transfers; 0: in the middle of one. */
static void let_move(struct target *t, unsigned n, uint64_t end_ns)
{
    uint64_t begin = atomic_load(&t->n_moved);

    do {
        sched_yield();
    } while (atomic_load(&t->n_moved) - begin < n && !atomic_load(&t->is_done) && emu_clock_ns() < end_ns);
}

static void own_storm(struct fx_rank *rank)
{
    struct target *t = target_of(rank);
    uint64_t end_ns = emu_clock_ns() + 4 * PATIENCE_NS;
    struct gx_side side;
    uint8_t *mem;

    storm_fd = memfd_create("storm", MFD_CLOEXEC);
    mem = map_file(storm_fd, STORM_BYTES);
    open_owner(rank, &side);
    t->handle = enter(&side, mem, STORM_BYTES, GNI_MEM_READWRITE);
    announce(rank, &side, mem, STORM_BYTES);
    pthread_barrier_wait(rank->barrier);
    for (unsigned n = 0; !atomic_load(&t->is_done) && emu_clock_ns() < end_ns; n++) {
        FX_CHECK(ftruncate(storm_fd, n % 3 * PAGE) == 0);
        let_move(t, n % 4, end_ns);
        FX_CHECK(ftruncate(storm_fd, STORM_BYTES) == 0);
        let_move(t, n % 8, end_ns);
    }
    FX_CHECK(atomic_load(&t->is_done));
    FX_CHECK(ftruncate(storm_fd, STORM_BYTES) == 0);
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
}

/* Until each kind of transfer has succeeded and failed often enough. */
static void brave_storm(struct fx_rank *rank, const struct gx_side *side)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_AMO, GNI_POST_RDMA_PUT,
                                             GNI_POST_RDMA_GET };
    static const uint64_t lengths[] = { 8, 5000, 8, 5 * MIB, 300000 };
    unsigned good[COUNT_OF(types)] = { 0 };
    unsigned bad[COUNT_OF(types)] = { 0 };
    uint8_t *mem = pages(STORM_BYTES);
    gni_mem_handle_t handle = enter(side, mem, STORM_BYTES, GNI_MEM_READWRITE);
    uint64_t end_ns = emu_clock_ns() + 3 * PATIENCE_NS;
    bool is_enough = false;

    for (uint64_t n = 0; !is_enough && emu_clock_ns() < end_ns; n++) {
        size_t k = n % COUNT_OF(types);
        enum status status = move(rank, side, types[k], (n * 72 + 3 * PAGE) % (STORM_BYTES - lengths[k]) & ~7ull, mem,
                                  handle, lengths[k]);

        /* The kernel does not tell whose page was missing, and when the engine looks it may be there again. */
        FX_CHECK(status == STATUS_OK || status == STATUS_REMOTE_RANGE || (is_cma && status == STATUS_LOCAL_ACCESS));
        atomic_fetch_add(&target_of(rank)->n_moved, 1);
        good[k] += status == STATUS_OK;
        bad[k] += status != STATUS_OK;
        is_enough = true;
        for (size_t i = 0; i < COUNT_OF(types); i++)
            is_enough &= good[i] >= (i < 3 ? STORM_EVENTS : 3) && bad[i] >= (i < 3 ? STORM_EVENTS : 3);
    }
    if (!is_enough) {
        for (size_t i = 0; i < COUNT_OF(types); i++)
            fprintf(stderr, "type %zu: %u good, %u bad\n", i, good[i], bad[i]);
    }
    FX_CHECK(is_enough);
    FX_CHECK(GNI_MemDeregister(side->nic, &handle) == GNI_RC_SUCCESS);
}

static int storm_body(struct fx_rank *rank)
{
    struct gx_side side;

    if (rank->rank == 1) {
        own_storm(rank);
        return 0;
    }
    open_reacher(rank, &side);
    brave_storm(rank, &side);
    atomic_store(&target_of(rank)->is_done, 1);
    pthread_barrier_wait(rank->barrier);
    /* The file is whole again: so is everything else. */
    memcpy(side.mem, "the calm", 8);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_PUT, STORM_BYTES - 8, side.mem, side.mem_hndl, 8) == STATUS_OK);
    memset(side.mem, 0, 8);
    FX_CHECK(move(rank, &side, GNI_POST_FMA_GET, STORM_BYTES - 8, side.mem, side.mem_hndl, 8) == STATUS_OK);
    FX_CHECK(memcmp(side.mem, "the calm", 8) == 0);
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void test_file_that_gets_shorter_gives_error_events_and_harms_nobody(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, storm_body, NULL), 0);
}

static void test_rest_of_a_short_file_is_reached(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_GET,
                                             GNI_POST_AMO };
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, 8 * PAGE, GNI_MEM_READWRITE);

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    for (unsigned n = 0; n < 20; n++) {
        gni_post_descriptor_t d = word_post(types[n % COUNT_OF(types)], 0);

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem) + 2 * PAGE;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
        d.remote_addr = ADDR(mem) + n * 8;
        assert_int_equal(run(&d), STATUS_OK);
        /* Half of it is there: not good enough. */
        d.type = types[n % 4];
        d.remote_addr = ADDR(mem) + PAGE - 8;
        d.length = 16;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    }
    /* Failed writes are nowhere to be seen when the file is long again. */
    assert_int_equal(ftruncate(fd, 8 * PAGE), 0);
    assert_true(all_bytes_are(mem + PAGE, 0, 7 * PAGE));
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

static void test_remote_events_tell_of_data_that_are_there_and_of_no_others(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_AMO };
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_mem_handle_t handle;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 8 * PAGE, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    for (unsigned n = 0; n < 40; n++) {
        gni_post_descriptor_t d = word_post(types[n % COUNT_OF(types)], 0);
        bool is_short = n / 4 % 2;

        assert_int_equal(ftruncate(fd, is_short ? PAGE : 8 * PAGE), 0);
        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        d.amo_cmd = GNI_FMA_ATOMIC_ADD;
        d.first_operand = 1;
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem) + 3 * PAGE;
        assert_int_equal(run(&d), is_short ? STATUS_REMOTE_RANGE : STATUS_OK);
        assert_int_equal(poll_once(b.dst_cq), is_short ? GNI_RC_NOT_DONE : GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_NOT_DONE);
    }
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

/* An atomic that is tried twice counts once. */
static void test_atomics_beside_missing_pages_count_once(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 2 * PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, 2 * PAGE, GNI_MEM_READWRITE);
    uint64_t sum;

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    for (unsigned n = 0; n < 100; n++) {
        gni_post_descriptor_t d = word_post(GNI_POST_AMO, 0);

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 1;
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem) + (n % 2 ? PAGE : 0) + 8;
        assert_int_equal(run(&d), n % 2 ? STATUS_REMOTE_RANGE : STATUS_OK);
    }
    memcpy(&sum, mem + 8, 8);
    assert_int_equal(sum, 50);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 2 * PAGE);
    close(fd);
}

/* A message is a put with a flag, which must not be seen if the data before it got lost. */
static void test_flag_is_not_set_when_data_are_lost(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, 8 * PAGE, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT_W_SYNCFLAG, 0);

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    d.remote_mem_hndl = handle;
    d.remote_addr = ADDR(mem) + 4 * PAGE;
    d.sync_flag_addr = ADDR(mem) + 64;
    d.sync_flag_value = 0x1234;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_true(all_bytes_are(mem, 0, PAGE));
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

/* ---- what stays behind ---- */

static bool has_no_fds_more(void *arg)
{
    return fx_count_fds(&fx) == *(const int *)arg;
}

static void test_file_is_let_go_when_its_last_registration_ends(void **state)
{
    int before = fx_count_fds(&fx);
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 32 * PAGE);
    gni_mem_handle_t first = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);
    gni_mem_handle_t second = register_on(&b, mem + 5 * PAGE, PAGE, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    unsigned writable;
    struct stat st;

    (void)state;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(fx_count_fds(&fx), before + !is_cma);
    d.remote_mem_hndl = second;
    d.remote_addr = ADDR(mem) + 5 * PAGE;
    assert_int_equal(run(&d), STATUS_OK);
    fx_set_routed(&fx, true); /* emunic maps it, too */
    assert_int_equal(run(&d), STATUS_OK);
    fx_set_routed(&fx, false);
    assert_int_equal(count_mappings(fx.daemon, st.st_dev, st.st_ino, &writable), !is_cma);
    assert_int_equal(GNI_MemDeregister(b.nic, &first), GNI_RC_SUCCESS);
    assert_int_equal(fx_count_fds(&fx), before + !is_cma);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_MemDeregister(b.nic, &second), GNI_RC_SUCCESS);
    assert_int_equal(fx_count_fds(&fx), before);
    assert_int_equal(count_mappings(fx.daemon, st.st_dev, st.st_ino, &writable), 0);
    munmap(mem, 32 * PAGE);
    /* Peers notice at their next post. */
    assert_int_equal(run(&d), STATUS_BAD_HANDLE);
    assert_int_equal(count_mappings(0, st.st_dev, st.st_ino, &writable), 0);
    close(fd);
}

static int own_and_die(struct fx_rank *rank)
{
    uint8_t *mem = make_memfd(16 * PAGE);
    struct gx_side side;

    gx_open(&side, rank->fx, rank->fx->nids[1], OWNER + 1, 0);
    for (unsigned i = 0; i < 10; i++)
        enter(&side, mem + i * PAGE, PAGE, i % 2 ? GNI_MEM_READWRITE : GNI_MEM_READ_ONLY);
    kill(getpid(), SIGKILL);
    return 0;
}

static void test_files_of_a_killed_process_are_let_go(void **state)
{
    int before = fx_count_fds(&fx);

    (void)state;
    assert_int_equal(fx_run(&fx, 1, own_and_die, NULL), 1);
    assert_true(eventually(has_no_fds_more, &before, PATIENCE_NS));
}

static void test_number_of_files_is_limited_and_the_rest_is_reached_too(void **state)
{
    static gni_mem_handle_t handles[100];
    static uint8_t *mems[100];
    static int fds[100];
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    int before = fx_count_fds(&fx);

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        fds[i] = memfd_create("shared test", MFD_CLOEXEC);
        mems[i] = map_file(fds[i], PAGE);
        handles[i] = register_on(&b, mems[i], PAGE, GNI_MEM_READWRITE);
    }
    assert_in_range(count_by(&fx, OWNER, "shared_file"), is_cma ? 0 : 16, is_cma ? 0 : 99);
    assert_in_range(count_by(&fx, OWNER, "cma"), 1, 101);
    for (unsigned i = 0; i < 100; i++) {
        d.remote_mem_hndl = handles[i];
        d.remote_addr = ADDR(mems[i]) + 8;
        memcpy(a.mem, "everyone", 8);
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(mems[i] + 8, "everyone", 8);
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(GNI_MemDeregister(b.nic, &handles[i]), GNI_RC_SUCCESS);
        munmap(mems[i], PAGE);
        close(fds[i]);
    }
    assert_int_equal(fx_count_fds(&fx), before);
}

/* ---- what the program does with its memory ---- */

static void test_mappings_that_continue_each_other_are_one(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mem = map_file(fd, 8 * PAGE);
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 6 * PAGE, GNI_CQMODE_GLOBAL_EVENT);
    gni_mem_handle_t handle;

    (void)state;
    d.type = GNI_POST_RDMA_PUT;
    assert_int_equal(mprotect(mem + 3 * PAGE, PAGE, RW | PROT_EXEC), 0);
    handle = register_on(&b, mem + PAGE, 6 * PAGE, GNI_MEM_READWRITE);
    assert_int_equal(count_by(&fx, OWNER, "shared_file"), !is_cma);
    fill(a.mem, 6 * PAGE, 9);
    d.remote_mem_hndl = handle;
    d.remote_addr = ADDR(mem) + PAGE;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + PAGE, a.mem, 6 * PAGE);
    GNI_MemDeregister(b.nic, &handle);

    /* Not in the order of the file: the kernel has to help. */
    assert_ptr_equal(mmap(mem + 3 * PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0), mem + 3 * PAGE);
    handle = register_on(&b, mem + PAGE, 6 * PAGE, GNI_MEM_READWRITE);
    assert_int_equal(count_by(&fx, OWNER, "shared_file"), 0);
    d.remote_mem_hndl = handle;
    fill(a.mem, 6 * PAGE, 10);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + PAGE, a.mem, 6 * PAGE);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
    close(fd);
}

static void test_sealed_files_are_reached(void **state)
{
    static const int seals[] = { F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_FUTURE_WRITE };

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(seals); i++) {
        int fd = memfd_create("shared test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        uint8_t *mem = map_file(fd, PAGE);
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        gni_mem_handle_t handle;

        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
        handle = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);
        assert_int_equal(count_by(&fx, OWNER, "shared_file"), !is_cma && i == 0);
        memcpy(a.mem, "unsealed", 8);
        d.remote_mem_hndl = handle;
        d.remote_addr = ADDR(mem);
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(mem, "unsealed", 8);
        GNI_MemDeregister(b.nic, &handle);
        munmap(mem, PAGE);
        close(fd);
    }
}

static void test_child_shares_the_memory_as_ever(void **state)
{
    uint8_t *mem = make_memfd(PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)mem;
    uint64_t value = 77;
    int status = -1;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

        while (atomic_load(word) != 77 && emu_clock_ns() < end_ns)
            sched_yield();
        atomic_store(&word[1], 78);
        _exit(atomic_load(word) == 77 ? 0 : 1);
    }
    d.remote_mem_hndl = handle;
    d.remote_addr = ADDR(mem);
    memcpy(a.mem, &value, 8);
    assert_int_equal(run(&d), STATUS_OK);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&word[1]), 78);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, PAGE);
}

/* Atomics of two owners of one file, each through his own registration, count together. */
static void test_two_registrations_of_one_file_are_the_same_memory(void **state)
{
    int fd = memfd_create("shared test", MFD_CLOEXEC);
    uint8_t *mine = map_file(fd, PAGE);
    uint8_t *again = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    gni_mem_handle_t handles[2] = { register_on(&b, mine, PAGE, GNI_MEM_READWRITE),
                                    register_on(&b, again, PAGE, GNI_MEM_READWRITE) };
    uint64_t sum;

    (void)state;
    for (unsigned n = 0; n < 10; n++) {
        gni_post_descriptor_t d = word_post(GNI_POST_AMO, 0);

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 3;
        d.remote_mem_hndl = handles[n % 2];
        d.remote_addr = ADDR(n % 2 ? again : mine) + 16;
        assert_int_equal(run(&d), STATUS_OK);
    }
    memcpy(&sum, mine + 16, 8);
    assert_int_equal(sum, 30);
    for (unsigned i = 0; i < 2; i++)
        GNI_MemDeregister(b.nic, &handles[i]);
    munmap(mine, PAGE);
    munmap(again, PAGE);
    close(fd);
}

static int start_all(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memfd_is_reached),
        cmocka_unit_test(test_memfd_without_descriptor_is_reached),
        cmocka_unit_test(test_unlinked_shared_memory_is_reached),
        cmocka_unit_test(test_shared_memory_without_name_and_descriptor_is_reached),
        cmocka_unit_test(test_anonymous_shared_memory_is_reached),
        cmocka_unit_test(test_huge_pages_are_reached),
        cmocka_unit_test(test_read_only_shared_memory_is_mapped_for_reading),
        cmocka_unit_test(test_read_only_private_memory_is_mapped_for_reading),
        pair_test(test_mapping_that_is_only_readable_is_reached),
        cmocka_unit_test(test_file_that_gets_shorter_gives_error_events_and_harms_nobody),
        pair_test(test_rest_of_a_short_file_is_reached),
        pair_test(test_remote_events_tell_of_data_that_are_there_and_of_no_others),
        pair_test(test_atomics_beside_missing_pages_count_once),
        pair_test(test_flag_is_not_set_when_data_are_lost),
        pair_test(test_file_is_let_go_when_its_last_registration_ends),
        cmocka_unit_test(test_files_of_a_killed_process_are_let_go),
        pair_test(test_number_of_files_is_limited_and_the_rest_is_reached_too),
        pair_test(test_mappings_that_continue_each_other_are_one),
        pair_test(test_sealed_files_are_reached),
        pair_test(test_child_shares_the_memory_as_ever),
        pair_test(test_two_registrations_of_one_file_are_the_same_memory),
    };

    return cmocka_run_group_tests(tests, start_all, stop_emunic);
}
