/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI in a program that also uses MPI: two libraries that both talk to the launcher's server. The argument
 * tells who comes first and who leaves first:
 *
 *   pmi-around-mpi   PMI connects, MPI comes and goes, PMI goes on
 *   mpi-around-pmi   MPI is up, PMI connects and leaves, twice, MPI goes on
 *   pmi-then-mpi     PMI connects, MPI comes, PMI leaves, MPI goes on
 *   mpi-then-pmi     MPI is up, PMI connects, MPI leaves, PMI goes on
 *   facts-only       PMI never connects
 *   mpi-only         nobody calls PMI_Init: MPI brings PMI up, as on the original
 *   mpi-then-inits   the same; then two libraries initialise PMI, MPI leaves, and one library after the other
 *
 * Each rank prints what was wrong and leaves with 1 then.
 */
#include <mpi.h>
#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, n_failures;

static void check(int is_true, const char *what)
{
    if (is_true)
        return;
    n_failures++;
    fprintf(stderr, "pmi_mpi: rank %d: wrong: %s\n", rank, what);
}

#define CHECK(cond) check((cond), #cond)

static void start_pmi(void)
{
    CHECK(PMI_Init(NULL) == PMI_SUCCESS);
    CHECK(PMI_Get_rank(&rank) == PMI_SUCCESS);
    CHECK(PMI_Get_size(&size) == PMI_SUCCESS);
}

static void use_pmi(const char *phase)
{
    char key[64], value[64], expected[64];
    int all[256], n;

    CHECK(PMI_Allgather(&rank, all, sizeof(rank)) == PMI_SUCCESS);
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i);
    snprintf(key, sizeof(key), "%s-%d", phase, rank);
    snprintf(value, sizeof(value), "%s of %d", phase, rank);
    CHECK(PMI2_KVS_Put(key, value) == PMI2_SUCCESS);
    CHECK(PMI2_KVS_Fence() == PMI2_SUCCESS);
    for (int i = 0; i < size; i++) {
        snprintf(key, sizeof(key), "%s-%d", phase, i);
        snprintf(expected, sizeof(expected), "%s of %d", phase, i);
        CHECK(PMI2_KVS_Get(NULL, i, key, value, sizeof(value), &n) == PMI2_SUCCESS && strcmp(value, expected) == 0);
    }
    n = rank == 0 ? 4711 : 0;
    CHECK(PMI_Bcast(&n, sizeof(n)) == PMI_SUCCESS && n == 4711);
    CHECK(PMI_Barrier() == PMI_SUCCESS);
}

