/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Match entries and descriptors. Arguments are checked here; what happens to the interface is the engine's, done while
 * it is held, so each call is one step for incoming requests.
 *
 * Memory that requests can hit is looked for in the regions that peers have windows to (emunic/client/regions.h). New
 * regions are only made while no operation is going on, because pages must not be written by others while they are
 * moved.
 *
 * An operation may be over at its target a moment before emunic has told us so. A program that has heard of it there,
 * and then removes its descriptor, is not to be told that it is in use: unlinking looks again for a while.
 * Source: spec/portals3.md 1.4, 1.5, 4.4, 4.5, 4.11.
 */
#include <sched.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "libportals/src/code.h"
#include "libportals/src/dialect.h"
#include "libportals/src/interface.h"

/* ---- arguments ---- */

static bool wraps(uint64_t start, uint64_t length)
{
    return length > 0 && (start == 0 || start + length - 1 < start);
}

static bool segments_are_legal(const struct p3_iovec *iovs, uint64_t n, struct emu_ptl_iov *copy)
{
    uint64_t total = 0;

    for (uint64_t i = 0; i < n; i++) {
        copy[i] = (struct emu_ptl_iov){ (uint64_t)(uintptr_t)iovs[i].base, iovs[i].length };
        if (wraps(copy[i].addr, copy[i].length_bytes) || total + copy[i].length_bytes < total)
            return false;
        total += copy[i].length_bytes;
    }
    return true;
}

static enum p3_code find_queue(struct p3_ni *ni, uint32_t handle, uint32_t *eq_out)
{
    *eq_out = EMU_PTL_NONE;
    if (handle == P3_EQ_NONE)
        return P3_OK;
    *eq_out = emu_ptl_find_eq(&ni->p.owner, handle);
    return *eq_out == EMU_PTL_NONE ? P3_EQ_INVALID : P3_OK;
}

/* Checks a descriptor and puts it into the engine's words. room: for max_md_iovecs segments. */
static enum p3_code check_md(struct p3_ni *ni, const struct p3_md *md, bool unlinks, struct emu_ptl_iov *room,
                             struct emu_ptl_md_spec *spec)
{
    enum p3_code code;

    *spec = (struct emu_ptl_md_spec){
        .start = (uint64_t)(uintptr_t)md->start,
        .length = md->length,
        .threshold = md->threshold < -1 ? 0 : md->threshold,
        .options = md->options,
        .max_size = md->max_size,
        .user_ptr = (uint64_t)(uintptr_t)md->user_ptr,
        .eq_handle = md->eq,
        .unlinks = unlinks || (md->options & p3_dialect.options & EMU_PTL_MD_FLAG_AUTO_UNLINK) != 0,
    };
    if ((md->options & ~0xffffu) != 0 || (md->options & (EMU_PTL_MD_PHYS | EMU_PTL_MD_KIOV)) != 0)
        return P3_MD_ILLEGAL;
    if (md->options & EMU_PTL_MD_IOVEC) {
        if (md->length > (uint64_t)ni->limits.max_md_iovecs || (md->length > 0 && !md->start) ||
            !segments_are_legal(md->start, md->length, room))
            return P3_MD_ILLEGAL;
        spec->iovs = room;
    } else if (wraps(spec->start, md->length)) {
        return P3_MD_ILLEGAL;
    }
    code = find_queue(ni, md->eq, &spec->eq);
    return code == P3_EQ_INVALID && p3_is_elsewhere(ni, md->eq) ? P3_MD_ILLEGAL : code;
}

/* Names the region that all of the descriptor's memory lies in, if there is one. The interface is held. */
static void find_region(struct p3_ni *ni, struct emu_ptl_md_spec *spec)
{
    uint64_t first = spec->start;
    uint64_t end = spec->start + spec->length;
    uint16_t mdh, generation;

    if ((spec->options & (EMU_PTL_MD_OP_PUT | EMU_PTL_MD_OP_GET)) == 0 || spec->length == 0)
        return;
    if (spec->options & EMU_PTL_MD_IOVEC) {
        first = UINT64_MAX;
        end = 0;
        for (uint64_t i = 0; i < spec->length; i++) {
            if (spec->iovs[i].length_bytes == 0)
                continue;
            first = spec->iovs[i].addr < first ? spec->iovs[i].addr : first;
            end = spec->iovs[i].addr + spec->iovs[i].length_bytes > end ?
                      spec->iovs[i].addr + spec->iovs[i].length_bytes :
                      end;
        }
        if (end <= first)
            return;
    }
    if (emu_regions_find(&ni->p.regions, first, end - first, ni->p.ni->n_open == 0, &mdh, &generation)) {
        spec->mdh = mdh;
        spec->mdh_generation = generation;
    }
}

