/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/place/place.h"

#include <ctype.h>
#include <errno.h>
#include <hwloc/linux.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSORS_MAX 8192u /* of a kernel */
#define NEAR_CORES_MIN 2u

/* ---- choice ---- */

/* What follows from a view. All are parts of `usable`. */
struct sets {
    hwloc_bitmap_t usable;
    hwloc_bitmap_t near;   /* empty: all is alike */
    hwloc_bitmap_t bound;  /* of ranks that may not run everywhere */
    hwloc_bitmap_t cores;  /* the cores of those, whole */
    hwloc_bitmap_t filled; /* of them those that have as many ranks as cores */
    hwloc_bitmap_t pool;   /* scratch */
    unsigned n_unbound;    /* ranks that may run everywhere */
};

static bool sets_init(struct sets *s)
{
    *s = (struct sets){ .usable = hwloc_bitmap_alloc(),
                        .near = hwloc_bitmap_alloc(),
                        .bound = hwloc_bitmap_alloc(),
                        .cores = hwloc_bitmap_alloc(),
                        .filled = hwloc_bitmap_alloc(),
                        .pool = hwloc_bitmap_alloc() };
    return s->usable && s->near && s->bound && s->cores && s->filled && s->pool;
}

static void sets_fini(struct sets *s)
{
    hwloc_bitmap_free(s->usable);
    hwloc_bitmap_free(s->near);
    hwloc_bitmap_free(s->bound);
    hwloc_bitmap_free(s->cores);
    hwloc_bitmap_free(s->filled);
    hwloc_bitmap_free(s->pool);
}

/* The next core that has something in the set, or NULL. */
static hwloc_obj_t next_core(hwloc_topology_t topology, hwloc_const_bitmap_t set, hwloc_obj_t core)
{
    do {
        core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core);
    } while (core && !hwloc_bitmap_intersects(core->cpuset, set));
    return core;
}

/* Where the host tells no cores, each processor is one. */
static unsigned count_cores(hwloc_topology_t topology, hwloc_const_bitmap_t set)
{
    hwloc_obj_t core = NULL;
    unsigned n = 0;

    if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) <= 0)
        return (unsigned)hwloc_bitmap_weight(set);
    while ((core = next_core(topology, set, core)))
        n++;
    return n;
}

static void find_bound(const struct emu_place_view *view, struct sets *s)
{
    for (unsigned i = 0; i < view->n_ranks; i++) {
        if (hwloc_bitmap_isincluded(s->usable, view->ranks[i].set))
            s->n_unbound += view->ranks[i].n;
        else
            hwloc_bitmap_or(s->bound, s->bound, view->ranks[i].set);
    }
    hwloc_bitmap_and(s->bound, s->bound, s->usable);
}

static void find_cores(const struct emu_place_view *view, struct sets *s)
{
    hwloc_obj_t core = NULL;

    hwloc_bitmap_copy(s->cores, s->bound);
    while ((core = next_core(view->topology, s->bound, core)))
        hwloc_bitmap_or(s->cores, s->cores, core->cpuset);
    hwloc_bitmap_and(s->cores, s->cores, s->usable);
}

/* Ranks that cannot leave the set. */
static unsigned count_inside(const struct emu_place_view *view, hwloc_const_bitmap_t set)
{
    unsigned n = 0;

    for (unsigned i = 0; i < view->n_ranks; i++)
        n += hwloc_bitmap_isincluded(view->ranks[i].set, set) ? view->ranks[i].n : 0;
    return n;
}

static void find_filled(const struct emu_place_view *view, struct sets *s)
{
    for (unsigned i = 0; i < view->n_ranks; i++) {
        hwloc_const_bitmap_t set = view->ranks[i].set;

        if (count_inside(view, set) >= count_cores(view->topology, set))
            hwloc_bitmap_or(s->filled, s->filled, set);
    }
}

static bool has_device(const struct emu_place_view *view)
{
    return view->near && !hwloc_bitmap_iszero(view->near);
}

