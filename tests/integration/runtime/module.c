/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call of each pkg-config module, chosen by -DMODULE_<its name>; test_modules.sh compiles it with the flags of that
 * module alone. Prints "ok". The headers own.h stand for a program's own: ours of those names must not hide them.
 */
#include <stdio.h>
#include "emunic/base/log.h"
#include "src/object.h"

#ifndef OWN_LOG
#error "the project's root hides the program's own headers"
#endif
#ifndef OWN_OBJECT
#error "a library's folder hides the program's own headers"
#endif

#if defined(MODULE_cray_ugni) || defined(MODULE_cray_gni_headers)
#include <gni_pub.h>
#elif defined(MODULE_cray_dmapp)
#include <dmapp.h>
#elif defined(MODULE_cray_portals)
#include <portals/portals3.h>
#elif defined(MODULE_portals_ref)
#include <portals3.h>
#elif defined(MODULE_cray_pmi)
#include <pmi_cray.h>
#elif defined(MODULE_cray_alpslli)
#include <alps/libalpslli.h>
#elif defined(MODULE_cray_alpsutil)
#include <alps/libalpsutil.h>
#elif defined(MODULE_cray_udreg)
#include <udreg_pub.h>
#elif defined(MODULE_cray_rca)
#include <rca_lib.h>
#elif defined(MODULE_cray_shmem)
#include <shmem.h>
#else
#error "a module that has no program here"
#endif

/* The call succeeds in a job; without one it may fail, but says so by its status. */
static int is_well(void)
{
#if defined(MODULE_cray_ugni)
    unsigned int addr, cpu;

    return GNI_CdmGetNicAddress(0, &addr, &cpu) == GNI_RC_SUCCESS;
#elif defined(MODULE_cray_gni_headers)
    return sizeof(gni_mem_handle_t) > 0;
#elif defined(MODULE_cray_dmapp)
    int initialized = 1;

    return dmapp_initialized(&initialized) == DMAPP_RC_SUCCESS && !initialized;
#elif defined(MODULE_cray_portals) || defined(MODULE_portals_ref)
    int n_interfaces = 0;
    int r = PtlInit(&n_interfaces);

    if (r != PTL_OK)
        return 0;
    PtlFini();
    return n_interfaces > 0;
#elif defined(MODULE_cray_pmi)
    int spawned;

    return PMI_Init(&spawned) == PMI_SUCCESS && PMI_Finalize() == PMI_SUCCESS;
#elif defined(MODULE_cray_shmem)
    int major = 0, minor = 0;

    shmem_info_get_version(&major, &minor);
    return major == 1;
#elif defined(MODULE_cray_alpslli)
    size_t len = 0;
    int status;
    int r;

    alps_app_lli_lock();
    r = alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, NULL, 0);
    if (r == ALPS_APP_LLI_ALPS_STAT_OK)
        r = alps_app_lli_get_response(&status, &len);
    alps_app_lli_unlock();
    return r == ALPS_APP_LLI_ALPS_STAT_OK && len == 8;
#elif defined(MODULE_cray_alpsutil)
    alpsAppLayout_t layout;

    return alps_get_placement_info(0, &layout, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == 1;
#elif defined(MODULE_cray_udreg)
    udreg_cache_handle_t cache;

    return UDREG_CacheAccess("none", &cache) != UDREG_RC_SUCCESS;
#elif defined(MODULE_cray_rca)
    rs_node_t node;

    return rca_get_nodeid(&node) == 0;
#endif
}

int main(void)
{
    if (!is_well()) {
        printf("the call fails\n");
        return 1;
    }
    printf("ok\n");
    return 0;
}
