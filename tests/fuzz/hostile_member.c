/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile member knows the ABI. Pure noise dies at the first check (a broken ring ends the port, a wrong magic ends
 * the connection), so most of what it does is nearly right: a sound ring with mutated commands in it, requests with one
 * field off, real handles with wrong addresses, memory that is there and then is not, queues whose counters lie. Noise
 * over the whole mapping comes on top, and after it, or when emunic throws it out, it attaches again.
 *
 * All addresses that it offers to emunic lie in an arena far away from its own code and data, so that it seldom
 * destroys itself; if it does, somebody starts another one. It never looks at time: with one seed it makes the same
 * choices, as far as emunic's answers are the same.
 */
#include "tests/fuzz/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic/abi/amo.h"
#include "tests/common/raw.h"
#include "tests/fuzz/choices.h"

#define ARENA_AT    ((uint8_t *)0x200000000000) /* also free under AddressSanitizer */
#define ARENA_BYTES (16ull << 20)
#define PAGE        4096u
#define MDS_MAX     64u
#define QUEUES_MAX  16u
#define PEERS_MAX   4u
#define ENGINES_MAX 4u
#define EXTRAS_MAX  8u

struct handle {
    uint16_t mdh;
    uint16_t generation;
    uint64_t addr;
    uint64_t len_bytes;
    uint32_t nid;
    bool is_writable;
};

struct queue {
    uint32_t index;
    uint64_t offset;
    uint64_t ring_entries;
};

struct hostile {
    const struct hostile_target *target;
    struct raw raw;
    uint32_t sequence;
    uint32_t answered; /* sequence number of the latest reply */
    bool is_patient;   /* waits for replies: gets further; else it does more */
    bool is_out;       /* emunic has closed the connection */
    struct handle mds[MDS_MAX];
    uint32_t n_mds;
    struct queue queues[QUEUES_MAX];
    uint32_t n_queues;
    uint32_t engines[ENGINES_MAX]; /* collective engines that are ours */
    uint32_t n_engines;
    uint8_t *peers[PEERS_MAX]; /* segments of other ports, mapped */
    uint64_t peer_bytes;
    uint32_t n_peers;
    int space_fd;
    int file_fd;              /* what some of the arena is mapped from, each page at its place; may get shorter */
    int extras[EXTRAS_MAX];   /* further connections; -1 */
    struct emu_msg asked[64]; /* requests by sequence number, to understand their replies */
};

/* ---- choices ---- */

static uint64_t some_address(void)
{
    uint64_t off = below(ARENA_BYTES);

    if (one_in(20))
        return odd_number();
    if (one_in(3))
        off &= ~7ull;
    return (uint64_t)(uintptr_t)ARENA_AT + off;
}

static uint64_t some_length(void)
{
    switch (below(8)) {
    case 0:
        return odd_number();
    case 1:
        return below(ARENA_BYTES);
    case 2:
    case 3:
        return below(300000);
    default:
        return below(200);
    }
}

/* ---- the arena ---- */

