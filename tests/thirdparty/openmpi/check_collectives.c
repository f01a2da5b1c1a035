/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on the world and on halves of it, blocking and not, from one element to some 100 000 (Open MPI changes
 * the algorithm with the size), with every rank as root. Sums are of integers, so they are exact.
 */
#include "check.h"

#define COUNT_MAX ((size_t)1 << 17)

struct group {
    MPI_Comm comm;
    int rank;
    int size;
};

static uint64_t *in_mem, *out_mem;

static uint64_t element(int rank, size_t i, size_t count)
{
    return mix((uint64_t)rank << 40 ^ count << 20 ^ i) >> 16;
}

static void fill_own(const struct group *g, size_t n, size_t count)
{
    for (size_t i = 0; i < n; i++)
        in_mem[i] = element(g->rank, i, count);
    memset(out_mem, 0xee, n * 8);
}

static void expect(uint64_t got, uint64_t wanted, const char *what, size_t count, size_t i)
{
    if (got != wanted)
        fail("%s, %zu elements: wrong at %zu", what, count, i);
}

static uint64_t sum_of(const struct group *g, size_t i, size_t count)
{
    uint64_t sum = 0;

    for (int r = 0; r < g->size; r++)
        sum += element(r, i, count);
    return sum;
}

static void rooted(const struct group *g, size_t count, int root)
{
    int n = (int)count;

    fill_own(g, count, count);
    MPI_Bcast(in_mem, n, MPI_UINT64_T, root, g->comm);
    for (size_t i = 0; i < count; i++)
        expect(in_mem[i], element(root, i, count), "bcast", count, i);
    fill_own(g, count, count);
    MPI_Reduce(in_mem, out_mem, n, MPI_UINT64_T, MPI_SUM, root, g->comm);
    for (size_t i = 0; i < count && g->rank == root; i++)
        expect(out_mem[i], sum_of(g, i, count), "reduce", count, i);
    crossed_bytes += g->rank == root ? 0 : 8 * count;
}

static void gathers(const struct group *g, size_t count, int root)
{
    size_t each = count / (size_t)g->size;
    int n = (int)each;

    if (each == 0)
        return;
    fill_own(g, count, count);
    MPI_Gather(in_mem, n, MPI_UINT64_T, out_mem, n, MPI_UINT64_T, root, g->comm);
    for (size_t i = 0; i < each * (size_t)g->size && g->rank == root; i++)
        expect(out_mem[i], element((int)(i / each), i % each, count), "gather", count, i);
    fill_own(g, count, count);
    MPI_Scatter(in_mem, n, MPI_UINT64_T, out_mem, n, MPI_UINT64_T, root, g->comm);
    for (size_t i = 0; i < each; i++)
        expect(out_mem[i], element(root, (size_t)g->rank * each + i, count), "scatter", count, i);
    fill_own(g, count, count);
    MPI_Allgather(in_mem, n, MPI_UINT64_T, out_mem, n, MPI_UINT64_T, g->comm);
    for (size_t i = 0; i < each * (size_t)g->size; i++)
        expect(out_mem[i], element((int)(i / each), i % each, count), "allgather", count, i);
    fill_own(g, count, count);
    MPI_Alltoall(in_mem, n, MPI_UINT64_T, out_mem, n, MPI_UINT64_T, g->comm);
    for (size_t i = 0; i < each * (size_t)g->size; i++)
        expect(out_mem[i], element((int)(i / each), (size_t)g->rank * each + i % each, count), "alltoall", count, i);
    crossed_bytes += 2 * 8 * each * ((size_t)g->size - 1); /* received in the last two */
}

