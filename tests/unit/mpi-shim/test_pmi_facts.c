/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What PMI concludes from the environment alone. The library reads it once per process, so each case is a child
 * that sets its variables, looks, and reports through its exit status. No server is there: an answer that needs
 * one fails.
 */
#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/pmi_session.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Variables that a launcher around the test may have left. */
static void clear_environment(void)
{
    static const char *const names[] = {
        "PMIX_NAMESPACE",
        "PMIX_RANK",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_UNIVERSE_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "OMPI_APP_CTX_NUM_PROCS",
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_STEP_NUM_TASKS",
        "EMUNIC_NID",
        "EMUNIC_NIDS",
        "EMUNIC_PMI_SPAWNED",
        "EMUNIC_CABINET_COLUMNS",
        "EMUNIC_HOST",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

static void be_rank(const char *rank)
{
    setenv("PMIX_NAMESPACE", "job", 1);
    setenv("PMIX_RANK", rank, 1);
}

static void be_open_mpi_rank(const char *rank, const char *size, const char *n_local)
{
    be_rank(rank);
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    setenv("OMPI_COMM_WORLD_SIZE", size, 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", n_local, 1);
}

/* Run a case in a child; it returns 0 when all is as it should be, else the line of what is not. */
static void expect_in_child(int (*look)(void))
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        int line;

        clear_environment();
        line = look();
        if (line != 0) {
            char text[64];
            int n = snprintf(text, sizeof(text), "# wrong in line %d\n", line);

            if (write(STDERR_FILENO, text, (size_t)n) < 0)
                _exit(2);
        }
        _exit(line != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define WANT(cond)                                                                                                     \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            return __LINE__;                                                                                           \
    } while (0)

static int nid_of(int rank)
{
    const int *nids;

    return pmii_facts_nids(&nids) == 0 ? nids[rank] : -1;
}

static int look_alone(void)
{
    int size, n, n_apps;
    const int *apps;

    setenv("SLURM_PROCID", "3", 1); /* left by a batch script */
    setenv("SLURM_NTASKS", "8", 1);
    pmii_facts_load();
    WANT(pmii_facts_rank() == 0);
    WANT(pmii_facts_size(&size) == 0 && size == 1);
    WANT(pmii_facts_universe(&size) == 0 && size == 1);
    WANT(pmii_facts_is_alone());
    WANT(!pmii_facts_is_spawned());
    WANT(pmii_facts_apps(&apps, &n_apps) == 0 && n_apps == 1 && apps[0] == 0);
    WANT(pmii_facts_group(PMII_NODE, NULL, 0, &n) == 0 && n == 1);
    WANT(strncmp(pmii_facts_job_name(), "kvs_", 4) == 0);
    return 0;
}

static void test_process_without_launcher_is_a_job_of_one(void **state)
{
    (void)state;
    expect_in_child(look_alone);
}

static int look_alone_with_nid(void)
{
    setenv("EMUNIC_NID", "17", 1);
    pmii_facts_load();
    WANT(nid_of(0) == 17);
    return 0;
}

static void test_lone_process_takes_its_nid(void **state)
{
    (void)state;
    expect_in_child(look_alone_with_nid);
}

static int look_open_mpi(void)
{
    int size, n;

    be_open_mpi_rank("2", "4", "4");
    setenv("OMPI_UNIVERSE_SIZE", "6", 1);
    pmii_facts_load();
    WANT(pmii_facts_rank() == 2);
    WANT(pmii_facts_size(&size) == 0 && size == 4);
    WANT(pmii_facts_universe(&size) == 0 && size == 6);
    WANT(pmii_facts_group(PMII_NODE, NULL, 0, &n) == 0 && n == 4); /* all on this host */
    WANT(nid_of(0) == nid_of(3));
    return 0;
}

static void test_open_mpi_tells_rank_and_size(void **state)
{
    (void)state;
    expect_in_child(look_open_mpi);
}

static int look_small_universe(void)
{
    int size;

    be_open_mpi_rank("0", "4", "4");
    setenv("OMPI_UNIVERSE_SIZE", "2", 1); /* oversubscribed */
    pmii_facts_load();
    WANT(pmii_facts_universe(&size) == 0 && size == 4);
    return 0;
}

static void test_universe_is_never_below_the_job(void **state)
{
    (void)state;
    expect_in_child(look_small_universe);
}

static int look_foreign_variables(void)
{
    int size;

    be_open_mpi_rank("2", "4", "4");
    setenv("PMIX_RANK", "0", 1); /* another launcher started this one inside */
    pmii_facts_load();
    WANT(pmii_facts_rank() == 0);
    WANT(pmii_facts_size(&size) == -ENXIO); /* only the server knows */
    WANT(!pmii_facts_is_alone());
    return 0;
}

static void test_variables_of_another_rank_are_not_believed(void **state)
{
    (void)state;
    expect_in_child(look_foreign_variables);
}

static int look_slurm(void)
{
    int size, n_apps;
    const int *apps;

    be_rank("5");
    setenv("SLURM_PROCID", "5", 1);
    setenv("SLURM_NTASKS", "99", 1);
    setenv("SLURM_STEP_NUM_TASKS", "6", 1);
    pmii_facts_load();
    WANT(pmii_facts_size(&size) == 0 && size == 6);
    WANT(pmii_facts_apps(&apps, &n_apps) == 0 && n_apps == 1);
    return 0;
}

static void test_slurm_step_tells_the_size(void **state)
{
    (void)state;
    expect_in_child(look_slurm);
}

static int look_nids(void)
{
    int ranks[2] = { -1, -1 }, n;
    char *mapping;

    be_open_mpi_rank("3", "5", "5");
    setenv("EMUNIC_NIDS", "0*2,5*2,7", 1);
    pmii_facts_load();
    WANT(nid_of(0) == 0 && nid_of(1) == 0 && nid_of(2) == 5 && nid_of(3) == 5 && nid_of(4) == 7);
    WANT(pmii_facts_group(PMII_NODE, NULL, 0, &n) == 0 && n == 2);
    WANT(pmii_facts_group(PMII_NODE, ranks, 1, &n) == -EMSGSIZE && ranks[0] == -1);
    WANT(pmii_facts_group(PMII_NODE, ranks, 2, &n) == 0 && ranks[0] == 2 && ranks[1] == 3);
    WANT(pmii_facts_mapping(&mapping) == 0 && strcmp(mapping, "(vector,(0,2,2),(2,1,1))") == 0);
    free(mapping);
    return 0;
}

static void test_nodes_follow_the_emulated_nids(void **state)
{
    (void)state;
    expect_in_child(look_nids);
}

static int look_host_of_nodes(void)
{
    be_open_mpi_rank("0", "2", "2");
    setenv("EMUNIC_HOST", "nid00042", 1); /* whatever gethostname() says */
    pmii_facts_load();
    WANT(nid_of(0) == 42 && nid_of(1) == 42);
    return 0;
}

static void test_nodes_without_a_list_follow_the_host_and_not_the_own_name(void **state)
{
    (void)state;
    expect_in_child(look_host_of_nodes);
}

static int look_wrong_nids(void)
{
    be_open_mpi_rank("0", "2", "2");
    setenv("EMUNIC_NIDS", "4,5,6", 1); /* of the job that started this one */
    pmii_facts_load();
    WANT(nid_of(0) == nid_of(1));
    return 0;
}

static void test_nid_list_of_another_job_is_ignored(void **state)
{
    (void)state;
    expect_in_child(look_wrong_nids);
}

static int look_size_from_nids(void)
{
    int size;

    be_rank("1"); /* a launcher whose variables we do not know */
    setenv("EMUNIC_NIDS", "4,5,6", 1);
    pmii_facts_load();
    WANT(pmii_facts_size(&size) == 0 && size == 3);
    return 0;
}

static void test_nid_list_tells_the_size_if_nothing_else_does(void **state)
{
    (void)state;
    expect_in_child(look_size_from_nids);
}

static int look_apps(void)
{
    const int *apps;
    int n_apps, n;

    be_open_mpi_rank("4", "6", "6");
    setenv("OMPI_APP_CTX_NUM_PROCS", "1 3 2", 1);
    pmii_facts_load();
    WANT(pmii_facts_apps(&apps, &n_apps) == 0 && n_apps == 3);
    WANT(apps[0] == 0 && apps[1] == 1 && apps[3] == 1 && apps[4] == 2 && apps[5] == 2);
    WANT(pmii_facts_group(PMII_NODE_AND_APP, NULL, 0, &n) == 0 && n == 2);
    return 0;
}

static void test_ranks_belong_to_applications_in_order(void **state)
{
    (void)state;
    expect_in_child(look_apps);
}

static int look_wrong_apps(void)
{
    const int *apps;
    int n_apps;

    be_open_mpi_rank("0", "6", "6");
    setenv("OMPI_APP_CTX_NUM_PROCS", "1 3", 1); /* not six */
    pmii_facts_load();
    WANT(pmii_facts_apps(&apps, &n_apps) == -ENXIO);
    return 0;
}

static void test_application_list_that_does_not_add_up_is_not_believed(void **state)
{
    (void)state;
    expect_in_child(look_wrong_apps);
}

static int look_job_names(void)
{
    char a[16], b[16], again[16];
    unsigned number;

    pmii_facts_name_job("1234567", a, sizeof(a));
    pmii_facts_name_job("1234567", again, sizeof(again));
    pmii_facts_name_job("1234568", b, sizeof(b));
    WANT(strcmp(a, again) == 0 && strcmp(a, b) != 0);
    WANT(sscanf(a, "kvs_%u", &number) == 1 && number > 0 && number <= INT32_MAX);
    return 0;
}

static void test_job_name_is_a_function_of_the_namespace(void **state)
{
    (void)state;
    expect_in_child(look_job_names);
}

static int look_columns(void)
{
    WANT(pmii_facts_cabinet_columns() == 2);
    setenv("EMUNIC_CABINET_COLUMNS", "12", 1);
    WANT(pmii_facts_cabinet_columns() == 12);
    setenv("EMUNIC_CABINET_COLUMNS", "0", 1);
    WANT(pmii_facts_cabinet_columns() == 2);
    return 0;
}

static void test_cabinet_columns_default_to_two(void **state)
{
    (void)state;
    expect_in_child(look_columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_without_launcher_is_a_job_of_one),
        cmocka_unit_test(test_lone_process_takes_its_nid),
        cmocka_unit_test(test_open_mpi_tells_rank_and_size),
        cmocka_unit_test(test_universe_is_never_below_the_job),
        cmocka_unit_test(test_variables_of_another_rank_are_not_believed),
        cmocka_unit_test(test_slurm_step_tells_the_size),
        cmocka_unit_test(test_nodes_follow_the_emulated_nids),
        cmocka_unit_test(test_nodes_without_a_list_follow_the_host_and_not_the_own_name),
        cmocka_unit_test(test_nid_list_of_another_job_is_ignored),
        cmocka_unit_test(test_nid_list_tells_the_size_if_nothing_else_does),
        cmocka_unit_test(test_ranks_belong_to_applications_in_order),
        cmocka_unit_test(test_application_list_that_does_not_add_up_is_not_believed),
        cmocka_unit_test(test_job_name_is_a_function_of_the_namespace),
        cmocka_unit_test(test_cabinet_columns_default_to_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
