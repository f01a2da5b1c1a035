/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks exchange: collectives, barriers, key-value spaces, node attributes, names.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/pmi/pmi_check.h"

/* ---- collectives ---- */

void learn_order(int *order)
{
    int is_rank_order = 1, is_seen[MAX_RANKS] = { 0 };

    memset(order, 0xff, (size_t)size * sizeof(*order));
    CHECK_OK(PMI_Allgather(&rank, order, sizeof(rank)));
    for (int i = 0; i < size; i++) {
        if (order[i] < 0 || order[i] >= size || is_seen[order[i]]++) {
            check(0, __FILE__, __LINE__, "gather of ranks has %d at %d", order[i], i);
            exit(1);
        }
        is_rank_order = is_rank_order && order[i] == i;
    }
    CHECK_INT(is_rank_order, size == 1 || getenv("EMUNIC_PMI_PERMUTE") == NULL);
}

static unsigned char pattern(int from, size_t i, unsigned salt)
{
    return (unsigned char)((unsigned)from * 131u + (unsigned)i * 7u + (unsigned)(i >> 8) + salt);
}

static void fill(unsigned char *bytes, size_t n, int from, unsigned salt)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = pattern(from, i, salt);
}

static int is_filled(const unsigned char *bytes, size_t n, int from, unsigned salt)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != pattern(from, i, salt))
            return 0;
    }
    return 1;
}

static void check_allgather_of(int len, const int *order, unsigned salt)
{
    unsigned char *in = malloc((size_t)len + 1), *out = malloc((size_t)len * (size_t)size + 1);

    fill(in, (size_t)len, rank, salt);
    out[(size_t)len * (size_t)size] = 0xa5;
    CHECK_OK(PMI_Allgather(in, out, len));
    for (int i = 0; i < size; i++)
        check(is_filled(out + (size_t)i * (size_t)len, (size_t)len, order[i], salt), __FILE__, __LINE__,
              "allgather of %d: block %d is not from rank %d", len, i, order[i]);
    CHECK_INT(out[(size_t)len * (size_t)size], 0xa5);
    free(in);
    free(out);
}

static void check_allgatherv_of(int step, const int *order)
{
    int lens[MAX_RANKS];
    size_t total = 0, at = 0;
    unsigned char *in, *out;

    for (int r = 0; r < size; r++) {
        lens[r] = (size - 1 - r) * step; /* the last rank has nothing */
        total += (size_t)lens[r];
    }
    in = malloc((size_t)lens[rank] + 1);
    out = malloc(total + 1);
    fill(in, (size_t)lens[rank], rank, 3);
    CHECK_OK(PMI_Allgatherv(in, lens[rank], out, lens));
    for (int i = 0; i < size; i++) {
        check(is_filled(out + at, (size_t)lens[order[i]], order[i], 3), __FILE__, __LINE__,
              "allgatherv, step %d: block %d is not from rank %d", step, i, order[i]);
        at += (size_t)lens[order[i]];
    }
    free(in);
    free(out);
}

static void check_bcast_of(int len)
{
    unsigned char *buf = malloc((size_t)len + 1);

    fill(buf, (size_t)len, rank, 9);
    CHECK_OK(PMI_Bcast(buf, len));
    check(is_filled(buf, (size_t)len, 0, 9), __FILE__, __LINE__, "bcast of %d: not the bytes of rank 0", len);
    free(buf);
}

void check_collectives(void)
{
    static const int lens[] = { 0, 1, 4, 255, 1000, 1001, 4096, 32744, 32745, 70000 };
    const char *big_text = getenv("PMI_CHECK_BIG");
    int big = big_text != NULL ? atoi(big_text) : 200000;
    int order[MAX_RANKS], wrong[MAX_RANKS], own = 0;
    char small[8];

    learn_order(order);
    while (order[own] != rank)
        own++;
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        check_allgather_of(lens[i], order, (unsigned)i);
        check_bcast_of(lens[i]);
        check_allgatherv_of(lens[i] / 2, order);
    }
    check_allgather_of(big, order, 77);
    check_bcast_of(big);
    for (unsigned i = 0; i < 20; i++) { /* keys are used again: no old data */
        check_allgather_of(8, order, i);
        if (i % 5 == 0)
            CHECK_OK(PMI_Barrier());
    }
    learn_order(wrong);
    CHECK(memcmp(order, wrong, (size_t)size * sizeof(int)) == 0);

    /* My block may lie where it belongs. */
    memset(wrong, 0xff, sizeof(wrong));
    wrong[own] = rank;
    CHECK_OK(PMI_Allgather(&wrong[own], wrong, sizeof(int)));
    CHECK(memcmp(order, wrong, (size_t)size * sizeof(int)) == 0);

    CHECK_INT(PMI_Allgather(NULL, small, 1), PMI_ERR_INVALID_ARG);
    CHECK_INT(PMI_Allgather(small, small, -1), PMI_ERR_INVALID_ARG);
    CHECK_INT(PMI_Allgatherv(small, 1, small, NULL), PMI_ERR_INVALID_ARG);
    CHECK_INT(PMI_Bcast(NULL, 1), PMI_ERR_INVALID_ARG);
}

