/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nothing is checked here: emunic's answers are taken as they come, the caller is the one who misbehaves.
 */
#include "tests/common/raw.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int raw_connect(struct raw *raw, const char *server)
{
    int r;

    memset(raw, 0, sizeof(*raw));
    raw->session.fd = raw->table_fd = raw->segment_fd = raw->doorbell = -1;
    r = emu_session_open(&raw->session, server, EMU_SOCKET_CONTROL);
    if (r < 0)
        return r;
    prctl(PR_SET_PTRACER, raw->session.server_pid, 0, 0, 0);
    return 0;
}

int raw_attach(struct raw *raw, uint32_t ptag, uint32_t cookie, uint32_t instance_id, uint32_t nid)
{
    volatile uint64_t probe = 0x1122334455667788;
    struct emu_msg msg = { .type = EMU_MSG_ATTACH,
                           .attach = { .ptag = ptag,
                                       .cookie = cookie,
                                       .instance_id = instance_id,
                                       .nid_wanted = nid,
                                       .probe_addr = (uint64_t)(uintptr_t)&probe,
                                       .probe_value = probe } };
    struct emu_fds fds;
    void *table;
    void *segment;
    int r;

    r = emu_session_request(&raw->session, &msg, NULL, 0, &fds);
    if (r == 0)
        r = msg.result;
    if (r != 0 || fds.n_fds != 3) {
        emu_fds_close(&fds);
        return r != 0 ? r : -EPROTO;
    }
    raw->attach = msg.attach;
    raw->table_fd = fds.fd[0];
    raw->segment_fd = fds.fd[1];
    raw->doorbell = fds.fd[2];
    table = mmap(NULL, msg.attach.table_bytes, PROT_READ, MAP_SHARED, raw->table_fd, 0);
    segment = mmap(NULL, msg.attach.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, raw->segment_fd, 0);
    raw->table = table == MAP_FAILED ? NULL : table;
    raw->segment = segment == MAP_FAILED ? NULL : segment;
    return raw->table && raw->segment ? 0 : -ENOMEM;
}

int raw_open(struct raw *raw, const char *server, uint32_t ptag, uint32_t cookie, uint32_t instance_id, uint32_t nid)
{
    int r = raw_connect(raw, server);

    if (r < 0)
        return r;
    r = raw_attach(raw, ptag, cookie, instance_id, nid);
    if (r != 0)
        raw_close(raw);
    return r;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void raw_close(struct raw *raw)
{
    if (raw->table)
        munmap((void *)(uintptr_t)raw->table, raw->attach.table_bytes);
    if (raw->segment)
        munmap(raw->segment, raw->attach.segment_bytes);
    raw->table = NULL;
    raw->segment = NULL;
    close_fd(&raw->table_fd);
    close_fd(&raw->segment_fd);
    close_fd(&raw->doorbell);
    emu_session_close(&raw->session);
}

int raw_request(struct raw *raw, struct emu_msg *msg)
{
    int r = emu_session_request(&raw->session, msg, NULL, 0, NULL);

    return r < 0 ? r : msg->result;
}

void raw_post(struct raw *raw, const struct emu_cmd *cmd)
{
    struct emu_cmd *slots = (struct emu_cmd *)((char *)raw->segment + raw->segment->slot_off);
    uint64_t tail = atomic_load(&raw->segment->tail);
    uint64_t one = 1;

    slots[tail & (EMU_RING_SLOTS - 1)] = *cmd;
    atomic_store_explicit(&raw->segment->tail, tail + 1, memory_order_release);
    if (write(raw->doorbell, &one, sizeof(one)) < 0)
        return; /* rung so often that the counter is full: it is awake */
}
