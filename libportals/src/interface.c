/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Library and interfaces.
 *
 * There are as many places for interfaces as handles can tell apart, each with a lock that lives as long as the
 * library. A call finds its interface by the handle, takes that lock, and only then looks whether it is open. Objects
 * belong to the engine (emunic/engine/portals_owner.h); what is kept here of them is what only the program knows:
 * handlers.
 *
 * The job's credentials come from the environment that `emunic run` sets. A forked child has no interface: it gives its
 * copies of the parent's back without touching what is shared. Where there was none to inherit it stays initialised.
 * Source: spec/portals3.md 4.1 to 4.3, 4.8, 4.10.
 */
#include "libportals/src/interface.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/barriers.h"
#include "emunic/base/log.h"
#include "emunic/client/session.h"
#include "libportals/src/code.h"
#include "libportals/src/dialect.h"

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER; /* opening and closing; before any interface's */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool is_init;
static uint32_t n_opened; /* interfaces ever: so that no handle of one means anything in the next */
static unsigned default_debug;
static struct p3_ni nis[P3_NIS_MAX];

static const struct p3_limits largest = {
    .max_mes = EMU_PTL_MES,
    .max_mds = EMU_PTL_MDS,
    .max_eqs = EMU_PTL_EQS,
    .max_ac_index = EMU_PTL_ACES - 1,
    .max_pt_index = EMU_PTL_PTS - 1,
    .max_md_iovecs = EMU_PTL_IOVEC_MAX,
    .max_me_list = EMU_PTL_MES,
    .max_getput_md = EMU_PTL_GETPUT_MAX,
};

/* ---- library ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&library_lock);
    for (uint32_t i = 0; i < P3_NIS_MAX; i++)
        emu_biased_lock(&nis[i].lock);
}

static void after_fork_in_parent(void)
{
    for (uint32_t i = P3_NIS_MAX; i-- > 0;)
        emu_biased_unlock(&nis[i].lock);
    pthread_mutex_unlock(&library_lock);
}

static void after_fork_in_child(void)
{
    bool has_interfaces = false;

    for (uint32_t i = 0; i < P3_NIS_MAX; i++) {
        has_interfaces = has_interfaces || nis[i].is_open;
        /* Given back by the next PtlInit(): other handlers of this fork have still to run. */
        nis[i].is_inherited = nis[i].is_inherited || nis[i].is_open;
        nis[i].is_open = false;
        emu_biased_lock_init(&nis[i].lock);
    }
    pthread_mutex_init(&library_lock, NULL);
    if (has_interfaces)
        atomic_store(&is_init, false);
}

static void __attribute__((constructor)) begin_early(void)
{
    emu_barriers_register_early();
}