/* A length that contradicts the list is refused by everybody, and nobody hangs. */
static void check_false_length_of(int liar)
{
    char in[4] = "abc", out[2 * MAX_RANKS];
    int lens[MAX_RANKS];

    for (int r = 0; r < size; r++)
        lens[r] = 2;
    if (rank == liar)
        CHECK_INT(PMI_Allgatherv(in, 3, out, lens), PMI_ERR_INVALID_ARG);
    else
        CHECK_INT(PMI_Allgatherv(in, 2, out, lens), PMI_FAIL);
    CHECK_OK(PMI_Barrier());
}

void check_allgatherv_refuses_a_false_length(void)
{
    check_false_length_of(0);
    if (size > 1)
        check_false_length_of(size - 1);
}

/* After the barrier, every rank must have been late enough: the last one enters 100 ms after the first. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_waits_for_all(int (*barrier)(void))
{
    double entered, left, last_entry = 0, *all = malloc((size_t)size * sizeof(*all));

    CHECK_OK(PMI_Barrier());
    if (rank == size - 1)
        usleep(50000);
    entered = seconds();
    CHECK_OK(barrier());
    left = seconds();
    CHECK_OK(PMI_Allgather(&entered, all, sizeof(entered)));
    for (int i = 0; i < size; i++)
        last_entry = all[i] > last_entry ? all[i] : last_entry;
    CHECK(left >= last_entry); /* one host, one clock */
    free(all);
}

static int split_barrier(void)
{
    int rc = PMI_Ibarrier();

    return rc != PMI_SUCCESS ? rc : PMI_Wait();
}

void check_barriers(void)
{
    char value[16];
    int n, order[MAX_RANKS];

    check_waits_for_all(PMI_Barrier);
    check_waits_for_all(PMI_CPR_Barrier);
    check_waits_for_all(PMI2_KVS_Fence);
    check_waits_for_all(split_barrier);

    CHECK_INT(PMI_Wait(), PMI_FAIL); /* none open */
    if (rank == 0)
        CHECK_INT(PMI2_KVS_Put("split", "yes"), PMI2_SUCCESS);
    CHECK_OK(PMI_Ibarrier());
    CHECK_INT(PMI_Ibarrier(), PMI_FAIL); /* one is open */
    CHECK_OK(PMI_Get_rank(&n));
    learn_order(order); /* another collective in between */
    CHECK_OK(PMI_Wait());
    CHECK_INT(PMI2_KVS_Get(job, 0, "split", value, sizeof(value), &n), PMI2_SUCCESS);
    CHECK_TEXT(value, "yes");
}

/* ---- key-value spaces ---- */

static void put_pairs_pmi2(void)
{
    char key[32], value[5000], got[5000];
    int len = 0;

    /* One long value per rank; several ranks with one key; odd characters; nothing at all. */
    snprintf(key, sizeof(key), "long-%d", rank);
    memset(value, 'a' + rank % 26, 4095);
    value[4095] = '\0';
    CHECK_INT(PMI2_KVS_Put(key, value), PMI2_SUCCESS);
    CHECK_INT(PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, got, sizeof(got), &len), PMI2_SUCCESS); /* my own, at once */
    CHECK_INT(len, 4095);
    snprintf(value, sizeof(value), "from %d", rank);
    CHECK_INT(PMI2_KVS_Put("shared", value), PMI2_SUCCESS);
    if (rank == size - 1) {
        CHECK_INT(PMI2_KVS_Put("odd", "a=b;c/d e\x01\xff\\\"\n"), PMI2_SUCCESS);
        CHECK_INT(PMI2_KVS_Put("empty", ""), PMI2_SUCCESS);
        CHECK_INT(PMI2_KVS_Put("twice", "first"), PMI2_SUCCESS);
        CHECK_INT(PMI2_KVS_Put("twice", "second"), PMI2_SUCCESS);
    }
    CHECK_INT(PMI2_KVS_Fence(), PMI2_SUCCESS);
}

