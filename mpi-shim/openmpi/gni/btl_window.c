/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short puts and gets of osc/emunic, by libugni's launch entry: without descriptor, completion entry or work.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <stddef.h>
#include <string.h>

#include "libugni/src/launch.h"

enum word { WORD_HANDLE, WORD_NIC = WORD_HANDLE + 2 };

_Static_assert(offsetof(struct mg, windows) == offsetof(struct mo_module, windows), "osc/emunic finds it");
_Static_assert(sizeof(gni_mem_handle_t) == 2 * sizeof(uint64_t) && WORD_NIC < MO_WORDS, "words of a window");

static void *expose(void *base, size_t size, uint64_t words_out[MO_WORDS])
{
    mca_btl_base_registration_handle_t *handle = mg_register(&mg.super, NULL, base, size, MCA_BTL_REG_FLAG_ACCESS_ANY);

    if (!handle)
        return NULL;
    memcpy(&words_out[WORD_HANDLE], &handle->memory, sizeof(handle->memory));
    words_out[WORD_NIC] = mg.nic.address.nic;
    return handle;
}

static void hide(void *exposed)
{
    (void)mg_deregister(&mg.super, exposed);
}

static void *open_reach(const uint64_t words[MO_WORDS])
{
    gni_mem_handle_t memory;

    if (words[WORD_NIC] == mg.nic.address.nic)
        return NULL;
    memcpy(&memory, &words[WORD_HANDLE], sizeof(memory));
    return gnii_launch_open(mg.nic.nic, (uint32_t)words[WORD_NIC], &memory);
}

static void close_reach(void *reach)
{
    gnii_launch_close(reach);
}

static bool put(void *reach, uint64_t address, const void *data, size_t n_bytes)
{
    return gnii_launch_put(reach, address, data, n_bytes) == GNII_LAUNCH_DONE;
}

/* A get by a descriptor would read whole words, too. */
static bool get(void *reach, uint64_t address, void *data, size_t n_bytes)
{
    return address % MG_WORD == 0 && n_bytes % MG_WORD == 0 &&
           gnii_launch_get(reach, address, data, n_bytes) == GNII_LAUNCH_DONE;
}

static void progress(void)
{
    (void)mg_flush(&mg.super, NULL);
}

void mg_offer_windows(void)
{
    static const struct mo_transport offer = {
        .longest_bytes = 4096,
        .expose = expose,
        .hide = hide,
        .open = open_reach,
        .close = close_reach,
        .put = put,
        .get = get,
        .progress = progress,
    };

    mg.windows = &offer;
}
