/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One program that makes every PMI call and checks the answer. Run it alone or under a launcher; every rank
 * prints what was wrong and leaves with 1 then. What it should see comes from the environment of the test:
 *
 *   PMI_CHECK_SIZE      ranks (default 1)
 *   PMI_CHECK_NIDS      nid of each rank, "0,0,5,5"; absent: all ranks on one node
 *   PMI_CHECK_MAPPING   text of PMI_process_mapping; absent: not compared
 *   PMI_CHECK_APPS      ranks per application, "1,3"; absent: one application
 *   PMI_CHECK_COOKIE    expected PMI_GNI_COOKIE and PMI_GNI_PTAG, "cookie:ptag"; absent: neither is set
 *   EMUNIC_PMI_PERMUTE  set: the gather order must not be rank order (and in any case one order for all)
 *   PMI_CHECK_ASKS_SERVER  set: the environment does not tell all facts, so that some need PMI_Init first
 *   PMI_CHECK_LIVES     how often PMI is initialised again after its last finalize (default 3)
 *   PMI_CHECK_BIG       largest block in bytes (default 200000)
 */
#include <dirent.h>
#include <netdb.h>
#include <pmi_cray_ext.h>
#include <pmi_version.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/integration/pmi/pmi_check.h"

int rank = -1, size = -1;
int expected_nids[MAX_RANKS];
char job[64];

static int n_failures;
static int expected_size = 1;
static int expected_apps[MAX_RANKS], n_expected_apps = 1; /* application of each rank */

void check(int is_true, const char *file, int line, const char *format, ...)
{
    va_list args;

    if (is_true)
        return;
    n_failures++;
    fprintf(stderr, "pmi_check: rank %d: %s:%d: ", rank, file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static void read_expectations(void)
{
    const char *text = getenv("PMI_CHECK_SIZE");
    const char *c;

    if (text != NULL)
        expected_size = atoi(text);
    c = getenv("PMI_CHECK_NIDS");
    for (int i = 0; c != NULL && i < expected_size; i++) {
        expected_nids[i] = atoi(c);
        c = strchr(c, ',');
        c = c != NULL ? c + 1 : NULL;
    }
    c = getenv("PMI_CHECK_APPS");
    if (c == NULL)
        return;
    n_expected_apps = 0;
    for (int i = 0; c != NULL && i < MAX_RANKS; n_expected_apps++) {
        for (int n = atoi(c); n > 0 && i < MAX_RANKS; n--)
            expected_apps[i++] = n_expected_apps;
        c = strchr(c, ',');
        c = c != NULL ? c + 1 : NULL;
    }
}

/* ---- before PMI_Init ---- */

/* A question was answered with that number, or only the server knows. */
#define CHECK_ANSWER(call, actual, expected)                                                                           \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PMI_ERR_INIT || getenv("PMI_CHECK_ASKS_SERVER") == NULL) {                                          \
            CHECK_INT(rc_, PMI_SUCCESS);                                                                               \
            CHECK_INT(actual, expected);                                                                               \
        }                                                                                                              \
    } while (0)

