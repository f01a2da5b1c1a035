/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only file that talks PMIx.
 *
 * One connection per process, made late: an MPI library in the same process may have its own, and programs that
 * only ask for rank and size must not open another. Where both link the same libpmix, PMIx counts
 * initialisations and the connection is shared. Who uses PMI after MPI_Init without PMI_Init, as the original lets
 * him, borrows MPI's connection: nobody would end one of ours. It lasts until MPI_Finalize.
 *
 * Look-ups ask for what is there now (PMIX_IMMEDIATE). Without that, PMIx 4.2 waits two seconds for a key that
 * nobody put; with PMIX_OPTIONAL it does not find other ranks' data when the client keeps its data in a hash
 * table. So remote data is only found after a collecting fence.
 *
 * Connecting again after a disconnect needs care. A server completes a fence (with "partial success") when a
 * participant of its host disconnects. A rank that is quick to come back would so pass a fence that a slow one,
 * still leaving its earlier connection, has not entered. So the first fence of a further connection waits until
 * all ranks of the host have come back, which each of them shows with a key that names the connection's number.
 * Who is on the host must be asked in the first connection: in later ones Open MPI 4.1.4's answers about hosts
 * and nodes are wrong. (Its PMIX_LOCAL_PEERS is wrong even in the first one for clients with "gds" hash.) And
 * further connections ask for "gds" hash: PMIx 4.2.2 would fall back to its "ds12" store, which then shows old
 * values now and then. What remains is a race in the server: it acknowledges a client's end before it has marked
 * it, and a client that closes its socket in between is taken for dead and no longer counted in fences.
 *
 * PMIx callbacks run on its progress thread and take no lock of ours: a caller may hold the library lock while
 * it waits for that thread. The one callback here posts a semaphore.
 */
#include "mpi-shim/pmi/src/px.h"

#include "mpi-shim/pmi/src/nidmap.h"
#include "mpi-shim/pmi/src/pmi_log.h"

#include <errno.h>
#include <limits.h>
#include <pmix.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    unsigned n_lives; /* connections so far in which there was a fence; the same on all ranks */
    bool has_fenced;  /* in this connection */
    int *host_peers;  /* owned; ranks on this host but me; NULL until the first connection ends */
    int n_host_peers;
    atomic_bool is_connected;   /* changed under the library lock; PMI_Abort reads it without */
    bool is_borrowed;           /* another library's, which may end it */
    unsigned fence_life;        /* n_lives when the split fence was started */
    pmix_proc_t self;           /* set before is_connected, constant while it holds */
    sem_t fence_done;           /* posted by the callback, taken by pmii_px_fence_finish() */
    pmix_status_t fence_status; /* written before the post, read after the wait */
} px;

static int from_pmix(pmix_status_t status, const char *what)
{
    if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
        return 0;
    pmii_log(PMII_WARN, "%s failed, pmix status %d (%s)", what, (int)status, PMIx_Error_string(status));
    switch (status) {
    case PMIX_ERR_NOMEM:
    case PMIX_ERR_OUT_OF_RESOURCE:
        return -ENOMEM;
    case PMIX_ERR_UNREACH:
        return -ENOTCONN;
    default:
        return -EIO;
    }
}

/* PMIx_Init with the store that works in this connection. */
static pmix_status_t init_pmix(void)
{
    const char *gds = getenv("PMIX_MCA_gds");
    char *saved = gds ? strdup(gds) : NULL;
    pmix_status_t status;

    if (px.n_lives > 0)
        setenv("PMIX_MCA_gds", "hash", 1);
    status = PMIx_Init(&px.self, NULL, 0);
    if (px.n_lives > 0) {
        if (saved)
            setenv("PMIX_MCA_gds", saved, 1);
        else
            unsetenv("PMIX_MCA_gds");
    }
    free(saved);
    return status;
}

bool pmii_px_keys_are_reused(void)
{
    const char *chosen = getenv("PMIX_MCA_gds");
    const char *offered = getenv("PMIX_GDS_MODULE");

    return px.n_lives == 0 && offered && strncmp(offered, "ds", 2) == 0 && (!chosen || strncmp(chosen, "ds", 2) == 0);
}

