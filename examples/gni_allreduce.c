/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions in the network: a tree of collective engines over all ranks.
 *
 *   gni_allreduce [-n ROUNDS] [-c CHILDREN]
 *
 * Rank r hosts engine r as long as there are engines to host. Engine e has up to CHILDREN children: first other engines
 * (e * CHILDREN + 1 and so on, as in a heap), then ranks; the last engines have ranks only. When the tree stands, a
 * rank knows one thing about it: its own engine and its number there.
 *
 * Each round all ranks post a value and find the result in their memory: a sum, a bitwise OR, the smallest value and
 * the lowest rank that has it, a sum of doubles, and two sums at once. Every result is compared with what the rank
 * computes from the inputs of all, which anybody can know. Nobody but the NIC works between the post and the result.
 *
 * Ranks on one node share its engines (4 on Aries); a rank whose node has none left ends the job with that message.
 */
#include "examples/common.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CQ_ENTRIES 64

struct tree {
    const struct ex_job *job;
    int n_children; /* of an engine, at most */
    int n_engines;
    gni_cq_handle_t cq;        /* of posts */
    gni_cq_handle_t engine_cq; /* of the engine */
    gni_ce_handle_t ce;        /* ours, if we host one */
    gni_ep_handle_t child_eps[GNI_CE_MAX_CHILDREN];
    gni_ep_handle_t parent_ep;
    uint32_t n_child_eps;
    gni_ep_handle_t ep; /* on which we post */
    gni_ce_result_t *result;
    gni_mem_handle_t memory;
};

/* The engines form a heap; the ranks fill the places that engines leave. */
static int n_engine_children(const struct tree *tree, int engine)
{
    int first = engine * tree->n_children + 1;
    int left = tree->n_engines - first;

    return left <= 0 ? 0 : left < tree->n_children ? left : tree->n_children;
}

static void place_of_rank(const struct tree *tree, int rank, int *engine_out, uint32_t *child_out)
{
    for (int engine = 0; engine < tree->n_engines; engine++) {
        int n_ranks = tree->n_children - n_engine_children(tree, engine);

        if (rank < n_ranks) {
            *engine_out = engine;
            *child_out = (uint32_t)(n_engine_children(tree, engine) + rank);
            return;
        }
        rank -= n_ranks;
    }
    EX_FAIL("no place in the tree");
}

static int count_engines(int n_ranks, int n_children)
{
    int n = 1;

    /* n engines have n * n_children places, and n - 1 of those are engines'. */
    while (n * n_children - (n - 1) < n_ranks)
        n++;
    return n;
}

/* ---- building ---- */

static gni_ep_handle_t connect_as(const struct tree *tree, gni_cq_handle_t cq, int rank, uint32_t ce_id,
                                  uint32_t child_id, gni_ce_child_t type)
{
    gni_ep_handle_t ep = ex_connect(tree->job, cq, rank);

    EX_GNI(GNI_EpSetCeAttr(ep, ce_id, child_id, type));
    return ep;
}

static void configure_engine(struct tree *tree, const uint32_t *ids)
{
    const int me = tree->job->rank;
    const int n_engines_below = n_engine_children(tree, me);

    for (int i = 0; i < n_engines_below; i++) {
        int engine = me * tree->n_children + 1 + i;

        tree->child_eps[tree->n_child_eps] = connect_as(tree, NULL, engine, ids[engine], (uint32_t)i, GNI_CE_CHILD_VCE);
        tree->n_child_eps++;
    }
    for (int rank = 0; rank < tree->job->n_ranks; rank++) {
        uint32_t child;
        int engine;

        place_of_rank(tree, rank, &engine, &child);
        if (engine != me)
            continue;
        tree->child_eps[tree->n_child_eps] = connect_as(tree, NULL, rank, 0, child, GNI_CE_CHILD_PE);
        tree->n_child_eps++;
    }
    if (me > 0) {
        int parent = (me - 1) / tree->n_children;

        tree->parent_ep =
            connect_as(tree, NULL, parent, ids[parent], (uint32_t)((me - 1) % tree->n_children), GNI_CE_CHILD_VCE);
    }
    EX_GNI(GNI_CeConfigure(tree->ce, tree->child_eps, tree->n_child_eps, tree->parent_ep, tree->engine_cq,
                           GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONERR));
}

