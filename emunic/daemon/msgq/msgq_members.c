/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of shared message queues: one per communication domain and node, while any instance of the node is in it.
 *
 *   made by the first instance -> joined by the others -> closing (one has left in peace: nobody joins) -> empty: freed
 *
 * emunic knows who is in: it hands out the memory, sealed against any change of size, and a slot that is nobody
 * else's. A slot comes free when its port ends, however it ends, so a process that replaces a dead one can join. What
 * is inside the memory is the instances' business (libugni/src/msgq_region.h): emunic never looks at it. Only
 * instances that pass equal attributes get in, because each of them computes the layout from its own.
 *
 * Instances see in the domain table whether those of other nodes still have their region registered. Of nodes of other
 * hosts it tells nothing, so when such a registration ends its host tells the others, who note it in their tables
 * (emu_table_md.ended). What is told while a host is away is lost; who puts something there hears of it all the same.
 */
#include "emunic/daemon/msgq/msgq_members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/abi/control.h"
#include "emunic/base/log.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/users.h"

struct emu_msgq_end {
    LIST_ENTRY(emu_msgq_end) link;
    struct emu_user *user;            /* counted: of the instance that made it */
    const struct emu_member *charged; /* borrowed: whose list that is */
    uint32_t node_index;
    struct emu_shared_file shared; /* its descriptor is owned; in the list of an instance that is in */
    bool is_closing;
    uint32_t n_members;
    struct emu_msgq_shape shape;
    const struct emu_port_end *members[EMU_MSGQ_INSTS_MAX]; /* borrowed: leave before they end */
};

LIST_HEAD(msgqs, emu_msgq_end);

/* Those of a domain; NULL: it never had any. */
static struct msgqs *msgqs_of(const struct emu_domain *domain)
{
    return domain->slots[EMU_DOMAIN_MSGQ];
}

static struct emu_msgq_end *find(const struct emu_port_end *port)
{
    struct emu_msgq_end *q;

    if (!msgqs_of(port->domain))
        return NULL;
    LIST_FOREACH(q, msgqs_of(port->domain), link) {
        if (q->node_index == port->node_index)
            return q;
    }
    return NULL;
}

static bool shape_is_sound(const struct emu_msgq_shape *shape)
{
    return shape->n_insts > 0 && shape->n_insts <= EMU_MSGQ_INSTS_MAX && shape->reserved == 0 &&
           shape->region_bytes > 0 && shape->region_bytes <= UINT32_MAX && shape->region_bytes % 4096 == 0;
}