/* Changes what is mapped under registrations and running transfers. */
static void shake_arena(struct hostile *h)
{
    uint8_t *at = ARENA_AT + (below(ARENA_BYTES) & ~(PAGE - 1ull));
    uint64_t room = (uint64_t)(ARENA_AT + ARENA_BYTES - at);
    uint64_t len_bytes = (1 + below(64)) * PAGE;
    int fd;

    if (len_bytes > room)
        len_bytes = room;
    switch (below(7)) {
    case 0:
        munmap(at, len_bytes);
        break;
    case 1:
        mprotect(at, len_bytes, one_in(2) ? PROT_NONE : PROT_READ);
        break;
    case 2:
        if (h->space_fd >= 0)
            mmap(at, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, h->space_fd, (off_t)(uintptr_t)at);
        break;
    case 3: /* a file that is shorter than its mapping */
        fd = memfd_create("short", MFD_CLOEXEC);
        mmap(at, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
        close(fd);
        break;
    case 4:
        mmap(at, len_bytes, one_in(4) ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, h->file_fd,
             one_in(8) ? 0 : at - ARENA_AT);
        break;
    default:
        mmap(at, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        break;
    }
}

/* Tries to change the length of a file that emunic has mapped. The test looks for the exit status. */
static void try_seal(int fd, uint64_t length)
{
    struct stat before;
    struct stat after;

    if (fstat(fd, &before) < 0)
        return;
    if (ftruncate(fd, (off_t)length) == 0 && before.st_size == (off_t)length)
        return;
    if (fstat(fd, &after) < 0 || after.st_size != before.st_size)
        _exit(HOSTILE_BROKE_A_SEAL);
}

/* Takes memory away from the files that emunic has mapped. */
static void punch_holes(struct hostile *h)
{
    int fd = one_in(2) ? h->raw.segment_fd : h->space_fd;
    off_t at = one_in(2) ? (off_t)(below(h->raw.attach.segment_bytes)) : (off_t)some_address();

    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at & ~4095ll, (off_t)((1 + below(100)) * PAGE));
    try_seal(fd, odd_number());
    if (ftruncate(h->file_fd, one_in(4) ? (off_t)below(ARENA_BYTES) : (off_t)ARENA_BYTES) < 0)
        return;
    try_seal(h->raw.table_fd, odd_number());
}

/* ---- shared memory ---- */

static void scribble_over(struct hostile *h, uint8_t *map, uint64_t map_bytes)
{
    uint64_t at = below(map_bytes);
    uint64_t room = map_bytes - at;

    atomic_fetch_add(&h->target->counts->scribbles, 1);
    switch (below(16)) {
    case 0: /* everything */
        fill_random(map, map_bytes);
        break;
    case 1:
    case 2: /* the counters at the start */
        fill_random(map + 64, sizeof(struct emu_segment) - 64);
        break;
    case 3:
    case 4: {
        uint64_t number = odd_number();

        memcpy(map + (below(sizeof(struct emu_segment)) & ~7ull), &number, 8);
        break;
    }
    default:
        fill_random(map + at, room < 4096 ? room : 1 + below(4096));
        break;
    }
}

static void scribble(struct hostile *h)
{
    if (h->n_peers > 0 && one_in(4))
        scribble_over(h, h->peers[below(h->n_peers)], h->peer_bytes);
    else
        scribble_over(h, (uint8_t *)h->raw.segment, h->raw.attach.segment_bytes);
}

/* Counters and entries of a queue that lie. */
static void bend_queue(struct hostile *h)
{
    const struct queue *q;
    struct emu_cq_shm *shm;

    if (h->n_queues == 0)
        return;
    q = &h->queues[below(h->n_queues)];
    shm = (struct emu_cq_shm *)((uint8_t *)h->raw.segment + q->offset);
    switch (below(7)) {
    case 0:
        atomic_store(&shm->head, odd_number());
        break;
    case 1:
        atomic_store(&shm->tail, odd_number());
        break;
    case 2:
        atomic_store(&shm->tail, atomic_load(&shm->head) + below(2 * q->ring_entries));
        break;
    case 3:
        shm->ring_entries = odd_number();
        shm->capacity = odd_number();
        break;
    case 4:
        atomic_store(&shm->sleepers, (uint32_t)odd_number());
        break;
    case 5:
        atomic_store(&shm->entries[below(q->ring_entries)], next_random());
        break;
    default: /* as if all had been taken */
        atomic_store(&shm->head, atomic_load(&shm->tail));
        break;
    }
}

/* ---- commands ---- */

static uint32_t some_engine(struct hostile *h)
{
    return h->n_engines > 0 && !one_in(6) ? h->engines[below(h->n_engines)] : (uint32_t)below(5);
}

/* To an engine that somebody may have, with a result in memory that may be registered. */
static void make_contribution(struct hostile *h, struct emu_cmd *cmd)
{
    if (!one_in(4))
        cmd->remote_nid = h->raw.attach.nid;
    for (unsigned i = 0; h->n_mds > 0 && i < 8; i++) {
        const struct handle *md = &h->mds[below(h->n_mds)];

        cmd->mdh = md->mdh;
        cmd->generation = md->generation;
        cmd->local_addr = (md->addr + below(md->len_bytes)) & ~31ull;
        if (md->is_writable)
            break;
    }
    cmd->ce_red_id = below(2);
    cmd->ce_id = one_in(20) ? (uint32_t)odd_number() : some_engine(h);
    cmd->ce_child = (uint8_t)(one_in(100) ? below(256) : one_in(30));
    cmd->ce_op = (uint8_t)(one_in(4) ? below(EMU_CE_OP_END + 1) : EMU_CE_IADD);
    cmd->ce_flags = one_in(4) ? (uint8_t)below(256) : 0;
}

static struct emu_cmd some_command(struct hostile *h)
{
    const struct handle *md = h->n_mds ? &h->mds[below(h->n_mds)] : NULL;
    struct emu_cmd cmd = { .op = (uint8_t)below(EMU_OP_END + 1) };

    if (one_in(30)) {
        fill_random(&cmd, sizeof(cmd));
        return cmd;
    }
    cmd.flags = one_in(2) ? 0 : (uint8_t)below(128);
    if (one_in(30))
        cmd.op = EMU_OP_REPORT;
    cmd.events = (uint16_t)below(32);
    cmd.attempts = one_in(2) ? 0 : one_in(2) ? (uint32_t)odd_number() : (uint32_t)below(20);
    cmd.remote_nid = one_in(20) ? (uint32_t)odd_number() : h->target->nids[below(h->target->n_nids)];
    cmd.remote_addr = some_address();
    cmd.length_bytes = some_length();
    if (md && !one_in(10)) {
        cmd.remote_nid = md->nid;
        cmd.mdh = md->mdh;
        cmd.generation = one_in(10) ? 0 : md->generation;
        cmd.remote_base = md->addr & ~4095ull;
        cmd.remote_addr = md->addr + below(md->len_bytes);
    }
    if (one_in(10)) {
        cmd.handle_flags = EMU_HANDLE_OFFSET;
        cmd.remote_base = one_in(2) ? cmd.remote_addr : odd_number();
    }
    if (one_in(10)) {
        cmd.handle_flags |= EMU_HANDLE_VIRTUAL;
        cmd.mdh = (uint16_t)below(20);
    }
    cmd.amo_op = (uint8_t)below(EMU_AMO_OP_END + 1);
    cmd.amo_flags = (uint8_t)below(8);
    if (cmd.op == EMU_OP_AMO && !one_in(4)) {
        cmd.remote_addr &= ~7ull;
        cmd.length_bytes &= ~7ull;
    }
    cmd.chain = one_in(4) ? (uint8_t)below(4) : 0;
    cmd.source_event = next_random();
    cmd.remote_event = next_random();
    cmd.source_cq = h->n_queues ? h->queues[below(h->n_queues)].index : EMU_CQ_NONE;
    cmd.flag_addr = cmd.remote_addr & ~7ull;
    cmd.flag_value = next_random();
    cmd.local_addr = (cmd.flags & EMU_CMD_STAGED) ? below(EMU_STAGING_BYTES) : some_address();
    cmd.operand1 = next_random();
    cmd.operand2 = next_random();
    if (cmd.op == EMU_OP_CE)
        make_contribution(h, &cmd);
    if (md && one_in(10)) {
        cmd.handle_flags |= EMU_HANDLE_LOCAL_SEGMENTS;
        cmd.local_mdh = md->mdh;
        cmd.local_generation = md->generation;
        cmd.local_addr = below(100000);
    }
    if (one_in(3))
        flip_bits(&cmd, sizeof(cmd), 1 + (unsigned)below(3));
    return cmd;
}

static void ring_doorbell(struct hostile *h)
{
    uint64_t n = one_in(10) ? UINT64_MAX - 1 : 1;

    if (write(h->raw.doorbell, &n, sizeof(n)) < 0)
        return; /* full: emunic never reads it, and need not */
}

/* Commands through a sound ring, as far as the last scribble left one. */
static void post_commands(struct hostile *h)
{
    struct emu_segment *s = h->raw.segment;
    struct emu_cmd *slots = (struct emu_cmd *)((uint8_t *)s + sizeof(*s));
    uint64_t head = atomic_load(&s->head);
    uint64_t tail = atomic_load(&s->tail);
    uint64_t n = 1 + below(one_in(10) ? EMU_RING_SLOTS : 32);

    if (tail - head > EMU_RING_SLOTS)
        return; /* broken, and nobody has noticed yet */
    if (n > EMU_RING_SLOTS - (tail - head))
        n = EMU_RING_SLOTS - (tail - head);
    for (uint64_t i = 0; i < n; i++)
        slots[(tail + i) % EMU_RING_SLOTS] = some_command(h);
    atomic_store(&s->tail, tail + n);
    ring_doorbell(h);
    atomic_fetch_add(&h->target->counts->commands, n);
    /* While emunic works on them: change them under its hands, or wait a while. */
    for (unsigned i = 0; i < 200 && atomic_load(&s->head) != tail + n; i++) {
        if (one_in(4))
            slots[(tail + below(n + 1)) % EMU_RING_SLOTS] = some_command(h);
        sched_yield();
    }
    head = atomic_load(&s->head) - head;
    if (head <= EMU_RING_SLOTS)
        atomic_fetch_add(&h->target->counts->commands_taken, head);
}

/* ---- requests ---- */

/* Small trees of the few who are there, so that some of them work and others are knots. */
static struct emu_ce_link some_link(struct hostile *h, uint8_t type, uint8_t child_id)
{
    return (struct emu_ce_link){ .nid = one_in(4) ? h->target->nids[below(h->target->n_nids)] : h->raw.attach.nid,
                                 .instance_id = one_in(3) ? (uint32_t)below(8) : h->raw.attach.instance_id,
                                 .ce_id = (uint16_t)some_engine(h),
                                 .type = type,
                                 .child_id = one_in(20) ? (uint8_t)below(40) : child_id };
}

static void fill_tree(struct hostile *h, struct emu_msg_ce *ce)
{
    *ce = (struct emu_msg_ce){ .ce_id = some_engine(h),
                               .rounding = (uint32_t)below(5),
                               .cq = one_in(2) ? EMU_CQ_NONE : (uint32_t)below(QUEUES_MAX),
                               .flags = one_in(8) ? (uint16_t)below(8) : EMU_CE_FIRST | EMU_CE_LAST,
                               .n_children = (uint16_t)(one_in(8) ? below(20) : 1 + below(3)) };
    if (one_in(3))
        ce->parent = some_link(h, one_in(20) ? EMU_CE_LINK_LEAF : EMU_CE_LINK_ENGINE, (uint8_t)below(3));
    if (one_in(2))
        ce->n_children = 1;
    for (uint8_t i = 0; i < EMU_CE_CHILDREN_PER_MSG; i++)
        ce->children[i] = some_link(h, i > 0 && one_in(2) ? EMU_CE_LINK_ENGINE : EMU_CE_LINK_LEAF, i);
}

/* About queues, channels and shared message queues. False: the request is of another kind. */
static bool ask_of_queues(struct emu_msg *msg)
{
    switch (msg->type) {
    case EMU_MSG_CQ_CREATE:
        msg->cq.capacity = one_in(3) ? (uint32_t)odd_number() : 1 + (uint32_t)below(5000);
        msg->cq.flags = (uint32_t)below(2);
        break;
    case EMU_MSG_CQ_DESTROY:
        msg->cq.index = (uint32_t)below(QUEUES_MAX);
        break;
    case EMU_MSG_CHANNEL_DESTROY:
    case EMU_MSG_CHANNEL_ATTACH:
        msg->channel.channel = one_in(4) ? EMU_CHANNEL_NONE : (uint32_t)below(4);
        msg->channel.cq = (uint32_t)below(QUEUES_MAX);
        break;
    case EMU_MSG_MSGQ_JOIN:
        msg->msgq.shape = (struct emu_msgq_shape){ .max_bytes = 128,
                                                   .credits = 4,
                                                   .n_connections = 4,
                                                   .n_insts = (uint32_t)below(50),
                                                   .queue_entries = 16,
                                                   .region_bytes = one_in(3) ? odd_number() : (1 + below(8)) << 20 };
        break;
    default:
        return false;
    }
    return true;
}

/* About memory. False: the request is of another kind. */
static bool ask_of_memory(struct hostile *h, struct emu_msg *msg)
{
    switch (msg->type) {
    case EMU_MSG_MEM_REGISTER:
        msg->memory = (struct emu_msg_memory){ .addr = some_address(),
                                               .length_bytes = 1 + some_length(),
                                               .flags = one_in(2) ? (uint32_t)below(8) : (uint32_t)below(128),
                                               .vmdh = one_in(4) ? EMU_VMDH_ANY : (uint32_t)below(20),
                                               .cq = one_in(2) ? EMU_CQ_NONE : (uint32_t)below(QUEUES_MAX) };
        msg->memory.file_offset = one_in(20) ? odd_number() : (msg->memory.addr & ~4095ull) - (uintptr_t)ARENA_AT;
        break;
    case EMU_MSG_VMDH_RESERVE:
        msg->memory.vmdh = one_in(10) ? (uint32_t)odd_number() : (uint32_t)below(20);
        break;
    case EMU_MSG_MEM_SEGMENTS:
        msg->segments.first = one_in(3) ? (uint32_t)odd_number() : 14 * (uint32_t)below(3);
        msg->segments.n = one_in(8) ? (uint32_t)odd_number() : (uint32_t)below(15);
        for (unsigned i = 0; i < EMU_SEGMENTS_PER_MSG; i++) {
            msg->segments.segments[i].addr = some_address();
            msg->segments.segments[i].length_bytes = some_length();
        }
        break;
    case EMU_MSG_MEM_UPDATE:
        msg->memory.addr = some_address();
        msg->memory.length_bytes = some_length();
        msg->memory.flags = one_in(2) ? EMU_MD_MAPPED : 0;
        /* fall through */
    case EMU_MSG_MEM_DEREGISTER:
        if (h->n_mds > 0) {
            const struct handle *md = &h->mds[below(h->n_mds)];

            msg->memory.mdh = md->mdh;
            msg->memory.generation = md->generation;
        }
        break;
    default:
        return false;
    }
    return true;
}

/* About jobs, machines and peers. False: the request is of another kind. */
static bool ask_of_job(struct hostile *h, struct emu_msg *msg)
{
    switch (msg->type) {
    case EMU_MSG_HELLO:
        msg->hello.abi_version = EMU_ABI_VERSION;
        break;
    case EMU_MSG_JOIN_RANK:
        msg->rank = (struct emu_msg_rank){ .cookie = h->target->cookie,
                                           .ptag = h->target->ptag,
                                           .rank = (uint32_t)below(h->target->n_nids + 1) };
        break;
    case EMU_MSG_INJECTION:
        msg->injection.nid_wanted = (uint32_t)odd_number();
        break;
    case EMU_MSG_MACHINE:
        msg->machine.wants_places = (uint32_t)odd_number();
        break;
    case EMU_MSG_PTAG:
        msg->ptag.cookie = one_in(2) ? h->target->cookie : (uint32_t)odd_number();
        break;
    case EMU_MSG_PEER_SEGMENT:
    case EMU_MSG_PEER_SPACE:
        msg->peer.port = (uint32_t)below(40);
        break;
    case EMU_MSG_PEER_FILE:
        msg->file.file = EMU_FILES_MAX * (uint32_t)below(100) + (uint32_t)below(4);
        break;
    case EMU_MSG_RESOURCES:
        msg->resources = (struct emu_msg_resources){ .resource = (uint32_t)below(70),
                                                     .ptag = (uint32_t)below(100),
                                                     .nid_wanted = (uint32_t)odd_number() };
        break;
    default:
        return false;
    }
    return true;
}

/* About reduction trees and error events. False: the request is of another kind. */
static bool ask_of_trees_and_errors(struct hostile *h, struct emu_msg *msg)
{
    switch (msg->type) {
    case EMU_MSG_CE_CREATE:
        break;
    case EMU_MSG_CE_DESTROY: /* seldom: there is more to do with those that are there */
        if (!one_in(3))
            msg->type = EMU_MSG_CE_CONFIGURE;
        fill_tree(h, &msg->ce);
        break;
    case EMU_MSG_CE_CONFIGURE:
        fill_tree(h, &msg->ce);
        break;
    case EMU_MSG_ERRORS_OPEN:
        msg->errors = (struct emu_msg_errors){ .ptag = h->target->ptag,
                                               .cookie = h->target->cookie,
                                               .mask = 0xff,
                                               .flags = (uint32_t)below(2),
                                               .room = (uint32_t)below(100) };
        break;
    case EMU_MSG_ERRORS_MASK:
    case EMU_MSG_ERRORS_PTAG:
    case EMU_MSG_ERRORS_FETCH:
        msg->errors = (struct emu_msg_errors){ .ptag = (uint32_t)below(300),
                                               .mask = (uint32_t)below(300),
                                               .room = (uint32_t)below(10) };
        break;
    default:
        return false;
    }
    return true;
}

static struct emu_msg some_request(struct hostile *h)
{
    struct emu_msg msg = { .type = (uint16_t)(EMU_MSG_HELLO + below(EMU_MSG_MEM_SEGMENTS)) };

    /* Others are datagrams, and an attach that comes too late. */
    if (!(ask_of_queues(&msg) || ask_of_memory(h, &msg) || ask_of_job(h, &msg) || ask_of_trees_and_errors(h, &msg))) {
        msg.datagram = (struct emu_msg_datagram){ .ep = (uint32_t)below(20),
                                                  .flags = (uint32_t)below(8),
                                                  .id = below(20),
                                                  .remote_nid = h->target->nids[below(h->target->n_nids)],
                                                  .remote_instance = (uint32_t)below(8),
                                                  .length_bytes = (uint16_t)below(140),
                                                  .room_bytes = (uint16_t)below(140) };
    }
    if (one_in(4))
        flip_bits(msg.bytes, sizeof(msg.bytes), 1 + (unsigned)below(4));
    return msg;
}

/* Descriptors that nobody asked for, the connection itself among them. */
static unsigned some_descriptors(struct hostile *h, int fds[EMU_MSG_FDS_MAX])
{
    const int own[] = { h->raw.doorbell,   h->raw.segment_fd, h->raw.table_fd,
                        h->raw.session.fd, STDOUT_FILENO,     h->space_fd };
    unsigned n = 0;

    if (!one_in(8))
        return 0;
    for (uint64_t wanted = below(EMU_MSG_FDS_MAX + 1); wanted > 0; wanted--) {
        int fd = own[below(sizeof(own) / sizeof(own[0]))];

        if (fd >= 0)
            fds[n++] = fd;
    }
    return n;
}

static int send_request(struct hostile *h)
{
    struct emu_msg msg = some_request(h);
    int fds[EMU_MSG_FDS_MAX];
    unsigned n_fds = some_descriptors(h, fds);

    if (msg.type == EMU_MSG_MEM_REGISTER && (msg.memory.flags & EMU_MD_FILE) && n_fds == 0)
        fds[n_fds++] = h->file_fd;
    msg.magic = EMU_MSG_MAGIC;
    msg.abi_version = EMU_ABI_VERSION;
    msg.sequence = ++h->sequence;
    h->asked[msg.sequence % 64] = msg;
    if (one_in(150))
        flip_bits(&msg, 16, 1);
    if (one_in(200))
        fill_random(&msg, sizeof(msg));
    atomic_fetch_add(&h->target->counts->messages, 1);
    if (one_in(200)) {
        uint8_t noise[1024];
        uint64_t len_bytes = 1 + below(sizeof(noise));

        fill_random(noise, len_bytes);
        return send(h->raw.session.fd, noise, len_bytes, MSG_NOSIGNAL) < 0 ? -errno : 0;
    }
    return emu_msg_send(h->raw.session.fd, &msg, fds, n_fds);
}

/* ---- replies ---- */

static void note_peer(struct hostile *h, struct emu_fds *fds, uint64_t bytes)
{
    void *map;

    if (h->n_peers == PEERS_MAX)
        return;
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fds->fd[0], 0);
    if (map == MAP_FAILED)
        return;
    h->peers[h->n_peers++] = map;
    h->peer_bytes = bytes;
}