static void tree_open(struct tree *tree)
{
    const struct ex_job *job = tree->job;
    uint32_t *ids = ex_alloc(sizeof(*ids) * (size_t)job->n_ranks);
    uint32_t mine = 0;
    uint32_t child;
    int engine;

    EX_GNI(GNI_CqCreate(job->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tree->cq));
    EX_GNI(GNI_CqCreate(job->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tree->engine_cq));
    tree->result = ex_alloc(sizeof(*tree->result)); /* page-aligned: 32 bytes are asked for */
    EX_GNI(GNI_MemRegister(job->nic, (uint64_t)tree->result, sizeof(*tree->result), NULL, GNI_MEM_READWRITE,
                           (uint32_t)-1, &tree->memory));
    if (job->rank < tree->n_engines) {
        EX_GNI(GNI_CeCreate(job->nic, &tree->ce));
        EX_GNI(GNI_CeGetId(tree->ce, &mine));
    }
    ex_allgather(job, &mine, ids, sizeof(mine));
    if (job->rank < tree->n_engines)
        configure_engine(tree, ids);
    place_of_rank(tree, job->rank, &engine, &child);
    tree->ep = connect_as(tree, tree->cq, engine, ids[engine], child, GNI_CE_CHILD_PE);
    ex_barrier(); /* a post to an engine that is not configured would fail */
    free(ids);
}

static void tree_close(struct tree *tree)
{
    ex_barrier(); /* the tree ends with its first engine */
    ex_disconnect(tree->ep, tree->cq);
    if (tree->ce)
        EX_GNI(GNI_CeDestroy(tree->ce));
    for (uint32_t i = 0; i < tree->n_child_eps; i++)
        EX_GNI(GNI_EpDestroy(tree->child_eps[i]));
    if (tree->parent_ep)
        EX_GNI(GNI_EpDestroy(tree->parent_ep));
    EX_GNI(GNI_MemDeregister(tree->job->nic, &tree->memory));
    EX_GNI(GNI_CqDestroy(tree->cq));
    EX_GNI(GNI_CqDestroy(tree->engine_cq));
    free(tree->result);
}

/* ---- reducing ---- */

/* One reduction over all ranks. Exceptions in floating point are for the caller to judge. */
static void reduce(struct tree *tree, gni_ce_cmd_type_t command, uint32_t mode, uint64_t first, uint64_t second,
                   uint64_t id)
{
    gni_post_descriptor_t descr = {
        .type = GNI_POST_CE,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)tree->result,
        .local_mem_hndl = tree->memory,
        .ce_cmd = command,
        .ce_mode = mode,
        .ce_red_id = id,
        .first_operand = first,
        .second_operand = second,
    };
    gni_return_t rc;

    memset(tree->result, 0, sizeof(*tree->result));
    EX_GNI(GNI_PostFma(tree->ep, &descr));
    ex_wait_post(tree->cq, &descr);
    while ((rc = GNI_CeCheckResult(tree->result, 1)) == GNI_RC_NOT_DONE)
        ex_idle();
    ex_busy();
    EX_EXPECT(rc == GNI_RC_SUCCESS || GNI_CE_RES_STATUS_OK(tree->result), "reduction %llu: status %llu",
              (unsigned long long)id, (unsigned long long)GNI_CE_RES_GET_STATUS(tree->result));
    EX_EXPECT(GNI_CE_RES_GET_RED_ID(tree->result) == id, "result of reduction %llu instead of %llu",
              (unsigned long long)GNI_CE_RES_GET_RED_ID(tree->result), (unsigned long long)id);
}

