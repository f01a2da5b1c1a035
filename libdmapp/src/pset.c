/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Process sets: barrier and all-reduce by a combining tree over puts and atomics.
 *
 * Members stand in groups of `radix` around a node, which lies in the area of the group's first member:
 *
 *   node, in the area of its first member           release, in the area of every member
 *     count    arrivals ever (fetch-add)              flag     operation and outcome
 *     entry[]  contribution of each child             result
 *
 *   arrive   write the entry, count up. Not the last one: wait for the release
 *            the last one: read all entries, combine them in the children's order, go up; at the root the result is
 *            there
 *   release  who was last at a node puts the result, and behind it the flag, into the release of its other
 *   children; who gets
 *            a release does the same for the nodes below, at which it was last
 *
 * Nobody waits on the way up, and the host of a node takes no part, so in the usual case (one node for up to 64
 * members) a PE has to run once per operation, whoever comes last does the work of all, and everybody waits for a word
 * in its own memory: where PEs outnumber cores that is the least number of switches there can be. With 16 PEs on 2
 * cores radix 2 took twice as long. uGNI's collective engine needs emunic's processor for each step and took several
 * times as long on one host (docs/dmapp-differences.md), so DMAPP_C_PSET_MODE_HW_OFFLOAD changes nothing.
 *
 * Results do not depend on the order of arrival. Counts and operations have numbers that only grow, so nothing is
 * reset.
 *
 *   free ─create─> created ─export─> ready <─ start, completion ─> (running)
 *                                      └─ cancel of a running operation, or one that cannot end ─> broken
 *   destroy: free, or retired if somebody may still write into its slot
 *
 * Export looks for the identifier in the directory of every member: what it finds there is the slot of the area that
 * the member has given the set. Locks: `mutex` guards the table; a set is used by one thread at a time.
 *
 * What the area holds was written by other PEs: checked before use. A transaction that fails is tried again (RETRIES),
 * because such a one has had no effect; then the set is broken. Source: spec/dmapp.md 4.15.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/amo.h"
#include "libdmapp/src/parts.h"
#include "libdmapp/src/reduce.h"

#define SETS_MAX      64u
#define LEVELS_MAX    32u
#define ENTRIES_MAX   192u /* levels * radix */
#define RADIX_MAX     64u
#define PAYLOAD_BYTES 128u /* of one reduction */
#define RETRIES       8u

#define MODES (DMAPP_C_PSET_MODE_CONCAT | DMAPP_C_PSET_MODE_FAULT_TOLERANT | DMAPP_C_PSET_MODE_HW_OFFLOAD)

/* ---- the area ---- */

struct entry {
    uint64_t what; /* the operation, see describe() */
    uint64_t from; /* who came up: its place among the members */
    _Alignas(16) uint8_t payload[PAYLOAD_BYTES];
};

struct counter {
    _Alignas(64) _Atomic uint64_t n;
};

struct slot {
    _Alignas(64) _Atomic uint64_t flag; /* number << 32 | what << 8 | outcome */
    uint64_t payload[PAYLOAD_BYTES / 8];
    struct counter counters[LEVELS_MAX];
    struct entry entries[ENTRIES_MAX]; /* level * radix + child */
};

struct listing {
    _Atomic uint64_t identifier; /* 0: none */
    uint64_t members;            /* hash_of() */
};

struct area {
    struct listing directory[SETS_MAX];
    struct slot slots[SETS_MAX];
};

enum outcome { OUTCOME_GOOD = 1, OUTCOME_DIFFERENT = 2 /* members started different operations */ };

/* ---- a set ---- */

enum state { FREE, CREATED, READY, BROKEN, RETIRED };

struct dmapp_c_pset {
    enum state state;
    uint64_t identifier;
    uint64_t modes;
    uint32_t n;
    uint32_t self; /* our place among the members */
    uint32_t radix;
    uint32_t *pes;                /* owned, n */
    uint32_t *slots;              /* owned, n: of each member; valid when ready */
    struct entry *scratch;        /* owned, radix: a node's entries */
    uint32_t (*below)[RADIX_MAX]; /* owned, per level where we were last: who came up */

