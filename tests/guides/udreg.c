/* SPDX-License-Identifier: BSD-3-Clause */
/* What the guide of libudreg compiles. */
#include <udreg_pub.h>

int main(void)
{
    udreg_cache_handle_t cache;

    return UDREG_CacheAccess("none", &cache) == UDREG_RC_SUCCESS;
}