/* The vendor's library is up before main: questions about the job are answered if the environment knows. */
static void check_questions_before_init(void)
{
    const char *told = getenv("PMIX_RANK");
    int me = told != NULL ? atoi(told) : 0;
    char text[PMI2_MAX_ATTRVALUE], name[64];
    int n = -1, n_here = 0, found;
    pmi_mesh_coord_t xyz;
    int here[MAX_RANKS];
    void *list;

    for (int r = 0; r < expected_size; r++)
        n_here += expected_nids[r] == expected_nids[me];
    CHECK_OK(PMI_Get_rank(&n));
    CHECK_INT(n, me);
    CHECK_INT(PMI2_Job_GetRank(&n), PMI2_SUCCESS);
    CHECK_INT(n, me);
    CHECK_INT(PMI2_Job_GetId(name, sizeof(name)), PMI2_SUCCESS);
    CHECK(strncmp(name, "kvs_", 4) == 0);
    CHECK_OK(PMI_Get_id(text, sizeof(text)));
    CHECK_TEXT(text, name);
    CHECK_OK(PMI_KVS_Get_my_name(text, sizeof(text)));
    CHECK_TEXT(text, name);
    CHECK_OK(PMI_Get_id_length_max(&n));
    CHECK_OK(PMI_KVS_Get_name_length_max(&n));
    CHECK_OK(PMI_KVS_Get_key_length_max(&n));
    CHECK_OK(PMI_KVS_Get_value_length_max(&n));
    CHECK_OK(PMI_Get_version_info(NULL, NULL, NULL));
    CHECK_OK(PMI_Get_meshcoord(4, &xyz));
    CHECK_ANSWER(PMI_Get_size(&n), n, expected_size);
    CHECK_ANSWER(PMI2_Info_GetSize(&n), n, expected_size);
    CHECK_ANSWER(PMI_Get_universe_size(&n), n >= expected_size, 1);
    CHECK_ANSWER(PMI_Get_appnum(&n), n, expected_apps[me]);
    CHECK_ANSWER(PMI_Get_num_apps(&n), n, n_expected_apps);
    CHECK_ANSWER(PMI_Get_clique_size(&n), n, n_here);
    CHECK_ANSWER(PMI_Get_numpes_on_smp(&n), n, n_here);
    CHECK_ANSWER(PMI_Get_clique_ranks(here, n_here), 0, 0);
    CHECK_ANSWER(PMI_Get_nid(0, &n), n, expected_nids[0]);
    CHECK_ANSWER(PMI_Get_nidlist_ptr(&list), ((int *)list)[me], expected_nids[me]);
    CHECK_ANSWER(PMI_Get_max_dimension(&xyz), 0, 0);
    CHECK_ANSWER(PMI2_Info_GetJobAttr("universeSize", text, sizeof(text), &found), found && atoi(text) >= expected_size,
                 1);
    CHECK_INT(PMI2_Initialized(), 0); /* asking is not initialising */
}

static void check_before_init(void)
{
    char text[32];
    int n = -1;
    PMI_BOOL flag = -1;

    CHECK_OK(PMI_Initialized(&flag));
    CHECK_INT(flag, PMI_FALSE);
    CHECK_INT(PMI2_Initialized(), 0);
    CHECK_OK(PMI_Finalize()); /* tolerated */
    CHECK_OK(PMI2_Finalize());

    check_questions_before_init();

    CHECK_INT(PMI_Barrier(), PMI_ERR_INIT);
    CHECK_INT(PMI_Ibarrier(), PMI_ERR_INIT);
    CHECK_INT(PMI_Wait(), PMI_ERR_INIT);
    CHECK_INT(PMI_Allgather(&n, &n, 0), PMI_ERR_INIT);
    CHECK_INT(PMI_Bcast(&n, 0), PMI_ERR_INIT);
    CHECK_INT(PMI_KVS_Put("kvs_1", "k", "v"), PMI_ERR_INIT);
    CHECK_INT(PMI_KVS_Get("kvs_1", "k", text, sizeof(text)), PMI_ERR_INIT);
    CHECK_INT(PMI_Publish_name("n", "p"), PMI_ERR_INIT);
    CHECK_INT(PMI2_KVS_Put("k", "v"), PMI2_ERR_INIT);
    CHECK_INT(PMI2_KVS_Fence(), PMI2_ERR_INIT);
    CHECK_INT(PMI2_KVS_Get(NULL, -1, "k", text, sizeof(text), &n), PMI2_ERR_INIT);
    CHECK_INT(PMI2_Info_PutNodeAttr("k", "v"), PMI2_ERR_INIT);
    CHECK_INT(PMI2_Info_GetNodeAttr("k", text, sizeof(text), &n, 0), PMI2_ERR_INIT);
}

static void check_credentials(void)
{
    const char *expected = getenv("PMI_CHECK_COOKIE");
    const char *cookie = getenv("PMI_GNI_COOKIE"), *ptag = getenv("PMI_GNI_PTAG");
    char text[64];

    CHECK(getenv("PMI_GNI_DEV_ID") == NULL && getenv("PMI_GNI_LOC_ADDR") == NULL);
    if (expected == NULL) {
        CHECK(cookie == NULL && ptag == NULL);
        return;
    }
    snprintf(text, sizeof(text), "%s:%s", cookie != NULL ? cookie : "", ptag != NULL ? ptag : "");
    CHECK_TEXT(text, expected);
}