    bool is_running;
    dmapp_return_t ending; /* what completion will return */
    uint32_t number;       /* of the operation */
    uint32_t what;
    uint32_t n_won; /* levels at which we were last */
    bool has_result;
    dmapp_c_type_t type;
    dmapp_c_op_t op;
    uint32_t nelems; /* 0: a barrier */
    uint32_t len_bytes;
    void *out; /* the program's */
    _Alignas(16) uint8_t value[PAYLOAD_BYTES];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct dmapp_c_pset sets[SETS_MAX];
static struct area *own;

/* ---- operations that are tried again ---- */

static dmapp_return_t put(dmapp_pe_t pe, const void *at, const void *data, uint64_t len, const void *flag,
                          uint64_t value)
{
    dmapp_return_t rc;

    for (unsigned i = 0; i < RETRIES; i++) {
        rc = flag ? dmappi_area_put_flag(pe, at, data, len, flag, value) : dmappi_area_put(pe, at, data, len);
        if (rc != DMAPP_RC_TRANSACTION_ERROR)
            break;
    }
    return rc;
}

static dmapp_return_t get(dmapp_pe_t pe, const void *at, void *data, uint64_t len)
{
    dmapp_return_t rc;

    for (unsigned i = 0; i < RETRIES; i++) {
        rc = dmappi_area_get(pe, at, data, len);
        if (rc != DMAPP_RC_TRANSACTION_ERROR)
            break;
    }
    return rc;
}

static dmapp_return_t count_up(dmapp_pe_t pe, const void *at, uint64_t *before_out)
{
    const struct dmappi_atomic one_more = { .op = EMU_AMO_ADD, .operand1 = 1 };
    dmapp_return_t rc;

    for (unsigned i = 0; i < RETRIES; i++) {
        rc = dmappi_area_amo(pe, at, &one_more, before_out);
        if (rc != DMAPP_RC_TRANSACTION_ERROR)
            break;
    }
    return rc;
}

/* ---- the tree ---- */

/*
 * A node that we have to do with: of the group of `span` members that contains us, one for each `span / radix` of them.
 */
struct place {
    uint32_t host; /* its first member */
    uint32_t n_children;
    uint32_t child; /* which of them we come from */
    bool is_root;
};

static struct place place_of(const struct dmapp_c_pset *set, uint64_t step)
{
    uint64_t span = step * set->radix;
    uint64_t host = set->self / span * span;
    uint64_t children = (set->n - host + step - 1) / step;