static void expect(const struct tree *tree, const char *what, uint64_t first, uint64_t second)
{
    EX_EXPECT(tree->result->result1 == first && tree->result->result2 == second,
              "%s: 0x%llx, 0x%llx instead of 0x%llx, 0x%llx", what, (unsigned long long)tree->result->result1,
              (unsigned long long)tree->result->result2, (unsigned long long)first, (unsigned long long)second);
}

/* What a rank hands in; everybody can compute everybody's. */
static uint64_t value_of(int rank, int round)
{
    return ((uint64_t)rank * 2654435761u + (uint64_t)round * 40503u) >> 4 & 0xfff;
}

static uint64_t double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void run_round(struct tree *tree, int round)
{
    const int n_ranks = tree->job->n_ranks;
    const uint64_t mine = value_of(tree->job->rank, round);
    uint64_t id = (uint64_t)round * 5;
    uint64_t sum = 0, any = 0, smallest = UINT64_MAX, where = 0;

    for (int rank = 0; rank < n_ranks; rank++) {
        uint64_t value = value_of(rank, round);

        sum += value;
        any |= value;
        if (value < smallest) {
            smallest = value;
            where = (uint64_t)rank;
        }
    }
    reduce(tree, GNI_FMA_CE_IADD, 0, mine, 0, id);
    expect(tree, "sum", sum, 0);
    reduce(tree, GNI_FMA_CE_OR_S, 0, mine, 0, id + 1);
    expect(tree, "or", any, 0);
    reduce(tree, GNI_FMA_CE_IMIN_LIDX, 0, mine, (uint64_t)tree->job->rank, id + 2);
    expect(tree, "smallest and its rank", smallest, where);
    /* Small integers and quarters have exact sums; others would report GNI_CE_FPE_PRECISION. */
    reduce(tree, GNI_FMA_CE_FPADD, 0, double_bits((double)mine / 4), 0, id + 3);
    EX_EXPECT(GNI_CE_RES_GET_FPE(tree->result) == 0, "exceptions in an exact sum");
    expect(tree, "sum of doubles", double_bits((double)sum / 4), 0);
    reduce(tree, GNI_FMA_CE_IADD, GNI_CEMODE_TWO_OP, 1, mine, id + 4);
    expect(tree, "two sums", (uint64_t)n_ranks, sum);
}

int main(int argc, char **argv)
{
    struct ex_job job;
    struct tree tree = { .job = &job, .n_children = 4 };
    int n_rounds = 1000, option;
    double taken_us;

    while ((option = getopt(argc, argv, "n:c:h")) != -1) {
        if (option == 'n') {
            n_rounds = atoi(optarg);
        } else if (option == 'c') {
            tree.n_children = atoi(optarg);
        } else {
            fputs("usage: gni_allreduce [-n ROUNDS] [-c CHILDREN]\n"
                  "example: emunic run -n 16 --ppn 1 -- gni_allreduce -c 3\n",
                  option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (n_rounds < 1 || n_rounds > 1000000 || tree.n_children < 2 || tree.n_children > GNI_CE_MAX_CHILDREN ||
        optind != argc) {
        fprintf(stderr, "gni_allreduce: 1 to 1000000 rounds, 2 to %d children; try -h\n", GNI_CE_MAX_CHILDREN);
        return 2;
    }

    ex_start(&job, 0);
    tree.n_engines = count_engines(job.n_ranks, tree.n_children);
    tree_open(&tree);
    taken_us = ex_time_us();
    for (int round = 0; round < n_rounds; round++)
        run_round(&tree, round);
    taken_us = ex_time_us() - taken_us;
    if (job.rank == 0)
        printf("allreduce: %d ranks, %d engines of %d children: %d reductions, all right, %.3f us each\n", job.n_ranks,
               tree.n_engines, tree.n_children, 5 * n_rounds, taken_us / (5.0 * n_rounds));
    tree_close(&tree);
    ex_stop(&job);
    return 0;
}