static void start_once(void)
{
    emu_log_init(p3_dialect.name, EMU_LOG_ERROR);
    for (uint32_t i = 0; i < P3_NIS_MAX; i++)
        emu_biased_lock_init(&nis[i].lock);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void drop_inherited(void)
{
    pthread_mutex_lock(&library_lock);
    for (uint32_t i = 0; i < P3_NIS_MAX; i++) {
        if (nis[i].is_inherited) {
            emu_portals_close(&nis[i].p);
            free(nis[i].handlers);
            nis[i].handlers = NULL;
            nis[i].is_inherited = false;
        }
    }
    pthread_mutex_unlock(&library_lock);
}

enum p3_code p3_init(int *max_interfaces)
{
    if (!max_interfaces)
        return P3_SEGV;
    pthread_once(&once, start_once);
    drop_inherited();
    *max_interfaces = (int)p3_dialect.n_interfaces;
    atomic_store(&is_init, true);
    return P3_OK;
}

bool p3_is_init(void)
{
    return atomic_load_explicit(&is_init, memory_order_acquire);
}

/* ---- finding ---- */

struct p3_ni *p3_lock_ni_of(uint32_t handle)
{
    struct p3_ni *ni = &nis[emu_ptl_handle_ni(handle)];

    emu_biased_lock(&ni->lock);
    if (ni->is_open)
        return ni;
    emu_biased_unlock(&ni->lock);
    return NULL;
}

struct p3_ni *p3_lock_ni(uint32_t handle)
{
    struct p3_ni *ni = p3_lock_ni_of(handle);

    if (!ni || ni->handle == handle)
        return ni;
    p3_unlock_ni(ni);
    return NULL;
}

/* Is there such an object? The interface is locked, or it is only about which of two codes a wrong call gets. */
static bool exists(const struct p3_ni *ni, uint32_t handle)
{
    const struct emu_ptl_owner *owner = &ni->p.owner;

    switch (emu_ptl_handle_kind(handle)) {
    case EMU_PTL_IS_NI:
        return ni->handle == handle;
    case EMU_PTL_IS_ME:
        return emu_ptl_find_me(owner, handle) != EMU_PTL_NONE;
    case EMU_PTL_IS_MD:
        return emu_ptl_find_md(owner, handle) != EMU_PTL_NONE;
    default:
        return emu_ptl_find_eq(owner, handle) != EMU_PTL_NONE;
    }
}

bool p3_is_elsewhere(const struct p3_ni *than, uint32_t handle)
{
    const struct p3_ni *ni = &nis[emu_ptl_handle_ni(handle)];

    return ni != than && ni->is_open && exists(ni, handle);
}

void p3_trace_line(const struct p3_ni *ni, const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fprintf(stderr, "%s %u:%u: %s\n", p3_dialect.name, ni->p.port.nid, ni->p.pid, line);
}

/* ---- opening ---- */

static int granted(int most, const int *desired, int least)
{
    if (!desired || *desired > most)
        return most;
    return *desired < least ? least : *desired;
}

static struct p3_limits grant(const struct p3_limits *desired)
{
    const struct p3_limits *d = desired;

    return (struct p3_limits){
        .max_mes = granted(largest.max_mes, d ? &d->max_mes : NULL, 1),
        .max_mds = granted(largest.max_mds, d ? &d->max_mds : NULL, 1),
        .max_eqs = granted(largest.max_eqs, d ? &d->max_eqs : NULL, 1),
        .max_ac_index = granted(largest.max_ac_index, d ? &d->max_ac_index : NULL, 0),
        .max_pt_index = granted(largest.max_pt_index, d ? &d->max_pt_index : NULL, 0),
        .max_md_iovecs = granted(largest.max_md_iovecs, d ? &d->max_md_iovecs : NULL, 1),
        .max_me_list = granted(largest.max_me_list, d ? &d->max_me_list : NULL, 1),
        .max_getput_md = granted(largest.max_getput_md, d ? &d->max_getput_md : NULL, 1),
    };
}

/* A number from the environment; false: there is none. */
static bool number_of(const char *name, uint32_t *value_out)
{
    const char *text = getenv(name);
    unsigned long long value;
    char *end;

    if (!text || !text[0])
        return false;
    value = strtoull(text, &end, 10);
    if (*end || value > UINT32_MAX)
        return false;
    *value_out = (uint32_t)value;
    return true;
}

/* The place is locked and closed. */
static enum p3_code open_place(struct p3_ni *ni, uint32_t number, uint32_t net, uint32_t pid, uint32_t jid,
                               const struct p3_limits *desired)
{
    struct p3_limits limits = grant(desired);
    struct emu_portals_options options = {
        .ptag = 255, /* look it up by the cookie */
        .pid = pid,
        .jid = jid,
        .behaviour = p3_dialect.behaviour,
        .max_pt = (uint32_t)limits.max_pt_index,
        .max_ac = (uint32_t)limits.max_ac_index,
        .max_getput = (uint32_t)limits.max_getput_md,
        .number = number,
        .salt = n_opened * 257,
        .limits = { (uint32_t)limits.max_mes, (uint32_t)limits.max_mds, (uint32_t)limits.max_eqs,
                    (uint32_t)limits.max_me_list },
    };
    int r;

    if (!number_of("EMUNIC_COOKIE", &options.cookie)) {
        emu_session_tell_no_job("EMUNIC_COOKIE");
        return P3_FAIL;
    }
    number_of("EMUNIC_PTAG", &options.ptag);
    ni->handlers = calloc(EMU_PTL_EQS, sizeof(*ni->handlers));
    if (!ni->handlers)
        return P3_NO_SPACE;
    r = emu_portals_open(&ni->p, &options);
    if (r < 0) {
        free(ni->handlers);
        ni->handlers = NULL;
        return p3_code_of(P3_CALL_OPEN, r);
    }
    if (jid == EMU_PTL_JID_ANY)
        ni->p.ni->jid = ni->p.port.table->domain_id;
    ni->limits = limits;
    ni->net = net;
    ni->handle = emu_ptl_handle(EMU_PTL_IS_NI, number, n_opened++ & 0xffff, 0);
    ni->loopback = 1;
    ni->debug = default_debug;
    ni->is_open = true;
    ni->told_of_end = false;
    emu_biased_lock_bias(&ni->lock);
    p3_trace(ni, P3_DEBUG_SETUP, "open, interface %u", net);
    return P3_OK;
}

static void close_place(struct p3_ni *ni)
{
    p3_trace(ni, P3_DEBUG_SHUTDOWN, "close");
    ni->is_open = false;
    emu_portals_close(&ni->p);
    free(ni->handlers);
    ni->handlers = NULL;
    p3_dialect_after_close(ni->handle);
}

/* Library locked. */
static enum p3_code open_net(uint32_t net, uint32_t pid, uint32_t jid, const struct p3_limits *desired,
                             uint32_t *ni_out)
{
    uint32_t number = 0;
    struct p3_id id;
    struct p3_ni *ni;
    enum p3_code code;

    while (number < P3_NIS_MAX && nis[number].is_open)
        number++;
    if (number == P3_NIS_MAX)
        return P3_NO_SPACE;
    code = p3_dialect_before_open(net, &pid, &jid);
    if (code != P3_OK)
        return code;
    ni = &nis[number];
    emu_biased_lock(&ni->lock);
    code = open_place(ni, number, net, pid, jid, desired);
    if (code == P3_OK) {
        id = (struct p3_id){ ni->p.port.nid, ni->p.pid };
        code = p3_dialect_after_open(ni->handle, id, &ni->p.ni->jid);
        if (code != P3_OK)
            close_place(ni);
        else
            *ni_out = ni->handle;
    }
    emu_biased_unlock(&ni->lock);
    return code;
}

enum p3_code p3_ni_init(uint32_t net, uint32_t pid, uint32_t jid, const struct p3_limits *desired,
                        struct p3_limits *actual, uint32_t *ni_out)
{
    enum p3_code code = P3_OK;
    uint32_t i;

    pthread_mutex_lock(&library_lock);
    for (i = 0; i < P3_NIS_MAX && !(nis[i].is_open && nis[i].net == net); i++)
        ;
    if (i < P3_NIS_MAX) {
        *ni_out = nis[i].handle;
        code = P3_IFACE_DUP;
    } else {
        code = open_net(net, pid, jid, desired, ni_out);
        i = code == P3_OK ? emu_ptl_handle_ni(*ni_out) : 0;
    }
    if (actual && (code == P3_OK || code == P3_IFACE_DUP))
        *actual = nis[i].limits;
    pthread_mutex_unlock(&library_lock);
    return code;
}

enum p3_code p3_ni_fini(uint32_t handle)
{
    enum p3_code code = P3_NI_INVALID;
    struct p3_ni *ni;

    pthread_mutex_lock(&library_lock);
    ni = p3_lock_ni(handle);
    if (ni) {
        close_place(ni);
        p3_unlock_ni(ni);
        code = P3_OK;
    }
    pthread_mutex_unlock(&library_lock);
    return code;
}

void p3_fini(void)
{
    if (!p3_is_init())
        return;
    pthread_mutex_lock(&library_lock);
    for (uint32_t i = 0; i < P3_NIS_MAX; i++) {
        emu_biased_lock(&nis[i].lock);
        if (nis[i].is_open)
            close_place(&nis[i]);
        emu_biased_unlock(&nis[i].lock);
    }
    p3_dialect_fini();
    atomic_store(&is_init, false);
    pthread_mutex_unlock(&library_lock);
}

/* ---- what an interface knows ---- */

enum p3_code p3_ni_check(uint32_t handle)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return P3_NI_INVALID;
    p3_unlock_ni(ni);
    return P3_OK;
}