/* What remains of a borrowed connection when its holder has ended it. */
static void forget_ended(void)
{
    if (!px.is_borrowed || PMIx_Initialized())
        return;
    px.is_borrowed = false;
    atomic_store_explicit(&px.is_connected, false, memory_order_release);
    px.n_lives += px.has_fenced;
    sem_destroy(&px.fence_done);
}

/* One initialisation of PMIx more, with this process as a rank of its job. */
static int hold_pmix(void)
{
    const char *nspace = getenv("PMIX_NAMESPACE");
    pmix_status_t status;

    if (!nspace)
        return -ENOTCONN;
    status = init_pmix();
    if (status != PMIX_SUCCESS)
        return from_pmix(status, "PMIx_Init") < 0 ? -ENOTCONN : 0;
    if (strncmp(px.self.nspace, nspace, PMIX_MAX_NSLEN) != 0) {
        /* Some versions make a job of their own when the server is gone. */
        pmii_log(PMII_WARN, "joined namespace %s instead of %s", px.self.nspace, nspace);
        PMIx_Finalize(NULL, 0);
        return -ENOTCONN;
    }
    return 0;
}

static int start_life(void)
{
    if (sem_init(&px.fence_done, 0, 0) < 0) {
        int r = -errno;

        PMIx_Finalize(NULL, 0);
        return r;
    }
    px.has_fenced = false;
    atomic_store_explicit(&px.is_connected, true, memory_order_release);
    pmii_log(PMII_INFO, "connected, namespace %s rank %u", px.self.nspace, (unsigned)px.self.rank);
    return 0;
}

int pmii_px_connect(void)
{
    bool was_borrowed;
    int r;

    forget_ended();
    was_borrowed = px.is_borrowed;
    if (atomic_load_explicit(&px.is_connected, memory_order_acquire) && !was_borrowed)
        return 0;
    r = hold_pmix();
    if (r < 0)
        return r;
    px.is_borrowed = false;
    return was_borrowed ? 0 : start_life();
}

int pmii_px_borrow(void)
{
    int r;

    forget_ended();
    if (atomic_load_explicit(&px.is_connected, memory_order_acquire))
        return 0;
    if (!PMIx_Initialized())
        return -ENXIO;
    r = hold_pmix();
    if (r == 0)
        r = start_life();
    if (r < 0)
        return r;
    px.is_borrowed = true;
    from_pmix(PMIx_Finalize(NULL, 0), "PMIx_Finalize"); /* the holder's initialisation alone counts again */
    return 0;
}

bool pmii_px_is_held(void)
{
    return PMIx_Initialized();
}

/* As Open MPI's environment says, for nothing; false: who is here must be asked, rank by rank. */
static bool is_whole_job_here(int size)
{
    int rank, n_local;

    return pmii_parse_int(getenv("OMPI_COMM_WORLD_RANK"), &rank) && rank == (int)px.self.rank &&
           pmii_parse_int(getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), &n_local) && n_local == size;
}

/*
 * On failure nobody is known, and a later connection does not wait. A question costs two switches of threads: those
 * of all ranks about all ranks took 26 ms of each of 1024.
 */
static void learn_host_peers(void)
{
    char mine[256], theirs[256];
    int self = (int)px.self.rank, size;
    bool are_all_here;

    if (px.host_peers || pmii_px_fact_int(-1, PMIX_JOB_SIZE, &size) != 0)
        return;
    are_all_here = is_whole_job_here(size);
    if (!are_all_here && pmii_px_fact_text(self, PMIX_HOSTNAME, mine, sizeof(mine)) != 0)
        return;
    px.host_peers = malloc((size_t)size * sizeof(*px.host_peers));
    for (int rank = 0; px.host_peers && rank < size; rank++) {
        if (rank != self && (are_all_here || (pmii_px_fact_text(rank, PMIX_HOSTNAME, theirs, sizeof(theirs)) == 0 &&
                                              strcmp(mine, theirs) == 0)))
            px.host_peers[px.n_host_peers++] = rank;
    }
}