static void use_mpi(void)
{
    int mpi_rank, mpi_size, sum = 0, right, left = -1;

    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
    CHECK(mpi_rank == rank && mpi_size == size);
    MPI_Allreduce(&mpi_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    right = (mpi_rank + 1) % mpi_size;
    MPI_Sendrecv(&mpi_rank, 1, MPI_INT, right, 0, &left, 1, MPI_INT, (mpi_rank + mpi_size - 1) % mpi_size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(left == (mpi_rank + mpi_size - 1) % mpi_size);
}

static void end_pmi(void)
{
    CHECK(PMI_Finalize() == PMI_SUCCESS);
}

static void learn_numbers(void)
{
    CHECK(PMI_Get_rank(&rank) == PMI_SUCCESS);
    CHECK(PMI_Get_size(&size) == PMI_SUCCESS);
}

/* What the environment cannot tell, over MPI's connection. */
static void use_node_attributes(void)
{
    char value[64];
    int found = 0;

    CHECK(PMI2_Info_PutNodeAttr("who", "somebody") == PMI2_SUCCESS);
    CHECK(PMI2_Info_GetNodeAttr("who", value, sizeof(value), &found, 1) == PMI2_SUCCESS);
    CHECK(found && strcmp(value, "somebody") == 0);
}

static int is_initialised(void)
{
    PMI_BOOL flag = -1;

    CHECK(PMI_Initialized(&flag) == PMI_SUCCESS);
    CHECK((flag == PMI_TRUE) == (PMI2_Initialized() != 0));
    return flag;
}

static void be_pmi_around_mpi(int *argc, char ***argv)
{
    start_pmi();
    use_pmi("before");
    MPI_Init(argc, argv);
    use_mpi();
    use_pmi("with");
    use_mpi();
    MPI_Finalize();
    use_pmi("after");
    end_pmi();
}

static void be_mpi_around_pmi(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    start_pmi();
    use_mpi();
    use_pmi("first");
    end_pmi();
    use_mpi();
    start_pmi(); /* again: MPI has kept the connection */
    use_pmi("second");
    end_pmi();
    use_mpi();
    MPI_Finalize();
}

static void be_pmi_then_mpi(int *argc, char ***argv)
{
    start_pmi();
    use_pmi("before");
    MPI_Init(argc, argv);
    use_mpi();
    use_pmi("with");
    end_pmi();
    use_mpi();
    MPI_Finalize();
}

static void be_mpi_then_pmi(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    start_pmi();
    use_mpi();
    use_pmi("with");
    MPI_Finalize();
    use_pmi("after");
    end_pmi();
}

static void be_facts_only(int *argc, char ***argv)
{
    int nid;

    start_pmi();
    MPI_Init(argc, argv);
    use_mpi();
    CHECK(PMI_Get_nid(rank, &nid) == PMI_SUCCESS);
    end_pmi();
    MPI_Finalize();
}

static void be_mpi_only(int *argc, char ***argv)
{
    learn_numbers(); /* a rank is one from its start */
    CHECK(PMI_Barrier() == PMI_ERR_INIT && !is_initialised());
    MPI_Init(argc, argv);
    CHECK(is_initialised());
    learn_numbers();
    use_mpi();
    use_pmi("first");
    use_mpi();
    use_node_attributes();
    use_pmi("second");
    CHECK(PMI_Finalize() == PMI_SUCCESS); /* of nothing: MPI is still up */
    use_pmi("third");
    use_mpi();
    CHECK(PMI_Ibarrier() == PMI_SUCCESS && PMI_Wait() == PMI_SUCCESS);
    CHECK(PMI_Ibarrier() == PMI_SUCCESS); /* left open */
    MPI_Finalize();
    CHECK(!is_initialised());
    learn_numbers();
    CHECK(PMI_Barrier() == PMI_ERR_INIT && PMI_Wait() == PMI_ERR_INIT);
    CHECK(PMI2_KVS_Put("late", "value") == PMI2_ERR_INIT);
}

static void be_two_libraries_with_mpi(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    learn_numbers();
    use_pmi("borrowed");
    start_pmi();
    CHECK(PMI2_Init(NULL, NULL, NULL, NULL) == PMI2_SUCCESS);
    use_pmi("with");
    MPI_Finalize();
    use_pmi("after");
    end_pmi();
    CHECK(is_initialised());
    use_pmi("one left");
    CHECK(PMI2_Finalize() == PMI2_SUCCESS);
    CHECK(!is_initialised());
    CHECK(PMI_Barrier() == PMI_ERR_INIT);
    learn_numbers();
}

/* Orders by the name that the argument gives. */
static const struct {
    const char *name;
    void (*be)(int *argc, char ***argv);
} orders[] = {
    { "pmi-around-mpi", be_pmi_around_mpi },
    { "mpi-around-pmi", be_mpi_around_pmi },
    { "pmi-then-mpi", be_pmi_then_mpi },
    { "mpi-then-pmi", be_mpi_then_pmi },
    { "facts-only", be_facts_only },
    { "mpi-only", be_mpi_only },
    { "mpi-then-inits", be_two_libraries_with_mpi },
};

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (strcmp(orders[i].name, wanted) != 0)
            continue;
        orders[i].be(&argc, &argv);
        return n_failures == 0 ? 0 : 1;
    }
    fprintf(stderr, "pmi_mpi: order '%s' is not known\n", wanted);
    return 2;
}
