/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads the transport when it is needed, and never unloads it: libfabric and its providers leave threads and handlers.
 */
#include <dlfcn.h>
#include <errno.h>

#include "emunic/transport/transport.h"

int emu_transport_load(const char *path, const struct emu_transport_ops **ops_out, const char **text_out)
{
    const struct emu_transport_ops *ops;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!module) {
        *text_out = dlerror();
        return -ENOENT;
    }
    *text_out = "";
    ops = dlsym(module, "emu_transport_ops");
    if (!ops || ops->version != EMU_TRANSPORT_OPS_VERSION)
        return -EPROTO;
    *ops_out = ops;
    return 0;
}
