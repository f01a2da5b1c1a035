/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checked reductions on command, for tests that break something meanwhile. Through emunic-rank, without a launcher:
 *
 *   reducer FOLDER     has an engine and a leaf, tells about them in FOLDER/ce.<rank>, says "ready", obeys lines on its
 *                      standard input, and answers each with one on its standard output:
 *
 *     join RANK...     a tree over these, which have told of themselves: an engine for     joined
 *                      each, that of the first one the root, and each rank a leaf of its
 *     reduce COUNT     COUNT sums, when all have joined                                    reduced COUNT
 *                                                              failed ROUND STATUS | wrong ROUND
 *
 * Each hundredth round says "at ROUND" first.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gni_pub.h>

#define RANKS_MAX 16u

struct place {
    uint32_t nid;
    uint32_t ce_id;
};

struct self {
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_cq_handle_t engine_cq;
    gni_ce_handle_t ce;
    gni_ce_result_t *result;
    gni_mem_handle_t memory;
    gni_ep_handle_t ep; /* on which it posts */
    struct place place;
    uint32_t rank;
    uint64_t n_ranks; /* of the tree */
    uint64_t sum_of_ranks;
    const char *folder;
};

static void check(gni_return_t rc, const char *what)
{
    if (rc == GNI_RC_SUCCESS)
        return;
    fprintf(stderr, "reducer: %s: %s\n", what, gni_err_str[rc]);
    exit(1);
}

static uint32_t number(const char *variable)
{
    const char *text = getenv(variable);

    if (!text) {
        fprintf(stderr, "reducer: %s is not set\n", variable);
        exit(2);
    }
    return (uint32_t)strtoul(text, NULL, 10);
}

static _Noreturn void fail_at(const char *path)
{
    fprintf(stderr, "reducer: %s: %s\n", path, strerror(errno));
    exit(1);
}

static void tell_place(const struct self *self)
{
    char path[512];
    char new_path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/ce.%u", self->folder, self->rank);
    snprintf(new_path, sizeof(new_path), "%s/new.ce.%u", self->folder, self->rank);
    file = fopen(new_path, "w");
    if (!file || fwrite(&self->place, sizeof(self->place), 1, file) != 1 || fclose(file) == EOF ||
        rename(new_path, path) < 0)
        fail_at(path);
}

static struct place place_of(const struct self *self, uint32_t rank)
{
    struct place place;
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/ce.%u", self->folder, rank);
    file = fopen(path, "r");
    if (!file || fread(&place, sizeof(place), 1, file) != 1)
        fail_at(path);
    fclose(file);
    return place;
}

static void start(struct self *self)
{
    self->rank = number("EMUNIC_RANK");
    self->result = aligned_alloc(4096, 4096);
    if (!self->result)
        exit(1);
    check(GNI_CdmCreate(self->rank, (uint8_t)number("PMI_GNI_PTAG"), number("PMI_GNI_COOKIE"), 0, &self->cdm),
          "GNI_CdmCreate");
    check(GNI_CdmAttach(self->cdm, 0, &self->place.nid, &self->nic), "GNI_CdmAttach");
    check(GNI_CqCreate(self->nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &self->cq), "GNI_CqCreate");
    check(GNI_CqCreate(self->nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &self->engine_cq), "GNI_CqCreate");
    check(GNI_MemRegister(self->nic, (uint64_t)(uintptr_t)self->result, 4096, NULL, GNI_MEM_READWRITE, UINT32_MAX,
                          &self->memory),
          "GNI_MemRegister");
    check(GNI_CeCreate(self->nic, &self->ce), "GNI_CeCreate");
    check(GNI_CeGetId(self->ce, &self->place.ce_id), "GNI_CeGetId");
    tell_place(self);
}

static gni_ep_handle_t connect_to(const struct self *self, gni_cq_handle_t cq, uint32_t rank, uint32_t child_id,
                                  gni_ce_child_t type)
{
    const struct place place = place_of(self, rank);
    gni_ep_handle_t ep;

    check(GNI_EpCreate(self->nic, cq, &ep), "GNI_EpCreate");
    check(GNI_EpBind(ep, place.nid, rank), "GNI_EpBind");
    check(GNI_EpSetCeAttr(ep, place.ce_id, child_id, type), "GNI_EpSetCeAttr");
    return ep;
}

