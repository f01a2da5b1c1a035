/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: what cannot be done the short way becomes uGNI posts.
 *
 * A call of the program is one `struct dmappi_call`: it begins, makes any number of posts, and ends in its flavour.
 */
#ifndef LIBDMAPP_REQUEST_H
#define LIBDMAPP_REQUEST_H

#include "libdmapp/src/segments.h"

enum dmappi_flavour { DMAPPI_BLOCKING, DMAPPI_NB, DMAPPI_NBI };

/* What one explicit request waits for. */
struct dmappi_sync {
    _Atomic uint32_t pending; /* posts, and 1 while its call runs */
    _Atomic bool has_failed;
    bool is_live; /* job lock, as the next two */
    uint32_t generation;
    uint32_t next; /* of the free ones */
};

struct dmappi_call {
    enum dmappi_flavour flavour;
    struct dmappi_thread *thread;
    struct dmappi_sync *sync; /* NULL: implicit */
    struct dmappi_sync own;   /* of a blocking call */
};

/* The syncid of what was complete at once. */
#define DMAPPI_SYNCID_DONE ((dmapp_syncid_handle_t)(uintptr_t)2)

/* ---- request.c ---- */

int dmappi_requests_start(void);
void dmappi_requests_stop(void);

/* DMAPP_RC_SUCCESS; _NO_SPACE: no syncid left; _RESOURCE_ERROR. */
dmapp_return_t dmappi_call_begin(struct dmappi_call *call, enum dmappi_flavour flavour);
/* rc: of the call so far. An _nb call that fails waits for what it has posted. */
dmapp_return_t dmappi_call_end(struct dmappi_call *call, dmapp_return_t rc, dmapp_syncid_handle_t *syncid);

/* May wait for room. Data are the program's until completion. len_bytes > 0. */
dmapp_return_t dmappi_post_put(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                               uint64_t len_bytes);
dmapp_return_t dmappi_post_get(struct dmappi_call *call, void *to, const struct dmappi_place *from, uint64_t len_bytes);
/* Data, then the word at the owner's address `flag`, in the same segment. */
dmapp_return_t dmappi_post_put_flag(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                                    uint64_t len_bytes, uint64_t flag, uint64_t value);
/* Has the NIC that atomic? Of its operation and width. */
bool dmappi_has_amo(const struct dmappi_atomic *atomic);
/* old NULL: not fetched. */
dmapp_return_t dmappi_post_amo(struct dmappi_call *call, const struct dmappi_place *at,
                               const struct dmappi_atomic *atomic, void *old);
/* A copy of small data, for sources that do not outlive the call. len_bytes <= DMAPPI_SMALL_BYTES. */
dmapp_return_t dmappi_post_put_copy(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                                    uint64_t len_bytes);
#define DMAPPI_SMALL_BYTES 128u

/* Takes completions off the source queue; how many. Polite when there are none. No lock held. */
unsigned dmappi_collect(void);

/* A syncid's outcome, if it is complete: 0 not, 1 complete, 2 failed; -1 it is none. Retires it. */
int dmappi_sync_settle(dmapp_syncid_handle_t syncid);

/* ---- the short way, for a part that gnii_launch() takes at once ---- */

static inline bool dmappi_launch(const struct dmappi_place *place, unsigned op, uint64_t addr, uint64_t arg1,
                                 uint64_t arg2, uint64_t *old_out)
{
    return DMAPPI_LIKELY(place->target) &&
           gnii_launch(place->target, op, addr, arg1, arg2, old_out) == GNII_LAUNCH_DONE;
}

/* Bytes of nelems elements; false: no such type, or too many. */
static inline bool dmappi_bytes(uint64_t nelems, dmapp_type_t type, uint64_t *bytes_out)
{
    static const uint8_t shift_of[] = { 4, 3, 2, 0 };
    unsigned shift;

    if (DMAPPI_UNLIKELY((unsigned)type > DMAPP_BYTE))
        return false;
    shift = shift_of[type];
    *bytes_out = nelems << shift;
    return DMAPPI_LIKELY(nelems >> (63 - shift) == 0);
}

static inline uint64_t dmappi_type_bytes(dmapp_type_t type)
{
    static const uint8_t bytes_of[] = { 16, 8, 4, 1 };

    return bytes_of[type];
}

/* Local memory that does not wrap around. */
static inline bool dmappi_is_local(const void *addr, uint64_t len_bytes)
{
    return DMAPPI_LIKELY(addr && (uint64_t)(uintptr_t)addr + len_bytes >= len_bytes);
}

/* ---- transfers of any size, put.c and get.c: the short way as far as it goes, posts for the rest ---- */

dmapp_return_t dmappi_put_bytes(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                                uint64_t len_bytes);
dmapp_return_t dmappi_get_bytes(struct dmappi_call *call, void *to, const struct dmappi_place *from,
                                uint64_t len_bytes);

#endif