/* Without a device: the NUMA nodes that ranks are bound to. */
static void find_near(const struct emu_place_view *view, struct sets *s)
{
    hwloc_obj_t node = NULL;

    if (has_device(view)) {
        hwloc_bitmap_copy(s->near, view->near);
    } else {
        while ((node = hwloc_get_next_obj_by_type(view->topology, HWLOC_OBJ_NUMANODE, node))) {
            if (hwloc_bitmap_intersects(node->cpuset, s->bound))
                hwloc_bitmap_or(s->near, s->near, node->cpuset);
        }
    }
    hwloc_bitmap_and(s->near, s->near, s->usable);
    if (hwloc_bitmap_isequal(s->near, s->usable))
        hwloc_bitmap_zero(s->near);
}

/*
 * What is left without `avoid`, the near part of it if there is one. False: nothing is left, or nothing that ranks
 * which are not bound would not fill.
 */
static bool take(const struct emu_place_view *view, struct sets *s, hwloc_const_bitmap_t avoid, hwloc_bitmap_t set_out,
                 bool *is_near_out)
{
    hwloc_bitmap_andnot(s->pool, s->usable, avoid);
    if (s->n_unbound >= count_cores(view->topology, s->pool))
        return false;
    hwloc_bitmap_and(set_out, s->pool, s->near);
    *is_near_out = count_cores(view->topology, set_out) >= (s->n_unbound > 0 ? NEAR_CORES_MIN : 1);
    if (!*is_near_out)
        hwloc_bitmap_copy(set_out, s->pool);
    return true;
}

/* The same with nothing but what is near the device. */
static bool take_near(const struct emu_place_view *view, struct sets *s, hwloc_const_bitmap_t avoid,
                      hwloc_bitmap_t set_out)
{
    if (!has_device(view) || s->n_unbound >= count_cores(view->topology, s->usable))
        return false;
    hwloc_bitmap_andnot(set_out, s->near, avoid);
    return count_cores(view->topology, set_out) >= NEAR_CORES_MIN;
}

static void choose(const struct emu_place_view *view, struct sets *s, hwloc_bitmap_t set_out, char *why)
{
    const char *near = has_device(view) ? view->device : "the ranks";
    bool has_bound = !hwloc_bitmap_iszero(s->bound);
    bool is_near = false;

    find_cores(view, s);
    find_filled(view, s);
    find_near(view, s);
    if (has_bound && take(view, s, s->cores, set_out, &is_near))
        snprintf(why, EMU_PLACE_WHY_MAX, "away from the ranks' cores%s%s", is_near ? ", near " : "",
                 is_near ? near : "");
    else if (has_bound && take(view, s, s->bound, set_out, &is_near))
        snprintf(why, EMU_PLACE_WHY_MAX, "hardware threads without ranks, because each core has one%s%s",
                 is_near ? "; near " : "", is_near ? near : "");
    else if (take_near(view, s, s->filled, set_out))
        snprintf(why, EMU_PLACE_WHY_MAX, "near %s", near);
    else
        hwloc_bitmap_zero(set_out);
    if (!hwloc_bitmap_iszero(set_out))
        return;
    if (has_bound || s->n_unbound >= count_cores(view->topology, s->usable))
        snprintf(why, EMU_PLACE_WHY_MAX, "the scheduler chooses, because ranks may use every core");
    else
        snprintf(why, EMU_PLACE_WHY_MAX, "the scheduler chooses, because all are about as near to %s", near);
}

bool emu_place_needs_topology(const struct emu_place_view *view)
{
    if (has_device(view))
        return true;
    for (unsigned i = 0; i < view->n_ranks; i++) {
        if (!hwloc_bitmap_isincluded(view->allowed, view->ranks[i].set))
            return true;
    }
    return false;
}

