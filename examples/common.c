/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start-up, waiting and error reporting for the examples.
 *
 * Identity: the rank is the instance id of the communication domain, so (NIC address, rank) reaches every process
 * of the job, however many share a node. Addresses travel by PMI_Allgather, whose order is not the rank order on
 * every system; each record therefore carries its rank.
 *
 * Credentials: the launcher hands out ptag and cookie in the environment, as lists separated by colons, one element
 * for each domain it set up. The first element is used. They are complete after PMI_Init(), not necessarily before.
 *
 * Waiting: GNI queues are polled. A poll that finds nothing is not free of charge for others, but the library
 * decides how to be polite; the program only polls again. A minute without any progress ends the job with a
 * message.
 */
#include "examples/common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pmi.h>

#define IDLE_LIMIT_US 60e6
/* Polls between two looks at the clock. */
#define IDLE_CHECK    1024

static int my_rank = -1;
static uint64_t idle_polls;
static double idle_since_us;

_Noreturn void ex_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "%s:%d: rank %d: ", file, line, my_rank);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    if (my_rank >= 0)
        PMI_Abort(1, "example failed");
    exit(1);
}

void ex_gni_check(gni_return_t rc, const char *call, const char *file, int line)
{
    if (rc != GNI_RC_SUCCESS)
        ex_fail(file, line, "%s: %s", call, gni_err_str[rc]);
}

/* First element of a colon list of numbers. PMI implementations write some of them with a sign. */
static uint32_t env_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long long value;

    EX_EXPECT(text, "%s is not set: start the program with the launcher of the system", name);
    value = strtoll(text, &end, 10);
    EX_EXPECT(end != text && (*end == '\0' || *end == ':'), "%s: '%s' is not a list of numbers", name, text);
    return (uint32_t)value;
}

void ex_allgather(const struct ex_job *job, const void *in, void *out, size_t len_bytes)
{
    size_t record_len = sizeof(int) + len_bytes;
    char *record = ex_alloc(record_len);
    char *all = ex_alloc(record_len * (size_t)job->n_ranks);

    memcpy(record, &job->rank, sizeof(int));
    memcpy(record + sizeof(int), in, len_bytes);
    EX_EXPECT(PMI_Allgather(record, all, (int)record_len) == PMI_SUCCESS, "PMI_Allgather of %zu bytes failed",
              record_len);
    for (int i = 0; i < job->n_ranks; i++) {
        const char *from = all + record_len * (size_t)i;
        int rank;

        memcpy(&rank, from, sizeof(rank));
        EX_EXPECT(rank >= 0 && rank < job->n_ranks, "PMI_Allgather gave rank %d of %d", rank, job->n_ranks);
        memcpy((char *)out + len_bytes * (size_t)rank, from + sizeof(int), len_bytes);
    }
    free(all);
    free(record);
}

void ex_start(struct ex_job *job, uint32_t mode_bits)
{
    struct ex_peer self;
    int spawned;

    memset(job, 0, sizeof(*job));
    EX_EXPECT(PMI_Init(&spawned) == PMI_SUCCESS, "PMI_Init failed");
    EX_EXPECT(PMI_Get_size(&job->n_ranks) == PMI_SUCCESS, "PMI_Get_size failed");
    EX_EXPECT(PMI_Get_rank(&job->rank) == PMI_SUCCESS, "PMI_Get_rank failed");
    my_rank = job->rank;

    EX_GNI(GNI_GetDeviceType(&job->device_type));
    EX_GNI(GNI_CdmCreate((uint32_t)job->rank, (uint8_t)env_number("PMI_GNI_PTAG"), env_number("PMI_GNI_COOKIE"),
                         GNI_CDM_MODE_ERR_NO_KILL | mode_bits, &job->cdm));
    self.inst_id = (uint32_t)job->rank;
    EX_GNI(GNI_CdmAttach(job->cdm, 0, &self.nic_addr, &job->nic));

    job->peers = ex_alloc(sizeof(*job->peers) * (size_t)job->n_ranks);
    ex_allgather(job, &self, job->peers, sizeof(self));
}

void ex_stop(struct ex_job *job)
{
    ex_barrier();
    EX_GNI(GNI_CdmDestroy(job->cdm));
    free(job->peers);
    PMI_Finalize();
}

