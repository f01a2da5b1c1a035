/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checked transfers on command, for tests that break something meanwhile. Through emunic-rank, without a launcher:
 *
 *   mover FOLDER target    registers memory, tells about it in FOLDER/<rank>, and stays until its standard input ends
 *   mover FOLDER mover     obeys lines on its standard input, and answers each with one on its standard output:
 *
 *     find RANK            learns about a target (again)            found RANK
 *     move RANK COUNT      COUNT rounds: block put, get back,       moved RANK COUNT
 *                          compare, count with an atomic            failed RANK ROUND STATUS | wrong RANK ROUND
 *
 * Each tenth round says "at ROUND" first.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gni_pub.h>

#define BYTES     (256u << 10)
#define RANKS_MAX 16u

struct target {
    uint32_t nid;
    uint32_t rank;
    uint64_t addr; /* BYTES, and a counter behind them */
    gni_mem_handle_t memory;
};

struct self {
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    uint32_t nid;
    uint32_t rank;
    uint8_t *bytes; /* three times BYTES: sent, got, results of atomics */
    gni_mem_handle_t memory;
    struct target targets[RANKS_MAX];
    gni_ep_handle_t eps[RANKS_MAX];
    uint64_t counts[RANKS_MAX]; /* that the target's counter should have */
};

static void check(gni_return_t rc, const char *what)
{
    if (rc == GNI_RC_SUCCESS)
        return;
    fprintf(stderr, "mover: %s: %s\n", what, gni_err_str[rc]);
    exit(1);
}

static uint32_t number(const char *variable)
{
    const char *text = getenv(variable);

    if (!text) {
        fprintf(stderr, "mover: %s is not set\n", variable);
        exit(2);
    }
    return (uint32_t)strtoul(text, NULL, 10);
}

static void attach(struct self *self)
{
    self->rank = number("EMUNIC_RANK");
    self->bytes = aligned_alloc(4096, 3 * BYTES);
    if (!self->bytes)
        exit(1);
    memset(self->bytes, 0, 3 * BYTES);
    check(GNI_CdmCreate(self->rank, (uint8_t)number("PMI_GNI_PTAG"), number("PMI_GNI_COOKIE"), 0, &self->cdm),
          "GNI_CdmCreate");
    check(GNI_CdmAttach(self->cdm, 0, &self->nid, &self->nic), "GNI_CdmAttach");
    check(GNI_CqCreate(self->nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &self->cq), "GNI_CqCreate");
    check(GNI_MemRegister(self->nic, (uint64_t)(uintptr_t)self->bytes, 3 * BYTES, NULL, GNI_MEM_READWRITE, UINT32_MAX,
                          &self->memory),
          "GNI_MemRegister");
}

/* ---- target ---- */

static int be_target(const struct self *self, const char *folder)
{
    struct target target = {
        .nid = self->nid, .rank = self->rank, .addr = (uint64_t)(uintptr_t)self->bytes, .memory = self->memory
    };
    char path[512];
    char new_path[512];
    FILE *file;
    char byte;

    snprintf(path, sizeof(path), "%s/%u", folder, self->rank);
    snprintf(new_path, sizeof(new_path), "%s/new.%u", folder, self->rank);
    file = fopen(new_path, "w");
    if (!file || fwrite(&target, sizeof(target), 1, file) != 1 || fclose(file) == EOF || rename(new_path, path) < 0) {
        fprintf(stderr, "mover: %s: %s\n", path, strerror(errno));
        return 1;
    }
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}

/* ---- mover ---- */