int emu_place_choose(const struct emu_place_view *view, hwloc_bitmap_t set_out, char why[EMU_PLACE_WHY_MAX])
{
    struct sets s;
    int r = 0;

    hwloc_bitmap_zero(set_out);
    if (!emu_place_needs_topology(view)) {
        snprintf(why, EMU_PLACE_WHY_MAX,
                 "the scheduler chooses, because no rank is bound and no device is near to some");
        return 0;
    }
    if (sets_init(&s)) {
        hwloc_bitmap_and(s.usable, view->allowed, hwloc_topology_get_complete_cpuset(view->topology));
        find_bound(view, &s);
        choose(view, &s, set_out, why);
    } else {
        r = -ENOMEM;
    }
    sets_fini(&s);
    return r;
}

/* ---- this host ---- */

int emu_place_topology(hwloc_topology_t *topology_out)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) < 0)
        return -ENOMEM;
    if (hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) < 0 ||
        hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) < 0 ||
        hwloc_topology_load(topology) < 0) {
        hwloc_topology_destroy(topology);
        return errno ? -errno : -EIO;
    }
    *topology_out = topology;
    return 0;
}

static int read_near(const char *folder, const char *kind, const char *name, int name_len, hwloc_bitmap_t near_out)
{
    char path[PATH_MAX];

    int len = snprintf(path, sizeof(path), "%s/%s/%.*s/device/local_cpus", folder, kind, name_len, name);

    if (len >= (int)sizeof(path) || access(path, R_OK) < 0 || hwloc_linux_read_path_as_cpumask(path, near_out) < 0)
        return -ENOENT;
    return hwloc_bitmap_iszero(near_out) ? -ENOENT : 0;
}

int emu_place_near(const char *folder, const char *name, hwloc_bitmap_t near_out)
{
    static const char *const kinds[] = { "infiniband", "net" };
    const char *suffix = strrchr(name, '-');
    int r = -ENOENT;

    if (!name[0] || name[0] == '.' || strchr(name, '/'))
        return -ENOENT;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && r < 0; i++) {
        r = read_near(folder, kinds[i], name, (int)strlen(name), near_out);
        if (r < 0 && suffix)
            r = read_near(folder, kinds[i], name, (int)(suffix - name), near_out);
    }
    return r;
}

/* ---- processes ---- */

/* A number below PROCESSORS_MAX. */
static bool parse_processor(const char **text, unsigned *processor_out)
{
    unsigned long value;
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    value = strtoul(*text, &end, 10);
    if (value >= PROCESSORS_MAX)
        return false;
    *text = end;
    *processor_out = (unsigned)value;
    return true;
}

int emu_place_parse(const char *list, hwloc_bitmap_t set_out)
{
    hwloc_bitmap_zero(set_out);
    for (;;) {
        unsigned first;
        unsigned last;

        if (!parse_processor(&list, &first))
            return -EINVAL;
        last = first;
        if (*list == '-') {
            list++;
            if (!parse_processor(&list, &last) || last < first)
                return -EINVAL;
        }
        if (hwloc_bitmap_set_range(set_out, first, (int)last) < 0)
            return -ENOMEM;
        if (*list == '\0')
            return 0;
        if (*list++ != ',')
            return -EINVAL;
    }
}

int emu_place_affinity(pid_t pid, hwloc_bitmap_t set_out)
{
    cpu_set_t mask[PROCESSORS_MAX / CPU_SETSIZE];

    CPU_ZERO_S(sizeof(mask), mask);
    if (sched_getaffinity(pid, sizeof(mask), mask) < 0)
        return -errno;
    hwloc_bitmap_zero(set_out);
    for (unsigned i = 0; i < PROCESSORS_MAX; i++) {
        if (CPU_ISSET_S(i, sizeof(mask), mask) && hwloc_bitmap_set(set_out, i) < 0)
            return -ENOMEM;
    }
    return 0;
}

int emu_place_bind(hwloc_const_bitmap_t set)
{
    cpu_set_t mask[PROCESSORS_MAX / CPU_SETSIZE];
    unsigned i;

    CPU_ZERO_S(sizeof(mask), mask);
    hwloc_bitmap_foreach_begin(i, set) CPU_SET_S(i, sizeof(mask), mask);
    hwloc_bitmap_foreach_end();
    return sched_setaffinity(0, sizeof(mask), mask) < 0 ? -errno : 0;
}