/* Of a list: how long it is, and has been. */
static enum p3_code list_register(const struct emu_ptl_ni *shm, uint32_t reg, uint64_t *value)
{
    uint32_t pt = (reg & 0x7fffffffu) >> 16;
    uint32_t which = reg & 0xffff;

    if (pt > shm->max_pt || pt >= EMU_PTL_PTS || (which != EMU_PTL_SR_MES + 3 && which != EMU_PTL_SR_MES + 2))
        return P3_SR_INDEX_INVALID;
    *value = which == EMU_PTL_SR_MES + 3 ? shm->lists[pt].n_live : shm->lists[pt].n_max;
    return P3_OK;
}

static enum p3_code read_register(const struct emu_portals *p, uint32_t reg, uint64_t *value)
{
    const struct emu_ptl_ni *shm = p->ni;
    uint64_t sent = shm->registers[EMU_PTL_SR_SEND_COUNT];
    uint64_t received = shm->received + p->n_handed;

    if (reg & 0x80000000u)
        return list_register(shm, reg, value);
    if (reg >= EMU_PTL_SR_END)
        return P3_SR_INDEX_INVALID;
    switch (reg) {
    case EMU_PTL_SR_DROP_COUNT:
        *value = shm->drops;
        break;
    case EMU_PTL_SR_DROP_LENGTH:
        *value = shm->dropped_bytes;
        break;
    case EMU_PTL_SR_RECV_COUNT:
        *value = received;
        break;
    case EMU_PTL_SR_RECV_LENGTH:
        *value = shm->received_bytes + p->handed_bytes;
        break;
    case EMU_PTL_SR_MSGS:
        *value = received + sent;
        break;
    case EMU_PTL_SR_MSGS + 1:
        *value = received + sent - shm->n_open;
        break;
    case EMU_PTL_SR_MSGS + 2:
        *value = shm->n_open_max;
        break;
    case EMU_PTL_SR_MSGS + 3:
        *value = shm->n_open;
        break;
    default:
        *value = shm->registers[reg];
    }
    return P3_OK;
}

