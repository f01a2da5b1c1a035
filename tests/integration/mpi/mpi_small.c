/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collective calls: what coll/flat and coll/ce do themselves, and what they leave to others. */
#include "tests/integration/mpi/cases.h"

#include <pthread.h>
#include <time.h>

#define N_THREADS 4
#define ELEMENTS  64 /* 57 are one too many for the smallest type */
#define ELEMENT   16 /* bytes of the largest type */

/* ---- operations and types ---- */

enum kind { INTEGER = 1, REAL = 2, OTHER = 4 };

struct type {
    MPI_Datatype type;
    int bytes;
    enum kind kind;
};

/* Elements whose results are exact in any order: 1 and 2. */
static void fill_elements(const struct type *type, void *data, int n, int round)
{
    unsigned char *at = data;

    for (int i = 0; i < n; i++, at += type->bytes) {
        int value = 1 + (rank + i + round) % 2;

        if (type->kind == INTEGER)
            memset(at, 0, (size_t)type->bytes), at[0] = (unsigned char)value;
        else if (type->type == MPI_FLOAT)
            *(float *)at = (float)value;
        else if (type->type == MPI_DOUBLE)
            *(double *)at = value;
        else if (type->type == MPI_LONG_DOUBLE)
            memset(at, 0, sizeof(long double)), *(long double *)at = value;
        else
            ((int *)at)[0] = value, ((int *)at)[1] = rank;
    }
}

/* MPI_Reduce_local in the order of ranks is what MPI_Allreduce has to do. */
static void try_operation(const struct type *type, MPI_Op op, int n, int round)
{
    _Alignas(16) unsigned char mine[ELEMENTS * ELEMENT], ours[ELEMENTS * ELEMENT], expected[ELEMENTS * ELEMENT];
    unsigned char *all = bytes((size_t)size * sizeof(mine));

    fill_elements(type, mine, n, round);
    MPI_Allgather(mine, n, type->type, all, n, type->type, MPI_COMM_WORLD);
    memcpy(expected, all, (size_t)n * (size_t)type->bytes);
    for (int r = 1; r < size; r++) {
        _Alignas(16) unsigned char next[ELEMENTS * ELEMENT];

        memcpy(next, all + (size_t)r * (size_t)n * (size_t)type->bytes, (size_t)n * (size_t)type->bytes);
        MPI_Reduce_local(expected, next, n, type->type, op);
        memcpy(expected, next, (size_t)n * (size_t)type->bytes);
    }
    memset(ours, 0xee, sizeof(ours));
    MPI_Allreduce(mine, ours, n, type->type, op, MPI_COMM_WORLD);
    EXPECT(memcmp(ours, expected, (size_t)n * (size_t)type->bytes) == 0);
    if (n < ELEMENTS)
        EXPECT(ours[(size_t)n * (size_t)type->bytes] == 0xee);
    MPI_Allreduce(MPI_IN_PLACE, mine, n, type->type, op, MPI_COMM_WORLD);
    EXPECT(memcmp(mine, expected, (size_t)n * (size_t)type->bytes) == 0);
    free(all);
}

static void types(void)
{
    static const int counts[] = { 1, 2, 3, 7, 8, 14, 56, 57 };
    const struct type tried[] = {
        { MPI_SIGNED_CHAR, 1, INTEGER }, { MPI_UNSIGNED_CHAR, 1, INTEGER }, { MPI_SHORT, 2, INTEGER },
        { MPI_INT, 4, INTEGER },         { MPI_UNSIGNED, 4, INTEGER },      { MPI_LONG, 8, INTEGER },
        { MPI_INT64_T, 8, INTEGER },     { MPI_UINT8_T, 1, INTEGER },       { MPI_FLOAT, 4, REAL },
        { MPI_DOUBLE, 8, REAL },         { MPI_LONG_DOUBLE, 16, REAL },     { MPI_2INT, 8, OTHER },
    };
    const struct {
        MPI_Op op;
        int kinds;
    } ops[] = {
        { MPI_SUM, INTEGER | REAL }, { MPI_PROD, INTEGER | REAL }, { MPI_MAX, INTEGER | REAL },
        { MPI_MIN, INTEGER | REAL }, { MPI_BAND, INTEGER },        { MPI_BOR, INTEGER },
        { MPI_BXOR, INTEGER },       { MPI_LAND, INTEGER },        { MPI_LOR, INTEGER },
        { MPI_LXOR, INTEGER },       { MPI_MAXLOC, OTHER },        { MPI_MINLOC, OTHER },
    };
    int round = 0;

    for (size_t t = 0; t < sizeof(tried) / sizeof(tried[0]); t++)
        for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
                if (ops[o].kinds & (int)tried[t].kind)
                    try_operation(&tried[t], ops[o].op, counts[c], round++);
}

/* x -> a x + b in 32 bits, one after the other: associative, and not commutative. */
static void follow(void *first, void *second, int *n, MPI_Datatype *type)
{
    const uint64_t *f = first;
    uint64_t *s = second;

    (void)type;
    for (int i = 0; i < *n; i++) {
        uint32_t a = (uint32_t)(f[i] >> 32), b = (uint32_t)f[i], c = (uint32_t)(s[i] >> 32), d = (uint32_t)s[i];

        s[i] = (uint64_t)(a * c) << 32 | (c * b + d);
    }
}