static void reductions(const struct group *g, size_t count)
{
    int n = (int)count;
    uint64_t running;

    fill_own(g, count, count);
    MPI_Allreduce(in_mem, out_mem, n, MPI_UINT64_T, MPI_SUM, g->comm);
    for (size_t i = 0; i < count; i++)
        expect(out_mem[i], sum_of(g, i, count), "allreduce", count, i);
    fill_own(g, count, count);
    MPI_Scan(in_mem, out_mem, n, MPI_UINT64_T, MPI_SUM, g->comm);
    for (size_t i = 0; i < count; i++) {
        running = 0;
        for (int r = 0; r <= g->rank; r++)
            running += element(r, i, count);
        expect(out_mem[i], running, "scan", count, i);
    }
    crossed_bytes += 8 * count;
}

/* Several under way at once, started in one order and finished in another. */
static void non_blocking(const struct group *g, size_t count)
{
    uint64_t *other = get_memory(8 * count);
    MPI_Request requests[3];
    int n = (int)count;

    fill_own(g, count, count);
    for (size_t i = 0; i < count; i++)
        other[i] = element(g->rank, i, count + 1);
    MPI_Iallreduce(in_mem, out_mem, n, MPI_UINT64_T, MPI_MAX, g->comm, &requests[0]);
    MPI_Ibcast(other, n, MPI_UINT64_T, g->size - 1, g->comm, &requests[1]);
    MPI_Ibarrier(g->comm, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < count; i++) {
        uint64_t largest = 0;

        for (int r = 0; r < g->size; r++)
            largest = element(r, i, count) > largest ? element(r, i, count) : largest;
        expect(out_mem[i], largest, "iallreduce", count, i);
        expect(other[i], element(g->size - 1, i, count + 1), "ibcast", count, i);
    }
    free(other);
}

/* Every rank sends another length to every other. */
static void uneven(const struct group *g)
{
    int counts_out[64], counts_in[64], at_out[64], at_in[64];
    int total_out = 0;
    int total_in = 0;

    for (int r = 0; r < g->size; r++) {
        counts_out[r] = (g->rank * 7 + r * 1013) % 5000;
        counts_in[r] = (r * 7 + g->rank * 1013) % 5000;
        at_out[r] = total_out;
        at_in[r] = total_in;
        total_out += counts_out[r];
        total_in += counts_in[r];
    }
    for (int r = 0; r < g->size; r++) {
        for (int i = 0; i < counts_out[r]; i++)
            in_mem[at_out[r] + i] = element(g->rank, (size_t)i, (size_t)r);
    }
    MPI_Alltoallv(in_mem, counts_out, at_out, MPI_UINT64_T, out_mem, counts_in, at_in, MPI_UINT64_T, g->comm);
    for (int r = 0; r < g->size; r++) {
        for (int i = 0; i < counts_in[r]; i++)
            expect(out_mem[at_in[r] + i], element(r, (size_t)i, (size_t)g->rank), "alltoallv", (size_t)counts_in[r],
                   (size_t)i);
    }
}

static void everything(const struct group *g)
{
    for (size_t count = 1; count <= COUNT_MAX; count = count * 7 + 1) {
        for (int root = 0; root < g->size; root++) {
            rooted(g, count, root);
            gathers(g, count, root);
        }
        reductions(g, count);
        non_blocking(g, count);
    }
    uneven(g);
    MPI_Barrier(g->comm);
}

int main(int argc, char **argv)
{
    struct group world = { .comm = MPI_COMM_WORLD };
    struct group half;

    check_begin(&argc, &argv, "check_collectives", MPI_THREAD_SINGLE);
    if (n_ranks > 64)
        fail("too many ranks");
    world.rank = my_rank;
    world.size = n_ranks;
    in_mem = get_memory(8 * COUNT_MAX + 64 * 5000 * 8);
    out_mem = get_memory(8 * COUNT_MAX + 64 * 5000 * 8);
    everything(&world);
    MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, -my_rank, &half.comm);
    MPI_Comm_rank(half.comm, &half.rank);
    MPI_Comm_size(half.comm, &half.size);
    everything(&half);
    MPI_Comm_free(&half.comm);
    free(in_mem);
    free(out_mem);
    return check_end();
}
