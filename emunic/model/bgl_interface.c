/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet waits in the list of its FIFO until the NIC asks for the next one of its class, and is then on its way into
 * the router's channel, which has room: emu_bgl_inject() sees to that. The classes' FIFOs take turns. What has been
 * handed over counts as in the FIFO until the NIC asks again; then it is in the channel.
 */
#include "emunic/model/bgl_interface.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "emunic/fabric/topology.h"

#define GROUP_SHIFT EMU_BGL_TAG_BITS

struct entry {
    STAILQ_ENTRY(entry) link;
    struct emu_packet packet;
};

struct fifo {
    STAILQ_HEAD(, entry) entries;
    uint32_t bytes; /* in the list */
    uint32_t mark;
    bool is_armed;     /* it is on the far side of its mark */
    bool is_watched;   /* injection: a timer will come */
    uint32_t checksum; /* injection */
};

struct node {
    struct fifo injection[EMU_BGL_INJECTION_FIFOS];
    struct fifo reception[EMU_BGL_GROUPS][EMU_BGL_RECEPTION_FIFOS];
    struct {
        uint32_t fifo;
        uint32_t bytes; /* 0: nothing */
    } handed[EMU_TRAFFIC_CLASSES];
    uint32_t last[EMU_TRAFFIC_CLASSES]; /* FIFO that had its turn */
};

struct emu_bgl_interface {
    const struct emu_machine *m;
    struct emu_bgl_interface_options options;
    uint64_t chunk_ps; /* on a link */
    uint32_t chunk_bytes;
    uint32_t fifo_bytes;
    uint32_t n_nodes;
    struct node nodes[];
};

static void init_fifo(struct fifo *f)
{
    STAILQ_INIT(&f->entries);
    f->mark = EMU_BGL_NO_MARK;
}

static void clear_fifo(struct fifo *f)
{
    struct entry *e;

    while ((e = STAILQ_FIRST(&f->entries))) {
        STAILQ_REMOVE_HEAD(&f->entries, link);
        free(e);
    }
}

int emu_bgl_interface_create(const struct emu_machine *m, const struct emu_bgl_interface_options *options,
                             struct emu_bgl_interface **interface_out)
{
    const struct emu_router_params *router = emu_machine_router(m);
    uint32_t n_nodes = emu_machine_n_nodes(m);
    struct emu_bgl_interface *i;

    if (strcmp(emu_machine_topology(m), "bluegene-l-torus") != 0)
        return -EINVAL;
    i = calloc(1, sizeof(*i) + n_nodes * sizeof(i->nodes[0]));
    if (!i)
        return -ENOMEM;
    i->m = m;
    i->options = *options;
    i->chunk_bytes = router->token_units;
    i->chunk_ps = (uint64_t)router->token_units * router->clock_ps; /* a link takes a unit per clock */
    i->fifo_bytes = m->params.torus.bgl.fifo_bytes;
    i->n_nodes = n_nodes;
    for (uint32_t nid = 0; nid < n_nodes; nid++) {
        for (uint32_t k = 0; k < EMU_BGL_INJECTION_FIFOS; k++)
            init_fifo(&i->nodes[nid].injection[k]);
        for (uint32_t k = 0; k < EMU_BGL_GROUPS * EMU_BGL_RECEPTION_FIFOS; k++)
            init_fifo(&i->nodes[nid].reception[k / EMU_BGL_RECEPTION_FIFOS][k % EMU_BGL_RECEPTION_FIFOS]);
    }
    *interface_out = i;
    return 0;
}

void emu_bgl_interface_destroy(struct emu_bgl_interface *i)
{
    if (!i)
        return;
    for (uint32_t nid = 0; nid < i->n_nodes; nid++) {
        for (uint32_t k = 0; k < EMU_BGL_INJECTION_FIFOS; k++)
            clear_fifo(&i->nodes[nid].injection[k]);
        for (uint32_t k = 0; k < EMU_BGL_GROUPS * EMU_BGL_RECEPTION_FIFOS; k++)
            clear_fifo(&i->nodes[nid].reception[k / EMU_BGL_RECEPTION_FIFOS][k % EMU_BGL_RECEPTION_FIFOS]);
    }
    free(i);
}

/* NULL: there is none. */
static struct fifo *find(const struct emu_bgl_interface *i, const struct emu_bgl_fifo *fifo)
{
    struct node *node;