/* Results do not depend on who comes first, are the same everywhere, and keep the order of ranks. */
static void in_order(void)
{
    double part = 1.0 / (3 * rank + 1), sum, first = 0;
    double *all = calloc((size_t)size, sizeof(*all));
    MPI_Op op;

    EXPECT(all);
    MPI_Op_create(follow, 0, &op);
    for (int i = 0; i < 200; i++) {
        uint64_t mine = (uint64_t)(rank * 2 + 3) << 32 | (unsigned)(rank + i), ours = 0, expected = 0;
        int one = 1;

        for (int r = 0; r < size; r++) {
            uint64_t next = (uint64_t)(r * 2 + 3) << 32 | (unsigned)(r + i);

            if (r > 0)
                follow(&expected, &next, &one, NULL);
            expected = next;
        }
        MPI_Allreduce(&mine, &ours, 1, MPI_UINT64_T, op, MPI_COMM_WORLD);
        EXPECT(ours == expected);
        MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allgather(&sum, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int r = 0; r < size; r++)
            EXPECT(memcmp(&all[r], &sum, sizeof(sum)) == 0);
        EXPECT(i < 4 || first == sum);
        first = sum;
    }
    MPI_Op_free(&op);
    free(all);
}

/* ---- barriers ---- */

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Nobody is out before the last one is in, whoever is late. */
static void barriers(void)
{
    for (int i = 0; i < 100; i++) {
        int64_t in, last, out;

        for (int64_t until = now_ns() + (rank == i % size ? 100000 : 0); now_ns() < until;)
            ;
        in = now_ns();
        MPI_Barrier(MPI_COMM_WORLD);
        out = now_ns();
        MPI_Allreduce(&in, &last, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        EXPECT(out >= last);
    }
}

/* ---- communicators ---- */

static void sum_in(MPI_Comm comm, int number)
{
    int n, me, mine, sum = -1;

    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &me);
    mine = me * number;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(sum == n * (n - 1) / 2 * number);
}

/* Calls of several communicators, one inside the other, between messages of many lengths that go on meanwhile. */
static void mixed(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char *out = bytes(100000), *in = bytes(100000);

    for (int i = 0; i < 12; i++) {
        size_t n = (size_t)(i % 3 == 0 ? 100000 : 700 * i);
        MPI_Request requests[2];
        MPI_Comm dup, part;

        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        MPI_Comm_split(MPI_COMM_WORLD, rank * 3 / size, (rank * 7 + i) % size, &part);
        fill(out, n, rank, i);
        MPI_Irecv(in, (int)n, MPI_BYTE, before, 1, dup, &requests[0]);
        for (int k = 0; k < 10; k++) {
            sum_in(part, k);
            sum_in(dup, i + k);
            MPI_Barrier(part);
            if (k == 5)
                MPI_Issend(out, (int)n, MPI_BYTE, next, 1, dup, &requests[1]);
            /* Those of another part may be some calls behind. */
            for (int more = 0; more < rank * 3 / size; more++)
                sum_in(part, more);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(in, n, before, i);
        MPI_Comm_free(&part);
        MPI_Comm_free(&dup);
    }
    free(out);
    free(in);
}

/* More at once than have room in the NIC; then the room is there again. */
static void many(void)
{
    MPI_Comm comms[80];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 80; i++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (int k = 0; k < 6; k++)
            for (int i = 0; i < 80; i++)
                sum_in(comms[i], i + k);
        for (int i = 0; i < 80; i++)
            MPI_Comm_free(&comms[(i * 7) % 80]);
    }
}

/* ---- only when named ---- */

/* Rules for transactions that never come: all traffic goes through the daemon while there are any. */
static void shell(const char *command)
{
    if (rank == 0)
        EXPECT(system(command) == 0);
}

static void switched(void)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++)
            sum_in(MPI_COMM_WORLD, i);
        shell("\"$EMU_TEST_EMUNIC\" fault --server \"$EMUNIC_SERVER\" add class=msgq action=drop >/dev/null");
        for (int i = 0; i < 50; i++) {
            sum_in(MPI_COMM_WORLD, i);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        shell("\"$EMU_TEST_EMUNIC\" fault --server \"$EMUNIC_SERVER\" clear >/dev/null");
    }
}

static MPI_Comm comms_of_threads[N_THREADS];

static void *thread(void *number)
{
    int i = (int)(intptr_t)number, next = (rank + 1) % size, before = (rank + size - 1) % size, got;

    for (int k = 0; k < 300; k++) {
        sum_in(comms_of_threads[i], k);
        if (k % 10 == i)
            MPI_Barrier(comms_of_threads[i]);
        MPI_Sendrecv(&k, 1, MPI_INT, next, i, &got, 1, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(got == k);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t ids[N_THREADS];

    for (int i = 0; i < N_THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms_of_threads[i]);
    for (int i = 0; i < N_THREADS; i++)
        EXPECT(pthread_create(&ids[i], NULL, thread, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < N_THREADS; i++)
        MPI_Comm_free(&comms_of_threads[i]);
}

/* Nothing but small calls, for the counters of the machine. */
static void calls(void)
{
    for (int i = 0; i < 1000; i++)
        sum_in(MPI_COMM_WORLD, i);
}

/* ---- all ---- */

static const struct mpi_case cases[] = {
    { "types", types }, { "in_order", in_order }, { "barriers", barriers }, { "mixed", mixed },
    { "many", many },   { "calls", calls },       { "switched", switched }, { "threads", threads },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), 3);
}