void ex_barrier(void)
{
    EX_EXPECT(PMI_Barrier() == PMI_SUCCESS, "PMI_Barrier failed");
}

void *ex_alloc(size_t len_bytes)
{
    void *memory;

    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), len_bytes) != 0)
        EX_FAIL("no memory for %zu bytes", len_bytes);
    return memset(memory, 0, len_bytes);
}

gni_ep_handle_t ex_connect(const struct ex_job *job, gni_cq_handle_t src_cq, int peer)
{
    gni_ep_handle_t ep;

    EX_GNI(GNI_EpCreate(job->nic, src_cq, &ep));
    EX_GNI(GNI_EpBind(ep, job->peers[peer].nic_addr, job->peers[peer].inst_id));
    return ep;
}

void ex_disconnect(gni_ep_handle_t ep, gni_cq_handle_t src_cq)
{
    gni_return_t rc;
    gni_cq_entry_t entry;

    /* NOT_DONE: something sent on this endpoint is still under way, or its completion was not collected. */
    while ((rc = GNI_EpUnbind(ep)) == GNI_RC_NOT_DONE) {
        if (!src_cq || GNI_CqGetEvent(src_cq, &entry) == GNI_RC_NOT_DONE)
            ex_idle();
    }
    ex_busy();
    ex_gni_check(rc, "GNI_EpUnbind(ep)", __FILE__, __LINE__);
    EX_GNI(GNI_EpDestroy(ep));
}

gni_cq_entry_t ex_wait_event(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry = 0;
    gni_return_t rc;
    char text[256];

    while ((rc = GNI_CqGetEvent(cq, &entry)) == GNI_RC_NOT_DONE)
        ex_idle();
    ex_busy();
    if (rc == GNI_RC_TRANSACTION_ERROR && GNI_CqErrorStr(entry, text, sizeof(text)) == GNI_RC_SUCCESS)
        EX_FAIL("completion entry %#llx reports an error: %s", (unsigned long long)entry, text);
    ex_gni_check(rc, "GNI_CqGetEvent(cq, &entry)", __FILE__, __LINE__);
    EX_EXPECT(!GNI_CQ_OVERRUN(entry), "completion queue overran");
    return entry;
}

void ex_wait_post(gni_cq_handle_t src_cq, const gni_post_descriptor_t *descr)
{
    gni_cq_entry_t entry = ex_wait_event(src_cq);
    gni_post_descriptor_t *completed;

    EX_GNI(GNI_GetCompleted(src_cq, entry, &completed));
    EX_EXPECT(completed == descr, "GNI_GetCompleted returned descriptor %p instead of %p", (void *)completed,
              (const void *)descr);
}

double ex_time_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

void ex_busy(void)
{
    idle_polls = 0;
}

void ex_idle(void)
{
    if (++idle_polls % IDLE_CHECK != 0)
        return;
    if (idle_polls == IDLE_CHECK)
        idle_since_us = ex_time_us();
    else if (ex_time_us() - idle_since_us > IDLE_LIMIT_US)
        EX_FAIL("nothing happened for %.0f s", IDLE_LIMIT_US * 1e-6);
}

/* Each 8-byte word differs from its neighbours in every byte, and from the same word of another seed. */
static uint64_t pattern_word(size_t word, uint32_t seed)
{
    uint64_t x = ((uint64_t)seed << 32) + word + 1;

    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

void ex_pattern_fill(void *buffer, size_t len_bytes, uint32_t seed)
{
    char *at = buffer;

    for (size_t word = 0; word * 8 < len_bytes; word++) {
        uint64_t value = pattern_word(word, seed);
        size_t rest = len_bytes - word * 8;

        memcpy(at + word * 8, &value, rest < 8 ? rest : 8);
    }
}

size_t ex_pattern_check(const void *buffer, size_t len_bytes, uint32_t seed)
{
    const unsigned char *at = buffer;

    for (size_t word = 0; word * 8 < len_bytes; word++) {
        uint64_t value = pattern_word(word, seed);
        const unsigned char *expected = (const unsigned char *)&value;

        for (size_t i = word * 8; i < len_bytes && i < word * 8 + 8; i++) {
            if (at[i] != expected[i % 8])
                return i;
        }
    }
    return len_bytes;
}