enum p3_code p3_ni_status(uint32_t handle, uint32_t reg, uint64_t *value)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    enum p3_code code;

    if (!ni)
        return P3_NI_INVALID;
    /* The lock also makes what others have marked dead count as freed. */
    emu_portals_hold(&ni->p);
    code = read_register(&ni->p, reg, value);
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}

enum p3_code p3_ni_distance(uint32_t handle, uint32_t nid, bool has_pid, unsigned long *distance)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    uint32_t hops = 0;
    int r = -EHOSTUNREACH;

    if (!ni)
        return P3_NI_INVALID;
    if (nid != EMU_PTL_NID_ANY && has_pid)
        r = emu_portals_distance(&ni->p, nid, &hops);
    p3_unlock_ni(ni);
    *distance = r == 0 ? hops : ULONG_MAX;
    return r == 0 ? P3_OK : P3_PROCESS_INVALID;
}

enum p3_code p3_ni_handle(uint32_t handle, uint32_t *ni_out)
{
    struct p3_ni *ni = p3_lock_ni_of(handle);
    bool is_one;

    if (!ni)
        return P3_HANDLE_INVALID;
    emu_portals_hold(&ni->p);
    is_one = exists(ni, handle);
    emu_portals_release(&ni->p);
    if (is_one)
        *ni_out = ni->handle;
    p3_unlock_ni(ni);
    return is_one ? P3_OK : P3_HANDLE_INVALID;
}