static void learn(struct hostile *h, const struct emu_msg *reply, struct emu_fds *fds)
{
    const struct emu_msg *asked = &h->asked[reply->sequence % 64];

    atomic_fetch_add(&h->target->counts->replies, 1);
    h->answered = reply->sequence;
    if (reply->result != 0)
        return;
    atomic_fetch_add(&h->target->counts->replies_good, 1);
    switch (reply->type) {
    case EMU_MSG_CQ_CREATE:
        if (h->n_queues < QUEUES_MAX)
            h->queues[h->n_queues++] = (struct queue){ reply->cq.index, reply->cq.offset, reply->cq.ring_entries };
        break;
    case EMU_MSG_MEM_REGISTER:
        h->mds[h->n_mds < MDS_MAX ? h->n_mds++ : below(MDS_MAX)] =
            (struct handle){ reply->memory.mdh,  reply->memory.generation,
                             asked->memory.addr, asked->memory.length_bytes ? asked->memory.length_bytes : 1,
                             h->raw.attach.nid,  (asked->memory.flags & EMU_MD_READ_ONLY) == 0 };
        break;
    case EMU_MSG_CE_CREATE:
        if (h->n_engines < ENGINES_MAX)
            h->engines[h->n_engines++] = reply->ce.ce_id;
        break;
    case EMU_MSG_SPACE:
        if (h->space_fd < 0 && fds->n_fds == 1) {
            h->space_fd = fds->fd[0];
            fds->fd[0] = -1;
        }
        break;
    case EMU_MSG_ERRORS_OPEN: /* an eventfd: fill it or empty it */
        if (fds->n_fds == 1) {
            uint64_t counter = one_in(2) ? UINT64_MAX - 1 : 1;

            if (write(fds->fd[0], &counter, sizeof(counter)) < 0 || one_in(2))
                (void)!read(fds->fd[0], &counter, sizeof(counter));
        }
        break;
    case EMU_MSG_PEER_SEGMENT:
        if (fds->n_fds == 1)
            note_peer(h, fds, reply->peer.length_bytes);
        break;
    default:
        break;
    }
}