/* Child 0 of each engine is its rank; the root's child i is the engine of the i-th rank. */
static void join(struct self *self, const uint32_t *ranks, uint32_t n_ranks)
{
    gni_ep_handle_t children[RANKS_MAX];
    gni_ep_handle_t parent = NULL;
    uint32_t n_children = 0;

    if (self->ep)
        check(GNI_EpDestroy(self->ep), "GNI_EpDestroy");
    children[n_children++] = connect_to(self, NULL, self->rank, 0, GNI_CE_CHILD_PE);
    self->sum_of_ranks = 0;
    self->n_ranks = n_ranks;
    for (uint32_t i = 0; i < n_ranks; i++) {
        self->sum_of_ranks += ranks[i];
        if (i > 0 && ranks[0] == self->rank)
            children[n_children++] = connect_to(self, NULL, ranks[i], i, GNI_CE_CHILD_VCE);
        if (i > 0 && ranks[i] == self->rank)
            parent = connect_to(self, NULL, ranks[0], i, GNI_CE_CHILD_VCE);
    }
    check(GNI_CeConfigure(self->ce, children, n_children, parent, self->engine_cq,
                          GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONERR),
          "GNI_CeConfigure");
    for (uint32_t i = 0; i < n_children; i++)
        check(GNI_EpDestroy(children[i]), "GNI_EpDestroy");
    if (parent)
        check(GNI_EpDestroy(parent), "GNI_EpDestroy");
    self->ep = connect_to(self, self->cq, self->rank, 0, GNI_CE_CHILD_PE);
    printf("joined\n");
}

static gni_return_t reduce_once(struct self *self, uint64_t value, uint64_t id)
{
    gni_post_descriptor_t descr = {
        .type = GNI_POST_CE,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)self->result,
        .local_mem_hndl = self->memory,
        .ce_cmd = GNI_FMA_CE_IADD,
        .ce_red_id = id,
        .first_operand = value,
    };
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_return_t rc;

    memset(self->result, 0, sizeof(*self->result));
    check(GNI_PostFma(self->ep, &descr), "GNI_PostFma");
    while ((rc = GNI_CqGetEvent(self->cq, &entry)) == GNI_RC_NOT_DONE)
        sched_yield();
    if (rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR)
        rc = GNI_GetCompleted(self->cq, entry, &done);
    /* The result comes in any case. */
    do {
        rc = GNI_CeCheckResult(self->result, 1);
    } while (rc == GNI_RC_NOT_DONE);
    return rc;
}

static void reduce(struct self *self, unsigned n)
{
    for (unsigned round = 1; round <= n; round++) {
        gni_return_t rc = reduce_once(self, self->rank + round, round);

        if (rc != GNI_RC_SUCCESS) {
            printf("failed %u %" PRIu64 "\n", round, GNI_CE_RES_GET_STATUS(self->result));
            return;
        }
        if (self->result->result1 != self->sum_of_ranks + self->n_ranks * round ||
            GNI_CE_RES_GET_RED_ID(self->result) != round) {
            printf("wrong %u\n", round);
            return;
        }
        if (round % 100 == 0)
            printf("at %u\n", round);
    }
    printf("reduced %u\n", n);
}

static uint32_t read_ranks(char *words, uint32_t ranks[RANKS_MAX])
{
    uint32_t n = 0;
    char *end;

    for (;; words = end) {
        unsigned long rank = strtoul(words, &end, 10);

        if (end == words || n == RANKS_MAX)
            return n;
        ranks[n++] = (uint32_t)rank;
    }
}

int main(int argc, char **argv)
{
    static struct self self;
    uint32_t ranks[RANKS_MAX];
    char line[128];
    unsigned n;

    if (argc != 2) {
        fprintf(stderr, "usage: reducer FOLDER\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    self.folder = argv[1];
    start(&self);
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "join ", 5) == 0 && (n = read_ranks(line + 5, ranks)) > 0)
            join(&self, ranks, n);
        else if (sscanf(line, "reduce %u", &n) == 1 && self.ep)
            reduce(&self, n);
        else
            return 2;
    }
    check(GNI_CdmDestroy(self.cdm), "GNI_CdmDestroy");
    return 0;
}