enum p3_code p3_get_uid(uint32_t handle, uint32_t *uid)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return P3_NI_INVALID;
    *uid = ni->p.ni->uid;
    p3_unlock_ni(ni);
    return P3_OK;
}

enum p3_code p3_get_id(uint32_t handle, struct p3_id *id)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return P3_NI_INVALID;
    *id = (struct p3_id){ ni->p.port.nid, ni->p.pid };
    p3_unlock_ni(ni);
    return P3_OK;
}

enum p3_code p3_get_jid(uint32_t handle, uint32_t *jid)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return P3_NI_INVALID;
    *jid = ni->p.ni->jid;
    p3_unlock_ni(ni);
    return P3_OK;
}

enum p3_code p3_ac_entry(uint32_t handle, uint32_t ac, struct p3_id id, uint32_t uid, uint32_t jid, uint32_t pt)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    enum p3_code code = P3_OK;

    if (!ni)
        return P3_NI_INVALID;
    if (ac > (uint32_t)ni->limits.max_ac_index)
        code = P3_AC_INDEX_INVALID;
    else if (pt != EMU_PTL_PT_ANY && pt > (uint32_t)ni->limits.max_pt_index)
        code = P3_PT_INDEX_INVALID;
    if (code == P3_OK) {
        emu_portals_hold(&ni->p);
        ni->p.ni->aces[ac] = (struct emu_ptl_ace){ .nid = id.nid, .pid = id.pid, .uid = uid, .jid = jid, .pt = pt };
        emu_portals_release(&ni->p);
    }
    p3_unlock_ni(ni);
    return code;
}

/* ---- debugging ---- */

static enum p3_code set_fail(struct emu_ptl_ni *shm, uint32_t nid, int32_t count)
{
    struct emu_ptl_fail *place = NULL;

    for (uint32_t i = 0; i < EMU_PTL_FAILS; i++) {
        struct emu_ptl_fail *fail = &shm->fails[i];

        if (fail->count != 0 && (fail->nid == nid || (count == 0 && nid == EMU_PTL_NID_ANY))) {
            fail->count = count;
            place = fail;
            if (count != 0)
                return P3_OK;
        }
    }
    if (count == 0)
        return P3_OK;
    for (uint32_t i = 0; i < EMU_PTL_FAILS && !place; i++) {
        if (shm->fails[i].count == 0)
            place = &shm->fails[i];
    }
    if (!place)
        return P3_NO_SPACE;
    *place = (struct emu_ptl_fail){ nid, count };
    shm->n_fails = EMU_PTL_FAILS;
    return P3_OK;
}

enum p3_code p3_fail_nid(uint32_t handle, uint32_t nid, uint32_t count)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    enum p3_code code;

    if (!ni)
        return P3_NI_INVALID;
    emu_portals_hold(&ni->p);
    code = set_fail(ni->p.ni, nid, count == UINT32_MAX ? -1 : count > INT_MAX ? INT_MAX : (int32_t)count);
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}

enum p3_code p3_loopback(uint32_t handle, bool set, int *enabled)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return P3_NI_INVALID;
    if (set)
        ni->loopback = *enabled;
    else
        *enabled = ni->loopback;
    p3_unlock_ni(ni);
    return P3_OK;
}

unsigned p3_debug(uint32_t handle, unsigned mask)
{
    unsigned before = 0;
    struct p3_ni *ni;

    pthread_once(&once, start_once);
    if (handle == P3_INVALID_HANDLE) {
        pthread_mutex_lock(&library_lock);
        before = default_debug;
        default_debug = mask;
        pthread_mutex_unlock(&library_lock);
        return before;
    }
    ni = p3_lock_ni(handle);
    if (ni) {
        before = ni->debug;
        ni->debug = mask;
        p3_unlock_ni(ni);
    }
    return before;
}