static void read_replies(struct hostile *h)
{
    struct emu_msg msg;
    struct emu_fds fds;
    int r;

    while ((r = emu_msg_receive(h->raw.session.fd, &msg, &fds)) == 0) {
        learn(h, &msg, &fds);
        emu_fds_close(&fds);
    }
    if (r != -EAGAIN)
        h->is_out = true;
}

/* One request at a time, as emunic wants it; an answer that is deferred for too long is not waited for. */
static void wait_for_reply(struct hostile *h)
{
    for (unsigned i = 0; i < 300 && !h->is_out && h->answered != h->sequence; i++) {
        read_replies(h);
        sched_yield();
    }
}

/* ---- connections ---- */

/* Opens, uses a little and closes connections beside the main one. */
static void play_with_connections(struct hostile *h)
{
    int *fd = &h->extras[below(EXTRAS_MAX)];
    struct emu_msg msg;

    if (*fd >= 0 && one_in(2)) {
        close(*fd);
        *fd = -1;
        return;
    }
    if (*fd < 0)
        *fd = emu_socket_connect(h->target->server, one_in(10) ? EMU_SOCKET_ADMIN : EMU_SOCKET_CONTROL);
    if (*fd < 0)
        return;
    fcntl(*fd, F_SETFL, O_NONBLOCK);
    for (uint64_t n = below(4); n > 0; n--) {
        msg = some_request(h);
        if (one_in(2))
            msg = (struct emu_msg){ .type = EMU_MSG_HELLO, .hello.abi_version = EMU_ABI_VERSION };
        msg.magic = EMU_MSG_MAGIC;
        msg.abi_version = EMU_ABI_VERSION;
        if (msg.type == EMU_MSG_SHUTDOWN)
            continue;
        emu_msg_send(*fd, &msg, NULL, 0);
    }
}

