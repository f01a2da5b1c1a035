/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth to the nearest neighbours on a three-dimensional torus, a search for slow links.
 *
 *   gni_topobw [-a MIB] [-s BYTES] [-w WINDOW]
 *
 * One rank on each node. Six phases, X+ X- Y+ Y- Z+ Z-. In each phase every node whose neighbour in that direction is
 * part of the job sends it MIB of data, in messages of BYTES with WINDOW of them outstanding (GNI_PostRdma, puts); all
 * pairs of a phase at once. The bandwidth of a pair is its amount over its time, from the barrier before the phase to
 * the sender's last completion. MB are 2^20 bytes.
 *
 * Rank 0 prints a line for each pair, and for each dimension the least, the largest and the average bandwidth:
 *
 *   c0-0c0s5n1 X+CE c0-0c1s5n1 (11 to 53): 0.0027 seconds = 5945.98 MB/sec
 *
 * The code is direction, kind of link (C cable, B backplane, M mezzanine, G inside a Gemini), and S where the other
 * node of the same Gemini sends in that direction as well, E where it does not.
 *
 * Neighbours come from coordinates (RCA). Two nodes share a Gemini; they are neighbours in Y, so that nodes form rings
 * in Y that are twice as long as those of Geminis. In X and Z the neighbour of a node is the node with the same place
 * on the next Gemini. The last message of a pair is checked.
 */
#include "examples/common.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pmi.h>
#include <rca_lib.h>

#define MIB        1048576.0
#define WINDOW_MAX 64
#define N_PHASES   6
#define CNAME_MAX  48

static const char phase_names[N_PHASES][3] = { "X+", "X-", "Y+", "Y-", "Z+", "Z-" };

struct options {
    double amount_mib;
    unsigned long message_bytes;
    int window;
};

/* A node as its rank tells it to all. */
struct node {
    rs_node_t id;
    int at[3];   /* of its Gemini */
    int on_chip; /* 0, 1 */
    gni_mem_handle_t memory;
    char *in; /* where a neighbour may write message_bytes */
};

struct torus {
    int size[3];
    struct node *nodes; /* by rank */
    int n_nodes;
};

struct sender {
    struct ex_job job;
    struct options options;
    struct torus torus;
    gni_cq_handle_t cq;
    gni_mem_handle_t memory;
    char *in;
    char *out;
};

/* What a sender found in a phase; to_rank -1: it has no neighbour there. */
struct result {
    int to_rank;
    double seconds;
};

/* ---- places ---- */

/* Where along a dimension: nodes count twice in Y. */
static int position(const struct node *node, int dim)
{
    return dim == 1 ? 2 * node->at[1] + node->on_chip : node->at[dim];
}

static int ring(const struct torus *torus, int dim)
{
    return dim == 1 ? 2 * torus->size[1] : torus->size[dim];
}

static int is_neighbour(const struct torus *torus, const struct node *from, const struct node *to, int phase)
{
    int dim = phase / 2;
    int length = ring(torus, dim);
    int step = phase % 2 == 0 ? 1 : length - 1;

    for (int i = 0; i < 3; i++) {
        if (i != dim && from->at[i] != to->at[i])
            return 0;
    }
    if (dim != 1 && from->on_chip != to->on_chip)
        return 0;
    return length > 1 && position(to, dim) == (position(from, dim) + step) % length;
}

/* -1: none in the job. */
static int neighbour_of(const struct torus *torus, int rank, int phase)
{
    for (int i = 0; i < torus->n_nodes; i++) {
        if (is_neighbour(torus, &torus->nodes[rank], &torus->nodes[i], phase))
            return i;
    }
    return -1;
}

static int is_same_cage(const rs_node_t *a, const rs_node_t *b)
{
    return a->rs_node_s._node_x == b->rs_node_s._node_x && a->rs_node_s._node_row == b->rs_node_s._node_row &&
           a->rs_node_s._node_cage == b->rs_node_s._node_cage;
}

static char kind_of_link(const struct node *from, const struct node *to, int phase)
{
    int slots = abs((int)from->id.rs_node_s._node_slot - (int)to->id.rs_node_s._node_slot);

    if (phase / 2 == 0 || !is_same_cage(&from->id, &to->id))
        return 'C';
    if (phase / 2 == 2)
        return slots == 1 ? 'B' : 'C';
    if (memcmp(from->at, to->at, sizeof(from->at)) == 0)
        return 'G';
    return slots == 0 ? 'M' : 'C';
}

static char share_of(const struct torus *torus, const struct result *results, int rank)
{
    const struct node *own = &torus->nodes[rank];

    for (int i = 0; i < torus->n_nodes; i++) {
        const struct node *other = &torus->nodes[i];

        if (i != rank && memcmp(other->at, own->at, sizeof(own->at)) == 0 && results[i].to_rank >= 0)
            return 'S';
    }
    return 'E';
}