    if (fifo->nid >= i->n_nodes)
        return NULL;
    node = (struct node *)(uintptr_t)&i->nodes[fifo->nid];
    if (fifo->side == EMU_BGL_INJECTION)
        return fifo->group == 0 && fifo->number < EMU_BGL_INJECTION_FIFOS ? &node->injection[fifo->number] : NULL;
    if (fifo->group >= EMU_BGL_GROUPS || fifo->number >= EMU_BGL_RECEPTION_FIFOS)
        return NULL;
    return &node->reception[fifo->group][fifo->number];
}

static uint32_t in_chunks(const struct emu_bgl_interface *i, uint32_t units)
{
    return (units + i->chunk_bytes - 1) / i->chunk_bytes * i->chunk_bytes;
}

uint32_t emu_bgl_fill(const struct emu_bgl_interface *i, const struct emu_sim *sim, const struct emu_bgl_fifo *fifo)
{
    const struct fifo *f = find(i, fifo);
    const struct node *node;
    uint32_t bytes;

    if (!f)
        return 0;
    if (fifo->side == EMU_BGL_RECEPTION)
        return f->bytes;
    node = &i->nodes[fifo->nid];
    bytes = f->bytes + emu_sim_injection_units(sim, fifo->nid, fifo->number);
    for (uint32_t class = 0; class < EMU_TRAFFIC_CLASSES; class ++) {
        if (node->handed[class].fifo == fifo->number)
            bytes += node->handed[class].bytes;
    }
    return bytes;
}

/* ---- watermarks ---- */

static void tell(const struct emu_bgl_interface *i, struct emu_sim *sim, const struct emu_bgl_fifo *fifo,
                 uint32_t bytes, uint64_t now_ps)
{
    if (i->options.interrupt)
        i->options.interrupt(i->options.ctx, sim, fifo, bytes, now_ps);
}

void emu_bgl_set_watermark(struct emu_bgl_interface *i, const struct emu_bgl_fifo *fifo, uint32_t bytes)
{
    struct fifo *f = find(i, fifo);

    if (!f)
        return;
    f->mark = bytes;
    f->is_armed = fifo->side == EMU_BGL_RECEPTION && f->bytes < bytes;
}

/* Of an injection FIFO: has it come down to its mark? */
static void look(struct emu_bgl_interface *i, struct emu_sim *sim, uint32_t nid, uint32_t number, uint64_t now_ps)
{
    const struct emu_bgl_fifo fifo = { .nid = nid, .side = EMU_BGL_INJECTION, .number = number };
    struct fifo *f = &i->nodes[nid].injection[number];
    uint32_t bytes = emu_bgl_fill(i, sim, &fifo);

    f->is_watched = false;
    if (f->mark == EMU_BGL_NO_MARK)
        return;
    if (bytes > f->mark) {
        f->is_armed = true;
        f->is_watched = true;
        emu_sim_call_at(sim, nid, now_ps + i->chunk_ps, number);
    } else if (f->is_armed) {
        f->is_armed = false;
        tell(i, sim, &fifo, bytes, now_ps);
    }
}

static void timer_due(void *ctx, struct emu_sim *sim, uint32_t nid, uint64_t cookie, uint64_t now_ps)
{
    look(ctx, sim, nid, (uint32_t)cookie, now_ps);
}

/* ---- injection ---- */

static uint32_t sum_up(uint32_t checksum, const struct emu_packet *p)
{
    uint64_t h = emu_random_mix(checksum ^ (uint64_t)p->dst_nid << 32);

    h = emu_random_mix(h ^ p->units ^ (uint64_t)p->traffic_class << 16 ^ (uint64_t)p->mode << 24 ^
                       (uint64_t)p->flags << 32);
    h = emu_random_mix(h ^ p->route_state);
    h = emu_random_mix(h ^ p->tag);
    return (uint32_t)(h ^ h >> 32);
}