static struct emu_ptl_me_spec me_spec_of(const struct p3_match *match)
{
    return (struct emu_ptl_me_spec){ .nid = match->id.nid,
                                     .pid = match->id.pid,
                                     .bits = match->bits,
                                     .ignore = match->ignore,
                                     .unlinks = match->unlinks };
}

/* ---- match entries ---- */

/* The interface is held. */
static enum p3_code create_me(struct p3_ni *ni, const struct emu_ptl_me_spec *spec, uint32_t *me)
{
    uint32_t index;
    int r = emu_ptl_me_create(&ni->p.owner, spec, &index);

    if (r == 0) {
        *me = ni->p.ni->mes[index].handle;
        p3_trace(ni, P3_DEBUG_ME, "me 0x%08x at portal %u", *me, ni->p.ni->mes[index].pt);
    }
    return p3_code_of(P3_CALL_CREATE, r);
}

enum p3_code p3_me_attach(uint32_t handle, uint32_t pt, const struct p3_match *match, bool at_head, uint32_t *me)
{
    struct emu_ptl_me_spec spec = me_spec_of(match);
    struct p3_ni *ni = p3_lock_ni(handle);
    enum p3_code code = P3_PT_INDEX_INVALID;

    if (!ni)
        return P3_NI_INVALID;
    if (pt <= (uint32_t)ni->limits.max_pt_index) {
        spec.pt = pt;
        spec.where = at_head ? EMU_PTL_HEAD : EMU_PTL_TAIL;
        emu_portals_hold(&ni->p);
        code = create_me(ni, &spec, me);
        emu_portals_release(&ni->p);
    }
    p3_unlock_ni(ni);
    return code;
}

enum p3_code p3_me_attach_any(uint32_t handle, uint32_t *pt, const struct p3_match *match, uint32_t *me)
{
    struct emu_ptl_me_spec spec = me_spec_of(match);
    struct p3_ni *ni = p3_lock_ni(handle);
    enum p3_code code = P3_PT_FULL;

    if (!ni)
        return P3_NI_INVALID;
    emu_portals_hold(&ni->p);
    spec.where = EMU_PTL_TAIL;
    spec.pt = emu_ptl_unused_pt(&ni->p.owner);
    if (spec.pt != EMU_PTL_NONE)
        code = create_me(ni, &spec, me);
    if (code == P3_OK)
        *pt = spec.pt;
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}

enum p3_code p3_me_insert(uint32_t base, const struct p3_match *match, bool before, uint32_t *me)
{
    struct emu_ptl_me_spec spec = me_spec_of(match);
    struct p3_ni *ni = p3_lock_ni_of(base);
    enum p3_code code = P3_ME_INVALID;

    if (!ni)
        return P3_ME_INVALID;
    emu_portals_hold(&ni->p);
    spec.where = before ? EMU_PTL_BEFORE : EMU_PTL_AFTER;
    spec.base = emu_ptl_find_me(&ni->p.owner, base);
    if (spec.base != EMU_PTL_NONE)
        code = create_me(ni, &spec, me);
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}

/* The program unlinks: an event only where it wants one for that. The interface is held. */
static void tell_manual(struct p3_ni *ni, uint32_t md)
{
    if (p3_dialect.options & ni->p.ni->mds[md].options & (EMU_PTL_MD_MANUAL_UNLINK_EVENT | EMU_PTL_MD_LUSTRE))
        emu_ptl_md_tell_unlink(&ni->p.owner, md);
}

/* How long it may take until what is over at its target is over here, too; and how often that is looked at. */
#define HOME_NS    1000000u
#define HOME_LOOKS 32u

struct patience {
    uint64_t end_ns;
    unsigned looks;
};

/* Nothing is locked. False: what is still pending is so for other reasons. */
static bool has_patience(struct patience *p)
{
    uint64_t now_ns = emu_clock_ns();

    if (p->looks++ == 0)
        p->end_ns = now_ns + HOME_NS;
    else if (now_ns >= p->end_ns && p->looks > HOME_LOOKS)
        return false;
    sched_yield();
    return true;
}

/* none, busy: codes for a handle of no interface, and for an object with pending operations. */
static enum p3_code unlink_patiently(uint32_t handle, enum p3_code none, enum p3_code busy,
                                     enum p3_code (*unlink)(struct p3_ni *, uint32_t))
{
    struct patience patience = { .looks = 0 };
    struct p3_ni *ni;
    enum p3_code code;
    bool is_virtual;

