/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Port, owner's side.
 *
 * Cost of a command: two cache lines to emunic (the slot), one store of `tail`, one read of the table's changing
 * line, which stays shared until emunic goes to sleep or wakes up. emunic's progress (`head`) is read only when the
 * ring or the staging area looks full. No system call unless emunic sleeps.
 *
 * Staging is a ring of bytes handed out in command order. A command never wraps: what is left at the end is skipped.
 * It is free again when emunic has taken the command, because emunic moves staged data before it moves `head`.
 *
 * Everything read from emunic at attach is checked: emunic may be another version or broken.
 */
#include "emunic/client/port.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/client/channel.h"
#include "emunic/client/direct.h"
#include "emunic/client/lane.h"
#include "emunic/client/mapping.h"
#include "emunic/client/space.h"
#include "emunic/client/virtual_clock.h"
#include "emunic/client/virtual_port.h"

#define WAIT_SLICE_NS  250000000ull /* a sleeper looks this often whether emunic lives */
#define WAIT_WORDS_MAX 128u

/* ---- attach ---- */

static int map_fd(int fd, uint64_t bytes, int protection, void **addr_out)
{
    struct stat st;
    void *addr;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (bytes == 0 || (uint64_t)st.st_size < bytes)
        return -EPROTO;
    addr = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    if (addr == MAP_FAILED)
        return -errno;
    *addr_out = addr;
    return 0;
}

static bool table_is_sound(const struct emu_table *t, uint64_t bytes)
{
    return bytes >= sizeof(*t) && t->magic == EMU_TABLE_MAGIC && t->abi_version == EMU_ABI_VERSION &&
           t->table_bytes <= bytes && t->nid_off + (uint64_t)t->n_nids * 4 <= bytes &&
           t->node_off + (uint64_t)t->n_nodes * sizeof(struct emu_table_node) <= bytes &&
           t->port_off + (uint64_t)t->n_ports * sizeof(struct emu_table_port) <= bytes &&
           t->file_off + EMU_FILES_MAX * sizeof(uint32_t) <= bytes &&
           t->md_off + (uint64_t)t->n_nodes * EMU_MD_COUNT * sizeof(struct emu_table_md) <= bytes &&
           t->vmdh_off + (uint64_t)t->n_nodes * EMU_MDH_COUNT * sizeof(uint16_t) <= bytes;
}

static bool segment_is_sound(const struct emu_segment *s, uint64_t bytes)
{
    return bytes >= sizeof(*s) && s->magic == EMU_SEGMENT_MAGIC && s->abi_version == EMU_ABI_VERSION &&
           s->ring_slots == EMU_RING_SLOTS && s->staging_bytes == EMU_STAGING_BYTES &&
           s->flow_off + 2ull * s->n_flows * sizeof(struct emu_flow_counts) <= bytes &&
           s->slot_off + (uint64_t)EMU_RING_SLOTS * sizeof(struct emu_cmd) <= bytes &&
           s->staging_off + s->staging_bytes <= bytes;
}

static int map_shared(struct emu_port *port, struct emu_fds *fds, const struct emu_msg_attach *reply)
{
    void *addr;
    int r;

    if (fds->n_fds != 3)
        return -EPROTO;
    r = map_fd(fds->fd[0], reply->table_bytes, PROT_READ, &addr);
    if (r < 0)
        return r;
    port->table = addr;
    port->table_bytes = reply->table_bytes;
    r = map_fd(fds->fd[1], reply->segment_bytes, PROT_READ | PROT_WRITE, &addr);
    if (r < 0)
        return r;
    port->segment = addr;
    port->segment_bytes = reply->segment_bytes;
    if (!table_is_sound(port->table, port->table_bytes) || !segment_is_sound(port->segment, port->segment_bytes))
        return -EPROTO;
    port->doorbell = fds->fd[2];
    fds->fd[2] = -1;
    port->slots = (struct emu_cmd *)((char *)port->segment + port->segment->slot_off);
    port->staging = (uint8_t *)port->segment + port->segment->staging_off;
    return 0;
}

static uint32_t nid_wanted(void)
{
    const char *text = getenv("EMUNIC_NID");
    char *end;
    unsigned long nid;

    if (!text || !text[0])
        return EMU_NID_NONE;
    nid = strtoul(text, &end, 10);
    return *end || nid > EMU_NID_MAX ? EMU_NID_NONE : (uint32_t)nid;
}

