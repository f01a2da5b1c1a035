/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of nodes. On the original a node's name has an address, and programs that exchange names connect to each
 * other by them. Here the name of a node of the job stands for the host that the node is on, unless /etc/hosts has it.
 *
 * EMUNIC_HOST is the own host's name. Of several hosts EMUNIC_RANK_HOSTS has that of each rank, and EMUNIC_NIDS the
 * node of each rank, both as "what*count,what": the host of a node is that of its first rank.
 *
 * An entry that is found carries the name that was asked for, because programs compare what comes back; whatever asks
 * for the name of an address gets the host's.
 */
#include "mpi-shim/node/src/view.h"

#include <stdlib.h>
#include <string.h>

#define NID_MAX 0x3ffffu

/* "nid" and at least five digits. */
static bool parse_name(const char *name, uint32_t *nid_out)
{
    uint32_t nid = 0;
    size_t n = 0;

    if (!name || strncmp(name, "nid", 3) != 0)
        return false;
    for (name += 3; *name >= '0' && *name <= '9' && nid <= NID_MAX; name++, n++)
        nid = 10 * nid + (uint32_t)(*name - '0');
    *nid_out = nid;
    return *name == '\0' && n >= 5 && nid <= NID_MAX;
}

/* One "what*count" of a list. */
struct run {
    const char *what;
    size_t len;
    unsigned long count;
};

/* Moves *list behind its next run. False: it has none, or makes no sense. */
static bool take_run(const char **list, struct run *run_out)
{
    const char *at = *list;
    char *end;

    run_out->what = at;
    run_out->len = strcspn(at, "*,");
    run_out->count = 1;
    at += run_out->len;
    if (run_out->len == 0)
        return false;
    if (*at == '*') {
        run_out->count = strtoul(at + 1, &end, 10);
        at = end;
    }
    if (*at != ',' && *at != '\0')
        return false;
    *list = *at == ',' ? at + 1 : at;
    return true;
}

static bool first_rank_on(const char *nids, uint32_t nid, unsigned long *rank_out)
{
    unsigned long rank = 0;
    struct run run;

    for (; take_run(&nids, &run); rank += run.count) {
        if (strtoul(run.what, NULL, 10) == nid) {
            *rank_out = rank;
            return true;
        }
    }
    return false;
}

static bool host_of_rank(const char *hosts, unsigned long rank, char host_out[NODE_HOST_MAX])
{
    struct run run;

    while (take_run(&hosts, &run)) {
        if (rank < run.count && run.len < NODE_HOST_MAX) {
            memcpy(host_out, run.what, run.len);
            host_out[run.len] = '\0';
            return true;
        }
        rank -= run.count;
    }
    return false;
}

/*
 * Has somebody given the name an address in /etc/hosts (emunic-ipogif0 does)? Then that counts. The file and not the
 * resolver is asked, because a name server that does not answer would hold the program up.
 */
static bool is_in_hosts_file(const char *name)
{
    FILE *file = fopen("/etc/hosts", "re");
    size_t room = 0;
    char *line = NULL;
    bool is_there = false;

    if (!file)
        return false;
    while (!is_there && getline(&line, &room, file) >= 0) {
        char *rest = NULL;
        char *word;

        line[strcspn(line, "#")] = '\0';
        strtok_r(line, " \t\n", &rest); /* the address */
        while (!is_there && (word = strtok_r(NULL, " \t\n", &rest)))
            is_there = strcmp(word, name) == 0;
    }
    free(line);
    fclose(file);
    return is_there;
}

/* The host that a name stands for. False: it is not the name of a node of this job, or has an address of its own. */
static bool find_host(const char *name, char host_out[NODE_HOST_MAX])
{
    const struct node_view *view = node_view();
    const char *nids;
    const char *hosts;
    const char *own;
    unsigned long rank;
    uint32_t nid;

    if (!view->is_named || !parse_name(name, &nid) || is_in_hosts_file(name))
        return false;
    nids = getenv("EMUNIC_NIDS");
    hosts = getenv("EMUNIC_RANK_HOSTS");
    own = getenv("EMUNIC_HOST");
    if (nid != view->nid) {
        if (!nids || !first_rank_on(nids, nid, &rank))
            return false;
        if (hosts)
            return host_of_rank(hosts, rank, host_out);
    }
    if (!own || strlen(own) >= NODE_HOST_MAX)
        return false;
    strcpy(host_out, own);
    return true;
}

/* ---- calls ---- */

NODE_EXPORT int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    char host[NODE_HOST_MAX];
    char *same;
    int r;

    if (!find_host(name, host))
        return node_real()->getaddrinfo(name, service, hints, out);
    r = node_real()->getaddrinfo(host, service, hints, out);
    if (r != 0 || !(*out)->ai_canonname)
        return r;
    same = strdup(name);
    if (same) {
        free((*out)->ai_canonname);
        (*out)->ai_canonname = same;
    }
    return 0;
}

/* Outlives the call, as the entry does. */
static struct hostent *call_it(struct hostent *entry, const char *name)
{
    static __thread char asked[NODE_NAME_MAX];

    if (!entry || strlen(name) >= sizeof(asked))
        return entry;
    strcpy(asked, name);
    entry->h_name = asked;
    return entry;
}

NODE_EXPORT struct hostent *gethostbyname(const char *name)
{
    char host[NODE_HOST_MAX];

    if (!find_host(name, host))
        return node_real()->gethostbyname(name);
    return call_it(node_real()->gethostbyname(host), name);
}

NODE_EXPORT struct hostent *gethostbyname2(const char *name, int family)
{
    char host[NODE_HOST_MAX];

    if (!find_host(name, host))
        return node_real()->gethostbyname2(name, family);
    return call_it(node_real()->gethostbyname2(host, family), name);
}

NODE_EXPORT int gethostbyname_r(const char *name, struct hostent *entry, char *room, size_t room_bytes,
                                struct hostent **out, int *error)
{
    char host[NODE_HOST_MAX];
    int r;

    if (!find_host(name, host))
        return node_real()->gethostbyname_r(name, entry, room, room_bytes, out, error);
    r = node_real()->gethostbyname_r(host, entry, room, room_bytes, out, error);
    if (r == 0)
        call_it(*out, name);
    return r;
}

NODE_EXPORT int gethostbyname2_r(const char *name, int family, struct hostent *entry, char *room, size_t room_bytes,
                                 struct hostent **out, int *error)
{
    char host[NODE_HOST_MAX];
    int r;

    if (!find_host(name, host))
        return node_real()->gethostbyname2_r(name, family, entry, room, room_bytes, out, error);
    r = node_real()->gethostbyname2_r(host, family, entry, room, room_bytes, out, error);
    if (r == 0)
        call_it(*out, name);
    return r;
}