void pmii_px_disconnect(void)
{
    forget_ended();
    if (!atomic_load_explicit(&px.is_connected, memory_order_acquire) || px.is_borrowed)
        return;
    if (px.has_fenced && px.n_lives == 0)
        learn_host_peers();
    atomic_store_explicit(&px.is_connected, false, memory_order_release);
    px.n_lives += px.has_fenced;
    sem_destroy(&px.fence_done);
    from_pmix(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
}

bool pmii_px_is_connected(void)
{
    return atomic_load_explicit(&px.is_connected, memory_order_acquire);
}

static void name_rank(pmix_proc_t *proc, pmix_rank_t rank)
{
    memset(proc, 0, sizeof(*proc));
    memcpy(proc->nspace, px.self.nspace, sizeof(proc->nspace));
    proc->rank = rank;
}

/* ---- data ---- */

int pmii_px_put(enum pmii_px_scope scope, const char *key, const void *data, size_t len_bytes)
{
    pmix_value_t value = { .type = PMIX_BYTE_OBJECT };

    value.data.bo.bytes = (char *)(uintptr_t)data; /* copied by PMIx_Put, not changed */
    value.data.bo.size = len_bytes;
    return from_pmix(PMIx_Put(scope == PMII_PX_JOB ? PMIX_GLOBAL : PMIX_LOCAL, key, &value), "PMIx_Put");
}

int pmii_px_commit(void)
{
    return from_pmix(PMIx_Commit(), "PMIx_Commit");
}

static void set_flag(pmix_info_t *info, const char *key)
{
    memset(info, 0, sizeof(*info));
    strncpy(info->key, key, PMIX_MAX_KEYLEN);
    info->value.type = PMIX_BOOL;
    info->value.data.flag = true;
}

/* Wait for the ranks of this host to have connected as often as I have. */
static int meet_again(void)
{
    static const char is_back[128]; /* not shorter: see rounds.c about small values */
    const struct timespec pause = { 0, 1000000 };
    char key[40];
    int r;

    snprintf(key, sizeof(key), "emunic.life.%u", px.n_lives);
    r = pmii_px_put(PMII_PX_HOST, key, is_back, sizeof(is_back));
    if (r == 0)
        r = pmii_px_commit();
    for (int i = 0; i < px.n_host_peers && r >= 0;) {
        size_t len;
        void *bytes;

        r = pmii_px_get(px.host_peers[i], key, &bytes, &len);
        if (r == 0) {
            free(bytes);
            i++;
        } else if (r == PMII_PX_MISSING) {
            nanosleep(&pause, NULL);
        }
    }
    return r;
}

int pmii_px_begin_collective(void)
{
    int r = 0;

    if (!px.has_fenced && px.n_lives > 0)
        r = meet_again();
    else if (!px.has_fenced && px.is_borrowed)
        learn_host_peers(); /* its end will not be ours to see */
    px.has_fenced = true;
    return r;
}

int pmii_px_fence(bool is_collecting)
{
    pmix_proc_t all;
    pmix_info_t collect;

    name_rank(&all, PMIX_RANK_WILDCARD);
    set_flag(&collect, PMIX_COLLECT_DATA);
    return from_pmix(PMIx_Fence(&all, 1, is_collecting ? &collect : NULL, is_collecting ? 1 : 0), "PMIx_Fence");
}

/* On PMIx's progress thread. */
static void fence_completed(pmix_status_t status, void *unused)
{
    (void)unused;
    px.fence_status = status;
    sem_post(&px.fence_done);
}

int pmii_px_fence_start(void)
{
    /* PMIx reads both until the callback has run, so they outlive this function. */
    static pmix_proc_t all;
    static pmix_info_t collect;
    pmix_status_t status;

    px.fence_life = px.n_lives;
    name_rank(&all, PMIX_RANK_WILDCARD);
    set_flag(&collect, PMIX_COLLECT_DATA);
    status = PMIx_Fence_nb(&all, 1, &collect, 1, fence_completed, NULL);
    if (status == PMIX_OPERATION_SUCCEEDED) { /* complete at once: no callback follows */
        fence_completed(PMIX_SUCCESS, NULL);
        return 0;
    }
    return from_pmix(status, "PMIx_Fence_nb");
}

int pmii_px_fence_finish(void)
{
    if (!pmii_px_is_connected() || px.fence_life != px.n_lives)
        return -ENOTCONN;
    while (sem_wait(&px.fence_done) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return from_pmix(px.fence_status, "PMIx_Fence_nb");
}

static bool is_absence(pmix_status_t status)
{
    return status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT || status == PMIX_ERR_PROC_ENTRY_NOT_FOUND ||
           status == PMIX_ERR_DATA_VALUE_NOT_FOUND;
}

static int get_value(int rank, const char *key, pmix_value_t **value_out)
{
    pmix_proc_t proc;
    pmix_info_t now;
    pmix_status_t status;

    name_rank(&proc, rank < 0 ? PMIX_RANK_WILDCARD : (pmix_rank_t)rank);
    set_flag(&now, PMIX_IMMEDIATE);
    *value_out = NULL;
    status = PMIx_Get(&proc, key, &now, 1, value_out);
    if (is_absence(status))
        return PMII_PX_MISSING;
    if (status == PMIX_SUCCESS && !*value_out)
        return PMII_PX_MISSING;
    return from_pmix(status, "PMIx_Get");
}

static void free_value(pmix_value_t *value)
{
    PMIX_VALUE_RELEASE(value);
}

int pmii_px_get(int rank, const char *key, void **data_out, size_t *len_bytes_out)
{
    pmix_value_t *value;
    void *data;
    int r;

    r = get_value(rank, key, &value);
    if (r != 0)
        return r;
    if (value->type != PMIX_BYTE_OBJECT) {
        free_value(value);
        return -EIO;
    }
    data = malloc(value->data.bo.size + 1);
    if (!data) {
        free_value(value);
        return -ENOMEM;
    }
    if (value->data.bo.size > 0)
        memcpy(data, value->data.bo.bytes, value->data.bo.size);
    *data_out = data;
    *len_bytes_out = value->data.bo.size;
    free_value(value);
    return 0;
}

/* ---- facts ---- */

static int value_to_int(const pmix_value_t *value, int *number_out)
{
    int64_t number;

    switch (value->type) {
    case PMIX_UINT32:
        number = value->data.uint32;
        break;
    case PMIX_UINT16:
        number = value->data.uint16;
        break;
    case PMIX_INT:
        number = value->data.integer;
        break;
    case PMIX_INT32:
        number = value->data.int32;
        break;
    case PMIX_PROC_RANK:
        number = value->data.rank;
        break;
    case PMIX_SIZE:
        number = value->data.size > INT_MAX ? -1 : (int64_t)value->data.size;
        break;
    default:
        return PMII_PX_MISSING;
    }
    if (number < 0 || number > INT_MAX)
        return PMII_PX_MISSING;
    *number_out = (int)number;
    return 0;
}

int pmii_px_fact_int(int rank, const char *key, int *value_out)
{
    pmix_value_t *value;
    int r;

    r = get_value(rank, key, &value);
    if (r != 0)
        return r;
    r = value_to_int(value, value_out);
    free_value(value);
    return r;
}

int pmii_px_fact_text(int rank, const char *key, char *text_out, size_t room_bytes)
{
    pmix_value_t *value;
    int r;

    r = get_value(rank, key, &value);
    if (r != 0)
        return r;
    if (value->type != PMIX_STRING || strlen(value->data.string) >= room_bytes)
        r = PMII_PX_MISSING;
    else
        strcpy(text_out, value->data.string);
    free_value(value);
    return r;
}

/* ---- names ---- */

static int published_key(char *key, const char *name)
{
    static const char prefix[] = "emunic.name.";

    if (strlen(name) + sizeof(prefix) > PMIX_MAX_KEYLEN)
        return -EINVAL;
    strcpy(key, prefix);
    strcat(key, name);
    return 0;
}

int pmii_px_publish(const char *name, const char *port)
{
    pmix_info_t info;
    int r;

    memset(&info, 0, sizeof(info));
    r = published_key(info.key, name);
    if (r < 0)
        return r;
    info.value.type = PMIX_STRING;
    info.value.data.string = (char *)(uintptr_t)port; /* copied by PMIx_Publish, not changed */
    return from_pmix(PMIx_Publish(&info, 1), "PMIx_Publish");
}

int pmii_px_lookup(const char *name, char **port_out)
{
    pmix_pdata_t found;
    pmix_status_t status;
    char *port;
    int r;

    memset(&found, 0, sizeof(found));
    r = published_key(found.key, name);
    if (r < 0)
        return r;
    status = PMIx_Lookup(&found, 1, NULL, 0);
    if (is_absence(status))
        return PMII_PX_MISSING;
    r = from_pmix(status, "PMIx_Lookup");
    if (r < 0)
        return r;
    if (found.value.type != PMIX_STRING || !found.value.data.string)
        return PMII_PX_MISSING;
    port = strdup(found.value.data.string);
    PMIX_PDATA_DESTRUCT(&found);
    if (!port)
        return -ENOMEM;
    *port_out = port;
    return 0;
}

int pmii_px_unpublish(const char *name)
{
    char key[PMIX_MAX_KEYLEN + 1];
    char *keys[] = { key, NULL };
    int r;

    r = published_key(key, name);
    if (r < 0)
        return r;
    return from_pmix(PMIx_Unpublish(keys, NULL, 0), "PMIx_Unpublish");
}

/* ---- spawn and abort ---- */

static void free_apps(pmix_app_t *apps, size_t n_apps)
{
    for (size_t i = 0; i < n_apps; i++)
        PMIX_APP_DESTRUCT(&apps[i]);
    free(apps);
}

static int set_text(pmix_info_t *info, const char *key, const char *text)
{
    strncpy(info->key, key, PMIX_MAX_KEYLEN);
    info->value.type = PMIX_STRING;
    info->value.data.string = strdup(text);
    return info->value.data.string ? 0 : -ENOMEM;
}

/* Where to run. Without a wish there must be no array: PMIx 4.2.2 crashes on an empty one. */
static int fill_wishes(pmix_app_t *to, const struct pmii_px_app *from)
{
    int r = 0;

    if (!from->host && !from->work_dir)
        return 0;
    to->info = calloc(2, sizeof(*to->info));
    if (!to->info)
        return -ENOMEM;
    if (from->host)
        r = set_text(&to->info[to->ninfo++], PMIX_HOST, from->host);
    if (r == 0 && from->work_dir) {
        to->cwd = strdup(from->work_dir);
        r = to->cwd ? set_text(&to->info[to->ninfo++], PMIX_WDIR, from->work_dir) : -ENOMEM;
    }
    return r;
}

static int fill_app(pmix_app_t *to, const struct pmii_px_app *from)
{
    to->maxprocs = from->n_procs;
    to->cmd = strdup(from->program);
    to->argv = calloc((size_t)from->n_args + 2, sizeof(*to->argv));
    to->env = calloc(2, sizeof(*to->env));
    if (!to->cmd || !to->argv || !to->env)
        return -ENOMEM;
    to->argv[0] = strdup(from->program);
    to->env[0] = strdup("EMUNIC_PMI_SPAWNED=1"); /* PMI_Init of the new ranks reports it */
    if (!to->argv[0] || !to->env[0])
        return -ENOMEM;
    for (int i = 0; i < from->n_args; i++) {
        to->argv[i + 1] = strdup(from->args[i]);
        if (!to->argv[i + 1])
            return -ENOMEM;
    }
    return fill_wishes(to, from);
}

int pmii_px_spawn(const struct pmii_px_app *apps, int n_apps, char *name_out, size_t room_bytes)
{
    pmix_nspace_t child;
    pmix_app_t *request;
    int r = 0;

    request = calloc((size_t)n_apps, sizeof(*request));
    if (!request)
        return -ENOMEM;
    for (int i = 0; i < n_apps && r == 0; i++)
        r = fill_app(&request[i], &apps[i]);
    memset(child, 0, sizeof(child));
    if (r == 0)
        r = from_pmix(PMIx_Spawn(NULL, 0, request, (size_t)n_apps, child), "PMIx_Spawn");
    free_apps(request, (size_t)n_apps);
    if (r < 0)
        return r;
    if (strlen(child) >= room_bytes)
        return -EINVAL;
    strcpy(name_out, child);
    return 0;
}

void pmii_px_abort(int status, const char *message)
{
    PMIx_Abort(status, message, NULL, 0);
}

const char *pmii_px_version(void)
{
    static char text[64];

    snprintf(text, sizeof(text), "%s", PMIx_Get_version());
    text[strcspn(text, "(")] = '\0'; /* what follows is about the standard */
    return text;
}