static const char *name_of(const struct node *node, char name[CNAME_MAX])
{
    snprintf(name, CNAME_MAX, "c%u-%uc%us%un%u", (unsigned)node->id.rs_node_s._node_x,
             (unsigned)node->id.rs_node_s._node_row, (unsigned)node->id.rs_node_s._node_cage,
             (unsigned)node->id.rs_node_s._node_slot, (unsigned)node->id.rs_node_s._node_modcomp);
    return name;
}

/* ---- transfers ---- */

static void post(struct sender *s, gni_ep_handle_t ep, const struct node *to, gni_post_descriptor_t *descr)
{
    memset(descr, 0, sizeof(*descr));
    descr->type = GNI_POST_RDMA_PUT;
    descr->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    descr->dlvr_mode = GNI_DLVMODE_PERFORMANCE;
    descr->local_addr = (uint64_t)s->out;
    descr->local_mem_hndl = s->memory;
    descr->remote_addr = (uint64_t)to->in;
    descr->remote_mem_hndl = to->memory;
    descr->length = s->options.message_bytes;
    descr->src_cq_hndl = s->cq;
    EX_GNI(GNI_PostRdma(ep, descr));
}

static unsigned long n_messages(const struct options *options)
{
    return (unsigned long)(options->amount_mib * MIB / (double)options->message_bytes);
}

static double send_all(struct sender *s, gni_ep_handle_t ep, const struct node *to)
{
    gni_post_descriptor_t descr[WINDOW_MAX];
    gni_post_descriptor_t *done;
    unsigned long n = n_messages(&s->options);
    unsigned long posted = 0;
    double start_us = ex_time_us();

    for (; posted < n && posted < (unsigned long)s->options.window; posted++)
        post(s, ep, to, &descr[posted]);
    for (unsigned long completed = 0; completed < n; completed++) {
        EX_GNI(GNI_GetCompleted(s->cq, ex_wait_event(s->cq), &done));
        if (posted < n) {
            post(s, ep, to, done);
            posted++;
        }
    }
    return (ex_time_us() - start_us) * 1e-6;
}

/* The seed tells sender and phase, so that a stale or misplaced message shows. */
static uint32_t seed_of(int rank, int phase)
{
    return (uint32_t)(rank * N_PHASES + phase);
}

static void check(const struct sender *s, int phase)
{
    int from = neighbour_of(&s->torus, s->job.rank, phase ^ 1);
    size_t wrong;

    if (from < 0)
        return;
    wrong = ex_pattern_check(s->in, s->options.message_bytes, seed_of(from, phase));
    EX_EXPECT(wrong == s->options.message_bytes, "%s from rank %d: byte %zu is wrong", phase_names[phase], from, wrong);
}

static struct result run_phase(struct sender *s, int phase)
{
    struct result result = { .to_rank = neighbour_of(&s->torus, s->job.rank, phase) };
    gni_ep_handle_t ep = NULL;

    ex_pattern_fill(s->out, s->options.message_bytes, seed_of(s->job.rank, phase));
    if (result.to_rank >= 0)
        ep = ex_connect(&s->job, s->cq, result.to_rank);
    ex_barrier();
    if (ep)
        result.seconds = send_all(s, ep, &s->torus.nodes[result.to_rank]);
    ex_barrier();
    check(s, phase);
    if (ep)
        ex_disconnect(ep, s->cq);
    return result;
}

/* ---- report ---- */

struct summary {
    double least, most, sum;
    int least_rank, most_rank, n;
};

static void add(struct summary *summary, int rank, double rate)
{
    if (summary->n == 0 || rate < summary->least) {
        summary->least = rate;
        summary->least_rank = rank;
    }
    if (summary->n == 0 || rate > summary->most) {
        summary->most = rate;
        summary->most_rank = rank;
    }
    summary->sum += rate;
    summary->n++;
}

static void print_phase(const struct sender *s, int phase, const struct result *results, struct summary *summary)
{
    const struct torus *torus = &s->torus;
    double mib = (double)n_messages(&s->options) * (double)s->options.message_bytes / MIB;
    char from[CNAME_MAX], to[CNAME_MAX];

    for (int rank = 0; rank < torus->n_nodes; rank++) {
        const struct node *a = &torus->nodes[rank];
        const struct node *b;

        if (results[rank].to_rank < 0)
            continue;
        b = &torus->nodes[results[rank].to_rank];
        printf("%s %s%c%c %s (%u to %u): %.4g seconds = %.2f MB/sec\n", name_of(a, from), phase_names[phase],
               kind_of_link(a, b, phase), share_of(torus, results, rank), name_of(b, to),
               (unsigned)a->id.rs_node_s._node_id, (unsigned)b->id.rs_node_s._node_id, results[rank].seconds,
               mib / results[rank].seconds);
        add(summary, rank, mib / results[rank].seconds);
    }
}

static void print_summary(const struct torus *torus, char dim, const struct summary *summary)
{
    char least[CNAME_MAX], most[CNAME_MAX];

    if (summary->n == 0)
        printf("%c: no neighbours\n", dim);
    else
        printf("%c: min %.2f (%s), max %.2f (%s), avg %.2f MB/sec\n", dim, summary->least,
               name_of(&torus->nodes[summary->least_rank], least), summary->most,
               name_of(&torus->nodes[summary->most_rank], most), summary->sum / summary->n);
}