static void leave(struct hostile *h)
{
    for (uint32_t i = 0; i < h->n_peers; i++)
        munmap(h->peers[i], h->peer_bytes);
    if (h->space_fd >= 0)
        close(h->space_fd);
    h->space_fd = -1;
    h->n_peers = h->n_mds = h->n_queues = h->n_engines = 0;
    raw_close(&h->raw);
}

static void enter(struct hostile *h)
{
    const struct hostile_target *t = h->target;
    int r;

    do {
        r = raw_open(&h->raw, t->server, t->ptag, t->cookie, (uint32_t)below(8), t->nids[below(t->n_nids)]);
        if (r == -ECONNREFUSED)
            _exit(0); /* emunic has gone; the test knows why */
    } while (r != 0);
    fcntl(h->raw.session.fd, F_SETFL, O_NONBLOCK);
    h->is_out = false;
    h->is_patient = one_in(3);
    h->sequence = h->answered = h->raw.session.sequence;
    atomic_fetch_add(&t->counts->attaches, 1);
}

/* ---- workers ---- */

static void act(struct hostile *h)
{
    int r = 0;

    switch (below(20)) {
    case 0:
        if (one_in(3))
            scribble(h);
        break;
    case 1:
        play_with_connections(h);
        break;
    case 2:
        shake_arena(h);
        break;
    case 3:
        if (one_in(10))
            punch_holes(h);
        break;
    case 4:
        bend_queue(h);
        break;
    case 5: /* while it seems to be inside, emunic releases nothing in the domain */
        atomic_store(&h->raw.segment->inside, one_in(3) ? odd_number() : below(1000) * 2);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        post_commands(h);
        break;
    case 10:
        if (one_in(100))
            h->is_out = true; /* leaves by itself, without giving anything back */
        break;
    default:
        r = send_request(h);
        break;
    }
    if (r < 0 && r != -EAGAIN)
        h->is_out = true;
    if (h->is_patient && !one_in(8))
        wait_for_reply(h);
    else if (one_in(3))
        read_replies(h);
}

_Noreturn void hostile_member(const struct hostile_target *target, uint64_t seed)
{
    static struct hostile h;

    choices_begin(seed);
    h = (struct hostile){ .target = target, .space_fd = -1, .file_fd = memfd_create("hostile", MFD_CLOEXEC) };
    for (unsigned i = 0; i < EXTRAS_MAX; i++)
        h.extras[i] = -1;
    if (mmap(ARENA_AT, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
        ARENA_AT)
        _exit(1);
    if (ftruncate(h.file_fd, ARENA_BYTES) < 0 ||
        mmap(ARENA_AT + ARENA_BYTES / 2, ARENA_BYTES / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, h.file_fd,
             ARENA_BYTES / 2) == MAP_FAILED)
        _exit(1);
    atomic_fetch_add(&target->counts->workers, 1);
    for (;;) {
        enter(&h);
        while (!h.is_out)
            act(&h);
        atomic_fetch_add(&target->counts->thrown_out, 1);
        leave(&h);
    }
}