enum p3_code p3_progress(uint32_t handle)
{
    struct p3_ni *ni = p3_lock_ni_of(handle);

    bool is_one;

    if (!ni)
        return P3_NI_INVALID;
    is_one = exists(ni, handle);
    p3_unlock_ni(ni);
    return is_one ? P3_OK : P3_NI_INVALID;
}

static void dump_entry(const struct emu_ptl_ni *shm, const struct emu_ptl_place *place)
{
    const struct emu_ptl_me *me = &shm->mes[place->me % EMU_PTL_MES];
    const struct emu_ptl_md *md = place->md < EMU_PTL_MDS ? &shm->mds[place->md] : NULL;

    fprintf(stderr, "me 0x%08x from %d:%d bits 0x%016llx ignore 0x%016llx%s", me->handle, (int)place->nid,
            (int)place->pid, (unsigned long long)place->bits, (unsigned long long)place->ignore,
            me->unlinks ? " unlink" : "");
    if (md)
        fprintf(stderr, "; md 0x%08x start 0x%llx bytes %llu offset %llu threshold %d options 0x%x pending %u%s",
                md->handle, (unsigned long long)md->start, (unsigned long long)md->length_bytes,
                (unsigned long long)md->local_offset, md->threshold, md->options, md->pending,
                (md->flags & EMU_PTL_MD_UNLINKS) ? " unlink" : "");
    fputc('\n', stderr);
}

enum p3_code p3_dump_table(uint32_t handle, int pt)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    const struct emu_ptl_list *list;

    if (!ni)
        return P3_NI_INVALID;
    if (pt < 0 || pt > ni->limits.max_pt_index) {
        p3_unlock_ni(ni);
        return P3_PT_INDEX_INVALID;
    }
    emu_portals_hold(&ni->p);
    list = &ni->p.ni->lists[pt];
    fprintf(stderr, "portal %d: %u entries\n", pt, list->n_live);
    for (uint32_t i = list->first; i < list->end && i < EMU_PTL_PLACES; i++) {
        if (ni->p.ni->places[pt][i].me != EMU_PTL_NONE)
            dump_entry(ni->p.ni, &ni->p.ni->places[pt][i]);
    }
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return P3_OK;
}

enum p3_code p3_dump_me(uint32_t handle)
{
    struct p3_ni *ni = p3_lock_ni_of(handle);
    uint32_t me;

    if (!ni)
        return P3_ME_INVALID;
    emu_portals_hold(&ni->p);
    me = emu_ptl_find_me(&ni->p.owner, handle);
    if (me != EMU_PTL_NONE)
        dump_entry(ni->p.ni,
                   &ni->p.ni->places[ni->p.ni->mes[me].pt % EMU_PTL_PTS][ni->p.ni->mes[me].place % EMU_PTL_PLACES]);
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return me != EMU_PTL_NONE ? P3_OK : P3_ME_INVALID;
}

enum p3_code p3_dump_queues(uint32_t handle)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return P3_NI_INVALID;
    for (uint32_t i = 0; i < EMU_PTL_EQS; i++) {
        const struct emu_ptl_eq *eq = &ni->p.ni->eqs[i];
        uint64_t tail = atomic_load_explicit(&eq->tail, memory_order_relaxed);

        if (eq->state == EMU_PTL_LIVE)
            fprintf(stderr, "eq 0x%08x: room for %u, holds %llu, %u promised\n", eq->handle, eq->capacity,
                    (unsigned long long)(tail - ni->p.owner.eq_own[i].head.at), eq->promised);
    }
    p3_unlock_ni(ni);
    return P3_OK;
}

int p3_my_nid(uint32_t *nid)
{
    uint32_t cookie;

    return number_of("EMUNIC_COOKIE", &cookie) && number_of("EMUNIC_NID", nid) ? 0 : -1;
}
