/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-15: allreduce of one double over 750 nodes with 16 processes each, by the collective engine and by software.
 *
 * Network phase, simulated packet by packet: nodes form a tree of the engine's radix (32) or a binary one for software;
 * a node that has heard from all its children tells its parent, and from the root the result goes down again.
 * The engine needs no host in between: a message there is the NIC's pipeline and the network, and the host's part,
 * issue and write, is paid once at each end. Software pays a whole MPI message per step.
 *
 * The part within a node is a declared parameter, at most 3 us: 2 x log2(16) steps of host.local_ns. So is
 * host.noise_ns, what noise of the operating system costs per step of a host and core specialisation takes away: each
 * message that software takes pays it, and the engine's host at each end.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/xc.h"
#include "emunic/model/nic_model.h"

enum { NODES_MAX = 750, PROCESSES = 16 };

/* One node of the tree. */
struct vertex {
    uint32_t n_missing; /* children not heard of */
    uint64_t ready_ps;  /* latest of them */
};

struct tree {
    uint32_t n_nodes;
    uint32_t radix;
    enum emu_nic_kind kind;
    struct vertex vertices[NODES_MAX];
    _Atomic uint64_t done_ps; /* latest end at any node */
    _Atomic uint32_t n_done;
};

static uint32_t n_children(const struct tree *t, uint32_t i)
{
    uint64_t first = (uint64_t)i * t->radix + 1;

    if (first >= t->n_nodes)
        return 0;
    return first + t->radix <= t->n_nodes ? t->radix : (uint32_t)(t->n_nodes - first);
}

static void tell(struct tree *t, struct emu_nic_model *nm, uint32_t from, uint32_t to, uint64_t at_ps)
{
    const struct emu_nic_op op = { .kind = t->kind, .to = { to, 0 }, .bytes = 8, .is_told = true };

    (void)emu_nic_post(nm, (struct emu_nic_proc){ from, 0 }, &op, at_ps);
}

static void go_down(struct tree *t, struct emu_nic_model *nm, uint32_t i, uint64_t at_ps)
{
    uint64_t done = t->done_ps;

    for (uint32_t child = 0; child < n_children(t, i); child++)
        tell(t, nm, i, i * t->radix + 1 + child, at_ps);
    while (at_ps > done && !atomic_compare_exchange_strong_explicit(&t->done_ps, &done, at_ps, memory_order_relaxed,
                                                                    memory_order_relaxed))
        ;
    t->n_done++;
}

static void go_up(struct tree *t, struct emu_nic_model *nm, uint32_t i, uint64_t at_ps)
{
    if (i == 0)
        go_down(t, nm, 0, at_ps);
    else
        tell(t, nm, i, (i - 1) / t->radix, at_ps);
}

static void arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct tree *t = ctx;
    uint32_t i = e->at.nid;
    struct vertex *v = &t->vertices[i];

    if (i > 0 && e->peer.nid == (i - 1) / t->radix) {
        go_down(t, nm, i, e->at_ps);
        return;
    }
    v->ready_ps = e->at_ps > v->ready_ps ? e->at_ps : v->ready_ps;
    if (--v->n_missing == 0)
        go_up(t, nm, i, v->ready_ps);
}

static void completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    (void)ctx;
    (void)nm;
    (void)e;
}

/* Time of the network phase, first call to last node. */
static int run_tree(const struct emu_nic_setup *setup, uint32_t n_nodes, uint32_t radix, enum emu_nic_kind kind,
                    double *us_out)
{
    struct tree *t = calloc(1, sizeof(*t));
    const struct emu_nic_program program = { .ctx = t, .completed = completed, .arrived = arrived };
    struct emu_nic_model *nm;
    int r;

    if (!t)
        return -ENOMEM;
    t->n_nodes = n_nodes;
    t->radix = radix;
    t->kind = kind;
    r = emu_nic_model_create(setup, &program, &nm);
    if (r < 0)
        goto out;
    for (uint32_t i = 0; i < n_nodes; i++) {
        t->vertices[i].n_missing = n_children(t, i);
        if (t->vertices[i].n_missing == 0)
            go_up(t, nm, i, 0);
    }
    (void)emu_sim_run(emu_nic_model_sim(nm), 1000000000000);
    if (t->n_done != n_nodes)
        r = -EIO;
    *us_out = (double)t->done_ps / 1e6;
    emu_nic_model_destroy(nm);
out:
    free(t);
    return r;
}