/* What it is in its domain; in virtual time its process has clocks from now on. */
static int take_place(struct emu_port *port, const struct emu_msg_attach *reply)
{
    port->index = reply->port;
    port->nid = reply->nid;
    port->node_index = emu_table_node_index(port->table, port->nid);
    if (port->node_index >= port->table->n_nodes)
        return -EPROTO;
    port->ptag = reply->ptag;
    port->owner = getpid();
    return emu_virtual_port_open(port);
}

int emu_port_attach(struct emu_port *port, uint32_t ptag, uint32_t cookie, uint32_t instance_id, uint32_t modes)
{
    char name[EMU_SERVER_NAME_MAX + 1];
    volatile uint64_t probe = 0x656d756e69632101ull ^ emu_clock_ns();
    struct emu_msg msg = { .type = EMU_MSG_ATTACH };
    struct emu_fds fds;
    int r;

    memset(port, 0, sizeof(*port));
    port->doorbell = -1;
    port->session.fd = -1;
    port->alarm.ring = emu_channel_ring;
    emu_settings_read(&port->settings);
    snprintf(port->server, sizeof(port->server), "%s", emu_session_default_server(name, sizeof(name)));
    r = emu_session_open(&port->session, port->server, EMU_SOCKET_CONTROL);
    if (r < 0) {
        emu_session_tell_absence(port->server, r);
        return r;
    }
    /* Without Yama this answers EINVAL and is not needed. */
    prctl(PR_SET_PTRACER, port->session.server_pid, 0, 0, 0);
    msg.attach = (struct emu_msg_attach){
        .ptag = ptag,
        .cookie = cookie,
        .instance_id = instance_id,
        .modes = modes,
        .nid_wanted = nid_wanted(),
        .probe_addr = (uint64_t)(uintptr_t)&probe,
        .probe_value = probe,
    };
    r = emu_session_request(&port->session, &msg, NULL, 0, &fds);
    if (r == 0)
        r = msg.result;
    if (r == 0)
        r = map_shared(port, &fds, &msg.attach);
    emu_fds_close(&fds);
    if (r != 0) {
        emu_port_detach(port);
        return r < 0 ? r : -EPROTO;
    }
    port->cookie = cookie;
    port->instance_id = instance_id;
    r = take_place(port, &msg.attach);
    if (r < 0) {
        emu_port_detach(port);
        return r;
    }
    port->direct = emu_direct_create(port);
    port->gate = port->direct ? emu_direct_gate(port->direct) : NULL;
    emu_idle_open(port);
    emu_log(EMU_LOG_INFO, "attached port %u nid %u instance 0x%x ptag %u", port->index, port->nid, instance_id,
            port->ptag);
    return 0;
}

void emu_port_hang_up(struct emu_port *port)
{
    if (port->owner == getpid())
        emu_session_hang_up(&port->session);
}

void emu_port_set_stale(struct emu_port *port, bool is_stale)
{
    atomic_store(&port->session.is_stale, is_stale);
}

void emu_port_detach(struct emu_port *port)
{
    emu_port_hang_up(port);
    emu_idle_close(port);
    emu_space_put(port);
    emu_direct_destroy(port->direct);
    port->direct = NULL;
    port->gate = NULL;
    emu_handed_close(&port->handed);
    if (port->table)
        munmap((void *)(uintptr_t)port->table, port->table_bytes);
    if (port->segment)
        munmap(port->segment, port->segment_bytes);
    if (port->doorbell >= 0 && !atomic_load(&port->session.is_stale))
        close(port->doorbell);
    port->table = NULL;
    port->segment = NULL;
    port->doorbell = -1;
    emu_session_close(&port->session);
}

/* ---- command ring ---- */

static void look_at_head(struct emu_port *port)
{
    /* Pairs with the release in emunic: the slots and staged data before head are ours again. */
    uint64_t head = atomic_load_explicit(&port->segment->head, memory_order_acquire);

    if (head == port->seen_head || head > port->tail)
        return;
    port->seen_head = head;
    port->staging_head = port->staging_end[(head - 1) & (EMU_RING_SLOTS - 1)];
}