/* ---- init and counting ---- */

static void check_init(void)
{
    int spawned = -1, size2 = -1, rank2 = -1, appnum = -1;
    PMI_BOOL flag;

    CHECK_OK(PMI_Init(&spawned));
    CHECK_INT(spawned, 0);
    CHECK_OK(PMI_Get_rank(&rank));
    CHECK_OK(PMI_Get_size(&size));
    CHECK_INT(size, expected_size);
    CHECK(rank >= 0 && rank < size);
    if (n_failures > 0)
        exit(1); /* the rest makes no sense */

    /* Again, through the other door, and back. */
    CHECK_INT(PMI2_Init(&spawned, &size2, &rank2, &appnum), PMI2_SUCCESS);
    CHECK_INT(size2, size);
    CHECK_INT(rank2, rank);
    CHECK_INT(appnum, expected_apps[rank]);
    CHECK_INT(PMI2_Init(NULL, NULL, NULL, NULL), PMI2_SUCCESS);
    CHECK_OK(PMI_Init(NULL));
    CHECK_INT(PMI2_Finalize(), PMI2_SUCCESS);
    CHECK_OK(PMI_Finalize());
    CHECK_INT(PMI2_Finalize(), PMI2_SUCCESS);
    CHECK_OK(PMI_Initialized(&flag));
    CHECK_INT(flag, PMI_TRUE);
    CHECK(PMI2_Initialized() != 0);
    CHECK_INT(PMI2_Set_threaded(1), PMI2_SUCCESS);
    CHECK_INT(PMI_Init(NULL) + PMI_Finalize(), 0);
    CHECK_INT(PMI_Initialized(NULL), PMI_ERR_INVALID_ARG);
}

/* ---- identity ---- */

static void check_identity(void)
{
    char text[64], short_text[4];
    unsigned number;
    int n = -1, end = 0, major, minor, revision;

    CHECK_INT(PMI2_Job_GetId(job, sizeof(job)), PMI2_SUCCESS);
    CHECK(sscanf(job, "kvs_%u%n", &number, &end) == 1 && job[end] == '\0');
    CHECK_OK(PMI_Get_id(text, sizeof(text)));
    CHECK_TEXT(text, job);
    CHECK_OK(PMI_Get_kvs_domain_id(text, sizeof(text)));
    CHECK_TEXT(text, job);
    CHECK_OK(PMI_KVS_Get_my_name(text, sizeof(text)));
    CHECK_TEXT(text, job);
    strcpy(short_text, "abc");
    CHECK_INT(PMI2_Job_GetId(short_text, sizeof(short_text)), PMI2_ERR_INVALID_LENGTH);
    CHECK_TEXT(short_text, "abc");
    CHECK_OK(PMI_Get_id_length_max(&n));
    CHECK(n > (int)strlen(job));

    CHECK_INT(PMI2_Job_GetRank(&n), PMI2_SUCCESS);
    CHECK_INT(n, rank);
    CHECK_INT(PMI2_Info_GetSize(&n), PMI2_SUCCESS);
    CHECK_INT(n, size);
    CHECK_OK(PMI_Get_universe_size(&n));
    CHECK(n >= size);
    CHECK_OK(PMI_Get_version_info(&major, &minor, &revision));
    CHECK_INT(major * 10000 + minor * 100 + revision,
              PMI_CRAY_VERSION_MAJOR * 10000 + PMI_CRAY_VERSION_MINOR * 100 + PMI_CRAY_VERSION_REVISION);
    CHECK_INT(PMI_Get_rank(NULL), PMI_ERR_INVALID_ARG);
    CHECK_INT(PMI_Get_size(NULL), PMI_ERR_INVALID_ARG);
}