static void check_pairs_pmi2(void)
{
    char key[32], value[32], got[5000];
    int len = 0;

    for (int r = 0; r < size; r++) {
        snprintf(key, sizeof(key), "long-%d", r);
        len = 0;
        /* All ways to name the source: no job, the job, a source, a wrong source. */
        CHECK_INT(PMI2_KVS_Get(r % 2 ? NULL : job,
                               r % 3 == 0 ? r :
                               r % 3 == 1 ? PMI2_ID_NULL :
                                            (r + 1) % size,
                               key, got, sizeof(got), &len),
                  PMI2_SUCCESS);
        CHECK_INT(len, 4095);
        CHECK(got[0] == 'a' + r % 26 && got[4094] == 'a' + r % 26);
        snprintf(value, sizeof(value), "from %d", r);
        CHECK_INT(PMI2_KVS_Get(job, r, "shared", got, sizeof(got), &len), PMI2_SUCCESS);
        CHECK_TEXT(got, value);
    }
    CHECK_INT(PMI2_KVS_Get(job, PMI2_ID_NULL, "shared", got, sizeof(got), NULL), PMI2_SUCCESS);
    CHECK_TEXT(got, "from 0");
    CHECK_INT(PMI2_KVS_Get("", -1, "odd", got, sizeof(got), &len), PMI2_SUCCESS);
    CHECK_TEXT(got, "a=b;c/d e\x01\xff\\\"\n");
    CHECK_INT(PMI2_KVS_Get(job, -1, "empty", got, sizeof(got), &len), PMI2_SUCCESS);
    CHECK_TEXT(got, "");
    CHECK_INT(len, 0);
    CHECK_INT(PMI2_KVS_Get(job, -1, "twice", got, sizeof(got), &len), PMI2_SUCCESS);
    CHECK_TEXT(got, "second");
}

static void check_refusals_pmi2(void)
{
    char key[300], value[5000], got[5000];
    int len = 0;

    strcpy(got, "untouched");
    CHECK_INT(PMI2_KVS_Get(job, -1, "-NONEXIST-KEY", got, sizeof(got), &len), PMI2_ERR_INVALID_KEY);
    CHECK_INT(PMI2_KVS_Get(job, size + 5, "-NONEXIST-KEY", got, sizeof(got), &len), PMI2_ERR_INVALID_KEY);
    CHECK_INT(PMI2_KVS_Get("kvs_0", -1, "shared", got, sizeof(got), &len), PMI2_ERR_INVALID_KEY);
    CHECK_INT(PMI2_KVS_Get(job, -1, "shared", got, 3, &len), PMI2_ERR_INVALID_LENGTH);
    CHECK_INT(len, -7);
    CHECK_TEXT(got, "untouched");
    CHECK_INT(PMI2_KVS_Put("", "v"), PMI2_ERR_INVALID_KEY);
    memset(key, 'k', 256);
    key[256] = '\0';
    CHECK_INT(PMI2_KVS_Put(key, "v"), PMI2_ERR_INVALID_KEY_LENGTH);
    memset(value, 'v', 4096);
    value[4096] = '\0';
    CHECK_INT(PMI2_KVS_Put("k", value), PMI2_ERR_INVALID_VAL_LENGTH);
    CHECK_INT(PMI2_KVS_Put(NULL, "v"), PMI2_ERR_INVALID_ARG);
    CHECK_INT(PMI2_KVS_Put("k", NULL), PMI2_ERR_INVALID_ARG);
}

void check_kvs_pmi2(void)
{
    char got[5000];
    int len = 0;

    put_pairs_pmi2();
    check_pairs_pmi2();
    check_refusals_pmi2();
    /* A new value after a fence. */
    if (rank == 0)
        CHECK_INT(PMI2_KVS_Put("shared", "newer"), PMI2_SUCCESS);
    CHECK_INT(PMI2_KVS_Fence(), PMI2_SUCCESS);
    CHECK_INT(PMI2_KVS_Get(job, 0, "shared", got, sizeof(got), &len), PMI2_SUCCESS);
    CHECK_TEXT(got, "newer");
    CHECK_INT(PMI2_KVS_Fence(), PMI2_SUCCESS);
}