/* Offset for `bytes` in one piece, counting from the start of time; modulo the area it is the place. */
static uint64_t staging_place(const struct emu_port *port, uint64_t bytes)
{
    uint64_t place = (port->staging_tail + 63) & ~63ull;
    uint64_t left = EMU_STAGING_BYTES - place % EMU_STAGING_BYTES;

    return left < bytes ? place + left : place;
}

static bool has_room(const struct emu_port *port, uint64_t staged_bytes)
{
    if (port->tail - port->seen_head >= EMU_RING_SLOTS)
        return false;
    return staged_bytes == 0 ||
           staging_place(port, staged_bytes) + staged_bytes - port->staging_head <= EMU_STAGING_BYTES;
}

bool emu_port_has_much_room(struct emu_port *port)
{
    look_at_head(port);
    return port->tail - port->seen_head < EMU_RING_SLOTS / 2 &&
           port->staging_tail - port->staging_head < EMU_STAGING_BYTES / 2;
}

/* Runs only when the ring looks full even after a look at emunic's progress. */
static bool wait_for_room(struct emu_port *port, uint64_t staged_bytes)
{
    for (;;) {
        look_at_head(port);
        if (has_room(port, staged_bytes))
            return true;
        if (emu_port_is_lost(port))
            return false;
        if (port->times)
            emu_virtual_port_wait_for_room(port);
        else
            sched_yield();
    }
}

struct emu_cmd *emu_port_command(struct emu_port *port, uint64_t staged_bytes, uint64_t *staging_off_out)
{
    struct emu_cmd *cmd;

    if (!has_room(port, staged_bytes) && !wait_for_room(port, staged_bytes))
        return NULL;
    if (staged_bytes > 0) {
        uint64_t place = staging_place(port, staged_bytes);

        *staging_off_out = place % EMU_STAGING_BYTES;
        port->staging_tail = place + staged_bytes;
    }
    cmd = &port->slots[port->tail & (EMU_RING_SLOTS - 1)];
    memset(cmd, 0, sizeof(*cmd));
    return cmd;
}

bool emu_port_run(struct emu_port *port)
{
    if (!port->gate || !emu_gate_is_open(port->gate) ||
        !emu_direct_run(port->direct, &port->slots[port->tail & (EMU_RING_SLOTS - 1)]))
        return false;
    /* The ring was empty: all staging is free again. */
    port->staging_tail = port->staging_head;
    return true;
}

void emu_port_submit(struct emu_port *port)
{
    if (!emu_port_run(port))
        emu_port_publish(port);
}

void emu_port_ring(struct emu_port *port)
{
    uint64_t one = 1;

    if (atomic_load(&port->session.is_stale))
        return;
    /* Not write(), which is a cancellation point: the caller holds a lock. */
    if (syscall(SYS_write, port->doorbell, &one, sizeof(one)) < 0)
        emu_log(EMU_LOG_DEBUG, "doorbell refused: %d", errno); /* already rung very often */
}

