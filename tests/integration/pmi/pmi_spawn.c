/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spawn through both interfaces. Started without an argument, rank 0 starts this program again with one, and
 * each child job checks itself. What a child finds wrong shows in the job's exit status.
 */
#include <pmi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int n_failures;

static void check(int is_true, const char *what)
{
    if (is_true)
        return;
    n_failures++;
    fprintf(stderr, "pmi_spawn: wrong: %s\n", what);
}

#define CHECK(cond) check((cond), #cond)

static int be_child(int argc, char **argv)
{
    int spawned = -1, rank, size, ranks[2] = { -1, -1 };

    CHECK(PMI_Init(&spawned) == PMI_SUCCESS && spawned == 1);
    CHECK(argc == 3 && strcmp(argv[1], "child") == 0 && strcmp(argv[2], "two words") == 0);
    CHECK(PMI_Get_rank(&rank) == PMI_SUCCESS && PMI_Get_size(&size) == PMI_SUCCESS && size == 2);
    CHECK(PMI_Allgather(&rank, ranks, sizeof(rank)) == PMI_SUCCESS && ranks[0] == 0 && ranks[1] == 1);
    CHECK(PMI_Finalize() == PMI_SUCCESS);
    return n_failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    char program[4096] = "";
    const char *cmds[] = { program }, *args[] = { "child", "two words", NULL };
    const char **argvs[] = { args };
    int argcs[] = { 2 }, errors[] = { -1 }, rank, spawned = -1;
    const int maxprocs[] = { 2 }, sizes[] = { 1 };
    PMI_keyval_t wish = { "wdir", (char *)(size_t) "/" };
    const PMI_keyval_t *infos[] = { &wish };
    char job[64], child[64];

    if (argc > 1)
        return be_child(argc, argv);
    CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0); /* children run in another directory */
    CHECK(PMI_Init(&spawned) == PMI_SUCCESS && spawned == 0);
    CHECK(PMI_Get_rank(&rank) == PMI_SUCCESS);
    CHECK(PMI_KVS_Get_my_name(job, sizeof(job)) == PMI_SUCCESS);
    CHECK(PMI_Barrier() == PMI_SUCCESS);
    if (rank == 0) {
        CHECK(PMI2_Job_Spawn(1, cmds, argcs, argvs, maxprocs, sizes, infos, 0, NULL, child, 5, errors) ==
              PMI2_ERR_INVALID_LENGTH);
        CHECK(PMI2_Job_Spawn(1, cmds, argcs, argvs, maxprocs, sizes, infos, 0, NULL, child, sizeof(child), errors) ==
              PMI2_SUCCESS);
        CHECK(errors[0] == PMI2_SUCCESS);
        CHECK(strncmp(child, "kvs_", 4) == 0 && strcmp(child, job) != 0);
        CHECK(PMI_Spawn_multiple(1, cmds, argvs, maxprocs, NULL, NULL, 0, NULL, errors) == PMI_SUCCESS);
    }
    CHECK(PMI_Barrier() == PMI_SUCCESS);
    CHECK(PMI_Finalize() == PMI_SUCCESS);
    return n_failures == 0 ? 0 : 1;
}