    do {
        ni = p3_lock_ni_of(handle);
        if (!ni)
            return none;
        emu_portals_hold(&ni->p);
        code = unlink(ni, handle);
        emu_portals_release(&ni->p);
        /* There what is pending is so until its time: the answer is the original's, and costs as much as a poll. */
        is_virtual = ni->p.port.times;
        if (is_virtual && code == busy)
            emu_port_relax(&ni->p.port, handle);
        p3_unlock_ni(ni);
    } while (code == busy && !is_virtual && has_patience(&patience));
    return code;
}

static enum p3_code unlink_me(struct p3_ni *ni, uint32_t handle)
{
    uint32_t me = emu_ptl_find_me(&ni->p.owner, handle);
    uint32_t md;

    if (me == EMU_PTL_NONE)
        return P3_ME_INVALID;
    md = ni->p.ni->mes[me].md;
    if (md < EMU_PTL_MDS && ni->p.ni->mds[md].pending == 0)
        tell_manual(ni, md);
    if (emu_ptl_me_unlink(&ni->p.owner, me) < 0)
        return P3_ME_IN_USE;
    p3_trace(ni, P3_DEBUG_ME, "me 0x%08x unlinked", handle);
    return P3_OK;
}

enum p3_code p3_me_unlink(uint32_t handle)
{
    return unlink_patiently(handle, P3_ME_INVALID, P3_ME_IN_USE, unlink_me);
}

/* ---- descriptors ---- */

/* me: EMU_PTL_NONE for one that requests cannot hit. The interface is held. */
static enum p3_code create_md(struct p3_ni *ni, struct emu_ptl_md_spec *spec, uint32_t me, uint32_t *mdh)
{
    uint32_t index;
    int r;

    if (me != EMU_PTL_NONE)
        find_region(ni, spec);
    r = emu_ptl_md_create(&ni->p.owner, spec, me, &index);
    if (r == 0) {
        *mdh = ni->p.ni->mds[index].handle;
        p3_trace(ni, P3_DEBUG_MD, "md 0x%08x %llu bytes options 0x%x", *mdh,
                 (unsigned long long)ni->p.ni->mds[index].length_bytes, spec->options);
    }
    return p3_code_of(P3_CALL_CREATE, r);
}

enum p3_code p3_md_attach(uint32_t handle, const struct p3_md *md, bool unlinks, uint32_t *mdh)
{
    struct emu_ptl_iov room[EMU_PTL_IOVEC_MAX];
    struct p3_ni *ni = p3_lock_ni_of(handle);
    struct emu_ptl_md_spec spec;
    enum p3_code code;
    uint32_t me;

    if (!ni)
        return P3_ME_INVALID;
    emu_portals_hold(&ni->p);
    me = emu_ptl_find_me(&ni->p.owner, handle);
    code = me == EMU_PTL_NONE ? P3_ME_INVALID : check_md(ni, md, unlinks, room, &spec);
    if (code == P3_OK)
        code = ni->p.ni->mes[me].md != EMU_PTL_NONE ? P3_ME_IN_USE : create_md(ni, &spec, me, mdh);
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}

enum p3_code p3_md_bind(uint32_t handle, const struct p3_md *md, bool unlinks, uint32_t *mdh)
{
    struct emu_ptl_iov room[EMU_PTL_IOVEC_MAX];
    struct p3_ni *ni = p3_lock_ni(handle);
    struct emu_ptl_md_spec spec;
    enum p3_code code;

    if (!ni)
        return P3_NI_INVALID;
    emu_portals_hold(&ni->p);
    code = check_md(ni, md, unlinks, room, &spec);
    if (code == P3_OK)
        code = create_md(ni, &spec, EMU_PTL_NONE, mdh);
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}

static enum p3_code unlink_md(struct p3_ni *ni, uint32_t handle)
{
    uint32_t index = emu_ptl_find_md(&ni->p.owner, handle);
    struct emu_ptl_md *md;

    if (index == EMU_PTL_NONE)
        return P3_MD_INVALID;
    md = &ni->p.ni->mds[index];
    if (md->pending == 0) {
        tell_manual(ni, index);
        emu_ptl_md_unlink(&ni->p.owner, index);
        p3_trace(ni, P3_DEBUG_MD, "md 0x%08x unlinked", handle);
        return P3_OK;
    }
    if ((p3_dialect.options & md->options & EMU_PTL_MD_LUSTRE) == 0)
        return P3_MD_IN_USE;
    md->flags |= EMU_PTL_MD_WAS_ENDED;
    return P3_OK;
}

enum p3_code p3_md_unlink(uint32_t handle)
{
    return unlink_patiently(handle, P3_MD_INVALID, P3_MD_IN_USE, unlink_md);
}

