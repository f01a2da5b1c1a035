/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything is learnt once, when the library is loaded: programs may change or empty their environment afterwards,
 * and dlsym() takes locks that a signal handler or a forked child of a program with threads must not wait for. A
 * constructor of another library can be earlier than ours; its first call here learns the same.
 */
#include "mpi-shim/node/src/view.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic bool is_loaded;
static struct node_view view;
static struct node_real real;

static bool parse_nid(const char *text, uint32_t *nid_out)
{
    uint32_t nid = 0;

    if (!text || !text[0] || strlen(text) > 6)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        nid = 10 * nid + (uint32_t)(*text - '0');
    }
    *nid_out = nid;
    return true;
}

static void copy(char *to, size_t room, const char *name)
{
    const char *text = getenv(name);

    if (text && strlen(text) < room)
        memcpy(to, text, strlen(text) + 1);
}

static void load(void)
{
    view.has_nid = parse_nid(getenv("EMUNIC_NID"), &view.nid);
    copy(view.cname, sizeof(view.cname), "EMUNIC_CNAME");
    if (view.has_nid) {
        view.is_named = getenv("EMUNIC_HOST");
        copy(view.name, sizeof(view.name), "EMUNIC_NODE_NAME");
    }
#define NODE_REAL_FIND(returned, function, parameters) real.function = dlsym(RTLD_NEXT, #function);
    NODE_REAL_FUNCTIONS(NODE_REAL_FIND)
#undef NODE_REAL_FIND
    atomic_store_explicit(&is_loaded, true, memory_order_release);
}

/* Twice is no harm: the same values are stored again. */
static inline void load_once(void)
{
    if (!atomic_load_explicit(&is_loaded, memory_order_acquire))
        load();
}

__attribute__((constructor)) static void begin(void)
{
    load_once();
}

const struct node_view *node_view(void)
{
    load_once();
    return &view;
}

const struct node_real *node_real(void)
{
    load_once();
    return &real;
}
