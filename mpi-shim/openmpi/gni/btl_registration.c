/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration of memory, kept by Open MPI's own cache (rcache/grdma): it hears of memory that is given back to the
 * system, and gives up old registrations when the NIC has no room for a new one.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <opal/mca/rcache/base/base.h>

#define ACCESS_WRITES (MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_WRITE | MCA_RCACHE_ACCESS_REMOTE_ATOMIC)

/* Memory that cannot be written is registered all the same, for who only reads it. */
static int register_memory(void *data, void *base, size_t size, mca_rcache_base_registration_t *registration)
{
    struct mg_registration *r = (struct mg_registration *)registration;
    gni_return_t rc;

    (void)data;
    mg_lock();
    rc = GNI_MemRegister(mg.nic.nic, (uint64_t)(uintptr_t)base, size, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                         &r->handle.memory);
    if (rc == GNI_RC_PERMISSION_ERROR && !(registration->access_flags & ACCESS_WRITES))
        rc = GNI_MemRegister(mg.nic.nic, (uint64_t)(uintptr_t)base, size, NULL, GNI_MEM_READ_ONLY, (uint32_t)-1,
                             &r->handle.memory);
    mg_unlock();
    if (rc == GNI_RC_SUCCESS)
        return OPAL_SUCCESS;
    return rc == GNI_RC_ERROR_RESOURCE || rc == GNI_RC_ERROR_NOMEM ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERROR;
}

static int deregister_memory(void *data, mca_rcache_base_registration_t *registration)
{
    struct mg_registration *r = (struct mg_registration *)registration;

    (void)data;
    mg_lock();
    GNI_MemDeregister(mg.nic.nic, &r->handle.memory);
    mg_unlock();
    return OPAL_SUCCESS;
}

int mg_make_cache(void)
{
    mca_rcache_base_resources_t resources = { .cache_name = "gni",
                                              .sizeof_reg = sizeof(struct mg_registration),
                                              .register_mem = register_memory,
                                              .deregister_mem = deregister_memory };

    mg.rcache = mca_rcache_base_module_create("grdma", &mg, &resources);
    if (mg.rcache)
        return 0;
    opal_output(0, "emunic: btl/gni: Open MPI has no rcache/grdma");
    return -1;
}

void mg_free_cache(void)
{
    if (mg.rcache)
        mca_rcache_base_module_destroy(mg.rcache);
    mg.rcache = NULL;
}

/*
 * Only windows want atomics. They are registered each time: where a program frees the memory of a window before the
 * window, the cache would end the job.
 */
static uint32_t cache_flags(uint32_t flags)
{
    return flags & MCA_BTL_REG_FLAG_REMOTE_ATOMIC ? MCA_RCACHE_FLAGS_CACHE_BYPASS : 0;
}

mca_btl_base_registration_handle_t *mg_register(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                                                void *base, size_t size, uint32_t flags)
{
    mca_rcache_base_registration_t *registration = NULL;
    int access = (int)(flags & MCA_RCACHE_ACCESS_ANY);

    (void)btl;
    (void)peer;
    if (mg.rcache->rcache_register(mg.rcache, base, size, cache_flags(flags), access, &registration) != OPAL_SUCCESS)
        return NULL;
    return &((struct mg_registration *)registration)->handle;
}

int mg_deregister(struct mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    struct mg_registration *r = (struct mg_registration *)((char *)handle - offsetof(struct mg_registration, handle));

    (void)btl;
    return mg.rcache->rcache_deregister(mg.rcache, &r->base);
}