    return (struct place){ .host = (uint32_t)host,
                           .n_children = (uint32_t)(children < set->radix ? children : set->radix),
                           .child = (uint32_t)((set->self - host) / step),
                           .is_root = span >= set->n };
}

static dmapp_pe_t pe_of(const struct dmapp_c_pset *set, uint32_t member)
{
    return (dmapp_pe_t)set->pes[member];
}

/* The place in our own area that corresponds to that of a member's. */
static struct slot *slot_of(const struct dmapp_c_pset *set, uint32_t member)
{
    return &own->slots[set->slots[member]];
}

static void fail(struct dmapp_c_pset *set)
{
    set->ending = DMAPP_RC_TRANSACTION_ERROR;
    set->state = BROKEN;
}

static uint64_t flag_of(const struct dmapp_c_pset *set)
{
    return (uint64_t)set->number << 32 | (uint64_t)set->what << 8 |
           (set->ending == DMAPP_RC_SUCCESS ? OUTCOME_GOOD : OUTCOME_DIFFERENT);
}

/* What an entry says of the operation. Nobody's operation has mark 0: disagreement below goes up. */
static uint64_t mark_of(const struct dmapp_c_pset *set)
{
    return set->ending == DMAPP_RC_SUCCESS ? (uint64_t)set->number << 32 | set->what : 0;
}

/* The outcome is known: to everybody who waits at a node at which we were last. */
static void release(struct dmapp_c_pset *set)
{
    uint64_t flag = flag_of(set);

    for (uint32_t level = set->n_won; level-- > 0;) {
        for (uint32_t child = 0; child < set->radix && set->below[level][child] < set->n; child++) {
            uint32_t member = set->below[level][child];
            struct slot *slot = slot_of(set, member);

            if (member != set->self && put(pe_of(set, member), slot->payload, set->value, set->len_bytes, &slot->flag,
                                           flag) != DMAPP_RC_SUCCESS)
                fail(set);
        }
    }
    if (set->len_bytes > 0 && set->ending == DMAPP_RC_SUCCESS)
        memcpy(set->out, set->value, set->len_bytes);
    set->has_result = true;
}

/* Who stands below a node where everybody has arrived, and what they brought. */
static dmapp_return_t collect(struct dmapp_c_pset *set, const struct place *place, uint32_t level)
{
    const struct entry *entries = &slot_of(set, place->host)->entries[level * set->radix];
    uint32_t *below = set->below[level];
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    for (uint32_t child = place->n_children; child < set->radix; child++)
        below[child] = UINT32_MAX;
    for (uint32_t child = 0; child < place->n_children && level == 0; child++)
        below[child] = place->host + child;
    if (level == 0 && set->nelems == 0)
        return rc;
    rc = get(pe_of(set, place->host), entries, set->scratch, place->n_children * sizeof(*entries));
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    for (uint32_t child = 0; child < place->n_children; child++) {
        const struct entry *entry = &set->scratch[child];

        if (level > 0 && entry->from >= set->n)
            return DMAPP_RC_TRANSACTION_ERROR;
        if (entry->what != mark_of(set))
            set->ending = DMAPP_RC_TRANSACTION_ERROR;
        below[child] = level == 0 ? below[child] : (uint32_t)entry->from;
        if (child > 0 && set->nelems > 0)
            dmappi_reduce(set->scratch[0].payload, entry->payload, set->nelems, set->type, set->op);
    }
    memcpy(set->value, set->scratch[0].payload, set->len_bytes);
    return rc;
}

/* Arrives at one node. *is_last_out: it is ours to go on. */
static dmapp_return_t arrive(struct dmapp_c_pset *set, const struct place *place, uint32_t level, bool *is_last_out)
{
    struct slot *slot = slot_of(set, place->host);
    dmapp_pe_t pe = pe_of(set, place->host);
    dmapp_return_t rc = DMAPP_RC_SUCCESS;
    uint64_t before;

    /* A barrier's lowest nodes have nothing to tell. */
    if (level > 0 || set->nelems > 0) {
        struct entry entry = { .what = mark_of(set), .from = set->self };

        memcpy(entry.payload, set->value, set->len_bytes);
        rc = put(pe, &slot->entries[level * set->radix + place->child], &entry,
                 offsetof(struct entry, payload) + set->len_bytes, NULL, 0);
    }
    if (rc == DMAPP_RC_SUCCESS)
        rc = count_up(pe, &slot->counters[level].n, &before);
    if (rc == DMAPP_RC_SUCCESS)
        *is_last_out = before % place->n_children == place->n_children - 1;
    return rc;
}

static void climb(struct dmapp_c_pset *set)
{
    bool is_last = true;
    uint64_t step = 1;

    for (uint32_t level = 0;; level++, step *= set->radix) {
        struct place place = place_of(set, step);
        dmapp_return_t rc = DMAPP_RC_SUCCESS;

        if (place.n_children > 1)
            rc = arrive(set, &place, level, &is_last);
        else
            set->below[level][0] = UINT32_MAX;
        if (rc == DMAPP_RC_SUCCESS && is_last && place.n_children > 1)
            rc = collect(set, &place, level);
        if (rc != DMAPP_RC_SUCCESS)
            fail(set);
        if (rc != DMAPP_RC_SUCCESS || !is_last)
            return;
        set->n_won = level + 1;
        if (place.is_root)
            break;
    }
    release(set);
}

/* Has the release come? */
static bool look(struct dmapp_c_pset *set)
{
    struct slot *slot = slot_of(set, set->self);
    uint64_t flag = atomic_load_explicit(&slot->flag, memory_order_acquire);

    if (flag >> 32 != set->number)
        return false;
    if ((flag & 0xff) != OUTCOME_GOOD || (flag >> 8 & 0xffffff) != set->what)
        set->ending = DMAPP_RC_TRANSACTION_ERROR;
    memcpy(set->value, slot->payload, set->len_bytes);
    release(set);
    return true;
}

static void start_operation(struct dmapp_c_pset *set, uint32_t what)
{
    set->is_running = true;
    set->has_result = false;
    set->ending = DMAPP_RC_SUCCESS;
    set->number++;
    set->what = what;
    set->n_won = 0;
    climb(set);
}

/* ---- the table ---- */

static struct dmapp_c_pset *find(dmapp_c_pset_handle_t handle)
{
    struct dmapp_c_pset *set = NULL;