/* ---- life ---- */

static void check_nodes(const struct torus *torus)
{
    for (int i = 0; i < torus->n_nodes; i++) {
        for (int j = i + 1; j < torus->n_nodes; j++)
            EX_EXPECT(torus->nodes[i].id.rs_node_s._node_id != torus->nodes[j].id.rs_node_s._node_id,
                      "ranks %d and %d are on one node: one rank a node is needed", i, j);
    }
}

static void open_sender(struct sender *s)
{
    struct node own = { 0 };
    rca_mesh_coord_t at, largest;

    ex_start(&s->job, 0);
    EX_EXPECT(s->job.device_type == GNI_DEVICE_GEMINI,
              "needs a machine with Gemini: neighbours are those of its torus");
    s->in = ex_alloc(2 * s->options.message_bytes);
    s->out = s->in + s->options.message_bytes;
    EX_GNI(GNI_CqCreate(s->job.nic, 2 * WINDOW_MAX, 0, GNI_CQ_NOBLOCK, NULL, NULL, &s->cq));
    EX_GNI(GNI_MemRegister(s->job.nic, (uint64_t)s->in, 2 * s->options.message_bytes, NULL, GNI_MEM_READWRITE,
                           (uint32_t)-1, &s->memory));
    EX_EXPECT(rca_get_nodeid(&own.id) == 0 && rca_get_meshcoord((uint32_t)own.id.rs_node_s._node_id, &at) == 0 &&
                  rca_get_max_dimension(&largest) == 0,
              "the coordinates of this node are not known");
    own.at[0] = at.mesh_x;
    own.at[1] = at.mesh_y;
    own.at[2] = at.mesh_z;
    own.on_chip = own.id.rs_node_s._node_modcomp & 1;
    own.memory = s->memory;
    own.in = s->in;
    s->torus.size[0] = largest.mesh_x + 1;
    s->torus.size[1] = largest.mesh_y + 1;
    s->torus.size[2] = largest.mesh_z + 1;
    s->torus.n_nodes = s->job.n_ranks;
    s->torus.nodes = ex_alloc(sizeof(*s->torus.nodes) * (size_t)s->job.n_ranks);
    ex_allgather(&s->job, &own, s->torus.nodes, sizeof(own));
    check_nodes(&s->torus);
}

static void close_sender(struct sender *s)
{
    ex_barrier();
    EX_GNI(GNI_MemDeregister(s->job.nic, &s->memory));
    EX_GNI(GNI_CqDestroy(s->cq));
    free(s->torus.nodes);
    free(s->in);
    ex_stop(&s->job);
}

static void usage(FILE *to)
{
    fputs("usage: gni_topobw [-a MIB] [-s BYTES] [-w WINDOW]\n"
          "  -a MIB     amount of each pair in MiB, also a part of one (default 16)\n"
          "  -s BYTES   of a message (default 1048576)\n"
          "  -w WINDOW  messages outstanding, 1 to 64 (default 8)\n"
          "example: emunic run -n 16 --machine gemini --time virtual -- gni_topobw\n",
          to);
}

static int read_options(struct options *options, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "a:s:w:h")) != -1) {
        if (option == 'a') {
            options->amount_mib = strtod(optarg, NULL);
        } else if (option == 's') {
            options->message_bytes = strtoul(optarg, NULL, 0);
        } else if (option == 'w') {
            options->window = atoi(optarg);
        } else {
            usage(option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (options->window < 1 || options->window > WINDOW_MAX || options->message_bytes < 8 ||
        options->message_bytes % 8 != 0 || options->message_bytes > 1ul << 30 || !(options->amount_mib <= 0x1p30) ||
        n_messages(options) < 1 || optind != argc) {
        fputs(
            "gni_topobw: a window is 1 to 64, a message a multiple of 8 bytes, an amount at least a message; try -h\n",
            stderr);
        return 2;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct sender sender = { .options = { .amount_mib = 16, .message_bytes = 1u << 20, .window = 8 } };
    struct summary summaries[3] = { 0 };
    struct result *results;
    int status = read_options(&sender.options, argc, argv);

    if (status >= 0)
        return status;
    open_sender(&sender);
    results = ex_alloc(sizeof(*results) * (size_t)sender.job.n_ranks);
    for (int phase = 0; phase < N_PHASES; phase++) {
        struct result own = run_phase(&sender, phase);

        ex_allgather(&sender.job, &own, results, sizeof(own));
        if (sender.job.rank == 0)
            print_phase(&sender, phase, results, &summaries[phase / 2]);
    }
    for (int dim = 0; dim < 3 && sender.job.rank == 0; dim++)
        print_summary(&sender.torus, "XYZ"[dim], &summaries[dim]);
    free(results);
    close_sender(&sender);
    return 0;
}
