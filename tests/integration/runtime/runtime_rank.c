/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of a job, as libfabric's GNI provider, NNTI and Charm++ look around before they start: application id,
 * credentials, placement, own node and place must agree with each other and with what GNI and PMI say. Compiled by
 * test_runtime.sh with the flags of cray-environment.sh alone. Prints "rank R ok".
 */
#include <alps/alps.h>
#include <alps/libalpslli.h>
#include <alps/libalpsutil.h>
#include <aries/misc/exceptions.h>
#include <gni_pub.h>
#include <pmi.h>
#include <pmi_cray.h>
#include <rca_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <udreg_pub.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition);                                          \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Into room; the length, or 0. */
static size_t ask(int request, void *bytes, size_t room)
{
    int status;
    size_t len = 0;

    alps_app_lli_lock();
    if (alps_app_lli_put_request(request, NULL, 0) != ALPS_APP_LLI_ALPS_STAT_OK ||
        alps_app_lli_get_response(&status, &len) != ALPS_APP_LLI_ALPS_STAT_OK || status != ALPS_APP_LLI_ALPS_STAT_OK ||
        len > room || alps_app_lli_get_response_bytes(bytes, len) != ALPS_APP_LLI_ALPS_STAT_OK)
        len = 0;
    alps_app_lli_unlock();
    return len;
}

static void *no_registration(void *addr, uint64_t length, void *context)
{
    (void)length;
    (void)context;
    return addr;
}

static uint32_t no_deregistration(void *data, void *context)
{
    (void)data;
    (void)context;
    return 0;
}

int main(void)
{
    union {
        alpsAppLLIGni_t reply;
        char bytes[1024];
    } gni;
    udreg_cache_attr_t attr = { .cache_name = "check",
                                .max_entries = 8,
                                .device_reg_func = no_registration,
                                .device_dereg_func = no_deregistration };
    udreg_cache_handle_t cache;
    const alpsAppGni_t *credential = (const alpsAppGni_t *)(const void *)gni.reply.u.buf;
    unsigned int device_addr, cpu_id;
    alpsAppLayout_t layout;
    rca_mesh_coord_t place, largest;
    rs_node_t node;
    uint64_t apid;
    uint8_t ptag;
    int *nids, *starts, *totals;
    int spawned, rank, size;

    CHECK(ask(ALPS_APP_LLI_ALPS_REQ_APID, &apid, sizeof(apid)) == sizeof(apid));
    CHECK(ask(ALPS_APP_LLI_ALPS_REQ_GNI, &gni, sizeof(gni)) > 0 && gni.reply.count == 1);
    CHECK(GNI_CdmGetNicAddress(credential->device_id, &device_addr, &cpu_id) == GNI_RC_SUCCESS);
    CHECK(device_addr == (unsigned)credential->local_addr);
    CHECK(GNI_GetPtag(credential->device_id, credential->cookie, &ptag) == GNI_RC_SUCCESS && ptag == credential->ptag);

    /* Before PMI_Init, as libfabric does. */
    CHECK(alps_get_placement_info(apid, &layout, &nids, NULL, NULL, NULL, NULL, &starts, &totals, NULL, NULL) == 1);
    CHECK(rca_get_nodeid(&node) == 0);
    CHECK(PMI_Init(&spawned) == PMI_SUCCESS && PMI_Get_rank(&rank) == PMI_SUCCESS &&
          PMI_Get_size(&size) == PMI_SUCCESS);
    CHECK(layout.numPes == size && layout.numCmds == 1 && starts[0] == 0 && totals[0] == size);
    CHECK(getenv("ALPS_APP_PE") && atoi(getenv("ALPS_APP_PE")) == rank);
    CHECK(rank >= layout.firstPe && rank < layout.firstPe + layout.numPesHere);
    CHECK(nids[rank] == (int)device_addr && node.rs_node_s._node_id == device_addr);
    CHECK(rca_get_meshcoord(device_addr, &place) == 0 && rca_get_max_dimension(&largest) == 0);
    CHECK(place.mesh_x <= largest.mesh_x && place.mesh_y <= largest.mesh_y && place.mesh_z <= largest.mesh_z);
    CHECK(UDREG_CacheCreate(&attr) == UDREG_RC_SUCCESS && UDREG_CacheAccess("check", &cache) == UDREG_RC_SUCCESS);
    CHECK(UDREG_CacheDestroy(cache) == UDREG_RC_SUCCESS);
    free(nids);
    free(starts);
    free(totals);
    CHECK(PMI_Finalize() == PMI_SUCCESS);
    printf("rank %d ok\n", rank);
    return 0;
}