    if (!dmappi_is_up())
        return NULL;
    for (unsigned i = 0; i < SETS_MAX && !set; i++)
        set = handle == &sets[i] ? &sets[i] : NULL;
    return set && set->state != FREE && set->state != RETIRED ? set : NULL;
}

static uint64_t hash_of(const struct dmapp_c_pset *set)
{
    uint64_t hash = 14695981039346656037u;

    hash = (hash ^ set->radix) * 1099511628211u;
    for (uint32_t i = 0; i < set->n; i++)
        hash = (hash ^ set->pes[i]) * 1099511628211u;
    return hash;
}

/* ---- create ---- */

static uint32_t count_of(const dmapp_c_pset_desc_t *pdesc)
{
    switch (pdesc->type) {
    case DMAPP_C_PSET_DELIMITER_VEC:
        return pdesc->u.vec_type.vec_pes ? pdesc->u.vec_type.n_pes : 0;
    case DMAPP_C_PSET_DELIMITER_STRIDED:
        return pdesc->u.stride_type.n_pes;
    default:
        return 0;
    }
}

static uint64_t member_of(const dmapp_c_pset_desc_t *pdesc, uint32_t i)
{
    if (pdesc->type == DMAPP_C_PSET_DELIMITER_VEC)
        return pdesc->u.vec_type.vec_pes[i];
    return pdesc->u.stride_type.base_pe + (uint64_t)i * pdesc->u.stride_type.stride_pe;
}

/* Fills pes and self. */
static dmapp_return_t read_members(struct dmapp_c_pset *set, const dmapp_c_pset_desc_t *pdesc)
{
    bool *is_member = calloc((size_t)dmappi_job.npes, sizeof(*is_member));
    dmapp_return_t rc = is_member ? DMAPP_RC_SUCCESS : DMAPP_RC_RESOURCE_ERROR;

    for (uint32_t i = 0; i < set->n && rc == DMAPP_RC_SUCCESS; i++) {
        uint64_t pe = member_of(pdesc, i);

        if (pe >= (uint64_t)dmappi_job.npes || is_member[pe]) {
            rc = DMAPP_RC_INVALID_PARAM;
            break;
        }
        is_member[pe] = true;
        set->pes[i] = (uint32_t)pe;
        if (pe == (uint64_t)dmappi_job.pe)
            set->self = i;
    }
    if (rc == DMAPP_RC_SUCCESS && !is_member[dmappi_job.pe])
        rc = DMAPP_RC_INVALID_PARAM;
    free(is_member);
    return rc;
}

static void let_go(struct dmapp_c_pset *set)
{
    free(set->pes);
    free(set->slots);
    free(set->scratch);
    free(set->below);
    set->pes = set->slots = NULL;
    set->scratch = NULL;
    set->below = NULL;
}

static uint32_t radix_of(const dmapp_c_pset_attrs_t *attrs)
{
    uint32_t radix = attrs ? attrs->u.type1.radix : 0;

    if (radix == 0 || radix > RADIX_MAX)
        return RADIX_MAX;
    return radix < 2 ? 2 : radix;
}

static uint32_t levels_of(const struct dmapp_c_pset *set)
{
    uint32_t levels = 1;

    for (uint64_t span = set->radix; span < set->n; span *= set->radix)
        levels++;
    return levels;
}

/* A free set that is not in the table yet as far as others see. */
static dmapp_return_t build(struct dmapp_c_pset *set, const dmapp_c_pset_desc_t *pdesc,
                            const dmapp_c_pset_attrs_t *attrs)
{
    dmapp_return_t rc;

    *set = (struct dmapp_c_pset){ .n = count_of(pdesc), .radix = radix_of(attrs) };
    set->pes = malloc(set->n * sizeof(*set->pes));
    set->slots = malloc(set->n * sizeof(*set->slots));
    set->scratch = malloc(set->radix * sizeof(*set->scratch));
    set->below = malloc(levels_of(set) * sizeof(*set->below));
    rc = set->pes && set->slots && set->scratch && set->below ? read_members(set, pdesc) : DMAPP_RC_RESOURCE_ERROR;
    if (rc == DMAPP_RC_SUCCESS && (levels_of(set) > LEVELS_MAX || levels_of(set) * set->radix > ENTRIES_MAX))
        rc = DMAPP_RC_NO_SPACE;
    if (rc != DMAPP_RC_SUCCESS)
        let_go(set);
    return rc;
}

static dmapp_return_t create(const dmapp_c_pset_desc_t *pdesc, uint64_t identifier, uint64_t modes,
                             const dmapp_c_pset_attrs_t *attrs, dmapp_c_pset_handle_t *pset_hndl)
{
    struct dmapp_c_pset *set = NULL;
    struct listing *listing;
    dmapp_return_t rc;

    for (unsigned i = 0; i < SETS_MAX; i++) {
        if (sets[i].state == FREE)
            set = set ? set : &sets[i];
        else if (sets[i].state != RETIRED && sets[i].identifier == identifier)
            return DMAPP_RC_BUSY;
    }
    if (!set)
        return DMAPP_RC_NO_SPACE;
    rc = build(set, pdesc, attrs);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    set->identifier = identifier;
    set->modes = modes;
    set->state = CREATED;
    memset(&own->slots[set - sets], 0, sizeof(struct slot));
    listing = &own->directory[set - sets];
    listing->members = hash_of(set);
    atomic_store_explicit(&listing->identifier, identifier, memory_order_release);
    *pset_hndl = set;
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_c_pset_create(dmapp_c_pset_desc_t *pdesc, uint64_t identifier, uint64_t modes,
                                   dmapp_c_pset_attrs_t *attrs, dmapp_c_pset_handle_t *pset_hndl)
{
    dmapp_return_t rc;

    if (!dmappi_is_up() || !pdesc || !pset_hndl || identifier == 0 || (modes & ~(uint64_t)MODES) ||
        count_of(pdesc) == 0 || count_of(pdesc) > (uint32_t)dmappi_job.npes ||
        (attrs && attrs->type != DMAPP_C_PSET_ATTRS_VER1))
        return DMAPP_RC_INVALID_PARAM;
    if (dmappi_is_lost())
        return DMAPP_RC_RESOURCE_ERROR;
    pthread_mutex_lock(&mutex);
    rc = create(pdesc, identifier, modes, attrs, pset_hndl);
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* ---- export ---- */

/* Which slot a member has given the set. */
static dmapp_return_t find_slot(struct dmapp_c_pset *set, uint32_t member, uint64_t hash, struct listing *directory)
{
    dmapp_return_t rc = get(pe_of(set, member), own->directory, directory, sizeof(own->directory));

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    for (uint32_t i = 0; i < SETS_MAX; i++) {
        if (directory[i].identifier == set->identifier && directory[i].members == hash) {
            set->slots[member] = i;
            return DMAPP_RC_SUCCESS;
        }
    }
    return DMAPP_RC_NOT_FOUND;
}

dmapp_return_t dmapp_c_pset_export(dmapp_c_pset_handle_t pset_hndl)
{
    struct dmapp_c_pset *set = find(pset_hndl);
    struct listing directory[SETS_MAX];
    dmapp_return_t rc = DMAPP_RC_SUCCESS;
    uint64_t hash;

    if (!set || set->state != CREATED)
        return DMAPP_RC_INVALID_PARAM;
    hash = hash_of(set);
    for (uint32_t member = 0; member < set->n && rc == DMAPP_RC_SUCCESS; member++)
        rc = find_slot(set, member, hash, directory);
    if (rc == DMAPP_RC_SUCCESS)
        set->state = READY;
    return rc;
}

/* ---- operations ---- */

static dmapp_return_t check_idle(const struct dmapp_c_pset *set)
{
    if (!set || (set->state != READY && !set->is_running))
        return DMAPP_RC_INVALID_PARAM;
    return set->is_running ? DMAPP_RC_BUSY : DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_c_barrier_join(dmapp_c_pset_handle_t pset_hndl)
{
    struct dmapp_c_pset *set = find(pset_hndl);
    dmapp_return_t rc = check_idle(set);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    set->nelems = 0;
    set->len_bytes = 0;
    start_operation(set, 0xffffff);
    return DMAPP_RC_SUCCESS;
}

/* 24 bits that tell one reduction from another. */
static uint32_t describe(uint32_t nelems, dmapp_c_type_t type, dmapp_c_op_t op)
{
    return ((uint32_t)type - DMAPP_C_INT32) << 16 | ((uint32_t)op - DMAPP_C_SUM) << 8 | nelems;
}

dmapp_return_t dmapp_c_greduce_start(dmapp_c_pset_handle_t pset, void *in, void *out, uint32_t nelems,
                                     dmapp_c_type_t type, dmapp_c_op_t op)
{
    struct dmapp_c_pset *set = find(pset);
    dmapp_return_t rc = check_idle(set);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    if (!in || !out || !dmappi_reduce_is_legal(type, op) || nelems == 0 ||
        nelems > PAYLOAD_BYTES / dmappi_reduce_size(type))
        return DMAPP_RC_INVALID_PARAM;
    set->nelems = nelems;
    set->len_bytes = nelems * dmappi_reduce_size(type);
    set->type = type;
    set->op = op;
    set->out = out;
    memcpy(set->value, in, set->len_bytes);
    start_operation(set, describe(nelems, type, op));
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_c_greduce_nelems_max(dmapp_c_type_t type, uint32_t *nelems_max)
{
    uint32_t size = dmappi_reduce_size(type);

    if (!nelems_max || size == 0)
        return DMAPP_RC_INVALID_PARAM;
    *nelems_max = PAYLOAD_BYTES / size;
    return DMAPP_RC_SUCCESS;
}

static bool is_over(struct dmapp_c_pset *set)
{
    return !set->is_running || set->has_result || set->state == BROKEN || look(set);
}

static dmapp_return_t complete(struct dmapp_c_pset *set)
{
    dmapp_return_t rc = set->is_running ? set->ending : DMAPP_RC_SUCCESS;

    set->is_running = false;
    return rc;
}

dmapp_return_t dmapp_c_pset_test(dmapp_c_pset_handle_t pset_hndl)
{
    struct dmapp_c_pset *set = find(pset_hndl);

    if (!set)
        return DMAPP_RC_INVALID_PARAM;
    if (is_over(set))
        return complete(set);
    if (dmappi_is_lost()) {
        fail(set);
        return complete(set);
    }
    dmappi_wait_step();
    return is_over(set) ? complete(set) : DMAPP_RC_NOT_DONE;
}

dmapp_return_t dmapp_c_pset_wait(dmapp_c_pset_handle_t pset_hndl)
{
    struct dmapp_c_pset *set = find(pset_hndl);

    if (!set)
        return DMAPP_RC_INVALID_PARAM;
    while (!is_over(set)) {
        if (dmappi_is_lost())
            fail(set);
        else
            dmappi_wait_step();
    }
    return complete(set);
}

dmapp_return_t dmapp_c_pset_cancel_op(dmapp_c_pset_handle_t pset_hndl)
{
    struct dmapp_c_pset *set = find(pset_hndl);

    if (!set)
        return DMAPP_RC_INVALID_PARAM;
    if (set->is_running) {
        set->is_running = false;
        set->state = BROKEN;
    }
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_c_pset_destroy(dmapp_c_pset_handle_t pset_hndl)
{
    dmapp_return_t rc = DMAPP_RC_SUCCESS;
    struct dmapp_c_pset *set;

    pthread_mutex_lock(&mutex);
    set = find(pset_hndl);
    if (!set) {
        rc = DMAPP_RC_INVALID_PARAM;
    } else if (set->is_running) {
        rc = DMAPP_RC_BUSY;
    } else {
        atomic_store_explicit(&own->directory[set - sets].identifier, 0, memory_order_release);
        let_go(set);
        set->state = set->state == BROKEN ? RETIRED : FREE;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* ---- part ---- */

static uint64_t area_bytes(void)
{
    return sizeof(struct area);
}

static int start(void *area)
{
    own = area;
    return 0;
}

static void stop(void)
{
    for (unsigned i = 0; i < SETS_MAX; i++) {
        let_go(&sets[i]);
        sets[i] = (struct dmapp_c_pset){ 0 };
    }
    own = NULL;
}

const struct dmappi_part dmappi_pset_part = {
    .name = "process sets",
    .area_bytes = area_bytes,
    .start = start,
    .stop = stop,
};
