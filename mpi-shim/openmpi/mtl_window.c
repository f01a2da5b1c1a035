/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short puts and gets of osc/emunic over Portals: of memory that the interface has exposed, without message, entry or
 * event.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <stddef.h>

#include <opal/runtime/opal_progress.h>

#include "libportals/src/message_layer.h"
#include "mpi-shim/openmpi/osc_transport.h"

enum word { WORD_NID, WORD_DOMAIN, WORD_GENERATION };

_Static_assert(offsetof(struct mp3, windows) == offsetof(struct mo_mtl_module, windows), "osc/emunic finds it");
_Static_assert(WORD_GENERATION < MO_WORDS, "words of a window");

/* Nothing is kept of it: memory is exposed until the end. */
static void *expose(void *base, size_t size, uint64_t words_out[MO_WORDS])
{
    struct p3_exposed exposed;

    if (!p3_expose(mp3.ni, base, size, &exposed))
        return NULL;
    words_out[WORD_NID] = exposed.nid;
    words_out[WORD_DOMAIN] = exposed.domain;
    words_out[WORD_GENERATION] = exposed.generation;
    return base;
}

static void hide(void *exposed)
{
    (void)exposed;
}

static void *open_reach(const uint64_t words[MO_WORDS])
{
    const struct p3_exposed exposed = { (ptl_nid_t)words[WORD_NID], (uint16_t)words[WORD_DOMAIN],
                                        (uint16_t)words[WORD_GENERATION] };

    return p3_reach_open(mp3.ni, &exposed);
}

static void close_reach(void *reach)
{
    p3_reach_close(reach);
}

static bool put(void *reach, uint64_t address, const void *data, size_t n_bytes)
{
    return p3_reach_put(reach, address, data, n_bytes);
}

static bool get(void *reach, uint64_t address, void *data, size_t n_bytes)
{
    return p3_reach_get(reach, address, data, n_bytes);
}

/* Rests begin anew, as after any look of a program that does not wait here. */
static void progress(void)
{
    opal_progress();
    p3_rounds_stir(mp3.ni);
}

void mp3_offer_windows(void)
{
    static const struct mo_transport offer = {
        .longest_bytes = P3_REACH_BYTES,
        .expose = expose,
        .hide = hide,
        .open = open_reach,
        .close = close_reach,
        .put = put,
        .get = get,
        .progress = progress,
    };

    mp3.windows = &offer;
}