int emu_bgl_inject(struct emu_bgl_interface *i, struct emu_sim *sim, const struct emu_bgl_fifo *fifo, uint32_t group,
                   const struct emu_packet *packet)
{
    struct fifo *f = fifo->side == EMU_BGL_INJECTION ? find(i, fifo) : NULL;
    struct emu_packet p = *packet;
    struct entry *e;

    p.src_nid = fifo->nid;
    if (!f || group >= EMU_BGL_GROUPS || p.tag >> GROUP_SHIFT != 0 || p.dst_nid >= i->n_nodes || p.units == 0 ||
        p.units > emu_machine_router(i->m)->packet_units_max || emu_bgl_give_fifo(&p, fifo->number) < 0)
        return -EINVAL;
    if (emu_bgl_fill(i, sim, fifo) + in_chunks(i, p.units) > i->fifo_bytes)
        return -EAGAIN;
    e = malloc(sizeof(*e));
    if (!e)
        return -ENOMEM;
    p.tag |= (uint64_t)group << GROUP_SHIFT;
    e->packet = p;
    STAILQ_INSERT_TAIL(&f->entries, e, link);
    f->bytes += in_chunks(i, p.units);
    f->checksum = sum_up(f->checksum, &p);
    emu_sim_wake(sim, fifo->nid, (enum emu_traffic_class)p.traffic_class);
    if (f->mark != EMU_BGL_NO_MARK && !f->is_watched && emu_bgl_fill(i, sim, fifo) > f->mark) {
        f->is_armed = true;
        f->is_watched = true;
        emu_sim_call_at(sim, fifo->nid, p.created_ps + i->chunk_ps, fifo->number);
    }
    return 0;
}

static bool next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                        uint64_t now_ps, struct emu_packet *packet_out)
{
    struct emu_bgl_interface *i = ctx;
    struct node *node = &i->nodes[nid];
    uint32_t first = traffic_class == EMU_TRAFFIC_RESPONSE ? 0 : EMU_BGL_INJECTION_HIGH;
    uint32_t n = traffic_class == EMU_TRAFFIC_RESPONSE ? EMU_BGL_INJECTION_HIGH :
                                                         EMU_BGL_INJECTION_FIFOS - EMU_BGL_INJECTION_HIGH;

    (void)sim;
    (void)now_ps;
    node->handed[traffic_class].bytes = 0;
    for (uint32_t k = 1; k <= n; k++) {
        uint32_t number = first + (node->last[traffic_class] + k) % n;
        struct fifo *f = &node->injection[number];
        struct entry *e = STAILQ_FIRST(&f->entries);

        if (!e)
            continue;
        STAILQ_REMOVE_HEAD(&f->entries, link);
        *packet_out = e->packet;
        free(e);
        node->last[traffic_class] = number - first;
        node->handed[traffic_class].fifo = number;
        node->handed[traffic_class].bytes = in_chunks(i, packet_out->units);
        f->bytes -= node->handed[traffic_class].bytes;
        return true;
    }
    return false;
}

/* ---- reception ---- */

static void delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct emu_bgl_interface *i = ctx;
    const struct emu_bgl_fifo fifo = { .nid = nid,
                                       .side = EMU_BGL_RECEPTION,
                                       .group = (uint32_t)(packet->tag >> GROUP_SHIFT),
                                       .number = emu_bgl_reception_fifo(packet) };
    struct fifo *f = find(i, &fifo);
    struct entry *e = malloc(sizeof(*e));

    if (!e)
        abort(); /* as the simulator does */
    e->packet = *packet;
    e->packet.tag &= (UINT64_C(1) << GROUP_SHIFT) - 1;
    STAILQ_INSERT_TAIL(&f->entries, e, link);
    f->bytes += in_chunks(i, packet->units);
    if (f->is_armed && f->bytes >= f->mark) {
        f->is_armed = false;
        tell(i, sim, &fifo, f->bytes, now_ps);
    }
}

bool emu_bgl_receive(struct emu_bgl_interface *i, const struct emu_bgl_fifo *fifo, struct emu_packet *packet_out)
{
    struct fifo *f = fifo->side == EMU_BGL_RECEPTION ? find(i, fifo) : NULL;
    struct entry *e = f ? STAILQ_FIRST(&f->entries) : NULL;

    if (!e)
        return false;
    STAILQ_REMOVE_HEAD(&f->entries, link);
    *packet_out = e->packet;
    free(e);
    f->bytes -= in_chunks(i, packet_out->units);
    f->is_armed = f->mark != EMU_BGL_NO_MARK && f->bytes < f->mark;
    return true;
}

uint32_t emu_bgl_checksum(const struct emu_bgl_interface *i, const struct emu_bgl_fifo *fifo)
{
    const struct fifo *f = fifo->side == EMU_BGL_INJECTION ? find(i, fifo) : NULL;

    return f ? f->checksum : 0;
}

struct emu_traffic emu_bgl_interface_traffic(struct emu_bgl_interface *i)
{
    return (struct emu_traffic){ .ctx = i, .next = next_packet, .delivered = delivered, .timer = timer_due };
}