static uint32_t depth_of(uint32_t n_nodes, uint32_t radix)
{
    uint32_t depth = 0;

    for (uint32_t last = n_nodes - 1; last > 0; last = (last - 1) / radix)
        depth++;
    return depth;
}

/* Software and the collective engine on one machine. */
struct contest {
    struct emu_nic_setup software, noisy, engine;
    uint32_t radix;  /* of the engine */
    double local_us; /* steps within a node */
    double ends_us;  /* of the engine: the host before and behind it */
};

/* Allreduce times of one size, us. */
struct times {
    double software;
    double noisy; /* software where cores are disturbed */
    double engine;
};

static struct contest contest_on(struct emu_exp *x, const struct emu_machine *m)
{
    struct contest c = {
        .software = { .machine = m,
                      .host = *emu_machine_node_params(m),
                      .mode = EMU_MODE_ADAPTIVE_0,
                      .seed = emu_exp_context(x)->seed,
                      .n_threads = emu_exp_context(x)->n_threads },
        .radix = emu_machine_nic(m)->ce_children_max,
    };

    c.noisy = c.software;
    c.noisy.host.recv_ps += c.noisy.host.noise_ps;
    c.engine = c.software;
    c.engine.host.issue_ps = 0; /* no host between the two ends */
    c.engine.host.write_ps = 0;
    c.engine.host.put_gap_ps = 0;
    c.ends_us = ((double)c.software.host.issue_ps + c.software.host.write_ps) / 1e6;
    c.local_us = 2 * 4 * (double)c.software.host.local_ps / 1e6; /* 2 x log2(16) steps */
    return c;
}

static int run_size(const struct contest *c, uint32_t n_nodes, struct times *t)
{
    int r = run_tree(&c->software, n_nodes, 2, EMU_NIC_MESSAGE, &t->software);

    if (r == 0)
        r = run_tree(&c->noisy, n_nodes, 2, EMU_NIC_MESSAGE, &t->noisy);
    if (r == 0)
        r = run_tree(&c->engine, n_nodes, c->radix, EMU_NIC_PUT, &t->engine);
    if (r < 0)
        return r;
    t->software += c->local_us;
    t->noisy += c->local_us;
    t->engine += c->ends_us + c->local_us;
    return 0;
}

int emu_xc_allreduce(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 64, 128, 256, 512, 750 };
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    struct times t = { 0 };
    struct emu_machine *m;
    struct contest c;
    bool is_faster = true;
    FILE *data;
    int r = emu_exp_machine(x, "aries:groups=2", &m);

    if (r < 0)
        return r;
    c = contest_on(x, m);
    data = emu_exp_data(x, "allreduce", "Allreduce of one double, 16 processes a node", "processes", "us");
    for (int i = 0; i < N && r == 0; i++) {
        uint32_t n_processes = sizes[i] * PROCESSES;

        r = run_size(&c, sizes[i], &t);
        if (r < 0)
            break;
        is_faster = is_faster && t.engine < t.software;
        emu_exp_detail(x, "%u processes: software %.2f us, with noise %.2f us; engine %.2f us", n_processes, t.software,
                       t.noisy, t.engine);
        if (data)
            fprintf(data, "software\t%u\t%g\nsoftware, specialised cores\t%u\t%g\nengine\t%u\t%g\n", n_processes,
                    t.noisy, n_processes, t.software, n_processes, t.engine);
        emu_exp_progress(x, (i + 1.0) / N);
    }
    if (data)
        fclose(data);
    if (r == 0) {
        emu_exp_class(x, EMU_CLASS_FORMULA);
        emu_exp_exact(x, 'P', "depth_of_750_nodes", "levels", 2, depth_of(750, c.radix));
        emu_exp_at_most(x, 'P', "engine_12000_processes", "us", 10, t.engine);
        emu_exp_class(x, EMU_CLASS_FORMULA);
        emu_exp_at_most(x, 'P', "part_within_a_node", "us", 3, c.local_us);
        emu_exp_holds(x, 'Q', "engine_faster_at_all_sizes", is_faster);
        emu_exp_fitted(x, "software_reaches_the_plots_ceiling", "us", 35, t.noisy,
                       emu_exp_param("host.noise_ns", c.software.host.noise_ps * 1e-3));
        /* The engine's host has a step at each end. */
        emu_exp_above(x, 'Q', "gain_of_specialised_cores_over_the_engines", "us", 2e-6 * c.software.host.noise_ps,
                      t.noisy - t.software);
    }
    emu_machine_destroy(m);
    return r;
}