static int make_region(struct emu_msgq_end *q)
{
    int r;

    q->shared.fd = memfd_create("emunic-msgq", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (q->shared.fd >= 0 && ftruncate(q->shared.fd, (off_t)q->shape.region_bytes) == 0 &&
        fcntl(q->shared.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return 0;
    r = -errno;
    if (q->shared.fd >= 0)
        close(q->shared.fd);
    return r;
}

static int create(struct emu_port_end *port, const struct emu_msgq_shape *shape, struct emu_msgq_end **q_out)
{
    struct emu_user *user = port->member->user;
    struct emu_msgq_end *q;
    int r;

    if (!msgqs_of(port->domain))
        port->domain->slots[EMU_DOMAIN_MSGQ] = calloc(1, sizeof(struct msgqs)); /* an empty list */
    q = msgqs_of(port->domain) ? calloc(1, sizeof(*q)) : NULL;
    if (!q)
        return -ENOMEM;
    q->node_index = port->node_index;
    q->shape = *shape;
    r = emu_user_take(port->server, user, EMU_USER_REGIONS, 1);
    if (r < 0)
        goto err_free;
    r = make_region(q);
    if (r < 0)
        goto err_user;
    q->user = emu_user_get(port->server, user->uid); /* the instance may leave before others */
    LIST_INSERT_HEAD(msgqs_of(port->domain), q, link);
    *q_out = q;
    return 0;

err_user:
    emu_user_give(user, EMU_USER_REGIONS, 1);
err_free:
    free(q);
    return r;
}

/* A free slot, if the port may have it. */
static int find_slot(const struct emu_msgq_end *q, const struct emu_port_end *port, const struct emu_msgq_shape *shape,
                     uint32_t *slot_out)
{
    uint32_t slot = UINT32_MAX;

    if (q->is_closing || memcmp(&q->shape, shape, sizeof(*shape)) != 0)
        return -EALREADY;
    for (uint32_t i = q->shape.n_insts; i-- > 0;) {
        if (!q->members[i])
            slot = i;
        else if (q->members[i] == port || q->members[i]->instance_id == port->instance_id)
            return -EALREADY;
    }
    if (slot == UINT32_MAX)
        return -EALREADY;
    *slot_out = slot;
    return 0;
}

/* The pages count for that instance. */
static void charge(struct emu_msgq_end *q, const struct emu_port_end *port)
{
    if (q->charged)
        LIST_REMOVE(&q->shared, link);
    q->charged = port ? port->member : NULL;
    if (port)
        LIST_INSERT_HEAD(&port->member->shared, &q->shared, link);
}

/* One that is in; NULL: none. */
static const struct emu_port_end *first_of(const struct emu_msgq_end *q)
{
    for (uint32_t i = 0; i < q->shape.n_insts; i++) {
        if (q->members[i])
            return q->members[i];
    }
    return NULL;
}

static int join(struct emu_port_end *port, struct emu_msg_msgq *msgq)
{
    struct emu_msgq_end *q = find(port);
    uint32_t slot = 0;
    int r = 0;

    if (!shape_is_sound(&msgq->shape))
        return -EINVAL;
    if (!q)
        r = create(port, &msgq->shape, &q);
    if (r == 0)
        r = find_slot(q, port, &msgq->shape, &slot);
    if (r < 0)
        return r;
    q->members[slot] = port;
    q->n_members++;
    charge(q, first_of(q));
    msgq->slot = slot;
    emu_log(EMU_LOG_DEBUG, "nid %u inst 0x%x: message queue slot %u of %u", port->nid, port->instance_id, slot,
            q->shape.n_insts);
    return q->shared.fd;
}

/* Takes the port out. False: it was not in. The last one's going frees the region. */
static bool take_out(struct emu_msgq_end *q, const struct emu_port_end *port)
{
    for (uint32_t i = 0; q && i < q->shape.n_insts; i++) {
        if (q->members[i] != port)
            continue;
        q->members[i] = NULL;
        charge(q, first_of(q));
        if (--q->n_members == 0) {
            LIST_REMOVE(q, link);
            close(q->shared.fd);
            emu_user_give(q->user, EMU_USER_REGIONS, 1);
            emu_user_put(port->server, q->user);
            free(q);
        }
        return true;
    }
    return false;
}

static int answer_leave(struct emu_request *request)
{
    const struct emu_port_end *port = request->port;
    struct emu_msgq_end *q = find(port);

    if (!q || !take_out(q, port))
        return -ENOENT;
    /* Freed if that was the last one. */
    q = find(port);
    if (q)
        q->is_closing = true;
    return 0;
}

static void port_end(struct emu_port_end *port)
{
    take_out(find(port), port);
}

static bool is_member(const struct emu_msgq_end *q, const struct emu_port_end *port)
{
    for (uint32_t i = 0; q && i < q->shape.n_insts; i++) {
        if (q->members[i] == port)
            return true;
    }
    return false;
}

void emu_msgq_md_ends(struct emu_port_end *port, uint16_t mdh, const struct emu_table_md *md)
{
    const struct emu_host_msgq ended = {
        .domain = port->domain->common_number, .nid = port->nid, .mdh = mdh, .generation = md->generation
    };
    const struct emu_msgq_end *q = ended.domain == 0 ? NULL : find(port);
    uint8_t message[EMU_HOST_MSGQ_BYTES];

    if (!is_member(q, port) || md->length_bytes != q->shape.region_bytes)
        return;
    emu_host_msgq_put(message, &ended);
    for (uint32_t i = 0; i < emu_hosts_count(port->server); i++) {
        if (i != emu_hosts_own(port->server))
            emu_hosts_answer(port->server, i, message, sizeof(message));
    }
}

static bool take(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_host_msgq ended;
    struct emu_domain *domain;
    uint32_t node;

    if (!emu_host_msgq_parse(bytes, length_bytes, &ended))
        return false;
    domain = emu_hosts_find_domain(server, ended.domain);
    if (!domain)
        return true; /* it has ended */
    node = emu_domain_node_of(domain, ended.nid);
    if (node == EMU_NID_NONE || emu_hosts_of_node(domain, node) != host)
        return false;
    atomic_store(&emu_table_mds(domain->table, node)[ended.mdh].ended, ended.generation);
    return true;
}

/* ---- the part ---- */

static int answer_join(struct emu_request *request)
{
    return emu_request_pass(request, join(request->port, &request->msg->msgq), false);
}

static void domain_end(struct emu_server *server, struct emu_domain *domain)
{
    (void)server;
    free(msgqs_of(domain)); /* empty: the ports have gone */
    domain->slots[EMU_DOMAIN_MSGQ] = NULL;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_MSGQ_JOIN, EMU_MSG_MSGQ_JOIN, EMU_NEEDS_PORT, answer_join },
    { EMU_MSG_MSGQ_LEAVE, EMU_MSG_MSGQ_LEAVE, EMU_NEEDS_PORT, answer_leave },
};
static const struct emu_message_row messages[] = { { EMU_HOST_MSGQ, take } };

const struct emu_part emu_msgq_part = {
    .name = "msgq",
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .hosts = { .messages = messages, .n_messages = EMU_ROWS(messages) },
    .domains = { .end = domain_end },
    .ports = { .end = port_end },
};