void emu_port_publish(struct emu_port *port)
{
    if (port->times) {
        emu_virtual_port_publish(port);
        return;
    }
    port->staging_end[port->tail & (EMU_RING_SLOTS - 1)] = port->staging_tail;
    emu_handed_add(port);
    port->blocks_sent += (port->slots[port->tail & (EMU_RING_SLOTS - 1)].flags & EMU_CMD_BLOCK) != 0;
    port->tail++;
    /* Pairs with the acquire of `tail` in emunic: the command before its count. */
    atomic_store_explicit(&port->segment->tail, port->tail, memory_order_release);
    /* Pairs with the fence in emunic between announcing sleep and its last look at the rings. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&port->table->emunic_sleeps, memory_order_relaxed))
        emu_port_ring(port);
}

/* ---- requests ---- */

int emu_port_request(struct emu_port *port, struct emu_msg *msg)
{
    int r = emu_session_request(&port->session, msg, NULL, 0, NULL);

    return r < 0 ? r : msg->result;
}

int emu_port_cq_create(struct emu_port *port, uint32_t capacity, bool wakes, uint32_t *index_out,
                       struct emu_cq_consumer *cq_out)
{
    return emu_port_cq_create_roomy(port, capacity, capacity, wakes, index_out, cq_out);
}

int emu_port_cq_create_roomy(struct emu_port *port, uint32_t capacity, uint32_t room, bool wakes, uint32_t *index_out,
                             struct emu_cq_consumer *cq_out)
{
    struct emu_msg msg = { .type = EMU_MSG_CQ_CREATE,
                           .cq = { .capacity = capacity, .ring_entries = room, .flags = wakes ? EMU_CQ_WAKES : 0 } };
    uint64_t entries;
    int r;

    r = emu_port_request(port, &msg);
    if (r != 0)
        return r < 0 ? r : -EPROTO;
    entries = msg.cq.ring_entries;
    if (entries < room || (entries & (entries - 1)) || msg.cq.offset % EMU_CACHE_LINE ||
        entries > port->segment_bytes / 8 ||
        msg.cq.offset + sizeof(struct emu_cq_shm) + entries * 8 > port->segment_bytes)
        return -EPROTO;
    emu_cq_consumer_init(cq_out, (struct emu_cq_shm *)((char *)port->segment + msg.cq.offset), entries);
    if (msg.cq.index < EMU_CQS_MAX) {
        atomic_store(&port->queues[msg.cq.index], cq_out->shm);
        if (msg.cq.index >= atomic_load(&port->n_queues))
            atomic_store(&port->n_queues, msg.cq.index + 1);
    }
    if (port->direct)
        emu_direct_add_queue(port->direct, msg.cq.index, cq_out->shm, entries, capacity, wakes);
    *index_out = msg.cq.index;
    return 0;
}

int emu_port_cq_destroy(struct emu_port *port, uint32_t index)
{
    struct emu_msg msg = { .type = EMU_MSG_CQ_DESTROY, .cq = { .index = index } };

    if (index < EMU_CQS_MAX)
        atomic_store(&port->queues[index], NULL);
    return emu_port_request(port, &msg);
}

static int request_memory(struct emu_port *port, uint16_t type, struct emu_msg_memory *memory, const int *fds,
                          unsigned n_fds)
{
    struct emu_msg msg = { .type = type, .memory = *memory };
    int r = emu_session_request(&port->session, &msg, fds, n_fds, NULL);

    if (r == 0)
        r = msg.result;
    if (r != 0)
        return r < 0 ? r : -EPROTO;
    if (msg.memory.mdh >= EMU_MD_COUNT)
        return -EPROTO;
    *memory = msg.memory;
    return 0;
}

int emu_port_mem_register(struct emu_port *port, const struct emu_port_memory *wanted, uint16_t *mdh_out,
                          uint16_t *generation_out)
{
    struct emu_msg_memory memory = { .addr = wanted->addr,
                                     .length_bytes = wanted->length_bytes,
                                     .flags = wanted->flags,
                                     .cq = wanted->cq,
                                     .vmdh = EMU_VMDH_ANY };
    int r = emu_port_mem_request(port, EMU_MSG_MEM_REGISTER, &memory);

    if (r < 0)
        return r;
    *mdh_out = memory.mdh;
    *generation_out = memory.generation;
    return 0;
}

int emu_port_mem_request(struct emu_port *port, uint16_t type, struct emu_msg_memory *memory)
{
    return request_memory(port, type, memory, NULL, 0);
}

int emu_port_mem_register_shared(struct emu_port *port, struct emu_msg_memory *memory)
{
    struct emu_msg_memory shared = *memory;
    struct emu_mapping mapping;
    int r;

    r = emu_mapping_find(memory->addr, memory->length_bytes, (memory->flags & EMU_MD_READ_ONLY) == 0, &mapping);
    if (r < 0)
        return r;
    shared.flags |= EMU_MD_FILE;
    shared.file_offset = mapping.file_offset;
    r = request_memory(port, EMU_MSG_MEM_REGISTER, &shared, &mapping.fd, 1);
    close(mapping.fd);
    if (r < 0)
        emu_log(EMU_LOG_DEBUG, "0x%llx bytes at 0x%llx not shared: %s", (unsigned long long)memory->length_bytes,
                (unsigned long long)memory->addr, strerror(-r));
    else
        *memory = shared;
    return r;
}

int emu_port_mem_segments(struct emu_port *port, const uint64_t (*segments)[2], uint32_t n)
{
    int r = 0;

    for (uint32_t first = 0; first < n && r == 0; first += EMU_SEGMENTS_PER_MSG) {
        struct emu_msg msg = { .type = EMU_MSG_MEM_SEGMENTS, .segments = { .first = first } };

        msg.segments.n = n - first < EMU_SEGMENTS_PER_MSG ? n - first : EMU_SEGMENTS_PER_MSG;
        for (uint32_t i = 0; i < msg.segments.n; i++) {
            msg.segments.segments[i].addr = segments[first + i][0];
            msg.segments.segments[i].length_bytes = segments[first + i][1];
        }
        r = emu_port_request(port, &msg);
    }
    return r > 0 ? -EPROTO : r;
}

int emu_port_mem_deregister(struct emu_port *port, uint16_t mdh, uint16_t generation)
{
    return emu_port_mem_deregister_latest(port, mdh, generation, generation);
}

int emu_port_mem_deregister_latest(struct emu_port *port, uint16_t mdh, uint16_t generation, uint16_t latest)
{
    struct emu_msg msg = { .type = EMU_MSG_MEM_DEREGISTER,
                           .memory = { .mdh = mdh, .generation = generation, .vmdh = latest } };

    return emu_port_request(port, &msg);
}

/* ---- waiting ---- */

bool emu_port_is_lost(struct emu_port *port)
{
    if (atomic_load(&port->session.is_stale))
        return true;
    if (atomic_load_explicit(&port->table->flags, memory_order_relaxed) & EMU_TABLE_CLOSED)
        atomic_store(&port->session.is_lost, true);
    return emu_session_check_lost(&port->session);
}

void emu_port_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    emu_vclock_wake_all();
}