void check_kvs_pmi1(void)
{
    int name_max = 0, key_max = 0, value_max = 0, n;
    char key[300], value[64], got[4096], space[64];

    CHECK_OK(PMI_KVS_Get_name_length_max(&name_max));
    CHECK_OK(PMI_KVS_Get_key_length_max(&key_max));
    CHECK_OK(PMI_KVS_Get_value_length_max(&value_max));
    CHECK(name_max > (int)strlen(job) && key_max >= 64 && value_max >= 1025);

    snprintf(key, sizeof(key), "one-%d", rank);
    snprintf(value, sizeof(value), "value %d", rank);
    CHECK_OK(PMI_KVS_Put(job, key, value));
    CHECK_OK(PMI_KVS_Commit(job));
    CHECK_OK(PMI_Barrier());
    for (int r = 0; r < size; r++) {
        snprintf(key, sizeof(key), "one-%d", r);
        snprintf(value, sizeof(value), "value %d", r);
        CHECK_OK(PMI_KVS_Get(job, key, got, sizeof(got)));
        CHECK_TEXT(got, value);
        CHECK_INT(PMI2_KVS_Get(NULL, r, key, got, sizeof(got), &n), PMI2_SUCCESS); /* one space for both */
        CHECK_TEXT(got, value);
    }
    CHECK_INT(PMI_KVS_Get(job, "missing", got, sizeof(got)), PMI_ERR_INVALID_KEY);
    CHECK_INT(PMI_KVS_Get(job, "one-0", got, 3), PMI_ERR_INVALID_LENGTH);
    CHECK_INT(PMI_KVS_Get(job, "one-0", NULL, 3), PMI_ERR_INVALID_ARG);
    CHECK_INT(PMI_KVS_Put("elsewhere", "k", "v"), PMI_ERR_INVALID_KVS);
    CHECK_INT(PMI_KVS_Get("elsewhere", "k", got, sizeof(got)), PMI_ERR_INVALID_KVS);
    CHECK_INT(PMI_KVS_Commit("elsewhere"), PMI_ERR_INVALID_KVS);
    CHECK_INT(PMI_KVS_Commit(NULL), PMI_ERR_INVALID_ARG);

    /* A second space: rank 0 makes it and tells the name. */
    memset(space, 0, sizeof(space));
    if (rank == 0)
        CHECK_OK(PMI_KVS_Create(space, sizeof(space)));
    CHECK_OK(PMI_Bcast(space, sizeof(space)));
    snprintf(value, sizeof(value), "in second %d", rank);
    CHECK_OK(PMI_KVS_Put(space, "second", value));
    CHECK_OK(PMI_KVS_Commit(space));
    CHECK_OK(PMI_Barrier());
    CHECK_OK(PMI_KVS_Get(space, "second", got, sizeof(got)));
    CHECK_TEXT(got, "in second 0");
    CHECK_INT(PMI_KVS_Get(job, "second", got, sizeof(got)), PMI_ERR_INVALID_KEY);

    /* Walk over it: one pair per rank. */
    CHECK_INT(PMI_KVS_Iter_next(space, key, sizeof(key), got, sizeof(got)), PMI_FAIL);
    CHECK_INT(PMI_KVS_Iter_first(space, key, 2, got, sizeof(got)), PMI_ERR_INVALID_LENGTH);
    CHECK_OK(PMI_KVS_Iter_first(space, key, sizeof(key), got, sizeof(got)));
    for (n = 0; *key != '\0' && n <= size; n++) {
        CHECK_TEXT(key, "second");
        CHECK_OK(PMI_KVS_Iter_next(space, key, sizeof(key), got, sizeof(got)));
    }
    CHECK_INT(n, size);
    CHECK_OK(PMI_KVS_Destroy(space));
    CHECK_INT(PMI_KVS_Get(space, "second", got, sizeof(got)), PMI_ERR_INVALID_KEY);
    CHECK_INT(PMI_KVS_Destroy(job), PMI_ERR_INVALID_KVS);
    CHECK_INT(PMI_KVS_Destroy("elsewhere"), PMI_ERR_INVALID_KVS);
    CHECK_INT(PMI_KVS_Create(space, 3), PMI_ERR_INVALID_LENGTH);
    CHECK_OK(PMI_Barrier());
}

/* Many small pairs, which go out in several pieces. */
void check_many_pairs(void)
{
    char key[64], value[128], got[128];

    for (int i = 0; i < 600; i++) {
        snprintf(key, sizeof(key), "many-%d-%d", rank, i);
        snprintf(value, sizeof(value), "%0100d", rank * 1000 + i);
        CHECK_INT(PMI2_KVS_Put(key, value), PMI2_SUCCESS);
    }
    CHECK_INT(PMI2_KVS_Fence(), PMI2_SUCCESS);
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < 600; i += 37) {
            snprintf(key, sizeof(key), "many-%d-%d", r, i);
            snprintf(value, sizeof(value), "%0100d", r * 1000 + i);
            CHECK_INT(PMI2_KVS_Get(job, PMI2_ID_NULL, key, got, sizeof(got), NULL), PMI2_SUCCESS);
            CHECK_TEXT(got, value);
        }
    }
    CHECK_INT(PMI2_KVS_Fence(), PMI2_SUCCESS);
}

