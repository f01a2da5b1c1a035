/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Published names and new jobs.
 *
 * Both are the launcher's business and go straight to it, so they need a launcher even in a job of one rank. A
 * process without one keeps its names to itself. A name is published once; whether another process has
 * published it is asked first, as Open MPI's server silently keeps both.
 */
#include "mpi-shim/pmi/src/names.h"

#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/kvs.h"
#include "mpi-shim/pmi/src/px.h"
#include "mpi-shim/pmi/src/pmi_session.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Names that this process has published. */
static struct pmii_table mine;
#define SPACE "names"

static bool has_server(void)
{
    return pmii_connect() == 0;
}

int pmii_name_publish(const char *name, const char *port)
{
    char *present;
    int r;

    if (*name == '\0' || strlen(name) >= PMII_KEY_ROOM || strlen(port) >= PMII_VALUE_ROOM)
        return -EINVAL;
    if (pmii_table_find(&mine, SPACE, name, 0))
        return -EEXIST;
    if (has_server()) {
        r = pmii_px_lookup(name, &present);
        if (r == 0) {
            free(present);
            return -EEXIST;
        }
        r = pmii_px_publish(name, port);
        if (r < 0)
            return r;
    }
    return pmii_table_put(&mine, SPACE, name, 0, port);
}

int pmii_name_lookup(const char *name, char *port_out, size_t room_bytes)
{
    const struct pmii_pair *pair = pmii_table_find(&mine, SPACE, name, 0);
    char *port = NULL;
    const char *found;
    int r;

    if (pair) {
        found = pair->value;
    } else {
        if (!has_server())
            return -ENOENT;
        r = pmii_px_lookup(name, &port);
        if (r != 0)
            return r < 0 ? r : -ENOENT;
        found = port;
    }
    r = -EMSGSIZE;
    if (strlen(found) < room_bytes) {
        strcpy(port_out, found);
        r = 0;
    }
    free(port);
    return r;
}

int pmii_name_unpublish(const char *name)
{
    int r = 0;

    if (!pmii_table_find(&mine, SPACE, name, 0))
        return -EPERM;
    if (has_server())
        r = pmii_px_unpublish(name);
    if (r == 0)
        pmii_table_drop(&mine, SPACE, name);
    return r;
}

static const char *info_value(const PMI_keyval_t *infos, int n, const char *key)
{
    for (int i = 0; i < n; i++) {
        if (infos[i].key && strcmp(infos[i].key, key) == 0)
            return infos[i].val;
    }
    return NULL;
}

static int count_args(const char *const *args)
{
    int n = 0;

    while (args && args[n])
        n++;
    return n;
}

int pmii_job_spawn(const struct pmii_programs *programs, char *job_name_out)
{
    int count = programs->count;
    char nspace[256];
    struct pmii_px_app *apps;
    int r;

    r = pmii_connect();
    if (r < 0)
        return r;
    apps = calloc((size_t)count, sizeof(*apps));
    if (!apps)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        const char *const *args = programs->argvs ? (const char *const *)programs->argvs[i] : NULL;
        const PMI_keyval_t *info = programs->infos && programs->info_sizes ? programs->infos[i] : NULL;
        int n_info = info ? programs->info_sizes[i] : 0;

        apps[i].program = programs->cmds[i];
        apps[i].args = args;
        apps[i].n_args = args && programs->argcs ? programs->argcs[i] : count_args(args);
        apps[i].n_procs = programs->maxprocs[i];
        apps[i].work_dir = info_value(info, n_info, "wdir");
        apps[i].host = info_value(info, n_info, "host");
    }
    r = pmii_px_spawn(apps, count, nspace, sizeof(nspace));
    free(apps);
    if (r == 0)
        pmii_facts_name_job(nspace, job_name_out, 16);
    return r;
}