static void check_applications(void)
{
    int n = -1, mine = expected_apps[rank], base = -1, place = 0, app_size = 0;

    for (int r = 0; r < size; r++) {
        if (expected_apps[r] != mine)
            continue;
        if (base < 0)
            base = r;
        place += r < rank;
        app_size++;
    }
    CHECK_OK(PMI_Get_appnum(&n));
    CHECK_INT(n, mine);
    CHECK_OK(PMI_Get_num_apps(&n));
    CHECK_INT(n, n_expected_apps);
    CHECK_OK(PMI_Get_app_size(mine, &n));
    CHECK_INT(n, app_size);
    CHECK_INT(PMI_Get_app_size(n_expected_apps, &n), PMI_ERR_INVALID_ARG);
    CHECK_INT(PMI_Get_app_size(-1, &n), PMI_ERR_INVALID_ARG);
    CHECK_OK(PMI_Get_rank_in_app(&n));
    CHECK_INT(n, place);
    CHECK_OK(PMI_Get_base_rank_in_app(&n));
    CHECK_INT(n, base);
    CHECK_OK(PMI_CRAY_Get_app_size(mine, &n));
    CHECK_INT(n, app_size);
    CHECK_OK(PMI_CRAY_Get_num_apps(&n));
    CHECK_INT(n, n_expected_apps);
    CHECK_OK(PMI_CRAY_Get_rank_in_app(&n));
    CHECK_INT(n, place);
    CHECK_OK(PMI_CRAY_Get_base_rank_in_app(&n));
    CHECK_INT(n, base);
    CHECK(PMI_CRAY_gethostbyname("localhost") != NULL);
}

/* ---- nodes ---- */

static void check_ranks(int (*list)(int *, int), int n_expected, int is_app_only)
{
    int ranks[MAX_RANKS], n = 0;

    CHECK_INT(list(ranks, n_expected - 1), PMI_ERR_INVALID_LENGTH);
    CHECK_OK(list(ranks, n_expected));
    for (int r = 0; r < size; r++) {
        if (expected_nids[r] == expected_nids[rank] && (!is_app_only || expected_apps[r] == expected_apps[rank]))
            CHECK_INT(ranks[n++], r);
    }
    CHECK_INT(list(NULL, 1), PMI_ERR_INVALID_ARG);
}

static void check_nodes(void)
{
    pmi_mesh_coord_t xyz, max, other;
    void *list = NULL, *again = NULL;
    int n = -1, n_here = 0, n_app_here = 0;

    for (int r = 0; r < size; r++) {
        n_here += expected_nids[r] == expected_nids[rank];
        n_app_here += expected_nids[r] == expected_nids[rank] && expected_apps[r] == expected_apps[rank];
    }
    CHECK_OK(PMI_Get_nidlist_ptr(&list));
    CHECK_OK(PMI_Get_nidlist_ptr(&again));
    CHECK(list != NULL && list == again);
    for (int r = 0; r < size; r++) {
        CHECK_INT(((int *)list)[r], expected_nids[r]);
        CHECK_OK(PMI_Get_nid(r, &n));
        CHECK_INT(n, expected_nids[r]);
    }
    CHECK_INT(PMI_Get_nid(size, &n), PMI_ERR_INVALID_ARG);
    CHECK_INT(PMI_Get_nid(-1, &n), PMI_ERR_INVALID_ARG);

    CHECK_OK(PMI_Get_numpes_on_smp(&n));
    CHECK_INT(n, n_here);
    CHECK_OK(PMI_Get_clique_size(&n));
    CHECK_INT(n, n_here);
    CHECK_OK(PMI_Get_numpes_in_app_on_smp(&n));
    CHECK_INT(n, n_app_here);
    check_ranks(PMI_Get_pes_on_smp, n_here, 0);
    check_ranks(PMI_Get_clique_ranks, n_here, 0);
    check_ranks(PMI_Get_pes_in_app_on_smp, n_app_here, 1);

    CHECK_OK(PMI_Get_meshcoord((pmi_nid_t)expected_nids[rank], &xyz));
    CHECK_OK(PMI_Get_max_dimension(&max));
    CHECK(xyz.mesh_x <= max.mesh_x && xyz.mesh_y <= max.mesh_y && xyz.mesh_z <= max.mesh_z);
    CHECK_OK(PMI_Get_meshcoord(384 + 64 + 5, &xyz)); /* two columns: group 1, chassis 1, slot 1 */
    CHECK(xyz.mesh_x == 1 && xyz.mesh_y == 1 && xyz.mesh_z == 1);
    CHECK_OK(PMI_Get_meshcoord(384 + 64 + 6, &other));
    CHECK(memcmp(&xyz, &other, sizeof(xyz)) == 0);
    CHECK_INT(PMI_Get_meshcoord(0, NULL), PMI_ERR_INVALID_ARG);

    CHECK_OK(PMI_CNOS_Get_nidpid_map(&list));
    CHECK_OK(PMI_Portals_get_nidpid_map(&again));
    CHECK(list != NULL && list == again);
    for (int r = 0; r < size; r++) {
        CHECK_INT(((int *)list)[2 * r], expected_nids[r]);
        CHECK_INT(((int *)list)[2 * r + 1], r);
        CHECK_OK(PMI_Portals_get_nid(r, &n));
        CHECK_INT(n, expected_nids[r]);
    }
}

