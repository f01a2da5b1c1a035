/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processors that emunic runs on.
 *
 * Each member belongs to a group, of those that may use the same processors; a member's set is read when it comes and
 * when it attaches, because programs bind themselves at their start. A change of the groups marks the choice as old,
 * and the loop makes it anew, once for all that have changed in a round. So a job of thousands of ranks costs one call
 * per rank.
 *
 * The topology is loaded when it first matters (2.4 ms): when a rank is bound, or the transport's device is near a part
 * of the processors. A job on one host whose ranks are not bound never does, and emunic is not bound then either.
 *
 * Only the loop's thread is bound. Those of libfabric's providers stay where the kernel puts them, and no memory is
 * bound: pages of segments lie where they are first written.
 */
#include "emunic/daemon/bind/bind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/rights/rights.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/place/place.h"

#define DEVICES "/sys/class"

struct emu_bind_group {
    LIST_ENTRY(emu_bind_group) link;
    hwloc_bitmap_t set; /* owned */
    unsigned n;         /* members */
};

struct emu_bind {
    char *text; /* owned: what was asked for */
    bool is_auto;
    bool is_old;               /* the choice is */
    bool has_failed;           /* hwloc does not understand this host, or emunic may not move */
    hwloc_bitmap_t allowed;    /* owned: at the start */
    hwloc_bitmap_t near;       /* owned; empty: not known */
    hwloc_bitmap_t now;        /* owned */
    hwloc_bitmap_t scratch;    /* owned */
    hwloc_topology_t topology; /* owned; NULL until it matters, or nothing can be opened later */
    LIST_HEAD(, emu_bind_group) groups;
    char device[EMU_TRANSPORT_NAME_MAX]; /* "": none */
    char why[EMU_PLACE_WHY_MAX];
};

bool emu_bind_is_valid(const char *text)
{
    hwloc_bitmap_t set;
    bool is_list;

    if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0)
        return true;
    set = hwloc_bitmap_alloc();
    is_list = set && emu_place_parse(text, set) == 0;
    hwloc_bitmap_free(set);
    return is_list;
}

/* ---- choice ---- */

static void go_to(struct emu_bind *bind, hwloc_const_bitmap_t set)
{
    int r;

    if (hwloc_bitmap_isequal(bind->now, set))
        return;
    r = emu_place_bind(set);
    if (r == 0) {
        hwloc_bitmap_copy(bind->now, set);
        return;
    }
    emu_log(EMU_LOG_WARN, "cannot choose processors: %s", strerror(-r));
    snprintf(bind->why, sizeof(bind->why), "where it was: %s", strerror(-r));
    bind->has_failed = true;
}

static unsigned list_ranks(const struct emu_bind *bind, struct emu_place_ranks *ranks_out)
{
    const struct emu_bind_group *group;
    unsigned n = 0;

    LIST_FOREACH(group, &bind->groups, link) {
        if (ranks_out)
            ranks_out[n] = (struct emu_place_ranks){ .set = group->set, .n = group->n };
        n++;
    }
    return n;
}

/* Into `scratch`. */
static int choose(struct emu_bind *bind, const struct emu_place_ranks *ranks, unsigned n_ranks)
{
    struct emu_place_view view = {
        .allowed = bind->allowed, .device = bind->device, .near = bind->near, .ranks = ranks, .n_ranks = n_ranks
    };
    int r;

    if (!bind->topology && emu_place_needs_topology(&view)) {
        r = emu_place_topology(&bind->topology);
        if (r < 0)
            return r;
    }
    view.topology = bind->topology;
    return emu_place_choose(&view, bind->scratch, bind->why);
}

static void choose_anew(struct emu_server *server)
{
    struct emu_bind *bind = server->slots[EMU_SERVER_BIND];
    struct emu_place_ranks *ranks;
    unsigned n;
    int r;

    if (!bind->is_old)
        return;
    bind->is_old = false;
    n = list_ranks(bind, NULL);
    ranks = malloc((n + 1) * sizeof(*ranks));
    r = ranks ? choose(bind, ranks, list_ranks(bind, ranks)) : -ENOMEM;
    free(ranks);
    if (r < 0) {
        emu_log(EMU_LOG_WARN, "hwloc: %s: emunic runs where the scheduler puts it", strerror(-r));
        snprintf(bind->why, sizeof(bind->why), "the scheduler chooses, because hwloc fails: %s", strerror(-r));
        hwloc_bitmap_zero(bind->scratch);
        bind->has_failed = true;
    }
    go_to(bind, hwloc_bitmap_iszero(bind->scratch) ? bind->allowed : bind->scratch);
}

/* ---- members ---- */

static void leave_group(struct emu_bind *bind, struct emu_member *member)
{
    struct emu_bind_group *group = member->bind_group;

    member->bind_group = NULL;
    if (!group)
        return;
    bind->is_old = !bind->has_failed;
    if (--group->n > 0)
        return;
    LIST_REMOVE(group, link);
    hwloc_bitmap_free(group->set);
    free(group);
}