static void find(struct self *self, const char *folder, uint32_t rank)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%u", folder, rank);
    file = fopen(path, "r");
    if (!file || fread(&self->targets[rank], sizeof(self->targets[rank]), 1, file) != 1) {
        fprintf(stderr, "mover: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    fclose(file);
    if (self->eps[rank])
        check(GNI_EpDestroy(self->eps[rank]), "GNI_EpDestroy");
    check(GNI_EpCreate(self->nic, self->cq, &self->eps[rank]), "GNI_EpCreate");
    check(GNI_EpBind(self->eps[rank], self->targets[rank].nid, rank), "GNI_EpBind");
    self->counts[rank] = 0;
    printf("found %u\n", rank);
}

static gni_return_t finish(struct self *self)
{
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_return_t rc;

    do {
        rc = GNI_CqGetEvent(self->cq, &entry);
    } while (rc == GNI_RC_NOT_DONE);
    if (rc != GNI_RC_SUCCESS && rc != GNI_RC_TRANSACTION_ERROR)
        return rc;
    return GNI_GetCompleted(self->cq, entry, &done);
}

static gni_return_t block(struct self *self, uint32_t rank, gni_post_type_t type, uint64_t offset)
{
    gni_post_descriptor_t descr = {
        .type = type,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)(self->bytes + offset),
        .local_mem_hndl = self->memory,
        .remote_addr = self->targets[rank].addr,
        .remote_mem_hndl = self->targets[rank].memory,
        .length = BYTES,
    };
    gni_return_t rc = GNI_PostRdma(self->eps[rank], &descr);

    return rc == GNI_RC_SUCCESS ? finish(self) : rc;
}

/* The counter's value before, into the last part. */
static gni_return_t count(struct self *self, uint32_t rank)
{
    gni_post_descriptor_t descr = {
        .type = GNI_POST_AMO,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)(self->bytes + 2 * BYTES),
        .local_mem_hndl = self->memory,
        .remote_addr = self->targets[rank].addr + BYTES,
        .remote_mem_hndl = self->targets[rank].memory,
        .length = sizeof(uint64_t),
        .amo_cmd = GNI_FMA_ATOMIC_FADD,
        .first_operand = 1,
    };
    gni_return_t rc = GNI_PostFma(self->eps[rank], &descr);

    return rc == GNI_RC_SUCCESS ? finish(self) : rc;
}

static void move(struct self *self, uint32_t rank, unsigned n)
{
    uint64_t counted;

    for (unsigned round = 1; round <= n; round++) {
        gni_return_t rc;

        for (size_t i = 0; i < BYTES; i++)
            self->bytes[i] = (uint8_t)(i * 7 + round * 31 + (i >> 8) + rank);
        memset(self->bytes + BYTES, 0, BYTES);
        rc = block(self, rank, GNI_POST_RDMA_PUT, 0);
        if (rc == GNI_RC_SUCCESS)
            rc = block(self, rank, GNI_POST_RDMA_GET, BYTES);
        if (rc == GNI_RC_SUCCESS)
            rc = count(self, rank);
        if (rc != GNI_RC_SUCCESS) {
            printf("failed %u %u %s\n", rank, round, gni_err_str[rc]);
            return;
        }
        memcpy(&counted, self->bytes + 2 * BYTES, sizeof(counted));
        if (memcmp(self->bytes, self->bytes + BYTES, BYTES) != 0 || counted != self->counts[rank]++) {
            printf("wrong %u %u\n", rank, round);
            return;
        }
        if (round % 10 == 0)
            printf("at %u\n", round);
    }
    printf("moved %u %u\n", rank, n);
}

static int be_mover(struct self *self, const char *folder)
{
    char line[128];
    unsigned rank;
    unsigned n;

    printf("ready\n");
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "find %u", &rank) == 1 && rank < RANKS_MAX)
            find(self, folder, rank);
        else if (sscanf(line, "move %u %u", &rank, &n) == 2 && rank < RANKS_MAX && self->eps[rank])
            move(self, rank, n);
        else
            return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct self self;
    int status;

    if (argc != 3 || (strcmp(argv[2], "target") != 0 && strcmp(argv[2], "mover") != 0)) {
        fprintf(stderr, "usage: mover FOLDER target|mover\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    attach(&self);
    status = strcmp(argv[2], "target") == 0 ? be_target(&self, argv[1]) : be_mover(&self, argv[1]);
    for (unsigned i = 0; i < RANKS_MAX; i++) {
        if (self.eps[i])
            check(GNI_EpDestroy(self.eps[i]), "GNI_EpDestroy");
    }
    check(GNI_MemDeregister(self.nic, &self.memory), "GNI_MemDeregister");
    check(GNI_CqDestroy(self.cq), "GNI_CqDestroy");
    check(GNI_CdmDestroy(self.cdm), "GNI_CdmDestroy");
    free(self.bytes);
    return status;
}