static void check_job_attributes(void)
{
    const char *mapping = getenv("PMI_CHECK_MAPPING");
    char text[PMI2_MAX_ATTRVALUE], other[PMI2_MAX_ATTRVALUE];
    int found = -1, array[4], n = -1, universe = -1;

    CHECK_OK(PMI_Get_universe_size(&universe));
    CHECK_INT(PMI2_Info_GetJobAttr("universeSize", text, sizeof(text), &found), PMI2_SUCCESS);
    CHECK_INT(found, 1);
    CHECK_INT(atoi(text), universe);
    CHECK_INT(PMI2_Info_GetJobAttrIntArray("universeSize", array, 4, &n, &found), PMI2_SUCCESS);
    CHECK(found == 1 && n == 1 && array[0] == universe);
    CHECK_INT(PMI2_Info_GetJobAttrIntArray("PMI_process_mapping", array, 4, &n, &found), PMI2_SUCCESS);
    CHECK_INT(found, 0);
    CHECK_INT(PMI2_Info_GetJobAttr("no such name", text, sizeof(text), &found), PMI2_SUCCESS);
    CHECK_INT(found, 0);
    CHECK_INT(PMI2_Info_GetJobAttr("PMI_process_mapping", text, sizeof(text), &found), PMI2_SUCCESS);
    CHECK_INT(found, 1);
    CHECK(strncmp(text, "(vector,(0,", 11) == 0);
    if (mapping != NULL)
        CHECK_TEXT(text, mapping);
    CHECK_INT(PMI2_Info_GetJobAttr("PMI_process_mapping", other, 5, &found), PMI2_ERR_INVALID_LENGTH);
    CHECK_OK(PMI_KVS_Get(job, "PMI_process_mapping", other, sizeof(other)));
    CHECK_TEXT(other, text);
}

/* Facts come from the environment: no connection yet, hence no thread of PMIx. */
static void check_is_not_connected(void)
{
    DIR *tasks = getenv("PMI_CHECK_ASKS_SERVER") ? NULL : opendir("/proc/self/task");
    int n = 0;

    if (tasks == NULL)
        return;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
        n += entry->d_name[0] != '.';
    closedir(tasks);
    CHECK_INT(n, 1);
}

/* ---- the rest ---- */