/* That of the set in `scratch`, or NULL without memory. */
static struct emu_bind_group *find_group(struct emu_bind *bind)
{
    struct emu_bind_group *group;

    LIST_FOREACH(group, &bind->groups, link) {
        if (hwloc_bitmap_isequal(group->set, bind->scratch))
            return group;
    }
    group = calloc(1, sizeof(*group));
    if (!group)
        return NULL;
    group->set = hwloc_bitmap_dup(bind->scratch);
    if (!group->set) {
        free(group);
        return NULL;
    }
    LIST_INSERT_HEAD(&bind->groups, group, link);
    return group;
}

static void look(struct emu_server *server, struct emu_member *member)
{
    struct emu_bind *bind = server->slots[EMU_SERVER_BIND];
    struct emu_bind_group *group;

    if (!bind->is_auto || bind->has_failed || emu_place_affinity(member->pid, bind->scratch) < 0)
        return;
    group = find_group(bind);
    if (!group || group == member->bind_group)
        return;
    group->n++;
    leave_group(bind, member);
    member->bind_group = group;
    bind->is_old = true;
}

static void forget(struct emu_server *server, struct emu_member *member)
{
    leave_group(server->slots[EMU_SERVER_BIND], member);
}

/* ---- life ---- */

/* A list: once and for all. */
static int go_to_list(struct emu_bind *bind, const struct emu_complaint *why)
{
    char allowed[256];
    int r;

    r = emu_place_parse(bind->text, bind->scratch);
    if (r < 0) {
        snprintf(why->text, why->bytes, "--bind: '%s' is neither auto, none nor a list of processors", bind->text);
        return r;
    }
    hwloc_bitmap_and(bind->scratch, bind->scratch, bind->allowed);
    if (hwloc_bitmap_iszero(bind->scratch)) {
        hwloc_bitmap_list_snprintf(allowed, sizeof(allowed), bind->allowed);
        snprintf(why->text, why->bytes, "--bind: none of the processors %s may be used here, but %s", bind->text,
                 allowed);
        return -EINVAL;
    }
    snprintf(bind->why, sizeof(bind->why), "told so");
    go_to(bind, bind->scratch);
    return 0;
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_bind *bind = calloc(1, sizeof(*bind));
    int r;

    if (!bind)
        return -ENOMEM;
    server->slots[EMU_SERVER_BIND] = bind;
    LIST_INIT(&bind->groups);
    bind->text = strdup(options->bind ? options->bind : "auto");
    bind->allowed = hwloc_bitmap_alloc();
    bind->near = hwloc_bitmap_alloc();
    bind->now = hwloc_bitmap_alloc();
    bind->scratch = hwloc_bitmap_alloc();
    if (!bind->text || !bind->allowed || !bind->near || !bind->now || !bind->scratch)
        return -ENOMEM;
    r = emu_place_affinity(0, bind->allowed);
    if (r < 0)
        return r;
    hwloc_bitmap_copy(bind->now, bind->allowed);
    bind->is_auto = strcmp(bind->text, "auto") == 0;
    bind->is_old = bind->is_auto;
    snprintf(bind->why, sizeof(bind->why), "the scheduler chooses, as told");
    if (!bind->is_auto)
        return strcmp(bind->text, "none") == 0 ? 0 : go_to_list(bind, why);
    /* Plug-ins know graphics cards and others, but cost most of the time, and could not be loaded later. */
    setenv("HWLOC_PLUGINS_PATH", "/dev/null", 0);
    if (emu_rights_of(server)->moves_all && emu_place_topology(&bind->topology) < 0)
        bind->topology = NULL; /* tried again, and told then */
    snprintf(bind->device, sizeof(bind->device), "%s", emu_hosts_device(server));
    if (emu_place_near(DEVICES, bind->device, bind->near) < 0)
        hwloc_bitmap_zero(bind->near);
    return 0;
}

static void destroy(struct emu_server *server)
{
    struct emu_bind *bind = server->slots[EMU_SERVER_BIND];

    if (!bind)
        return;
    hwloc_bitmap_free(bind->allowed);
    hwloc_bitmap_free(bind->near);
    hwloc_bitmap_free(bind->now);
    hwloc_bitmap_free(bind->scratch);
    if (bind->topology)
        hwloc_topology_destroy(bind->topology);
    free(bind->text);
    free(bind);
    server->slots[EMU_SERVER_BIND] = NULL;
}

static void put_status(const struct emu_server *server, struct emu_status_host *row)
{
    const struct emu_bind *bind = server->slots[EMU_SERVER_BIND];
    char *why = row->texts[EMU_HOST_TEXT_WHY];

    row->bind = bind->text;
    hwloc_bitmap_list_snprintf(row->texts[EMU_HOST_TEXT_PROCESSORS], sizeof(row->texts[0]), bind->now);
    snprintf(why, sizeof(row->texts[0]), "%s", bind->why);
}

const struct emu_part emu_bind_part = {
    .name = "bind",
    .create = create,
    .destroy = destroy,
    .loop = { .served = choose_anew },
    .members = { .seen = look, .end = forget },
    .status = { .host = put_status },
};