/*
 * The kernel's struct futex_waitv, which Debian 12's headers have but libc does not wrap. The thread can be cancelled
 * during the system call alone, and there at once, if the program's settings in `cancel` allow it.
 */
static int wait_for_any(_Atomic uint32_t *const *words, const uint32_t *seen, unsigned n_words, uint64_t until_ns,
                        const struct emu_cancel *cancel)
{
    struct futex_waitv waiters[WAIT_WORDS_MAX];
    struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000ull),
                              .tv_nsec = (long)(until_ns % 1000000000ull) };
    struct emu_cancel open = { .state = cancel->state, .type = PTHREAD_CANCEL_ASYNCHRONOUS };
    long woken;
    int error;

    for (unsigned i = 0; i < n_words; i++)
        waiters[i] = (struct futex_waitv){ .val = seen[i], .uaddr = (uint64_t)(uintptr_t)words[i], .flags = FUTEX_32 };
    emu_cancel_release(&open);
    woken = syscall(SYS_futex_waitv, waiters, n_words, 0, &until, CLOCK_MONOTONIC);
    error = errno;
    if (woken < 0 && error == ENOSYS) {
        /* Kernels before 5.16: look again after a millisecond. */
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        woken = 0;
    }
    emu_cancel_hold(&open);
    return woken < 0 ? -error : 0;
}

/* Sleeps for at most a slice. */
static int wait_slice(struct emu_port *port, _Atomic uint32_t *const *words, const uint32_t *seen, unsigned n_words,
                      uint64_t deadline_ns, const struct emu_cancel *cancel)
{
    uint64_t now_ns = emu_clock_ns();
    uint64_t until_ns = now_ns + WAIT_SLICE_NS;
    int r;

    if (emu_port_is_lost(port))
        return -ENETDOWN;
    if (now_ns >= deadline_ns)
        return -ETIMEDOUT;
    if (until_ns > deadline_ns)
        until_ns = deadline_ns;
    r = wait_for_any(words, seen, n_words, until_ns, cancel);
    if (r == -ETIMEDOUT)
        return until_ns == deadline_ns ? -ETIMEDOUT : 0;
    return r == -EAGAIN ? 0 : r;
}

int emu_port_wait(struct emu_port *port, _Atomic uint32_t *const *words, const uint32_t *seen, unsigned n_words,
                  uint64_t deadline_ns)
{
    struct emu_cancel cancel;
    int r;

    if (n_words == 0 || n_words > WAIT_WORDS_MAX)
        return -EINVAL;
    if (port->times)
        return emu_virtual_port_wait(port, words, seen, n_words, deadline_ns);
    emu_cancel_hold(&cancel);
    r = wait_slice(port, words, seen, n_words, deadline_ns, &cancel);
    emu_cancel_release(&cancel);
    return r;
}