static void check_unsupported(void)
{
    const char *cmds[] = { "/bin/true" };
    const int one[] = { 1 }, none[] = { 0 };
    const PMI_keyval_t *no_infos[] = { NULL };
    PMI_keyval_t pair = { "k", (char *)(size_t) "v" };
    const PMI_keyval_t *pairs[] = { &pair };
    PMI_keyval_t *parsed;
    char *args[] = { NULL }, text[16];
    int n = 0, errors[1] = { 0 };

    CHECK_INT(PMI_Parse_option(0, args, &n, &parsed, &n), PMI_FAIL);
    CHECK_INT(PMI_Args_to_keyval(&n, (char *(*)[])args, &parsed, &n), PMI_FAIL);
    CHECK_INT(PMI_Get_options(text, &n), PMI_FAIL);
    CHECK_OK(PMI_Free_keyvals(NULL, 0));
    CHECK_INT(PMI2_Job_Connect(job, NULL), PMI2_FAIL);
    CHECK_INT(PMI2_Job_Disconnect(job), PMI2_FAIL);
    CHECK_INT(PMI_Spawn_multiple(1, cmds, NULL, one, none, no_infos, 1, &pair, errors), PMI_FAIL);
    CHECK_INT(errors[0], PMI_FAIL);
    CHECK_INT(PMI2_Job_Spawn(1, cmds, NULL, NULL, one, none, no_infos, 1, pairs, text, sizeof(text), errors),
              PMI2_FAIL);
    CHECK_INT(PMI_Spawn_multiple(0, cmds, NULL, one, none, no_infos, 0, NULL, errors), PMI_ERR_INVALID_ARG);
    if (getenv("PMIX_NAMESPACE") == NULL) { /* no launcher to spawn with */
        CHECK_INT(PMI_Spawn_multiple(1, cmds, NULL, one, none, no_infos, 0, NULL, errors), PMI_FAIL);
        CHECK_INT(PMI2_Job_Spawn(1, cmds, NULL, NULL, one, none, no_infos, 0, NULL, text, sizeof(text), errors),
                  PMI2_FAIL);
    }
}

/* ---- threads ---- */

/* Questions are answered while another thread of the rank is in a barrier; rank 0 enters it only afterwards. */
static void *ask(void *is_done)
{
    int n;
    char value[16];

    for (int i = 0; i < 200; i++) {
        if (PMI_Get_rank(&n) != PMI_SUCCESS || n != rank || PMI_Get_nid(rank, &n) != PMI_SUCCESS ||
            PMI2_KVS_Put("thread", "x") != PMI2_SUCCESS ||
            PMI2_KVS_Get(job, rank, "thread", value, sizeof(value), &n) != PMI2_SUCCESS)
            return NULL;
    }
    *(int *)is_done = 1;
    if (rank == 0)
        return PMI_Barrier() == PMI_SUCCESS ? is_done : NULL;
    return is_done;
}

static void check_threads(void)
{
    pthread_t thread;
    int is_done = 0;
    void *result = NULL;

    CHECK_INT(pthread_create(&thread, NULL, ask, &is_done), 0);
    if (rank != 0)
        CHECK_OK(PMI_Barrier());
    pthread_join(thread, &result);
    CHECK(result == &is_done);
    CHECK_OK(PMI_Barrier());
}

/* ---- end ---- */

static void check_init_again(void)
{
    const char *lives_text = getenv("PMI_CHECK_LIVES");
    int n_lives = lives_text != NULL ? atoi(lives_text) : 3;
    int order[MAX_RANKS], n;
    char got[16];

    CHECK_OK(PMI_Finalize());
    for (int life = 0; life < n_lives; life++) {
        CHECK_INT(PMI2_Initialized(), 0);
        CHECK_INT(PMI_Barrier(), PMI_ERR_INIT);
        CHECK_INT(PMI2_Init(NULL, NULL, NULL, NULL), PMI2_SUCCESS);
        if (life == 1)
            CHECK_OK(PMI_Ibarrier()); /* finalize completes it */
        else
            learn_order(order);
        if (life == 2) {
            if (rank == size - 1)
                CHECK_INT(PMI2_KVS_Put("again", "yes"), PMI2_SUCCESS);
            CHECK_INT(PMI2_KVS_Fence(), PMI2_SUCCESS);
            CHECK_INT(PMI2_KVS_Get(job, -1, "again", got, sizeof(got), &n), PMI2_SUCCESS);
        }
        CHECK_INT(PMI2_Finalize(), PMI2_SUCCESS);
    }
    CHECK_INT(PMI2_Finalize(), PMI2_SUCCESS); /* one too many */
}

int main(void)
{
    read_expectations();
    check_before_init();
    check_credentials();
    check_init();
    check_identity();
    check_applications();
    check_nodes();
    check_job_attributes();
    check_is_not_connected();
    check_collectives();
    check_allgatherv_refuses_a_false_length();
    check_barriers();
    check_kvs_pmi2();
    check_kvs_pmi1();
    check_many_pairs();
    check_node_attributes();
    check_names();
    check_unsupported();
    check_threads();
    check_init_again();
    return n_failures == 0 ? 0 : 1;
}