/* ---- node attributes ---- */

void check_node_attributes(void)
{
    int leader = 0, found = -1, array[4], n = -1;
    char value[64], expected[64];

    while (expected_nids[leader] != expected_nids[rank])
        leader++;
    CHECK_INT(PMI2_Info_GetNodeAttr("absent", value, sizeof(value), &found, 0), PMI2_SUCCESS);
    CHECK_INT(found, 0);
    CHECK_INT(PMI2_Info_GetNodeAttr("absent", value, sizeof(value), NULL, 0), PMI2_ERR_INVALID_KEY);

    /* Without a barrier: the others wait for the lowest rank of their node, which is slow. */
    if (rank == leader) {
        usleep(30000);
        snprintf(value, sizeof(value), "node %d, put by %d", expected_nids[rank], rank);
        CHECK_INT(PMI2_Info_PutNodeAttr("leader", value), PMI2_SUCCESS);
        CHECK_INT(PMI2_Info_PutNodeAttr("leader", "too late"), PMI2_SUCCESS);
        CHECK_INT(PMI2_Info_PutNodeAttr("numbers", "3,1,2"), PMI2_SUCCESS);
    }
    CHECK_INT(PMI2_Info_GetNodeAttr("leader", value, sizeof(value), &found, 1), PMI2_SUCCESS);
    CHECK_INT(found, 1);
    snprintf(expected, sizeof(expected), "node %d, put by %d", expected_nids[rank], leader);
    CHECK_TEXT(value, expected);
    CHECK_INT(PMI2_Info_GetNodeAttr("leader", value, 3, &found, 1), PMI2_ERR_INVALID_LENGTH);
    CHECK_INT(PMI2_Info_GetNodeAttr("numbers", value, sizeof(value), &found, 1), PMI2_SUCCESS);
    CHECK_INT(PMI2_Info_GetNodeAttrIntArray("numbers", array, 2, &n, &found), PMI2_SUCCESS);
    CHECK(found == 1 && n == 3 && array[0] == 3 && array[1] == 1);
    CHECK_INT(PMI2_Info_GetNodeAttrIntArray("leader", array, 4, &n, &found), PMI2_SUCCESS);
    CHECK_INT(found, 0);
    CHECK_INT(PMI2_Info_PutNodeAttr(NULL, "v"), PMI2_ERR_INVALID_ARG);
    CHECK_OK(PMI_Barrier());
}

/* ---- name service ---- */

void check_names(void)
{
    char port[256], name[96];

    snprintf(name, sizeof(name), "service of %s", job);
    if (rank == 0) {
        CHECK_INT(PMI_Lookup_name(name, port), PMI_FAIL);
        CHECK_OK(PMI_Publish_name(name, "tag#0$port"));
        CHECK_INT(PMI_Publish_name(name, "again"), PMI_FAIL);
    }
    CHECK_OK(PMI_Barrier());
    CHECK_OK(PMI_Lookup_name(name, port));
    CHECK_TEXT(port, "tag#0$port");
    CHECK_INT(PMI2_Nameserv_lookup(name, NULL, port, sizeof(port)), PMI2_SUCCESS);
    CHECK_INT(PMI2_Nameserv_lookup(name, NULL, port, 3), PMI2_ERR_INVALID_LENGTH);
    CHECK_OK(PMI_Barrier());
    if (rank == 0) {
        CHECK_OK(PMI_Unpublish_name(name));
        CHECK_INT(PMI_Unpublish_name(name), PMI_FAIL);
        CHECK_INT(PMI2_Nameserv_lookup(name, NULL, port, sizeof(port)), PMI2_ERR_INVALID_KEY);
        CHECK_INT(PMI2_Nameserv_publish(name, NULL, "two"), PMI2_SUCCESS);
    }
    CHECK_OK(PMI_Barrier());
    CHECK_INT(PMI2_Nameserv_lookup(name, NULL, port, sizeof(port)), PMI2_SUCCESS);
    CHECK_TEXT(port, "two");
    CHECK_OK(PMI_Barrier());
    if (rank == 0)
        CHECK_INT(PMI2_Nameserv_unpublish(name, NULL), PMI2_SUCCESS);
}