/* What the descriptor is now, for the program; segments as far as it has made room for them. */
static void tell_md(const struct p3_ni *ni, const struct emu_ptl_md *md, struct p3_md *out)
{
    if ((out->options & EMU_PTL_MD_IOVEC) && out->start && (md->options & EMU_PTL_MD_IOVEC)) {
        struct p3_iovec *room = out->start;

        for (uint64_t i = 0; i < out->length && i < md->iov_count; i++) {
            const struct emu_ptl_iov *iov = &ni->p.ni->iovs[(md->iov_first + i) % EMU_PTL_IOVECS];

            room[i] = (struct p3_iovec){ (void *)(uintptr_t)iov->addr, iov->length_bytes };
        }
    }
    *out = (struct p3_md){
        .start = (void *)(uintptr_t)md->start,
        .length = md->length,
        .threshold = md->threshold,
        .max_size = md->max_size,
        .options = md->options,
        .user_ptr = (void *)(uintptr_t)md->user_ptr,
        .eq = md->eq_handle,
    };
}

/* The interface is held. */
static enum p3_code update_md(struct p3_ni *ni, uint32_t index, const struct p3_md *new_md, uint32_t test_eq)
{
    struct emu_ptl_iov room[EMU_PTL_IOVEC_MAX];
    struct emu_ptl_md_spec spec;
    enum p3_code code = check_md(ni, new_md, false, room, &spec);
    int r;

    if (code != P3_OK)
        return code;
    if (ni->p.ni->mds[index].me != EMU_PTL_NONE)
        find_region(ni, &spec);
    r = emu_ptl_md_update(&ni->p.owner, index, &spec, test_eq);
    return p3_code_of(P3_CALL_UPDATE, r);
}

enum p3_code p3_md_update(uint32_t handle, struct p3_md *old_md, const struct p3_md *new_md, uint32_t test_eq)
{
    struct p3_ni *ni = p3_lock_ni_of(handle);
    enum p3_code code = P3_MD_INVALID;
    uint32_t index, eq;

    if (!ni)
        return P3_MD_INVALID;
    emu_portals_hold(&ni->p);
    index = emu_ptl_find_md(&ni->p.owner, handle);
    if (index != EMU_PTL_NONE) {
        code = find_queue(ni, test_eq, &eq);
        if (code == P3_OK && new_md) {
            struct p3_md given = *new_md; /* both may be one structure */

            if (old_md)
                tell_md(ni, &ni->p.ni->mds[index], old_md);
            code = update_md(ni, index, &given, eq);
        } else if (code == P3_OK && old_md) {
            tell_md(ni, &ni->p.ni->mds[index], old_md);
        }
    }
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}

/* ---- both in one ---- */

/* The interface is held. */
static enum p3_code post(struct p3_ni *ni, const struct p3_post *p, uint32_t *me, uint32_t *mdh)
{
    struct emu_ptl_iov room[EMU_PTL_IOVEC_MAX];
    struct emu_ptl_me_spec spec = me_spec_of(&p->match);
    struct emu_ptl_md_spec md;
    enum p3_code code;
    uint32_t new_me;
    uint32_t eq;

    if (p->has_base) {
        spec.where = p->before ? EMU_PTL_BEFORE : EMU_PTL_AFTER;
        spec.base = emu_ptl_find_me(&ni->p.owner, p->base);
        if (spec.base == EMU_PTL_NONE)
            return P3_ME_INVALID;
    } else {
        spec.where = p->before ? EMU_PTL_HEAD : EMU_PTL_TAIL;
        spec.pt = p->pt;
        if (p->pt > (uint32_t)ni->limits.max_pt_index)
            return P3_PT_INDEX_INVALID;
    }
    code = find_queue(ni, p->test_eq, &eq);
    if (code == P3_OK)
        code = check_md(ni, &p->md, p->md_unlinks, room, &md);
    if (code == P3_OK && !emu_ptl_eq_is_quiet(&ni->p.owner, eq))
        code = P3_MD_NO_UPDATE;
    if (code == P3_OK)
        code = create_me(ni, &spec, &new_me);
    if (code != P3_OK)
        return code;
    code = create_md(ni, &md, emu_ptl_handle_index(new_me), mdh);
    if (code == P3_OK)
        *me = new_me;
    else
        emu_ptl_me_unlink(&ni->p.owner, emu_ptl_handle_index(new_me));
    return code;
}

enum p3_code p3_me_md_post(const struct p3_post *p, uint32_t *me, uint32_t *mdh)
{
    struct p3_ni *ni = p3_lock_ni_of(p->ni);
    enum p3_code code;

    if (!ni)
        return P3_NI_INVALID;
    emu_portals_hold(&ni->p);
    code = post(ni, p, me, mdh);
    emu_portals_release(&ni->p);
    p3_unlock_ni(ni);
    return code;
}
